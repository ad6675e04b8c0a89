#!/bin/sh
# cli_bench.sh: `mpirun -np P sparsetrain bench`: every algorithm at several P over every pattern is right and in the
# table; JSON; lists, sweeps and settings; recorded gradients from a real run; every mistake: one line, status 2.
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
quick="--warmup 1 --repeat 2"
algos=$(names_of EXCHANGE comm/algorithms/exchanges.def | grep -c .)

# rows: the lines of the table in $W/out
rows() { grep -c '^ *[0-9]' "$W/out"; }

# right NAME ROWS P ARGS...: status 0, so many rows, the last line says that all are right
right() {
    r_name=$1 r_rows=$2
    shift 2
    start "$@"
    r_status=$?
    if [ $r_status -ne 0 ]; then
        not_ok "$r_name" "status $r_status: $(grep -v '^-' "$W/err" | head -c 300) $(tail -n 3 "$W/out")"
    elif [ "$(rows)" -ne "$r_rows" ] || ! tail -n 1 "$W/out" | grep -q "^# $r_rows rows\{0,1\}, "; then
        not_ok "$r_name" "$(rows) rows instead of $r_rows: $(tail -n 1 "$W/out")"
    else
        ok "$r_name"
    fi
}

# -- every algorithm, every pattern ---------------------------------------------------------------------------------
for p in 1 3 4; do
    for pattern in uniform clustered; do
        right "all algorithms at P = $p, $pattern" $((4 * algos)) $p bench $quick --n 1000,5 --density 0.01,1 --pattern $pattern
    done
    right "all algorithms at P = $p, layers:resnet20" "$algos" $p bench $quick --pattern layers:resnet20
done
check "the table is at most 160 columns wide" awk 'length > 160 { bad = 1 } END { exit bad }' "$W/out"
check "the head says ranks, nodes, library" grep -q '^# bench: 4 ranks on 1 node; .*MP' "$W/out"
right "n = 1 and n below P" "$((2 * algos))" 4 bench $quick --n 1,3
right "P that is no power of two, odd n" "$algos" 7 bench $quick --n 997 --density 0.03
right "ranks taken for nodes" "$algos" 4 bench $quick --n 1000 --ranks-per-node 2
check "the head says that nodes are emulated" grep -q '4 ranks on 2 nodes (emulated)' "$W/out"

# -- settings ---------------------------------------------------------------------------------------------------------
for select in $(names_of SELECTOR topk/selectors/selectors.def); do
    right "all algorithms with selector $select" "$algos" 3 bench $quick --n 2000 --select $select
done
wires=$("$PROGRAM" list | sed -n '/^Wire/,/^[A-Z]/s/^  \([a-z0-9-]*\)  *yes.*/\1/p')
for wire in $wires; do
    right "all algorithms with wire format $wire" "$algos" 3 bench $quick --n 2000 --wire "$wire"
done
check "wire formats were found" [ -n "$wires" ]
right "a sweep" 3 2 bench $quick --algo dense --n 100:10000:10
check "the sweep goes in its steps" sh -c "awk '/^ *[0-9]/ { printf \"%s \", \$1 }' '$W/out' | grep -q '^100 1000 10000 \$'"
right "a list of algorithms, = in place of a space" 2 2 bench $quick --algo=topka,gtopk --n=1000 --phases
check "--phases gives a line for each row" [ "$(grep -c '^#.*outside' "$W/out")" -eq 2 ]
right "the selector gaussian as published" 3 3 bench $quick --algo topka,gaussiank,oktopk --select gaussian --gaussian-adjust off --n 2000
start 2 bench $quick --algo gaussiank --gaussian-adjust off --n 2000 --json
check "--json says so" grep -q '"gaussian_adjust":"off"' "$W/out"
right "Ok-Topk's settings" 1 4 bench $quick --algo topka --n 1000 --tau 3 --tau-prime 2 --oktopk-bucket 1 --oktopk-off rotation,overlap
if grep -q 'EXCHANGE(oktopk)' comm/algorithms/exchanges.def; then
    right "oktopk over its periods" 1 4 bench --algo oktopk --n 5000 --warmup 0 --repeat 9 --tau 3 --tau-prime 2
    right "oktopk with thresholds as published" 1 4 bench --algo oktopk --n 5000 --warmup 0 --repeat 9 --tau 3 --oktopk-thresholds paper
    right "oktopk without its techniques" 1 4 bench --algo oktopk --n 5000 --warmup 0 --repeat 9 --oktopk-off regions,rotation,overlap,balance
fi
right "--no-check does not verify, and says so" 1 2 bench $quick --algo topka --n 1000 --no-check
check "--no-check says so" grep -q 'not verified' "$W/out"
# The checks of --wire-check: whatever groups the algorithms make, and none is left on for the rows after it.
right "--wire-check: every row twice" $((2 * algos)) 4 bench $quick --n 2000 --ranks-per-node 2 --wire-check
check "says what the checks cost" [ "$(grep -c '^# *with --wire-check: [0-9]*\.[0-9]* times the row above$' "$W/out")" -eq "$algos" ]
start 3 bench $quick --algo topka,gtopk --n 2000 --wire-check --json
check "--wire-check --json: without, with, without, with" [ "$(sed 's/.*"wire_check":true,"without_wire_check_s":[0-9.e-]*,.*/with/; s/^{.*/without/' "$W/out" | tr '\n' ' ')" = 'without with without with ' ]
check "the row with checks has the time of the one without" sh -c "sed -n 's/.*\"algo\":\"topka\".*\"median_s\":\([^,]*\),.*/\1/p' '$W/out' | head -n 1 | grep -qxF \"\$(sed -n 's/.*\"algo\":\"topka\".*\"without_wire_check_s\":\([^,]*\),.*/\1/p' '$W/out')\""
start 3 bench --help
check "--help speaks once" [ "$(grep -c '^usage: ' "$W/out")" -eq 1 ]

# words of topka at P = 4, k = 10: 3 messages of 20 words, its bound
start 4 bench $quick --algo topka --n 1000 --json
number() { sed -n "s/.*\"$1\":\([-0-9.e+]*\)[,}].*/\1/p" "$W/out"; }
check "words are counted and held against the bound" [ "$(number words_sent_max) $(number words_received_max) $(number bound_words) $(number ratio_bound)" = "60 60 60 1" ]
check "busbw is algbw times 2(P-1)/P" awk "BEGIN { exit !($(number busbw) / $(number algbw) - 1.5 < 1e-6 && $(number busbw) / $(number algbw) - 1.5 > -1e-6) }"
check "median, p99 and min are in order" awk "BEGIN { exit !($(number min_s) > 0 && $(number min_s) <= $(number median_s) && $(number median_s) <= $(number p99_s)) }"

# with_seed ARGS...: how many entries the sums of a run with these options have
with_seed() {
    # shellcheck disable=SC2086
    start 3 bench $quick --algo topka --n 100000 --density 0.1 --json "$@" && number global_nnz
}
default_seed=$(with_seed)
check "--seed 1 is the default" [ "$(with_seed --seed 1)" = "$default_seed" ]
check "another --seed makes other gradients" [ "$(with_seed --seed 2)" != "$default_seed" ]
check "there was something to compare" [ -n "$default_seed" ]

# messages ARGS...: of dense-ovlp, 1000 words
messages() {
    # shellcheck disable=SC2086
    start 2 bench $quick --algo dense-ovlp --n 1000 --json "$@" && number messages_sent_max
}
one_bucket=$(messages)
check "--overlap-bytes 1000: four allreduces in place of one" [ "$(messages --overlap-bytes 1000)" = "$((4 * one_bucket))" ]

# -- JSON -------------------------------------------------------------------------------------------------------------
start 3 bench $quick --n 1000,2000 --json
check "--json: one object a row, nothing else" [ "$(grep -c '^{"bench":"exchange","algo":"[a-z0-9-]*",.*}$' "$W/out")" -eq $((2 * algos)) ]
check "--json: no other lines" [ "$(wc -l < "$W/out")" -eq $((2 * algos)) ]
for key in select wire pattern n k density ranks ranks_per_node nodes median_s p99_s min_s mean_s algbw busbw words_sent_max words_sent_mean \
    words_received_max words_received_mean messages_sent_max bound_words ratio_bound local_nnz global_nnz wrong phases select_s device device_about version commit library outside; do
    [ "$(grep -c "\"$key\":" "$W/out")" -eq $((2 * algos)) ] || not_ok "--json has $key" "in $(grep -c "\"$key\":" "$W/out") rows"
done
json_lines "every row is JSON" "$W/out"

# -- computing -------------------------------------------------------------------------------------------------------
check "without --compute there is none of it" sh -c "! grep -q 'compute_s\|step_s\|efficiency\|simulated\|network' '$W/out'"
start 3 bench $quick --algo dense,dense-ovlp,gtopk --n 2000 --compute 0.03 --network "a b" --json
check "--compute: three rows, all right" [ "$? $(grep -c '"wrong":0,.*"compute_s":0.03,"step_s":[0-9.e-]*,"efficiency":[0-9.e-]*,"network":"a b",' "$W/out")" = "0 3" ]
fields() { sed -n "s/.*\"median_s\":\([^,]*\),.*\"phases\":{.*\"compute\":\([^,]*\),.*\"compute_s\":\([^,]*\),\"step_s\":\([^,]*\),\"efficiency\":\([^,]*\),.*/\1 \2 \3 \4 \5/p" "$W/out"; }
check "a step is not shorter than its computing" sh -c "[ \"\$(echo '$(fields)' | awk '\$4 >= \$3 && \$1 > 0 && \$2 >= \$3' | wc -l)\" -eq 3 ]"
check "efficiency = compute / step" sh -c "echo '$(fields)' | awk '{ d = \$3 / \$4 - \$5; if (d > 1e-9 || d < -1e-9) exit 1 }'"
right "a table with --compute" 1 2 bench $quick --algo topka --n 2000 --compute 0.001
check "says it under the row" grep -q '^# *compute 1.000 ms, step with it [0-9.]* ms: efficiency [0-9.]*%$' "$W/out"

# -- recorded gradients -----------------------------------------------------------------------------------------------
small="--data synthetic:64x16 --batch 4 --steps 5 --eval-every 0 --quiet"
start 2 $small --algo gtopk --record "$W/record" --record-every 2
check "a run records its gradients" [ $? -eq 0 ]
for p in 1 2 3; do
    right "the record is replayed on $p ranks" "$algos" $p bench $quick --pattern "real:$W/record"
done
check "the head says what was recorded" grep -q 'real:.* ([23] steps of 2 ranks)' "$W/out"
check "n is the model's" grep -q '^ *269722 ' "$W/out"
cp "$W/record" "$W/short"
truncate -s -1 "$W/short"
right "an incomplete last step is left out" 1 2 bench $quick --algo topka --pattern "real:$W/short"
check "and that is said" grep -q 'an incomplete last step is left out' "$W/out"
head -c 5000 "$W/record" > "$W/none"
head -c 5001 /dev/zero > "$W/zeros"
{ head -c 8 "$W/record"; printf '\011'; tail -c +10 "$W/record" | head -c 900000; } > "$W/version"

# -- mistakes -----------------------------------------------------------------------------------------------------------
# mistake P PART ARGS...: status 2, one line of ours which contains PART, nothing on stdout
mistake() {
    m_p=$1 m_part=$2
    shift 2
    check "on $m_p ranks: $m_part ($*)" silent mistaken "$m_part" "$m_p" bench "$@"
}
for p in 1 3; do
    for density in 0 1.01 nan -1 '' x 0.1,0; do mistake $p 'above 0 and at most 1' --density "$density"; done
    for n in 0 -5 1.5 4294967296 x '10,' ''; do mistake $p 'whole numbers at least 1 and at most 4294967295' --n "$n"; done
    for n in 10:5:2 1:2 1:2:1 1:2:3:4 1:x:2; do mistake $p 'needed' --n $n; done
    mistake $p 'there are: dense, ' --algo nothing
    mistake $p 'there are: dense, ' --algo topka,nothing
    mistake $p 'there are: exact' --select nothing
    mistake $p 'there are: coo32' --wire nothing
    mistake $p '--device has no "nothing"; there are: auto, cpu' --device nothing
    SPARSETRAIN_PLUGIN=$W/none.so mistake $p 'none.so, which cannot be read' --device cuda
    mistake $p 'there are: uniform, clustered, layers:MODEL, real:FILE' --pattern nothing
    mistake $p 'no model "nothing"' --pattern layers:nothing
    mistake $p 'has its own' --pattern layers:resnet20 --n 100
    mistake $p 'No such file' --pattern "real:$W/nowhere"
    mistake $p 'no complete step' --pattern "real:$W/none"
    mistake $p 'not a file of recorded gradients' --pattern "real:$W/zeros"
    mistake $p 'format version 9' --pattern "real:$W/version"
    mistake $p 'there is no option --bogus' --bogus
    mistake $p '--repeat wants a value' --repeat
    mistake $p 'at least 1' --repeat 0
    mistake $p 'at least 1' --tau-prime 0
    mistake $p 'at least 0' --seed -1
    mistake $p 'at least 4' --overlap-bytes 3
    mistake $p 'no "speed"' --oktopk-off speed
    mistake $p '--oktopk-thresholds has no "lax"; there are: guarded, paper' --oktopk-thresholds lax
    mistake $p 'there are: on, off' --gaussian-adjust maybe
    mistake $p 'there is no bench "nothing"' nothing
    mistake $p '/nowhere/trace' --trace /nowhere/trace
    for seconds in 0 -1; do mistake $p 'above 0' --compute $seconds; done
    for seconds in x ''; do mistake $p 'wants a number' --compute "$seconds"; done
    mistake $p 'at least 0' --select-cost -1
    mistake $p 'wants a number' --select-cost x
    mistake $p '--select-cost is for simulations' --select-cost 0
    mistake $p '--word-cost is for simulations' --word-cost 1e-9 --compute 1
    mistake $p '--network wants a value' --network ''
done
mistake 1 '--wire-check has nothing to check with one rank' --wire-check
mistake 3 'do not divide' --ranks-per-node 2
mistake 3 'do not divide' --ranks-per-node 2 --algo dense,hitopk
right "no mistake where no algorithm goes by nodes" 2 3 bench $quick --n 1000 --ranks-per-node 2 --algo dense,topka
check "which is said" [ "$(grep -c '^# --ranks-per-node is ignored' "$W/err")" -eq 1 ]
mistake 4 'do not divide' --ranks-per-node 8
timeout 120 "$MPIRUN" -np 1 "$PROGRAM" bench --n 100 : -np 2 "$PROGRAM" bench --n 200 > "$W/out" 2> "$W/err" < /dev/null
status=$?
check "ranks with other options are told" sh -c "[ $status -eq 2 ] && grep -q 'started differently: rank 0 has bench --n 100 where rank 1 has bench --n 200' '$W/err'"
finish
