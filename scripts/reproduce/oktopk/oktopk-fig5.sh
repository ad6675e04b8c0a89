#!/bin/sh
# oktopk-fig5: the empirical xi of Ok-Topk's Assumption 1
# paper: Fig. 5, Section 5.1: how far Ok-Topk's update is from the true global top k, over the norm of the gradient (equation 5), density 1%
#     and 2%. Fig. 5a, VGG-16 on CIFAR-10, 16 GPUs, tau' = 32, until convergence: xi grows quickly in the first epochs, then is
#     stable; it is smaller with the higher density, above all where it is stable; it is below P, or not much larger, for all
#     models (5b, LSTM on AN4: oktopk-fig5b; 5c, BERT: oktopk-fig5c). LSTM on Penn Treebank is here besides
# runs: training with --algo oktopk --oktopk-thresholds paper, the first 512 steps dense, and --log-xi 65 (odd, to meet all steps of a period; xi is of the real update, thresholds and all): VGG-16, batch
#     16 on each of 16 ranks, 160 epochs of CIFAR-10; LSTM-PTB, 1500 features, 4 ranks, 60 epochs (quick: ResNet-20, 4 ranks,
#     4 epochs of 1600 made-up images; LSTM with 40 features, 4 ranks, 6 epochs of made-up words; every 3rd step)
# needs: CIFAR-10, Penn Treebank; 16 ranks of VGG-16: weeks on few cores, days on a GPU (--epochs E: the first E epochs of that schedule)
# takes: full: about 53 h of computing on two cores, by the rates of results/measured/costs; on a GPU not measured yet; quick: 23 s
# agrees: VGG-16: the largest xi is at most P; its mean over the third quarter of the run is larger than over the first epochs (a
#     thirtieth of the run), and that of the last quarter within a factor 1.5 of it (our reading of "stable"); both models: the
#     mean of the second half is not larger with 2% than with 1%. For LSTM-PTB the largest xi is shown, not compared
. scripts/reproduce/parts/training.sh

tau=$(published oktopk-models.csv tau_prime model=VGG-16)
every=$(pick 65 3)
xi_images() { oktopk_images "$1" 4 --algo oktopk --oktopk-thresholds paper --density "$2" --tau-prime "$tau" --log-xi "$every"; } # xi_images FILE DENSITY
xi_words() { words "$1" --algo oktopk --oktopk-thresholds paper --density "$2" --density-warmup none --tau-prime "$tau" --log-xi "$every"; }
. scripts/reproduce/parts/xi.sh

for density in 0.01 0.02; do
    xi_images "images-$density.jsonl" $density
    xi_words "words-$density.jsonl" $density
done
item="$(model_of "$model"), P = $ranks"
length "$images_epochs"
xi_rows oktopk-xi images 'Fig. 5a, Section 5.1' "$(pick 0.0334 0.1)"
xi_figure images.png images "Algorithm 1, $item, tau' = $tau"
against words
length "$(setting lstm epochs)"
for density in 0.01 0.02; do
    row "LSTM-PTB, P = $training_ranks, density $density" 'largest xi' '' '' 'Fig. 5: not its model' "$(largest_xi "words-$density.jsonl")" real none \
        'not a model of the paper'
done
row "LSTM-PTB, P = $training_ranks" 'mean xi of the second half, density 0.02 over 0.01' x '' 'Fig. 5: not its model; Section 5.1' \
    "$(ratio "$(mean_xi words-0.02.jsonl 0.5 1)" "$(mean_xi words-0.01.jsonl 0.5 1)")" real 'full: at most 1' 'not a model of the paper'
xi_figure words.png words "Algorithm 1, LSTM-PTB, P = $training_ranks, tau' = $tau" no
finish
