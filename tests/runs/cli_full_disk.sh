#!/bin/sh
# cli_full_disk.sh: calls of the file system that fail, or in which a rank is killed (tests/preload/failing.c), in the middle
# of training: which failures a run survives, what it says, how it ends, and that no row and no bit is lost.
# waits: for jobs that end
. tests/lib/tap.sh
common="--data synthetic:64x8 --batch 4 --progress none --algo topka --density 0.05 --density-warmup none --keep 100"
rename=rename,renameat,renameat2

if ! calls_fail "calls that fail"; then
    finish
    exit
fi

# ends STATUS WANT TEXT: with status WANT and one line of ours, which contains TEXT
ends() { told "$1" "$3" "$2"; }
# tidy DIR: nothing half-written is left in it
tidy() {
    why="left: $(find "$1" -name '*.tmp*' -o -name '*.old*')"
    [ -z "$(find "$1" -name '*.tmp*' -o -name '*.old*')" ]
}
# rows DIR: its evaluations, but for times
rows() { grep '"type":"eval"' "$1/run.jsonl" | sed 's/,"train_seconds".*//'; }
# as_undisturbed DIR P: the rows and bits of a run that nothing has disturbed, each step once
as_undisturbed() {
    why="hash $(hash_of "$1"), not $(hash_of "$W/whole$2")"
    [ "$(hash_of "$1")" = "$(hash_of "$W/whole$2")" ] || return 1
    why="evaluations: $(rows "$1")"
    [ "$(rows "$1")" = "$(rows "$W/whole$2")" ] || return 1
    why="steps: $(grep -c '"type":"step"' "$1/run.jsonl")"
    [ "$(grep '"type":"step"' "$1/run.jsonl" | sed 's/.*"step":\([0-9]*\).*/\1/' | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 " ]
}
# resumed DIR P: goes on with it, undisturbed
resumed() {
    start "$2" --resume "$1"
    why="status $?: $(head -c 300 "$W/err")"
    [ "${why#status 0:}" != "$why" ] && as_undisturbed "$1" "$2"
}

# An evaluation and a checkpoint every two steps, on any number of ranks.
every() { awk "BEGIN { print 2 * 4 * $1 / 64 }"; }
for p in 1 2 3; do
    # shellcheck disable=SC2086
    start $p $common --steps 8 --eval-every "$(every $p)" --out "$W/whole$p"
    check "undisturbed on $p ranks" [ "$(checkpoints_of "$W/whole$p")" = "2 4 6 8 " ]
done

# -- a checkpoint that fails: one line, and the run goes on -----------------------------------------------------------
# survives NAME P RULES TEXT: without the checkpoint of step 4
survives() {
    rm -rf "$W/run"
    # shellcheck disable=SC2086
    faulty "$2" "$3" $common --steps 8 --eval-every "$(every "$2")" --out "$W/run"
    s_status=$?
    check "$1, on $2 ranks: one line, status 0" ends $s_status 0 "$4"
    check "$1: the next one is written, and nothing is left" [ "$(checkpoints_of "$W/run")" = "2 6 8 " ]
    check "$1: the same bits" as_undisturbed "$W/run" "$2"
}
goes_on="; the last complete checkpoint, of step 2, is kept; the run goes on, and writes the next one when it is due"
four=checkpoint-00000004
survives "no room for a checkpoint" 1 "write $four 1 0 ENOSPC" "model.ckpt: No space left on device$goes_on"
survives "half of a write" 3 "write $four 2 2 SHORT; write $four 3 3 ENOSPC" "No space left on device$goes_on"
FAIL_RANK=1 survives "no room for rank 1's file" 2 "write $four 1 0 EDQUOT" "rank0001.ckpt: Disk quota exceeded$goes_on"
survives "an ill disk" 2 "fsync $four 1 1 EIO" "Input/output error$goes_on"
survives "a directory that is not written" 1 "fsync $four.tmp\$ 1 1 EIO" "cannot write the directory $W/run/$four.tmp to the disk: Input/output error$goes_on"
survives "a rename that fails" 3 "$rename $four 1 1 ENOSPC" "cannot rename $W/run/$four.tmp: No space left on device$goes_on"
FAIL_RANK=2 survives "too many open files on rank 2" 3 "openat $four 1 0 EMFILE" "rank0002.ckpt: Too many open files$goes_on"
rm -rf "$W/run"
# shellcheck disable=SC2086
faulty 2 "write checkpoint-00000002 1 1 ENOSPC" $common --steps 8 --eval-every "$(every 2)" --out "$W/run"
check "the first checkpoint fails: none is said to be kept" ends $? 0 "No space left on device; there is no checkpoint yet; the run goes on"
rm -rf "$W/run"
# shellcheck disable=SC2086
faulty 1 "fsync run\$ 1 0 EINVAL; fsync .tmp\$ 1 0 ENOTSUP" $common --steps 8 --eval-every "$(every 1)" --out "$W/run"
check "a file system that syncs no directories: status 0" [ $? -eq 0 ]
check "and all checkpoints" [ "$(checkpoints_of "$W/run")" = "2 4 6 8 " ]

# Somebody's files where a checkpoint is to be made, and where one was left: they stay.
rm -rf "$W/run"
mkdir -p "$W/run/$four.tmp" "$W/run/checkpoint-00000002.old"
echo mine | tee "$W/run/$four.tmp/notes" > "$W/run/checkpoint-00000002.old/notes"
# shellcheck disable=SC2086
start 1 $common --steps 8 --eval-every "$(every 1)" --out "$W/run"
check "somebody's directory in the way: one line, status 0" ends $? 0 "cannot write a checkpoint: $W/run/$four.tmp is left as it is: it holds notes, which is no file of a checkpoint; move it away$goes_on"
check "another that is in no way: said" grep -q "checkpoint-00000002.old is left as it is: it holds notes" "$W/out"
check "they stay" grep -q mine "$W/run/$four.tmp/notes" "$W/run/checkpoint-00000002.old/notes"
check "and the next checkpoint is written" [ -d "$W/run/checkpoint-00000006" ]

# -- the last one fails: status 1, and nothing is lost --------------------------------------------------------------------
# fails NAME P RULES TEXT ARGS...: status 1; a run that goes on from there is as if undisturbed
fails() {
    t_name=$1 t_p=$2 t_rules=$3 t_text=$4
    shift 4
    rm -rf "$W/run"
    # shellcheck disable=SC2086
    faulty "$t_p" "$t_rules" $common --steps 8 --eval-every "$(every "$t_p")" --out "$W/run" "$@"
    t_status=$?
    check "$t_name, on $t_p ranks: one line, status 1" ends $t_status 1 "$t_text"
    check "$t_name: nothing half-written" tidy "$W/run"
    check "$t_name: resumed, rows and bits are there" resumed "$W/run" "$t_p"
}
eight=checkpoint-00000008
kept="; the last complete checkpoint, of step 6, is kept"
fails "no room for the last checkpoint" 1 "write $eight 1 0 ENOSPC" "No space left on device$kept"
fails "no room for the last one of rank 0" 3 "write $eight 1 0 ENOSPC" "No space left on device$kept"
fails "the last rename fails" 2 "$rename $eight 1 1 EIO" "cannot rename $W/run/$eight.tmp: Input/output error$kept"
fails "what its place holds cannot be told" 2 "openat $eight\$ 1 1 EIO" "cannot write a checkpoint: $W/run/$eight is left as it is: it cannot be read: Input/output error$kept"
fails "a name that may get lost" 2 "fsync run\$ 4 4 EIO" "cannot write the directory $W/run to the disk: Input/output error$kept"
rm -rf "$W/run"
# shellcheck disable=SC2086
faulty 2 "write checkpoint- 1 0 ENOSPC" $common --steps 2 --eval-every never --out "$W/run"
check "no checkpoint at all: none is said to be kept" ends $? 1 "No space left on device; there is no checkpoint yet"

# -- the log cannot be written: a checkpoint is, status 1 ---------------------------------------------------------------
fails "a log that is full" 1 "write run.jsonl 8 0 ENOSPC" "cannot write $W/run/run.jsonl: No space left on device; the last complete checkpoint, of step "
fails "a log that is full" 3 "write run.jsonl 8 0 ENOSPC" "cannot write $W/run/run.jsonl: No space left on device; the last complete checkpoint, of step "
fails "a log that is full once" 2 "write run.jsonl 8 8 ENOSPC" "cannot write $W/run/run.jsonl: No space left on device; the last complete checkpoint, of step "
fails "a log that is full in the middle of a row" 2 "write run.jsonl 8 8 SHORT; write run.jsonl 9 9 ENOSPC" "cannot write $W/run/run.jsonl: No space left on device; the last complete checkpoint, of step "
fails "a log that does not reach the disk" 2 "fsync run.jsonl 4 0 EIO" "cannot write $W/run/run.jsonl: Input/output error; the last complete checkpoint, of step "

# -- killed between the log and the checkpoint's name, and behind it ------------------------------------------------------
# killed NAME P RULES
killed() {
    rm -rf "$W/run"
    # shellcheck disable=SC2086
    faulty "$2" "$3" $common --steps 8 --eval-every "$(every "$2")" --out "$W/run"
    k_status=$?
    check "$1, on $2 ranks: it was killed" [ $k_status -eq 137 ]
    check "$1: resumed, rows and bits are there" resumed "$W/run" "$2"
}
for p in 1 2 3; do
    killed "killed before a checkpoint gets its name" $p "$rename $four 1 1 KILL"
    killed "killed when it has its name" $p "fsync run\$ 2 2 KILL"
done
# A log that lost the row all the same.
rm -rf "$W/run"
cp -r "$W/whole2" "$W/run"
rm -r "$W/run/$eight" "$W/run/checkpoint-00000006"
grep -v '"type":"eval","step":4,' "$W/whole2/run.jsonl" > "$W/run/run.jsonl"
start 2 --resume "$W/run"
check "an evaluation that the log lacks is made again" [ "$(rows "$W/run" | sed 's/,"train_loss".*//')" = "$(rows "$W/whole2" | sed 's/,"train_loss".*//')" ]

# -- the log of a run that resumes ------------------------------------------------------------------------------------------
rm -rf "$W/half"
# shellcheck disable=SC2086
start 1 $common --steps 8 --eval-every "$(every 1)" --stop-at "$(awk 'BEGIN { print 4 * 4 / 64 }')" --out "$W/half"
# unresumed NAME RULES TEXT: status 1, and the log is as it was
unresumed() {
    rm -rf "$W/run"
    cp -r "$W/half" "$W/run"
    faulty 1 "$2" --resume "$W/run" --steps 8
    check "$1: status 1, one line" ends $? 1 "$3"
    check "$1: the log is as it was" cmp -s "$W/half/run.jsonl" "$W/run/run.jsonl"
    check "$1: nothing is left" tidy "$W/run"
}
unresumed "an old log that cannot be read to its end" "read run.jsonl 3 3 EIO" "cannot rewrite $W/run/run.jsonl: Input/output error"
for call in 2 3 4; do # the first says whose run it is
    unresumed "a log that may be there or not, $call" "access run.jsonl\$ $call $call EIO" "cannot $([ $call -eq 3 ] && echo write || echo read) $W/run/run.jsonl: Input/output error; choose another --out"
done
unresumed "a new log for which there is no room" "fsync run.jsonl.tmp 1 1 ENOSPC" "cannot rewrite $W/run/run.jsonl: No space left on device"
unresumed "a new log that cannot take the place of the old one" "$rename run.jsonl.tmp 1 1 EIO" "cannot rewrite $W/run/run.jsonl: Input/output error"
# Whether there is a checkpoint cannot be told where the directory cannot be read: nobody is told to begin anew.
for rule in "openat run\$ 1 1" "newfstatat run\$ 2 2" "getdents64 run\$ 1 1" "getdents64 run\$ 2 2"; do
    unresumed "a directory that cannot be read: $rule" "$rule EIO" "cannot resume from $W/run: Input/output error"
done
unresumed "a lock that cannot be looked at" "newfstatat /lock\$ 1 1 EIO" "cannot read $W/run/lock: Input/output error"
unresumed "a lock that cannot be read" "pread64 /lock\$ 1 1 EIO" "cannot read $W/run/lock: Input/output error"
unresumed "too many open files for a checkpoint" "openat model.ckpt 1 0 EMFILE" "model.ckpt: Too many open files"

# A vocabulary that a kill has left half-written goes when the run goes on, or begins again.
words="--model lstm --hidden 4 --bptt 3 --data synthetic-text:200x50x50 --batch 2 --eval-every never --progress none"
for p in 1 2; do
    for at in write fsync rename; do
        rm -rf "$W/words"
        # shellcheck disable=SC2086
        FAIL_RANK=0 faulty $p "$at vocabulary.txt 1 1 KILL" $words --steps 2 --out "$W/words"
        check "killed at a vocabulary's $at, on $p ranks: it is there by half" [ $? -eq 137 -a -e "$W/words/vocabulary.txt.tmp" ]
        # shellcheck disable=SC2086
        start $p $words --steps 2 --out "$W/words"
        check "begun again: nothing is left" tidy "$W/words"
        FAIL_RANK=0 faulty $p "$at vocabulary.txt 1 1 KILL" --resume "$W/words" --steps 4
        start $p --resume "$W/words" --steps 4
        check "resumed: nothing is left" tidy "$W/words"
    done
done

# -- threads end before what they read goes away ----------------------------------------------------------------------------
# Not one run of these crashes, however slow its threads are.
SLOW_THREADS=1
export SLOW_THREADS
for p in 1 2 3; do
    for overlap in none layers; do
        [ $overlap = none ] || [ $p -gt 1 ] || continue
        for rules in "write checkpoint- 1 0 ENOSPC" "write run.jsonl 2 0 ENOSPC" "write selected 2 0 ENOSPC" "$rename trace 1 0 EIO"; do
            rm -rf "$W/run" "$W/selected" "$W/trace"
            # shellcheck disable=SC2086
            faulty $p "$rules" $common --overlap $overlap --steps 3 --eval-every never --out "$W/run" --record "$W/selected" --record-what selected --trace "$W/trace"
            check "slow threads, $p ranks, --overlap $overlap, $rules: status 1" ends $? 1 "cannot "
        done
    done
done
rm -rf "$W/run"
# shellcheck disable=SC2086
start 2 $common --steps 3 --out "$W/none/nowhere" --dry-run --record "$W/none/file"
check "slow threads, a dry run that finds a mistake: status 2" told $? "cannot write the gradients"
unset SLOW_THREADS

# -- MPI's threads see events late -----------------------------------------------------------------------------------------
# Open MPI 4.1 dies of it in MPI_Finalize of what is short, where the program has done all that it had to.
slow_events() {
    slow_p=$1
    shift
    SLOW_EVENTS=1 LD_PRELOAD=$failing_library timeout -k 10 300 "$MPIRUN" -np "$slow_p" "$PROGRAM" "$@" > "$W/out" 2> "$W/err" < /dev/null
}
for p in 1 2 3; do
    # shellcheck disable=SC2086
    slow_events $p $common --steps 3 --out "$W/run" --dry-run
    check "slow events, $p ranks, a dry run: status 0" [ $? -eq 0 ]
    slow_events $p --algo nothing
    check "slow events, $p ranks: a mistake is one line, status 2" told $? '--algo has no "nothing"'
done

# -- MPI's own directory ----------------------------------------------------------------------------------------------------
# Without mpirun Open MPI 4.1 would have all its processes on a machine share one, which each makes and removes.
mkdir "$W/tmp"
# shellcheck disable=SC2086
TMPDIR=$W/tmp faulty 1 "mkdir $W/tmp/ 1 0 EACCES" $common --steps 3 --out "$W/run" --dry-run
status=$? why="status $?: $(head -c 1000 "$W/err")"
check "without mpirun MPI makes no directory that others would remove" [ $status -eq 0 ]

# -- other files --------------------------------------------------------------------------------------------------------------
faulty 2 "write my.net 1 0 ENOSPC" p2p --sizes 4:64:4 --repeat 2 --out "$W/my.net"
check "a network of p2p that does not fit: status 1" ends $? 1 "No space left on device"
rm -rf "$W/run"
faulty 1 "write vocabulary.txt 1 0 ENOSPC" --model lstm --hidden 4 --bptt 3 --data synthetic-text:200x50x50 --batch 2 --steps 2 --out "$W/run"
check "a vocabulary that does not fit: status 1, and why" ends $? 1 "vocabulary.txt: No space left on device"
# A recording without its head, or without a step, is none and does not stay, so that the same command can be given again.
for p in 1 2; do
    for what in gradients selected; do
        for rules in "write recorded 1 0 ENOSPC" "write recorded 1 1 SHORT; write recorded 2 0 ENOSPC" "write recorded 2 0 ENOSPC"; do
            rm -rf "$W/run"
            # shellcheck disable=SC2086
            faulty $p "$rules" $common --steps 3 --eval-every never --out "$W/run" --record "$W/recorded" --record-what $what
            check "no room for a recording, $rules, $what, on $p ranks: status 1" ends $? 1 "cannot write the gradients to $W/recorded: No space left on device"
            check "nothing of it stays" [ ! -e "$W/recorded" ]
        done
    done
done
touch "$W/recorded"
# shellcheck disable=SC2086
start 2 $common --steps 3 --out "$W/unrecorded" --record "$W/recorded"
check "somebody's file in its place: status 2" told $? "recorded is there already"
check "it stays" [ -e "$W/recorded" ]
# What is said to be kept is there.
wild="--data synthetic:64x8 --batch 4 --progress none"
rm -rf "$W/run"
# shellcheck disable=SC2086
start 1 $wild --algo dense --steps 40 --lr 1000 --eval-every never --out "$W/run"
check "NaN before any checkpoint: none is said to be kept" [ "$(grep -c 'is kept' "$W/err")" -eq 0 ]
check "NaN: status 3 then" grep -q 'NaN or infinite; try a smaller --lr' "$W/err"
rm -rf "$W/run"
# shellcheck disable=SC2086
start 1 $wild --algo dense --steps 40 --lr 1000 --eval-every never --checkpoint-every 1 --out "$W/run"
check "NaN after one: it is named" grep -q 'NaN or infinite; the last checkpoint, of step [0-9]*, is kept; try a smaller --lr' "$W/err"
finish
