/* backend_cudnn_embedding.c: rows of a table by token, on the GPU, by kernels of ours. Floats, but where rows that are
 * bf16 join. */
#include "base/mem.h"
#include "nets/cuda/cuda_embedding.h"
#include "nets/cudnn/backend_cudnn.h"

struct embedding {
    uint32_t rows, features, vocabulary;
    bool is_bf16;
    bool shared; /* a linear layer's gradient is there already */
};

static void *open_embedding(void *backend, const struct layer_spec *spec, const struct tensor *x,
                            const struct tensor *add, struct tensor *y) {
    (void)backend;
    if (x->layout != LAYOUT_TOKENS) die("an embedding needs tokens");
    if (add && !cudnn_are_rows(add)) die("an embedding is added to rows");
    struct embedding *l = mem_zalloc(1, sizeof *l, "an embedding");
    *l = (struct embedding){(uint32_t)x->n, (uint32_t)y->c, (uint32_t)spec->embedding.vocabulary,
                            add && cudnn_is_bf16(add), spec->embedding.shared};
    cudnn_lay_out(y, add ? add->layout : LAYOUT_CANONICAL);
    (void)cudnn_shape(y); /* not too large */
    return l;
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct embedding *l = layer;
    cuda_embedding_forward(l->rows, l->features, layer_tokens(call), call->param, call->add, call->y, l->is_bf16);
}

/* The gradient of `add` is dy itself. */
static void backward(void *layer, const struct layer_call *call) {
    const struct embedding *l = layer;
    const size_t bytes = (size_t)l->vocabulary * l->features * sizeof *call->dparam;
    if (!call->adds && !l->shared) CUDA_GIVE(cudaMemsetAsync(call->dparam, 0, bytes, cuda_stream()));
    cuda_embedding_backward(l->rows, l->features, layer_tokens(call), call->dy, call->dparam, l->is_bf16);
}

const struct layer_ops cudnn_embedding = {open_embedding, forward, backward, mem_free};
