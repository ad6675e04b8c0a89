# merge.awk: the runs of one curve as one table:
#
#     awk -v curve=I -v curves=N [-v wide=1] [-v bytes_from=B -v bytes_to=B] -f stats.awk -f merge.awk RUN-1.loss RUN-2.loss ...
#
# In: the tables .loss or .score of read.awk: position (step, epoch), bytes, seconds, ..., value in the last column. Where all runs
# have a row of the same position it makes one row: position, median of the bytes, of the seconds, median, least and greatest
# value, and two columns for marks: the median again in a few rows, evenly spaced over the positions and over the logarithm of
# the bytes, and for each curve somewhere else; "-" in all others. wide=1: a mark in every row, as long as they are few.
# At most 2000 rows are printed, evenly chosen, the last one always.
FNR == 1 { file++ }
{
    if (file == 1) { position[++n] = $1; row[$1] = n }
    else if (!($1 in row)) next
    i = row[$1]
    have[i]++
    bytes[i, file] = $2; seconds[i, file] = $3; value[i, file] = $NF
    if (file == 1) raw[i] = $(NF - 1)
}
# Of the i-th row, over the files; least and greatest are left in `low` and `high`.
function over_files(of, i,   f, x, middle) {
    for (f = 1; f <= file; f++) x[f] = of[i, f]
    middle = median(x, file)
    low = x[1]; high = x[file]
    return middle
}
# A mark where the share of the way, in `many` parts and shifted by the curve's own part, comes into a new part.
function due(share, was,   many) {
    many = 8
    return int(many * share + curve / curves) != int(many * was + curve / curves)
}
END {
    for (i = 1; i <= n; i++) if (have[i] == file) whole[++rows] = i
    every = int(rows / 2000) + 1
    for (r = 1; r <= rows; r++) {
        if (r % every && r != rows) continue
        i = whole[r]
        b = over_files(bytes, i); s = over_files(seconds, i); v = over_files(value, i)
        here = r / rows
        along = b > 0 && bytes_to > bytes_from && bytes_from > 0 ? log(b / bytes_from) / log(bytes_to / bytes_from) : here
        all = wide && rows <= 40
        printf "%.10g %.10g %.10g %.10g %.10g %.10g", position[i], b, s, v, low, high
        printf " %s", (all || due(here, before) ? sprintf("%.10g", v) : "-")
        printf " %s", (all || due(along, along_before) ? sprintf("%.10g", v) : "-")
        print " " (file == 1 && !wide ? raw[i] : "-")
        before = here; along_before = along
    }
}
