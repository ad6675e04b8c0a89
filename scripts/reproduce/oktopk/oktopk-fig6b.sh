#!/bin/sh
# oktopk-fig6b: how many values Ok-Topk and Gaussiank select while a recogniser of speech trains
# paper: Fig. 6b, Section 5.2: LSTM on AN4, 32 GPUs, density 2%, tau' = 32, 160 epochs: Ok-Topk's local and global selections stay close to
#     k (mean deviation below 11% for all models), too many only in the first epochs; Gaussiank selects too many in the first
#     epochs and then an order of magnitude too few
# runs: training with --algo oktopk --oktopk-thresholds paper, which is Algorithm 1 to the letter; code-lstm, thresholds moved as in the
#     authors' code, which collects what the figure shows, and --audit 5, which counts what reaches Gaussiank's threshold beside it, as that
#     code does (parts/selected.sh); with oktopk as it is here, whose thresholds are led by the counts; and with --algo gaussiank
#     --gaussian-adjust off; the first 128 steps dense: two layers of 256 on AN4, 4 ranks, 40 epochs; on a GPU the paper's model, 32 ranks, 160 epochs (quick: a smaller
#     one, made-up speech, 6 epochs; scripts/reproduce/parts/speech.sh has all of it)
# needs: AN4; for the paper's model a GPU (--epochs E: the first E epochs of that schedule)
# takes: full: about 3.5 h on two cores, by 13 utterances/s; on a GPU not measured yet; quick: 7 s
# agrees: mean of |count - k| / k over the logged steps that are not dense at most the paper's 11%, local (what a rank sent) and
#     global, of Algorithm 1 and of the authors' code; what our own rule counts is shown alone. Gaussiank, training by itself and beside that code: its mean count over the first tenth of the run (half of which is
#     dense, and left out) at least k, over the second half at most 0.32 k (an order of magnitude, as a factor of the square root of 10). In
#     direction: a mean deviation of at most 50%
. scripts/reproduce/parts/speech.sh
. scripts/reproduce/parts/selected.sh

algorithm_1 paper.jsonl $density
authors_code code.jsonl $density
led_by_counts oktopk.jsonl
speech gaussiank.jsonl --algo gaussiank --gaussian-adjust off --density "$density"
look_up oktopk-text.csv value subject=oktopk unit=% model=all
deviation_rows local oktopk-lstm-count "$paper" "$source"
deviation_rows global oktopk-lstm-count "$paper" "$source"
gaussian_rows oktopk-lstm-gaussian-count 'Fig. 6b, Section 5.2' "$(pick 0.1 0.5)"
count_figure "Values sent and kept, $item, density $density" "the paper's axis: 0 to 160 epochs; dense steps are left out"
finish
