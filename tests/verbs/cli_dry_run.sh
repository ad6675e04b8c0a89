#!/bin/sh
# cli_dry_run.sh: --dry-run says what a run would do and ends with 0, and leaves nothing; what it says of traffic and memory
# holds for the run; and every mistake that the run would find it finds, with the run's own line.
# devices: cuda
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
many="1 2 3 4 5 7 8"
if [ "$device" != cpu ]; then many="1 2"; fi
any="--data synthetic:64x16 --steps 3 --eval-every 0 --device $device"
small="$any --batch 2"

# everything: names, sizes and contents of all that is in $W but what start writes
everything() { find "$W" -type f ! -name out ! -name err ! -name before ! -name after -exec cksum {} + | sort; find "$W" -type d | sort; }
# dry P ARGS...: what it says is in $W/out
dry() {
    dry_p=$1
    shift
    everything > "$W/before"
    start "$dry_p" "$@" --dry-run
    dry_status=$?
    everything > "$W/after"
    why="status $dry_status: $(head -c 400 "$W/err")"
    [ $dry_status -eq 0 ] && cmp -s "$W/before" "$W/after" && tail -n 1 "$W/out" | grep -q '^A dry run: nothing was trained'
}
says() {
    why="no $1 in: $(cat "$W/out")"
    grep -q "$1" "$W/out"
}

# -- what it says ----------------------------------------------------------------------------------------------------------
for p in $many; do
    check "dense on $p ranks: says what would run, leaves nothing" dry $p $small --out "$W/new/run"
    check "the banner, and the length" says '^  training  3 steps of'
    check "memory, disk" says '^  memory    up to [0-9.]* [KMG]iB on each rank'
    check "checkpoints" says '^  disk      [0-9.]* [KMG]iB for each checkpoint, of which the newest 2 are kept'
    if [ $p -eq 1 ]; then traffic='none: there is one rank'; else traffic='[0-9.]* MiB in [0-9]* messages a step'; fi
    check "traffic on $p ranks" says "^  traffic   $traffic"
done
if [ "$device" != cpu ]; then check "memory of the device" says '; on the device [0-9.]* [KMG]iB besides what its libraries take'; fi
for how in "gtopk --density 0.01" "oktopk --density 0.02 --overlap layers --overlap-bytes 100000 --density-warmup none" "topka --local-update --density 0.05" "fedavg" "auto"; do
    check "$how" dry 2 $small --algo $how
    check "its traffic" says '^  traffic .*; by the cost model$'
done
dry 3 $small --algo topka --local-update --density 0.05
check "local update: the average of the parameters" says '^  traffic   1.37 MiB in 4 messages every 500 steps'
dry 4 $small --algo gtopk
check "a warm-up sends more" says '^  traffic   8.41 KiB in 4 messages a step along the longest path (2.06 MiB in 4 messages at density 0.25, in the warm-up); dense: 1.54 MiB in 4 messages; by the cost model'
for layers in "" "--overlap layers --overlap-bytes 100000"; do
    dry 4 $small --algo powersgd $layers
    check "powersgd sends directions of its matrices" says '^  traffic   83 KiB in [0-9]* messages a step'
done
start 2 $small --dry-run --quiet
check "--quiet says nothing" [ $? -eq 0 -a ! -s "$W/out" ]
dry 2 $small --trace "$W/trace.json" --record "$W/gradients"
check "with --record and --trace nothing is left, either" [ ! -e "$W/gradients" -a -z "$(find "$W" -name 'trace*')" ]

# Of the run itself no rank took more than was said, and what was said is no wild guess.
check "a run to compare with" dry 2 $any --algo gtopk --batch 8
up_to=$(sed -n 's/^  memory    up to \([0-9]*\) MiB.*/\1/p' "$W/out")
start 2 $any --algo gtopk --batch 8 --out "$W/real"
real=$(json "$W/real/run.jsonl" summary memory_private_max)
if [ "$device" = cpu ]; then
    why="up to $up_to MiB, and $real bytes were taken"
    check "memory: enough, and less than twice what was taken" awk -v a="$up_to" -v b="$real" 'BEGIN { m = b / 1048576; exit !(a >= 0.97 * m && a < 2 * m + 50) }'
fi

# -- a run that goes on, and one that begins with another's parameters ----------------------------------------------------
check "of a resumed run" dry 2 --resume "$W/real" --steps 9
check "from where it goes on" says '^  resumed   after step 3'
check "of one that is resumed on another number of ranks" dry 1 --resume "$W/real" --steps 9
check "and it says so" says 'resumed   after step 3, .* of 2 x 8; now 1 x 16; residuals: mean'
check "a number of ranks that cannot share the batch" mistaken '--batch 8 on 2 ranks, and 16 cannot be shared out among 3' 3 --resume "$W/real" --steps 9 --dry-run
check "of a run with --init-from" dry 1 $small --init-from "$W/real" --out "$W/new"
check "with whose parameters it begins" says "^  begins    with the parameters of $W/real/checkpoint-00000003"
start 2 --resume "$W/real" --steps 4
check "the run itself still goes on" [ $? -eq 0 ]

# -- mistakes: those of a run ---------------------------------------------------------------------------------------------
if [ -n "${SPARSETRAIN_TEST_EMULATED:-}" ]; then finish; exit; fi
: > "$W/file"
for p in 1 3; do
    # refused PART ARGS...
    refused() {
        r_part=$1
        shift
        check "on $p ranks: $r_part" unmade "$W/none" silent mistaken "$r_part" $p "$@" --dry-run
    }
    refused 'there is no option --dri' $small --dri
    refused 'fetch-data.sh cifar10' --data "cifar10:$W/nowhere" --out "$W/none"
    refused 'more than the 64 training images' $any --batch 128 --out "$W/none"
    refused "$W/real already holds a run" $small --out "$W/real"
    refused 'cannot write to --out /proc/nowhere' $small --out /proc/nowhere
    refused "cannot write to --out $W/file/run: Not a directory" $small --out "$W/file/run"
    refused "$W/file is there already" $small --record "$W/file"
    refused "cannot write the gradients to $W/no/file: No such file" $small --record "$W/no/file"
    refused 'no/trace' $small --trace "$W/no/trace"
    refused 'more than the 64 training images' --resume "$W/real" --steps 9 --batch 128
    export SPARSETRAIN_MEMORY_FREE=1000000
    refused 'more memory, and 977 KiB can be had there; take a smaller --batch' $small --out "$W/none"
    unset SPARSETRAIN_MEMORY_FREE
done
check "fewer steps than were done" mistaken 'has done 4 steps already' 2 --resume "$W/real" --steps 2 --dry-run
mkdir "$W/small"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=1500k none "$W/small" 2> /dev/null; then
    check "no room for two checkpoints" mistaken 'a checkpoint takes 2.06 MiB, and two must fit' 1 $small --out "$W/small/run" --dry-run
    umount "$W/small"
else
    skip "no room for two checkpoints" "mounting a small file system needs root"
fi
finish
