/* cli_container.c: the checkpoint's file format: what goes in comes out, and nothing that was changed comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "cli/container.h"

static char path[64];
static const float numbers[] = {1, -2.5f, 3e-40f, 4};

static int make_path(void **state) {
    (void)state;
    strcpy(path, "/tmp/container-XXXXXX");
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

static void write_good(void) {
    struct err e = {0};
    const struct section s[] = {{"numbers", numbers, sizeof numbers}, {"text", "hello", 6}, {"nothing", "", 0}};
    assert_true(container_write(path, s, 3, &e));
    assert_string_equal(e.text, "");
}

static void round_trip(void **state) {
    (void)state;
    struct container c;
    struct err e = {0};
    float back[4];
    size_t bytes;
    write_good();
    assert_true(container_read(path, &c, &e));
    assert_true(container_get(&c, "numbers", back, sizeof back, &e));
    assert_memory_equal(back, numbers, sizeof back);
    assert_string_equal(container_find(&c, "text", &bytes), "hello");
    assert_int_equal(bytes, 6);
    assert_non_null(container_find(&c, "nothing", &bytes));
    assert_int_equal(bytes, 0);
    assert_null(container_find(&c, "other", &bytes));
    assert_false(container_get(&c, "numbers", back, 8, &e));
    assert_non_null(strstr(e.text, "16 bytes of numbers where this run needs 8"));
    e.text[0] = '\0';
    assert_false(container_get(&c, "other", back, 8, &e));
    assert_non_null(strstr(e.text, "no section other"));
    container_close(&c);
}

static size_t slurp(unsigned char *data, size_t size) {
    FILE *f = fopen(path, "rb");
    size_t n = fread(data, 1, size, f);
    fclose(f);
    return n;
}

static void spill(const unsigned char *data, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

static void refused(const char *why) {
    struct container c;
    struct err e = {0};
    assert_false(container_read(path, &c, &e));
    assert_non_null(strstr(e.text, path));
    if (why && !strstr(e.text, why)) fail_msg("\"%s\" does not say \"%s\"", e.text, why);
}

/* A file of three sections that is opened and not read whole: is anything wrong that these calls must see? */
static bool part_by_part(char *text) {
    static const char *const name[] = {"numbers", "text", "nothing"};
    struct container c;
    struct err e = {0};
    bool good = container_open(path, &c, &e);
    for (size_t i = 0, bytes; good && i < 3; i++) {
        good = container_has(&c, name[i], &bytes);
        if (good && bytes <= 16) good = container_get(&c, name[i], text, bytes, &e);
        if (good && i == 0) good = memcmp(text, numbers, sizeof numbers) == 0;
    }
    if (c.memory) container_close(&c);
    return good;
}

static void every_flipped_bit_is_found(void **state) {
    (void)state;
    unsigned char data[1024];
    char text[16];
    write_good();
    size_t n = slurp(data, sizeof data);
    assert_true(n > 100 && n < sizeof data);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        spill(data, n);
        refused(NULL);
        assert_false(part_by_part(text));
        data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

static void every_truncation_is_found(void **state) {
    (void)state;
    unsigned char data[1024];
    char text[16];
    write_good();
    size_t n = slurp(data, sizeof data);
    for (size_t m = 0; m < n; m++) {
        spill(data, m);
        refused("truncated");
        assert_false(part_by_part(text));
    }
    data[n] = 0;
    spill(data, n + 1);
    refused("too long");
}

/* Sections that nobody asks for are neither read nor verified. */
static void a_part_is_what_was_written(void **state) {
    (void)state;
    unsigned char data[1024];
    struct container c;
    struct err e = {0};
    char text[16];
    size_t bytes;
    write_good();
    assert_true(part_by_part(text));
    size_t n = slurp(data, sizeof data);
    data[n - 1] ^= 1; /* in the text */
    spill(data, n);
    assert_true(container_open(path, &c, &e));
    assert_true(container_get(&c, "numbers", text, sizeof numbers, &e));
    assert_memory_equal(text, numbers, sizeof numbers);
    assert_false(container_has(&c, "other", &bytes));
    assert_false(container_get(&c, "numbers", text, 8, &e));
    assert_non_null(strstr(e.text, "16 bytes of numbers where this run needs 8"));
    e.text[0] = '\0';
    assert_false(container_get(&c, "text", text, 6, &e));
    assert_non_null(strstr(e.text, "section text has a wrong checksum"));
    container_close(&c);
}

/* What version 3 has is read as before: only its number differs, and the checksum over it. */
static void an_older_version_is_read(void **state) {
    (void)state;
    unsigned char data[1024];
    struct container c;
    struct err e = {0};
    char text[6];
    write_good();
    size_t n = slurp(data, sizeof data), table = n - sizeof numbers - sizeof text - 4;
    data[8] = 3;
    uint32_t crc = crc32_of(0, data, table);
    memcpy(data + table, &crc, sizeof crc);
    spill(data, n);
    assert_true(container_read(path, &c, &e));
    assert_true(container_get(&c, "text", text, sizeof text, &e));
    assert_string_equal(text, "hello");
    container_close(&c);
}

static void strangers_are_refused(void **state) {
    (void)state;
    unsigned char data[1024] = "PK\3\4 something else altogether, but long enough to be a header of some kind";
    struct container c;
    struct err e = {0};
    spill(data, 200);
    refused("is not a sparsetrain checkpoint");
    write_good();
    size_t n = slurp(data, sizeof data);
    data[8] = 2; /* the format version */
    spill(data, n);
    refused("format version 2");
    assert_false(container_read("/nonexistent/x", &c, &e));
    assert_non_null(strstr(e.text, "No such file"));
    e.text[0] = '\0';
    assert_false(container_read("/tmp", &c, &e));
    assert_non_null(strstr(e.text, "not a regular file"));
}

static void unwritable_is_said(void **state) {
    (void)state;
    struct err e = {0};
    const struct section s[] = {{"numbers", numbers, sizeof numbers}};
    assert_false(container_write("/nonexistent/x", s, 1, &e));
    assert_non_null(strstr(e.text, "/nonexistent/x"));
    e.text[0] = '\0';
    assert_false(container_write("/dev/full", s, 1, &e));
    assert_non_null(strstr(e.text, "No space left"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(round_trip, make_path, remove_path),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_found, make_path, remove_path),
        cmocka_unit_test_setup_teardown(every_truncation_is_found, make_path, remove_path),
        cmocka_unit_test_setup_teardown(a_part_is_what_was_written, make_path, remove_path),
        cmocka_unit_test_setup_teardown(an_older_version_is_read, make_path, remove_path),
        cmocka_unit_test_setup_teardown(strangers_are_refused, make_path, remove_path),
        cmocka_unit_test(unwritable_is_said),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
