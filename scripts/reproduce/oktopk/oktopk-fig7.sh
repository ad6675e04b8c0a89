#!/bin/sh
# oktopk-fig7: what Ok-Topk's balanced reduction and balanced all-gather gain
# paper: Fig. 7, Section 5.3: BERT, density 1%, 16, 32, 64 GPUs on Cray Aries: the reduction over balanced regions is 1.13 to 1.75 times as
#     fast as over equal ones, the all-gather with balancing 1.12 to 1.43 times as fast as without
# runs: sparsetrain bench --algo oktopk in simulation (simulate.sh --net aries) of BERT's n, as an S-th of the entries over an S-th of the
#     bandwidth (S = 32; quick: 1024, P = 16, 32). How large entries cluster decides; so with three kinds: bert, what four ranks of
#     BERT-base selected in its first 100 steps (results/measured/profiles), which decides on the claims; clustered (the ranks' large
#     entries lie close together), and the profile of a real LSTM on Penn Treebank. With
#     --oktopk-off regions against without; balancing acts in steps where a rank holds four times the mean (of which
#     alone Fig. 7b is), which our balanced regions prevent: so --oktopk-off regions,balance against --oktopk-off regions
# needs: SimGrid (sh scripts/deps.sh sim, make sim)
# takes: full: 61 min beside other work; quick: 13 s
# agrees: the whole exchange's time without the technique over that with it lies in the paper's interval (which is of the
#     reduction, and of the all-gather, alone), in direction where it is at least 1; where balancing has never acted there
#     is nothing to compare
. scripts/reproduce/lib.sh

need_simulator

n=$(published oktopk-models.csv parameters model=BERT)
density=0.01
ranks=$(pick '16 32 64' '16 32')
# run FILE P PATTERN [SWITCHES]: of steps 2 to 65 (quick: 17), without these parts; in them the regions are found once
run() {
    run_file=$1 run_ranks=$2 run_pattern=$3
    shift 3
    [ $# = 0 ] || set -- --oktopk-off "$1"
    set -- -- "$@"
    case $run_pattern in fitted:*) set -- --device sparse "$@" ;; esac
    job "$run_file-p$run_ranks.jsonl" sh scripts/simulate.sh --net aries --p "$run_ranks" --algo oktopk --n "$n" --density $density \
        --scale "$(pick 32 1024)" --pattern "$run_pattern" --steps "$(pick 64 16)" "$@"
}
seconds() { values "$1-p$2.jsonl" mean_s; }
# interval SUBJECT: the paper's, as a range
interval() {
    least=$(published oktopk-text.csv value subject="$1" quantity='smallest speed-up')
    most=$(published oktopk-text.csv value subject="$1" quantity='largest speed-up')
    echo "$least to $most"
}
source=$(published oktopk-text.csv source subject='balanced against naive reduce' quantity='smallest speed-up')
naive=$(interval 'balanced against naive reduce')
direct=$(interval 'balanced against direct allgatherv')
rm -f "$out"/points-*
against measured
for kind in bert clustered lstm; do
    case $kind in
    bert) pattern=fitted:results/measured/profiles/bert-base-p4-0.01 prefix=bert- ;;
    clustered) pattern=clustered prefix='' ;;
    lstm) pattern=fitted:results/measured/profiles/lstm-ptb-p8-$density prefix=lstm- ;;
    esac
    for P in $ranks; do
        item="BERT's n, $kind, P = $P"
        run "${prefix}whole" "$P" "$pattern"
        run "${prefix}regions" "$P" "$pattern" regions
        run "${prefix}both" "$P" "$pattern" regions,balance
        ours=$(calc "$(seconds "${prefix}regions" "$P") / $(seconds "${prefix}whole" "$P")")
        claim
        [ $kind != bert ] || claim oktopk-regions
        direction 'full: at least 1'
        row "$item" 'equal regions over balanced ones' x "$naive" "$source" "$ours" simulated 'full: in range'
        printf '%s %s\n' "$P" "$ours" >>"$out/points-$kind-regions"
        ours=$(calc "$(seconds "${prefix}both" "$P") / $(seconds "${prefix}regions" "$P")")
        claim
        [ $kind != bert ] || claim oktopk-balancing
        if holds "abs($ours - 1) < 1e-6"; then
            row "$item" 'all-gather without balancing over with, equal regions' x "$direct" "$source" '' simulated none \
                'no rank ever held four times the mean: balancing did not act'
        else
            direction 'full: at least 1'
            row "$item" 'all-gather without balancing over with, equal regions' x "$direct" "$source" "$ours" simulated 'full: in range'
            printf '%s %s\n' "$P" "$ours" >>"$out/points-$kind-balance"
        fi
    done
done
for kind in bert clustered lstm; do
    [ ! -f "$out/points-$kind-regions" ] || block "equal regions, $kind" <"$out/points-$kind-regions"
    [ ! -f "$out/points-$kind-balance" ] || block "direct all-gather, $kind" <"$out/points-$kind-balance"
done >"$out/.series"
{
    for side in regions balance; do
        case $side in regions) range=$naive name=reduction ;; *) range=$direct name=all-gather ;; esac
        for P in $ranks; do echo "$P ${range% to *} ${range#* to }"; done | band "paper, $name alone: $range"
    done
    cat "$out/.series"
} >"$out/figure.dat"
rm -f "$out/.series"
rm -f "$out"/points-*
figure figure.png "$out/figure.dat" lines.gp title="Ok-Topk without balancing, n = $n, simulated" xlabel='P [ranks]' ylabel='time over that with balancing' \
    logx=2 xformat=%g yrange='0:*' note='the paper has the parts of the exchange alone, this the whole exchange'
finish
