#!/bin/sh
# gradient-histogram.sh CHECKPOINT RECORD RANKS N DENSITY: what rank 0 selects from in the step after a checkpoint: residual
# (in CHECKPOINT/rank0000.ckpt, cli/checkpoint/container.c) plus gradient (the first row of RECORD, cli/gradients/record.h), N entries each.
# Writes
#     mean M  sigma S  exact T  gaussian G  beyond C
#     bin X count
# T: magnitude that DENSITY N entries reach, to a part of 2000; G: magnitude that this share of a normal distribution of
# the same mean and deviation exceeds; C: entries that reach G; X: middle of one of 201 bins over [-2 T, 2 T].
set -eu
LC_ALL=C
export LC_ALL
rank_file=$1/rank0000.ckpt record=$2 ranks=$3 n=$4 density=$5

number_at() { od -A n -t u8 -j "$2" -N 8 "$1" | tr -d ' '; } # number_at FILE OFFSET: of 8 bytes
name_at() { dd if="$1" bs=1 skip="$2" count=24 2>/dev/null | tr -d '\000'; }
# The table of sections begins after 32 bytes of head; each has a name of 24 bytes, its offset and its length.
sections=$(number_at "$rank_file" 16)
i=0 residual=
while [ $i -lt "$sections" ]; do
    entry=$((32 + 48 * i))
    if [ "$(name_at "$rank_file" $entry)" = residual ]; then residual=$(number_at "$rank_file" $((entry + 24))); fi
    i=$((i + 1))
done
[ -n "$residual" ] || {
    echo "gradient-histogram.sh: $rank_file holds no residual" >&2
    exit 1
}
# One recorded step: RANKS rows of 16 bytes and N floats at the end of the file.
gradient=$(($(wc -c <"$record") - ranks * (16 + 4 * n) + 16))

awk -v n="$n" -v density="$density" \
    -v residuals="od -A n -v -t f4 -j $residual -N $((4 * n)) '$rank_file'" -v gradients="od -A n -v -t f4 -j $gradient -N $((4 * n)) '$record'" '
    # Abramowitz and Stegun 7.1.26, error below 1.5e-7: the part of a normal distribution beyond z sigma, both sides
    function beyond(z,   t, x) {
        x = z / sqrt(2)
        t = 1 / (1 + 0.3275911 * x)
        return t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * exp(-x * x)
    }
    function quantile(part,   low, high, middle, i) {
        low = 0
        high = 10
        for (i = 0; i < 60; i++) {
            middle = (low + high) / 2
            if (beyond(middle) > part) low = middle
            else high = middle
        }
        return low
    }
    BEGIN {
        fine = 2000 # bins of magnitude in a factor of e
        least = -40 * fine
        while ((residuals | getline line) > 0) {
            if ((gradients | getline other) <= 0) exit 1
            count = split(line, a, " ")
            if (split(other, b, " ") != count) exit 1
            for (i = 1; i <= count; i++) {
                x = a[i] + b[i]
                sum += x
                squares += x * x
                total++
                if (x > 0) positive[int(log(x) * fine - least)]++
                else if (x < 0) negative[int(log(-x) * fine - least)]++
            }
        }
        if (total != n) exit 1
        mean = sum / n
        sigma = sqrt(squares / n - mean * mean)
        gaussian = mean + quantile(density) * sigma
        for (bin in positive) if (bin + 0 > top) top = bin + 0
        for (bin in negative) if (bin + 0 > top) top = bin + 0
        for (bin = top; bin > 0; bin--) {
            here = positive[bin] + negative[bin]
            if (!here) continue
            reached += here
            if (!exact && reached >= density * n) exact = exp((bin + least) / fine)
            if (exp((bin + least + 0.5) / fine) >= gaussian) passing += here
        }
        printf "mean %.8g sigma %.8g exact %.8g gaussian %.8g beyond %d\n", mean, sigma, exact, gaussian, passing
        width = 4 * exact / 201
        for (bin in positive) coarse[int(100.5 + exp((bin + least + 0.5) / fine) / width)] += positive[bin]
        for (bin in negative) {
            at = 100.5 - exp((bin + least + 0.5) / fine) / width
            if (at >= 0) coarse[int(at)] += negative[bin]
        }
        coarse[100] += n - reached # zeros
        for (i = 0; i <= 200; i++) printf "bin %.8g %d\n", (i - 100) * width, coarse[i]
    }'
