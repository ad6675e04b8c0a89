/* cli_container.c: the checkpoint's file format: what goes in comes out, and nothing that was changed comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "cli/checkpoint/container.h"
#include "tests/lib/failing_here.h"
#include "tests/lib/in_child.h"

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
    unlink(path);
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

/* A file with a hole of 1 TB: no memory is asked for. */
static void a_huge_file_is_not_read(void **state) {
    (void)state;
    write_good();
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    refused("too long");
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    refused("not a sparsetrain checkpoint");
}

/* The table of contents as somebody could write it: its checksum is right. Entries have 48 bytes from byte 32 on: a
 * name of 24, where the section begins, how long it is. */
static void what_a_table_may_not_say(void **state) {
    (void)state;
    enum { ENTRY = 48, TABLE = 32 + 3 * ENTRY, HELLO = 32 + ENTRY };
    const uint64_t begin = TABLE + 4, numbers_end = begin + sizeof numbers, all = numbers_end + 6;
    const struct {
        size_t at, bytes;
        const void *with;
    } cases[] = {
        {HELLO, 8, "numbers"},                         /* twice */
        {HELLO, 1, "\0"},                              /* no name */
        {HELLO, 4, "\033[2J"},                         /* none that can be shown */
        {HELLO, 24, "aaaaaaaaaaaaaaaaaaaaaaaa"},       /* one that does not end */
        {HELLO + 24, 8, &begin},                       /* where another section lies */
        {HELLO + 24, 8, &(uint64_t){0}},               /* over the head */
        {HELLO + 24, 8, &(uint64_t){numbers_end + 1}}, /* a gap */
        {HELLO + 32, 8, &(uint64_t){7}},               /* too long */
        {HELLO + 32, 8, &(uint64_t){5}},               /* too short: something is left */
        {HELLO + 32, 8, &(uint64_t){UINT64_MAX}},      /* with its beginning it is a small number */
        {HELLO + 24, 8, &(uint64_t){UINT64_MAX - 5}},  /* and so is this */
        {HELLO + ENTRY + 24, 8, &(uint64_t){all + 1}}, /* the empty one behind the end */
        {16, 8, &(uint64_t){2}},                       /* fewer sections */
        {16, 8, &(uint64_t){0}},                       /* none, and yet there are bytes */
        {16, 8, &(uint64_t){UINT64_MAX / ENTRY}},      /* more than any file has */
    };
    unsigned char good[1024], data[1024];
    write_good();
    const size_t n = slurp(good, sizeof good);
    assert_int_equal(n, all);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(data, good, n);
        memcpy(data + cases[i].at, cases[i].with, cases[i].bytes);
        uint64_t count;
        memcpy(&count, data + 16, sizeof count);
        const size_t table = count <= 3 ? 32 + (size_t)count * ENTRY : TABLE;
        const uint32_t crc = crc32_of(0, data, table);
        memcpy(data + table, &crc, sizeof crc);
        spill(data, n);
        refused("damaged");
        struct container c;
        struct err e = {0};
        assert_false(container_open(path, &c, &e));
    }
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

/* What versions 3 to 5 have is read as before: only their number differs, and the checksum over it. */
static void read_version(unsigned char version) {
    unsigned char data[1024];
    struct container c;
    struct err e = {0};
    char text[6];
    write_good();
    size_t n = slurp(data, sizeof data), table = n - sizeof numbers - sizeof text - 4;
    data[8] = version;
    uint32_t crc = crc32_of(0, data, table);
    memcpy(data + table, &crc, sizeof crc);
    spill(data, n);
    assert_true(container_read(path, &c, &e));
    assert_true(container_get(&c, "text", text, sizeof text, &e));
    assert_string_equal(text, "hello");
    container_close(&c);
}

static void older_versions_are_read(void **state) {
    (void)state;
    read_version(3);
    read_version(4);
    read_version(5);
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

static bool write_numbers(struct err *e) {
    const struct section s[] = {{"numbers", numbers, sizeof numbers}};
    e->text[0] = '\0';
    unlink(path);
    return container_write(path, s, 1, e);
}

/* At whichever byte the disk is full. */
static void unwritable_is_said(void **state) {
    (void)state;
    struct err e = {0};
    const struct section s[] = {{"numbers", numbers, sizeof numbers}};
    assert_false(container_write("/nonexistent/x", s, 1, &e));
    assert_non_null(strstr(e.text, "/nonexistent/x"));
    assert_true(write_numbers(&e));
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit usual, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    for (small = usual, small.rlim_cur = 0; small.rlim_cur <= (rlim_t)info.st_size; small.rlim_cur++) {
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        bool written = write_numbers(&e);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
        assert_true(written == (small.rlim_cur == (rlim_t)info.st_size));
        if (!written) assert_non_null(strstr(e.text, "File too large"));
    }
    unlink(path);
}

/* What is written must also be on the disk: some systems say only then that it is not. */
static void failing_calls_are_said(void **state) {
    (void)state;
    struct err e = {0};
    fails_here("fsync", 1, EIO);
    assert_false(write_numbers(&e));
    assert_non_null(strstr(e.text, "Input/output error"));
    fails_here("close", 2, EDQUOT); /* the first is of the directory */
    assert_false(write_numbers(&e));
    assert_non_null(strstr(e.text, "Disk quota exceeded"));
    assert_true(write_numbers(&e));
    assert_false(fails_left());
}

static void cannot_read(const char *call, int at, int reason, const char *why) {
    struct container c;
    struct err e = {0};
    fails_here(call, at, reason);
    assert_false(container_read(path, &c, &e));
    assert_false(fails_left());
    assert_non_null(strstr(e.text, path));
    if (!strstr(e.text, why)) fail_msg("\"%s\" does not say \"%s\"", e.text, why);
}

static void cannot_get(const char *call, int reason, const char *why) {
    struct container c;
    struct err e = {0};
    float back[4];
    assert_true(container_open(path, &c, &e));
    fails_here(call, 1, reason);
    assert_false(container_get(&c, "numbers", back, sizeof back, &e));
    assert_false(fails_left());
    if (!strstr(e.text, why)) fail_msg("\"%s\" does not say \"%s\"", e.text, why);
    container_close(&c);
}

static void unreadable_is_said(void **state) {
    (void)state;
    static const char ill[] = "Input/output error", shorter[] = "it became shorter while it was read";
    struct container c;
    struct err e = {0};
    write_good();
    for (int at = 1; at <= 2; at++) { /* the table of contents, and all of it */
        cannot_read("read", at, EIO, ill);
        cannot_read("read", at, EOF, shorter);
    }
    cannot_read("lseek", 1, EIO, ill);
    cannot_get("lseek", EIO, ill);
    cannot_get("read", EIO, ill);
    cannot_get("read", EOF, shorter);
    fails_here("read", 1, EINTR); /* is no failure */
    assert_true(container_read(path, &c, &e));
    assert_false(fails_left());
    container_close(&c);
}

/* What the file becomes after its table of contents was read. */
static unsigned char becomes[1024];
static size_t becomes_bytes;

static void change_it(void) {
    spill(becomes, becomes_bytes);
}

static void a_change_while_it_is_read_is_found(void **state) {
    (void)state;
    static const struct {
        size_t at;
        const char *why;
    } cases[] = {{0, "is not a sparsetrain checkpoint"}, {40, "its table of contents has a wrong checksum"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_good();
        becomes_bytes = slurp(becomes, sizeof becomes);
        becomes[cases[i].at] ^= 1;
        then_here("lseek", 1, change_it);
        refused(cases[i].why);
        assert_false(fails_left());
    }
}

static void write_too_many(void) {
    static struct section many[65];
    struct err e = {0};
    for (size_t i = 0; i < 65; i++) many[i] = (struct section){"same", "", 0};
    container_write(path, many, 65, &e);
}

static void find_in_opened(void) {
    struct container c;
    struct err e = {0};
    size_t bytes;
    if (container_open(path, &c, &e)) container_find(&c, "numbers", &bytes);
}

static void mistakes_of_callers(void **state) {
    (void)state;
    char text[4096];
    write_good();
    assert_int_equal(in_child(write_too_many, text, sizeof text), EXIT_SYSTEM);
    assert_non_null(strstr(text, "65 sections in a checkpoint"));
    assert_int_equal(in_child(find_in_opened, text, sizeof text), EXIT_SYSTEM);
    assert_non_null(strstr(text, "is looked for that was not read"));
}

static const struct section one[] = {{"numbers", numbers, sizeof numbers}};

/* What is there stays what it is: a file, a link and what it leads to, whatever lies behind a link in the place of the
 * directory. */
static void nothing_is_overwritten(void **state) {
    (void)state;
    struct err e = {0};
    unsigned char text[16];
    char folder[80], link[160], inner[164];
    spill((const unsigned char *)"precious", 8);
    assert_false(container_write(path, one, 1, &e));
    assert_non_null(strstr(e.text, "File exists"));
    snprintf(folder, sizeof folder, "%s.d", path);
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(symlink(path, link), 0);
    e.text[0] = '\0';
    assert_false(container_write(link, one, 1, &e));
    assert_int_equal(slurp(text, sizeof text), 8);
    assert_memory_equal(text, "precious", 8);
    assert_int_equal(unlink(link), 0);
    snprintf(link, sizeof link, "%s.l", path);
    assert_int_equal(symlink(folder, link), 0);
    snprintf(inner, sizeof inner, "%s/x", link);
    e.text[0] = '\0';
    assert_false(container_write(inner, one, 1, &e));
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir(folder), 0); /* which is empty */
}

/* A name without a folder lies in the one where the program is, and "/name" in the root. */
static void names_without_a_folder(void **state) {
    (void)state;
    struct err e = {0};
    char was[4096];
    assert_non_null(getcwd(was, sizeof was));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(chdir("/tmp"), 0);
    bool written = container_write(strrchr(path, '/') + 1, one, 1, &e);
    assert_int_equal(chdir(was), 0);
    assert_true(written);
    assert_int_equal(access(path, F_OK), 0);
    assert_false(container_write("/tmp", one, 1, &e));
    assert_non_null(strstr(e.text, "File exists"));
}

/* A FIFO is not waited for. */
static void only_files_are_read(void **state) {
    (void)state;
    char other[80];
    struct container c;
    struct err e = {0};
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(60);
    refused("FIFO");
    assert_false(container_open(path, &c, &e));
    alarm(0);
    assert_int_equal(unlink(path), 0);
    write_good();
    snprintf(other, sizeof other, "%s.link", path);
    assert_int_equal(symlink(path, other), 0);
    e.text[0] = '\0';
    assert_true(container_read(other, &c, &e)); /* a large file may be kept elsewhere */
    container_close(&c);
    assert_int_equal(unlink(other), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(round_trip, make_path, remove_path),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_found, make_path, remove_path),
        cmocka_unit_test_setup_teardown(every_truncation_is_found, make_path, remove_path),
        cmocka_unit_test_setup_teardown(a_part_is_what_was_written, make_path, remove_path),
        cmocka_unit_test_setup_teardown(what_a_table_may_not_say, make_path, remove_path),
        cmocka_unit_test_setup_teardown(a_huge_file_is_not_read, make_path, remove_path),
        cmocka_unit_test_setup_teardown(older_versions_are_read, make_path, remove_path),
        cmocka_unit_test_setup_teardown(strangers_are_refused, make_path, remove_path),
        cmocka_unit_test_setup(unwritable_is_said, make_path),
        cmocka_unit_test_setup_teardown(failing_calls_are_said, make_path, remove_path),
        cmocka_unit_test_setup_teardown(unreadable_is_said, make_path, remove_path),
        cmocka_unit_test_setup_teardown(a_change_while_it_is_read_is_found, make_path, remove_path),
        cmocka_unit_test_setup_teardown(mistakes_of_callers, make_path, remove_path),
        cmocka_unit_test_setup_teardown(names_without_a_folder, make_path, remove_path),
        cmocka_unit_test_setup_teardown(nothing_is_overwritten, make_path, remove_path),
        cmocka_unit_test_setup_teardown(only_files_are_read, make_path, remove_path),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
