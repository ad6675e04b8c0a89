#!/bin/sh
# deps.sh [build|text|speech|test|lint|data|fuzz|coverage|mpich|sim|netlab|torch|all]...: installs what is missing. Debian and Ubuntu: through apt-get, only the
# packages that are really missing, as root, through sudo, or by printing the line to run. Elsewhere: names the packages and
# stops. Nothing missing: prints nothing, quickly. Any MPI (Open MPI or MPICH), and anything installed without the package
# manager, is taken as it is.
set -u

# A need = a group and what provides it: need | Debian, Ubuntu | Fedora, RHEL | Arch | openSUSE | Homebrew
table='
cc       | gcc libc6-dev           | gcc            | gcc        | gcc               | gcc
cxx      | g++                     | gcc-c++        | gcc        | gcc-c++           | gcc
make     | make                    | make           | make       | make              | make
pkgconf  | pkg-config              | pkgconf-pkg-config | pkgconf | pkg-config       | pkgconf
mpirun   | openmpi-bin             | openmpi        | openmpi    | openmpi           | open-mpi
mpi      | libopenmpi-dev          | openmpi-devel  | openmpi    | openmpi-devel     | open-mpi
simgrid  | libsimgrid-dev          | simgrid-devel  | simgrid    | simgrid           | simgrid
mpich    | mpich libmpich-dev      | mpich-devel    | mpich      | mpich-devel       | mpich
png      | libpng-dev              | libpng-devel   | libpng     | libpng16-devel    | libpng
zlib     | zlib1g-dev              | zlib-devel     | zlib       | zlib-devel        | zlib
utf8proc | libutf8proc-dev         | utf8proc-devel | libutf8proc | utf8proc-devel   | utf8proc
fftw     | libfftw3-dev            | fftw-devel     | fftw       | fftw3-devel       | fftw
dnnl     | libdnnl-dev             | onednn-devel   | onednn     | onednn-devel      | onednn
cmocka   | libcmocka-dev           | libcmocka-devel | cmocka    | libcmocka-devel   | cmocka
gnuplot  | gnuplot-nox             | gnuplot-minimal | gnuplot   | gnuplot           | gnuplot
xz       | xz-utils                | xz             | xz         | xz                | xz
curl     | curl ca-certificates    | curl           | curl       | curl              | curl
clang    | clang                   | clang          | clang      | clang             | llvm
fuzzer   | clang libclang-rt-dev   | clang compiler-rt | clang compiler-rt | clang      | llvm
format   | clang-format            | clang-tools-extra | clang   | clang-tools       | clang-format
cppcheck | cppcheck                | cppcheck       | cppcheck   | cppcheck          | cppcheck
shellck  | shellcheck              | ShellCheck     | shellcheck | ShellCheck        | shellcheck
gcovr    | gcovr                | gcovr          | gcovr      | python3-gcovr     | gcovr
iproute  | iproute2                | iproute        | iproute2   | iproute2          |
torch    | python3 python3-torch   | python3-torch  | python-pytorch | python3-torch | pytorch
'
build='cc cxx make pkgconf mpirun mpi png zlib dnnl'
text='utf8proc' # the build does without, and then lacks the datasets in pieces of words
speech='fftw'   # likewise, and then lacks those of speech
data='xz curl'
check="cmocka gnuplot $data"
lint='clang format cppcheck shellck'
netlab='iproute'

needs=
for group in "${@:-build}"; do
    case $group in
    build) needs="$needs $build" ;;
    data) needs="$needs $data" ;;
    text) needs="$needs $text" ;;
    speech) needs="$needs $speech" ;;
    test) needs="$needs $check" ;;
    lint) needs="$needs $lint" ;;
    fuzz) needs="$needs fuzzer" ;;
    coverage) needs="$needs gcovr" ;;
    mpich) needs="$needs mpich" ;;
    sim) needs="$needs simgrid" ;;
    netlab) needs="$needs $netlab" ;;
    torch) needs="$needs torch" ;;
    all) needs="$needs $build $text $speech $check $lint gcovr simgrid $netlab" ;;
    *)
        echo "usage: deps.sh [build|text|speech|test|lint|data|fuzz|coverage|mpich|sim|netlab|torch|all]..." >&2
        exit 2
        ;;
    esac
done

has() { command -v "$1" >/dev/null 2>&1; }

# The headers that the compiler does not find, in one call of the preprocessor (all of them without a compiler).
absent_headers() {
    compiler=$(command -v cc || command -v gcc || command -v clang) || compiler='cat'
    headers='stdio.h:libc png.h:png zlib.h:zlib utf8proc.h:utf8proc oneapi/dnnl/dnnl.h:dnnl'
    for pair in $headers; do
        printf '#if !__has_include(<%s>)\nabsent-%s\n#endif\n' "${pair%:*}" "${pair#*:}"
    done | if [ "$compiler" = cat ]; then cat; else "$compiler" -E -P -x c - 2>/dev/null; fi | sed -n 's/^absent-//p'
}

# Has clang a libFuzzer? (A package of its own on Debian.)
links_fuzzer() {
    has clang || return 1
    printf 'int LLVMFuzzerTestOneInput(const unsigned char *d, __SIZE_TYPE__ n) { return d && n > 9; }\n' |
        clang -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null
}

# missing NEED: is it really not there?
missing() {
    case $1 in
    cc) ! { has cc || has gcc || has clang; } || is_absent libc ;;
    cxx) has nvcc && ! has c++ && ! has g++ ;; # only the CUDA plugin has C++ in it
    png | zlib | utf8proc | dnnl) is_absent "$1" ;;
    mpirun) ! has mpirun ;;
    fftw) ! pkg-config --exists fftw3f 2>/dev/null ;;
    mpi) ! { pkg-config --exists ompi-c || pkg-config --exists ompi || pkg-config --exists mpich; } 2>/dev/null ;;
    cmocka) ! pkg-config --exists cmocka 2>/dev/null ;;
    pkgconf) ! has pkg-config ;;
    curl) ! has curl && ! has wget ;;
    format) ! has clang-format ;;
    fuzzer) ! links_fuzzer ;;
    simgrid) ! { has smpicc && has smpirun; } ;;
    mpich) ! { has mpirun.mpich || has mpichversion; } || ! pkg-config --exists mpich 2>/dev/null ;;
    shellck) ! has shellcheck ;;
    torch) ! { python3 -c 'import torch' || /usr/bin/python3 -c 'import torch'; } 2>/dev/null ;;
    iproute) [ "$(uname -s)" = Linux ] && ! has ip ;; # network namespaces are Linux's
    *) ! has "$1" ;;
    esac
}
is_absent() { case " $absent " in *" $1 "*) true ;; *) false ;; esac; }

# Prints the needs among "$@" that are missing.
find_missing() {
    absent=$(absent_headers | tr '\n' ' ')
    for need in "$@"; do
        if missing "$need"; then printf '%s ' "$need"; fi
    done
}

# packages COLUMN NEED...: their names for one package manager (2 Debian, 3 Fedora, 4 Arch, 5 openSUSE, 6 Homebrew)
packages() {
    column=$1
    shift
    for need in "$@"; do
        printf '%s\n' "$table" | awk -F'|' -v need="$need" -v column="$column" \
            '{ name = $1; gsub(/ /, "", name) } name == need { print $column }'
    done | tr -s ' ' '\n' | awk 'NF && !seen[$1]++' | tr '\n' ' '
}

# Half an MPICH is completed as MPICH, not by a second MPI beside it.
prefer_mpich() {
    case " $wanted " in *" mpirun "* | *" mpi "*) ;; *) return ;; esac
    if pkg-config --exists mpich 2>/dev/null || mpirun --version 2>/dev/null | grep -qi hydra; then
        wanted=$(printf '%s\n' "$wanted" | tr ' ' '\n' | sed 's/^mpirun$/mpich/; s/^mpi$/mpich/' | tr '\n' ' ')
    fi
}

# shellcheck disable=SC2086 # lists of words from here on
wanted=$(find_missing $needs)
[ -n "$wanted" ] || exit 0
prefer_mpich

if ! has apt-get; then
    echo "sparsetrain needs software that is not here. Install it and come back:" >&2
    # shellcheck disable=SC2086
    {
        if has dnf; then echo "    sudo dnf install $(packages 3 $wanted)"
        elif has pacman; then echo "    sudo pacman -S $(packages 4 $wanted)"
        elif has zypper; then echo "    sudo zypper install $(packages 5 $wanted)"
        elif has brew; then echo "    brew install $(packages 6 $wanted)"
        else echo "    (Debian's names) $(packages 2 $wanted)"; fi
    } >&2
    if has dnf || has zypper; then
        echo "(an MPI installed there must also be on PATH and PKG_CONFIG_PATH: \`module load mpi\`)" >&2
    fi
    exit 1
fi

# What dpkg has already would not help if asked for again.
# shellcheck disable=SC2086
lacking=$(for package in $(packages 2 $wanted); do
    case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) in
    installed) ;;
    *) printf '%s ' "$package" ;;
    esac
done)
lacking=${lacking% }

if [ -n "$lacking" ]; then
    run='env DEBIAN_FRONTEND=noninteractive'
    if [ "$(id -u)" != 0 ]; then
        if has sudo && sudo -n true 2>/dev/null; then run="sudo -n $run"
        elif has sudo && [ -t 0 ] && [ -t 2 ]; then run="sudo $run"
        else
            echo "These packages are missing and installing them needs root. Run this, then come back:" >&2
            echo "    apt-get update && apt-get install -y --no-install-recommends $lacking" >&2
            exit 1
        fi
    fi
    echo "Installing: $lacking"
    log=$(mktemp "${TMPDIR:-/tmp}/sparsetrain-deps.XXXXXX") || exit 1
    trap 'rm -f "$log"' EXIT
    trap 'exit 130' HUP INT TERM
    # The lists may be absent (a fresh container) or old: they are fetched only when an install fails.
    install() {
        # shellcheck disable=SC2086
        $run apt-get install -y -qq --no-install-recommends $lacking >"$log" 2>&1
    }
    if ! install; then
        if ! $run apt-get update -qq >"$log" 2>&1 || ! install; then
            cat "$log" >&2
            echo "apt-get could not install: $lacking" >&2
            exit 1
        fi
    fi
fi

# shellcheck disable=SC2046,SC2086
rest=$(find_missing $(echo $wanted | sed 's/mpich/mpirun mpi/g'))
if [ -n "$rest" ]; then
    # shellcheck disable=SC2086
    echo "still not found although its packages ($(packages 2 $rest)) are installed: ${rest% }" >&2
    exit 1
fi
