#!/bin/sh
# cli_crafted.sh: checkpoints that somebody made to do harm, with checksums that are right: whatever they say, a resume is
# refused in one line that names the file, on all ranks, and no file is touched. Every word of an exchange's state is
# tests/comm/comm_state.c's.
# waits: for jobs that are refused
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
P=2
craft=$(pwd)/$BUILD/tests/craft
images="--data synthetic:64x16 --batch 2 --eval-every 0 --steps 4 --lr-warmup 0"

start $P $images --algo oktopk --select reuse --density 0.01 --density-warmup none --momentum-correction --out "$W/images"
check "a run on images" [ -d "$W/images/checkpoint-00000004" ]
start $P --model lstm --hidden 12 --bptt 5 --batch 2 --lr-warmup 0 --data synthetic-text:3000x300x300 --eval-every 0 --steps 4 --optimiser adam --algo topka --select sidco --density 0.05 --density-warmup none --out "$W/text"
check "a run on a text" [ -d "$W/text/checkpoint-00000004" ]

# fresh RUN: its checkpoint in $W/c/checkpoint-00000004, with nothing beside it
fresh() {
    rm -rf "$W/c" "$W/trace.json"
    mkdir "$W/c"
    cp -r "$W/$1/checkpoint-00000004" "$W/c/"
}
at=$W/c/checkpoint-00000004
changed() { "$craft" "$@" || echo "# craft $*: failed"; }

# refuses NAME TEXT: the resume of it is refused, in a line with this text; and it is still there, and nothing else
refuses() {
    mistaken "$2" $P --resume "$at" --steps 6
    refused=$?
    if [ $refused -ne 0 ]; then
        not_ok "$1" "$why"
    elif [ "$(ls "$W/c")" != checkpoint-00000004 ] || [ -e "$W/trace.json" ]; then
        not_ok "$1" "files were made: $(ls "$W" "$W/c")"
    else
        ok "$1"
    fi
}

# -- options ---------------------------------------------------------------------------------------------------------------
# options NAME TEXT SED: the options of the model as sed changes them
of=images
options() {
    fresh $of
    "$craft" "$at/model.ckpt" get options | tr -d '\0' | sed "$3" > "$W/options"
    printf '\0' >> "$W/options"
    changed "$at/model.ckpt" put options < "$W/options"
    refuses "$1" "$2"
    why="no name of the file: $(head -c 300 "$W/err")"
    if ! grep -qF "$at/model.ckpt" "$W/err"; then not_ok "$1: the line names the file" "$why"; fi
}
options "options that write a trace" "--trace" "\$a trace=$W/trace.json"
options "options that write a recording" "--record" "\$a record=$W/trace.json"
options "options that name another directory" "--out" "\$a out=$W/elsewhere"
options "options that resume" "--resume" "\$a resume=$W/text"
options "an option that does not exist" "--no-such-thing" "\$a no-such-thing=1"
options "an option twice" "--batch for the second time" "\$a batch=2"
options "an option out of range" "--batch 0" "s/^batch=.*/batch=0/"
options "an option that is no number" "--batch" "s/^batch=.*/batch=x/"
options "an option without a value" "--batch" "s/^batch=.*/batch=/"
options "a flag that is neither yes nor no" "--local-update" "s/^local-update=.*/local-update=perhaps/"
options "a choice that there is not" "--algo" "s/^algo=.*/algo=none/"
options "a line that is no option" "line 1" "1s/.*/batch/"

# Options that ask for much memory are refused before it is touched. The machine has little, as far as is said here.
of=text
options "a model that is larger than what is stored" "parameters, this model" "s/^hidden=.*/hidden=8000/"
options "more streams than are stored" "states of other streams" "s/^batch=.*/batch=20/"
options "an optimiser that keeps less" "states of an optimiser, this one" "s/^optimiser=.*/optimiser=sgd/; /^beta[12]=\|^epsilon=/d"
export SPARSETRAIN_MEMORY_FREE=41943040
of=images
options "a batch that does not fit" "for the network, and 40 MiB can be had" "s/^batch=.*/batch=32/"
options "data that do not fit" "for the dataset, and 40 MiB can be had" "s/^data=.*/data=synthetic:900000x900000/"
fresh images
check "images of which nothing is changed fit" start $P --resume "$at" --steps 5 --out "$W/fits"
export SPARSETRAIN_MEMORY_FREE=4194304
of=text
options "windows that do not fit" "for the network, and 4.00 MiB can be had" "s/^bptt=.*/bptt=700/"
fresh text
check "a text of which nothing is changed fits" start $P --resume "$at" --steps 5 --out "$W/fits-too"
unset SPARSETRAIN_MEMORY_FREE
fresh images
changed "$at/model.ckpt" set position 24 u64 4000000000
for file in rank0000.ckpt rank0001.ckpt; do changed "$at/$file" set position 24 u64 4000000000; done
refuses "four billion parameters by the position of all files" "section parameters has not the 4000000000 numbers"
of=images

# texts NAME SECTION COMMAND...: what the command prints as the section
texts() {
    texts_name=$1 section=$2
    shift 2
    fresh images
    "$craft" "$at/model.ckpt" get "$section" | "$@" > "$W/text.of"
    changed "$at/model.ckpt" put "$section" < "$W/text.of"
    refuses "$texts_name" "section $section is no text"
}
texts "a NUL in the middle of the options" options sed 's/batch=2/batch\x00=2/'
texts "options that do not end" options tr -d '\0'
texts "no options at all" options true
texts "options of 8 MB" options sh -c 'cat; head -c 8388608 /dev/zero | tr "\0" "a"; printf "\0"'

# -- position --------------------------------------------------------------------------------------------------------------
# position NAME TEXT FILE AT TYPE VALUE: see struct position in cli/checkpoint/checkpoint_files.h
position() {
    fresh images
    changed "$at/$3" set position $4 $5 $6
    refuses "$1" "$2"
}
position "a step that is not its directory's" "of step 5, not" model.ckpt 8 u64 5
position "a step that no run has" "position" model.ckpt 8 u64 0xffffffffffffffff
position "no ranks" "position" model.ckpt 16 u32 0
position "a rank that is none" "position" model.ckpt 20 u32 7
position "more parameters than there are" "position" model.ckpt 24 u64 0x7fffffffffffffff
position "a flag of 2" "position" model.ckpt 60 u32 2
position "an infinite score" "position" model.ckpt 64 f64 inf
position "another run in one rank's file" "rank0001.ckpt belongs to another run" rank0001.ckpt 0 u64 1
position "another step in one rank's file" "rank0001.ckpt" rank0001.ckpt 8 u64 3
position "another rank in one rank's file" "rank0001.ckpt belongs to another run" rank0001.ckpt 20 u32 0

# What was spent, and whether there was an evaluation: see struct tally in cli/checkpoint/tally.h
for word in "0 f64 -1" "8 f64 inf" "16 f64 -inf" "24 u64 2" "32 f64 inf"; do
    fresh images
    # shellcheck disable=SC2086 # words
    changed "$at/model.ckpt" set tally $word
    refuses "a tally with $word" "model.ckpt is damaged: its section tally has what no run takes"
done

# -- numbers ---------------------------------------------------------------------------------------------------------------
# numbers NAME RUN FILE SECTION AT VALUE
numbers() {
    fresh $2
    changed "$at/$3" set "$4" $5 f32 $6
    refuses "$1" "$3 is damaged: number $(($5 / 4)) of its section $4"
}
numbers "a parameter that is NaN" images model.ckpt parameters 400 nan
numbers "an infinite moment" images model.ckpt optimiser 4 inf
numbers "a residual that is NaN" images rank0001.ckpt residual 40 nan
numbers "an infinite velocity" images rank0000.ckpt velocity 0 -inf
numbers "a running mean that is NaN" images rank0001.ckpt "net state" 0 nan
numbers "a running variance below 0" images rank0001.ckpt "net state" 64 -1
numbers "a stream that is NaN" text rank0000.ckpt streams 8 nan
fresh text
bytes=$("$craft" "$at/model.ckpt" get optimiser | wc -c)
numbers "a mean of squares below 0" text model.ckpt optimiser $((bytes / 2)) -1

# -- the exchange ----------------------------------------------------------------------------------------------------------
# state NAME TEXT RUN FILES AT TYPE VALUE
state() {
    fresh $3
    for file in $4; do changed "$at/$file" set exchange $5 $6 $7; done
    refuses "$1" "$2"
}
both="rank0000.ckpt rank0001.ckpt"
state "regions that go back" "oktopk's regions" images "$both" 56 u64 0xffffffff
state "regions that one rank alone has" "rank 1 has another state" images rank0001.ckpt 56 u64 7
state "a step that one rank alone is at" "rank 1 has another state" images rank0001.ckpt 0 u64 63
state "a threshold that is NaN" "oktopk's threshold" images "$both" 24 u32 0x7fc00000
state "a slope that no threshold has" "oktopk's threshold" images rank0000.ckpt 28 u32 255
state "a local threshold that is NaN" "rank0001.ckpt is damaged: its section exchange: the reuse selector's" images rank0001.ckpt 80 u32 0x7fc00000
state "four billion stages" "sidco" text "$both" 12 u32 0xffffffff
state "no stage" "sidco" text rank0000.ckpt 12 u32 0

# -- the container ---------------------------------------------------------------------------------------------------------
fresh images
changed "$at/model.ckpt" add options
refuses "a section twice" "model.ckpt is damaged"
fresh images
changed "$at/model.ckpt" name layout aaaaaaaaaaaaaaaaaaaaaaaaaaaa
refuses "a section's name without an end" "model.ckpt is damaged"
fresh images
changed "$at/model.ckpt" name layout "$(printf '\033[2J')"
refuses "a section's name that moves the cursor" "model.ckpt is damaged"
fresh images
changed "$at/model.ckpt" place layout 0 8
refuses "a section that lies over the head" "model.ckpt is damaged"
fresh images
changed "$at/rank0001.ckpt" place residual 18446744073709551608 16
refuses "a section that ends behind all numbers" "rank0001.ckpt is damaged"

# -- the other readers: export, evaluate, --init-from ---------------------------------------------------------------------------
# reads NAME TEXT: all three refuse it
reads() {
    check "export: $1" mistaken_alone "$2" export "$at" --format npz --out "$W/model.npz"
    check "evaluate: $1" mistaken "$2" $P evaluate "$at"
    check "--init-from: $1" mistaken "$2" $P $images --init-from "$at" --out "$W/new"
    check "nothing was made: $1" [ ! -e "$W/model.npz" -a ! -e "$W/new/run.jsonl" ]
}
fresh images
changed "$at/model.ckpt" set parameters 0 f32 nan
reads "a parameter that is NaN" "section parameters is NaN"
fresh images
changed "$at/rank0001.ckpt" set "net state" 64 f32 -1
reads "a running variance below 0" "section net state"
fresh images
printf 'parameter conv1.weight 65535 65535\n\0' | "$craft" "$at/model.ckpt" put layout
reads "a layout of four billion numbers" "model.ckpt"
fresh images
"$craft" "$at/model.ckpt" get layout | sed '1i nonsense 1' | "$craft" "$at/model.ckpt" put layout
reads "a layout with a line that is none" "model.ckpt is damaged: its list of slices"
fresh images
"$craft" "$at/model.ckpt" get layout | sed 's/ conv1.weight/ ..\/..\/conv1/' | "$craft" "$at/model.ckpt" put layout
reads "a layout with a path in it" "model.ckpt is damaged: its list of slices"

# -- on other numbers of ranks: all of them end, whoever's file it is ----------------------------------------------------------------
for P in 1 3 4; do
    of=images$P last=rank000$((P - 1)).ckpt
    start $P $images --algo oktopk --select reuse --density 0.01 --density-warmup none --out "$W/$of"
    options "options that write a trace, $P ranks" "--trace" "\$a trace=$W/trace.json"
    numbers "a residual that is NaN, $P ranks" $of $last residual 40 nan
    state "a local threshold that is NaN, $P ranks" "$last is damaged: its section exchange: the reuse selector's" $of $last $((64 + 8 * P)) u32 0x7fc00000
    if [ $P -gt 1 ]; then state "a step that one rank alone is at, $P ranks" "rank $((P - 1)) has another state" $of $last 0 u64 63; fi
done
P=2

# -- of another run or model, where all files agree; one rank, to be quick -------------------------------------------------------------
P=1
# alike NAME TEXT AT TYPE VALUE: the same in the positions of all files
alike() {
    fresh images1
    for file in model.ckpt rank0000.ckpt; do changed "$at/$file" set position $3 $4 $5; done
    refuses "$1" "$2"
}
alike "another number of parameters" "section parameters has not the 300000 numbers of its position" 24 u64 300000
alike "another optimiser's states" "section optimiser has not the 1 numbers of its position" 32 u64 1
alike "other statistics" "section net state has not the 1 numbers of its position" 40 u64 1
alike "states of streams that this run has not" "rank0000.ckpt has no section streams" 48 u64 1
alike "another dataset" "the dataset differs from the one of the checkpoint (checksum 00000001, now " 56 u32 1

# written NAME TEXT SECTION: a finite number is no longer that which was written
written() {
    fresh images1
    changed "$at/model.ckpt" set "$3" 0 f32 0.125
    refuses "$1" "$2"
}
written "a parameter that training did not leave" "its parameters are not those that its hashes are of" parameters
written "a moment that training did not leave" "its optimiser's states are not those that its hashes are of" optimiser

# lacks FILE SECTION: under another name
lacks() {
    fresh images1
    changed "$at/$1" name "$2" other
    refuses "$1 without $2" "$1 has no section $2"
}
for section in position options parameters optimiser; do lacks model.ckpt $section; done
for section in position exchange residual "net state"; do lacks rank0000.ckpt "$section"; done
fresh images1
printf 1234 | "$craft" "$at/model.ckpt" put hashes
refuses "hashes of another length" "has 4 bytes of hashes where this run needs 16"
fresh images1
changed "$at/model.ckpt" name hashes other
check "without hashes, as older versions wrote it, a run goes on" start 1 --resume "$at" --steps 6 --out "$W/on-unhashed"

# Replicas that drift: what each rank has of its own is looked at, too.
start 1 $images --optimiser adam --algo fedavg --average-every 3 --out "$W/drifts"
# own NAME TEXT SECTION AT VALUE
own() {
    fresh drifts
    changed "$at/rank0000.ckpt" set "$3" $4 f32 $5
    refuses "$1" "$2"
}
own "an own parameter that training did not leave" "its parameters are not those that its hashes are of" "own parameters" 0 0.125
own "an own moment that training did not leave" "its optimiser's states are not those that its hashes are of" "own optimiser" 0 0.125
fresh drifts
bytes=$("$craft" "$at/rank0000.ckpt" get "own optimiser" | wc -c)
own "an own mean of squares below 0" "section own optimiser, a mean of squares, is below 0" "own optimiser" $((bytes / 2)) -1
fresh drifts
printf 1234 | "$craft" "$at/rank0000.ckpt" put "own hashes"
refuses "own hashes of another length" "has 4 bytes of own hashes where this run needs 16"

for file in model.ckpt rank0000.ckpt; do changed "$W/drifts/checkpoint-00000004/$file" set position 60 u32 0; done

# exported NAME TEXT RUN FILE CRAFT-ARGS...: what export says of it
exported() {
    e_name=$1 e_text=$2 e_file=$4
    fresh $3
    shift 4
    changed "$at/$e_file" "$@"
    check "export: $e_name" unmade "$W/model.npz" mistaken_alone "$e_text" export "$at" --format npz --out "$W/model.npz"
}
exported "no layout, as versions before wrote it" "it was written by an older version" images1 model.ckpt name layout other
exported "no position" "model.ckpt has no section position" images1 model.ckpt name position other
exported "no parameters" "its list of slices is not of its parameters" images1 model.ckpt name parameters other
exported "options that are none" "its section options is no text" images1 model.ckpt put options < /dev/null
exported "fewer parameters than the layout has" "its list of slices is not of its parameters" images1 model.ckpt put parameters < /dev/null
exported "a position of other parameters" "its list of slices is not of its parameters" images1 model.ckpt set position 24 u64 300000
exported "a position of other statistics" "its list of slices is not of its parameters" images1 model.ckpt set position 40 u64 1
exported "a rank's file without a position" "rank0000.ckpt has no section position" images1 rank0000.ckpt name position other
exported "a rank's file of another run" "rank0000.ckpt belongs to another run" images1 rank0000.ckpt set position 0 u64 1
exported "a rank's file without statistics" "rank0000.ckpt has no section net state" images1 rank0000.ckpt name "net state" other
exported "an own parameter that is NaN" "section own parameters is NaN" drifts rank0000.ckpt set "own parameters" 0 f32 nan
exported "own parameters of another number" "has 0 bytes of own parameters" drifts rank0000.ckpt put "own parameters" < /dev/null
fresh images1
rm "$at/rank0000.ckpt"
check "export: a rank's file is not there" mistaken_alone "No such file" export "$at" --format npz --out "$W/model.npz"
fresh images1
: > "$at/model.ckpt"
check "export: an empty model.ckpt" mistaken_alone "model.ckpt is truncated" export "$at" --format npz --out "$W/model.npz"
P=2

# -- as it was, all of it goes on --------------------------------------------------------------------------------------------------
for run in images text; do
    fresh $run
    changed "$at/model.ckpt" set position 60 u32 0
    check "the $run run goes on where nothing was changed" start $P --resume "$at" --steps 6 --out "$W/on-$run"
done
finish
