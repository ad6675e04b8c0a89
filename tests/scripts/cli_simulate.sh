#!/bin/sh
# cli_simulate.sh: the program on simulated clusters: the networks have the alpha and beta they were given; steps take what
# the algorithms' formulas, worked out here once more, say; injected times are where they belong, also those of a table;
# every rank has variables of its own; every mistake: one line, exit status 2. Simulated times are exact, the same on every
# machine: nothing here depends on how fast this one is.
. tests/lib/tap.sh
name="the program on simulated clusters"
skip_all() {
    skip "$name" "$1"
    finish
    exit
}
[ -z "${SAN:-}" ] || skip_all "not in a build with sanitizers"
command -v smpirun > /dev/null || skip_all "smpirun is not installed (sh scripts/deps.sh sim)"
[ -f "$BUILD/sparsetrain-sim" ] || skip_all "$BUILD/sparsetrain-sim was not built (make sim)"

# simulated ARGS...: simulate.sh; rows to $W/out, the rest to $W/err; its status
simulated() { timeout -k 10 300 sh scripts/simulate.sh "$@" > "$W/out" 2> "$W/err" < /dev/null; }
# value KEY [ALGO]: of the row, or of this algorithm's row
value() { grep "\"algo\":\"${2:-}" "$W/out" | sed -n "s/.*\"$1\":\([^,}]*\)[,}].*/\1/p" | head -n 1; }
# about MEASURED FORMULA: equal to 0.1% (a message carries a few bytes more than its words)
about() {
    why="$1 is not $2"
    [ -n "$1" ] && awk "BEGIN { r = ($1) / ($2); exit !(r > 0.999 && r < 1.001) }"
}

# -- the network -----------------------------------------------------------------------------------------------------------
check "alpha and beta of five networks, between and inside nodes, to 1%" simulated --calibrate
check "fifteen fits" [ "$(grep -c ' alpha .* beta ' "$W/out")" -eq 15 ]
printf 'name slow\nalpha 0.5\nbeta 1e-4\nnode_alpha 0.125\nnode_beta 0\n' > "$W/net"
simulated --net "$W/net" --p 2 --algo gtopk --n 1000 --steps 2 -- --warmup 1
check "options of bench, also one that it would have by itself: as scaling.sh calls it" [ "$? $(value warmup) $(value repeat)" = "0 1 2" ]
simulated --net "$W/net" --p 1,2 --algo dense --n 100000 --steps 1
check "a network of a file, one rank and two: 2 alpha + n beta" about "$(sed 1d "$W/out" | sed 's/.*"median_s":\([^,]*\).*/\1/')" "2 * 0.5 + 100000 * 1e-4"

# -- algorithms, on 1gbe: alpha 436 us, beta 36 ns a word ------------------------------------------------------------------
A=436e-6 B=3.6e-8
for P in 2 4 8; do
    log=$(awk "BEGIN { print log($P) / log(2) }")
    simulated --net 1gbe --p $P --algo dense,topka --n 100000 --density 0.01 --steps 2
    check "dense, P = $P: 2 log P alpha + 2 n (P-1)/P beta" about "$(value median_s dense)" "2 * $log * $A + 200000 * ($P - 1) / $P * $B"
    check "topka, P = $P: log P alpha + 2 k (P-1) beta" about "$(value median_s topka)" "$log * $A + 2000 * ($P - 1) * $B"
    simulated --net 1gbe --p $P --algo gtopk --n 1000 --density 0.001 --steps 2
    check "gtopk, P = $P, k = 1: up a tree, down a broadcast: 2 log P (alpha + 2 k beta)" about "$(value median_s)" "2 * $log * ($A + 2 * $B)"
done
simulated --net 1gbe --p 2 --algo gtopk --n 100000 --density 0.1 --steps 2
check "gtopk, P = 2, k = 10000: 2 (alpha + 2 k beta)" about "$(value median_s)" "2 * ($A + 20000 * $B)"
# Down the tree messages that leave without waiting share the root's link.
down() { simulated --net 1gbe --p 8 --algo gtopk --n 100000 --density 0.01 --steps 2 "$@"; }
down
shared=$(value median_s)
down --eager 65536
check "gtopk, P = 8, k = 1000: what leaves without waiting by default" [ "$(value median_s) $(value eager_bytes)" = "$shared 65536" ]
down --eager 0
check "where all messages wait: 2 log P (alpha + 2 k beta)" about "$(value median_s)" "6 * ($A + 2000 * $B)"
check "which is less" awk "BEGIN { exit !($shared > 1.01 * $(value median_s)) }"
simulated --net 1gbe --p 8 --algo dense --n 1000 --steps 2 --allreduce ring
check "dense as a ring, P = 8: 2 (P-1) alpha + 2 n (P-1)/P beta" about "$(value median_s)" "14 * $A + 1750 * $B"
check "the row says so" [ "$(value allreduce)" = '"ring"' ]
ring=$(value median_s)
simulated --net 1gbe --p 8 --algo dense --n 1000 --steps 2 --allreduce tree
check "as a reduction and a broadcast: less than half of the ring's start-ups" awk "BEGIN { exit !($(value median_s) < $ring / 2 && $(value median_s) > 4 * $A) }"
check "and that, too" [ "$(value allreduce)" = '"tree"' ]
simulated --net 1gbe --p 4 --algo dense-ovlp --n 100000 --steps 2 -- --overlap-bytes 100000
check "dense-ovlp, P = 4: four sums, one after the other" about "$(value median_s)" "4 * 4 * $A + 150000 * $B"
simulated --net 1gbe --p 4 --algo dense-ovlp --n 100000 --steps 2 --compute 0.3 -- --overlap-bytes 100000
check "with computing, all but the last are hidden" about "$(value step_s)" "0.3 + 4 * $A + 37500 * $B"
check "what is not" about "$(value median_s)" "4 * $A + 37500 * $B"
simulated --net 1gbe --p 4 --algo dense-ovlp --n 100000 --steps 1 --compute 0.0001 -- --overlap-bytes 4000
check "with more buckets than may be under way: what kept backward waiting is in it, too" about "$(value median_s)" "$(value step_s) - 0.0001"
check "which is far the most of it" awk "BEGIN { exit !($(value median_s) > 0.1) }"
simulated --net 1gbe --p 4 --ranks-per-node 2 --algo torus2d --n 100000 --steps 2
check "torus2d, two nodes of 2: inside, then both halves over one cable" about "$(value median_s)" "2 * $A + 100000 * $B + 2 * (1e-6 + 50000 * 2e-10)"
check "the row says how many nodes" [ "$(value nodes) $(value ranks_per_node)" = "2 2" ]

# -- what is injected ------------------------------------------------------------------------------------------------------
costs="--compute 0.3 --select-cost 0.02 --word-cost 1e-5"
# shellcheck disable=SC2086 # a list of options
simulated --net 1gbe --p 2 --algo topka,dense --n 100000 --density 0.01 --steps 2 $costs
step="0.02 + 2000 * 1e-5 + $A + 2000 * $B"
check "selection and 2000 words that came in" about "$(value median_s topka)" "$step"
check "they are charged to their phases" about "$(value select topka | sed 's/"exact"//')$(value select_s topka)" 0.02
check "and to merging and packing" about "$(value merge topka) + $(value pack topka)" "2000 * 1e-5"
check "the whole step" about "$(value step_s topka)" "0.3 + $step"
check "efficiency" about "$(value efficiency topka)" "0.3 / (0.3 + $step)"
check "a dense step has none of it" about "$(value median_s dense)" "2 * $A + 100000 * $B"
check "the row says so" [ "$(value simulated topka) $(value compute_s topka) $(value select_cost_s topka) $(value word_cost_s topka) $(value network topka)" = 'true 0.3 0.02 1e-05 "1gbe"' ]
json_lines "every row is JSON" "$W/out"
simulated --net 1gbe --p 4 --algo dense,spardl --n 1000000 --density 0.01 --steps 2 --word-cost 1e-8
whole="$(value median_s dense) $(value median_s spardl)"
simulated --net 1gbe --p 4 --algo dense,spardl --n 1000000 --density 0.01 --steps 2 --word-cost 1e-8 --scale 10 --out "$W/rows"
cp "$W/rows" "$W/out"
check "a tenth of the entries over a tenth of the bandwidth: the same dense step" about "$(value median_s dense)" "${whole% *}"
near() { awk "BEGIN { r = ($1) / ($2); exit !(r > 0.99 && r < 1.01) }"; }
check "and nearly the same sparse one" near "$(value median_s spardl)" "${whole#* }"
check "the row says what was scaled" [ "$(value n dense) $(value scale dense)" = "100000 10" ]
check "wall time and memory are said" grep -q '^# P = 4: [0-9]* s of wall time, [0-9.]* GB of memory' "$W/err"

# -- ranks -----------------------------------------------------------------------------------------------------------------
for P in 4 7 64; do
    simulated --net 10gbe --p $P --algo all --n 500 --density 0.02 --steps 1 --check
    check "all algorithms are right on $P ranks" [ "$? $(grep -c '"checked":true,"wrong":0,' "$W/out")" = "0 $(names_of EXCHANGE comm/algorithms/exchanges.def | grep -c .)" ]
done

# -- times from a table ----------------------------------------------------------------------------------------------------
cat > "$W/costs.csv" << 'END'
# cpu cores: 2
model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source
vgg16,100000,cpu,compute,,,,,128,,0.3,426.667,bench net
vgg16,100000,cpu,select,,exact,,0.01,,,0.02,,bench select
vgg16,100000,cpu,select,,mstopk,,0.01,,,0.08,,bench select
vgg16,100000,cpu,select,micro,,,0.01,,2,0.05,,bench
vgg16,100000,cpu,word,topka,exact,coo32,0.01,,2,1e-5,,bench
vgg16,100000,cpu,word,topka,exact,coo32,0.01,,4,5e-5,,bench
vgg16,100000,cpu,word,topka,exact,packed,0.01,,2,2e-5,,bench
vgg16,100000,cpu,word,gtopk,exact,coo32,0.01,,2,3e-6,,bench
vgg16,100000,cpu,word,micro,,coo32,0.01,,2,1e-6,,bench
vgg16,100000,cpu,word,hitopk,mstopk,coo32,0.01,,4,1e-9,,bench
vgg16,100000,cpu,word,dense,,,,,,0,,not charged
bert,200000,cpu,compute,,,,,,,,,not in the zoo
bert,200000,cpu,word,dense,,,,,,0,,not charged
vgg16,100000,p102-100,compute,,,,,,,,,results/published/gtopk-single-gpu.csv model=VGG-16
END
from_costs() { simulated --net 1gbe --costs "$W/costs.csv" --model vgg16 --on cpu --density 0.01 --steps 2 "$@"; }
# charged ALGO: compute, select and word of its row
charged() { echo "$(value compute_s "$1") $(value select_cost_s "$1") $(value word_cost_s "$1")"; }
from_costs --p 2 --algo topka,dense
check "each step takes what the table says" about "$(value step_s topka)" "0.3 + 0.02 + 2000 * 1e-5 + $A + 2000 * $B"
check "a dense one nothing but computing" about "$(value step_s dense)" "0.3 + 2 * $A + 100000 * $B"
check "n is the model's, and the row says which" [ "$(value n topka) $(value model topka) $(value on topka) $(value compute_on topka)" = '100000 "vgg16" "cpu" "cpu"' ]
json_lines "still JSON" "$W/out"
from_costs --p 4 --ranks-per-node 4 --algo all
check "all: every algorithm of the table, each with its own" [ "$(charged gtopk), $(charged micro), $(charged dense)" = "0.3 0.02 3e-06, 0.3 0.05 1e-06, 0.3 0 0" ]
check "hitopk selects in its part of the gradient" [ "$(charged hitopk)" = "0.3 0.02 1e-09" ]
check "of two numbers of ranks the one with a core for each" [ "$(charged topka)" = "0.3 0.02 1e-05" ]
check "five rows" [ "$(grep -c . "$W/out")" -eq 5 ]
from_costs --p 2 --algo topka --wire packed --select mstopk --scale 2
check "wire format, selector; a word of half the entries" [ "$(charged topka) $(value n topka) $(value scale topka)" = "0.3 0.08 4e-05 50000 2" ]
from_costs --p 2 --algo topka --compute 1 --select-cost 2 --word-cost 0.5
check "what is given wins" [ "$(charged topka)" = "1 2 0.5" ]
from_costs --p 2 --algo topka --word-cost 0 --wire packed-f32
check "and need not be in the table" [ "$? $(charged topka)" = "0 0.3 0.02 0" ]
from_costs --p 2 --algo topka --compute-on p102-100
check "computing of a published table, by reference" [ "$(charged topka)" = "0.097 0.02 1e-05" ]
from_costs --p 2 --algo dense --model bert
check "no computing of this model: said, and the exchange alone" [ "$? $(value n dense) $(value step_s dense)$(grep -c 'has no computing of bert on cpu' "$W/err")" = "0 200000 1" ]

# -- mistakes --------------------------------------------------------------------------------------------------------------
# wrong NAME TEXT ARGS...
wrong() {
    wrong_name=$1 wrong_text=$2
    shift 2
    simulated "$@"
    status=$?
    check "$wrong_name" sh -c "[ $status -eq 2 ] && [ \$(grep -c . '$W/err') -le \${lines:-1} ] && [ ! -s '$W/out' ] && grep -q -e '$wrong_text' '$W/err'"
}
wrong "no network" "--net is needed" --p 4
wrong "no ranks" "--p is needed" --net 1gbe
wrong "an unknown network" "there is no network nosuch" --net nosuch --p 4
wrong "ranks that are no number" "--p x" --net 1gbe --p 4,x
wrong "nodes that do not divide" "does not divide the 6 ranks" --net 1gbe --p 4,6 --ranks-per-node 4
wrong "an unknown option" "unknown option --bogus" --net 1gbe --p 4 --bogus 1
wrong "an option without its value" "--n needs a value" --net 1gbe --p 4 --n
wrong "a blank in a value" "only, please" --net 1gbe --p 4 --pattern "real:my file"
wrong "a length and a model" "has its own" --net 1gbe --p 4 --pattern layers:resnet20 --n 100
wrong "a model that is to be scaled" "cannot shorten" --net 1gbe --p 4 --pattern layers:resnet20 --scale 2
wrong "bytes that are no number" "--eager 64K" --net 1gbe --p 4 --eager 64K
wrong "sums that there are not" "--allreduce star: there are ring and tree" --net 1gbe --p 4 --allreduce star
wrong "a scale below 1" "from 1 on" --net 1gbe --p 4 --scale 0.5
table="--net 1gbe --p 2 --costs $W/costs.csv --density 0.01"
# lacks NAME TEXT OPTION...: what is not in the table, and what is there
# shellcheck disable=SC2086 # a list of options
lacks() { lacks_name=$1 lacks_text=$2 && shift 2 && wrong "$lacks_name" "$lacks_text" $table "$@"; }
lacks "a model that the table lacks" "no model lstm; it has: vgg16, bert" --model lstm --on cpu
lacks "a device that it lacks" "no device cuda for vgg16; it has: cpu, p102-100" --model vgg16 --on cuda
lacks "a device that has computing alone" "no row word for vgg16 on p102-100; it has: compute" --model vgg16 --on p102-100
lacks "one that is to compute" "no device cuda for vgg16" --model vgg16 --on cpu --compute-on cuda
lacks "an algorithm that it lacks" "no algorithm oktopk for vgg16 on cpu; it has: topka, gtopk, micro, hitopk, dense" --model vgg16 --on cpu --algo dense,oktopk
lacks "a wire format that it lacks" "no wire format packed of gtopk for vgg16 on cpu; it has: coo32" --model vgg16 --on cpu --wire packed
lacks "a density that it lacks" "no density 0.02 of gtopk for vgg16 on cpu; it has: 0.01" --model vgg16 --on cpu --density 0.02
lacks "a selector that it lacks" "no selector dgc for vgg16 on cpu; it has: exact, mstopk" --model vgg16 --on cpu --select dgc
lacks "a table without --on" "needs --model NAME and --on DEVICE" --model vgg16
lacks "a table and a length" "whose model has its own" --model vgg16 --on cpu --n 5
lacks "a table and two densities" "--density 0.01,0.02" --model vgg16 --on cpu --density 0.01,0.02
lacks "a table and the layers of another model" "of another model" --model vgg16 --on cpu --pattern layers:resnet20
wrong "a model without a table" "of --costs FILE" --net 1gbe --p 2 --model vgg16
wrong "a table that is not there" "there is no such file" --net 1gbe --p 2 --model vgg16 --on cpu --costs "$W/nothing"
wrong "a file that is no table" "is no table of measure-costs.sh" --net 1gbe --p 2 --model vgg16 --on cpu --costs README.md
wrong "a length and a recording" "has its own" --net 1gbe --p 4 --pattern selected:recording --n 100
wrong "more than fits into memory" "would need about" --net 1gbe --p 100000 --n 4000000000
wrong "more than fits of what is not zero" "would need about" --net 1gbe --p 1024 --n 1000000000 --density 0.01 --algo gtopk,topka --device sparse
export lines=2 # with the line about wall time
wrong "an unknown algorithm" "there are: dense, " --net 1gbe --p 2 --algo nosuch
wrong "a bench option that does not exist" "there is no option --bogus" --net 1gbe --p 2 -- --bogus
if readelf -l "$BUILD/sparsetrain-sim" 2> /dev/null | grep -q 'interpreter'; then
    "$BUILD/sparsetrain-sim" bench > "$W/out" 2> "$W/err"
    status=$?
    check "started by hand it says how it is started" sh -c "[ $status -eq 2 ] && [ \$(wc -l < '$W/err') -eq 1 ] && grep -q 'smpirun' '$W/err'"
else
    skip "started by hand it says how it is started" "the library has no loader of its own here"
fi
for option in --select-cost --word-cost; do
    check "$option in a real run" silent mistaken "$option is for simulations" 2 bench --n 100 $option 1
done
finish
