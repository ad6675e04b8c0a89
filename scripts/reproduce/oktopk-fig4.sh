#!/bin/sh
# oktopk-fig4: distribution of the gradient's values, with the exact, the reused and the Gaussian threshold
# paper: Fig. 4: VGG-16 on CIFAR-10, density 1%, more than 25 iterations after the threshold was found: Ok-Topk's is still very
#     close to the accurate one; a normal distribution of the same mean and deviation has a longer tail, so that
#     Gaussiank predicts a larger threshold and selects far too little (LSTM and BERT, 4b and 4c: no such models here)
# runs: training with --algo oktopk --oktopk-thresholds paper, VGG-16, batch 16 a rank, density 0.01, tau' = 32, the first 512 steps
#     dense, on 4 ranks (the paper: 16) to step 3996, 28 steps after an exact threshold (quick: ResNet-20, 2 ranks, made-up images, 10 dense steps, step 70); then one step with --audit and
#     --record: residual and gradient of rank 0 give the distribution, the exact threshold and that of Gaussiank
# needs: CIFAR-10; hours on CPUs
# takes: full: about 0.5 h of computing on two cores, by the rates of results/measured/costs; on a GPU not measured yet; quick: 3 s
# agrees: reused threshold within 10% of the exact one (means over ranks; our reading of "very close"); Gaussian threshold above
#     the exact one, and fewer than k entries beyond it. In direction: the reused threshold within 50%
. scripts/reproduce/training.sh

density=0.01
tau=$(published oktopk-models.csv tau_prime model=VGG-16)
if [ -n "$quick" ]; then
    steps=70 ranks=2 model=resnet20
    set -- --data synthetic:1600x160 --batch 8
else
    need_data cifar10
    steps=3996 ranks=4 model=vgg16
    batch=$(published oktopk-models.csv batch_per_gpu model=VGG-16)
    set -- --data cifar10 --batch "$batch"
fi
train before.jsonl $ranks --model $model --algo oktopk --oktopk-thresholds paper --density $density --density-warmup none --tau-prime "$tau" \
    --dense-steps "$oktopk_dense_steps" "$@" --steps $steps --eval-every 0
record=$runs/step.jsonl.run.record # goes with the run when that is made anew
checkpoint=$runs/before.jsonl.run/checkpoint-$(printf %08d $steps)
train step.jsonl $ranks --resume "$checkpoint" --steps $((steps + 1)) --audit 1 --record "$record"
n=$(of step.jsonl header parameters)
job histogram.txt sh $library/gradient-histogram.sh "$checkpoint" "$record" $ranks "$n" $density
[ -n "$quick" ] || rm -f "$record"

statistic() { sed -n "1s/.*$1 \([^ ]*\).*/\1/p" "$out/histogram.txt"; }
exact=$(statistic exact) gaussian=$(statistic gaussian) beyond=$(statistic beyond) sigma=$(statistic sigma)
reused=$(of step.jsonl step threshold_mean) exact_mean=$(of step.jsonl step threshold_exact_mean)
item="$(model_of $model), P = $ranks, step $steps, $(((steps - oktopk_dense_steps) % tau)) steps after"
claim oktopk-threshold
against words
direction 'full: between -50 and 50'
row "$item" 'reused threshold over the exact one, less 1' % '' 'Fig. 4a, Section 3.1.3' "$(calc "100 * ($reused / $exact_mean - 1)")" real \
    'full: between -10 and 10'
row "$item" 'Gaussian threshold over the exact one' '' '' 'Fig. 4a, Section 3.1.3' "$(calc "$gaussian / $exact")" real 'full: at least 1'
row "$item" 'entries beyond the Gaussian threshold, of k' '' '' 'Fig. 4a, Section 3.1.3' "$(calc "$beyond / int($density * $n)")" real \
    'full: at most 1'
row 'LSTM (AN4), BERT' 'distribution' '' '' 'Fig. 4b, 4c' '' real none 'skipped: sparsetrain has no such model'

top=$(awk '/^bin/ && $3 > m { m = $3 } END { print m }' "$out/histogram.txt")
upright() { printf '%s 0\n%s %s\n' "$1" "$1" "$(calc "$top / 2")"; }
{
    sed -n 's/^bin //p' "$out/histogram.txt" | block 'real distribution'
    sed -n 's/^bin //p' "$out/histogram.txt" | awk -v sigma="$sigma" -v mean="$(statistic mean)" -v n="$n" -v width="$(calc "4 * $exact / 201")" '
        { z = ($1 - mean) / sigma; print $1, n * width / sigma / sqrt(2 * 3.14159265358979) * exp(-z * z / 2) }' | block 'normal distribution'
    upright "$exact" | block 'exact threshold'
    upright "$reused" | block "Ok-Topk's, reused"
    upright "$gaussian" | block "Gaussiank's"
} >"$out/figure.dat"
figure figure.png "$out/figure.dat" lines.gp with=lines title="Residual and gradient of rank 0, $item an exact threshold" \
    xlabel='value' ylabel='entries' yrange="0:$(calc "1.1 * $top")" note='the paper counts more bins, which its text does not say; its axis ends beyond the thresholds'
finish
