/* cuda_one_block.cu: the k-th largest key of few values, and with `cut` the k largest of them in order, by one block:
 * what cuda_search.cu and cuda_cut.cu do in four launches, each of which would take longer than its work. */
#include "base/cuda_device.h"
#include "topk/cuda_tile.h"

enum {
    THREADS = 1024,
    WARPS = THREADS / LANES,
    BATCH = 8, /* values that a thread asks for before it looks at the first of them */
    ROUND = THREADS * QUAD
};

/* What the threads of the block share. */
struct shared {
    union {
        uint32_t histogram[DIGIT_BINS];
        struct {
            uint32_t idx[ROUND];
            float val[ROUND];
        } staged;
    };
    uint32_t of_warp[WARPS];
    uint32_t key, rank; /* as store_search */
};

/* Over the threads before this one, and over all of them. All threads call it, and may go on at once. */
struct running {
    uint32_t before, all;
};
static __device__ __forceinline__ struct running block_running(struct shared &shared, uint32_t own) {
    const uint32_t warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, up_to = warp_running(own);
    if (lane == LANES - 1) shared.of_warp[warp] = up_to;
    __syncthreads();
    const uint32_t warps_up_to = warp_running(shared.of_warp[lane]);
    const uint32_t of_lower = __shfl_sync(EVERY_LANE, warps_up_to, int(warp > 0 ? warp - 1 : 0));
    const struct running r = {(warp > 0 ? of_lower : 0) + up_to - own, __shfl_sync(EVERY_LANE, warps_up_to, LANES - 1)};
    __syncthreads();
    return r;
}

static __device__ __forceinline__ void count_digit(struct shared &shared, const float *val, uint32_t n, int digit) {
    const uint32_t prefix = shared.key;
    for (uint32_t from = threadIdx.x; from < n; from += THREADS * BATCH) {
        uint32_t key[BATCH];
#pragma unroll
        for (uint32_t j = 0; j < BATCH; j++) key[j] = from + j * THREADS < n ? key_of(val[from + j * THREADS]) : 0;
#pragma unroll
        for (uint32_t j = 0; j < BATCH; j++)
            if (from + j * THREADS < n && digit_follows(key[j], prefix, digit))
                atomicAdd(&shared.histogram[digit_of(key[j], digit)], 1u);
    }
}

/* The digit of the one with this rank: a thread has two bins, the first thread those at the top. */
static __device__ __forceinline__ void choose_digit(struct shared &shared, int digit) {
    const uint32_t rank = shared.rank, top = DIGIT_BINS - 1 - 2 * threadIdx.x;
    const uint32_t upper = shared.histogram[top], own = upper + shared.histogram[top - 1];
    const uint32_t before = block_running(shared, own).before; /* waits until all have read */
    if (rank <= before || rank > before + own) return;
    const bool lower = rank - before > upper;
    shared.key |= (lower ? top - 1 : top) << digit_shift(digit);
    shared.rank = rank - before - (lower ? upper : 0);
}

static __device__ __forceinline__ void find_key(struct shared &shared, const struct top &t, uint32_t n, int digits) {
    if (threadIdx.x == 0) shared.key = 0, shared.rank = t.k;
    for (int digit = 0; digit < digits; digit++) {
        for (uint32_t bin = threadIdx.x; bin < DIGIT_BINS; bin += THREADS) shared.histogram[bin] = 0;
        __syncthreads();
        count_digit(shared, t.val, n, digit);
        __syncthreads();
        choose_digit(shared, digit);
        __syncthreads();
    }
}

/* Rounds of ROUND values, of which a thread has QUAD side by side. */
static __device__ __forceinline__ void cut_at_key(struct shared &shared, const struct top &t, uint32_t n,
                                                  const struct cut_out &out) {
    const uint32_t key = shared.key, ties = shared.rank;
    uint32_t larger = 0, equal = 0; /* in the rounds before */
    for (uint32_t from = 0; from < n; from += ROUND) {
        const uint32_t mine = from + threadIdx.x * QUAD;
        float x[QUAD];
        uint32_t counts = 0; /* of larger ones, and from bit 16 on of equal ones */
#pragma unroll
        for (uint32_t j = 0; j < QUAD; j++) {
            x[j] = mine + j < n ? t.val[mine + j] : 0.0f;
            if (mine + j < n) counts += uint32_t(key_of(x[j]) > key) + (uint32_t(key_of(x[j]) == key) << 16);
        }
        const struct running r = block_running(shared, counts);
        const uint32_t first = top_place(larger, equal, ties);
        uint32_t over = larger + (r.before & 0xffffu), even = equal + (r.before >> 16);
#pragma unroll
        for (uint32_t j = 0; j < QUAD; j++) {
            if (mine + j >= n || key_of(x[j]) < key) continue;
            const bool is_equal = key_of(x[j]) == key;
            if (!is_equal || even < ties) {
                const uint32_t at = top_place(over, even, ties) - first;
                shared.staged.idx[at] = out.of ? out.of[mine + j] : mine + j;
                shared.staged.val[at] = x[j];
            }
            over += !is_equal, even += is_equal;
        }
        __syncthreads();
        larger += r.all & 0xffffu, equal += r.all >> 16;
        const uint32_t ready = top_place(larger, equal, ties) - first;
        for (uint32_t j = threadIdx.x; j < ready; j += THREADS) {
            out.idx[first + j] = shared.staged.idx[j];
            out.val[first + j] = shared.staged.val[j];
        }
        if (first + ready == t.k) return; /* all threads alike */
        __syncthreads();
    }
}

template <bool CUT>
static __global__ void __launch_bounds__(THREADS)
    one_block(struct top t, int digits, struct store_search *search, struct cut_out out, struct store_answer *answer) {
    __shared__ struct shared shared;
    const uint64_t n = t.count ? *t.count : t.n;
    if (t.count && (n < t.k || n > t.n)) return;
    find_key(shared, t, uint32_t(n), digits);
    if (threadIdx.x == 0) {
        search->key = shared.key, search->rank = shared.rank;
        if (answer) answer->key = shared.key;
    }
    if (CUT) cut_at_key(shared, t, uint32_t(n), out);
}

extern "C" void store_launch_one_block(const struct top *t, int digits, struct store_search *search,
                                       const struct cut_out *cut, struct store_answer *answer) {
    if (cut)
        LAUNCH((one_block<true>), 1, THREADS, 0, cuda_stream(), *t, digits, search, *cut, answer);
    else
        LAUNCH((one_block<false>), 1, THREADS, 0, cuda_stream(), *t, digits, search, cut_out{}, answer);
    CUDA_CALL(cudaGetLastError());
}
