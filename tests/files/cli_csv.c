/* cli_csv.c: files of comma-separated values: quotes, ends of lines of other systems, cells that are missing, columns
 * that are, and what cannot be read. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/csv.h"

static char path[] = "/tmp/sparsetrain-csv.XXXXXX";

static void write_bytes(const char *text, size_t bytes) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static void write_file(const char *text) {
    write_bytes(text, strlen(text));
}

static int make_file(void **state) {
    (void)state;
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static void fields(void **state) {
    (void)state;
    struct csv t;
    struct err e = {0};
    write_file("item,\"a, b\",x\n\"say \"\"so\"\", he said\",,1e-3\r\nlast,\"\"\n,,\n");
    assert_true(csv_open(&t, path, "x,item", &e));
    assert_true(csv_next(&t));
    assert_string_equal(csv_cell(&t, "item"), "say \"so\", he said");
    assert_string_equal(csv_cell(&t, "a, b"), "");
    assert_true(csv_number(&t, "x") == 1e-3);
    assert_true(isnan(csv_number(&t, "item")) && isnan(csv_number(&t, "nosuch")));
    assert_true(csv_next(&t)); /* a row that is short */
    assert_string_equal(csv_cell(&t, "item"), "last");
    assert_string_equal(csv_cell(&t, "x"), "");
    assert_true(csv_next(&t));
    assert_int_equal(t.cells, 3);
    assert_true(isnan(csv_number(&t, "x")));
    assert_false(csv_next(&t));
    assert_true(csv_close(&t));
    assert_int_equal(t.line, 4);
}

static void a_number_by_name(void **state) {
    (void)state;
    struct err e = {0};
    double x = 0;
    write_file("model,seconds\nother,1\nmine,x\nmine,2.5\nmine,3\n");
    assert_true(csv_find(path, "seconds", "model", "mine", &x, &e));
    assert_true(x == 2.5); /* the first that is one */
    assert_false(csv_find(path, "seconds", "model", "min", &x, &e));
    assert_non_null(strstr(e.text, "has no seconds of min"));
    assert_int_equal(err_status(&e), EXIT_USER);
}

static void refused(const char *text, const char *wanted, const char *why) {
    struct csv t;
    struct err e = {0};
    write_file(text);
    assert_false(csv_open(&t, path, wanted, &e));
    if (!strstr(e.text, why)) fail_msg("said \"%s\", not \"%s\"", e.text, why);
}

static void mistakes(void **state) {
    (void)state;
    struct csv t;
    struct err e = {0};
    refused("a,b\n1,2\n", "a,c", "has no column c");
    refused("", "a", "has no column a");
    refused("ab,b\n", "a", "has no column a");
    assert_false(csv_open(&t, "/tmp/sparsetrain-csv-that-is-not-there", "a", &e));
    assert_non_null(strstr(e.text, "cannot open"));
    e = (struct err){0};
    assert_false(csv_open(&t, "/dev/zero", "a", &e));
    assert_non_null(strstr(e.text, "device"));
}

static void a_long_line(void **state) {
    (void)state;
    static char text[CSV_LINE + 64] = "a\n1\n";
    struct csv t;
    struct err e = {0};
    memset(text + 4, 'x', CSV_LINE);
    write_file(text);
    assert_true(csv_open(&t, path, "a", &e));
    assert_true(csv_next(&t));
    assert_false(csv_next(&t));
    assert_false(csv_next(&t));
    assert_false(csv_close(&t));
    assert_non_null(strstr(e.text, ":3: the line has more than 4094 characters"));
}

/* A number is not cut short by a byte that ends a text, nor is a row passed over for one. */
static void a_zero_byte(void **state) {
    (void)state;
    static const char text[] = "a,b\n1,25\n1,2\0005\n", head[] = "a,b\0\n1,2\n";
    struct csv t;
    struct err e = {0};
    write_bytes(text, sizeof text - 1);
    assert_true(csv_open(&t, path, "a", &e));
    assert_true(csv_next(&t));
    assert_false(csv_next(&t));
    assert_false(csv_close(&t));
    assert_non_null(strstr(e.text, ":3: there is a zero byte in the line"));
    assert_int_equal(err_status(&e), EXIT_USER);
    e = (struct err){0};
    write_bytes(head, sizeof head - 1);
    assert_false(csv_open(&t, path, "a", &e));
    assert_non_null(strstr(e.text, ":1: there is a zero byte in the line"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields),      cmocka_unit_test(a_number_by_name), cmocka_unit_test(mistakes),
        cmocka_unit_test(a_long_line), cmocka_unit_test(a_zero_byte),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
