#!/bin/sh
# mstopk-fig8: where the time of HiTopKComm goes
# paper: Fig. 8: 16 nodes of 8 V100 on 25 Gbit/s Ethernet, 25 and 110 million 32-bit elements, k = 0.01 d: the all-gather between nodes takes
#     the most time; selection by MSTopK, reduce-scatter and all-gather inside the nodes next to nothing (no numbers printed)
# runs: the cost line of hitopk (sparsetrain predict, kind model): what passes between nodes at 25 Gbit/s and 20 us, and inside them at six
#     NVLinks of 25 GB/s and 5 us (nominal: the paper prints neither latency nor NVLink's rate); the selection of a shard of
#     d / 8 by mstopk, measured (sparsetrain bench select) on the GPU or else one CPU core
# needs: any machine; a GPU for a selection that can be compared
# takes: full: 2 s; quick: 2 s
# agrees: inside the nodes, and selecting, at most a tenth of what it takes between them (our reading of "next to nothing"); in
#     direction where it is less. Selection is compared on a GPU alone
. scripts/reproduce/lib.sh

density=$(published mstopk-text.csv value subject='hitopk comparison')
beta=$(calc "32 / ($(published mstopk-text.csv value subject=testbed unit=Gbit/s) * 1e9)")
printf 'alpha 20e-6\nbeta %s\nnode_alpha 0\nnode_beta 0\n' "$beta" >"$out/between.net"
printf 'alpha 0\nbeta 0\nnode_alpha 5e-6\nnode_beta 2.7e-11\n' >"$out/inside.net"
for part in between inside; do
    job $part.jsonl "$program" predict --net "$out/$part.net" --p 128 --ranks-per-node 8 --n 25000000,110000000 --density "$density" --json
done
if have_gpu; then device=cuda; else device=cpu; fi
job select.jsonl "$program" bench select --device $device --select mstopk --n 3125000,13750000 --density "$density" --repeat "$(pick 20 5)" --json
part_seconds() { # part_seconds PART N
    values "$1.jsonl" seconds --where predict=cost --where algo=hitopk --where "n=$2"
}
echo '"" selection "inside nodes" "between nodes"' >"$out/figure.dat"
claim mstopk-between
against words
for n in 25000000 110000000; do
    between=$(part_seconds between $n) inside=$(part_seconds inside $n)
    selection=$(values select.jsonl median_s --where "n=$((n / 8))")
    direction 'at most 1'
    row "d = $n" 'inside nodes over between nodes' x '' 'Fig. 8' "$(calc "$inside / $between")" model 'at most 0.1' "by the cost line, NVLink's nominal rate"
    if [ $device = cuda ]; then rule='at most 0.1' why=; else rule=none why='selection measured on one CPU core'; fi
    direction "$(if [ $device = cuda ]; then echo 'at most 1'; else echo none; fi)"
    row "d = $n" "selection on $device over between nodes" x '' 'Fig. 8' "$(calc "$selection / $between")" model "$rule" "$why"
    printf '"d = %s" %s %s %s\n' $n "$(calc "1000 * $selection")" "$(calc "1000 * $inside")" "$(calc "1000 * $between")" >>"$out/figure.dat"
done
figure figure.png "$out/figure.dat" bars.gp parts=3 title="HiTopKComm, 16 nodes of 8, 25 Gbit/s: model, and selection on $device" ylabel='time [ms]' note='the paper prints no numbers'
finish
