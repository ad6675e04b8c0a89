# html.awk: a page of Markdown as one HTML file that needs nothing else: pictures are in it. Knows what the report uses:
# headings, paragraphs, lists of two levels, tables, blocks of code, **bold**, `code`, [links](...), ![pictures](...), and small
# pictures that are links to themselves (<a href="..."><img src="..." width="..." alt="..."></a> on a line), which grow when
# they are clicked.
#     awk -v base=results -v title=... -f html.awk results/REPORT.md       (base: where the pictures' paths begin)

function escaped(text) {
    gsub(/&/, "\\&amp;", text)
    gsub(/</, "\\&lt;", text)
    gsub(/>/, "\\&gt;", text)
    gsub(/"/, "\\&quot;", text)
    return text
}
# A picture of the file at this path, or the text where there is none.
function picture(path, text,   command, data, line) {
    if (path !~ /^[A-Za-z0-9_.\/-]+$/) return escaped(text)
    command = "base64 <'" (path ~ /^\// ? path : base "/" path) "' 2>/dev/null | tr -d '\\n'"
    while ((command | getline line) > 0) data = data line
    close(command)
    if (data == "") return escaped(text)
    return "<img src=\"data:image/png;base64," data "\" alt=\"" escaped(text) "\">"
}
function thumbnail(line,   path, text) {
    path = line
    sub(/^<a href="/, "", path)
    sub(/".*/, "", path)
    text = line
    sub(/.* alt="/, "", text)
    sub(/".*/, "", text)
    line = picture(path, text)
    return line ~ /^<img/ ? "<label class=\"small\"><input type=\"checkbox\">" line "</label>" : "<p>" line "</p>"
}
function link(address, text) {
    if (address !~ /^(#|https?:\/\/)/) return "<code>" escaped(address) "</code>" # a file beside the page, which stands alone
    return "<a href=\"" escaped(address) "\">" inline(text) "</a>"
}
# The marks inside a line: the earliest one first, then the rest.
function inline(text,   done, at, length_of, mark, c, part, bar) {
    done = ""
    while (match(text, /`[^`]+`|\*\*[^*]+\*\*|!?\[[^]]*\]\([^)]*\)|\\[\\|*_`<>]/)) {
        at = RSTART
        length_of = RLENGTH
        mark = substr(text, at, length_of)
        done = done escaped(substr(text, 1, at - 1))
        text = substr(text, at + length_of)
        c = substr(mark, 1, 1)
        if (c == "`") done = done "<code>" escaped(substr(mark, 2, length_of - 2)) "</code>"
        else if (c == "*") done = done "<strong>" inline(substr(mark, 3, length_of - 4)) "</strong>"
        else if (c == "\\") done = done escaped(substr(mark, 2))
        else {
            bar = index(mark, "](")
            part = substr(mark, bar + 2, length_of - bar - 2)
            if (c == "!") done = done picture(part, substr(mark, 3, bar - 3))
            else done = done link(part, substr(mark, 2, bar - 2))
        }
    }
    return done escaped(text)
}
# Ends whatever is open, but what is named.
function close_all(but) {
    if (paragraph != "" && but != "paragraph") {
        print "<p>" inline(paragraph) "</p>"
        paragraph = ""
    }
    if (item != "" && but != "item") {
        print (inner ? "<li class=\"inner\">" : "<li>") inline(item) "</li>"
        item = ""
        inner = 0
    }
    if (list && but != "item" && but != "list") {
        print "</ul>"
        list = 0
    }
    if (table && but != "table") {
        print "</tbody></table></div>"
        table = 0
    }
}
function table_line(line,   cell, count, i, class, tag) {
    sub(/^\|/, "", line)
    sub(/\|[ \t]*$/, "", line)
    gsub(/\\\|/, "\001", line)
    count = split(line, cell, "|")
    if (table == 1 && line ~ /^[ :|-]+$/) { # the rule below the head
        table = 2
        return
    }
    tag = table ? "td" : "th"
    if (!table) {
        print "<div class=\"wide\"><table><thead>"
        table = 1
    }
    printf "<tr>"
    for (i = 1; i <= count; i++) {
        gsub(/^[ \t]+|[ \t]+$/, "", cell[i])
        gsub(/\001/, "|", cell[i])
        class = ""
        if (tag == "td" && cell[i] ~ /^(yes|\*\*no\*\*|n\/a|real|emulated|simulated|model|\*\*reproduced\*\*|\*\*not\*\*|\*\*so far: not\*\*|direction( holds)?|so far: .*|not attempted.*)$/) {
            class = cell[i]
            if (class ~ /so far|not attempted/) class = "open"
            sub(/^direction.*/, "direction", class)
            gsub(/[^a-z]/, "", class)
            class = " class=\"" class "\""
        } else if (tag == "td" && cell[i] ~ /^[-+0-9.][-+0-9.e]*%?$/) {
            class = " class=\"number\""
        }
        printf "<%s%s>%s</%s>", tag, class, inline(cell[i]), tag
    }
    print "</tr>" (tag == "th" ? "</thead><tbody>" : "")
}
function heading(line,   level, text, id) {
    match(line, /^#+/)
    level = RLENGTH > 6 ? 6 : RLENGTH
    text = substr(line, RLENGTH + 1)
    gsub(/^[ \t]+|[ \t]+$/, "", text)
    id = tolower(text)
    gsub(/ /, "-", id)
    gsub(/[^a-z0-9_-]/, "", id)
    if (id == "" || seen[id]++) id = id "-" ++repeated
    printf "<h%d id=\"%s\">%s</h%d>\n", level, id, inline(text), level
}

BEGIN {
    print "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"
    print "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" escaped(title) "</title>\n<style>"
    while ((getline line < style) > 0) print line
    print "</style>\n</head>\n<body>\n<main>"
}
/^```/ {
    close_all("")
    print code ? "</code></pre>" : "<pre><code>"
    code = !code
    next
}
code {
    print escaped($0)
    next
}
/^[ \t]*$/ {
    close_all("")
    next
}
/^#+ / {
    close_all("")
    heading($0)
    next
}
/^<a href="[^"]*"><img src="/ {
    close_all("")
    print thumbnail($0)
    next
}
/^\|/ {
    close_all("table")
    table_line($0)
    next
}
/^[-*] / {
    close_all("list")
    if (!list) print "<ul>"
    list = 1
    item = substr($0, 3)
    next
}
/^    - / && list {
    close_all("list")
    item = substr($0, 7)
    inner = 1
    next
}
/^  / && item != "" {
    close_all("item")
    item = item " " substr($0, 3)
    next
}
{
    close_all("paragraph")
    paragraph = paragraph == "" ? $0 : paragraph " " $0
}
END {
    close_all("")
    print "</main>\n</body>\n</html>"
}
