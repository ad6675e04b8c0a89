#!/bin/sh
# oktopk-fig6: how many values Ok-Topk and Gaussiank select during training
# paper: Fig. 6a: VGG-16 on CIFAR-10, 16 GPUs, density 1%, tau' = 32, 160 epochs: Ok-Topk's local and global selections stay
#     close to k (mean deviation below 11% for all models), too many only in the first epochs; Gaussiank selects too many
#     in the first epochs and then an order of magnitude too few (LSTM and BERT, 6b and 6c: no such models here)
# runs: training with --algo oktopk --oktopk-thresholds paper, which is Algorithm 1 to the letter; with oktopk as it is here, whose
#     thresholds are led by the counts; and with --algo gaussiank --gaussian-adjust off, as the paper shows it here: VGG-16,
#     batch 16 on each of 16 ranks, 160 epochs of CIFAR-10, the first 512 steps dense (quick: ResNet-20, 4 ranks, 6
#     epochs of 1600 made-up images)
# needs: CIFAR-10; 16 ranks of VGG-16: weeks on few cores, days on a GPU (--epochs E: the first E epochs of that schedule, of which
#     2.6 are dense)
# takes: full: about 43 h of computing on two cores, by the rates of results/measured/costs; on a GPU not measured yet; quick: 45 s
# agrees: mean of |count - k| / k over the logged steps that are not dense at most the paper's 11%, local (what a rank sent) and
#     global; the rows of Algorithm 1 decide on the claim. Gaussiank: its mean count over the first twentieth of the run at
#     least k, over the second half at most 0.32 k (an order of magnitude, as a factor of the square root of 10). In
#     direction: a mean deviation of at most 50%
. scripts/reproduce/training.sh

density=0.01
tau=$(published oktopk-models.csv tau_prime model=VGG-16)
oktopk_images gaussiank.jsonl 6 --algo gaussiank --gaussian-adjust off --density $density
oktopk_images paper.jsonl 6 --algo oktopk --oktopk-thresholds paper --density $density --tau-prime "$tau"
oktopk_images oktopk.jsonl 6 --algo oktopk --density $density --tau-prime "$tau"

# over_steps FILE KEY WHAT [FROM TO]: mean over the steps that are not dense, in this part of the run, of |count - k| / k [%]
# (deviation), count / k (count); or the share of these steps [%] with an exact threshold on a rank, mean of all (local), globally (global)
over_steps() {
    values "$1" "step,k,evaluated_local,${2:-k},evaluated_global" --type step --where density!=1 --missing - |
        awk -v what="$3" -v from="${4:-0}" -v to="${5:-1}" -v all="$(of "$1" header steps)" -v ranks="$ranks" '
        $1 <= from * all || $1 > to * all { next }
        { n++ }
        what == "local" {
            count = split($3, reason, /[:,}]/) # how many ranks stands after each
            for (i = 2; i <= count; i += 2) sum += reason[i] / ranks
        }
        what == "global" { sum += NF == 5 && $5 != "-" }
        what == "deviation" || what == "count" { c = $4 / $2; sum += what == "deviation" ? (c > 1 ? c - 1 : 1 - c) : c }
        END { if (n) printf "%.6g\n", (what == "count" ? 1 : 100) * sum / n }'
}
look_up oktopk-text.csv value subject=oktopk unit=% model=all
item="$(model_of $model), P = $ranks"
for side in local global; do
    case $side in local) key=local_nnz_mean ;; *) key=global_nnz ;; esac
    for file in paper oktopk; do
        case $file in paper) name="Algorithm 1" ;; *) name="thresholds led by counts" ;; esac
        claim
        [ $file = oktopk ] || claim oktopk-$side-count
        against measured
        direction 'full: at most 50'
        row "$item, $name" "$side: mean deviation from k (paper: below)" % "$paper" "$source" "$(over_steps $file.jsonl $key deviation)" real 'full: at most'
        claim
        against words
        row "$item, $name" "$side: steps with an exact threshold (tau' = $tau: $(calc "100 / $tau"))" % '' 'Algorithm 1' \
            "$(over_steps $file.jsonl '' $side)" real none
    done
done
claim oktopk-gaussian-count
against words
row "$item, Gaussiank unadjusted" 'local: mean count over k, first twentieth of the run' '' '' 'Fig. 6a' "$(over_steps gaussiank.jsonl local_nnz_mean count 0 0.05)" real \
    'full: at least 1'
row "$item, Gaussiank unadjusted" 'local: mean count over k, second half of the run' '' '' 'Fig. 6a' "$(over_steps gaussiank.jsonl local_nnz_mean count 0.5 1)" real \
    'full: at most 0.32'
claim
row 'LSTM (AN4), BERT' 'numbers selected' '' '' 'Fig. 6b, 6c' '' real none 'skipped: sparsetrain has no such model'
counts() { curve "$1" step "$2" 1 'density!=1'; } # counts FILE KEY
k=$(of oktopk.jsonl step k)
{
    strip "$(of oktopk.jsonl step epoch)" "$(calc "0.89 * $k")" "$(calc "1.11 * $k")" | band "paper: mean deviation below $paper%"
    counts gaussiank.jsonl local_nnz_mean | block 'Gaussiank, unadjusted'
    counts paper.jsonl local_nnz_mean | block 'Algorithm 1 (local)'
    counts paper.jsonl global_nnz | block 'Algorithm 1 (global)'
    counts oktopk.jsonl local_nnz_mean | block 'led by counts (local)'
    counts oktopk.jsonl global_nnz | block 'led by counts (global)'
} >"$out/figure.dat"
figure figure.png "$out/figure.dat" lines.gp with=lines title="Values sent and kept, $item, density $density" xlabel=epoch \
    ylabel='number of selected values' yrange='0:*' note="the paper's axes: 0 to 160 epochs, 0 to 300000 values; dense steps are left out"
finish
