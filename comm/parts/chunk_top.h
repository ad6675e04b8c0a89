/* chunk_top.h: the entries of largest magnitude of a chunk, so many consecutive entries that 16 bits number them. */
#ifndef ST_COMM_CHUNK_TOP_H
#define ST_COMM_CHUNK_TOP_H

#include <stddef.h>
#include <stdint.h>

/* at: [k], the places of the k largest of val[0..m-1], ascending; of equal ones the lower. 1 <= k <= m <= 65536; key:
 * scratch, [m]. */
void chunk_top(const float *val, size_t m, size_t k, uint32_t *key, uint16_t *at);

#endif
