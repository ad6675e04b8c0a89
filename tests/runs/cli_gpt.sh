#!/bin/sh
# cli_gpt.sh: the decoder on texts, by the real program: presets and sizes, windows that are the same at any P, evaluations of all
# of a text and of samples, that it resumes to the same bits, with dropout and an overlapping exchange too, and its mistakes.
# devices: cuda
# quick: the only transformer
# shellcheck disable=SC2086,SC2166 # lists of arguments; two conditions of one check
. tests/lib/tap.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
awk 'BEGIN { srand(5); for (i = 0; i < 300; i++) { for (j = 0; j < 6; j++) printf "%s ", substr("thequickbrownfox", 1 + int(rand() * 12), 3); print "" } }' > "$W/text"
steps=30 samples=9
if [ -n "${SPARSETRAIN_TEST_EMULATED:-}" ]; then
    steps=4 samples=3
    head -n 20 "$W/text" > "$W/short" && mv "$W/short" "$W/text"
fi
size="--model gpt --layers 2 --hidden 16 --lr-warmup-steps 2 --data text-char:$W/text --device $device --steps $steps"
small="$size --heads 2 --context 8"
sampled="$small --eval-samples $samples"
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 < b + 0 && a + 0 > 0) }'; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d < 1e-4 && d > -1e-4) }'; }

# -- a run, and the same on other numbers of ranks -------------------------------------------------------------------------
start 1 $sampled --batch 12 --checkpoint-every 2 --eval-every 0.1 --out "$W/one"
log=$W/one/run.jsonl
json_lines "the log is JSON" "$log"
check "before training the loss is about that of the vocabulary" \
    sh -c "awk -v a='$(json "$log" summary start_loss)' -v v='$(json "$log" header vocabulary)' 'BEGIN { d = a - log(v); exit !(d < 0.1 && d > -0.1) }'"
check "training lowers the loss" below "$(json "$log" summary valid_loss)" "$(json "$log" summary start_loss)"
check "a sampled evaluation beside the whole one" below "$(json "$log" summary valid_loss_sampled)" "$(json "$log" summary start_loss)"
check "and speaks of characters" sh -c "grep -q '^  data  .* validation characters of ' '$W/out' && ! grep -q ' words' '$W/out'"
check "the report has both losses" sh -c "grep -q '^  valid loss  ' '$W/out' && grep -q '^  of sampled windows  ' '$W/out'"
check "AdamW, as it goes with the preset" [ "$(json "$log" header optimiser)/$(json "$log" header beta2)/$(json "$log" header preset)" = 'adamw/0.99/char-cpu' ]
for p in 2 3; do
    if [ $p = 3 ] && [ -n "${SPARSETRAIN_TEST_EMULATED:-}" ]; then continue; fi
    start $p $sampled --batch $((12 / p)) --eval-every 0 --out "$W/ranks$p"
    check "the same windows on $p ranks: the same losses" near "$(json "$W/ranks$p/run.jsonl" summary valid_loss)" "$(json "$log" summary valid_loss)"
    check "of the sampled windows, too" near "$(json "$W/ranks$p/run.jsonl" summary valid_loss_sampled)" "$(json "$log" summary valid_loss_sampled)"
done
start 2 $sampled --batch 3 --accumulate 2 --eval-every 0 --out "$W/parts"
check "and in two batches a step" near "$(json "$W/parts/run.jsonl" summary valid_loss)" "$(json "$log" summary valid_loss)"

# -- going on --------------------------------------------------------------------------------------------------------------
dropping="$sampled --batch 4 --dropout 0.2 --algo gtopk --density 0.1"
start 2 $dropping --checkpoint-every 2 --keep 99 --eval-every 0.1 --out "$W/whole"
start 2 --resume "$W/whole/checkpoint-00000002" --out "$W/again"
check "resumed, with dropout: the same bits" [ "$(hash_of "$W/whole")" = "$(hash_of "$W/again")" ]
check "and the same last losses" [ "$(json "$W/whole/run.jsonl" summary valid_loss)$(json "$W/whole/run.jsonl" summary valid_loss_sampled)" = "$(json "$W/again/run.jsonl" summary valid_loss)$(json "$W/again/run.jsonl" summary valid_loss_sampled)" ]
start 2 evaluate "$W/whole" --device $device --json
told_as() { sed -n "s/.*\"$1\":\([^,}]*\)[,}].*/\1/p" "$W/out"; }
check "evaluate: the log's bits" [ "$(told_as valid_loss)$(told_as valid_loss_sampled)" = "$(json "$W/whole/run.jsonl" summary valid_loss)$(json "$W/whole/run.jsonl" summary valid_loss_sampled)" ]
start 1 evaluate "$W/whole" --device $device
check "on another number of ranks: the same losses" grep -q "^  valid loss  *$(printf '%.4f' "$(json "$W/whole/run.jsonl" summary valid_loss)")" "$W/out"
start 2 $dropping --overlap layers --overlap-bytes 4096 --eval-every never --out "$W/overlapped"
check "exchanged layer by layer, the shared weights last" [ "$(json "$W/overlapped/run.jsonl" summary replicas_identical)" = true ]
start 2 $small --batch 4 --optimiser sgd --momentum-correction --algo topka --density 0.1 --eval-samples 0 --eval-every 0 --out "$W/sgd"
check "SGD has a rate of its own, and no decay" [ "$(json "$W/sgd/run.jsonl" header lr)/$(json "$W/sgd/run.jsonl" header weight-decay)" = 0.3/0 ]
check "no samples: no loss of any" [ -z "$(json "$W/sgd/run.jsonl" summary valid_loss_sampled)" ]

# -- mistakes --------------------------------------------------------------------------------------------------------------
check "no such preset" mistaken 'there are: char-cpu, char, gpt2' 2 --model gpt --preset large
check "more probabilities than dropout can number" mistaken 'takes fewer than 2^34 probabilities of attention, not 64 x 6 heads x 8192 x 8192' 2 \
    --model gpt --preset char --context 8192 --data synthetic-text:20000x9000x9000 --dry-run
check "heads that do not come out even" mistaken 'which does not come out even' 2 $size --heads 3 --context 8
check "a window that is longer than the text" mistaken 'needs 50001 at least' 2 --model gpt --hidden 8 --heads 1 --context 50000 --data "text-char:$W/text"
check "a text without room for a sample" mistaken 'or --eval-samples 0' 2 $size --heads 2 --context $(($(wc -c < "$W/text") / 5))
check "an option of streams" mistaken '--bptt has no effect with --model gpt' 1 $small --bptt 5
check "a directory without a text" mistaken 'input.txt' 2 --model gpt --data "text-char:$W/one"
finish
