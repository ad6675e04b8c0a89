# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # variables of who sources this
# common.sh: sourced by the scripts of this folder: what they say, their options, a directory for a while, the program and what it
# says of itself, and runs that are gone on with. All of them have the C locale's order and numbers.
LC_ALL=C
export LC_ALL
script=${0##*/}

# say TEXT: to standard error, with the script's name before it
say() { printf '%s: %s\n' "$script" "$*" >&2; }
# fail TEXT: a mistake of who called the script
fail() {
    say "$@"
    exit 2
}
# usage: the comment at the head of the script; a script with another help has its own
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }

# quoted WORD...: words as the shell reads them back, each with a blank before it.
quoted() {
    for quoted_word in "$@"; do
        case $quoted_word in
        *[!A-Za-z0-9_.,:+@%/=-]* | '') printf " '%s'" "$(printf '%s' "$quoted_word" | sed "s/'/'\\\\''/g")" ;;
        *) printf ' %s' "$quoted_word" ;;
        esac
    done
}
# has NAME: is there such a command?
has() { command -v "$1" >/dev/null 2>&1; }
# Sets `hearing` to what stands before a command that is to be stopped by SIGUSR1: whoever started us may have had it blocked, and
# mpirun would pass nothing on to its ranks. (A lent machine was like that.)
hear_usr1() {
    hearing=
    ! env --default-signal=USR1 true 2>/dev/null || hearing='env --default-signal=USR1'
}
# squeezed, unsqueezed: standard input to and from .xz; by Python where there is no xz. can_squeeze: is there one of them?
can_squeeze() { has xz || python3 -c 'import lzma' 2>/dev/null; }
squeezed() {
    if has xz; then xz -0; else python3 -c 'import lzma, shutil, sys
with lzma.open(sys.stdout.buffer, "wb", preset=0) as to: shutil.copyfileobj(sys.stdin.buffer, to)'; fi
}
unsqueezed() {
    if has xz; then xz -dc; else python3 -c 'import lzma, shutil, sys
shutil.copyfileobj(lzma.open(sys.stdin.buffer), sys.stdout.buffer)'; fi
}
# find_python CODE: sets python to the path of one that runs this, as 'import torch'; empty, and false, where none does
find_python() {
    for python in /usr/bin/python3 python3; do
        if python=$(command -v "$python") && "$python" -c "$1" >/dev/null 2>&1; then return 0; fi
    done
    python=''
    return 1
}
# whole OPTION TEXT WHAT: fails where the text is no whole number
whole() { case $2 in '' | *[!0-9]*) fail "$1 takes whole $3, not \"$2\"" ;; esac; }
# in_words LIST: a list with commas between as words
in_words() { printf '%s\n' "$1" | tr , ' '; }
# locked DIR COMMAND...: one after the other of those that are at this directory, of this machine; without flock none waits
locked() {
    (
        shift
        if has flock; then flock 9; fi
        "$@" 9<&-
    ) 9<"$1"
}
# absolute PATH
absolute() { case $1 in /* | '') printf '%s' "$1" ;; *) printf '%s/%s' "$(pwd)" "$1" ;; esac; }

# options SPEC WORD...: sets variables to what the words say; `eval "set -- $words"` then leaves those that are no options. In SPEC
# stand, with blanks between:
#     NAME      --NAME VALUE, to the variable of this name, with _ for -      NAME/     a path, which becomes an absolute one
#     NAME:VAR  the same, to VAR                            NAME+VAR  the same, which may be given again: words for `eval set`
#     NAME!VAR  --NAME, a flag: VAR becomes yes             NAME!VAR=VALUE
#     ...       words that are no options may stand anywhere        --        they may stand behind --
#     +         they may stand from the first one on                @FUNCTION any other option: FUNCTION --NAME VALUE
# options_given: the names of those that were there. options_hint stands in messages behind what is wrong. options_plain=yes: values
# are cut at blanks later, so none may have one.
options_hint='--help shows the options' options_plain='' words='' options_given=''
options() {
    options_spec=" $1 "
    shift
    while [ $# -gt 0 ]; do
        options_word=$1
        case $options_word in
        -h | --help)
            usage
            exit 0
            ;;
        --)
            case $options_spec in *' ... '* | *' -- '* | *' + '*) ;; *) fail "unknown option --; $options_hint" ;; esac
            shift
            words="$words$(quoted "$@")"
            break
            ;;
        --*=*)
            shift
            set -- "${options_word%%=*}" "${options_word#*=}" "$@"
            continue
            ;;
        -*)
            options_take "$@"
            shift "$options_taken"
            continue
            ;;
        *)
            case $options_spec in
            *' + '*)
                words=$(quoted "$@")
                break
                ;;
            *' ... '*) words="$words$(quoted "$1")" ;;
            *) fail "unknown word \"$1\"; $options_hint" ;;
            esac
            ;;
        esac
        shift
    done
}
# options_take WORD...: the option that the first one is: options_taken words
options_take() {
    options_name=${1#--} options_given="$options_given ${1#--}"
    for options_row in $options_spec; do
        case $options_row in
        "$options_name!"*)
            case $options_row in *=*) eval "${options_row#*!}" ;; *) eval "${options_row#*!}=yes" ;; esac
            options_taken=1
            return
            ;;
        "$options_name" | "$options_name"[:+]* | "$options_name/") ;;
        @*) case $1 in --?*) ;; *) continue ;; esac ;;
        *) continue ;;
        esac
        [ $# -gt 1 ] || fail "$1 needs a value; $options_hint"
        case $options_plain,$2 in
        yes, | yes,*[!A-Za-z0-9_.,:/+=@%-]*) fail "$1 \"$2\": letters, digits and _.,:/+=@%- only, please" ;;
        esac
        options_value=$2
        case $options_row in */) options_value=$(absolute "$2") ;; esac
        options_row=${options_row%/}
        case $options_row in
        @*) "${options_row#@}" "$1" "$2" ;;
        *+*) eval "${options_row#*+}=\"\$${options_row#*+}\$(quoted \"\$options_value\")\"" ;;
        *) eval "$(printf '%s' "${options_row#*:}" | tr - _)=\$options_value" ;;
        esac
        options_taken=2
        return
    done
    fail "unknown option $1; $options_hint"
}

# make_scratch: sets `scratch` to a directory that goes when the script ends, also by a signal.
make_scratch() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/sparsetrain-${script%.sh}.XXXXXX") || exit 1
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' HUP TERM
}

# need_program: sets `program`, at the top of the tree, and `commit`, of which it is.
need_program() {
    program=${BUILD:-build}/sparsetrain
    [ -x "$program" ] || fail "$program is not there; build it first: make"
    commit=$("$program" --version | sed -n '1s/.*(commit \([^)]*\)).*/\1/p')
}
# machine: this one, in words; its processor with the widest instruction set that kernels are chosen by: in another one sums round otherwise
machine_simd() { grep -o -m 1 -w -e avx512f -e avx2 /proc/cpuinfo 2>/dev/null | sort | sed -n '$s/.*/ (&)/p'; }
machine_cpu() { printf '%s%s' "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1 | grep . || uname -m)" "$(machine_simd)"; }
machine() { printf '%s, %s cores, %s' "$(machine_cpu)" "$(getconf _NPROCESSORS_ONLN)" "$(uname -sr)"; }

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
# listed TABLE NAME [CONDITION]: has this table of `sparsetrain list` a row of this name that can be used here, or of which this holds?
listed() {
    [ -n "$("$program" list --json 2>/dev/null | "$program" rows - --each "$1" --where "name=$2" --where "${3:-available=true}" --keys name)" ]
}
# reads_pairs: can the program cut a text into pieces of words (--data wiki)? A build without utf8proc names it in its list
reads_pairs() { ! "$program" list | grep -q utf8proc; }
reads_speech() { ! "$program" list | grep -q 'lacks FFTW'; } # and can it take recordings (--data an4, speech)?
# of_log RUN KEYS [OPTION...]: values out of the last rows that have them of a run's log, tabs between; nothing where there is no log
of_log() {
    of_log_run=$1 of_log_keys=$2
    shift 2
    "$program" rows "$of_log_run" --keys "$of_log_keys" "$@" 2>/dev/null
}
# Those that send every entry, and so have no density: all rows of comm/algorithms without `sparse`.
sends_every_entry='dense dense-ovlp torus2d qsgd qsgd-4 onebit powersgd fedavg diloco sparseloco demo'
is_sparse() { case " $sends_every_entry " in *" $1 "*) return 1 ;; esac; } # is_sparse ALGORITHM
# read_log LOG PREFIX: its tables PREFIX.loss and so on (plot/read.awk), of scripts in the folder $scripts; fails where it has no step
read_log_phases=phases.compute,phases.io,phases.select,phases.pack,phases.communicate,phases.merge,phases.update,phases.other
read_log_keys=type,ranks,nodes,device,data_crc32,train_images,versions.commit,steps,valid_words,density_from,lr_from,lr_changes,resumed_at
read_log_keys=$read_log_keys,step,loss,epoch,density,bytes_sent_mean,seconds,$read_log_phases,valid_perplexity,test_accuracy,train_seconds
read_log_keys=$read_log_keys,completed,target.reached,bytes_sent,bytes_sent_per_step,images_per_second,words_per_second,test_loss,test_perplexity,valid_loss,valid_loss_sampled,test_wer,test_cer
read_log() {
    "$program" rows "$1" --type header --last --each config --keys @key,@value --missing null >"$2.options" &&
        "$program" rows "$1" --type header,step,eval,summary --keys $read_log_keys --missing - >"$2.rows" || return 1
    awk -F '\t' -v to="$2" -v keys=$read_log_keys -v dense=" $sends_every_entry " -f "$scripts/plot/read.awk" "$2.options" "$2.rows"
}
# has_ended RUN [prefix]: the run is complete, or has reached its target; prefix: or ended where it was stopped
has_ended() {
    [ -n "$(of_log "$1" type --type summary --where completed=true --last)" ] ||
        [ -n "$(of_log "$1" type --type summary --where target.reached=true --last)" ] ||
        { [ -n "${2:-}" ] && [ -n "$(of_log "$1" type --type summary --where "$2=true" --last)" ]; }
}

# kept_rows LOG EVERY: the log as it can be published: every so manyth of its steps, and those with xi; nothing of one machine
kept_rows() {
    "$program" rows "$1" --anonymous --where type!=checkpoint --keys type,xi,@value |
        awk -F '\t' -v every="$2" '$1 == "step" && steps++ % every && $2 == "" { next } { print $3 }'
}

# has_checkpoint RUN: is there one to go on from? What is being written, or taken away, has another name. One that cannot be
# looked into counts, as does any in a directory that cannot be read: --resume says what is wrong, and nobody begins anew over it.
has_checkpoint() { ls -d "$1"/checkpoint-*[0-9] >/dev/null 2>&1 || { [ -e "$1" ] && ! ls "$1" >/dev/null; }; }

# clear_run RUN: one that came to no checkpoint has nothing to go on from, and its log goes, so that it can begin anew; what
# others have put there does not. It stays where it is under way, started by somebody else: $program, which is started there
# next, says so.
clear_run() {
    "$program" config --out "$1" >/dev/null 2>&1 || return 0
    rm -f "${1:?}/run.jsonl" "$1/run.jsonl.tmp" "$1/vocabulary.txt" "$1/vocabulary.txt.tmp"
}
