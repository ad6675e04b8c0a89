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
#
# By all this the paper's steps are far longer than ours. How far a slower network and slower selection explain that, by experiment:
#
#     narrow 32                   # the jobs on a tenth of the bandwidth, as in cluster.sh of another paper's cluster
#     narrow_seconds oktopk 32    # [s], with the selection that the paper's run times have in them (their_selection)
#     narrow_rows 32 'training time' 32 # both speed-ups so, compared with nothing
#     narrow_runs 32 1 2 3 4      # and beside each printed run time the step that is nearest
need_simulator

# run_seconds MODEL GPUS LABEL: a step of the run of Fig. 9 (VGG-16) or 11 (LSTM) with this label [s], by its minutes for 160 epochs
run_seconds() {
    calc "60 * $(run_label "$1" "$2" "$3" runtime_min) / ($(epochs_of "$1") * $(epoch_steps "$1" "$2"))"
}
# epochs_of MODEL: of its runs
epochs_of() { published oktopk-text.csv value model="$1" gpus="$(case $1 in VGG-16) echo 16 ;; *) echo 32 ;; esac)" subject=training quantity=epochs; }
# run_label MODEL GPUS LABEL COLUMN: of that label
run_label() { published "$(case $1 in VGG-16) echo oktopk-fig9.csv ;; *) echo oktopk-fig11.csv ;; esac)" "$4" gpus="$2" label="$3"; }
# epoch_steps MODEL GPUS: of CIFAR-10, or of the 948 utterances of AN4
epoch_steps() {
    case $1 in
    VGG-16) calc "50000 / $(published oktopk-text.csv value model=VGG-16 gpus="$2" quantity='global batch')" ;;
    LSTM) calc "948 / ($2 * $(published oktopk-models.csv batch_per_gpu model=LSTM))" ;;
    esac
}

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
    compute=$(run_seconds VGG-16 16 $fastest_label)
    ;;
LSTM)
    density=0.02
    scale_of() { pick $((5 * $1 / 8)) 200; } # so that simulate.sh holds the memory of a small machine for enough
    pattern=fitted:results/measured/profiles/speech-p4-0.02 # what its ranks select
    compute=$(run_seconds LSTM 32 1) # label 1: oktopk, by Section 5.4.2
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
# simulated P NAME NET COMPUTE: pPNAME.jsonl and oktopk-pPNAME.jsonl, of oktopk through a period of its regions (tau = 64; quick: 16 steps)
simulated() {
    simulated_p=$1 simulated_name=$2 simulated_net=$3 simulated_compute=$4
    scale=$(scale_of "$simulated_p")
    # the buckets of dense-ovlp shrink with the gradient
    simulated_bytes=$((4194304 / scale / 4 * 4))
    set -- --n "$n" --density "$density" --scale "$scale" --compute "$simulated_compute"
    [ $pattern = uniform ] || set -- "$@" --pattern $pattern --device sparse
    # all steps are alike but for the first: of 256 ranks, whose many buckets of dense-ovlp take minutes a step, one is enough
    case $simulated_p in 256) simulated_steps='1 -- --warmup 1' ;; *) simulated_steps="$(pick 5 3) --" ;; esac
    # shellcheck disable=SC2086 # words
    job "p$simulated_p$simulated_name.jsonl" sh scripts/simulate.sh --net "$simulated_net" --p "$simulated_p" \
        --algo dense,dense-ovlp,topka,topkdsa,gtopk,gaussiank "$@" --steps $simulated_steps --overlap-bytes $simulated_bytes
    job "oktopk-p$simulated_p$simulated_name.jsonl" sh scripts/simulate.sh --net "$simulated_net" --p "$simulated_p" --algo oktopk "$@" \
        --steps "$(pick 64 16)"
}
weak() { simulated "$1" '' aries "$compute"; } # weak P
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

# -- why the paper's steps are longer: an experiment -------------------------------------------------------------------------
# their_selection: sets theirs, what the paper's GPUs take for an exact selection of k of n entries, and merge, what a merge of gtopk's
# tree takes there [s], both by the printed run times of another model, so that no run time explains itself: of VGG-16 by the LSTM's, of
# the LSTM and BERT by VGG-16's. The slowest run is taken for gtopk's, whose selections in the tree the paper counts as communication. From
# P to 2P ranks it takes one merge more, by the entries that this keeps; an exact selection is what log2 P merges and computing, which is
# at most the fastest run's step, leave of its step on P, by the entries that it selects from.
their_selection() {
    case $aries_model in
    VGG-16) selection_by LSTM 32 2 4 1 ;;
    *) selection_by VGG-16 16 1 4 4 ;;
    esac
    theirs=$(calc "$per_entry * $n") merge=$(calc "$per_kept * int($density * $n)")
    narrow_compute=$(calc "$compute - $theirs / $tau_prime") # as oktopk selects so once in tau' steps, by its threshold in no time
}
# selection_by MODEL P SLOWEST SLOWEST-OF-2P FASTEST: the labels of runs. Both models have density 2%
selection_by() {
    by_n=$(published oktopk-models.csv parameters model="$1") by_step=$(run_seconds "$1" "$2" "$3")
    by_merge=$(calc "$(run_seconds "$1" $((2 * $2)) "$4") - $by_step")
    per_kept=$(calc "$by_merge / int(0.02 * $by_n)")
    per_entry=$(calc "($by_step - $(run_seconds "$1" "$2" "$5") - log2($2) * $by_merge) / $by_n")
}
narrow() { # narrow P...
    their_selection
    for narrow_p in "$@"; do simulated "$narrow_p" -tenth scripts/reproduce/parts/aries-tenth.net "$narrow_compute"; done
}
# narrow_seconds ALGO P: a step so [s]; a scan of n entries, which finds those above a threshold, takes no time
narrow_seconds() {
    case $1 in
    dense* | gaussiank) narrow_selection=0 ;;
    gtopk) narrow_selection="$theirs + ceil_log2($2) * $merge" ;;
    oktopk) narrow_selection="$theirs / $tau_prime" ;;
    *) narrow_selection=$theirs ;;
    esac
    calc "$narrow_compute + $narrow_selection + $(communication "$1" "$2-tenth")"
}
narrow_item() { echo "P = $1, a tenth of the bandwidth, selection by the paper's run times"; }
narrow_note="not compared: how far such a machine explains the paper's"
# cost_rows: what their_selection has found
cost_rows() {
    claim
    against nothing
    row "the paper's slowest runs of the other model" 'an exact selection, for each entry that it selects from' ns '' "labels in Figs. 9 and 11, p. 10" "$(calc "1e9 * $per_entry")" model none
    row "the paper's slowest runs of the other model" 'a merge in the tree, for each entry that it keeps' ns '' "labels in Figs. 9 and 11, p. 10" "$(calc "1e9 * $per_kept")" model none
}
# narrow_rows P QUANTITY GPUS: the least and the largest speed-up of this quantity on so many GPUs
narrow_rows() {
    claim
    against measured
    for which in smallest largest; do
        look_up oktopk-text.csv value model="$aries_model" gpus="$3" quantity="$which speed-up of the $2"
        row "$(narrow_item "$1")" "step of the others over oktopk, $which" x "$paper" "$source" "$(weak_ratio $which "$1" narrow_seconds)" simulated none "$narrow_note"
    done
}
narrow_ratio() { # narrow_ratio ALGO P: its step over oktopk's
    calc "$(narrow_seconds "$1" "$2") / $(narrow_seconds oktopk "$2")"
}
# narrow_runs P LABEL...: beside the step of each run with a printed time, whose label has no name, the nearest of ours
narrow_runs() {
    runs_p=$1
    shift
    for algo in $algos; do printf '%s %s\n' "$algo" "$(narrow_seconds "$algo" "$runs_p")"; done >"$out/.steps"
    for label in "$@"; do
        paper=$(calc "1000 * $(run_seconds "$aries_model" "$runs_p" "$label")")
        nearest=$(awk -v paper="$paper" '
            NF == 2 && $2 > 0 { off = log(1000 * $2 / paper); if (off < 0) off = -off; if (name == "" || off < least) { least = off; name = $1; ms = 1000 * $2 } }
            END { if (name != "") print name, ms }' "$out/.steps")
        row "$(narrow_item "$runs_p")" "step of the run of $(run_label "$aries_model" "$runs_p" "$label" runtime_min) minutes, and the nearest of ours" ms "$paper" \
            "$(run_label "$aries_model" "$runs_p" "$label" source)" "${nearest#* }" simulated none \
            "${nearest%% *}'s; the label does not say whose the paper's is; $narrow_note"
    done
    rm -f "$out/.steps"
}
