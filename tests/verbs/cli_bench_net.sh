#!/bin/sh
# cli_bench_net.sh: `sparsetrain bench net`: its options, its table, its JSON; every mistake: one line, status 2. How
# fast anything is, is not looked at.
. tests/lib/tap.sh
quick="--batch 4,8 --steps 1 --repeat 2"

start 1 bench net --help
check "--help" grep -q '^usage: sparsetrain bench net' "$W/out"
# shellcheck disable=SC2086
start 1 bench net $quick
check "bench net exits with 0" [ $? -eq 0 ]
check "a row for each batch size, none wrong" [ "$(awk '!/^#/ { printf "%s %s %s, ", $1, $2, $NF }' "$W/out")" = "resnet20 4 0, resnet20 8 0, " ]
# shellcheck disable=SC2086
start 1 bench net $quick --model resnet20 --threads 2 --device cpu --precision f32 --json
check "the options are in the JSON" [ "$(grep -c '^{"bench":"net","model":"resnet20","device":"cpu",.*"precision":"f32",.*"threads":2,"steps":1,"repeat":2,.*"wrong":0,"memory_max":[0-9][0-9]*}$' "$W/out") $(wc -l < "$W/out")" = "2 2" ]
check "it says what memory it took: more for more images" sh -c "sed 's/.*\"memory_max\"://; s/}//' '$W/out' | awk 'NR == 1 { first = \$1 } END { exit !(first > 1e7 && \$1 > first) }'"
words="--model lstm --hidden 40 --sequence 3 --batch 2,4 --steps 1 --repeat 2"
# shellcheck disable=SC2086
start 1 bench net $words
check "a model of words: a row for each number of streams, none wrong" [ "$(awk '!/^#/ { printf "%s %s %s, ", $1, $2, $NF }' "$W/out")" = "lstm 2 0, lstm 4 0, " ]
check "words a second, of so many features and words" sh -c "grep -q '^# 40 hidden features, 3 words' '$W/out' && grep -q 'words/s' '$W/out' && ! grep -q images/s '$W/out'"
check "ms/step is that of a step's words" [ "$(awk '!/^#/ { off = $7 * $4 / ($2 * 3) / 1000; if (off < 0.98 || off > 1.02) print }' "$W/out")" = "" ]
# shellcheck disable=SC2086
start 1 bench net $words --json
check "the sizes are in the JSON" [ "$(grep -c '^{"bench":"net","model":"lstm",.*"batch":[24],"hidden":40,"sequence":3,.*"words_per_s":.*"least_words_per_s":.*"most_words_per_s":.*"wrong":0,"memory_max":[0-9][0-9]*}$' "$W/out") $(grep -c images_per_s "$W/out")" = "2 0" ]
start 1 bench net --model lstm --hidden 4 --steps 1 --repeat 1 --json
check "20 streams of 35 words unless told otherwise" grep -q '"batch":20,"hidden":4,"sequence":35,' "$W/out"

features=2 # where the build has FFTW
if "$PROGRAM" list | grep -q 'lacks FFTW'; then features=0; fi
speech="--model speech --hidden 16 --layers 1 --frames 60 --batch 2,3 --steps 1 --repeat 2 --device cpu"
# shellcheck disable=SC2086
start 1 bench net $speech
check "speech: a row for each batch, none wrong" [ "$(awk '!/^#/ { printf "%s %s %s, ", $1, $2, $NF }' "$W/out")" = "speech 2 0, speech 3 0, " ]
check "utterances a second, of so many layers and frames" sh -c "grep -q '^# 1 LSTM layers of 16 features, 60 frames' '$W/out' && grep -q 'utterances/s' '$W/out'"
check "and what their features take, which are made anew for each batch" [ "$(grep -c '^#   features, made anew for each batch: [0-9.]* ms an utterance, [0-9.]*% of its part of a step$' "$W/out")" = "$features" ]
# shellcheck disable=SC2086
start 1 bench net $speech --json
check "which is in the JSON, too" [ "$(grep -c '"feature_s":[0-9.e-]*,"wrong"' "$W/out")" = "$features" ]
check "its sizes are in the JSON" [ "$(grep -c '^{"bench":"net","model":"speech",.*"batch":[23],"hidden":16,"layers":1,"frames":60,.*"utterances_per_s":.*"wrong":0,' "$W/out")" = 2 ]

# -- mistakes --------------------------------------------------------------------------------------------------------
# wrong TEXT ARGS...: status 2, nothing but one line on stderr, which has TEXT in it
wrong() {
    wrong_text=$1
    shift
    start 1 bench net "$@"
    wrong_status=$?
    if [ $wrong_status -eq 2 ] && [ "$(our_lines)" -eq 1 ] && [ ! -s "$W/out" ] && grep -qF -- "$wrong_text" "$W/err"; then
        ok "$*: $wrong_text"
    else
        not_ok "$*: $wrong_text" "status $wrong_status: $(head -c 300 "$W/err")"
    fi
}
wrong '--model has no "nothing"; there are: resnet20' --model nothing
wrong "whole numbers at least 1 and at most 10000" --batch 0
wrong "whole numbers at least 1 and at most 10000" --batch 4,x
wrong "at most 64 numbers" --batch "$(yes 1 | head -n 65 | tr "\n" , | sed "s/,\$//")"
wrong "wants a number" --steps 1,2
wrong "at least 1 and at most 10000" --repeat 0
wrong "at least 1 and at most 10000" --threads -1
wrong "--sequence is for models of words, but speech takes speech" --model speech --sequence 35
wrong "--frames is for models of speech, but lstm takes text" --model lstm --frames 100
wrong "at least 48 and at most 10000" --model speech --frames 10
wrong "--hidden is for models of words, but resnet20 takes images" --hidden 200
wrong "--sequence is for models of words, but resnet20 takes images" --sequence 35 --model resnet20
wrong "at least 1 and at most 10000" --model lstm --hidden 0
wrong "wants a number" --model lstm --sequence 1,2
wrong "--batch wants a value" --batch
wrong "there is no option --bogus" --bogus 1
wrong '--device has no "abacus"; there are: auto, cpu, cuda' --device abacus
wrong '--precision has no "f8"; there are: f32' --precision f8
wrong "--precision bf16 needs a GPU" --device cpu --precision bf16
finish
