#!/bin/sh
# oktopk-fig7: what Ok-Topk's balanced reduction and balanced all-gather gain
# paper: Fig. 7, Section 5.3: BERT, density 1%, 16, 32, 64 GPUs on Cray Aries: the reduction over balanced regions is 1.13 to 1.75 times as
#     fast as over equal ones, the all-gather with balancing 1.12 to 1.43 times as fast as without
# runs: sparsetrain bench --algo oktopk in simulation (simulate.sh --net aries) of BERT's n, as an S-th of the entries over an S-th of the
#     bandwidth (S = 32; quick: 1024, P = 16, 32), gradients clustered so that the ranks' large entries lie close together;
#     with and without --oktopk-off regions, and balance. No gradients of BERT are at hand, and how they cluster decides
# needs: SimGrid (sh scripts/deps.sh sim, make sim)
# takes: full: 19 min; quick: 9 s
# agrees: the whole exchange's time without the technique over that with it lies in the paper's interval (which is of the
#     reduction, and of the all-gather, alone)
. scripts/reproduce/lib.sh

need_file scripts/simulate.sh 'it comes with the simulated clusters'
need_tool smpirun 'sh scripts/deps.sh sim'
need_file "${BUILD:-build}/sparsetrain-sim" 'make sim'

n=$(published oktopk-models.csv parameters model=BERT)
density=0.01
ranks=$(pick '16 32 64' '16 32')
# run_without NAME P OPTION...: in steps 2 to 65 the regions are found once
run_without() {
    run_name=$1 run_ranks=$2
    shift 2
    job "$run_name-p$run_ranks.jsonl" sh scripts/simulate.sh --net aries --p "$run_ranks" --algo oktopk --n "$n" --density $density \
        --scale "$(pick 32 1024)" --pattern clustered --steps "$(pick 64 16)" -- "$@"
}
seconds() { awk "$json_awk$newline"'{ print json("mean_s") }' "$out/$1-p$2.jsonl"; }
# interval SUBJECT: the paper's, as a range
interval() {
    least=$(published oktopk-text.csv value subject="$1" quantity='smallest speed-up')
    most=$(published oktopk-text.csv value subject="$1" quantity='largest speed-up')
    echo "$least to $most"
}
source=$(published oktopk-text.csv source subject='balanced against naive reduce' quantity='smallest speed-up')
naive=$(interval 'balanced against naive reduce')
direct=$(interval 'balanced against direct allgatherv')
: >"$out/points"
for P in $ranks; do
    run_without whole "$P"
    run_without regions "$P" --oktopk-off regions
    run_without balance "$P" --oktopk-off balance
    for off in regions balance; do
        ours=$(calc "$(seconds $off "$P") / $(seconds whole "$P")")
        case $off in
        regions) row "BERT's n, P = $P" 'equal regions over balanced ones' x "$naive" "$source" "$ours" simulated 'full: in range' ;;
        balance) row "BERT's n, P = $P" 'all-gather without balancing over with' x "$direct" "$source" "$ours" simulated 'full: in range' ;;
        esac
        printf '%s %s %s\n' $off "$P" "$ours" >>"$out/points"
    done
done
for off in regions balance; do
    case $off in regions) about='equal regions' ;; *) about='direct all-gather' ;; esac
    awk -v off=$off '$1 == off { print $2, $3 }' "$out/points" | block "$about"
done >"$out/figure.dat"
rm -f "$out/points"
figure figure.png "$out/figure.dat" lines.gp title="Ok-Topk without balancing, n = $n, simulated" xlabel='P [ranks]' ylabel='time over that with balancing' \
    logx=2 xformat=%g yrange='0:*'
finish
