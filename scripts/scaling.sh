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
# shellcheck source=scripts/scaling/page.sh
. scripts/scaling/page.sh
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

quick='' only='' plan_only='' simulated='' out='' page='' costs='' on=cpu command="sh scripts/scaling.sh"
ranks=4,8,16,32,64,128,256 nets='' models='' densities=''
options_plain=yes
options 'quick!quick=1 plan!plan_only=1 only p:ranks nets models densities costs on out page' "$@"
case $only in '' | map | aims | page) ;; *) fail "--only $only: map, aims or page" ;; esac
case $costs in '' | none) ;; *) [ -f "$costs" ] || fail "--costs: there is no file $costs" ;; esac

if [ -n "$quick" ]; then
    command="$command --quick"
    : "${out:=build/scaling-quick}"
    [ "$ranks" != 4,8,16,32,64,128,256 ] || ranks=4,8
    : "${densities:=0.001}" "${models:=ResNet-20,VGG-16}"
fi
if [ -z "$page" ]; then
    if [ -z "$out" ]; then page=results/scaling.md; else page=$out/scaling.md; fi
fi
: "${out:=results/measured/scaling}"
table=results/measured/costs/costs.csv
[ -n "$costs" ] || [ ! -f $table ] || costs=$table
[ "$costs" != none ] || costs=''
need_program
simulate=${SCALING_SIMULATE:-sh scripts/simulate.sh} # a test has its own
if [ "$only" != page ] && [ -z "${SCALING_SIMULATE:-}${plan_only:-}" ]; then
    command -v smpirun >/dev/null 2>&1 || fail "smpirun is not installed (SimGrid): sh scripts/deps.sh sim, then make sim; --only page needs neither"
    [ -f "${BUILD:-build}/sparsetrain-sim" ] || fail "${BUILD:-build}/sparsetrain-sim is not there; build it: make sim"
fi
mkdir -p "$out"
make_scratch

# of_rows OPTION...: values out of the program's rows on standard input, with commas between
of_rows() { "$program" rows - "$@" | tr '\t' ,; }
# study WHAT OPTION...: the decisions and tables of the study
study() { "$program" study "$@" --rows "$out" --p "$ranks" --costs "${costs:-none}" --device "$on" ${quick:+--quick}; }

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
    simulated=yes
    printf '%s\t%s\t%s\tsh scripts/simulate.sh %s\n' "$job" "$commit" $(($(date +%s) - job_start)) "$*" >"$scratch/job"
}
# run_jobs PLAN KEYS: what is yet to be simulated, a line a job: what its rows begin with, a tab, the arguments of simulate.sh.
# Their rows go to the file of the plan by add_rows.
tab=$(printf '\t')
run_jobs() {
    jobs=$(wc -l <"$1") job_at=0
    while IFS=$tab read -r what arguments; do
        job_at=$((job_at + 1))
        say "$job_at of $jobs: $what"
        # shellcheck disable=SC2086 # a list of options
        run_job $arguments --steps 2 -- --warmup 1 || continue
        of_rows --missing 1 --keys "$2" <"$scratch/rows" >"$scratch/values"
        add_rows "$what" >"$scratch/lines"
        cat "$scratch/job" >>"$out/jobs.tsv"
        cat "$scratch/lines" >>"$out/$rows_of.csv"
    done <"$1"
}
# simulate_map P: everything of the plan of this P
simulate_map() {
    plan --at "$1" >"$scratch/plan"
    rows_of=simulated
    run_jobs "$scratch/plan" algo,mean_s,words_sent_max,local_nnz,global_nnz,scale,n,k
}
plan() { study plan ${nets:+--nets "$nets"} ${models:+--models "$models"} ${densities:+--densities "$densities"} "$@"; }
# simulate_aims [--charged]: communication alone, or with the costs of the table
simulate_aims() {
    study plan-aims "$@" >"$scratch/plan"
    rows_of=aims
    run_jobs "$scratch/plan" step_s,words_sent_max
}
# add_rows WHAT: rows of simulated.csv begin with the cell, those of aims.csv end with the scale and have the cell before it
add_rows() {
    awk -F , -v OFS=, -v what="$1" -v job="$job" -v rows="$rows_of" '
        BEGIN { split(what, w, ",") }
        rows == "simulated" { print w[1], w[2], w[3], w[4], w[6], w[7], $0, job }
        rows == "aims" { print w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], $0, w[10], job }' "$scratch/values"
}

plan >"$scratch/plan"
left=$(awk -F , '{ jobs++; s += $10 } END { printf "%d simulations, about %.0f minutes of one core", jobs, s / 60 }' "$scratch/plan")
say "left of the map: $left (as the model has it; what falls behind is left out on the way)"
[ -z "$plan_only" ] || exit 0
if [ -z "$only" ] || [ "$only" = aims ]; then
    simulate_aims
    [ -z "$costs" ] || simulate_aims --charged
fi
if [ -z "$only" ] || [ "$only" = map ]; then
    for p in $(echo "$ranks" | tr , ' '); do simulate_map "$p"; done
fi
study cells >"$out/.cells" && mv "$out/.cells" "$out/cells.csv"

# -- the page ---------------------------------------------------------------------------------------------------------------
# each COLUMN: what cells.csv has there, blanks between
each() { awk -F , -v column="$1" 'NR > 1 && !seen[$column]++ { printf "%s%s", (n++ ? " " : ""), $column }' "$out/cells.csv"; }
# picture FILE.png TITLE COLUMN WIRE [SHADES]: of cells.csv; COLUMN 9: the winner, 18: how far ahead
picture() {
    awk -F , -v column="$3" -v wire="$4" -v names="$names" '
        BEGIN { count = split(names, list, " "); for (i = 1; i <= count; i++) code[list[i]] = i - 1 }
        NR == 1 { next }
        !($1 in net) { net[$1] = nets++ }
        !($2 in model) { model[$2] = models++ }
        !($4 in density) { density[$4] = densities++ }
        $7 == wire && !$21 { print 3 * model[$2] + density[$4], log($6) / log(2), net[$1], (column == 9 ? code[$9] : $column), $8 == "simulated" }' "$out/cells.csv" >"$scratch/map.dat"
    LC_ALL=C.UTF-8 gnuplot -e "out='$out/$1'; data='$scratch/map.dat'; title='$2'; names='$names'; shades='${5:-no}'; models='$(each 2)'; densities='$(each 4)'; networks='$(each 1)'" scripts/scaling/map.gp ||
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
study facts >"$scratch/facts"
commits=$(facts commits) seconds=$(facts seconds)
# Where nothing was simulated the rows stay those of their machine and day.
made=$(date -u +%Y-%m-%d) made_on=$(machine)
if [ -z "$simulated" ] && [ -s "$out/about.txt" ]; then
    made=$(sed -n 's/^date: //p' "$out/about.txt") made_on=$(sed -n 's/^machine: //p' "$out/about.txt")
fi
{
    printf 'command: %s\ncommit: %s\nmachine: %s\ndate: %s\nseconds: %s\n' "$command" "${commits:-$commit}" "$made_on" "$made" "$seconds"
} >"$out/about.txt"
{
    printf '# The scaling study\n\nMade by `%s` on %s, %s s of simulation at commit %s. Machine: %s.\n\n' "$command" "$made" "$seconds" "${commits:-$commit}" "$made_on"
    printf '`simulated.csv` and `aims.csv` hold a row for each simulation, `jobs.tsv` the command of each row (by its job), `cells.csv` what the map shows.\n'
    printf 'The page is `scaling.md`; docs/reproduce.md says more.\n'
} >"$out/README.md"
page >"$scratch/page"
mkdir -p "$(dirname "$page")"
mv "$scratch/page" "$page"
say "the page: $page"
