#!/bin/sh
# cli_bert.sh: the encoder on pairs of sentences, by the real program: both losses, the same at any P, evaluations, that it resumes
# to the same bits with dropout and new masks in every epoch, an overlapping exchange, that data show prints what was trained on, and
# its mistakes.
# shellcheck disable=SC2086,SC2166 # lists of arguments; two conditions of one check
. tests/lib/tap.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
if "$PROGRAM" list 2> /dev/null | grep -q 'utf8proc'; then
    skip "pairs of sentences" "this build lacks utf8proc"
    finish
    exit
fi
# -- a text of its own: articles whose sentences go round a list of words ------------------------------------------------------
sh scripts/reproduce/parts/made-up-pairs.sh "$W/text"
small="--model bert --layers 1 --heads 2 --hidden 16 --context 32 --lr 0.01 --lr-warmup-steps 2 --data wiki:$W/text --device $device"
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d < 1e-4 && d > -1e-4) }'; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 < b + 0 && a + 0 > 0) }'; }

# -- a run, and the same on other numbers of ranks -------------------------------------------------------------------------
start 1 $small --batch 6 --steps 30 --dropout 0 --eval-every 0 --out "$W/one"
log=$W/one/run.jsonl
json_lines "the log is JSON" "$log"
check "before training the loss is about that of the vocabulary" \
    sh -c "awk -v a='$(json "$log" summary start_loss)' -v v='$(json "$log" header vocabulary)' 'BEGIN { d = a - log(v); exit !(d < 0.2 && d > -0.2) }'"
check "training lowers the loss of masked words" below "$(json "$log" summary valid_loss)" "$(json "$log" summary start_loss)"
check "the next sentence has a loss of its own" [ -n "$(json "$log" summary valid_next_loss)" -a -n "$(json "$log" step next_loss)" ]
check "six pairs a step" [ "$(json "$log" step pairs)" = 6 ]
check "the report has both" sh -c "grep -q '^  valid loss  ' '$W/out' && grep -q '^  next sentence ' '$W/out' && grep -q 'pairs a second' '$W/out'"
first_step() { grep '"type":"step"' "$1/run.jsonl" | sed -n "1s/.*\"$2\":\([^,}]*\)[,}].*/\1/p"; }
for p in 2 3; do
    start $p $small --batch $((6 / p)) --steps 30 --dropout 0 --eval-every 0 --out "$W/ranks$p"
    check "the first step's losses on $p ranks: of the same pairs" near "$(first_step "$W/ranks$p" next_loss)" "$(first_step "$W/one" next_loss)"
    check "and of masked words" near "$(first_step "$W/ranks$p" loss)" "$(first_step "$W/one" loss)"
    check "before the first step on $p ranks: the same evaluation" near "$(json "$W/ranks$p/run.jsonl" summary start_loss)" "$(json "$log" summary start_loss)"
done

# -- what data show prints is what was trained on ---------------------------------------------------------------------------
pairs=$(json "$log" header train_pairs)
show="data show --data wiki:$W/text --context 32"
start 1 $show --json --samples $((pairs + 2))
cp "$W/out" "$W/shown"
json_lines "data show --json: JSON" "$W/shown"
check "a line for each pair, of one epoch and the next" sh -c "[ \$(wc -l < '$W/shown') -eq $((pairs + 2)) ] && tail -n 1 '$W/shown' | grep -q '^{\"epoch\":1,\"sample\":1,\"sequence\":[0-9]*,\"length\":[0-9]*,\"token\":\[2,.*,\"next\":[01]}\$'"
check "every pair of the epoch once" [ "$(head -n "$pairs" "$W/shown" | sed 's/.*"sequence":\([0-9]*\).*/\1/' | sort -n | uniq -u | awk '$1 == n { n++ } END { print n + 0 }')" = "$pairs" ]
labelled() { sed -n "$1,$2s/.*\"y\":\[\([^]]*\)\].*/\1/p" "$W/shown" | tr , '\n' | grep -vc '^-1$'; } # FROM TO: in these lines
trained() { "$PROGRAM" rows "$W/$1" --type step --keys samples | sed -n "$2p"; }                 # RUN STEP
for run in one ranks2 ranks3; do
    check "as many masked words as in steps 1, 2 and 5 of $run" [ "$(labelled 1 6) $(labelled 7 12) $(labelled 25 30)" = "$(trained $run 1) $(trained $run 2) $(trained $run 5)" ]
done
start 1 $show --json --samples 2 --epoch 1
check "--epoch begins where the epoch before ends" sh -c "tail -n 2 '$W/shown' | cmp -s - '$W/out'"
start 1 $show --json --samples 2 --seed 2
check "another seed: other pairs" sh -c "head -n 2 '$W/shown' | sed 's/.*sequence//' >'$W/two' && ! sed 's/.*sequence//' '$W/out' | cmp -s - '$W/two'"
start 1 $show --samples 12
check "as text: the masked words marked, which ones follow" [ "$(sed 1,2d "$W/out" | tr -cd '{' | wc -c) $(grep -c 'B follows A$' "$W/out")" = "$(labelled 1 12) $(head -n 12 "$W/shown" | grep -c '"next":0')" ]
check "the parts on lines of their own" [ "$(grep -c '^  A \[CLS\] .*' "$W/out") $(grep -c '^  B ' "$W/out")" = '12 12' ]
start 1 $show --test
check "of the test split four, if not told otherwise" [ "$(grep -c '^sample [0-3], sequence [0-3]: ' "$W/out")" = 4 ]

# -- going on --------------------------------------------------------------------------------------------------------------
start 2 $small --batch 4 --steps 12 --algo gtopk --density 0.1 --checkpoint-every 4 --keep 99 --eval-every 0.5 --out "$W/whole"
start 2 --resume "$W/whole/checkpoint-00000004" --out "$W/again"
check "resumed, with dropout and new masks: the same bits" [ "$(hash_of "$W/whole")" = "$(hash_of "$W/again")" ]
check "and the same last losses" [ "$(json "$W/whole/run.jsonl" summary valid_loss)$(json "$W/whole/run.jsonl" summary valid_next_loss)" = "$(json "$W/again/run.jsonl" summary valid_loss)$(json "$W/again/run.jsonl" summary valid_next_loss)" ]
start 2 evaluate "$W/whole" --device $device --json
told_as() { sed -n "s/.*\"$1\":\([^,}]*\)[,}].*/\1/p" "$W/out"; }
check "evaluate: the log's bits" [ "$(told_as valid_loss)$(told_as valid_next_accuracy)" = "$(json "$W/whole/run.jsonl" summary valid_loss)$(json "$W/whole/run.jsonl" summary valid_next_accuracy)" ]
start 1 evaluate "$W/whole" --device $device
check "on another number of ranks: the same losses" grep -q "^  valid loss  *$(printf '%.4f' "$(json "$W/whole/run.jsonl" summary valid_loss)")" "$W/out"
start 2 $small --batch 4 --steps 4 --accumulate 2 --algo topka --density 0.1 --overlap layers --overlap-bytes 4096 --eval-every never --out "$W/overlapped"
check "exchanged layer by layer, two batches a step" [ "$(json "$W/overlapped/run.jsonl" summary replicas_identical)" = true ]

# -- mistakes --------------------------------------------------------------------------------------------------------------
check "a text for a model of pairs" mistaken 'model bert takes pairs of texts, but --data ptb holds text' 2 --model bert --data ptb
check "pairs for a model of text" mistaken 'model gpt takes text, but --data wiki holds pairs of texts' 2 --model gpt --data "wiki:$W/text"
check "windows that are longer than the positions" mistaken '512 positions' 2 --model bert --layers 1 --heads 2 --hidden 16 --context 600 --data "wiki:$W/text"
check "data show: a picture of pairs" silent mistaken_alone "data show: --png has no effect with --data wiki, which holds pairs of texts; leave it out" $show --png "$W/x.png"
check "data show: numbers of images" silent mistaken_alone "data show: --json has no effect with --data synthetic, which holds images; leave it out" data show --data synthetic:64x16 --json --png "$W/x.png"
check "data show: an epoch of the test split" silent mistaken_alone 'data show: --epoch has no effect with --test; leave it out' $show --test --epoch 1
check "data show: more than the test split has" silent mistaken_alone 'data show: --samples 1000 is more than the' $show --test --samples 1000
check "data show: sequences that are too short" silent mistaken_alone 'data show: --context 8 is out of range: it must be at least 16' data show --data wiki --context 8
check "samples of what has no text" mistaken '--eval-samples has no effect with --model bert' 1 $small --eval-samples 3
check "a batch of more pairs than there are" mistaken 'training pairs' 2 $small --batch 5000 --steps 1
sed '/MASK/d' "$W/text/vocab.txt" > "$W/vocab" && mv "$W/vocab" "$W/text/vocab.txt"
check "a vocabulary without [MASK]" mistaken '[MASK]' 2 $small --steps 1
finish
