/* sgd.c: stochastic gradient descent with momentum and weight decay, as PyTorch's torch.optim.SGD computes it
 * (Sutskever et al., ICML 2013, without dampening): the learning rate is outside the velocity, so a change of the
 * rate takes effect at once. The state: [n], v.
 *
 * A velocity that decays ends as 0, not as a subnormal (base/subnormal.h).
 *
 * Where the gradient comes with momentum in it, v is the velocity of the weight decay alone: the two together are what
 * they are without, since all of it is linear. The authors of DGC do the same in their program. */
#include "base/simd.h"
#include "base/subnormal.h"
#include "nets/cpu/cpu_update.h"

struct rates {
    float mu, wd, lr;
};

/* v = mu v + (g + wd w);  w = w - lr v.  A v that is not finite makes w so. */
SIMD_CLONES static uint32_t step_chunk(float *restrict w, float *const *state, const float *restrict g, size_t n,
                                       const void *rates) {
    const struct rates r = *(const struct rates *)rates;
    float *restrict v = state[0];
    uint32_t any = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = flush_subnormal(r.mu * v[i] + (g[i] + r.wd * w[i]));
        w[i] = w[i] - r.lr * v[i];
        any |= update_bad(w[i]);
    }
    return any;
}

/* v = mu v + wd w;  w = w - lr (g + v) */
SIMD_CLONES static uint32_t step_decay(float *restrict w, float *const *state, const float *restrict g, size_t n,
                                       const void *rates) {
    const struct rates r = *(const struct rates *)rates;
    float *restrict v = state[0];
    uint32_t any = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = flush_subnormal(r.mu * v[i] + r.wd * w[i]);
        w[i] = w[i] - r.lr * (g[i] + v[i]);
        any |= update_bad(w[i]);
    }
    return any;
}

static size_t step(struct optimiser *o, float *param, const float *grad, double lr) {
    const struct rates r = {(float)o->setup.momentum, (float)o->setup.weight_decay, (float)lr};
    return update_in_chunks(o, param, grad, o->setup.gradient_has_momentum ? step_decay : step_chunk, &r);
}

static const struct option_row options[] = {
    {"momentum", "MU", OPTION_REAL, NULL, "of SGD", OPTION_AT(struct optimiser_setup, momentum), .max = 0.99999},
};

const struct optimiser_ops optimiser_sgd = {
    .name = "sgd",
    .summary = "SGD with momentum and weight decay: v = mu v + (g + wd w), w = w - lr v",
    .moment = {{.name = "velocity"}},
    .step = step,
    .options = OPTION_PART(options),
};
