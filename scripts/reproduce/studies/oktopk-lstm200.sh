#!/bin/sh
# oktopk-lstm200: Ok-Topk's xi and selections on an LSTM that two cores can train to the end
# paper: none: a study of our own. Ok-Topk's Fig. 5 and 6 (xi of Assumption 1; how many values are selected) on a recurrent model of which
#     whole runs are at hand: the paper's models take a GPU, and here their first epochs alone are trained on CPUs
# runs: training of LSTM-200 (two layers of 200 features) on Penn Treebank, 4 ranks, 40 epochs, 20 streams a rank, the first 512 steps
#     dense: dense; Algorithm 1 to the letter (--algo oktopk --oktopk-thresholds paper) at densities 0.01 and 0.02 with --log-xi 65
#     (odd, to meet all steps of a period); with thresholds moved as in the authors' code (code-lstm) and --audit 5, which counts what
#     reaches Gaussiank's threshold beside it, oktopk as it is here, and gaussiank --gaussian-adjust off at density 0.01
#     (quick: 40 features, 6 epochs of made-up words, the first 10 steps dense, every 3rd step)
# needs: Penn Treebank; a working day on CPUs (--epochs E: the first E epochs of that schedule)
# takes: full: about 10 h on two cores, by 6700 words/s; on a GPU not measured yet; quick: 1 min
# agrees: nothing is compared with a paper: the rows have the lowest validation perplexity and that at the end, over dense (the schedule of
#     gTop-k's paper has a constant rate and no dropout: after some two fifths of its epochs the training text is learnt by heart), the largest xi and its means, which the
#     paper has below P and stable, and how far the numbers selected are from k, which the paper has below 11%
. scripts/reproduce/parts/training.sh

seeds=1
gain_key=valid_perplexity
lstm_features=200 lstm_name=LSTM-200
tau=$(published oktopk-models.csv tau_prime model=VGG-16)
ranks=$training_ranks item="LSTM-200, P = $training_ranks"
# run FILE DENSITY OPTION...
run() {
    run_file=$1 run_density=$2
    shift 2
    words "$run_file" --density "$run_density" --density-warmup none --dense-steps "$oktopk_dense_steps" "$@"
}
words dense.jsonl --algo dense
for density in 0.01 0.02; do
    run "paper-$density.jsonl" $density --algo oktopk --oktopk-thresholds paper --tau-prime "$tau" --log-xi "$(pick 65 3)"
done
run code.jsonl 0.01 --algo oktopk --oktopk-thresholds code-lstm --tau-prime "$tau" --log-xi "$(pick 65 3)" --audit "$(pick 5 1)"
run oktopk.jsonl 0.01 --algo oktopk --tau-prime "$tau"
run gaussiank.jsonl 0.01 --algo gaussiank --gaussian-adjust off
[ "$run_length" != "$lstm_name" ] || run_length=full # this study is of no other model

against nothing
. scripts/reproduce/parts/xi.sh
. scripts/reproduce/parts/selected.sh
for file in paper-0.01 paper-0.02 code oktopk gaussiank; do
    case $file in
    paper-*) name="Algorithm 1, density ${file#paper-}" ;;
    code) name="the authors' code, density 0.01" ;;
    oktopk) name='oktopk, thresholds led by counts, density 0.01' ;;
    gaussiank) name='gaussiank, unadjusted, density 0.01' ;;
    esac
    lowest_row "$item, $name" '' $file.jsonl dense.jsonl
    gain_row "$item, $name" 'validation perplexity at the end, over dense' % '' '' none "$above" $file.jsonl dense.jsonl
    for side in local global; do
        key=$(count_key $side)
        row "$item, $name" "$side: mean deviation from k" % '' '' "$(over_steps $file.jsonl "$key" deviation)" real none
        row "$item, $name" "$side: the same of the first tenth of the run" % '' '' "$(over_steps $file.jsonl "$key" deviation 0 0.1)" real none
        row "$item, $name" "$side: the same without the first tenth of the run" % '' '' "$(over_steps $file.jsonl "$key" deviation 0.1 1)" real none
    done
    case $file in
    paper-* | code)
        row "$item, $name" 'largest xi' '' '' '' "$(largest_xi $file.jsonl)" real none
        row "$item, $name" 'mean xi of the second half of the run' '' '' '' "$(mean_xi $file.jsonl 0.5 1)" real none
        ;;
    esac
done
row "$item, Gaussiank's threshold beside the authors' code, density 0.01" 'local: mean count over k, first 5% of the run' '' '' '' \
    "$(over_steps code.jsonl gaussian_nnz_mean count 0 0.05)" real none
row "$item, Gaussiank's threshold beside the authors' code, density 0.01" 'local: mean count over k, second half of the run' '' '' '' \
    "$(over_steps code.jsonl gaussian_nnz_mean count 0.5 1)" real none
two_figures lstm "$item" '' "$item" dense.jsonl=dense paper-0.01.jsonl='Algorithm 1, density 0.01' paper-0.02.jsonl='Algorithm 1, density 0.02' \
    code.jsonl="the authors' code, density 0.01" oktopk.jsonl='oktopk, density 0.01' gaussiank.jsonl='gaussiank, density 0.01'
xi_figure xi.png paper "Algorithm 1, $item, tau' = $tau" no
{
    counts gaussiank.jsonl local_nnz_mean | block 'Gaussiank, unadjusted'
    counts paper-0.01.jsonl local_nnz_mean | block 'Algorithm 1 (local)'
    counts paper-0.01.jsonl global_nnz | block 'Algorithm 1 (global)'
    counts code.jsonl local_nnz_mean | block "the authors' code (local)"
    counts code.jsonl global_nnz | block "the authors' code (global)"
    counts code.jsonl gaussian_nnz_mean | block "Gaussiank's threshold beside it"
    counts oktopk.jsonl local_nnz_mean | block 'led by counts (local)'
    counts oktopk.jsonl global_nnz | block 'led by counts (global)'
} >"$out/counts.dat"
figure counts.png "$out/counts.dat" lines.gp with=lines title="Values sent and kept, $item, density 0.01" xlabel=epoch ylabel='number of selected values' \
    yrange='0:*' note='dense steps are left out'
finish
