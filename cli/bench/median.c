/* median.c: see median.h. */
#include "cli/bench/median.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *x, size_t count) {
    if (count == 0) return NAN;
    qsort(x, count, sizeof *x, ascending);
    return (x[(count - 1) / 2] + x[count / 2]) / 2;
}
