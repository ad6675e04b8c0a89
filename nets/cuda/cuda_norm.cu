/* cuda_norm.cu: see cuda_norm.h. The formulas are those of nets/cpu/cpu_norm.c.
 *
 * Why not cuDNN: it fuses batch normalisation with ReLU and addition only for half precision in NHWC, and would need
 * twice as many passes over memory in f32.
 *
 * Two launches each way, or three where channels come last (cuda_walk.h says why). The first sums over each channel,
 * cut into parts over many blocks; the parts are added up, in their order, and turned into coefficients. The last one
 * applies these. Sums of squares are taken around the channel's first value, so that a mean far from 0 costs no digits.
 */
#include "nets/cuda/cuda_norm.h"

#include "nets/cuda/cuda_walk.h"

#define EPSILON 1e-5
#define MOMENTUM 0.1 /* weight of the batch in the running statistics */

/* a and b of y = a x + b */
static __device__ void set_scale(const cuda_norm_memory &m, uint32_t channels, uint32_t c, double mean, double variance,
                                 const float *param) {
    const double r = 1 / sqrt(variance + EPSILON), a = param[c] * r;
    m.r[c] = r;
    m.mean[c] = (float)mean;
    m.a[c] = (float)a;
    m.b[c] = (float)(param[channels + c] - mean * a);
}

/* Where a channel's first value lies. */
static __device__ __forceinline__ uint32_t first_of(const cuda_walk &w, uint32_t c) {
    return cuda_place(&w.shape, cuda_element{0, c, 0});
}

/* A warp for its channel: coefficients of the batch, running statistics moved. */
template <class T>
static __device__ void batch_statistics(const cuda_walk &w, const cuda_norm_memory &m, uint32_t parts, uint32_t c,
                                        const T *x, const float *param, const float *bias, float *state) {
    const uint32_t channels = w.shape.channels;
    const double count = (double)w.shape.images * w.shape.positions;
    double both[2];
    sum_parts<2>(m.partial, parts, c, both);
    if (threadIdx.x % WARP != 0) return;
    const double sum = both[0], squares = both[1];
    const double mean = load(x[first_of(w, c)]) + sum / count;
    double m2 = squares - sum * sum / count;
    if (m2 < 0) m2 = 0; /* by rounding; NaN stays */
    set_scale(m, channels, c, mean, m2 / count, param);
    const double whole = bias ? mean + bias[c] : mean;
    state[c] = (float)((1 - MOMENTUM) * state[c] + MOMENTUM * whole);
    state[channels + c] = (float)((1 - MOMENTUM) * state[channels + c] + MOMENTUM * (m2 / (count > 1 ? count - 1 : 1)));
}

template <class T>
static __global__ void __launch_bounds__(THREADS)
    all_statistics(cuda_walk w, cuda_norm_memory m, uint32_t parts, const T *x, const float *param, const float *bias,
                   float *state) {
    const uint32_t c = channel_of_warp();
    if (c < w.shape.channels) batch_statistics(w, m, parts, c, x, param, bias, state);
}

/* Sums of x - first and (x - first)^2. */
template <class T, int V, bool LAST>
static __global__ void __launch_bounds__(THREADS)
    moments(cuda_walk w, cuda_norm_memory m, const T *x, const float *param, const float *bias, float *state) {
    const walker me = walker_of(w);
    float sum[2][V] = {};
    if (me.takes_part) {
        float pivot[V];
        for (int l = 0; l < V; l++)
            pivot[l] = load(x[first_of(w, cuda_walk_channel(&w, me.slab, me.column, (uint32_t)l))]);
        const vector_of<T, V> *from = (const vector_of<T, V> *)x;
#pragma unroll 4 /* reads under way at once; where a loop writes, they may not pass the writes */
        for (uint32_t i = me.first; i < w.steps; i += me.stride) {
            const vector_of<T, V> v = from[cuda_walk_place(&w, me.slab, me.column, i)];
            for (int l = 0; l < V; l++) {
                const float apart = load(v.value[l]) - pivot[l];
                sum[0][l] += apart;
                sum[1][l] = __fmaf_rn(apart, apart, sum[1][l]);
            }
        }
    }
    sum_block<2, V, LAST>(w, me, sum, m.partial);
    if (ends_channel<LAST>(me.slab, m.done)) batch_statistics(w, m, gridDim.x, me.slab, x, param, bias, state);
}

static __global__ void inference_scale(cuda_norm_memory m, uint32_t channels, const float *param, const float *bias,
                                       const float *state) {
    for (uint32_t c = blockIdx.x * blockDim.x + threadIdx.x; c < channels; c += gridDim.x * blockDim.x) {
        const double mean = bias ? (double)state[c] - bias[c] : state[c];
        set_scale(m, channels, c, mean, state[channels + c], param);
    }
}

/* -- forward: y = max(0, a x + b [+ add]); NaN stays NaN ----------------------------------------------------------- */

template <class T, int V, bool LAST>
static __global__ void __launch_bounds__(THREADS)
    apply(cuda_walk w, cuda_norm_memory m, const T *x, const T *add, T *y) {
    typedef vector_of<T, V> vector;
    const walker me = walker_of(w);
    if (!me.takes_part) return;
    float a[V], b[V];
    of_channels(w, me, m.a, a);
    of_channels(w, me, m.b, b);
    for (uint32_t i = me.first; i < w.steps; i += me.stride) {
        const uint32_t at = cuda_walk_place(&w, me.slab, me.column, i);
        vector v = ((const vector *)x)[at], other = {};
        if (add) other = ((const vector *)add)[at];
        for (int l = 0; l < V; l++) {
            float t = __fmaf_rn(load(v.value[l]), a[l], b[l]);
            if (add) t += load(other.value[l]);
            v.value[l] = stored<T>(t < 0 ? 0 : t);
        }
        ((vector *)y)[at] = v;
    }
}

/* -- backward ----------------------------------------------------------------------------------------------------- */

/* A warp for its channel: gradients of scale and shift, and p and q of dx = a g + p x + q. */
static __device__ void set_gradient(const cuda_walk &w, const cuda_norm_memory &m, uint32_t parts, uint32_t c,
                                    const float *param, bool adds, float *dparam) {
    const uint32_t channels = w.shape.channels;
    const double count = (double)w.shape.images * w.shape.positions;
    double both[2];
    sum_parts<2>(m.partial, parts, c, both);
    if (threadIdx.x % WARP != 0) return;
    const double sum = both[0], dot = both[1];
    const double r = m.r[c], a = param[c] * r;
    dparam[c] = adds ? dparam[c] + (float)(dot * r) : (float)(dot * r);
    dparam[channels + c] = adds ? dparam[channels + c] + (float)sum : (float)sum;
    const double slope = -a * r * r * dot / count;
    m.p[c] = (float)slope;
    m.q[c] = (float)(-a * sum / count - slope * m.mean[c]);
}

static __global__ void __launch_bounds__(THREADS)
    set_gradients(cuda_walk w, cuda_norm_memory m, uint32_t parts, const float *param, bool adds, float *dparam) {
    const uint32_t c = channel_of_warp();
    if (c < w.shape.channels) set_gradient(w, m, parts, c, param, adds, dparam);
}

/* Sums of g and g (x - mean).
 * MASKED: g = dy where a x + b > 0, not written down but computed twice; else g = dy [+ dy2] where y > 0, left in dy.
 */
template <class T, int V, bool LAST, bool MASKED>
static __global__ void __launch_bounds__(THREADS, BLOCKS_EACH)
    gradient_sums(cuda_walk w, cuda_norm_memory m, const T *x, const T *y, T *dy, const T *dy2, const float *param,
                  bool adds, float *dparam) {
    typedef vector_of<T, V> vector;
    const walker me = walker_of(w);
    float sum[2][V] = {};
    if (me.takes_part) {
        float a[V], b[V], mean[V];
        of_channels(w, me, m.a, a);
        of_channels(w, me, m.b, b);
        of_channels(w, me, m.mean, mean);
        for (uint32_t i = me.first; i < w.steps; i += me.stride) {
            const uint32_t at = cuda_walk_place(&w, me.slab, me.column, i);
            const vector from = ((const vector *)x)[at];
            vector g = ((const vector *)dy)[at], other = {}, open = {};
            if (!MASKED) open = ((const vector *)y)[at];
            if (!MASKED && dy2) other = ((const vector *)dy2)[at];
            for (int l = 0; l < V; l++) {
                const float value = load(from.value[l]);
                const float t = MASKED ? __fmaf_rn(value, a[l], b[l]) : load(open.value[l]);
                if (!MASKED && dy2) g.value[l] = stored<T>(load(g.value[l]) + load(other.value[l]));
                if (!(t > 0)) g.value[l] = stored<T>(0.0f);
                sum[0][l] += load(g.value[l]);
                sum[1][l] = __fmaf_rn(load(g.value[l]), value - mean[l], sum[1][l]);
            }
            if (!MASKED) ((vector *)dy)[at] = g;
        }
    }
    sum_block<2, V, LAST>(w, me, sum, m.partial);
    if (ends_channel<LAST>(me.slab, m.done)) set_gradient(w, m, gridDim.x, me.slab, param, adds, dparam);
}

/* dx = a g + p x + q;  MASKED: g = dy where a x + b > 0, else g = dy. dx may be dy. */
template <class T, int V, bool LAST, bool MASKED>
static __global__ void __launch_bounds__(THREADS)
    gradient(cuda_walk w, cuda_norm_memory m, const T *x, const T *dy, T *dx) {
    typedef vector_of<T, V> vector;
    const walker me = walker_of(w);
    if (!me.takes_part) return;
    float a[V], b[V], p[V], q[V];
    of_channels(w, me, m.a, a);
    of_channels(w, me, m.b, b);
    of_channels(w, me, m.p, p);
    of_channels(w, me, m.q, q);
    for (uint32_t i = me.first; i < w.steps; i += me.stride) {
        const uint32_t at = cuda_walk_place(&w, me.slab, me.column, i);
        const vector from = ((const vector *)x)[at];
        vector g = ((const vector *)dy)[at];
        for (int l = 0; l < V; l++) {
            const float value = load(from.value[l]);
            float t = load(g.value[l]);
            if (MASKED && !(__fmaf_rn(value, a[l], b[l]) > 0)) t = 0;
            g.value[l] = stored<T>(__fmaf_rn(a[l], t, __fmaf_rn(p[l], value, q[l])));
        }
        ((vector *)dx)[at] = g;
    }
}

/* -- launchers ---------------------------------------------------------------------------------------------------- */

extern "C" void cuda_norm_plan(struct cuda_norm *norm, const struct cuda_shape *shape, bool is_bf16, bool joins) {
    *norm = cuda_norm{};
    norm->walk = cuda_walk_of(shape, is_bf16 ? 8 : 4); /* 16 bytes */
    norm->is_bf16 = is_bf16;
    norm->joins = joins;
}

extern "C" size_t cuda_norm_parts(const struct cuda_norm *norm) {
    return walk_parts(&norm->walk, SUM_STEPS);
}

/* One of the six kinds of tensors. */
template <class T, int V, bool LAST> struct norm_of {
    static void forward(const cuda_norm *n, const void *x, const void *add, void *y, const float *param,
                        const float *bias, float *state, bool training) {
        const uint32_t channels = n->walk.shape.channels;
        if (training)
            LAUNCH((moments<T, V, LAST>), walk_grid(&n->walk, SUM_STEPS), THREADS, (sum_block_shared<2, V, LAST>()),
                   cuda_stream(), n->walk, n->memory, (const T *)x, param, bias, state);
        else
            LAUNCH(inference_scale, (channels + THREADS - 1) / THREADS, THREADS, 0, cuda_stream(), n->memory, channels,
                   param, bias, (const float *)state);
        CUDA_CALL(cudaGetLastError());
        if (training && LAST)
            LAUNCH(all_statistics<T>, channel_grid(channels), THREADS, 0, cuda_stream(), n->walk, n->memory,
                   walk_parts(&n->walk, SUM_STEPS), (const T *)x, param, bias, state);
        CUDA_CALL(cudaGetLastError());
        LAUNCH((apply<T, V, LAST>), walk_grid(&n->walk, 1), THREADS, 0, cuda_stream(), n->walk, n->memory, (const T *)x,
               (const T *)add, (T *)y);
        CUDA_CALL(cudaGetLastError());
    }

    template <bool MASKED>
    static void backward(const cuda_norm *n, const void *x, const void *y, void *dy, const void *dy2, void *dx,
                         const float *param, bool adds, float *dparam) {
        LAUNCH((gradient_sums<T, V, LAST, MASKED>), walk_grid(&n->walk, SUM_STEPS), THREADS,
               (sum_block_shared<2, V, LAST>()), cuda_stream(), n->walk, n->memory, (const T *)x, (const T *)y, (T *)dy,
               (const T *)dy2, param, adds, dparam);
        CUDA_CALL(cudaGetLastError());
        if (LAST)
            LAUNCH(set_gradients, channel_grid(n->walk.shape.channels), THREADS, 0, cuda_stream(), n->walk, n->memory,
                   walk_parts(&n->walk, SUM_STEPS), param, adds, dparam);
        CUDA_CALL(cudaGetLastError());
        if (!dx) return;
        LAUNCH((gradient<T, V, LAST, MASKED>), walk_grid(&n->walk, 1), THREADS, 0, cuda_stream(), n->walk, n->memory,
               (const T *)x, (const T *)dy, (T *)dx);
        CUDA_CALL(cudaGetLastError());
    }
};

extern "C" void cuda_norm_forward(const struct cuda_norm *norm, const void *x, const void *add, void *y,
                                  const float *param, const float *bias, float *state, bool training) {
    WALK_FOR_KIND(norm_of, norm->walk, norm->is_bf16,
                  forward(norm, x, norm->joins ? add : NULL, y, param, bias, state, training));
}

extern "C" void cuda_norm_backward(const struct cuda_norm *norm, const void *x, const void *y, void *dy,
                                   const void *dy2, void *dx, const float *param, float *dparam, bool adds) {
    if (!norm->joins && !dy2)
        WALK_FOR_KIND(norm_of, norm->walk, norm->is_bf16, backward<true>(norm, x, y, dy, dy2, dx, param, adds, dparam));
    else
        WALK_FOR_KIND(norm_of, norm->walk, norm->is_bf16,
                      backward<false>(norm, x, y, dy, dy2, dx, param, adds, dparam));
}
