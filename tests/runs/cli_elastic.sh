#!/bin/sh
# cli_elastic.sh: a run that goes on with other numbers of ranks, one after the other: where every entry is sent, its losses
# are those of a run that kept its ranks, since each step has the samples and the streams' states that it would have had;
# whatever is exchanged, it goes on, to bits that depend on the ranks alone; and with another batch it goes on behind the
# samples that it has had. P goes over 1, 2, 3, 4, 5, 8.
# long: most of a minute and more
# shellcheck disable=SC2086,SC2166 # lists of arguments; two conditions of one check
. tests/lib/tap.sh
at() { printf '%s/checkpoint-%08d' "$1" "$2"; }
within() { awk -v a="$1" -v b="$2" -v part="$3" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && d <= part * b) }'; }
# losses DIR: "step loss" of each step
losses() { sed -n 's/^{"type":"step","step":\([0-9]*\),.*"loss":\([^,]*\),.*/\1 \2/p' "$1/run.jsonl"; }
# as_far DIR OTHER PART: all steps of DIR have the losses of OTHER's, but for this part of them
as_far() {
    losses "$1" > "$W/these"
    losses "$2" > "$W/those"
    why=$(awk -v part="$3" 'NR == FNR { want[$1] = $2; next }
        { d = $2 - want[$1]; if (d < 0) d = -d; if (!($1 in want) || !(d <= part * want[$1])) print "step " $1 ": " $2 ", not " want[$1]; n++ }
        END { if (n != '"$4"') print n " steps" }' "$W/those" "$W/these" | head -n 3)
    [ -z "$why" ]
}

# same A B: neither is nothing
same() {
    why="$1, not $2"
    [ -n "$1" ] && [ "$1" = "$2" ]
}

# -- every entry is sent: the losses of a run that kept its ranks ----------------------------------------------------------
# chain NAME OPTIONS: 4 ranks, then the others; 21 steps
lstm="--model lstm --hidden 16 --data synthetic-text:3700x300x300 --bptt 5 --batch 30 --lr-warmup 4"
gpt="--model gpt --hidden 16 --layers 1 --heads 2 --context 8 --dropout 0 --data synthetic-text:3000x300x300 --batch 30 --eval-samples 0"
chain() {
    chain_name=$1
    shift
    rm -rf "$W/whole" "$W/chain"
    start 4 "$@" --algo dense --steps 21 --eval-every never --out "$W/whole" || echo "# $(head -c 300 "$W/err")"
    start 4 "$@" --algo dense --steps 3 --eval-every never --checkpoint-every 3 --out "$W/chain"
    chain_done=3
    for chain_p in 2 3 5 8 1 4; do
        chain_done=$((chain_done + 3))
        start $chain_p --resume "$W/chain" --steps $chain_done || echo "# P = $chain_p: $(head -c 300 "$W/err")"
    done
    check "$chain_name from 4 ranks to 2, 3, 5, 8, 1 and 4: the losses of 4 ranks all along" as_far "$W/chain" "$W/whole" 2e-6 21
    check "and the epochs" same "$(json "$W/chain/run.jsonl" summary epoch)" "$(json "$W/whole/run.jsonl" summary epoch)"
}
chain "streams with their states" $lstm
log=$W/chain/run.jsonl
json_lines "the log is JSON" "$log"
check "it has a row of each change" [ "$(sed -n 's/^{"type":"resize","step":\([0-9]*\),.*"ranks_before":\([0-9]*\),"ranks":\([0-9]*\),"batch_before":\([0-9]*\),"batch":\([0-9]*\),"residuals":"none"}$/\1:\2x\4>\3x\5/p' "$log" | tr '\n' ' ')" = "3:4x30>2x60 6:2x60>3x40 9:3x40>5x24 12:5x24>8x15 15:8x15>1x120 18:1x120>4x30 " ]
check "the summary is of the ranks that have ended it" [ "$(json "$log" summary ranks)/$(json "$log" summary resized)" = 4/6 ]
check "and so are its bytes" same "$(json "$log" summary bytes_sent_per_step)" "$(json "$W/whole/run.jsonl" summary bytes_sent_per_step)"
chain "windows from random places" $gpt

# -- whatever is exchanged -------------------------------------------------------------------------------------------------
small="--model lstm --hidden 8 --data synthetic-text:2000x200x200 --bptt 4 --batch 6 --density 0.05 --density-warmup none --eval-every never"
elastic() {
    elastic_name=$1
    shift
    rm -rf "$W/run"
    if ! start 4 $small "$@" --steps 12 --checkpoint-every 4 --check-replicas 4 --keep 9 --out "$W/run"; then
        not_ok "$elastic_name" "$(head -c 300 "$W/err")"
    elif ! start 2 --resume "$(at "$W/run" 4)" --out "$W/run.2" --stop-at 0.5; then
        not_ok "$elastic_name" "4 to 2: $(head -c 300 "$W/err")"
    elif ! start 3 --resume "$W/run.2" --out "$W/run.3"; then
        not_ok "$elastic_name" "2 to 3: $(head -c 300 "$W/err")"
    elif ! start 2 --resume "$(at "$W/run" 4)" --out "$W/run.b" || ! start 2 --resume "$(at "$W/run" 4)" --out "$W/run.c" --stop-at 0.3 || ! start 2 --resume "$W/run.c"; then
        not_ok "$elastic_name" "4 to 2: $(head -c 300 "$W/err")"
    elif [ -z "$(hash_of "$W/run.b")" ] || [ "$(hash_of "$W/run.b")" != "$(hash_of "$W/run.c")" ]; then
        not_ok "$elastic_name" "$(hash_of "$W/run.b") on 2 ranks, interrupted there $(hash_of "$W/run.c")"
    elif ! as_far "$W/run.3" "$W/run" 0.1 "$(losses "$W/run.3" | wc -l)"; then
        not_ok "$elastic_name" "$why"
    else
        ok "$elastic_name"
    fi
    rm -rf "$W"/run.*
}
for algo in $(names_of EXCHANGE comm/algorithms/exchanges.def); do
    case $algo in # 4, 2 and 3 ranks are on one node, which is one of theirs
    fedavg | diloco | sparseloco) elastic "$algo" --algo "$algo" --average-every 4 ;;
    *) elastic "$algo" --algo "$algo" ;;
    esac
done
elastic "momentum before the exchange" --algo gtopk --optimiser sgd --momentum 0.9 --momentum-correction --momentum-masking --lr 0.1
elastic "local updates, averaged now and then" --algo topka --local-update --average-every 4
elastic "slice by slice" --algo topka --select-scope layer
elastic "reused thresholds by layers" --algo topka --select reuse --overlap layers --overlap-bytes 2000
elastic "adam, and the rate folded in" --algo oktopk --optimiser adam --lr 0.01 --fold-lr

# -- residuals -------------------------------------------------------------------------------------------------------------
start 4 $small --algo gtopk --steps 12 --checkpoint-every 4 --keep 9 --out "$W/four"
for how in mean sum reset; do
    start 4 --resume "$(at "$W/four" 8)" --resume-residuals $how --out "$W/four.$how"
    start 2 --resume "$(at "$W/four" 8)" --resume-residuals $how --out "$W/two.$how"
    check "the log says what became of them: $how" [ "$(json "$W/two.$how/run.jsonl" resize residuals)" = $how ]
done
check "on as many ranks mean is what it ever was" same "$(hash_of "$W/four.mean")" "$(hash_of "$W/four")"
check "and so is sum" same "$(hash_of "$W/four.sum")" "$(hash_of "$W/four")"
check "reset is not" [ "$(hash_of "$W/four.reset")" != "$(hash_of "$W/four")" -a "$(json "$W/four.reset/run.jsonl" resize residuals)" = reset ]
check "on fewer all three are something else" [ "$(for how in mean sum reset; do hash_of "$W/two.$how"; done | sort -u | wc -l)" -eq 3 ]
start 2 --resume "$(at "$W/four" 8)" --out "$W/default"
check "mean is the default" same "$(hash_of "$W/default")" "$(hash_of "$W/two.mean")"
# rows that send every entry in fewer bits keep what that cuts off
for keeper in "--algo onebit" "--algo qsgd" "--algo dense --wire bf16"; do
    rm -rf "$W"/keeps*
    start 4 $small $keeper --steps 12 --checkpoint-every 4 --keep 9 --out "$W/keeps" || echo "# $(head -c 300 "$W/err")"
    start 4 --resume "$(at "$W/keeps" 8)" --out "$W/keeps.4"
    check "$keeper: on as many ranks the same bits" same "$(hash_of "$W/keeps.4")" "$(hash_of "$W/keeps")"
    for how in mean sum reset; do start 2 --resume "$(at "$W/keeps" 8)" --resume-residuals $how --out "$W/keeps.$how"; done
    check "on fewer its residuals are redistributed, too" [ "$(for how in mean sum reset; do hash_of "$W/keeps.$how"; done | sort -u | wc -l)/$(json "$W/keeps.sum/run.jsonl" resize residuals)" = 3/sum ]
done

# -- replicas that drift: the model is what an evaluation of the checkpoint sees ----------------------------------------------
start 4 $small --algo fedavg --average-every 8 --steps 12 --checkpoint-every 4 --keep 9 --out "$W/drifts"
"$PROGRAM" evaluate "$(at "$W/drifts" 4)" --json > "$W/scores"
start 2 --resume "$(at "$W/drifts" 4)" --steps 4 --out "$W/averaged"
"$PROGRAM" evaluate "$W/averaged" --json > "$W/scores2"
score() { sed -n 's/.*"valid_loss":\([^,}]*\).*/\1/p' "$1"; }
check "fedavg goes on from the average of the ranks that were" awk -v a="$(score "$W/scores")" -v b="$(score "$W/scores2")" 'BEGIN { d = a - b; exit !(a > 0 && d < 1e-6 && d > -1e-6) }'
start 2 --resume "$W/averaged" --steps 9 --out "$W/averaged.9"
check "and drifts on" [ "$(json "$W/averaged.9/run.jsonl" summary step)" = 9 ]

# -- another batch over all ranks ------------------------------------------------------------------------------------------
# 96 images: 5 steps of 2 x 4, then of 3 x 5 from the 41st on: epochs end in steps 9 and 16, and after 22 steps there were 3.
images="--data synthetic:96x24 --batch 4 --epochs 3 --algo topka --density 0.01 --density-warmup none"
start 2 $images --checkpoint-every 5 --keep 99 --out "$W/images"
start 3 --resume "$(at "$W/images" 5)" --batch 5 --checkpoint-every 1 --out "$W/larger" --mllog "$W/mllog"
log=$W/larger/run.jsonl
json_lines "its log is JSON" "$log"
steps_at() { sed -n 's/^{"type":"'"$1"'","step":\([0-9]*\),.*/\1/p' "$log" | tr '\n' ' '; }
check "it goes on behind the samples that it has had" [ "$(sed -n 's/^{"type":"step","step":6,"epoch":\([^,]*\),.*/\1/p' "$log")" = 0.5729166666666666 ]
check "to the epochs that were asked for" [ "$(json "$log" summary step)/$(json "$log" summary epoch)" = "22/3.0729166666666665" ]
check "a log for MLPerf counts these samples, too" grep -q '"key": *"run_stop".*"samples_count": *295[,}]' "$W/mllog"
check "evaluated where an epoch ends" [ "$(steps_at eval)" = "9 16 22 " ]
start 3 --resume "$(at "$W/larger" 21)" --out "$W/larger.21"
check "interrupted in that leg: the same bits" same "$(hash_of "$W/larger.21")" "$(hash_of "$W/larger")"
start 5 --resume "$(at "$W/larger" 21)" --out "$W/larger.5"
check "on other ranks in that leg: the same epochs" [ "$(json "$W/larger.5/run.jsonl" summary epoch)" = 3.0729166666666665 ]
start 2 --resume "$(at "$W/images" 5)" --batch 6 --epochs 1 --out "$W/same"
check "on as many ranks, too: 40 images, then 5 steps of 12" [ "$(json "$W/same/run.jsonl" summary step)/$(json "$W/same/run.jsonl" summary epoch)" = "10/1.0416666666666667" ]
start 2 --resume "$(at "$W/images" 5)" --batch 6 --steps 8 --out "$W/steps"
check "steps are counted on" [ "$(json "$W/steps/run.jsonl" summary step)/$(json "$W/steps/run.jsonl" summary run_epochs)" = "8/0.7916666666666666" ]
start 1 --resume "$(at "$W/images" 5)" --batch 12 --stop-at 1 --out "$W/stopped"
check "--stop-at goes by the samples" [ "$(json "$W/stopped/run.jsonl" summary step)" = 10 ]

# Two epochs of 96 images: 12 steps of 2 x 4 in the first, then 6 of 2 x 8, or 24 of 2 x 2. A rate that falls from step to
# step goes on from where it was, and comes to the end with the run. Base 0.1.
rate_at() { sed -n 's/^{"type":"step","step":'"$2"',.*"lr":\([^,]*\),.*/\1/p' "$1/run.jsonl"; }
falling() { # NAME RATE-AT-EPOCH-1 RATE-OF-THE-LAST-OF-6-STEPS AND-OF-24 OPTIONS
    falling_name=$1 falling_first=$2 falling_six=$3 falling_more=$4
    shift 4
    rm -rf "$W"/falling*
    start 2 --data synthetic:96x24 --batch 4 --epochs 2 --lr 0.1 --eval-every never "$@" --stop-at 1 --out "$W/falling"
    cp -R "$W/falling" "$W/falling.6"
    start 2 --resume "$W/falling.6" --batch 8
    check "$falling_name with longer steps: from the rate of its epoch" within "$(rate_at "$W/falling.6" 13)" "$falling_first" 1e-4
    check "as the first lines say" grep -qx "  rate      ${falling_first}[0-9]*; .*" "$W/out"
    check "to that of its last step" within "$(rate_at "$W/falling.6" 18)" "$falling_six" 1e-4
    start 2 --resume "$W/falling" --batch 2
    check "and with shorter ones: from there" within "$(rate_at "$W/falling" 13)" "$falling_first" 1e-4
    check "to there" within "$(rate_at "$W/falling" 36)" "$falling_more" 1e-4
}
falling "--lr-schedule cosine" 0.05 0.0017037 0.00010705 --lr-schedule cosine --lr-warmup 0
falling "--lr-schedule linear behind a warm-up in steps" 0.05714 0.0095238 0.0023810 --lr-schedule linear --lr-warmup-steps 3

# 5 steps of 2 x 4 of 96 images, then of 2 x 8: a warm-up of the density that is counted in steps ends in one or the other.
for warmup in 3:0.25 10:1.25; do
    rm -rf "$W"/dense*
    start 2 --data synthetic:96x24 --batch 4 --steps 12 --algo topka --density 0.01 --density-warmup linear:${warmup%:*} --eval-every never --checkpoint-every 5 --keep 9 --out "$W/denser"
    start 2 --resume "$(at "$W/denser" 5)" --batch 8 --out "$W/denser.8"
    check "a linear warm-up of the density over ${warmup%:*} steps: where it ends" [ "$(json "$W/denser.8/run.jsonl" header density_from)" = "${warmup#*:}" ]
done

# -- a target --------------------------------------------------------------------------------------------------------------
# What there was before is kept, whoever goes on: bytes and scores. The first evaluation is after 12 steps.
start 4 --resume "$(at "$W/images" 5)" --target loss:1000 --out "$W/target"
sent() { sed -n 's/^{"type":"step",.*"bytes_sent_mean":\([^,]*\),.*/\1/p' "$1/run.jsonl"; }
bytes=$({ sent "$W/images" | head -n 5 && sent "$W/target"; } | awk '{ b += $1; n++ } END { printf "%.17g in %d", b, n }')
check "a target is reached on other ranks" [ "$(json "$W/target/run.jsonl" summary reached)/$(json "$W/target/run.jsonl" summary steps)" = true/12 ]
check "what it took is that of all ranks that there were" same "$(json "$W/target/run.jsonl" summary bytes_sent | awk '{ printf "%.17g in 12", $1 }')" "$bytes"
start 5 --resume "$(at "$W/larger" 9)" --target loss:1000 --out "$W/target.5"
check "and so are the scores of the checkpoint" [ "$(json "$W/target.5/run.jsonl" summary reached)/$(json "$W/target.5/run.jsonl" summary steps)" = true/9 ]

# 9 windows an epoch of 2 x 10 streams of text; where it is over they may be cut otherwise.
text="--model lstm --hidden 8 --data synthetic-text:2000x200x200 --bptt 10 --batch 10 --algo dense --eval-every never"
start 2 $text --steps 18 --checkpoint-every 3 --keep 9 --out "$W/text"
check "streams are not cut otherwise inside an epoch" mistaken "step 12 is inside an epoch, and its 20 streams" 2 --resume "$(at "$W/text" 12)" --steps 30 --batch 4
check "nor for a number of ranks that does not divide them" mistaken "20 cannot be shared out among 3 alike" 3 --resume "$W/text" --steps 30
start 3 --resume "$(at "$W/text" 9)" --steps 20 --batch 5 --out "$W/text.3"
check "but where one ends" [ "$(json "$W/text.3/run.jsonl" resize epoch)/$(json "$W/text.3/run.jsonl" summary epoch)" = "1/1.8461538461538463" ]

# -- mistakes --------------------------------------------------------------------------------------------------------------
check "--resume-residuals without --resume" mistaken "--resume-residuals has no effect without --resume" 2 $images --resume-residuals sum
check "where there are none" mistaken "--resume-residuals has no effect with --algo dense, which keeps no residual" 2 --resume "$W/text" --resume-residuals sum --steps 30
check "of a kind that there is not" mistaken "--resume-residuals" 1 --resume "$W/images" --resume-residuals half
check "a batch that cannot be shared out" mistaken "was made with --batch 4 on 2 ranks, and 8 cannot be shared out among 5 alike; take a number of ranks that divides it, or give another --batch" 5 --resume "$(at "$W/images" 5)"
check "another algorithm" mistaken "made with --algo topka, not gtopk" 4 --resume "$(at "$W/images" 5)" --algo gtopk
start 4 $small --algo hitopk --ranks-per-node 2 --steps 4 --checkpoint-every 2 --keep 9 --out "$W/nodes"
check "nodes of other ranks" mistaken "--ranks-per-node 2 does not divide the 3 ranks" 3 --resume "$(at "$W/nodes" 2)"
check "the same ranks have the same nodes" mistaken "made with --ranks-per-node 2, not 4" 4 --resume "$(at "$W/nodes" 2)" --ranks-per-node 4
start 4 $small --algo hitopk --steps 2 --out "$W/one"
check "nodes that are there are not changed for others" mistaken "made without --ranks-per-node, not with 2" 4 --resume "$W/one" --steps 4 --ranks-per-node 2
# Between two averages nodes differ. On a cluster a job may come back with other ranks on a node; here the checkpoint no longer says which.
start 4 $small --algo hitopk --local-update --average-every 50 --ranks-per-node 2 --steps 4 --checkpoint-every 3 --out "$W/drift"
"$BUILD/tests/craft" "$(at "$W/drift" 3)/model.ckpt" get options | tr -d '\0' | sed '/^ranks-per-node=/d' > "$W/options"
printf '\0' >> "$W/options"
"$BUILD/tests/craft" "$(at "$W/drift" 3)/model.ckpt" put options < "$W/options"
check "ranks that had different nodes do not share one" mistaken "rank 0 and rank 2 share a node now, and did not" 4 --resume "$(at "$W/drift" 3)"
start 2 --resume "$(at "$W/drift" 3)" --out "$W/drift.2"
check "but in another number they begin with the mean" [ $? -eq 0 ]
start 3 --resume "$(at "$W/nodes" 2)" --ranks-per-node 3 --out "$W/nodes.3"
check "other ones may have others" [ $? -eq 0 ]
rm "$(at "$W/four" 8)/rank0003.ckpt"
check "a missing file of a rank that was" mistaken "rank0003.ckpt" 2 --resume "$(at "$W/four" 8)"
finish
