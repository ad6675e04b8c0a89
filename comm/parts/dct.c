/* dct.c: see dct.h. */
#include "comm/parts/dct.h"

#include <math.h>
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

/* out[i][j] = sum_k a[i][k] b[k][j], each sum in the order of k; out: [m][n], a: [m][l], b: [l][n]. Eight terms at a
 * time, so that a row of out is read and written once for them. */
SIMD_CLONES static void product(const float *restrict a, const float *restrict b, size_t m, size_t l, size_t n,
                                float *restrict out) {
    memset(out, 0, m * n * sizeof *out);
    for (size_t i = 0; i < m; i++, a += l, out += n) {
        size_t k = 0;
        for (; k + 8 <= l; k += 8) {
            const float *restrict by = a + k, *restrict r = b + k * n;
            for (size_t j = 0; j < n; j++)
                out[j] = out[j] + by[0] * r[j] + by[1] * r[n + j] + by[2] * r[2 * n + j] + by[3] * r[3 * n + j] +
                         by[4] * r[4 * n + j] + by[5] * r[5 * n + j] + by[6] * r[6 * n + j] + by[7] * r[7 * n + j];
        }
        for (; k < l; k++)
            for (size_t j = 0; j < n; j++) out[j] += a[k] * b[k * n + j];
    }
}

/* The same of an a that is mostly zeros. */
SIMD_CLONES static void sparse_product(const float *restrict a, const float *restrict b, size_t m, size_t l, size_t n,
                                       float *restrict out) {
    memset(out, 0, m * n * sizeof *out);
    for (size_t i = 0; i < m; i++)
        for (size_t k = 0; k < l; k++) {
            const float by = a[i * l + k];
            if (by == 0) continue;
            for (size_t j = 0; j < n; j++) out[i * n + j] += by * b[k * n + j];
        }
}

void dct_forward(const struct dct *d, const float *x, size_t h, size_t w, float *scratch, float *y) {
    product(x, d->column[w], h, w, w, scratch);
    product(d->row[h], scratch, h, h, w, y);
}

void dct_inverse(const struct dct *d, const float *y, size_t h, size_t w, float *scratch, float *x) {
    sparse_product(y, d->row[w], h, w, w, scratch);
    product(d->column[h], scratch, h, h, w, x);
}
