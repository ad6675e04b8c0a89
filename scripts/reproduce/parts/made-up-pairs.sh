#!/bin/sh
# made-up-pairs.sh DIR [ARTICLES]: a small text in the form of WikiText-2 and a vocabulary of its pieces, for --data wiki:DIR: articles whose
# sentences go round a list of words, each sentence with a beginning of its own, so that a word tells of the next one.
set -eu
dir=$1 articles=${2:-12} # to train on; the default makes 43 pairs
words='the quick brown fox jumps over a lazy dog while small birds sing of rain and wind'
write() { # ARTICLES SEED
    awk -v articles="$1" -v seed="$2" -v words="$words" 'BEGIN {
        srand(seed)
        n = split(words, w, " ")
        for (a = 0; a < articles; a++) {
            printf " \n = Article %d = \n \n", a
            for (s = 0; s < 12; s++) {
                first = int(rand() * n)
                for (i = 0; i < 6; i++) printf " %s", w[1 + (first + i) % n]
                printf " ."
            }
            print " "
        }
    }'
}
mkdir -p "$dir"
write "$articles" 1 >"$dir/wiki.train.tokens"
write 4 2 >"$dir/wiki.valid.tokens"
write 3 3 >"$dir/wiki.test.tokens"
{
    printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' . = article
    # shellcheck disable=SC2086 # a list
    printf '%s\n' $words
    for i in 0 1 2 3 4 5 6 7 8 9; do printf '%s\n' $i "##$i"; done
} >"$dir/vocab.txt"
