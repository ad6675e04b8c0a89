#!/bin/sh
# cli_trace.sh: --trace FILE of train and of bench: JSON that holds the phases of every rank; nothing is left behind where
# it cannot be written.
. tests/lib/tap.sh

# holds NAME FILE P PHASE...: FILE is there, with nothing unfinished beside it, and every one of P ranks has events of these phases
holds() {
    h_name=$1 h_file=$2 h_p=$3
    shift 3
    if [ ! -s "$h_file" ] || [ -n "$(find "$W" -name "*.tmp*")" ]; then
        not_ok "$h_name" "no trace, or an unfinished one: $(head -c 300 "$W/err")"
        return
    fi
    h_rank=0
    while [ "$h_rank" -lt "$h_p" ]; do
        for h_phase in "$@"; do
            if ! grep -q "^{\"ph\":\"X\",\"pid\":$h_rank,\"tid\":[01],\"name\":\"$h_phase\",\"ts\":[-0-9.]*,\"dur\":[0-9.]*}" "$h_file"; then
                not_ok "$h_name" "no $h_phase of rank $h_rank"
                return
            fi
        done
        h_rank=$((h_rank + 1))
    done
    if ! tail -n 1 "$h_file" | grep -q '^]}$'; then
        not_ok "$h_name" "it does not end: $(tail -c 100 "$h_file")"
    else
        ok "$h_name"
    fi
}

for p in 1 3; do
    # n: what takes 0.2 us or less is merged into its neighbour (base/trace.h), and writing 1,000 numbers may
    start $p bench --algo topka,gtopk --n 100000 --warmup 1 --repeat 2 --trace "$W/bench-$p.json"
    passes=communicate # on one rank nothing does
    [ $p -gt 1 ] || passes=
    # shellcheck disable=SC2086
    holds "a bench on $p ranks" "$W/bench-$p.json" $p select merge $passes update
    start $p --data synthetic:64x16 --batch 4 --steps 3 --eval-every 0 --algo gtopk --trace "$W/train-$p.json"
    # shellcheck disable=SC2086
    holds "training on $p ranks" "$W/train-$p.json" $p io compute select $passes update
done
for file in bench-1 bench-3 train-1 train-3; do
    if command -v python3 > /dev/null 2>&1; then
        check "$file is JSON" python3 -c "import json,sys; json.load(open(sys.argv[1]))['traceEvents'][0]" "$W/$file.json"
    else
        skip "$file is JSON" "python3 is not installed (cli_trace_file reads one with a reader of its own)"
    fi
done
for verb in "bench --n 100" "train --data synthetic:64x16 --batch 4 --steps 1"; do
    # shellcheck disable=SC2086
    start 3 $verb --trace "$W/no/such/folder"
    status=$?
    check "$verb: a trace that cannot be written is refused first" sh -c "[ $status -eq 2 ] && grep -q '^sparsetrain: cannot write .*; give another --trace' '$W/err'"
done
finish
