/* packed_index.h: strictly increasing indices as few bits: the index part of the formats `packed` and `packed-f32`.
 *
 * Layout, in 32-bit words of the machine's byte order. Blocks of 256 entries, the last one of what is left; a block of
 * c entries codes the gaps g[i] = idx[i] - idx[i-1] - 1 (before the first of all: from - 1) by Rice's code, its two
 * halves apart, so that both are read and written word by word:
 *
 *        1 word            width w (6 bits), sum of heights h (13 bits, << 6), outliers x (9 bits, << 19)
 *        ceil(c w / 32)    low[i] = g[i] mod 2^w, w bits each. In a full block as 8 columns, value i in column i mod 8,
 *                          word r of column j at 8 r + j; in the last block end to end
 *        ceil((c + h)/32)  a bitmap: bit i + high[0] + ... + high[i] is set, high[i] = floor(g[i] / 2^w), 0 for
 * outliers ceil(x / 4)       the outliers' places in the block, a byte each, increasing x                 their floor(g
 * / 2^w), a word each
 *
 * w = 32 (then h = 0) always fits, which bounds a block by 1 + c + ceil(c/32) words. */
#ifndef ST_COMM_PACKED_INDEX_H
#define ST_COMM_PACKED_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Most words for nnz indices. */
size_t packed_index_words_max(size_t nnz);

/* Words to expect for so many entries (>= 1; a mean) at random places, an index being one with probability `density`,
 * in (0, 1]. */
double packed_index_words_expected(double entries, double density);

/* idx: [nnz], increasing, >= from. words: [packed_index_words_max(nnz)]. Returns the words written. */
size_t packed_index_encode(const uint32_t *idx, size_t nnz, size_t from, uint32_t *words);

/* words: [count], any contents. idx: [nnz]. False: they are not nnz indices in [from, to), *e says why; idx then holds
 * anything. */
bool packed_index_decode(const uint32_t *words, size_t count, size_t from, size_t to, uint32_t *idx, size_t nnz,
                         struct err *e);

#endif
