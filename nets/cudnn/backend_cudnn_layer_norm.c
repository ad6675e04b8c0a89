/* backend_cudnn_layer_norm.c: layer normalisation on the GPU by kernels of ours, of rows as they come. */
#include "base/mem.h"
#include "nets/cuda/cuda_layer_norm.h"
#include "nets/cudnn/backend_cudnn.h"

struct layer_norm {
    struct cudnn_backend *backend;
    struct cuda_layer_norm norm;
};

static void *open_layer_norm(void *backend, const struct layer_spec *spec, const struct tensor *x,
                             const struct tensor *add, struct tensor *y) {
    (void)add;
    if (!cudnn_are_rows(x)) die("a layer normalisation needs rows");
    const struct cuda_shape shape = cudnn_shape(x);
    const uint32_t rows = shape.images, features = shape.channels * shape.positions;
    struct layer_norm *l = mem_zalloc(1, sizeof *l, "a layer normalisation");
    l->backend = backend;
    cuda_layer_norm_plan(&l->norm, rows, features, (float)spec->layer_norm.epsilon, spec->layer_norm.bias,
                         cudnn_is_bf16(x));
    l->norm.mean = cuda_alloc(2 * rows * sizeof(float), "the moments of a layer normalisation");
    l->norm.inverse = l->norm.mean + rows;
    cudnn_need_workspace(backend, cuda_layer_norm_scratch(&l->norm) * sizeof(double));
    cudnn_lay_out(y, x->layout);
    return l;
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct layer_norm *l = layer;
    cuda_layer_norm_forward(&l->norm, call->x, call->param, call->y);
}

static void backward(void *layer, const struct layer_call *call) {
    const struct layer_norm *l = layer;
    cuda_layer_norm_backward(&l->norm, call->x, call->dy, call->param, call->dx, call->adds, call->dparam,
                             l->backend->workspace);
}

static void close_layer_norm(void *layer) {
    struct layer_norm *l = layer;
    cuda_free(l->norm.mean);
    mem_free(l);
}

const struct layer_ops cudnn_layer_norm = {open_layer_norm, forward, backward, close_layer_norm};
