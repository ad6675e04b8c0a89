/* hash.h: checksums. crc32_of is zlib's CRC-32 (what `crc32 FILE` prints); it guards files.
 * hash64 is a fast 64-bit hash over bytes for comparing replicas and configurations; not for files. hash_word
 * makes random words for tests and benches. */
#ifndef ST_BASE_HASH_H
#define ST_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Continue `crc` (0 to start) over the next bytes. */
uint32_t crc32_of(uint32_t crc, const void *bytes, size_t size);

/* Continue `hash` (0 to start); the result depends on how the bytes are cut into calls. */
uint64_t hash64(uint64_t hash, const void *bytes, size_t size);

/* Word i of the random sequence of this key: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), whose state is a counter,
 * so that any place of the sequence is as near as the first. */
static inline uint64_t hash_word(uint64_t key, uint64_t i) {
    uint64_t x = key + (i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

#endif
