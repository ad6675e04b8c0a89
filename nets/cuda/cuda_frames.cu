/* cuda_frames.cu: see cuda_frames.h. Sums of a channel are a block's: its threads take elements t, t + THREADS, ... of
 * the canonical order in double, and their sums are folded by halves, so that the bits are the same every time. These
 * layers are little beside the LSTMs of the same net. */
#include "nets/cuda/cuda_frames.h"

#include "base/cuda/cuda_device.h"
#include "nets/cuda/cuda_block.h"
#include "nets/cuda/cuda_values.h"

#define EPSILON 1e-5
#define MOMENTUM 0.1 /* weight of the batch in the running statistics */

enum { THREADS = 256, BLOCKS_EACH = 8 };

#define FOR_EACH(i, n)                                                                                                 \
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x, i##_step = gridDim.x * THREADS; i < (n); i += i##_step)

static unsigned grid_of(size_t n) {
    return cuda_grid(BLOCKS_EACH, (n + THREADS - 1) / THREADS);
}

static size_t elements(const struct cuda_steps *s) {
    return (size_t)s->utterances * s->channels * s->rows * s->steps;
}

/* -- normalisation ------------------------------------------------------------------------------------------------- */

/* Values of a channel that count. */
static __device__ double count_of(const cuda_steps &s) {
    double count = 0;
    for (uint32_t u = 0; u < s.utterances; u++) count += (double)cuda_valid_steps(&s, u) * s.rows;
    return count;
}

/* This thread's elements of channel c: `at` runs over their places. */
#define FOR_VALID(s, c, at)                                                                                            \
    for (uint32_t u = 0; u < (s).utterances; u++)                                                                      \
        for (uint32_t valid = cuda_valid_steps(&(s), u), k = threadIdx.x,                                              \
                      at = cuda_step_place(&(s), {u, c, valid ? k / valid : 0, valid ? k % valid : 0});                \
             k < valid * (s).rows; k += THREADS, at = cuda_step_place(&(s), {u, c, k / valid, k % valid}))

struct factors {
    float *a, *b, *mean, *p, *q;
};
static __device__ factors factors_of(const cuda_frame_norm &norm, uint32_t channels) {
    float *at = norm.factors;
    return {at, at + channels, at + 2 * channels, at + 3 * channels, at + 4 * channels};
}

static __device__ void set_scale(const cuda_frame_norm &norm, uint32_t channels, uint32_t c, double mean,
                                 double variance, const float *param) {
    const factors f = factors_of(norm, channels);
    const double r = 1 / sqrt(variance + EPSILON), a = param[c] * r;
    norm.r[c] = r;
    f.mean[c] = (float)mean;
    f.a[c] = (float)a;
    f.b[c] = (float)(param[channels + c] - mean * a);
}

/* A block for each channel. */
template <class T>
static __global__ void statistics(cuda_frame_norm norm, cuda_steps s, const T *x, const float *param, float *state) {
    const uint32_t c = blockIdx.x;
    const double count = count_of(s), least = count > 0 ? count : 1;
    double sum = 0, squares = 0;
    FOR_VALID(s, c, at) sum += load(x[at]);
    const double mean = sum_of_block<THREADS>(sum) / least;
    FOR_VALID(s, c, at) squares += (load(x[at]) - mean) * (load(x[at]) - mean);
    const double variance = sum_of_block<THREADS>(squares) / least;
    if (threadIdx.x != 0) return;
    set_scale(norm, s.channels, c, mean, variance, param);
    if (count == 0) return;
    float *running_mean = state + c, *running_var = state + s.channels + c;
    *running_mean = (float)((1 - MOMENTUM) * *running_mean + MOMENTUM * mean);
    *running_var = (float)((1 - MOMENTUM) * *running_var + MOMENTUM * (variance * count / (count > 1 ? count - 1 : 1)));
}

static __global__ void take_statistics(cuda_frame_norm norm, uint32_t channels, const float *param,
                                       const float *state) {
    FOR_EACH(c, channels) set_scale(norm, channels, c, state[c], state[channels + c], param);
}

static __device__ __forceinline__ float before_cut(const factors &f, uint32_t c, float x) {
    return __fadd_rn(__fmul_rn(x, f.a[c]), f.b[c]);
}

/* y = a x + b, cut where there is a ceiling; NaN stays NaN. */
template <class T> static __global__ void apply(cuda_frame_norm norm, cuda_steps s, uint32_t n, const T *x, T *y) {
    const factors f = factors_of(norm, s.channels);
    FOR_EACH(i, n) {
        const cuda_step_element e = cuda_step_element_at(&s, i);
        float value = 0;
        if (e.step < cuda_valid_steps(&s, e.utterance)) {
            value = before_cut(f, e.channel, load(x[i]));
            if (norm.ceiling > 0) value = value < 0 ? 0 : value > norm.ceiling ? norm.ceiling : value;
        }
        y[i] = stored<T>(value);
    }
}

/* g: by what was cut, computed again: y may be rounded to bf16, and the ceiling below itself. */
static __device__ __forceinline__ float open_gradient(const factors &f, uint32_t c, float dy, float x, float ceiling) {
    const float y = before_cut(f, c, x);
    return ceiling > 0 && !(y > 0 && y < ceiling) ? 0 : dy;
}

/* A block for each channel: gradients of scale and shift, p and q of dx = a g + p x + q. */
template <class T>
static __global__ void gradient_sums(cuda_frame_norm norm, cuda_steps s, const T *x, const T *dy, const float *param,
                                     float *dparam, bool adds) {
    const uint32_t c = blockIdx.x;
    const factors f = factors_of(norm, s.channels);
    const double count = count_of(s), least = count > 0 ? count : 1;
    double sum = 0, dot = 0;
    FOR_VALID(s, c, at) {
        const float g = open_gradient(f, c, load(dy[at]), load(x[at]), norm.ceiling);
        sum += g;
        dot += (double)g * (load(x[at]) - f.mean[c]);
    }
    sum = sum_of_block<THREADS>(sum);
    dot = sum_of_block<THREADS>(dot);
    if (threadIdx.x != 0) return;
    const double r = norm.r[c], a = param[c] * r, slope = -a * r * r * dot / least;
    dparam[c] = adds ? dparam[c] + (float)(dot * r) : (float)(dot * r);
    dparam[s.channels + c] = adds ? dparam[s.channels + c] + (float)sum : (float)sum;
    f.p[c] = (float)slope;
    f.q[c] = (float)(-a * sum / least - slope * f.mean[c]);
}

template <class T>
static __global__ void gradient(cuda_frame_norm norm, cuda_steps s, uint32_t n, const T *x, const T *dy, T *dx) {
    const factors f = factors_of(norm, s.channels);
    FOR_EACH(i, n) {
        const cuda_step_element e = cuda_step_element_at(&s, i);
        float value = 0;
        if (e.step < cuda_valid_steps(&s, e.utterance)) {
            const float g = open_gradient(f, e.channel, load(dy[i]), load(x[i]), norm.ceiling);
            value = f.a[e.channel] * g + (f.p[e.channel] * load(x[i]) + f.q[e.channel]);
        }
        dx[i] = stored<T>(value);
    }
}

template <class T>
static void norm_forward(const struct cuda_frame_norm *norm, const struct cuda_steps *s, const T *x, T *y,
                         const float *param, float *state, bool training) {
    const uint32_t n = (uint32_t)elements(s);
    if (training)
        LAUNCH((statistics<T>), s->channels, THREADS, 0, cuda_stream(), *norm, *s, x, param, state);
    else
        LAUNCH(take_statistics, grid_of(s->channels), THREADS, 0, cuda_stream(), *norm, s->channels, param, state);
    LAUNCH((apply<T>), grid_of(n), THREADS, 0, cuda_stream(), *norm, *s, n, x, y);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_frame_norm_forward(const struct cuda_frame_norm *norm, const struct cuda_steps *s, const void *x,
                                        void *y, const float *param, float *state, bool training) {
    if (norm->is_bf16)
        norm_forward<bf16>(norm, s, (const bf16 *)x, (bf16 *)y, param, state, training);
    else
        norm_forward<float>(norm, s, (const float *)x, (float *)y, param, state, training);
}

template <class T>
static void norm_backward(const struct cuda_frame_norm *norm, const struct cuda_steps *s, const T *x, const T *dy,
                          T *dx, const float *param, float *dparam, bool adds) {
    const uint32_t n = (uint32_t)elements(s);
    LAUNCH((gradient_sums<T>), s->channels, THREADS, 0, cuda_stream(), *norm, *s, x, dy, param, dparam, adds);
    LAUNCH((gradient<T>), grid_of(n), THREADS, 0, cuda_stream(), *norm, *s, n, x, dy, dx);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_frame_norm_backward(const struct cuda_frame_norm *norm, const struct cuda_steps *s, const void *x,
                                         const void *dy, void *dx, const float *param, float *dparam, bool adds) {
    if (norm->is_bf16)
        norm_backward<bf16>(norm, s, (const bf16 *)x, (const bf16 *)dy, (bf16 *)dx, param, dparam, adds);
    else
        norm_backward<float>(norm, s, (const float *)x, (const float *)dy, (float *)dx, param, dparam, adds);
}

/* -- images to rows of time ---------------------------------------------------------------------------------------- */

template <class T> static __global__ void to_rows(cuda_steps s, uint32_t n, const T *x, float *y) {
    const uint32_t features = s.channels * s.rows;
    FOR_EACH(i, n) {
        const uint32_t f = i % features, row = i / features;
        y[i] = load(x[cuda_step_place(&s, {row % s.utterances, f / s.rows, f % s.rows, row / s.utterances})]);
    }
}

template <class T> static __global__ void from_rows(cuda_steps s, uint32_t steps, uint32_t n, const float *dy, T *dx) {
    const uint32_t features = s.channels * s.rows;
    FOR_EACH(i, n) {
        const cuda_step_element e = cuda_step_element_at(&s, i);
        const uint32_t row = e.step * s.utterances + e.utterance;
        dx[i] = stored<T>(e.step < steps ? dy[row * features + e.channel * s.rows + e.row] : 0);
    }
}

extern "C" void cuda_time_rows_forward(const struct cuda_steps *x, uint32_t steps, const void *from, float *y,
                                       bool is_bf16) {
    const uint32_t n = steps * x->utterances * x->channels * x->rows;
    if (is_bf16)
        LAUNCH((to_rows<bf16>), grid_of(n), THREADS, 0, cuda_stream(), *x, n, (const bf16 *)from, y);
    else
        LAUNCH((to_rows<float>), grid_of(n), THREADS, 0, cuda_stream(), *x, n, (const float *)from, y);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_time_rows_backward(const struct cuda_steps *x, uint32_t steps, const float *dy, void *dx,
                                        bool is_bf16) {
    const uint32_t n = (uint32_t)elements(x);
    if (is_bf16)
        LAUNCH((from_rows<bf16>), grid_of(n), THREADS, 0, cuda_stream(), *x, steps, n, dy, (bf16 *)dx);
    else
        LAUNCH((from_rows<float>), grid_of(n), THREADS, 0, cuda_stream(), *x, steps, n, dy, (float *)dx);
    CUDA_CALL(cudaGetLastError());
}

/* -- rows of time -------------------------------------------------------------------------------------------------- */

static __global__ void mask(cuda_steps s, uint32_t n, const float *from, float *to) {
    FOR_EACH(i, n) {
        const cuda_step_element e = cuda_step_element_at(&s, i);
        to[i] = e.step < cuda_valid_steps(&s, e.utterance) ? from[i] : 0;
    }
}

extern "C" void cuda_mask_rows(const struct cuda_steps *s, const float *from, float *to) {
    const uint32_t n = (uint32_t)elements(s);
    LAUNCH(mask, grid_of(n), THREADS, 0, cuda_stream(), *s, n, from, to);
    CUDA_CALL(cudaGetLastError());
}

/* y = min(max(0, sum over j of w [f][j] x [t + j]), ceiling) */
static __global__ void look_ahead(cuda_steps s, uint32_t weights, float ceiling, uint32_t n, const float *x,
                                  const float *w, float *y) {
    FOR_EACH(i, n) {
        const cuda_step_element e = cuda_step_element_at(&s, i);
        const uint32_t valid = cuda_valid_steps(&s, e.utterance);
        float sum = 0;
        for (uint32_t j = 0; j < weights && e.step + j < valid; j++)
            sum = __fadd_rn(sum, __fmul_rn(w[e.channel * weights + j], x[i + j * s.step]));
        y[i] = sum < 0 ? 0 : sum > ceiling ? ceiling : sum;
    }
}

static __global__ void pass_open(cuda_steps s, float ceiling, uint32_t n, const float *y, float *dy) {
    FOR_EACH(i, n) {
        const cuda_step_element e = cuda_step_element_at(&s, i);
        const bool open = e.step < cuda_valid_steps(&s, e.utterance) && y[i] > 0 && y[i] < ceiling;
        if (!open) dy[i] = 0;
    }
}

/* dx [t] = sum over j of w [j] g [t - j] */
static __global__ void look_back(cuda_steps s, uint32_t weights, uint32_t n, const float *w, const float *g,
                                 float *dx) {
    FOR_EACH(i, n) {
        const cuda_step_element e = cuda_step_element_at(&s, i);
        float sum = 0;
        if (e.step < cuda_valid_steps(&s, e.utterance))
            for (uint32_t j = 0; j < weights && j <= e.step; j++)
                sum = __fadd_rn(sum, __fmul_rn(w[e.channel * weights + j], g[i - j * s.step]));
        dx[i] = sum;
    }
}

/* dw [f][j] = sum over steps and utterances of g [t] x [t + j], in their order: a thread for each, neighbours of
 * neighbouring features. */
static __global__ void weight_gradients(cuda_steps s, uint32_t weights, const float *x, const float *g, float *dw,
                                        bool adds) {
    FOR_EACH(i, s.channels * weights) {
        const uint32_t f = i % s.channels, j = i / s.channels;
        double sum = 0;
        for (uint32_t t = 0; t + j < s.steps; t++)
            for (uint32_t u = 0; u < s.utterances; u++) {
                const uint32_t at = t * s.step + u * s.utterance + f;
                if (t + j < cuda_valid_steps(&s, u)) sum += (double)g[at] * x[at + j * s.step];
            }
        float *to = dw + f * weights + j;
        *to = adds ? *to + (float)sum : (float)sum;
    }
}

extern "C" void cuda_lookahead_forward(const struct cuda_steps *s, uint32_t weights, float ceiling, const float *x,
                                       const float *w, float *y) {
    const uint32_t n = (uint32_t)elements(s);
    LAUNCH(look_ahead, grid_of(n), THREADS, 0, cuda_stream(), *s, weights, ceiling, n, x, w, y);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_lookahead_backward(const struct cuda_steps *s, uint32_t weights, float ceiling, const float *x,
                                        const float *w, const float *y, float *dy, float *dx, float *dw, bool adds) {
    const uint32_t n = (uint32_t)elements(s);
    cudaStream_t stream = cuda_stream();
    LAUNCH(pass_open, grid_of(n), THREADS, 0, stream, *s, ceiling, n, y, dy);
    LAUNCH(weight_gradients, grid_of((size_t)s->channels * weights), THREADS, 0, stream, *s, weights, x, dy, dw, adds);
    if (dx) LAUNCH(look_back, grid_of(n), THREADS, 0, stream, *s, weights, n, w, dy, dx);
    CUDA_CALL(cudaGetLastError());
}
