#!/bin/sh
# cli_bert.sh: the encoder on pairs of sentences, by the real program: both losses, the same at any P, evaluations, that it resumes
# to the same bits with dropout and new masks in every epoch, an overlapping exchange, and its mistakes.
# shellcheck disable=SC2086,SC2166 # lists of arguments; two conditions of one check
. tests/lib/tap.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
if "$PROGRAM" list 2> /dev/null | grep -q 'utf8proc'; then
    skip "pairs of sentences" "this build lacks utf8proc"
    finish
    exit
fi
# -- a text of its own: articles whose sentences go round a list of words ------------------------------------------------------
sh scripts/reproduce/made-up-pairs.sh "$W/text"
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
check "samples of what has no text" mistaken '--eval-samples has no effect with --model bert' 1 $small --eval-samples 3
check "a batch of more pairs than there are" mistaken 'training pairs' 2 $small --batch 5000 --steps 1
sed '/MASK/d' "$W/text/vocab.txt" > "$W/vocab" && mv "$W/vocab" "$W/text/vocab.txt"
check "a vocabulary without [MASK]" mistaken '[MASK]' 2 $small --steps 1
finish
