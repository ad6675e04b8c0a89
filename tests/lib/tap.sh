# shellcheck shell=sh
# tap.sh: sourced by the shell tests: TAP lines, and running the real program under the real mpirun.
# Wants BUILD (the build folder); makes and removes a work directory $W.
set -u
BUILD=${BUILD:-build}
PROGRAM=$(pwd)/$BUILD/sparsetrain
MPIRUN=${MPIRUN:-mpirun}
W=$(mktemp -d "${TMPDIR:-/tmp}/sparsetrain-test.XXXXXX") || exit 1
trap 'rm -rf "$W"' EXIT
trap 'exit 1' HUP INT TERM
tap_count=0
tap_failed=0

ok() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1"
}

# not_ok NAME WHY
not_ok() {
    tap_count=$((tap_count + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $1"
    echo "# $2"
}

# skip NAME WHY
skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

# check NAME CONDITION-COMMAND...: ok when the command succeeds; one that fails may leave the reason in $why, as may what
# has come before it since the last check
why=
check() {
    check_name=$1
    shift
    why=${why:-failed: $*}
    if "$@"; then ok "$check_name"; else not_ok "$check_name" "$why"; fi
    why=
}

finish() {
    echo "1..$tap_count"
    [ "$tap_failed" -eq 0 ]
}

# start P ARGS...: the program on P ranks (P = 1 without mpirun); stdout to $W/out, stderr to $W/err; its status
start() {
    start_p=$1
    shift
    if [ "$start_p" -eq 1 ]; then
        timeout -k 10 300 "$PROGRAM" "$@" > "$W/out" 2> "$W/err" < /dev/null
    else
        timeout -k 10 300 "$MPIRUN" -np "$start_p" "$PROGRAM" "$@" > "$W/out" 2> "$W/err" < /dev/null
    fi
}

. scripts/lib/ranks.sh
# kill_ranks JOB: kills the ranks of the mpirun with this process number, waits for it, and has its status. Open MPI 4.1 with PMIx 4.2 may
# never end by itself where a rank dies while it connects (PMIx_server_finalize waits for a lock that is never given back)
kill_ranks() {
    # shellcheck disable=SC2046 # process numbers
    kill -9 $(ranks_of "$1") 2> /dev/null
    gone "$1" || kill -9 "$1"
    wait "$1" 2> /dev/null
}

# The lines that the program itself wrote to stderr (launchers add their own).
our_lines() { grep -c '^sparsetrain: ' "$W/err"; }

# Conditions for check:
# told STATUS TEXT [WANT]: what has just run ended with this status, which is 2 (or WANT), after one line of ours, which
# contains TEXT
told() {
    if [ "$1" -ne "${3:-2}" ]; then
        why="status $1: $(head -c 500 "$W/err")"
    elif [ "$(our_lines)" -ne 1 ]; then
        why="$(our_lines) lines: $(head -c 500 "$W/err")"
    elif ! grep '^sparsetrain: ' "$W/err" | grep -qF -- "$2"; then
        why="said instead: $(grep '^sparsetrain: ' "$W/err")"
    else
        return 0
    fi
    return 1
}
# mistaken TEXT P ARGS...: so ends the program on P ranks
mistaken() {
    mistaken_text=$1
    shift
    start "$@"
    told $? "$mistaken_text"
}
# failing TEXT P ARGS...: so it ends where the system is to blame, with status 1
failing() {
    failing_text=$1
    shift
    start "$@"
    told $? "$failing_text" 1
}
# mistaken_alone TEXT ARGS...: so on one rank, and all of stderr is that line
mistaken_alone() {
    alone_text=$1
    shift
    mistaken "$alone_text" 1 "$@" || return 1
    why="more than a line: $(head -c 500 "$W/err")"
    [ "$(wc -l < "$W/err")" -eq 1 ] && [ "$(grep -c . "$W/err")" -eq 1 ]
}
# silent CONDITION-COMMAND...: the command succeeds, and nothing is on stdout afterwards
silent() {
    "$@" || return 1
    why="something on stdout: $(head -c 200 "$W/out")"
    [ ! -s "$W/out" ]
}
# unmade FILE CONDITION-COMMAND...: the command succeeds, and there is no FILE afterwards
unmade() {
    unmade_file=$1
    shift
    "$@" || return 1
    why="$unmade_file was made"
    [ ! -e "$unmade_file" ]
}

# calls_fail NAME: can calls of the program be made to fail here (tests/preload/failing.c, in $failing_library)? Else NAME is skipped
failing_library=$(pwd)/$BUILD/tests/libfailing.so
calls_fail() {
    if [ -n "${SAN:-}" ]; then
        skip "$1" "LD_PRELOAD and sanitizers exclude each other"
    elif [ ! -f "$failing_library" ]; then
        skip "$1" "tests/preload/failing.c is for Linux"
    else # env: true may be the shell's own
        FAIL_CALLS="all $W 0 0 EIO" FAIL_PROGRAM=true LD_PRELOAD=$failing_library env true 2> "$W/err"
        [ $? -eq 99 ] || return 0
        skip "$1" "$(sed -n 's/^failing: //p' "$W/err")"
    fi
    return 1
}
# faulty P RULES ARGS...: start, where these calls fail.
faulty() {
    faulty_p=$1 faulty_rules=$2
    shift 2
    FAIL_CALLS=$faulty_rules LD_PRELOAD=$failing_library start "$faulty_p" "$@"
}

# hash_of DIR: of the parameters at the end of the run in it
hash_of() { json "$1/run.jsonl" summary parameters_hash; }
# checkpoints_of DIR: the steps of the checkpoints in it, each with what stands behind its name
checkpoints_of() { find "$1" -name 'checkpoint-*' | sed 's/.*checkpoint-0*//' | sort -n | tr '\n' ' '; }
# live_begin RUN: a run of one rank, without a checkpoint yet, is under way there; $live: its process. live_end RUN: it is
# asked to stop; whether that went as it does where nobody took anything away.
live_begin() {
    "$PROGRAM" --data synthetic:512x16 --batch 4 --steps 1000000 --eval-every never --out "$1" > "$W/live.out" 2>&1 < /dev/null &
    live=$!
    until grep -q '"type":"step"' "$1/run.jsonl" 2> /dev/null || ! kill -0 $live 2> /dev/null; do sleep 0.1; done
}
live_end() {
    kill -TERM "$live"
    wait "$live"
    live_status=$?
    why="status $live_status; there are $(find "$1" | tr '\n' ' ')"
    [ $live_status -eq 4 ] && grep -q '"type":"step","step":1,' "$1/run.jsonl" && ls "$1"/checkpoint-*/model.ckpt > /dev/null
}

# resumes NAME P ARGS...: a run with the options in $common, of 12 steps with a checkpoint every 5, in $whole; then steps
# 11 and 12 again from the checkpoint of step 10: the same bits
resumed=0
resumes() {
    resumes_name=$1 resumes_p=$2
    shift 2
    resumed=$((resumed + 1))
    whole=$W/whole$resumed again=$W/again$resumed
    # shellcheck disable=SC2086,SC2154 # a list of options, set by the test
    if ! start "$resumes_p" $common "$@" --out "$whole"; then
        not_ok "$resumes_name" "status $?: $(head -c 300 "$W/err")"
    elif ! start "$resumes_p" --resume "$whole/checkpoint-00000010" --out "$again"; then
        not_ok "$resumes_name" "resumed: $(head -c 300 "$W/err")"
    elif [ -n "$(hash_of "$whole")" ] && [ "$(hash_of "$whole")" = "$(hash_of "$again")" ]; then
        ok "$resumes_name"
    else
        not_ok "$resumes_name" "hash $(hash_of "$whole") whole, $(hash_of "$again") resumed"
    fi
}

# A network of 35,152 parameters for tests of what does not depend on which one it is: starting three ranks of it and doing 12
# steps takes half the processor time that ResNet-20 takes.
# shellcheck disable=SC2034
small_net="--model lstm --hidden 8 --bptt 5 --data synthetic-text:4000x400x400 --batch 4"
# small_epoch STEP P: the epoch, for --stop-at, of a step of it on P ranks; each of 4 P streams predicts its words but
# the first, five at a time, and a run stops at the step with which it has come so far
small_epoch() { awk -v step="$1" -v p="$2" 'BEGIN { print (step - 0.5) / int((int(4000 / (4 * p)) - 1) / 5) }'; }

# names_of MACRO FILE.def: the names in a table of the source, as the command line has them
names_of() { sed -n "s/^$1(\\([a-z0-9_]*\\)).*/\\1/p" "$2" | tr _ -; }

# row_says ALGO FLAG: is this flag of struct exchange_ops set in the row of an exchange?
row_says() { grep -q "^    \.$2 = true" "$(grep -l "^    \.name = \"$1\"," comm/algorithms/*.c)"; }
# stands_apart ALGO: is it left out of rankings (exchange_apart)?
stands_apart() { row_says "$1" drifts || row_says "$1" outer || row_says "$1" blind || row_says "$1" low_rank; }
# ranked_rows: how many rows a ranking of all exchanges has: one a wire format of those that are sparse; of dense ones with
# a form in 16 bits these two besides
ranked_rows() {
    ranked=0 formats=$(names_of WIRE comm/wire/wires.def | grep -c .)
    for exchange in $(names_of EXCHANGE comm/algorithms/exchanges.def); do
        if stands_apart "$exchange"; then continue; fi
        if row_says "$exchange" sparse; then ranked=$((ranked + formats)); continue; fi
        ranked=$((ranked + 1))
        if row_says "$exchange" halves; then ranked=$((ranked + 2)); fi
    done
    echo $ranked
}

# json_lines NAME FILE: ok when every line of it is JSON
json_lines() {
    if command -v python3 > /dev/null 2>&1; then
        check "$1" python3 -c "import json,sys; [json.loads(l) for l in open(sys.argv[1])]" "$2"
    else
        skip "$1" "python3 is not installed"
    fi
}

# json FILE TYPE KEY: the last such value in a run.jsonl
json() {
    sed -n "s/^{\"type\":\"$2\".*\"$3\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$1" | tail -n 1
}

# note_launches: from here on MPIRUN notes each job, a line in $W/log, and at the one whose number stands in $W/stop ends
# as a signal ends it. calls: how many jobs there were.
note_launches() {
    . scripts/mpi-env.sh
    : > "$W/log"
    cat > "$W/mpirun" << END
#!/bin/sh
echo "\$*" >> "$W/log"
if [ -f "$W/stop" ] && [ "\$(wc -l < "$W/log")" -ge "\$(cat "$W/stop")" ]; then echo half of a file; exit 143; fi
exec "$MPIRUN" "\$@"
END
    chmod +x "$W/mpirun"
    MPIRUN=$W/mpirun
    export MPIRUN
}
calls() { wc -l < "$W/log"; }
