# shellcheck shell=sh
# shellcheck disable=SC2154 # what the IDs set
# selected.sh: sourced by the IDs of Ok-Topk's Fig. 6, how many values are selected, of their runs paper.jsonl (Algorithm 1), code.jsonl
# (thresholds moved as in the authors' code, with --audit), oktopk.jsonl (led by the counts) and gaussiank.jsonl (unadjusted) on $ranks
# ranks, as `$item`; tau' is $tau.
#
# The code that the authors published (github.com/Shigangli/Ok-Topk, 9763dccb) collects what the figure shows, and is not what the paper says in
# two points. It moves both thresholds by the counts of every step (topk/nudge.h). And what it draws as Gaussiank (PROFILING_GRAD, predictratio2threshold) is no
# training with Gaussiank: beside Ok-Topk's training it counts how many entries of what Ok-Topk selects from reach Gaussiank's threshold.
# So each claim is held against both: against the text, and with the code's rule.

# over_steps FILE KEY WHAT [FROM TO]: mean over the steps that are not dense, in this part of the run, of |count - k| / k [%]
# (deviation), count / k (count); or the share of these steps [%] with an exact threshold on a rank, mean of all (local), globally (global)
over_steps() {
    values "$1" "step,k,evaluated_local,${2:-k},evaluated_global" --type step --where density!=1 --missing - |
        awk -v what="$3" -v from="${4:-0}" -v to="${5:-1}" -v all="$(of "$1" header steps)" -v ranks="$ranks" "$(cat scripts/lib/selection.awk)"'
        $1 <= from * all || $1 > to * all || $4 == "-" { next }
        { n++ }
        what == "local" { sum += found($3, ranks) }
        what == "global" { sum += NF == 5 && $5 != "-" }
        what == "deviation" { sum += off($4, $2) }
        what == "count" { sum += $4 / $2 }
        END { if (n) printf "%.6g\n", (what == "count" ? 1 : 100) * sum / n }'
}
# count_key local|global: where the log has what a rank sent, the mean over the ranks, or what is left of their sum
count_key() { case $1 in local) echo local_nnz_mean ;; *) echo global_nnz ;; esac; }
# deviation_rows SIDE CLAIM PAPER SOURCE [WHERE]: of the local or the global counts; the rows of Algorithm 1 are compared, as CLAIM, and those of the
# authors' rule, as CLAIM-code; those of our rule are shown. WHERE: what else to say of the paper's number
deviation_rows() {
    deviation_key=$(count_key "$1")
    for deviation_file in paper code oktopk; do
        claim
        against measured
        deviation_rule='full: at most' deviation_note=''
        case $deviation_file in
        paper)
            claim "$2"
            direction 'full: at most 50'
            deviation_name='Algorithm 1'
            ;;
        code)
            claim "$2-code"
            direction 'full: at most 50'
            deviation_name="the authors' code"
            ;;
        *)
            deviation_name='thresholds led by counts'
            deviation_rule=none deviation_note='our own rule, which the paper has not'
            ;;
        esac
        row "$item, $deviation_name" "$1: mean deviation from k (paper: ${5:-below})" % "$3" "$4" \
            "$(over_steps $deviation_file.jsonl "$deviation_key" deviation)" real "$deviation_rule" "$deviation_note"
        claim
        against words
        row "$item, $deviation_name" "$1: the same without the first tenth of the run" % '' "$4" "$(over_steps $deviation_file.jsonl "$deviation_key" deviation 0.1 1)" \
            real none 'the first epochs weigh less in a longer run'
        row "$item, $deviation_name" "$1: steps with an exact threshold (tau' = $tau: $(calc "100 / $tau"))" % '' 'Algorithm 1' \
            "$(over_steps $deviation_file.jsonl '' "$1")" real none
    done
}
# gaussian_rows CLAIM PLACE FIRST: Gaussiank's counts over the first such part of the run and over its second half, training by itself, as CLAIM, and
# beside the run with the authors' rule, as CLAIM-code; before that, shown alone, whether it begins with too many, and for how long
gaussian_start() { # gaussian_start EXPRESSION FILE KEY: of `first`, the first count over k that is logged and not dense, or `epochs` until one is below k
    values "$2" "step,epoch,k,$3" --type step --where density!=1 --where "$3!=" |
        awk 'NR == 1 { first = $4 / $3; begin = $2 } $4 < $3 && epochs == "" { epochs = $2 - begin } END { if (NR && ('"$1"') != "") printf "%.6g\n", '"$1"' }'
}
gaussian_rows() {
    for gaussian_file in gaussiank code; do
        case $gaussian_file in
        gaussiank) gaussian_name='Gaussiank unadjusted' gaussian_key=local_nnz_mean gaussian_claim=$1 ;;
        *) gaussian_name="Gaussiank's threshold beside the authors' code" gaussian_key=gaussian_nnz_mean gaussian_claim=$1-code ;;
        esac
        against words
        row "$item, $gaussian_name" 'local: count over k, first step that is not dense' '' '' "$2" "$(gaussian_start first $gaussian_file.jsonl $gaussian_key)" \
            real none
        row "$item, $gaussian_name" 'local: from there until the count is below k' epochs '' "$2" "$(gaussian_start epochs $gaussian_file.jsonl $gaussian_key)" \
            real none
        claim "$gaussian_claim"
        row "$item, $gaussian_name" "local: mean count over k, first $(calc "100 * $3")% of the run" '' '' "$2" \
            "$(over_steps $gaussian_file.jsonl $gaussian_key count 0 "$3")" real 'full: at least 1'
        row "$item, $gaussian_name" 'local: mean count over k, second half of the run' '' '' "$2" "$(over_steps $gaussian_file.jsonl $gaussian_key count 0.5 1)" \
            real 'full: at most 0.32'
        claim
    done
}
counts() { curve "$1" step "$2" 1 'density!=1'; } # counts FILE KEY
# count_figure TITLE NOTE: as in the paper, of the authors' code; and the other rules
count_figure() {
    count_band() {
        strip "$(of "$1" step epoch)" "$(calc "0.89 * $(of "$1" step k)")" "$(calc "1.11 * $(of "$1" step k)")" | band 'paper: mean deviation below 11%'
    }
    {
        count_band code.jsonl
        counts code.jsonl global_nnz | block "the authors' code (global)" # to and fro the most: behind the others
        counts code.jsonl local_nnz_mean | block "the authors' code (local)"
        counts code.jsonl gaussian_nnz_mean | block "Gaussiank's threshold beside it"
    } >"$out/figure.dat"
    figure figure.png "$out/figure.dat" lines.gp with=lines title="$1" xlabel=epoch ylabel='number of selected values' yrange='0:*' note="$2"
    {
        count_band oktopk.jsonl
        counts gaussiank.jsonl local_nnz_mean | block 'Gaussiank, unadjusted'
        counts paper.jsonl local_nnz_mean | block 'Algorithm 1 (local)'
        counts paper.jsonl global_nnz | block 'Algorithm 1 (global)'
        counts oktopk.jsonl local_nnz_mean | block 'led by counts (local)'
        counts oktopk.jsonl global_nnz | block 'led by counts (global)'
    } >"$out/rules.dat"
    figure rules.png "$out/rules.dat" lines.gp with=lines title="$1" xlabel=epoch ylabel='number of selected values' yrange='0:*' note="$2"
}
