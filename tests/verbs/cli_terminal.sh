#!/bin/sh
# cli_terminal.sh: what a user sees of a run: a bar as wide as the terminal, also behind mpirun and after the window has
# changed; what is left to do, without the evaluation before the first step; what takes long, in lines too.
# shellcheck disable=SC2086 # lists of arguments
# long: most of a minute and more
. tests/lib/tap.sh
small="--data synthetic:96x24 --batch 8 --lr 0.01"
export SPARSETRAIN_PATIENCE=1000000 # nothing takes long, unless a test says so
unset COLUMNS
esc=$(printf '\033')

# drawn FILE: what the bar drew, a line each
drawn() { tr '\r' '\n' < "$1" | sed -n "s/^$esc\\[K\\(.*left.*\\)/\\1/p"; }
widest() { drawn "$1" | awk '{ if (length($0) > w) w = length($0) } END { print w + 0 }'; }
# narrow FILE COLUMNS: the bar was drawn, a column stayed free
narrow() {
    why="$(drawn "$1" | wc -l) lines, the widest of $(widest "$1") columns: $(drawn "$1" | tail -n 1)"
    [ "$(widest "$1")" -gt 10 ] && [ "$(widest "$1")" -lt "$2" ]
}

# -- the width ---------------------------------------------------------------------------------------------------------
# on_terminal COLUMNS COMMAND: in a pseudo-terminal; what it shows is $W/shown, at once (-f)
on_terminal() {
    timeout -k 10 300 script -qefc "stty cols $1; $2" "$W/shown" > /dev/null 2>&1 < /dev/null
}
run="$PROGRAM $small --steps 30 --eval-every never"
if command -v script > /dev/null 2>&1; then
    for columns in 20 40 80 120; do
        on_terminal $columns "$run"
        check "a terminal of $columns columns" narrow "$W/shown" $columns
    done
    check "120 columns: bar, steps, loss, rate, epoch" grep -qE '\[[#.]{24}\] .*left  step .*  loss .*  accuracy .* images/s  epoch ' "$W/shown"
    on_terminal 80 "$run"
    check "80 columns: bar, steps, loss, accuracy" grep -qE '\[[#.]{8,}\] .*left  step .*  loss .*  accuracy ' "$W/shown"
    on_terminal 60 "$MPIRUN -np 2 $run"
    check "behind mpirun" narrow "$W/shown" 60
    on_terminal 60 "$MPIRUN -np 2 $run > $W/out"
    check "behind mpirun into a file: no bar" sh -c "grep -q 'images a second' '$W/out' && ! grep -q '$esc' '$W/out'"
    # It goes on for ever; what is drawn after the window has changed goes by the new width.
    rm -f "$W/shown"
    on_terminal 100 "tty > $W/tty; echo \$\$ > $W/pid; exec $PROGRAM $small --steps 1000000 --eval-every never" &
    job=$!
    # until COMMAND...: it succeeds
    until_true() { for _ in $(seq 600); do "$@" && return; sleep 0.1; done; }
    over() { [ -f "$W/shown" ] && [ "$(wc -c < "$W/shown")" -gt "$1" ]; }
    until_true over 1000
    check "before the window changes" narrow "$W/shown" 100
    stty -F "$(cat "$W/tty")" cols 50
    before=$(wc -c < "$W/shown")
    until_true over $((before + 800))
    kill -TERM "$(cat "$W/pid")"
    wait $job
    tail -c +$((before + 300)) "$W/shown" > "$W/after"
    check "after it" narrow "$W/after" 50
else
    for name in "a terminal of 20, 40, 80, 120 columns" "behind mpirun" "after the window has changed"; do skip "$name" "script is not installed"; done
fi
COLUMNS=50 start 1 $small --steps 30 --eval-every never --progress bar
check "no terminal: COLUMNS" narrow "$W/out" 50
start 1 $small --steps 30 --eval-every never --progress bar
check "else 80" narrow "$W/out" 80

# -- what is left ------------------------------------------------------------------------------------------------------
# Eight steps between two evaluations that take longer than all of them: once a step is known, what is left is not more
# than the rest of them and the second evaluation; a bar that counts from the beginning says seven times the first.
start 1 --data synthetic:64x2400 --batch 8 --steps 8 --eval-every 0 --checkpoint-every 100 --progress bar --out "$W/left"
steps_of() { sed -n 's/^{"type":"step".*"seconds":\([^,]*\),.*/\1/p' "$W/left/run.jsonl"; }
no_more() {
    shown=$(drawn "$W/out" | grep 'step 1/8' | head -n 1 | sed 's/.* \([0-9]*\):\([0-9]*\) left.*/\1 \2/')
    rest=$(steps_of | head -n 1)
    evaluation=$(sed -n 's/^{"type":"eval","step":0,.*"seconds":\([^}]*\)}/\1/p' "$W/left/run.jsonl")
    why="left: $shown, a step of $rest, an evaluation of $evaluation"
    awk -v shown="$shown" -v rest="$rest" -v evaluation="$evaluation" 'BEGIN { split(shown, t, " "); d = 60 * t[1] + t[2] - (7 * rest + evaluation); exit !(shown != "" && d < 1.5 && d > -1.5) }'
}
check "the first evaluation is not in the estimate, the second is" no_more
SPARSETRAIN_PATIENCE=0 start 2 $small --steps 30 --eval-every never
check "how long it will take, once, in lines too" [ "$(grep -c '^about [0-9][0-9a-z ]* to go; Ctrl-C ends the run (without --out nothing of it is kept)$' "$W/out")" -eq 1 ]
SPARSETRAIN_PATIENCE=0 start 2 $small --steps 30 --eval-every never --out "$W/kept"
check "with --out it can be resumed" [ "$(grep -c '^about .* to go; Ctrl-C stops the run with a checkpoint' "$W/out")" -eq 1 ]
# Open MPI's mpirun kills a second after Ctrl-C; MPICH's waits
slow='--model vgg16 --data synthetic:256x10 --batch 128 --steps 3 --eval-every never'
SPARSETRAIN_PATIENCE=0 start 1 $slow --out "$W/slow"
if "$MPIRUN" --version 2>&1 | grep -q 'Open MPI'; then by='kill -USR1 to mpirun'; else by=Ctrl-C; fi
check "with steps too long for Ctrl-C: by what else" [ "$(grep -c "^about .* to go; $by stops the run with a checkpoint" "$W/out")" -eq 1 ]
SPARSETRAIN_PATIENCE=0 start 2 $small --steps 30 --progress none
check "not with --progress none" [ "$(grep -c '^about\|^evaluating' "$W/out")" -eq 0 ]
start 2 $small --steps 30
check "nor of a short run" [ "$(grep -c '^about\|^evaluating' "$W/out")" -eq 0 ]
check "one rank says that others are missing" sh -c "! grep -q '^  ranks' '$W/out' && '$PROGRAM' $small --steps 1 --eval-every never | grep -q '^  ranks     one, which exchanges nothing; mpirun -np P '"
check "no --out: nothing is kept" grep -q '^  output    none; --out DIR keeps' "$W/out"

# -- schedules that the run does not come to the end of ----------------------------------------------------------------
gtopk="$small --algo gtopk --density 0.01 --density-warmup 0.4,0.2 --eval-every never"
start 2 $gtopk --lr-warmup 3 --epochs 1 --out "$W/short"
check "a run in its first epoch: the density now, and the one that it does not reach" grep -qx '  density   0.4 (k = 107888) now, 0.01 (k = 2697) from epoch 2, which this run does not reach' "$W/out"
check "the same of the learning rate" grep -qx '  rate      0.005 now, rising to 0.01 until epoch 3, which this run does not reach; times 0.1 at epochs 0.5 and 0.75' "$W/out"
start 2 $gtopk --lr-warmup 3 --epochs 8 --stop-at 2.5 --out "$W/first"
check "a run that leaves the warm-up" grep -qx '  density   0.4 (k = 107888) now, 0.01 (k = 2697) from epoch 2' "$W/out"
check "and is the beginning of one" grep -q '^  rate .*; times 0.1 at epochs 4 and 6, which this run does not reach$' "$W/out"
check "the log has where they come to" grep -q '"run_epochs":8,"density_from":2,"lr_from":3,"lr_changes":\[4,6\],' "$W/first/run.jsonl"
start 2 --resume "$W/first" --stop-at 3
check "resumed behind the warm-up" grep -qx '  density   0.01 (k = 2697)' "$W/out"
start 2 $gtopk --epochs 2 --dense-steps 3
check "dense steps before it" grep -qx '  density   1 in the first 3 steps, then 0.4 (k = 107888), 0.2 in its last epoch, 0.01 (k = 2697) from epoch 2, which this run does not reach' "$W/out"
start 3 $small --algo dense --epochs 1 --lr-warmup 0
check "a dense run has no density" sh -c "! grep -q '^  density' '$W/out' && grep -qx '  rate      0.01; times 0.1 at epochs 0.5 and 0.75' '$W/out'"

# -- long evaluations --------------------------------------------------------------------------------------------------
SPARSETRAIN_PATIENCE=0 start 2 $small --steps 2
check "what is evaluated, and how long it takes: a line each" [ "$(grep -c '^evaluating 24 test images: about [0-9]* s to go$' "$W/out")" -eq 2 ]
SPARSETRAIN_PATIENCE=0 start 3 --model lstm --hidden 8 --bptt 4 --batch 2 --data synthetic-text:200x50x60 --steps 2
check "of a text" [ "$(grep -c '^evaluating 50 validation and 60 test words: about' "$W/out")" -eq 2 ]
SPARSETRAIN_PATIENCE=0 start 1 $small --steps 2 --progress bar
check "the bar" sh -c "tr '\\r' '\\n' < '$W/out' | grep -q '%  0:[0-9]* left  evaluating  24 test images'"
finish
