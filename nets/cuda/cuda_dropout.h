/* cuda_dropout.h: dropout on the GPU: the launcher of cuda_dropout.cu. */
#ifndef ST_NETS_CUDA_DROPOUT_H
#define ST_NETS_CUDA_DROPOUT_H

#include "nets/cuda/cuda_index.h"
#include "nets/dropout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* to = from times the factors of this step. step: on the device, the low and the high half. Both tensors have this
 * shape; is_bf16: so are their elements. */
void cuda_dropout(const struct dropout *how, const uint32_t *step, const struct cuda_shape *shape, const void *from,
                  void *to, bool is_bf16);

#ifdef __cplusplus
}
#endif

#endif
