/* cuda_block.h: what the threads of a block find together. Empty where no compiler for kernels reads it. */
#ifndef ST_NETS_CUDA_BLOCK_H
#define ST_NETS_CUDA_BLOCK_H

#include "base/cuda/cuda_kernel.h"

#if defined(ST_HOSTCUDA) || defined(__CUDACC__)

/* The same on every thread of a block of N, a power of two: their numbers added up by halves. */
template <int N> static __device__ double sum_of_block(double mine) {
    __shared__ double sum[N];
    sum[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half = N / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sum[threadIdx.x] += sum[threadIdx.x + half];
        __syncthreads();
    }
    const double found = sum[0];
    __syncthreads();
    return found;
}

#endif

#endif
