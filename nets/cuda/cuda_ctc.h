/* cuda_ctc.h: CTC's loss (nets/ctc.h) on the GPU: the launcher of cuda_ctc.cu. */
#ifndef ST_NETS_CUDA_CTC_H
#define ST_NETS_CUDA_CTC_H

#include <stddef.h>

#include "nets/ctc.h"
#include "nets/cuda/cuda_loss.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Doubles of scratch for an utterance of so many steps, classes and labels. */
ST_HD size_t cuda_ctc_scratch(int steps, int classes, int labels) {
    const size_t S = 2 * (size_t)labels + 1;
    return (size_t)steps * ((size_t)classes + S) + 2 * S;
}

/* label [batch][stride], fed: as they came in; path [batch][steps]; scratch: cuda_ctc_scratch doubles for each
 * utterance, with `stride` labels; row_loss, row_count [batch]; done: 0 between launches. All on the device but
 * `result`, which may be page-locked memory of the host. */
struct cuda_ctc_call {
    struct ctc_call call;
    const struct cuda_loss_fed *fed;
    const int32_t *label;
    int stride;
    int32_t *path;
    double *scratch;
    double *row_loss;
    int32_t *row_count;
    unsigned *done;
    struct cuda_loss_result *result;
};

void cuda_ctc(const struct cuda_ctc_call *ctc);

#ifdef __cplusplus
}
#endif

#endif
