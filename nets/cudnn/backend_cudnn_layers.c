/* backend_cudnn_layers.c: the layers that are bound by memory, over the kernels of cuda_*.cu, and the linear layer by
 * cuBLAS. */
#include "base/mem.h"
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

/* -- linear layer: x [N][I], w [O][I], b [O], y [N][O] ------------------------------------------------------------- */

struct linear {
    const struct cudnn_backend *backend;
    struct tensor x;
    int I, O;
    bool bias;
};

static void *linear_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                         struct tensor *y) {
    (void)add;
    if (x->layout != LAYOUT_CANONICAL) die("a linear layer needs its input in the canonical layout");
    struct linear *l = mem_zalloc(1, sizeof *l, "a linear layer");
    *l = (struct linear){.backend = backend, .x = *x, .I = x->c * x->h * x->w, .O = y->c, .bias = spec->linear.bias};
    cudnn_lay_out(y, LAYOUT_CANONICAL);
    return l;
}

/* C [m][n] = op(A) op(B) [+ C] over k, row-major. To cuBLAS, which goes down columns, a row-major matrix is its
 * transpose, so that C^T = op(B)^T op(A)^T is asked for. */
static void product(const struct linear *l, bool turn_a, bool turn_b, int m, int n, int k, const float *A,
                    const float *B, bool adds, float *C) {
    const float one = 1, beta = adds ? 1 : 0;
    const cublasComputeType_t compute =
        net_precision_is_f32(l->backend->precision) ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
    CUBLAS_CALL(cublasGemmEx(l->backend->cublas, turn_b ? CUBLAS_OP_T : CUBLAS_OP_N, turn_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                             n, m, k, &one, B, CUDA_R_32F, turn_b ? k : n, A, CUDA_R_32F, turn_a ? m : k, &beta, C,
                             CUDA_R_32F, n, compute, CUBLAS_GEMM_DEFAULT));
}

static int rows_of(const struct linear *l, const struct layer_call *call) {
    return tensor_in_pass(&l->x, call).n;
}

static const float *bias_of(const struct linear *l, const float *param) {
    return param + (size_t)l->O * (size_t)l->I;
}

/* y = x w^T [+ b] */
static void linear_forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct linear *l = layer;
    const int N = rows_of(l, call);
    product(l, false, true, N, l->O, l->I, call->x, call->param, false, call->y);
    if (l->bias) cuda_bias_add((uint32_t)N, (uint32_t)l->O, bias_of(l, call->param), call->y);
}

/* dw [+]= dy^T x,  db [+]= sum dy,  dx = dy w. A tied one's w and dw are an embedding's. */
static void linear_backward(void *layer, const struct layer_call *call) {
    const struct linear *l = layer;
    const int N = rows_of(l, call);
    product(l, true, false, l->O, l->I, N, call->dy, call->x, call->adds, call->dparam);
    if (l->bias)
        cuda_bias_gradient((uint32_t)N, (uint32_t)l->O, call->dy, call->adds,
                           call->dparam + (size_t)l->O * (size_t)l->I);
    if (call->dx) product(l, false, false, N, l->I, l->O, call->dy, call->param, false, call->dx);
}
const struct layer_ops cudnn_linear = {linear_open, linear_forward, linear_backward, mem_free};
