/* comm_fuzz_wire.c: arbitrary bytes into the decoder of every wire format: nothing outside the buffers is touched, and
 * what is accepted is a vector in range that survives encoding and decoding again. With ST_FUZZ a libFuzzer target
 * (scripts/fuzz.sh); else a test that replays the corpus in tests/fuzz/wire and noise.
 *
 *        build/tests/comm_fuzz_wire seeds FOLDER      writes the seeds of the corpus: real messages, whole and damaged
 *
 * An input: 16 bytes that choose format, range and room, then the message. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ST_FUZZ
#include <cmocka.h>
#endif

#include "base/rng.h"
#include "comm/wire/wire.h"

enum { CAP_MAX = 8192, INPUT_MAX = 1 << 16 };

/* All of an input but the message. */
struct head {
    uint32_t format, from, span, cap; /* to = from + span + 1 */
};

/* Added to a format: its messages of indices alone. */
#define INDICES_ALONE UINT32_C(0x80000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "wire: not so: %s\n", what);
    abort();
}
#define MUST(condition) must(condition, #condition)

/* A block of exactly so many bytes, so that a sanitizer sees the first byte beyond. */
static void *exactly(size_t bytes) {
    void *block = malloc(bytes ? bytes : 1);
    MUST(block != NULL);
    return block;
}

static struct sparse buffer_of(size_t cap) {
    return (struct sparse){exactly(cap * sizeof(uint32_t)), exactly(cap * sizeof(float)), 0, cap};
}

static void buffer_free(struct sparse *buffer) {
    free(buffer->idx);
    free(buffer->val);
}

/* The same bits, but that of a NaN only that it is one has to arrive: fp16 has one NaN of its own. */
static bool same_values(const float *a, const float *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i]))) return false;
    return true;
}

/* decode(encode(s)) == s, in as many bytes as the format says. */
static void survives(const struct wire_ops *w, const struct sparse *s, size_t from, size_t to) {
    struct sparse buffer = buffer_of(s->nnz), view;
    struct err e = {0};
    size_t capacity = wire_capacity(w, s->nnz);
    void *message = exactly(capacity);
    size_t bytes = w->encode(s, from, to, message);
    MUST(bytes <= capacity && bytes % 4 == 0);
    MUST(w->decode(message, bytes, from, to, &buffer, &view, &e));
    MUST(view.nnz == s->nnz);
    MUST(s->nnz == 0 || memcmp(view.idx, s->idx, s->nnz * sizeof *s->idx) == 0);
    MUST(s->nnz == 0 || w->value_bytes == 0 || same_values(view.val, s->val, s->nnz));
    free(message);
    buffer_free(&buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct head head;
    size_t formats = 0;
    if (size < sizeof head) return 0;
    memcpy(&head, data, sizeof head);
    while (wires[formats]) formats++;
    const struct wire_ops *w = wires[head.format % INDICES_ALONE % formats];
    if (head.format & INDICES_ALONE) w = w->indices;
    size_t bytes = size - sizeof head, from = head.from, to = from + (size_t)head.span + 1;
    if (to > UINT32_MAX) to = UINT32_MAX;
    if (from > to) from = to;
    struct sparse buffer = buffer_of(head.cap % (CAP_MAX + 1)), view;
    struct err e = {0};
    unsigned char *message = exactly(bytes);
    memcpy(message, data + sizeof head, bytes);
    bool good = w->decode(message, bytes, from, to, &buffer, &view, &e);
    MUST(memcmp(message, data + sizeof head, bytes) == 0);
    MUST(good == (e.text[0] == '\0'));
    if (good) {
        MUST(sparse_valid(&view, to) && (view.nnz == 0 || view.idx[0] >= from));
        MUST(w->in_place || view.nnz <= buffer.cap);
        survives(w, &view, from, to);
    }
    free(message);
    buffer_free(&buffer);
    return 0;
}

#ifndef ST_FUZZ

/* -- seeds ---------------------------------------------------------------------------------------------------- */
static size_t write_input(struct head head, const struct sparse *s, uint8_t *input) {
    static uint32_t message[INPUT_MAX / 4];
    const struct wire_ops *w = wires[head.format % INDICES_ALONE];
    if (head.format & INDICES_ALONE) w = w->indices;
    size_t to = (size_t)head.from + head.span + 1, bytes = w->encode(s, head.from, to, message);
    memcpy(input, &head, sizeof head);
    memcpy(input + sizeof head, message, bytes);
    return sizeof head + bytes;
}

static void write_file(const char *folder, const char *name, const uint8_t *input, size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(input, 1, size, f) != size || fclose(f) != 0) abort();
}

/* Gaps of four kinds, so that blocks with and without outliers, of no width and of all widths come up. */
static void make_vector(struct sparse *s, size_t nnz, int kind, uint32_t from) {
    struct rng r = rng_open(21, RNG_TEST, nnz + 1000 * (size_t)kind);
    uint32_t next = from;
    s->nnz = nnz;
    for (size_t i = 0; i < nnz; i++) {
        uint32_t gap = kind == 0 ? 0 : rng_below(&r, kind == 1 ? 200 : 3);
        if (kind == 2 && i % 50 == 7) gap = 1000000 + rng_below(&r, 1000);
        if (kind == 3) gap = rng_below(&r, 1u << (i / 16 % 24));
        s->idx[i] = next + gap;
        s->val[i] = (float)rng_normal(&r);
        next = s->idx[i] + 1;
    }
}

/* Whole messages, and one of three with a few bytes replaced. */
static int write_seeds(const char *folder) {
    static const size_t counts[] = {0, 1, 5, 33, 256, 300};
    static uint8_t input[INPUT_MAX];
    struct rng r = rng_open(22, RNG_TEST, 0);
    struct sparse s;
    sparse_open(&s, 300);
    for (uint32_t w = 0; wires[w]; w++)
        for (int kind = 0; kind < 4; kind++)
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                uint32_t from = c % 2 ? 77 : 0;
                if ((w == 0 && kind > 0) || (counts[c] == 0 && kind > 0)) continue;
                make_vector(&s, counts[c], kind, from);
                wire_round(wires[w], &s, NULL);
                uint32_t last = s.nnz ? s.idx[s.nnz - 1] : from;
                size_t size = write_input((struct head){w, from, last - from, (uint32_t)s.nnz}, &s, input);
                char name[64];
                snprintf(name, sizeof name, "%s-%d-%zu", wires[w]->name, kind, s.nnz);
                write_file(folder, name, input, size);
                for (size_t i = 0; c % 3 == 2 && i < 3; i++)
                    input[sizeof(struct head) + rng_below(&r, (uint32_t)(size - sizeof(struct head)))] ^=
                        (uint8_t)(1u << rng_below(&r, 8));
                snprintf(name, sizeof name, "%s-%d-%zu-bad", wires[w]->name, kind, s.nnz);
                if (c % 3 == 2) write_file(folder, name, input, size);
            }
    sparse_close(&s);
    return 0;
}

/* -- the test ------------------------------------------------------------------------------------------------- */
static size_t read_file(const char *folder, const char *name, uint8_t *input) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot read %s", path);
    size_t size = fread(input, 1, INPUT_MAX, f);
    fclose(f);
    return size;
}

static void the_corpus(void **state) {
    static uint8_t input[INPUT_MAX];
    (void)state;
    DIR *folder = opendir("tests/fuzz/wire");
    if (!folder) fail_msg("no folder tests/fuzz/wire: start the test from the top of the tree");
    size_t files = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        size_t size = read_file("tests/fuzz/wire", entry->d_name, input);
        LLVMFuzzerTestOneInput(input, size);
        files++;
    }
    closedir(folder);
    assert_true(files >= 50);
}

/* The fuzzer's work without a fuzzer: messages with bytes replaced, cut and repeated. */
static void noise(void **state) {
    static uint8_t input[INPUT_MAX];
    (void)state;
    struct rng r = rng_open(23, RNG_TEST, 0);
    struct sparse s;
    uint32_t formats = 0;
    while (wires[formats]) formats++;
    sparse_open(&s, 600);
    for (int i = 0; i < 30000; i++) {
        struct head head = {rng_below(&r, formats), 0, UINT32_MAX, 600};
        if (i % 4 == 0) head.span = rng_below(&r, 100000);
        make_vector(&s, 1 + rng_below(&r, i % 2 ? 600 : 20), (int)rng_below(&r, 4), 0);
        if (s.idx[s.nnz - 1] > head.span) head.span = s.idx[s.nnz - 1];
        wire_round(wires[head.format], &s, NULL);
        if (i % 3 == 2) head.format |= INDICES_ALONE;
        size_t size = write_input(head, &s, input);
        for (uint32_t changes = rng_below(&r, 4); changes > 0; changes--) {
            uint8_t *at = input + sizeof head + rng_below(&r, (uint32_t)(size - sizeof head));
            *at = rng_below(&r, 2) ? (uint8_t)rng_below(&r, 256) : (uint8_t)(*at + rng_below(&r, 3) - 1);
        }
        if (i % 7 == 0) size -= rng_below(&r, (uint32_t)(size - sizeof head));
        LLVMFuzzerTestOneInput(input, size);
    }
    sparse_close(&s);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "seeds") == 0) return write_seeds(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_corpus),
        cmocka_unit_test(noise),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
