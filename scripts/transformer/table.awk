# table.awk: what the runs of transformer.sh came to, behind csv.awk:
#
#     AUDIT=HELP awk -v what=table|helps|csv|verdict|figure|commits|machines|ranks|first -v vocabulary=N -f csv.awk -f table.awk RUNS.csv
#
# RUNS.csv is transformer.sh's own; with: what helps, but AUDIT, of which nothing is told here. Losses are of the whole validation text, in nats. What is compared,
# with dense or with the exchange as it is, is the mean of the differences over the seeds that both have: equal seeds begin with
# equal parameters and see equal windows. Nothing is compared with what is no better than guessing, ln vocabulary.
BEGIN {
    near = 0.01 # as good as: at most so much above. What helps lowers the loss by more
    subsep = SUBSEP
}
function note(list, name) { if (!((list, name) in known)) { known[list, name] = 1; of[list, ++count[list]] = name } }
{ csv_row() }
FNR == 1 { next }
{
    p = cell_of("ranks")
    if (cell_of("commit") != "") note("commit", cell_of("commit"))
    if (cell_of("machine") != "") note("machine", cell_of("machine"))
}
cell_of("with") == ENVIRON["AUDIT"] { next }
{
    name = cell_of("exchange") subsep cell_of("with")
    key = p subsep cell_of("optimiser") subsep name subsep cell_of("density")
    state = cell_of("state"); seed = cell_of("seed")
    note("p", p); note("optimiser", cell_of("optimiser")); note("name", name); note("density", cell_of("density")); note("seed", seed)
    if (state == "diverged") { diverged[key]++; step = cell_of("step"); if (!(key in at) || step + 0 < at[key]) at[key] = step + 0 }
    else if (state == "done" && cell_of("valid_loss") != "") {
        loss[key, seed] = cell_of("valid_loss"); runs[key]++
        bytes[key] += cell_of("bytes_sent_per_rank"); sampled[key] += cell_of("valid_loss_sampled")
        if (!(key in least) || loss[key, seed] + 0 < least[key]) least[key] = loss[key, seed] + 0
        if (!(key in most) || loss[key, seed] + 0 > most[key]) most[key] = loss[key, seed] + 0
        sum[key] += loss[key, seed]
    } else if (state != "done") undone[key]++
}

function number(x) { return sprintf(x < 100 ? "%.4f" : "%.3g", x) }
function middle(key) { return sum[key] / runs[key] }
# apart(A, B): how far A's loss is above B's; "" where they have no seed in common
function apart(a, b,   i, n, total) {
    if (runs[b] && middle(b) >= log(vocabulary)) return ""
    for (i = 1; i <= count["seed"]; i++)
        if ((a, of["seed", i]) in loss && (b, of["seed", i]) in loss) { total += loss[a, of["seed", i]] - loss[b, of["seed", i]]; n++ }
    return n ? total / n : ""
}
function part(name, i,   text) { split(name, text, subsep); return text[i] }
function dense_of(i, j) { return of["p", i] subsep of["optimiser", j] subsep "dense" subsep subsep }
function shown(x) { return x == "" ? " " : sprintf("%+.4f", x) }
function span(key) { return runs[key] > 1 ? " (" number(least[key]) " to " number(most[key]) ")" : "" }
function failure(key) {
    if (!diverged[key]) return ""
    return diverged[key] + runs[key] > 1 ? sprintf("%d of %d diverged, the first after step %d", diverged[key], diverged[key] + runs[key] + undone[key], at[key]) : "diverged after step " at[key]
}
function result(key,   text) {
    text = runs[key] ? number(middle(key)) span(key) : ""
    if (diverged[key]) text = text (text == "" ? "" : "; ") failure(key)
    if (undone[key]) text = text (text == "" ? "" : "; ") undone[key] " not done"
    return text
}
function any(key) { return runs[key] || diverged[key] || undone[key] }

# For each row of the tables, in their order: row(P, OPTIMISER, NAME, DENSITY), numbers in their lists.
function rows(helped,   i, j, k, l, name) {
    for (i = 1; i <= count["p"]; i++) for (j = 1; j <= count["optimiser"]; j++) for (k = 1; k <= count["name"]; k++) for (l = 1; l <= count["density"]; l++) {
        name = of["name", k]
        if (helped != "both" && (part(name, 2) != "") != helped) continue
        key = of["p", i] subsep of["optimiser", j] subsep name subsep of["density", l]
        if (any(key)) row(i, j, name, of["density", l])
    }
}
function row(i, j, name, density,   dense, plain, sent) {
    dense = part(name, 1) == "dense" ? "" : apart(key, dense_of(i, j))
    sent = runs[key] ? bytes[key] / runs[key] / 1e6 : 0
    sent = !runs[key] ? " " : sprintf(sent < 1000 ? "%.4g" : "%.0f", sent)
    if (what == "csv") {
        printf "%s,%s,%s,%s,%s,%d,%d,%d,%s,%s,%s,%s,%s,%s\n", of["p", i], of["optimiser", j], part(name, 1), part(name, 2), density, runs[key], diverged[key], undone[key],
            (runs[key] ? middle(key) : ""), least[key], most[key], (runs[key] ? sampled[key] / runs[key] : ""), dense, (runs[key] ? bytes[key] / runs[key] : "")
    } else if (what == "table") {
        printf "| %s | %s | %s | %s | %d | %s | %s | %s |\n", of["p", i], of["optimiser", j], part(name, 1), (density == "" ? " " : density), runs[key], result(key), shown(dense), sent
    } else {
        plain = of["p", i] subsep of["optimiser", j] subsep part(name, 1) subsep subsep density
        printf "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", of["p", i], of["optimiser", j], part(name, 1), density, part(name, 2), result(key), shown(apart(key, plain)), shown(dense), sent
    }
}

# -- the verdict -------------------------------------------------------------------------------------------------------------
function join(list, text, between) { return list == "" ? text : list between text }
function named(name) { return "`" part(name, 1) "`" }
function single(key) { return runs[key] == 1 ? "*" : "" }
# exchanges(I, J, DENSITY): a sentence about those of this density
function exchanges(i, j, density,   k, n, m, name, key, d, good, bad, lost, guessed, value, by, text, list) {
    for (k = 1; k <= count["name"]; k++) {
        name = of["name", k]
        key = of["p", i] subsep of["optimiser", j] subsep name subsep density
        if (part(name, 2) != "" || part(name, 1) == "dense" || !any(key)) continue
        if (diverged[key]) lost = join(lost, named(name) " (" failure(key) ")", ", ")
        if (runs[key] && middle(key) >= log(vocabulary)) { guessed = join(guessed, named(name), ", "); continue }
        if ((d = apart(key, dense_of(i, j))) == "") continue
        for (m = ++n; m > 1 && value[m - 1] > d; m--) { value[m] = value[m - 1]; by[m] = by[m - 1] }
        value[m] = d; by[m] = named(name) single(key) sprintf(" %+.4f", d)
    }
    for (k = 1; k <= n; k++) if (value[k] <= near) good = join(good, by[k], ", "); else bad = join(bad, by[k], ", ")
    text = density == "" ? "without a density" : "at density " density
    list = n ? "as good as dense " (good == "" ? "none" : good) (bad == "" ? "" : "; behind it " bad) : ""
    if (guessed != "") list = join(list, "no better than guessing " guessed, "; ")
    if (lost != "") list = join(list, "diverged " lost, "; ")
    return list == "" ? "" : text ": " list
}
# cheapest(I, J): what sends least of all that is as good as dense
function cheapest(i, j,   k, l, key, d, best, dense, text) {
    dense = dense_of(i, j)
    for (k = 1; k <= count["name"]; k++) for (l = 1; l <= count["density"]; l++) {
        key = of["p", i] subsep of["optimiser", j] subsep of["name", k] subsep of["density", l]
        if (key == dense || (d = apart(key, dense)) == "" || d > near || diverged[key]) continue
        if (best != "" && bytes[key] / runs[key] >= bytes[best] / runs[best]) continue
        best = key
        text = named(of["name", k]) (part(of["name", k], 2) == "" ? "" : " with `" part(of["name", k], 2) "`") (of["density", l] == "" ? "" : " at density " of["density", l])
    }
    if (best != "") printf "    - least traffic that is as good: %s, %.3g%% of dense\047s bytes\n", text, 100 * bytes[best] / runs[best] / (bytes[dense] / runs[dense])
}
function verdicts(   i, j, l, key, text) {
    for (i = 1; i <= count["p"]; i++) for (j = 1; j <= count["optimiser"]; j++) {
        key = dense_of(i, j)
        printf "- P = %s, %s, dense %s:\n", of["p", i], of["optimiser", j], !any(key) ? "not done, so that nothing is compared with it" : result(key) (runs[key] && middle(key) >= log(vocabulary) ? ", no better than guessing, so that nothing is compared with it" : "")
        cheapest(i, j)
        for (l = 1; l <= count["density"]; l++) if ((text = exchanges(i, j, of["density", l])) != "") printf "    - %s\n", text
    }
    for (i = 1; i <= count["p"]; i++) for (j = 1; j <= count["optimiser"]; j++) for (l = 1; l <= count["name"]; l++)
        if (part(of["name", l], 2) != "" && !seen[i, j, part(of["name", l], 2)]++) help(i, j, part(of["name", l], 2))
}
# help(I, J, WITH): a sentence about what this does for the exchanges
function help(i, j, with,   k, l, name, key, plain, d, n, better, total, low, high, good, lost) {
    for (k = 1; k <= count["name"]; k++) for (l = 1; l <= count["density"]; l++) {
        name = of["name", k]
        key = of["p", i] subsep of["optimiser", j] subsep name subsep of["density", l]
        plain = of["p", i] subsep of["optimiser", j] subsep part(name, 1) subsep subsep of["density", l]
        if (part(name, 2) != with || !any(key)) continue
        if (diverged[key]) lost = join(lost, named(name) " at " of["density", l], ", ")
        if ((d = apart(key, dense_of(i, j))) != "" && d <= near) good = join(good, named(name) " at " of["density", l], ", ")
        if ((d = apart(key, plain)) == "") continue
        n++; total += d
        if (d < -near) better++
        if (n == 1 || d < low) low = d
        if (n == 1 || d > high) high = d
    }
    if (!n && lost == "") return
    printf "- P = %s, %s, `%s`: ", of["p", i], of["optimiser", j], with
    if (n) printf "lowers the loss by more than %g in %d of %d (%+.4f%s)", near, better, n, total / n, (n > 1 ? sprintf(" in the mean, from %+.4f to %+.4f", low, high) : "")
    if (n) printf "; as good as dense then: %s", (good == "" ? "none" : good)
    print (lost == "" ? "" : (n ? "; " : "") "diverged: " lost)
}

# -- the figure: of the first P and the first optimiser, bytes that a rank sent [MB] and loss ------------------------------------
function figure(   k, l, name, key, points) {
    for (k = 1; k <= count["name"]; k++) {
        name = of["name", k]
        if (part(name, 2) != "") continue
        points = ""
        for (l = 1; l <= count["density"]; l++) {
            key = of["p", 1] subsep of["optimiser", 1] subsep name subsep of["density", l]
            if (runs[key] && middle(key) < log(vocabulary)) points = points sprintf("%.6g %.6g\n", bytes[key] / runs[key] / 1e6, middle(key))
        }
        if (points != "") printf "\"%s\"\n%s\n\n", part(name, 1), points
    }
}
function write_list(name, between,   i) { for (i = 1; i <= count[name]; i++) printf "%s%s", of[name, i], i < count[name] ? between : "\n" }
END {
    if (what == "table") rows(0)
    if (what == "helps") rows(1)
    if (what == "csv") {
        print "ranks,optimiser,exchange,with,density,runs,diverged,not_done,valid_loss,valid_loss_least,valid_loss_most,valid_loss_sampled,over_dense,bytes_sent_per_rank"
        rows("both")
    }
    if (what == "verdict") verdicts()
    if (what == "figure") figure()
    if (what == "commits") write_list("commit", ", ")
    if (what == "machines") write_list("machine", "; or ")
    if (what == "ranks") write_list("p", " ")
    if (what == "first") print of["p", 1], of["optimiser", 1]
}
