# shellcheck shell=sh
# crafted.sh: of soak.sh: a run whose checkpoints are cut, damaged, exchanged or no files at all, resumed. What may come of
# it: the same end as ever (from an older checkpoint), or status 2 with one line; and nothing outside the run is touched.
# Rows: file, what was done to it, to the newest checkpoint or to all; status, line, verdict.
# shellcheck disable=SC2034,SC2154

table crafted file,change,where,status,line,verdict
undisturbed

# A run that was killed behind its third checkpoint, so that two are there, and a file elsewhere that must stay as it is.
prepare() {
    rm -rf "$work/cut"
    # shellcheck disable=SC2086
    LD_PRELOAD=$(cd "$BUILD" && pwd)/tests/libfailing.so FAIL_RANK=0 \
        FAIL_CALLS="rename,renameat,renameat2 $work/cut/checkpoint- 4 4 KILL" start_run 300 $common --keep 3 --out "$work/cut"
    if grep -q '^failing: ' "$work/stderr"; then
        sed -n 's/^failing: /skipped: crafted: /p' "$work/stderr" | head -n 1
        exit 77
    fi
    [ "$(find "$work/cut" -name model.ckpt | grep -vc '\.tmp/')" -ge 2 ] || {
        echo "soak.sh: too few checkpoints to craft with: $(ls "$work/cut")" >&2
        exit 1
    }
    mkdir -p "$work/elsewhere"
    echo precious > "$work/elsewhere/file"
}
elsewhere() { (cd "$work/elsewhere" && ls -a && cat file) 2>&1; }

size_of() { wc -c < "$1" | tr -d ' '; }
# flip FILE OFFSET BIT
flip() {
    flip_byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    # shellcheck disable=SC2059 # an octal escape
    printf "\\$(printf '%03o' $((flip_byte ^ 1 << $3)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2> /dev/null
}
# change FILE WHAT
change() {
    case $2 in
    cut-*) # at so many thousandths of its length
        bytes=$(size_of "$1")
        dd if="$1" of="$1.part" bs=1 count=$((bytes * ${2#cut-} / 1000)) 2> /dev/null
        mv "$1.part" "$1"
        ;;
    flip-*) # bit N of the file, by a number that spreads over it
        bytes=$(size_of "$1")
        flip "$1" $((${2#flip-} * 7919 % bytes)) $((${2#flip-} % 8))
        ;;
    head-*) flip "$1" $((${2#head-} / 8)) $((${2#head-} % 8)) ;; # of the first bytes, each bit
    last) flip "$1" $(($(size_of "$1") - 1)) 0 ;;
    longer) printf x >> "$1" ;;
    empty) : > "$1" ;;
    zeros) dd if=/dev/zero of="$1" bs="$(size_of "$1")" count=1 conv=notrunc 2> /dev/null ;;
    gone) rm -f "$1" ;;
    other) cp "$(find "$whole" -name "$(basename "$1")" | sort | tail -n 1)" "$1" ;; # of another run
    twin) [ "$(basename "$1")" = model.ckpt ] || cp "$(dirname "$1")/model.ckpt" "$1" ;;
    fifo) rm -f "$1" && mkfifo "$1" ;;
    folder) rm -f "$1" && mkdir "$1" ;;
    null) rm -f "$1" && ln -s /dev/null "$1" ;;
    zero) rm -f "$1" && ln -s /dev/zero "$1" ;;
    link) mv "$1" "$work/linked" && ln -s "$work/linked" "$1" ;;
    dangling) rm -f "$1" && ln -s "$work/elsewhere/none" "$1" ;;
    loop) rm -f "$1" && ln -s "$(basename "$1")" "$1" ;;
    esac
}
list_changes() {
    if [ -n "$short" ]; then
        echo cut-500 flip-77 gone fifo
        return
    fi
    for i in 0 1 10 50 100 250 500 750 900 990 999; do echo "cut-$i"; done
    for i in $(seq 1 40); do echo "flip-$i"; done
    for i in $(seq 0 8 255); do echo "head-$i"; done
    echo last longer empty zeros gone other twin fifo folder null zero link dangling loop
}
# Names in the run's directory that are no checkpoints: links that cleaning up must not follow.
plant() {
    case $1 in
    tmp-link) ln -s "$work/elsewhere" "$work/run/checkpoint-00000099.tmp" ;;
    old-link) ln -s "$work/elsewhere" "$work/run/checkpoint-00000001.old" ;;
    newest-link) ln -s "$work/elsewhere" "$work/run/checkpoint-00000099" ;;
    newest-empty) mkdir "$work/run/checkpoint-00000099" ;;
    newest-file) : > "$work/run/checkpoint-00000099" ;;
    log-fifo) rm -f "$work/run/run.jsonl" && mkfifo "$work/run/run.jsonl" ;;
    log-noise) head -c 5000 /dev/urandom > "$work/run/run.jsonl" ;;
    log-long) awk 'BEGIN { for (i = 0; i < 2000000; i++) printf "x" }' >> "$work/run/run.jsonl" ;;
    log-gone) rm -f "$work/run/run.jsonl" ;;
    esac
}

# one FILE CHANGE WHERE: status 0 and the end of all runs (a damaged log excepted), or status 2 and a line
one() {
    has_row "$1,$2,$3" && return
    rm -rf "$work/run"
    cp -a "$work/cut" "$work/run"
    if [ "$1" = - ]; then
        plant "$2"
    else
        if [ "$3" = all ]; then most=100; else most=1; fi
        for checkpoint in $(find "$work/run" -name 'checkpoint-*[0-9]' | sort | tail -n $most); do change "$checkpoint/$1" "$2"; done
    fi
    before=$(elsewhere)
    start_run 120 --resume "$work/run"
    case $status in
    0) verdict=$(same_end "$work/run") ;;
    2)
        verdict=
        [ "$(lines_said)" -eq 1 ] || verdict="$(lines_said) lines"
        ;;
    124) verdict=hangs ;;
    *) verdict="status $status" ;;
    esac
    case $2:$verdict in
    log-*:other\ rows*) verdict= ;;  # rows that are gone are gone
    *-link:left\ over* | folder:left\ over*) verdict= ;; # a link or a directory in it is not ours to remove
    esac
    [ "$before" = "$(elsewhere)" ] || verdict="something elsewhere was changed"
    row "${verdict:-good}" "$1" "$2" "$3" "$status" "$(line_said)"
    rm -f "$work/linked"
}

prepare
compared=checkpoint-00000012 other_bytes=41 # the others may be as they were crafted; one option (--keep) has another digit
if [ -n "$short" ]; then plants="tmp-link newest-file"; else plants="tmp-link old-link newest-link newest-empty newest-file log-fifo log-noise log-long log-gone"; fi
wanted=0
for file in model.ckpt rank0000.ckpt rank0001.ckpt; do
    for change in $(list_changes); do
        for where in newest all; do
            case $short:$file:$where in yes:rank0000*:* | yes:rank0001*:newest | yes:model*:all) continue ;; esac
            wanted=$((wanted + 1))
            out_of_time || ! mine $wanted || one "$file" "$change" "$where"
        done
    done
done
for change in $plants; do
    wanted=$((wanted + 1))
    out_of_time || ! mine $wanted || one - "$change" -
done
compared='checkpoint-*[0-9]' other_bytes=36 # the other parts' own
count
part_says="$done_rows of $wanted crafted runs; $found went wrong"
