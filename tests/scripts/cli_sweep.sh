#!/bin/sh
# cli_sweep.sh: scripts/sweep.sh: which runs it plans and how they are called, that they run, go on and are left alone when done, what
# becomes of those that fail, the tables, Slurm jobs, mistakes; and `sparsetrain config`, by which it knows what runs would be.
. tests/lib/tap.sh
. scripts/mpi-env.sh
real=$MPIRUN
small="--data synthetic:64x16 --batch 4 --steps 6 --eval-every 0"

# sweep ARGS...: stdout to $W/out, stderr to $W/err; its status
sweep() { timeout -k 10 300 sh scripts/sweep.sh "$@" > "$W/out" 2> "$W/err" < /dev/null; }
# same WHAT IS: equal texts
same() {
    why="$1 instead of $2"
    [ "$1" = "$2" ]
}

# -- config ----------------------------------------------------------------------------------------------------------------
start 1 config --model lstm --algo oktopk --lr 0.5
check "config: what was given, and what that brings" sh -c "for l in model=lstm algo=oktopk lr=0.5 select=reuse hidden=1500 density=0.005 data=ptb epochs=40; do grep -qx \$l '$W/out' || exit 1; done"
check "what only watches comes behind an empty line" sh -c "sed '1,/^\$/d' '$W/out' | grep -qx quiet=no && ! sed '/^\$/,\$d' '$W/out' | grep -q '^quiet'"
check "nothing behind the last line" [ -z "$(tail -n 1 "$W/out")" ]
check "no value, no line" sh -c "! grep -q -e '^steps=' -e '=\$' '$W/out'"
check "config: a mistake is told as train tells it" mistaken_alone '--steps and --epochs both set the length of the run' config --steps 3 --epochs 1
check "config: an option that is not" mistaken_alone 'did you mean --density?' config --densty 0.1
check "config: nothing under mpirun is said twice" sh -c "timeout 60 '$MPIRUN' -np 2 '$PROGRAM' config > '$W/out' 2>&1; [ \$(grep -c '^algo=dense\$' '$W/out') -eq 1 ]"
start 1 config --help
check "config --help" grep -q '^usage: sparsetrain config' "$W/out"

# -- what is planned -------------------------------------------------------------------------------------------------------
# planned RUN... from ARGS...: a dry run would start these, in this order
planned() {
    : > "$W/wanted"
    while [ "$1" != from ]; do
        echo "$1" >> "$W/wanted"
        shift
    done
    shift
    sweep --out "$W/plan" --dry-run "$@"
    planned_status=$?
    sed "s|.*--out $W/plan/||" "$W/out" > "$W/planned"
    why="status $planned_status: $(tr '\n' ' ' < "$W/planned") $(cat "$W/err")"
    [ $planned_status -eq 0 ] && cmp -s "$W/wanted" "$W/planned" && [ ! -e "$W/plan" ]
}
check "every combination, in the order of the options" planned gtopk-density0.01-seed1 gtopk-density0.01-seed2 gtopk-density0.1-seed1 gtopk-density0.1-seed2 \
    topka-density0.01-seed1 topka-density0.01-seed2 topka-density0.1-seed1 topka-density0.1-seed2 from --np 2 --algo gtopk,topka --density 0.01,0.1 --seed=1,2
check "what has no effect is left out, what is then the same is run once" planned dense-seed1 gtopk-density0.01-seed1 gtopk-density0.1-seed1 \
    from --np 2 --algo dense,gtopk --density 0.01,0.1 --seed 1
check "also of what all runs have" planned dense gtopk from --np 2 --algo dense,gtopk -- --density-warmup none --density=0.3
check "and is in the others" sh -c "grep -q -- '--density-warmup none --density=0.3 --algo gtopk' '$W/out' && ! grep -- '--algo dense' '$W/out' | grep -q density"
check "ranks" planned p1-gtopk p2-gtopk from --np 1,2 --algo gtopk
check "each is started on as many" sh -c "grep -q ' -n 1 .*/p1-gtopk' '$W/out' && grep -q ' -n 2 .*/p2-gtopk' '$W/out'"
check "values with commas of their own" planned 'lr-schedulelinear' 'lr-schedulestep_50__75_' from --np 1 --lr-schedule 'linear;step:50%,75%'
check "one such value" planned 'density-warmup0.25_0.1' from --np 1 --density-warmup '0.25,0.1;' -- --algo gtopk
check "a flag" planned no-augment no-no-augment from --np 1 --no-augment on,off
check "is given or not" sh -c "[ \$(grep -c -- '--no-augment ' '$W/out') -eq 1 ]"
check "another launcher" sh -c "sh scripts/sweep.sh --np 3 --out '$W/plan' --seed 1 --mpirun 'srun --mpi=pmix' --dry-run | grep -q '^srun --mpi=pmix -n 3 /.*/sparsetrain --seed 1 --out '"
sweep --np 2 --out "$W/plan" --algo gtopk,hitopk --select-scope global,layer --dry-run
status=$?
check "a combination that cannot be is named and left out" sh -c "[ $status -eq 0 ] && [ \$(wc -l < '$W/out') -eq 3 ] && grep -q '^sweep.sh: left out: hitopk-select-scopelayer: --select-scope layer cannot be combined' '$W/err'"

# -- runs, tables ----------------------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
sweep --np 2 --out "$W/all" --algo dense,gtopk --seed 1,2,3 -- $small --density-warmup none
status=$?
check "six runs (status $status)" [ $status -eq 0 ]
check "each in its directory, to the end" sh -c "[ \$(grep -l '\"completed\":true' '$W'/all/*/run.jsonl | wc -l) -eq 6 ]"
check "with what the program said" grep -q '^sparsetrain: resnet20' "$W/all/gtopk-seed3/output.txt"
check "a line for each with its score" sh -c "grep -q '^\[6/6\] gtopk-seed3: test accuracy [0-9.]*%, [0-9.]* MB sent by a rank, [0-9.]* s\$' '$W/out'"
check "the table, also as a file" sh -c "grep -q '^np  algo   runs done  test accuracy' '$W/out' && grep -q '^2   gtopk  3 of 3     [0-9.]*% +- [0-9.]* ' '$W/all/summary.txt'"
check "a row for each run" sh -c "head -n 1 '$W/all/runs.csv' | grep -q '^run,state,np,algo,seed,test_accuracy,test_loss,bytes_sent_per_rank,images_per_second,step,epoch,seconds,commit\$' && [ \$(grep -c ',done,2,' '$W/all/runs.csv') -eq 6 ]"
# The numbers are those of the logs: mean, standard deviation, least and greatest over three seeds.
for seed in 1 2 3; do json "$W/all/gtopk-seed$seed/run.jsonl" summary test_loss; done | awk '
    { x[NR] = $1; s += $1; if (NR == 1 || $1 < a) a = $1; if ($1 > b) b = $1 }
    END { m = s / 3; for (i = 1; i <= 3; i++) q += (x[i] - m) ^ 2; printf "%.4f %.4f %.4f %.4f\n", m, sqrt(q / 2), a, b }' > "$W/wanted"
awk -F , 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $at["algo"] == "gtopk" { printf "%.4f %.4f %.4f %.4f\n", $at["test_loss_mean"], $at["test_loss_sd"], $at["test_loss_min"], $at["test_loss_max"] }' "$W/all/summary.csv" > "$W/got"
check "means and spreads are right" same "$(cat "$W/got")" "$(cat "$W/wanted")"
sent=$(sed -n 's/.*"type":"step".*"bytes_sent_mean":\([0-9.e+]*\).*/\1/p' "$W/all/gtopk-seed1/run.jsonl" | awk '{ s += $1 } END { printf "%.0f", s }')
check "bytes are those of all steps" same "$(awk -F , '/^gtopk-seed1,/ { print $8 }' "$W/all/runs.csv")" "$sent"
if command -v gnuplot > /dev/null 2>&1; then
    sed -n 's/^Curves: //p' "$W/out" > "$W/curves.sh"
    check "the command for curves draws two" sh -c "sh '$W/curves.sh' > '$W/drawn' && [ -s '$W/all/plots/loss-bytes.png' ] && sh '$W/curves.sh' > /dev/null"
else
    skip "the command for curves draws two" "gnuplot is not installed"
fi

# -- again, and more -------------------------------------------------------------------------------------------------------
note_launches
# shellcheck disable=SC2086
{
    sweep --np 2 --out "$W/all" --algo dense,gtopk --seed 1,2,3 -- $small --density-warmup none
    status=$?
    check "called again it starts nothing" sh -c "[ $status -eq 0 ] && [ $(calls) -eq 0 ] && grep -q '^\[1/6\] dense-seed1: is done' '$W/out'"
    sweep --np 2 --out "$W/all" --algo dense,gtopk,topka --seed 1,2 -- $small --density-warmup none --quiet
    status=$?
    check "a larger one starts what is new" sh -c "[ $status -eq 0 ] && [ $(calls) -eq 2 ] && grep -q '^2   topka  2 of 2' '$W/out' && grep -q '^2   dense  3 of 3' '$W/out'"
    check "other options in the same place are refused" sh -c "! sh scripts/sweep.sh --np 2 --out '$W/all' --algo dense --seed 1 -- $small --lr 0.01 2> '$W/err' && [ \$(wc -l < '$W/err') -eq 1 ] && grep -q 'all/dense-seed1 was made with other options (lr=0.1 lr=0.01); choose another --out' '$W/err'"
}
MPIRUN=$real

# -- failures --------------------------------------------------------------------------------------------------------------
# A launcher that stops a job in the middle, after a checkpoint; one that is killed; and then none any more.
cat > "$W/mpirun" << END
#!/bin/sh
case \$(cat "$W/how" 2> /dev/null) in
stop)
    "$real" "\$@" & job=\$!
    for _ in \$(seq 400); do
        if ls "\$(cat "$W/dir")"/checkpoint-* > /dev/null 2>&1; then break; fi
        sleep 0.05
    done
    kill -USR1 \$job
    wait \$job
    status=\$?
    while kill -0 \$job 2> /dev/null; do wait \$job; status=\$?; done
    exit \$status
    ;;
kill) exit 137 ;;
esac
exec "$real" "\$@"
END
chmod +x "$W/mpirun"
MPIRUN=$W/mpirun
export MPIRUN
long="--data synthetic:512x16 --batch 4 --steps 400 --eval-every 0 --checkpoint-every 5"
echo stop > "$W/how"
echo "$W/broken/gtopk" > "$W/dir"
# shellcheck disable=SC2086
sweep --np 2 --out "$W/broken" --algo gtopk -- $long --density-warmup none
status=$?
check "a run that was stopped is not done (status $status)" sh -c "[ $status -eq 1 ] && grep -q '^\[1/1\] gtopk: stopped with status 4' '$W/out' && grep -q '^2   gtopk  0 of 1' '$W/out'"
echo kill > "$W/how"
# shellcheck disable=SC2086
sweep --np 2 --out "$W/broken" --algo gtopk -- $long --density-warmup none
status=$?
check "nor one that was killed" sh -c "[ $status -eq 1 ] && grep -q 'failed with status 137' '$W/out'"
rm "$W/how"
# shellcheck disable=SC2086
sweep --np 2 --out "$W/broken" --algo gtopk -- $long --density-warmup none
status=$?
check "then it goes on to its end (status $status)" sh -c "[ $status -eq 0 ] && grep -q '\"resumed_at\"' '$W/broken/gtopk/run.jsonl' && grep -q '^2   gtopk  1 of 1' '$W/out'"
# shellcheck disable=SC2086
start 2 --algo gtopk $long --density-warmup none --out "$W/alone"
check "to the same bits" same "$(hash_of "$W/broken/gtopk")" "$(hash_of "$W/alone")"
MPIRUN=$real
# shellcheck disable=SC2086
sweep --np 2 --out "$W/nan" --lr 1e6,0.1 --seed 1 -- $small --lr-warmup 0
status=$?
check "one that diverges does not end the others (status $status)" sh -c "[ $status -eq 1 ] && grep -q '^\[1/2\] lr1e6-seed1: diverged with status 3: .*NaN' '$W/out' && grep -q '^\[2/2\] lr0.1-seed1: test accuracy' '$W/out'"
check "the table says so" sh -c "grep -q '^2   1e6  0 of 1     -' '$W/nan/summary.txt' && grep -q '^lr1e6-seed1,diverged,2,1e6,1,' '$W/nan/runs.csv'"
mpirun_here=$MPIRUN
note_launches
# shellcheck disable=SC2086
sweep --np 2 --out "$W/nan" --accept-diverged --lr 1e6,0.1 --seed 1 -- $small --lr-warmup 0
status=$?
check "one that diverged may be a result (status $status)" sh -c "[ $status -eq 0 ] && [ $(calls) -eq 0 ] && grep -q '^\[1/2\] lr1e6-seed1: is diverged' '$W/out'"
MPIRUN=$mpirun_here
sweep --out "$W/nan" --table
status=$?
check "the tables alone" sh -c "[ $status -eq 0 ] && cmp -s '$W/out' '$W/nan/summary.txt'"
sed -i 's/"type":"summary"/"type":"other"/' "$W/nan/lr0.1-seed1/run.jsonl"
echo 0 > "$W/nan/.sweep/lr0.1-seed1.status"
sweep --out "$W/nan" --table
check "a run that ended with 0 is done, whatever its log says" grep -q '^lr0.1-seed1,done,' "$W/nan/runs.csv"
# shellcheck disable=SC2086
sweep --np 2 --out "$W/nan" --lr 0.1 --seed 1 -- $small --lr-warmup 0
check "when it is called in the same way" grep -q '^\[1/1\] lr0.1-seed1: is done' "$W/out"
# shellcheck disable=SC2086
sweep --np 2 --out "$W/nan" --lr 0.1 --seed 1 -- $small --lr-warmup 0 --progress lines
check "but goes on where it may have been asked for more" grep -q '^\[1/1\] lr0.1-seed1: test accuracy' "$W/out"

# A run that somebody else has under way in its place, without a checkpoint yet, is not removed.
sweep --np 1 --out "$W/shared" --mpirun false --algo dense -- --data synthetic:512x16 --batch 4 --steps 6 --eval-every 0
rm -rf "$W/shared/dense"
live_begin "$W/shared/dense"
sweep --np 1 --out "$W/shared" --algo dense -- --data synthetic:512x16 --batch 4 --steps 6 --eval-every 0
status=$?
check "a run that is under way there is refused (status $status)" sh -c "[ $status -eq 1 ] && grep -q '^\[1/1\] dense: failed with status 2: .*dense is in use: process $live on host' '$W/out'"
check "and not harmed" live_end "$W/shared/dense"
# One that ended without a checkpoint begins anew, and what else lies there stays.
rm -rf "$W/shared/dense"
"$PROGRAM" --data synthetic:512x16 --batch 4 --steps 6 --eval-every never --stop-at 0.01 --out "$W/shared/dense" > "$W/out" 2>&1
rm -rf "$W/shared/dense"/checkpoint-*
echo mine > "$W/shared/dense/notes"
sweep --np 1 --out "$W/shared" --algo dense -- --data synthetic:512x16 --batch 4 --steps 6 --eval-every 0
check "a run without a checkpoint begins anew" grep -q '^\[1/1\] dense: test accuracy' "$W/out"
check "and takes nothing of others with it" [ "$(cat "$W/shared/dense/notes")" = mine ]

# -- a text ----------------------------------------------------------------------------------------------------------------
sweep --np 1 --out "$W/text" --hidden 8,4 -- --model lstm --data synthetic-text:400x100x100 --bptt 5 --batch 2 --steps 4 --eval-every 0
check "and the loss behind them" sh -c "[ \"\$(head -n 1 '$W/text/runs.csv' | grep -c ',valid_loss,bytes_sent_per_rank,')\" -eq 1 ]"
check "a text has perplexities" sh -c "head -n 1 '$W/text/summary.txt' | grep -q 'test perplexity  valid perplexity' && grep -q '^hidden8: \|hidden8: test perplexity' '$W/out' && head -n 1 '$W/text/runs.csv' | grep -q 'words_per_second'"

# -- Slurm -----------------------------------------------------------------------------------------------------------------
mkdir "$W/slurm"
cat > "$W/slurm/sbatch" << FAKE
#!/bin/sh
echo "\$*" >> "$W/queue"
echo "\$((100 + \$(wc -l < "$W/queue")));cluster"
FAKE
cat > "$W/slurm/srun" << FAKE
#!/bin/sh
for word in "\$@"; do
    case \$word in --ntasks=*) ranks=\${word#--ntasks=} ;; --*) ;; *) break ;; esac
    shift
done
exec "$real" -np "\$ranks" "\$@"
FAKE
chmod +x "$W/slurm/sbatch" "$W/slurm/srun"
# shellcheck disable=SC2086
sweep --slurm '--nodes 1 --ranks-per-node 2 --time 10' --out "$W/jobs" --algo dense,gtopk --seed 1,2 -- $small --density-warmup none
status=$?
check "jobs are written (status $status)" sh -c "[ $status -eq 0 ] && for run in dense-seed1 dense-seed2 gtopk-seed1 gtopk-seed2; do grep -q \"^#SBATCH --job-name=\$run\\\$\" '$W/jobs/'\$run.sbatch || exit 1; done"
check "nothing is started, and one of all was not made" sh -c "[ ! -e '$W/jobs/gtopk-seed1' ] && [ ! -e '$W/jobs/collect.sbatch' ]"
PATH=$W/slurm:$PATH sh "$W/jobs/gtopk-seed2.sbatch" > "$W/out" 2> "$W/err" < /dev/null
status=$?
check "a job runs its run (status $status: $(head -c 200 "$W/err"))" grep -q '"completed":true' "$W/jobs/gtopk-seed2/run.jsonl"
check "to the bits of the run without Slurm" same "$(hash_of "$W/jobs/gtopk-seed2")" "$(hash_of "$W/all/gtopk-seed2")"
# shellcheck disable=SC2086
sweep --slurm '--nodes 1 --ranks-per-node 2 --time 10' --out "$W/jobs" --algo dense,gtopk --seed 1,2 -- $small --density-warmup none
PATH=$W/slurm:$PATH sh "$W/jobs/submit.sh" > "$W/out" 2> "$W/err"
check "what is not done is submitted, then the table" sh -c "[ \$(wc -l < '$W/queue') -eq 4 ] && ! grep -q gtopk-seed2 '$W/queue' && sed -n 4p '$W/queue' | grep -q -- '--dependency=afterany:101:102:103 .*sweep.sh --out $W/jobs --table\$'"
if command -v shellcheck > /dev/null 2>&1; then
    check "submit.sh is clean" shellcheck -s sh "$W/jobs/submit.sh"
else
    skip "submit.sh is clean" "shellcheck is not installed"
fi
sweep --out "$W/jobs" --table
check "the table of what there is" grep -q '^slurm  gtopk  1 of 2' "$W/out"

# -- mistakes --------------------------------------------------------------------------------------------------------------
# refused TEXT ARGS...: one line with the text, status 2, nothing made
refused() {
    refused_text=$1
    shift
    sweep "$@"
    refused_status=$?
    why="status $refused_status: $(cat "$W/err")"
    [ $refused_status -eq 2 ] && [ "$(wc -l < "$W/err")" -eq 1 ] && grep -qF -e "$refused_text" "$W/err" && [ ! -e "$W/new" ]
}
new="--np 2 --out $W/new"
# shellcheck disable=SC2086
{
    check "no directory" refused '--out is needed' --np 2 --seed 1
    check "no ranks" refused '--np is needed' --out "$W/new" --seed 1
    check "ranks that are none" refused '--np takes whole numbers above 0, not "two"' --np two --out "$W/new" --seed 1
    check "an option that is not" refused 'there is no option --sed; did you mean --seed?' $new --sed 1,2
    check "a value that is not" refused '--algo has no "gtop"' $new --algo gtop
    check "an option without values" refused '--seed needs a value' $new --seed
    check "another option for a value" refused '--seed needs values' $new --seed --algo
    check "an empty list" refused '--seed has no value' $new --seed ,
    check "a flag with a value" refused '--local-update is a flag: its values are on and off, not "yes"' $new --local-update yes --algo gtopk
    check "twice" refused '--seed is given twice' $new --seed 1 --seed 2
    check "before and behind" refused '--seed stands before -- and behind it' $new --seed 1,2 -- --seed 3
    check "what the sweep sets" refused '--out is set by the sweep itself' $new --seed 1 -- --out here
    check "resuming by hand" refused 'leave --resume out' $new --resume x
    check "a word" refused 'unknown word "gtopk"; what all runs have stands behind --' $new gtopk
    check "what has no effect anywhere" refused '--tau has no effect in any of these runs' $new --algo gtopk,dense -- --tau 3
    check "names that became alike" refused 'two runs would be called' $new --trace 'a/b,a:b' -- --seed 1
    check "Slurm with ranks" refused 'leave --np out' --slurm '--nodes 1' $new --seed 1
    check "no sweep to make a table of" refused 'holds no sweep' --out "$W/new" --table
    check "a place where nothing can be made" refused 'cannot make' --np 1 --out /proc/nowhere --seed 1
    mkdir -p "$W/there/seed1"
    check "a directory of somebody else's" refused 'is there already, and of no sweep' --np 1 --out "$W/there" --seed 1
}
finish
