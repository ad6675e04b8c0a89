#!/bin/sh
# cli_gpu_counts.sh: what a training step asks of a GPU, counted on the stand-in: work that the host gives it, times that
# the host waits, kernels, copies. No GPU here says how long these take, but none of them may grow unnoticed: a number
# that has become smaller belongs in this table. (Found thresholds are used for some steps, so that the numbers of reuse and
# oktopk are means.)
. tests/lib/tap.sh
. scripts/mpi-env.sh
case $BUILD in /*) stand_in=$BUILD ;; *) stand_in=$(pwd)/$BUILD ;; esac
stand_in=$stand_in/tests/libsparsetrain_hostcuda.so
if [ ! -r "$stand_in" ]; then
    skip "what a step asks of a GPU" "no CUDA toolkit, so no stand-in was built"
    finish
    exit
fi
export SPARSETRAIN_PLUGIN="$stand_in" SPARSETRAIN_CACHE="$W/cache"
images="--data synthetic:64x8 --batch 1"
words="--model lstm --hidden 8 --bptt 4 --batch 2 --data synthetic-text:1000x100x100"
rows="--model gpt --layers 2 --heads 2 --hidden 16 --context 16 --batch 2 --data synthetic-text:1000x100x100"
sparse="--density 0.01 --density-warmup none"

# counted STEPS: the counts of a run of so many steps, a line of every rank in $W/counts-STEPS; its status
counted() {
    rm -f "$W/counts-$1"
    # shellcheck disable=SC2086 # a list of arguments
    SPARSETRAIN_HOSTCUDA_COUNTS=$W/counts-$1 start "$p" $arguments --device cuda --eval-every never --steps "$1"
}
# of NAME: what a step has of it: of four steps more, on the rank that has most
of() {
    cat "$W/counts-4" "$W/counts-8" | awk -v name="$1" -v ranks="$p" '
        { for (i = 1; i < NF; i += 2) if ($i == name && $(i + 1) > most[NR > ranks]) most[NR > ranks] = $(i + 1) }
        END { printf "%g\n", (most[1] - most[0]) / 4 }'
}
# at_most NAME LIMIT
at_most() {
    found=$(of "$1")
    why="$found, and $2 before"
    awk -v found="$found" -v most="$2" 'BEGIN { exit !((found > 0 || most == 0) && found <= most) }'
}
# P; given, waits, kernels, copies in, copies out; the run
while read -r p given waits kernels in out arguments; do
    name="P = $p, $arguments"
    counted 1 # the algorithms of its convolutions are measured, and remembered
    if counted 4 && counted 8; then
        check "$name: given" at_most given "$given"
        check "$name: waits" at_most waits "$waits"
        check "$name: kernels" at_most kernels "$kernels"
        check "$name: copies in" at_most copies_in "$in"
        check "$name: copies out" at_most copies_out "$out"
    else
        not_ok "$name" "$(head -c 300 "$W/err")"
    fi
done << END
1 9 3 90 1 0 $images
1 9 3 131 1 0 $images --precision bf16
1 11 4 12 1 0 $words
1 11 4 51 1 0 $rows
1 11 4 52 1 0 $rows --precision bf16
1 11 4 70 1 0 $rows --precision bf16 --dropout 0.1
2 9 3 88 2 1 $images --algo dense
2 16 2 93 4 0 $images --algo topka $sparse --select exact
2 13 2 90 4 0 $images --algo topka $sparse --select reuse
2 19 2 94 6 0 $images --algo gtopk $sparse --select exact
2 13 2 90 4 0 $images --algo oktopk $sparse
END
finish
