/* The synthetic text: the same on every machine; a language as its head describes it, by rules that look at the
 * spelling of the words alone; and the entropy that it declares, which a long text bears out and simple models do not
 * reach. */
#include "tests/lib/data_support.h"

#include <ctype.h>
#include <math.h>

#include "base/table.h"
#include "data/text/synthetic_text.h"

enum { WORDS = 2000, LONG = 1000000, BLOCKS = 100, SPELLING = 16 };

static const struct dataset_ops *row(void) {
    const struct dataset_ops *found;
    TABLE_FIND(datasets, "synthetic-text", found);
    assert_non_null(found);
    return found;
}

static void *load_text(const char *where, uint64_t seed, struct dataset *d) {
    struct err e = {0};
    void *memory = load_set(row(), where, seed, d, &e);
    if (!memory) fail_msg("%s", e.text);
    return memory;
}

static struct grammar *open_grammar(void) {
    struct grammar *g = mem_zalloc(1, sizeof *g, "the grammar");
    synthetic_text_grammar(g);
    return g;
}

static void sizes(void **state) {
    (void)state;
    static const char *const wrong[] = {"2000",
                                        "20x20",
                                        "20x20x",
                                        "20x20x20x",
                                        "20x20x20x20",
                                        "0x20x20",
                                        "20x0x20",
                                        "20x20x0",
                                        "x20x20",
                                        "-5x20x20",
                                        "a",
                                        " 5x5x5",
                                        "5x 5x5",
                                        "5x+5x5",
                                        "5x5x5 ",
                                        "20x20x20.5",
                                        "20:20:2",
                                        "build",
                                        "x",
                                        "5xx5x5",
                                        "5x5",
                                        "100000001x5x5",
                                        "5x5x100000001",
                                        "5x100000001x5",
                                        "5x5x99999999999999999999",
                                        "18446744073709551617x5x5"};
    struct err e = {0};
    struct dataset d, same;
    assert_true(row()->built_in && row()->kind == DATA_TEXT);
    assert_true(dataset_find(row(), "", 1, &d, &e));
    assert_true(dataset_find(row(), "200000x20000x20000", 1, &same, &e));
    assert_int_equal(d.bytes, same.bytes);
    assert_string_equal(d.source, same.source);
    assert_true(d.bytes > 240000 * sizeof(int32_t) && d.bytes < 240000 * sizeof(int32_t) + 32768);
    assert_true(dataset_find(row(), "100000000x100000000x100000000", 1, &d, &e));
    assert_true(d.bytes > 300000000 * sizeof(int32_t));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memset(&e, 0, sizeof e);
        if (dataset_find(row(), wrong[i], 1, &d, &e)) fail_msg("\"%s\" is taken", wrong[i]);
        assert_says(&e, wrong[i]);
        assert_says(&e, "TRAINxVALIDxTEST");
    }
}

static void smallest(void **state) {
    (void)state;
    struct dataset d;
    void *memory = load_text("1x1x1", 1, &d);
    assert_int_equal(d.train_text.count + d.valid_text.count + d.test_text.count, 3);
    assert_int_equal(d.classes, WORDS);
    mem_free(memory);
}

/* Integer arithmetic alone: these checksums hold on every machine and for every compiler. */
static void same_bytes_everywhere(void **state) {
    (void)state;
    static const uint32_t crc[2] = {0x6fff0dd1, 0xa131327c};
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct dataset d, again;
        void *memory = load_text("3000x400x500", seed, &d), *other = load_text("3000x400x500", seed, &again);
        assert_int_equal(dataset_checksum(&d), crc[seed - 1]);
        assert_int_equal(dataset_checksum(&again), crc[seed - 1]);
        assert_memory_equal(d.train_text.token, again.train_text.token, 3900 * sizeof(int32_t));
        assert_int_equal(d.vocabulary.bytes, again.vocabulary.bytes);
        assert_memory_equal(d.vocabulary.lines, again.vocabulary.lines, d.vocabulary.bytes);
        mem_free(memory);
        mem_free(other);
    }
}

/* The share of places where two texts have the same word. */
static double agreement(const int32_t *a, const int32_t *b, size_t count) {
    size_t same = 0;
    for (size_t i = 0; i < count; i++) same += a[i] == b[i];
    return (double)same / (double)count;
}

/* The splits of one seed, and the texts of two, share no more than chance: about 2% of the places. */
static void larger_holds_smaller(void **state) {
    (void)state;
    struct dataset a, b, c;
    void *small = load_text("5000x2000x2000", 3, &a), *large = load_text("9000x3000x4000", 3, &b);
    void *other = load_text("9000x3000x4000", 4, &c);
    assert_memory_equal(a.train_text.token, b.train_text.token, 5000 * sizeof(int32_t));
    assert_memory_equal(a.valid_text.token, b.valid_text.token, 2000 * sizeof(int32_t));
    assert_memory_equal(a.test_text.token, b.test_text.token, 2000 * sizeof(int32_t));
    assert_true(agreement(b.train_text.token, b.valid_text.token, 3000) < 0.1);
    assert_true(agreement(b.train_text.token, b.test_text.token, 3000) < 0.1);
    assert_true(agreement(b.valid_text.token, b.test_text.token, 3000) < 0.1);
    assert_true(agreement(b.train_text.token, c.train_text.token, 9000) < 0.1);
    assert_true(agreement(b.test_text.token, c.test_text.token, 4000) < 0.1);
    assert_true(b.vocabulary.bytes == c.vocabulary.bytes && b.entropy == c.entropy);
    assert_memory_equal(b.vocabulary.lines, c.vocabulary.lines, b.vocabulary.bytes);
    mem_free(small);
    mem_free(large);
    mem_free(other);
}

/* -- the long text that the others share --------------------------------------------------------------------------- */

static struct dataset text;
static void *text_memory;
static char word[WORDS][SPELLING];

static int open_text(void **state) {
    (void)state;
    text_memory = load_text("1000000x20x20", 1, &text);
    const char *line = text.vocabulary.lines, *end = line + text.vocabulary.bytes;
    for (int i = 0; i < WORDS && line < end; i++) {
        size_t length = strcspn(line, "\n");
        snprintf(word[i], SPELLING, "%.*s", (int)length, line);
        line += length + 1;
    }
    return line == end ? 0 : -1;
}

static int close_text(void **state) {
    (void)state;
    mem_free(text_memory);
    return 0;
}

static int in_order(const void *a, const void *b) {
    return strcmp(a, b);
}

static void vocabulary(void **state) {
    (void)state;
    static char sorted[WORDS][SPELLING];
    static bool occurs[WORDS];
    size_t lines = 0;
    for (size_t i = 0; i < text.vocabulary.bytes; i++) lines += text.vocabulary.lines[i] == '\n';
    assert_int_equal(lines, WORDS);
    assert_int_equal(text.classes, WORDS);
    assert_int_equal(text.vocabulary.lines[text.vocabulary.bytes - 1], '\n');
    assert_string_equal(word[SYNTHETIC_TEXT_UNK], "<unk>");
    assert_string_equal(word[SYNTHETIC_TEXT_EOS], "<eos>");
    for (int i = 2; i < WORDS; i++) {
        size_t length = strlen(word[i]);
        assert_true(length >= 2 && length <= 5);
        for (size_t c = 0; c < length; c++) /* consonant and vowel in turn */
            assert_true(islower((unsigned char)word[i][c]) && (strchr("aeiou", word[i][c]) == NULL) == (c % 2 == 0));
    }
    memcpy(sorted, word, sizeof word);
    qsort(sorted, WORDS, SPELLING, in_order);
    for (int i = 1; i < WORDS; i++) assert_string_not_equal(sorted[i - 1], sorted[i]);
    assert_int_equal(text.train_text.count, LONG);
    for (size_t i = 0; i < LONG; i++) {
        assert_in_range(text.train_text.token[i], 0, WORDS - 1);
        occurs[text.train_text.token[i]] = true;
    }
    for (int i = 0; i < WORDS; i++)
        if (!occurs[i]) fail_msg("%s, word %d, does not occur", word[i], i);
}

/* -- agreement, read off the spelling ------------------------------------------------------------------------------ */

/* Endings: nouns -, s and determiners n, s; verbs t, n; by length, as a determiner has one syllable. */
enum part { OTHER, DETERMINER, NOUN, VERB };
static enum part part_of(const char *w, bool *plural) {
    size_t length = strlen(w);
    char last = w[length - 1];
    *plural = length == 3 || length == 4 ? last == 's' : last == 's' || last == 'n';
    if (strcmp(w, "<unk>") == 0) return NOUN;
    if (length == 3) return DETERMINER;
    if (length == 4 || (length == 5 && last == 's')) return NOUN;
    return length == 5 && (last == 't' || last == 'n') ? VERB : OTHER;
}

/* The rule: a noun has the number of the determiner before it. A verb agrees with the first noun of the sentence, but
 * the first verb after a second noun (a clause with a subject of its own) with that one. */
static void numbers_agree(void **state) {
    (void)state;
    bool noun[3] = {0}, determiner = false, plural;
    int nouns = 0, verbs = 0;
    size_t checked = 0, across = 0, inner = 0, sentences = 0;
    for (size_t i = 0; i < LONG; i++) {
        int32_t token = text.train_text.token[i];
        if (token == SYNTHETIC_TEXT_EOS) {
            assert_true(nouns >= 1 && verbs >= 1);
            nouns = verbs = 0;
            sentences++;
            continue;
        }
        enum part part = part_of(word[token], &plural);
        if (part == DETERMINER) determiner = plural;
        if (part == NOUN) {
            if (token != SYNTHETIC_TEXT_UNK) assert_int_equal(plural, determiner);
            if (nouns < 2) noun[nouns] = determiner;
            nouns++;
        }
        if (part == VERB) {
            bool own = nouns == 2 && verbs == 0;
            if (plural != noun[own]) fail_msg("%s, word %zu of the text, has another number", word[token], i);
            checked++;
            inner += own;
            across += nouns > 1 && !own && noun[0] != determiner; /* the nearest noun would lead astray */
            verbs++;
        }
    }
    print_message("# %zu verbs in %zu sentences, %zu in clauses with a subject, %zu with a noun between that differs\n",
                  checked, sentences, inner, across);
    assert_true(sentences > LONG / 20 && checked > sentences && inner > LONG / 200 && across > LONG / 100);
}

/* -- topics -------------------------------------------------------------------------------------------------------- */

/* Where the vocabulary has the nouns and the verbs: so many of each of 6 topics, the singular ones and the plural. */
static int topic_of(int32_t token) {
    if (token >= 250 && token < 1210) return (token - 250) / 160;
    if (token >= 1364 && token < 1724) return (token - 1364) / 60;
    return token >= 1724 && token < 1964 ? (token - 1724) / 40 : -1;
}

/* 3 in 4 nouns and verbs have the topic of their sentence's subject, and 3 in 4 subjects that of the last sentence. */
static void topics_last(void **state) {
    (void)state;
    int subject = -1, before = -1;
    bool first = true, known = true; /* an <unk> as a subject hides the topic of its sentence */
    double words = 0, same = 0, subjects = 0, kept = 0;
    for (size_t i = 0; i < LONG; i++) {
        int32_t token = text.train_text.token[i];
        bool plural;
        enum part part = part_of(word[token], &plural);
        int topic = topic_of(token);
        assert_true((topic >= 0) == (part == VERB || (part == NOUN && token != SYNTHETIC_TEXT_UNK)));
        if (token == SYNTHETIC_TEXT_EOS) {
            before = known ? subject : -1;
            first = true;
        } else if (part == NOUN && first) {
            first = false;
            known = topic >= 0;
            subject = topic;
            subjects += known && before >= 0;
            kept += known && before >= 0 && topic == before;
        } else if (topic >= 0 && known) {
            words++;
            same += topic == subject;
        }
    }
    print_message("# topics: %.4f of the words, %.4f of the sentences\n", same / words, kept / subjects);
    assert_true(fabs(same / words - 0.75) < 5 * sqrt(0.75 * 0.25 / words) && words > LONG / 10);
    assert_true(fabs(kept / subjects - 0.75) < 5 * sqrt(0.75 * 0.25 / subjects) && subjects > LONG / 20);
}

/* -- entropy ------------------------------------------------------------------------------------------------------- */

/* What grammar_stationary gives does not change in a step. */
static void stationary(void **state) {
    (void)state;
    struct grammar *g = open_grammar();
    double p[GRAMMAR_STATES], next[GRAMMAR_STATES] = {0}, sum = 0;
    grammar_stationary(g, p);
    for (int s = 0; s < g->states; s++)
        for (int i = 0; i < g->state[s].arcs; i++)
            next[g->state[s].arc[i].next] += p[s] * g->state[s].arc[i].share / g->state[s].shares;
    for (int s = 0; s < g->states; s++) {
        assert_true(p[s] > 0 && fabs(next[s] - p[s]) < 1e-15);
        sum += p[s];
    }
    assert_true(fabs(sum - 1) < 1e-13);
    assert_true(fabs(text.entropy - grammar_entropy(g)) < 1e-12);
    mem_free(g);
}

/* The cross-entropy of the text under the grammar itself, which follows it from the start, is the entropy, within 4
 * standard errors as blocks of 10,000 words show them. */
static void text_has_the_entropy(void **state) {
    (void)state;
    struct grammar *g = open_grammar();
    double sum = 0, squares = 0;
    int at = SYNTHETIC_TEXT_START;
    for (int b = 0; b < BLOCKS; b++) {
        double mean = 0;
        for (size_t i = 0; i < LONG / BLOCKS; i++) {
            double cost = grammar_cost(g, &at, text.train_text.token[(size_t)b * (LONG / BLOCKS) + i]);
            assert_true(isfinite(cost) && cost > 0);
            mean += cost / (LONG / BLOCKS);
        }
        sum += mean / BLOCKS;
        squares += mean * mean / BLOCKS;
    }
    double error = sqrt((squares - sum * sum) / (BLOCKS - 1));
    print_message("# entropy %.6f, of the text %.6f +- %.6f nats per word\n", text.entropy, sum, error);
    assert_true(error > 0 && error < 0.005);
    assert_true(fabs(sum - text.entropy) < 4 * error);
    mem_free(g);
}

/* -sum of n ln(n / all) over counts. */
static double nats(const double *n, size_t count, double all) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (n[i] > 0) sum -= n[i] * log(n[i] / all);
    return sum;
}

/* What models that look back no or one word reach at best, from counts. A word tells of the next one only by its class,
 * and is drawn within its class by itself: H(word | word before) = H(class | class before) + H(word | class). */
static void simple_models_stay_behind(void **state) {
    (void)state;
    static double single[WORDS], of_class[GRAMMAR_CLASSES], pair[GRAMMAR_CLASSES][GRAMMAR_CLASSES];
    struct grammar *g = open_grammar();
    const int32_t *token = text.train_text.token;
    for (size_t i = 0; i < LONG; i++) {
        single[token[i]]++;
        of_class[g->class_of[token[i]]]++;
        if (i > 0) pair[g->class_of[token[i - 1]]][g->class_of[token[i]]]++;
    }
    double unigram = nats(single, WORDS, LONG) / LONG, within = unigram - nats(of_class, GRAMMAR_CLASSES, LONG) / LONG;
    double bigram = within;
    for (int c = 0; c < g->classes; c++) bigram += nats(pair[c], GRAMMAR_CLASSES, of_class[c]) / LONG;
    print_message("# nats per word: unigram %.3f, bigram %.3f, entropy %.3f\n", unigram, bigram, text.entropy);
    assert_true(unigram < log(WORDS) - 1);
    assert_true(unigram > bigram + 1);
    assert_true(bigram > text.entropy + 0.6);
    assert_true(text.entropy > 3);
    mem_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(smallest),
        cmocka_unit_test(same_bytes_everywhere),
        cmocka_unit_test(larger_holds_smaller),
        cmocka_unit_test(vocabulary),
        cmocka_unit_test(numbers_agree),
        cmocka_unit_test(topics_last),
        cmocka_unit_test(stationary),
        cmocka_unit_test(text_has_the_entropy),
        cmocka_unit_test(simple_models_stay_behind),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, open_text, close_text);
}
