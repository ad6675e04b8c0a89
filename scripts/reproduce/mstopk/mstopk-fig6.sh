#!/bin/sh
# mstopk-fig6: time of top-k selection against the length of the gradient
# paper: Fig. 6: on a V100, d from 256 thousand to 128 million, k = 0.001 d: exact top-k (nn.topk) very slow, DGC's double
#     sampling better, MSTopK negligible; Section 5.2: MSTopK selects more than 99% of what exact top-k does
# runs: sparsetrain bench select --select exact,dgc,mstopk at density 0.001 over the same lengths (quick: to 4 million), on
#     the CPU and, where there is one, on the GPU; beside it, not compared, PyTorch's topk on the CPU up to 32 million, in turn with
#     mstopk (scripts/bench/topk.py)
# needs: any machine (2.5 GB of memory in full); the paper's claim about time is of a GPU. PyTorch (sh scripts/deps.sh torch) for
#     rows of it
# takes: full: 2.5 min; quick: 6 s
# agrees: exact and dgc take at least 10 times as long as mstopk at each length (our reading of "negligible"), in direction where
#     they take longer; on a CPU, too, though the claim is of a GPU: what is called exact there is our own exact top-k,
#     which is as fast as mstopk, and not nn.topk. It selects at least 99% of the entries that exact does
. scripts/reproduce/lib.sh

lengths=$(pick 262144:134217728:2 262144:4194304:2)
density=$(published mstopk-text.csv value subject='selector comparison')
look_up mstopk-text.csv value subject='mstopk selector' unit=%
: >"$out/figure.dat"
for device in cpu cuda; do
    against words
    if [ $device = cuda ] && skipped_gpu 'time of selection' s 'Fig. 6'; then continue; fi
    job "$device.jsonl" "$program" bench select --device $device --select exact,dgc,mstopk --n "$lengths" --density "$density" \
        --repeat "$(pick 40 10)" --json
    for selector in exact dgc mstopk; do
        values $device.jsonl n,median_s --where selector=$selector | awk '{ print $1, 1000 * $2 }' |
            block "$selector, $device" >>"$out/figure.dat"
    done
    if [ $device = cuda ]; then about=; else about='one CPU core; the claim is of a GPU'; fi
    values $device.jsonl selector,n,median_s,k,missed | awk '
        { time[$1, $2] = $3 }
        $1 == "mstopk" { n[++count] = $2; same[count] = 100 * (1 - $5 / $4) }
        END {
            for (i = 1; i <= count; i++)
                printf "%d %.3g %.3g %.6g\n", n[i], time["exact", n[i]] / time["mstopk", n[i]], time["dgc", n[i]] / time["mstopk", n[i]], same[i]
        }' >"$out/.ratios"
    while read -r n exact dgc same; do
        claim mstopk-selection
        against words
        direction 'full: at least 1'
        row "$device n=$n" 'time of exact over mstopk' '' '' 'Fig. 6' "$exact" real 'full: at least 10' "$about"
        direction 'full: at least 1'
        row "$device n=$n" 'time of dgc over mstopk' '' '' 'Fig. 6' "$dgc" real 'full: at least 10' "$about"
        claim mstopk-same-entries
        against measured
        row "$device n=$n" 'entries of mstopk that exact selects, too (paper: more than)' % "$paper" "$source" "$same" real 'at least'
    done <"$out/.ratios"
    rm -f "$out/.ratios"
done
# What the paper calls exact is PyTorch's topk.
if find_python 'import torch' || { [ -n "$finished" ] && [ -f "$out/torch.jsonl" ]; }; then
    PATH=${python:+$(dirname "$python"):}$PATH # the line of the job is the same on every machine
    each_length=$(echo "$lengths" | awk -F : '{ for (n = $1; n <= $2 && n < 5e7; n *= $3) { printf "%s%d", sep, n; sep = "," } }')
    job torch.jsonl python3 scripts/bench/topk.py "$program" --select mstopk --n "$each_length" --density "$density" --rounds "$(pick 3 1)" \
        --repeat "$(pick 20 5)" --json
    values torch.jsonl n,peer_s --where selector=mstopk | awk '{ print $1, 1000 * $2 }' | block "PyTorch's topk, cpu" >>"$out/figure.dat"
    values torch.jsonl n,ratio_peer --where selector=mstopk >"$out/.ratios"
    while read -r n ratio; do
        claim mstopk-selection
        against words
        row "cpu n=$n" "time of PyTorch's topk over mstopk" '' '' 'Fig. 6' "$(calc "$ratio")" real none 'not compared: what the paper calls exact, on one CPU core'
    done <"$out/.ratios"
    rm -f "$out/.ratios"
else
    say "rows of PyTorch's topk skipped: it is not installed"
fi
figure figure.png "$out/figure.dat" lines.gp logx=2 logy=10 title="Selection of k = $density d entries" xlabel='d [entries]' \
    ylabel='time [ms]' key='inside left top reverse Left' note="the paper prints no numbers; its times are of a V100"
finish
