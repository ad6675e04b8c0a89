#!/bin/sh
# cli_diloco.sh: training in rounds of local steps (--algo diloco, sparseloco): a run that is resumed in the midst of a round ends with
# the same bits, at any number of ranks; only the last step of a round sends; one step in a round trains as dense does; what
# the first lines, a dry run and the log say of it.
# shellcheck disable=SC2086 # lists of arguments
# long: many runs of many ranks
. tests/lib/tap.sh
small="--data synthetic:240x24 --batch 2 --steps 12 --lr-warmup 0"
common="$small --eval-every 0 --checkpoint-every 5 --lr 0.05"

# The checkpoints are after steps 5 and 10, the rounds end after steps 4, 8 and 12.
for p in 1 2 3 4 5 7 8; do
    resumes "--algo diloco, P = $p, resumes in the midst of a round" $p --algo diloco --average-every 4
    check "P = $p: replicas are equal at the end" [ "$(json "$whole/run.jsonl" summary replicas_identical)" = true ]
done
resumes "the last round is a short one" 3 --algo diloco --average-every 7 --outer-lr 0.5 --outer-momentum 0.8
resumes "no outer momentum" 3 --algo diloco --average-every 4 --outer-momentum 0
resumes "AdamW inside" 3 --algo diloco --average-every 4 --optimiser adamw
resumes "in fp16, with error feedback" 3 --algo diloco --average-every 4 --wire fp16
resumes "over parts of a step" 2 --algo diloco --average-every 4 --accumulate 2
resumes "replicas are compared after each round" 2 --algo diloco --average-every 3 --check-replicas 3
resumes "rounds longer than the run" 2 --algo diloco

for p in 1 2 3 5 8; do
    resumes "--algo sparseloco, P = $p, resumes in the midst of a round" $p --algo sparseloco --average-every 4
    check "P = $p: replicas are equal at the end of sparseloco" [ "$(json "$whole/run.jsonl" summary replicas_identical)" = true ]
done
check "what decay takes from the residual is said" grep -q 'gradient lost .*--residual-decay below 1' "$W/out"
resumes "sparseloco loses nothing without decay" 3 --algo sparseloco --average-every 4 --residual-decay 1
check "and says nothing of it" [ "$(grep -c 'gradient lost' "$W/out")" -eq 0 ]
resumes "sparseloco with AdamW inside and an outer momentum" 4 --algo sparseloco --average-every 4 --optimiser adamw --outer-lr 0.4 --outer-momentum 0.5

# sent DIR: bytes that a rank sent, step by step
sent() { sed -n 's/^{"type":"step".*"bytes_sent_mean":\([0-9.e+]*\),.*/\1/p' "$1/run.jsonl" | tr '\n' ' '; }
start 3 $common --algo dense --momentum 0 --out "$W/dense"
each=$(sent "$W/dense" | cut -d ' ' -f 1)
start 3 $common --algo diloco --average-every 5 --momentum 0 --out "$W/five"
why="sent $(sent "$W/five")"
check "only the last step of a round sends" [ "$(sent "$W/five")" = "0 0 0 0 $each 0 0 0 0 $each 0 $each " ]

# 65 whole chunks of 4096 entries in 128 bytes and one of 3482 in 116, to each of two others.
start 3 $common --algo sparseloco --average-every 6 --out "$W/sparse"
why="sent $(sent "$W/sparse")"
check "sparseloco sends 14 bits an entry and a table a chunk" [ "$(sent "$W/sparse")" = "0 0 0 0 0 $(((65 * 128 + 116) * 2)) 0 0 0 0 0 $(((65 * 128 + 116) * 2)) " ]

# entries DIR: that a rank sent, that are in the sum, and its part of all parameters, step by step
entries() { sed -n 's/^{"type":"step".*"local_nnz_mean":\([^,]*\),.*"global_nnz":\([^,]*\),"density_real":\([^,]*\),.*/\1:\2:\3/p' "$1/run.jsonl" | tr '\n' ' '; }
# counted DIR EVERY ENTRIES: those of a step that sends nothing are none, those of the end of a round are these
counted() {
    why="entries $(entries "$1"), not $3"
    entries "$1" | tr ' ' '\n' | awk -v every="$2" -v n="$3" 'NF { want = NR % every == 0 || NR == 12 ? n : "0:0:0"; if (index($1 ":", want ":") != 1) bad = 1; steps++ } END { exit bad || steps != 12 }'
}
n=$(json "$W/five/run.jsonl" header parameters)
check "entries are counted where they are sent" counted "$W/five" 5 "$n:$n:1"
check "sparseloco's likewise" counted "$W/sparse" 6 "$((65 * 64 + (3482 + 63) / 64))"

# The first losses; rounding grows from step to step.
losses() { sed -n 's/^{"type":"step".*"loss":\([-0-9.e+]*\),.*/\1/p' "$1/run.jsonl" | tr '\n' ' '; }
near() {
    why="$1 and $2"
    awk -v a="$1" -v b="$2" 'BEGIN { n = split(a, x, " "); m = split(b, y, " "); for (i = 1; i <= 4; i++) { d = x[i] - y[i]; if (d < 0) d = -d; if (d > 1e-3 * y[i]) exit 1 } exit n != m || n < 4 }'
}
start 3 $common --algo diloco --average-every 1 --outer-lr 1 --outer-momentum 0 --momentum 0 --out "$W/one"
check "rounds of one step of plain SGD train as dense does" near "$(losses "$W/one")" "$(losses "$W/dense")"
check "and rounds of five do not" [ "$(losses "$W/five" | cut -d ' ' -f 6-9)" != "$(losses "$W/dense" | cut -d ' ' -f 6-9)" ]
start 3 $common --algo fedavg --average-every 2 --out "$W/fedavg"
check "fedavg's are those of its averages" counted "$W/fedavg" 2 "$n:$n:1"
start 3 $common --algo diloco --average-every 2 --outer-lr 1 --outer-momentum 0 --out "$W/plain"
check "an outer step of rate 1 without momentum averages as fedavg does" near "$(losses "$W/plain")" "$(losses "$W/fedavg")"

# Between two rounds an evaluation is of the average, after one of what all ranks have.
start 2 $small --algo diloco --average-every 4 --eval-every 0.05 --out "$W/often"
check "evaluations between rounds" [ "$(grep -c '"type":"eval"' "$W/often/run.jsonl")" -gt 3 ]
start 2 evaluate "$W/often"
check "the last one again, from its checkpoint" grep -q "$(json "$W/often/run.jsonl" eval test_loss | cut -c1-5)" "$W/out"
start 2 $small --algo diloco --average-every 6 --init-from "$W/often" --out "$W/from"
check "a run that begins with another's parameters" [ -n "$(hash_of "$W/from")" ]

start 2 $small --algo diloco --average-every 6 --dry-run
check "a dry run says what a round sends" grep -q 'traffic .* a round of 6 steps' "$W/err" "$W/out"
check "and what it is" grep -q 'exchange  diloco; rounds of 6 local steps, outer rate 0.7, momentum 0.9$' "$W/err" "$W/out"

check "an outer rate without rounds" mistaken '--outer-lr has no effect without --algo diloco' 2 $small --outer-lr 0.5
check "replicas compared between rounds" mistaken 'take a multiple of --average-every 4' 2 $small --algo diloco --average-every 4 --check-replicas 3
start 2 $small --algo sparseloco --dry-run
check "sparseloco's own rounds" grep -q 'exchange  sparseloco, with error feedback; rounds of 30 local steps, outer rate 1, momentum 0$' "$W/err" "$W/out"
check "a decay above 1" mistaken '--residual-decay' 2 $small --algo sparseloco --residual-decay 1.5
check "an outer rate of 0" mistaken '--outer-lr' 2 $small --algo diloco --outer-lr 0
check "an outer momentum of 1" mistaken '--outer-momentum' 2 $small --algo diloco --outer-momentum 1
finish
