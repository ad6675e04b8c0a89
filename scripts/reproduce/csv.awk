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

# A text as a field: quoted where it has to be.
function csv_field(text) {
    gsub(/[\r\n]+/, " ", text)
    if (text !~ /[",]/) return text
    gsub(/"/, "\"\"", text)
    return "\"" text "\""
}
