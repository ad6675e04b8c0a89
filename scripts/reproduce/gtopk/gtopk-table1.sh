#!/bin/sh
# gtopk-table1: communication costs of dense, topka and gtopk, predicted against counted
# paper: Table I: a step costs dense 2(P-1) alpha + 2(P-1)/P m beta, topka log2(P) alpha + 2(P-1)k beta, gtopk
#     2 log2(P) alpha + 4k log2(P) beta (m: entries of the gradient; k: entries a rank selects; P: ranks, a power of two)
# runs: sparsetrain bench on P = 2 to 8 ranks over real MPI, m = 14728266 (VGG-16; quick: 100000), density 0.001, with the
#     words that pass counted; where P is no power of two, the formulas take log2(P) rounded up
# needs: any machine; 8 ranks share its cores
# takes: full: 3 min; quick: 3 s
# agrees: words counted on the busiest rank are the paper's bandwidth term to 0.01%; start-ups of the program's cost model
#     (kind model) equal the paper's latency term, which is a self-check. dense is MPI's own collective, opaque to a count, so its words are those
#     of the standard algorithm (kind model, a self-check, too). gtopk's longest path is rank 0: it receives through the tree and then
#     sends down it, so what it sent and what it received add up
. scripts/reproduce/parts/costs.sh

density=0.001
k=$(calc "int($n * $density)")
start_ups_by_model $density
for P in $ranks; do
    mpi_job "p$P.jsonl" "$P" bench --device cpu --algo dense,topka,gtopk --n "$n" --density $density --repeat "$(pick 5 3)" --json
done

for algo in dense topka gtopk; do
    source=$(published gtopk-costs.csv source algorithm=$algo)
    latency=$(published gtopk-costs.csv latency_alpha algorithm=$algo)
    bandwidth=$(published gtopk-costs.csv bandwidth_beta algorithm=$algo)
    why='' kind=real
    claim gtopk-costs
    against formula
    [ $algo != dense ] || against self
    [ $algo != dense ] || kind=model why="ours is MPI's allreduce, taken to need $(published oktopk-costs.csv latency_alpha algorithm=dense) as in Ok-Topk's Table 1"
    for P in $ranks; do
        paper=$(formula "$bandwidth" "$P" "$n" "$k") ours=$(counted $algo "p$P.jsonl")
        row "$algo P=$P" "bandwidth term $bandwidth" words "$paper" "$source" "$ours" $kind "within 0.01%"
        against self
        row "$algo P=$P" "latency term $latency" start-ups "$(formula "$latency" "$P" "$n" "$k")" "$source" "$(start_ups $algo "$P")" model equal "$why"
        [ $algo = dense ] || against formula
        printf '%s %s %s %s\n' $algo "$P" "$paper" "$ours"
    done
done >"$out/words.dat"
{
    for algo in dense topka gtopk; do points "$out/words.dat" $algo 2 3 | block "$algo, Table I"; done
    for algo in dense topka gtopk; do points "$out/words.dat" $algo 2 4 | block "$algo, $(by_formula $algo)"; done
} >"$out/figure.dat"
figure figure.png "$out/figure.dat" lines.gp published=3 paired=yes logy=10 title="Words on the longest path of a step, m = $n, density $density" \
    xlabel='P [ranks]' ylabel='4-byte words'
finish
