#!/bin/sh
# gtopk-fig1: convergence of naive gTop-k on ResNet-20
# paper: Fig. 1: ResNet-20 on CIFAR-10 with 4 workers, of whose sum only the k = 0.001 m largest entries update the model,
#     converges as with dense gradients
# runs: training with --algo gtopk-naive and dense on 4 ranks, 140 epochs of CIFAR-10, batch 32 a rank, 128 in all, as in the
#     authors' code (Table III prints 128 under b, the batch of a worker) (quick: 6 epochs of 1600 made-up images, batch 16)
# needs: CIFAR-10; hours on CPUs (--epochs E: the first E epochs of that schedule)
# takes: full: 3 to 7 h on two cores, by 1400 to 600 images/s; on a GPU not measured yet; quick: 24 s
# agrees: test accuracy at the end at most 1 percentage point below dense (our reading of the curves' closeness)
. scripts/reproduce/parts/training.sh

seeds=1
cifar dense.jsonl resnet20 --algo dense
cifar gtopk-naive.jsonl resnet20 --algo gtopk-naive --density 0.001
claim gtopk-converges
against words
gain_row 'ResNet-20, P = 4' 'test accuracy, gtopk-naive over dense' 'percentage points' '' 'Fig. 1' 'full: at least -1' "$points" gtopk-naive.jsonl dense.jsonl
two_figures resnet20 'ResNet-20, P = 4' 'Fig. 1' 'ResNet-20, 4 ranks' dense.jsonl=dense gtopk-naive.jsonl='gtopk-naive, density 0.001'
finish
