#!/bin/sh
# cli_prefix.sh: --stop-at: a run that ends early has the bits of the whole run up to there: parameters, losses, rates,
# densities, evaluations. It says that it is a prefix, and resumed it comes to the whole run's end. At P = 1, 2, 3.
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
# An epoch of 96 images has 12 / P steps. The rate ramps up over two epochs and falls twice, the density falls over three;
# evaluations come every 0.7 epochs, so that one of them is in the way of none of the stops below.
images="--data synthetic:96x24 --batch 8 --lr 0.01"
words="--model lstm --hidden 8 --bptt 4 --batch 2 --data synthetic-text:200x40x40"
whole="--epochs 4 --lr-warmup 2 --lr-schedule step:60%,80% --eval-every 0.7"

# steps DIR LAST, evaluations DIR LAST: what is the same in any run, of the rows up to that step
steps() { sed -n 's/^{"type":"step",\("step":\([0-9]*\),.*"global_nnz":[^,]*\),.*/\2 \1/p' "$W/$1/run.jsonl" | awk -v last="$2" '$1 <= last'; }
evaluations() { sed -n 's/^{"type":"eval",\("step":\([0-9]*\),.*\),"train_loss":.*/\2 \1/p' "$W/$1/run.jsonl" | awk -v last="$2" '$1 <= last'; }
# without STEP DIR: evaluations without the one at that step, which the whole run has not
without() { evaluations "$2" 999 | grep -v "^$1 "; }
same() {
    why="$1 and $2 differ, or are nothing"
    [ -n "$1" ] && [ "$1" = "$2" ]
}
is() { [ "$(json "$W/$1/run.jsonl" summary "$2")" = "$3" ]; }

# prefix NAME P STEPS OPTION...: of the first two of four epochs, each of STEPS steps
prefix() {
    name="$1, P = $2" p=$2 epoch=$3
    shift 3
    middle=$((2 * epoch))
    rm -rf "$W"/[a-z]*/
    start $p "$@" $whole --checkpoint-every $middle --out "$W/whole"
    check "$name: the whole run" is whole step $((4 * epoch))
    start $p "$@" $whole --stop-at 2 --out "$W/first"
    check "$name: --stop-at 2 ends with status 0" [ $? -eq 0 ]
    start $p --resume "$W/whole/checkpoint-$(printf %08d $middle)" --stop-at 2 --out "$W/middle"
    check "$name: the parameters of the whole run's checkpoint there" same "$(hash_of "$W/first")" "$(hash_of "$W/middle")"
    check "$name: its losses, rates and densities" same "$(steps first 999)" "$(steps whole $middle)"
    check "$name: its evaluations" same "$(without $middle first)" "$(evaluations whole $middle)"
    check "$name: and one where it stops" [ -n "$(evaluations first 999 | grep "^$middle ")" ]
    start $p --resume "$W/first"
    check "$name: resumed, the whole run's bits" same "$(hash_of "$W/first")" "$(hash_of "$W/whole")"
    check "$name: and its scores" same "$(without $middle first)" "$(evaluations whole 999)"
}
for p in 1 2 3; do
    prefix "dense" $p $((12 / p)) $images --algo dense
    prefix "gtopk" $p $((12 / p)) $images --algo gtopk --density 0.01 --density-warmup 0.4,0.2,0.1
done
# Replicas that drift apart stop between two averages, and are not averaged for it.
prefix "local updates of a text" 2 12 $words --algo topka --density 0.05 --local-update --average-every 7
prefix "fedavg on a text" 3 8 $words --algo fedavg --average-every 5
check "what was compared drifts" [ "$(json "$W/middle/run.jsonl" summary replicas_identical)" = null ]

# -- in stages, and what is said ---------------------------------------------------------------------------------------
rm -rf "$W"/[a-z]*/
run="$images --algo gtopk --density 0.01 --density-warmup 0.4,0.2,0.1 $whole"
start 2 $run --out "$W/whole"
start 2 $run --stop-at 1.3 --out "$W/first"
check "--stop-at 1.3 of epochs of 6 steps: 8 steps" is first step 8
check "the banner says so" grep -q '^  training  first 1.3 of 4 epochs: 8 of 24 steps of 2 x 8 images' "$W/out"
check "the end says so" grep -q 'this was  *the first 1.3 of 4 epochs' "$W/out"
check "and how to go on" grep -q -e "--resume $W/first  *the rest of this run" "$W/out"
check "the log's header has the stop and the whole length" sh -c "head -n 1 '$W/first/run.jsonl' | grep '\"stops_at\":8,' | grep -q '\"steps\":24,\"parameters\"'"
check "its summary says prefix, of 4 epochs" sh -c "tail -n 1 '$W/first/run.jsonl' | grep -q '\"completed\":false,\"prefix\":true,\"run_epochs\":4,'"
before=$(grep '"type":"eval","step":8,' "$W/first/run.jsonl")
start 2 --resume "$W/first" --stop-at 1.3
status=$?
check "there again: status 0" [ $status -eq 0 ]
check "and nothing is left to do but to evaluate, which the log has as it was" same "$(grep '"type":"eval","step":8,' "$W/first/run.jsonl")" "$before"
check "and the summary again" [ "$(json "$W/first/run.jsonl" summary test_loss)" != null ]
start 2 --resume "$W/first" --stop-at 2.6
check "a later stop" is first step 16
start 2 --resume "$W/first" --stop-at 4
check "a stop at the end: complete, no prefix" sh -c "tail -n 1 '$W/first/run.jsonl' | grep -q '\"completed\":true,\"prefix\":false,'"
check "after three stops the whole run's bits" same "$(hash_of "$W/first")" "$(hash_of "$W/whole")"
start 2 --resume "$W/first"
check "a complete run resumed: its scores again" same "$(json "$W/first/run.jsonl" summary test_loss)" "$(json "$W/whole/run.jsonl" summary test_loss)"
start 2 $images --algo dense --steps 24 --stop-at 2 --eval-every 0 --out "$W/steps"
check "--steps is a length, too" is steps step 12

# -- mistakes ----------------------------------------------------------------------------------------------------------
for p in 1 3; do
    check "beyond the end, P = $p" unmade "$W/new" mistaken "--stop-at 4.5 is beyond the end of the run, which has 4 epochs; leave it out, or give more --epochs" $p $run --stop-at 4.5 --out "$W/new"
done
check "beyond the steps" mistaken "--stop-at 2.5 is beyond the end of the run, which has 2 epochs; leave it out, or give more --steps" 1 $images --steps 24 --stop-at 2.5
check "no epochs" mistaken "--stop-at 0 is out of range" 2 $run --stop-at 0
check "before what was done" mistaken "has done 24 steps already, more than the 6 of --stop-at 1" 2 --resume "$W/first" --stop-at 1

# -- convergence.sh ----------------------------------------------------------------------------------------------------
# A CIFAR-10 of 40 images a file, of one byte each repeated.
name="convergence.sh --stop-at"
if command -v gnuplot > /dev/null 2>&1; then
    mkdir -p "$W/data/cifar-10-batches-bin"
    for file in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
        awk 'BEGIN { for (i = 0; i < 40; i++) { printf "%c", i % 9 + 1; for (j = 0; j < 3072; j++) printf "%c", 65 + i } }' > "$W/data/cifar-10-batches-bin/$file.bin"
    done
    # converge ARGUMENT...: of 200 images, 25 steps an epoch
    converge() {
        SPARSETRAIN_DATA=$W/data sh scripts/convergence.sh --algos "dense topka" --ranks 2 --batch 4 --epochs 4 --runs "$W/runs" --out "$W/page" "$@" > "$W/out" 2>&1
        why="status $?: $(tail -n 3 "$W/out")"
    }
    converge --stop-at 0.4
    check "$name: both runs stop there" [ "$(json "$W/runs/dense/run.jsonl" summary step)/$(json "$W/runs/topka/run.jsonl" summary step)" = 10/10 ]
    check "$name: the page says that it is a beginning" grep -q 'The first 0.4 of 4 epochs' "$W/page/README.md"
    converge --stop-at 0.4
    check "$name: not repeated" [ "$(grep -c '"header"' "$W/runs/topka/run.jsonl")" -eq 1 ]
    converge --stop-at 0.8
    check "$name: goes on to a later one" [ "$(json "$W/runs/topka/run.jsonl" summary step)" = 20 ]
    rm -rf "$W/runs"
    live_begin "$W/runs/dense"
    converge --stop-at 0.4
    check "$name: a run that is under way there is refused" grep -q "dense is in use: process $live on host" "$W/out"
    check "$name: and not harmed" live_end "$W/runs/dense"
    rm -rf "$W/runs/dense/checkpoint-"*
    mkdir "$W/runs/dense/checkpoint-00000003.tmp"
    touch "$W/runs/dense/checkpoint-00000003.tmp/model.ckpt"
    converge --stop-at 0.4
    check "$name: one that came to no checkpoint begins anew" [ "$(json "$W/runs/dense/run.jsonl" summary step)" = 10 ]
else
    skip "$name" "gnuplot is not installed"
fi
finish
