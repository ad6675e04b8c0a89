#!/bin/sh
# gtopk-fig5: convergence of VGG-16 and ResNet-20 on CIFAR-10 with gTop-k on 4 ranks
# paper: Fig. 5: with density 0.001 after its warm-up ResNet-20 converges almost as with dense gradients, VGG-16 slightly
#     better
# runs: training with --algo gtopk and dense on 4 ranks, 140 epochs of CIFAR-10, batch 128 a rank (quick: 6 epochs of
#     made-up images). In full also the runs kept in results/measured/resnet20-cifar10-p4 (batch 32, 10 epochs)
# needs: CIFAR-10; days on CPUs, hours on a GPU (--epochs E cuts it)
# takes: full: about 29 h of computing on two cores, by the images and words per second of results/measured/costs; on
#     a GPU not yet measured; quick: 78 s
# agrees: test accuracy at the end: ResNet-20 at most 1 percentage point below dense (our reading of "almost"), VGG-16 not
#     below dense
. scripts/reproduce/training.sh

for model in resnet20 vgg16; do
    cifar $model-dense.jsonl $model --algo dense
    cifar $model-gtopk.jsonl $model --algo gtopk --density "$(setting $model density_after_warmup)"
    case $model in resnet20) least=-1 ;; *) least=0 ;; esac
    item="$(model_of $model), P = 4"
    row "$item" 'test accuracy, gtopk over dense' 'percentage points' '' 'Fig. 5' "$(points $model-gtopk.jsonl $model-dense.jsonl)" real \
        "full: at least $least"
    for algo in dense gtopk; do
        learns "$item" 'Fig. 5' $model-$algo.jsonl $algo
    done
    two_figures $model "$item" $model-dense.jsonl=dense $model-gtopk.jsonl='gtopk, density 0.001'
done
kept=results/measured/resnet20-cifar10-p4
if [ -z "$quick" ] && [ -f $kept/gtopk.jsonl ] && [ -f $kept/dense.jsonl ]; then
    gtopk=$(in_log $kept/gtopk.jsonl summary test_accuracy) dense=$(in_log $kept/dense.jsonl summary test_accuracy)
    row 'ResNet-20, P = 4, 10 epochs' 'test accuracy, gtopk over dense' 'percentage points' '' 'Fig. 5' "$(calc "100 * ($gtopk - $dense)")" real \
        'at least -1' "a fourteenth of the paper's length; $kept"
fi
finish
