#!/bin/sh
# bench.sh: the speed that the project promises, as ratios measured now, on this machine, each beside its target. Times
# wander from minute to minute, so whatever is compared runs interleaved and medians are shown; nothing here passes or
# fails. Takes no options: BUILD names the build folder; SPARSETRAIN_BENCH picks parts (default: "select wire exchange train
# step hook").
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib/common.sh
options '' "$@"
parts=${SPARSETRAIN_BENCH:-select wire exchange train step hook}
need_program
. scripts/mpi-env.sh

find_python 'import torch' || python=$(command -v python3 || true)

peer() { # peer SCRIPT OPTION...: next to PyTorch; without it the script says so and shows what it can
    peer_script=scripts/bench/$1
    shift
    if [ -n "$python" ]; then "$python" "$peer_script" "$program" "$@"; else echo "SKIP $peer_script: python3 is not installed"; fi
}

bench_step() {
    make_scratch
    printf '%-8s %-3s %10s %10s %10s %10s %12s %12s\n' algo P images/s 'step ms' compute% comm% neither% 'memory MiB'
    for round in 1 2 3; do
        for algo in dense topka gtopk; do
            out=$scratch/$algo-$round
            # dense refuses options of sparse algorithms
            if [ $algo = dense ]; then set --; else set -- --density 0.001 --density-warmup none; fi
            "$MPIRUN" -np 4 "$program" --algo $algo "$@" --data synthetic --device cpu --batch 32 --steps 40 \
                --eval-every 0 --quiet --out "$out" || return 1
            of_log "$out" images_per_second,step_seconds,phases.compute,phases.communicate,memory_private_max,phases.other,phases.io,phases.select,phases.pack,phases.merge,phases.update \
                --type summary --last >>"$scratch/$algo"
        done
    done
    # column EXPRESSION: the median over the rounds; all = a whole step
    column() {
        awk "$(cat scripts/lib/stats.awk)"'{ rate = $1; step = $2; comp = $3; comm = $4; memory = $5; rest = $6 + $7 + $8 + $9 + $10 + $11; all = comp + comm + rest
               x[NR] = '"$1"' } END { print median(x, NR) }' "$scratch/$algo"
    }
    neither=
    for algo in dense topka gtopk; do
        neither=$(column '100 * rest / all')
        printf '%-8s %-3s %10.0f %10.1f %10.1f %10.1f %12.2f %12.0f\n' "$algo" 4 "$(column rate)" \
            "$(column '1000 * step')" "$(column '100 * comp / all')" "$(column '100 * comm / all')" "$neither" \
            "$(column 'memory / 1048576')"
    done
    printf 'gtopk, P = 4: %.2f%% of a step is neither compute nor communication (target: under 5%%)\n' "$neither"
    of_log "$scratch/gtopk-3" data_shared,data_bytes --type summary --last | awk '
        $1 == "true" { printf "dataset: %.0f MiB, in memory once per node, not in the memory column\n", $2 / 1048576; next }
        { print "dataset: not shared here, every rank holds its own" }'
}

uname -srm
sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo 2>/dev/null | sort | uniq -c | sed 's/^ *\([0-9]*\) /\1 x /'
"$program" --version
status=0
for part in $parts; do
    case $part in
    select)
        echo
        echo '== selection with accumulation (targets: exact at most 1.5x a plain acc += grad, reuse 1.15x; all 10x faster than torch.topk)'
        peer topk.py --select all || status=1
        ;;
    wire)
        echo
        echo '== wire formats (targets: packed at most 0.45 of the bytes of coo32 at density 0.01, encode plus decode at least 1 GB/s of coo32)'
        "$program" bench wire || status=1
        ;;
    exchange)
        echo
        echo '== every exchange, 8 ranks (targets: words within the bounds, at most 10% outside selection, merging and MPI)'
        "$MPIRUN" -np 8 "$program" bench --device cpu --algo all --n 14728266 --density 0.01 --repeat 5 --phases || status=1
        "$MPIRUN" -np 8 "$program" bench --device cpu --algo hitopk,torus2d --ranks-per-node 4 --n 14728266 --density 0.01 --repeat 5 \
            --phases || status=1
        ;;
    train)
        echo
        echo '== ResNet-20 training, one thread (target: at least 1.2x PyTorch in its best layout; memory in all of these: no more than PyTorch)'
        peer peer.py || status=1
        echo '== VGG-16 training, one thread (target: at least 1.05x PyTorch in its best layout)'
        peer peer.py --model vgg16 --rounds 5 || status=1
        echo '== LSTM training, 1500 hidden features, batch 20, one thread (target: at least 1.8x PyTorch)'
        peer peer.py --model lstm --hidden 1500 --rounds 5 --steps 1 || status=1
        echo '== LSTM training, 650 hidden features, batch 20, one thread (target: at least 1.3x PyTorch)'
        peer peer.py --model lstm --hidden 650 --rounds 5 --steps 4 || status=1
        echo '== decoder of characters, 804,096 parameters, 12 windows of 64, AdamW, one thread (target: at least 1.5x PyTorch)'
        peer peer.py --model gpt --rounds 9 --steps 12 || status=1
        echo '== decoder of characters, 10.7M parameters, 16 windows of 256, AdamW, one thread (target: at least 1.2x PyTorch)'
        peer peer.py --model gpt --preset char --batch 16 --rounds 5 --steps 1 || status=1
        echo '== BERT-base, 133.5M parameters, 4 pairs of 128, AdamW, one thread (target: at least 1.1x PyTorch)'
        peer peer.py --model bert --preset base --batch 4 --rounds 3 --steps 1 || status=1
        echo '== speech recognition, 27.6M parameters, utterances of 2.7 s, one thread (target: at least 1.3x PyTorch)'
        peer peer.py --model speech --rounds 5 --steps 1 || status=1
        ;;
    step)
        echo
        echo "== where a step goes, four ranks, batch 32 each (target: gtopk spends under 5% on what is neither)"
        bench_step || status=1
        ;;
    hook)
        echo
        echo "== a step of PyTorch's DistributedDataParallel, two ranks, with its own allreduce and with our exchanges in its place"
        if "$python" -c 'import torch.distributed as d; assert d.is_available()' 2>/dev/null; then
            PYTHONPATH=comm/torch MASTER_PORT=$((20000 + $$ % 10000)) "$MPIRUN" -np 2 "$python" scripts/bench/hook.py || status=1
        else
            echo 'SKIP scripts/bench/hook.py: torch is not installed'
        fi
        ;;
    *) fail "no part called $part; there are select, wire, exchange, train, step, hook" ;;
    esac
done
exit $status
