#!/bin/sh
# cli_bench_wire.sh: `sparsetrain bench wire` measures every format, finds nothing wrong, and says what is wrong with its
# options.
# shellcheck source=tests/lib/tap.sh
. tests/lib/tap.sh

# rows DENSITIES ARGS...: two patterns of places for each density and format, each of them right
rows() {
    densities=$1
    shift
    "$PROGRAM" bench wire --json --repeat 1 "$@" > "$W/out" 2> "$W/err" < /dev/null || return 1
    formats=$(grep -c . comm/wire/wires.def)
    formats=$((formats - 1)) # its first line is a comment
    [ "$(grep -c '"wrong":0}' "$W/out")" -eq $((2 * densities * formats)) ] && [ "$(grep -c . "$W/out")" -eq $((2 * densities * formats)) ]
}
# refuses TEXT ARGS...
refuses() {
    text=$1
    shift
    mistaken_alone "$text" bench wire "$@"
}

check 'all formats at several densities' rows 3 --n 300000 --density 0.001,0.05,1
check 'a vector of one entry' rows 2 --n 1 --density 0.5,1
check 'a density that leaves nothing' rows 1 --n 1000 --density 1e-9
"$PROGRAM" bench wire --n 2000000 --density 0.01 --repeat 1 --json > "$W/out"
ratio=$(sed -n 's/.*"places":"uniform","wire":"packed",.*"ratio_coo32":\([0-9.]*\).*/\1/p' "$W/out")
check "packed takes at most 0.45 of coo32's bytes at density 0.01: $ratio" awk "BEGIN { exit !($ratio > 0.3 && $ratio <= 0.45) }"
check 'a table' sh -c "'$PROGRAM' bench wire --n 100000 --repeat 1 | grep -q '^# *n *density'"
check '--help' sh -c "'$PROGRAM' bench wire --help | grep -q '^usage: sparsetrain bench wire'"
check 'density 0' refuses '--density 0: ' --density 0
check 'a density above 1' refuses '--density 0.1,2: ' --density 0.1,2
check 'a density that is not a number' refuses '--density nan: ' --density nan
check 'n = 0' refuses '--n 0 is out of range' --n 0
check 'several n' refuses '--n wants a number, not "10,20"' --n 10,20
check 'half a round' refuses '--repeat wants a whole number' --repeat 1.5
check 'an unknown option' refuses 'there is no option --size' --size 3
check 'no value' refuses '--n wants a value' --n
finish
