# shellcheck shell=sh
# gpu/tools.sh: sourced by gpu-check.sh and gpu-probe.sh, after lib/common.sh: what a machine with a GPU has, the libraries that
# were brought to it, and the files of results. Variables that the caller sets: BUILD said PEER_LIBRARY_PATH. What may be missing
# is never taken for granted: xz, make, cuDNN.
# shellcheck disable=SC2154,SC2034

# json_text TEXT: as it stands in quotes
json_text() { printf '%s' "$1" | tr '\n\t' '  ' | sed 's/\\/\\\\/g; s/"/\\"/g'; }
# write_rows FILE ROWS MEMBERS: one JSON object: these members, what was called when, and the rows, a line each
write_rows() {
    {
        printf '{"device":"%s",%s"commit":"%s","date":"%s","command":"%s","rows":[\n' "$label" "$3" "$commit" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" \
            "$(json_text "$command")"
        sed '$!s/$/,/' "$2"
        echo ']}'
    } >"$1"
}

# unpack ARCHIVE FOLDER: a .tar.xz; with Python where xz is missing
unpack() {
    if command -v xz >/dev/null 2>&1; then tar -xJf "$1" -C "$2"
    else
        python3 - "$1" "$2" <<'END'
import sys, tarfile
with tarfile.open(sys.argv[1], "r:xz") as archive:
    archive.extractall(sys.argv[2], **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
END
    fi
}
# use_libs DIR|DIR.tar.xz: what gpu-libs.sh gathered, unpacked once, so that what was built with it stays built
use_libs() {
    libs=$1
    if [ -f "$libs" ]; then
        archive=$libs libs=$(absolute "$BUILD")/libs
        if [ ! -e "$libs/done" ] || [ -n "$(find "$archive" -newer "$libs/done")" ]; then
            rm -rf "$libs"
            mkdir -p "$libs"
            unpack "$archive" "$libs" || fail "cannot unpack $archive"
            touch "$libs/done"
        fi
    fi
    if [ ! -f "$libs/env.sh" ]; then # the folder into which that archive went
        libs=$(find "$libs" -maxdepth 2 -name env.sh 2>/dev/null)
        libs=${libs%/env.sh}
    fi
    [ -f "$libs/env.sh" ] || fail "--libs holds no env.sh; scripts/gpu-libs.sh makes such a folder"
    GPU_LIBS=$libs
    export GPU_LIBS
    # shellcheck disable=SC1091 # made by gpu-libs.sh
    . "$libs/env.sh"
}
# find_gpu: its name in gpu ('' where there is none), driver, compute capability
find_gpu() {
    smi=$(command -v nvidia-smi || ls /usr/local/nvidia/bin/nvidia-smi 2>/dev/null)
    gpu=$(ask name) driver=$(ask driver_version) capability=$(ask compute_cap | tr -d .)
}
ask() { [ -z "$smi" ] || "$smi" --query-gpu="$1" --format=csv,noheader 2>/dev/null | head -n 1; }

find_tools() {
    jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
    nvcc=$(command -v nvcc || find /usr/local/cuda/bin -name nvcc 2>/dev/null | head -n 1)
    [ -n "$nvcc" ] && PATH=$PATH:${nvcc%/nvcc} && export PATH
    cuda_home=${nvcc:+$(readlink -f "$nvcc")} && cuda_home=${cuda_home%/bin/nvcc}
    cuda_version=$([ -z "$nvcc" ] || "$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
    python='' torch=''
    for candidate in python3 /usr/bin/python3; do
        candidate=$(command -v "$candidate") || continue
        python=${python:-$candidate}
        torch=$(peer_environment "$candidate" -c 'import torch; print(torch.__version__)' 2>/dev/null) && python=$candidate && break
    done
    compiler=
    command -v cc >/dev/null 2>&1 || compiler="CC=gcc"
    find_cuda_libraries
    set_machine
    # Folders of this machine do not belong into results.
    command=$(printf '%s' "$said" | sed 's#--\(libs\|out\|runs\|pack\) [^ ]*/#--\1 #g; s#--data \([a-z0-9]*\):[^ ]*/#--data \1:#g')
}
set_machine() {
    machine="$(machine_cpu), $jobs cores"
    commit=$(sh scripts/lib/commit.sh)
}
# PyTorch's own environment, and in it ours for the programs of ours that it starts.
peer_environment() {
    env LD_LIBRARY_PATH="$PEER_LIBRARY_PATH" OUR_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" "$@"
}
# cuDNN and cuBLAS of the toolkit, or those of Python's packages
find_cuda_libraries() {
    cudnn='' cublas='' where=$cuda_home
    [ -n "$cuda_home" ] || return 0
    lies_in "$cuda_home/lib64/libcublas.so*" "$cuda_home/lib/libcublas.so*" || cublas=$(python_package libcublas.so cublas_v2.h)
    lies_in "$cuda_home/lib64/libcudnn.so*" "$cuda_home/lib/libcudnn.so*" '/usr/lib/*/libcudnn.so*' || {
        cudnn=$(python_package libcudnn.so cudnn.h)
        where=$cudnn
    }
    for header in "$where/include/cudnn_version.h" /usr/include/cudnn_version.h /usr/include/*/cudnn_version.h; do
        [ -r "$header" ] && break
    done
    cudnn_version=$(awk '$2 ~ /^CUDNN_(MAJOR|MINOR|PATCHLEVEL)$/ { v = v (v == "" ? "" : ".") $3 } END { print v }' "$header" 2>/dev/null)
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$cuda_home/lib64:$cuda_home/lib${cublas:+:$cublas/lib}${cudnn:+:$cudnn/lib}
    export LD_LIBRARY_PATH
}
lies_in() { # lies_in PATTERN...: is there any such file?
    for pattern in "$@"; do
        # shellcheck disable=SC2086 # a pattern
        set -- $pattern
        if [ -e "$1" ]; then return 0; fi
    done
    return 1
}
# python_package LIBRARY HEADER: the folder of the nvidia package with lib/LIBRARY* and include/HEADER
python_package() {
    [ -z "$python" ] || "$python" - "$@" <<'END' 2>/dev/null
import glob, os, sys
import nvidia
for folder in nvidia.__path__:
    for header in sorted(glob.glob(os.path.join(folder, "*", "include", sys.argv[2]))):
        found = os.path.dirname(os.path.dirname(header))
        if glob.glob(os.path.join(found, "lib", sys.argv[1] + "*")):
            print(found)
            sys.exit()
END
}
