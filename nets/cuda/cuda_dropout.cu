/* cuda_dropout.cu: see cuda_dropout.h. Where a tensor is canonical, a thread has four elements side by side, which
 * share a block of random numbers; where channels come last, those four lie apart (four positions of one channel), so
 * that each element draws a block of its own, and neighbouring threads still read neighbouring elements. */
#include "nets/cuda/cuda_dropout.h"

#include "base/cuda/cuda_device.h"
#include "nets/cuda/cuda_values.h"

enum { THREADS = 256, BLOCKS_EACH = 8, SIDE_BY_SIDE = 4 };

template <class T>
static __global__ void drop_canonical(dropout how, const uint32_t *step, uint32_t n, const T *from, T *to) {
    typedef vector_of<T, SIDE_BY_SIDE> vector;
    const uint32_t low = step[0], high = step[1], whole = n / SIDE_BY_SIDE, stride = gridDim.x * THREADS;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i <= whole; i += stride) {
        const dropout_factors factors = dropout_block(&how, low, high, i);
        if (i < whole) {
            vector v = ((const vector *)from)[i];
            for (int l = 0; l < SIDE_BY_SIDE; l++) v.value[l] = stored<T>(load(v.value[l]) * factors.of[l]);
            ((vector *)to)[i] = v;
        } else {
            for (uint32_t l = 0; l < n - whole * SIDE_BY_SIDE; l++)
                to[whole * SIDE_BY_SIDE + l] = stored<T>(load(from[whole * SIDE_BY_SIDE + l]) * factors.of[l]);
        }
    }
}

template <class T>
static __global__ void drop_last(dropout how, const uint32_t *step, cuda_shape shape, uint32_t n, const T *from,
                                 T *to) {
    const uint32_t low = step[0], high = step[1];
    cuda_shape canonical = shape;
    canonical.last = false;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
        const uint32_t element = cuda_place(&canonical, cuda_element_at(&shape, i));
        const dropout_factors factors = dropout_block(&how, low, high, element / 4);
        const uint32_t which = element % 4;
        const float factor = which < 2 ? (which == 0 ? factors.of[0] : factors.of[1])
                                       : (which == 2 ? factors.of[2] : factors.of[3]); /* all stay in registers */
        to[i] = stored<T>(load(from[i]) * factor);
    }
}

template <class T>
static void launch(const struct dropout *how, const uint32_t *step, const cuda_shape *shape, const T *from, T *to) {
    const uint32_t n = cuda_elements(shape);
    const bool last =
        shape->last && shape->positions > 1; /* rows lie in the canonical order whatever they are called */
    const size_t threads = last ? (size_t)n : (size_t)n / SIDE_BY_SIDE + 1;
    const unsigned grid = cuda_grid(BLOCKS_EACH, (threads + THREADS - 1) / THREADS);
    if (last)
        LAUNCH(drop_last<T>, grid, THREADS, 0, cuda_stream(), *how, step, *shape, n, from, to);
    else
        LAUNCH(drop_canonical<T>, grid, THREADS, 0, cuda_stream(), *how, step, n, from, to);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_dropout(const struct dropout *how, const uint32_t *step, const struct cuda_shape *shape,
                             const void *from, void *to, bool is_bf16) {
    if (is_bf16)
        launch(how, step, shape, (const bf16 *)from, (bf16 *)to);
    else
        launch(how, step, shape, (const float *)from, (float *)to);
}
