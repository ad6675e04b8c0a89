/* cuda_embedding.h: rows of a table by token, on the GPU: the launchers of cuda_embedding.cu. */
#ifndef ST_NETS_CUDA_EMBEDDING_H
#define ST_NETS_CUDA_EMBEDDING_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y [rows][features] = w [token of the row][features] [+ add [rows][features]]; add: NULL where there is none. is_bf16:
 * elements of add, y, dy, else float. */
void cuda_embedding_forward(uint32_t rows, uint32_t features, const int32_t *token, const float *w, const void *add,
                            void *y, bool is_bf16);
/* dw [tokens][features] += dy of the token's rows, one after the other. */
void cuda_embedding_backward(uint32_t rows, uint32_t features, const int32_t *token, const void *dy, float *dw,
                             bool is_bf16);

#ifdef __cplusplus
}
#endif

#endif
