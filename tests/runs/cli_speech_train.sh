#!/bin/sh
# cli_speech_train.sh: speech recognition by the real program: loss and error rates on any number of ranks, though batches hold unlike
# numbers of utterances; that it resumes to the same bits, in the midst of an epoch and with another batch at the end of one;
# evaluate, --target, an overlapping exchange, and its mistakes.
# shellcheck disable=SC2086,SC2166 # lists of arguments; two conditions of one check
. tests/lib/tap.sh
. tests/lib/wav.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
if "$PROGRAM" list | grep -q 'lacks FFTW'; then
    skip "speech" "this build lacks FFTW"
    finish
    exit
fi

mkdir "$W/mine"
i=0
for word in YES NO 'GO ON' STOP ONE TWO THREE FOUR FIVE SIX SEVEN; do
    i=$((i + 1))
    wav "$W/mine/$i.wav" $((4000 + i * 700)) 16000 $((5000 + i * 20000))
    if [ $i -le 8 ]; then printf '%s.wav\t%s\n' $i "$word" >> "$W/mine/train.txt"; else printf '%s.wav\t%s\n' $i "$word" >> "$W/mine/test.txt"; fi
done
small="--model speech --layers 1 --hidden 16 --data speech:$W/mine --lr 0.02 --lr-warmup 0 --device $device"
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; e = 1e-4 * (b < 0 ? -b : b); exit !(a != "" && b != "" && d <= e && d >= -e) }'; }
below() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 < b + 0 && a + 0 > 0) }'; }

# -- a run, and the same on other numbers of ranks -------------------------------------------------------------------------
start 1 $small --batch 6 --epochs 8 --out "$W/one"
status=$?
log=$W/one/run.jsonl
check "it trains (status $status: $(tail -n 1 "$W/err"))" [ $status -eq 0 ]
json_lines "the log is JSON" "$log"
check "two steps an epoch, of four utterances each" sh -c "[ \$(grep -c '\"type\":\"step\"' '$log') -eq 16 ] && [ \$(grep '\"type\":\"step\"' '$log' | grep -c '\"samples\":4,') -eq 16 ]"
first_step() { grep '"type":"step"' "$1/run.jsonl" | sed -n "1s/.*\"$2\":\([^,}]*\)[,}].*/\1/p"; }
check "training lowers the loss" below "$(json "$log" step loss)" "$(first_step "$W/one" loss)"
check "there are error rates, and no accuracy" sh -c "grep '\"type\":\"summary\"' '$log' | grep -q '\"test_wer\":[0-9.]*,\"test_cer\":[0-9.]*' && ! grep -v '\"type\":\"header\"' '$log' | grep -q accuracy"
check "the header counts utterances" grep -q '"train_utterances":8,"test_utterances":3' "$log"
check "the report has them" sh -c "grep -q '^  test WER  *[0-9.]*%  *[0-9.]*%\$' '$W/out' && grep -q '^  test CER ' '$W/out' && grep -q 'utterances a second' '$W/out' && grep -q '8 training and 3 test utterances' '$W/out'"
check "and what is heard of three utterances" sh -c "[ \$(grep -c '^  said [0-9]' '$W/out') -eq 3 ] && [ \$(grep -c '^  heard  ' '$W/out') -eq 3 ] && grep -q '^  said 2  *FIVE SIX SEVEN\$\|^  said 2  *SEVEN\$' '$W/out'"
heard() { "$PROGRAM" rows "$1" --type eval --last --each samples --keys utterance,said,heard; }
check "the log has them in each evaluation" [ "$("$PROGRAM" rows "$log" --type eval --each samples --keys said | wc -l)" -eq 27 ]
heard "$log" > "$W/heard"
check "of the whole test, by length" [ "$(cut -f 1 "$W/heard" | tr '\n' ' ')" = "0 1 2 " ]
for p in 2 3; do
    start $p $small --batch $((6 / p)) --epochs 8 --eval-every 4 --out "$W/ranks$p"
    check "on $p ranks as many utterances a step" [ "$(first_step "$W/ranks$p" samples)" = 4 ]
    check "before the first step on $p ranks: the same evaluation" near "$(json "$W/ranks$p/run.jsonl" summary start_loss)" "$(json "$log" summary start_loss)"
    check "on $p ranks training lowers the loss, too" below "$(json "$W/ranks$p/run.jsonl" step loss)" "$(first_step "$W/ranks$p" loss)"
done

start 1 $small --batch 6 --epochs 1 --no-augment --out "$W/plain"
check "with --no-augment it begins as well" near "$(json "$W/plain/run.jsonl" summary start_loss)" "$(json "$log" summary start_loss)"
check "and trains on something else" sh -c "[ \"$(first_step "$W/plain" loss)\" != \"$(first_step "$W/one" loss)\" ] && [ -n \"$(first_step "$W/plain" loss)\" ]"

# A processor without AVX2, or a virtual one that hides it: nothing is left to the library's plain loops, a thousand times slower.
if [ "$device" = cpu ] && [ "$(uname -m)" = x86_64 ]; then
    (
        ONEDNN_MAX_CPU_ISA=AVX ONEDNN_VERBOSE=1
        export ONEDNN_MAX_CPU_ISA ONEDNN_VERBOSE
        start 1 $small --batch 6 --steps 1 --no-augment --out "$W/avx"
    )
    check "with AVX alone: the same start" near "$(json "$W/avx/run.jsonl" summary start_loss)" "$(json "$log" summary start_loss)"
    check "the same first step" near "$(first_step "$W/avx" loss)" "$(first_step "$W/plain" loss)"
    check "and no plain loops" sh -c "grep -q ',convolution,.*,backward_weights,' '$W/out' && ! grep -q ',convolution,ref' '$W/out'"
fi

# -- going on --------------------------------------------------------------------------------------------------------------
rates_of_report() { grep '^  test [WC]ER  *[0-9.]*%  *[0-9.]*%$' "$W/out"; }
start 2 $small --batch 3 --epochs 6 --algo gtopk --density 0.1 --density-warmup none --out "$W/whole"
rates=$(rates_of_report)
start 2 $small --batch 3 --epochs 6 --algo gtopk --density 0.1 --density-warmup none --stop-at 2.5 --out "$W/parts"
start 2 --resume "$W/parts"
check "resumed inside an epoch: the same bits" [ "$(hash_of "$W/parts")" = "$(hash_of "$W/whole")" ]
check "its report has the error rates of the start, too, from the log" [ -n "$rates" -a "$(rates_of_report)" = "$rates" ]
check "and the same error rates" [ "$(json "$W/parts/run.jsonl" summary test_wer)" = "$(json "$W/whole/run.jsonl" summary test_wer)" ]
start 2 $small --batch 3 --epochs 6 --stop-at 2.5 --out "$W/inside"
start 2 --resume "$W/inside" --out "$W/elsewhere"
check "gone on with elsewhere it does not know those" [ "$(grep -c '^  test [WC]ER  *-  *[0-9.]*%$' "$W/out")" -eq 2 ]
check "another batch inside an epoch is refused" mistaken 'is inside an epoch, and its 6 utterances a step (--batch 3 on 2 ranks) can be put together otherwise only where one ends' 2 --resume "$W/inside" --batch 2
start 2 $small --batch 3 --epochs 6 --stop-at 2 --out "$W/end"
start 3 --resume "$W/end" --batch 1
status=$?
check "at the end of one it goes on, on other ranks (status $status)" sh -c "[ $status -eq 0 ] && grep -q '\"completed\":true' '$W/end/run.jsonl'"
check "for as many epochs" [ "$(json "$W/end/run.jsonl" summary epoch)" = 6 ]

start 3 evaluate "$W/one" --samples 1
check "evaluate on other ranks hears the same" sh -c "grep -q \"^  said 1  *\$(sed -n 2p '$W/heard' | cut -f 2)\$\" '$W/out' && grep -q \"^  heard  *\$(sed -n 2p '$W/heard' | cut -f 3)\$\" '$W/out' && [ \$(grep -c '^  heard' '$W/out') -eq 1 ]"
start 2 evaluate "$W/one" --samples 0
check "or nothing" sh -c "! grep -q '^  heard' '$W/out'"
"$PROGRAM" export "$W/one" --format npz --out "$W/one.npz" > "$W/out" 2>&1
check "exported, it has the names that PyTorch gives" sh -c "grep -q ': $(sed -n 's/.*"parameters":\([0-9]*\).*/\1/p' "$log" | head -n 1) parameters and 160 running statistics in 22 arrays' '$W/out' && [ \$(grep -ao 'lstm1.weight_hh_l0.npy\|lookahead.weight.npy\|bn2.running_var.npy' '$W/one.npz' | sort -u | wc -l) -eq 3 ]"
check "of pictures nothing is heard" mistaken '--samples has no effect with --model resnet20; leave it out' 1 --model resnet20 --data synthetic:8x8 --samples 2
start 2 evaluate "$W/whole"
check "evaluate: what the run printed" sh -c "grep -q '^  test loss  *$(printf '%.3f' "$(json "$W/whole/run.jsonl" summary test_loss)")\$' '$W/out' && grep -q '^  test WER ' '$W/out' && grep -q ': 3 test utterances\$' '$W/out'"
start 1 evaluate "$W/whole" --json
check "on another number of ranks the same error rates" [ "$(sed -n 's/.*"test_wer":\([^,]*\),.*/\1/p' "$W/out")" = "$(json "$W/whole/run.jsonl" summary test_wer)" ]
start 1 $small --batch 4 --epochs 3 --eval-every 1 --target wer:50 --out "$W/target"
check "a word error rate is a target" sh -c "[ \"$(json "$W/target/run.jsonl" summary reached)\" = true ] && grep -q '^  target  *test wer 50: reached' '$W/out'"
start 2 $small --batch 2 --epochs 2 --algo oktopk --density 0.1 --density-warmup none --overlap layers --accumulate 2 --out "$W/overlap"
status=$?
check "selected by layers while backward goes on, two parts a step (status $status)" [ $status -eq 0 ]

# -- mistakes --------------------------------------------------------------------------------------------------------------
check "speech with a model of images" mistaken_alone 'model resnet20 takes images, but --data ' --model resnet20 --data "speech:$W/mine"
check "images with the model of speech" mistaken_alone 'model speech takes speech, but --data synthetic' --model speech --data synthetic
check "a target that there is not" mistaken 'no accuracy; they give' 1 $small --batch 4 --epochs 1 --target accuracy:0.9
check "more in a step than there are" mistaken '--batch 9 on 1 rank is more than the 8 training utterances' 1 $small --batch 9 --epochs 1
finish
