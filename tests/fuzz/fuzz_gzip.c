/* fuzz_gzip.c: a file of arbitrary bytes through the reader of .gz. Input: a byte that chooses how much is read at a
 * time, then the file. */
#include "data/gzip.h"
#include "tests/lib/fuzzing.h"

enum { PACKED_MOST = 1 << 20 }; /* deflate packs 1032:1: enough of what a small file can be */

static void read_pieces(struct gzip *g, size_t piece) {
    size_t total = 0, got = 1;
    struct err e = {0};
    char *room = malloc(piece);
    MUST(room != NULL);
    while (got && total < PACKED_MOST && fuzz_answer(gzip_read(g, room, piece, &got, &e), &e)) {
        MUST(got <= piece);
        total += got;
    }
    free(room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e = {0};
    uint64_t bytes;
    if (size < 1) return 0;
    const char *path = fuzz_file("it.gz", data + 1, size - 1);
    struct gzip *g = gzip_open(path, &e);
    fuzz_answer(g != NULL, &e);
    if (g) read_pieces(g, (size_t)1 << data[0] % 17);
    gzip_close(g);
    e = (struct err){0};
    fuzz_answer(gzip_unpacked_size(path, &bytes, &e), &e);
    return 0;
}
