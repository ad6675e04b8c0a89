/* Pieces of words: WikiText-2 and hard strings as another tokeniser cuts them, random words against a naive one,
 * vocabularies that are none, bytes that are not UTF-8. */
#include "tests/lib/data_support.h"

#include "base/hash.h"
#include "base/rng.h"
#include "data/pairs/unicode.h"
#include "data/pairs/wordpiece.h"
#include "tests/golden/wordpiece.h"

enum { LENGTH_OF = sizeof golden_strings / sizeof *golden_strings };

/* Without utf8proc there is nothing to test but that the program says so. */
static void need_unicode(const char *test) {
    if (unicode_is_here()) return;
    printf("# SKIP %s: this build lacks utf8proc\n", test);
    skip();
}

/* DATA/name; NULL: it is not there. */
static char *real_file(const char *name) {
    const char *data = getenv("SPARSETRAIN_DATA");
    char *path = mem_printf("%s/%s", data ? data : "build/data", name);
    if (access(path, F_OK) == 0) return path;
    mem_free(path);
    return NULL;
}

/* The published vocabulary, or the test is skipped by its name. */
static struct wordpiece *open_real(const char *test) {
    need_unicode(test);
    struct err e = {0};
    char *path = real_file("bert-base-uncased/vocab.txt");
    if (!path) {
        printf("# SKIP %s: no bert-base-uncased/vocab.txt\n", test);
        skip();
    }
    struct wordpiece *w = wordpiece_open(path, &e);
    assert_string_equal(e.text, "");
    mem_free(path);
    return w;
}

static struct wordpiece *open_text(const char *text, size_t bytes, struct err *e) {
    char *dir = make_directory(), *path = mem_printf("%s/vocab.txt", dir);
    write_bytes(dir, "vocab.txt", text, bytes);
    struct wordpiece *w = wordpiece_open(path, e);
    mem_free(path);
    remove_tree(dir);
    return w;
}

/* -- as others do it ----------------------------------------------------------------------------------------------- */

static void real_vocabulary(void **state) {
    (void)state;
    struct wordpiece *w = open_real("real_vocabulary");
    struct special_pieces s = wordpiece_special(w);
    assert_int_equal(wordpiece_count(w), 30522);
    assert_int_equal(s.pad, 0);
    assert_int_equal(s.unk, 100);
    assert_int_equal(s.cls, 101);
    assert_int_equal(s.sep, 102);
    assert_int_equal(s.mask, 103);
    assert_memory_equal(wordpiece_lines(w).lines, "[PAD]\n[unused0]\n", 16);
    wordpiece_close(w);
}

static void hard_strings(void **state) {
    (void)state;
    struct wordpiece *w = open_real("hard_strings");
    struct pieces p = {0};
    for (size_t i = 0; i < LENGTH_OF; i++) {
        p.count = 0;
        assert_true(wordpiece_add(w, golden_strings[i].text, golden_strings[i].bytes, &p));
        bool same = p.count == golden_strings[i].pieces;
        for (size_t k = 0; same && k < p.count; k++) same = p.id[k] == golden_strings[i].id[k];
        if (!same) fail_msg("string %zu \"%s\" has other pieces", i, golden_strings[i].text);
        assert_true(p.count <= golden_strings[i].bytes);
    }
    pieces_close(&p);
    wordpiece_close(w);
}

static void real_texts(void **state) {
    (void)state;
    struct wordpiece *w = open_real("real_texts");
    struct pieces p = {0};
    for (size_t i = 0; i < sizeof golden_files / sizeof *golden_files; i++) {
        char *name = mem_printf("wikitext-2/%s", golden_files[i].file), *path = real_file(name);
        mem_free(name);
        if (!path) {
            printf("# SKIP real_texts: no wikitext-2/%s\n", golden_files[i].file);
            continue;
        }
        size_t size, from = 0, to;
        char *text = (char *)read_whole(path, &size);
        p.count = 0;
        for (; from < size; from = to) { /* line by line, as they are packed */
            const char *end = memchr(text + from, '\n', size - from);
            to = end ? (size_t)(end + 1 - text) : size;
            assert_true(wordpiece_add(w, text + from, to - from, &p));
        }
        assert_int_equal(p.count, golden_files[i].pieces);
        assert_int_equal(crc32_of(0, p.id, p.count * sizeof *p.id), golden_files[i].crc);
        mem_free(text);
        mem_free(path);
    }
    pieces_close(&p);
    wordpiece_close(w);
}

/* -- a naive one --------------------------------------------------------------------------------------------------- */

enum { SMALL = 60, SPECIAL = 5, PIECE_MAX = 8, WORD_MAX = 24 };
static const char *const special[SPECIAL] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

/* Random pieces over few letters, one of them of two bytes, each once. */
static size_t make_pieces(struct rng *r, char piece[SMALL][4 * PIECE_MAX]) {
    static const char *const letter[] = {"a", "b", "c", "\xce\xb1"};
    size_t count = 0;
    for (; count < SPECIAL; count++) strcpy(piece[count], special[count]);
    for (int tries = 0; tries < 400 && count < SMALL; tries++) {
        char new[4 * PIECE_MAX] = "";
        if (rng_below(r, 2)) strcat(new, "##");
        for (uint32_t n = 1 + rng_below(r, 4); n > 0; n--) strcat(new, letter[rng_below(r, 4)]);
        bool there = false;
        for (size_t i = 0; i < count; i++) there |= strcmp(piece[i], new) == 0;
        if (!there) strcpy(piece[count++], new);
    }
    return count;
}

/* The longest of all pieces that the rest of the word begins with. */
static int naive_longest(char piece[SMALL][4 * PIECE_MAX], size_t count, const char *rest, bool begins, size_t *used) {
    int best = -1;
    *used = 0;
    for (size_t i = SPECIAL; i < count; i++) {
        bool inner = strncmp(piece[i], "##", 2) == 0;
        const char *text = piece[i] + (inner ? 2 : 0);
        if (inner == begins || strncmp(rest, text, strlen(text)) != 0 || strlen(text) <= *used) continue;
        best = (int)i, *used = strlen(text);
    }
    return best;
}

static size_t naive_word(char piece[SMALL][4 * PIECE_MAX], size_t count, const char *word, int32_t *id) {
    size_t n = 0, at = 0, used;
    for (; word[at]; at += used) {
        int found = naive_longest(piece, count, word + at, at == 0, &used);
        if (found < 0) return id[0] = 1, 1;
        id[n++] = found;
    }
    return n;
}

static void random_words(void **state) {
    (void)state;
    need_unicode("random_words");
    struct rng r = rng_open(1, RNG_TEST, 0);
    size_t unknown = 0, known = 0;
    for (int round = 0; round < 50; round++) {
        char piece[SMALL][4 * PIECE_MAX], list[SMALL * 4 * PIECE_MAX] = "";
        size_t count = make_pieces(&r, piece);
        for (size_t i = 0; i < count; i++) strcat(strcat(list, piece[i]), round % 2 ? "\r\n" : "\n");
        struct err e = {0};
        struct wordpiece *w = open_text(list, strlen(list), &e);
        assert_string_equal(e.text, "");
        for (int i = 0; i < 400; i++) {
            char word[2 * WORD_MAX + 1] = "";
            int32_t id[WORD_MAX];
            struct pieces p = {0};
            for (uint32_t n = 1 + rng_below(&r, WORD_MAX); n > 0; n--)
                strcat(word, (const char *[]){"a", "b", "c", "\xce\xb1"}[rng_below(&r, 4)]);
            size_t expected = naive_word(piece, count, word, id);
            assert_true(wordpiece_add(w, word, strlen(word), &p));
            assert_int_equal(p.count, expected);
            assert_memory_equal(p.id, id, expected * sizeof *id);
            *(id[0] == 1 ? &unknown : &known) += 1;
            pieces_close(&p);
        }
        wordpiece_close(w);
    }
    assert_true(unknown > 1000 && known > 1000); /* both kinds were met */
}

/* -- what is refused ----------------------------------------------------------------------------------------------- */

#define FIVE "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"

static void refused(const char *text, size_t bytes, const char *part) {
    struct err e = {0};
    assert_null(open_text(text, bytes, &e));
    assert_says(&e, "vocab.txt");
    assert_says(&e, part);
    assert_int_equal(err_status(&e), EXIT_USER);
}

static void wrong_vocabularies(void **state) {
    (void)state;
    need_unicode("wrong_vocabularies");
    struct err e = {0};
    refused("", 0, "none of its 0 lines is [PAD]");
    refused("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", 26, "none of its 5 lines is [MASK]");
    refused(FIVE "a\n\nb\n", strlen(FIVE) + 5, "line 7 is empty");
    refused(FIVE "a\r\n\r\n", strlen(FIVE) + 5, "line 7 is empty");
    refused(FIVE "a\nb\na\n", strlen(FIVE) + 6, "line 8 holds the piece of line 6 once more");
    refused(FIVE "a\n\xff\n", strlen(FIVE) + 4, "line 7 is not UTF-8");
    refused(FIVE "a\n\xed\xa0\x80\n", strlen(FIVE) + 6, "line 7 is not UTF-8");
    refused(FIVE "a\0b\n", strlen(FIVE) + 4, "line 6 is not UTF-8");
    assert_null(wordpiece_open("build", &e));
    assert_says(&e, "directory");
    e = (struct err){0};
    assert_null(wordpiece_open("build/no-such-file", &e));
    assert_says(&e, "build/no-such-file");
}

/* A list that has a word with its marks in canonical order alone: class 216 before class 224, and no nonspacing ones.
 */
static void marks_in_order(void **state) {
    (void)state;
    need_unicode("marks_in_order");
    static const char list[] = FIVE "x\xf0\x9d\x85\xa5\xe3\x80\xae\n";
    static const char *const text[] = {"x\xf0\x9d\x85\xa5\xe3\x80\xae", "x\xe3\x80\xae\xf0\x9d\x85\xa5",
                                       "X\xcc\x81\xe3\x80\xae\xcc\x81\xf0\x9d\x85\xa5\xcc\x81"};
    struct err e = {0};
    struct wordpiece *w = open_text(list, strlen(list), &e);
    assert_non_null(w);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        struct pieces p = {0};
        assert_true(wordpiece_add(w, text[i], strlen(text[i]), &p));
        assert_int_equal(p.count, 1);
        assert_int_equal(p.id[0], 5);
        pieces_close(&p);
    }
    wordpiece_close(w);
}

static void too_long_vocabularies(void **state) {
    (void)state;
    need_unicode("too_long_vocabularies");
    size_t room = (size_t)WORDPIECE_FILE_MAX * 2 + 1, at = strlen(FIVE);
    char *text = mem_alloc(room, 1, "a vocabulary");
    memset(text, 'x', room);
    refused(text, room, "too large");
    memcpy(text, FIVE, at);
    for (int i = SPECIAL; i < WORDPIECE_MOST; i++) at += (size_t)sprintf(text + at, "p%d\n", i);
    struct err e = {0};
    struct wordpiece *w = open_text(text, at, &e);
    assert_string_equal(e.text, "");
    assert_int_equal(wordpiece_count(w), WORDPIECE_MOST);
    wordpiece_close(w);
    at += (size_t)sprintf(text + at, "more\n");
    refused(text, at, "line 65537 is one too many");
    mem_free(text);
}

static void not_utf8(void **state) {
    (void)state;
    need_unicode("not_utf8");
    static const char *const wrong[] = {"a \x80",
                                        "\xc3",
                                        "\xc3(",
                                        "\xe2\x82",
                                        "\xc0\xaf",
                                        "\xed\xa0\x80",
                                        "\xf4\x90\x80\x80",
                                        "\xf8\x88\x80\x80\x80",
                                        "\xe0\x80\x80",
                                        "\xff",
                                        "a\xfe!"};
    struct err e = {0};
    struct wordpiece *w = open_text(FIVE "a\n", strlen(FIVE) + 2, &e);
    struct pieces p = {0};
    assert_non_null(w);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (wordpiece_add(w, wrong[i], strlen(wrong[i]), &p)) fail_msg("string %zu is taken", i);
    pieces_close(&p);
    wordpiece_close(w);
}

static void without_unicode(void **state) {
    (void)state;
    struct err e = {0};
    struct wordpiece *w = open_text(FIVE, strlen(FIVE), &e);
    assert_int_equal(w != NULL, unicode_is_here());
    if (!w) assert_says(&e, "this build lacks utf8proc");
    wordpiece_close(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_vocabulary),       cmocka_unit_test(hard_strings),       cmocka_unit_test(real_texts),
        cmocka_unit_test(random_words),          cmocka_unit_test(wrong_vocabularies), cmocka_unit_test(not_utf8),
        cmocka_unit_test(too_long_vocabularies), cmocka_unit_test(without_unicode),    cmocka_unit_test(marks_in_order),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
