# shellcheck shell=sh
# shellcheck disable=SC2034 # what the IDs use
# costs.sh: sourced by the IDs of tables of costs: the words that pass on P = 2 to 8 ranks over real MPI, counted, and the start-ups
# of the program's cost model.
#
#     start_ups_by_model 0.01      # the job
#     start_ups topka 4
#     counted topka p4.jsonl       # of a file of bench
. scripts/reproduce/lib.sh

n=$(pick 14728266 100000) # of VGG-16
ranks='2 3 4 5 6 7 8'
# start_ups_by_model DENSITY: on a network where seconds are start-ups
start_ups_by_model() {
    printf 'alpha 1\nbeta 0\nnode_alpha 1\nnode_beta 0\n' >"$out/alpha.net"
    job model.jsonl "$program" predict --net "$out/alpha.net" --p 2,3,4,5,6,7,8 --n "$n" --density "$1" --json
}
start_ups() { values model.jsonl alphas --where "algo=$1" --where "ranks=$2"; }
# counted ALGO FILE: words of a step on its longest path: gtopk's is rank 0, which receives and then sends; oktopk's and gaussiank's
# are the mean over ranks and steps
counted() {
    values "$2" words_sent_max,words_received_max,words_sent_mean --where "algo=$1" |
        awk -v algo="$1" '{ printf "%.10g\n", algo ~ /^(oktopk|gaussiank)$/ ? $3 : algo == "gtopk" ? $1 + $2 : ($1 > $2 ? $1 : $2) }'
}
# by_formula ALGO: how the other curve of an algorithm is called: dense is MPI's own, which nobody counts
by_formula() { if [ "$1" = dense ]; then echo formula; else echo counted; fi; }
