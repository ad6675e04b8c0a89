/* two_bits.h: the largest entries of a chunk of 4,096 as SparseLoCo sends them: 12 bits for a place, 2 bits for a
 * value, and a table of what these stand for.
 *
 *        k = two_bits_kept(m);
 *        two_bits_encode(at, val, k, message);                 // val[i]: what the message says in its place
 *        if (!two_bits_decode(message, m, at, val)) ...        // no message of a chunk of m entries
 *
 * A message: table f32 [4]; the low 8 bits of each place, [k]; the high 4, two in a byte: of place i in the low half of
 * byte i, i < h = ceil(k/2), of place h + i in its high half; codes, four in a byte, likewise by quarters of ceil(k/4);
 * zeros up to a multiple of 4 bytes. Of a whole chunk k = 64: 16 + 64 + 32 + 16 = 128 bytes, of which 112 are the
 * entries' 14 bits. Bits are laid out in planes, so that all of it is loops over bytes.
 *
 * The quantiser (as SparseLoCo's public code has it: 4 bins over 6 sigma): of the k values the mean m and, with k - 1
 * below, the standard deviation s, in double;
 *
 *        code = floor((v - m) / (1.5 s) + 2.5), at least 0 and at most 3;  table[c] = mean of the values of code c
 *
 * s = 0 gives code 2. An entry is off by at most the width of its bin, 1.5 s, where it is not beyond the outermost
 * ones, by less than the spread of the values anywhere; and the k errors add up to 0, but for rounding.
 * Deviation: the statistics are of one chunk's values, so that a message of one chunk is whole; the public code's are
 * of all values of a tensor. */
#ifndef ST_COMM_TWO_BITS_H
#define ST_COMM_TWO_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TWO_BITS_CHUNK = 4096, TWO_BITS_KEPT = 64 };

/* Of m entries, 1 <= m <= 4096, one in 64 or part of it. */
size_t two_bits_kept(size_t m);
size_t two_bits_bytes(size_t k);

/* Of a vector of n entries in chunks: their messages end to end. */
size_t two_bits_bytes_of(size_t n);
/* ... and the entries in them. */
size_t two_bits_entries_of(size_t n);

/* at: [k] below 4096; val: [k], finite. */
void two_bits_encode(const uint16_t *at, float *val, size_t k, void *message);

/* at, val: [two_bits_kept(m)]. False: a place is beyond m. Values may be anything. */
bool two_bits_decode(const void *message, size_t m, uint16_t *at, float *val);

#endif
