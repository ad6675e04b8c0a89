#!/bin/sh
# cli_gpu_build.sh: where the Makefile finds the CUDA toolkit's libraries.
. tests/lib/tap.sh

nvcc=$(command -v nvcc 2>/dev/null)
home=$(readlink -f "${nvcc:-/nowhere/bin/nvcc}")
home=${home%/bin/nvcc}
# toolkit LIB: in $W/LIB, the same toolkit with its libraries in that folder alone
toolkit() {
    mkdir -p "$W/$1/bin"
    ln -s "$home/include" "$W/$1/include"
    ln -s "$home/lib64" "$W/$1/$1"
    printf '#!/bin/sh\nexec "%s/bin/nvcc" "$@"\n' "$home" >"$W/$1/bin/nvcc"
    chmod +x "$W/$1/bin/nvcc"
}
linked() { # linked LIB: from that folder of that toolkit, the first that is searched
    PATH="$W/$1/bin:$PATH" make -n V=1 BUILD="$W/build" "$W/build/libsparsetrain_cuda.so" >"$W/log" 2>&1
    why="$(tail -n 1 "$W/log" | grep -o -- '-L[^ ]*')"
    grep -- '-shared.*-lcudart_static' "$W/log" | grep -o -- '-L[^ ]*' | head -n 1 | grep -qxF -- "-L$W/$1/$1"
}
if [ -z "$nvcc" ] || [ ! -e "$home/lib64/libcudnn.so" ] || [ ! -e "$home/lib64/libcudart_static.a" ]; then
    skip "libraries in lib" "no CUDA toolkit with cuDNN in its lib64"
else
    for lib in lib64 lib; do
        toolkit $lib
        check "libraries in $lib" linked $lib
    done
fi
finish
