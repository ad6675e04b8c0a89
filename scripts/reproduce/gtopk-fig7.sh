#!/bin/sh
# gtopk-fig7: convergence of the LSTM on Penn Treebank with gTop-k on 4 ranks
# paper: Fig. 7: with density 0.005 after its warm-up LSTM-PTB converges almost as with dense gradients
# runs: training with --algo gtopk and dense on 4 ranks, 40 epochs of Penn Treebank, 1500 features, 20 streams a rank as in
#     the authors' code (quick: 6 epochs of 40000 words of a made-up language, 40 features). In full also the runs kept
#     in results/measured/lstm200-ptb-p4 (200 features)
# needs: Penn Treebank; days on CPUs, hours on a GPU (--epochs E cuts it)
# takes: full: about 24 h of computing on two cores, by the images and words per second of results/measured/costs; on
#     a GPU not yet measured; quick: 6 s
# agrees: validation perplexity at the end at most 5% above dense (our reading of "almost")
. scripts/reproduce/training.sh

words dense.jsonl --algo dense
words gtopk.jsonl --algo gtopk --density "$(setting lstm density_after_warmup)"
# above GTOPK DENSE: how far the first perplexity lies above the second [%]
above() { calc "100 * ($1 / $2 - 1)"; }
row 'LSTM-PTB, P = 4' 'validation perplexity, gtopk over dense' % '' 'Fig. 7' \
    "$(above "$(of gtopk.jsonl summary valid_perplexity)" "$(of dense.jsonl summary valid_perplexity)")" real 'full: at most 5'
for algo in dense gtopk; do
    learns 'LSTM-PTB, P = 4' 'Fig. 7' $algo.jsonl $algo
done
kept=results/measured/lstm200-ptb-p4
if [ -z "$quick" ] && [ -f $kept/gtopk.jsonl ] && [ -f $kept/dense.jsonl ]; then
    row 'LSTM with 200 features, P = 4' 'validation perplexity, gtopk over dense' % '' 'Fig. 7' \
        "$(above "$(in_log $kept/gtopk.jsonl summary valid_perplexity)" "$(in_log $kept/dense.jsonl summary valid_perplexity)")" real 'at most 5' "$kept"
fi
two_figures lstm 'LSTM-PTB, 4 ranks' dense.jsonl=dense gtopk.jsonl='gtopk, density 0.005'
finish
