/* cuda_layer_norm.cu: see cuda_layer_norm.h. Rows: a warp for each, which reads it two or three times, after the first
 * time from the first-level cache; its lanes' sums are put together in one order. Columns, for the gradients of the
 * parameters: the walk and the sums of cuda_walk.h, over a tensor of one position whose channels are the columns. */
#include "nets/cuda/cuda_layer_norm.h"

#include "nets/cuda/cuda_walk.h"

/* A warp's rows are first, first + stride, ...; a lane's vectors lane, lane + WARP, ... of each. */
#define FOR_EACH_ROW(row, rows)                                                                                        \
    for (uint32_t row = (blockIdx.x * THREADS + threadIdx.x) / WARP; row < (rows); row += gridDim.x * (THREADS / WARP))
#define FOR_EACH_VECTOR(i, n) for (uint32_t i = threadIdx.x % WARP; i < (n); i += WARP)

static __device__ __forceinline__ float warp_sum(float sum) {
    for (int by = WARP / 2; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
    return sum;
}

/* The variance is that around the mean, so that a mean far from 0 costs no digits. */
template <class T, int V>
static __global__ void __launch_bounds__(THREADS) normalise(cuda_layer_norm n, const T *x, const float *param, T *y) {
    typedef vector_of<T, V> vector;
    const uint32_t length = n.features / V;
    FOR_EACH_ROW(row, n.rows) {
        const vector *from = (const vector *)(x + (size_t)row * n.features);
        float sum = 0, squares = 0;
        FOR_EACH_VECTOR(i, length) {
            const vector v = from[i];
            for (int l = 0; l < V; l++) sum += load(v.value[l]);
        }
        const float mean = warp_sum(sum) / n.features;
        FOR_EACH_VECTOR(i, length) {
            const vector v = from[i];
            for (int l = 0; l < V; l++) squares += (load(v.value[l]) - mean) * (load(v.value[l]) - mean);
        }
        const float inverse = 1 / sqrtf(warp_sum(squares) / n.features + n.epsilon);
        FOR_EACH_VECTOR(i, length) {
            vector v = from[i];
            for (int l = 0; l < V; l++) {
                const float w = param[i * V + l], b = n.bias ? param[n.features + i * V + l] : 0;
                v.value[l] = stored<T>((load(v.value[l]) - mean) * inverse * w + b);
            }
            ((vector *)(y + (size_t)row * n.features))[i] = v;
        }
        if (threadIdx.x % WARP == 0) n.mean[row] = mean, n.inverse[row] = inverse;
    }
}

/* With z = (x - mean) / deviation and g = w dy:  dx = (g - mean of g - z mean of g z) / deviation */
template <class T, int V>
static __global__ void __launch_bounds__(THREADS)
    gradient(cuda_layer_norm n, const T *x, const T *dy, const float *param, T *dx) {
    typedef vector_of<T, V> vector;
    const uint32_t length = n.features / V;
    FOR_EACH_ROW(row, n.rows) {
        const vector *from = (const vector *)(x + (size_t)row * n.features);
        const vector *back = (const vector *)(dy + (size_t)row * n.features);
        const float mean = n.mean[row], inverse = n.inverse[row];
        float sum = 0, dot = 0;
        FOR_EACH_VECTOR(i, length) {
            const vector v = from[i], d = back[i];
            for (int l = 0; l < V; l++) {
                const float g = load(d.value[l]) * param[i * V + l];
                sum += g;
                dot += g * ((load(v.value[l]) - mean) * inverse);
            }
        }
        sum = warp_sum(sum) / n.features;
        dot = warp_sum(dot) / n.features;
        FOR_EACH_VECTOR(i, length) {
            const vector v = from[i];
            vector d = back[i];
            for (int l = 0; l < V; l++) {
                const float z = (load(v.value[l]) - mean) * inverse;
                d.value[l] = stored<T>((load(d.value[l]) * param[i * V + l] - sum - z * dot) * inverse);
            }
            ((vector *)(dx + (size_t)row * n.features))[i] = d;
        }
    }
}

/* N sums of each column, of dy z and, with a bias, dy; in parts. */
template <int N, class T, int V>
static __global__ void __launch_bounds__(THREADS)
    column_sums(cuda_layer_norm n, const T *x, const T *dy, double *partial) {
    typedef vector_of<T, V> vector;
    const walker me = walker_of(n.walk);
    float sum[N][V] = {};
    if (me.takes_part) {
        for (uint32_t row = me.first; row < n.walk.steps; row += me.stride) {
            const uint32_t at = cuda_walk_place(&n.walk, me.slab, me.column, row);
            const vector v = ((const vector *)x)[at], d = ((const vector *)dy)[at];
            const float mean = n.mean[row], inverse = n.inverse[row];
            for (int l = 0; l < V; l++) {
                const float g = load(d.value[l]);
                sum[0][l] += g * ((load(v.value[l]) - mean) * inverse);
                if (N > 1) sum[N - 1][l] += g;
            }
        }
    }
    sum_block<N, V, true>(n.walk, me, sum, partial);
}

template <int N>
static __global__ void __launch_bounds__(THREADS)
    give_sums(uint32_t features, const double *partial, uint32_t parts, bool adds, float *dparam) {
    const uint32_t c = channel_of_warp();
    double sum[N];
    if (c >= features) return;
    sum_parts<N>(partial, parts, c, sum);
    for (uint32_t i = 0; threadIdx.x % WARP == 0 && i < N; i++) {
        float *to = dparam + i * features + c;
        *to = adds ? *to + (float)sum[i] : (float)sum[i];
    }
}

/* -- launchers ----------------------------------------------------------------------------------------------------- */

extern "C" void cuda_layer_norm_plan(struct cuda_layer_norm *norm, uint32_t rows, uint32_t features, float epsilon,
                                     bool bias, bool is_bf16) {
    const cuda_shape columns = {
        .images = rows, .channels = features, .height = 1, .width = 1, .positions = 1, .last = true};
    *norm = cuda_layer_norm{.rows = rows,
                            .features = features,
                            .epsilon = epsilon,
                            .bias = bias,
                            .is_bf16 = is_bf16,
                            .walk = cuda_walk_of(&columns, is_bf16 ? 8 : 4), /* 16 bytes */
                            .mean = NULL,
                            .inverse = NULL};
}

extern "C" size_t cuda_layer_norm_scratch(const struct cuda_layer_norm *norm) {
    return (size_t)norm->features * (norm->bias ? 2 : 1) * walk_parts(&norm->walk, SUM_STEPS);
}

static unsigned row_grid(uint32_t rows) {
    return cuda_grid(BLOCKS_EACH, (rows + THREADS / WARP - 1) / (THREADS / WARP));
}

/* One of the four kinds of rows. */
template <class T, int V> struct rows_of {
    static void forward(const cuda_layer_norm *n, const void *x, const float *param, void *y) {
        LAUNCH((normalise<T, V>), row_grid(n->rows), THREADS, 0, cuda_stream(), *n, (const T *)x, param, (T *)y);
        CUDA_CALL(cudaGetLastError());
    }
    template <int N>
    static void sums(const cuda_layer_norm *n, const void *x, const void *dy, bool adds, float *dparam,
                     double *scratch) {
        LAUNCH((column_sums<N, T, V>), walk_grid(&n->walk, SUM_STEPS), THREADS, (sum_block_shared<N, V, true>()),
               cuda_stream(), *n, (const T *)x, (const T *)dy, scratch);
        CUDA_CALL(cudaGetLastError());
        LAUNCH((give_sums<N>), channel_grid(n->features), THREADS, 0, cuda_stream(), n->features,
               (const double *)scratch, walk_parts(&n->walk, SUM_STEPS), adds, dparam);
        CUDA_CALL(cudaGetLastError());
    }
    static void backward(const cuda_layer_norm *n, const void *x, const void *dy, const float *param, void *dx,
                         bool adds, float *dparam, double *scratch) {
        (n->bias ? sums<2> : sums<1>)(n, x, dy, adds, dparam, scratch);
        if (dx)
            LAUNCH((gradient<T, V>), row_grid(n->rows), THREADS, 0, cuda_stream(), *n, (const T *)x, (const T *)dy,
                   param, (T *)dx);
        CUDA_CALL(cudaGetLastError());
    }
};

#define FOR_KIND(n, call)                                                                                              \
    do {                                                                                                               \
        const bool wide = (n)->walk.vector > 1;                                                                        \
        if ((n)->is_bf16 && wide)                                                                                      \
            rows_of<bf16, 8>::call;                                                                                    \
        else if ((n)->is_bf16)                                                                                         \
            rows_of<bf16, 1>::call;                                                                                    \
        else if (wide)                                                                                                 \
            rows_of<float, 4>::call;                                                                                   \
        else                                                                                                           \
            rows_of<float, 1>::call;                                                                                   \
    } while (0)

extern "C" void cuda_layer_norm_forward(const struct cuda_layer_norm *norm, const void *x, const float *param,
                                        void *y) {
    FOR_KIND(norm, forward(norm, x, param, y));
}

extern "C" void cuda_layer_norm_backward(const struct cuda_layer_norm *norm, const void *x, const void *dy,
                                         const float *param, void *dx, bool adds, float *dparam, double *scratch) {
    FOR_KIND(norm, backward(norm, x, dy, param, dx, adds, dparam, scratch));
}
