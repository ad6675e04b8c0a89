/* backend_cudnn_frames.c: the layers of utterances of different lengths on the GPU, by kernels of ours: normalisation,
 * images to rows of time, the convolution over steps to come. The LSTM is in backend_cudnn_lstm.c. */
#include "base/mem.h"
#include "nets/cuda/cuda_frames.h"
#include "nets/cudnn/backend_cudnn.h"
#include "nets/frames.h"

struct cuda_steps cudnn_steps(const struct tensor *t, const struct layer_call *call) {
    const struct tensor now = tensor_in_pass(t, call);
    const struct cuda_shape shape = cudnn_shape(&now);
    const uint32_t each = (uint32_t)t->frames, batch = (uint32_t)call->batch;
    if (t->h > 1 || t->w > 1) return cuda_steps_of_images(&shape, layer_numbers(call), each);
    return cuda_steps_of_rows(shape.images / batch, batch, shape.channels, layer_numbers(call), each);
}

/* -- normalisation ------------------------------------------------------------------------------------------------- */

struct norm {
    struct tensor x;
    struct cuda_frame_norm kernels;
};

static void *norm_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                       struct tensor *y) {
    (void)backend, (void)add;
    struct norm *l = mem_zalloc(1, sizeof *l, "a normalisation layer");
    const size_t channels = (size_t)x->c;
    (void)cudnn_shape(x);
    l->x = *x;
    l->kernels = (struct cuda_frame_norm){.is_bf16 = cudnn_is_bf16(x), .ceiling = (float)spec->frame_norm.ceiling};
    l->kernels.r = cuda_alloc(channels * (sizeof(double) + 5 * sizeof(float)), "the factors of a normalisation layer");
    l->kernels.factors = (float *)(void *)(l->kernels.r + channels);
    cudnn_lay_out(y, x->layout);
    return l;
}
static void norm_forward(void *layer, const struct layer_call *call, bool training) {
    const struct norm *l = layer;
    const struct cuda_steps s = cudnn_steps(&l->x, call);
    cuda_frame_norm_forward(&l->kernels, &s, call->x, call->y, call->param, call->state, training);
}
static void norm_backward(void *layer, const struct layer_call *call) {
    const struct norm *l = layer;
    const struct cuda_steps s = cudnn_steps(&l->x, call);
    cuda_frame_norm_backward(&l->kernels, &s, call->x, call->dy, call->dx, call->param, call->dparam, call->adds);
}
static void norm_close(void *layer) {
    struct norm *l = layer;
    cuda_free(l->kernels.r);
    mem_free(l);
}
const struct layer_ops cudnn_frame_norm = {norm_open, norm_forward, norm_backward, norm_close};

/* -- images to rows of time ---------------------------------------------------------------------------------------- */

static void *time_rows_open(void *backend, const struct layer_spec *spec, const struct tensor *x,
                            const struct tensor *add, struct tensor *y) {
    (void)backend, (void)spec, (void)add;
    struct tensor *images = mem_alloc(1, sizeof *images, "rows of time");
    *images = *x;
    cudnn_lay_out(y, LAYOUT_CANONICAL);
    (void)cudnn_shape(x), (void)cudnn_shape(y); /* neither is too large */
    return images;
}
static void time_rows_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct tensor *x = layer;
    const struct cuda_steps s = cudnn_steps(x, call);
    cuda_time_rows_forward(&s, (uint32_t)steps_of(call->frames, x->frames), call->x, call->y, cudnn_is_bf16(x));
}
static void time_rows_backward(void *layer, const struct layer_call *call) {
    const struct tensor *x = layer;
    const struct cuda_steps s = cudnn_steps(x, call);
    if (!call->dx) return;
    cuda_time_rows_backward(&s, (uint32_t)steps_of(call->frames, x->frames), call->dy, call->dx, cudnn_is_bf16(x));
}
const struct layer_ops cudnn_time_rows = {time_rows_open, time_rows_forward, time_rows_backward, mem_free};

/* -- the steps to come --------------------------------------------------------------------------------------------- */

struct lookahead {
    struct tensor x;
    uint32_t weights; /* of a feature */
    float ceiling;
};

static void *lookahead_open(void *backend, const struct layer_spec *spec, const struct tensor *x,
                            const struct tensor *add, struct tensor *y) {
    (void)backend, (void)add;
    if (x->layout != LAYOUT_CANONICAL) die("rows of time lie in the canonical layout");
    struct lookahead *l = mem_alloc(1, sizeof *l, "a lookahead");
    *l = (struct lookahead){*x, (uint32_t)spec->lookahead.context + 1, (float)spec->lookahead.ceiling};
    cudnn_lay_out(y, LAYOUT_CANONICAL);
    return l;
}
static void lookahead_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct lookahead *l = layer;
    const struct cuda_steps s = cudnn_steps(&l->x, call);
    cuda_lookahead_forward(&s, l->weights, l->ceiling, call->x, call->param, call->y);
}
static void lookahead_backward(void *layer, const struct layer_call *call) {
    const struct lookahead *l = layer;
    const struct cuda_steps s = cudnn_steps(&l->x, call);
    cuda_lookahead_backward(&s, l->weights, l->ceiling, call->x, call->param, call->y, call->dy, call->dx, call->dparam,
                            call->adds);
}
const struct layer_ops cudnn_lookahead = {lookahead_open, lookahead_forward, lookahead_backward, mem_free};
