#!/bin/sh
# cli_scaling.sh: scripts/scaling.sh: what it asks of simulate.sh, interruptions, the page, on rows that the test makes. Nothing is
# simulated: a program that answers from a table stands in for simulate.sh. Who wins, who is ahead, twins and what is still to
# be simulated, over tables made by hand, is tests/cli/cli_study.c's.
# shellcheck disable=SC2016 # programs for other shells and awks
. tests/lib/tap.sh

# -- the script: what it asks of simulate.sh, interruptions, the page -------------------------------------------------------------
cat > "$W/simulate" << END
#!/bin/sh
echo "\$*" >> "$W/log"
if [ -f "$W/stop" ] && [ "\$(wc -l < "$W/log")" -ge "\$(cat "$W/stop")" ]; then echo '{"algo":"half'; exit 143; fi
while [ \$# -gt 0 ]; do
    case \$1 in --algo) algos=\$2 ;; --wire) wire=\$2 ;; --p) p=\$2 ;; --n) n=\$2 ;; --compute) compute=\$2 ;; esac
    shift
done
for algo in \$(echo "\$algos" | tr , ' '); do
    awk -v algo=\$algo -v wire=\$wire -v p=\$p -v n=\$n -v compute=\${compute:-0} 'BEGIN { t = 0.1 } \$1 == algo && \$2 == wire { t = \$3 } END {
        printf "{\"algo\":\"%s\",\"n\":%s,\"k\":9,\"mean_s\":%g,\"words_sent_max\":5,\"local_nnz\":9,\"global_nnz\":9,\"step_s\":%g}\n", algo, n, t * p, compute + t * p }' "$W/times"
done
END
cat > "$W/times" << 'END'
topka coo32 0.001
topka packed 0.0009
gtopk coo32 0.002
gtopk packed 0.002
gtopk-rd coo32 0.0008
gtopk-rd packed 0.0004
topka packed-f32 0.00095
gtopk packed-f32 0.002
gtopk-rd packed-f32 0.0006
dense coo32 1
END
# On the map a quarter of that: what sends every entry competes there by its line, and is to be slower than these.
cp "$W/times" "$W/aims-times"
awk '{ $3 /= 4 } 1' "$W/aims-times" > "$W/times"
: > "$W/log"
scaling() { # scaling OPTION...: in $W/lab; its status
    SCALING_SIMULATE="sh $W/simulate" sh scripts/scaling.sh --out "$W/lab" "$@" > "$W/out" 2> "$W/err" < /dev/null
}
small="--only map --nets 1gbe --models ResNet-20 --densities 0.001 --p 4,8 --costs none"
calls() { grep -c . "$W/log"; }
if [ ! -f results/measured/profiles/resnet20-p8-0.001 ]; then
    not_ok "the profiles are there" "results/measured/profiles/resnet20-p8-0.001 is missing"
    finish
    exit
fi
echo 2 > "$W/stop"
# shellcheck disable=SC2086 # a list of options
scaling $small
check "interrupted: the status of the signal" [ $? -eq 143 ]
first=$(head -n 1 "$W/log")
of_first=$(echo "$first" | sed 's/.*--algo \([^ ]*\) .*/\1/' | tr , '\n' | grep -c .)
check "what was finished is there, and nothing of the rest" [ "$(grep -c . "$W/lab/simulated.csv") $(grep -c . "$W/lab/jobs.tsv")" = "$((of_first + 1)) 2" ]
rm "$W/stop"
printf '1gbe,ResNet-20,2697' >> "$W/lab/simulated.csv" # as if the machine had gone off in the middle of a line
# shellcheck disable=SC2086
scaling $small
status=$?
why="status $status: $(tail -n 2 "$W/err")"
check "it goes on" [ $status -eq 0 ]
check "the first job is not repeated" [ "$(grep -cxF -- "$first" "$W/log")" -eq 1 ]
check "it was of all at the first P" [ "$(echo "$first" | grep -c -- '--p 4 --algo topka,topkdsa,gtopk,gtopk-rd,oktopk,spardl.* --wire coo32')" -eq 1 ]
check "a line that was cut is gone" [ "$(awk -F , 'NF != 15' "$W/lab/simulated.csv" | grep -c .)" -eq 0 ]
check "every algorithm once" [ -z "$(cut -d , -f 1-7 "$W/lab/simulated.csv" | sort | uniq -d)" ]
check "what fell behind at P = 4 is not simulated at 8" [ "$(grep -cE '^1gbe,ResNet-20,269722,0.001,8,coo32,(oktopk|topkdsa|micro),' "$W/lab/simulated.csv")" -eq 0 ]
check "drawn gradients, held by what is not zero" grep -q -- '--density 0.001 --pattern fitted:results/measured/profiles/resnet20-p8-0.001 --device sparse --steps 2' "$W/log"
check "micro over ten times k numbers" grep -q -- '--algo micro --wire coo32 --n 2690 --density 0.1 --steps 2' "$W/log"
before=$(calls)
# shellcheck disable=SC2086
scaling $small
check "once more: nothing runs" [ "$(calls)" -eq "$before" ]
jobs() { # every row's job is in jobs.tsv, with its command
    why=$(awk -F '\t' 'NR == FNR { command[$1] = $4; next } FNR > 1 && !(command[$15] ~ ("--net " $1 " --p " $5 " ") && command[$15] ~ $7) { print "no job of " $0 }' "$W/lab/jobs.tsv" FS=, "$W/lab/simulated.csv")
    [ -z "$why" ]
}
check "every row names its command" jobs
page=$W/lab/scaling.md
has() {
    why="not in it: $1"
    grep -qF -- "$1" "$page"
}
check "the page: the map says who wins and by how much" has '| 1gbe | ResNet-20 | gtopk-rd 2.50 | gtopk-rd 2.50 | gtopk-rd 1.14 (m) |'
check "the page: crossovers" has '| 1gbe | ResNet-20 | 0.001 | gtopk-rd everywhere | gtopk-rd everywhere |'
check "the page begins with who is ahead: coo32" has '| coo32 | none | 2 | 2 | 0 | 0 | 1.25 | 1.25 | 1.25 | 2 / 0 / 0 |'
check "lossless" has '| lossless | none | 2 | 2 | 0 | 0 | 1.67 | 1.67 | 1.67 | 2 / 0 / 0 |'
check "rounded" has '| rounded | none | 2 | 2 | 0 | 0 | 2.50 | 2.50 | 2.50 | 2 / 0 / 0 |'
check "without a table of costs no local work is charged" [ "$(grep -c '^| rounded | charged' "$page")" -eq 0 ]
check "by the model, a twin is no cell of its own: three networks, the densities and P that were not simulated" has "| rounded | none | $((3 * 4 * 3 * 9 - 2)) |"
check "the simulator's error is that of sim-calibration" has "by more than the simulator's error, 8.3%"
check "the page: simulated over predicted" grep -q '^| gtopk-rd | coo32 | 2 | [0-9.]* | [0-9.]* | [0-9.]* |' "$page"
check "the page says where it comes from" has "| $("$PROGRAM" --version | sed -n '1s/.*(commit \([^)]*\)).*/\1/p') | $(($(grep -c . "$W/lab/simulated.csv") - 1)) | "
check "about.txt" [ "$(grep -cE '^(command: sh scripts/scaling.sh|commit: [0-9a-f]|machine: .|seconds: [0-9])' "$W/lab/about.txt")" -eq 4 ]
sed 's/^machine: .*/machine: of the rows/; s/^date: .*/date: 2001-02-03/' "$W/lab/about.txt" > "$W/about" && cp "$W/about" "$W/lab/about.txt"
# shellcheck disable=SC2086
scaling $small --only page
check "the page alone: rows stay those of their machine and day" cmp -s "$W/about" "$W/lab/about.txt"
check "so the page says" has ' s of simulation on of the rows (simulated times'
# shellcheck disable=SC2086
scaling $small
check "and where nothing is left to simulate" cmp -s "$W/about" "$W/lab/about.txt"
if command -v gnuplot > /dev/null 2>&1; then
    check "four pictures" [ "$(for p in winners-coo32 winners-packed ahead-lossless ahead; do head -c 4 "$W/lab/$p.png" | grep -c PNG; done | paste -s -d + -)" = 1+1+1+1 ]
else
    skip "four pictures" "gnuplot is not installed"
fi

# Ours behind: a published algorithm that is faster than all.
rm "$W/lab/simulated.csv"
sed 's/^topka coo32.*/topka coo32 0.00005/' "$W/times" > "$W/times2" && mv "$W/times2" "$W/times"
# shellcheck disable=SC2086
scaling $small
check "behind: loudly, in each class" has '| rounded | none | 2 | 0 | 0 | **2** | 0.50 | 0.50 | 0.50 | 0 / 0 / 2 |'
check "behind: where" grep -q '^| 1gbe | ResNet-20 | 0.001 | \*\*behind\*\* 4 to 8, .*| \*\*behind\*\* 4 to 8, .*| \*\*behind\*\* 4 to 8, ' "$page"
check "behind: bold in the map" has '| 1gbe | ResNet-20 | topka coo32 **0.50** | topka coo32 **0.50** |'
check "another winner than the model's, with the reason" grep -q '^| gtopk-rd | topka | [0-9]* | .*all-gather of our own' "$page"

# A lead of 6%: within the error of a simulated step.
rm "$W/lab/simulated.csv"
sed 's/^topka coo32.*/topka coo32 0.0002125/' "$W/times" > "$W/times2" && mv "$W/times2" "$W/times"
# shellcheck disable=SC2086
scaling $small
check "within the error: no lead" has '| coo32 | none | 2 | 0 | 2 | 0 | 1.06 | 1.06 | 1.06 | 0 / 2 / 0 |'
check "within the error: marked in the map" has '| 1gbe | ResNet-20 | gtopk-rd 1.06~ | gtopk-rd 1.06~ |'
check "within the error: not so the rounded ones" has '| rounded | none | 2 | 2 | 0 | 0 | 2.12 | 2.12 | 2.12 | 2 / 0 / 0 |'

# The aims
cp "$W/aims-times" "$W/times"
{
    echo model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source
    echo vgg16,14728266,gpu,select,,exact,,0.001,,,0.002,,a test
    for algo in gtopk gtopk-rd spardl; do
        echo vgg16,14728266,gpu,word,$algo,exact,coo32,0.001,,2,1e-9,,a test
        for wire in packed packed-f32; do echo vgg16,14728266,gpu,word,$algo,exact,$wire,0.001,,2,3e-9,,a test; done
    done
} > "$W/costs"
: > "$W/log"
scaling --only aims --costs "$W/costs" --on gpu
charged() { grep -c -- "--select-cost 0.002 --word-cost $1" "$W/log"; }
check "aims: each algorithm at two P, and once more with its costs where there are any" [ "$(calls) $(charged 1e-09) $(charged 3e-09) $(grep -c . "$W/lab/aims.csv")" = "118 6 8 119" ]
check "aims: the paper's step times" [ "$(grep -c -- '--n 14728266 .*--compute 0.097 ' "$W/log") $(grep -c -- '--compute 4.842 ' "$W/log")" = "40 26" ]
check "aims: reached or not, of the best of ours" has '| VGG-16 | 32 | 93.0% | 83.5% gtopk-rd, packed-f32 | **no** | 88.3% gtopk-rd, packed | **no** | 0.3% |'
check "aims: not reached, loudly" grep -q '^\*\*Not reached, rounded:\*\* .*VGG-16 at P = 32 (88.3%)' "$page"
check "aims: reached" has '| ResNet-50 | 32 | 93.0% | 99.6% gtopk-rd, packed-f32 | yes | 99.7% gtopk-rd, packed | yes |'
check "aims: the paper's measurement beside its own model" has '| VGG-16 | dense | 1.0% | 8.4% | 0.3% | 10.1 s | 1.15 s |'
scaling --only aims --costs "$W/costs" --on gpu
check "aims: nothing twice" [ "$(calls)" -eq 118 ]
check "aims: with costs, of which table" has "as measured on the device gpu (\`$W/costs\`;"

# -- mistakes ------------------------------------------------------------------------------------------------------------------
wrong() { # wrong NAME TEXT OPTION...
    wrong_name=$1 wrong_text=$2
    shift 2
    scaling "$@"
    wrong_status=$?
    why="status $wrong_status: $(head -c 300 "$W/err")"
    if [ $wrong_status -eq 2 ] && grep -qF -- "$wrong_text" "$W/err"; then ok "$wrong_name"; else not_ok "$wrong_name" "$why"; fi
}
wrong "an unknown option" "unknown option --fast" --fast
wrong "an option without a value" "--p needs a value" --p
wrong "a P that the map has not" "--p 5: the map has 4," --p 4,5
wrong "--only of nothing" "map, aims or page" --only all
wrong "a device that the table has not" "has no selection on it; it has: gpu" --costs "$W/costs" --on cpu
wrong "no table of costs" "there is no file" --costs "$W/nothing"
unbuilt() {
    BUILD=$W/nothing scaling --plan
    [ $? -eq 2 ] && grep -qF 'build it first: make' "$W/err"
}
check "no program" unbuilt
# no simulation: a PATH without smpirun
mkdir "$W/bin"
for tool in sh awk sed cat dirname mkdir mktemp rm head tail wc cut tr grep; do ln -s "$(command -v $tool)" "$W/bin/$tool"; done
without() {
    PATH=$W/bin sh scripts/scaling.sh --out "$W/lab" "$@" > "$W/out" 2> "$W/err" < /dev/null
    without_status=$?
    why="status $without_status: $(head -c 300 "$W/err")"
    [ $without_status -eq 2 ] && grep -qF 'smpirun is not installed (SimGrid): sh scripts/deps.sh sim' "$W/err"
}
check "no SimGrid: what to do" without --only map
finish
