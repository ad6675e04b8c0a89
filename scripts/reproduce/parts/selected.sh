# shellcheck shell=sh
# shellcheck disable=SC2154 # what the IDs set
# selected.sh: sourced by the IDs of Ok-Topk's Fig. 6, how many values are selected, of their runs paper.jsonl (Algorithm 1), oktopk.jsonl
# (thresholds led by the counts) and gaussiank.jsonl (unadjusted) on $ranks ranks, as `$item`; tau' is $tau.

# over_steps FILE KEY WHAT [FROM TO]: mean over the steps that are not dense, in this part of the run, of |count - k| / k [%]
# (deviation), count / k (count); or the share of these steps [%] with an exact threshold on a rank, mean of all (local), globally (global)
over_steps() {
    values "$1" "step,k,evaluated_local,${2:-k},evaluated_global" --type step --where density!=1 --missing - |
        awk -v what="$3" -v from="${4:-0}" -v to="${5:-1}" -v all="$(of "$1" header steps)" -v ranks="$ranks" "$(cat scripts/lib/selection.awk)"'
        $1 <= from * all || $1 > to * all { next }
        { n++ }
        what == "local" { sum += found($3, ranks) }
        what == "global" { sum += NF == 5 && $5 != "-" }
        what == "deviation" { sum += off($4, $2) }
        what == "count" { sum += $4 / $2 }
        END { if (n) printf "%.6g\n", (what == "count" ? 1 : 100) * sum / n }'
}
# deviation_rows SIDE CLAIM PAPER SOURCE [WHERE]: of the local or the global counts; the rows of Algorithm 1 are compared, those of our rule shown.
# WHERE: what else to say of the paper's number
deviation_rows() {
    case $1 in local) deviation_key=local_nnz_mean ;; *) deviation_key=global_nnz ;; esac
    for deviation_file in paper oktopk; do
        case $deviation_file in paper) deviation_name='Algorithm 1' ;; *) deviation_name='thresholds led by counts' ;; esac
        claim
        against measured
        case $deviation_file in
        paper)
            claim "$2"
            direction 'full: at most 50'
            deviation_rule='full: at most' deviation_note=''
            ;;
        *) deviation_rule=none deviation_note='our own rule, which the paper has not' ;;
        esac
        row "$item, $deviation_name" "$1: mean deviation from k (paper: ${5:-below})" % "$3" "$4" \
            "$(over_steps $deviation_file.jsonl $deviation_key deviation)" real "$deviation_rule" "$deviation_note"
        claim
        against words
        row "$item, $deviation_name" "$1: steps with an exact threshold (tau' = $tau: $(calc "100 / $tau"))" % '' 'Algorithm 1' \
            "$(over_steps $deviation_file.jsonl '' "$1")" real none
    done
}
# gaussian_rows CLAIM PLACE FIRST: Gaussiank's counts over the first such part of the run and over its second half; before that, shown alone,
# whether it begins with too many, and for how long
gaussian_start() { # gaussian_start EXPRESSION: of `first`, the first count over k that is logged and not dense, or `epochs` until one is below k
    values gaussiank.jsonl step,epoch,k,local_nnz_mean --type step --where density!=1 |
        awk 'NR == 1 { first = $4 / $3; begin = $2 } $4 < $3 { epochs = $2 - begin; exit } END { if (NR && ('"$1"') != "") printf "%.6g\n", '"$1"' }'
}
gaussian_rows() {
    against words
    row "$item, Gaussiank unadjusted" 'local: count over k, first step that is not dense' '' '' "$2" "$(gaussian_start first)" real none
    row "$item, Gaussiank unadjusted" 'local: from there until the count is below k' epochs '' "$2" "$(gaussian_start epochs)" real none
    claim "$1"
    row "$item, Gaussiank unadjusted" "local: mean count over k, first $(calc "100 * $3")% of the run" '' '' "$2" \
        "$(over_steps gaussiank.jsonl local_nnz_mean count 0 "$3")" real 'full: at least 1'
    row "$item, Gaussiank unadjusted" 'local: mean count over k, second half of the run' '' '' "$2" "$(over_steps gaussiank.jsonl local_nnz_mean count 0.5 1)" \
        real 'full: at most 0.32'
    claim
}
counts() { curve "$1" step "$2" 1 'density!=1'; } # counts FILE KEY
# count_figure TITLE NOTE
count_figure() {
    {
        strip "$(of oktopk.jsonl step epoch)" "$(calc "0.89 * $(of oktopk.jsonl step k)")" "$(calc "1.11 * $(of oktopk.jsonl step k)")" |
            band 'paper: mean deviation below 11%'
        counts gaussiank.jsonl local_nnz_mean | block 'Gaussiank, unadjusted'
        counts paper.jsonl local_nnz_mean | block 'Algorithm 1 (local)'
        counts paper.jsonl global_nnz | block 'Algorithm 1 (global)'
        counts oktopk.jsonl local_nnz_mean | block 'led by counts (local)'
        counts oktopk.jsonl global_nnz | block 'led by counts (global)'
    } >"$out/figure.dat"
    figure figure.png "$out/figure.dat" lines.gp with=lines title="$1" xlabel=epoch ylabel='number of selected values' yrange='0:*' note="$2"
}
