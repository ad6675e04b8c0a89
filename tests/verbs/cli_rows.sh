#!/bin/sh
# cli_rows.sh: the verb `rows`: values out of JSON lines as a table, and what it says of files that are none.
# shellcheck disable=SC2034 # why is for check
. tests/lib/tap.sh

tab=$(printf '\t')
# prints TEXT ARGS...: rows prints just this, and no more than that
prints() {
    prints_text=$1
    shift
    timeout 60 "$PROGRAM" rows "$@" > "$W/out" 2> "$W/err" < "$W/stdin"
    why="status $?: $(head -c 300 "$W/err") $(head -c 300 "$W/out")"
    printf '%s' "$prints_text" | cmp -s - "$W/out" && [ ! -s "$W/err" ]
}
cat > "$W/log" << 'END'
{"type":"header","model":"lstm","data":null}
{"type":"step","step":1,"loss":2.50,"density":1e-2,"phases":{"select":0.25},"counts":[3,4]}
{"type":"slices","step":1,"slices":[{"name":"a","size":3},{"name":"b","size":4}]}

{"type":"step","step":2,"loss":2.0,"density":0.005,"phases":{"select":0.50},"counts":[5]}
{"type":"slices","step":2,"slices":[{"name":"a","size":5},{"name":"b","size":6}]}
{"type":"eval","step":2,"text":"one,\ttwo \"three\"\nfour","ok":true}
{"type":"summary","step":2,"completed":true}
END
echo '{"type":"step","step":9}' > "$W/stdin"
steps='{"type":"step","step":1,"loss":2.50,"density":1e-2,"phases":{"select":0.25},"counts":[3,4]}
{"type":"step","step":2,"loss":2.0,"density":0.005,"phases":{"select":0.50},"counts":[5]}
'
cr=$(printf '\r')
check "rows of a type, whole" prints "$steps" "$W/log" --type step
check "of several types" prints "2
2
" "$W/log" --type eval,summary --keys step
check "a type is the whole word" prints '' "$W/log" --type ste,eva,e
check "numbers as they are written, keys within keys, elements of arrays" prints "2.50${tab}1e-2${tab}0.25${tab}4
2.0${tab}0.005${tab}0.50$tab
" "$W/log" --type step --keys loss,density,phases.select,counts.1
check "what is missing, or null" prints "lstm$tab-$tab-
" --missing - "$W/log" --type header --keys model,data,none
check "--last" prints "2.0
" "$W/log" --type step --keys loss --last
check "--last of none" prints '' "$W/log" --type nothing --last
check "--where: equal as text" prints "true
" "$W/log" --where completed=true --keys completed
check "--where: equal as numbers" prints "1
" "$W/log" --where density=0.01 --keys step
check "--where: the others" prints "2
" "$W/log" --type step --where density!=0.01 --keys step
check "--where: bounds" prints "2
" "$W/log" --type step --where 'loss<2.5' --where 'phases.select>0.25' --keys step
check "--where: bounds that are in it" prints "1
2
" "$W/log" --type step --where 'step>=1' --where 'step<=2' --where 'loss<=2.5' --where 'density>=0.005' --keys step
check "and what is beyond them is not" prints "1
" "$W/log" --type step --where 'step<=1' --where 'loss>=2.50' --keys step
check "--where: what is missing equals nothing, and is below nothing" prints "header
" "$W/log" --where step= --where 'step!=1' --keys type
check "and is not between bounds" prints '' "$W/log" --where 'nosuch<5'
check "--each: the objects of an array, with what is around them" prints "1${tab}b${tab}4
2${tab}b${tab}6
" "$W/log" --type slices --each slices --where name=b --keys step,name,size
check "--each, --last: those of the last row" prints '{"name":"a","size":5}
{"name":"b","size":6}
' "$W/log" --each slices --last
check "--each, members of an object" prints "1${tab}select${tab}0.25
2${tab}select${tab}0.50
" "$W/log" --each phases --keys step,@key,@value
check "--each, plain elements" prints "1$tab${tab}3
1$tab${tab}4
2$tab${tab}5
" "$W/log" --each counts --keys step,@key,@value
check "--where: a key" prints '0.50
' "$W/log" --each phases --where @key=select --where '@value>0.3' --keys @value
check "the row itself beside values of it" prints "1$tab$tab$(echo "$steps" | sed -n 1p)
2$tab$tab$(echo "$steps" | sed -n 2p)
" "$W/log" --type step --keys step,none,@value
check "text in a line" prints 'one, two "three" four
' "$W/log" --type eval --keys text
check "--csv: RFC 4180" prints "text,ok,none$cr
\"one,${tab}two \"\"three\"\"
four\",true,$cr
" "$W/log" --type eval --csv --keys text,ok,none
check "--csv has its head where there is no row" prints "loss$cr
" "$W/log" --type nothing --csv --keys loss
check "standard input, and several files, which @file names" prints "-${tab}9
$W/log${tab}1
$W/log${tab}2
" - "$W/log" --type step --keys @file,step
mkdir "$W/run"
printf '{"type":"step","step":1}\n{"type":"step","step":2}' > "$W/run/run.jsonl"
check "the directory of a run; a last line without its end" prints '1
2
' "$W/run" --keys step
printf '{"type":"step","step":1}\r\n{"type":"st' > "$W/run/run.jsonl"
check "half of a row at the end of a run under way is left out" prints '1
' "$W/run" --keys step
: > "$W/empty"
check "an empty file has no rows" prints '' "$W/empty"
printf '{"a":"\\u001b[31m\\u0000\\u00e9"}\n' > "$W/escape"
check "what is no text does not reach a terminal" prints ' [31m é
' "$W/escape" --keys a

# anonymous TEXT LINE: of this line this is left
anonymous() {
    printf '%s\n' "$2" > "$W/stdin"
    prints "$1
" - --anonymous
}
check "--anonymous: no name of the machine, no folders" anonymous \
    '{"type":"header","host":"-","data_source":"ptb","config":{"out":"run 1","data":"ptb","resume":null},"loss":1.50}' \
    '{"type":"header","host":"n07.cluster","data_source":"/data/sets/ptb","config":{"out":"../runs/run 1","data":"ptb:/data/sets/ptb","resume":null},"loss":1.50}'
check "nor where a checkpoint lies" anonymous '{"type":"checkpoint","step":3,"path":"checkpoint-00000003","seconds":0.5}' \
    '{"type":"checkpoint","step":3,"path":"/home/me/runs/r/checkpoint-00000003","seconds":0.5}'
check "nor where a run comes from" anonymous \
    '{"type":"header","init_from":"checkpoint-00000004","config":{"init-from":"r/","out":"b","resume":"a//","record":"g","trace":"t","mllog":"m","log-tensorboard":"e"}}' \
    '{"type":"header","init_from":"/home/me/r/checkpoint-00000004","config":{"init-from":"/home/me/r/","out":"b","resume":"../a//","record":"/scratch/g","trace":"x/t","mllog":"/m","log-tensorboard":"./e"}}'
check "nor what other verbs' rows have" anonymous '{"checkpoint":"checkpoint-00000004","data":"cifar10","pattern":"real","costs":"costs.csv"}' \
    '{"checkpoint":"/home/me/r/checkpoint-00000004","data":"cifar10:/home/me/sets","pattern":"real:/scratch/g","costs":"x/costs.csv"}'
check "nor of data in a folder beside" anonymous '{"config":{"data":"ptb"}}' '{"config":{"data":"ptb:sets/"}}'
plain_row='{"host":"-","data_source":"","config":{"out":"here","data":"synthetic:64x8"},"pattern":"uniform","other":"a:b/c"}'
check "what has none stays as it is" anonymous "$plain_row" "$plain_row"
anonymous_value() { prints "-${tab}x
" "$W/log-2" --anonymous --keys host,config.out; }
printf '%s\n' '{"host":"here","config":{"out":"/a/b\u002f/x"}}' > "$W/log-2"
check "nor have values" anonymous_value

# -- the program's own rows ------------------------------------------------------------------------------------------------
"$PROGRAM" list --json > "$W/stdin"
names=$(grep -l '^    \.sparse = true' comm/algorithms/*.c | while read -r file; do sed -n 's/^    \.name = "\([^"]*\)".*/\1/p' "$file"; done | sort)
"$PROGRAM" rows - --each exchanges --where sparse=true --keys name < "$W/stdin" | sort > "$W/names"
same_names() { [ -n "$names" ] && [ "$names" = "$(cat "$W/names")" ]; }
check "names out of list --json" same_names
start 2 --data synthetic:64x8 --batch 4 --steps 3 --algo gtopk --density-warmup none --progress none --out "$W/real"
# as_numbers ARGS...: rows prints the numbers in $W/read, of which there are three lines
as_numbers() {
    timeout 60 "$PROGRAM" rows "$@" > "$W/out" || return 1
    paste "$W/out" "$W/read" | awk -F '\t' '{ for (i = 1; i <= NF / 2; i++) if ($i + 0 != $(i + NF / 2) + 0) exit 1 } END { exit NR != 3 || NF != 8 }'
}
if command -v python3 > /dev/null 2>&1; then
    python3 -c "
import json, sys
for line in open(sys.argv[1]):
    row = json.loads(line)
    if row['type'] == 'step': print(row['step'], row['density'], row['loss'], row['local_nnz_mean'], sep='\\t')" "$W/real/run.jsonl" > "$W/read"
    check "a log as python3 reads it" as_numbers "$W/real" --type step --keys step,density,loss,local_nnz_mean
else
    skip "a log as python3 reads it" "python3 is not installed"
fi

# -- mistakes --------------------------------------------------------------------------------------------------------------
# broken WHERE TEXT: this file is refused, and the message says so
broken() {
    printf '%b' "$2" > "$W/broken"
    mistaken_alone "$W/broken, line $1" rows "$W/broken" --keys a
}
check "a broken line" broken '2, column 6: no value begins so' '{"a":1}\n{"a":x}\n{"a":2}\n'
check "half of a row with rows behind it" broken '1, column 7: it ends in the middle of a value' '{"a":\n{"a":2}\n'
check "a line that is no object" broken '1: it is no JSON object' '[1]\n'
check "two objects in a line" broken '1, column 9: something stands behind' '{"a":1} {}\n'
check "a zero byte" broken '1: it is longer than any row, or has a zero byte' '{"a":1}\0\n{}\n'
check "no text" broken '1, column 7: a string that is not UTF-8' '{"a":"\0377"}\n'
start 1 rows "$W/broken" --keys a --last
check "with --last nothing is printed before" [ ! -s "$W/out" ]
check "no such file" mistaken_alone "cannot read $W/none: No such file" rows "$W/none"
check "a directory without a log" mistaken_alone "cannot read $W/run/x" rows "$W/run/x"
mkfifo "$W/fifo"
check "a FIFO" mistaken_alone "it is a FIFO" rows "$W/fifo"
check "no file" mistaken_alone 'rows: a file is needed' rows --type step
check "an option that there is not" mistaken_alone 'rows: there is no option --key; did you mean --keys?' rows "$W/log" --key a
for option in --type --where --each --keys; do
    check "$option wants a value" mistaken_alone "rows: $option wants a value" rows "$W/log" $option
    check "$option wants more than nothing" mistaken_alone "rows: $option wants a value" rows "$W/log" $option ''
done
check "an empty key" mistaken_alone 'rows: --keys: a name is empty' rows "$W/log" --keys a,,b
check "no condition" mistaken_alone 'rows: --where loss is no condition' rows "$W/log" --where loss
for bound in '<x' '>' '<=' '>=1e' '>=<1'; do
    check "a bound that is no number, $bound" mistaken_alone "rows: --where loss$bound: behind < and > stands a number" rows "$W/log" --where "loss$bound"
done
check "a condition without a key" mistaken_alone 'rows: --where !=3 is no condition' rows "$W/log" --where '!=3'
check "--csv without columns" mistaken_alone 'rows: --csv wants --keys' rows "$W/log" --csv
check "its help" sh -c "'$PROGRAM' rows --help | grep -q '^usage: sparsetrain rows FILE'"
finish
