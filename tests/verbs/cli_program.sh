#!/bin/sh
# cli_program.sh: what a user meets first: help, version, list, the picture, a short run, its log; and every mistake
# that options and files can contain, on one rank and on several: one line, exit status 2, nothing written, no hang.
# long: most of a minute and more
. tests/lib/tap.sh
small="--data synthetic:256x40 --batch 4 --steps 6 --eval-every 0"

# -- verbs without MPI ---------------------------------------------------------------------------------------------
start 1 --help
check "--help exits with 0 and names the groups" grep -q '^Gradient exchange' "$W/out"
"$PROGRAM" --help > "$W/help"
for words in -h help 'train -h' '--algo topka -h'; do
    # shellcheck disable=SC2086
    start 1 $words
    check "so does $words" cmp "$W/help" "$W/out"
done
start 1 --version
check "--version names MPI and the backend" sh -c "grep -q '^MPI ' '$W/out' && grep -q 'oneDNN' '$W/out'"
start 1 list
check "list shows every table" sh -c "grep -q resnet20 '$W/out' && grep -q cifar10 '$W/out' && grep -q '^  ptb ' '$W/out' && grep -q gtopk-naive '$W/out' && grep -q exact '$W/out' && grep -q cuda '$W/out'"
start 1 man
check "man is a manual page" grep -q '^\.TH SPARSETRAIN' "$W/out"
check "verbs and what they do are kept apart" sh -c "'$PROGRAM' --help | sed '/^Gradient/q' | grep -q '^  sparsetrain completion bash\$' && ! '$PROGRAM' --help | grep -q 'bashcompletion'"
for verb in '' bench 'bench net' predict evaluate; do
    # shellcheck disable=SC2086 # words
    check "$verb --help: no line ends in a blank" sh -c '"$@" | grep . > /dev/null && ! "$@" | grep " \$"' blank "$PROGRAM" $verb --help
done
# Words that are too many, behind every verb.
for verb in train list man help version 'data show --png x' bench 'bench select' 'bench net' 'bench wire' p2p 'predict --net 1gbe' 'costs x --model y' 'study cells' 'study memory --p 4' 'fit x' 'completion bash' 'completion zsh'; do
    # shellcheck disable=SC2086
    check "$verb with a word too many" silent mistaken_alone junk $verb junk
done
check "under mpirun, too" silent mistaken 'version takes nothing but --json; leave out "junk"' 3 version junk
start 1 completion bash --help
check "--help of a verb without options" grep -q '^usage: sparsetrain completion bash' "$W/out"
start 3 list
check "list under mpirun speaks once" sh -c "[ \$(grep -c '^Devices' '$W/out') -eq 1 ]"
# tabled TABLE NAME...: these rows, in this order, are those of the table in the line of JSON that is in $W/out
tabled() {
    tabled_as=$1
    shift
    tabled_found=$(sed "s/.*\"$tabled_as\":\[//; s/}\].*//" "$W/out" | tr '{' '\n' | sed -n 's/^"name":"\([^"]*\)".*/\1/p' | tr '\n' ' ')
    why="$tabled_as: $tabled_found, not $*"
    [ "$tabled_found" = "$* " ]
}
start 1 list --json
json_lines "list --json is JSON, in one line" "$W/out"
check "of one line" [ "$(wc -l < "$W/out")" -eq 1 ]
# shellcheck disable=SC2046 # lists of names
{
    check "list --json: models" tabled models $(names_of MODEL nets/models/models.def)
    check "list --json: datasets" tabled datasets $(names_of DATASET data/datasets.def)
    check "list --json: exchanges" tabled exchanges $(names_of EXCHANGE comm/algorithms/exchanges.def)
    check "list --json: selectors" tabled selectors $(names_of SELECTOR topk/selectors/selectors.def)
    check "list --json: wire formats" tabled wires $(names_of WIRE comm/wire/wires.def)
    check "list --json: optimisers" tabled optimisers $(names_of OPTIMISER nets/optimisers/optimisers.def)
    check "list --json: devices" tabled devices $(names_of DEVICE base/device/devices.def)
}
# described: docs/run-jsonl.md has every key of its rows
described() {
    described_line=$(grep '^| .sparsetrain list --json. |' docs/run-jsonl.md)
    why=
    for described_key in $(grep -o '"[a-z_]*":' "$W/out" | tr -d '":' | sort -u); do
        case $described_line in *"\`$described_key\`"*) ;; *) why="$why $described_key" ;; esac
    done
    [ -z "$why" ]
}
check "list --json: its page has all keys" described
SPARSETRAIN_PLUGIN=$W/none.so start 1 list --json
check "list --json: a device that cannot be used, and why" grep -q '{"name":"cuda","option":"--device","summary":"[^"]*","paper":null,"available":false,"reason":"SPARSETRAIN_PLUGIN names [^"]*, which cannot be read"' "$W/out"
check "and one that can" grep -q '{"name":"cpu","option":"--device","summary":"[^"]*","paper":null,"available":true,"reason":null' "$W/out"
SPARSETRAIN_DATA=$W/nowhere start 1 list --json
check "list --json: data that are not there, and how to get them" grep -q '{"name":"cifar10",.*"available":false,"reason":"[^"]*fetch-data.sh cifar10' "$W/out"
json_lines "is JSON, too" "$W/out"
SPARSETRAIN_PLUGIN=$W/none.so start 1 version --json
json_lines "version --json is JSON" "$W/out"
check "version --json: this build" grep -q '^{"version":"[0-9.]*","commit":"[^"]*","compiler":"[^"]*","flags":"[^"]*","mpi":"[^"]*","onednn":"oneDNN [0-9.]*","simd":"[a-z0-9]*",' "$W/out"
check "version --json: the plugin's state" grep -q '"cuda_plugin":{"loaded":false,"reason":"SPARSETRAIN_PLUGIN names' "$W/out"
if [ -r "$PWD/$BUILD/tests/libsparsetrain_hostcuda.so" ]; then
    SPARSETRAIN_PLUGIN=$PWD/$BUILD/tests/libsparsetrain_hostcuda.so start 1 version --json
    check "version --json: a plugin that is loaded, its device" grep -q '"cuda_plugin":{"loaded":true,"reason":null},.*{"name":"cuda","available":true,"reason":null,"label":"hostcuda","about":"[^"]*","backend":"cuDNN' "$W/out"
else
    skip "version --json: a plugin that is loaded, its device" "the stand-in for CUDA is not built (no CUDA toolkit)"
fi
for verb in list version; do
    check "$verb takes nothing else" silent mistaken_alone "$verb takes nothing but --json; leave out \"--xml\"" $verb --xml
    check "$verb --json takes nothing" silent mistaken_alone "$verb takes nothing but --json; leave out \"junk\"" $verb --json junk
    start 1 $verb --help
    check "$verb --help names --json" grep -q '^  --json ' "$W/out"
done
start 1 data show --data synthetic:64x16 --png "$W/sheet.png" --columns 4 --rows 2
check "data show writes a PNG" sh -c "head -c 4 '$W/sheet.png' | grep -q PNG"
for options in --test --no-augment '--seed 7' '--epoch 1' '--zoom 2'; do
    # shellcheck disable=SC2086
    start 1 data show --data synthetic:64x16 --png "$W/other.png" --columns 4 --rows 2 $options
    check "data show $options shows something else" sh -c "head -c 4 '$W/other.png' | grep -q PNG && ! cmp -s '$W/sheet.png' '$W/other.png'"
done
check "data without show" silent mistaken_alone 'there is no verb "data"; did you mean "data show"?' data
check "a verb that is nothing like one" silent mistaken_alone 'there is no verb "quux"; sparsetrain --help lists them' quux
check "data show with an option that is none" silent mistaken_alone 'data show: there is no option --size' data show --size 3 --png "$W/x.png"
check "data show with a number that is none" silent mistaken_alone 'data show: --zoom 17 is out of range: it must be at least 1 and at most 16' data show --zoom 17 --png "$W/x.png"
check "data show of images without a picture" silent mistaken_alone 'data show: --png FILE is needed, the picture to write' data show --data synthetic:64x16
start 1 data show --data synthetic --png "$W/no/such/dir.png"
status=$?
check "data show into a missing directory is a mistake" [ $status -eq 2 ]
start 1 data show --data ptb --png "$W/text.png"
status=$?
check "data show refuses a text" sh -c "[ $status -eq 2 ] && [ \$(wc -l <'$W/err') -eq 1 ] && grep -q 'ptb is a text' '$W/err' && [ ! -e '$W/text.png' ]"

# -- a short run at every P -----------------------------------------------------------------------------------------
for p in 1 2 3 4 5 7 8; do
    for algo in dense topka gtopk-naive gtopk; do
        # shellcheck disable=SC2086
        start $p $small --algo $algo --out "$W/run-$algo-$p" --check-replicas 2
        status=$?
        if [ $status -ne 0 ]; then
            not_ok "a run of $algo on $p ranks" "status $status: $(head -c 400 "$W/err")"
        elif [ "$(grep -c '"type":"step"' "$W/run-$algo-$p/run.jsonl")" -ne 6 ]; then
            not_ok "a run of $algo on $p ranks" "not six rows of steps"
        else
            ok "a run of $algo on $p ranks"
        fi
    done
done
log=$W/run-gtopk-4/run.jsonl
check "the log begins with a header" sh -c "head -n 1 '$log' | grep -q '^{\"type\":\"header\",\"schema\":1'"
check "the header says which device" sh -c "head -n 1 '$log' | grep -q '\"device\":\"[a-z]*\",\"device_about\":\"[^\"]' && head -n 1 '$log' | grep -q '\"precision\":\"f32\"'"
check "the log ends with a summary" sh -c "tail -n 1 '$log' | grep -q '\"replicas_identical\":true'"
check "gtopk sends less than dense" [ "$(json "$log" summary bytes_sent_per_step | cut -d. -f1)" -lt "$(json "$log" summary dense_bytes_per_step | cut -d. -f1)" ]
json_lines "every row is JSON" "$log"
# shellcheck disable=SC2086
start 2 $small --algo gtopk --quiet
check "--quiet prints nothing" [ ! -s "$W/out" ]
# shellcheck disable=SC2086
start 2 $small --algo topka --density 1 --density-warmup none --out "$W/whole"
# shellcheck disable=SC2086
start 2 $small --algo topka --density 1 --density-warmup none --out "$W/whole2"
check "two runs give the same bits" [ "$(hash_of "$W/whole")" = "$(hash_of "$W/whole2")" ]
# shellcheck disable=SC2086
SPARSETRAIN_NO_SHARED=1 start 3 $small --algo gtopk --out "$W/private"
check "private data memory gives the same bits as shared" [ "$(hash_of "$W/private")" = "$(hash_of "$W/run-gtopk-3")" ]

# shellcheck disable=SC2086
start 4 $small --algo gtopk --dense-steps 3 --density-warmup none --threads 2 --no-augment --out "$W/densestart"
row() { sed -n "/\"type\":\"step\",\"step\":$1,/s/.*\"bytes_sent_max\":\([0-9.e+]*\).*/\1/p" "$W/densestart/run.jsonl"; }
check "--dense-steps 3: the third step is dense, the fourth is not" awk "BEGIN { exit !($(row 3) > 1600000 && $(row 4) < 10000) }"
# shellcheck disable=SC2086
start 4 $small --algo gtopk --gtopk-residual paper --density-warmup 0.25 --out "$W/paper"
check "the published residual rule logs the gradient that it loses" awk "BEGIN { exit !($(json "$W/paper/run.jsonl" summary mass_lost) > 0) }"
check "the default rule loses nothing" awk "BEGIN { exit !($(json "$W/run-gtopk-4/run.jsonl" summary mass_lost) == 0) }"

# -- no evaluation at all ---------------------------------------------------------------------------------------------
never="--data synthetic:256x40 --batch 4 --steps 6 --eval-every never --algo gtopk"
# shellcheck disable=SC2086
start 2 $never --out "$W/never"
check "--eval-every never trains" [ $? -eq 0 ]
log=$W/never/run.jsonl
check "and evaluates nothing" sh -c "[ \$(grep -c '\"type\":\"step\"' '$log') -eq 6 ] && ! grep -q '\"type\":\"eval\"' '$log'"
check "the same bits as with evaluations" [ "$(hash_of "$W/never")" = "$(hash_of "$W/run-gtopk-2")" ]
check "the log says never, and no scores" sh -c "head -n 1 '$log' | grep -q '\"eval-every\":\"never\"' && tail -n 1 '$log' | grep -q '\"test_loss\":null,\"test_accuracy\":null,\"start_loss\":null,\"start_accuracy\":null'"
json_lines "every row of it is JSON" "$log"
check "the report says so" sh -c "grep -q '^  not evaluated ' '$W/out' && grep -q '^  train loss  *[0-9]' '$W/out' && ! grep -q 'nan\|test loss' '$W/out'"
start 2 --resume "$W/never" --steps 8
check "resumed it stays so" sh -c "[ \$(grep -c '\"type\":\"step\"' '$log') -eq 8 ] && ! grep -q '\"type\":\"eval\"' '$log'"
start 2 --resume "$W/never" --eval-every never
check "also where nothing is left to do" [ -n "$(hash_of "$W/never")" ]
check "and is refused another interval" mistaken "made with --eval-every never, not 1" 2 --resume "$W/never" --eval-every 1
start 1 --model lstm --hidden 8 --bptt 4 --batch 2 --data synthetic-text:200x40x40 --steps 4 --eval-every never --out "$W/text-never"
check "a text's report says so" grep -q '^  train perplexity  *[0-9]' "$W/out"
if command -v gnuplot > /dev/null 2>&1; then
    # shellcheck disable=SC2016 # for the other shell
    check "its plots have no scores" sh -c 'cd "$1" && sh "$2/scripts/plot.sh" text-never > out 2> err && [ "$(grep -c png out)" -eq 3 ] && grep -q "no perplexity.png" err && [ ! -e text-never/perplexity.png ]' sh "$W" "$PWD"
    # shellcheck disable=SC2016
    check "beside one that has, the other is drawn" sh -c 'cd "$1" && sh "$2/scripts/plot.sh" never run-gtopk-2 --out plots > out 2> err && [ -s plots/accuracy.png ] && [ ! -s err ]' sh "$W" "$PWD"
else
    skip "its plots have no scores" "gnuplot is not installed"
    skip "beside one that has, the other is drawn" "gnuplot is not installed"
fi

# -- the largest seed ---------------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
start 2 $small --seed 1000000000000000 --out "$W/seed"
check "the largest seed, in the banner" grep -q 'seed 1000000000000000$' "$W/out"
check "and in the log" grep -q '"seed":1000000000000000,' "$W/seed/run.jsonl"
start 2 --resume "$W/seed" --seed 1000000000000000 --steps 8
check "and in the checkpoint" [ -n "$(hash_of "$W/seed")" ]

# -- hints ------------------------------------------------------------------------------------------------------------
mkdir "$W/a b"
ln -s "$PROGRAM" "$W/a b/sparse train"
spaced="$W/a b/it's"
program=$PROGRAM
PROGRAM="$W/a b/sparse train"
# shellcheck disable=SC2086
start 4 $small --algo topka --density 1 --stop-at 0.01 --out "$spaced"
check "paths with spaces and quotes are quoted" grep -qF "mpirun -np 4 '$W/a b/sparse train' --resume '$W/a b/it'\\''s'  " "$W/out"
check "also for plot.sh" grep -qF "sh scripts/plot.sh '$W/a b/it'\\''s'  " "$W/out"
check "more bytes than dense sends are not less" grep -q '^  sent a step .*: 4 times more$' "$W/out"
# shellcheck disable=SC2086
check "the run that is there" mistaken "--resume '$W/a b/it'\\''s'" 2 $small --out "$spaced"
PROGRAM=$program
# shellcheck disable=SC2086
start 4 $small --algo topka --density 0.01 --density-warmup none
check "less is less" grep -q '^  sent a step .*: 25 times less$' "$W/out"

# -- mistakes -------------------------------------------------------------------------------------------------------
# mistake P PART ARGS...: status 2, one line of ours which contains PART, nothing on stdout, no $W/new
mistake() {
    m_p=$1 m_part=$2
    shift 2
    check "on $m_p ranks: $m_part" unmade "$W/new" silent mistaken "$m_part" "$m_p" "$@"
    rm -rf "$W/new"
}

head -c 3073 /dev/zero > "$W/record"
mkdir "$W/cifar"
for i in 1 2 3 4 5; do cp "$W/record" "$W/cifar/data_batch_$i.bin"; done
head -c 3000 /dev/zero > "$W/cifar/test_batch.bin"
mkdir "$W/labels"
for i in 1 2 3 4 5; do cp "$W/record" "$W/labels/data_batch_$i.bin"; done
{ printf '\013'; head -c 3072 /dev/zero; } > "$W/labels/test_batch.bin"
mkdir "$W/holes"
cp "$W/record" "$W/holes/data_batch_1.bin"
echo 'not a gzip file' > "$W/broken.tar.gz"

for p in 1 3; do
    mistake $p 'there is no option --bogus' --bogus 1 --out "$W/new"
    mistake $p '--algo has no "x"' --algo x --out "$W/new"
    mistake $p 'out of range' --density 0 --algo gtopk --out "$W/new"
    mistake $p 'contradict' --quiet --progress bar --out "$W/new"
    mistake $p 'fetch-data.sh cifar10' --data "cifar10:$W/nowhere" --out "$W/new"
    mistake $p 'test_batch.bin' --data "cifar10:$W/cifar" --out "$W/new"
    mistake $p 'label' --data "cifar10:$W/labels" --out "$W/new"
    mistake $p 'data_batch_2.bin' --data "cifar10:$W/holes" --out "$W/new"
    mistake $p 'broken.tar.gz' --data "cifar10:$W/broken.tar.gz" --out "$W/new"
    mistake $p 'more than the' --data synthetic:16x16 --batch 128 --out "$W/new"
    SPARSETRAIN_PLUGIN=$W/none.so mistake $p 'none.so, which cannot be read' --data synthetic:16x16 --batch 2 --device cuda --out "$W/new"
    mistake $p '--precision tf32 needs a GPU' --data synthetic:16x16 --batch 2 --device cpu --precision tf32 --out "$W/new"
    mistake $p '--precision has no "f64"; there are: f32, f32-winograd, tf32, bf16' --precision f64 --out "$W/new"
    mistake $p '/proc/nowhere' --data synthetic:64x16 --batch 2 --steps 1 --out /proc/nowhere
    mistake $p 'already holds a run' --data synthetic:64x16 --batch 2 --steps 1 --out "$W/run-gtopk-2"
    mistake $p 'there is no verb "trian"; did you mean "train"?' trian
    mistake $p 'No such file' --resume "$W/nowhere"
    mistake $p 'no checkpoint in it' --resume "$W/cifar"
done
mistake 1 '--batch 128 on 1 rank is more than' --data synthetic:16x16 --batch 128
mistake 1 '--epochs 1e18 is out of range: it must be above 0 and at most 1000000000' --epochs 1e18
mistake 1 '--seed 18446744073709551615 is out of range: it must be at least 0 and at most 1000000000000000' --seed 18446744073709551615
for p in 2 4 5 7 8; do mistake $p 'there is no option --bogus' --bogus 1; done

# Ranks that were started differently.
# differently PART ARGS-OF-RANK-0 -- ARGS-OF-RANKS-1-AND-2
differently() {
    # shellcheck disable=SC2086
    timeout 120 "$MPIRUN" -np 1 "$PROGRAM" $2 : -np 2 "$PROGRAM" $3 > "$W/out" 2> "$W/err" < /dev/null
    check "ranks started differently: $1" told $? "$1"
}
differently 'lr=0.2 where rank 1 has lr=0.3' "$small --lr 0.2" "$small --lr 0.3"
differently 'batch=4 where rank 1 has batch=8' "$small" "--data synthetic:256x40 --batch 8 --steps 6 --eval-every 0"
differently '--wrong' "$small" "$small --wrong"
differently 'quiet=no where rank 1 has quiet=yes' "$small" "$small --quiet"

# A GPU on some nodes only: nobody trains, or every rank on the CPU, without a word.
stand_in=$PWD/$BUILD/tests/libsparsetrain_hostcuda.so
if [ -r "$stand_in" ]; then
    # shellcheck disable=SC2086
    timeout 120 "$MPIRUN" -np 1 env SPARSETRAIN_PLUGIN="$stand_in" "$PROGRAM" $small --device auto : \
        -np 2 env SPARSETRAIN_PLUGIN="$W/none.so" "$PROGRAM" $small --device auto > "$W/out" 2> "$W/err" < /dev/null
    check "ranks of which some have a GPU" told $? 'can use no GPU, others can'
else
    skip "ranks of which some have a GPU" "the stand-in for CUDA is not built (no CUDA toolkit)"
fi

# NaN: the learning rate makes the run explode; status 3 and a line that names step, rank and slice.
for p in 1 3; do
    start $p --data synthetic:256x40 --batch 4 --steps 200 --lr 1e6 --lr-warmup 0 --algo gtopk --density-warmup none --density 0.5 --out "$W/nan-$p" --checkpoint-every 1
    status=$?
    if [ $status -eq 3 ] && grep -q '^sparsetrain: step [0-9]*, rank [0-9]*: .*\(NaN\|infinite\)' "$W/err" && [ "$(our_lines)" -eq 1 ]; then
        ok "a run that explodes on $p ranks ends with status 3 and says where"
    else
        not_ok "a run that explodes on $p ranks ends with status 3 and says where" "status $status: $(head -c 500 "$W/err")"
    fi
done
finish
