#!/bin/sh
# transformer.sh: the study of which sparse exchange trains a transformer, at what density, what helps and what diverges: nanoGPT's
# decoder (--model gpt --preset char-cpu) on tiny Shakespeare, under AdamW and under SGD with momentum, beside dense gradients.
#
#   sh scripts/transformer.sh --plan      # how many runs are left, and about how long they take
#   sh scripts/transformer.sh             # results/measured/transformer-char
#
#   --ranks LIST        numbers of ranks (4,8). A step has 12 windows, or the least above that comes out even (8 ranks: 16)
#   --algos LIST        of dense, topka, topkdsa, gtopk, gtopk-rd, gaussiank, oktopk, micro, spardl, hitopk, fedavg (all)
#   --densities LIST    (0.1,0.01,0.001)      --optimisers LIST   (adamw,sgd)
#   --seeds LIST        (1,2,3) of dense, topka, gtopk and oktopk; of the others the first one alone
#   --parts LIST        exchanges: each as it is; helps: what may help topka, gtopk and oktopk, on the first of the --ranks, at the densities
#                       that are not the first, with the first seed; audits: oktopk with its thresholds beside the exact ones and xi of
#                       its Assumption 1, on the first of the --ranks with the first seed (exchanges,helps,audits)
#   --steps N           shorter runs, on shorter schedules: a rehearsal, whose page goes to build/transformer-char
#   --runs DIR          where the runs lie (runs/transformer-char; of a rehearsal runs in --out)
#   --out DIR           README.md, table.csv, loss.png, and what they are made of: runs.csv, a row for each run that has ended, audits.csv,
#                       about.txt (results/measured/transformer-char)
#   --plan              starts nothing
#   -- OPTION...        what all runs have besides
#
# The runs are sweeps (sweep.sh), a folder for each exchange: called again it goes on. What is finished or diverged stays: it is in
# --out, and is not run again, also where --runs is gone, on another machine say. The page is of all that has ended so far. Exit
# status: 0 when all that was asked for has its result, 1 when some run has not, 2 for a mistake.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/common.sh
command="sh scripts/transformer.sh$(quoted "$@" | tr "'" '"')"
ranks=4,8 algos=dense,topka,topkdsa,gtopk,gtopk-rd,gaussiank,oktopk,micro,spardl,hitopk,fedavg densities=0.1,0.01,0.001 optimisers=adamw,sgd
seeds=1,2,3 parts=exchanges,helps,audits steps='' runs='' out='' plan=no
options 'plan!plan ranks algos densities optimisers seeds parts steps runs out --' "$@"
eval "set -- $words"
for each in $(in_words "$ranks"); do whole --ranks "$each" ranks; done
for each in $(in_words "$parts"); do
    case $each in exchanges | helps | audits) ;; *) fail "--parts has \"$each\"; there are exchanges, helps, audits" ;; esac
done
if [ -n "$steps" ]; then
    whole --steps "$steps" steps
    out=${out:-build/transformer-char}
    runs=${runs:-$out/runs}
fi
full=2000
steps=${steps:-$full} runs=${runs:-runs/transformer-char} out=${out:-results/measured/transformer-char}
seed=${seeds%%,*}
need_program
make_scratch
tab=$(printf '\t')
among() { case ",$1," in *",$2,"*) ;; *) return 1 ;; esac; } # among LIST NAME

# -- what there is to run: a line for each sweep: P, exchange, what helps it, densities, optimisers, seeds, folder -----------
cell() { # ALGO VARIANT HELP DENSITIES OPTIMISERS SEEDS, for the ranks $p
    if [ -z "$5" ] || ! among "$algos" "$1"; then return 0; fi
    cell_of=$1${2:+ $2}
    printf '%s\t' "$p" "$cell_of" "${3:--}" "${4:--}" "$5" "$6"
    printf '%s\n' "$runs/p$p/$(printf '%s' "$cell_of${3:++$3}" | tr -cs 'a-z0-9.+\n' -)"
}
exchanges() {
    cell dense '' '' '' "$optimisers" "$seeds"
    for each in topka gtopk oktopk; do cell $each '' '' "$densities" "$optimisers" "$seeds"; done
    cell gtopk '--gtopk-residual paper' '' "$densities" "$optimisers" "$seed"
    cell gtopk-rd '--wire packed' '' "$densities" "$optimisers" "$seed"
    for each in topkdsa gaussiank micro spardl; do cell $each '' '' "$densities" "$optimisers" "$seed"; done
    cell spardl '--wire packed' '' "$densities" "$optimisers" "$seed"
    [ $((p % 2)) = 1 ] || cell hitopk "--ranks-per-node $((p / 2))" '' "$densities" "$optimisers" "$seed"
    cell fedavg '' '' '' "$optimisers" "$seed"
}
# A tenth of the steps dense, a fourth of them until the density has come down: 200 and 500 of 2,000.
helps() {
    case $densities in *,*) lower=${densities#*,} ;; *) lower=$densities ;; esac
    if among "$optimisers" sgd; then corrected=sgd; else corrected=''; fi # of SGD alone
    for each in topka gtopk oktopk; do
        for help in "--density-warmup linear:$(((steps + 3) / 4))" '--dense-slices 1d' '--dense-slices embedding' "--dense-steps $(((steps + 9) / 10))" --local-update; do
            cell $each '' "$help" "$lower" "$optimisers" "$seed"
        done
        cell $each '' --momentum-correction "$lower" "$corrected" "$seed"
    done
}
# Every 25th of 2,000 steps: an odd number, to meet all steps of a period.
every=$(((steps + 79) / 80))
[ $((every % 2)) = 1 ] || every=$((every + 1))
audit="--log-xi $every --audit $every"
audits() { for each in '' '--oktopk-thresholds paper'; do cell oktopk "$each" "$audit" "$densities" "$optimisers" "$seed"; done; }
for p in $(in_words "$ranks"); do
    if among "$parts" exchanges; then exchanges; fi
    [ "$p" = "${ranks%%,*}" ] || continue
    if among "$parts" helps; then helps; fi
    if among "$parts" audits; then audits; fi
done >"$scratch/cells"
[ -s "$scratch/cells" ] || fail 'there is nothing to run of these'

# -- the runs ----------------------------------------------------------------------------------------------------------------
batch_of() { echo $(((11 + $1) / $1)); } # batch_of P
sweep() { # a line for each run; its status
    [ "$with" != - ] || with=''
    # shellcheck disable=SC2086 # words
    set -- --algo $exchange $with --model gpt --preset char-cpu --batch "$(batch_of "$p")" --steps "$steps" --keep 1
    eval "set -- $(quoted "$@")$words"
    set -- --np "$p" --out "$folder" --accept-diverged --optimiser "$of_optimisers" --seed "$of_seeds" -- "$@"
    [ "$of_densities" = - ] || set -- --density "$of_densities" "$@"
    { sh scripts/sweep.sh "$@" 2>&1 && echo 0 >"$scratch/status" || echo $? >"$scratch/status"; } | sed -n "s|^\[|${folder#"$runs"/} [|p; /^sweep.sh: /p"
    return "$(cat "$scratch/status")"
}
ended_of() { awk -F , '$2 == "done" || $2 == "diverged" { print $1 }' "$folder/runs.csv"; }
# keep: what has ended in this cell's folder is taken over into $scratch/kept, which has a row for each run that has ended, here or
# where --out comes from
options_of="--steps $steps$words"
keep() {
    [ -f "$folder/runs.csv" ] || return 0
    WITH=$(no_dash "$with") OPTIONS=$options_of MACHINE="$(machine); $(about mpi)" awk -v p="$p" -v exchange="$exchange" \
        "$(cat scripts/lib/csv.awk scripts/transformer/keep.awk)" "$scratch/kept" "$folder/runs.csv" >"$scratch/more"
    mv "$scratch/more" "$scratch/kept"
}
no_dash() { if [ "$1" = - ]; then echo; else printf '%s\n' "$1"; fi; }
# missing: the runs of this cell that have not ended, lines of density, optimiser and seed; fails where those of other options have
missing() {
    WITH=$(no_dash "$with") OPTIONS=$options_of awk -v p="$p" -v exchange="$exchange" -v lists="$of_densities $of_optimisers $of_seeds" \
        "$(cat scripts/lib/csv.awk scripts/transformer/missing.awk)" "$scratch/kept" ||
        fail "$out/runs.csv has $exchange with other options than $options_of; choose another --out"
}
run_cell() {
    missing >"$scratch/missing"
    left=$(wc -l <"$scratch/missing")
    if [ "$left" -eq 0 ]; then
        echo "${folder#"$runs"/}: all of it has ended"
    elif [ "$left" -eq "$(runs_of_cell)" ]; then
        run_sweep
    else
        while IFS=' ' read -r of_densities of_optimisers of_seeds; do run_sweep </dev/null; done <"$scratch/missing"
    fi
}
run_sweep() {
    cell_status=0
    sweep || cell_status=$?
    case $cell_status in
    0) ;;
    1) undone=1 ;;
    *) exit "$cell_status" ;;
    esac
    ended_of | while read -r run; do rm -rf "$folder/$run"/checkpoint-*; done # one that has ended needs none
    read_about
    keep
    audits_of
    publish
}
# publish: what has ended, to --out, where it lies safe while the rest goes on
publish() {
    mkdir -p "$out"
    for each in kept:runs audits:audits about:about; do
        case $each in about:*) to=$out/about.txt ;; *) to=$out/${each#*:}.csv ;; esac
        [ -s "$scratch/${each%:*}" ] || continue
        cp "$scratch/${each%:*}" "$to.part"
        mv "$to.part" "$to"
    done
}
runs_of_cell() { # how many they are
    n=$(($(in_words "$of_optimisers" | wc -w) * $(in_words "$of_seeds" | wc -w)))
    [ "$of_densities" = - ] || n=$((n * $(in_words "$of_densities" | wc -w)))
    echo $n
}
# plan_cell: P, how many runs there are, how many of them have ended; seconds and steps of those of which they are known
plan_cell() {
    echo "$p $(runs_of_cell) $(($(runs_of_cell) - $(missing | wc -l)))"
    WITH=$(no_dash "$with") awk -v p="$p" -v exchange="$exchange" "$(cat scripts/lib/csv.awk)"'
        { csv_row() }
        NR > 1 && cell_of("ranks") == p && cell_of("exchange") == exchange && cell_of("with") == ENVIRON["WITH"] && cell_of("seconds") != "" {
            print p, 0, 0, cell_of("seconds"), cell_of("step")
        }' "$scratch/kept"
}
# left_of: what is missing of this cell, as rows of runs.csv without a result
left_of() {
    [ "$with" = "$audit" ] ||
        missing | while IFS=' ' read -r of_density optimiser of_seed; do echo "$p,$optimiser,$exchange,$(no_dash "$with"),$(no_dash "$of_density"),$of_seed,none"; done
}
# audits_of: the rows that audits.awk makes of the logs of this cell, into $scratch/audits in the place of those of the same run
audits_of() {
    [ "$with" = "$audit" ] || return 0
    for log in "$folder"/*/run.jsonl; do
        [ -s "$log" ] || continue
        "$program" rows "$log" --type step --keys \
            step,k,local_nnz_mean,global_nnz,threshold_mean,threshold_exact_mean,threshold_global,threshold_global_exact,xi,evaluated_local,evaluated_global |
            awk -v cell="$p$tab$(of_log "$log" config.optimiser --type header --last)$tab$exchange$tab$(of_log "$log" config.density --type header --last)$tab$steps" \
                '{ print cell "\t" $0 }'
    done | awk -f scripts/lib/selection.awk -f scripts/transformer/audits.awk >"$scratch/new"
    {
        head -n 1 "$scratch/audits"
        sed 1d "$scratch/audits" | cat "$scratch/new" - | awk -F , '!seen[$1, $2, $3, $4]++' | sort -t , -k 1,1n -k 3,3 -k 4,4g -k 2,2
    } >"$scratch/more"
    mv "$scratch/more" "$scratch/audits"
}
each_cell() { # run, plan, left, take: for each of the sweeps, with its fields in variables
    while IFS=$tab read -r p exchange with of_densities of_optimisers of_seeds folder; do
        case $1 in
        run) run_cell ;;
        plan) plan_cell ;;
        left) left_of ;;
        take)
            [ ! -f "$folder/sweep.tsv" ] || sh scripts/sweep.sh --accept-diverged --out "$folder" --table >/dev/null
            missing >/dev/null
            keep
            audits_of
            ;;
        esac </dev/null
    done <"$scratch/cells"
}

# -- what there is already -----------------------------------------------------------------------------------------------------
# about KEY: a fact of the runs, out of the first log that there is, or of --out
: >"$scratch/about"
[ ! -f "$out/about.txt" ] || cp "$out/about.txt" "$scratch/about"
about() { sed -n "s/^$1: //p" "$scratch/about"; }
read_about() {
    first=$(for log in "$runs"/p*/*/*/run.jsonl; do [ ! -s "$log" ] || echo "$log"; done | head -n 1)
    [ -n "$first" ] || return 0
    of_log "$first" parameters,train_words,valid_words,vocabulary,data_crc32,versions.mpi --type header --last |
        awk -F '\t' '{ n = split("parameters train_words valid_words vocabulary data_crc32 mpi", name, " "); for (i = 1; i <= n; i++) print name[i] ": " $i }' >"$scratch/about"
}
echo 'ranks,optimiser,exchange,with,density,seed,state,step,valid_loss,valid_loss_sampled,bytes_sent_per_rank,seconds,options,commit,machine' >"$scratch/kept"
[ ! -f "$out/runs.csv" ] || cp "$out/runs.csv" "$scratch/kept"
echo 'ranks,optimiser,exchange,density,xi_first_tenth,xi_third_quarter,xi_last_quarter,xi_largest,threshold_off,global_threshold_off,count_off,global_count_off,found,found_globally' >"$scratch/audits"
[ ! -f "$out/audits.csv" ] || cp "$out/audits.csv" "$scratch/audits"
read_about
each_cell take
if [ $plan = yes ]; then
    each_cell plan | awk -v of="$steps" '
        !($1 in all) { order[++n] = $1 }
        { all[$1] += $2; left[$1] += $2 - $3; seconds[$1] += $4; steps[$1] += $5 }
        END {
            for (i = 1; i <= n; i++) {
                p = order[i]
                printf "P = %d: %d of %d runs left, of %d steps", p, left[p], all[p], of
                if (steps[p]) {
                    hours += took = left[p] * of * seconds[p] / steps[p] / 3600
                    printf ": about %.1f h of training, at the %.4f s a step of those that are done\n", took, seconds[p] / steps[p]
                } else {
                    print ": how long they take is not known before one is done"
                    unknown = unknown || left[p] > 0
                }
            }
            if (!unknown) printf "in all about %.1f h on this machine\n", hours
        }'
    exit 0
fi
undone=0
each_cell run
read_about
publish

# -- the page ----------------------------------------------------------------------------------------------------------------
mkdir -p "$out"
{
    cat "$scratch/kept"
    each_cell left
} >"$scratch/all"
# page WHAT: as table.awk makes it
page() {
    AUDIT=$audit awk -v what="$1" -v vocabulary="$(about vocabulary)" "$(cat scripts/lib/csv.awk scripts/transformer/table.awk)" "$scratch/all"
}
page csv >"$out/table.csv"
page figure >"$scratch/figure"
IFS=' ' read -r p optimiser <<END
$(page first)
END
if [ ! -s "$scratch/figure" ]; then
    say "no loss.png: there is nothing to draw"
elif has gnuplot; then
    LC_ALL=C.UTF-8 gnuplot -e "out='$out/loss.png'; data='$scratch/figure'; blocks='$(grep -c '^"' "$scratch/figure")'; logx='10'; marks='1.2'" -e \
        "title='Validation loss and traffic: P = $p, $optimiser'; xlabel='sent by a rank in the whole run [MB]'; ylabel='validation loss [nats]'" scripts/reproduce/lines.gp ||
        say "gnuplot could not draw $out/loss.png"
else
    say "no loss.png: gnuplot is not installed: sh scripts/deps.sh test"
fi
batches=$(for each in $(page ranks); do printf ', %d at P = %d (%d a rank)' $(($(batch_of "$each") * each)) "$each" "$(batch_of "$each")"; done)
# shellcheck disable=SC2016 # marks of Markdown
{
    printf '# Which sparse exchange trains a transformer\n\nMade by `sh scripts/transformer.sh`, which goes on where it was and writes this page, the last time as `%s` on %s. Its runs are at commit %s. Machine: %s.\n\n' \
        "$command" "$(date -u +%Y-%m-%d)" "$(page commits)" "$(page machines)"
    printf 'Trained is nanoGPT'"'"'s decoder (`--model gpt --preset char-cpu%s`, %s parameters) for %s steps on a text character by character: %s to train on, %s to validate with, of %s kinds, checksum %s. ' \
        "${words:+$words}" "$(about parameters)" "$steps" "$(about train_words)" "$(about valid_words)" "$(about vocabulary)" "$(about data_crc32)"
    printf 'Windows a step: %s. Where these differ, losses at one P say nothing of those at another: each is held against dense at its own P, with its own optimiser. ' "${batches#, }"
    printf 'AdamW is as the preset has it, SGD has rate 0.3 and momentum 0.9.\n\n'
    [ "$steps" = $full ] || printf '**A rehearsal of %s of the %s steps: it shows that everything starts, and nothing of what is good.**\n\n' "$steps" $full
    [ "$(wc -l <"$scratch/all")" -eq "$(wc -l <"$scratch/kept")" ] || printf '**Not all runs are done:** the same command goes on.\n\n'
    printf 'Losses are nats a character over the whole validation text at the end, means over the seeds where there are several, with the least and the greatest; %s has those of sampled windows beside them. ' '`table.csv`'
    printf 'Bytes are what a rank sent in the whole run, a mean over ranks and seeds. Messages are lossless (`coo32`), but with `--wire packed`, whose values are rounded to bf16; what is rounded off stays in '
    printf 'the residual. `--gtopk-residual paper` loses gradient, `fedavg` and `--local-update` let replicas drift between averages.\n\n'
    printf '## Verdict\n\nBy rule from the table: as good as dense is a loss at most 0.01 above that of dense with the same seeds; guessing is ln %s = %s. With * one seed alone: a difference that is ' \
        "$(about vocabulary)" "$(awk -v v="$(about vocabulary)" 'BEGIN { printf "%.3f", log(v) }')"
    printf 'smaller than the span of dense'"'"'s seeds may be chance.\n\n'
    page verdict
    printf '\n## Exchanges\n\n![Loss against bytes sent](loss.png)\n\nThe figure shows P = %s and %s, without what is no better than guessing.\n\n' "$p" "$optimiser"
    printf '| P | optimiser | exchange | density | seeds | validation loss | over dense | MB sent by a rank |\n|---|---|---|---|---|---|---|---|\n'
    page table
    if [ -n "$(page helps)" ]; then
        printf '\n## What helps\n\nOver plain: above the loss of the same exchange without it, same seed.\n\n'
        printf '| P | optimiser | exchange | density | with | validation loss | over plain | over dense | MB sent by a rank |\n|---|---|---|---|---|---|---|---|---|\n'
        page helps
    fi
    if [ "$(wc -l <"$scratch/audits")" -gt 1 ]; then
        printf '\n## Thresholds and Assumption 1 of Ok-Topk\n\nxi is of equation 5 (docs/run-jsonl.md), of one step in %s; the paper holds it to be harmless below P. Thresholds: how far the one used is from the exact one, in these steps; counts: how far ' $every
        printf 'what a rank sent and what all kept is from k, in all steps; found: steps in which an exact threshold was found, of a rank and of all. `--oktopk-thresholds paper` is Algorithm 1 to the letter.\n\n'
        printf '| P | optimiser | exchange | density | xi, first tenth | third quarter | last quarter | largest | threshold off by | the global one | count off by | the global one | found | globally |\n'
        printf '|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n'
        awk -F , 'NR > 1 { line = "|"; for (i = 1; i <= NF; i++) line = line " " ($i == "" ? " " : $i (i > 8 ? "%" : "")) " |"; print line }' "$scratch/audits"
    fi
} >"$scratch/page"
mv "$scratch/page" "$out/README.md"
cat "$out/README.md"
exit $undone
