/* fuzz_tar.c: an arbitrary tar, packed, through the reader of .tar.gz. Input: a byte, then the tar; with bit 0 of the
 * byte the checksums of its headers are put right first, so that the fuzzer gets behind them. */
#include <zlib.h>

#include "data/archive.h"
#include "tests/lib/fuzzing.h"

enum { BLOCK = 512, SIZE = 124, CHECKSUM = 148, TAR_MAX = 1 << 16 };

/* Headers follow one another by the sizes in them; those that cannot be read end it. */
static void repair_checksums(uint8_t *tar, size_t size) {
    for (size_t at = 0; size - at >= BLOCK;) {
        uint8_t *header = tar + at;
        unsigned sum = 0;
        char octal[8], digits[13] = {0};
        memset(header + CHECKSUM, ' ', 8);
        for (size_t i = 0; i < BLOCK; i++) sum += header[i];
        if (sum != 8 * ' ') {
            snprintf(octal, sizeof octal, "%06o", sum % (1u << 18));
            memcpy(header + CHECKSUM, octal, sizeof octal);
        } else {
            memset(header + CHECKSUM, 0, 8); /* all zero: the end */
        }
        memcpy(digits, header + SIZE, 12);
        char *end;
        unsigned long contents = header[SIZE] & 0x80 ? 0 : strtoul(digits, &end, 8);
        if (contents > size - at - BLOCK) contents = 0;
        at += BLOCK + (contents + BLOCK - 1) / BLOCK * BLOCK;
        if (at > size) return;
    }
}

/* The tar as one gzip member, not compressed: that is zlib's business. */
static const char *packed(const uint8_t *tar, size_t size) {
    static uint8_t out[2 * TAR_MAX];
    z_stream z = {.next_in = (Bytef *)(uintptr_t)tar, .avail_in = (uInt)size, .next_out = out, .avail_out = sizeof out};
    MUST(deflateInit2(&z, 0, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    MUST(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return fuzz_file("it.tar.gz", out, z.total_out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct archive_member m;
    struct err e = {0};
    uint64_t unpacked;
    if (size < 1 || size > TAR_MAX) return 0;
    uint8_t *tar = fuzz_copy(data + 1, size - 1);
    if (data[0] & 1) repair_checksums(tar, size - 1);
    const char *path = packed(tar, size - 1);
    struct archive *a = archive_open(path, &e);
    MUST(a != NULL);
    for (size_t members = 0; archive_next(a, &m, &e); members++) {
        MUST(members < size / BLOCK && strlen(m.name) < sizeof m.name);
        size_t wanted = m.size < TAR_MAX ? (size_t)m.size : TAR_MAX;
        if (members % 3 == 2) wanted /= 2; /* the rest is skipped */
        void *room = malloc(wanted ? wanted : 1);
        bool good = archive_read(a, room, wanted, &e);
        MUST(!good || wanted <= size);
        free(room);
        if (!fuzz_answer(good, &e)) break;
    }
    MUST(!strpbrk(e.text, "\n\r"));
    archive_close(a);
    e = (struct err){0};
    MUST(fuzz_answer(archive_unpacked_size(path, &unpacked, &e), &e) == ((size - 1) % BLOCK == 0 && size > 1));
    free(tar);
    return 0;
}
