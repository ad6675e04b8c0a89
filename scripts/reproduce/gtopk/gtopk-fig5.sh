#!/bin/sh
# gtopk-fig5: convergence of VGG-16 and ResNet-20 on CIFAR-10 with gTop-k on 4 ranks
# paper: Fig. 5: with density 0.001 after its warm-up ResNet-20 converges almost as with dense gradients, VGG-16 slightly
#     better
# runs: training with dense, with --algo gtopk --gtopk-residual paper, which is the published algorithm, and with gtopk as it is
#     here, whose residuals lose nothing; 4 ranks, 140 epochs of CIFAR-10, batch 32 a rank, 128 in all, as in the authors' code
#     (Table III prints 128 under b, the batch of a worker), each with 3 seeds (--seeds N) (quick: 6 epochs of made-up images,
#     one seed)
# needs: CIFAR-10; days on CPUs, hours on a GPU (--epochs E: the first E epochs of that schedule)
# takes: full: on two cores 13 to 30 h of ResNet-20, by 1400 to 600 images/s, and days of VGG-16, by 90 to 150; on a GPU not measured yet; quick: 78 s
# agrees: test accuracy at the end, mean over the seeds: ResNet-20 at most 1 percentage point below dense (our reading of
#     "almost"), VGG-16 not below dense, which one seed cannot tell; the published residual decides on the claim
. scripts/reproduce/parts/training.sh

against words
for model in resnet20 vgg16; do
    over_seeds cifar $model-dense.jsonl $model --algo dense
    gtopk_runs cifar $model-gtopk.jsonl $model --density "$(setting $model density_after_warmup)"
    case $model in resnet20) least=-1 ;; *) least=0 ;; esac
    item="$(model_of $model), P = 4"
    residual_rows gtopk-$model "$item" 'test accuracy, gtopk over dense' 'percentage points' 'Fig. 5' "full: at least $least" "$points" \
        $model-gtopk.jsonl $model-dense.jsonl
    two_figures $model "$item" 'Fig. 5' "$item" $model-dense.jsonl=dense $model-gtopk-paper.jsonl='gtopk, published residual' $model-gtopk.jsonl='gtopk, our residual'
done
finish
