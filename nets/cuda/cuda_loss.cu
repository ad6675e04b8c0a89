/* cuda_loss.cu: see cuda_loss.h. In double, as nets/cpu/cpu_layers.c does it. A thread per row where classes are few,
 * else a block per row, whose threads share the classes; the block that is done last adds the rows up, in one order
 * whichever block that is. */
#include "nets/cuda/cuda_loss.h"

#include "base/cuda/cuda_device.h"
#include "base/cuda/cuda_kernel.h"
#include "nets/cuda/cuda_block.h"
#include "nets/cuda/cuda_values.h"

enum { THREADS = 128, BLOCKS_EACH = 8, FEW = 64 /* classes for one thread */ };

/* loss = log(sum_c exp(z_c - z_max)) - (z_label - z_max);  dz_c = (softmax_c - [c == label]) / over */
template <class T>
static __device__ double loss_of_row(const T *z, int classes, int label, double over, T *dz, int *best) {
    *best = 0;
    for (int c = 1; c < classes; c++)
        if (load(z[c]) > load(z[*best])) *best = c; /* ties: the lower class stays */
    double sum = 0;
    const double top = load(z[*best]);
    for (int c = 0; c < classes; c++) sum += exp(load(z[c]) - top);
    for (int c = 0; dz && c < classes; c++)
        dz[c] = stored<T>((float)((exp(load(z[c]) - top) / sum - (c == label)) / over));
    return log(sum) - (load(z[label]) - top);
}

/* Of a row that does not count; this thread's classes. */
template <class T> static __device__ double loss_of_no_row(int classes, T *dz, int first, int step) {
    for (int c = first; dz && c < classes; c += step) dz[c] = stored<T>(0);
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
            label >= 0 ? loss_of_row(z, k.classes, label, over, dz, &best) : loss_of_no_row(k.classes, dz, 0, 1);
        k.row_correct[i] = best == label;
    }
    if (block_is_last(k.done)) add_up(k, valid);
}

/* The best class: the largest value, of equal ones the lowest class. All threads begin with class 0, so that nothing is
 * larger where that is NaN, as where one thread goes through all classes. */
template <class T> static __device__ int best_of_block(const T *z, int classes) {
    __shared__ int best[THREADS];
    int mine = 0;
    for (int c = (int)threadIdx.x; c < classes; c += THREADS)
        if (load(z[c]) > load(z[mine])) mine = c;
    best[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const int one = best[threadIdx.x], other = best[threadIdx.x + half];
            const float a = load(z[one]), b = load(z[other]);
            if (b > a || (b == a && other < one)) best[threadIdx.x] = other;
        }
        __syncthreads();
    }
    const int found = best[0];
    __syncthreads(); /* before the next row's */
    return found;
}

/* As loss_of_row, by all threads. */
template <class T>
static __device__ double loss_of_wide_row(const T *z, int classes, int label, double over, T *dz, int *best) {
    *best = best_of_block(z, classes);
    const double top = load(z[*best]);
    double mine = 0;
    for (int c = (int)threadIdx.x; c < classes; c += THREADS) mine += exp(load(z[c]) - top);
    const double sum = sum_of_block<THREADS>(mine);
    for (int c = (int)threadIdx.x; dz && c < classes; c += THREADS)
        dz[c] = stored<T>((float)((exp(load(z[c]) - top) / sum - (c == label)) / over));
    return log(sum) - (load(z[label]) - top);
}

template <class T> static __global__ void wide_rows(cuda_loss_call k) {
    const int valid = k.fed->valid;
    const double over = k.fed->over;
    for (int i = (int)blockIdx.x; i < valid; i += (int)gridDim.x) {
        const size_t row = (size_t)i * (size_t)k.pitch;
        const int label = k.label[i]; /* the same on all threads */
        const T *z = (const T *)k.logits + row;
        T *dz = k.dlogits ? (T *)k.dlogits + row : NULL;
        int best = 0;
        const double loss = label >= 0 ? loss_of_wide_row(z, k.classes, label, over, dz, &best)
                                       : loss_of_no_row(k.classes, dz, (int)threadIdx.x, THREADS);
        if (threadIdx.x == 0) {
            k.row_loss[i] = loss;
            k.row_correct[i] = best == label;
        }
    }
    if (block_is_last(k.done)) add_up(k, valid);
}

template <class T> static void launch(const cuda_loss_call *loss) {
    const size_t n = (size_t)loss->n;
    if (loss->classes > FEW)
        LAUNCH(wide_rows<T>, cuda_grid(BLOCKS_EACH, n), THREADS, 0, cuda_stream(), *loss);
    else
        LAUNCH(rows<T>, cuda_grid(BLOCKS_EACH, (n + THREADS - 1) / THREADS), THREADS, 0, cuda_stream(), *loss);
    CUDA_CALL(cudaGetLastError());
}

extern "C" void cuda_loss(const struct cuda_loss_call *loss) {
    (loss->is_bf16 ? launch<bf16> : launch<float>)(loss);
}
