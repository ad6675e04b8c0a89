#!/bin/sh
# oktopk-fill-in-an4: how dense TopkDSA's sum of sparse gradients of a speech recogniser becomes
# paper: Section 5.2: the output of TopkDSA (and of TopkA) is 34.5% dense on average for LSTM (AN4) with local density 2% on 32 GPUs
# runs: training with --algo topkdsa, density 0.02, the first 128 steps dense, on 32 ranks, batch 2 each, 160 epochs of AN4: two layers of 256,
#     on a GPU the paper's model (quick: a smaller one, 4 ranks, 6 epochs of made-up speech; scripts/reproduce/parts/speech.sh has all of
#     it); the mean over the logged steps that are not dense of the entries of the sum over n. The density that independent
#     choices would give, 1 - (1 - density)^P, stands beside it (kind model)
# needs: AN4; for the paper's model a GPU; 32 ranks (--epochs E: the first E epochs of that schedule, of which 8.5 are dense)
# takes: full: 3.3 to 5.3 h on two cores, by 13 to 8 utterances/s; on a GPU not measured yet; quick: 4 s
# agrees: within 5% of the paper's density; independent choices of the ranks, at 47.6%, are not
# shellcheck disable=SC2034 # for speech.sh
speech_batches=paper
. scripts/reproduce/parts/speech.sh

look_up oktopk-text.csv value model=LSTM subject='topkdsa and topka'
speech topkdsa.jsonl --algo topkdsa --density "$density"
item="$item, density $density"
. scripts/reproduce/parts/fill-in.sh
fill_in oktopk-fill-in-an4 "$(case $speech_name in LSTM-AN4) ;; *) echo "the paper's model has five layers of 800" ;; esac)"
finish
