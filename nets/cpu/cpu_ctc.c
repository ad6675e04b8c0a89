/* cpu_ctc.c: see cpu_ctc.h. An utterance is one thread's; their losses are added up in their order. */
#include "nets/cpu/cpu_ctc.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "nets/frames.h"

/* One utterance: T steps, K classes, S = 2 L + 1 labels and blanks. */
struct utterance {
    const struct ctc_call *call;
    const int32_t *label;
    size_t number, T, K, S;
    double *log_p; /* [T][K] */
    double *alpha; /* [T][S] logarithms */
    double *beta;  /* [2][S] of this step and the next */
    double *q;     /* [K] */
};

static size_t row_of(const struct utterance *u, size_t t) {
    return (t * (size_t)u->call->batch + u->number) * u->K;
}

/* log (e^a + e^b) */
static double log_add(double a, double b) {
    const double top = a > b ? a : b, low = a > b ? b : a;
    return low == -INFINITY ? top : top + log1p(exp(low - top));
}

/* log p_t (k) = z_k - log sum e^z */
static void log_softmax(const float *z, size_t K, double *log_p) {
    double top = z[0], sum = 0;
    for (size_t k = 1; k < K; k++) top = z[k] > top ? z[k] : top;
    for (size_t k = 0; k < K; k++) sum += exp(z[k] - top);
    for (size_t k = 0; k < K; k++) log_p[k] = z[k] - top - log(sum);
}

static double log_p_of(const struct utterance *u, size_t t, size_t s) {
    return u->log_p[t * u->K + (size_t)ctc_class(u->label, (int)s)];
}

/* alpha; returns the loss. */
static double forward(const struct utterance *u) {
    const size_t S = u->S;
    for (size_t s = 0; s < S; s++) u->alpha[s] = s < 2 ? log_p_of(u, 0, s) : -INFINITY;
    for (size_t t = 1; t < u->T; t++) {
        const double *before = u->alpha + (t - 1) * S;
        for (size_t s = 0; s < S; s++) {
            double sum = before[s];
            if (s > 0) sum = log_add(sum, before[s - 1]);
            if (s > 1 && ctc_skips(u->label, (int)s)) sum = log_add(sum, before[s - 2]);
            u->alpha[t * S + s] = sum + log_p_of(u, t, s);
        }
    }
    const double *last = u->alpha + (u->T - 1) * S;
    return -(S > 1 ? log_add(last[S - 1], last[S - 2]) : last[0]);
}

/* beta of step t from that of the step after. */
static void step_back(const struct utterance *u, size_t t) {
    const size_t S = u->S;
    double *now = u->beta + t % 2 * S;
    const double *after = u->beta + (t + 1) % 2 * S;
    for (size_t s = 0; s < S; s++) {
        if (t + 1 == u->T) {
            now[s] = s + 2 >= S ? 0 : -INFINITY;
            continue;
        }
        double sum = after[s] + log_p_of(u, t + 1, s);
        if (s + 1 < S) sum = log_add(sum, after[s + 1] + log_p_of(u, t + 1, s + 1));
        if (s + 2 < S && ctc_skips(u->label, (int)s + 2)) sum = log_add(sum, after[s + 2] + log_p_of(u, t + 1, s + 2));
        now[s] = sum;
    }
}

/* dlogit_t (k) = (p_t (k) - q_t (k)) / over */
static void backward(const struct utterance *u, double loss, double over, float *dlogits) {
    for (size_t t = u->T; t-- > 0;) {
        const double *alpha = u->alpha + t * u->S, *beta = u->beta + t % 2 * u->S;
        step_back(u, t);
        memset(u->q, 0, u->K * sizeof *u->q);
        for (size_t s = 0; s < u->S; s++) u->q[ctc_class(u->label, (int)s)] += exp(alpha[s] + beta[s] + loss);
        for (size_t k = 0; k < u->K; k++)
            dlogits[row_of(u, t) + k] = (float)((exp(u->log_p[t * u->K + k]) - u->q[k]) / over);
    }
}

static double loss_of(struct utterance *u, double over, float *dlogits) {
    const size_t most = u->T * u->K + u->T * u->S + 2 * u->S + u->K;
    u->log_p = mem_alloc(most, sizeof *u->log_p, "CTC's probabilities");
    u->alpha = u->log_p + u->T * u->K;
    u->beta = u->alpha + u->T * u->S;
    u->q = u->beta + 2 * u->S;
    for (size_t t = 0; t < u->T; t++) log_softmax(u->call->logits + row_of(u, t), u->K, u->log_p + t * u->K);
    const double loss = forward(u);
    if (dlogits) backward(u, loss, over, dlogits);
    mem_free(u->log_p);
    return loss;
}

/* The best path, and zeros in the gradient where the utterance has none. */
static void go_over_steps(const struct utterance *u, bool counts, int32_t *path, float *dlogits) {
    for (size_t t = 0; t < (size_t)u->call->steps; t++) {
        const float *z = u->call->logits + row_of(u, t);
        int32_t best = 0;
        for (size_t k = 1; t < u->T && k < u->K; k++) best = z[k] > z[best] ? (int32_t)k : best;
        path[t] = t < u->T ? best : -1;
        if (dlogits && (!counts || t >= u->T)) memset(dlogits + row_of(u, t), 0, u->K * sizeof *dlogits);
    }
}

void cpu_ctc(const struct ctc_call *call, const struct cpu_ctc_labels *labels, int32_t *path,
             struct net_result *result) {
    const size_t batch = (size_t)call->batch;
    double *loss = mem_zalloc(batch, sizeof *loss, "the losses of utterances");
    bool *counts = mem_zalloc(batch, sizeof *counts, "the utterances that count");
#pragma omp parallel for schedule(dynamic)
    for (size_t n = 0; n < batch; n++) {
        const int32_t *label = labels->label + n * (size_t)labels->stride;
        const int own = ctc_labels(label, labels->stride), steps = steps_of(call->lengths[n], call->frames);
        struct utterance u = {.call = call,
                              .label = label,
                              .number = n,
                              .T = (size_t)steps,
                              .K = (size_t)call->classes,
                              .S = 2 * (size_t)own + 1};
        counts[n] = (int)n < labels->valid && ctc_counts(label, own, steps);
        go_over_steps(&u, counts[n], path + n * (size_t)call->steps, call->dlogits);
        if (counts[n]) loss[n] = loss_of(&u, labels->over, call->dlogits);
    }
    *result = (struct net_result){0};
    for (size_t n = 0; n < batch; n++) {
        result->loss += loss[n];
        result->count += counts[n];
    }
    mem_free(loss);
    mem_free(counts);
}
