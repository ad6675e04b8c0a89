#!/bin/sh
# cli_predict.sh: the verb predict: the papers' cost lines as numbers, worked out here once more; the stretches of P in
# which one is faster; measured rows beside predicted ones; every mistake: one line, exit status 2.
. tests/lib/tap.sh

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
    awk '$NF == "fastest" { best[$1] = $5; marks++ } $1 ~ /^[0-9]+$/ && (NF == 5 || $NF == "fastest") { if (!($1 in least) || $5 < least[$1]) least[$1] = $5 }
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
start 1 predict --net 1gbe --p 5000 --ranks-per-node 5000
check "nodes of more ranks than are searched: no search" sh -c "grep -q '^n 25000000' '$W/out' && ! grep -q '^fastest of' '$W/out'"

# -- JSON ------------------------------------------------------------------------------------------------------------
start 1 predict --net 1gbe --p 4 --json
check "the network comes first" sh -c "head -n 1 '$W/out' | grep -q '^{\"predict\":\"network\",\"net\":\"1gbe\",\"alpha\":0.000436,\"beta\":3.6e-08,\"node_alpha\":1e-06,\"node_beta\":2e-10,\"source\":\"measured'"
check "a JSON row" grep -q '"predict":"cost","net":"1gbe","algo":"topka","n":25000000,"k":25000,"ranks":4,"ranks_per_node":1,"alphas":2,"words":150000,"node_alphas":0,"node_words":0,"seconds":0.006272' "$W/out"
json_lines "every line is JSON" "$W/out"
start 3 predict --net 1gbe --p 4 --json
check "under mpirun it speaks once" [ "$(grep -c '"cost".*"topka"' "$W/out")" -eq 1 ]

# -- wire formats ----------------------------------------------------------------------------------------------------
start 1 predict --net 1gbe --p 4,16 --wire packed
# format P ALGO, words P ALGO: of a table with the column of formats
format() { awk -v p="$1" -v algo="$2" '$1 == p && $2 == algo { print $3 }' "$W/out"; }
words() { awk -v p="$1" -v algo="$2" '$1 == p && $2 == algo { print $5 }' "$W/out"; }
check "--wire: who takes it" [ "$(format 16 gtopk) $(format 16 micro) $(format 16 dense)" = "packed packed -" ]
check "--wire: micro's indices and values apart, 11.4 bits and twice 16" awk -v words="$(words 16 micro)" 'BEGIN { packed = 25000 * 15 / 16 * 43.4 / 32; exit !(words > packed && words < 1.03 * packed) }'
# about 28 bits an entry: the entropy of its index, 11.4 bits, and 16 of the value
fewer() { awk -v words="$(words 16 gtopk)" -v bits="$1" 'BEGIN { packed = 400000 / 64 * bits; exit !(words > packed && words < 1.02 * packed) }'; }
check "--wire packed: gtopk's 16 k words become 28 bits an entry" fewer 27.5
start 1 predict --net 1gbe --p 16 --wire packed --json
check "--wire in JSON" grep -q '"algo":"gtopk",.*"wire":"packed"}$' "$W/out"
check "who drifts is not ranked" [ "$(grep -c '"algo":"fedavg".*"ranked":false' "$W/out") $(grep -c '"algo":"gtopk",.*"ranked":true' "$W/out")" = "1 1" ]
start 1 predict --net 1gbe --n 269722 --p 4 --wire all
check "--wire all: each in its fastest format" [ "$(format 4 topka) $(format 4 spardl)" = "bf16 packed" ]

# The model against what really passes: words a step of bench, in coo32 and packed, and of predict.
# sent ALGO: the mean that a rank sent, from rows of bench
sent() { sed -n "s/.*\"algo\":\"$1\".*\"words_sent_mean\":\([0-9.]*\).*/\1/p" "$W/out"; }
# predicted ALGO WIRE: words of a row of predict --best
predicted() { sed -n "s/.*\"algo\":\"$1\",\"wire\":\"$2\".*\"words\":\([0-9.e+]*\),.*/\1/p" "$W/out"; }
for P in 2 4; do
    start "$P" bench --algo topka,gtopk-rd,spardl --select exact --n 300000:300000:2 --density 0.01 --wire packed --repeat 4 --json
    for algo in topka gtopk-rd spardl; do sent $algo > "$W/sent-$algo"; done
    start 1 predict --best --costs none --net 1gbe --p "$P" --n 300000 --density 0.01 --json
    for algo in topka gtopk-rd spardl; do
        check "$algo packed on $P ranks: words within 3% of the model" awk -v a="$(cat "$W/sent-$algo")" -v b="$(predicted $algo packed)" \
            'BEGIN { exit !(a > 0 && b > 0 && a / b > 0.97 && a / b < 1.03) }'
    done
done

# -- the best --------------------------------------------------------------------------------------------------------
start 1 predict --best --costs none --net 1gbe --n 14728266 --p 32 --compute 0.097
check "--best exits with 0" [ $? -eq 0 ]
# place N: its algorithm and format
place() { awk -v place="$1" '$1 == place && NF > 5 { print $2, $3 }' "$W/out"; }
# ahead ALGO FORMAT ALGO FORMAT: the first one is before the second one in the ranking
ahead() { awk -v a="$1 $2" -v b="$3 $4" '$2 " " $3 == a && !second { first = 1 } $2 " " $3 == b { second = 1 } END { exit !(first && second) }' "$W/out"; }
check "--best: half the rounds and packed before all other formats" ahead gtopk-rd packed spardl packed
check "--best: marked once" [ "$(grep -c ' best$' "$W/out")" -eq 1 ]
in_order() { awk '$1 ~ /^[0-9]+$/ && NF > 5 { if ($6 + 0 < last + 0 || $1 != ++rows) { rows = -1; exit } last = $6 } END { print rows + 0 }' "$W/out"; }
check "--best: every row that can be compared, the fastest first" [ "$(in_order)" = "$(ranked_rows)" ]
check "--best: who drifts has no place" grep -q '^ *-  fedavg .*replicas drift$' "$W/out"
check "--best --compute: efficiency" grep -q '^ *[0-9]*  dense .* 1.031657 *1.128657 *8.6%$' "$W/out"
start 1 predict --best --costs none --wire coo32 --net 1gbe --n 14728266 --p 32
check "--best --wire: only that format" [ "$(grep -c packed "$W/out")" -eq 0 ]
check "--best --wire: another order" ahead spardl coo32 gtopk-rd coo32
winners=
for P in 2 4 32; do
    start 1 predict --best --costs none --net 1gbe --n 14728266 --p $P
    winners="$winners$P $(place 1);"
done
start 1 predict --best --costs none --net 1gbe --n 14728266 --p 2,4,32
check "--best: of several P the winner of each" [ "$(awk '$1 ~ /^[0-9]+$/ { printf "%s %s %s;", $1, $2, $3 }' "$W/out")" = "$winners" ]
start 1 predict --best --costs none --net 1gbe --n 14728266 --p 4,32 --json
check "--best: JSON of the winners" [ "$(grep -c '"predict":"best".*"place":1,.*"best":true,"next_algo":' "$W/out")" -eq 2 ]
json_lines "--best: every line is JSON" "$W/out"
start 1 predict --best --costs none --net 1gbe --n 14728266 --p 32 --json
# One a row that cannot be compared, and two where it has a form in 16 bits besides.
apart=$(names_of EXCHANGE comm/algorithms/exchanges.def | while read -r algo; do if stands_apart "$algo"; then echo "$algo"; if row_says "$algo" halves; then echo bf16 fp16 | tr ' ' '\n'; fi; fi; done | grep -c .)
check "--best: JSON of all" [ "$(grep -c '"place":[0-9]' "$W/out") $(grep -c '"place":null' "$W/out") $(grep -c '"best":true' "$W/out")" = "$(ranked_rows) $apart 1" ]

# What local work takes: of a table, on a network that takes no time.
printf 'alpha 0\nbeta 0\nnode_alpha 0\nnode_beta 0\n' > "$W/free"
{
    echo '# here cores: 2'
    echo model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source
    echo mine,1000000,here,select,,exact,,0.01,,,0.5,,a test
    echo mine,1000000,here,select,micro,,,0.01,,,0.25,,a test
    echo mine,1000000,here,word,gtopk-rd,exact,coo32,0.01,,2,1e-5,,a test
    echo mine,1000000,here,word,gtopk-rd,exact,coo32,0.01,,4,9e-5,,more ranks than cores
    echo mine,1000000,here,word,gtopk-rd,exact,packed,0.01,,2,1e-4,,a test
    echo mine,1000000,here,word,micro,,coo32,0.01,,2,1e-6,,a test
    echo mine,1000000,here,word,dense,,,,,,0,,a test
} > "$W/costs"
table="--best --net $W/free --costs $W/costs --device here --n 1000000"
# shellcheck disable=SC2086 # a list of options
start 1 predict $table --density 1e-2 --p 4
check "--costs: of a table, the fastest first" [ "$(awk '$1 ~ /^[0-9]$/ && NF > 5 { print $2, $3, $7 }' "$W/out" | paste -s -d ' ' -)" = "dense - 0.000000 micro coo32 0.272500 gtopk-rd coo32 0.900000 gtopk-rd packed 2.019144" ]
# shellcheck disable=SC2016 # a program for awk
check "--costs: selection and so much a word" awk '$3 == "packed" { exit !($7 > 0.5 + 1e-4 * $5 - 1e-4 && $7 < 0.5 + 1e-4 * $5 + 1e-4) }' "$W/out"
check "--costs: what it lacks is left out and said" grep -q '^not in it, and left out: .*topka coo32' "$W/out"
check "--costs: where from" grep -q "^local work: of $W/costs, mine on here\$" "$W/out"
{ cat "$W/costs" && echo mine,1000000,here,sum,,,,,,,2e-9,,a test; } > "$W/adding"
# shellcheck disable=SC2046
start 1 predict $(echo "$table" | sed "s|$W/costs|$W/adding|") --density 1e-2 --p 4
check "--costs: what a dense sum adds" [ "$(awk '$2 == "dense" { print $7 }' "$W/out")" = 0.001500 ]
grep -v -e ,dense, -e ,micro, "$W/costs" > "$W/few-costs"
for p in 4 4,8; do
    check "--costs: a table that has nothing for a format, P = $p" mistaken_alone "the table $W/few-costs has no algorithm in bf16 that can be compared" \
        predict --best --net "$W/free" --costs "$W/few-costs" --device here --n 1000000 --density 0.01 --p $p --wire bf16
done
# A table may be anybody's: times that are none are not there.
for bad in nan inf -1 1e999 '' x; do
    sed "s/^mine,1000000,here,word,gtopk-rd,exact,packed,0.01,,2,1e-4/mine,1000000,here,word,gtopk-rd,exact,packed,0.01,,2,$bad/" "$W/costs" > "$W/bad-costs"
    start 1 predict --best --net "$W/free" --costs "$W/bad-costs" --device here --n 1000000 --density 0.01 --p 4
    check "--costs: a time of \"$bad\" is none" [ "$(awk '$1 ~ /^[0-9]$/ && NF > 5 { print $2, $3 }' "$W/out" | paste -s -d ' ' -)" = "dense - micro coo32 gtopk-rd coo32" ]
    check "--costs: and is said to be missing" grep -q '^not in it, and left out: .*gtopk-rd packed' "$W/out"
done
{
    cat "$W/costs"
    head -c 600 /dev/zero | tr '\0' x
} > "$W/bad-costs"
check "--costs: a line without an end" mistaken_alone "bad-costs:$(($(wc -l < "$W/costs") + 1)): the line has more than 510 characters" predict --best --net "$W/free" --costs "$W/bad-costs" --device here --n 1000000 --density 0.01 --p 4
# shellcheck disable=SC2086
start 1 predict $table --density 0.01 --p 4 --json
check "--costs in JSON" grep -q '"algo":"gtopk-rd","wire":"coo32",.*"seconds":0.9,"local_s":0.9,' "$W/out"
json_lines "--costs: every line is JSON" "$W/out"
# ... and as measured here: more than nothing, the most words the most
start 1 predict --best --net "$W/free" --n 100000 --density 0.01 --p 8 --json
check "--best: local work is measured here and charged" grep -q '"predict":"costs","from":"measured","device":"[^"]*","selectors":\[{"select":"exact","entry_s":[0-9]' "$W/out"
charged() { sed -n "s/.*\"algo\":\"$1\",\"wire\":${2:-\"coo32\"},.*\"seconds\":\([^,]*\),\"local_s\":\([^,]*\),.*/\1 \2/p" "$W/out" | head -n 1; }
check "--best: on a network that takes no time it is all of the step" awk -v topka="$(charged topka)" -v rd="$(charged gtopk-rd)" \
    'BEGIN { split(topka, a, " "); split(rd, b, " "); exit !(a[1] > 0 && a[1] == a[2] && b[1] > 0 && b[1] == b[2]) }'
adds=$("$PROGRAM" rows "$W/out" --where predict=costs --keys sum_value_s)
check "--best: dense is charged what it adds" awk -v dense="$(charged dense null)" -v adds="$adds" 'BEGIN { split(dense, d, " "); off = d[2] / (87500 * adds) - 1; exit !(adds > 0 && d[1] == d[2] && off < 1e-9 && off > -1e-9) }'
start 1 predict --best --net 1gbe --n 100000 --density 0.01 --p 8 --json
check "--best: which a slow network hides" [ "$(charged dense null | cut -d ' ' -f 2)" = 0 ]
start 1 predict --best --net "$W/free" --n 100000 --density 0.01 --p 8 --json
check "--best: all are ranked" [ "$(grep -c '"predict":"best"' "$W/out")" -eq $(($(ranked_rows) + apart)) ]
json_lines "--best, measured: every line is JSON" "$W/out"

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
{ sed -n 1p "$W/rows" | sed 's/"note"/"wire":"packed","note"/'; } > "$W/packed"
start 1 predict --net 1gbe --rows "$W/packed"
check "rows in another format are predicted in it" [ "$(columns topka | awk '{ print ($4 > 4 && $4 < 4.2) }')" = 1 ]
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
printf 'alpha 1\nbeta 1\0005\nnode_alpha 0\nnode_beta 0\n' > "$W/bad"
wrong "a network file with a zero byte" "bad:2: there is a zero byte in the line" --net "$W/bad"
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
wrong "two ranks-per-node" "wants a number" --net 1gbe --ranks-per-node 1,2
wrong "ranks-per-node 0" "--ranks-per-node 0" --net 1gbe --ranks-per-node 0
wrong "negative computing time" "--compute -1" --net 1gbe --compute -1
wrong "an unknown algorithm" '--against has no "nosuch"; there are: dense' --net 1gbe --against nosuch
wrong "an option without its value" "--p wants a value" --net 1gbe --p
wrong "an unknown option" "there is no option --ranks" --net 1gbe --ranks 4
wrong "rows and P" "leave out" --net 1gbe --rows "$W/rows" --p 4
wrong "an unknown format" '--wire has no "nosuch"; there are: coo32' --net 1gbe --wire nosuch
wrong "rows and a format" "leave out --wire" --net 1gbe --rows "$W/rows" --wire packed
wrong "rows and the best" "leave out --best" --net 1gbe --rows "$W/rows" --best
wrong "the best against one" "leave out --against" --net 1gbe --best --against topka
wrong "costs of nothing" "it needs --best" --net 1gbe --costs none
wrong "a device of nothing" "it needs --best" --net 1gbe --device cpu
wrong "no table" "cannot open $W/nothing" --net 1gbe --best --costs "$W/nothing"
wrong "no table at all" "is no table of measure-costs.sh" --net 1gbe --best --costs "$W/free"
wrong "a device that the table has not" "has no device cpu; it has: here" --net 1gbe --best --costs "$W/costs"
wrong "a length that the table has not" "it has: mine (1000000) (--n)" --net 1gbe --best --costs "$W/costs" --device here --n 1000
wrong "a density that the table has not" "it has: 0.01 (--density)" --net 1gbe --best --costs "$W/costs" --device here --n 1000000 --density 0.1
wrong "no such device to measure on" "has no \"nosuch\"; there are: auto, cpu" --net 1gbe --best --device nosuch
wrong "rows that are not there" "$W/none" --net 1gbe --rows "$W/none"

# predicted ROW-MEMBERS...: of a row with these
predicted() {
    printf '{"n":100000000,"k":1000,"median_s":1,%s}\n' "$1" > "$W/one"
    start 1 predict --net 1gbe --rows "$W/one" --json
    sed -n 's/.*"predicted_s":\([^,}]*\)[,}].*/\1/p' "$W/out"
}
p_of() { awk -v a="$(predicted "$1")" -v b="$(predicted "$2")" 'BEGIN { printf "%.3f\n", a / b }'; }
check "unequal nodes are taken for one rank each" [ "$(p_of '"algo":"gtopk","ranks":3,"ranks_per_node":2' '"algo":"gtopk","ranks":3')" = 1.000 ]
check "an algorithm's options: four times the rank of powersgd" \
    [ "$(p_of '"algo":"powersgd","ranks":4,"powersgd_rank":"8"' '"algo":"powersgd","ranks":4' | awk '{ print ($1 > 2 && $1 < 4) }')" = 1 ]
check "16 times the coefficients of demo" \
    [ "$(p_of '"algo":"demo","ranks":2,"demo_k":"512"' '"algo":"demo","ranks":2' | awk '{ print ($1 > 8 && $1 <= 16) }')" = 1 ]
check "a scaled simulation: fewer entries that take as many times longer" \
    [ "$(p_of '"algo":"dense","ranks":256,"scale":10' '"algo":"dense","ranks":256' | awk '{ print ($1 > 1.2 && $1 <= 10) }')" = 1 ]

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
bad_row "an unknown format in a row" "no wire format \"x\"" "{\"algo\":\"topka\",\"wire\":\"x\",$good}"
bad_row "k above n" "k = 101" '{"algo":"topka","n":100,"k":101,"ranks":4,"median_s":1}'
bad_row "no ranks" "0 ranks" '{"algo":"topka","n":100,"k":10,"ranks":0,"median_s":1}'
bad_row "more ranks on a node than there are" "4 ranks, 5 on a node" "{\"algo\":\"topka\",$good,\"ranks_per_node\":5}"
bad_row "a scale below 1" "a scale of 0.5" "{\"algo\":\"topka\",$good,\"scale\":0.5}"
bad_row "an option's value that is none" "no JSON object" "{\"algo\":\"powersgd\",$good,\"powersgd_rank\":\"many\"}"
bad_row "a negative time" "negative" '{"algo":"topka","n":100,"k":10,"ranks":4,"median_s":-1}'
{ sed -n 1p "$W/rows"; printf '{"algo":"topka",%s}\000x\n' "$good"; } > "$W/bad"
check "a row with a zero byte" bad_line "there is a zero byte in the line"
printf '\000\n' > "$W/bad"
wrong "a zero byte is no blank" "bad:1: there is a zero byte in the line" --net 1gbe --rows "$W/bad" --json
: > "$W/bad"
wrong "an empty file of rows" "no row" --net 1gbe --rows "$W/bad" --json
finish
