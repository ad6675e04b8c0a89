/* power.h: whole powers with the same bits on every machine, which pow does not promise: ranks that are not alike must
 * make the same steps. */
#ifndef ST_NETS_POWER_H
#define ST_NETS_POWER_H

#include <stdint.h>

/* base^exponent, by squaring. */
static inline double whole_power(double base, uint64_t exponent) {
    double result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

#endif
