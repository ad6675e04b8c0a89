#!/bin/sh
# oktopk-fill-in: how dense TopkDSA's sum of sparse gradients becomes
# paper: Section 5.2: the output of TopkDSA (and of TopkA) is 13.2% dense on average for VGG-16 with local density 1% on 16
#     GPUs, 34.5% for LSTM (AN4) with 2% on 32
# runs: training with --algo topkdsa, VGG-16, batch 16 on each of 16 ranks, 160 epochs of CIFAR-10 (quick: ResNet-20, 4 ranks, 4
#     epochs of made-up images); the mean over the logged steps of the entries of the sum over n. The density that
#     independent choices would give, 1 - (1 - density)^P, stands beside it (kind model)
# needs: CIFAR-10; 16 ranks of VGG-16: weeks on few cores (--epochs E cuts it)
# takes: full: about 14 h of computing on two cores, by the images and words per second of results/measured/costs; on
#     a GPU not yet measured; quick: 10 s
# agrees: within 20% of the paper's density
. scripts/reproduce/training.sh

subject='topkdsa and topka'
density=0.01
paper=$(published oktopk-text.csv value model=VGG-16 subject="$subject")
source=$(published oktopk-text.csv source model=VGG-16 subject="$subject")
oktopk_images topkdsa.jsonl 4 --algo topkdsa --density $density
n=$(of topkdsa.jsonl header parameters)
mean=$(awk "$json_awk$newline"'/^{"type":"step"/ { c++; sum += json("global_nnz") } END { print sum / c }' "$out/topkdsa.jsonl")
item="$(model_of $model), P = $ranks, density $density"
row "$item" 'mean density of the sum' % "$paper" "$source" "$(calc "100 * $mean / $n")" real 'full: within 20%' \
    "$(pick '' "the paper's: VGG-16 on 16 ranks")"
row "$item" 'density of independent choices' % "$paper" "$source" "$(calc "100 * (1 - (1 - $density) ^ $ranks)")" model none
row 'LSTM (AN4), P = 32, density 0.02' 'mean density of the sum' % "$(published oktopk-text.csv value model=LSTM subject="$subject")" "$source" '' real none \
    'skipped: sparsetrain has no such model'
curve topkdsa.jsonl step global_nnz "$(calc "100 / $n")" | block 'TopkDSA, sum' >"$out/figure.dat"
curve topkdsa.jsonl step local_nnz_mean "$(calc "100 / $n")" | block 'one rank' >>"$out/figure.dat"
figure figure.png "$out/figure.dat" lines.gp with=lines title="Density of the sum, $item" xlabel=epoch ylabel='entries [% of n]' yrange='0:*'
finish
