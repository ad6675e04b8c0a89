/* normal.h: quantiles of the normal distribution. */
#ifndef ST_TOPK_NORMAL_H
#define ST_TOPK_NORMAL_H

/* z such that a standard normal variable exceeds z with probability q, 0 < q < 1: the inverse of the normal
 * distribution function at 1 - q, without the loss of digits of that difference. Relative error about 1e-15. */
double normal_upper_quantile(double q);

#endif
