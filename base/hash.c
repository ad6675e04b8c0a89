/* hash.c: see hash.h. */
#include "base/hash.h"

#include <string.h>
#include <zlib.h>

uint32_t crc32_of(uint32_t crc, const void *bytes, size_t size) {
    return (uint32_t)crc32_z(crc, bytes, size);
}

/* The finaliser of a 64-bit multiply-xorshift hash: every input bit reaches every output bit. */
static uint64_t mix(uint64_t h) {
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

uint64_t hash64(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *p = bytes;
    uint64_t h = mix(hash + 0x9e3779b97f4a7c15u + size), word;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        memcpy(&word, p + i, 8);
        h = mix(h ^ word);
    }
    word = 0;
    memcpy(&word, p + i, size - i);
    return mix(h ^ word);
}
