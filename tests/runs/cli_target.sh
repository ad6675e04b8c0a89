#!/bin/sh
# cli_target.sh: --target: a run stops at the first evaluation that reaches it and says what that took, through kills and
# resumes; what it computes is that of a run without a target. At P = 1, 2, 3.
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
unseen="--data synthetic:96x24 --batch 8 --lr 0.01 --epochs 4 --lr-warmup 0"
images="$unseen --eval-every 0.5"
sparse="--algo gtopk --density 0.05 --density-warmup none"
words="--model lstm --hidden 8 --bptt 4 --batch 2 --data synthetic-text:400x60x60 --epochs 2 --eval-every 0.25"

# of RUN TYPE KEYS [OPTION...]
of() {
    of_run=$1 of_type=$2 of_keys=$3
    shift 3
    "$PROGRAM" rows "$W/$of_run" --type "$of_type" --keys "$of_keys" "$@" 2> /dev/null
}
same() {
    why="\"$1\" and \"$2\" differ, or are nothing"
    [ -n "$1" ] && [ "$1" = "$2" ]
}
# near A B: two numbers, but for roundings
near() {
    why="\"$1\" and \"$2\" differ"
    awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && d <= 1e-9 * a) }'
}
# middle KEY: what the lowest evaluation so far gives at the first one from the 4th on that is lower than all before: a target
# for which no earlier one will do; and its step
middle() {
    of whole eval "step,$1" | awk 'NR == 1 || $2 < low { low = $2; if (NR >= 4) { print; exit } }'
}
# sums RUN STEP: bytes that a rank sent, and seconds, by this step, by the rows
sums() { of "$1" step step,bytes_sent_mean,seconds | awk -v last="$2" '$1 <= last { b += $2; s += $3 } END { printf "%.17g %.17g", b, s }'; }
# sums_up RUN: does each evaluation say the bytes that the steps up to there sent?
sums_up() {
    of "$1" step,eval type,step,bytes_sent_mean,bytes_sent --missing 0 | awk -v run="$1" '
        $1 == "step" { sum += $3 }
        $1 == "eval" { d = $4 - sum; if (d < 0) d = -d; if (d > 1e-9 * sum) { print run ", step " $2 ": " $4 " for " sum; bad = 1 }; evals++ }
        END { exit bad || evals < 3 || !sum }' > "$W/sums" || { why=$(tail -n 1 "$W/sums") && false; }
}

# reaches NAME P METRIC KEY OPTION...: of a run of these options, METRIC with the score that KEY has in its middle is reached there
reaches() {
    name="$1, P = $2" p=$2 metric=$3 key=$4
    shift 4
    rm -rf "$W"/[a-z]*/
    start $p "$@" --out "$W/whole"
    read -r step score << END
$(middle "$key")
END
    check "$name: there is a score to aim at" [ -n "$score" ]
    start $p "$@" --out "$W/run" --target "$metric:$score"
    check "$name: status 0" [ $? -eq 0 ]
    check "$name: reached at the first evaluation that has it" same "$(of run summary step,completed,prefix,target.reached,target.steps --missing -)" "$(printf '%s\tfalse\tfalse\ttrue\t%s' "$step" "$step")"
    check "$name: the score is the evaluation's" same "$(of run summary target.score)" "$score"
    check "$name: a checkpoint there" [ -d "$W/run/checkpoint-$(printf %08d "$step")" ]
    check "$name: the losses are those of a run without a target" same "$(of run step step,loss,global_nnz)" "$(of whole step step,loss,global_nnz | head -n "$step")"
    read -r bytes seconds << END
$(sums run "$step")
END
    [ $p -eq 1 ] || check "$name: bytes are the steps' sum" near "$(of run summary target.bytes_sent)" "$bytes"
    check "$name: so are seconds" near "$(of run summary target.seconds)" "$seconds"
    check "$name: there were more in all" awk -v all="$(of run summary target.elapsed_seconds)" -v s="$seconds" 'BEGIN { exit !(all > s) }'
    check "$name: epochs" same "$(of run summary target.epochs)" "$(of run eval epoch --last)"
    cp "$W/run/run.jsonl" "$W/before"
    start $p --resume "$W/run"
    check "$name: resumed: status 0" [ $? -eq 0 ]
    check "$name: it is complete" grep -q "run is complete: it reached its target, .* after $step of" "$W/out"
    check "$name: and stays as it is" cmp -s "$W/before" "$W/run/run.jsonl"
    start $p --resume "$W/run" --target none
    check "$name: without a target it goes on to the whole run's bits" same "$(hash_of "$W/run")" "$(hash_of "$W/whole")"
}
for p in 1 2 3; do reaches "dense" $p loss test_loss $images --algo dense; done
reaches "gtopk" 2 test:loss test_loss $images $sparse
reaches "a text" 2 valid:perplexity valid_perplexity $words
reaches "a text, of its own accord the validation" 3 perplexity valid_perplexity $words
reaches "its test" 1 test:perplexity test_perplexity $words
reaches "replicas that drift" 2 loss test_loss $images --algo fedavg --average-every 5

# -- in parts: stopped and resumed on its way, in the same directory and in another ------------------------------------------
rm -rf "$W"/[a-z]*/
start 2 $images $sparse --out "$W/whole"
read -r step score << END
$(middle test_loss)
END
start 2 $images $sparse --stop-at 0.8 --out "$W/run" --target "loss:$score"
check "stopped before: not reached, and status 0" same "$(of run summary prefix,target.reached,target.steps --missing -)" "$(printf 'true\tfalse\t-')"
check "the end says so" grep -q "target  *test loss .*: not reached" "$W/out"
start 2 --resume "$W/run" --stop-at 1.1
cp -r "$W/run" "$W/parts"
start 2 --resume "$W/run"
check "resumed twice, the target taken over: the same step" same "$(of run summary target.steps)" "$step"
read -r bytes seconds << END
$(sums run "$step")
END
check "bytes of all parts" near "$(of run summary target.bytes_sent)" "$bytes"
check "seconds of all parts" near "$(of run summary target.seconds)" "$seconds"
check "at every evaluation, too" sums_up run
check "and at the end" same "$(of run summary bytes_sent)" "$(of run summary target.bytes_sent)"
check "by this process alone they were fewer" awk -v all="$(of run summary target.seconds)" -v own="$(of run summary train_seconds)" 'BEGIN { exit !(own < all) }'
start 2 --resume "$W/parts" --out "$W/other"
check "in another directory: the same" same "$(of other summary target.steps,target.bytes_sent)" "$(of run summary target.steps,target.bytes_sent)"
start 2 --resume "$W/parts" --out "$W/third" --target accuracy:1
check "another target" same "$(of third summary target.metric,target.value)" "$(printf 'accuracy\t1')"

# A process that ended between its last checkpoint and its summary.
sed -i '/^{"type":"summary"/d' "$W/run/run.jsonl"
start 2 --resume "$W/run"
check "without its summary: status 0" [ $? -eq 0 ]
check "it gets the same again" same "$(of run summary step,target.reached,target.steps,target.seconds,target.bytes_sent)" "$(printf '%s\ttrue\t%s\t' "$step" "$step")$(of run summary target.seconds,target.bytes_sent)"
check "seconds are not counted twice" near "$(of run summary target.seconds)" "$seconds"
check "and no step was taken" same "$(of run step step | tail -n 1)" "$step"
check "means over the steps are there, too" [ "$(of run summary step_seconds)" != 0 ]

# -- never, at once, at the end ----------------------------------------------------------------------------------------------
start 2 $images --algo dense --out "$W/never" --target loss:0.001
check "never reached: status 0" [ $? -eq 0 ]
check "what it sent is said all the same" sums_up never
check "and said: all steps are done" same "$(of never summary completed,target.reached,target.steps,target.bytes_sent --missing -)" "$(printf 'true\tfalse\t-\t-')"
start 2 $images --algo dense --out "$W/once" --target loss:1000
check "by the model as it begins: no step" same "$(of once summary step,target.steps,target.bytes_sent)" "$(printf '0\t0\t0')"
start 2 --resume "$W/once"
check "it is complete then" grep -q "after 0 of 24 steps" "$W/out"
start 2 --resume "$W/once" --target none
start 2 $images --algo dense --out "$W/plain"
check "and can go on" same "$(hash_of "$W/once")" "$(hash_of "$W/plain")"
start 2 $unseen --algo dense --eval-every 0 --out "$W/last"
end=$(of last summary test_loss)
start 2 $unseen --algo dense --eval-every 0 --out "$W/end" --target "loss:$end"
check "at the end" same "$(of end summary completed,target.reached,target.steps)" "$(printf 'true\ttrue\t24')"

# -- mistakes ----------------------------------------------------------------------------------------------------------------
for p in 1 3; do
    check "no such metric, P = $p" unmade "$W/new" mistaken '--target has no metric "f1"; there are: accuracy, loss, perplexity, bpc' $p $images --target f1:0.5 --out "$W/new"
    check "one that the model has not, P = $p" unmade "$W/new" mistaken "give no perplexity; they give test:accuracy, test:loss" $p $images --target perplexity:7 --out "$W/new"
done
check "a set that it has not" mistaken "give no valid:loss; they give test:accuracy" 1 $images --target valid:loss:7
check "of a text of words no bits per character" mistaken "give no bpc; they give valid:loss, valid:perplexity, test:accuracy, test:loss, test:perplexity" 2 $words --target bpc:2
check "out of range" mistaken "--target accuracy:90 is out of range: it must be a part of 1" 2 $images --target accuracy:90
check "a perplexity below any" mistaken "--target perplexity:1 is out of range: it must be above 1" 1 $words --target perplexity:1
check "no number" mistaken '--target wants a number behind loss:, not "low"' 1 $images --target loss:low
check "nor nan" mistaken '--target wants a number behind loss:, not "nan"' 1 $images --target loss:nan
check "no value" mistaken "--target accuracy is none: METRIC:VALUE" 1 $images --target accuracy
check "nothing is evaluated" mistaken "--eval-every never has none; give one of them" 2 $unseen --eval-every never --target loss:1

# A text that is read by characters.
printf 'the quick brown fox jumps over the lazy dog and the slow red hen sits under the old tree while rain falls\n%.0s' 1 2 3 4 5 6 7 8 > "$W/text"
start 1 --model gpt --data "text-char:$W/text" --layers 1 --heads 1 --hidden 8 --context 8 --batch 4 --steps 20 --eval-every 0 --eval-samples 4 --out "$W/chars" --target bpc:100
check "bits per character" near "$(of chars summary target.score)" "$(of chars eval valid_loss | awk '{ printf "%.17g", $1 / log(2); exit }')"
finish
