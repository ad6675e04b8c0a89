# shellcheck shell=sh
# shellcheck disable=SC2154,SC2034 # what lib.sh has and uses
# only.sh: sourced at the end of lib.sh where of an ID one job is wanted ($only is the file that it makes), or the list of its jobs of
# training: what the ID does besides is gone over without a result. It writes to a folder that goes again, where an empty file stands
# for each job; the job that is wanted writes where it belongs, and ends the ID (`ends_only`).

# is_wanted FILE COMMAND-LINE: of the job that comes now: is it the one? The list has those with a command line.
is_wanted() {
    if [ "$only" = "$1" ]; then
        if [ -z "$2" ] && [ -n "$only_simulator" ]; then simulator_is_there; fi
        for only_set in $only_job_data; do need_data "$only_set"; done
        [ -z "$only_lacks" ] || skip_now "$only_lacks"
        out=$home
        mkdir -p "$out"
        return 0
    fi
    if [ "$only" = list ] && [ -n "$2" ]; then printf '%s\t%s\n' "$1" "$2"; fi
    : >"$out/$1"
    only_job_data=''
    return 1
}
# What the ID lacks, or the next job alone, is no reason to skip but where a job is wanted that lacks it. For data of the next job
# one looks then only: that takes longer than all else that is done for a job of the list.
only_lacks='' only_job_data=''
skip() { only_lacks=$*; }
job_needs_data() { only_job_data="$only_job_data $1"; }
# Jobs of training never need the simulator: whether it is there is asked for another one that is wanted.
only_simulator=''
need_simulator() { only_simulator=yes; }
skip_now() {
    say "skipped: $*"
    exit 77
}
skipped_gpu() { ! have_gpu; }

# There are no results.
values() { :; }
row() { :; }
figure() { :; }
finish() {
    [ "$only" = list ] || fail "$id has no job that makes $only; sh scripts/reproduce.sh $id --jobs lists those of training"
    exit 0
}
