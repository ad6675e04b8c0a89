/* adam_rates.c: the numbers of a step of Adam: see adam.c for the paper's. In the plugin, too.
 *
 * Here the corrections go into the rate and into eps (the "eps hat" at the end of the paper's section 2), once a step
 * and in double, so that an element needs one division and one rounding less:
 *
 *     w = w - rate (m / (sqrt(v) + epsilon)),  rate = lr root / (1 - beta1^t),  epsilon = eps root,
 *                                              root = sqrt(1 - beta2^t)
 *
 * With a v that is held after step T (1-bit Adam: Tang et al., ICML 2021) root stays that of T.
 *
 * The betas are rounded to float first and all else is taken from what they then are. Otherwise beta2 v and
 * (1 - beta2) g^2 would be shares that do not add up to 1, and with beta2 = 0.9999 sqrt(V) wrong by 8e-5. */
#include "nets/optimisers/adam.h"

#include <math.h>

#include "nets/optimisers/optimiser.h"
#include "nets/optimisers/power.h"

struct adam_rates adam_rates_of(const struct optimiser *o, double lr) {
    struct adam_rates r = {
        .wd = (float)o->setup.weight_decay, .beta1 = (float)o->setup.beta1, .beta2 = (float)o->setup.beta2};
    const uint64_t next = o->steps + 1, taken = o->setup.variance_steps;
    const bool held = taken > 0 && next > taken; /* v, and with it its correction */
    const double root = sqrt(1 - whole_power(r.beta2, held ? taken : next));
    r.rest1 = (float)(1 - (double)r.beta1);
    r.rest2 = (float)(1 - (double)r.beta2);
    r.rate = (float)(lr * root / (1 - whole_power(r.beta1, o->steps + 1)));
    r.epsilon = (float)(o->setup.epsilon * root);
    if (!(r.beta1 >= 0 && r.beta1 < 1 && r.beta2 >= 0 && r.beta2 < 1 && r.epsilon > 0))
        die("Adam with beta1 = %g, beta2 = %g, epsilon = %g; it wants 0 <= beta < 1 and epsilon > 0", o->setup.beta1,
            o->setup.beta2, o->setup.epsilon);
    if (held) r.beta2 = 1, r.rest2 = 0; /* v = 1 v + 0 g^2, to the bit */
    return r;
}

bool adamw_decays(const struct slice *slice) {
    return slice->dims > 1;
}

struct adamw_rates adamw_rates_of(const struct optimiser *o, double lr) {
    struct adamw_rates r;
    r.of[false] = adam_rates_of(o, lr);
    r.of[false].wd = 0;
    r.of[true] = r.of[false];
    r.of[true].shrink = (float)(lr * o->setup.weight_decay);
    return r;
}
