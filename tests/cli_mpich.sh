#!/bin/sh
# cli_mpich.sh: where a second MPI is installed beside the one of this build (Debian has both side by side), the program
# and the tests of the transport and the exchanges are built with it and run: nothing may lean on one MPI's habits.
. tests/tap.sh
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
        if [ -f "tests/$test.c" ]; then wanted="$wanted $folder/tests/$test"; fi
    done
    # shellcheck disable=SC2086 # a list of files
    if env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -j2 MPI=mpich CUDA=0 BUILD="$folder" "$folder/sparsetrain" $wanted > "$W/make" 2>&1; then
        ok "builds with MPICH"
    else
        not_ok "builds with MPICH" "$(grep -E 'error|undefined' "$W/make" | head -n 3)"
    fi
    # MPICH spins while it waits, so more ranks than cores take minutes
    for test in $wanted; do
        if timeout 300 mpirun.mpich -np 3 "$test" > "$W/out" 2>&1 < /dev/null && ! grep -q '^not ok' "$W/out"; then
            ok "$(basename "$test") with MPICH, P = 3: $(grep -c '^ok' "$W/out") cases"
        else
            not_ok "$(basename "$test") with MPICH, P = 3" "$(grep -v '^ok' "$W/out" | tail -n 5)"
        fi
    done
    MPIRUN=mpirun.mpich
    PROGRAM=$folder/sparsetrain
    check "trains with MPICH" start 3 --data synthetic:96x24 --steps 3 --batch 4 --algo gtopk --density 0.01 --density-warmup none
fi
finish
