#!/bin/sh
# cli_init_from.sh: a run that begins with the parameters of another one's checkpoint (--init-from): on any number of ranks,
# with any algorithm, it starts from that checkpoint's scores, with everything else new; it resumes like any other run; and
# what cannot be begun with is refused.
# devices: cuda
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
many="1 2 3 4 5 7 8"
if [ "$device" != cpu ]; then many="1 2"; fi
images="--data synthetic:96x24 --batch 2 --eval-every 0 --device $device --lr-warmup 0"

start 3 $images --algo gtopk --density 0.05 --density-warmup none --steps 4 --checkpoint-every 3 --out "$W/source"
run_of() { sed -n '1s/.*"run":"\([0-9a-f]*\)".*/\1/p' "$1/run.jsonl"; }

# begins P DIR ARGS...: a run of two steps
begins() {
    b_p=$1 b_dir=$2
    shift 2
    start "$b_p" $images --steps 2 --check-replicas 2 --out "$b_dir" "$@"
}
# scores_of_checkpoint P CHECKPOINT DIR: the run in DIR starts with the scores of the checkpoint
scores_of_checkpoint() {
    start "$1" evaluate "$2" --json
    why="$(json "$3/run.jsonl" summary start_loss), evaluated: $(head -c 300 "$W/out" "$W/err")"
    grep -q "\"test_loss\":$(json "$3/run.jsonl" summary start_loss)," "$W/out"
}

# -- any number of ranks, any algorithm --------------------------------------------------------------------------------
for p in $many; do
    case $p in 1) how=dense ;; 2) how="topka --density 0.01" ;; 3) how="gtopk --density 0.1" ;; 5) how="oktopk --density 0.02" ;; *) how="fedavg --average-every 2" ;; esac
    begins $p "$W/new$p" --algo $how --lr 0.01 --init-from "$W/source"
    check "$how on $p ranks begins with what 3 ranks had" [ $? -eq 0 ]
    check "from the scores of the checkpoint" scores_of_checkpoint $p "$W/source" "$W/new$p"
    check "with step 1" [ "$(grep -c '"type":"step"' "$W/new$p/run.jsonl")" -eq 2 ]
done
if [ "$device" = cpu ]; then same_ranks=3; else same_ranks=2; fi
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a > 0 && d * d <= 1e-9 * b * b) }'; }
check "which are those that the source logged" near "$(json "$W/new$same_ranks/run.jsonl" summary start_loss)" "$(json "$W/source/run.jsonl" summary test_loss)"
header=$(head -n 1 "$W/new1/run.jsonl")
why="$header"
check "the header says from where" sh -c "echo '$header' | grep -q '\"init_from\":\"$W/source/checkpoint-00000004\",\"init_run\":\"$(run_of "$W/source")\",\"init_step\":4,'"
check "it is another run" [ "$(run_of "$W/new1")" != "$(run_of "$W/source")" ]
begins 2 "$W/older" --init-from "$W/source/checkpoint-00000003"
check "from one checkpoint of several" grep -q '"init_step":3,' "$W/older/run.jsonl"
check "from its scores" scores_of_checkpoint 2 "$W/source/checkpoint-00000003" "$W/older"

# The first step with momentum is one without, as long as there is none from before.
start 2 $images --steps 1 --momentum 0.9 --init-from "$W/source" --out "$W/first"
start 2 $images --steps 1 --momentum 0 --init-from "$W/source" --out "$W/plain"
check "the optimiser is fresh" [ -n "$(hash_of "$W/first")" -a "$(hash_of "$W/first")" = "$(hash_of "$W/plain")" ]
begins 1 "$W/adam" --optimiser adam --init-from "$W/source"
check "another optimiser" [ $? -eq 0 ]
begins 2 "$W/twice" --init-from "$W/first"
check "from a run that began so itself" [ $? -eq 0 ]

# -- replicas that have drifted apart, models of texts -----------------------------------------------------------------
start 3 $images --algo fedavg --average-every 100 --steps 3 --checkpoint-every 2 --out "$W/drift"
begins 2 "$W/mean" --init-from "$W/drift/checkpoint-00000002"
check "from the mean of replicas that drift" scores_of_checkpoint 2 "$W/drift/checkpoint-00000002" "$W/mean"
text="--model lstm --hidden 8 --bptt 5 --data synthetic-text:600x50x50 --device $device --lr-warmup 0 --steps 2"
start 2 $text --batch 3 --out "$W/text"
start 3 $text --batch 2 --init-from "$W/text" --out "$W/text3"
check "a language model" scores_of_checkpoint 3 "$W/text" "$W/text3"

# -- resuming it ---------------------------------------------------------------------------------------------------------
common="$images --steps 12 --checkpoint-every 5 --lr 0.02 --init-from $W/source"
resumes "it resumes to the same bits on 1 rank" 1 --algo dense
resumes "it resumes to the same bits on 3 ranks" 3 --algo topka --density 0.05 --density-warmup none
check "the header of the resumed run has no source but in its options" sh -c "head -n 1 '$W/again2/run.jsonl' | grep -q '\"init-from\":\"$W/source\"' && ! grep -q '\"init_from\"' '$W/again2/run.jsonl'"
start 2 $images --steps 2 --init-from "$W/source" --out "$W/short"
mv "$W/source" "$W/elsewhere"
start 2 --resume "$W/short" --steps 4
check "the source may be gone by then" [ $? -eq 0 ]
mv "$W/elsewhere" "$W/source"
check "and the log has both headers" [ "$(grep -c '"type":"header"' "$W/short/run.jsonl")" -eq 2 ]

# -- mistakes --------------------------------------------------------------------------------------------------------------
if [ -n "${SPARSETRAIN_TEST_EMULATED:-}" ]; then finish; exit; fi
mkdir "$W/empty"
rm -rf "$W/bad"
cp -r "$W/source" "$W/bad"
printf x | dd of="$W/bad/checkpoint-00000004/rank0001.ckpt" bs=1 seek=60 conv=notrunc 2> /dev/null
for p in 1 3; do
    # refused PART ARGS...
    refused() {
        r_part=$1
        shift
        check "on $p ranks: $r_part" unmade "$W/none" silent mistaken "$r_part" $p "$@"
    }
    refused '--init-from begins a run and --resume goes on with one; give one of them' --resume "$W/source" --init-from "$W/source"
    refused "cannot start from $W/nowhere: No such file" $images --steps 2 --init-from "$W/nowhere" --out "$W/none"
    refused 'there is no checkpoint in it; name a checkpoint' $images --steps 2 --init-from "$W/empty" --out "$W/none"
    refused 'as vgg16: it has conv1.weight 16x3x3x3 where this model has stage1.conv1.weight 64x3x3x3' $images --model vgg16 --steps 2 --init-from "$W/source" --out "$W/none"
    refused 'it has embedding.weight 2000x8 where this model has embedding.weight 2000x9' --model lstm --hidden 9 --data synthetic-text:600x50x50 --batch 2 --steps 2 --init-from "$W/text" --out "$W/none"
    refused "the one before it: --init-from $W/bad/checkpoint-00000003" $images --steps 2 --init-from "$W/bad" --out "$W/none"
done
finish
