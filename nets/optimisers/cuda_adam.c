/* cuda_adam.c: the row of nets/optimisers/adam.c for parameters in the memory of a GPU, with the same roundings. */
#include "nets/optimisers/cuda_adam.h"

#include "nets/cudnn/backend_cudnn.h"
#include "nets/optimisers/cuda_optimiser.h"

static size_t step(struct optimiser *o, float *param, const float *grad, double lr) {
    const struct adam_rates r = adam_rates_of(o, lr);
    cuda_adam_step(param, o->state, grad, o->n, &r, cuda_optimiser_answer(o));
    return cuda_optimiser_given(o);
}

const struct optimiser_ops cuda_optimiser_adam = {
    .name = "adam",
    .summary = ADAM_SUMMARY,
    .moment = ADAM_MOMENTS,
    .step = step,
    .settle = cuda_optimiser_settle,
    .close = cuda_optimiser_close,
};
