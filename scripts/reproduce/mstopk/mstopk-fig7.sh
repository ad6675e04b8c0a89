#!/bin/sh
# mstopk-fig7: aggregation time of NaiveAG, TreeAR, 2D-torus and HiTopKComm on 16 nodes of 8 ranks
# paper: Fig. 7: 16 instances of 8 V100 on 25 Gbit/s Ethernet, density 0.01, 16-bit elements: NaiveAG extremely inefficient, TreeAR not
#     efficient, 2D-torus better, HiTopKComm the most efficient of the four (no numbers printed)
# runs: sparsetrain bench in simulation (simulate.sh --ranks-per-node 8) with topka (NaiveAG), dense (MPI's flat allreduce in the place of
#     NCCL's tree), torus2d and hitopk, 32-bit elements, 1, 5, 25, 50 and 100 million, those above 1 million with a fifth or a 25th of their
#     entries over as small a part of the bandwidth (quick: 4 nodes of 8, 1 to 25 million, a 50th to a 250th). Between nodes 25 Gbit/s and 20 us, inside them six NVLinks of 25
#     GB/s and 5 us (nominal: the paper prints neither latency nor NVLink's rate). Open MPI's allreduce of long vectors
#     sums the nearest ranks first, so that dense sends as little between nodes as torus2d; beside it, not compared, dense as a tree
#     (--allreduce tree: MPI's reduction and then its broadcast, which NCCL's are not either)
# needs: SimGrid (sh scripts/deps.sh sim, make sim)
# takes: full: 4 min; quick: 20 s
# agrees: hitopk takes less time than each of the others at each length; torus2d less than dense by a tenth at least (our reading
#     of "better"), in direction where it is less: dense stands for TreeAR, but is another algorithm, so this shows little of TreeAR
. scripts/reproduce/lib.sh

need_simulator

density=$(published mstopk-text.csv value subject='hitopk comparison')
P=$(pick 128 32)
beta=$(calc "32 / ($(published mstopk-text.csv value subject=testbed unit=Gbit/s) * 1e9)")
printf 'alpha 20e-6\nbeta %s\nnode_alpha 5e-6\nnode_beta 2.7e-11\n' "$beta" >"$out/cluster.net"
seconds() { values "$2" median_s --where "algo=$1"; }
# Not less than a million entries (quick: 20,000): MPI sums short vectors in other ways.
scale_of() { if [ -n "$quick" ]; then echo $(($1 * 50 < 250 ? $1 * 50 : 250)); else echo $(($1 < 25 ? $1 : 25)); fi; }
against words
: >"$out/points"
for million in $(pick '1 5 25 50 100' '1 5 25'); do
    n=${million}000000
    job "n$n.jsonl" sh scripts/simulate.sh --net "$out/cluster.net" --p "$P" --ranks-per-node 8 --algo topka,dense,torus2d,hitopk --n "$n" --density "$density" \
        --scale "$(scale_of "$million")" --steps 3
    for algo in topka dense torus2d hitopk; do
        time=$(seconds $algo "n$n.jsonl")
        printf '%s %s %s\n' $algo "$million" "$(calc "1000 * $time")" >>"$out/points"
        claim mstopk-aggregation
        [ $algo = hitopk ] || row "$P ranks, $n entries" "time of $algo over hitopk" x '' 'Fig. 7' \
            "$(calc "$time / $(seconds hitopk "n$n.jsonl")")" simulated 'at least 1'
    done
    claim mstopk-torus
    direction 'at least 1.001'
    row "$P ranks, $n entries" 'time of dense (for TreeAR) over torus2d' x '' 'Fig. 7' "$(calc "$(seconds dense "n$n.jsonl") / $(seconds torus2d "n$n.jsonl")")" simulated \
        'at least 1.1' 'MPI sums the nearest ranks first, as torus2d does'
    job "n$n-tree.jsonl" sh scripts/simulate.sh --net "$out/cluster.net" --p "$P" --ranks-per-node 8 --algo dense --n "$n" --density "$density" \
        --scale "$(scale_of "$million")" --steps 3 --allreduce tree
    row "$P ranks, $n entries" 'time of dense as a tree over torus2d' x '' 'Fig. 7' \
        "$(calc "$(seconds dense "n$n-tree.jsonl") / $(seconds torus2d "n$n.jsonl")")" simulated none "not compared: another tree than NCCL's"
done
for algo in topka dense torus2d hitopk; do
    case $algo in
    topka) name='topka (NaiveAG)' ;;
    dense) name='dense (for TreeAR; as torus2d)' ;;
    torus2d) name='torus2d (2DTAR)' ;;
    hitopk) name='hitopk (HiTopKComm)' ;;
    esac
    points "$out/points" $algo 2 3 | block "$name"
done >"$out/figure.dat"
rm -f "$out/points"
figure figure.png "$out/figure.dat" lines.gp title="$((P / 8)) nodes of 8 ranks, 25 Gbit/s, density $density, simulated" xlabel='d [million entries]' \
    ylabel='time [ms]' logy=10 note='the paper prints no numbers; its elements have 16 bits'
finish
