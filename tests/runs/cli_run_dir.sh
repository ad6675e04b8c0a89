#!/bin/sh
# cli_run_dir.sh: the directory of a run belongs to one run and to one process at a time: what is resumed elsewhere leaves
# other runs alone, a run that is complete stays as it is, and of two processes one is told who the other is.
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
common="$small_net --steps 12 --eval-every 0 --checkpoint-every 4 --keep 3 --algo topka --density 0.01"

# print DIR: all that is in it, byte for byte, and how it came there
print() {
    find "$1" -printf '%P %y %s %T@ %i\n' | sed 's/^ d .*//' | sort
    find "$1" -type f -exec cksum {} + | sort
}
# note DIR; untouched DIR CONDITION-COMMAND...: the command succeeds and leaves DIR as it was noted
note() { print "$1" > "$W/noted"; }
untouched() {
    untouched_dir=$1
    shift
    "$@" || return 1
    print "$untouched_dir" > "$W/now"
    why=$(diff "$W/noted" "$W/now") && return 0
    why="$untouched_dir was touched: $why"
    return 1
}
# says STATUS TEXT P ARGS...: ends with this status; TEXT is in a line of its output
says() {
    says_status=$1 says_text=$2
    shift 2
    start "$@"
    says_now=$?
    why="status $says_now: $(head -c 500 "$W/out" "$W/err")"
    [ $says_now -eq "$says_status" ] && [ "$(cat "$W/out" "$W/err" | grep -cF -- "$says_text")" -eq 1 ]
}
same() {
    why="$1 and $2 differ, or are nothing"
    [ -n "$1" ] && [ "$1" = "$2" ]
}

for p in 1 3; do
    start $p $common --out "$W/a$p"
    start $p $common --seed 2 --out "$W/other$p"
    check "a run leaves its log and its checkpoints, P = $p" [ "$(cd "$W/a$p" && echo *)" = "checkpoint-00000004 checkpoint-00000008 checkpoint-00000012 run.jsonl vocabulary.txt" ]
    middle=$W/a$p/checkpoint-00000008

    # -- another directory -------------------------------------------------------------------------------------------------
    note "$W/other$p"
    check "--out of another run, P = $p" untouched "$W/other$p" mistaken "other$p holds another run, " $p --resume "$middle" --out "$W/other$p"
    rm "$W/other$p/run.jsonl"
    note "$W/other$p"
    check "of another run whose log is gone, P = $p" untouched "$W/other$p" mistaken "other$p holds another run, " $p --resume "$W/a$p" --out "$W/other$p"
    check "a new run there, too, P = $p" untouched "$W/other$p" mistaken "other$p already holds a run" $p $common --out "$W/other$p"
    cp -r "$W/a$p" "$W/logged$p"
    rm -r "$W/logged$p"/checkpoint-*
    note "$W/logged$p"
    check "where a log is all that is left of a run, P = $p" untouched "$W/logged$p" mistaken "first checkpoint; choose another --out, or remove it: rm -r $W/logged$p" $p $common --out "$W/logged$p"
    mkdir "$W/full$p"
    echo mine > "$W/full$p/thing"
    note "$W/full$p"
    check "--out of something else, P = $p" untouched "$W/full$p" mistaken "full$p is not empty" $p --resume "$middle" --out "$W/full$p"
    check "--out is a file, P = $p" untouched "$W/full$p" mistaken "full$p/thing: Not a directory" $p --resume "$middle" --out "$W/full$p/thing"
    mkdir "$W/empty$p"
    start $p --resume "$middle" --out "$W/empty$p"
    check "an empty one, P = $p" same "$(hash_of "$W/empty$p")" "$(hash_of "$W/a$p")"
    start $p --resume "$middle" --out "$W/empty$p/b/c"
    check "a new one, P = $p" same "$(hash_of "$W/empty$p/b/c")" "$(hash_of "$W/a$p")"
    rm -r "$W/empty$p/b"
    start $p --resume "$middle" --steps 14 --out "$W/empty$p"
    check "one of the same run goes on, P = $p" same "$(json "$W/empty$p/run.jsonl" step step)" 14
    note "$W/a$p"
    check "nothing is made where the run cannot begin, P = $p" unmade "$W/new" mistaken "has done 8 steps already" $p --resume "$middle" --steps 7 --out "$W/new/b"
    check "nor anything touched, P = $p" untouched "$W/a$p" mistaken "has done 8 steps already" $p --resume "$middle" --steps 7
    touch "$W/record$p"
    check "nor where another file cannot be written, P = $p" untouched "$W/a$p" mistaken "record$p" $p --resume "$middle" --record "$W/record$p"
    check "nor is a directory left, P = $p" unmade "$W/new" mistaken "record$p" $p --resume "$middle" --record "$W/record$p" --out "$W/new/b"

    rm "$W/empty$p/run.jsonl"
    mkfifo "$W/empty$p/run.jsonl"
    check "a log that is no file, P = $p" mistaken "run.jsonl: it is a FIFO" $p --resume "$W/empty$p" --steps 15

    # -- a run that is complete --------------------------------------------------------------------------------------------
    check "a complete run, P = $p" untouched "$W/a$p" says 0 "a$p is complete: all of its 12 steps are done; to go on, give a larger --epochs or --steps" $p --resume "$W/a$p"
    check "its last checkpoint, P = $p" untouched "$W/a$p" says 0 "a$p is complete: " $p --resume "$W/a$p/checkpoint-00000012" --checkpoint-every 1 --keep 1
    check "with --dry-run, P = $p" untouched "$W/a$p" says 0 "a$p is complete: " $p --resume "$W/a$p" --dry-run
    cp -r "$W/a$p" "$W/b$p"
    start $p --resume "$W/b$p" --steps 14
    check "with more steps it goes on, P = $p" same "$(json "$W/b$p/run.jsonl" summary step)" 14
    rm -rf "$W/b$p"
    start $p $common --stop-at "$(small_epoch 8 $p)" --out "$W/b$p"
    note "$W/b$p"
    check "one that --stop-at has stopped there, P = $p" untouched "$W/b$p" says 0 "b$p has done the 8 of 12 steps that --stop-at" $p --resume "$W/b$p" --stop-at "$(small_epoch 8 $p)"
    start $p --resume "$W/b$p"
    check "goes on without it, P = $p" same "$(hash_of "$W/b$p")" "$(hash_of "$W/a$p")"
    rm -rf "$W/b$p"

    # Killed between its last checkpoint and its summary, and then once more at the same place, its log having been through
    # an editor that ends lines as DOS did.
    cp -r "$W/a$p" "$W/b$p"
    for again in 1 2; do
        sed -i '/"type":"summary"/d' "$W/b$p/run.jsonl"
        [ $again -eq 1 ] || sed -i 's/$/\r/' "$W/b$p/run.jsonl"
        mkdir "$W/b$p/checkpoint-00000004.old" # where it was removing an older one
        touch "$W/b$p/checkpoint-00000004.old/rank0000.ckpt"
        start $p --resume "$W/b$p"
        check "a summary that is missing is written, $again, P = $p" same "$(hash_of "$W/b$p")" "$(hash_of "$W/a$p")"
        for key in test_loss train_seconds step_seconds words_per_second bytes_sent_per_step local_nnz_per_step global_nnz_per_step completed; do
            check "with the $key of all steps, $again, P = $p" same "$(json "$W/b$p/run.jsonl" summary $key)" "$(json "$W/a$p/run.jsonl" summary $key)"
        done
        check "what was half removed is gone, $again, P = $p" [ ! -e "$W/b$p/checkpoint-00000004.old" ]
        check "and no row twice, $again, P = $p" same "$(grep -c '"type":"\(step\|eval\|checkpoint\|summary\)"' "$W/b$p/run.jsonl")" "$(grep -c '"type":"\(step\|eval\|checkpoint\|summary\)"' "$W/a$p/run.jsonl")"
    done
done

# -- what is taken over ----------------------------------------------------------------------------------------------------
start 2 --data synthetic:96x24 --batch 4 --steps 12 --eval-every 0 --algo topka --density 0.01 --checkpoint-every 5 --audit 2 --log-slices 3 --log-xi 4 --trace "$W/trace" --record "$W/record" --record-every 6 --stop-at 0.42 --out "$W/watched"
rm "$W/trace" "$W/record"
start 2 --resume "$W/watched" --log-xi 3
check "a resumed run is watched as before" same "$(sed -n 's/^{"type":"\(slices\|checkpoint\)","step":\([0-9]*\).*/\1 \2/p' "$W/watched/run.jsonl" | tr '\n' ' ')" "slices 1 slices 4 checkpoint 5 checkpoint 6 slices 7 slices 10 checkpoint 10 checkpoint 12 "
check "its thresholds are" same "$(sed -n 's/^{"type":"step","step":\([0-9]*\),.*"threshold_exact_mean".*/\1/p' "$W/watched/run.jsonl" | tr '\n' ' ')" "1 3 5 7 9 11 "
check "what was given anew is new" same "$(sed -n 's/^{"type":"step","step":\([0-9]*\),.*"xi":.*/\1/p' "$W/watched/run.jsonl" | tr '\n' ' ')" "1 5 7 10 "
check "files to write are not taken from a checkpoint" [ ! -e "$W/trace" ] && [ ! -e "$W/record" ]

# -- the lock --------------------------------------------------------------------------------------------------------------
# A run without an end, which is stopped at its next step where it has a checkpoint to go on from.
endless="--data synthetic:96x24 --batch 4 --steps 1000000 --lr-schedule constant --lr 0.001 --eval-every never --checkpoint-every 3"
P=3
# rank0 DIR: the process of rank 0 of the run in it, by its lock, once there is a checkpoint
rank0() {
    for _ in $(seq 3000); do
        if grep -q '"type":"checkpoint"' "$1/run.jsonl" 2> /dev/null; then
            sed -n 's/^sparsetrain [^ ]* \([0-9]*\) .*/\1/p' "$1/lock"
            return
        fi
        sleep 0.1
    done
}
# continuous DIR: its log has each step once, up to the last
continuous() {
    grep -o '^{"type":"step","step":[0-9]*' "$1/run.jsonl" | sed 's/.*://' | awk '$1 != NR { bad = 1 } END { exit bad || NR == 0 }'
}
# prefix_of DIR P: the bits of a run that nobody disturbed as far as the one in DIR has come
prefix_of() {
    prefix_step=$(json "$1/run.jsonl" summary step)
    rm -rf "$W/prefix"
    start "$2" $endless --stop-at "$(awk "BEGIN { printf \"%.17g\", $prefix_step * 4 * $2 / 96 }")" --out "$W/prefix"
    same "$(hash_of "$1")" "$(hash_of "$W/prefix")"
}

"$MPIRUN" -np $P "$PROGRAM" $endless --out "$W/live" > "$W/live.out" 2> "$W/live.err" < /dev/null &
job=$!
first=$(rank0 "$W/live")
check "the lock names its holder" [ -n "$first" ]
for p in 1 $P; do
    check "a live run is not resumed, P = $p" mistaken "live is in use: process $first on host $(uname -n) has been running there since 2" $p --resume "$W/live"
    check "nor from one of its checkpoints to elsewhere, P = $p" unmade "$W/new" mistaken "live is in use: process $first" $p --resume "$W/live" --out "$W/new"
    check "nor is another one begun there, P = $p" mistaken "live is in use: process $first" $p $common --out "$W/live"
    check "config says so, P = $p" silent mistaken "live is in use: process $first" $p config --out "$W/live"
done
kill -TERM "$first"
wait $job
check "the live run is unharmed: it stops with a checkpoint" [ $? -eq 4 ]
check "its log is in order" continuous "$W/live"
check "its bits are its own" prefix_of "$W/live" $P
check "the lock is gone" [ ! -e "$W/live/lock" ]

# Two at once: whoever comes first goes on, the other is told; then the first is stopped.
for i in 1 2; do
    "$MPIRUN" -np $P "$PROGRAM" --resume "$W/live" > "$W/out$i" 2> "$W/err$i" < /dev/null &
    eval "job$i=$!"
done
loser=
while [ -z "$loser" ]; do
    # shellcheck disable=SC2154 # by eval
    for i in 1 2; do
        eval "at=\$job$i"
        if [ -z "$loser" ] && ! kill -0 "$at" 2> /dev/null; then loser=$i; fi
    done
    sleep 0.1
done
eval "wait \$job$loser"
status=$?
cp "$W/err$loser" "$W/err"
check "two resumes at once: one of them is told who the other is" told $status "live is in use: process "
kill -TERM "$(sed -n 's/^sparsetrain [^ ]* \([0-9]*\) .*/\1/p' "$W/live/lock")"
eval "wait \$job$((3 - loser))"
check "the other one runs on and stops with a checkpoint" [ $? -eq 4 ]
check "the log of both is in order" continuous "$W/live"
check "the bits are those of one run" prefix_of "$W/live" $P

# A lock that a kill has left.
rm -rf "$W/live"
"$MPIRUN" -np $P "$PROGRAM" $endless --out "$W/live" > "$W/live.out" 2> "$W/live.err" < /dev/null &
job=$!
kill -KILL "$(rank0 "$W/live")"
wait $job 2> /dev/null
check "a kill leaves the lock's file" [ -s "$W/live/lock" ]
steps=$(find "$W/live" -name 'checkpoint-*' | sed -n 's/.*checkpoint-0*\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
start $P --resume "$W/live" --steps $((steps + 2))
check "which hinders nobody" [ $? -eq 0 ]
check "and is gone afterwards" [ ! -e "$W/live/lock" ]

# Nothing else is taken for a lock.
echo mine > "$W/mine"
mkdir "$W/linked"
ln -s ../mine "$W/linked/lock"
for p in 1 3; do
    check "a symbolic link is not written through, P = $p" mistaken "lock is a symbolic link" $p $common --out "$W/linked"
done
check "and what it points to is as it was" [ "$(cat "$W/mine")" = mine ]

# File systems without locks.
if calls_fail "without locks: a warning, and it runs"; then
    for p in 1 3; do
        faulty $p 'lock /lock$ 1 0 ENOLCK' $common --out "$W/unlocked$p"
        check "without locks it runs, P = $p" [ $? -eq 0 ]
        check "after one line of warning, P = $p" [ "$(grep -c 'is on a file system without locks' "$W/err")/$(our_lines)" = 1/1 ]
        check "to the same bits, P = $p" same "$(hash_of "$W/unlocked$p")" "$(hash_of "$W/a$p")"
    done
fi

# A run that fails while it opens leaves nothing, not the directories that it made.
if calls_fail "a run that cannot begin leaves no directory"; then
    for p in 1 3; do
        faulty $p 'openat /run.jsonl$ 1 0 EACCES' $common --out "$W/new/$p/a/b"
        check "a log that cannot be made, P = $p" [ $? -eq 2 ]
        check "and no directory is left, P = $p" [ ! -e "$W/new" ]
    done
    faulty 1 'openat /run.jsonl$ 1 0 EACCES' --model lstm --hidden 4 --bptt 3 --data synthetic-text:200x50x50 --batch 2 --steps 2 --out "$W/words"
    check "nor a vocabulary" [ $? -eq 2 -a ! -e "$W/words" ]
    mkdir "$W/old"
    faulty 1 'openat /run.jsonl$ 1 0 EACCES' $common --out "$W/old/a"
    check "one that was there before stays" [ -d "$W/old" -a ! -e "$W/old/a" ]
fi

# -- back to an earlier checkpoint, though later ones are whole ---------------------------------------------------------------
# as_whole NAME P: resumed, the run in $W/b$P comes to the rows and bits that $W/a$P has
as_whole() {
    start "$2" --resume "$W/b$2"
    check "$1, P = $2: the same bits" same "$(hash_of "$W/b$2")" "$(hash_of "$W/a$2")"
    check "$1, P = $2: each step once" [ "$(grep -c '"type":"step"' "$W/b$2/run.jsonl")" -eq 12 ] && continuous "$W/b$2"
}
for p in 1 3; do
    rm -rf "$W/b$p"
    cp -r "$W/a$p" "$W/b$p"
    start $p --resume "$W/b$p/checkpoint-00000004" --stop-at "$(small_epoch 6 $p)"
    check "those after it are not gone on with, P = $p" [ "$(checkpoints_of "$W/b$p")" = "4 6 " ]
    as_whole "back to an earlier checkpoint" $p
    start $p --resume "$W/a$p/checkpoint-00000004" --stop-at "$(small_epoch 6 $p)" --out "$W/b$p"
    check "nor those of the same run elsewhere, P = $p" [ "$(checkpoints_of "$W/b$p")" = "6 " ]
    as_whole "back to one of another directory" $p

    # -- elsewhere, and only as far as it has come -----------------------------------------------------------------------
    start $p --resume "$W/a$p/checkpoint-00000008" --stop-at "$(small_epoch 8 $p)" --out "$W/new"
    check "what stops where it begins has a checkpoint there, P = $p" [ "$(checkpoints_of "$W/new")" = "8 " ]
    start $p --resume "$W/new"
    check "from which it goes on, P = $p" same "$(hash_of "$W/new")" "$(hash_of "$W/a$p")"
    rm -r "$W/new"
    note "$W/a$p"
    check "a complete run is not begun elsewhere, P = $p" unmade "$W/new" says 0 "a$p is complete: " $p --resume "$W/a$p" --out "$W/new"
    check "nor is it touched, P = $p" untouched "$W/a$p" true
done
if calls_fail "a complete run that may not be written"; then
    for p in 1 3; do
        unwritable="access,faccessat,faccessat2 a$p\$ 1 0 EACCES; openat /lock\$ 1 0 EACCES"
        faulty $p "$unwritable" --resume "$W/a$p"
        check "a complete run that may not be written says so, P = $p" [ "$?/$(grep -c 'is complete' "$W/out")" = 0/1 ]
        faulty $p "$unwritable" --resume "$W/a$p" --steps 14
        check "and does not go on there, P = $p" told $? "a$p/lock: Permission denied; choose another --out"
    done
fi
if calls_fail "killed when it goes back to an earlier checkpoint"; then
    for p in 1 3; do
        for call in 1 2; do # before the log is cut, and after
            rm -rf "$W/b$p"
            cp -r "$W/a$p" "$W/b$p"
            faulty $p "rename,renameat,renameat2 run.jsonl.tmp $((2 - call)) 1 KILL; openat checkpoint-00000005.tmp $((call - 1)) 1 KILL" --resume "$W/b$p/checkpoint-00000004" --checkpoint-every 1
            check "killed when it goes back, $call, P = $p" [ $? -eq 137 ]
            as_whole "killed when it goes back, $call" $p
        done
        faulty $p "write checkpoint- 1 0 ENOSPC" --resume "$W/a$p/checkpoint-00000008" --out "$W/new"
        check "no checkpoint is kept where there is none yet, P = $p" told $? "No space left on device; there is no checkpoint yet" 1
        rm -r "$W/new"
    done
    rm -rf "$W/b1"
    cp -r "$W/a1" "$W/b1"
    touch "$W/b1/checkpoint-00000012/notes"
    cp "$W/b1/run.jsonl" "$W/noted"
    check "one with somebody's file in it is in the way" mistaken "checkpoint-00000012 is left as it is: it holds notes" 1 --resume "$W/b1/checkpoint-00000004"
    check "and the log is as it was" cmp -s "$W/noted" "$W/b1/run.jsonl"
fi

# -- what cannot be one run, and what cannot be made ----------------------------------------------------------------------------
start 1 $common --out "$W/two"
sed -i 's/"run":"[0-9a-f]*"/"run":"0123456789abcdef"/' "$W/two/run.jsonl"
note "$W/two"
check "the log of one run beside checkpoints of another" untouched "$W/two" says 2 "holds files of two runs, 0123456789abcdef and " 1 --resume "$W/two" --steps 14
: > "$W/file"
check "a directory below a file" says 2 "cannot make the directory --out $W/file/below: Not a directory" 1 $common --out "$W/file/below"
deep=$W/$(printf '%0200d/%0200d/%0100d' 0 0 0)
mkdir -p "$deep"
cp -r "$W/a1" "$deep/run"
# there CONDITION-COMMAND...: in that directory
there() { cd "$deep" && "$@"; }
for p in 1 3; do
    check "a path that is no --out, P = $p" silent there mistaken 'more than 511; give another --out' $p --resume run/checkpoint-00000004
done
cd /
finish
