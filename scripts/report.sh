#!/bin/sh
# report.sh [--from DIR] [--out DIR]: the report over what scripts/reproduce.sh made: REPORT.md, and REPORT.html, the same
# page as one file with its pictures in it. First every claim of the papers in a line, and what came of it; then the runs that
# are kept, every ID with the paper's numbers beside ours, the self-checks, and the scaling study (scaling.md beside the report).
#   --from DIR  the folder of the IDs' results (default results/measured, which are the authors'; beside others these stand)
#   --out DIR   where the report goes (default: results for results/measured, else the folder of the results)
# shellcheck disable=SC2016 # backquotes are marks of Markdown here
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.."
library=scripts/reproduce
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
options_hint='the options are --from DIR, --out DIR'
authors=results/measured quicks=results/quick
from=$authors out=
options 'from out' "$@"
from=${from%/} out=${out%/}
need_program
[ -d "$from" ] || fail "there is no folder $from; sh scripts/reproduce.sh makes results"
if [ -z "$out" ]; then
    if [ "$from" = $authors ]; then out=results; else out=$from; fi
fi
mkdir -p "$out"
# within FOLDER: the beginning of a path into it as it is from the report
within() {
    case $1 in
    "$out") ;;
    "$out"/*) printf '%s/' "${1#"$out"/}" ;;
    *) printf '%s/' "$(cd "$1" && pwd -P)" ;;
    esac
}
csv_awk=$(cat $library/csv.awk)
make_scratch

shows() { sed -n '2s/^# [^:]*: *//p' "$library/$1.sh" 2>/dev/null; }
# Text that Markdown must not take for marks.
plain() { sed 's/[*_|<>\\]/\\&/g'; }
ids() { sed -n '/^[a-z]/p' $library/ids; } # in the order of the report
papers() { sed -n 's/^= //p' $library/ids; }
ids_of() { PAPER=$1 awk '/^= / { inside = substr($0, 3) == ENVIRON["PAPER"] } inside && /^[a-z]/' $library/ids; }

# The folder with the results of an ID: those of this report, else, beside the authors', their quick ones; "" where there are none.
results_of() {
    if [ -f "$from/$1/comparison.csv" ]; then
        printf '%s' "$from/$1"
    elif [ "$from" = $authors ] && [ -f "$quicks/$1/comparison.csv" ]; then
        printf '%s' "$quicks/$1"
    fi
}
about() { sed -n "s/^$2: //p" "$1/about.txt" 2>/dev/null | head -n 1; } # about FOLDER FIELD
shown() { if [ -f "$1" ]; then printf '%s' "$1"; else printf /dev/null; fi; }

# -- the claims --------------------------------------------------------------------------------------------------------
# Every claim, tab-separated: paper, where, text, ID, why not, result, "yes of compared", kinds, against what, length of the runs.
claims() {
    for id in $(ids); do
        folder=$(results_of "$id")
        [ -z "$folder" ] || ID=$id MODE=$(about "$folder" mode) awk "$csv_awk"'
            { csv_row() }
            FNR == 1 && !("claim" in csv_column) { print "=" ENVIRON["ID"] } # made before rows belonged to claims
            FNR > 1 && cell_of("claim") != "" {
                line = cell_of("claim") "\t" ENVIRON["MODE"]
                for (i = 1; i <= count; i++) line = line "\t" cell_of(column[i])
                print line
            }
            BEGIN { count = split("agrees direction counted kind against run", column, " ") }' "$folder/comparison.csv"
    done >"$scratch/rows"
    awk -F '\t' "$csv_awk"'
        function add(list, text) { return text == "" || index("; " list "; ", "; " text "; ") ? list : list (list == "" ? "" : "; ") text }
        NR == FNR {
            rows[$1]++
            if ($2 == "quick") quick[$1] = 1
            if ($5 != "yes") next
            if ($3 == "yes") yes[$1]++
            else { no[$1]++; if ($4 != "yes") wrong[$1]++ }
            kinds[$1] = add(kinds[$1], $6)
            against[$1] = add(against[$1], $7)
            runs[$1] = add(runs[$1], $8)
            next
        }
        { csv_row() }
        FNR > 1 {
            c = cell_of("claim")
            compared = yes[c] + no[c]
            if (!compared) result = "not attempted"
            else if (!no[c]) result = "reproduced"
            else if (!wrong[c]) result = "direction holds"
            else result = "not"
            if (compared && runs[c] !~ /^(full|quick)$/) result = "so far: " result
            if (quick[c]) result = compared ? result " (quick)" : "a quick run alone"
            else if (("=" cell_of("id")) in rows) result = "not classed"
            else if (!compared && cell_of("why_not") == "" && rows[c]) result = "not attempted: self-checks or shown alone"
            printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cell_of("paper"), cell_of("where"), cell_of("text"), cell_of("id"), cell_of("why_not"), result, \
                compared ? yes[c] + 0 " of " compared : "", kinds[c], against[c], runs[c]
        }' "$scratch/rows" results/published/claims.csv
}
claim_table() {
    printf '| paper | where | claim | result | comparisons that agree | how | held against | length of the runs | rows and figure |\n|---|---|---|---|---|---|---|---|---|\n'
    awk -F '\t' '
        function cell(text) { gsub(/[*_|<>\\]/, "\\\\&", text); return text == "" ? " " : text }
        $5 != "" { next }
        {
            result = $6
            if (result == "reproduced" || result ~ /^(not|so far: not)$/) result = "**" result "**"
            printf "| %s | %s | %s | %s | %s | %s | %s | %s | [%s](#%s) |\n", cell($1), cell($2), cell($3), result, cell($7), cell($8), cell($9), cell($10), $4, $4
        }' "$scratch/claims"
}
not_attempted() {
    awk -F '\t' '
        function plain(text) { gsub(/[*_|<>\\]/, "\\\\&", text); return text }
        $5 != "" { printf "- %s, %s: %s. %s.\n", $1, $2, plain($3), toupper(substr($5, 1, 1)) substr($5, 2) }' "$scratch/claims"
}
# Single comparisons, by what they are held against: those that are counted.
counts_in_words() {
    set --
    for id in $(ids); do
        [ ! -f "$from/$id/comparison.csv" ] || set -- "$@" "$from/$id/comparison.csv"
    done
    awk "$csv_awk"'
        function share(what) { return yes[what] + 0 " of " all[what] + 0 }
        { csv_row() }
        FNR > 1 && cell_of("agrees") ~ /^(yes|no)$/ {
            what = "against" in csv_column ? cell_of("against") : "not classed"
            if (what != "self" && what != "not classed" && cell_of("counted") != "yes") next
            all[what]++
            if (cell_of("agrees") == "yes") yes[what]++
        }
        END {
            printf "Single comparisons that agree: %s with numbers that a paper measured; %s with what a paper says in words, where the bound is our reading; ", share("measured"), share("words")
            printf "%s of what is counted or simulated here with a formula of a paper. A measurement that several tables show counts once. ", share("formula")
            printf "Apart from them, %s [self-checks](#self-checks) hold.", share("self")
            if (all["not classed"]) printf " Not classed, in results that were made before there were classes: %s.", share("not classed")
            print ""
        }' /dev/null "$@"
}

# -- one ID --------------------------------------------------------------------------------------------------------------
verdict() { awk -v selves='[%s](#self-checks)' "$(cat $library/csv.awk $library/verdict.awk)" "$1/comparison.csv"; }
# rows FOLDER ID: its table, without self-checks; beside results of a user's own what the authors had
rows() {
    beside=/dev/null
    [ "$from" = $authors ] || beside=$(shown "$authors/$2/comparison.csv")
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
        { csv_row() }
        FNR == 1 && pass == 3 {
            if (!any) exit
            print "| item | quantity | paper | where | ours |" (had ? " authors had |" : "") " kind | against | rule | agrees |" (noted ? " note |" : "")
            print "|---|---|---|---|---|---|---|---|---|" (had ? "---|" : "") (noted ? "---|" : "")
        }
        FNR == 1 || cell_of("against") == "self" { next }
        pass == 1 { theirs[cell_of("item"), cell_of("quantity")] = cell_of("ours"); next }
        pass == 2 {
            any = 1
            if (cell_of("note") != "") noted = 1
            if ((cell_of("item"), cell_of("quantity")) in theirs) had = 1
            next
        }
        {
            agrees = cell_of("agrees") == "no" ? (cell_of("direction") == "yes" ? "direction" : "**no**") : cell_of("agrees")
            printf "| %s | %s | %s | %s | %s |", cell(cell_of("item")), cell(cell_of("quantity") (cell_of("unit") == "" ? "" : " [" cell_of("unit") "]")), number(cell_of("paper")), \
                cell(cell_of("paper_source")), number(cell_of("ours"))
            if (had) printf " %s |", number(theirs[cell_of("item"), cell_of("quantity")])
            printf " %s | %s | %s | %s |", cell_of("kind"), "against" in csv_column ? cell_of("against") : "not classed", cell(cell_of("rule")), agrees
            print noted ? " " cell(cell_of("note")) " |" : ""
        }' pass=1 "$beside" pass=2 "$1/comparison.csv" pass=3 "$1/comparison.csv"
}
# A picture, small, as a link to itself: pictures FOLDER ALT
pictures() {
    pictures_in=$(within "$1")
    for picture in "$1"/*.png; do
        [ ! -f "$picture" ] || printf '<a href="%s%s"><img src="%s%s" width="380" alt="%s"></a>\n' "$pictures_in" "${picture##*/}" "$pictures_in" "${picture##*/}" "$2"
    done
    printf '\n'
}
# The same as mere links: what a quick run drew is not worth the room in a page that has its pictures in it.
picture_links() {
    links='' pictures_in=$(within "$1")
    for picture in "$1"/*.png; do
        [ ! -f "$picture" ] || links="$links${links:+, }[${picture##*/}]($pictures_in${picture##*/})"
    done
    [ -z "$links" ] || printf 'Drawn: %s\n\n' "$links"
}
section() {
    printf '### %s\n\n' "$1"
    folder=$(results_of "$1")
    if [ -z "$folder" ]; then
        printf '%s. No results yet: `sh scripts/reproduce.sh %s`.\n\n' "$(shows "$1" | plain)" "$1"
        return
    fi
    if [ "$folder" != "$from/$1" ]; then
        printf '**A quick run alone**, of reduced size: it shows that the ID works, and nothing of the paper. In full: `sh scripts/reproduce.sh %s`.\n\n' "$1"
    fi
    printf '%s\n\n' "$(verdict "$folder")"
    printf -- '- Shown: %s.\n- Paper: %s\n- Run: %s\n- Agreement means: %s\n' "$(about "$folder" shows | plain)" "$(about "$folder" paper | plain)" \
        "$(about "$folder" runs | plain)" "$(about "$folder" agrees | plain)"
    lengths=$(awk "$csv_awk"'{ csv_row() } FNR > 1 && cell_of("run") ~ /^first/ && !seen[cell_of("run")]++ { print cell_of("run") }' "$folder/comparison.csv" | paste -s -d ',' -)
    [ -z "$lengths" ] || printf -- '- **Length: %s**, on the schedules of the whole; the claim is about the end.\n' "$lengths"
    printf -- '- Made by `%s` (%s) at commit %s on %s, %s s of jobs; rows and commands in `%s`.\n- Machine: %s.\n\n' "$(about "$folder" command)" \
        "$(about "$folder" mode)" "$(about "$folder" commit)" "$(about "$folder" date)" "$(about "$folder" seconds)" "$(within "$folder")" "$(about "$folder" machine | plain)"
    rows "$folder" "$1"
    printf '\n'
    if [ "$folder" != "$from/$1" ]; then picture_links "$folder"; else pictures "$folder" "$1: $(shows "$1" | tr -d '[]()"<>')"; fi
}
selves() {
    printf '| ID | item | quantity | expected | where from | found | kind | rule | agrees |\n|---|---|---|---|---|---|---|---|---|\n'
    for id in $(ids); do
        [ ! -f "$from/$id/comparison.csv" ] || ID=$id awk "$csv_awk"'
            function cell(text) { gsub(/[*_|<>\\]/, "\\\\&", text); return text == "" ? " " : text }
            { csv_row() }
            FNR > 1 && cell_of("against") == "self" && cell_of("agrees") ~ /^(yes|no)$/ {
                printf "| [%s](#%s) | %s | %s | %s | %s | %s | %s | %s | %s |\n", ENVIRON["ID"], ENVIRON["ID"], cell(cell_of("item")), cell(cell_of("quantity") (cell_of("unit") == "" ? "" : " [" cell_of("unit") "]")), \
                    cell(cell_of("paper")), cell(cell_of("paper_source")), cell(cell_of("ours")), cell_of("kind"), cell(cell_of("rule")), cell_of("agrees") == "no" ? "**no**" : cell_of("agrees")
            }' "$from/$id/comparison.csv"
    done
}

# -- runs that are kept ----------------------------------------------------------------------------------------------------
kept_folders() { # folders of training logs that are no ID's
    for folder in "$from"/*/; do
        folder=${folder%/}
        [ ! -f "$library/${folder##*/}.sh" ] || continue
        for log in "$folder"/*.jsonl; do
            if [ -f "$log" ] && grep -q '^{"type":"summary"' "$log"; then echo "$folder" && break; fi
        done
    done
}
kept() {
    kept_folders | while IFS= read -r folder; do
        printf '### %s\n\nMade by %s\n\n' "${folder##*/}" "$(sed -n 's/^Made by \(`[^`]*`\).*/\1/p' "$folder/README.md" | head -n 1)"
        printf '| run | ranks | epochs | test accuracy | validation and test perplexity | sent per rank and step, mean [KiB] | commit |\n|---|---|---|---|---|---|---|\n'
        for log in "$folder"/*.jsonl; do
            name=${log##*/}
            "$program" rows "$log" --type header,summary \
                --keys type,ranks,versions.commit,epoch,prefix,run_epochs,test_accuracy,valid_perplexity,test_perplexity,bytes_sent_per_step |
                NAME=${name%.jsonl} awk -F '\t' '
                    $1 == "header" { ranks = $2; commit = $3; next }
                    {
                        epochs = sprintf("%.4g", $4)
                        if ($5 == "true") epochs = "first " epochs " of " $6
                        printf "| %s | %d | %s | %s | %s | %.1f | %s |\n", ENVIRON["NAME"], ranks, epochs, $7 == "" ? " " : sprintf("%.2f%%", 100 * $7), \
                            $8 == "" ? " " : sprintf("%.2f, %.2f", $8, $9), $10 / 1024, commit
                    }'
        done
        printf '\n'
        pictures "$folder" "${folder##*/}"
    done
}
contents() {
    printf -- '- [Claims](#the-papers-claims)\n'
    [ -z "$(kept_folders)" ] || printf -- '- [Training on real data, kept](#training-on-real-data-kept)\n'
    papers | while IFS= read -r paper; do
        printf -- '- %s:' "${paper%%:*}"
        for id in $(ids_of "$paper"); do printf ' [%s](#%s)' "$id" "$id"; done
        printf '\n'
    done
    printf -- '- [Self-checks](#self-checks)\n'
    [ ! -f "$out/scaling.md" ] || printf -- '- [The scaling study](#the-scaling-study)\n'
}

claims >"$scratch/claims"
{
    printf '# The papers'"'"' results, made again with sparsetrain\n\n'
    printf 'What came of every claim of the four papers, in a line each. **reproduced**: every comparison agrees; **direction holds**: not in size, but which is more and which is less; '
    printf '**not**: not even that. "So far" stands before what was found in the first epochs of a run that the claim is about the end of. How our numbers came about: **real**, timed or counted on real '
    printf 'processes over what the machine has; **emulated**, real processes and real TCP over a network that is slowed down; **simulated**, the same program under SimGrid; **model**, computed from a cost '
    printf 'formula alone. `sh scripts/reproduce.sh all` makes all of it, `scripts/report.sh` this page; the papers'"'"' numbers are those of `results/published/`.\n\n'
    if [ "$from" != $authors ]; then
        printf 'These are the results in `%s`; what the authors of sparsetrain had stands beside them, where they have the same row.\n\n' "$from"
    fi
    if grep -qs '^mode: quick' "$from"/*/about.txt; then
        printf '**This is a quick run:** its sizes are reduced so that everything is seen to work. What agrees or disagrees here says little about the papers.\n\n'
    fi
    printf '## The papers'"'"' claims\n\n'
    claim_table
    printf '\n'
    counts_in_words
    printf '\n**Not attempted:**\n\n'
    not_attempted
    printf '\n## Contents\n\n'
    contents
    printf '\n'
    if [ -n "$(kept_folders)" ]; then
        printf '## Training on real data, kept\n\nRuns of their own lengths and settings, smaller than the papers'"'"'; the logs are in the folders.\n\n'
        kept
    fi
    papers | while IFS= read -r paper; do
        printf '## %s\n\n' "$paper"
        for id in $(ids_of "$paper"); do section "$id"; done
    done
    printf '## Self-checks\n\nOur own formula, simulator or emulator, each held against the other: what the comparisons above rest on. None of them says anything of a paper.\n\n'
    selves
    printf '\n'
    if [ -f "$out/scaling.md" ]; then
        cat "$out/scaling.md"
        printf '\n'
    fi
} >"$scratch/REPORT.md"
awk -v base="$out" -v style=$library/report.css -v title="sparsetrain: the papers' results, made again" -f $library/html.awk "$scratch/REPORT.md" >"$scratch/REPORT.html"
mv "$scratch/REPORT.md" "$scratch/REPORT.html" "$out/"
printf 'report: %s/REPORT.md and %s/REPORT.html\n' "$out" "$out"
