# shellcheck shell=sh
# faults.sh: of soak.sh: every file-system call of a run fails once (tests/preload/failing.c). Rows: case (fresh, resumed), rank, the
# call's number in that rank, how it failed, which call it was, its file; the run's status and line; how it went on; verdict.
# When rows of the log are written depends on the time that steps take, so that a number may be another call in another run.
# shellcheck disable=SC2034,SC2154

library=$(cd "$BUILD" && pwd)/tests/libfailing.so
table faults case,rank,number,how,call,file,status,line,then,verdict
undisturbed

# failing LIMIT ARGS...: start_run with the library loaded; FAIL_* are set by the caller
failing() { LD_PRELOAD=$library start_run "$@"; }

# ways CALL: how it can fail
ways() {
    case $1 in
    write | pwrite64) echo "EIO ENOSPC SHORT KILL" ;;
    read | pread64) echo "EIO SHORT KILL" ;;
    openat | open | mkdir | mkdirat | fsync | fdatasync | close | rename | renameat | renameat2 | ftruncate) echo "EIO ENOSPC KILL" ;;
    *) echo "EIO KILL" ;;
    esac
}

# before CASE: what the run finds in $work/run
before() {
    rm -rf "$work/run"
    [ "$1" = fresh ] || cp -a "$work/half" "$work/run"
}
# arguments CASE: in the order of the command line
disturb() {
    if [ "$1" = fresh ]; then
        # shellcheck disable=SC2086
        failing 120 $common --out "$work/run"
    else
        failing 120 --resume "$work/run"
    fi
}

# verdict HOW: of the run that was disturbed and of how it went on; sets $then
judge() {
    judged_status=$status said=$(lines_said) judged_line=$(line_said)
    then=-
    case $1:$status in
    *:124) verdict="hangs" && return ;;
    KILL:137 | *:0 | *:1 | KILL:2 | SHORT:2) ;;
    *:2) # the user's mistake, where the system failed; but no kernel has fcntl fail so
        [ "$call" = fcntl ] || { verdict="status 2: $(line_said)" && return; }
        ;;
    *) verdict="status $status" && return ;;
    esac
    if [ "$said" -gt 1 ] || { [ "$said" -eq 0 ] && [ "$status" -ne 0 ] && [ "$1" != KILL ]; }; then
        verdict="$said lines"
        return
    fi
    if [ "$status" -ne 0 ]; then
        if lost "$work/run"; then
            verdict="its checkpoints are gone"
            return
        fi
        go_on "$work/run"
        then=$went
        if [ "$status" -ne 0 ]; then
            verdict="then status $status: $(line_said)"
            return
        fi
    fi
    verdict=$(same_end "$work/run")
    verdict=${verdict:-good}
}

# A run that was killed in the middle, and the calls of each case and rank, undisturbed.
prepare() {
    # shellcheck disable=SC2086
    FAIL_RANK=0 FAIL_CALLS="rename,renameat,renameat2 $work/half/checkpoint- 2 2 KILL" failing 300 $common --out "$work/half"
    for case in fresh resumed; do
        before $case
        FAIL_CALLS="all $work/ 0 0 EIO" FAIL_LOG=$work/calls-$case disturb $case
        if grep -q '^failing: ' "$work/stderr"; then
            sed -n 's/^failing: /skipped: faults: /p' "$work/stderr" | head -n 1
            exit 77
        fi
        wrong=$(same_end "$work/run")
        has_checkpoint "$work/half" || wrong="no checkpoint to resume from"
        [ -z "$wrong" ] || {
            echo "soak.sh: the run whose calls are counted ended with status $status: $wrong" >&2
            exit 1
        }
    done
}

# All faults: "case rank number call file how"; of the short form one in so many, a different way each time.
list_faults() {
    for case in fresh resumed; do
        for rank in 0 1; do
            sed "s|$work/||" "$work/calls-$case.$rank" | while read -r number call file _; do # behind a file's name: (deleted)
                for how in $(ways "$call"); do echo "$case $rank $number $call ${file:-.} $how"; done
            done
        done
    done > "$work/all-faults"
    if [ -n "$short" ]; then
        awk -v wanted=14 '{ line[NR] = $0 } END { for (i = 0; i < wanted; i++) print line[1 + int(i * (NR - 1) / (wanted - 1))] }' "$work/all-faults"
    else
        cat "$work/all-faults"
    fi
}

prepare
list_faults > "$work/faults"
while read -r case rank number call file how; do
    mine "$number" || continue
    has_row "$case,$rank,$number,$how" && continue
    if out_of_time; then break; fi
    before "$case"
    FAIL_CALLS="all $work/ $number $number $how" FAIL_RANK=$rank FAIL_LOG=$work/log disturb "$case"
    if [ ! -s "$work/log.$rank" ]; then
        verdict="the run did not begin: $(head -n 1 "$work/stderr")" then=- judged_status=$status judged_line=
    elif ! grep -q '^!' "$work/log.$rank"; then # one of the last, in a run that made fewer
        verdict=good then="no such call"
        judged_status=- judged_line=
    else
        read -r _ call file _ << END
$(sed -n 's/^!//p' "$work/log.$rank" | sed "s|$work/||")
END
        file=${file:-.} # the folder that all lies in
        judge "$how"
    fi
    rm -f "$work"/log.*
    row "$verdict" "$case" "$rank" "$number" "$how" "$call" "$file" "$judged_status" "$judged_line" "$then"
done < "$work/faults"
count
part_says="$done_rows of $(wc -l < "$work/faults") faults, each then resumed or begun anew ($(grep -c 'no such call' "$csv") calls did not come); $found went wrong"
