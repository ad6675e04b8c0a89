#!/bin/sh
# cli_greeting.sh: ranks that were not started alike say so in one line with status 2, whatever verb some of them have;
# and verbs that need no MPI keep working under a launcher, in a row and beside each other.
# waits: for jobs that are refused
. tests/lib/tap.sh
. scripts/mpi-env.sh
train="train --data synthetic:96x24 --steps 2 --batch 4 --eval-every never"
# job COMMAND...: by mpirun; its status
job() { timeout 120 "$MPIRUN" "$@" > "$W/out" 2> "$W/err" < /dev/null; }
# mixed TEXT FIRST SECOND [RANKS-OF-SECOND]: rank 0 is the program with the words FIRST, the others with SECOND
mixed() {
    # shellcheck disable=SC2086
    job -np 1 "$PROGRAM" $2 : -np "${4:-1}" "$PROGRAM" $3
    check "$2 beside $3" silent told $? "$1"
}
for verb in list version --help man "completion bash" bench p2p evaluate "data show" frobnicate; do
    mixed "rank 0 has the verb train where rank 1 has the verb $verb;" "$train" "$verb"
done
mixed "rank 0 has the verb bench where rank 1 has the verb bench select;" bench "bench select --help"
mixed "rank 0 has the verb list where rank 1 has the verb train;" list "$train" 3
mixed "rank 0 has the verb train where rank 1 has the verb help;" "$train" "$train --help" 2
mixed "rank 0 has p2p where rank 1 has p2p --help;" p2p "p2p --help"
# The middle one of three
# shellcheck disable=SC2086
job -np 1 "$PROGRAM" $train : -np 1 "$PROGRAM" list : -np 1 "$PROGRAM" $train
check "rank 1 of 3 alone is named" told $? "where rank 1 has the verb list;"
for setting in SPARSETRAIN_PART_BYTES=64 SPARSETRAIN_NO_SHARED=1; do
    for verb in "$train" "bench --n 1000 --repeat 1" "p2p --repeat 1"; do
        # shellcheck disable=SC2086
        job -np 1 "$PROGRAM" $verb : -np 2 env $setting "$PROGRAM" $verb
        check "$setting on some ranks: ${verb%% *}" silent told $? "rank 0 has no ${setting%=*} where rank 1 has $setting;"
    done
done
# What is the same for all goes on.
for p in 2 4; do
    for verb in list version --help "predict --net 1gbe --n 1000" "bench wire --help"; do
        # shellcheck disable=SC2086
        job -np $p "$PROGRAM" $verb
        check "$verb on $p ranks: status 0" [ $? -eq 0 ]
        # shellcheck disable=SC2086
        "$PROGRAM" $verb > "$W/alone" 2> /dev/null
        check "which prints once" [ "$(wc -l < "$W/out")" -eq "$(wc -l < "$W/alone")" ]
    done
done
# Verbs in a row in one launched process, which may start MPI once.
for p in 1 2; do
    job -np $p sh -c "\"$PROGRAM\" list && \"$PROGRAM\" $train && \"$PROGRAM\" version"
    check "list, train, version in a row on $p ranks" [ $? -eq 0 ]
    check "each printed once" [ "$(grep -c '^Models' "$W/out") $(grep -c '^sparsetrain .*commit' "$W/out")" = "1 1" ]
done
# A rank may be in an earlier verb when another is in MPI already.
# shellcheck disable=SC2086
job -np 1 sh -c "sleep 1; \"$PROGRAM\" list && \"$PROGRAM\" $train" : -np 1 "$PROGRAM" $train
check "one rank lists first" [ $? -eq 0 ]
# A text needs no MPI: here Open MPI could not even start.
for verb in bench p2p evaluate train; do
    why=$(OMPI_MCA_pml=none-such "$PROGRAM" $verb --help 2>&1 > "$W/out")
    check "$verb --help starts no MPI" [ "$?$why" = 0 ]
done
finish
