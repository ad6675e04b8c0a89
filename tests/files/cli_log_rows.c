/* cli_log_rows.c: lines of a log, whoever wrote it: with ends of other systems, without one, empty, with a NUL, longer
 * than any row, and of a file that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/log/log_rows.h"

static FILE *file_of(const char *text, size_t bytes) {
    FILE *f = tmpfile();
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, bytes, f), bytes);
    rewind(f);
    return f;
}

static void ends_of_lines(void **state) {
    (void)state;
    static const char text[] = "{\"a\":1}\n{\"b\":2}\r\n\n\r\n{\"c\r\":\r}\n{\"d\"\0:4}\n{\"e\":5}\r\r\n{\"f\":6}";
    static const struct {
        const char *line;
        bool whole;
    } wanted[] = {
        {"{\"a\":1}\n", true}, {"{\"b\":2}\n", true},    {"\n", false},       {"\n", false}, {"{\"c\r\":\r}\n", true},
        {"{\"d\"", false},     {"{\"e\":5}\r\n", false}, {"{\"f\":6}", false}};
    FILE *f = file_of(text, sizeof text - 1);
    char *line = NULL;
    size_t size = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_true(log_row_next(f, &line, &size));
        assert_string_equal(line, wanted[i].line);
        assert_int_equal(log_row_whole(line), wanted[i].whole);
    }
    assert_false(log_row_next(f, &line, &size));
    assert_true(feof(f) && !ferror(f));
    mem_free(line);
    fclose(f);
}

/* 40 MB without an end of a line do not come into memory; the row behind them does. */
static void an_endless_line(void **state) {
    (void)state;
    static char block[1 << 20];
    memset(block, 'x', sizeof block);
    block[0] = '{';
    FILE *f = tmpfile();
    assert_non_null(f);
    for (int i = 0; i < 40; i++) assert_int_equal(fwrite(block, 1, sizeof block, f), sizeof block);
    assert_true(fputs("}\n{\"a\":1}\n", f) >= 0);
    rewind(f);
    char *line = NULL;
    size_t size = 0;
    assert_true(log_row_next(f, &line, &size));
    assert_false(log_row_whole(line));
    assert_true(size < 36u << 20);
    assert_true(log_row_next(f, &line, &size));
    assert_string_equal(line, "{\"a\":1}\n");
    mem_free(line);
    fclose(f);
}

/* A directory opens, and fails when it is read. */
static void what_cannot_be_read(void **state) {
    (void)state;
    FILE *f = fopen("/", "r");
    assert_non_null(f);
    char *line = NULL;
    size_t size = 0;
    assert_false(log_row_next(f, &line, &size));
    assert_true(ferror(f));
    mem_free(line);
    fclose(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ends_of_lines), cmocka_unit_test(an_endless_line),
                                       cmocka_unit_test(what_cannot_be_read)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
