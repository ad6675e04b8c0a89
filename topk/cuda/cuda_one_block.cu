/* cuda_one_block.cu: the k-th largest key of few values, and with `cut` the k largest of them in order, by one block:
 * what cuda_search.cu and cuda_cut.cu do in four launches, each of which would take longer than its work. */
#include "base/cuda/cuda_device.h"
#include "topk/cuda/cuda_tile.h"

enum {
    THREADS = 1024,
    WARPS = THREADS / LANES,
    BATCH = 16, /* values that a thread asks for before it looks at the first of them */
    ROUND = THREADS * QUAD
};

/* What the threads of the block share. */
struct shared {
    union {
        uint32_t histogram[DIGIT_BINS];
        struct staged<ROUND> staged;
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

/* A thread's next BATCH values, whole: there are so many. The digit is known to the compiler, so that a value costs few
 * instructions: one multiprocessor does it all. */
template <int DIGIT, bool WHOLE>
static __device__ __forceinline__ void count_batch(struct shared &shared, const float *val, uint32_t n, uint32_t from,
                                                   uint32_t prefix) {
    uint32_t key[BATCH];
#pragma unroll
    for (uint32_t j = 0; j < BATCH; j++)
        key[j] = WHOLE || from + j * THREADS < n ? key_of(val[from + j * THREADS]) : UINT32_MAX;
#pragma unroll
    for (uint32_t j = 0; j < BATCH; j++)
        if ((WHOLE || key[j] != UINT32_MAX) && digit_follows(key[j], prefix, DIGIT))
            atomicAdd(&shared.histogram[digit_of(key[j], DIGIT)], 1u);
}

template <int DIGIT>
static __device__ __forceinline__ void count_digit(struct shared &shared, const float *val, uint32_t n) {
    const uint32_t prefix = DIGIT > 0 ? shared.key : 0;
    uint32_t from = threadIdx.x;
    for (; from + (BATCH - 1) * THREADS < n; from += BATCH * THREADS)
        count_batch<DIGIT, true>(shared, val, n, from, prefix);
    if (from < n) count_batch<DIGIT, false>(shared, val, n, from, prefix);
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

template <int DIGIT>
static __device__ __forceinline__ void find_digit(struct shared &shared, const float *val, uint32_t n) {
    for (uint32_t bin = threadIdx.x; bin < DIGIT_BINS; bin += THREADS) shared.histogram[bin] = 0;
    __syncthreads();
    count_digit<DIGIT>(shared, val, n);
    __syncthreads();
    choose_digit(shared, DIGIT);
    __syncthreads();
}

static __device__ __forceinline__ void find_key(struct shared &shared, const struct top &t, uint32_t n, int digits) {
    if (threadIdx.x == 0) shared.key = 0, shared.rank = t.k;
    find_digit<0>(shared, t.val, n);
    if (digits > 1) find_digit<1>(shared, t.val, n);
    if (digits > 2) find_digit<2>(shared, t.val, n);
}

/* Values that lie side by side, with their indices; nothing beyond the n-th. */
struct some {
    float x[QUAD];
    uint32_t idx[QUAD];
};
static __device__ __forceinline__ struct some take(const struct top &t, const struct cut_out &out, uint32_t n,
                                                   uint32_t from) {
    struct some s;
#pragma unroll
    for (uint32_t j = 0; j < QUAD; j++) {
        s.x[j] = from + j < n ? t.val[from + j] : 0.0f;
        s.idx[j] = out.of && from + j < n ? out.of[from + j] : from + j;
    }
    return s;
}

/* Those that are chosen, when so many larger and equal ones come before them, to their places from `first` on. */
static __device__ __forceinline__ void stage(struct shared &shared, const struct some &s, uint32_t there, uint32_t key,
                                             uint32_t over, uint32_t even, uint32_t ties, uint32_t first) {
#pragma unroll
    for (uint32_t j = 0; j < QUAD; j++) {
        if (j >= there || key_of(s.x[j]) < key) continue;
        const bool is_equal = key_of(s.x[j]) == key;
        if (!is_equal || even < ties) {
            const uint32_t at = top_place(over, even, ties) - first;
            shared.staged.idx[at] = s.idx[j];
            shared.staged.val[at] = s.x[j];
        }
        over += !is_equal, even += is_equal;
    }
}

/* Rounds of ROUND values, of which a thread has QUAD side by side; those of the next round are on their way. */
static __device__ __forceinline__ void cut_at_key(struct shared &shared, const struct top &t, uint32_t n,
                                                  const struct cut_out &out) {
    const uint32_t key = shared.key, ties = shared.rank;
    uint32_t larger = 0, equal = 0; /* in the rounds before */
    struct some next = take(t, out, n, threadIdx.x * QUAD);
    for (uint32_t from = 0; from < n; from += ROUND) {
        const uint32_t mine = from + threadIdx.x * QUAD, there = mine < n ? n - mine : 0;
        const struct some now = next;
        next = take(t, out, n, mine + ROUND);
        uint32_t counts = 0; /* of larger ones, and from bit 16 on of equal ones */
#pragma unroll
        for (uint32_t j = 0; j < QUAD; j++)
            if (j < there) counts += uint32_t(key_of(now.x[j]) > key) + (uint32_t(key_of(now.x[j]) == key) << 16);
        const struct running r = block_running(shared, counts);
        const uint32_t first = top_place(larger, equal, ties);
        stage(shared, now, there, key, larger + (r.before & 0xffffu), equal + (r.before >> 16), ties, first);
        __syncthreads();
        larger += r.all & 0xffffu, equal += r.all >> 16;
        const uint32_t ready = top_place(larger, equal, ties) - first;
        staged_leave<THREADS>(shared.staged, ready, out.idx + first, out.val + first);
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
