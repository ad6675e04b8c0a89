#!/bin/sh
# test.sh [TEST|VARIABLE=value]...: installs what tests need, builds everything (the CUDA hook too where nvcc is) and
# runs all tests, or those named (topk_exact, or a prefix: comm). VARIABLE=value goes to make, for example
# SAN=address,undefined. The last line is always "N passed, N failed, N skipped"; exit 0 only if none failed.
set -u
cd "$(dirname "$0")/.." || exit 1

variables=
only=
for argument in "$@"; do
    case $argument in
    *=*) variables="$variables $argument" ;;
    *) only="$only $argument" ;;
    esac
done

# Something that must work before the first test can run did not.
give_up() {
    echo "FAIL $1"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
}

sh scripts/deps.sh build test || give_up "install (scripts/deps.sh build test)"
sh scripts/deps.sh text || echo "(no utf8proc: the tests that cut texts into pieces of words are skipped)"
sh scripts/deps.sh speech || echo "(no FFTW: the tests that read speech are skipped)"
sh scripts/deps.sh fuzz || echo "(no libFuzzer: the test that wants it is skipped)"
sh scripts/deps.sh netlab || echo "(no iproute2: the test that wants network namespaces is skipped)"
sh scripts/deps.sh sim || echo "(no SimGrid: the tests that want simulated clusters are skipped)"
sh scripts/deps.sh torch || echo "(no PyTorch: the test of its communication hook is skipped)"
sh scripts/deps.sh mpich || echo "(no MPICH beside another MPI: the test that wants both is skipped)"

# Real data, if a mirror lies beside the checkout; without it the tests that want it are skipped by name.
mirror=../shared/data
if [ -z "${SPARSETRAIN_DATA:-}" ] && [ -d "$mirror" ]; then
    for set in cifar10 ptb wikitext2 tinyshakespeare bertvocab an4; do
        sh scripts/fetch-data.sh $set --mirror "$mirror" || echo "(no $set from $mirror: tests that need it are skipped)"
    done
fi

jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# shellcheck disable=SC2086 # a list of words
make --no-print-directory -j"$jobs" WERROR=1 $variables all 2>&1 || give_up "build (make WERROR=1$variables all)"

# make may have the last word when a test fails, so the runner's summary is held back until make has ended.
# shellcheck disable=SC2086
{ make --no-print-directory -j"$jobs" WERROR=1 $variables check ONLY="${only# }" 2>&1 || echo 'check-failed'; } | {
    summary='' failed=0
    while IFS= read -r line; do # not awk: mawk shows lines late
        case $line in
        [0-9]*' passed, '[0-9]*' failed, '[0-9]*' skipped'*) summary=$line ;;
        check-failed) failed=1 ;;
        *) printf '%s\n' "$line" ;;
        esac
    done
    if [ -z "$summary" ]; then
        echo "FAIL build of the tests"
        summary='0 passed, 1 failed, 0 skipped'
    fi
    echo "$summary"
    exit "$failed"
}
