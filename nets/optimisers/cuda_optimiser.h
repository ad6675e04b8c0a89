/* cuda_optimiser.h: what the rows of optimisers on a GPU share on the host: the way of their answer.
 *
 *        launch(..., cuda_optimiser_answer(o));   // lowers *answer to the first index that is not finite
 *        cuda_optimiser_given(o);
 *        ... .settle = cuda_optimiser_settle, .close = cuda_optimiser_close */
#ifndef ST_NETS_CUDA_OPTIMISER_H
#define ST_NETS_CUDA_OPTIMISER_H

#include <stddef.h>
#include <stdint.h>

#include "nets/cuda/cuda_chunk.h"
#include "nets/optimisers/optimiser.h"

/* Where the kernel puts its answer: a page-locked word of the host's, opened by the first step. It is UINT32_MAX as
 * long as no step went bad. */
uint32_t *cuda_optimiser_answer(struct optimiser *o);
/* Device, [*chunks]: all parameters, in order, each slice by the rule that rule_of says. After cuda_optimiser_answer;
 * made in the first step. */
const struct cuda_update_chunk *cuda_optimiser_chunks(struct optimiser *o, uint32_t (*rule_of)(const struct slice *),
                                                      uint32_t *chunks);
/* Behind the launch. Returns n: nothing is known yet. */
size_t cuda_optimiser_given(struct optimiser *o);
size_t cuda_optimiser_settle(struct optimiser *o);
void cuda_optimiser_close(struct optimiser *o);

#endif
