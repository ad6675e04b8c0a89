# stats.awk: of the numbers x[1] ... x[n], which are sorted where it says so.

# Sorts them; returns their median.
function median(x, n,   i, j, value) {
    for (i = 2; i <= n; i++) {
        value = x[i]
        for (j = i - 1; j > 0 && x[j] > value; j--) x[j + 1] = x[j]
        x[j + 1] = value
    }
    return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
}
function mean(x, n,   i, sum) {
    for (i = 1; i <= n; i++) sum += x[i]
    return n ? sum / n : 0
}
# Standard deviation (n - 1); 0 of a single number.
function deviation(x, n,   i, middle, squares) {
    middle = mean(x, n)
    for (i = 1; i <= n; i++) squares += (x[i] - middle) ^ 2
    return n > 1 ? sqrt(squares / (n - 1)) : 0
}
