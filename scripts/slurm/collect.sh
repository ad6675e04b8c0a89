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

row() { # ALGO LOG: what the last summary says or, where there is none, the last row that says it
    of_log "$2" type,ranks,nodes,step,test_perplexity,test_accuracy,images_per_second,words_per_second,step_seconds,bytes_sent_per_step,completed,valid_perplexity |
        awk -F '\t' -v algo="$1" '
            function shown(x, factor, form) { return x == "" ? "" : sprintf(form, factor * x) }
            {
                for (i = 2; i <= NF; i++) {
                    if ($i == "" || ($1 != "summary" && i in final)) continue
                    value[i] = $i
                    if ($1 == "summary") final[i] = 1
                }
                if ($1 == "summary" && $11 == "true") complete = 1
            }
            END {
                quality = value[5] != "" ? shown(value[5], 1, "perplexity %.2f") : value[6] != "" ? shown(value[6], 100, "accuracy %.2f%%") : \
                    shown(value[12], 1, "none; valid perplexity %.2f")
                printf "| %s | %s | %d on %d | %d | %s | %s | %s | %s |\n", algo, complete ? "complete" : "running", value[2], value[3], value[4], quality,
                    shown(value[7] != "" ? value[7] : value[8], 1, "%.1f"), shown(value[9], 1000, "%.2f"), shown(value[10], 1 / 1024, "%.2f")
            }'
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
