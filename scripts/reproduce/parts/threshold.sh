# shellcheck shell=sh
# shellcheck disable=SC2154 # what the IDs set
# threshold.sh: sourced by the IDs of Ok-Topk's Fig. 4 after their run before.jsonl, of $steps steps on $ranks ranks, as `$item`: one step
# more, with --audit and --record, whose residual and gradient on rank 0 give the distribution, the exact threshold and that of
# Gaussiank. Makes the rows of $threshold_claim and the figure. $place: where the paper has it; $since: steps after an exact threshold.
record=$runs/step.jsonl.run.record # goes with the run when that is made anew
checkpoint=$runs/before.jsonl.run/checkpoint-$(printf %08d "$steps")
train step.jsonl "$ranks" --resume "$checkpoint" --steps $((steps + 1)) --audit 1 --record "$record"
n=$(of step.jsonl header parameters)
job histogram.txt sh "$library"/parts/gradient-histogram.sh "$checkpoint" "$record" "$ranks" "$n" "$density"
# --finished comes by before it is made, as does whoever lists the jobs or wants another one
if [ -z "$quick$only" ] && there histogram.txt; then rm -f "$record"; fi

# histogram SED-PROGRAM: out of what the histogram says
histogram() { if here_now histogram.txt; then sed -n "$1" "$out/histogram.txt"; fi; }
statistic() { histogram "1s/.*$1 \([^ ]*\).*/\1/p"; }
of_step() { of step.jsonl step "threshold_$1"; }
item="$item, step $steps, $since steps after"
claim "$threshold_claim"
against words
direction 'full: between -50 and 50'
row "$item" 'reused threshold over the exact one, less 1' % '' "$place, Section 3.1.3" "$(calc "100 * ($(of_step mean) / $(of_step exact_mean) - 1)")" real \
    'full: between -10 and 10'
row "$item" 'Gaussian threshold over the exact one' '' '' "$place, Section 3.1.3" "$(calc "$(statistic gaussian) / $(statistic exact)")" real 'full: at least 1'
row "$item" 'entries beyond the Gaussian threshold, of k' '' '' "$place, Section 3.1.3" "$(calc "$(statistic beyond) / int($density * $n)")" real \
    'full: at most 1'

exact=$(statistic exact) sigma=$(statistic sigma)
top=$(histogram 's/^bin //p' | awk '$2 > m { m = $2 } END { print m }')
upright() { [ -z "$top" ] || printf '%s 0\n%s %s\n' "$1" "$1" "$(calc "$top / 2")"; }
{
    histogram 's/^bin //p' | block 'real distribution'
    histogram 's/^bin //p' | awk -v sigma="$sigma" -v mean="$(statistic mean)" -v n="$n" -v width="$(calc "4 * $exact / 201")" '
        { z = ($1 - mean) / sigma; print $1, n * width / sigma / sqrt(2 * 3.14159265358979) * exp(-z * z / 2) }' | block 'normal distribution'
    upright "$exact" | block 'exact threshold'
    upright "$(of_step mean)" | block "Ok-Topk's, reused"
    upright "$(statistic gaussian)" | block "Gaussiank's"
} >"$out/figure.dat"
figure figure.png "$out/figure.dat" lines.gp with=lines title="$item an exact threshold" \
    xlabel='value' ylabel='entries' yrange="0:$(calc "1.1 * $top")" note='residual and gradient of rank 0; the paper counts more bins, which its text does not say; its axis ends beyond the thresholds'
