/* bf16.h: values in half the bits. bf16 is the upper half of an f32: 8 bits of significand, the same range. Rounded to
 * nearest, ties to even, and to the largest finite value instead of an infinity, so that value - rounded is a finite
 * f32 without error. */
#ifndef ST_COMM_BF16_H
#define ST_COMM_BF16_H

#include <stddef.h>

/* `round` and `round_all` of a format whose values are bf16 (wire.h). */
float bf16_round(float value);
void bf16_round_all(float *val, size_t count, float *error);

/* half[i] = the upper half of value[i], in the order of the machine's 16-bit words, and back, the lower half being 0.
 * value: [nnz]; half: [2 nnz] bytes. */
void bf16_write(const float *value, size_t nnz, unsigned char *half);
void bf16_read(const unsigned char *half, size_t nnz, float *value);

#endif
