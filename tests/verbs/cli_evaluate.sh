#!/bin/sh
# cli_evaluate.sh: the verb evaluate, by the real program: on as many ranks as the run had the scores of its log, bit for bit;
# on any other number the same but for roundings; of images and texts, of replicas that are the same and of some that have
# drifted apart; and every mistake.
# devices: cuda
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
emulated=${SPARSETRAIN_TEST_EMULATED:-}
many="1 2 3 4 5 7 8" others="1 2 3 5 8"
if [ "$device" != cpu ]; then many="1 2 3" others="1 2"; fi

# logged DIR STEP KEY: of the evaluation after this step
logged() { sed -n "s/^{\"type\":\"eval\",\"step\":$2,.*\"$3\":\([^,}]*\)[,}].*/\1/p" "$1/run.jsonl"; }
# told KEY: of the line that is in $W/out
told_as() { sed -n "s/^{\"checkpoint\".*\"$1\":\([^,}]*\)[,}].*/\1/p" "$W/out"; }
# scores P CHECKPOINT ARGS...: the line to $W/out
scores() {
    s_p=$1
    shift
    start "$s_p" evaluate "$@" --json && [ "$(wc -l < "$W/out")" -eq 1 ] && [ ! -s "$W/err" ]
}
# same_bits DIR STEP KEYS: all as logged
same_bits() {
    for key in $3; do
        why="$key $(told_as "$key"), logged $(logged "$1" "$2" "$key"): $(head -c 300 "$W/err")"
        [ -n "$(told_as "$key")" ] && [ "$(told_as "$key")" = "$(logged "$1" "$2" "$key")" ] || return 1
    done
}
near() {
    for key in $3; do
        why="$key $(told_as "$key"), logged $(logged "$1" "$2" "$key"): $(head -c 300 "$W/err")"
        awk -v a="$(told_as "$key")" -v b="$(logged "$1" "$2" "$key")" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d * d <= 1e-9 * b * b) }' || return 1
    done
}

# -- images: checkpoints with evaluations, the last one and one in the middle -----------------------------------------
images="--data synthetic:96x37 --batch 2 --steps 4 --device $device --lr-warmup 0"
of_images="test_loss test_accuracy"
for p in $many; do
    start $p $images --eval-every "$(awk "BEGIN { printf \"%.17g\", 4 * $p / 96 }")" --algo topka --density 0.05 --density-warmup none --out "$W/p$p"
    scores $p "$W/p$p"
    check "images on $p ranks: the log's bits" same_bits "$W/p$p" 4 "$of_images"
    scores $p "$W/p$p/checkpoint-00000002"
    check "and those of the checkpoint before" same_bits "$W/p$p" 2 "$of_images"
done
for q in $others; do
    scores $q "$W/p3"
    check "images of 3 ranks on $q: the same scores" near "$W/p3" 4 "$of_images"
done
json_lines "--json is JSON" "$W/out"
scores 2 "$W/p3" --batch 5 --device cpu
check "another batch, another device: the same scores" near "$W/p3" 4 "$of_images"
scores 1 "$W/p3" --data synthetic:96x40
check "other data: said" grep -q '"data":"synthetic:96x40","same_data":false' "$W/out"
start 3 evaluate "$W/p3"
check "as text: what the run printed" grep -q "^  test loss *$(printf '%.3f' "$(logged "$W/p3" 4 test_loss)")$" "$W/out"
check "and where it comes from" grep -q "^sparsetrain: resnet20 after step 4, from $W/p3/checkpoint-00000004" "$W/out"

# -- a checkpoint without an evaluation: each rank has statistics of its own --------------------------------------------
start 3 $images --eval-every 0 --checkpoint-every 3 --out "$W/between"
scores 3 "$W/between/checkpoint-00000003"
loss=$(told_as test_loss)
scores 2 "$W/between/checkpoint-00000003"
check "between two evaluations: the same on 3 and 2 ranks" awk -v a="$loss" -v b="$(told_as test_loss)" 'BEGIN { d = a - b; exit !(a > 0 && d * d <= 1e-9 * b * b) }'

# -- replicas that drift: evaluated between two averages ----------------------------------------------------------------
start 3 $images --eval-every 0.125 --algo fedavg --average-every 3 --out "$W/drift"
for step in 2 4; do
    scores 3 "$W/drift/checkpoint-0000000$step"
    check "drifting replicas after step $step: the log's bits" same_bits "$W/drift" $step "$of_images"
    scores 2 "$W/drift/checkpoint-0000000$step"
    check "and on 2 ranks the same scores" near "$W/drift" $step "$of_images"
done

# -- texts: cut into as many streams, whoever reads them ---------------------------------------------------------------
of_texts="test_loss test_accuracy test_perplexity valid_loss valid_perplexity"
text="--model lstm --hidden 12 --bptt 5 --batch 3 --data synthetic-text:600x90x101 --steps 4 --device $device --lr-warmup 0"
for p in $many; do
    start $p $text --out "$W/t$p"
    scores $p "$W/t$p"
    check "a text on $p ranks: the log's bits" same_bits "$W/t$p" 4 "$of_texts"
done
for q in $others; do
    scores $q "$W/t2"
    check "a text of 2 ranks on $q: the same scores, from 6 streams" near "$W/t2" 4 "$of_texts"
    check "said on $q ranks" [ "$(told_as streams)" -eq 6 ]
done
scores 2 "$W/t2" --batch 4
check "--batch cuts a text anew" [ "$(told_as streams)" -eq 8 ]
json_lines "--json of a text is JSON" "$W/out"
start 2 evaluate "$W/t2"
check "as text: perplexities" grep -q "^  valid perplexity *$(printf '%.2f' "$(logged "$W/t2" 4 valid_perplexity)")$" "$W/out"

# -- windows from random places ----------------------------------------------------------------------------------------
gpt="--model gpt --preset char-cpu --context 32 --hidden 32 --heads 2 --layers 1 --batch 2 --steps 2 --eval-samples 4 --device $device"
start 2 $gpt --data synthetic-text:2000x200x200 --out "$W/gpt"
scores 2 "$W/gpt"
check "in windows: the log's bits" same_bits "$W/gpt" 2 "test_loss valid_loss valid_loss_sampled"
start 2 evaluate "$W/gpt" --data synthetic-text:2000x20x200
check "a text shorter than a window is read, with nothing from random places" \
    sh -c "grep -q '^  valid loss' '$W/out' && ! grep -q 'sampled' '$W/out'"

# -- a text without a test ----------------------------------------------------------------------------------------------
awk 'BEGIN { for (i = 0; i < 200; i++) printf "%d and ", i * i % 37 }' > "$W/chars.txt"
start 2 --model lstm --hidden 8 --bptt 5 --batch 2 --data "text-char:$W/chars.txt" --steps 2 --device $device --out "$W/chars"
scores 2 "$W/chars"
check "without a test: the log's bits" same_bits "$W/chars" 2 "valid_loss valid_perplexity"
check "and no key of a test" sh -c "grep -q valid_words '$W/out' && ! grep -q 'test_' '$W/out'"
start 2 evaluate "$W/chars"
check "nor a line" sh -c "grep -q '^  data .* validation characters, in 4 streams' '$W/out' && grep -q '^  valid perplexity' '$W/out' && ! grep -q 'test perplexity\|test characters' '$W/out'"

# -- mistakes -----------------------------------------------------------------------------------------------------------
if [ -n "$emulated" ]; then finish; exit; fi
mkdir "$W/words" "$W/empty"
awk 'BEGIN { for (i = 0; i < 300; i++) print "w" i * i % 31, "w" i % 7 }' > "$W/words/train.txt"
head -n 40 "$W/words/train.txt" | tee "$W/words/valid.txt" > "$W/words/test.txt"
start 2 --model lstm --hidden 8 --bptt 5 --batch 2 --data "ptb:$W/words" --steps 2 --device $device --out "$W/own"
scores 1 "$W/own"
check "a text of the user's" near "$W/own" 2 "$of_texts"
cp -r "$W/words" "$W/turned"
tac "$W/words/train.txt" > "$W/turned/train.txt"
cp -r "$W/words" "$W/shorter"
head -n 150 "$W/words/train.txt" > "$W/shorter/train.txt"
start 1 evaluate "$W/own" --data "ptb:$W/shorter"
check "another text of the same words" grep -q '^  valid perplexity' "$W/out"
echo 'w1 w2' >> "$W/words/test.txt"
for p in 1 3; do
    # refused PART ARGS...
    refused() {
        r_part=$1
        shift
        check "on $p ranks: $r_part" silent mistaken "$r_part" $p evaluate "$@"
    }
    refused 'a checkpoint is needed'
    refused 'one checkpoint at a time' "$W/p1" "$W/p2"
    refused 'there is no option --steps' "$W/p1" --steps 3
    refused '--batch wants a value' "$W/p1" --batch
    refused '--batch 0 is out of range' "$W/p1" --batch=0
    refused "cannot evaluate $W/nowhere: No such file" "$W/nowhere"
    refused 'there is no checkpoint in it; name a checkpoint' "$W/empty"
    refused 'the dataset differs from the one of the checkpoint' "$W/own"
    refused 'model resnet20 takes images, but --data synthetic-text holds text' "$W/p1" --data synthetic-text
    refused 'it has embedding.weight 20x8 where this model has embedding.weight 2000x8' "$W/own" --data synthetic-text
    refused 'its words are numbered otherwise' "$W/own" --data "ptb:$W/turned"
    check "on $p ranks, to begin with: its words are numbered otherwise" silent mistaken 'its words are numbered otherwise' $p \
        --model lstm --hidden 8 --bptt 5 --batch 2 --steps 1 --data "ptb:$W/turned" --init-from "$W/own" --device $device
    refused '--device has no "abacus"' "$W/p1" --device abacus
done
rm -rf "$W/bad"
cp -r "$W/p3" "$W/bad"
printf x | dd of="$W/bad/checkpoint-00000004/rank0002.ckpt" bs=1 seek=60 conv=notrunc 2> /dev/null
for p in 1 3; do
    check "a damaged file of rank 2, on $p ranks" mistaken "the one before it: evaluate $W/bad/checkpoint-00000002" $p evaluate "$W/bad"
done
start 1 evaluate --help
check "--help" grep -q '^usage: .*evaluate CHECKPOINT' "$W/out"
finish
