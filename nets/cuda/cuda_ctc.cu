/* cuda_ctc.cu: see cuda_ctc.h. In double, as nets/cpu/cpu_ctc.c does it, and in its order. A block for each utterance,
 * whose threads share the labels of a step, or its classes; the block that is done last adds the losses up in their
 * order. */
#include "nets/cuda/cuda_ctc.h"

#include "base/cuda/cuda_device.h"
#include "base/cuda/cuda_kernel.h"

enum { THREADS = 128 };

/* One utterance: T steps, K classes, S = 2 L + 1 labels and blanks; arrays as in cpu_ctc.c. */
struct utterance {
    const float *logits;
    float *dlogits;
    const int32_t *label;
    int T, K, S, row; /* row: floats from a step to the next */
    double *log_p, *alpha, *beta;
};

static __device__ __forceinline__ double log_add(double a, double b) {
    const double top = a > b ? a : b, low = a > b ? b : a;
    return low == -INFINITY ? top : top + log1p(exp(low - top));
}

static __device__ __forceinline__ double log_p_of(const utterance &u, int t, int s) {
    return u.log_p[(size_t)t * u.K + ctc_class(u.label, s)];
}

/* A step for each thread. */
static __device__ void log_softmax(const utterance &u) {
    for (int t = (int)threadIdx.x; t < u.T; t += THREADS) {
        const float *z = u.logits + (size_t)t * u.row;
        double *log_p = u.log_p + (size_t)t * u.K, top = z[0], sum = 0;
        for (int k = 1; k < u.K; k++) top = z[k] > top ? z[k] : top;
        for (int k = 0; k < u.K; k++) sum += exp(z[k] - top);
        for (int k = 0; k < u.K; k++) log_p[k] = z[k] - top - log(sum);
    }
    __syncthreads();
}

static __device__ double forward(const utterance &u) {
    for (int t = 0; t < u.T; t++) {
        double *alpha = u.alpha + (size_t)t * u.S;
        const double *before = alpha - u.S;
        for (int s = (int)threadIdx.x; s < u.S; s += THREADS) {
            double sum = s < 2 ? 0 : -INFINITY;
            if (t > 0) {
                sum = before[s];
                if (s > 0) sum = log_add(sum, before[s - 1]);
                if (s > 1 && ctc_skips(u.label, s)) sum = log_add(sum, before[s - 2]);
            }
            alpha[s] = sum + log_p_of(u, t, s);
        }
        __syncthreads();
    }
    const double *last = u.alpha + (size_t)(u.T - 1) * u.S;
    const double loss = -(u.S > 1 ? log_add(last[u.S - 1], last[u.S - 2]) : last[0]);
    __syncthreads(); /* before backward overwrites what others read here */
    return loss;
}

static __device__ double beta_of(const utterance &u, const double *after, int t, int s) {
    if (t + 1 == u.T) return s + 2 >= u.S ? 0 : -INFINITY;
    double sum = after[s] + log_p_of(u, t + 1, s);
    if (s + 1 < u.S) sum = log_add(sum, after[s + 1] + log_p_of(u, t + 1, s + 1));
    if (s + 2 < u.S && ctc_skips(u.label, s + 2)) sum = log_add(sum, after[s + 2] + log_p_of(u, t + 1, s + 2));
    return sum;
}

static __device__ void backward(const utterance &u, double loss, double over) {
    for (int t = u.T - 1; t >= 0; t--) {
        double *alpha = u.alpha + (size_t)t * u.S, *beta = u.beta + t % 2 * u.S;
        const double *after = u.beta + (t + 1) % 2 * u.S;
        for (int s = (int)threadIdx.x; s < u.S; s += THREADS) {
            beta[s] = beta_of(u, after, t, s);
            alpha[s] = exp(alpha[s] + beta[s] + loss); /* from here on: the probability of s */
        }
        __syncthreads();
        for (int k = (int)threadIdx.x; k < u.K; k += THREADS) {
            double q = 0;
            for (int s = k ? 1 : 0; s < u.S; s += 2) q += ctc_class(u.label, s) == k ? alpha[s] : 0;
            u.dlogits[(size_t)t * u.row + k] = (float)((exp(u.log_p[(size_t)t * u.K + k]) - q) / over);
        }
    }
}

/* The best path, and zeros in the gradient where the utterance has none. */
static __device__ void go_over_steps(const utterance &u, int steps, bool counts, int32_t *path) {
    for (int t = (int)threadIdx.x; t < steps; t += THREADS) {
        const float *z = u.logits + (size_t)t * u.row;
        int best = 0;
        for (int k = 1; t < u.T && k < u.K; k++) best = z[k] > z[best] ? k : best;
        path[t] = t < u.T ? best : -1;
        if (u.dlogits && (!counts || t >= u.T))
            for (int k = 0; k < u.K; k++) u.dlogits[(size_t)t * u.row + k] = 0;
    }
}

static __global__ void utterances(cuda_ctc_call c) {
    const int n = (int)blockIdx.x, steps = c.call.steps, K = c.call.classes;
    const int32_t *label = c.label + (size_t)n * c.stride;
    const int labels = ctc_labels(label, c.stride), T = (c.call.lengths[n] + c.call.frames - 1) / c.call.frames;
    double *scratch = c.scratch + (size_t)n * cuda_ctc_scratch(steps, K, c.stride);
    utterance u = {
        c.call.logits + (size_t)n * K, NULL, label, T, K, 2 * labels + 1, c.call.batch * K, scratch, NULL, NULL};
    u.alpha = u.log_p + (size_t)T * K;
    u.beta = u.alpha + (size_t)T * u.S;
    if (c.call.dlogits) u.dlogits = c.call.dlogits + (size_t)n * K;
    const bool counts = n < c.fed->valid && ctc_counts(label, labels, T); /* the same on all threads */
    double loss = 0;
    go_over_steps(u, steps, counts, c.path + (size_t)n * steps);
    if (counts) {
        log_softmax(u);
        loss = forward(u);
        if (u.dlogits) backward(u, loss, c.fed->over);
    }
    if (threadIdx.x == 0) {
        c.row_loss[n] = loss;
        c.row_count[n] = counts;
    }
    if (!block_is_last(c.done) || threadIdx.x != 0) return;
    cuda_loss_result all = {0, 0, 0};
    for (int i = 0; i < c.call.batch; i++) {
        all.loss += __ldcg(c.row_loss + i);
        all.count += __ldcg(c.row_count + i);
    }
    *c.result = all;
}

extern "C" void cuda_ctc(const struct cuda_ctc_call *ctc) {
    LAUNCH(utterances, (unsigned)ctc->call.batch, THREADS, 0, cuda_stream(), *ctc);
    CUDA_CALL(cudaGetLastError());
}
