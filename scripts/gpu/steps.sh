# shellcheck shell=sh
# gpu/steps.sh: sourced by gpu-check.sh: what its steps do, and how results are written. Each step knows when it must end
# (step_end); what it did not come to is named. Variables that gpu-check.sh sets: BUILD program scratch out label gpu
# driver capability dry quick models_trained images text runs said.
# shellcheck disable=SC2154,SC2034

# -- time, verdicts, results -----------------------------------------------------------------------------------------------
remaining() { echo $((step_end - $(date +%s))); }
# within COMMAND...: stopped at the end of the step, with status 124
within() {
    within_seconds=$(remaining)
    [ "$within_seconds" -gt 0 ] || return 124
    timeout -k 5 "$within_seconds" "$@"
}
# verdict STEP PASS|FAIL|LATE|NOTE TEXT: a line now and in the summary. LATE: not all of it was done.
verdict() {
    printf '%-4s  %-9s %s\n' "$2" "$1" "$3" | tee -a "$scratch/summary"
    echo "$2" >>"$scratch/verdict-$1"
}
# ended STEP STATUS WHAT: what ended badly: with status 124, or when the time was over, it is late, and nothing went wrong
ended() {
    if [ "$2" -eq 124 ] || [ "$(remaining)" -le 0 ]; then verdict "$1" LATE "$3: no time"
    else verdict "$1" FAIL "$3: status $2"; fi
}
failed() { grep -q FAIL "$scratch/verdict-$1" 2>/dev/null; }
late() { grep -q LATE "$scratch/verdict-$1" 2>/dev/null; }

# results NAME [ROWS]: gpu-NAME.json from the rows (one JSON object a line) in $scratch/rows-ROWS (NAME)
results() {
    [ -s "$scratch/rows-${2:-$1}" ] || return 0
    write_rows "$out/gpu-$1.json" "$scratch/rows-${2:-$1}" "$(printf '"machine":"%s","gpu":"%s","driver":"%s","cuda":"%s","cudnn":"%s",' \
        "$(json_text "$machine")" "$(json_text "$gpu")" "$(json_text "$driver")" "$cuda_version" "$cudnn_version")"
    echo "   written: gpu-$1.json ($(wc -l <"$scratch/rows-${2:-$1}") rows)"
}
# of_rows FILE KEYS [OPTION...]: values of rows, tabs between, "-" where there is none
of_rows() {
    of_rows_file=$1 of_rows_keys=$2
    shift 2
    "$program" rows "$of_rows_file" --keys "$of_rows_keys" --missing - "$@"
}

# -- what is here ----------------------------------------------------------------------------------------------------------
describe() {
    echo "machine  $machine"
    echo "gpu      $gpu, driver $driver"
    echo "tools    CUDA ${cuda_version:-none}, cuDNN ${cudnn_version:-none}${cudnn:+ (of Python)}, PyTorch ${torch:-none}"
    echo "commit   $commit"
    [ "$dry" = 0 ] || echo "dry run  on the stand-in for CUDA: nothing here is a measurement"
}

# -- build -----------------------------------------------------------------------------------------------------------------
step_build() {
    if [ "$dry" = 0 ] || [ "$rehearsal" = 1 ]; then
        # What another compiler warns of is no reason to lose a lent machine.
        # shellcheck disable=SC2086 # a word or none
        within make --no-print-directory -j"$jobs" $compiler WERROR="${WERROR:-0}" CUDA=1 CUDA_ARCH="$capability" CUDNN="$cudnn" CUBLAS="$cublas" \
            report tests "$BUILD/tests/gpu_peers" >"$scratch/build.log" 2>&1
        status=$?
        grep -v '^  [A-Z]' "$scratch/build.log" | tail -n 60
        [ $status -ne 124 ] || { verdict build FAIL 'no time; what is built stays, so call again'; return; }
        [ $status -eq 0 ] || { verdict build FAIL "make ended with status $status"; return; }
    fi
    if [ ! -x "$program" ]; then verdict build FAIL "no $program"
    elif ! listed devices cuda; then
        verdict build FAIL "the program cannot use it: $("$program" list --json | "$program" rows - --each devices --where name=cuda --keys reason)"
    else verdict build PASS "CUDA $cuda_version, cuDNN $cudnn_version, capability $capability"; fi
}

# -- test ------------------------------------------------------------------------------------------------------------------
# Parts of the list side by side, as most of a test is not the GPU's work; but no more than two, each of which has up to a
# dozen processes with a context of their own on the card.
step_test() {
    parts=$(in_words "${groups:-topk_,comm_,nets_,cli_}")
    for group in $parts; do
        until [ "$(running_groups)" -lt 2 ]; do sleep 1; done
        : >"$scratch/test-$group-begun"
        test_group "$group" &
    done
    wait
    for group in $parts; do cat "$scratch/test-$group"; done >"$scratch/tests"
    grep -E 'failed|^---|^not ok|^#|skipped' "$scratch/tests" | head -n 300
    for group in $parts; do
        status=$(cat "$scratch/test-$group-status")
        unfinished=$(grep -cE '(stopped at|no time left before) TEST_END' "$scratch/test-$group")
        if [ "$status" -eq 124 ]; then verdict test LATE "$group was stopped after $(tail -n 1 "$scratch/test-$group" | cut -c 1-60)"
        elif [ "$unfinished" -gt 0 ]; then verdict test LATE "$group: no time for all of it; of $unfinished tests something is left: $(left_tests "$group")"; fi
    done
    awk 'function count(what) { match($0, "[0-9]+ " what); return substr($0, RSTART, RLENGTH) + 0 }
    /^[a-z]+_[a-z0-9_]* .* passed .* failed .* skipped/ {
        label = $0; sub(/^[^ ]* */, "", label); sub(/ *[0-9]* passed.*/, "", label)
        printf "{\"test\":\"%s\",\"label\":\"%s\",\"passed\":%d,\"failed\":%d,\"skipped\":%d,\"seconds\":%d}\n", $1, label, count("passed"),
            count("failed"), count("skipped"), count("s(,|$)")
    }' "$scratch/tests" >"$scratch/rows-test"
    totals=$(awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 } END { print p + 0, f + 0, s + 0 }' "$scratch/tests")
    # Parts of the list come home in files of their own.
    results "test${groups:+-$(echo "$groups" | tr -d _ | tr , -)}" test
    # shellcheck disable=SC2086 # three words
    set -- $totals
    if [ "$2" -gt 0 ] || [ "$1" -eq 0 ]; then verdict test FAIL "$1 passed, $2 failed, $3 skipped"
    else verdict test PASS "$1 passed, $2 failed, $3 skipped"; fi
}

running_groups() { # those that have begun and not ended
    begun=0
    for group_file in "$scratch"/test-*-begun; do
        if [ -e "$group_file" ] && [ ! -e "${group_file%-begun}-status" ]; then begun=$((begun + 1)); fi
    done
    echo $begun
}
# test_group GROUP: ends with the step, having said what it has not come to; fifteen seconds more are for saying so
test_group() {
    patterns=$1
    [ "$1" != cli_ ] || patterns='cli_ base_ data_'
    [ "$dry" = 0 ] || case $1 in # on the CPU, and little of it: what the stand-in runs of the list takes minutes
        topk_) patterns=topk_sparse ;;
        comm_) patterns=comm_density ;;
        nets_) patterns=nets_schedule ;;
        cli_) patterns=base_all ;;
    esac
    # shellcheck disable=SC2086 # a list of words
    SPARSETRAIN_PLUGIN='' DEVICES=$test_devices TEST_TIMEOUT=900 TEST_END=$((step_end - 15)) within sh tests/run.sh $patterns >"$scratch/test-$1" 2>&1
    echo $? >"$scratch/test-$1-status"
}
left_tests() { # left_tests GROUP: names of what it has not come to
    sed -n 's/^ *\([a-z]*_[a-z0-9_]*\): .*TEST_END.*/\1/p' "$scratch/test-$1" | sort -u | tr '\n' ' ' | cut -c 1-200
}

# -- compare ---------------------------------------------------------------------------------------------------------------
# train DEVICE PRECISION ALGO P STEPS NAME: a run in $scratch/NAME; more options in $train_options
train() {
    case $3 in dense) sparse= ;; *) sparse='--density 0.01 --density-warmup none' ;; esac
    [ "$1" = cpu ] || sparse="$sparse --precision $2"
    # shellcheck disable=SC2086 # options
    within "$MPIRUN" -np "$4" "$program" --device "$1" --algo "$3" $sparse $train_options --steps "$5" --eval-every 0 \
        --quiet --out "$scratch/$6" >"$scratch/train.log" 2>&1
}
# compared MODEL: what of it is compared. VGG-16 has the layers of ResNet-20 and a bias and a pooling besides, so one
# algorithm and one rank show it; a step of it takes the CPU a second.
compared() {
    algos='dense gtopk' rank_counts='1 4' precisions='f32 tf32 bf16' steps=20 schedule='--lr-warmup 0 --lr-schedule constant'
    [ "$quick" = 0 ] || rank_counts=4
    case $1 in
    resnet20) train_options='--data synthetic:1024x64 --batch 64 --lr 0.001' ;;
    vgg16)
        algos=dense rank_counts=1 steps=10
        train_options='--model vgg16 --data synthetic:320x16 --batch 32 --lr 0.0001'
        ;;
    lstm) train_options='--model lstm --hidden 200 --dropout 0.5 --data synthetic-text:60000x3000x3000' ;;
    gpt) train_options='--model gpt --preset char-cpu --dropout 0.1 --data synthetic-text:60000x3000x3000' ;;
    gpt-plain) # without dropout, and windows of a length for which cuDNN 9.14 has its own attention in bf16, too
        algos=dense rank_counts=1 precisions='f32 bf16'
        train_options='--model gpt --preset char-cpu --context 128 --batch 6 --data synthetic-text:60000x3000x3000'
        ;;
    bert) train_options="--model bert --preset tiny --context 64 --batch 16 --lr 1e-3 --data wiki:$scratch/pairs" ;;
    speech) # in f32, where it is known what to expect
        precisions=f32
        train_options="--model speech --layers 2 --hidden 64 --batch 4 --lr 3e-5 --data speech:$scratch/speech"
        ;;
    esac
    [ "$dry" = 0 ] || compared_dry "$1"
    train_options="$train_options $schedule"
}
# On the stand-in, whose kernels are emulated: what still takes seconds.
compared_dry() {
    rank_counts=2 steps=2 precisions=f32
    case $1 in
    resnet20) train_options='--data synthetic:16x8 --batch 2 --lr 0.001' ;;
    lstm) train_options='--model lstm --hidden 8 --bptt 3 --batch 2 --dropout 0.5 --data synthetic-text:200x50x50' ;;
    vgg16) rank_counts=1 steps=1 train_options='--model vgg16 --data synthetic:4x1 --batch 2 --lr 0.0001' ;;
    gpt) train_options='--model gpt --layers 1 --heads 2 --hidden 8 --context 4 --batch 2 --dropout 0.1 --data synthetic-text:200x50x50' ;;
    gpt-plain) precisions=bf16 train_options='--model gpt --layers 1 --heads 2 --hidden 16 --context 4 --batch 2 --data synthetic-text:200x50x50' ;;
    bert) train_options="--model bert --layers 1 --heads 2 --hidden 8 --context 16 --batch 2 --lr 1e-3 --data wiki:$scratch/pairs" ;;
    speech) algos=dense steps=1 train_options="--model speech --layers 1 --hidden 4 --batch 1 --data speech:$scratch/speech" ;;
    esac
}
# Tolerances, relative to 1 + loss: of the first step (one forward pass), and of all of them.
# ResNet-20: training multiplies a difference in the last bits from step to step, so the learning rate is small: two
#   instruction sets of one CPU (oneDNN with ONEDNN_MAX_CPU_ISA=AVX2 and without) come 1e-8 and 1e-4 apart with it, 1e-2
#   with one twenty times as large.
# VGG-16: a hundred times less than its own rate for the same reason: two instruction sets come 1e-7 and, within three
#   steps, 4e-6 apart, while the update moves the losses by 2e-2 within six. PyTorch comes 7e-5 and 1e-3 off where the
#   operands of its products are rounded to the 10 bits of tf32, 2e-3 with the 7 of bf16.
# LSTM: its gradients are clipped, so at its own rate, with which the losses fall by a sixth, two instruction sets stay
#   within 1e-6. PyTorch with operands of 10 and 7 bits comes 1e-5 and 5e-5 off; the states, which go round, add to it.
#   The first loss is about log(vocabulary) whatever is rounded.
# Transformers: two instruction sets stay within 5e-8 while the loss falls by a fifth. PyTorch with operands of 10 and 7 bits, also those of
#   attention, comes 3e-5 and 3e-4 off on the decoder, 4e-6 and 4e-5 on the encoder. Where whole rows are bf16, logits included,
#   losses of small ones on the stand-in come 2e-5 off at first and 1e-4 within eight steps.
# Speech: a thirtieth of its own rate, as for ResNet-20: two instruction sets come 1e-7 and 2e-4 apart while the loss falls from 47 to 29 (at its
#   own rate 1e-2).
tolerances() { # tolerances MODEL PRECISION: first, all
    case $1-$2 in
    resnet20-f32) echo 1e-5 2e-3 ;;
    resnet20-tf32) echo 1e-2 5e-2 ;;
    resnet20-bf16) echo 5e-2 2e-1 ;;
    vgg16-f32) echo 1e-5 1e-3 ;;
    vgg16-tf32) echo 2e-3 1e-2 ;;
    vgg16-bf16) echo 1e-2 3e-2 ;;
    lstm-f32 | gpt*-f32 | bert-f32) echo 1e-5 1e-4 ;;
    speech-f32) echo 1e-5 2e-3 ;;
    lstm-tf32 | gpt*-tf32 | bert-tf32) echo 1e-4 1e-3 ;;
    lstm-bf16 | gpt*-bf16 | bert-bf16) echo 1e-3 5e-3 ;;
    esac
}
# compare_losses CPU-RUN GPU-RUN MODEL PRECISION ALGO P: a row; status 1 when the losses are too far apart
compare_losses() {
    # shellcheck disable=SC2046 # two words
    set -- "$@" $(tolerances "$3" "$4")
    "$program" rows "$1" "$2" --type step --keys @file,loss --missing - | # which is missing where it is not finite
        awk -F '\t' -v on_cpu="$1" -v model="$3" -v precision="$4" -v algo="$5" -v ranks="$6" -v near="$7" -v far="$8" -v steps="$steps" '
        $1 == on_cpu { cpu[++n] = $2; next }
        { gpu[++m] = $2 }
        END {
            pass = n == steps && m == steps
            for (i = 1; i <= n && i <= m; i++) {
                if (cpu[i] == "-" || gpu[i] == "-") { pass = 0; continue }
                d = cpu[i] - gpu[i]; if (d < 0) d = -d
                d /= 1 + cpu[i]
                if (i == 1) first = d
                if (d > most) most = d
                a = a (i > 1 ? "," : "") cpu[i]; b = b (i > 1 ? "," : "") gpu[i]
            }
            if (first > near || most > far) pass = 0
            printf "{\"model\":\"%s\",\"algo\":\"%s\",\"ranks\":%d,\"precision\":\"%s\",\"steps\":%d,\"first_difference\":%.3g,\"most_difference\":%.3g,", model, algo, ranks, precision, m, first, most
            printf "\"first_tolerance\":%s,\"tolerance\":%s,\"cpu_loss\":[%s],\"gpu_loss\":[%s],\"pass\":%s}\n", near, far, a, b, pass ? "true" : "false"
            exit !pass
        }' >>"$scratch/rows-compare"
}
step_compare() {
    sh scripts/reproduce/parts/made-up-pairs.sh "$scratch/pairs" 48 # four ranks want 64 pairs a step
    ! reads_speech || sh scripts/reproduce/parts/made-up-speech.sh "$scratch/speech"
    for model in resnet20 lstm gpt gpt-plain bert speech vgg16; do
        if [ $model = bert ] && ! reads_pairs; then
            echo '    bert is not compared: this build lacks utf8proc'
            continue
        elif [ $model = speech ] && ! reads_speech; then
            echo '    speech is not compared: this build lacks FFTW'
            continue
        fi
        compared $model
        for ranks in $rank_counts; do
            for algo in $algos; do compare_algo "$model" "$algo" "$ranks"; done
        done
    done
    results compare
}
compare_algo() { # compare_algo MODEL ALGO P: one run on the CPU, and one on the GPU in each precision
    reference=cpu-$1-$2-$3
    train cpu f32 "$2" "$3" "$steps" "$reference" || { not_trained "$?" "$1, $2 on $3 ranks of the CPU"; return; }
    for precision in $precisions; do
        what="$1, $2, P = $3, $precision"
        train cuda "$precision" "$2" "$3" "$steps" "$reference-$precision" || { not_trained "$?" "$what"; continue; }
        if compare_losses "$scratch/$reference" "$scratch/$reference-$precision" "$1" "$precision" "$2" "$3"; then word=PASS
        else word=FAIL; fi
        verdict compare $word "$what: $(of_rows "$scratch/rows-compare" first_difference,most_difference,steps,first_tolerance,tolerance --last |
            awk '{ printf "losses differ by %.2g at first, %.2g over %d steps (at most %g, %g)", $1, $2, $3, $4, $5 }')"
    done
}
not_trained() { # not_trained STATUS WHAT
    if [ "$1" -eq 124 ]; then verdict compare LATE "$2: no time"; return; fi
    verdict compare FAIL "$2: the run ended with status $1: $(grep 'sparsetrain: ' "$scratch/train.log" | head -n 1 | cut -c 1-300)"
    tail -n 20 "$scratch/train.log"
}
