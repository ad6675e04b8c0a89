# shellcheck shell=sh
# training.sh: sourced after lib.sh by the IDs that train: the gTop-k paper's configuration in full, a few epochs of made-up
# data in quick mode, on 4 ranks as in its Section IV-B.
#
#     cifar dense.jsonl resnet20 --algo dense
#     gtopk_runs words gtopk.jsonl --density 0.005         # gtopk-paper.jsonl and gtopk.jsonl
#
# The first epochs have the paper's densities (the program's default), then the one that is given.
#
# Accuracies in results/measured are of 9,980 test images: the copy of CIFAR-10 that these runs read lacks 20 of the 10,000 test images (19
# ships and a horse); with all of them accuracies may differ by up to 0.2 points.
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
# length FULL: sets length_options: the whole of so many epochs, or its first $REPRODUCE_EPOCHS on the schedules of the whole;
# the rows and figures that follow say which, so where runs of several lengths come before them it is called again
length() {
    length_options="--epochs $1"
    if [ -n "$quick" ]; then run_length=quick; else run_length=full; fi
    if [ -z "${REPRODUCE_EPOCHS:-}" ] || holds "$REPRODUCE_EPOCHS >= $1"; then return 0; fi
    length_options="$length_options --stop-at $REPRODUCE_EPOCHS"
    [ -n "$quick" ] || run_length="first $REPRODUCE_EPOCHS of $1 epochs"
}
# The LSTM of Penn Treebank: the paper's, or a smaller one, which is what rows and figures call it then (--hidden).
lstm_features=${REPRODUCE_HIDDEN:-1500} lstm_name=LSTM-PTB
[ -n "$quick" ] || [ -z "${REPRODUCE_HIDDEN:-}" ] || lstm_name=LSTM-$REPRODUCE_HIDDEN
# The seeds of runs whose difference is small.
seeds=1
[ -n "$quick" ] || seeds=$(awk -v n="${REPRODUCE_SEEDS:-3}" 'BEGIN { for (i = 1; i <= n; i++) printf "%s%d", (i > 1 ? " " : ""), i }')
of_seed() { if [ "$2" = 1 ]; then echo "$1"; else echo "${1%.jsonl}-seed$2.jsonl"; fi; } # of_seed FILE SEED
# over_seeds COMMAND FILE ARGUMENT...: that command for FILE with each seed
over_seeds() {
    over_command=$1 over_file=$2
    shift 2
    for over_seed in $seeds; do
        over_name=$(of_seed "$over_file" "$over_seed")
        if [ "$over_seed" = 1 ]; then $over_command "$over_name" "$@"; else $over_command "$over_name" "$@" --seed "$over_seed"; fi
    done
}

# cifar FILE MODEL OPTION...: quick: 6 epochs of made-up images, of which 4 are the warm-up. Batch 32 a rank, 128 over the
# four: Table III prints 128, and the paper's b is of a worker, but the authors' public code (github.com/hclhkbu/gtopkssgd,
# exp_configs/resnet20.conf and vgg16.conf) has 32 for each, and so has Section V-B (P = 32, batch 1024 in all). $batch_of_rank,
# $epochs_of_run and $streams_of_rank, where they are set, instead of these and the paper's epochs
batch_of_rank='' epochs_of_run='' streams_of_rank=''
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
        length 6
    else
        job_needs_data cifar10
        cifar_data=cifar10
        cifar_batch=32
        length "${epochs_of_run:-$(setting "$cifar_model" epochs)}"
    fi
    # shellcheck disable=SC2086 # two or four words
    train "$cifar_file" "$training_ranks" --model "$cifar_model" --data "$cifar_data" --batch "${batch_of_rank:-$cifar_batch}" $length_options "$@"
}
# Of runs that are many: convolutions by Winograd's algorithm, which PyTorch takes on GPUs, too, where it is the fastest; on CPUs with
# AVX-512 a step of ResNet-20 takes a sixth (four ranks on two cores) to a quarter (one rank) less time with it. resnet20-exchanges has
# dense both ways.
quicker='--precision f32-winograd'
# words FILE OPTION...: LSTM-PTB with 1500 features (--hidden H: as many) and 20 streams a rank, as in the code of the paper (its Table III has
# 100); quick: 40 features, a made-up language
words() {
    words_file=$1
    shift
    if [ -n "$quick" ]; then
        length 6
        set -- --data synthetic-text:40000x4000x4000 --hidden 40 --batch 10 "$@"
    else
        job_needs_data ptb
        words_length "$(setting lstm epochs)"
        set -- --data ptb --hidden "$lstm_features" --batch "${streams_of_rank:-20}" "$@"
    fi
    # shellcheck disable=SC2086
    train "$words_file" "$training_ranks" --model lstm $length_options "$@"
}
# words_length FULL: `length`, of a smaller model than the paper's, too
words_length() {
    length "$1"
    case $lstm_name,$run_length in
    LSTM-PTB,* | *,quick) ;;
    *,full) run_length=$lstm_name ;;
    *) run_length="$run_length of $lstm_name" ;;
    esac
}
# What gtopk does with what its tree drops: its runs by the published rule, which loses gradient, and by ours. gtopk_runs COMMAND
# FILE ARGUMENT...: FILE and FILE with "-paper" before its end.
paper_of() { echo "${1%.jsonl}-paper.jsonl"; }
gtopk_runs() {
    gtopk_command=$1 gtopk_file=$2
    shift 2
    over_seeds "$gtopk_command" "$(paper_of "$gtopk_file")" "$@" --algo gtopk --gtopk-residual paper
    over_seeds "$gtopk_command" "$gtopk_file" "$@" --algo gtopk
}
# gain EXPRESSION FIRST SECOND: over the seeds that both have, the mean of that awk expression of a and b, what gain_of finds in the two
# files ($gain_key at their ends), and twice its standard error ("-" with one seed); nothing where no seed has both
gain_key=test_accuracy
gain_of() { of "$1" summary $gain_key; } # gain_of FILE
gain() {
    for gain_seed in $(seeds_of "$2" "$3"); do
        printf '%s %s\n' "$(gain_of "$(of_seed "$2" "$gain_seed")")" "$(gain_of "$(of_seed "$3" "$gain_seed")")"
    done | awk "$(cat scripts/lib/stats.awk)"'
        { a = $1; b = $2; x[NR] = '"$1"' }
        END { if (NR) printf "%.10g %s\n", mean(x, NR), (NR > 1 ? sprintf("%.3g", 2 * deviation(x, NR) / sqrt(NR)) : "-") }'
}
# seeds_of FILE...: those of which all of these files are there;  lacking FILE...: of these files, with all seeds, those that are not
seeds_of() {
    of_those=''
    for of_one in $seeds; do [ -n "$(seeds=$of_one lacking "$@")" ] || of_those="$of_those $of_one"; done
    printf '%s' "${of_those# }"
}
lacking() {
    lacking_names=''
    for lacking_file in "$@"; do
        for lacking_seed in $seeds; do
            lacking_name=$(of_seed "$lacking_file" "$lacking_seed")
            there "$lacking_name" || lacking_names="$lacking_names $lacking_name"
        done
    done
    printf '%s' "${lacking_names# }"
}
# unlike FILE...: what is to be said of these runs where the processors that made them have not the same instruction sets: sums are added
# in another order there, and from the same seed a run takes another path, as from another seed
unlike() {
    unlike_sets=$(for unlike_file in "$@"; do
        if there "$unlike_file"; then values "$unlike_file" versions.simd --type header; fi
    done | sort -u | paste -s -d ' ' - | sed 's/ / and /g')
    case $unlike_sets in *' and '*) printf 'not on the same instruction sets: %s' "$unlike_sets" ;; esac
}
# $gain_spread: by how much runs of one kind are known to differ, where that is more than a rule allows: one seed then decides nothing.
# of_one_seed [NOTE]: a note, with what the report is to say of a comparison that hangs on runs with one seed;  one_seed_rule RULE: its rule
gain_spread=''
of_one_seed() {
    if [ -n "$quick" ]; then printf '%s' "${1:-}"; else printf '%sone seed%s' "${1:+$1; }" "${gain_spread:+ cannot tell: $gain_spread}"; fi
}
one_seed_rule() { if [ -n "$gain_spread" ]; then echo none; else echo "$1"; fi; }
# gain_row ITEM QUANTITY UNIT PAPER SOURCE RULE EXPRESSION FIRST SECOND [NOTE]: a row of that gain. A rule of "at least 0" or "at
# most 0" is within what one seed differs by from another: it is compared with several seeds alone, and right in direction
# where the mean is not beyond it by more than twice its standard error. Other rules compare one seed, too, where it can tell
# (one_seed_rule) and processors of one kind made both runs (`unlike`), and several where their bound is not within twice that error.
gain_row() {
    gain_rule=$6 gain_note=${10:-}
    gain_found=$(gain "$7" "$8" "$9")
    gain_mean=${gain_found% *} gain_error=${gain_found#* } gain_lacking=$(lacking "$8" "$9")
    gain_unlike=$(for gain_seed in $(seeds_of "$8" "$9"); do # each seed's two runs have one difference
        unlike "$(of_seed "$8" "$gain_seed")" "$(of_seed "$9" "$gain_seed")" && echo
    done | sed '/^$/d' | sort -u | paste -s -d ';' -)
    [ -z "$gain_unlike" ] || gain_note="${gain_note:+$gain_note; }$gain_unlike"
    case $gain_error in
    '') gain_rule=none ;;
    -)
        case $gain_rule in
        none) ;;
        *'at least 0' | *'at most 0') gain_rule=none gain_note="${gain_note:+$gain_note; }one seed cannot tell which of two is better" ;;
        *)
            if [ -n "$gain_unlike" ]; then
                gain_rule=none gain_note="$gain_note; one seed cannot tell"
            else
                gain_rule=$(one_seed_rule "$gain_rule") gain_note=$(of_one_seed "$gain_note")
            fi
            [ "$gain_rule" != none ] || direction none
            ;;
        esac
        ;;
    *)
        gain_note="${gain_note:+$gain_note; }mean of the seeds $(seeds_of "$8" "$9"), +-$gain_error (twice its standard error)"
        case $gain_rule in
        *'at least 0') direction "full: at least -$gain_error" ;;
        *'at most 0') direction "full: at most $gain_error" ;;
        *'at least '* | *'at most '*)
            gain_bound=${gain_rule##* }
            if holds "$gain_mean - $gain_error < $gain_bound && $gain_bound < $gain_mean + $gain_error"; then
                gain_rule=none gain_note="$gain_note; these seeds cannot tell: $gain_bound is within that"
                direction none
            fi
            ;;
        esac
        ;;
    esac
    [ -z "$gain_lacking" ] || gain_note="${gain_note:+$gain_note; }$(not_yet "$gain_lacking")"
    row "$1" "$2" "$3" "$4" "$5" "$gain_mean" real "$gain_rule" "$gain_note"
}
points='100 * (a - b)' # percentage points, of accuracies
# shellcheck disable=SC2034 # of the IDs with texts
above='100 * (a / b - 1)' # how far the first perplexity lies above the second [%]
# residual_rows CLAIM ITEM QUANTITY UNIT SOURCE RULE EXPRESSION FILE OTHER [OTHER-PAPER]: gains of gtopk over that other run, by the
# published residual, which decides on the claim, and by ours
residual_rows() {
    claim "$1"
    gain_row "$2, published residual" "$3" "$4" '' "$5" "$6" "$7" "$(paper_of "$8")" "${10:-$9}"
    claim
    gain_row "$2, our residual" "$3" "$4" '' "$5" "$6" "$7" "$8" "$9"
}
# lowest_row ITEM PLACE FILE DENSE: of texts. A rate that stays lets the training text be learnt by heart after some epochs: who learns slower is
# then ahead at the end, so the lowest perplexity stands beside it
lowest_row() {
    row "$1" 'lowest validation perplexity, over that of dense' % '' "$2" "$(calc "100 * ($(lowest_perplexity "$3") / $(lowest_perplexity "$4") - 1)")" real none
}
lowest_perplexity() { values "$1" valid_perplexity --type eval | sort -g | head -n 1; }
# mean_of_last N: of the y of a curve
mean_of_last() { tail -n "$1" | awk '{ sum += $2 } END { if (NR) print sum / NR }'; }
# sent FILE: bytes that a rank sent in all of a run, the mean over them: what its log says, of older ones reckoned from the steps kept
scripts=scripts # of read_log
sent() {
    here_now "$1" || return 0
    read_log "$out/$1" "$out/.sent" && sed -n 's/^bytes=//p' "$out/.sent.facts"
    rm -f "$out"/.sent.*
}
# two_figures MODEL ITEM PLACE TITLE FILE=NAME...: loss and test accuracy (perplexity) of these runs against epochs; in quick mode
# rows that say whether they learn, too
two_figures() {
    two_model=$1 two_item=$2 two_place=$3 two_title=$4
    shift 4
    for two_pair in "$@"; do learns "$two_item" "$two_place" "${two_pair%%=*}" "${two_pair#*=}"; done
    case $two_model in
    lstm) two_key=valid_perplexity two_factor=1 two_label='validation perplexity' two_name=perplexity ;;
    *) two_key=test_accuracy two_factor=100 two_label='top-1 test accuracy [%]' two_name=accuracy ;;
    esac
    for two_pair in "$@"; do
        there "${two_pair%%=*}" || continue
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
    learns_against=$row_against learns_claim=$row_claim
    against self
    claim
    learns_so=$(curve "$3" eval train_loss | awk 'NR == 1 { first = $2 } { last = $2 } END { print (NR > 1 && last < first ? "yes" : "no") }')
    row "$1" "training loss falls: $4" '' '' "$2" "$learns_so" real 'shape: lower in the last epoch than in the first'
    row_against=$learns_against row_claim=$learns_claim
}
# sensitivity MODEL BATCH QUANTITY CLAIM: Fig. 13 and 14: gtopk against topka on 32 ranks with so many images each
sensitivity() {
    look_up gtopk-text.csv value subject="$(model_of "$1") gtopk against topka" quantity="$3"
    training_ranks=$(pick 32 8)
    batch_of_rank=$(pick "$2" 4) epochs_of_run=$(pick 120 6)
    # shellcheck disable=SC2086 # words
    over_seeds cifar "$1-topka.jsonl" "$1" $quicker --algo topka --density 0.001
    # shellcheck disable=SC2086
    gtopk_runs cifar "$1-gtopk.jsonl" "$1" $quicker --density 0.001
    sensitivity_item="$(model_of "$1"), P = $training_ranks, batch $batch_of_rank a rank"
    claim "$4"
    against measured
    direction 'full: at least 0'
    gain_row "$sensitivity_item, published residual" 'test accuracy, topka over gtopk (paper: about)' 'percentage points' "$paper" \
        "$source" 'full: within 2' "$points" "$1-topka.jsonl" "$1-gtopk-paper.jsonl"
    claim
    gain_row "$sensitivity_item, our residual" 'test accuracy, topka over gtopk (paper, with its own: about)' 'percentage points' "$paper" \
        "$source" 'full: at most' "$points" "$1-topka.jsonl" "$1-gtopk.jsonl" 'ours keeps what the tree drops, so it should lose no more'
    two_figures "$1" "$sensitivity_item" "$source" "$(model_of "$1"), $training_ranks ranks" "$1-topka.jsonl=topka" "$1-gtopk-paper.jsonl=gtopk, published residual" \
        "$1-gtopk.jsonl=gtopk, our residual"
}
# oktopk_images FILE EPOCHS OPTION...: the run of the Ok-Topk paper's VGG-16 on 16 GPUs, the first 512 steps dense as in its code
# (quick: ResNet-20 on 4 ranks, so many epochs of made-up images, 10 steps of them dense). Sets model and ranks; $ranks_of_run in
# place of the 16. Of --algo dense alone all steps are dense.
ranks_of_run=''
oktopk_dense_steps=$(pick 512 10)
oktopk_images() {
    images_file=$1
    if [ -n "$quick" ]; then
        model=resnet20 ranks=4 images_data=synthetic:1600x160 images_batch=16 images_epochs=$2
    else
        job_needs_data cifar10
        model=vgg16 ranks=${ranks_of_run:-$(published oktopk-text.csv gpus model=VGG-16 subject='topkdsa and topka')}
        images_data=cifar10 images_batch=$(published oktopk-models.csv batch_per_gpu model=VGG-16)
        images_epochs=$(published oktopk-text.csv value model=VGG-16 gpus=16 quantity=epochs)
    fi
    shift 2
    images_sparse="--density-warmup none --dense-steps $oktopk_dense_steps"
    case $* in '--algo dense') images_sparse='' ;; esac
    length "$images_epochs"
    # shellcheck disable=SC2086
    train "$images_file" "$ranks" --model $model "$@" $images_sparse --data $images_data --batch "$images_batch" $length_options
}
