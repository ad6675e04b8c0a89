#!/bin/sh
# run.sh [PATTERN...]: runs every test program and prints, as its last line, "N passed, N failed, N skipped".
#
#   tests/*/<module>_<topic>.c -> $BUILD/tests/<module>_<topic>, a program that prints TAP. Where the source has
#                                 a line "ranks: 1 2 4", it is run under mpirun once for each of these P, and
#                                 with "faults: 3 8" once more for each of those with all sends synchronous and
#                                 random delays before sends and receives (see comm/transport/transport_mpi_job.c). Each in a
#                                 comment of its own, or clang-format may wrap it into the text before.
#   tests/*/cli_*.sh           -> a shell script that prints TAP itself; BUILD is set for it.
#
# This is the list of the CPU. Tests whose source has a line "devices: cuda sparse", or with one of the two names (or
# "devices: cuda ranks 1 3", for fewer P, or for one device by a line "sparse ranks: 1 2 5"; with "only", those are no
# tests of the CPU) are run again, with SPARSETRAIN_TEST_DEVICE set to that name:
#   sparse    on the device that keeps lists of what is not zero, on any machine;
#   cuda      where this build and machine have a GPU (sparsetrain list says so), else each is skipped by name;
#   hostcuda  those for cuda on the stand-in for CUDA (tests/hostcuda/), where it was built; SPARSETRAIN_TEST_EMULATED=1. It
#             emulates each thread of a kernel, so of 3 and 4 ranks it has 3 alone: the kernels are the same.
#
# Messages of the tests of comm carry checksums (SPARSETRAIN_WIRE_CHECK) up to P = 4, but not at the largest P of a test, so
# that each goes both ways. Their ranks spin while they wait (SPARSETRAIN_WAIT) up to P = 3 and sleep from there on, on any
# number of cores. Those of scripts and of tests on other devices sleep, as what runs beside them wants the cores.
#
# Tests whose source has a line "long: why" are begun before the others of their list, so that none is left over at the end;
# before them those with a line "waits: for what", which spend most of their time so and take no place from others.
#
# PATTERN: only tests whose name contains one of these texts. Environment: BUILD (build), SAN (the sanitizers it
# was built with, if any), DEVICES (which lists: "cpu sparse cuda hostcuda"), MPIRUN (to start jobs with another mpirun),
# TEST_JOBS (how many run side by side: three for each core, at most 16; on a GPU one after the other),
# QUICK (1: the list of the CPU alone, without long ones, faults and P > 3, of scripts those with a line "quick: what for"),
# TEST_TIMEOUT (seconds for one program at one P), TEST_END (a time in seconds since 1970: a program that still runs then
# is stopped, and its other cases are skipped by name, as all later programs are). Exit status 1 when anything failed or
# nothing ran.
#
# A program that dies, prints fewer results than its plan "1..N" announces, or runs into the timeout counts as one
# failed test (besides those it reported), and its output is shown.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib/mpi-files.sh
BUILD=${BUILD:-build}
SAN=${SAN:-}
export BUILD SAN
DEVICES=${DEVICES:-cpu sparse cuda hostcuda}
for device in $DEVICES; do
    case $device in
    cpu | sparse | cuda | hostcuda) ;;
    *)
        echo "DEVICES has \"$device\": there are cpu, sparse, cuda and hostcuda" >&2
        exit 1
        ;;
    esac
done
quick=${QUICK:-}
[ -z "$quick" ] || DEVICES=cpu
unset QUICK # not for runners that tests start
listed() { case " $DEVICES " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
case $BUILD in /*) stand_in=$BUILD ;; *) stand_in=$PWD/$BUILD ;; esac
stand_in=$stand_in/tests/libsparsetrain_hostcuda.so
# Each list says for itself where tests run; on the CPU, --device auto finds no GPU either.
unset SPARSETRAIN_TEST_DEVICE SPARSETRAIN_TEST_EMULATED
no_plugin=/nonexistent/of-the-cpu-list.so
if [ -n "$SAN" ]; then limit=${TEST_TIMEOUT:-2400}; else limit=${TEST_TIMEOUT:-900}; fi

# Several ranks per core on one machine, bound to none, as any user, without probing for hardware; the launcher is found for
# each program.
users_mpirun=${MPIRUN:-}
. scripts/mpi-env.sh
export OMP_NUM_THREADS="${OMP_NUM_THREADS-1}"
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY-passive}" # threads of tests that ask for some leave the core to what runs beside

# Whole call stacks of allocations, so that a leak inside MPI is known as such (lsan.supp) and ours are not missed.
export ASAN_OPTIONS="${ASAN_OPTIONS-detect_leaks=1:fast_unwind_on_malloc=0}"
export LSAN_OPTIONS="${LSAN_OPTIONS-suppressions=$PWD/tests/lib/lsan.supp:print_suppressions=0}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS-print_stacktrace=1}"

work=$(mktemp -d "${TMPDIR:-/tmp}/sparsetrain-tests.XXXXXX") || exit 1
waited_for='' # "number:process" of the jobs that run
# shellcheck disable=SC2317 # by the trap
stop_all() { for job in $waited_for; do kill "${job#*:}"; done; }
trap 'stop_all; rm -rf "$work"' EXIT
export SPARSETRAIN_CACHE="$work/cache" # not the user's
trap 'exit 1' HUP INT TERM
: > "$work/skips"
: > "$work/failures"
passed=0 failed=0 skipped=0

# wanted NAME: does it contain one of the patterns (given as the script's arguments)?
patterns=$*
wanted() {
    [ -n "$patterns" ] || return 0
    for pattern in $patterns; do
        case $1 in *"$pattern"*) return 0 ;; esac
    done
    return 1
}

first_command() {
    for command in "$@"; do
        command -v "$command" && return 0
    done
    return 1
}

# launcher PROGRAM: the mpirun of the MPI that it was linked with (Debian has both side by side), or $MPIRUN. Tests
# that start jobs themselves find it as MPIRUN.
launcher() {
    if [ -n "$users_mpirun" ]; then
        echo "$users_mpirun"
    elif ldd "$1" 2> /dev/null | grep -q libmpich; then
        first_command mpirun.mpich mpiexec.hydra mpirun
    else
        first_command mpirun.openmpi mpirun
    fi
}

# tally OUTPUT STATUS: "passed failed skipped" and, into $work/new, the skips as "name: reason". cmocka writes a
# skipped case as "not ok N # SKIP name" and its reason is on a line "# SKIP name: reason" before it.
tally() {
    : > "$work/new"
    awk -v status="$2" -v list="$work/new" '
        /^1\.\.[0-9]+/ { sub(/^1\.\./, ""); plan += $1; next }
        /^# SKIP / { sub(/^# SKIP /, ""); name = $0; sub(/:.*/, "", name); reason[name] = $0; next }
        /^(not )?ok .*# SKIP/ {
            cases++
            before = $0; sub(/ *# SKIP.*/, "", before); sub(/^(not )?ok *[0-9]* *-? */, "", before)
            after = $0; sub(/.*# SKIP */, "", after)
            if (before == "") skip[after] = ""; else skip[before] = after
            next
        }
        /^ok/ { cases++; ok++; next }
        /^not ok/ { cases++; bad++ }
        END {
            for (name in reason) skip[name] = ""
            for (name in skip) {
                skips++
                if (name in reason) print reason[name] > list
                else print name ": " (skip[name] == "" ? "no reason given" : skip[name]) > list
            }
            if ((status != 0 && !bad) || cases < plan || cases + skips == 0) bad++
            print ok + 0, bad + 0, skips + 0
        }' "$1"
}

# -- running them, side by side ----------------------------------------------------------------------------------------------
# A job is one program at one P. It takes as many slots as it has ranks, though no more than there are cores; scripts, whose
# jobs are small and wait much, take one. A test whose source has a line "alone: why" takes all of them, one with a line
# "waits: for what" none.
cores=$(nproc 2> /dev/null || getconf _NPROCESSORS_ONLN 2> /dev/null || echo 1)
slots=$((3 * cores))
[ $slots -le 16 ] || slots=16 # each takes some hundred MB
slots=${TEST_JOBS:-$slots}
busy=0 count=0 # slots that are taken, jobs so far
mkfifo "$work/ended" && exec 3<> "$work/ended" || exit 1 # numbers of jobs that have ended

# What runs in the background ignores SIGINT unless it says otherwise, and tests send it.
as_in_front=
if env --default-signal=INT,QUIT true 2> /dev/null; then as_in_front='env --default-signal=INT,QUIT'; fi

# background NUMBER SECONDS COMMAND...: output and status to files, the number to the runner
background() {
    number=$1 most=$2
    shift 2
    mpi_files "$work/$number.mpi"
    trap 'kill "$child"' HUP INT TERM
    trap '' EXIT
    # shellcheck disable=SC2086 # words
    timeout -k 10 "$most" $as_in_front "$@" > "$work/$number.out" 2>&1 < /dev/null 3>&- &
    child=$!
    wait "$child"
    echo "$? $(date +%s)" > "$work/$number.end"
    times > "$work/$number.times"
    echo "$number" >&3
}

# job_width NAME LABEL: how many slots it takes
job_width() {
    width=1
    case $2 in *P=*) width=${2##*P=} width=${width%!} ;; esac
    [ "$width" -le "$cores" ] || width=$cores
    for file in tests/*/"$1.c" tests/*/"$1.sh"; do
        if [ -f "$file" ] && [ -n "$(field alone "$file")" ]; then width=$slots; fi
        if [ -f "$file" ] && [ -n "$(field waits "$file")" ]; then width=0; fi
    done
}

# run NAME LABEL COMMAND...: begins it as soon as there is room for it
run() {
    job_width "$1" "$2"
    while [ "$busy" -gt 0 ] && [ $((busy + width)) -gt "$slots" ]; do await_one; done
    start=$(date +%s) most=$limit
    if [ -n "${TEST_END:-}" ] && [ $((TEST_END - start)) -lt "$limit" ]; then
        most=$((TEST_END - start))
        if [ "$most" -le 0 ]; then
            skip_test "$1" "$2" 'no time left before TEST_END'
            return
        fi
    fi
    count=$((count + 1)) busy=$((busy + width))
    printf '%s\n' "$width" "$start" "$most" "${SPARSETRAIN_TEST_EMULATED:-}" "$1" "$2" > "$work/$count.job"
    shift 2
    background "$count" "$most" "$@" &
    waited_for="$waited_for $count:$!"
}

# await_one: until a job ends; its results are counted and shown
await_one() {
    read -r ended <&3
    still=
    for job in $waited_for; do
        if [ "${job%:*}" = "$ended" ]; then wait "${job#*:}"; else still="$still $job"; fi
    done
    waited_for=$still
    { read -r freed && read -r start && read -r most && read -r emulated && read -r ended_name && IFS= read -r label; } < "$work/$ended.job"
    read -r status end < "$work/$ended.end"
    busy=$((busy - freed)) seconds=$((end - start)) out=$work/$ended.out
    show
    rm -rf "$work/$ended".*
}
await_all() { while [ -n "$waited_for" ]; do await_one; done; }
# stop_early: the run that has just been stopped had only what was left until TEST_END: what it has not come to is
# skipped, not failed
stop_early() {
    echo "all that it had not come to after $seconds s: stopped at TEST_END" >> "$work/new"
    skips=$((skips + 1))
    grep -q '^not ok' "$out" || bad=0
}

# cpu_seconds OUTPUT: of the job with that output; the second line of `times` is the children's, user and system, 1m2.3s each
cpu_seconds() { awk 'NR == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/); printf "%.1f", 60 * (u[1] + s[1]) + u[2] + s[2] }' "${1%.out}.times"; }

# show: the job that has ended
show() {
    tally "$out" "$status" > "$work/tally"
    read -r ok bad skips < "$work/tally"
    # What every test of the stand-in could be skipped for is a fault of ours.
    if [ -n "$emulated" ] && grep -q 'plugin cannot be loaded' "$work/new"; then bad=$((bad + 1)); fi
    if [ "$most" -lt "$limit" ] && { [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; }; then stop_early; fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skips))
    while read -r line; do printf '%s\t%s\t%s\n' "$ended_name" "$label" "$line"; done < "$work/new" >> "$work/skips"
    printf '%-26s %-14s %4d passed %3d failed %3d skipped %4d s, %5s s CPU\n' "$ended_name" "$label" "$ok" "$bad" "$skips" "$seconds" "$(cpu_seconds "$out")"
    [ "$bad" -eq 0 ] && return
    echo "---- $ended_name$label ended with status $status; its output:"
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then echo "(stopped after $most s?)"; fi
    grep -v '^ok ' "$out" | tail -n 200
    echo "----"
    { echo "    $ended_name$label (status $status, after $seconds s)" && grep -v '^ok ' "$out" | tail -n 20 | sed 's/^/        /'; } >> "$work/failures"
}

# skip_test NAME LABEL REASON: all of a test
skip_test() {
    skipped=$((skipped + 1))
    printf '%s\t%s\t%s\n' "$1" "${2:+ ${2# }}" "$3" >> "$work/skips"
}

# fail NAME REASON: a test that cannot even start
fail() {
    failed=$((failed + 1))
    echo "$1: $2" | tee -a "$work/failures"
}

not_built() { fail "$1" "$BUILD/tests/$1 is missing: build the tests with 'make check'"; }

# field NAME FILE: what follows "NAME:" in the first comment line that begins so
field() { sed -n "s,^[ #/*]*$1: *\([a-z0-9 ]*\).*,\1,p" "$2" | head -n 1; }

# checked NAME [P [RANKS]]: with checksums, or without; ranks that spin, or sleep
checked() {
    unset SPARSETRAIN_WIRE_CHECK SPARSETRAIN_WAIT last
    for last in ${3:-}; do :; done
    case $1 in
    comm_*)
        if [ "${2:-1}" -le 4 ] && [ "${2:-}" != "${last:-none}" ]; then export SPARSETRAIN_WIRE_CHECK=1; fi
        if [ "${2:-1}" -le 3 ]; then export SPARSETRAIN_WAIT=spin; else export SPARSETRAIN_WAIT=sleep; fi
        ;;
    esac
}

# sources PATTERN...: of the wanted tests; first those that wait, then the long ones
sources() {
    waiting='' lasting='' others=''
    for source in "$@"; do
        case $source in tests/hostcuda/*) continue ;; esac # the stand-in's own source
        if ! wanted "$(basename "${source%.*}")" || [ ! -f "$source" ]; then continue; fi
        if [ -n "$(field waits "$source")" ]; then waiting="$waiting $source"
        elif [ -n "$(field long "$source")" ]; then lasting="$lasting $source"
        else others="$others $source"; fi
    done
    for source in $waiting $lasting $others; do echo "$source"; done
}

# -- the list of the CPU ---------------------------------------------------------------------------------------------------
export SPARSETRAIN_PLUGIN=$no_plugin
# run_program NAME SOURCE: once, or at each of its P
run_program() {
    case " $(field devices "$2") " in *' only '*) return ;; esac
    program=$BUILD/tests/$1
    case $1 in
    hostcuda_*) # the stand-in's own tests
        if [ ! -e "$BUILD/tests/libsparsetrain_hostcuda.so" ]; then
            skip_test "$1" "" 'no CUDA toolkit with cuDNN 9, whose headers the stand-in needs'
            return
        fi
        ;;
    cudnn_*)
        if [ -n "${SAN:-}" ] || [ ! -e "$BUILD/tests/libsparsetrain_hostcuda.so" ]; then
            skip_test "$1" "" 'no CUDA toolkit with cuDNN 9, or a build with sanitizers'
            return
        fi
        ;;
    esac
    if [ ! -x "$program" ]; then
        not_built "$1"
        return
    fi
    MPIRUN=$(launcher "$program")
    export MPIRUN
    ranks=$(field ranks "$2")
    checked "$1"
    if [ -z "$ranks" ] && grep -qE '^#include "tests/lib/(mpi_harness|exchange_rig)\.h"' "$2"; then
        fail "$1" 'a test under mpirun without a line that begins with "ranks:"'
    elif [ -z "$ranks" ]; then
        if [ -z "$quick" ] || [ -z "$(field long "$2")" ]; then run "$1" "" "$program"; fi
    elif [ -n "$MPIRUN" ]; then
        for P in $ranks; do
            [ -z "$quick" ] || [ "$P" -le 3 ] || continue
            checked "$1" "$P" "$ranks"
            run "$1" " P=$P" "$MPIRUN" -np "$P" "$program"
        done
        for P in $(field faults "$2"); do
            [ -z "$quick" ] || continue
            checked "$1" "$P"
            SPARSETRAIN_SYNC_SENDS=1 SPARSETRAIN_DELAY=200 run "$1" " P=$P!" "$MPIRUN" -np "$P" "$program"
        done
    else
        fail "$1" 'no mpirun found'
    fi
}

for source in $(sources tests/*/*_*.c tests/*/cli_*.sh); do
    listed cpu || continue
    name=$(basename "${source%.*}")
    case $source in
    *.c) run_program "$name" "$source" ;;
    *)
        [ -z "$quick" ] || [ -n "$(field quick "$source")" ] || continue
        unset SPARSETRAIN_WIRE_CHECK
        export SPARSETRAIN_WAIT=sleep
        MPIRUN=$(launcher "$BUILD/sparsetrain")
        export MPIRUN
        run "$name" "" sh "$source"
        ;;
    esac
done
unset SPARSETRAIN_WIRE_CHECK SPARSETRAIN_WAIT

# -- the lists of the other devices ----------------------------------------------------------------------------------------
# on_device LABEL: every test that is for the device of SPARSETRAIN_TEST_DEVICE
on_device() {
    export SPARSETRAIN_WAIT=sleep
    for source in $(device_tests "$SPARSETRAIN_TEST_DEVICE"); do
        name=$(basename "${source%.*}")
        program=$BUILD/tests/$name
        ranks=$(field "$SPARSETRAIN_TEST_DEVICE ranks" "$source")
        [ -n "$ranks" ] || ranks=$(field devices "$source" | sed -n 's/.*ranks *//p')
        [ -n "$ranks" ] || ranks=$(field ranks "$source")
        case "$1 $ranks " in 'hostcuda '*' 3 4 '*) ranks=${ranks%4*} ;; esac
        case $source in
        *.sh)
            run "$name" " $1" sh "$source"
            ;;
        *)
            if [ ! -x "$program" ]; then
                not_built "$name"
                continue
            fi
            MPIRUN=$(launcher "$program")
            export MPIRUN
            [ -n "$ranks" ] || run "$name" " $1" "$program"
            for P in $ranks; do run "$name" " $1 P=$P" "$MPIRUN" -np "$P" "$program"; done
            ;;
        esac
    done
}

# device_tests DEVICE: sources of the wanted tests that are for it
device_tests() {
    for source in $(sources tests/*/*_*.c tests/*/cli_*.sh); do
        case " $(field devices "$source" | sed 's/ranks.*//') " in *" $1 "*) echo "$source" ;; esac
    done
}

# The state of a device and, where it cannot be used, the reason, as the program lists them.
device_state() {
    "$BUILD/sparsetrain" list 2> /dev/null | awk -v device="$1" '
        /^Devices/ { inside = 1; next }
        !inside || found { next }
        row { sub(/^ */, ""); print "no " $0; found = 1; next }
        $1 == device && $2 == "yes" { print "yes"; found = 1 }
        $1 == device && $2 == "no" { row = 1 }
        END { if (!found) print "no " "sparsetrain list does not say why" }'
}

if listed sparse; then
    export SPARSETRAIN_TEST_DEVICE=sparse
    on_device sparse
fi
unset SPARSETRAIN_PLUGIN SPARSETRAIN_TEST_DEVICE
if listed cuda; then
    # The tests' programs lie elsewhere than the plugin, which is looked for beside a program alone.
    case $BUILD in /*) plugin=$BUILD ;; *) plugin=$PWD/$BUILD ;; esac
    plugin=$plugin/libsparsetrain_cuda.so
    if [ -r "$plugin" ]; then export SPARSETRAIN_PLUGIN="$plugin"; fi
    state=$(device_state cuda)
    if [ "$state" = yes ]; then
        export SPARSETRAIN_TEST_DEVICE=cuda
        all_slots=$slots slots=${TEST_JOBS:-1} # a card is not shared unasked
        on_device cuda
        slots=$all_slots
    else
        for source in $(device_tests cuda); do skip_test "$(basename "${source%.*}")" cuda "${state#no }"; done
    fi
    unset SPARSETRAIN_PLUGIN
fi
if listed hostcuda && [ -n "$(device_tests cuda)" ]; then
    if [ -r "$stand_in" ]; then
        # A program that ends well and has not given all device memory back has failed.
        export SPARSETRAIN_PLUGIN="$stand_in" SPARSETRAIN_TEST_DEVICE=cuda SPARSETRAIN_TEST_EMULATED=1 SPARSETRAIN_HOSTCUDA_LEAKS=1
        on_device hostcuda
    else
        skip_test hostcuda "" "no CUDA toolkit"
    fi
fi

await_all

if [ -s "$work/skips" ]; then
    echo "skipped:"
    awk -F '\t' '{ text = "    " $1 ": " $3 }
        !(text in where) { order[++count] = text }
        $2 != "" { where[text] = where[text] $2 }
        { where[text] = where[text] "" }
        END { for (i = 1; i <= count; i++) print order[i] (where[order[i]] == "" ? "" : " (" substr(where[order[i]], 2) ")") }
    ' "$work/skips"
fi
if [ -s "$work/failures" ]; then # once more: who reads the end alone sees what failed
    echo "failed:"
    cat "$work/failures"
fi
result=0
if [ "$failed" -gt 0 ] || [ $((passed + skipped)) -eq 0 ]; then result=1; fi
echo "$passed passed, $failed failed, $skipped skipped"
exit $result
