#!/bin/sh
# cli_transformer.sh: scripts/transformer.sh with a tiny decoder: the page, its table and its verdict are those of the logs, what is
# finished or diverged is left alone when it is called again, also where the runs themselves are gone, what helps is added, what is
# left is planned; mistakes.
# shellcheck disable=SC2016,SC2086,SC2166 # marks of Markdown; lists of arguments; two conditions of one check
. tests/lib/tap.sh
. scripts/mpi-env.sh
awk 'BEGIN { srand(5); for (i = 0; i < 300; i++) { for (j = 0; j < 6; j++) printf "%s ", substr("thequickbrownfox", 1 + int(rand() * 12), 3); print "" } }' > "$W/text"
# study OPTION... -- OPTION...: of two ranks and one density; its status
study() {
    timeout -k 10 300 sh scripts/transformer.sh --steps 20 --ranks 2 --densities 0.1 --out "$W/page" "$@" --lr-warmup-steps 2 --layers 1 --hidden 16 --context 8 --data "text-char:$W/text" > "$W/out" 2> "$W/err" < /dev/null
}
page=$W/page/README.md runs=$W/page/runs/p2
# of LIST...: mean, least and greatest, as the page has them
of() { for x in "$@"; do echo "$x"; done | awk '{ s += $1; if (NR == 1 || $1 < a) a = $1; if ($1 > b) b = $1 } END { printf "%.4f (%.4f to %.4f)", s / NR, a, b }'; }
loss() { json "$runs/$1/run.jsonl" summary valid_loss; }
small="--algos dense,topka --optimisers adamw --seeds 1,2"

study $small --parts exchanges --
status=$?
check "two exchanges, two seeds (status $status: $(tail -n 1 "$W/err"))" [ $status -eq 0 ]
check "a line for each run" grep -q '^p2/topka \[2/2\] density0.1-optimiseradamw-seed2: valid perplexity ' "$W/out"
dense=$(of "$(loss dense/optimiseradamw-seed1)" "$(loss dense/optimiseradamw-seed2)")
topka=$(of "$(loss topka/density0.1-optimiseradamw-seed1)" "$(loss topka/density0.1-optimiseradamw-seed2)")
check "the table has the means of the logs, dense" grep -qF "| 2 | adamw | dense |   | 2 | $dense |   | " "$page"
sent=$(sed -n 's/.*"type":"step".*"bytes_sent_mean":\([0-9.e+]*\).*/\1/p' "$runs/topka/density0.1-optimiseradamw-seed1/run.jsonl" | awk '{ s += $1 } END { printf "%.4g", s / 1e6 }')
of_topka() { sed -n 's/^| 2 | adamw | topka | 0.1 | 2 | //p' "$page" | cut -d '|' -f "$1" | tr -d ' +'; }
apart=$(awk "BEGIN { d = $(of_topka 2) - (${topka%% *} - ${dense%% *}); print (d < 2e-4 && d > -2e-4) }")
check "and sparse, its distance from dense, the bytes of a rank" [ "$(of_topka 1)/$apart/$(of_topka 3)" = "$(echo "$topka" | tr -d ' ')/1/$sent" ]
check "the verdict compares with dense" grep -q '^    - at density 0.1: as good as dense .*`topka` [+-]' "$page"
check "the page says of what it is, and that it is short" sh -c "grep -q 'checksum $(json "$runs/dense/optimiseradamw-seed1/run.jsonl" header data_crc32)' '$page' && grep -q 'A rehearsal of 20 of the 2000 steps' '$page' && grep -q 'Windows a step: 12 at P = 2 (6 a rank)' '$page'"
check "as a table for programs, too" sh -c "[ \$(grep -c '^2,adamw,' '$W/page/table.csv') -eq 2 ]"
check "no checkpoint of a finished run is kept" sh -c "! find '$W/page' | grep -q /checkpoint-"
if command -v gnuplot > /dev/null 2>&1; then
    check "a figure" [ -s "$W/page/loss.png" ]
else
    skip "a figure" "gnuplot is not installed"
fi

# -- again, and more -------------------------------------------------------------------------------------------------------
real=$MPIRUN
note_launches
cp "$page" "$W/before"
study $small --parts exchanges --
status=$?
check "called again it starts nothing" sh -c "[ $status -eq 0 ] && [ $(calls) -eq 0 ] && grep -qxF 'p2/dense: all of it has ended' '$W/out'"
check "and writes the same page" cmp -s "$page" "$W/before"
study $small --plan --
check "the plan: what is left, by the seconds of what is done" grep -q '^P = 2: 5 of 9 runs left, of 20 steps: about .* at the [0-9.]* s a step' "$W/out"
study $small --
status=$?
check "what helps is added (status $status)" sh -c "[ $status -eq 0 ] && [ $(calls) -eq 5 ]"
check "with its distance from the exchange without it" sh -c "grep -q '^| 2 | adamw | topka | 0.1 | --local-update | [0-9.]* | [+-][0-9.]* | [+-][0-9.]* | [0-9.]* |\$' '$page'"
check "and a sentence of its own" grep -q '^- P = 2, adamw, `--dense-slices 1d`: lowers the loss by more than 0.01 in [01] of 1 ' "$page"
cp "$page" "$W/before"
before=$(calls)
rm -rf "$W/page/runs"
study $small --
status=$?
check "where the runs are gone, as on another machine, it starts nothing" sh -c "[ $status -eq 0 ] && [ $(calls) -eq $before ]"
check "and writes the same page of what was kept" cmp -s "$page" "$W/before"
study --algos dense,topka --optimisers adamw --seeds 2,3 --parts exchanges --
status=$?
check "a third seed is two runs more" sh -c "[ $status -eq 0 ] && [ $(calls) -eq $((before + 2)) ]"
check "which the page has beside those of before" sh -c "grep -q '^| 2 | adamw | topka | 0.1 | 3 | ' '$page' && grep -q -- '--local-update' '$page'"
check "runs.csv has each of them" [ "$(grep -c '^2,adamw,topka,,0.1,[123],done,20,' "$W/page/runs.csv")" -eq 3 ]
study $small --parts exchanges -- --lr 0.5
status=$?
check "runs of other options are not taken for these (status $status)" sh -c "[ $status -eq 2 ] && grep -q 'runs.csv has dense with other options' '$W/err'"
study $small --plan --
check "then nothing is left" grep -q '^P = 2: 0 of 9 runs left' "$W/out"

study --algos oktopk --optimisers adamw --seeds 1 --parts audits --out "$W/audits" --
status=$?
largest=$("$PROGRAM" rows "$W/audits/runs/p2/oktopk+-log-xi-1-audit-1/density0.1-optimiseradamw-seed1" --type step --keys xi | awk '$1 > most { most = $1 } END { printf "%.3g", most }')
check "thresholds and xi have a table (status $status)" [ $status -eq 0 -a -n "$largest" ]
check "with the largest xi of the log" sh -c "grep '^| 2 | adamw | oktopk | 0.1 | ' '$W/audits/README.md' | cut -d '|' -f 9 | grep -qxF ' $largest '"
check "and the rows of Algorithm 1, which finds thresholds in one of 20 steps" sh -c "grep -q '^| 2 | adamw | oktopk --oktopk-thresholds paper | 0.1 | .* | 5% | 5% |\$' '$W/audits/README.md'"

cp "$W/audits/README.md" "$W/before"
rm -rf "$W/audits/runs"
study --algos oktopk --optimisers adamw --seeds 1 --parts audits --out "$W/audits" --
check "which is kept, too" cmp -s "$W/audits/README.md" "$W/before"

# -- what diverges, what fails ---------------------------------------------------------------------------------------------
page=$W/nan/README.md
nan="--algos dense,topka --optimisers adamw --seeds 1 --parts exchanges --out $W/nan -- --lr 1e6"
study $nan
status=$?
check "to diverge is a result (status $status)" [ $status -eq 0 ]
check "the table says so" grep -q '^| 2 | adamw | topka | 0.1 | 0 | diverged after step [0-9] |   |   |$' "$page"
check "and the verdict" grep -q 'diverged `topka` (diverged after step [0-9])' "$page"
before=$(calls)
study $nan
check "which is not tried again" [ "$(calls)" -eq "$before" ]
MPIRUN=false
export MPIRUN
study --algos dense,topka --optimisers sgd --seeds 1 --parts exchanges --out "$W/none" --
status=$?
check "where runs fail it says so (status $status: $(tail -n 1 "$W/err"))" sh -c "[ $status -eq 1 ] && grep -q 'dense \[1/1\] optimisersgd-seed1: failed with status 1' '$W/out' && grep -qi 'not all runs are done' '$W/none/README.md'"
MPIRUN=$real

# refused TEXT OPTION...
refused() {
    refused_text=$1
    shift
    study "$@" --
    refused_status=$?
    why="status $refused_status: $(cat "$W/err")"
    [ $refused_status -eq 2 ] && grep -qF -e "$refused_text" "$W/err"
}
check "a part that is not" refused '--parts has "all"; there are exchanges, helps, audits' --parts all
check "ranks that are none" refused '--ranks takes whole ranks, not "two"' --ranks two
check "an exchange that is not of the study" refused 'there is nothing to run of these' --algos dense-ovlp
finish
