#!/bin/sh
# gtopk-fig8: time of a message against its size, and the fit by alpha and beta
# paper: Fig. 8: on 1 Gbit/s Ethernet a message takes alpha + beta m with alpha = 0.436 ms and beta = 3.6e-5 ms per element of
#     four bytes, linear in its size (OSU benchmark between two machines)
# runs: sparsetrain p2p between two ranks: on this machine; over an emulated network of 1 Gbit/s and 400 us (netlab.sh:
#     real TCP between network namespaces); in simulation of the paper's cluster (simulate.sh)
# needs: any machine; root for the emulated network, SimGrid for the simulated one (their rows are skipped by name)
# takes: full: 10 s; quick: 1 s
# agrees: self-checks alone: both networks are made to be the paper's, and no such hardware is at hand. Emulated: alpha and beta within 15% of the paper's; simulated: within 1%; the emulated time is linear in the size,
#     R^2 of the fit at least 0.99. What this machine's memory does is shown, not compared: it is another network
. scripts/reproduce/lib.sh

# In full the paper's range, as far as it can be known, and many rounds; shared memory wanders, TCP less so.
sizes=$(pick 4:4M:2 1K:1M:4)
source=$(published gtopk-settings.csv source quantity=alpha version=both)
claim gtopk-alpha-beta
against self # the lab and the simulation are made to have these numbers
alpha=$(published gtopk-settings.csv value quantity=alpha version=both)
beta=$(published gtopk-settings.csv value quantity=beta version=later)

fitted() { values "$1" "$2" --where bench=p2p-fit | head -n 1; }
# measured KIND FILE NETWORK ALPHA-RULE BETA-RULE R2-RULE: rows and a series of one network
measured() {
    row "$3" alpha ms "$alpha" "$source" "$(calc "1000 * $(fitted "$2" alpha_s)")" "$1" "$4"
    row "$3" beta 'ms per element' "$beta" "$source" "$(calc "1000 * $(fitted "$2" beta_s)")" "$1" "$5"
    row "$3" 'R^2 of the fit (paper: linear)' '' '' "$source" "$(fitted "$2" r2)" "$1" "$6"
    values "$2" bytes,median_s --where bench=p2p | awk '{ print $1, 1000 * $2 }' | block "$3" >>"$out/figure.dat"
}
# absent KIND NETWORK WHY
absent() {
    say "$1 rows skipped: $3"
    row "$2" alpha ms "$alpha" "$source" '' "$1" none "skipped: $3"
    row "$2" beta 'ms per element' "$beta" "$source" '' "$1" none "skipped: $3"
}

awk -v alpha="$alpha" -v beta="$beta" 'BEGIN { for (b = 4; b <= 4194304; b *= 4) print b, alpha + beta * b / 4 }' |
    tolerance 'within 15%' | block "the paper's fit, +-15%" >"$out/figure.dat"
mpi_job real.jsonl 2 p2p --sizes "$sizes" --repeat "$(pick 100 20)" --json
measured real real.jsonl 'shared memory of this machine' none none none
lab='1 Gbit/s and 400 us between network namespaces' cluster='1 Gbit/s cluster in SimGrid'

if [ -z "$finished" ] && [ "$(id -u)" != 0 ]; then
    absent emulated "$lab" 'network namespaces need root: run it as root'
elif try_job emulated.jsonl sh scripts/netlab.sh run --p 2 --rate 1gbit --delay 400us -- "$program" p2p --sizes "$sizes" \
    --repeat "$(pick 20 5)" --json; then
    measured emulated emulated.jsonl "$lab" 'within 15%' 'within 15%' 'at least 0.99'
else
    absent emulated "$lab" "$why"
fi

if [ -z "$finished" ] && ! has smpirun; then
    absent simulated "$cluster" 'smpirun is not installed: sh scripts/deps.sh sim'
elif [ -z "$finished" ] && [ ! -x "${BUILD:-build}/sparsetrain-sim" ]; then
    absent simulated "$cluster" "${BUILD:-build}/sparsetrain-sim is not there: make sim"
elif try_job simulated.txt sh scripts/simulate.sh --calibrate --net 1gbe; then
    # 1gbe, between nodes   alpha 436.02 us of 436 (+0.005%), beta 36 ns/word of 36 (...)
    found() { ! here_now simulated.txt || sed -n "/^1gbe, between nodes  /s/.*$1 \([0-9.e+-]*\) .*/\1/p" "$out/simulated.txt"; }
    sim_alpha=$(found alpha) sim_beta=$(found beta)
    row "$cluster" alpha ms "$alpha" "$source" "$(calc "$sim_alpha / 1000")" simulated 'within 1%'
    row "$cluster" beta 'ms per element' "$beta" "$source" "$(calc "$sim_beta / 1e6")" simulated 'within 1%'
    awk -v alpha="$sim_alpha" -v beta="$sim_beta" 'BEGIN { for (b = 4; b <= 4194304; b *= 4) print b, alpha / 1000 + beta / 1e6 * b / 4 }' |
        block "$cluster, fit" >>"$out/figure.dat"
else
    absent simulated "$cluster" "$why"
fi
figure figure.png "$out/figure.dat" lines.gp published=1 logx=10 logy=10 title='Point-to-point messages' \
    xlabel='message [bytes]' ylabel='time [ms]' key='inside left top reverse Left'
finish
