#!/bin/sh
# cli_stdout.sh: standard output that cannot be written (full, closed, a pipe whose reader has gone) ends every verb with
# one line and status 1, on all ranks; a run that goes on meanwhile is finished and kept.
. tests/lib/tap.sh

# -- what the verbs below need -----------------------------------------------------------------------------------------
tiny="--data synthetic:64x8 --batch 4 --progress none"
# shellcheck disable=SC2086
start 1 $tiny --steps 2 --target accuracy:1 --out "$W/run" || not_ok "a run" "$(head -c 300 "$W/err")"
want=$(hash_of "$W/run")
# shellcheck disable=SC2086
start 2 $tiny --steps 6 --eval-every never --algo topka --density 0.01 --density-warmup none --record "$W/selected" --record-what selected ||
    not_ok "a recording" "$(head -c 300 "$W/err")"

printf 'model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source\nmine,9,cpu,word,dense,,,,,,0,,a test\n' > "$W/costs"

# A verb and its options in a line each: those that one process does, then those that ranks do.
cat > "$W/alone" << END
list
list --json
version
version --json
--version
help
--help
-h
man
completion bash
completion zsh
config
config --help
data show --data synthetic:64x8 --png $W/sheet.png
data show --help
bench select --n 1000 --density 0.01 --repeat 1
bench select --n 1000 --density 0.01 --repeat 1 --json
bench net --model resnet20 --batch 2 --steps 1 --repeat 1
bench net --model resnet20 --batch 2 --steps 1 --repeat 1 --json
bench wire --repeat 1 --n 10000 --density 0.01
bench wire --repeat 1 --n 10000 --density 0.01 --json
predict --net 10gbe --p 4 --n 1000 --density 0.01
predict --net 10gbe --p 4 --n 1000 --density 0.01 --json
costs $W/costs --model mine
costs $W/costs --model mine --json
study memory --p 4
study memory --p 4 --json
study cells --rows results/measured/scaling
study leads --rows results/measured/scaling
study --help
fit $W/selected
export $W/run --format npz --out $W/model.npz
export --help
rows $W/run --keys loss
rows $W/run --keys loss --last
rows --help
compare $W/run
compare $W/run --csv
compare --help
END
cat > "$W/ranks" << END
train $tiny --steps 1
train $tiny --steps 1 --dry-run
train --help
evaluate $W/run
evaluate $W/run --json
evaluate --help
bench --n 1000 --density 0.01 --algo topka --repeat 1
bench --n 1000 --density 0.01 --algo topka --repeat 1 --json
bench --help
p2p --sizes 4:64:4 --repeat 2
p2p --sizes 4:64:4 --repeat 2 --json
p2p --help
END

# Every verb of --help is among them.
missing=$("$PROGRAM" --help | sed -n 's/^  sparsetrain \([a-z][a-z0-9]*\( [a-z][a-z]*\)\{0,1\}\).*/\1/p' | while read -r verb; do
    cat "$W/alone" "$W/ranks" | grep -q "^$verb\( \|\$\)" || echo "$verb"
done)
# none_bad: nothing is in $bad, where what went wrong is listed
none_bad() {
    why=$bad
    [ -z "$bad" ]
}
bad=$missing
check "every verb of --help is tried" none_bad

# lost STATUS: what has just run ended with status 1 and one line, which says that its output is lost
lost() { told "$1" "cannot write to standard output: " 1; }

# -- one process -----------------------------------------------------------------------------------------------------------
# unwritable HOW ARGS...: the program where standard output is so; its status
unwritable() {
    u_how=$1
    shift
    case $u_how in
    full) timeout -k 10 300 "$PROGRAM" "$@" > /dev/full 2> "$W/err" < /dev/null ;;
    closed) timeout -k 10 300 "$PROGRAM" "$@" >&- 2> "$W/err" < /dev/null ;;
    reader) # that has gone before anything is said
        rm -f "$W/gone" "$W/status"
        {
            until [ -e "$W/gone" ]; do sleep 0.02; done
            timeout -k 10 300 "$PROGRAM" "$@" 2> "$W/err" < /dev/null
            echo $? > "$W/status"
        } | {
            exec < /dev/null
            : > "$W/gone"
        }
        return "$(cat "$W/status")"
        ;;
    esac
}
for how in full closed reader; do
    bad=
    while read -r line; do
        case $line in p2p\ --sizes*) continue ;; esac # of two ranks at least
        # shellcheck disable=SC2086
        unwritable $how $line
        lost $? || bad="$bad
#   $line: $why"
    done << END
$(cat "$W/alone" "$W/ranks")
END
    check "$how: every verb, alone" none_bad
done

# -- ranks -----------------------------------------------------------------------------------------------------------------
# on_ranks P ARGS...: all ranks with a standard output that is full, of which rank 0's alone is used; the status of each
# rank to $W/status.RANK, which the launcher does not learn, lest it ends the others
# shellcheck disable=SC2016
on_ranks() {
    o_p=$1
    shift
    rm -f "$W"/status.*
    timeout -k 10 300 "$MPIRUN" -np "$o_p" sh -c 'w=$1; shift; "$@" > /dev/full; echo $? > "$w/status.${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}"' \
        sh "$W" "$PROGRAM" "$@" > "$W/out" 2> "$W/err" < /dev/null
}
# all_are P STATUS: so every rank has ended
all_are() {
    why="statuses: $(cat "$W"/status.* | tr '\n' ' ')"
    [ "$(cat "$W"/status.* | grep -cx "$2")" -eq "$1" ]
}
for p in 2 3; do
    bad=
    while read -r line; do
        case $line in *--help) continue ;; esac # no rank but the first does anything then
        # shellcheck disable=SC2086
        on_ranks $p $line
        if ! all_are $p 1 || ! lost 1; then
            bad="$bad
#   $line: $why: $(head -c 300 "$W/err")"
        fi
    done < "$W/ranks"
    check "full: every verb of several ranks, on $p: status 1 on all of them, one line" none_bad
done
on_ranks 3 list
check "a verb that rank 0 alone does: its status is 1" [ "$(cat "$W/status.0")" -eq 1 ]
check "and one line" lost 1

# -- a run goes on -----------------------------------------------------------------------------------------------------
for how in full closed reader; do
    rm -rf "$W/mute"
    # shellcheck disable=SC2086
    unwritable $how train $tiny --steps 2 --out "$W/mute"
    check "$how: a run ends with status 1" lost $?
    check "$how: and it is whole" [ "$(hash_of "$W/mute")" = "$want" ]
    check "$how: with its last checkpoint" [ -f "$W/mute/checkpoint-00000002/model.ckpt" ]
done
# train | head: the reader leaves in the middle.
rm -rf "$W/mute"
{
    # shellcheck disable=SC2086
    timeout -k 10 300 "$PROGRAM" $tiny --steps 2 --eval-every 0 --out "$W/mute" 2> "$W/err" < /dev/null
    echo $? > "$W/status"
} | head -n 1 > "$W/out"
check "train | head: status 1 or 0, no signal" grep -qx '[01]' "$W/status"
check "train | head: the run is whole" [ "$(hash_of "$W/mute")" = "$want" ]
rm -rf "$W/mute"
# shellcheck disable=SC2086
timeout -k 10 300 "$PROGRAM" $tiny --steps 2 --quiet --out "$W/mute" >&- 2> "$W/err" < /dev/null
check "who says nothing misses nothing: status 0" [ $? -eq 0 ]

# No file of the run takes the number of a closed stream: what is printed would be in it.
rm -rf "$W/mute"
# shellcheck disable=SC2086
timeout -k 10 300 "$PROGRAM" $tiny --steps 2 --out "$W/mute" <&- >&- 2>&-
check "all three closed: status 1" [ $? -eq 1 ]
check "all three closed: the log holds rows alone" [ -z "$(grep -v '^{"type":' "$W/mute/run.jsonl")" ]
check "all three closed: the run is whole" [ "$(hash_of "$W/mute")" = "$want" ]
finish
