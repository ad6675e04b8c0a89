#!/bin/sh
# cli_checkpoint.sh: a run that is killed, at random moments or in the middle of writing a checkpoint, or that is told
# to stop, resumes to the same bits as one that was left alone; damaged checkpoints are refused in one line.
# long: most of a minute and more
. tests/lib/tap.sh
P=3
common="$small_net --steps 240 --eval-every 0.5 --checkpoint-every 16 --algo gtopk --density 0.01 --density-warmup 0.25"

# shellcheck disable=SC2086
start $P $common --out "$W/whole"
want=$(hash_of "$W/whole")
check "an uninterrupted run" [ -n "$want" ]
check "the last two checkpoints are kept" [ "$(find "$W/whole" -name 'checkpoint-*' | wc -l)" -eq 2 ]

# -- which are kept --------------------------------------------------------------------------------------------------------
# kept NAME DIR STEPS
kept() {
    check_left=$(checkpoints_of "$2")
    if [ "$check_left" = "$3" ]; then ok "$1"; else not_ok "$1" "kept: $check_left, not $3"; fi
}
short="--data synthetic:64x8 --batch 4 --eval-every 0 --checkpoint-every 2"
for p in 1 3; do
    # shellcheck disable=SC2086
    start $p $short --steps 12 --keep 1 --out "$W/keep1-$p"
    kept "--keep 1 on $p ranks" "$W/keep1-$p" "12 "
    # shellcheck disable=SC2086
    start $p $short --steps 12 --keep 3 --keep-every 4 --out "$W/keep-$p"
    kept "--keep 3 --keep-every 4 on $p ranks" "$W/keep-$p" "4 8 10 12 "
    start $p --resume "$W/keep-$p" --steps 15 --checkpoint-every 1
    kept "a resumed run keeps as many" "$W/keep-$p" "4 8 12 13 14 15 "
    start $p --resume "$W/keep-$p" --steps 16 --keep 1
    kept "or as many as it is told" "$W/keep-$p" "4 8 12 16 "
done
# shellcheck disable=SC2086
start 1 $short --steps 8 --keep 100 --out "$W/all"
kept "--keep 100: all" "$W/all" "2 4 6 8 "

# begin_or_resume DIR: the command line that goes on with DIR
begin_or_resume() {
    if ls "$1"/checkpoint-*[0-9]/model.ckpt > /dev/null 2>&1; then
        echo "--resume $1"
    else
        rm -rf "$1"
        echo "$common --out $1"
    fi
}

# until_trains DIR: until its log has more steps than now
until_trains() {
    before=$(grep -c '"type":"step"' "$1/run.jsonl" 2> /dev/null)
    for _ in $(seq 3000); do
        now=$(grep -c '"type":"step"' "$1/run.jsonl" 2> /dev/null)
        [ "${now:-0}" -le "${before:-0}" ] || return
        sleep 0.01
    done
}

# -- twenty kills at random moments, in a row, on one run ---------------------------------------------------------------
killed=0 finished=0
seed=12345
while [ $killed -lt 20 ]; do
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    # shellcheck disable=SC2046
    "$MPIRUN" -np $P "$PROGRAM" $(begin_or_resume "$W/killed") > "$W/out" 2> "$W/err" < /dev/null &
    job=$!
    if [ $((killed % 4)) -gt 0 ]; then until_trains "$W/killed"; fi # else while it starts, too
    sleep "$(awk "BEGIN { print 0.4 * $seed / 2147483648 }")"
    kill_ranks $job
    status=$?
    killed=$((killed + 1))
    if [ $status -eq 0 ]; then # it was done before the kill: check it and begin anew
        finished=$((finished + 1))
        [ "$(hash_of "$W/killed")" = "$want" ] || break
        rm -rf "$W/killed"
    elif [ $status -eq 2 ]; then
        break
    fi
done
# shellcheck disable=SC2046
start $P $(begin_or_resume "$W/killed")
status=$?
if [ $status -eq 0 ] && [ "$(hash_of "$W/killed")" = "$want" ]; then
    ok "killed at $killed random moments ($finished runs got through): the same bits"
else
    not_ok "killed at $killed random moments: the same bits" "status $status, hash $(hash_of "$W/killed"), wanted $want: $(head -c 300 "$W/err")"
fi
check "the log has each step once" [ "$(grep '"type":"step"' "$W/killed/run.jsonl" | sed 's/.*"step":\([0-9]*\).*/\1/' | sort -n | uniq | wc -l)" -eq "$(grep -c '"type":"step"' "$W/killed/run.jsonl")" ]
check "no temporary checkpoint is left" [ -z "$(find "$W/killed" -name '*.tmp' -o -name '*.old')" ]

# -- a kill at each point of writing a checkpoint -----------------------------------------------------------------------
if calls_fail "killed in the middle of a write"; then
    for at in 1 2 4 7 9 11 12 13 14 16 19 21; do
        rm -rf "$W/torn"
        # shellcheck disable=SC2086
        faulty $P "write,fsync,rename,renameat2 checkpoint- $at $at KILL" $common --out "$W/torn"
        crashed=$?
        # shellcheck disable=SC2046
        start $P $(begin_or_resume "$W/torn")
        status=$?
        if [ $crashed -eq 137 ] && [ $status -eq 0 ] && [ "$(hash_of "$W/torn")" = "$want" ]; then
            ok "killed at call $at of writing checkpoints: the same bits"
        else
            not_ok "killed at call $at of writing checkpoints: the same bits" "crash status $crashed, then $status: $(head -c 300 "$W/err")"
        fi
    done
fi

# -- signals --------------------------------------------------------------------------------------------------------------
# to_one_rank SIGNAL: of $job
to_one_rank() { kill -"$1" "$(ranks_of $job | head -n 1)"; }
# signalled SIGNAL P ARGS... --out DIR: a run on so many ranks, one of which gets it as soon as the first step is in the log
signalled() {
    signalled_by=$1 signalled_p=$2
    shift 2
    for signalled_dir in "$@"; do :; done
    "$MPIRUN" -np "$signalled_p" "$PROGRAM" "$@" > "$W/out" 2> "$W/err" < /dev/null &
    job=$!
    until_trains "$signalled_dir"
    to_one_rank "$signalled_by"
    wait $job
}
for signal in TERM INT USR1 HUP; do
    rm -rf "$W/stopped"
    # shellcheck disable=SC2086
    signalled $signal $P $common --out "$W/stopped"
    status=$?
    said=$(grep -c 'To go on: mpirun -np 3 [^ ]*sparsetrain --resume' "$W/out")
    start $P --resume "$W/stopped"
    if [ $status -eq 4 ] && [ "$said" -eq 1 ] && [ "$(hash_of "$W/stopped")" = "$want" ]; then
        ok "SIG$signal on one rank: checkpoint, status 4, the same bits afterwards"
    else
        not_ok "SIG$signal on one rank: checkpoint, status 4, the same bits afterwards" "status $status, said $said: $(head -c 300 "$W/err")"
    fi
done

# One is due after every step, so wherever the signal comes one is left out. It is made where the run goes on, in the same
# directory or in another; one that was made before is not.
evaluations() { sed -n 's/^{"type":"eval",\(.*\),"train_loss".*/\1/p' "$1/run.jsonl"; }
signalled USR1 $P --data synthetic:96x24 --batch 4 --steps 1000000 --lr 0.01 --lr-schedule constant --eval-every 0.125 --out "$W/due"
check "stopped where an evaluation is due" [ $? -eq 4 ]
stopped=$(sed -n 's/^{"type":"step","step":\([0-9]*\),.*/\1/p' "$W/due/run.jsonl" | tail -n 1)
evaluations "$W/due" > "$W/due.rows"
cp -r "$W/due" "$W/due.too"
cp -r "$W/due" "$W/due.twice"
start $P --resume "$W/due.too" --out "$W/due.out" --steps $((stopped + 2))
start $P --resume "$W/due" --steps $((stopped + 2))
evaluations "$W/due.out" >> "$W/due.rows"
check "it is made in another directory" grep -q '"type":"eval","step":'"$stopped", "$W/due.out/run.jsonl"
check "with those behind it to the bits of the same one's" [ "$(cat "$W/due.rows")" = "$(evaluations "$W/due")" ]
start $P --resume "$W/due.out" --out "$W/due.on" --steps $((stopped + 3))
check "what has been made is not made again" [ "$(evaluations "$W/due.on" | sed 's/,.*//')" = "\"step\":$((stopped + 3))" ]

# Nor does it come later for a run that was killed after it, before the next checkpoint: the statistics of batch normalisation
# in that of the step are still each rank's own, whatever the log has.
start $P --resume "$W/due.twice" --steps "$stopped"
check "a run that makes it and goes no further leaves its row" grep -q '"type":"eval","step":'"$stopped", "$W/due.twice/run.jsonl"
start $P --resume "$W/due.twice" --steps $((stopped + 2))
for run in due due.twice; do start 1 export "$W/$run" --format npz --out "$W/$run.npz"; done
check "one that goes on from there has the same bits" cmp "$W/due.npz" "$W/due.twice.npz"
check "and its row once" [ "$(grep -c '"type":"eval","step":'"$stopped", "$W/due.twice/run.jsonl")" -eq 1 ]

# Under nohup a hangup is none.
nohup "$PROGRAM" --data synthetic:64x16 --batch 4 --steps 60 --eval-every never --out "$W/hup" > "$W/out" 2> "$W/err" < /dev/null &
job=$!
until_trains "$W/hup"
kill -HUP $job 2> /dev/null
wait $job
status=$?
check "SIGHUP under nohup changes nothing" [ $status -eq 0 ]

# It comes in the last step, and nothing is left to stop.
"$PROGRAM" --data synthetic:512x8 --batch 512 --steps 1 --eval-every never --out "$W/late" > "$W/out" 2> "$W/err" < /dev/null &
job=$!
for _ in $(seq 1000); do # until the log is there, which is made before
    grep -q '"type":"header"' "$W/late/run.jsonl" 2> /dev/null && break
    sleep 0.01
done
kill -TERM $job
wait $job
status=$?
check "a signal in the last step: the run is done, status 0" [ $status -eq 0 ]
check "and says so" [ "$(json "$W/late/run.jsonl" summary completed)" = true ]

# -- in the midst of an evaluation -----------------------------------------------------------------------------------------
# Of steps 0, 2 and 4, the last. in_evaluation N DIR: the signal comes to one rank in the N-th; its status.
evaluates="--data synthetic:64x1600 --batch 4 --steps 4 --eval-every 0.375 --algo topka --density 0.01"
in_evaluation() {
    # shellcheck disable=SC2086
    SPARSETRAIN_PATIENCE=0.1 "$MPIRUN" -np $P "$PROGRAM" $evaluates --out "$2" > "$W/out" 2> "$W/err" < /dev/null &
    job=$!
    until [ "$(grep -c '^evaluating 1600 test images' "$W/out")" -ge "$1" ] || ! kill -0 $job 2> /dev/null; do sleep 0.05; done
    to_one_rank USR1
    wait $job
}
# same_train_loss DIR DIR: in each evaluation, but for rounding
train_losses() { "$PROGRAM" rows "$1" --keys step,train_loss --type eval; }
same_train_loss() {
    why=$(train_losses "$1"; train_losses "$2")
    { train_losses "$1"; train_losses "$2"; } | awk '$1 in loss { n++; if (!(($2 / loss[$1] - 1) ^ 2 < 1e-24)) exit 1 } { loss[$1] = $2 } END { exit n != 3 }'
}
# shellcheck disable=SC2086
start $P $evaluates --out "$W/evaluated"
for case in '2 2' '3 4'; do
    nth=${case% *} step=${case#* }
    rm -rf "$W/midst"
    in_evaluation "$nth" "$W/midst"
    check "a signal during the evaluation of step $step: status 4" [ $? -eq 4 ]
    check "it is given up" [ "$(evaluations "$W/midst")" = "$(evaluations "$W/evaluated" | head -n $((nth - 1)))" ]
    check "there is a checkpoint of that step" [ "$(checkpoints_of "$W/midst" | tr ' ' '\n' | tail -n 1)" = "$step" ]
    check "the run is not completed" [ "$(json "$W/midst/run.jsonl" summary completed)" = false ]
    start $P --resume "$W/midst"
    check "who resumes makes it: the bits of a run that was left alone" [ "$(evaluations "$W/midst")" = "$(evaluations "$W/evaluated")" ]
    check "with the mean loss of all steps before it, those out of the log among them" same_train_loss "$W/midst" "$W/evaluated"
    check "and of its parameters" [ "$(hash_of "$W/midst")" = "$(hash_of "$W/evaluated")" ]
    check "which ends with a checkpoint of what it was evaluated with" [ "$(sed -n 's/^{"type":"\([a-z]*\)".*/\1/p' "$W/midst/run.jsonl" | tail -n 3 | paste -s -d ' ' -)" = 'eval checkpoint summary' ]
done

# -- what is refused --------------------------------------------------------------------------------------------------------
last=$(find "$W/whole" -name 'checkpoint-*' | sort | tail -n 1)
# refused NAME PART P ARGS...
refused() {
    r_name=$1 r_part=$2
    shift 2
    check "$r_name" mistaken "$r_part" "$@"
}
# damaged: a fresh copy of the run in $W/bad, its last checkpoint in $bad
damaged() {
    rm -rf "$W/bad"
    cp -r "$W/whole" "$W/bad"
    bad=$W/bad/$(basename "$last")
}
# flip FILE OFFSET: one bit
flip() {
    flip_byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    # shellcheck disable=SC2059
    printf "\\$(printf %o $((flip_byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2> /dev/null
}
refused "a number of ranks that cannot share the batch" "12 cannot be shared out among 5 alike" 5 --resume "$W/whole"
refused "another algorithm" "made with --algo gtopk, not topka" $P --resume "$W/whole" --algo topka
refused "another seed" "made with --seed 1, not 2" $P --resume "$W/whole" --seed 2
refused "fewer steps than were done" "has done 240 steps" $P --resume "$W/whole" --steps 10
refused "another dataset" "made with --data synthetic-text:4000x400x400" $P --resume "$W/whole" --data synthetic-text:5000x400x400
damaged
truncate -s -1 "$bad/model.ckpt"
refused "a truncated model.ckpt, with the older one named" "the one before it: --resume" $P --resume "$bad"
damaged
truncate -s -100 "$bad/rank0002.ckpt"
refused "a truncated rank file" "rank0002.ckpt is truncated" $P --resume "$bad"
damaged
flip "$bad/model.ckpt" 100000
refused "a flipped bit in model.ckpt" "damaged" $P --resume "$bad"
damaged
flip "$bad/rank0001.ckpt" 5000
refused "a flipped bit in a rank file" "rank0001.ckpt is damaged" $P --resume "$bad"
damaged
rm "$bad/rank0000.ckpt"
refused "a missing rank file" "rank0000.ckpt" $P --resume "$bad"
damaged
flip "$bad/model.ckpt" 8
refused "another format version" "format version" $P --resume "$bad"
# shellcheck disable=SC2086
start $P $common --out "$W/other"
damaged
cp "$W/other/$(basename "$last")/rank0001.ckpt" "$bad/rank0001.ckpt"
refused "a rank file of another run" "belongs to another run" $P --resume "$bad"
damaged
older=$(find "$W/bad" -name 'checkpoint-*' | sort | head -n 1)
start $P --resume "$older" --out "$W/fromolder"
check "an older checkpoint into a new directory: the same bits" [ "$(hash_of "$W/fromolder")" = "$want" ]

# A disk that fills up in the middle of a checkpoint: writes that fail, and a small file system, which only root can mount.
# full_disk NAME DIR STATUS: what must be true afterwards
full_disk() {
    f_said=$(grep -c '^sparsetrain: cannot write ' "$W/err")
    if [ "$3" -eq 1 ] && [ "$f_said" -ge 1 ] && [ "$(our_lines)" -eq "$f_said" ] && [ -z "$(find "$2" -name '*.tmp')" ]; then
        ok "$1"
    else
        not_ok "$1" "status $3, $f_said lines, left: $(find "$2" -name '*.tmp'): $(head -c 400 "$W/err")"
    fi
}
if calls_fail "writes that fail: status 1, lines that say so, no torn checkpoint"; then
    for p in 1 $P; do
        # shellcheck disable=SC2086
        faulty $p "write checkpoint- 8 0 ENOSPC" $common --out "$W/limit-$p"
        full_disk "writes that fail on $p ranks: status 1, lines that say so, no torn checkpoint" "$W/limit-$p" $?
    done
fi
mkdir "$W/small"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=1500k none "$W/small" 2> /dev/null; then
    # shellcheck disable=SC2086
    start $P $common --out "$W/small/run"
    full_disk "a full disk on $P ranks: status 1, lines that say so, no torn checkpoint" "$W/small" $?
    umount "$W/small"
else
    skip "a full disk on $P ranks: status 1, lines that say so, no torn checkpoint" "mounting a small file system needs root"
fi
finish
