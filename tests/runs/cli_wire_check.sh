#!/bin/sh
# cli_wire_check.sh: a bit that changes on the wire (SPARSETRAIN_FLIP, comm/transport/transport_mpi_flip.c) in training: the next
# checkpoint finds replicas that differ and is not written; with --wire-check the step itself ends the run, and a run in which
# nothing changes has the same bits as without; --resume finds what did not arrive as it was written. Checkpoints of the
# format before hashes can be resumed.
. tests/lib/tap.sh
short="--model resnet20 --data synthetic:256x64 --batch 4 --eval-every never --lr-warmup 0"
run="$short --steps 6"

# ended STATUS TEXT: so has the last start, with a line of ours that contains the text
ended() {
    why="status $status, wanted $1 and \"$2\": $(head -c 600 "$W/err")"
    [ "$status" -eq "$1" ] && grep '^sparsetrain: ' "$W/err" | grep -q -e "$2"
}
# flipped FLIP P ARGS...: a start with this bit flipped
flipped() {
    SPARSETRAIN_FLIP=$1
    export SPARSETRAIN_FLIP
    shift
    start "$@"
    status=$?
    unset SPARSETRAIN_FLIP
}

# -- replicas that differ: no checkpoint -----------------------------------------------------------------------------------
for P in 2 3 4; do
    out=$W/dense$P
    # shellcheck disable=SC2086
    {
        flipped 0:2:3:in $P $run --checkpoint-every 2 --out "$out"
        check "P = $P: a bit of a sum of step 3, on one rank: found after step 4" ended 1 'after step 4 the .* of rank [01] differ from those of rank [01]; no checkpoint'
        check "P = $P: which says what there is" ended 1 'the one of step 2 is kept$'
        check "P = $P: there is no checkpoint of it" [ ! -e "$out/checkpoint-00000004" ]
        check "P = $P: nor part of one" sh -c "! ls -d '$out'/*.tmp 2> /dev/null"
        start $P --resume "$out"
        check "P = $P: the run goes on from the one before (status $?)" [ -n "$(hash_of "$out")" ]
        start $P $run --out "$W/clean$P"
        check "P = $P: to the bits of a run in which nothing changed" [ "$(hash_of "$out")" = "$(hash_of "$W/clean$P")" ]
        flipped 0:2:3:in $P $run --wire-check --checkpoint-every 2 --out "$W/checked$P"
        check "P = $P: --wire-check finds it in step 3" ended 1 '^sparsetrain: step 3, rank 0: .*a sum of [0-9]* bytes over .*(--wire-check)'
    }
done
# shellcheck disable=SC2086
{
    flipped 1:1:30 3 $run --wire-check
    check "what all ranks get alike is found, too" ended 1 '^sparsetrain: step 2, rank 0: entry 0 of a sum of [0-9]* bytes over 3 ranks is '
    flipped 1:1:20 3 $run --check-replicas 1
    check "by --wire-check alone" [ "$status" -eq 0 ]
    flipped 0:0:3:in 2 $run --algo fedavg --average-every 2 --checkpoint-every 2 --out "$W/average"
    check "an average of the parameters" ended 1 'after step 2 the parameters of rank 1 differ from those of rank 0; no checkpoint of it is written$'
    # Between rounds parameters differ, and what the last round left does not.
    rounds="--model lstm --hidden 4 --bptt 3 --data synthetic-text:2000x50x50 --batch 2 --lr-warmup 0 --eval-every never --average-every 4 --steps 16 --checkpoint-every 6 --keep 9"
    for algo in diloco sparseloco; do
        flipped 1:0:30:in 3 $rounds --algo $algo --out "$W/$algo"
        check "a round of $algo: found in the midst of the next" ended 1 'after step 6 the parameters or outer velocity of the last round of rank [0-2] differ from those of rank [0-2]; no checkpoint of it is written$'
        check "there is no checkpoint, $algo" [ -z "$(find "$W/$algo" -name 'checkpoint-*')" ]
    done
    flipped 0:3:40:in 3 $run --algo gtopk --density 0.01 --density-warmup none --wire-check
    check "a message of a sparse exchange" ended 1 ', rank 0: a message of [0-9]* bytes from rank [12] came changed'
}

# -- the same bits with checks --------------------------------------------------------------------------------------------
sparse="--density 0.01 --density-warmup none"
same_bits() { # same_bits P OPTION...
    same_p=$1
    shift
    # shellcheck disable=SC2086
    start "$same_p" $short --steps 3 "$@" --out "$W/without" && start "$same_p" $short --steps 3 "$@" --wire-check --out "$W/with"
    why="status $?, hashes \"$(hash_of "$W/without")\" and \"$(hash_of "$W/with")\": $(head -c 300 "$W/err")"
    [ -n "$(hash_of "$W/with")" ] && [ "$(hash_of "$W/without")" = "$(hash_of "$W/with")" ] &&
        [ "$(json "$W/without/run.jsonl" summary bytes_sent_per_step)" = "$(json "$W/with/run.jsonl" summary bytes_sent_per_step)" ]
    same_result=$?
    rm -rf "$W/with" "$W/without"
    return $same_result
}
# shellcheck disable=SC2086
for P in 1 2 3 4; do
    check "P = $P: dense has the same bits and bytes with --wire-check" same_bits $P --algo dense
    check "P = $P: dense-ovlp, in buckets" same_bits $P --algo dense-ovlp --overlap-bytes 200000
    check "P = $P: oktopk, by layers" same_bits $P --algo oktopk --overlap layers --overlap-bytes 200000 $sparse
done

# -- resuming ---------------------------------------------------------------------------------------------------------------
# Messages of a million bytes are the initial parameters, the checkpoint's, and the optimiser's state.
# shellcheck disable=SC2086
start 2 $run --checkpoint-every 3 --out "$W/run"
want=$(hash_of "$W/run")
again() { # again FLIP OPTION...: from its middle, flipped
    flip=$1
    shift
    rm -rf "$W/again"
    flipped "$flip" 2 --resume "$W/run/checkpoint-00000003" --out "$W/again" "$@"
}
again '' && check "a resumed run has the same bits" [ "$(hash_of "$W/again")" = "$want" ]
again 1:1:3:in:1000000
check "parameters that did not arrive as they were written" ended 1 'cannot resume: rank 1 has read parameters from .*checkpoint-00000003 that were not written there'
again 1:2:3:in:1000000
check "nor the optimiser's state" ended 1 'cannot resume: rank 1 has read states of the optimiser from '
cp -r "$W/run" "$W/newest"
sed -i '/"type":"summary"/d' "$W/newest/run.jsonl"
flipped 1:1:3:in:1000000 2 --resume "$W/newest"
check "nor is the checkpoint to blame, and passed by" ended 1 'cannot resume: rank 1 has read parameters from .*checkpoint-00000006 that were not'
check "it is still there" [ -d "$W/newest/checkpoint-00000006" ]
again 1:1:3:in:1000000 --wire-check
check "with --wire-check the broadcast is named" ended 1 'rank 1: a broadcast of [0-9]* bytes from rank 0 came changed'

# shellcheck disable=SC2086
start 2 $run --algo diloco --average-every 4 --checkpoint-every 3 --out "$W/rounds"
for message in 3 4; do
    rm -rf "$W/again"
    flipped 1:$message:3:in:1000000 2 --resume "$W/rounds/checkpoint-00000003" --out "$W/again"
    check "nor what the last round left, message $message" ended 1 'cannot resume: rank 1 has read parameters or outer velocity of the last round from '
done
"$BUILD/tests/craft" "$W/rounds/checkpoint-00000006/model.ckpt" set "round hash" 0 u64 1
sed -i '/"type":"summary"/d' "$W/rounds/run.jsonl"
start 2 --resume "$W/rounds"
status=$?
check "a hash of another round: the checkpoint before it is taken" ended 0 'checkpoint-00000006/model.ckpt is damaged: what it has of the last round is not what its hash is of; going on from .*checkpoint-00000003$'

# container.py FILE old|wrong|own: the file of the version before hashes; the same version with another hash; so of rank 1 alone
if command -v python3 > /dev/null 2>&1; then
    cat > "$W/container.py" << 'END'
import struct, sys, zlib
path, how = sys.argv[1:]
data = open(path, "rb").read()
magic, version, order, count, total = struct.unpack_from("<8sIIQQ", data)
assert version == 8, version
sections = []
for i in range(count):
    name, offset, size, crc, zero = struct.unpack_from("<24sQQII", data, 32 + 48 * i)
    sections.append([name, bytearray(data[offset:offset + size])])
hashes = [s for s in sections if s[0].rstrip(b"\0") in (b"hashes", b"own hashes")]
if how == "old":
    version = 4
    sections = [s for s in sections if s not in hashes and s[0].rstrip(b"\0") not in (b"tally", b"leg")]
elif how == "wrong" or "rank0001" in path:
    for s in hashes:
        s[1][0] ^= 1
offset = 32 + 48 * len(sections) + 4
table = b""
for name, body in sections:
    table += struct.pack("<24sQQII", name, offset, len(body), zlib.crc32(body), 0)
    offset += len(body)
head = struct.pack("<8sIIQQ", magic, version, order, len(sections), offset)
with open(path, "wb") as out:
    out.write(head + table + struct.pack("<I", zlib.crc32(head + table)) + b"".join(bytes(s[1]) for s in sections))
sys.exit(0 if hashes or how == "old" else 1)
END
    rewritten() { # rewritten NAME HOW: a copy of the checkpoint in run NAME
        rm -rf "$W/copy"
        mkdir "$W/copy"
        cp -r "$1" "$W/copy/checkpoint-00000003"
        for file in "$W"/copy/checkpoint-00000003/*.ckpt; do
            case $file in
            */model.ckpt) python3 "$W/container.py" "$file" "$2" || return 1 ;;
            *) python3 "$W/container.py" "$file" "$2" || [ "$3" = shared ] || return 1 ;;
            esac
        done
    }
    resumed() { # resumed P: from that copy
        rm -rf "$W/again"
        start "$1" --resume "$W/copy/checkpoint-00000003" --out "$W/again"
        status=$?
    }
    check "a checkpoint of version 4" rewritten "$W/run/checkpoint-00000003" old shared
    resumed 2
    check "can be resumed, to the same bits" [ "$(hash_of "$W/again")" = "$want" ]
    check "a checkpoint with another hash" rewritten "$W/run/checkpoint-00000003" wrong shared
    resumed 2
    check "is found" ended 2 'model.ckpt is damaged: its parameters are not those that its hashes are of'
    # shellcheck disable=SC2086
    start 2 $run --algo gtopk $sparse --local-update --average-every 4 --checkpoint-every 3 --out "$W/drift"
    check "replicas that drift have hashes of their own" rewritten "$W/drift/checkpoint-00000003" own own
    resumed 2
    check "of which a wrong one is found" ended 2 'rank0001.ckpt is damaged: its parameters are not those that its hashes are of'
    check "replicas that drift, version 4" rewritten "$W/drift/checkpoint-00000003" old own
    resumed 2
    check "can be resumed, to the same bits, too" [ "$(hash_of "$W/again")" = "$(hash_of "$W/drift")" ]
else
    skip "checkpoints of the version before" "python3 is not installed"
fi
finish
