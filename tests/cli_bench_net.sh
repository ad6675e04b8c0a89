#!/bin/sh
# cli_bench_net.sh: `sparsetrain bench net`: its options, its table, its JSON; every mistake: one line, status 2. How
# fast anything is, is not looked at.
. tests/tap.sh
quick="--batch 4,8 --steps 1 --repeat 2"

start 1 bench net --help
check "--help" grep -q '^usage: sparsetrain bench net' "$W/out"
# shellcheck disable=SC2086
start 1 bench net $quick
check "bench net exits with 0" [ $? -eq 0 ]
check "a row for each batch size, none wrong" [ "$(awk '!/^#/ { printf "%s %s %s, ", $1, $2, $NF }' "$W/out")" = "resnet20 4 0, resnet20 8 0, " ]
# shellcheck disable=SC2086
start 1 bench net $quick --model resnet20 --threads 2 --device cpu --precision f32 --json
check "the options are in the JSON" [ "$(grep -c '^{"bench":"net","model":"resnet20","device":"cpu",.*"precision":"f32",.*"threads":2,"steps":1,"repeat":2,.*"wrong":0}$' "$W/out") $(wc -l < "$W/out")" = "2 2" ]

# -- mistakes --------------------------------------------------------------------------------------------------------
# wrong TEXT ARGS...: status 2, nothing but one line on stderr, which has TEXT in it
wrong() {
    wrong_text=$1
    shift
    start 1 bench net "$@"
    wrong_status=$?
    if [ $wrong_status -eq 2 ] && [ "$(our_lines)" -eq 1 ] && [ ! -s "$W/out" ] && grep -qF -- "$wrong_text" "$W/err"; then
        ok "$*: $wrong_text"
    else
        not_ok "$*: $wrong_text" "status $wrong_status: $(head -c 300 "$W/err")"
    fi
}
wrong "there is no model nothing" --model nothing
wrong "whole numbers from 1 to 10000" --batch 0
wrong "whole numbers from 1 to 10000" --batch 4,x
wrong "at most 16 numbers" --batch 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1
wrong "takes one number" --steps 1,2
wrong "whole numbers from 1 to 10000" --repeat 0
wrong "whole numbers from 1 to 10000" --threads -1
wrong "--batch needs a value" --batch
wrong "unknown option --bogus" --bogus 1
wrong '--device has no "abacus"; there are: auto, cpu, cuda' --device abacus
wrong "there is no precision f8" --precision f8
wrong "--precision bf16 needs a GPU" --device cpu --precision bf16
finish
