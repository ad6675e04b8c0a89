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
 * Of rows that are bf16 so are y, dy, dx and a copy of the weights; their gradients are floats all the way. Where y has
 * a pitch the copy has as many rows, which are zero from O on: forward and back to data are products over the pitch,
 * for cuBLAS's fast kernels want every width to be a multiple of 16 bytes, too. Behind its columns y is zero then, and
 * dy may be any finite numbers. */

struct linear {
    const struct cudnn_backend *backend;
    struct tensor x;
    int I, O, pitch; /* pitch: of y */
    bool has_bias, is_bf16;
    void *w; /* the copy */
    struct cuda_bias bias;
};

/* Sums of columns as those of a convolution's channels: to them rows are images of one position, channels last. */
static void open_bias(struct linear *l, const struct tensor *y) {
    struct cuda_shape rows = cudnn_shape(y);
    rows.last = true;
    cuda_bias_plan(&l->bias, &rows, l->is_bf16);
    if (l->pitch != l->O) l->bias.walk.apart = (uint32_t)l->pitch; /* elements, one by one */
    cudnn_bias_memory(&l->bias);
}

static void open_weights(struct linear *l) {
    const size_t row = (size_t)l->I * sizeof(struct bf16), rows = (size_t)l->O, all = (size_t)l->pitch;
    l->w = cuda_alloc(all * row, "the weights of a linear layer");
    if (all > rows) CUDA_GIVE(cudaMemsetAsync((char *)l->w + rows * row, 0, (all - rows) * row, cuda_stream()));
}

static void *linear_open(void *backend, const struct layer_spec *spec, const struct tensor *x, const struct tensor *add,
                         struct tensor *y) {
    (void)add;
    if (!cudnn_are_rows(x)) die("a linear layer needs rows, or its input in the canonical layout");
    struct linear *l = mem_zalloc(1, sizeof *l, "a linear layer");
    *l = (struct linear){.backend = backend, .x = *x, .I = x->c * x->h * x->w, .O = y->c};
    l->has_bias = spec->linear.bias;
    l->is_bf16 = cudnn_is_bf16(x);
    cudnn_lay_out(y, x->layout);
    if (spec->gives_logits) cudnn_spread_rows(y);
    l->pitch = cudnn_pitch(y);
    if (l->is_bf16) open_weights(l);
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

/* A row-major matrix, a row `row` elements long; multiplied as it is or turned. */
struct operand {
    const void *at;
    int row;
    bool turned;
};
static struct operand plain(const void *at, int row) {
    return (struct operand){at, row, false};
}
static struct operand turned(const void *at, int row) {
    return (struct operand){at, row, true};
}

/* C [m][n] = op(A) op(B) over k, row-major. To cuBLAS, which goes down columns, a row-major matrix is its transpose, so
 * that C^T = op(B)^T op(A)^T is asked for. */
struct product {
    int m, n, k;
    struct operand a, b;
    void *c;
    int row; /* of C */
    cudaDataType made;
    bool adds; /* C += */
};

static void multiply(const struct linear *l, const struct product *p) {
    const float one = 1, beta = p->adds ? 1 : 0;
    const bool whole = l->is_bf16 || net_precision_is_f32(l->backend->precision);
    const cublasComputeType_t compute = whole ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
    CUBLAS_CALL(cublasGemmEx(l->backend->cublas, p->b.turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                             p->a.turned ? CUBLAS_OP_T : CUBLAS_OP_N, p->n, p->m, p->k, &one, p->b.at, row_type(l),
                             p->b.row, p->a.at, row_type(l), p->a.row, &beta, p->c, p->made, p->row, compute,
                             CUBLAS_GEMM_DEFAULT));
}

static int rows_of(const struct linear *l, const struct layer_call *call) {
    return tensor_in_pass(&l->x, call).n;
}

/* Of the rows of this pass, which over frames may have fewer than the layer was opened for. */
static struct cuda_bias bias_of(const struct linear *l, const struct layer_call *call) {
    struct cuda_bias bias = l->bias;
    bias.walk.steps = (uint32_t)rows_of(l, call);
    return bias;
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
    if (l->is_bf16) cuda_weights_to_last((uint32_t)l->O, (uint32_t)l->I, 1, call->param, l->w, true);
    multiply(l, &(struct product){.m = rows_of(l, call),
                                  .n = l->pitch,
                                  .k = l->I,
                                  .a = plain(call->x, l->I),
                                  .b = turned(weights_of(l, call), l->I),
                                  .c = call->y,
                                  .row = l->pitch,
                                  .made = row_type(l)});
    if (!l->has_bias) return;
    const struct cuda_bias bias = bias_of(l, call);
    cuda_bias_forward(&bias, call->param + bias_at(l), call->y);
}

/* dw [+]= dy^T x,  db [+]= sum dy,  dx = dy w. A tied one's w and dw are an embedding's. */
static void linear_backward(void *layer, const struct layer_call *call) {
    const struct linear *l = layer;
    const int N = rows_of(l, call);
    multiply(l, &(struct product){.m = l->O,
                                  .n = l->I,
                                  .k = N,
                                  .a = turned(call->dy, l->pitch),
                                  .b = plain(call->x, l->I),
                                  .c = call->dparam,
                                  .row = l->I,
                                  .made = CUDA_R_32F,
                                  .adds = call->adds});
    if (l->has_bias) {
        const struct cuda_bias bias = bias_of(l, call);
        cuda_bias_backward(&bias, call->dy, call->adds, call->dparam + bias_at(l));
    }
    if (!call->dx) return;
    multiply(l, &(struct product){.m = N,
                                  .n = l->I,
                                  .k = l->pitch,
                                  .a = plain(call->dy, l->pitch),
                                  .b = plain(weights_of(l, call), l->I),
                                  .c = call->dx,
                                  .row = l->I,
                                  .made = row_type(l)});
}
const struct layer_ops cudnn_linear = {linear_open, linear_forward, linear_backward, linear_close};
