/* cuda_images.cu: see cuda_images.h. */
#include "nets/cuda/cuda_images.h"

#include "base/cuda/cuda_device.h"
#include "base/cuda/cuda_kernel.h"

enum { THREADS = 256, BLOCKS_EACH = 8, BYTES = 256 /* values of a byte */ };

static __global__ void images(cuda_shape shape, uint32_t n, const uint8_t *pixels, const image_cut *cuts,
                              const float *table, float *x) {
    for (uint32_t at = blockIdx.x * THREADS + threadIdx.x; at < n; at += gridDim.x * THREADS) {
        const cuda_element e = cuda_element_at(&shape, at);
        const image_cut cut = cuts[e.image];
        const uint32_t row = e.position / shape.width;
        const int32_t from = cuda_cut_source((int32_t)shape.height, (int32_t)shape.width, cut.down, cut.right, cut.flip,
                                             (int32_t)row, (int32_t)(e.position - row * shape.width));
        const uint8_t byte = from < 0 ? 0 : pixels[at - e.position + (uint32_t)from];
        x[at] = table[e.channel * BYTES + byte];
    }
}

extern "C" void cuda_images(const struct cuda_shape *shape, const uint8_t *pixels, const struct image_cut *cut,
                            const float *table, float *x) {
    const uint32_t n = cuda_elements(shape);
    LAUNCH(images, cuda_grid(BLOCKS_EACH, ((size_t)n + THREADS - 1) / THREADS), THREADS, 0, cuda_stream(), *shape, n,
           pixels, cut, table, x);
    CUDA_CALL(cudaGetLastError());
}
