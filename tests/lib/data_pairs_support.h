/* data_pairs_support.h: what the tests of texts in pairs need besides data_support.h: a vocabulary of short words, each
 * one piece, and made-up articles of them. */
#ifndef ST_TESTS_DATA_PAIRS_SUPPORT_H
#define ST_TESTS_DATA_PAIRS_SUPPORT_H

#include "tests/lib/data_support.h"

#include "base/rng.h"
#include "data/pairs/pairs_cache.h"
#include "data/pairs/unicode.h"

extern const struct dataset_ops dataset_wiki;

enum { PIECES = 7 + 26 + 26 * 26, TEXT_ROOM = 1 << 20 };
static const char *const wiki_name[3] = {"wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"};

/* Without utf8proc there is nothing to test. */
static inline void need_unicode(const char *test) {
    if (unicode_is_here()) return;
    printf("# SKIP %s: this build lacks utf8proc\n", test);
    skip();
}

static inline void write_line(const char *dir, const char *name, const char *text) {
    write_bytes(dir, name, text, strlen(text));
}

/* The special pieces, ".", "=", a to z, aa to zz. */
static inline void write_vocabulary(const char *dir) {
    char list[16 * PIECES];
    int at = sprintf(list, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n=\n");
    for (int i = 0; i < 26; i++) at += sprintf(list + at, "%c\n", 'a' + i);
    for (int i = 0; i < 26 * 26; i++) at += sprintf(list + at, "%c%c\n", 'a' + i / 26, 'a' + i % 26);
    write_line(dir, "vocab.txt", list);
}

static inline char *put_words(struct rng *r, char *to, uint32_t count) {
    for (; count > 0; count--) to += sprintf(to, "%c%c ", 'a' + (int)rng_below(r, 26), 'a' + (int)rng_below(r, 26));
    return to;
}

/* A title, then up to `paragraphs` lines of up to six sentences of up to `words` words, headings among them. */
static inline char *put_article(struct rng *r, char *to, uint32_t paragraphs, uint32_t words) {
    to = put_words(r, to + sprintf(to, " \n = "), 1 + rng_below(r, 3));
    to += sprintf(to, "= \n \n");
    for (uint32_t lines = rng_below(r, paragraphs + 1); lines > 0; lines--) {
        if (rng_below(r, 4) == 0) {
            to = put_words(r, to + sprintf(to, " = = "), 2);
            to += sprintf(to, "= = \n");
            continue;
        }
        for (uint32_t sentences = 1 + rng_below(r, 6); sentences > 0; sentences--) {
            to = put_words(r, to, 1 + rng_below(r, words));
            to += sprintf(to, ". ");
        }
        to += sprintf(to, "\n");
    }
    return to;
}

/* So many articles in a file. */
static inline void write_articles(const char *dir, const char *name, uint64_t seed, int articles, uint32_t paragraphs,
                                  uint32_t words) {
    struct rng r = rng_open(seed, RNG_TEST, 0);
    char *text = mem_alloc(TEXT_ROOM, 1, "a text"), *end = text;
    for (int i = 0; i < articles; i++) end = put_article(&r, end, paragraphs, words);
    assert_true(end - text < TEXT_ROOM);
    write_bytes(dir, name, text, (size_t)(end - text));
    mem_free(text);
}

/* A directory with all four files: 60, 10 and 8 articles. */
static inline char *make_wiki(void) {
    char *dir = make_directory();
    write_vocabulary(dir);
    for (int i = 0; i < 3; i++) write_articles(dir, wiki_name[i], (uint64_t)i + 1, i ? 12 - 2 * i : 60, 12, 14);
    return dir;
}

/* Finds, loads, attaches with this length; NULL: *e says why not. */
static inline void *load_wiki(const char *dir, int length, struct dataset *d, struct err *e) {
    if (!dataset_find(&dataset_wiki, dir, 1, d, e)) return NULL;
    if (length) d->length = length;
    void *memory = mem_zalloc(d->bytes, 1, "a dataset");
    if (!dataset_load(d, memory, e)) {
        mem_free(memory);
        return NULL;
    }
    dataset_attach(d, memory);
    return memory;
}

#endif
