/* median.h: the statistic of all benches: machines are shared and noisy, so no mean of times is shown alone. */
#ifndef ST_CLI_MEDIAN_H
#define ST_CLI_MEDIAN_H

#include <stddef.h>

/* Of x[0..count-1]; the mean of the middle two where count is even, NaN where it is 0. Leaves x in ascending order. */
double median(double *x, size_t count);

#endif
