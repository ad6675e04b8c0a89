# shellcheck shell=sh
# shellcheck disable=SC2016,SC2034 # marks of Markdown; what others use
# pages.sh: sourced by scripts/reproduce.sh, campaign.sh, report.sh, artifact.sh and by lib.sh: the IDs, what their heads say, and what
# stands in a folder of results.
library=scripts/reproduce
csv_awk=$(cat scripts/lib/csv.awk $library/comparison.awk) page_awk=$csv_awk$(cat scripts/lib/markdown.awk)
ids() { sed -n '/^[a-z]/p' $library/ids; } # in the order of the report
# script_of ID: its script, in the folder of its paper
script_of() { find $library/*/ -name "$1.sh" ! -path "$library/parts/*"; }
# head_of ID FIELD: what the head of the ID's script says under "# FIELD: "
head_of() { awk -v field="$2" -f $library/head.awk "$(script_of "$1")"; }
# about FOLDER FIELD: what its about.txt says
about() { sed -n "s/^$2: //p" "$1/about.txt" 2>/dev/null | head -n 1; }
# mark_job FOLDER FILE SECONDS COMMAND-LINE COMMITS MACHINES: jobs.tsv there says that this job is finished; takes the place of its older
# line. Called by `locked`.
mark_job() {
    if [ -f "$1/jobs.tsv" ]; then
        JOB=$2 awk -F '\t' '$1 != ENVIRON["JOB"]' "$1/jobs.tsv" >"$1/.jobs" || return 1
    else
        : >"$1/.jobs" || return 1
    fi
    # a full disk must not cost the other lines
    printf '%s\t%s\t%s\t%s\t%s\n' "$2" "$5" "$3" "$4" "$6" >>"$1/.jobs" && mv "$1/.jobs" "$1/jobs.tsv"
}
# plain: text that Markdown must not take for marks
plain() { sed 's/[*_|<>\\]/\\&/g'; }
# agreement FOLDER SELVES: in words (verdict.awk)
agreement() { awk -v selves="$2" "$page_awk$(cat $library/verdict.awk)" "$1/comparison.csv"; }
# beginnings FOLDER: of which runs its rows are the beginning
beginnings() {
    awk "$csv_awk"'{ csv_row() } FNR > 1 && cell_of("run") ~ /^first/ && !seen[cell_of("run")]++ { print cell_of("run") }' "$1/comparison.csv" | paste -s -d ',' -
}
# no_ids FOLDER: the folders in it that are of no ID;  made_by FOLDER: the command in its page
no_ids() { for folder in "$1"/*/; do [ -n "$(script_of "$(basename "$folder")")" ] || echo "${folder%/}"; done; }
made_by() { sed -n 's/^Made by \(`[^`]*`\).*/\1/p' "$1/README.md" 2>/dev/null | head -n 1; }
