#!/bin/sh
# cli_accumulate.sh: steps of several batches (--accumulate), by the real program: the gradient is that of as many ranks
# with one batch each, what is exchanged stays as it was, everything that looks at a gradient meets the mean, and a run
# resumes to the same bits. That N batches of B make the gradient of one of N B: nets_accumulate and data_loader.
# devices: cuda
# shellcheck disable=SC2086,SC2166 # lists of arguments; two conditions of one check
. tests/lib/tap.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
text="--model lstm --hidden 10 --bptt 4 --batch 2 --device $device --data synthetic-text:1000x100x100 --lr-warmup 0"
sparse="--density 0.02 --density-warmup none"

# values DIR KEY: of all steps, in a line
values() { sed -n "s/^{\"type\":\"step\",.*\"$2\":\([-+0-9.e]*\).*/\1/p" "$1/run.jsonl" | tr '\n' ' '; }
# close_to LIST LIST PART: as many numbers, none further from the other than this part of it
close_to() {
    why="$1 and $2"
    awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN {
        n = split(a, x, " "); m = split(b, y, " "); bad = n != m || n == 0
        for (i = 1; i <= n; i++) { d = x[i] - y[i]; if (d < 0) d = -d; if (!(d <= part * y[i])) bad = 1 }
        exit bad }'
}
same() { check "$1" [ -n "$(hash_of "$2")" -a "$(hash_of "$2")" = "$(hash_of "$3")" ]; }

# -- ranks and parts -------------------------------------------------------------------------------------------------------
# P ranks with N batches each take the same images for the same P N, each batch with statistics of its own: the mean
# gradient, and with it the loss of every step, is the same but for rounding, which a low rate keeps from growing: how much
# it grows depends on the kernels that oneDNN has for this CPU.
images="--data synthetic:96x16 --batch 3 --lr 0.002 --lr-warmup 0 --eval-every 0 --clip-norm 1e6 --device $device"
steps=6 all=4
if [ -n "${SPARSETRAIN_TEST_EMULATED:-}" ]; then images="--data synthetic:24x8 --batch 1 --lr 0.002 --lr-warmup 0 --eval-every 0 --clip-norm 1e6 --device $device" steps=3 all=2; fi
start $all $images --steps $steps --out "$W/ranks"
for p in 1 2; do
    if [ $p -eq $all ]; then continue; fi
    n=$((all / p))
    start $p $images --steps $steps --accumulate $n --out "$W/parts$p"
    check "$p ranks with $n batches are $all with one" close_to "$(values "$W/parts$p" loss)" "$(values "$W/ranks" loss)" 3e-4
    check "and so is its norm" close_to "$(values "$W/parts$p" gradient_norm_mean)" "$(values "$W/ranks" gradient_norm_mean)" 3e-4
    check "a step has the samples of all parts" [ "$(values "$W/parts$p" samples)" = "$(values "$W/ranks" samples)" ]
    check "and is as much of an epoch" [ "$(values "$W/parts$p" epoch)" = "$(values "$W/ranks" epoch)" ]
done
if [ "$all" -eq 4 ]; then
    start 3 $images --steps $steps --out "$W/three"
    start 1 $images --steps $steps --accumulate 3 --out "$W/alone"
    check "one rank with 3 batches is 3 with one" close_to "$(values "$W/alone" loss)" "$(values "$W/three" loss)" 3e-4
fi
start 1 $images --steps $steps --accumulate $all --algo topka --clip-at local --density 1 --density-warmup none --out "$W/local"
check "what a rank clips is the mean of its parts" close_to "$(values "$W/local" gradient_norm_mean)" "$(values "$W/ranks" gradient_norm_mean)" 3e-4
# Sparse with everything selected: the same again, and conservation with a residual that stays 0.
start $all $images --steps $steps --algo topka --density 1 --density-warmup none --out "$W/ranks1"
start 1 $images --steps $steps --accumulate $all --algo topka --density 1 --density-warmup none --out "$W/parts1all"
check "the same with everything selected" close_to "$(values "$W/parts1all" loss)" "$(values "$W/ranks1" loss)" 3e-4

# -- what is exchanged -----------------------------------------------------------------------------------------------------
for p in 2 3 4; do
    start $p $text --steps 4 --eval-every 0 --algo gtopk $sparse --out "$W/one$p"
    start $p $text --steps 4 --eval-every 0 --algo gtopk $sparse --accumulate 3 --check-replicas 1 --out "$W/many$p"
    sent=$(values "$W/one$p" bytes_sent_mean)
    check "P = $p: a step sends as much as ever" [ -n "$sent" -a "$(values "$W/many$p" bytes_sent_mean)" = "$sent" ]
    check "P = $p: in as many messages" [ "$(values "$W/many$p" messages_sent_mean)" = "$(values "$W/one$p" messages_sent_mean)" ]
    check "P = $p: other gradients, though" [ -n "$(hash_of "$W/many$p")" -a "$(hash_of "$W/many$p")" != "$(hash_of "$W/one$p")" ]
done
start 2 $text --steps 4 --eval-every 0 --algo dense --accumulate 5 --out "$W/dense"
start 2 $text --steps 4 --eval-every 0 --algo dense-ovlp --accumulate 5 --overlap-bytes 2000 --out "$W/ovlp"
same "dense-ovlp begins with the last part: the bits of dense" "$W/dense" "$W/ovlp"
start 3 $text --steps 4 --eval-every 0 --algo topka $sparse --accumulate 2 --overlap layers --overlap-bytes 5000 --out "$W/layers"
start 3 $text --steps 4 --eval-every 0 --algo topka $sparse --accumulate 2 --overlap layers --overlap-bytes 5000 --log-slices 1 --record "$W/grad.rec" --out "$W/looked"
same "gradients that are counted and recorded, so without overlap: the same bits" "$W/layers" "$W/looked"
check "a record is a step's gradient" [ "$(grep -c '"type":"slices"' "$W/looked/run.jsonl")" -eq 4 ]
start 2 bench --algo topka --pattern "real:$W/grad.rec" --density 0.02 --warmup 0 --repeat 2
check "which the bench takes" grep -q topka "$W/out"

# -- arithmetic ------------------------------------------------------------------------------------------------------------
# 999 / (2 x 2 x 4) = 62 windows an epoch, 5 a step: 12.4 steps, 25 of two epochs
start 2 $text --epochs 2 --accumulate 5 --out "$W/epochs"
log=$W/epochs/run.jsonl
check "two epochs of 62 windows are 25 steps of 5" [ "$(json "$log" summary step)" = 25 ]
check "an evaluation after each" [ "$(grep -c '"type":"eval"' "$log")" -eq 3 ]
check "the first step at or after the end of the first epoch" grep -q '^{"type":"eval","step":13,' "$log"
check "80 words a step on two ranks" [ "$(json "$log" step samples)" = 80 ]
check "the first lines say so" grep -q '25 steps of 2 x 2 x 4 words, 5 times, = 2.02 epochs' "$W/out"
check "the log of a run without says 1" [ "$(head -n 1 "$W/one2/run.jsonl" | grep -c '"accumulate":1,')" -eq 1 ]

# -- the same bits again ---------------------------------------------------------------------------------------------------
common="$text --eval-every 0 --steps 12 --checkpoint-every 5 --dropout 0.3 --accumulate 3"
resumes "masks and streams go on inside a step" 2 --algo dense
resumes "over topka with momentum before the exchange, masked" 3 --algo topka $sparse --momentum-correction --momentum-masking
resumes "with local clipping" 3 --algo topka $sparse --clip-norm 0.01 --clip-at local
resumes "with overlap by layers" 2 --algo gtopk $sparse --overlap layers --overlap-bytes 5000
resumes "with dense steps first" 2 --algo gtopk $sparse --dense-steps 3
check "dense steps are dense" [ "$(values "$whole" density)" = "1 1 1 0.02 0.02 0.02 0.02 0.02 0.02 0.02 0.02 0.02 " ]
if [ "$device" = cpu ]; then
    resumes "over oktopk with packed entries" 4 --algo oktopk $sparse --wire packed
    resumes "over fedavg, whose replicas drift" 2 --algo fedavg --average-every 4
    resumes "with a local update" 3 --algo topka $sparse --local-update --average-every 4
    common="$images --steps 12 --checkpoint-every 5 --accumulate 2"
    resumes "images in steps that cross epochs" 3 --algo gtopk $sparse
    start 2 $images --steps 3 --algo auto $sparse --accumulate 4 --out "$W/auto"
    check "--algo auto" [ -n "$(hash_of "$W/auto")" ]
fi

# -- a number that is none -------------------------------------------------------------------------------------------------
for how in "dense-ovlp --overlap-bytes 100000" "topka $sparse"; do
    start 2 --data synthetic:24x8 --batch 1 --device $device --steps 40 --algo $how --accumulate 2 --lr 1e6 --lr-warmup 0
    status=$?
    check "$how: a run that explodes ends with status 3" [ $status -eq 3 ]
    check "$how: and says where" grep -q '^sparsetrain: step [0-9]*, rank [0-9]*: .* in [a-z0-9.]* (entry [0-9]*) is NaN or infinite' "$W/err"
done

# -- mistakes --------------------------------------------------------------------------------------------------------------
check "no batch at all" mistaken "--accumulate 0 is out of range" 1 $text --steps 1 --accumulate 0
check "half a batch" mistaken "--accumulate wants a whole number" 1 $text --steps 1 --accumulate 1.5
check "more images than there are" mistaken "--batch 8, --accumulate 7 times, on 2 ranks is more than the 96 training images" 2 --data synthetic:96x16 --batch 8 --accumulate 7 --steps 1 --device cpu
check "more windows than an epoch has" mistaken "--accumulate 63 is more than the 62 windows" 2 $text --steps 1 --accumulate 63
start 2 $text --steps 4 --eval-every 0 --accumulate 2 --checkpoint-every 2 --out "$W/kept"
check "another number than the checkpoint's" mistaken "the checkpoint was made with --accumulate 2, not 3" 2 --resume "$W/kept" --steps 6 --accumulate 3
finish
