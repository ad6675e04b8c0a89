#!/bin/sh
# gpu-check.sh [--only LIST] [--budget SECONDS] [--quick] [--libs DIR|DIR.tar.xz] [--out DIR] [--groups LIST]
# [--nets LIST] [--benches LIST] [--models LIST] [--algos LIST] [--data NAME:WHERE]... [--runs DIR] [--epochs N] [--lease SECONDS] [--pack FILE]
# [--pack-limit BYTES] [--mps] [--side-by-side N] [--table FILE] [--dry-run | --rehearse]: all that a machine with one NVIDIA GPU is asked to do, without network, in
# under ten minutes.
#   build      the program and the CUDA plugin for this GPU, the tests, what it is measured against
#   test       the list of tests of the device cuda; --groups topk_,nets_ a part of it: there are topk_, comm_, nets_, cli_
#   compare    10 or 20 steps of training on the CPU and on the GPU: ResNet-20, a small LSTM, the decoder of characters and
#              BERT-tiny, a recogniser of speech, dense and gtopk, on 1 and 4 ranks, and VGG-16: the same losses?
#   bench      selectors and networks next to PyTorch, torch.topk, CUB's radix sort and plain passes; where a step goes;
#              --nets says of which networks (resnet20,vgg16,lstm), and may name gpt2 and gpt-char, too; --benches which parts, in
#              this order: select,net,plans,kernels,train,compiled
#   sanitize   compute-sanitizer over selectors, layers and a training step
#   converge   (only when named) real data, four ranks on this GPU, in the gTop-k paper's configuration; goes on where the
#              last call ended. --models resnet20,vgg16,lstm says of what (resnet20), --algos of which exchanges
#              (dense,gtopk,topka; gtopk:paper is gtopk with that --gtopk-residual); --data cifar10:WHERE, --data ptb:WHERE where the data are, --runs where the runs go
#              (runs/gpu-cuda); --epochs how many (the program's own); --lease how many seconds they have over all calls:
#              a run that would not end in its share of them is made shorter, and named. --pack FILE.tar.gz: the runs'
#              rows, plots and, as far as --pack-limit (15000000 bytes) goes, their last checkpoints. --mps: the ranks run
#              beside each other on the GPU, not in turns, where NVIDIA's multi-process service can be started for them
#   campaign   (only when named) runs of scripts/campaign.sh, --side-by-side (4) at a time, of --table FILE where not of its own; goes on with
#              what lies in --runs; what is finished, and the last checkpoints of the others, go to --out
# --libs     Open MPI and the other libraries, as scripts/gpu-libs.sh packed them, for a machine that lacks them
# --out      where gpu-*.json and the log go (results/measured)
# --quick    less of everything          --budget   seconds for all of it (570); what it does not suffice for is named
# --dry-run  the same steps at tiny sizes on the stand-in for CUDA (tests/hostcuda/): tries this script, measures nothing
# --rehearse a dry run that builds first, into build/gpu as for a GPU
# Exit status: 0 when build, tests and comparison passed (those that were asked for), 1 when not, 2: could not begin.
# docs/gpu.md says what the files contain.
set -u
said="sh scripts/gpu-check.sh${*:+ $*}"
begin=$(date +%s)
only=build,test,compare,bench,sanitize budget=570 quick=0 libs='' out='' dry=0 runs='' log=''
nets=resnet20,vgg16,lstm models_trained=resnet20 algos_trained=dense,gtopk,topka benches='' images=cifar10 text=ptb groups='' epochs='' lease='' pack='' pack_limit=15000000
rehearsal=0 data='' mps=0 side_by_side=4 table=''
# shellcheck source=scripts/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
# shellcheck source=scripts/gpu/tools.sh
. "$(dirname "$0")/gpu/tools.sh"
options 'quick!quick=1 mps!mps=1 dry-run!dry=1 rehearse!rehearsal=1 only budget libs/ out/ groups nets benches models:models_trained algos:algos_trained
    data+data runs/ epochs lease pack/ pack-limit:pack_limit side-by-side:side_by_side table/' "$@"
[ $rehearsal = 0 ] || dry=1
eval "set -- $data"
for name in "$@"; do
    case $name in
    cifar10 | cifar10:* | synthetic | synthetic:*) images=$name ;;
    ptb | ptb:* | synthetic-text | synthetic-text:*) text=$name ;;
    *) fail "--data has \"$name\"; there are cifar10, synthetic, ptb, synthetic-text, each with :WHERE or without" ;;
    esac
done
whole --budget "$budget" seconds
whole --pack-limit "$pack_limit" bytes
whole --side-by-side "$side_by_side" runs
[ -z "$epochs" ] || whole --epochs "$epochs" epochs
[ -z "$lease" ] || whole --lease "$lease" seconds
# among OPTION LIST CHOICE...: has the list these alone?
among() {
    among_option=$1 among_list=$2
    shift 2
    for name in $(in_words "$among_list"); do
        case " $* " in *" $name "*) ;; *) fail "$among_option has \"$name\"; there are $(echo "$*" | sed 's/ /, /g')" ;; esac
    done
}
among --groups "$groups" topk_ comm_ nets_ cli_
among --only "$only" build test compare bench sanitize converge campaign
among --benches "$benches" select net plans kernels train compiled
among --nets "$nets" resnet20 vgg16 lstm gpt2 gpt-char
among --models "$models_trained" resnet20 vgg16 lstm
cd "$(dirname "$0")/.." || exit 2
root=$PWD
for name in $(in_words "$algos_trained"); do
    case $name in gtopk:paper | gtopk:conserve) continue ;; esac
    grep -q "^EXCHANGE($(echo "$name" | tr - _))" comm/algorithms/exchanges.def || fail "--algos has \"$name\", which is no exchange; sparsetrain list names them"
done

# -- which machine -------------------------------------------------------------------------------------------------------
if [ "$dry" = 1 ]; then
    if [ $rehearsal = 1 ]; then BUILD=${BUILD:-build/gpu}; else BUILD=${BUILD:-build}; fi
    SPARSETRAIN_PLUGIN=$(absolute "$BUILD")/tests/libsparsetrain_hostcuda.so
    SPARSETRAIN_TEST_EMULATED=1
    export SPARSETRAIN_PLUGIN SPARSETRAIN_TEST_EMULATED
    [ $rehearsal = 1 ] || [ -r "$SPARSETRAIN_PLUGIN" ] || fail "there is no stand-in $SPARSETRAIN_PLUGIN; make tests builds it where the CUDA toolkit is"
    out=${out:-$root/$BUILD/gpu-dry-run}
    case $(mkdir -p "$out" && cd "$out" && pwd -P)/ in
    "$(pwd -P)"/results/measured/*) fail "a dry run measures nothing: its results do not go to results/measured" ;;
    esac
    mkdir -p "$BUILD"
    test_devices=cpu label=hostcuda gpu=none driver=none capability=90
    [ $rehearsal = 0 ] || log=$out/gpu-check.log # it stands for a real call, whose log comes home
else
    find_gpu
    [ -n "$gpu" ] || fail "this machine shows no NVIDIA GPU (nvidia-smi); --dry-run tries the steps without one"
    # A folder of its own: what lies in build/ may come from another machine.
    BUILD=${BUILD:-build/gpu}
    unset SPARSETRAIN_PLUGIN
    test_devices=cuda label=cuda
    log=${out:+$out/gpu-check.log} out=${out:-$root/results/measured}
    mkdir -p "$out" "$BUILD" || exit 2
fi
export BUILD
runs=${runs:-$root/runs/gpu-$label}
program=$BUILD/sparsetrain
make_scratch
: >"$scratch/summary"
. scripts/gpu/steps.sh
. scripts/gpu/bench.sh
. scripts/gpu/converge.sh
. scripts/gpu/campaign.sh

# PyTorch starts with the libraries that it finds without us.
PEER_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
[ -z "$libs" ] || use_libs "$libs"
. scripts/mpi-env.sh
find_tools
: "${OMP_NUM_THREADS:=1}"
export OMP_NUM_THREADS

# -- the steps -----------------------------------------------------------------------------------------------------------
# asked STEP; step STEP SECONDS FUNCTION: in at most so many seconds, and in those that the budget still has, which are all
# for the last step that is asked for
asked() { case ",$only," in *",$1,"*) true ;; *) false ;; esac; }
for name in build test compare bench sanitize converge campaign; do
    if asked $name; then last_step=$name; fi
done
step() {
    asked "$1" || return 0
    step_end=$(($(date +%s) + $2))
    # A dry run measures nothing: however slow the machine is, a step may take all that there is.
    if [ "$1" = "$last_step" ] || [ "$dry" = 1 ] || [ "$step_end" -gt $((begin + budget)) ]; then step_end=$((begin + budget)); fi
    echo
    echo "== $1 ($(($(date +%s) - begin)) s gone, $(remaining) s for this)"
    if [ "$(remaining)" -le 0 ]; then
        verdict "$1" LATE 'not begun: the budget is used up'
        return 0
    fi
    "$3"
    echo "   $1 took until $(($(date +%s) - begin)) s"
}
everything() {
    describe
    step build 150 step_build
    if [ ! -x "$program" ] && ! asked build; then verdict build FAIL "$program is not there: --only build,... first"; fi
    if ! failed build; then
        step test 200 step_test
        step compare 240 step_compare
        step bench 240 step_bench
        step sanitize 120 step_sanitize
        step converge "$budget" step_converge
        step campaign "$budget" step_campaign
    fi
    echo
    echo "== summary ($label; $gpu; commit $commit; $(($(date +%s) - begin)) s)"
    cat "$scratch/summary"
    for needed in build test compare; do
        if failed "$needed" || late "$needed"; then echo 1 >"$scratch/status"; fi
    done
}
echo 0 >"$scratch/status"
everything 2>&1 | tee "${log:-$BUILD/gpu-check.log}"
exit "$(cat "$scratch/status")"
