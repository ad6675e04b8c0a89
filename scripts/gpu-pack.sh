#!/bin/sh
# gpu-pack.sh DIR [--plan first|next|campaign] [--limit 64M] [--held 1800] [--libs FILE.tar.xz] [--mirror DIR] [--runs FILE.tar.gz|DIR] [--leave-out FOLDER]:
# makes ready for a machine with a GPU that is lent for minutes, has no network, and gets a copy of this tree without .git
# with every command. DIR, a folder of the tree that git ignores (build-gpu), gets a folder for each call, which has all
# that the call brings besides the tree, and CALLS.md: the calls in order, each with its command, what it carries, how long
# it takes and what it leaves.
# --plan    first: probe, build, comparison, benches, ResNet-20 on CIFAR-10, tests of selectors and networks, in the order of what
#           is wanted most; next: the other tests, compute-sanitizer, the LSTM on Penn Treebank, VGG-16
#           campaign: the runs of scripts/campaign.sh on CIFAR-10 that are not finished, several side by side
# --limit   of what travels with a call, the tree included; data that are larger come in pieces, one with each call
# --held    seconds for which the machine is held; 60 of them are for its start
# --libs    what gpu-libs.sh has packed (made anew)
# --mirror  a folder with cifar-10-batches-bin.tar.xz and ptb.tar.xz; else they are packed from $SPARSETRAIN_DATA, build/data
# --runs    runs that an earlier lease packed, to go on from: runs.tar.gz; of the plan campaign the folder with its packs, ID+FILE.tar.xz, and cudnn-*.txt
# --leave-out  a folder of the tree that stays at home (results, which no call reads): the page says how
# Nothing is sent. docs/gpu.md says how a lease goes.
set -u
# shellcheck source=scripts/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
# shellcheck source=scripts/gpu/tools.sh
. "$(dirname "$0")/gpu/tools.sh"
# Seconds: at most of a call; of the start of the machine (an H200 took about 40); of what comes and goes around a call.
CALL_MOST=600 START=60 AROUND=15
plan=first limit=64M held=1800 libs='' mirror='' old_runs='' left_out=''
options 'plan limit held libs/ mirror/ runs:old_runs leave-out:left_out ...' "$@"
eval "set -- $words"
[ $# -eq 1 ] || fail "one folder is needed; $options_hint"
dir=$1 old_runs=$(absolute "$old_runs")
case $plan in first | next | campaign) ;; *) fail "--plan has \"$plan\"; there are first, next, campaign" ;; esac
whole --held "$held" seconds
case $limit in
*M) limit=$((1048576 * $(echo "${limit%M}" | grep -x '[0-9]*' || echo 0))) ;;
*[!0-9]*) limit=0 ;;
esac
[ "${limit:-0}" -gt 0 ] || fail "--limit takes a size, as 64M"
dir=$(absolute "$dir")
cd "$(dirname "$0")/.." || exit 2
root=$PWD
case $dir in "$root"/*) dir=${dir#"$root"/} ;; *) fail "$dir is not in this tree, with which it travels" ;; esac
case $dir in *[!A-Za-z0-9_./-]*) fail "$dir: letters, digits and ._-/ alone" ;; esac
git rev-parse --show-toplevel >/dev/null 2>&1 || fail 'this is no clone: what travels is what git knows or does not ignore'
git check-ignore -q "$dir/x" || fail "git does not ignore $dir, which would travel twice; build-gpu is ignored"
left_out=${left_out%/}
case $left_out in
'') ;;
/* | *..* | *[!A-Za-z0-9_./-]*) fail "--leave-out $left_out: a folder of this tree is needed" ;;
*) [ -d "$left_out" ] || fail "--leave-out $left_out is not there" ;;
esac
for file in "$libs" "$old_runs"; do [ -z "$file" ] || [ -r "$file" ] || fail "$file is not there"; done
make_scratch
if [ -d "$old_runs" ]; then
    [ "$plan" = campaign ] || fail "--runs $old_runs is a folder: of the plan $plan it is the runs.tar.gz of an earlier lease"
    ls "$old_runs"/*.tar.xz >/dev/null 2>&1 || fail "--runs $old_runs has no pack, ID+FILE.tar.xz"
    (cd "$old_runs" && find . -maxdepth 1 \( -name '*.tar.xz' -o -name 'cudnn-*.txt' \)) >"$scratch/packs"
    tar -C "$old_runs" -T "$scratch/packs" -czf "$scratch/runs.tar.gz" || exit 1
    old_runs=$scratch/runs.tar.gz
fi
broken() {
    say "$@"
    exit 1
}

# -- what there is -----------------------------------------------------------------------------------------------------------
mib() { awk -v b="$1" 'BEGIN { printf "%.1f", b / 1048576 }'; }
size() { wc -c <"$1" | tr -d ' '; }
# Every file that travels takes a header and is filled up in an archive: a KiB.
tree=$({
    git ls-files -z --cached --others --exclude-standard -- . ${left_out:+":!$left_out"}
    [ ! -d shared ] || find shared -type f -print0
} | xargs -0 ls -ldn 2>/dev/null | awk '{ all += $5 + 1024 } END { print all + 0 }')
echo "the tree: $(mib "$tree") MiB of the $(mib "$limit") that travel with a call"
if [ -z "$libs" ]; then
    sh scripts/gpu-libs.sh "$scratch/libs" || broken 'no libraries; --libs names an archive that gpu-libs.sh made elsewhere'
    libs=$scratch/libs.tar.xz
fi
# archive NAME FOLDER: sets `packed` to the .tar.xz of these data, or to '' where they are not here
archive() {
    packed=''
    if [ -n "$mirror" ]; then
        if [ -r "$mirror/$1.tar.xz" ]; then packed=$mirror/$1.tar.xz; fi
    else
        for place in "${SPARSETRAIN_DATA:-}" build/data; do
            if [ -z "$place" ] || [ ! -d "$place/$1" ]; then continue; fi
            has xz || broken 'xz is missing, which packs the data'
            echo "packing $1 ..."
            tar -C "$place" -cf - "$1" | xz -6 -T0 >"$scratch/$1.tar.xz" || broken "$1 cannot be packed"
            packed=$scratch/$1.tar.xz
            break
        done
    fi
    [ -n "$packed" ] || echo "no $1: what needs it is left out (sh scripts/fetch-data.sh, or --mirror)" >&2
}
archive cifar-10-batches-bin
cifar=$packed
ptb=''
if [ "$plan" = next ]; then
    archive ptb
    ptb=$packed
fi

# -- the calls ----------------------------------------------------------------------------------------------------------------
# A line each: seconds|needs|title|what scripts/gpu/lease.sh is told, with ; between|what comes home. needs: cifar, ptb, libs, or -
# What is told rest:N takes what there is when it begins, counts nothing here, and may be left out.
calls=$scratch/calls
: >"$calls"
call() { printf '%s|%s|%s|%s|%s\n' "$@" >>"$calls"; }
trained='gpu-converge.json, runs.tar.gz (rows, plots, checkpoints up to 15 MB), log'
if [ "$plan" = first ]; then
    # On an H200: build 25 s, compare 140 s, the first call 190 s in all; dense and gtopk 190 s each; the tests 135 s.
    nets='--nets resnet20,vgg16,lstm,gpt2' runs='resnet20 --models resnet20 --algos dense,gtopk,gtopk:paper,topka'
    call 250 libs 'probe, build, compare' 'probe 120;check 240 --only build,compare' 'gpu-probe.json, gpu-compare.json, logs'
    call 530 - benches "check 520 --only bench $nets" "gpu-bench-PART.json of select, net, plans, kernels, train, compiled; log"
    [ -z "$cifar" ] || {
        call 560 cifar 'ResNet-20 on CIFAR-10, 140 epochs, four ranks: dense, gtopk with both residual rules, topka' "converge 550 $runs" "$trained"
        call 0 - 'optional: goes on with the runs that call left, in what the lease has but for the tests' "converge rest:220 $runs" "$trained"
    }
    call 175 - 'tests: topk_, nets_' 'check 165 --only test --groups topk_,nets_' 'gpu-test-topk-nets.json, log'
    call 0 - 'optional: what torch.compile gives, again, in what the lease has' "check rest:45 --only bench --benches compiled $nets" 'gpu-bench-compiled.json, log'
elif [ "$plan" = campaign ]; then
    runs='campaign.tar.gz (what is finished), ID+FILE.tar.xz (of each run that was stopped), log'
    call 130 libs 'probe, build' 'probe 120;check 120 --only build' 'gpu-probe.json, logs'
    [ -n "$cifar" ] || broken 'the plan campaign wants CIFAR-10'
    call 570 cifar 'runs of scripts/campaign.sh, four side by side' 'campaign 560 4' "$runs"
    call 570 - 'the same, which goes on' 'campaign 560 4' "$runs"
    call 0 - 'optional: the same, in what the lease has' 'campaign rest:20 4' "$runs"
else
    call 380 libs 'probe, build, tests: comm_, cli_' 'probe 120;check 370 --only build,test --groups comm_,cli_' 'gpu-probe.json, gpu-test-comm-cli.json, logs'
    [ -z "$ptb" ] || {
        call 400 ptb 'LSTM-1500 on Penn Treebank, gtopk' 'converge 390 lstm --models lstm --algos gtopk --lease 640' "$trained"
        call 260 - 'LSTM-1500 goes on' 'converge 250 lstm --models lstm --algos gtopk --lease 640' "$trained"
    }
    call 120 - compute-sanitizer 'check 110 --only sanitize' 'gpu-sanitize.json, log'
    [ -z "$cifar" ] || call 500 cifar 'VGG-16 on CIFAR-10, four ranks, gtopk' 'converge 490 vgg16 --models vgg16 --algos gtopk --lease 460' "$trained"
fi
# room NEEDS: bytes that a call of the kind still takes; a sixty-fourth of the limit is for what is counted otherwise there
room() {
    taken=$((tree + limit / 64))
    case $1 in
    libs) taken=$((taken + $(size "$libs") + 1024)) ;;
    ptb) taken=$((taken + $(size "$ptb") + 1024)) ;;
    cifar) [ -z "$old_runs" ] || taken=$((taken + $(size "$old_runs") + 1024)) ;;
    esac
    echo $((limit - taken))
}
# What cannot come with the calls before it, and with its own, comes in calls that do nothing else.
arrange() {
    have=0
    while IFS='|' read -r seconds needs rest; do
        more=$(room "$needs")
        [ "$more" -gt 0 ] || broken "the tree$([ "$needs" = - ] || echo ' and what the first calls bring') leave nothing of the $(mib "$limit") MiB: --limit"
        if [ "$needs" = cifar ]; then
            while [ $((have + more)) -lt "$(size "$cifar")" ]; do
                echo '20|-|brings data|bring|nothing'
                have=$((have + $(room -)))
            done
        fi
        have=$((have + more))
        echo "$seconds|$needs|$rest"
    done <"$calls" >"$scratch/arranged"
    mv "$scratch/arranged" "$calls"
}
arrange || exit 1
count=$(grep -c . "$calls")

# Seconds of the whole; the last call, of those that are not optional, gives up, or takes, what is left
spent=$START
while IFS='|' read -r seconds _; do [ "$seconds" -eq 0 ] || spent=$((spent + seconds + AROUND)); done <"$calls"
if [ $spent -gt "$held" ]; then
    last=$(grep -v '^0|' "$calls" | tail -n 1) over=$((spent - held))
    [ $((${last%%|*} - over)) -ge 120 ] || broken "$spent s are more than the $held for which the machine is held: --held, or fewer data"
    # Its budget is its second word.
    LAST=$last awk -F '|' -v OFS='|' -v over=$over '$0 == ENVIRON["LAST"] { $1 -= over; split($4, word, " "); sub(word[2], word[2] - over, $4) } { print }' "$calls" >"$scratch/shorter"
    mv "$scratch/shorter" "$calls"
    spent=$held
fi

# -- what they bring ------------------------------------------------------------------------------------------------------------
rm -rf "$dir"
mkdir -p "$dir"
commit=$(sh scripts/lib/commit.sh)
[ -z "$cifar" ] || sum=$(cksum <"$cifar")
# unfinished: the table of the campaign, without the runs that are finished here
unfinished() {
    sh scripts/campaign.sh status --device cuda >"$scratch/status" || exit 2
    awk 'NR == FNR { if ($4 == "finished:") done[$2 "," $3]; next }
        { split($0, cell, ",") }
        !/^[#g]/ && !((cell[2] "," cell[4]) in done)' "$scratch/status" scripts/campaign/runs.csv
}
number=0 brought=0 pieces=0
while IFS='|' read -r seconds needs title told _; do
    number=$((number + 1))
    to=$dir/$number
    mkdir -p "$to"
    echo "$commit" >"$to/COMMIT"
    case $needs in
    libs) cp "$libs" "$to/libs.tar.xz" ;;
    ptb) cp "$ptb" "$to/ptb.tar.xz" ;;
    cifar)
        [ -z "$old_runs" ] || cp "$old_runs" "$to/runs.tar.gz"
        [ "$plan" != campaign ] || unfinished >"$to/runs.csv"
        ;;
    esac
    if [ -n "$cifar" ] && [ $brought -lt "$(size "$cifar")" ]; then
        tail -c +$((brought + 1)) "$cifar" | head -c "$(room "$needs")" >"$to/cifar.$number"
        brought=$((brought + $(size "$to/cifar.$number"))) pieces=$((pieces + 1))
    fi
    {
        echo '#!/bin/sh'
        echo "# Call $number of $count, $([ "$seconds" -eq 0 ] && echo 'what is left' || echo "$seconds s"): $title. Started in the top of the tree; scripts/gpu/lease.sh says what the words mean."
        echo "here=$to call=$number$([ $number -ne 1 ] || echo " lease=$((held - START))")"
        echo '. scripts/gpu/lease.sh'
        [ ! -e "$to/cifar.$number" ] || echo "keep cifar.$number"
        [ "$needs" != ptb ] || echo 'unpack_once ptb.tar.xz'
        [ "$needs" != cifar ] || echo "unpack_pieces cifar $pieces '$sum'"
        echo "$told" | tr ';' '\n' | grep -v '^bring$'
        echo finish
    } >"$to/run.sh"
done <"$calls"

# -- the page -------------------------------------------------------------------------------------------------------------------
{
    echo "# A lease of $held s, plan $plan: commit $commit"
    echo
    echo "Calls in order, one right after the other, each in the top of the tree; \$OUT is the folder whose files come home. About $spent s in all, $START of them for"
    echo "the start and $AROUND around each call. What a call keeps on the machine for later ones lies in build/ and \$KEEP (sparsetrain-lease in the home folder). A call that ends with status 3 is"
    echo 'on another machine than call 1: begin there. After a NO-GO (status 1 of call 1) nothing else is worth its time. At home the'
    echo 'gpu-*.json go to results/measured.'
    # shellcheck disable=SC2016 # backquotes are marks of Markdown
    [ "$plan" != campaign ] ||
        echo 'What is finished: `sh scripts/campaign.sh take campaign.tar.gz`, of the last call that left one. The packs, ID+FILE.tar.xz, and cudnn-*.txt go to a folder: `--pack` of `campaign.sh next`, `--runs` of the next lease.'
    echo
    echo 'Optional calls may be left out; they look how much of the lease is left, take that, and end at once where it is too little. Where seconds remain'
    echo 'after the last call, send the optional ones again, the one that trains first: where every run of it says completed, it has nothing to do.'
    echo
    [ -z "$left_out" ] || {
        echo "$left_out does not travel: before call 1 \`mv $left_out build-left-out\`, after the last one, and whatever happens, \`mv build-left-out $left_out\`."
        echo
    }
    echo '| call | command | carries | MiB with the tree | time limit, s | does | leaves |'
    echo '|---|---|---|---|---|---|---|'
    number=0
    while IFS='|' read -r seconds _ title _ leaves; do
        number=$((number + 1))
        bytes=$(($(cat "$dir/$number"/* | wc -c) + tree))
        [ $bytes -le "$limit" ] || broken "call $number would be $(mib $bytes) MiB"
        most=$((seconds + 30))
        [ "$seconds" -ne 0 ] || most=$CALL_MOST
        [ $most -le $CALL_MOST ] || most=$CALL_MOST
        echo "| $number | \`sh $dir/$number/run.sh\` | $dir/$number: $(cd "$dir/$number" && echo *) | $(mib $bytes) | $most | $title | $leaves |"
    done <"$calls"
} >"$dir/CALLS.md"
cat "$dir/CALLS.md"
