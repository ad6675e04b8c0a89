/* sgd.c: stochastic gradient descent with momentum and weight decay, as PyTorch's torch.optim.SGD computes it
 * (Sutskever et al., ICML 2013, without dampening): the learning rate is outside the velocity, so a change of the
 * rate takes effect at once. */
#include <stdint.h>
#include <string.h>

#include "base/simd.h"
#include "nets/optimiser.h"

enum { CHUNK = 4096 }; /* floats between two looks at whether a value went bad: stays in the first-level cache */

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* NaN and infinities have all exponent bits set. */
static uint32_t bad(float value) {
    return (bits_of(value) & 0x7f800000u) == 0x7f800000u;
}

/* v = mu v + (g + wd w);  w = w - lr v.  Not 0 if some new w is not finite. */
SIMD_CLONES static uint32_t step_chunk(float *restrict w, float *restrict v, const float *restrict g, size_t n,
                                       float mu, float wd, float lr) {
    uint32_t any = 0;
    for (size_t i = 0; i < n; i++) {
        v[i] = mu * v[i] + (g[i] + wd * w[i]);
        w[i] = w[i] - lr * v[i];
        any |= bad(w[i]);
    }
    return any;
}

static size_t step(struct optimiser *o, float *param, const float *grad, double lr) {
    size_t first = o->n;
    for (size_t at = 0; at < o->n; at += CHUNK) {
        size_t n = o->n - at < CHUNK ? o->n - at : CHUNK;
        uint32_t any = step_chunk(param + at, o->state + at, grad + at, n, (float)o->setup.momentum,
                                  (float)o->setup.weight_decay, (float)lr);
        for (size_t i = at; any && first == o->n && i < at + n; i++)
            if (bad(param[i])) first = i;
    }
    return first;
}

const struct optimiser_ops optimiser_sgd = {
    .name = "sgd",
    .summary = "SGD with momentum and weight decay: v = mu v + (g + wd w), w = w - lr v",
    .states = 1,
    .step = step,
};
