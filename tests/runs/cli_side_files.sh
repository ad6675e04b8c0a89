#!/bin/sh
# cli_side_files.sh: --mllog and --log-tensorboard: files for other programs, as the run was, through kills and resumes, and
# nothing of the run changes by them. At P = 1, 2, 3.
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
images="--data synthetic:96x24 --batch 8 --lr 0.01 --epochs 3 --lr-warmup 0 --eval-every 0.5"
sparse="--algo gtopk --density 0.05 --density-warmup none"
words="--model lstm --hidden 8 --bptt 4 --batch 2 --data synthetic-text:400x60x60 --epochs 2"
events=$(pwd)/$BUILD/tests/cli_event_file

same() {
    why="\"$1\" and \"$2\" differ, or are nothing"
    [ -n "$1" ] && [ "$1" = "$2" ]
}

# -- MLPerf logs -----------------------------------------------------------------------------------------------------------
# Every line has these members and no others, in this order.
text='"([^"\\]|\\.)*"' number='-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?'
form=":::MLLOG \\{\"namespace\":\"\",\"time_ms\":[1-9][0-9]{12},\"event_type\":\"(POINT_IN_TIME|INTERVAL_START|INTERVAL_END)\",\"key\":\"[a-z0-9_]+\""
form="$form,\"value\":(null|true|false|$number|$text|\\[($number(,$number)*)?\\]),\"metadata\":\\{\"file\":$text,\"lineno\":[1-9][0-9]*(,\"[a-z_]+\":($number|$text))*\\}\\}"
# of FILE KEYS [OPTION...]: out of such a log, by the program's own strict reader of JSON
of() {
    of_file=$1 of_keys=$2
    shift 2
    sed 's/^:::MLLOG //' "$of_file" | "$PROGRAM" rows - --keys "$of_keys" --missing - "$@" 2> "$W/rows"
}
# sound FILE: the form of every line; time does not run back; intervals begin, end, and lie in each other; what is to be there
# once is, in this order
sound() {
    why="a line has another form: $(grep -vxE "$form" "$1" | head -n 1)"
    [ -s "$1" ] && ! grep -qvxE "$form" "$1" || return 1
    of "$1" event_type,key,time_ms,metadata.status,metadata.epoch_num > "$W/of"
    why="no JSON: $(cat "$W/rows")"
    [ "$(wc -l < "$W/of")" -eq "$(wc -l < "$1")" ] || return 1
    awk -F '\t' '
        function wrong(what) { print what ", line " NR; bad = 1; exit }
        $3 + 0 < time { wrong("time runs back") }
        { time = $3 + 0; many[$2]++ }
        $1 == "INTERVAL_START" { if (sub(/_start$/, "", $2) != 1) wrong("no start"); open[++depth] = $2; if ($2 == "epoch") epoch = $5 }
        $1 == "INTERVAL_END" { if (sub(/_stop$/, "", $2) != 1 || open[depth--] != $2) wrong($2 " ends here"); if ($2 == "epoch" && $5 != epoch) wrong("another epoch ends") }
        $1 == "POINT_IN_TIME" && $2 == "eval_accuracy" && open[depth] != "eval" { wrong("a score outside of an evaluation") }
        $2 ~ /^(epoch|eval)/ && $2 != "eval_samples" && open[1] != "run" { wrong($2 " outside of the run") }
        $2 == "run" && $1 == "INTERVAL_END" && $4 !~ /^(success|aborted)$/ { wrong("no status") }
        END {
            if (bad) exit 1
            split("submission_benchmark submission_org submission_division submission_status submission_platform cache_clear init_start init_stop run_start seed global_batch_size train_samples eval_samples opt_name opt_base_learning_rate opt_weight_decay gradient_accumulation_steps", once, " ")
            for (i in once) if (many[once[i]] != 1) { print once[i] " is there " many[once[i]] + 0 " times"; exit 1 }
            if (many["run_stop"] > 1 || !many["eval_accuracy"] || !many["epoch_start"]) { print "no evaluation, no epoch, or two ends"; exit 1 }
            if (depth != (many["run_stop"] ? 0 : 1)) { print depth " intervals are open"; exit 1 }
        }' "$W/of" > "$W/why" && return 0
    why=$(cat "$W/why")
    return 1
}
status_of() { of "$1" metadata.status --where key=run_stop; }

for p in 1 2 3; do
    rm -rf "$W"/[a-z]*/ "$W"/*.mllog
    start $p $images $sparse --out "$W/plain"
    start $p $images $sparse --out "$W/run" --mllog "$W/run.mllog" --log-tensorboard "$W/boards/run"
    check "P = $p: status 0" [ $? -eq 0 ]
    check "P = $p: the bits of a run without" same "$(hash_of "$W/run")" "$(hash_of "$W/plain")"
    check "P = $p: the MLPerf log is sound" sound "$W/run.mllog"
    check "P = $p: success" same "$(status_of "$W/run.mllog")" success
    check "P = $p: the batch of all ranks" same "$(of "$W/run.mllog" value --where key=global_batch_size)" $((8 * p))
    check "P = $p: epochs" same "$(of "$W/run.mllog" metadata.epoch_num --where key=epoch_start | tr '\n' ' ')" "1 2 3 "
    check "P = $p: scores are the log's" same "$(of "$W/run.mllog" metadata.step_num,value --where key=eval_accuracy)" "$("$PROGRAM" rows "$W/run" --type eval --keys step,test_accuracy)"
    board=$(echo "$W"/boards/run/events.out.tfevents.*)
    "$events" --print "$board" > "$W/board"
    check "P = $p: frames and checksums of the event file" [ $? -eq 0 ]
    check "P = $p: it begins with its version" same "$(head -n 1 "$W/board")" "version brain.Event:2"
    for pair in train/loss:loss train/learning_rate:lr exchange/density:density exchange/bytes_sent:bytes_sent_mean seconds/compute:phases.compute seconds/step:seconds; do
        "$PROGRAM" rows "$W/run" --type step --keys "step,${pair#*:}" > "$W/want"
        awk -v tag="${pair%:*}" '$2 == tag { print $1 "\t" $3 }' "$W/board" > "$W/have"
        why="$(paste "$W/want" "$W/have" | head -n 3)"
        if [ -s "$W/want" ] && paste "$W/want" "$W/have" | awk -F '\t' '{ d = $2 - $4; if (d < 0) d = -d } $1 != $3 || d > 1e-6 * ($2 < 0 ? -$2 : $2) { exit 1 }'; then
            ok "P = $p: ${pair%:*} of every step"
        else
            not_ok "P = $p: ${pair%:*} of every step" "$why"
        fi
    done
    check "P = $p: evaluations" same "$(awk '$2 == "test/accuracy" { print $1 }' "$W/board" | tr '\n' ' ')" "$("$PROGRAM" rows "$W/run" --type eval --keys step | tr '\n' ' ')"
done

# -- what values are sent in ---------------------------------------------------------------------------------------------------
for way in '--algo dense:fp32' '--algo dense --wire bf16:bfloat16' '--algo dense --wire fp16:fp16' '--algo torus2d --wire bf16:bfloat16' '--algo qsgd:qsgd' "$sparse:fp32" \
    "$sparse --wire packed:bfloat16" "$sparse --wire packed-f32:fp32" "$sparse --wire fp16:fp16"; do
    rm -f "$W/sent.mllog"
    # shellcheck disable=SC2086 # words
    start 2 --data synthetic:16x8 --batch 8 --epochs 1 --lr-warmup 0 --eval-every 0 ${way%:*} --mllog "$W/sent.mllog"
    check "${way%:*}: values are sent in" same "$(of "$W/sent.mllog" value --where key=lowest_numerical_precision_in_comm)" "${way##*:}"
done

# -- stopped, killed, resumed --------------------------------------------------------------------------------------------------
rm -rf "$W"/[a-z]*/ "$W"/*.mllog
both="--mllog $W/run.mllog --log-tensorboard $W/boards"
start 2 $images $sparse --out "$W/run" --stop-at 1.2 $both
check "a run that can go on is open" sound "$W/run.mllog"
check "it says where it was interrupted" same "$(of "$W/run.mllog" metadata.step_num --where key=run_interrupted)" 8
start 2 --resume "$W/run" $both --checkpoint-every 4 --stop-at 2.2
cp "$W/run.mllog" "$W/two.mllog"
# As a kill after some steps more leaves it: in an evaluation, in a line.
now=$(of "$W/run.mllog" time_ms --last)
for key in epoch_start eval_start; do
    grep "\"key\":\"$key\"" "$W/run.mllog" | tail -n 1 | sed "s/\"time_ms\":[0-9]*/\"time_ms\":$now/" > "$W/more"
    cat "$W/more" >> "$W/run.mllog"
done
# What a line without an end says has not been; zeros are what a power failure may leave of it.
{ grep '"key":"eval_stop"' "$W/two.mllog" | tail -n 1 | cut -d , -f 1-5 | tr -d '\n' && head -c 1000 /dev/zero; } >> "$W/run.mllog"
rm -rf "$W/run/checkpoint-00000014"
start 2 --resume "$W/run" $both
check "resumed from an earlier checkpoint: status 0" [ $? -eq 0 ]
check "what was there stays" sh -c "head -n $(wc -l < "$W/two.mllog") '$W/run.mllog' | cmp -s - '$W/two.mllog'"
check "half a line goes, with the zeros behind it" sh -c "[ \$(tr -d '\\000' < '$W/run.mllog' | wc -c) -eq \$(wc -c < '$W/run.mllog') ]"
check "the whole is sound: one run" sound "$W/run.mllog"
check "which was resumed twice" same "$(of "$W/run.mllog" key --where key=run_resumed | wc -l | tr -d ' ')" 2
check "and has ended" same "$(status_of "$W/run.mllog")" success
check "three event files" same "$(find "$W/boards" -name 'events.out.tfevents.*' | wc -l | tr -d ' ')" 3
for board in $(find "$W/boards" -name 'events.out.tfevents.*' | sort); do "$events" --print "$board"; done > "$W/all"
check "a session starts behind each checkpoint" same "$(awk '/^start/ { print $2 }' "$W/all" | tr '\n' ' ')" "9 13 "
# As TensorBoard reads them: what comes before a session has no later steps.
awk '$1 == "start" { for (s in seen) if (s + 0 >= $2) delete seen[s] } $2 == "train/loss" { if ($1 in seen) twice = 1; seen[$1] = $3 } END { for (s in seen) n++; print n, twice + 0 }' "$W/all" > "$W/shown"
check "each step is shown once" same "$(cat "$W/shown")" "18 0"

# -- how a run ends ------------------------------------------------------------------------------------------------------------
start 1 $images --algo dense --mllog "$W/reached.mllog" --target loss:1000
check "a target: success" same "$(status_of "$W/reached.mllog")" success
check "judged by it" same "$(of "$W/reached.mllog" metadata.metric --where key=eval_accuracy | sort -u)" test_loss
start 2 $images --algo dense --mllog "$W/missed.mllog" --target accuracy:1
check "one that is not reached: aborted" same "$(status_of "$W/missed.mllog")" aborted
check "and sound" sound "$W/missed.mllog"
start 2 $words --mllog "$W/words.mllog" --log-tensorboard "$W/words"
check "a text: sound" sound "$W/words.mllog"
check "judged by the loss of its validation" same "$(of "$W/words.mllog" metadata.metric --where key=eval_accuracy | sort -u)" valid_loss
check "its board has perplexities" sh -c "'$events' --print '$W'/words/events.out.tfevents.* | grep -q 'valid/perplexity'"
start 1 --data synthetic:96x24 --batch 8 --steps 2 --optimiser adamw --mllog "$W/adamw.mllog"
check "what its optimiser has" same "$(of "$W/adamw.mllog" key,value | awk '/^opt_(name|adamw_beta)/' | tr '\t\n' '  ')" "opt_name adamw opt_adamw_beta_1 0.9 opt_adamw_beta_2 0.999 "
start 1 --data synthetic:96x24 --batch 8 --steps 2 --optimiser adam --algo onebit --dense-steps 500 --freeze-variance-after 500 --mllog "$W/adam.mllog"
check "integers among it" same "$(of "$W/adam.mllog" value --where key=sparsetrain_freeze_variance_after)" 500
check "whose key has no hyphens" sound "$W/adam.mllog"
start 1 $images --quiet --mllog /dev/stdout
cp "$W/out" "$W/stdout.mllog"
check "--mllog /dev/stdout" sound "$W/stdout.mllog"
start 1 $images --mllog /dev/stdout
grep '^:::MLLOG ' "$W/out" > "$W/among.mllog"
check "among what the program says" sound "$W/among.mllog"
check "nothing is lost" [ "$(wc -l < "$W/among.mllog")" -eq "$(wc -l < "$W/stdout.mllog")" ]
check "of neither" grep -q '^  exchange  dense$' "$W/out"
echo before > "$W/appended"
start 1 $images --quiet --mllog /dev/fd/3 3>> "$W/appended"
check "a descriptor is written to from where it stands" [ "$(head -n 1 "$W/appended")/$(wc -l < "$W/appended")" = "before/$(($(wc -l < "$W/stdout.mllog") + 1))" ]
"$PROGRAM" --data synthetic:512x16 --batch 4 --steps 1000000 --eval-every never --mllog "$W/long.mllog" > "$W/live.out" 2>&1 < /dev/null &
live=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    if grep -qs epoch_start "$W/long.mllog"; then break; fi
    sleep 1
done
kill -TERM $live
wait $live
check "stopped by a signal, with nothing saved: aborted" same "$(status_of "$W/long.mllog")" aborted

# One that has ended goes on all the same where it is given more steps: not in the file that has its end.
for way in 'success:' 'aborted:--target accuracy:1'; do
    name="a run that has ended, ${way%%:*}"
    rm -rf "$W/ended" "$W/ended.mllog" "$W/further.mllog"
    start 2 --data synthetic:96x24 --batch 8 --steps 1 --lr-warmup 0 ${way#*:} --out "$W/ended" --mllog "$W/ended.mllog"
    check "$name" same "$(status_of "$W/ended.mllog")" "${way%%:*}"
    find "$W/ended" "$W/ended.mllog" -type f -exec cksum {} + | sort > "$W/noted"
    check "$name: it says so" start 2 --resume "$W/ended" --mllog "$W/ended.mllog"
    check "$name: more steps want another file" mistaken "--mllog $W/ended.mllog has the end of this run already; to go on, give another file" 2 --resume "$W/ended" --steps 2 --mllog "$W/ended.mllog"
    check "$name: all stays as it is" sh -c "find '$W/ended' '$W/ended.mllog' -type f -exec cksum {} + | sort | cmp -s - '$W/noted'"
    check "$name: which they get" start 2 --resume "$W/ended" --steps 2 --mllog "$W/further.mllog"
    check "$name: the first" sound "$W/ended.mllog"
    check "$name: the second" sound "$W/further.mllog"
done

# -- the public parser, where it is ----------------------------------------------------------------------------------------------
name="mlperf_logging's own parser reads all of it"
if python3 -c 'import mlperf_logging.compliance_checker.mlp_parser' 2> /dev/null; then
    check "$name" python3 -c '
import sys
from mlperf_logging.compliance_checker import mlp_parser
for path in sys.argv[1:]:
    lines, errors = mlp_parser.parse_file(path, ruleset="4.0.0")
    assert lines and not errors, (path, errors)' "$W/run.mllog" "$W/missed.mllog" "$W/words.mllog"
else
    skip "$name" "mlperf_logging is not installed (pip install mlperf_logging)"
fi
name="TensorBoard reads the event files"
if python3 -c 'import tensorboard.backend.event_processing.event_accumulator' 2> /dev/null; then
    check "$name" python3 -c '
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1]); a.Reload()
assert [s.step for s in a.Scalars("train/loss")] == list(range(1, 19))' "$W/boards"
else
    skip "$name" "tensorboard is not installed (pip install tensorboard)"
fi

# -- mistakes --------------------------------------------------------------------------------------------------------------------
echo something > "$W/taken"
mkdir "$W/folder"
for p in 1 2; do
    check "a file that holds something, P = $p" mistaken "--mllog $W/taken holds something already; give another file" $p $images --mllog "$W/taken"
    check "no file, P = $p" mistaken "cannot write --mllog $W/no/file: No such file or directory; give another file" $p $images --mllog "$W/no/file"
done
check "the log of another run" mistaken "holds something else than the log of this run already" 2 --resume "$W/run" --epochs 4 --mllog "$W/missed.mllog"
for begins in ':' ':::MLLOG {"namespace":"","time_'; do
    rm -rf "$W/torn"
    cp -r "$W/run" "$W/torn"
    printf '%s' "$begins" | tee "$W/torn.mllog" > "$W/half"
    check "half of its first line, $begins: status 0" start 2 --resume "$W/torn" --epochs 4 --mllog "$W/torn.mllog"
    check "goes: sound" sound "$W/torn.mllog"
    check "a new run does not take it" mistaken "--mllog $W/half holds something already" 1 $images --mllog "$W/half"
done
printf ':::MLLOG? no: notes' > "$W/notes"
check "a line without an end that is none of ours" mistaken "holds something else than the log of this run already" 2 --resume "$W/run" --epochs 4 --mllog "$W/notes"
head -c 100 /dev/zero > "$W/notes"
check "nor are zeros" mistaken "holds something else than the log of this run already" 2 --resume "$W/run" --epochs 4 --mllog "$W/notes"
check "a folder in its place" mistaken "--mllog $W/folder: it is a directory" 1 $images --mllog "$W/folder"
check "a file in place of the folder" mistaken "cannot write to --log-tensorboard $W/taken: Not a directory; give another directory" 2 $images --log-tensorboard "$W/taken"
check "nothing is made by a run that cannot be" unmade "$W/new" mistaken "no metric" 1 $images --target f1:1 --log-tensorboard "$W/new" --mllog "$W/new.mllog"
check "nor by --dry-run" unmade "$W/new" start 1 $images --dry-run --log-tensorboard "$W/new" --mllog "$W/new.mllog"
check "neither file" [ ! -e "$W/new.mllog" ]
check "a descriptor for reading in its place" mistaken "cannot write --mllog /dev/fd/3: it is open for reading only; give another file" 1 $images --mllog /dev/fd/3 3< "$W/taken"
check "a descriptor that is none" mistaken "cannot write --mllog /dev/fd/999999: it is not open; give another file" 2 $images --mllog /dev/fd/999999
"$PROGRAM" $images --quiet --mllog /dev/stdout >&- 2> "$W/err" < /dev/null
check "a standard output that is closed" told $? "cannot write --mllog /dev/stdout: it is open for reading only"
check "a device in its place" mistaken "cannot write --mllog /dev/full: it is a device" 2 $images --mllog /dev/full

# -- two files of one name -------------------------------------------------------------------------------------------------------
# one_file OPTION FILE OPTION FILE: the second is also the first; P = 1
brief="--data synthetic:64x8 --batch 4 --steps 1 --eval-every never"
one_file() { check "$1 and $3 are one file: $2, $4" unmade "$W/place/both" mistaken "$3 $4 is also the file of $1; give it another name" 1 $brief $1 "$2" $3 "$4"; }
mkdir "$W/place"
ln -s place "$W/linked"
for pair in record:trace record:mllog trace:mllog record:out trace:out mllog:out trace:log-tensorboard; do
    one_file "--${pair%:*}" "$W/place/both" "--${pair#*:}" "$W/place/both"
done
one_file --trace "$W/place/both" --mllog "$W/linked/../place/./both"
one_file --record "$W/new/both" --out "$W/new/./x/../both/"
one_file --trace /dev/stdout --mllog /dev/stdout
: > "$W/empty"
ln -s empty "$W/link"
one_file --trace "$W/link" --mllog "$W/empty"
check "nor on two ranks" mistaken "--mllog $W/place/both is also the file of --trace" 2 $brief --trace "$W/place/both" --mllog "$W/place/both"
check "a folder where a file is to be" mistaken "--out $W/place/both/run is below the file of --trace" 1 $brief --trace "$W/place/both" --out "$W/place/both/run"
for p in 1 2; do # in a directory that the run has yet to make
    rm -rf "$W/place/new"
    check "files in a new --out, P = $p" start $p $brief --out "$W/place/new" --trace "$W/place/./new/trace" --mllog "$W/place/new/mllog" --record "$W/place/new/record" --log-tensorboard "$W/place/new/board"
    check "are there, P = $p" [ "$(find "$W/place/new/trace" "$W/place/new/mllog" "$W/place/new/record" "$W/place/new/board/"events* -type f -size +0 | wc -l)" -eq 4 ]
    rm -rf "$W/place/new"
    check "a folder in it that nobody makes, P = $p" unmade "$W/place/new" mistaken "cannot write $W/place/new/more/trace: No such file or directory; give another --trace" $p $brief --out "$W/place/new" --trace "$W/place/new/more/trace"
    check "a dry run makes nothing, P = $p" unmade "$W/place/new" start $p $brief --dry-run --out "$W/place/new" --trace "$W/place/new/trace" --mllog "$W/place/new/mllog" --record "$W/place/new/record"
done
# own OPTION NAME OUT: a file of --out/NAME
own() { check "a file of the run's own, in ${3#"$W/"}: $1 $2" unmade "$W/place/new" mistaken "$1 $3/$2 has the name of a file that the run itself keeps in --out; give it another name" 1 $brief $1 "$3/$2" --out "$3"; }
for option in --trace --record --mllog --log-tensorboard; do
    for name in run.jsonl run.jsonl.tmp lock vocabulary.txt checkpoint-00000001 checkpoint-00000001/model.ckpt; do own $option $name "$W/place/new"; done
    own $option run.jsonl "$W/place"
done
ln -s nowhere "$W/place/run.jsonl"
own --trace run.jsonl "$W/place"
rm "$W/place/run.jsonl"
check "through another name" mistaken "--mllog $W/place/lock has the name of a file" 2 $brief --mllog "$W/place/lock" --out "$W/linked"
cp -r "$W/run" "$W/place/run"
find "$W/place/run" -type f -exec cksum {} + | sort > "$W/noted"
check "of a run that resumes" mistaken "--trace $W/place/run/checkpoint-00000018/model.ckpt has the name of a file" 2 --resume "$W/place/run" --epochs 4 --trace "$W/place/run/checkpoint-00000018/model.ckpt"
check "which stays as it is" sh -c "find '$W/place/run' -type f -exec cksum {} + | sort | cmp -s - '$W/noted'"
start 1 $brief --out "$W/place/apart" --record "$W/place/apart/record" --log-tensorboard "$W/place/apart" --mllog "$W/place/mllog"
check "others may be there: status 0" [ $? -eq 0 ]
check "each with its own" sh -c "[ -s '$W/place/apart/record' ] && [ -s '$W/place/mllog' ] && [ -s '$W/place/apart/run.jsonl' ] && ls '$W'/place/apart/events.out.* > /dev/null"

if calls_fail "a full disk"; then
    for way in taken:1 empty:2; do # in the look before the run, and in that when it begins
        cp "$W/${way%:*}" "$W/side.mllog"
        faulty 2 "access,faccessat,faccessat2 side.mllog$ ${way#*:} 0 EIO" $brief --mllog "$W/side.mllog"
        check "a file of which nothing can be told is not taken for none, ${way%:*}" told $? "cannot write --mllog $W/side.mllog: Input/output error" 1
        check "and stays, ${way%:*}" cmp -s "$W/${way%:*}" "$W/side.mllog"
    done
    cp "$W/two.mllog" "$W/side.mllog"
    faulty 2 "read side.mllog$ 1 1 EIO" --resume "$W/run" --epochs 4 --out "$W/again" --mllog "$W/side.mllog"
    check "one that cannot be read is not taken for an empty one" told $? "cannot read --mllog $W/side.mllog: Input/output error" 1
    check "nothing is written behind it" cmp -s "$W/two.mllog" "$W/side.mllog"
    for file in side.mllog events.out; do # no folder has a part of these names
        rm -rf "$W/full" "$W/board" "$W/side.mllog"
        FAIL_RANK=0 faulty 2 "write $file 12 0 ENOSPC" --data synthetic:96x24 --batch 8 --steps 400 --eval-every never --out "$W/full" --mllog "$W/side.mllog" --log-tensorboard "$W/board"
        check "a full disk, $file: status 1, the run is saved" told $? "$file" 1
        check "$file: the checkpoint that is left is whole" start 2 --resume "$W/full" --dry-run
    done
    for out in "--out $W/again" ''; do
        rm -rf "$W/again" "$W/board" "$W/side.mllog"
        FAIL_RANK=0 faulty 2 "write events.out 3 0 ENOSPC" --data synthetic:96x24 --batch 8 --steps 9 --eval-every never $out --mllog "$W/side.mllog" --log-tensorboard "$W/board"
        why=$(of "$W/side.mllog" key,metadata.status | grep '^run_' | tr '\t\n' '  ')
        if [ -n "$out" ]; then
            check "a full disk, after which it can go on: interrupted, not ended" [ "$why" = "run_start - run_interrupted - " ]
            check "in the same file" start 2 --resume "$W/again" --mllog "$W/side.mllog"
            why=$(of "$W/side.mllog" key,metadata.status | grep '^run_' | tr '\t\n' '  ')
            check "which is one run" [ "$why" = "run_start - run_interrupted - run_resumed - run_stop success " ]
        else
            check "with nothing saved: aborted" [ "$why" = "run_start - run_stop aborted " ]
        fi
    done
fi
finish
