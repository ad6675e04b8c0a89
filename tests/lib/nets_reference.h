/* nets_reference.h: every layer as the plainest loops in double precision, straight from its definition; the backends'
 * layers answer to these, and these answer to finite differences. All arrays are canonical: [n][c][h][w]. */
#ifndef ST_TESTS_NETS_REFERENCE_H
#define ST_TESTS_NETS_REFERENCE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nets/backend.h"

struct reference {
    struct layer_spec spec;
    struct tensor x, y; /* shapes only */
    bool joins;         /* LAYER_NORM_RELU: a second tensor is added */
    uint64_t dropout_seed, step;
    const double *carry;    /* LAYER_LSTM: [2][streams][hidden] before the window */
    double *carried;        /* after it */
    const int32_t *lengths; /* LAYER_ATTENTION: [sequences], where padded */
    const int32_t *chosen;  /* LAYER_CHOOSE: [sequences][count]; NULL: the first */
};

static inline size_t ref_floats(const struct tensor *t) {
    return (size_t)t->n * (size_t)t->c * (size_t)t->h * (size_t)t->w;
}
static inline size_t ref_at(const struct tensor *t, int n, int c, int i, int j) {
    return (((size_t)n * (size_t)t->c + (size_t)c) * (size_t)t->h + (size_t)i) * (size_t)t->w + (size_t)j;
}
/* The shape of a second tensor of floats. */
static inline const struct tensor *ref_add(const struct reference *r) {
    return r->spec.kind == LAYER_EMBEDDING ? &r->y : &r->x;
}
static inline size_t ref_streams(const struct reference *r) {
    return r->spec.kind == LAYER_LSTM ? (size_t)r->x.n / (size_t)r->spec.lstm.sequence : 0;
}
static inline size_t ref_carry(const struct reference *r) {
    return 2 * ref_streams(r) * (size_t)r->y.c;
}
static inline size_t ref_params(const struct reference *r) {
    size_t in = (size_t)r->x.c, out = (size_t)r->y.c;
    switch (r->spec.kind) {
    case LAYER_CONV:
        return out * in * (size_t)r->spec.conv.kernel[0] * (size_t)r->spec.conv.kernel[1] +
               (r->spec.conv.bias ? out : 0);
    case LAYER_NORM_RELU:
        return 2 * in;
    case LAYER_EMBEDDING:
        return out * (size_t)r->spec.embedding.vocabulary;
    case LAYER_LSTM:
        return 4 * out * (in * (size_t)r->x.h * (size_t)r->x.w + out + 2);
    case LAYER_LINEAR:
        return out * in * (size_t)r->x.h * (size_t)r->x.w + (r->spec.linear.bias ? out : 0);
    case LAYER_POSITION:
        return out * (size_t)r->spec.position.positions;
    case LAYER_LAYER_NORM:
        return (r->spec.layer_norm.bias ? 2 : 1) * in;
    default:
        return 0;
    }
}

/* y(n,o,i,j) = sum w(o,c,a,b) x(n, c, s0 i + a - p0, s1 j + b - p1) [+ b(o)]; dy given: its gradients instead. */
static inline void ref_conv(const struct reference *r, const double *x, const double *w, double *y, const double *dy,
                            double *dx, double *dw) {
    const int *k = r->spec.conv.kernel, *s = r->spec.conv.stride, *p = r->spec.conv.pad;
    const size_t bias = (size_t)r->y.c * (size_t)r->x.c * (size_t)k[0] * (size_t)k[1];
    for (int n = 0; n < r->y.n; n++)
        for (int o = 0; o < r->y.c; o++)
            for (int i = 0; i < r->y.h; i++)
                for (int j = 0; j < r->y.w; j++) {
                    if (r->spec.conv.bias && y) y[ref_at(&r->y, n, o, i, j)] += w[bias + (size_t)o];
                    if (r->spec.conv.bias && dw) dw[bias + (size_t)o] += dy[ref_at(&r->y, n, o, i, j)];
                    for (int c = 0; c < r->x.c; c++)
                        for (int a = 0; a < k[0]; a++)
                            for (int b = 0; b < k[1]; b++) {
                                int row = s[0] * i + a - p[0], column = s[1] * j + b - p[1];
                                if (row < 0 || row >= r->x.h || column < 0 || column >= r->x.w) continue;
                                size_t to = ref_at(&r->y, n, o, i, j), from = ref_at(&r->x, n, c, row, column);
                                size_t weight = (((size_t)o * (size_t)r->x.c + (size_t)c) * (size_t)k[0] + (size_t)a) *
                                                    (size_t)k[1] +
                                                (size_t)b;
                                if (y) y[to] += w[weight] * x[from];
                                if (dx) dx[from] += w[weight] * dy[to];
                                if (dw) dw[weight] += x[from] * dy[to];
                            }
                }
}

/* Mean and biased variance of channel c. */
static inline void ref_moments(const struct tensor *t, const double *x, int c, double *mean, double *var) {
    double count = (double)t->n * t->h * t->w;
    *mean = *var = 0;
    for (int n = 0; n < t->n; n++)
        for (int i = 0; i < t->h * t->w; i++) *mean += x[ref_at(t, n, c, 0, i)] / count;
    for (int n = 0; n < t->n; n++)
        for (int i = 0; i < t->h * t->w; i++) *var += pow(x[ref_at(t, n, c, 0, i)] - *mean, 2) / count;
}

/* state: NULL in training mode, else [2][c] running mean and variance. */
static inline void ref_norm(const struct reference *r, const double *x, const double *add, const double *param,
                            const double *state, double *y) {
    const struct tensor *t = &r->x;
    for (int c = 0; c < t->c; c++) {
        double mean, var;
        ref_moments(t, x, c, &mean, &var);
        if (state) mean = state[c], var = state[t->c + c];
        for (int n = 0; n < t->n; n++)
            for (int i = 0; i < t->h * t->w; i++) {
                size_t at = ref_at(t, n, c, 0, i);
                double value = (x[at] - mean) / sqrt(var + 1e-5) * param[c] + param[t->c + c] + (add ? add[at] : 0);
                y[at] = value > 0 ? value : 0;
            }
    }
}

/* The chain rule through mean and variance, as Ioffe & Szegedy write it down. y decides where the ReLU was open. */
static inline void ref_norm_back(const struct reference *r, const double *x, const double *y, const double *param,
                                 const double *dy, double *dx, double *dadd, double *dparam) {
    const struct tensor *t = &r->x;
    double count = (double)t->n * t->h * t->w;
    for (size_t i = 0; i < ref_floats(t); i++) dadd[i] = y[i] > 0 ? dy[i] : 0;
    for (int c = 0; c < t->c; c++) {
        double mean, var, dvar = 0, dmean = 0, apart = 0;
        ref_moments(t, x, c, &mean, &var);
        double s = sqrt(var + 1e-5);
        for (int n = 0; n < t->n; n++)
            for (int i = 0; i < t->h * t->w; i++) {
                size_t at = ref_at(t, n, c, 0, i);
                double dhat = dadd[at] * param[c];
                dparam[c] += dadd[at] * (x[at] - mean) / s;
                dparam[t->c + c] += dadd[at];
                dvar += dhat * (x[at] - mean) * -0.5 / (s * s * s);
                dmean += -dhat / s;
                apart += x[at] - mean;
            }
        dmean += dvar * -2 * apart / count;
        for (int n = 0; n < t->n; n++)
            for (int i = 0; i < t->h * t->w; i++) {
                size_t at = ref_at(t, n, c, 0, i);
                dx[at] = dadd[at] * param[c] / s + dvar * 2 * (x[at] - mean) / count + dmean / count;
            }
    }
}

/* Option A, both ways: forward copies x to y; dy given: back to dx. */
static inline void ref_shortcut(const struct reference *r, const double *x, double *y, const double *dy, double *dx) {
    const int s = r->spec.shortcut.stride, before = (r->y.c - r->x.c) / 2;
    for (int n = 0; n < r->y.n; n++)
        for (int c = 0; c < r->x.c; c++)
            for (int i = 0; i < r->y.h; i++)
                for (int j = 0; j < r->y.w; j++) {
                    size_t small = ref_at(&r->y, n, c + before, i, j), big = ref_at(&r->x, n, c, s * i, s * j);
                    if (y) y[small] = x[big];
                    if (dx) dx[big] = dy[small];
                }
}

static inline void ref_average(const struct reference *r, const double *x, double *y, const double *dy, double *dx) {
    for (int n = 0; n < r->x.n; n++)
        for (int c = 0; c < r->x.c; c++)
            for (int i = 0; i < r->x.h * r->x.w; i++) {
                size_t at = ref_at(&r->x, n, c, 0, i), to = ref_at(&r->y, n, c, 0, 0);
                if (y) y[to] += x[at] / (r->x.h * r->x.w);
                if (dx) dx[at] = dy[to] / (r->x.h * r->x.w);
            }
}

/* The largest of the window; backward to the first one by rows. */
static inline void ref_pool(const struct reference *r, const double *x, double *y, const double *dy, double *dx) {
    const int k = r->spec.pool.kernel, s = r->spec.pool.stride, p = r->spec.pool.pad;
    for (size_t plane = 0; plane < (size_t)r->y.n * (size_t)r->y.c; plane++)
        for (int i = 0; i < r->y.h; i++)
            for (int j = 0; j < r->y.w; j++) {
                const size_t to = (plane * (size_t)r->y.h + (size_t)i) * (size_t)r->y.w + (size_t)j;
                size_t best = SIZE_MAX;
                for (int row = s * i - p; row < s * i - p + k; row++)
                    for (int column = s * j - p; column < s * j - p + k; column++) {
                        if (row < 0 || row >= r->x.h || column < 0 || column >= r->x.w) continue;
                        size_t at = (plane * (size_t)r->x.h + (size_t)row) * (size_t)r->x.w + (size_t)column;
                        if (best == SIZE_MAX || (!isnan(x[best]) && !(x[at] <= x[best]))) best = at;
                    }
                if (y) y[to] = x[best];
                if (dx) dx[best] += dy[to];
            }
}

/* What element i is multiplied by where so many are dropped: word i % 4 of a block of Philox. */
static inline double ref_dropout_factor(const struct reference *r, double drop, size_t i) {
    const uint32_t counter[4] = {(uint32_t)(i / 4), RNG_DROPOUT + 256 * (uint32_t)r->spec.number, (uint32_t)r->step,
                                 (uint32_t)(r->step >> 32)};
    const uint32_t key[2] = {(uint32_t)r->dropout_seed, (uint32_t)(r->dropout_seed >> 32)};
    uint32_t word[4];
    philox4x32(counter, key, word);
    return word[i % 4] * 0x1p-32 < drop ? 0 : 1 / (1 - drop);
}

/* y(row) = w(x(row)), x holding tokens; dy given: the gradient of w. */
static inline void ref_embedding(const struct reference *r, const double *x, const double *w, double *y,
                                 const double *dy, double *dw) {
    const size_t features = (size_t)r->y.c;
    for (size_t row = 0; row < (size_t)r->x.n; row++)
        for (size_t f = 0; f < features; f++) {
            if (y) y[row * features + f] = w[(size_t)x[row] * features + f];
            if (dw) dw[(size_t)x[row] * features + f] += dy[row * features + f];
        }
}

static inline void ref_linear(const struct reference *r, const double *x, const double *w, double *y, const double *dy,
                              double *dx, double *dw) {
    size_t in = ref_floats(&r->x) / (size_t)r->x.n, out = (size_t)r->y.c;
    for (size_t n = 0; n < (size_t)r->x.n; n++)
        for (size_t o = 0; o < out; o++) {
            if (y && r->spec.linear.bias) y[n * out + o] = w[out * in + o];
            if (dw && r->spec.linear.bias) dw[out * in + o] += dy[n * out + o];
            for (size_t i = 0; i < in; i++) {
                if (y) y[n * out + o] += w[o * in + i] * x[n * in + i];
                if (dw) dw[o * in + i] += dy[n * out + o] * x[n * in + i];
                if (dx) dx[n * in + i] += dy[n * out + o] * w[o * in + i];
            }
        }
}

static inline double ref_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* The places of the parameters of gate k, unit j: row k hidden + j of w_ih and w_hh, and of the biases after them. */
struct ref_lstm_row {
    size_t ih, hh, b_ih, b_hh;
};
static inline struct ref_lstm_row ref_lstm_row(size_t inputs, size_t hidden, size_t row) {
    const size_t w_hh = 4 * hidden * inputs, b_ih = w_hh + 4 * hidden * hidden;
    return (struct ref_lstm_row){row * inputs, w_hh + row * hidden, b_ih + row, b_ih + 4 * hidden + row};
}

static inline void ref_lstm_step(size_t I, size_t H, const double *x, const double *w, const double *h, const double *c,
                                 double *gate, double *h_after, double *c_after) {
    for (size_t row = 0; row < 4 * H; row++) {
        const struct ref_lstm_row at = ref_lstm_row(I, H, row);
        double sum = w[at.b_ih] + w[at.b_hh];
        for (size_t i = 0; i < I; i++) sum += w[at.ih + i] * x[i];
        for (size_t i = 0; i < H; i++) sum += w[at.hh + i] * h[i];
        gate[row] = row / H == 2 ? tanh(sum) : ref_sigmoid(sum);
    }
    for (size_t j = 0; j < H; j++) {
        c_after[j] = gate[H + j] * c[j] + gate[j] * gate[2 * H + j];
        h_after[j] = gate[3 * H + j] * tanh(c_after[j]);
    }
}

/* dh, dc: gradients of the state after the step; left as those of the state before it. */
static inline void ref_lstm_step_back(size_t I, size_t H, const double *x, const double *w, const double *h,
                                      const double *c, const double *gate, const double *c_after, double *dh,
                                      double *dc, double *dx, double *dw) {
    double *before = calloc(H, sizeof *before);
    for (size_t j = 0; j < H; j++) {
        const double i = gate[j], f = gate[H + j], g = gate[2 * H + j], o = gate[3 * H + j], t = tanh(c_after[j]);
        const double cell = dc[j] + dh[j] * o * (1 - t * t);
        const double sum[4] = {cell * g * i * (1 - i), cell * c[j] * f * (1 - f), cell * i * (1 - g * g),
                               dh[j] * t * o * (1 - o)};
        dc[j] = cell * f;
        for (size_t k = 0; k < 4; k++) {
            const struct ref_lstm_row at = ref_lstm_row(I, H, k * H + j);
            dw[at.b_ih] += sum[k];
            dw[at.b_hh] += sum[k];
            for (size_t m = 0; m < I; m++) dw[at.ih + m] += sum[k] * x[m], dx[m] += sum[k] * w[at.ih + m];
            for (size_t m = 0; m < H; m++) dw[at.hh + m] += sum[k] * h[m], before[m] += sum[k] * w[at.hh + m];
        }
    }
    memcpy(dh, before, H * sizeof *dh);
    free(before);
}

/* One stream after the other; dy given: its gradients, too. */
static inline void ref_lstm(const struct reference *r, const double *x, const double *w, double *y, const double *dy,
                            double *dx, double *dw) {
    const size_t T = (size_t)r->spec.lstm.sequence, B = ref_streams(r), H = (size_t)r->y.c;
    const size_t I = ref_floats(&r->x) / (size_t)r->x.n;
    double *gate = calloc(T * 4 * H + 2 * (T + 1) * H + 2 * H, sizeof *gate);
    double *c = gate + T * 4 * H, *h = c + (T + 1) * H, *dh = h + (T + 1) * H, *dc = dh + H;
    for (size_t b = 0; b < B; b++) {
        memcpy(h, r->carry + b * H, H * sizeof *h);
        memcpy(c, r->carry + (B + b) * H, H * sizeof *c);
        for (size_t t = 0; t < T; t++) {
            ref_lstm_step(I, H, x + (t * B + b) * I, w, h + t * H, c + t * H, gate + t * 4 * H, h + (t + 1) * H,
                          c + (t + 1) * H);
            if (y) memcpy(y + (t * B + b) * H, h + (t + 1) * H, H * sizeof *y);
        }
        memcpy(r->carried + b * H, h + T * H, H * sizeof *h);
        memcpy(r->carried + (B + b) * H, c + T * H, H * sizeof *c);
        memset(dh, 0, 2 * H * sizeof *dh);
        for (size_t t = T; dy && t-- > 0;) {
            for (size_t j = 0; j < H; j++) dh[j] += dy[(t * B + b) * H + j];
            ref_lstm_step_back(I, H, x + (t * B + b) * I, w, h + t * H, c + t * H, gate + t * 4 * H, c + (t + 1) * H,
                               dh, dc, dx + (t * B + b) * I, dw);
        }
    }
    free(gate);
}

#include "tests/lib/nets_reference_rows.h"

/* y is overwritten. state: NULL in training mode. */
static inline void ref_forward(const struct reference *r, const double *x, const double *add, const double *param,
                               const double *state, double *y) {
    memset(y, 0, ref_floats(&r->y) * sizeof *y);
    switch (r->spec.kind) {
    case LAYER_CONV:
        ref_conv(r, x, param, y, NULL, NULL, NULL);
        break;
    case LAYER_NORM_RELU:
        ref_norm(r, x, r->joins ? add : NULL, param, state, y);
        break;
    case LAYER_SHORTCUT:
        ref_shortcut(r, x, y, NULL, NULL);
        break;
    case LAYER_AVERAGE:
        ref_average(r, x, y, NULL, NULL);
        break;
    case LAYER_POOL:
        ref_pool(r, x, y, NULL, NULL);
        break;
    case LAYER_EMBEDDING:
        ref_embedding(r, x, param, y, NULL, NULL);
        for (size_t i = 0; r->joins && i < ref_floats(&r->y); i++) y[i] += add[i];
        break;
    case LAYER_LSTM:
        ref_lstm(r, x, param, y, NULL, NULL, NULL);
        break;
    case LAYER_DROPOUT:
        for (size_t i = 0; i < ref_floats(&r->x); i++) y[i] = x[i] * ref_dropout_factor(r, r->spec.dropout.drop, i);
        break;
    case LAYER_ADD:
        for (size_t i = 0; i < ref_floats(&r->x); i++) y[i] = x[i] + add[i];
        break;
    case LAYER_POSITION:
        ref_position(r, x, param, y, NULL, NULL, NULL);
        break;
    case LAYER_LAYER_NORM:
        ref_layer_norm(r, x, param, y, NULL, NULL, NULL);
        break;
    case LAYER_GELU:
        for (size_t i = 0; i < ref_floats(&r->x); i++) y[i] = ref_gelu(r, x[i]);
        break;
    case LAYER_ATTENTION:
        ref_attention(r, x, y, NULL, NULL);
        break;
    case LAYER_CHOOSE:
        ref_choose(r, x, y, NULL, NULL);
        break;
    case LAYER_TANH:
        for (size_t i = 0; i < ref_floats(&r->x); i++) y[i] = tanh(x[i]);
        break;
    default:
        ref_linear(r, x, param, y, NULL, NULL, NULL);
        break;
    }
}

/* dx, dadd (as large as ref_add says) and dparam are overwritten. y: of the forward pass. */
static inline void ref_backward(const struct reference *r, const double *x, const double *y, const double *param,
                                const double *dy, double *dx, double *dadd, double *dparam) {
    memset(dx, 0, ref_floats(&r->x) * sizeof *dx);
    memset(dadd, 0, ref_floats(ref_add(r)) * sizeof *dadd);
    memset(dparam, 0, ref_params(r) * sizeof *dparam);
    switch (r->spec.kind) {
    case LAYER_CONV:
        ref_conv(r, x, param, NULL, dy, dx, dparam);
        break;
    case LAYER_NORM_RELU:
        ref_norm_back(r, x, y, param, dy, dx, dadd, dparam);
        break;
    case LAYER_SHORTCUT:
        ref_shortcut(r, x, NULL, dy, dx);
        break;
    case LAYER_AVERAGE:
        ref_average(r, x, NULL, dy, dx);
        break;
    case LAYER_POOL:
        ref_pool(r, x, NULL, dy, dx);
        break;
    case LAYER_EMBEDDING:
        ref_embedding(r, x, param, NULL, dy, dparam);
        for (size_t i = 0; r->joins && i < ref_floats(&r->y); i++) dadd[i] = dy[i];
        break;
    case LAYER_LSTM:
        ref_lstm(r, x, param, NULL, dy, dx, dparam);
        break;
    case LAYER_DROPOUT:
        for (size_t i = 0; i < ref_floats(&r->x); i++) dx[i] = dy[i] * ref_dropout_factor(r, r->spec.dropout.drop, i);
        break;
    case LAYER_ADD:
        for (size_t i = 0; i < ref_floats(&r->x); i++) dx[i] = dadd[i] = dy[i];
        break;
    case LAYER_POSITION:
        ref_position(r, x, param, NULL, dy, dx, dparam);
        break;
    case LAYER_LAYER_NORM:
        ref_layer_norm(r, x, param, NULL, dy, dx, dparam);
        break;
    case LAYER_GELU:
        for (size_t i = 0; i < ref_floats(&r->x); i++) dx[i] = dy[i] * ref_gelu_slope(r, x[i]);
        break;
    case LAYER_ATTENTION:
        ref_attention(r, x, NULL, dy, dx);
        break;
    case LAYER_CHOOSE:
        ref_choose(r, x, NULL, dy, dx);
        break;
    case LAYER_TANH:
        for (size_t i = 0; i < ref_floats(&r->x); i++) dx[i] = dy[i] * (1 - pow(tanh(x[i]), 2));
        break;
    default:
        ref_linear(r, x, param, NULL, dy, dx, dparam);
        break;
    }
}

/* Sum over the rows of -log softmax(z)[label], and its gradient for the mean over n rows. */
static inline double ref_loss(const double *z, const int32_t *label, int n, int classes, double *dz) {
    double loss = 0;
    for (int i = 0; i < n; i++) {
        double top = -INFINITY, sum = 0;
        for (int c = 0; c < classes; c++) top = fmax(top, z[i * classes + c]);
        for (int c = 0; c < classes; c++) sum += exp(z[i * classes + c] - top);
        for (int c = 0; c < classes; c++)
            dz[i * classes + c] = (exp(z[i * classes + c] - top) / sum - (c == label[i] ? 1 : 0)) / n;
        loss -= z[i * classes + label[i]] - top - log(sum);
    }
    return loss;
}

/* Fresh memory: n normal numbers, a function of `stream`; floats, so that the other side can have the same. */
static inline double *random_numbers(size_t n, uint64_t stream) {
    double *v = mem_alloc(n, sizeof *v, "a test's numbers");
    struct rng r = rng_open(11, RNG_TEST, stream);
    for (size_t i = 0; i < n; i++) v[i] = (float)rng_normal(&r);
    return v;
}

#endif
