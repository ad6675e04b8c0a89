/* cpu_norm.c: see cpu_norm.h. Batch normalisation (Ioffe & Szegedy, ICML 2015) over the M = images * positions values
 * of each channel:
 *      mean = sum x / M,  var = sum (x - mean)^2 / M,  r = 1 / sqrt(var + EPSILON)
 *      y    = scale (x - mean) r + shift                        = a x + b
 *      dshift = sum g,  dscale = r sum g (x - mean)
 *      dx   = a (g - dshift / M - (x - mean) r dscale / M)       = a g + p x + q
 * Running statistics as PyTorch keeps them: new = 0.9 old + 0.1 batch, the variance with M - 1 in place of M.
 * Sums are taken per image and block in float, over images in double and in order: the same bits at any number of
 * threads. oneDNN's own normalisation is not used: its fused form takes the ReLU in, but not the addition before it. */
#include "nets/cpu/cpu_norm.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/simd.h"

#define EPSILON 1e-5
#define MOMENTUM 0.1 /* weight of the batch in the running statistics */

enum { PIECE = 256 }; /* positions: with 16 lanes 16 KiB, half a first-level cache */

/* The inner loops for one number of lanes; see cpu_norm_lanes.h. */
struct norm_loops {
    void (*moments)(const float *x, size_t n, size_t step, float *mean, float *m2);
    void (*apply)(const float *x, const float *add, float *y, size_t n, size_t step, const float *scale,
                  const float *shift);
    void (*sums_of_x)(const float *dy, const float *x, size_t n, size_t step, const float *scale, const float *shift,
                      const float *mean, float *sum, float *dot);
    void (*sums_of_y)(float *dy, const float *dy2, const float *x, const float *y, size_t n, size_t step,
                      const float *mean, float *sum, float *dot);
    void (*gradient)(const float *dy, const float *x, float *dx, size_t n, size_t step, bool masked, const float *scale,
                     const float *shift, const float *slope, const float *offset);
};

#define LANES 1
#include "nets/cpu/cpu_norm_lanes.h"
#define LANES 2
#include "nets/cpu/cpu_norm_lanes.h"
#define LANES 4
#include "nets/cpu/cpu_norm_lanes.h"
#define LANES 8
#include "nets/cpu/cpu_norm_lanes.h"
#define LANES 16
#include "nets/cpu/cpu_norm_lanes.h"

struct cpu_norm {
    struct cpu_view view;
    const struct norm_loops *loops;
    bool joins;
    size_t width;          /* blocks * lanes: channels with padding */
    float *a, *b, *mean;   /* [width] of the last training batch; padding 0 */
    float *p, *q;          /* [width] backward's coefficients */
    double *r;             /* [width] 1 / standard deviation */
    float *first, *second; /* [images][width] sums of each image */
};

static const struct norm_loops *loops_for(size_t lanes) {
    switch (lanes) {
    case 1:
        return &loops_1;
    case 2:
        return &loops_2;
    case 4:
        return &loops_4;
    case 8:
        return &loops_8;
    case 16:
        return &loops_16;
    default:
        die("batch normalisation has no loops for %zu lanes", lanes);
    }
}

struct cpu_norm *cpu_norm_open(const struct cpu_view *view, bool joins) {
    struct cpu_norm *norm = mem_zalloc(1, sizeof *norm, "a normalisation layer");
    norm->view = *view;
    norm->loops = loops_for(view->lanes);
    norm->joins = joins;
    size_t width = norm->width = view->blocks * view->lanes, sums = view->images * width;
    norm->a = mem_zalloc(5 * width + 2 * sums, sizeof(float), "the sums of a normalisation layer");
    norm->b = norm->a + width;
    norm->mean = norm->b + width;
    norm->p = norm->mean + width;
    norm->q = norm->p + width;
    norm->first = norm->q + width;
    norm->second = norm->first + sums;
    norm->r = mem_zalloc(width, sizeof(double), "the deviations of a normalisation layer");
    return norm;
}

void cpu_norm_close(struct cpu_norm *norm) {
    if (!norm) return;
    mem_free(norm->a);
    mem_free(norm->r);
    mem_free(norm);
}

/* Where block `i` (counted over all images) begins, and its channels' place in [images][width] and in [width]. */
struct place {
    size_t at, sums, channel;
};
static struct place place_of(const struct cpu_norm *norm, size_t i) {
    const struct cpu_view *v = &norm->view;
    size_t image = i / v->blocks, block = i % v->blocks;
    return (struct place){image * v->image + block * v->block, image * norm->width + block * v->lanes,
                          block * v->lanes};
}

/* a and b of y = a x + b for channel c. */
static void set_scale(struct cpu_norm *norm, size_t c, double mean, double variance, const float *param) {
    size_t channels = norm->view.channels;
    norm->r[c] = 1 / sqrt(variance + EPSILON);
    double a = param[c] * norm->r[c];
    norm->mean[c] = (float)mean;
    norm->a[c] = (float)a;
    norm->b[c] = (float)(param[channels + c] - mean * a);
}

/* The images' means and sums of squares put together, the running statistics moved. */
static void batch_statistics(struct cpu_norm *norm, const struct layer_call *call) {
    const struct cpu_view *v = &norm->view;
    double count = (double)v->images * (double)v->positions;
    for (size_t c = 0; c < v->channels; c++) {
        double mean = 0, m2 = 0;
        for (size_t i = 0; i < v->images; i++) mean += norm->first[i * norm->width + c];
        mean /= (double)v->images;
        for (size_t i = 0; i < v->images; i++) {
            double apart = norm->first[i * norm->width + c] - mean;
            m2 += norm->second[i * norm->width + c] + (double)v->positions * apart * apart;
        }
        set_scale(norm, c, mean, m2 / count, call->param);
        float *running_mean = call->state + c, *running_var = call->state + v->channels + c;
        *running_mean = (float)((1 - MOMENTUM) * *running_mean + MOMENTUM * mean);
        *running_var = (float)((1 - MOMENTUM) * *running_var + MOMENTUM * (m2 / (count > 1 ? count - 1 : 1)));
    }
}

void cpu_norm_forward(struct cpu_norm *norm, const struct layer_call *call, bool training) {
    const struct cpu_view *v = &norm->view;
    const size_t n = v->images * v->blocks;
    if (training) {
#pragma omp parallel for schedule(static)
        for (size_t i = 0; i < n; i++) {
            struct place at = place_of(norm, i);
            norm->loops->moments(call->x + at.at, v->positions, v->step, norm->first + at.sums, norm->second + at.sums);
        }
        batch_statistics(norm, call);
    } else {
        for (size_t c = 0; c < v->channels; c++)
            set_scale(norm, c, call->state[c], call->state[v->channels + c], call->param);
    }
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        struct place at = place_of(norm, i);
        norm->loops->apply(call->x + at.at, norm->joins ? call->add + at.at : NULL, call->y + at.at, v->positions,
                           v->step, norm->a + at.channel, norm->b + at.channel);
    }
}

/* Gradients of scale and shift, and p and q of dx = a g + p x + q. */
static void set_gradient(struct cpu_norm *norm, const struct layer_call *call) {
    const struct cpu_view *v = &norm->view;
    double count = (double)v->images * (double)v->positions;
    for (size_t c = 0; c < v->channels; c++) {
        double sum = 0, dot = 0, r = norm->r[c], a = call->param[c] * r;
        for (size_t i = 0; i < v->images; i++) {
            sum += norm->first[i * norm->width + c];
            dot += norm->second[i * norm->width + c];
        }
        float *dscale = call->dparam + c, *dshift = call->dparam + v->channels + c;
        *dscale = call->adds ? *dscale + (float)(dot * r) : (float)(dot * r);
        *dshift = call->adds ? *dshift + (float)sum : (float)sum;
        double slope = -a * r * r * dot / count;
        norm->p[c] = (float)slope;
        norm->q[c] = (float)(-a * sum / count - slope * norm->mean[c]);
    }
}

void cpu_norm_backward(struct cpu_norm *norm, const struct layer_call *call) {
    const struct cpu_view *v = &norm->view;
    const size_t n = v->images * v->blocks;
    const bool masked = !norm->joins && !call->dy2; /* g is not written down but computed twice */
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        struct place at = place_of(norm, i);
        const float *x = call->x + at.at, *mean = norm->mean + at.channel;
        float *sum = norm->first + at.sums, *dot = norm->second + at.sums;
        if (masked)
            norm->loops->sums_of_x(call->dy + at.at, x, v->positions, v->step, norm->a + at.channel,
                                   norm->b + at.channel, mean, sum, dot);
        else
            norm->loops->sums_of_y(call->dy + at.at, call->dy2 ? call->dy2 + at.at : NULL, x, call->y + at.at,
                                   v->positions, v->step, mean, sum, dot);
    }
    set_gradient(norm, call);
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
        struct place at = place_of(norm, i);
        norm->loops->gradient(call->dy + at.at, call->x + at.at, call->dx + at.at, v->positions, v->step, masked,
                              norm->a + at.channel, norm->b + at.channel, norm->p + at.channel, norm->q + at.channel);
    }
}
