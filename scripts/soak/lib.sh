# shellcheck shell=sh
# lib.sh: of soak.sh: the run that is disturbed, starting it, and telling whether it came to the same end.
# shellcheck disable=SC2034,SC2154 # $work, $program, $out and others are soak.sh's

P=2
# A text of its own, which the run reads from the disk; a model of a few hundred parameters; checkpoints and evaluations at
# other steps; 12 steps, with the density warming up and residuals.
text=$work/text
make_text() {
    mkdir -p "$text"
    for split in train valid test; do
        awk -v part="$split" 'BEGIN {
            state = length(part); lines = part == "train" ? 60 : 12
            for (i = 0; i < lines; i++) {
                line = ""
                for (j = 0; j < 8; j++) { state = (state * 1103 + 12345) % 65536; line = line " w" state % 20 }
                print line " <unk>"
            }
        }' > "$text/$split.txt"
    done
}
# run_of STEPS: sets $common, its options.
run_of() {
    steps=$1
    common="--model lstm --hidden 4 --bptt 8 --data ptb:$text --batch 4 --steps $steps --eval-every 0.4 --checkpoint-every 3 --algo gtopk --density 0.1"
}
run_of 12

# start LIMIT ARGS...: the program on $P ranks, what it says in $work/stdout and $work/stderr; $status: its own or 124
start_run() {
    start_limit=$1
    shift
    timeout -k 20 "$start_limit" "$MPIRUN" -np $P "$program" "$@" > "$work/stdout" 2> "$work/stderr" < /dev/null
    status=$?
}
lines_said() { grep -c '^sparsetrain: ' "$work/stderr"; }
# The first of them, fit for a field of a CSV file.
line_said() { grep -m 1 '^sparsetrain: ' "$work/stderr" | sed "s|$work/||g; s/^sparsetrain: //" | tr ',"' ';'"'" | cut -c1-200; }

# fingerprint DIR: what must be the same however often a run was disturbed: each row of a step and of an evaluation, without
# what it took, and the summary's results.
fingerprint() {
    of_log "$1" type,step,epoch,loss,lr,density,k,local_nnz_mean,global_nnz,threshold_mean,completed,valid_loss,test_loss,start_loss,valid_perplexity,test_perplexity,replicas_identical,parameters_hash \
        --type step,eval,summary
}
# hash_in FILE: that of the parameters, in such lines
hash_in() { sed -n 's/^summary.*[^0-9a-f]//p' "$1"; }
# undisturbed: one on $P ranks, in $whole; what it came to is in $want
undisturbed() {
    [ -d "$text" ] || make_text
    whole=$work/whole$P-$steps want=$work/want$P-$steps
    [ ! -s "$want" ] || return 0
    # shellcheck disable=SC2086 # a list of options
    start_run 300 $common --out "$whole"
    fingerprint "$whole" > "$want"
    if [ "$status" -ne 0 ] || [ -z "$(hash_in "$want")" ]; then
        cat "$work/stderr"
        echo "soak.sh: the undisturbed run on $P ranks ended with status $status" >&2
        exit 1
    fi
}

# go_on DIR: the run in DIR is resumed, or begun anew where there is no checkpoint; sets $went: resumed, anew
go_on() {
    if has_checkpoint "$1"; then
        went=resumed
        start_run 300 --resume "$1"
    else
        went=anew
        rm -rf "$1"
        # shellcheck disable=SC2086
        start_run 300 $common --out "$1"
    fi
}

# lost DIR: has it no checkpoint where there must be one? Its log has a step behind the first of them.
lost() {
    ! has_checkpoint "$1" && [ -n "$(of_log "$1" step --type step --where 'step>3' --last)" ]
}

# torn DIR: which of its checkpoints is other than that of the undisturbed run, of $compared; "" where none is. Of each file
# $other_bytes may differ: the identity of the run, its seconds, and the checksums of these. The last one must be there.
compared='checkpoint-*[0-9]' other_bytes=36
torn() {
    last=checkpoint-$(printf %08d "$steps")
    [ -d "$1/$last" ] || echo "no $last"
    for torn_whole in "$whole"/$compared; do
        torn_name=$(basename "$torn_whole")
        [ -d "$1/$torn_name" ] || continue
        for torn_file in "$torn_whole"/*; do
            torn_other=$1/$torn_name/$(basename "$torn_file")
            # shellcheck disable=SC2094 # both are read
            [ "$(wc -c < "$torn_file")" = "$(wc -c < "$torn_other")" ] &&
                [ "$(cmp -l "$torn_file" "$torn_other" | wc -l)" -le $other_bytes ] || echo "other $torn_name/$(basename "$torn_file")"
        done
    done 2> /dev/null
}

# same_end DIR: "" where the run has come to the end of the undisturbed one, its checkpoints too, with nothing left over;
# else what is different
same_end() {
    fingerprint "$1" > "$work/have"
    left=$(find "$1" -name '*.tmp*' -o -name '*.old*' | head -n 1)
    if [ "$(hash_in "$work/have")" != "$(hash_in "$want")" ]; then
        echo "other parameters"
    elif ! cmp -s "$work/have" "$want"; then
        echo "other rows: $(diff "$work/have" "$want" | sed -n 's/^\([<>] [a-z]*\)[^0-9]*\([0-9]*\).*/\1 step=\2/p' | head -n 1)"
    elif [ -n "$(torn "$1")" ]; then
        torn "$1" | head -n 1
    elif [ -n "$left" ]; then
        echo "left over: $(basename "$left")"
    fi
}

# -- rows ------------------------------------------------------------------------------------------------------------------
# table PART HEADER: rows go to $csv
table() {
    csv=$out/$1.csv
    [ -s "$csv" ] || echo "$2" > "$csv"
}
# mine NUMBER: does --share leave that one to this campaign?
mine() { [ $(($1 % share_of)) -eq $((share_number % share_of)) ]; }
# has_row KEY: does a row begin with this?
has_row() { grep -q "^$1," "$csv"; }
# row VERDICT FIELD...: "good", or what is wrong: then what was said is kept in $out/found/<name>
row() {
    row_verdict=$1
    shift
    fields=''
    for field in "$@"; do fields="$fields$field,"; done
    printf '%s%s\n' "$fields" "$(printf '%s' "$row_verdict" | tr ',\n' ';;')" >> "$csv"
    [ "$row_verdict" != good ] || return 0
    keep=$out/found/$(basename "$csv" .csv)-$(printf '%s' "$1-$2-$3-$4" | tr -c 'A-Za-z0-9.\n-' _)
    mkdir -p "$keep"
    cp "$work"/stdout "$work"/stderr "$work"/have "$keep" 2> /dev/null
    echo "  found: $fields$row_verdict"
}
# count: sets $done_rows and $found from the table
count() {
    done_rows=$(($(wc -l < "$csv") - 1))
    found=$(sed 1d "$csv" | grep -vc ',good$')
}
# about PART: a line on what was run, where and for how long
about() {
    echo "$part_says" | sed "s/^/$1: /"
    {
        printf '%s: %s; %s; %s; ' "$1" "$command_line" "$("$program" version | sed -n 1p)" "$(uname -srm), $(machine_cpu), $(getconf _NPROCESSORS_ONLN) cores"
        printf '%s; %d s; %s\n' "$(date -u +%Y-%m-%d)" "$(($(date +%s) - part_start))" "$part_says"
    } >> "$out/about.txt"
}
