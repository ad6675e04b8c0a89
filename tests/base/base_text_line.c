/* base_text_line.c: lines of a table, whoever wrote it: with ends of other systems, without one, longer than any, with
 * a zero byte, and of a file that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/files/text_line.h"

/* The lines that are read, each in brackets, and what is wrong with the next one. */
static void read_as(const char *text, size_t bytes, const char *lines, const char *wrong) {
    char line[8], read[64] = "";
    size_t number = 0;
    struct err e = {0};
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    rewind(f);
    while (text_line(f, line, sizeof line, "it", &number, &e))
        snprintf(read + strlen(read), sizeof read - strlen(read), "[%s]", line);
    assert_string_equal(read, lines);
    assert_string_equal(e.text, wrong);
    if (*wrong) assert_int_equal(err_status(&e), EXIT_USER);
    fclose(f);
}

static void lines_of_a_table(void **state) {
    (void)state;
    static const char ends[] = "a\n\nb\r\n123456\nc", zero[] = "a\nb\0c\nd\n", last[] = "a\n\0";
    read_as("", 0, "", "");
    read_as(ends, sizeof ends - 1, "[a\n][\n][b\r\n][123456\n][c]", "");
    read_as("a\n1234567\nb\n", 12, "[a\n]", "it:2: the line has more than 6 characters");
    read_as(zero, sizeof zero - 1, "[a\n]", "it:2: there is a zero byte in the line; is this a text?");
    read_as(last, sizeof last - 1, "[a\n]", "it:2: there is a zero byte in the line; is this a text?");
}

/* A directory opens, and fails when it is read. */
static void what_cannot_be_read(void **state) {
    (void)state;
    char line[8];
    size_t number = 0;
    struct err e = {0};
    FILE *f = fopen("/", "r");
    assert_non_null(f);
    assert_false(text_line(f, line, sizeof line, "it", &number, &e));
    assert_string_equal(e.text, "cannot read it: Is a directory");
    assert_int_equal(err_status(&e), EXIT_SYSTEM);
    fclose(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(lines_of_a_table), cmocka_unit_test(what_cannot_be_read)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
