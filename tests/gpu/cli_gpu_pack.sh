#!/bin/sh
# cli_gpu_pack.sh: what scripts/gpu-pack.sh makes ready for a lent machine fits into what travels, and its calls, each in a copy
# of what has travelled, find what they need; the scripts that they start are stand-ins here.
. tests/lib/tap.sh

for tool in git xz; do
    if ! command -v $tool >/dev/null 2>&1; then
        skip "packing" "$tool is not installed"
        finish
        exit
    fi
done
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
unset GIT_DIR GIT_WORK_TREE SPARSETRAIN_DATA
T=$W/tree
mkdir -p "$T/scripts/lib" "$T/scripts/gpu" "$T/results" "$T/big" "$T/shared" "$W/mirror/cifar-10-batches-bin" "$W/mirror/ptb" "$W/lib"
cp scripts/gpu-pack.sh "$T/scripts"
cp scripts/gpu/lease.sh scripts/gpu/tools.sh "$T/scripts/gpu"
cp scripts/lib/common.sh scripts/lib/commit.sh "$T/scripts/lib"
random() { head -c "$1" /dev/urandom; }
random 1000000 >"$T/results/rows" # committed
random 300000 >"$T/notes"         # not ignored
random 5000000 >"$T/big/ignored"
random 200000 >"$T/shared/data"
printf '/build*/\n/big/\n/shared/\n' >"$T/.gitignore"
# The scripts of a call note what they were asked for.
for name in probe check; do
    cat >"$T/scripts/gpu-$name.sh" <<END
#!/bin/sh
echo "$name \$(cat COMMIT) \$*" >>"\$OUT/asked"
case \$* in *converge*) echo "in \$SPARSETRAIN_DATA" >>"\$OUT/asked" ;; esac
[ $name = probe ] || mkdir -p build/gpu
case \$* in *build,*) : >build/gpu/sparsetrain; chmod +x build/gpu/sparsetrain ;; esac
[ "\${ILL:-}" != $name ]
END
done
(cd "$T" && git init -q && git add .gitignore scripts results && git -c user.name=a -c user.email=a@b commit -qm first) || exit 1
random 4000000 >"$W/mirror/cifar-10-batches-bin/data"
echo words >"$W/mirror/ptb/data"
for set in cifar-10-batches-bin ptb; do tar -C "$W/mirror" -cJf "$W/mirror/$set.tar.xz" $set; done
echo env >"$W/lib/env.sh"
random 600000 >"$W/lib/data"
tar -C "$W" -cJf "$W/libs.tar.xz" lib
pack() { # pack ARGUMENTS...: output to $W/log
    (cd "$T" && timeout 600 sh scripts/gpu-pack.sh "$@") >"$W/log" 2>&1 </dev/null
}
refused() { # refused TEXT ARGUMENTS...: status 2 and one line
    text=$1
    shift
    pack "$@"
    status=$?
    why="status $status: $(head -c 300 "$W/log")"
    [ $status -eq 2 ] && [ "$(wc -l <"$W/log")" -eq 1 ] && grep -qF -- "$text" "$W/log"
}
check "an unknown plan" refused '"last"' build-gpu --plan last
check "a limit that is no size" refused '--limit' build-gpu --limit much
check "a time that is no number" refused '"long"' build-gpu --held long
check "a folder outside the tree" refused 'not in this tree' "$W/elsewhere"
check "a folder that git would see" refused 'does not ignore' packed
check "a folder left out that is none of the tree's" refused 'folder of this tree' build-gpu --leave-out /tmp
check "a folder left out that is not there" refused 'is not there' build-gpu --leave-out results/none
check "libraries that are not there" refused 'is not there' build-gpu --libs "$W/none.tar.xz"

# Room for about 1.1 MB besides the tree: the data, 4 MB, come in four or five pieces.
pack build-gpu --limit 2700000 --libs "$W/libs.tar.xz" --mirror "$W/mirror"
check "packed" [ $? -eq 0 ]
calls=$(grep -c '^| [0-9]' "$T/build-gpu/CALLS.md" 2>/dev/null)
travels() { # bytes that travel with call $1: an archive of them
    (cd "$T" && {
        git ls-files -z --cached --others --exclude-standard
        find shared "build-gpu/$1" -type f -print0
    } | tar --null -T - -cf - | wc -c)
}
fits() {
    for call in $(seq 1 "$calls"); do
        why="call $call is $(travels "$call") bytes"
        [ "$(travels "$call")" -le 2700000 ] || return 1
    done
}
check "what travels with each call is within the limit" fits
check "calls that only bring data come before those that need them" grep -q 'brings data' "$T/build-gpu/CALLS.md"
check "each call is a row, with its command" [ "$calls" -ge 5 ]
check "and has a folder" [ "$(find "$T/build-gpu" -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq "$calls" ]
# lease: all calls, in fresh copies of the tree over the same ignored files, as a lent machine makes them. Output to $W/log.
lease() {
    rm -rf "$W/there"
    mkdir -p "$W/there"
    for call in $(seq 1 "$calls"); do
        (cd "$T" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) | tar -C "$W/there" -xf -
        rm -rf "$W/there/build-gpu" "$W/there/COMMIT"
        mkdir -p "$W/there/build-gpu" "$W/home/$call"
        cp -R "$T/build-gpu/$call" "$W/there/build-gpu/"
        (cd "$W/there" && OUT=$W/home/$call KEEP=$W/keep sh "build-gpu/$call/run.sh") >>"$W/log" 2>&1 </dev/null || {
            why="call $call: status $?: $(tail -c 300 "$W/log")"
            return 1
        }
    done
}
: >"$W/log"
check "every call ends well, one after the other" lease
asked() { cat "$W/home/$1/asked" 2>/dev/null; }
packed=$(git -C "$T" describe --always --dirty --abbrev=12)
check "the first one probes and builds" [ "$(asked 1 | cut -d ' ' -f 1,2 | tr '\n' ' ')" = "probe $packed check $packed " ]
check "with the libraries it brought" grep -q -- '--libs build-gpu/1/libs.tar.xz .*--only build,compare' "$W/home/1/asked"
check "the next one measures, with those it left" grep -q -- '--libs build/gpu/libs .*--only bench' "$W/home/2/asked"
before=$((calls - 3)) optional=$((calls - 2))
check "then one converges, and packs its runs" grep -q -- "--only converge .*gtopk:paper,topka .*--pack $W/home/$before/runs.tar.gz" "$W/home/$before/asked"
check "which know their data by name, in what is kept" grep -qx "in $W/keep" "$W/home/$before/asked"
check "the next one goes on with what the lease has" grep -q -- '--budget 5[67][0-9] --only converge .*gtopk:paper,topka ' "$W/home/$optional/asked"
check "the tests are the last that is needed" grep -q -- '--only test --groups topk_,nets_' "$W/home/$((calls - 1))/asked"
check "what is compiled comes last" grep -q -- '--only bench --benches compiled ' "$W/home/$calls/asked"
again() { # again CALL: once more, output to $W/log, for home $W/home/x
    rm -rf "$W/home/x" "$W/there/build-gpu"
    mkdir "$W/there/build-gpu"
    cp -R "$T/build-gpu/$1" "$W/there/build-gpu/"
    (cd "$W/there" && OUT=$W/home/x KEEP=${KEPT:-$W/keep} sh "build-gpu/$1/run.sh") >"$W/log" 2>&1 </dev/null
}
echo $(($(date +%s) + 220 + 200)) >"$W/keep/lease-end"
again $optional
check "less of the lease, less of training, and the tests have theirs" grep -qE -- '--budget (1[5-9][0-9]|200) --only converge' "$W/home/x/asked"
echo $(($(date +%s) + 220)) >"$W/keep/lease-end"
check "no time left: says so, and is no failure" again $optional
check "and begins nothing" sh -c "grep -q 'no time is left' '$W/log' && [ ! -e '$W/home/x/asked' ]"

# Eight files come home.
mkdir -p "$W/home/many/deep"
for name in a.log b.log c.log d.png deep/e.png "f g.txt" h i gpu-one.json gpu-two.json runs.tar.gz z.tar.xz; do echo "$name" >"$W/home/many/$name"; done
(cd "$W/there" && OUT=$W/home/many KEEP=$W/keep call=2 here=$T/build-gpu/2 sh -c '. scripts/gpu/lease.sh; finish') >"$W/log" 2>&1
came_home() {
    why=$(find "$W/home/many" -type f | tr '\n' ' ')
    [ "$(find "$W/home/many" -type f | wc -l)" -eq 8 ] && [ -s "$W/home/many/gpu-two.json" ] && [ -s "$W/home/many/runs.tar.gz" ] && [ -s "$W/home/many/z.tar.xz" ]
}
check "more than eight files: eight, rows and archives among them" came_home
tar -C "$W/home/many" -xzf "$W/home/many/more.tar.gz"
check "and the others packed" [ "$(cd "$W/home/many" && cat a.log b.log c.log d.png deep/e.png 'f g.txt' h i | tr '\n' ' ')" = 'a.log b.log c.log d.png deep/e.png f g.txt h i ' ]
check "the data have arrived whole" cmp -s "$W/keep/cifar-10-batches-bin/data" "$W/mirror/cifar-10-batches-bin/data"
budgets() { # in every call less than its time limit, and all of them within the time
    why=$(cat "$T/build-gpu/CALLS.md")
    awk -F '|' '/optional:/ { next } /^\| [0-9]/ { all += $6 - 30 + 15; if ($6 > 600) bad = 1 } END { exit bad || all + 60 > 1800 }' "$T/build-gpu/CALLS.md"
}
check "the calls are within the time of the lease" budgets

# What may go wrong there
said_commit() { (cd "$T" && sh scripts/lib/commit.sh); }
check "a tree says the commit it is of" [ "$(said_commit)" = "$packed" ]
random 10 >>"$T/results/rows"
check "also beside results that are not committed" [ "$(said_commit)" = "$packed" ]
echo '# another' >>"$T/scripts/gpu/tools.sh"
check "and that it is not the same any more" [ "$(said_commit)" = "$packed-dirty" ]
echo 0123456789ab >"$T/COMMIT"
check "a copy says what it is a copy of, whatever git is with it" [ "$(said_commit)" = 0123456789ab ]
rm "$T/COMMIT"
git -C "$T" checkout -q -- scripts results
KEPT=$W/other again $before
check "another machine than that of call 1: status 3" [ $? -eq 3 ]
rm -rf "$W/keep"/cifar*
again $before
check "a piece that is missing is named: status 3" [ $? -eq 3 ]
check "by its call" grep -q 'piece 1 of cifar .*call 1 brings it' "$W/log"
rm -rf "$W/there/build/gpu/sparsetrain" "$W/home/x"
cp -R "$T/build-gpu/2" "$W/there/build-gpu/"
(cd "$W/there" && ILL=check OUT=$W/home/x KEEP=$W/keep sh build-gpu/2/run.sh) >"$W/log" 2>&1
check "a check that fails: its status" [ $? -eq 1 ]
check "what is not built is built first" grep -q -- '--only build,bench' "$W/home/x/asked"
cp -R "$T/build-gpu/1" "$W/there/build-gpu/"
rm -rf "$W/home/x"
(cd "$W/there" && ILL=probe OUT=$W/home/x KEEP=$W/keep sh build-gpu/1/run.sh) >"$W/log" 2>&1
check "after a NO-GO nothing else is tried" [ "$(wc -l <"$W/home/x/asked")" -eq 1 ]

# A folder that stays at home leaves its room to the data.
pack build-gpu --limit 2700000 --libs "$W/libs.tar.xz" --mirror "$W/mirror" --leave-out results/
check "without the results fewer calls" [ "$(grep -c '^| [0-9]' "$T/build-gpu/CALLS.md")" -lt "$calls" ]
check "the page says how it stays at home" grep -q 'results does not travel: .*mv results build-left-out' "$T/build-gpu/CALLS.md"

# The campaign: a table without what is finished, and the packs of runs that were stopped
mkdir -p "$T/scripts/campaign" "$W/packs"
cat >"$T/scripts/campaign.sh" <<'END'
[ "$*" = 'status --device cuda' ] || exit 2
printf '%-6s %-19s %-34s %s\n' 1 fig1 a.jsonl 'finished: there' 1 fig1 b.jsonl 'not begun' 2 an-id-that-is-longer a.jsonl 'begun, at epoch 3'
END
printf '%s\n' '# a comment' 'group,id,options,file,two_cores_h,gpu_h,what' '1,fig1,,a.jsonl,1,?,x' '1,fig1,--epochs 2,b.jsonl,1,?,y' '2,an-id-that-is-longer,,a.jsonl,1,?,z' >"$T/scripts/campaign/runs.csv"
check "a folder of packs that has none" refused 'has no pack' build-gpu --plan campaign --runs "$W/packs"
check "a folder for another plan" refused 'is a folder' build-gpu --runs "$W/packs"
random 1000 >"$W/packs/fig1+b.tar.xz"
echo 'conv = 1 2' >"$W/packs/cudnn-GPU-9.1.0.txt"
pack build-gpu --plan campaign --limit 4M --libs "$W/libs.tar.xz" --mirror "$W/mirror" --runs "$W/packs"
table=$(ls "$T"/build-gpu/*/runs.csv)
check "the campaign: the runs that are not finished travel" [ "$(cat "$table")" = '1,fig1,--epochs 2,b.jsonl,1,?,y
2,an-id-that-is-longer,,a.jsonl,1,?,z' ]
check "the page says what becomes of what comes home" grep -q 'campaign.sh take campaign.tar.gz' "$T/build-gpu/CALLS.md"
calls=$(grep -c '^| [0-9]' "$T/build-gpu/CALLS.md")
rm -rf "$W/keep" "${W:?}/home"
: >"$W/log"
check "its calls end well, one after the other" lease
check "each goes on with the same table and packs" grep -q -- "--only campaign --mps --side-by-side 4 --table $W/keep/runs.csv --runs $W/keep/campaign" "$W/home/$calls/asked"
check "which are there" sh -c "cmp -s '$W/keep/runs.csv' '$table' && diff -r '$W/keep/campaign/packs' '$W/packs'"
rm -r "$T/scripts/campaign" "$T/scripts/campaign.sh"

# The second lease, and what cannot be
pack build-gpu --plan next --limit 4M --libs "$W/libs.tar.xz" --mirror "$W/mirror"
check "the second lease: the other tests, the LSTM, compute-sanitizer, VGG-16" sh -c "cat '$T'/build-gpu/*/run.sh | grep -E '^(check|converge) ' | cut -d ' ' -f 3-5 | tr '\n' ' ' | grep -q 'build,test.*lstm .*sanitize.*vgg16'"
random 2000 >"$W/runs.tar.gz"
pack build-gpu --limit 4M --libs "$W/libs.tar.xz" --mirror "$W/mirror" --runs "$W/runs.tar.gz"
check "runs of an earlier lease travel with the call that goes on" sh -c "ls '$T'/build-gpu/*/runs.tar.gz | wc -l | grep -qx 1"
rm "$W/mirror/cifar-10-batches-bin.tar.xz"
pack build-gpu --limit 64M --libs "$W/libs.tar.xz" --mirror "$W/mirror"
check "without the data: the other calls, and what is left out is said" sh -c "grep -q '^no cifar-10-batches-bin' '$W/log' && ! grep -q ResNet '$T/build-gpu/CALLS.md'"
pack build-gpu --limit 1200000 --libs "$W/libs.tar.xz" --mirror "$W/mirror"
check "a tree that leaves no room: status 1" [ $? -eq 1 ]
check "and says so" grep -q 'leave nothing of' "$W/log"
pack build-gpu --limit 64M --held 400 --libs "$W/libs.tar.xz" --mirror "$W/mirror"
check "a lease too short: status 1, and says so" grep -q '400 for which the machine is held' "$W/log"
finish
