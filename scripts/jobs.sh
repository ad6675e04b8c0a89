# shellcheck shell=sh
# jobs.sh: sourced by the scripts that start runs and go on with them.

# find_program SCRIPTS: sets `program` to the one that belongs to the folder of these scripts: what was built in the clone, or
# what was installed with them; else to the one in PATH. Fails when there is none.
find_program() {
    for program in "$1/../${BUILD:-build}/sparsetrain" "${BUILD:-}/sparsetrain" "$1/../../../bin/sparsetrain"; do
        [ -x "$program" ] || continue
        program=$(cd "$(dirname "$program")" && pwd)/sparsetrain
        return 0
    done
    program=$(command -v sparsetrain)
}

# quoted WORD...: words as the shell reads them back, each with a blank before it.
quoted() {
    for quoted_word in "$@"; do
        case $quoted_word in
        *[!A-Za-z0-9_.,:+@%/=-]* | '') printf " '%s'" "$(printf '%s' "$quoted_word" | sed "s/'/'\\\\''/g")" ;;
        *) printf ' %s' "$quoted_word" ;;
        esac
    done
}

# has_checkpoint RUN: is there one to go on from? What is being written, or taken away, has another name. A directory that
# cannot be read may have one: --resume says what is wrong with it, and nobody begins anew over it.
has_checkpoint() { ls "$1"/checkpoint-*[0-9]/model.ckpt >/dev/null 2>&1 || { [ -e "$1" ] && ! ls "$1" >/dev/null; }; }

# clear_run RUN: one that came to no checkpoint has nothing to go on from, and goes, so that it can begin anew. It stays where
# it is under way, started by somebody else: $program, which is started there next, says so.
clear_run() {
    if "$program" config --out "$1" >/dev/null 2>&1; then rm -rf "${1:?}"; fi
}
