#!/bin/sh
# plot.sh RUN... [--out DIR]: draws from run.jsonl of one or more runs (directories, or the files themselves):
#   loss.png      training loss against steps, every step and smoothed
#   accuracy.png  test accuracy against epochs; of runs on a text perplexity.png: validation perplexity. Not of runs that
#                 were not evaluated
#   time.png      where the time of a step goes, one bar per run
# DIR: by default the run's own directory, of several runs runs/plots. Needs gnuplot and nothing else.
set -eu
LC_ALL=C
export LC_ALL
here=$(dirname "$0")

fail() {
    echo "plot.sh: $*" >&2
    exit 2
}

out=
count=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/sparsetrain-plot.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
first=
while [ $# -gt 0 ]; do
    case $1 in
    --out)
        [ $# -gt 1 ] || fail "--out needs a directory"
        out=$2
        shift
        ;;
    --out=*) out=${1#--out=} ;;
    -h | --help)
        sed -n '2,7s/^# //p' "$0"
        exit 0
        ;;
    -*) fail "unknown option $1; the options are --out DIR" ;;
    *)
        file=$1
        [ ! -d "$file" ] || file=$file/run.jsonl
        [ -f "$file" ] || fail "$1: no run.jsonl there; a run writes one when it is given --out"
        count=$((count + 1))
        first=${first:-$(dirname "$file")}
        cp "$file" "$scratch/run-$count"
        printf '%s\n' "$(basename "$(dirname "$file")")" >"$scratch/label-$count"
        ;;
    esac
    shift
done
[ $count -gt 0 ] || fail "which run? usage: plot.sh RUN... [--out DIR]"
command -v gnuplot >/dev/null 2>&1 || fail "gnuplot is not installed: sh scripts/deps.sh test"
if [ -z "$out" ]; then
    out=$first
    [ $count -eq 1 ] || out=runs/plots
fi
mkdir -p "$out"

# One pass over a run.jsonl (docs/run-jsonl.md): tables for gnuplot, a name for the legend, which has the density that the
# run came to, and a note of what it did not come to. The smoothed loss is the mean over a window of a fiftieth of the run
# around each step. A run that was resumed or killed is drawn as far as it got.
extract() { # extract I
    awk -v losses="$scratch/loss-$1" -v accuracies="$scratch/accuracy-$1" -v times="$scratch/time-$1" \
        -v legend="$scratch/name-$1" -v note="$scratch/note-$1" -v range="$scratch/range-$1" -v kind="$scratch/kind-$1" '
        function number(key,   text) {
            if (!match($0, "\"" key "\":[-+0-9.eE]+")) return "-"
            text = substr($0, RSTART, RLENGTH); sub(/^[^:]*:/, "", text)
            return text + 0
        }
        function string(key,   text) {
            if (!match($0, "\"" key "\":\"[^\"]*\"")) return ""
            text = substr($0, RSTART, RLENGTH); sub(/^[^:]*:"/, "", text); sub(/"$/, "", text)
            return text
        }
        function missing(what) { lacks = lacks (lacks == "" ? "Not reached: " : ", ") what }
        # Of the schedules, what begins behind the last step, which began at this epoch. Logs of before lack the keys.
        function look_for_missing(began,   i, count, all) {
            if (dense == "" && density[n] > target)
                missing("density " target (settled == "-" ? "" : " (epoch " settled ")"))
            if (ramp != "-" && ramp > at[n]) missing("learning rate " rate " (epoch " ramp ")")
            for (i = 1; i <= changes; i++) if (change[i] > began) { count++; all = all (count > 1 ? ", " : "") change[i] }
            if (count) missing("the rate\047s change" (count > 1 ? "s" : "") " at epoch" (count > 1 ? "s" : "") " " all)
        }
        BEGIN { phases = split("compute io select pack communicate merge update other", phase, " ") }
        /^\{"type":"header"/ {
            name = string("algo"); text = number("valid_words") != "-"
            dense = name ~ /^(dense|dense-ovlp|torus2d|fedavg)$/ ? "yes" : ""; target = number("density")
            settled = number("density_from"); ramp = number("lr_from"); rate = number("lr")
            length_of_run = number("run_epochs"); stop = number("stops_at") == "-" ? "-" : number("stop-at")
            changes = match($0, /"lr_changes":\[[^]]*/) ? split(substr($0, RSTART + 14, RLENGTH - 14), change, ",") : 0
        }
        /^\{"type":"step"/ {
            n++; step[n] = number("step"); loss[n] = number("loss"); density[n] = number("density"); at[n] = number("epoch")
            for (i = 1; i <= phases; i++) total[i] += number(phase[i])
        }
        /^\{"type":"eval"/ {
            epoch[++m] = number("epoch"); accuracy[m] = text ? number("valid_perplexity") : 100 * number("test_accuracy")
        }
        END {
            if (!n) exit 1
            half = int(n / 100); if (half < 2) half = 2
            for (i = 1; i <= n; i++) sum[i] = sum[i - 1] + loss[i]
            every = int(n / 2000) + 1
            for (i = 1; i <= n; i++) {
                from = i - half < 1 ? 1 : i - half; to = i + half > n ? n : i + half
                mean = (sum[to] - sum[from - 1]) / (to - from + 1)
                if (mean > top) top = mean
                if (i % every == 0 || i == n) print step[i], loss[i], mean >losses
            }
            printf "" >accuracies
            for (i = 1; i <= m; i++) {
                if (text && epoch[i] == 0) continue # the whole vocabulary: it would leave no room for the rest
                print epoch[i], accuracy[i] >accuracies
            }
            print (text ? "perplexity" : "accuracy") >kind
            for (i = 1; i <= phases; i++) printf "%s%.6f", (i == 1 ? "" : " "), 1000 * total[i] / n >times
            for (i = 1; i <= phases; i++) all += total[i]
            printf " %.6f\n", 1000 * all / n >times
            print step[n], top, 1000 * all / n >range
            if (dense == "" && density[n] == target) name = name ", ρ = " target
            if (dense == "" && density[n] != target)
                name = name ", ρ = " (density[1] == density[n] ? "" : density[1] " to ") density[n]
            print name >legend
            look_for_missing(at[n] * (step[n] - 1) / step[n])
            first = stop == "-" ? "" : sprintf("The first %.6g of %.4g epochs. ", stop, length_of_run)
            if (first lacks != "") print first lacks >note
        }' "$scratch/run-$1"
}
i=1
while [ $i -le $count ]; do
    extract $i || fail "$(cat "$scratch/label-$i")/run.jsonl holds no step yet"
    i=$((i + 1))
done

quality=$(cat "$scratch"/kind-* | sort -u)
case $quality in
*?accuracy* | *accuracy?*) fail "some of these runs are on images and some on a text; draw them apart" ;;
esac

scored=
i=1
while [ $i -le $count ]; do
    [ ! -s "$scratch/accuracy-$i" ] || scored="$scored $i"
    i=$((i + 1))
done
if [ -z "$scored" ]; then
    echo "plot.sh: there is no evaluation to draw, so no $quality.png" >&2
    quality=
fi

# Runs that share a name are told apart by their directories.
i=1
while [ $i -le $count ]; do
    if [ "$(cat "$scratch"/name-[0-9]* | grep -cxF "$(cat "$scratch/name-$i")")" -gt 1 ]; then
        printf '%s (%s)\n' "$(cat "$scratch/name-$i")" "$(cat "$scratch/label-$i")" >"$scratch/unique-$i"
    else
        cp "$scratch/name-$i" "$scratch/unique-$i"
    fi
    i=$((i + 1))
done

# The notes under a title: one, where it is that of all runs, else those there are, each with its run's name.
if [ "$(cat "$scratch"/note-* 2>/dev/null | sort -u | wc -l)" -eq 1 ] && [ "$(cat "$scratch"/note-* | wc -l)" -eq $count ]; then
    sort -u "$scratch"/note-* | fold -s -w 125 >"$scratch/notes"
else
    i=1
    while [ $i -le $count ]; do
        [ ! -f "$scratch/note-$i" ] || printf '%s: %s\n' "$(cat "$scratch/unique-$i")" "$(cat "$scratch/note-$i")"
        i=$((i + 1))
    done | fold -s -w 125 >"$scratch/notes"
fi

names=
echo 'run compute "input wait" select pack communicate merge update other sum at' >"$scratch/time"
i=1
while [ $i -le $count ]; do
    name=$(tr -d "\"'\\\\" <"$scratch/unique-$i")
    names="$names name$i=\"$name\";"
    lines=$(printf '%s' "$name" | sed 's/, /\\n/; s/ (\(.*\))$/\\n\1/')
    printf '"%s" %s %d\n' "$lines" "$(cat "$scratch/time-$i")" $((i - 1)) >>"$scratch/time"
    i=$((i + 1))
done
limits=$(cat "$scratch"/range-* | awk '$1 > s { s = $1 } $2 > l { l = $2 }
    $3 > t { t = $3 } END { printf "steps_max=%d; loss_max=%g; time_max=%g;", s, 1.15 * l, 1.1 * t }')
# A bar must be as wide as the longest line below it.
widest=$(sed '1d; s/^"//; s/" .*//; s/\\n/\
/g' "$scratch/time" | awk '{ if (length($0) > w) w = length($0) } END { print 40 + 10 * w }')
limits="$limits bar_width=$widest; notes=$(wc -l <"$scratch/notes"); quality='$quality'; scored='$scored';"
LC_ALL=C.UTF-8 gnuplot -e "dir='$scratch'; out='$out'; runs=$count; $names $limits" "$here/plot.gp"
for picture in loss $quality time; do echo "$out/$picture.png"; done
