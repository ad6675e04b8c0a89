#!/bin/sh
# cli_fallback.sh: --resume of a run whose newest checkpoints are damaged goes on from the newest that is whole, says so in
# one line, and comes to the bits of a run that nothing disturbed; the damaged ones are set aside, and go as it passes by,
# and a kill in the middle of that leaves one that is whole. At P = 1, 2, 3, 4.
. tests/lib/tap.sh
common="$small_net --steps 12 --eval-every 0 --checkpoint-every 4 --keep 3 --algo gtopk --density 0.01"

# damaged P HOW FILE...: a fresh copy of the run of P ranks in $W/bad, with these files of it damaged
damaged() {
    rm -rf "$W/bad"
    cp -r "$W/whole$1" "$W/bad"
    damaged_how=$2
    shift 2
    for file in "$@"; do
        file=$W/bad/checkpoint-$file
        case $damaged_how in
        truncated) truncate -s -1 "$file" ;;
        flipped)
            flip_at=$(($(wc -c < "$file") / 2))
            flip_byte=$(od -An -tu1 -j $flip_at -N 1 "$file" | tr -d ' ')
            # shellcheck disable=SC2059
            printf "\\$(printf %o $((flip_byte ^ 16)))" | dd of="$file" bs=1 seek=$flip_at conv=notrunc 2> /dev/null
            ;;
        removed) rm "$file" ;;
        empty) : > "$file" ;;
        esac
    done
}
# falls NAME P FILE STEP [AND]: --resume of the run in $W/bad names this file and the checkpoint that it takes, and comes to the
# whole run's end; AND: what else is left
falls() {
    falls_name="$1, P = $2" falls_p=$2 falls_file=$3 falls_step=$4 falls_and=${5:-}
    start "$falls_p" --resume "$W/bad"
    falls_status=$?
    why="status $falls_status: $(head -c 600 "$W/err")"
    if [ $falls_status -ne 0 ] || [ "$(our_lines)" -ne 1 ]; then
        not_ok "$falls_name" "$why"
    elif ! grep -q "^sparsetrain: .*$W/bad/checkpoint-$falls_file.*going on from $W/bad/checkpoint-$falls_step\$" "$W/err"; then
        not_ok "$falls_name" "said: $(grep '^sparsetrain: ' "$W/err")"
    elif [ "$(hash_of "$W/bad")" != "$(hash_of "$W/whole$falls_p")" ]; then
        not_ok "$falls_name" "other bits"
    elif [ "$(checkpoints_of "$W/bad")" != "4 8 12 $falls_and" ]; then
        not_ok "$falls_name" "left: $(checkpoints_of "$W/bad")"
    elif ! start "$falls_p" --resume "$W/bad/checkpoint-00000012" || ! grep -q 'is complete' "$W/out"; then
        not_ok "$falls_name" "the last checkpoint was not replaced: $(head -c 300 "$W/err")"
    else
        ok "$falls_name"
    fi
}

for p in 1 2 3 4; do
    # shellcheck disable=SC2086
    start $p $common --out "$W/whole$p"
    check "the whole run, P = $p" [ $? -eq 0 ]
    of_last=00000012/rank000$((p - 1)).ckpt
    damaged $p truncated 00000012/model.ckpt
    falls "a truncated model.ckpt" $p 00000012/model.ckpt 00000008
    damaged $p flipped $of_last
    falls "a flipped bit in the last rank's file" $p $of_last 00000008
    damaged $p removed $of_last
    falls "the last rank's file is gone" $p $of_last 00000008
    damaged $p removed 00000012/model.ckpt
    falls "model.ckpt is gone" $p 00000012/model.ckpt 00000008
    damaged $p empty 00000012/rank0000.ckpt 00000008/model.ckpt
    falls "two checkpoints are damaged" $p 00000012/rank0000.ckpt 00000004
done
damaged 3 removed 00000012/rank0000.ckpt
cp "$W/whole3/checkpoint-00000008/rank0001.ckpt" "$W/bad/checkpoint-00000012/rank0001.ckpt"
cp "$W/whole3/checkpoint-00000012/rank0000.ckpt" "$W/bad/checkpoint-00000012/rank0000.ckpt"
falls "a rank's file of another step" 3 00000012/rank0001.ckpt 00000008

rm -r "$W/bad/checkpoint-00000012"
echo mine > "$W/bad/checkpoint-00000012"
falls "a file in the place of a checkpoint" 3 00000012/model.ckpt 00000008 "12.damaged "
check "which is set aside and left as it is" [ "$(cat "$W/bad/checkpoint-00000012.damaged")" = mine ]
rm "$W/bad/checkpoint-00000012.damaged" "$W/bad/checkpoint-00000012"/*
falls "an empty directory in its place" 3 00000012/model.ckpt 00000008

# Whole by their checksums, but nothing that a run leaves, which is known when it is in its place.
# crafted P FILE ARGS...: a run that was killed before its summary; this change of a file of its newest checkpoint
crafted() {
    damaged "$1" none
    sed -i '/"type":"summary"/d' "$W/bad/run.jsonl"
    crafted_file=$2
    shift 2
    "$BUILD/tests/craft" "$W/bad/checkpoint-00000012/$crafted_file" set "$@" || echo "# craft $*: failed"
}
for p in 1 3; do
    last=rank000$((p - 1)).ckpt
    crafted $p model.ckpt parameters 400 f32 nan
    falls "a parameter that is NaN" $p 00000012/model.ckpt 00000008
    crafted $p model.ckpt hashes 0 u64 1
    falls "a hash of other parameters" $p 00000012/model.ckpt 00000008
    crafted $p $last residual 40 f32 inf
    truncate -s -1 "$W/bad/checkpoint-00000008/$last"
    falls "an infinite residual, and the one before is cut off" $p 00000012/$last 00000004
    crafted $p $last residual 40 f32 inf
    truncate -s -1 "$W/bad/checkpoint-00000008/$last" "$W/bad/checkpoint-00000004/model.ckpt"
    check "none is left, P = $p" mistaken "section residual is NaN or infinite; and so, in one way or another, are all 2 before it" $p --resume "$W/bad"
    crafted $p model.ckpt parameters 400 f32 nan
    check "by its name, P = $p" mistaken "the one before it: --resume $W/bad/checkpoint-00000008" $p --resume "$W/bad/checkpoint-00000012"
    "$BUILD/tests/craft" "$W/bad/checkpoint-00000008/model.ckpt" get options | sed 's/^lr=.*/lr=0.05/' > "$W/options"
    "$BUILD/tests/craft" "$W/bad/checkpoint-00000008/model.ckpt" put options < "$W/options"
    check "the one before it has other options, P = $p" mistaken "it has other options: --resume $W/bad/checkpoint-00000008" $p --resume "$W/bad"
done
# The plan of another batch begins at the step of the newest.
start 3 --data synthetic:96x24 --batch 4 --steps 12 --eval-every never --checkpoint-every 4 --out "$W/images"
sed -i '/"type":"summary"/d' "$W/images/run.jsonl"
"$BUILD/tests/craft" "$W/images/checkpoint-00000012/model.ckpt" set parameters 400 f32 nan
check "for another batch the one before it is to be named" mistaken "for another --batch the one before it is to be named: --resume $W/images/checkpoint-00000008" 3 --resume "$W/images" --batch 8
start 3 --resume "$W/images/checkpoint-00000008" --batch 8 --steps 10 --out "$W/images.on"
check "and may be" [ "$(json "$W/images.on/run.jsonl" resize step)" = 8 ]

# -- what is refused -------------------------------------------------------------------------------------------------------
for p in 1 3; do
    damaged $p flipped 00000012/model.ckpt
    check "a damaged checkpoint by its name: the one before it is named, P = $p" mistaken "the one before it: --resume $W/bad/checkpoint-00000008" $p --resume "$W/bad/checkpoint-00000012"
    damaged $p truncated 00000012/model.ckpt 00000008/rank0000.ckpt 00000004/model.ckpt
    check "all are damaged, P = $p" mistaken "checkpoint-00000012/model.ckpt is truncated" $p --resume "$W/bad"
    check "and there they stay, P = $p" [ "$(checkpoints_of "$W/bad")" = "4 8 12 " ]
done
damaged 3 truncated 00000012/rank0000.ckpt
check "a number of ranks that cannot share the batch is no damage, nor is one passed by for it" mistaken "checkpoint-00000008 was made with --batch 4 on 3 ranks, and 12 cannot" 5 --resume "$W/bad"
start 2 --resume "$W/bad"
status=$? said=$(grep "^sparsetrain: .*rank0000.ckpt is truncated.*going on from $W/bad/checkpoint-00000008\$" "$W/err")
check "on other ranks it falls back, too" [ "$status/$(our_lines)/$(json "$W/bad/run.jsonl" resize step)/$(json "$W/bad/run.jsonl" summary ranks)" = 0/1/8/2 -a -n "$said" ]
damaged 3 truncated 00000012/rank0001.ckpt
rm "$W/bad/checkpoint-00000008/rank0002.ckpt"
start 1 --resume "$W/bad"
check "every file of the ranks that were is looked at, on however few" [ "$(json "$W/bad/run.jsonl" resize step)" = 4 ]

# -- those that the run passes by ------------------------------------------------------------------------------------------
# From step 4 on, with checkpoints at other steps: one more after 5 steps, at which the run stops.
for p in 1 3; do
    damaged $p empty 00000012/model.ckpt 00000008/model.ckpt
    start $p --resume "$W/bad" --checkpoint-every 5 --keep 1 --stop-at "$(small_epoch 5 $p)"
    check "later ones, damaged, do not count among those kept, P = $p" [ "$(checkpoints_of "$W/bad")" = "5 8.damaged 12.damaged " ]
    start $p --resume "$W/bad" --keep 2 --stop-at "$(small_epoch 11 $p)"
    check "passed by, they go, P = $p" [ "$(checkpoints_of "$W/bad")" = "10 11 12.damaged " ]
    start $p --resume "$W/bad"
    check "and the bits are those of the whole run, P = $p" [ "$(hash_of "$W/bad")" = "$(hash_of "$W/whole$p")" ]
    check "with two checkpoints, P = $p" [ "$(checkpoints_of "$W/bad")" = "11 12 " ]
done

# -- killed while it replaces one ------------------------------------------------------------------------------------------
# replaced NAME RULES: at each call of writing the checkpoint of step 12 over a damaged one
replaced() {
    replaced_name=$1 killed=0 why=
    for at in $(seq 60); do
        damaged 1 flipped 00000012/model.ckpt
        faulty 1 "write,fsync,rename,renameat2 checkpoint- $at $at KILL; $2" --resume "$W/bad"
        status=$?
        [ $status -eq 137 ] || break
        killed=$((killed + 1))
        start 1 --resume "$W/bad"
        [ "$(hash_of "$W/bad")/$(checkpoints_of "$W/bad")" = "$(hash_of "$W/whole1")/4 8 12 " ] ||
            why="$why; at call $at: $(checkpoints_of "$W/bad"): $(head -c 200 "$W/err")"
    done
    if [ "$status" -ne 0 ] || [ $killed -lt 10 ]; then why="$why; $killed kills, then status $status: $(head -c 200 "$W/err")"; fi
    if [ "$(checkpoints_of "$W/bad")" != "4 8 12 " ]; then why="$why; without a kill: $(checkpoints_of "$W/bad")"; fi
    if [ -z "$why" ]; then ok "$replaced_name ($killed kills)"; else not_ok "$replaced_name" "$why"; fi
}
if calls_fail "killed at each call of replacing a damaged checkpoint: the same bits"; then
    replaced "killed at each call of replacing a damaged checkpoint: the same bits" ""
    replaced "the same where names cannot be exchanged" "exchange checkpoint- 1 0 EINVAL"
fi
finish
