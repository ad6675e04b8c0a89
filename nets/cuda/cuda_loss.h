/* cuda_loss.h: softmax cross-entropy and top-1 on the GPU: the launcher of cuda_loss.cu. */
#ifndef ST_NETS_CUDA_LOSS_H
#define ST_NETS_CUDA_LOSS_H

#include <stdbool.h>
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

/* What comes in with the labels of a pass: as backend_ops.loss says. Rows from `valid` on do not count. */
struct cuda_loss_fed {
    double over;
    int32_t valid;
};

/* All on the device, but for `result`, which may be page-locked memory of the host. What changes from pass to pass is
 * read there, so that a recorded pass can be repeated: fed, and label [n], below 0: the row does not count. row_loss,
 * row_correct: scratch [n]; done: scratch, 0 between launches. dlogits [n][classes]: NULL where it is not asked for,
 * may be logits; rows from `valid` on are left alone. is_bf16: the elements of logits and dlogits, else float. pitch:
 * elements from one row of both to the next; behind its classes a row of dlogits becomes 0. Many classes are read and
 * written 16 bytes at once where all rows begin at multiples of that, else one by one. */
struct cuda_loss_call {
    int n, classes, pitch;
    bool is_bf16;
    const struct cuda_loss_fed *fed;
    const void *logits;
    const int32_t *label;
    void *dlogits;
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
