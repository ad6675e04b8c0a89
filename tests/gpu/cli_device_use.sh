#!/bin/sh
# cli_device_use.sh: what a user meets around --device. In the list of the CPU: no plugin, a stand-in that shows no GPU,
# mistakes. In those of the other devices: training there against training on the CPU, what rows are labelled with, a
# checkpoint, memory that runs out.
# devices: cuda
# shellcheck disable=SC2086 # lists of arguments
# long: most of a minute and more
. tests/lib/tap.sh
stand_in=$(pwd)/$BUILD/tests/libsparsetrain_hostcuda.so
case $BUILD in /*) stand_in=$BUILD/tests/libsparsetrain_hostcuda.so ;; esac
tiny="--data synthetic:64x16 --batch 1 --eval-every 0 --lr 0.0005 --lr-warmup 0"
sparse="--density 0.01 --density-warmup none"

# state: "yes" or "no" of the row cuda in `sparsetrain list`, in $W/out; told_why TEXT: the line below it contains TEXT
state() { awk '/^Devices/ { inside = 1 } inside && $1 == "cuda" { print $2; exit }' "$W/out"; }
told_why() {
    why="list says: $(sed -n '/^Devices/,$p' "$W/out" | head -c 600)"
    [ "$(state)" = "$1" ] && awk '/^Devices/ { inside = 1 } below { print; exit } inside && $1 == "cuda" { below = 1 }' "$W/out" | grep -qF -- "$2"
}
# labelled DIR LABEL: the header of the run says so (what was asked for stands behind it)
labelled() {
    header_label=$(head -n 1 "$1/run.jsonl" | grep -o '"device":"[a-z]*"' | head -n 1 | cut -d '"' -f 4)
    why="labelled \"$header_label\""
    [ "$header_label" = "$2" ]
}

# -- where there is no GPU ---------------------------------------------------------------------------------------------
# without_gpu NAME TEXT: list says no for the reason TEXT, --device cuda is a mistake, auto is the CPU
without_gpu() {
    start 1 list
    check "$1: list says why" told_why no "$2"
    for p in 1 3; do
        check "$1: --device cuda on $p ranks is a mistake" unmade "$W/new" silent mistaken "--device cuda cannot be used: $2" $p $tiny --steps 1 --device cuda --out "$W/new"
    done
    rm -rf "$W/auto"
    start 1 $tiny --steps 1 --device auto --out "$W/auto"
    check "$1: --device auto is the CPU" labelled "$W/auto" cpu
}

on_the_cpu() {
    export SPARSETRAIN_PLUGIN=/nonexistent
    without_gpu "without a plugin" "SPARSETRAIN_PLUGIN names /nonexistent, which cannot be read"
    export SPARSETRAIN_PLUGIN="$stand_in"
    if [ -r "$stand_in" ]; then
        export SPARSETRAIN_HOSTCUDA_DEVICES=0
        without_gpu "a plugin without a GPU" "this machine shows no NVIDIA GPU"
        unset SPARSETRAIN_HOSTCUDA_DEVICES
        for old in "SPARSETRAIN_HOSTCUDA_CAPABILITY=75 has compute capability 7.5; 8.0 or later is needed" \
            "SPARSETRAIN_HOSTCUDA_CUDNN=80907 cuDNN 8.9.7 is installed, but the plugin was built with cuDNN 9"; do
            export "${old%% *}"
            start 1 list
            check "list says: ${old#* }" told_why no "${old#* }"
            check "--device cuda: ${old#* }" unmade "$W/new" silent mistaken "${old#* }" 1 $tiny --steps 1 --device cuda --out "$W/new"
            unset "${old%%=*}"
        done
    else
        skip "a plugin without a GPU" "no CUDA toolkit, so no stand-in was built"
    fi
    printf 'no library' > "$W/plugin.so"
    export SPARSETRAIN_PLUGIN="$W/plugin.so"
    without_gpu "a plugin that is no library" "the plugin cannot be loaded"
    for p in 1 3; do
        check "an unknown device on $p ranks" unmade "$W/new" silent mistaken '--device has no "tpu"' $p $tiny --steps 1 --device tpu --out "$W/new"
        check "--precision bf16 on the CPU, $p ranks" unmade "$W/new" silent mistaken 'bf16' $p $tiny --steps 1 --device cpu --precision bf16 --out "$W/new"
    done
}

# -- where there is one --------------------------------------------------------------------------------------------------
# losses FILE: of all steps
losses() { sed -n 's/^{"type":"step".*"loss":\([-0-9.e+]*\).*/\1/p' "$1"; }

# agree DIR DIR STEPS: as many losses, each pair to within a part of the larger one: 10^-5 in the first two steps, where
# a wrong sum shows (10^-4 on a GPU, whose algorithms for convolutions round in ways of their own), 10^-3 in all, since
# training makes the differences of rounding larger (the small learning rate, less)
agree() {
    losses "$1/run.jsonl" > "$W/losses1"
    losses "$2/run.jsonl" > "$W/losses2"
    why=$(paste "$W/losses1" "$W/losses2" | awk -v steps="$3" -v first="$([ "$label" = cuda ] && echo 1e-4 || echo 1e-5)" '
        NF != 2 || !($1 > 0 && $2 > 0) { broken = 1; next }
        { size = $1 > $2 ? $1 : $2; off = ($1 - $2) / size; if (off < 0) off = -off }
        off > (NR <= 2 ? first : 1e-3) { print "off by " off " of it in step " NR }
        END { if (broken || NR != steps) print NR " losses, not " steps }' | head -n 1)
    [ -z "$why" ]
}

# trains NAME DIR P ARGS...: a run into DIR, which succeeds
trains() {
    t_name=$1 t_out=$2 t_p=$3
    shift 3
    start "$t_p" ${net:-$tiny} "$@" --out "$t_out" && return 0
    not_ok "$t_name" "status $?: $(head -c 400 "$W/err")"
    return 1
}

# label: what rows made here are labelled with
on_the_gpu() {
    label=$1
    start 1 list
    check "list names what answers" told_why yes ""
    for algo in dense topka gtopk oktopk; do
        # images where every entry is sent, words where what is selected does not ask what they are
        case $algo in dense) more='' net=$tiny ;; *) more=$sparse net="$small_net --eval-every 0 --lr 0.01 --lr-warmup 0" ;; esac
        name="$algo: the losses of the CPU, to rounding"
        trains "$name" "$W/cpu-$algo" 4 --steps 20 --algo $algo $more --device cpu &&
            trains "$name" "$W/gpu-$algo" 4 --steps 20 --algo $algo $more --device cuda --precision f32 --check-replicas 10 &&
            check "$name" agree "$W/cpu-$algo" "$W/gpu-$algo" 20
    done
    net=''
    check "rows are labelled $label" labelled "$W/gpu-dense" "$label"
    check "those of the CPU are not" labelled "$W/cpu-dense" cpu
    check "the report says $label" grep -q "on ${label}[;,]" "$W/out"
    [ "$label" = cuda ] || check "no row says cuda" sh -c "! grep -q 'device\":\"cuda\",\"device_about' '$W'/gpu-*/run.jsonl"
    if trains "--device auto" "$W/auto" 1 --steps 1; then check "--device auto is the GPU" labelled "$W/auto" "$label"; fi
    name="resumed on the device: the same bits"
    if trains "$name" "$W/whole" 3 --steps 6 --checkpoint-every 3 --algo gtopk $sparse --device cuda; then
        start 3 --resume "$W/whole/checkpoint-00000003" --out "$W/again"
        check "$name" [ -n "$(hash_of "$W/whole")" ] && check "$name, of three steps" [ "$(hash_of "$W/whole")" = "$(hash_of "$W/again")" ]
        check "the resumed run is labelled $label" labelled "$W/again" "$label"
    fi
}

# A library that no graph can record: said once, logged, the same bits.
goes_plain() {
    plain_p=$1
    rm -rf "$W/graphs" "$W/none"
    start "$plain_p" $tiny --steps 4 --device cuda --out "$W/graphs"
    SPARSETRAIN_HOSTCUDA_FAIL=cudaGraphInstantiate start "$plain_p" $tiny --steps 4 --device cuda --out "$W/none"
    status=$?
    why="status $status: $(head -c 500 "$W/err")"
    [ $status -eq 0 ] && [ "$(our_lines)" -eq 1 ] || return 1
    grep -q '^sparsetrain: passes cannot be recorded on this GPU, and run call by call: cudaGraphInstantiate' "$W/err" || return 1
    why="logged: $(tail -n 1 "$W/none/run.jsonl")"
    grep '"type":"summary"' "$W/none/run.jsonl" | grep -q '"graphs":false' || return 1
    grep '"type":"summary"' "$W/graphs/run.jsonl" | grep -q '"graphs":true' || return 1
    why="other bits"
    [ -n "$(hash_of "$W/none")" ] && [ "$(hash_of "$W/none")" = "$(hash_of "$W/graphs")" ]
}

# The line says what was wanted, how much of it, how much there is, and what to do.
runs_out() {
    SPARSETRAIN_HOSTCUDA_MIB=$1 start 1 --data synthetic:256x16 --batch 64 --steps 1 --eval-every 0 --device cuda --out "$W/large"
    status=$?
    line=$(grep '^sparsetrain: ' "$W/err" | head -n 1)
    why="status $status: $line"
    [ $status -eq 1 ] && [ "$(our_lines)" -eq 1 ] || return 1
    for part in "no memory for" "MiB were asked for" "are free" "--batch"; do
        case $line in *"$part"*) ;; *) return 1 ;; esac
    done
}

# Rows of `bench net --kernels --json`: every call of a step, each with its layer, and shares that come to 1. Which of its
# two ways a convolution goes depends on what was measured; without plans (PLANS 0) it is one.
all_calls() { # all_calls PRECISION PLANS: of ResNet-20, which has 19 convolutions
    SPARSETRAIN_CUDNN_PLANS=$2 start 1 bench net --kernels --json --batch 2 --repeat 2 --device cuda --precision $1
    status=$?
    why="status $status: $(head -c 300 "$W/err") $(head -n 2 "$W/out")"
    [ $status -eq 0 ] || return 1
    norm=6
    [ "$1" != f32 ] || norm=4 # planes, of which each is a block's
    plans='|BackendExecute'
    [ "$2" != 0 ] || plans=
    for count in "19 \"pass\":\"forward\",\"call\":\"cudnn(ConvolutionForward$plans)\"" \
        "37 \"pass\":\"backward\",\"call\":\"cudnn(ConvolutionBackwardFilter|ConvolutionBackwardData$plans)\"" \
        '1 "layer":"sgd","pass":"update","call":"update_all"' '1 "number":1,"layer":"input"' \
        '1 "layer":"loss","pass":"forward"' "$norm \"layer\":\"stage2.block1.bn2\"" '0 "layer":""' '0 "call":""'; do
        why="not ${count%% *} rows with ${count#* }: $(grep -cE -- "${count#* }" "$W/out")"
        [ "$(grep -cE -- "${count#* }" "$W/out")" -eq "${count%% *}" ] || return 1
    done
    why="shares: $(sed 's/.*"share":\([^,]*\),.*/\1/' "$W/out" | awk '{ all += $1 } END { print all }')"
    sed 's/.*"seconds":\([^,]*\),"share":\([^,]*\),.*/\1 \2/' "$W/out" |
        awk '$1 < 0 || $2 < 0 { exit 1 } { all += $2 } END { exit !(all > 0.999 && all < 1.001) }'
}
if [ -z "${SPARSETRAIN_TEST_DEVICE:-}" ]; then
    check "bench net --kernels: not on the CPU" mistaken "--kernels is for devices that work beside the host: use --device cuda" 1 bench net --kernels --batch 2 --device cpu
    on_the_cpu
elif [ -n "${SPARSETRAIN_TEST_EMULATED:-}" ]; then
    on_the_gpu hostcuda
    for precision in f32 bf16; do
        check "where a step goes, $precision" all_calls $precision 1
        check "and without plans" all_calls $precision 0
    done
    for p in 1 2; do check "passes that cannot be recorded, P = $p" goes_plain $p; done
    SPARSETRAIN_HOSTCUDA_FAIL=cudaGraphInstantiate "$PROGRAM" bench net --model resnet20 --batch 1 --steps 1 --repeat 1 --device cuda --json > "$W/out" 2> "$W/err"
    check "bench net: its row says so" grep -q '"graphs":false' "$W/out"
    check "and a line" grep -q '^sparsetrain: batch 1: passes cannot be recorded on this GPU' "$W/err"
    check "memory that runs out: what for, how much, and which option" runs_out 20
else
    on_the_gpu cuda
    for precision in f32 bf16; do
        check "where a step goes, $precision" all_calls $precision 1
        check "and without plans" all_calls $precision 0
    done
fi
finish
