#!/bin/sh
# cli_bench_select.sh: `sparsetrain bench select`: its rows, and the mistakes that its options can contain. Times are not
# looked at.
. tests/lib/tap.sh
small="--n 3000 --repeat 2 --density 0.01"

run() { # run ARGUMENTS...: without a launcher; output to $W/out and $W/err
    start 1 bench select "$@"
}
rows() { grep -vc '^#' "$W/out"; }
# refused NAME TEXT ARGUMENTS...: one line that contains TEXT, status 2, nothing on stdout
refused() {
    name=$1 text=$2
    shift 2
    check "$name" silent mistaken_alone "$text" bench select "$@"
}

run --help
check "--help shows the options" grep -q -- '--select LIST' "$W/out"
# shellcheck disable=SC2086
run $small
check "every selector has a row" [ "$(rows)" -eq "$("$PROGRAM" list | sed -n '/^Selectors/,/^$/p' | grep -c '^  [a-z]')" ]
check "none of them is wrong" sh -c "! grep -v '^#' '$W/out' | grep -qv ' 0\$'"
# shellcheck disable=SC2086
run $small --select reuse,exact --device cpu --json
check "--select chooses, in this order" sh -c "head -n 1 '$W/out' | grep -q '\"selector\":\"reuse\"' && tail -n 1 '$W/out' | grep -q '\"selector\":\"exact\"'"
check "the device is in the JSON" sh -c "[ \$(grep -c '\"device\":\"cpu\"' '$W/out') -eq 2 ]"
if command -v python3 >/dev/null 2>&1; then
    check "every row is JSON and right" python3 -c "
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert len(rows) == 2 and all(row['wrong'] == 0 and row['k'] == 30 for row in rows)
assert rows[1]['found_mean'] == 30 and rows[1]['missed'] == 0 and rows[1]['threshold'] == rows[1]['threshold_exact']
" "$W/out"
else
    skip "every row is JSON and right" "python3 is not installed"
fi
run --n 1,2,17 --density 1e-9,1 --repeat 3
check "lengths of a few entries" [ "$(grep -v '^#' "$W/out" | grep -c ' 0$')" -eq $((6 * $("$PROGRAM" list | sed -n '/^Selectors/,/^$/p' | grep -c '^  [a-z]'))) ]
run --n 10:1000:10 --repeat 1 --select exact --density 0.1
check "MIN:MAX:FACTOR sweeps" [ "$(grep -v '^#' "$W/out" | awk '{ print $1 }' | tr '\n' ' ')" = "10 100 1000 " ]
run --n 3000 --density 0.01 --select reuse --repeat 6 --tau-prime 2 --json
check "--tau-prime is that of reuse" grep -q '"reevaluated_s":[0-9]' "$W/out"
run --n 3000 --density 0.01 --select gaussian --repeat 6 --gaussian-adjust off --json
check "--gaussian-adjust off is in the JSON" grep -q '"gaussian_adjust":"off".*"wrong":0' "$W/out"

check "a selector without evaluations has no time of them" [ "$(run --n 3000 --density 0.01 --select exact --repeat 3 --json && grep -c '"reevaluated_s":null' "$W/out")" -eq 1 ]
run --n 3000 --density 0.01 --select exact --repeat 3
check "and its column is empty" [ "$(grep -v '^#' "$W/out" | awk '{ print $7 }')" = - ]

refused "an unknown selector" '"best"' --select exact,best
refused "an empty selector" '""' --select exact,
refused "no selector" '--select wants a value' --select
refused "an unknown device" '--device has no "abacus"' --device abacus
refused "an unknown option" '--fast' --fast
refused "n of 0" '--n 0' --n 0
refused "n beyond 32 bits" '--n 4294967296' --n 4294967296
refused "n that is not whole" '--n 1.5' --n 1.5
refused "n that is no number" '--n many' --n many
refused "a sweep that shrinks" 'MIN:MAX:FACTOR' --n 10:1000:0.5
refused "a sweep from above" 'MIN:MAX:FACTOR' --n 1000:10:2
refused "a sweep without a factor" 'MIN:MAX:FACTOR' --n 10:1000
refused "a sweep of too many" 'larger factor' --n 1:4294967295:1.01
refused "density 0" '--density 0' --density 0
refused "density above 1" '--density 1.1' --density 1.1
refused "density NaN" '--density nan' --density nan
refused "no steps" '--repeat 0' --repeat 0
refused "two numbers of steps" '--repeat wants a number' --repeat 1,2
refused "another adjustment" 'there are: on, off' --gaussian-adjust maybe
refused "tau-prime 0" '--tau-prime 0' --tau-prime 0
if [ -r /proc/meminfo ] && [ "$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)" -lt 70000000 ]; then
    refused "what does not fit" 'needs about' --n 4294967295
else
    skip "what does not fit" "70 GB of memory are free here, or nobody knows"
fi
finish
