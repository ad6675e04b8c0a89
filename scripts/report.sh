#!/bin/sh
# report.sh [--from DIR] [--out DIR]: the report over what scripts/reproduce.sh made: REPORT.md, and REPORT.html, the same
# page as one file with its pictures in it (of the authors' results only the first is committed). First every claim of the
# papers in a line, and what came of it; then the runs that are kept, studies of our own, every ID with the paper's numbers
# beside ours, the self-checks, and the scaling study (scaling.md beside the report).
#   --from DIR  the folder of the IDs' results (default results/measured, which are the authors'; beside others these stand)
#   --out DIR   where the report goes (default: results for results/measured, else the folder of the results)
# shellcheck disable=SC2016 # backquotes are marks of Markdown here
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/common.sh
. scripts/reproduce/pages.sh
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
make_scratch
# What tables have of a row.
page_awk=$page_awk'
    function decided() { return cell_of("agrees") ~ /^(yes|no)$/ }
    function quantity() { return cell(cell_of("quantity") (cell_of("unit") == "" ? "" : " [" cell_of("unit") "]")) }
    function against() { return "against" in csv_column ? cell_of("against") : "not classed" }
'
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
# over PROGRAM: awk over the comparisons of all IDs of this report, each with its `id`
over() {
    over_program=$1
    shift
    for id in $(ids); do
        [ ! -f "$from/$id/comparison.csv" ] || set -- "$@" "id=$id" "$from/$id/comparison.csv"
    done
    awk "$page_awk$over_program" /dev/null "$@"
}

# -- the claims --------------------------------------------------------------------------------------------------------
# Every claim, tab-separated: paper, where, text, ID, why not, result, "yes of compared; N to come", what was found, kinds, against what, length of the
# runs. Found: the numbers of what is counted, up to three, with twice their standard error where they are means over seeds.
claims() {
    set --
    for id in $(ids); do
        folder=$(results_of "$id")
        [ -z "$folder" ] || set -- "$@" "id=$id" "mode=$(about "$folder" mode)" "$folder/comparison.csv"
    done
    awk "$page_awk"'
        function with_spread(   text, note) {
            text = cell_of("ours")
            if (text ~ /^-?[0-9]*[.][0-9]+$/) text = sprintf("%.4g", text)
            note = cell_of("note")
            if (match(note, /[+]-[0-9.e+-]+ \(twice/)) text = text " +-" substr(note, RSTART + 2, RLENGTH - 9)
            return text (cell_of("unit") == "" ? "" : " " cell_of("unit"))
        }
        function add(list, text) { return text == "" || index("; " list "; ", "; " text "; ") ? list : list (list == "" ? "" : "; ") text }
        { csv_row() }
        FNR == 1 {
            if (!("claim" in csv_column)) old[id] = 1 # made before rows belonged to claims
            next
        }
        { c = cell_of("claim") }
        id != "" {
            if (c == "") next
            rows[c]++
            if (mode == "quick") quick[c] = 1
            if (is_open()) open[c] = 1
            if (is_waiting()) waiting[c]++
            if (mode != "quick" && cell_of("note") ~ /cannot tell/) {
                unsure[c] = 1
                shown[c] = add(shown[c], with_spread())
            }
            if (cell_of("counted") != "yes") next
            if (cell_of("agrees") == "yes") yes[c]++
            else { no[c]++; if (cell_of("direction") != "yes") wrong[c]++ }
            found[c] = add(found[c], with_spread())
            numbers[c]++
            kinds[c] = add(kinds[c], cell_of("kind"))
            held[c] = add(held[c], cell_of("against"))
            runs[c] = add(runs[c], cell_of("run"))
            if (is_part()) part[c] = 1
            if (cell_of("note") ~ /(^|; )one seed(;|$)/) alone[c] = ", one seed"
            next
        }
        {
            compared = yes[c] + no[c]
            if (!compared) result = "not attempted"
            else if (!no[c]) result = "reproduced"
            else if (!wrong[c]) result = "direction holds"
            else result = "not"
            if (compared && (part[c] || open[c])) result = "so far: " result
            if (quick[c]) result = compared ? result " (quick)" : "a quick run alone"
            else if (cell_of("id") in old) result = "not classed"
            else if (!compared && open[c]) result = "open: " (unsure[c] ? "the seeds so far cannot tell" : "not all of its runs are made")
            else if (!compared && unsure[c]) result = "open: its seeds cannot tell"
            else if (!compared && cell_of("why_not") == "" && rows[c]) result = "not attempted: self-checks or shown alone"
            agree = compared ? yes[c] + 0 " of " compared : ""
            if (waiting[c] && !quick[c]) agree = agree (agree == "" ? "" : "; ") waiting[c] " to come"
            printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cell_of("paper"), cell_of("where"), cell_of("text"), cell_of("id"), cell_of("why_not"), result, \
                agree, (!compared ? shown[c] : numbers[c] <= 3 ? found[c] : ""), kinds[c], held[c], runs[c] alone[c]
        }' "$@" id= results/published/claims.csv
}
claim_table() {
    printf '| paper | where | claim | result | comparisons that agree | found | how | held against | length of the runs | rows and figure |\n|---|---|---|---|---|---|---|---|---|---|\n'
    awk -F '\t' "$page_awk"'
        $5 == "" {
            result = $6
            if (result == "reproduced" || result ~ /^(not|so far: not)$/) result = "**" result "**"
            printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s | [%s](#%s) |\n", cell($1), cell($2), cell($3), result, cell($7), cell($8), cell($9), cell($10), cell($11), $4, $4
        }' "$scratch/claims"
}
not_attempted() {
    awk -F '\t' "$page_awk"'$5 != "" { printf "- %s, %s: %s. %s.\n", $1, $2, plain($3), toupper(substr($5, 1, 1)) substr($5, 2) }' "$scratch/claims"
}
# Single comparisons, by what they are held against: those that are counted.
counts_in_words() {
    over '
        function share(what) { return yes[what] + 0 " of " all[what] + 0 }
        { csv_row() }
        FNR > 1 && decided() {
            what = against()
            if (what != "self" && what != "not classed" && cell_of("counted") != "yes") next
            all[what]++
            if (cell_of("agrees") == "yes") yes[what]++
            if (what != "self" && (is_part() || is_open())) parts++
        }
        END {
            printf "Single comparisons that agree: %s with numbers that a paper measured; %s with what a paper says in words, where the bound is our reading; ", share("measured"), share("words")
            printf "%s of what is counted or simulated here with a formula of a paper. A measurement that several tables show counts once. ", share("formula")
            if (parts) printf "Of these comparisons %d %s so far of a part of their runs: the beginning, shorter ones, a smaller model, or fewer than there are to be. ", parts, parts == 1 ? "is" : "are"
            printf "Apart from them, %s [self-checks](#self-checks) hold.", share("self")
            if (all["not classed"]) printf " Not classed, in results that were made before there were classes: %s.", share("not classed")
            print ""
        }'
}

# -- one ID --------------------------------------------------------------------------------------------------------------
# rows FOLDER ID: its table, without self-checks; beside results of a user's own what the authors had
rows() {
    beside=$authors/$2/comparison.csv
    if [ "$from" = $authors ] || [ ! -f "$beside" ]; then beside=/dev/null; fi
    awk "$page_awk"'
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
            printf "| %s | %s | %s | %s | %s |", cell(cell_of("item")), quantity(), number(cell_of("paper")), cell(cell_of("paper_source")), number(cell_of("ours"))
            if (had) printf " %s |", number(theirs[cell_of("item"), cell_of("quantity")])
            printf " %s | %s | %s | %s |", cell_of("kind"), against(), cell(cell_of("rule")), agrees
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
        printf '%s. No results yet: `sh scripts/reproduce.sh %s`.\n\n' "$(head_of "$1" shows | plain)" "$1"
        return
    fi
    if [ "$folder" != "$from/$1" ]; then
        printf '**A quick run alone**, of reduced size: it shows that the ID works, and nothing of the paper. In full: `sh scripts/reproduce.sh %s`.\n\n' "$1"
    fi
    printf '%s\n\n' "$(agreement "$folder" '[%s](#self-checks)')"
    printf -- '- Shown: %s.\n- Paper: %s\n- Run: %s\n- Agreement means: %s\n' "$(about "$folder" shows | plain)" "$(about "$folder" paper | plain)" \
        "$(about "$folder" runs | plain)" "$(about "$folder" agrees | plain)"
    lengths=$(beginnings "$folder")
    [ -z "$lengths" ] || printf -- '- **Length: %s**, on the schedules of the whole; the claim is about the end.\n' "$lengths"
    printf -- '- Made by `%s` (%s) at commit %s on %s, %s s of jobs; rows and commands in `%s`.\n- Machine: %s.\n\n' "$(about "$folder" command)" \
        "$(about "$folder" mode)" "$(about "$folder" commit)" "$(about "$folder" date)" "$(about "$folder" seconds)" "$(within "$folder")" "$(about "$folder" machine | plain)"
    rows "$folder" "$1"
    printf '\n'
    if [ "$folder" != "$from/$1" ]; then picture_links "$folder"; else pictures "$folder" "$1: $(head_of "$1" shows | tr -d '[]()"<>')"; fi
}
selves() {
    printf '| ID | item | quantity | expected | where from | found | kind | rule | agrees |\n|---|---|---|---|---|---|---|---|---|\n'
    over '
        { csv_row() }
        FNR > 1 && cell_of("against") == "self" && decided() {
            printf "| [%s](#%s) | %s | %s | %s | %s | %s | %s | %s | %s |\n", id, id, cell(cell_of("item")), quantity(), cell(cell_of("paper")), \
                cell(cell_of("paper_source")), cell(cell_of("ours")), cell_of("kind"), cell(cell_of("rule")), cell_of("agrees") == "no" ? "**no**" : cell_of("agrees")
        }'
}

# -- runs that are kept ----------------------------------------------------------------------------------------------------
kept_folders() { # folders of training logs that are no ID's
    no_ids "$from" | while IFS= read -r folder; do
        for log in "$folder"/*.jsonl; do
            if [ -n "$(of_log "$log" type --type summary --last)" ]; then echo "$folder" && break; fi
        done
    done
}
kept() {
    kept_folders | while IFS= read -r folder; do
        printf '### %s\n\nMade by %s\n\n' "${folder##*/}" "$(made_by "$folder")"
        case $("$program" rows "$folder"/*.jsonl --type summary --keys test_wer | grep -c .) in
        0) measure='test accuracy' ;;
        *) measure='test word error rate' ;;
        esac
        printf '| run | ranks | epochs | %s | validation and test perplexity | sent per rank and step, mean [KiB] | commit |\n|---|---|---|---|---|---|---|\n' "$measure"
        for log in "$folder"/*.jsonl; do
            name=${log##*/}
            "$program" rows "$log" --type header,summary \
                --keys type,ranks,versions.commit,epoch,run_epochs,test_accuracy,valid_perplexity,test_perplexity,bytes_sent_per_step,test_wer |
                NAME=${name%.jsonl} awk -F '\t' '
                    $1 == "header" { ranks = $2; commit = $3; next }
                    {
                        if ($10 != "") $6 = $10
                        epochs = sprintf("%.4g", $4)
                        if ($5 != "" && $4 < $5 - 1e-6) epochs = "first " epochs " of " $5
                        printf "| %s | %d | %s | %s | %s | %.1f | %s |\n", ENVIRON["NAME"], ranks, epochs, $6 == "" ? " " : sprintf("%.2f%%", 100 * $6), \
                            $7 == "" ? " " : sprintf("%.2f, %s", $7, $8 == "" ? "none" : sprintf("%.2f", $8)), $9 / 1024, commit
                    }'
        done
        printf '\n'
        pictures "$folder" "${folder##*/}"
    done
}
# Studies of our own, as transformer.sh makes them: folders whose page has a verdict. The report has that and the pictures.
study_folders() { no_ids "$from" | while IFS= read -r folder; do ! grep -qs '^## Verdict$' "$folder/README.md" || echo "$folder"; done; }
studies() {
    study_folders | while IFS= read -r folder; do
        printf '### %s\n\nMade by %s; runs, tables and what is compared: [its page](%sREADME.md).\n\n' "$(sed -n '1s/^# //p' "$folder/README.md")" "$(made_by "$folder")" \
            "$(within "$folder")"
        awk '/^\*\*/ { print $0 "\n" } /^## / { inside = /^## Verdict$/; next } inside { print }' "$folder/README.md"
        printf '\n'
        pictures "$folder" "${folder##*/}"
    done
}
contents() {
    printf -- '- [Claims](#the-papers-claims)\n'
    [ -z "$(study_folders)" ] || printf -- '- [Studies of our own](#studies-of-our-own)\n'
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
    printf '**not**: not even that. "So far" stands before what was found in the first epochs of a run that the claim is about the end of, in a shorter one, of a smaller model, or with fewer runs than there are to be. "One seed" stands where a comparison hangs on runs with one seed, which chance moves, too. Comparisons that agree are of those that can be made already: "to come" is what waits for the end of a run, as that a curve stays where it is, or for a run that is not made yet. "Found" has the numbers of up to three comparisons, a mean over seeds with twice its standard error. How our numbers came about: **real**, timed or counted on real '
    printf 'processes over what the machine has; **emulated**, real processes and real TCP over a network that is slowed down; **simulated**, the same program under SimGrid; **model**, computed from a cost '
    printf 'formula alone. `sh scripts/reproduce.sh all` makes all of it, `scripts/report.sh` this page; the papers'"'"' numbers are those of `results/published/`. '
    printf 'Rows whose note has "not compared:" are experiments on why others disagree; the last section of `docs/measured.md` has them together.\n\n'
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
    if [ -n "$(study_folders)" ]; then
        printf '## Studies of our own\n\n'
        studies
    fi
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
