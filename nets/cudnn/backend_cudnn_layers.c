/* backend_cudnn_layers.c: the layers that are bound by memory, over the kernels of cuda_*.cu, and the linear layer by
 * cuBLAS. */
#include "base/mem.h"
#include "nets/cuda/cuda_bias.h"
#include "nets/cuda/cuda_layers.h"
#include "nets/cuda/cuda_norm.h"
#include "nets/cudnn/backend_cudnn.h"
#include "nets/frames.h"

/* -- normalisation ------------------------------------------------------------------------------------------------ */

/* One block for all of a layer's memory: first what has doubles. */
static void norm_memory(struct cuda_norm *norm) {
    const size_t c = norm->walk.shape.channels, parts = cuda_norm_parts(norm);
    const size_t bytes =
        (c + 2 * c * parts) * sizeof(double) + 5 * c * sizeof(float) + norm->walk.slabs * sizeof(unsigned);
    double *block = cuda_alloc(bytes, "the sums of a normalisation layer");
    struct cuda_norm_memory *m = &norm->memory;
    m->r = block;
    m->partial = m->r + c;
    m->a = (float *)(void *)(m->partial + 2 * c * parts);
    m->b = m->a + c;
    m->mean = m->b + c;
    m->p = m->mean + c;
    m->q = m->p + c;
    m->done = (unsigned *)(void *)(m->q + c);
    CUDA_GIVE(cudaMemsetAsync(block, 0, bytes, cuda_stream()));
}

static void *norm_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                       struct tensor *y) {
    (void)backend, (void)spec;
    if (add && add->layout != x->layout) die("a normalisation joins tensors of layouts %d, %d", x->layout, add->layout);
    const struct cuda_shape shape = cudnn_shape(x);
    struct cuda_norm *norm = mem_zalloc(1, sizeof *norm, "a normalisation layer");
    cuda_norm_plan(norm, &shape, cudnn_is_bf16(x), add != NULL);
    norm_memory(norm);
    cudnn_lay_out(y, x->layout);
    return norm;
}
static void norm_forward(void *layer, const struct layer_call *call, bool training) {
    cuda_norm_forward(layer, call->x, call->add, call->y, call->param, call->bias, call->state, training);
}
static void norm_backward(void *layer, const struct layer_call *call) {
    cuda_norm_backward(layer, call->x, call->y, call->dy, call->dy2, call->dx, call->param, call->dparam, call->adds);
}
static void norm_close(void *layer) {
    struct cuda_norm *norm = layer;
    cuda_free(norm->memory.r);
    mem_free(norm);
}
const struct layer_ops cudnn_normalisation = {norm_open, norm_forward, norm_backward, norm_close};

/* -- shortcut and average: they remember no more than their shapes ------------------------------------------------- */

struct plain {
    struct cuda_shape x, y;
    bool is_bf16; /* x's elements */
    uint32_t stride;
};

static struct plain *plain_open(const struct tensor *x, struct tensor *y, int layout) {
    struct plain *l = mem_zalloc(1, sizeof *l, "a layer");
    cudnn_lay_out(y, layout);
    l->x = cudnn_shape(x);
    l->y = cudnn_shape(y);
    l->is_bf16 = cudnn_is_bf16(x);
    return l;
}

static void *shortcut_open(void *backend, const struct layer_spec *spec, const struct tensor *x,
                           const struct tensor *add, struct tensor *y) {
    (void)backend, (void)add;
    struct plain *l = plain_open(x, y, x->layout);
    l->stride = (uint32_t)spec->shortcut.stride;
    return l;
}
static void shortcut_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct plain *l = layer;
    cuda_shortcut_forward(&l->x, &l->y, l->stride, call->x, call->y, l->is_bf16);
}
static void shortcut_backward(void *layer, const struct layer_call *call) {
    const struct plain *l = layer;
    if (call->dx) cuda_shortcut_backward(&l->x, &l->y, l->stride, call->dy, call->dx, l->is_bf16);
}
const struct layer_ops cudnn_shortcut = {shortcut_open, shortcut_forward, shortcut_backward, mem_free};

static void *average_open(void *backend, const struct layer_spec *spec, const struct tensor *x,
                          const struct tensor *add, struct tensor *y) {
    (void)backend, (void)spec, (void)add;
    return plain_open(x, y, LAYOUT_CANONICAL);
}
static void average_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct plain *l = layer;
    cuda_average_forward(&l->x, call->x, call->y, l->is_bf16);
}
static void average_backward(void *layer, const struct layer_call *call) {
    const struct plain *l = layer;
    if (call->dx) cuda_average_backward(&l->x, call->dy, call->dx, l->is_bf16);
}
const struct layer_ops cudnn_average = {average_open, average_forward, average_backward, mem_free};

/* -- linear layer: x [N][I], w [O][I], b [O], y [N][O] -------------------------------------------------------------
 *
 * Of rows that are bf16 so are y, dy, dx and a copy of the weights; their gradients are floats all the way. */

struct linear {
    const struct cudnn_backend *backend;
    struct tensor x;
    int I, O;
    bool has_bias, is_bf16;
    void *w; /* the copy */
    struct cuda_bias bias;
};

/* Sums of columns as those of a convolution's channels: to them rows are images of one position, channels last. */
static void open_bias(struct linear *l, const struct tensor *y) {
    struct cuda_shape rows = cudnn_shape(y);
    rows.last = true;
    cuda_bias_plan(&l->bias, &rows, l->is_bf16);
    cudnn_bias_memory(&l->bias);
}

static void *linear_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                         struct tensor *y) {
    (void)add;
    if (!cudnn_are_rows(x)) die("a linear layer needs rows, or its input in the canonical layout");
    struct linear *l = mem_zalloc(1, sizeof *l, "a linear layer");
    *l = (struct linear){.backend = backend, .x = *x, .I = x->c * x->h * x->w, .O = y->c};
    l->has_bias = spec->linear.bias;
    l->is_bf16 = cudnn_is_bf16(x);
    if (l->is_bf16)
        l->w = cuda_alloc((size_t)l->O * (size_t)l->I * sizeof(struct bf16), "the weights of a linear layer");
    cudnn_lay_out(y, x->layout);
    if (l->has_bias) open_bias(l, y);
    return l;
}
static void linear_close(void *layer) {
    struct linear *l = layer;
    cuda_free(l->w);
    cuda_free(l->bias.partial);
    mem_free(l);
}

static cudaDataType row_type(const struct linear *l) {
    return l->is_bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* C [m][n], of the type `made`, = op(A) op(B) [+ C] over k, row-major. To cuBLAS, which goes down columns, a row-major
 * matrix is its transpose, so that C^T = op(B)^T op(A)^T is asked for. */
static void product(const struct linear *l, bool turn_a, bool turn_b, int m, int n, int k, const void *A, const void *B,
                    bool adds, void *C, cudaDataType made) {
    const float one = 1, beta = adds ? 1 : 0;
    const bool plain = l->is_bf16 || net_precision_is_f32(l->backend->precision);
    const cublasComputeType_t compute = plain ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
    CUBLAS_CALL(cublasGemmEx(l->backend->cublas, turn_b ? CUBLAS_OP_T : CUBLAS_OP_N, turn_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                             n, m, k, &one, B, row_type(l), turn_b ? k : n, A, row_type(l), turn_a ? m : k, &beta, C,
                             made, n, compute, CUBLAS_GEMM_DEFAULT));
}

static int rows_of(const struct linear *l, const struct layer_call *call) {
    return tensor_in_pass(&l->x, call).n;
}

/* Behind the weights. */
static size_t bias_at(const struct linear *l) {
    return (size_t)l->O * (size_t)l->I;
}

static const void *weights_of(const struct linear *l, const struct layer_call *call) {
    return l->is_bf16 ? l->w : call->param;
}

/* y = x w^T [+ b] */
static void linear_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct linear *l = layer;
    const int N = rows_of(l, call);
    if (l->is_bf16) cuda_weights_to_last((uint32_t)l->O, (uint32_t)l->I, 1, call->param, l->w, true);
    product(l, false, true, N, l->O, l->I, call->x, weights_of(l, call), false, call->y, row_type(l));
    if (l->has_bias) cuda_bias_forward(&l->bias, call->param + bias_at(l), call->y);
}

/* dw [+]= dy^T x,  db [+]= sum dy,  dx = dy w. A tied one's w and dw are an embedding's. */
static void linear_backward(void *layer, const struct layer_call *call) {
    const struct linear *l = layer;
    const int N = rows_of(l, call);
    product(l, true, false, l->O, l->I, N, call->dy, call->x, call->adds, call->dparam, CUDA_R_32F);
    if (l->has_bias) cuda_bias_backward(&l->bias, call->dy, call->adds, call->dparam + bias_at(l));
    if (call->dx) product(l, false, false, N, l->I, l->O, call->dy, weights_of(l, call), false, call->dx, row_type(l));
}
const struct layer_ops cudnn_linear = {linear_open, linear_forward, linear_backward, linear_close};
