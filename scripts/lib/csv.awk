# csv.awk: lines of comma-separated values (RFC 4180, without line breaks inside a field), for awk -f csv.awk -f ...

# Cuts a line into field[1] ... field[n] and returns n.
function csv_split(line, field,   n, c, text, quoted, i) {
    split("", field)
    n = 1
    text = ""
    quoted = 0
    sub(/\r$/, "", line)
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (quoted && c == "\"" && substr(line, i + 1, 1) == "\"") {
            text = text c
            i++
        } else if (c == "\"") {
            quoted = !quoted
        } else if (c == "," && !quoted) {
            field[n++] = text
            text = ""
        } else {
            text = text c
        }
    }
    field[n] = text
    return n
}

# For files with a head: csv_row() takes the line in, cell_of("name") is its field in the column of that name ("" where there is
# none).
function csv_row(   i, n) {
    n = csv_split($0, csv_field_of)
    if (FNR > 1) return
    split("", csv_column)
    for (i = 1; i <= n; i++) csv_column[csv_field_of[i]] = i
}
function cell_of(name) { return name in csv_column ? csv_field_of[csv_column[name]] : "" }

# A text as a field: quoted where it has to be.
function csv_field(text) {
    gsub(/[\r\n]+/, " ", text)
    if (text !~ /[",]/) return text
    gsub(/"/, "\"\"", text)
    return "\"" text "\""
}
