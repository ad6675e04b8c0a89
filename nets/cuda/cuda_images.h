/* cuda_images.h: from the bytes of images to normalised floats on the GPU: the launcher of cuda_images.cu. */
#ifndef ST_NETS_CUDA_IMAGES_H
#define ST_NETS_CUDA_IMAGES_H

#include "base/image.h"
#include "nets/cuda/cuda_index.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x [n][c][h][w] = what data/loader.c makes of the same bytes, bit by bit (struct image_bytes; here all three arrays
 * are on the device). shape: that of x. */
void cuda_images(const struct cuda_shape *shape, const uint8_t *pixels, const struct image_cut *cut, const float *table,
                 float *x);

#ifdef __cplusplus
}
#endif

#endif
