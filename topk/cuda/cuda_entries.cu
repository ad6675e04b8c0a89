/* cuda_entries.cu: work on every entry, and on entries whose indices come from the host. Products are rounded before
 * they are added, as on the CPU. */
#include "base/cuda/cuda_device.h"
#include "base/subnormal.h"
#include "topk/cuda/cuda_tile.h"

/* -- all of them --------------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(TILE_THREADS) add(float *x, const float *y, uint64_t n) {
    const struct span s = span_of(x, n);
    const uint32_t tiles = span_tiles(s);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        piece p;
        piece_take<true>(x, y, s, tile, p);
    }
}

static __global__ void __launch_bounds__(TILE_THREADS) scale(float *x, uint64_t n, float by) {
    const struct span s = span_of(x, n);
    const uint32_t tiles = span_tiles(s);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        piece p;
        piece_read(x, s, tile, p);
#pragma unroll
        for (uint32_t row = 0; row < TILE_ROWS; row++) {
            const uint64_t quad = quad_of(tile, threadIdx.x, row);
            const float4 scaled = make_float4(__fmul_rn(p.x[row][0], by), __fmul_rn(p.x[row][1], by),
                                              __fmul_rn(p.x[row][2], by), __fmul_rn(p.x[row][3], by));
            const float one[QUAD] = {scaled.x, scaled.y, scaled.z, scaled.w};
            if (p.present == TILE_ALL)
                store_streaming(reinterpret_cast<float4 *>(x - s.shift) + quad, scaled);
            else
                for (uint32_t place = 0; place < QUAD; place++)
                    if (p.present >> (QUAD * row + place) & 1) x[span_entry(s, quad, place)] = one[place];
        }
    }
}

/* Entries that lie side by side; 16 bytes at once where they begin at such a boundary. */
static __device__ __forceinline__ float4 quad_read(const float *from) {
    if ((uintptr_t)from % sizeof(float4) == 0) return load_streaming(reinterpret_cast<const float4 *>(from));
    return make_float4(from[0], from[1], from[2], from[3]);
}
static __device__ __forceinline__ void quad_write(float *to, float4 value) {
    if ((uintptr_t)to % sizeof(float4) == 0)
        store_streaming(reinterpret_cast<float4 *>(to), value);
    else
        to[0] = value.x, to[1] = value.y, to[2] = value.z, to[3] = value.w;
}

static __device__ __forceinline__ float velocity(float x, float y, float mu) {
    return flush_subnormal(__fadd_rn(__fmul_rn(mu, x), y));
}

static __device__ __forceinline__ float4 velocities(const float x[QUAD], float4 y, float mu) {
    return make_float4(velocity(x[0], y.x, mu), velocity(x[1], y.y, mu), velocity(x[2], y.z, mu),
                       velocity(x[3], y.w, mu));
}

static __global__ void __launch_bounds__(TILE_THREADS) momentum(float *x, float *y, uint64_t n, float mu) {
    const struct span s = span_of(x, n);
    const uint32_t tiles = span_tiles(s);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        piece p;
        float4 more[TILE_ROWS];
        piece_read(x, s, tile, p);
        const bool whole = p.present == TILE_ALL;
#pragma unroll
        for (uint32_t row = 0; row < TILE_ROWS; row++)
            if (whole) more[row] = quad_read(y - s.shift + quad_of(tile, threadIdx.x, row) * QUAD);
#pragma unroll
        for (uint32_t row = 0; row < TILE_ROWS; row++) {
            const uint64_t quad = quad_of(tile, threadIdx.x, row);
            if (whole) {
                const float4 both = velocities(p.x[row], more[row], mu);
                store_streaming(reinterpret_cast<float4 *>(x - s.shift) + quad, both);
                quad_write(y - s.shift + quad * QUAD, both);
                continue;
            }
            for (uint32_t place = 0; place < QUAD; place++) {
                if (!(p.present >> (QUAD * row + place) & 1)) continue;
                const uint64_t i = span_entry(s, quad, place);
                x[i] = y[i] = velocity(p.x[row][place], y[i], mu);
            }
        }
    }
}

/* More blocks than run at once: the GPU hands them out as others end, which evens out the last round. */
static unsigned grid_for(const float *x, uint64_t n) {
    return cuda_grid(32, span_tiles(span_of(x, n)));
}

extern "C" void store_launch_add(float *x, const float *y, uint64_t n) {
    LAUNCH(add, grid_for(x, n), TILE_THREADS, 0, cuda_stream(), x, y, n);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void store_launch_scale(float *x, uint64_t n, float by) {
    LAUNCH(scale, grid_for(x, n), TILE_THREADS, 0, cuda_stream(), x, n, by);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void store_launch_momentum(float *x, float *y, uint64_t n, float mu) {
    LAUNCH(momentum, grid_for(x, n), TILE_THREADS, 0, cuda_stream(), x, y, n, mu);
    CUDA_CALL(cudaGetLastError());
}

/* -- some of them -------------------------------------------------------------------------------------------------- */

/* The loop of a kernel with a thread for each of `count` pairs, as far as the grid goes. */
#define FOR_PAIRS(j, count)                                                                                            \
    for (uint64_t j = uint64_t(blockIdx.x) * TILE_THREADS + threadIdx.x; j < (count);                                  \
         j += uint64_t(gridDim.x) * TILE_THREADS)

static __global__ void __launch_bounds__(TILE_THREADS)
    gather(const float *x, const uint32_t *idx, uint64_t count, float *val) {
    FOR_PAIRS(j, count) val[j] = x[idx[j]];
}

static __global__ void __launch_bounds__(TILE_THREADS) zero(float *x, const uint32_t *idx, uint64_t count) {
    FOR_PAIRS(j, count) x[idx[j]] = 0;
}

static __global__ void __launch_bounds__(TILE_THREADS)
    scatter_add(float *x, const uint32_t *idx, const float *val, uint64_t count, float by) {
    FOR_PAIRS(j, count) x[idx[j]] = __fadd_rn(x[idx[j]], __fmul_rn(by, val[j]));
}

static __global__ void __launch_bounds__(TILE_THREADS)
    scatter(float *x, const uint32_t *idx, const float *val, uint64_t count, float by) {
    FOR_PAIRS(j, count) x[idx[j]] = __fmul_rn(by, val[j]);
}

static unsigned grid_of_pairs(uint64_t count) {
    return cuda_grid(8, (count + TILE_THREADS - 1) / TILE_THREADS);
}

extern "C" void store_launch_gather(const float *x, const uint32_t *idx, uint64_t count, float *val) {
    LAUNCH(gather, grid_of_pairs(count), TILE_THREADS, 0, cuda_stream(), x, idx, count, val);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void store_launch_zero(float *x, const uint32_t *idx, uint64_t count) {
    LAUNCH(zero, grid_of_pairs(count), TILE_THREADS, 0, cuda_stream(), x, idx, count);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void store_launch_scatter_add(float *x, const uint32_t *idx, const float *val, uint64_t count, float by) {
    LAUNCH(scatter_add, grid_of_pairs(count), TILE_THREADS, 0, cuda_stream(), x, idx, val, count, by);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void store_launch_scatter(float *x, const uint32_t *idx, const float *val, uint64_t count, float by) {
    LAUNCH(scatter, grid_of_pairs(count), TILE_THREADS, 0, cuda_stream(), x, idx, val, count, by);
    CUDA_CALL(cudaGetLastError());
}
