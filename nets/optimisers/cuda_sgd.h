/* cuda_sgd.h: momentum SGD on the GPU: the launcher of cuda_sgd.cu. */
#ifndef ST_NETS_CUDA_SGD_H
#define ST_NETS_CUDA_SGD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* v = mu v + (g + wd w);  w = w - lr v, each operation rounded by itself. w, v, g: device, [n]. *first: device; the
 * lowest index of a new w that is not finite, UINT32_MAX where there is none. n < UINT32_MAX. */
void cuda_sgd_step(float *w, float *v, const float *g, size_t n, float mu, float wd, float lr, uint32_t *first);
/* v = mu v + wd w;  w = w - lr (g + v), likewise. */
void cuda_sgd_decay_step(float *w, float *v, const float *g, size_t n, float mu, float wd, float lr, uint32_t *first);

#ifdef __cplusplus
}
#endif

#endif
