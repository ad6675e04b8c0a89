/* cuda_embedding.cu: see cuda_embedding.h. A block per row, whose threads share the columns. Backward, the block of the
 * first row of a token adds up all rows of it, so that their order is one and no block meets another; to find them each
 * block looks at the tokens, which are few beside the numbers that it adds. */
#include "nets/cuda/cuda_embedding.h"

#include "base/cuda/cuda_device.h"
#include "nets/cuda/cuda_values.h"

enum { THREADS = 256, BLOCKS_EACH = 8 };

template <class T>
static __global__ void take_rows(uint32_t rows, uint32_t features, const int32_t *token, const float *w, const T *add,
                                 T *y) {
    for (uint32_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const float *from = w + (size_t)token[row] * features;
        const T *more = add ? add + (size_t)row * features : NULL;
        T *to = y + (size_t)row * features;
        for (uint32_t c = threadIdx.x; c < features; c += THREADS)
            to[c] = stored<T>(more ? from[c] + load(more[c]) : from[c]);
    }
}

/* Does this token stand before `row`? The same answer for all threads. */
static __device__ bool came_before(uint32_t row, int32_t mine, const int32_t *token) {
    for (uint32_t begin = 0; begin < row; begin += THREADS) {
        const uint32_t i = begin + threadIdx.x;
        if (__syncthreads_or(i < row && token[i] == mine)) return true;
    }
    return false;
}

template <class T>
static __global__ void add_rows(uint32_t rows, uint32_t features, const int32_t *token, const T *dy, float *dw) {
    __shared__ bool hit[THREADS];
    for (uint32_t row = blockIdx.x; row < rows; row += gridDim.x) {
        const int32_t mine = token[row];
        float *to = dw + (size_t)mine * features;
        if (came_before(row, mine, token)) continue;
        for (uint32_t begin = row; begin < rows; begin += THREADS) {
            const uint32_t i = begin + threadIdx.x;
            hit[threadIdx.x] = i < rows && token[i] == mine;
            if (__syncthreads_or(hit[threadIdx.x])) {
                for (uint32_t k = 0; k < THREADS; k++) {
                    if (!hit[k]) continue;
                    const T *from = dy + (size_t)(begin + k) * features;
                    for (uint32_t c = threadIdx.x; c < features; c += THREADS) to[c] += load(from[c]);
                }
            }
            __syncthreads(); /* before the next hits are noted */
        }
    }
}

extern "C" void cuda_embedding_forward(uint32_t rows, uint32_t features, const int32_t *token, const float *w,
                                       const void *add, void *y, bool is_bf16) {
    const unsigned grid = cuda_grid(BLOCKS_EACH, rows);
    if (is_bf16)
        LAUNCH(take_rows<bf16>, grid, THREADS, 0, cuda_stream(), rows, features, token, w, (const bf16 *)add,
               (bf16 *)y);
    else
        LAUNCH(take_rows<float>, grid, THREADS, 0, cuda_stream(), rows, features, token, w, (const float *)add,
               (float *)y);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_embedding_backward(uint32_t rows, uint32_t features, const int32_t *token, const void *dy,
                                        float *dw, bool is_bf16) {
    const unsigned grid = cuda_grid(BLOCKS_EACH, rows);
    if (is_bf16)
        LAUNCH(add_rows<bf16>, grid, THREADS, 0, cuda_stream(), rows, features, token, (const bf16 *)dy, dw);
    else
        LAUNCH(add_rows<float>, grid, THREADS, 0, cuda_stream(), rows, features, token, (const float *)dy, dw);
    CUDA_CALL(cudaGetLastError());
}
