#!/bin/sh
# cli_gpu_bench.sh: scripts/bench/gpu.py keeps what it has measured when the time ends, and gives each length and each mode of
# the compiler its share. The program and PyTorch are stand-ins that are slow where they are told to be, and so is the
# clock, so that nothing here depends on how fast this machine is.
. tests/lib/tap.sh

if ! command -v python3 >/dev/null 2>&1; then
    skip "bench/gpu.py" "python3 is not installed"
    finish
    exit
fi
mkdir -p "$W/scripts/bench" "$W/clock" "$W/torch"
cp scripts/bench/gpu.py "$W/scripts/bench"
# bench select and bench net: rows at once, but slow in the run whose number stands in $SLOW, after the first row
cat >"$W/program" <<'END'
#!/bin/sh
echo "$*" >>"$NOTES"
shift
part=$1 n='' batch=''
while [ $# -gt 0 ]; do
    case $1 in --n) n=$2 ;; --batch) batch=$2 ;; esac
    shift
done
slow() {
    case " $SLOW " in *" $(wc -l <"$NOTES") "*) ;; *) return ;; esac
    [ -z "$TIMELESS" ] || exec sleep 300
    echo 300 >"$SLEEP"
    exit
}
if [ "$part" = select ]; then
    for name in exact reuse; do
        echo "{\"bench\":\"select\",\"selector\":\"$name\",\"n\":$n,\"density\":0.01,\"k\":1,\"mean_s\":1.5,\"median_s\":0.5,\"wrong\":0}"
        slow
    done
else
    slow
    for size in $(echo "$batch" | tr , ' '); do echo "{\"bench\":\"net\",\"backend\":\"none\",\"batch\":$size,\"images_per_s\":10.0,\"words_per_s\":20.0,\"wrong\":0}"; done
fi
END
chmod +x "$W/program"
cat >"$W/torch/torch.py" <<'END'
import time, types
__version__ = "stand-in"
bfloat16 = contiguous_format = channels_last = None
backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(), cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()))
class autocast:
    def __init__(self, *_, **__): pass
    def __enter__(self): pass
    def __exit__(self, *_): pass
class SGD:
    def __init__(self, *_, **__): pass
    def zero_grad(self, **_): pass
    def step(self): pass
optim = types.SimpleNamespace(SGD=SGD)
def topk(*_, **__): pass
def compile(work, mode=None, dynamic=False):
    return work if mode else lambda: time.sleep(300)
END
cat >"$W/scripts/bench/peer_models.py" <<'END'
import types
WEIGHT_DECAY = {"resnet20": 0}
class Model:
    def to(self, *_, **__): return self
    def parameters(self): return []
def open_model(*_): return Model()
def open_optimiser(_, __, preset): return __import__("torch").SGD()
def takes_tokens(_): return False
def magnitudes(*_): return None
class Batch:
    rows = 8
    def __init__(self, *_): pass
    def loss(self): return types.SimpleNamespace(backward=lambda: None)
END
# Time passes where something is slow, and a second with each process; timeouts and alarms are of this time.
cat >"$W/clock/sitecustomize.py" <<'END'
import os, signal, subprocess, time
now, deadline, started = 1000.0, None, subprocess.run
def alarm(seconds):
    global deadline
    deadline = now + seconds if seconds else None
def sleep(seconds):
    global now
    ends = now + seconds
    if deadline is None or ends < deadline:
        now = ends
        return
    now = deadline
    signal.raise_signal(signal.SIGALRM)
def run(*arguments, timeout, **rest):
    result = started(*arguments, **rest)
    asleep = os.environ["SLEEP"]
    seconds = 1.0
    if os.path.exists(asleep):
        with open(asleep) as file: seconds += float(file.read())
        os.remove(asleep)
    sleep(min(timeout, seconds))
    if seconds > timeout: raise subprocess.TimeoutExpired(arguments, timeout)
    return result
if os.environ.get("SLEEP"):
    signal.alarm, time.sleep, time.monotonic, subprocess.run = alarm, sleep, lambda: now, run
END
NOTES=$W/notes SLEEP=$W/sleep TIMELESS=''
export NOTES SLOW SLEEP TIMELESS
# bench ARGUMENTS...: rows to $W/out, with PyTorch where $peer says so; its status
peer=$W/clock
bench() {
    : >"$NOTES"
    PYTHONPATH=$peer timeout -k 20 300 python3 "$W/scripts/bench/gpu.py" "$W/program" "$@" --device cpu >"$W/out" 2>"$W/err" </dev/null
}
# rows PATTERN COUNT: that many rows are so
rows() {
    why="$(head -c 2000 "$W/out"; head -c 500 "$W/err")"
    [ "$(grep -c -- "$1" "$W/out")" -eq "$2" ]
}

SLOW=''
bench topk --n 100,200 --rounds 3 --seconds 100
check "selectors: three rounds of both lengths" rows '"gpu_topk".*"rounds": 3' 4
check "each length has its first round first" [ "$(sed -n 's/.*--n \([0-9]*\) .*/\1/p' "$NOTES" | tr '\n' ' ')" = '100 200 100 200 100 200 ' ]
SLOW=3
bench topk --n 100,200 --rounds 3 --seconds 6
status=$?
check "a round that is too slow: the rounds before are kept" rows '"gpu_topk".*"n": 200.*"rounds": 1' 2
check "with its rows that had come" rows '"selector": "exact", "n": 100.*"rounds": 2' 1
check "the other row has the round before" rows '"selector": "reuse", "n": 100.*"rounds": 1' 1
check "and is named" rows '"skipped": "n 100".*1 rows of this round are kept' 1
check "which is no failure" [ $status -eq 0 ]
SLOW='1 3'
bench topk --n 100,200 --rounds 1 --seconds 12
check "a length that is too slow leaves the next its share" rows '"gpu_topk".*"n": 200' 2
check "and what it had is kept" rows '"gpu_topk".*"n": 100' 1
SLOW=3
peer=$W/clock:$W/torch
bench net --batch 8 --precision f32 --compile reduce-overhead,max-autotune --compile-batches 8 --rounds 1 --seconds 40
check "networks: next to the compiler" rows '"ratio_compiled": [0-9]' 1
peer=$W/clock
bench net --batch 8 --precision f32 --rounds 3 --seconds 6
check "a round of a network that is too slow: those before are kept" rows '"gpu_net".*"rounds": 2' 1
SLOW=''
peer=$W/clock:$W/torch
bench net --batch 8 --precision f32 --compile default,reduce-overhead,max-autotune --compile-batches 8 --rounds 1 --seconds 24
check "a mode of the compiler that does not end leaves the next ones theirs" rows '"peer_images_per_s": {.*"compiled-reduce-overhead": .*"compiled-max-autotune": ' 1
check "and is named" rows '"skipped": "compiled-default, batch 8"' 1
bench net --model gpt --preset char --precision tf32 --compile default --compile-batches '' --rounds 1 --seconds 24
check "a decoder: its preset, its words, beside PyTorch's" rows '"model": "gpt", "batch": 64, "preset": "char", "precision": "tf32".*"words_per_s": 20.0.*"ratio_eager": [0-9].*"compiled": null' 1
check "and the program is asked for it" grep -q -- '--model gpt --batch 64 .*--precision tf32 --preset char' "$NOTES"
bench net --model gpt --rounds 1 --steps 1 --precision f32 --compile reduce-overhead --seconds 24
check "gpt2 if nothing else is said, compiled too" rows '"batch": 8, "preset": "gpt2".*"compiled": "compiled-reduce-overhead"' 1
# Several networks; the first one is slow at first
two='--model resnet20 --batch 8 --precision f32'
bench net --net "$two" --net '--model gpt --preset char --precision tf32 --steps 7' --rounds 2 --seconds 100
check "networks: each has its first round first" [ "$(sed -n 's/.*--model \([a-z0-9]*\) .*--steps \([0-9]*\) .*/\1 \2/p' "$NOTES" | tr '\n' ' ')" = 'resnet20 50 gpt 7 resnet20 50 gpt 7 ' ]
check "and rows of its own, beside PyTorch's" rows '"gpu_net", "model": "\(gpt\|resnet20\)".*"ratio_eager": [0-9].*"rounds": 2' 2
SLOW=1
bench net --net "$two" --net '--model gpt --preset char --precision tf32' --rounds 2 --seconds 20
check "one that is slow leaves the next its share" rows '"model": "gpt".*"ratio_eager": [0-9]' 1
check "what was late is in time in the next round" rows '"model": "resnet20".*"ratio_eager": [0-9].*"rounds": 1' 1
check "and not said to be left out" rows '"skipped"' 0
SLOW=''
# shellcheck disable=SC2086 # options
bench net $two --no-eager --compile default --compile-batches 8 --rounds 2 --seconds 30
check "beside a compiler that does not end: ours" rows '"rounds": 2' 1
check "it is named, with its network" rows '"model": "resnet20", "skipped": "compiled-default, batch 8"' 1
check "sizes of another model are refused" sh -c "! python3 scripts/bench/gpu.py '$W/program' net --model gpt --hidden 8 --device cpu 2>/dev/null"
# Stopped from outside in the second round, by everybody's clock
SLOW=2 TIMELESS=1 SLEEP=''
: >"$NOTES"
python3 "$W/scripts/bench/gpu.py" "$W/program" topk --n 100 --rounds 3 --seconds 250 --device cpu >"$W/out" 2>"$W/err" </dev/null &
pid=$!
until [ "$(wc -l <"$NOTES")" -ge 2 ]; do sleep 0.2; done
sleep 1
kill -TERM $pid
wait $pid
check "stopped from outside: what was measured is said" rows '"gpu_topk".*"selector"' 2
finish
