#!/bin/sh
# cli_selected.sh: what the ranks of real runs selected: recorded, it is what the log and the exchange say; replayed, the
# bench finds the same unions; fitted, the profile has them too, and gradients drawn from it come near; every mistake: one
# line, status 2. The figures are those of a run of the same options, not of another program.
# shellcheck disable=SC2086 # lists of arguments
. tests/lib/tap.sh
small="--data synthetic:96x16 --batch 4 --eval-every 0 --quiet --density-warmup none"

# unions DIR: global_nnz of the steps 1, 3, 5 of a run, which are the first, third and fifth
unions() { sed -n 's/^{"type":"step","step":[135],.*"global_nnz":\([0-9]*\).*/\1/p' "$1/run.jsonl"; }
mean() { awk '{ sum += $1 } END { printf "%.4f\n", sum / NR }'; }
number() { sed -n "s/.*\"$1\":\([-0-9.e+]*\)[,}].*/\1/p" "$W/out"; }
near() { awk "BEGIN { d = $1 - $2; exit !(d <= $3 && d >= -$3) }"; }

# recorded NAME ARGS...: a run of 4 ranks with these options leaves three steps of four ranks, which replay and fit to the
# unions of its log
recorded() {
    r_name=$1 r_dir=$W/$1 r_file=$W/$1.selected
    shift
    if ! start 4 $small --model resnet20 --steps 6 --out "$r_dir" --record "$r_file" --record-what selected --record-every 2 "$@"; then
        not_ok "$r_name: a run records what was selected" "status $?: $(head -c 300 "$W/err")"
        return
    fi
    r_union=$(unions "$r_dir" | mean)
    check "$r_name: the log has three steps" [ "$(unions "$r_dir" | grep -c .)" -eq 3 ]
    check "$r_name: fit" start 1 fit "$r_file" --out "$r_file.profile"
    r_fitted=$(awk '$1 == "union" && $2 == 4 { print $3 }' "$r_file.profile")
    check "$r_name: the union of 4 ranks is that of the log ($r_fitted, $r_union)" near "$r_fitted" "$r_union" 0.001
    check "$r_name: bench replays it" start 4 bench --algo topka --pattern "selected:$r_file" --warmup 0 --repeat 3 --json
    check "$r_name: all of it is right" [ "$(number wrong)" = 0 ]
    check "$r_name: it finds the same unions ($(number global_nnz), $r_union)" near "$(number global_nnz)" "$r_union" 0.001
}

recorded topka --algo topka --density 0.01
check "entries of one rank: as in the log" [ "$(number local_nnz)" = "$(json "$W/topka/run.jsonl" step local_nnz_mean)" ]
check "--density of the run is taken" [ "$(number k)" = 2697 ]
recorded topkdsa --algo topkdsa --density 0.002
recorded momentum --algo topka --density 0.01 --momentum-correction --wire packed
hash=$(hash_of "$W/topka")
start 4 $small --steps 6 --algo topka --density 0.01 --out "$W/unrecorded"
check "recording does not change the run" [ "$hash" = "$(hash_of "$W/unrecorded")" ]

# What is not the whole gradient by one k: groups of layers, slices summed beside it, dense steps, a warm-up.
start 2 $small --algo topka --density 0.01 --steps 3 --overlap layers --overlap-bytes 200000 --out "$W/layers" --record "$W/by-layers" --record-what selected
check "--overlap layers: all groups are recorded" [ $? -eq 0 ]
layers=$(sed -n 's/^{"type":"step".*"global_nnz":\([0-9]*\).*/\1/p' "$W/layers/run.jsonl" | mean)
check "--overlap layers: fit" start 1 fit "$W/by-layers"
check "--overlap layers: the union is that of the log" near "$(awk '$1 == 2 { print $2 }' "$W/out")" "$layers" 0.06
start 2 $small --algo topka --density 0.01 --steps 4 --dense-slices linear,conv1 --dense-steps 2 --record "$W/exempt" --record-what selected
check "--dense-slices, --dense-steps: recorded" [ $? -eq 0 ]
check "--dense-steps: two steps are left" start 1 fit "$W/exempt" --out "$W/exempt.profile"
check "--dense-steps: two steps" grep -q '^steps 2$' "$W/exempt.profile"
check "--dense-slices: nothing of them" grep -q '^slice 640 0 linear.weight$' "$W/exempt.profile"
check "--dense-slices: the others are there" grep -q '^slice [0-9]* 0[.][0-9]* ' "$W/exempt.profile"
start 2 --data synthetic:96x16 --batch 4 --eval-every 0 --quiet --algo gaussiank --density 0.01 --density-warmup 0.05 --steps 14 --record "$W/warm" --record-what selected
check "a warm-up of the density is recorded" [ $? -eq 0 ]
check "fit leaves it out" start 1 fit "$W/warm" --out "$W/warm.profile"
check "and says so" grep -q '^# 12 steps in which the density was warming up are left out$' "$W/out"
check "two ranks: h is fixed, and the profile says so" sh -c "grep -q '^fixed h\$' '$W/warm.profile' && grep -q 'h was fixed' '$W/out'"

# -- drawn gradients --------------------------------------------------------------------------------------------------
profile=$W/topka.selected.profile
expected=$(awk '$1 == "union" && $2 == 4 { print $4 }' "$profile")
check "bench draws from a profile" start 4 bench --algo topka --pattern "fitted:$profile" --warmup 0 --repeat 6 --json
check "all of it is right" [ "$(number wrong)" = 0 ]
# Of the entries below the k-th some reach it in later steps, so that this union is near the model's and not the same.
check "its unions are near the model's ($(number global_nnz), $expected)" near "$(number global_nnz)" "$expected" "0.05 * $expected"
check "n and density are the profile's" [ "$(number n) $(number k)" = "269722 2697" ]
check "every algorithm takes them" start 3 bench --pattern "fitted:$profile" --warmup 1 --repeat 1 --n 3000,100000 --density 0.001,0.1 --json
check "every algorithm is right" [ "$(grep -c '"wrong":0[,}]' "$W/out")" -eq $((4 * $(names_of EXCHANGE comm/algorithms/exchanges.def | grep -c .))) ]
head -c 9000 "$W/topka.selected" > "$W/short"
truncate -s -1 "$W/topka.selected"
check "an incomplete last step is left out" start 1 fit "$W/topka.selected"
check "and that is said" grep -q '^# an incomplete last step is left out$' "$W/out"
check "fit --help" start 1 fit --help

# -- mistakes ---------------------------------------------------------------------------------------------------------
for algo in gtopk oktopk dense spardl; do
    check "--record-what selected with $algo" silent unmade "$W/none" mistaken 'topka, topkdsa, gaussiank' 2 --algo $algo --record "$W/none" --record-what selected
done
check "--record-what without --record" silent mistaken 'without --record' 1 --algo topka --record-what selected
check "a file that exists" silent mistaken 'is there already' 2 $small --algo topka --record "$W/short" --record-what selected
check "fit without a file" silent mistaken_alone 'a recording is needed' fit
check "fit of two files" silent mistaken_alone 'one recording at a time' fit "$W/short" "$W/short"
check "fit: an option that is none" silent mistaken_alone 'there is no option --outt; did you mean --out?' fit --outt x
check "fit: --out without a name" silent mistaken_alone '--out wants' fit "$W/short" --out
check "fit: no such file" silent mistaken_alone 'No such file' fit "$W/nowhere"
check "fit: cut off in its first step" silent mistaken_alone 'no complete step' fit "$W/short"
check "fit of something else" silent mistaken_alone 'not a file of recorded selections' fit Makefile
check "fit: a profile that cannot be written" mistaken_alone 'nowhere/profile: No such file' fit "$W/by-layers" --out "$W/nowhere/profile"
start 1 $small --algo gtopk --steps 1 --density 0.01 --record "$W/whole"
check "fit of whole gradients" silent mistaken_alone 'holds recorded gradients, not recorded selections' fit "$W/whole"
start 1 $small --algo topka --steps 1 --density 0.01 --record "$W/alone" --record-what selected
check "fit of one rank" silent mistaken_alone 'of one rank' fit "$W/alone"
for p in 1 3; do
    check "bench: a file of the other kind, $p" silent mistaken 'holds recorded selections, not recorded gradients' $p bench --pattern "real:$W/alone"
    check "bench: a recording has its own n, $p" silent mistaken 'has its own' $p bench --pattern "selected:$W/alone" --n 100
    check "bench: no profile, $p" silent mistaken 'is no profile' $p bench --pattern "fitted:$W/alone"
    check "bench: a profile that is nowhere, $p" silent mistaken 'No such file' $p bench --pattern "fitted:$W/nowhere"
done
finish
