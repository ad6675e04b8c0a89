# table.awk: the tables of sweep.sh:
#
#     awk -v runs=RUNS.csv -v csv=SUMMARY.csv -f stats.awk -f table.awk ROWS
#
# ROWS: for each run lines KEY=VALUE and an empty one: run, state, option:NAME for np and what was swept, and the facts of
# plot/read.awk as far as there are any. RUNS.csv has a row for each run. SUMMARY.csv and, in fewer columns, what is printed have
# one for each combination of the options but the seed: how many runs there are, how many are done, and of these the mean of every
# score, its standard deviation (n - 1), least and greatest value.
BEGIN {
    measures = split("test_wer test_cer test_accuracy test_perplexity valid_perplexity test_loss valid_loss valid_loss_sampled bytes images_per_second words_per_second", measure, " ")
    called["bytes"] = "bytes_sent_per_rank"
    facts = split("step epoch seconds commit", other, " ")
}
/^$/ { next }
{
    key = value = $0
    sub(/=.*/, "", key); sub(/^[^=]*=/, "", value)
    if (key == "run") n++
    fact[n, key] = value
    if (key ~ /^option:/) {
        key = substr(key, 8)
        if (!(key in known)) { known[key] = 1; option[++options] = key }
    }
    has[key] = 1
}

function name(key) { return key in called ? called[key] : key }
function write_runs(   i, c, line) {
    line = "run,state"
    for (c = 1; c <= options; c++) line = line "," option[c]
    for (c = 1; c <= measures; c++) if (measure[c] in has) line = line "," name(measure[c])
    for (c = 1; c <= facts; c++) line = line "," other[c]
    print line > runs
    for (i = 1; i <= n; i++) {
        line = csv_field(fact[i, "run"]) "," fact[i, "state"]
        for (c = 1; c <= options; c++) line = line "," csv_field(fact[i, "option:" option[c]])
        for (c = 1; c <= measures; c++) if (measure[c] in has) line = line "," fact[i, measure[c]]
        for (c = 1; c <= facts; c++) line = line "," fact[i, other[c]]
        print line > runs
    }
}

# Of the done runs of a group: sets centre, their mean, spread, least and greatest; returns how many there are.
function describe(g, key,   i, x, count) {
    count = 0
    for (i = 1; i <= n; i++)
        if (group[i] == g && fact[i, "state"] == "done" && fact[i, key] != "") x[++count] = fact[i, key] + 0
    centre = mean(x, count)
    spread = deviation(x, count)
    median(x, count)
    least = x[1]; greatest = x[count]
    return count
}
function find_groups(   i, c, key) {
    for (i = 1; i <= n; i++) {
        key = ""
        for (c = 1; c <= options; c++) if (option[c] != "seed") key = key fact[i, "option:" option[c]] "\t"
        if (!(key in number)) { number[key] = ++groups; first[groups] = i }
        group[i] = number[key]
        all[group[i]]++
        if (fact[i, "state"] == "done") whole[group[i]]++
    }
}
function write_summary(   g, c, line, count) {
    line = ""
    for (c = 1; c <= options; c++) if (option[c] != "seed") line = line option[c] ","
    line = line "runs,done"
    for (c = 1; c <= measures; c++)
        if (measure[c] in has) line = line "," name(measure[c]) "_mean," name(measure[c]) "_sd," name(measure[c]) "_min," name(measure[c]) "_max"
    print line > csv
    for (g = 1; g <= groups; g++) {
        line = ""
        for (c = 1; c <= options; c++) if (option[c] != "seed") line = line csv_field(fact[first[g], "option:" option[c]]) ","
        line = line all[g] "," whole[g] + 0
        for (c = 1; c <= measures; c++) {
            if (!(measure[c] in has)) continue
            count = describe(g, measure[c])
            line = line (count ? sprintf(",%.10g,%s,%.10g,%.10g", centre, (count > 1 ? sprintf("%.10g", spread) : ""), least, greatest) : ",,,,")
        }
        print line > csv
    }
}

# -- for people ------------------------------------------------------------------------------------------------------------
function put(row, text) { cell[row, ++columns] = text; if (length(text) > width[columns]) width[columns] = length(text) }
function shown(count, scale, digits, unit) {
    if (!count) return "-"
    return sprintf("%." digits "f%s", centre * scale, unit) (count > 1 ? sprintf(" +- %." digits "f", spread * scale) : "")
}
function put_measures(row, g) {
    if ("test_accuracy" in has && !("test_perplexity" in has)) put(row, g ? shown(describe(g, "test_accuracy"), 100, 2, "%") : "test accuracy")
    if ("test_wer" in has) put(row, g ? shown(describe(g, "test_wer"), 100, 2, "%") : "test WER")
    if ("test_perplexity" in has) put(row, g ? shown(describe(g, "test_perplexity"), 1, 2, "") : "test perplexity")
    if ("valid_perplexity" in has) put(row, g ? shown(describe(g, "valid_perplexity"), 1, 2, "") : "valid perplexity")
    if ("test_loss" in has) put(row, g ? shown(describe(g, "test_loss"), 1, 3, "") : "test loss")
    if ("bytes" in has) put(row, g ? (describe(g, "bytes") ? sprintf("%.4g", centre / 1e6) : "-") : "MB sent")
    if ("images_per_second" in has) put(row, g ? shown(describe(g, "images_per_second"), 1, 0, "") : "images/s")
    if ("words_per_second" in has) put(row, g ? shown(describe(g, "words_per_second"), 1, 0, "") : "words/s")
}
function print_table(   g, c, line) {
    for (g = 0; g <= groups; g++) {
        columns = 0
        for (c = 1; c <= options; c++)
            if (option[c] != "seed") put(g, g ? (fact[first[g], "option:" option[c]] != "" ? fact[first[g], "option:" option[c]] : "-") : option[c])
        put(g, g ? whole[g] + 0 " of " all[g] : "runs done")
        put_measures(g, g)
    }
    for (g = 0; g <= groups; g++) {
        line = ""
        for (c = 1; c <= columns; c++) line = line sprintf("%-" width[c] + 2 "s", cell[g, c])
        sub(/ +$/, "", line)
        print line
    }
    if ("seed" in known) print "+-: standard deviation over the seeds; sent: by a rank in the whole run"
}
END {
    write_runs()
    find_groups()
    write_summary()
    print_table()
}
