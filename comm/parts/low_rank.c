/* low_rank.c: see low_rank.h. */
#include "comm/parts/low_rank.h"

#include <math.h>
#include <string.h>

#include "base/simd.h"

enum { LANES = 16, BLOCK = 4 /* rows that are added to the right factor at once */ };

/* Of the length of a column so much at least is left where it is more than rounding of the columns before it. */
#define SOMETHING 1e-6

/* -- which matrices ------------------------------------------------------------------------------------------------ */
static bool pays(size_t rows, size_t cols, size_t r) {
    return 2 * (double)r * ((double)rows + (double)cols) < (double)rows * (double)cols;
}

static void add_matrix(struct low_rank_size *size, struct low_rank_matrix *matrix, struct low_rank_matrix new,
                       size_t r) {
    if (!pays(new.rows, new.cols, r)) return;
    new.left = size->left;
    new.right = size->right;
    if (matrix) matrix[size->matrices] = new;
    size->matrices++;
    size->left += r * new.rows;
    size->right += r * new.cols;
    size->rest -= new.count;
}

/* ceil(sqrt(n)) columns. */
static struct low_rank_matrix square(size_t n) {
    size_t cols = (size_t)ceil(sqrt((double)n));
    return (struct low_rank_matrix){.count = n, .rows = (n - 1) / cols + 1, .cols = cols};
}

struct low_rank_size low_rank_size(const struct exchange_slice *slice, size_t slices, size_t n, size_t r,
                                   struct low_rank_matrix *matrix) {
    struct low_rank_size size = {.rest = n};
    for (size_t i = 0; i < slices; i++) {
        const struct exchange_slice *s = &slice[i];
        add_matrix(&size, matrix, (struct low_rank_matrix){s->from, s->rows * s->cols, s->rows, s->cols, 0, 0}, r);
    }
    if (slices == 0) add_matrix(&size, matrix, square(n), r);
    return size;
}

/* -- products ------------------------------------------------------------------------------------------------------ */
SIMD_CLONES static float dot(const float *a, const float *b, size_t count) {
    float lane[LANES] = {0}, sum = 0;
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += a[i + l] * b[i + l];
    for (size_t i = whole; i < count; i++) lane[i - whole] += a[i] * b[i];
    for (size_t l = 0; l < LANES; l++) sum += lane[l];
    return sum;
}

/* sum += f[0] a_0 + ... of up to BLOCK rows that lie `cols` apart. */
SIMD_CLONES static void add_rows(const float *a, size_t cols, const float *f, size_t rows, float *restrict sum) {
    if (rows == BLOCK) {
        const float *b = a + cols, *c = b + cols, *d = c + cols;
        for (size_t j = 0; j < cols; j++) sum[j] = sum[j] + f[0] * a[j] + f[1] * b[j] + f[2] * c[j] + f[3] * d[j];
        return;
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) sum[j] += f[i] * a[i * cols + j];
}

SIMD_CLONES static void scaled(const float *restrict a, float f, size_t count, bool add, float *restrict to) {
    if (add)
        for (size_t j = 0; j < count; j++) to[j] += f * a[j];
    else
        for (size_t j = 0; j < count; j++) to[j] = f * a[j];
}

/* Entries that row i has in the vector: all but the last have `cols`. */
static size_t row_length(const struct low_rank_matrix *m, size_t i) {
    size_t from = i * m->cols;
    return m->count - from < m->cols ? m->count - from : m->cols;
}

void low_rank_left(const struct low_rank_matrix *m, size_t r, const float *v, const float *right, float *left) {
    const float *row = v + m->from, *column = right + m->right;
    float *to = left + m->left;
    for (size_t i = 0; i < m->rows; i++, row += m->cols)
        for (size_t c = 0; c < r; c++) to[c * m->rows + i] = dot(row, column + c * m->cols, row_length(m, i));
}

void low_rank_right(const struct low_rank_matrix *m, size_t r, const float *v, const float *left, float *right) {
    const float *factor = left + m->left;
    float *to = right + m->right;
    const size_t full = m->count / m->cols; /* rows that do not end early */
    memset(to, 0, r * m->cols * sizeof *to);
    for (size_t i = 0; i < full; i += BLOCK)
        for (size_t c = 0; c < r; c++)
            add_rows(v + m->from + i * m->cols, m->cols, factor + c * m->rows + i, full - i < BLOCK ? full - i : BLOCK,
                     to + c * m->cols);
    for (size_t c = 0; c < r && full < m->rows; c++)
        scaled(v + m->from + full * m->cols, factor[c * m->rows + full], row_length(m, full), true, to + c * m->cols);
}

void low_rank_expand(const struct low_rank_matrix *m, size_t r, const float *left, const float *right, float *u) {
    const float *factor = left + m->left, *column = right + m->right;
    float *row = u + m->from;
    for (size_t i = 0; i < m->rows; i++, row += m->cols)
        for (size_t c = 0; c < r; c++)
            scaled(column + c * m->cols, factor[c * m->rows + i], row_length(m, i), c > 0, row);
}

/* -- orthonormal columns ------------------------------------------------------------------------------------------- */
SIMD_CLONES static double exact_dot(const float *a, const float *b, size_t count) {
    double lane[LANES] = {0}, sum = 0;
    size_t whole = count / LANES * LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t l = 0; l < LANES; l++) lane[l] += (double)a[i + l] * (double)b[i + l];
    for (size_t i = whole; i < count; i++) lane[i - whole] += (double)a[i] * (double)b[i];
    for (size_t l = 0; l < LANES; l++) sum += lane[l];
    return sum;
}

SIMD_CLONES static void subtract(float *restrict from, const float *restrict a, double f, size_t count) {
    for (size_t i = 0; i < count; i++) from[i] = (float)((double)from[i] - f * (double)a[i]);
}

SIMD_CLONES static void divide(float *a, double by, size_t count) {
    for (size_t i = 0; i < count; i++) a[i] = (float)((double)a[i] / by);
}

bool low_rank_orthonormal(float *column, size_t length, size_t i) {
    float *own = column + i * length;
    const double before = sqrt(exact_dot(own, own, length));
    for (int again = 0; again < 2; again++)
        for (size_t j = 0; j < i; j++)
            subtract(own, column + j * length, exact_dot(own, column + j * length, length), length);
    const double after = sqrt(exact_dot(own, own, length));
    if (after == 0 || after < SOMETHING * before) { /* false of what is not a number, or infinite */
        memset(own, 0, length * sizeof *own);
        return false;
    }
    divide(own, after, length);
    return true;
}
