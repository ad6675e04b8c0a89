/* cpu_lstm.c: see cpu_lstm.h. tanh near 0 is that of Moshier's Cephes library (tanhf.c), written without branches, so
 * that loops over it become vectors, which give the same bits on every machine. */
#include "nets/cpu/cpu_lstm.h"

#include "base/simd.h"
#include "nets/cpu/cpu_exponential.h"

static inline __attribute__((always_inline)) float sigmoid(float x) {
    return 1 / (1 + cpu_exponential(-x));
}

static inline __attribute__((always_inline)) float hyperbolic(float x) {
    float size = x < 0 ? -x : x, z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float near = p * z * x + x;
    float far = 1 - 2 / (cpu_exponential(2 * size) + 1);
    far = x < 0 ? -far : far;
    return size < 0.625f ? near : far;
}

SIMD_CLONES static void values(size_t n, float *restrict i, float *restrict f, float *restrict g, float *restrict o,
                               const float *restrict bi, const float *restrict bf, const float *restrict bg,
                               const float *restrict bo, const float *restrict c_before, float *restrict c,
                               float *restrict h) {
    for (size_t k = 0; k < n; k++) {
        float in = sigmoid(i[k] + bi[k]), keep = sigmoid(f[k] + bf[k]);
        float fresh = hyperbolic(g[k] + bg[k]), out = sigmoid(o[k] + bo[k]);
        float cell = keep * c_before[k] + in * fresh;
        i[k] = in;
        f[k] = keep;
        g[k] = fresh;
        o[k] = out;
        c[k] = cell;
        h[k] = out * hyperbolic(cell);
    }
}

/* With dh = dy + dh of the step after, t = tanh(c):  do = dh t,  dc += dh o (1 - t^2),  di = dc g,  dg = dc i,
 * df = dc c',  dc' = dc f; of the sums: sigmoid' = s (1 - s), tanh' = 1 - t^2. */
SIMD_CLONES static void gradients(size_t n, float *restrict i, float *restrict f, float *restrict g, float *restrict o,
                                  const float *restrict c_before, const float *restrict c, const float *restrict dy,
                                  const float *restrict dh, float *restrict dc) {
    for (size_t k = 0; k < n; k++) {
        float in = i[k], keep = f[k], fresh = g[k], out = o[k];
        float t = hyperbolic(c[k]), all = dy[k] + dh[k];
        float cell = dc[k] + all * out * (1 - t * t);
        i[k] = cell * fresh * (in * (1 - in));
        f[k] = cell * c_before[k] * (keep * (1 - keep));
        g[k] = cell * in * (1 - fresh * fresh);
        o[k] = all * t * (out * (1 - out));
        dc[k] = cell * keep;
    }
}

void cpu_lstm_forward(const struct cpu_lstm_row *row, const float *bias, float *h) {
    const size_t H = row->hidden, at = row->begin;
    float *gate = row->gates + at;
    bias += at;
    values(row->end - at, gate, gate + H, gate + 2 * H, gate + 3 * H, bias, bias + H, bias + 2 * H, bias + 3 * H,
           row->c_before + at, row->c + at, h + at);
}

void cpu_lstm_backward(const struct cpu_lstm_row *row, const float *dy, const float *dh, float *dc) {
    const size_t H = row->hidden, at = row->begin;
    float *gate = row->gates + at;
    gradients(row->end - at, gate, gate + H, gate + 2 * H, gate + 3 * H, row->c_before + at, row->c + at, dy + at,
              dh + at, dc + at);
}
