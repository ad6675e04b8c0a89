#!/bin/sh
# cli_plugin.sh: the plugin is looked for beside the program's own file and in lib/sparsetrain of its prefix, or where
# SPARSETRAIN_PLUGIN says, and nowhere else: no library runs that somebody has planted above, in the working directory,
# beside a link, or along LD_LIBRARY_PATH. The library has a like rule, of its own file.
# waits: for programs that start
. tests/lib/tap.sh
. tests/lib/driver.sh
. scripts/mpi-env.sh
unset SPARSETRAIN_PLUGIN
case $BUILD in /*) planted=$BUILD/tests/libplanted.so ;; *) planted=$PWD/$BUILD/tests/libplanted.so ;; esac
if [ ! -e "$planted" ]; then
    skip "planted libraries" "tests/libplanted.so is not built (sanitizers)"
    finish
    exit
fi
plugin=libsparsetrain_cuda.so
export PLANTED_MARK="$W/mark"
mkdir -p "$W/top/bin" "$W/top/lib/sparsetrain" "$W/here" "$W/links" "$W/library"
cp "$PROGRAM" "$W/top/bin/sparsetrain"

# lists [PROGRAM]: `sparsetrain list`, in $W/here
lists() {
    rm -f "$W/mark"
    (cd "$W/here" && timeout -k 10 300 "${1:-$W/top/bin/sparsetrain}" list > "$W/out" 2> "$W/err" < /dev/null)
}
runs() {
    why="it was not loaded: $(sed -n '/^Devices/,$p' "$W/out")"
    [ -e "$W/mark" ]
}
idle() {
    why="it was loaded"
    [ ! -e "$W/mark" ]
}
# at NAME EXPECTED FILE [PROGRAM]: what happens to a library there
at() {
    cp "$planted" "$3"
    lists "${4:-}"
    check "$1: the program says what there is" [ $? -eq 0 ]
    check "$1: the library $2" "$2"
    rm "$3"
}
# Without a driver nothing answers a plugin, and the libraries under it take longer to load than the program to start.
if [ -e "$BUILD/$plugin" ]; then
    check "the plugin of this build loads" sh -c "'$PROGRAM' version --json | grep -q '\"cuda_plugin\":{\"loaded\":true'"
fi
printf '#include <dlfcn.h>\nint main(void) { return !dlopen("libcuda.so.1", RTLD_LAZY); }\n' > "$W/has_driver.c"
cc -o "$W/has_driver" "$W/has_driver.c" -ldl
if "$W/has_driver"; then
    skip "a plugin without a driver" "this machine has one"
else
    at "without a driver" idle "$W/top/bin/$plugin"
    check "without a driver: that is said" grep -q 'there is no NVIDIA driver (libcuda.so.1 is not found)' "$W/out"
    export SPARSETRAIN_PLUGIN="$W/top/bin/$plugin"
    at "without a driver, named in SPARSETRAIN_PLUGIN" runs "$W/top/bin/$plugin"
    unset SPARSETRAIN_PLUGIN
    empty_driver
fi
at "beside the program" runs "$W/top/bin/$plugin"
at "in lib/sparsetrain of its prefix" runs "$W/top/lib/sparsetrain/$plugin"
at "in the folder above" idle "$W/top/$plugin"
at "in lib of its prefix" idle "$W/top/lib/$plugin"
at "in the working directory" idle "$W/here/$plugin"
mkdir -p "$W/lib/sparsetrain"
at "in lib/sparsetrain beside the working directory" idle "$W/lib/sparsetrain/$plugin"
ln -s "$W/top/bin/sparsetrain" "$W/links/sparsetrain"
at "beside a link to the program" idle "$W/links/$plugin" "$W/links/sparsetrain"
at "beside what a link leads to" runs "$W/top/bin/$plugin" "$W/links/sparsetrain"

LD_LIBRARY_PATH=$W/library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
at "along LD_LIBRARY_PATH" idle "$W/library/$plugin"
SPARSETRAIN_PLUGIN=$plugin
export SPARSETRAIN_PLUGIN
at "along LD_LIBRARY_PATH, by a bare name in SPARSETRAIN_PLUGIN" idle "$W/library/$plugin"
at "in the working directory, by a bare name in SPARSETRAIN_PLUGIN" runs "$W/here/$plugin"
rm -f "$W/here/$plugin"
SPARSETRAIN_PLUGIN=$W/library
lists
check "a folder in SPARSETRAIN_PLUGIN is refused" grep -q 'library, which cannot be read' "$W/out"
mkfifo "$W/fifo"
SPARSETRAIN_PLUGIN=$W/fifo
lists
check "a FIFO in SPARSETRAIN_PLUGIN is refused" grep -q 'fifo, which cannot be read' "$W/out"
unset SPARSETRAIN_PLUGIN
mkfifo "$W/top/bin/$plugin"
lists
check "a FIFO beside the program is none" grep -q 'there is no plugin' "$W/out"
rm "$W/top/bin/$plugin"

# -- what is found there must be of this program's version, and of the interface that it knows --------------------------
says() {
    why="it says: $(sed -n '/^Devices/,$p' "$W/out")"
    grep -q "$1" "$W/out"
}
# as GUISE EXPECTED: what the program says of the planted library
as() {
    export PLANTED_AS="$1"
    lists
    check "a plugin, $1: the program lists what there is" [ $? -eq 0 ]
    check "a plugin, $1: $2" says "$2"
}
version=$("$PROGRAM" --version | sed -n '1s/^sparsetrain \([^ ]*\).*/\1/p')
cp "$planted" "$W/top/bin/$plugin"
as nothing "$plugin is no plugin of this program: build and install both together"
as "other version" "is of version ${version}x, the program of $version:"
as "older interface" "was built from other sources (interface "
as right "the planted device is none"
cp "$0" "$W/top/bin/$plugin"
as "no library" "the plugin cannot be loaded: .*$plugin: .*; install what is missing"
unset PLANTED_AS

# -- the library, in a program that lies elsewhere --------------------------------------------------------------------------
mkdir -p "$W/own/lib/sparsetrain" "$W/own/bin" "$W/loaded" "$W/here/sparsetrain"
cp "$BUILD/libsparsetrain.so.0" "$W/own/lib/libsparsetrain.so.0"
ln -s "$W/own/lib/libsparsetrain.so.0" "$W/loaded/libsparsetrain.so.0"
if ldd "$PROGRAM" | grep -q libmpich; then mpi=mpich; elif pkg-config --exists ompi-c; then mpi=ompi-c; else mpi=ompi; fi
# shellcheck disable=SC2046 # lists of words
check "a program with the library" cc -Icomm tests/library/device.c "$W/own/lib/libsparsetrain.so.0" $(pkg-config --cflags --libs "$mpi") -ldl -o "$W/own/bin/device"
# library_at NAME EXPECTED FILE [FOLDER]: what happens to a library there; FOLDER: where the loader finds ours
library_at() {
    cp "$planted" "$3"
    rm -f "$W/mark"
    (cd "$W/here" && LD_LIBRARY_PATH="${4:-$W/own/lib}:$W/driver" timeout -k 10 100 "$MPIRUN" -np 1 "$W/own/bin/device" opens > "$W/out" 2> "$W/err" < /dev/null)
    check "of the library, $1: it says what there is" grep -qE 'no plugin' "$W/out"
    check "of the library, $1: what is there $2" "$2"
    rm "$3"
}
library_at "beside it" runs "$W/own/lib/$plugin"
library_at "in sparsetrain/ there" runs "$W/own/lib/sparsetrain/$plugin"
library_at "in the folder above" idle "$W/own/$plugin"
library_at "beside the program" idle "$W/own/bin/$plugin"
library_at "in the working directory" idle "$W/here/$plugin"
library_at "in sparsetrain/ of the working directory" idle "$W/here/sparsetrain/$plugin"
library_at "beside a link to it" idle "$W/loaded/$plugin" "$W/loaded"
library_at "beside what a link leads to" runs "$W/own/lib/$plugin" "$W/loaded"
library_at "beside it, found by a path from here" runs "$W/own/lib/$plugin" ../own/lib
finish
