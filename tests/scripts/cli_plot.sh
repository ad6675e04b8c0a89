#!/bin/sh
# cli_plot.sh: scripts/plot.sh: what it reads of a log (bytes, time, scores; resumed, killed, with steps left out), which runs it takes
# for one curve, medians and bands, what it says in titles and legends, that thirteen curves can be told apart, formats, mistakes.
# Pictures are looked into as SVG, whose words and strokes are text.
. tests/lib/tap.sh

# log_of ALGO SEED [KEY=VALUE...]: a log of 8 steps, as the program writes them: step i sends 100 i bytes and takes i/8 s; loss 4/i;
# evaluations before, in the middle, at the end. Keys: steps (done), asked (epochs), every (steps between rows), density, lr, data,
# crc, ranks, more (added to losses and percent to accuracies), text=1, from (resumed there), schedules (the header's keys of where
# they come to), warm (density of the first four steps)
log_of() {
    awk -v algo="$1" -v seed="$2" -v options="$(shift 2 && echo "$*")" 'BEGIN {
        o["steps"] = 8; o["asked"] = 8; o["every"] = 1; o["density"] = 0.01; o["lr"] = 0.1; o["data"] = "cifar10"; o["crc"] = "0a"; o["ranks"] = 2
        split(options, pair, " ")
        for (p in pair) { key = value = pair[p]; sub(/=.*/, "", key); sub(/^[^=]*=/, "", value); o[key] = value }
        start = sprintf("{\"type\":\"header\",\"schema\":1,\"ranks\":%d,\"nodes\":1,\"device\":\"cpu\",\"steps\":%d,\"train_images\":100,\"data_crc32\":\"%s\"%s%s,\"config\":{\"algo\":\"%s\",\"density\":%s,\"model\":\"resnet20\",\"data\":\"%s\",\"epochs\":%s,\"steps\":null,\"lr\":%s,\"seed\":%d,\"out\":\"x%d\",\"quiet\":false},\"versions\":{\"commit\":\"c\"}}",
            o["ranks"], o["asked"], o["crc"], "%s", ("schedules" in o ? "," o["schedules"] : ""), algo, o["density"], o["data"], o["asked"], o["lr"], seed, seed)
        printf start "\n", ""
        eval(0, 0)
        for (i = 1; i <= o["steps"]; i++) {
            if ((i - 1) % o["every"] == 0)
                printf "{\"type\":\"step\",\"step\":%d,\"epoch\":%g,\"loss\":%g,\"density\":%g,\"bytes_sent_mean\":%d,\"seconds\":%g,\"phases\":{\"other\":0.125,\"io\":0,\"compute\":%g,\"select\":0,\"pack\":0,\"communicate\":0,\"merge\":0,\"update\":0}}\n", i, i, 4 / i + o["more"], (i <= 4 && "warm" in o ? o["warm"] : o["density"]), 100 * i, i / 8, i / 8
            sent += 100 * i; seconds += i / 8
            if (i == 4 || i == 8) eval(i, seconds)
            if (i == o["from"]) { printf start "\n", ",\"resumed_at\":" i; seconds = 0; before = sent }
        }
        i--
        printf "{\"type\":\"summary\",\"step\":%d,\"epoch\":%d,\"completed\":%s,\"test_loss\":1,\"test_accuracy\":0.5,\"train_seconds\":%g,\"images_per_second\":7,\"bytes_sent_per_step\":%g%s}\n", i, i, (i == 8 ? "true" : "false"), seconds, (sent - before) / (i - o["from"] ? i - o["from"] : 1), told()
    }
    function eval(step, s) {
        if (o["text"]) printf "{\"type\":\"eval\",\"step\":%d,\"epoch\":%d,\"test_loss\":1,\"test_accuracy\":0.1,\"valid_perplexity\":%g,\"train_seconds\":%g%s}\n", step, step, 200 - 10 * step + o["more"], s, told()
        else printf "{\"type\":\"eval\",\"step\":%d,\"epoch\":%d,\"test_loss\":1,\"test_accuracy\":%g,\"train_seconds\":%g%s}\n", step, step, 0.1 + step / 20 + o["more"] / 100, s, told()
    }
    function told() { return "told" in o ? ",\"bytes_sent\":" sent + 0 : "" }'
}
# made NAME ALGO SEED [KEY=VALUE...]: such a run in $W/NAME
made() {
    made_dir=$W/$1
    shift
    mkdir -p "$made_dir"
    log_of "$@" > "$made_dir/run.jsonl"
}
# shellcheck disable=SC2034 # for read_log
program=$PROGRAM scripts=scripts
# the tables of a log, by the function of the scripts
log_tables() { (. scripts/lib/common.sh && read_log "$1" "$2"); }
read_log() { log_tables "$1" "$W/r"; }
fact() { sed -n "s/^$1=//p" "$W/r.facts"; }
# column N FILE: of all rows, on one line
column() { awk -v c="$1" '{ printf "%s%g", (NR > 1 ? " " : ""), $c }' "$2"; }
# same WHAT IS: equal texts
same() {
    why="$1 instead of $2"
    [ "$1" = "$2" ]
}

# -- what a log holds ------------------------------------------------------------------------------------------------------
made whole gtopk 1
read_log "$W/whole/run.jsonl"
check "bytes add up" same "$(column 2 "$W/r.loss")" '100 300 600 1000 1500 2100 2800 3600'
check "so does the time" same "$(column 3 "$W/r.loss")" '0.125 0.375 0.75 1.25 1.875 2.625 3.5 4.5'
check "every loss is there" same "$(column 4 "$W/r.loss" | cut -c 1-11)" '4 2 1.33333'
check "scores stand at the bytes and seconds of their steps" same "$(awk '{ printf "%s/%s/%s/%s ", $1, $2, $3, $4 }' "$W/r.score")" '0/0/0/10 4/1000/1.25/30 8/3600/4.5/50 '
check "a whole run is no part of one" same "$(fact part)" ''
check "all of its bytes" same "$(fact bytes) $(fact completed)" '3600 yes'
made part gtopk 1 steps=4 asked=160
read_log "$W/part/run.jsonl"
check "a prefix says of what" same "$(fact part) $(fact completed)" '4 of 160 epochs no'
sed 's/"epochs":8,"steps":null/"epochs":null,"steps":20/' "$W/whole/run.jsonl" > "$W/steps.jsonl"
read_log "$W/steps.jsonl"
check "also where steps were asked for" same "$(fact part)" '8 of 20 steps'
sed '/"type":"summary"/d' "$W/part/run.jsonl" > "$W/killed.jsonl"
printf '{"type":"step","step":5,"ep' >> "$W/killed.jsonl"
read_log "$W/killed.jsonl"
check "a killed run is read as far as it got" same "$(fact step) $(fact part)" '4 4 of 160 epochs'
log_of gtopk 1 every=3 > "$W/thin.jsonl"
read_log "$W/thin.jsonl"
check "of a log with gaps the end is that of the summary" same "$(fact bytes) $(fact seconds)" '3600 4.5'
check "and the time at evaluations is theirs" same "$(awk '$1 == 4 { print $3 }' "$W/r.score")" 1.25
check "bytes never fall" sh -c "awk '\$2 < last { exit 1 } { last = \$2 }' '$W/r.loss'"
log_of gtopk 1 from=3 > "$W/again.jsonl"
read_log "$W/again.jsonl"
check "a resumed run goes on at its time" same "$(column 3 "$W/r.loss")" '0.125 0.375 0.75 1.25 1.875 2.625 3.5 4.5'
log_of gtopk 1 from=4 every=3 > "$W/again.jsonl"
read_log "$W/again.jsonl"
check "also with gaps" same "$(awk '$1 == 8 { print $3 }' "$W/r.score")" 4.5
check "and has come to the end that its summary has" same "$(fact step)/$(fact part)" 8/
check "of an older log the bytes up to there by its rows, then by its summary" same "$(fact bytes)" 3900
log_of gtopk 1 from=4 every=3 told=1 > "$W/told.jsonl"
read_log "$W/told.jsonl"
check "of a newer one those that the evaluations say" same "$(fact bytes) $(awk '{ printf "%s/%s ", $1, $2 }' "$W/r.score")" '3600 0/0 4/1000 8/3600 '
check "between them the rows, stretched" same "$(column 2 "$W/r.loss")" '76.9231 1000 2950'
log_of gtopk 1 every=5 | sed '/"type":"summary"/d' > "$W/apart.jsonl"
read_log "$W/apart.jsonl"
check "a row stands for no step before an evaluation" same "$(column 2 "$W/r.loss")" '100 1600'
sed '/"type":"summary"/d; /"resumed_at"/{h; s/.*/{"type":"summary","step":8,"epoch":8,"completed":false,"train_seconds":1,"bytes_sent_per_step":1}/p; g;}' "$W/again.jsonl" > "$W/lost.jsonl"
read_log "$W/lost.jsonl"
check "not to that of what went before" same "$(fact step)/$(fact part)" '7/7 of 8 epochs'
log_of gtopk 1 text=1 > "$W/text.jsonl"
read_log "$W/text.jsonl"
check "of a text perplexity, but not the one before training" same "$(awk '{ printf "%s/%s ", $1, $4 }' "$W/r.score")" '4/160 8/120 '
# The schedules: what a run did not come to, and the density that it has.
schedules='schedules="density_from":4,"lr_from":2,"lr_changes":[4,6]'
log_of gtopk 1 warm=0.25 "$schedules" > "$W/all.jsonl"
read_log "$W/all.jsonl"
check "a run that comes to the end of its schedules" same "$(fact missing)/$(fact name)" '/gtopk, ρ = 0.01'
made warming gtopk 1 warm=0.25 steps=4 "$schedules"
read_log "$W/warming/run.jsonl"
check "one that does not" same "$(fact missing)" "density 0.01 (epoch 4);the rate's changes at epochs 4, 6"
check "is called by the density that it has" same "$(fact name)" 'gtopk, ρ = 0.25'
made beginning dense 1 steps=4 'schedules="density_from":4,"lr_from":5,"lr_changes":[6]'
read_log "$W/beginning/run.jsonl"
check "a dense one lacks no density" same "$(fact missing)" "learning rate 0.1 (epoch 5);the rate's change at epoch 6"
made none gtopk 1 steps=0
no_reading() { ! log_tables "$W/none/run.jsonl" "$W/n"; }
check "no step, no reading" no_reading
# The options that say nothing of what is computed are those of the program's table, and the seed.
sed -n '/^ *{"/{h;};/AT(LOCAL,/{x;s/^ *{"\([a-z-]*\)".*/\1/p;x;}' cli/options/options_table.c | sort -u > "$W/local"
sed -n 's/^ *split("\(out [^"]*\)".*/\1/p' scripts/plot/read.awk | tr ' ' '\n' | sort > "$W/left-out"
why="in one and not in the other: $(sort "$W/local" "$W/left-out" | uniq -u | tr '\n' ' ')"
if [ -s "$W/local" ] && [ -z "$(comm -23 "$W/local" "$W/left-out")" ] && grep -qx seed "$W/left-out"; then ok "local options do not part runs"; else not_ok "local options do not part runs" "$why"; fi

# Which algorithms have a density is the program's to say.
dense=$("$PROGRAM" list --json | "$PROGRAM" rows - --each exchanges --where sparse=false --keys name | paste -s -d ' ' -)
check "those that send every entry are those of the program's table" same "$(. scripts/lib/common.sh && echo "$sends_every_entry")" "$dense"

# -- which runs are a curve ------------------------------------------------------------------------------------------------
# curves BANDS RUN...: "members|label" of each curve
curves() {
    curves_bands=$1
    shift
    curves_n=0
    for curves_run in "$@"; do
        curves_n=$((curves_n + 1))
        log_tables "$W/$curves_run/run.jsonl" "$W/c$curves_n"
        echo "dir=$curves_run" >> "$W/c$curves_n.facts"
    done
    set --
    for i in $(seq $curves_n); do set -- "$@" "$W/c$i.config" "$W/c$i.facts"; done
    awk -v bands="$curves_bands" -f scripts/plot/group.awk "$@" > "$W/groups"
    sed -n 's/^curve	\([^	]*\)	\([^	]*\)	.*/\1|\2/p' "$W/groups" | tr '\n' ';'
}
for seed in 1 2 3; do
    made "dense-$seed" dense $seed more=$seed
    made "gtopk-$seed" gtopk $seed
done
made again gtopk 1
made hot gtopk 1 lr=0.5
made sparser gtopk 1 density=0.001
made four gtopk 1 ranks=4
made other gtopk 1 crc=ff
made made-1 gtopk 1 data=synthetic crc=11
made made-2 gtopk 2 data=synthetic crc=22
check "seeds alone apart: one curve" same "$(curves 1 dense-1 gtopk-1 dense-2 gtopk-2 gtopk-3)" '1 3|dense, 2 seeds;2 4 5|gtopk, ρ = 0.01, 3 seeds;'
check "not where that is not wanted" same "$(curves 0 gtopk-1 gtopk-2)" '1|gtopk, ρ = 0.01, seed 1;2|gtopk, ρ = 0.01, seed 2;'
check "the same seed twice is not two seeds" same "$(curves 1 gtopk-1 again gtopk-2)" '1 3|gtopk, ρ = 0.01 (gtopk-1), 2 seeds;2|gtopk, ρ = 0.01 (again);'
check "another learning rate is another curve, and says so" same "$(curves 1 gtopk-1 hot gtopk-2)" '1 3|gtopk, ρ = 0.01, lr 0.1, 2 seeds;2|gtopk, ρ = 0.01, lr 0.5;'
check "so is another density" same "$(curves 1 gtopk-1 sparser)" '1|gtopk, ρ = 0.01;2|gtopk, ρ = 0.001;'
check "and another number of ranks" same "$(curves 1 gtopk-1 four dense-1)" '1|gtopk, ρ = 0.01, 2 ranks;2|gtopk, ρ = 0.01, 4 ranks;3|dense, 2 ranks;'
check "and other data under the same name" same "$(curves 1 gtopk-1 other)" '1|gtopk, ρ = 0.01 (gtopk-1);2|gtopk, ρ = 0.01 (other);'
check "made-up data are others with every seed" same "$(curves 1 made-1 made-2)" '1 2|gtopk, ρ = 0.01, 2 seeds;'
curves 1 part gtopk-1 > /dev/null
check "a part among whole ones says so in the legend" grep -q '	gtopk, ρ = 0.01, epochs 160, 4 of 160 epochs	' "$W/groups"

curves 1 warming > /dev/null
check "what is not reached" grep -qx "note	Not reached: density 0.01 (epoch 4), the rate's changes at epochs 4, 6" "$W/groups"
curves 1 warming beginning > /dev/null
check "by which, where not all are meant" grep -qx "note	Not reached: density 0.01 (epoch 4), the rate's changes at epochs 4, 6 \[gtopk, ρ = 0.25\], learning rate 0.1 (epoch 5) \[dense\], the rate's change at epoch 6 \[dense\]" "$W/groups"

# -- medians, bands, marks -------------------------------------------------------------------------------------------------
merged() { awk -v curve=1 -v curves=3 "$@"; }
printf '1 10 1 9 5\n2 20 2 9 6\n3 30 3 9 7\n' > "$W/a"
printf '1 12 3 9 1\n2 24 6 9 9\n' > "$W/b"
printf '1 11 2 9 3\n2 99 4 9 2\n3 99 9 9 9\n' > "$W/c"
check "median, least and greatest of three, as far as all got" same "$(merged -f scripts/lib/stats.awk -f scripts/plot/merge.awk "$W/a" "$W/b" "$W/c" | cut -d ' ' -f 1-6 | tr '\n' ';')" '1 11 2 3 1 5;2 24 4 6 2 9;'
check "of two the mean" same "$(merged -f scripts/lib/stats.awk -f scripts/plot/merge.awk "$W/a" "$W/b" | cut -d ' ' -f 1-6 | tr '\n' ';')" '1 11 2 3 1 5;2 22 4 7.5 6 9;'
awk 'BEGIN { for (i = 1; i <= 5001; i++) print i, 10 * i, i, 2, 1 }' > "$W/long"
merged -f scripts/lib/stats.awk -f scripts/plot/merge.awk "$W/long" > "$W/short"
check "long ones are thinned, the last row stays" sh -c "[ \$(wc -l < '$W/short') -le 2001 ] && tail -n 1 '$W/short' | grep -q '^5001 '"
for curve in 1 2 3; do awk -v curve=$curve -v curves=3 -f scripts/lib/stats.awk -f scripts/plot/merge.awk "$W/long" | awk '$7 != "-" { print $1 }' > "$W/marks$curve"; done
check "eight marks, of no two curves at one place" sh -c "cat '$W'/marks? | sort | uniq -c | awk '\$1 > 1 && \$2 != 5001 { exit 1 } END { exit NR < 22 || NR > 26 }'"

# -- pictures --------------------------------------------------------------------------------------------------------------
if ! command -v gnuplot > /dev/null 2>&1; then
    skip "pictures" "gnuplot is not installed"
    finish
    exit
fi
plot() { timeout 60 sh scripts/plot.sh "$@" > "$W/out" 2> "$W/err"; }
# has TEXT FILE: one of the words of an SVG
has() {
    why="$2 has: $(sed -n 's/.*<text>*\(.*\)<\/text>.*/\1/p' "$2" | tr '\n' '|' | head -c 800)"
    grep -qF -- "$1" "$2"
}
silent_err() { "$@" && why="said: $(cat "$W/err")" && [ ! -s "$W/err" ]; }
check "SVG: three seeds of two algorithms" silent_err plot "$W"/dense-? "$W"/gtopk-? --format svg --out "$W/svg"
pictures='accuracy-bytes accuracy-time accuracy loss-bytes loss-time loss time'
check "seven pictures, all named" same "$(sort "$W/out" | sed "s|$W/svg/||; s/.svg\$//" | tr '\n' ' ')" "$pictures "
check "the legend has the number of seeds" has 'gtopk, ρ = 0.01, 3 seeds' "$W/svg/loss.svg"
check "and what a band is stands below the title" has 'resnet20 on cifar10, 2 ranks; lines: median over the seeds, bands: from the least to the greatest' "$W/svg/accuracy.svg"
check "with the scores at the end" has 'dense, 3 seeds   52.00% (51.00 to 53.00)' "$W/svg/accuracy.svg"
check "bars are means" has 'bars: mean over the seeds, whiskers: from the least to the greatest' "$W/svg/time.svg"
check "bytes below" has 'bytes sent by a rank' "$W/svg/loss-bytes.svg"
check "time below" has 'training time [s]' "$W/svg/accuracy-time.svg"
check "bands" sh -c "grep -q 'fill-opacity' '$W/svg/loss.svg'"
plot "$W"/dense-? --no-bands --format svg --out "$W/svg"
check "without bands a curve for each seed" sh -c "grep -qF 'dense, seed 2' '$W/svg/loss.svg' && ! grep -q 'seeds' '$W/svg/loss.svg'"
made part2 dense 1 steps=4 asked=160
plot "$W/part" "$W/part2" --format svg --out "$W/svg"
for picture in $pictures; do check "the title of $picture says that it is a part" has '(4 of 160 epochs)' "$W/svg/$picture.svg"; done
plot "$W/whole" --format svg --out "$W/svg"
check "a whole run's does not" sh -c "! grep -q ' of [0-9]* epochs' '$W/svg/loss.svg'"

plot "$W/warming" "$W/beginning" --format svg --out "$W/svg"
for picture in $pictures; do check "$picture says what is not reached" has "Not reached: density 0.01 (epoch 4), the rate" "$W/svg/$picture.svg"; done
sed '/"type":"eval"/d' "$W/whole/run.jsonl" > "$W/unscored.jsonl"
plot "$W/unscored.jsonl" --out "$W/unscored"
check "no evaluation, no picture of it, and a line" sh -c "[ \"\$(cat '$W/err')\" = 'plot.sh: there is no evaluation to draw, so no accuracy.png' ] && [ \$(wc -l < '$W/out') -eq 4 ] && [ ! -e '$W/unscored/accuracy.png' ]"
check "beside one that was evaluated that one" silent_err plot "$W/unscored.jsonl" "$W/dense-1" --out "$W/unscored"

# Thirteen curves: no two of the same colour and dash, nor of the same mark and colour.
n=0
set --
for algo in $(names_of EXCHANGE comm/algorithms/exchanges.def | head -n 13); do
    n=$((n + 1))
    made "thirteen/$algo" "$algo" 1 more=0.$n
    set -- "$@" "$W/thirteen/$algo"
done
plot "$@" --format svg --against steps --out "$W/thirteen"
# The legend's strokes: <path stroke='rgb(...)' [stroke-dasharray='...'] d='M...'
tr '\n' ' ' < "$W/thirteen/loss.svg" | sed 's/<path/\n<path/g' | sed -n "s/.*stroke='\(rgb([^)]*)\)'\( *stroke-dasharray='[^']*'\)\{0,1\}.*/\1\2/p" | sort -u | grep -v -e 216 -e '( *64' -e '(32' > "$W/strokes"
why="$(cat "$W/strokes")"
check "thirteen curves: as many pairs of colour and dash" [ "$(wc -l < "$W/strokes")" -ge 13 ]
check "all named, the legend beside the curves" sh -c "for a in \$(ls '$W/thirteen' | grep -v svg); do grep -q \"\$a\" '$W/thirteen/loss.svg' || exit 1; done"
made one/a dense 1 steps=4 asked=4
made one/b gtopk 1 steps=4 asked=4
plot "$W/one/a" "$W/one/b" --format svg --out "$W/svg"
check "one score each: points, and their numbers" has 'Test accuracy after 4 epochs' "$W/svg/accuracy.svg"

check "PNG is the default" plot "$W/whole" --out "$W/png"
check "PNG: seven files that are" sh -c "for f in $pictures; do [ \"\$(head -c 4 '$W/png/'\$f.png | tail -c 3)\" = PNG ] || exit 1; done"
check "PDF" plot "$W/whole" "$W/dense-1" --format=pdf --against=bytes --out="$W/pdf"
check "PDF: those against bytes alone, and the times" same "$(cd "$W/pdf" && echo *.pdf)" 'accuracy-bytes.pdf loss-bytes.pdf time.pdf'
check "PDF: that are" sh -c "[ \"\$(head -c 5 '$W/pdf/time.pdf')\" = %PDF- ]"
check "several runs go to runs/plots, one into its own directory" sh -c "cd '$W' && sh '$PWD/scripts/plot.sh' whole dense-1 > out && [ -s runs/plots/loss.png ] && sh '$PWD/scripts/plot.sh' whole > out && [ -s whole/time.png ]"
check "a place with a blank and a quote" sh -c "mkdir -p \"$W/it's here/a run\" && cp '$W/whole/run.jsonl' \"$W/it's here/a run\" && cd \"$W/it's here\" && TMPDIR=\"$W/it's here\" sh '$PWD/scripts/plot.sh' 'a run' > '$W/out' 2>&1 && [ -s 'a run/loss.png' ]"
# Names of pictures are the script's own: what lies there and is no picture is not drawn into, and none is drawn by half.
echo precious > "$W/victim"
mkdir "$W/folder"
ln -sf ../victim "$W/whole/loss.png"
rm -f "$W/whole/time.png" "$W/whole/loss-time.png"
ln -s ../folder "$W/whole/time.png"
mkfifo "$W/whole/loss-time.png"
check "links and a FIFO in the places of pictures" silent_err plot "$W/whole"
check "are replaced" [ -s "$W/whole/loss.png" -a ! -h "$W/whole/loss.png" -a -f "$W/whole/time.png" -a ! -h "$W/whole/time.png" -a -f "$W/whole/loss-time.png" ]
check "what they lead to stays" [ "$(cat "$W/victim")" = precious -a -z "$(ls "$W/folder")" ]
plot "$W/text.jsonl" --out "$W/text"
check "of a text perplexity" [ -s "$W/text/perplexity-bytes.png" ]
# One rank sends nothing.
sed 's/"bytes_sent_mean":[0-9]*/"bytes_sent_mean":0/; s/"bytes_sent_per_step":[0-9]*/"bytes_sent_per_step":0/' "$W/whole/run.jsonl" > "$W/alone.jsonl"
check "nothing sent: no picture of it" sh -c "sh scripts/plot.sh '$W/alone.jsonl' --out '$W/alone' > '$W/out' 2> '$W/err' && [ ! -e '$W/alone/loss-bytes.png' ] && [ -s '$W/alone/loss-time.png' ]"
check "a run of the real program" start 2 --data synthetic:64x16 --batch 4 --steps 6 --checkpoint-every 3 --algo gtopk --density-warmup none --out "$W/real"
check "drawn" plot "$W/real" --out "$W/real"

# A gnuplot that lacks a library.
mkdir "$W/bin"
cat > "$W/bin/gnuplot" << FAKE
#!/bin/sh
if [ "\$1" = -e ]; then printf '  %s  a terminal\n' \$KNOWN >&2; exit; fi
exec $(command -v gnuplot) "\$@"
FAKE
chmod +x "$W/bin/gnuplot"
# instead KNOWN FORMAT GIVEN: with these terminals alone a format becomes another, and one line says so
instead() {
    rm -rf "$W/fall"
    KNOWN=$1 PATH=$W/bin:$PATH plot "$W/whole" --format "$2" --out "$W/fall" || return 1
    why="said: $(cat "$W/err")"
    [ -s "$W/fall/loss.$3" ] && [ "$(cat "$W/err")" = "plot.sh: this gnuplot draws no $2; drawing $3 instead" ]
}
check "no pdfcairo: SVG" instead 'svg pngcairo' pdf svg
check "neither: PNG" instead 'pngcairo dumb' pdf png
check "no svg: PDF" instead 'pngcairo pdfcairo' svg pdf
KNOWN=png PATH=$W/bin:$PATH plot "$W/whole" --out "$W/fall"
check "no pngcairo: the other PNG, without a word" sh -c "[ -s '$W/fall/loss.png' ] && [ ! -s '$W/err' ]"

# refused TEXT OPTION...: one line with the text, status 2
refused() {
    refused_text=$1
    shift
    plot "$@"
    refused_status=$?
    why="status $refused_status: $(cat "$W/err")"
    [ $refused_status -eq 2 ] && [ "$(wc -l < "$W/err")" -eq 1 ] && grep -qF -e "$refused_text" "$W/err"
}
check "no run" refused 'which run?'
check "a run that is not there" refused 'no run.jsonl there' "$W/nowhere"
check "a log without a step" refused 'holds no step yet' "$W/none"
check "another format" refused '--format is png, pdf or svg, not "gif"' "$W/whole" --format gif
check "another axis" refused '--against has no "words"' "$W/whole" --against steps,words
check "an option that is not" refused 'unknown option --bands' "$W/whole" --bands
check "an option without its value" refused '--out needs a value' "$W/whole" --out
check "images beside a text" refused 'draw them apart' "$W/whole" "$W/text.jsonl" --out "$W/new"
mkdir -p "$W/taken/accuracy.png"
check "a directory in the place of a picture" refused "$W/taken/accuracy.png is a directory; move it away" "$W/whole" --out "$W/taken"
check "stays empty" [ -z "$(ls "$W/taken/accuracy.png")" ]
check "bytes where none were sent" refused 'nothing was sent' "$W/alone.jsonl" --against bytes --out "$W/new"
# shellcheck disable=SC2097,SC2098 # KNOWN is for the other
KNOWN=dumb
export KNOWN
PATH=$W/bin:$PATH
check "a gnuplot that draws none of them" refused 'draws neither PNG, nor PDF, nor SVG' "$W/whole"
finish
