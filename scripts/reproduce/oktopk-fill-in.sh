#!/bin/sh
# oktopk-fill-in: how dense TopkDSA's sum of sparse gradients becomes
# paper: Section 5.2: the output of TopkDSA (and of TopkA) is 13.2% dense on average for VGG-16 with local density 1% on 16
#     GPUs, 34.5% for LSTM (AN4) with 2% on 32
# runs: training with --algo topkdsa, VGG-16, batch 16 on each of 16 ranks, 160 epochs of CIFAR-10, the first 512 steps dense (quick:
#     ResNet-20, 4 ranks, 4 epochs of made-up images); the mean over the logged steps that are not dense of the entries of the sum over n. The density that
#     independent choices would give, 1 - (1 - density)^P, stands beside it (kind model)
# needs: CIFAR-10; 16 ranks of VGG-16: weeks on few cores (--epochs E: the first E epochs of that schedule)
# takes: full: about 14 h of computing on two cores, by the rates of results/measured/costs; on a GPU not measured yet; quick: 10 s
# agrees: within 5% of the paper's density; independent choices of the ranks, at 14.9%, are not
. scripts/reproduce/training.sh

subject='topkdsa and topka'
density=0.01
look_up oktopk-text.csv value model=VGG-16 subject="$subject"
oktopk_images topkdsa.jsonl 4 --algo topkdsa --density $density
n=$(of topkdsa.jsonl header parameters)
mean=$(values topkdsa.jsonl global_nnz --type step --where 'density<1' | awk '{ sum += $1 } END { if (NR) print sum / NR }')
item="$(model_of $model), P = $ranks, density $density"
claim oktopk-fill-in
against measured
row "$item" 'mean density of the sum' % "$paper" "$source" "$([ -z "$mean" ] || calc "100 * $mean / $n")" real 'full: within 5%' \
    "$(pick '' "the paper's: VGG-16 on 16 ranks")"
claim
row "$item" 'density of independent choices' % "$paper" "$source" "$(calc "100 * (1 - (1 - $density) ^ $ranks)")" model none
claim oktopk-fill-in
row 'LSTM (AN4), P = 32, density 0.02' 'mean density of the sum' % "$(published oktopk-text.csv value model=LSTM subject="$subject")" "$source" '' real none \
    'not run yet: --model speech on 32 ranks'
sparse_curve() { curve topkdsa.jsonl step "$1" "$(calc "100 / $n")" 'density!=1'; }
{
    [ -n "$quick" ] || strip "$(of topkdsa.jsonl step epoch)" "$(calc "0.95 * $paper")" "$(calc "1.05 * $paper")" | band "paper's mean of 160 epochs, +-5%"
    sparse_curve global_nnz | block 'TopkDSA, sum'
    sparse_curve local_nnz_mean | block 'one rank'
} >"$out/figure.dat"
figure figure.png "$out/figure.dat" lines.gp with=lines title="Density of the sum, $item" xlabel=epoch ylabel='entries [% of n]' yrange='0:*'
finish
