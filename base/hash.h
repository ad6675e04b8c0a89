/* hash.h: checksums. crc32_of is zlib's CRC-32 (what `crc32 FILE` prints); it guards files.
 * hash64 is a fast 64-bit hash over bytes for comparing replicas and configurations; not for files. */
#ifndef ST_BASE_HASH_H
#define ST_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Continue `crc` (0 to start) over the next bytes. */
uint32_t crc32_of(uint32_t crc, const void *bytes, size_t size);

/* Continue `hash` (0 to start); the result depends on how the bytes are cut into calls. */
uint64_t hash64(uint64_t hash, const void *bytes, size_t size);

#endif
