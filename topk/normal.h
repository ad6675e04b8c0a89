/* normal.h: quantiles of the normal distribution. */
#ifndef ST_TOPK_NORMAL_H
#define ST_TOPK_NORMAL_H

#include "topk/store.h"

/* z such that a standard normal variable exceeds z with probability q, 0 < q < 1: the inverse of the normal
 * distribution function at 1 - q, without the loss of digits of that difference. Relative error about 1e-15. */
double normal_upper_quantile(double q);

/* mean + z sigma, in units of acc: what |x| exceeds in k of the m->count entries, 1 <= k, if x were normal with these
 * moments and a mean of 0 (Shi et al., arXiv 1911.08772). */
double normal_threshold(const struct moments *m, size_t k);

#endif
