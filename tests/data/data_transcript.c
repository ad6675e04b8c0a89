/* Transcripts: letters to labels and back, the texts that paths say, and how far texts are from each other: by hand,
 * and against definitions written down as they are. */
#include "tests/lib/data_support.h"

#include "base/rng.h"
#include "data/speech/error_rate.h"
#include "data/speech/transcript.h"

/* -- letters and labels ----------------------------------------------------------------------------------------------
 */

static void encodes(void **state) {
    (void)state;
    static const struct {
        const char *text, *becomes; /* NULL: refused, for ... */
        unsigned char stray;
    } cases[] = {
        {"", "", 0},
        {" \t ", "", 0},
        {"YES", "YES", 0},
        {"  don't \t stop  now ", "DON'T STOP NOW", 0},
        {"A B C", "A B C", 0},
        {"azAZ'", "AZAZ'", 0},
        {"A_B", NULL, '_'},
        {"A1", NULL, '1'},
        {"NA\xc3\xafVE", NULL, 0xc3},
        {"A-B", NULL, '-'},
        {"A\nB", NULL, '\n'},
        {"[", NULL, '['},
        {"@", NULL, '@'},
        {"`", NULL, '`'},
        {"{", NULL, '{'},
    };
    assert_int_equal(TRANSCRIPT_LABELS, 29);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t label[64];
        char text[65];
        size_t labels;
        unsigned char stray = 0;
        const bool good = transcript_encode(cases[i].text, strlen(cases[i].text), label, &labels, &stray);
        assert_int_equal(good, cases[i].becomes != NULL);
        if (!good) {
            assert_int_equal(stray, cases[i].stray);
            continue;
        }
        transcript_decode(label, labels, text);
        assert_string_equal(text, cases[i].becomes);
        for (size_t j = 0; j < labels; j++) assert_in_range(label[j], 1, 28);
    }
}

/* The numbers themselves, and a zero byte, which no string has. */
static void the_alphabet(void **state) {
    (void)state;
    uint8_t label[8];
    size_t labels;
    unsigned char stray;
    assert_true(transcript_encode("'a z", 4, label, &labels, &stray));
    assert_int_equal(labels, 4);
    assert_int_equal(label[0], 1);
    assert_int_equal(label[1], 2);
    assert_int_equal(label[2], 28);
    assert_int_equal(label[3], 27);
    assert_false(transcript_encode("A\0B", 3, label, &labels, &stray));
    assert_int_equal(stray, 0);
    assert_int_equal(labels, 1);
}

/* -- paths -----------------------------------------------------------------------------------------------------------
 */

/* A path by the characters of its labels. */
static void expect_path(const char *path, const char *text) {
    int32_t label[64];
    char is[65];
    const size_t steps = strlen(path);
    for (size_t t = 0; t < steps; t++) label[t] = (int32_t)(strchr(TRANSCRIPT_ALPHABET, path[t]) - TRANSCRIPT_ALPHABET);
    assert_int_equal(transcript_of_path(label, steps, is), strlen(text));
    assert_string_equal(is, text);
}

static void paths(void **state) {
    (void)state;
    expect_path("", "");
    expect_path("____", "");
    expect_path("A", "A");
    expect_path("AAAA", "A");
    expect_path("A_A", "AA");
    expect_path("AA_AA__A", "AAA");
    expect_path("__HH_E_LL_LLO___", "HELLO");
    expect_path("AB  _ BA", "AB  BA");
    expect_path("ABAB", "ABAB");
}

/* Any path that says a text has at least transcript_steps steps, and one has as many. */
static void steps(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t steps;
    } cases[] = {{"", 0}, {"A", 1}, {"AB", 2}, {"AA", 3}, {"AAA", 5}, {"HELLO", 6}, {"A A", 3}, {"BOOKKEEPER", 13}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t label[16];
        int32_t path[32];
        char text[33];
        size_t labels, t = 0;
        unsigned char stray;
        assert_true(transcript_encode(cases[i].text, strlen(cases[i].text), label, &labels, &stray));
        assert_int_equal(transcript_steps(label, labels), cases[i].steps);
        for (size_t j = 0; j < labels; j++) {
            if (j > 0 && label[j] == label[j - 1]) path[t++] = TRANSCRIPT_BLANK;
            path[t++] = label[j];
        }
        assert_int_equal(t, cases[i].steps);
        transcript_of_path(path, t, text);
        assert_string_equal(text, cases[i].text);
    }
}

/* -- distances -------------------------------------------------------------------------------------------------------
 */

static void by_hand(void **state) {
    (void)state;
    static const struct {
        const char *reference, *text;
        uint64_t words, of_words, characters, of_characters;
    } cases[] = {
        {"", "", 0, 0, 0, 0},
        {"YES", "YES", 0, 1, 0, 3},
        {"YES", "", 1, 1, 3, 3},
        {"", "YES NO", 2, 0, 6, 0},
        {"KITTEN", "SITTING", 1, 1, 3, 6},
        {"A B C", "A C", 1, 3, 2, 5},
        {"A B C", "B C D", 2, 3, 3, 5},
        {"GO HOME NOW", "GO  HOME  NOW", 0, 3, 2, 11},
        {" GO ", "GO", 0, 1, 2, 4},
        {"THE CAT SAT", "THE BAD CAT SAT DOWN", 2, 3, 9, 11},
        {"ONE TWO", "TWO ONE", 2, 2, 6, 7},
        {"NOWHERE", "NOW HERE", 2, 1, 1, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct error_rate w = error_rate_words(cases[i].reference, cases[i].text),
                                c = error_rate_characters(cases[i].reference, cases[i].text);
        if (w.errors != cases[i].words || c.errors != cases[i].characters)
            fail_msg("\"%s\", \"%s\": %d words, %d characters", cases[i].reference, cases[i].text, (int)w.errors,
                     (int)c.errors);
        assert_int_equal(w.of, cases[i].of_words);
        assert_int_equal(c.of, cases[i].of_characters);
    }
}

/* d(a, b), by its definition: the last items are equal, or one of three steps was the last one. step: characters of an
 * item and what is behind it, 1 or, of words of one letter, 2. */
static uint64_t naive(const char *a, size_t m, const char *b, size_t n, size_t step) {
    if (m == 0) return n;
    if (n == 0) return m;
    if (a[(m - 1) * step] == b[(n - 1) * step]) return naive(a, m - 1, b, n - 1, step);
    const uint64_t del = naive(a, m - 1, b, n, step), insert = naive(a, m, b, n - 1, step),
                   replace = naive(a, m - 1, b, n - 1, step), least = del < insert ? del : insert;
    return 1 + (replace < least ? replace : least);
}

static void like_the_definition(void **state) {
    (void)state;
    struct rng r = rng_open(9, RNG_TEST, 0);
    for (int trial = 0; trial < 600; trial++) {
        char text[2][2][20]; /* of letters, and of these as words */
        size_t length[2];
        for (int i = 0; i < 2; i++) {
            length[i] = rng_below(&r, 8);
            for (size_t j = 0; j < length[i]; j++) {
                text[i][0][j] = text[i][1][2 * j] = (char)('A' + (int)rng_below(&r, 3));
                text[i][1][2 * j + 1] = ' ';
            }
            text[i][0][length[i]] = text[i][1][2 * length[i]] = '\0';
        }
        const uint64_t wanted = naive(text[0][0], length[0], text[1][0], length[1], 1);
        assert_int_equal(naive(text[0][1], length[0], text[1][1], length[1], 2), wanted);
        const struct error_rate c = error_rate_characters(text[0][0], text[1][0]),
                                w = error_rate_words(text[0][1], text[1][1]);
        assert_int_equal(c.errors, wanted);
        assert_int_equal(w.errors, wanted);
        assert_int_equal(c.of, length[0]);
        assert_int_equal(w.of, length[0]);
    }
}

/* A long text beside a short one, either way round. */
static void long_texts(void **state) {
    (void)state;
    enum { LONG = 200000 };
    char *text = mem_alloc(LONG + 1, 1, "a long text");
    memset(text, 'A', LONG);
    text[LONG] = '\0';
    const long before = mem_live();
    assert_int_equal(error_rate_characters("BAB", text).errors, LONG - 1);
    assert_int_equal(error_rate_characters(text, "BAB").errors, LONG - 1);
    assert_int_equal(error_rate_words(text, "BAB").errors, 1);
    assert_int_equal(mem_live(), before);
    mem_free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(encodes),   cmocka_unit_test(the_alphabet),
                                       cmocka_unit_test(paths),     cmocka_unit_test(steps),
                                       cmocka_unit_test(by_hand),   cmocka_unit_test(like_the_definition),
                                       cmocka_unit_test(long_texts)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
