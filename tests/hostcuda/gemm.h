/* gemm.h: the one matrix product behind the stand-ins of cuBLAS and cuDNN, and how their narrow numbers are read and
 * rounded. Host memory, one thread; every sum runs in the order of its index, so results never depend on the machine.
 */
#ifndef ST_TESTS_HOSTCUDA_GEMM_H
#define ST_TESTS_HOSTCUDA_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A matrix in memory: entry (row, column) stands at at[row * down + column * across]. */
struct matrix {
    float *at;
    ptrdiff_t down, across;
};

static inline struct matrix hostcuda_turned(struct matrix a) {
    return (struct matrix){a.at, a.across, a.down};
}

/* C += A B, where A is m x k, B is k x n and C is m x n; C overlaps neither A nor B. A and B are only read. */
void hostcuda_gemm(size_t m, size_t n, size_t k, struct matrix a, struct matrix b, struct matrix c);

/* How an operand is rounded before it is multiplied. */
enum rounding {
    ROUND_NOT,
    ROUND_TF32, /* to 10 bits of mantissa, what tensor cores do to float */
    ROUND_BF16, /* to 7 bits of mantissa */
};

float hostcuda_from_bf16(uint16_t word);
uint16_t hostcuda_to_bf16(float value); /* to nearest, ties to even */

/* Copies count numbers, float or bf16 words, as floats, rounded. */
void hostcuda_widen(float *to, const void *from, bool is_bf16, size_t count, enum rounding how);

/* to[i] = alpha * from[i] + beta * to[i]; to is not read where beta is 0, as the libraries promise. */
void hostcuda_blend(void *to, bool is_bf16, const float *from, size_t count, float alpha, float beta);

/* malloc that complains instead of returning NULL. */
void *hostcuda_scratch(size_t bytes);

#endif
