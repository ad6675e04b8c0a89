#!/bin/sh
# gtopk-fig7: convergence of the LSTM on Penn Treebank with gTop-k on 4 ranks
# paper: Fig. 7: with density 0.005 after its warm-up LSTM-PTB converges almost as with dense gradients
# runs: training with dense, with --algo gtopk --gtopk-residual paper, which is the published algorithm, and with gtopk as it is
#     here, whose residuals lose nothing; 4 ranks, 40 epochs of Penn Treebank, 1500 features, 20 streams a rank as in
#     the authors' code (quick: 6 epochs of 40000 words of a made-up language, 40 features)
# needs: Penn Treebank; days on CPUs, hours on a GPU (--epochs E: the first E epochs of that schedule; --hidden H: a smaller model)
# takes: full: about 24 h of computing on two cores, by the rates of results/measured/costs; on a GPU not measured yet; quick: 6 s
# agrees: validation perplexity at the end at most 5% above dense (our reading of "almost"); the published residual decides on
#     the claim. The lowest perplexities are shown beside it: the rate is constant, and in the end the training text may be learnt by heart
. scripts/reproduce/parts/training.sh

seeds=1
words dense.jsonl --algo dense
gtopk_runs words gtopk.jsonl --density "$(setting lstm density_after_warmup)"
gain_key=valid_perplexity
against words
residual_rows gtopk-lstm "$lstm_name, P = 4" 'validation perplexity, gtopk over dense' % 'Fig. 7' 'full: at most 5' "$above" gtopk.jsonl dense.jsonl
lowest_row "$lstm_name, P = 4, published residual" 'Fig. 7' gtopk-paper.jsonl dense.jsonl
lowest_row "$lstm_name, P = 4, our residual" 'Fig. 7' gtopk.jsonl dense.jsonl
two_figures lstm "$lstm_name, P = 4" 'Fig. 7' "$lstm_name, 4 ranks, density 0.005" dense.jsonl=dense gtopk-paper.jsonl='gtopk, published residual' gtopk.jsonl='gtopk, our residual'
finish
