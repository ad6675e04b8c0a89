/* cuda_layers.cu: see cuda_layers.h. Every kernel strides over the elements of what it writes. */
#include "nets/cuda/cuda_layers.h"

#include "base/cuda/cuda_device.h"
#include "nets/cuda/cuda_values.h"

enum { THREADS = 256, BLOCKS_EACH = 8 };

#define FOR_EACH(i, n)                                                                                                 \
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, i##_step = gridDim.x * blockDim.x; i < (n); i += i##_step)

static unsigned grid_of(uint32_t n) {
    return cuda_grid(BLOCKS_EACH, ((size_t)n + THREADS - 1) / THREADS);
}

/* -- layouts ------------------------------------------------------------------------------------------------------ */

template <class T> static __global__ void to_last(cuda_shape shape, uint32_t n, const float *from, T *to) {
    cuda_shape canonical = shape;
    canonical.last = false;
    shape.last = true;
    FOR_EACH(i, n) to[i] = stored<T>(from[cuda_place(&canonical, cuda_element_at(&shape, i))]);
}

template <class T> static __global__ void from_last(cuda_shape shape, uint32_t n, const T *from, float *to) {
    cuda_shape canonical = shape;
    canonical.last = false;
    shape.last = true;
    FOR_EACH(i, n) to[i] = load(from[cuda_place(&shape, cuda_element_at(&canonical, i))]);
}

template <class T>
static __global__ void weights_to_last(uint32_t n, uint32_t in, uint32_t window, const float *from, T *to) {
    FOR_EACH(i, n) to[i] = stored<T>(from[cuda_weight_place(i, in, window)]);
}

template <class T>
static __global__ void weights_from_last(uint32_t n, uint32_t in, uint32_t window, const T *from, bool adds,
                                         float *to) {
    FOR_EACH(i, n) {
        float *at = to + cuda_weight_place(i, in, window);
        *at = adds ? *at + load(from[i]) : load(from[i]);
    }
}

/* A row of blocks for each layer; what a small one has no use for ends at once. */
template <class T> static __global__ void all_to_last(const cuda_cast *casts) {
    const cuda_cast c = casts[blockIdx.y];
    T *to = (T *)c.w;
    FOR_EACH(i, c.out * c.in * c.window) to[i] = stored<T>(c.param[cuda_weight_place(i, c.in, c.window)]);
}

template <class T> static __global__ void all_from_last(const cuda_cast *casts, bool adds) {
    const cuda_cast c = casts[blockIdx.y];
    const T *from = (const T *)c.dw;
    FOR_EACH(i, c.out * c.in * c.window) {
        float *at = c.dparam + cuda_weight_place(i, c.in, c.window);
        *at = adds ? *at + load(from[i]) : load(from[i]);
    }
}

/* -- shortcut and average ----------------------------------------------------------------------------------------- */

template <class T>
static __global__ void shortcut_forward(cuda_shape x, cuda_shape y, uint32_t stride, uint32_t n, const T *from, T *to) {
    FOR_EACH(i, n) {
        uint32_t place;
        bool copied = cuda_shortcut_source(&x, &y, stride, cuda_element_at(&y, i), &place);
        to[i] = copied ? from[place] : stored<T>(0.0f);
    }
}

template <class T>
static __global__ void shortcut_backward(cuda_shape x, cuda_shape y, uint32_t stride, uint32_t n, const T *dy, T *dx) {
    FOR_EACH(i, n) {
        uint32_t place;
        bool copied = cuda_shortcut_target(&x, &y, stride, cuda_element_at(&x, i), &place);
        dx[i] = copied ? dy[place] : stored<T>(0.0f);
    }
}

template <class T> static __global__ void average_forward(cuda_shape x, uint32_t n, const T *from, float *y) {
    const uint32_t step = x.last ? x.channels : 1;
    const float share = 1 / (float)x.positions;
    FOR_EACH(i, n) {
        const uint32_t image = i / x.channels;
        const T *at = from + cuda_place(&x, cuda_element{image, i - image * x.channels, 0});
        float sum = 0;
        for (uint32_t p = 0; p < x.positions; p++) sum += load(at[p * step]);
        y[i] = sum * share;
    }
}

template <class T> static __global__ void average_backward(cuda_shape x, uint32_t n, const float *dy, T *dx) {
    const float share = 1 / (float)x.positions;
    FOR_EACH(i, n) {
        const cuda_element e = cuda_element_at(&x, i);
        dx[i] = stored<T>(dy[e.image * x.channels + e.channel] * share);
    }
}

/* -- sums --------------------------------------------------------------------------------------------------------- */

template <class T> static __global__ void add_to(uint32_t n, const T *from, T *to) {
    FOR_EACH(i, n) to[i] = stored<T>(load(to[i]) + load(from[i]));
}

/* -- launchers ---------------------------------------------------------------------------------------------------- */

/* The kernel for elements of type T where the tensors `a` and `b` hold them. */
#define LAUNCH_FOR(kernel, bf16_elements, n, ...) LAUNCH_GRID(kernel, bf16_elements, grid_of(n), __VA_ARGS__)
#define LAUNCH_GRID(kernel, bf16_elements, grid, ...)                                                                  \
    do {                                                                                                               \
        if (bf16_elements) {                                                                                           \
            typedef bf16 T;                                                                                            \
            LAUNCH((kernel<T>), grid, THREADS, 0, cuda_stream(), __VA_ARGS__);                                         \
        } else {                                                                                                       \
            typedef float T;                                                                                           \
            LAUNCH((kernel<T>), grid, THREADS, 0, cuda_stream(), __VA_ARGS__);                                         \
        }                                                                                                              \
        CUDA_CALL(cudaGetLastError());                                                                                 \
    } while (0)

extern "C" void cuda_to_last(const struct cuda_shape *shape, const float *from, void *to, bool is_bf16) {
    const uint32_t n = cuda_elements(shape);
    LAUNCH_FOR(to_last, is_bf16, n, *shape, n, from, (T *)to);
}

extern "C" void cuda_from_last(const struct cuda_shape *shape, const void *from, float *to, bool is_bf16) {
    const uint32_t n = cuda_elements(shape);
    LAUNCH_FOR(from_last, is_bf16, n, *shape, n, (const T *)from, to);
}

extern "C" void cuda_weights_to_last(uint32_t out, uint32_t in, uint32_t window, const float *from, void *to,
                                     bool is_bf16) {
    const uint32_t n = out * in * window;
    LAUNCH_FOR(weights_to_last, is_bf16, n, n, in, window, from, (T *)to);
}

extern "C" void cuda_weights_from_last(uint32_t out, uint32_t in, uint32_t window, const void *from, float *to,
                                       bool adds, bool is_bf16) {
    const uint32_t n = out * in * window;
    LAUNCH_FOR(weights_from_last, is_bf16, n, n, in, window, (const T *)from, adds, to);
}

extern "C" void cuda_weights_all_to_last(const struct cuda_cast *cast, uint32_t layers, uint32_t most, bool is_bf16) {
    LAUNCH_GRID(all_to_last, is_bf16, dim3(grid_of(most), layers), cast);
}

extern "C" void cuda_weights_all_from_last(const struct cuda_cast *cast, uint32_t layers, uint32_t most, bool adds,
                                           bool is_bf16) {
    LAUNCH_GRID(all_from_last, is_bf16, dim3(grid_of(most), layers), cast, adds);
}

extern "C" void cuda_shortcut_forward(const struct cuda_shape *x, const struct cuda_shape *y, uint32_t stride,
                                      const void *from, void *to, bool is_bf16) {
    const uint32_t n = cuda_elements(y);
    LAUNCH_FOR(shortcut_forward, is_bf16, n, *x, *y, stride, n, (const T *)from, (T *)to);
}

extern "C" void cuda_shortcut_backward(const struct cuda_shape *x, const struct cuda_shape *y, uint32_t stride,
                                       const void *dy, void *dx, bool is_bf16) {
    const uint32_t n = cuda_elements(x);
    LAUNCH_FOR(shortcut_backward, is_bf16, n, *x, *y, stride, n, (const T *)dy, (T *)dx);
}

extern "C" void cuda_average_forward(const struct cuda_shape *x, const void *from, float *y, bool is_bf16) {
    const uint32_t n = x->images * x->channels;
    LAUNCH_FOR(average_forward, is_bf16, n, *x, n, (const T *)from, y);
}

extern "C" void cuda_average_backward(const struct cuda_shape *x, const float *dy, void *dx, bool is_bf16) {
    const uint32_t n = cuda_elements(x);
    LAUNCH_FOR(average_backward, is_bf16, n, *x, n, dy, (T *)dx);
}

extern "C" void cuda_add(uint32_t n, const void *from, void *to, bool is_bf16) {
    LAUNCH_FOR(add_to, is_bf16, n, n, (const T *)from, (T *)to);
}
