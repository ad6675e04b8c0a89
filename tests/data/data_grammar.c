/* Grammars that can be reckoned by hand: stationary shares, entropies, costs and draws; and what may not be a grammar.
 */
#include "tests/lib/data_support.h"

#include <math.h>

#include "data/text/grammar.h"
#include "tests/lib/in_child.h"

static struct grammar *fresh(void) {
    return mem_zalloc(1, sizeof(struct grammar), "a grammar");
}

static const uint32_t one[] = {1}, two[] = {1, 1}, four[] = {5, 5, 5, 5}, skewed[] = {1, 2, 5};

static void assert_near(double x, double expected) {
    if (!(fabs(x - expected) < 1e-14)) fail_msg("%.17g where %.17g is expected", x, expected);
}

/* The usage in the head of grammar.h: H(letters) = - 3/4 ln 3/4 - 1/4 ln 1/4; one state in eleven is 1, as
 * p(1) = p(0) / 10. */
static void usage(void **state) {
    (void)state;
    struct grammar *g = fresh();
    int letters = grammar_class(g, 2, (const uint32_t[]){3, 1});     // words 0 and 1
    int stop = grammar_class(g, 1, (const uint32_t[]){1});           // word 2
    grammar_arc(g, 0, letters, 0, 9), grammar_arc(g, 0, stop, 1, 1); // state 0: a letter, or once in 10 the end
    grammar_arc(g, 1, letters, 0, 1);                                // state 1: a letter follows
    double p[2], letter = -0.75 * log(0.75) - 0.25 * log(0.25), first = 0.9 * (letter - log(0.9)) - 0.1 * log(0.1);
    grammar_stationary(g, p);
    assert_near(p[0], 10.0 / 11);
    assert_near(p[1], 1.0 / 11);
    assert_near(grammar_class_entropy(g, letters), letter);
    assert_near(grammar_class_entropy(g, stop), 0);
    assert_near(grammar_state_entropy(g, 0), first);
    assert_near(grammar_entropy(g), 10.0 / 11 * first + 1.0 / 11 * letter);
    mem_free(g);
}

/* Words 0 and 1, where no two 1 follow one another: p = 2/3, 1/3, and a bit two times in three. */
static void golden_mean(void **state) {
    (void)state;
    struct grammar *g = fresh();
    int zero = grammar_class(g, 1, one), once = grammar_class(g, 1, one), at = 0;
    grammar_arc(g, 0, zero, 0, 1);
    grammar_arc(g, 0, once, 1, 1);
    grammar_arc(g, 1, zero, 0, 7);
    assert_near(grammar_entropy(g), 2.0 / 3 * log(2));
    assert_near(grammar_cost(g, &at, 1), log(2));
    assert_int_equal(at, 1);
    assert_true(isinf(grammar_cost(g, &at, 1)) && isinf(grammar_cost(g, &at, 2)) && isinf(grammar_cost(g, &at, -1)));
    assert_int_equal(at, 1);
    assert_near(grammar_cost(g, &at, 0), 0);
    assert_int_equal(at, 0);
    mem_free(g);
}

/* States in turn (powers of the chain would never settle), and one that nothing leads to. */
static void periodic_and_passing(void **state) {
    (void)state;
    struct grammar *g = fresh();
    int many = grammar_class(g, 4, four), few = grammar_class(g, 2, two);
    grammar_arc(g, 0, many, 1, 1);
    grammar_arc(g, 1, few, 2, 3);
    grammar_arc(g, 2, few, 0, 2);
    grammar_arc(g, 3, many, 1, 1);
    double p[4];
    grammar_stationary(g, p);
    for (int s = 0; s < 3; s++) assert_near(p[s], 1.0 / 3);
    assert_near(p[3], 0);
    assert_near(grammar_entropy(g), (log(4) + 2 * log(2)) / 3);
    mem_free(g);
}

/* A queue of 200 places that seldom grows: p(s + 1) = p(s) r with r = 1/9, down to 1e-190, each to full relative
 * accuracy, which subtraction would lose. */
static void tiny_shares(void **state) {
    (void)state;
    struct grammar *g = fresh();
    int up = grammar_class(g, 1, one), down = grammar_class(g, 1, one);
    for (int s = 0; s < 200; s++) {
        grammar_arc(g, s, up, s < 199 ? s + 1 : 199, 1);
        grammar_arc(g, s, down, s > 0 ? s - 1 : 0, 9);
    }
    double p[200];
    grammar_stationary(g, p);
    assert_near(p[0], 8.0 / 9);
    for (int s = 1; s < 200; s++) assert_near(p[s] / p[s - 1] * 9, 1);
    assert_near(grammar_entropy(g), -0.1 * log(0.1) - 0.9 * log(0.9));
    mem_free(g);
}

/* 400,000 draws from state 0 of a loop: each word as often as arcs and weights say, within 5 standard deviations; the
 * draws cost what their probabilities say. */
static void draws(void **state) {
    (void)state;
    enum { DRAWS = 400000 };
    static const double expected[] = {0.3 / 8, 0.6 / 8, 1.5 / 8, 0.25, 0.25, 0.2};
    struct grammar *g = fresh();
    grammar_arc(g, 0, grammar_class(g, 3, skewed), 0, 3);
    grammar_arc(g, 0, grammar_class(g, 2, two), 0, 5);
    grammar_arc(g, 0, grammar_class(g, 1, one), 0, 2);
    struct rng r = rng_open(7, RNG_TEST, 0);
    int count[6] = {0}, at = 0;
    for (int i = 0; i < DRAWS; i++) count[grammar_draw(g, &at, &r)]++;
    for (int w = 0; w < 6; w++) {
        double p = expected[w];
        assert_true(fabs(count[w] - DRAWS * p) < 5 * sqrt(DRAWS * p * (1 - p)));
        assert_near(exp(-grammar_cost(g, &at, w)), p);
    }
    mem_free(g);
}

/* -- what ends the program ----------------------------------------------------------------------------------------- */

static struct grammar *small;

static void another_arc_of_the_class(void) {
    grammar_arc(small, 0, 0, 1, 1);
}
static void arc_of_no_share(void) {
    grammar_arc(small, 1, 0, 1, 0);
}
static void arc_of_no_class(void) {
    grammar_arc(small, 1, 2, 1, 1);
}
static void arc_to_nowhere(void) {
    grammar_arc(small, 1, 1, GRAMMAR_STATES, 1);
}
static void class_of_no_words(void) {
    grammar_class(small, 0, one);
}
static void word_of_no_weight(void) {
    grammar_class(small, 2, (const uint32_t[]){1, 0});
}
static void weights_too_large(void) {
    grammar_class(small, 2, (const uint32_t[]){UINT32_MAX, 1});
}
static void never_back(void) {
    grammar_arc(small, 0, 1, 1, 1);
    grammar_arc(small, 1, 0, 1, 1);
    grammar_entropy(small);
}

static void not_a_grammar(void **state) {
    (void)state;
    static const struct {
        void (*act)(void);
        const char *says;
    } wrong[] = {
        {another_arc_of_the_class, "two arcs of state 0 have class 0"},
        {arc_of_no_share, "share 0"},
        {arc_of_no_class, "with class 2"},
        {arc_to_nowhere, "to 256"},
        {class_of_no_words, "class 2 of 0 words"},
        {word_of_no_weight, "weights of class 2 are wrong at word 1"},
        {weights_too_large, "weights of class 2 are wrong at word 1"},
        {never_back, "does not come back to state 0 from state 1"},
    };
    small = fresh();
    grammar_class(small, 1, one);
    grammar_class(small, 2, two);
    grammar_arc(small, 0, 0, 0, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[512];
        assert_int_equal(in_child(wrong[i].act, text, sizeof text), EXIT_SYSTEM);
        if (!strstr(text, wrong[i].says)) fail_msg("\"%s\" does not say \"%s\"", text, wrong[i].says);
    }
    mem_free(small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage),       cmocka_unit_test(golden_mean), cmocka_unit_test(periodic_and_passing),
        cmocka_unit_test(tiny_shares), cmocka_unit_test(draws),       cmocka_unit_test(not_a_grammar),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
