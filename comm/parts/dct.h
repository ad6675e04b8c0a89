/* dct.h: the discrete cosine transform of small matrices, as products with the matrix of the transform, in float.
 *
 *        dct_open(&d);
 *        dct_size(&d, h), dct_size(&d, w);         // once for each length of a side
 *        dct_forward(&d, x, h, w, scratch, y);     // y = C_h x C_w^T
 *        dct_inverse(&d, y, h, w, scratch, x);     // x = C_h^T y C_w
 *        dct_close(&d);
 *
 * Rows of C_s are the orthonormal DCT-II's: C_s[b][j] = sqrt((b > 0 ? 2 : 1) / s) cos(pi (2j + 1) b / 2s), so that the
 * inverse is the transpose. Each entry of a product is a sum in the order of the index that is summed over, its terms
 * rounded one by one; the product with C_w comes first. The cosines are the same bits on every machine (half_turn.h),
 * and so is all that is made with them. */
#ifndef ST_COMM_DCT_H
#define ST_COMM_DCT_H

#include <stddef.h>

enum { DCT_SIDE = 64 };

struct dct {
    float *row[DCT_SIDE + 1];    /* by length s: [s][s] C_s; NULL: not asked for */
    float *column[DCT_SIDE + 1]; /* its transpose */
};

void dct_open(struct dct *d);
void dct_close(struct dct *d);
/* Allocates; 1 <= s <= DCT_SIDE. */
void dct_size(struct dct *d, size_t s);

/* x, y, scratch: [h][w], none of them another. What is zero in the coefficients costs the way back next to nothing, and
 * so do rows of them that are all zeros. */
void dct_forward(const struct dct *d, const float *x, size_t h, size_t w, float *scratch, float *y);
void dct_inverse(const struct dct *d, const float *y, size_t h, size_t w, float *scratch, float *x);

#endif
