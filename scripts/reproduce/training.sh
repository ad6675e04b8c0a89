# shellcheck shell=sh
# training.sh: sourced after lib.sh by the IDs that train: the gTop-k paper's configuration in full, a few epochs of made-up
# data in quick mode, on 4 ranks as in its Section IV-B.
#
#     cifar gtopk.jsonl resnet20 --algo gtopk --density 0.001
#     words gtopk.jsonl --algo gtopk --density 0.005
#
# The first epochs have the paper's densities (the program's default), then the one that is given.
# shellcheck source=scripts/reproduce/lib.sh
. scripts/reproduce/lib.sh

# The model's name in the paper's tables.
model_of() {
    case $1 in
    resnet20) echo ResNet-20 ;;
    vgg16) echo VGG-16 ;;
    lstm) echo LSTM-PTB ;;
    esac
}
setting() { published gtopk-models.csv "$2" model="$(model_of "$1")"; }
training_ranks=$(published gtopk-settings.csv value quantity=ranks_of_convergence_runs)
full_epochs() { if [ -n "${REPRODUCE_EPOCHS:-}" ]; then echo "$REPRODUCE_EPOCHS"; else setting "$1" epochs; fi; }

[ -z "${REPRODUCE_EPOCHS:-}" ] || shortened="with --epochs $REPRODUCE_EPOCHS, which is not the paper's length"

# cifar FILE MODEL OPTION...: quick: 6 epochs of made-up images, of which 4 are the warm-up. $batch_of_rank, where it is set,
# instead of the paper's batch
batch_of_rank=
cifar() {
    cifar_file=$1 cifar_model=$2
    shift 2
    if [ -n "$quick" ]; then
        case $cifar_model in
        resnet20) cifar_data=synthetic:1600x400 cifar_batch=16 ;;
        *) # thirty steps of VGG-16 would jump about at a rate of 0.1
            cifar_data=synthetic:160x32 cifar_batch=8
            set -- --lr 0.02 "$@"
            ;;
        esac
        cifar_epochs=${REPRODUCE_EPOCHS:-6}
    else
        need_data cifar10
        cifar_data=cifar10
        cifar_batch=$(setting "$cifar_model" batch_per_gpu)
        cifar_epochs=$(full_epochs "$cifar_model")
    fi
    train "$cifar_file" "$training_ranks" --model "$cifar_model" --data "$cifar_data" --batch "${batch_of_rank:-$cifar_batch}" \
        --epochs "$cifar_epochs" "$@"
}
# words FILE OPTION...: LSTM-PTB with 1500 features and 20 streams a rank, as in the code of the paper (its Table III has
# 100); quick: 40 features, a made-up language
words() {
    words_file=$1
    shift
    if [ -n "$quick" ]; then
        set -- --data synthetic-text:40000x4000x4000 --hidden 40 --batch 10 --epochs "${REPRODUCE_EPOCHS:-6}" "$@"
    else
        need_data ptb
        words_epochs=$(full_epochs lstm)
        set -- --data ptb --hidden 1500 --batch 20 --epochs "$words_epochs" "$@"
    fi
    train "$words_file" "$training_ranks" --model lstm "$@"
}
# points FILE FILE: test accuracy of the first at its end over that of the second [percentage points]
points() {
    points_first=$(of "$1" summary test_accuracy) points_second=$(of "$2" summary test_accuracy)
    calc "100 * ($points_first - $points_second)"
}
# two_figures MODEL TITLE FILE=NAME...: loss and test accuracy (perplexity) of these runs against epochs
two_figures() {
    two_model=$1 two_title=$2
    shift 2
    case $two_model in
    lstm) two_key=valid_perplexity two_factor=1 two_label='validation perplexity' two_name=perplexity ;;
    *) two_key=test_accuracy two_factor=100 two_label='top-1 test accuracy [%]' two_name=accuracy ;;
    esac
    for two_pair in "$@"; do
        curve "${two_pair%%=*}" eval train_loss | block "${two_pair#*=}" >&3
        curve "${two_pair%%=*}" eval $two_key $two_factor | block "${two_pair#*=}" >&4
    done 3>"$out/loss-$two_model.dat" 4>"$out/$two_name-$two_model.dat"
    figure "loss-$two_model.png" "$out/loss-$two_model.dat" lines.gp title="$two_title" xlabel=epoch ylabel='training loss [nats]' yrange='0:*'
    figure "$two_name-$two_model.png" "$out/$two_name-$two_model.dat" lines.gp title="$two_title" xlabel=epoch ylabel="$two_label" yrange='0:*'
}
# learns ITEM PLACE FILE NAME: a row of quick mode alone, which cannot compare what the paper says: is the mean training loss
# lower in the last epoch than in the first?
learns() {
    [ -n "$quick" ] || return 0
    learns_so=$(curve "$3" eval train_loss | awk 'NR == 1 { first = $2 } { last = $2 } END { print (NR > 1 && last < first ? "yes" : "no") }')
    row "$1" "training loss of $4 falls" '' '' "$2" "$learns_so" real 'shape: lower in the last epoch than in the first'
}
# sensitivity MODEL BATCH QUANTITY: Fig. 13 and 14: gtopk against topka on 32 ranks with so many images each
sensitivity() {
    sensitivity_paper=$(published gtopk-text.csv value subject="$(model_of "$1") gtopk against topka" quantity="$3")
    sensitivity_source=$(published gtopk-text.csv source subject="$(model_of "$1") gtopk against topka" quantity="$3")
    training_ranks=$(pick 32 8)
    batch_of_rank=$(pick "$2" 4)
    REPRODUCE_EPOCHS=${REPRODUCE_EPOCHS:-$(pick 120 6)}
    for sensitivity_algo in topka gtopk; do
        cifar "$1-$sensitivity_algo.jsonl" "$1" --algo $sensitivity_algo --density 0.001
    done
    for sensitivity_algo in topka gtopk; do
        learns "$(model_of "$1"), P = $training_ranks" "$sensitivity_source" "$1-$sensitivity_algo.jsonl" $sensitivity_algo
    done
    row "$(model_of "$1"), P = $training_ranks, batch $batch_of_rank a rank" 'test accuracy, topka over gtopk (paper: about)' 'percentage points' \
        "$sensitivity_paper" "$sensitivity_source" "$(points "$1-topka.jsonl" "$1-gtopk.jsonl")" real 'full: at most'
    two_figures "$1" "$(model_of "$1"), $training_ranks ranks" "$1-topka.jsonl=topka" "$1-gtopk.jsonl=gtopk"
}
# oktopk_images FILE EPOCHS OPTION...: the run of the Ok-Topk paper's VGG-16 on 16 GPUs (quick: ResNet-20 on 4 ranks, so many
# epochs of made-up images). Sets model and ranks.
oktopk_images() {
    images_file=$1
    if [ -n "$quick" ]; then
        model=resnet20 ranks=4 images_data=synthetic:1600x160 images_batch=16 images_epochs=$2
    else
        need_data cifar10
        model=vgg16 ranks=$(published oktopk-text.csv gpus model=VGG-16 subject='topkdsa and topka')
        images_data=cifar10 images_batch=$(published oktopk-models.csv batch_per_gpu model=VGG-16)
        images_epochs=$(published oktopk-text.csv value model=VGG-16 gpus=16 quantity=epochs)
    fi
    shift 2
    train "$images_file" "$ranks" --model $model "$@" --density-warmup none --data $images_data --batch "$images_batch" --epochs "${REPRODUCE_EPOCHS:-$images_epochs}"
}
