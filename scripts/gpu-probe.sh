#!/bin/sh
# gpu-probe.sh [--libs DIR|DIR.tar.xz] [--out DIR] [--seconds N] [--dry-run]: is this machine fit for gpu-check.sh? In about
# twenty seconds (--seconds 60 is the most): tools and their versions, cuDNN and its libraries, nvrtc, shared memory for the
# ranks, whether several processes may use the card (compute mode, MPS); then the CUDA plugin is built, into the folder
# that gpu-check.sh builds in, and runs one kernel and, in each precision, one convolution in each direction by the
# algorithms that it chooses.
# --libs, --out  as in gpu-check.sh; the results are gpu-probe.json and gpu-probe.log
# --dry-run      on the stand-in for CUDA: tries this script
# The last lines say GO or NO-GO with every reason, and what to know. Exit status: 0 GO, 1 NO-GO, 2 wrong options.
set -u
said="sh scripts/gpu-probe.sh${*:+ $*}"
begin=$(date +%s)
libs='' out='' dry=0 seconds=60
# shellcheck source=scripts/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
# shellcheck source=scripts/gpu/tools.sh
. "$(dirname "$0")/gpu/tools.sh"
options 'dry-run!dry=1 libs/ out/ seconds' "$@"
whole --seconds "$seconds" seconds
cd "$(dirname "$0")/.." || exit 2
if [ "$dry" = 1 ]; then BUILD=${BUILD:-build} label=hostcuda; else BUILD=${BUILD:-build/gpu} label=cuda; fi
export BUILD
mkdir -p "$BUILD" ${out:+"$out"} || exit 2
make_scratch
: >"$scratch/reasons"
: >"$scratch/notes"
: >"$scratch/rows"

# found NAME VALUE; stops WHY: a reason not to begin; note WHAT
found() {
    printf '%-22s %s\n' "$1" "$2"
    printf '{"what":"%s","found":"%s"}\n' "$1" "$(json_text "$2")" >>"$scratch/rows"
}
stops() { echo "$*" >>"$scratch/reasons"; }
note() { echo "$*" >>"$scratch/notes"; }
first_line() { head -n 1 "$1" | cut -c 1-200; }
version_of() { "$@" --version 2>/dev/null | head -n 1 | cut -c 1-100; }
# lacks NAME stops|note WHAT
lacks() {
    found "$1" no
    "$2" "$1 is missing: $3"
}
# tool NAME WHY: its version; without it this machine cannot be used for what WHY says
tool() { if has "$1"; then found "$1" "$(version_of "$1")"; else lacks "$1" stops "$2"; fi; }
# helper NAME WHAT: one that can be done without
helper() { if has "$1"; then found "$1" yes; else lacks "$1" note "$2"; fi; }

probe_gpu() {
    if [ "$dry" = 1 ]; then
        gpu=none driver=none capability=90
        return
    fi
    find_gpu
    [ -n "$gpu" ] || { stops 'nvidia-smi shows no GPU'; return; }
    found gpu "$gpu, capability $capability, driver $driver, $(ask memory.total)"
    mode=$(ask compute_mode)
    found 'compute mode' "${mode:-unknown}"
    case $mode in
    *Exclusive* | *Prohibited*) stops "compute mode $mode: several ranks cannot share this GPU" ;;
    esac
    if [ -S "${CUDA_MPS_PIPE_DIRECTORY:-/tmp/nvidia-mps}/control" ]; then found MPS running
    elif has nvidia-cuda-mps-control; then found MPS 'not running (ranks take turns on the card)'
    else found MPS 'not here (ranks take turns on the card)'; fi
}
probe_tools() {
    found cores "$jobs"
    found memory "$(sed -n 's/^MemAvailable: *//p' /proc/meminfo 2>/dev/null)"
    found 'C library' "$(getconf GNU_LIBC_VERSION 2>/dev/null || echo unknown)"
    cc=${compiler#CC=}
    tool "${cc:-cc}" 'nothing can be built (gcc)'
    tool g++ 'the plugin cannot be built'
    tool make 'nothing can be built; scripts/gpu-libs.sh brings one'
    if [ -n "$nvcc" ]; then found nvcc "$cuda_version ($nvcc)"; else lacks nvcc stops 'the CUDA toolkit, or its bin in PATH'; fi
    tool pkg-config 'Open MPI and the others are not found; scripts/gpu-libs.sh brings them'
    for name in ompi-c libpng zlib cmocka; do
        has pkg-config || break
        if pkg-config --exists $name 2>/dev/null; then found $name "$(pkg-config --modversion $name)"
        else lacks $name stops 'sh scripts/gpu-libs.sh where there is a network, --libs here'; fi
    done
    found python3 "${python:+$("$python" --version 2>&1)}${torch:+, PyTorch $torch}"
    [ -n "$torch" ] || note 'PyTorch is missing: benches have no peer'
    helper compute-sanitizer 'the step sanitize is skipped'
    helper gnuplot 'plots are to be drawn elsewhere'
    helper git 'the commit comes from the file COMMIT'
}
probe_mpi() {
    has "$MPIRUN" || { stops "mpirun is missing: --libs brings one"; return; }
    found mpirun "$(version_of "$MPIRUN")"
    shared=$(df -k /dev/shm 2>/dev/null | awk 'NR == 2 { print int($4 / 1024) }')
    found '/dev/shm' "${shared:-no} MiB free"
    if [ "${shared:-0}" -lt 64 ]; then stops 'less than 64 MiB of /dev/shm: four ranks have no room for their messages'; fi
    if timeout 20 "$MPIRUN" -np 4 sed -n 's/^Cpus_allowed_list:[ 	]*//p' /proc/self/status >"$scratch/ranks" 2>"$scratch/err" </dev/null; then
        found 'four ranks run on' "cores $(sort -u "$scratch/ranks" | tr '\n' ' ')"
        [ "$(grep -c . "$scratch/ranks")" -eq 4 ] || stops 'mpirun -np 4 did not start four ranks'
    else stops "mpirun -np 4 does not start: $(grep . "$scratch/err" | grep -v '^-*$' | head -n 1 | cut -c 1-200)"; fi
}
probe_cudnn() {
    if [ -z "$cuda_home" ]; then return; fi
    found cuDNN "${cudnn_version:-no}${cudnn:+ (of Python)}"
    [ -n "$cudnn_version" ] || stops 'the headers of cuDNN 9 are neither in the toolkit nor in a package of Python (nvidia-cudnn-cu13)'
    if [ -n "$cublas" ]; then found cuBLAS 'of Python'; else found cuBLAS 'of the toolkit'; fi
}
# What tries them is built where gpu-check.sh goes on.
probe_build() {
    if [ -s "$scratch/reasons" ]; then
        note 'nothing was built, for these reasons'
        return 1
    fi
    targets="$BUILD/tests/gpu_probe $BUILD/libsparsetrain_cuda.so"
    [ "$dry" = 0 ] || targets="$BUILD/tests/gpu_probe $BUILD/tests/libsparsetrain_hostcuda.so"
    build_began=$(date +%s)
    # shellcheck disable=SC2086 # lists of words
    timeout -k 5 "$(left)" make --no-print-directory -j"$jobs" $compiler WERROR="${WERROR:-0}" CUDA=1 CUDA_ARCH="$capability" CUDNN="$cudnn" CUBLAS="$cublas" \
        $targets >"$scratch/build.log" 2>&1
    status=$?
    found 'built in' "$(($(date +%s) - build_began)) s"
    [ $status -ne 0 ] || return 0
    grep -v '^  [A-Z]' "$scratch/build.log" | tail -n 30
    if [ $status -eq 124 ]; then stops "the plugin was not built within --seconds $seconds; what is built stays"
    else stops "the plugin cannot be built: $(grep -m 1 -iE 'error|\*\*\*' "$scratch/build.log" | cut -c 1-200)"; fi
    return 1
}
left() { # seconds, at least one
    over=$((seconds - ($(date +%s) - begin)))
    if [ $over -gt 0 ]; then echo $over; else echo 1; fi
}
# tried NAME HOW ARGUMENTS...: gpu_probe so; HOW: stops where it must work, note where something can be done without
tried() {
    name=$1 how=$2
    shift 2
    timeout -k 5 "$(left)" "$BUILD/tests/gpu_probe" "$@" >"$scratch/tried" 2>"$scratch/err"
    status=$?
    if [ $status -eq 0 ]; then found "$name" "$(first_line "$scratch/tried")"
    else
        why=$(grep -v '^$' "$scratch/err" | tail -n 1 | cut -c 1-300)
        [ $status -ne 124 ] || why="no answer within --seconds $seconds"
        found "$name" "no: ${why:-status $status}"
        $how "$name: ${why:-status $status}"
    fi
    return $status
}
probe_card() {
    SPARSETRAIN_CACHE=$scratch/cache
    export SPARSETRAIN_CACHE
    if [ "$dry" = 1 ]; then
        SPARSETRAIN_PLUGIN=$(absolute "$BUILD")/tests/libsparsetrain_hostcuda.so
    else
        SPARSETRAIN_PLUGIN=$(absolute "$BUILD")/libsparsetrain_cuda.so
        "$BUILD/tests/gpu_probe" libraries >"$scratch/libraries" 2>&1
        while read -r name loaded; do
            found "$name" "$loaded"
            case $name-$loaded in
            *-yes) ;;
            libcudnn_engines_runtime* | libnvrtc*) note "$name: $loaded (engines that are compiled at run time are left out)" ;;
            *) note "$name: $loaded" ;;
            esac
        done <"$scratch/libraries"
    fi
    export SPARSETRAIN_PLUGIN
    tried 'a kernel' stops kernel || return
    tried 'convolution, f32' stops conv f32
    tried 'convolution, tf32' note conv tf32
    tried 'convolution, bf16' note conv bf16
    cat "$scratch"/cache/cudnn-*.txt 2>/dev/null | while IFS='=' read -r shape choice; do
        # shellcheck disable=SC2086 # words
        set -- $shape
        direction=$1 precision=$2
        # shellcheck disable=SC2086 # words
        set -- $choice
        algorithm="algorithm $1, products $2"
        shift 2
        case $* in
        '' | -) plan= ;;
        *) plan=", faster: plan $*" ;;
        esac
        found "$direction, $precision" "$algorithm$plan"
    done
}
everything() {
    probe_gpu
    PEER_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
    find_tools
    . scripts/mpi-env.sh
    probe_tools
    probe_mpi
    probe_cudnn
    if probe_build; then probe_card; fi
    echo
    sed 's/^/know   /' "$scratch/notes"
    if [ -s "$scratch/reasons" ]; then
        sed 's/^/NO-GO  /' "$scratch/reasons"
        echo 1 >"$scratch/status"
    else
        echo "GO     ($label; ${gpu:-none}; commit $commit; $(($(date +%s) - begin)) s)"
        echo 0 >"$scratch/status"
    fi
    write_rows "${out:-$BUILD}/gpu-probe.json" "$scratch/rows" "\"go\":$([ -s "$scratch/reasons" ] && echo false || echo true),"
}
[ -z "$libs" ] || use_libs "$libs"
echo 1 >"$scratch/status"
everything 2>&1 | tee "${out:-$BUILD}/gpu-probe.log"
exit "$(cat "$scratch/status")"
