/* cpu_attention.c: see cpu_attention.h. Sums are taken in LANES pieces, which are then added up in their order: the
 * same bits on every machine. */
#include "nets/cpu/cpu_attention.h"

#include <math.h>

#include "base/simd.h"
#include "nets/cpu/cpu_exponential.h"

enum { LANES = 16 };

/* The largest of s; a NaN is not seen here, but in the sum. */
static inline __attribute__((always_inline)) float largest(const float *s, size_t n) {
    float most[LANES];
    size_t j = 0;
    for (size_t l = 0; l < LANES; l++) most[l] = s[0];
    for (; j + LANES <= n; j += LANES)
        for (size_t l = 0; l < LANES; l++) most[l] = s[j + l] > most[l] ? s[j + l] : most[l];
    for (; j < n; j++) most[0] = s[j] > most[0] ? s[j] : most[0];
    for (size_t l = 1; l < LANES; l++) most[0] = most[l] > most[0] ? most[l] : most[0];
    return most[0];
}

static inline __attribute__((always_inline)) float sum_of(const float *s, size_t n) {
    float sum[LANES] = {0}, all = 0;
    size_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (size_t l = 0; l < LANES; l++) sum[l] += s[j + l];
    for (; j < n; j++) all += s[j];
    for (size_t l = 0; l < LANES; l++) all += sum[l];
    return all;
}

static inline __attribute__((always_inline)) void exponentials(float *s, size_t n, float scale, float top) {
    for (size_t j = 0; j < n; j++) s[j] = cpu_exponential(scale * s[j] - top);
}

/* scale > 0: the largest score stays the largest. */
SIMD_CLONES float cpu_attention_softmax(float *s, size_t n, float scale) {
    const float top = scale * largest(s, n);
    exponentials(s, n, scale, top);
    const float sum = sum_of(s, n), part = 1 / sum;
    for (size_t j = 0; j < n; j++) s[j] *= part;
    return top + logf(sum);
}

SIMD_CLONES void cpu_attention_again(float *s, size_t n, float scale, float log_sum) {
    exponentials(s, n, scale, log_sum);
}

SIMD_CLONES void cpu_attention_back(float *dp, const float *p, const float *m, size_t n, float scale, float mean) {
    if (m)
        for (size_t j = 0; j < n; j++) dp[j] = scale * p[j] * (m[j] * dp[j] - mean);
    else
        for (size_t j = 0; j < n; j++) dp[j] = scale * p[j] * (dp[j] - mean);
}

SIMD_CLONES float cpu_attention_dot(const float *a, const float *b, size_t n) {
    float sum[LANES] = {0}, all = 0;
    size_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (size_t l = 0; l < LANES; l++) sum[l] += a[j + l] * b[j + l];
    for (; j < n; j++) all += a[j] * b[j];
    for (size_t l = 0; l < LANES; l++) all += sum[l];
    return all;
}

SIMD_CLONES void cpu_attention_drop(float *p, const float *m, size_t n) {
    for (size_t j = 0; j < n; j++) p[j] *= m[j];
}
