#!/bin/sh
# cli_auto.sh: train --algo auto by the real program: what it takes is what the record says, has the bits of the run that
# asks for it by name, also killed and resumed; other options keep their say in whom it may take; every mistake: one line.
# (Which one a network calls for is comm_best.c's: here, on one machine, times decide.)
# shellcheck disable=SC2046,SC2086 # lists of arguments
. tests/lib/tap.sh
common="--model lstm --hidden 10 --bptt 4 --batch 2 --device cpu --data synthetic-text:1000x100x100 --steps 12 --eval-every 0 --checkpoint-every 5 --lr-warmup 0 --dropout 0"
sparse="--density 0.02 --density-warmup none"

# -- what a run's log says of it ------------------------------------------------------------------------------------------
record() { grep '^{"type":"auto"' "$1/run.jsonl"; }
# taken DIR: "ALGO WIRE", wire null where none travels
taken() { record "$1" | sed -n 's/.*"takes":{"algo":"\([^"]*\)","wire":"\{0,1\}\([^",}]*\)"\{0,1\}}.*/\1 \2/p'; }
# by_name DIR: the options that ask for it by name
by_name() { taken "$1" | awk '{ print "--algo", $1 ($2 == "null" ? "" : " --wire " $2) }'; }
# for_sparse DIR: $sparse, where what was taken has a use for it
for_sparse() {
    of_taken=$(taken "$1")
    if row_says "${of_taken% *}" sparse; then echo "$sparse"; fi
}
# rows DIR predicted|tried: a line each, "ALGO WIRE ..."
rows() { record "$1" | sed "s/.*\"$2\":\\[//; s/}\\],\"t.*//" | tr '{' '\n' | sed -n 's/"algo":"\([^"]*\)","wire":"\{0,1\}\([^",}]*\)"\{0,1\},/\1 \2 /p'; }
config() { sed -n "s/^{\"type\":\"header\".*\"$2\":\"\\([^\"]*\\)\".*/\\1/p" "$1/run.jsonl"; }

# runs NAME DIR P ARGS...: it takes something, says so in the log and on the screen, and runs on with it
runs() {
    runs_name=$1 runs_dir=$2 runs_p=$3
    shift 3
    start "$runs_p" $common "$@" --out "$runs_dir"
    why="status $?: $(head -c 300 "$W/err")"
    said=$(sed -n 's/^  auto .*; takes //p' "$W/out")
    recorded=$(taken "$runs_dir")
    if [ -n "$said" ] && [ "$said" = "${recorded% null}" ] && [ "$(config "$runs_dir" algo)" = "${recorded% *}" ] &&
        [ "$(config "$runs_dir" algo_asked)" = auto ] && [ -n "$(hash_of "$runs_dir")" ]; then
        ok "$runs_name (${recorded})"
    else
        not_ok "$runs_name" "said $said, recorded $recorded, $why"
    fi
}
# same_by_name NAME DIR P ARGS...: the run that asks for what DIR's took has its bits
named=0
same_by_name() {
    named=$((named + 1))
    name=$1 dir=$2 p=$3
    shift 3
    start "$p" $common $(by_name "$dir") "$@" --out "$W/named$named"
    check "$name" [ "$(hash_of "$W/named$named")" = "$(hash_of "$dir" | sed 's/^$/no hash/')" ]
}

# -- one rank and several -------------------------------------------------------------------------------------------------
runs "one rank takes dense" "$W/p1" 1 --algo auto
check "one rank: no network, nothing tried" sh -c "grep -q '\"network\":null.*\"tried\":\\[\\],\"takes\":{\"algo\":\"dense\"' '$W/p1/run.jsonl'"
same_by_name "one rank: the bits of --algo dense" "$W/p1" 1
for P in 2 3 4; do
    runs "$P ranks take the fastest of three" "$W/p$P" $P --algo auto $sparse
    check "$P ranks: three are tried, two algorithms at least" [ "$(rows "$W/p$P" tried | wc -l) $(rows "$W/p$P" tried | cut -d ' ' -f 1 | sort -u | wc -l | sed 's/3/2/')" = "3 2" ]
    check "$P ranks: everything is predicted" [ "$(rows "$W/p$P" predicted | wc -l)" -eq "$(ranked_rows)" ]
    fastest=$(rows "$W/p$P" tried | sed 's/\([^ ]* [^ ]*\).*"median_s":\([^,]*\),.*/\2 \1/' | sort -g | head -n 1 | cut -d ' ' -f 2-)
    check "$P ranks: the fastest of them is taken" [ "$fastest" = "$(taken "$W/p$P")" ]
    asked=$(for_sparse "$W/p$P")
    same_by_name "$P ranks: the bits of the run that asks for it by name" "$W/p$P" $P $asked
done
check "local work is measured" [ "$(record "$W/p3" | grep -c '"local":{"selectors":\[{"select":"exact","entry_s":[0-9].*"formats":\[{"wire":"coo32","pack_entry_s":[0-9].*"seconds":')" = 1 ]
# local_of DENSE: of rows that send every entry as it is (1), or of the others (0): how many, the least and the most that they are charged
local_of() {
    rows "$W/p3" predicted | awk -v dense="$1" '/^(dense|dense-ovlp|torus2d) null / == dense { sub(/.*"local_s":/, ""); x = $0 + 0; if (!n++ || x < least) least = x; if (x > most) most = x } END { print n, least, most }'
}
adding=$(record "$W/p3" | sed -n 's/.*"sum_value_s":\([^,}]*\).*/\1/p')
n=$(record "$W/p3" | sed -n 's/.*"type":"auto","n":\([0-9]*\),.*/\1/p')
check "what sends every entry as it is is charged at most what adding takes" awk -v local="$(local_of 1)" -v all="$n $adding" 'BEGIN { split(local, x, " "); split(all, a, " "); exit !(x[1] == 3 && a[1] > 0 && a[2] > 0 && x[3] <= a[1] * a[2]) }'
check "all others something" awk -v local="$(local_of 0)" 'BEGIN { split(local, x, " "); exit !(x[1] > 10 && x[2] > 0) }'
check "one rank: no local work is measured" sh -c "grep -q '\"local\":null' '$W/p1/run.jsonl'"
check "who drifts is not predicted" [ "$(rows "$W/p3" predicted | grep -c '^fedavg')" -eq 0 ]
in_order() { rows "$W/p3" predicted | sed 's/.*"seconds":\([^}]*\).*/\1/' | awk '$1 + 0 < last + 0 { exit 1 } { last = $1 }'; }
check "predictions come fastest first" in_order
json_lines "every line of the log is JSON" "$W/p3/run.jsonl"
SPARSETRAIN_SYNC_SENDS=1 SPARSETRAIN_DELAY=5000 runs "sends that wait, a slow network" "$W/slow" 3 --algo auto $sparse

# -- resuming -------------------------------------------------------------------------------------------------------------
resumes "the checkpoint goes on with what was taken" 3 --algo auto $sparse
# shellcheck disable=SC2154 # set by resumes
check "resumed, nothing is tried again" [ "$(grep -c '"type":"auto"' "$again/run.jsonl") $(config "$again" algo)" = "0 $(config "$whole" algo)" ]
start 3 --resume "$whole/checkpoint-00000010" --algo auto $sparse --out "$W/typed"
check "resumed with the same options typed: the same bits" [ "$(hash_of "$W/typed")" = "$(hash_of "$whole" | sed 's/^$/no hash/')" ]

short=$common
common="$(echo "$common" | sed 's/--steps 12/--steps 1500/')"
for _ in 1 2 3; do # until it is killed while it trains
    rm -rf "$W/killed"
    "$MPIRUN" -np 2 "$PROGRAM" $common --algo auto $sparse --out "$W/killed" > "$W/out" 2> "$W/err" < /dev/null &
    job=$!
    for _ in $(seq 200); do
        ls "$W"/killed/checkpoint-*[0-9]/model.ckpt > /dev/null 2>&1 && break
        sleep 0.05
    done
    kill_ranks $job
    [ -z "$(hash_of "$W/killed")" ] && break
done
check "killed while it trains" [ -z "$(hash_of "$W/killed")" ]
start 2 --resume "$W/killed"
check "killed and resumed: one choice" [ "$(record "$W/killed" | wc -l)" -eq 1 ]
asked=$(for_sparse "$W/killed")
same_by_name "killed and resumed: the bits of the run that asks for it by name" "$W/killed" 2 $asked
common=$short

# -- what other options leave to choose from ------------------------------------------------------------------------------
# only NAME DIR FORBIDDEN NEEDED: no row of the predictions begins with FORBIDDEN (a pattern of grep -E), one with NEEDED
only() {
    check "$1" [ "$(rows "$2" predicted | grep -cE "^($3) ") $(rows "$2" predicted | grep -cE "^($4) " | sed 's/[1-9][0-9]*/some/')" = "0 some" ]
}
runs "--wire" "$W/wire" 2 --algo auto --wire packed-f32 $sparse
only "--wire: no other competes" "$W/wire" '[a-z0-9-]* (coo32|packed)' '[a-z0-9-]* packed-f32'
only "--wire: dense competes" "$W/wire" none 'dense null'
runs "--local-update" "$W/local" 2 --algo auto --local-update --average-every 4 $sparse
only "--local-update leaves no dense ones" "$W/local" '(dense|dense-ovlp|torus2d) .*' '(spardl|hitopk) packed'
same_by_name "--local-update: the bits of the run by name" "$W/local" 2 --local-update --average-every 4 $sparse
runs "--overlap layers" "$W/layers" 3 --algo auto --overlap layers --overlap-bytes 4000 $sparse
only "--overlap layers leaves out what overlaps by itself" "$W/layers" 'dense-ovlp .*' 'gtopk coo32'
check "--overlap layers: groups are counted" grep -q '"type":"auto".*"groups":[1-9]' "$W/layers/run.jsonl"
runs "--momentum-correction --momentum-masking" "$W/masking" 2 --algo auto --momentum-correction --momentum-masking $sparse
only "--momentum-masking leaves out hitopk and dense" "$W/masking" '(dense|hitopk) .*' 'topka packed'
same_by_name "--momentum-masking: the bits of the run by name" "$W/masking" 2 --momentum-correction --momentum-masking $sparse
runs "--dense-slices" "$W/slices" 2 --algo auto --dense-slices bias $sparse
only "--dense-slices leaves out dense" "$W/slices" '(dense|torus2d) .*' 'gtopk packed'
same_by_name "--dense-slices: the bits of the run by name" "$W/slices" 2 --dense-slices bias $sparse
runs "--select-scope layer" "$W/scope" 2 --algo auto --select-scope layer --select reuse $sparse
only "--select-scope layer leaves out who selects in parts of its own" "$W/scope" '(spardl|micro|hitopk) .*' 'gtopk packed'
check "--select: used by who takes one" [ "$(config "$W/scope" select)" = reuse ]
runs "--gtopk-residual paper" "$W/paper" 2 --algo auto --gtopk-residual paper $sparse
only "who loses gradient is left out" "$W/paper" 'gtopk .*' 'gtopk-naive packed'
runs "--feedback off" "$W/feedback" 2 --algo auto --feedback off $sparse
only "--feedback off leaves out what would lose what is rounded off" "$W/feedback" '(dense|dense-ovlp|torus2d) (bf16|fp16)' 'dense null'
runs "parameters of other algorithms" "$W/tau" 2 --algo auto --tau 8 --oktopk-bucket 2 --ranks-per-node 1 --dense-steps 2 $sparse
only "with nodes of one rank hitopk competes" "$W/tau" none 'hitopk packed'
took=$(taken "$W/tau") asked= # what of these parameters it has a use for
if row_says "${took% *}" sparse; then
    asked="--dense-steps 2 $sparse"
elif row_says "${took% *}" rounds; then # onebit or qsgd, which a busy machine may call for
    asked="--dense-steps 2"
fi
if row_says "${took% *}" by_node; then asked="$asked --ranks-per-node 1"; fi
if [ "${took% *}" = oktopk ]; then asked="$asked --tau 8 --oktopk-bucket 2"; fi
same_by_name "parameters that concern it: the bits of the run by name" "$W/tau" 2 $asked

runs "nodes of two ranks" "$W/nodes" 4 --algo auto --ranks-per-node 2 $sparse
check "both networks are fitted" grep -q '^  auto  *alpha [^ ]* us, beta [^ ]* ns/word (inside a node [^ ]* us, [^ ]* ns); predicted ' "$W/out"
check "the record has the nodes" sh -c "grep -q '\"type\":\"auto\".*\"nodes\":2,\"ranks_per_node\":2,' '$W/nodes/run.jsonl'"

# -- mistakes -------------------------------------------------------------------------------------------------------------
# wrong NAME TEXT P ARGS...
wrong() {
    wrong_name=$1 wrong_text=$2 wrong_p=$3
    shift 3
    check "$wrong_name" mistaken "$wrong_text" "$wrong_p" $common "$@" --out "$W/wrong"
}
wrong "what is fedavg's alone" "--average-every has no effect without --local-update" 2 --algo auto --average-every 5
wrong "masking without correction" "--momentum-masking has no effect without --momentum-correction" 2 --algo auto --momentum-masking
wrong "two that exclude each other" "cannot be combined" 2 --algo auto --momentum-correction --local-update
wrong "ranks per node that do not divide" "--ranks-per-node 2 does not divide the 3 ranks" 3 --algo auto --ranks-per-node 2
wrong "no such slice" "no slice of the model fits" 2 --algo auto --dense-slices nosuch
wrong "no such technique" "--oktopk-off has no \"nosuch\"" 2 --algo auto --oktopk-off nosuch
wrong "a warm-up that is none" "density warm-up \"x\"" 2 --algo auto --density-warmup x
wrong "another mistake is said as ever" "give one of them" 2 --algo auto --epochs 1
wrong "no such algorithm" "there are: dense" 2 --algo automatic
check "the bench has no auto" mistaken "auto" 2 bench --algo auto --n 1000:1000:2
finish
