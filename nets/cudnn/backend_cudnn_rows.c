/* backend_cudnn_rows.c: layers that go element by element or take rows on the GPU: additions, learned positions, GELU,
 * tanh, some rows of each sequence; by kernels of ours. */
#include "base/mem.h"
#include "nets/cuda/cuda_rows.h"
#include "nets/cudnn/backend_cudnn.h"

/* -- any layout: y = x + add, y = gelu(x), y = tanh(x) ------------------------------------------------------------- */

struct each {
    uint32_t n;
    bool is_bf16, tanh;
    size_t bytes; /* of a tensor */
};

static struct each *each_open(const struct tensor *x, struct tensor *y) {
    struct each *l = mem_zalloc(1, sizeof *l, "a layer");
    const struct cuda_shape shape = cudnn_shape(x);
    cudnn_lay_out(y, x->layout);
    *l = (struct each){.n = cuda_elements(&shape), .is_bf16 = cudnn_is_bf16(x), .bytes = y->floats * sizeof(float)};
    return l;
}

static void *add_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                      struct tensor *y) {
    (void)backend, (void)spec;
    if (add->layout != x->layout) die("tensors of layouts %d and %d are added up", x->layout, add->layout);
    return each_open(x, y);
}
static void add_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct each *l = layer;
    cuda_sum(l->n, call->x, call->add, call->y, l->is_bf16);
}
/* The gradient of `add` is dy itself. */
static void add_backward(void *layer, const struct layer_call *call) {
    const struct each *l = layer;
    if (call->dx) CUDA_GIVE(cudaMemcpyAsync(call->dx, call->dy, l->bytes, cudaMemcpyDeviceToDevice, cuda_stream()));
}
const struct layer_ops cudnn_add = {add_open, add_forward, add_backward, mem_free};

static void *gelu_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                       struct tensor *y) {
    (void)backend, (void)add;
    struct each *l = each_open(x, y);
    l->tanh = spec->gelu.tanh;
    return l;
}
static void gelu_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct each *l = layer;
    cuda_gelu_forward(l->n, l->tanh, call->x, call->y, l->is_bf16);
}
static void gelu_backward(void *layer, const struct layer_call *call) {
    const struct each *l = layer;
    if (call->dx) cuda_gelu_backward(l->n, l->tanh, call->x, call->dy, call->dx, l->is_bf16);
}
const struct layer_ops cudnn_gelu = {gelu_open, gelu_forward, gelu_backward, mem_free};

static void *tanh_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                       struct tensor *y) {
    (void)backend, (void)spec, (void)add;
    return each_open(x, y);
}
static void tanh_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct each *l = layer;
    cuda_tanh_forward(l->n, call->x, call->y, l->is_bf16);
}
static void tanh_backward(void *layer, const struct layer_call *call) {
    const struct each *l = layer;
    if (call->dx) cuda_tanh_backward(l->n, call->x, call->dy, call->dx, l->is_bf16);
}
const struct layer_ops cudnn_tanh = {tanh_open, tanh_forward, tanh_backward, mem_free};

/* -- y [row] = x [row] + w [row mod T] ----------------------------------------------------------------------------- */

/* Here rows come to be bf16 in that precision: x, an embedding's, is what the parameters are. */
struct position {
    uint32_t sequences, length; /* length: elements of a sequence, T c */
    size_t rest;                /* bytes of the positions that a sequence does not have */
    bool is_bf16;               /* y */
};

static void *position_open(void *backend, const struct layer_spec *spec, const struct tensor *x,
                           const struct tensor *add, struct tensor *y) {
    (void)add;
    if (x->layout != LAYOUT_CANONICAL) die("positions need rows in the canonical layout");
    const struct cuda_shape shape = cudnn_shape(x);
    struct position *l = mem_zalloc(1, sizeof *l, "positions");
    l->sequences = shape.images / (uint32_t)spec->position.sequence;
    l->length = cuda_elements(&shape) / l->sequences;
    l->rest = (size_t)(spec->position.positions - spec->position.sequence) *
              (l->length / (uint32_t)spec->position.sequence) * sizeof(float);
    cudnn_lay_out(y, cudnn_row_layout(backend));
    l->is_bf16 = cudnn_is_bf16(y);
    return l;
}
static void position_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct position *l = layer;
    cuda_position_forward(l->sequences, l->length, call->x, call->param, call->y, l->is_bf16);
}
static void position_backward(void *layer, const struct layer_call *call) {
    const struct position *l = layer;
    cuda_position_backward(l->sequences, l->length, call->dy, call->adds, call->dparam, call->dx, l->is_bf16);
    if (l->rest && !call->adds) CUDA_GIVE(cudaMemsetAsync(call->dparam + l->length, 0, l->rest, cuda_stream()));
}
const struct layer_ops cudnn_position = {position_open, position_forward, position_backward, mem_free};

/* -- some rows of each sequence ------------------------------------------------------------------------------------ */

static void *choose_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                         struct tensor *y) {
    (void)backend;
    if (!cudnn_are_rows(x)) die("what is chosen has to be rows");
    if (add && add->layout != LAYOUT_TOKENS) die("rows are chosen by whole numbers");
    const struct cuda_shape shape = cudnn_shape(x);
    struct cuda_choose *l = mem_alloc(1, sizeof *l, "chosen rows");
    *l = (struct cuda_choose){.sequences = shape.images / (uint32_t)spec->choose.sequence,
                              .T = (uint32_t)spec->choose.sequence,
                              .count = (uint32_t)spec->choose.count,
                              .features = shape.channels * shape.positions,
                              .is_bf16 = cudnn_is_bf16(x)};
    cudnn_lay_out(y, x->layout);
    return l;
}
static const int32_t *numbers_of(const struct layer_call *call) {
    return (const int32_t *)(const void *)call->add;
}
static void choose_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    cuda_choose_forward(layer, numbers_of(call), call->x, call->y);
}
static void choose_backward(void *layer, const struct layer_call *call) {
    if (call->dx) cuda_choose_backward(layer, numbers_of(call), call->dy, call->dx);
}
const struct layer_ops cudnn_chosen_rows = {choose_open, choose_forward, choose_backward, mem_free};
