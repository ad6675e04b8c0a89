#!/bin/sh
# fuzz.sh [--target NAME]... SECONDS | --runs N | --list | --build: feeds arbitrary bytes to everything that reads files or
# messages, by libFuzzer under AddressSanitizer and UBSan, starting from the corpora in tests/fuzz.
#
#   SECONDS     each target so long, one after the other (60)
#   --runs N    in place of a time: the corpus and N inputs made from it, the same ones each time
#   --target T  only this one; may be given again
#   --list      the targets: each has a corpus, tests/fuzz/NAME, and a file, tests/fuzz/fuzz_NAME.c or tests/fuzz/comm_fuzz_wire.c
#   --build     builds them and ends
#
# A line for each target: its name, inputs tried, CPU seconds, and what was found. Exit 0: nothing. 1: an input that breaks
# a target; it is kept and named. 77: skipped, clang or its libFuzzer is not installed.
#
# New inputs collect in $BUILD/fuzz/corpus/NAME; those that reach new code are moved into the corpus of the tree with
#     build/fuzz/NAME -merge=1 tests/fuzz/NAME build/fuzz/corpus/NAME
# Environment: BUILD (build), CLANG, FUZZ_SEED (0: another one each time), FUZZ_OUT (where what breaks a target is kept;
# $BUILD/fuzz/found), FUZZ_CORPUS ($BUILD/fuzz/corpus).
set -u
cd "$(dirname "$0")/.." || exit 1
folder=${BUILD:-build}/fuzz
found=${FUZZ_OUT:-$folder/found}
clang=${CLANG:-clang}

. scripts/lib/common.sh
skip() {
    echo "skipped: fuzzing: $1 (sh scripts/deps.sh fuzz)"
    exit 77
}
# make for the build folder that this runs in, whatever make it was started by says
quiet_make() { MAKEFLAGS='' make -s BUILD="${BUILD:-build}" CLANG="$clang" "$@"; }
is_number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }

targets='' seconds=60 runs='' action=run
options_hint='the head of scripts/fuzz.sh says how it is used'
options 'list!action=list build!action=build target+targets runs ...' "$@"
eval "set -- $words"
for word in "$@"; do
    is_number "$word" || fail "$word is no number of seconds; $options_hint"
    seconds=$word
done
[ -z "$runs" ] || is_number "$runs" || fail "--runs wants a number; $options_hint"
all=$(for corpus in tests/fuzz/*/; do basename "$corpus"; done)
[ $action != list ] || {
    printf '%s\n' "$all"
    exit 0
}
for target in $targets; do
    printf '%s\n' "$all" | grep -qx -- "$target" || fail "there is no target $target; there are: $(echo "$all" | tr '\n' ' ')"
done

command -v "$clang" > /dev/null 2>&1 || skip "clang is not installed"
make_scratch
printf '#include <stddef.h>\nint LLVMFuzzerTestOneInput(const unsigned char *d, size_t n) { return d && n > 9; }\n' > "$scratch/try.c"
"$clang" -fsanitize=fuzzer,address,undefined "$scratch/try.c" -o "$scratch/try" 2> /dev/null || skip "clang has no libFuzzer"
# Two that build at once would get in each other's way.
mkdir -p "$folder"
build() { if command -v flock > /dev/null; then flock 9; fi && quiet_make fuzz-targets > "$scratch/log" 2>&1 9>&-; }
build 9> "$folder/lock" || {
    cat "$scratch/log"
    echo "fuzz.sh: the fuzzers do not build" >&2
    exit 1
}
[ $action = run ] || exit 0

# Files that a target reads go to memory where there is such a place.
FUZZ_SCRATCH=$scratch
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
    FUZZ_SCRATCH=$(mktemp -d /dev/shm/sparsetrain-fuzz.XXXXXX) || exit 1
    trap 'rm -rf "$scratch" "$FUZZ_SCRATCH"' EXIT
fi
export FUZZ_SCRATCH

# run_one TARGET: a line on stdout; false when something was found
run_one() {
    corpus=${FUZZ_CORPUS:-$folder/corpus}/$1
    if [ -n "$runs" ]; then
        corpus=$scratch/corpus-$1 # nothing of earlier runs, and nothing left behind
        set -- "$1" "-runs=$((runs + $(find "tests/fuzz/$1" -type f | wc -l)))" -seed=1
    else
        set -- "$1" "-max_total_time=$seconds" -seed="${FUZZ_SEED:-0}"
    fi
    mkdir -p "$corpus" "$found"
    log=$scratch/$1.log
    times > "$scratch/before" # of this shell's children; not in a shell of its own, which has none
    "$folder/$1" "$2" "$3" -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$found/$1-" "$corpus" "tests/fuzz/$1" > "$log" 2>&1
    status=$?
    times > "$scratch/after"
    tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    what=$(sed -n 's/.*Test unit written to \(.*\)/\1/p' "$log" | tail -n 1)
    echo "$1 ${tried:-0} inputs $(cpu_seconds) s CPU, found: ${what:-nothing}"
    [ "$status" -eq 0 ] && return
    tail -n 40 "$log"
    echo "fuzz.sh: the input that did this is kept as ${what:-(none was written)}; once repaired, keep it in tests/fuzz/$1"
    return 1
}
# Between the two: the second line of `times` is the children's, user and system, 1m2.3s each.
cpu_seconds() {
    awk 'FNR == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/); at[++files] = 60 * (u[1] + s[1]) + u[2] + s[2] }
        END { printf "%.1f", at[2] - at[1] }' "$scratch/before" "$scratch/after"
}

result=0
for target in ${targets:-$all}; do run_one "$target" || result=1; done
exit $result
