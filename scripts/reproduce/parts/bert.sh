# shellcheck shell=sh
# shellcheck disable=SC2034 # what the IDs use
# bert.sh: sourced after training.sh by the IDs that train BERT as Ok-Topk does: Adam with decoupled decay and a linear schedule, batch 8
# a rank, sequences of 128, density 1%, tau' = 128, no dense steps. The paper's is BERT-base on Wikipedia, 32 GPUs, up to 400,000
# iterations. Here it is BERT-base where there is a GPU, and else what two cores can train: BERT-tiny (8.3M parameters), at a rate of
# 1e-3, since so small a model bears more than 2e-4; both on WikiText-2, 4 ranks, 2,000 steps, and a schedule of that length (quick:
# one block of 32 features, made-up pairs, 2 ranks, 40 steps).
#
#     bert dense.jsonl "$bert_steps" --algo dense
#     algorithm_1 paper.jsonl
. scripts/reproduce/parts/training.sh
density=0.01
tau=$(published oktopk-models.csv tau_prime model=BERT)
ranks=$(pick 4 2)
bert_steps=$(pick 2000 40)
if [ -n "$quick" ]; then
    bert_name='a small BERT'
    reads_pairs || skip 'this build lacks utf8proc, for --data wiki: sh scripts/deps.sh text, then make'
    sh scripts/reproduce/parts/made-up-pairs.sh "$runs/pairs"
else
    need_data wiki
    bert_name=BERT-tiny
    if have_gpu; then bert_name=BERT-base; fi
fi
item="$bert_name, P = $ranks"
[ -n "$quick" ] || run_length="$bert_steps steps" # which is neither the paper's run nor the beginning of it
bert() { # bert FILE STEPS OPTION...
    bert_file=$1 bert_length=$2
    shift 2
    case $* in '--algo dense') ;; *) set -- "$@" --density "$density" --density-warmup none ;; esac
    case $bert_name in
    BERT-base) set -- --preset base "$@" ;;
    BERT-tiny) set -- --preset tiny --lr 1e-3 "$@" ;;
    *) set -- --layers 1 --heads 2 --hidden 32 --context 32 --lr 0.01 --lr-warmup-steps 4 "$@" --data "wiki:$runs/pairs" ;;
    esac
    train "$bert_file" "$ranks" --model bert "$@" --batch "$(published oktopk-models.csv batch_per_gpu model=BERT)" --steps "$bert_length" --eval-every 0
}
# algorithm_1 FILE: the run of Ok-Topk to the letter, with xi every 65 steps, which is odd, to meet all steps of a period (quick: 3): Fig.
# 5c, 6c and 13 have it in common
algorithm_1() { bert "$1" "$bert_steps" --algo oktopk --oktopk-thresholds paper --tau-prime "$tau" --log-xi "$(pick 65 3)"; }
# authors_code FILE: with thresholds moved as in the authors' code for BERT, and how many entries reach Gaussiank's threshold beside it
authors_code() { bert "$1" "$bert_steps" --algo oktopk --oktopk-thresholds code-bert --tau-prime "$tau" --log-xi "$(pick 65 3)" --audit "$(pick 5 1)"; }
led_by_counts() { bert "$1" "$bert_steps" --algo oktopk --tau-prime "$tau"; } # led_by_counts FILE: the same with our thresholds
