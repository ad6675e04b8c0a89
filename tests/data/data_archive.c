/* The tar reader: long names of both kinds, other types of members, padding, reading in parts. */
#include "tests/lib/data_support.h"

#include "data/archive.h"
#include "data/gzip.h"

static char *save(const char *dir, struct tar *t) {
    char *path = gzip_to(dir, "a.tar.gz", t->bytes, t->size);
    mem_free(t->bytes);
    memset(t, 0, sizeof *t);
    return path;
}

static void expect(struct archive *a, const char *name, const char *contents) {
    struct err e = {0};
    struct archive_member m;
    char text[4096] = "";
    assert_true(archive_next(a, &m, &e));
    assert_string_equal(m.name, name);
    assert_int_equal(m.size, strlen(contents));
    assert_true(archive_read(a, text, m.size / 2, &e)); /* in two parts */
    assert_true(archive_read(a, text + m.size / 2, m.size - m.size / 2, &e));
    assert_string_equal(text, contents);
    assert_false(archive_read(a, text, 1, &e));
    assert_says(&e, "shorter than it should be");
}

static void expect_end(struct archive *a) {
    struct err e = {0};
    struct archive_member m;
    assert_false(archive_next(a, &m, &e));
    assert_string_equal(e.text, "");
    archive_close(a);
}

static void plain_members(void **state) {
    (void)state;
    struct err e = {0};
    struct tar t = {0};
    uint64_t bytes;
    char *dir = make_directory(), big[1025] = "";
    memset(big, 'b', 1024);
    tar_add(&t, "folder/", '5', NULL, 0);
    tar_add(&t, "folder/empty", '0', "", 0);
    tar_add(&t, "folder/link", '2', "", 0);
    tar_add(&t, "folder/old", '\0', "seven", 5);
    tar_add(&t, "skipped", '0', big, 700);
    tar_add(&t, "two-blocks", '0', big, 1024);
    tar_finish(&t);
    size_t size = t.size;
    char *path = save(dir, &t);
    assert_true(archive_unpacked_size(path, &bytes, &e));
    assert_int_equal(bytes, size);
    struct archive *a = archive_open(path, &e);
    struct archive_member m;
    expect(a, "folder/empty", "");
    expect(a, "folder/old", "seven");
    assert_true(archive_next(a, &m, &e)); /* "skipped" is not read at all */
    assert_int_equal(m.size, 700);
    expect(a, "two-blocks", big);
    expect_end(a);
    mem_free(path);
    remove_tree(dir);
}

static void long_names(void **state) {
    (void)state;
    struct err e = {0};
    struct tar t = {0};
    char *dir = make_directory(), name[301] = "", pax[400];
    memset(name, 'n', 300);
    tar_add(&t, "././@LongLink", 'L', name, 301);
    tar_add(&t, name, '0', "gnu", 3);
    snprintf(pax, sizeof pax, "30 mtime=1350715298.490465160\n310 path=%s\n", name);
    tar_add(&t, "PaxHeaders/x", 'x', pax, strlen(pax));
    tar_add(&t, name, '0', "pax", 3);
    tar_add(&t, "pax_global", 'g', "15 comment=abc\n", 15);
    tar_add(&t, "short", '0', "none", 4); /* what came before belongs to the others */
    tar_finish(&t);
    char *path = save(dir, &t);
    struct archive *a = archive_open(path, &e);
    expect(a, name, "gnu");
    expect(a, name, "pax");
    expect(a, "short", "none");
    expect_end(a);
    mem_free(path);
    remove_tree(dir);
}

/* The header's size field says 0, the pax record the truth. */
static void pax_size(void **state) {
    (void)state;
    struct err e = {0};
    struct tar t = {0};
    struct archive_member m;
    char *dir = make_directory();
    tar_add(&t, "x", 'x', "10 size=3\n", 10);
    tar_add(&t, "file", '0', NULL, 0);
    char contents[512] = "abc";
    tar_append(&t, contents, sizeof contents);
    tar_finish(&t);
    char *path = save(dir, &t);
    struct archive *a = archive_open(path, &e);
    expect(a, "file", "abc");
    expect_end(a);
    memset(&t, 0, sizeof t);
    tar_add(&t, "x", 'x', "99 size=3\n", 10); /* a length beyond the record */
    tar_finish(&t);
    mem_free(path);
    path = save(dir, &t);
    a = archive_open(path, &e);
    assert_false(archive_next(a, &m, &e));
    assert_says(&e, "pax record");
    archive_close(a);
    mem_free(path);
    remove_tree(dir);
}

/* Names of 100 bytes and more with a ustar prefix; the sum of the header is patched. */
static void prefix(void **state) {
    (void)state;
    struct err e = {0};
    struct tar t = {0};
    char *dir = make_directory();
    tar_add(&t, "file", '0', "abc", 3);
    memcpy(t.bytes + 345, "some/where", 10);
    unsigned sum = 0;
    memset(t.bytes + 148, ' ', 8);
    for (size_t i = 0; i < 512; i++) sum += t.bytes[i];
    snprintf((char *)t.bytes + 148, 8, "%06o", sum);
    tar_finish(&t);
    char *path = save(dir, &t);
    struct archive *a = archive_open(path, &e);
    expect(a, "some/where/file", "abc");
    expect_end(a);
    mem_free(path);
    remove_tree(dir);
}

static void no_archive(void **state) {
    (void)state;
    struct err e = {0};
    assert_null(archive_open("/nowhere/a.tar.gz", &e));
    assert_says(&e, "cannot read /nowhere/a.tar.gz");
    archive_close(NULL);
}

/* A tar without its end blocks was cut off before it was packed. */
static void no_end(void **state) {
    (void)state;
    struct err e = {0};
    struct tar t = {0};
    struct archive_member m;
    char *dir = make_directory();
    tar_add(&t, "file", '0', "abc", 3);
    char *path = save(dir, &t);
    struct archive *a = archive_open(path, &e);
    expect(a, "file", "abc");
    assert_false(archive_next(a, &m, &e));
    assert_says(&e, "truncated");
    archive_close(a);
    mem_free(path);
    remove_tree(dir);
}

/* The CRC of the whole stands behind the end of the tar; with a long padding the reader meets it only if it looks. */
static void checksum_after_the_end(void **state) {
    (void)state;
    struct tar t = {0};
    struct archive_member m;
    char *dir = make_directory();
    tar_add(&t, "file", '0', "abc", 3);
    tar_finish(&t);
    tar_pad(&t, 1 << 22);
    char *path = save(dir, &t);
    size_t size;
    uint8_t *bytes = read_whole(path, &size);
    for (int cut = 0; cut < 2; cut++) {
        struct err e = {0};
        bytes[size - 8] ^= 1; /* wrong, then right again but cut off */
        write_bytes(dir, "a.tar.gz", bytes, cut ? size - 2 : size);
        struct archive *a = archive_open(path, &e);
        expect(a, "file", "abc");
        assert_false(archive_next(a, &m, &e));
        assert_says(&e, cut ? "truncated" : "incorrect data check");
        archive_close(a);
    }
    mem_free(bytes);
    mem_free(path);
    remove_tree(dir);
}

/* All of a .gz, in small pieces; NULL: what is wrong is in *e. */
static const char *unpacked(const char *path, char text[64], struct err *e) {
    struct gzip *g = gzip_open(path, e);
    if (!g) return NULL;
    size_t used = 0, got = 0;
    bool good;
    while ((good = gzip_read(g, text + used, 5, &got, e)) && got > 0) used += got;
    text[used] = 0;
    if (good) assert_true(gzip_read(g, text + used, 5, &got, e) && got == 0); /* the end stays the end */
    gzip_close(g);
    return good ? text : NULL;
}

/* What `cat a.gz b.gz` makes is one file to gzip, and padding behind it is no matter; damage behind the first is. */
static void pieces_one_after_another(void **state) {
    (void)state;
    char *dir = make_directory(), text[64];
    char *a = gzip_to(dir, "a.gz", "one two ", 8), *b = gzip_to(dir, "b.gz", "three", 5);
    char *empty = gzip_to(dir, "c.gz", "", 0), *path = mem_printf("%s/all.gz", dir);
    size_t size_a, size_b, size_empty, size = 0;
    uint8_t *bytes_a = read_whole(a, &size_a), *bytes_b = read_whole(b, &size_b),
            *bytes_empty = read_whole(empty, &size_empty), all[512] = {0};
    memcpy(all, bytes_a, size_a), size = size_a;
    memcpy(all + size, bytes_empty, size_empty), size += size_empty;
    memcpy(all + size, bytes_b, size_b), size += size_b;
    struct err e = {0};
    write_bytes(dir, "all.gz", all, size);
    assert_string_equal(unpacked(path, text, &e), "one two three");
    write_bytes(dir, "all.gz", all, size + 100); /* zeros, as from a tape */
    assert_string_equal(unpacked(path, text, &e), "one two three");
    for (size_t cut = size_a + size_empty + 1; cut < size; cut++) {
        e = (struct err){0};
        write_bytes(dir, "all.gz", all, cut);
        assert_null(unpacked(path, text, &e));
        assert_says(&e, "truncated");
    }
    e = (struct err){0};
    all[size - 8] ^= 1; /* the last CRC */
    write_bytes(dir, "all.gz", all, size);
    assert_null(unpacked(path, text, &e));
    assert_says(&e, "incorrect data check");
    mem_free(a), mem_free(b), mem_free(empty), mem_free(path);
    mem_free(bytes_a), mem_free(bytes_b), mem_free(bytes_empty);
    remove_tree(dir);
}

static void no_gzip(void **state) {
    (void)state;
    char *dir = make_directory(), *path = mem_printf("%s/no.gz", dir), text[64];
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {{"", 0}, {"\x1f", 1}, {"\x1f\x8c and so on", 12}, {"plain text of some length", 25}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0}, again = {0};
        uint64_t bytes;
        write_bytes(dir, "no.gz", cases[i].bytes, cases[i].size);
        assert_null(unpacked(path, text, &e));
        assert_non_null(strstr(e.text, i == 0 ? "it ends too early" : "is not a gzip file"));
        assert_false(gzip_unpacked_size(path, &bytes, &again));
        assert_says(&again, "is not a gzip file");
    }
    struct err e = {0};
    uint64_t bytes;
    assert_false(gzip_unpacked_size("/nowhere/a.gz", &bytes, &e));
    assert_says(&e, "cannot read /nowhere/a.gz");
    mem_free(path);
    remove_tree(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_members),
        cmocka_unit_test(long_names),
        cmocka_unit_test(pax_size),
        cmocka_unit_test(prefix),
        cmocka_unit_test(no_archive),
        cmocka_unit_test(no_end),
        cmocka_unit_test(checksum_after_the_end),
        cmocka_unit_test(pieces_one_after_another),
        cmocka_unit_test(no_gzip),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
