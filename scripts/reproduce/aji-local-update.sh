#!/bin/sh
# aji-local-update: local update against plain gradient dropping
# paper: Aji et al., Table 1: translation models on 4 nodes: gradient dropping (99%) alone ends below dense training, with local
#     update about where dense training does (their models and data are not here)
# runs: the models at hand on 4 ranks: ResNet-20 on CIFAR-10 (140 epochs, batch 128 a rank) and LSTM-PTB (40 epochs): dense; topka
#     at density 0.01; the same with --local-update, parameters averaged every 500 steps; fedavg, every 20 (quick: 6
#     epochs of made-up data, averaged every 25 steps)
# needs: CIFAR-10, Penn Treebank; days on CPUs, hours on a GPU (--epochs E cuts it)
# takes: full: about 55 h of computing on two cores, by the images and words per second of results/measured/costs; on
#     a GPU not yet measured; quick: 55 s
# agrees: with local update the end is not worse than with plain gradient dropping: accuracy not lower, perplexity not higher
. scripts/reproduce/training.sh

every=$(published local-update-text.csv value subject='local update')
fedavg_every=$(published local-update-text.csv value subject='federated averaging')
dropped=$(published local-update-text.csv value subject='gradient dropping' unit=%)
density=$(calc "1 - $dropped / 100")
source=$(published local-update-quality.csv source method='gradient dropping + local update (4x4)')
every=$(pick "$every" 25)

# four STEM COMMAND...: the four runs of a model, by this command, into STEM-*.jsonl
four() {
    stem=$1 command=$2
    shift 2
    $command "$stem-dense.jsonl" "$@" --algo dense
    $command "$stem-dropping.jsonl" "$@" --algo topka --density "$density"
    $command "$stem-local.jsonl" "$@" --algo topka --density "$density" --local-update --average-every "$every"
    $command "$stem-fedavg.jsonl" "$@" --algo fedavg --average-every "$fedavg_every"
}
named() { echo "$1-dense.jsonl=dense" "$1-dropping.jsonl=dropping" "$1-local.jsonl=dropping+local" "$1-fedavg.jsonl=fedavg"; }
four resnet20 cifar resnet20
row 'ResNet-20, P = 4' 'test accuracy, local update over plain dropping' 'percentage points' '' "$source" \
    "$(points resnet20-local.jsonl resnet20-dropping.jsonl)" real 'full: at least 0'
row 'ResNet-20, P = 4' 'test accuracy, local update over dense' 'percentage points' '' "$source" \
    "$(points resnet20-local.jsonl resnet20-dense.jsonl)" real none
four lstm words
perplexity() { of "lstm-$1.jsonl" summary valid_perplexity; }
row 'LSTM-PTB, P = 4' 'validation perplexity, local update over plain dropping' % '' "$source" \
    "$(calc "100 * ($(perplexity local) / $(perplexity dropping) - 1)")" real 'full: at most 0'
row 'LSTM-PTB, P = 4' 'validation perplexity, local update over dense' % '' "$source" \
    "$(calc "100 * ($(perplexity local) / $(perplexity dense) - 1)")" real none
# shellcheck disable=SC2046 # four words each
two_figures resnet20 'ResNet-20, 4 ranks' $(named resnet20)
# shellcheck disable=SC2046
two_figures lstm 'LSTM-PTB, 4 ranks' $(named lstm)
finish
