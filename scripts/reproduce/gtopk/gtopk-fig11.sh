#!/bin/sh
# gtopk-fig11: where the time of a step goes on 32 GPUs with gtopk
# paper: Fig. 11: forward and backward, compression, communication of VGG-16, ResNet-20, AlexNet, ResNet-50 on 32 GPUs of 1 Gbit/s
#     Ethernet, density 0.001: communication is far longer than computing for VGG-16 and AlexNet, computing prevails for
#     ResNet-20 and ResNet-50 (no numbers printed)
# runs: the same steps in simulation of that network (simulate.sh), computing for as long as the paper's GPU, at an S-th of the
#     entries over an S-th of the bandwidth (S = 5, 1, 20, 10; quick: 50, 1, 100, 50). The paper does not print its
#     compression, which here takes no time; a bar has computing and communication. Beside it, not compared, the same on a
#     tenth of the bandwidth, near which the paper's own times are (gtopk-table4)
# needs: SimGrid (sh scripts/deps.sh sim, make sim)
# takes: full: 1 min; quick: 13 s
# agrees: computing prevails for ResNet-20 and ResNet-50, communication for VGG-16 and AlexNet
. scripts/reproduce/parts/cluster.sh

P=32
claim gtopk-breakdown
against words
echo '"" computing communication' >"$out/figure.dat"
for model in $models; do
    weak "$model" $P
    seconds=$(communication "$model" $P gtopk)
    share=$(calc "100 * $seconds / ($compute + $seconds)")
    printf '"%s" %s %s\n' "$name" "$(calc "100 - $share")" "$share" >>"$out/figure.dat"
    # The paper prints no numbers: "prevails" is more than half of the step.
    case $model in resnet*) rule='at most 1' ;; *) rule='at least 1' ;; esac
    row "$name, gtopk, P = $P" 'communication over computing' '' '' 'Fig. 11' "$(calc "$seconds / $compute")" simulated "$rule" \
        'the network alone, as the cost model has it'
done
for model in $models; do
    narrow "$model" $P gtopk
    row "$name, gtopk, P = $P, a tenth of the bandwidth" 'communication over computing' '' '' 'Fig. 11' \
        "$(calc "$(communication "$model" $P-tenth gtopk) / $compute")" simulated none 'not compared: a network near which its measured times of dense are (gtopk-table4)'
done
figure figure.png "$out/figure.dat" bars.gp parts=2 title="A step with gtopk, $P ranks, 1 Gbit/s, simulated" ylabel='part of the step [%]' yrange=0:100 \
    note='the paper prints no numbers; its bars have a part for compression, which takes no time here'
finish
