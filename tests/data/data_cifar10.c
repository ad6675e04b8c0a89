/* CIFAR-10: the real set where it is, small sets of the same format made here, from directories and archives, and
 * every kind of damage that a file can have. */
#include "tests/lib/data_support.h"

#include <sys/stat.h>

#include "base/hash.h"

/* As the files have them: a byte each. */
static uint32_t crc32_of_labels(uint32_t crc, const struct image_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        const uint8_t label = (uint8_t)set->labels[i];
        crc = crc32_of(crc, &label, 1);
    }
    return crc;
}

static void check_small(const struct dataset *d) {
    size_t first = 0;
    assert_int_equal(d->train.count, 21);
    assert_int_equal(d->test.count, 6);
    for (int file = 0; file < FILES; file++) {
        const struct image_set *set = file < 5 ? &d->train : &d->test;
        uint8_t *records = make_records(file, small_counts[file]);
        if (file == 5) first = 0;
        for (size_t i = 0; i < small_counts[file]; i++) {
            assert_int_equal(set->labels[first + i], records[i * RECORD]);
            assert_memory_equal(set->pixels + (first + i) * IMAGE, records + i * RECORD + 1, IMAGE);
        }
        first += small_counts[file];
        mem_free(records);
    }
    uint32_t crc = crc32_of(0, d->train.pixels, d->train.count * IMAGE);
    crc = crc32_of(crc, d->test.pixels, d->test.count * IMAGE);
    crc = crc32_of_labels(crc, &d->train);
    crc = crc32_of_labels(crc, &d->test);
    assert_int_equal(dataset_checksum(d), crc);
}

static void from_directory(void **state) {
    (void)state;
    char *dir = make_directory(), *sub = mem_printf("%s/cifar-10-batches-bin", dir);
    assert_int_equal(mkdir(sub, 0777), 0);
    write_all_records(sub);
    for (int i = 0; i < 2; i++) {
        struct err e = {0};
        struct dataset d, other;
        void *memory = load_set(&dataset_cifar10, i ? sub : dir, 1, &d, &e);
        assert_non_null(memory);
        assert_string_equal(d.source, sub);
        assert_int_equal(d.bytes, 64 + 27 * (IMAGE + 4));
        check_small(&d);
        assert_true(dataset_find(&dataset_cifar10, dir, 1, &other, &e)); /* a rank that did not load */
        dataset_attach(&other, memory);
        check_small(&other);
        mem_free(memory);
    }
    mem_free(sub);
    remove_tree(dir);
}

/* The order of the official archive's files, which is not that of their names. */
static const int archive_order[FILES] = {0, 5, 3, 4, 1, 2};

static char *write_archive(const char *dir, const int *order, size_t files) {
    struct tar t = {0};
    tar_add(&t, "cifar-10-batches-bin/", '5', NULL, 0);
    for (size_t i = 0; i < files; i++) {
        char name[100];
        uint8_t *records = make_records(order[i], small_counts[order[i]]);
        snprintf(name, sizeof name, "cifar-10-batches-bin/%s", file_names[order[i]]);
        tar_add(&t, name, '0', records, small_counts[order[i]] * RECORD);
        if (i == 1) tar_add(&t, "cifar-10-batches-bin/batches.meta.txt", '0', "airplane\n", 9);
        mem_free(records);
    }
    tar_finish(&t);
    char *path = gzip_to(dir, "cifar-10-binary.tar.gz", t.bytes, t.size);
    mem_free(t.bytes);
    return path;
}

static void from_archive(void **state) {
    (void)state;
    static const int orders[3][FILES] = {{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {0, 5, 3, 4, 1, 2}};
    char *dir = make_directory();
    for (int i = 0; i < 6; i++) {
        struct err e = {0};
        struct dataset d;
        char *path = write_archive(dir, orders[i / 2], FILES);
        void *memory = load_set(&dataset_cifar10, i % 2 ? path : dir, 1, &d, &e);
        assert_string_equal(e.text, "");
        assert_string_equal(d.source, path);
        check_small(&d);
        assert_int_equal(entries_in(dir), 1); /* nothing was unpacked */
        mem_free(memory);
        mem_free(path);
    }
    remove_tree(dir);
}

/* -- bad input ----------------------------------------------------------------------------------------------------- */

#define GET_IT "sh scripts/fetch-data.sh cifar10"

/* `where` is refused with a line that says all of these. */
static void refused(const char *where, const char *a, const char *b, const char *c) {
    struct err e = {0};
    struct dataset d;
    void *memory = load_set(&dataset_cifar10, where, 1, &d, &e);
    mem_free(memory);
    assert_null(memory);
    assert_says(&e, a);
    assert_says(&e, b);
    assert_says(&e, c);
}

static void wrong_files(void **state) {
    (void)state;
    char *dir = make_directory(), *third = mem_printf("%s/data_batch_3.bin", dir);
    refused(dir, dir, "30,730,000 (10,000 records of 3,073)", GET_IT);
    refused("/nowhere/at/all", "/nowhere/at/all", "30,730,000", GET_IT);
    write_all_records(dir);
    write_bytes(dir, "data_batch_3.bin", "x", 0);
    refused(dir, third, "has 0 bytes", "30,730,000");
    uint8_t *records = make_records(2, 1001);
    write_bytes(dir, "data_batch_3.bin", records, 1000 * RECORD - 1);
    refused(dir, third, "has 3,072,999 bytes", GET_IT);
    write_bytes(dir, "data_batch_3.bin", records, 1000 * RECORD + 1);
    refused(dir, third, "has 3,073,001 bytes", "another whole number of records");
    assert_int_equal(unlink(third), 0);
    refused(dir, third, "No such file", "30,730,000");
    assert_int_equal(mkdir(third, 0777), 0);
    refused(dir, third, "is not a file", GET_IT);
    assert_int_equal(rmdir(third), 0);
    records[4 * RECORD] = 10;
    write_bytes(dir, "data_batch_3.bin", records, 6 * RECORD);
    refused(dir, "data_batch_3.bin has label 10 in record 4", "0 to 9", GET_IT);
    records[4 * RECORD] = 255;
    write_bytes(dir, "data_batch_3.bin", records, 6 * RECORD);
    refused(dir, "label 255", "record 4", GET_IT);
    mem_free(records);
    mem_free(third);
    remove_tree(dir);
}

static void too_long_path(void **state) {
    (void)state;
    char path[1024];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    refused(path, "too long", "aaaa", "511 bytes");
    path[505] = '\0'; /* itself short enough, its files not */
    refused(path, "aaaa", "aaaa", "");
}

/* A file that grows between finding and loading: the memory is the size it was. */
static void growing_file(void **state) {
    (void)state;
    struct err e = {0};
    struct dataset d;
    char *dir = make_directory();
    write_all_records(dir);
    assert_true(dataset_find(&dataset_cifar10, dir, 1, &d, &e));
    void *memory = mem_alloc(d.bytes, 1, "a dataset");
    write_records(dir, 1, small_counts[1] + 1);
    assert_false(dataset_load(&d, memory, &e));
    assert_says(&e, "more than the 27 images");
    mem_free(memory);
    remove_tree(dir);
}

static void damaged_archive(void **state) {
    (void)state;
    char *dir = make_directory(), *path = write_archive(dir, archive_order, FILES);
    size_t size;
    uint8_t *bytes = read_whole(path, &size);
    static const char *const name = "cifar-10-binary.tar.gz";
    static const size_t cuts[] = {0, 1, 10, 17, 1000};
    for (size_t i = 0; i < 5; i++) {
        write_bytes(dir, name, bytes, cuts[i]);
        refused(path, path, "", GET_IT);
    }
    write_bytes(dir, name, bytes, size - 1);
    refused(path, path, "truncated", GET_IT);
    for (size_t at = size / 4; at < size; at += size / 4) { /* in the compressed data */
        bytes[at] ^= 0x10;
        write_bytes(dir, name, bytes, size);
        refused(path, path, "", GET_IT);
        bytes[at] ^= 0x10;
    }
    bytes[size - 8] ^= 1; /* CRC-32 */
    write_bytes(dir, name, bytes, size);
    refused(path, path, "damaged", GET_IT);
    bytes[size - 8] ^= 1;
    bytes[size - 3] ^= 0x40; /* ISIZE: 16 KiB more or less than there are */
    write_bytes(dir, name, bytes, size);
    refused(path, path, "", GET_IT);
    write_bytes(dir, name, "this is not an archive, but it is long enough", 45);
    refused(path, "not a gzip file", path, GET_IT);
    mem_free(bytes);
    mem_free(path);
    remove_tree(dir);
}

/* Cut off in the middle, with a tail that looks like a good trailer. */
static void cut_archive(void **state) {
    (void)state;
    char *dir = make_directory(), *path = write_archive(dir, archive_order, FILES);
    size_t size;
    uint8_t *bytes = read_whole(path, &size);
    memcpy(bytes + size / 2 - 8, bytes + size - 8, 8);
    write_bytes(dir, "cifar-10-binary.tar.gz", bytes, size / 2);
    refused(path, path, "damaged", GET_IT);
    mem_free(bytes);
    mem_free(path);
    remove_tree(dir);
}

/* Archives that are sound but do not hold what they should. */
static void wrong_archive(void **state) {
    (void)state;
    static const int twice[FILES] = {0, 1, 2, 3, 3, 5};
    char *dir = make_directory(), *path = write_archive(dir, archive_order, 5);
    refused(path, path, "holds no data_batch_3.bin", "30,730,000");
    mem_free(path);
    path = write_archive(dir, twice, FILES);
    refused(path, "data_batch_4.bin occurs twice", path, GET_IT);
    mem_free(path);
    struct tar t = {0};
    uint8_t *records = make_records(0, 50);
    tar_add(&t, "data_batch_1.bin", '0', records, 50 * RECORD - 1);
    tar_finish(&t);
    path = gzip_to(dir, "x.tar.gz", t.bytes, t.size);
    refused(path, "data_batch_1.bin has 153,649 bytes", path, "30,730,000");
    mem_free(path);
    t.bytes[100] ^= 1; /* the tar header's checksum no longer agrees */
    path = gzip_to(dir, "x.tar.gz", t.bytes, t.size);
    refused(path, "wrong checksum", path, GET_IT);
    mem_free(path);
    memset(t.bytes, 'a', t.size);
    path = gzip_to(dir, "x.tar.gz", t.bytes, t.size);
    refused(path, "not a tar", path, GET_IT);
    mem_free(path);
    mem_free(records);
    mem_free(t.bytes);
    remove_tree(dir);
}

/* Two gzip members: the trailer at the end tells of the last one only, so load must notice that there is more. */
static void understated_archive(void **state) {
    (void)state;
    char *dir = make_directory(), *path = write_archive(dir, archive_order, FILES);
    struct tar end = {0};
    tar_finish(&end);
    for (int i = 0; i < 2; i++) tar_finish(&end);
    char *second = gzip_to(dir, "end.gz", end.bytes, end.size);
    gzFile in = gzopen(path, "rb");
    uint8_t *whole = mem_alloc(200000, 1, "a tar");
    int size = gzread(in, whole, 200000);
    gzclose(in);
    assert_true(size > 0);
    gzFile out = gzopen(path, "wb1");
    assert_int_equal(gzwrite(out, whole, (unsigned)size - 20480), size - 20480);
    gzclose(out);
    out = gzopen(path, "ab1");
    assert_int_equal(gzwrite(out, whole + size - 20480, 20480), 20480);
    gzclose(out);
    refused(path, "more than the 6 images", path, GET_IT);
    mem_free(whole);
    mem_free(second);
    mem_free(end.bytes);
    mem_free(path);
    remove_tree(dir);
}

/* -- the real set -------------------------------------------------------------------------------------------------- */

static void real_set(void **state) {
    (void)state;
    const char *where = getenv("SPARSETRAIN_DATA");
    struct err e = {0};
    struct dataset d;
    void *memory = load_set(&dataset_cifar10, where ? where : "build/data", 1, &d, &e);
    if (!memory) {
        printf("# SKIP real_set: %s\n", e.text);
        skip();
    }
    size_t train[10] = {0}, test[10] = {0};
    for (size_t i = 0; i < d.train.count; i++) train[d.train.labels[i]]++;
    for (size_t i = 0; i < d.test.count; i++) test[d.test.labels[i]]++;
    assert_int_equal(d.train.count, 50000);
    for (int c = 0; c < 10; c++) assert_int_equal(train[c], 5000);
    uint32_t crc = crc32_of(0, d.train.pixels, d.train.count * IMAGE);
    assert_int_equal(crc32_of_labels(crc, &d.train), 0x98e8790c);
    assert_true(d.test.count == 10000 || d.test.count == 9980); /* 9,980: a mirror whose copy lacks 20 images */
    for (int c = 0; c < 10; c++)
        assert_int_equal(test[c], d.test.count == 10000 ? 1000 : c == 7 ? 999 : c == 8 ? 981 : 1000);
    if (d.test.count == 9980) assert_int_equal(dataset_checksum(&d), 0x8909b839);
    mem_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_directory), cmocka_unit_test(from_archive),  cmocka_unit_test(wrong_files),
        cmocka_unit_test(too_long_path),  cmocka_unit_test(growing_file),  cmocka_unit_test(damaged_archive),
        cmocka_unit_test(cut_archive),    cmocka_unit_test(wrong_archive), cmocka_unit_test(understated_archive),
        cmocka_unit_test(real_set),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
