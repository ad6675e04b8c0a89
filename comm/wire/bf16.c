/* bf16.c: see bf16.h. */
#include "comm/wire/bf16.h"

#include <string.h>

#include "base/simd.h"
#include "topk/sparse.h"

/* The bits of a value, rounded; without branches, so that the loop below becomes vector instructions. */
static inline uint32_t rounded_bits(uint32_t whole) {
    uint32_t magnitude = whole & 0x7fffffff, nearest = (magnitude + 0x7fff + (magnitude >> 16 & 1)) & 0xffff0000;
    nearest = nearest >= KEY_INFINITE ? 0x7f7f0000 : nearest;                           /* the largest */
    nearest = magnitude >= KEY_INFINITE ? (magnitude & 0xffff0000) : nearest;           /* an infinity stays one */
    nearest = magnitude > KEY_INFINITE ? (magnitude & 0xffff0000) | 0x400000 : nearest; /* a NaN too */
    return nearest | (whole & 0x80000000);
}

float bf16_round(float value) {
    uint32_t whole;
    memcpy(&whole, &value, sizeof whole);
    whole = rounded_bits(whole);
    memcpy(&value, &whole, sizeof value);
    return value;
}

SIMD_CLONES void bf16_round_all(float *val, size_t count, float *error) {
    for (size_t i = 0; i < count; i++) {
        float rounded = bf16_round(val[i]);
        error[i] = val[i] - rounded;
        val[i] = rounded;
    }
}

SIMD_CLONES void bf16_write(const float *value, size_t nnz, unsigned char *half) {
    for (size_t i = 0; i < nnz; i++) {
        uint32_t whole;
        memcpy(&whole, &value[i], sizeof whole);
        uint16_t upper = (uint16_t)(whole >> 16);
        memcpy(half + 2 * i, &upper, sizeof upper);
    }
}

SIMD_CLONES void bf16_read(const unsigned char *half, size_t nnz, float *value) {
    for (size_t i = 0; i < nnz; i++) {
        uint16_t upper;
        memcpy(&upper, half + 2 * i, sizeof upper);
        uint32_t whole = (uint32_t)upper << 16;
        memcpy(&value[i], &whole, sizeof whole);
    }
}
