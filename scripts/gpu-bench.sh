# shellcheck shell=sh
# gpu-bench.sh: sourced by gpu-check.sh after gpu-steps.sh: the steps that measure (bench, sanitize).
# shellcheck disable=SC2154,SC2034

# -- bench -----------------------------------------------------------------------------------------------------------------
step_bench() {
    lengths=14728266,133547324 densities=0.001,0.01 batches=32,128,1024 repeat=40 rounds=3 peer=cuda modes=default,reduce-overhead,max-autotune
    [ "$quick" = 0 ] || { repeat=16 rounds=1 modes=reduce-overhead; }
    if [ "$dry" = 1 ]; then
        lengths=4000,5000 densities=0.01 batches=2 repeat=2 rounds=1 peer=cpu modes=
    fi
    bench_select
    bench_net
    bench_plans
    bench_kernels
    bench_train
}
# bench_python PART SECONDS OPTION...: the rows of bench-gpu.py, added to the file $rows
bench_python() {
    part=$1 seconds=$2
    [ "$2" -lt "$(remaining)" ] || seconds=$(remaining)
    shift 2
    [ -n "$python" ] || { verdict bench LATE "$part: python3 is not here"; return; }
    peer_environment timeout -k 5 $((seconds > 0 ? seconds + 20 : 1)) "$python" scripts/bench-gpu.py "$program" "$part" --device "$peer" \
        --our-device cuda --seconds "$seconds" --rounds "$rounds" "$@" >"$scratch/python-rows" 2>"$scratch/python.log" || {
        tail -n 5 "$scratch/python.log"
        verdict bench FAIL "bench-gpu.py $part ended badly (the rows that it gave are kept)"
    }
    grep '^{.*}$' "$scratch/python-rows" >>"$rows"
}
skipped_rows() { # skipped_rows FILE: what the rows say was left out, by name
    sed -n 's/.*"skipped": "\([^"]*\)", "why": "\([^"]*\)".*/\1: \2/p' "$1" | while read -r line; do verdict bench NOTE "left out: $line"; done
}
bench_select() {
    rows=$scratch/rows-bench-select
    : >"$rows"
    gpu_peers before
    bench_python topk $(($(remaining) * 2 / 5)) --n "$lengths" --density "$densities" --steps "$repeat" --select all
    gpu_peers after
    skipped_rows "$rows"
    grep -v '"skipped"' "$rows" | awk -v dry="$dry" "$number"'
        # The floor: acc += grad of the same length, and a launch that is waited for; the less of before and after.
        function least(x, n, key,   v) { v = number(key); if (!(n in x) || v < x[n]) x[n] = v }
        /"gpu_peers"/ {
            n = number("n"); least(add, n, "accumulate_s"); least(read, n, "read_s"); least(copy, n, "copy_s"); least(sort, n, "sort_s")
            v = number("round_trip_s"); if (!trip || v < trip) trip = v
        }
        /"gpu_topk"/ { row[++rows] = $0 }
        END {
            for (n in add) printf "n %d: read %.1f us, acc += grad %.1f us, copy %.1f us, radix sort %.1f us, launch and wait %.1f us\n", n, 1e6 * read[n], 1e6 * add[n], 1e6 * copy[n], 1e6 * sort[n], 1e6 * trip
            for (r = 1; r <= rows; r++) {
                $0 = row[r]; n = number("n"); name = text("selector"); t = number("median_s"); alone = number("select_alone_s"); topk = number("ratio_peer"); sorted = ""
                line = sprintf("%-8s n %d density %g: %.1f us", name, n, number("density"), 1e6 * t)
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
    grep '"gpu_peers"' "$rows" | grep -qv '"wrong":0}' && verdict bench FAIL 'gpu_peers: wrong results'
    return 0
}
has_model() { "$program" list 2>/dev/null | grep -q "^  $1 *yes"; }
bench_net() {
    rows=$scratch/rows-bench-net
    : >"$rows"
    models=resnet20
    if has_model vgg16; then models="vgg16 $models"; fi
    if has_model lstm; then models="lstm $models"; fi
    for model in $models; do
        share=$((($(remaining) - 30) * 9 / 10))
        [ "$model" = resnet20 ] || share=$((share / 4))
        steps=50
        [ "$dry" = 0 ] || steps=1
        set -- --batch "$batches" --compile "$modes"
        if [ "$model" = lstm ]; then # the compiler does not go into PyTorch's own LSTM
            set -- --batch 20 --compile ''
            [ "$dry" = 0 ] || set -- --batch 2 --compile '' --hidden 8
        fi
        bench_python net $share --model "$model" --steps $steps "$@"
    done
    skipped_rows "$rows"
    grep -E '"(images|words)_per_s"' "$rows" | awk "$number"'{
        unit = /"words_per_s"/ ? "words" : "images"
        model = text("model"); batch = number("batch"); eager = number("ratio_eager"); compiled = number("ratio_compiled")
        line = sprintf("%s batch %d %s: %.0f %s/s", model, batch, text("precision"), number(unit "_per_s"), unit)
        # Like with like: eager f32 may take Winograd, and what is compiled computes in tf32.
        goal = model == "lstm" ? 1.5 : batch != 128 || text("precision") == "f32" ? 0 : model == "resnet20" ? 3 : model == "vgg16" ? 1.3 : 0
        if (eager != "-") line = line sprintf(", %.2f x PyTorch %s", eager, text("eager")) (goal ? sprintf(" (target %g: %s)", goal, eager >= goal ? "reached" : "missed") : "")
        goal = batch != 128 || text("precision") != "tf32" ? 0 : model == "resnet20" ? 1.2 : model == "vgg16" ? 1 : 0
        if (compiled != "-") line = line sprintf(", %.2f x %s", compiled, text("compiled")) (goal ? sprintf(" (target %g: %s)", goal, compiled >= goal ? "reached" : "missed") : "")
        print line }' | report_lines
    results bench-net
}
# What the plans of cuDNN's graph API are worth: bench net with them and without, then each convolution's choice.
bench_plans() {
    rows=$scratch/rows-bench-plans size='--batch 128 --steps 20 --repeat 5'
    [ "$dry" = 0 ] || size='--batch 2 --steps 1 --repeat 1'
    : >"$rows"
    for model in resnet20 vgg16; do
        has_model $model || continue
        [ "$dry$model" != 1vgg16 ] || continue
        for precision in f32 tf32 bf16; do
            for plans in 1 0; do
                # shellcheck disable=SC2086 # options
                SPARSETRAIN_CACHE=$scratch/choices SPARSETRAIN_CUDNN_PLANS=$plans within "$program" bench net --device cuda --json --model $model \
                    --precision $precision $size >"$scratch/plans-$plans" || verdict bench FAIL "bench net of $model in $precision, plans $plans: status $?"
            done
            awk "$number"'{ speed[FILENAME] = number("images_per_s") }
                END {
                    with = speed[ARGV[1]]; without = speed[ARGV[2]]
                    if (with && without)
                        printf "{\"model\":\"'$model'\",\"precision\":\"'$precision'\",\"images_per_s\":%s,\"without_plans_per_s\":%s,\"ratio\":%.4f}\n", with, without, with / without
                }' "$scratch/plans-1" "$scratch/plans-0" >>"$rows"
        done
    done
    awk "$number"'{ printf "%s, %s: %.3f times as fast with plans of the graph API as without\n", text("model"), text("precision"), number("ratio") }' "$rows" | report_lines
    cat "$scratch"/choices/cudnn-*.txt 2>/dev/null | awk 'NF > 3 && $(NF - 1) != "=" && $(NF - 2) != "=" { print "{\"choice\":\"" $0 "\"}" }' >>"$rows"
    chosen=$(awk '/"choice"/ { all++; if (!/ -"}$/) plans++ } END { printf "%d of %d", plans, all }' "$rows")
    verdict bench NOTE "plans are taken for $chosen passes of convolutions"
    results bench-plans
}
# Where a step goes on the GPU, call by call; shown are the calls of one name that take the longest together.
bench_kernels() {
    rows=$scratch/rows-bench-kernels
    : >"$rows"
    for model in resnet20 vgg16 lstm; do
        has_model $model || continue
        size='--batch 128 --repeat 20'
        if [ $model = lstm ]; then size='--batch 20 --repeat 20'; fi
        if [ "$dry" = 1 ]; then
            [ $model = resnet20 ] || continue
            size='--batch 2 --repeat 1'
        fi
        for precision in f32 tf32 bf16; do
            # shellcheck disable=SC2086 # options
            within "$program" bench net --device cuda --kernels --json --model $model --precision $precision $size >"$scratch/kernels" ||
                { verdict bench FAIL "bench net --kernels of $model in $precision: status $?"; continue; }
            cat "$scratch/kernels" >>"$rows"
            awk "$number"'{ name = text("call"); took[name] += number("seconds"); calls[name]++; all += number("seconds"); none = number("none_s") }
                END {
                    line = sprintf("'"$model, $precision"': calls of a step take %.0f us, %.1f us an event:", 1e6 * all, 1e6 * none)
                    for (shown = 0; shown < 4; shown++) {
                        best = ""
                        for (name in took) if (best == "" || took[name] > took[best]) best = name
                        if (best == "") break
                        line = line sprintf("%s %d %s %.0f%%", shown ? "," : "", calls[best], best, 100 * took[best] / all)
                        delete took[best]
                    }
                    print line
                }' "$scratch/kernels" | report_lines
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
            train cuda f32 "$algo" "$ranks" "$steps" "$name" || { verdict bench LATE "training with $algo on $ranks ranks: status $?"; continue; }
            sed -n "s/^{\"type\":\"summary\",/{\"algo\":\"$algo\",\"ranks\":$ranks,/p" "$scratch/$name/run.jsonl" >>"$rows"
        done
    done
    awk "$number"'{
        line = sprintf("training, %s, P = %d: %.0f images/s, step %.2f ms:", text("algo"), number("ranks"), number("images_per_second"), 1e3 * number("step_seconds"))
        count = split("compute select pack communicate merge update io other", phase, " ")
        for (i = 1; i <= count; i++) all += number(phase[i])
        for (i = 1; i <= count; i++) line = line sprintf(" %s %.0f%%", phase[i], all ? 100 * number(phase[i]) / all : 0)
        all = 0; print line
        step[text("algo"), number("ranks")] = number("step_seconds") }
        END {
            for (each in step) {
                split(each, of, SUBSEP)
                if (of[2] == 1 || !(of[1] SUBSEP 1 in step)) continue
                share = step[each] / (of[2] * step[of[1], 1])
                printf "training, %s: a step of %d ranks on one GPU is %.2f times %d steps of one (target 1.2: %s)\n", of[1], of[2], share, of[2], share <= 1.2 ? "reached" : "missed"
            } }' "$rows" | report_lines
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
