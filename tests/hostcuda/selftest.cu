/* selftest.cu: kernels that use what the emulator of tests/hostcuda knows, and kernels with a mistake that it must
 * find. nvcc compiles them, too. */
#define LAUNCHED(kernel) (void)0
#include "base/cuda/cuda_kernel.h"

#include "tests/hostcuda/selftest.h"

static const unsigned FULL = 0xffffffffu;

static __global__ void add(float *__restrict__ x, float by, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
}
void launch_add(float *x, float by, unsigned n, cudaStream_t stream) {
    LAUNCH(add, (n + 63) / 64, 64, 0, stream, x, by, n);
}

static __global__ void cells_of(unsigned *cells, unsigned w, unsigned h, unsigned d) {
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < w && y < h && z < d) cells[(z * h + y) * w + x] = x + 100 * y + 10000 * z;
}
void launch_cells(unsigned *cells, unsigned w, unsigned h, unsigned d, cudaStream_t stream) {
    LAUNCH(cells_of, dim3((w + 7) / 8, (h + 3) / 4, (d + 1) / 2), dim3(8, 4, 2), 0, stream, cells, w, h, d);
}

static __global__ void block_sum(float *sum, const float *x) {
    SHARED_DYNAMIC(float, part);
    part[threadIdx.x] = __ldg(&x[blockIdx.x * blockDim.x + threadIdx.x]);
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sum[blockIdx.x] = part[0];
}
void launch_block_sum(float *sum, const float *x, unsigned n, cudaStream_t stream) {
    LAUNCH(block_sum, n / 256, 256, 256 * sizeof(float), stream, sum, x);
}

static __global__ void scan(unsigned *out, const unsigned *x) {
    __shared__ unsigned sums[2][256];
    const unsigned t = threadIdx.x;
    int now = 0;
    sums[now][t] = x[t];
    for (unsigned by = 1; by < 256; by *= 2) {
        __syncthreads();
        sums[1 - now][t] = sums[now][t] + (t >= by ? sums[now][t - by] : 0);
        now = 1 - now;
    }
    out[t] = sums[now][t];
}
void launch_scan(unsigned *out, const unsigned *x, cudaStream_t stream) {
    LAUNCH(scan, 1, 256, 0, stream, out, x);
}

static __global__ void shuffles(unsigned *out, double *wide, const unsigned *x) {
    const unsigned t = threadIdx.x, v = x[t];
    const unsigned got[SHUFFLES] = {
        __shfl_sync(FULL, v, 3),
        __shfl_sync(FULL, v, 9, 8),
        __shfl_up_sync(FULL, v, 2),
        __shfl_down_sync(FULL, v, 3, 16),
        __shfl_xor_sync(FULL, v, 16),
        __ballot_sync(FULL, v % 3 == 0),
        unsigned(__any_sync(FULL, v == x[32])),
        unsigned(__all_sync(FULL, v >= 1)),
        __match_any_sync(FULL, v % 5),
        __reduce_add_sync(FULL, v),
        __reduce_min_sync(FULL, v),
        __reduce_max_sync(FULL, v),
    };
    for (int i = 0; i < SHUFFLES; i++) out[i * 64 + t] = got[i];
    wide[t] = __shfl_xor_sync(FULL, 0.5 * v, 1);
    __syncwarp();
}
void launch_shuffles(unsigned *out, double *wide, const unsigned *x, cudaStream_t stream) {
    LAUNCH(shuffles, 1, 64, 0, stream, out, wide, x);
}

static __global__ void counters(unsigned *count, float *sum, unsigned long long *large) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&count[0], i);
    atomicMin(&count[1], i + 7);
    atomicMax(&count[2], i);
    atomicOr(&count[3], 1u << i % 10);
    atomicAnd(&count[4], ~(1u << i % 10));
    if (atomicExch(&count[5], 1u) == 0) atomicAdd(&count[6], 1u);
    unsigned seen = count[7], before;
    do { /* the maximum once more, as one does it for types without one */
        before = seen;
        seen = atomicCAS(&count[7], before, before > i ? before : i);
    } while (seen != before);
    atomicAdd(reinterpret_cast<int *>(&count[8]), -1);
    atomicAdd(sum, 0.5f);
    atomicAdd(large, 1ull << 32);
    atomicMax(large + 1, (unsigned long long)(i) << 33);
}
void launch_counters(unsigned *count, float *sum, unsigned long long *large, cudaStream_t stream) {
    LAUNCH(counters, 8, 125, 0, stream, count, sum, large);
}

static __global__ void block_counts(int *out) {
    const int t = int(threadIdx.x);
    out[t] = __syncthreads_count(t % 3 == 0);
    out[96 + t] = __syncthreads_or(t == 50);
    out[2 * 96 + t] = __syncthreads_or(t == 96);
    out[3 * 96 + t] = __syncthreads_and(t < 95);
}
void launch_block_counts(int *out, cudaStream_t stream) {
    LAUNCH(block_counts, 1, 96, 0, stream, out);
}

static __global__ void chain(uint64_t *sum, unsigned *ticket) {
    const unsigned place = atomicAdd(ticket, 1u);
    uint64_t before = 0;
    if (place > 0) do
            before = load_relaxed(&sum[place - 1]);
        while (before == 0);
    store_relaxed(&sum[place], before + place + 1);
}
void launch_chain(uint64_t *sum, unsigned *ticket, unsigned blocks, cudaStream_t stream) {
    LAUNCH(chain, blocks, 1, 0, stream, sum, ticket);
}

template <int FACTOR, bool STREAMING> static __global__ void copy(float4 *to, const float4 *from, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 v = STREAMING ? load_streaming(&from[i]) : from[i];
    store_streaming(&to[i], make_float4(FACTOR * v.x, FACTOR * v.y, FACTOR * v.z, FACTOR * v.w));
}
void launch_copy(float *to, const float *from, unsigned n, int double_it, cudaStream_t stream) {
    float4 *out = reinterpret_cast<float4 *>(to);
    const float4 *in = reinterpret_cast<const float4 *>(from);
    if (double_it)
        LAUNCH((copy<2, true>), (n + 31) / 32, 32, 0, stream, out, in, n);
    else
        LAUNCH((copy<1, false>), (n + 31) / 32, 32, 0, stream, out, in, n);
}

static __global__ void numbers(unsigned *out) {
    const unsigned got[NUMBERS] = {
        unsigned(__popc(0xf0f0u)),
        unsigned(__popcll(0xf00000000full)),
        unsigned(__clz(1)),
        unsigned(__clz(0)),
        unsigned(__clzll(1ll << 40)),
        unsigned(__ffs(8)),
        __brev(1u),
        __float_as_uint(1.0f),
        __float_as_uint(__uint_as_float(0x40490fdbu)),
        __float_as_uint(__fmaf_rn(3, 5, 0.5f)),
        unsigned(min(3, -2) + 10),
        max(3u, 7u),
        unsigned(rsqrtf(0.25f) * 8),
        unsigned(sqrtf(81)),
        unsigned(isfinite(__uint_as_float(0x7f800000u))),
        __umulhi(0x80000000u, 6u),
    };
    for (int i = 0; i < NUMBERS; i++) out[i] = got[i];
}
void launch_numbers(unsigned *out, cudaStream_t stream) {
    LAUNCH(numbers, 1, 1, 0, stream, out);
}

static __global__ void nothing(void) {}
void launch_nothing(unsigned grid, unsigned block, size_t shared, int allow, cudaStream_t stream) {
    if (allow) (void)cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, allow);
    LAUNCH(nothing, grid, block, shared, stream);
}

/* -- with a mistake ------------------------------------------------------------------------------------------------ */

static __global__ void barrier_after_end(unsigned *x) {
    if (threadIdx.x >= 32) return;
    __syncthreads();
    x[threadIdx.x] = 1;
}
void launch_barrier_after_end(unsigned *x, cudaStream_t stream) {
    LAUNCH(barrier_after_end, 1, 64, 0, stream, x);
}

static __global__ void two_barriers(unsigned *x) {
    if (threadIdx.x >= 32) {
        __syncthreads();
        x[threadIdx.x] = 1;
    } else {
        x[threadIdx.x] = 2;
        __syncthreads();
    }
}
void launch_two_barriers(unsigned *x, cudaStream_t stream) {
    LAUNCH(two_barriers, 1, 64, 0, stream, x);
}

static __global__ void lost_lane(unsigned *x) {
    if (threadIdx.x != 5) x[threadIdx.x] = __shfl_sync(FULL, threadIdx.x, 1);
}
void launch_lost_lane(unsigned *x, cudaStream_t stream) {
    LAUNCH(lost_lane, 1, 32, 0, stream, x);
}

static __global__ void part_of_warp(unsigned *x) {
    x[threadIdx.x] = __shfl_sync(FULL, threadIdx.x, 1);
}
void launch_part_of_warp(unsigned *x, cudaStream_t stream) {
    LAUNCH(part_of_warp, 1, 48, 0, stream, x);
}

static __global__ void behind_shared(unsigned *x) {
    SHARED_DYNAMIC(unsigned, own);
    own[threadIdx.x] = 1;
    x[0] = own[0];
}
void launch_behind_shared(unsigned *x, cudaStream_t stream) {
    LAUNCH(behind_shared, 1, 33, 128, stream, x);
}

static __global__ void write_at(float *x, ptrdiff_t at) {
    x[at] = 1;
}
void launch_write_at(float *x, ptrdiff_t at, cudaStream_t stream) {
    LAUNCH(write_at, 1, 1, 0, stream, x, at);
}
