# group.awk: which runs are one curve, and what the curves are called:
#
#     awk -v bands=1 -f group.awk RUN-1.config RUN-1.facts RUN-2.config RUN-2.facts ...
#
# The facts of read.awk, with "dir=", the name of the run's directory, added. Runs whose configs agree differ in nothing but the
# seed; with bands=1 they are one curve, but for a second run of the same seed, which makes another.
# Printed, with tabs between: "curve", the runs' numbers, the name for legends, how many seeds; then "about" with what is true of
# all curves, "banded" with 1 where some have several seeds, "part", as "1 of 160 epochs", where that is so of all, and "note": what
# of their schedules runs did not come to.
FNR == 1 { file++; run = int((file + 1) / 2); if (run > runs) runs = run }
{
    key = value = $0
    sub(/=.*/, "", key); sub(/^[^=]*=/, "", value)
    if (FILENAME ~ /\.facts$/) fact[run, key] = value
    else {
        config[run, key] = value
        configs[run] = configs[run] $0 "\n"
        if (!(key in known)) { known[key] = 1; keys[++count] = key }
    }
}

# "lr 0.05", "4 ranks", as it may stand in a legend.
function words(key, value) {
    if (value == "null" || value == "") value = "none"
    if (key == "ranks") return value " ranks"
    if (key == "on") return "on " value
    if (value == "true") return key
    if (value == "false") return "no " key
    return key " " value
}
# What two curves of the same name differ in: at most three options, and nothing that says little to a reader.
function difference(g,   i, other, differs, text, found) {
    for (i = 1; i <= count; i++) {
        differs = 0
        for (other = 1; other <= groups; other++)
            if (name[other] == name[g] && config[first[other], keys[i]] != config[first[g], keys[i]]) differs = 1
        if (!differs || keys[i] == "parameters" || keys[i] == "checksum" || keys[i] == "nodes" || keys[i] in named) continue
        text = text (found++ ? ", " : "") words(keys[i], config[first[g], keys[i]])
    }
    return found <= 3 ? text : ""
}
function seeds_of(g) { return members[g] > 1 ? ", " members[g] " seeds" : "" }
function shared(label,   i, n) {
    for (i = 1; i <= groups; i++) if (label[i] == label[g]) n++
    return n > 1
}
# The same value of all runs, else "".
function common(key,   i) {
    for (i = 2; i <= runs; i++) if (fact[i, key] != fact[1, key]) return ""
    return fact[1, key]
}
# What each lacks, once; with the names of those that lack it, unless all do, or all that can.
function note(   g, i, item, items, order, count, lacking, who, able, text) {
    for (g = 1; g <= groups; g++) {
        items = split(fact[first[g], "missing"], item, ";")
        for (i = 1; i <= items; i++) {
            if (!(item[i] in lacking)) order[++count] = item[i]
            who[item[i]] = who[item[i]] (lacking[item[i]]++ ? "; " : "") label[g]
        }
        able += fact[first[g], "sparse"]
    }
    for (i = 1; i <= count; i++) {
        text = text (i > 1 ? ", " : "Not reached: ") order[i]
        if (lacking[order[i]] == groups || (order[i] ~ /^density/ && lacking[order[i]] == able)) continue
        text = text " [" (lacking[order[i]] > 2 ? lacking[order[i]] " of " groups " curves" : who[order[i]]) "]"
    }
    return text
}
function add(text) { if (text != "") title = title (title == "" ? "" : ", ") text }

END {
    count++
    keys[count] = "seed"
    for (run = 1; run <= runs; run++) {
        if (!bands) config[run, "seed"] = fact[run, "seed"]
        same = bands ? configs[run] : run
        times[same, fact[run, "seed"]]++
        same = same SUBSEP times[same, fact[run, "seed"]]
        if (!(same in group)) { group[same] = ++groups; first[groups] = run; name[groups] = fact[run, "name"] }
        g = group[same]
        list[g] = list[g] (members[g]++ ? " " : "") run
    }
    for (g = 1; g <= groups; g++) label[g] = name[g]
    split("model data ranks", facts, " ")
    for (f = 1; f <= 3; f++) {
        if (common(facts[f]) != "") continue
        named[facts[f]] = 1
        for (g = 1; g <= groups; g++) label[g] = label[g] ", " fact[first[g], facts[f]] (facts[f] == "ranks" ? (fact[first[g], "ranks"] == 1 ? " rank" : " ranks") : "")
    }
    for (g = 1; g <= groups; g++) name[g] = label[g]
    for (g = 1; g <= groups; g++) if (shared(name)) { text = difference(g); if (text != "") label[g] = name[g] ", " text }
    for (g = 1; g <= groups; g++) ambiguous[g] = shared(label)
    for (g = 1; g <= groups; g++) if (ambiguous[g]) label[g] = label[g] " (" fact[first[g], "dir"] ")"
    part = common("part")
    for (g = 1; g <= groups; g++) {
        if (part == "" && fact[first[g], "part"] != "") label[g] = label[g] ", " fact[first[g], "part"]
        print "curve\t" list[g] "\t" label[g] seeds_of(g) "\t" members[g]
        if (members[g] > 1) banded = 1
    }
    add(common("model") != "" && common("data") != "" ? common("model") " on " common("data") : common("model") common("data"))
    if (common("ranks") != "") add(common("ranks") (common("ranks") == 1 ? " rank" : " ranks"))
    print "about\t" title
    print "banded\t" banded + 0
    print "part\t" part
    print "note\t" note()
}
