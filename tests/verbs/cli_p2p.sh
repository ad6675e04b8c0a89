#!/bin/sh
# cli_p2p.sh: the verb p2p: its table and its fit, the network file that predict reads, pairs, and every mistake: one
# line, exit status 2, no hang. How fast anything is, is not looked at.
# waits: for jobs that start
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
quick="--sizes 4:4096:4 --repeat 3"

start 2 p2p $quick --out "$W/net"
check "p2p exits with 0" [ $? -eq 0 ]
check "a row for each of six sizes" [ "$(awk '$1 ~ /^[0-9]+$/ && NF == 6' "$W/out" | wc -l)" -eq 6 ]
intervals_shown() { # a busy machine's may be as large as 1.2e+04
    why=$(grep '^alpha' "$W/out")
    grep -q '^alpha [0-9.e+-]* us (95%: [0-9.e+-]* to [0-9.e+-]*), beta [0-9.e+-]* ns/word (95%: ' "$W/out"
}
check "alpha and beta with intervals" intervals_shown
check "the network file has the four numbers" [ "$(grep -cE '^(node_)?(alpha|beta) [0-9]' "$W/net")" -eq 4 ]
fit_as_shown() { # the file and the table say the same alpha, to 0.1%; on a busy machine that may be 0
    shown=$(sed -n 's/^alpha \([^ ]*\) us.*/\1/p' "$W/out")
    why="shown: $shown us, in the file: $(grep '^alpha' "$W/net")"
    [ -n "$shown" ] && awk -v us="$shown" '$1 == "alpha" { d = $2 * 1e6 - us; exit !(d <= 0.001 * us && d >= -0.001 * us) }' "$W/net"
}
check "it is the alpha that was shown" fit_as_shown
start 1 predict --net "$W/net" --p 4
check "predict reads it" grep -q "^network net: alpha" "$W/out"

start 3 p2p $quick --json --pairs all
check "JSON: three pairs of six sizes and their fits" [ "$(grep -c '"bench":"p2p",' "$W/out") $(grep -c '"bench":"p2p-fit"' "$W/out")" = "18 3" ]
json_lines "every line is JSON" "$W/out"
start 5 p2p $quick --pairs all
check "ten pairs of five ranks, and the slowest" [ "$(grep -c '^ranks  *[0-9]* and  *[0-9]*, .*alpha' "$W/out") $(grep -c '^the slowest' "$W/out")" = "10 1" ]
SPARSETRAIN_SYNC_SENDS=1 SPARSETRAIN_DELAY=300 start 4 p2p $quick --pairs all
check "with synchronous sends and delays" [ $? -eq 0 ]
# Sends that take anything from 0 to 20 ms, whatever their size, lie on no line.
SPARSETRAIN_DELAY=20000 start 2 p2p --sizes 4:4096:1.5 --repeat 1 --out "$W/poor"
check "a poor fit is called one, with what to do" [ "$(grep -c '^# the line fits the times of ranks 0 and 1 poorly (R2 0.[0-8][0-9]*), .* measure again' "$W/err")" -eq 1 ]
check "also in the network file" grep -q '^# alpha .*R2 0.[0-8][0-9]*, a poor fit' "$W/poor"
SPARSETRAIN_DELAY=20000 start 2 p2p --sizes 4:4096:1.5 --repeat 1 --json
check "and in JSON" grep -q '"bench":"p2p-fit".*"poor":true' "$W/out"
start 2 p2p --sizes 1K:4K:1.5 --repeat 1
check "sizes with units, any factor, whole words" [ "$(awk '$1 ~ /^[0-9]+$/ && NF == 6 { printf "%s ", $1 }' "$W/out")" = "1024 1536 2304 3456 " ]

# -- mistakes --------------------------------------------------------------------------------------------------------
# wrong NAME P TEXT ARGS...
wrong() {
    wrong_name=$1 wrong_p=$2 wrong_text=$3
    shift 3
    check "$wrong_name" mistaken "$wrong_text" "$wrong_p" p2p "$@"
}
wrong "one rank" 1 "two ranks are needed: mpirun -np 2"
wrong "sizes that fall" 2 "--sizes 64:4:2" --sizes 64:4:2
wrong "a factor of 1" 2 "FACTOR above 1" --sizes 4:64:1
wrong "two sizes only" 2 "at least 3" --sizes 4:8:2
wrong "too many sizes" 2 "more than" --sizes 4:1G:1.01
wrong "a size of 0" 2 "--sizes 0:64:2" --sizes 0:64:2
wrong "sizes that are not numbers" 2 "--sizes 4:x:2" --sizes 4:x:2
wrong "sizes without a factor" 2 "MIN:MAX:FACTOR" --sizes 4:64
wrong "no rounds" 2 "--repeat 0" --repeat 0
wrong "rounds that are not a number" 2 "--repeat wants a number" --repeat 5x
wrong "unknown pairs" 2 "there are: first, all" --pairs some
wrong "an unknown option" 2 "there is no option --size; did you mean --sizes?" --size 5
wrong "an option without its value" 2 "--out wants a value" --out
wrong "a file that cannot be written" 2 "cannot write $W/no/such" $quick --out "$W/no/such"
# shellcheck disable=SC2086
timeout 120 "$MPIRUN" -np 1 "$PROGRAM" p2p $quick : -np 1 "$PROGRAM" p2p --sizes 4:64:2 --repeat 3 > "$W/out" 2> "$W/err" < /dev/null
status=$?
check "ranks with other options are told" sh -c "[ $status -eq 2 ] && grep -q 'started differently: rank 0 has p2p .* where rank 1 has p2p --sizes 4:64:2 --repeat 3;' '$W/err'"
finish
