# shellcheck shell=sh
# shellcheck disable=SC2154 # what the IDs set
# fill-in.sh: sourced by the IDs of how dense TopkDSA's sum becomes, of their run topkdsa.jsonl on $ranks ranks at $density, as `$item`; $paper is
# the paper's mean, which $source has.
fill_in() { # fill_in CLAIM [NOTE]
    n=$(of topkdsa.jsonl header parameters)
    claim "$1"
    against measured
    row "$item" 'mean density of the sum' % "$paper" "$source" \
        "$(values topkdsa.jsonl global_nnz --type step --where 'density<1' | awk -v n="$n" '{ sum += $1 } END { if (NR) printf "%.10g\n", 100 * sum / NR / n }')" \
        real 'full: within 5%' "$(pick "${2:-}" "the paper's is of another model and number of ranks")"
    claim
    row "$item" 'density of independent choices' % "$paper" "$source" "$(calc "100 * (1 - (1 - $density) ^ $ranks)")" model none
    sum_curve() { curve topkdsa.jsonl step "$1" "$(calc "100 / $n")" 'density!=1'; }
    {
        [ -n "$quick" ] || strip "$(of topkdsa.jsonl step epoch)" "$(calc "0.95 * $paper")" "$(calc "1.05 * $paper")" | band "paper's mean of 160 epochs, +-5%"
        sum_curve global_nnz | block 'TopkDSA, sum'
        sum_curve local_nnz_mean | block 'one rank'
    } >"$out/figure.dat"
    figure figure.png "$out/figure.dat" lines.gp with=lines title="Density of the sum, $item" xlabel=epoch ylabel='entries [% of n]' yrange='0:*'
}
