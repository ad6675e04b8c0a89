#!/bin/sh
# cli_predict.sh: the verb predict: the papers' cost lines as numbers, worked out here once more; the stretches of P in
# which one is faster; measured rows beside predicted ones; every mistake: one line, exit status 2.
. tests/tap.sh

# seconds NET P ALGO: of the last table in $W/out
seconds() { awk -v p="$1" -v algo="$2" '$1 == p && $2 == algo { print $5 }' "$W/out"; }

# -- the table -------------------------------------------------------------------------------------------------------
start 1 predict --net 1gbe --p 4,16,32
check "predict exits with 0" [ $? -eq 0 ]
# alpha = 0.436 ms, beta = 36 ns a word, k = 25000
check "dense at P = 4: 4 alpha + 2n 3/4 beta" [ "$(seconds 4 dense)" = 1.351744 ]
check "topka at P = 4: 2 alpha + 2k 3 beta" [ "$(seconds 4 topka)" = 0.006272 ]
check "gtopk at P = 16: 8 alpha + 16 k beta" [ "$(seconds 16 gtopk)" = 0.017888 ]
check "topka at P = 32: 5 alpha + 62 k beta" [ "$(seconds 32 topka)" = 0.057980 ]
fastest_marked() {
    awk '$NF == "fastest" { best[$1] = $5; marks++ } $1 ~ /^[0-9]+$/ && NF > 4 && !/drift/ { if (!($1 in least) || $5 < least[$1]) least[$1] = $5 }
         END { for (p in least) if (best[p] != least[p]) exit 1; exit marks != 3 }' "$W/out"
}
check "the fastest is marked at each P" fastest_marked
rows_of_list() {
    "$PROGRAM" list | awk '/^[A-Z]/ { inside = /^(Algorithms|Exchanges|Gradient)/ } inside && /^  [a-z]/ { print $1 }' > "$W/names"
    [ -s "$W/names" ] || return 1
    while read -r name; do [ -n "$(seconds 16 "$name")" ] || return 1; done < "$W/names"
}
check "every algorithm is in the table" rows_of_list
start 1 predict --net 1gbe --p 1 --n 1000
all_free() { awk '$1 == 1 && $5 == 0 { free++ } $1 == 1 && $5 != 0 { free = -1000 } END { exit free < 2 }' "$W/out"; }
check "one rank costs nothing" all_free
start 1 predict --net 10gbe --n 100,2000000 --density 0.5,0.01,1e-9 --p 3 --compute 0.25
check "lists of n and density: a table for each" [ "$(grep -c '^n ' "$W/out")" -eq 6 ]
check "k is at least 1" grep -q '^n 100, density 1e-09, k 1$' "$W/out"
start 1 predict --net 1gbe --n 25000000 --density 0.0003 --p 4
check "k is that of a run: 0.0003 of 25 million is 7500, not 7499" grep -q '^n 25000000, density 0.0003, k 7500$' "$W/out"
start 1 predict --net aries --p 8,16 --ranks-per-node 4
in_nodes() { awk '$1 == 16 && $2 == "torus2d" { exit !($3 == 4 && $5 > 0 && $6 > 0) }' "$W/out"; }
check "torus2d with nodes of 4: between 4 nodes 4 alpha, and something inside" in_nodes

# -- where one overtakes the other -----------------------------------------------------------------------------------
crossing=$(awk 'BEGIN {
    for (P = 2; P <= 4096; P++) {
        for (log_p = 0; 2 ^ log_p < P; log_p++);
        gtopk = 2 * log_p * 436e-6 + 4 * 25000 * log_p * 36e-9
        topka = log_p * 436e-6 + 2 * 25000 * (P - 1) * 36e-9
        if (gtopk < topka && !from) from = P
        if (gtopk >= topka && from) { print from (from < P - 1 ? " to " P - 1 : ","); exit }
    }
    print from " to 4096" }')
start 1 predict --net 1gbe --p 2 --against topka
check "gtopk overtakes topka where the formulas say ($crossing)" grep -q "^  gtopk  *$crossing" "$W/out"
check "nobody overtakes itself" sh -c "! grep -q '^  topka ' '$W/out'"
start 1 predict --net 1gbe --p 2 --against fedavg
check "nothing is faster than nothing" grep -q '^  gtopk  *nowhere$' "$W/out"

# -- JSON ------------------------------------------------------------------------------------------------------------
start 1 predict --net 1gbe --p 4 --json
check "a JSON row" grep -q '"predict":"cost","net":"1gbe","algo":"topka","n":25000000,"k":25000,"ranks":4,"ranks_per_node":1,"alphas":2,"words":150000,"node_alphas":0,"node_words":0,"seconds":0.006272' "$W/out"
json_lines "every line is JSON" "$W/out"
start 3 predict --net 1gbe --p 4 --json
check "under mpirun it speaks once" [ "$(grep -c '"cost".*"topka"' "$W/out")" -eq 1 ]

# -- network files ---------------------------------------------------------------------------------------------------
printf '# mine\nname slow\nalpha 1\nbeta 0\nnode_alpha 0\nnode_beta 0\n' > "$W/net"
start 1 predict --net "$W/net" --p 16
check "a network file" [ "$(seconds 16 gtopk)" = 8.000000 ]

# -- measured rows ---------------------------------------------------------------------------------------------------
cat > "$W/rows" << 'END'
{"bench":"exchange","algo":"topka","n":25000000,"k":25000,"ranks":4,"median_s":0.012544,"note":"a \"b\" {","phases":{"x":[1,{"y":2}],"z":"]}"},"checked":true,"select":null}

{"bench":"select","selector":"exact","n":100,"k":1,"median_s":1}
 { "algo" : "gtopk", "ranks_per_node": 16, "ranks" : 16, "k" : 25000, "n" : 2.5e7, "median_s" : 0.0278880, "select_s": 0.01 }
{}
{"algo":"dense","n":10,"k":10,"ranks":1,"ranks_per_node":1,"median_s":1e-6,"select_s":0}
END
start 1 predict --net 1gbe --rows "$W/rows"
check "rows exit with 0" [ $? -eq 0 ]
# columns ALGO: "measured selection rest predicted ratio" of its line
columns() { awk -v algo="$1" '$1 == algo { print $6, $7, $8, $9, $10 }' "$W/out"; }
check "measured twice the prediction: ratio 2" [ "$(columns topka)" = "12.544 - 12.544 6.272 2" ]
check "selection is taken off first: ratio 1" [ "$(columns gtopk)" = "27.888 10.000 17.888 17.888 1" ]
check "no ratio where nothing is predicted" [ "$(columns dense)" = "0.001 0.000 0.001 0.000 -" ]
check "lines of other benches are counted" grep -q '^2 lines without an algorithm' "$W/out"
start 1 predict --net 1gbe --rows "$W/rows" --json
check "rows as JSON" grep -q '"algo":"gtopk","n":25000000,"k":25000,"ranks":16,"ranks_per_node":16,"median_s":0.027888,"select_s":0.01,.*"ratio":1' "$W/out"

start 2 bench --algo dense,gtopk --n 1000:1000:2 --density 0.01 --json
cp "$W/out" "$W/measured"
start 1 predict --net 1gbe --rows "$W/measured"
check "rows that bench really writes" [ "$(awk '$1 == "dense" || $1 == "gtopk" { print $1, $2, $3, $4 }' "$W/out" | tr '\n' ' ')" = "dense 1000 10 2 gtopk 1000 10 2 " ]

# -- mistakes --------------------------------------------------------------------------------------------------------
# wrong NAME TEXT ARGS...: status 2, nothing but one line on stderr, which has TEXT in it
wrong() {
    wrong_name=$1 wrong_text=$2
    shift 2
    check "$wrong_name" mistaken_alone "$wrong_text" predict "$@"
}
wrong "no network" "--net is needed"
wrong "an unknown network" "there is no network 1gb: known are 1gbe, 10gbe, 25gbe, 100gbe, aries" --net 1gb
printf 'alpha 1\nbeta -1\nnode_alpha 0\nnode_beta 0\n' > "$W/bad"
wrong "a network file with a negative value" "bad:2: beta -1" --net "$W/bad"
printf 'alpha 1\nnode_alpha 0\nnode_beta 0\n' > "$W/bad"
wrong "a network file with a missing value" "beta is missing" --net "$W/bad"
wrong "a folder for a network" "$W" --net "$W"
wrong "P = 0" "--p 4,0" --net 1gbe --p 4,0
wrong "half a rank" "--p 2.5" --net 1gbe --p 2.5
wrong "no number" "--p x" --net 1gbe --p x
wrong "a comma at the end" "--p 2," --net 1gbe --p 2,
wrong "density 0" "--density" --net 1gbe --density 0.1,0
wrong "density above 1" "--density 1.01" --net 1gbe --density 1.01
wrong "a negative density" "--density -0.1" --net 1gbe --density -0.1
wrong "density NaN" "--density nan" --net 1gbe --density nan
wrong "n = 0" "--n 0" --net 1gbe --n 0
wrong "n = 2^32" "--n 4294967296" --net 1gbe --n 4294967296
wrong "ranks a node that do not divide P" "--ranks-per-node 3 does not divide 8 ranks" --net 1gbe --p 6,8 --ranks-per-node 3
wrong "two ranks-per-node" "one number" --net 1gbe --ranks-per-node 1,2
wrong "ranks-per-node 0" "--ranks-per-node 0" --net 1gbe --ranks-per-node 0
wrong "negative computing time" "--compute -1" --net 1gbe --compute -1
wrong "an unknown algorithm" "no algorithm nosuch" --net 1gbe --against nosuch
wrong "an option without its value" "--p needs a value" --net 1gbe --p
wrong "an unknown option" "unknown option --ranks" --net 1gbe --ranks 4
wrong "rows and P" "leave out" --net 1gbe --rows "$W/rows" --p 4
wrong "rows that are not there" "$W/none" --net 1gbe --rows "$W/none"

# bad_row NAME TEXT ROW: the second line of a file of rows
bad_row() {
    { sed -n 1p "$W/rows"; printf '%s\n' "$3"; } > "$W/bad"
    check "$1" bad_line "$2"
}
bad_line() {
    mistaken "$1" 1 predict --net 1gbe --rows "$W/bad" --json && why="not of line 2: $(cat "$W/err")" && grep -q "bad:2: .*$1" "$W/err"
}
good='"n":100,"k":10,"ranks":4,"median_s":1'
bad_row "a row that is no JSON" "no JSON object" "      2  dense"
bad_row "a row cut off" "no JSON object" "{\"algo\":\"topka\",\"n\":100"
bad_row "a row with a string that does not end" "no JSON object" "{\"algo\":\"topka"
bad_row "a row with brackets that do not match" "no JSON object" "{\"algo\":\"topka\",$good,\"x\":[1}}"
bad_row "two objects on a line" "no JSON object" "{\"algo\":\"topka\",$good}{}"
bad_row "a number in quotes is none" "no number \"n\"" "{\"algo\":\"topka\",\"n\":\"100\",\"k\":10,\"ranks\":4,\"median_s\":1}"
bad_row "n twice" "no JSON object" "{\"algo\":\"topka\",\"n\":5,$good}"
bad_row "a row without a time" "no number \"median_s\"" '{"algo":"topka","n":100,"k":10,"ranks":4}'
bad_row "an unknown algorithm in a row" "no algorithm \"x\"" "{\"algo\":\"x\",$good}"
bad_row "k above n" "k = 101" '{"algo":"topka","n":100,"k":101,"ranks":4,"median_s":1}'
bad_row "no ranks" "0 ranks" '{"algo":"topka","n":100,"k":10,"ranks":0,"median_s":1}'
bad_row "ranks per node that do not divide" "4 ranks, 3 on a node" "{\"algo\":\"topka\",$good,\"ranks_per_node\":3}"
bad_row "a negative time" "positive" '{"algo":"topka","n":100,"k":10,"ranks":4,"median_s":-1}'
: > "$W/bad"
wrong "an empty file of rows" "no row" --net 1gbe --rows "$W/bad" --json
finish
