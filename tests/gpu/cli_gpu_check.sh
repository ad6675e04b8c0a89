#!/bin/sh
# cli_gpu_check.sh: scripts/gpu-check.sh where there is no GPU: its steps at tiny sizes on the stand-in for CUDA, the files
# that they write, and how it refuses.
# long: most of a minute and more
. tests/lib/tap.sh

patient=1000000 # seconds, for all of a dry run: nothing here depends on how fast this machine is
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
    timeout $patient sh scripts/gpu-check.sh "$@" >"$W/log" 2>&1 </dev/null
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
check "a model that there is not" refused '"vgg19"' --models lstm,vgg19
check "a network that there is not" refused '"gpt3"' --nets resnet20,gpt3
check "data of no model" refused '"imagenet:x"' --only converge --data imagenet:x
check "a budget that is no number" refused '"long"' --budget long
check "an option without its value" refused '--out' --out
if command -v nvidia-smi >/dev/null 2>&1; then skip "no GPU: one line and status 2" "this machine has nvidia-smi"
else check "no GPU: one line and status 2" refused 'no NVIDIA GPU' --only build; fi

# Data that are missing: a machine that only says to have a GPU comes so far.
mkdir "$W/bin" "$W/no-data"
printf '#!/bin/sh\necho none\n' >"$W/bin/nvidia-smi"
chmod +x "$W/bin/nvidia-smi"
(
    # shellcheck disable=SC2030 # this path is for here alone
    export PATH="$W/bin:$PATH" SPARSETRAIN_DATA="$W/no-data" BUILD
    check_run --only converge --models vgg16,lstm --out "$W/late" --runs "$W/none"
)
late_for() { grep -q "^LATE  converge  $1: no $2 .*fetch-data.sh $2;" "$W/log" && [ ! -e "$W/none" ]; }
check "converging without CIFAR-10: what to fetch" late_for vgg16 cifar10
check "converging without Penn Treebank: what to fetch" late_for lstm ptb

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
    check_run --dry-run --only $steps --nets resnet20,vgg16,lstm,gpt2 --models resnet20,lstm --algos dense,gtopk:paper,topka --budget $patient --out "$W/out" --runs "$W/runs" --pack "$W/out/runs.tar.gz"
    status=$?
    check "dry run of every step: status 0" [ "$status" -eq 0 ]
    [ "$status" -eq 0 ] || sed 's/^/# /' "$W/log"
    for name in test compare bench-select bench-net bench-plans bench-kernels bench-train converge; do
        check "gpu-$name.json" valid "$name"
    done
    compared() { [ "$(grep -c "^{\"model\":\"$1\",.*\"pass\":true" "$(result compare)")" -eq "$2" ]; }
    check "two algorithms are compared" compared resnet20 2
    check "of the LSTM, too" compared lstm 2
    check "of the decoder" compared gpt 2
    check "and with attention of the library" compared gpt-plain 1
    if "$PROGRAM" list 2> /dev/null | grep -q 'utf8proc'; then
        skip "of the encoder" "this build lacks utf8proc"
    else
        check "of the encoder" compared bert 2
    fi
    if "$PROGRAM" list 2> /dev/null | grep -q 'lacks FFTW'; then
        skip "of the recogniser of speech" "this build lacks FFTW"
    else
        check "of the recogniser of speech" compared speech 1
    fi
    check "VGG-16 is compared" compared vgg16 1
    check "three models have different tolerances" [ "$(sed -n '/"precision":"f32"/s/.*\("tolerance":[^,]*\),.*/\1/p' "$(result compare)" | sort -u | wc -l)" -eq 3 ]
    scored() { grep -q "^{\"model\":\"$1\",\"algo\":\"$2\",\"ranks\":2,\"row\":\"eval\",.*\"$3\":[0-9]" "$(result converge)"; }
    for algo in dense gtopk-paper topka; do
        check "convergence of ResNet-20, $algo: its accuracy" scored resnet20 $algo test_accuracy
        check "convergence of the LSTM, $algo: its perplexity" scored lstm $algo valid_perplexity
        check "and in the summary" grep -q "^PASS  converge  lstm, $algo: epoch 1.0, validation perplexity [1-9][0-9.]*, completed" "$W/log"
    done
    check "gtopk with the other residual rule" grep -q '"gtopk-residual":"paper"' "$W/runs/lstm/gtopk-paper/run.jsonl"
    packed() { tar -tzf "$W/out/runs.tar.gz" | grep -c "$1\$"; }
    check "the rows of all runs are packed, and their checkpoints" [ "$(packed run.jsonl) $(packed model.ckpt)" = '6 6' ]
    check "a decoder is measured when it is named" grep -q '"model": "gpt", "batch": 1, "preset": "char-cpu", .*"words_per_s": [0-9]' "$(result bench-net)"
    check "with plans of its attention and without" grep -q '"model":"gpt2","precision":"bf16","words_per_s":[0-9.]*,"without_plans_per_s":[0-9]' "$(result bench-plans)"
    # Rows of selectors; what was left out, and why, has rows of its own, of which the one allowed is PyTorch's.
    selector_rows() { # selector_rows FILE
        left=$(grep '"skipped"' "$1" | grep -v '"skipped": "PyTorch"')
        why="left out: $left"
        [ -z "$left" ] && [ "$(grep '"gpu_topk"' "$1" | grep -vc '"skipped"')" -eq $((2 * $(names_of SELECTOR topk/selectors/selectors.def | wc -l))) ]
    }
    check "every selector has rows" selector_rows "$(result bench-select)"
    check "the summary has the steps" [ "$(sed -n '/^== summary/,$p' "$W/log" | awk '$1 ~ /PASS|NOTE/ { print $2 }' | sort -u | wc -l)" -eq 6 ]
    check "paths do not stay in results" sh -c "! grep -qF '$W' '$W'/out/gpu-*.json"
    # A machine so slow that each look at the clock finds another quarter of an hour gone.
    mkdir "$W/slow"
    cat >"$W/slow/date" <<END
#!/bin/sh
[ "\$*" = +%s ] || exec $(command -v date) "\$@"
echo . >>"$W/slow/looks"
expr 1700000000 + 900 \\* "\$(wc -l <"$W/slow/looks")"
END
    chmod +x "$W/slow/date"
    # shellcheck disable=SC2031 # the subshell above has a PATH of its own
    env PATH="$W/slow:$PATH" timeout $patient sh scripts/gpu-check.sh --dry-run --only sanitize --budget $patient --out "$W/late" >"$W/log" 2>&1 </dev/null
    no_limit() { grep -q '^NOTE  sanitize  skipped: a dry run has no GPU' "$W/log" && ! grep -q LATE "$W/log"; }
    check "a dry run's steps have no limits of time" no_limit
    # A measurement that ends badly: what it gave is kept, what was said of it does not come among the rows.
    mkdir "$W/ill"
    cat >"$W/ill/python3" <<'END'
#!/bin/sh
if [ "$1" = -c ]; then exit 0; fi
echo '{"bench": "gpu_net", "skipped": "all", "why": "ill"}'
echo '{"bench": "gp'
echo broken >&2
exit 1
END
    chmod +x "$W/ill/python3"
    # shellcheck disable=SC2031 # the subshell above has a PATH of its own
    env PATH="$W/ill:$PATH" timeout $patient sh scripts/gpu-check.sh --dry-run --only bench --benches select,net --nets resnet20,vgg16,lstm,gpt2,gpt-char --budget $patient --out "$W/kept" >"$W/log" 2>&1 </dev/null
    ended_badly() { # ended_badly NAME COUNT: as many rows, all of them whole
        grep -q '^FAIL  bench  .*ended badly' "$W/log" && [ "$(sed '1d;$d;s/,$//' "$W/kept/gpu-$1.json" | grep -cx '{.*}')" -eq "$2" ] &&
            [ "$(wc -l <"$W/kept/gpu-$1.json")" -eq $(($2 + 2)) ]
    }
    check "a measurement that ends badly leaves whole rows" ended_badly bench-select 1
    check "and of networks" ended_badly bench-net 1
    mkdir "$W/again" # as another machine has them
    tar -C "$W/again" -xzf "$W/out/runs.tar.gz"
    # A multi-process service: what it was told, and by which pipe.
    mkdir "$W/mps"
    cat >"$W/mps/nvidia-cuda-mps-control" <<END
#!/bin/sh
echo "\${1:-\$(cat)} \$CUDA_MPS_PIPE_DIRECTORY" >>"$W/mps/told"
END
    chmod +x "$W/mps/nvidia-cuda-mps-control"
    # shellcheck disable=SC2031 # the subshell above has a PATH of its own
    env PATH="$W/mps:$PATH" timeout $patient sh scripts/gpu-check.sh --dry-run --only converge --mps --models lstm,resnet20 --algos dense,gtopk:paper,topka --budget $patient --out "$W/out" --runs "$W/again" >"$W/log" 2>&1 </dev/null
    check "--mps: the service is started for the runs, and ended" [ "$(sed 's# .*/# #' "$W/mps/told" 2>/dev/null | tr '\n' ' ')" = '-d mps quit mps ' ]
    check "and said" grep -q '^NOTE  converge  ranks run beside each other' "$W/log"
    check "completed runs are not repeated" sh -c "grep -c 'completed' '$W/log' | grep -qx 12 && cat '$W'/again/*/*/run.jsonl | grep -c '\"header\"' | grep -qx 6"
    check_run --dry-run --only compare --budget 0 --out "$W/out"
    check "no time: status 1, and what was not done is named" [ "$?" -eq 1 ]
    check "by name" grep -q '^LATE  compare' "$W/log"
fi
finish
