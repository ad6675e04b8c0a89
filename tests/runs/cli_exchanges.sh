#!/bin/sh
# cli_exchanges.sh: training with every algorithm, every selector, every wire format and each modifier: it runs, its log
# holds what it should, and a run resumed from a checkpoint in its middle ends with the same bits as one left alone.
# shellcheck disable=SC2086,SC2016 # lists of arguments; programs for awk
# long: most of a minute and more
. tests/lib/tap.sh
steps="--steps 12 --eval-every 0 --checkpoint-every 5 --lr-warmup 0"
images="--data synthetic:240x24 --batch 4 --lr 0.05 $steps"
common="$small_net $steps --lr 1"
# of_images COMMAND...: with ResNet-20, whose layers make many groups
of_images() {
    small=$common common=$images
    "$@"
    common=$small
}
sparse="--density 0.01 --density-warmup none"

# has NAME DIR KEY: some step of the log has this key
has() { check "$1" grep -q "^{\"type\":\"step\".*\"$3\":" "$2/run.jsonl"; }
# sent DIR: bytes and messages of each step
sent() { sed -n 's/^{"type":"step".*"bytes_sent_mean":\([0-9.e+]*\),.*"messages_sent_mean":\([0-9.e+]*\),.*/\1 \2/p' "$1/run.jsonl"; }

for algo in $(names_of EXCHANGE comm/algorithms/exchanges.def); do
    options=
    if row_says "$algo" sparse; then options=$sparse; fi
    # Ranks that spin, as those of users do, take a core from those that compute: two algorithms of them are enough here.
    case $algo in
    dense | oktopk) unset SPARSETRAIN_WAIT ;;
    *) export SPARSETRAIN_WAIT=sleep ;;
    esac
    resumes "--algo $algo resumes to the same bits" 3 --algo "$algo" $options
done
export SPARSETRAIN_WAIT=sleep
for select in $(names_of SELECTOR topk/selectors/selectors.def); do
    resumes "--select $select resumes to the same bits" 2 --algo topka --select "$select" $sparse
done
# enough DIR: in so many of the 12 steps more than 3k/4 entries were selected
enough() { sed -n 's/.*"k":\([0-9]*\),.*"selected_mean":\([0-9.e+]*\),.*/\1 \2/p' "$1/run.jsonl" | awk '4 * $2 > 3 * $1' | grep -c .; }
resumes "gaussiank" 2 --algo gaussiank --density 0.3 --density-warmup none
check "its threshold is adjusted in every step" [ "$(enough "$whole")" -eq 12 ]
resumes "gaussiank --gaussian-adjust off" 2 --algo gaussiank --density 0.3 --density-warmup none --gaussian-adjust off
check "too few entries pass then" [ "$(enough "$whole")" -eq 0 ]
for wire in $(names_of WIRE comm/wire/wires.def); do
    resumes "--wire $wire resumes to the same bits" 3 --algo gtopk --wire "$wire" $sparse
done
resumes "oktopk with short periods and without two techniques" 4 --algo oktopk --tau 4 --tau-prime 3 --oktopk-off rotation,balance $sparse
resumes "--oktopk-thresholds paper" 4 --algo oktopk --tau-prime 5 --oktopk-thresholds paper $sparse
# steps_with PATTERN: the steps whose row has it
steps_with() { sed -n "s/^{\"type\":\"step\",\"step\":\([0-9]*\),.*$1.*/\1/p" "$whole/run.jsonl" | paste -s -d ' ' -; }
check "it evaluates every 5 steps, globally" [ "$(steps_with '"evaluated_global":"due"')" = "1 6 11" ]
check "and on all ranks" [ "$(steps_with '"evaluated_local":{"due":4}')" = "1 6 11" ]
check "and in no step between" [ "$(steps_with '"evaluated_local":{},"evaluated_global":""')" = "2 3 4 5 7 8 9 10 12" ]
resumes "hitopk on emulated nodes" 4 --algo hitopk --ranks-per-node 2 $sparse
resumes "torus2d on emulated nodes" 4 --algo torus2d --ranks-per-node 2
resumes "--local-update with averages" 3 --algo gtopk --local-update --average-every 4 $sparse
# Of nodes: the ranks of a node hold the same at every step, whatever the number of nodes; with nodes of one rank it is the
# local update of ranks, and where all ranks are one node the dense mean.
# The first losses; rounding grows from step to step.
losses() { sed -n 's/^{"type":"step".*"loss":\([-0-9.e+]*\),.*/\1/p' "$1/run.jsonl" | tr '\n' ' '; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { n = split(a, x, " "); m = split(b, y, " "); for (i = 1; i <= 4; i++) { d = x[i] - y[i]; if (d < 0) d = -d; if (d > 1e-3 * y[i]) exit 1 } exit n != m || n < 4 }'; }
for nodes in 1 2 4; do
    resumes "--local-update of $nodes nodes" 4 --algo hitopk --select exact --ranks-per-node $((4 / nodes)) --local-update --average-every 4 --check-replicas 1 $sparse
    if [ $nodes -eq 1 ]; then node_losses=$(losses "$whole"); fi
    if [ $nodes -eq 2 ]; then check "2 nodes: the first lines say that nodes drift" grep -q 'local update of each node; parameters averaged every 4 steps' "$W/out"; fi
done
nodes_of_one=$(hash_of "$whole")
start 4 $common --algo topka --local-update --average-every 4 $sparse --out "$W/ranks"
check "nodes of one rank: the bits of topka's" [ -n "$nodes_of_one" -a "$nodes_of_one" = "$(hash_of "$W/ranks")" ]
start 4 $common --algo dense --out "$W/dense"
check "one node of all ranks: the dense mean" near "$node_losses" "$(losses "$W/dense")"
of_images resumes "--local-update of nodes, by layers, packed, with dense slices and dense steps" 4 --algo hitopk --ranks-per-node 2 --local-update --average-every 5 --check-replicas 1 --overlap layers --overlap-bytes 200000 --wire packed --dense-slices bias --dense-steps 2 $sparse
resumes "--local-update of nodes with accumulation, adam and a linear warm-up" 4 --algo hitopk --ranks-per-node 2 --local-update --average-every 5 --check-replicas 2 --accumulate 2 --optimiser adam --density 0.01 --density-warmup linear:6
resumes "fedavg with averages in between" 3 --algo fedavg --average-every 7
of_images resumes "--overlap layers over oktopk" 3 --algo oktopk --tau-prime 3 --overlap layers --overlap-bytes 100000 $sparse
has "--overlap layers logs what was hidden" "$whole" hidden_seconds
of_images resumes "--overlap layers over micro" 2 --algo micro --overlap layers --overlap-bytes 300000 $sparse
of_images resumes "--overlap layers over randomk, with dense steps and slices" 2 --algo randomk --overlap layers --overlap-bytes 300000 --dense-steps 2 --dense-slices bias $sparse
of_images resumes "powersgd of rank 4, by layers, after dense steps" 3 --algo powersgd --powersgd-rank 4 --overlap layers --overlap-bytes 100000 --dense-steps 3
check "its first steps alone are dense" [ "$(sent "$whole" | awk '{ if ($1 > 1e6) printf "%d ", NR }')" = "1 2 3 " ]
resumes "1-bit Adam: onebit after dense steps, with a variance that is held" 3 --algo onebit --optimiser adam --dense-steps 4 --freeze-variance-after 4
check "of which the log says so as a number" [ "$("$PROGRAM" rows "$whole" --where 'config.freeze-variance-after>3' --keys type)" = header ]
resumes "demo with momentum inside, few coefficients and means" 2 --algo demo --demo-k 3 --demo-decay 0.9 --demo-sign off --momentum 0.9
check "what decay takes from the momentum is said" grep -q 'gradient lost .*--demo-decay below 1' "$W/out"
of_images resumes "--overlap layers over demo, with AdamW" 3 --algo demo --overlap layers --overlap-bytes 300000 --optimiser adamw
of_images resumes "dense-ovlp in small buckets" 3 --algo dense-ovlp --overlap-bytes 65536
has "dense-ovlp logs what was hidden" "$whole" hidden_seconds
resumes "--audit does not change the run" 2 --algo topka --select dgc --audit 4 $sparse
has "--audit logs the exact threshold" "$whole" threshold_exact_mean
resumes "--audit of oktopk" 3 --algo oktopk --tau-prime 3 --audit 2 $sparse
has "--audit logs the exact global threshold of oktopk" "$whole" threshold_global_exact
of_images resumes "--audit of every group of layers" 2 --algo topka --select dgc --audit 4 --overlap layers --overlap-bytes 300000 $sparse
check "only in its steps" [ "$(grep -c threshold_exact_mean "$whole/run.jsonl")" -eq 3 ]

# -- xi of Assumption 1 ------------------------------------------------------------------------------------------------
# xis DIR: its values, one a line
xis() { sed -n 's/^{"type":"step".*"xi":\([-0-9.e+a-z]*\),.*/\1/p' "$1/run.jsonl"; }
# all_xis DIR COUNT CONDITION: there are COUNT of them, and for each $1 CONDITION holds
all_xis() {
    why="xi in $1: $(xis "$1" | tr '\n' ' ')"
    xis "$1" | awk -v count="$2" "!($3) { wrong = 1 } END { exit wrong || NR != count }"
}
resumes "--log-xi of oktopk" 3 --algo oktopk --log-xi 4 $sparse
check "a positive number in steps 1, 5 and 9" all_xis "$whole" 3 '$1 > 0 && $1 < 30'
check "steps 1, 5 and 9" [ "$(sed -n 's/^{"type":"step","step":\([0-9]*\),.*"xi":.*/\1/p' "$whole/run.jsonl" | paste -s -d ' ' -)" = "1 5 9" ]
start 3 $common --algo oktopk $sparse --out "$W/without-xi"
check "--log-xi does not change the run" [ "$(hash_of "$whole")" = "$(hash_of "$W/without-xi")" ]
check "every step counts its traffic" [ "$(sent "$whole" | grep -c .)" -eq 12 ]
check "nor what is counted as the algorithm's" [ "$(sent "$whole")" = "$(sent "$W/without-xi")" ]
check "without it the log has none" all_xis "$W/without-xi" 0 1
of_images resumes "--log-xi with --overlap layers" 3 --algo gtopk --overlap layers --overlap-bytes 100000 --log-xi 1 $sparse
check "--overlap layers: in every step" all_xis "$whole" 12 '$1 > 0 && $1 < 30'
start 1 $common --algo topka $sparse --log-xi 1 --out "$W/alone"
check "one rank: its k largest are those of the sum" all_xis "$W/alone" 12 '$1 == 0'
start 3 $common --algo oktopk --density 1 --density-warmup none --log-xi 3 --out "$W/everything"
check "density 1: nothing is left out" all_xis "$W/everything" 4 '$1 >= 0 && $1 < 1e-5'
start 2 $common --algo topka $sparse --dense-steps 5 --dense-slices bias --log-xi 1 --out "$W/dense-first"
check "none in dense steps" all_xis "$W/dense-first" 7 '$1 > 0 && $1 < 30'

# -- a loop over algorithms that gives the same options to all -------------------------------------------------------------
loop="--density 0.02 --density-warmup 0.1 --dense-slices bias --select reuse --wire packed --tau 5 --oktopk-bucket 3 --gtopk-residual conserve --ranks-per-node 1
    --overlap layers --overlap-bytes 12000 --average-every 6 --log-xi 5 --audit 3"
for algo in $(names_of EXCHANGE comm/algorithms/exchanges.def); do
    start 2 $common --algo "$algo" $loop --out "$W/loop-$algo"
    status=$?
    check "$algo: what it has no use for is ignored, and named in one line" sh -c "[ $status -eq 0 ] && [ \$(grep -c '^  ignored   --.*, without effect with --algo $algo\$' '$W/out') -eq 1 ]"
done
# like ALGO ARGS...: it is the run of these options
like() {
    algo=$1
    shift
    start 2 $common --algo "$algo" "$@" --out "$W/like-$algo"
    why="$(hash_of "$W/loop-$algo") and $(hash_of "$W/like-$algo")"
    [ -n "$(hash_of "$W/like-$algo")" ] && [ "$(hash_of "$W/loop-$algo")" = "$(hash_of "$W/like-$algo")" ]
}
check "dense has the bits of dense" like dense --overlap layers --overlap-bytes 12000
check "micro those of the options that it has a use for" like micro --density 0.02 --density-warmup 0.1 --dense-slices bias --wire packed --overlap layers --overlap-bytes 12000
check "fedavg likewise" like fedavg --average-every 6
header_of() { head -n 1 "$W/$1/run.jsonl" | sed 's/"run":.*"data_crc32"//; s/"ignored":"[^"]*",//; s/"out":"[^"]*"//; s/"log-xi":[0-9]*//'; }
check "the log's configuration is what is used" [ "$(header_of loop-dense)" = "$(header_of like-dense)" ]
check "and says what was ignored" grep -q '^{"type":"header".*"ignored":"--select, --density, --density-warmup, --dense-slices, --wire, --gtopk-residual, --tau, --oktopk-bucket, --ranks-per-node, --average-every, --audit and --log-xi"' "$W/loop-dense/run.jsonl"
start 2 --resume "$W/loop-dense" --algo dense $loop --steps 14
check "resumed with the same options" [ "$(json "$W/loop-dense/run.jsonl" summary step)" = 14 ]
start 2 --resume "$W/loop-micro" --algo micro $loop --steps 14
check "with a use for some of them" [ "$(json "$W/loop-micro/run.jsonl" summary step)" = 14 ]
check "which must be the checkpoint's" mistaken "made with --density 0.02, not 0.03" 2 --resume "$W/loop-micro" --algo micro --density 0.03 --select exact
check "as all must without the algorithm's name" mistaken "made with --density 0.005, not 0.1" 2 --resume "$W/loop-dense" --density 0.1

# -- gradients recorded in training, and a trace ---------------------------------------------------------------------------
check "--record and --trace with overlap" start 3 $images --out "$W/traced" --algo gtopk --overlap layers --overlap-bytes 100000 $sparse \
    --record "$W/gradients" --record-every 4 --trace "$W/trace.json"
check "three steps of three ranks are recorded" [ "$(wc -c < "$W/gradients")" -gt $((3 * 3 * 4 * 269722)) ]
check "the trace has both threads of the last rank" grep -q '"pid":2,"tid":1' "$W/trace.json"
check "recorded gradients replay in the bench" start 2 bench --algo gtopk,topka --pattern "real:$W/gradients" --repeat 2 --warmup 1
start 3 $common --algo gtopk $sparse --out "$W/recorded" --record "$W/again" && start 3 $common --algo gtopk $sparse --out "$W/unrecorded"
check "recording does not change the run" [ "$(hash_of "$W/recorded")" = "$(hash_of "$W/unrecorded")" ]

# refuses NAME P TEXT ARGS...: one line with this text, status 2, nothing written
refuses() {
    name=$1 ranks=$2 text=$3
    shift 3
    check "$name" unmade "$W/refused" mistaken "$text" "$ranks" --data synthetic:240x24 --batch 4 --steps 2 "$@" --out "$W/refused"
}
refuses "ranks-per-node that does not divide P" 3 "ranks-per-node" --algo hitopk --ranks-per-node 2
refuses "density 0" 2 "must be above 0" --algo gtopk --density 0
refuses "density above 1" 2 "at most 1" --algo gtopk --density 1.5
refuses "density that is no number" 2 "wants a number" --algo gtopk --density nan
refuses "a parameter without an algorithm" 2 "--density has no effect with --algo dense, which sends every entry; name another --algo" --density 0.1
refuses "--log-xi below 0" 2 "log-xi" --algo topka --log-xi -1
refuses "a record that exists" 2 "gradients" --algo gtopk --record "$W/gradients"
refuses "a trace that cannot be written" 2 "no/such" --algo gtopk --trace "$W/no/such/trace.json"
refuses "an unknown wire format" 2 "there are: coo32" --algo gtopk --wire zip

finish
