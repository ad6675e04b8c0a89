/* cli_event_file.c: event files for TensorBoard, read back by a reader of their own: frames with checksums from tables,
 * protocol buffers field by field. `cli_event_file --print FILE` prints what a file has, a line each:
 *
 *        version TEXT | start STEP | STEP TAG VALUE
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/log/event_file.h"

/* -- the reader ---------------------------------------------------------------------------------------------------- */

/* The remainder of 8 bits by the polynomial 0x1edc6f41, bits turned round, by which a checksum goes on a byte. */
static uint32_t table_of(unsigned byte) {
    uint32_t turned = 0, rest;
    for (int i = 0; i < 8; i++) turned |= (byte >> i & 1u) << (7 - i);
    rest = turned << 24;
    for (int i = 0; i < 8; i++) rest = rest << 1 ^ (rest >> 31 ? 0x1edc6f41u : 0);
    uint32_t back = 0;
    for (int i = 0; i < 32; i++) back |= (rest >> i & 1u) << (31 - i);
    return back;
}

static uint32_t checksum(const unsigned char *data, size_t bytes) {
    uint32_t table[256], crc = ~0u;
    for (unsigned i = 0; i < 256; i++) table[i] = table_of(i);
    while (bytes--) crc = table[(crc ^ *data++) & 255] ^ crc >> 8;
    crc = ~crc;
    return (crc << 17 | crc >> 15) + 2726488792u;
}

static uint64_t little(const unsigned char *p, int bytes) {
    uint64_t value = 0;
    while (bytes--) value = value << 8 | p[bytes];
    return value;
}

struct piece {
    const unsigned char *at, *end;
};

static uint64_t varint(struct piece *p) {
    uint64_t value = 0;
    for (int shift = 0; p->at < p->end && shift < 64; shift += 7) {
        value |= (uint64_t)(*p->at & 127) << shift;
        if (!(*p->at++ & 128)) return value;
    }
    fprintf(stderr, "a number has no end\n");
    exit(1);
}

/* The next field of a message: its number; its bits, or its bytes. 0: there is none. */
static unsigned field(struct piece *p, uint64_t *bits, struct piece *bytes) {
    if (p->at == p->end) return 0;
    const uint64_t key = varint(p);
    *bytes = (struct piece){NULL, NULL};
    size_t size = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : 0;
    if (key % 8 == 0)
        *bits = varint(p);
    else if (key % 8 == 2)
        size = (size_t)varint(p);
    if (size > (size_t)(p->end - p->at) || key % 8 > 5 || key % 8 == 3 || key % 8 == 4) {
        fprintf(stderr, "a field is none\n");
        exit(1);
    }
    if (key % 8 == 2)
        *bytes = (struct piece){p->at, p->at + size};
    else if (size)
        *bits = little(p->at, (int)size);
    p->at += size;
    return (unsigned)(key / 8);
}

static void print_value(struct piece value, long long step, FILE *out) {
    uint64_t bits = 0;
    struct piece bytes, tag = {NULL, NULL};
    float number = NAN;
    for (unsigned f; (f = field(&value, &bits, &bytes));) {
        if (f == 1) tag = bytes;
        if (f == 2) {
            const uint32_t word = (uint32_t)bits;
            memcpy(&number, &word, sizeof number);
        }
    }
    fprintf(out, "%lld %.*s %.9g\n", step, (int)(tag.end - tag.at), (const char *)tag.at, (double)number);
}

/* Its wall time. */
static double print_event(struct piece event, FILE *out) {
    struct piece bytes, parts[16] = {{NULL, NULL}};
    uint64_t bits = 0;
    long long step = 0;
    double time = 0;
    for (unsigned f; (f = field(&event, &bits, &bytes));) {
        if (f == 1) memcpy(&time, &bits, sizeof time);
        if (f == 2) step = (long long)bits;
        if (f < 16) parts[f] = bytes;
    }
    if (parts[3].at) fprintf(out, "version %.*s\n", (int)(parts[3].end - parts[3].at), (const char *)parts[3].at);
    if (parts[7].at && field(&parts[7], &bits, &bytes) == 1 && bits == 1) fprintf(out, "start %lld\n", step);
    for (unsigned f; parts[5].at && (f = field(&parts[5], &bits, &bytes));)
        if (f == 1) print_value(bytes, step, out);
    return time;
}

/* False: a frame or a checksum is wrong, or time runs back. */
static bool print_file(const char *path, FILE *out) {
    static unsigned char data[1 << 22];
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    size_t bytes = fread(data, 1, sizeof data, f), at = 0;
    double before = 0;
    fclose(f);
    while (at < bytes) {
        const unsigned char *p = data + at;
        if (bytes - at < 16 || little(p + 8, 4) != checksum(p, 8)) return false;
        const size_t length = (size_t)little(p, 8);
        if (length > bytes - at - 16 || little(p + 12 + length, 4) != checksum(p + 12, length)) return false;
        const double time = print_event((struct piece){p + 12, p + 12 + length}, out);
        if (time < before) return false;
        before = time;
        at += 16 + length;
    }
    return true;
}

/* -- the tests ----------------------------------------------------------------------------------------------------- */

static char dir[] = "/tmp/sparsetrain-events.XXXXXX";

static int make_dir(void **state) {
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) {
    (void)state;
    return rmdir(dir);
}

/* What the file has; it goes. */
static void holds(struct event_file *f, const char *want) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    event_file_close(f);
    assert_true(print_file(f->path, out));
    fclose(out);
    assert_string_equal(text, want);
    free(text);
    assert_int_equal(unlink(f->path), 0);
}

/* RFC 3720, B.4, and the usual check. */
static void checksums(void **state) {
    (void)state;
    unsigned char data[32];
    assert_int_equal(event_crc32c("123456789", 9), 0xe3069283u);
    memset(data, 0, sizeof data);
    assert_int_equal(event_crc32c(data, 32), 0x8a9136aau);
    memset(data, 255, sizeof data);
    assert_int_equal(event_crc32c(data, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++) data[i] = (unsigned char)i;
    assert_int_equal(event_crc32c(data, 32), 0x46dd794eu);
    for (size_t i = 0; i <= 32; i++) assert_int_equal(event_masked(event_crc32c(data, i)), checksum(data, i));
}

static void a_run(void **state) {
    (void)state;
    struct event_file f = {0};
    struct err e = {0};
    assert_true(event_file_open(&f, dir, 0, &e));
    event_step(&f, 1);
    event_scalar(&f, "train/loss", 2.5);
    event_scalar(&f, "train/none", NAN);
    event_scalar(&f, "rate", -1e-3);
    event_end(&f);
    event_step(&f, 2);
    event_scalar(&f, "none", INFINITY);
    event_end(&f);
    event_step(&f, 5000000000);
    event_scalar(&f, "bytes", 3e9);
    event_end(&f);
    event_file_flush(&f);
    assert_string_equal(f.failed.text, "");
    holds(&f, "version brain.Event:2\n1 train/loss 2.5\n1 rate -0.00100000005\n5000000000 bytes 3e+09\n");
}

static void one_that_goes_on(void **state) {
    (void)state;
    struct event_file f = {0};
    struct err e = {0};
    assert_true(event_file_open(&f, dir, 20, &e));
    event_step(&f, 21);
    event_scalar(&f, "train/loss", 1);
    event_end(&f);
    holds(&f, "version brain.Event:2\nstart 21\n21 train/loss 1\n");
}

/* Also within a second, and where a clock was set back: by name the newest is the last. */
static void files_are_in_order(void **state) {
    (void)state;
    struct event_file f[3] = {{0}};
    struct err e = {0};
    char *future = NULL;
    assert_true(event_file_open(&f[0], dir, 0, &e) && event_file_open(&f[1], dir, 0, &e));
    assert_true(asprintf(&future, "%s/events.out.tfevents.9000000000.host", dir) > 0);
    FILE *file = fopen(future, "w");
    assert_non_null(file);
    fclose(file);
    assert_true(event_file_open(&f[2], dir, 0, &e));
    assert_true(strcmp(f[0].path, f[1].path) < 0 && strcmp(f[1].path, future) < 0 && strcmp(future, f[2].path) < 0);
    assert_int_equal(unlink(future), 0);
    free(future);
    for (int i = 0; i < 3; i++) holds(&f[i], "version brain.Event:2\n");
}

static void folders(void **state) {
    (void)state;
    struct event_file f = {0};
    struct err e = {0};
    char *deep = NULL, *file = NULL;
    assert_true(asprintf(&deep, "%s/a/b/", dir) > 0 && asprintf(&file, "%s/file", dir) > 0);
    assert_true(event_file_check(deep, &e));
    assert_int_equal(access(deep, F_OK), -1);
    assert_true(event_file_open(&f, deep, 0, &e));
    assert_int_equal(f.made, 2);
    event_file_abandon(&f);
    assert_int_equal(access(deep, F_OK), -1);
    FILE *in_the_way = fopen(file, "w");
    assert_non_null(in_the_way);
    fclose(in_the_way);
    assert_false(event_file_check(file, &e));
    assert_non_null(strstr(e.text, "cannot write to --log-tensorboard"));
    assert_non_null(strstr(e.text, "Not a directory"));
    assert_int_equal(unlink(file), 0);
    free(deep);
    free(file);
}

static void without_a_file(void **state) {
    (void)state;
    struct event_file f = {0};
    event_step(&f, 1);
    event_scalar(&f, "x", 1);
    event_end(&f);
    event_file_flush(&f);
    event_file_abandon(&f);
    event_file_close(&f);
    assert_string_equal(f.failed.text, "");
}

static void a_full_disk(void **state) {
    (void)state;
    struct event_file f = {0};
    f.file = fopen("/dev/full", "wb");
    if (!f.file) skip();
    snprintf(f.path, sizeof f.path, "/dev/full");
    event_step(&f, 1);
    event_scalar(&f, "x", 1);
    event_end(&f);
    event_file_flush(&f);
    assert_string_equal(f.failed.text, "cannot write /dev/full: No space left on device");
    event_file_close(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums),          cmocka_unit_test(a_run),   cmocka_unit_test(one_that_goes_on),
        cmocka_unit_test(files_are_in_order), cmocka_unit_test(folders), cmocka_unit_test(without_a_file),
        cmocka_unit_test(a_full_disk),
    };
    if (argc == 3 && strcmp(argv[1], "--print") == 0) return print_file(argv[2], stdout) ? 0 : 1;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
