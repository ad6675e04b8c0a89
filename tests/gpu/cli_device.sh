#!/bin/sh
# cli_device.sh: the program on the device of SPARSETRAIN_TEST_DEVICE (else the CPU): a run of every kind of exchange
# gives the CPU's losses, two runs the same bits, and so does one that was interrupted; what explodes is named; every
# bench is right; logs and rows say which device it was.
# devices: cuda
# long: most of a minute and more
. tests/lib/tap.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
label=$device
[ -z "${SPARSETRAIN_TEST_EMULATED:-}" ] || label=hostcuda # rows made on the stand-in are no results of a GPU
# A small learning rate: roundings grow from step to step, the more the faster a network changes.
small="--data synthetic:64x16 --batch 2 --eval-every 0"
short="--steps 4 --lr 0.01 --lr-warmup 0"

# losses DIR: of the steps of a run, and of the test at its end
losses() { sed -n -e 's/^{"type":"step".*"loss":\([^,]*\),.*/\1/p' -e 's/^{"type":"summary".*"test_loss":\([^,]*\),.*/\1/p' "$1/run.jsonl"; }
# near A B: as many losses, each within a part in a thousand
near() {
    losses "$1" > "$W/a"
    losses "$2" > "$W/b"
    why="$1: $(tr '\n' ' ' < "$W/a") $2: $(tr '\n' ' ' < "$W/b")"
    paste "$W/a" "$W/b" | awk '{ d = $1 - $2; if (NF != 2 || d * d > 1e-6 * $2 * $2) bad = 1 } END { exit bad || NR != 5 }'
}
same() {
    why="$(hash_of "$1") $(hash_of "$2")"
    [ -n "$(hash_of "$1")" ] && [ "$(hash_of "$1")" = "$(hash_of "$2")" ]
}

# run P DIR ARGS...: on the device
run() {
    r_p=$1 r_out=$2
    shift 2
    # shellcheck disable=SC2086
    start "$r_p" $small --device "$device" --out "$W/$r_out" "$@"
}

# -- training: every way in which a gradient leaves the device and a sum comes back -----------------------------------
sparse="--density 0.05 --density-warmup none"
for p in 1 2 3; do
    for how in "dense" "dense-ovlp --overlap-bytes 100000" "dense --overlap layers --overlap-bytes 100000" "torus2d" "fedavg --average-every 2" \
        "gtopk $sparse --dense-steps 1" "topka $sparse --overlap layers --overlap-bytes 100000" "hitopk $sparse" \
        "oktopk $sparse --local-update --average-every 2"; do
        case $p$how in 1dense | 1gtopk* | 2* | 3dense | 3oktopk*) ;; *) continue ;; esac
        net=$small
        case $p$how in 3* | *gtopk* | *torus2d* | *fedavg* | *hitopk* | *oktopk*) net="$small_net --eval-every 0" ;; esac
        # shellcheck disable=SC2086
        start $p $net --device "$device" $short --algo $how --check-replicas 2 --out "$W/run"
        status=$?
        check "$how on $p ranks" [ $status -eq 0 ]
        if [ "$device" != cpu ] && [ $status -eq 0 ]; then
            # shellcheck disable=SC2086
            start $p $net $short --device cpu --out "$W/cpu" --algo $how
            check "$how on $p ranks: the CPU's losses" near "$W/run" "$W/cpu"
        fi
        rm -rf "$W/run" "$W/cpu"
    done
done

# -- the same bits -----------------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
run 2 whole $short --algo gtopk $sparse --checkpoint-every 2
check "the header says which device" grep -q "^{\"type\":\"header\".*\"device\":\"$label\",\"device_about\":\"[^\"]" "$W/whole/run.jsonl"
# shellcheck disable=SC2086
run 2 again $short --algo gtopk $sparse
check "two runs give the same bits" same "$W/whole" "$W/again"
checkpoint=$(find "$W/whole" -name 'checkpoint-*' | sort | head -n 1)
start 2 --resume "$checkpoint" --out "$W/resumed"
check "a run that goes on from its middle gives the same bits" sh -c "[ $? -eq 0 ] && grep -q '\"resumed_at\":2' '$W/resumed/run.jsonl'"
check "and the same parameters" same "$W/whole" "$W/resumed"
# shellcheck disable=SC2086
run 2 bytes $short --algo gtopk $sparse --no-augment
check "augmentation makes a difference" sh -c "[ $? -eq 0 ] && [ '$(hash_of "$W/bytes")' != '$(hash_of "$W/whole")' ]"

# -- what explodes -----------------------------------------------------------------------------------------------------
for how in "dense" "dense-ovlp --overlap-bytes 100000" "gtopk $sparse" "dense --record $W/record"; do
    # shellcheck disable=SC2086
    run 2 nan --algo $how --steps 40 --lr 1e6 --lr-warmup 0
    status=$?
    check "$how: a run that explodes ends with status 3" [ $status -eq 3 ]
    check "$how: and says where" grep -q '^sparsetrain: step [0-9]*, rank [0-9]*: .* in [a-z0-9.]* (entry [0-9]*) is NaN or infinite' "$W/err"
    rm -rf "$W/nan"
done
# shellcheck disable=SC2086
run 2 recorded $short --algo dense --record "$W/kept" --record-every 2
check "a run records its gradients" [ $? -eq 0 ]

# -- the benches -------------------------------------------------------------------------------------------------------
# all_right NAME: every row of the last table ends with 0 wrong, and there are some
all_right() {
    # shellcheck disable=SC2016 # the dollars are awk's
    check "$1" awk '/^[# ]*#/ { next } NF > 5 { rows++; if ($NF != 0) bad = 1 } END { exit bad || !rows }' "$W/out"
}
start 3 bench --device "$device" --n 1000,5 --density 0.01,1 --warmup 1 --repeat 1
check "bench exits with 0" [ $? -eq 0 ]
all_right "bench: nothing is wrong"
start 2 bench --device "$device" --algo dense,topka --warmup 0 --repeat 1 --pattern "real:$W/kept"
check "bench replays what was recorded" [ $? -eq 0 ]
# shellcheck disable=SC2086
start 2 --device "$device" $small $short --algo topka $sparse --quiet --record "$W/selected" --record-what selected
check "a run records what was selected" [ $? -eq 0 ]
start 1 fit "$W/selected" --out "$W/profile"
for pattern in "selected:$W/selected" "fitted:$W/profile"; do
    start 2 bench --device "$device" --algo dense,topka,gtopk --warmup 1 --repeat 2 --pattern "$pattern"
    check "bench with ${pattern%%:*} entries exits with 0" [ $? -eq 0 ]
    all_right "bench with ${pattern%%:*} entries: nothing is wrong"
    global=$(awk '$3 == "topka" { print $(NF - 1) }' "$W/out")
    start 2 bench --device "$device" --algo topka --warmup 1 --repeat 2 --pattern "$pattern" --no-check
    check "unverified, of the same entries ($global)" [ "$global" = "$(awk '$3 == "topka" { print $(NF - 1) }' "$W/out")" ]
done
start 2 bench --device "$device" --algo topka --n 1000 --warmup 0 --repeat 1 --json
check "bench says which device" grep -q "\"device\":\"$label\"" "$W/out"
start 1 bench select --device "$device" --n 3000,17 --density 0.01,1 --repeat 2
check "bench select exits with 0" [ $? -eq 0 ]
all_right "bench select: nothing is wrong"
start 1 bench select --device "$device" --n 3000 --select exact --density 0.01 --repeat 2 --json
check "bench select says which device" grep -q "\"device\":\"$label\"" "$W/out"
alone=$(sed -n 's/.*"select_alone_s":\([^,]*\),.*/\1/p' "$W/out")
if [ "$device" = cpu ]; then
    check "the selection alone is for devices" [ "$alone" = null ]
else
    check "the selection alone is timed" awk "BEGIN { exit !(${alone:-0} > 0) }"
fi
precisions="f32 f32-winograd"
[ "$device" = cpu ] || precisions="$precisions tf32 bf16"
for precision in $precisions; do
    start 1 bench net --device "$device" --precision "$precision" --batch 2 --steps 1 --repeat 1 --json
    status=$?
    check "bench net in $precision" sh -c "[ $status -eq 0 ] && grep -q '\"device\":\"$label\".*\"precision\":\"$precision\".*\"wrong\":0' '$W/out'"
done
finish
