#!/bin/sh
# mstopk-fig6: time of top-k selection against the length of the gradient
# paper: Fig. 6: on a V100, d from 256 thousand to 128 million, k = 0.001 d: exact top-k (nn.topk) very slow, DGC's double
#     sampling better, MSTopK negligible; Section 5.2: MSTopK selects more than 99% of what exact top-k does
# runs: sparsetrain bench select --select exact,dgc,mstopk at density 0.001 over the same lengths (quick: to 4 million), on
#     the CPU and, where there is one, on the GPU
# needs: any machine (2.5 GB of memory in full); the paper's claim about time is of a GPU
# takes: full: 2 min; quick: 1 s
# agrees: on the GPU mstopk takes less time than exact and than dgc at each length; everywhere it selects at least 99% of the
#     entries that exact does. Times on the CPU are shown without a claim: exact has another algorithm there than on a GPU
. scripts/reproduce/lib.sh

lengths=$(pick 262144:134217728:2 262144:4194304:2)
density=$(published mstopk-text.csv value subject='selector comparison')
share=$(published mstopk-text.csv value subject='mstopk selector' unit=%)
share_source=$(published mstopk-text.csv source subject='mstopk selector' unit=%)
: >"$out/figure.dat"
for device in cpu cuda; do
    if [ $device = cuda ] && ! have_gpu; then
        note 'rows of a GPU skipped: there is none that the program can use'
        row 'GPU' 'time of selection' s '' 'Fig. 6' '' real none 'skipped: no GPU that the program can use'
        continue
    fi
    job "$device.jsonl" "$program" bench select --device $device --select exact,dgc,mstopk --n "$lengths" --density "$density" \
        --repeat "$(pick 40 10)" --json
    for selector in exact dgc mstopk; do
        awk -v selector=$selector "$json_awk$newline"'json("selector") == selector { print json("n"), 1000 * json("median_s") }' "$out/$device.jsonl" |
            block "$selector, $device" >>"$out/figure.dat"
    done
    if [ $device = cuda ]; then rule='at least 1' about=; else rule=none about='a claim about GPUs'; fi
    awk "$json_awk$newline"'
        { time[json("selector"), json("n")] = json("median_s") }
        json("selector") == "mstopk" { n[++count] = json("n"); same[count] = 100 * (1 - json("missed") / json("k")) }
        END {
            for (i = 1; i <= count; i++)
                printf "%d %.3g %.3g %.6g\n", n[i], time["exact", n[i]] / time["mstopk", n[i]], time["dgc", n[i]] / time["mstopk", n[i]], same[i]
        }' "$out/$device.jsonl" >"$out/.ratios"
    while read -r n exact dgc same; do
        row "$device n=$n" 'time of exact over mstopk' '' '' 'Fig. 6' "$exact" real "$rule" "$about"
        row "$device n=$n" 'time of dgc over mstopk' '' '' 'Fig. 6' "$dgc" real "$rule" "$about"
        row "$device n=$n" 'entries of mstopk that exact selects, too (paper: more than)' % "$share" "$share_source" "$same" real 'at least'
    done <"$out/.ratios"
    rm -f "$out/.ratios"
done
figure figure.png "$out/figure.dat" lines.gp logx=2 logy=10 title="Selection of k = $density d entries" xlabel='d [entries]' \
    ylabel='time [ms]' key='inside left top reverse Left'
finish
