#!/bin/sh
# cli_study_verb.sh: the verb study on folders of rows made here: plans, tables, facts, by options that change them; study memory;
# every mistake: one line, exit status 2. Decisions are tests/cli/cli_study.c's, the page is tests/scripts/cli_scaling.sh's.
# quick: some seconds
. tests/lib/tap.sh
rows=$W/rows
mkdir "$rows"
echo net,model,n,density,P,wire,algo,seconds,words_sent_max,local_nnz,global_nnz,scale,run_n,run_k,job > "$rows/simulated.csv"
echo model,n,density,P,wire,algo,compute_s,select_s,word_s,step_s,words_sent_max,scale,job > "$rows/aims.csv"
printf 'job\tcommit\tseconds\tcommand\n1\tabc\t5\tsh scripts/simulate.sh\n2\tabb\t7\tsh scripts/simulate.sh\n3\tabd\t100\tof no row\n' > "$rows/jobs.tsv"
study() { start 1 study "$@" --rows "$rows"; }

# -- plans -----------------------------------------------------------------------------------------------------------------
study plan --at 4 --nets 1gbe --models VGG-16 --densities 0.01
check "plan exits with 0" [ $? -eq 0 ]
check "what was asked for, and nothing else" [ "$(cut -d , -f 1-6 "$W/out" | sort -u)" = "1gbe,VGG-16,14728266,0.01,147282,4" ]
formats='coo32 packed-f32 packed-fast-f32 packed packed-fast'
of_formats() { for f in $formats; do echo "$f,topka topkdsa gtopk gtopk-rd oktopk spardl" && echo "$f,micro"; done; }
check "a job a format, and micro's" [ "$(cut -d , -f 7,8 "$W/out")" = "$(of_formats)" ]
arguments() { sed -n "$1s/^[^	]*	//p" "$W/out"; }
check "arguments of simulate.sh" [ "$(arguments 1)" = "--net 1gbe --p 4 --algo topka,topkdsa,gtopk,gtopk-rd,oktopk,spardl --wire coo32 --n 14728266 --density 0.01 --pattern fitted:results/measured/profiles/vgg16-p8-0.01 --device sparse --scale 35.9575" ]
check "and micro's: independent numbers" [ "$(arguments 2)" = "--net 1gbe --p 4 --algo micro --wire coo32 --n 1472820 --density 0.1 --scale 35.9575" ]
check "of a whole gradient where indices are packed" [ "$(arguments 4)" = "--net 1gbe --p 4 --algo micro --wire packed-f32 --n 14728266 --density 0.01 --scale 35.9575" ]
study plan --p 4 --nets 25gbe --models BERT --densities 0.02
check "a profile of the nearest model and density" grep -q -- '--pattern fitted:results/measured/profiles/lstm-ptb-p8-0.01 ' "$W/out"
study plan --p 4 --nets 100gbe
check "nothing of a twin" [ ! -s "$W/out" ]
study plan --quick --p 4 --nets 1gbe --models ResNet-20 --densities 0.02
check "quick: selections cut to 1024" grep -q ',5.26758,' "$W/out"
{
    echo '1gbe,ResNet-20,269722,0.001,4,coo32,topka,0.001,5,9,9,1,269722,269,1'
    echo '1gbe,ResNet-20,269722,0.001,4,packed,gtopk,0.001,5,9,9,1,269722,269,2'
    echo 'nosuch,ResNet-20,269722,0.001,4,packed,gtopk,0.001,5,9,9,1,269722,269,2'
} >> "$rows/simulated.csv"
study plan --at 4 --nets 1gbe --models ResNet-20 --densities 0.001
check "what is there is not planned again" [ "$(cut -d , -f 7,8 "$W/out")" = "$(of_formats | sed '/^coo32,/s/topka //; /^packed,/s/gtopk //')" ]
study plan-aims
check "the aims: four models, two P, dense, topka, gtopk in coo32 and two in every format" [ "$(grep -c . "$W/out")" -eq 104 ]
check "the first of them" [ "$(head -n 1 "$W/out")" = "VGG-16,14728266,0.001,32,coo32,dense,0.097,0,0,4.90942	--net 1gbe --p 32 --algo dense --wire coo32 --n 14728266 --density 0.001 --compute 0.097 --scale 4.90942" ]
echo 'VGG-16,14728266,0.001,32,coo32,dense,0.097,0,0,1.12,58,4.9,2' >> "$rows/aims.csv"
study plan-aims
check "one that is there is not planned again" [ "$(grep -c . "$W/out")" -eq 103 ]
study plan-aims --quick
check "quick: four of one model at one P" [ "$(cut -d , -f 1,4-6 "$W/out" | paste -s -d ' ' -)" = "VGG-16,32,coo32,topka VGG-16,32,coo32,gtopk VGG-16,32,packed-fast,gtopk-rd VGG-16,32,packed-fast,spardl" ]
{
    echo model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source
    echo vgg16,14728266,here,select,,exact,,0.001,,,0.002,,a test
    echo vgg16,14728266,here,word,spardl,exact,packed,0.001,,2,3e-9,,a test
} > "$W/costs"
study plan-aims --charged --costs "$W/costs" --device here
check "with the times of a table: those that it has" [ "$(cut -d , -f 1,4-9 "$W/out" | paste -s -d ' ' -)" = "VGG-16,32,packed,spardl,0.097,0.002,3e-09 VGG-16,256,packed,spardl,0.097,0.002,3e-09" ]
check "which are injected" grep -q -- '--compute 0.097 .* --select-cost 0.002 --word-cost 3e-09$' "$W/out"

# What was simulated with other times than the table has is none of its aims.
aims_with() { # aims_with SELECT: the table of aims where those rows were charged this selection
    cp -r "$rows" "$W/charged"
    echo "VGG-16,14728266,0.001,32,packed,spardl,0.097,$1,3e-09,0.1,58,4.9,3" >> "$W/charged/aims.csv"
    start 1 study aims --rows "$W/charged" --charged --costs "$W/costs" --device here
    rm -r "$W/charged"
}
aims_with 0.002
check "charged: the aims of this table" grep -q '^| VGG-16 | 32 | .* 97.0% spardl, packed ' "$W/out"
aims_with 0.003
check "and none of another" sh -c "! grep -q VGG-16 '$W/out'"

# -- tables ----------------------------------------------------------------------------------------------------------------
study cells --p 4
check "cells: every class and cell" [ "$(grep -c . "$W/out")" -eq $((1 + 3 * 4 * 4 * 3 * 9)) ]
# by the cost lines alone: topka 2 alpha + 6 k beta against gtopk-rd's 2 (alpha + 2 k beta)
by_lines() {
    awk -F , '$1 == "1gbe" && $2 == "ResNet-20" && $4 == 0.001 && $6 == 4 && $7 == "coo32" {
        topka = 2 * 436e-6 + 6 * 269 * 3.6e-8; rd = 2 * (436e-6 + 2 * 269 * 3.6e-8); off = $18 / (topka / rd) - 1
        found = $13 == "topka" && $15 == "gtopk-rd" && off < 1e-3 && off > -1e-3 } END { exit !found }' "$W/out"
}
check "by the cost lines" by_lines
study cells --p 4 --costs "$W/costs" --device here
check "local work: lines of what is known of it alone" [ "$(awk -F , '$21 == 1 && $2 != "VGG-16"' "$W/out" | grep -c .)" -eq 0 ]
study leads --kind model --p 4
check "leads: a line a class" [ "$(grep -cE '^\| (coo32|lossless|rounded) \| none \| 324 \| ' "$W/out")" -eq 3 ]
if [ -f results/measured/scaling/simulated.csv ]; then
    kept="--rows results/measured/scaling --costs results/measured/costs/costs.csv"
    # cells, ahead, within, behind of a class and a kind of local work: in columns of the table from $3 on, all lines together
    counts() { awk -F '|' -v class=" $1 " -v local=" $2 " -v at="$3" '$(at - 2) == class && $(at - 1) == local { for (i = 0; i < 4; i++) { gsub("[*]", "", $(at + i)); n[i] += $(at + i) } } END { print n[0], n[1], n[2], n[3] }' "$4"; }
    # shellcheck disable=SC2086 # words
    { start 1 study leads $kept && cp "$W/out" "$W/leads" && start 1 study bound $kept; }
    why=$(cat "$W/out" "$W/err")
    check "bound: by network, together what leads has" [ "$(counts lossless none 5 "$W/out"), $(counts rounded charged 5 "$W/out")" = "$(counts lossless none 4 "$W/leads"), $(counts rounded charged 4 "$W/leads")" ]
    check "and with packing that is free ours is behind less often" [ "$(counts lossless 'charged, packing free' 5 "$W/out" | cut -d ' ' -f 4)" -lt "$(counts lossless charged 5 "$W/out" | cut -d ' ' -f 4)" ]
else
    skip "bound: by network, together what leads has" "there are no measured results here"
    skip "and with packing that is free ours is behind less often" "there are no measured results here"
fi
study map --wire packed --p 4
check "the map: a table for each density, networks but the twin" [ "$(grep -c '^Density ' "$W/out") $(grep -c '^| 1gbe | VGG-16 | ' "$W/out") $(grep -c '^| 100gbe' "$W/out")" = "3 3 0" ]
study ratios
check "ratios: of what was simulated, over the cost line" [ "$(sed 1,2d "$W/out" | cut -d '|' -f 2-7 | paste -s -d ';' -)" = " topka | coo32 | 1 | 1.08 | 1.08 | 1.08 ; gtopk | packed | 1 | 0.56 | 0.56 | 0.56 " ]
check "and why they may differ" grep -q '^| topka .* | an all-gather of our own' "$W/out"
study commits
check "commits: of the rows that are there" [ "$(sed 1,2d "$W/out" | paste -s -d ';' -)" = "| abb | 3 | dense, gtopk packed |;| abc | 1 | topka coo32 |" ]
study facts
json_lines "facts are JSON" "$W/out"
check "facts: commits and seconds of those jobs, the simulator's error" [ "$("$PROGRAM" rows "$W/out" --keys commits,seconds,local | tr '\t' ,)" = "abb abc,12,false" ]
study facts --costs "$W/costs" --device here
check "facts: local work is known" [ "$("$PROGRAM" rows "$W/out" --keys local)" = true ]
for table in where winners aims paper disagreements; do
    study $table
    check "$table is there" [ "$? $(grep -c '^|---' "$W/out" | sed 's/[1-9][0-9]*/some/')" = "0 $([ $table = disagreements ] && echo 0 || echo some)" ]
done

# -- memory ----------------------------------------------------------------------------------------------------------------
memory() { start 1 study memory "$@" --json && "$PROGRAM" rows "$W/out" --keys "${keys:-needed}" | awk '/[0-9]/ { printf "%d\n", $1; next } { print }'; }
check "memory: arrays, and k of all ranks" [ "$(memory --p 16 --n 1000000 --density 0.01 --algo topka)" = "$((16 * (2000000 + 8000000 + 16 * 10000 * 16)))" ]
check "lists, of the largest density and the row that needs the most" [ "$(memory --p 16 --n 1000000 --density 0.001,0.01 --algo gtopk,topkdsa --device sparse)" = "$((16 * (2000000 + 10000 * (200 + 55 * 16))))" ]
check "dense, verified" [ "$(memory --p 4 --n 1000 --algo dense --check)" = "$((4 * (2000000 + 20000)))" ]
SPARSETRAIN_MEMORY_FREE=9000000
export SPARSETRAIN_MEMORY_FREE
keys=fits
check "more than there is" [ "$(memory --p 4 --n 1000000 --algo gtopk)" = false ]
check "less" [ "$(memory --p 4 --n 1000 --algo gtopk)" = true ]
start 1 study memory --p 4 --n 1000 --algo gtopk
check "in words" [ "$(cat "$W/out")" = "about 0.0 GB are needed, and 0.0 GB are free" ]

# -- mistakes --------------------------------------------------------------------------------------------------------------
wrong() { # wrong NAME TEXT OPTION...
    wrong_name=$1 wrong_text=$2
    shift 2
    check "$wrong_name" silent mistaken_alone "$wrong_text" study "$@"
}
wrong "nothing" "what is wanted?"
wrong "an unknown table" 'there is no table "nosuch"; there are: plan, plan-aims, cells' nosuch
wrong "two tables" "one table at a time" plan cells
own() { # own OPTION VALUE TABLE...: of these tables alone
    own_option="--$1${2:+=$2}" own_text="--$1 has no effect on"
    shift 2
    for table in plan plan-aims cells leads bound where map winners aims paper ratios disagreements commits facts; do
        case " $* " in *" $table "*) continue ;; esac
        wrong "$own_option: without effect on $table" "$own_text $table; leave it out" "$table" --rows "$rows" "$own_option"
    done
}
own charged '' plan-aims where winners aims
own kind model leads
own wire packed map
own at 4 plan
own nets 1gbe plan
own models VGG-16 plan
own densities 0.01 plan
wrong "rows that are not there" "cannot open $W/nothing/simulated.csv" cells --rows "$W/nothing"
wrong "a P that the map has not" "--p 5: the map has 4,8,16" plan --rows "$rows" --p 4,5
wrong "P that fall" "must rise" plan --rows "$rows" --p 8,4
wrong "an unknown network" '--nets has no "1gb"; there are: 1gbe, 10gbe' plan --rows "$rows" --nets 10gbe,1gb
wrong "an unknown model" '--models has no "AlexNet"; there are: ResNet-20, VGG-16, LSTM-PTB, BERT' plan --rows "$rows" --models AlexNet
wrong "a density that the map has not" "--densities 0.5: the map has 0.001,0.01,0.02" plan --rows "$rows" --densities 0.01,0.5
wrong "a P that is not simulated" "--at 16: it is none of" plan --rows "$rows" --p 4,8 --at 16
wrong "a device without selection" "has no selection on it; it has: here" cells --rows "$rows" --costs "$W/costs"
wrong "no table of costs" "is no table of measure-costs.sh" cells --rows "$rows" --costs README.md
wrong "an unknown format" '--wire has no "nosuch"; there are: coo32, packed-f32, packed' map --rows "$rows" --wire nosuch
wrong "memory of no ranks" "--p is needed" memory --n 5
wrong "memory of an unknown algorithm" "there are: dense, " memory --p 4 --algo nosuch
cp "$rows/simulated.csv" "$W/kept"
echo net,model > "$rows/simulated.csv"
wrong "a file of other rows" "has no column density" cells --rows "$rows"
cp "$W/kept" "$rows/simulated.csv"
printf '4\tabe\t5\0006\tsh scripts/simulate.sh\n' >> "$rows/jobs.tsv"
wrong "a zero byte among the jobs" "jobs.tsv:5: there is a zero byte in the line" commits --rows "$rows"
rm "$rows/jobs.tsv"
wrong "no jobs" "cannot open $rows/jobs.tsv" commits --rows "$rows"
finish
