#!/bin/sh
# netlab.sh: a laboratory network on one machine: MPI ranks, each in a network namespace of its own, talk real TCP over
# links of a chosen rate and latency. Linux, root, Open MPI. docs/netlab.md says what is real about it and what is not.
#
#   netlab.sh up --p N [--rate 1gbit] [--delay 400us]     N nodes; rate of each link, both ways; one-way delay
#   netlab.sh run [--] COMMAND...                         mpirun in the lab that is up: rank r on node r
#   netlab.sh run --p N [...] [--] COMMAND...             up, run and down in one, whatever happens in between
#   netlab.sh check [--p N ...]                           sparsetrain p2p: alpha and beta, asked for and found
#   netlab.sh status                                      what is up; exit status 1 when nothing is
#   netlab.sh down                                        removes all of it; twice does no harm
#
# The exit status of run and check is the program's; 2 for a mistake, 1 for what the system refused. What a run or check
# leaves behind that is killed (SIGKILL), the next one removes.
#
# A lab is the folder $SPARSETRAIN_NETLAB (/run/sparsetrain-netlab: only root writes there, and it is emptied when the
# namespaces vanish, too), which `up` makes first and `down` removes last, and the namespaces named in its file `lab`.
# They carry the process that made them in their names, so that labs in different folders are strangers to each other.
# Every process of a lab lives in one of them, and that is how `down` finds it, even when all else was lost.
set -u
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
state=${SPARSETRAIN_NETLAB:-/run/sparsetrain-netlab}
build=${BUILD:-build}
net=10.77.0
sysctl=/proc/sys/net
# Headers are then 1 % of a full packet (1500: 6 %), so that beta is that of the rate.
mtu=9000

# shellcheck source=scripts/lib/common.sh
. "$top/scripts/lib/common.sh"
usage() { sed -n '2,/^#$/d; /^#   netlab/s/^#   //p; /^set -u/q' "$0"; }

# -- what is asked for -----------------------------------------------------------------------------------------------
# rate_of TEXT: [bit/s], as tc writes rates
rate_of() {
    printf '%s\n' "$1" | awk '
        tolower($0) !~ /^[0-9]+(\.[0-9]+)?[kmg]?bit$/ { exit }
        { unit = tolower($0); sub(/^[0-9.]+/, "", unit)
          bits = $0 * (unit == "gbit" ? 1e9 : unit == "mbit" ? 1e6 : unit == "kbit" ? 1e3 : 1)
          if (bits >= 1e6 && bits <= 4e11) printf "%.0f\n", bits }'
}
# delay_of TEXT: [ns], as tc writes times
delay_of() {
    printf '%s\n' "$1" | awk '
        $0 !~ /^(0|[0-9]+(\.[0-9]+)?(us|ms|s))$/ { exit }
        { unit = $0; sub(/^[0-9.]+/, "", unit)
          ns = $0 * (unit == "us" ? 1e3 : unit == "ms" ? 1e6 : 1e9)
          if (ns <= 1e9) printf "%.0f\n", ns }'
}

verb=${1:-}
case $verb in
up | run | down | status | check) shift ;;
help | -h | --help)
    usage
    exit 0
    ;;
'') fail "up, run, down, status or check? netlab.sh help shows them" ;;
*) fail "there is no $verb; there are up, run, down, status, check" ;;
esac

p='' rate=1gbit delay=400us
options_hint='there are --p, --rate, --delay'
options 'p rate delay +' "$@"
eval "set -- $words"
case $verb in
down | status) [ -z "$options_given" ] || fail "$verb takes no options" ;;
*)
    case $p in
    '') if [ -n "$options_given" ] || [ "$verb" = up ]; then fail "how many nodes? --p N"; fi ;;
    [2-9] | [1-5][0-9] | 6[0-4]) ;;
    *) fail "--p $p: a number of nodes from 2 to 64 is needed" ;;
    esac
    bits=$(rate_of "$rate") ns=$(delay_of "$delay")
    [ -n "$bits" ] || fail "--rate $rate: 1mbit to 400gbit is needed, such as 1gbit, 2.5gbit, 100mbit"
    [ -n "$ns" ] || fail "--delay $delay: 0 to 1s is needed, such as 0, 400us, 1.5ms"
    ;;
esac
if [ "$verb" = run ]; then
    [ $# -gt 0 ] || fail "run what? netlab.sh run COMMAND..."
else
    [ $# -eq 0 ] || fail "$verb takes no $1"
fi
# mpirun cuts the line that names the agent at blanks.
case $state in
[!/]* | *[[:space:]]*) fail "SPARSETRAIN_NETLAB=$state: an absolute path without blanks is needed" ;;
esac

# -- what it takes ---------------------------------------------------------------------------------------------------
# may BIT: has this process the capability with this number?
may() { [ $((0x$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status) >> $1 & 1)) -eq 1 ]; }
requirements() {
    [ "$(uname -s)" = Linux ] || fail "network namespaces are Linux's; this is $(uname -s)"
    command -v ip >/dev/null 2>&1 || fail "ip is not installed (iproute2: sh scripts/deps.sh netlab)"
    for tool in unshare setsid; do
        command -v $tool >/dev/null 2>&1 || fail "$tool is not installed (util-linux)"
    done
    # CAP_NET_ADMIN and CAP_SYS_ADMIN
    { may 12 && may 21; } || fail "making network namespaces takes root (CAP_NET_ADMIN and CAP_SYS_ADMIN)"
    [ -c /dev/net/tun ] || fail "/dev/net/tun is not there (modprobe tun; containers: --device /dev/net/tun)"
}

# -- the lab that is up ----------------------------------------------------------------------------------------------
# Sets tag, p, rate, delay, bits, ns, owner from the lab's file; fails when there is no lab.
read_lab() {
    [ -f "$state/lab" ] && read -r tag p rate delay bits ns owner <"$state/lab" && [ -n "$ns" ]
}
# Is this lab one that a run or check made for itself (its process is the owner) before it was killed and could not remove it?
forsaken() {
    [ -n "$owner" ] && ! grep -qas 'netlab\.sh' "/proc/$owner/cmdline"
}
spaces() { ip netns list 2>/dev/null | sed -n "s/^\($tag-[a-z0-9]*\).*/\1/p"; }
nodes() {
    node=0
    while [ $node -lt "$p" ]; do
        echo "$tag-$node"
        node=$((node + 1))
    done
}
pids() { for space in $(spaces); do ip netns pids "$space" 2>/dev/null; done; }

# Everything of the lab; interruptions wait. What has begun to end is given a second.
remove() {
    trap '' HUP INT TERM
    if read_lab; then
        tries=0
        while [ $tries -lt 24 ] && left=$(pids) && [ -n "$left" ]; do
            signal=0
            case $tries in 0) signal=TERM ;; 20) signal=KILL ;; esac
            # shellcheck disable=SC2086 # a list of numbers
            kill -$signal $left 2>/dev/null
            tries=$((tries + 1))
            sleep 0.05
        done
        for space in $(spaces); do ip netns del "$space"; done
        if [ -n "$(spaces)" ]; then return 1; fi # ip has said why; what is known of it stays, for another try
    fi
    rm -rf "$state/tmp" "$state/agent" "$state/log" "$state/p2p" "$state/lab"
    rmdir "$state"
}

# -- up --------------------------------------------------------------------------------------------------------------
broken() {
    say "$@"
    remove
    exit 1
}

# make_space NAME ADDRESS: a namespace with a device eth0 that the switch will hold the other end of. TCP as every
# kernel has it, so that labs on different machines are alike, but for its slow start after 0.2 s and more of silence:
# a step over a link that was made slow takes so long, one over the network that is meant does not. No IPv6, which would
# send of itself.
make_space() {
    ip netns add "$1" && ip -n "$1" link set lo up &&
        ip -n "$1" tuntap add dev eth0 mode tun vnet_hdr &&
        ip netns exec "$1" sh -c "cd $sysctl && echo reno >ipv4/tcp_congestion_control &&
            echo 0 >ipv4/tcp_slow_start_after_idle && { [ ! -d ipv6 ] || echo 1 >ipv6/conf/all/disable_ipv6; }" &&
        ip -n "$1" address add "$net.$2/24" dev eth0 &&
        ip -n "$1" link set eth0 mtu $mtu txqueuelen 1000 up
}

# What mpirun calls in the place of ssh, with a host, which is a namespace, and a command. A host has a name of its own,
# as has the folder in which Open MPI keeps its sockets.
write_agent() {
    cat >"$state/agent" <<'AGENT'
space=$1
shift
exec ip netns exec "$space" unshare --uts sh -c '
    { hostname "$1" || echo "$1" >/proc/sys/kernel/hostname; } 2>/dev/null
    shift
    exec sh -c "$*"' agent "$space" "$@"
AGENT
}

in_build() { case $build in /*) echo "$build/$1" ;; *) echo "$top/$build/$1" ;; esac; }
build_switch() {
    switch=$(in_build netlab-switch)
    case $build in
    */san-*) if [ -x "$switch" ]; then return; fi ;; # made by make SAN=... tests
    esac
    why=$(env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -C "$top" BUILD="$build" SAN= "$build/netlab-switch" 2>&1) ||
        fail "the switch does not build: make $build/netlab-switch"
}

up() {
    requirements
    ( # which keeps what is asked for from what that lab is
        read_lab || exit 0
        forsaken || fail "a lab is up already (P = $p, $rate, $delay): netlab.sh down removes it"
        remove
    ) || exit
    build_switch
    why=$(mkdir -m 700 "$state" 2>&1) || {
        [ -d "$state" ] && fail "$state is there already: of a lab that is just going up, or netlab.sh down removes it"
        fail "$why"
    }
    tag=netlab-$$
    [ -z "$(spaces)" ] || tag=$tag$(date +%s) # left by a process of our number whose folder was lost
    trap 'remove; exit 130' INT
    trap 'remove; exit 143' HUP TERM
    owner=
    [ "$verb" = up ] || owner=$$
    { echo "$tag $p $rate $delay $bits $ns $owner" >"$state/lab" && mkdir "$state/tmp" && write_agent; } || broken "cannot write to $state"
    address=0
    for space in $(nodes) "$tag-sw"; do
        address=$((address + 1))
        [ "$space" != "$tag-sw" ] || address=254
        why=$(make_space "$space" $address 2>&1) || broken "cannot make a network namespace: $(echo "$why" | head -n 1)"
    done
    # shellcheck disable=SC2046 # a list of names
    why=$("$switch" "$bits" "$ns" "$state/log" $(nodes) "$tag-sw" 2>&1) || broken "$why"
}

# -- run -------------------------------------------------------------------------------------------------------------
# A message of up to 4 MiB goes out at once: with the usual 64 KiB the sender would first ask the receiver, which costs
# another round trip and bends the line alpha + beta m.
eager=4194304

# Sets MPIRUN and what tells it to start ranks through the agent: before anything is made. Open MPI 5 has a launcher with
# options of its own.
find_mpirun() {
    # shellcheck source=scripts/mpi-env.sh
    . "$top/scripts/mpi-env.sh"
    case $("$MPIRUN" --version 2>/dev/null) in
    *'(Open MPI) 4.'* | *'(OpenRTE) 4.'*) own=--mca launcher=rsh folder=orte_tmpdir_base device=oob_tcp_if_include ;;
    *'(Open MPI) 5.'*) own=--prtemca launcher=ssh folder=prte_tmpdir_base device=prte_if_include ;;
    *) fail "$MPIRUN is not the mpirun of Open MPI 4 or 5; no other can start ranks in a lab" ;;
    esac
}

# forward SIGNAL: to mpirun, also one that is only just starting
forward() {
    interrupted=$1
    [ -z "$job" ] || kill -"$1" "$job" 2>/dev/null
}

# in_lab COMMAND...: its status. mpirun has a session of its own, so that a Ctrl-C comes to it once, through us: at the
# second within five seconds it would flee and leave the ranks behind. SIGTERM means the same to it and, unlike SIGINT,
# is not ignored by a command that a shell starts in the background.
in_lab() {
    hosts=$(nodes | tr '\n' ',')
    set -- --host "${hosts%,}" -np "$p" --map-by node --bind-to none --mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include eth0 \
        --mca btl_tcp_eager_limit $eager --mca btl_tcp_rndv_eager_limit $eager "$@"
    set -- ip netns exec "$tag-sw" "$MPIRUN" "$own" plm "$launcher" "$own" "plm_${launcher}_agent" "sh $state/agent" \
        "$own" "plm_${launcher}_no_tree_spawn" 1 "$own" "$folder" "$state/tmp" "$own" "$device" eth0 "$@"
    job='' interrupted=''
    trap 'forward TERM' HUP INT TERM
    trap 'forward USR1' USR1
    trap 'forward USR2' USR2
    exec 3<&0
    setsid "$@" <&3 3<&- &
    job=$!
    [ -z "$interrupted" ] || forward "$interrupted"
    result=127
    while :; do # a signal ends wait early; 127: nothing left to wait for
        interrupted=
        wait "$job"
        ended=$?
        [ $ended -eq 127 ] || result=$ended
        [ -n "$interrupted" ] || return "$result"
    done
}

# with_lab FUNCTION ARGUMENT...: in the lab that is up or, with --p, in one made for it; the function's status
with_lab() {
    find_mpirun
    if [ -z "$options_given" ]; then
        requirements
        read_lab || fail "no lab is up: netlab.sh up --p N first, or $verb --p N for one that is made and removed"
    else
        up
    fi
    "$@"
    status=$?
    [ -z "$options_given" ] || remove
    return $status
}

# -- check -----------------------------------------------------------------------------------------------------------
program=$(in_build sparsetrain)

measure() {
    # Up to what takes 50 ms, and no more than goes out at once.
    most=$(echo "$bits $eager" | awk '{ b = $1 / 8 * 0.05; if (b > $2) b = $2; if (b < 65536) b = 65536; printf "%.0f", b }')
    in_lab "$program" p2p --json --sizes "4:$most:4" --repeat 10 >"$state/p2p" || return
    echo "P = $p, $rate, $delay; sparsetrain p2p between ranks 0 and 1, times of messages fitted by alpha + beta m:"
    # shellcheck disable=SC2046 # four numbers
    echo "$ns $bits" $("$program" rows "$state/p2p" --where bench=p2p-fit --keys alpha_s,alpha_error_s,beta_s,beta_error_s | head -n 1) | awk '
        function row(name, asked, found, error, unit) {
            printf "%-6s asked %9.4g %-8s found %9.4g +- %.2g (95%%)%s\n", name, asked, unit, found, error,
                (asked > 0 ? sprintf(", %+.1f%%", 100 * (found / asked - 1)) : "")
        }
        { row("alpha", $1 / 1e3, $3 * 1e6, $4 * 1e6, "us"); row("beta", 32e9 / $2, $5 * 1e9, $6 * 1e9, "ns/word") }'
    totals
}
check() {
    [ -x "$program" ] || fail "$program is not there; build it first: make"
    with_lab measure
}

# -- status ----------------------------------------------------------------------------------------------------------
switch_pid() {
    for pid in $(ip netns pids "$tag-sw" 2>/dev/null); do
        if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = netlab-switch ]; then
            echo "$pid"
            return
        fi
    done
}

# What the switch has done so far, a line from its log.
totals() {
    lines=$(wc -l <"$state/log")
    kill -USR1 "$(switch_pid)" 2>/dev/null || return
    tries=0
    while [ "$(wc -l <"$state/log")" -eq "$lines" ] && [ $tries -lt 20 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    sed -n 's/^totals/switch/p' "$state/log" | tail -n 1
}

status() {
    requirements
    if ! read_lab; then
        if [ -d "$state" ]; then say "what is left of a lab is in $state: netlab.sh down removes it"; else echo "no lab is up"; fi
        exit 1
    fi
    if [ -z "$(switch_pid)" ]; then
        say "the switch of the lab $tag is not running: netlab.sh down removes what is left"
        exit 1
    fi
    echo "$tag: P = $p, rate $rate, delay $delay, MTU $mtu"
    echo "rate and delay by a switch in user space (process $(switch_pid), $(sed -n 's/^priority: //p' "$state/log") priority)"
    totals
    printf '%-20s %-12s %16s %16s\n' namespace address 'sent [bytes]' 'received [bytes]'
    address=0
    for space in $(nodes); do
        address=$((address + 1))
        # shellcheck disable=SC2016 # for the shell in there
        ip netns exec "$space" sh -c 'cd /sys/class/net/eth0/statistics && printf "%-20s %-12s %16s %16s\n" "$1" "$2" \
            "$(cat tx_bytes)" "$(cat rx_bytes)"' counters "$space" $net.$address
    done
}

down() {
    [ -d "$state" ] || return 0
    requirements
    remove
}

case $verb in
run) with_lab in_lab "$@" ;;
*) $verb ;;
esac
