#!/bin/sh
# sim-calibration: a simulated step against the same step of the same program on an emulated network, P = 4 and 8
# paper: none. What stands in the place of the paper's numbers is measured here, on the emulated network
# runs: sparsetrain bench on P real processes over real TCP (netlab.sh), median of the steps, beside the same in simulation
#     (simulate.sh) of a network of the alpha and beta that sparsetrain p2p finds in the lab, with the seconds of selecting,
#     packing and merging that the real ranks took. The lab is the gTop-k paper's 1 Gbit/s Ethernet with fifty times alpha
#     and beta (20 Mbit/s, 21.7 ms): which messages wait for which is the same, and two cores keep pace. n = 1M, density
#     0.01; dense algorithms n = 200,000 (quick: P = 4, n = 200,000). dense-ovlp is left out: its simulation has a sum of its
#     own in the place of MPI_Iallreduce
# needs: root (network namespaces), Open MPI, SimGrid (sh scripts/deps.sh sim, make sim)
# takes: full: 4 min; quick: 29 s
# agrees: a self-check. Each simulated step within 15% of the emulated one; alpha and beta of the lab within 10% of fifty times 0.436 ms and
#     32 ns/word
. scripts/reproduce/lib.sh

need_simulator
need_root 'the emulated network (network namespaces)'

slower=50 rate=20mbit delay=21720us
sparse=$(pick topka,topkdsa,gaussiank,gtopk-naive,gtopk,gtopk-rd,oktopk,hitopk,micro,spardl topka,gtopk,gtopk-rd,oktopk,spardl)
dense=$(pick dense,torus2d dense)
n=$(pick 1000000 200000) density=0.01
lab() { # lab FILE P ARGUMENT...: the program in a lab of P nodes
    lab_file=$1 lab_ranks=$2
    shift 2
    job "$lab_file" sh scripts/netlab.sh run --p "$lab_ranks" --rate $rate --delay $delay -- "$program" "$@"
}
of_algo() { # of_algo FILE ALGO KEY[,KEY]: of the row of this algorithm, added up
    values "$1" "$3" --where "algo=$2" | awk '{ printf "%.10g\n", $1 + $2 }'
}
# compare P ALGO N EMULATED: simulates it, and a row
compare() {
    select=$(of_algo "$4" "$2" select_s) words=$(of_algo "$4" "$2" words_received_mean)
    merging=$(of_algo "$4" "$2" phases.pack,phases.merge)
    job "simulated-p$1-$2.jsonl" sh scripts/simulate.sh --net "$out/lab-p$1.net" --p "$1" --algo "$2" --n "$3" --density $density \
        --select-cost "$select" --word-cost "$(calc "$merging / $words")"
    emulated=$(calc "1000 * $(of_algo "$4" "$2" median_s)")
    simulated=$(calc "1000 * $(of_algo "simulated-p$1-$2.jsonl" "$2" median_s)")
    row "P = $1, $2" 'time of a step' ms "$emulated" 'on the emulated network, here' "$simulated" simulated 'within 15%'
    printf '%s %s\n' "$emulated" "$simulated" >>"$out/points-p$1"
}
rm -f "$out"/points-p*
against self
for P in $(pick '4 8' 4); do
    lab "p2p-p$P.jsonl" "$P" p2p --sizes "$(pick 4:1M:4 4:256K:16)" --repeat 5 --json
    fit() { values "p2p-p$P.jsonl" "$1" --where bench=p2p-fit | head -n 1; }
    printf '%s %s\n' alpha "$(fit alpha_s)" beta "$(fit beta_s)" node_alpha "$(fit alpha_s)" node_beta "$(fit beta_s)" >"$out/lab-p$P.net"
    row "lab of P = $P" alpha ms "$(calc "$slower * 0.436")" '50 times that of 1gbe' "$(calc "1000 * $(fit alpha_s)")" emulated 'within 10%'
    row "lab of P = $P" beta ns/word "$(calc "$slower * 32")" '50 times that of 1 Gbit/s' "$(calc "1e9 * $(fit beta_s)")" emulated 'within 10%'
    lab "sparse-p$P.jsonl" "$P" bench --algo "$sparse" --n "$n" --density $density --no-check --repeat "$(pick 9 3)" --json
    lab "dense-p$P.jsonl" "$P" bench --algo "$dense" --n 200000 --density $density --no-check --repeat "$(pick 9 3)" --json
    for algo in $(echo "$sparse" | tr , ' '); do compare "$P" "$algo" "$n" "sparse-p$P.jsonl"; done
    for algo in $(echo "$dense" | tr , ' '); do compare "$P" "$algo" 200000 "dense-p$P.jsonl"; done
done
{
    awk '$1 > most { most = $1 } END { print 0, 0, 0; print most, 0.85 * most, 1.15 * most }' "$out"/points-p* | band 'within 15%'
    for P in $(pick '4 8' 4); do sort -n "$out/points-p$P" | block "P = $P"; done
    awk '$1 > most { most = $1 } END { print 0, 0; print most, most }' "$out"/points-p* | block 'the same'
} >"$out/figure.dat"
rm -f "$out"/points-p*
figure figure.png "$out/figure.dat" lines.gp published="$(pick 2 1)" with=lines title="A step of each algorithm, $slower times slower than on 1 Gbit/s Ethernet" \
    xlabel='emulated network, real processes [ms]' ylabel='simulated [ms]' key='inside left top reverse Left'
finish
