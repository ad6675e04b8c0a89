#!/bin/sh
# collect.sh DIR ALGO...: prints a table of the runs DIR/ALGO, as far as they got, writes it to DIR/table.md, and draws
# DIR/plots (scripts/plot.sh) where gnuplot is. Exit 2 when no run has begun.
set -eu
scripts=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/lib/common.sh
. "$scripts/lib/common.sh"
[ $# -ge 2 ] || {
    echo "usage: sh $0 DIR ALGO..." >&2
    exit 2
}
find_program "$scripts" || fail "the program is needed, which reads logs: build it (make), or have it in PATH"
dir=$1
shift

# number KEY RUN: in the last summary of a log, or else in its last row that has the key
number() {
    of_log "$2" "$1" --type summary --where "$1!=" --last | grep . || of_log "$2" "$1" --where "$1!=" --last
}
row() { # ALGO LOG
    state=running
    if has_ended "$2"; then state=complete; fi
    quality=$(number test_perplexity "$2" | awk '{ printf "perplexity %.2f", $1 }')
    [ -n "$quality" ] || quality=$(number test_accuracy "$2" | awk '{ printf "accuracy %.2f%%", 100 * $1 }')
    rate=$(number images_per_second "$2")
    [ -n "$rate" ] || rate=$(number words_per_second "$2")
    awk -v algo="$1" -v state=$state -v ranks="$(number ranks "$2")" -v nodes="$(number nodes "$2")" \
        -v step="$(number step "$2")" -v quality="$quality" -v rate="$rate" \
        -v seconds="$(number step_seconds "$2")" -v sent="$(number bytes_sent_per_step "$2")" 'BEGIN {
            printf "| %s | %s | %d on %d | %d | %s | %s | %s | %s |\n", algo, state, ranks, nodes, step, quality,
                rate == "" ? "" : sprintf("%.1f", rate), seconds == "" ? "" : sprintf("%.2f", 1000 * seconds),
                sent == "" ? "" : sprintf("%.2f", sent / 1024) }'
}

begun=
for algo in "$@"; do
    if [ -n "$(of_log "$dir/$algo" step --type step --last)" ]; then begun="$begun $algo"; else echo "$dir/$algo: no step yet" >&2; fi
done
[ -n "$begun" ] || fail "no run in $dir has begun"
{
    echo '| algorithm | run | ranks | steps | test | images or words a second | ms a step | KiB sent a step and rank |'
    echo '|---|---|---|---|---|---|---|---|'
    for algo in $begun; do row "$algo" "$dir/$algo/run.jsonl"; done
} | tee "$dir/table.md"
if has gnuplot; then
    set --
    for algo in $begun; do set -- "$@" "$dir/$algo"; done
    sh "$scripts/plot.sh" "$@" --out "$dir/plots"
else
    echo "no plots: gnuplot is not installed here; later: sh $scripts/plot.sh RUN... --out $dir/plots"
fi
