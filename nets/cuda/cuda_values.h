/* cuda_values.h: elements of tensors in kernels: one at a time or sixteen bytes at once, always computed with as
 * floats. Empty where no compiler for kernels reads it. */
#ifndef ST_NETS_CUDA_VALUES_H
#define ST_NETS_CUDA_VALUES_H

#include "base/cuda/cuda_kernel.h"
#include "nets/cuda/cuda_index.h"

#if defined(ST_HOSTCUDA) || defined(__CUDACC__)

/* V elements side by side, aligned to their size: one access where V elements are 16 bytes. */
template <class T, int V> struct alignas(sizeof(T) * V) vector_of { T value[V]; };

static __device__ __forceinline__ float load(float from) {
    return from;
}
static __device__ __forceinline__ float load(bf16 from) {
    return bf16_value(from);
}

template <class T> static __device__ __forceinline__ T stored(float value);
template <> __device__ __forceinline__ float stored<float>(float value) {
    return value;
}
template <> __device__ __forceinline__ bf16 stored<bf16>(float value) {
    return bf16_of(value);
}

#endif

#endif
