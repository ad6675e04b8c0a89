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
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
model=resnet20 hidden='' batch='' epochs=10 stop='' algos='dense topka gtopk' ranks=4 density='' warmup=gtopk runs='' out=''
said='sh scripts/convergence.sh'
for word in "$@"; do
    case $word in
    *' '*) said="$said \"$word\"" ;;
    *) said="$said $word" ;;
    esac
done
options 'model hidden batch epochs stop-at:stop algos ranks density density-warmup:warmup runs out --' "$@"
eval "set -- $words"
command=$(printf '%s' "$said" | sed 's/ *$//')
case $model in
resnet20) title='ResNet-20 on CIFAR-10' data=cifar10 ;;
vgg16) title='VGG-16 on CIFAR-10' data=cifar10 ;;
lstm)
    hidden=${hidden:-200}
    title="LSTM-$hidden on Penn Treebank" data=ptb
    ;;
*) fail "--model is resnet20, vgg16 or lstm, not \"$model\"" ;;
esac
if [ $data = ptb ]; then
    batch=${batch:-20} density=${density:-0.005}
    set -- --hidden "$hidden" --log-slices 500 "$@"
else
    [ -z "$hidden" ] || fail "--hidden is of --model lstm"
    batch=${batch:-32} density=${density:-0.001}
fi
name=$model$hidden-$data-p$ranks
runs=${runs:-runs/$name}
out=${out:-results/measured/$name}
need_program
# shellcheck source=scripts/mpi-env.sh
. scripts/mpi-env.sh

# value ALGO TYPE KEY: in the last such row of its log
value() { of_log "$runs/$1" "$3" --type "$2" --last; }
# finished ALGO: its run is complete, or was stopped where it should be, or later
finished() {
    has_ended "$runs/$1" && return
    [ -n "$stop" ] && has_ended "$runs/$1" prefix &&
        awk -v at="$(value "$1" summary epoch)" -v stop="$stop" 'BEGIN { exit !(at >= stop - 1e-9) }'
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
# Bytes that a rank sent over the whole run: the steps' means added up.
sent() {
    of_log "$runs/$1" bytes_sent_mean --type step | awk '{ s += $1 } END { printf "%.1f", s / 1048576 }'
}
for algo in $algos; do kept_rows "$runs/$algo" 10 >"$out/$algo.jsonl"; done
set --
for algo in $algos; do set -- "$@" "$out/$algo.jsonl"; done
sh scripts/plot.sh "$@" --against steps,bytes --out "$out" >/dev/null
rm -f "$out/time.png"

first=${algos%% *}
about_data() {
    if [ $data = ptb ]; then
        echo "Real Penn Treebank: $(value "$first" header train_words), $(value "$first" header valid_words) and $(value "$first" header test_words) words for training," \
            "validation and test, vocabulary $(value "$first" header vocabulary) (checksum $(value "$first" header data_crc32)); $(value "$first" header config.batch) streams" \
            "per rank in windows of $(value "$first" header config.bptt) words, dropout $(value "$first" header config.dropout)."
    else
        echo "Real CIFAR-10: $(value "$first" header train_images) training and $(value "$first" header test_images) test images" \
            "(checksum $(value "$first" header data_crc32)), batch $(value "$first" header config.batch) per rank."
    fi
}
about_training() {
    clip=$(value "$first" header config.clip-norm)
    case $clip in 0 | '') clip='' ;; *) clip="the mean gradient clipped to norm $clip ($(value "$first" header config.clip-at)), " ;; esac
    case $warmup in gtopk) known=' (epochs at 0.25, 0.0725, 0.015, 0.004 first)' ;; none) known='' ;; *) known=' (epochs at these densities first)' ;; esac
    whole=$(value "$first" summary run_epochs)
    if [ "$(value "$first" summary prefix)" = true ]; then
        echo "The first $(value "$first" summary epoch | awk '{ printf "%.4g", $1 }') of $(echo "$whole" | awk '{ printf "%.4g", $1 }') epochs:" \
            "the schedules below are those of the whole run."
    fi
    echo "Learning rate $(value "$first" header config.lr) ramped up over the first $(value "$first" header config.lr-warmup) epochs (schedule $(value "$first" header config.lr-schedule))," \
        "momentum $(value "$first" header config.momentum), weight decay $(value "$first" header config.weight-decay), ${clip}density $density, warm-up: $warmup$known."
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
            quality="$(value "$algo" summary valid_perplexity | awk '{ printf "%.2f", $1 }') | $(value "$algo" summary test_perplexity | awk '{ printf "%.2f", $1 }')"
        else
            quality="$(value "$algo" summary test_accuracy | awk '{ printf "%.2f%%", 100 * $1 }') | $(value "$algo" summary test_loss | awk '{ printf "%.3f", $1 }')"
        fi
        awk -v algo="$algo" -v epochs="$(value "$algo" summary epoch)" -v quality="$quality" -v sent="$(sent "$algo")" \
            -v step="$(value "$algo" step bytes_sent_mean)" -v commit="$(value "$algo" header versions.commit)" 'BEGIN {
                printf "| %s | %.1f | %s | %s | %.2f | %s |\n", algo, epochs, quality, sent, step / 1024, commit }'
    done
}
# What each slice of the parameters has in the exchange of the last step that was counted: the parts of all entries, of
# those of a rank's gradient that are not zero, and of those that a rank delivers.
slices() { # slices ALGO
    of_log "$runs/$1" step,name,size,nonzero_mean,sent_mean --type slices --last --each slices | awk -F '\t' -v algo="$1" '
        {
            step = $1; name[++n] = $2; size[n] = $3; nonzero[n] = $4; sent[n] = $5
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
    echo "Machine: $(machine_cpu), $(getconf _NPROCESSORS_ONLN) cores for $ranks ranks, $(value "$first" header versions.mpi)," \
        "$(value "$first" header versions.backend), $(value "$first" header versions.compiler | sed 's/^gcc/GCC/'). Speed is not compared here, since one run may have had the machine" \
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
