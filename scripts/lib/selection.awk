# selection.awk: of selectors and their thresholds in the rows of steps; for other programs: awk "$(cat scripts/lib/selection.awk)"'...'

# How far x is from what it should be, as a part of that.
function off(x, exact) { return x > exact ? x / exact - 1 : 1 - x / exact }
# evaluated_local, as {"due":2,"many":1}: the share of the ranks on which a threshold was found
function found(text, ranks,   reason, count, i, sum) {
    count = split(text, reason, /[:,}]/) # how many ranks stands after each
    for (i = 2; i <= count; i += 2) sum += reason[i]
    return sum / ranks
}
