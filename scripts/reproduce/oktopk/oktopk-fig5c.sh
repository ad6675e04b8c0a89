#!/bin/sh
# oktopk-fig5c: the empirical xi of Ok-Topk's Assumption 1 on a BERT
# paper: Fig. 5c, Section 5.1: how far Ok-Topk's update is from the true global top k, over the norm of the gradient (equation 5), BERT on
#     32 GPUs, tau' = 128, the first 10,000 iterations: xi grows quickly at first, then is stable; it is smaller with density 2% than
#     with 1%, above all where it is stable; it is below P for all models
# runs: training with --algo oktopk --oktopk-thresholds paper, densities 0.01 and 0.02, tau' = 128, and --log-xi 65 (odd, to meet all steps
#     of a period; xi is of the real update, thresholds and all) of BERT-tiny on WikiText-2, 4 ranks, 2,000 steps; on a GPU BERT-base
#     (quick: a smaller one, made-up pairs, 40 steps, every 3rd; scripts/reproduce/parts/bert.sh has all of it)
# needs: WikiText-2 and BERT's vocabulary; for the paper's model a GPU
# takes: full: 16 min on two cores beside other work; on a GPU not measured yet; quick: 2 s
# agrees: the largest xi is at most P; its mean over the third quarter of the run is larger than over the first twentieth, and that of the last
#     quarter within a factor 1.5 of it (our reading of "stable"); the mean of the second half is not larger with 2% than with 1%
. scripts/reproduce/parts/bert.sh
. scripts/reproduce/parts/xi.sh

for density in 0.02 0.01; do algorithm_1 xi-$density.jsonl; done
xi_rows oktopk-bert-xi xi 'Fig. 5c, Section 5.1' 0.05
xi_figure xi.png xi "Algorithm 1, $item, tau' = $tau"
finish
