# shellcheck shell=sh
# shellcheck disable=SC2154 # what the IDs set
# xi.sh: sourced by the IDs of Ok-Topk's Fig. 5, the empirical xi of Assumption 1, of runs STEM-0.01.jsonl and STEM-0.02.jsonl on $ranks
# ranks, as `$item`.

# mean_xi FILE FROM TO: over this part of the whole run, nothing where the run does not come to it;  largest_xi FILE, step_of_largest_xi FILE
mean_xi() {
    curve "$1" step xi | awk -v from="$2" -v to="$3" -v whole="$(of "$1" summary run_epochs)" '
        $1 > from * whole && $1 <= to * whole { sum += $2; n++ }
        END { if (n) printf "%.6g\n", sum / n }'
}
ratio() { [ -z "$1" ] || [ -z "$2" ] || calc "$1 / $2"; }
step_of_largest_xi() { values "$1" step,xi --type step --where xi!= | awk '$2 > most { most = $2; step = $1 } END { print step }'; }
largest_xi() { curve "$1" step xi | awk '$2 > most { most = $2 } END { print most }'; }
# xi_rows CLAIM STEM PLACE FIRST [RULE]: FIRST: the part of the run in which it grows; RULE: of which thresholds, where an ID has several
xi_rows() {
    claim "$1"
    against words
    xi_item=$item${5:+, $5}
    for xi_density in 0.01 0.02; do
        xi_third=$(mean_xi "$2-$xi_density.jsonl" 0.5 0.75)
        row "$xi_item, density $xi_density" 'largest xi (paper: below P)' '' '' "$3" "$(largest_xi "$2-$xi_density.jsonl")" real "full: at most $ranks"
        row "$xi_item, density $xi_density" 'xi of the third quarter over that of the beginning' x '' "$3" \
            "$(ratio "$xi_third" "$(mean_xi "$2-$xi_density.jsonl" 0 "$4")")" real 'full: at least 1'
        row "$xi_item, density $xi_density" 'xi of the last quarter over that of the third' x '' "$3" \
            "$(ratio "$(mean_xi "$2-$xi_density.jsonl" 0.75 1)" "$xi_third")" real 'full: between 0.667 and 1.5'
    done
    row "$xi_item" 'mean xi of the second half, density 0.02 over 0.01' x '' "$3" "$(ratio "$(mean_xi "$2-0.02.jsonl" 0.5 1)" "$(mean_xi "$2-0.01.jsonl" 0.5 1)")" \
        real 'full: at most 1'
    claim
}
# xi_figure FILE.png STEM TITLE [BOUND]: BOUND: what the paper's bound is drawn as, P where it is not given; "no" for none
xi_figure() {
    {
        [ "${4:-}" = no ] || strip "$(of "$2-0.01.jsonl" step epoch)" 0 "$ranks" | band 'paper: below P, or not much larger'
        for xi_density in 0.01 0.02; do
            curve "$2-$xi_density.jsonl" step xi | block "Ok-Topk, density $xi_density"
        done
    } >"$out/${1%.png}.dat"
    case ${4:-} in no) xi_drawn "$1" "$3" ;; *) xi_drawn "$1" "$3" "$ranks" ;; esac
}
# xi_drawn FILE.png TITLE [BOUND]: the curves that stand in FILE.dat; BOUND is to be in the picture, with room above
xi_drawn() {
    if [ -n "${3:-}" ]; then xi_range="0:$(calc "1.25 * $3")<*"; else xi_range='0:*'; fi
    figure "$1" "$out/${1%.png}.dat" lines.gp with=lines title="$2" xlabel=epoch ylabel='value of xi' yrange="$xi_range"
}
