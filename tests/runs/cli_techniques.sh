#!/bin/sh
# cli_techniques.sh: clipping, momentum before the exchange, its masking, dense slices, selection slice by slice, Adam and
# the schedules, by the real program: each changes what it should, leaves its trace in the log, and resumes to the same
# bits. What they compute is tested in topk_correction, comm_correction, comm_exempt, topk_by_slice and nets_optimise.
# shellcheck disable=SC2086,SC2166 # lists of arguments; two conditions of one check
. tests/lib/tap.sh
common="--model lstm --hidden 10 --bptt 4 --batch 2 --device cpu --data synthetic-text:1000x100x100 --steps 12 --eval-every 0 --checkpoint-every 5 --lr-warmup 0 --dropout 0"
sparse="--density 0.02 --density-warmup none"

differs() { check "$1" [ -n "$(hash_of "$2")" -a "$(hash_of "$2")" != "$(hash_of "$3")" ]; }
same() { check "$1" [ -n "$(hash_of "$2")" -a "$(hash_of "$2")" = "$(hash_of "$3")" ]; }
# value DIR STEP KEY
value() { sed -n "s/^{\"type\":\"step\",\"step\":$2,.*\"$3\":\([-+0-9.e]*\).*/\1/p" "$1/run.jsonl" | tail -n 1; }
within() { awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && d <= part * b) }'; }

# -- momentum before the exchange ----------------------------------------------------------------------------------------
resumes "plain momentum" 3 --algo topka $sparse
plain=$whole
resumes "--momentum-correction resumes to the same bits" 3 --algo topka $sparse --momentum-correction
corrected=$whole
differs "--momentum-correction changes a sparse run" "$plain" "$corrected"
resumes "--momentum-masking resumes to the same bits" 3 --algo topka $sparse --momentum-correction --momentum-masking
differs "--momentum-masking changes it again" "$corrected" "$whole"
resumes "the same with overlap by layers" 3 --algo topka $sparse --momentum-correction --momentum-masking --overlap layers --overlap-bytes 20000
resumes "with dense steps first" 3 --algo gtopk $sparse --momentum-correction --dense-steps 3
# Where everything is sent momentum before and after the sum is the same but for rounding.
start 3 $common --algo dense --clip-norm 0 --out "$W/dense"
start 3 $common --algo topka --density 1 --density-warmup none --momentum-correction --clip-norm 0 --out "$W/all"
check "at density 1 it is dense momentum" within "$(value "$W/all" 12 loss)" "$(value "$W/dense" 12 loss)" 1e-4
for algo in gtopk oktopk topkdsa gaussiank spardl micro gtopk-naive; do
    resumes "--algo $algo with correction and masking" 3 --algo $algo $sparse --momentum-correction --momentum-masking
done

# -- the learning rate in the residual ---------------------------------------------------------------------------------------
# A rate that is a power of two scales without rounding: where it stays, or where nothing waits, the bits are the same.
resumes "--fold-lr with oktopk" 3 --algo oktopk $sparse --lr 0.3 --lr-schedule step:0.03,0.06 --fold-lr
for options in "--algo oktopk $sparse" "--algo topka $sparse --momentum-correction" "--algo gtopk $sparse --overlap layers --overlap-bytes 20000" "--algo topka $sparse --clip-norm 0.01 --local-update --average-every 4" "--algo topka $sparse --dense-slices bias --clip-norm 0.01 --clip-at local"; do
    rm -rf "$W/folded" "$W/unfolded"
    start 3 $common $options --lr 0.5 --lr-schedule constant --out "$W/unfolded"
    start 3 $common $options --lr 0.5 --lr-schedule constant --fold-lr --out "$W/folded"
    same "a rate that stays: $options" "$W/folded" "$W/unfolded"
done
check "the first lines say so" grep -q '^  exchange .*, learning rate folded in' "$W/out"
rm -rf "$W/folded" "$W/unfolded"
start 3 $common --algo topka $sparse --lr 0.5 --lr-schedule decay:0.05:0.5 --out "$W/unfolded"
start 3 $common --algo topka $sparse --lr 0.5 --lr-schedule decay:0.05:0.5 --fold-lr --out "$W/folded"
differs "a rate that changes" "$W/folded" "$W/unfolded"
rm -rf "$W/folded" "$W/unfolded"
start 3 $common --algo topka --density 1 --density-warmup none --lr 0.5 --lr-schedule decay:0.05:0.5 --out "$W/unfolded"
start 3 $common --algo topka --density 1 --density-warmup none --lr 0.5 --lr-schedule decay:0.05:0.5 --fold-lr --out "$W/folded"
same "nothing waits" "$W/folded" "$W/unfolded"

# -- clipping --------------------------------------------------------------------------------------------------------------
resumes "--clip-norm of the mean" 2 --algo dense --clip-norm 0.01
check "the norm before clipping is logged" [ -n "$(value "$whole" 3 gradient_norm_mean)" ]
check "all ranks see the same mean" [ -n "$(value "$whole" 3 gradient_norm_max)" -a "$(value "$whole" 3 gradient_norm_mean)" = "$(value "$whole" 3 gradient_norm_max)" ]
clipped=$whole
start 2 $common --algo dense --clip-norm 0 --out "$W/unclipped"
differs "clipping changes a run" "$clipped" "$W/unclipped"
check "--clip-norm 0 logs no norm" [ -z "$(value "$W/unclipped" 3 gradient_norm_mean)" ]
start 2 $common --algo dense --clip-norm 1e6 --out "$W/loose"
same "a norm that is never reached changes nothing" "$W/loose" "$W/unclipped"
resumes "--clip-at local" 2 --algo topka $sparse --clip-norm 0.01 --clip-at local
check "each rank clips its own" [ "$(value "$whole" 3 gradient_norm_mean)" != "$(value "$whole" 3 gradient_norm_max)" ]

# The model's norm, which is 0.25, is of gradients, and no norm of signs.
resumes "demo steps by signs, which the model's norm does not clip" 2 --algo demo --momentum 0
check "no norm is logged" [ -z "$(value "$whole" 3 gradient_norm_mean)" ]
start 2 $common --algo demo --momentum 0 --clip-norm 0 --out "$W/signs"
same "as with --clip-norm 0" "$whole" "$W/signs"
start 2 $common --algo demo --momentum 0 --demo-sign off --out "$W/means"
check "means are clipped" [ -n "$(value "$W/means" 3 gradient_norm_mean)" ]
start 2 $common --algo demo --momentum 0 --clip-at local --out "$W/before"
check "and so is what goes into the sum of signs" [ -n "$(value "$W/before" 3 gradient_norm_mean)" ]

# -- which entries ---------------------------------------------------------------------------------------------------------
resumes "--dense-slices bias" 3 --algo topka $sparse --dense-slices bias --log-slices 4
exempt=$whole
sent=$(sed -n 's/.*"name":"linear.bias","size":\([0-9]*\),"nonzero_mean":[0-9.]*,"sent_mean":\([0-9]*\),.*/\1 \2/p' "$exempt/run.jsonl" | head -n 1)
check "dense slices are sent whole" [ -n "$sent" ] && [ "${sent% *}" = "${sent#* }" ]
sent=$(sed -n 's/^{"type":"slices","step":5,//p' "$exempt/run.jsonl" | tr '{' '\n' | sed -n 's/.*"sent_mean":\([0-9.]*\).*/\1/p' | awk -v n="$(json "$exempt/run.jsonl" header parameters)" '{ sum += $1 } END { print sum / n }')
check "density_real counts them" within "$(value "$exempt" 5 density_real)" "$sent" 1e-4
resumes "--dense-slices 1d,small:500 over oktopk by layers" 3 --algo oktopk $sparse --dense-slices 1d,small:500 --overlap layers --overlap-bytes 20000
resumes "--dense-slices with correction, masking and hitopk's nodes" 4 --algo hitopk --ranks-per-node 2 $sparse --dense-slices bias --momentum-correction
resumes "--select-scope layer" 3 --algo topka $sparse --select-scope layer --log-slices 4
least=$(sed -n 's/^{"type":"slices"//p' "$whole/run.jsonl" | tr '{' '\n' | sed -n 's/.*"sent_mean":\([0-9.]*\).*/\1/p' | sort -g | head -n 1)
check "every slice sends something" [ -n "$least" ] && [ "${least%%.*}" -ge 1 ]
resumes "--select-scope layer with --select reuse over gtopk" 3 --algo gtopk --select reuse $sparse --select-scope layer
resumes "--select-scope layer with --dense-slices and --overlap layers" 3 --algo gtopk $sparse --select-scope layer --dense-slices bias --overlap layers --overlap-bytes 20000

# -- the density of each step ----------------------------------------------------------------------------------------------
# values DIR KEY: of all steps, in a line
values() { sed -n "s/^{\"type\":\"step\",.*\"$2\":\([-+0-9.e]*\).*/\1/p" "$1/run.jsonl" | tr '\n' ' '; }
resumes "--density-warmup linear, resumed on its way" 3 --algo gtopk --density 0.02 --density-warmup linear:14
check "the drop ratio rises evenly" [ "$(values "$whole" density | awk '{ for (i = 1; i <= NF; i++) printf "%.4f ", 1 - $i }')" = "$(awk 'BEGIN { for (i = 0; i < 12; i++) printf "%.4f ", 0.98 * i / 14 }')" ]
start 2 $common --algo topka --density 0.02 --density-warmup linear:4:0.5 --dense-steps 2 --out "$W/from"
check "from a density, behind dense steps" [ "$(values "$W/from" density)" = "1 1 0.26 0.14 0.02 0.02 0.02 0.02 0.02 0.02 0.02 0.02 " ]
n=$(json "$W/from/run.jsonl" header parameters)
check "and so many entries are asked for" [ "$(values "$W/from" k | awk '{ print $3 }')" = "$(awk -v n="$n" 'BEGIN { print int(0.26 * n + 1e-9) }')" ]
check "the first lines say so" grep -qx '  density   1 in the first 2 steps, then 0.26 (k = [0-9]*), 0.02 (k = [0-9]*) from epoch [0-9.]*' "$W/out"
start 2 $common --algo auto --density 0.02 --density-warmup linear:4 --momentum-correction --out "$W/autowarm"
check "--algo auto takes it along" [ "$(values "$W/autowarm" density | awk '{ print $1, $3, $5 }')" = "1 0.51 0.02" ]

# -- optimisers and schedules ----------------------------------------------------------------------------------------------
resumes "--optimiser adam over gtopk" 3 --algo gtopk $sparse --optimiser adam --lr 0.003
resumes "--optimiser adamw over oktopk" 3 --algo oktopk $sparse --optimiser adamw --lr 0.003 --weight-decay 0.1
resumes "--optimiser adam with other betas" 1 --optimiser adam --lr 0.003 --beta1 0.8 --beta2 0.99 --epsilon 1e-6
resumes "--lr-schedule decay" 1 --lr-schedule decay:0:0.5
resumes "--lr-schedule linear" 1 --lr-schedule linear
# Of 12 steps 3 are a warm-up: what the log has of each is the formula's, and the same at any P.
common=${common%--lr-warmup 0*}"--dropout 0 --lr 0.5 --lr-warmup-steps 3"
resumes "--lr-schedule cosine behind a warm-up in steps" 3 --lr-schedule cosine:0.1
rates="0.125 0.25 0.375 0.5 0.486 0.447 0.388 0.314 0.236 0.163 0.103 0.0636 "
check "its rates" [ "$(values "$whole" lr | awk '{ for (i = 1; i <= NF; i++) printf "%.3g ", $i }')" = "$rates" ]
check "the log has the warm-up" grep -q '"lr-warmup":0,"lr-warmup-steps":3,' "$whole/run.jsonl"
check "and where it ends" within "$(json "$whole/run.jsonl" header lr_from)" "$(json "$whole/run.jsonl" header run_epochs | awk '{ print $1 / 4 }')" 1e-5
check "the first lines of what resumed say where it is" grep -qx '  rate      0.1026; along a cosine down to 0.05 at epoch [0-9.]*' "$W/out"
resumes "--lr-schedule linear behind it" 1 --lr-schedule linear
resumes "--lr-schedule inverse-sqrt behind it" 2 --lr-schedule inverse-sqrt

# -- mistakes --------------------------------------------------------------------------------------------------------------
refused() { # NAME PART ARGS...
    r_name=$1 r_part=$2
    shift 2
    check "$r_name" mistaken "$r_part" 2 --model lstm --hidden 10 --bptt 4 --batch 2 --device cpu --data synthetic-text:1000x100x100 --steps 1 "$@"
}
refused "a folded rate where nothing waits" "--fold-lr has no effect with --algo dense" --algo dense --fold-lr
refused "masking without correction" "without --momentum-correction" --algo topka --momentum-masking
refused "correction of a dense exchange" "--momentum-correction has no effect with --algo dense" --algo dense --momentum-correction
refused "correction without momentum" "--momentum above 0" --algo topka --momentum-correction --momentum 0
refused "correction with Adam" "needs --optimiser sgd" --algo topka --momentum-correction --optimiser adam
refused "correction and local update" "cannot be combined" --algo topka --momentum-correction --local-update
refused "masking where nobody knows what was delivered" "--momentum-masking cannot be combined with --algo hitopk" --algo hitopk --momentum-correction --momentum-masking
refused "local clipping while sending" "--clip-at local needs the whole gradient" --algo topka --overlap layers --clip-norm 1 --clip-at local
refused "signs clipped" "--clip-norm has nothing to clip where --algo demo gives the signs" --algo demo --clip-norm 1
refused "a place of clipping without a norm" "--clip-at has no effect without --clip-norm" --algo topka --clip-norm 0 --clip-at local
refused "a slice that is not there" 'no slice of the model fits "bn"' --algo topka --dense-slices bias,bn
refused "an empty name of a slice" 'no slice of the model fits ""' --algo topka --dense-slices bias,
refused "every slice dense" "takes every slice" --algo topka --dense-slices small:1000000000
refused "layers for an algorithm with parts of its own" "--select-scope layer" --algo spardl --select-scope layer
refused "a warm-up of no steps" 'density warm-up "linear:0": it takes a whole number of steps' --algo topka --density-warmup linear:0
refused "a warm-up from nothing" 'density warm-up "linear:5:0": every density must be above 0' --algo topka --density-warmup linear:5:0
start 2 $common --algo dense --density-warmup linear:5 --out "$W/dense-warm"
check "a dense exchange has no use for a warm-up" grep -q '^  ignored   --density-warmup, without effect with --algo dense' "$W/out"
# shellcheck disable=SC2086
start 2 $small_net --steps 1 --device cpu --precision f32-winograd --out "$W/no-winograd"
check "nor a net without convolutions for Winograd's algorithm" grep -q '^  ignored   --precision f32-winograd: no convolution' "$W/out"
check "which its log says" [ "$("$PROGRAM" rows "$W/no-winograd" --type header --keys computed_in)" = f32 ]
check "and only that of such a run" [ -z "$("$PROGRAM" rows "$W/dense-warm" --type header --keys computed_in)" ]
refused "momentum of Adam" "--momentum has no effect without --optimiser sgd" --optimiser adam --momentum 0.9
refused "betas of SGD" "--beta1 has no effect without --optimiser adam or adamw" --beta1 0.8
finish
