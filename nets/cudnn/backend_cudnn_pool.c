/* backend_cudnn_pool.c: the largest value of each window, by cuDNN. CUDNN_POOLING_MAX_DETERMINISTIC, whose backward
 * pass gives the same bits every time; which of several equal elements gets the gradient is the library's affair. */
#include "base/mem.h"
#include "nets/cudnn/backend_cudnn.h"

struct pooling {
    const struct cudnn_backend *backend;
    cudnnPoolingDescriptor_t window;
    cudnnTensorDescriptor_t x, y;
};

static void *open_pooling(void *backend, const struct layer_spec *spec, const struct tensor *x,
                          const struct tensor *add, struct tensor *y) {
    (void)add;
    struct pooling *p = mem_zalloc(1, sizeof *p, "a pooling layer");
    p->backend = backend;
    cudnn_lay_out(y, x->layout);
    (void)cudnn_shape(x), (void)cudnn_shape(y); /* neither is too large */
    p->x = cudnn_describe(x);
    p->y = cudnn_describe(y);
    CUDNN_CALL(cudnnCreatePoolingDescriptor(&p->window));
    CUDNN_CALL(cudnnSetPooling2dDescriptor(p->window, CUDNN_POOLING_MAX_DETERMINISTIC, CUDNN_PROPAGATE_NAN,
                                           spec->pool.kernel, spec->pool.kernel, spec->pool.pad, spec->pool.pad,
                                           spec->pool.stride, spec->pool.stride));
    return p;
}

static void forward(void *layer, const struct layer_call *call, bool training) {
    (void)training;
    const struct pooling *p = layer;
    const float one = 1, zero = 0;
    CUDNN_CALL(cudnnPoolingForward(p->backend->cudnn, p->window, &one, p->x, call->x, &zero, p->y, call->y));
}

static void backward(void *layer, const struct layer_call *call) {
    const struct pooling *p = layer;
    const float one = 1, zero = 0;
    if (!call->dx) return;
    CUDNN_CALL(cudnnPoolingBackward(p->backend->cudnn, p->window, &one, p->y, call->y, p->y, call->dy, p->x, call->x,
                                    &zero, p->x, call->dx));
}

static void close_pooling(void *layer) {
    struct pooling *p = layer;
    CUDNN_CALL(cudnnDestroyPoolingDescriptor(p->window));
    CUDNN_CALL(cudnnDestroyTensorDescriptor(p->x));
    CUDNN_CALL(cudnnDestroyTensorDescriptor(p->y));
    mem_free(p);
}

const struct layer_ops cudnn_pooling = {open_pooling, forward, backward, close_pooling};
