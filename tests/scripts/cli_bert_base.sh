#!/bin/sh
# cli_bert_base.sh: scripts/bert-base.sh with a tiny encoder on made-up text: its page and logs, what is finished is left alone, a page
# without PyTorch; and, where some Python has that, tests/golden/bert_base.py: it agrees with a run, and with nothing else.
# shellcheck disable=SC2016,SC2086 # marks of Markdown; lists of arguments
. tests/lib/tap.sh
. scripts/mpi-env.sh
if "$PROGRAM" list 2> /dev/null | grep -q 'utf8proc'; then
    skip "the page" "this build lacks utf8proc"
    finish
    exit
fi
python=$(. scripts/lib/common.sh && find_python 'import torch' && echo "$python")
sh scripts/reproduce/parts/made-up-pairs.sh "$W/text"
page=$W/page/README.md
# base OPTION...: with the PyTorch of $of; its status
base() {
    PYTHON=$of PYTHONDONTWRITEBYTECODE=1 timeout -k 10 300 sh scripts/bert-base.sh --preset tiny --steps 4 --runs "$W/runs" --out "$W/page" "$@" -- --layers 1 --heads 2 \
        --hidden 16 --context 32 --data "wiki:$W/text" > "$W/out" 2> "$W/err" < /dev/null
}
of=$W/no-python
base
status=$?
check "without PyTorch the page says so (status $status: $(tail -n 1 "$W/err"))" sh -c "[ $status -eq 0 ] && grep -q 'no-python has no PyTorch: not compared' '$W/err' && [ \$(grep -c '^Not compared: ' '$page') -eq 2 ]"
for run in dense dense-rate oktopk; do
    check "$run: four steps, nothing of one machine" sh -c "[ \$(grep -c '\"type\":\"step\"' '$W/page/$run.jsonl') -eq 4 ] && grep -q '\"host\":\"-\"' '$W/page/$run.jsonl' && [ ! -e '$W/runs/$run/checkpoint-00000004' ]"
done
loss() { "$PROGRAM" rows "$W/runs/$1" --type step --keys loss --last | awk '{ printf "%.6f", $1 }'; }
check "Ok-Topk beside dense" grep -q "^| 4 | $(loss dense) | $(loss oktopk) | " "$page"
check "where a step goes: shares, and no seconds" sh -c "[ \$(grep -c '% |.* GiB | .* MiB |\$' '$page') -eq 3 ] && ! grep -q ' s |' '$page'"
note_launches
base --timed
status=$?
check "called again it starts nothing; --timed: seconds (status $status)" sh -c "[ $status -eq 0 ] && [ $(calls) -eq 0 ] && [ \$(grep -c '% | [0-9.]* s | .* GiB | .* MiB |\$' '$page') -eq 3 ]"
sh scripts/bert-base.sh --step 3 > "$W/out" 2> "$W/err"
status=$?
check "an option that is none" sh -c "[ $status -eq 2 ] && grep -q '^bert-base.sh: unknown option --step; ' '$W/err' && [ \$(wc -l <'$W/err') -eq 1 ]"

if [ -z "$python" ]; then
    skip "beside PyTorch" "no Python here has PyTorch (sh scripts/deps.sh torch)"
    finish
    exit
fi
of=$python
base
status=$?
check "PyTorch comes to the same losses (status $status: $(tail -n 1 "$W/err"))" sh -c "[ $status -eq 0 ] && [ \$(grep -c '^PyTorch .*, $(json "$W/runs/dense/run.jsonl" header parameters) parameters.* is allowed' '$page') -eq 2 ] && ! grep -q 'TOO MUCH' '$page'"
"$PROGRAM" data show --data "wiki:$W/text" --context 32 --samples 32 --json > "$W/pairs"
log=$W/runs/dense-rate/run.jsonl
# apart STATUS TEXT: so ends the comparison of $W/log with $W/others
apart() {
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/golden/bert_base.py "$W/log" "$W/others" > "$W/out" 2>&1
    apart_status=$?
    why="status $apart_status: $(tail -n 1 "$W/out")"
    [ $apart_status -eq "$1" ] && grep -q "$2" "$W/out"
}
cp "$log" "$W/log" && sed '1s/"next":0/"next":1/; t; 1s/"next":1/"next":0/' "$W/pairs" > "$W/others"
check "one pair whose second text follows or not: too far apart" apart 1 'TOO MUCH'
cp "$W/pairs" "$W/others" && sed '1s/"beta2":0.999/"beta2":0.99/' "$log" > "$W/log"
check "another method: too far apart" apart 1 'TOO MUCH'
sed '1s/"algo":"dense"/"algo":"topka"/' "$log" > "$W/log"
check "a run with sparse gradients is none to compare" apart 2 'algo of the run is topka, not dense'
cp "$log" "$W/log" && sed '1,8d' "$W/pairs" > "$W/others"
check "too few pairs" apart 2 '24 pairs are too few for 4 steps'
finish
