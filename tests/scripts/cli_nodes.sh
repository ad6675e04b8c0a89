#!/bin/sh
# cli_nodes.sh: what docs/nodes.md says of several nodes: two nodes of two ranks each, every node a network namespace with a host name
# and files of its own, joined by a bridge; a script stands in for ssh. Skipped where the system does not let us make them.
# waits: for ranks that are started far away
. tests/lib/tap.sh
. scripts/mpi-env.sh
tag=stnodes$$
spaces() { ip netns list 2> /dev/null | sed -n "s/^\($tag-[a-z0-9]*\).*/\1/p"; }
down() {
    for space in $(spaces); do
        for pid in $(ip netns pids "$space" 2> /dev/null); do kill -9 "$pid" 2> /dev/null; done
        ip netns del "$space"
    done
}
trap 'down; rm -rf "$W"' EXIT
# The nodes, and where mpirun is: addresses 10.88.0.1 to 3 on a bridge in a namespace of its own.
up() {
    ip netns add "$tag-sw" && ip -n "$tag-sw" link add br0 type bridge && ip -n "$tag-sw" link set br0 up || return 1
    up_i=0
    for space in node1 node2 head; do
        up_i=$((up_i + 1))
        ip netns add "$tag-$space" && ip -n "$tag-$space" link add eth0 type veth peer name "w$up_i" netns "$tag-sw" &&
            ip -n "$tag-$space" address add "10.88.0.$up_i/24" dev eth0 && ip -n "$tag-$space" link set eth0 up && ip -n "$tag-$space" link set lo up &&
            ip -n "$tag-sw" link set "w$up_i" master br0 && ip -n "$tag-sw" link set "w$up_i" up || return 1
    done
}
case $("$MPIRUN" --version 2> /dev/null) in
*'(Open MPI) 4.'* | *'(OpenRTE) 4.'*) ;;
*)
    skip "two nodes" "$MPIRUN is not the mpirun of Open MPI 4"
    finish
    exit
    ;;
esac
if ! command -v ip > /dev/null 2>&1 || ! command -v unshare > /dev/null 2>&1 || ! up > "$W/out" 2>&1; then
    skip "two nodes" "no network namespaces joined by a bridge: $(head -n 1 "$W/out" 2> /dev/null)"
    finish
    exit
fi
# In place of ssh. Where $W/hidden is, the folder $W/site of the second node is another one: $W/hidden/to, or an empty one.
cat > "$W/agent" << AGENT
#!/bin/sh
host=\$1
shift
exec ip netns exec $tag-\$host unshare --uts --mount sh -c '
    hostname "\$1" || echo "\$1" > /proc/sys/kernel/hostname
    if [ "\$1" = node2 ] && [ -d "$W/hidden" ]; then mount --bind "$W/hidden" "$W/site"; fi
    shift
    exec sh -c "\$*"' agent "\$host" "\$@"
AGENT
chmod +x "$W/agent"
mkdir "$W/site"
printf 'node1 slots=2\nnode2 slots=2\n' > "$W/hosts"
# nodes ARGS...: mpirun with that script; what mpi-env.sh sets for one machine is not for several
nodes() {
    env -u OMPI_MCA_pml -u OMPI_MCA_btl -u OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$W/agent" OMPI_MCA_plm_rsh_no_tree_spawn=1 \
        timeout 120 ip netns exec "$tag-head" "$(command -v "$MPIRUN")" --hostfile "$W/hosts" "$@" > "$W/out" 2> "$W/err" < /dev/null
}
tcp="--mca pml ob1 --mca btl self,vader,tcp --mca btl_tcp_if_include eth0 --bind-to none"
small="--data synthetic:256x16 --batch 4 --steps 4 --eval-every 0"
# said TEXT: by the program or by mpirun
said() {
    why="said: $(head -c 600 "$W/err")"
    grep -qF -e "$1" "$W/err" "$W/out"
}
# shellcheck disable=SC2086 # lists of options
{
    for map in ppr:2:node slot node; do
        nodes -np 4 --map-by $map $tcp "$PROGRAM" --algo hitopk $small --out "$W/site/$(echo $map | tr : -)"
        check "hitopk by --map-by $map: two nodes" said '4 ranks on 2 nodes'
    done
    start 4 --algo hitopk --ranks-per-node 2 $small --out "$W/one"
    check "the bits of one machine with --ranks-per-node 2" [ "$(hash_of "$W/site/ppr-2-node")" = "$(hash_of "$W/one")" ]
    check "the data once per node" grep -q 'once per node' "$W/out"
    nodes -np 4 $tcp -x SPARSETRAIN_NO_SHARED=1 "$PROGRAM" $small
    check "or on each rank" said 'on each rank'
    nodes -np 2 --map-by node $tcp "$PROGRAM" p2p --sizes 4:4K:4 --repeat 2 --out "$W/my.net"
    check "p2p says what it measured" said 'ranks 0 and 1, between nodes'

    # The faults of docs/nodes.md.
    nodes -np 6 $tcp "$PROGRAM" $small
    check "too many ranks" said 'There are not enough slots available'
    nodes -np 4 --mca btl self,vader "$PROGRAM" $small
    check "a network that was turned off" said 'At least one pair of MPI processes are unable to reach each other'
    nodes -np 4 $tcp "$W/nowhere"
    check "a program that is not there" said 'unable to launch the specified application'
    mkdir -p "$W/site/text" "$W/hidden"
    for split in train valid test; do seq 400 > "$W/site/text/ptb.$split.txt"; done
    nodes -np 4 $tcp "$PROGRAM" --model lstm --hidden 4 --bptt 5 --batch 2 --steps 2 --data "ptb:$W/site/text"
    status=$?
    check "data that one node lacks: one line, status 2" sh -c "[ $status -eq 2 ] && [ \$(grep -c '^sparsetrain: ' '$W/err') -eq 1 ] && grep -q '^sparsetrain: $W/site/text holds no text' '$W/err'"
    mkdir "$W/hidden/text"
    for split in train valid test; do seq 401 800 > "$W/hidden/text/ptb.$split.txt"; done
    nodes -np 4 $tcp "$PROGRAM" --model lstm --hidden 4 --bptt 5 --batch 2 --steps 2 --data "ptb:$W/site/text"
    status=$?
    check "other data on one node: one line, status 2" sh -c "[ $status -eq 2 ] && [ \$(grep -c '^sparsetrain: ' '$W/err') -eq 1 ] && grep -q 'the ranks hold different data' '$W/err'"
    nodes -np 4 $tcp "$PROGRAM" $small --out "$W/site/unshared"
    status=$?
    check "a directory that is not shared: one line, status 2" sh -c "[ $status -eq 2 ] && [ \$(grep -c '^sparsetrain: ' '$W/err') -eq 1 ] && grep -q 'rank 2 cannot write to --out .*name a directory that all ranks see' '$W/err'"
    rm -r "$W/hidden"

    # A node that dies in the middle.
    (
        for _ in $(seq 400); do
            if ls "$W"/site/dies/checkpoint-*0/model.ckpt > /dev/null 2>&1; then break; fi
            sleep 0.05
        done
        for pid in $(ip netns pids "$tag-node2"); do kill -9 "$pid" 2> /dev/null; done
    ) &
    nodes -np 4 $tcp "$PROGRAM" --algo gtopk --density-warmup none --data synthetic:256x16 --batch 4 --steps 4000 --eval-every 0 --checkpoint-every 10 --out "$W/site/dies"
    status=$?
    wait
    check "a node that dies ends the job (status $status)" [ $status -ne 0 ]
    reached=$(find "$W/site/dies" -name model.ckpt | sort | tail -n 1 | sed 's/.*checkpoint-0*\([0-9]*\).*/\1/')
    nodes -np 4 $tcp "$PROGRAM" --resume "$W/site/dies" --steps $((reached + 5))
    status=$?
    check "and it goes on from step $reached (status $status)" sh -c "[ $status -eq 0 ] && grep -q '\"completed\":true' '$W/site/dies/run.jsonl'"
}
finish
