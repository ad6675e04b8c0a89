# shellcheck shell=sh
# gpu/campaign.sh: sourced by gpu-check.sh after gpu/converge.sh: the step that makes runs of scripts/campaign.sh, several of them side
# by side, since a small network leaves most of a large GPU idle. What they leave:
#   campaign.tar.gz          what is finished, for `campaign.sh take` at home
#   cudnn-*.txt              the algorithms that were measured, for the same folder
#   ID+FILE.tar.xz           of each run that was stopped its last checkpoint and log, for --pack DIR of `campaign.sh next`, at home or in
#                            the next lease
# shellcheck disable=SC2154

step_campaign() {
    can_squeeze || { verdict campaign LATE 'neither xz nor Python is here, which pack runs'; return; }
    mkdir -p "$runs/packs" build
    # A run that goes on with other algorithms rounds otherwise: what was measured lies beside the packs, and travels with them.
    SPARSETRAIN_CACHE=$runs/packs
    export SPARSETRAIN_CACHE
    # Command lines name build/sparsetrain, wherever a run is made: so it is there.
    campaign_how='--device cuda' campaign_build=build
    if [ "$dry" = 1 ]; then campaign_how='--quick --device cpu' campaign_build=$BUILD
    elif [ "$BUILD" != build ]; then ln -sf "$(absolute "$BUILD")/sparsetrain" build/sparsetrain; fi
    [ "$dry" = 1 ] || SPARSETRAIN_PLUGIN=$(absolute "$BUILD")/libsparsetrain_cuda.so
    [ "$mps" = 0 ] || mps_begin campaign
    # The runs stop with a checkpoint, and what they leave is packed.
    campaign_seconds=$(($(remaining) - 45))
    campaign_number=0
    while [ $campaign_number -lt "$side_by_side" ] && [ $campaign_seconds -gt 30 ]; do
        campaign_number=$((campaign_number + 1))
        # shellcheck disable=SC2086 # options
        env BUILD="$campaign_build" ${SPARSETRAIN_PLUGIN:+SPARSETRAIN_PLUGIN="$SPARSETRAIN_PLUGIN"} \
            sh scripts/campaign.sh next $campaign_how --time ${campaign_seconds}s --pack "$runs/packs" --out "$runs/results" ${table:+--table "$table"} \
            >"$scratch/campaign-$campaign_number" 2>&1 &
        sleep 1 # each takes another run
    done
    [ $campaign_number -gt 0 ] || verdict campaign LATE 'no time to begin a run'
    wait
    mps_end
    cat "$scratch"/campaign-* 2>/dev/null | sed -n 's/^campaign.sh: //p' | while read -r line; do
        case $line in
        finished:*) verdict campaign PASS "$line" ;;
        failed:*) verdict campaign FAIL "$line" ;;
        stopped*) verdict campaign LATE "$line" ;;
        packed*) verdict campaign NOTE "$line" ;;
        *) echo "   $line" ;;
        esac
    done
    if grep -q 'failed: ' "$scratch"/campaign-* 2>/dev/null; then tail -n 20 "$scratch"/campaign-*; fi
    campaign_home
}
# campaign_home: what goes home
campaign_home() {
    if ls "$runs"/results/*/jobs.tsv >/dev/null 2>&1; then
        (cd "$runs/results" && find . -mindepth 2 -maxdepth 2 \( -name '*.jsonl' -o -name jobs.tsv \)) >"$scratch/packed"
        if tar -C "$runs/results" -T "$scratch/packed" -czf "$out/campaign.tar.gz"; then
            verdict campaign NOTE "packed: campaign.tar.gz, $(cat "$runs"/results/*/jobs.tsv | wc -l) runs that are finished: sh scripts/campaign.sh take campaign.tar.gz"
        else
            verdict campaign FAIL 'campaign.tar.gz could not be written'
        fi
    fi
    for campaign_pack in "$runs"/packs/*.tar.xz "$runs"/packs/cudnn-*.txt; do
        [ -f "$campaign_pack" ] || continue
        cp "$campaign_pack" "$out/" || verdict campaign FAIL "${campaign_pack##*/} could not be written"
    done
}
