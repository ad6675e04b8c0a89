#!/bin/sh
# cli_gpu_probe.sh: scripts/gpu-probe.sh: GO on the stand-in for CUDA, by our own choice of algorithms; and what it makes of
# machines that lack something: in a tree of its own, on a GPU, with tools and a plugin that are scripts.
. tests/lib/tap.sh

if [ -n "${SAN:-}" ]; then
    skip "probing" "scripts alone, which sanitizers do not see"
    finish
    exit
fi
has() { # has TEXT...: each in the log
    for text in "$@"; do
        why="no \"$text\" in: $(head -c 3000 "$W/log")"
        grep -qE -- "$text" "$W/log" || return 1
    done
}

# -- on the stand-in
if [ ! -r "$BUILD/tests/libsparsetrain_hostcuda.so" ]; then skip "dry run" "no stand-in for CUDA: no CUDA toolkit"
else
    (
        unset SPARSETRAIN_PLUGIN
        timeout 900 sh scripts/gpu-probe.sh --dry-run --out "$W/dry" --seconds 600
    ) >"$W/log" 2>&1 </dev/null
    check "dry run: GO" [ $? -eq 0 ]
    check "which says so last" sh -c "tail -n 1 '$W/log' | grep -q '^GO  *(hostcuda;'"
    check "a kernel has run" has '^a kernel  *hostcuda.* 100 of 10007'
    for precision in f32 tf32 bf16; do
        check "a convolution in $precision" has "^convolution, $precision  *$precision: off by"
        for direction in forward data filter; do check "$direction: the algorithm" has "^$direction, $precision  *algorithm [0-9]"; done
    done
    go() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); assert r["go"] is True and r["device"] == "hostcuda" and len(r["rows"]) > 20' "$W/dry/gpu-probe.json"; }
    if command -v python3 >/dev/null 2>&1; then check "the file" go; else skip "the file" "python3 is not installed"; fi
    check "and the log" cmp -s "$W/log" "$W/dry/gpu-probe.log"
    check "a precision that there is not" sh -c "! '$BUILD/tests/gpu_probe' conv f8 2>'$W/err' && grep -q 'no precision' '$W/err'"
fi

# -- machines
T=$W/tree C=$W/cuda
mkdir -p "$T/scripts" "$T/build/gpu/tests" "$W/bin" "$C/bin" "$C/include" "$C/lib64"
mkdir -p "$T/scripts/lib" "$T/scripts/gpu"
cp scripts/lib/common.sh scripts/lib/commit.sh "$T/scripts/lib"
cp scripts/gpu-probe.sh scripts/mpi-env.sh "$T/scripts"
cp scripts/gpu/tools.sh "$T/scripts/gpu"
put() { # put FILE: a script, from standard input
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}
put "$W/bin/nvidia-smi" <<'END'
case $1 in *compute_cap*) echo 9.0 ;; *compute_mode*) echo "${MODE:-Default}" ;; *name*) echo "${GPU-A GPU}" ;; *) echo 580 ;; esac
END
put "$W/bin/pkg-config" <<'END'
case "$*" in *"${ABSENT:-none}"*) exit 1 ;; --exists*) exit 0 ;; esac
echo 1.0
END
put "$W/bin/mpirun" <<'END'
[ -z "${NO_MPI:-}" ] || { echo 'no fabric' >&2; exit 1; }
printf '0-15\n0-15\n0-15\n0-15\n'
END
put "$W/bin/make" <<'END'
[ "$1" != --version ] || { echo make 1; exit; }
echo "$*" >>"$NOTES"
[ -z "${NO_BUILD:-}" ] || { echo 'x.cu: error: what is this' && exit 2; }
END
put "$C/bin/nvcc" <<'END'
echo 'Cuda compilation tools, release 13.0, V13.0.88'
END
for name in MAJOR MINOR PATCHLEVEL; do echo "#define CUDNN_$name 9"; done >"$C/include/cudnn_version.h"
: >"$C/lib64/libcudnn.so"
: >"$C/lib64/libcublas.so"
put "$T/build/gpu/tests/gpu_probe" <<'END'
echo "$*" >>"$NOTES"
case "$*" in
libraries) printf 'libcudnn.so.9 yes\nlibnvrtc.so.13 no: cannot open shared object file\n' ;;
"${ILL:-none}") echo 'cuDNN has no algorithm' >&2 && exit 1 ;;
*) echo "$* is well" ;;
esac
END
NOTES=$W/notes
export NOTES
probed() { # probed VARIABLE=VALUE... on that machine: output to $W/log, its status
    : >"$NOTES"
    (
        unset BUILD WERROR MPIRUN SPARSETRAIN_PLUGIN LD_LIBRARY_PATH
        cd "$T" && env PATH="$W/bin:$C/bin:$PATH" MPIRUN="$W/bin/mpirun" "$@" timeout -k 10 300 sh scripts/gpu-probe.sh --out "$W/out"
    ) >"$W/log" 2>&1 </dev/null
    status=$?
}
goes() { # goes TEXT...: GO, and this is in the log
    why="status $status: $(head -c 3000 "$W/log")"
    [ $status -eq 0 ] && has '^GO  ' "$@"
}
stopped() { # stopped TEXT: NO-GO for this reason
    why="status $status: $(head -c 3000 "$W/log")"
    [ $status -eq 1 ] && has "^NO-GO  .*$1" && ! grep -q '^GO  ' "$W/log"
}
probed A=1
check "all is there: GO" goes '^gpu  *A GPU, capability 90' '^cuDNN  *9.9.9' '^four ranks run on  *cores 0-15' '^convolution, bf16  *conv bf16 is well'
check "warnings are let pass, for this capability" grep -q 'WERROR=0 CUDA=1 CUDA_ARCH=90 .*build/gpu/tests/gpu_probe build/gpu/libsparsetrain_cuda.so' "$NOTES"
check "a library that does not load is named" has '^know   libnvrtc.so.13: no: cannot open'
probed ILL='conv bf16'
check "no convolution in bf16: GO, and it is said" goes '^know   convolution, bf16: cuDNN has no algorithm'
probed ILL='conv f32'
check "none in f32: NO-GO" stopped 'convolution, f32: cuDNN has no algorithm'
probed ILL=kernel
check "a kernel that does not run: NO-GO" stopped 'a kernel: cuDNN has no algorithm'
check "and nothing is tried after it" sh -c "! grep -q conv '$NOTES'"
probed NO_BUILD=1
check "a plugin that cannot be built: NO-GO" stopped 'cannot be built: x.cu: error: what is this'
probed GPU=
check "no GPU: NO-GO" stopped 'no GPU'
check "nothing is built" [ ! -s "$NOTES" ]
probed MODE=Exclusive_Process
check "a GPU for one process alone: NO-GO" stopped 'several ranks cannot share'
probed ABSENT=ompi-c
check "no MPI to build with: NO-GO" stopped 'ompi-c is missing'
probed NO_MPI=1
check "ranks that do not start: NO-GO" stopped 'does not start: no fabric'
rm "$C/include/cudnn_version.h"
probed A=1
if [ -r /usr/include/cudnn_version.h ] || python3 -c 'import nvidia.cudnn' 2>/dev/null; then skip "no cuDNN: NO-GO" "this machine has one of its own"
else check "no cuDNN: NO-GO" stopped 'headers of cuDNN 9'; fi
timeout 60 sh scripts/gpu-probe.sh --seconds soon >"$W/log" 2>&1
check "seconds that are no number: status 2" [ $? -eq 2 ]
finish
