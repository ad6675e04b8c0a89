#!/bin/sh
# reproduce.sh ID...|all|list [--quick] [--out DIR] [--epochs E] [--seeds N] [--hidden H] [--keep] [--finished]: makes the tables and
# figures of the papers again.
# For each ID, whose script scripts/reproduce/PAPER/ID.sh says what the paper shows, what runs, on what hardware and how long, and
# what counts as agreement: rows, a figure and comparison.csv in build/reproduce/ID; then the report over all of them
# (scripts/report.sh), beside what the authors got (results/measured). Interrupted, it goes on where it was; an ID whose
# data, tool or device is missing is skipped.
#   list        the IDs, each with its hardware and its minutes
#   --quick     reduced sizes, to see that everything works; in build/reproduce-quick
#   --out DIR   where the results go instead
#   --epochs E  of the convergence runs, which take days on CPUs, the first E epochs, on the schedules of the whole
#   --seeds N   how many seeds of runs whose difference is small (3)
#   --hidden H  the LSTM of Penn Treebank with H features instead of 1500, which are for a GPU
#   --keep      jobs that another commit of the program finished count, too
#   --finished  starts nothing: rows, figures and page from the jobs that are finished (--keep); a comparison whose runs are not all there
#               says "not run yet"
#   --jobs      of one ID: its jobs of training, a line for each: the file that it makes, and its command
#   --job FILE  of one ID: runs the job that makes this file, and nothing else. Exit status 130: stopped by a signal, after a checkpoint
#               (scripts/campaign.sh: runs of full length, one after the other, in the time that there is)
# Exit status: 0, also where a result disagrees with a paper or an ID is skipped; 1 when an ID failed; 2 for a mistake.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib/common.sh
. scripts/reproduce/pages.sh

list() {
    printf '%-18s %s\n%-18s %s\n' ID 'what it shows' '' 'hardware | time'
    for id in $(ids); do printf '%-18s %s\n%-18s %s | %s\n' "$id" "$(head_of "$id" shows)" '' "$(head_of "$id" needs)" "$(head_of "$id" takes)"; done
}

quick='' out='' epochs='' seeds='' hidden='' keep='' finished='' jobs='' job=''
options_hint='the options are --quick, --out DIR, --epochs E, --seeds N, --hidden H, --keep, --finished, --jobs, --job FILE'
options 'quick!quick=1 keep!keep=1 finished!finished=1 jobs!jobs=1 out epochs seeds hidden job ...' "$@"
wanted=$words
case $seeds in *[!0-9]* | 0*) fail "--seeds $seeds: a number of seeds from 1 on" ;; esac
case $epochs in *[!0-9.]* | *.*.* | .) fail "--epochs $epochs: a number of epochs above 0, as 10 or 0.5" ;; esac
case $hidden in *[!0-9]* | 0*) fail "--hidden $hidden: a number of features from 1 on" ;; esac
options="${quick:+ --quick}${out:+ --out $out}${epochs:+ --epochs $epochs}${seeds:+ --seeds $seeds}${hidden:+ --hidden $hidden}${finished:+ --finished}"
[ -z "$finished" ] || keep=1
[ -n "$wanted" ] || fail "which ID? sh scripts/reproduce.sh list names them; all runs all"
case $wanted in
' list')
    list
    exit 0
    ;;
' all') wanted=$(ids) ;;
*)
    for id in $wanted; do
        ids | grep -qxF -- "$id" || fail "there is no ID $id; there are: $(ids | paste -s -d ' ' -), and all"
    done
    ;;
esac
if [ -n "$jobs$job" ]; then
    case $wanted in ' '*' '* | *' '*' '*) fail "--jobs and --job are of one ID" ;; esac
    [ -z "$finished" ] || fail "--finished starts nothing; leave out --jobs and --job"
    [ -z "$jobs" ] || [ -z "$job" ] || fail "--jobs or --job, not both"
fi
need_program
if [ -z "$out" ]; then
    if [ -n "$quick" ]; then out=build/reproduce-quick; else out=build/reproduce; fi
elif [ -n "$quick" ] && [ "$(cd "$out" 2>/dev/null && pwd -P)" = "$(cd results/measured && pwd -P)" ]; then
    fail "--quick does not write to results/measured, which holds full results"
fi

make_scratch
export REPRODUCE_QUICK="$quick" REPRODUCE_OUT="$out" REPRODUCE_EPOCHS="$epochs" REPRODUCE_SEEDS="$seeds" REPRODUCE_HIDDEN="$hidden"
export REPRODUCE_KEEP="$keep" REPRODUCE_FINISHED="$finished" REPRODUCE_OPTIONS="$options" REPRODUCE_ONLY="$job${jobs:+list}"
if [ -n "$jobs$job" ]; then
    sh "$(script_of "${wanted# }")"
    exit
fi

# What the rows of an ID say: "yes no" counts of its comparisons, without what another ID counts, and of its self-checks; then,
# where they are of the beginning of a run or of a shorter one, "first 6 of 140 epochs" or "2000 steps"; where runs are yet to be made, that
rows() {
    awk "$csv_awk"'
        { csv_row() }
        NR > 1 && cell_of("counted") == "yes" {
            count[cell_of("agrees")]++
            if (is_part()) beginning = cell_of("run")
        }
        NR > 1 && is_open() { open = 1 }
        NR > 1 && cell_of("against") == "self" { self[cell_of("agrees")]++ }
        END { print count["yes"] + 0, count["no"] + 0, self["yes"] + 0, self["no"] + 0, (beginning == "" && open ? "runs that there are, which are not all" : beginning) }' "$out/$1/comparison.csv"
}
reproduced=0 beginnings=0 disagree=0 uncompared=0 skipped=0 failed=0
tell() { # tell COUNTER WORD TEXT
    eval "$1=\$(($1 + 1))"
    printf '  %-12s %s\n' "$2" "$3" >>"$scratch/summary"
}
: >"$scratch/summary"
for id in $wanted; do
    rm -f "$scratch/why"
    REPRODUCE_WHY="$scratch/why" sh "$(script_of "$id")"
    status=$?
    case $status in
    0)
        read -r yes no holds fails beginning <<COUNTS
$(rows "$id")
COUNTS
        if [ "$no" -gt 0 ]; then
            tell disagree disagrees "$id: $no of $((yes + no)) comparisons do not agree${beginning:+, in the $beginning} ($out/$id/comparison.csv)"
        elif [ "$yes" -gt 0 ] && [ -n "$beginning" ]; then
            tell beginnings 'so far' "$id: all of $yes comparisons agree, in the $beginning"
        elif [ "$yes" -gt 0 ]; then
            tell reproduced reproduced "$id: all of $yes comparisons agree"
        elif [ $((holds + fails)) -gt 0 ]; then
            tell uncompared self-checked "$id: $holds of $((holds + fails)) self-checks hold; nothing of it is compared with the paper"
        else
            tell uncompared uncompared "$id: nothing of it is compared ($out/$id/comparison.csv says why)"
        fi
        ;;
    77) tell skipped skipped "$id: $(cat "$scratch/why" 2>/dev/null)" ;;
    13[0-9] | 14[0-9]) exit $status ;; # a signal: everything ends
    *) tell failed failed "$id: exit status $status" ;;
    esac
done
sh scripts/report.sh --from "$out" || failed=$((failed + 1))
printf '%d reproduced, %d disagree, %d skipped, %d failed' $reproduced $disagree $skipped $failed
[ $beginnings = 0 ] || printf ', %d agree so far' $beginnings
[ $uncompared = 0 ] || printf ', %d without a comparison' $uncompared
printf '\n'
cat "$scratch/summary"
[ $failed = 0 ]
