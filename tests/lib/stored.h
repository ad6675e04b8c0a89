/* stored.h: what a device stores of a value that decays (base/subnormal.h), by the classes of math.h. */
#ifndef ST_TESTS_STORED_H
#define ST_TESTS_STORED_H

#include <math.h>

static inline float stored(float value) {
    return fpclassify(value) == FP_SUBNORMAL ? copysignf(0, value) : value;
}

#endif
