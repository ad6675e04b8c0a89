/* Texts that are missing, empty, no text at all, changed while they are read, or packed files with every kind of
 * damage: one line each. */
#include "tests/lib/data_text_support.h"

#include <errno.h>
#include <sys/stat.h>

#include "data/text/text_reader.h"

#define GET_IT "sh scripts/fetch-data.sh ptb"

/* `where` is refused with a line that says all of these. */
static void refused(const char *where, const char *a, const char *b, const char *c) {
    struct err e = {0};
    struct dataset d;
    void *memory = load_set(&dataset_ptb, where, 1, &d, &e);
    mem_free(memory);
    assert_null(memory);
    assert_says(&e, a);
    assert_says(&e, b);
    assert_says(&e, c);
}

static void missing_files(void **state) {
    (void)state;
    char *dir = make_directory(), *file = mem_printf("%s/ptb.valid.txt", dir), path[1024];
    refused("/nowhere/at/all", "/nowhere/at/all holds no text", "ptb.{train,valid,test}.txt", GET_IT);
    refused(dir, dir, "simple-examples/data", GET_IT);
    write_three(dir, "a\n", "a\n", "a\n");
    refused(file, "ptb.valid.txt is a file", "give the directory", "");
    assert_int_equal(unlink(file), 0);
    refused(dir, "has ptb.test.txt, but no ptb.valid.txt (nor .gz)", dir, GET_IT);
    write_text(dir, "valid.txt", "a\n"); /* not of the same naming */
    refused(dir, "no ptb.valid.txt", dir, GET_IT);
    assert_int_equal(mkdir(file, 0777), 0);
    refused(dir, file, "is not a file", "put the text there");
    assert_int_equal(rmdir(file), 0);
    assert_int_equal(symlink("ptb.valid.txt", file), 0);
    refused(dir, "cannot read", file, strerror(ELOOP));
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    refused(path, "too long", "aaaa", "511 bytes");
    path[505] = '\0'; /* itself short enough, its files not */
    refused(path, "too long", "aaaa", "511 bytes");
    mem_free(file);
    remove_tree(dir);
}

static void bad_texts(void **state) {
    (void)state;
    char *dir = make_directory(), *text = mem_alloc(5000, 1, "a text");
    write_three(dir, "", "a\n", "a\n");
    refused(dir, dir, "ptb.train.txt is empty", "put the text there");
    write_three(dir, "a\n", "", "a\n");
    refused(dir, dir, "ptb.valid.txt is empty", "put the text there");
    write_three(dir, "a\n", "a\n", "");
    refused(dir, dir, "ptb.test.txt is empty", "put the text there");
    write_three(dir, "\n", "a\n", "a\n");
    refused(dir, dir, "ptb.train.txt holds one word alone", "to train on");
    write_three(dir, "a\n", "a\n", "a\n");
    memcpy(text, "x\n\ny ", 5);
    memset(text + 5, 'z', 4097);
    write_bytes(dir, ptb_name[2], text, 5 + 4097);
    refused(dir, "ptb.test.txt: line 3 holds a word of more than 4096 bytes", dir, "put blanks");
    write_bytes(dir, ptb_name[2], "a\nb\0c\n", 6);
    refused(dir, "ptb.test.txt: line 2 holds a zero byte", dir, "UTF-8");
    write_bytes(dir, ptb_name[0],
                "\xff\xfe"
                "a\0\n\0",
                6); /* UTF-16 */
    refused(dir, "ptb.train.txt: line 1 holds a zero byte", dir, "iconv");
    mem_free(text);
    remove_tree(dir);
}

/* Files that change between finding and loading: the memory is the size it was. */
static void changing_files(void **state) {
    (void)state;
    struct err e = {0};
    struct dataset d;
    char *dir = make_directory();
    write_three(dir, "a b c d e f\n", "a\n", "a\n");
    assert_true(dataset_find(&dataset_ptb, dir, 1, &d, &e));
    char *memory = mem_alloc(d.bytes, 1, "a dataset");
    write_text(dir, ptb_name[0], "a b c d e f g\n");
    assert_false(dataset_load(&d, memory, &e));
    assert_says(&e, "grew while they were read; start again");
    memset(&e, 0, sizeof e);
    char *valid = mem_printf("%s/ptb.valid.txt", dir);
    assert_int_equal(unlink(valid), 0);
    assert_false(dataset_load(&d, memory, &e));
    assert_says(&e, "no ptb.valid.txt");
    memset(&e, 0, sizeof e);
    write_three(dir, "a b\n", "a\n", "a\n"); /* less is no harm */
    assert_true(dataset_load(&d, memory, &e));
    dataset_attach(&d, memory);
    expect_words(&d, &d.train_text, "a|b|<eos>|");
    /* One that is longer than promised is stopped before it fills more than its memory. */
    int32_t token[3];
    size_t count;
    struct vocabulary_index *v = vocabulary_open(INT32_MAX);
    char *train = mem_printf("%s/ptb.train.txt", dir);
    assert_false(text_read(train, 3, v, true, token, &count, &e));
    assert_says(&e, "ptb.train.txt holds more than the 3 bytes that it had; start again");
    assert_int_equal(count, 0);
    vocabulary_close(v);
    mem_free(train);
    mem_free(valid);
    mem_free(memory);
    remove_tree(dir);
}

/* A packed training text of 40,000 lines, and where it lies. */
static char *packed_text(const char *dir) {
    enum { LINES = 40000, LINE = 17 };
    char *text = mem_zalloc(LINES, LINE, "a text");
    for (int i = 0; i < LINES; i++) {
        char line[64];
        snprintf(line, sizeof line, "%05d word %05d\n", i * 31 % 1000, i);
        memcpy(text + i * LINE, line, LINE);
    }
    write_text(dir, ptb_name[1], "word\n");
    write_text(dir, ptb_name[2], "word\n");
    char *path = gzip_to(dir, "ptb.train.txt.gz", text, (size_t)LINES * LINE - 1); /* its last line has no end */
    mem_free(text);
    return path;
}

static void damaged_gzip(void **state) {
    (void)state;
    static const char *const name = "ptb.train.txt.gz";
    static const size_t cuts[] = {0, 1, 3, 10, 17, 1000};
    struct dataset d;
    char *dir = make_directory(), *path = packed_text(dir);
    size_t size;
    uint8_t *bytes = read_whole(path, &size);
    void *memory = load_text(dir, &d);
    assert_int_equal(d.train_text.count, 160000);
    mem_free(memory);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        write_bytes(dir, name, bytes, cuts[i]);
        refused(dir, path, "", "bring the file here anew");
    }
    for (size_t cut = 1; cut <= 9; cut++) { /* in the trailer: what is left of it is no size of anything */
        write_bytes(dir, name, bytes, size - cut);
        refused(dir, path, "", "");
    }
    for (size_t at = size / 4; at < size - 8; at += size / 4) { /* in the compressed data */
        bytes[at] ^= 0x10;
        write_bytes(dir, name, bytes, size);
        refused(dir, path, "damaged", "bring the file here anew");
        bytes[at] ^= 0x10;
    }
    bytes[size - 8] ^= 1; /* CRC-32 */
    write_bytes(dir, name, bytes, size);
    refused(dir, path, "damaged", "bring the file here anew");
    bytes[size - 8] ^= 1;
    write_text(dir, name, "plain words under the name of a packed file\n");
    refused(dir, path, "not a gzip file", "bring the file here anew");
    /* Cut off in the middle, with a tail that looks like a good trailer. */
    memcpy(bytes + size / 2 - 8, bytes + size - 8, 8);
    write_bytes(dir, name, bytes, size / 2);
    refused(dir, path, "damaged", "bring the file here anew");
    mem_free(bytes);
    mem_free(path);
    remove_tree(dir);
}

/* A trailer that says less, or more, than there is; two pieces, of which the trailer tells of the last one only. */
static void lying_gzip(void **state) {
    (void)state;
    static const char *const name = "ptb.train.txt.gz";
    char *dir = make_directory(), *path = packed_text(dir);
    size_t size;
    uint8_t *bytes = read_whole(path, &size);
    uint32_t length;
    memcpy(&length, bytes + size - 4, 4);
    for (int i = 0; i < 4; i++) {
        const uint32_t lie[4] = {0, 1, length - 1, length + 1};
        memcpy(bytes + size - 4, &lie[i], 4);
        write_bytes(dir, name, bytes, size);
        refused(dir, path, i >= 2 ? "damaged" : "bytes that its end says",
                i >= 2 ? "incorrect length" : "pack it anew, in one piece");
    }
    memset(bytes + size - 4, 0xff, 4);
    write_bytes(dir, name, bytes, size);
    refused(dir, path, "does not end as a .gz does", "bring the file here anew");
    memcpy(bytes + size - 4, &length, 4);
    write_bytes(dir, name, bytes, size);
    gzFile out = gzopen(path, "ab1");
    assert_int_equal(gzwrite(out, " more\n", 6), 6);
    assert_int_equal(gzclose(out), Z_OK);
    refused(dir, path, "more than the 6 bytes that its end says", "in one piece");
    write_bytes(dir, name, "", 0);
    mem_free(gzip_to(dir, name, "", 0));
    refused(dir, path, "is empty", "put the text there");
    mem_free(bytes);
    mem_free(path);
    remove_tree(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_files), cmocka_unit_test(bad_texts),  cmocka_unit_test(changing_files),
        cmocka_unit_test(damaged_gzip),  cmocka_unit_test(lying_gzip),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
