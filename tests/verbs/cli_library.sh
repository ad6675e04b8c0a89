#!/bin/sh
# cli_library.sh: the installed library as another program sees it: one header, the names that it has and no others, shared
# and static, the example of docs/examples, programs with MPI of their own, and with a GPU of their own (the stand-in).
. tests/lib/tap.sh
. tests/lib/driver.sh
. scripts/mpi-env.sh
case $BUILD in */san-*) plain_build=${BUILD%/san-*} ;; *) plain_build=$BUILD ;; esac
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -o programs install BUILD="$plain_build" SAN="${SAN:-}" PREFIX="$W/at" > "$W/out" 2> "$W/err"
check "make install" [ $? -eq 0 ]
PKG_CONFIG_PATH=$W/at/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
mpi=$(pkg-config --variable=mpi sparsetrain)
sanitize=${SAN:+-fsanitize=$SAN}

# compiles NAME SOURCE FLAGS...: to $W/NAME
compiles() {
    compiles_to=$W/$1 source=$2
    shift 2
    # shellcheck disable=SC2046,SC2086 # lists of words
    cc -Wall -Wextra -Werror $sanitize "$source" "$@" $(pkg-config --cflags --libs "$mpi") -o "$compiles_to" > "$W/err" 2>&1
    status=$?
    why=$(head -c 600 "$W/err")
    return $status
}
shared="$(pkg-config --cflags --libs sparsetrain) -Wl,-rpath,$W/at/lib"
# The archive in place of the library; what it needs behind it.
static="$(pkg-config --cflags sparsetrain) $W/at/lib/libsparsetrain.a $(pkg-config --static --libs sparsetrain | sed 's/-lsparsetrain//')"

# -- header and names --------------------------------------------------------------------------------------------------------
echo '#include <sparsetrain.h>' > "$W/alone.c"
for language in "c -std=c99" "c -std=c11" "c++ -std=c++11"; do
    # shellcheck disable=SC2086 # words
    check "the header alone, $language" cc -x $language -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$W/at/include" "$W/alone.c"
done
declared=$(grep -oE 'sparsetrain_[a-z_]+\(' "$W/at/include/sparsetrain.h" | tr -d '(' | sort -u)
only_ours() { # only_ours FILE OPTION: its names are those of the header
    found=$(nm "$2" --defined-only "$1" | awk '$2 == "T" || $2 == "D" || $2 == "B" || $2 == "R" { sub(/@.*/, "", $3); print $3 }' | sort -u)
    why=$(printf '%s\n%s\n' "$declared" "$found" | sort | uniq -u | head -n 5 | tr '\n' ' ')
    [ "$found" = "$declared" ]
}
if [ -z "${SAN:-}" ]; then
    check "the shared library has the header's names and no others" only_ours "$W/at/lib/libsparsetrain.so" -D
    check "so has the static one" only_ours "$W/at/lib/libsparsetrain.a" -g
    check "names have a version" sh -c "nm -D '$W/at/lib/libsparsetrain.so' | grep -q 'sparsetrain_open@@SPARSETRAIN_0\.1'"
fi

# -- the example -------------------------------------------------------------------------------------------------------------
# runs P PROGRAM ARGS...
runs() {
    runs_p=$1
    shift
    timeout 120 "$MPIRUN" -np "$runs_p" "$@" > "$W/out" 2> "$W/err" < /dev/null
}
near() { # near ALGORITHM P MOST: the example comes so near
    runs "$2" "$W/example" "$1"
    status=$?
    why="status $status: $(cat "$W/out" "$W/err" | head -c 400)"
    [ $status -eq 0 ] && awk -v most="$3" '{ found = $4 + 0 <= most } END { exit !found }' "$W/out"
}
# shellcheck disable=SC2086 # lists of words
if compiles example docs/examples/exchange.c $shared; then
    ok "the example compiles"
    for P in 1 2 3 4; do
        check "dense, P = $P" near dense $P 1e-9
        for algorithm in topka gtopk oktopk; do check "$algorithm, P = $P" near $algorithm $P 0.03; done
    done
    runs 2 "$W/example" nonsense
    check "a mistake is told, and its status is the program's to choose" sh -c "[ $? -eq 2 ] && grep -q 'the algorithm has no \"nonsense\"' '$W/err'"
else not_ok "the example compiles" "$why"; fi
# shellcheck disable=SC2086
check "the example compiles with the archive" compiles static docs/examples/exchange.c $static
runs 3 "$W/static" gtopk
check "and runs" [ $? -eq 0 ]
check "without the library" sh -c "! ldd '$W/static' | grep -q libsparsetrain"

# -- programs with MPI of their own --------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
check "a program compiles" compiles program tests/library/program.c $shared
fine() {
    runs "$@"
    status=$?
    why="status $status: $(cat "$W/out" "$W/err" | head -c 400)"
    [ $status -eq 0 ] && [ "$(cat "$W/out")" = fine ]
}
for P in 2 3 4 5; do check "two halves of the ranks, P = $P" fine $P "$W/program" halves; done
for P in 1 2 3; do check "MPI of the library, P = $P" fine $P "$W/program" lent; done
check "no MPI yet" fine 1 "$W/program" unstarted
check "communicators that do not serve" fine 2 "$W/program" inter
check "no communicator left is an error, where MPI's errors are fatal" fine 2 "$W/program" refusal
mkdir "$W/languages"
if localedef -i de_DE -f UTF-8 "$W/languages/de_DE.UTF-8" > "$W/out" 2>&1; then
    check "a language that writes numbers with a comma" fine 2 env LOCPATH="$W/languages" LC_ALL=de_DE.UTF-8 "$W/program" language
else
    skip "a language that writes numbers with a comma" "localedef makes none here: $(head -n 1 "$W/out")"
fi
for P in 1 2; do check "close after MPI_Finalize, P = $P" fine $P "$W/program" ended; done

# -- a program that works with a GPU, on the stand-in -----------------------------------------------------------------------------
case $BUILD in /*) stand_in=$BUILD ;; *) stand_in=$PWD/$BUILD ;; esac
stand_in=$stand_in/tests/libsparsetrain_hostcuda.so plugin=libsparsetrain_cuda.so
# says TEXT PROGRAM: why the program cannot open with device=cuda
says() {
    runs 1 "$2" opens
    why="no \"$1\" in: $(cat "$W/out" "$W/err" | head -c 400)"
    grep -qF "$1" "$W/out" && [ "$(wc -l < "$W/out")" -eq 1 ]
}
unset SPARSETRAIN_PLUGIN
rm -f "$W/at/lib/sparsetrain/$plugin"
# shellcheck disable=SC2086
check "a program with a GPU of its own compiles" compiles device tests/library/device.c $shared -ldl
check "without a plugin it is told so" says "there is no plugin $plugin beside the library, in sparsetrain/ there, or in /" "$W/device"
export SPARSETRAIN_PLUGIN="$W/none.so"
check "and where one that is named is none" says "SPARSETRAIN_PLUGIN names $W/none.so, which cannot be read" "$W/device"
if [ -r "$stand_in" ]; then
    export SPARSETRAIN_PLUGIN="$stand_in" SPARSETRAIN_HOSTCUDA_LEAKS=1
    for P in 1 2 3; do check "streams, and the sums of the host, P = $P" fine $P "$W/device" order "$stand_in"; done
    for P in 1 2; do check "memory and streams that do not serve, P = $P" fine $P "$W/device" pointers "$stand_in"; done
    export SPARSETRAIN_HOSTCUDA_DEVICES=2
    check "the second of two GPUs" fine 2 "$W/device" second "$stand_in"
    export SPARSETRAIN_HOSTCUDA_DEVICES=0
    check "no GPU" says "this machine shows no NVIDIA GPU" "$W/device"
    unset SPARSETRAIN_HOSTCUDA_DEVICES SPARSETRAIN_PLUGIN
    empty_driver
    mkdir -p "$W/at/lib/sparsetrain"
    cp "$stand_in" "$W/at/lib/sparsetrain/$plugin"
    check "the installed library finds its plugin" fine 2 "$W/device" opens
else
    skip "a program with a GPU of its own" "the stand-in for CUDA is not built (no CUDA toolkit)"
fi
# Linked into a program, the library knows the place by what it was configured with.
if [ -r "$stand_in" ] && [ -z "${SAN:-}" ]; then
    mkdir -p "$W/build/obj"
    cp -a "$BUILD/library" "$BUILD/commit" "$W/build"
    for module in base topk comm; do cp -a "$BUILD/obj/$module" "$W/build/obj"; done
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make BUILD="$W/build" PREFIX="$W/at" "$W/build/libsparsetrain.a" > "$W/out" 2> "$W/err"
    check "the archive for another place" [ $? -eq 0 ]
    # shellcheck disable=SC2046
    check "a program with it in itself compiles" compiles within tests/library/device.c $(echo "$static" | sed "s|[^ ]*/libsparsetrain.a|$W/build/libsparsetrain.a|")
    check "and finds the plugin" fine 1 "$W/within" opens
    rm "$W/at/lib/sparsetrain/$plugin"
    check "and says where it has looked" says "or in $W/at/lib/sparsetrain/:" "$W/within"
else
    skip "the place of the plugin in the archive" "the stand-in for CUDA is not built, or sanitizers are on"
fi
finish
