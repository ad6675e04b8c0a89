/* cuda_search.cu: the k-th largest magnitude key of many values, exactly, whatever they are: digit by digit from the
 * top. A launch counts the values that share the digits known so far by their next digit; the block that finishes last
 * finds the one that the k-th has. Before it, the samples from which a key is guessed. */
#include "base/cuda/cuda_device.h"
#include "topk/cuda/cuda_tile.h"
#include "topk/sample.h"

/* The digit of the one with this rank, by the last block: thread t has the t-th BINS_EACH bins from the top. */
static __device__ void choose_digit(struct store_search *search, uint32_t prefix, uint32_t rank, int digit,
                                    struct store_answer *answer) {
    __shared__ uint32_t of_warp[TILE_WARPS];
    const uint32_t warp = threadIdx.x / LANES;
    uint32_t count[BINS_EACH], own = 0;
    for (uint32_t j = 0; j < BINS_EACH; j++) {
        uint32_t *bin = search->histogram + bin_at(threadIdx.x, j);
        own += count[j] = __ldcg(bin);
        *bin = 0;
    }
    const uint32_t up_to = warp_running(own);
    if (threadIdx.x % LANES == LANES - 1) of_warp[warp] = up_to;
    __syncthreads();
    uint32_t before = up_to - own;
    for (uint32_t w = 0; w < warp; w++) before += of_warp[w];
    if (rank <= before || rank > before + own) return;
    uint32_t j = 0, left = rank - before;
    while (left > count[j]) left -= count[j++];
    search->rank = left;
    search->key = prefix | bin_at(threadIdx.x, j) << digit_shift(digit);
    if (answer) answer->key = search->key;
}

static __global__ void __launch_bounds__(TILE_THREADS)
    count_digits(struct top t, int digit, struct store_search *search, struct store_answer *answer) {
    __shared__ uint32_t histogram[DIGIT_BINS];
    const uint64_t n = t.count ? *t.count : t.n;
    if (t.count && (n < t.k || n > t.n)) return; /* all blocks alike */
    const struct span s = span_of(t.val, n);
    const uint32_t tiles = span_tiles(s), prefix = digit ? search->key : 0, rank = digit ? search->rank : t.k;
    for (uint32_t bin = threadIdx.x; bin < DIGIT_BINS; bin += TILE_THREADS) histogram[bin] = 0;
    __syncthreads();
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        piece p;
        piece_read(t.val, s, tile, p);
#pragma unroll
        for (uint32_t j = 0; j < TILE_ROWS * QUAD; j++) {
            const uint32_t key = key_of(p.x[j / QUAD][j % QUAD]);
            if ((p.present >> j & 1) && digit_follows(key, prefix, digit))
                atomicAdd(&histogram[digit_of(key, digit)], 1u);
        }
    }
    __syncthreads();
    for (uint32_t bin = threadIdx.x; bin < DIGIT_BINS; bin += TILE_THREADS)
        if (histogram[bin]) atomicAdd(&search->histogram[bin], histogram[bin]);
    if (block_is_last(&search->done)) choose_digit(search, prefix, rank, digit, answer);
}

extern "C" void store_launch_search(const struct top *t, int digits, struct store_search *search,
                                    struct store_answer *answer) {
    if (t->n <= ONE_BLOCK_MOST) {
        store_launch_one_block(t, digits, search, nullptr, answer);
        return;
    }
    const unsigned grid = cuda_grid(4, span_tiles(span_of(t->val, t->n)));
    for (int digit = 0; digit < digits; digit++)
        LAUNCH(count_digits, grid, TILE_THREADS, 0, cuda_stream(), *t, digit, search,
               digit == digits - 1 ? answer : nullptr);
    CUDA_CALL(cudaGetLastError());
}

/* -- samples ------------------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ float entry_at(const float *acc, const float *grad, uint64_t i) {
    return grad ? __fadd_rn(acc[i], grad[i]) : acc[i];
}

static __global__ void __launch_bounds__(TILE_THREADS)
    take_lines(const float *acc, const float *grad, uint64_t n, uint32_t lines, float *val) {
    const uint32_t step = gridDim.x * TILE_THREADS, most = lines * SAMPLE_LINE;
    for (uint32_t j = blockIdx.x * TILE_THREADS + threadIdx.x; j < most; j += step)
        val[j] = entry_at(acc, grad, sample_line_at(n, lines, j / SAMPLE_LINE) + j % SAMPLE_LINE);
}

static __global__ void __launch_bounds__(TILE_THREADS)
    take_strided(const float *acc, const float *grad, uint64_t first, uint64_t stride, uint64_t count, float *val) {
    const uint64_t step = uint64_t(gridDim.x) * TILE_THREADS;
    for (uint64_t j = uint64_t(blockIdx.x) * TILE_THREADS + threadIdx.x; j < count; j += step)
        val[j] = entry_at(acc, grad, first + j * stride);
}

extern "C" void store_launch_sample(const float *acc, const float *grad, uint64_t n, uint32_t lines, float *val) {
    const unsigned grid = cuda_grid(8, (size_t(lines) * SAMPLE_LINE + TILE_THREADS - 1) / TILE_THREADS);
    LAUNCH(take_lines, grid, TILE_THREADS, 0, cuda_stream(), acc, grad, n, lines, val);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void store_launch_strided(const float *acc, const float *grad, uint64_t first, uint64_t stride,
                                     uint64_t count, float *val) {
    const unsigned grid = cuda_grid(8, (count + TILE_THREADS - 1) / TILE_THREADS);
    LAUNCH(take_strided, grid, TILE_THREADS, 0, cuda_stream(), acc, grad, first, stride, count, val);
    CUDA_CALL(cudaGetLastError());
}
