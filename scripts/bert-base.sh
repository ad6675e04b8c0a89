#!/bin/sh
# bert-base.sh [--timed] [--preset NAME] [--steps N] [--runs DIR] [--out DIR] [-- OPTION...]: does BERT-base, with Ok-Topk's
# 133,547,324 parameters, train right? Ten steps on two ranks with 4 pairs of WikiText-2 each, nothing dropped: at the preset's rate,
# which rises over 4,000 steps; at its full rate from the second step on; and as the first with --algo oktopk at density 0.01. PyTorch
# takes the same steps where $PYTHON (python3) has it, on the pairs that `data show` prints (tests/golden/bert_base.py). Left in
# results/measured/bert-base-p2: the logs, and a README with the losses beside each other, where a step's time goes, memory, traffic.
# Takes 4 GiB of memory for a rank, as much for PyTorch, and a few minutes. What is finished is not repeated.
#
#   --timed         the machine has nothing else to do: seconds, too, not only shares of a step
#   --preset NAME   another size (base)          --steps N   another length (10)
#   -- OPTION...    what all runs have besides
#
# Exit status: 1 when PyTorch comes to other losses, 2 for a mistake.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/common.sh
command="sh scripts/bert-base.sh$(quoted "$@" | tr "'" '"')"
timed=no preset=base steps=10 runs='' out='' ranks=2 batch=4
options 'timed!timed preset steps runs out --' "$@"
eval "set -- $words"
whole --steps "$steps" steps
runs=${runs:-runs/bert-$preset-p$ranks} out=${out:-results/measured/bert-$preset-p$ranks}
python=${PYTHON:-python3}
need_program
make_scratch
. scripts/mpi-env.sh
all='dense dense-rate oktopk' tab=$(printf '\t')

run() { # NAME OPTION...
    run=$runs/$1
    shift
    if has_ended "$run"; then return; fi
    if has_checkpoint "$run"; then
        set -- --resume "$run"
    else
        clear_run "$run"
        set -- --model bert --preset "$preset" --batch $batch --steps "$steps" --dropout 0 --eval-every never --out "$run" "$@"
    fi
    "$MPIRUN" -np $ranks "$program" "$@"
    rm -rf "$run"/checkpoint-* # parameters and both moments: 1.5 GiB
}
run dense --algo dense "$@"
run dense-rate --algo dense --lr-warmup-steps 1 "$@"
run oktopk --algo oktopk --density 0.01 --tau-prime 128 "$@"

# -- beside PyTorch ----------------------------------------------------------------------------------------------------------
mkdir -p "$out"
status=0
IFS=$tab read -r data seed context checksum pairs parameters commit mpi backend compiler <<END
$(of_log "$runs/dense" config.data,config.seed,config.context,data_crc32,train_pairs,parameters,versions.commit,versions.mpi,versions.backend,versions.compiler --type header)
END
case $data in wiki) text=WikiText-2 ;; *) text="\`--data $data\`" ;; esac
if "$python" -c 'import torch' 2>/dev/null; then
    "$program" data show --data "$data" --seed "$seed" --context "$context" --samples $((steps * ranks * batch)) --json >"$scratch/pairs"
    for each in dense dense-rate; do
        "$python" tests/golden/bert_base.py "$runs/$each/run.jsonl" "$scratch/pairs" >"$scratch/$each" || status=$?
        [ $status -le 1 ] || exit $status
    done
else
    for each in dense dense-rate; do echo "Not compared: $python has no PyTorch." >"$scratch/$each"; done
    say "$python has no PyTorch: not compared (PYTHON=... names another)"
fi

# -- what is kept ------------------------------------------------------------------------------------------------------------
for each in $all; do kept_rows "$runs/$each" 1 >"$out/$each.jsonl"; done
losses() { # step, and the losses of dense and of oktopk
    for each in dense oktopk; do of_log "$runs/$each" step,loss,next_loss,gradient_norm_mean --type step >"$scratch/$each.losses"; done
    echo '| step | loss of masked words, dense | oktopk | next-sentence loss, dense | oktopk | norm of the mean gradient, dense | oktopk |'
    echo '|---|---|---|---|---|---|---|'
    paste "$scratch/dense.losses" "$scratch/oktopk.losses" |
        awk -F '\t' '{ printf "| %d | %.6f | %.6f | %.6f | %.6f | %.4f | %.4f |\n", $1, $2, $6, $3, $7, $4, $8 }'
}
shares() { # of the mean step
    printf '| run | compute | io | select | pack | communicate | merge | update | other |%s peak memory of a rank | of that private | sent by a rank in a step |\n' "${seconds:+ step |}"
    printf '|---|---|---|---|---|---|---|---|---|---|---|---|%s\n' "${seconds:+---|}"
    for each in $all; do
        of_log "$runs/$each" "$(echo compute,io,select,pack,communicate,merge,update,other | sed 's/[a-z]*/phases.&/g'),memory_peak_max,memory_private_max,bytes_sent_per_step" --type summary --last |
            awk -F '\t' -v name="$each" -v timed="$seconds" '{
                for (i = 1; i <= 8; i++) step += $i
                printf "| %s |", name
                for (i = 1; i <= 8; i++) printf " %.1f%% |", 100 * $i / step
                if (timed) printf " %.2f s |", step
                printf " %.2f GiB | %.2f GiB | %.1f MiB |\n", $9 / 2^30, $10 / 2^30, $11 / 2^20
            }'
    done
}
seconds=''
if [ $timed = yes ]; then seconds=yes; fi
{
    echo "# BERT-$preset, $steps steps on $ranks ranks"
    echo
    echo "Made by \`$command\` at commit $commit: \`--model bert --preset $preset\` ($parameters parameters) on $text ($pairs training pairs of up to" \
        "$context pieces, checksum $checksum), $batch pairs a rank, seed $seed, \`--dropout 0\`${*:+, }$*. A loss is that of a step's pairs before the update."
    echo
    echo "## Beside PyTorch, at the preset's rate"
    echo
    echo "\`dense\`: the rate of the preset's long warm-up. \`sparsetrain data show --json\` prints the pairs, and \`tests/golden/bert_base.py\` trains PyTorch's encoder on them."
    echo
    cat "$scratch/dense"
    echo
    echo "## Beside PyTorch, at the full rate"
    echo
    echo "\`dense-rate\`: \`--lr-warmup-steps 1\`, so that the steps are as large as they become, and differences of an update would show."
    echo
    cat "$scratch/dense-rate"
    echo
    echo "## Sparse beside dense"
    echo
    echo "\`oktopk\`: \`--algo oktopk --density 0.01 --tau-prime 128\`, else as \`dense\`: the first loss is the same, and what differs afterwards is what is not sent at once. Of Ok-Topk the norm" \
        "is that of what is delivered."
    echo
    losses
    echo
    echo "## Where a step's time goes, memory, traffic"
    echo
    if [ -n "$seconds" ]; then
        echo "Means over all steps and both ranks, on a machine that had nothing else to do (\`--timed\`)."
    else
        echo "Shares of the mean step. The machine may have had other work meanwhile, so that even these are no more than a rough picture (whoever waits for a rank that was held up does so in" \
            "\`communicate\`), and times, in the logs too, are no measurement: \`--timed\`, on a machine without other work, prints them."
    fi
    echo
    shares
    echo
    echo "Machine: $(machine_cpu), $(getconf _NPROCESSORS_ONLN) cores for $ranks ranks, $mpi, $backend, $(echo "$compiler" | sed 's/^gcc/GCC/')."
    echo
    echo "\`dense.jsonl\`, \`dense-rate.jsonl\`, \`oktopk.jsonl\`: the runs' logs (docs/run-jsonl.md)."
} >"$out/README.md"
cat "$out/README.md"
exit $status
