/* base_option.c: tables of options: every type of value, its default, what is taken from a command line, and what every
 * mistake is told. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/option.h"

struct request {
    bool flag;
    int64_t integer, none;
    int small, choice, unset;
    size_t size;
    double real;
    char text[OPTION_TEXT_MAX];
    const char *word, *operand;
    struct option_names names;
    struct option_numbers numbers, shares;
    char other;
};

static const char *colour(size_t i) {
    static const char *const names[] = {"red", "green", "blue", NULL};
    return names[i];
}

static bool set_other(void *value, const char *text, struct err *e) {
    *(char *)value = *text;
    return *text == 'x' || err_set(e, "--other wants an x");
}

#define AT(field) OPTION_AT(struct request, field)
static const struct option_row rows[] = {
    {"flag", NULL, OPTION_FLAG, NULL, "", AT(flag)},
    {"integer", "N", OPTION_INTEGER, "7", "", AT(integer), .min = 1, .max = 1e15},
    {"none", "N", OPTION_INTEGER, NULL, "", AT(none), .max = 9},
    {"small", "N", OPTION_INT, "3", "", AT(small), .min = 1, .max = 16},
    {"choice", "C", OPTION_CHOICE, "green", "", AT(choice), .choice = colour},
    {"unset", "C", OPTION_CHOICE, NULL, "", AT(unset), .names = (const char *const[]){"on", "off", NULL}},
    {"size", "N", OPTION_SIZE, "20", "", AT(size), .max = 4294967295.0},
    {"real", "X", OPTION_REAL, NULL, "", AT(real), .max = 1, .above_min = true, .infinite = "never"},
    {"text", "T", OPTION_TEXT, "as it is", "", AT(text)},
    {"word", "W", OPTION_WORD, NULL, "", AT(word)},
    {"names", "LIST", OPTION_NAMES, "all", "", AT(names), .choice = colour},
    {"numbers", "LIST", OPTION_NUMBERS, "5,6", "", AT(numbers), .min = 1, .max = 4294967295.0, .whole = true,
     .sweep = true},
    {"shares", "LIST", OPTION_NUMBERS, "0.5", "", AT(shares), .max = 1, .above_min = true},
    {"other", "X", OPTION_OTHER, "x", "", AT(other), .set = set_other},
};
enum { ROWS = sizeof rows / sizeof *rows };
static const struct option_table table = {.verb = "verb", .row = rows, .rows = ROWS};

/* Reads so many words, behind the verb's, up to NULL. */
static bool reads(const struct option_table *t, struct request *r, bool *given, struct err *e, char *const *words) {
    char *argv[16] = {(char[]){"verb"}};
    int argc = 1;
    for (; words[argc - 1]; argc++) argv[argc] = words[argc - 1];
    *e = (struct err){0};
    r->operand = NULL;
    option_defaults(t, r);
    return option_parse(t, r, given, argc, argv, 1, e);
}
#define READS(...) reads(&table, &r, NULL, &e, (char *const[]){__VA_ARGS__, NULL})

#define TAKES(...)                                                                                                     \
    do                                                                                                                 \
        if (!READS(__VA_ARGS__)) fail_msg("%s", e.text);                                                               \
    while (0)
#define REFUSES(part, ...)                                                                                             \
    do {                                                                                                               \
        assert_false(READS(__VA_ARGS__));                                                                              \
        if (!strstr(e.text, part) || strncmp(e.text, "verb: ", 6) != 0) fail_msg("says: %s", e.text);                  \
    } while (0)

static void defaults(void **state) {
    (void)state;
    struct request r;
    struct err e;
    memset(&r, 0x55, sizeof r);
    assert_true(reads(&table, &r, NULL, &e, (char *const[]){NULL}));
    assert_true(!r.flag && r.integer == 7 && r.none == -1 && r.small == 3 && r.choice == 1 && r.unset == -1);
    assert_true(r.size == 20 && isnan(r.real) && !r.word && r.other == 'x');
    assert_string_equal(r.text, "as it is");
    assert_true(r.names.all && r.names.count == 3 && r.numbers.count == 2 && r.numbers.x[1] == 6);
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].type != OPTION_WORD)
            assert_true(option_has_value(&rows[i], &r) == (rows[i].standard || rows[i].type == OPTION_FLAG));
}

static void each_type_is_taken(void **state) {
    (void)state;
    struct request r;
    struct err e;
    bool given[ROWS] = {false};
    char *const words[] = {"--flag", "--integer=1e15", "--small",    "16",      "--choice", "blue", "--unset=off",
                           "--real", "never",          "--word=a=b", "--names", "blue,red", NULL};
    if (!reads(&table, &r, given, &e, words)) fail_msg("%s", e.text);
    assert_true(r.flag && r.integer == 1000000000000000 && r.small == 16 && r.choice == 2 && r.unset == 1);
    assert_true(isinf(r.real) && !r.names.all && r.names.count == 2 && r.names.at[0] == 2 && r.names.at[1] == 0);
    assert_string_equal(r.word, "a=b");
    assert_true(option_given(&table, given, "small") && !option_given(&table, given, "size"));
}

static void mistakes_get_one_line(void **state) {
    (void)state;
    struct request r;
    struct err e;
    REFUSES("there is no option --smal; did you mean --small?", "--smal", "3");
    REFUSES("there is no option --integer-size; did you mean --integer?", "--integer-size", "3");
    REFUSES("there is no option --inte; did you mean --integer?", "--inte", "3");
    REFUSES("there is no option --in; sparsetrain verb --help lists them", "--in");
    REFUSES("there is no option --knob; sparsetrain verb --help lists them", "--knob");
    REFUSES("sparsetrain verb --help lists them", "--entirely-unknown");
    REFUSES("\"-n\" is not an option", "-n");
    REFUSES("\"word\" is not an option", "word");
    REFUSES("--flag takes no value", "--flag=yes");
    REFUSES("--small wants a value: --small N", "--small");
    REFUSES("--small is given twice", "--small", "3", "--small=4");
    REFUSES("--small wants a number, not \"x\"", "--small", "x");
    REFUSES("--small wants a number, not \"3x\"", "--small", "3x");
    REFUSES("--small wants a whole number", "--small", "1.5");
    REFUSES("--small 0 is out of range: it must be at least 1 and at most 16", "--small", "0");
    REFUSES("at most 16", "--small", "17");
    REFUSES("--integer 0 is out of range: it must be at least 1", "--integer", "0");
    REFUSES("--real 0 is out of range: it must be above 0 and at most 1", "--real", "0");
    REFUSES("wants a number", "--real", "nan");
    REFUSES("--choice has no \"pink\"; there are: red, green, blue", "--choice", "pink");
    REFUSES("--unset has no \"o\"; there are: on, off", "--unset=o");
    REFUSES("--names has no \"pin\"; there are: red, green, blue", "--names", "red,pin,blue");
    REFUSES("--names has no \"\"", "--names", "red,");
    REFUSES("--text: the text contains a line break", "--text", "a\nb");
    REFUSES("--text wants a value, not an empty text", "--text", "");
    REFUSES("--word wants a value, not an empty text", "--word=");
    REFUSES("--other wants an x", "--other", "y");
    assert_true(option_help_wanted(3, (char *[]){"verb", "--flag", "--help"}));
    assert_false(option_help_wanted(2, (char *[]){"--help", "--flag"}));
}

static void lists_and_sweeps(void **state) {
    (void)state;
    struct request r;
    struct err e;
    static char *const bad[] = {"",    "0",   "-5",  "1.5", "4294967296", "x",   "10,",
                                ",10", "1;2", "1 2", "nan", "inf",        "10,0"};
    static char *const no_sweep[] = {"10:5:2", "1:2", "1:2:1", "1:2:0.5", "1:2:3:4", "1:x:2", ":2:2", "0:2:2", "1:2:"};
    TAKES("--numbers", "1,4294967295,1e3", "--shares", "1,1e-300");
    assert_true(r.numbers.count == 3 && r.numbers.x[1] == 4294967295.0 && r.shares.x[1] == 1e-300);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        REFUSES("whole numbers at least 1 and at most 4294967295 are needed, with commas", "--numbers", bad[i]);
    REFUSES("numbers above 0 and at most 1 are needed", "--shares", "0.1,0");
    TAKES("--numbers", "3:11:1.5");
    assert_true(r.numbers.count == 4 && r.numbers.x[0] == 3 && r.numbers.x[1] == 5 && r.numbers.x[2] == 7 &&
                r.numbers.x[3] == 10);
    TAKES("--numbers", "8:8:2");
    assert_true(r.numbers.count == 1);
    for (size_t i = 0; i < sizeof no_sweep / sizeof *no_sweep; i++)
        REFUSES("MIN:MAX:FACTOR is needed", "--numbers", no_sweep[i]);
    REFUSES("a larger factor", "--numbers", "1000:2000:1.01");
    REFUSES("numbers above 0", "--shares", "0.1:1:2"); /* takes no sweep */
}

static void operands(void **state) {
    (void)state;
    struct request r;
    struct err e;
    static const struct option_row wanted[] = {
        {"word", "W", OPTION_WORD, NULL, "", AT(word), .wanted = "--word W is needed"}};
    const struct option_table t = {.verb = "verb",
                                   .row = wanted,
                                   .rows = 1,
                                   .operand = "file",
                                   .operand_at = offsetof(struct request, operand),
                                   .wanted = "a file is needed"};
    assert_true(reads(&t, &r, NULL, &e, (char *const[]){"here", "--word", "w", NULL}));
    assert_string_equal(r.operand, "here");
    assert_false(reads(&t, &r, NULL, &e, (char *const[]){"here", "there", NULL}));
    assert_string_equal(e.text, "verb: one file at a time, not there as well");
    assert_false(reads(&t, &r, NULL, &e, (char *const[]){"--word", "w", NULL}));
    assert_string_equal(e.text, "verb: a file is needed");
    assert_false(reads(&t, &r, NULL, &e, (char *const[]){"here", NULL}));
    assert_string_equal(e.text, "verb: --word W is needed");
}

/* Several words without dashes, and an option that comes more than once. */
static void several(void **state) {
    (void)state;
    struct several {
        struct option_words words;
        char other;
    } r;
    struct err e = {0};
    static const struct option_row again[] = {
        {"other", "X", OPTION_OTHER, NULL, "", OPTION_AT(struct several, other), .set = set_other, .again = true}};
    const struct option_table t = {.row = again,
                                   .rows = 1,
                                   .operand = "file",
                                   .operand_at = offsetof(struct several, words),
                                   .operands = true,
                                   .wanted = "a file is needed"};
    char *argv[] = {"verb", "a", "--other", "xa", "-", "--other=xb", "b"};
    r = (struct several){0};
    if (!option_parse(&t, &r, NULL, 7, argv, 1, &e)) fail_msg("%s", e.text);
    assert_int_equal(r.words.count, 3);
    assert_string_equal(r.words.at[0], "a");
    assert_string_equal(r.words.at[1], "-");
    assert_string_equal(r.words.at[2], "b");
    r = (struct several){0};
    assert_false(option_parse(&t, &r, NULL, 1, argv, 1, &e));
    assert_string_equal(e.text, "a file is needed");
}

/* What option_value says, option_set reads back. */
static void values_as_text(void **state) {
    (void)state;
    struct request r, again;
    struct err e;
    char text[OPTION_TEXT_MAX], back[OPTION_TEXT_MAX];
    TAKES("--flag", "--real", "0.1234567890123", "--none", "0", "--unset", "on");
    option_defaults(&table, &again);
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].type >= OPTION_WORD && rows[i].type != OPTION_CHOICE) continue;
        option_value(&rows[i], &r, text);
        assert_true(option_set(&rows[i], &again, text, &e));
        option_value(&rows[i], &again, back);
        assert_string_equal(text, back);
    }
    assert_true(again.flag && again.real == r.real && again.none == 0 && again.unset == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(each_type_is_taken),
        cmocka_unit_test(mistakes_get_one_line),
        cmocka_unit_test(lists_and_sweeps),
        cmocka_unit_test(operands),
        cmocka_unit_test(several),
        cmocka_unit_test(values_as_text),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
