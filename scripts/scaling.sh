#!/bin/sh
# scaling.sh: the scaling study: who wins on which network at which number of ranks, by the cost model and in simulation
# (scripts/simulate.sh), how far what is ours is ahead of what is published, and whether the aims on 1 Gbit/s are reached.
# docs/reproduce.md says what stands where. Times in simulation do not depend on the machine or its load.
# shellcheck disable=SC2016 # programs for awk
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib/common.sh
. scripts/lib/common.sh
usage() {
    cat <<'END'
usage: scaling.sh [OPTIONS]
  --quick            a small map and a few of the aims, in minutes; to build/scaling-quick
  --only WHAT        map: simulate the map; aims: simulate the aims; page: write the page of what is there
                     (default: all three)
  --p LIST           simulate at these numbers of ranks, rising (default 4,8,16,32,64,128,256; the model goes to 1024)
  --nets LIST, --models LIST, --densities LIST   simulate these alone; what is left out of the map is by the model
  --costs FILE       a table of measure-costs.sh (default results/measured/costs/costs.csv, where it is): the map and the aims
                     without and with the selection, packing and merging of each algorithm; none: without alone
  --on DEVICE        of this device of the table (default cpu)
  --out DIR          the rows (default results/measured/scaling)
  --page FILE        the page (default results/scaling.md; with --out beside DIR's rows)
  --plan             say how much is left to simulate and end
A run that is interrupted goes on where it was: rows that are there are not simulated again. To begin anew, remove DIR.
END
}

quick='' only='' plan_only='' out='' page='' costs='' on=cpu command="sh scripts/scaling.sh"
ranks=4,8,16,32,64,128,256 nets='' models='' densities=''
options_plain=yes
options 'quick!quick=1 plan!plan_only=1 only p:ranks nets models densities costs on out page' "$@"
case $only in '' | map | aims | page) ;; *) fail "--only $only: map, aims or page" ;; esac
case $costs in '' | none) ;; *) [ -f "$costs" ] || fail "--costs: there is no file $costs" ;; esac

map_p=4,8,16,32,64,128,256,512,1024 map_densities=0.001,0.01,0.02 map_nets=1gbe,10gbe,25gbe,100gbe
if [ -n "$quick" ]; then
    command="$command --quick"
    : "${out:=build/scaling-quick}"
    [ "$ranks" != 4,8,16,32,64,128,256 ] || ranks=4,8
    : "${densities:=0.001}" "${models:=ResNet-20,VGG-16}"
fi
if [ -z "$page" ]; then
    if [ -z "$out" ]; then page=results/scaling.md; else page=$out/scaling.md; fi
fi
: "${out:=results/measured/scaling}" "${nets:=$map_nets}" "${densities:=$map_densities}"
table=results/measured/costs/costs.csv
[ -n "$costs" ] || [ ! -f $table ] || costs=$table
[ "$costs" != none ] || costs=''
if [ -n "$costs" ] && ! grep -q "^[^#,]*,[0-9]*,$on,select," "$costs"; then
    fail "--on $on: $costs has no selection on it; it has: $(awk -F , '!/^#/ && $4 == "select" && !seen[$3]++ { print $3 }' "$costs" | paste -s -d ' ' -)"
fi
for p in $(echo "$ranks" | tr , ' '); do
    case $p in '' | *[!0-9]*) fail "--p $ranks: whole numbers with commas between them" ;; esac
    case ",$map_p," in *",$p,"*) ;; *) fail "--p $p: the map has $map_p" ;; esac
done

need_program
folder=scripts/scaling
published=results/published profiles=results/measured/profiles
simulate=${SCALING_SIMULATE:-sh scripts/simulate.sh} # a test has its own
csv_awk=$(cat scripts/reproduce/csv.awk)
if [ "$only" != page ] && [ -z "${SCALING_SIMULATE:-}${plan_only:-}" ]; then
    command -v smpirun >/dev/null 2>&1 || fail "smpirun is not installed (SimGrid): sh scripts/deps.sh sim, then make sim; --only page needs neither"
    [ -f "${BUILD:-build}/sparsetrain-sim" ] || fail "${BUILD:-build}/sparsetrain-sim is not there; build it: make sim"
fi
mkdir -p "$out"
make_scratch

# -- what there is: models, networks, the cost model ------------------------------------------------------------------------
# published_value FILE COLUMN NAME VALUE: that column of the row with NAME = VALUE
published_value() {
    awk -v column="$2" -v name="$3" -v value="$4" "$csv_awk"'
        { csv_split($0, f) }
        NR == 1 { for (i in f) at[f[i]] = i; next }
        f[at[name]] == value { print f[at[column]]; exit }' "$published/$1"
}
# model_n NAME: parameters, as the program and the papers count them; AlexNet's and ResNet-50's as usual for 1000 classes
model_n() {
    case $1 in
    ResNet-20) echo 269722 ;;
    LSTM-PTB) echo 66034000 ;;
    VGG-16 | BERT) published_value oktopk-models.csv parameters model "$1" ;;
    AlexNet) echo 61100840 ;;
    ResNet-50) echo 25557032 ;;
    *) fail "no model $1: there are ResNet-20, VGG-16, LSTM-PTB and BERT" ;;
    esac
}
map_models=ResNet-20,VGG-16,LSTM-PTB,BERT
: "${models:=$map_models}"
# profile_of MODEL DENSITY: the fitted gradients that are nearest: of this model, or of one of its kind; of this density, or
# of the next lower one
profile_of() {
    case $1 in
    ResNet-20 | ResNet-50) profile=resnet20-p8 ;;
    VGG-16 | AlexNet) profile=vgg16-p8 ;;
    *) profile=lstm-ptb-p8 ;;
    esac
    for profile_density in "$2" 0.01 0.001; do
        if [ -f "$profiles/$profile-$profile_density" ]; then
            echo "$profiles/$profile-$profile_density"
            return
        fi
    done
    fail "no profile $profiles/$profile-*: it comes with the tree, and its folder says how it was made"
}

# of_rows OPTION...: values out of the program's rows on standard input, with commas between
of_rows() { "$program" rows - "$@" | tr '\t' ,; }
exchanges() {
    echo name,sparse,ours,moves_as
    "$program" list --json | of_rows --each exchanges --keys name,sparse,ours,moves_as
}
# networks.csv: a network is the twin of an earlier one with the same alpha/beta
networks() {
    echo net,alpha,beta,twin,factor
    for net in $(echo $map_nets | tr , ' '); do "$program" predict --json --net "$net" --p 2; done |
        of_rows --where predict=network --keys net,alpha,beta | awk -F , '
            {
                twin = ""; factor = 1
                for (i = 1; i < NR; i++) {
                    off = $2 / $3 / (alphas[i] / betas[i]) - 1
                    if (off < 1e-9 && off > -1e-9) { twin = names[i]; factor = $2 / alphas[i]; break }
                }
                names[NR] = $1; alphas[NR] = $2; betas[NR] = $3
                printf "%s,%s,%s,%s,%.17g\n", $1, $2, $3, twin, factor
            }'
}
# predicted.csv: the cost model in every cell, of every algorithm that can be compared (fedavg exchanges no gradients)
predictions() {
    echo net,model,n,density,k,P,wire,algo,takes,seconds
    lengths='' names=''
    for model in $(echo $map_models | tr , ' '); do
        length=$(model_n "$model")
        lengths=$lengths${lengths:+,}$length names="$names $length=$model"
    done
    for net in $(echo $map_nets | tr , ' '); do
        for density in $(echo $map_densities | tr , ' '); do
            for wire in coo32 packed-f32 packed; do
                "$program" predict --json --net "$net" --p $map_p --n "$lengths" --density "$density" --wire $wire |
                    of_rows --where predict=cost --where ranked=true --keys n,k,ranks,algo,seconds,wire |
                    awk -F , -v names="$names" -v net="$net" -v density="$density" -v wire=$wire '
                        BEGIN { count = split(names, pair, " "); for (i = 1; i <= count; i++) { split(pair[i], at, "="); name[at[1]] = at[2] } }
                        { takes = $6 != "" }
                        takes || wire == "coo32" { print net "," name[$1] "," $1 "," density "," $2 "," $3 "," wire "," $4 "," takes + 0 "," $5 }'
            done
        done
    done
}
# local.csv: what a rank itself does in a step, by the table of costs: predict --best charges it. packed-f32, where the table
# has none, is charged what packed is: the same coding of indices, and values that are copied instead of rounded.
local_work() {
    echo model,n,density,P,wire,algo,seconds
    [ -n "$costs" ] || return 0
    for model in $(echo $map_models,AlexNet,ResNet-50 | tr , ' '); do
        length=$(model_n "$model")
        for density in $(echo $map_densities | tr , ' '); do
            for p in $(echo $map_p | tr , ' '); do # of several P at once only the best would be said
                "$program" predict --best --json --costs "$costs" --device "$on" --net 1gbe --p "$p" --n "$length" --density "$density" 2>/dev/null
            done |
                of_rows --where predict=best --missing coo32 --keys ranks,wire,algo,local_s | awk -F , -v OFS=, -v head="$model,$length,$density" '
                    { print head, $0; seconds[$1 "," $2 "," $3] = $4 }
                    END {
                        for (key in seconds) {
                            split(key, part, ",")
                            twin = part[1] ",packed-f32," part[3]
                            if (part[2] == "packed" && !(twin in seconds)) print head, twin, seconds[key]
                        }
                    }'
        done
    done
}
exchanges >"$scratch/exchanges.csv"
networks >"$scratch/networks.csv"
predictions >"$scratch/predicted.csv"
local_work >"$scratch/local.csv"
# simulator_error: the largest by which a simulated step differs from the same step on an emulated network, as a fraction, and
# whose step that was
simulator_error() {
    awk "$csv_awk"'
        { csv_split($0, f) }
        FNR == 1 { for (i in f) at[f[i]] = i; next }
        f[at["kind"]] == "simulated" {
            off = f[at["ours"]] / f[at["paper"]] - 1
            if (off * off > most * most) { most = off; item = f[at["item"]] }
        }
        END { printf "%.4f,%s, %.1f%% too %s\n", (most < 0 ? -most : most), item, 100 * (most < 0 ? -most : most), (most < 0 ? "short" : "long") }' results/measured/sim-calibration/comparison.csv
}
error=$(simulator_error)

# -- rows -------------------------------------------------------------------------------------------------------------------
row_head=net,model,n,density,P,wire,algo,seconds,words_sent_max,local_nnz,global_nnz,scale,run_n,run_k,job
aims_head=model,n,density,P,wire,algo,compute_s,select_s,word_s,step_s,words_sent_max,scale,job
# whole FILE HEAD: makes the file, or takes off a last line that an interruption has cut
whole() {
    if [ -s "$1" ]; then
        [ -z "$(tail -c 1 "$1")" ] || sed -i '$d' "$1"
    else
        echo "$2" >"$1"
    fi
}
whole "$out/simulated.csv" $row_head
whole "$out/aims.csv" $aims_head
whole "$out/jobs.tsv" "job	commit	seconds	command"

# run_job ARGUMENT...: simulate.sh; its rows to $scratch/rows, and a line to jobs.tsv, whose number is $job
run_job() {
    job=$(wc -l <"$out/jobs.tsv")
    job_start=$(date +%s)
    if $simulate "$@" >"$scratch/rows" 2>"$scratch/errors" </dev/null; then job_status=0; else job_status=$?; fi
    [ $job_status -le 128 ] || exit $job_status # a signal
    [ $job_status -eq 0 ] || {
        say "left out, status $job_status of simulate.sh $*: $(tail -n 1 "$scratch/errors")"
        return 1
    }
    printf '%s\t%s\t%s\tsh scripts/simulate.sh %s\n' "$job" "$commit" $(($(date +%s) - job_start)) "$*" >"$scratch/job"
}
# study PROGRAM.awk ASSIGNMENT...: over all tables
study() {
    study_program=$1
    shift
    awk -v simulated_p="$ranks" -v small="${quick:+1024}" "$@" -f scripts/lib/memory.awk -f $folder/study.awk -f "$folder/$study_program" table=exchanges "$scratch/exchanges.csv" table=networks "$scratch/networks.csv" \
        table=predicted "$scratch/predicted.csv" table=simulated "$out/simulated.csv" table=local "$scratch/local.csv"
}
# chosen: of a plan, what --nets, --models and --densities ask for
chosen() { awk -F , -v nets=",$nets," -v models=",$models," -v densities=",$densities," 'index(nets, "," $1 ",") && index(models, "," $2 ",") && index(densities, "," $4 ",")'; }
plan() { study plan.awk -v plan_p="$1" | chosen; }

# simulate_map P: everything of the plan of this P
simulate_map() {
    plan "$1" >"$scratch/plan"
    map_jobs=$(wc -l <"$scratch/plan") map_at=0
    while IFS=, read -r net model n density k p wire algo scale seconds; do
        map_at=$((map_at + 1))
        say "P = $p, $map_at of $map_jobs: $net, $model, density $density, $wire: $algo (about $seconds s)"
        list=$(echo "$algo" | tr ' ' ,)
        set -- --net "$net" --p "$p" --algo "$list" --wire "$wire"
        if [ "$algo" = micro ]; then
            # Its words follow from k and P alone, but every partition must have its share of entries, which drawn
            # gradients do not have: independent numbers, ten times k of them.
            set -- "$@" --n $((10 * k)) --density 0.1
        else
            set -- "$@" --n "$n" --density "$density" --pattern "fitted:$(profile_of "$model" "$density")" --device sparse
        fi
        [ "$scale" = 1 ] || set -- "$@" --scale "$scale"
        run_job "$@" --steps 2 -- --warmup 1 || continue
        of_rows --missing 1 --keys algo,mean_s,words_sent_max,local_nnz,global_nnz,scale,n,k <"$scratch/rows" |
            sed "s/^/$net,$model,$n,$density,$p,$wire,/; s/\$/,$job/" >"$scratch/lines"
        cat "$scratch/job" >>"$out/jobs.tsv"
        cat "$scratch/lines" >>"$out/simulated.csv"
    done <"$scratch/plan"
}

# -- the aims: weak scaling on 1gbe with the step times of the gTop-k paper's GPU ---------------------------------------------
# aim_jobs: model, P, algorithm, wire, the most entries a rank selects (scale)
aim_jobs() {
    if [ -n "$quick" ]; then
        printf 'VGG-16 32 %s\n' 'topka coo32 1024' 'gtopk coo32 1024' 'gtopk-rd packed 1024' 'spardl packed 1024'
        return
    fi
    for model in VGG-16 ResNet-20 AlexNet ResNet-50; do
        for p in 32 256; do
            # dense: entries of the gradient, which nobody reads
            printf '%s %s %s\n' "$model" $p 'dense - 3000000' "$model" $p "topka coo32 $((p == 32 ? 8192 : 1024))" "$model" $p "gtopk coo32 16384" \
                "$model" $p 'gtopk-rd coo32 16384' "$model" $p 'gtopk-rd packed-f32 16384' "$model" $p 'gtopk-rd packed 16384' \
                "$model" $p 'spardl coo32 16384' "$model" $p 'spardl packed-f32 16384' "$model" $p 'spardl packed 16384'
        done
    done
}
# costs_of MODEL ALGO WIRE: "SELECT WORD" [s] of the table; nothing where it lacks them
costs_of() {
    "$program" costs "$costs" --model "$(echo "$1" | tr -d - | tr '[:upper:]' '[:lower:]')" --device "$on" --algo "$2" --wire "$3" --density 0.001 \
        --times select,word --json 2>/dev/null | "$program" rows - --keys select_s,word_s | tr '\t' ' '
}
has_aim() { # has_aim MODEL P WIRE ALGO SELECT WORD
    awk -F , -v want="$1,$2,$3,$4" -v select_s="$5" -v word_s="$6" '
        $1 "," $4 "," $5 "," $6 == want && $8 == select_s && $9 == word_s { found = 1 } END { exit !found }' "$out/aims.csv"
}
# simulate_aims none|costs: communication alone, or with the costs of the table
simulate_aims() {
    aims_with=$1
    aim_jobs | while read -r model p algo wire most; do
        n=$(model_n "$model")
        compute=$(published_value gtopk-single-gpu.csv iteration_s model "$model")
        select_s=0 word_s=0
        if [ "$aims_with" = costs ]; then
            [ "$algo" != dense ] || continue # nothing is charged to it
            local_work=$(costs_of "$model" "$algo" "$wire")
            [ -n "$local_work" ] || continue # not in the table
            select_s=${local_work% *} word_s=${local_work#* }
        fi
        [ "$wire" != - ] || wire=coo32
        if has_aim "$model" "$p" "$wire" "$algo" "$select_s" "$word_s"; then continue; fi
        say "aims: $model, P = $p, $algo $wire, selection $select_s s"
        set -- --net 1gbe --p "$p" --algo "$algo" --wire "$wire" --n "$n" --density 0.001 --compute "$compute"
        if [ "$algo" = dense ]; then
            scale=$(awk -v n="$n" -v most="$most" 'BEGIN { s = n / most; printf "%.6g", (s > 1 ? s : 1) }')
        else
            scale=$(awk -v n="$n" -v most="$most" 'BEGIN { s = int(n * 0.001) / most; printf "%.6g", (s > 1 ? s : 1) }')
            set -- "$@" --pattern "fitted:$(profile_of "$model" 0.001)" --device sparse
        fi
        [ "$scale" = 1 ] || set -- "$@" --scale "$scale"
        if [ "$select_s,$word_s" != 0,0 ]; then set -- "$@" --select-cost "$select_s" --word-cost "$word_s"; fi
        run_job "$@" --steps 2 -- --warmup 1 || continue
        of_rows --keys step_s,words_sent_max <"$scratch/rows" |
            sed "s/^/$model,$n,0.001,$p,$wire,$algo,$compute,$select_s,$word_s,/; s/\$/,$scale,$job/" >"$scratch/lines"
        cat "$scratch/job" >>"$out/jobs.tsv"
        cat "$scratch/lines" >>"$out/aims.csv"
    done
}

left=$(plan '' | awk -F , '{ jobs++; s += $10 } END { printf "%d simulations, about %.0f minutes of one core", jobs, s / 60 }')
say "left of the map: $left (as the model has it; what falls behind is left out on the way)"
[ -z "$plan_only" ] || exit 0
if [ -z "$only" ] || [ "$only" = aims ]; then
    simulate_aims none
    [ -z "$costs" ] || simulate_aims costs
fi
if [ -z "$only" ] || [ "$only" = map ]; then
    for p in $(echo "$ranks" | tr , ' '); do simulate_map "$p"; done
fi
study cells.awk >"$out/.cells" && mv "$out/.cells" "$out/cells.csv"

# -- the page ---------------------------------------------------------------------------------------------------------------
# picture FILE.png TITLE COLUMN WIRE [SHADES]: of cells.csv; COLUMN 9: the winner, 18: how far ahead
picture() {
    awk -F , -v column="$3" -v wire="$4" -v names="$names" '
        BEGIN { count = split(names, list, " "); for (i = 1; i <= count; i++) code[list[i]] = i - 1 }
        NR == 1 { next }
        !($1 in net) { net[$1] = nets++ }
        !($2 in model) { model[$2] = models++ }
        !($4 in density) { density[$4] = densities++ }
        $7 == wire && !$21 { print 3 * model[$2] + density[$4], log($6) / log(2), net[$1], (column == 9 ? code[$9] : $column), $8 == "simulated" }' "$out/cells.csv" >"$scratch/map.dat"
    LC_ALL=C.UTF-8 gnuplot -e "out='$out/$1'; data='$scratch/map.dat'; title='$2'; names='$names'; shades='${5:-no}'; models='$(echo $map_models | tr , ' ')'; densities='$(echo $map_densities | tr , ' ')'; networks='$(echo $map_nets | tr , ' ')'" $folder/map.gp ||
        say "gnuplot could not draw $1"
}
if command -v gnuplot >/dev/null 2>&1; then
    names=$(awk -F , 'NR > 1 { n[$9]++ } END { for (i in n) print n[i], i }' "$out/cells.csv" | sort -rn | awk '{ printf "%s%s", (NR > 1 ? " " : ""), $2 }')
    picture winners-coo32.png 'The fastest exchange, in coo32 alone' 9 coo32
    picture winners-packed.png 'The fastest exchange, in any wire format' 9 packed
    picture ahead-lossless.png 'The best of ours against the best published algorithm: lossless messages' 18 packed-f32 yes
    picture ahead.png 'The best of ours against the best published algorithm: rounded messages' 18 packed yes
else
    say "no pictures: gnuplot is not installed: sh scripts/deps.sh test"
fi
case $out in
"$(dirname "$page")"/*) pictures=${out#"$(dirname "$page")"/}/ ;;
"$(dirname "$page")") pictures='' ;;
*) pictures=$(cd "$out" && pwd -P)/ ;;
esac
# of the jobs whose rows are still there
jobs_of() { # jobs_of COLUMN of jobs.tsv
    awk -v column="$1" -v simulated="$out/simulated.csv" -v aims="$out/aims.csv" '
        BEGIN {
            FS = ","
            while ((getline <simulated) > 0) used[$15] = 1
            while ((getline <aims) > 0) used[$13] = 1
            FS = "\t"
        }
        $1 in used && FNR > 1 { print $column }' "$out/jobs.tsv"
}
commits=$(jobs_of 2 | sort -u | paste -s -d ' ' -)
seconds=$(jobs_of 3 | awk '{ s += $1 } END { print s + 0 }')
{
    printf 'command: %s\ncommit: %s\nmachine: %s\ndate: %s\nseconds: %s\n' "$command" "${commits:-$commit}" "$(machine)" "$(date -u +%Y-%m-%d)" "$seconds"
} >"$out/about.txt"
{
    printf '# The scaling study\n\nMade by `%s` on %s, %s s of simulation at commit %s. Machine: %s.\n\n' "$command" "$(date -u +%Y-%m-%d)" "$seconds" "${commits:-$commit}" "$(machine)"
    printf '`simulated.csv` and `aims.csv` hold a row for each simulation, `jobs.tsv` the command of each row (by its job), `cells.csv` what the map shows.\n'
    printf 'The page is `scaling.md`; docs/reproduce.md says more.\n'
} >"$out/README.md"
awk -v simulated_p="$ranks" -v command="$command" -v commits="${commits:-$commit}" -v machine="$(machine)" -v seconds="$seconds" -v pictures="$pictures" \
    -v costs="$costs" -v on="$on" -v error="${error%%,*}" -v error_of="${error#*,}" -f scripts/lib/memory.awk -f $folder/study.awk -f $folder/page.awk table=exchanges "$scratch/exchanges.csv" table=networks "$scratch/networks.csv" table=predicted "$scratch/predicted.csv" \
    table=simulated "$out/simulated.csv" table=local "$scratch/local.csv" table=jobs "$out/jobs.tsv" table=cells "$out/cells.csv" table=aims "$out/aims.csv" table=single $published/gtopk-single-gpu.csv \
    table=throughput $published/gtopk-throughput.csv >"$scratch/page"
mkdir -p "$(dirname "$page")"
mv "$scratch/page" "$page"
say "the page: $page"
