# costs.awk: what one algorithm's local work takes, from a table of scripts/measure-costs.sh (docs/simulation.md has its
# columns). Reads the table, prints "n compute select word": entries, and seconds, "-" where none is known or wanted. Exit
# status 1 and one line: what is not in the table, and what is there instead.
#
#     awk -v table=NAME -v root=DIR -v model=vgg16 -v on=cpu -v compute_on=cpu -v algo=gtopk -v selector= -v wire=coo32
#         -v density=0.001 -v per_node=1 -v wanted="compute select word" -f scripts/costs.awk FILE
#     awk -v algo=all ... -f scripts/costs.awk FILE         # the algorithms in it, with commas between them
#
# table: what to call it; root: the top of the tree, from which rows name published tables. selector: empty: that of the
# algorithm. Computing may be unknown ("-"): some models were never run. per_node: hitopk selects in that part of the
# gradient alone.
BEGIN {
    FS = ","
    MODEL = 1; LENGTH = 2; DEVICE = 3; WHAT = 4; ALGORITHM = 5; SELECTOR = 6; WIRE = 7; DENSITY = 8; RANKS = 10; SECONDS = 11
    SOURCE = 13
}
/^# [a-z0-9]* cores: / {
    split($0, word, " ")
    cores[word[2]] = word[4]
}
/^#/ { next }
!head {
    head = 1
    if ($0 == "model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source") next
    head = 0
    exit
}
{
    rows++
    for (i = 1; i <= NF; i++) cell[rows, i] = $i
}

function complain(text) {
    print table text
    failed = 1
    exit 1
}
# Numbers are compared as numbers: 0.01 is 1e-2.
function same(one, other) { return one == other || (one ~ /^[0-9.]/ && other ~ /^[0-9.]/ && one + 0 == other + 0) }
function all_rows(   i) { for (i = 1; i <= rows; i++) left[i] = 1 }
# Of the rows that are left only those stay that have `value` there; none: says which values there are.
function narrow(column, value, name, where,   i, kept, seen, there) {
    for (i = 1; i <= rows; i++) {
        if (!(i in left)) continue
        if (same(cell[i, column], value)) {
            kept++
            continue
        }
        if (cell[i, column] != "" && !(cell[i, column] in seen)) there = there (there == "" ? "" : ", ") cell[i, column]
        seen[cell[i, column]] = 1
        delete left[i]
    }
    if (!kept && name != "") complain(" has no " name " " value where "; it has: " (there == "" ? "none" : there))
    return kept
}
function first(   i) {
    for (i = 1; i <= rows; i++)
        if (i in left) return i
}
# Of rows that differ in their ranks: the most that had a core each; where none had, the fewest.
function best(   i, own, other) {
    for (i = 1; i <= rows; i++) {
        if (!(i in left)) continue
        if (cell[i, RANKS] <= cores[on] + 0 && (!own || cell[i, RANKS] + 0 > cell[own, RANKS] + 0)) own = i
        if (!other || cell[i, RANKS] + 0 < cell[other, RANKS] + 0) other = i
    }
    return own ? own : other
}
# A time that stands in a published table: "results/published/FILE.csv model=NAME" names the row.
function published(source,   part, file, line, field, i, at, by, found) {
    split(source, part, " model=")
    file = root "/" part[1]
    while ((getline line < file) > 0) {
        split(line, field, ",")
        for (i in field) {
            if (field[i] == "iteration_s" && !at) at = i
            if (field[i] == "model" && !by) by = i
        }
        if (at && field[by] == part[2]) found = field[at]
    }
    close(file)
    if (found == "") complain(": " part[1] " has no iteration_s of " part[2])
    return found
}
function of_model() {
    all_rows()
    narrow(MODEL, model, "model", "")
}
function compute_time(   row) {
    of_model()
    narrow(DEVICE, compute_on, "device", " for " model)
    if (!narrow(WHAT, "compute", "", "")) return "-"
    row = first()
    if (cell[row, SECONDS] != "") return cell[row, SECONDS]
    return cell[row, SOURCE] ~ /^results\// ? published(cell[row, SOURCE]) : "-"
}
# The row of packing and merging.
function word_row(where) {
    of_model()
    narrow(DEVICE, on, "device", " for " model)
    narrow(WHAT, "word", "row", where)
    narrow(ALGORITHM, algo, "algorithm", where)
    if (cell[first(), WIRE] == "" || wanted !~ /word/) return first()
    narrow(WIRE, wire, "wire format", " of " algo where)
    narrow(DENSITY, density, "density", " of " algo where)
    return best()
}
function select_time(where,   by) {
    of_model()
    narrow(DEVICE, on, "device", " for " model)
    narrow(WHAT, "select", "row", where)
    if (narrow(ALGORITHM, algo, "", "")) by = algo # it selects in a way of its own
    else {
        of_model()
        narrow(DEVICE, on, "", "")
        narrow(WHAT, "select", "", "")
        narrow(ALGORITHM, "", "", "")
        narrow(SELECTOR, selector, "selector", where)
        by = selector
    }
    narrow(DENSITY, density, "density", " of " by where)
    return algo == "hitopk" ? cell[first(), SECONDS] / per_node : cell[first(), SECONDS]
}

END {
    if (failed) exit 1
    if (!head) complain(" is no table of measure-costs.sh: its columns are others")
    if (algo == "all") {
        for (i = 1; i <= rows; i++)
            if (cell[i, WHAT] == "word" && !(cell[i, ALGORITHM] in listed)) {
                listed[cell[i, ALGORITHM]] = 1
                text = text (text == "" ? "" : ",") cell[i, ALGORITHM]
            }
        print text
        exit
    }
    CONVFMT = OFMT = "%.9g"
    where = " for " model " on " on
    of_model()
    n = cell[first(), LENGTH]
    compute = select_cost = word_cost = "-"
    if (wanted ~ /compute/) compute = compute_time()
    if (wanted ~ /select|word/) {
        row = word_row(where)
        charged = cell[row, WIRE] != "" # of a dense sum there is one row, which says that it is not
        if (wanted ~ /word/ && charged) word_cost = cell[row, SECONDS]
        if (selector == "") selector = cell[row, SELECTOR]
        if (wanted ~ /select/ && charged) select_cost = select_time(where)
    }
    print n, compute, select_cost, word_cost
}
