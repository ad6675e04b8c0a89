#!/bin/sh
# cli_install.sh: what `make install` leaves works from wherever it is moved to: the program with its plugin, the manual
# page, completion as bash and zsh really do it, the .pc file, the scripts, pages and data that the program names; and `make
# uninstall` takes all of it away.
. tests/lib/tap.sh
. tests/lib/driver.sh
PREFIX=/opt/st
case $BUILD in */san-*) plain_build=${BUILD%/san-*} ;; *) plain_build=$BUILD ;; esac

# to_install TARGET: nothing is built again: it is the program that is there that is tested
to_install() {
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -o programs "$1" BUILD="$plain_build" SAN="${SAN:-}" PREFIX=$PREFIX \
        DESTDIR="$W/first" > "$W/out" 2> "$W/err"
}
check "make install" to_install install
mkdir "$W/moved"
mv "$W/first/opt" "$W/moved/opt" # nothing may know the place where it was put
root=$W/moved$PREFIX
installed=$root/bin/sparsetrain

# -- the program and its plugin ------------------------------------------------------------------------------------------
"$installed" version > "$W/out" 2>&1
check "the installed program runs" grep -q '^sparsetrain [0-9.]* (commit ' "$W/out"
unset SPARSETRAIN_PLUGIN
stand_in=$BUILD/tests/libsparsetrain_hostcuda.so
rm -f "$root/lib/sparsetrain/libsparsetrain_cuda.so"
"$installed" list > "$W/out" 2>&1
check "without a plugin it says so" grep -q 'there is no plugin libsparsetrain_cuda.so' "$W/out"
if [ -r "$stand_in" ]; then
    mkdir -p "$root/lib/sparsetrain"
    cp "$stand_in" "$root/lib/sparsetrain/libsparsetrain_cuda.so"
    empty_driver
    "$installed" list > "$W/out" 2>&1
    check "a plugin in ../lib/sparsetrain is found" sh -c "sed -n '/^Devices/,\$p' '$W/out' | grep -q '^  cuda  *yes'"
else
    skip "a plugin in ../lib/sparsetrain is found" "the stand-in for CUDA is not built (no CUDA toolkit)"
fi

# -- pkg-config ------------------------------------------------------------------------------------------------------------
PKG_CONFIG_PATH=$root/lib/pkgconfig
export PKG_CONFIG_PATH
# of_pc NAME: a variable of the installed .pc file
of_pc() { pkg-config --variable="$1" sparsetrain; }
check "pkg-config knows the version" [ "sparsetrain $(pkg-config --modversion sparsetrain)" = "$("$installed" version | sed -n '1s/ (.*//p')" ]
check "and the commit" [ "$(of_pc commit)" = "$("$installed" version | sed -n '1s/.*commit \(.*\))/\1/p')" ]
check "and where plugins lie, moved as it is" [ "$(cd "$(of_pc plugindir)/.." && pwd)" = "$(cd "$root/lib" && pwd)" ]
check "and the program" [ -x "$(of_pc bindir)/sparsetrain" ]
check "and which MPI" pkg-config --exact-version="$(of_pc mpi_version)" "$(of_pc mpi)"
check "and the pages" [ -f "$(of_pc docdir)/docs/nodes.md" ]
check "and the scripts" [ -f "$(of_pc scriptdir)/slurm/generate.sh" ]

# -- the manual page -------------------------------------------------------------------------------------------------------
page=$root/share/man/man1/sparsetrain.1
# has_options: every option that --help names is on the page, too
has_options() {
    for option in $("$PROGRAM" --help | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p'); do
        why="no $option on the page"
        grep -q -e "^ *$option" "$W/page" || return 1
    done
}
if command -v groff > /dev/null 2>&1; then
    groff -man -Tascii -P-cbou -ww -rLL=100n "$page" > "$W/page" 2> "$W/err"
    why="groff: $(head -n 5 "$W/err")"
    if [ -s "$W/err" ]; then not_ok "the manual page renders without a warning" "$why"; else ok "the manual page renders without a warning"; fi
    check "and has every option" has_options
    for section in SYNOPSIS DESCRIPTION VERBS 'EXIT STATUS' ENVIRONMENT FILES EXAMPLES 'SEE ALSO'; do
        check "and a section $section" grep -qx "$section" "$W/page"
    done
else
    skip "the manual page renders without a warning" "groff is not installed"
fi
if command -v mandoc > /dev/null 2>&1; then
    check "mandoc finds nothing wrong with it" sh -c "mandoc -T lint '$page' > '$W/err' 2>&1 && [ ! -s '$W/err' ]"
else
    skip "mandoc finds nothing wrong with it" "mandoc is not installed"
fi
if man --version > /dev/null 2>&1; then
    check "man -l shows it without a warning" sh -c "MANWIDTH=100 man --warnings -l '$page' > '$W/shown' 2> '$W/err' && grep -q '^EXAMPLES' '$W/shown' && [ ! -s '$W/err' ]"
else
    skip "man -l shows it without a warning" "man is not installed"
fi
# Variables that are for tests alone.
tests_own='PATIENCE|DELAY|SYNC_SENDS|WIRE_CHECK|FLIP|FAULT|PART_BYTES|SHM_FREE|MEMORY_FREE|TEST_[A-Z]*|HOSTCUDA_[A-Z]*'
grep -rhoE --include='*.[ch]' --include='*.sh' --exclude=sparsetrain.h --exclude=library.c 'SPARSETRAIN_[A-Z_]+' base cli comm data nets topk scripts | sort -u | grep -vxE "SPARSETRAIN_($tests_own)" > "$W/variables"
while IFS= read -r variable; do
    check "$variable is on the page" grep -q "^\.B $variable\$" "$page"
done < "$W/variables"

# -- bash --------------------------------------------------------------------------------------------------------------------
file=$root/share/bash-completion/completions/sparsetrain
# Completes the last of the words as bash would: the replies, one a line.
cat > "$W/complete.bash" << 'COMPLETE'
source "$1" || exit 1
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_sparsetrain
printf '%s\n' "${COMPREPLY[@]}"
COMPLETE
# offers WORDS gives WORD...: completing the words gives these lines, in any order
offers() {
    : > "$W/typed"
    while [ "$1" != gives ]; do
        printf '%s\n' "$1" >> "$W/typed"
        shift
    done
    shift
    # shellcheck disable=SC2016 # for bash
    xargs -d '\n' bash "$W/complete.bash" "$file" < "$W/typed" 2> "$W/err" | sed 's/ *$//' | sort -u > "$W/replies"
    if [ $# -gt 0 ]; then printf '%s\n' "$@" | sort -u > "$W/wanted"; else echo > "$W/wanted"; fi
    why="$(tr '\n' ' ' < "$W/replies") instead of $(tr '\n' ' ' < "$W/wanted") $(head -c 300 "$W/err")"
    cmp -s "$W/replies" "$W/wanted" && [ ! -s "$W/err" ]
}
algos=$(names_of EXCHANGE comm/algorithms/exchanges.def)
# shellcheck disable=SC2046,SC2086 # lists of names
if command -v bash > /dev/null 2>&1; then
    check "bash: --al gives --algo" offers sparsetrain --al gives --algo
    check "bash: --algo g gives the rows that begin with g" offers sparsetrain --algo g gives $(echo "$algos" | grep '^g')
    check "bash: --algo=g too" offers sparsetrain --algo = g gives $(echo "$algos" | grep '^g')
    check "bash: the program by its path, after other options" offers build/sparsetrain train --steps 3 --algo g gives $(echo "$algos" | grep '^g')
    check "bash: behind a launcher" offers mpirun -np 4 sparsetrain --mod gives --model
    check "bash: before the program is not ours" offers mpirun -n gives
    check "bash: every selector" offers sparsetrain --select '' gives $(names_of SELECTOR topk/selectors/selectors.def)
    check "bash: every wire format" offers sparsetrain --wire '' gives $(names_of WIRE comm/wire/wires.def)
    check "bash: every model" offers sparsetrain --model '' gives $(names_of MODEL nets/models/models.def)
    check "bash: every dataset" offers sparsetrain --data '' gives $(names_of DATASET data/datasets.def)
    check "bash: every optimiser" offers sparsetrain --optimiser '' gives $(names_of OPTIMISER nets/optimisers/optimisers.def)
    check "bash: every device" offers sparsetrain bench select --device '' gives auto cpu cuda sparse
    check "bash: a list goes on after its comma" offers sparsetrain bench --algo dense,ok gives dense,oktopk
    check "bash: networks" offers sparsetrain predict --net 1 gives 100gbe 10gbe 1gbe
    check "bash: what a usage text spells out" offers sparsetrain p2p --pairs '' gives first all
    check "bash: values that a usage text names below the option" offers sparsetrain bench --pattern '' gives uniform clustered layers: real: selected: fitted:
    check "bash: a word in place of a number" offers sparsetrain --eval-every '' gives never
    check "bash: verbs" offers sparsetrain p gives p2p predict
    check "bash: the second word of a verb" offers sparsetrain bench '' gives select net wire
    check "bash: options of that verb" offers sparsetrain bench select --tau gives --tau-prime
    check "bash: a number is nothing to offer" offers sparsetrain --steps '' gives
    mkdir -p "$W/some/folder one" "$W/some/folder two"
    : > "$W/some/file"
    check "bash: directories for --out" offers sparsetrain --out "$W/some/f" gives "$W/some/folder one" "$W/some/folder two"
    for algo in $algos; do
        offers sparsetrain --algo "$algo" gives $(echo "$algos" | grep "^$algo") || break
        last=$algo
    done
    check "bash: every algorithm is offered" [ "${last-}" = "$(echo "$algos" | tail -n 1)" ]
    # Every option of every verb is offered with its verb, and nothing else.
    for verb in train config list 'data show' bench 'bench select' 'bench net' 'bench wire' p2p predict costs study 'study memory' fit evaluate export rows version; do
        case $verb in train | config) help=--help ;; *) help="$verb --help" ;; esac
        "$PROGRAM" $help 2> /dev/null | sed -n 's/^  --\([a-z0-9-]*\).*/--\1/p' > "$W/options"
        if [ "$verb" = train ]; then echo --version >> "$W/options"; fi
        check "bash: all options of $verb, as in its --help" offers sparsetrain $verb -- gives $(cat "$W/options") --help
    done
    check "bash loads the file without a word" silent sh -c "bash -uc 'source \"$file\" && complete -p sparsetrain' > '$W/complete' 2> '$W/out'"
else
    skip "completion in bash" "bash is not installed"
fi

# -- zsh ---------------------------------------------------------------------------------------------------------------------
zsh_file=$root/share/zsh/site-functions/_sparsetrain
if command -v zsh > /dev/null 2>&1; then
    check "zsh -n" zsh -n "$zsh_file"
    # zsh reads the file and dispatches; what would draw at a terminal prints what it was given instead.
    cat > "$W/complete.zsh" << 'COMPLETE'
_arguments() { print -rl -- "$@" }
_describe() { print -rl -- "${(P@)4}" }
_message() { print -r -- "$*" }
file=$1
shift
words=("$@") CURRENT=$# PREFIX=${@[-1]}
source "$file"
COMPLETE
    # shown_by_zsh WORD... gives LINE...: completing the last word, zsh is given lines that begin so
    shown_by_zsh() {
        : > "$W/typed"
        while [ "$1" != gives ]; do
            printf '%s\n' "$1" >> "$W/typed"
            shift
        done
        shift
        xargs -d '\n' timeout 20 zsh -f "$W/complete.zsh" "$zsh_file" < "$W/typed" > "$W/shown" 2> "$W/err"
        why="said: $(head -c 300 "$W/err")"
        [ ! -s "$W/err" ] || return 1
        for line in "$@"; do
            why="no $line in: $(head -c 600 "$W/shown" | tr '\n' ' ')"
            grep -qF -e "$line" "$W/shown" || return 1
        done
    }
    # shellcheck disable=SC2086,SC2116 # on one line
    check "zsh: options of train, with or without the verb" shown_by_zsh sparsetrain --al gives '--algo=[how gradients' ":NAME:($(echo $algos) auto)"
    check "zsh: verbs with what they do" shown_by_zsh sparsetrain '' gives 'predict:what each' 'train:train a network'
    check "zsh: a verb of two words" shown_by_zsh sparsetrain bench select --ta gives '--tau-prime[selector reuse' '_sequence compadd - all exact'
    check "zsh: its second word" shown_by_zsh sparsetrain bench '' gives 'select:time the' 'wire:size'
    check "zsh: options of the verb of one word" shown_by_zsh sparsetrain bench --p gives '--pattern[the gradients' 'layers\:'
    check "zsh: a checkpoint is a directory" shown_by_zsh sparsetrain export '' gives ':CHECKPOINT:_files -/' '--format['
    check "zsh: a recording is a file" shown_by_zsh sparsetrain fit '' gives ':RECORDING:_files'
    check "zsh: a verb without options" shown_by_zsh sparsetrain man '' gives 'no options'
else
    skip "completion in zsh" "zsh is not installed"
fi

# -- scripts that serve an installed program -----------------------------------------------------------------------------
start 2 --data synthetic:64x16 --batch 4 --steps 3 --algo gtopk --density-warmup none --out "$W/run"
if command -v gnuplot > /dev/null 2>&1; then
    check "plot.sh draws from its installed place" sh -c "cd '$W' && sh '$root/share/sparsetrain/scripts/plot.sh' run > out 2> err && [ -s run/loss.png ]"
else
    skip "plot.sh draws from its installed place" "gnuplot is not installed"
fi
SPARSETRAIN_DATA=$W/put sh "$root/share/sparsetrain/scripts/fetch-data.sh" wikitext2 > "$W/out" 2> "$W/err"
check "fetch-data.sh goes by SPARSETRAIN_DATA there" grep -qF "into $W/put/wikitext-2 by hand" "$W/err"
check "mpi-env.sh names a launcher" sh -c "unset MPIRUN; . '$root/share/sparsetrain/scripts/mpi-env.sh'; command -v \"\$MPIRUN\" > /dev/null"

check "sweep.sh finds the program that it was installed with" sh -c "mkdir -p '$W/else' && cd '$W/else' && env -u BUILD sh '$root/share/sparsetrain/scripts/sweep.sh' --np 2 --out s --seed 1 --dry-run | grep -q ' -n 2 $installed --seed 1 '"
check "so does slurm/generate.sh" sh -c "cd '$W/else' && env -u BUILD sh '$root/share/sparsetrain/scripts/slurm/generate.sh' --model resnet20 --algos dense --nodes 1 --ranks-per-node 1 --out '$W/else/jobs' > /dev/null && grep -q '$installed --model' '$W/else/jobs/dense.sbatch'"

# -- what the program names is there, from another directory, also when all was moved to a place that a shell must quote -----
mkdir -p "$W/it's moved" "$W/far/away"
cp -R "$root" "$W/it's moved/st"
# named_by COMMAND...: the paths in what it says that a part of an installation could be
named_by() {
    (cd "$W/far/away" && env -u SPARSETRAIN_DATA -u XDG_DATA_HOME HOME="$W/home" "$@") 2>&1 | tr -d "'\\\\" | grep -oE '(/[^()`;]*)?(scripts|docs)/[A-Za-z0-9_/.-]*\.(sh|md)' | sort -u
}
# all_there COMMAND...: and each of them is a file
all_there() {
    named_by "$@" > "$W/named"
    why="names nothing"
    [ -s "$W/named" ] || return 1
    while IFS= read -r path; do
        why="$path is not there"
        (cd "$W/far/away" && [ -f "$(echo "$path" | sed "s|its moved|it's moved|")" ]) || return 1
    done < "$W/named"
}
check "--help names what is there" all_there "$installed" --help
check "its pages and scripts" sh -c "grep -q '^/.*share/doc/sparsetrain/docs/exchanges.md\$' '$W/named' && grep -q 'share/sparsetrain/scripts/sweep.sh\$' '$W/named'"
check "bench --help too" all_there "$installed" bench --help
for copy in "$root" "$W/it's moved/st"; do
    program=$copy/bin/sparsetrain
    check "mistakes about data name what is there: $copy" all_there "$program" --data cifar10 --steps 1
    check "and the list of datasets" all_there "$program" list
    check "and the end of a run" all_there "$program" --data synthetic:64x16 --batch 4 --steps 2 --out "$W/far/$(echo "$copy" | cksum | cut -d ' ' -f 1)"
done
(cd "$W/far/away" && "$program" --data synthetic:64x16 --batch 4 --steps 2 --quiet --out run && "$program" --data cifar10:nowhere 2> "$W/err")
# shellcheck disable=SC2016 # not a command here
hint=$(sed -n 's/.*get it with `\(.*\)`.*/\1/p' "$W/err")
check "a hint can be typed as it stands" sh -c "cd '$W/far/away' && eval \"\$1\" --help | grep -q '^fetch-data.sh: brings'" hint "$hint"

# -- data --------------------------------------------------------------------------------------------------------------------
mkdir -p "$W/mirror/ptb" "$W/home"
for split in train valid test; do printf 'a b c d\nb c d a\n' > "$W/mirror/ptb/ptb.$split.txt"; done
# data_go TO [VARIABLE=VALUE...]: fetched by the installed script from elsewhere, the installed program finds them there
data_go() {
    data_to=$1
    shift
    (cd "$W/far/away" && env -u SPARSETRAIN_DATA -u XDG_DATA_HOME "$@" sh "$root/share/sparsetrain/scripts/fetch-data.sh" ptb --mirror "$W/mirror") > "$W/out" 2>&1
    (cd "$W/far/away" && env -u SPARSETRAIN_DATA -u XDG_DATA_HOME "$@" "$installed" list) > "$W/listed" 2>&1
    why="$(head -c 300 "$W/out") $(grep 'found:' "$W/listed")"
    grep -qF "found: $data_to/ptb" "$W/listed"
}
if command -v xz > /dev/null 2>&1; then
    (cd "$W/mirror" && md5sum ptb/* > MD5SUMS && tar -cJf ptb.tar.xz ptb)
    check "data go to the home" data_go "$W/home/.local/share/sparsetrain" HOME="$W/home"
    check "or where XDG_DATA_HOME says" data_go "$W/xdg/sparsetrain" HOME="$W/home" XDG_DATA_HOME="$W/xdg"
    check "or where SPARSETRAIN_DATA says" data_go "$W/own" HOME="$W/home" SPARSETRAIN_DATA="$W/own"
    check "without a home beside the scripts" data_go "$root/share/sparsetrain/data" HOME=
else
    skip "data go where the program looks" "xz is not installed"
fi

# -- uninstall ---------------------------------------------------------------------------------------------------------------
mv "$W/moved/opt" "$W/first/opt"
check "make uninstall" to_install uninstall
left=$(find "$W/first" ! -type d)
check "uninstall leaves no file" [ -z "$left" ]
check "and no directory of its own" [ -z "$(find "$W/first" -name sparsetrain)" ]
finish
