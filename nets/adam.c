/* adam.c: Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, Algorithm 1): running means of
 * the gradient and of its square, both corrected for having begun at 0. Weight decay is added to the gradient, as
 * torch.optim.Adam has it (the L2 penalty, not the decoupled decay of AdamW). The state: [2][n], m and v.
 *
 * Step t of the paper:
 *
 *     m = beta1 m + (1 - beta1) g          M = m / (1 - beta1^t)
 *     v = beta2 v + (1 - beta2) g^2        V = v / (1 - beta2^t)         w = w - lr M / (sqrt(V) + eps)
 *
 * Here the corrections go into the rate and into eps (the "eps hat" at the end of the paper's section 2), once a step
 * and in double, so that an element needs one division and one rounding less:
 *
 *     w = w - rate (m / (sqrt(v) + epsilon)),  rate = lr root / (1 - beta1^t),  epsilon = eps root,
 *                                              root = sqrt(1 - beta2^t)
 *
 * The betas are rounded to float first and all else is taken from what they then are. Otherwise beta2 v and
 * (1 - beta2) g^2 would be shares that do not add up to 1, and with beta2 = 0.9999 sqrt(V) wrong by 8e-5.
 *
 * No function of the mathematical library is called but the square root, whose last bit is right everywhere: all ranks
 * must make the same steps, also on machines that are not alike. */
#include "nets/adam.h"

#include <math.h>

#include "base/simd.h"
#include "nets/cpu_update.h"
#include "nets/power.h"

struct adam_rates adam_rates_of(const struct optimiser *o, double lr) {
    struct adam_rates r = {
        .wd = (float)o->setup.weight_decay, .beta1 = (float)o->setup.beta1, .beta2 = (float)o->setup.beta2};
    const double root = sqrt(1 - whole_power(r.beta2, o->steps + 1));
    r.rest1 = (float)(1 - (double)r.beta1);
    r.rest2 = (float)(1 - (double)r.beta2);
    r.rate = (float)(lr * root / (1 - whole_power(r.beta1, o->steps + 1)));
    r.epsilon = (float)(o->setup.epsilon * root);
    if (!(r.beta1 >= 0 && r.beta1 < 1 && r.beta2 >= 0 && r.beta2 < 1 && r.epsilon > 0))
        die("Adam with beta1 = %g, beta2 = %g, epsilon = %g; it wants 0 <= beta < 1 and epsilon > 0", o->setup.beta1,
            o->setup.beta2, o->setup.epsilon);
    return r;
}

/* adam.h has the formula. A v that is infinite would leave w where it is for ever, so it is looked at, too. */
SIMD_CLONES static uint32_t step_chunk(float *restrict w, float *const *state, const float *restrict gradient, size_t n,
                                       const void *rates) {
    const struct adam_rates r = *(const struct adam_rates *)rates;
    float *restrict m = state[0], *restrict v = state[1];
    uint32_t any = 0;
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i] + r.wd * w[i];
        m[i] = r.beta1 * m[i] + r.rest1 * g;
        v[i] = r.beta2 * v[i] + r.rest2 * g * g;
        w[i] = w[i] - r.rate * (m[i] / (sqrtf(v[i]) + r.epsilon));
        any |= update_bad(w[i]) | update_bad(v[i]);
    }
    return any;
}

static size_t step(struct optimiser *o, float *param, const float *grad, double lr) {
    const struct adam_rates r = adam_rates_of(o, lr);
    return update_in_chunks(o, param, grad, step_chunk, &r);
}

const struct optimiser_ops optimiser_adam = {
    .name = "adam",
    .summary = ADAM_SUMMARY,
    .states = 2,
    .squares = true,
    .step = step,
};
