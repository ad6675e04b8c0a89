#!/bin/sh
# oktopk-fig4c: distribution of a BERT's gradient, with the exact, the reused and the Gaussian threshold
# paper: Fig. 4c: BERT on Wikipedia, density 1%, tau' = 128, more than 25 iterations after the threshold was found: Ok-Topk's is still very
#     close to the accurate one; a normal distribution of the same mean and deviation has a longer tail, so that Gaussiank
#     predicts a larger threshold and selects far too little
# runs: training with --algo oktopk --oktopk-thresholds paper, density 0.01, tau' = 128, constant rate, to step 1052, 28 steps after an exact
#     threshold, of BERT-tiny on WikiText-2, 4 ranks; on a GPU BERT-base (quick: a smaller one, made-up pairs, step 156; scripts/reproduce/parts/bert.sh
#     has all of it); then one step with --audit and --record: residual and gradient of rank 0 give the distribution, the exact
#     threshold and that of Gaussiank
# needs: WikiText-2 and BERT's vocabulary; for the paper's model a GPU
# takes: full: 4 min on two cores beside other work; on a GPU not measured yet; quick: 2 s
# agrees: reused threshold within 10% of the exact one (means over ranks; our reading of "very close"); Gaussian threshold above
#     the exact one, and fewer than k entries beyond it. In direction: the reused threshold within 50%
. scripts/reproduce/parts/bert.sh

steps=$(pick 1052 156)
[ -n "$quick" ] || run_length="$steps steps"
bert before.jsonl "$steps" --algo oktopk --oktopk-thresholds paper --tau-prime "$tau" --lr-schedule constant
since=$((steps % tau)) place='Fig. 4c' threshold_claim=oktopk-bert-threshold
. scripts/reproduce/parts/threshold.sh
finish
