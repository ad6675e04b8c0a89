#!/bin/sh
# resnet20-exchanges: ResNet-20 to the end of its schedule by nine exchanges
# paper: none: a study of our own. Who is fastest to a loss in a short run (time-to-target), or first in the scaling study, may end elsewhere: it
#     wins only where it also ends as dense does
# runs: training on 4 ranks, 140 epochs of CIFAR-10, batch 32 a rank, density 0.001 after gTop-k's warm-up: dense in f32 and in bf16,
#     powersgd of rank 2, topka, gtopk, gtopk-rd and spardl in packed messages, oktopk, micro; dense and gtopk are the runs of gtopk-fig5,
#     all others have convolutions by Winograd's algorithm (on CPUs where they have AVX-512), and so has a second dense: how far it ends
#     from the first is what rounding alone is worth (quick: 6 epochs of made-up images)
# needs: CIFAR-10; a day on CPUs, hours on a GPU (--epochs E: the first E epochs of that schedule)
# takes: full: 12 to 29 h on two cores, by 1400 to 600 images/s in f32; on a GPU not measured yet; quick: 3 min
# agrees: nothing is compared with a paper: the rows have the test accuracy at the end and in the mean of the last 20 evaluations, how far each
#     is from that of dense and of the dense whose convolutions round alike (of one seed each; up to a percentage point we take for chance,
#     which no seeds have been measured for yet), and the bytes that a rank sent in the whole run, also over those of dense
. scripts/reproduce/parts/training.sh

seeds=1
against nothing
item='ResNet-20, P = 4'
# exchange NAME OPTION...: a run, into NAME.jsonl
exchange() {
    exchange_name=$1
    shift
    cifar "$exchange_name.jsonl" resnet20 "$@"
}
exchange dense --algo dense
exchange gtopk --density 0.001 --algo gtopk
# shellcheck disable=SC2086 # words
exchange_quicker() {
    exchange_name=$1
    shift
    exchange "$exchange_name" $quicker "$@"
}
exchange_quicker dense-winograd --algo dense
exchange_quicker dense-bf16 --algo dense --wire bf16
exchange_quicker powersgd --algo powersgd --powersgd-rank 2
exchange_quicker topka --density 0.001 --algo topka
exchange_quicker gtopk-rd --density 0.001 --algo gtopk-rd --wire packed
exchange_quicker oktopk --density 0.001 --algo oktopk
exchange_quicker spardl --density 0.001 --algo spardl --wire packed
exchange_quicker micro --density 0.001 --algo micro

last=$(pick 20 2)
late="test accuracy, mean of the last $last evaluations"
end_accuracy() { of "$1" summary test_accuracy; }
late_accuracy() { curve "$1" eval test_accuracy | mean_of_last "$last"; }
gain_of() { $accuracy "$1"; }
# gains ITEM FILE DENSE [AS]: how far both are from those of that dense run
gains() {
    for accuracy in end_accuracy late_accuracy; do
        case $accuracy in end_accuracy) gains_of='test accuracy' ;; *) gains_of="$late" ;; esac
        gain_row "$1" "$gains_of, over dense${4:-}" 'percentage points' '' '' none "$points" "$2" "$3"
    done
}
dense_bytes=$(sent dense.jsonl)
set --
for name in dense dense-winograd dense-bf16 powersgd topka gtopk gtopk-rd oktopk spardl micro; do
    case $name in
    dense-winograd) shown='dense, rounded otherwise' ;;
    dense-bf16) shown='dense, bf16' ;;
    powersgd) shown='powersgd, rank 2' ;;
    gtopk-rd | spardl) shown="$name, packed" ;;
    *) shown=$name ;;
    esac
    row "$item, $shown" 'test accuracy at the end' % '' '' "$(calc "100 * $(end_accuracy $name.jsonl)")" real none
    there $name.jsonl || continue # which that row says
    row "$item, $shown" "$late" % '' '' "$(calc "100 * $(late_accuracy $name.jsonl)")" real none
    [ $name = dense ] || gains "$item, $shown" $name.jsonl dense.jsonl
    case $name,$(values $name.jsonl computed_in --type header) in
    dense,* | dense-winograd,* | gtopk,* | *f32*) ;; # f32 or partly so: a processor without that algorithm made it
    *) gains "$item, $shown" $name.jsonl dense-winograd.jsonl ', rounded alike' ;;
    esac
    bytes=$(sent $name.jsonl)
    row "$item, $shown" 'sent by a rank in the whole run' MiB '' '' "$(calc "$bytes / 1048576")" real none
    [ $name = dense ] || row "$item, $shown" 'bytes that a rank sent, over dense' '' '' '' "$(calc "$bytes / $dense_bytes")" real none
    set -- "$@" "$name.jsonl=$shown"
done
two_figures resnet20 "$item" '' "$item" "$@"
finish
