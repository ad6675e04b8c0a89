#!/bin/sh
# measure-costs.sh: what local work takes on this machine, as a table for simulations of clusters of such machines
# (simulate.sh --costs; docs/simulation.md says what the columns are). For each model: computing of a step (bench net),
# selection (bench select), packing and merging for each word received (bench on 2 ranks or 4, by algorithm and wire),
# adding a value of a dense sum (predict --best).
# Nothing else should run meanwhile. Interrupted, it goes on where it was: what is finished stands in build/costs/.
set -u
LC_ALL=C
export LC_ALL
# shellcheck source=scripts/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
usage() {
    cat <<'END'
usage: measure-costs.sh [OPTIONS]
  --device NAME    cpu or cuda (default cpu): one core, or one GPU, a rank
  --out FILE       the table (default results/measured/costs/costs.csv); its rows of other devices stay
  --models LIST    of resnet20, vgg16, lstm, alexnet, resnet50, bert (default all)
  --density LIST   shares selected (default 0.001,0.01,0.02)
  --wire LIST      wire formats (default coo32,packed-f32,packed-fast-f32,packed,packed-fast)
  --ranks LIST     on how many ranks words are timed (default 2, and 4 where there are 4 cores; hitopk: 4)
  --profile FILE   of sparsetrain fit: how gradients of ranks overlap (default: of a short training run on made-up images)
  --jobs DIR       where the output of finished jobs lies (default build/costs/DEVICE)
  --quick          short gradients, small batches, to see that it works; to build/costs-quick/costs.csv
BUILD names the build folder. Exit status: 0; 1 when something failed, which the rows then lack; 2 for a mistake.
END
}

device=cpu out='' models=resnet20,vgg16,lstm,alexnet,resnet50,bert densities=0.001,0.01,0.02 wires=coo32,packed-f32,packed-fast-f32,packed,packed-fast ranks='' jobs='' profile='' quick=''
command="sh scripts/measure-costs.sh$([ $# -eq 0 ] || printf ' %s' "$@")"
options_plain=yes
options 'quick!quick device out/ models density:densities wire:wires ranks jobs/ profile/' "$@"
cores=$(getconf _NPROCESSORS_ONLN)
[ -n "$ranks" ] || ranks=2$([ "$cores" -lt 4 ] || echo ,4)
for P in $(echo "$ranks" | tr , ' '); do
    case $P in *[!0-9]* | 0 | 1) fail "--ranks $ranks: whole numbers from 2 on, as 2,4" ;; esac
done
case $device in cpu | cuda) ;; *) fail "--device $device: cpu or cuda" ;; esac
[ -z "$profile" ] || [ -f "$profile" ] || fail "there is no file $profile"
cd "$(dirname "$0")/.." || exit 1
build=${BUILD:-build}
need_program
if [ -z "$out" ]; then
    if [ -n "$quick" ]; then out=$build/costs-quick/costs.csv; else out=results/measured/costs/costs.csv; fi
elif [ -n "$quick" ]; then
    folder=$(dirname "$out")
    while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
    case $(cd "$folder" && pwd -P)/ in
    "$(pwd -P)/results/measured/"*) fail "--quick does not write to results/measured, which holds full results" ;;
    esac
fi
raw=${jobs:-$build/costs${quick:+-quick}/$device}
# shellcheck source=scripts/mpi-env.sh
. scripts/mpi-env.sh

# named TABLE [OPTION...]: the names in it
named() {
    named_table=$1
    shift
    "$program" list --json | "$program" rows - --each "$named_table" --keys name "$@"
}
list() { paste -s -d , -; }
# Dense sums run beside their transfers in any good MPI, and of them adding alone is measured (docs/simulation.md); fedavg has none.
uncharged=$(named exchanges --where sparse=false --where codes=false)
# What codes every entry in a way of its own (qsgd, powersgd) has two rows, for all densities.
coders=$(named exchanges --where codes=true | list)
# What goes by nodes (hitopk) is a row of its own. What has no selector (micro) is timed in its own steps.
on_any_ranks=$(named exchanges --where sparse=true --where by_node=false | list)
own_ways=$(named exchanges --where sparse=true --where selects=false)
selectors=$(named selectors | grep -vx reuse | list)
renewal=32 # steps between exact thresholds of reuse, the default of the program

# model_is MODEL: sets n (of the zoo: as the program says; AlexNet and ResNet-50 as usual for 1000 classes; BERT of the
# Ok-Topk paper), reference (row of the gTop-k paper's single GPUs), net (options of bench net; none: not in the zoo)
model_is() {
    n='' reference='' net=''
    case $1 in
    resnet20 | vgg16 | lstm) n=$("$program" list | sed -n "s/^  $1 .* \([0-9,]*\) parameters.*/\1/p" | tr -d ,) ;;
    alexnet) n=61100840 reference=AlexNet ;;
    resnet50) n=25557032 reference=ResNet-50 ;;
    bert) n=$(awk -F , '$2 == "BERT" { print $3 }' results/published/oktopk-models.csv) ;;
    *) fail "there is no model $1; there are: resnet20, vgg16, lstm, alexnet, resnet50, bert" ;;
    esac
    steps='--steps 1 --repeat 5'
    [ "$device" = cpu ] || steps='--steps 10 --repeat 7'
    case $1 in
    resnet20) reference=ResNet-20 net="--batch $(batch 128) --steps 5 --repeat 5" ;;
    vgg16) reference=VGG-16 net="--batch $(batch 128) $steps" ;;
    lstm) net=$steps && [ -z "$quick" ] || net="--hidden 200 --batch 4 $steps" ;;
    esac
    [ -z "$quick" ] || [ "$n" -le 200000 ] || n=200000
    # Short gradients are measured more often, and their words in three rounds, of which the middle one counts: a step
    # that was disturbed is a large part of a mean.
    rounds=3
    if [ "$n" -lt 5000000 ]; then repeat=40 word_steps=20; elif [ "$n" -lt 30000000 ]; then repeat=10 word_steps=3; else repeat=5 word_steps=2 rounds=1; fi
    settle=20
    [ -z "$quick" ] || repeat=3 word_steps=2 settle=2
}
batch() { if [ -n "$quick" ]; then echo 4; else echo "$1"; fi; }
models=$(echo "$models" | tr , ' ')
for model in $models; do model_is "$model"; done

# -- jobs --------------------------------------------------------------------------------------------------------------
make_scratch
mkdir -p "$raw"
running='' failed=0 began=$(date +%s)
end() {
    [ -z "$running" ] || kill "$running" 2>/dev/null
    exit "$1"
}
trap 'end 130' INT
trap 'end 143' HUP TERM
# job FILE COMMAND...: its standard output becomes $raw/FILE, whole or not at all; not again once it is finished. Its
# last line is the command, at its commit.
job() {
    job_file=$raw/$1
    shift
    job_line="# $commit: $*"
    [ "$(tail -n 1 "$job_file" 2>/dev/null)" != "$job_line" ] || return 0
    say "$*"
    rm -f "$job_file"
    "$@" >"$scratch/out" 2>"$scratch/err" </dev/null &
    running=$!
    wait "$running"
    job_status=$?
    running=''
    [ $job_status -le 128 ] || exit $job_status # a signal: everything ends
    if [ $job_status -gt 0 ]; then
        say "status $job_status: $(grep '^sparsetrain: ' "$scratch/err" || tail -n 3 "$scratch/err")"
        failed=$((failed + 1))
        return 1
    fi
    echo "$job_line" >>"$scratch/out"
    mv "$scratch/out" "$job_file"
}

# Which device that is; nothing is measured where it cannot be used.
"$program" bench select --n 1000 --density 0.1 --select exact --repeat 1 --device "$device" --json >"$scratch/device" 2>"$scratch/err" ||
    fail "$(sed 's/^sparsetrain: //' "$scratch/err")"
device_is() { "$program" rows "$scratch/device" --keys "$1"; }
label=$(device_is device)
awk '$1 > 0.5 { exit 1 }' /proc/loadavg 2>/dev/null || say "something else runs here (load $(cut -d ' ' -f 1 /proc/loadavg)): these times will be too long"

# How gradients of different ranks overlap: of 20 steps on synthetic images, the same on every machine.
if [ -z "$profile" ]; then
    profile=$raw/profile
    train="--model resnet20 --data synthetic --batch $(batch 32) --algo topka --density 0.01 --density-warmup none --steps 20 --eval-every 0"
    if [ ! -f "$profile" ]; then
        rm -rf "$raw/recorded" "$raw/run" "$raw/recording.txt"
        # shellcheck disable=SC2086 # a list of options
        job recording.txt "$MPIRUN" -np 4 "$program" train --device cpu $train --record "$raw/recorded" --record-what selected \
            --record-every 5 --progress none --out "$raw/run" || exit 1
        "$program" fit "$raw/recorded" --out "$scratch/profile" >"$scratch/out" || exit 1
        mv "$scratch/profile" "$profile"
        rm -rf "$raw/recorded" "$raw/run"
    fi
fi

# Gradients of words: on the CPU as lists of what is not zero, for time and memory; packing and merging are the same.
lists=$device
[ "$device" = cuda ] || lists=sparse
# words FILE P WIRE ALGOS OPTION...
words() {
    words_file=$1 words_p=$2 words_wire=$3 words_algos=$4
    shift 4
    [ $rounds = 1 ] || words_algos=$words_algos,$words_algos,$words_algos
    job "$words_file" "$MPIRUN" -np "$words_p" "$program" bench --json --no-check --device "$lists" --pattern "fitted:$profile" --n "$n" \
        --density "$densities" --wire "$words_wire" --warmup 1 --repeat "$word_steps" --algo "$words_algos" "$@"
}
# hitopk sums vectors of n floats in host memory: 4 ranks of about this many bytes an entry
fits() { awk -v n="$n" '$1 == "MemAvailable:" { exit !($2 * 1024 > 4 * 16 * n) }' /proc/meminfo; }
for model in $models; do
    model_is "$model"
    # shellcheck disable=SC2086 # a list of options
    [ -z "$net" ] || job "net-$model.jsonl" "$program" bench net --json --device "$device" --model "$model" $net
    job "select-$model.jsonl" "$program" bench select --json --device "$device" --n "$n" --density "$densities" --select "$selectors" --repeat "$repeat"
    # a new threshold every 8 steps, so that a few steps have some of both kinds
    job "renew-$model.jsonl" "$program" bench select --json --device "$device" --n "$n" --density "$densities" --select reuse --tau-prime 8 --repeat 16
    job "sum-$model.jsonl" "$program" predict --best --json --device "$device" --net 1gbe --p 2 --n "$n" --density 0.01
    # in its first steps residuals grow so fast that micro looks for its thresholds anew
    for algo in $own_ways; do
        job "$algo-$model.jsonl" "$MPIRUN" -np 2 "$program" bench --json --no-check --device "$device" --pattern uniform --n "$n" \
            --density "$densities" --algo "$algo" --warmup $settle --repeat 5
    done
    for P in 1 2; do
        job "coded-$model-p$P.jsonl" "$MPIRUN" -np $P "$program" bench --json --no-check --device "$device" --pattern uniform --n "$n" \
            --algo "$coders" --warmup 1 --repeat "$repeat"
    done
    for wire in $(echo "$wires" | tr , ' '); do
        for P in $(echo "$ranks" | tr , ' '); do words "words-$model-$wire-p$P.jsonl" "$P" "$wire" "$on_any_ranks"; done
        if fits; then
            words "hitopk-$model-$wire.jsonl" 4 "$wire" hitopk --ranks-per-node 2
        else
            say "hitopk is left out for $model: too little memory is free"
            rm -f "$raw/hitopk-$model-$wire.jsonl"
        fi
    done
done

# -- the table ---------------------------------------------------------------------------------------------------------
# rows KIND: standard input: rows of the program's, as rows of the table
rows() {
    keys=algo,select,selector,wire,density,ranks,batch,sequence,words_per_s,images_per_s,median_s,reevaluated_s,select_s,words_received_mean,phases.select,phases.pack,phases.merge,sum_value_s
    grep '^{' | "$program" rows - --keys $keys | awk -F '\t' -v keys=$keys -v kind="$1" -v model="$model" -v n="$n" -v device="$label" -v renewal="$renewal" '
        BEGIN { for (i = split(keys, key, ","); i > 0; i--) column[key[i]] = i }
        function value(name) { return $column[name] }
        function row(what, algorithm, selector, wire, density, batch, ranks, seconds, rate, source) {
            printf "%s,%d,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", model, n, device, what, algorithm, selector, wire, density, batch,
                ranks, seconds == "" ? "" : sprintf("%.6g", seconds), rate == "" ? "" : sprintf("%.6g", rate), source
        }
        kind == "net" {
            words = value("words_per_s")
            rate = words != "" ? words : value("images_per_s")
            row("compute", "", "", "", "", value("batch"), "", value("batch") * (words != "" ? value("sequence") : 1) / rate, rate,
                "bench net")
        }
        kind == "select" { row("select", "", value("selector"), "", value("density"), "", "", value("median_s"), "", "bench select") }
        kind == "renew" {
            row("select", "", "reuse", "", value("density"), "", "", ((renewal - 1) * value("median_s") + value("reevaluated_s")) / renewal,
                "", "bench select: (" renewal - 1 " median_s + reevaluated_s) / " renewal)
        }
        kind == "sum" && value("sum_value_s") != "" { row("sum", "", "", "", "", "", "", value("sum_value_s"), "", "predict --best: sum_value_s") }
        kind == "own" { row("select", value("algo"), "", "", value("density"), "", value("ranks"), value("select_s"), "", "bench: select_s") }
        kind == "coded" { # on one rank, then on two: what it takes whatever comes in, and the rest for each word
            all = value("phases.select") + value("phases.pack") + value("phases.merge")
            if (value("ranks") == 1) {
                once[value("algo")] = all
                next
            }
            if (once[value("algo")] > all) once[value("algo")] = all
            row("select", value("algo"), "", "", "", "", 1, once[value("algo")], "", "bench: phases.select + phases.pack + phases.merge")
            row("word", value("algo"), "", "", "", "", value("ranks"), (all - once[value("algo")]) / value("words_received_mean"), "",
                "bench: (the same - that of one rank) / words_received_mean")
        }
        kind == "words" && value("words_received_mean") + 0 > 0 { # rounds in ascending order of their times
            id = value("algo") SUBSEP value("density")
            if (!(id in count)) {
                order[++ids] = id
                told[id] = $0
            }
            time = (value("phases.pack") + value("phases.merge")) / value("words_received_mean")
            for (at = ++count[id]; at > 1 && round[id, at - 1] > time; at--) round[id, at] = round[id, at - 1]
            round[id, at] = time
        }
        END {
            for (i = 1; i <= ids; i++) {
                id = order[i]
                $0 = told[id]
                row("word", value("algo"), value("select"), value("wire"), value("density"), "", value("ranks"), round[id, int((count[id] + 1) / 2)], "",
                    "bench: (phases.pack + phases.merge) / words_received_mean")
            }
        }'
}
# of_job KIND FILE...: rows of jobs that are finished; where one failed there are none
of_job() {
    of_kind=$1
    shift
    for of_file; do [ -f "$raw/$of_file" ] || return 0; done
    (cd "$raw" && cat "$@") | rows "$of_kind"
}
of_model() {
    model=$1
    model_is "$model"
    if [ -n "$net" ]; then of_job net "net-$model.jsonl"; else printf '%s,%s,%s,compute,,,,,,,,,not in the zoo\n' "$model" "$n" "$label"; fi
    of_job select "select-$model.jsonl"
    of_job renew "renew-$model.jsonl"
    of_job sum "sum-$model.jsonl"
    for algo in $own_ways; do of_job own "$algo-$model.jsonl"; done
    of_job coded "coded-$model-p1.jsonl" "coded-$model-p2.jsonl"
    for wire in $(echo "$wires" | tr , ' '); do
        for P in $(echo "$ranks" | tr , ' '); do of_job words "words-$model-$wire-p$P.jsonl"; done
        of_job words "hitopk-$model-$wire.jsonl"
    done
    for algo in $uncharged; do printf '%s,%s,%s,word,%s,,,,,,0,,not charged\n' "$model" "$n" "$label" "$algo"; done
}
# The GPU of the gTop-k paper: its numbers stay where they are.
published=results/published/gtopk-single-gpu.csv
of_paper() {
    model_is "$1"
    [ -z "$reference" ] || printf '%s,%s,p102-100,compute,,,,,,,,,%s model=%s\n' "$1" "$n" $published "$reference"
}
machine_here() {
    printf '%s, %s, %s' "$(machine_cpu)" "$(uname -sr)" "$("$program" --version | sed -n 's/^MPI *//p')"
    [ "$label" = cpu ] || printf ', %s' "$(device_is device_about)"
}
old=/dev/null
[ ! -f "$out" ] || old=$out
# of_others HEADS: what the table has of other devices: its lines about them, or its rows
of_others() {
    awk -F , -v mine="$label" -v heads="$1" '
        /^# [a-z0-9]* [a-z]*: / { split($0, word, " "); if (heads && word[2] != mine) print; next }
        /^#/ || $1 == "model" { next }
        !heads && $3 != mine && $3 != "p102-100" { print }' "$old"
}
{
    echo '# What local work takes, for simulate.sh --costs (docs/simulation.md has the columns). Made by scripts/measure-costs.sh:'
    of_others 1
    echo "# $label command: $command"
    echo "# $label commit: $commit"
    echo "# $label date: $(date -u +%Y-%m-%d)"
    echo "# $label machine: $(machine_here)"
    echo "# $label cores: $cores"
    [ -z "$quick" ] || echo "# $label mode: quick (short gradients and small batches, which nothing follows from)"
    echo model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source
    of_others ''
    for each in $models; do of_model "$each"; done
    for each in resnet20 vgg16 alexnet resnet50; do of_paper "$each"; done
} >"$scratch/table" || exit 1
mkdir -p "$(dirname "$out")" && cp "$scratch/table" "$out" || exit 1
say "wrote $out: $(grep -c ",$label," "$out") rows of $label, after $(($(date +%s) - began)) s"
[ $failed = 0 ] || {
    say "$failed jobs failed; what they would have measured is not in it"
    exit 1
}
