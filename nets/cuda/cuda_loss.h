/* cuda_loss.h: softmax cross-entropy and top-1 on the GPU: the launcher of cuda_loss.cu. */
#ifndef ST_NETS_CUDA_LOSS_H
#define ST_NETS_CUDA_LOSS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As struct net_result. */
struct cuda_loss_result {
    double loss;
    int32_t correct, count;
};

/* All on the device, but for `result`, which may be page-locked memory of the host. label: [n + 1], the labels and then
 * how many rows count, so that a recorded pass can be repeated with others. row_loss, row_correct: scratch [n]; done:
 * scratch, 0 between launches. dlogits [n][classes]: NULL where it is not asked for; rows that do not count are left
 * alone. over: as backend_ops.loss says. */
struct cuda_loss_call {
    int n, classes;
    double over;
    const float *logits;
    const int32_t *label;
    float *dlogits;
    double *row_loss;
    int32_t *row_correct;
    unsigned *done;
    struct cuda_loss_result *result;
};

void cuda_loss(const struct cuda_loss_call *loss);

#ifdef __cplusplus
}
#endif

#endif
