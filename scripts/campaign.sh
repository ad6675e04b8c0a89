#!/bin/sh
# campaign.sh list|status|next|take [--time MINUTES] [--pack DIR [--pack-every MINUTES]]: the papers' convergence at full length, as far as a machine comes in the
# time that there is. scripts/campaign/runs.csv has the runs in the order in which they are wanted, each a job of training of
# an ID of scripts/reproduce.sh.
#   list             the runs: what for, expected hours, command
#   status           each of them: finished, under way, begun and how far it came, or not begun
#   next             takes the first that is not finished, begins it or goes on with it, and so on with the next ones. What an ID has
#                    finished becomes rows, figures and page in DIR/ID at once, and the report is made again
#   take FILE...     what a machine elsewhere has finished (gpu-check.sh --only campaign: campaign.tar.gz) becomes part of DIR as if it had been
#                    made here, and is shown
#   --time MINUTES   next stops after so many (540s: seconds), with a checkpoint from which the next call goes on; without it it stops when all
#                    is done
#   --pack DIR       a folder that outlives this machine: a run that is stopped is put there as one small file, its last checkpoint and
#                    log, also now and then while it is under way; what lies there and is further than what this machine has is gone
#                    on with. The file goes when the run is finished, and no run that is to begin from its last checkpoint is left
#   --pack-every MINUTES  how often (30; 540s: seconds); seldomer where packing takes more than a twentieth of that, as gigabytes do
#   --device NAME    cpu or cuda: the runs for such a machine; without it those for a GPU where the program finds one
#   --out DIR        where the results go (results/measured)
#   --quick          reduced sizes, to see that everything works; in build/campaign-quick
#   --table FILE     other runs than those of scripts/campaign/runs.csv
# A run may go on with another commit of the program and on another machine; its page names all that took part. Several calls side
# by side take different runs, and there may be as many as there are cores. Figures of these runs are no speeds.
# Exit status: 0, also when the time is up; 1 when a run failed; 2 for a mistake; 130 after Ctrl-C (a checkpoint was written).
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib/common.sh
. scripts/reproduce/pages.sh

options_hint='list, status, next or take; the options are --time, --pack, --pack-every, --device, --out, --quick, --table; --help has all'
minutes='' pack='' pack_every=30 device='' out='' quick='' table=scripts/campaign/runs.csv
options 'time:minutes pack pack-every:pack_every device out quick!quick table ...' "$@"
case $words in
' list' | ' status' | ' next') verb=${words# } ;;
' take '*)
    verb=take
    eval "set -- $words"
    shift
    for file in "$@"; do [ -f "$file" ] || fail "take $file: no such file"; done
    ;;
' take') fail 'take: which file? gpu-check.sh --only campaign leaves campaign.tar.gz' ;;
'') fail "what? $options_hint" ;;
*) fail "there is no \"${words# }\"; $options_hint" ;;
esac
# in_seconds OPTION TIME: of minutes, or of seconds with an s behind
in_seconds() {
    case ${2%s} in '' | *[!0-9]* | 0*) fail "$1 $2: whole minutes from 1 on, or seconds, as 540s" ;; esac
    case $2 in *s) echo "${2%s}" ;; *) echo $((60 * $2)) ;; esac
}
seconds=
[ -z "$minutes" ] || seconds=$(in_seconds --time "$minutes") || exit 2
pack_every=$(in_seconds --pack-every "$pack_every") || exit 2
case $device in '' | cpu | cuda) ;; *) fail "--device is cpu or cuda, not \"$device\"" ;; esac
[ -f "$table" ] || fail "there is no table $table"
if [ -z "$out" ]; then
    if [ -n "$quick" ]; then out=build/campaign-quick; else out=results/measured; fi
fi
if [ -n "$pack" ]; then
    mkdir -p "$pack" 2>/dev/null || true
    if [ ! -d "$pack" ] || [ ! -w "$pack" ]; then fail "--pack $pack: no folder that can be written to"; fi
fi
need_program
tab=$(printf '\t')

# -- the table ---------------------------------------------------------------------------------------------------------
# rows: the runs, a line each: group, ID, options, file, hours on two cores, on a GPU, what for, with "," between
rows() { sed '/^#/d; /^group,/d; /^$/d' "$table"; }
# reproduce ID OPTIONS WORD...: reproduce.sh of this ID
reproduce() {
    reproduce_id=$1 reproduce_options=$2
    shift 2
    # shellcheck disable=SC2086 # options are words
    sh scripts/reproduce.sh "$reproduce_id" $reproduce_options ${quick:+--quick} --out "$out" "$@"
}
if [ "$verb" = list ]; then
    printf '%-6s %-19s %-34s %-12s %-8s %s\n' group ID file 'h, 2 cores' 'h, GPU' 'what for'
    rows | while IFS=, read -r group id options file cores gpu what; do
        printf '%-6s %-19s %-34s %-12s %-8s %s\n' "$group" "$id" "$file" "$cores" "$gpu" "$what"
        printf '%-6s sh scripts/reproduce.sh %s%s --job %s\n' '' "$id" "${options:+ $options}" "$file"
    done
    exit 0
fi
make_scratch
have_gpu() { listed devices cuda; }
if [ -z "$device" ]; then
    if have_gpu; then device=cuda; else device=cpu; fi
elif [ "$device" = cuda ]; then
    [ "$verb" != next ] || have_gpu || fail "--device cuda: the program finds no GPU (sparsetrain list)"
else
    SPARSETRAIN_PLUGIN=$scratch/none # the CPU, also where there is a GPU
    export SPARSETRAIN_PLUGIN
fi
# jobs_of ID OPTIONS: a file with the jobs of training of that ID: file and command line
jobs_of() {
    jobs_file=$scratch/jobs-$1-$(printf '%s' "$2" | tr -c 'a-z0-9.\n' -)
    [ -f "$jobs_file" ] || reproduce "$1" "$2" --jobs >"$jobs_file" || fail "$table: that is of ID $1, options \"$2\""
    echo "$jobs_file"
}
# $scratch/rows: the runs of this device: group, ID, options, file, command line, with tabs between; "-" where there are no options
rows | while IFS=, read -r group id options file cores gpu what; do
    case $verb,$device in take,*) hours='?' ;; *,cuda) hours=$gpu ;; *) hours=$cores ;; esac
    [ "$hours" != - ] || continue
    jobs=$(jobs_of "$id" "$options") || exit 2
    line=$(FILE=$file awk -F '\t' '$1 == ENVIRON["FILE"] { print $2 }' "$jobs")
    [ -n "$line" ] || fail "$table: $id has no job of training that makes $file; sh scripts/reproduce.sh $id --jobs lists them"
    printf '%s\t%s\t%s\t%s\t%s\n' "$group" "$id" "${options:--}" "$file" "$line"
done >"$scratch/rows" || exit 2

# -- what became of a run -----------------------------------------------------------------------------------------------
# made COMMAND-LINE: where it is finished, and of which commits; nothing where it is not
made() {
    for made_jobs in "$out"/*/jobs.tsv; do
        [ -f "$made_jobs" ] || return 0 # there are none
        break
    done
    LINE=$1 awk -F '\t' '
        $4 == ENVIRON["LINE"] {
            folder = FILENAME
            sub(/[^\/]*$/, "", folder)
            if ((getline line <(folder $1)) <= 0) next # the file is not there
            print folder $1 ", commit " $2
            exit
        }' "$out"/*/jobs.tsv
}
# replaced NUMBER: is a later run of the table finished that makes the same file of the same ID, a larger one?
replaced() {
    awk -F '\t' -v of="$1" 'NR == of { id = $2; file = $4; line = $5; next } of < NR && $2 == id && $4 == file && $5 != line { print $5 }' "$scratch/rows" |
        while IFS= read -r replaced_line; do made "$replaced_line"; done
}
# run_of ID FILE: the directory of the run
run_of() { if [ -n "$quick" ]; then echo "$out/$1/runs/$2.run"; else echo "runs/reproduce/$1/$2.run"; fi; }
# reached < LOG: the epoch to which a log came
reached() { "$program" rows - --keys epoch --type step --last 2>/dev/null | awk '{ printf "%.4g\n", $1 }'; }
# newest RUN COMMAND-LINE: the step of its last checkpoint;  newest_packed PACK FILE COMMAND-LINE: of the one that is packed; 0 where there is
# none, or where the pack is not whole (tar lists what comes before the end that is lacking), or of a run with other options
newest() {
    if [ "$(sed -n 2p "$1.mark" 2>/dev/null)" = "$2" ]; then
        for newest_one in "$1"/checkpoint-*[0-9]/model.ckpt; do echo "${newest_one%/model.ckpt}"; done | step_of_last
    else
        echo 0
    fi
}
newest_packed() {
    if [ -f "$1" ] && unsqueezed <"$1" >/dev/null 2>&1 && newest_names=$(packed "$1" -t 2>/dev/null) && [ "$(packed "$1" -x -O "$2.run.mark" 2>/dev/null | sed -n 2p)" = "$3" ]; then
        printf '%s\n' "$newest_names" | sed -n 's|/model.ckpt$||p' | step_of_last
    else
        echo 0
    fi
}
step_of_last() { sed -n 's/.*checkpoint-0*\([0-9][0-9]*\)$/\1/p' | sort -n | tail -n 1 | grep . || echo 0; }
# taken ID FILE: is it under way, by a call on this machine that is alive, or on another machine, where the call has been heard of in the
# last ten minutes?
busy_of() { echo "$(dirname "$(run_of "$1" "$2")")/$2.busy"; }
taken() {
    { read -r taken_host taken_by taken_since <"$(busy_of "$1" "$2")"; } 2>/dev/null || return 1
    if [ "$taken_host" != "$(uname -n)" ]; then
        [ -n "$(find "$(busy_of "$1" "$2")" -mmin -10 2>/dev/null)" ]
    else
        kill -0 "$taken_by" 2>/dev/null && [ "$(since "$taken_by")" = "$taken_since" ]
    fi
}
# since PROCESS: when it began, in the machine's own terms, as its number may be another one's later; "-" where nobody says
since() { { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null || echo; } | awk '{ print (NF >= 20 ? $20 : "-") }'; }

# -- packs -----------------------------------------------------------------------------------------------------------------
# pack_of ID FILE: the file of a run in $pack;  packed PACK TAR-OPTION...: tar of it
pack_of() { echo "$pack/$1+${2%.jsonl}.tar.xz"; }
packed() {
    packed_file=$1
    shift
    unsqueezed <"$packed_file" | tar "$@" -f -
}
# put_away ID FILE COMMAND-LINE: what a run needs to go on elsewhere: its last checkpoint, the log, and what reproduce.sh says of it. Copied first:
# the run may be under way, and then adds to its log and takes old checkpoints away. Hardly anything but the log becomes smaller, so xz is
# to be fast.
part=.part # what a file is called that is being written
put_away() {
    [ -n "$pack" ] || return 0
    away_run=$(run_of "$1" "$2") away=$scratch/away$part
    away_last=$(newest "$away_run" "$3")
    [ "$away_last" != 0 ] || return 0
    away_pack=$(pack_of "$1" "$2")
    away_there=$(newest_packed "$away_pack" "$2" "$3")
    if [ "$away_there" -gt "$away_last" ]; then
        say "$away_pack is of another machine, at step $away_there: it stays, and step $away_last of this one is packed nowhere"
        return 0
    fi
    rm -rf "$away"
    mkdir -p "$away/$2.run"
    cp -R "$away_run/checkpoint-$(printf %08d "$away_last")" "$away_run/run.jsonl" "$away/$2.run/" && cp "$away_run.mark" "$away/" || return 1
    tar -cf - -C "$away" "$2.run" "$2.run.mark" | squeezed >"$away_pack$part"
    rm -rf "$away"
    if [ "$(newest_packed "$away_pack$part" "$2" "$3")" != "$away_last" ] || ! mv "$away_pack$part" "$away_pack"; then
        say "cannot write $away_pack"
        return 1
    fi
    say "packed at step $away_last: $away_pack, $(($(wc -c <"$away_pack") / 1024)) KiB"
}
# fetch ID FILE COMMAND-LINE: a run that is packed takes the place of one here that is not as far, which goes when the other is there as a
# whole. A pack that serves nothing is laid aside: it may be all that is left of a run with other options.
fetch() {
    fetch_pack=$(pack_of "$1" "$2")
    if [ -z "$pack" ] || [ ! -f "$fetch_pack" ]; then return 0; fi
    fetch_run=$(run_of "$1" "$2") fetch_step=$(newest_packed "$fetch_pack" "$2" "$3")
    if [ "$fetch_step" = 0 ]; then
        fetch_aside=${fetch_pack%.tar.xz}.aside.$(date +%s)
        mv "$fetch_pack" "$fetch_aside" || return 1
        say "$fetch_pack is damaged or of a run with other options: laid aside as $fetch_aside"
        return 0
    fi
    [ "$fetch_step" -gt "$(newest "$fetch_run" "$3")" ] || return 0
    rm -rf "$fetch_run.fetched"
    if ! mkdir -p "$fetch_run.fetched" || ! packed "$fetch_pack" -x -C "$fetch_run.fetched"; then
        rm -rf "$fetch_run.fetched"
        say "cannot unpack $fetch_pack"
        return 1
    fi
    rm -rf "$fetch_run" "$fetch_run.mark"
    mv "$fetch_run.fetched/$2.run.mark" "$fetch_run.mark" && mv "$fetch_run.fetched/$2.run" "$fetch_run" && rm -rf "$fetch_run.fetched" || return 1
    say "unpacked $fetch_pack, at step $fetch_step"
}

# -- status ----------------------------------------------------------------------------------------------------------------
# state NUMBER ID FILE COMMAND-LINE: in words
state() {
    state_in=$(made "$4") state_run=$(run_of "$2" "$3")
    if [ -n "$state_in" ]; then
        echo "finished: $state_in"
    elif [ -n "$(replaced "$1")" ]; then
        echo 'finished: a larger one'
    elif taken "$2" "$3"; then
        echo "under way at epoch $(reached <"$state_run/run.jsonl" 2>/dev/null): $state_run"
    elif [ -n "$pack" ] && [ -f "$(pack_of "$2" "$3")" ] && [ "$(newest_packed "$(pack_of "$2" "$3")" "$3" "$4")" -gt "$(newest "$state_run" "$4")" ]; then
        echo "begun, packed at epoch $(packed "$(pack_of "$2" "$3")" -x -O "$3.run/run.jsonl" | reached): $(pack_of "$2" "$3")"
    elif [ "$(newest "$state_run" "$4")" != 0 ]; then
        echo "begun, at epoch $(reached <"$state_run/run.jsonl"): $state_run"
    else
        echo 'not begun'
    fi
}
if [ "$verb" = status ]; then
    [ -z "$pack" ] || can_squeeze || fail 'packs are made by xz, which is not installed'
    number=0
    while IFS=$tab read -r group id options file line; do
        number=$((number + 1))
        printf '%-6s %-19s %-34s %s\n' "$group" "$id" "$file" "$(state $number "$id" "$file" "$line")"
    done <"$scratch/rows" >"$scratch/status"
    cat "$scratch/status"
    printf '%d of %d are finished\n' "$(grep -c ' finished: ' "$scratch/status")" "$(wc -l <"$scratch/status")"
    exit 0
fi

# -- next ------------------------------------------------------------------------------------------------------------------
has timeout || [ -z "$seconds" ] || fail '--time: there is no command timeout (coreutils)'
[ -z "$pack" ] || can_squeeze || fail '--pack: xz is not installed'
until=''
[ -z "$seconds" ] || until=$(($(date +%s) + seconds))
time_left() { [ -z "$until" ] || [ $((until - $(date +%s))) -ge 30 ]; } # enough of it to begin something
under_way() { # how many runs are, on this machine
    while IFS=$tab read -r _ id _ file _; do if taken "$id" "$file"; then echo "$id"; fi; done <"$scratch/rows" | wc -l
}
# take ID FILE: this call is at it; not where another one was first
take() {
    take_file=$(busy_of "$1" "$2")
    mkdir -p "${take_file%/*}"
    locked "${take_file%/*}" take_now "$1" "$2"
}
take_now() {
    taken "$1" "$2" || rm -f "$take_file"
    (set -C && echo "$(uname -n) $$ $(since $$)" >"$take_file") 2>/dev/null
}
leave() { rm -f "$(busy_of "$1" "$2")"; }
# show ID OPTIONS: rows, figures and page of what is finished, and the report; where all jobs of training are, also the short ones
# that look at them
show() { locked "$out" show_now "$@"; }
show_now() {
    show_how=--keep
    while IFS=$tab read -r _ show_line; do [ -n "$(made "$show_line")" ] || show_how=--finished; done <"$(jobs_of "$1" "$2")"
    reproduce "$1" "$2" $show_how >"$scratch/shown" || {
        cat "$scratch/shown"
        return 1
    }
    sed -n '$p' "$scratch/shown"
    if [ "$(cd "$out" && pwd -P)" = "$(pwd -P)/results/measured" ]; then sh scripts/artifact.sh; fi
}
# begun_by PROCESS: the processes that it has begun, and those that they have
begun_by() {
    ps -A -o pid= -o ppid= 2>/dev/null | awk -v by="$1" '
        { parent[$1] = $2 }
        END {
            for (process in parent) {
                if (process == by) continue
                for (of = process; of in parent && of != by;) of = parent[of]
                if (of == by) print process
            }
        }'
}
# train ID OPTIONS FILE COMMAND-LINE: the run; its status. Meanwhile other machines hear of it, and it is packed now and then, which takes
# time from it: a twentieth at most.
train() {
    (
        trap - EXIT
        part=.early waited=0 due=$pack_every
        while sleep 5 && kill -0 $$; do # who was killed leaves this behind
            waited=$((waited + 5))
            [ $((waited % 60)) != 0 ] || touch -c "$(busy_of "$1" "$3")"
            [ $waited -ge "$due" ] || continue
            packing=$(date +%s)
            put_away "$1" "$3" "$4"
            packing=$((20 * ($(date +%s) - packing)))
            due=$((waited + (packing > pack_every ? packing : pack_every)))
        done
    ) >/dev/null 2>&1 &
    beside=$!
    : >"$(unshown "$1" "$3")"
    REPRODUCE_UNTIL=$until reproduce "$1" "$2" --keep --job "$3"
    train_status=$?
    # shellcheck disable=SC2046 # numbers
    kill "$beside" $(begun_by "$beside")
    wait "$beside" 2>/dev/null # the shell would say that it was ended
    rm -rf "$scratch/away.early" # what was being packed then
    [ -z "$pack" ] || rm -f "$(pack_of "$1" "$3").early"
    return $train_status
}
# base_of ID FILE COMMAND-LINE: the run of the table from whose checkpoint this one begins: its file and its command line;  wanted ID FILE: is
# one that begins from that run not finished yet?
base_of() {
    awk -F '\t' -v id="$1" -v file="$2" -v at="$(dirname "$(run_of "$1" "$2")")" -v line="$3" \
        '$2 == id && $4 != file && index(line " ", " --resume " at "/" $4 ".run/") { print $4 "\t" $5; exit }' "$scratch/rows"
}
wanted() {
    while IFS=$tab read -r _ wanted_id _ wanted_file wanted_line; do
        if [ "$wanted_id" = "$1" ] && [ -z "$(made "$wanted_line")" ]; then base_of "$1" "$wanted_file" "$wanted_line"; fi
    done <"$scratch/rows" | cut -f 1 | grep -qxF -- "$2"
}
# conclude ID OPTIONS FILE COMMAND-LINE: what is left to do for a run that is finished: its pack goes, and that of the run from which it began,
# but while another run is to begin from it: that one wants the last checkpoint;  unshown ID FILE: a file that is there until it was done
unshown() { echo "$(dirname "$(run_of "$1" "$2")")/$2.unshown"; }
conclude() {
    if [ -n "$pack" ]; then
        if wanted "$1" "$3"; then put_away "$1" "$3" "$4" || failures=$((failures + 1)); else rm -f "$(pack_of "$1" "$3")"; fi
        conclude_base=$(base_of "$1" "$3" "$4" | cut -f 1)
        [ -z "$conclude_base" ] || wanted "$1" "$conclude_base" || rm -f "$(pack_of "$1" "$conclude_base")"
    fi
    say "finished: $1 $3"
    if show "$1" "$2"; then rm -f "$(unshown "$1" "$3")"; else failures=$((failures + 1)); fi
}

# -- take ------------------------------------------------------------------------------------------------------------------
if [ "$verb" = take ]; then
    for archive in "$@"; do
        rm -rf "$scratch/taken"
        mkdir "$scratch/taken"
        tar -C "$scratch/taken" -xzf "$archive" || fail "take $archive: it cannot be unpacked"
        while IFS=$tab read -r _ id options file line; do
            [ -f "$scratch/taken/$id/jobs.tsv" ] || continue
            job=$(FILE=$file LINE=$line awk -F '\t' '$1 == ENVIRON["FILE"] && $4 == ENVIRON["LINE"]' "$scratch/taken/$id/jobs.tsv")
            if [ -z "$job" ] || [ ! -f "$scratch/taken/$id/$file" ] || [ -n "$(made "$line")" ]; then continue; fi
            mkdir -p "$out/$id"
            cp "$scratch/taken/$id/$file" "$out/$id/.$file.part" && mv "$out/$id/.$file.part" "$out/$id/$file" || exit 1
            IFS=$tab read -r _ commits took _ machines <<JOB
$job
JOB
            locked "$out/$id" mark_job "$out/$id" "$file" "$took" "$line" "$commits" "$machines" || exit 1
            say "taken: $id $file"
            printf '%s\t%s\n' "$id" "$options" >>"$scratch/to-show"
        done <"$scratch/rows"
        # An ID may run otherwise where there is a GPU; a result that is left lying must not look as if it were here.
        for taken_jobs in "$scratch"/taken/*/jobs.tsv; do
            [ -f "$taken_jobs" ] || continue
            taken_id=$(basename "$(dirname "$taken_jobs")")
            awk -F '\t' 'NR == FNR { known[$5]; next } / train / && !($4 in known) { print $1 }' "$scratch/rows" "$taken_jobs" | while IFS= read -r taken_file; do
                say "not taken: $taken_id $taken_file: its command line is that of no run here, see jobs.tsv in $archive"
                : >"$scratch/left"
            done
        done
    done
    status=0
    [ ! -f "$scratch/left" ] || status=1
    [ -f "$scratch/to-show" ] || {
        [ $status = 1 ] || say 'there is nothing in it that is not here'
        exit $status
    }
    while IFS=$tab read -r id options <&3; do
        [ "$options" != - ] || options=''
        show "$id" "$options" || status=1
    done 3<<SHOWN
$(sort -u "$scratch/to-show")
SHOWN
    exit $status
fi

stopped='' failures=0
trap 'stopped=yes' INT TERM HUP
cores=$(getconf _NPROCESSORS_ONLN)
number=0
while IFS=$tab read -r group id options file line <&3; do
    number=$((number + 1))
    [ "$options" != - ] || options=''
    if taken "$id" "$file" || [ -n "$(replaced $number)" ]; then continue; fi
    if [ -n "$(made "$line")" ]; then
        [ ! -f "$(unshown "$id" "$file")" ] || conclude "$id" "$options" "$file" "$line" # who made it was killed before that
        continue
    fi
    if [ -n "$stopped" ] || ! time_left; then break; fi
    [ "$(under_way)" -lt "$cores" ] || fail "$cores runs are under way, as many as there are cores"
    take "$id" "$file" || continue
    status=1
    IFS=$tab read -r base base_line <<BASE
$(base_of "$id" "$file" "$line")
BASE
    if { [ -z "$base" ] || fetch "$id" "$base" "$base_line"; } && fetch "$id" "$file" "$line"; then
        train "$id" "$options" "$file" "$line"
        status=$?
    fi
    case $status in
    0)
        conclude "$id" "$options" "$file" "$line"
        leave "$id" "$file"
        ;;
    77) leave "$id" "$file" ;;
    130)
        put_away "$id" "$file" "$line" || failures=$((failures + 1))
        leave "$id" "$file"
        say "stopped at epoch $(reached <"$(run_of "$id" "$file")/run.jsonl"): $id $file; the same command goes on with it"
        break
        ;;
    *)
        leave "$id" "$file"
        say "failed: $id $file"
        failures=$((failures + 1))
        ;;
    esac
done 3<"$scratch/rows"
[ -z "$stopped" ] || exit 130
[ $failures = 0 ]
