/* adam.c: Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015, Algorithm 1): running means of
 * the gradient and of its square, both corrected for having begun at 0. Weight decay is added to the gradient, as
 * torch.optim.Adam has it (the L2 penalty, not the decoupled decay of AdamW). The state: [2][n], m and v.
 *
 * Step t of the paper (adam_rates.c has what the formula in adam.h makes of it):
 *
 *     m = beta1 m + (1 - beta1) g          M = m / (1 - beta1^t)
 *     v = beta2 v + (1 - beta2) g^2        V = v / (1 - beta2^t)         w = w - lr M / (sqrt(V) + eps)
 *
 * What decays ends as 0, not as a subnormal (base/subnormal.h).
 *
 * With --freeze-variance-after T, v and V stay what they are after step T, as in 1-bit Adam (Tang et al., "1-bit Adam:
 * communication efficient large-scale training with Adam's convergence speed", ICML 2021); beta1 and w go on.
 *
 * No function of the mathematical library is called but the square root, whose last bit is right everywhere: all ranks
 * must make the same steps, also on machines that are not alike. */
#include "nets/optimisers/adam.h"

#include <math.h>

#include "base/simd.h"
#include "base/subnormal.h"
#include "nets/cpu/cpu_update.h"

/* adam.h has the formula. A v that is infinite would leave w where it is for ever, so it is looked at, too. */
SIMD_CLONES uint32_t adam_chunk(float *restrict w, float *const *state, const float *restrict gradient, size_t n,
                                const void *rates) {
    const struct adam_rates r = *(const struct adam_rates *)rates;
    float *restrict m = state[0], *restrict v = state[1];
    uint32_t any = 0;
    for (size_t i = 0; i < n; i++) {
        float g = gradient[i] + r.wd * w[i];
        m[i] = flush_subnormal(r.beta1 * m[i] + r.rest1 * g);
        v[i] = flush_subnormal(r.beta2 * v[i] + r.rest2 * g * g);
        w[i] = w[i] - (r.shrink * w[i] + r.rate * (m[i] / (sqrtf(v[i]) + r.epsilon)));
        any |= update_bad(w[i]) | update_bad(v[i]);
    }
    return any;
}

static size_t step(struct optimiser *o, float *param, const float *grad, double lr) {
    const struct adam_rates r = adam_rates_of(o, lr);
    return update_in_chunks(o, param, grad, adam_chunk, &r);
}

#define BETA_MAX 0.9999999 /* as a float still below 1 */
#define AT(field) OPTION_AT(struct optimiser_setup, field)
const struct option_row adam_options[ADAM_OPTIONS] = {
    {"beta1", "B", OPTION_REAL, "0.9", "adam, adamw: of the mean of gradients", AT(beta1), .max = BETA_MAX},
    {"beta2", "B", OPTION_REAL, NULL,
     "adam, adamw: of the mean of their squares; 0.999 with a model that has another optimiser", AT(beta2),
     .max = BETA_MAX},
    {"epsilon", "E", OPTION_REAL, "1e-8", "adam, adamw: added to the root of that mean", AT(epsilon), .min = 1e-30,
     .max = 1},
    {"freeze-variance-after", "N", OPTION_SIZE, "0",
     "adam, adamw: after N steps that mean stays what it is, as in 1-bit Adam, with --algo onebit --dense-steps N (0: "
     "never)",
     AT(variance_steps), .max = 1e15},
};

const struct optimiser_ops optimiser_adam = {
    .name = "adam",
    .summary = ADAM_SUMMARY,
    .moment = ADAM_MOMENTS,
    .step = step,
    .options = OPTION_PART(adam_options),
    .lr = 0.001,
};
