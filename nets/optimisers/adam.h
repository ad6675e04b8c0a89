/* adam.h: the numbers of a step of Adam, for its rows on all devices. */
#ifndef ST_NETS_ADAM_H
#define ST_NETS_ADAM_H

#ifdef __cplusplus
extern "C" {
#endif

struct optimiser;

#define ADAM_SUMMARY                                                                                                   \
    "Adam (Kingma and Ba 2015): mean and mean square of g + wd w, corrected; w = w - lr m / (sqrt(v) + eps)"

/* g' = g + wd w;  m = beta1 m + rest1 g';  v = beta2 v + (rest2 g') g';  w = w - rate (m / (sqrt(v) + epsilon)):
 * in this order, each operation rounded by itself. */
struct adam_rates {
    float wd, beta1, rest1, beta2, rest2, rate, epsilon;
};

/* Of step o->steps + 1 (see adam.c). Dies of a setup without 0 <= beta < 1 and epsilon > 0, as floats. */
struct adam_rates adam_rates_of(const struct optimiser *o, double lr);

#ifdef __cplusplus
}
#endif

#endif
