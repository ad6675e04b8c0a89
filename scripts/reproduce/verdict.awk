# verdict.awk: what a comparison.csv says, in words: how many of its comparisons agree, which do not, and what is not among them
# (`agreement` in pages.sh). What rests on a part of the runs agrees no more than so far. `selves`: what self-checks are called, with a %s for "3 self-checks stand".
# The columns `against` and `counted` are not in files that were made before there were any: all rows count, and it says so.

function several(count, one, many) { return count " " (count == 1 ? one : many) }
{ csv_row() }
FNR > 1 {
    old = !("against" in csv_column)
    if (is_part() && !seen[cell_of("run")]++) parts = parts (parts == "" ? "" : "; ") cell_of("run")
    if (is_open()) open = 1
    compared = cell_of("agrees") ~ /^(yes|no)$/
    if (cell_of("against") == "self") self += compared
    else if (compared && (old || cell_of("counted") == "yes")) {
        n[cell_of("agrees")]++
        if (cell_of("agrees") == "no" && ++shown <= 5) which = which (which == "" ? "" : "; ") plain(cell_of("item") ", " cell_of("quantity"))
    } else if (compared) twins++
    else if (is_waiting()) coming++
    else others++
}
END {
    all = n["yes"] + n["no"]
    if (open) parts = parts (parts == "" ? "" : "; ") "not all runs are made"
    so_far = parts == "" ? "" : " so far"
    if (parts != "") parts = " (" parts ")"
    if (!all) text = "Nothing here is compared with the paper" parts
    else if (!n["no"]) text = "**Agreement" so_far ":** " (all == 1 ? "the one comparison agrees" : "all " all " comparisons agree") parts
    else text = "**No full agreement" so_far ":** " n["yes"] + 0 " of " all " comparisons agree" parts ". These do not: " which (shown > 5 ? "; and " shown - 5 " more" : "")
    if (old && all) text = text ". They are not classed: made before self-checks and repeated measurements were told apart"
    if (coming) text = text ". " several(coming, "comparison is", "comparisons are") " to come"
    if (others) text = text ". " several(others, "row is", "rows are") " not compared"
    if (twins) text = text ". " several(twins, "row is", "rows are") " counted with another ID"
    if (self) text = text ". " sprintf(selves, several(self, "self-check stands", "self-checks stand")) " apart"
    print text "."
}
