#!/bin/sh
# made-up-speech.sh DIR: recordings with what is said in them, for --data speech:DIR: each letter is a tone of its own, a twentieth of a
# second long, a blank is silence, so that a small network soon hears more than nothing.
set -eu
. scripts/lib/wav.sh
dir=$1
mkdir -p "$dir"
# tones TEXT: the samples; their bytes are never 0, which not every awk can print: of a sample both lie in 1 to 255
tones() {
    LC_ALL=C awk -v text="$1" 'BEGIN {
        for (i = 1; i <= length(text); i++) {
            at = index("ABCDEFGHIJKLMNOPQRSTUVWXYZ", substr(text, i, 1))
            for (t = 0; t < 800; t++) {
                high = at ? int(20 * sin(6.2831853 * (200 + 150 * at) * t / 16000)) : 0
                printf "%c%c", 1 + (t * 7 + i) % 250, (high > 0 ? high : high < 0 ? 256 + high : 1)
            }
        }
    }'
}
say() { # say LIST TEXT
    said=$((said + 1))
    { wav_header $((800 * ${#2})) && tones "$2"; } >"$dir/$said.wav"
    printf '%s.wav\t%s\n' $said "$2" >>"$dir/$1.txt"
}
said=0
rm -f "$dir/train.txt" "$dir/test.txt"
for first in GO STOP YES NO TEN SIX; do
    for second in UP ON BY IN; do say train "$first $second"; done
done
for each in 'GO ON' 'NO UP' 'SIX BY' 'TEN IN'; do say test "$each"; done
