#!/bin/sh
# cli_watch.sh: a rank that is stopped, gone or stuck is named by the others, which end with status 1, wherever it is;
# one that is only slow is not. No limit here is one of speed: a job that does not end by itself fails after minutes.
# waits: for ranks that are stopped
. tests/lib/tap.sh
. scripts/mpi-env.sh
synthetic="--data synthetic:96x24 --batch 4 --eval-every 0 --progress none"
# ended TEXT...: what has just run ended with status 1 after one line of ours that matches all these expressions
ended() {
    why="status $status: $(head -c 600 "$W/err")"
    [ "$status" -eq 1 ] || return 1
    why="$(our_lines) lines: $(head -c 900 "$W/err")"
    [ "$(our_lines)" -eq 1 ] || return 1
    for text in "$@"; do
        why="said instead: $(grep '^sparsetrain: ' "$W/err")"
        grep '^sparsetrain: ' "$W/err" | grep -qE -- "$text" || return 1
    done
}
# alive DIR: is a process of a test left that has this word in its command line? Zombies are not.
alive() {
    for left in /proc/[0-9]*; do
        { tr '\0' ' ' < "$left/cmdline"; } 2> /dev/null | grep -qF -- "$1" || continue
        case $(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "$left/status" 2> /dev/null) in Z | '') continue ;; esac
        [ "${left#/proc/}" = $$ ] || return 0
    done
    return 1
}
# dies FAULT P ARGS...: a run with this fault; status
dies() {
    fault=$1 dies_p=$2
    shift 2
    rm -rf "$W/run"
    # shellcheck disable=SC2086
    SPARSETRAIN_FAULT=$fault timeout -k 10 300 "$MPIRUN" -np "$dies_p" "$PROGRAM" $synthetic --steps 6 --timeout 4 "$@" \
        --out "$W/run" --checkpoint-every 2 > "$W/out" 2> "$W/err" < /dev/null
    status=$?
}
nothing_left() {
    why="a process is left"
    for _ in $(seq 60); do
        alive "$W/run" || return 0
        sleep 1
    done
    return 1
}
to="(nothing heard of it|it has got nothing done) for [0-9]+ s \(it is stopped: SIGSTOP\)"
for case in 2:1 3:0 4:2; do
    p=${case%:*} r=${case#*:}
    dies "$r:step:3:stop" "$p" --algo dense
    check "P = $p, rank $r stopped in a step, dense" ended "rank $r has not come to the exchange of step 3, where $((p - 1)) rank" "$to; it was last in step 3" "--resume $W/run goes on from the last complete one"
    check "no process is left" nothing_left
    dies "$r:step:4:stop" "$p" --algo gtopk --density 0.01
    check "P = $p, rank $r stopped in a step, gtopk" ended "rank $r has not come to the exchange of step 4" "$to; it was last in step 4"
    dies "$r:evaluation:6:stop" "$p"
    check "P = $p, rank $r stopped in an evaluation" ended "rank $r has not come to the evaluation after step 6" "$to; it was last in the evaluation after step 6"
    dies "$r:checkpoint:4:stop" "$p"
    check "P = $p, rank $r stopped in a checkpoint" ended "rank $r has not come to the checkpoint of step 4" "$to; it was last in the checkpoint of step 4"
    check "the one before is there" [ -f "$W/run/checkpoint-00000002/model.ckpt" ]
done
dies 1:checkpoint:2:stop 2
check "the first checkpoint: there is none to go on from" ended "of step 2, where 1 rank waits for it: $to; it was last in the checkpoint of step 2$"
dies 1:step:5:loop 3 --algo oktopk --density 0.01
check "a rank in an endless loop" ended "rank 1 has not come to the exchange of step 5, where 2 ranks wait for it: it runs, but has got nothing done for [0-9]+ s"
check "no process is left of it" nothing_left
# What was logged is there, and the run goes on from the checkpoint with the bits of one that nothing happened to.
# shellcheck disable=SC2086
start 3 $synthetic --steps 6 --algo oktopk --density 0.01 --out "$W/whole"
start 3 --resume "$W/run"
check "--resume goes on: the same bits" [ "$(hash_of "$W/run")" = "$(hash_of "$W/whole")" ]
# A rank that is gone, where the launcher does not notice: a shell stands in its place.
rm -rf "$W/run"
# shellcheck disable=SC2016,SC2086
SPARSETRAIN_FAULT=1:step:3:kill timeout -k 10 300 "$MPIRUN" -np 3 sh -c '"$@"; s=$?; [ $s -ne 137 ] || sleep 290; exit $s' - \
    "$PROGRAM" $synthetic --steps 6 --timeout 4 --out "$W/run" > "$W/out" 2> "$W/err" < /dev/null
status=$?
check "a rank killed behind the launcher's back" ended "rank 1 has not come to the exchange of step 3, where 2 ranks wait for it: nothing heard of it for [0-9]+ s \(it is gone\)"
# Each rank for itself, as on as many nodes.
SPARSETRAIN_NO_SHARED=1 dies 1:step:3:stop 3 --algo gtopk --density 0.01
check "a rank of another node" ended "(rank [0-9], or one that it waits for,|a rank of another node) has not come to the exchange of step 3: rank [02] has waited for [0-9]+ s"
# A rank of any verb, stopped from outside at any time.
# have_met P: the watchdog's page, which ranks share once MPI has started, is mapped by so many
have_met() {
    [ -s "$W/pids" ] && [ "$(sed 's,.*,/proc/&/maps,' "$W/pids" | xargs grep -ls sparsetrain-watch 2> /dev/null | wc -l)" -ge "$1" ]
}
# outside P VERB-AND-ARGS...: stops the last rank a while after all have met
outside() {
    outside_p=$1
    shift
    # shellcheck disable=SC2016
    timeout -k 10 300 "$MPIRUN" -np "$outside_p" sh -c 'echo $$ >> "$0"; exec "$@"' "$W/pids" "$PROGRAM" "$@" > "$W/out" 2> "$W/err" < /dev/null &
    job=$!
    until have_met "$outside_p" || ! kill -0 $job 2> /dev/null; do sleep 0.1; done
    sleep "$pause"
    kill -STOP "$(tail -n 1 "$W/pids")"
    wait $job
    status=$?
    rm -f "$W/pids"
}
for pause in 0.5 1.2 1.9; do
    for p in 2 3 4; do
        # shellcheck disable=SC2086
        outside $p $synthetic --steps 1000000 --timeout 4
        check "stopped from outside after $pause s, P = $p" ended "rank [0-9] has not come to [^:]*, where [0-9] ranks? waits? for it: $to"
    done
done
pause=3
outside 3 bench --n 1000000 --repeat 100000 --warmup 0 --algo topka --timeout 4
check "bench" ended "has not come to the (start|measurement), where 2 ranks wait for it: $to"
outside 2 p2p --repeat 10000 --timeout 4
check "p2p" ended "has not come to the (start|measurement), where 1 rank waits for it: $to"
# Not all processes start MPI.
# shellcheck disable=SC2086
timeout -k 10 300 "$MPIRUN" -np 2 "$PROGRAM" $synthetic --timeout 1 : -np 1 sleep 290 > "$W/out" 2> "$W/err" < /dev/null
status=$?
check "a process that is no rank" ended "MPI has not started within 30 s"
# Who is stopped and goes on in time, or under no limit, changes nothing.
# pauses P ARGS...: a run of which one rank stops for some seconds
pauses() {
    # shellcheck disable=SC2016,SC2086
    SPARSETRAIN_FAULT=1:step:3:stop timeout -k 10 300 "$MPIRUN" -np 2 sh -c 'echo $$ >> "$0"; exec "$@"' "$W/pids" "$PROGRAM" $synthetic \
        --steps 6 --out "$1" --timeout "$2" > "$W/out" 2> "$W/err" < /dev/null &
    job=$!
    until [ -s "$W/pids" ] && sed 's,.*,/proc/&/status,' "$W/pids" | xargs grep -q '^State:[[:space:]]*T'; do sleep 0.2; done
    sleep "$3"
    xargs kill -CONT < "$W/pids"
    wait $job
    status=$?
    rm -f "$W/pids"
}
# shellcheck disable=SC2086
start 2 $synthetic --steps 6 --out "$W/plain"
pauses "$W/paused" 300 5
check "stopped for 5 s of 300: status 0" [ $status -eq 0 ]
check "the same bits" [ "$(hash_of "$W/paused")" = "$(hash_of "$W/plain")" ]
pauses "$W/unlimited" 0 8
check "--timeout 0: status 0" [ $status -eq 0 ]
# Eight ranks on what cores there are, two others busy.
timeout -k 10 300 sh -c 'while :; do :; done' &
busy=$!
timeout -k 10 300 sh -c 'while :; do :; done' &
busy="$busy $!"
# shellcheck disable=SC2086
start 8 $synthetic --steps 4 --algo gtopk --density 0.01 --accumulate 2
check "8 ranks on a busy machine: status 0" [ $? -eq 0 ]
# shellcheck disable=SC2086
kill $busy
# Mistakes.
for verb in train bench p2p "evaluate $W"; do
    # shellcheck disable=SC2086
    check "${verb%% *} --timeout x" mistaken --timeout 2 $verb --timeout x
done
check "--timeout -1" mistaken "--timeout" 1 --timeout -1
gone_from_shm() { # what is there now goes, be it of a test beside this one
    find /dev/shm -name 'sparsetrain-watch-*' -newer "$W" 2> /dev/null > "$W/shm"
    for _ in $(seq 60); do
        why="left: $(xargs -r ls -d < "$W/shm" 2> /dev/null)"
        [ "$why" = "left: " ] && return
        sleep 1
    done
    return 1
}
check "nothing is left in /dev/shm" gone_from_shm
finish
