#!/bin/sh
# cli_compare.sh: the verb `compare`: what runs took to their target, over the seeds of each configuration; of runs of a sweep, and
# of logs whose numbers are known.
. tests/lib/tap.sh

# log NAME ALGO SEED STEPS SECONDS BYTES: a run that reached its target; without numbers: that did not
log() {
    took='"reached":false'
    [ $# -lt 6 ] || took="\"reached\":true,\"score\":0.91,\"steps\":$4,\"epochs\":1,\"seconds\":$5,\"elapsed_seconds\":9,\"bytes_sent\":$6"
    cat > "$W/$1" << END
{"type":"header","run":"0123456789abcdef","ranks":4,"config":{"algo":"$2","density":0.001,"seed":$3,"out":"$W/$1"}}
{"type":"step","step":1,"loss":2}
{"type":"summary","step":9,"target":{"metric":"accuracy","split":"test","value":0.9,$took}}
END
}
# compared ARGS...: with status 0
compared() {
    timeout 60 "$PROGRAM" compare "$@" > "$W/out" 2> "$W/err" < /dev/null
    why="status $?: $(head -c 300 "$W/err")"
    [ ! -s "$W/err" ] && [ -s "$W/out" ]
}
# says KEYS TEXT [WHERE]: of --json
says() {
    said=$("$PROGRAM" rows "$W/out" --keys "$1" --missing - --where "algo=$3")
    why="said $said"
    [ "$said" = "$2" ]
}
tab=$(printf '\t')
seed=0
for steps in 3 4 5 6 7; do
    seed=$((seed + 1))
    log "dense$seed" dense $seed $steps 10 1000
    log "gtopk$seed" gtopk $seed $((steps - 2)) $((steps * 10)) 100
done
log gtopk6 gtopk 6
check "runs of two algorithms" compared "$W"/dense? "$W"/gtopk? --json
check "the olympic mean, mean, spread and deviation" says runs,reached,steps.olympic_mean,steps.mean,steps.least,steps.most "5${tab}5${tab}5${tab}5${tab}3${tab}7" dense
check "one that did not reach it is counted" says runs,reached,steps.olympic_mean,steps.mean "6${tab}5${tab}3${tab}3" gtopk
check "Welch's test against dense: t = -2 of 8 degrees" says steps.t,steps.freedom "-2${tab}8" gtopk
check "p" sh -c "'$PROGRAM' rows '$W/out' --keys steps.p --where algo=gtopk | awk '{ exit !(\$1 > 0.040257 && \$1 < 0.040259) }'"
check "none of dense against itself, nor where nothing varies" says steps.p,seconds.p "-${tab}-" dense
check "another to hold them against" compared "$W"/dense? "$W"/gtopk? --json --against gtopk
check "then dense is above" says steps.t "2" dense
check "as text" compared "$W"/dense? "$W"/gtopk?
check "it names both" grep -q "steps  *olympic mean 3, mean 3, 1..5, deviation 1.581; below dense: t -2, 8 degrees of freedom, p 0.0403" "$W/out"
check "and the target" grep -q "^gtopk: 5 of 6 runs reached test:accuracy:0.9" "$W/out"
check "two runs" compared "$W/dense1" "$W/dense2"
check "want a third" grep -q "olympic mean: of 3 runs and more, mean 3.5" "$W/out"
check "--csv" compared "$W"/dense? "$W"/gtopk? --csv
check "a head and a row for each measure" [ "$(wc -l < "$W/out")" -eq 7 ]
check "as RFC 4180 has it" grep -q "^\"gtopk\",test:accuracy:0.9,6,5,steps,3,3,1,5,1.58[0-9]*,-2,8,0.0402[0-9]*$(printf '\r')\$" "$W/out"
sed 's/"density":0.001/"density":0.01/' "$W/gtopk1" > "$W/denser"
check "one of another density" compared "$W"/gtopk? "$W/denser" --json
check "is a configuration of its own, and says so" grep -q '"configuration":"gtopk density=0.01"' "$W/out"

sed 's/"density":0.001/"density":"\\u001b[2J\\nalgo=x"/' "$W/gtopk1" > "$W/crafted"
check "a log that somebody made" compared "$W/gtopk2" "$W/crafted"
tr -d '\033' < "$W/out" > "$W/quiet"
check "moves no cursor" cmp -s "$W/quiet" "$W/out"
check "and is one line for each, and its measures" [ "$(wc -l < "$W/out")" -eq 8 ]

# Runs of a sweep, which the scripts start and go on with.
sh scripts/sweep.sh --np 1 --out "$W/sweep" --algo dense,topka --seed 1,2,3 -- --data synthetic:64x16 --batch 8 --epochs 1 --eval-every 0.5 --lr 0.01 --target loss:1000 > "$W/swept" 2>&1
check "a sweep over seeds, all of which reach their target" [ $? -eq 0 ]
check "compared" compared "$W"/sweep/*-seed?/ --json
check "three runs each" says runs,reached,steps.olympic_mean "3${tab}3${tab}0" topka
sh scripts/sweep.sh --np 1 --out "$W/sweep" --algo dense,topka --seed 1,2,3 -- --data synthetic:64x16 --batch 8 --epochs 1 --eval-every 0.5 --lr 0.01 --target loss:1000 > "$W/swept" 2>&1
check "called again it starts none" [ "$(grep -c ': is done' "$W/swept")" -eq 6 ]

echo '{"type":"header","ranks":1,"config":{"algo":"dense"}}' > "$W/begun"
sed 's/,"target":{.*}}/}/' "$W/dense1" > "$W/aimless"
check "no runs" mistaken_alone "runs are needed" compare
check "one that is not there" mistaken_alone "compare: cannot read $W/none: No such file" compare "$W/none"
check "one that has not ended" mistaken_alone "compare: $W/begun holds no run that has ended" compare "$W/begun"
check "one without a target" mistaken_alone "the run in $W/aimless has no target; start it with --target" compare "$W/dense1" "$W/aimless"
check "two forms" mistaken_alone "--json and --csv exclude each other" compare "$W/dense1" --json --csv
finish
