/* dct.c: see dct.h. */
#include "comm/parts/dct.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/half_turn.h"
#include "base/mem.h"
#include "base/simd.h"

void dct_open(struct dct *d) {
    *d = (struct dct){{0}, {0}};
}

void dct_close(struct dct *d) {
    for (size_t s = 0; s <= DCT_SIDE; s++) {
        mem_free(d->row[s]);
        mem_free(d->column[s]);
    }
    dct_open(d);
}

/* cos(pi t / 2s): a whole turn is 4s, and the other half of it the mirror of the first. */
static double cosine(size_t t, size_t s) {
    t %= 4 * s;
    return half_turn_cos((double)(t > 2 * s ? 4 * s - t : t) / (double)(2 * s));
}

void dct_size(struct dct *d, size_t s) {
    if (d->row[s]) return;
    float *row = d->row[s] = mem_alloc(s * s, sizeof *row, "a cosine transform");
    float *column = d->column[s] = mem_alloc(s * s, sizeof *column, "a cosine transform");
    for (size_t b = 0; b < s; b++)
        for (size_t j = 0; j < s; j++)
            row[b * s + j] = column[j * s + b] =
                (float)(sqrt((b > 0 ? 2.0 : 1.0) / (double)s) * cosine((2 * j + 1) * b, s));
}

/* Rows of a product's second factor, those of its first by whose entries they are multiplied. */
struct terms {
    size_t count;
    unsigned char of[DCT_SIDE];
};

static struct terms all_of(size_t l) {
    struct terms t = {.count = l};
    for (size_t k = 0; k < l; k++) t.of[k] = (unsigned char)k;
    return t;
}

/* out[i][j] = sum_k a[i][t.of[k]] b[k][j], each sum in the order of k; out: [m][n], a: [m][l], b: [t.count][n]. Eight
 * terms at a time, so that a row of out is read and written once for them. */
SIMD_CLONES static void product(const float *restrict a, size_t l, const struct terms *restrict t,
                                const float *restrict b, size_t m, size_t n, float *restrict out) {
    memset(out, 0, m * n * sizeof *out);
    for (size_t i = 0; i < m; i++, a += l, out += n) {
        size_t k = 0;
        for (; k + 8 <= t->count; k += 8) {
            const unsigned char *of = t->of + k;
            const float *restrict r = b + k * n;
            const float by[] = {a[of[0]], a[of[1]], a[of[2]], a[of[3]], a[of[4]], a[of[5]], a[of[6]], a[of[7]]};
            for (size_t j = 0; j < n; j++)
                out[j] = out[j] + by[0] * r[j] + by[1] * r[n + j] + by[2] * r[2 * n + j] + by[3] * r[3 * n + j] +
                         by[4] * r[4 * n + j] + by[5] * r[5 * n + j] + by[6] * r[6 * n + j] + by[7] * r[7 * n + j];
        }
        for (; k < t->count; k++)
            for (size_t j = 0; j < n; j++) out[j] += a[t->of[k]] * b[k * n + j];
    }
}

/* The same of an a that is mostly zeros, for those of its rows that have anything, one after the other. */
SIMD_CLONES static struct terms sparse_product(const float *restrict a, size_t m, size_t l, const float *restrict b,
                                               size_t n, float *restrict out) {
    struct terms there = {.count = 0};
    for (size_t i = 0; i < m; i++, a += l) {
        bool any = false;
        memset(out, 0, n * sizeof *out);
        for (size_t k = 0; k < l; k++) {
            if (a[k] == 0) continue;
            any = true;
            for (size_t j = 0; j < n; j++) out[j] += a[k] * b[k * n + j];
        }
        if (!any) continue;
        there.of[there.count++] = (unsigned char)i;
        out += n;
    }
    return there;
}

void dct_forward(const struct dct *d, const float *x, size_t h, size_t w, float *scratch, float *y) {
    const struct terms across = all_of(w), down = all_of(h);
    product(x, w, &across, d->column[w], h, w, scratch);
    product(d->row[h], h, &down, scratch, h, w, y);
}

void dct_inverse(const struct dct *d, const float *y, size_t h, size_t w, float *scratch, float *x) {
    const struct terms there = sparse_product(y, h, w, d->row[w], w, scratch);
    product(d->column[h], h, &there, scratch, h, w, x);
}
