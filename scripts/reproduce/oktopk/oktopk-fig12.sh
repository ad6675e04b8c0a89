#!/bin/sh
# oktopk-fig12: weak scaling of BERT from 32 to 256 GPUs
# paper: Fig. 12, Section 5.4.3: BERT (133.5M parameters), batch 8 a GPU, density 1%, Piz Daint: on 256 GPUs topka and gaussiank
#     communicate even longer than dense; topkdsa less than these, but much longer than on fewer; Ok-Topk is 3.29 to 12.95 times as
#     fast as the others, and its efficiency over 32 GPUs is 76.3% (no other numbers printed but total times on 32, in Fig. 13)
# runs: a step of each algorithm: communication in simulation (simulate.sh --net aries) of gradients like those that four ranks of BERT-base
#     recorded (results/measured/profiles), as an S-th of the entries over an S-th of the bandwidth (S = 64, 128, 400; quick: 4096, P = 32, 64);
#     selection measured on this machine's GPU or one CPU core; computing and input, which the paper does not print, at most
#     0.423 s: the whole of Ok-Topk's step on 32 GPUs, by its 47 hours (scripts/reproduce/parts/aries.sh). The paper's messages pass
#     through Python and the host, and what they cost there no simulation has.
#     Beside it, not compared, by experiment: the same on a tenth of the bandwidth, with the times of selections that the
#     paper's run times of another model have in them
# needs: SimGrid (sh scripts/deps.sh sim, make sim); a GPU for selection times that can be compared
# takes: full: 86 min beside other work; quick: 26 s
# agrees: each of these statements as a ratio of at least 1 ("much longer": at least 1.5); the least and the largest speed-up on 256 GPUs within
#     25% of the paper's, in direction where it is at least 1; the efficiency within 10 percentage points, in direction where it is at
#     least 76.3%. "communication alone" is the same without computing, input and selection, and compared with nothing
. scripts/reproduce/lib.sh
aries_model=BERT
. scripts/reproduce/parts/aries.sh

section='Fig. 12, Section 5.4.3 p. 11'
ranks=$(pick '32 64 256' '32 64')
most=$(pick 256 64)
against words
# shellcheck disable=SC2086 # words
weak_scaling BERT $ranks
claim oktopk-bert-communication
for algo in topka gaussiank; do
    row "P = $most" "communication of $algo over dense" x '' "$section" "$(calc "$(communication $algo "$most") / $(communication dense "$most")")" simulated \
        'full: at least 1'
done
for algo in topka gaussiank; do
    row "P = $most" "communication of $algo over topkdsa" x '' "$section" "$(calc "$(communication $algo "$most") / $(communication topkdsa "$most")")" \
        simulated 'full: at least 1'
done
row topkdsa "communication, P = $most over P = 32" x '' "$section" "$(calc "$(communication topkdsa "$most") / $(communication topkdsa 32)")" simulated \
    'full: at least 1.5'
against measured
speed_up_rows "$most" oktopk-bert-scaling throughput 256
claim oktopk-bert-scaling
look_up oktopk-text.csv value model=BERT gpus=256 quantity='weak-scaling efficiency over 32 GPUs'
direction "full: at least $paper"
row "oktopk, P = $most" 'step on 32 over step' % "$paper" "$source" "$(calc "100 * $(step_seconds oktopk 32) / $(step_seconds oktopk "$most")")" simulated \
    'full: within 10' "$select_note"
narrow 32 "$most"
claim
row "$(narrow_item "$most")" "oktopk's step on 32 over its step" % "$paper" "$source" "$(calc "100 * $(narrow_seconds oktopk 32) / $(narrow_seconds oktopk "$most")")" \
    simulated none "$narrow_note"
narrow_rows "$most" throughput 256
cost_rows
finish
