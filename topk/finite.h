/* finite.h: where a vector stops being numbers. */
#ifndef ST_TOPK_FINITE_H
#define ST_TOPK_FINITE_H

#include <stddef.h>

/* The lowest i with v[i] NaN or infinite; n when there is none. v: host, [n]. One read of v. */
size_t first_nonfinite(const float *v, size_t n);

#endif
