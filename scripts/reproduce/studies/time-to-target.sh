#!/bin/sh
# time-to-target: how long each exchange takes to a validation loss, on which network
# paper: none: a study of our own. Published comparisons have the time of a step, or quality after so many steps; who pays for a cluster pays for both
# runs: nanoGPT's decoder of characters (--model gpt --preset char-cpu, 804,096 parameters, 2,000 steps of 12 windows, AdamW) on 4 and 12 ranks
#     with each exchange, scored on the whole validation text every 100 steps: steps to the target. A step is computing on one core a rank
#     (bench net), selecting, packing and merging (bench on 2 ranks of this machine, of which what it takes on one alone is charged once, and the
#     rest by the words received), and communication (simulate.sh, gradients as 4 ranks recorded them in the first 500 steps). Evaluations take no time, nothing overlaps but in dense-ovlp,
#     whose buckets are of 512 KiB; fedavg, diloco and sparseloco sum once in a round; powersgd's communication is its cost line's with the words
#     that it sent, since a simulation knows no matrices; with a warm-up, densities between are by the line through the two
#     that were simulated. demo steps by signs, without AdamW, at the best of four rates (0.0005 to 0.004, 400 steps on 4 ranks); AdamW's is
#     nanoGPT's, and tried at no other. Bench and simulation take the vector for a matrix of 64 columns. dense in f32 is MPI's allreduce,
#     which at P = 12 (no power of two) takes twice its cost line; in bf16 it is our own
#     (quick: a block of 32 features, 2 ranks, 40 steps)
# needs: tiny Shakespeare, SimGrid (sh scripts/deps.sh sim, make sim)
# takes: full: 70 min for each seed beside other work; quick: 40 s
# agrees: nothing is compared with a paper: the rows name, for each network, number of ranks and target, what is first, and what would be by
#     communication alone; map.csv and the figures have all of it. A target counts as reached where the median of the seeds reaches it
. scripts/reproduce/parts/training.sh
need_simulator

[ -n "$quick" ] || need_data text-char
networks=$(pick '1gbe 10gbe 25gbe 100gbe' '1gbe 10gbe')
ranks=$(pick '4 12' 2)
windows=12
steps=$(pick 2000 40)
targets=$(pick '2.3 2.1 2.0' '4 3.5')
every=$(pick 0.0765 0.15) # epochs: 100 steps (quick: about 10)
warm=$(pick 500 10)
round=$(pick 20 5) # steps, as fedavg's
bucket=$(pick 524288 16384) # bytes; 7 of them, since the default is more than this model has

# -- what is compared ------------------------------------------------------------------------------------------------------
# label|algorithm|density|wire|options of training|steps of warm-up|steps of a round
entries() {
    echo 'dense|dense||coo32||'
    echo 'dense-ovlp|dense-ovlp||coo32||'
    echo 'dense bf16|dense||bf16||'
    [ -n "$quick" ] || printf '%s||coo32||\n' 'qsgd|qsgd' 'qsgd-4|qsgd-4' 'onebit|onebit' 'powersgd|powersgd'
    [ -n "$quick" ] || echo 'demo|demo||coo32|--optimiser sgd --momentum 0 --weight-decay 0 --lr 0.002|'
    [ -n "$quick" ] || echo 'fedavg|fedavg||coo32|||20'
    for algo in $(pick 'diloco sparseloco' diloco); do echo "$algo, rounds of $round|$algo||coo32|--average-every $round||$round"; done
    for density in 0.1 0.01; do
        for algo in $(pick 'topka gtopk oktopk randomk omnireduce' 'topka'); do echo "$algo $density|$algo|$density|coo32||"; done
        for algo in $(pick 'gtopk-rd spardl micro' 'spardl'); do echo "$algo packed-fast $density|$algo|$density|packed-fast||"; done
    done
    for algo in $(pick 'topka gtopk' topka); do echo "$algo 0.01, warm-up|$algo|0.01|coo32|--density-warmup linear:$warm|$warm"; done
}
entries >"$out/.entries"
# algos WIRE DENSITY: those of one density (or of none) in one format, with commas between
algos() { awk -F '|' -v wire="$1" -v density="$2" '$4 == wire && $3 == density && $6 == "" && $2 != "fedavg" { print $2 }' "$out/.entries" | paste -s -d , -; }
file_of() { printf '%s' "$1" | tr -cs 'a-z0-9.\n' -; } # file_of LABEL

# -- training --------------------------------------------------------------------------------------------------------------
# There are many runs, of which evaluations count: of the steps every 101st.
keep_log() { kept_rows "$1" 101; }
gpt() { # gpt FILE P OPTION...
    gpt_file=$1 gpt_ranks=$2
    shift 2
    if [ -n "$quick" ]; then
        set -- --data text-char:README.md --layers 1 --heads 2 --hidden 32 --context 32 --lr 0.01 --lr-warmup-steps 4 --eval-samples 0 "$@"
    else
        set -- --preset char-cpu "$@"
    fi
    train "$gpt_file" "$gpt_ranks" --model gpt "$@" --batch $((windows / gpt_ranks)) --steps "$steps"
}
for seed in $seeds; do
    for P in $ranks; do
        while IFS='|' read -r label algo density wire more _; do
            [ -z "$density" ] || [ -n "$more" ] || more='--density-warmup none'
            # shellcheck disable=SC2086 # words
            gpt "p$P-$(file_of "$label")-seed$seed.jsonl" "$P" --algo "$algo" ${density:+--density $density} $more --wire "$wire" \
                --eval-every "$every" --seed "$seed" </dev/null
        done <"$out/.entries"
    done
done

# -- the time of a step ----------------------------------------------------------------------------------------------------
first=${ranks%% *} # on so many ranks gradients are recorded
record=$runs/recorded.jsonl.run.record
[ -n "$finished" ] || [ -f "$record" ] || rm -f "$out/recorded.jsonl"
gpt recorded.jsonl "$first" --algo dense --eval-every never --stop-at "$(pick 0.3825 0.5)" --record "$record" --record-every "$(pick 62 5)"
for P in $ranks; do
    preset=$(pick '--preset char-cpu' '--hidden 32 --sequence 32')
    # shellcheck disable=SC2086
    job "compute-p$P.jsonl" "$program" bench net --json --device cpu --model gpt $preset --batch $((windows / P)) --steps "$(pick 20 2)" --repeat "$(pick 15 2)"
done
groups='bf16| coo32| coo32|0.1 coo32|0.01 packed-fast|0.1 packed-fast|0.01'
for group in $groups; do
    wire=${group%|*} density=${group#*|}
    set -- --algo "$(algos "$wire" "$density")" ${density:+--density "$density"} --pattern "real:$record"
    for P in 1 2; do
        mpi_job "local-p$P-$wire${density:+-$density}.jsonl" $P bench --json --no-check --device cpu "$@" --wire "$wire" --warmup "$(pick 20 2)" --repeat "$(pick 64 2)"
    done
    buckets=''
    [ "$group" != 'coo32|' ] || buckets="--overlap-bytes $bucket" # of dense-ovlp
    for P in $ranks; do
        compute=$(values "compute-p$P.jsonl" batch,sequence,words_per_s | awk '{ printf "%.6g", $1 * $2 / $3 }')
        for network in $networks; do
            # 64 steps: a period of oktopk's regions
            # shellcheck disable=SC2086 # two words
            job "sim-$network-p$P-$wire${density:+-$density}.jsonl" sh scripts/simulate.sh --net "$network" --p "$P" "$@" --wire "$wire" \
                --compute "$compute" --steps "$(pick 64 4)" -- --warmup "$(pick 8 1)" $buckets
        done
    done
done

# -- the map ---------------------------------------------------------------------------------------------------------------
# .times: network, P, algorithm, wire, density; seconds of communication, of computing, of local work
for group in $groups; do
    wire=${group%|*} density=${group#*|} of_group=${group%|*}${density:+-$density}
    for P in 1 2; do values "local-p$P-$of_group.jsonl" ranks,algo,select_s,phases.pack,phases.merge,words_received_mean; done >"$out/.local"
    for network in $networks; do
        for P in $ranks; do
            values "sim-$network-p$P-$of_group.jsonl" algo,mean_s,compute_s,words_received_max |
                awk -v where="$network $P" -v of="$wire ${density:--}" '
                    NR == FNR && $1 == 1 { once[$2] = $4 + $5; next } # of 1 rank, then of 2
                    NR == FNR {
                        select[$2] = $3; pack[$2] = $4 + $5
                        if (once[$2] > pack[$2]) once[$2] = pack[$2]
                        word[$2] = $6 > 0 ? (pack[$2] - once[$2]) / $6 : 0
                        next
                    }
                    $1 == "powersgd" { print where, $1, of, 0, $3, select[$1] + pack[$1]; next }
                    { print where, $1, of, $2, $3, select[$1] + once[$1] + word[$1] * $4 }' "$out/.local" -
        done
    done
done >"$out/.times"
# over_seeds WHAT: a line of .reached, of lines of a seed each: steps (none where the target is not reached), bytes
over_seeds() {
    awk -v what="$1" "$(cat scripts/lib/stats.awk)"'
        NF == 2 { reached++ }
        { x[NR] = NF == 2 ? $1 : 1e9; bytes += $NF }
        END {
            m = median(x, NR) # of an even number between two, which both have to be there
            printf "%s|%s|%d of %d|%.10g\n", what, x[int(NR / 2) + 1] < 1e9 ? m : "-", reached, NR, bytes / NR
        }'
}
# .reached: P, label, target, steps to it (median of the seeds; - where it is not reached), seeds that reached it, bytes a rank sends in a step
while IFS='|' read -r label algo density wire more _; do
    for P in $ranks; do
        for target in $targets; do
            for seed in $seeds; do
                file=p$P-$(file_of "$label")-seed$seed.jsonl
                printf '%s %s\n' "$(values "$file" step,valid_loss --type eval --where 'step>0' | awk -v target="$target" '$2 <= target { print $1; exit }')" \
                    "$(of "$file" summary bytes_sent_per_step)"
            done | over_seeds "$P|$label|$target"
        done
    done
done <"$out/.entries" >"$out/.reached"
# .lacking: what --finished found not to be there, of whose P no row can say who is first
if [ -s "$out/.missed" ]; then sort -u "$out/.missed" >"$out/.lacking"; else : >"$out/.lacking"; fi
for network in $networks; do
    printf '%s %s\n' "$network" "$("$program" predict --net "$network" --p 2 --json | "$program" rows - --where predict=network --keys alpha,beta | tr '\t' ' ')"
done >"$out/.networks"
# map.csv: a line for each network, P, target and entry
awk '
    FILENAME ~ /entries$/ { split($0, e, "|"); algo[e[1]] = e[2]; density[e[1]] = e[3] == "" ? "-" : e[3]; wire[e[1]] = e[4]; warm[e[1]] = e[6]; round[e[1]] = e[7]; next }
    FILENAME ~ /networks$/ { alpha[$1] = $2; beta[$1] = $3; next }
    FILENAME ~ /times$/ {
        split($0, t, " ")
        id = t[1] SUBSEP t[2] SUBSEP t[3] SUBSEP t[4] SUBSEP t[5]
        communication[id] = t[6]; compute[t[2]] = t[7]; work[id] = t[8]
        if (!seen[t[1]]++) network[++networks] = t[1]
        next
    }
    FNR == 1 { print "network,P,target,exchange,steps,seeds,compute_s,local_s,communication_s,step_s,seconds,communication_seconds,bytes_per_step" }
    {
        split($0, r, "|")
        P = r[1]; label = r[2]; target = r[3]; steps = r[4]
        for (i = 1; i <= networks; i++) {
            head = network[i] SUBSEP P SUBSEP
            id = head algo[label] SUBSEP wire[label] SUBSEP density[label]
            c = communication[id]; l = work[id]; extra = extra_c = extra_l = 0
            if (algo[label] == "fedavg") { c = communication[head "dense" SUBSEP "coo32" SUBSEP "-"]; l = 0 }
            if (algo[label] == "powersgd") { for (levels = 0; 2 ^ levels < P; levels++); c = 4 * levels * alpha[network[i]] + r[6] / 4 * beta[network[i]] }
            if (round[label] != "") { c /= round[label]; l /= round[label] }
            if (steps != "-" && warm[label] != "") { # densities from 1 down, above the last one, in steps of that density
                for (s = 0; s < steps && s < warm[label]; s++) extra += (1 - density[label]) * (1 - s / warm[label])
                dense = head algo[label] SUBSEP wire[label] SUBSEP 0.1
                extra_c = extra * (communication[dense] - c) / (0.1 - density[label])
                extra_l = extra * (work[dense] - l) / (0.1 - density[label])
            }
            printf "%s,%s,%s,\"%s\",%s,%s,%.6g,%.6g,%.6g,%.6g,", network[i], P, target, label, steps == "-" ? "" : steps, r[5], compute[P], l, c, compute[P] + l + c
            if (steps == "-") printf ",,"
            else printf "%.6g,%.6g,", steps * (compute[P] + l + c) + extra_c + extra_l, steps * c + extra_c
            print r[6]
        }
    }' "$out/.entries" "$out/.networks" "$out/.times" "$out/.reached" >"$out/map.csv"

# seeds.csv, where there are several: the steps to each target over them, and how probable it is that they are below those of
# dense in f32 by chance (sparsetrain compare)
of_seeds() { # of_seeds P TARGET: a head, and its lines
    "$program" compare "$out"/p"$1"-*-seed*.jsonl --against "$out/p$1-dense-seed1.jsonl" --target "loss:$2" --csv |
        awk -v P="$1" '{ sub("\r", "") } NR == 1 { print "P," $0 } /,steps,/ { print P "," $0 }'
}
rm -f "$out/seeds.csv"
if [ "${seeds#* }" != "$seeds" ]; then
    for P in $ranks; do
        for target in $targets; do of_seeds "$P" "$target"; done
    done | awk '!/^P,/ || !heads++' >"$out/seeds.csv"
fi

against nothing
for P in $ranks; do
    for network in $networks; do
        for target in $targets; do
            item="$network, P = $P, validation loss $target"
            # the first, its seconds, those of dense in f32 and in bf16; the first by communication alone, and its seconds
            awk -v network="$network" -v P="$P" -v target="$target" "$csv_awk"'
                { csv_row() }
                NR == 1 || cell_of("network") != network || cell_of("P") != P || cell_of("target") != target || cell_of("seconds") == "" { next }
                {
                    s = cell_of("seconds") + 0; c = cell_of("communication_seconds") + 0; e = cell_of("exchange")
                    if (first == "" || s < least) { first = e; least = s }
                    if (cheap == "" || c < least_c) { cheap = e; least_c = c; slow = s }
                    if (e == "dense") dense = s
                    if (e == "dense bf16") half = s
                }
                END { if (first != "") printf "%s|%.3g|%.3g|%.3g|%s|%.3g\n", first, least, dense, half, cheap, slow }' "$out/map.csv" >"$out/.first"
            grep -e "^p$P-" -e "-p$P-" -e "^compute-p$P\\." -e ^local- "$out/.lacking" >"$out/.missed" || rm -f "$out/.missed"
            [ -s "$out/.first" ] || {
                row "$item" 'the first' s '' '' '' simulated none "$([ -s "$out/.missed" ] || echo 'nothing reaches it')"
                continue
            }
            IFS='|' read -r best least dense half cheap slow <"$out/.first"
            note="dense in f32 takes $dense s, in bf16 $half s"
            [ "$cheap" = "$best" ] || note="$note; by communication alone it would be $cheap, which takes $slow s"
            row "$item" "the first: $best" s '' '' "$least" simulated none "$note"
        done
    done
done
for target in $targets; do
    awk -v target="$target" "$csv_awk"'
        { csv_row() }
        NR == 1 || cell_of("target") != target { next }
        {
            at = cell_of("network") ", P=" cell_of("P"); e = cell_of("exchange")
            if (!(at in column)) column[at] = columns++
            if (!(e in line)) line[e] = lines++
            s[at, e] = cell_of("seconds")
            if (e == "dense") dense[at] = s[at, e]
            if (s[at, e] != "" && (least[at] == "" || s[at, e] + 0 < least[at])) least[at] = s[at, e] + 0
        }
        END {
            for (e in line) for (at in column) {
                v = s[at, e]
                printf "%d\t%d\t%s\t%s\t%s\t%s\n", column[at], lines - 1 - line[e], v == "" || !dense[at] ? "nan" : log(v / dense[at]) / log(10),
                    v == "" ? "-" : sprintf("%.3g", v) (v + 0 == least[at] ? "*" : ""), at, e
            }
        }' "$out/map.csv" | sort -n >"$out/map-$target.dat"
    figure "map-$target.png" "$out/map-$target.dat" map.gp title="Seconds to a validation loss of $target" \
        note="networks simulated; *: first; colour: over dense on this network; -: not in $steps steps"
done
rm -f "$out"/.entries "$out"/.networks "$out"/.times "$out"/.reached "$out"/.local "$out"/.first
finish
