#!/bin/sh
# generate.sh: writes Slurm jobs, one for each algorithm, that train the same model on the same nodes; a job that runs into
# its time limit, or whose node fails, goes on from its last checkpoint, to the same bits as without the interruption; so
# does one that ends with a system error (status 1, or by a signal), up to three times without a new checkpoint.
#
#   sh scripts/slurm/generate.sh --model vgg16 --algos "dense topka gtopk oktopk" --nodes 4 --ranks-per-node 4 [OPTION...]
#       [-- SPARSETRAIN OPTION...]
#
#   --model NAME          the network; --algos "NAME ..." the algorithms (sparsetrain list shows both)
#   --nodes N             nodes of each job; --ranks-per-node M ranks on each
#   --epochs E            length of the runs, --density RHO of the sparse ones (both: as the program has it)
#   --out DIR             where to (runs/slurm-MODEL-pRANKS); both here and on the nodes
#   --partition P --account A --qos Q --time T --gpus-per-node G --cpus-per-rank C
#                         as sbatch takes them; with G the networks run on GPUs
#   --launcher srun|mpirun
#                         what starts the ranks (srun); --pmi TYPE: srun --mpi=TYPE (pmix; pmi2 for many an MPICH)
#   --modules "NAME ..."  loaded by each job
#   --container IMAGE     an Apptainer image that has the program (scripts/container)
#   --program PATH        the program, as the nodes see it (build/sparsetrain of this clone, else the installed one)
#   --sparse "OPTION ..." of the program, for the sparse algorithms alone, as "--wire packed"; what stands behind -- is for all
#   --name NAME           of one algorithm: what its job and its run are called; nothing else is written (for sweep.sh)
#   --serial              one job at a time
#
# Written: DIR/ALGO.sbatch, DIR/submit.sh (submits all, then the collecting job), DIR/collect.sbatch (table and plots, also by
# hand: sh DIR/collect.sbatch). $SPARSETRAIN_DATA is where the data lie, as the nodes see it; it is written into the jobs.
# Exit 2, with one line, when something is wrong.
set -eu
scripts=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/lib/common.sh
. "$scripts/lib/common.sh"

usage="usage: sh $0 --model M --algos 'A B ...' --nodes N --ranks-per-node M [OPTION...]; --help has all"

model='' algos='' nodes='' per_node='' epochs='' density='' out='' partition='' account='' qos='' time='' gpus='' cpus=1
launcher=srun pmi=pmix modules='' container='' program='' serial='' sparse='' name=''
options_hint=$usage
options 'model algos nodes ranks-per-node:per_node epochs density out partition account qos time gpus-per-node:gpus cpus-per-rank:cpus
    launcher pmi modules container program sparse name serial!serial --' "$@"
eval "set -- $words"

# -- what was asked for, checked ---------------------------------------------------------------------------------------
# whole OPTION VALUE, word OPTION VALUE CHARACTERS...: refuses anything else
whole() {
    case $2 in
    '' | 0* | *[!0-9]*) fail "$1 wants a whole number above 0, not \"$2\"" ;;
    esac
}
word() {
    printf '%s\n' "$2" | grep -qxE "[A-Za-z0-9$3]+" || fail "$1 \"$2\" holds characters that cannot stand in a job: letters, digits and $3 can"
}
[ -n "$model" ] || fail "--model is needed; $usage"
[ -n "$algos" ] || fail "--algos is needed; $usage"
whole --nodes "$nodes"
whole --ranks-per-node "$per_node"
whole --cpus-per-rank "$cpus"
[ -z "$gpus" ] || word --gpus-per-node "$gpus" '_:.-'
[ -z "$time" ] || word --time "$time" ':-'
for pair in "partition=$partition" "account=$account" "qos=$qos" "pmi=$pmi" "epochs=$epochs" "density=$density"; do
    [ -z "${pair#*=}" ] || word "--${pair%%=*}" "${pair#*=}" '_.,+@-'
done
[ -z "$modules" ] || word --modules "$modules" ' _.,+@/-'
case $launcher in srun | mpirun) ;; *) fail "--launcher is srun or mpirun, not \"$launcher\"" ;; esac
ranks=$((nodes * per_node))
out=${out:-runs/slurm-$model-p$ranks}
case $out in /*) ;; *) out=$PWD/$out ;; esac
word --out "$out" '_.,+@/-'
[ -z "$container" ] || [ -z "$program" ] || fail "--container has its own program; leave --program out"
if [ -n "$container" ]; then
    case $container in /* | *://*) ;; *) container=$PWD/$container ;; esac
    program=sparsetrain
elif [ -z "$program" ]; then
    find_program "$scripts" || fail "there is no program: build it first (make), or give --program or --container"
else
    case $program in */*) case $program in /*) ;; *) program=$PWD/$program ;; esac ;; esac
fi

# What the program has, where it can be asked here.
known() { # OPTION TABLE NAME
    printf '%s\n' "$3" | grep -qxE '[a-z0-9-]+' || fail "$1: \"$3\" is no name"
    if [ -n "$container" ] || ! has "$program" || listed "$2" "$3" "name=$3"; then return 0; fi
    fail "$1 has no \"$3\"; there are: $("$program" list --json | "$program" rows - --each "$2" --keys name | paste -s -d ' ' -)"
}
known --model models "$model"
seen=
for algo in $algos; do
    known --algos exchanges "$algo"
    case " $seen " in *" $algo "*) fail "--algos names $algo twice" ;; esac
    seen="$seen $algo"
done
if [ -n "$name" ]; then
    word --name "$name" '_.,+@-'
    case $algos in *' '*) fail "--name is for one algorithm, not for $algos" ;; esac
fi
for option in "$@" $sparse; do
    case ${option%%=*} in
    --model | --algo | --out | --resume) fail "$option is set by the jobs themselves; leave it out" ;;
    --device) [ -z "$gpus" ] || fail "--gpus-per-node sets --device; leave one of them out" ;;
    esac
done
data=${SPARSETRAIN_DATA:-}
if [ -z "$data" ] && [ -d "$scripts/../build/data" ]; then data=$(cd "$scripts/../build/data" && pwd); fi
case $data in '' | /*) ;; *) data=$PWD/$data ;; esac
[ -z "$data" ] || word SPARSETRAIN_DATA "$data" '_.,+@/-'
mkdir -p "$out/logs" 2>/dev/null || fail "cannot make $out/logs; give another directory with --out"

# -- what is written ---------------------------------------------------------------------------------------------------
# header NAME LOG: what sbatch reads of every job
header() {
    # Without a login shell many clusters have no `module`.
    if [ -n "$modules" ]; then echo '#!/bin/sh -l'; else echo '#!/bin/sh'; fi
    echo "#SBATCH --job-name=$1"
    [ -z "$partition" ] || echo "#SBATCH --partition=$partition"
    [ -z "$account" ] || echo "#SBATCH --account=$account"
    [ -z "$qos" ] || echo "#SBATCH --qos=$qos"
    echo "#SBATCH --output=$out/logs/$2-%j.log"
    echo '#SBATCH --open-mode=append'
}
prepare() {
    [ -z "$modules" ] || echo "module load $modules || exit 2"
    [ -z "$data" ] || printf 'SPARSETRAIN_DATA=%s\nexport SPARSETRAIN_DATA\n' "$data"
}

# How the ranks are started; the options of the program follow.
launch() {
    # shellcheck disable=SC2016 # for the job
    case $launcher in
    srun) printf 'srun --ntasks=%d --ntasks-per-node=%d --cpus-per-task=%d --mpi=%s --kill-on-bad-exit=1' "$ranks" "$per_node" "$cpus" "$pmi" ;;
    mpirun) printf '"${MPIRUN:-mpirun}" -np %d' "$ranks" ;; # which asks Slurm for the nodes
    esac
    alone
}
# The program without a launcher.
alone() {
    if [ -n "$container" ]; then
        printf ' apptainer exec%s --bind %s%s%s' "${gpus:+ --nv}" "$out" "${data:+,$data}" "$(quoted "$container")"
    fi
    quoted "$program"
}

# options_of ALGO: of the program, the same for a run and for its continuation
options_of() {
    algo=$1
    shift
    set -- --model "$model" --algo "$algo" ${epochs:+--epochs "$epochs"} ${gpus:+--device cuda} "$@"
    [ "$cpus" -eq 1 ] || set -- "$@" --threads "$cpus"
    # shellcheck disable=SC2086 # words
    if is_sparse "$algo"; then set -- "$@" ${density:+--density "$density"} $sparse; fi
    quoted "$@"
}

job() {
    algo=$1
    shift
    called=${name:-$algo}
    header "${name:-$model-$algo}" "$called"
    cat <<JOB
#SBATCH --nodes=$nodes
#SBATCH --ntasks-per-node=$per_node
#SBATCH --cpus-per-task=$cpus
${gpus:+#SBATCH --gpus-per-node=$gpus
}${time:+#SBATCH --time=$time
}#SBATCH --requeue
#SBATCH --signal=B:USR1@120
# $model with --algo $algo on $nodes node(s) of $per_node rank(s), made by scripts/slurm/generate.sh. Submitted again after any end, it
# goes on from the last checkpoint; when all is done it ends at once.
JOB
    prepare
    printf 'set -u\nrun=%s\n\n' "$out/$called"
    # shellcheck disable=SC2016 # for the job
    printf 'summary_has() { [ -n "$(%s rows "$run" --type summary --where "$1=true" --last 2>/dev/null)" ]; }\n' "$(alone | sed 's/^ //')"
    echo 'completed() { summary_has completed || summary_has target.reached; }'
    cat <<'JOB'
# The newest one that is complete: what is being written, or taken away, has another name.
checkpoint() {
    newest=-1
    for file in "$run"/checkpoint-*/model.ckpt; do
        step=${file%/model.ckpt}
        step=${step##*/checkpoint-}
        case $step in '' | *[!0-9]*) continue ;; esac
        [ -f "$file" ] || continue
        while [ "${step#0?}" != "$step" ]; do step=${step#0}; done # no octal number
        [ "$step" -le "$newest" ] || newest=$step
    done
    [ "$newest" -lt 0 ] || echo "$newest"
}
if completed; then
    echo "$run is complete"
    exit 0
fi
# Is there one that --resume may go on from, or that it can say what is wrong with? One that was put aside (.old) or that
# cannot be looked into is, as is any in a directory that cannot be read; not what was being written (.tmp), nor what a run
# has set aside because it is damaged.
may_resume() {
    for file in "$run"/checkpoint-[0-9]*; do
        case $file in *.tmp | *.damaged) continue ;; esac
        if [ -e "$file" ] || [ -h "$file" ]; then return 0; fi
    done
    [ -e "$run" ] && ! ls "$run" >/dev/null
}
begun=$(checkpoint)
if may_resume; then
    set -- --resume "$run"
else
JOB
    echo '    # A run that came to no checkpoint has nothing to go on from, and its log goes; where another job has it under way, it stays,'
    echo '    # and that is said. What is left of half a checkpoint, the program removes; what is not of the run stays.'
    # shellcheck disable=SC2016 # for the job
    printf '    if [ -e "$run" ] &&%s config --out "$run" >/dev/null 2>&1; then\n' "$(alone)"
    cat <<'JOB'
        rm -f "$run/run.jsonl" "$run/run.jsonl.tmp" "$run/vocabulary.txt" "$run/vocabulary.txt.tmp"
    fi
    set -- --out "$run"
fi

# Two minutes before the time limit Slurm sends USR1 to this script; the launcher passes it on to the ranks, which write a
# checkpoint and end with status 4. A signal interrupts wait, so it is asked again.
told=0 ranks=''
trap 'told=$((told + 1)); [ -z "$ranks" ] || kill -USR1 "$ranks" 2>/dev/null' USR1
JOB
    printf '%s%s "$@" &\n' "$(launch)" "$(options_of "$algo" "$@")"
    cat <<'JOB'
ranks=$!
status=127 heard=-1 # of a launcher that is not there; wait also says so of one whose status it has told
[ "$told" -eq 0 ] || kill -USR1 "$ranks"
while [ "$heard" -ne "$told" ]; do
    heard=$told
    wait "$ranks"
    ended=$?
    [ "$ended" -eq 127 ] || status=$ended
done

again() { # again WHY: back into the queue
    echo "$1; back into the queue"
    scontrol requeue "$SLURM_JOB_ID" && exit 0
    echo "scontrol cannot requeue the job: submit it again to go on" >&2
    exit "$status"
}

# How often it has ended with a system error since the checkpoint that it has now, in a file beside the run: a new one each
# time, so that nothing is written to what a link leads to. False: it cannot be noted.
failed_again() {
    failures=0 at=none
    if [ -h "$run.failures" ]; then
        rm -f "$run.failures"
    elif [ -f "$run.failures" ]; then
        read -r failures at <"$run.failures" || :
    elif [ -e "$run.failures" ]; then
        return 1
    fi
    case $failures in '' | *[!0-9]*) failures=0 ;; esac
    [ "$at" = "${now:-none}" ] || failures=0
    failures=$((failures + 1))
    new=$(mktemp "$run.failures.XXXXXX" 2>/dev/null) || return 1
    echo "$failures ${now:-none}" >"$new" && mv -f "$new" "$run.failures" && return
    rm -f "$new"
    return 1
}

# A mistake (2) or a NaN (3) would come back. The system's errors (1; above 128: a signal) may not, a lost node say; one
# that does is given up: it must not go round for ever.
most=3 now=$(checkpoint)
if completed || [ "$status" -eq 0 ]; then
    rm -f "$run.failures"
elif [ "$status" -eq 2 ] || [ "$status" -eq 3 ]; then
    :
elif [ "$told" -gt 0 ] && [ "$now" != "$begun" ]; then
    again "stopped by the time limit after step $now"
elif [ "$status" -eq 1 ] || [ "$status" -gt 128 ]; then
    if ! failed_again; then
        echo "ended with status $status, and how often cannot be noted in $run.failures: not started again (move away what is there, or let it be written, then submit it)" >&2
        exit "$status"
    fi
    [ "$failures" -gt $most ] || again "ended with status $status, for the $failures. time of $most at checkpoint ${now:-none}"
    echo "ended with status $status, more than $most times without a new checkpoint: not started again (rm $run.failures, then submit it, to try once more)" >&2
fi
exit "$status"
JOB
}

collect() {
    header "$model-collect" collect
    echo '#SBATCH --ntasks=1'
    echo '#SBATCH --time=15'
    echo '# The table and the plots of all runs, as far as they got; by hand: sh collect.sbatch'
    prepare
    # shellcheck disable=SC2086 # words
    echo "exec sh $scripts/slurm/collect.sh $out$(quoted $algos)"
}

submit() {
    cat <<'SUBMIT'
#!/bin/sh
# submit.sh: submits one job for each algorithm and, after all of them, the one that collects; made by
# scripts/slurm/generate.sh. Jobs of runs that are complete end at once.
set -eu
cd "$(dirname "$0")"
command -v sbatch >/dev/null 2>&1 || {
    echo "submit.sh: there is no sbatch here; run it where jobs are submitted" >&2
    exit 2
}
after=''
SUBMIT
    echo '# shellcheck disable=SC2043 # there may be one alone'
    # shellcheck disable=SC2086 # words
    echo "for algo in$(quoted $algos); do"
    # shellcheck disable=SC2016 # for the script that is written
    if [ -n "$serial" ]; then
        echo '    id=$(sbatch --parsable ${after:+--dependency="afterany:$after"} "$algo.sbatch")'
        echo '    after=${id%%;*}'
    else
        echo '    id=$(sbatch --parsable "$algo.sbatch")'
        echo '    after=${after:+$after:}${id%%;*}'
    fi
    cat <<'SUBMIT'
    echo "$algo: job ${id%%;*}"
done
id=$(sbatch --parsable --dependency="afterany:$after" collect.sbatch)
echo "table and plots: job ${id%%;*}"
SUBMIT
}

for algo in $algos; do job "$algo" "$@" >"$out/${name:-$algo}.sbatch"; done
[ -z "$name" ] || exit 0
collect >"$out/collect.sbatch"
submit >"$out/submit.sh"
echo "wrote$(for algo in $algos; do printf ' %s.sbatch' "$algo"; done) collect.sbatch submit.sh to $out; submit with: sh $out/submit.sh"
