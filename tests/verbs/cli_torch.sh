#!/bin/sh
# cli_torch.sh: the exchanges in DistributedDataParallel of PyTorch (comm/torch/sparsetrain.py) under mpirun, with Gloo beside
# MPI; skipped where no Python has PyTorch with it.
. tests/lib/tap.sh
. scripts/mpi-env.sh
parts='dense every two empty restored sums mistakes strange closed host' # the last one takes the plugin away
leave() { # leave WHY: all is skipped
    for part in $parts; do skip "$part" "$1"; done
    finish
    exit
}
python=$(. scripts/lib/common.sh && find_python 'import torch.distributed as d; assert d.is_available()' && echo "$python")
[ -n "$python" ] || leave "no Python here has PyTorch (sh scripts/deps.sh torch)"
[ -z "${SAN:-}" ] || leave "Python is not built with sanitizers"
case $BUILD in /*) SPARSETRAIN_LIBRARY=$BUILD/libsparsetrain.so.0 ;; *) SPARSETRAIN_LIBRARY=$PWD/$BUILD/libsparsetrain.so.0 ;; esac
PYTHONPATH=$PWD/comm/torch PYTHONDONTWRITEBYTECODE=1
export SPARSETRAIN_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE
mkdir "$W/kept"

# free_port: one on which nobody listens just now
free_port() { "$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
# ranks P COMMAND...: its output to $W/out
ranks() {
    ranks_p=$1
    shift
    MASTER_PORT=$(free_port) timeout "${within:-300}" "$MPIRUN" -np "$ranks_p" "$@" > "$W/out" 2> "$W/err" < /dev/null
    status=$?
}
# fine [PART]: what has run said so, and no more of that; of all that ran, with status 0
fine() {
    why="status $status: $(cat "$W/out" "$W/err" | grep -v '^-*$' | head -c 600)"
    if [ $# -eq 1 ]; then [ "$(grep -cx "fine $1" "$W/out")" -eq 1 ]; else [ "$status" -eq 0 ] && ! grep -qv '^fine' "$W/out" && [ -s "$W/out" ]; fi
}
# shellcheck disable=SC2046,SC2086 # lists of words
cc -Icomm tests/library/sums.c $(pkg-config --cflags --libs ompi-c 2> /dev/null || pkg-config --cflags --libs ompi) -L"$BUILD" -lsparsetrain -Wl,-rpath,"${SPARSETRAIN_LIBRARY%/*}" -o "$W/sums" 2> "$W/err" ||
    not_ok "the program that sums in C compiles" "$(head -c 400 "$W/err")"
for P in 1 2 3 4; do
    # shellcheck disable=SC2086 # a list of words
    ranks "$P" "$python" tests/torch/program.py "$W/kept" $parts
    for part in $parts; do check "$part, P = $P" fine "$part"; done
    check "the end of them, P = $P" fine
    n=$(($(wc -c < "$W/kept/gradients-0") / 12))
    ranks $P "$W/sums" "$W/kept" $n 3 density=0.05
    check "sums are those of C, to the bit, P = $P" fine
done

# ended: what has run ended by itself, not well
ended() {
    why="status $status: $(head -c 600 "$W/err")"
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && ! grep -q '^fine' "$W/out"
}
for how in raised left nan caught; do
    within=100 ranks 2 "$python" tests/torch/program.py "$how" ends
    check "one rank ends before the others: $how" ended
done

stand_in=${SPARSETRAIN_LIBRARY%/*}/tests/libsparsetrain_hostcuda.so
for P in 1 2 3; do
    if [ -r "$stand_in" ]; then
        ranks $P "$python" tests/torch/program.py "$stand_in" gpu
        check "gradients on a GPU, P = $P" fine
    else
        skip "gradients on a GPU, P = $P" "the stand-in for CUDA is not built (no CUDA toolkit)"
    fi
done

# -- started in another way ---------------------------------------------------------------------------------------------------
cat > "$W/ranks.py" << 'END'
import torch, torch.distributed as dist, sparsetrain
dist.init_process_group("gloo", rank=0, world_size=1)
try:
    sparsetrain.register(torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2)))
except sparsetrain.Error as error:
    print("fine" if "rank 0 of 1 of the process group is rank" in str(error) else error) if sparsetrain._ranks()[0] == 0 else None
END
check "a process group of other ranks than MPI's" env MASTER_ADDR=127.0.0.1 sh -c "MASTER_PORT=$(free_port) timeout 100 '$MPIRUN' -np 2 sh -c 'MASTER_PORT=\$((MASTER_PORT + OMPI_COMM_WORLD_RANK)) exec \"$python\" \"$W/ranks.py\"' > '$W/out' 2> '$W/err'; [ \"\$(cat '$W/out')\" = fine ]"
SPARSETRAIN_LIBRARY=/dev/null "$python" -c 'import sparsetrain
try: sparsetrain.version()
except sparsetrain.Error as error: print(error)' > "$W/out" 2>&1
check "a library that is none" grep -q '^libsparsetrain is not found: make install, or name it in SPARSETRAIN_LIBRARY' "$W/out"
finish
