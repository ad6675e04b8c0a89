/* outer.c: see outer.h. */
#include "nets/optimisers/outer.h"

#include <math.h>

#include "base/simd.h"
#include "base/subnormal.h"

SIMD_CLONES void outer_gradient(const float *before, const float *now, size_t n, float *delta) {
    for (size_t i = 0; i < n; i++) delta[i] = before[i] - now[i];
}

SIMD_CLONES static void step_plain(float eta, const float *restrict g, size_t n, float *restrict w) {
    for (size_t i = 0; i < n; i++) w[i] = w[i] - eta * g[i];
}

SIMD_CLONES static void step_nesterov(float eta, float mu, const float *restrict g, size_t n, float *restrict v,
                                      float *restrict w) {
    for (size_t i = 0; i < n; i++) {
        v[i] = flush_subnormal(mu * v[i] + g[i]);
        w[i] = w[i] - eta * (g[i] + mu * v[i]);
    }
}

size_t outer_step(const struct outer_rates *rates, const float *mean, size_t n, float *velocity, float *param) {
    if (velocity)
        step_nesterov((float)rates->rate, (float)rates->momentum, mean, n, velocity, param);
    else
        step_plain((float)rates->rate, mean, n, param);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(param[i])) return i;
    return n;
}
