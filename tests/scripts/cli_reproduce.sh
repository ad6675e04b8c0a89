#!/bin/sh
# cli_reproduce.sh: scripts/reproduce.sh and scripts/report.sh: the list of IDs, every mistake, the rules of agreement, one ID
# from end to end in quick mode, what is repeated after an interruption and what is not, and the report, from rows that
# a test knows.
# shellcheck disable=SC2016 # programs for other shells and awks
. tests/lib/tap.sh
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
            grep -q "^# $field: ." "$scripts"/*/"$id.sh" || { why="the script of $id has no line \"# $field: ...\""; return 1; }
        done
        sed -n 2p "$scripts"/*/"$id.sh" | grep -q "^# $id: ." || { why="the script of $id does not begin with its ID"; return 1; }
    done
}
check "every ID is listed, and the head of its script is complete" complete
listed() { # and every script that is an ID is in the list of them
    for script in "$scripts"/*/*.sh; do
        case $script in */parts/*) continue ;; esac
        printf '%s\n' "$ids" | grep -qx "$(basename "$script" .sh)" || { why="$script is not in $scripts/ids"; return 1; }
    done
}
check "every script of an ID stands in ids" listed

artifact() { # docs/ARTIFACT.md has every ID, and what their heads say now
    for id in $ids; do grep -qxF "#### $id" docs/ARTIFACT.md || { why="$id is not in docs/ARTIFACT.md: sh scripts/artifact.sh"; return 1; }; done
    why=$(sh scripts/artifact.sh --check 2>&1)
}
check "the artifact appendix is up to date" artifact
# kept_cells TEXT COLUMN FILE...: of the rows with this text of comparisons that are kept, each once
kept_cells() {
    kept_text=$1 kept_column=$2
    shift 2
    TEXT=$kept_text awk -v column="$kept_column" "$(cat scripts/lib/csv.awk)"'FNR == 1 || index($0, ENVIRON["TEXT"]) { csv_row() } FNR > 1 && index($0, ENVIRON["TEXT"]) { print cell_of(column) }' \
        "$@" | sort -u | paste -s -d ' ' -
}
check "the paper's own time of a step is not compared with itself" [ "$(kept_cells 'shortest run time over its steps' counted results/measured/oktopk-fig*/comparison.csv)" = no ]
check "runs that end before the paper's are not called full" [ "$(kept_cells 'reused threshold' run results/measured/oktopk-fig4/comparison.csv)" = '3996 steps' ]
check "no row is held to lack a model that there is" [ -z "$(kept_cells 'no such model' item results/*/oktopk-*/comparison.csv)" ]

# -- mistakes ----------------------------------------------------------------------------------------------------------
check "an unknown ID: all are named" refused "$(printf '%s' "$ids" | tr '\n' ' ')" gtopk-fig99
check "one unknown ID among others" refused "there is no ID nothing" gtopk-table1 nothing
check "no ID" refused "which ID?" --quick
check "an unknown option" refused "unknown option --fast" all --fast
check "--out without a folder" refused "--out needs a value" all --out
check "--seeds that are no number" refused "--seeds few" all --seeds few
check "--seeds 0" refused "--seeds 0" all --seeds 0
check "--epochs that are no number" refused "--epochs ten" all --epochs ten
check "--epochs 1.2.3" refused "--epochs 1.2.3" all --epochs 1.2.3
check "quick results do not go to results/measured" refused "does not write to results/measured" oktopk-table2 --quick --out results/measured
built() { BUILD=$W/nothing refused_text='build it first: make' sh scripts/reproduce.sh all 2> "$W/err"; [ $? -eq 2 ] && grep -qF 'build it first: make' "$W/err"; }
check "no program" built
reported() { # reported TEXT ARG...: report.sh refuses with status 2
    reported_text=$1
    shift
    sh scripts/report.sh "$@" > "$W/out" 2> "$W/err"
    [ $? -eq 2 ] && grep -qF -- "$reported_text" "$W/err"
}
check "report.sh: no such folder" reported "there is no folder $W/none" --from "$W/none"
check "report.sh: an unknown option" reported "unknown option --all" --all
check "report.sh: --out without a folder" reported "--out needs a value" --out

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
within 25% and at least 1|1.3|1.1|yes
within 25% and at least 1|1.3|0.98|no
within 25% and at least 1|1.3|1.7|no
within 25% and at most 1|1.3|1.1|no
within 25% and at least 1||1.1|n/a
within 25% and at least 1|1.3||n/a
within 25% and at least one|1.3|1.1|?
near and at least 1|1.3|1.1|?
END
rules() {
    why=$(awk -F '|' "$(cat $scripts/agree.awk)"'
        { said = agrees($1, $2, $3); if (said != $4) printf "%s, paper %s, ours %s: %s instead of %s; ", $1, $2, $3, said, $4 }
        END { if (NR < 48) print "only " NR " cases" }' "$W/rules")
    [ -z "$why" ]
}
check "agreement is decided by the rules" rules
csv() {
    why=$(awk "$(cat scripts/lib/csv.awk)"'BEGIN {
        text[1] = "plain"; text[2] = "a, b"; text[3] = "\"quoted\", c"; text[4] = ""; text[5] = "\""
        for (i = 1; i <= 5; i++) line = line (i > 1 ? "," : "") csv_field(text[i])
        n = csv_split(line, field)
        if (n != 5) print n " fields: " line
        for (i = 1; i <= 5; i++) if (field[i] != text[i]) print field[i] " instead of " text[i]
    }')
    [ -z "$why" ]
}
check "a field with commas and quotes comes back" csv

medians() { # of time-to-target: medians of steps to a target that not every seed reaches
    eval "$(sed -n '/^over_seeds() {/,/^}/p' $scripts/studies/time-to-target.sh)"
    while IFS='|' read -r steps median reached; do
        said=$(for s in $steps; do printf '%s 100\n' "${s#-}"; done | over_seeds what)
        why="of $steps: $said"
        [ "$said" = "what|$median|$reached|100" ] || return 1
    done << END
800|800|1 of 1
-|-|0 of 1
800 -|-|1 of 2
900 800|850|2 of 2
- 800 900|900|2 of 3
- 800 -|-|1 of 3
900 800 - -|-|2 of 4
- 900 800 1000|950|3 of 4
END
}
check "a target that half of the seeds reach has no median" medians
# -- the library -------------------------------------------------------------------------------------------------------
# in_id PROGRAM: a script as those of the IDs, by the name of gtopk-table1; results in $W/lab
in_id() {
    printf '%s\n' '. scripts/reproduce/lib.sh' "$1" > "$W/gtopk-table1.sh"
    REPRODUCE_QUICK=${in_quick-1} REPRODUCE_OUT=$W/lab REPRODUCE_WHY=$W/why sh "$W/gtopk-table1.sh" > "$W/out" 2> "$W/err" < /dev/null
}
says() { # says TEXT PROGRAM: it prints exactly that
    in_id "$2"
    why="$(cat "$W/out") $(head -c 300 "$W/err")"
    [ "$(cat "$W/out")" = "$1" ]
}
check "a published number by its row" says 1317 'published gtopk-single-gpu.csv images_per_s model=VGG-16'
check "a label without a name" says 25.3 'published oktopk-fig9.csv runtime_min gpus=32 label=3'
check "a number with the place where it is printed" says "parameters 14728266 of Table 2" \
    'look_up oktopk-models.csv parameters model=VGG-16; echo "parameters $paper of $source" | sed "s/Table 2.*/Table 2/"'
check "points of a figure: the columns of one of its series" says "1 5|3 7|" \
    'printf "a 1 4 5\nb 2 5 6\na 3 6 7\n" >"$out/p"; points "$out/p" a 2 4 | tr "\n" "|"; echo'
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
# -- rows: what they are held against, what they claim, what counts
# last NAME...: an awk program that prints these columns of the last row of a comparison, with "|" between
last() {
    printf 'awk "$csv_awk"'"'"'{ csv_row() } END { '
    for last_name in "$@"; do printf 'printf "%%s|", cell_of("%s"); ' "$last_name"; done
    printf 'print "" }'"'"' "$out/.comparison"'
}
check "what a rule finds, and all that a row says of itself" says 'i|q|u|1|here|1|real|measured|equal|yes|yes|gtopk-costs|yes|full|n, n|' \
    "run_length=full; claim gtopk-costs; against measured; row i q u 1 here 1 real equal 'n, n'
     $(last item quantity unit paper paper_source ours kind against rule agrees direction claim counted run note)"
check "what disagrees counts as well" says 'no|n/a|yes|' "against words; row a b '' 1 d 2 real equal; $(last agrees direction counted)"
check "what is not compared does not count" says 'n/a|n/a|no|' "against words; row a b '' 1 d 2 real none; $(last agrees direction counted)"
check "nor does what has no number of ours" says 'n/a|no|' "against measured; row a b '' 1 d '' real equal; $(last agrees counted)"
check "a self-check is held to its rule, and is not counted" says 'no|no|self|' "against self; row a b '' 1 d 2 real equal; $(last agrees counted against)"
check "what another ID measured is not counted twice" says 'yes|no|the measurement of gtopk-table4, counted there|' \
    "against measured; repeats gtopk-table4; row a b '' 1 d 1 real equal; $(last agrees counted note)"
check "the next rows are counted again" says 'yes|' "against measured; repeats gtopk-table4; repeats; row a b '' 1 d 1 real equal; $(last counted)"
check "in direction: yes where the size is not" says 'no|yes|' "against measured; direction 'at least 1'; row a b '' 3 d 2 real 'within 10%'; $(last agrees direction)"
check "in direction: no" says 'no|no|' "against measured; direction 'at least 1'; row a b '' 3 d 0.5 real 'within 10%'; $(last agrees direction)"
check "what agrees is right in direction" says 'yes|yes|' "against measured; direction 'at least 9'; row a b '' 3 d 3 real equal; $(last agrees direction)"
check "a direction is of one row" says 'no|n/a|' \
    "against measured; direction 'at least 1'; row a b '' 3 d 3 real equal; row a b '' 3 d 2 real equal; $(last agrees direction)"
check "a claim of another ID" fails "the claim oktopk-xi is not of gtopk-table1" 'claim oktopk-xi'
check "a claim that nobody made" fails "no single row" 'claim faster-than-light'
check "a class that nobody knows" fails "it is measured, words, formula, self or nothing" 'against opinion'
check "a row that is held against nothing" fails "against what is this row held?" 'row a b c 1 d 2 real equal'
check "what cannot be calculated ends the ID, though in a row" fails "a number could not be calculated" \
    'against measured; row a b "" 1 d "$(calc "3 / / 4")" real none; finish'
check "a rule for full runs alone is none in quick mode, and so is its direction" says 'n/a|n/a|no|quick|not compared in quick mode (in full: equal)|' \
    "against measured; direction 'full: at least 1'; row a b '' 1 d 2 real 'full: equal'; $(last agrees direction counted run note)"
check "in a full run it is decided" says 'no|yes|full|' \
    "quick=; run_length=full; against measured; direction 'full: at least 1'; row a b '' 1 d 2 real 'full: equal'; $(last agrees direction run)"
check "and none that nobody knows is let through" fails "cannot decide" 'quick=; against measured; row a b "" 1 d 2 real "full: near"'
check "a row with a rule that nobody knows" fails "cannot decide" 'against measured; row a b c 1 d 2 real near'
check "a direction that nobody knows" fails "cannot decide" 'against measured; direction uphill; row a b c 1 d 2 real equal'
check "a row of an unknown kind" fails "cannot decide" 'against measured; row a b c 1 d 2 imagined equal'
check "a tolerance as points of a figure: what a rule allows" says "1 8 6 10|1 8 4 16|1 8 8 8|" \
    'for rule in "within 25%" "within a factor 2" none; do printf "%s|" "$(echo 1 8 | tolerance "$rule")"; done; echo'

# -- training, by a launcher that is stopped by a signal at first, after a checkpoint
cat > "$W/stopped-once" << 'END'
#!/bin/sh
echo "$*" >> "$0.calls"
for word in "$@"; do case $before in --out | --resume) run=$word ;; esac; before=$word; done
if [ ! -d "$run/checkpoint-00000250" ]; then
    mkdir -p "$run/checkpoint-00000250"
    : > "$run/checkpoint-00000250/model.ckpt"
    exit 4
fi
echo '{"type":"summary","completed":true}' > "$run/run.jsonl"
END
chmod +x "$W/stopped-once"
# trains_twice QUICK: what the launcher was called with, a call a line, the folder of runs as RUNS
trains_twice() {
    rm -rf "$W/lab" "$W/runs" "$W/stopped-once.calls"
    for _ in 1 2; do
        in_quick=$1 REPRODUCE_RUNS=$W/runs MPIRUN=$W/stopped-once in_id 'train a.jsonl 2 --steps 500'
    done
    sed "s,$W/runs,RUNS,; s,-np 2 [^ ]*sparsetrain,PROGRAM," "$W/stopped-once.calls" | tr '\n' '|'
}
check "a run of full length saves itself often, resumed, too" [ "$(trains_twice '')" = \
    'PROGRAM train --steps 500 --out RUNS/a.jsonl.run --checkpoint-every 250 --progress lines|PROGRAM --resume RUNS/a.jsonl.run --checkpoint-every 250 --progress lines|' ]
check "a quick one does not" [ "$(trains_twice 1)" = \
    'PROGRAM train --steps 500 --out RUNS/a.jsonl.run --progress lines|PROGRAM --resume RUNS/a.jsonl.run --progress lines|' ]

# -- what is computed from a log: twice k in the steps before the hundredth, then k; in every other step three exact thresholds
cat > "$W/made-up" << 'END'
#!/bin/sh
for word in "$@"; do case $before in --out) run=$word ;; esac; before=$word; done
mkdir -p "$run"
awk 'BEGIN {
    print "{\"type\":\"header\",\"steps\":120,\"parameters\":10000}"
    for (s = 1; s <= 120; s++)
        printf "{\"type\":\"step\",\"step\":%d,\"epoch\":%g,\"density\":0.01,\"k\":100,\"local_nnz_mean\":%d,\"global_nnz\":100,\"evaluated_local\":{%s}}\n", s, s / 20, s < 100 ? 200 : 100, s % 2 ? "" : "\"due\":2,\"many\":1"
    print "{\"type\":\"summary\",\"completed\":true}"
}' > "$run/run.jsonl"
END
chmod +x "$W/made-up"
over_all_steps() { # of the row that has this text: ours
    rm -rf "$W/lab"
    REPRODUCE_QUICK=1 REPRODUCE_OUT=$W/lab REPRODUCE_WHY=$W/why REPRODUCE_RUNS=$W/runs-made-up MPIRUN=$W/made-up sh scripts/reproduce/oktopk/oktopk-fig6.sh > "$W/out" 2> "$W/err"
    why="$(grep -F "$1" "$W/lab/oktopk-fig6/comparison.csv") $(head -c 300 "$W/err")"
    [ "$(grep -F "$1" "$W/lab/oktopk-fig6/comparison.csv" | sed -n 's/.*\(p. 8\|Algorithm 1\),\([^,]*\),real.*/\2/p' | head -n 1)" = "$2" ]
}
check "a mean over all steps is over all steps" over_all_steps 'local: mean deviation' 82.5
check "exact thresholds are counted by ranks" over_all_steps 'local: steps with an exact' 37.5
check "counts by a rule of our own are shown, and not compared" sh -c "grep -F 'thresholds led by counts' '$W/lab/oktopk-fig6/comparison.csv' | grep -F 'global: mean deviation' | grep -q ',none,n/a,n/a,,no,.*our own rule'"
check "numbers of a log are compared as numbers" [ -z "$(grep -nE 'json\("[a-z_]+"\) *[<>]' scripts/*.sh scripts/*/*.sh)" ]

# -- the length of runs, and their seeds
# trained EPOCHS SEEDS PROGRAM: in full, with these of the command line, jobs of training as their options
trained() {
    in_quick='' REPRODUCE_EPOCHS=$1 REPRODUCE_SEEDS=$2 in_id '. scripts/reproduce/parts/training.sh; need_data() { :; }; train() { shift 2; echo "$*" | grep -o -e "--epochs.*"; }
        '"$3"
}
length_says() { # length_says TEXT EPOCHS SEEDS PROGRAM
    trained "$2" "$3" "$4"
    why="$(cat "$W/out") $(head -c 300 "$W/err")"
    [ "$(tr '\n' '|' < "$W/out")" = "$1" ]
}
check "a run of full length says full" length_says '--epochs 140 --algo dense|full|' '' 1 'cifar x.jsonl resnet20 --algo dense; echo $run_length'
check "a shorter one is the beginning of the whole, and says so" length_says '--epochs 140 --stop-at 6 --algo dense|first 6 of 140 epochs|' 6 1 \
    'cifar x.jsonl resnet20 --algo dense; echo $run_length'
check "a text, too" length_says '--epochs 40 --stop-at 0.5 --data ptb --hidden 1500 --batch 20|first 0.5 of 40 epochs|' 0.5 1 'words x.jsonl; echo $run_length'
check "as many epochs as the whole has are the whole" length_says '--epochs 140|full|' 140 1 'cifar x.jsonl resnet20; echo $run_length'
check "one with more, too" length_says '--epochs 140|full|' 200 1 'cifar x.jsonl resnet20; echo $run_length'
check "the title of a figure says it" length_says 'first 6 of 140 epochs|' 6 1 'cifar x.jsonl resnet20 >/dev/null
    printf "\"a\"\n0 0\n1 1\n" >"$out/f.dat"; gnuplot() { echo "$2" | grep -o "(first[^)]*)" | tr -d "()"; }; command() { :; }
    figure f.png "$out/f.dat" lines.gp title=T xlabel=x ylabel=y'
check "several seeds: each has a file and an option" length_says '--epochs 140 --stop-at 6|--epochs 140 --stop-at 6 --seed 2|--epochs 140 --stop-at 6 --seed 3|a.jsonl a-seed2.jsonl|' 6 3 \
    'over_seeds cifar a.jsonl resnet20; echo $(of_seed a.jsonl 1) $(of_seed a.jsonl 2)'
# gains FIRST SECOND...: accuracies of a and b at seeds 1, 2, ...
ended() {
    printf 'ended() { printf "{\"type\":\"summary\",\"test_accuracy\":%%s}\n" "$2" >"$out/$1"; }\n'
    seed=1
    while [ $# -gt 1 ]; do
        case $seed in 1) name='' ;; *) name=-seed$seed ;; esac
        printf 'ended a%s.jsonl %s; ended b%s.jsonl %s\n' "$name" "$1" "$name" "$2"
        seed=$((seed + 1))
        shift 2
    done
}
gain_says() { # gain_says TEXT RULE ACCURACY...: a row of 100 (a - b) over so many seeds
    gain_text=$1 gain_rule=$2
    shift 2
    length_says "$gain_text|" '' $(($# / 2)) "against words; $(ended "$@")
        gain_row i q points '' s '$gain_rule' \"\$points\" a.jsonl b.jsonl
        $(last ours rule agrees direction note)"
}
check "of one seed, which is better is not said" gain_says '1|none|n/a|n/a|one seed cannot tell which of two is better|' 'full: at least 0' 0.91 0.90
check "but how far it is" gain_says '-3|at least -1|no|n/a|one seed|' 'full: at least -1' 0.87 0.90
check "what is not compared says nothing of seeds" gain_says '-3|none|n/a|n/a||' none 0.87 0.90
check "nor what is compared over several" gain_says '-2|at least 1|no|n/a|mean of the seeds 1 2, +-2 (twice its standard error)|' 'full: at least 1' 0.87 0.90 0.89 0.90
check "on either side of the bound" gain_says '-2|at least -5|yes|yes|mean of the seeds 1 2, +-2 (twice its standard error)|' 'full: at least -5' 0.87 0.90 0.89 0.90
for bound in -3 -1; do
    check "seeds that differ by more than the room to a bound cannot tell: $bound" gain_says "-2|none|n/a|n/a|mean of the seeds 1 2, +-2 (twice its standard error); these seeds cannot tell: $bound is within that|" "full: at least $bound" 0.87 0.90 0.89 0.90
    check "nor at most $bound" gain_says "-2|none|n/a|n/a|mean of the seeds 1 2, +-2 (twice its standard error); these seeds cannot tell: $bound is within that|" "full: at most $bound" 0.87 0.90 0.89 0.90
done
check "the mean of three seeds, above" gain_says '1|at least 0|yes|yes|mean of the seeds 1 2 3, +-1.15 (twice its standard error)|' 'full: at least 0' 0.91 0.90 0.92 0.90 0.90 0.90
check "below by less than twice the error: right in direction" gain_says '-1|at least 0|no|yes|mean of the seeds 1 2 3, +-1.15 (twice its standard error)|' 'full: at least 0' 0.89 0.90 0.88 0.90 0.90 0.90
check "below by more: not" gain_says '-2|at least 0|no|no|mean of the seeds 1 2 3, +-0.115 (twice its standard error)|' 'full: at least 0' 0.88 0.90 0.881 0.90 0.879 0.90
check "at most 0, likewise" gain_says '1|at most 0|no|yes|mean of the seeds 1 2 3, +-1.15 (twice its standard error)|' 'full: at most 0' 0.91 0.90 0.92 0.90 0.90 0.90
gain_of_one_seed() { # gain_of_one_seed TEXT PROGRAM: of 0.87 and 0.90
    length_says "$1|" '' 1 "against words; $(ended 0.87 0.90); $2; direction 'full: at least -5'
        gain_row i q points '' s 'full: at least -4' \"\$points\" a.jsonl b.jsonl
        $(last ours rule agrees direction counted note)"
}
made_on() { printf 'printf "{\\"type\\":\\"header\\",\\"versions\\":{\\"simd\\":\\"%s\\"}}\\n" >>"$out/%s"' "$2" "$1"; } # made_on FILE SET
check "one seed is compared" gain_of_one_seed '-3|at least -4|yes|yes|yes|one seed|' :
check "but not where runs are known to differ by more than the rule allows" gain_of_one_seed '-3|none|n/a|n/a|no|one seed cannot tell: seeds differ by 5|' "gain_spread='seeds differ by 5'"
check "nor runs of several instruction sets" gain_of_one_seed '-3|none|n/a|n/a|no|not on the same instruction sets: avx2 and avx512; one seed cannot tell|' \
    "$(made_on a.jsonl avx512); $(made_on b.jsonl avx2)"
check "on the same ones they are" gain_of_one_seed '-3|at least -4|yes|yes|yes|one seed|' "$(made_on a.jsonl avx2); $(made_on b.jsonl avx2)"
check "several seeds are in any case" length_says '-2|at least -5|yes|yes|not on the same instruction sets: avx2 and avx512; mean of the seeds 1 2, +-2 (twice its standard error)||' '' 2 \
    "against words; $(ended 0.87 0.90 0.89 0.90); $(made_on a.jsonl avx512); $(made_on b.jsonl avx2); gain_row i q points '' s 'full: at least -5' \"\$points\" a.jsonl b.jsonl
    $(last ours rule agrees counted note)"
check "nor a run that two kinds of processors made" gain_of_one_seed '-3|none|n/a|n/a|no|not on the same instruction sets: avx2 and avx512; one seed cannot tell|' \
    "$(made_on a.jsonl avx512); $(made_on a.jsonl avx2); $(made_on b.jsonl avx2)"
check "each seed on its own kind is no difference of these" length_says '-2|at least -5|yes|yes|mean of the seeds 1 2, +-2 (twice its standard error)||' '' 2 \
    "against words; $(ended 0.87 0.90 0.89 0.90); $(made_on a.jsonl avx512); $(made_on b.jsonl avx512); $(made_on a-seed2.jsonl avx2); $(made_on b-seed2.jsonl avx2)
    gain_row i q points '' s 'full: at least -5' \"\$points\" a.jsonl b.jsonl; $(last ours rule agrees counted note)"

# of runs that are not all there: without_run FILE: it is not
without_run() { gain_text=$1 without=$2; trained '' 3 "against words; $(ended 0.91 0.90 0.92 0.90 0.90 0.90)
        missing='$without'
        gain_row i q points '' s 'full: at least 0' \"\$points\" a.jsonl b.jsonl
        $(last ours rule agrees counted note)"; why="$(cat "$W/out") $(head -c 300 "$W/err")"; [ "$(cat "$W/out")" = "$gain_text" ]; }
check "a gain is over the seeds that both have" without_run '1.5|at least 0|yes|yes|mean of the seeds 1 2, +-1 (twice its standard error); not run yet: b-seed3.jsonl|' b-seed3.jsonl
check "one seed that both have cannot tell" without_run '2|none|n/a|no|one seed cannot tell which of two is better; not run yet: a-seed3.jsonl b.jsonl|' 'b.jsonl a-seed3.jsonl'
check "where no seed has both, nothing is compared" without_run '|none|n/a|no|not run yet: a.jsonl a-seed2.jsonl a-seed3.jsonl|' 'a.jsonl a-seed2.jsonl a-seed3.jsonl'
check "a row of a run that is not there says so" says '|none|n/a|no|not run yet: t.jsonl|' \
    "against words; missing=t.jsonl; row a b '' 1 d \"\$(of t.jsonl summary loss)\" real 'at most 3'; $(last ours rule agrees counted note)"
check "also one that is calculated of it" says '|none|not run yet: t.jsonl|' \
    "against words; missing=t.jsonl; row a b '' 1 d \"\$(calc \"3 * \$(of t.jsonl summary loss) + 1\")\" real 'at most 3'; $(last ours rule note)"
check "the next row is one as others" says '2|at most 3|yes|' \
    "against words; missing=t.jsonl; row a b '' 1 d \"\$(of t.jsonl summary loss)\" real 'at most 3'; row a b '' 1 d 2 real 'at most 3'; $(last ours rule agrees)"
check "a smaller LSTM says so" length_says '--epochs 40 --data ptb --hidden 650 --batch 20|LSTM-650|LSTM-650|' '' 1 \
    'REPRODUCE_HIDDEN=650; . scripts/reproduce/parts/training.sh; need_data() { :; }; train() { shift 2; echo "$*" | grep -o -e "--epochs.*"; }; words x.jsonl; echo $lstm_name; echo $run_length'
check "and of what beginning" length_says 'first 3 of 40 epochs of LSTM-650|' 3 1 \
    'REPRODUCE_HIDDEN=650; . scripts/reproduce/parts/training.sh; need_data() { :; }; train() { :; }; words x.jsonl; echo $run_length'

# Of two calls that make an ID in one folder the second ends at once; lines of finished jobs outlive a full disk.
if command -v flock > /dev/null 2>&1; then
    check "one call at a time in a folder" fails 'another call makes gtopk-table1 in' 'flock -u 8; exec 8>&-; (exec 8>"$alone_lock"; flock 8; exec sleep 5) &
        sleep 1; ended=1; if (alone); then ended=0; fi; kill $!; exit $ended'
else
    skip "one call at a time in a folder" "flock is not installed"
fi
if [ -c /dev/full ]; then
    check "a full disk costs no line of what is finished" says 'old|1 7 c m' 'mkdir "$out/full"; printf "old\n" >"$out/full/jobs.tsv"; ln -s /dev/full "$out/full/.jobs"
        mark_job "$out/full" f 7 c 1 m 2>/dev/null || tr "\n" "|" <"$out/full/jobs.tsv"; rm "$out/full/.jobs"; mark_job "$out/full" f 7 c 1 m; tail -n 1 "$out/full/jobs.tsv" | cut -f 2- | tr "\t" " "'
else
    skip "a full disk costs no line of what is finished" "there is no /dev/full"
fi

check "a job that fails says how" fails "status 3 of sh -c 'echo broken >&2; exit 3': broken" 'job x sh -c "echo broken >&2; exit 3"'
check "so does one that breaks down" fails "status 134 of sh -c 'echo broken >&2; exit 134': broken" 'job x sh -c "echo broken >&2; exit 134"'
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
    'need_file() { :; }; need_tool() { :; }; . scripts/reproduce/parts/aries.sh
     printf "{\"algo\":\"%s\",\"median_s\":9,\"mean_s\":%s}\n" topka 0.003 gaussiank 0.0042 dense-ovlp 0.2 > "$out/p16.jsonl"
     printf "{\"algo\":\"oktopk\",\"median_s\":9,\"mean_s\":0.0013}\n" > "$out/oktopk-p16.jsonl"
     printf "{\"selector\":\"%s\",\"median_s\":%s,\"mean_s\":%s}\n" exact 0.01 7 reuse 0.042 8 gaussian 0.01 6 > "$out/select.jsonl"
     for algo in topka gaussiank oktopk dense-ovlp; do printf "%s " "$(step_seconds $algo 16)"; done
     calc "$(epoch_steps VGG-16 16) - $(epoch_steps VGG-16 32) - 97.58625"; echo'
# The LSTM's slowest runs: 60.7 and 34.0 minutes over 160 epochs of 948/64 and 948/128 steps are 1.536709 and 1.721519 s, one merge of
# 551391 entries apart; less five of them and the 8.8 minutes' 0.222785 s the first leaves 0.389873 s for 27569568 entries. With VGG-16's
# 14728266 and 294565 entries: 208.279 ms, of which oktopk has a 32nd, and 98.7296 ms, gtopk four times
check "a step of the experiment: the other model's selections, computing less oktopk's, what a tenth of the bandwidth makes" \
    says "0.3141 0.7060 0.1428 0.0943 topkdsa 314.05 139.968" \
    'need_file() { :; }; need_tool() { :; }; . scripts/reproduce/parts/aries.sh
     job() { case $* in "p16-tenth.jsonl sh scripts/simulate.sh --net scripts/reproduce/parts/aries-tenth.net --p 16 "*" --compute 0.08277128"*) echo job >> "$out/.narrow" ;; esac; }
     narrow 16
     [ "$(cat "$out/.narrow")" = job ] || echo "no job"
     for algo in dense dense-ovlp topka topkdsa gaussiank; do printf "{\"algo\":\"%s\",\"mean_s\":%s}\n" $algo "$(case $algo in topkdsa) echo 0.023 ;; dense-ovlp) echo 0.06 ;; *) echo 0.9 ;; esac)"; done > "$out/p16-tenth.jsonl"
     printf "{\"algo\":\"gtopk\",\"mean_s\":0.02}\n" >> "$out/p16-tenth.jsonl"
     printf "{\"algo\":\"oktopk\",\"mean_s\":0.005}\n" > "$out/oktopk-p16-tenth.jsonl"
     for algo in topkdsa gtopk dense-ovlp oktopk; do printf "%.4f " "$(narrow_seconds $algo 16)"; done
     against measured; row() { printf "%s %s %s\n" "${9%%"'"'"'"s*}" "$6" "$4"; }
     narrow_runs 16 2 | cut -d " " -f 1,2 | tr "\n" " "; narrow_runs 16 3 | cut -d " " -f 3'
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
reproduce gtopk-table1 --quick --out "$W/quick"
check "interrupted: the status of the signal" [ $? -eq 143 ]
check "the job that was interrupted left nothing" [ ! -e "$W/quick/gtopk-table1/p4.jsonl" ]
check "and no comparison" [ ! -e "$W/quick/gtopk-table1/comparison.csv" ]
rm "$W/stop"
reproduce gtopk-table1 --quick --out "$W/quick"
check "it goes on where it was" [ $? -eq 0 ]
check "what was finished is not repeated" [ "$(calls) $(of_ranks 2) $(of_ranks 3) $(of_ranks 4) $(of_ranks 8)" = "8 1 1 2 1" ]
check "the end sums up" grep -qE '^[01] reproduced, [01] disagree, 0 skipped, 0 failed$' "$W/out"
rows=$W/quick/gtopk-table1/comparison.csv
check "a row for each number of ranks, algorithm and term" [ "$(grep -c 'P=[2-8],' "$rows")" -eq 42 ]
check "gtopk's words are counted, and those of Table I" [ "$(grep -c '^gtopk P=[2-8],bandwidth term.*,real,formula,within 0.01%,yes,yes,gtopk-costs,yes,quick,$' "$rows")" -eq 7 ]
check "start-ups by the cost model are self-checks, and not counted" [ "$(grep -c ',latency term.*,model,self,equal,.*,no,quick,' "$rows")" -eq 21 ]
check "command, commit and machine are there" [ "$(grep -cE '^(command: sh scripts/reproduce.sh gtopk-table1 --quick|commit: [0-9a-f]|machine: .)' "$W/quick/gtopk-table1/about.txt")" -eq 3 ]
if command -v gnuplot > /dev/null 2>&1; then
    check "a figure" sh -c "head -c 4 '$W/quick/gtopk-table1/figure.png' | grep -q PNG"
else
    skip "a figure" "gnuplot is not installed"
fi
check "and the report" grep -q '^### gtopk-table1$' "$W/quick/REPORT.md"
reproduce gtopk-table1 --quick --out "$W/quick"
check "once more: no job runs" [ "$(calls)" -eq 8 ]
jobs=$W/quick/gtopk-table1/jobs.tsv
sed "/^p2.jsonl/s/	[^	]*/	anothercommit/" "$jobs" > "$W/jobs" && cp "$W/jobs" "$jobs"
reproduce gtopk-table1 --quick --out "$W/quick" --keep
check "--keep: a job of another commit counts" [ "$(calls)" -eq 8 ]
check "and the page names both commits" grep -q '^commit: .*anothercommit' "$W/quick/gtopk-table1/about.txt"
reproduce gtopk-table1 --quick --out "$W/quick"
check "without it, it is repeated" [ "$(calls) $(of_ranks 2)" = "9 2" ]
# One of its jobs is given a file of the folder of results: its line names that, also where the work is done elsewhere.
line_of_model() { awk -F '\t' '$1 == "model.jsonl" { print $4 }' "$jobs"; }
model_line=$(line_of_model)
check "a job names its file where the results are" sh -c "echo '$model_line' | grep -qF -- '--net $W/quick/gtopk-table1/alpha.net '"
rm "$rows"
reproduce gtopk-table1 --quick --out "$W/quick" --finished
check "--finished knows it again" [ "$? $(grep -c 'bandwidth term' "$rows")" = '0 21' ]
sed -i '/^model.jsonl/d' "$jobs"
reproduce gtopk-table1 --quick --out "$W/quick" --job model.jsonl
check "made alone, too" [ "$? $(line_of_model)" = "0 $model_line" ]
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

# Of two epochs of 40 steps the first: --stop-at.
prefix='train s.jsonl 2 --data synthetic:640x64 --batch 8 --epochs 2 --stop-at 1 --checkpoint-every 16 --eval-every 0 --algo gtopk --density 0.01'
run=$W/lab/gtopk-table1/runs/s.jsonl.run
steps_of() { json "$run/run.jsonl" summary step; }
in_id "$prefix"
check "--stop-at: the beginning of a run" [ "$(steps_of) $(json "$W/lab/gtopk-table1/s.jsonl" summary prefix)" = "40 true" ]
whole=$(hash_of "$run")
rm "$W/lab/gtopk-table1/jobs.tsv"
: > "$W/log"
in_id "$prefix"
check "it is finished where it stops" [ "$(calls) $(steps_of)" = "0 40" ]
rm -r "$run/checkpoint-00000040"
grep -v -e '"type":"summary"' -e '"step":40' "$run/run.jsonl" > "$W/cut" && cp "$W/cut" "$run/run.jsonl"
rm "$W/lab/gtopk-table1/jobs.tsv"
in_id "$prefix"
check "interrupted, it is resumed to where it stops" [ "$(calls) $(grep -c -- '--resume .* --stop-at 1 ' "$W/log") $(steps_of) $(hash_of "$run")" = "1 1 40 $whole" ]

# -- the report ------------------------------------------------------------------------------------------------------------
# A tree with results of its own: the authors' in results/measured, quick ones in results/quick, a user's in mine.
BUILD=$(cd "$BUILD" && pwd)
export BUILD # of which the tree has none
T=$W/tree
mkdir -p "$T/results/measured"
cp -r scripts "$T/scripts"
cp -r results/published "$T/results/published"
F=$T/results/measured
columns=item,quantity,unit,paper,paper_source,ours,kind,against,rule,agrees,direction,claim,counted,run,note
# rows FOLDER ID MODE: its comparison from standard input, and its page
rows() {
    mkdir -p "$1/$2"
    { echo "$columns" && cat; } > "$1/$2/comparison.csv"
    printf 'id: %s\nshows: what %s shows\npaper: p\nruns: r\nagrees: a\nmode: %s\ncommand: sh scripts/reproduce.sh %s\ncommit: abc123\nmachine: a machine\ndate: 2026-01-01\nseconds: 5\n' \
        "$2" "$2" "$3" "$2" > "$1/$2/about.txt"
}
rows "$F" gtopk-table1 full << 'END'
first <item>,"time, all|some",ms,1,Table I,1.005,emulated,formula,within 1%,yes,yes,gtopk-costs,yes,full,"a ""note"" & more"
second,2*k words,words,2,Table I,3,simulated,formula,equal,no,no,gtopk-costs,yes,full,
third,steps,,7,Table I,7,model,self,equal,yes,yes,gtopk-costs,no,full,
fourth,speed,,133333.3333,Table I,0.0123456789,real,formula,none,n/a,n/a,,no,full,
END
rows "$F" gtopk-table4 full << 'END'
VGG-16,gtopk over dense,x,5,Table IV,5,simulated,measured,within 25%,yes,yes,gtopk-speed-up,yes,full,
VGG-16,gtopk over topka,x,5,Table IV,2,simulated,measured,within 25%,no,yes,gtopk-speed-up,yes,full,
VGG-16,efficiency,%,5,Table IV,5,simulated,measured,within 25%,yes,yes,,no,full,"the measurement of gtopk-fig10, counted there"
END
rows "$F" gtopk-fig1 full << 'END'
"ResNet-20, P = 4",accuracy over dense,points,,Fig. 1,0.5,real,words,at least -1,yes,yes,gtopk-converges,yes,first 6 of 140 epochs,"mean of the seeds 1 2 3, +-0.3 (twice its standard error)"
"ResNet-20, P = 4",accuracy at the end over that of its middle,x,,Fig. 1,,real,words,at least 1,n/a,n/a,gtopk-converges,no,first 6 of 140 epochs,
"ResNet-20, P = 4",seconds,s,,Fig. 1,,real,words,none,n/a,n/a,gtopk-converges,no,first 6 of 140 epochs,skipped: shown alone
END
rows "$F" gtopk-fig8 full << 'END'
lab,alpha,ms,0.436,Fig. 8,0.9,emulated,self,within 15%,no,n/a,gtopk-alpha-beta,no,full,
END
rows "$F" gtopk-fig5 full << 'END'
ResNet-20,accuracy over dense,points,,Fig. 5,,real,words,none,n/a,n/a,gtopk-resnet20,no,full,"one seed; not run yet: gtopk.jsonl"
VGG-16,accuracy over dense,points,,Fig. 5,0.5,real,words,at least 0,yes,yes,gtopk-vgg16,yes,full,"mean of the seeds 1 2, +-0.3 (twice its standard error); not run yet: seed3.jsonl"
END
rows "$F" gtopk-fig7 full << 'END'
"LSTM-PTB, P = 4",perplexity over dense,%,,Fig. 7,2,real,words,at most 5,yes,yes,gtopk-lstm,yes,full,one seed
END
rows "$F" oktopk-fig11 full << 'END'
speech,error rate over dense,,,Fig. 11,-0.01,real,words,none,n/a,n/a,oktopk-lstm-wer,no,full,"mean of the seeds 1 2 3, +-0.04 (twice its standard error); these seeds cannot tell: 0.01 is within that"
speech,error rate over dense,,,Fig. 11,0.02,real,words,none,n/a,n/a,oktopk-lstm-wer-code,no,full,"one seed cannot tell: seeds differ by 0.4; not run yet: seed2.jsonl"
END
rows "$F" oktopk-table2 full << 'END'
VGG-16,parameters,,14728266,Table 2,14728266,real,measured,equal,yes,yes,oktopk-sizes,yes,full,
END
rows "$F" mstopk-fig6 full << 'END'
cpu,time,s,,Fig. 6,,real,words,none,n/a,n/a,mstopk-selection,no,full,skipped: no GPU
END
rows "$T/results/quick" gtopk-fig9 quick << 'END'
"P = 4",time,s,1,Fig. 9,1,simulated,formula,within 15%,yes,yes,gtopk-cost-curves,yes,quick,
END
# As it was before rows were classed
columns=item,quantity,unit,paper,paper_source,ours,kind,rule,agrees,note
rows "$F" oktopk-fill-in full << 'END'
VGG-16,density,%,13.2,Section 5.2,13,real,within 5%,yes,
VGG-16,another,%,13.2,Section 5.2,15,real,within 5%,no,
END
printf '\211PNG\r\n\032\nnot much of a picture' > "$F/gtopk-table1/figure.png"
cp "$F/gtopk-table1/figure.png" "$T/results/quick/gtopk-fig9"
mkdir "$F/resnet20-of-mine"
printf 'Made by `sh scripts/convergence.sh --epochs 2`, which\n' > "$F/resnet20-of-mine/README.md"
printf '{"type":"header","ranks":4,"versions":{"commit":"abc"}}\n{"type":"summary","epoch":2,"test_accuracy":0.5,"bytes_sent_per_step":2048}\n' > "$F/resnet20-of-mine/topka.jsonl"
printf '{"type":"header","ranks":4,"versions":{"commit":"abc"}}\n{"type":"summary","epoch":1.5,"completed":false,"prefix":true,"run_epochs":140,"test_accuracy":0.5,"bytes_sent_per_step":2048}\n' \
    > "$F/resnet20-of-mine/gtopk.jsonl"
mkdir "$F/decoders-of-mine"
printf '# Which one wins\n\nMade by `sh scripts/transformer.sh` on a day.\n\n**Not all runs are done:** go on.\n\n## Verdict\n\n- P = 2:\n    - `topka` +0.1\n\n## Exchanges\n\nunseen\n' \
    > "$F/decoders-of-mine/README.md"
printf '## The scaling study\n\n| P | winner |\n|---|---|\n| 4 | **gtopk** |\n\nSee [below](#contents), `a<b`.\n' > "$T/results/scaling.md"
sh "$T/scripts/report.sh" > "$W/out" 2> "$W/err"
check "report.sh exits with 0" [ $? -eq 0 ]
check "and says nothing else" [ ! -s "$W/err" ]
md=$T/results/REPORT.md html=$T/results/REPORT.html
has() { # has FILE TEXT...
    has_file=$1
    shift
    for has_text in "$@"; do grep -qF -- "$has_text" "$has_file" || { why="not in it: $has_text"; return 1; }; done
}
lacks() { # lacks FILE TEXT...
    lacks_file=$1
    shift
    for lacks_text in "$@"; do ! grep -qF -- "$lacks_text" "$lacks_file" || { why="in it: $lacks_text"; return 1; }; done
}
in_order() { # in_order FILE LINE...: these lines stand in it, in this order
    order_file=$1 order_last=0
    shift
    for order_line in "$@"; do
        order_at=$(grep -nxF -- "$order_line" "$order_file" | head -n 1 | cut -d: -f1)
        why="$order_line is at ${order_at:-no line}, after $order_last"
        [ "${order_at:-0}" -gt "$order_last" ] || return 1
        order_last=$order_at
    done
}
check "the matrix of claims comes first, the scaling study last" in_order "$md" "## The papers' claims" '**Not attempted:**' '## Contents' '## Studies of our own' '## Training on real data, kept' \
    '### gtopk-table1' '### oktopk-fill-in' '## Self-checks' '## The scaling study'
# the line of a claim: claimed TEXT REST
claimed() { grep -F -- "| $1 |" "$md" | grep -qF -- "| $1 | $2"; }
check "claims: reproduced" claimed 'the parameters of VGG-16 and LSTM and BERT' '**reproduced** | 1 of 1 | 14728266 | real | measured | full | [oktopk-table2](#oktopk-table2) |'
check "claims: not" claimed 'topka moves 2(P-1)k words and gtopk 4k log2 P' '**not** | 1 of 2 | 1.005 ms; 3 words | emulated; simulated | formula | full |'
check "claims: the direction" claimed 'gtopk is 2.7 to 12.8 times as fast as dense and 1.1 to 1.7 times as topka on 32 GPUs' 'direction holds | 1 of 2 | 5 x; 2 x | simulated | measured | full |'
check "claims: of the beginning of a run no more than so far" claimed 'naive gTop-k on ResNet-20 with 4 workers converges as dense gradients do' \
    'so far: reproduced | 1 of 1; 1 to come | 0.5 +-0.3 points | real | words | first 6 of 140 epochs |'
check "claims: self-checks are no result" claimed 'on 1 Gbit/s Ethernet a message takes alpha = 0.436 ms and beta = 3.6e-5 ms an element' 'not attempted: self-checks or shown alone |   |'
check "claims: nothing to compare" claimed "MSTopK's selection takes next to nothing beside exact top-k and DGC's" 'not attempted: self-checks or shown alone |   |'
check "claims: whose runs are not all made" claimed 'ResNet-20 on 4 workers converges almost as with dense gradients' 'open: not all of its runs are made | 1 to come |'
check "claims: whose seeds cannot tell" claimed "two layers of 256 on AN4: Ok-Topk's word error rate is that of dense" 'open: its seeds cannot tell |   | -0.01 +-0.04 |'
check "claims: whose seeds cannot tell so far" claimed "the same; thresholds moved as in the authors' code" 'open: the seeds so far cannot tell |   | 0.02 |'
check "claims: of which some compare" claimed 'VGG-16 on 4 workers converges slightly better than with dense gradients' 'so far: reproduced | 1 of 1 | 0.5 +-0.3 points | real | words | full |'
check "claims: of one seed, it says so" claimed 'LSTM-PTB on 4 workers converges almost as with dense gradients' '**reproduced** | 1 of 1 | 2 % | real | words | full, one seed | [gtopk-fig7](#gtopk-fig7) |'
check "claims: not run" claimed "xi of Assumption 1 becomes stable and stays below P" 'not attempted |   |'
check "claims: a quick run is none of the paper's" claimed 'by the cost model topka is much slower than gtopk from 16 workers on' 'reproduced (quick) | 1 of 1 | 1 s | simulated | formula | quick |'
check "claims: rows that were made before" claimed 'the sum of 16 selections of 1% is 13.2% dense on VGG-16' 'not classed |   |'
check "what nobody tried is a list, with why" has "$md" '- gTop-k, Fig. 6: AlexNet and ResNet-50 on ImageNet converge close to dense gradients. No ImageNet, and no AlexNet and ResNet-50 among the models.'
every_claim() { # each stands in the matrix or in that list, once
    listed=$(sed -n "/^## The papers' claims/,/^## Contents/p" "$md" | grep -cE '^(\| (gTop-k|Ok-Topk|MSTopK|Aji et al.) |- (gTop-k|Ok-Topk|MSTopK|Aji et al.), )')
    why="$listed claims of $(($(wc -l < results/published/claims.csv) - 1))"
    [ "$listed" -eq $(($(wc -l < results/published/claims.csv) - 1)) ]
}
check "every claim is there" every_claim
known_ids() { # and those that are tried have an ID
    why=$(awk "$(cat scripts/lib/csv.awk)"'{ csv_row() } FNR > 1 && (cell_of("id") == "") != (cell_of("why_not") != "") { print cell_of("claim") ": an ID, or why not" }
        FNR > 1 && cell_of("id") != "" { print "id " cell_of("id") }' results/published/claims.csv | while read -r word id; do
        if [ "$word" != id ]; then echo "$word $id"; elif ! printf '%s\n' "$ids" | grep -qx "$id"; then echo "no ID $id"; fi
    done)
    [ -z "$why" ]
}
check "every claim has an ID or a reason" known_ids
check "comparisons are counted by what they are held against, without repeated ones and self-checks" has "$md" \
    'Single comparisons that agree: 2 of 3 with numbers that a paper measured; 3 of 3 with what a paper says in words, where the bound is our reading; 1 of 2 of what is counted or simulated' \
    'Of these comparisons 2 are so far of a part of their runs' \
    'Apart from them, 1 of 2 [self-checks](#self-checks) hold. Not classed, in results that were made before there were classes: 1 of 2.'
check "Markdown: the rows, with kind, class and agreement" has "$md" \
    '| first \<item\> | time, all\|some [ms] | 1 | Table I | 1.005 | emulated | formula | within 1% | yes |' \
    '| second | 2\*k words [words] | 2 | Table I | 3 | simulated | formula | equal | **no** |' \
    '| VGG-16 | gtopk over topka [x] | 5 | Table IV | 2 | simulated | measured | within 25% | direction |' \
    '| VGG-16 | parameters | 14728266 | Table 2 | 14728266 | real | measured | equal | yes |' \
    '| VGG-16 | density [%] | 13.2 | Section 5.2 | 13 | real | not classed | within 5% | yes |'
check "Markdown: self-checks have their own table" has "$md" '| [gtopk-table1](#gtopk-table1) | third | steps | 7 | Table I | 7 | model | equal | yes |' \
    '| [gtopk-fig8](#gtopk-fig8) | lab | alpha [ms] | 0.436 | Fig. 8 | 0.9 | emulated | within 15% | **no** |'
check "and are in no other" lacks "$md" '| third | steps | 7 | Table I | 7 | model | self |'
check "Markdown: numbers as far as they are read" has "$md" '| fourth | speed | 133333.3 | Table I | 0.01235 | real | formula | none | n/a |'
check "Markdown: agreement in words" has "$md" \
    '**No full agreement:** 1 of 2 comparisons agree. These do not: second, 2\*k words. 1 row is not compared. [1 self-check stands](#self-checks) apart.' \
    '**No full agreement:** 1 of 2 comparisons agree. These do not: VGG-16, gtopk over topka. 1 row is counted with another ID.' \
    '**Agreement:** the one comparison agrees.' '**Agreement so far:** the one comparison agrees (first 6 of 140 epochs). 1 comparison is to come. 1 row is not compared.' \
    '**Agreement so far:** the one comparison agrees (not all runs are made). 1 comparison is to come.' 'Nothing here is compared with the paper.' \
    'These do not: VGG-16, another. They are not classed: made before self-checks and repeated measurements were told apart.'
check "Markdown: a beginning says so" has "$md" '**Length: first 6 of 140 epochs**, on the schedules of the whole'
check "Markdown: command, commit, machine" has "$md" '`sh scripts/reproduce.sh gtopk-table1` (full) at commit abc123 on 2026-01-01' 'Machine: a machine.'
check "Markdown: the picture" has "$md" '<a href="measured/gtopk-table1/figure.png"><img src="measured/gtopk-table1/figure.png" width="380"'
check "Markdown: an ID without results says so" has "$md" 'No results yet: `sh scripts/reproduce.sh oktopk-fig5`'
check "Markdown: quick results say so" has "$md" '**A quick run alone**, of reduced size' '| P = 4 | time [s] | 1 | Fig. 9 | 1 | simulated | formula | within 15% | yes |'
check "Markdown: a study of our own has its verdict" has "$md" '### Which one wins' 'its page](measured/decoders-of-mine/README.md)' '**Not all runs are done:** go on.' '    - `topka` +0.1'
check "and the rest where it is" lacks "$md" unseen
check "HTML: a list within a list" has "$html" '<li>P = 2:</li>' '<li class="inner"><code>topka</code> +0.1</li>'
check "Markdown: runs that are kept" has "$md" '### resnet20-of-mine' 'Made by `sh scripts/convergence.sh --epochs 2`' '| topka | 4 | 2 | 50.00% |   | 2.0 | abc |' \
    '| gtopk | 4 | first 1.5 of 140 | 50.00% |'
check "Markdown: the authors' report has no column for them" lacks "$md" 'authors had'
check "HTML: rows and kinds" has "$html" '<td>first &lt;item&gt;</td><td>time, all|some [ms]</td><td class="number">1</td>' '<td class="emulated">emulated</td>' \
    '<td class="simulated">simulated</td>' '<td class="model">model</td>' '<td class="real">real</td>' '<td class="no"><strong>no</strong></td>' \
    '<td class="reproduced"><strong>reproduced</strong></td>' '<td class="direction">direction holds</td>' '<td class="open">so far: reproduced</td>' \
    '<td>a &quot;note&quot; &amp; more</td>' '<td>2*k words [words]</td>'
check "HTML: the picture is in it" has "$html" "data:image/png;base64,$(base64 < "$F/gtopk-table1/figure.png" | tr -d '\n')"
check "Markdown: a quick run's picture is a link" has "$md" 'Drawn: [figure.png](quick/gtopk-fig9/figure.png)'
check "HTML: and takes no room there" [ "$(grep -o 'data:image/png' "$html" | wc -l)" -eq 1 ]
check "HTML: the scaling study" has "$html" '<h2 id="the-scaling-study">' '<strong>gtopk</strong>' '<a href="#contents">below</a>' '<code>a&lt;b</code>'
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
                if (name ~ /^(meta|img|br|input)$/) continue
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
# A user's results: the authors' beside them, theirs as they were
columns=item,quantity,unit,paper,paper_source,ours,kind,against,rule,agrees,direction,claim,counted,run,note
rows "$T/mine" gtopk-table1 full << 'END'
second,2*k words,words,2,Table I,2,simulated,formula,equal,yes,yes,gtopk-costs,yes,full,
another,words,words,2,Table I,2,simulated,formula,equal,yes,yes,gtopk-costs,yes,full,
END
rows "$T/mine" oktopk-fig5 quick < /dev/null
before=$(cksum < "$md")
(cd "$T" && sh scripts/report.sh --from mine) > "$W/out" 2>&1
md=$T/mine/REPORT.md
check "a user's report: what the authors had stands beside" has "$md" '| second | 2\*k words [words] | 2 | Table I | 2 | 3 | simulated | formula | equal | yes |' \
    '| another | words [words] | 2 | Table I | 2 |   | simulated |' '| item | quantity | paper | where | ours | authors had |'
check "a user's report: it says whose results these are" has "$md" 'These are the results in `mine`' '**This is a quick run:**'
check "a user's report: the claims are those of these results alone" claimed 'topka moves 2(P-1)k words and gtopk 4k log2 P' '**reproduced** | 2 of 2 | 2 words | simulated | formula | full |'
check "the authors' report is as it was" [ "$(cksum < "$T/results/REPORT.md")" = "$before" ]
(cd "$T" && sh scripts/report.sh --from mine --out "$T/page") > "$W/out" 2>&1
check "--out: the page goes there" [ -s "$T/page/REPORT.html" ]

# What reproduce.sh itself says at its end: an ID that leaves rows as these
printf '%s\n' '#!/bin/sh' 'echo "$ROWS" > "$REPRODUCE_OUT/oktopk-table2/comparison.csv"' > "$T/scripts/reproduce/oktopk/oktopk-table2.sh"
ends_with() { # ends_with LINE SUMMARY ROW...
    ends_line=$1 ends_summary=$2
    shift 2
    (cd "$T" && ROWS=$(printf '%s\n' "$columns" "$@") BUILD=$(dirname "$PROGRAM") sh scripts/reproduce.sh oktopk-table2 --out "$T/mine") > "$W/out" 2> "$W/err"
    why=$(cat "$W/out" "$W/err")
    grep -qxF "$ends_line" "$W/out" && grep -qF "$ends_summary" "$W/out"
}
mkdir -p "$T/mine/oktopk-table2"
check "at the end: reproduced" ends_with '1 reproduced, 0 disagree, 0 skipped, 0 failed' 'reproduced   oktopk-table2: all of 1 comparisons agree' \
    'a,b,,1,s,1,real,measured,equal,yes,yes,,yes,full,' 'a,b,,1,s,2,real,measured,equal,no,no,,no,full,the measurement of x'
check "at the end: the beginning of a run is no more than so far" ends_with '0 reproduced, 0 disagree, 0 skipped, 0 failed, 1 agree so far' \
    'so far       oktopk-table2: all of 1 comparisons agree, in the first 6 of 140 epochs' 'a,b,,1,s,1,real,measured,equal,yes,yes,,yes,first 6 of 140 epochs,'
check "at the end: runs that are not all made are no more than that" ends_with '0 reproduced, 0 disagree, 0 skipped, 0 failed, 1 agree so far' \
    'so far       oktopk-table2: all of 1 comparisons agree, in the runs that there are, which are not all' 'a,b,,1,s,1,real,measured,equal,yes,yes,,yes,full,one seed; not run yet: x-seed2.jsonl'
check "at the end: nor where the others are not compared yet" ends_with '0 reproduced, 0 disagree, 0 skipped, 0 failed, 1 agree so far' \
    'all of 1 comparisons agree, in the runs that there are, which are not all' 'a,b,,1,s,1,real,measured,equal,yes,yes,,yes,full,' 'a,b,,1,s,,real,measured,none,n/a,n/a,,no,full,not run yet: x.jsonl'
check "at the end: what disagrees, too" ends_with '0 reproduced, 1 disagree, 0 skipped, 0 failed' \
    'oktopk-table2: 1 of 1 comparisons do not agree, in the first 6 of 140 epochs (' 'a,b,,1,s,2,real,measured,equal,no,no,,yes,first 6 of 140 epochs,'
check "at the end: self-checks" ends_with '0 reproduced, 0 disagree, 0 skipped, 0 failed, 1 without a comparison' 'oktopk-table2: 1 of 2 self-checks hold' \
    'a,b,,1,s,2,real,self,equal,no,no,,no,full,' 'a,b,,1,s,1,real,self,equal,yes,yes,,no,full,'

# -- the artifact appendix ---------------------------------------------------------------------------------------------------
mkdir "$T/docs"
cp docs/ARTIFACT.md "$T/docs/"
sed -i "s|^runs: .*|runs: $(. scripts/reproduce/pages.sh && head_of gtopk-table4 runs)|" "$F/gtopk-table4/about.txt"
check "of other results the appendix says other numbers" sh -c "! sh '$T/scripts/artifact.sh' --check 2> /dev/null && sh '$T/scripts/artifact.sh' && sh '$T/scripts/artifact.sh' --check"
check "beside what is expected stands what ours was" has "$T/docs/ARTIFACT.md" \
    '- Ours was: VGG-16, gtopk over dense: 5 x (paper: 5); VGG-16, gtopk over topka: 2 x (paper: 5). **No full agreement:** 1 of 2 comparisons agree.' \
    '**Agreement so far:** the one comparison agrees (first 6 of 140 epochs). 1 comparison is to come. 1 row is not compared. (2026-01-01, commit abc123)' '- Ours was: nothing that is kept' \
    'Nothing here is compared with the paper. 1 self-check stands apart. (2026-01-01, commit abc123)' \
    'Ours was (of an earlier configuration: r): VGG-16, parameters: '
finish
