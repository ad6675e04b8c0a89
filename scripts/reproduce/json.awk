# json.awk: a value of the flat JSON object in $0 (a line of `sparsetrain ... --json`, or of a run.jsonl).

# The text of the value of key, without quotes; "" where there is none or it is null. Text, so that no digit is lost: json(key) + 0
# is the number, without which "99" is more than 100.
function json(key,   text) {
    if (!match($0, "\"" key "\":(\"[^\"]*\"|[^,}]*)")) return ""
    text = substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
    if (substr(text, 1, 1) == "\"") return substr(text, 2, length(text) - 2)
    return text == "null" ? "" : text
}
