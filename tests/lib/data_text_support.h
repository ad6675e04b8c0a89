/* data_text_support.h: what the tests of texts need besides data_support.h: three files of words, and a text written
 * out. */
#ifndef ST_TESTS_DATA_TEXT_SUPPORT_H
#define ST_TESTS_DATA_TEXT_SUPPORT_H

#include "tests/lib/data_support.h"

static const char *const ptb_name[3] = {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"};

static inline void write_text(const char *dir, const char *name, const char *text) {
    write_bytes(dir, name, text, strlen(text));
}

static inline void write_three(const char *dir, const char *train, const char *valid, const char *test) {
    write_text(dir, ptb_name[0], train);
    write_text(dir, ptb_name[1], valid);
    write_text(dir, ptb_name[2], test);
}

/* The words of a split, written out with a '|' after each, are `expected`. */
static inline void expect_words(const struct dataset *d, const struct text_set *set, const char *expected) {
    char text[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < set->count; i++) {
        const char *word = d->vocabulary.lines, *end;
        assert_in_range(set->token[i], 0, d->classes - 1);
        for (int32_t skip = set->token[i]; skip > 0; skip--)
            word = (const char *)memchr(word, '\n', d->vocabulary.bytes) + 1;
        end = memchr(word, '\n', d->vocabulary.bytes);
        used += (size_t)snprintf(text + used, sizeof text - used, "%.*s|", (int)(end - word), word);
        assert_in_range(used, 0, sizeof text - 1);
    }
    assert_string_equal(text, expected);
}

static inline void *load_text(const char *dir, struct dataset *d) {
    struct err e = {0};
    void *memory = load_set(&dataset_ptb, dir, 1, d, &e);
    assert_string_equal(e.text, "");
    assert_non_null(memory);
    return memory;
}

#endif
