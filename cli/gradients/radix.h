/* radix.h: sorting by a whole number, in linear time. */
#ifndef ST_CLI_RADIX_H
#define ST_CLI_RADIX_H

#include <stddef.h>
#include <stdint.h>

/* Puts key[0..count-1] in ascending order of their lowest bytes, as many as numbers below `limit` have; what stands
 * above goes with them. Of equals the order stays. scratch: [count]. */
void radix_sort(uint64_t *key, uint64_t *scratch, size_t count, uint64_t limit);

#endif
