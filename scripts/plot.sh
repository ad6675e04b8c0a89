#!/bin/sh
# plot.sh RUN... [OPTION...]: draws from run.jsonl of one or more runs (directories, or the files themselves):
#   loss        training loss against steps, every step and smoothed
#   accuracy    test accuracy against epochs; of runs on a text perplexity: validation perplexity; on speech wer: word error rate of the test
#   loss-bytes, accuracy-bytes, loss-time, accuracy-time
#               the same against the bytes that a rank has sent, and against the time spent in steps
#   time        where the time of a step goes, one bar per run
# Titles say of how much a run is a part, and what of its schedules (density, learning rate) it did not come to.
# Runs that differ in nothing but the seed are one curve: the median over the seeds, in a band from the least to the greatest,
# as far as all of them got; the legend says how many seeds.
#   --out DIR        where to: else the run's own directory, of several runs runs/plots
#   --format F       png, pdf or svg (png)
#   --against LIST   some of steps,bytes,time: the pictures to draw (all)
#   --no-bands       a curve for every run
# Needs gnuplot, and the program, which reads the logs.
set -eu
scripts=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=scripts/lib/common.sh
. "$scripts/lib/common.sh"
options_hint='the options are --out DIR, --format png|pdf|svg, --against steps,bytes,time, --no-bands'
out='' count=0 format=png against=steps,bytes,time no_bands='' first=''
options 'out format against no-bands!no_bands ...' "$@"
eval "set -- $words"
make_scratch
for log in "$@"; do
    file=$log
    [ ! -d "$file" ] || file=$file/run.jsonl
    [ -f "$file" ] || fail "$log: no run.jsonl there; a run writes one when it is given --out"
    count=$((count + 1))
    first=${first:-$(dirname "$file")}
    cp "$file" "$scratch/log-$count"
    label=$(basename "$file" .jsonl)
    [ "$label" != run ] || label=$(basename "$(cd "$(dirname "$file")" && pwd)")
    printf '%s\n' "$label" >"$scratch/label-$count"
done
[ $count -gt 0 ] || fail "which run? usage: plot.sh RUN... [--out DIR] [--format png|pdf|svg]"
for axis in $(in_words "$against"); do
    case $axis in steps | bytes | time) ;; *) fail "--against has no \"$axis\"; there are steps, bytes, time" ;; esac
done
[ -n "$against" ] || fail "--against is empty; it takes some of steps,bytes,time"

# -- how it is drawn -------------------------------------------------------------------------------------------------------
if ! has gnuplot; then
    if [ -f "$scripts/deps.sh" ]; then fail "gnuplot is not installed: sh $scripts/deps.sh test"; fi
    fail "gnuplot is not installed; its package is called gnuplot, or gnuplot-nox"
fi
# Not every gnuplot is built with every library: what draws a format, best first, and what comes closest to it.
terminals=$(gnuplot -e 'set terminal' 2>&1 </dev/null | awk '{ print $1 }')
choose() { # choose TERMINAL...: the first that there is
    for terminal in "$@"; do
        if printf '%s\n' "$terminals" | grep -qx "$terminal"; then return 0; fi
    done
    fail "this gnuplot draws neither PNG, nor PDF, nor SVG; install another one, as gnuplot-nox"
}
case $format in
png) choose pngcairo png svg pdfcairo ;;
pdf) choose pdfcairo svg pngcairo png ;;
svg) choose svg pdfcairo pngcairo png ;;
*) fail "--format is png, pdf or svg, not \"$format\"" ;;
esac
# Sizes are asked for in pixels of a screen. The terminal png has neither dashes nor Greek letters.
marks=1 big=,19 small=,13 rho=ρ
case $terminal in
pngcairo) ending=png look="pngcairo noenhanced font 'Sans,16' linewidth 1.5" size='sprintf("size %d,%d", w, h)' ;;
png) ending=png rho=rho look="png truecolor noenhanced medium linewidth 1.5" size='sprintf("size %d,%d", w, h)' ;;
pdfcairo) ending=pdf marks=0.7 big=,11 small=,8 look="pdfcairo noenhanced font 'Sans,9' fontscale 1 linewidth 1.5" size='sprintf("size %gin,%gin", w / 130.0, h / 130.0)' ;;
svg) ending=svg marks=0.6 look="svg noenhanced font 'Sans,16' linewidth 1.5 background rgb 'white'" size='sprintf("size %d,%d", w, h)' ;;
esac
[ "$ending" = "$format" ] || echo "plot.sh: this gnuplot draws no $format; drawing $ending instead" >&2

if [ -z "$out" ]; then
    out=$first
    [ $count -eq 1 ] || out=runs/plots
fi
find_program "$scripts" || fail "the program is needed, which reads logs: build it (make), or have it in PATH"
mkdir -p "$out" || fail "cannot make the directory $out; give another one with --out"

# -- tables ----------------------------------------------------------------------------------------------------------------
set --
i=0
while [ $i -lt $count ]; do
    i=$((i + 1))
    read_log "$scratch/log-$i" "$scratch/$i" || fail "the log of $(cat "$scratch/label-$i") holds no step yet"
    printf 'dir=%s\n' "$(cat "$scratch/label-$i")" >>"$scratch/$i.facts"
    set -- "$@" "$scratch/$i.config" "$scratch/$i.facts"
done
fact() { cat "$scratch"/*.facts | sed -n "s/^$1=//p"; }
quality=$(fact kind | sort -u)
case $quality in
accuracy | perplexity | wer) ;;
*) fail "some of these runs are on images, some on a text or on speech; draw them apart" ;;
esac
awk -v bands="$([ -n "$no_bands" ] || echo 1)" -f "$scripts/plot/group.awk" "$@" >"$scratch/groups"
of_all() { sed -n "s/^$1	//p" "$scratch/groups" | tr -d "\"'\\\\"; }
curves=$(grep -c '^curve' "$scratch/groups")

# Bytes: from those of the first step to the end of the run that sent most.
bytes_low=$(cat "$scratch"/*.loss | awk '$2 > 0 && (!low || $2 < low) { low = $2 } END { print low + 0 }')
bytes_high=$(fact bytes | sort -g | tail -n 1)
if [ "$bytes_high" = 0 ]; then # one rank sends nothing
    case ",$against," in *,bytes,*) [ "$against" != bytes ] || fail "nothing was sent in these runs: there is no --against bytes to draw" ;; esac
    against=$(printf '%s' ",$against," | sed 's/,bytes,/,/; s/^,//; s/,$//')
fi

# merge WIDE CURVE FILES: the tables of a curve's runs as one
merge() {
    # shellcheck disable=SC2086 # names that we made
    (cd "$scratch" && awk -v wide="$1" -v curve="$2" -v curves="$curves" -v bytes_from="$bytes_low" -v bytes_to="$bytes_high" \
        -f "$scripts/lib/stats.awk" -f "$scripts/plot/merge.awk" $3)
}
: >"$scratch/settings"
set_text() { printf "%s = '%s'\n" "$1" "$(printf '%s' "$2" | sed "s/'/''/g")" >>"$scratch/settings"; }
longest_line() { awk '{ if (length($0) > w) w = length($0) } END { print w + 0 }'; }
set_number() { printf '%s = %s\n' "$1" "$2" >>"$scratch/settings"; }
echo 'run compute "input wait" select pack communicate merge update other sum at low high top' >"$scratch/time"
tab=$(printf '\t')
i=0
while IFS=$tab read -r _ members label how_many; do
    i=$((i + 1))
    losses='' scores='' times=''
    for run in $members; do
        losses="$losses $run.loss" scores="$scores $run.score" times="$times $run.time"
    done
    merge 0 $i "$losses" >"$scratch/loss-$i"
    merge 1 $i "$scores" >"$scratch/score-$i"
    [ -s "$scratch/score-$i" ] || echo '0 0 0 - - - - - -' >"$scratch/score-$i"
    label=$(printf '%s' "$label" | tr -d "\"'\\\\" | sed "s/ρ/$rho/")
    set_text name$i "$label"
    set_number members$i "$how_many"
    set_text final$i "$(awk -v unit="$(if [ "$quality" != perplexity ]; then echo %; fi)" '$4 != "-" { text = sprintf("%.2f%s", $4, unit); if ($6 > $5) text = text sprintf(" (%.2f to %.2f)", $5, $6) } END { print text }' "$scratch/score-$i")"
    # shellcheck disable=SC2086 # names that we made
    (cd "$scratch" && cat $times) | NAME=$(printf '%s' "$label" | sed 's/, /\\n/g; s/ (\(.*\))$/\\n\1/') awk -v at=$((i - 1)) '
        { for (c = 1; c <= 9; c++) sum[c] += $c; if (NR == 1 || $9 < low) low = $9; if ($9 > high) high = $9 }
        END {
            printf "\"%s\"", ENVIRON["NAME"]
            for (c = 1; c <= 9; c++) printf " %.6f", sum[c] / NR
            many = NR > 1
            printf " %d %s %s %.6f\n", at, (many ? low : "-"), (many ? high : "-"), (many ? high : sum[9])
        }' >>"$scratch/time"
done <<GROUPS
$(grep '^curve' "$scratch/groups")
GROUPS

# -- ranges ----------------------------------------------------------------------------------------------------------------
cat "$scratch"/loss-[0-9]* | awk '
    { if (low == "" || $5 < low) low = $5; if ($6 > high) high = $6; if ($1 > steps) steps = $1; if ($3 > seconds) seconds = $3 }
    END { margin = 0.06 * (high - low) + 1e-3 * high; printf "loss_low = %g\nloss_high = %g\nsteps_high = %g\nseconds_high = %g\n", (low - margin > 0 ? low - margin : 0), high + margin, steps, seconds }' >>"$scratch/settings"
# A score before training is far away from all others; a curve comes from there, but has no room made for it.
awk -v sent="$bytes_low" -v percent="$([ "$quality" != perplexity ] && echo 1 || echo 0)" '
    FNR == 1 { of_curve = 0 }
    $4 == "-" { next }
    { scored = 1 }
    $1 > 0 { if (low == "" || $5 < low) low = $5; if (high == "" || $6 > high) high = $6; if ($1 > epochs) epochs = $1; if (++of_curve > 1) many = 1 }
    $1 > 0 && $2 > 0 { if (!bytes || $2 < bytes) bytes = $2 }
    $1 <= 0 { if (start == "" || $4 < start) start = $4 }
    END {
        printf "scored = %d\npoints = %d\nonly_start = %d\n", scored, !many, !epochs
        printf "after = \047%s\047\n", epochs ? sprintf("after %.3g epoch%s", epochs, epochs > 0.995 && epochs < 1.005 ? "" : "s") : "before training"
        if (low == "") low = high = start + 0
        margin = 0.06 * (high - low) + 0.5
        low -= margin; high += margin
        if (low < 0) low = 0
        if (percent && high > 100) high = 100
        printf "score_low = %g\nscore_high = %g\nscore_bytes_low = %.10g\nepochs_high = %g\n", low, high, (bytes ? bytes : sent), (epochs > 0 ? 1.02 * epochs : 1)
    }' "$scratch"/score-[0-9]* >>"$scratch/settings"
scored=$(sed -n 's/^scored = //p' "$scratch/settings")
[ "$scored" = 1 ] || echo "plot.sh: there is no evaluation to draw, so no $quality.$ending" >&2
set_number bar_high "$(sed 1d "$scratch/time" | awk '$NF > t { t = $NF } END { print 1.1 * t }')"
# A bar must be as wide as the longest line below it.
longest=$(sed '1d; s/^"//; s/" .*//; s/\\n/\
/g' "$scratch/time" | longest_line)
set_number bar_width $((longest > 12 ? 40 + 10 * longest : 160))
set_number name_width "$(grep '^curve' "$scratch/groups" | cut -f 3 | longest_line)"
set_number final_width "$(sed -n 's/^final[0-9]* = //p' "$scratch/settings" | longest_line)"
set_number curves "$curves"
set_number bytes_low "$bytes_low"
set_number bytes_high "$bytes_high"
set_text dir "$scratch"
mkdir "$scratch/drawn"
set_text out "$scratch/drawn"
set_text ending "$ending"
set_text quality "$quality"
about=$(of_all about)
banded=$(of_all banded)
# with_band TEXT: what is known of all runs, and behind it how several seeds are drawn
with_band() { if [ "$banded" = 1 ]; then printf '%s' "$about${about:+; }$1"; else printf '%s' "$about"; fi; }
set_text about "$(with_band 'lines: median over the seeds, bands: from the least to the greatest')"
set_text about_points "$(with_band 'marks: median over the seeds, whiskers: from the least to the greatest')"
set_text about_bars "$(with_band 'bars: mean over the seeds, whiskers: from the least to the greatest')"
set_number mark_scale $marks
set_text big $big
set_text small $small
set_number banded "$banded"
sed -n "s/^note$tab//p" "$scratch/groups" | tr -d "\"\\\\" | sed "s/ρ/$rho/g" | fold -s -w 125 >"$scratch/note"
set_number notes "$(grep -c . "$scratch/note" || true)"
set_number note "\"$(sed 's/$/\\n/' "$scratch/note" | tr -d '\n')\""
set_text part "$(of_all part)"
set_text against "$(printf '%s' "$against" | tr , ' ')"
printf 'terminal = "%s"\nsize_of(w, h) = %s\n' "$look" "$size" >>"$scratch/settings"
status=0
LC_ALL=C.UTF-8 gnuplot "$scratch/settings" "$scripts/plot/plot.gp" 2>"$scratch/said" || status=$?
grep -v -e 'no valid points' -e '^ *$' "$scratch/said" >&2 || true # a curve may have nothing to show in one of the pictures
[ $status -eq 0 ] || fail "gnuplot could not draw"
# put NAME: the picture to its place, where it replaces a link: the name is our own, and nobody has asked for what that leads to
put() {
    if [ -h "$out/$1" ]; then rm -f "$out/$1"; fi
    [ ! -d "$out/$1" ] || fail "$out/$1 is a directory; move it away, or give another one with --out"
    mv -f "$scratch/drawn/$1" "$out/$1" 2>/dev/null || fail "cannot write $out/$1; give another directory with --out"
    echo "$out/$1"
}
for axis in $(in_words "$against"); do
    suffix=-$axis
    [ "$axis" != steps ] || suffix=
    put "loss$suffix.$ending"
    [ "$scored" = 0 ] || put "$quality$suffix.$ending"
done
put "time.$ending"
