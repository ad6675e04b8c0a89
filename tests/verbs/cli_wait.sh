#!/bin/sh
# cli_wait.sh: SPARSETRAIN_WAIT: how ranks wait changes no bit of a run, and need not be said to all of them.
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
# quick: it trains, over MPI
run="--data synthetic:96x24 --steps 4 --batch 4 --eval-every never"
# waits NAME ALGO FIRST REST: three ranks train, the first with one setting, the others with another one
waits() {
    timeout -k 10 300 "$MPIRUN" -np 1 env SPARSETRAIN_WAIT="$3" "$PROGRAM" $run --algo $2 --out "$W/$1" : \
        -np 2 env SPARSETRAIN_WAIT="$4" "$PROGRAM" $run --algo $2 --out "$W/$1" > "$W/out" 2> "$W/err" < /dev/null
    why="status $?: $(head -c 300 "$W/err"); hash $(hash_of "$W/$1"), of those that spin $(hash_of "$W/spin-${2%% *}")"
    [ -n "$(hash_of "$W/$1")" ] && [ "$(hash_of "$W/$1")" = "$(hash_of "$W/spin-${2%% *}")" ]
}
for algo in dense "gtopk --density 0.01 --density-warmup none"; do
    check "${algo%% *}: ranks that spin" waits "spin-${algo%% *}" "$algo" spin spin
    check "${algo%% *}: that sleep" waits "sleep-${algo%% *}" "$algo" sleep sleep
    check "${algo%% *}: one is told to sleep, the others to spin" waits "mixed-${algo%% *}" "$algo" sleep spin
done
finish
