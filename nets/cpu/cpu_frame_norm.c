/* cpu_frame_norm.c: batch normalisation over the valid steps of utterances, see cpu_steps.h. With M of them, rows
 * counted, the formulas are those of cpu_norm.c; g = dy where 0 < y < ceiling, or dy. Sums go over the steps of an
 * utterance in double, in their order, and over the utterances likewise: the same bits at any number of threads. Unlike
 * cpu_norm.c, this is a small part of the work of a net that has LSTMs behind it, so it is written for brevity. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/simd.h"
#include "nets/cpu/cpu_steps.h"

#define EPSILON 1e-5
#define MOMENTUM 0.1 /* weight of the batch in the running statistics */

enum { LANES_MAX = 16 };

struct cpu_frame_norm {
    struct tensor x;
    float ceiling;
    size_t width;                     /* blocks * lanes: channels with padding */
    float *a, *b, *mean, *p, *q;      /* [width] as in cpu_norm.c; padding 0 */
    double *r, *first, *second, *mid; /* [width]; [batch][width] sums of each utterance, twice; [width] means */
    size_t *valid;                    /* [batch] steps */
};

struct cpu_steps cpu_steps_of(const struct tensor *t, int batch) {
    const struct cpu_view v = cpu_view_of(t);
    struct cpu_steps s = {.utterances = v.images,
                          .channels = v.channels,
                          .blocks = v.blocks,
                          .lanes = v.lanes,
                          .rows = v.height,
                          .steps = v.width,
                          .utterance = v.image,
                          .block = v.block,
                          .row = v.width * v.step,
                          .step = v.step};
    if (t->h > 1 || t->w > 1) return s;
    s.utterances = (size_t)batch;
    s.steps = v.images / s.utterances;
    while (s.lanes < LANES_MAX && s.channels % (2 * s.lanes) == 0) s.lanes *= 2;
    s.blocks = s.channels / s.lanes;
    s.block = s.lanes;
    s.utterance = s.channels;
    s.step = s.utterances * s.channels;
    return s;
}

void cpu_valid_steps(const struct tensor *t, const struct layer_call *call, size_t *valid) {
    for (int i = 0; i < call->batch; i++) valid[i] = (size_t)steps_of(layer_numbers(call)[i], t->frames);
}

struct cpu_frame_norm *cpu_frame_norm_open(const struct tensor *x, int batch, double ceiling) {
    struct cpu_frame_norm *norm = mem_zalloc(1, sizeof *norm, "a normalisation layer");
    const struct cpu_view v = cpu_view_of(x);
    const size_t width = norm->width = v.blocks * v.lanes, most = (size_t)batch;
    norm->x = *x;
    norm->ceiling = (float)ceiling;
    norm->a = mem_zalloc(5 * width, sizeof(float), "the factors of a normalisation layer");
    norm->b = norm->a + width;
    norm->mean = norm->b + width;
    norm->p = norm->mean + width;
    norm->q = norm->p + width;
    norm->r = mem_zalloc(2 * width + 2 * most * width, sizeof(double), "the sums of a normalisation layer");
    norm->mid = norm->r + width;
    norm->first = norm->mid + width;
    norm->second = norm->first + most * width;
    norm->valid = mem_zalloc(most, sizeof *norm->valid, "the lengths of utterances");
    return norm;
}

void cpu_frame_norm_close(struct cpu_frame_norm *norm) {
    mem_free(norm->a);
    mem_free(norm->r);
    mem_free(norm->valid);
    mem_free(norm);
}

/* -- one block of one utterance ------------------------------------------------------------------------------------ */

/* Its rows and valid steps. The lanes are a constant in each of the loops that this is inlined into. */
struct extent {
    size_t rows, valid, steps, row, step;
};
#define INLINE static inline __attribute__((always_inline))
#define FOR_EACH_STEP(e)                                                                                               \
    for (size_t i = 0; i < (e)->rows; i++)                                                                             \
        for (size_t t = 0, at = i * (e)->row; t < (e)->valid; t++, at += (e)->step)
/* Most have so many lanes. */
#define WITH_LANES(function, ...)                                                                                      \
    (lanes == LANES_MAX ? function(e, LANES_MAX, __VA_ARGS__) : function(e, lanes, __VA_ARGS__))

/* sum [l] = sum (x - mean)^power */
INLINE void moments(const struct extent *e, size_t lanes, const float *x, const double *mean, bool squares,
                    double *sum) {
    double s[LANES_MAX] = {0};
    FOR_EACH_STEP(e)
    for (size_t l = 0; l < lanes; l++) {
        const double apart = (double)x[at + l] - mean[l];
        s[l] += squares ? apart * apart : apart;
    }
    for (size_t l = 0; l < lanes; l++) sum[l] = s[l];
}

INLINE void zeros(const struct extent *e, size_t lanes, float *to) {
    for (size_t i = 0; i < e->rows; i++)
        for (size_t t = e->valid; t < e->steps; t++)
            for (size_t l = 0; l < lanes; l++) to[i * e->row + t * e->step + l] = 0;
}

/* y = a x + b, cut where there is a ceiling; NaN stays NaN. */
INLINE void apply(const struct extent *e, size_t lanes, const float *x, const float *a, const float *b, float ceiling,
                  float *y) {
    FOR_EACH_STEP(e)
    for (size_t l = 0; l < lanes; l++) {
        float value = x[at + l] * a[l] + b[l];
        if (ceiling > 0) {
            value = value < 0 ? 0 : value;
            value = value > ceiling ? ceiling : value;
        }
        y[at + l] = value;
    }
    zeros(e, lanes, y);
}

INLINE float open_gradient(float dy, float y, float ceiling) {
    return ceiling > 0 && !(y > 0 && y < ceiling) ? 0 : dy;
}

/* sum [l] = sum g,  dot [l] = sum g (x - mean) */
INLINE void products(const struct extent *e, size_t lanes, const float *dy, const float *x, const float *y,
                     const float *mean, float ceiling, double *sum, double *dot) {
    double s[LANES_MAX] = {0}, d[LANES_MAX] = {0};
    FOR_EACH_STEP(e)
    for (size_t l = 0; l < lanes; l++) {
        const float g = open_gradient(dy[at + l], y[at + l], ceiling);
        s[l] += g;
        d[l] += g * (x[at + l] - mean[l]);
    }
    for (size_t l = 0; l < lanes; l++) sum[l] = s[l], dot[l] = d[l];
}

/* dx = a g + p x + q; dx may be dy. */
INLINE void gradient(const struct extent *e, size_t lanes, const float *dy, const float *x, const float *y,
                     const float *a, const float *p, const float *q, float ceiling, float *dx) {
    FOR_EACH_STEP(e)
    for (size_t l = 0; l < lanes; l++)
        dx[at + l] = a[l] * open_gradient(dy[at + l], y[at + l], ceiling) + (p[l] * x[at + l] + q[l]);
    zeros(e, lanes, dx);
}

SIMD_CLONES static void moments_of(const struct extent *e, size_t lanes, const float *x, const double *mean,
                                   bool squares, double *sum) {
    WITH_LANES(moments, x, mean, squares, sum);
}
SIMD_CLONES static void apply_to(const struct extent *e, size_t lanes, const float *x, const float *a, const float *b,
                                 float ceiling, float *y) {
    WITH_LANES(apply, x, a, b, ceiling, y);
}
SIMD_CLONES static void products_of(const struct extent *e, size_t lanes, const float *dy, const float *x,
                                    const float *y, const float *mean, float ceiling, double *sum, double *dot) {
    WITH_LANES(products, dy, x, y, mean, ceiling, sum, dot);
}
SIMD_CLONES static void gradient_of(const struct extent *e, size_t lanes, const float *dy, const float *x,
                                    const float *y, const float *a, const float *p, const float *q, float ceiling,
                                    float *dx) {
    WITH_LANES(gradient, dy, x, y, a, p, q, ceiling, dx);
}

/* -- passes -------------------------------------------------------------------------------------------------------- */

/* Where block `i`, counted over all utterances, begins, and its place in [batch][width] and in [width]. */
struct place {
    size_t at, sums, channel;
    struct extent extent;
};
static struct place place_of(const struct cpu_frame_norm *norm, const struct cpu_steps *s, size_t i) {
    const size_t u = i / s->blocks, block = i % s->blocks;
    return (struct place){u * s->utterance + block * s->block,
                          u * norm->width + block * s->lanes,
                          block * s->lanes,
                          {s->rows, norm->valid[u], s->steps, s->row, s->step}};
}

static struct cpu_steps steps_in(struct cpu_frame_norm *norm, const struct layer_call *call) {
    const struct tensor now = tensor_in_pass(&norm->x, call);
    cpu_valid_steps(&norm->x, call, norm->valid);
    return cpu_steps_of(&now, call->batch);
}

/* Of all utterances, at most `count` values of a channel; the sums of each, added up. */
static double count_of(const struct cpu_frame_norm *norm, const struct cpu_steps *s) {
    double count = 0;
    for (size_t u = 0; u < s->utterances; u++) count += (double)norm->valid[u] * (double)s->rows;
    return count;
}
static double all_of(const struct cpu_frame_norm *norm, const struct cpu_steps *s, const double *sums, size_t c) {
    double all = 0;
    for (size_t u = 0; u < s->utterances; u++) all += sums[u * norm->width + c];
    return all;
}

static void sum_up(struct cpu_frame_norm *norm, const struct cpu_steps *s, const float *x, bool squares, double *to) {
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < s->utterances * s->blocks; i++) {
        const struct place at = place_of(norm, s, i);
        moments_of(&at.extent, s->lanes, x + at.at, norm->mid + at.channel, squares, to + at.sums);
    }
}

/* a and b of y = a x + b for channel c. */
static void set_scale(struct cpu_frame_norm *norm, size_t channels, size_t c, double mean, double variance,
                      const float *param) {
    norm->r[c] = 1 / sqrt(variance + EPSILON);
    const double a = param[c] * norm->r[c];
    norm->mean[c] = (float)mean;
    norm->a[c] = (float)a;
    norm->b[c] = (float)(param[channels + c] - mean * a);
}

static void batch_statistics(struct cpu_frame_norm *norm, const struct cpu_steps *s, const struct layer_call *call) {
    const double count = count_of(norm, s), least = count > 0 ? count : 1;
    memset(norm->mid, 0, norm->width * sizeof *norm->mid);
    sum_up(norm, s, call->x, false, norm->first);
    for (size_t c = 0; c < norm->width; c++) norm->mid[c] = all_of(norm, s, norm->first, c) / least;
    sum_up(norm, s, call->x, true, norm->second);
    for (size_t c = 0; c < s->channels; c++) {
        const double mean = norm->mid[c], variance = all_of(norm, s, norm->second, c) / least;
        float *running_mean = call->state + c, *running_var = call->state + s->channels + c;
        set_scale(norm, s->channels, c, mean, variance, call->param);
        if (count == 0) continue;
        *running_mean = (float)((1 - MOMENTUM) * *running_mean + MOMENTUM * mean);
        *running_var =
            (float)((1 - MOMENTUM) * *running_var + MOMENTUM * (variance * count / (count > 1 ? count - 1 : 1)));
    }
}

void cpu_frame_norm_forward(struct cpu_frame_norm *norm, const struct layer_call *call, bool training) {
    const struct cpu_steps s = steps_in(norm, call);
    if (training)
        batch_statistics(norm, &s, call);
    else
        for (size_t c = 0; c < s.channels; c++)
            set_scale(norm, s.channels, c, call->state[c], call->state[s.channels + c], call->param);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < s.utterances * s.blocks; i++) {
        const struct place at = place_of(norm, &s, i);
        apply_to(&at.extent, s.lanes, call->x + at.at, norm->a + at.channel, norm->b + at.channel, norm->ceiling,
                 call->y + at.at);
    }
}

/* Gradients of scale and shift, and p and q of dx = a g + p x + q. */
static void set_gradient(struct cpu_frame_norm *norm, const struct cpu_steps *s, const struct layer_call *call) {
    const double count = count_of(norm, s), least = count > 0 ? count : 1;
    for (size_t c = 0; c < s->channels; c++) {
        const double sum = all_of(norm, s, norm->first, c), dot = all_of(norm, s, norm->second, c);
        const double r = norm->r[c], a = call->param[c] * r, slope = -a * r * r * dot / least;
        float *dscale = call->dparam + c, *dshift = call->dparam + s->channels + c;
        *dscale = call->adds ? *dscale + (float)(dot * r) : (float)(dot * r);
        *dshift = call->adds ? *dshift + (float)sum : (float)sum;
        norm->p[c] = (float)slope;
        norm->q[c] = (float)(-a * sum / least - slope * norm->mean[c]);
    }
}

void cpu_frame_norm_backward(struct cpu_frame_norm *norm, const struct layer_call *call) {
    const struct cpu_steps s = steps_in(norm, call);
    const size_t n = s.utterances * s.blocks;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        const struct place at = place_of(norm, &s, i);
        products_of(&at.extent, s.lanes, call->dy + at.at, call->x + at.at, call->y + at.at, norm->mean + at.channel,
                    norm->ceiling, norm->first + at.sums, norm->second + at.sums);
    }
    set_gradient(norm, &s, call);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        const struct place at = place_of(norm, &s, i);
        gradient_of(&at.extent, s.lanes, call->dy + at.at, call->x + at.at, call->y + at.at, norm->a + at.channel,
                    norm->p + at.channel, norm->q + at.channel, norm->ceiling, call->dx + at.at);
    }
}
