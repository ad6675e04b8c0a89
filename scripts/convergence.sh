#!/bin/sh
# convergence.sh [--model M] [--hidden H] [--batch B] [--epochs E] [--stop-at E] [--algos "A B ..."] [--ranks P]
# [--density RHO] [--density-warmup LIST] [--runs DIR] [--out DIR] [-- OPTION...]: trains a model on its real data once per
# algorithm in the configuration of the gTop-k paper (ResNet-20 and VGG-16 on CIFAR-10 at density 0.001 after its warm-up,
# the LSTM on Penn Treebank at 0.005), and leaves in results/measured what can be published: each run's log with every
# tenth step, a table, plots, and a README with command, commit and machine. Images: batch 32 on each of 4 ranks; LSTM: 20
# streams, 200 hidden features; all unless options say otherwise. --stop-at: the first epochs of such a run. A run that was
# interrupted, or stopped there, goes on where it was; what is finished is not repeated.
set -eu
cd "$(dirname "$0")/.."
model=resnet20 hidden='' batch='' epochs=10 stop='' algos='dense topka gtopk' ranks=4 density='' warmup=gtopk runs='' out=''
said='sh scripts/convergence.sh'
for word in "$@"; do
    case $word in
    *' '*) said="$said \"$word\"" ;;
    *) said="$said $word" ;;
    esac
done
while [ $# -gt 0 ]; do
    case $1 in
    --model) model=$2 ;;
    --hidden) hidden=$2 ;;
    --batch) batch=$2 ;;
    --epochs) epochs=$2 ;;
    --stop-at) stop=$2 ;;
    --algos) algos=$2 ;;
    --ranks) ranks=$2 ;;
    --density) density=$2 ;;
    --density-warmup) warmup=$2 ;;
    --runs) runs=$2 ;;
    --out) out=$2 ;;
    --)
        shift
        break
        ;;
    *)
        sed -n '2,9s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
    shift 2
done
command=$(printf '%s' "$said" | sed 's/ *$//')
case $model in
resnet20) title='ResNet-20 on CIFAR-10' data=cifar10 ;;
vgg16) title='VGG-16 on CIFAR-10' data=cifar10 ;;
lstm)
    hidden=${hidden:-200}
    title="LSTM-$hidden on Penn Treebank" data=ptb
    ;;
*)
    echo "convergence.sh: --model is resnet20, vgg16 or lstm, not \"$model\"" >&2
    exit 2
    ;;
esac
if [ $data = ptb ]; then
    batch=${batch:-20} density=${density:-0.005}
    set -- --hidden "$hidden" --log-slices 500 "$@"
else
    [ -z "$hidden" ] || {
        echo "convergence.sh: --hidden is of --model lstm" >&2
        exit 2
    }
    batch=${batch:-32} density=${density:-0.001}
fi
name=$model$hidden-$data-p$ranks
runs=${runs:-runs/$name}
out=${out:-results/measured/$name}
program=${BUILD:-build}/sparsetrain
[ -x "$program" ] || {
    echo "convergence.sh: $program is not there; build it first: make" >&2
    exit 2
}
# shellcheck source=scripts/mpi-env.sh
. scripts/mpi-env.sh
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh

number() { sed -n "/^{\"type\":\"$2\"/s/.*\"$3\":\\([-+0-9.eE]*\\).*/\\1/p" "$runs/$1/run.jsonl" | tail -n 1; }
# finished ALGO: its run is complete, or was stopped where it should be, or later
finished() {
    grep -q '"type":"summary".*"completed":true' "$runs/$1/run.jsonl" 2>/dev/null && return
    [ -n "$stop" ] && grep -q '"type":"summary".*"prefix":true' "$runs/$1/run.jsonl" 2>/dev/null &&
        awk -v at="$(number "$1" summary epoch)" -v stop="$stop" 'BEGIN { exit !(at >= stop - 1e-9) }'
}
# is FLAG ALGO: does the row say so?
is() { "$program" list --json | "$program" rows - --each exchanges --keys name --where "$1=true" | grep -qxF -e "$2"; }
for algo in $algos; do
    run=$runs/$algo
    if finished "$algo"; then continue; fi
    if has_checkpoint "$run"; then
        "$MPIRUN" -np "$ranks" "$program" --resume "$run" ${stop:+--stop-at "$stop"}
        continue
    fi
    clear_run "$run"
    sparse=
    if is sparse "$algo"; then sparse="--density $density --density-warmup $warmup"; fi
    # two emulated nodes
    if is by_node "$algo" && [ $((ranks % 2)) -eq 0 ]; then sparse="$sparse --ranks-per-node $((ranks / 2))"; fi
    # shellcheck disable=SC2086 # options
    "$MPIRUN" -np "$ranks" "$program" --model "$model" --algo "$algo" $sparse --data $data --batch "$batch" \
        --epochs "$epochs" ${stop:+--stop-at "$stop"} --out "$run" "$@"
done

# -- what is kept --------------------------------------------------------------------------------------------------
mkdir -p "$out"
text() { sed -n "/^{\"type\":\"$2\"/s/.*\"$3\":\"\\([^\"]*\\)\".*/\\1/p" "$runs/$1/run.jsonl" | tail -n 1; }
# Bytes that a rank sent over the whole run: the steps' means added up.
sent() {
    sed -n '/^{"type":"step"/s/.*"bytes_sent_mean":\([0-9.eE+]*\).*/\1/p' "$runs/$1/run.jsonl" |
        awk '{ s += $1 } END { printf "%.1f", s / 1048576 }'
}
for algo in $algos; do
    grep -v '"type":"checkpoint"' "$runs/$algo/run.jsonl" |
        awk '/^{"type":"step"/ { if (++steps % 10 != 1) next } { print }' |
        sed 's|"data_source":"[^"]*/|"data_source":"|; s|"out":"[^"]*/|"out":"|; s|"data":"\([a-z0-9]*\):[^"]*"|"data":"\1"|; s|"host":"[^"]*"|"host":"-"|' \
            >"$out/$algo.jsonl"
done
set --
for algo in $algos; do set -- "$@" "$out/$algo.jsonl"; done
sh scripts/plot.sh "$@" --against steps,bytes --out "$out" >/dev/null
rm -f "$out/time.png"

first=${algos%% *}
about_data() {
    if [ $data = ptb ]; then
        echo "Real Penn Treebank: $(number "$first" header train_words), $(number "$first" header valid_words) and $(number "$first" header test_words) words for training," \
            "validation and test, vocabulary $(number "$first" header vocabulary) (checksum $(text "$first" header data_crc32)); $(number "$first" header batch) streams" \
            "per rank in windows of $(number "$first" header bptt) words, dropout $(number "$first" header dropout)."
    else
        echo "Real CIFAR-10: $(number "$first" header train_images) training and $(number "$first" header test_images) test images" \
            "(checksum $(text "$first" header data_crc32)), batch $(number "$first" header batch) per rank."
    fi
}
about_training() {
    clip=$(number "$first" header clip-norm)
    case $clip in 0 | '') clip='' ;; *) clip="the mean gradient clipped to norm $clip ($(text "$first" header clip-at)), " ;; esac
    case $warmup in gtopk) known=' (epochs at 0.25, 0.0725, 0.015, 0.004 first)' ;; none) known='' ;; *) known=' (epochs at these densities first)' ;; esac
    whole=$(number "$first" summary run_epochs)
    if grep -q '"type":"summary".*"prefix":true' "$runs/$first/run.jsonl"; then
        echo "The first $(number "$first" summary epoch | awk '{ printf "%.4g", $1 }') of $(echo "$whole" | awk '{ printf "%.4g", $1 }') epochs:" \
            "the schedules below are those of the whole run."
    fi
    echo "Learning rate $(number "$first" header lr) ramped up over the first $(number "$first" header lr-warmup) epochs (schedule $(text "$first" header lr-schedule))," \
        "momentum $(number "$first" header momentum), weight decay $(number "$first" header weight-decay), ${clip}density $density, warm-up: $warmup$known."
}
table() {
    if [ $data = ptb ]; then
        echo "| algorithm | epochs | validation perplexity | test perplexity | MiB sent per rank, whole run | KiB in the last step | commit |"
    else
        echo "| algorithm | epochs | test accuracy | test loss | MiB sent per rank, whole run | KiB in the last step | commit |"
    fi
    echo "|---|---|---|---|---|---|---|"
    for algo in $algos; do
        if [ $data = ptb ]; then
            quality="$(number "$algo" summary valid_perplexity | awk '{ printf "%.2f", $1 }') | $(number "$algo" summary test_perplexity | awk '{ printf "%.2f", $1 }')"
        else
            quality="$(number "$algo" summary test_accuracy | awk '{ printf "%.2f%%", 100 * $1 }') | $(number "$algo" summary test_loss | awk '{ printf "%.3f", $1 }')"
        fi
        awk -v algo="$algo" -v epochs="$(number "$algo" summary epoch)" -v quality="$quality" -v sent="$(sent "$algo")" \
            -v step="$(number "$algo" step bytes_sent_mean)" -v commit="$(text "$algo" header commit)" 'BEGIN {
                printf "| %s | %.1f | %s | %s | %.2f | %s |\n", algo, epochs, quality, sent, step / 1024, commit }'
    done
}
# What each slice of the parameters has in the exchange of the last step that was counted: the parts of all entries, of
# those of a rank's gradient that are not zero, and of those that a rank delivers.
slices() { # slices ALGO
    grep '^{"type":"slices"' "$runs/$1/run.jsonl" | tail -n 1 | tr '{' '\n' | awk -v algo="$1" '
        function number(key) { return match($0, "\"" key "\":[-+0-9.eE]+") ? substr($0, RSTART + length(key) + 3) + 0 : 0 }
        /"step":/ { step = number("step") }
        /"name":/ {
            match($0, /"name":"[^"]*"/); name[++n] = substr($0, RSTART + 8, RLENGTH - 9)
            size[n] = number("size"); nonzero[n] = number("nonzero_mean"); sent[n] = number("sent_mean")
            sizes += size[n]; sents += sent[n]
        }
        END {
            if (!sents) exit
            printf "\n%s, step %d: %d entries of a rank delivered, of %d.\n\n", algo, step, sents, sizes
            print "| slice | of all entries | of its gradient not zero | of what a rank delivers | delivered of the slice |\n|---|---|---|---|---|"
            for (i = 1; i <= n; i++)
                printf "| %s | %.2f%% | %.2f%% | %.2f%% | %.3f%% |\n", name[i], 100 * size[i] / sizes, 100 * nonzero[i] / size[i], 100 * sent[i] / sents, 100 * sent[i] / size[i]
        }'
}
{
    echo "# $title, $ranks ranks"
    echo
    echo "Made by \`$command\`, which continues what was interrupted and writes this page."
    about_data
    about_training
    echo
    table
    echo
    echo "Machine: $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1), $(getconf _NPROCESSORS_ONLN) cores for $ranks ranks, $(text "$first" header mpi)," \
        "$(text "$first" header backend), $(text "$first" header compiler | sed 's/^gcc/GCC/'). Speed is not compared here, since one run may have had the machine" \
        "to itself and another not: \`make bench\` does that, interleaved."
    if [ $data = ptb ]; then
        echo
        echo "## Slice by slice"
        for algo in $algos; do slices "$algo"; done
    fi
    echo
    if [ $data = ptb ]; then picture=perplexity; else picture=accuracy; fi
    echo "\`ALGO.jsonl\`: the run's log (docs/run-jsonl.md) with every tenth step. Plots of these files: \`$picture.png\`, \`loss.png\`;" \
        "against the bytes that a rank sent, \`$picture-bytes.png\`, \`loss-bytes.png\`."
} >"$out/README.md"
cat "$out/README.md"
