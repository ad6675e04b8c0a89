#!/bin/sh
# cli_costs.sh: scripts/measure-costs.sh in quick mode: what rows its table has and where their numbers come from, what an
# interruption leaves, rows of other devices, jobs that fail, every mistake. What a time is, nobody asks here.
. tests/lib/tap.sh
note_launches
table=$W/out/costs.csv
# measured ARG...: measure-costs.sh in quick mode; its status
measured() {
    BUILD=$BUILD timeout -k 10 300 sh scripts/measure-costs.sh --quick --out "$table" --jobs "$W/jobs" --density 0.01 --ranks 2 "$@" > "$W/out.txt" 2> "$W/err" < /dev/null
}
# rows COLUMN VALUE...: how many rows of the table are so
rows() {
    awk -F , 'BEGIN { for (i = 1; i < ARGC - 1; i += 2) { want[ARGV[i]] = ARGV[i + 1]; ARGV[i] = ARGV[i + 1] = "" } }
        /^#/ { next }
        !n++ { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { for (name in want) if ($at[name] != want[name]) next; found++ }
        END { print found + 0 }' "$@" "$table"
}

# -- a table, after an interruption ----------------------------------------------------------------------------------------
echo 3 > "$W/stop"
measured --models resnet20,bert --wire coo32
check "interrupted: the status of the signal" [ $? -eq 143 ]
check "and no table" [ ! -e "$table" ]
rm "$W/stop"
measured --models resnet20,bert --wire coo32
check "it goes on where it was" [ "$? $(calls)" = "0 16" ]
check "command, commit, machine, cores and mode" [ "$(grep -cE '^# cpu (command: sh scripts/measure-costs.sh --quick|commit: [0-9a-f]|machine: .|cores: [0-9]|mode: quick)' "$table")" -eq 5 ]
algorithms() {
    for algo in $(names_of EXCHANGE comm/algorithms/exchanges.def); do
        why="no row of $algo"
        [ "$(rows model bert device cpu what word algorithm "$algo")" -eq 1 ] || return 1
    done
}
check "a row of words for each algorithm" algorithms
choices() {
    for selector in $(names_of SELECTOR topk/selectors/selectors.def); do
        why="no row of $selector"
        [ "$(rows model bert device cpu what select selector "$selector" density 0.01)" -eq 1 ] || return 1
    done
}
check "of selection for each selector" choices
check "and of what micro does instead" [ "$(rows what select algorithm micro selector '' ranks 2)" -eq 2 ]
check "and randomk" [ "$(rows what select algorithm randomk selector '' ranks 2)" -eq 2 ]
check "hitopk's words are timed on two nodes" [ "$(rows what word algorithm hitopk ranks 4)" -eq 2 ]
check "and those of what codes every entry itself, whatever the density, once a model" [ "$(rows what word algorithm qsgd wire '' density '' ranks 2)" -eq 2 ]
check "with what it takes where nothing comes in" [ "$(rows what select algorithm qsgd selector '' wire '' density '' ranks 1) $(rows what select algorithm onebit seconds 0)" = "2 0" ]
check "a dense sum is charged no words" [ "$(rows algorithm dense wire '' density '' seconds 0)" -eq 2 ]
check "but adding, once a model" [ "$(rows what sum algorithm '' device cpu)" -eq 2 ]
check "computing: seconds, batch, images a second" [ "$(awk -F , '$1 == "resnet20" && $3 == "cpu" && $4 == "compute" && $9 / $11 / $12 > 0.999 && $9 / $11 / $12 < 1.001' "$table" | wc -l)" -eq 1 ]
check "none of a model that is not in the zoo" [ "$(rows model bert what compute seconds '')" -eq 1 ]
check "published times by reference, not copied" [ "$(rows device p102-100 what compute seconds '') $(grep -c 'p102-100.*,results/published/gtopk-single-gpu.csv model=' "$table")" = "4 4" ]
check "all other times are above 0" [ "$(awk -F , '/^#/ || $1 == "model" || $13 ~ /^(not |results|bench: .the same)/ { next } !($11 > 0) || NF != 13' "$table" | wc -l)" -eq 0 ]
# What stands there follows from the rows of the program.
from_rows() {
    grep '^{' "$W/jobs/renew-bert.jsonl" | "$PROGRAM" rows - --keys median_s,reevaluated_s > "$W/renewed"
    grep '^{' "$W/jobs/words-bert-coo32-p2.jsonl" | "$PROGRAM" rows - --where algo=gtopk --keys phases.pack,phases.merge,words_received_mean > "$W/words"
    why=$(awk -v words="$W/words" -v renewed="$W/renewed" -F , '
        BEGIN {
            while ((getline line < words) > 0) { split(line, x, "\t"); w[++rounds] = (x[1] + x[2]) / x[3] }
            if (rounds != 3) print rounds " rounds"
            most = w[1] > w[2] ? w[1] : w[2]
            least = w[1] > w[2] ? w[2] : w[1]
            word = w[3] > most ? most : w[3] < least ? least : w[3]
            while ((getline line < renewed) > 0) { split(line, x, "\t"); renew = (31 * x[1] + x[2]) / 32 }
        }
        function far(x, y) { return !(x > 0.99999 * y && x < 1.00001 * y) }
        $1 == "bert" && $5 == "gtopk" && far($11, word) { print "gtopk " $11 " " word }
        $1 == "bert" && $6 == "reuse" && $4 == "select" && far($11, renew) { print "reuse " $11 " " renew }
        $1 == "bert" && $5 == "gtopk" { seen++ }
        END { print seen " rows" }' "$table")
    [ "$why" = "1 rows" ]
}
check "numbers are those of the program's rows" from_rows
used() { # by simulate.sh
    why=$("$PROGRAM" costs "$table" --model resnet20 --compute-device p102-100 --algo gtopk --density 1e-2 --json 2>&1 | "$PROGRAM" rows - --keys n,compute_s,select_s,word_s 2>&1)
    echo "$why" | grep -qE '^200000	0\.146	[0-9.e-]+	[0-9.e-]+$'
}
check "simulate.sh can use it, and finds the published time" used

# -- once more, and other devices ------------------------------------------------------------------------------------------
measured --models resnet20,bert --wire coo32
check "once more: no job runs" [ "$? $(calls)" = "0 16" ]
sed 's/^# cpu cores: .*/&\n# cuda cores: 96\n# cuda machine: another/; s/^bert,.*,cpu,word,gtopk,.*/&\nbert,7,cuda,word,gtopk,exact,coo32,0.01,,2,3e-9,,elsewhere/' "$table" > "$W/edited"
cp "$W/edited" "$table"
measured --models bert --wire coo32
check "other devices stay, with their lines" [ "$? $(rows device cuda seconds 3e-9) $(grep -c '^# cuda ' "$table")" = "0 1 2" ]
check "this one is replaced" [ "$(rows model resnet20 device cpu) $(grep -c '^# cpu cores: ' "$table")" = "0 1" ]
measured --models bert --wire coo32,nosuch
check "a job that fails: status 1, with its reason" [ "$? $(grep -c 'there are: coo32, packed' "$W/err")" = "1 2" ]
check "and the rest is there" [ "$(rows model bert wire coo32 algorithm topka) $(rows wire nosuch)" = "1 0" ]

# -- mistakes --------------------------------------------------------------------------------------------------------------
# wrong NAME TEXT ARG...: one line with this text, status 2
wrong() {
    wrong_name=$1 wrong_text=$2
    shift 2
    measured "$@"
    status=$?
    why="status $status: $(head -c 300 "$W/err")"
    check "$wrong_name" sh -c "[ $status -eq 2 ] && [ \$(wc -l < '$W/err') -eq 1 ] && grep -qF -e '$wrong_text' '$W/err'"
}
wrong "an unknown option" "unknown option --fast" --fast 1
wrong "an option without its value" "--wire needs a value" --wire
wrong "a blank in a value" "only, please" --wire "coo32 packed"
wrong "an unknown model" "there is no model alexnet2" --models alexnet2
wrong "an unknown device" "cpu or cuda" --device gpu
wrong "one rank" "from 2 on" --ranks 1
wrong "a profile that is not there" "there is no file" --profile "$W/nothing"
wrong "quick results do not go to results/measured" "which holds full results" --out results/measured/costs/costs.csv
( BUILD=$W/nothing && measured )
check "no program" grep -q 'build it first: make' "$W/err"
if "$PROGRAM" list 2> /dev/null | grep -q '^  cuda  *no '; then
    wrong "a GPU that is not there" "cuda" --device cuda
else
    skip "a GPU that is not there" "there is one"
fi
finish
