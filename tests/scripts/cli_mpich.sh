#!/bin/sh
# cli_mpich.sh: where a second MPI is installed beside the one of this build (Debian has both side by side), the program
# and the tests of the transport and the exchanges are built with it and run: nothing may lean on one MPI's habits. And
# the launcher of one does not start as many runs of one rank of the other.
# long: most of a minute and more
. tests/lib/tap.sh
run="--data synthetic:96x24 --steps 2 --batch 4 --eval-every never"
# started LAUNCHER P ARGUMENT...: the program by that launcher
started() {
    started_by=$1 started_p=$2
    shift 2
    timeout 120 "$started_by" -np "$started_p" "$PROGRAM" "$@" > "$W/out" 2> "$W/err" < /dev/null
}
# refuses LAUNCHER TEXT: to start two, three, five processes; one line, with status 2, and no run
refuses() {
    for p in 2 3 5; do
        # shellcheck disable=SC2086
        started "$1" $p $run --out "$W/wrong"
        check "$1 starts $p: one line, status 2" unmade "$W/wrong" silent told $? "$2 started $p processes"
    done
    for verb in p2p bench; do
        started "$1" 2 $verb
        check "$1 starts $verb" silent told $? "$2 started 2 processes"
    done
    started "$1" 3 version
    check "$1 starts a verb without MPI: it speaks once" [ "$(grep -c '^sparsetrain ' "$W/out")" -eq 1 ]
    # shellcheck disable=SC2086
    started "$1" 1 $run
    check "$1 starts one: it trains" [ $? -eq 0 ]
}
if ! ldd "$PROGRAM" | grep -q libmpich && command -v mpirun.mpich > /dev/null; then
    refuses mpirun.mpich "the mpirun of MPICH or Intel MPI"
else
    skip "mpirun.mpich starts a program with Open MPI" "MPICH is not installed beside it"
fi
name="builds and passes with MPICH too"
if [ -n "${SAN:-}" ]; then
    skip "$name" "not in a build with sanitizers"
elif ldd "$PROGRAM" | grep -q libmpich; then
    skip "$name" "this build is already one with MPICH"
elif ! pkg-config --exists mpich || ! command -v mpirun.mpich > /dev/null; then
    skip "$name" "MPICH is not installed"
else
    folder=$BUILD/mpich
    tests="comm_transport comm_exchange comm_exchange_wire"
    wanted=
    for test in $tests; do
        if [ -n "$(find tests -name "$test.c")" ]; then wanted="$wanted $folder/tests/$test"; fi
    done
    # What includes mpi.h is compiled again; no other object knows of it (make lint holds the folders to that).
    (cd "$BUILD/obj" && find . -type d) | while read -r part; do mkdir -p "$folder/obj/$part"; done
    (cd "$BUILD/obj" && find . -name '*.o' ! -name 'transport_mpi*') | while read -r object; do cp -p "$BUILD/obj/$object" "$folder/obj/$object"; done
    # shellcheck disable=SC2086 # a list of files
    if env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -j2 MPI=mpich CUDA=0 BUILD="$folder" "$folder/sparsetrain" "$folder/tests/libnapping.so" $wanted > "$W/make" 2>&1; then
        ok "builds with MPICH"
    else
        not_ok "builds with MPICH" "$(grep -E 'error|undefined' "$W/make" | head -n 3)"
    fi
    # MPICH spins while it waits, so that more ranks than cores would take minutes.
    for test in $wanted; do
        if timeout -k 10 300 mpirun.mpich -np 3 env LD_PRELOAD="$(pwd)/$folder/tests/libnapping.so" "$test" > "$W/out" 2>&1 < /dev/null && ! grep -q '^not ok' "$W/out"; then
            ok "$(basename "$test") with MPICH, P = 3: $(grep -c '^ok' "$W/out") cases"
        else
            not_ok "$(basename "$test") with MPICH, P = 3" "$(grep -v '^ok' "$W/out" | tail -n 5)"
        fi
    done
    MPIRUN=mpirun.mpich
    PROGRAM=$folder/sparsetrain
    check "trains with MPICH" start 3 --data synthetic:96x24 --steps 3 --batch 4 --algo gtopk --density 0.01 --density-warmup none
    refuses mpirun.openmpi "Open MPI's mpirun"
fi
finish
