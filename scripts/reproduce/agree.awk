# agree.awk: does a number of ours agree with the paper's? Decided from the row's rule alone, in the same way for every
# ID. paper and ours are the fields of a row of comparison.csv; what a rule needs and the row lacks makes it "n/a".
#
#   rule                    yes, when
#   equal                   the two are the same number, or the same text
#   within X%               |ours - paper| <= X% of |paper|
#   within X                |ours - paper| <= X, in the row's unit
#   within a factor X       paper / X <= ours <= X paper, both positive
#   same order              within a factor of the square root of 10
#   at least, at most       ours >= paper, ours <= paper
#   at least X, at most X   ours >= X, ours <= X (a bound of ours, for what the paper says in words)
#   between A and B         A <= ours <= B (likewise)
#   in range                paper is "A to B", and A <= ours <= B
#   shape: TEXT             a property of a curve, which the ID's script looked at: ours is yes or no
#   none                    nothing to compare: n/a
#   RULE and at least X     both (also: and at most X)
#
# Numbers may differ by rounding: a comparison allows for 1e-9 of the larger of the two.

function is_number(text) { return text ~ /^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$/ }
function size_of(x) { return x < 0 ? -x : x }
function slack(a, b) { return 1e-9 * (size_of(a) > size_of(b) ? size_of(a) : size_of(b)) }
function not_above(a, b) { return a + 0 <= b + 0 + slack(a + 0, b + 0) }
function verdict(good) { return good ? "yes" : "no" }

# "yes", "no", "n/a", or "?" for a rule or a number that nobody can read.
function agrees(rule, paper, ours,   word, words, end, cut, first, second) {
    if (match(rule, /. and at (least|most) [^ ]+$/)) {
        cut = RSTART
        first = agrees(substr(rule, 1, cut), paper, ours)
        second = agrees(substr(rule, cut + 6), paper, ours)
        if (first == "?" || second == "?") return "?"
        if (first == "n/a" || second == "n/a") return "n/a"
        return verdict(first == "yes" && second == "yes")
    }
    if (rule == "none") return "n/a"
    if (ours == "" || ours == "-") return "n/a"
    if (rule ~ /^shape: ./) return ours == "yes" || ours == "no" ? ours : "?"
    if (rule == "equal") {
        if (paper == "") return "n/a"
        if (is_number(paper) && is_number(ours)) return verdict(not_above(ours, paper) && not_above(paper, ours))
        return verdict(ours "" == paper "")
    }
    if (!is_number(ours)) return "?"
    words = split(rule, word, " ")
    if (words == 3 && rule ~ /^at (least|most) / && is_number(word[3]))
        return verdict(word[2] == "least" ? not_above(word[3], ours) : not_above(ours, word[3]))
    if (words == 4 && word[1] == "between" && word[3] == "and" && is_number(word[2]) && is_number(word[4]))
        return verdict(not_above(word[2], ours) && not_above(ours, word[4]))
    if (paper == "" || paper == "-") return known_rule(rule) ? "n/a" : "?"
    if (rule == "in range") {
        if (split(paper, end, " to ") != 2 || !is_number(end[1]) || !is_number(end[2])) return "?"
        return verdict(not_above(end[1], ours) && not_above(ours, end[2]))
    }
    if (!is_number(paper)) return "?"
    if (rule == "at least") return verdict(not_above(paper, ours))
    if (rule == "at most") return verdict(not_above(ours, paper))
    if (rule == "same order") return within_factor(sqrt(10), paper, ours)
    if (words == 4 && rule ~ /^within a factor / && is_number(word[4])) return within_factor(word[4], paper, ours)
    if (words == 2 && word[1] == "within") {
        if (is_number(word[2])) return verdict(not_above(size_of(ours - paper), word[2]))
        if (word[2] ~ /%$/ && is_number(substr(word[2], 1, length(word[2]) - 1)))
            return verdict(not_above(size_of(ours - paper), (word[2] + 0) / 100 * size_of(paper)))
    }
    return "?"
}
function within_factor(factor, paper, ours) {
    if (paper <= 0 || ours <= 0) return "?"
    return verdict(not_above(ours, factor * paper) && not_above(paper, factor * ours))
}
# Is it one of the rules that hold ours against the paper's number?
function known_rule(rule) {
    if (rule ~ /^(in range|at least|at most|same order)$/) return 1
    if (rule ~ /^within a factor [0-9.]+$/ || rule ~ /^within [0-9.]+%?$/) return 1
    return 0
}
