/* nets_reference_frames.h: the layers of utterances of different lengths, and CTC's loss, as the plainest loops in
 * double precision; see nets_reference.h. Arrays are those of one pass: images [batch][c][h][w], rows
 * [steps][batch][c]. */
#ifndef ST_TESTS_NETS_REFERENCE_FRAMES_H
#define ST_TESTS_NETS_REFERENCE_FRAMES_H

#include "nets/frames.h"
#include "tests/lib/nets_reference.h"

/* A layer in a pass. x, y: as they are in it. */
struct timed {
    struct layer_spec spec;
    struct tensor x, y;
    int batch;
    const int32_t *lengths;
};

static inline bool timed_rows(const struct tensor *t) {
    return t->h == 1 && t->w == 1;
}
static inline int timed_steps(const struct timed *r, const struct tensor *t) {
    return timed_rows(t) ? t->n / r->batch : t->w;
}
/* Of row i, step s of utterance u, channel c. */
static inline size_t timed_at(const struct timed *r, const struct tensor *t, int u, int c, int i, int s) {
    return timed_rows(t) ? ((size_t)s * (size_t)r->batch + (size_t)u) * (size_t)t->c + (size_t)c
                         : ref_at(t, u, c, i, s);
}
static inline int timed_valid(const struct timed *r, int u) {
    return steps_of(r->lengths[u], r->x.frames);
}

#define FOR_VALID(r)                                                                                                   \
    for (int u = 0; u < (r)->batch; u++)                                                                               \
        for (int i = 0; i < (r)->x.h; i++)                                                                             \
            for (int s = 0; s < timed_valid(r, u); s++)

/* Mean, biased variance and count of channel c. */
static inline double timed_moments(const struct timed *r, const double *x, int c, double *mean, double *var) {
    double count = 0;
    *mean = *var = 0;
    FOR_VALID(r) count++;
    FOR_VALID(r) *mean += x[timed_at(r, &r->x, u, c, i, s)] / count;
    FOR_VALID(r) *var += pow(x[timed_at(r, &r->x, u, c, i, s)] - *mean, 2) / count;
    return count;
}

/* state: NULL in training mode. dy given: the gradients instead, from y. */
static inline void timed_norm(const struct timed *r, const double *x, const double *w, const double *state, double *y,
                              const double *dy, double *dx, double *dw) {
    const double ceiling = r->spec.frame_norm.ceiling;
    for (int c = 0; c < r->x.c; c++) {
        double mean, var, sum = 0, dot = 0, count = timed_moments(r, x, c, &mean, &var);
        if (state) mean = state[c], var = state[r->x.c + c];
        const double deviation = sqrt(var + 1e-5);
        for (int pass = 0; pass < 2; pass++) FOR_VALID(r) {
                const size_t at = timed_at(r, &r->x, u, c, i, s);
                const double hat = (x[at] - mean) / deviation, value = w[c] * hat + w[r->x.c + c];
                const bool open = ceiling == 0 || (value > 0 && value < ceiling);
                if (!dy) {
                    y[at] = open ? value : value > 0 ? ceiling : 0;
                } else if (pass == 0) {
                    sum += open ? dy[at] : 0;
                    dot += open ? dy[at] * hat : 0;
                } else {
                    dx[at] = w[c] / deviation * ((open ? dy[at] : 0) - sum / count - hat * dot / count);
                }
            }
        if (dy) dw[c] = dot, dw[r->x.c + c] = sum;
    }
}

static inline void timed_to_rows(const struct timed *r, const double *x, double *y, const double *dy, double *dx) {
    for (int u = 0; u < r->batch; u++)
        for (int c = 0; c < r->x.c; c++)
            for (int i = 0; i < r->x.h; i++)
                for (int s = 0; s < timed_steps(r, &r->y); s++) {
                    const size_t from = ref_at(&r->x, u, c, i, s);
                    const size_t to = timed_at(r, &r->y, u, c * r->x.h + i, 0, s);
                    if (y) y[to] = x[from];
                    if (dy) dx[from] = dy[to];
                }
}

static inline void timed_lookahead(const struct timed *r, const double *x, const double *w, double *y, const double *dy,
                                   double *dx, double *dw) {
    const int weights = r->spec.lookahead.context + 1;
    const double ceiling = r->spec.lookahead.ceiling;
    FOR_VALID(r)
    for (int f = 0; f < r->x.c; f++) {
        const size_t at = timed_at(r, &r->x, u, f, 0, s);
        double sum = 0;
        for (int j = 0; j < weights && s + j < timed_valid(r, u); j++)
            sum += w[f * weights + j] * x[timed_at(r, &r->x, u, f, 0, s + j)];
        if (y) y[at] = fmin(fmax(0, sum), ceiling);
        for (int j = 0; dy && sum > 0 && sum < ceiling && j < weights && s + j < timed_valid(r, u); j++) {
            const size_t ahead = timed_at(r, &r->x, u, f, 0, s + j);
            dx[ahead] += w[f * weights + j] * dy[at];
            dw[f * weights + j] += x[ahead] * dy[at];
        }
    }
}

/* Each utterance by itself, as one stream of as many steps as it has. */
static inline void timed_lstm(const struct timed *r, const double *x, const double *w, double *y, const double *dy,
                              double *dx, double *dw) {
    const size_t I = (size_t)r->x.c, H = (size_t)r->y.c, B = (size_t)r->batch;
    double *zero = calloc(4 * H, sizeof *zero);
    for (int u = 0; u < r->batch; u++) {
        const size_t T = (size_t)timed_valid(r, u);
        struct reference one = {.spec = {.kind = LAYER_LSTM, .lstm = {.sequence = (int)T}},
                                .x = {.n = (int)T, .c = r->x.c, .h = 1, .w = 1},
                                .y = {.n = (int)T, .c = r->y.c, .h = 1, .w = 1},
                                .carry = zero,
                                .carried = zero + 2 * H};
        if (T == 0) continue;
        double *own = calloc(T * (2 * I + 2 * H), sizeof *own), *own_dx = own + T * I;
        double *own_y = own_dx + T * I, *own_dy = own_y + T * H;
        for (size_t t = 0; t < T; t++) {
            memcpy(own + t * I, x + (t * B + (size_t)u) * I, I * sizeof *own);
            if (dy) memcpy(own_dy + t * H, dy + (t * B + (size_t)u) * H, H * sizeof *own);
        }
        ref_lstm(&one, own, w, own_y, dy ? own_dy : NULL, own_dx, dw);
        for (size_t t = 0; t < T; t++) {
            if (y) memcpy(y + (t * B + (size_t)u) * H, own_y + t * H, H * sizeof *y);
            if (dy) memcpy(dx + (t * B + (size_t)u) * I, own_dx + t * I, I * sizeof *dx);
        }
        free(own);
    }
    free(zero);
}

static inline size_t timed_params(const struct timed *r) {
    const size_t in = (size_t)r->x.c, out = (size_t)r->y.c;
    switch (r->spec.kind) {
    case LAYER_FRAME_NORM:
        return 2 * in;
    case LAYER_LOOKAHEAD:
        return in * ((size_t)r->spec.lookahead.context + 1);
    case LAYER_LSTM:
        return 4 * out * (in + out + 2);
    case LAYER_LINEAR:
        return in * out + (r->spec.linear.bias ? out : 0);
    case LAYER_CONV:
        return out * in * (size_t)r->spec.conv.kernel[0] * (size_t)r->spec.conv.kernel[1] +
               (r->spec.conv.bias ? out : 0);
    default:
        return 0;
    }
}

/* y, or from dy dx and dw: 0 where nothing is written. */
static inline void timed_run(const struct timed *r, const double *x, const double *w, const double *state, double *y,
                             const double *dy, double *dx, double *dw) {
    const struct reference plain = {.spec = r->spec, .x = r->x, .y = r->y};
    if (y) memset(y, 0, ref_floats(&r->y) * sizeof *y);
    if (dy) memset(dx, 0, ref_floats(&r->x) * sizeof *dx);
    if (dy) memset(dw, 0, timed_params(r) * sizeof *dw);
    switch (r->spec.kind) {
    case LAYER_FRAME_NORM:
        timed_norm(r, x, w, state, y, dy, dx, dw);
        break;
    case LAYER_LOOKAHEAD:
        timed_lookahead(r, x, w, y, dy, dx, dw);
        break;
    case LAYER_LSTM:
        timed_lstm(r, x, w, y, dy, dx, dw);
        break;
    case LAYER_TIME_ROWS:
        timed_to_rows(r, x, y, dy, dx);
        break;
    case LAYER_CONV:
        ref_conv(&plain, x, w, y, dy, dx, dw);
        break;
    default:
        ref_linear(&plain, x, w, y, dy, dx, dw);
        break;
    }
}

/* -- CTC ----------------------------------------------------------------------------------------------------------- */

/* -log of the sum over ALL paths of T classes that become the label when repeats and then blanks are left out. */
static inline double ref_ctc_all_paths(const double *z, int T, int K, const int32_t *label, int labels) {
    double all = 0, paths = pow(K, T);
    for (double number = 0; number < paths; number++) {
        double p = 1, rest = number;
        int before = -1, found = 0;
        bool fits = true;
        for (int t = 0; t < T; t++) {
            const int k = (int)fmod(rest, K);
            double sum = 0;
            rest = floor(rest / K);
            for (int c = 0; c < K; c++) sum += exp(z[t * K + c]);
            p *= exp(z[t * K + k]) / sum;
            if (k != before && k != 0) {
                fits = fits && found < labels && label[found] == k;
                found++;
            }
            before = k;
        }
        if (fits && found == labels) all += p;
    }
    return -log(all);
}

#endif
