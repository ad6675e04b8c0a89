# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # what the IDs use; what lib.sh has
# aries.sh: sourced by the IDs that are about times on Ok-Topk's machine, Piz Daint: one P100 a node, Cray Aries between them. The
# model is $aries_model: VGG-16 (batch 16 a GPU, density 2%; also where it is not set), LSTM (on AN4: batch 2, density 2%) or BERT (batch 8,
# density 1%). A step is computing and input, selection, communication:
#   communication  simulated (simulate.sh --net aries: 1.3 us, 9607 MB/s; the paper states neither), packing and merging in no time
#   selection      measured here on the GPU, or else on one CPU core, of n entries: `exact` for what the paper gives torch.topk
#                  (topka, topkdsa, gtopk), `gaussian` for gaussiank, `reuse` for oktopk with an `exact` in each tau' steps; medians
#   computing, io  not printed in the paper: what it can be at most, the whole step of Ok-Topk, the fastest, on the fewest GPUs that
#                  have a printed time. VGG-16: 16, the shortest time in Fig. 9a over the steps of 160 epochs. LSTM: 32, the 8.8
#                  minutes in Fig. 11a over those of 160 epochs. BERT: 32, the 47 hours of Section 5.4.3 over 400,000 iterations
#
#     weak_scaling VGG-16 16 32   # the jobs, and rows and figures of what they communicate and select
#     weak 16                     # the jobs of so many ranks alone
#     weak_ratio smallest 16 step_seconds # of the others over oktopk
#     communication oktopk 16     # [s], beyond computing: of dense-ovlp what is not hidden
#     selection oktopk            # [s]
#     step_seconds oktopk 16      # [s]
need_simulator

algos='dense dense-ovlp topka topkdsa gtopk gaussiank oktopk'
aries_model=${aries_model:-VGG-16}
tau_prime=$(published oktopk-models.csv tau_prime model="$aries_model")
n=$(published oktopk-models.csv parameters model="$aries_model")
pattern=uniform
case $aries_model in
VGG-16)
    density=0.02
    scale_of() { pick 5 50; }
    fastest_label=4 # in Fig. 9a; of Fig. 9b the third
    all_epochs=$(published oktopk-text.csv value model=VGG-16 gpus=16 quantity=epochs)
    fastest_minutes=$(published oktopk-fig9.csv runtime_min gpus=16 label=$fastest_label)
    # steps_of P: of one epoch of CIFAR-10
    steps_of() { calc "50000 / $(published oktopk-text.csv value model=VGG-16 gpus="$1" quantity='global batch')"; }
    compute=$(calc "60 * $fastest_minutes / ($all_epochs * $(steps_of 16))")
    ;;
LSTM)
    density=0.02
    scale_of() { pick $((5 * $1 / 8)) 200; } # so that simulate.sh holds the memory of a small machine for enough
    pattern=fitted:results/measured/profiles/speech-p4-0.02 # what its ranks select
    all_epochs=$(published oktopk-text.csv value model=LSTM gpus=32 subject=training quantity=epochs)
    # of the 948 utterances of AN4
    steps_of() { calc "948 / ($1 * $(published oktopk-models.csv batch_per_gpu model=LSTM))"; }
    minutes() { published oktopk-text.csv value model=LSTM gpus=32 subject="$1" quantity='training time of 160 epochs'; }
    compute=$(calc "60 * $(minutes oktopk) / ($all_epochs * $(steps_of 32))")
    ;;
BERT)
    density=0.01
    scale_of() { # so that simulate.sh holds the memory of a small machine for enough
        case $1 in 32 | 64) pick $((2 * $1)) 4096 ;; *) pick 400 4096 ;; esac
    }
    pattern=fitted:results/measured/profiles/bert-base-p4-0.01 # what its ranks select: fill-in depends on it
    all_steps=$(published oktopk-text.csv value model=BERT gpus=32 subject=training quantity=iterations)
    hours() { published oktopk-text.csv value model=BERT subject="$1" quantity='training time of 400000 iterations'; }
    compute=$(calc "3600 * $(hours oktopk) / $all_steps")
    ;;
esac
if have_gpu; then select_device=cuda select_note=''; else select_device=cpu select_note='with selection as measured on one CPU core'; fi

# scale_of P: the S of the simulation
# weak P: oktopk through a period of its regions (tau = 64; quick: 16 steps)
weak() {
    scale=$(scale_of "$1")
    # the buckets of dense-ovlp shrink with the gradient
    weak_bytes=$((4194304 / scale / 4 * 4))
    set -- "$1" --n "$n" --density "$density" --scale "$scale" --compute "$compute"
    [ $pattern = uniform ] || set -- "$@" --pattern $pattern --device sparse
    weak_p=$1
    shift
    # all steps are alike but for the first: of 256 ranks, whose many buckets of dense-ovlp take minutes a step, one is enough
    case $weak_p in 256) weak_steps='1 -- --warmup 1' ;; *) weak_steps="$(pick 5 3) --" ;; esac
    # shellcheck disable=SC2086 # words
    job "p$weak_p.jsonl" sh scripts/simulate.sh --net aries --p "$weak_p" --algo dense,dense-ovlp,topka,topkdsa,gtopk,gaussiank "$@" \
        --steps $weak_steps --overlap-bytes $weak_bytes
    job "oktopk-p$weak_p.jsonl" sh scripts/simulate.sh --net aries --p "$weak_p" --algo oktopk "$@" --steps "$(pick 64 16)"
}
# weak_scaling MODEL P...: $section is where the paper has it
weak_scaling() {
    weak_model=$1
    shift
    measure_selection
    for weak_ranks in "$@"; do
        weak "$weak_ranks"
        weak_bars "$weak_ranks" "$weak_model"
    done
    selector_rows
}
weak_bars() { # weak_bars P MODEL
    bars_p=$1
    echo '"" "computation + io" sparsification communication' >"$out/p$1.dat"
    for algo in $algos; do
        row "$algo, P = $bars_p" 'communication of a step' ms '' "$section" "$(calc "1000 * $(communication "$algo" "$bars_p")")" simulated none
        printf '"%s" %s %s %s\n' "$algo" "$compute" "$(selection "$algo")" "$(communication "$algo" "$bars_p")" >>"$out/p$bars_p.dat"
    done
    figure "p$bars_p.png" "$out/p$bars_p.dat" bars.gp parts=3 title="$2, $bars_p ranks, density $density: communication simulated" \
        ylabel='time of a step [s]' note="the paper's bars have no numbers; its speed-ups and run times are in the table"
}
selector_rows() {
    for selector in gtopk gaussiank oktopk; do
        row "selector of $selector" "selection of a step on $select_device" ms '' "$section" "$(calc "1000 * $(selection $selector)")" real none
    done
}
weak_ratio() { # weak_ratio smallest|largest P SECONDS
    case $1 in smallest) ratio_line=1 ;; *) ratio_line=\$ ;; esac
    for algo in $algos; do
        [ "$algo" = oktopk ] || printf '%s\n' "$(calc "$($3 "$algo" "$2") / $($3 oktopk "$2")")"
    done | sort -g | sed -n ${ratio_line}p
}
# speed_up_rows P CLAIM QUANTITY GPUS: the least and the largest speed-up, which the paper has of this quantity on so many GPUs; and
# beside each that of communication alone
speed_up_rows() {
    for which in smallest largest; do
        look_up oktopk-text.csv value model="$aries_model" gpus="$4" quantity="$which speed-up of the $3"
        claim "$2"
        direction 'full: at least 1'
        row "P = $1" "step of the others over oktopk, $which" x "$paper" "$source" "$(weak_ratio $which "$1" step_seconds)" simulated 'full: within 25%' "$select_note"
        claim
        row "P = $1" "communication alone of the others over oktopk, $which" x "$paper" "$source" "$(weak_ratio $which "$1" communication)" simulated none \
            "the paper's is of the whole step"
    done
}
measure_selection() {
    job select.jsonl "$program" bench select --device "$select_device" --select exact,reuse,gaussian --n "$(pick "$n" 1000000)" --density "$density" --repeat "$(pick 64 8)" --json
}
communication() {
    case $1 in oktopk) communication_file=oktopk-p$2.jsonl ;; *) communication_file=p$2.jsonl ;; esac
    values "$communication_file" mean_s --where "algo=$1"
}
selection() {
    case $1 in
    dense*) echo 0 && return ;;
    gaussiank) of_selector gaussian ;;
    oktopk) calc "(($tau_prime - 1) * $(of_selector reuse) + $(of_selector exact)) / $tau_prime" ;;
    *) of_selector exact ;;
    esac
}
of_selector() { values select.jsonl median_s --where "selector=$1"; }
step_seconds() { calc "$compute + $(selection "$1") + $(communication "$1" "$2")"; }
