/* cuda_sgd.c: the row of nets/sgd.c for parameters in the memory of a GPU, with the same roundings. */
#include "nets/cuda_sgd.h"

#include "base/cuda_device.h"
#include "base/error.h"
#include "base/mem.h"
#include "nets/backend_cudnn.h"
#include "nets/optimiser.h"

/* The way of the answer to the host: one word on the device, one in page-locked memory. */
struct answer {
    uint32_t *device, *host;
};

static struct answer *open_answer(void) {
    struct answer *a = mem_zalloc(1, sizeof *a, "the optimiser's answer");
    a->host = mem_pinned_alloc(1, sizeof *a->host, "the optimiser's answer");
    a->device = cuda_alloc(sizeof *a->device, "the optimiser's answer");
    return a;
}

static void close_answer(struct optimiser *o) {
    struct answer *a = o->own;
    cuda_free(a->device);
    mem_pinned_free(a->host);
    mem_free(a);
    o->own = NULL;
}

static size_t step(struct optimiser *o, float *param, const float *grad, double lr) {
    if (o->n >= UINT32_MAX) die("an optimiser of %zu parameters; a GPU takes fewer than 2^32 - 1", o->n);
    if (!o->own) o->own = open_answer();
    const struct answer *a = o->own;
    cuda_sgd_step(param, o->state, grad, o->n, (float)o->setup.momentum, (float)o->setup.weight_decay, (float)lr,
                  a->device);
    CUDA_CALL(cudaMemcpyAsync(a->host, a->device, sizeof *a->host, cudaMemcpyDeviceToHost, cuda_stream()));
    cuda_wait();
    return *a->host == UINT32_MAX ? o->n : *a->host;
}

const struct optimiser_ops cuda_optimiser_sgd = {
    .name = "sgd",
    .summary = "SGD with momentum and weight decay: v = mu v + (g + wd w), w = w - lr v",
    .states = 1,
    .step = step,
    .close = close_answer,
};
