#!/bin/sh
# gtopk-table4: what training on 32 GPUs communicates with dense, topka and gtopk
# paper: Table IV: images/s of 32 GPUs on 1 Gbit/s Ethernet, VGG-16, ResNet-20, AlexNet, ResNet-50, density 0.001. Its times are far
#     above its own cost model: VGG-16 dense 10.2 s a step, where Table I says 1.2
# runs: the same steps in simulation of that network (simulate.sh), computing for as long as the paper's GPU, at an S-th of the
#     entries over an S-th of the bandwidth (S = 5, 1, 20, 10; quick: 50, 1, 100, 50). Dense is what Open MPI would choose, of
#     ResNet-20's length no ring, which Table I has: beside it, not compared, the same as a ring (--allreduce ring), and of all
#     four models on a tenth of the bandwidth, near which dense's measured times are
# needs: SimGrid (sh scripts/deps.sh sim, make sim)
# takes: full: 1 min; quick: 13 s
# agrees: what a step communicates: with the paper's measurement, its step less the step of one GPU, within 25%; with its cost
#     model, within 15%. Both stand in the table, since they are far apart. The ratios of throughputs within 25%; in
#     direction where gtopk is at least as fast
. scripts/reproduce/parts/cluster.sh

P=32
slow="measured in the paper, whose times are far above its cost model"
# What the paper's step of this algorithm communicates [ms]: as measured, as Table I has it; for the model of the last model_is.
measured_ms() { calc "1000 * ($P * $batch / $(measured_throughput "$1") - $compute)"; }
table_ms() { calc "1000 * ($(table_seconds $P "$1") - $compute)"; }
for model in $models; do
    weak "$model" $P
    for algo in $algos; do
        ours=$(calc "1000 * $(communication "$model" $P "$algo")")
        source=$(published gtopk-throughput.csv source model="$name")
        claim gtopk-communication
        against measured
        row "$name, $algo" 'communication of a step' ms "$(measured_ms "$algo")" \
            "$source less v1: Table VI" "$ours" simulated 'within 25%' "$slow"
        claim
        against formula
        row "$name, $algo" 'communication of a step, by Table I and alpha, beta' ms "$(table_ms "$algo")" \
            'Table I, Section IV-C' "$ours" simulated 'within 15%'
    done
    claim gtopk-speed-up
    against measured
    for other in dense topka; do
        direction 'at least 1'
        row "$name" "gtopk over $other, whole steps" x "$(published gtopk-throughput.csv "gtopk_over_$other" model="$name")" "$source" \
            "$(calc "$(step_seconds "$model" $P $other) / $(step_seconds "$model" $P gtopk)")" simulated 'within 25%' "$slow"
    done
done
# How far a tenth of the bandwidth explains dense, by experiment. (topka and gtopk select for a time besides that the paper does not print.)
claim
against measured
for model in $models; do
    narrow "$model" $P dense --allreduce ring
    row "$name, dense, a tenth of the bandwidth" 'communication of a step' ms "$(measured_ms dense)" \
        "$(published gtopk-throughput.csv source model="$name") less v1: Table VI" "$(calc "1000 * $(communication "$model" $P-tenth dense)")" simulated none \
        'not compared: how near a network of a tenth of the bandwidth comes to what was measured'
done
# Why ResNet-20's dense is off Table I, by experiment.
cluster_steps resnet20 $P -ring 1gbe dense --allreduce ring
claim
against formula
row "$name, dense as a ring" 'communication of a step, by Table I and alpha, beta' ms "$(table_ms dense)" \
    'Table I, Section IV-C' "$(calc "1000 * $(communication resnet20 $P-ring dense)")" simulated none \
    'not compared; explains the one that is off: of this length MPI sums in fewer messages (this ring sums the 26 entries that 32 does not divide apart, by 10 alpha)'
finish
