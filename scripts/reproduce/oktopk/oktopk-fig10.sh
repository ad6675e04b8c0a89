#!/bin/sh
# oktopk-fig10: weak scaling of a speech recogniser on 32 and 64 GPUs, and where the time of a step goes
# paper: Fig. 10, Section 5.4.2: LSTM on AN4, batch 2 a GPU, density 2%, Piz Daint: on 64 GPUs Ok-Topk is 1.34 to 7.71 times as fast as the
#     others (no other numbers printed but the run times in Fig. 11)
# runs: a step of each algorithm: communication in simulation (simulate.sh --net aries) of gradients like those that four ranks of the
#     model recorded on AN4 (results/measured/profiles), as an S-th of the entries over an S-th of the bandwidth (S = 20, 40; quick: 200);
#     selection measured on this machine's GPU or one CPU core; computing and input, which the paper does not print, at most
#     0.223 s: the whole of Ok-Topk's step on 32 GPUs, by its 8.8 minutes in Fig. 11a (scripts/reproduce/parts/aries.sh). The paper's
#     messages pass through Python and the host, and what they cost there no simulation has.
#     Beside it, not compared, by experiment: the same on a tenth of the bandwidth, with the times of selections that the
#     paper's run times of another model have in them
# needs: SimGrid (sh scripts/deps.sh sim, make sim); a GPU for selection times that can be compared
# takes: full: 5 min; quick: 50 s
# agrees: the least and the largest speed-up on 64 GPUs within 25% of the paper's, in direction where they are at least 1. Ok-Topk's step on 64
#     GPUs, most of which is the paper's own time, stands beside the shortest time in Fig. 11b over its steps, and "communication alone"
#     is the same without computing, input and selection: both are compared with nothing
. scripts/reproduce/lib.sh
aries_model=LSTM
. scripts/reproduce/parts/aries.sh

section='Fig. 10, Section 5.4.2 p. 10'
against words
weak_scaling LSTM-AN4 32 64
for P in 32 64; do
    for algo in topka topkdsa gtopk gaussiank; do
        row "P = $P" "communication of $algo over oktopk" x '' "$section" "$(calc "$(communication $algo $P) / $(communication oktopk $P)")" simulated none
    done
done
against measured
speed_up_rows 64 oktopk-lstm-scaling 'training time' 64
row 'oktopk, P = 64' 'time of a step (paper: shortest run time over its steps)' ms \
    "$(calc "1000 * $(run_seconds LSTM 64 1)")" \
    "$(published oktopk-fig11.csv source gpus=64 label=1)" "$(calc "1000 * $(step_seconds oktopk 64)")" simulated none \
    "nearly all of it is the paper's own time of a step on 32: computing at most as long"
narrow 64
narrow_rows 64 'training time' 64
narrow_runs 64 1 2 3 4
cost_rows
finish
