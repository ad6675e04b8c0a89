# shellcheck shell=sh
# gpu/lease.sh: sourced by the run.sh of a call that gpu-pack.sh has written, with here (its folder) and call (its number): the
# words that such a call is made of. Works in the top of a copy of the tree, on a lent machine with a GPU; what later calls
# need stays in build/ and in $KEEP, files for home go to $OUT, which takes eight: what is more than that finish packs into one.
# Call 1 also has lease: the seconds that there are from its beginning on, all calls together.
# REHEARSE=1: on the stand-in for CUDA (scripts/gpu-rehearsal.sh); GPU_BUDGET: seconds for each check there.
# shellcheck disable=SC2154
: "${OUT:?the folder whose files come home}"
KEEP=${KEEP:-${HOME:-$PWD/build}/sparsetrain-lease} # nobody else's folder
export WERROR=0 OUT KEEP
lease_began=$(date +%s) lease_status=0
if [ "$call" = 1 ]; then rm -rf "$KEEP"
elif [ ! -e "$KEEP/call-1" ]; then
    echo "this machine has not seen call 1: begin there"
    exit 3
fi
mkdir -p "$KEEP" "$OUT"
: >"$KEEP/call-$call"
[ "$call" != 1 ] || echo $((lease_began + lease)) >"$KEEP/lease-end"
cp "$here/COMMIT" COMMIT # the tree comes without git
lease_libs=build/gpu/libs
[ ! -f "$here/libs.tar.xz" ] || lease_libs=$here/libs.tar.xz

# probe SECONDS: without a GO the call ends here
probe() {
    BUILD=build/gpu sh scripts/gpu-probe.sh ${REHEARSE:+--dry-run} --libs "$lease_libs" --out "$OUT" --seconds "${GPU_BUDGET:-$1}" || exit 1
}
# check SECONDS OPTION...: gpu-check.sh, up to so many seconds after the call's beginning; what is not built is built first. SECONDS may
# be rest:N, which are all that the lease still has, and a call may take, but for N.
check() {
    check_seconds=$1
    shift
    case $check_seconds in rest:*)
        check_seconds=$(($(cat "$KEEP/lease-end") - lease_began - ${check_seconds#rest:}))
        if [ $check_seconds -lt 45 ] && [ -z "${GPU_BUDGET:-}" ]; then
            echo "of the lease no time is left for this"
            return 0
        fi
        [ $check_seconds -le 570 ] || check_seconds=570
        ;;
    esac
    check_budget=${GPU_BUDGET:-$((check_seconds - ($(date +%s) - lease_began)))}
    if [ ! -x build/gpu/sparsetrain ] && [ "$1" = --only ]; then
        case ,$2, in
        *,build,*) ;;
        *)
            check_steps=build,$2
            shift 2
            set -- --only "$check_steps" "$@"
            ;;
        esac
    fi
    sh scripts/gpu-check.sh ${REHEARSE:+--rehearse} --libs "$lease_libs" --out "$OUT" --budget "$check_budget" "$@" || lease_status=$?
}
# converge SECONDS RUNS OPTION...: the step converge, its runs in $KEEP/RUNS, which come home as runs.tar.gz. They know their data by
# name, so that they go on wherever $KEEP lies next time.
converge() {
    export SPARSETRAIN_DATA="$KEEP"
    converge_seconds=$1 converge_runs=$KEEP/$2
    shift 2
    if [ -f "$here/runs.tar.gz" ] && [ ! -d "$converge_runs" ]; then
        mkdir -p "$converge_runs"
        tar -C "$converge_runs" -xzf "$here/runs.tar.gz" || lease_status=1
    fi
    check "$converge_seconds" --only converge --mps "$@" --runs "$converge_runs" --pack "$OUT/runs.tar.gz"
}
# campaign SECONDS N: runs of scripts/campaign.sh, N side by side: those of runs.csv in the folder of this call, or of the one that had it
campaign() {
    export SPARSETRAIN_DATA="$KEEP"
    if [ -f "$here/runs.csv" ]; then cp "$here/runs.csv" "$KEEP/"; fi
    if [ -f "$here/runs.tar.gz" ] && [ ! -d "$KEEP/campaign/packs" ]; then
        mkdir -p "$KEEP/campaign/packs"
        tar -C "$KEEP/campaign/packs" -xzf "$here/runs.tar.gz" || lease_status=1
    fi
    check "$1" --only campaign --mps --side-by-side "$2" --table "$KEEP/runs.csv" --runs "$KEEP/campaign"
}
# keep PIECE; unpack_pieces NAME COUNT CKSUM; unpack_once ARCHIVE: data into $KEEP
keep() { cp "$here/$1" "$KEEP/$1.part" && mv "$KEEP/$1.part" "$KEEP/$1"; }
lease_unpack() {
    sh -c '. scripts/gpu/tools.sh; unpack "$1" "$2"' sh "$1" "$KEEP" && return
    echo "$1 cannot be unpacked"
    exit 1
}
unpack_pieces() {
    [ ! -e "$KEEP/$1.unpacked" ] || return 0
    pieces=0
    while [ $pieces -lt "$2" ]; do
        pieces=$((pieces + 1))
        [ -e "$KEEP/$1.$pieces" ] || {
            echo "piece $pieces of $1 has not come: call $pieces brings it" >&2
            exit 3
        }
        cat "$KEEP/$1.$pieces"
    done >"$KEEP/$1.tar.xz"
    [ "$(cksum <"$KEEP/$1.tar.xz")" = "$3" ] || {
        echo "$1: the pieces do not make the archive that was cut"
        exit 1
    }
    lease_unpack "$KEEP/$1.tar.xz"
    rm -f "$KEEP/$1".[0-9]* "$KEEP/$1.tar.xz"
    : >"$KEEP/$1.unpacked"
}
unpack_once() { lease_unpack "$here/$1"; }
# Rows and what is packed already stay files of their own, as far as there is room; the others come as more.tar.gz.
lease_pack() {
    [ "$(find "$OUT" -type f | wc -l)" -gt 8 ] || return 0
    (
        cd "$OUT" || exit
        find . -type f | awk '{ print !/^[.][/](gpu-[^/]*[.]json|[^/]*[.]tar[.][gx]z)$/, $0 }' | sort | tail -n +8 | cut -d ' ' -f 2- >"$KEEP/more"
        tar -T "$KEEP/more" -czf more.tar.gz && while read -r file; do rm -f "$file"; done <"$KEEP/more"
    ) || echo 'what is more than eight files could not be packed'
}
finish() {
    lease_pack
    echo "call $call: status $lease_status after $(($(date +%s) - lease_began)) s"
    exit "$lease_status"
}
