#!/bin/sh
# convergence.sh [--model M] [--hidden H] [--layers L] [--batch B] [--epochs E] [--stop-at E] [--algos "A B ..."] [--ranks P]
# [--density RHO] [--density-warmup LIST] [--runs DIR] [--out DIR] [-- OPTION...]: trains a model on its real data once per
# algorithm in the configuration of the gTop-k paper (ResNet-20 and VGG-16 on CIFAR-10 at density 0.001 after its warm-up,
# the LSTM on Penn Treebank at 0.005) or of Ok-Topk's (speech on AN4 at 0.02, without a warm-up), and leaves in
# results/measured what can be published: each run's log with every tenth step, a table, plots, and a README with command,
# commit and machine. Images: batch 32 on each of 4 ranks; LSTM: 20 streams, 200 hidden features; speech: 8 utterances, 5
# layers of 800; all unless options say otherwise. --stop-at: the first epochs of such a run. A run that was interrupted, or
# stopped there, goes on where it was; what is finished is not repeated.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/common.sh
model=resnet20 hidden='' layers='' batch='' epochs=10 stop='' algos='dense topka gtopk' ranks=4 density='' warmup='' runs='' out=''
command="sh scripts/convergence.sh$(quoted "$@" | tr "'" '"')"
options 'model hidden layers batch epochs stop-at:stop algos ranks density density-warmup:warmup runs out --' "$@"
eval "set -- $words"
case $model in
resnet20) title='ResNet-20 on CIFAR-10' data=cifar10 ;;
vgg16) title='VGG-16 on CIFAR-10' data=cifar10 ;;
lstm)
    hidden=${hidden:-200}
    title="LSTM-$hidden on Penn Treebank" data=ptb
    ;;
speech)
    hidden=${hidden:-800} layers=${layers:-5}
    title="speech recognition on AN4, $layers LSTM layers of $hidden" data=an4
    ;;
*) fail "--model is resnet20, vgg16, lstm or speech, not \"$model\"" ;;
esac
if [ $data = ptb ]; then
    batch=${batch:-20} density=${density:-0.005}
    set -- --hidden "$hidden" --log-slices 500 "$@"
elif [ $data = an4 ]; then
    batch=${batch:-8} density=${density:-0.02} warmup=${warmup:-none}
    set -- --hidden "$hidden" --layers "$layers" "$@"
else
    [ -z "$hidden" ] || fail "--hidden is of --model lstm and speech"
    batch=${batch:-32} density=${density:-0.001}
fi
[ $data = an4 ] || [ -z "$layers" ] || fail "--layers is of --model speech"
warmup=${warmup:-gtopk}
name=$model$hidden${layers:+x$layers}-$data-p$ranks
runs=${runs:-runs/$name}
out=${out:-results/measured/$name}
need_program
. scripts/mpi-env.sh

# finished ALGO: its run is complete, or was stopped where it should be, or later
finished() {
    has_ended "$runs/$1" && return
    [ -n "$stop" ] && has_ended "$runs/$1" prefix &&
        of_log "$runs/$1" epoch --type summary --last | awk -v stop="$stop" '{ exit !($1 >= stop - 1e-9) }'
}
is_sparse() { listed exchanges "$1" sparse=true; }
for algo in $algos; do
    run=$runs/$algo
    if finished "$algo"; then continue; fi
    if has_checkpoint "$run"; then
        "$MPIRUN" -np "$ranks" "$program" --resume "$run" ${stop:+--stop-at "$stop"}
        continue
    fi
    clear_run "$run"
    sparse=
    if is_sparse "$algo"; then sparse="--density $density --density-warmup $warmup"; fi
    # two emulated nodes
    if listed exchanges "$algo" by_node=true && [ $((ranks % 2)) -eq 0 ]; then sparse="$sparse --ranks-per-node $((ranks / 2))"; fi
    # shellcheck disable=SC2086 # options
    "$MPIRUN" -np "$ranks" "$program" --model "$model" --algo "$algo" $sparse --data $data --batch "$batch" \
        --epochs "$epochs" ${stop:+--stop-at "$stop"} --out "$run" "$@"
done

# -- what is kept --------------------------------------------------------------------------------------------------
mkdir -p "$out"
for algo in $algos; do kept_rows "$runs/$algo" 10 >"$out/$algo.jsonl"; done
set --
for algo in $algos; do set -- "$@" "$out/$algo.jsonl"; done
sh scripts/plot.sh "$@" --against steps,bytes --out "$out" >/dev/null
rm -f "$out/time.png"

# What the first run says of itself; tabs between, so that no value may be empty.
first=$runs/${algos%% *}
tab=$(printf '\t')
IFS=$tab read -r train_words valid_words test_words vocabulary train_images test_images train_utterances test_utterances checksum mpi backend compiler <<END
$(of_log "$first" train_words,valid_words,test_words,vocabulary,train_images,test_images,train_utterances,test_utterances,data_crc32,versions.mpi,versions.backend,versions.compiler \
    --type header --last --missing -)
END
IFS=$tab read -r run_batch bptt dropout lr lr_warmup lr_warmup_steps lr_schedule momentum decay clip clip_at seed <<END
$(of_log "$first" "$(echo batch,bptt,dropout,lr,lr-warmup,lr-warmup-steps,lr-schedule,momentum,weight-decay,clip-norm,clip-at,seed | sed 's/[^,]*/config.&/g')" \
    --type header --last --missing -)
END
IFS=$tab read -r prefix epoch whole <<END
$(of_log "$first" prefix,epoch,run_epochs --type summary --last --missing - | awk '{ printf "%s\t%.4g\t%.4g", $1, $2, $3 }')
END
about_data() {
    if [ $data = ptb ]; then
        echo "Real Penn Treebank: $train_words, $valid_words and $test_words words for training, validation and test, vocabulary $vocabulary (checksum $checksum);" \
            "$run_batch streams per rank in windows of $bptt words, dropout $dropout."
    elif [ $data = an4 ]; then
        echo "Real AN4: $train_utterances training and $test_utterances test utterances (checksum $checksum), batch $run_batch per rank."
    else
        echo "Real CIFAR-10: $train_images training and $test_images test images (checksum $checksum), batch $run_batch per rank."
    fi
}
about_training() {
    case $clip in 0 | -) clip='' ;; *) clip="the mean gradient clipped to norm $clip ($clip_at), " ;; esac
    case $warmup in gtopk) known=' (epochs at 0.25, 0.0725, 0.015, 0.004 first)' ;; none) known='' ;; *) known=' (epochs at these densities first)' ;; esac
    if [ "$prefix" = true ]; then echo "The first $epoch of $whole epochs: the schedules below are those of the whole run."; fi
    case $lr_warmup_steps in 0 | -) ramp="$lr_warmup epochs" ;; *) ramp="$lr_warmup_steps steps" ;; esac
    case $ramp in '0 epochs') ramp='' ;; *) ramp=" ramped up over the first $ramp" ;; esac
    densities=''
    for algo in $algos; do ! is_sparse "$algo" || densities="density $density, warm-up: $warmup$known, "; done
    echo "Learning rate $lr$ramp (schedule $lr_schedule)," \
        "momentum $momentum, weight decay $decay, $clip${densities}seed $seed."
}
table() {
    if [ $data = ptb ]; then quality='validation perplexity | test perplexity'; elif [ $data = an4 ]; then quality='test WER | test CER | test loss'; else quality='test accuracy | test loss'; fi
    echo "| algorithm | epochs | $quality | MiB sent per rank, whole run | KiB in the last step | commit |"
    echo "|---|---|---|---|---|---|---|$([ $data != an4 ] || echo '---|')"
    for algo in $algos; do
        of_log "$runs/$algo" type,epoch,valid_perplexity,test_perplexity,test_accuracy,test_loss,bytes_sent_mean,versions.commit,test_wer,test_cer --type header,step,summary |
            awk -F '\t' -v algo="$algo" -v data=$data '
                $1 == "header" { commit = $8 }
                $1 == "step" { last = $7; sent += last }
                $1 == "summary" { epochs = $2; quality = data == "ptb" ? sprintf("%.2f | %.2f", $3, $4) : data == "an4" ? sprintf("%.2f%% | %.2f%% | %.3f", 100 * $9, 100 * $10, $6) : sprintf("%.2f%% | %.3f", 100 * $5, $6) }
                END { printf "| %s | %.1f | %s | %.1f | %.2f | %s |\n", algo, epochs, quality, sent / 1048576, last / 1024, commit }'
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
# What the last evaluation heard of some utterances of the test (--samples), beside what is said in them.
heard() {
    printf '\n| utterance, by length | by | |\n|---|---|---|\n'
    for algo in $algos; do
        of_log "$runs/$algo" utterance,said,heard --type eval --last --each samples | awk -F '\t' -v OFS='\t' -v algo="$algo" '{ print $1, 0, "said", $2; print $1, 1, algo, $3 }'
    done | sort -t "$tab" -s -u -k 1,1n -k 2,2n -k 3,3 | awk -F '\t' '{ printf "| %s | %s | %s |\n", $1, $3, $4 }'
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
    echo "Machine: $(machine_cpu), $(getconf _NPROCESSORS_ONLN) cores for $ranks ranks, $mpi," \
        "$backend, $(echo "$compiler" | sed 's/^gcc/GCC/'). Speed is not compared here, since one run may have had the machine" \
        "to itself and another not: \`make bench\` does that, interleaved."
    if [ $data = ptb ]; then
        echo
        echo "## Slice by slice"
        for algo in $algos; do slices "$algo"; done
    elif [ $data = an4 ]; then
        echo
        echo "## What is heard"
        heard
    fi
    echo
    case $data in ptb) picture=perplexity ;; an4) picture=wer ;; *) picture=accuracy ;; esac
    echo "\`ALGO.jsonl\`: the run's log (docs/run-jsonl.md) with every tenth step. Plots of these files: \`$picture.png\`, \`loss.png\`;" \
        "against the bytes that a rank sent, \`$picture-bytes.png\`, \`loss-bytes.png\`."
} >"$out/README.md"
cat "$out/README.md"
