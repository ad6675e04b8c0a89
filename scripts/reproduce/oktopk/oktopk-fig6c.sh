#!/bin/sh
# oktopk-fig6c: how many values Ok-Topk and Gaussiank select while a BERT trains
# paper: Fig. 6c, Section 5.2: BERT on 32 GPUs, density 1%, tau' = 128, 200,000 iterations: Ok-Topk's local selections deviate from k by 1.4% in
#     the mean, the global ones by less than 11%; Gaussiank (said of all models) selects too many in the first epochs and then an order
#     of magnitude too few
# runs: training with --algo oktopk --oktopk-thresholds paper, which is Algorithm 1 to the letter; code-bert, thresholds moved as in the
#     authors' code, which collects what the figure shows, and --audit 5, which counts what reaches Gaussiank's threshold beside it, as that
#     code does for the other models (parts/selected.sh); with oktopk as it is here, whose thresholds are led by the counts; and with
#     --algo gaussiank --gaussian-adjust off: BERT-tiny on WikiText-2, 4 ranks, 2,000 steps; on a GPU BERT-base (quick: a smaller one, made-up pairs, 40 steps; scripts/reproduce/parts/bert.sh has all of it)
# needs: WikiText-2 and BERT's vocabulary; for the paper's model a GPU
# takes: full: 31 min on two cores beside other work; on a GPU not measured yet; quick: 2 s
# agrees: mean of |count - k| / k over the logged steps: local (what a rank sent) at most the paper's 1.4%, global at most its 11%, of
#     Algorithm 1 and of the authors' code; what our own rule counts is shown alone. Gaussiank, training by itself and beside that code: its mean count over the first twentieth of the run at least k (our reading:
#     the paper's run of BERT is shorter than an epoch), over the second half at most 0.32 k (an order of magnitude, as a factor of the
#     square root of 10). In direction: a mean deviation of at most 50%
. scripts/reproduce/parts/bert.sh
. scripts/reproduce/parts/selected.sh

algorithm_1 paper.jsonl
authors_code code.jsonl
led_by_counts oktopk.jsonl
bert gaussiank.jsonl "$bert_steps" --algo gaussiank --gaussian-adjust off
look_up oktopk-text.csv value model=BERT subject=oktopk unit=% quantity='mean deviation of the local selected count from k'
deviation_rows local oktopk-bert-count "$paper" "$source" 'on 32 GPUs'
look_up oktopk-text.csv value subject=oktopk unit=% model=all
deviation_rows global oktopk-bert-count "$paper" "$source"
gaussian_rows oktopk-bert-gaussian-count 'Fig. 6c, Section 5.2' 0.05
count_figure "Values sent and kept, $item, density $density" "the paper's axis: 0 to 200000 iterations"
finish
