# audits.awk: how Ok-Topk's thresholds and sums stand to the exact ones in the runs of transformer.sh's part audits: rows of
# audits.csv, deviations in percent, from lines of steps with tabs between:
#
#     P  OPTIMISER  EXCHANGE  DENSITY  STEPS  step  k  local_nnz_mean  global_nnz  threshold_mean  threshold_exact_mean  threshold_global
#     threshold_global_exact  xi  evaluated_local  evaluated_global            (STEPS: of the run; of a value that is not there nothing)
#
# Behind scripts/lib/selection.awk. Deviations are means of |x / exact - 1|, over all steps (counts, exact: k) or over those of --audit (thresholds); xi is a mean over its
# steps in the first tenth, in the third and in the last quarter of the run, and the largest of all.
BEGIN { FS = "\t" }
function mean(name) { return n[name] ? sprintf("%.3g", sum[name] / n[name]) : "" }
function percent(name) { return n[name] ? sprintf("%.3g", 100 * sum[name] / n[name]) : "" }
function add(name, x) { sum[name] += x; n[name]++ }
function flush() {
    if (cell != "")
        printf "%s,%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", cell, mean("begin"), mean("third"), mean("last"), sprintf("%.3g", most), percent("threshold"),
            percent("global threshold"), percent("local"), percent("global"), percent("found"), percent("found globally")
    split("", sum)
    split("", n)
    most = 0
}
{
    key = $1 "," $2 "," $3 "," $4
    if (key != cell) flush()
    cell = key
    add("local", off($8, $7))
    add("global", off($9, $7))
    add("found", found($15, $1))
    add("found globally", $16 != "")
    if ($11 != "") add("threshold", off($10, $11))
    if ($13 != "") add("global threshold", off($12, $13))
    if ($14 == "") next
    if ($6 <= 0.1 * $5) add("begin", $14)
    if ($6 > 0.5 * $5 && $6 <= 0.75 * $5) add("third", $14)
    if ($6 > 0.75 * $5) add("last", $14)
    if ($14 + 0 > most) most = $14 + 0
}
END { flush() }
