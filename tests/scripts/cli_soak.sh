#!/bin/sh
# cli_soak.sh: the short form of the campaigns (scripts/soak.sh, docs/soak.md): some faults, kills and crafted checkpoints. And
# that the faults are real: the library that makes them sees what the C library calls within itself.
# waits: for jobs that are killed
. tests/lib/tap.sh

check "the parts are listed" [ "$(sh scripts/soak.sh --list | tr '\n' ' ')" = "faults kills crafted fuzz " ]
sh scripts/soak.sh no-such --out "$W/none" > "$W/out" 2> "$W/err"
check "a part that is none is refused" [ $? -eq 2 ]
for share in 0/2 3/2 1/0 1 1/2/3 a/2 /2 1/; do
    sh scripts/soak.sh crafted --share "$share" --out "$W/none" > "$W/out" 2> "$W/err"
    check "--share $share is refused" [ "$?:$(grep -c -- "--share wants" "$W/err")" = 2:1 ]
done
if ! calls_fail "the campaigns"; then
    finish
    exit
fi

# -- the library --------------------------------------------------------------------------------------------------------------
# It writes with stdio, lists a directory, and does not look whether closing its file went well.
cat > "$W/careless.c" << 'END'
#include <dirent.h>
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv) {
    char path[4096], text[100000];
    int entries = 0;
    snprintf(path, sizeof path, "%s/file", argv[1]);
    FILE *f = fopen(path, "w");
    memset(text, 'x', sizeof text);
    if (!f || fwrite(text, 1, sizeof text, f) != sizeof text) return 1;
    fclose(f);
    DIR *d = opendir(argv[1]);
    while (d && readdir(d)) entries++;
    printf("%d\n", entries);
    return argc != 2;
}
END
cc=${CC:-cc}
"$cc" -O1 -o "$W/careless" "$W/careless.c"
# fails RULES: the careless program in a fresh $W/dir, its status and what is there
fails() {
    rm -rf "$W/dir" "$W/calls.0"
    mkdir "$W/dir"
    FAIL_PROGRAM=careless FAIL_CALLS=$1 FAIL_LOG=$W/calls LD_PRELOAD=$failing_library "$W/careless" "$W/dir" > "$W/out" 2>&1
    status=$?
    bytes=$(wc -c < "$W/dir/file" 2> /dev/null)
}
fails "all $W/dir 0 0 EIO"
check "undisturbed, it writes all" [ "$status:$bytes:$(cat "$W/out")" = "0:100000:3" ]
check "calls within the C library are seen: a write of stdio, and readdir's" [ "$(grep -cE '^[0-9]+ (write|getdents64) ' "$W/calls.0")" -ge 3 ]
check "and each has its number" [ "$(cut -d ' ' -f 1 "$W/calls.0" | tr '\n' ' ')" = "$(seq "$(wc -l < "$W/calls.0")" | tr '\n' ' ')" ]
fails "write $W/dir 1 1 ENOSPC"
check "a write that fails is one that fails" [ "$status" -eq 1 ]
fails "write $W/dir 1 1 SHORT"
check "a short write is gone on with" [ "$status:$bytes" = 0:100000 ]
fails "write $W/dir 1 1 KILL"
check "killed in the middle of a write: half of it is there" [ "$status:$((bytes < 100000)):$((bytes > 0))" = 137:1:1 ]
fails "getdents64 $W/dir 1 1 EIO"
check "a directory that cannot be read" [ "$status:$(cat "$W/out")" = 0:0 ]
check "the log marks the call that failed" [ "$(grep -c '^!1 getdents64 ' "$W/calls.0")" -eq 1 ]
fails "write $W/dir 1 1 SHORT; write /file\$ 2 2 ENOSPC"
check "two rules: half of a write, then a full disk" [ "$status:$((bytes < 100000)):$((bytes > 0))" = 1:1:1 ]
for rule in "write $W" "wrote $W 1 1 EIO" "write $W 1 1 EMOOD"; do
    fails "$rule"
    check "what is no rule is not taken for one: ${rule##*/}" [ "$status:$(grep -c '^failing: ' "$W/out")" = 98:1 ]
done

# -- what is good, and what is not ------------------------------------------------------------------------------------------------
mkdir "$W/judge"
# judged CHANGE: what the campaigns say of a run that ended well, after this was done in its directory
judged() {
    rm -rf "$W/judge/run"
    cp -a "$W/judge/whole2-12" "$W/judge/run"
    (cd "$W/judge/run" && eval "$1")
    # shellcheck disable=SC2016 # for the other shell
    judging 'lost "$work/run" && echo gone; same_end "$work/run"'
}
judging() {
    (
        work=$W/judge out=$W/judge program=$PROGRAM
        . scripts/mpi-env.sh
        . scripts/lib/common.sh
        . scripts/soak/lib.sh
        undisturbed
        eval "$1"
    )
}
judging :
twelve=checkpoint-00000012
check "an undisturbed run is good" [ -z "$(judged :)" ]
# bad WHAT-IS-SAID CHANGE
bad() {
    said="$(judged "$2" 2> /dev/null | tr '\n' ' ')"
    check "not good: $1" [ "$said" = "$1 " ]
}
bad "other $twelve/rank0001.ckpt" "truncate -s -1 $twelve/rank0001.ckpt"
bad "other $twelve/rank0000.ckpt" "printf %064d 0 | dd of=$twelve/rank0000.ckpt bs=1 seek=1900 conv=notrunc"
bad "other checkpoint-00000009/model.ckpt" "rm checkpoint-00000009/model.ckpt"
bad "no $twelve" "rm -r $twelve"
bad "gone no $twelve" "rm -r checkpoint-*"
bad "left over: vocabulary.txt.tmp.1.0" ": > vocabulary.txt.tmp.1.0"
bad "left over: $twelve.old" "mkdir $twelve.old"
bad "other rows: < step step=4" "sed -i 's/\"step\":5,/\"step\":4,/' run.jsonl"

# -- the campaigns, short -------------------------------------------------------------------------------------------------------
for part in faults kills crafted; do
    sh scripts/soak.sh $part --short --out "$W/soak" > "$W/out" 2> "$W/err"
    status=$?
    sed 's/^/# /' "$W/out"
    rows=$(sed 1d "$W/soak/$part.csv" | wc -l)
    check "$part: nothing is found" [ "$status:$(sed 1d "$W/soak/$part.csv" | grep -vc ',good$')" = 0:0 ]
    check "$part: rows, and a line about them" [ "$((rows >= 4)):$(grep -c "^$part: .*commit" "$W/soak/about.txt")" = 1:1 ]
done

check "faults: nearly all of the calls came" [ "$(grep -c 'no such call' "$W/soak/faults.csv")" -le 3 ]

check "kills: on several numbers of ranks" [ "$(sed 1d "$W/soak/kills.csv" | cut -d , -f 3 | sort -u | wc -l)" -ge 3 ]

sh scripts/soak.sh kills --short --share 2/4 --out "$W/share" > "$W/out" 2> "$W/err"
check "--share 2/4: of four kills the second" [ "$(sed 1d "$W/share/kills.csv" | cut -d , -f 1 | tr '\n' ' ')" = "2 " ]

# It goes on where the rows end, and a row that went wrong is told.
sed -i '$d' "$W/soak/kills.csv"
sh scripts/soak.sh kills --short --out "$W/soak" > "$W/out" 2> "$W/err"
check "only the row that is missing is made again" [ "$(sed 1d "$W/soak/kills.csv" | wc -l):$(cut -d , -f 1 "$W/soak/kills.csv" | sort | uniq -d | wc -l)" = 4:0 ]
sed -i '$s/good$/other parameters/' "$W/soak/kills.csv"
sh scripts/soak.sh kills --short --out "$W/soak" > "$W/out" 2> "$W/err"
check "a row that went wrong: status 1" [ $? -eq 1 ]
check "and it is counted" grep -q '1 went wrong' "$W/out"
finish
