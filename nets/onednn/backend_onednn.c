/* backend_onednn.c: the CPU backend: convolutions and matrix products by oneDNN 2.x or 3.x, what is bound by memory
 * by the loops of cpu_*.c. All activations of a net lie in the one layout that the library chooses for a typical
 * convolution on this machine, so nothing is reordered between layers. */
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "nets/cpu/cpu_ctc.h"
#include "nets/cpu/cpu_layers.h"
#include "nets/cpu/cpu_norm.h"
#include "nets/cpu/cpu_pool.h"
#include "nets/onednn/backend_onednn.h"

/* -- the engine ---------------------------------------------------------------------------------------------------- */

static const char *version(void) {
    static char text[64];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

/* What the library likes best for the gradient of 3x3 convolutions of 64 channels: what is fast backward is so forward
 * too, but not the other way round (with SSE4.1 alone its forward pass prefers a layout whose backward pass crawls). */
static enum cpu_layout preferred_layout(const struct onednn *b) {
    const dnnl_dims_t size = {16, 64, 16, 16}, w_size = {64, 64, 3, 3};
    const struct shim_window window = {.stride = {1, 1}, .pad = {1, 1}};
    shim_own_desc x, w;
    shim_desc_open(&x, 4, size, dnnl_format_tag_any);
    shim_desc_open(&w, 4, w_size, dnnl_format_tag_any);
    shim_desc xd = shim_desc_of(&x), wd = shim_desc_of(&w);
    dnnl_primitive_desc_t forward, data;
    ONEDNN(shim_convolution(&forward, b->engine, SHIM_FORWARD, dnnl_convolution_direct, xd, wd, NULL, xd, &window,
                            b->attr, NULL));
    ONEDNN(shim_convolution(&data, b->engine, SHIM_DATA, dnnl_convolution_direct, xd, wd, NULL, xd, &window, b->attr,
                            forward));
    enum cpu_layout layout;
    if (!onednn_layout_of(dnnl_primitive_desc_query_md(data, dnnl_query_diff_src_md, 0), size, &layout))
        layout = CPU_NHWC;
    ONEDNN(dnnl_primitive_desc_destroy(forward));
    ONEDNN(dnnl_primitive_desc_destroy(data));
    shim_desc_close(&x);
    shim_desc_close(&w);
    return layout;
}

struct cpu_view onednn_lay_out(struct tensor *y, int layout) {
    y->layout = layout;
    struct cpu_view view = cpu_view_of(y);
    y->floats = cpu_view_floats(&view);
    return view;
}

static bool serves(enum precision precision, struct err *why) {
    if (net_precision_is_f32(precision)) return true;
    return err_set(why, "--precision %s needs a GPU (--device cuda); the CPU computes in f32 or f32-winograd",
                   net_precision_names[precision]);
}

static bool begin(void *backend, enum net_pass pass, bool whole) {
    const struct onednn *b = backend;
    (void)pass, (void)whole;
    omp_set_num_threads(b->threads);
    return true;
}
static bool end(void *backend) {
    (void)backend;
    return true;
}

static void *open_backend(const struct backend_setup *setup) {
    struct onednn *b = mem_zalloc(1, sizeof *b, "the oneDNN backend");
    b->threads = setup->threads;
    b->dropout_seed = setup->dropout_seed;
    b->adds = setup->adds;
    b->winograd = setup->precision == PRECISION_F32_WINOGRAD;
    begin(b, PASS_TRAIN, true); /* primitives are made for a number of threads */
    ONEDNN(dnnl_engine_create(&b->engine, dnnl_cpu, 0));
    ONEDNN(dnnl_stream_create(&b->stream, b->engine, dnnl_stream_default_flags));
    ONEDNN(dnnl_primitive_attr_create(&b->attr));
    ONEDNN(dnnl_primitive_attr_set_scratchpad_mode(b->attr, dnnl_scratchpad_mode_user));
    b->layout = preferred_layout(b);
    return b;
}

static void close_backend(void *backend) {
    struct onednn *b = backend;
    ONEDNN(dnnl_primitive_attr_destroy(b->attr));
    ONEDNN(dnnl_stream_destroy(b->stream));
    ONEDNN(dnnl_engine_destroy(b->engine));
    mem_free(b->scratch);
    for (int k = 0; k < NET_LOSSES_MAX; k++) mem_free(b->label[k]);
    mem_free(b->path);
    mem_free(b);
}

/* -- layers over the loops of cpu_*.c ------------------------------------------------------------------------------ */

static void *norm_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                       struct tensor *y) {
    (void)backend, (void)spec;
    if (add && add->layout != x->layout) die("a normalisation joins tensors of layouts %d, %d", x->layout, add->layout);
    struct cpu_view view = onednn_lay_out(y, x->layout);
    return cpu_norm_open(&view, add != NULL);
}
static void norm_forward(void *layer, const struct layer_call *call, bool training) {
    cpu_norm_forward(layer, call, training);
}
static void norm_backward(void *layer, const struct layer_call *call) {
    cpu_norm_backward(layer, call);
}
static void norm_close(void *layer) {
    cpu_norm_close(layer);
}
const struct layer_ops onednn_normalisation = {norm_open, norm_forward, norm_backward, norm_close};

/* Shortcut, pooling and average remember no more than their shapes. */
struct plain {
    struct cpu_view x, y;
    size_t stride;
    struct cpu_window window;
};

static struct plain *plain_open(const struct tensor *x, struct tensor *y, int layout) {
    struct plain *l = mem_zalloc(1, sizeof *l, "a layer");
    l->x = cpu_view_of(x);
    l->y = onednn_lay_out(y, layout);
    return l;
}

static void *shortcut_open(void *backend, const struct layer_spec *spec, const struct tensor *x,
                           const struct tensor *add, struct tensor *y) {
    (void)backend, (void)add;
    struct plain *l = plain_open(x, y, x->layout);
    l->stride = (size_t)spec->shortcut.stride;
    return l;
}
static void shortcut_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct plain *l = layer;
    cpu_shortcut_forward(&l->x, &l->y, l->stride, call->x, call->y);
}
static void shortcut_backward(void *layer, const struct layer_call *call) {
    const struct plain *l = layer;
    if (call->dx) cpu_shortcut_backward(&l->x, &l->y, l->stride, call->dy, call->dx);
}
const struct layer_ops onednn_shortcut = {shortcut_open, shortcut_forward, shortcut_backward, mem_free};

static void *pool_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                       struct tensor *y) {
    (void)backend, (void)add;
    struct plain *l = plain_open(x, y, x->layout);
    l->window = (struct cpu_window){spec->pool.kernel, spec->pool.stride, spec->pool.pad};
    return l;
}
static void pool_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct plain *l = layer;
    cpu_pool_forward(&l->x, &l->y, &l->window, call->x, call->y);
}
static void pool_backward(void *layer, const struct layer_call *call) {
    const struct plain *l = layer;
    if (call->dx) cpu_pool_backward(&l->x, &l->y, &l->window, call);
}
const struct layer_ops onednn_pooling = {pool_open, pool_forward, pool_backward, mem_free};

static void *canonical_open(void *backend, const struct layer_spec *spec, const struct tensor *x,
                            const struct tensor *add, struct tensor *y) {
    (void)backend, (void)spec, (void)add;
    return plain_open(x, y, CPU_NCHW);
}
static void average_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct plain *l = layer;
    cpu_average_forward(&l->x, call->x, call->y);
}
static void average_backward(void *layer, const struct layer_call *call) {
    const struct plain *l = layer;
    if (call->dx) cpu_average_backward(&l->x, call->dy, call->dx);
}
const struct layer_ops onednn_average = {canonical_open, average_forward, average_backward, mem_free};

static void add(void *backend, const struct tensor *shape, const float *from, float *to) {
    (void)backend;
#pragma omp parallel for simd schedule(static)
    for (size_t i = 0; i < shape->floats; i++) to[i] += from[i];
}

static void keep_labels(struct onednn *b, int which, const int32_t *label, int n) {
    if (b->labels[which] != n) {
        mem_free(b->label[which]);
        b->label[which] = mem_alloc((size_t)n, sizeof *label, "the labels of a batch");
        b->labels[which] = n;
    }
    memcpy(b->label[which], label, (size_t)n * sizeof *label);
}

/* All is copied: the caller may fill x anew while backward still needs them. */
static void feed(void *backend, const struct net_input *input, const struct tensor *shape, float *x,
                 float *const numbers[NET_NUMBERS]) {
    struct onednn *b = backend;
    const void *from = input->token ? (const void *)input->token : (const void *)input->x;
    if (!from) die("the CPU takes images that are normalised already");
    if (shape->frames)
        frames_of_input(input, shape, x);
    else
        memcpy(x, from, shape->floats * sizeof *x); /* a token is as large as a float */
    for (int k = 0; k < NET_NUMBERS; k++)
        if (input->counts[k] > 0)
            memcpy(numbers[k], input->numbers[k], (size_t)input->counts[k] * sizeof *input->numbers[k]);
    for (int k = 0; k < NET_LOSSES_MAX; k++)
        if (input->labels[k] > 0) keep_labels(b, k, input->label[k], input->labels[k]);
    b->label_stride = input->label_stride;
    memcpy(b->over, input->over, sizeof b->over);
    b->valid = input->valid;
    b->step = input->step;
}

static void loss(void *backend, int which, const struct tensor *shape, const float *logits, float *dlogits) {
    struct onednn *b = backend;
    if (shape->n != b->labels[which]) die("a loss of %d rows, but %d labels were fed", shape->n, b->labels[which]);
    cpu_loss(logits, b->label[which], shape->c, which == 0 ? b->valid : shape->n, b->over[which], dlogits,
             &b->result[which]);
}

static void ctc(void *backend, const struct ctc_call *call) {
    struct onednn *b = backend;
    const size_t steps = (size_t)call->steps * (size_t)call->batch;
    if (steps > b->path_room) {
        mem_free(b->path);
        b->path = mem_alloc(steps, sizeof *b->path, "the best path");
        b->path_room = steps;
    }
    const struct cpu_ctc_labels labels = {b->label[0], b->label_stride, b->valid, b->over[0]};
    cpu_ctc(call, &labels, b->path, &b->result[0]);
}

static const int32_t *best_path(void *backend) {
    return ((const struct onednn *)backend)->path;
}

static void last_result(void *backend, int which, struct net_result *result) {
    *result = ((const struct onednn *)backend)->result[which];
}

static bool takes_winograd(const void *backend) {
    return ((const struct onednn *)backend)->took_winograd;
}

const struct backend_ops backend_onednn = {
    .name = "onednn",
    .device = "cpu",
    .version = version,
    .serves = serves,
    .open = open_backend,
    .close = close_backend,
    .feed = feed,
    .begin = begin,
    .end = end,
    .winograd = takes_winograd,
    .layer =
        {
#define LAYER(KIND, name, onednn, cudnn) [LAYER_##KIND] = &onednn,
#include "nets/layers/layers.def"
        },
    .add = add,
    .loss = loss,
    .ctc = ctc,
    .best_path = best_path,
    .result = last_result,
    .losses = NET_LOSSES_MAX,
};
