/* adam.h: the numbers of a step of Adam, for its rows on all devices. */
#ifndef ST_NETS_ADAM_H
#define ST_NETS_ADAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef __cplusplus
#include "base/option.h"
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct optimiser;
struct slice;

#define ADAM_SUMMARY                                                                                                   \
    "Adam (Kingma and Ba 2015): mean and mean square of g + wd w, corrected; w = w - lr m / (sqrt(v) + eps)"
#define ADAMW_SUMMARY                                                                                                  \
    "AdamW (Loshchilov and Hutter 2019): as adam, but the decay is not in the gradient, and only weights of two and "  \
    "more "                                                                                                            \
    "dimensions decay"
#define ADAM_MOMENTS                                                                                                   \
    {                                                                                                                  \
        {.name = "mean"}, {                                                                                            \
            .name = "mean of squares", .is_nonnegative = true                                                          \
        }                                                                                                              \
    }

/* g' = g + wd w;  m = beta1 m + rest1 g';  v = beta2 v + (rest2 g') g';
 * w = w - (shrink w + rate (m / (sqrt(v) + epsilon))): in this order, each operation rounded by itself. */
struct adam_rates {
    float wd, beta1, rest1, beta2, rest2, rate, epsilon, shrink;
};

/* Of step o->steps + 1 of adam (see adam.c). Dies of a setup without 0 <= beta < 1 and epsilon > 0, as floats. */
struct adam_rates adam_rates_of(const struct optimiser *o, double lr);
/* The same of adamw (see adamw.c): of slices that do not decay, and of those that do. */
struct adamw_rates {
    struct adam_rates of[2]; /* [adamw_decays] */
};
struct adamw_rates adamw_rates_of(const struct optimiser *o, double lr);
bool adamw_decays(const struct slice *slice);

#ifndef __cplusplus
/* Of both, in struct optimiser_setup. */
enum { ADAM_OPTIONS = 4 };
extern const struct option_row adam_options[ADAM_OPTIONS];
#endif

/* adam.c: the formula on n values of the host; see update_chunk in cpu_update.h. */
uint32_t adam_chunk(float *w, float *const *state, const float *g, size_t n, const void *rates);

#ifdef __cplusplus
}
#endif

#endif
