#!/bin/sh
# cli_fuzz.sh: every fuzz target (scripts/fuzz.sh) over its corpus and some inputs more, a fixed number of them, a test
# each. FUZZ_RUNS: another number.
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

runs=${FUZZ_RUNS:-2000}
small=$(for t in $(sh scripts/fuzz.sh --list); do [ "$(find "tests/fuzz/$t" -type f | wc -l)" -ge 5 ] || echo "$t"; done)
check "each target has a corpus of 5 inputs and more" [ -z "$small" ]
check "and each file of a target is in the list" [ -z "$(for f in tests/fuzz/fuzz_*.c; do basename "$f" .c; done | sed s/^fuzz_// | grep -vxF "$(sh scripts/fuzz.sh --list)")" ]
sh scripts/fuzz.sh --target no-such 1 > "$W/out" 2> "$W/err"
check "a target that is none is refused" [ $? -eq 2 ]

if [ -n "${SAN:-}" ]; then
    skip "fuzzing" "the run without SAN does it, under sanitizers of its own"
    finish
    exit
fi
sh scripts/fuzz.sh --build > "$W/out" 2>&1
case $? in
0) ;;
77)
    skip "fuzzing" "$(sed -n 's/^skipped: [^:]*: //p' "$W/out")"
    finish
    exit
    ;;
*)
    sed 's/^/# /' "$W/out"
    not_ok "the fuzzers build" "see above"
    finish
    exit 1
    ;;
esac

for target in $(sh scripts/fuzz.sh --list); do
    FUZZ_OUT=$W/found sh scripts/fuzz.sh --target "$target" --runs "$runs" > "$W/out" 2>&1
    status=$?
    sed 's/^/# /' "$W/out"
    tried=$(awk -v t="$target" '$1 == t { print $2 }' "$W/out")
    if [ $status -eq 0 ] && [ "${tried:-0}" -ge "$runs" ]; then
        ok "$target: $runs inputs"
    else
        not_ok "$target: $runs inputs" "status $status after ${tried:-no} inputs, see above"
    fi
done

# A fuzzer that would not see anything is none: a target that reads beyond its input is found out within the corpus.
cat > "$W/broken.c" << 'END'
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *copy = malloc(size + 1);
    if (size) memcpy(copy, data, size);
    int last = size > 2 ? copy[size + 1] : 0;
    free(copy);
    return last > 1000;
}
END
"${CLANG:-clang}" -g -fsanitize=fuzzer,address,undefined "$W/broken.c" -o "$W/broken" && "$W/broken" -runs=100 tests/fuzz/wire -artifact_prefix="$W/" > "$W/out" 2>&1
check "and what reads beyond its input is seen" grep -q heap-buffer-overflow "$W/out"
finish
