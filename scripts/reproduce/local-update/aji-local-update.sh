#!/bin/sh
# aji-local-update: local update against plain gradient dropping
# paper: Aji et al., Table 1: translation models on 4 nodes of 4 GPUs, Adam, 99% dropped after a warm-up of 1000 steps: gradient
#     dropping alone ends below dense training, with local update about where dense training does (their models and
#     data are not here)
# runs: the models at hand: ResNet-20 on CIFAR-10 (140 epochs) and LSTM-PTB (40 epochs) on 16 ranks as 4 nodes of 4 (--ranks-per-node
#     4), which add up their gradients densely inside a node; batch 32 (5 streams) a rank, Adam at 4 times its usual rate:
#     dense; hitopk at density 0.01 after --density-warmup linear:1000; the same with --local-update, parameters averaged
#     every 500 steps; fedavg, every 20; each with 3 seeds (--seeds N) (quick: 4 ranks as 2 nodes of 2, 6 epochs of made-up
#     data, one seed, warm-up of 20 steps, averaged every 25)
# needs: CIFAR-10, Penn Treebank; weeks on few cores, days on a GPU (--epochs E: the first E epochs of that schedule; --hidden H:
#     a smaller LSTM)
# takes: full: about 165 h of computing on two cores, by the rates of results/measured/costs; on a GPU not measured yet; quick: 90 s
# agrees: mean over the seeds: with local update the end is not worse than with plain gradient dropping: accuracy not lower,
#     perplexity not higher, which one seed cannot tell
. scripts/reproduce/parts/training.sh

source=$(published local-update-quality.csv source method='gradient dropping + local update (4x4)')
dropped=$(published local-update-text.csv value subject='gradient dropping' unit=%)
density=$(calc "1 - $dropped / 100")
every=$(pick "$(published local-update-text.csv value subject='local update')" 25)
fedavg_every=$(published local-update-text.csv value subject='federated averaging')
warmup=$(pick "$(published local-update-text.csv value subject='gradient dropping' unit=steps)" 20)
times=$(published local-update-text.csv value subject=4x4)
nodes=$(pick "$(published local-update-text.csv value subject=cluster quantity='nodes of 4 P100 each (4x4)')" 2)
per_node=$(pick 4 2)
training_ranks=$((nodes * per_node))
batch_of_rank=$(pick 32 8)

# four STEM COMMAND...: the four runs of a model, by this command, into STEM-*.jsonl
four() {
    stem=$1 command=$2
    shift 2
    set -- "$@" --optimiser adam --lr "$(calc "0.001 * $times")"
    over_seeds "$command" "$stem-dense.jsonl" "$@" --algo dense
    over_seeds "$command" "$stem-fedavg.jsonl" "$@" --algo fedavg --average-every "$fedavg_every"
    set -- "$@" --algo hitopk --ranks-per-node "$per_node" --density "$density" --density-warmup "linear:$warmup"
    over_seeds "$command" "$stem-dropping.jsonl" "$@"
    over_seeds "$command" "$stem-local.jsonl" "$@" --local-update --average-every "$every"
}
# compare STEM ITEM QUANTITY UNIT RULE EXPRESSION: rows and figures
compare() {
    claim aji-other-models
    gain_row "$2" "$3, local update over plain dropping" "$4" '' "$source" "full: $5" "$6" "$1-local.jsonl" "$1-dropping.jsonl"
    claim
    gain_row "$2" "$3, local update over dense" "$4" '' "$source" none "$6" "$1-local.jsonl" "$1-dense.jsonl"
    gain_row "$2" "$3, averaged parameters over dense" "$4" '' "$source" none "$6" "$1-fedavg.jsonl" "$1-dense.jsonl"
    two_figures "$1" "$2" "$source" "$2, Adam" "$1-dense.jsonl=dense" "$1-dropping.jsonl=dropping" "$1-local.jsonl=dropping+local" "$1-fedavg.jsonl=fedavg"
}
against words
four resnet20 cifar resnet20
compare resnet20 "ResNet-20, $nodes nodes of $per_node" 'test accuracy' 'percentage points' 'at least 0' "$points"
streams_of_rank=5
four lstm words
gain_key=valid_perplexity
compare lstm "$lstm_name, $nodes nodes of $per_node" 'validation perplexity' % 'at most 0' "$above"
finish
