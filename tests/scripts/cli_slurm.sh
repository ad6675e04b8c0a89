#!/bin/sh
# cli_slurm.sh: jobs of scripts/slurm/generate.sh, run for real under a Slurm of a few lines: a USR1 in the middle leads to a
# checkpoint and back into the queue, the second run goes on to the same bits; srun and mpirun, a container, the submitting
# and the collecting script; and what is refused.
. tests/lib/tap.sh
fake=$W/slurm
mkdir "$fake"
real_mpirun=$(command -v "$MPIRUN")
export MPIRUN="$real_mpirun"
# sbatch: remembers the job and its dependency, prints its number. scontrol, module: remember what they were told.
cat > "$fake/sbatch" << 'FAKE'
#!/bin/sh
touch "$FAKE_STATE/queue"
id=$((100 + $(wc -l < "$FAKE_STATE/queue")))
after=
for word in "$@"; do
    case $word in --dependency=*) after=${word#--dependency=} ;; --parsable) ;; *) script=$word ;; esac
done
[ -f "$script" ] || exit 1
echo "$id $script${after:+ $after}" >> "$FAKE_STATE/queue"
echo "$id;cluster"
FAKE
cat > "$fake/scontrol" << 'FAKE'
#!/bin/sh
echo "$*" >> "$FAKE_STATE/scontrol"
[ -z "${FAKE_REFUSES:-}" ]
FAKE
cat > "$fake/module" << 'FAKE'
#!/bin/sh
echo "$*" >> "$FAKE_STATE/module"
FAKE
# srun starts the ranks and passes USR1 on to them, as mpirun does.
cat > "$fake/srun" << 'FAKE'
#!/bin/sh
echo "$*" >> "$FAKE_STATE/srun"
[ -z "${FAKE_BREAKS:-}" ] || exit "$FAKE_BREAKS"
for word in "$@"; do
    case $word in
    --ntasks=*) ranks=${word#--ntasks=} ;;
    --*) ;;
    *) break ;;
    esac
    shift
done
exec "$MPIRUN" -np "$ranks" "$@"
FAKE
cat > "$fake/apptainer" << 'FAKE'
#!/bin/sh
echo "$*" >> "$FAKE_STATE/apptainer"
while [ "$1" != image.sif ] && [ "${1##*/}" != image.sif ]; do shift; done
shift
exec "$@"
FAKE
chmod +x "$fake"/*
FAKE_STATE=$W/state
export FAKE_STATE
mkdir "$FAKE_STATE"
PATH=$fake:$(dirname "$PROGRAM"):$PATH
SPARSETRAIN_DATA=$W/data
export PATH SPARSETRAIN_DATA
mkdir "$SPARSETRAIN_DATA"

generate() { sh scripts/slurm/generate.sh --program "$PROGRAM" "$@" > "$W/out" 2> "$W/err"; }
small="--data synthetic:512x64 --batch 4 --steps 48 --eval-every 0 --checkpoint-every 4"

# run_job FILE [RUN]: as Slurm runs it; with RUN, a USR1 to the script alone when that run has done a few steps; its status
run_job() {
    SLURM_JOB_ID=77 sh "$1" > "$W/out" 2> "$W/err" < /dev/null &
    job=$!
    if [ $# -gt 1 ]; then
        for _ in $(seq 200); do
            grep -q '"type":"step"' "$2/run.jsonl" 2> /dev/null && break
            sleep 0.05
        done
        kill -USR1 $job
    fi
    wait $job
}

# -- the whole of it, with each launcher -------------------------------------------------------------------------------
# shellcheck disable=SC2086
start 2 --model resnet20 --algo gtopk --density 0.01 --density-warmup none $small --out "$W/alone"
want=$(hash_of "$W/alone")
check "a run without Slurm" [ -n "$want" ]
for launcher in srun mpirun; do
    rm -f "$FAKE_STATE"/*
    jobs=$W/$launcher
    # shellcheck disable=SC2086
    check "$launcher: jobs are written" generate --model resnet20 --algos "dense gtopk" --nodes 1 --ranks-per-node 2 --density 0.01 \
        --launcher $launcher --out "$jobs" --modules "openmpi png" --time 0:30:00 --sparse "--density-warmup none" -- $small
    check "$launcher: with the signal before the end of the time" grep -q '^#SBATCH --signal=B:USR1@120$' "$jobs/gtopk.sbatch"
    run_job "$jobs/gtopk.sbatch" "$jobs/gtopk"
    status=$?
    stopped=$(find "$jobs/gtopk" -name model.ckpt | wc -l)
    check "$launcher: USR1 ends the job well (status $status)" [ $status -eq 0 ]
    check "$launcher: with a checkpoint, before the end" sh -c "[ $stopped -gt 0 ] && ! grep -q '\"completed\":true' '$jobs/gtopk/run.jsonl'"
    check "$launcher: and it is back in the queue" [ "$(cat "$FAKE_STATE/scontrol" 2> /dev/null)" = 'requeue 77' ]
    check "$launcher: the modules were loaded" [ "$(cat "$FAKE_STATE/module")" = 'load openmpi png' ]
    run_job "$jobs/gtopk.sbatch"
    status=$?
    check "$launcher: the second run comes to the end (status $status)" [ $status -eq 0 ]
    why="hash $(hash_of "$jobs/gtopk"), wanted $want"
    if [ "$(hash_of "$jobs/gtopk")" = "$want" ]; then ok "$launcher: to the same bits"; else not_ok "$launcher: to the same bits" "$why"; fi
    run_job "$jobs/gtopk.sbatch"
    check "$launcher: a third has nothing to do" grep -q 'is complete' "$W/out"
    check "$launcher: it was requeued once" [ "$(wc -l < "$FAKE_STATE/scontrol")" -eq 1 ]
done

# -- what does not go back into the queue ------------------------------------------------------------------------------
rm -f "$FAKE_STATE"/*
# shellcheck disable=SC2086
generate --model resnet20 --algos "dense gtopk" --nodes 1 --ranks-per-node 2 --density 0.01 --out "$W/wrong" --sparse "--density-warmup none" -- $small --lr 1e6 --lr-warmup 0
run_job "$W/wrong/gtopk.sbatch"
status=$?
check "a run that explodes ends with its status, 3, not $status" [ $status -eq 3 ]
check "and is not started again" [ ! -e "$FAKE_STATE/scontrol" ]
check "srun got ranks, ranks of a node, threads, the kind of PMI" grep -q '^--ntasks=2 --ntasks-per-node=2 --cpus-per-task=1 --mpi=pmix ' "$FAKE_STATE/srun"
# shellcheck disable=SC2086
generate --model resnet20 --algos dense --nodes 1 --ranks-per-node 2 --out "$W/refused" -- $small
FAKE_REFUSES=yes
export FAKE_REFUSES
run_job "$W/refused/dense.sbatch" "$W/refused/dense"
status=$?
unset FAKE_REFUSES
check "where scontrol refuses: the program's status, 4, not $status, and what to do" sh -c "[ $status -eq 4 ] && grep -q 'submit it again' '$W/err'"

# -- system errors -----------------------------------------------------------------------------------------------------
rm -f "$FAKE_STATE"/*
generate --model resnet20 --algos dense --nodes 1 --ranks-per-node 1 --out "$W/ill" -- --data synthetic:512x64 --batch 4 --steps 8 --eval-every 0 --checkpoint-every 4
# broken STATUS: the job once more, on a node that ends every rank so; its status
broken() {
    FAKE_BREAKS=$1
    export FAKE_BREAKS
    run_job "$W/ill/dense.sbatch"
    broken_status=$?
    unset FAKE_BREAKS
    return $broken_status
}
requeued() { [ "$(grep -c . "$FAKE_STATE/scontrol")" -eq "$1" ]; }
for time in 1 2 3; do
    broken $((time == 2 ? 137 : 1))
    status=$?
    check "system error $time: back into the queue (status $status)" sh -c "[ $status -eq 0 ] && [ \$(wc -l < '$FAKE_STATE/scontrol') -eq $time ]"
done
broken 1
status=$?
check "a fourth in a row is not: status 1, not $status" [ $status -eq 1 ]
check "and says why" grep -q 'more than 3 times without a new checkpoint' "$W/err"
check "it was requeued three times" requeued 3
broken 2
check "a mistake is not" requeued 3
mkdir -p "$W/ill/dense/checkpoint-00000004.tmp"
touch "$W/ill/dense/checkpoint-00000004.tmp/model.ckpt" "$W/ill/dense/run.jsonl" "$W/ill/dense/run.jsonl.tmp" "$W/ill/dense/vocabulary.txt.tmp"
SLURM_JOB_ID=78 sh "$W/ill/dense.sbatch" > "$W/out" 2> "$W/err"
status=$?
why=$(head -c 300 "$W/err")
check "what a kill in the middle of a checkpoint leaves is none: the run begins (status $status)" [ -n "$(hash_of "$W/ill/dense")" ]
check "and leaves nothing of it" [ "$(find "$W/ill/dense" -name '*.tmp' | wc -l)" -eq 0 ]
check "and forgets its errors when it is complete" [ ! -e "$W/ill/dense.failures" ]
sed -i '/"type":"summary"/d' "$W/ill/dense/run.jsonl" # as if it had been killed just before
echo '3 none' > "$W/ill/dense.failures"
broken 1
status=$?
check "with a new checkpoint the count begins anew (status $status)" sh -c "[ $status -eq 0 ] && grep -qx '1 8' '$W/ill/dense.failures'"
check "resuming was asked for" grep -q -- "--resume $W/ill/dense\$" "$FAKE_STATE/srun"

# The count of errors is a new file each time; what lies in its place is not written to, and nobody waits for it.
echo precious > "$W/victim"
rm -f "$W/ill/dense.failures"
ln -s ../victim "$W/ill/dense.failures"
: > "$FAKE_STATE/scontrol"
broken 1
status=$?
check "a link in the place of the count is replaced (status $status)" sh -c "[ $status -eq 0 ] && [ ! -h '$W/ill/dense.failures' ] && grep -qx '1 8' '$W/ill/dense.failures'"
check "what it leads to stays" [ "$(cat "$W/victim")" = precious ]
for kind in FIFO folder; do
    rm -f "$W/ill/dense.failures"
    if [ $kind = FIFO ]; then mkfifo "$W/ill/dense.failures"; else mkdir "$W/ill/dense.failures"; fi
    FAKE_BREAKS=1 SLURM_JOB_ID=77 timeout 60 sh "$W/ill/dense.sbatch" > "$W/out" 2> "$W/err"
    status=$?
    check "a $kind there: not started again (status $status), and why" sh -c "[ $status -eq 1 ] && grep -q 'how often cannot be noted in $W/ill/dense.failures' '$W/err'"
done
check "nothing is made in it, or beside it" [ -z "$(find "$W/ill/dense.failures" "$W"/ill/dense.failures.* -type f 2> /dev/null)" ]
rmdir "$W/ill/dense.failures"
check "they were not requeued" requeued 1

# What a job removes is the log of a run without a checkpoint, and nothing else.
generate --model resnet20 --algos dense --nodes 1 --ranks-per-node 1 --out "$W/few" -- --data synthetic:64x8 --batch 4 --steps 2
# begins NAME: the run's directory anew, with a log and this name in it
begins() {
    rm -rf "$W/few/dense"
    mkdir "$W/few/dense"
    echo rows > "$W/few/dense/run.jsonl"
    mkdir "$W/few/dense/$1"
    echo mine > "$W/few/dense/$1/model.ckpt"
    : > "$FAKE_STATE/srun"
    : > "$FAKE_STATE/scontrol"
    run_job "$W/few/dense.sbatch"
    status=$?
    why="status $status: $(cat "$W/err")"
}
# kept NAME: it ended with status 2, once, with all that was there
kept() { [ $status -eq 2 ] && [ ! -s "$FAKE_STATE/scontrol" ] && [ "$(cat "$W/few/dense/run.jsonl" "$W/few/dense/$1/model.ckpt")" = "$(printf 'rows\nmine')" ]; }
for name in thesis checkpoint-00000099.damaged .hidden checkpoint-mine; do
    begins $name
    check "$name beside the log of a run without a checkpoint: it stays" [ "$(cat "$W/few/dense/$name/model.ckpt")" = mine ]
    check "and the run begins anew" grep -q -- "--out $W/few/dense\$" "$FAKE_STATE/srun"
    check "without that log" [ "$(head -n 1 "$W/few/dense/run.jsonl" 2> /dev/null)" != rows ]
done
for name in checkpoint-00000002.old checkpoint-00000002; do
    begins $name
    check "$name, of which the program may know more: all of it stays" kept $name
    check "and --resume is asked" grep -q -- "--resume $W/few/dense\$" "$FAKE_STATE/srun"
done
rm -rf "$W/few/dense"
mkdir "$W/few/dense"
ln -s "$W/nowhere" "$W/few/dense/checkpoint-00000002"
run_job "$W/few/dense.sbatch"
status=$?
check "a checkpoint that is out of reach (status $status)" [ $status -eq 2 -a -h "$W/few/dense/checkpoint-00000002" ]

# A launcher that is not there.
generate --model resnet20 --algos dense --nodes 1 --ranks-per-node 1 --launcher mpirun --out "$W/unlaunched" -- --data synthetic:64x8 --batch 4 --steps 2
: > "$FAKE_STATE/scontrol"
SLURM_JOB_ID=77 MPIRUN=$W/nowhere sh "$W/unlaunched/dense.sbatch" > "$W/out" 2> "$W/err"
status=$?
check "a launcher that is not there: status 127, not $status" [ $status -eq 127 ]
check "that is not started again" [ ! -s "$FAKE_STATE/scontrol" ]

# A directory that cannot be read holds who knows what: nothing in it is removed.
mkdir "$W/blind"
printf '#!/bin/sh\necho "ls: cannot open directory" >&2\nexit 2\n' > "$W/blind/ls"
chmod +x "$W/blind/ls"
rm -rf "$W/ill/dense"/checkpoint-*
touch "$W/ill/dense/mine"
: > "$FAKE_STATE/srun"
SLURM_JOB_ID=78 PATH=$W/blind:$PATH sh "$W/ill/dense.sbatch" > "$W/out" 2> "$W/err"
status=$?
check "a directory that cannot be read stays (status $status)" [ "$status" -ne 0 -a -e "$W/ill/dense/mine" ]
check "and the program is asked what is wrong with it" grep -q -- "--resume $W/ill/dense\$" "$FAKE_STATE/srun"
# blind DIR: what common.sh, of all other scripts, makes of it
blind() { PATH=$W/blind:$PATH sh -c '. scripts/lib/common.sh; has_checkpoint "$1"' sh "$1" 2> /dev/null; }
check "scripts take it for one that may have a checkpoint" blind "$W/ill/dense"
if blind "$W/nowhere"; then not_ok "but not where there is nothing" "taken for one"; else ok "but not where there is nothing"; fi

# -- a run that is under way -------------------------------------------------------------------------------------------
rm -f "$FAKE_STATE"/*
generate --model resnet20 --algos dense --nodes 1 --ranks-per-node 1 --out "$W/live" -- --data synthetic:512x64 --batch 4 --steps 8
live_begin "$W/live/dense"
run_job "$W/live/dense.sbatch"
status=$?
check "a run that another job has under way is refused (status $status)" sh -c "[ $status -eq 2 ] && grep -q 'dense is in use: process $live on host' '$W/err'"
check "and not harmed" live_end "$W/live/dense"

# -- a container -------------------------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
sh scripts/slurm/generate.sh --container image.sif --model resnet20 --algos gtopk --nodes 1 --ranks-per-node 2 --gpus-per-node 1 \
    --out "$W/boxed" -- --data synthetic:64x16 --batch 4 --steps 2 > "$W/out" 2> "$W/err"
sed -i 's/ --device cuda//' "$W/boxed/gtopk.sbatch" # there is none
run_job "$W/boxed/gtopk.sbatch"
status=$?
check "in a container (status $status)" grep -q '"completed":true' "$W/boxed/gtopk/run.jsonl"
check "with the GPU, the runs and the data inside" grep -q -e "^exec --nv --bind $W/boxed,$W/data $PWD/image.sif sparsetrain " "$FAKE_STATE/apptainer"

# -- submitting and collecting ---------------------------------------------------------------------------------------------
rm -f "$FAKE_STATE"/*
check "submit.sh" sh "$W/srun/submit.sh"
cat > "$W/wanted" << 'QUEUE'
100 dense.sbatch
101 gtopk.sbatch
102 collect.sbatch afterany:100:101
QUEUE
check "all at once, then the collecting job" cmp -s "$W/wanted" "$FAKE_STATE/queue"
rm -f "$FAKE_STATE"/*
generate --model resnet20 --algos "dense gtopk" --nodes 1 --ranks-per-node 2 --out "$W/serial" --serial
check "submit.sh of --serial" sh "$W/serial/submit.sh"
cat > "$W/wanted" << 'QUEUE'
100 dense.sbatch
101 gtopk.sbatch afterany:100
102 collect.sbatch afterany:101
QUEUE
check "one after the other" cmp -s "$W/wanted" "$FAKE_STATE/queue"
mkdir "$W/none"
for tool in dirname sh; do ln -s "$(command -v $tool)" "$W/none/$tool"; done
PATH=$W/none sh "$W/srun/submit.sh" > "$W/out" 2> "$W/err"
status=$?
check "without sbatch: one line, status 2" sh -c "[ $status -eq 2 ] && [ \$(wc -l < '$W/err') -eq 1 ] && grep -q 'no sbatch here' '$W/err'"
run_job "$W/srun/collect.sbatch"
check "the table has the finished run and its rate" grep -q '^| gtopk | complete | 2 on 1 | 48 | accuracy [0-9.]*% | [0-9.]* | [0-9.]* | [0-9.]* |$' "$W/srun/table.md"
check "and says which has not begun" grep -q "srun/dense: no step yet" "$W/err"
if command -v gnuplot > /dev/null 2>&1; then
    check "with plots" [ -s "$W/srun/plots/loss.png" ]
else
    skip "with plots" "gnuplot is not installed"
fi

# -- mistakes -----------------------------------------------------------------------------------------------------------------
# refuses TEXT OPTION...: one line with the text, status 2
refuses() {
    r_text=$1
    shift
    generate "$@"
    r_status=$?
    why="status $r_status: $(cat "$W/err")"
    [ $r_status -eq 2 ] && [ "$(wc -l < "$W/err")" -eq 1 ] && grep -qF -e "$r_text" "$W/err"
}
sized="--nodes 2 --ranks-per-node 2 --out $W/new"
# shellcheck disable=SC2086
{
    check "no model" refuses '--model is needed' --algos dense $sized
    check "no algorithms" refuses '--algos is needed' --model vgg16 $sized
    check "a model that is not" refuses '--model has no "vgg17"; there are: resnet20' --model vgg17 --algos dense $sized
    check "an algorithm that is not" refuses '--algos has no "oktop"; there are: dense' --model vgg16 --algos "dense oktop" $sized
    check "one twice" refuses 'dense twice' --model vgg16 --algos "dense dense" $sized
    check "no nodes" refuses '--nodes wants a whole number' --model vgg16 --algos dense --ranks-per-node 2
    check "nodes that are none" refuses '--nodes wants a whole number above 0, not "two"' --model vgg16 --algos dense --nodes two --ranks-per-node 2
    check "a launcher that is not" refuses 'srun or mpirun' --model vgg16 --algos dense $sized --launcher mpiexec
    check "an unknown option" refuses 'unknown option --mode' --mode vgg16 --algos dense $sized
    check "an option without its value" refuses '--time needs a value' --model vgg16 --algos dense $sized --time
    check "a word that is no option" refuses 'unknown word "vgg16"' vgg16
    check "what the jobs set themselves" refuses '--out is set by the jobs' --model vgg16 --algos dense $sized -- --out here
    check "a partition with a blank" refuses 'cannot stand in a job' --model vgg16 --algos dense $sized --partition 'a b'
    check "a place where nothing can be made" refuses 'cannot make' --model vgg16 --algos dense --nodes 1 --ranks-per-node 1 --out /proc/nowhere
}
check "nothing was written" [ ! -e "$W/new" ]
finish
