/* fuzz_text.c: arbitrary bytes as the texts of a language model: the first is learned from, the second read with the
 * words of the first; both together are read character by character. Input: two bytes, how many words there may be and
 * where the second text begins, then both. */
#include "data/text/text_reader.h"
#include "tests/lib/fuzzing.h"

extern const struct dataset_ops dataset_text_char;

static void check_tokens(const int32_t *token, size_t count, size_t bytes, const struct vocabulary_index *v) {
    MUST(count >= 1 && count <= text_most_tokens(bytes));
    for (size_t i = 0; i < count; i++) MUST(token[i] >= 0 && (size_t)token[i] < vocabulary_words(v));
}

/* Each line of the list is one word. */
static void check_words(const struct vocabulary_index *v, size_t bytes) {
    struct vocabulary lines = vocabulary_lines(v);
    size_t words = 0;
    for (size_t at = 0; at < lines.bytes; words++) {
        const char *end = memchr(lines.lines + at, '\n', lines.bytes - at);
        size_t length = end ? (size_t)(end - (lines.lines + at)) : lines.bytes - at;
        MUST(length > 0 && vocabulary_find(v, lines.lines + at, length) == (int32_t)words);
        at += length + 1;
    }
    MUST(words == vocabulary_words(v) && lines.bytes <= text_most_vocabulary(bytes));
}

/* promised: what the file was taken to hold at the most, which it may exceed */
static bool read_text(const uint8_t *data, size_t size, size_t promised, struct vocabulary_index *v, bool learn) {
    struct err e = {0};
    size_t count = 0;
    uint64_t found;
    const char *path = fuzz_file("it.txt", data, size);
    MUST(text_size(path, &found, &e) && found == size);
    int32_t *token = malloc(text_most_tokens(promised) * sizeof *token);
    MUST(token != NULL);
    bool good = fuzz_answer(text_read(path, promised, v, learn, token, &count, &e), &e);
    if (good) check_tokens(token, count, promised, v);
    free(token);
    return good;
}

/* Each line is a character, and no two of them are the same; each token one of these. */
static void check_characters(const struct dataset *d, size_t size) {
    const struct vocabulary *v = &d->vocabulary;
    size_t lines = 0, count = d->train_text.count + d->valid_text.count;
    for (size_t i = 0; i < v->bytes; i++) lines += v->lines[i] == '\n';
    MUST(d->classes >= 2 && lines == (size_t)d->classes && v->lines[v->bytes - 1] == '\n');
    MUST(count >= 11 && count <= size && d->train_text.count == count * 9 / 10 && d->test_text.count == 0);
    for (size_t i = 0; i < count; i++) MUST(d->train_text.token[i] >= 0 && d->train_text.token[i] < d->classes);
    MUST(v->lines + v->bytes <= (const char *)d->train_text.token + d->bytes);
}

static void read_characters(const uint8_t *data, size_t size) {
    struct err e = {0};
    struct dataset d;
    const char *path = fuzz_file("it.txt", data, size);
    MUST(dataset_find(&dataset_text_char, path, 1, &d, &e));
    void *memory = malloc(d.bytes);
    MUST(memory != NULL);
    if (fuzz_answer(dataset_load(&d, memory, &e), &e)) {
        dataset_attach(&d, memory);
        check_characters(&d, size);
    }
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    size_t rest = size - 2, first = rest * data[1] / 255, promised = data[0] % 16 == 15 ? first / 2 : first;
    struct vocabulary_index *v = vocabulary_open(data[0] & 0x80 ? INT32_MAX : 1u + data[0]);
    bool learned = read_text(data + 2, first, promised, v, true);
    MUST(vocabulary_words(v) <= vocabulary_most(v));
    if (learned) check_words(v, first);
    if (learned && vocabulary_add(v, TEXT_UNKNOWN, strlen(TEXT_UNKNOWN)) >= 0) {
        size_t words = vocabulary_words(v);
        read_text(data + 2 + first, rest - first, rest - first, v, false);
        MUST(vocabulary_words(v) == words);
    }
    vocabulary_close(v);
    read_characters(data + 2, rest);
    return 0;
}
