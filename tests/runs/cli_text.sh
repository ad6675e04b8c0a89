#!/bin/sh
# cli_text.sh: the language model on texts, by the real program: what a run writes, that evaluating does not disturb it,
# that it resumes to the same bits with the states of its streams, and every mistake that a text allows.
# devices: cuda
# shellcheck disable=SC2086,SC2166 # lists of arguments; two conditions of one check
. tests/lib/tap.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
small="--model lstm --hidden 12 --bptt 5 --batch 2 --device $device --lr-warmup 0"
# On the stand-in, whose kernels are emulated, a third of the text and of the steps, which is still an epoch and a half.
words=3000 held_out=300 windows=99 steps=140 every=30 middle=120 epochs=1.4141414141414141
if [ -n "${SPARSETRAIN_TEST_EMULATED:-}" ]; then
    words=1000 held_out=100 windows=33 steps=48 every=10 middle=40 epochs=1.4545454545454546
fi
synthetic="--data synthetic-text:${words}x${held_out}x$held_out"

# -- a run -----------------------------------------------------------------------------------------------------------------
run="$small $synthetic --dropout 0.3 --algo gtopk --density 0.05 --density-warmup none --steps $steps"
if start 3 $run --eval-every 0.5 --checkpoint-every $every --out "$W/whole"; then ok "an LSTM trains on the built-in text"; else not_ok "an LSTM trains on the built-in text" "$(head -c 500 "$W/err")"; fi
log=$W/whole/run.jsonl
json_lines "the log is JSON" "$log"
check "an epoch has floor(($words - 1) / (3 x 2 x 5)) = $windows steps" [ "$(json "$log" eval epoch)" = "$epochs" ]
check "the report speaks of perplexities and words" grep -q 'valid perplexity' "$W/out"
check "the report gives the text's entropy as a perplexity" grep -q 'no model has a perplexity below' "$W/out"
check "the log has the words of each split" [ "$(json "$log" header valid_words)" = $held_out ]
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 < b + 0 && a + 0 > 0) }'; }
start_loss=$(json "$log" summary start_loss)
check "training lowers the loss" below "$(json "$log" summary test_loss)" "$start_loss"
vocabulary=$(json "$log" header vocabulary)
near_log() { awk -v a="$1" -v v="$2" 'BEGIN { d = a - log(v); exit !(d < 0.1 && d > -0.1) }'; }
check "before training the perplexity is about the vocabulary" near_log "$start_loss" "$vocabulary"
check "vocabulary.txt has a line for each word" [ "$(wc -l < "$W/whole/vocabulary.txt")" -eq "$vocabulary" ]
check "no two of them are the same" [ "$(sort "$W/whole/vocabulary.txt" | uniq -d | wc -l)" -eq 0 ]

start 3 --resume "$W/whole/checkpoint-$(printf %08d $middle)" --out "$W/again"
check "resumed in an epoch's middle: the same bits" [ "$(hash_of "$W/whole")" = "$(hash_of "$W/again")" ]
check "and the same last perplexity" [ "$(json "$log" summary valid_perplexity)" = "$(json "$W/again/run.jsonl" summary valid_perplexity)" ]
start 3 $run --eval-every 0 --out "$W/unseen"
check "evaluations leave the streams as they were" [ "$(hash_of "$W/whole")" = "$(hash_of "$W/unseen")" ]
start 3 $run --eval-every 0 --seed 2 --out "$W/seed2"
check "another seed is another run" [ "$(hash_of "$W/seed2")" != "$(hash_of "$W/whole")" ]

# -- a text of the user's --------------------------------------------------------------------------------------------------
mkdir "$W/text"
awk 'BEGIN { srand(3); for (i = 0; i < 400; i++) { line = ""; for (j = 0; j < 6; j++) line = line " w" int(rand() * 30); print line } }' > "$W/text/train.txt"
head -n 30 "$W/text/train.txt" > "$W/text/valid.txt"
{ sed -n '31,60p' "$W/text/train.txt"; printf 'unseen \377\376 words\n'; } > "$W/text/test.txt"
start 2 $small --data "ptb:$W/text" --steps 20 --eval-every 0 --out "$W/own"
check "a directory with train, valid and test" [ "$(json "$W/own/run.jsonl" header train_words)" = 2800 ]
check "words of the training text only, <unk> and <eos>" [ "$(json "$W/own/run.jsonl" header vocabulary)" = 32 ]
check "the vocabulary of that run" grep -qx '<unk>' "$W/own/vocabulary.txt"

# -- character by character, without a test text ---------------------------------------------------------------------------
awk 'BEGIN { srand(5); for (i = 0; i < 60; i++) { for (j = 0; j < 6; j++) printf "w%d\303\244 ", rand() * 30; print "" } }' > "$W/text/chars"
characters=$(LC_ALL=C tr -d '\200-\277' < "$W/text/chars" | wc -c) # all bytes but those that go on with one
start 2 $small --data "text-char:$W/text/chars" --steps 20 --checkpoint-every 10 --eval-every 0.2 --out "$W/chars"
log=$W/chars/run.jsonl
check "any file of UTF-8" [ "$(json "$log" header train_words)/$(json "$log" header valid_words)/$(json "$log" header vocabulary)" = "$((characters * 9 / 10))/$((characters - characters * 9 / 10))/14" ]
check "its vocabulary in order" [ "$(tr '\n' '.' < "$W/chars/vocabulary.txt")" = "$(printf '\\n. .0.1.2.3.4.5.6.7.8.9.w.\303\244.')" ]
check "no key of a test, nor a number that is none" sh -c "! grep -v '\"type\":\"step\"' '$log' | grep -q '\"test_\|\"start_accuracy\|_loss\":null\|_perplexity\":null\|nan'"
check "validation is scored, before the first step, too" below "$(json "$log" summary valid_loss)" "$(json "$log" summary start_loss)"
check "start_loss is of the validation" [ "$(sed -n 's/^{"type":"eval","step":0,.*"valid_loss":\([^,]*\),.*/\1/p' "$log")" = "$(json "$log" summary start_loss)" ]
check "the report has no test, either" sh -c "grep -q 'valid perplexity' '$W/out' && ! grep -q 'test perplexity\|test words' '$W/out'"
start 2 --resume "$W/chars/checkpoint-00000010" --out "$W/chars2"
check "it resumes to the same bits" [ "$(hash_of "$W/chars")" = "$(hash_of "$W/chars2")" -a "$(json "$W/chars2/run.jsonl" summary start_loss)" = "$(json "$log" summary start_loss)" ]
check "no UTF-8, by its byte" mistaken "test.txt: byte $(($(wc -c < "$W/text/test.txt") - 9)) does not begin a character" 2 $small --data "text-char:$W/text/test.txt" --steps 1
check "too short for a window" mistaken "need at least 40001" 2 --model lstm --data "text-char:$W/text/chars" --batch 20 --bptt 1000 --steps 1

# -- ranks of one node that are sent to different places ---------------------------------------------------------------------
mkdir "$W/shorter" "$W/other" "$W/packed"
for split in train valid test; do
    head -n 29 "$W/text/$split.txt" > "$W/shorter/$split.txt"
    sed 's/w7 /w8 /' "$W/text/$split.txt" > "$W/other/$split.txt"
    gzip -c "$W/text/$split.txt" > "$W/packed/$split.txt.gz"
done
ln -s text "$W/linked"
# apart A B: two ranks, the second one with other data than the first
apart() {
    timeout -k 10 300 "$MPIRUN" -np 1 env SPARSETRAIN_DATA="$W/$1" "$PROGRAM" $small --data ptb --steps 2 --eval-every never --out "$W/apart-$1-$2" : \
        -np 1 env SPARSETRAIN_DATA="$W/$2" "$PROGRAM" $small --data ptb --steps 2 --eval-every never --out "$W/apart-$1-$2" > "$W/out" 2> "$W/err" < /dev/null
}
for pair in "text shorter" "shorter text" "text other"; do
    apart $pair
    check "other data for the second rank ($pair): status 2" told $? "the ranks hold different data for --data ptb: their checksums differ; give all of them the same copy"
done
: > "$W/shorter/valid.txt"
apart text shorter
check "data that the second rank cannot read: status 2" told $? "shorter/valid.txt"
for pair in "text text" "text linked" "text packed" "packed text"; do
    apart $pair
    check "the same data for both ($pair): status 0" [ $? -eq 0 -a -n "$(hash_of "$W/apart-${pair% *}-${pair#* }")" ]
done
check "and the same bits" [ "$(hash_of "$W/apart-text-packed")" = "$(hash_of "$W/apart-text-text")" ]

# -- mistakes --------------------------------------------------------------------------------------------------------------
check "images for a model of text" mistaken "model lstm takes text, but --data cifar10 holds images" 2 --model lstm --data cifar10
check "a text for a model of images" mistaken "model resnet20 takes images, but --data ptb holds text" 2 --data "ptb:$W/text"
check "too few words: how many are needed" mistaken "need at least 28001" 2 --model lstm --data "ptb:$W/text" --batch 400 --bptt 35 --steps 1
check "too few words: how many there are" mistaken "has 2800 words" 2 --model lstm --data "ptb:$W/text" --batch 400 --bptt 35 --steps 1
check "an option of texts for images" mistaken "--bptt has no effect with --model resnet20" 1 --bptt 5
check "an option of images for texts" mistaken "--no-augment has no effect with --model lstm" 1 $small $synthetic --no-augment
check "dropout of everything" mistaken "--dropout 1 is out of range" 1 --model lstm --dropout 1
mkdir "$W/empty" "$W/long" "$W/partly"
cp "$W/text/"*.txt "$W/empty"
: > "$W/empty/valid.txt"
check "an empty text is named" mistaken "valid.txt" 2 $small --data "ptb:$W/empty" --steps 1
cp "$W/text/"*.txt "$W/long"
awk 'BEGIN { print "a b"; for (i = 0; i < 9000; i++) printf "x"; print "" }' > "$W/long/test.txt"
check "a word beyond all measure is named by its line" mistaken "line 2" 2 $small --data "ptb:$W/long" --steps 1
cp "$W/text/train.txt" "$W/partly"
check "a missing split" mistaken "has train.txt, but no" 2 $small --data "ptb:$W/partly" --steps 1
printf '\n' > "$W/empty/valid.txt"
check "a text without a word to predict" mistaken "has one word to validate on" 3 $small --data "ptb:$W/empty" --steps 1
check "a made-up one, too" mistaken "has one word to test on" 2 $small --data synthetic-text:3000x2x1 --steps 1
mkdir -p "$W/blocked/vocabulary.txt"
check "a vocabulary that cannot be written leaves no log behind" unmade "$W/blocked/run.jsonl" mistaken "cannot write $W/blocked/vocabulary.txt" 2 $small $synthetic --steps 1 --out "$W/blocked"
rmdir "$W/blocked/vocabulary.txt"
start 2 $small --data synthetic-text:3000x2x2 --steps 1 --out "$W/blocked"
check "so that the run can be started again; two words are a text" [ -n "$(json "$W/blocked/run.jsonl" summary valid_perplexity)" -a "$(json "$W/blocked/run.jsonl" summary valid_perplexity)" != null ]
check "no such directory" mistaken "$W/nowhere" 2 $small --data "ptb:$W/nowhere" --steps 1
start 2 $small --data "ptb:$W/text" --steps 4 --eval-every 0 --out "$W/other"
awk '{ print $0 " w1" }' "$W/text/train.txt" > "$W/text/new" && mv "$W/text/new" "$W/text/train.txt"
check "a text that has changed since the checkpoint" mistaken "the dataset differs" 2 --resume "$W/other" --steps 8

# -- the real text ---------------------------------------------------------------------------------------------------------
where=${SPARSETRAIN_DATA:-build/data}
if [ -f "$where/ptb/ptb.train.txt" ]; then
    valid=73760 test=82430
    if [ -n "${SPARSETRAIN_TEST_EMULATED:-}" ]; then # an evaluation of all of it would take minutes there
        mkdir "$W/real"
        cp "$where/ptb/ptb.train.txt" "$W/real"
        for split in valid test; do head -n 9 "$where/ptb/ptb.$split.txt" >"$W/real/ptb.$split.txt"; done
        size() { awk '{ n += NF + 1 } END { print n }' "$W/real/ptb.$1.txt"; } # with an <eos> for every line
        where=$W/real valid=$(size valid) test=$(size test)
    fi
    start 2 --model lstm --hidden 8 --device $device --data "ptb:$where" --algo topka --density-warmup none --log-slices 2 --steps 3 --eval-every 0 --dropout 0 --bptt 10 --batch 4 --out "$W/ptb"
    log=$W/ptb/run.jsonl
    check "Penn Treebank: its published size" [ "$(json "$log" header train_words)/$(json "$log" header valid_words)/$(json "$log" header test_words)/$(json "$log" header vocabulary)" = "929589/$valid/$test/10000" ]
    check "--log-slices: steps 1 and 3" [ "$(grep -c '"type":"slices"' "$log")" -eq 2 ]
    rows=$(sed -n 's/.*"name":"embedding.weight","size":80000,"nonzero_mean":\([0-9.]*\).*/\1/p' "$log" | head -n 1)
    check "the embedding's gradient has at most a row for each word of a window" below "$rows" 321
else
    skip "Penn Treebank: its published size" "no Penn Treebank in $where: sh scripts/fetch-data.sh ptb"
fi
finish
