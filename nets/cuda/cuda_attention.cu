/* cuda_attention.cu: see cuda_attention.h. A warp has a row of scores, four of which a lane takes at once, sharing a
 * block of random numbers where the rows' length is a multiple of four; what the lanes have is put together in one
 * order. p is made from log_sum by the same formula in both passes.
 *
 * Scores are floats. What is made of them is of the type T that is multiplied next, and lies where they did: bf16 in
 * the first half of each row, which is written behind what has been read of it. */
#include "nets/cuda/cuda_attention.h"

#include "base/cuda/cuda_device.h"
#include "nets/cuda/cuda_values.h"

enum { THREADS = 256, WARP = 32, BLOCKS_EACH = 8, SIDE_BY_SIDE = 4 };
typedef vector_of<float, SIDE_BY_SIDE> vector;

static unsigned grid_of(size_t threads) {
    return cuda_grid(BLOCKS_EACH, (threads + THREADS - 1) / THREADS);
}

template <class T>
static __global__ void point(cuda_attention a, uint32_t chunk, cuda_attention_arrays arrays, void **pointer) {
    T *x = (T *)const_cast<void *>(arrays.x), *y = (T *)arrays.y, *dx = (T *)arrays.dx;
    const uint32_t heads = attention_heads(&a);
    const size_t floats = (size_t)a.T * attention_pitch(&a);
    for (uint32_t head = blockIdx.x * THREADS + threadIdx.x; head < heads; head += gridDim.x * THREADS) {
        for (uint32_t part = 0; part < 3; part++) {
            const uint32_t at = attention_in(&a, head, part);
            pointer[(ATTENTION_Q + part) * heads + head] = x + at;
            pointer[(ATTENTION_DQ + part) * heads + head] = dx ? dx + at : NULL;
        }
        pointer[ATTENTION_Y * heads + head] = y + attention_out(&a, head);
        pointer[ATTENTION_SCORE * heads + head] = arrays.score + head % chunk * floats;
        pointer[ATTENTION_DSCORE * heads + head] = arrays.dscore + head % chunk * floats;
    }
}

/* -- rows of scores ------------------------------------------------------------------------------------------------ */

static __device__ __forceinline__ float warp_sum(float sum) {
    for (int by = WARP / 2; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
    return sum;
}
static __device__ __forceinline__ float warp_max(float most) {
    for (int by = WARP / 2; by > 0; by /= 2) most = max(most, __shfl_xor_sync(0xffffffffu, most, by));
    return most;
}

/* A warp's row of a turn. */
struct score_row {
    uint32_t number; /* of all heads' rows */
    uint32_t head, query, keys;
};

static __device__ __forceinline__ score_row row_of(const cuda_attention &a, const cuda_attention_turn &turn,
                                                   uint32_t r) {
    score_row row;
    row.number = turn.first * a.T + r;
    row.head = row.number / a.T;
    row.query = row.number - row.head * a.T;
    row.keys = attention_keys(&a, row.query, turn.length ? turn.length[row.head / a.heads] : (int32_t)a.T);
    return row;
}

#define FOR_EACH_ROW(r, rows)                                                                                          \
    for (uint32_t r = (blockIdx.x * THREADS + threadIdx.x) / WARP; r < (rows); r += gridDim.x * (THREADS / WARP))
#define FOR_EACH_VECTOR(j, n) for (uint32_t j = threadIdx.x % WARP * SIDE_BY_SIDE; j < (n); j += WARP * SIDE_BY_SIDE)

template <bool DROPS>
static __device__ __forceinline__ dropout_factors factors_of(const cuda_attention &a, const cuda_attention_turn &turn,
                                                             const score_row &row, uint32_t j) {
    if constexpr (DROPS) {
        return attention_factors(&turn.drop, turn.step[0], turn.step[1], a.T, row.number, j);
    } else {
        dropout_factors none;
        for (int l = 0; l < SIDE_BY_SIDE; l++) none.of[l] = 1;
        return none;
    }
}

/* log of the sum of exp(scale s_j), the same on every lane. A lane keeps its largest one and the sum relative to that,
 * so that scores are read once. A NaN comes through the sum. */
static __device__ float log_of_sum(const float *score, uint32_t keys, float scale) {
    float most = -INFINITY, sum = 0;
    FOR_EACH_VECTOR(j, keys) {
        const vector s = *(const vector *)(score + j);
        float top = most;
        for (uint32_t l = 0; l < SIDE_BY_SIDE; l++)
            if (j + l < keys) top = max(top, scale * s.value[l]);
        if (top > most) sum *= expf(most - top);
        for (uint32_t l = 0; l < SIDE_BY_SIDE; l++)
            if (j + l < keys) sum += expf(scale * s.value[l] - top);
        most = top;
    }
    const float top = warp_max(most);
    return top + logf(warp_sum(sum * expf(most - top)));
}

/* The vectors of a row by all lanes together, so that a narrower one is written when all have read theirs. */
#define FOR_EACH_TOGETHER(j, n)                                                                                        \
    for (uint32_t j##_first = 0, j = threadIdx.x % WARP * SIDE_BY_SIDE; j##_first < (n);                               \
         j##_first += WARP * SIDE_BY_SIDE, j += WARP * SIDE_BY_SIDE)

/* Elements j ... j + 3 of a row of n floats; by all lanes at once. */
template <class T> static __device__ __forceinline__ void put(float *row, uint32_t n, uint32_t j, const vector &made) {
    if constexpr (sizeof(T) < sizeof(float)) __syncwarp();
    if (j >= n) return;
    vector_of<T, SIDE_BY_SIDE> to;
    for (int l = 0; l < SIDE_BY_SIDE; l++) to.value[l] = stored<T>(made.value[l]);
    *(vector_of<T, SIDE_BY_SIDE> *)((T *)row + j) = to;
}

template <bool DROPS, class T>
static __global__ void __launch_bounds__(THREADS)
    probabilities(cuda_attention a, cuda_attention_turn turn, uint32_t pitch, float *score) {
    FOR_EACH_ROW(r, turn.count * a.T) {
        const score_row row = row_of(a, turn, r);
        float *at = score + (size_t)r * pitch;
        const float log_sum = log_of_sum(at, row.keys, turn.scale);
        FOR_EACH_TOGETHER(j, pitch) {
            vector p = {};
            if (j < row.keys) {
                const vector s = *(const vector *)(at + j);
                const dropout_factors m = factors_of<DROPS>(a, turn, row, j);
                for (uint32_t l = 0; l < SIDE_BY_SIDE; l++)
                    if (j + l < row.keys) p.value[l] = m.of[l] * expf(turn.scale * s.value[l] - log_sum);
            }
            put<T>(at, pitch, j, p);
        }
        if (threadIdx.x % WARP == 0) turn.log_sum[row.number] = log_sum;
    }
}

/* y_i . dy_i of the head's d numbers, the same on every lane. */
template <class T>
static __device__ float mean_of(const cuda_attention &a, const score_row &row, const T *y, const T *dy) {
    const uint32_t at = attention_out(&a, row.head) + row.query * a.heads * a.d;
    float sum = 0;
    for (uint32_t k = threadIdx.x % WARP; k < a.d; k += WARP) sum += load(y[at + k]) * load(dy[at + k]);
    return warp_sum(sum);
}

template <bool DROPS, class T>
static __global__ void __launch_bounds__(THREADS) gradients(cuda_attention a, cuda_attention_turn turn, uint32_t pitch,
                                                            const T *y, const T *dy, float *score, float *dscore) {
    FOR_EACH_ROW(r, turn.count * a.T) {
        const score_row row = row_of(a, turn, r);
        const float mean = mean_of(a, row, y, dy), log_sum = turn.log_sum[row.number];
        float *at = score + (size_t)r * pitch, *back = dscore + (size_t)r * pitch;
        FOR_EACH_TOGETHER(j, pitch) {
            vector p = {}, ds = {};
            if (j < row.keys) {
                const vector s = *(const vector *)(at + j), dp = *(const vector *)(back + j);
                const dropout_factors m = factors_of<DROPS>(a, turn, row, j);
                for (uint32_t l = 0; l < SIDE_BY_SIDE; l++) {
                    if (j + l >= row.keys) continue;
                    const float whole = expf(turn.scale * s.value[l] - log_sum);
                    p.value[l] = m.of[l] * whole;
                    ds.value[l] = turn.scale * whole * (m.of[l] * dp.value[l] - mean);
                }
            }
            put<T>(at, pitch, j, p);
            put<T>(back, pitch, j, ds);
        }
    }
}

/* -- launchers ----------------------------------------------------------------------------------------------------- */

extern "C" void cuda_attention_point(const struct cuda_attention *a, uint32_t chunk,
                                     const struct cuda_attention_arrays *arrays, void **pointer) {
    const unsigned grid = grid_of(attention_heads(a));
    if (arrays->is_bf16)
        LAUNCH(point<bf16>, grid, THREADS, 0, cuda_stream(), *a, chunk, *arrays, pointer);
    else
        LAUNCH(point<float>, grid, THREADS, 0, cuda_stream(), *a, chunk, *arrays, pointer);
    CUDA_CALL(cudaGetLastError());
}

static unsigned row_grid(const cuda_attention *a, const cuda_attention_turn *turn) {
    return grid_of((size_t)turn->count * a->T * WARP);
}

template <bool DROPS, class T>
static void forward(const cuda_attention *a, const cuda_attention_turn *turn, const cuda_attention_arrays *arrays) {
    LAUNCH((probabilities<DROPS, T>), row_grid(a, turn), THREADS, 0, cuda_stream(), *a, *turn, attention_pitch(a),
           arrays->score);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_attention_forward(const struct cuda_attention *a, const struct cuda_attention_turn *turn,
                                       const struct cuda_attention_arrays *arrays) {
    if (turn->drop.scale > 1)
        (arrays->is_bf16 ? forward<true, bf16> : forward<true, float>)(a, turn, arrays);
    else
        (arrays->is_bf16 ? forward<false, bf16> : forward<false, float>)(a, turn, arrays);
}

template <bool DROPS, class T>
static void backward(const cuda_attention *a, const cuda_attention_turn *turn, const cuda_attention_arrays *arrays,
                     const void *y) {
    LAUNCH((gradients<DROPS, T>), row_grid(a, turn), THREADS, 0, cuda_stream(), *a, *turn, attention_pitch(a),
           (const T *)y, (const T *)arrays->y, arrays->score, arrays->dscore);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_attention_backward(const struct cuda_attention *a, const struct cuda_attention_turn *turn,
                                        const struct cuda_attention_arrays *arrays, const void *y) {
    if (turn->drop.scale > 1)
        (arrays->is_bf16 ? backward<true, bf16> : backward<true, float>)(a, turn, arrays, y);
    else
        (arrays->is_bf16 ? backward<false, bf16> : backward<false, float>)(a, turn, arrays, y);
}
