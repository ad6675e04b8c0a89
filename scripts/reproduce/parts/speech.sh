# shellcheck shell=sh
# shellcheck disable=SC2034 # what the IDs use
# speech.sh: sourced by the IDs that train the recogniser of speech as Ok-Topk does: SGD at 1e-3 (the rest of its rates as docs/training.md
# has them), density 2%, tau' = 32. The paper's is the model of 27.6M parameters on AN4, batch 2 on each of 32 GPUs, 160 epochs, which are
# 2,400 steps. Here it is that where there is a GPU, its 32 ranks on it, and else what two cores can train: two layers of 256 (2.4M
# parameters) on all of AN4, 4 ranks, batch 4 each, 40 epochs of 60 steps, as many as the paper's, over which the rate falls as over its 160
# epochs, from 2e-3 on (quick: one layer of 16, made-up speech, 2 ranks, 6 epochs). With speech_batches=paper the reduced model, too, has
# the paper's 32 ranks, batch 2, rate and 160 epochs (quick: 4 ranks, batch 2).
#
#     speech dense.jsonl --algo dense
#     algorithm_1 paper-0.02.jsonl 0.02
. scripts/reproduce/parts/training.sh
paper_batch=$(published oktopk-models.csv batch_per_gpu model=LSTM)
tau=$(published oktopk-models.csv tau_prime model=LSTM)
density=0.02
[ -z "$quick" ] || reads_speech || skip 'this build lacks FFTW, for --data speech: sh scripts/deps.sh speech, then make'
[ -n "$quick" ] || need_data an4
if [ -n "$quick" ]; then
    ranks=2 speech_name='a small recogniser' speech_epochs=6 speech_batch=4
    set -- --layers 1 --hidden 16 --lr 0.01 --data "speech:$runs/speech"
    sh scripts/reproduce/parts/made-up-speech.sh "$runs/speech"
elif have_gpu; then
    ranks=32 speech_name=LSTM-AN4 speech_epochs=160 speech_batch=$paper_batch
    set --
else
    ranks=4 speech_name='2 layers of 256 on AN4' speech_epochs=40 speech_batch=4
    set -- --layers 2 --hidden 256
    # the paper's division by 1.01 at each of 160 epochs, four of them at each of 40
    [ -n "${speech_batches:-}" ] || set -- "$@" --lr 0.002 --lr-schedule decay:1:0.96098
fi
if [ -n "${speech_batches:-}" ]; then
    ranks=$(pick 32 4) speech_batch=$paper_batch speech_epochs=$(pick 160 6)
fi
speech_model=$(quoted "$@")
item="$speech_name, P = $ranks"
# what rows and figures call the length of these runs: of the reduced model it is not the paper's
length "$speech_epochs"
case $speech_name,$run_length in
LSTM-AN4,* | *,quick) ;;
*,full) run_length="$speech_epochs epochs" ;;
esac
# speech FILE OPTION...: sparse exchanges send all of the first 128 steps, as the code of the paper does
speech_dense_steps=$(pick 128 4)
speech() {
    speech_file=$1
    shift
    case $* in '--algo dense'*) ;; *) set -- "$@" --density-warmup none --dense-steps "$speech_dense_steps" ;; esac
    eval "set -- $speech_model $(quoted "$@")"
    # shellcheck disable=SC2086 # two or four words
    train "$speech_file" "$ranks" --model speech "$@" --batch "$speech_batch" $length_options
}
# by_rule RULE FILE DENSITY [OPTION...]: Ok-Topk with thresholds by that rule, with xi every $xi_every steps: 65, which is odd, to meet all steps of a period (quick: 3)
xi_every=$(pick 65 3)
by_rule() {
    thresholds=$1 by_rule_file=$2 by_rule_density=$3
    shift 3
    speech "$by_rule_file" --algo oktopk --oktopk-thresholds "$thresholds" --density "$by_rule_density" --tau-prime "$tau" --log-xi "$xi_every" "$@"
}
# algorithm_1 FILE DENSITY [OPTION...]: to the letter: Fig. 5b, 6b and 11 have it in common;  authors_code FILE DENSITY [OPTION...]: moved as in the
# authors' code for this model, and how many entries reach Gaussiank's threshold beside it: Fig. 5b, 6b and 11;  led_by_counts FILE [OPTION...]: ours
algorithm_1() { by_rule paper "$@"; }
authors_code() { by_rule code-lstm "$@" --audit "$(pick 5 1)"; }
led_by_counts() { speech "$@" --algo oktopk --density "$density" --tau-prime "$tau"; }
