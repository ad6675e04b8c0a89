/* fuzz_packed.c: the other way round than fuzz_wire: an arbitrary vector through the encoders of the packed formats and
 * back, the same; and arbitrary bytes into the decoders of indices by themselves. Input: 4 bytes for the range, then 5
 * bytes an entry, a width and what of a word the gap before it is. */
#include "comm/wire/gap_block.h"
#include "comm/wire/packed_index.h"
#include "comm/wire/wire.h"
#include "tests/lib/fuzzing.h"

extern const struct wire_ops wire_packed, wire_packed_f32, wire_packed_fast, wire_packed_fast_f32;

/* Indices that stay below UINT32_MAX. */
static size_t make_vector(const uint8_t *data, size_t size, uint32_t from, struct sparse *s) {
    uint64_t next = from;
    s->nnz = 0;
    for (; size >= 5; data += 5, size -= 5) {
        uint32_t word;
        memcpy(&word, data + 1, sizeof word);
        next += data[0] % 33 == 32 ? word : word & ((UINT32_C(1) << data[0] % 33) - 1);
        if (next >= UINT32_MAX - 1) break;
        s->idx[s->nnz] = (uint32_t)next++;
        memcpy(&s->val[s->nnz++], &word, sizeof word);
    }
    return (size_t)next;
}

static void through(const struct wire_ops *w, const struct sparse *s, size_t from, size_t to) {
    size_t capacity = wire_capacity(w, s->nnz);
    void *message = fuzz_copy(NULL, 0), *room = malloc(capacity ? capacity : 1);
    struct sparse buffer = {malloc(s->nnz * 4 + 1), malloc(s->nnz * 4 + 1), 0, s->nnz}, view;
    struct err e = {0};
    MUST(room != NULL && buffer.idx != NULL && buffer.val != NULL);
    size_t bytes = w->encode(s, from, to, room);
    MUST(bytes <= capacity && bytes % 4 == 0);
    free(message);
    message = fuzz_copy(room, bytes); /* so that the decoder cannot read what the encoder did not write */
    MUST(w->decode(message, bytes, from, to, &buffer, &view, &e));
    MUST(view.nnz == s->nnz);
    MUST(s->nnz == 0 || memcmp(view.idx, s->idx, s->nnz * sizeof *s->idx) == 0);
    MUST(s->nnz == 0 || memcmp(view.val, s->val, s->nnz * sizeof *s->val) == 0);
    free(message);
    free(room);
    free(buffer.idx);
    free(buffer.val);
}

static void decode_alone(const uint8_t *data, size_t size, uint32_t from) {
    struct err e = {0};
    size_t count = size / 4, nnz = size % 300, to = (size_t)from + 100000;
    uint32_t *words = fuzz_copy(data, count * 4), *idx = malloc(nnz * 4 + 1);
    MUST(idx != NULL);
    if (to > UINT32_MAX) to = UINT32_MAX;
    bool good = nnz > 0 && fuzz_answer(packed_index_decode(words, count, from, to, idx, nnz, &e), &e);
    for (size_t i = 0; good && i < nnz; i++) MUST(idx[i] >= (i ? idx[i - 1] + 1 : from) && idx[i] < to);
    free(words);
    free(idx);
}

static void decode_block(const uint8_t *data, size_t size, uint32_t from) {
    struct err e = {0};
    size_t c = size % 3 ? GAP_BLOCK : 1 + size % GAP_BLOCK;
    uint64_t next = from, to = (uint64_t)from + 100000;
    unsigned char *block = fuzz_copy(data, size);
    uint32_t *idx = malloc(c * sizeof *idx);
    MUST(idx != NULL);
    if (to > UINT32_MAX) to = UINT32_MAX;
    size_t read = gap_block_read(block, size, c, &next, to, idx, &e);
    if (fuzz_answer(read > 0, &e)) {
        MUST(read <= size && next <= to && next == (uint64_t)idx[c - 1] + 1);
        for (size_t i = 0; i < c; i++) MUST(idx[i] >= (i ? idx[i - 1] + 1 : from) && idx[i] < to);
    }
    free(block);
    free(idx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint32_t from;
    if (size < sizeof from) return 0;
    memcpy(&from, data, sizeof from);
    data += sizeof from;
    size -= sizeof from;
    decode_alone(data, size, from);
    decode_block(data, size, from);
    if (from >= UINT32_MAX - 1) return 0;
    struct sparse s = {malloc(size + 1), malloc(size + 1), 0, size / 5};
    MUST(s.idx != NULL && s.val != NULL);
    size_t to = make_vector(data, size, from, &s);
    if (to <= from) to = (size_t)from + 1;
    if (to > UINT32_MAX) to = UINT32_MAX;
    through(&wire_packed_f32, &s, from, to);
    through(&wire_packed_fast_f32, &s, from, to);
    wire_round(&wire_packed, &s, NULL);
    through(&wire_packed, &s, from, to);
    through(&wire_packed_fast, &s, from, to);
    free(s.idx);
    free(s.val);
    return 0;
}
