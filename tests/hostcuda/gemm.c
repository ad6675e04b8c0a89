/* gemm.c: see gemm.h. B is copied into panels of LANES columns, filled up with zeros, so that one small kernel of
 * ROWS x LANES sums serves every shape and every stride. */
#include "tests/hostcuda/gemm.h"

#include <stdlib.h>
#include <string.h>

#include "base/simd.h"
#include "tests/hostcuda/hostcuda.h"

/* Two vectors of AVX2 for a row: of wider ones gcc keeps the sums in memory where the processor has none. */
enum { EIGHT = 8, LANES = 2 * EIGHT, ROWS = 4 };
typedef float eight __attribute__((vector_size(EIGHT * sizeof(float))));

void *hostcuda_scratch(size_t bytes) {
    void *scratch = malloc(bytes ? bytes : 1);
    if (!scratch) hostcuda_complain("no host memory for %zu bytes of scratch", bytes);
    return scratch;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Drops the lowest `drop` bits of the mantissa: to nearest, ties to even. A NaN stays one, an overflow gives infinity.
 */
static uint32_t round_bits(uint32_t bits, unsigned drop) {
    if ((bits & 0x7f800000u) == 0x7f800000u) return (bits & 0x007fffffu) ? bits | 0x00400000u : bits;
    uint32_t half = 1u << (drop - 1), odd = bits >> drop & 1u;
    return (bits + half - 1u + odd) & ~((1u << drop) - 1u);
}

static float rounded(float value, enum rounding how) {
    if (how == ROUND_NOT) return value;
    return float_of(round_bits(bits_of(value), how == ROUND_TF32 ? 13 : 16));
}

float hostcuda_from_bf16(uint16_t word) {
    return float_of((uint32_t)word << 16);
}

uint16_t hostcuda_to_bf16(float value) {
    return (uint16_t)(round_bits(bits_of(value), 16) >> 16);
}

void hostcuda_widen(float *to, const void *from, bool is_bf16, size_t count, enum rounding how) {
    const uint16_t *words = from;
    const float *floats = from;
    for (size_t i = 0; i < count; i++) to[i] = rounded(is_bf16 ? hostcuda_from_bf16(words[i]) : floats[i], how);
}

void hostcuda_blend(void *to, bool is_bf16, const float *from, size_t count, float alpha, float beta) {
    uint16_t *words = to;
    float *floats = to;
    if (is_bf16)
        for (size_t i = 0; i < count; i++) {
            float old = beta != 0 ? beta * hostcuda_from_bf16(words[i]) : 0;
            words[i] = hostcuda_to_bf16(alpha * from[i] + old);
        }
    else if (beta == 0)
        for (size_t i = 0; i < count; i++) floats[i] = alpha * from[i];
    else
        for (size_t i = 0; i < count; i++) floats[i] = alpha * from[i] + beta * floats[i];
}

/* panel[p][lane] = B(p, first + lane) or 0 beyond the last column. */
static void pack(float *panel, struct matrix b, size_t k, size_t first, size_t columns) {
    const float *from = b.at + (ptrdiff_t)first * b.across;
    for (size_t p = 0; p < k; p++, from += b.down, panel += LANES)
        if (columns == LANES && b.across == 1)
            memcpy(panel, from, LANES * sizeof *panel);
        else
            for (size_t j = 0; j < LANES; j++) panel[j] = j < columns ? from[(ptrdiff_t)j * b.across] : 0;
}

/* sums[row][lane] = sum over p of A(row, p) * panel[p][lane]; rows[] point at A(row, 0). */
SIMD_CLONES
static void block(float sums[ROWS][LANES], const float *const rows[ROWS], ptrdiff_t across, const float *panel,
                  size_t k) {
    eight low[ROWS] = {{0}}, high[ROWS] = {{0}};
    for (size_t p = 0; p < k; p++, panel += LANES) {
        eight b0, b1;
        memcpy(&b0, panel, sizeof b0);
        memcpy(&b1, panel + EIGHT, sizeof b1);
        const ptrdiff_t at = (ptrdiff_t)p * across;
#pragma GCC unroll 4
        for (size_t r = 0; r < ROWS; r++) {
            low[r] += rows[r][at] * b0;
            high[r] += rows[r][at] * b1;
        }
    }
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(sums[r], &low[r], sizeof low[r]);
        memcpy(sums[r] + EIGHT, &high[r], sizeof high[r]);
    }
}

void hostcuda_gemm(size_t m, size_t n, size_t k, struct matrix a, struct matrix b, struct matrix c) {
    float *panel = hostcuda_scratch(k * LANES * sizeof *panel);
    float sums[ROWS][LANES];
    for (size_t first = 0; first < n; first += LANES) {
        size_t columns = n - first < LANES ? n - first : LANES;
        pack(panel, b, k, first, columns);
        for (size_t i = 0; i < m; i += ROWS) {
            size_t count = m - i < ROWS ? m - i : ROWS;
            const float *rows[ROWS];
            for (size_t r = 0; r < ROWS; r++) rows[r] = a.at + (ptrdiff_t)(i + (r < count ? r : 0)) * a.down;
            block(sums, rows, a.across, panel, k);
            for (size_t r = 0; r < count; r++) {
                float *to = c.at + (ptrdiff_t)(i + r) * c.down + (ptrdiff_t)first * c.across;
                for (size_t j = 0; j < columns; j++) to[(ptrdiff_t)j * c.across] += sums[r][j];
            }
        }
    }
    free(panel);
}
