# shellcheck shell=sh
# gpu/bench.sh: sourced by gpu-check.sh after gpu/steps.sh: the steps that measure (bench, sanitize).
# shellcheck disable=SC2154,SC2034

# -- bench -----------------------------------------------------------------------------------------------------------------
# What is wanted most comes first, and each part has the share that its number is of those to come: what one does not use is the
# next ones'. The numbers are the seconds of `--budget 520` with all networks but gpt-char. On an H200 three rounds of selectors took 97 s,
# plans 33 s without gpt2 and 20 s with it, kernels of five networks 16 s; what is compiled takes whatever it gets.
bench_shares='select:70 net:190 plans:65 kernels:30 train:45 compiled:115'
step_bench() {
    lengths=14728266,133547324 densities=0.001,0.01 batches=32,128,1024 repeat=40 rounds=3 peer=cuda modes=default,reduce-overhead
    [ "$quick" = 0 ] || { repeat=16 rounds=1 modes=reduce-overhead; }
    if [ "$dry" = 1 ]; then
        lengths=4000,5000 densities=0.01 batches=2 repeat=2 rounds=1 peer=cpu modes=
    fi
    bench_end=$step_end to_come=0
    for part in $bench_shares; do ! bench_asked "$part" || to_come=$((to_come + ${part#*:})); done
    for part in $bench_shares; do
        bench_asked "$part" || continue
        step_end=$bench_end
        step_end=$(($(date +%s) + $(remaining) * ${part#*:} / to_come))
        to_come=$((to_come - ${part#*:}))
        "bench_${part%:*}"
    done
    step_end=$bench_end
}
bench_asked() { case ",${benches:-${1%:*}}," in *",${1%:*},"*) true ;; *) false ;; esac; }
# bench_python PART SECONDS WHAT OPTION...: the rows of bench/gpu.py, added to the file $rows. It ends in time by itself, or is ended.
bench_python() {
    part=$1 seconds=$2 what=$3
    shift 3
    [ -n "$python" ] || { verdict bench LATE "$what: python3 is not here"; return; }
    [ "$seconds" -ge 5 ] || { verdict bench LATE "$what: no time"; return; }
    peer_environment timeout -k 10 $((seconds + 10)) "$python" scripts/bench/gpu.py "$program" "$part" --device "$peer" \
        --our-device cuda --seconds "$seconds" --rounds "$rounds" "$@" >"$scratch/python-rows" 2>"$scratch/python.log" || {
        tail -n 5 "$scratch/python.log"
        verdict bench FAIL "$what: bench/gpu.py ended badly (the rows that it gave are kept)"
    }
    grep '^{.*}$' "$scratch/python-rows" >>"$rows"
}
skipped_rows() { # skipped_rows FILE: what the rows say was left out, by name
    of_rows "$1" model,preset,skipped,why --where skipped!= | awk -F '\t' '{ print "left out: " ($1 == "-" ? "" : ($2 == "-" ? $1 : $1 " " $2) ", ") $3 ": " $4 }' | report_lines
}
bench_select() {
    rows=$scratch/rows-bench-select
    : >"$rows"
    peers_began=$(date +%s)
    gpu_peers before
    bench_python topk $(($(remaining) - ($(date +%s) - peers_began))) selectors --n "$lengths" --density "$densities" --steps "$repeat" --select all
    gpu_peers after
    skipped_rows "$rows"
    of_rows "$rows" bench,n,accumulate_s,read_s,copy_s,sort_s,round_trip_s,selector,density,median_s,select_alone_s,ratio_peer --where skipped= |
        awk -F '\t' -v dry="$dry" '
        # The floor: acc += grad of the same length, and a launch that is waited for; the less of before and after.
        function least(x, n, v) { if (!(n in x) || v < x[n]) x[n] = v }
        $1 == "gpu_peers" {
            least(add, $2, $3); least(read, $2, $4); least(copy, $2, $5); least(sort, $2, $6)
            if (!trip || $7 < trip) trip = $7
        }
        $1 == "gpu_topk" { row[++rows] = $0 }
        END {
            for (n in add) printf "n %d: read %.1f us, acc += grad %.1f us, copy %.1f us, radix sort %.1f us, launch and wait %.1f us\n", n, 1e6 * read[n], 1e6 * add[n], 1e6 * copy[n], 1e6 * sort[n], 1e6 * trip
            for (r = 1; r <= rows; r++) {
                $0 = row[r]; n = $2; name = $8; t = $10; alone = $11; topk = $12; sorted = ""
                line = sprintf("%-8s n %d density %g: %.1f us", name, n, $9, 1e6 * t)
                if (n in add) {
                    over = (t - trip) / add[n]; sorted = sprintf(", %.1f x faster than a radix sort", sort[n] / t)
                    line = line sprintf(", less a launch %.2f x acc += grad", over)
                    if (name == "reuse") line = line sprintf(" (target 1.3: %s)", over <= 1.3 ? "reached" : "missed")
                    if (name == "exact") line = line sprintf(" (target 2: %s)", over <= 2 ? "reached" : "missed")
                    line = line sprintf("; of it launch %.0f%%, floor %.0f%%, the rest %.0f%%", 100 * trip / t, 100 * add[n] / t, 100 * (1 - (trip + add[n]) / t))
                }
                if (alone != "-") line = line sprintf("; selection alone %.1f us", 1e6 * alone)
                if (topk != "-") {
                    line = line sprintf("; %.1f x faster than torch.topk", topk)
                    if (name == "exact" && !dry) line = line sprintf(" (target 5: %s)", topk >= 5 ? "reached" : "missed")
                }
                print line sorted
            }
        }' | report_lines
    results bench-select
}
report_lines() { while read -r line; do verdict bench NOTE "$line"; done; }
gpu_peers() { # gpu_peers WHEN
    [ "$dry" = 0 ] || return 0
    within "$BUILD/tests/gpu_peers" --n "$lengths" --repeat "$repeat" | sed "s/^{/{\"when\":\"$1\",/" >>"$rows"
    [ -z "$(of_rows "$rows" n --where bench=gpu_peers --where wrong!=0)" ] || verdict bench FAIL 'gpu_peers: wrong results'
}
# nets_in NAME...: those of them that --nets has and the program
nets_in() {
    for net in "$@"; do
        case ",$nets," in *",$net,"*) if listed models "$(model_of "$net")"; then echo "$net"; fi ;; esac
    done
}
model_of() { case $1 in gpt*) echo gpt ;; *) echo "$1" ;; esac; } # gpt2 and gpt-char are presets of it
# Ours and PyTorch's eager steps, of all networks in turn. The ones with the most to do come last, and have what others did not use.
bench_net() {
    rows=$scratch/rows-bench-net
    : >"$rows"
    set --
    for net in $(nets_in lstm gpt2 gpt-char vgg16 resnet20); do set -- "$@" --net "$(net_options "$net")"; done
    [ $# -gt 0 ] || return 0
    bench_python net "$(remaining)" networks "$@"
    report_nets
    results bench-net
}
net_options() { # net_options NET: as bench/gpu.py takes them
    case $dry$1 in
    0gpt*) echo "--model gpt --preset ${1#gpt-} --steps 20" ;;
    0lstm) echo '--model lstm --batch 20' ;;
    1gpt*) echo '--model gpt --preset char-cpu --batch 1 --precision f32 --steps 1' ;;
    1lstm) echo '--model lstm --batch 2 --hidden 8 --steps 1' ;;
    1*) echo "--model $1 --batch $batches --steps 1" ;;
    *) echo "--model $1 --batch $batches" ;;
    esac
}
# What is compiled, with ours beside it again: network after network, in a process each, for half of what is left; where that is
# little one whole network is worth more than halves of two. The compiler does not go into PyTorch's own LSTM.
bench_compiled() {
    rows=$scratch/rows-bench-compiled
    : >"$rows"
    [ -n "$modes" ] || return 0
    asked_nets=$(nets_in resnet20 vgg16 gpt2 gpt-char) last=''
    for net in $asked_nets; do last=$net; done
    for net in $asked_nets; do
        seconds=$(remaining) batch=''
        if [ "$net" != "$last" ] && [ "$seconds" -ge 80 ]; then seconds=$((seconds / 2)); fi
        [ "$seconds" -ge 20 ] || { verdict bench LATE "$net compiled: no time"; continue; }
        case $net in gpt*) ;; *) batch='--batch 128' ;; esac
        # shellcheck disable=SC2046,SC2086 # options
        bench_python net $seconds "$net compiled" $(net_options "$net") $batch --precision tf32 --no-eager --compile "$modes"
    done
    report_nets
    results bench-compiled
}
report_nets() {
    skipped_rows "$rows"
    of_rows "$rows" model,batch,precision,images_per_s,words_per_s,ratio_eager,eager,ratio_compiled,compiled,preset --where skipped= | awk -F '\t' '
        function beside(ratio, peer, goal) {
            return ratio == "-" ? "" : sprintf(", %.2f x %s", ratio, peer) (goal ? sprintf(" (target %g: %s)", goal, ratio >= goal ? "reached" : "missed") : "")
        }
        {
            rate = $5 == "-" ? sprintf("%.0f images/s", $4) : sprintf("%.0f words/s", $5)
            # Like with like: eager f32 may take Winograd, and what is compiled computes in tf32.
            eager_goal = $1 == "lstm" ? 1.5 : $2 != 128 || $3 == "f32" ? 0 : $1 == "resnet20" ? 3 : $1 == "vgg16" ? 1.3 : 0
            compiled_goal = $2 != 128 || $3 != "tf32" ? 0 : $1 == "resnet20" ? 1.2 : $1 == "vgg16" ? 1 : 0
            print ($10 == "-" ? $1 : $1 " " $10) " batch " $2 " " $3 ": " rate beside($6, "PyTorch " $7, eager_goal) beside($8, $9, compiled_goal)
        }' | report_lines
}
# What the plans of cuDNN's graph API are worth: bench net with them and without, then each convolution's choice. Those of a
# decoder are its attention's, in bf16.
bench_plans() {
    rows=$scratch/rows-bench-plans
    : >"$rows"
    for model in resnet20 vgg16 $(nets_in gpt2); do
        listed models "$(model_of "$model")" || continue
        [ "$dry$model" != 1vgg16 ] || continue
        size='--batch 128 --steps 20 --repeat 5' precisions='f32 tf32 bf16' unit=images_per_s
        [ "$model" != gpt2 ] || size='--preset gpt2 --batch 8 --steps 10 --repeat 5' precisions=bf16 unit=words_per_s
        case $dry$model in
        1gpt2) size='--preset char-cpu --hidden 32 --sequence 16 --batch 1 --steps 1 --repeat 1' ;;
        1*) size='--batch 2 --steps 1 --repeat 1' ;;
        esac
        for precision in $precisions; do
            for plans in 1 0; do
                # shellcheck disable=SC2086 # options
                SPARSETRAIN_CACHE=$scratch/choices SPARSETRAIN_CUDNN_PLANS=$plans within "$program" bench net --device cuda --json --model "$(model_of "$model")" \
                    --precision $precision $size >"$scratch/plans-$plans" || { ended bench $? "bench net of $model in $precision, plans $plans"; continue 2; }
            done
            "$program" rows "$scratch/plans-1" "$scratch/plans-0" --keys $unit | awk -v of="\"model\":\"$model\",\"precision\":\"$precision\"" -v unit=$unit '
                { speed[NR] = $1 }
                END { if (speed[2] > 0) printf "{%s,\"%s\":%s,\"without_plans_per_s\":%s,\"ratio\":%.4f}\n", of, unit, speed[1], speed[2], speed[1] / speed[2] }' >>"$rows"
        done
    done
    of_rows "$rows" model,precision,ratio | awk -F '\t' '{ printf "%s, %s: %.3f times as fast with plans of the graph API as without\n", $1, $2, $3 }' | report_lines
    cat "$scratch"/choices/cudnn-*.txt 2>/dev/null | awk 'NF > 3 && $(NF - 1) != "=" && $(NF - 2) != "=" { print "{\"choice\":\"" $0 "\"}" }' >>"$rows"
    chosen=$(of_rows "$rows" choice --where choice!= | awk '{ all++; plans += $NF != "-" } END { printf "%d of %d", plans, all }')
    verdict bench NOTE "plans are taken for $chosen passes of convolutions"
    results bench-plans
}
# Where a step goes on the GPU, call by call; shown are the calls of one name that take the longest together.
bench_kernels() {
    rows=$scratch/rows-bench-kernels
    : >"$rows"
    for model in $(nets_in resnet20 vgg16 lstm gpt2 gpt-char); do
        case $model in
        gpt2) size='--preset gpt2 --batch 8 --repeat 20' ;;
        gpt-char) size='--preset char --repeat 20' ;;
        lstm) size='--batch 20 --repeat 20' ;;
        *) size='--batch 128 --repeat 20' ;;
        esac
        if [ "$dry" = 1 ]; then
            [ "$model" = resnet20 ] || continue
            size='--batch 2 --repeat 1'
        fi
        for precision in f32 tf32 bf16; do
            # shellcheck disable=SC2086 # options
            within "$program" bench net --device cuda --kernels --json --model "$(model_of "$model")" --precision $precision $size >"$scratch/kernels" ||
                { ended bench $? "bench net --kernels of $model in $precision"; continue; }
            cat "$scratch/kernels" >>"$rows"
            of_rows "$scratch/kernels" call,seconds,none_s | awk -F '\t' -v what="$model, $precision" '
                { took[$1] += $2; calls[$1]++; all += $2; none = $3 }
                END {
                    line = sprintf("%s: calls of a step take %.0f us, %.1f us an event:", what, 1e6 * all, 1e6 * none)
                    for (shown = 0; shown < 4; shown++) {
                        best = ""
                        for (name in took) if (best == "" || took[name] > took[best]) best = name
                        if (best == "") break
                        line = line sprintf("%s %d %s %.0f%%", shown ? "," : "", calls[best], best, 100 * took[best] / all)
                        delete took[best]
                    }
                    print line
                }' | report_lines
        done
    done
    results bench-kernels
}
# Where a step of training goes: the phases of whole runs.
bench_train() {
    rows=$scratch/rows-bench-train
    : >"$rows"
    train_options='--data synthetic:20000x64 --batch 128' steps=200 rank_counts='1 4'
    if [ "$dry" = 1 ]; then train_options='--data synthetic:16x8 --batch 2' steps=2 rank_counts=1; fi
    for ranks in $rank_counts; do
        for algo in dense gtopk; do
            name=train-$algo-$ranks
            train cuda f32 "$algo" "$ranks" "$steps" "$name" || { ended bench $? "training with $algo on $ranks ranks"; continue; }
            "$program" rows "$scratch/$name" --type summary | sed "s/^{/{\"algo\":\"$algo\",\"ranks\":$ranks,/" >>"$rows"
        done
    done
    phases=phases.compute,phases.select,phases.pack,phases.communicate,phases.merge,phases.update,phases.io,phases.other
    of_rows "$rows" algo,ranks,images_per_second,step_seconds,$phases | awk -F '\t' -v phases=$phases '
        BEGIN { count = split(phases, phase, ",") }
        {
            line = sprintf("training, %s, P = %d: %.0f images/s, step %.2f ms:", $1, $2, $3, 1e3 * $4)
            all = 0
            for (i = 1; i <= count; i++) all += $(4 + i)
            for (i = 1; i <= count; i++) line = line sprintf(" %s %.0f%%", substr(phase[i], 8), all ? 100 * $(4 + i) / all : 0)
            print line
            step[$1, $2] = $4
        }
        END {
            for (each in step) {
                split(each, of, SUBSEP)
                if (of[2] == 1 || !(of[1] SUBSEP 1 in step)) continue
                share = step[each] / (of[2] * step[of[1], 1])
                printf "training, %s: a step of %d ranks on one GPU is %.2f times %d steps of one (target 1.2: %s)\n", of[1], of[2], share, of[2], share <= 1.2 ? "reached" : "missed"
            }
        }' | report_lines
    results bench-train
}

# -- sanitize ----------------------------------------------------------------------------------------------------------------
step_sanitize() {
    sanitizer=$(command -v compute-sanitizer || find "$cuda_home/" -maxdepth 3 -name compute-sanitizer -perm -1 2>/dev/null | head -n 1)
    [ "$dry" = 0 ] || { verdict sanitize NOTE 'skipped: a dry run has no GPU'; return; }
    [ -n "$sanitizer" ] || { verdict sanitize NOTE 'skipped: compute-sanitizer is not here'; return; }
    within "$sanitizer" "$BUILD/tests/gpu_peers" --n 4096 --repeat 1 >"$scratch/sanitizer" 2>&1 || {
        verdict sanitize NOTE "skipped: compute-sanitizer does not work here: $(grep -m 1 -iE 'error|support' "$scratch/sanitizer" | cut -c 1-200)"
        return
    }
    : >"$scratch/rows-sanitize"
    SPARSETRAIN_TEST_DEVICE=cuda
    SPARSETRAIN_PLUGIN=$(absolute "$BUILD")/libsparsetrain_cuda.so # the tests' programs lie elsewhere
    export SPARSETRAIN_TEST_DEVICE SPARSETRAIN_PLUGIN
    one_step="$program --device cuda --data synthetic:16x8 --batch 4 --steps 1 --eval-every 0 --quiet"
    lstm_step="$program --device cuda --model lstm --hidden 8 --bptt 3 --batch 2 --dropout 0.5 --data synthetic-text:200x50x50 --steps 1 --eval-every 0 --quiet"
    filters=$(kernel_filters)
    [ -n "$filters" ] || verdict sanitize NOTE 'the names of our kernels are not to be had (nm): cuDNN is checked as well'
    for tool in memcheck racecheck initcheck; do
        sanitized "$tool" topk_store "$BUILD/tests/topk_store"
        if [ "$tool" != initcheck ]; then # which takes what unchecked kernels, cuDNN's, have written for never written
            # shellcheck disable=SC2086 # options
            sanitized "$tool" training_step $one_step
            # shellcheck disable=SC2086 # options
            sanitized "$tool" lstm_step $lstm_step
            sanitized "$tool" nets_layers "$BUILD/tests/nets_layers"
        fi
        sanitized "$tool" topk_rows "$BUILD/tests/topk_rows"
    done
    unset SPARSETRAIN_TEST_DEVICE SPARSETRAIN_PLUGIN
    results sanitize
}
# kernel_filters: options that name our kernels, as the compiler has named them in the plugin, less what follows the name
kernel_filters() {
    nm "$BUILD/libsparsetrain_cuda.so" 2>/dev/null | awk 'match($0, /__device_stub__Z[0-9]+/) {
        length_of = substr($0, RSTART, RLENGTH); sub(/.*Z/, "", length_of)
        print "--kernel-name kns=_Z" length_of substr($0, RSTART + RLENGTH, length_of)
    }' | sort -u | tr '\n' ' '
}
# sanitized TOOL NAME COMMAND...: for at most a third of what is left. Races and missing initialisation are looked for in our
# kernels alone: cuDNN's would take the time.
sanitized() {
    tool=$1 name=$2
    shift 2
    most=$((($(remaining) + 2) / 3))
    [ $most -gt 2 ] || { verdict sanitize LATE "$tool $name: no time"; return; }
    sanitize_began=$(date +%s)
    by_name=
    [ "$tool" = memcheck ] || by_name=$filters
    # shellcheck disable=SC2086 # options
    timeout -k 5 $most "$sanitizer" --tool "$tool" --target-processes all $by_name "$@" >"$scratch/sanitizer" 2>&1
    status=$?
    found=$(sed -n 's/.*ERROR SUMMARY: \([0-9]*\) error.*/\1/p; s/.*RACECHECK SUMMARY: \([0-9]*\) hazard.*/\1/p' "$scratch/sanitizer" |
        awk '{ all += $1 } END { if (NR) print all }') # a summary for each process
    printf '{"tool":"%s","program":"%s","errors":%s,"status":%d,"seconds":%d}\n' "$tool" "$name" "${found:-null}" $status \
        $(($(date +%s) - sanitize_began)) >>"$scratch/rows-sanitize"
    if [ $status -eq 124 ]; then verdict sanitize LATE "$tool $name: stopped after $most s"
    elif [ "${found:-1}" = 0 ]; then verdict sanitize PASS "$tool $name"
    else
        verdict sanitize FAIL "$tool $name: ${found:-unknown} errors, status $status"
        grep '=========' "$scratch/sanitizer" | head -n 30
    fi
}
