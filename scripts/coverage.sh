#!/bin/sh
# coverage.sh [PATTERN...]: builds everything with gcc's counters, runs the tests, or those whose name contains a PATTERN, and
# prints which part of the lines and branches ran, by folder and by file; pages with every line are left in
# $BUILD/coverage/html. Device code (cuda_*, device_cuda, backend_cudnn*) is left out: gpu-check.sh is about that; and so is,
# on a processor that cannot run them, what is written for AVX-512.
#
#   --keep    adds to what earlier runs have counted
#   --print   runs nothing, prints what was counted
#
# Aim: 95% of the lines of every file; 90% of the branches of comm, topk and the checkpoint. Files that miss it are marked.
# Exit 77: skipped, gcovr is not installed. Environment: BUILD (build), DEVICES (cpu sparse; as for tests/run.sh).
set -u
cd "$(dirname "$0")/.." || exit 1
folder=${BUILD:-build}/coverage
. scripts/lib/common.sh
action=run keep=''
options_hint='see the head of scripts/coverage.sh'
options 'keep!keep print!action=print ...' "$@"
eval "set -- $words"
has gcovr || {
    echo "skipped: coverage: gcovr is not installed (sh scripts/deps.sh coverage)"
    exit 77
}

# ST_SANITIZE: loops for several instruction sets are compiled once (base/simd.h), of which a machine would run one.
result=0
if [ $action = run ]; then
    mkdir -p "$folder" || exit 1
    hook=$(absolute "$folder")/hook.o
    "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O1 -c tests/lib/coverage.c -o "$hook" || exit 1
    MAKEFLAGS='' make --no-print-directory -j"$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2)" BUILD="$folder" CUDA=0 smpicc= WERROR=0 \
        CFLAGS='-O1 --coverage -fprofile-update=atomic -DST_SANITIZE' LDFLAGS="--coverage $hook" programs tests > "$folder/log" 2>&1 || {
        tail -n 30 "$folder/log"
        say "the build with counters failed"
        exit 1
    }
    [ -n "$keep" ] || find "$folder" -name '*.gcda' -exec rm -f {} +
    BUILD=$folder DEVICES=${DEVICES:-cpu sparse} sh tests/run.sh "$@" || result=1
fi

left_out='.*/(cuda_|device_cuda|backend_cudnn).*'
if ! grep -qsw avx512f /proc/cpuinfo; then
    left_out="$left_out|.*/kernels_avx512.*"
    echo "left out: topk/cpu/kernels_avx512.c, which this processor cannot run"
fi
mkdir -p "$folder/html"
gcovr --root . --object-directory "$folder/obj" --filter '(base|data|topk|comm|nets|cli)/' --exclude "$left_out" \
    --gcov-ignore-parse-errors --csv "$folder/coverage.csv" --html-details "$folder/html/index.html" "$folder/obj" > "$folder/log" 2>&1 || {
    tail -n 5 "$folder/log"
    say "gcovr failed"
    exit 1
}
awk -F, '
    function percent(part, all) { return all ? 100 * part / all : 100 }
    function line(name, lines, ran, branches, taken, mark) {
        printf "%-34s %6d lines %6.1f%%  %6d branches %6.1f%%%s\n", name, lines, percent(ran, lines), branches, percent(taken, branches), mark
    }
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    {
        name = $column["filename"]; module = name; sub(/\/.*/, "", module)
        l = $column["line_total"]; r = $column["line_covered"]; b = $column["branch_total"]; t = $column["branch_covered"]
        lines[module] += l; ran[module] += r; branches[module] += b; taken[module] += t
        wants = module == "comm" || module == "topk" || name ~ /cli\/(checkpoint|container)/
        low = percent(r, l) < 95 ? " lines" : ""
        if (wants && percent(t, b) < 90) low = low " branches"
        file[++files] = name; fl[files] = l; fr[files] = r; fb[files] = b; ft[files] = t; mark[files] = low ? "  low:" low : ""
    }
    END {
        for (i = 1; i <= files; i++) line(file[i], fl[i], fr[i], fb[i], ft[i], mark[i])
        print ""
        n = split("base data topk comm nets cli", order, " ")
        for (i = 1; i <= n; i++) if (order[i] in lines) line(order[i] "/", lines[order[i]], ran[order[i]], branches[order[i]], taken[order[i]], "")
    }' "$folder/coverage.csv"
echo "every line: $folder/html/index.html"
exit $result
