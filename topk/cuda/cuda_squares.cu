/* cuda_squares.cu: one read and one write of an array, and sums of squares of its blocks. */
#include "base/cuda/cuda_device.h"
#include "topk/cuda/cuda_tile.h"
#include "topk/squares.h"

static_assert(int(SQUARE_LANES) == int(LANES), "a warp has the lanes of one block");

/* A warp for each block, lane i % 32 for its entry i. 4 bytes a lane, 128 in a row: blocks begin anywhere, and the
 * lanes' order of the sums is that of all stores. */
static __global__ void __launch_bounds__(TILE_THREADS)
    add_squares(float *x, const float *y, uint64_t n, uint64_t block, uint64_t blocks, double *square) {
    const uint32_t lane = threadIdx.x % LANES;
    const uint64_t warp = (uint64_t(blockIdx.x) * TILE_THREADS + threadIdx.x) / LANES;
    for (uint64_t b = warp; b < blocks; b += uint64_t(gridDim.x) * TILE_WARPS) {
        const uint64_t from = b * block, end = n - from < block ? n : from + block;
        double sum = 0;
#pragma unroll 4
        for (uint64_t i = from + lane; i < end; i += LANES) {
            const float value = __fadd_rn(x[i], y[i]);
            x[i] = value;
            sum = __fma_rn(double(value), double(value), sum);
        }
#pragma unroll
        for (uint32_t by = LANES / 2; by > 0; by /= 2) sum = __dadd_rn(sum, __shfl_down_sync(EVERY_LANE, sum, by));
        if (lane == 0) square[b] = sum;
    }
}

extern "C" void store_launch_add_squares(float *x, const float *y, uint64_t n, uint64_t block, double *square) {
    const uint64_t blocks = (n + block - 1) / block;
    LAUNCH(add_squares, cuda_grid(8, (blocks + TILE_WARPS - 1) / TILE_WARPS), TILE_THREADS, 0, cuda_stream(), x, y, n,
           block, blocks, square);
    CUDA_CALL(cudaGetLastError());
}
