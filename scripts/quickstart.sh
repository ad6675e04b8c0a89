#!/bin/sh
# quickstart.sh: from a fresh clone to a four-process gTop-k training run that learns, in one to five minutes on two
# cores after what is missing has been installed.
set -eu
cd "$(dirname "$0")/.."

. scripts/lib/common.sh
say() { printf '\n== %s\n' "$*"; }
program=build/sparsetrain

sh scripts/deps.sh build
began=$(date +%s)
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
say "building (make -j$jobs)"
# A compiler newer than ours may know warnings that ours did not: no reason to stop here.
make --no-print-directory -s -j"$jobs" WERROR=0 all
built=$(date +%s)
. scripts/mpi-env.sh

# -- data: the real set where it can be had without the network, else one that is built in ---------------------------------
mirror=../shared/data
if [ -z "${SPARSETRAIN_DATA:-}" ] && ! listed datasets cifar10 && [ -d "$mirror" ]; then
    sh scripts/deps.sh data || true # its archives are .tar.xz
    sh scripts/fetch-data.sh cifar10 --mirror "$mirror" || true
fi
data=synthetic
if listed datasets cifar10; then data=cifar10; fi
if [ $data = cifar10 ]; then
    say "data: CIFAR-10 from ${SPARSETRAIN_DATA:-build/data}"
else
    say "data: CIFAR-10 is not on this machine; a built-in synthetic set of its shape (10 classes, 32x32x3) stands in"
    echo "   For the real one (170 MB): sh scripts/fetch-data.sh cifar10"
fi

# -- the main job ----------------------------------------------------------------------------------------------------------
out=runs/quickstart-$(date +%Y%m%d-%H%M%S)
# One epoch is too short for the papers' warm-up of the density, which lasts four. Without it momentum does harm: an entry
# waits hundreds of steps and arrives as one large sum, which momentum 0.9 would apply ten times over.
set -- -np 4 $program --algo gtopk --density 0.001 --density-warmup none \
    --model resnet20 --data $data --device cpu --batch 32 --steps 390 --eval-every 0.5 \
    --lr 0.2 --lr-warmup 0 --lr-schedule step:75% --momentum 0 --out "$out"
say "four processes train ResNet-20; each sends 0.1 % of its gradient a step:"
echo "   ${MPIRUN##*/} $*"
echo
status=0
"$MPIRUN" "$@" || status=$?
if [ $status -ne 0 ]; then
    echo "quickstart: the run ended with status $status; what it wrote is in $out" >&2
    exit $status
fi
ended=$(date +%s)
echo
echo "Built in $((built - began)) s, ran in $((ended - built)) s; everything that happened is in $out/run.jsonl."
