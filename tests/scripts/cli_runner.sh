#!/bin/sh
# cli_runner.sh: tests/run.sh itself, over a tree of small tests of its own: jobs are bound to no core (scripts/mpi-env.sh
# likewise), and TEST_END ends it in time.
# waits: for tests that sleep
. tests/lib/tap.sh

allowed() { sed -n 's/^Cpus_allowed_list:[ 	]*//p' /proc/self/status; }
here=$(allowed)
unset OMPI_MCA_hwloc_base_binding_policy PRTE_MCA_hwloc_default_binding_policy
# a tree with the runner and the tests that are written into it
mkdir -p "$W/tree/tests/small" "$W/tree/scripts/lib" "$W/tree/build"
cp tests/run.sh "$W/tree/tests"
cp scripts/mpi-env.sh "$W/tree/scripts"
cp scripts/lib/mpi-files.sh "$W/tree/scripts/lib"
small() { # small NAME: a test, from standard input
    { echo '#!/bin/sh' && cat; } >"$W/tree/tests/small/$1.sh"
}
runner() { # runner PATTERN...: output to $W/log
    (cd "$W/tree" && DEVICES=cpu BUILD=build timeout 600 sh tests/run.sh "$@") >"$W/log" 2>&1 </dev/null
}
has() { # has TEXT...: each in the log
    for text in "$@"; do
        why="no \"$text\" in: $(head -c 2000 "$W/log")"
        grep -qF -- "$text" "$W/log" || return 1
    done
}

# -- binding
spread() { # spread P: all ranks of the job whose output is in $W/ranks may run where the shell may
    why="of $here: $(sort "$W/ranks" | uniq -c | head -c 300)"
    [ "$(grep -cFx "$here" "$W/ranks")" -eq "$1" ] && [ "$(grep -c . "$W/ranks")" -eq "$1" ]
}
case $here in
'') skip "jobs are bound to no core" "/proc/self/status does not say where a process may run" ;;
*[-,]*)
    for P in 1 2; do
        # shellcheck disable=SC2016 # for the inner shell
        MPIRUN='' sh -c '. scripts/mpi-env.sh
            exec "$MPIRUN" -np "$1" sed -n "s/^Cpus_allowed_list:[ 	]*//p" /proc/self/status' sh $P >"$W/ranks" 2>"$W/err" </dev/null
        check "mpi-env.sh: jobs of $P are bound to no core" spread $P
        small cli_cores <<END
"$MPIRUN" -np $P sed -n 's/^Cpus_allowed_list:[ 	]*//p' /proc/self/status >"$W/ranks"
echo ok 1
echo 1..1
END
        runner cores
        check "run.sh: nor in tests of $P" spread $P
    done
    # shellcheck disable=SC2016 # for the inner shell
    set_before() { OMPI_MCA_hwloc_base_binding_policy=core sh -c '. scripts/mpi-env.sh; [ "$OMPI_MCA_hwloc_base_binding_policy" = core ]'; }
    check "what is set before stays" set_before
    ;;
*) skip "jobs are bound to no core" "this machine has one core" ;;
esac

# -- side by side
# Each waits for the other one.
for pair in 'left right' 'right left'; do
    small "cli_pair_${pair% *}" <<END
touch "$W/${pair% *}"
for _ in \$(seq 100); do
    [ ! -e "$W/${pair#* }" ] || break
    sleep 0.1
done
[ -e "$W/${pair#* }" ] && echo ok 1 || echo not ok 1
echo 1..1
END
done
TEST_JOBS=2 runner pair
check "two at a time" has '2 passed, 0 failed, 0 skipped' 'cli_pair_left  ' 'cli_pair_right '
rm -f "$W/left" "$W/right"
TEST_JOBS=1 runner pair
check "one at a time: the first waits in vain" has '1 passed, 1 failed, 0 skipped' 'cli_pair_left (status 0'
rm -f "$W/left" "$W/right"
sed -i '1a # waits: for this test' "$W/tree/tests/small/cli_pair_right.sh"
TEST_JOBS=1 runner pair
check "one that waits takes no place" has '2 passed, 0 failed, 0 skipped' 'cli_pair_left  ' 'cli_pair_right '
sed -i 2d "$W/tree/tests/small/cli_pair_right.sh"
rm -f "$W/left" "$W/right"
sed -i '1a # alone: for this test' "$W/tree/tests/small/cli_pair_right.sh"
TEST_JOBS=8 runner pair
check "nor is there another one beside a test that is to be alone" has '1 passed, 1 failed, 0 skipped' 'cli_pair_left (status 0'
small cli_signal <<'END'
trap 'echo ok 1' INT
kill -INT $$
echo 1..1
END
runner signal
check "SIGINT reaches a test" has '1 passed, 0 failed, 0 skipped'
small cli_stays <<END
echo \$\$ >"$W/stays"
sleep 300
END
stopped() { # the runner is stopped, and what it had begun ends
    (cd "$W/tree" && DEVICES=cpu BUILD=build exec sh tests/run.sh stays) >"$W/log" 2>&1 </dev/null &
    stays_runner=$!
    why="nothing has begun"
    for _ in $(seq 600); do
        [ ! -s "$W/stays" ] || break
        sleep 0.1
    done
    [ -s "$W/stays" ] || return 1
    why="it went on"
    kill "$stays_runner"
    wait "$stays_runner"
    for _ in $(seq 600); do kill -0 "$(cat "$W/stays")" 2>/dev/null && sleep 0.1 || return 0; done
    return 1
}
check "what has begun ends with the runner" stopped

# -- long and quick ones
small cli_kind_a <<'END'
echo ok 1
echo 1..1
END
# In one line, or they would be lines of this script, too.
printf '%s\n' '# long: for this test' '# quick: for this test' 'echo ok 1' 'echo 1..1' | small cli_kind_b
TEST_JOBS=1 runner kind
check "a long one comes first" [ "$(grep -o '^cli_kind_.' "$W/log" | paste -s -d ' ' -)" = 'cli_kind_b cli_kind_a' ]
QUICK=1 runner kind
check "of scripts the quick ones alone, when asked for" has '1 passed, 0 failed, 0 skipped' 'cli_kind_b '

# -- TEST_END
small cli_first <<'END'
echo ok 1
echo 1..1
END
small cli_slow <<'END'
echo ok 1 - quick
sleep 300
echo ok 2 - slow
echo 1..2
END
small cli_worse <<'END'
echo not ok 1 - wrong
sleep 300
echo 1..2
END
small cli_zlast <<'END'
echo ok 1
echo 1..1
END
export TEST_END TEST_JOBS=1
TEST_END=$(($(date +%s) + 500))
runner first zlast
check "time enough: both tests run" has '2 passed, 0 failed, 0 skipped'
TEST_END=$(($(date +%s) + 12))
runner slow zlast
check "the time ends in a test: status 0" [ $? -eq 0 ]
check "what it had passed counts, what it had not come to is skipped by name" has '1 passed, 0 failed, 2 skipped' 'cli_slow: all that it had not come to after' 'stopped at TEST_END'
check "later tests are skipped by name" has 'cli_zlast: no time left before TEST_END'
TEST_END=$(($(date +%s) + 12))
runner worse zlast
check "what had failed before stays failed: status 1" [ $? -eq 1 ]
check "and counts" has '0 passed, 1 failed, 2 skipped'
TEST_END=$(($(date +%s) - 1))
runner first zlast
check "no time at all: all are skipped by name" has '0 passed, 0 failed, 2 skipped' 'cli_first: no time left'
unset TEST_END TEST_JOBS
TEST_TIMEOUT=3 runner slow
check "without it, a test that takes too long has failed" has '1 passed, 1 failed, 0 skipped' 'stopped after 3 s?'
finish
