/* cuda_loss.cu: see cuda_loss.h. In double, as nets/cpu/cpu_layers.c does it, but for the exponentials of wide rows of
 * bf16. A thread per row where classes are few, else a block per row, whose threads share the classes; the block that
 * is done last adds the rows up, in one order whichever block that is. Whoever computes a row has read its label's
 * logit before it writes a gradient: dlogits may be logits. */
#include "nets/cuda/cuda_loss.h"

#include <float.h>

#include "base/cuda/cuda_device.h"
#include "base/cuda/cuda_kernel.h"
#include "nets/cuda/cuda_block.h"
#include "nets/cuda/cuda_values.h"

enum { THREADS = 128, BLOCKS_EACH = 16, FEW = 64 /* classes for one thread */ };

/* loss = log(sum_c exp(z_c - z_max)) - (z_label - z_max);  dz_c = (softmax_c - [c == label]) / over */
template <class T>
static __device__ double loss_of_row(const cuda_loss_call &k, const T *z, int label, double over, T *dz, int *best) {
    *best = 0;
    for (int c = 1; c < k.classes; c++)
        if (load(z[c]) > load(z[*best])) *best = c; /* ties: the lower class stays */
    double sum = 0;
    const double top = load(z[*best]), of_label = load(z[label]);
    for (int c = 0; c < k.classes; c++) sum += exp(load(z[c]) - top);
    for (int c = 0; dz && c < k.pitch; c++)
        dz[c] = stored<T>(c < k.classes ? (float)((exp(load(z[c]) - top) / sum - (c == label)) / over) : 0.0f);
    return log(sum) - (of_label - top);
}

/* Of a row that does not count; this thread's vectors. */
template <class T, int V> static __device__ double loss_of_no_row(int pitch, T *dz, int first, int step) {
    for (int c = first * V; dz && c < pitch; c += step * V) *(vector_of<T, V> *)(dz + c) = vector_of<T, V>{};
    return 0;
}

/* The last block: rows t, t + THREADS, ... by thread t, then the threads' sums. Hits are few enough to be exact. */
static __device__ void add_up(const cuda_loss_call &k, int valid) {
    double loss = 0, correct = 0, count = 0;
    for (int i = (int)threadIdx.x; i < valid; i += THREADS) {
        loss += __ldcg(k.row_loss + i);
        correct += __ldcg(k.row_correct + i);
        count += k.label[i] >= 0;
    }
    loss = sum_of_block<THREADS>(loss);
    correct = sum_of_block<THREADS>(correct);
    count = sum_of_block<THREADS>(count);
    if (threadIdx.x == 0) *k.result = cuda_loss_result{loss, (int)correct, (int)count};
}

template <class T> static __global__ void rows(cuda_loss_call k) {
    const int valid = k.fed->valid;
    const double over = k.fed->over;
    for (int i = (int)(blockIdx.x * THREADS + threadIdx.x); i < valid; i += (int)(gridDim.x * THREADS)) {
        const size_t row = (size_t)i * (size_t)k.pitch;
        const int label = k.label[i];
        const T *z = (const T *)k.logits + row;
        T *dz = k.dlogits ? (T *)k.dlogits + row : NULL;
        int best = 0;
        k.row_loss[i] =
            label >= 0 ? loss_of_row(k, z, label, over, dz, &best) : loss_of_no_row<T, 1>(k.pitch, dz, 0, 1);
        k.row_correct[i] = best == label;
    }
    if (block_is_last(k.done)) add_up(k, valid);
}

/* -- wide rows: read for best class and sum at once, and once more for the gradient -------------------------------- */

/* In what their exponentials are computed: that of bf16 is rounded to far less than float has. */
template <class T> struct exponentials { typedef double type; };
template <> struct exponentials<bf16> { typedef float type; };

static __device__ __forceinline__ float exponential(float x) {
    return expf(x);
}
static __device__ __forceinline__ double exponential(double x) {
    return exp(x);
}

/* Of some classes: the best, the largest or of equal ones the lowest; its value; sum_c exp(z_c - top). */
template <class R> struct seen {
    int best;
    float top;
    R sum;
};

/* What the sum of some classes is relative to, so that -infinity adds nothing to it, be it the largest so far. */
static __device__ __forceinline__ float finite(float top) {
    return fmaxf(top, -FLT_MAX);
}

/* This thread's classes. All threads begin with class 0 as the best, so that nothing is larger where that is NaN, as
 * where one thread goes through all classes. A NaN elsewhere, and infinity, come through the sum. What lies behind the
 * classes is seen as -infinity. */
template <class T, int V, class R> static __device__ seen<R> seen_by_thread(const T *z, int classes) {
    seen<R> mine = {0, load(z[0]), 0};
    for (int c = (int)threadIdx.x * V; c < classes; c += THREADS * V) {
        const vector_of<T, V> v = *(const vector_of<T, V> *)(z + c);
        const R before = finite(mine.top);
        float value[V];
        for (int l = 0; l < V; l++) {
            value[l] = c + l < classes ? load(v.value[l]) : -INFINITY;
            if (value[l] > mine.top) mine.top = value[l], mine.best = c + l;
        }
        const R top = finite(mine.top);
        if (top > before) mine.sum *= exponential(before - top);
        for (int l = 0; l < V; l++) mine.sum += exponential(value[l] - top);
    }
    return mine;
}

/* What all threads have seen, by halves. */
template <class R> static __device__ seen<double> seen_by_block(const seen<R> &mine) {
    __shared__ int best[THREADS];
    __shared__ float top[THREADS];
    best[threadIdx.x] = mine.best;
    top[threadIdx.x] = mine.top;
    __syncthreads();
    for (unsigned half = THREADS / 2, i = threadIdx.x; half > 0; half /= 2) {
        const unsigned j = i + half;
        if (i < half && (top[j] > top[i] || (top[j] == top[i] && best[j] < best[i]))) {
            best[i] = best[j];
            top[i] = top[j];
        }
        __syncthreads();
    }
    seen<double> all = {best[0], top[0], 0}; /* sum_of_block waits before the next row's are written */
    all.sum = sum_of_block<THREADS>(mine.sum * exponential((R)finite(mine.top) - all.top));
    return all;
}

/* As loss_of_row, by all threads. */
template <class T, int V>
static __device__ double loss_of_wide_row(const cuda_loss_call &k, const T *z, int label, double over, T *dz,
                                          int *best) {
    typedef typename exponentials<T>::type R;
    const double of_label = load(z[label]);
    const seen<double> all = seen_by_block(seen_by_thread<T, V, R>(z, k.classes));
    const R top = all.top, share = (R)(1 / all.sum), part = (R)(1 / over);
    for (int c = (int)threadIdx.x * V; dz && c < k.pitch; c += THREADS * V) {
        vector_of<T, V> v = *(const vector_of<T, V> *)(z + c);
        for (int l = 0; l < V; l++) {
            const R softmax = exponential(load(v.value[l]) - top) * share;
            v.value[l] = stored<T>(c + l < k.classes ? (float)((softmax - (c + l == label)) * part) : 0.0f);
        }
        *(vector_of<T, V> *)(dz + c) = v;
    }
    *best = all.best;
    return log(all.sum) - (of_label - all.top);
}

template <class T, int V> static __global__ void wide_rows(cuda_loss_call k) {
    const int valid = k.fed->valid;
    const double over = k.fed->over;
    for (int i = (int)blockIdx.x; i < valid; i += (int)gridDim.x) {
        const size_t row = (size_t)i * (size_t)k.pitch;
        const int label = k.label[i]; /* the same on all threads */
        const T *z = (const T *)k.logits + row;
        T *dz = k.dlogits ? (T *)k.dlogits + row : NULL;
        int best = 0;
        const double loss = label >= 0 ? loss_of_wide_row<T, V>(k, z, label, over, dz, &best)
                                       : loss_of_no_row<T, V>(k.pitch, dz, (int)threadIdx.x, THREADS);
        if (threadIdx.x == 0) {
            k.row_loss[i] = loss;
            k.row_correct[i] = best == label;
        }
    }
    if (block_is_last(k.done)) add_up(k, valid);
}

template <class T> static void launch(const cuda_loss_call *loss) {
    constexpr int V = 16 / sizeof(T);
    const size_t n = (size_t)loss->n;
    /* all rows begin at multiples of 16 bytes */
    const bool rows_fit = loss->pitch % V == 0 && ((uintptr_t)loss->logits | (uintptr_t)loss->dlogits) % 16 == 0;
    if (loss->classes <= FEW)
        LAUNCH(rows<T>, cuda_grid(BLOCKS_EACH, (n + THREADS - 1) / THREADS), THREADS, 0, cuda_stream(), *loss);
    else if (rows_fit)
        LAUNCH((wide_rows<T, V>), cuda_grid(BLOCKS_EACH, n), THREADS, 0, cuda_stream(), *loss);
    else
        LAUNCH((wide_rows<T, 1>), cuda_grid(BLOCKS_EACH, n), THREADS, 0, cuda_stream(), *loss);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_loss(const struct cuda_loss_call *loss) {
    (loss->is_bf16 ? launch<bf16> : launch<float>)(loss);
}
