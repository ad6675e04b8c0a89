# shellcheck shell=sh
# gpu/converge.sh: sourced by gpu-check.sh after gpu/steps.sh: the step that trains on real data. Goes on where the runs in
# $runs/MODEL/ALGO were; stops them, with a checkpoint, when the time is over.
# shellcheck disable=SC2154,SC2034

step_converge() {
    : >"$scratch/rows-converge"
    # A run that goes on with other algorithms rounds otherwise: what was measured comes home, and back, with the runs.
    SPARSETRAIN_CACHE=$runs/cache
    export SPARSETRAIN_CACHE
    if [ -n "$lease" ]; then
        mkdir -p "$runs"
        [ -s "$runs/lease-end" ] || echo $(($(date +%s) + lease)) >"$runs/lease-end"
    fi
    [ "$mps" = 0 ] || mps_begin converge
    for model in $(in_words "$models_trained"); do converge_model "$model"; done
    mps_end
    results converge
    has gnuplot || verdict converge NOTE 'plots: gnuplot is not here; sh scripts/plot.sh RUN... draws them elsewhere'
    [ -z "$pack" ] || pack_runs
}
# mps_begin STEP: the multi-process service, where it is there and the program runs by it; mps_end. Its pipe is our own, so that what does
# not ask for it, before and after, has nothing to do with it.
mps_begin() {
    has nvidia-cuda-mps-control || { verdict "$1" NOTE 'ranks take turns on the GPU: no nvidia-cuda-mps-control'; return; }
    CUDA_MPS_PIPE_DIRECTORY=$scratch/mps CUDA_MPS_LOG_DIRECTORY=$scratch/mps
    export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    mkdir -p "$scratch/mps"
    if timeout -k 5 20 nvidia-cuda-mps-control -d >"$scratch/mps.log" 2>&1 &&
        timeout -k 5 40 "$program" bench net --device cuda --batch 2 --steps 1 --repeat 1 >>"$scratch/mps.log" 2>&1; then
        verdict "$1" NOTE 'ranks run beside each other on the GPU (multi-process service)'
        return
    fi
    tail -n 3 "$scratch/mps.log"
    mps_end
    verdict "$1" NOTE 'ranks take turns on the GPU: the multi-process service did not serve'
}
mps_end() {
    [ -n "${CUDA_MPS_PIPE_DIRECTORY:-}" ] && [ "$CUDA_MPS_PIPE_DIRECTORY" = "$scratch/mps" ] || return 0
    echo quit | timeout -k 5 20 nvidia-cuda-mps-control >/dev/null 2>&1
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}
# converge_model MODEL: the program's defaults, which are the gTop-k paper's, on the model's real data
converge_model() {
    ranks=4 where=$images fetch=cifar10
    [ "$1" != lstm ] || where=$text fetch=ptb
    train_options="--model $1${epochs:+ --epochs $epochs}"
    if [ "$dry" = 1 ]; then
        ranks=2
        case $1 in
        resnet20) where=synthetic:16x8 train_options="--model resnet20 --batch 2 --epochs ${epochs:-1}" ;;
        lstm) where=synthetic-text:200x50x50 train_options="--model lstm --hidden 8 --bptt 5 --batch 2 --epochs ${epochs:-1}" ;;
        vgg16) where=synthetic:4x1 train_options="--model vgg16 --batch 2 --epochs ${epochs:-1}" ;;
        esac
    elif [ "$where" = $fetch ] && ! listed datasets $fetch; then
        verdict converge LATE "$1: no $fetch in ${SPARSETRAIN_DATA:-build/data}: sh scripts/fetch-data.sh $fetch; --data $fetch:WHERE names another place"
        return
    fi
    drawn=
    for algo in $(in_words "$algos_trained"); do converge_run "$1" "$algo"; done
    if [ -n "$drawn" ] && [ "$dry" = 0 ] && has gnuplot; then
        # shellcheck disable=SC2086 # names without blanks
        (cd "$runs/$1" && sh "$root/scripts/plot.sh" $drawn --out "$out/gpu-converge/$1") || true
    fi
}
converge_run() { # converge_run MODEL ALGO: as far as the time goes; its rows and its line
    # gtopk:paper is gtopk with that residual rule
    case $2 in *:*) set -- "$1" "${2%%:*}-${2#*:}" "--algo ${2%%:*} --gtopk-residual ${2#*:}" ;; *) set -- "$1" "$2" "--algo $2" ;; esac
    run=$runs/$1/$2 status=0
    has_ended "$run" || go_on "$run" "$3" "$1" "$2" || status=$?
    if [ ! -f "$run/run.jsonl" ]; then
        if [ $status -eq 124 ]; then verdict converge LATE "$1, $2: no time in this call"
        else verdict converge FAIL "$1, $2: the run ended with status $status"; fi
        return
    fi
    drawn="$drawn $2"
    "$program" rows "$run" --type eval,summary | sed "s/^{\"type\":/{\"model\":\"$1\",\"algo\":\"$2\",\"ranks\":$ranks,\"row\":/" >>"$scratch/rows-converge"
    reached=$(of_rows "$run" epoch,valid_perplexity,test_accuracy --type eval --last | awk '
        $2 != "-" { printf "epoch %.1f, validation perplexity %.2f", $1, $2; next }
        { printf "epoch %.1f, test accuracy %.2f%%", $1, 100 * $3 }')
    reached=${reached:-not evaluated yet}
    if has_ended "$run"; then verdict converge PASS "$1, $2: $reached, completed"
    elif [ $status -eq 124 ] || [ $status -eq 137 ]; then verdict converge LATE "$1, $2: $reached; call again to go on"
    else verdict converge FAIL "$1, $2: $reached; the run ended with status $status"; fi
}
# go_on RUN OPTIONS MODEL NAME: status 124 when the time was over, or too short to begin
go_on() {
    go_run=$1 go_what="$3, $4"
    if has_checkpoint "$1"; then set -- --resume "$1"
    else
        clear_run "$1"
        planned=
        [ -z "$lease" ] || plan_epochs "$2" "$3" "$4" || return 124
        # shellcheck disable=SC2086 # options
        set -- --device cuda $2 --data "$where" ${planned:-$train_options} --out "$1"
    fi
    # What the program needs to write its checkpoint and end, and the packing.
    seconds=$(($(remaining) - 15))
    [ -z "$pack" ] || seconds=$((seconds - 10))
    [ $seconds -gt 10 ] || return 124
    mkdir -p "${go_run%/*}"
    hear_usr1
    # shellcheck disable=SC2086 # words or none
    timeout -s USR1 -k 14 $seconds $hearing "$MPIRUN" -np "$ranks" "$program" "$@" --quiet >"$scratch/converge.log" 2>&1
    status=$?
    tail -n 20 "$scratch/converge.log"
    [ $status -ne 137 ] || verdict converge NOTE "$go_what: did not stop when it was told to, and was killed: it goes on from the checkpoint before"
    return $status
}

# -- runs that must end within the lease ---------------------------------------------------------------------------------
# The checkpoints of these models are too large to come home: what has not ended when the machine goes back is lost.
stays_here() { case $1 in vgg16 | lstm) true ;; *) false ;; esac; }
# plan_epochs OPTIONS MODEL NAME: where the whole run would take more than its share of what is left of the lease, `planned` has
# the options of a shorter one: its schedule is that of so many epochs. Status 1: there is no time for one.
plan_epochs() {
    stays_here "$2" || return 0
    share=$((($(cat "$runs/lease-end") - $(date +%s) - 15) / $(runs_to_come "$2" "$3")))
    trial_steps=40
    [ "$dry" = 0 ] || trial_steps=1
    rm -rf "$scratch/speed"
    # shellcheck disable=SC2046,SC2086 # options
    within "$MPIRUN" -np "$ranks" "$program" --device cuda $1 --data "$where" $(without_epochs "$train_options") --steps $trial_steps --eval-every 0 \
        --quiet --out "$scratch/speed" >"$scratch/converge.log" 2>&1 || {
        tail -n 20 "$scratch/converge.log"
        return 0 # the run itself says what is wrong
    }
    whole_run=$("$program" config --model "$2" | sed -n 's/^epochs=//p')
    case $train_options in *' --epochs '*) whole_run=${train_options##* --epochs } ;; esac
    plan=$(of_rows "$scratch/speed" type,run_epochs,step_seconds --type header,summary | awk -v whole="$whole_run" -v share="$share" -v steps=$trial_steps '
        $1 == "header" { part = $2 }
        $1 == "summary" { step = $3 }
        END {
            epoch = 1.1 * steps * step / part # a tenth for evaluation and for what is slower than the trial
            fits = int(share / epoch)
            printf "%d %.0f %.0f", fits < whole ? fits : whole, whole * epoch, epoch
        }')
    # shellcheck disable=SC2086 # three numbers
    set -- "$3" "$2" $plan
    [ "$3" -lt "$whole_run" ] || return 0
    [ "$3" -ge 1 ] || { verdict converge NOTE "$2, $1: an epoch takes about $5 s, and there are $share: not begun, as it would not end in this lease"; return 1; }
    planned="$(without_epochs "$train_options") --epochs $3"
    verdict converge NOTE "$2, $1: $3 of $whole_run epochs: a whole run takes about $4 s, and there are $share for it in this lease"
}
without_epochs() { echo "$1" | sed 's/ --epochs [0-9]*//'; }
# runs_to_come MODEL NAME: how many runs share what is left, this one and those after it
runs_to_come() {
    count=0 reached=0
    for next_model in $(in_words "$models_trained"); do
        for next_algo in $(echo "$algos_trained" | tr ',:' ' -'); do
            [ "$next_model,$next_algo" != "$1,$2" ] || reached=1
            if [ $reached = 1 ] && ! has_ended "$runs/$next_model/$next_algo"; then count=$((count + 1)); fi
        done
    done
    echo $count
}

# -- what comes home -------------------------------------------------------------------------------------------------------
# pack_runs: $pack, a .tar.gz of at most $pack_limit bytes: rows and plots of all runs, then their last checkpoints: first of
# those that are to go on, then of those that have ended, the smallest first. Unpacked into --runs it lets them go on.
pack_runs() {
    [ -d "$runs" ] || return 0
    mkdir -p "${pack%/*}"
    if [ -d "$out/gpu-converge" ]; then
        rm -rf "$runs/plots"
        cp -R "$out/gpu-converge" "$runs/plots"
    fi
    (cd "$runs" && find . -type f ! -path '*/checkpoint-*' ! -name lease-end ! -name lock) | sort >"$scratch/packed"
    if [ ! -s "$scratch/packed" ]; then verdict converge NOTE 'packed: nothing, there is no run'; return; fi
    packed_files || return
    room=$((pack_limit - $(wc -c <"$pack")))
    for run in "$runs"/*/*/; do
        last=$(find "$run" -mindepth 1 -maxdepth 1 -name 'checkpoint-*[0-9]' -type d | sort | tail -n 1)
        over=0
        ! has_ended "${run%/}" || over=1
        [ -z "$last" ] || echo "$over $(cat "$last"/* | wc -c) ${last#"$runs"/}"
    done | sort -k 1,1n -k 2,2n >"$scratch/checkpoints"
    left_out=
    while read -r _ bytes folder; do
        if [ "$bytes" -le "$room" ]; then
            (cd "$runs" && find "./$folder" -type f) >>"$scratch/packed"
            room=$((room - bytes))
        else left_out="$left_out $folder ($bytes bytes)"; fi
    done <"$scratch/checkpoints"
    packed_files || return
    verdict converge NOTE "packed: ${pack##*/}, $(wc -c <"$pack") bytes: $(grep -c . "$scratch/packed") files${left_out:+; left out:$left_out}"
}
packed_files() {
    tar -C "$runs" -T "$scratch/packed" -czf "$pack.part" && mv "$pack.part" "$pack" && return
    rm -f "$pack.part"
    verdict converge FAIL "packed: ${pack##*/} could not be written"
    return 1
}
