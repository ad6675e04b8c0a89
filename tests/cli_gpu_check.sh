#!/bin/sh
# cli_gpu_check.sh: scripts/gpu-check.sh where there is no GPU: its steps at tiny sizes on the stand-in for CUDA, the files
# that they write, and how it refuses.
. tests/tap.sh

result() { echo "$W/out/gpu-$1.json"; }
valid() { # valid NAME: JSON, labelled as no measurement, with rows
    python3 - "$(result "$1")" <<'END'
import json, sys
result = json.load(open(sys.argv[1]))
assert set(result) == {"device", "machine", "gpu", "driver", "cuda", "cudnn", "commit", "date", "command", "rows"}, result.keys()
assert result["device"] == "hostcuda" and result["commit"] and result["rows"]
for row in result["rows"]:
    assert "why" in row or (row.get("pass", True) and not row.get("wrong") and not row.get("failed")), row
END
}
check_run() { # check_run ARGUMENTS...: output to $W/log
    timeout 1200 sh scripts/gpu-check.sh "$@" >"$W/log" 2>&1 </dev/null
}
refused() { # refused TEXT ARGUMENTS...: status 2 and one line
    text=$1
    shift
    check_run "$@"
    status=$?
    why="status $status: $(head -c 300 "$W/log")"
    [ "$status" -eq 2 ] && [ "$(wc -l <"$W/log")" -eq 1 ] && grep -qF -- "$text" "$W/log"
}

check "an unknown step" refused '"speed"' --only build,speed
check "a budget that is no number" refused '"long"' --budget long
check "an option without its value" refused '--out' --out
if command -v nvidia-smi >/dev/null 2>&1; then skip "no GPU: one line and status 2" "this machine has nvidia-smi"
else check "no GPU: one line and status 2" refused 'no NVIDIA GPU' --only build; fi

stand_in=$BUILD/tests/libsparsetrain_hostcuda.so
if [ -n "${SAN:-}" ]; then
    skip "dry run" "PyTorch and job launchers are not built with sanitizers"
elif [ ! -r "$stand_in" ]; then
    skip "dry run" "no stand-in for CUDA: no CUDA toolkit"
elif ! command -v python3 >/dev/null 2>&1; then
    skip "dry run" "python3 is not installed"
else
    check "dry runs do not write to results/measured" refused 'results/measured' --dry-run --out results/measured/dry
    rmdir results/measured/dry 2>/dev/null
    steps=build,test,compare,bench,sanitize,converge
    check_run --dry-run --only $steps --budget 1100 --out "$W/out" --runs "$W/runs"
    status=$?
    check "dry run of every step: status 0" [ "$status" -eq 0 ]
    [ "$status" -eq 0 ] || sed 's/^/# /' "$W/log"
    for name in test compare bench-select bench-net bench-train converge; do
        check "gpu-$name.json" valid "$name"
    done
    check "two algorithms are compared" [ "$(grep -c '"pass":true' "$(result compare)")" -eq 2 ]
    check "every selector has rows" [ "$(grep -c '"gpu_topk"' "$(result bench-select)")" -eq $((2 * $(names_of SELECTOR topk/selectors.def | wc -l))) ]
    check "the summary has the steps" [ "$(sed -n '/^== summary/,$p' "$W/log" | awk '$1 ~ /PASS|NOTE/ { print $2 }' | sort -u | wc -l)" -eq 6 ]
    check "paths do not stay in results" sh -c "! grep -qF '$W' '$W'/out/gpu-*.json"
    check_run --dry-run --only converge --budget 1100 --out "$W/out" --runs "$W/runs"
    check "completed runs are not repeated" sh -c "grep -c 'completed' '$W/log' | grep -q 4 && grep -c '\"header\"' '$W/runs/dense/run.jsonl' | grep -qx 1"
    check_run --dry-run --only compare --budget 0 --out "$W/out"
    check "no time: status 1, and what was not done is named" [ "$?" -eq 1 ]
    check "by name" grep -q '^LATE  compare' "$W/log"
fi
finish
