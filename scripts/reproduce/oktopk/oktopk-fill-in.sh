#!/bin/sh
# oktopk-fill-in: how dense TopkDSA's sum of sparse gradients becomes
# paper: Section 5.2: the output of TopkDSA (and of TopkA) is 13.2% dense on average for VGG-16 with local density 1% on 16
#     GPUs (34.5% for LSTM on AN4: oktopk-fill-in-an4)
# runs: training with --algo topkdsa, VGG-16, batch 16 on each of 16 ranks, 160 epochs of CIFAR-10, the first 512 steps dense (quick:
#     ResNet-20, 4 ranks, 4 epochs of made-up images); the mean over the logged steps that are not dense of the entries of the sum over n. The density that
#     independent choices would give, 1 - (1 - density)^P, stands beside it (kind model)
# needs: CIFAR-10; 16 ranks of VGG-16: weeks on few cores (--epochs E: the first E epochs of that schedule)
# takes: full: about 14 h of computing on two cores, by the rates of results/measured/costs; on a GPU not measured yet; quick: 10 s
# agrees: within 5% of the paper's density; independent choices of the ranks, at 14.9%, are not
. scripts/reproduce/parts/training.sh

subject='topkdsa and topka'
density=0.01
look_up oktopk-text.csv value model=VGG-16 subject="$subject"
oktopk_images topkdsa.jsonl 4 --algo topkdsa --density $density
item="$(model_of $model), P = $ranks, density $density"
. scripts/reproduce/parts/fill-in.sh
fill_in oktopk-fill-in
finish
