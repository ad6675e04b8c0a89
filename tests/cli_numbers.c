/* cli_numbers.c: one number, lists and sweeps of options: what is taken, and what every mistake is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/numbers.h"

enum { ROOM = 4 };
static const struct number_rule whole = {"verb", "--n", 1, 4294967295.0, true},
                                share = {"verb", "--density", NUMBER_ABOVE_0, 1, false};

typedef bool reader(const struct number_rule *rule, const char *text, double *value, size_t room, size_t *count,
                    struct err *e);

static void takes(reader *read, const struct number_rule *rule, const char *text, size_t count, const double *wanted) {
    double value[ROOM];
    size_t n;
    struct err e = {0};
    if (!read(rule, text, value, ROOM, &n, &e)) fail_msg("%s", e.text);
    assert_int_equal(n, count);
    for (size_t i = 0; i < n; i++) assert_true(value[i] == wanted[i]);
}

static void refuses(reader *read, const struct number_rule *rule, const char *text, const char *part) {
    double value[ROOM];
    size_t n;
    struct err e = {0};
    assert_false(read(rule, text, value, ROOM, &n, &e));
    if (!strstr(e.text, part) || !strstr(e.text, rule->option)) fail_msg("\"%s\" says: %s", text, e.text);
}

static void lists(void **state) {
    (void)state;
    takes(numbers_list, &whole, "7", 1, (double[]){7});
    takes(numbers_list, &whole, "1,4294967295,1e3,2", 4, (double[]){1, 4294967295.0, 1000, 2});
    takes(numbers_list, &share, "1,1e-300,0.5", 3, (double[]){1, 1e-300, 0.5});
    static const char *const bad[] = {"",    "0",   "-5",  "1.5", "4294967296", "x",
                                      "10,", ",10", "1;2", "1 2", "nan",        "inf"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) refuses(numbers_list, &whole, bad[i], "verb: --n ");
    refuses(numbers_list, &whole, "10,0", "whole numbers from 1 to 4294967295");
    refuses(numbers_list, &share, "0.1,0", "numbers above 0 and at most 1");
    refuses(numbers_list, &share, "nan", "numbers above 0 and at most 1");
    refuses(numbers_list, &whole, "1,2,3,4,5", "at most 4 numbers");
}

static void sweeps(void **state) {
    (void)state;
    takes(numbers_sweep, &whole, "10:1000:10", 3, (double[]){10, 100, 1000});
    takes(numbers_sweep, &whole, "3:11:1.5", 4, (double[]){3, 5, 7, 10});
    takes(numbers_sweep, &whole, "8:8:2", 1, (double[]){8});
    takes(numbers_sweep, &whole, "5,6", 2, (double[]){5, 6});
    static const char *const bad[] = {"10:5:2", "1:2", "1:2:1", "1:2:0.5", "1:2:3:4", "1:x:2", ":2:2", "0:2:2", "1:2:"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuses(numbers_sweep, &whole, bad[i], "MIN:MAX:FACTOR is needed");
    refuses(numbers_sweep, &whole, "1:16:2", "a larger factor");
}

static void one(void **state) {
    (void)state;
    static const char *const bad[] = {"", "0", "1.5", "5x", "nan"};
    struct err e = {0}, other = {0};
    double value;
    assert_true(numbers_one(&whole, "5", &value, &e) && value == 5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        e = (struct err){0};
        assert_false(numbers_one(&whole, bad[i], &value, &e));
        assert_non_null(strstr(e.text, "a whole number from 1 to 4294967295"));
    }
    assert_false(numbers_one(&whole, "1,2", &value, &other));
    assert_non_null(strstr(other.text, "one number"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),
        cmocka_unit_test(sweeps),
        cmocka_unit_test(one),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
