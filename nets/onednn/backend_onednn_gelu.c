/* backend_onednn_gelu.c: GELU and tanh by oneDNN, over any layout: padding stays 0. */
#include "base/mem.h"
#include "nets/onednn/backend_onednn.h"

struct eltwise {
    struct onednn *backend;
    struct onednn_step forward, backward;
};

static void open_steps(struct eltwise *l, shim_desc x, dnnl_alg_kind_t what) {
    struct onednn *b = l->backend;
    dnnl_primitive_desc_t forward, backward;
    shim_eltwise_forward(&forward, b->engine, what, x, b->attr);
    shim_eltwise_backward(&backward, b->engine, what, x, b->attr, forward);
    onednn_step_open(b, &l->forward, forward);
    onednn_step_arg(b, &l->forward, DNNL_ARG_SRC, x);
    onednn_step_arg(b, &l->forward, DNNL_ARG_DST, x);
    onednn_step_open(b, &l->backward, backward);
    onednn_step_arg(b, &l->backward, DNNL_ARG_SRC, x);
    onednn_step_arg(b, &l->backward, DNNL_ARG_DIFF_DST, x);
    onednn_step_arg(b, &l->backward, DNNL_ARG_DIFF_SRC, x);
    ONEDNN(dnnl_primitive_desc_destroy(forward));
    ONEDNN(dnnl_primitive_desc_destroy(backward));
}

static dnnl_alg_kind_t function_of(const struct layer_spec *spec) {
    if (spec->kind == LAYER_TANH) return dnnl_eltwise_tanh;
    return spec->gelu.tanh ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf;
}

static void *open_eltwise(void *backend, const struct layer_spec *spec, const struct tensor *x,
                          const struct tensor *add, struct tensor *y) {
    (void)add;
    struct eltwise *l = mem_zalloc(1, sizeof *l, "a layer of GELU or tanh");
    l->backend = backend;
    const struct cpu_view view = onednn_lay_out(y, x->layout);
    const dnnl_dims_t size = {(dnnl_dim_t)cpu_view_floats(&view)};
    shim_own_desc all;
    shim_desc_open(&all, 1, size, dnnl_a);
    open_steps(l, shim_desc_of(&all), function_of(spec));
    shim_desc_close(&all);
    return l;
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    struct eltwise *l = layer;
    onednn_step_run(l->backend, &l->forward, (const void *[]){call->x, call->y});
}

static void backward(void *layer, const struct layer_call *call) {
    struct eltwise *l = layer;
    if (call->dx) onednn_step_run(l->backend, &l->backward, (const void *[]){call->x, call->dy, call->dx});
}

static void close_eltwise(void *layer) {
    struct eltwise *l = layer;
    onednn_step_close(&l->forward);
    onednn_step_close(&l->backward);
    mem_free(l);
}

const struct layer_ops onednn_gelu = {open_eltwise, forward, backward, close_eltwise};
const struct layer_ops onednn_tanh = {open_eltwise, forward, backward, close_eltwise};
