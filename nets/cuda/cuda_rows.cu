/* cuda_rows.cu: see cuda_rows.h. A thread takes 16 bytes at once; what is left of an array that is no multiple of
 * these, the thread behind the last of them takes. Parameters lie at any multiple of four bytes. */
#include "nets/cuda/cuda_rows.h"

#include "base/cuda/cuda_device.h"
#include "nets/cuda/cuda_values.h"

enum { THREADS = 256, BLOCKS_EACH = 8 };

#define FOR_EACH(i, n)                                                                                                 \
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x, i##_step = gridDim.x * THREADS; i < (n); i += i##_step)

static unsigned grid_of(uint32_t n) {
    return cuda_grid(BLOCKS_EACH, ((size_t)n + THREADS - 1) / THREADS);
}

/* -- element by element: F::of(a, b) ------------------------------------------------------------------------------- */

struct sum_of_both {
    static __device__ float of(float a, float b) { return a + b; }
};

#define SQRT_HALF 0.70710678118654752f
#define SQRT_2_PI 0.79788456080286536f /* sqrt(2 / pi) */
#define CUBIC 0.044715f

static __device__ __forceinline__ float normal_below(float x) {
    return 0.5f * (1 + erff(x * SQRT_HALF));
}
static __device__ __forceinline__ float tanh_of(float x) {
    return tanhf(SQRT_2_PI * (x + CUBIC * x * x * x));
}

struct gelu_exact {
    static __device__ float of(float x, float) { return x * normal_below(x); }
};
struct gelu_exact_back {
    static __device__ float of(float x, float dy) {
        return dy * (normal_below(x) + 0.5f * SQRT_2_PI * x * expf(-0.5f * x * x));
    }
};
struct gelu_tanh {
    static __device__ float of(float x, float) { return 0.5f * x * (1 + tanh_of(x)); }
};
struct gelu_tanh_back {
    static __device__ float of(float x, float dy) {
        const float t = tanh_of(x);
        return dy * (0.5f * (1 + t) + 0.5f * x * (1 - t * t) * (SQRT_2_PI * (1 + 3 * CUBIC * x * x)));
    }
};

struct tangent {
    static __device__ float of(float x, float) { return tanhf(x); }
};
struct tangent_back {
    static __device__ float of(float x, float dy) {
        const float t = tanhf(x);
        return dy * (1 - t * t);
    }
};

template <class T, class F> static __global__ void each(uint32_t n, const T *a, const T *b, T *to) {
    constexpr uint32_t V = 16 / sizeof(T);
    typedef vector_of<T, V> vector;
    const uint32_t whole = n / V;
    FOR_EACH(i, whole + 1) {
        if (i < whole) {
            const vector one = ((const vector *)a)[i], other = ((const vector *)b)[i];
            vector made;
            for (uint32_t l = 0; l < V; l++) made.value[l] = stored<T>(F::of(load(one.value[l]), load(other.value[l])));
            ((vector *)to)[i] = made;
        } else {
            for (uint32_t k = whole * V; k < n; k++) to[k] = stored<T>(F::of(load(a[k]), load(b[k])));
        }
    }
}

/* -- positions ----------------------------------------------------------------------------------------------------- */

/* n, length: in vectors. */
template <class T, int V>
static __global__ void add_positions(uint32_t n, uint32_t length, const float *x, const float *w, T *y) {
    FOR_EACH(i, n) {
        const vector_of<float, V> v = ((const vector_of<float, V> *)x)[i];
        const float *at = w + i % length * V;
        vector_of<T, V> made;
        for (int l = 0; l < V; l++) made.value[l] = stored<T>(v.value[l] + at[l]);
        ((vector_of<T, V> *)y)[i] = made;
    }
}

/* dx: NULL, or dy as floats */
template <class T>
static __global__ void position_gradient(uint32_t sequences, uint32_t length, const T *dy, bool adds, float *dw,
                                         float *dx) {
    FOR_EACH(i, length) {
        float sum = adds ? dw[i] : 0;
#pragma unroll 4 /* reads under way at once */
        for (uint32_t s = 0; s < sequences; s++) {
            const float d = load(dy[s * length + i]);
            if (dx) dx[s * length + i] = d;
            sum += d;
        }
        dw[i] = sum;
    }
}

/* -- some rows of each sequence ------------------------------------------------------------------------------------ */

static __device__ __forceinline__ uint32_t chosen(const cuda_choose &l, const int32_t *number, uint32_t i) {
    return number ? (uint32_t)number[i] : i % l.count;
}

/* features: in vectors, in both. */
template <class T, int V>
static __global__ void choose_rows(cuda_choose l, uint32_t features, const int32_t *number, const T *x, T *y) {
    typedef vector_of<T, V> vector;
    FOR_EACH(at, l.sequences * l.count * features) {
        const uint32_t i = at / features;
        const uint32_t row = i / l.count * l.T + chosen(l, number, i);
        ((vector *)y)[at] = ((const vector *)x)[row * features + at % features];
    }
}

/* A row of x looks for itself among those that its sequence has chosen, so that each is written once, and what it sums
 * is in their order. */
template <class T, int V>
static __global__ void choose_gradient(cuda_choose l, uint32_t features, const int32_t *number, const T *dy, T *dx) {
    typedef vector_of<T, V> vector;
    FOR_EACH(at, l.sequences * l.T * features) {
        const uint32_t row = at / features, first = row / l.T * l.count;
        float sum[V] = {};
        for (uint32_t i = first; i < first + l.count; i++) {
            if (chosen(l, number, i) != row % l.T) continue;
            const vector v = ((const vector *)dy)[i * features + at % features];
            for (int k = 0; k < V; k++) sum[k] += load(v.value[k]);
        }
        vector made;
        for (int k = 0; k < V; k++) made.value[k] = stored<T>(sum[k]);
        ((vector *)dx)[at] = made;
    }
}

/* -- launchers ----------------------------------------------------------------------------------------------------- */

template <class F> static void launch_each(uint32_t n, const void *a, const void *b, void *to, bool is_bf16) {
    const unsigned grid = grid_of(n / (is_bf16 ? 8 : 4) + 1);
    if (is_bf16)
        LAUNCH((each<bf16, F>), grid, THREADS, 0, cuda_stream(), n, (const bf16 *)a, (const bf16 *)b, (bf16 *)to);
    else
        LAUNCH((each<float, F>), grid, THREADS, 0, cuda_stream(), n, (const float *)a, (const float *)b, (float *)to);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_sum(uint32_t n, const void *a, const void *b, void *to, bool is_bf16) {
    launch_each<sum_of_both>(n, a, b, to, is_bf16);
}

extern "C" void cuda_gelu_forward(uint32_t n, bool tanh, const void *x, void *y, bool is_bf16) {
    (tanh ? launch_each<gelu_tanh> : launch_each<gelu_exact>)(n, x, x, y, is_bf16);
}

extern "C" void cuda_gelu_backward(uint32_t n, bool tanh, const void *x, const void *dy, void *dx, bool is_bf16) {
    (tanh ? launch_each<gelu_tanh_back> : launch_each<gelu_exact_back>)(n, x, dy, dx, is_bf16);
}

extern "C" void cuda_tanh_forward(uint32_t n, const void *x, void *y, bool is_bf16) {
    launch_each<tangent>(n, x, x, y, is_bf16);
}

extern "C" void cuda_tanh_backward(uint32_t n, const void *x, const void *dy, void *dx, bool is_bf16) {
    launch_each<tangent_back>(n, x, dy, dx, is_bf16);
}

template <class T> static void add_positions_to(uint32_t n, uint32_t length, const float *x, const float *w, void *y) {
    if (length % 4 == 0)
        LAUNCH((add_positions<T, 4>), grid_of(n / 4), THREADS, 0, cuda_stream(), n / 4, length / 4, x, w, (T *)y);
    else
        LAUNCH((add_positions<T, 1>), grid_of(n), THREADS, 0, cuda_stream(), n, length, x, w, (T *)y);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_position_forward(uint32_t sequences, uint32_t length, const float *x, const float *w, void *y,
                                      bool is_bf16) {
    (is_bf16 ? add_positions_to<bf16> : add_positions_to<float>)(sequences * length, length, x, w, y);
}

extern "C" void cuda_position_backward(uint32_t sequences, uint32_t length, const void *dy, bool adds, float *dw,
                                       float *dx, bool is_bf16) {
    if (is_bf16)
        LAUNCH(position_gradient<bf16>, grid_of(length), THREADS, 0, cuda_stream(), sequences, length, (const bf16 *)dy,
               adds, dw, dx);
    else
        LAUNCH(position_gradient<float>, grid_of(length), THREADS, 0, cuda_stream(), sequences, length,
               (const float *)dy, adds, dw, dx);
    CUDA_CALL(cudaGetLastError());
}

/* V elements at once where a row's come out even: 16 bytes. */
#define FOR_ROWS(kernel, rows, from, to)                                                                               \
    do {                                                                                                               \
        const uint32_t n = (rows)*l->features;                                                                         \
        if (l->is_bf16 && l->features % 8 == 0)                                                                        \
            LAUNCH((kernel<bf16, 8>), grid_of(n / 8), THREADS, 0, cuda_stream(), *l, l->features / 8, number,          \
                   (const bf16 *)(from), (bf16 *)(to));                                                                \
        else if (l->is_bf16)                                                                                           \
            LAUNCH((kernel<bf16, 1>), grid_of(n), THREADS, 0, cuda_stream(), *l, l->features, number,                  \
                   (const bf16 *)(from), (bf16 *)(to));                                                                \
        else if (l->features % 4 == 0)                                                                                 \
            LAUNCH((kernel<float, 4>), grid_of(n / 4), THREADS, 0, cuda_stream(), *l, l->features / 4, number,         \
                   (const float *)(from), (float *)(to));                                                              \
        else                                                                                                           \
            LAUNCH((kernel<float, 1>), grid_of(n), THREADS, 0, cuda_stream(), *l, l->features, number,                 \
                   (const float *)(from), (float *)(to));                                                              \
        CUDA_CALL(cudaGetLastError());                                                                                 \
    } while (0)

extern "C" void cuda_choose_forward(const struct cuda_choose *l, const int32_t *number, const void *x, void *y) {
    FOR_ROWS(choose_rows, l->sequences * l->count, x, y);
}

extern "C" void cuda_choose_backward(const struct cuda_choose *l, const int32_t *number, const void *dy, void *dx) {
    FOR_ROWS(choose_gradient, l->sequences * l->T, dy, dx);
}
