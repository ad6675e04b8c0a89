# shellcheck shell=sh
# kills.sh: of soak.sh: kill -9 at random moments. Rows: number, seed, ranks, victim, after [ms]; the status of the run that
# was killed, how often it had to be resumed, verdict. Ranks (1 to 4), moment and victim follow from the seed: the moment as
# a part of the time between the beginning of the log and its end, which is measured again and again, as it depends on what
# else this machine does; where the run was done before the kill, it is another run's turn.
# shellcheck disable=SC2034,SC2154

kills=200
[ -z "$short" ] || kills=4
table kills number,seed,ranks,victim,milliseconds,status,then,verdict

# random LIMIT: a number below it; the state is $state
random() {
    state=$(((state * 1103515245 + 12345) % 2147483648))
    drawn=$((state / 65536 % $1))
}

has_summary() { [ -n "$(of_log "$1" type --type summary --last)" ]; } # has_summary RUN
# measure: when, after its start, the log of a run on $P ranks begins and ends: $begins_ms, $ends_ms
measure() {
    rm -rf "$work/measured"
    start_ns=$(date +%s%N) begins_ms='' ends_ms=''
    # shellcheck disable=SC2086
    timeout 300 "$MPIRUN" -np "$P" "$program" $common --out "$work/measured" > /dev/null 2>&1 < /dev/null &
    job=$!
    while [ -z "$ends_ms" ] && kill -0 $job 2> /dev/null; do
        if has_summary "$work/measured"; then
            ends_ms=$((($(date +%s%N) - start_ns) / 1000000))
        elif [ -z "$begins_ms" ] && [ -s "$work/measured/run.jsonl" ]; then
            begins_ms=$((($(date +%s%N) - start_ns) / 1000000))
        fi
        sleep 0.01
    done
    wait $job
    begins_ms=${begins_ms:-0} ends_ms=${ends_ms:-1000}
    echo "$begins_ms $ends_ms" > "$work/ms$P"
}

# kill_one: a run, and its $victim killed at a moment of the seed's; what is wrong already in $verdict
kill_one() {
    read -r begins_ms ends_ms < "$work/ms$P"
    random 1000
    after=$((begins_ms + (ends_ms - begins_ms) * drawn / 1000))
    rm -rf "$work/run"
    # shellcheck disable=SC2086
    "$MPIRUN" -np "$P" "$program" $common --out "$work/run" > "$work/stdout" 2> "$work/stderr" < /dev/null &
    job=$!
    sleep "$((after / 1000)).$(printf '%03d' $((after % 1000)))"
    ranks=$(ranks_of $job)
    case $victim in
    mpirun) kill -9 $job 2> /dev/null ;;
    all) # shellcheck disable=SC2086
        kill -9 $ranks $job 2> /dev/null ;;
    rank*)
        one=$(echo "$ranks" | sed -n "${chosen}p")
        [ -z "$one" ] || kill -9 "$one" 2> /dev/null
        ;;
    esac
    # shellcheck disable=SC2086
    if gone $job $ranks; then verdict=''; else verdict="hangs after the kill" && kill -9 $job $ranks 2> /dev/null; fi
    wait $job 2> /dev/null
    killed_status=$?
}

run_of 60
number=0
while [ $number -lt $kills ]; do
    number=$((number + 1))
    mine $number || continue
    has_row $number && continue
    if out_of_time; then break; fi
    state=$((seed * 1000003 + number * 7919)) # each row by itself
    random 65536
    random 4
    P=$((drawn + 1))
    undisturbed
    random 10
    case $drawn in 0 | 1) victim=mpirun ;; 2) victim=all ;; *) victim=rank ;; esac
    random "$P"
    chosen=$((drawn + 1))
    [ "$victim" != rank ] || victim="rank of place $chosen"
    if [ ! -s "$work/ms$P" ] || [ $((number % 5)) -eq 0 ]; then measure; fi
    for _ in 1 2 3 4 5 6 7 8; do
        kill_one
        # Without mpirun ranks come to the end of so short a run; others that did had the kill come too late: sooner, then.
        if [ -n "$verdict" ] || [ "$victim" = mpirun ] || ! has_summary "$work/run"; then break; fi
        echo "$begins_ms $after" > "$work/ms$P"
    done
    then=''
    for _ in 1 2 3; do # a run that was done before the kill has nothing to resume
        [ -z "$verdict" ] || break
        if has_summary "$work/run"; then break; fi
        if lost "$work/run"; then verdict="its checkpoints are gone" && break; fi
        go_on "$work/run"
        then="$then$went "
        [ "$status" -eq 0 ] || verdict="then status $status: $(line_said)"
    done
    [ -n "$verdict" ] || verdict=$(same_end "$work/run")
    row "${verdict:-good}" $number "$seed" "$P" "$victim" "$after" "$killed_status" "${then:-done before }"
done
P=2 # the other parts' own
run_of 12
count
part_says="$done_rows of $kills kills; $found went wrong"
