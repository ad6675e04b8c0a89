#!/bin/sh
# sweep.sh: trains every combination of the options given before --, one after the other, and makes a table of the results.
#
#   sh scripts/sweep.sh --np 4 --out runs/sweep --algo dense,gtopk,oktopk --density 0.01,0.001 --seed 1,2,3 -- --model resnet20 --epochs 10
#
#   --NAME VALUES   an option of train and what it is to have, one after the other: with commas between, or, where a value has commas
#                   of its own, with semicolons (--lr-schedule 'linear;step:50%,75%'). Of a flag: on,off
#   -- OPTION...    what all runs have. Where an option has no effect, as --density with dense, it is left out, and what is then
#                   the same is run once
#   --np LIST       ranks of each run
#   --out DIR       where to: DIR/RUN with the log, checkpoints and output of each, DIR/summary.txt (also printed), DIR/summary.csv: a row
#                   for every combination but for the seed, with means and spreads over the seeds; DIR/runs.csv: a row for every run
#   --mpirun WORDS  what starts the ranks; -n P follows. Else the mpirun of this machine, with the settings of mpi-env.sh. On several
#                   nodes, as 'mpirun --hostfile hosts --map-by ppr:2:node', in a Slurm job 'srun --mpi=pmix'
#   --slurm WORDS   starts nothing, but writes Slurm jobs: the words are options of slurm/generate.sh, as '--nodes 2 --ranks-per-node 4
#                   --time 1:00:00', and take the place of --np. DIR/submit.sh submits one job for each run that is not done, and one
#                   that makes the tables when all have ended
#   --accept-diverged   a run that diverged (exit status 3) has come to its result: it is left alone from then on and counts as done
#   --dry-run       shows the commands, starts nothing
#   --table         makes the tables of the sweep in DIR, as far as it got; of the other options only --out is needed
#
# Called again in the same way it goes on: runs that are done are left alone, others continue from their last checkpoint, or begin
# anew. A run that fails does not end the others. Exit status: 0 when all runs are done, 1 when some are not, 2 for a mistake, 130
# after Ctrl-C.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib/common.sh
. "$scripts/lib/common.sh"
usage="usage: sh $0 --np P --out DIR --NAME VALUE,VALUE... [--NAME ...] [-- OPTION...]; --help has all"
tab=$(printf '\t')
make_scratch

np='' out='' launcher='' slurm='' dry=no table_only=no accept=no
: >"$scratch/swept" # NAME, then VALUES, of each option
swept() { # --NAME VALUES
    [ "$1" != --resume ] || fail "what is not done goes on by itself; leave --resume out"
    case $2 in '' | --*) fail "$1 needs values, with commas between them (of a flag on,off)" ;; esac
    ! cut -f 1 "$scratch/swept" | grep -qxF -e "${1#--}" || fail "$1 is given twice; give all its values at once"
    printf '%s\t%s\n' "${1#--}" "$2" >>"$scratch/swept"
}
options_hint="what all runs have stands behind --; $usage"
options 'dry-run!dry table!table_only accept-diverged!accept np out mpirun:launcher slurm @swept --' "$@"
eval "set -- $words"
[ -n "$out" ] || fail "--out is needed, a directory for all runs; $usage"
find_program "$scripts" || fail "there is no program: build it first (make)"

# -- what there is to run --------------------------------------------------------------------------------------------------
# OUT/sweep.tsv has a line for each run: its name, its ranks, then name=value of the options before --. OUT/.sweep/NAME.config
# holds what each run computes with, so that what lies there is not taken for the run of another sweep.
values_of() { # VALUES: one a line
    case $1 in
    *';'*) printf '%s\n' "$1" | tr ';' '\n' ;;
    *) printf '%s\n' "$1" | tr ',' '\n' ;;
    esac | grep . || fail "--$name has no value"
}
# Every combination: fields name=value with tabs between.
combine() {
    values_of_np=$np
    [ -z "$slurm" ] || values_of_np=slurm
    name=np
    values_of "$values_of_np" | sed 's/^/np=/' >"$scratch/combinations"
    while IFS=$tab read -r name values; do
        values_of "$values" >"$scratch/values"
        awk -v name="$name" 'NR == FNR { value[++n] = $0; next } { for (i = 1; i <= n; i++) print $0 "\t" name "=" value[i] }' \
            "$scratch/values" "$scratch/combinations" >"$scratch/more"
        mv "$scratch/more" "$scratch/combinations"
    done <"$scratch/swept"
}
is_flag() { "$program" --help 2>/dev/null | grep -qE -e "^  --$1( *|  .*)$"; }
# words_of COMBINATION OPTION...: the options of a run, a word a line: those that all have, but for what has no effect, and its own
words_of() {
    of_run=$1 skip=no
    shift
    for word in "$@"; do
        name=${word%%=*}
        if [ $skip = yes ]; then
            skip=no
        elif [ "${name#--}" != "$name" ] && printf '%s\n' "$of_run" | tr '\t' '\n' | grep -qxF -e "without=${name#--}"; then
            if [ "$name" = "$word" ] && ! is_flag "${name#--}"; then skip=yes; fi
        else
            printf '%s\n' "$word"
        fi
    done
    printf '%s\n' "$of_run" | tr '\t' '\n' | while IFS= read -r pair; do
        name=${pair%%=*} value=${pair#*=}
        case $name in np | without) continue ;; esac
        if grep -qxF -e "$name" "$scratch/flags"; then
            if [ "$value" = on ]; then echo "--$name"; fi
        else
            printf '%s\n%s\n' "--$name" "$value"
        fi
    done
}
# asked COMBINATION OPTION...: what the program would be set to, in $scratch/config, else the reason in $scratch/why. Prints an option
# that has no effect, if there is one.
asked() {
    words_of "$@" >"$scratch/words"
    set --
    while IFS= read -r word; do set -- "$@" "$word"; done <"$scratch/words"
    if "$program" config "$@" --out "$out" >"$scratch/config" 2>"$scratch/why" </dev/null; then
        : >"$scratch/why" # a note, at most
        awk '/^$/ { part++; next } part == 2 { print; exit }' "$scratch/config"
    else
        sed -n 's/^sparsetrain: --\([a-z0-9-]*\) has no effect .*/\1/p' "$scratch/why"
    fi
}
# What a run is called: the values of all options, with their names where a value alone would say too little.
name_of() { # COMBINATION
    printf '%s\n' "$1" | tr '\t' '\n' | awk -v ranks="$many_ranks" '
        { name = value = $0; sub(/=.*/, "", name); sub(/^[^=]*=/, "", value) }
        name == "without" { next }
        name == "np" { if (!ranks) next; text = "p" value }
        name != "np" { text = name ~ /^(algo|model|data)$/ ? value : value == "on" ? name : value == "off" ? "no-" name : name value }
        { gsub(/[^A-Za-z0-9.+-]/, "_", text); all = all (all == "" ? "" : "-") text }
        END { print all == "" ? "run" : all }'
}
# without COMBINATION NAME: the combination without that option
without() {
    if cut -f 1 "$scratch/swept" | grep -qxF -e "$2"; then
        printf '%s\n' "$1" | tr '\t' '\n' | grep -v "^$2=" | paste -s -d "$tab" -
    else
        printf '%s\twithout=%s\n' "$1" "$2"
        : >"$scratch/without.$2"
    fi
}

# plan OPTION...: what all runs have. Makes $scratch/list, as sweep.tsv, and $scratch/NAME.config.
plan() {
    : >"$scratch/flags"
    while IFS=$tab read -r name values; do
        is_flag "$name" || continue
        echo "$name" >>"$scratch/flags"
        bad=$(values_of "$values" | grep -vx -e on -e off | head -n 1)
        [ -z "$bad" ] || fail "--$name is a flag: its values are on and off, not \"$bad\""
    done <"$scratch/swept"
    : >"$scratch/list"
    : >"$scratch/refused"
    while IFS= read -r combination; do
        # Options without effect are refused, or named behind the second empty line.
        while idle=$(asked "$combination" "$@") && [ -n "$idle" ]; do
            combination=$(without "$combination" "$idle")
        done
        run=$(name_of "$combination")
        if [ -s "$scratch/why" ]; then
            printf '%s: %s\n' "$run" "$(sed 's/^sparsetrain: //' "$scratch/why")" >>"$scratch/refused"
            continue
        fi
        if [ -f "$scratch/$run.config" ]; then # the same but for what has no effect; or names that became alike
            grep -qxF -e "$run$tab$combination" "$scratch/list" || fail "two runs would be called $run; give values that differ in letters and digits"
            continue
        fi
        { printf '%s\n' "$combination" | tr '\t' '\n' | sed -n '/^np=/p' && sed '/^$/,$d' "$scratch/config"; } >"$scratch/$run.config"
        printf '%s\t%s\n' "$run" "$combination" >>"$scratch/list"
    done <"$scratch/combinations"
    # What has no effect in any run is a mistake.
    for why in "$scratch"/without.*; do
        [ -f "$why" ] || continue
        cut -f 2- "$scratch/list" | tr '\t' ' ' | grep -qv " without=${why##*/without.}\( \|\$\)" || fail "--${why##*/without.} has no effect in any of these runs; leave it out"
    done
    refusals=$(wc -l <"$scratch/refused")
    [ -s "$scratch/list" ] || fail "$(head -n 1 "$scratch/refused" | sed 's/^[^ ]*: //')"
    sed 's/^/sweep.sh: left out: /' "$scratch/refused" >&2
}
# What lies in OUT must be of this sweep, or of an earlier, smaller one.
compare() {
    while IFS=$tab read -r run _; do
        if [ -f "$out/.sweep/$run.config" ]; then
            difference=$(diff "$out/.sweep/$run.config" "$scratch/$run.config" | sed -n 's/^[<>] //p' | head -n 2 | paste -s -d ' ' -)
            [ -z "$difference" ] || fail "$out/$run was made with other options ($difference); choose another --out"
        elif [ -e "$out/$run" ]; then
            fail "$out/$run is there already, and of no sweep; choose another --out"
        fi
    done <"$scratch/list"
}
remember() {
    mkdir -p "$out/.sweep" 2>/dev/null || fail "cannot make $out; give another directory with --out"
    while IFS=$tab read -r run _; do mv "$scratch/$run.config" "$out/.sweep/$run.config"; done <"$scratch/list"
    # Runs of an earlier call, that this one does not have, stay in the tables.
    if [ -f "$out/sweep.tsv" ]; then cat "$scratch/list" "$out/sweep.tsv"; else cat "$scratch/list"; fi | awk -F "$tab" '!seen[$1]++' >"$scratch/all"
    mv "$scratch/all" "$out/sweep.tsv"
}

# -- one run ---------------------------------------------------------------------------------------------------------------
# How it ended when it was last started: done, stopped, diverged, failed; or begun, where nobody has seen its end; or none.
state_of() {
    if has_ended "$out/$1"; then
        echo "done"
        return
    fi
    case $(cat "$out/.sweep/$1.status" 2>/dev/null) in
    0) echo "done" ;;
    3) echo diverged ;;
    4) echo stopped ;;
    '') if [ -e "$out/$1/run.jsonl" ]; then echo begun; else echo none; fi ;;
    *) echo failed ;;
    esac
}
# ended RUN: there is nothing left to do for it
ended() { case $(state_of "$1") in "done") ;; diverged) [ $accept = yes ] ;; *) false ;; esac }
# again RUN: with other words than at its last start, as a later --stop-at, its end there says nothing
again() {
    if [ -f "$out/.sweep/$1.words" ] && ! cmp -s "$scratch/words" "$out/.sweep/$1.words" && [ $dry = no ]; then rm -f "$out/.sweep/$1.status"; fi
}
# start RUN, with the words of $scratch/words: goes on where it was, or begins
start() {
    run=$1
    set --
    while IFS= read -r word; do set -- "$@" "$word"; done <"$scratch/words"
    if has_checkpoint "$out/$run"; then
        set -- "$@" --resume "$out/$run"
    else
        [ $dry = yes ] || clear_run "$out/$run"
        set -- "$@" --out "$out/$run"
    fi
    # shellcheck disable=SC2086 # words
    set -- $launcher -n "$ranks" "$program" "$@"
    if [ $dry = yes ]; then
        quoted "$@" | sed 's/^ //'
        echo
        return
    fi
    mkdir -p "$out/$run"
    status=0
    "$@" >>"$out/$run/output.txt" 2>&1 </dev/null || status=$?
    echo $status >"$out/.sweep/$run.status"
    cp "$scratch/words" "$out/.sweep/$run.words"
}
# What a run came to, in a few words.
result_of() {
    read_log "$out/$1" "$scratch/of" 2>/dev/null || return 0
    awk -F = '{ fact[$1] = $2 }
        END {
            if ("test_perplexity" in fact) printf ": test perplexity %.2f", fact["test_perplexity"]
            else if ("test_wer" in fact) printf ": test WER %.2f%%", 100 * fact["test_wer"]
            else if ("test_accuracy" in fact) printf ": test accuracy %.2f%%", 100 * fact["test_accuracy"]
            else if ("valid_perplexity" in fact) printf ": valid perplexity %.2f", fact["valid_perplexity"]
            printf "%s %.3g MB sent by a rank, %.1f s", ("test_accuracy" in fact || "test_wer" in fact || "valid_perplexity" in fact ? "," : ":"), fact["bytes"] / 1e6, fact["seconds"]
        }' "$scratch/of.facts"
}
# The last line of its output that says why.
reason_of() { grep '^sparsetrain: ' "$out/$1/output.txt" 2>/dev/null | tail -n 1 | sed 's/^sparsetrain: /: /'; }

run_all() { # OPTION...
    count=$(wc -l <"$scratch/list")
    i=0
    while IFS=$tab read -r run combination; do
        i=$((i + 1))
        words_of "$combination" "$@" >"$scratch/words"
        again "$run"
        if ended "$run"; then
            [ $dry = yes ] || echo "[$i/$count] $run: is $(state_of "$run")"
            continue
        fi
        ranks=$(printf '%s\n' "$combination" | tr '\t' '\n' | sed -n 's/^np=//p')
        start "$run"
        [ $dry = no ] || continue
        case $(state_of "$run") in
        "done") echo "[$i/$count] $run$(result_of "$run")" ;;
        *) echo "[$i/$count] $run: $(state_of "$run") with status $status$(reason_of "$run"); see $out/$run/output.txt" ;;
        esac
    done <"$scratch/list"
}

# -- tables ----------------------------------------------------------------------------------------------------------------
tables() {
    : >"$scratch/rows"
    while IFS=$tab read -r run combination; do
        {
            echo "run=$run"
            echo "state=$(state_of "$run")"
            printf '%s\n' "$combination" | tr '\t' '\n' | sed '/^without=/d; s/^/option:/'
            if read_log "$out/$run" "$scratch/of" 2>/dev/null; then cat "$scratch/of.facts"; fi
            echo
        } >>"$scratch/rows"
    done <"$out/sweep.tsv"
    awk -v runs="$out/runs.csv" -v csv="$out/summary.csv" -f "$scripts/lib/csv.awk" -f "$scripts/lib/stats.awk" -f "$scripts/sweep/table.awk" "$scratch/rows" | tee "$out/summary.txt"
    undone=$(grep -c '^state=' "$scratch/rows")
    if [ $accept = yes ]; then enough='done|diverged'; else enough='done'; fi
    undone=$((undone - $(grep -cE "^state=($enough)\$" "$scratch/rows" || true)))
}
if [ $table_only = yes ]; then
    [ -f "$out/sweep.tsv" ] || fail "$out holds no sweep"
    tables
    exit 0
fi

# -- Slurm -----------------------------------------------------------------------------------------------------------------
# slurm_all OPTION...: a job for each run, by slurm/generate.sh
slurm_all() {
    jobs=''
    while IFS=$tab read -r run combination; do
        if ended "$run"; then continue; fi
        words_of "$combination" "$@" >"$scratch/words"
        slurm_job "$run"
        jobs="$jobs $run"
    done <"$scratch/list"
    [ $dry = no ] || return 0
    submit_script >"$out/submit.sh"
    echo "wrote$(for job in $jobs; do printf ' %s.sbatch' "$job"; done) submit.sh to $out; submit with: sh $out/submit.sh"
}
slurm_job() { # RUN, with the words of $scratch/words; model and algorithm are generate.sh's own options
    run=$1 skip=no
    config=$out/.sweep/$run.config
    [ $dry = no ] || config=$scratch/$run.config
    set --
    while IFS= read -r word; do
        case $skip:$word in
        yes:*) skip=no ;;
        no:--model | no:--algo) skip=yes ;;
        no:--model=* | no:--algo=*) ;;
        *) set -- "$@" "$word" ;;
        esac
    done <"$scratch/words"
    # shellcheck disable=SC2086 # words
    set -- sh "$scripts/slurm/generate.sh" --model "$(sed -n 's/^model=//p' "$config")" --algos "$(sed -n 's/^algo=//p' "$config")" $slurm \
        --name "$run" --out "$out" -- "$@"
    if [ $dry = yes ]; then
        quoted "$@" | sed 's/^ //'
        echo
    else
        "$@" || exit 2
    fi
}
submit_script() {
    printf '#!/bin/sh\n# submit.sh: submits a job for each run of the sweep that was not done, then one that makes the tables; made by sweep.sh.\n'
    printf 'set -eu\ncd %s\nafter=\n' "$(quoted "$(cd "$out" && pwd)")"
    echo '# shellcheck disable=SC2043 # there may be one alone'
    # shellcheck disable=SC2086 # words
    echo "for run in$(quoted $jobs); do"
    cat <<'SUBMIT'
    id=$(sbatch --parsable "$run.sbatch")
    after=${after:+$after:}${id%%;*}
    echo "$run: job ${id%%;*}"
done
SUBMIT
    # shellcheck disable=SC2016 # for the script that is written
    printf 'sbatch --parsable --dependency="afterany:$after" --job-name=sweep-table --ntasks=1 --time=15 --output=logs/table-%%j.log --wrap %s\n' \
        "$(quoted "$(quoted sh "$scripts/sweep.sh" --out "$(cd "$out" && pwd)" --table | sed 's/^ //')" | sed 's/^ //')"
}

# -- all of it -------------------------------------------------------------------------------------------------------------
if [ -n "$slurm" ]; then
    [ -z "$np" ] || fail "--slurm says by --nodes and --ranks-per-node how many ranks there are; leave --np out"
else
    [ -n "$np" ] || fail "--np is needed, the number of ranks; $usage"
    for ranks in $(printf '%s' "$np" | tr ',;' '  '); do
        case $ranks in 0* | *[!0-9]*) fail "--np takes whole numbers above 0, not \"$ranks\"" ;; esac
    done
fi
case $np in *[,\;]*) many_ranks=1 ;; *) many_ranks=0 ;; esac
for word in "$@"; do
    case $word in
    --out | --out=* | --resume | --resume=*) fail "${word%%=*} is set by the sweep itself; leave it out" ;;
    esac
    ! cut -f 1 "$scratch/swept" | sed 's/^/--/' | grep -qxF -e "${word%%=*}" || fail "${word%%=*} stands before -- and behind it; give it once"
done
if [ -z "$launcher" ]; then
    # shellcheck source=scripts/mpi-env.sh
    . "$scripts/mpi-env.sh"
    launcher=$MPIRUN
fi
combine
plan "$@"
compare
if [ $dry = no ]; then remember; fi
if [ -n "$slurm" ]; then
    slurm_all "$@"
    exit 0
fi
run_all "$@"
[ $dry = no ] || exit 0
echo
tables
echo "Curves: sh$(quoted "$scripts/plot.sh" "$out")/*/run.jsonl --out$(quoted "$out/plots")"
[ $((undone + refusals)) -eq 0 ] || exit 1
