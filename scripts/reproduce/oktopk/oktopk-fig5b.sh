#!/bin/sh
# oktopk-fig5b: the empirical xi of Ok-Topk's Assumption 1 on a recogniser of speech
# paper: Fig. 5b, Section 5.1: how far Ok-Topk's update is from the true global top k, over the norm of the gradient (equation 5), LSTM on
#     AN4, 32 GPUs, tau' = 32, 160 epochs: xi grows gradually at first and tends to plateau in the second half; it is smaller with
#     density 2% than with 1%; it is below P for all models
# runs: training with --algo oktopk --oktopk-thresholds paper, which is Algorithm 1 to the letter, and code-lstm, thresholds moved as in the
#     authors' code, which collects what the figure shows (parts/selected.sh); densities 0.01 and 0.02, the first 128 steps dense, and --log-xi
#     65 (odd, to meet all steps of a period; xi is of the real update, thresholds and all): two layers of 256 on AN4, 4 ranks, 40 epochs; on a
#     GPU the paper's model, 32 ranks, 160 epochs (quick: a smaller one, made-up speech, 6 epochs, every 3rd step;
#     scripts/reproduce/parts/speech.sh has all of it)
# needs: AN4; for the paper's model a GPU (--epochs E: the first E epochs of that schedule)
# takes: full: about 3.5 h on two cores, by 13 utterances/s; on a GPU not measured yet; quick: 6 s
# agrees: the largest xi is at most P; its mean over the third quarter of the run is larger than over the first tenth, and that of the last
#     quarter within a factor 1.5 of it (our reading of "plateau"); the mean of the second half is not larger with 2% than with 1%
. scripts/reproduce/parts/speech.sh
. scripts/reproduce/parts/xi.sh

for density in 0.02 0.01; do
    algorithm_1 paper-$density.jsonl $density
    authors_code code-$density.jsonl $density
done
xi_rows oktopk-lstm-xi paper 'Fig. 5b, Section 5.1' "$(pick 0.1 0.5)" 'Algorithm 1'
xi_rows oktopk-lstm-xi-code code 'Fig. 5b, Section 5.1' "$(pick 0.1 0.5)" "the authors' code"
xi_figure xi-code.png code "The authors' code, $item, tau' = $tau"
xi_figure xi.png paper "Algorithm 1, $item, tau' = $tau"
finish
