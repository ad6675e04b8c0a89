#!/bin/sh
# cli_export.sh: the verb export, by the real program: from a run's directory or one checkpoint of it, on a run of any
# number of ranks, on the device of SPARSETRAIN_TEST_DEVICE; files that Python reads by their formats; and every mistake.
# What is in the files is cli_export.c's.
# devices: cuda
. tests/lib/tap.sh
device=${SPARSETRAIN_TEST_DEVICE:-cpu}
small="--data synthetic:64x8 --batch 2 --eval-every 0 --device $device --lr-warmup 0"

# exports NAME ARGS...: the program says what it wrote
exports() {
    e_name=$1
    shift
    start 1 export "$@"
    check "$e_name" [ $? -eq 0 -a "$(grep -c '^wrote .*: [0-9]* parameters' "$W/out")" -eq 1 ]
}
same() { cmp -s "$1" "$2"; }

# -- what is written where --------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
start 3 $small --algo gtopk --density 0.05 --density-warmup none --steps 4 --checkpoint-every 2 --out "$W/run"
exports "of a run: its newest checkpoint, beside it" "$W/run" --format safetensors
check "under a name with the step" [ -s "$W/run/model-00000004.safetensors" ]
exports "of a checkpoint of it" "$W/run/checkpoint-00000002" --format npz
check "beside it, too" [ -s "$W/run/model-00000002.npz" ]
exports "to a file, which may be there" --format safetensors --out "$W/file" "$W/run"
exports "to the same file again" --out "$W/file" "$W/run/" --format safetensors
# The name by default is the program's own: a link there is replaced; where the user names one, the file behind it.
echo precious > "$W/elsewhere"
ln -s ../elsewhere "$W/run/model-00000004.npz"
exports "where a link lies in the place of its file" "$W/run" --format npz
check "which is replaced" [ -s "$W/run/model-00000004.npz" -a ! -h "$W/run/model-00000004.npz" ]
check "and what it leads to stays" [ "$(cat "$W/elsewhere")" = precious ]
ln -s elsewhere "$W/link"
exports "to a link that --out names" "$W/run" --format npz --out "$W/link"
check "which stays, and leads to the model" same "$W/link" "$W/run/model-00000004.npz"
check "still as a link" [ -h "$W/link" ]
mkdir "$W/run/model-00000002.safetensors"
check "a directory in the place of its file" mistaken_alone "model-00000002.safetensors: it is a directory, not a regular file; give another --out" export "$W/run/checkpoint-00000002" --format safetensors
rmdir "$W/run/model-00000002.safetensors"
check "the same model gives the same file" same "$W/file" "$W/run/model-00000004.safetensors"
check "nothing is left behind" [ "$(find "$W" -name '*.tmp*' | wc -l)" -eq 0 ]
start 3 export "$W/run" --format npz --out "$W/once.npz"
check "under mpirun one process writes" [ "$(grep -c '^wrote' "$W/out")" -eq 1 ]
"$PROGRAM" export "$W/run" --format npz --out /dev/stdout > "$W/piped.npz" 2> "$W/err"
check "into a pipe" same "$W/piped.npz" "$W/once.npz"
start 3 --resume "$W/run" --steps 6
check "the run goes on beside the files" [ "$(find "$W/run" -name 'checkpoint-*' | wc -l)" -eq 2 ]

# -- read by others -----------------------------------------------------------------------------------------------------
cat > "$W/read.py" << 'PYTHON'
import json, struct, sys, zipfile, ast

def floats(data):
    return struct.unpack("<%df" % (len(data) // 4), data)

with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
about = header.pop("__metadata__")
tensors = {name: (tuple(x["shape"]), floats(data[slice(*x["data_offsets"])])) for name, x in header.items()}
archive = zipfile.ZipFile(sys.argv[2])
assert archive.testzip() is None
assert json.loads(archive.comment) == about
arrays = {}
for name in archive.namelist():
    raw = archive.read(name)
    length = struct.unpack("<H", raw[8:10])[0]
    head = ast.literal_eval(raw[10 : 10 + length].decode("ascii"))
    assert raw[:8] == b"\x93NUMPY\x01\x00" and head["descr"] == "<f4" and head["fortran_order"] is False
    arrays[name[: -len(".npy")]] = (head["shape"], floats(raw[10 + length :]))
assert arrays == tensors
assert all(isinstance(value, str) for value in about.values())
assert about["format"] == "pt" and about["ranks"] == "3" and about["model"] == "resnet20" and about["input"] == "3 32 32"
assert tensors["conv1.weight"][0] == (16, 3, 3, 3) and tensors["bn1.running_var"][0] == (16,)
assert tensors["linear.weight"][0] == (10, 64) and len(tensors) == 97
PYTHON
if command -v python3 > /dev/null 2>&1; then
    check "Python reads both formats: the same numbers, shapes and metadata" python3 "$W/read.py" "$W/file" "$W/once.npz"
else
    skip "Python reads both formats: the same numbers, shapes and metadata" "python3 is not installed"
fi

# -- mistakes -----------------------------------------------------------------------------------------------------------
# refused PART ARGS...: one line, nothing written
refused() {
    r_part=$1
    shift
    check "$r_part" unmade "$W/new" silent mistaken_alone "$r_part" export "$@"
}
# damaged FILE OFFSET: a copy of the run in $W/bad, where this byte of the newest checkpoint's file has another value
damaged() {
    rm -rf "$W/bad"
    cp -r "$W/run" "$W/bad"
    printf 'x' | dd of="$W/bad/checkpoint-00000006/$1" bs=1 seek="$2" conv=notrunc 2> /dev/null
}
refused 'a checkpoint is needed' --format npz --out "$W/new"
refused '--format NAME is needed: safetensors or npz' "$W/run" --out "$W/new"
refused '--format has no "onnx"; there are: safetensors, npz' "$W/run" --format onnx --out "$W/new"
refused 'there is no option --quiet' "$W/run" --format npz --quiet --out "$W/new"
refused '--out wants a value' "$W/run" --format npz --out
refused 'one checkpoint at a time' "$W/run" "$W/run" --format npz --out "$W/new"
refused "cannot export $W/nowhere: No such file" "$W/nowhere" --format npz --out "$W/new"
mkdir "$W/empty"
refused 'there is no checkpoint in it; name a checkpoint, or' "$W/empty" --format npz --out "$W/new"
refused "cannot write $W/no/file: No such file" "$W/run" --format npz --out "$W/no/file"
refused 'cannot write /dev/full: it is a device' "$W/run" --format safetensors --out /dev/full
"$PROGRAM" export "$W/run" --format npz --out /dev/stdout > /dev/full 2> "$W/err"
check "a full disk behind /dev/stdout: status 1" told $? 'cannot write /dev/stdout: No space left' 1
damaged model.ckpt 100000
refused "the one before it: export $W/bad/checkpoint-00000004" "$W/bad" --format npz --out "$W/new"
damaged rank0002.ckpt 40
refused 'rank0002.ckpt is damaged' "$W/bad" --format npz --out "$W/new"
damaged model.ckpt 8
refused 'has format version 120; this program reads versions 3 to 8' "$W/bad" --format npz --out "$W/new"
rm -rf "$W/bad"
cp -r "$W/run" "$W/bad"
rm "$W/bad/checkpoint-00000006/rank0001.ckpt"
refused 'rank0001.ckpt: No such file' "$W/bad" --format npz --out "$W/new"
cp "$W/bad/checkpoint-00000004/rank0001.ckpt" "$W/bad/checkpoint-00000006"
refused 'rank0001.ckpt belongs to another run or step' "$W/bad" --format npz --out "$W/new"
finish
