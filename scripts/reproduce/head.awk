# head.awk: what the head of an ID's script says: `-v field=NAME`: the text of "# NAME: ...", with its lines that go on;
# `shows`: what stands in the second line behind the ID.
/^#!/ { next }
!/^#/ { exit }
{ text = substr($0, 3) }
NR == 2 && field == "shows" {
    sub(/^[^:]*: */, "", text)
    line = text
    exit
}
index(text, field ": ") == 1 {
    sub(/^[a-z]*: */, "", text)
    line = text
    inside = 1
    next
}
inside && text ~ /^ / {
    sub(/^ */, "", text)
    line = line " " text
    next
}
{ inside = 0 }
END { if (line != "") print line }
