#!/bin/sh
# gpu-rehearsal.sh --make-root FILE.tar
# gpu-rehearsal.sh --root FILE.tar|DIR PACKED [--only LIST] [--toolkit DIR]
# A lease without the card: the calls that gpu-pack.sh wrote into PACKED, one after the other, in a machine as the lent one is:
# an Ubuntu 24.04 root (gcc 13, glibc 2.39) with the CUDA toolkit, cuDNN and cuBLAS inside Python's packages alone, no network,
# no MPI, no make, no xz, no git, and of this tree what travels. Everything is built and linked there as for the GPU; what would
# need it runs at tiny sizes on the stand-in for CUDA. Needs root (chroot, namespaces).
# --make-root  makes that root with mmdebstrap (150 MB to fetch). Where Ubuntu's archive is not reached, of Debian 13 with its
#              gcc-13 (glibc 2.41), which is the nearest
# --only       calls, by number (all)
# --toolkit    the CUDA toolkit with cuDNN (where nvcc is)
# Exit status: 0 when every call ended well and what it leaves fits home (8 files of 16 MiB), 1 when not, 2: could not begin.
set -u
# shellcheck source=scripts/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
make_root='' root_from='' only='' toolkit=''
options 'make-root/ root:root_from only toolkit/ ...' "$@"
eval "set -- $words"
[ $# -le 1 ] || fail "one folder of calls; $options_hint"
packed=$(absolute "${1:-}") root_from=$(absolute "$root_from")
cd "$(dirname "$0")/.." || exit 2
tree=$PWD

# -- a root ------------------------------------------------------------------------------------------------------------------
ubuntu_keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg
make_ubuntu() {
    if [ ! -r $ubuntu_keys ]; then # Debian 13 has them as a package
        mmdebstrap --quiet --variant=extract --include=ubuntu-archive-keyring trixie "$scratch/keys" || return 1
        ubuntu_keys=$scratch/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg
    fi
    mmdebstrap --quiet --variant=minbase --keyring="$ubuntu_keys" --components=main,universe --include=gcc,g++,libc6-dev,python3 noble "$make_root"
}
make_debian() {
    # shellcheck disable=SC2016 # for the shell that mmdebstrap starts
    mmdebstrap --quiet --variant=minbase --include=gcc-13,g++-13,libc6-dev,python3 \
        --customize-hook='for tool in gcc g++ cpp; do ln -sf $tool-13 "$1/usr/bin/$tool"; done; ln -sf gcc "$1/usr/bin/cc"' trixie "$make_root"
}
if [ -n "$make_root" ]; then
    command -v mmdebstrap >/dev/null 2>&1 || fail 'mmdebstrap is not installed (Debian and Ubuntu have it)'
    [ ! -e "$make_root" ] || fail "$make_root is there already"
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/sparsetrain-root.XXXXXX") || exit 2
    trap 'rm -rf "$scratch"' EXIT
    trap 'rm -rf "$scratch" "$make_root"; exit 130' HUP INT TERM
    chmod 755 "$scratch" # apt reads the keys as another user
    if make_ubuntu; then echo "$make_root: Ubuntu 24.04"
    elif make_debian; then echo "$make_root: Debian 13 with gcc 13: Ubuntu's archive is not reached from here"
    else
        rm -f "$make_root"
        fail 'no root can be made here'
    fi
    exit 0
fi

# -- the machine ---------------------------------------------------------------------------------------------------------------
if [ -z "$root_from" ] || [ -z "$packed" ]; then fail "--root FILE and a folder of calls are needed; $options_hint"; fi
[ -e "$root_from" ] || fail "$root_from is not there; --make-root makes one"
[ -s "$packed/CALLS.md" ] || fail "$packed has no CALLS.md; sh scripts/gpu-pack.sh makes it"
[ "$(id -u)" = 0 ] || fail 'root is needed (chroot and namespaces)'
unshare --mount --net --pid --fork true 2>/dev/null || fail 'this system lets us make no namespaces (unshare)'
if [ -z "$toolkit" ]; then
    nvcc=$(readlink -f "$(command -v nvcc || echo /nowhere)")
    toolkit=${nvcc%/bin/nvcc}
fi
[ -x "$toolkit/bin/nvcc" ] || fail 'no CUDA toolkit: --toolkit'
make_scratch
trap 'rm -rf --one-file-system "$scratch"' EXIT
trap 'exit 130' HUP INT TERM
if [ -d "$root_from" ]; then cp -a "$root_from" "$scratch/root"
else
    mkdir "$scratch/root"
    tar -C "$scratch/root" --exclude='./dev/*' -xf "$root_from" || fail "cannot unpack $root_from"
fi
machine=$scratch/root
for tool in make xz git mpirun pkg-config nvcc; do
    for place in usr/bin usr/local/bin bin; do [ ! -e "$machine/$place/$tool" ] || fail "the root has $tool, which the lent machine may lack"; done
done
# lay FOLDER FILE...: into the machine, as links to the same files where it is on the same disk
lay() {
    lay_to=$machine/$1
    shift
    mkdir -p "$lay_to"
    for file in "$@"; do
        [ -e "$file" ] || continue
        cp -RlL "$file" "$lay_to/" 2>/dev/null || cp -RL "$file" "$lay_to/" || fail "cannot copy $file"
    done
}
libraries=$toolkit/lib64
[ -e "$libraries/libcudart_static.a" ] || libraries=$toolkit/lib
python_packages=usr/lib/python3/dist-packages/nvidia
lay usr/local/cuda "$toolkit/bin" "$toolkit/nvvm" "$toolkit/include"
lay usr/local/cuda/lib64 "$libraries"/libcudart* "$libraries"/libcudadevrt.a "$libraries"/libnvrtc*.so*
lay $python_packages/cudnn/include "$toolkit"/include/cudnn*.h
lay $python_packages/cudnn/lib "$libraries"/libcudnn*.so.9
lay $python_packages/cu13/include "$toolkit"/include/cublas*.h
lay $python_packages/cu13/lib "$libraries"/libcublas*.so.1[0-9]
rm -f "$machine"/usr/local/cuda/include/cudnn*.h "$machine"/usr/local/cuda/include/cublas*.h

# -- the calls -----------------------------------------------------------------------------------------------------------------
# What travels: tracked files and those that git does not ignore; the same folder each time, in which ignored files stay.
copy=$machine/lease/tree
mkdir -p "$copy" "$machine/lease/home"
lies=${packed#"$tree"/}
bring() { # bring CALL
    git ls-files -z --cached --others --exclude-standard | tar --null -T - --ignore-failed-read -cf - 2>/dev/null | tar -C "$copy" -xf -
    rm -rf "${copy:?}/$lies" "$machine"/lease/home/*
    mkdir -p "$copy/$lies"
    cp -a "$packed/$1" "$copy/$lies/"
}
cat >"$machine/lease/enter" <<'END'
#!/bin/sh
mount -t proc proc /proc && mount -t tmpfs tmpfs /dev && mkdir /dev/shm /dev/pts && mount -t tmpfs tmpfs /dev/shm
for device in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "/dev/${device%:*}" c 1 "${device#*:}"; done
ln -s /proc/self/fd /dev/fd
# The loopback, which every machine has.
python3 -c 'import fcntl, socket, struct; fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh22x", b"lo", 0x41))'
cd /lease/tree && exec sh "$1/run.sh"
END
chmod +x "$machine/lease/enter"
# The stand-in computes in seconds what a card does in none.
budget=${REHEARSAL_SECONDS:-5400}
worst=0 number=0
while [ -d "$packed/$((number + 1))" ]; do
    number=$((number + 1))
    case ",${only:-$number}," in *",$number,"*) ;; *) continue ;; esac
    echo "== call $number: $(sed -n '2s/^# Call [^:]*: \(.*\). Started.*/\1/p' "$packed/$number/run.sh")"
    bring $number
    began=$(date +%s)
    unshare --mount --net --pid --fork --kill-child chroot "$machine" env -i PATH=/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin HOME=/tmp TMPDIR=/tmp \
        REHEARSE=1 GPU_BUDGET="$budget" OUT=/lease/home /lease/enter "$lies/$number" >"$scratch/log" 2>&1 </dev/null
    status=$?
    sed 's/^/   /' "$scratch/log"
    files=$(find "$machine/lease/home" -type f | wc -l)
    large=$(find "$machine/lease/home" -type f -size +16384k | head -n 1)
    echo "== call $number: status $status, $(($(date +%s) - began)) s, home: $(cd "$machine/lease/home" && find . -type f | sed 's,^\./,,' | sort | tr '\n' ' ')"
    if [ $status -ne 0 ]; then worst=1; fi
    if [ "$files" -gt 8 ] || [ "$files" -eq 0 ] && ! grep -q ': brings data' "$packed/$number/run.sh"; then
        echo "   $files files for home: 1 to 8 were expected"
        worst=1
    fi
    if [ -n "$large" ]; then
        echo "   ${large##*/} is larger than 16 MiB"
        worst=1
    fi
    if [ -n "${REHEARSAL_HOME:-}" ]; then
        mkdir -p "$REHEARSAL_HOME/$number"
        cp -R "$machine/lease/home/." "$REHEARSAL_HOME/$number/"
    fi
done
[ $number -gt 0 ] || fail "$packed has no calls"
exit $worst
