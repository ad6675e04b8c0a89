#!/bin/sh
# cli_netlab.sh: scripts/netlab.sh: every mistake is one line and exit status 2; where this machine lets us make network
# namespaces, real labs: ranks on nodes of their own, their bytes on the wire, statuses, and that nothing is left of a
# lab however it ends. Of times only what no busy machine can spoil is looked at: nothing comes sooner than the links
# allow. When exactly it comes: netlab_links.c.
# shellcheck disable=SC2016 # what is in single quotes is for the shells of the ranks
. tests/lib/tap.sh
export SPARSETRAIN_NETLAB="$W/lab"
export OMPI_MCA_odls_base_sigkill_timeout=0 # our ranks have nothing to save when they are told to end
all_down() { for folder in lab other; do SPARSETRAIN_NETLAB=$W/$folder sh scripts/netlab.sh down; done; }
trap 'all_down; rm -rf "$W"' EXIT
mark=7654.$$ # seconds that our ranks want to sleep: how we know their processes again
echo "$mark" >"$W/mark"
printf '%s\n' "$W/lab" "$mark" >"$W/ours"

# lab ARGUMENT...: netlab.sh, its number in $W/pid; commands from the folder $first come before others
first=
lab() {
    PATH=${first:+$first:}$PATH timeout 120 sh -c 'echo $$ >"$1"; shift; exec sh scripts/netlab.sh "$@"' lab "$W/pid" "$@" >"$W/out" 2>"$W/err" </dev/null
}
# refused TEXT ARGUMENT...: status 2, one line, which contains TEXT
refused() {
    refused_text=$1
    shift
    lab "$@"
    refused_status=$?
    why="status $refused_status: $(head -c 400 "$W/err")"
    [ $refused_status -eq 2 ] && [ "$(wc -l <"$W/err")" -eq 1 ] && [ ! -s "$W/out" ] && grep -qF -- "$refused_text" "$W/err"
}
# mistake TEXT ARGUMENT...
mistake() { check "refused: $(shift && echo "$*")" refused "$@"; }

mistake 'up, run, down'
mistake 'there is no start' start
mistake 'unknown option --np' up --np 3
mistake '--p needs a value' up --p
mistake 'how many nodes' up
mistake 'how many nodes' run --rate 1gbit true
mistake 'how many nodes' up --p ''
for p in 1 0 65 -2 2.5 x; do mistake 'from 2 to 64' up --p "$p" --rate 1gbit; done
for rate in 0 1000 1gbps fast -1gbit 1e3mbit 1.gbit 999kbit 401gbit ''; do mistake '--rate' up --p 2 --rate "$rate"; done
for delay in 5 1m -1ms 1.1s us ''; do mistake '--delay' up --p 2 --delay "$delay"; done
mistake 'run what' run --p 2
mistake 'takes no now' up --p 2 now
mistake 'takes no options' down --p 2
mistake 'takes no options' status --p 2
SPARSETRAIN_NETLAB=lab mistake 'an absolute path' status
lab help
check "help shows the verbs" [ "$(grep -c '^netlab.sh [a-z]' "$W/out")" -eq 6 ]

# A machine that lacks something: tools in a folder of their own, one of them missing or another.
mkdir "$W/bin"
for tool in sh dirname sed awk uname id grep cat tr; do ln -s "$(command -v $tool)" "$W/bin/$tool"; done
poor() { # poor TEXT: up is refused with these tools alone
    sh=$(command -v sh)
    env PATH="$W/bin" "$sh" scripts/netlab.sh up --p 2 >"$W/out" 2>"$W/err" </dev/null
    poor_status=$?
    why="status $poor_status: $(cat "$W/err")"
    [ $poor_status -eq 2 ] && [ "$(wc -l <"$W/err")" -eq 1 ] && grep -qF -- "$1" "$W/err"
}
if [ "$(uname -s)" = Linux ]; then check "without iproute2" poor 'iproute2'; fi
rm "$W/bin/uname"
printf '#!/bin/sh\necho Darwin\n' >"$W/bin/uname"
chmod +x "$W/bin/uname"
check "not on Linux" poor 'this is Darwin'
check "nothing was made" [ ! -e "$W/lab" ]

# -- labs ------------------------------------------------------------------------------------------------------------
probe=probe-$$
# possible: what the rest takes; else $why
possible() {
    why="iproute2 is not installed"
    command -v ip >/dev/null || return
    why="this is not root"
    [ "$(id -u)" = 0 ] || return
    why="the MPI here is neither Open MPI 4 nor 5"
    "$MPIRUN" --version 2>/dev/null | grep -qE '\((Open MPI|OpenRTE)\) [45]\.' || return
    why="no network namespaces or tun devices can be made here"
    [ -c /dev/net/tun ] && ip netns add $probe 2>/dev/null || return
    ip -n $probe tuntap add dev probe mode tun 2>/dev/null
    possible_status=$?
    ip netns del $probe
    return $possible_status
}
if ! possible; then
    for name in "a lab of three" "statuses" "interrupted labs"; do skip "$name" "$why"; done
    if [ "$(uname -s)" = Linux ] && command -v ip >/dev/null && [ "$(id -u)" != 0 ]; then
        check "only for root" refused 'takes root' up --p 2
    fi
    finish
    exit
fi

# ours: processes of a lab that was ours, as lines. Patterns come from files, or these very commands would be found.
ours() { cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' | grep -F -f "$W/ours"; }
# nothing_left: of the labs that are known; processes get a moment to die
nothing_left() {
    for try in 1 2 3 4 5 6 7 8 9 10; do
        why="processes: $(ours)"
        if ! ours >/dev/null; then break; fi
        [ $try -lt 10 ] || return
        sleep 0.3
    done
    why="namespaces: $(ip netns list)"
    if ip netns list | grep -qF -f "$W/spaces"; then return 1; fi
    why="files: $(ls "$W/lab" 2>&1)"
    [ ! -e "$W/lab" ]
}
known() { # known: remembers the lab that netlab.sh has just made under its number
    echo "netlab-$(cat "$W/pid")-" | tee -a "$W/spaces" >>"$W/ours"
}
sent() { awk -v node="-$1\$" '$1 ~ node { print $3 }' "$W/out"; } # sent NODE: bytes, in the output of status

lab up --p 3 --rate 200mbit --delay 2ms
status=$?
known
check "up" [ $status -eq 0 ]
check "silently" [ "$(cat "$W/out" "$W/err" | wc -c)" -eq 0 ]
check "no second one" refused 'up already (P = 3, 200mbit, 2ms)' up --p 2
check "nor one for a single run" refused 'up already' run --p 2 true
lab status
check "status: what was asked for" grep -q 'P = 3, rate 200mbit, delay 2ms' "$W/out"
before=$(sent 0)
lab run -- sh -c '[ $OMPI_COMM_WORLD_RANK = 1 ] && kill -9 $$; exec sleep '$mark
check "a rank that is killed: 137" [ $? -eq 137 ]
ranks_gone() { for try in 1 2 3 4 5 6 7 8 9 10; do ours | grep -qF -f "$W/mark" || return 0; sleep 0.3; done; return 1; }
check "the others end" ranks_gone
lab run sh -c 'echo $OMPI_COMM_WORLD_RANK $(hostname) $(ip -o -4 address show dev eth0) $(readlink /proc/self/ns/net)'
apart() { # rank r on node r with address r + 1; three namespaces, none of them ours
    why="$(cat "$W/out" "$W/err")"
    awk -v ours="$(readlink /proc/self/ns/net)" '
        $2 ~ "-" $1 "$" && $5 == "inet" && $6 == "10.77.0." $1 + 1 "/24" && $NF != ours && !seen[$NF]++ { good++ }
        END { exit !(NR == 3 && good == 3) }' "$W/out"
}
check "and the lab is as before: each rank in its own namespace, behind its own address" apart

lab check
check "check: alpha and beta beside what was asked for" [ "$(grep -cE '^(alpha +asked +2000 us|beta +asked +160 ns/word) +found +[-+0-9.e]+ ' "$W/out")" -eq 2 ]
lab status
# p2p sends a message of a MiB at least 13 times each way: 3 before and 10 rounds
passed() {
    why="$before bytes before, then $(cat "$W/out")"
    [ $(($(sent 0) - before)) -gt 13000000 ] && [ "$(sent 1)" -gt 13000000 ] && [ "$(sent 2)" -lt 1000000 ]
}
check "what two ranks sent passed their devices, not that of the third" passed
least() { sed -n 's/.*"bench":"p2p".*"bytes":'"$1"',.*"min_s":\([-+0-9.e]*\).*/\1/p' "$W/lab/p2p"; }
takes() { awk -v t="$(least "$1")" -v bound="$2" 'BEGIN { exit !(t >= bound) }'; }
check "4 bytes take no less than the delay" takes 4 0.002
check "a MiB takes no less than rate and delay allow" takes 1048576 0.0439
check "the switch knows both" grep -qx 'links: 25000000 bytes/s, 0.002 s' "$W/lab/log"

mine=$SPARSETRAIN_NETLAB
export SPARSETRAIN_NETLAB="$W/other"
lab up --p 2
check "a lab in another folder" [ $? -eq 0 ]
known
lab down
check "which goes" [ ! -e "$W/other" ]
export SPARSETRAIN_NETLAB="$mine"
lab status
check "without a trace in this one" [ $? -eq 0 ]

kill -9 "$(sed -n 's/.*user space (process \([0-9]*\),.*/\1/p' "$W/out")"
sleep 0.2
lab status
check "a switch that died is found out" sh -c "[ $? -eq 1 ] && grep -q 'switch .* not running' '$W/err'"
lab down
check "down" [ $? -eq 0 ]
check "nothing is left" nothing_left
lab down
check "down again: nothing, silently" sh -c "[ $? -eq 0 ] && [ ! -s '$W/out' ] && [ ! -s '$W/err' ]"
lab status
check "status: none, exit status 1" sh -c "[ $? -eq 1 ] && grep -q 'no lab is up' '$W/out'"
check "run without a lab" refused 'no lab is up' run true

# ends NAME STATUS COMMAND...: a lab for this command alone
ends() {
    ends_name=$1 ends_status=$2
    shift 2
    lab run --p 2 --rate 1gbit --delay 0 -- "$@"
    status=$?
    known
    if [ "$ends_status" = any ]; then ends_status=$((status > 0 ? status : 1)); fi
    why="status $status: $(head -c 400 "$W/err")"
    if [ $status -eq "$ends_status" ]; then ok "$ends_name: status $status"; else not_ok "$ends_name: status $ends_status" "$why"; fi
    check "$ends_name: nothing is left" nothing_left
}
# rank 0 does something to netlab.sh when all ranks run
when_all_run='touch '$W'/runs-$OMPI_COMM_WORLD_RANK; while [ ! -e '$W'/runs-0 ] || [ ! -e '$W'/runs-1 ]; do sleep 0.05; done'
rank_0="$when_all_run"'; [ $OMPI_COMM_WORLD_RANK = 1 ] || '
ends "a run in a lab of its own" 5 sh -c 'exit 5'
ends "a rank is killed" 137 sh -c "$rank_0"'kill -9 $$; exec sleep '$mark
rm -f "$W"/runs-*
ends "Ctrl-C" any sh -c "$rank_0""kill -INT \$(cat '$W/pid'); exec sleep $mark"
rm -f "$W"/runs-*
ends "SIGTERM" any sh -c "$rank_0""kill -TERM \$(cat '$W/pid'); exec sleep $mark"
rm -f "$W"/runs-*
lab run --p 2 -- sh -c "$rank_0""kill -KILL \$(cat '$W/pid'); exec sleep $mark"
check "killed, it leaves its lab" [ -e "$W/lab" ]
known
lab down
check "which down removes" nothing_left
rm -f "$W"/runs-*
lab run --p 2 -- sh -c "$rank_0""kill -KILL \$(cat '$W/pid'); exec sleep $mark"
known
lab run --p 3 -- true
status=$?
check "or the next run, in a lab of its own" sh -c "[ $status -eq 0 ] && ! grep -q netlab.sh '$W/err'"
known
check "after which nothing is left" nothing_left

# A system that fails in the middle of up: the ninth use of ip goes wrong, or Ctrl-C comes then.
real=$(command -v ip)
cat >"$W/bin/ip" <<SCRIPT
#!/bin/sh
echo >>'$W/uses'
if [ \$(wc -l <'$W/uses') -eq 9 ]; then
    [ "\$INTERRUPT" != yes ] || kill -INT \$(cat '$W/pid')
    [ "\$INTERRUPT" = yes ] || { echo 'no more of these' >&2; exit 1; }
fi
exec $real "\$@"
SCRIPT
chmod +x "$W/bin/ip"
rm "$W/bin/uname"
first=$W/bin
export INTERRUPT
for interrupt in no yes; do
    rm -f "$W/uses"
    INTERRUPT=$interrupt
    lab up --p 3
    status=$?
    known
    case $interrupt in
    no) check "up that fails: status 1 and one line" sh -c "[ $status -eq 1 ] && grep -q 'no more of these' '$W/err' && [ \$(wc -l <'$W/err') -eq 1 ]" ;;
    yes) check "Ctrl-C during up: status 130" [ $status -eq 130 ] ;;
    esac
    check "is undone" nothing_left
done
first=
if command -v setpriv >/dev/null; then
    check "root without the right to" sh -c "setpriv --bounding-set -net_admin sh scripts/netlab.sh up --p 2 2>&1 | grep -q 'takes root'"
fi
check "no tun" sh -c "unshare -m sh -c 'mount -t tmpfs none /dev/net && sh scripts/netlab.sh up --p 2' 2>&1 | grep -q '/dev/net/tun is not there'"
finish
