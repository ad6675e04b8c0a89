#!/bin/sh
# gpu-libs.sh DIR: on a Debian or Ubuntu machine with network, gathers in DIR what building and testing sparsetrain need
# and what a machine with a GPU may lack: Open MPI, oneDNN, libpng, zlib, cmocka, pkg-config. Nothing is installed: the
# packages are fetched, unpacked into DIR, cut down to what the build and one-machine jobs open, and packed as
# DIR.tar.xz. There, without root and without network (DIR may lie anywhere):
#
#     GPU_LIBS=DIR; . DIR/env.sh; make        (or: sh scripts/gpu-check.sh --libs DIR.tar.xz)
#
# The machine there must have a C compiler and a C library no older than here; xz or Python unpacks the archive.
set -eu
# shellcheck source=scripts/lib/common.sh
. "$(dirname "$0")/lib/common.sh"
fail() {
    say "$@"
    exit 1
}
case ${1:-} in
'' | -*)
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
[ ! -e "$1" ] || fail "$1 is there already; remove it first"
for tool in apt-get apt-cache dpkg readelf tar xz; do
    command -v $tool >/dev/null 2>&1 || fail "$tool is not installed (this is for Debian and Ubuntu)"
done
mkdir -p "$1"
to=$(cd "$1" && pwd)
make_scratch

# -- fetch: what apt would install on a machine that has nothing ---------------------------------------------------------
wanted='openmpi-bin libopenmpi-dev libdnnl-dev libpng-dev zlib1g-dev libutf8proc-dev libfftw3-dev libcmocka-dev pkgconf make'
# Compilers, the C library and large things that only packages' scripts use; what is missed here shows below.
never='^(gcc|g[+][+]|cpp|gfortran|libgfortran|binutils|libbinutils|libc6|libc-|linux-libc|libgcc|libstdc|libgomp|perl'
never=$never'|libperl|auto|openssh|libicu|libx|libssl|libasan|libtsan|liblsan|libubsan|libitm|libisl|libmpfr|libgprofng'
never=$never'|libdb|libgmp|dpkg|tar|passwd|libkrb|libgssapi|libpam|libjs-|debconf|adduser|m4|libtirpc)'
mkdir -p "$scratch/archives/partial" "$scratch/unpacked" "$scratch/debs"
: >"$scratch/status"
# shellcheck disable=SC2086 # a list of words
apt-get -o Dir::State::status="$scratch/status" -o Dir::Cache="$scratch" -o Debug::NoLocking=1 install --print-uris -qq -y \
    --no-install-recommends $wanted >"$scratch/uris" || fail "apt-get finds no way to install: $wanted (apt-get update?)"
sed "s/^'[^']*' \([^_]*\)_\([^_]*\)_.*/\1=\2/; s/%3a/:/" "$scratch/uris" | grep -vE "$never" >"$scratch/packages"
# shellcheck disable=SC2046 # a list of words
(cd "$scratch/debs" && apt-get -o APT::Sandbox::User=root download -qq $(cat "$scratch/packages")) || fail "apt-get could not fetch"
for deb in "$scratch"/debs/*.deb; do dpkg -x "$deb" "$scratch/unpacked"; done

# -- choose: programs, headers, and every library that these need, found by reading the files ------------------------------
cd "$scratch/unpacked"
[ ! -d lib ] || [ -L lib ] || cp -a lib/. usr/lib/
libs=
for folder in usr/lib/*-linux-gnu; do libs=$folder; done
components=$(find "$libs/openmpi/lib" -maxdepth 1 -type d -name 'openmpi*' | head -n 1)
[ -d "$components" ] || fail "these packages have their Open MPI somewhere else than expected"
keep() { # keep FILE...: with its folders
    for file in "$@"; do
        [ -e "$file" ] || continue
        mkdir -p "$to/${file%/*}"
        cp -aL "$file" "$to/${file%/*}/"
    done
}
keep usr/bin/orterun usr/bin/orted usr/bin/pkgconf usr/bin/make usr/share/openmpi usr/include/oneapi usr/include/libpng16 usr/include/png*.h \
    usr/include/zlib.h usr/include/zconf.h usr/include/utf8proc.h usr/include/fftw3.h "$libs"/../../include/*-linux-gnu/zconf.h usr/include/cmocka*.h \
    "$libs"/openmpi/include/mpi*.h "$libs"/openmpi/include/openmpi/mpiext "$libs"/pmix*/share/pmix etc/openmpi
for name in mpirun mpirun.openmpi; do ln -s orterun "$to/usr/bin/$name"; done
ln -s pkgconf "$to/usr/bin/pkg-config"

needs() { readelf -d "$1" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
everywhere='^(ld-linux.*|linux-vdso|lib(c|m|mvec|dl|rt|pthread|util|resolv|nsl|gcc_s|stdc[+][+]|gomp)\.so.*)$'
with_needs() { # with_needs LIBRARY: it and all that it needs, once each
    for need in $(needs "$1"); do
        [ ! -e "$to/$libs/$need" ] || continue
        if echo "$need" | grep -qE "$everywhere"; then continue; fi
        [ -e "$libs/$need" ] || fail "$1 needs $need, which no fetched package has"
        keep "$libs/$need"
        with_needs "$libs/$need"
    done
}
# Components of Open MPI and PMIx for networks, batch systems and files are left out: this is for jobs on one machine.
for file in "$components"/mca_*.so; do
    case $file in
    *ucx* | *ofi* | *psm* | *openib* | *oshmem* | *_monitoring* | *_spml_* | *_scoll_* | *_memheap_* | *_sshmem_* | *_atomic_*) ;;
    *slurm* | *gridengine* | *flux* | *jsm* | *romio* | *_fcoll_* | *_sharedfp_* | *_reachable_netlink*) ;;
    *)
        keep "$file"
        with_needs "$file"
        ;;
    esac
done
pmix=usr
for file in "$libs"/pmix*/lib/pmix/*.so; do
    [ -e "$file" ] || continue
    pmix=${file%/lib/pmix/*}
    case $file in *munge* | *psm* | *opa* | *slurm*) continue ;; esac
    keep "$file"
    with_needs "$file"
done
with_needs usr/bin/orterun
with_needs usr/bin/orted
with_needs usr/bin/pkgconf
with_needs usr/bin/make
# What the build links: the name for the linker points at the library that is loaded later.
for name in mpi dnnl png16 png z utf8proc fftw3f cmocka; do
    linked=$(find "$libs" "$libs/openmpi/lib" -maxdepth 1 -name "lib$name.so" | head -n 1)
    [ -n "$linked" ] || fail "no lib$name.so in these packages"
    library=$(readelf -d "$linked" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
    keep "$libs/$library"
    with_needs "$libs/$library"
    ln -sf "$library" "$to/$libs/lib$name.so"
done
# pkg-config: paths from where the file lies
mkdir -p "$to/$libs/pkgconfig"
for name in ompi-c libpng zlib libutf8proc fftw3f cmocka; do
    found=
    for folder in usr/share/pkgconfig "$libs/pkgconfig" "$libs/openmpi/lib/pkgconfig"; do
        if [ -e "$folder/$name.pc" ]; then found=$folder/$name.pc; fi
    done
    [ -n "$found" ] || fail "no $name.pc in these packages"
    # shellcheck disable=SC2016 # the dollar is for pkg-config
    sed 's|/usr\>|${pcfiledir}/../../..|g; s|^libdir=.*/openmpi/lib$|libdir=${pcfiledir}/..|' "$found" >"$to/$libs/pkgconfig/$name.pc"
done
find "$to" -type f \( -name '*.so*' -o -path '*/usr/bin/*' \) -exec strip --strip-unneeded {} + 2>/dev/null || true
cp "$scratch/packages" "$to/packages"

# -- how it is used -------------------------------------------------------------------------------------------------------
cat >"$to/env.sh" <<END
# shellcheck shell=sh
# env.sh: sourced with GPU_LIBS set to the folder of this file: programs, headers and libraries from here come first.
: "\${GPU_LIBS:?set it to the folder of env.sh}"
gpu_libs=\$GPU_LIBS/$libs
PATH=\$GPU_LIBS/usr/bin:\$PATH
PKG_CONFIG_PATH=\$gpu_libs/pkgconfig\${PKG_CONFIG_PATH:+:\$PKG_CONFIG_PATH}
LIBRARY_PATH=\$gpu_libs\${LIBRARY_PATH:+:\$LIBRARY_PATH}
LD_LIBRARY_PATH=\$gpu_libs\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
C_INCLUDE_PATH=\$GPU_LIBS/usr/include:\$GPU_LIBS/usr/include/${libs##*/}\${C_INCLUDE_PATH:+:\$C_INCLUDE_PATH}
CPLUS_INCLUDE_PATH=\$GPU_LIBS/usr/include:\$GPU_LIBS/usr/include/${libs##*/}\${CPLUS_INCLUDE_PATH:+:\$CPLUS_INCLUDE_PATH}
OPAL_PREFIX=\$GPU_LIBS/usr
OPAL_LIBDIR=\$gpu_libs/openmpi/lib
OPAL_PKGLIBDIR=\$GPU_LIBS/$components
OPAL_SYSCONFDIR=\$GPU_LIBS/etc/openmpi
OPAL_PKGDATADIR=\$GPU_LIBS/usr/share/openmpi
PMIX_PREFIX=\$GPU_LIBS/$pmix
PMIX_INSTALL_PREFIX=\$PMIX_PREFIX
# PMIX_PREFIX moves PMIx but not the folder of its components: without these two it opens those of the machine, which may be of another
# version, and each process says so in three lines.
PMIX_PKGLIBDIR=\$PMIX_PREFIX/lib/pmix
PMIX_MCA_mca_base_component_path=\$PMIX_PKGLIBDIR
: "\${OMPI_MCA_btl_vader_single_copy_mechanism:=none}" # containers rarely let one rank read another's memory
PMIX_MCA_pcompress_base_silence_warning=1
: "\${OMPI_MCA_plm:=isolated}"                           # on this machine alone: no ssh is looked for
export PATH PKG_CONFIG_PATH LIBRARY_PATH LD_LIBRARY_PATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH OPAL_PREFIX OPAL_LIBDIR OPAL_PKGLIBDIR
export OPAL_SYSCONFDIR OPAL_PKGDATADIR PMIX_PREFIX PMIX_INSTALL_PREFIX PMIX_PKGLIBDIR PMIX_MCA_mca_base_component_path OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_plm PMIX_MCA_pcompress_base_silence_warning
unset gpu_libs
END
cd "${to%/*}"
tar --sort=name --owner=0 --group=0 --numeric-owner -cf - "${to##*/}" | xz -9e -T0 >"$to.tar.xz"
du -sh "$to" "$to.tar.xz"
