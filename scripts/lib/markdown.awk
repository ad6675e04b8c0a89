# markdown.awk: text in pages of Markdown.

# Text that is not to be taken for marks.
function plain(text) {
    gsub(/[*_|<>\\]/, "\\\\&", text)
    return text
}
# Text in a table, where something has to stand in every cell.
function cell(text) { return text == "" ? " " : plain(text) }
