#!/bin/sh
# cli_library.sh: the installed library as another program sees it: one header, the names that it has and no others, shared
# and static, the example of docs/examples, programs with MPI of their own.
. tests/tap.sh
. scripts/mpi-env.sh
case $BUILD in */san-*) plain_build=${BUILD%/san-*} ;; *) plain_build=$BUILD ;; esac
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -o programs install BUILD="$plain_build" SAN="${SAN:-}" PREFIX="$W/at" > "$W/out" 2> "$W/err"
check "make install" [ $? -eq 0 ]
PKG_CONFIG_PATH=$W/at/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
mpi=$(pkg-config --variable=mpi sparsetrain)
sanitize=${SAN:+-fsanitize=$SAN}

# compiles NAME SOURCE FLAGS...: to $W/NAME
compiles() {
    compiles_to=$W/$1 source=$2
    shift 2
    # shellcheck disable=SC2046,SC2086 # lists of words
    cc -Wall -Wextra -Werror $sanitize "$source" "$@" $(pkg-config --cflags --libs "$mpi") -o "$compiles_to" > "$W/err" 2>&1
    status=$?
    why=$(head -c 600 "$W/err")
    return $status
}
shared="$(pkg-config --cflags --libs sparsetrain) -Wl,-rpath,$W/at/lib"
# The archive in place of the library; what it needs behind it.
static="$(pkg-config --cflags sparsetrain) $W/at/lib/libsparsetrain.a $(pkg-config --static --libs sparsetrain | sed 's/-lsparsetrain//')"

# -- header and names --------------------------------------------------------------------------------------------------------
echo '#include <sparsetrain.h>' > "$W/alone.c"
for language in "c -std=c99" "c -std=c11" "c++ -std=c++11"; do
    # shellcheck disable=SC2086 # words
    check "the header alone, $language" cc -x $language -pedantic -Wall -Wextra -Werror -fsyntax-only -I"$W/at/include" "$W/alone.c"
done
declared=$(grep -oE 'sparsetrain_[a-z_]+\(' "$W/at/include/sparsetrain.h" | tr -d '(' | sort -u)
only_ours() { # only_ours FILE OPTION: its names are those of the header
    found=$(nm "$2" --defined-only "$1" | awk '$2 == "T" || $2 == "D" || $2 == "B" || $2 == "R" { sub(/@.*/, "", $3); print $3 }' | sort -u)
    why=$(printf '%s\n%s\n' "$declared" "$found" | sort | uniq -u | head -n 5 | tr '\n' ' ')
    [ "$found" = "$declared" ]
}
if [ -z "${SAN:-}" ]; then
    check "the shared library has the header's names and no others" only_ours "$W/at/lib/libsparsetrain.so" -D
    check "so has the static one" only_ours "$W/at/lib/libsparsetrain.a" -g
    check "names have a version" sh -c "nm -D '$W/at/lib/libsparsetrain.so' | grep -q 'sparsetrain_open@@SPARSETRAIN_0\.1'"
fi

# -- the example -------------------------------------------------------------------------------------------------------------
# runs P PROGRAM ARGS...
runs() {
    runs_p=$1
    shift
    timeout 120 "$MPIRUN" -np "$runs_p" "$@" > "$W/out" 2> "$W/err" < /dev/null
}
near() { # near ALGORITHM P MOST: the example comes so near
    runs "$2" "$W/example" "$1"
    status=$?
    why="status $status: $(cat "$W/out" "$W/err" | head -c 400)"
    [ $status -eq 0 ] && awk -v most="$3" '{ found = $4 + 0 <= most } END { exit !found }' "$W/out"
}
# shellcheck disable=SC2086 # lists of words
if compiles example docs/examples/exchange.c $shared; then
    ok "the example compiles"
    for P in 1 2 3 4; do
        check "dense, P = $P" near dense $P 1e-9
        for algorithm in topka gtopk oktopk; do check "$algorithm, P = $P" near $algorithm $P 0.03; done
    done
    runs 2 "$W/example" nonsense
    check "a mistake is told, and its status is the program's to choose" sh -c "[ $? -eq 2 ] && grep -q 'the algorithm has no \"nonsense\"' '$W/err'"
else not_ok "the example compiles" "$why"; fi
# shellcheck disable=SC2086
check "the example compiles with the archive" compiles static docs/examples/exchange.c $static
runs 3 "$W/static" gtopk
check "and runs" [ $? -eq 0 ]
check "without the library" sh -c "! ldd '$W/static' | grep -q libsparsetrain"

# -- programs with MPI of their own --------------------------------------------------------------------------------------------
# shellcheck disable=SC2086
check "a program compiles" compiles program tests/library/program.c $shared
fine() {
    runs "$@"
    status=$?
    why="status $status: $(cat "$W/out" "$W/err" | head -c 400)"
    [ $status -eq 0 ] && [ "$(cat "$W/out")" = fine ]
}
for P in 2 3 4 5; do check "two halves of the ranks, P = $P" fine $P "$W/program" halves; done
for P in 1 2 3; do check "MPI of the library, P = $P" fine $P "$W/program" lent; done
check "no MPI yet" fine 1 "$W/program" unstarted
check "communicators that do not serve" fine 2 "$W/program" inter
finish
