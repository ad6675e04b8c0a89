#!/bin/sh
# artifact.sh [--check]: writes the part of docs/ARTIFACT.md between its two marks again: each claim with its command,
# hardware, time and what is expected, from the heads of scripts/reproduce/PAPER/ID.sh, beside what came of it here; and the
# evidence that is kept, with the time that its logs name. Both are those of results/measured. --check: status 1 when
# what stands there is out of date.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib/common.sh
. scripts/reproduce/pages.sh
page=docs/ARTIFACT.md
need_program
begin='<!-- made by sh scripts/artifact.sh: begin -->' end='<!-- made by sh scripts/artifact.sh: end -->'
case ${1:-} in
'' | --check) ;;
*)
    usage >&2
    exit 2
    ;;
esac

said() { head_of "$1" "$2" | plain; }
# Minutes of the runs whose logs are in this folder, added up: wall_seconds of each process that wrote its end, and of one that was killed, or
# whose end a kept log lacks, the seconds of its steps up to its last evaluation; nothing where there are none.
minutes() {
    cat "$1"/*.jsonl 2>/dev/null | "$program" rows - --type header,eval,summary --keys type,train_seconds,wall_seconds | awk -F '\t' '
        $1 == "header" { seconds += open; open = 0 }
        $1 == "eval" { open = $2 }
        $1 == "summary" { seconds += $3; open = 0 }
        END { seconds += open; if (seconds) printf "%.0f min by its logs", seconds / 60 }'
}
# ours ID: what the authors have of it
ours() {
    folder=results/measured/$1
    if [ ! -f "$folder/comparison.csv" ]; then
        echo 'nothing that is kept'
        return
    fi
    # rows of the paper's claims, where rows belong to claims
    numbers=$(awk "$csv_awk"'
        function short(text) { return text ~ /^-?[0-9]*[.][0-9]+$/ ? sprintf("%.4g", text) : text }
        { csv_row() }
        FNR == 1 || cell_of("agrees") !~ /^(yes|no)$/ || ("claim" in csv_column && cell_of("claim") == "") || ++n > 3 { next }
        {
            line = cell_of("item") ", " cell_of("quantity") ": " short(cell_of("ours")) (cell_of("unit") == "" ? "" : " " cell_of("unit"))
            if (cell_of("paper") != "") line = line " (paper: " short(cell_of("paper")) ")"
            text = text (text == "" ? "" : "; ") line
        }
        END { print text (n > 3 ? "; and " n - 3 " more" : "") }' "$folder/comparison.csv" | plain)
    printf '%s%s (%s, commit %s)\n' "${numbers:+$numbers. }" "$(agreement "$folder" %s)" "$(about "$folder" date)" "$(about "$folder" commit)"
}
# earlier ID: what ran for it, where that is no more what runs now
earlier() {
    earlier_runs=$(about "results/measured/$1" runs)
    [ -z "$earlier_runs" ] || [ "$earlier_runs" = "$(head_of "$1" runs)" ] || printf ' (of an earlier configuration: %s)' "$(printf '%s' "$earlier_runs" | plain)"
}
# shellcheck disable=SC2016 # backquotes are marks of Markdown
claims() {
    sed '/^#/d; /^$/d' $library/ids | while IFS= read -r id; do
        case $id in
        '= '*)
            printf '\n### %s\n' "$(printf '%s' "${id#= }" | plain)"
            continue
            ;;
        esac
        printf '\n#### %s\n\n' "$id"
        printf -- '- Shows: %s\n- Claim: %s\n' "$(said "$id" shows)" "$(said "$id" paper)"
        printf -- '- Command: `sh scripts/reproduce.sh %s` (`--quick`: reduced sizes)\n' "$id"
        printf -- '- What runs: %s\n- Hardware: %s\n- Time: %s\n' "$(said "$id" runs)" "$(said "$id" needs)" "$(said "$id" takes)"
        printf -- '- Look at: `build/reproduce/%s/comparison.csv`, columns `paper`, `ours`, `kind`, `against`, `agrees`, and the figure beside it, where there is one\n' "$id"
        printf -- '- Expected: %s\n- Ours was%s: %s\n' "$(said "$id" agrees)" "$(earlier "$id")" "$(ours "$id")"
    done
}
# shellcheck disable=SC2016
kept() {
    printf '\n### Training on real data, kept with the repository\n\n| in `results/measured/` | made by | time |\n|---|---|---|\n'
    no_ids results/measured | while IFS= read -r folder; do
        made=$(made_by "$folder" | sed 's/|/\\|/g')
        took=$(minutes "$folder")
        if [ -n "$made" ] && [ -n "$took" ]; then printf '| `%s` | %s | %s |\n' "${folder##*/}" "$made" "$took"; fi
    done
}
make_scratch
new_page=$scratch/page
{
    awk -v mark="$begin" '{ print } $0 == mark { exit }' $page
    claims
    kept
    printf '\n'
    awk -v mark="$end" '$0 == mark { after = 1 } after' $page
} >"$new_page"
[ "$(grep -cxF -e "$begin" -e "$end" "$new_page")" = 2 ] || {
    say "$page lacks one of its marks: $begin, $end"
    exit 1
}
if [ "${1:-}" = --check ]; then
    cmp -s "$new_page" $page || {
        say "$page is out of date; sh scripts/artifact.sh writes it"
        exit 1
    }
else
    cat "$new_page" >$page
fi
