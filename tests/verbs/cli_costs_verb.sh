#!/bin/sh
# cli_costs_verb.sh: the verb costs: a table of measured times as rows, of one algorithm and of all; every mistake: one line,
# exit status 2, and no row. Which rows of the table answer is tests/cli/cli_cost_table.c's.
# quick: a second
. tests/lib/tap.sh
{
    echo '# here cores: 2'
    echo model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source
    echo mine,1000000,here,compute,,,,,16,,0.25,64,a test
    echo mine,1000000,here,select,,exact,,0.01,,,0.5,,a test
    echo mine,1000000,here,select,micro,,,0.01,,,0.25,,a test
    echo mine,1000000,here,word,gtopk,exact,coo32,0.01,,2,1e-5,,a test
    echo mine,1000000,here,word,gtopk,exact,packed,0.01,,2,2e-5,,a test
    echo mine,1000000,here,word,micro,,coo32,0.01,,2,1e-6,,a test
    echo mine,1000000,here,word,dense,,,,,,0,,a test
    echo mine,1000000,here,sum,,,,,,,4e-10,,a test
    echo mine,1000000,here,word,qsgd,,,,,2,3e-9,,a test
    echo mine,1000000,here,select,onebit,,,,,1,0.125,,a test
    echo mine,1000000,here,word,onebit,,,,,2,0,,a test
    echo mine,1000000,p102-100,compute,,,,,,,,,results/published/gtopk-single-gpu.csv model=VGG-16
} > "$W/table"
of_mine="costs $W/table --model mine --device here --density 1e-2"
# row ALGO: n and the three times of its row of JSON
row() { "$PROGRAM" rows "$W/out" --where "algo=$1" --keys n,compute_s,select_s,word_s --missing - | tr '\t' ' '; }
sum_of() { "$PROGRAM" rows "$W/out" --where "algo=$1" --keys sum_s --missing -; }

# shellcheck disable=SC2086 # a list of options
start 1 $of_mine --json
check "costs exits with 0" [ $? -eq 0 ]
check "a row for each algorithm of the table, in the order of the program" [ "$("$PROGRAM" rows "$W/out" --keys algo | paste -s -d ' ' -)" = "dense gtopk micro qsgd onebit" ]
check "computing, selection, a word" [ "$(row gtopk)" = "1000000 0.25 0.5 1e-05" ]
check "who selects in a way of its own" [ "$(row micro)" = "1000000 0.25 0.25 1e-06" ]
check "what codes every entry itself is charged its words" [ "$(row qsgd)" = "1000000 0.25 0 3e-09" ]
check "and what that takes whatever comes in" [ "$(row onebit)" = "1000000 0.25 0.125 0" ]
check "a dense sum is charged no selection and no words" [ "$(row dense)" = "1000000 0.25 - -" ]
check "but what it adds, and nothing else is" [ "$(sum_of dense) $(sum_of gtopk) $(sum_of qsgd)" = "4e-10 - -" ]
json_lines "every line is JSON" "$W/out"
sed '/,sum,/d' "$W/table" > "$W/older"
start 1 costs "$W/older" --model mine --device here --density 0.01 --algo dense --json
check "an older table does not say so" [ $? -eq 0 ]
check "and charges nothing" [ "$(row dense) $(sum_of dense)" = "1000000 0.25 - - -" ]
# shellcheck disable=SC2086
start 1 $of_mine --algo gtopk --wire packed --compute-device p102-100
check "as a table: milliseconds, and nanoseconds a word" [ "$(awk '$1 == "gtopk" { print $2, $3, $4, $5 }' "$W/out")" = "exact 97 500 2e+04" ]
check "of what it is" grep -q '^mine on here: 1000000 entries, density 0.01, packed; computing on p102-100$' "$W/out"
# shellcheck disable=SC2086
start 1 $of_mine --algo gtopk,dense --times word --json
check "some of the times" [ "$(sum_of dense)" = - ]
check "and no others" [ "$(row gtopk) $(row dense)" = "1000000 - - 1e-05 1000000 - - -" ]
mkdir -p "$W/tree/results/published"
printf 'model,iteration_s\nVGG-16,7\n' > "$W/tree/results/published/gtopk-single-gpu.csv"
# shellcheck disable=SC2086
start 1 $of_mine --algo gtopk --compute-device p102-100 --tree "$W/tree" --json
check "published times of another tree" [ "$(row gtopk)" = "1000000 7 0.5 1e-05" ]

# wrong NAME TEXT ARGS...: one line, and nothing on standard output
wrong() {
    wrong_name=$1 wrong_text=$2
    shift 2
    check "$wrong_name" silent mistaken_alone "$wrong_text" "$@"
}
wrong "no table" "a table is needed" costs --model mine
wrong "two tables" "one table at a time" costs "$W/table" "$W/table" --model mine
wrong "no model" "--model is needed" costs "$W/table"
wrong "a table that is not there" "cannot open $W/nothing" costs "$W/nothing" --model mine
wrong "a file that is no table" "is no table of measure-costs.sh" costs README.md --model mine
sed 's/,1e-6,/,1e-6@9,/' "$W/table" | tr '@' '\000' > "$W/bad"
wrong "a zero byte in a number" "bad:8: there is a zero byte in the line" costs "$W/bad" --model mine --device here --density 0.01
wrong "an unknown algorithm" "there are: dense, " costs "$W/table" --model mine --device here --algo nosuch
wrong "an unknown time" "some of compute, select, word, sum" costs "$W/table" --model mine --device here --times nosuch
wrong "a density above 1" "--density" costs "$W/table" --model mine --device here --density 2
wrong "a model that it lacks" "has no model other; it has: mine" costs "$W/table" --model other --device here
wrong "a device that it lacks" "has no device cpu for mine; it has: here, p102-100" costs "$W/table" --model mine
wrong "one that computed alone: all" "has no row word for mine on p102-100; it has: compute" costs "$W/table" --model mine --device p102-100 --density 0.01
# shellcheck disable=SC2086
{
    wrong "one of several that it lacks: no row of the others" "has no algorithm oktopk for mine on here; it has: gtopk, micro, dense" $of_mine --algo gtopk,oktopk
    wrong "a format that it lacks" "has no wire format packed-f32 of gtopk for mine on here; it has: coo32, packed" $of_mine --algo gtopk --wire packed-f32
    wrong "a selector that it lacks" "has no selector dgc for mine on here; it has: exact" $of_mine --algo gtopk --select dgc
    wrong "published times that are not there" "cannot open $W/results/published/gtopk-single-gpu.csv" $of_mine --algo gtopk --compute-device p102-100 --tree "$W"
}
check "under mpirun it speaks once" sh -c "[ \$(\"\$0\" -np 2 '$PROGRAM' $of_mine --algo gtopk --json 2> /dev/null | grep -c gtopk) -eq 1 ]" "$MPIRUN"
finish
