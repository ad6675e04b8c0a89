/* cuda_adamw.c: the row of nets/optimisers/adamw.c for parameters in the memory of a GPU, with the same roundings. */
#include "nets/optimisers/cuda_adam.h"

#include "nets/cudnn/backend_cudnn.h"
#include "nets/optimisers/cuda_optimiser.h"

static uint32_t rule_of(const struct slice *slice) {
    return adamw_decays(slice);
}

static size_t step(struct optimiser *o, float *param, const float *grad, double lr) {
    const struct adamw_rates r = adamw_rates_of(o, lr);
    uint32_t chunks;
    uint32_t *answer = cuda_optimiser_answer(o);
    const struct cuda_update_chunk *chunk = cuda_optimiser_chunks(o, rule_of, &chunks);
    cuda_adamw_step(param, o->state, grad, o->n, &r, chunk, chunks, answer);
    return cuda_optimiser_given(o);
}

const struct optimiser_ops cuda_optimiser_adamw = {
    .name = "adamw",
    .summary = ADAMW_SUMMARY,
    .moment = ADAM_MOMENTS,
    .step = step,
    .settle = cuda_optimiser_settle,
    .close = cuda_optimiser_close,
};
