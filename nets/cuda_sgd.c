/* cuda_sgd.c: the row of nets/sgd.c for parameters in the memory of a GPU, with the same roundings. */
#include "nets/cuda_sgd.h"

#include "base/cuda_device.h"
#include "base/error.h"
#include "base/mem.h"
#include "nets/backend_cudnn.h"
#include "nets/optimiser.h"

/* The way of the answer to the host: one word on the device, one in page-locked memory, opened with the first step of
 * this process and kept. */
static struct { uint32_t *device, *host; } answer;

static void open_answer(void) {
    if (answer.device) return;
    answer.host = mem_pinned_alloc(1, sizeof *answer.host, "the optimiser's answer");
    answer.device = cuda_alloc(sizeof *answer.device, "the optimiser's answer");
}

static size_t step(struct optimiser *o, float *param, const float *grad, double lr) {
    if (o->n >= UINT32_MAX) die("an optimiser of %zu parameters; a GPU takes fewer than 2^32 - 1", o->n);
    open_answer();
    cuda_sgd_step(param, o->state, grad, o->n, (float)o->setup.momentum, (float)o->setup.weight_decay, (float)lr,
                  answer.device);
    CUDA_CALL(cudaMemcpyAsync(answer.host, answer.device, sizeof *answer.host, cudaMemcpyDeviceToHost, cuda_stream()));
    cuda_wait();
    return *answer.host == UINT32_MAX ? o->n : *answer.host;
}

const struct optimiser_ops cuda_optimiser_sgd = {
    .name = "sgd",
    .summary = "SGD with momentum and weight decay: v = mu v + (g + wd w), w = w - lr v",
    .states = 1,
    .step = step,
};
