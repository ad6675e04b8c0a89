#!/bin/sh
# cli_campaign.sh: scripts/campaign.sh, and what it needs of scripts/reproduce.sh: the jobs of an ID as a list, one of them alone, and rows and
# figures of what is finished. A run of made-up words is stopped when the time is up, packed, taken to another machine with another commit,
# and ends with the bits of one that nobody stopped.
. tests/lib/tap.sh
if ! command -v xz > /dev/null 2>&1 || ! command -v timeout > /dev/null 2>&1; then
    skip "campaign.sh" "xz or timeout is not installed"
    finish
    exit
fi
reproduce() { BUILD=$BUILD sh scripts/reproduce.sh "$@" > "$W/out" 2> "$W/err" < /dev/null; }
campaign() { BUILD=$BUILD sh scripts/campaign.sh "$@" > "$W/out" 2> "$W/err" < /dev/null; }
# refused TEXT COMMAND...: status 2 and one line with this text
refused() {
    refused_text=$1
    shift
    "$@"
    refused_status=$?
    why="status $refused_status: $(head -c 400 "$W/err")"
    [ $refused_status -eq 2 ] && [ "$(wc -l < "$W/err")" -eq 1 ] && grep -qF -- "$refused_text" "$W/err"
}
said() { # said STATUS TEXT: what has just run
    why="$(head -c 400 "$W/out") $(head -c 400 "$W/err")"
    [ "$status" -eq "$1" ] && cat "$W/out" "$W/err" | grep -qF -- "$2"
}
# cell FOLDER COLUMN TEXT: of the row of a comparison with this text
cell() {
    TEXT=$3 awk -v column="$2" "$(cat scripts/lib/csv.awk)"'{ csv_row() } NR > 1 && index($0, ENVIRON["TEXT"]) { print cell_of(column); exit }' "$1/comparison.csv"
}

# -- mistakes ----------------------------------------------------------------------------------------------------------
check "no verb" refused 'what? list, status, next or take' campaign
check "an unknown verb" refused 'there is no "begin"' campaign begin
check "two verbs" refused 'there is no "list next"' campaign list next
check "an unknown option" refused 'unknown option --fast' campaign next --fast
check "a time in other units" refused '--time 5x: whole minutes' campaign next --time 5x
check "take without a file" refused 'take: which file?' campaign take
check "take of a file that is not there" refused "take $W/none: no such file" campaign take "$W/none"
check "half a minute" refused '--time 0.5: whole minutes' campaign next --time 0.5
check "no time" refused '--time 0: whole minutes' campaign next --time 0
check "packs every so often" refused '--pack-every 1h: whole minutes' campaign next --pack-every 1h
check "an unknown device" refused '--device is cpu or cuda' campaign status --device sparse
check "no such table" refused "there is no table $W/none" campaign list --table "$W/none"
: > "$W/file"
check "a pack that is a file" refused "--pack $W/file: no folder" campaign next --pack "$W/file"
echo '1,gtopk-fig7,,none.jsonl,1,1,x' > "$W/wrong.csv"
check "a run that its ID has not" refused 'gtopk-fig7 has no job of training that makes none.jsonl' campaign next --quick --table "$W/wrong.csv" --out "$W/out.d"
check "--jobs of several IDs" refused 'are of one ID' reproduce gtopk-fig1 gtopk-fig5 --jobs
check "--job beside --finished" refused 'starts nothing' reproduce gtopk-fig1 --job dense.jsonl --finished
check "--job beside --jobs" refused 'not both' reproduce gtopk-fig1 --job dense.jsonl --jobs
check "no number of features" refused '--hidden many' reproduce gtopk-fig7 --hidden many
check "no results were made" [ ! -e "$W/out.d" ]

# -- the runs of full length -----------------------------------------------------------------------------------------------
campaign list
check "the list has all runs" [ "$(grep -c '^  *sh scripts/reproduce.sh' "$W/out")" -eq "$(grep -c '^[0-9],' scripts/campaign/runs.csv)" ]
in_table() { # every run of the table is a job of its ID; the table is in order of its groups
    grep '^[0-9]' scripts/campaign/runs.csv | cut -d , -f 2,3 | sort -u > "$W/ids"
    while IFS=, read -r id options; do
        # shellcheck disable=SC2086 # options are words
        reproduce "$id" $options --jobs || { why="$id: $(cat "$W/err")"; return 1; }
        # shellcheck disable=SC2013 # names without blanks
        for file in $(awk -F , -v id="$id" -v options="$options" '$2 == id && $3 == options { print $4 }' scripts/campaign/runs.csv); do
            grep -q "^$file	mpirun -np [0-9]* .*sparsetrain train " "$W/out" || { why="$id $options: no $file"; return 1; }
        done
    done < "$W/ids"
    why='the groups are not in order'
    grep '^[0-9]' scripts/campaign/runs.csv | cut -d , -f 1 | sort -c
}
check "each is a job of its ID" in_table
reproduce gtopk-fig5 --jobs
grep '^resnet20-\(dense\|gtopk\).jsonl' "$W/out" | cut -f 2 > "$W/fig5"
reproduce resnet20-exchanges --jobs
check "dense and gtopk of the study are those of Fig. 5" [ "$(grep '^\(dense\|gtopk\).jsonl' "$W/out" | cut -f 2)" = "$(cat "$W/fig5")" ]
check "batch 32 a rank" [ "$(grep -c -- '-np 4 .* --batch 32 --epochs 140 ' "$W/fig5")" -eq 2 ]
reproduce gtopk-fig7 --hidden 650 --jobs
check "--hidden: a smaller LSTM" [ "$(grep -c -- '--hidden 650 .*--epochs\|--epochs 40 .*--hidden 650 ' "$W/out")" -eq 3 ]

# -- a run that is stopped, packed, and goes on elsewhere ----------------------------------------------------------------
# In the place of timeout: the signal comes when the log has a step of this call; before that mpirun may have nobody to whom it sends it on, and
# the run goes on to its end. What it was called with in $STOPPED.calls; $STOPPED.hook before the signal, $STOPPED.after when the run has ended.
mkdir "$W/bin"
cat > "$W/bin/timeout" << 'END'
#!/bin/sh
[ ! -f "$STOPPED.abort" ] || exit "$(cat "$STOPPED.abort")"
echo "$*" >> "$STOPPED.calls"
for word in "$@"; do case $before in --out | --resume) run=$word ;; esac; before=$word; done
shift 5
headers() { cat "$run/run.jsonl" 2> /dev/null | grep -c '"type":"header"'; }
had=$(headers)
"$@" &
job=$!
if [ -f "$STOPPED" ]; then
    until { [ "$(headers)" -gt "$had" ] && tail -n 1 "$run/run.jsonl" | grep -q '"type":"step"'; } || ! kill -0 $job 2> /dev/null; do sleep 0.05; done
    [ ! -f "$STOPPED.hook" ] || sh "$STOPPED.hook"
    kill -USR1 $job
fi
wait $job
ended=$?
[ ! -f "$STOPPED.after" ] || sh "$STOPPED.after"
exit $ended
END
chmod +x "$W/bin/timeout"
STOPPED=$W/stopped
export STOPPED
printf '%s\n' 'group,id,options,file,two_cores_h,gpu_h,what' '1,gtopk-fig7,,dense.jsonl,1,-,first' '2,gtopk-fig7,,gtopk.jsonl,1,-,second, with a comma' > "$W/table.csv"
small() { # small VERB OPTION...
    small_path=$PATH
    PATH=$W/bin:$PATH
    campaign "$@" --quick --table "$W/table.csv" --out "$W/here" --pack "$W/pack"
    status=$?
    PATH=$small_path
}
small status
check "nothing is begun" said 0 '0 of 2 are finished'
echo 134 > "$STOPPED.abort"
small next --time 60
check "a program that broke down was not stopped: status 1" said 1 'failed: gtopk-fig7 dense.jsonl'
echo 137 > "$STOPPED.abort"
small next --time 60
check "nor was one that the system killed" said 1 'memory did not suffice, or somebody sent KILL'
check "which has failed" said 1 'failed: gtopk-fig7 dense.jsonl'
rm "$STOPPED.abort"
: > "$STOPPED"
small next --time 60
check "time is up: status 0, and how far it came" said 0 'stopped at epoch'
check "the time given is what was left" sh -c "awk '{ exit !(\$1 == \"--foreground\" && \$5 > 3500 && \$5 <= 3600) }' '$STOPPED.calls'"
pack=$W/pack/gtopk-fig7+dense.tar.xz
check "one small file is packed" [ "$(cd "$W/pack" && echo *)" = gtopk-fig7+dense.tar.xz ]
check "it has the last checkpoint alone, the log and the mark" [ "$(xz -dc "$pack" | tar -tf - | grep -c 'model.ckpt$\|dense.jsonl.run/run.jsonl$\|run.mark$')" -eq 3 ]
check "nothing is shown yet" [ ! -e "$W/here/gtopk-fig7/comparison.csv" ]
small status
check "status: begun" said 0 'begun, at epoch'
# While a run is under way it is packed, too: seldomer where that takes long.
cat > "$W/bin/xz" << END
#!/bin/sh
case \$1 in -0) echo >> '$W/squeezed'; sleep 2 ;; esac
exec $(command -v xz) "\$@"
END
chmod +x "$W/bin/xz"
echo "i=0; until [ -f '$pack' ] || [ \$i -ge 60 ]; do sleep 1; i=\$((i + 1)); done; sleep 12; cp '$W/squeezed' '$W/squeezed.meanwhile'" > "$STOPPED.after"
rm "$pack"
small next --time 60 --pack-every 5s
check "a run under way is packed" sh -c "xz -dc '$pack' | tar -tf - | grep -q 'checkpoint-.*model.ckpt'"
check "not again before it has gone on for twenty times as long as that took" [ "$(wc -l < "$W/squeezed.meanwhile")" -eq 1 ]
# It ends while it is being packed, which would take hours more; what follows goes on with the pack from before.
rm "$W/squeezed"
cat > "$W/bin/xz" << END
#!/bin/sh
case \$1 in -0) if mkdir '$W/slow' 2> /dev/null; then echo \$\$ > '$W/slow/xz'; sleep 7200; fi ;; esac
exec $(command -v xz) "\$@"
END
mv "$pack" "$W/before"
echo "i=0; until [ -f '$pack.early' ] || [ \$i -ge 300 ]; do sleep 0.2; i=\$((i + 1)); done; ls '$W/pack' > '$W/packing'" > "$STOPPED.after"
small next --time 60 --pack-every 5s
check "a run that ends while it is packed" grep -q 'early$' "$W/packing"
check "leaves one whole pack" [ "$(cd "$W/pack" && echo *)" = gtopk-fig7+dense.tar.xz ]
packs_no_more() { # whoever was slow
    [ -s "$W/slow/xz" ] || return 1
    case $(ps -o stat= -p "$(cat "$W/slow/xz")") in '' | Z*) ;; *) return 1 ;; esac
}
check "and nobody who packs" packs_no_more
mv "$W/before" "$pack"
rm "$W/bin/xz" "$STOPPED.after"
# repack FOLDER PACK: a run that was unpacked there
repack() { tar -cf - -C "$1" dense.jsonl.run dense.jsonl.run.mark | xz -0 > "$2"; }
# What another machine with another commit of the program had packed.
mkdir "$W/repack"
xz -dc "$pack" | tar -xf - -C "$W/repack"
sed -i -e '1s/.*/anothercommit/' -e '3s/.*/1000/' -e '4s/.*/another machine/' "$W/repack/dense.jsonl.run.mark"
repack "$W/repack" "$pack"
rm -r "$W/here" "$STOPPED"
small status
check "a new machine: status looks into the pack" said 0 'begun, packed at epoch'
small next --time 60
check "it is unpacked there" said 0 'unpacked'
here=$W/here/gtopk-fig7
check "both runs are finished, one after the other" [ "$(cut -f 1 "$here/jobs.tsv" | paste -s -d ' ' -)" = 'dense.jsonl gtopk.jsonl' ]
check "nothing is packed any more" [ -z "$(ls "$W/pack")" ]
check "the first was resumed twice" [ "$(grep -c '"type":"header"' "$here/dense.jsonl")" -eq 3 ]
job_of() { awk -F '\t' -v n="$1" '$1 == "dense.jsonl" { print $n }' "$here/jobs.tsv"; }
commit=$("$PROGRAM" --version | sed -n '1s/.*(commit \([^)]*\)).*/\1/p')
check "its commits are both named" [ "$(job_of 2)" = "anothercommit,$commit" ]
check "its seconds are those of both parts" [ "$(job_of 3)" -ge 1000 ]
check "and so are its machines" sh -c "cut -f 5 '$here/jobs.tsv' | grep -q '^another machine; .*cores'"
check "the page names all of them" [ "$(grep -c "^commit: .*anothercommit\|^machine: another machine; .*cores\|^machine: .*; another machine" "$here/about.txt")" -eq 2 ]
reproduce gtopk-fig7 --quick --out "$W/whole" --job dense.jsonl
check "one job alone" [ $? -eq 0 ]
check "nothing else is made" [ "$(cd "$W/whole/gtopk-fig7" && echo *)" = 'dense.jsonl jobs.tsv runs' ]
whole=$(hash_of "$W/whole/gtopk-fig7/runs/dense.jsonl.run")
check "the run that was stopped has the same bits" [ "$(json "$here/dense.jsonl" summary parameters_hash)" = "$whole" ]
steps_of() { "$PROGRAM" rows "$1" --type step --keys step,loss; }
check "and the same steps" [ "$(steps_of "$here/dense.jsonl")" = "$(steps_of "$W/whole/gtopk-fig7/dense.jsonl")" ]
check "and the same losses" [ "$(json "$here/dense.jsonl" eval valid_loss)" = "$(json "$W/whole/gtopk-fig7/dense.jsonl" eval valid_loss)" ]
small status
check "status: finished, and of which commits" said 0 "finished: $here/dense.jsonl, commit anothercommit,$commit"
: > "$STOPPED.calls"
small next --time 60
check "once more: nothing runs" [ "$status $(wc -l < "$STOPPED.calls")" = '0 0' ]

# -- what is finished, shown ---------------------------------------------------------------------------------------------
check "a comparison whose runs are not all there is open" [ "$(cell "$here" note 'published residual')|$(cell "$here" ours 'published residual')|$(cell "$here" counted 'published residual')" = \
    'not run yet: gtopk-paper.jsonl||no' ]
check "what is there is compared" [ -n "$(cell "$here" ours 'P = 4, our residual')" ]
check "whether one learns that has not run" [ "$(cell "$here" note 'training loss falls: gtopk, published')|$(cell "$here" ours 'training loss falls: gtopk, published')" = 'not run yet: gtopk-paper.jsonl|' ]
check "a figure has the curves that there are" [ "$(grep '^"' "$here/perplexity-lstm.dat" | paste -s -d ' ' -)" = '"dense" "gtopk, our residual"' ]
if command -v gnuplot > /dev/null 2>&1; then
    check "and is drawn" [ -s "$here/perplexity-lstm.png" ]
else
    skip "and is drawn" "gnuplot is not installed"
fi
check "the page says how it was made" grep -q -- '^command: sh scripts/reproduce.sh gtopk-fig7 --quick --out .* --finished$' "$here/about.txt"
check "the report is there" grep -q '^### gtopk-fig7$' "$W/here/REPORT.md"
reproduce gtopk-fig1 --quick --out "$W/here" --finished
status=$?
check "of nothing that is finished nothing is made" said 0 'nothing of it is finished'
check "and nothing is left" [ ! -e "$W/here/gtopk-fig1/comparison.csv" ]
for kept in accuracy-resnet20.png accuracy-resnet20.dat README.md; do echo old > "$W/here/gtopk-fig1/$kept"; done
reproduce gtopk-fig1 --quick --out "$W/here" --finished
check "nor is what stands there already touched" [ "$(cat "$W/here/gtopk-fig1"/*.png "$W/here/gtopk-fig1"/*.dat "$W/here/gtopk-fig1/README.md" | sort | uniq -c | tr -s ' ')" = ' 3 old' ]
mkdir "$W/records"
echo gradients > "$W/records/step.jsonl.run.record"
REPRODUCE_RUNS=$W/records
export REPRODUCE_RUNS
reproduce oktopk-fig4 --jobs
unset REPRODUCE_RUNS
check "who lists jobs leaves what one of them recorded" [ "$(cat "$W/records/step.jsonl.run.record") $(grep -c step.jsonl "$W/out")" = 'gradients 1' ]
reproduce gtopk-fig7 --quick --out "$W/whole" --job none.jsonl
status=$?
check "a job that an ID has not" said 1 'gtopk-fig7 has no job that makes none.jsonl'

# -- several at once, and larger runs in the place of smaller ones -----------------------------------------------------------
rm -r "$W/here"
mkdir -p "$W/here/gtopk-fig7/runs"
self=$$
echo "$(uname -n) $self $(sed 's/.*) //' "/proc/$self/stat" | cut -d ' ' -f 20)" > "$W/here/gtopk-fig7/runs/dense.jsonl.busy"
: > "$STOPPED"
small next --time 60
check "a run under way is left to who is at it" said 0 'stopped at epoch'
check "the next one is taken" [ "$(cd "$W/pack" && echo *)" = gtopk-fig7+gtopk.tar.xz ]
small status
check "and status says so" said 0 'under way'
echo "$(uname -n) $$ 1" > "$W/here/gtopk-fig7/runs/dense.jsonl.busy" # of this number, but another process
echo broken > "$W/pack/gtopk-fig7+dense.tar.xz"
small next --time 60
check "who is at it no more holds nobody up" said 0 'stopped at epoch'
check "a pack that is broken is made anew" sh -c "xz -dc '$W/pack/gtopk-fig7+dense.tar.xz' | tar -tf - | grep -q 'checkpoint-.*model.ckpt'"
check "what was broken is laid aside" [ "$(cat "$W/pack/gtopk-fig7+dense.aside."*)" = broken ]
# laid_aside WHAT: the pack serves nothing: it is kept, and the run begins anew
laid_aside() {
    cp "$W/pack/gtopk-fig7+dense.tar.xz" "$W/useless"
    rm -rf "$W/here" "$W/pack"/*aside*
    small status
    check "$1: nothing is begun" sh -c "! grep 'dense.jsonl .*begun, packed' '$W/out'"
    small next --time 60
    check "$1: begun anew" said 0 'stopped at epoch'
    check "$1: kept" cmp -s "$W/useless" "$W/pack/gtopk-fig7+dense.aside."*
    check "$1: another one is made" sh -c "xz -dc '$W/pack/gtopk-fig7+dense.tar.xz' | tar -tf - | grep -q 'checkpoint-.*model.ckpt'"
}
# Another machine shares the folders.
busy=$W/here/gtopk-fig7/runs/dense.jsonl.busy
rm "$W/pack/gtopk-fig7+gtopk.tar.xz"
echo 'elsewhere 1 1' > "$busy"
small next --time 60
check "what another machine is at is left to it" said 0 'stopped at epoch'
check "which is not the first run" [ -f "$W/pack/gtopk-fig7+gtopk.tar.xz" ]
touch -d '11 minutes ago' "$busy"
rm "$W/pack/gtopk-fig7+gtopk.tar.xz"
small next --time 60
check "of which nothing is heard holds nobody up" [ ! -f "$W/pack/gtopk-fig7+gtopk.tar.xz" ]
mkdir "$W/further"
xz -dc "$W/pack/gtopk-fig7+dense.tar.xz" | tar -xf - -C "$W/further"
mv "$W/further/dense.jsonl.run"/checkpoint-* "$W/further/dense.jsonl.run/checkpoint-00900000"
repack "$W/further" "$W/further.tar.xz"
echo "cp '$W/further.tar.xz' '$W/pack/gtopk-fig7+dense.tar.xz'" > "$STOPPED.hook"
rm "$W/pack/gtopk-fig7+dense.tar.xz"
rm -r "$W/here"
small next --time 60
check "a pack that another machine has brought further stays" cmp -s "$W/further.tar.xz" "$W/pack/gtopk-fig7+dense.tar.xz"
check "and that is said" said 0 'at step 900000: it stays'
rm "$STOPPED.hook" "$W/pack/gtopk-fig7+dense.tar.xz"
small next --time 60
truncate -s -40 "$W/pack/gtopk-fig7+dense.tar.xz"
laid_aside "a pack whose end is lacking"
rm -r "$W/repack" && mkdir "$W/repack"
xz -dc "$W/pack/gtopk-fig7+dense.tar.xz" | tar -xf - -C "$W/repack"
sed -i -e '2s/ --seed [0-9]*//; 2s/$/ --seed 77/' "$W/repack/dense.jsonl.run.mark"
repack "$W/repack" "$W/pack/gtopk-fig7+dense.tar.xz"
laid_aside "a pack of a run with other options"
mkdir -p "$W/here/gtopk-fig7"
job=$(sh scripts/reproduce.sh gtopk-fig7 --quick --out "$W/here" --jobs | sed -n 's/^dense.jsonl	//p')
printf 'dense.jsonl\t%s\t1\t%s\there\n' "$commit" "$job" > "$W/here/gtopk-fig7/jobs.tsv"
: > "$W/here/gtopk-fig7/dense.jsonl"
small status
check "a job whose file is empty is not finished" said 0 '0 of 2 are finished'
echo '{}' > "$W/here/gtopk-fig7/dense.jsonl"
small status
check "one that is there is" said 0 '1 of 2 are finished'
# Two that begin at the same time, over what was left behind; one that is killed.
rm -r "$W/here" "$W/pack"
mkdir -p "$W/here/gtopk-fig7/runs"
for file in dense gtopk; do echo "$(uname -n) $$ 1" > "$W/here/gtopk-fig7/runs/$file.jsonl.busy"; done
begin() { # begin N
    PATH=$W/bin:$PATH BUILD=$BUILD sh scripts/campaign.sh next --time 60 --quick --table "$W/table.csv" --out "$W/here" --pack "$W/pack" > "$W/out.$1" 2>&1 < /dev/null &
}
begin 1
begin 2
wait
check "two at the same time take different runs" [ "$(cat "$W/out.1" "$W/out.2" | grep 'stopped at epoch' | sed 's/.*: gtopk-fig7 //; s/;.*//' | sort | paste -s -d ' ' -)" = 'dense.jsonl gtopk.jsonl' ]
echo "touch '$W/hangs'; exec sleep 15" > "$STOPPED.hook"
mkdir "$W/tmp" # who is killed leaves its scratch there
TMPDIR=$W/tmp begin 1
killed=$!
i=0
while [ ! -f "$W/hangs" ] && [ $i -lt 600 ]; do sleep 0.1; i=$((i + 1)); done
kill -9 $killed
wait
gone() { # none of its processes is left, nor the run, which is stopped when the hook ends
    i=0
    while pgrep -f "(campaign.sh next|sparsetrain (train|--resume)) .*$W/here" > /dev/null && [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done
    [ $i -lt 300 ]
}
check "one that is killed leaves nothing behind that goes on for ever" gone
rm "$STOPPED.hook" "$STOPPED"
small next --time 60
check "and what it was at is finished by the next one" said 0 'finished: gtopk-fig7 dense.jsonl'
rm "$W/here/gtopk-fig7/comparison.csv"
: > "$W/here/gtopk-fig7/runs/dense.jsonl.unshown" # as one leaves it that is killed between a run's end and its page
small next --time 60
check "what was finished and not shown is shown" [ -s "$W/here/gtopk-fig7/comparison.csv" ]
check "once" [ ! -e "$W/here/gtopk-fig7/runs/dense.jsonl.unshown" ]
counts() { for _ in 1 2 3 4 5 6 7 8 9 10; do count=$(cat "$W/count") && echo $((count + 1)) > "$W/count"; done; }
echo 0 > "$W/count"
for _ in 1 2 3 4 5 6 7 8; do (. scripts/lib/common.sh && locked "$W/here" counts) & done
wait
check "eight that count at the same time lose nothing" [ "$(cat "$W/count")" = 80 ]
# A run that begins from the last checkpoint of another one, here and on a new machine.
printf '%s\n' '1,oktopk-fig4,,before.jsonl,1,-,up to a step' '1,oktopk-fig4,,step.jsonl,1,-,that step' > "$W/table.csv"
small next --time 60
check "both end" said 0 'finished: oktopk-fig4 step.jsonl'
check "then nothing is packed" [ -z "$(ls "$W/pack")" ]
check "and all of it is shown" [ -n "$(cell "$W/here/oktopk-fig4" ours 'Gaussian threshold over')" ]
rm -rf "$W/here/oktopk-fig4/step.jsonl" "$W/here/oktopk-fig4/histogram.txt" "$W/here/oktopk-fig4/comparison.csv" "$W/here/oktopk-fig4/runs/step.jsonl.run"*
sed -i '/^before/!d' "$W/here/oktopk-fig4/jobs.tsv"
: > "$W/here/oktopk-fig4/runs/before.jsonl.unshown"
reproduce oktopk-fig4 --quick --out "$W/here" --finished
status=$?
check "of an ID of which a short job is not made the rest is shown" [ "$status $(cell "$W/here/oktopk-fig4" note 'Gaussian threshold over')" = \
    '0 not compared in quick mode (in full: at least 1); not run yet: histogram.txt' ]
echo 137 > "$STOPPED.abort" # step.jsonl does not end
small next --time 60
check "the pack of a run from which another one is to begin stays, with its last checkpoint" sh -c "xz -dc '$W/pack/oktopk-fig4+before.tar.xz' | tar -tf - | grep -q 'checkpoint-00000070/model.ckpt'"
rm -r "$STOPPED.abort" "$W/here/oktopk-fig4/runs"
small next --time 60
check "on a new machine the other one begins from it" said 0 'finished: oktopk-fig4 step.jsonl'
check "and then it goes" [ -z "$(ls "$W/pack")" ]
# What lies in the place of a run and has other options is not its beginning.
rm "$W/here/oktopk-fig4/before.jsonl"
sed -i '/^before/d' "$W/here/oktopk-fig4/jobs.tsv"
small status
check "a checkpoint of this command line is a beginning" said 0 'begun, at epoch'
sed -i '2s/ --density 0.01 / --density 0.02 /' "$W/here/oktopk-fig4/runs/before.jsonl.run.mark"
small status
check "one of another is not" sh -c "grep -q 'before.jsonl .*not begun' '$W/out'"
rm -rf "$W/here/oktopk-fig4"

# Runs whose data are not there, none of them the first of its ID, are passed over, and nothing else is said.
printf '%s\n' '1,oktopk-fig11,,topka.jsonl,1,-,of recordings' '1,oktopk-fig13,,paper.jsonl,1,-,of words' '1,oktopk-fig4,,step.jsonl,1,-,of images' > "$W/table.csv"
mkdir "$W/nothing"
(
    SPARSETRAIN_DATA=$W/nothing
    export SPARSETRAIN_DATA
    campaign next --time 60 --table "$W/table.csv" --out "$W/here"
)
status=$?
check "runs whose data are not there are passed over" said 0 'oktopk-fig13: skipped: the dataset wiki is not there'
check "each by its name, in a line each" [ "$(cat "$W/out" "$W/err" | sed 's/: skipped: the dataset .* is not there.*//' | paste -s -d ' ' -)" = 'oktopk-fig11 oktopk-fig13 oktopk-fig4' ]

# -- what another machine has finished -----------------------------------------------------------------------------------
printf '%s\n' '1,gtopk-fig7,,dense.jsonl,-,1,of a GPU' '2,gtopk-fig7,,gtopk.jsonl,1,-,of a CPU' > "$W/table.csv"
campaign status --device cuda --quick --table "$W/table.csv" --out "$W/home"
check "the runs for a GPU are shown where there is none" sh -c "grep -q 'dense.jsonl .*not begun' '$W/out' && ! grep -q gtopk.jsonl '$W/out'"
(cd "$W/here" && tar -czf "$W/campaign.tar.gz" gtopk-fig7/*.jsonl gtopk-fig7/jobs.tsv)
take() { # take ARCHIVE
    campaign take "$1" --quick --table "$W/table.csv" --out "$W/home"
    status=$?
}
sed 's/ --epochs / --epochs 1/' "$W/here/gtopk-fig7/jobs.tsv" > "$W/other.tsv"
mkdir -p "$W/other/gtopk-fig7" && cp "$W/here/gtopk-fig7"/*.jsonl "$W/other/gtopk-fig7" && mv "$W/other.tsv" "$W/other/gtopk-fig7/jobs.tsv"
(cd "$W/other" && tar -czf "$W/other.tar.gz" gtopk-fig7)
take "$W/other.tar.gz"
check "runs with other options are not taken, which is said" said 1 'not taken: gtopk-fig7 dense.jsonl: its command line is that of no run here'
take "$W/campaign.tar.gz"
check "runs of another machine are taken, of a GPU, too" said 0 'taken: gtopk-fig7 dense.jsonl'
check "with their lines" [ "$(sort "$W/home/gtopk-fig7/jobs.tsv")" = "$(sort "$W/here/gtopk-fig7/jobs.tsv")" ]
check "as they are" cmp -s "$W/home/gtopk-fig7/gtopk.jsonl" "$W/here/gtopk-fig7/gtopk.jsonl"
check "and shown" [ -s "$W/home/gtopk-fig7/comparison.csv" ]
take "$W/campaign.tar.gz"
check "once" said 0 'nothing in it that is not here'
rm "$W/here/gtopk-fig7/gtopk.jsonl"
printf '%s\n' '1,gtopk-fig7,--epochs 2,dense.jsonl,1,-,short' '2,gtopk-fig7,,dense.jsonl,1,-,long' > "$W/table.csv"
small status
check "a run counts where a larger one of the same file is finished" said 0 'finished: a larger one'
finish
