#!/bin/sh
# convergence.sh [--epochs E] [--algos "A B ..."] [--ranks P] [--density RHO] [--density-warmup LIST] [--runs DIR]
# [--to DIR] [-- OPTION...]: trains ResNet-20 on CIFAR-10 once per algorithm in the configuration of the gTop-k paper
# (density 0.001 after its warm-up), and leaves in results/measured what can be published: each run's log with every
# tenth step, a table, plots, and a README with command, commit and machine. Batch 32 on each of 4 ranks unless OPTIONs
# say otherwise. A run that was interrupted goes on where it was; a finished one is not repeated.
set -eu
cd "$(dirname "$0")/.."
epochs=10 algos='dense topka gtopk' ranks=4 density=0.001 warmup=gtopk runs='' to=''
said='sh scripts/convergence.sh'
for word in "$@"; do
    case $word in
    *' '*) said="$said \"$word\"" ;;
    *) said="$said $word" ;;
    esac
done
while [ $# -gt 0 ]; do
    case $1 in
    --epochs) epochs=$2 ;;
    --algos) algos=$2 ;;
    --ranks) ranks=$2 ;;
    --density) density=$2 ;;
    --density-warmup) warmup=$2 ;;
    --runs) runs=$2 ;;
    --to) to=$2 ;;
    --)
        shift
        break
        ;;
    *)
        sed -n '2,7s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done
command=$(printf '%s' "$said" | sed 's/ *$//')
name=resnet20-cifar10-p$ranks
runs=${runs:-runs/$name}
to=${to:-results/measured/$name}
program=${BUILD:-build}/sparsetrain
[ -x "$program" ] || {
    echo "convergence.sh: $program is not there; build it first: make" >&2
    exit 2
}
# shellcheck source=scripts/mpi-env.sh
. scripts/mpi-env.sh

for algo in $algos; do
    run=$runs/$algo
    if grep -q '"type":"summary".*"completed":true' "$run/run.jsonl" 2>/dev/null; then continue; fi
    if [ -n "$(find "$run" -name model.ckpt 2>/dev/null)" ]; then
        "$MPIRUN" -np "$ranks" "$program" --resume "$run"
        continue
    fi
    rm -rf "$run"
    case $algo in
    dense | dense-ovlp | torus2d | fedavg) sparse= ;;
    *) sparse="--density $density --density-warmup $warmup" ;;
    esac
    case $algo in # two emulated nodes
    hitopk | torus2d) if [ $((ranks % 2)) -eq 0 ]; then sparse="$sparse --ranks-per-node $((ranks / 2))"; fi ;;
    esac
    # shellcheck disable=SC2086 # options
    "$MPIRUN" -np "$ranks" "$program" --algo "$algo" $sparse --data cifar10 --batch 32 --epochs "$epochs" \
        --out "$run" "$@"
done

# -- what is kept --------------------------------------------------------------------------------------------------
mkdir -p "$to"
number() { sed -n "/^{\"type\":\"$2\"/s/.*\"$3\":\\([-+0-9.eE]*\\).*/\\1/p" "$runs/$1/run.jsonl" | tail -n 1; }
text() { sed -n "/^{\"type\":\"$2\"/s/.*\"$3\":\"\\([^\"]*\\)\".*/\\1/p" "$runs/$1/run.jsonl" | tail -n 1; }
# Bytes that a rank sent over the whole run: the steps' means added up.
sent() {
    sed -n '/^{"type":"step"/s/.*"bytes_sent_mean":\([0-9.eE+]*\).*/\1/p' "$runs/$1/run.jsonl" |
        awk '{ s += $1 } END { printf "%.1f", s / 1048576 }'
}
for algo in $algos; do
    grep -v '"type":"checkpoint"' "$runs/$algo/run.jsonl" |
        awk '/^{"type":"step"/ { if (++steps % 10 != 1) next } { print }' |
        sed 's|"data_source":"[^"]*/|"data_source":"|; s|"out":"[^"]*/|"out":"|; s|"data":"cifar10:[^"]*"|"data":"cifar10"|; s|"host":"[^"]*"|"host":"-"|' \
            >"$to/$algo.jsonl"
done
set --
for algo in $algos; do set -- "$@" "$runs/$algo"; done
sh scripts/plot.sh "$@" --out "$to" >/dev/null
rm -f "$to/time.png"

first=${algos%% *}
{
    echo "# ResNet-20 on CIFAR-10, $ranks ranks"
    echo
    echo "Made by \`$command\`, which continues what was interrupted and writes this page."
    echo "Real CIFAR-10: $(number "$first" header train_images) training and $(number "$first" header test_images) test images" \
        "(checksum $(text "$first" header data_crc32)), batch $(number "$first" header batch) per rank, learning rate $(number "$first" header lr) ramped up over the first" \
        "$(number "$first" header lr-warmup) epochs (schedule $(text "$first" header lr-schedule)), momentum $(number "$first" header momentum)," \
        "weight decay $(number "$first" header weight-decay); density $density, warm-up: $warmup (gtopk: epochs at 0.25, 0.0725, 0.015, 0.004 first)."
    echo
    echo "| algorithm | epochs | test accuracy | test loss | MiB sent per rank, whole run | KiB in the last step | commit |"
    echo "|---|---|---|---|---|---|---|"
    for algo in $algos; do
        awk -v algo="$algo" -v epochs="$(number "$algo" summary epoch)" -v accuracy="$(number "$algo" summary test_accuracy)" \
            -v loss="$(number "$algo" summary test_loss)" -v sent="$(sent "$algo")" -v step="$(number "$algo" step bytes_sent_mean)" \
            -v commit="$(text "$algo" header commit)" 'BEGIN {
                printf "| %s | %.1f | %.2f%% | %.3f | %s | %.2f | %s |\n", algo, epochs, 100 * accuracy, loss, sent, step / 1024, commit }'
    done
    echo
    echo "Machine: $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores for $ranks ranks, $(text "$first" header mpi)," \
        "$(text "$first" header backend), $(text "$first" header compiler | sed 's/^gcc/GCC/'). Speed is not compared here, since one run may have had the machine" \
        "to itself and another not: \`make bench\` does that, interleaved."
    echo
    echo "\`ALGO.jsonl\`: the run's log (docs/run-jsonl.md) with every tenth step. Plots: \`accuracy.png\`, \`loss.png\`."
} >"$to/README.md"
cat "$to/README.md"
