/* backend_cudnn_dropout.c: dropout on the GPU by a kernel of ours, because cuDNN's draws numbers of its own. The number
 * of the step lies on the device, so a recorded pass that is repeated drops other elements each time. */
#include "base/mem.h"
#include "nets/cuda/cuda_dropout.h"
#include "nets/cudnn/backend_cudnn.h"

struct dropping {
    const struct cudnn_backend *backend;
    struct dropout how;
    struct cuda_shape shape;
    bool is_bf16;
    size_t bytes;
};

static void *open_dropout(void *backend, const struct layer_spec *spec, const struct tensor *x,
                          const struct tensor *add, struct tensor *y) {
    (void)add;
    struct dropping *l = mem_zalloc(1, sizeof *l, "a dropout layer");
    l->backend = backend;
    l->how = dropout_of(l->backend->dropout_seed, spec->number, spec->dropout.drop);
    l->shape = cudnn_shape(x);
    l->is_bf16 = cudnn_is_bf16(x);
    cudnn_lay_out(y, x->layout);
    l->bytes = y->floats * sizeof(float);
    return l;
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    const struct dropping *l = layer;
    if (training)
        cuda_dropout(&l->how, cudnn_step(l->backend), &l->shape, call->x, call->y, l->is_bf16);
    else
        CUDA_GIVE(cudaMemcpyAsync(call->y, call->x, l->bytes, cudaMemcpyDeviceToDevice, cuda_stream()));
}

static void backward(void *layer, const struct layer_call *call) {
    const struct dropping *l = layer;
    if (call->dx) cuda_dropout(&l->how, cudnn_step(l->backend), &l->shape, call->dy, call->dx, l->is_bf16);
}

const struct layer_ops cudnn_dropout = {open_dropout, forward, backward, mem_free};
