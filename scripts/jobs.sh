# shellcheck shell=sh
# jobs.sh: sourced by sweep.sh and slurm/generate.sh.

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
