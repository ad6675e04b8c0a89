/* cuda_embedding.h: rows of a table by token, on the GPU: the launchers of cuda_embedding.cu. */
#ifndef ST_NETS_CUDA_EMBEDDING_H
#define ST_NETS_CUDA_EMBEDDING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y [rows][features] = w [token of the row][features] [+ add [rows][features]]; add: NULL where there is none. */
void cuda_embedding_forward(uint32_t rows, uint32_t features, const int32_t *token, const float *w, const float *add,
                            float *y);
/* dw [tokens][features] += dy of the token's rows, one after the other. */
void cuda_embedding_backward(uint32_t rows, uint32_t features, const int32_t *token, const float *dy, float *dw);

#ifdef __cplusplus
}
#endif

#endif
