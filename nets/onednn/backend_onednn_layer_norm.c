/* backend_onednn_layer_norm.c: layer normalisation by oneDNN. The library overwrites the gradients of weights; those
 * that are to be added go by way of an array of ours. */
#include "base/mem.h"
#include "nets/onednn/backend_onednn.h"

struct layer_norm {
    struct onednn *backend;
    size_t features;
    bool bias;
    struct onednn_step forward, backward;
    float *mean, *variance; /* [rows] each, of the last forward pass */
    float *fresh;           /* [2][features] gradients of a pass that adds */
};

/* The primitive's arguments, but for what it writes last. */
static void take_inputs(struct layer_norm *l, struct onednn_step *s, shim_desc moments, shim_desc weights,
                        shim_desc x) {
    onednn_step_arg(l->backend, s, DNNL_ARG_SRC, x);
    onednn_step_arg(l->backend, s, DNNL_ARG_MEAN, moments);
    onednn_step_arg(l->backend, s, DNNL_ARG_VARIANCE, moments);
    onednn_step_arg(l->backend, s, DNNL_ARG_SCALE, weights);
}

static void open_steps(struct layer_norm *l, shim_desc x, shim_desc moments, shim_desc weights, float epsilon) {
    const unsigned flags = dnnl_use_scale | (l->bias ? dnnl_use_shift : 0u);
    struct onednn *b = l->backend;
    dnnl_primitive_desc_t forward, backward;
    shim_layer_norm_forward(&forward, b->engine, x, moments, epsilon, flags, b->attr);
    shim_layer_norm_backward(&backward, b->engine, x, moments, epsilon, flags, b->attr, forward);
    onednn_step_open(b, &l->forward, forward);
    take_inputs(l, &l->forward, moments, weights, x);
    onednn_step_arg(b, &l->forward, DNNL_ARG_DST, x);
    if (l->bias) onednn_step_arg(b, &l->forward, DNNL_ARG_SHIFT, weights);
    onednn_step_open(b, &l->backward, backward);
    take_inputs(l, &l->backward, moments, weights, x);
    onednn_step_arg(b, &l->backward, DNNL_ARG_DIFF_DST, x);
    onednn_step_arg(b, &l->backward, DNNL_ARG_DIFF_SRC, x);
    onednn_step_arg(b, &l->backward, DNNL_ARG_DIFF_SCALE, weights);
    if (l->bias) { /* oneDNN 2 wants the shift itself, too, which it does not need */
        onednn_step_arg(b, &l->backward, DNNL_ARG_DIFF_SHIFT, weights);
        onednn_step_arg(b, &l->backward, DNNL_ARG_SHIFT, weights);
    }
    ONEDNN(dnnl_primitive_desc_destroy(forward));
    ONEDNN(dnnl_primitive_desc_destroy(backward));
}

static void *open_layer_norm(void *backend, const struct layer_spec *spec, const struct tensor *x,
                             const struct tensor *add, struct tensor *y) {
    (void)add;
    if (x->layout != CPU_NCHW) die("a layer normalisation needs rows in the canonical layout");
    struct layer_norm *l = mem_zalloc(1, sizeof *l, "a layer normalisation");
    l->backend = backend;
    l->features = cpu_view_of(x).image;
    l->bias = spec->layer_norm.bias;
    const size_t rows = (size_t)x->n;
    const dnnl_dims_t size = {(dnnl_dim_t)rows, (dnnl_dim_t)l->features}, features = {(dnnl_dim_t)l->features};
    shim_own_desc all, moments, weights;
    shim_desc_open(&all, 2, size, dnnl_ab);
    shim_desc_open(&moments, 1, size, dnnl_a);
    shim_desc_open(&weights, 1, features, dnnl_a);
    open_steps(l, shim_desc_of(&all), shim_desc_of(&moments), shim_desc_of(&weights), (float)spec->layer_norm.epsilon);
    shim_desc_close(&all);
    shim_desc_close(&moments);
    shim_desc_close(&weights);
    l->mean = mem_zalloc(2 * rows, sizeof(float), "the moments of a layer normalisation");
    l->variance = l->mean + rows;
    if (l->backend->adds) l->fresh = mem_zalloc(2 * l->features, sizeof(float), "gradients of a layer normalisation");
    (void)onednn_lay_out(y, CPU_NCHW);
    return l;
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    struct layer_norm *l = layer;
    onednn_step_run(l->backend, &l->forward,
                    (const void *[]){call->x, l->mean, l->variance, call->param, call->y, call->param + l->features});
}

static void backward(void *layer, const struct layer_call *call) {
    struct layer_norm *l = layer;
    float *dw = call->adds ? l->fresh : call->dparam;
    onednn_step_run(l->backend, &l->backward,
                    (const void *[]){call->x, l->mean, l->variance, call->param, call->dy, call->dx, dw,
                                     dw + l->features, call->param + l->features});
    for (size_t i = 0; call->adds && i < (l->bias ? 2 : 1) * l->features; i++) call->dparam[i] += l->fresh[i];
}

static void close_layer_norm(void *layer) {
    struct layer_norm *l = layer;
    onednn_step_close(&l->forward);
    onednn_step_close(&l->backward);
    mem_free(l->mean);
    mem_free(l->fresh);
    mem_free(l);
}

const struct layer_ops onednn_layer_norm = {open_layer_norm, forward, backward, close_layer_norm};
