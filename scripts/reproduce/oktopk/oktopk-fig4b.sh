#!/bin/sh
# oktopk-fig4b: distribution of a speech recogniser's gradient, with the exact, the reused and the Gaussian threshold
# paper: Fig. 4b: LSTM on AN4, density 2%, tau' = 32, more than 25 iterations after the threshold was found: Ok-Topk's is still very
#     close to the accurate one; a normal distribution of the same mean and deviation has a longer tail, so that Gaussiank
#     predicts a larger threshold and selects far too little
# runs: training with --algo oktopk --oktopk-thresholds paper, density 0.02, tau' = 32, the first 128 steps dense, to step 1180, 28 steps after
#     an exact threshold: two layers of 256 on AN4, 4 ranks; on a GPU the paper's model, 32 ranks (quick: a smaller one, made-up
#     speech, step 17; scripts/reproduce/parts/speech.sh has all of it); then one step with --audit and --record: residual and gradient of rank 0
#     give the distribution, the exact threshold and that of Gaussiank
# needs: AN4; for the paper's model a GPU
# takes: full: about 24 min on two cores, by 13 utterances/s; on a GPU not measured yet; quick: 4 s
# agrees: reused threshold within 10% of the exact one (means over ranks; our reading of "very close"); Gaussian threshold above
#     the exact one, and fewer than k entries beyond it. In direction: the reused threshold within 50%
. scripts/reproduce/parts/speech.sh

steps=$(pick 1180 17)
[ -n "$quick" ] || run_length="$steps steps"
length_options="--steps $steps" # whose rates do not depend on the length
speech before.jsonl --algo oktopk --oktopk-thresholds paper --density "$density" --tau-prime "$tau" --eval-every never
since=$(((steps - speech_dense_steps) % tau)) place='Fig. 4b' threshold_claim=oktopk-lstm-threshold
. scripts/reproduce/parts/threshold.sh
finish
