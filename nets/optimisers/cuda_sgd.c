/* cuda_sgd.c: the row of nets/optimisers/sgd.c for parameters in the memory of a GPU, with the same roundings. */
#include "nets/optimisers/cuda_sgd.h"

#include "nets/cudnn/backend_cudnn.h"
#include "nets/optimisers/cuda_optimiser.h"

static size_t step(struct optimiser *o, float *param, const float *grad, double lr) {
    const float mu = (float)o->setup.momentum, wd = (float)o->setup.weight_decay;
    (o->setup.gradient_has_momentum ? cuda_sgd_decay_step : cuda_sgd_step)(param, o->state, grad, o->n, mu, wd,
                                                                           (float)lr, cuda_optimiser_answer(o));
    return cuda_optimiser_given(o);
}

const struct optimiser_ops cuda_optimiser_sgd = {
    .name = "sgd",
    .summary = "SGD with momentum and weight decay: v = mu v + (g + wd w), w = w - lr v",
    .moment = {{.name = "velocity"}},
    .step = step,
    .settle = cuda_optimiser_settle,
    .close = cuda_optimiser_close,
};
