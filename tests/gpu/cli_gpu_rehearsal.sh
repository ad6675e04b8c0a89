#!/bin/sh
# cli_gpu_rehearsal.sh: scripts/gpu-rehearsal.sh: how it refuses, and, where SPARSETRAIN_REHEARSAL names a root that its
# --make-root made, a whole lease on the stand-in for CUDA, as gpu-pack.sh writes it. The suite itself fetches nothing.
. tests/lib/tap.sh

refused() { # refused TEXT ARGUMENTS...: status 2 and one line
    text=$1
    shift
    timeout 100 sh scripts/gpu-rehearsal.sh "$@" >"$W/log" 2>&1 </dev/null
    status=$?
    why="status $status: $(head -c 300 "$W/log")"
    [ $status -eq 2 ] && [ "$(wc -l <"$W/log")" -eq 1 ] && grep -qF -- "$text" "$W/log"
}
mkdir "$W/none"
: >"$W/root.tar"
check "a root that is not there" refused '--make-root makes one' --root "$W/no.tar" "$W/none"
check "calls that were not packed" refused 'gpu-pack.sh makes it' --root "$W/root.tar" "$W/none"
check "an option without its value" refused '--root needs a value' "$W/none" --root
timeout 100 sh scripts/gpu-rehearsal.sh >"$W/log" 2>&1 </dev/null
check "nothing at all: how it is called, status 2" [ $? -eq 2 ]

lease() { skip "a lease, rehearsed" "$1"; finish; exit; }
root=${SPARSETRAIN_REHEARSAL:-}
[ -z "${SAN:-}" ] || lease "not with sanitizers"
[ -n "$root" ] || lease "SPARSETRAIN_REHEARSAL names no root (sh scripts/gpu-rehearsal.sh --make-root FILE.tar; docs/gpu.md)"
[ -r "$root" ] || lease "$root is not there"
[ "$(id -u)" = 0 ] || lease "it takes root"
unshare --mount --net --pid --fork true 2>/dev/null || lease "no namespaces (unshare)"
[ -r "$BUILD/tests/libsparsetrain_hostcuda.so" ] || lease "no CUDA toolkit"
libs=${SPARSETRAIN_REHEARSAL_LIBS:-}
[ -r "$libs" ] || lease "SPARSETRAIN_REHEARSAL_LIBS names no archive of scripts/gpu-libs.sh"
packed=$BUILD/rehearsal-$$
trap 'rm -rf "$W" "$packed"' EXIT
mkdir -p "$W/mirror/cifar-10-batches-bin"
head -c 3000000 /dev/urandom >"$W/mirror/cifar-10-batches-bin/data_batch_1.bin"
tar -C "$W/mirror" -cJf "$W/mirror/cifar-10-batches-bin.tar.xz" cifar-10-batches-bin
sh scripts/gpu-pack.sh "$packed" --libs "$libs" --mirror "$W/mirror" >"$W/log" 2>&1
check "packed" [ $? -eq 0 ]
sh scripts/gpu-rehearsal.sh --root "$root" "$packed" >"$W/log" 2>&1 </dev/null
status=$?
check "every call of the lease ends well" [ $status -eq 0 ]
[ $status -eq 0 ] || tail -n 100 "$W/log" | sed 's/^/# /'
says() { grep -qE -- "$1" "$W/log"; }
check "the machine is fit" says '^ *GO  *\(hostcuda'
check "cuDNN comes from Python" says 'cuDNN 9[0-9.]* \(of Python\)'
check "all is built" says '^ *PASS  build'
check "the losses agree" says '^ *PASS  compare  resnet20, gtopk'
check "benches" says 'gpu-bench-select.json'
check "runs converge, and are packed" says '^ *NOTE  converge  packed: runs.tar.gz'
finish
