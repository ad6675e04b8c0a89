/* cli_zip_file.c: archives that zip_file.h writes are read back by this test's own reader, and by Python's zipfile
 * where that is installed: with plain fields, and with those of ZIP64, which a lowered limit calls for in small files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cli/export/zip_file.h"

enum { ENTRIES = 70, FILE_MAX = 1 << 16, FULL16 = 0xffff };
#define FULL32 0xffffffffu

static char path[64];
static unsigned char file[FILE_MAX];
static size_t length;

/* Entry i holds 7 i bytes. */
static size_t size_of(size_t i) {
    return 7 * i;
}

static void contents(size_t i, unsigned char *data) {
    for (size_t j = 0; j < size_of(i); j++) data[j] = (unsigned char)hash_word(i, j);
}

static void make(uint64_t limit) {
    static unsigned char data[7 * ENTRIES];
    struct zip_file z;
    strcpy(path, "/tmp/zip-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *stream = fdopen(descriptor, "wb+");
    zip_open(&z, stream);
    assert_int_equal(z.limit, FULL32);
    if (limit) z.limit = limit;
    for (size_t i = 0; i < ENTRIES; i++) {
        char name[ZIP_NAME_MAX];
        snprintf(name, sizeof name, "entry%zu.bin", i);
        contents(i, data);
        zip_entry(&z, name, size_of(i), crc32_of(0, data, size_of(i)));
        zip_write(&z, data, size_of(i) / 2);
        zip_write(&z, data + size_of(i) / 2, size_of(i) - size_of(i) / 2);
    }
    zip_close(&z, "a comment", 9);
    rewind(stream);
    length = fread(file, 1, sizeof file, stream);
    assert_true(length > 0 && length < sizeof file);
    fclose(stream);
}

static uint64_t number(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;) value = value << 8 | at[i];
    return value;
}

/* A field of four bytes, or the next number of the extra field. */
static uint64_t limited(const unsigned char *at, const unsigned char **extra) {
    if (number(at, 4) != FULL32) return number(at, 4);
    *extra += 8;
    return number(*extra - 8, 8);
}

static void check_entry(size_t i, const unsigned char *central) {
    static unsigned char data[7 * ENTRIES];
    char name[ZIP_NAME_MAX];
    int letters = snprintf(name, sizeof name, "entry%zu.bin", i);
    assert_int_equal(number(central, 4), 0x02014b50);
    assert_int_equal(number(central + 28, 2), letters);
    assert_memory_equal(central + 46, name, (size_t)letters);
    const unsigned char *extra = central + 46 + letters, *begin = extra;
    if (number(central + 30, 2) > 0) {
        assert_int_equal(number(extra, 2), 1);
        assert_int_equal(number(extra + 2, 2) + 4, number(central + 30, 2));
        extra += 4;
    }
    assert_int_equal(limited(central + 24, &extra), size_of(i)); /* in the order of the extra field */
    assert_int_equal(limited(central + 20, &extra), size_of(i));
    const unsigned char *local = file + limited(central + 42, &extra);
    assert_int_equal(extra - begin, number(central + 30, 2));
    assert_int_equal(number(local, 4), 0x04034b50);
    assert_memory_equal(local + 30, name, (size_t)letters);
    extra = local + 30 + letters + 4;
    const unsigned char *bytes = local + 30 + letters + number(local + 28, 2);
    assert_int_equal(limited(local + 22, &extra), size_of(i));
    assert_int_equal(limited(local + 18, &extra), size_of(i));
    if (bytes > local + 30 + letters) assert_true(extra == bytes);
    contents(i, data);
    assert_memory_equal(bytes, data, size_of(i));
    assert_int_equal(number(central + 16, 4), crc32_of(0, data, size_of(i)));
    assert_int_equal(number(local + 14, 4), number(central + 16, 4));
}

/* many: the number of entries is too large for its field as well. */
static void check(bool zip64, bool many) {
    const unsigned char *end = file + length - 22 - 9, *at = end;
    assert_int_equal(number(end, 4), 0x06054b50);
    assert_memory_equal(end + 22, "a comment", 9);
    uint64_t entries = number(end + 10, 2), bytes = number(end + 12, 4), begin = number(end + 16, 4);
    if (zip64) {
        const unsigned char *locator = end - 20, *record = file + number(locator + 8, 8);
        assert_int_equal(entries, many ? FULL16 : ENTRIES);
        assert_int_equal(bytes, FULL32);
        assert_int_equal(begin, FULL32);
        assert_int_equal(number(locator, 4), 0x07064b50);
        assert_int_equal(number(record, 4), 0x06064b50);
        assert_true(record + 12 + number(record + 4, 8) == locator);
        entries = number(record + 24, 8), bytes = number(record + 40, 8), begin = number(record + 48, 8);
        at = record;
    }
    assert_int_equal(entries, ENTRIES);
    assert_true(file + begin + bytes == at);
    at = file + begin;
    for (size_t i = 0; i < ENTRIES; i++) {
        check_entry(i, at);
        at += 46 + number(at + 28, 2) + number(at + 30, 2);
    }
    assert_true(at == file + begin + bytes);
}

/* Python knows the format from elsewhere. */
static void ask_python(void) {
    char command[128];
    if (system("command -v python3 > /dev/null 2>&1") != 0) return;
    snprintf(command, sizeof command, "python3 -m zipfile -t %s > /dev/null", path);
    assert_int_equal(system(command), 0);
}

static void plain_fields(void **state) {
    (void)state;
    make(0);
    check(false, false);
    ask_python();
    unlink(path);
}

/* From 0, which takes the large fields for everything, to where only some entries need them. */
static void fields_of_zip64(void **state) {
    (void)state;
    const uint64_t limits[] = {1, 50, ENTRIES, 200, 400};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        make(limits[i]);
        check(true, limits[i] <= ENTRIES);
        ask_python();
        unlink(path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plain_fields), cmocka_unit_test(fields_of_zip64)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
