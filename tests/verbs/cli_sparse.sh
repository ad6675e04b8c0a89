#!/bin/sh
# cli_sparse.sh: the device that keeps lists of what is not zero, from the command line: the benches on it are right, and
# nothing trains there.
. tests/lib/tap.sh

# all_right NAME: every row of the last table ends with 0 wrong, and there are some
all_right() {
    # shellcheck disable=SC2016 # the dollars are awk's
    check "$1" awk '/^[# ]*#/ { next } NF > 5 { rows++; if ($NF != 0) bad = 1 } END { exit bad || !rows }' "$W/out"
}

start 1 list
check "list shows it" sh -c "sed -n '/^Devices/,\$p' '$W/out' | grep -q '^  sparse  *yes .*simulations'"
start 1 --version
check "--version names no backend of it" sh -c "! grep -q '^sparse ' '$W/out'"

for p in 1 2 3 5; do
    start $p bench --device sparse --algo all --n 2000,5 --density 0.01,1 --warmup 1 --repeat 1
    check "bench on $p ranks exits with 0" [ $? -eq 0 ]
    all_right "bench on $p ranks: nothing is wrong"
done
check "bench names the device" grep -q '^# device sparse: lists in host memory$' "$W/out"
start 4 bench --device sparse --algo all --n 1000 --ranks-per-node 2 --warmup 0 --repeat 1 --wire packed
check "bench on nodes of two exits with 0" [ $? -eq 0 ]
all_right "bench on nodes of two: nothing is wrong"
# words ARGS...: algorithm and words of every row
words() {
    start 2 bench --algo topka,gtopk,oktopk --n 3000 --density 0.01 --warmup 1 --repeat 2 --json "$@"
    sed -n 's/.*"algo":"\([a-z]*\)".*"words_sent_mean":\([^,]*\),.*/\1 \2/p' "$W/out"
}
words --device cpu > "$W/cpu"
words --device sparse > "$W/sparse"
check "the rows say which device" [ "$(grep -c '"device":"sparse"' "$W/out")" -eq 3 ]
check "as many words as from arrays" sh -c "[ -s '$W/cpu' ] && cmp -s '$W/cpu' '$W/sparse'"

start 1 bench select --device sparse --n 30000,17 --density 0.01,1 --repeat 2
check "bench select exits with 0" [ $? -eq 0 ]
all_right "bench select: nothing is wrong"
start 1 bench select --device sparse --n 3000 --select exact --density 0.01 --repeat 2 --json
check "bench select says which device" grep -q '"device":"sparse","device_about":"lists in host memory".*"missed":0,"wrong":0' "$W/out"

tiny="--data synthetic:64x16 --batch 1 --steps 1"
for p in 1 3; do
    # shellcheck disable=SC2086
    check "training on $p ranks is refused" unmade "$W/run" silent mistaken '--device sparse holds gradients for bench' $p $tiny --device sparse --out "$W/run"
done
check "bench net is refused" silent mistaken_alone 'bench net: --device sparse holds gradients for bench' bench net --device sparse
check "a device that is not there: it is among those that are" silent mistaken_alone 'there are: auto, cpu, cuda, sparse' bench select --device spars
# shellcheck disable=SC2086
start 1 $tiny --device auto --eval-every 0 --out "$W/auto"
check "auto never takes it" sh -c "[ $? -eq 0 ] && ! head -n 1 '$W/auto/run.jsonl' | grep -q '\"device\":\"sparse\",\"device_about\"'"
start 1 bench select --device auto --n 100 --density 0.1 --select exact --repeat 1 --json
check "nor does that of a bench" sh -c "[ -s '$W/out' ] && ! grep -q '\"device\":\"sparse\"' '$W/out'"
finish
