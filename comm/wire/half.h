/* half.h: floats of 16 bits: fp16 (IEEE binary16: 11 bits of significand, up to 65504, multiples of 2^-24 below 2^-14).
 * Rounded to nearest, ties to even, and to the largest finite value in place of an infinity; infinities and NaN stay
 * what they are. Without branches, so that loops over them become vector instructions; the same bits on any processor.
 * bf16 is in bf16.h. */
#ifndef ST_COMM_HALF_H
#define ST_COMM_HALF_H

#include <math.h>
#include <string.h>

#include "topk/sparse.h"

static inline uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 2^-14, the least normal number of fp16; 65504, its largest; what lies between the exponents of f32 and fp16 */
enum { FP16_NORMAL = 0x38800000, FP16_LARGEST = 0x477fe000, FP16_BIAS = 0x38000000 };

/* Below 2^-14: adding 0.5, whose last bit is 2^-24, rounds to a multiple of that. */
static inline float fp16_round(float value) {
    uint32_t whole = float_bits(value), magnitude = whole & 0x7fffffff;
    uint32_t nearest = (magnitude + 0xfff + (magnitude >> 13 & 1)) & 0xffffe000;
    uint32_t small = float_bits((float_of_bits(magnitude) + 0.5f) - 0.5f);
    nearest = nearest > FP16_LARGEST ? FP16_LARGEST : nearest;
    nearest = magnitude < FP16_NORMAL ? small : nearest;
    nearest = magnitude >= KEY_INFINITE ? magnitude : nearest;
    return float_of_bits(nearest | (whole & 0x80000000));
}
/* Of what fp16_round gave. */
static inline uint16_t fp16_half(float rounded) {
    uint32_t whole = float_bits(rounded), magnitude = whole & 0x7fffffff;
    uint32_t half = (magnitude - FP16_BIAS) >> 13, small = float_bits(float_of_bits(magnitude) + 0.5f) & 0x7fffff;
    half = magnitude < FP16_NORMAL ? small : half;
    half = magnitude >= KEY_INFINITE ? 0x7c00 : half;
    half = magnitude > KEY_INFINITE ? 0x7e00 : half;
    return (uint16_t)(half | (whole >> 16 & 0x8000));
}
static inline float fp16_value(uint16_t half) {
    uint32_t magnitude = half & 0x7fffu, whole = (magnitude << 13) + FP16_BIAS;
    uint32_t small = float_bits((float)(int32_t)magnitude * 0x1p-24f);
    whole = magnitude < 0x400 ? small : whole;
    whole = magnitude >= 0x7c00 ? (magnitude << 13 | KEY_INFINITE) : whole;
    return float_of_bits(whole | (uint32_t)(half & 0x8000u) << 16);
}

#endif
