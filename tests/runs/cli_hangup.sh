#!/bin/sh
# cli_hangup.sh: a terminal that goes away takes the run's output with it, not its checkpoint; nor does a signal that
# comes again while the checkpoint is being written.
. tests/lib/tap.sh
. scripts/mpi-env.sh
common="--data synthetic:256x40 --batch 4 --eval-every never"
cat > "$W/terminal.py" << 'END'
"""terminal.py FILE TEXT COMMAND...: COMMAND in a session of its own on a pseudo-terminal, which goes away as soon as FILE
holds TEXT. Exits with its status."""
import os, pty, select, sys, time
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[3], sys.argv[3:])
began = time.time()
while time.time() - began < 240:
    if select.select([master], [], [], 0.1)[0]:
        try:
            os.read(master, 65536)
        except OSError:
            break
    try:
        if sys.argv[2] in open(sys.argv[1]).read():
            break
    except OSError:
        pass
os.close(master)
status = os.waitpid(pid, 0)[1]
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
END
# hung_up NAME COMMAND...: with --out $W/NAME, in its third step; its status
hung_up() {
    hung_name=$1
    shift
    # shellcheck disable=SC2086
    timeout -k 10 300 python3 "$W/terminal.py" "$W/$hung_name/run.jsonl" '"step":3,' "$@" "$PROGRAM" $common --steps "$steps" \
        --out "$W/$hung_name" > "$W/out" 2> "$W/err" < /dev/null
}
# saved NAME: it has stopped early, and every file of its checkpoint verifies
saved() {
    why="no checkpoint: $(ls "$W/$1" 2>&1)"
    ls -d "$W/$1"/checkpoint-* > /dev/null 2>&1 || return 1
    why="a half-written checkpoint: $(ls "$W/$1" 2>&1)"
    ls -d "$W/$1"/checkpoint-*.tmp > /dev/null 2>&1 && return 1
    start "$2" evaluate "$W/$1"
    why="the checkpoint is damaged: $(head -c 300 "$W/err")"
    # shellcheck disable=SC2181
    [ $? -eq 0 ]
}
if command -v python3 > /dev/null 2>&1; then
    steps=1000000
    hung_up alone env
    check "the terminal of a run goes away: status 4" [ $? -eq 4 ]
    check "its checkpoint is whole" saved alone 1
    steps=300
    # shellcheck disable=SC2016
    hung_up nohup sh -c 'cd "$0" && exec nohup "$@"' "$W" # which writes a file where it is
    check "under nohup it goes on to its end: status 0" [ $? -eq 0 ]
    check "with the last checkpoint" [ -d "$W/nohup/checkpoint-00000300" ]
else
    skip "the terminal of a run goes away" "python3 is not installed"
fi
# Signals without end, from when it trains until it has gone.
for p in 1 3; do
    rm -rf "$W/pids"
    if [ $p -eq 1 ]; then launcher=''; else launcher="$MPIRUN -np $p"; fi
    # shellcheck disable=SC2016,SC2086
    timeout -k 10 300 $launcher sh -c 'echo $$ >> "$0"; exec "$@"' "$W/pids" "$PROGRAM" $common --model vgg16 --steps 1000000 \
        --checkpoint-every 1000000 --out "$W/again$p" > "$W/out" 2> "$W/err" < /dev/null &
    job=$!
    until grep -q '"type":"step"' "$W/again$p/run.jsonl" 2> /dev/null || ! kill -0 $job 2> /dev/null; do sleep 0.1; done
    sent=0
    while kill -0 $job 2> /dev/null; do
        for signal in TERM INT HUP USR1; do
            xargs kill -$signal < "$W/pids" 2> /dev/null && sent=$((sent + 1))
        done
        sleep 0.01
    done
    wait $job
    check "signals again and again, P = $p: status 4" [ $? -eq 4 ]
    check "more than one came" [ $sent -gt 1 ]
    check "the checkpoint is whole" saved again$p $p
done
finish
