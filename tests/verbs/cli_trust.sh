#!/bin/sh
# cli_trust.sh: what lies in the directory of a run, or where the user points, is not trusted: nothing that the program
# did not write is removed or written to, through no link, and nothing hangs where a file is not a regular one.
# waits: for jobs that are refused
. tests/lib/tap.sh
common="--data synthetic:64x8 --batch 4 --eval-every 0 --checkpoint-every 2"

# -- cleaning up -----------------------------------------------------------------------------------------------------------
# elsewhere: a folder that links lead to; whole: is all of it there?
elsewhere() {
    rm -rf "$W/elsewhere"
    mkdir "$W/elsewhere"
    for file in model.ckpt rank0000.ckpt thesis.tex; do echo precious > "$W/elsewhere/$file"; done
}
whole() {
    why="elsewhere there is: $(ls "$W/elsewhere")"
    [ "$(cat "$W/elsewhere/model.ckpt" "$W/elsewhere/rank0000.ckpt" "$W/elsewhere/thesis.tex" 2> /dev/null | grep -c precious)" -eq 3 ]
}
# said TEXT: what has just run said so once
said() {
    why="said: $(grep -v step "$W/out" | head -c 600)"
    [ "$(grep -cF -- "$1" "$W/out")" -eq 1 ]
}

for p in 1 3; do
    elsewhere
    # shellcheck disable=SC2086
    start $p $common --steps 4 --keep 1 --out "$W/run$p"
    ln -s "$W/elsewhere" "$W/run$p/checkpoint-00000099.tmp"
    ln -s "$W/elsewhere" "$W/run$p/checkpoint-00000098.old"
    ln -s "$W/elsewhere" "$W/run$p/checkpoint-00000001"
    mkdir "$W/run$p/checkpoint-00000097.tmp" "$W/run$p/checkpoint-00000096.tmp" "$W/run$p/checkpoint-mine.tmp"
    touch "$W/run$p/checkpoint-00000097.tmp/model.ckpt" "$W/run$p/checkpoint-00000097.tmp/notes.txt" "$W/run$p/checkpoint-00000096.tmp/rank0000.ckpt" \
        "$W/run$p/checkpoint-mine.tmp/model.ckpt"
    start $p --resume "$W/run$p" --steps 10 --checkpoint-every 2
    check "P=$p: a run goes on beside what is not its own" [ $? -eq 0 ]
    check "P=$p: links to elsewhere are not followed" whole
    check "P=$p: a folder with other files is left" [ -e "$W/run$p/checkpoint-00000097.tmp/notes.txt" ]
    check "P=$p: all of it" [ -e "$W/run$p/checkpoint-00000097.tmp/model.ckpt" ]
    check "P=$p: and one of another name" [ -e "$W/run$p/checkpoint-mine.tmp/model.ckpt" ]
    check "P=$p: what is ours has gone" [ ! -e "$W/run$p/checkpoint-00000096.tmp" ]
    check "P=$p: it is said, once" said "is left as it is"
    check "P=$p: old checkpoints have gone" [ ! -e "$W/run$p/checkpoint-00000004" ]

    # In the very place of the next checkpoint.
    # shellcheck disable=SC2086
    start $p $common --steps 2 --out "$W/place$p"
    ln -s "$W/elsewhere" "$W/place$p/checkpoint-00000004.tmp"
    start $p --resume "$W/place$p" --steps 4 --checkpoint-every 2
    check "P=$p: a link in the place of a checkpoint ends it well" [ $? -ne 0 ]
    check "P=$p: with a line that names it" grep -q '^sparsetrain: .*checkpoint-00000004.tmp' "$W/err"
    check "P=$p: and nothing is written behind it" whole
    check "P=$p: no file was added" [ "$(find "$W/elsewhere" -type f | wc -l)" -eq 3 ]
done

# The directory of the run itself may be a link, and files of a checkpoint may be kept elsewhere.
elsewhere
mkdir "$W/large"
ln -s "$W/large" "$W/linked"
# shellcheck disable=SC2086
start 1 $common --steps 4 --out "$W/linked"
mv "$W/large/checkpoint-00000002/model.ckpt" "$W/large/checkpoint-00000002/rank0000.ckpt" "$W/elsewhere"
ln -s "$W/elsewhere/model.ckpt" "$W/elsewhere/rank0000.ckpt" "$W/large/checkpoint-00000002"
start 1 --resume "$W/linked/checkpoint-00000002" --out "$W/again"
check "a run behind a link, with files behind links, resumes to the same bits" [ "$(hash_of "$W/linked")" = "$(hash_of "$W/again")" ]

# -- reading ---------------------------------------------------------------------------------------------------------------
# refused NAME TEXT P ARGS...: in one line that has TEXT, at once: whoever waits for a FIFO runs into the time limit
refused() {
    refused_name=$1
    shift
    check "$refused_name" mistaken "$@"
}
for p in 1 2; do
    # shellcheck disable=SC2086
    start $p $common --steps 2 --out "$W/read$p"
    for file in model.ckpt rank0000.ckpt; do
        mv "$W/read$p/checkpoint-00000002/$file" "$W/kept"
        mkfifo "$W/read$p/checkpoint-00000002/$file"
        refused "P=$p: a FIFO in the place of $file" FIFO $p --resume "$W/read$p/checkpoint-00000002" --out "$W/new"
        rm "$W/read$p/checkpoint-00000002/$file"
        mkdir "$W/read$p/checkpoint-00000002/$file"
        refused "P=$p: a directory in the place of $file" directory $p --resume "$W/read$p" --out "$W/new"
        rmdir "$W/read$p/checkpoint-00000002/$file"
        ln -s /dev/zero "$W/read$p/checkpoint-00000002/$file"
        refused "P=$p: a device in the place of $file" device $p --resume "$W/read$p" --out "$W/new"
        rm "$W/read$p/checkpoint-00000002/$file"
        mv "$W/kept" "$W/read$p/checkpoint-00000002/$file"
    done
done

# The log: what lies in its place in the directory of a run.
for p in 1 2; do
    elsewhere
    # shellcheck disable=SC2086
    start $p $common --steps 2 --out "$W/log$p"
    mv "$W/log$p/run.jsonl" "$W/kept"
    mkfifo "$W/log$p/run.jsonl"
    refused "P=$p: a FIFO in the place of the log" FIFO $p --resume "$W/log$p" --steps 4
    rm "$W/log$p/run.jsonl"
    mkdir "$W/dangling$p"
    ln -s "$W/elsewhere/new" "$W/dangling$p/run.jsonl"
    # shellcheck disable=SC2086
    refused "P=$p: a link in the place of the log" "it is a link" $p $common --steps 2 --out "$W/dangling$p"
    check "P=$p: nothing is made behind it" [ ! -e "$W/elsewhere/new" ]
    mv "$W/kept" "$W/log$p/run.jsonl"
    ln -s "$W/elsewhere/thesis.tex" "$W/log$p/run.jsonl.tmp"
    start $p --resume "$W/log$p" --steps 4 --checkpoint-every 2
    check "P=$p: a link in the place of a half-written log is not followed" [ $? -eq 0 -a -f "$W/log$p/run.jsonl" ]
    check "P=$p: elsewhere is whole" whole
done

# -- files that the user names, to be read ---------------------------------------------------------------------------------
bad=$W/bad
mkdir "$bad" "$bad/folder"
mkfifo "$bad/fifo"
ln -s fifo "$bad/link"
ln -s /dev/zero "$bad/zero"
# unreadable NAME P ARGS... with FILE for the name: whatever is no regular file is refused in one line, and none is waited for
unreadable() {
    un_name=$1 un_p=$2
    shift 2
    for un_what in folder:directory fifo:FIFO link:FIFO zero:device; do
        un_args=$(printf '%s\n' "$@" | sed "s|FILE|$bad/${un_what%:*}|")
        # shellcheck disable=SC2086
        refused "$un_name: ${un_what%:*}" "it is a ${un_what#*:}" "$un_p" $un_args
    done
}
unreadable "bench --pattern real:" 2 bench --pattern real:FILE
unreadable "bench --pattern selected:" 2 bench --pattern selected:FILE
unreadable "bench --pattern fitted:" 2 bench --pattern fitted:FILE
unreadable "fit" 1 fit FILE
unreadable "predict --net" 1 predict --net FILE
unreadable "predict --rows" 1 predict --net 1gbe --rows FILE
unreadable "predict --costs" 1 predict --best --net 1gbe --n 1000 --density 0.01 --costs FILE
unreadable "costs" 1 costs FILE --model vgg16

# datasets: files of a directory, packed or not, an archive
mkdir "$W/cifar" "$W/text"
for i in 1 2 3 4 5; do head -c 3073 /dev/zero > "$W/cifar/data_batch_$i.bin"; done
mkfifo "$W/cifar/test_batch.bin"
refused "a FIFO among the files of CIFAR-10" "is not a file" 2 --data "cifar10:$W/cifar" --steps 1
refused "a FIFO as the archive of CIFAR-10" "it is a FIFO" 2 --data "cifar10:$bad/fifo" --steps 1
refused "a device as the archive of CIFAR-10" "it is a device" 1 --data "cifar10:$bad/zero" --steps 1
for file in train.txt valid.txt; do echo "a b c" > "$W/text/$file"; done
mkfifo "$W/text/test.txt"
refused "a FIFO among the files of a text" "is not a file" 2 --model lstm --data "ptb:$W/text" --steps 1
rm "$W/text/test.txt"
mkfifo "$W/text/test.txt.gz"
refused "the same, packed" "is not a file" 2 --model lstm --data "ptb:$W/text" --steps 1

# What a shell pipes in is read.
start 2 bench --algo dense --n 100 --warmup 1 --repeat 2 --json
cp "$W/out" "$W/rows"
for way in /dev/stdin /dev/fd/0 /proc/self/fd/0; do
    check "predict --rows $way of a pipe" sh -c "grep '^{' '$W/rows' | '$PROGRAM' predict --net 1gbe --rows $way > '$W/out' 2> '$W/err' && grep -q '^dense' '$W/out'"
done

# -- files that the user names, to be written -----------------------------------------------------------------------------
ln -s nowhere "$bad/dangling"
rm "$bad/zero"
ln -s /dev/full "$bad/device"
inventory() { find "$bad" -printf '%p %y %l %i\n' | sort; }
inventory > "$W/inventory"
unchanged() {
    why="there is now: $(inventory | diff - "$W/inventory" | head -c 500)"
    inventory | cmp -s - "$W/inventory"
}
# unwritable NAME OPTION P ARGS...: OPTION with what is no regular file is refused in one line, before any work, and stays
unwritable() {
    un_name=$1 un_option=$2 un_p=$3
    shift 3
    for un_what in "folder:it is a directory" "fifo:it is a FIFO" "link:it is a FIFO" "device:it is a device" "dangling:it is a link that leads nowhere" \
        "none/file:No such file"; do
        refused "$un_name: ${un_what%%:*}" "cannot write $bad/${un_what%%:*}: ${un_what#*:}" "$un_p" "$@" "$un_option" "$bad/${un_what%%:*}"
        check "$un_name: ${un_what%%:*}, no work is done" [ ! -s "$W/out" ]
    done
    check "$un_name: nothing is replaced" unchanged
}
start 2 --data synthetic:64x8 --batch 4 --steps 3 --eval-every 0 --algo topka --density 0.01 --density-warmup none --record "$W/recording" --record-what selected
check "a recording to fit" [ -s "$W/recording" ]
unwritable "train --trace" --trace 1 --data synthetic:64x8 --batch 4 --steps 1 --eval-every 0
unwritable "train --trace on 3 ranks" --trace 3 --data synthetic:64x8 --batch 4 --steps 1 --eval-every 0
unwritable "bench --trace" --trace 2 bench --algo dense --n 100
unwritable "export --out" --out 1 export "$W/read1" --format npz
unwritable "fit --out" --out 1 fit "$W/recording"
unwritable "p2p --out" --out 2 p2p --sizes 4:16:2 --repeat 2
unwritable "data show --png" --png 1 data show --data synthetic:64x8

# writes NAME OPTION P ARGS...: nothing, a file and a link to one can be written to, the link stays; /dev/null keeps nothing
writes() {
    wr_name=$1 wr_option=$2 wr_p=$3
    shift 3
    rm -rf "$W/good"
    mkdir "$W/good"
    echo old > "$W/good/file"
    ln -s file "$W/good/link"
    for wr_what in fresh file link; do
        [ "$wr_what" != link ] || echo old > "$W/good/file"
        start "$wr_p" "$@" "$wr_option" "$W/good/$wr_what"
        check "$wr_name: $wr_what" [ $? -eq 0 -a "$(wc -c < "$W/good/$wr_what")" -gt 10 ]
    done
    check "$wr_name: the link is still one" [ -L "$W/good/link" ]
    check "$wr_name: the file has changed" [ "$(head -n 1 "$W/good/file" | tr -d '\0')" != old ]
    check "$wr_name: nothing else is there" [ "$(find "$W/good" -mindepth 1 | wc -l)" -eq 3 ]
    start "$wr_p" "$@" "$wr_option" /dev/null
    check "$wr_name: /dev/null" [ $? -eq 0 -a -c /dev/null ]
    { echo before && "$PROGRAM" version > /dev/null && start "$wr_p" "$@" "$wr_option" /dev/stdout && cat "$W/out" && echo after; } > "$W/all"
    check "$wr_name: /dev/stdout" [ $? -eq 0 -a "$(wc -c < "$W/all")" -gt 20 -a "$(tail -n 1 "$W/all" | tail -c 6)" = after ]
}
writes "train --trace" --trace 2 --data synthetic:64x8 --batch 4 --steps 1 --eval-every 0
writes "bench --trace" --trace 2 bench --algo dense --n 100 --warmup 1 --repeat 1
writes "export --out" --out 1 export "$W/read1" --format npz
writes "fit --out" --out 1 fit "$W/recording"
writes "p2p --out" --out 2 p2p --sizes 4:16:2 --repeat 2
writes "data show --png" --png 1 data show --data synthetic:64x8

# -- bytes that are no text -----------------------------------------------------------------------------------------------
# utf8_json FILE: every line of it is JSON, in UTF-8, by the letter
utf8_json() {
    why="not JSON in UTF-8: $1"
    python3 -c "import json,sys; [json.loads(line.decode('utf-8', 'strict')) for line in open(sys.argv[1], 'rb')]" "$1" 2> "$W/why"
}
if command -v python3 > /dev/null 2>&1; then
    odd=$W/$(printf 'caf\351 \303\050 \355\240\200 "\\ \001 \303\251')
    # shellcheck disable=SC2086
    start 2 $common --steps 2 --out "$odd" --trace "$odd.trace"
    check "a run in a directory whose name is no UTF-8" [ $? -eq 0 ]
    check "its log is JSON" utf8_json "$odd/run.jsonl"
    check "what is UTF-8 in it is kept" grep -q 'caf\\ufffd .*é' "$odd/run.jsonl"
    start 1 evaluate "$odd" --json
    check "evaluate --json is JSON" utf8_json "$W/out"
    start 1 config --out "$odd"
    check "the option keeps its bytes" grep -qF "out=$odd" "$W/out"
    rm -rf "$odd/checkpoint-00000004"
    start 2 --resume "$odd" --steps 4
    check "the run goes on in the same directory" [ $? -eq 0 -a -d "$odd/checkpoint-00000004" ]
    check "its log is still JSON" utf8_json "$odd/run.jsonl"
else
    skip "the log of a run in a directory whose name is no UTF-8" "python3 is not installed"
fi
finish
