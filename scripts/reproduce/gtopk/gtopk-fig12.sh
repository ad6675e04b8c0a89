#!/bin/sh
# gtopk-fig12: convergence of VGG-16 and ResNet-20 at densities from 0.0005 to 0.005
# paper: Fig. 12, Section V-A: on 4 workers even a density of 0.0005 has no big impact on the convergence of both models
# runs: training with --algo gtopk --gtopk-residual paper, which is the published algorithm, and with gtopk as it is here, whose residuals
#     lose nothing, at densities 0.0005, 0.001 and 0.005 on 4 ranks, 140 epochs of CIFAR-10, batch 32 a rank, 128 in all, as in the authors'
#     code (Table III prints 128 under b, the batch of a worker); those with 0.001 are the runs of gtopk-fig5, the others have convolutions
#     by Winograd's algorithm (on CPUs where they have AVX-512) (quick: 6 epochs of made-up images)
# needs: CIFAR-10; days on CPUs, hours on a GPU (--epochs E: the first E epochs of that schedule)
# takes: full: on two cores 8 to 18 h of ResNet-20, by 1400 to 600 images/s in f32, and days of VGG-16, by 90 to 150; on a GPU not measured yet; quick: 2 min
# agrees: test accuracy at the end with density 0.0005 at most 2 percentage points below that with 0.005 (our reading of
#     "no big impact"); the published residual decides on the claim
. scripts/reproduce/parts/training.sh

look_up gtopk-text.csv value subject='CIFAR-10 convergence'
lowest=$paper
seeds=1
against words
for model in resnet20 vgg16; do
    item="$(model_of $model), P = 4"
    set --
    for density in "$lowest" 0.001 0.005; do
        how=$quicker
        [ "$density" != 0.001 ] || how='' # the runs of gtopk-fig5
        # shellcheck disable=SC2086 # words or none
        gtopk_runs cifar "$model-$density.jsonl" $model $how --density "$density"
        set -- "$@" "$model-$density-paper.jsonl=density $density" "$model-$density.jsonl=density $density, our residual"
    done
    residual_rows gtopk-density "$item" "test accuracy, density $lowest over 0.005" 'percentage points' "$source" 'full: at least -2' "$points" \
        "$model-$lowest.jsonl" $model-0.005.jsonl $model-0.005-paper.jsonl
    two_figures $model "$item" "$source" "$item, gtopk" "$@"
done
finish
