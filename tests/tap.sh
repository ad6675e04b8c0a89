# shellcheck shell=sh
# tap.sh: sourced by the shell tests: TAP lines, and running the real program under the real mpirun.
# Wants BUILD (the build folder); makes and removes a work directory $W.
set -u
BUILD=${BUILD:-build}
PROGRAM=$(pwd)/$BUILD/sparsetrain
MPIRUN=${MPIRUN:-mpirun}
W=$(mktemp -d "${TMPDIR:-/tmp}/sparsetrain-test.XXXXXX")
trap 'rm -rf "$W"' EXIT
trap 'exit 1' INT TERM
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

# check NAME CONDITION-COMMAND...: ok when the command succeeds
check() {
    check_name=$1
    shift
    if "$@"; then ok "$check_name"; else not_ok "$check_name" "failed: $*"; fi
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
        timeout 300 "$PROGRAM" "$@" > "$W/out" 2> "$W/err" < /dev/null
    else
        timeout 300 "$MPIRUN" -np "$start_p" "$PROGRAM" "$@" > "$W/out" 2> "$W/err" < /dev/null
    fi
}

# The lines that the program itself wrote to stderr (launchers add their own).
our_lines() { grep -c '^sparsetrain: ' "$W/err"; }

# json FILE TYPE KEY: the last such value in a run.jsonl
json() {
    sed -n "s/^{\"type\":\"$2\".*\"$3\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$1" | tail -n 1
}
