/* cpu_loss.c: softmax cross-entropy and top-1 of rows of logits; see cpu_layers.h. A vocabulary of 10,000 words makes
 * the exponentials the work of milliseconds, so they are written without branches and tables: loops over them become
 * vectors, which give the same bits on every machine. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/simd.h"
#include "nets/cpu/cpu_layers.h"

enum { LANES = 16 };

/* Arguments below are cut: e^x stays a normal number, and nothing beside the 1 of the largest logit. NaN passes. */
#define LEAST -708.0
/* To add it rounds to an integer, which is then in the lowest bits of the sum: 3 * 2^51. */
#define ROUNDER 6755399441055744.0

/* e^x for x <= 0: 2^n e^r with r = x - n log 2, |r| <= log(2) / 2, and Taylor's series to r^13, whose rest is below
 * 1e-17. */
static inline __attribute__((always_inline)) double exponential(double x) {
    x = x < LEAST ? LEAST : x;
    double shifted = x * 1.4426950408889634 + ROUNDER, n = shifted - ROUNDER;
    double r = x - n * 6.93145751953125e-1 - n * 1.42860682030941723212e-6; /* the first part has few bits */
    double p = 1.0 / 6227020800;
    p = p * r + 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    uint64_t bits;
    double power; /* 2^n: n, from the lowest bits, becomes the exponent */
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&power, &bits, sizeof power);
    return (p * (r * r) + r + 1) * power;
}

/* The largest of z; NaN only where z[0] is. */
SIMD_CLONES static float largest(const float *z, size_t n) {
    float most[LANES];
    for (size_t l = 0; l < LANES; l++) most[l] = z[0];
    size_t c = 0;
    for (; c + LANES <= n; c += LANES)
        for (size_t l = 0; l < LANES; l++) most[l] = z[c + l] > most[l] ? z[c + l] : most[l];
    for (; c < n; c++) most[0] = z[c] > most[0] ? z[c] : most[0];
    for (size_t l = 1; l < LANES; l++) most[0] = most[l] > most[0] ? most[l] : most[0];
    return most[0];
}

/* e[c] = exp(z[c] - top); returns their sum. */
SIMD_CLONES static double exponentials(const float *z, size_t n, double top, double *e) {
    double sum[LANES] = {0}, all = 0;
    for (size_t c = 0; c < n; c++) e[c] = exponential(z[c] - top);
    size_t c = 0;
    for (; c + LANES <= n; c += LANES)
        for (size_t l = 0; l < LANES; l++) sum[l] += e[c + l];
    for (; c < n; c++) all += e[c];
    for (size_t l = 0; l < LANES; l++) all += sum[l];
    return all;
}

SIMD_CLONES static void scale(const double *e, size_t n, double factor, float *dz) {
    for (size_t c = 0; c < n; c++) dz[c] = (float)(e[c] * factor);
}

/* loss = log(sum_c exp(z_c - z_max)) - (z_label - z_max);  dz_c = (softmax_c - [c == label]) / over */
static double loss_of_row(const float *z, size_t classes, size_t label, double over, float *dz, double *e,
                          size_t *best) {
    const float top = largest(z, classes);
    *best = 0;
    while (*best + 1 < classes && z[*best] != top) ++*best; /* ties: the lower class */
    if (z[*best] != top) *best = 0;                         /* NaN */
    const double sum = exponentials(z, classes, top, e);
    if (dz) {
        scale(e, classes, 1 / (sum * over), dz);
        dz[label] = (float)((e[label] / sum - 1) / over);
    }
    return log(sum) - ((double)z[label] - top);
}

struct row {
    double loss;
    bool counts, correct;
};

/* Rows are shared by the threads and added up in their order. */
void cpu_loss(const float *logits, const int32_t *label, int classes, int valid, double over, float *dlogits,
              struct net_result *result) {
    struct row *row = mem_alloc((size_t)valid, sizeof *row, "the losses of the rows");
#pragma omp parallel
    {
        double *e = mem_alloc((size_t)classes, sizeof *e, "exponentials of the classes");
#pragma omp for schedule(static)
        for (int i = 0; i < valid; i++) {
            const size_t at = (size_t)i * (size_t)classes, own = (size_t)label[i];
            float *dz = dlogits ? dlogits + at : NULL;
            size_t best;
            row[i] = (struct row){.counts = label[i] >= 0};
            if (!row[i].counts) {
                if (dz) memset(dz, 0, (size_t)classes * sizeof *dz);
                continue;
            }
            row[i].loss = loss_of_row(logits + at, (size_t)classes, own, over, dz, e, &best);
            row[i].correct = best == own;
        }
        mem_free(e);
    }
    *result = (struct net_result){0};
    for (int i = 0; i < valid; i++) {
        result->count += row[i].counts;
        result->loss += row[i].loss;
        result->correct += row[i].correct;
    }
    mem_free(row);
}
