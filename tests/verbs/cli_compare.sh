#!/bin/sh
# cli_compare.sh: the verb `compare`: what runs took to their target, over the seeds of each configuration; of runs of a sweep, and
# of logs whose numbers are known.
. tests/lib/tap.sh

# log NAME ALGO SEED STEPS SECONDS BYTES: a run that reached its target; without numbers: that did not
log() {
    took='"reached":false'
    [ $# -lt 6 ] || took="\"reached\":true,\"score\":0.91,\"steps\":$4,\"epochs\":1,\"seconds\":$5,\"elapsed_seconds\":9,\"bytes_sent\":$6"
    cat > "$W/$1" << END
{"type":"header","run":"$1","ranks":4,"config":{"algo":"$2","density":0.001,"seed":$3,"out":"$W/$1"}}
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
check "as RFC 4180 has it" grep -q "^\"gtopk\",test:accuracy:0.9,6,5,0,steps,5,3,3,1,5,1.58[0-9]*,\"dense\",-2,8,0.0402[0-9]*$(printf '\r')\$" "$W/out"
# Stopped on its way, ended at a target of its own that was reached before the one that is asked for; trained to the end.
for seed in 7 8; do
    log "miss$seed" gtopk $seed
    sed "s/\"step\":9,/\"step\":4,\"completed\":false,\"prefix\":$([ $seed -eq 7 ] && echo true || echo false),/" "$W/miss$seed" > "$W/short$seed"
    sed 's/"step":9,/&"completed":true,"prefix":false,/' "$W/miss$seed" > "$W/whole$seed"
done
sed 's/"step":9,/"step":4,"completed":false,"prefix":false,/' "$W/gtopk1" > "$W/early"
check "runs that ended before their length" compared "$W/early" "$W"/gtopk[2-6] "$W"/short? "$W"/dense? --json
check "are none that did not reach it" says runs,reached,unfinished,steps.mean "6${tab}5${tab}2${tab}3" gtopk
check "as text" compared "$W/early" "$W"/gtopk[2-6] "$W"/short?
check "they are named" grep -q "^gtopk: 5 of 6 runs reached test:accuracy:0.9; 2 unfinished, which ended before their length" "$W/out"
check "as CSV" compared "$W/early" "$W"/gtopk[2-6] "$W"/short? --csv
check "they have a column" sh -c "head -n 1 '$W/out' | grep -q '^configuration,target,runs,reached,unfinished,measure,' && grep -q '^\"gtopk\",test:accuracy:0.9,6,5,2,steps,' '$W/out'"
check "those that went to their end without it" compared "$W"/gtopk[1-6] "$W"/whole? --json
check "are" says runs,reached,unfinished "8${tab}5${tab}0" gtopk
check "none but unfinished ones" compared "$W"/short?
check "are not taken for failures" grep -q "^gtopk: 0 of 0 runs reached test:accuracy:0.9; 2 unfinished" "$W/out"
sed 's/"density":0.001/"density":0.01/' "$W/gtopk1" > "$W/denser"
sed 's/"run":"/&tuned-/; s/"density":0.001/&,"init-from":"\/a\/b"/' "$W/gtopk1" > "$W/tuned1"
sed 's/"run":"/&tuned-/; s/"density":0.001/&,"init-from":"c"/' "$W/gtopk2" > "$W/tuned2"
sed 's/"density":0.001/&,"init-from":null/' "$W/gtopk3" > "$W/untuned"
check "those that begin with what others have learnt" compared "$W/gtopk1" "$W/gtopk2" "$W/untuned" "$W"/tuned? --json
check "are apart, wherever from" [ "$("$PROGRAM" rows "$W/out" --keys runs | tr '\n' ' ')" = "3 2 " ]
check "one of another density" compared "$W"/gtopk? "$W/denser" --json
check "is a configuration of its own, and says so" grep -q '"configuration":"gtopk density=0.01"' "$W/out"

long=$(printf '%0200d' 0)
for last in a b; do sed "s|\"density\":0.001|\"data\":\"/$long/$last\"|" "$W/gtopk1" > "$W/long-$last"; done
check "two of which long values tell" compared "$W/long-a" "$W/long-b" --json
check "have names that tell them apart" sh -c "grep -q '\"configuration\":\"gtopk data=/$long/a\"' '$W/out' && grep -q '\"configuration\":\"gtopk data=/$long/b\"' '$W/out'"
sed 's/"density":0.001,/&"wire":null,/' "$W/gtopk1" > "$W/later-version"
check "an option that is null makes none" compared "$W"/gtopk[2-5] "$W/later-version" --json
check "other than one that is not there" says configuration,runs "gtopk${tab}5" gtopk
sed 's/"type":"summary",/&"resized":2,/' "$W/gtopk1" > "$W/resized"
check "one that had other ranks before" compared "$W"/gtopk[2-5] "$W/resized" --json
check "is another configuration, too" grep -q '"configuration":"gtopk resized=2",.*"runs":1,' "$W/out"

# noted TEXT ARGS...: with status 0 and one line on stderr
noted() {
    noted_text=$1
    shift
    "$PROGRAM" compare "$@" > "$W/out" 2> "$W/err" < /dev/null
    told $? "$noted_text" 0
}
twice() { noted "are one run, which counts once" "$@"; }
mkdir "$W/run"
cp "$W/gtopk2" "$W/run/run.jsonl"
check "a run that is named twice" twice "$W"/dense[1-5] "$W"/gtopk? "$W/gtopk2" --json
check "counts once" says runs,reached,steps.t "6${tab}5${tab}-2" gtopk
check "so does a copy of its log" twice "$W/run" "$W/run/run.jsonl" "$W"/dense[1-5] "$W"/gtopk? --json
check "by whatever name" says runs,reached,steps.t "6${tab}5${tab}-2" gtopk
sed 's/"steps":2/"steps":3/' "$W/gtopk2" > "$W/part"
check "of two logs of a run with different ends neither is taken for it" silent mistaken_alone "compare: $W/gtopk2 and $W/part are logs of one run; leave one of them out" compare "$W"/gtopk? "$W/part"
sed 's/"ranks":4/"ranks":2/' "$W/part" > "$W/other-ranks"
check "but what went on from it in another way is another run" compared "$W"/gtopk? "$W/other-ranks" --json

sed 's/"density":0.001/"density":"\\u001b[2J\\nalgo=x"/' "$W/gtopk1" > "$W/crafted"
for seed in 1 2 3 4 5; do sed 's/"density":0.001/"density":0.01/' "$W/dense$seed" > "$W/other$seed"; done
check "two configurations of dense" noted "compare: no t-test against dense for test:accuracy:0.9: it has several configurations; give one of their runs as --against: $W/dense1 (dense density=0.001), $W/other1 (dense density=0.01)" "$W"/dense[1-5] "$W"/other? "$W"/gtopk? --json
check "are none to hold others against" says against,steps.t "-${tab}-" gtopk
for run in 1 2; do sed 's/"value":0.9/"value":0.8/g' "$W/gtopk$run" > "$W/easier$run"; done
check "who has no run of a target is said" noted "compare: no t-test against dense for test:accuracy:0.8: none of its runs has that target" "$W"/dense[1-5] "$W"/gtopk? "$W"/easier? --json
check "nor a run that was named" noted "compare: no t-test against $W/dense1 for test:accuracy:0.8: none of its runs has that target" "$W"/dense[1-5] "$W"/gtopk? "$W"/easier? --json --against "$W/dense1"
check "and refused when asked for" silent mistaken_alone "compare: --against dense has several configurations for test:accuracy:0.9; give one of their runs: $W/dense1 (dense density=0.001), $W/other1 (dense density=0.01)" compare "$W"/dense[1-5] "$W"/other? "$W"/gtopk? --against dense
check "but a run says which" compared "$W"/dense[1-5] "$W"/other? "$W"/gtopk? --json --against "$W/other2"
check "is meant" says steps.t -2 gtopk
check "which the output names" says against "dense density=0.01" gtopk
check "and not held against itself" sh -c "grep '\"dense density=0.01\"' '$W/out' | grep -q '\"steps\":{[^}]*\"t\":null'"
for seed in 1 2 3 4 5; do
    for wire in coo32 bf16; do sed "s/\"density\":0.001/&,\"wire\":\"$wire\"/" "$W/dense$seed" > "$W/dense-$wire-$seed"; done
    sed 's/"density":0.001/&,"wire":"coo32"/' "$W/gtopk$seed" > "$W/sparse$seed"
    sed 's/"density":0.01/&,"wire":"coo32"/' "$W/other$seed" > "$W/other-coo32-$seed"
done
for against in '' '--against dense'; do
    # shellcheck disable=SC2086 # words
    check "dense in two formats $against" compared "$W"/dense-bf16-? "$W"/dense-coo32-? "$W"/sparse? --json $against
    check "the one of full precision is meant $against" says against,steps.t "dense wire=coo32${tab}-2" gtopk
    check "against which the other is held, too $against" sh -c "grep '\"dense wire=bf16\"' '$W/out' | grep -q '\"against\":\"dense wire=coo32\".*\"steps\":{[^}]*\"t\":0,'"
done
check "as text" compared "$W"/dense-bf16-? "$W"/dense-coo32-? "$W"/sparse?
check "it says which" grep -q "; below dense wire=coo32: t -2, " "$W/out"
check "as CSV" compared "$W"/dense-bf16-? "$W"/dense-coo32-? "$W"/sparse? --csv
check "in a column" sh -c "head -n 1 '$W/out' | grep -q ',deviation,against,t,' && grep -q '^\"gtopk wire=coo32\",.*,steps,.*,\"dense wire=coo32\",-2,8,' '$W/out'"
check "where another difference comes to it, none is meant" silent mistaken_alone "--against dense has several configurations" compare "$W"/dense-bf16-? "$W"/dense-coo32-? "$W"/other-coo32-? "$W"/sparse? --against dense
mkdir "$W/directory"
cp "$W/other2" "$W/directory/run.jsonl"
check "slashes behind its name say nothing" compared "$W"/dense[1-5] "$W"/other[1345] "$W/directory/" "$W"/gtopk? --json --against "$W/directory"
check "it is meant" says steps.t -2 gtopk
for against in gtopl "$W/gtopk" "$W/gtopk9"; do
    check "neither a run nor an algorithm, $against" silent mistaken_alone "compare: --against $against is none of these runs, and none of them has such an algorithm" compare "$W"/dense[1-5] "$W"/gtopk? --against "$against"
done
check "nor is the default, when asked for" silent mistaken_alone "--against dense is none of these runs" compare "$W"/gtopk? --against dense

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
tiny="--data synthetic:64x16 --batch 8 --epochs 1 --eval-every 0.25 --lr 0.01 --algo dense"
# shellcheck disable=SC2086 # words
start 1 $tiny --out "$W/stopped" --seed 4 --stop-at 0.5 && start 1 $tiny --out "$W/at-once" --seed 5 --target loss:1000 && start 1 $tiny --out "$W/to-its-end" --seed 6
check "runs that were stopped, at once at their own target, and to their end" compared "$W/stopped" "$W/at-once" "$W/to-its-end" --target loss:0.001 --json
check "are one that did not reach it, and two unfinished" says runs,reached,unfinished "1${tab}0${tab}2" dense

# Without a target of their own: two evaluations, of which the second has come as far; a log with all steps, and one without the first.
aimless() { # NAME ALGO SEED STEPS
    log "$1" "$2" "$3"
    {
        sed -n 1p "$W/$1"
        echo '{"type":"eval","step":0,"valid_loss":4.1,"test_accuracy":0.1,"train_seconds":0}'
        seq "$4" | sed 's/.*/{"type":"step","step":&,"loss":2,"bytes_sent_mean":10,"seconds":0.5}/'
        echo "{\"type\":\"eval\",\"step\":$4,\"valid_loss\":1.9,\"test_accuracy\":0.8,\"train_seconds\":7}"
        echo '{"type":"eval","step":90,"valid_loss":1.8,"test_accuracy":0.9,"train_seconds":9}'
        echo '{"type":"summary","step":90}'
    } > "$W/rest" && mv "$W/rest" "$W/$1"
}
for seed in 1 2 3; do
    aimless "plain$seed" dense $seed $((seed * 2))
    aimless "sent$seed" topka $seed $((seed * 2))
    sed -i '/"step":1,/d' "$W/sent$seed"
done
check "a target that no run was started with" compared "$W"/plain? "$W"/sent? --json --target loss:2
check "the first evaluation counts, with the steps up to there" says target,reached,steps.mean,seconds.mean,bytes_sent.mean "valid:loss:2${tab}3${tab}4${tab}2${tab}40" dense
check "of a log without some steps the evaluation says the seconds, nothing the bytes" says reached,steps.mean,seconds.mean,bytes_sent.mean "3${tab}4${tab}7${tab}-" topka
for seed in 1 2 3; do sed 's/"train_seconds":7/&,"bytes_sent":50/' "$W/sent$seed" > "$W/said$seed"; done
check "newer ones say the bytes, too" compared "$W"/plain? "$W"/said? --json --target loss:2
check "up to there" says reached,steps.mean,seconds.mean,bytes_sent.mean "3${tab}4${tab}7${tab}50" topka
check "of a log with all steps these count" compared "$W"/plain1 --json --target loss:2
check "of which there are two" says bytes_sent.mean 20 dense
cat "$W/plain1" "$W/plain1" | sed '/"step":1,/d' > "$W/twice"
check "nor the seconds, where two processes wrote it" compared "$W/twice" --json --target loss:2
check "which are unknown then" says reached,steps.mean,seconds.mean "1${tab}2${tab}-" dense
check "as text" compared "$W/twice" --target loss:2
check "it is said" grep -q '^  seconds     of 0 of 1 that reached it$' "$W/out"
for form in text --json --csv; do
    check "beside two that say so, $form" compared "$W/twice" "$W"/plain[23] --target loss:2 ${form##text}
    cp "$W/out" "$W/as$form"
done
check "means of fewer than reached it say of how many" grep -q '^  seconds     of 2 of 3 that reached it: olympic mean: of 3 runs and more, mean 2.5, ' "$W/astext"
check "others do not" grep -q '^  steps       olympic mean 4, ' "$W/astext"
check "JSON has it of each" sh -c "grep -q '\"steps\":{\"n\":3,.*\"seconds\":{\"n\":2,.*\"bytes_sent\":{\"n\":2,' '$W/as--json'"
check "so has CSV" sh -c "head -n 1 '$W/as--csv' | grep -q ',measure,n,olympic_mean,' && grep -q ',3,3,0,seconds,2,,2.5,' '$W/as--csv'"
sed '1s/"ranks":4/&,"resumed_at":1/; /"step":1,/d' "$W/plain2" > "$W/later"
check "a log that begins in the middle of its run is refused" silent mistaken_alone "compare: the log $W/later begins at step 1, and what was before is not in it" compare "$W/plain1" "$W/later" --target loss:2
{ cat "$W/plain1" && cat "$W/later"; } > "$W/gone-on"
check "one that was resumed where it was is not" compared "$W/gone-on" --json --target loss:2
check "one of the test set" compared "$W"/plain? --json --target test:accuracy:0.85
check "which came later, and has not all steps" says target,steps.mean,bytes_sent.mean "test:accuracy:0.85${tab}90${tab}-" dense
check "bits per character" compared "$W"/plain? --json --target bpc:2.75
check "are the loss over ln 2" says target,steps.mean "valid:bpc:2.75${tab}4" dense
check "one that nobody reached" compared "$W"/plain? --target loss:1
check "is said" grep -q '^dense: 0 of 3 runs reached valid:loss:1$' "$W/out"
check "a target of their own is as good" compared "$W"/sweep/*-seed?/ --json --target loss:1000
check "with the same end" says runs,reached,steps.olympic_mean "3${tab}3${tab}0" topka

echo '{"type":"header","ranks":1,"config":{"algo":"dense"}}' > "$W/begun"
sed 's/,"target":{.*}}/}/' "$W/dense1" > "$W/aimless"
check "no runs" mistaken_alone "runs are needed" compare
check "one that is not there" mistaken_alone "compare: cannot read $W/none: No such file" compare "$W/none"
check "one that has not ended" mistaken_alone "compare: $W/begun holds no run that has ended" compare "$W/begun"
check "one without a target" mistaken_alone "the run in $W/aimless has no target: start it with --target, or give one here" compare "$W/dense1" "$W/aimless"
check "a score that is none" mistaken_alone '--target has no metric "beauty"' compare "$W/plain1" --target beauty:1
check "one that evaluations do not have" mistaken_alone "compare: the evaluations in $W/plain1 give no wer" compare "$W/plain1" --target wer:0.3
check "nor of that set" mistaken_alone "compare: the evaluations in $W/plain1 give no test:loss" compare "$W/plain1" --target test:loss:2
if calls_fail "a log that cannot be read to its end"; then
    seq 2000 | sed 's/.*/{"type":"step","step":&,"loss":2}/' | cat - "$W/dense1" "$W/dense1" > "$W/long"
    for call in 1 2; do
        faulty 1 "read long$ $call 0 EIO" compare "$W/dense1" "$W/long"
        check "a log that cannot be read to its end is no mistake, $call" told $? "compare: cannot read $W/long: Input/output error" 1
    done
fi
check "two forms" mistaken_alone "--json and --csv exclude each other" compare "$W/dense1" --json --csv
finish
