#!/bin/sh
# cli_speech.sh: recorded speech by the real program: what is listed, what data show draws, and every mistake in one line.
# quick: on
. tests/lib/tap.sh
. tests/lib/wav.sh

if "$PROGRAM" list | grep -q 'lacks FFTW'; then
    skip "speech" "this build lacks FFTW"
    finish
    exit
fi

mkdir "$W/mine"
for i in 1 2 3 4 5 6 7 8; do wav "$W/mine/$i.wav" $((3000 + i * 1000)); done
for i in 1 2 3 4 5 6; do echo "$i.wav say number $i" | sed 's/[0-9]$/X/'; done > "$W/mine/train.txt"
printf '7.wav\tSEVEN\n8.wav\tEIGHT\n' > "$W/mine/test.txt"

# -- what there is ---------------------------------------------------------------------------------------------------------
start 1 list
check "list has both sets" [ "$(grep -cE '^  (an4 .*names, addresses|speech .*recordings of one)' "$W/out")" -eq 2 ]
SPARSETRAIN_DATA=$W start 1 list
check "where there is none it says how to get it" grep -q "$W holds no AN4: .*fetch-data.sh an4" "$W/out"
SPARSETRAIN_DATA=$W/mine start 1 list --json
check "list --json: its kind" grep -q '"name":"speech".*"found":"[^"]*/mine","kind":"speech","built_in":false' "$W/out"

# -- data show -------------------------------------------------------------------------------------------------------------
show="data show --data speech:$W/mine"
png() { [ "$(head -c 4 "$1" | tail -c 3)" = PNG ]; }
# shellcheck disable=SC2086 # lists of arguments
{
    start 1 $show --png "$W/a.png" --rows 3
    check "data show draws them" png "$W/a.png"
    start 1 $show --png "$W/b.png" --rows 3 --columns 2 --zoom 1 --epoch 0 --seed 1
    check "by default two side by side, a point for a frame" cmp -s "$W/a.png" "$W/b.png"
    start 1 $show --png "$W/b.png" --rows 3 --epoch 1
    check "another epoch has another order" sh -c "head -c 4 '$W/b.png' | grep -q PNG && ! cmp -s '$W/a.png' '$W/b.png'"
    start 1 $show --png "$W/b.png" --rows 3 --no-augment
    check "not changed at random" sh -c "head -c 4 '$W/b.png' | grep -q PNG && ! cmp -s '$W/a.png' '$W/b.png'"
    start 1 $show --png "$W/c.png" --test --rows 1 --zoom 2
    check "data show of the test set" png "$W/c.png"
    start 1 $show --png "$W/b.png"
    check "no more than there are, unless told so" cmp -s "$W/a.png" "$W/b.png"
    start 1 $show --png "$W/c2.png" --test
    check "a line of the two of the test" png "$W/c2.png"
    check "more than there are" silent mistaken_alone 'a sheet of 2 x 4 pictures is more than the 6 utterances there are; ask for fewer' $show --rows 4 --png "$W/x.png"
    check "no picture" silent mistaken_alone 'data show: --png FILE is needed' $show
    check "options of other kinds" silent mistaken_alone 'data show: --json has no effect with --data speech, which holds speech; leave it out' $show --json --png "$W/x.png"
    check "an epoch of the test set" silent mistaken_alone 'data show: --epoch has no effect with --test; leave it out' $show --test --epoch 1 --png "$W/x.png"
}
if start 1 data show --data an4 --png "$W/an4.png"; then
    check "data show of AN4" png "$W/an4.png"
else
    skip "data show of AN4" "$(head -n 1 "$W/err")"
fi

# -- mistakes --------------------------------------------------------------------------------------------------------------
check "a model that takes none" mistaken 'model resnet20 takes images, but --data speech holds speech' 3 train --data "speech:$W/mine" --steps 1
check "another one" mistaken 'model lstm takes text, but --data an4 holds speech' 2 train --model lstm --data an4 --steps 1
# refused NAME TEXT: data show of what lies in $W/mine
refused() { check "$1" silent mistaken_alone "$2" data show --data "speech:$W/mine" --png "$W/x.png" --rows 1; }
wav "$W/mine/2.wav" 5000 8000
refused "a wrong rate" "$W/mine/2.wav cannot be used: it has 8000 samples a second, not 16000"
wav "$W/kept" 5000
head -c 4000 "$W/kept" > "$W/mine/2.wav"
refused "a truncated recording" "$W/mine/2.wav cannot be used: its header speaks of 10044 bytes and it has 4000 (truncated?)"
: > "$W/mine/2.wav"
refused "an empty recording" "$W/mine/2.wav cannot be used: it is not a WAV file"
wav "$W/mine/2.wav" 800
refused "one too short for what is said" "$W/mine/2.wav is too short for its transcript, in line 2 of $W/mine/train.txt"
rm "$W/mine/2.wav"
refused "one that is not there" "$W/mine/train.txt: line 2 names $W/mine/2.wav, which cannot be read: No such file or directory"
mkfifo "$W/mine/2.wav"
refused "one that is no file" "$W/mine/train.txt: line 2 names $W/mine/2.wav, which is not a file"
echo "1.wav line 1" > "$W/mine/train.txt"
refused "a character that has no label" "$W/mine/train.txt: the transcript in line 1 has \"1\""
rm "$W/mine/test.txt"
echo "1.wav line one" > "$W/mine/train.txt"
refused "no list of the test set" "$W/mine/test.txt"
check "nothing was drawn by any of these" [ ! -e "$W/x.png" ]
finish
