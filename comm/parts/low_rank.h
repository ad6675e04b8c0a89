/* low_rank.h: matrices in a vector, and what r directions of each say of it: one step of subspace iteration.
 *
 *        M ~ L R^T        M: [rows, cols], L: [rows, r] of orthonormal columns, R = M^T L: [cols, r]
 *
 * so that r (rows + cols) numbers stand for rows cols. L L^T projects on the columns of L, hence no approximation M'
 * has a larger norm than M, and M - M' is orthogonal to what was taken. Factors lie by columns: column c of L is left[c
 * rows .. c rows + rows - 1]. Of all matrices they lie one behind the other.
 *
 *        size = low_rank_size(slice, slices, n, r, matrix);          // matrix: [slices], or [1] without slices
 *        for (m in size.matrices) low_rank_left(&matrix[m], r, v, right, left);
 *        ... low_rank_orthonormal(left, rows, ...) ...
 *        for (m in size.matrices) low_rank_right(&matrix[m], r, v, left, right);
 *        low_rank_expand(&matrix[m], r, left, right, u);
 *
 * Every sum is made in one order on any processor (simd.h).
 *
 * Source: Vogels, Karimireddy and Jaggi, "PowerSGD", NeurIPS 2019, Algorithm 1; which matrices are worth it: PyTorch's
 * powerSGD_hook, min_compression_rate 2. */
#ifndef ST_COMM_LOW_RANK_H
#define ST_COMM_LOW_RANK_H

#include <stdbool.h>

#include "comm/cost/cost.h"

enum { LOW_RANK_MAX = 32 };

/* Entries [from, from + count) of the vector by rows; the last row may end early, as if zeros followed. */
struct low_rank_matrix {
    size_t from, count, rows, cols;
    size_t left, right; /* where its columns begin among those of all */
};

struct low_rank_size {
    size_t matrices;
    size_t left, right; /* entries of the factors: r times all rows, all columns */
    size_t rest;        /* entries of the vector that are in no matrix */
};

/* The slices that r directions make at least 2 times shorter, 2 r (rows + cols) < rows cols; all else, as vectors are,
 * is the rest. Without slices the whole vector is one matrix, as square as can be. matrix: [slices], at least [1], in
 * the order of the slices; NULL: not wanted. */
struct low_rank_size low_rank_size(const struct exchange_slice *slice, size_t slices, size_t n, size_t r,
                                   struct low_rank_matrix *matrix);

/* L = M R, R = M^T L, and u = L R^T. v, u: the vector, [n]; left, right: the factors of all. */
void low_rank_left(const struct low_rank_matrix *m, size_t r, const float *v, const float *right, float *left);
void low_rank_right(const struct low_rank_matrix *m, size_t r, const float *v, const float *left, float *right);
void low_rank_expand(const struct low_rank_matrix *m, size_t r, const float *left, const float *right, float *u);

/* Column i of `column` ([i + 1][length], those before it orthonormal) becomes orthonormal to those (Gram-Schmidt,
 * twice, so that rounding leaves it so). False, and the column zero, where nothing of it is left: it was zero, or a
 * combination of those before it but for rounding. What is not finite stays so. */
bool low_rank_orthonormal(float *column, size_t length, size_t i);

#endif
