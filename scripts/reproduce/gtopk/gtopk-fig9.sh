#!/bin/sh
# gtopk-fig9: time of topka and gtopk against the ranks and against the length of the gradient
# paper: Fig. 9, computed in the paper from Table I with alpha = 0.436 ms and beta = 3.6e-5 ms: left, m = 25e6, P = 4 to 128: topka
#     slightly faster on few ranks, much slower from 16 on; right, P = 32, more and more parameters; density 0.001
# runs: sparsetrain bench in simulation of that network (simulate.sh --net 1gbe), so that messages really wait for each other; as
#     a fifth of the entries over a fifth of the bandwidth (--scale 5), to fit into memory (quick: m = 1e6, P = 4 to 32;
#     P = 8). topka's all-gather is our own, of log2 P rounds. gtopk's messages of up to 64 KiB (m = 5e6) leave without
#     waiting and share their sender's link (docs/simulation.md, Limits): beside them, not compared, the same where all
#     messages wait (--eager 0), as Table I has it
# needs: SimGrid (sh scripts/deps.sh sim, make sim); 6 GB of memory in full
# takes: full: 5 min; quick: 7 s
# agrees: simulated times within 15% of what Table I says; topka is 1.3 times as slow as gtopk or worse from the paper's P on
. scripts/reproduce/parts/cluster.sh

scale=$(pick 5 1)
# simulated FILE P M OPTION...: both algorithms there
simulated() {
    simulated_file=$1 simulated_p=$2 simulated_m=$3
    shift 3
    job "$simulated_file" sh scripts/simulate.sh --net 1gbe --p "$simulated_p" --algo topka,gtopk --n "$simulated_m" --density "$cluster_density" \
        --scale "$scale" --steps 3 "$@"
}
# ms FILE ALGO P: simulated time of a step
ms() { values "$1" median_s --where "algo=$2" --where "ranks=$3" | awk '{ print 1000 * $1 }'; }
# point SIDE FILE P M X: rows and points of both algorithms there
point() {
    for algo in topka gtopk; do
        paper=$(calc "$(by_table $algo "$3" "$4")") ours=$(ms "$2" $algo "$3")
        row "$algo, P = $3, m = $4" 'time of a step' ms "$paper" 'Fig. 9: Table I, Section IV-C' "$ours" simulated 'within 15%'
        printf '%s %s %s %s\n' $algo "$5" "$paper" "$ours" >>"$out/$1.points"
    done
}
# draw SIDE TITLE XLABEL NAME=VALUE...
draw() {
    draw_side=$1 draw_title=$2 draw_label=$3
    shift 3
    {
        for algo in topka gtopk; do points "$out/$draw_side.points" $algo 2 3 | tolerance 'within 15%' | block "$algo, Table I, +-15%"; done
        for algo in topka gtopk; do points "$out/$draw_side.points" $algo 2 4 | tolerance none | block "$algo, simulated"; done
    } >"$out/$draw_side.dat"
    figure "$draw_side.png" "$out/$draw_side.dat" lines.gp published=2 paired=yes title="$draw_title" xlabel="$draw_label" ylabel='time [ms]' \
        yrange='0:*' "$@"
}

claim gtopk-cost-curves
against formula
m=$(pick 25000000 1000000)
: >"$out/left.points"
for P in $(pick '4 8 16 32 64 128' '4 8 16 32'); do
    simulated "p$P.jsonl" "$P" "$m"
    point left "p$P.jsonl" "$P" "$m" "$P"
done
draw left "Against the ranks, m = $m, density $cluster_density" 'P [ranks]' logx=2 xformat=%g

look_up gtopk-text.csv value subject='cost model'
worse=$(awk '$1 == "topka" { topka[$2] = $4 } $1 == "gtopk" && topka[$2] >= 1.3 * $4 { print $2; exit }' "$out/left.points")
row "m = $m" 'P from which topka is much worse than gtopk (by 1.3)' ranks "$paper" "$source" "$worse" simulated 'full: equal'

P=$(pick 32 8)
: >"$out/right.points"
for m in $(pick '5000000 10000000 25000000 50000000 100000000' '250000 500000 1000000'); do
    simulated "m$m.jsonl" "$P" "$m"
    point right "m$m.jsonl" "$P" "$m" "$(calc "$m / 1e6")"
done
# Why the shortest gradient is off the line, by experiment.
m=$(pick 5000000 250000)
simulated "m$m-waiting.jsonl" "$P" "$m" --eager 0
row "gtopk, P = $P, m = $m, all messages wait" 'time of a step' ms "$(calc "$(by_table gtopk "$P" "$m")")" 'Fig. 9: Table I, Section IV-C' \
    "$(ms "m$m-waiting.jsonl" gtopk "$P")" simulated none 'not compared; explains the one that is off: its messages leave without waiting'
draw right "Against the length, P = $P, density $cluster_density" 'm [million parameters]'
rm -f "$out/left.points" "$out/right.points"
finish
