#!/bin/sh
# cli_sanitized.sh: a sample of the tests, and short runs on 2 ranks, under AddressSanitizer with UBSan, and under
# ThreadSanitizer. Built once into $BUILD/san-*, as `make SAN=...` does; what is built already is not built again.
# long: most of a minute and more
. tests/lib/tap.sh

if [ -n "${SAN:-}" ]; then
    skip "a sample under sanitizers" "this is a run with SAN=$SAN"
    finish
    exit
fi
cc=${CC:-cc}
jobs=$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)
export OMP_NUM_THREADS=1
# MPI's and oneDNN's threads and locks are not known to it; what our own do is.
cat > "$W/tsan.supp" << 'END'
called_from_lib:libmpi.so
called_from_lib:libopen-pal.so
called_from_lib:libopen-rte.so
called_from_lib:libdnnl.so
race:libmpi.so
race:libopen-pal.so
race:libopen-rte.so
race:libgomp.so
deadlock:libopen-pal.so
END
export TSAN_OPTIONS="suppressions=$W/tsan.supp:ignore_noninstrumented_modules=1:halt_on_error=1:exitcode=66"

# built SAN TEST...: the program and these tests; else a skip or a failure
built() {
    san=$1 folder=$BUILD/san-$(echo "$1" | tr , -)
    shift
    echo 'int main(void) { return 0; }' > "$W/try.c"
    if ! "$cc" -fsanitize="$san" "$W/try.c" -o "$W/try" 2> /dev/null || ! "$W/try" 2> /dev/null; then
        skip "$san" "the compiler has no such sanitizer, or programs made with it do not run here"
        return 1
    fi
    targets=
    for name in "$@"; do targets="$targets $folder/tests/$name"; done
    # shellcheck disable=SC2086 # a list of targets
    if ! MAKEFLAGS='' make --no-print-directory -j"$jobs" BUILD="$BUILD" SAN="$san" CUDA=0 smpicc= WERROR=0 "$folder/sparsetrain" $targets > "$W/out" 2>&1; then
        tail -n 20 "$W/out" | sed 's/^/# /'
        not_ok "$san: built" "see above"
        return 1
    fi
    ok "$san: built"
}
# clean NAME STATUS FILE: the status is 0, and no sanitizer has said anything
clean() {
    if [ "$2" -eq 0 ] && ! grep -qE 'ERROR: .*Sanitizer|WARNING: ThreadSanitizer|runtime error:' "$3"; then
        ok "$1"
    else
        grep -vE '^ok |^1\.\.' "$3" | head -n 60 | sed 's/^/# /'
        not_ok "$1" "status $2, see above"
    fi
}
sample() {
    for name in "$@"; do
        timeout 600 "$folder/tests/$name" > "$W/out" 2>&1
        clean "$san: $name" $? "$W/out"
    done
}
# trains NAME ARGS...: a short run on 2 ranks, resumed
trains() {
    trains_name=$1
    shift
    run=$W/run-$trains_name-$(echo "$san" | tr , -)
    PROGRAM=$(pwd)/$folder/sparsetrain
    timeout 600 "$MPIRUN" -np 2 "$PROGRAM" --batch 4 --eval-every 0.5 --checkpoint-every 2 --quiet "$@" --out "$run" > "$W/out" 2>&1 < /dev/null
    clean "$san: a run on 2 ranks, $trains_name" $? "$W/out"
    timeout 600 "$MPIRUN" -np 2 "$PROGRAM" --resume "$run/$(basename "$(find "$run" -name 'checkpoint-*[0-9]' | sort | head -n 1)")" --out "$run-again" > "$W/out" 2>&1 < /dev/null
    clean "$san: and resumed" $? "$W/out"
    want=$(hash_of "$run")
    check "$san: to the same bits" [ "${want:-none}" = "$(hash_of "$run-again")" ]
}

if built address,undefined cli_container data_archive data_text_damage topk_sparse fuzz_container fuzz_options fuzz_resume fuzz_records; then
    sample cli_container data_archive data_text_damage topk_sparse fuzz_container fuzz_options fuzz_resume fuzz_records
    trains gtopk --data synthetic:64x8 --steps 4 --algo gtopk --density 0.01
fi
if built thread data_loader; then
    sample data_loader
    trains layers --data synthetic:64x8 --steps 4 --algo topka --density 0.01 --overlap layers
fi

# A sanitizer that sees nothing is none.
cat > "$W/racy.c" << 'END'
#include <pthread.h>
static int shared;
static void *add(void *unused) {
    for (int i = 0; i < 1000; i++) shared++;
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, add, 0);
    pthread_create(&b, 0, add, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
END
if "$cc" -g -fsanitize=thread "$W/racy.c" -o "$W/racy" -lpthread 2> /dev/null; then
    "$W/racy" > "$W/out" 2>&1
    check "a race is seen, with these settings" [ $? -eq 66 ]
fi
finish
