/* fuzz_container.c: an arbitrary file through the reader of checkpoint files. Input: a byte, then the file; with bit 0
 * of the byte the length and the checksums that its table of contents names are put right first. */
#include "base/hash.h"
#include "cli/checkpoint/container.h"
#include "tests/lib/fuzzing.h"

/* As container.c has them. */
struct head {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t count, total;
};
struct entry {
    char name[SECTION_NAME_MAX];
    uint64_t offset, bytes;
    uint32_t crc, zero;
};

static void repair(uint8_t *file, size_t size) {
    struct head head;
    uint32_t crc;
    if (size < sizeof head) return;
    memcpy(&head, file, sizeof head);
    head.total = size;
    memcpy(head.magic, "STRAINCK", sizeof head.magic);
    memcpy(file, &head, sizeof head);
    size_t room = (size - sizeof head) / sizeof(struct entry);
    for (size_t i = 0; i < head.count && i < room; i++) {
        struct entry s;
        uint8_t *at = file + sizeof head + i * sizeof s;
        memcpy(&s, at, sizeof s);
        if (s.offset > size || s.bytes > size - s.offset) continue;
        s.crc = crc32_of(0, file + s.offset, s.bytes);
        memcpy(at, &s, sizeof s);
    }
    if (head.count > room || size - sizeof head - head.count * sizeof(struct entry) < sizeof crc) return;
    size_t table = sizeof head + head.count * sizeof(struct entry);
    crc = crc32_of(0, file, table);
    memcpy(file + table, &crc, sizeof crc);
}

/* A section, in a file that was read (whole) and in the same one opened. */
static void take_section(const struct container *whole, const struct container *opened, const char *name) {
    size_t bytes = 0, found = 0;
    struct err e = {0}, same = {0};
    bool there = container_has(whole, name, &bytes);
    const void *data = container_find(whole, name, &found);
    MUST(there == (data != NULL) && (!there || bytes == found));
    void *copy = malloc(there && bytes ? bytes : 1), *again = malloc(there && bytes ? bytes : 1);
    MUST(copy != NULL && again != NULL);
    MUST(fuzz_answer(container_get(whole, name, copy, bytes, &e), &e) == there);
    bool good = fuzz_answer(container_get(opened, name, again, bytes, &same), &same);
    MUST(!good || (there && (bytes == 0 || memcmp(copy, again, bytes) == 0)));
    struct err more = {0};
    MUST(!container_get(whole, name, copy, bytes + 1, &more));
    free(copy);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"position", "options", "layout", "parameters", "optimiser", "none of these"};
    struct container whole, opened;
    struct err e = {0}, same = {0};
    if (size < 1) return 0;
    uint8_t *file = fuzz_copy(data + 1, size - 1);
    if (data[0] & 1) repair(file, size - 1);
    const char *path = fuzz_file("it.ckpt", file, size - 1);
    bool good = fuzz_answer(container_read(path, &whole, &e), &e),
         table = fuzz_answer(container_open(path, &opened, &same), &same);
    MUST(table || !good); /* a file of which only the table is sound can be opened */
    for (size_t i = 0; good && i < sizeof names / sizeof *names; i++) take_section(&whole, &opened, names[i]);
    if (good) container_close(&whole);
    if (table) container_close(&opened);
    free(file);
    return 0;
}
