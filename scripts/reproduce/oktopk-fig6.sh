#!/bin/sh
# oktopk-fig6: how many values Ok-Topk and Gaussiank select during training
# paper: Fig. 6a: VGG-16 on CIFAR-10, 16 GPUs, density 1%, tau' = 32, 160 epochs: Ok-Topk's local and global selections stay
#     close to k (mean deviation below 11% for all models), too many only in the first epochs; Gaussiank selects too many
#     in the first epochs and then an order of magnitude too few (LSTM and BERT, 6b and 6c: no such models here)
# runs: training with --algo oktopk and with --algo gaussiank, VGG-16, batch 16 on each of 16 ranks, 160 epochs of CIFAR-10
#     (quick: ResNet-20, 4 ranks, 6 epochs of 1600 made-up images)
# needs: CIFAR-10; 16 ranks of VGG-16: weeks on few cores, days on a GPU (--epochs E cuts it)
# takes: full: about 29 h of computing on two cores, by the images and words per second of results/measured/costs; on
#     a GPU not yet measured; quick: 30 s
# agrees: mean of |selected - k| / k over the logged steps at most the paper's 11%, local (what the selector returns) and
#     global; Gaussiank's mean count is shown, not compared: the program adjusts its threshold, as the paper does
#     elsewhere (Section 5.4), and returns at most 8 k
. scripts/reproduce/training.sh

density=0.01
tau=$(published oktopk-models.csv tau_prime model=VGG-16)
oktopk_images gaussiank.jsonl 6 --algo gaussiank --density $density
oktopk_images oktopk.jsonl 6 --algo oktopk --density $density --tau-prime "$tau"

# deviation FILE KEY: mean of |count - k| / k [%];  mean_count FILE KEY: mean of count / k
over_steps() {
    awk -v key="$2" -v what="$3" "$json_awk$newline"'
        /^{"type":"step"/ { c = json(key) / json("k"); n++; sum += what == "deviation" ? (c > 1 ? c - 1 : 1 - c) : c }
        END { printf "%.6g\n", (what == "deviation" ? 100 : 1) * sum / n }' "$out/$1"
}
paper=$(published oktopk-text.csv value subject=oktopk unit=% model=all)
source=$(published oktopk-text.csv source subject=oktopk unit=% model=all)
item="$(model_of $model), P = $ranks"
row "$item" 'Ok-Topk, local: mean deviation from k (paper: below)' % "$paper" "$source" "$(over_steps oktopk.jsonl selected_mean deviation)" real \
    'full: at most'
row "$item" 'Ok-Topk, global: mean deviation from k (paper: below)' % "$paper" "$source" "$(over_steps oktopk.jsonl global_nnz deviation)" real \
    'full: at most'
row "$item" 'Gaussiank, local: mean count over k' '' '' 'Fig. 6a' "$(over_steps gaussiank.jsonl selected_mean mean)" real none \
    'its threshold is adjusted here'
row 'LSTM (AN4), BERT' 'numbers selected' '' '' 'Fig. 6b, 6c' '' real none 'skipped: sparsetrain has no such model'
{
    curve oktopk.jsonl step k | block 'accurate: k'
    curve gaussiank.jsonl step selected_mean | block 'Gaussiank'
    curve oktopk.jsonl step selected_mean | block 'Ok-Topk (local)'
    curve oktopk.jsonl step global_nnz | block 'Ok-Topk (global)'
} >"$out/figure.dat"
figure figure.png "$out/figure.dat" lines.gp with=lines title="Selected values, $item, density $density" xlabel=epoch \
    ylabel='number of selected values' yrange='0:*'
finish
