/* gap_block.h: strictly increasing indices in blocks of 128 gaps, at a width for each block: the index part of the
 * formats `packed-fast` and `packed-fast-f32`. A block of c entries codes g[i] = idx[i] - idx[i-1] - 1 (before the
 * first index of all: from - 1); its numbers have the machine's byte order and lie at multiples of 2 bytes:
 *
 *        2 bytes           width w, 0 to 24 (5 bits), long exceptions (1 bit, << 5), how many there are x (8 bits, <<
 * 6) 2 ceil(c w / 16)  low[i] = g[i] mod 2^w, w bits each. In a full block as 4 columns of 32-bit words, value i in
 *                          column i mod 4, word r of column j at 4 r + j; in the last block end to end
 *        2 x or 4 x        the exceptions, all i with g[i] >= 2^w: floor(g[i] / 2^w) 2^7 + i, in any order
 *
 * No width above 24 is needed: indices are below 2^32, so that fewer than 256 gaps of a message are 2^24 or more. */
#ifndef ST_COMM_GAP_BLOCK_H
#define ST_COMM_GAP_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { GAP_BLOCK = 128 }; /* entries */

/* Most bytes of all blocks of a message of nnz entries. Grows with nnz. */
size_t gap_blocks_bytes_max(size_t nnz);

/* Bytes to expect for so many entries (>= 1; a mean) at random places, an index being one with probability `density`,
 * in (0, 1]. */
double gap_blocks_bytes_expected(double entries, double density);

/* idx: [c], increasing; before[i]: the index before idx[i], [c]; c = 128, or fewer in the last block of a message.
 * Returns the bytes written to `to`. */
size_t gap_block_write(const uint32_t *idx, const uint32_t *before, size_t c, unsigned char *to);

/* The block that begins a rest of `bytes` bytes, any contents: c indices, increasing, in [*next, to). idx: [c]. *next
 * becomes one past the last. Returns the bytes read; 0: it is no such block, *e says why, and idx holds anything. */
size_t gap_block_read(const unsigned char *from, size_t bytes, size_t c, uint64_t *next, uint64_t to, uint32_t *idx,
                      struct err *e);

#endif
