/* fuzz_records.c: an arbitrary file through both readers of recordings, of gradients and of selected entries. Input: a
 * byte, then the file; with bit 0 of the byte its checksums are put right first. */
#include "base/hash.h"
#include "cli/gradients/record.h"
#include "tests/lib/fuzzing.h"

/* What stands before each gradient, as record.c has it. */
struct row_head {
    uint64_t step;
    uint32_t rank, crc;
};

/* Returns where the first step begins, 0 where there is no room for one. */
static size_t repair_head(uint8_t *file, size_t size, bool selected, struct record_head *head) {
    if (size < sizeof *head) return 0;
    memcpy(head, file, sizeof *head);
    size_t more = selected ? sizeof(struct record_selection) : 0;
    if (head->slices > size / sizeof(struct record_slice)) return 0;
    size_t bytes = sizeof *head + more + head->slices * sizeof(struct record_slice);
    if (bytes + sizeof(uint32_t) > size) return 0;
    uint32_t crc = crc32_of(0, file, bytes);
    memcpy(file + bytes, &crc, sizeof crc);
    return bytes + sizeof crc;
}

static void repair_gradients(uint8_t *file, size_t size, size_t at, size_t n) {
    struct row_head row;
    if (n > size) return;
    for (size_t bytes = n * sizeof(float); size - at >= sizeof row + bytes; at += sizeof row + bytes) {
        memcpy(&row, file + at, sizeof row);
        row.crc = crc32_of(crc32_of(0, &row.step, sizeof row.step), &row.rank, sizeof row.rank);
        row.crc = crc32_of(row.crc, file + at + sizeof row, bytes);
        memcpy(file + at, &row, sizeof row);
    }
}

static void repair_selections(uint8_t *file, size_t size, size_t at) {
    struct record_row row;
    while (size - at >= sizeof row) {
        memcpy(&row, file + at, sizeof row);
        size_t left = size - at - sizeof row;
        bool whole = row.nnz <= left / 8;
        row.row_crc = 0;
        if (whole) row.crc = crc32_of(0, file + at + sizeof row, row.nnz * 8);
        row.row_crc = crc32_of(0, &row, sizeof row);
        memcpy(file + at, &row, sizeof row);
        if (!whole) return;
        at += sizeof row + row.nnz * 8;
    }
}

static void repair(uint8_t *file, size_t size) {
    struct record_head head;
    bool selected = size >= 8 && memcmp(file, "STRAINSE", 8) == 0;
    size_t at = repair_head(file, size, selected, &head);
    if (at == 0) return;
    if (selected)
        repair_selections(file, size, at);
    else
        repair_gradients(file, size, at, head.n);
}

static void read_gradients(struct record_reader *in, size_t size) {
    struct err e = {0};
    MUST(in->steps * in->ranks * in->n <= size / sizeof(float));
    float *grad = malloc(in->n * sizeof *grad);
    MUST(grad != NULL);
    for (size_t i = 0; i < in->steps * in->ranks; i++)
        if (!fuzz_answer(record_read(in, i / in->ranks, i % in->ranks, grad, &e), &e)) break;
    free(grad);
}

static void read_selections(struct record_reader *in, size_t size) {
    struct err e = {0};
    MUST(in->most <= size / 8 && in->most <= in->n);
    struct sparse s = {malloc((in->most + 1) * sizeof *s.idx), malloc((in->most + 1) * sizeof *s.val), 0, in->most};
    MUST(s.idx != NULL && s.val != NULL);
    for (size_t i = 0; i < in->steps * in->ranks; i++) {
        if (!fuzz_answer(record_selected_read(in, i / in->ranks, i % in->ranks, &s, &e), &e)) break;
        MUST(sparse_valid(&s, in->n));
    }
    free(s.idx);
    free(s.val);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct record_reader in;
    if (size < 1) return 0;
    uint8_t *file = fuzz_copy(data + 1, size - 1);
    if (data[0] & 1) repair(file, size - 1);
    const char *path = fuzz_file("it.rec", file, size - 1);
    for (int selected = 0; selected < 2; selected++) {
        struct err e = {0};
        bool good = selected ? record_selected_open(&in, path, &e) : record_read_open(&in, path, &e);
        if (!fuzz_answer(good, &e)) continue;
        MUST(in.steps > 0 && in.ranks > 0 && in.n > 0);
        (selected ? read_selections : read_gradients)(&in, size);
        record_read_close(&in);
    }
    free(file);
    return 0;
}
