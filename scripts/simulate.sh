#!/bin/sh
# simulate.sh: `sparsetrain bench` on a simulated cluster (SimGrid), for one number of ranks after the other; rows as JSON
# lines. docs/simulation.md says what is simulated and what is not. BUILD names the build folder (make sim builds there).
set -u
root=$(dirname "$0")/..
# shellcheck source=scripts/lib/common.sh
. "$root/scripts/lib/common.sh"
usage() {
    cat <<'END'
usage: simulate.sh --net NAME|FILE --p LIST [OPTIONS] [-- BENCH OPTION...]
       simulate.sh --calibrate [--net NAME|FILE]
  --net NAME|FILE      1gbe, 10gbe, 25gbe, 100gbe, aries, or a file of sparsetrain p2p --out
  --p LIST             ranks, with commas between them
  --ranks-per-node M   every M ranks share a node and its link to the others (default 1)
  --algo LIST          algorithms (default gtopk; all: every one)
  --n N                entries of the gradient (default 1000000)
  --density RHO        share selected (default 0.001)
  --wire NAME, --select NAME, --pattern TEXT, --device NAME   as for sparsetrain bench
  --compute S          forward and backward of a step [s]
  --select-cost S      selection of a step of a sparse algorithm [s]
  --word-cost S        packing and merging, for each 4-byte word received [s]
  --costs FILE         these three from a table of measure-costs.sh, for each algorithm its own; those given as well win
  --model NAME, --on DEVICE   with --costs: of this model (its n, too), on this device of the table
  --compute-on DEVICE  with --costs: computing on another one, as p102-100, the GPU of the gTop-k paper
  --steps N            timed steps (default 5, after 2 that are not, or so many as -- --warmup says)
  --scale S            an S-th of the entries over an S-th of the bandwidth: about the same times in less memory
  --eager BYTES        messages of up to so many leave without waiting for their receiver (default 65536, of which an
                       S-th where --scale S; 0: all wait)
  --allreduce NAME     the sums of MPI, and so dense, whatever their length: ring, or tree, a reduction and then a broadcast
                       (default: as Open MPI would choose)
  --check              verify the sums (20 bytes an entry and rank more; a dense gradient is then a real one)
  --out FILE           add the rows to this file (default: standard output)
  --force              run also what seems not to fit into memory
  --calibrate          measure alpha and beta by sparsetrain p2p, compare; exit status 1 when one is off by 1%
Wall time and memory of each P go to standard error. Exit status 2: a mistake in the options.
END
}

eager_given='' allreduce=''
net='' ranks='' per_node=1 algos=gtopk n_given='' density=0.001 pattern=uniform device='' word_cost=''
steps=5 scale=1 out='' check='' force='' calibrate='' bench=''
costs='' model='' on='' compute_on='' wire_given='' select='' # given: of the three times, those on the command line
# The program is given its options as one text that is cut at blanks (by smpirun too), so none may hold one.
options_plain=yes compute='' select_cost=''
options 'check!check force!force calibrate!calibrate net p:ranks ranks-per-node:per_node algo:algos n:n_given density pattern device
    steps scale eager:eager_given allreduce word-cost out costs model on compute-on wire:wire_given select compute select-cost --' "$@"
eval "set -- $words"
for word in "$@"; do
    case $word in '' | *[!A-Za-z0-9_.,:/+=@%-]*) fail "-- \"$word\": letters, digits and _.,:/+=@%- only, please" ;; esac
    bench="$bench $word"
done
warmup='--warmup 2'
case $bench in *' --warmup '* | *' --warmup='*) warmup='' ;; esac
n=${n_given:-1000000} wire=${wire_given:-coo32} given="${compute:+ compute}${select_cost:+ select}${word_cost:+ word}"
bench="$bench${wire_given:+ --wire $wire}${select:+ --select $select}${compute:+ --compute $compute}${select_cost:+ --select-cost $select_cost}"

number() { # number NAME TEXT LEAST [whole]
    awk -v x="$2" -v least="$3" -v whole="${4:-}" 'BEGIN {
        good = x ~ /^[0-9]+$/ || (whole == "" && x ~ /^[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?$/)
        exit !(good && x + 0 >= least) }' || fail "$1 $2: a ${4:-}${4:+ }number from $3 on is needed"
}
number --ranks-per-node "$per_node" 1 whole
number --steps "$steps" 1 whole
number --scale "$scale" 1
[ -z "$word_cost" ] || number --word-cost "$word_cost" 0
eager=${eager_given:-65536}
number --eager "$eager" 0 whole
sums=''
case $allreduce in
'') ;;
ring) sums=--cfg=smpi/allreduce:lr ;;
tree) sums=--cfg=smpi/allreduce:redbcast ;;
*) fail "--allreduce $allreduce: there are ring and tree; left out, what Open MPI would choose" ;;
esac
[ -n "$calibrate" ] || [ -n "$net" ] || fail "--net is needed: 1gbe, 10gbe, 25gbe, 100gbe, aries, or a file"
[ -n "$calibrate" ] || [ -n "$ranks" ] || fail "--p is needed: how many ranks, as 4,8,16"
for P in $(echo "$ranks" | tr , ' '); do
    number --p "$P" 1 whole
    [ $((P % per_node)) -eq 0 ] || fail "--ranks-per-node $per_node does not divide the $P ranks of --p"
done
if [ -n "$costs" ]; then
    [ -f "$costs" ] || fail "--costs $costs: there is no such file; sh scripts/measure-costs.sh makes one"
    case $model,$on in ,* | *,) fail "--costs needs --model NAME and --on DEVICE" ;; esac
    number --density "$density" 0 # a list is for all algorithms alike
    [ -z "$n_given" ] || fail "--n cannot be chosen with --costs, whose model has its own; leave it out"
    case $pattern in
    "layers:$model") ;;
    layers:*) fail "--pattern $pattern is of another model than the times of --model $model" ;;
    esac
    [ -n "$compute_on" ] || compute_on=$on
elif [ -n "$model$on$compute_on" ]; then
    fail "--model, --on and --compute-on name rows of --costs FILE, which is missing"
fi
case $pattern in
layers:* | real:* | selected:*)
    [ -z "$n_given" ] || fail "--n cannot be chosen with --pattern $pattern, which has its own; leave it out"
    [ "$scale" = 1 ] || fail "--scale cannot shorten the gradients of --pattern $pattern"
    n=''
    ;;
*) number --n "$n" 1 whole ;;
esac

simulated=${BUILD:-$root/build}/sparsetrain-sim
command -v smpirun >/dev/null 2>&1 || fail "smpirun is not installed (SimGrid): sh scripts/deps.sh sim, then make sim"
[ -f "$simulated" ] || fail "$simulated is not there; build it: make sim"
simulated=$(absolute "$simulated") program=${simulated%-sim}

make_scratch
running=''
trap '[ -z "$running" ] || kill "$running" 2>/dev/null; exit 130' HUP INT TERM

# platform P M ALPHA BETA NODE_ALPHA NODE_BETA: $scratch/platform.xml, and which rank is where. A message between two
# ranks goes over two links of half the latency each; all can send and receive at full speed at once. With several
# ranks a node it passes the links of the two ranks and those of their nodes.
platform() {
    awk -v P="$1" -v M="$2" -v alpha="$3" -v beta="$4" -v node_alpha="$5" -v node_beta="$6" '
    function link(beta, alpha) {
        return sprintf("bandwidth=\"%.17gBps\" latency=\"%.17gs\"", beta > 0 ? 4 / beta : 1e18, alpha > 0 ? alpha / 2 : 0)
    }
    function ranks(id, from, count, beta, alpha,   text) {
        text = link(beta, alpha)
        sub(/bandwidth/, "bw", text)
        sub(/latency/, "lat", text)
        printf "<cluster id=\"%s\" prefix=\"rank-\" suffix=\"\" radical=\"%d-%d\" speed=\"10Gf\" %s ", id, from, from + count - 1, text
        print "sharing_policy=\"SPLITDUPLEX\"/>"
    }
    BEGIN {
        print "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">"
        if (M == 1) ranks("ranks", 0, P, beta, alpha)
        else {
            print "<zone id=\"cluster\" routing=\"Floyd\">"
            for (i = 0; i < P / M; i++) ranks("node-" i, i * M, M, node_beta, node_alpha)
            print "<zone id=\"switch\" routing=\"None\"><router id=\"hub\"/></zone>"
            for (i = 0; i < P / M; i++)
                printf "<link id=\"cable-%d\" %s sharing_policy=\"SPLITDUPLEX\"/>\n", i, link(beta, alpha - node_alpha)
            for (i = 0; i < P / M; i++) {
                gateway = "rank-node-" i "_router"
                printf "<zoneRoute src=\"node-%d\" dst=\"switch\" gw_src=\"%s\" gw_dst=\"hub\" symmetrical=\"NO\">", i, gateway
                printf "<link_ctn id=\"cable-%d\" direction=\"UP\"/></zoneRoute>\n", i
                printf "<zoneRoute src=\"switch\" dst=\"node-%d\" gw_src=\"hub\" gw_dst=\"%s\" symmetrical=\"NO\">", i, gateway
                printf "<link_ctn id=\"cable-%d\" direction=\"DOWN\"/></zoneRoute>\n", i
            }
            print "</zone>"
        }
        print "</platform>"
    }' >"$scratch/platform.xml"
    awk -v P="$1" 'BEGIN { for (r = 0; r < P; r++) print "rank-" r }' >"$scratch/hosts"
}

# simulate P ARGS...: the program's standard output to $scratch/stdout, its status. The network is alpha and beta and
# nothing else (CM02 without its factors), the collectives are those that Open MPI chooses, local work takes no time.
# Messages up to `eager` bytes leave without waiting for their receiver.
simulate() {
    simulate_p=$1
    shift
    # one thread a rank: they run one after the other
    # shellcheck disable=SC2086 # a word, or none
    OMP_NUM_THREADS=1 smpirun -quiet -np "$simulate_p" -platform "$scratch/platform.xml" -hostfile "$scratch/hosts" \
        --cfg=network/model:CM02 --cfg=network/TCP-gamma:0 --cfg=network/crosstraffic:no \
        --cfg=network/latency-factor:1 --cfg=network/bandwidth-factor:1 --cfg=network/weight-S:0 \
        --cfg=smpi/host-speed:10Gf --cfg=smpi/simulate-computation:no --cfg=smpi/cpu-threshold:0 \
        --cfg=smpi/grow-injected-times:no --cfg=smpi/coll-selector:ompi --cfg=smpi/send-is-detached-thresh:"$eager" \
        $sums --cfg=smpi/test:1e-6 --cfg=smpi/iprobe:1e-6 --cfg=smpi/wtime:0 --log=root.thres:error \
        "$simulated" "$@" >"$scratch/stdout" 2>"$scratch/stderr" </dev/null &
    running=$!
    wait "$running"
    simulate_status=$?
    running=''
    cat "$scratch/stderr" >&2
    # ranks that wait for each other for ever end a simulation with status 0
    if grep -q 'Deadlock detected' "$scratch/stderr"; then simulate_status=1; fi
    return $simulate_status
}

tab=$(printf '\t')
# find_network NAME|FILE: its four numbers and name, as the program knows them
find_network() {
    platform 1 1 1e-6 1e-9 1e-6 1e-9
    simulate 1 predict --net "$1" --p 2 --json || exit 2
    IFS=$tab read -r alpha beta node_alpha node_beta name <<NETWORK
$("$program" rows "$scratch/stdout" --where predict=network --keys alpha,beta,node_alpha,node_beta,net)
NETWORK
    name=$(printf '%s\n' "$name" | tr -c 'A-Za-z0-9_.\n-' _)
}

# -- calibration: does the simulated network have the alpha and the beta that it was given? -------------------------------------
# compare N WHERE ALPHA BETA: against the N-th fit
compare() {
    "$program" rows "$scratch/stdout" --where bench=p2p-fit --keys alpha_s,beta_s | awk -v n="$1" -v where="$name, $2" -v a="$3" -v b="$4" '
        NR == n { found_a = $1; found_b = $2 }
        END {
        off_a = found_a / a - 1; off_b = found_b / b - 1
        printf "%-24s alpha %.5g us of %.5g (%+.3f%%), beta %.5g ns/word of %.5g (%+.3f%%)\n", where, found_a * 1e6, a * 1e6,
            100 * off_a, found_b * 1e9, b * 1e9, 100 * off_b
        exit !(off_a < 0.01 && off_a > -0.01 && off_b < 0.01 && off_b > -0.01) }' || off=yes
}
if [ -n "$calibrate" ]; then
    off=''
    quick='--repeat 2 --sizes 4:16M:4' # simulated times do not wander
    # shellcheck disable=SC2086 # a list of options
    for each in ${net:-1gbe 10gbe 25gbe 100gbe aries}; do
        find_network "$each"
        platform 2 1 "$alpha" "$beta" "$node_alpha" "$node_beta"
        given_alpha=$alpha given_beta=$beta
        simulate 2 p2p --json $quick || exit 1
        compare 1 "between nodes" "$given_alpha" "$given_beta"
        # ranks 0, 1 on the first node, 2, 3 on the second; pairs in order
        platform 4 2 "$given_alpha" "$given_beta" "$node_alpha" "$node_beta"
        simulate 4 p2p --json --pairs all $quick || exit 1
        compare 1 "inside a node of 2" "$node_alpha" "$node_beta"
        compare 2 "between nodes of 2" "$given_alpha" "$given_beta"
    done
    [ -z "$off" ] || {
        echo "simulate.sh: off by 1% or more" >&2
        exit 1
    }
    exit 0
fi

# -- rows -------------------------------------------------------------------------------------------------------------------
# memory P ALGOS: to $scratch/memory: what they need and what there is [bytes], and whether it fits
memory() {
    "$program" study memory --p "$1" --n "${n_here:-0}" --density "$density" --algo "$2" --device "${device:-auto}" ${check:+--check} --json >"$scratch/memory" || exit
}

groups=$algos # what runs at once: all algorithms, or each with times of its own
if [ -n "$costs" ]; then # all mistakes before the first run
    times=''
    for each in compute select word; do case "$given " in *" $each "*) ;; *) times=$times${times:+,}$each ;; esac done
    "$program" costs "$costs" --model "$model" --device "$on" --compute-device "$compute_on" --algo "$algos" ${select:+--select "$select"} \
        --wire "$wire" --density "$density" --ranks-per-node "$per_node" --times "${times:-none}" --tree "$root" --json >"$scratch/costs.jsonl" || exit
    "$program" rows "$scratch/costs.jsonl" --keys algo,n,compute_s,select_s,word_s --missing - >"$scratch/costs"
    groups=$(cut -f 1 "$scratch/costs")
    [ -z "$n" ] || n=$(sed -n 1p "$scratch/costs" | cut -f 2)
    case $given,$(sed -n 1p "$scratch/costs" | cut -f 3) in
    *compute*) ;;
    *,-) echo "# $costs has no computing of $model on $compute_on: these steps begin with the exchange (--compute S, --compute-on DEVICE)" >&2 ;;
    esac
fi

find_network "$net"
[ -z "$n" ] || n_here=$(awk -v n="$n" -v s="$scale" 'BEGIN { m = int(n / s + 0.5); print m < 1 ? 1 : m }')
# of a word of a shorter gradient, more
scaled() { awk -v c="$1" -v s="$scale" 'BEGIN { printf "%.17g", c * s }'; }
[ -z "$word_cost" ] || bench="$bench --word-cost $(scaled "$word_cost")"
[ -z "$n" ] || bench="--n $n_here $bench"
[ -z "$device" ] || bench="--device $device $bench"
[ -n "$check" ] || bench="--no-check $bench"
[ "$per_node" = 1 ] || bench="--ranks-per-node $per_node $bench"
eager=$(awk -v bytes="$eager" -v s="$scale" 'BEGIN { printf "%d", bytes / s }')

# costs_of ALGO: the options that give it its times
costs_of() {
    # shellcheck disable=SC2046 # five words
    set -- $(awk -F "$tab" -v algo="$1" '$1 == algo' "$scratch/costs")
    [ "$3" = - ] || printf ' --compute %s' "$3"
    [ "$4" = - ] || printf ' --select-cost %s' "$4"
    [ "$5" = - ] || printf ' --word-cost %s' "$(scaled "$5")"
}
# What simulate.sh knows of a row and the program does not.
described=''
[ "$scale" = 1 ] || described=",\"scale\":$scale"
[ -z "$eager_given" ] || described="$described,\"eager_bytes\":$eager_given"
[ -z "$allreduce" ] || described="$described,\"allreduce\":\"$allreduce\""
[ -z "$costs" ] || described="$described,\"model\":\"$model\",\"on\":\"$on\",\"compute_on\":\"$compute_on\""
# run P ALGOS: rows of these algorithms
run() {
    memory "$1" "$2"
    if [ -z "$force" ] && [ -n "$("$program" rows "$scratch/memory" --where fits=false)" ]; then
        fail "P = $1 would need $("$program" rows "$scratch/memory" --keys needed,available |
            awk '{ printf "about %.1f GB of memory and %.1f GB are free", $1 / 1e9, $2 / 1e9 }'); take a smaller --n, --scale, or --force"
    fi
    platform "$1" "$per_node" "$alpha" "$(scaled "$beta")" "$node_alpha" "$(scaled "$node_beta")"
    began=$(date +%s)
    times=''
    [ -z "$costs" ] || times=$(costs_of "$2")
    # shellcheck disable=SC2086 # a list of options
    simulate "$1" bench --json --network "$name" --algo "$2" --density "$density" --pattern "$pattern" $warmup \
        --repeat "$steps" $bench $times
    status=$?
    grep '^{' "$scratch/stdout" | sed 's/}$/'"$(printf '%s' "$described" | sed 's/[\/&]/\\&/g')"'}/' >"$scratch/rows"
    if [ -n "$out" ]; then cat "$scratch/rows" >>"$out"; else cat "$scratch/rows"; fi || exit 1
    most=$("$program" rows "$scratch/rows" --where 'memory_bytes>0' --keys memory_bytes | sort -n | tail -n 1)
    awk -v P="$1" -v algo="${costs:+, $2}" -v s=$(($(date +%s) - began)) -v m="${most:-0}" 'BEGIN {
        printf "# P = %d%s: %d s of wall time, %.2f GB of memory\n", P, algo, s, m / 1e9 }' >&2
    [ "$status" -eq 0 ] || exit "$status"
}
for P in $(echo "$ranks" | tr , ' '); do
    for algos in $groups; do run "$P" "$algos"; done
done
