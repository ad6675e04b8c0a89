# shellcheck shell=sh
# lib.sh: sourced by the scripts of this folder, which scripts/reproduce.sh starts at the top of the tree. What every ID
# needs: jobs that run once, published numbers, rows of comparison, a figure, and the page that says how it was made.
#
#     . scripts/reproduce/lib.sh
#     need_data cifar10
#     claim gtopk-speed-up                          # of results/published/claims.csv; the rows that follow belong to it
#     against measured                              # and this is what they are held against
#     mpi_job p4.jsonl 4 bench --algo gtopk --n "$(pick 14728266 100000)" --json
#     paper=$(published gtopk-throughput.csv gtopk_images_per_s model=VGG-16)
#     row VGG-16 throughput images/s "$paper" "$(published gtopk-throughput.csv source model=VGG-16)" "$ours" real 'within 10%'
#     finish
#
# From reproduce.sh, all with defaults: REPRODUCE_QUICK (1: reduced sizes), REPRODUCE_OUT (folder of the results),
# REPRODUCE_RUNS (folder of what is too large to be kept), REPRODUCE_KEEP (1: what another commit finished counts),
# REPRODUCE_EPOCHS (the first so many epochs of convergence runs), REPRODUCE_SEEDS (how many seeds where several are compared),
# REPRODUCE_HIDDEN (features of the LSTM of Penn Treebank instead of 1500), REPRODUCE_FINISHED (1: starts nothing, and what is not
# finished is left open in rows and figures), REPRODUCE_ONLY (the one job to run, or "list": the jobs of training are printed instead:
# only.sh), REPRODUCE_UNTIL (seconds since 1970 at which training stops after a checkpoint), REPRODUCE_WHY (file that gets the
# reason of a skip).
#
# What stands in $out afterwards:
#     comparison.csv   a line for each row: docs/reproduce.md has the columns, agree.awk the rules
#     jobs.tsv         file, commit of the program (several, with commas between, where a run went on with another), seconds, command,
#                      machine (several, with "; " between): one line for each job that is finished
#     about.txt        "key: value": what this is, command, commit, machine, date; README.md says the same to people
#     figure.png       and the rows of all jobs
set -eu
id=$(basename "$0" .sh)
quick=${REPRODUCE_QUICK:-} finished=${REPRODUCE_FINISHED:-} only=${REPRODUCE_ONLY:-}
if [ "$quick" = 1 ]; then
    out=${REPRODUCE_OUT:-build/reproduce-quick}/$id
    runs=${REPRODUCE_RUNS:-$out/runs}
else
    quick=
    out=${REPRODUCE_OUT:-build/reproduce}/$id
    runs=${REPRODUCE_RUNS:-runs/reproduce/$id}
fi
tab=$(printf '\t')
run_length=$(if [ -n "$quick" ]; then echo quick; else echo full; fi) # of the rows that follow: full, quick, first 6 of 140 epochs
. scripts/mpi-env.sh
. scripts/lib/common.sh
. scripts/reproduce/pages.sh

script=$id
fail() {
    say "$@"
    exit 1
}
# skip WHY: this ID cannot run here; says why and what to do. The status is Automake's
skip() {
    say "skipped: $*"
    [ -z "${REPRODUCE_WHY:-}" ] || printf '%s\n' "$*" >"$REPRODUCE_WHY"
    exit 77
}
# pick FULL QUICK: the one of this mode
pick() { if [ -n "$quick" ]; then printf '%s' "$2"; else printf '%s' "$1"; fi; }

# -- what must be there ------------------------------------------------------------------------------------------------
# lacks WHY: skips but where nothing is started
lacks() { [ -n "$finished" ] || skip "$@"; }
need_tool() { has "$1" || lacks "$1 is not installed: $2"; }             # need_tool NAME WHAT-TO-DO
need_file() { [ -f "$1" ] || lacks "$1 is not there: $2"; }             # need_file PATH WHAT-TO-DO
need_root() { [ "$(id -u)" = 0 ] || lacks "$1 needs root: run it as root"; } # need_root WHAT-FOR
need_simulator() { simulator_is_there; }
simulator_is_there() {
    need_tool smpirun 'sh scripts/deps.sh sim'
    need_file "${BUILD:-build}/sparsetrain-sim" 'make sim'
}
need_data() { # need_data NAME: a dataset that the program finds
    listed datasets "$1" || lacks "the dataset $1 is not there: sh scripts/fetch-data.sh $1, or SPARSETRAIN_DATA=DIR"
}
job_needs_data() { need_data "$1"; } # the same of the next job: others of the ID may do without it
have_gpu() { listed devices cuda; }
# skipped_gpu WHAT UNIT SOURCE: where there is no GPU, a row that says so; fails where there is one
skipped_gpu() {
    ! have_gpu || return 1
    say 'rows of a GPU skipped: there is none that the program can use'
    row GPU "$1" "$2" '' "$3" '' real none 'skipped: no GPU that the program can use'
}

# alone: fails where another call makes this ID in the same folder: of two neither would have a whole comparison. Jobs inherit the lock.
alone() {
    alone_lock=${BUILD:-build}/.reproduce-$(absolute "$out" | cksum | tr ' ' -)
    if ! has flock || ! (: >"$alone_lock") 2>/dev/null; then return 0; fi
    exec 8>"$alone_lock"
    flock -n 8 || fail "another call makes $id in $out; wait for its end, or give --out another folder"
}

need_program
home=$out # where results belong
if [ -n "$only" ]; then
    make_scratch
    script=$id out=$scratch
elif [ -n "$finished" ]; then
    # Shown from a folder that goes again, with the files of the jobs that are finished: an ID of which too little is there leaves what
    # stands at home as it is, and so does one that is shown twice at the same time.
    make_scratch
    script=$id out=$scratch/$id
    mkdir -p "$home" "$out"
    home_there=$(absolute "$home") # for links
    ln -s "$home_there/jobs.tsv" "$out/jobs.tsv"
    [ ! -f "$home/about.txt" ] || cp "$home/about.txt" "$out/"
    [ ! -f "$home/jobs.tsv" ] || cut -f 1 "$home/jobs.tsv" | while IFS= read -r home_file; do
        [ ! -f "$home/$home_file" ] || ln -s "$home_there/$home_file" "$out/$home_file"
    done
else
    alone
fi
mkdir -p "$out"
rm -f "$out/.broken" "$out/.missed"

# -- jobs --------------------------------------------------------------------------------------------------------------
# A command as a person types it: the launcher by its name, a file of the folder of results where it belongs.
shown() {
    for shown_word in "$@"; do
        shift
        case $shown_word in
        "$MPIRUN") shown_word=mpirun ;;
        "$out"/*) shown_word=$home${shown_word#"$out"} ;;
        esac
        set -- "$@" "$shown_word"
    done
    shown_line=$(quoted "$@")
    printf '%s\n' "${shown_line# }"
}
# line_of JOBS COMMAND-LINE [FILE]: the line of such a job (with this file) in that jobs.tsv, of this commit or, with --keep, any
line_of() {
    COMMIT=$commit LINE=$2 JOB=${3:-} KEEP=${REPRODUCE_KEEP:-} awk -F '\t' '
        $4 == ENVIRON["LINE"] && (ENVIRON["JOB"] == "" || $1 == ENVIRON["JOB"]) &&
            ($2 == ENVIRON["COMMIT"] || ENVIRON["KEEP"] == 1) { print; exit }' "$1"
}
# have FILE COMMAND-LINE: is this job finished, here or by another ID?
have() {
    if [ ! -f "$out/$1" ] || [ ! -f "$out/jobs.tsv" ] || [ -z "$(line_of "$out/jobs.tsv" "$2" "$1")" ]; then
        borrow "$1" "$2"
        return
    fi
    say "have $1"
}
# borrow FILE COMMAND-LINE: the same job of another ID beside this one, where it is finished: its file, and its line. Not of
# runs that record, which leave more than this file.
borrow() {
    case $2 in *' --record'*) return 1 ;; esac
    for borrow_jobs in "${home%/*}"/*/jobs.tsv; do
        borrow_from=${borrow_jobs%/*}
        if [ ! -f "$borrow_jobs" ] || [ "$borrow_from" = "$home" ]; then continue; fi
        IFS=$tab read -r borrow_file borrow_commit borrow_seconds borrow_line borrow_machine <<LINE
$(line_of "$borrow_jobs" "$2")
LINE
        if [ -z "$borrow_line" ] || [ ! -f "$borrow_from/$borrow_file" ]; then continue; fi
        { cp "$borrow_from/$borrow_file" "$out/.$1.part" && mv "$out/.$1.part" "$out/$1"; } || fail "$1 cannot be copied from $borrow_from"
        mark "$1" "$borrow_seconds" "$2" "$borrow_commit" "$borrow_machine"
        say "have $1 from ${borrow_from##*/}"
        return 0
    done
    return 1
}
# mark FILE SECONDS COMMAND-LINE COMMITS MACHINES: this job is finished; takes the place of its older line. Runs of one ID may end at
# the same time.
mark() { locked "$home" mark_job "$home" "$@" || fail "$home/jobs.tsv cannot be written"; }
# last_words FILE: what a program said when it failed: its own lines, or else the last ones (launchers add theirs)
last_words() {
    { grep '^[a-z.]*: ' "$1" || grep . "$1" || true; } | tail -n 3 | paste -s -d ' ' -
}
used=''    # files of the jobs that this run asked for
missing='' # of these that --finished found not to be there
there() { case " $missing " in *" $1 "*) return 1 ;; esac; } # there FILE
# not_to_run FILE COMMAND-LINE: is this job not to be run here, since only another one is wanted, or the list of all?
not_to_run() { [ -n "$only" ] && ! is_wanted "$@"; }
# interrupted STATUS: ended by a signal that somebody sent, not by one of a program that broke down (ILL, TRAP, ABRT, BUS, FPE, SEGV) or
# for which memory did not suffice (KILL)
interrupted() { case $1 in 13[2-7] | 139) return 1 ;; *) [ "$1" -gt 128 ] ;; esac }
# job FILE COMMAND...: its standard output becomes $out/FILE. Not repeated once it is finished; a file is whole or not there.
job() { try_job "$@" || fail "$why"; }
# try_job: the same, but one that fails returns, with the reason in $why, and the rows that need it go without
try_job() {
    job_file=$1
    shift
    job_line=$(shown "$@")
    if not_to_run "$job_file" ''; then return 0; fi
    if have "$job_file" "$job_line"; then
        used="$used $job_file"
        ends_only
        return 0
    fi
    if [ -n "$finished" ]; then
        [ -n "$used" ] || skip "$job_file is not made yet: sh scripts/reproduce.sh $id" # nor is anything before it
        missing="$missing $job_file"
        return 0
    fi
    used="$used $job_file"
    say "$job_line"
    job_start=$(date +%s)
    rm -f "$out/$job_file"
    if "$@" >"$out/.$job_file.part" 2>"$out/.$job_file.errors" </dev/null; then job_status=0; else job_status=$?; fi
    if interrupted $job_status; then exit $job_status; fi # everything ends
    if [ $job_status -gt 0 ]; then
        why="status $job_status of $job_line: $(last_words "$out/.$job_file.errors")"
        return 1
    fi
    mv "$out/.$job_file.part" "$out/$job_file"
    rm -f "$out/.$job_file.errors"
    look_here
    mark "$job_file" $(($(date +%s) - job_start)) "$job_line" "$commit" "$here"
    ends_only
}
ends_only() { [ -z "$only" ] || exit 0; } # the job that was wanted is finished
# mpi_job FILE P ARGUMENT...: the program on P ranks
mpi_job() {
    mpi_file=$1 mpi_ranks=$2
    shift 2
    job "$mpi_file" "$MPIRUN" -np "$mpi_ranks" "$program" "$@"
}
# Runs of full length save themselves often: an epoch of VGG-16 on 16 ranks is 13 minutes, and mpirun gives a run that it ends 1 s.
train_saves='--checkpoint-every 250'
[ -z "$quick" ] || train_saves=''
# train FILE P OPTION...: a run of sparsetrain train; its log with about a thousand of its steps becomes $out/FILE. One
# that was interrupted goes on from its last checkpoint, to where --stop-at ends it; $runs/FILE.run is its directory, and
# $runs/FILE.run.mark has a line each for the commits that took part, the command, its seconds so far, and the machines.
train() {
    train_file=$1 train_ranks=$2
    shift 2
    train_run=$runs/$train_file.run
    train_line=$(shown "$MPIRUN" -np "$train_ranks" "$program" train "$@")
    if not_to_run "$train_file" "$train_line"; then return 0; fi
    if have "$train_file" "$train_line"; then
        used="$used $train_file"
    elif [ -n "$finished" ]; then
        missing="$missing $train_file"
    else
        used="$used $train_file"
        train_on "$@"
    fi
    ends_only
}
# train_on OPTION...: begins the run of `train`, or goes on with it
train_on() {
    say "$train_line"
    look_here
    train_start=$(date +%s) train_by=$commit train_seconds=0 train_at=$here
    train_stop=$(value_after --stop-at "$@")
    mkdir -p "$runs"
    if ! same_run; then rm -rf "$train_run" "$train_run".*; fi
    # shellcheck disable=SC2086 # $train_saves is two words
    if has_ended "$train_run" prefix; then
        set --
        train_by=$(marked 1) train_seconds=$(marked 3) train_at=$(marked 4)
    elif has_checkpoint "$train_run"; then
        set -- "$MPIRUN" -np "$train_ranks" "$program" --resume "$train_run" ${train_stop:+--stop-at "$train_stop"} $train_saves --progress lines
        train_by=$(with "$(marked 1)" , "$commit") train_seconds=$(marked 3) train_at=$(with "$(marked 4)" '; ' "$here")
    else
        clear_run "$train_run"
        rm -rf "$train_run.record"
        set -- "$MPIRUN" -np "$train_ranks" "$program" train "$@" --out "$train_run" $train_saves --progress lines
    fi
    train_seconds=${train_seconds:-0} # of a mark that an older script made
    train_mark
    if [ $# -gt 0 ]; then
        in_time "$@" >"$train_run.log" 2>&1 </dev/null || {
            train_status=$?
            train_mark
            # 4: stopped by a signal, after a checkpoint
            if [ $train_status = 4 ] || interrupted $train_status; then exit 130; fi
            [ $train_status != 137 ] || fail "killed: $train_line: memory did not suffice, or somebody sent KILL; the same command goes on with it"
            fail "status $train_status of $train_line: $(last_words "$train_run.log")"
        }
    fi
    keep_log "$train_run/run.jsonl" >"$out/.$train_file.part"
    mv "$out/.$train_file.part" "$out/$train_file"
    train_mark
    mark "$train_file" "$(marked 3)" "$train_line" "$train_by" "$train_at"
}
train_mark() {
    printf '%s\n' "$train_by" "$train_line" $((train_seconds + $(date +%s) - train_start)) "$train_at" >"$train_run.mark.part"
    mv "$train_run.mark.part" "$train_run.mark"
}
marked() { sed -n "$1p" "$train_run.mark" 2>/dev/null || true; } # marked N: that line of it
# with LIST SEPARATOR TEXT: the list, with this text in it
with() {
    case "$2$1$2" in
    "$2$2") printf '%s' "$3" ;;
    *"$2$3$2"*) printf '%s' "$1" ;;
    *) printf '%s%s%s' "$1" "$2" "$3" ;;
    esac
}
# in_time COMMAND...: it is asked to stop at $REPRODUCE_UNTIL, by the signal that mpirun passes on without killing anybody
in_time() {
    if [ -z "${REPRODUCE_UNTIL:-}" ]; then
        "$@"
        return
    fi
    in_time_left=$((REPRODUCE_UNTIL - $(date +%s)))
    [ $in_time_left -gt 0 ] || return 4
    hear_usr1
    # shellcheck disable=SC2086 # words or none
    timeout --foreground --preserve-status -s USR1 "$in_time_left" $hearing "$@"
}
# value_after OPTION ARGUMENT...: what follows this option there; nothing where it is not
value_after() {
    value_option=$1
    shift
    while [ $# -gt 1 ]; do
        [ "$1" != "$value_option" ] || printf '%s' "$2"
        shift
    done
}
# Is what stands in $train_run the beginning of this very run?
same_run() {
    [ "$(marked 2)" = "$train_line" ] && { [ "${REPRODUCE_KEEP:-}" = 1 ] || [ "$(marked 1)" = "$commit" ]; }
}
# The log of a run without what belongs to one machine, and of many steps about a thousand: every so many of them, an odd
# number, that the steps of a period of 32 or 64 are all met; and all with xi, which are few.
keep_log() {
    keep_every=$(of_log "$1" step --type step | awk 'END { e = int(NR / 1000) + 1; print e + (e % 2 == 0) }')
    kept_rows "$1" "$keep_every"
}
# here_now FILE: is it there? Of one that --finished found not to be, the row that asked says so (.missed)
here_now() { there "$1" || { echo "$1" >>"$out/.missed" && false; }; }
# values FILE KEYS OPTION...: out of the rows of a file in $out, by sparsetrain rows, with blanks between; nothing of one that is not there
values() {
    values_file=$1 values_keys=$2
    shift 2
    here_now "$values_file" || return 0
    "$program" rows "$out/$values_file" --keys "$values_keys" "$@" | tr '\t' ' '
}
# of FILE TYPE KEY: the last such value in a log in $out
of() { values "$1" "$3" --type "$2" --last; }
# curve FILE TYPE Y [FACTOR [CONDITION]]: epoch and Y from the rows of this type, for `block`; what precedes the first step is left out
curve() {
    values "$1" "epoch,$3" --type "$2" --where 'step>0' --where "$3!=" ${5:+--where "$5"} | awk -v factor="${4:-1}" '{ print $1, factor * $2 }'
}

# -- comparison --------------------------------------------------------------------------------------------------------
# published FILE COLUMN [NAME=VALUE]...: that column of the one row of results/published/FILE where the others are so
published() {
    published_file=results/published/$1 published_column=$2
    shift 2
    published_where=
    for published_pair in "$@"; do published_where="$published_where$published_pair$tab"; done
    WHERE=$published_where awk -v column="$published_column" "$csv_awk"'
        BEGIN { wanted = split(ENVIRON["WHERE"], where, "\t") - 1 }
        { csv_row() }
        NR == 1 && !(column in csv_column) { exit }
        NR > 1 {
            for (i = 1; i <= wanted; i++) {
                name = where[i]
                sub(/=.*/, "", name)
                if (cell_of(name) != substr(where[i], length(name) + 2)) next
            }
            found++
            value = cell_of(column)
        }
        END {
            if (found != 1) exit 1
            print value
        }' "$published_file" || fail "$published_file has no single row with $published_column where $published_where"
}
# look_up FILE COLUMN [NAME=VALUE]...: sets `paper` to it and `source` to where it is printed
# shellcheck disable=SC2034 # which the IDs use
look_up() {
    paper=$(published "$@")
    look_up_file=$1
    shift 2
    source=$(published "$look_up_file" source "$@")
}
printf 'item,quantity,unit,paper,paper_source,ours,kind,against,rule,agrees,direction,claim,counted,run,note\n' >"$out/.comparison"
# against WHAT: what the rows that follow are held against
#     measured   a number that the paper printed as measured (or computed, where the claim is a computation's result)
#     words      what the paper says in words or by a curve; the bound is our reading
#     formula    the paper's formula, beside what is counted or simulated here
#     nothing    a study of our own, which is shown
#     self       our own formula, simulator or emulator, each against the other: a self-check, which says nothing of a paper
against() {
    case $1 in measured | words | formula | self | nothing) row_against=$1 ;; *) fail "against $1: it is measured, words, formula, self or nothing" ;; esac
}
row_against='' row_claim='' row_twin='' row_direction=''
# claim KEY: the rows that follow belong to that line of results/published/claims.csv; without a key to none
claim() {
    [ -z "${1:-}" ] || [ "$(published claims.csv id claim="$1")" = "$id" ] || fail "the claim $1 is not of $id"
    row_claim=${1:-}
}
# repeats ID: the rows that follow show a measurement that this ID has: they are not counted again. Without one: they are.
repeats() { row_twin=${1:-}; }
# direction RULE: of the next row: what must hold for the claim to be right in direction, where it is not in size
direction() { row_direction=$1; }
# row ITEM QUANTITY UNIT PAPER SOURCE OURS KIND RULE [NOTE]: one line of the comparison. PAPER and OURS may be empty; KIND is
# real, emulated, simulated or model; the rules are those of agree.awk, and "full: RULE" is RULE in full and none in quick
# mode, for what reduced sizes cannot decide.
row() {
    case $# in 8 | 9) ;; *) fail "row wants 8 or 9 fields, not $#: $*" ;; esac
    [ -n "$row_against" ] || fail "against what is this row held? $*"
    row_rule=${8#full: } row_note=${9:-} row_direction_rule=${row_direction#full: }
    case $quick$8 in
    '1full: '*)
        row_note="${row_note:+$row_note; }not compared in quick mode (in full: $row_rule)"
        row_rule=none row_direction_rule=none
        ;;
    esac
    [ -z "$row_twin" ] || row_note="${row_note:+$row_note; }the measurement of $row_twin, counted there"
    row_ours=$6
    if [ -s "$out/.missed" ]; then
        row_note="${row_note:+$row_note; }$(not_yet "$(sort -u "$out/.missed" | paste -s -d ' ' -)")"
        row_ours='' row_rule=none row_direction_rule=none
        rm -f "$out/.missed"
    fi
    ITEM=$1 QUANTITY=$2 UNIT=$3 PAPER=$4 SOURCE=$5 OURS=$row_ours KIND=$7 RULE=$row_rule NOTE=$row_note AGAINST=$row_against CLAIM=$row_claim \
        RUN=$run_length TWIN=$row_twin DIRECTION=${row_direction_rule:-none} \
        awk "$csv_awk$(cat $library/agree.awk)"'
            BEGIN {
                count = split("ITEM QUANTITY UNIT PAPER SOURCE OURS KIND AGAINST RULE", name, " ")
                if (ENVIRON["KIND"] !~ /^(real|emulated|simulated|model)$/) exit 1
                agreed = agrees(ENVIRON["RULE"], ENVIRON["PAPER"], ENVIRON["OURS"])
                direction = agrees(ENVIRON["DIRECTION"], ENVIRON["PAPER"], ENVIRON["OURS"])
                if (agreed == "?" || direction == "?") exit 1
                if (agreed == "yes") direction = "yes"
                counted = agreed ~ /^(yes|no)$/ && ENVIRON["AGAINST"] != "self" && ENVIRON["TWIN"] == "" ? "yes" : "no"
                for (i = 1; i <= count; i++) line = line csv_field(ENVIRON[name[i]]) ","
                print line agreed "," direction "," ENVIRON["CLAIM"] "," counted "," csv_field(ENVIRON["RUN"]) "," csv_field(ENVIRON["NOTE"])
            }' >>"$out/.comparison" </dev/null || fail "cannot decide on this row: $*"
    row_direction=
}
not_yet() { printf 'not run yet: %s' "$1"; } # not_yet FILES: what a row says of a comparison whose runs are not all there
# yes_no COMMAND...: "yes" when it succeeds: for rules of shape
yes_no() { if "$@"; then echo yes; else echo no; fi; }
# calc EXPRESSION: a number by awk, with log2, ceil_log2 (of a number of ranks) and abs. One that is none ends the ID, at `finish`:
# what stands between $( and ) cannot.
calc() {
    awk "function log2(x) { return log(x) / log(2) }
         function abs(x) { return x < 0 ? -x : x }
         function ceil_log2(p,   l) { while (2 ^ l < p) l++; return l + 0 }
         BEGIN { printf \"%.10g\", $1 }" </dev/null 2>"$out/.wrong" || {
        [ -z "$missing$only" ] || return 0 # a number of it is not there
        cat "$out/.wrong" >&2
        say "cannot be calculated: $1"
        : >"$out/.broken"
    }
}
# formula TEXT P N K: a cost formula as the papers print it (2n(P-1)/P, 4k*log2(P)) there; log2 rounded up, m is n
formula() {
    formula_text=$(printf '%s' "$1" | sed 's/log2(P)/L/g; :again
        s/\([0-9knmPL)]\)\([knmPL(]\)/\1*\2/; t again
        s/L/ceil_log2(P)/g')
    calc "0 * (P = $2) + 0 * (n = m = $3) + 0 * (k = $4) + $formula_text"
}
# holds EXPRESSION: is it true?
holds() { [ "$(calc "($1) ? 1 : 0")" = 1 ]; }

# -- figures -----------------------------------------------------------------------------------------------------------
# block NAME: a series for lines.gp: this name, then x and y from standard input; nothing where there are none, since its run is not
block() { NAME=$1 awk 'NR == 1 { printf "\"%s\"\n", ENVIRON["NAME"] } { print } END { if (NR) printf "\n\n" }'; }
# band NAME: what a rule allows, drawn as a band below the curves: this name, then x, least and most from standard input. Bands
# come first in a file.
band() { block "~$1"; }
# strip X LEAST MOST: a band from 0 to X
strip() { printf '0 %s %s\n%s %s %s\n' "$2" "$3" "$1" "$2" "$3"; }
# points FILE KEY COLUMN...: of the lines that begin with this key these columns
points() {
    points_file=$1 points_key=$2
    shift 2
    awk -v key="$points_key" -v columns="$*" 'BEGIN { n = split(columns, c, " ") }
        $1 == key { for (i = 1; i <= n; i++) printf "%s%s", $c[i], i < n ? " " : "\n" }' "$points_file"
}
# tolerance RULE: x and y of the paper from standard input, with the least and the most that agree beside it: for `block` of a
# series that is drawn as the paper's (lines.gp: published)
tolerance() {
    awk -v rule="$1" '
        { least = most = $2 }
        rule ~ /^within .*%$/ { sub(/^within /, "", rule); part = rule / 100 }
        part != "" { least = $2 * (1 - part); most = $2 * (1 + part) }
        rule ~ /^within a factor / { split(rule, word, " "); least = $2 / word[4]; most = $2 * word[4] }
        { print $1, $2, least, most }'
}
# figure FILE.png DATA SCRIPT.gp NAME=VALUE...: draws $out/FILE.png from DATA by scripts/reproduce/SCRIPT.gp with these
# gnuplot variables, all texts; a title says what part of a run it shows. A machine without gnuplot keeps its numbers and is told.
figure() {
    figure_file=$1 figure_data=$2 figure_script=$3
    shift 3
    rm -f "$out/.missed" # curves that are not there are left out
    if [ -n "$missing" ] && [ ! -s "$figure_data" ]; then
        rm -f "$figure_data" # nothing of it is there yet
        return 0
    fi
    has gnuplot || { say "no $figure_file: gnuplot is not installed: sh scripts/deps.sh test"; return 0; }
    # every point with a least and a most, which are the point itself where no tolerance is given
    awk '/^"/ { sub(/^"~/, "\"") } NF == 2 && !/^"/ { $3 = $4 = $2 } { print }' "$figure_data" >"$out/.figure"
    figure_set="out='$out/$figure_file'; data='$out/.figure'; blocks='$(grep -c '^"' "$figure_data")'; bands='$(grep -c '^"~' "$figure_data" || true)'"
    for figure_pair in "$@"; do
        figure_value=$(printf '%s' "${figure_pair#*=}" | sed "s/'/''/g")
        case $figure_pair in
        title=*) [ "$run_length" = full ] || figure_value="$figure_value ($run_length)" ;;
        esac
        figure_set="$figure_set; ${figure_pair%%=*}='$figure_value'"
    done
    LC_ALL=C.UTF-8 gnuplot -e "$figure_set" "$library/$figure_script" || {
        [ -n "$missing" ] || fail "gnuplot could not draw $figure_file"
        say "no $figure_file yet: nothing of it is there"
        rm -f "$out/$figure_file"
    }
    rm -f "$out/.figure"
}

# -- the end -----------------------------------------------------------------------------------------------------------
# of the machine also its memory, MPI and GPU
machine_here() {
    machine_memory=$(awk '/^MemTotal:/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo 2>/dev/null)
    printf '%s, %s cores, %s, %s, %s' "$(machine_cpu)" "$(getconf _NPROCESSORS_ONLN)" "$machine_memory" \
        "$(uname -sr)" "$("$program" --version | sed -n 's/^MPI *//p')"
    if have_gpu; then printf ', %s' "$("$program" list --json | "$program" rows - --each devices --where name=cuda --keys found)"; fi
}
look_here() { [ -n "${here:-}" ] || here=$(machine_here); } # sets $here, once
# finish: puts the comparison in its place and says how all of this was made
finish() {
    [ ! -f "$out/.broken" ] || fail 'a number could not be calculated'
    [ -n "$used" ] || [ -z "$finished" ] || skip 'nothing of it is finished'
    mv "$out/.comparison" "$out/comparison.csv"
    rm -f "$out/.wrong" "$out/.missed"
    finish_jobs=$out/.used
    for finish_file in $used; do
        JOB=$finish_file awk -F '\t' '$1 == ENVIRON["JOB"]' "$out/jobs.tsv"
    done >"$finish_jobs"
    # of jobs that an older script made, the machine that the page named
    finish_machines=$(OLDER=$(known machine) awk -F '\t' '
        {
            n = split($5 == "" ? ENVIRON["OLDER"] : $5, machine, "; ")
            for (i = 1; i <= n; i++) if (!seen[machine[i]]++) list = list (list == "" ? "" : "; ") machine[i]
        }
        END { print list }' "$finish_jobs")
    {
        printf 'id: %s\n' "$id"
        for finish_field in shows paper runs needs takes agrees; do printf '%s: %s\n' $finish_field "$(head_of "$id" $finish_field)"; done
        printf 'mode: %s\ncommand: %s\n' "$(pick full quick)" "sh scripts/reproduce.sh $id${REPRODUCE_OPTIONS:-}"
        printf 'commit: %s\n' "$(cut -f 2 "$finish_jobs" | tr , '\n' | sort -u | paste -s -d ' ' -)"
        printf 'machine: %s\ndate: %s\n' "$finish_machines" "$(date -u +%Y-%m-%d)"
        printf 'seconds: %s\n' "$(awk -F '\t' '{ s += $3 } END { print s + 0 }' "$finish_jobs")"
    } >"$out/about.txt"
    finish_page >"$out/README.md"
    rm -f "$finish_jobs"
    if [ -n "$finished" ]; then find "$out" -maxdepth 1 -type f ! -name '.*' -exec mv -f {} "$home/" \;; fi
    say "done: $home"
}
known() { about "$out" "$1"; }
# shellcheck disable=SC2016 # backquotes are marks of Markdown
finish_page() {
    printf '# %s: %s\n\n' "$id" "$(known shows)"
    printf 'Made by `%s` on %s, %s s of jobs.\n' "$(known command)" "$(known date)" "$(known seconds)"
    [ -z "$quick" ] || printf 'Quick: reduced sizes, which show that everything works and not what the paper measured.\n'
    printf 'Machine: %s.\n\n' "$(known machine)"
    printf -- '- Paper: %s\n- What runs: %s\n- Agreement: %s\n\n' "$(known paper)" "$(known runs)" "$(known agrees)"
    printf '`comparison.csv` holds the paper'"'"'s numbers beside ours. The jobs, each at its commit of the program:\n\n'
    printf '| file | commit | seconds | command |\n|---|---|---|---|\n'
    awk -F '\t' '{ gsub(/\|/, "\\|", $4); printf "| `%s` | %s | %s | `%s` |\n", $1, $2, $3, $4 }' "$finish_jobs"
}
[ -z "$only" ] || . scripts/reproduce/only.sh
