#!/bin/sh
# oktopk-fig6: how many values Ok-Topk and Gaussiank select during training
# paper: Fig. 6a: VGG-16 on CIFAR-10, 16 GPUs, density 1%, tau' = 32, 160 epochs: Ok-Topk's local and global selections stay
#     close to k (mean deviation below 11% for all models), too many only in the first epochs; Gaussiank selects too many
#     in the first epochs and then an order of magnitude too few (6b, LSTM on AN4: oktopk-fig6b; 6c, BERT: oktopk-fig6c)
# runs: training with --algo oktopk --oktopk-thresholds paper, which is Algorithm 1 to the letter; code-vgg, thresholds moved as in the
#     authors' code, which collects what the figure shows, and --audit 5, which counts what reaches Gaussiank's threshold beside it, as that
#     code does (parts/selected.sh); with oktopk as it is here, whose thresholds are led by the counts; and with --algo gaussiank
#     --gaussian-adjust off: VGG-16, batch 16 on each of 16 ranks, 160 epochs of CIFAR-10, the first 512 steps dense (quick: ResNet-20, 4
#     ranks, 6 epochs of 1600 made-up images)
# needs: CIFAR-10; 16 ranks of VGG-16: weeks on few cores, days on a GPU (--epochs E: the first E epochs of that schedule, of which
#     2.6 are dense)
# takes: full: about 57 h of computing on two cores, by the rates of results/measured/costs; on a GPU not measured yet; quick: 45 s
# agrees: mean of |count - k| / k over the logged steps that are not dense at most the paper's 11%, local (what a rank sent) and
#     global, of Algorithm 1 and of the authors' code; what our own rule counts is shown alone. Gaussiank, training by itself and beside
#     that code: its mean count over the first twentieth of the run at least k, over the second half at most 0.32 k (an order of
#     magnitude, as a factor of the square root of 10). In direction: a mean deviation of at most 50%
. scripts/reproduce/parts/training.sh

density=0.01
tau=$(published oktopk-models.csv tau_prime model=VGG-16)
oktopk_images gaussiank.jsonl 6 --algo gaussiank --gaussian-adjust off --density $density
oktopk_images paper.jsonl 6 --algo oktopk --oktopk-thresholds paper --density $density --tau-prime "$tau"
oktopk_images code.jsonl 6 --algo oktopk --oktopk-thresholds code-vgg --density $density --tau-prime "$tau" --audit "$(pick 5 1)"
oktopk_images oktopk.jsonl 6 --algo oktopk --density $density --tau-prime "$tau"

look_up oktopk-text.csv value subject=oktopk unit=% model=all
item="$(model_of $model), P = $ranks"
. scripts/reproduce/parts/selected.sh
deviation_rows local oktopk-local-count "$paper" "$source"
deviation_rows global oktopk-global-count "$paper" "$source"
gaussian_rows oktopk-gaussian-count 'Fig. 6a' 0.05
count_figure "Values sent and kept, $item, density $density" "the paper's axes: 0 to 160 epochs, 0 to 300000 values; dense steps are left out"
finish
