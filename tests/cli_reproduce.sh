#!/bin/sh
# cli_reproduce.sh: scripts/reproduce.sh and scripts/report.sh: the list of IDs, every mistake, the rules of agreement, one ID
# from end to end in quick mode, what is repeated after an interruption and what is not, and the report, from rows that
# a test knows.
# shellcheck disable=SC2016 # programs for other shells and awks
. tests/tap.sh
scripts=scripts/reproduce
before=$(find results -type f -exec cksum {} + | sort | cksum)

# reproduce ARG...: out and err in $W; its status
reproduce() { BUILD=$BUILD sh scripts/reproduce.sh "$@" > "$W/out" 2> "$W/err" < /dev/null; }
# refused TEXT ARG...: status 2 and one line with this text
refused() {
    refused_text=$1
    shift
    reproduce "$@"
    refused_status=$?
    why="status $refused_status: $(head -c 400 "$W/err")"
    [ $refused_status -eq 2 ] && [ "$(wc -l < "$W/err")" -eq 1 ] && grep -qF -- "$refused_text" "$W/err"
}

# -- the list ----------------------------------------------------------------------------------------------------------
ids=$(sed -n '/^[a-z]/p' $scripts/ids)
reproduce list
check "list exits with 0" [ $? -eq 0 ]
complete() { # every ID has a script whose head says all there is to say
    for id in $ids; do
        grep -q "^$id " "$W/out" || { why="$id is not in the list"; return 1; }
        for field in paper runs needs takes agrees; do
            grep -q "^# $field: ." "$scripts/$id.sh" || { why="$scripts/$id.sh has no line \"# $field: ...\""; return 1; }
        done
        sed -n 2p "$scripts/$id.sh" | grep -q "^# $id: ." || { why="$scripts/$id.sh does not begin with its ID"; return 1; }
    done
}
check "every ID is listed, and the head of its script is complete" complete
listed() { # and every script that is an ID is in the list of them
    for script in "$scripts"/*-*.sh; do
        case $script in */gradient-histogram.sh) continue ;; esac
        printf '%s\n' "$ids" | grep -qx "$(basename "$script" .sh)" || { why="$script is not in $scripts/ids"; return 1; }
    done
}
check "every script of an ID stands in ids" listed

artifact() { # docs/ARTIFACT.md has every ID, and what their heads say now
    for id in $ids; do grep -qxF "#### $id" docs/ARTIFACT.md || { why="$id is not in docs/ARTIFACT.md: sh scripts/artifact.sh"; return 1; }; done
    why=$(sh scripts/artifact.sh --check 2>&1)
}
check "the artifact appendix is up to date" artifact

# -- mistakes ----------------------------------------------------------------------------------------------------------
check "an unknown ID: all are named" refused "$(printf '%s' "$ids" | tr '\n' ' ')" gtopk-fig99
check "one unknown ID among others" refused "there is no ID nothing" gtopk-table1 nothing
check "no ID" refused "which ID?" --quick
check "an unknown option" refused "unknown option --fast" all --fast
check "--to without a folder" refused "--to needs a value" all --to
check "--epochs that are no number" refused "--epochs ten" all --epochs ten
check "--epochs 1.2.3" refused "--epochs 1.2.3" all --epochs 1.2.3
check "quick results do not go to results/measured" refused "does not write to results/measured" oktopk-table2 --quick --to results/measured
built() { BUILD=$W/nothing refused_text='build it first: make' sh scripts/reproduce.sh all 2> "$W/err"; [ $? -eq 2 ] && grep -qF 'build it first: make' "$W/err"; }
check "no program" built
reported() { # reported TEXT ARG...: report.sh refuses with status 2
    reported_text=$1
    shift
    sh scripts/report.sh "$@" > "$W/out" 2> "$W/err"
    [ $? -eq 2 ] && grep -qF -- "$reported_text" "$W/err"
}
check "report.sh: no such folder" reported "there is no folder $W/none" --from "$W/none"
check "report.sh: an unknown option" reported "unknown argument --all" --all

# -- the rules of agreement --------------------------------------------------------------------------------------------
# rule | paper | ours | agrees
cat > "$W/rules" << 'END'
equal|5|5.0|yes
equal|5|5.001|no
equal|yes|yes|yes
equal|yes|no|no
equal||5|n/a
within 1%|100|101|yes
within 1%|100|101.1|no
within 1%|-100|-99|yes
within 1%|0.436|0.4316|no
within 2|10|12|yes
within 2|10|12.5|no
within 2|10|7.9|no
within a factor 3|10|30|yes
within a factor 3|10|3|no
within a factor 3|10|0|?
same order|100|300|yes
same order|100|330|no
same order|100|32|yes
at least|11|11|yes
at least|11|10.9|no
at most|11|11|yes
at most|11|12|no
at least -1||-0.5|yes
at least -1||-1.5|no
at most 5||5|yes
at most 5||5.5|no
at most|||n/a
at most||4|n/a
between -10 and 10||-10|yes
between -10 and 10||10.5|no
in range|1000 to 3000|1000|yes
in range|1000 to 3000|3001|no
in range|1000|1000|?
shape: it falls||yes|yes
shape: it falls||no|no
shape: it falls||perhaps|?
shape: ||yes|?
none|1|2|n/a
within 1%|100||n/a
within 1%|100|-|n/a
within 1%|100|fast|?
within|100|100|?
near|100|100|?
near||100|?
within 1%|1e3|1.005e3|yes
END
rules() {
    why=$(awk -F '|' "$(cat $scripts/agree.awk)"'
        { said = agrees($1, $2, $3); if (said != $4) printf "%s, paper %s, ours %s: %s instead of %s; ", $1, $2, $3, said, $4 }
        END { if (NR < 40) print "only " NR " cases" }' "$W/rules")
    [ -z "$why" ]
}
check "agreement is decided by the rules" rules
csv() {
    why=$(awk "$(cat $scripts/csv.awk)"'BEGIN {
        text[1] = "plain"; text[2] = "a, b"; text[3] = "\"quoted\", c"; text[4] = ""; text[5] = "\""
        for (i = 1; i <= 5; i++) line = line (i > 1 ? "," : "") csv_field(text[i])
        n = csv_split(line, field)
        if (n != 5) print n " fields: " line
        for (i = 1; i <= 5; i++) if (field[i] != text[i]) print field[i] " instead of " text[i]
    }')
    [ -z "$why" ]
}
check "a field with commas and quotes comes back" csv

# -- the library -------------------------------------------------------------------------------------------------------
# in_id PROGRAM: a script as those of the IDs, by the name of gtopk-table1; results in $W/lab
in_id() {
    printf '%s\n' '. scripts/reproduce/lib.sh' "$1" > "$W/gtopk-table1.sh"
    REPRODUCE_QUICK=1 REPRODUCE_TO=$W/lab REPRODUCE_WHY=$W/why sh "$W/gtopk-table1.sh" > "$W/out" 2> "$W/err" < /dev/null
}
says() { # says TEXT PROGRAM: it prints exactly that
    in_id "$2"
    why="$(cat "$W/out") $(head -c 300 "$W/err")"
    [ "$(cat "$W/out")" = "$1" ]
}
check "a published number by its row" says 1317 'published gtopk-single-gpu.csv images_per_s model=VGG-16'
check "a label without a name" says 25.3 'published oktopk-fig9.csv runtime_min gpus=32 label=3'
check "two conditions" says 13.2 'published oktopk-text.csv value model=VGG-16 subject="topkdsa and topka"'
fails() { # fails TEXT PROGRAM
    in_id "$2" && return 1
    why="$(head -c 300 "$W/err")"
    grep -qF -- "$1" "$W/err"
}
check "no such row" fails "no single row" 'x=$(published gtopk-single-gpu.csv images_per_s model=VGG-19); echo "$x"'
check "no such column" fails "no single row" 'x=$(published gtopk-single-gpu.csv speed model=VGG-16); echo "$x"'
check "more than one row" fails "no single row" 'x=$(published oktopk-text.csv value model=VGG-16); echo "$x"'
check "a cost formula as it is printed" says "1500 4000 76500 7 8 9" \
    'for f in "2k(P-1)/P" "2k*log2(P)" "(2k+n)(P-1)/P"; do printf "%s " "$(formula "$f" 4 100000 1000)"; done
     printf "%s %s %s\n" "$(formula "2(P-1)-5" 7 1 1)" "$(formula "P+2*log2(P)" 4 1 1)" "$(formula "3log2(P)" 8 1 1)"'
check "a rule for full runs alone is none in quick mode" says 'n/a' 'row a b "" 1 d 2 real "full: equal" && cut -d , -f 9 "$out/.comparison" | tail -n 1'
check "in a full run that was cut short the note says so" says 'yes,after 3 epochs' \
    'quick=; shortened="after 3 epochs"; row a b "" 2 d 2 real "full: equal" && cut -d , -f 9,10 "$out/.comparison" | tail -n 1'
check "and none that nobody knows is let through" fails "cannot decide" 'quick=; row a b "" 1 d 2 real "full: near"'
check "a row with a rule that nobody knows" fails "cannot decide" 'row a b c 1 d 2 real near'
check "a row of an unknown kind" fails "cannot decide" 'row a b c 1 d 2 imagined equal'
check "a job that fails says how" fails "status 3 of sh -c 'echo broken >&2; exit 3': broken" 'job x sh -c "echo broken >&2; exit 3"'
# What another ID beside this one has finished, at this commit and with this very command line
mkdir -p "$W/lab/neighbour"
echo theirs > "$W/lab/neighbour/there.txt"
neighbour() { # neighbour COMMIT COMMAND-LINE
    printf 'there.txt\t%s\t7\t%s\n' "$1" "$2" > "$W/lab/neighbour/jobs.tsv"
    rm -rf "$W/lab/gtopk-table1"
}
commit=$("$BUILD"/sparsetrain --version | sed -n '1s/.*(commit \([^)]*\)).*/\1/p')
neighbour "$commit" "sh -c 'exit 9'"
check "a job that another ID has finished is taken from there" says "theirs 7 1" 'job here.txt sh -c "exit 9"
    awk -v text="$(cat "$out/here.txt")" -F "\t" "\$1 == \"here.txt\" { print text, \$3, \$2 == \"$commit\" }" "$out/jobs.tsv"'
neighbour anothercommit "sh -c 'exit 9'"
check "not of another commit" fails "status 9" 'job here.txt sh -c "exit 9"'
neighbour "$commit" "sh -c 'exit 9' --record x"
check "nor where files beside its output are wanted" fails "status 9" 'job here.txt sh -c "exit 9" --record x'
rm -r "$W/lab/neighbour"
# 2500 steps, of which 100 have xi, and rows of other types.
awk 'BEGIN {
    print "{\"type\":\"header\",\"host\":\"here\"}"
    for (i = 1; i <= 2500; i++) printf "{\"type\":\"step\",\"step\":%d,%s\"seconds\":1}\n", i, i % 25 ? "" : "\"xi\":2,"
    print "{\"type\":\"summary\"}"
}' > "$W/long.jsonl"
# every third step, beginning with the first: 834, of them 34 with xi; and the other 66
check "of a long log steps are left out, but none with xi" says "900 100 834 2" \
    'keep_log '"$W/long.jsonl"' > "$out/kept"
     printf "%s %s %s %s\n" "$(grep -c "\"step\":" "$out/kept")" "$(grep -c "\"xi\":" "$out/kept")" \
         "$(awk "/\"type\":\"step\"/ { gsub(/[^0-9]*\"step\":|,.*/, \"\"); n += \$0 % 3 == 1 } END { print n }" "$out/kept")" "$(grep -c "header\|summary" "$out/kept")"'
# Fig. 8 and 9 of Ok-Topk: 46.5 minutes over 160 epochs of 50000/256 steps are 89.28 ms of computing
check "a step on the simulated Aries is computing, selection of the right kind and communication" says "0.10228 0.10348 0.13158 0.28928 0.07" \
    'need_file() { :; }; need_tool() { :; }; . scripts/reproduce/aries.sh
     printf "{\"algo\":\"%s\",\"median_s\":9,\"mean_s\":%s}\n" topka 0.003 gaussiank 0.0042 dense-ovlp 0.2 > "$out/p16.jsonl"
     printf "{\"algo\":\"oktopk\",\"median_s\":9,\"mean_s\":0.0013}\n" > "$out/oktopk-p16.jsonl"
     printf "{\"selector\":\"%s\",\"median_s\":%s,\"mean_s\":%s}\n" exact 0.01 7 reuse 0.042 8 gaussian 0.01 6 > "$out/select.jsonl"
     for algo in topka gaussiank oktopk dense-ovlp; do printf "%s " "$(step_seconds $algo 16)"; done
     calc "$(steps_of 16) - $(steps_of 32) - 97.58625"; echo'
skipping() {
    in_id "$1"
    [ $? -eq 77 ] && grep -qF -- "$2" "$W/why"
}
check "a tool that is missing skips" skipping 'need_tool no-such-tool "install it"' 'no-such-tool is not installed: install it'
SPARSETRAIN_DATA=$W/nodata check "data that are missing skip" skipping 'need_data cifar10' 'sh scripts/fetch-data.sh cifar10'

# -- one ID from end to end, and what an interruption leaves ---------------------------------------------------------------
note_launches
of_ranks() { grep -c -- "^-np $1 " "$W/log"; }

echo 3 > "$W/stop"
reproduce gtopk-table1 --quick --to "$W/quick"
check "interrupted: the status of the signal" [ $? -eq 143 ]
check "the job that was interrupted left nothing" [ ! -e "$W/quick/gtopk-table1/p4.jsonl" ]
check "and no comparison" [ ! -e "$W/quick/gtopk-table1/comparison.csv" ]
rm "$W/stop"
reproduce gtopk-table1 --quick --to "$W/quick"
check "it goes on where it was" [ $? -eq 0 ]
check "what was finished is not repeated" [ "$(calls) $(of_ranks 2) $(of_ranks 3) $(of_ranks 4) $(of_ranks 8)" = "8 1 1 2 1" ]
check "the end sums up" grep -qE '^[01] reproduced, [01] disagree, 0 skipped, 0 failed$' "$W/out"
rows=$W/quick/gtopk-table1/comparison.csv
check "a row for each number of ranks, algorithm and term" [ "$(grep -c 'P=[2-8],' "$rows")" -eq 42 ]
check "gtopk's words are counted, and those of Table I" [ "$(grep -c '^gtopk P=[2-8],bandwidth term.*,real,within 0.01%,yes,$' "$rows")" -eq 7 ]
check "command, commit and machine are there" [ "$(grep -cE '^(command: sh scripts/reproduce.sh gtopk-table1 --quick|commit: [0-9a-f]|machine: .)' "$W/quick/gtopk-table1/about.txt")" -eq 3 ]
if command -v gnuplot > /dev/null 2>&1; then
    check "a figure" sh -c "head -c 4 '$W/quick/gtopk-table1/figure.png' | grep -q PNG"
else
    skip "a figure" "gnuplot is not installed"
fi
check "and the report" grep -q '^### gtopk-table1$' "$W/quick/REPORT.md"
reproduce gtopk-table1 --quick --to "$W/quick"
check "once more: no job runs" [ "$(calls)" -eq 8 ]
jobs=$W/quick/gtopk-table1/jobs.tsv
sed "/^p2.jsonl/s/	[^	]*/	anothercommit/" "$jobs" > "$W/jobs" && cp "$W/jobs" "$jobs"
reproduce gtopk-table1 --quick --to "$W/quick" --keep
check "--keep: a job of another commit counts" [ "$(calls)" -eq 8 ]
check "and the page names both commits" grep -q '^commit: .*anothercommit' "$W/quick/gtopk-table1/about.txt"
reproduce gtopk-table1 --quick --to "$W/quick"
check "without it, it is repeated" [ "$(calls) $(of_ranks 2)" = "9 2" ]
check "results/ is as it was" [ "$(find results -type f -exec cksum {} + | sort | cksum)" = "$before" ]

# -- training that was interrupted -----------------------------------------------------------------------------------------
training='train t.jsonl 2 --data synthetic:640x64 --batch 8 --steps 12 --checkpoint-every 4 --eval-every 0 --algo gtopk --density 0.01'
in_id "$training"
check "a run of training" [ $? -eq 0 ]
run=$W/lab/gtopk-table1/runs/t.jsonl.run
whole=$(hash_of "$run")
check "its log is kept, with a hash" [ -n "$whole" ]
check "no name of this machine is in it" [ "$(grep -c '"host":"-"' "$W/lab/gtopk-table1/t.jsonl")" -eq 1 ]
# As if it had been killed in step 11: no end, no last checkpoint.
rm -r "$run/checkpoint-00000012"
grep -v -e '"type":"summary"' -e '"step":12' "$run/run.jsonl" > "$W/cut" && cp "$W/cut" "$run/run.jsonl"
rm "$W/lab/gtopk-table1/jobs.tsv"
: > "$W/log"
in_id "$training"
check "it is resumed" [ "$(calls) $(grep -c -- --resume "$W/log")" = "1 1" ]
check "to the same bits" [ "$(hash_of "$run")" = "$whole" ]
in_id "$training --seed 2"
check "with other options it begins anew" [ "$(calls) $(grep -c -- --resume "$W/log")" = "2 1" ]

# -- the report ------------------------------------------------------------------------------------------------------------
F=$W/fixture
mkdir -p "$F/gtopk-table1" "$F/oktopk-table2" "$F/mstopk-fig6"
printf 'item,quantity,unit,paper,paper_source,ours,kind,rule,agrees,note\n' | tee "$F/gtopk-table1/comparison.csv" "$F/oktopk-table2/comparison.csv" > "$F/mstopk-fig6/comparison.csv"
cat >> "$F/gtopk-table1/comparison.csv" << 'END'
first <item>,"time, all|some",ms,1,Table I,1.005,emulated,within 1%,yes,"a ""note"" & more"
second,2*k words,words,2,Table I,3,simulated,equal,no,
third,steps,,7,Table I,7,model,equal,yes,
fourth,speed,,133333.3333,Table I,0.0123456789,real,none,n/a,
END
printf 'VGG-16,parameters,,14728266,Table 2,14728266,real,equal,yes,\n' >> "$F/oktopk-table2/comparison.csv"
printf 'cpu,time,s,,Fig. 6,,real,none,n/a,skipped: no GPU\n' >> "$F/mstopk-fig6/comparison.csv"
for id in gtopk-table1 oktopk-table2 mstopk-fig6; do
    printf 'id: %s\nshows: what %s shows\npaper: p\nruns: r\nagrees: a\nmode: full\ncommand: sh scripts/reproduce.sh %s\ncommit: abc123\nmachine: a machine\ndate: 2026-01-01\nseconds: 5\n' \
        $id $id $id > "$F/$id/about.txt"
done
printf '\211PNG\r\n\032\nnot much of a picture' > "$F/gtopk-table1/figure.png"
printf '## The scaling study\n\n| P | winner |\n|---|---|\n| 4 | **gtopk** |\n\nSee [below](#summary), `a<b`.\n' > "$F/scaling.md"
sh scripts/report.sh --from "$F" > "$W/out" 2> "$W/err"
check "report.sh exits with 0" [ $? -eq 0 ]
md=$F/REPORT.md html=$F/REPORT.html
has() { # has FILE TEXT...
    has_file=$1
    shift
    for has_text in "$@"; do grep -qF -- "$has_text" "$has_file" || { why="not in it: $has_text"; return 1; }; done
}
check "Markdown: the rows, with kind and agreement" has "$md" \
    '| first \<item\> | time, all\|some [ms] | 1 | Table I | 1.005 | emulated | within 1% | yes |' \
    '| second | 2\*k words [words] | 2 | Table I | 3 | simulated | equal | **no** |' '| third | steps | 7 | Table I | 7 | model | equal | yes |' \
    '| VGG-16 | parameters | 14728266 | Table 2 | 14728266 | real | equal | yes |'
check "Markdown: numbers as far as they are read" has "$md" '| fourth | speed | 133333.3 | Table I | 0.01235 | real | none | n/a |'
check "Markdown: the summary" has "$md" '| [gtopk-table1](#gtopk-table1) |' '| emulated, simulated, model, real | 2 of 3 | **no** |' '| real | 1 of 1 | yes |' '|  | none is made | n/a |' \
    'IDs: '"$(printf '%s\n' "$ids" | wc -l)"'; with results: 3; of these agree in all that is compared: 1; do not: 1. Single comparisons: 4, of which agree: 3.'
check "Markdown: agreement in words" has "$md" '**No full agreement:** 2 of 3 comparisons agree. These do not: second, 2\*k words.' \
    '**Agreement:** the one comparison agrees.' 'Nothing here is compared with the paper.'
check "Markdown: command, commit, machine" has "$md" '`sh scripts/reproduce.sh gtopk-table1` (full) at commit abc123 on 2026-01-01' 'Machine: a machine.'
check "Markdown: the picture" has "$md" '](gtopk-table1/figure.png)'
check "Markdown: an ID without results says so" has "$md" 'No results yet: `sh scripts/reproduce.sh gtopk-fig8`'
order() { [ "$(grep -n '^## The scaling study' "$md" | cut -d: -f1)" -lt "$(grep -n '^## Summary' "$md" | cut -d: -f1)" ]; }
check "the scaling study comes first" order
check "HTML: rows and kinds" has "$html" '<td>first &lt;item&gt;</td><td>time, all|some [ms]</td><td class="number">1</td>' '<td class="emulated">emulated</td>' \
    '<td class="simulated">simulated</td>' '<td class="model">model</td>' '<td class="real">real</td>' '<td class="no"><strong>no</strong></td>' \
    '<td>a &quot;note&quot; &amp; more</td>' '<td>2*k words [words]</td>'
check "HTML: the picture is in it" has "$html" "data:image/png;base64,$(base64 < "$F/gtopk-table1/figure.png" | tr -d '\n')"
check "HTML: the scaling study" has "$html" '<h2 id="the-scaling-study">' '<strong>gtopk</strong>' '<a href="#summary">below</a>' '<code>a&lt;b</code>'
alone() { ! grep -qE '(src|href)="(https?:|/|[a-z0-9-]+/)|<link|@import|url\(|<script' "$html"; }
check "HTML: nothing from elsewhere" alone
balanced() { # every tag that opens closes, in order; every link inside the page has its target
    why=$(awk '
        {
            line = $0
            while (match(line, /<\/?[a-z][a-z0-9]*[^>]*>/)) {
                tag = substr(line, RSTART, RLENGTH)
                line = substr(line, RSTART + RLENGTH)
                closing = tag ~ /^<\//
                name = tag
                gsub(/^<\/?|[ >].*$/, "", name)
                if (match(tag, / id="[^"]*"/)) { id = substr(tag, RSTART + 5, RLENGTH - 6); if (ids[id]++) print "twice: " id }
                if (match(tag, / href="#[^"]*"/)) wanted[substr(tag, RSTART + 8, RLENGTH - 9)] = 1
                if (name ~ /^(meta|img|br)$/) continue
                if (!closing) open[++depth] = name
                else if (open[depth--] != name) print "line " NR ": </" name "> closes <" open[depth + 1] ">"
            }
        }
        END {
            if (depth) print depth " tags are open"
            for (id in wanted) if (!(id in ids)) print "no target: " id
        }' "$html")
    [ -z "$why" ]
}
check "HTML: tags are balanced, links have their targets" balanced
if command -v tidy > /dev/null 2>&1; then
    check "HTML: tidy has no errors" sh -c "tidy -q -e '$html' 2>&1 | grep -c ' - Error' | grep -qx 0"
else
    skip "HTML: tidy has no errors" "tidy is not installed"
fi
finish
