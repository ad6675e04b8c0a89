#!/bin/sh
# cli_limits.sh: where the system lets a process open few files or have little memory, one line says so in place of
# whatever MPI makes of it; and what the program does when descriptors run out later.
. tests/lib/tap.sh
. scripts/mpi-env.sh
run="train --data synthetic:96x24 --batch 4 --steps 2 --eval-every 0 --quiet"
# limited P LIMIT ARGS...: the program under this ulimit on every rank; its status
limited() {
    limited_p=$1 limit=$2
    shift 2
    # shellcheck disable=SC2016
    set -- sh -c 'ulimit $0; exec "$@"' "$limit" "$PROGRAM" "$@"
    if [ "$limited_p" -gt 1 ]; then set -- "$MPIRUN" -np "$limited_p" "$@"; fi
    timeout 120 "$@" > "$W/out" 2> "$W/err" < /dev/null
}
for p in 1 2 4; do
    for n in 8 16 40; do
        # shellcheck disable=SC2086
        limited $p "-n $n" $run --out "$W/none"
        check "P = $p, ulimit -n $n: one line" unmade "$W/none" silent told $? "only $n files may be open at once (ulimit -n)"
    done
    # shellcheck disable=SC2086
    limited $p "-S -n 16" $run
    check "P = $p, a soft limit of 16: status 0" [ $? -eq 0 ]
    # shellcheck disable=SC2086
    limited $p "-n 100" $run
    check "P = $p, ulimit -n 100: status 0" [ $? -eq 0 ]
    if [ -n "${SAN:-}" ]; then
        skip "P = $p, ulimit -v 200000: one line" "sanitizers want more themselves"
    else
        # shellcheck disable=SC2086
        limited $p "-v 200000" $run --out "$W/none"
        check "P = $p, ulimit -v 200000: one line" unmade "$W/none" silent told $? "may have only 195 MiB of memory (ulimit -v)"
    fi
done
for verb in bench p2p "evaluate $W"; do
    # shellcheck disable=SC2086
    limited 2 "-n 16" $verb
    check "${verb%% *} with ulimit -n 16" silent told $? "only 16 files may be open at once (ulimit -n)"
done
limited 1 "-n 8" list
check "list needs few: status 0" [ $? -eq 0 ]
# One rank of three alone.
# shellcheck disable=SC2016,SC2086
timeout 120 "$MPIRUN" -np 2 "$PROGRAM" $run : -np 1 sh -c 'ulimit -n 16; exec "$@"' - "$PROGRAM" $run > "$W/out" 2> "$W/err" < /dev/null
check "one rank of three" told $? "only 16 files may be open"
# Descriptors that somebody else holds count.
# shellcheck disable=SC2016,SC2086
timeout 120 sh -c 'ulimit -n 70; exec 3< /dev/null 4< /dev/null 5< /dev/null 6< /dev/null 7< /dev/null 8< /dev/null 9< /dev/null; exec "$@"' - "$PROGRAM" $run \
    > "$W/out" 2> "$W/err" < /dev/null
check "inherited files count" told $? "only 70 files may be open at once (ulimit -n), and"
finish
