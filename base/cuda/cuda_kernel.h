/* cuda_kernel.h: what every .cu file includes first. The kernels are CUDA C++ and run in two ways:
 *
 * 1. compiled by nvcc, on a GPU;
 * 2. compiled by g++ -x c++ -DST_HOSTCUDA, under the emulator of tests/hostcuda, on any machine (see emulate.h for the
 *    subset of the language that it knows).
 *
 * What the language writes in a way that g++ cannot read, or in PTX, has a name here:
 *
 *        static __global__ void add(float *sum, const float *x, unsigned n) { ... }
 *        LAUNCH(add, (n + 255) / 256, 256, 0, stream, sum, x, n);
 *        LAUNCH((tile<4, true>), dim3(w, h), 128, bytes, stream, ...);   // a template: in parentheses
 *
 *        SHARED_DYNAMIC(float, row);        // float *row: the dynamic shared memory of the launch, 16-byte aligned
 *
 * LAUNCH does not say whether it worked: cudaGetLastError() does, as after <<<>>>. It tells the timer of the plugin
 * (base/cuda/cuda_timer.c); a program of its own defines LAUNCHED(kernel) as (void)0 before it includes this.
 *
 * The file is empty where neither compiler reads it, so that a tool for C may look at all headers. */
#ifndef ST_BASE_CUDA_KERNEL_H
#define ST_BASE_CUDA_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/cuda/cuda_hd.h"

#if !defined(LAUNCHED) && (defined(ST_HOSTCUDA) || defined(__CUDACC__))
#include "base/cuda/cuda_device.h"
#define LAUNCHED(kernel) cuda_timer_mark(kernel)
#endif

#if defined(ST_HOSTCUDA)

#include "tests/hostcuda/emulate.h"

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                         \
    do {                                                                                                               \
        hostcuda_launch(#kernel, kernel, dim3(grid), dim3(block), shared_bytes, stream, ##__VA_ARGS__);                \
        LAUNCHED(#kernel);                                                                                             \
    } while (0)

#define SHARED_DYNAMIC(type, name) type *name = static_cast<type *>(hostcuda_shared_dynamic())

static inline uint64_t load_relaxed(const uint64_t *word) {
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}
static inline void store_relaxed(uint64_t *word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

#elif defined(__CUDACC__)

#include <cuda_runtime.h>

#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                                         \
    do {                                                                                                               \
        kernel<<<grid, block, shared_bytes, stream>>>(__VA_ARGS__);                                                    \
        LAUNCHED(#kernel);                                                                                             \
    } while (0)

#define SHARED_DYNAMIC(type, name)                                                                                     \
    extern __shared__ __align__(16) unsigned char st_shared_dynamic[];                                                 \
    type *name = reinterpret_cast<type *>(st_shared_dynamic)

/* A word through which blocks of one grid pass a message that is complete in itself. No fence is needed, since no
 * other write has to be visible with it. */
static __device__ __forceinline__ uint64_t load_relaxed(const uint64_t *word) {
    uint64_t value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ void store_relaxed(uint64_t *word, uint64_t value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

#endif

#if defined(ST_HOSTCUDA) || defined(__CUDACC__)

/* For data that is read or written once, so that it does not evict from the cache what is used again. */
static __device__ __forceinline__ float4 load_streaming(const float4 *from) {
    return __ldcs(from);
}
static __device__ __forceinline__ void store_streaming(float4 *to, float4 value) {
    __stcs(to, value);
}

/* Is this block the last of the `blocks` that share *done to come here? If so, it may read what the others have
 * written, with __ldcg. *done is 0 when the kernel begins, and again when it ends. Reached by all threads of every
 * block, once. */
static __device__ __forceinline__ bool block_is_last_of(uint32_t blocks, uint32_t *done) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(done, 1u) == blocks - 1;
        if (last) *done = 0;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* The same of all blocks of the grid. */
static __device__ __forceinline__ bool block_is_last(uint32_t *done) {
    return block_is_last_of(gridDim.x * gridDim.y, done);
}

#endif

#endif
