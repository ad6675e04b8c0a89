/* adamw.c: Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019,
 * Algorithm 2), as torch.optim.AdamW has it: the decay is no part of the gradient and of its moments, and goes with the
 * learning rate of the step,
 *
 *     w = w - (lr wd w + lr M / (sqrt(V) + eps))                                 M, V: see adam.c
 *
 * The two changes are added up first: alone, the first is often less than half a unit in the last place of w.
 *
 * Only weights of two and more dimensions decay; biases, and scales and shifts of normalisations, have one. That is how
 * transformers are trained (public code of GPT-2 and BERT), and PyTorch leaves it to its user's parameter groups. */
#include "nets/cpu/cpu_update.h"
#include "nets/optimisers/adam.h"

static const void *rates_of(const void *both, const struct slice *slice) {
    return &((const struct adamw_rates *)both)->of[adamw_decays(slice)];
}

static size_t step(struct optimiser *o, float *param, const float *grad, double lr) {
    const struct adamw_rates r = adamw_rates_of(o, lr);
    return update_by_slice(o, param, grad, adam_chunk, rates_of, &r);
}

const struct optimiser_ops optimiser_adamw = {
    .name = "adamw",
    .summary = ADAMW_SUMMARY,
    .moment = ADAM_MOMENTS,
    .step = step,
    .options = OPTION_PART(adam_options),
    .lr = 0.001,
};
