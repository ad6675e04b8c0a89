#!/bin/sh
# fuzz.sh [SECONDS]: feeds arbitrary bytes to the decoders of all wire formats for so long (60), by libFuzzer under
# AddressSanitizer and UBSan, starting from the corpus in tests/fuzz/wire. Exit 0: nothing was found. 1: an input that
# breaks a decoder; it is kept and named. 77: skipped, clang or its libFuzzer is not installed.
#
# A long run: sh scripts/fuzz.sh 36000. New inputs collect in $BUILD/fuzz/corpus; those that reach new code are moved
# into the corpus of the tree with
#     build/fuzz/wire -merge=1 tests/fuzz/wire build/fuzz/corpus
set -u
cd "$(dirname "$0")/.." || exit 1
seconds=${1:-60}
folder=${BUILD:-build}/fuzz
case $seconds in
'' | *[!0-9]*)
    echo "fuzz.sh: $seconds is no number of seconds" >&2
    exit 2
    ;;
esac

skip() {
    echo "skipped: fuzzing of the wire formats: $1 (sh scripts/deps.sh fuzz)"
    exit 77
}

clang=${CLANG:-clang}
flags="-std=c11 -D_GNU_SOURCE -DST_FUZZ -DST_SANITIZE -DST_VERSION='\"0\"' -I. -O1 -g -fno-omit-frame-pointer -ffp-contract=off -Wno-unknown-pragmas"
sanitize='-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all'
command -v "$clang" > /dev/null 2>&1 || skip "clang is not installed"
mkdir -p "$folder/corpus" "$folder/obj" || exit 1
printf '#include <stddef.h>\nint LLVMFuzzerTestOneInput(const unsigned char *d, size_t n) { return d && n > 9; }\n' > "$folder/obj/try.c"
# shellcheck disable=SC2086 # lists of options
"$clang" $sanitize "$folder/obj/try.c" -o "$folder/obj/try" 2> /dev/null || skip "clang has no libFuzzer"

# shellcheck disable=SC2086
build() {
    set -- tests/comm_fuzz_wire.c comm/wire.c comm/coo32.c comm/packed.c comm/packed_index.c
    for file in base/*.c topk/*.c; do
        case $file in */cuda_*) ;; *) set -- "$@" "$file" ;; esac # those are the plugin's
    done
    printf '%s\n' "$@" | xargs -P 2 -I '{}' sh -c \
        "\"$clang\" $flags $sanitize -c \"\$1\" -o \"$folder/obj/\$(echo \"\$1\" | tr / _).o\"" sh '{}' || return 1
    for source in "$@"; do
        shift
        set -- "$@" "$folder/obj/$(echo "$source" | tr / _).o"
    done
    "$clang" $sanitize "$@" -lz -lm -ldl -lpthread -o "$folder/wire"
}
build || {
    echo "fuzz.sh: the fuzzer does not build" >&2
    exit 1
}

log=$folder/log
echo "fuzzing the wire formats for $seconds s"
"$folder/wire" -max_total_time="$seconds" -max_len=4096 -timeout=10 -print_final_stats=1 -artifact_prefix="$folder/" \
    "$folder/corpus" tests/fuzz/wire > "$log" 2>&1
status=$?
grep -E 'number_of_executed_units|new_units_added|peak_rss' "$log"
[ "$status" -eq 0 ] && exit 0
tail -n 40 "$log"
echo "fuzz.sh: the input that did this is the artifact named above; once repaired, keep it in tests/fuzz/wire"
exit 1
