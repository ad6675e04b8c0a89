/* backend_onednn_frames.c: the layers of utterances of different lengths on the CPU: normalisation, images to rows of
 * time, and the convolution over steps to come. The LSTM is in backend_onednn_lstm.c. */
#include <string.h>

#include "base/mem.h"
#include "base/simd.h"
#include "nets/cpu/cpu_steps.h"
#include "nets/onednn/backend_onednn.h"

/* -- normalisation ------------------------------------------------------------------------------------------------- */

static void *norm_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                       struct tensor *y) {
    (void)backend;
    (void)onednn_lay_out(y, x->layout);
    return cpu_frame_norm_open(x, add->n, spec->frame_norm.ceiling);
}
static void norm_forward(void *layer, const struct layer_call *call, bool training) {
    cpu_frame_norm_forward(layer, call, training);
}
static void norm_backward(void *layer, const struct layer_call *call) {
    cpu_frame_norm_backward(layer, call);
}
static void norm_close(void *layer) {
    cpu_frame_norm_close(layer);
}
const struct layer_ops onednn_frame_norm = {norm_open, norm_forward, norm_backward, norm_close};

/* -- images to rows of time ---------------------------------------------------------------------------------------- */

static void *time_rows_open(void *backend, const struct layer_spec *spec, const struct tensor *x,
                            const struct tensor *add, struct tensor *y) {
    (void)backend, (void)spec, (void)add;
    struct tensor *images = mem_alloc(1, sizeof *images, "rows of time");
    *images = *x;
    (void)onednn_lay_out(y, CPU_NCHW);
    return images;
}

/* y [t][n][c h + i] = x (n, c, i, t), of as many steps as the pass has. */
static void time_rows_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct tensor *images = layer, now = tensor_in_pass(images, call);
    const struct cpu_view v = cpu_view_of(&now);
    const size_t steps = (size_t)steps_of(call->frames, images->frames), features = v.channels * v.height;
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < steps * v.images; row++)
        for (size_t f = 0; f < features; f++)
            call->y[row * features + f] =
                call->x[cpu_view_place(&v, row % v.images, f / v.height, f % v.height * v.width + row / v.images)];
}

/* Columns that the pass does not have, and lanes beyond the channels, get 0. */
static void time_rows_backward(void *layer, const struct layer_call *call) {
    const struct tensor *images = layer, now = tensor_in_pass(images, call);
    const struct cpu_view v = cpu_view_of(&now);
    const size_t steps = (size_t)steps_of(call->frames, images->frames), features = v.channels * v.height;
    if (!call->dx) return;
    memset(call->dx, 0, cpu_view_floats(&v) * sizeof *call->dx);
#pragma omp parallel for schedule(static)
    for (size_t n = 0; n < v.images; n++)
        for (size_t t = 0; t < steps; t++)
            for (size_t f = 0; f < features; f++)
                call->dx[cpu_view_place(&v, n, f / v.height, f % v.height * v.width + t)] =
                    call->dy[(t * v.images + n) * features + f];
}
const struct layer_ops onednn_time_rows = {time_rows_open, time_rows_forward, time_rows_backward, mem_free};

/* -- the steps to come --------------------------------------------------------------------------------------------- */

enum { COLUMNS = 64 }; /* features whose weights' gradients a thread sums up at once */

struct lookahead {
    struct tensor x;
    size_t features, weights; /* weights: of a feature */
    float ceiling;
    float *turned; /* [weights][features] */
    double *sums;  /* likewise, of their gradients */
    size_t *valid; /* [batch] */
};

static void *lookahead_open(void *backend, const struct layer_spec *spec, const struct tensor *x,
                            const struct tensor *add, struct tensor *y) {
    (void)backend;
    if (x->layout != CPU_NCHW) die("rows of time lie in the canonical layout");
    struct lookahead *l = mem_zalloc(1, sizeof *l, "a lookahead");
    *l = (struct lookahead){.x = *x,
                            .features = cpu_view_of(x).image,
                            .weights = (size_t)spec->lookahead.context + 1,
                            .ceiling = (float)spec->lookahead.ceiling};
    l->turned = mem_alloc(l->weights * l->features, sizeof *l->turned, "the weights of a lookahead");
    l->sums = mem_alloc(l->weights * l->features, sizeof *l->sums, "the gradients of a lookahead");
    l->valid = mem_alloc((size_t)add->n, sizeof *l->valid, "the lengths of utterances");
    (void)onednn_lay_out(y, CPU_NCHW);
    return l;
}

static void lookahead_close(void *layer) {
    struct lookahead *l = layer;
    mem_free(l->turned);
    mem_free(l->sums);
    mem_free(l->valid);
    mem_free(l);
}

/* to += w from */
SIMD_CLONES static void multiply_add(const float *w, const float *from, size_t n, float *to) {
    for (size_t i = 0; i < n; i++) to[i] += w[i] * from[i];
}
SIMD_CLONES static void multiply_add_double(const float *a, const float *b, size_t n, double *to) {
    for (size_t i = 0; i < n; i++) to[i] += (double)a[i] * b[i];
}
SIMD_CLONES static void cut(size_t n, float ceiling, float *y) {
    for (size_t i = 0; i < n; i++) {
        const float least = y[i] < 0 ? 0 : y[i];
        y[i] = least > ceiling ? ceiling : least;
    }
}
SIMD_CLONES static void pass_open(const float *y, size_t n, float ceiling, float *dy) {
    for (size_t i = 0; i < n; i++) dy[i] = y[i] > 0 && y[i] < ceiling ? dy[i] : 0;
}

static void lookahead_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    struct lookahead *l = layer;
    const size_t F = l->features, B = (size_t)call->batch, rows = (size_t)tensor_in_pass(&l->x, call).n;
    cpu_valid_steps(&l->x, call, l->valid);
    for (size_t f = 0; f < F; f++)
        for (size_t j = 0; j < l->weights; j++) l->turned[j * F + f] = call->param[f * l->weights + j];
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < rows; row++) {
        const size_t t = row / B, n = row % B;
        float *y = call->y + row * F;
        memset(y, 0, F * sizeof *y);
        for (size_t j = 0; j < l->weights && t + j < l->valid[n]; j++)
            multiply_add(l->turned + j * F, call->x + (row + j * B) * F, F, y);
        cut(F, l->ceiling, y);
    }
}

/* dw [f][j] [+]= sum over t and n of g [t][n][f] x [t + j][n][f], in their order */
static void weight_gradients(struct lookahead *l, const struct layer_call *call, size_t rows, size_t from, size_t n) {
    const size_t F = l->features, B = (size_t)call->batch, K = l->weights;
    for (size_t j = 0; j < K; j++) {
        double *sum = l->sums + j * F + from;
        memset(sum, 0, n * sizeof *sum);
        for (size_t row = 0; row < rows; row++)
            if (row / B + j < l->valid[row % B])
                multiply_add_double(call->dy + row * F + from, call->x + (row + j * B) * F + from, n, sum);
        for (size_t f = 0; f < n; f++) {
            float *dw = call->dparam + (from + f) * K + j;
            *dw = call->adds ? *dw + (float)sum[f] : (float)sum[f];
        }
    }
}

/* g = dy where 0 < y < ceiling;  dx [t] = sum over j of w [j] g [t - j] */
static void lookahead_backward(void *layer, const struct layer_call *call) {
    struct lookahead *l = layer;
    const size_t F = l->features, B = (size_t)call->batch, rows = (size_t)tensor_in_pass(&l->x, call).n;
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < rows; row++)
        if (row / B < l->valid[row % B]) pass_open(call->y + row * F, F, l->ceiling, call->dy + row * F);
#pragma omp parallel for schedule(static)
    for (size_t f = 0; f < F; f += COLUMNS) weight_gradients(l, call, rows, f, f + COLUMNS < F ? COLUMNS : F - f);
    if (!call->dx) return;
#pragma omp parallel for schedule(static)
    for (size_t row = 0; row < rows; row++) {
        const size_t t = row / B;
        float *dx = call->dx + row * F;
        memset(dx, 0, F * sizeof *dx);
        if (t >= l->valid[row % B]) continue;
        for (size_t j = 0; j < l->weights && j <= t; j++)
            multiply_add(l->turned + j * F, call->dy + (row - j * B) * F, F, dx);
    }
}
const struct layer_ops onednn_lookahead = {lookahead_open, lookahead_forward, lookahead_backward, lookahead_close};
