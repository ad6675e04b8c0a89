#!/bin/sh
# cli_gpu_steps.sh: what the steps of scripts/gpu-check.sh ask of a machine with a GPU, where there is none: in a tree of its
# own, whose GPU, program, make, tests and compute-sanitizer are scripts that note how they were called.
# waits: for runs that are stopped
. tests/lib/tap.sh

if [ -n "${SAN:-}" ]; then
    skip "steps on a GPU" "scripts alone, which sanitizers do not see"
    finish
    exit
fi
here=$PWD
T=$W/tree B=$W/tree/build/gpu
mkdir -p "$T/scripts/lib" "$T/scripts/gpu" "$T/scripts/bench" "$T/comm/algorithms" "$T/tests" "$B/tests" "$W/bin" "$W/libs/usr/bin"
cp scripts/gpu-*.sh scripts/mpi-env.sh "$T/scripts"
cp scripts/gpu/*.sh "$T/scripts/gpu"
cp scripts/bench/gpu.py "$T/scripts/bench"
cp scripts/lib/common.sh scripts/lib/commit.sh "$T/scripts/lib"
cp comm/algorithms/exchanges.def "$T/comm/algorithms"
put() { # put FILE: a script, from standard input
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod +x "$1"
}
put "$W/bin/nvidia-smi" <<'END'
case $1 in *compute_cap*) echo 9.0 ;; *name*) echo A GPU ;; *) echo 580 ;; esac
END
put "$W/bin/mpirun" <<'END'
shift 2 # -np P
exec "$@"
END
put "$W/bin/make" <<END
echo "\$*" >>"$W/made"
END
put "$W/bin/nm" <<'END'
echo '0000000000000100 t _ZL26__device_stub__Z3addIfLi1EEv9cuda_walkPKfPT_'
echo '00000000000000b0 t _ZL26__device_stub__Z3addPfPKfm'
echo '0000000000000000 t _ZL30__device_stub__Z7compactILb0ELb0EEv10compaction'
echo '0000000000000000 T _Z10adds_all_ofPKf'
END
put "$B/tests/gpu_peers" </dev/null
# The program: lists, says its defaults, and "trains": an epoch is ten steps of 0.1 s. Stopped by USR1, or after the steps that
# it was asked for, it leaves rows and a checkpoint, large where the model is. Rows are read by the real one.
export PROGRAM
put "$B/sparsetrain" <<'END'
[ "$1" != rows ] || exec "$PROGRAM" "$@"
echo "$*" >>"$NOTES"
case $1 in
list)
    echo '{"datasets":[{"name":"cifar10","available":true},{"name":"ptb","available":true}],"devices":[{"name":"cuda","available":true}],"models":[{"name":"resnet20","available":true},{"name":"vgg16","available":true},{"name":"lstm","available":true},{"name":"gpt","available":true}]}'
    exit
    ;;
config)
    echo epochs=140
    exit
    ;;
bench)
    [ -z "${SLOW:-}" ] || echo $(($(cat "$NOW") + SLOW)) >"$NOW"
    [ -z "${ILL:-}" ] || exit "$ILL"
    printf '{"bench":"net","images_per_s":2,"words_per_s":2,"call":"add","seconds":1,"none_s":0}\n'
    exit
    ;;
esac
epochs=140 out='' model='' steps=0 large=2000
while [ $# -gt 0 ]; do
    case $1 in
    --model) model=$2 ;;
    --epochs) epochs=$2 ;;
    --steps) steps=$2 ;;
    --out | --resume) out=$2 ;;
    esac
    shift
done
[ "$model" != vgg16 ] || large=60000
mkdir -p "$out/checkpoint-00000010" "$out/checkpoint-00000020"
[ "$steps" -eq 0 ] && total=$epochs || total=0.4
left() { # left COMPLETED: what a run leaves
    printf '{"type":"header","run_epochs":%s}\n{"type":"eval","epoch":1,"test_accuracy":0.5}\n{"type":"summary","completed":%s,"step_seconds":0.1}\n' \
        "$([ "$steps" -eq 0 ] && echo "$epochs" || echo 4)" "$1" >"$out/run.jsonl"
    for step in 10 20; do head -c $large /dev/urandom >"$out/checkpoint-000000$step/model.ckpt"; done
    exit 0
}
trap 'left false' USR1
if [ "$steps" -eq 0 ] && [ "$epochs" -gt 50 ]; then while :; do sleep 0.2; done; fi
left true
END
put "$T/tests/run.sh" <<'END'
echo "+ $1" >>"$NOTES"
echo "$1 until $((TEST_END - $(date +%s)))" >>"$NOTES.until"
sleep 1
echo "- $1" >>"$NOTES"
case $1 in
topk_) echo 'topk_sparse   P = 2           3 passed   0 failed   0 skipped    7 s,   1.5 s CPU' ;;
nets_) printf 'nets_models                  1 passed   0 failed   1 skipped    0 s\nskipped:\n    nets_layers: no time left before TEST_END\n' ;;
esac
echo '3 passed, 0 failed, 0 skipped'
END
NOTES=$W/notes
export NOTES
# the check, on that machine: output to $W/log, its status
checked() {
    : >"$NOTES"
    rm -f "$NOTES.until" "$W/made"
    # shellcheck disable=SC2030,SC2031 # variables for this call alone
    (
        PATH="${FIRST:+$FIRST:}$W/bin:$PATH" MPIRUN=${LAUNCHER:-$W/bin/mpirun}
        export PATH MPIRUN
        unset BUILD WERROR SPARSETRAIN_DATA
        cd "$T" && timeout 900 sh scripts/gpu-check.sh --out "$W/out" "$@"
    ) >"$W/log" 2>&1 </dev/null
}
has() { # has TEXT...: each in the log
    for text in "$@"; do
        why="no \"$text\" in: $(head -c 3000 "$W/log")"
        grep -qE -- "$text" "$W/log" || return 1
    done
}
refused() { # refused TEXT ARGUMENTS...: status 2 and one line
    text=$1
    shift
    checked "$@"
    status=$?
    why="status $status: $(head -c 300 "$W/log")"
    [ $status -eq 2 ] && [ "$(wc -l <"$W/log")" -eq 1 ] && grep -qF -- "$text" "$W/log"
}
check "a group that there is not" refused '"gpu_"' --groups topk_,gpu_
check "an exchange that there is not" refused '"best"' --algos dense,best
check "epochs that are no number" refused '"many"' --epochs many
check "a lease that is no number" refused '"1h"' --lease 1h
check "a limit that is no number" refused '"16M"' --pack-limit 16M

# -- build
checked --only build --budget 100
check "build: passes" has '^PASS  build'
check "warnings are let pass there" grep -q 'WERROR=0 ' "$W/made"
# shellcheck disable=SC2030,SC2031 # variables for this call alone
(
    cd "$T" && PATH="$W/bin:$PATH" WERROR=1 timeout 900 sh scripts/gpu-check.sh --out "$W/out" --only build >"$W/log" 2>&1 </dev/null
)
check "unless they are asked for" grep -q 'WERROR=1 ' "$W/made"

# -- libraries, where xz is missing
python=$(python3 -c 'import lzma, sys; print(sys.executable)' 2>/dev/null)
if [ -z "$python" ]; then skip "without xz, Python unpacks" "no python3 with lzma"
elif ! command -v xz >/dev/null 2>&1; then skip "without xz, Python unpacks" "xz is not installed, and it packs"
else
    mkdir "$W/few" "$W/unpacked"
    ln -s "$python" "$W/few/python3"
    echo env >"$W/libs/env.sh"
    ln -s env.sh "$W/libs/link"
    tar -C "$W" -cJf "$W/libs.tar.xz" libs
    # shellcheck disable=SC2016 # for the inner shell
    PATH=$W/few /bin/sh -c '. scripts/gpu/tools.sh; unpack "$1" "$2"' sh "$W/libs.tar.xz" "$W/unpacked" >"$W/log" 2>&1
    check "without xz, Python unpacks" [ "$(cat "$W/unpacked/libs/link" 2>/dev/null)" = env ]
fi

# -- test
most_at_once() { awk '/^[+] / { n++; if (n > most) most = n } /^- / { n-- } END { print most + 0 }' "$NOTES"; }
until_of() { sed -n "s/^$1 until //p" "$NOTES.until"; }
between() {
    why="$1 is not within $2 and $3"
    [ "$1" -ge "$2" ] && [ "$1" -le "$3" ]
}
checked --only test --budget 500
check "test: four groups" [ "$(grep -c '^[+] ' "$NOTES")" -eq 4 ]
check "two at a time" [ "$(most_at_once)" -eq 2 ]
check "the last step has the whole budget" between "$(until_of topk_)" 400 490
check "what it has not come to is late, by name" has '^LATE  test .*nets_: .* 1 tests .*: nets_layers'
check "results of all" grep -qF '{"test":"topk_sparse","label":"P = 2","passed":3,"failed":0,"skipped":0,"seconds":7}' "$W/out/gpu-test.json"
checked --only test,converge --models resnet20 --algos dense --epochs 1 --budget 500 --runs "$W/none"
check "a step that is not the last has its own" between "$(until_of topk_)" 100 190
checked --only test --budget 300 --groups topk_,comm_
check "some of the groups" [ "$(grep '^[+] ' "$NOTES" | sort | tr -d '\n')" = '+ comm_+ topk_' ]
check "in a file of their own" [ -s "$W/out/gpu-test-topk-comm.json" ]
check "which passes" has '^PASS  test '

# -- bench: Python's measurements take all the time that they get, and so does the clock, which nothing else moves
if command -v python3 >/dev/null 2>&1; then
    mkdir "$W/clock"
    put "$W/clock/date" <<END
if [ "\$*" = +%s ]; then cat "\$NOW"; else exec $(command -v date) "\$@"; fi
END
    put "$W/clock/python3" <<'END'
case $1 in -*) exit ;; esac
echo "python ${*#*/}" >>"$NOTES"
rest=$*
seconds=${rest#*--seconds } model=${rest#*--model }
seconds=${seconds%% *}
echo "$seconds" >>"$NOTES.seconds"
echo $(($(cat "$NOW") + seconds)) >"$NOW"
[ "$3" != net ] || echo "{\"bench\":\"gpu_net\",\"model\":\"${model%% *}\",\"batch\":1,\"precision\":\"f32\",\"words_per_s\":1,\"ratio_eager\":2,\"eager\":\"eager-f32\"}"
END
    NOW=$W/now
    export NOW SLOW ILL
    # benched ARGUMENTS...: the step bench by that clock; $order: what was begun, in order, once each
    benched() {
        echo 1700000000 >"$NOW"
        rm -f "$NOTES.seconds"
        FIRST=$W/clock checked --only bench --nets resnet20,vgg16,lstm,gpt2 "$@"
        order=$(sed -n 's/^python .* topk .*/select/p; s/^python .* net .*--compile default,reduce-overhead$/compiled/p; s/^python .* net .*/net/p
            s/^bench .*--kernels.*/kernels/p; s/^bench net .*/plans/p; s/^--device cuda --algo.*/train/p' "$NOTES" | uniq | tr '\n' ' ')
        why="$order: $(head -c 3000 "$W/log")"
    }
    ours_first() { [ "$order" = 'select net plans kernels train compiled ' ]; }
    SLOW='' ILL=''
    benched --budget 520
    check "bench: ours and eager, plans, kernels, training, and what is compiled last" ours_first
    check "networks in one process, each with its options" grep -q 'python .*--net --model lstm --batch 20 --net --model gpt --preset gpt2 --steps 20 --net --model vgg16 .* --net --model resnet20 --batch 32,128,1024$' "$NOTES"
    check "compiled network after network, beside ours in the same precision" [ "$(grep -o -- '--model [a-z0-9]* .*--no-eager' "$NOTES" | sed 's/--model \([a-z0-9]*\).*/\1/' | tr '\n' ' ')" = 'resnet20 vgg16 gpt ' ]
    check "the slowest mode only when it is asked for" sh -c "! grep -q max-autotune '$NOTES'"
    check "in shares" [ "$(tr '\n' ' ' <"$NOTES.seconds")" = '70 192 129 64 65 ' ]
    check "each part in a file of its own, eight with the log" [ "$(cd "$W/out" && echo gpu-bench-*.json)" = 'gpu-bench-compiled.json gpu-bench-kernels.json gpu-bench-net.json gpu-bench-plans.json gpu-bench-train.json' ]
    rm -f "$W/out"/gpu-bench-*
    SLOW=40
    benched --budget 520
    check "plans that are slow: the parts after them have their turn" ours_first
    check "what there was no time for is late" has '^LATE  bench .*vgg16 in f32, plans 1: no time' '^LATE  bench .*--kernels of vgg16 in tf32: no time'
    check "and not failed" sh -c "! grep -q '^FAIL' '$W/log'"
    SLOW=''
    benched --budget 24
    check "little time: ours and eager ones are there" has '^NOTE  bench .*batch 1 f32: 1 words/s, 2.00 x PyTorch eager-f32'
    check "what is compiled is named as left out" has '^LATE  bench     resnet20 compiled: no time' '^LATE  bench     gpt2 compiled: no time'
    ILL=1
    benched --budget 520 --benches plans,kernels
    check "some of the parts" [ "$order" = 'plans kernels ' ]
    check "what goes wrong in time is a failure" has '^FAIL  bench .*resnet20 in f32, plans 1: status 1' '^FAIL  bench .*--kernels of gpt2 in bf16: status 1'
    ILL=''
else skip "the step bench" "python3 is not installed"; fi

# -- sanitize
put "$W/bin/compute-sanitizer" <<'END'
echo "$*" >>"$NOTES.sanitizer"
echo '========= ERROR SUMMARY: 0 errors'
case $* in *racecheck*topk_rows*) printf '========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)\n========= RACECHECK SUMMARY: 1 hazard displayed (1 errors, 0 warnings)\n' ;; esac
END
checked --only sanitize --budget 300
runs_of() { grep -- "--tool $1 " "$NOTES.sanitizer"; }
check "memcheck: five programs, all kernels" sh -c "grep -- '--tool memcheck ' '$NOTES.sanitizer' | grep -vc kernel-name | grep -qx 5"
check "racecheck: five, our kernels by name" [ "$(runs_of racecheck | grep -c -- '--kernel-name kns=_Z3add --kernel-name kns=_Z7compact [^-]')" -eq 5 ]
check "initcheck: where our kernels are alone" [ "$(runs_of initcheck | sed 's/.* --kernel-name kns=_Z3add .*tests.//' | tr '\n' ' ')" = 'topk_store topk_rows ' ]
check "all: processes that are started, too" [ "$(grep -c -- '--target-processes all' "$NOTES.sanitizer")" -eq 12 ]
check "findings of all processes count" has '^FAIL  sanitize  racecheck topk_rows: 3 errors'
if [ -r "$here/$BUILD/libsparsetrain_cuda.so" ] && command -v nm >/dev/null 2>&1; then
    # shellcheck disable=SC2016 # for the inner shell
    BUILD=$here/$BUILD sh -c '. scripts/gpu/bench.sh; kernel_filters' >"$W/filters"
    for kernel in compact cut position_gradient; do
        check "the plugin's kernels have names: $kernel" grep -qE "kns=_Z[0-9]+$kernel " "$W/filters"
    done
else skip "the plugin's kernels have names" "no CUDA plugin here"; fi

# -- converge
runs=$W/runs
checked --only converge --models resnet20 --algos topka,dense --epochs 3 --budget 200 --runs "$runs"
check "the exchanges that were asked for" [ "$(cd "$runs/resnet20" && echo *)" = 'dense topka' ]
check "in order, with so many epochs" [ "$(grep -o -- '--algo [a-z]* .*--epochs 3 ' "$NOTES" | cut -d ' ' -f 2 | tr '\n' ' ')" = 'topka dense ' ]
checked --only converge --models resnet20 --epochs 2 --budget 200 --runs "$W/three"
check "three of them else" [ "$(cd "$W/three/resnet20" && echo *)" = 'dense gtopk topka' ]
checked --only converge --models resnet20 --algos dense --budget 75 --runs "$W/long"
check "a run that does not end: late, with a checkpoint" has '^LATE  converge  resnet20, dense: epoch 1.0'
check "which is there" [ -s "$W/long/resnet20/dense/checkpoint-00000020/model.ckpt" ]
if command -v python3 >/dev/null 2>&1; then # SIGUSR1 blocked by who started us
    cat >"$W/launcher" <<'END'
#!/usr/bin/env python3
import os, signal, sys
with open(os.environ["NOTES"], "a") as notes:
    print("blocked" if signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, ()) else "open", file=notes)
os.execvp(sys.argv[3], sys.argv[3:])
END
    mkdir "$W/blocking"
    cat >"$W/blocking/timeout" <<END
#!/usr/bin/env python3
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.execv("$(command -v timeout)", ["timeout", *sys.argv[1:]])
END
    chmod +x "$W/launcher" "$W/blocking/timeout"
    FIRST=$W/blocking LAUNCHER=$W/launcher checked --only converge --models resnet20 --algos dense --epochs 2 --budget 75 --runs "$W/open"
    if env --default-signal=USR1 true 2>/dev/null; then check "the signal that stops runs reaches them, though it was blocked" grep -qx open "$NOTES"
    else skip "the signal that stops runs" "this env opens no signals"; fi
fi
# An epoch takes 1.1 s by the trial: of 140 epochs in 60 s few fit, in an hour all.
checked --only converge --models vgg16 --algos dense --budget 500 --lease 60 --runs "$W/lease"
check "a lease too short for the run: fewer epochs" has 'NOTE .*vgg16, dense: [1-4][0-9] of 140 epochs' '^PASS  converge  vgg16, dense'
check "which is its schedule" sh -c "grep -q -- '--epochs [1-4][0-9] --out' '$NOTES'"
checked --only converge --models resnet20 --algos dense --epochs 2 --budget 500 --lease 5 --runs "$W/home"
check "not for a model whose checkpoint comes home" sh -c "grep -q '^PASS  converge  resnet20, dense' '$W/log' && ! grep -q -- '--steps' '$NOTES'"
rm -rf "$W/lease/vgg16"
checked --only converge --models vgg16 --algos dense --budget 500 --lease 99999 --runs "$W/lease"
check "the lease goes on from its first call" has 'vgg16, dense: ([1-4]?[0-9] of 140|an epoch takes)'
checked --only converge --models vgg16 --algos dense --budget 300 --lease 2 --runs "$W/short"
check "no time for an epoch: not begun, and named" has '^NOTE .*vgg16, dense: an epoch takes' '^LATE  converge  vgg16, dense: no time'
checked --only converge --models resnet20,vgg16 --algos dense --epochs 2 --budget 300 --runs "$W/packed" --pack "$W/out/runs.tar.gz" --pack-limit 20000
check "packed: what was left out is named" has '^NOTE  converge  packed: runs.tar.gz, .*left out: vgg16/dense/checkpoint-00000020 .60000 bytes'
packed() { tar -tzf "$W/out/runs.tar.gz" | sort | tr '\n' ' '; }
check "rows of all, the last checkpoint of the small one" [ "$(packed)" = './resnet20/dense/checkpoint-00000020/model.ckpt ./resnet20/dense/run.jsonl ./vgg16/dense/run.jsonl ' ]
check "within the limit" [ "$(wc -c <"$W/out/runs.tar.gz")" -le 20000 ]
# One that has ended and one that is to go on, of the same size: there is room for one of them.
rm "$W/packed/resnet20/dense/lock" 2>/dev/null
cp -R "$W/packed/resnet20/dense" "$W/packed/resnet20/topka"
sed 's/"completed":true/"completed":false/' "$W/packed/resnet20/dense/run.jsonl" >"$W/packed/resnet20/topka/run.jsonl"
echo host >"$W/packed/resnet20/topka/lock"
checked --only converge --models resnet20 --algos dense,topka --epochs 2 --budget 26 --runs "$W/packed" --pack "$W/out/runs.tar.gz" --pack-limit 3000
check "room for one checkpoint: that of the run that goes on" [ "$(packed)" = './resnet20/dense/run.jsonl ./resnet20/topka/checkpoint-00000020/model.ckpt ./resnet20/topka/run.jsonl ./vgg16/dense/run.jsonl ' ]

# -- campaign
# Its runs: the first is finished, the second stopped and packed, the third fails.
put "$T/scripts/campaign.sh" <<'END'
echo "$BUILD $* ${SPARSETRAIN_PLUGIN##*/}" >>"$CAMPAIGN"
run=$(grep -c . "$CAMPAIGN")
for word; do case $before in --pack) pack=$word ;; --out) out=$word ;; esac; before=$word; done
case $run in
1)
    mkdir -p "$out/fig1/runs/a.run"
    echo '{}' >"$out/fig1/a.jsonl"
    echo '{}' >"$out/fig1/runs/a.run/run.jsonl"
    echo line >"$out/fig1/jobs.tsv"
    echo 'campaign.sh: finished: fig1 a.jsonl' >&2
    ;;
2)
    echo x >"$pack/fig1+b.tar.xz"
    echo 'conv = 1 2' >"$SPARSETRAIN_CACHE/cudnn-GPU-9.1.0.txt"
    echo 'campaign.sh: stopped at epoch 3: fig1 b.jsonl; the same command goes on with it' >&2
    ;;
*)
    echo 'campaign.sh: failed: fig1 c.jsonl' >&2
    exit 1
    ;;
esac
END
export CAMPAIGN="$W/campaign"
rm -rf "$W/out"
checked --only campaign --side-by-side 3 --table "$W/runs.csv" --budget 300 --runs "$W/campaign-runs"
check "as many as were asked for, with the same time, table and folders" [ "$(sed 's/--time [0-9]*s/--time/' "$CAMPAIGN" | sort | uniq -c | tr -s ' ')" = \
    " 3 build next --device cuda --time --pack $W/campaign-runs/packs --out $W/campaign-runs/results --table $W/runs.csv libsparsetrain_cuda.so" ]
check "what became of each" has '^PASS  campaign  finished: fig1 a.jsonl' '^LATE  campaign  stopped at epoch 3: fig1 b.jsonl' '^FAIL  campaign  failed: fig1 c.jsonl'
check "what is finished comes home, and no log of a run" [ "$(tar -tzf "$W/out/campaign.tar.gz" | sort | tr '\n' ' ')" = './fig1/a.jsonl ./fig1/jobs.tsv ' ]
check "and the pack of what was stopped" [ -s "$W/out/fig1+b.tar.xz" ]
check "and the algorithms with which it goes on to the same bits" [ -s "$W/out/cudnn-GPU-9.1.0.txt" ]
check "command lines name build/sparsetrain, which is there" [ -x "$T/build/sparsetrain" ]
checked --only campaign --budget 60 --runs "$W/campaign-runs"
check "no time: none is begun" sh -c "[ \"\$(wc -l <'$CAMPAIGN')\" -eq 3 ] && grep -q '^LATE  campaign  no time' '$W/log'"
finish
