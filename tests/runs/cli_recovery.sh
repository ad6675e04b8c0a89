#!/bin/sh
# cli_recovery.sh: what lies in the directory of a run stays that of one course, whatever fails: a checkpoint that can be read
# again, or that only cannot be read now; a start that cannot take place, or is killed; another process in between; a log
# that cannot be synced; a directory that cannot be listed, or that one rank alone sees.
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
words="--model lstm --hidden 4 --bptt 3 --data synthetic-text:2000x50x50 --batch 2 --lr-warmup 0 --eval-every 0"
common="$words --steps 12 --checkpoint-every 4 --keep 3"

steps_of() { grep -o '^{"type":"step","step":[0-9]*' "$1/run.jsonl" | sed 's/.*://' | tr '\n' ' '; }
# whole NAME P DIR: the run in it has each step once, and the bits of one that nothing disturbed
whole() {
    why="steps $(steps_of "$3"), $(hash_of "$3") for $(hash_of "$W/whole$2")"
    [ "$(steps_of "$3")" = "1 2 3 4 5 6 7 8 9 10 11 12 " ] && [ "$(hash_of "$3")" = "$(hash_of "$W/whole$2")" ]
    whole_good=$?
    check "$1, P = $2: each step once, the same bits" [ $whole_good -eq 0 ]
}
fresh() { rm -rf "$W/run" && cp -r "$W/whole$1" "$W/run"; }
# epochs P STEP
epochs() { awk "BEGIN { printf \"%.17g\", $2 * $(json "$W/whole$1/run.jsonl" header run_epochs) / 12 }"; }
for p in 1 3; do start $p $common --out "$W/whole$p"; done

# -- a checkpoint that was passed by can be read again -------------------------------------------------------------------
for p in 1 3; do
    fresh $p
    mv "$W/run/checkpoint-00000012/rank0000.ckpt" "$W/away"
    start $p --resume "$W/run" --stop-at "$(epochs $p 10)"
    check "it is set aside, P = $p" [ "$(checkpoints_of "$W/run")" = "4 8 10 12.damaged " ]
    mv "$W/away" "$(find "$W/run" -name 'checkpoint-00000012*')/rank0000.ckpt"
    start $p --resume "$W/run"
    whole "a checkpoint that is whole again is not gone on with" $p "$W/run"
    check "and goes, P = $p" [ "$(checkpoints_of "$W/run")" = "8 10 12 " ]
done

# -- what a checkpoint holds does not depend on where the run was resumed ---------------------------------------------------
# but for the identity of the run, what it took, and the checksums of these: 36 bytes
for p in 1 3; do
    start $p ${words% --eval-every 0} --steps 12 --checkpoint-every 2 --keep 6 --eval-every "$(epochs $p 6)" --out "$W/often$p"
    cp -r "$W/often$p" "$W/again$p"
    rm -r "$W/again$p/checkpoint-00000008" "$W/again$p/checkpoint-0000001"*
    start $p --resume "$W/again$p"
    check "resumed from step 6, P = $p" [ "$(checkpoints_of "$W/again$p")" = "2 4 6 8 10 12 " ]
    for step in 08 10 12; do
        differ=$(cmp -l "$W/often$p/checkpoint-000000$step/model.ckpt" "$W/again$p/checkpoint-000000$step/model.ckpt" | wc -l)
        check "model.ckpt of step $step is the same, P = $p: $differ bytes differ" [ "$differ" -le 36 ]
    done
done

# -- one that cannot be read now -----------------------------------------------------------------------------------------
# refused NAME TEXT STATUS P RULES ARGS...: so it ends, and the run is as it was
refused() {
    refused_name=$1 refused_text=$2 refused_status=$3
    shift 3
    rm -rf "$W/before"
    cp -r "$W/run" "$W/before"
    if [ -n "$2" ]; then faulty "$@"; else refused_p=$1 && shift 2 && start "$refused_p" "$@"; fi
    told $? "$refused_text" "$refused_status"
    refused_good=$?
    check "$refused_name" [ $refused_good -eq 0 ]
    why=$(diff -rq "$W/before" "$W/run")
    check "... and all is as it was" [ -z "$why" ]
}
# version FILE N: says to be of that format
# shellcheck disable=SC2059 # an escape that is made here
version() { printf "\\$(printf %o "$2")" | dd of="$1" bs=1 seek=8 conv=notrunc 2> /dev/null; }
for p in 1 3; do
    fresh $p
    version "$W/run/checkpoint-00000012/model.ckpt" 99
    refused "a checkpoint of a later version is not passed by, P = $p" "has format version 99; this program reads" 2 $p "" --resume "$W/run"
    refused "nor removed, P = $p" "going on from step 4 would remove it: choose another --out, or move it away" 2 $p "" --resume "$W/run/checkpoint-00000004"
    start $p --resume "$W/run/checkpoint-00000004" --out "$W/elsewhere$p"
    check "elsewhere it goes on, P = $p" [ "$(hash_of "$W/elsewhere$p")" = "$(hash_of "$W/whole$p")" ]
    version "$W/run/checkpoint-00000012/model.ckpt" 200
    sed -i '/"type":"summary"/d' "$W/run/run.jsonl"
    start $p --resume "$W/run"
    whole "a version that no program has is damage" $p "$W/run"
done
if calls_fail "a checkpoint that cannot be read now is not passed by"; then
    for p in 1 3; do
        fresh $p
        sed -i '/"type":"summary"/d' "$W/run/run.jsonl"
        for reason in "EMFILE 1 Too many open files" "ESTALE 1 Stale file handle" "EACCES 2 Permission denied"; do
            error=${reason%% *} reason=${reason#* }
            refused "$error at a checkpoint is no damage, P = $p" "${reason#* }" "${reason%% *}" $p "openat checkpoint-00000012/model.ckpt\$ 1 1 $error" --resume "$W/run"
        done
    done
fi

# -- a start that cannot take place: later checkpoints are still there ------------------------------------------------------
for p in 1 3; do
    fresh $p
    rm "$W/run/run.jsonl"
    mkdir "$W/run/run.jsonl"
    refused "a log that is none, P = $p" "run.jsonl" 2 $p "" --resume "$W/run/checkpoint-00000004"
    rmdir "$W/run/run.jsonl"
    ln -s nowhere "$W/run/run.jsonl"
    check "a log that is a link to nowhere, P = $p" mistaken "run.jsonl" $p --resume "$W/run/checkpoint-00000004"
    check "... and no checkpoint has gone, P = $p" [ "$(checkpoints_of "$W/run")" = "4 8 12 " ]
    fresh $p
    mkdir "$W/run/run.jsonl.tmp"
    refused "something in the way of the new log, P = $p" "cannot rewrite" 2 $p "" --resume "$W/run/checkpoint-00000004"
done
if calls_fail "a full disk when the log is cut"; then
    for p in 1 3; do
        fresh $p
        refused "a full disk when the log is cut, P = $p" "No space left on device" 1 $p 'write /run.jsonl.tmp$ 1 0 ENOSPC' --resume "$W/run/checkpoint-00000004"
        start $p --resume "$W/run/checkpoint-00000004"
        whole "afterwards it goes on" $p "$W/run"
    done

    # Killed in its first moments elsewhere, the same command begins again.
    for at in $(seq 3 2 61); do
        rm -rf "$W/new"
        faulty 1 "all $W/new $at $at KILL" --resume "$W/whole1/checkpoint-00000008" --out "$W/new"
        killed=$?
        [ $killed -eq 137 ] || break
        start 1 --resume "$W/whole1/checkpoint-00000008" --out "$W/new" || break
    done
    why="at call $at, which ended with status $killed: $(head -c 1000 "$W/err")"
    check "killed at one of the first calls elsewhere: the same command begins again" [ "$at" -eq 61 ]
    check "to the same bits" [ "$(hash_of "$W/new")" = "$(hash_of "$W/whole1")" ]
    mkdir "$W/mine"
    echo mine > "$W/mine/vocabulary.txt"
    check "a vocabulary that no run has left is somebody's" mistaken "mine is not empty" 1 --resume "$W/whole1/checkpoint-00000008" --out "$W/mine"
fi

# One that cannot go is in the way before any has gone, and before the log is cut.
for p in 1 3; do
    fresh $p
    touch "$W/run/checkpoint-00000008/notes"
    refused "a later checkpoint that may not be removed, P = $p" "cannot go on from step 4: " 2 $p "" --resume "$W/run/checkpoint-00000004"
    rm "$W/run/checkpoint-00000008/notes"
    mv "$W/run/checkpoint-00000012" "$W/linked"
    ln -s ../linked "$W/run/checkpoint-00000012"
    refused "one that is a link, P = $p" "checkpoint-00000012 is left as it is: it is not a directory; move it away" 2 $p "" --resume "$W/run/checkpoint-00000008"
    rm -r "$W/run/checkpoint-00000012" "$W/linked"
    fresh $p
    mv "$W/run/checkpoint-00000012" "$W/run/checkpoint-00000012.old"
    refused "one that is about to be removed, P = $p" "rename it to checkpoint-<step> first" 2 $p "" --resume "$W/run/checkpoint-00000012.old"
done
if calls_fail "a log whose header cannot be written"; then
    for p in 1 3; do
        fresh $p
        refused "a header that cannot be written, P = $p" "No space left on device" 1 $p 'write /run.jsonl.tmp$ 2 0 ENOSPC' --resume "$W/run/checkpoint-00000004"
        refused "a checkpoint that cannot be renamed, P = $p" "Input/output error" 1 $p 'rename checkpoint-00000012$ 1 1 EIO' --resume "$W/run/checkpoint-00000004"
    done
fi

# -- another process in between ------------------------------------------------------------------------------------------------
# stopping RULE ARGS...: a process that is stopped by it; $late. on: it goes on and ends, with this $status
stopping() {
    stopping_rule=$1
    shift
    FAIL_CALLS=$stopping_rule LD_PRELOAD=$failing_library "$PROGRAM" "$@" > "$W/late.out" 2> "$W/late.err" < /dev/null &
    late=$!
    until grep -q '^State:.*T' "/proc/$late/status" 2> /dev/null || ! kill -0 $late 2> /dev/null; do sleep 0.1; done
}
on() {
    kill -CONT "$late"
    wait "$late"
    status=$?
    why="status $status: $(head -c 300 "$W/late.err")"
}
late() { stopping 'openat /lock$ 1 1 STOP' "$@"; } # when it is about to take the lock
if calls_fail "another process in between"; then
    rm -rf "$W/run"
    start 1 ${common%3}1 --stop-at "$(epochs 1 6)" --out "$W/run"
    late --resume "$W/run"
    start 1 --resume "$W/run"
    rm -rf "$W/before"
    cp -r "$W/run" "$W/before"
    on
    check "a run that ended in between is complete" [ "$status/$(grep -c 'is complete' "$W/late.out")" = 0/1 ]
    why=$(diff -rq "$W/before" "$W/run")
    check "and stays as it is" [ -z "$why" ]
    late $common --out "$W/both/run"
    start 1 $common --out "$W/both/run"
    on
    check "of two new runs the later one is told" [ "$status/$(grep -c 'already holds a run' "$W/late.err")" = 2/1 ]
    check "and takes nothing with it" [ -s "$W/both/run/vocabulary.txt" ]
fi
"$PROGRAM" $words --steps 1000000 --checkpoint-every 3 --lr-schedule constant --lr 0.001 --out "$W/live" > "$W/live.out" 2>&1 < /dev/null &
live=$!
until grep -q '"type":"checkpoint"' "$W/live/run.jsonl" 2> /dev/null || ! kill -0 $live 2> /dev/null; do sleep 0.1; done
kill -STOP $live
cp -r "$W/live" "$W/copy"
rm "$W/copy/lock"
check "--dry-run, too, says that --out is in use" mistaken "live is in use: process $live" 1 --resume "$W/copy" --out "$W/live" --dry-run
kill -CONT $live
kill -TERM $live
wait $live
check "the run there stops with a checkpoint" [ $? -eq 4 ]

# -- what is not a run's ----------------------------------------------------------------------------------------------------------
if calls_fail "a file that has the name of a checkpoint"; then
    rm -rf "$W/run"
    stopping "mkdir checkpoint-00000008.tmp 1 1 STOP" $common --out "$W/run"
    echo mine > "$W/run/checkpoint-00000012"
    on
    cp "$W/late.err" "$W/err"
    check "a file that has the name of a checkpoint is in the way of it" told $status "checkpoint-00000012 is left as it is: it is not a directory; move it away"
    check "and left as it is" [ "$(cat "$W/run/checkpoint-00000012")" = mine ]
    check "those before it are there" [ "$(checkpoints_of "$W/run")" = "4 8 12 " ]
    rm "$W/run/checkpoint-00000012"
    start 1 --resume "$W/run"
    whole "without it the run ends" 1 "$W/run"
fi

# -- names ---------------------------------------------------------------------------------------------------------------------------
fresh 1
truncate -s -1 "$W/run/checkpoint-00000012/model.ckpt"
for named in "$W/run/checkpoint-00000012/" "$W/run/checkpoint-00000012"; do
    check "a damaged one by its name: $(basename "$(dirname "$named/x")")${named##*12}" mistaken "truncated: " 1 --resume "$named"
    check "names the one before it" grep -q "; the one before it: --resume .*/checkpoint-00000008\$" "$W/err"
done
(cd "$W/run" && "$PROGRAM" --resume checkpoint-00000012 > "$W/out" 2> "$W/err" < /dev/null)
check "from within the run's directory" grep -q "; the one before it: --resume .*/checkpoint-00000008\$" "$W/err"
rm "$W/run/checkpoint-00000012/model.ckpt"
check "without its model.ckpt" mistaken "checkpoint-00000012/model.ckpt: No such file or directory; the one before it: --resume " 1 --resume "$W/run/checkpoint-00000012"
start 1 --resume "$W/run"
check "what is passed by is said in one line, without that" grep -q '^sparsetrain: cannot read .*: No such file or directory; going on from ' "$W/err"

# -- lists and logs that fail ----------------------------------------------------------------------------------------------------
if calls_fail "a directory that cannot be listed"; then
    for p in 1 3; do
        fresh $p
        refused "a directory that cannot be listed has no new run begun in it, P = $p" "Input/output error" 1 $p "getdents64 run\$ 1 0 EIO" $common --seed 7 --out "$W/run"
    done
    fresh 1
    touch "$W/run/checkpoint-00000008/notes"
    faulty 1 'getdents64 checkpoint-00000008$ 1 1 EIO' --resume "$W/run/checkpoint-00000004"
    check "nor anything removed from one" told $? "checkpoint-00000008 is left as it is: it cannot be read: Input/output error" 1
    check "it is all there" [ -e "$W/run/checkpoint-00000008/model.ckpt" ]

    rm -r "$W/run"
    faulty 1 'fsync run.jsonl$ 2 0 EIO' $common --out "$W/run"
    check "rows that cannot be synced end the run" told $? "Input/output error; there is no checkpoint yet" 1
    check "and get no checkpoint" [ -z "$(checkpoints_of "$W/run")" ]
    fresh 1
    rows=$(wc -l < "$W/run/run.jsonl")
    faulty 1 "fstat,newfstatat run.jsonl\$ 1 0 EIO; write run.jsonl\$ 1 0 ENOSPC" --resume "$W/run" --steps 14
    check "a log of unknown length is not written to (status $?)" [ "$(grep -c '"type":"step"' "$W/run/run.jsonl")" -eq 12 -a "$rows" -gt 12 ]
fi

# -- a directory that one rank alone sees ------------------------------------------------------------------------------------------
mkdir "$W/here" "$W/there"
timeout -k 10 300 "$MPIRUN" -np 1 -wdir "$W/here" "$PROGRAM" $common --out run : -np 1 -wdir "$W/there" "$PROGRAM" $common --out run > "$W/out" 2> "$W/err" < /dev/null
check "a directory that one rank alone sees" told $? "rank 1 cannot write to --out run: No such file or directory; name a directory that all ranks see"
check "and nothing is left of it" [ ! -e "$W/here/run" ]
finish
