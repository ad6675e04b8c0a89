# shellcheck shell=sh
# shellcheck disable=SC2034 # what the IDs use
# cluster.sh: sourced after lib.sh by the IDs of gTop-k's cluster of 32 nodes on 1 Gbit/s Ethernet: a step of its four models in
# simulation (simulate.sh), computing for as long as one GPU of the paper does (v1, Table VI). The paper does not print how
# long its GPUs select, so selection takes no time here: ours is communication alone.
#
#     weak vgg16 32        # vgg16-p32.jsonl: dense, topka and gtopk
#     step_seconds vgg16 32 gtopk
#     communication vgg16 32 gtopk
. scripts/reproduce/lib.sh

need_simulator

models='vgg16 resnet20 alexnet resnet50'
algos='dense topka gtopk'
# model_is MODEL: sets name (in the paper's tables), n (parameters), scale (an S-th of the entries over an S-th of the
# bandwidth, for memory and time). VGG-16 and ResNet-20 as sparsetrain counts them; AlexNet and ResNet-50 as usual for 1000
# classes, which the paper does not print.
model_is() {
    case $1 in
    vgg16) name=VGG-16 n=14728266 scale=$(pick 5 50) ;;
    resnet20) name=ResNet-20 n=269722 scale=1 ;;
    alexnet) name=AlexNet n=61100840 scale=$(pick 20 100) ;;
    resnet50) name=ResNet-50 n=25557032 scale=$(pick 10 50) ;;
    esac
    compute=$(published gtopk-single-gpu.csv iteration_s model="$name")
    batch=$(published gtopk-single-gpu.csv batch model="$name")
}
cluster_density=$(published gtopk-models.csv density_after_warmup model=VGG-16)
# cluster_steps MODEL P NAME NET ALGOS OPTION...: MODEL-pPNAME.jsonl; the batch of a GPU stays what it is
cluster_steps() {
    model_is "$1"
    steps_file=$1-p$2$3.jsonl steps_p=$2 steps_net=$4 steps_algos=$5
    shift 5
    job "$steps_file" sh scripts/simulate.sh --net "$steps_net" --p "$steps_p" --algo "$steps_algos" --n "$n" --density "$cluster_density" \
        --scale "$scale" --compute "$compute" --steps 3 "$@"
}
weak() { cluster_steps "$1" "$2" '' 1gbe dense,topka,gtopk; } # weak MODEL P
# What the paper measured on its 1 Gbit/s is far above what its alpha and beta give, and near what a tenth of that bandwidth does (the
# start-ups as they are): narrow MODEL P ALGO OPTION...: MODEL-pP-tenth.jsonl, so; of dense as the ring that the paper reckons with.
narrow() {
    narrow_model=$1 narrow_p=$2 narrow_algo=$3
    shift 3
    cluster_steps "$narrow_model" "$narrow_p" -tenth scripts/reproduce/parts/tenth.net "$narrow_algo" "$@"
}
# step_seconds MODEL P ALGO: computing and exchange [s]; P with what follows it in the name of the file, as 32-tenth
step_seconds() { values "$1-p$2.jsonl" step_s --where "algo=$3"; }
# communication MODEL P ALGO: the exchange alone [s]; for the model of the last model_is
communication() { calc "$(step_seconds "$1" "$2" "$3") - $compute"; }
# by_table ALGO P N: what a step communicates by Table I on the paper's alpha and beta, for `calc` [ms]
by_table() {
    table_k=$(calc "int($3 * $cluster_density)")
    printf '(%s * %s + %s * %s)' "$(published gtopk-settings.csv value quantity=alpha version=both)" \
        "$(formula "$(published gtopk-costs.csv latency_alpha algorithm="$1")" "$2" "$3" "$table_k")" \
        "$(published gtopk-settings.csv value quantity=beta version=later)" \
        "$(formula "$(published gtopk-costs.csv bandwidth_beta algorithm="$1")" "$2" "$3" "$table_k")"
}
# table_seconds P ALGO: a step so, for the model of the last model_is
table_seconds() { calc "$compute + $(by_table "$2" "$1" "$n") / 1000"; }
# Images a second of 32 GPUs as the paper measured them, for the model of the last model_is.
measured_throughput() { published gtopk-throughput.csv "$1_images_per_s" model="$name"; }
