#!/bin/sh
# report.sh [--from DIR] [--to DIR]: the report over what scripts/reproduce.sh made: REPORT.md, and REPORT.html, the same
# page as one file with its pictures in it. First the scaling study (scaling.md beside the report, where it is), then
# every ID: the paper's numbers beside ours, each row with its kind, and what agrees.
#   --from DIR  the folder of the IDs' results (default results/measured)
#   --to DIR    where the report goes (default: results for results/measured, else the folder of the results)
# shellcheck disable=SC2016 # backquotes are marks of Markdown here
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.."
library=scripts/reproduce
mistake() {
    printf 'report.sh: %s\n' "$*" >&2
    exit 2
}
from=results/measured to=
while [ $# -gt 0 ]; do
    case $1 in
    --from | --to)
        [ $# -gt 1 ] || mistake "$1 needs a folder"
        case $1 in --from) from=${2%/} ;; --to) to=${2%/} ;; esac
        shift
        ;;
    -h | --help)
        sed -n '2,6s/^# //p' "$0"
        exit 0
        ;;
    *) mistake "unknown argument $1; the options are --from DIR, --to DIR" ;;
    esac
    shift
done
[ -d "$from" ] || mistake "there is no folder $from; sh scripts/reproduce.sh makes results"
if [ -z "$to" ]; then
    if [ "$from" = results/measured ]; then to=results; else to=$from; fi
fi
mkdir -p "$to"
# The pictures' paths as they are from the report.
case $from in
"$to") inside= ;;
"$to"/*) inside=${from#"$to"/}/ ;;
*) inside=$(cd "$from" && pwd -P)/ ;;
esac
csv_awk=$(cat $library/csv.awk)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/sparsetrain-report.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

about() { sed -n "s/^$2: //p" "$from/$1/about.txt" 2>/dev/null | head -n 1; }
shows() { sed -n '2s/^# [^:]*: *//p' "$library/$1.sh" 2>/dev/null; }
# Text that Markdown must not take for marks.
plain() { sed 's/[*_|<>\\]/\\&/g'; }
papers() { sed -n 's/^= //p' $library/ids; }
ids_of() { PAPER=$1 awk '/^= / { inside = substr($0, 3) == ENVIRON["PAPER"] } inside && /^[a-z]/' $library/ids; }

# How many rows agree and how many do not, and the kinds of those that have a number of ours: "yes no kind, kind"
counts() {
    awk "$csv_awk"'
        NR > 1 {
            csv_split($0, field); n[field[9]]++
            if (field[6] == "" || field[7] in seen) next
            kinds = kinds (kinds == "" ? "" : ", ") field[7]
            seen[field[7]] = 1
        }
        END { print n["yes"] + 0, n["no"] + 0, kinds }' "$from/$1/comparison.csv"
}
# The verdict on an ID in words, from its counts and, for what does not agree, its rows.
verdict() {
    awk "$csv_awk"'
        NR > 1 {
            csv_split($0, field); n[field[9]]++
            if (field[9] == "no" && ++shown <= 5) which = which (which == "" ? "" : "; ") plain(field[1] ", " field[2])
        }
        function plain(text) {
            gsub(/[*_|<>\\]/, "\\\\&", text)
            return text
        }
        END {
            compared = n["yes"] + n["no"]
            if (!compared) { print "Nothing here is compared with the paper."; exit }
            if (!n["no"]) text = compared == 1 ? "**Agreement:** the one comparison agrees" : "**Agreement:** all " compared " comparisons agree"
            else text = "**No full agreement:** " n["yes"] + 0 " of " compared " comparisons agree. These do not: " which (shown > 5 ? "; and " shown - 5 " more" : "")
            if (n["n/a"]) text = text ". " n["n/a"] (n["n/a"] == 1 ? " row is" : " rows are") " not compared"
            print text "."
        }' "$from/$1/comparison.csv"
}
rows() {
    awk "$csv_awk"'
        function cell(text) {
            gsub(/[*_|<>\\]/, "\\\\&", text)
            return text == "" ? " " : text
        }
        # A number with more digits than anyone reads; comparison.csv has them all.
        function number(text,   x, size) {
            if (text !~ /^-?[0-9]*[.][0-9][0-9][0-9]+$/) return cell(text)
            x = text + 0
            size = x < 0 ? -x : x
            text = sprintf(size >= 1000 ? "%.1f" : size >= 1 ? "%.3f" : "%.4g", x)
            if (text ~ /[.]/ && text !~ /e/) sub(/[.]?0+$/, "", text)
            return text
        }
        NR == FNR { if (FNR > 1) { csv_split($0, field); if (field[10] != "") noted = 1 } next }
        FNR == 1 {
            print "| item | quantity | paper | where | ours | kind | rule | agrees |" (noted ? " note |" : "")
            print "|---|---|---|---|---|---|---|---|" (noted ? "---|" : "")
            next
        }
        {
            csv_split($0, field)
            printf "| %s | %s | %s | %s | %s | %s | %s | %s |", cell(field[1]), cell(field[2] (field[3] == "" ? "" : " [" field[3] "]")), \
                number(field[4]), cell(field[5]), number(field[6]), field[7], cell(field[8]), field[9] == "no" ? "**no**" : field[9]
            print noted ? " " cell(field[10]) " |" : ""
        }' "$from/$1/comparison.csv" "$from/$1/comparison.csv"
}
section() {
    printf '### %s\n\n' "$1"
    if [ ! -f "$from/$1/comparison.csv" ]; then
        printf '%s. No results yet: `sh scripts/reproduce.sh %s`.\n\n' "$(shows "$1" | plain)" "$1"
        return
    fi
    printf '%s\n\n' "$(verdict "$1")"
    printf -- '- Shown: %s.\n- Paper: %s\n- Run: %s\n- Agreement means: %s\n' "$(about "$1" shows | plain)" "$(about "$1" paper | plain)" \
        "$(about "$1" runs | plain)" "$(about "$1" agrees | plain)"
    printf -- '- Made by `%s` (%s) at commit %s on %s, %s s of jobs; rows and commands in `%s%s/`.\n- Machine: %s.\n\n' "$(about "$1" command)" \
        "$(about "$1" mode)" "$(about "$1" commit)" "$(about "$1" date)" "$(about "$1" seconds)" "$inside" "$1" "$(about "$1" machine | plain)"
    rows "$1"
    printf '\n'
    for picture in "$from/$1"/*.png; do
        [ ! -f "$picture" ] || printf '![%s: %s](%s%s/%s)\n\n' "$1" "$(shows "$1" | tr -d '[]()')" "$inside" "$1" "$(basename "$picture")"
    done
}
summary_line() {
    if [ ! -f "$from/$1/comparison.csv" ]; then
        printf '| [%s](#%s) | %s | | no results yet | |\n' "$1" "$1" "$(shows "$1" | plain)"
        return
    fi
    # shellcheck disable=SC2046 # two numbers and the kinds
    set -- "$1" $(counts "$1")
    name=$1 yes=$2 no=$3 compared=$(($2 + $3))
    shift 3
    printf '%s %s\n' "$yes" "$no" >>"$scratch/counts"
    if [ "$no" -gt 0 ]; then
        agreed='**no**'
    elif [ "$yes" -gt 0 ]; then
        agreed=yes
    else
        agreed=n/a
    fi
    if [ $compared -gt 0 ]; then compared="$yes of $compared"; else compared='none is made'; fi
    printf '| [%s](#%s) | %s | %s | %s | %s |\n' "$name" "$name" "$(shows "$name" | plain)" "$*" "$compared" "$agreed"
}

: >"$scratch/counts"
papers | while IFS= read -r paper; do
    for id in $(ids_of "$paper"); do summary_line "$id"; done
done >"$scratch/summary"
{
    printf '# The papers'"'"' results, made again with sparsetrain\n\n'
    awk -v all="$(wc -l <"$scratch/summary")" '{ n++; yes += $1; no += $2; if ($2) bad++; else if ($1) good++ }
        END { printf "IDs: %d; with results: %d; of these agree in all that is compared: %d; do not: %d. Single comparisons: %d, of which agree: %d. ", all, n, good, bad, yes + no, yes }' "$scratch/counts"
    printf 'Every row says how our number came about: **real**, timed or counted on real processes over what the machine has; **emulated**, real processes and real TCP over a network that is slowed down; '
    printf '**simulated**, the same program under SimGrid; **model**, computed from a cost formula alone. `sh scripts/reproduce.sh all` makes all of it, `scripts/report.sh` this page; '
    printf 'the papers'"'"' numbers are those of `results/published/`.\n\n'
    if grep -qs '^mode: quick' "$from"/*/about.txt; then
        printf '**This is a quick run:** its sizes are reduced so that everything is seen to work. What agrees or disagrees here says little about the papers.\n\n'
    fi
    if [ -f "$to/scaling.md" ]; then
        cat "$to/scaling.md"
        printf '\n'
    fi
    printf '## Summary\n\n| ID | what it shows | kinds | comparisons that agree | agrees |\n|---|---|---|---|---|\n'
    cat "$scratch/summary"
    printf '\n'
    papers | while IFS= read -r paper; do
        printf '## %s\n\n' "$paper"
        for id in $(ids_of "$paper"); do section "$id"; done
    done
} >"$scratch/REPORT.md"
awk -v base="$to" -v style=$library/report.css -v title="sparsetrain: the papers' results, made again" -f $library/html.awk "$scratch/REPORT.md" >"$scratch/REPORT.html"
mv "$scratch/REPORT.md" "$scratch/REPORT.html" "$to/"
printf 'report: %s/REPORT.md and %s/REPORT.html\n' "$to" "$to"
