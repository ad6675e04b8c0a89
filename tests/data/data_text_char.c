/* Texts read character by character: every kind of UTF-8 and of what is none against a naive decoder, the order of the
 * vocabulary, the split, what is refused, and tiny Shakespeare where it is. */
#include "tests/lib/data_text_support.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "data/text/utf8.h"

extern const struct dataset_ops dataset_text_char;

#define GET_IT "sh scripts/fetch-data.sh tinyshakespeare"

static void *load_chars(const char *where, struct dataset *d) {
    struct err e = {0};
    void *memory = load_set(&dataset_text_char, where, 1, d, &e);
    assert_string_equal(e.text, "");
    assert_non_null(memory);
    return memory;
}

static void refused(const char *where, const char *a, const char *b, const char *c) {
    struct err e = {0};
    struct dataset d;
    void *memory = load_set(&dataset_text_char, where, 1, &d, &e);
    mem_free(memory);
    assert_null(memory);
    assert_int_equal(err_status(&e), EXIT_USER);
    assert_says(&e, a);
    assert_says(&e, b);
    assert_says(&e, c);
}

/* -- a naive decoder ----------------------------------------------------------------------------------------------- */

/* The character at text[at..size): how many bytes it has, 0 where it is none, or more than are left where it is cut
 * off. As RFC 3629 says it: the leading bits give the length, the rest the number, which no shorter form may give. */
static size_t naive_char(const uint8_t *text, size_t size, size_t at, uint32_t *code) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = text[at];
    const size_t length = first < 0x80             ? 1
                          : (first & 0xe0) == 0xc0 ? 2
                          : (first & 0xf0) == 0xe0 ? 3
                          : (first & 0xf8) == 0xf0 ? 4
                                                   : 0;
    if (length == 0) return 0;
    uint32_t low = length == 1 ? first : first & (0x7fu >> length), high;
    size_t i = 1;
    for (; i < length && at + i < size && (text[at + i] & 0xc0) == 0x80; i++) low = low << 6 | (text[at + i] & 0x3fu);
    const bool cut = i < length && at + i == size;
    if (i < length && !cut) return 0;
    for (high = low; i < length; i++) low <<= 6, high = high << 6 | 0x3f; /* all that it could still become */
    if (high < least[length] || low > 0x10ffff || (low >= 0xd800 && high <= 0xdfff)) return 0;
    *code = low;
    return length;
}

/* The code points of a text; SIZE_MAX in *bad, or where the first character begins that is none, or is cut off. */
static size_t naive(const uint8_t *text, size_t size, uint32_t *code, size_t *bad, bool *cut) {
    size_t count = 0;
    *bad = SIZE_MAX;
    for (size_t at = 0, length; at < size; at += length, count++) {
        length = naive_char(text, size, at, &code[count]);
        *cut = length > size - at;
        if (length && !*cut) continue;
        *bad = at;
        break;
    }
    return count;
}

/* -- the decoder --------------------------------------------------------------------------------------------------- */

/* Every text of up to so many bytes, of those at which anything changes. */
static void every_text_of_edges(void **state) {
    (void)state;
    static const uint8_t edge[] = {0x01, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
                                   0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    enum { EDGES = sizeof edge, LONGEST = 4 };
    size_t texts = 1, good = 0;
    for (int i = 0; i < LONGEST; i++) texts *= EDGES;
    for (size_t n = 0; n < texts; n++) {
        uint8_t text[LONGEST];
        uint32_t code[LONGEST], found[LONGEST];
        struct utf8 u = {0};
        size_t left = n, bad, count, have = 0, at = 0, begun = 0;
        bool cut = false;
        for (int i = 0; i < LONGEST; i++, left /= EDGES) text[i] = edge[left % EDGES];
        count = naive(text, LONGEST, code, &bad, &cut);
        for (enum utf8_step step; at < LONGEST; at++) {
            if (!utf8_within(&u)) begun = at;
            step = utf8_take(&u, text[at]);
            if (step == UTF8_BAD) break;
            if (step == UTF8_WHOLE) found[have++] = u.code;
        }
        assert_int_equal(have, count);
        assert_memory_equal(found, code, count * sizeof *code);
        if (bad == SIZE_MAX)
            assert_true(at == LONGEST && !utf8_within(&u));
        else
            assert_true(begun == bad && cut == (at == LONGEST));
        good += bad == SIZE_MAX;
    }
    assert_true(good > 1000);
}

static void every_code_point(void **state) {
    (void)state;
    for (uint32_t code = 0; code <= UTF8_MOST; code++) {
        char bytes[UTF8_BYTES];
        uint32_t read = 0;
        if (code >= 0xd800 && code < 0xe000) continue;
        const size_t length = utf8_put(code, bytes);
        struct utf8 u = {0};
        for (size_t i = 0; i < length; i++)
            assert_int_equal(utf8_take(&u, (uint8_t)bytes[i]), i + 1 < length ? UTF8_MORE : UTF8_WHOLE);
        assert_int_equal(u.code, code);
        assert_int_equal(naive_char((const uint8_t *)bytes, length, 0, &read), length);
        assert_int_equal(read, code);
    }
}

/* -- texts --------------------------------------------------------------------------------------------------------- */

static int upwards(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The dataset is what the naive decoder, sorting and cutting at floor(0.9 n) make of the text. */
static void expect_naive(const struct dataset *d, const uint8_t *text, size_t size) {
    uint32_t *code = mem_alloc(size, sizeof *code, "code points"), *sorted = mem_alloc(size, sizeof *code, "kinds");
    size_t bad, kinds = 0, used = 0;
    bool cut;
    const size_t count = naive(text, size, code, &bad, &cut), train = count * 9 / 10;
    assert_int_equal(bad, SIZE_MAX);
    memcpy(sorted, code, count * sizeof *code);
    qsort(sorted, count, sizeof *sorted, upwards);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || sorted[i] != sorted[kinds - 1]) sorted[kinds++] = sorted[i];
    assert_int_equal(d->classes, kinds);
    assert_int_equal(d->train_text.count, train);
    assert_int_equal(d->valid_text.count, count - train);
    assert_int_equal(d->test_text.count, 0);
    assert_ptr_equal(d->valid_text.token, d->train_text.token + train);
    for (size_t i = 0; i < count; i++) assert_int_equal(sorted[d->train_text.token[i]], code[i]);
    for (size_t i = 0; i < kinds; i++) {
        char line[8];
        size_t length = sorted[i] == '\n'   ? (size_t)sprintf(line, "\\n")
                        : sorted[i] == '\r' ? (size_t)sprintf(line, "\\r")
                        : sorted[i] == '\\' ? (size_t)sprintf(line, "\\\\")
                                            : utf8_put(sorted[i], line);
        line[length++] = '\n';
        assert_true(used + length <= d->vocabulary.bytes);
        assert_memory_equal(d->vocabulary.lines + used, line, length);
        used += length;
    }
    assert_int_equal(d->vocabulary.bytes, used);
    mem_free(sorted);
    mem_free(code);
}

/* One to four bytes, in the order of their numbers and not of their coming. */
static void characters_of_every_length(void **state) {
    (void)state;
    struct dataset d;
    char *dir = make_directory(), *file = mem_printf("%s/my text", dir);
    static const char text[] = "\xf0\x9f\x90\x8d z\xc3\xa4h\n\xe2\x82\xac\\ \ra\xf4\x8f\xbf\xbf\xee\x80\x80";
    static const char lines[] = "\\n\n\\r\n \n\\\\\na\nh\nz\n\xc3\xa4\n\xe2\x82\xac\n\xee\x80\x80\n\xf0\x9f\x90\x8d\n"
                                "\xf4\x8f\xbf\xbf\n";
    static const int32_t token[] = {10, 2, 6, 7, 5, 0, 8, 3, 2, 1, 4, 11, 9};
    write_text(dir, "my text", text);
    void *memory = load_chars(file, &d);
    assert_string_equal(d.source, file);
    assert_int_equal(d.classes, 12);
    assert_int_equal(d.vocabulary.bytes, sizeof lines - 1);
    assert_memory_equal(d.vocabulary.lines, lines, sizeof lines - 1);
    assert_int_equal(d.train_text.count, 11); /* of 13 */
    assert_int_equal(d.valid_text.count, 2);
    assert_memory_equal(d.train_text.token, token, sizeof token);
    expect_naive(&d, (const uint8_t *)text, sizeof text - 1);
    mem_free(memory);
    mem_free(file);
    remove_tree(dir);
}

/* Made-up texts, longer than the reader's buffer and cut by it at every place within a character; plain and packed. */
static void made_up_texts(void **state) {
    (void)state;
    enum { SIZE = 140000 };
    char *dir = make_directory(), *file = mem_printf("%s/input.txt", dir), *text = mem_alloc(SIZE, 1, "a text");
    for (uint64_t round = 0; round < 8; round++) {
        struct rng r = rng_open(7, RNG_TEST, round);
        struct dataset d, packed;
        size_t size = 0;
        while (size + UTF8_BYTES <= SIZE) {
            static const uint32_t below[] = {0x80, 0x800, 0xd800, 0x110000};
            uint32_t code = 1 + rng_below(&r, below[round < 4 ? round : rng_below(&r, 4)] - 1);
            if (code >= 0xd800 && code < 0xe000) code = 'x';
            size += utf8_put(code, text + size);
        }
        write_bytes(dir, "input.txt", text, size);
        void *memory = load_chars(dir, &d);
        assert_string_equal(d.source, file);
        expect_naive(&d, (const uint8_t *)text, size);
        char *gz = gzip_to(dir, "it.gz", text, size);
        void *other = load_chars(gz, &packed);
        assert_int_equal(dataset_checksum(&packed), dataset_checksum(&d));
        expect_naive(&packed, (const uint8_t *)text, size);
        mem_free(gz);
        mem_free(other);
        mem_free(memory);
    }
    mem_free(text);
    mem_free(file);
    remove_tree(dir);
}

/* floor(0.9 n), as int(n * 0.9) in Python; 11 characters are the least of which two are left to validate with. */
static void the_split(void **state) {
    (void)state;
    char *dir = make_directory(), text[64];
    for (size_t n = 1; n < sizeof text; n++) {
        struct dataset d;
        for (size_t i = 0; i < n; i++) text[i] = "abc"[i % 3];
        write_bytes(dir, "input.txt", text, n);
        if (n < 11) {
            refused(dir, "input.txt has", n > 1 ? "characters:" : "1 character:", "take 11");
            continue;
        }
        void *memory = load_chars(dir, &d);
        assert_int_equal(d.train_text.count, (size_t)((double)n * 0.9));
        assert_true(d.valid_text.count >= 2);
        expect_naive(&d, (const uint8_t *)text, n);
        mem_free(memory);
    }
    remove_tree(dir);
}

/* The bound of the memory: no text has longer lines than one of these three and of characters that come once. */
static void tightest_bound(void **state) {
    (void)state;
    struct dataset d;
    char *dir = make_directory();
    write_text(dir, "input.txt", "\n\r\\abcdefgh");
    void *memory = load_chars(dir, &d);
    assert_int_equal(d.vocabulary.bytes, 2 * 11 + 3);
    mem_free(memory);
    remove_tree(dir);
}

/* A rank that did not load. */
static void attaches(void **state) {
    (void)state;
    struct dataset d, other;
    struct err e = {0};
    char *dir = make_directory();
    write_text(dir, "input.txt", "hello, hello, hello\n");
    void *memory = load_chars(dir, &d);
    assert_true(dataset_find(&dataset_text_char, dir, 1, &other, &e));
    assert_int_equal(other.bytes, d.bytes);
    dataset_attach(&other, memory);
    expect_naive(&other, (const uint8_t *)"hello, hello, hello\n", 20);
    assert_int_equal(dataset_checksum(&other), dataset_checksum(&d));
    mem_free(memory);
    remove_tree(dir);
}

/* -- what is refused ----------------------------------------------------------------------------------------------- */

static void what_is_no_utf8(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } bad[] = {
        {"\x80", 1},             /* goes on with what nothing began */
        {"\xff", 1},             /* no byte of UTF-8 */
        {"\xc0\x80", 2},         /* overlong: 0 */
        {"\xc1\xbf", 2},         /* overlong: 0x7f */
        {"\xe0\x80\x80", 3},     /* overlong: 0 */
        {"\xe0\x9f\xbf", 3},     /* overlong: 0x7ff */
        {"\xf0\x8f\xbf\xbf", 4}, /* overlong: 0xffff */
        {"\xed\xa0\x80", 3},     /* the first surrogate */
        {"\xed\xbf\xbf", 3},     /* the last one */
        {"\xf4\x90\x80\x80", 4}, /* 0x110000 */
        {"\xf5\x80\x80\x80", 4}, /* above it */
        {"\xc3 ", 2},            /* cut off by a character */
        {"\xe2\x82 ", 3},
        {"\xf0\x9f\x90 ", 4},
        {"\xe2\xc3\xa4", 3},
        {"\xf8\x88\x80\x80\x80", 5},
    };
    static const char good[] = "a text that goes \xc3\xa4"; /* 19 bytes */
    static const char *const cut[] = {"\xc3", "\xe2", "\xe2\x82", "\xf0", "\xf0\x9f", "\xf0\x9f\x90"};
    char *dir = make_directory(), text[64];
    memcpy(text, good, 19);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(text + 19, bad[i].bytes, bad[i].length);
        memcpy(text + 19 + bad[i].length, " on", 3);
        write_bytes(dir, "input.txt", text, 22 + bad[i].length);
        refused(dir, "input.txt: byte 19 does not begin a character of UTF-8", dir, "iconv");
    }
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        memcpy(text + 19, cut[i], strlen(cut[i]));
        write_bytes(dir, "input.txt", text, 19 + strlen(cut[i]));
        refused(dir, "input.txt ends within the character of UTF-8 that byte 19 begins", dir, "anew");
    }
    write_bytes(dir, "input.txt", "a text with a \0 in it", 21);
    refused(dir, "input.txt: byte 14 is zero", "not plain text", "iconv");
    write_bytes(dir, "input.txt",
                "\xff\xfe"
                "a\0b\0c\0d\0e\0f\0",
                14); /* UTF-16 */
    refused(dir, "input.txt: byte 0 does not begin", "", "iconv");
    remove_tree(dir);
}

static void too_little_text(void **state) {
    (void)state;
    char *dir = make_directory();
    write_text(dir, "input.txt", "");
    refused(dir, "input.txt is empty", dir, "put a text there");
    write_text(dir, "input.txt",
               "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"); /* characters are counted */
    refused(dir, "input.txt has 7 characters: ", dir, "a longer text");
    write_text(dir, "input.txt", "aaaaaaaaaaaaaaaaaaaa");
    refused(dir, "input.txt has one kind of character alone", dir, "put a text there");
    char *file = mem_printf("%s/input.txt", dir);
    assert_int_equal(unlink(file), 0);
    mem_free(gzip_to(dir, "input.txt.gz", "", 0));
    refused(dir, "input.txt.gz is empty", dir, "put a text there");
    mem_free(file);
    remove_tree(dir);
}

static void missing_files(void **state) {
    (void)state;
    char *dir = make_directory(), *file = mem_printf("%s/input.txt", dir), path[1024];
    refused("/nowhere/at/all", "cannot read /nowhere/at/all: No such file", "with input.txt", GET_IT);
    refused(dir, "holds no text: looked for input.txt and input.txt.gz", dir, GET_IT);
    assert_int_equal(mkdir(file, 0777), 0);
    refused(dir, file, "is not a file", "put the text there");
    assert_int_equal(rmdir(file), 0);
    refused("/dev/null", "/dev/null is not a file", "", "");
    assert_int_equal(symlink("input.txt", file), 0);
    refused(dir, "cannot read", file, strerror(ELOOP));
    assert_int_equal(unlink(file), 0);
    write_text(dir, "input.txt.gz", "no gzip at all, though its name says so");
    refused(dir, "input.txt.gz", "bring the file here anew", dir);
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    refused(path, "cannot read aaaa", "name a file of text", GET_IT);
    memset(path, '/', sizeof path - 1); /* is there, and too long */
    refused(path, "too long", "////", "511 bytes");
    mem_free(file);
    remove_tree(dir);
}

/* Between finding and loading: the memory is the size it was. */
static void changing_file(void **state) {
    (void)state;
    struct err e = {0};
    struct dataset d;
    char *dir = make_directory();
    write_text(dir, "input.txt", "twelve chars");
    assert_true(dataset_find(&dataset_text_char, dir, 1, &d, &e));
    void *memory = mem_alloc(d.bytes, 1, "a dataset");
    write_text(dir, "input.txt", "twelve chars and more of them");
    assert_false(dataset_load(&d, memory, &e));
    assert_says(&e, "input.txt grew while it was read; start again");
    mem_free(memory);
    remove_tree(dir);
}

/* Which one is taken: plain before packed, the folder itself before its sub-folder. */
static void where_it_is_looked_for(void **state) {
    (void)state;
    static const char *const name[] = {"tinyshakespeare/input.txt.gz", "tinyshakespeare/input.txt", "input.txt.gz",
                                       "input.txt"};
    char *dir = make_directory(), *sub = mem_printf("%s/tinyshakespeare", dir);
    assert_int_equal(mkdir(sub, 0777), 0);
    for (size_t i = 0; i < 4; i++) { /* each hides those before it */
        struct dataset d;
        char *path = mem_printf("%s/%s", dir, name[i]);
        if (i % 2 == 0)
            mem_free(gzip_to(dir, name[i], "once upon a time", 16));
        else
            write_text(dir, name[i], "once upon a time");
        void *memory = load_chars(dir, &d);
        assert_string_equal(d.source, path);
        expect_naive(&d, (const uint8_t *)"once upon a time", 16);
        mem_free(memory);
        mem_free(path);
    }
    mem_free(sub);
    remove_tree(dir);
}

/* -- the real one -------------------------------------------------------------------------------------------------- */

static void real_tiny_shakespeare(void **state) {
    (void)state;
    static const char lines[] =
        "\\n\n \n!\n$\n&\n'\n,\n-\n.\n3\n:\n;\n?\nA\nB\nC\nD\nE\nF\nG\nH\nI\nJ\nK\nL\nM\nN\nO\nP\n"
        "Q\nR\nS\nT\nU\nV\nW\nX\nY\nZ\na\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\nq\nr\n"
        "s\nt\nu\nv\nw\nx\ny\nz\n";
    static const int32_t first[] = {18, 47, 56, 57, 58, 1, 15, 47, 58, 47, 64, 43, 52, 10, 0}; /* First Citizen:\n */
    const char *data = getenv("SPARSETRAIN_DATA");
    char *where = mem_printf("%s/tinyshakespeare/input.txt", data ? data : "build/data");
    struct dataset d;
    const bool there = access(where, F_OK) == 0;
    if (!there) printf("# SKIP real_tiny_shakespeare: no %s\n", where);
    void *memory = there ? load_chars(where, &d) : NULL;
    mem_free(where);
    if (!there) skip();
    assert_int_equal(d.train_text.count, 1003854);
    assert_int_equal(d.valid_text.count, 111540);
    assert_int_equal(d.test_text.count, 0);
    assert_int_equal(d.classes, 65);
    assert_int_equal(d.vocabulary.bytes, sizeof lines - 1);
    assert_memory_equal(d.vocabulary.lines, lines, sizeof lines - 1);
    assert_memory_equal(d.train_text.token, first, sizeof first);
    assert_int_equal(dataset_checksum(&d), 0x1bdb302b); /* as a few lines of Python number the characters */
    mem_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_text_of_edges),
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(characters_of_every_length),
        cmocka_unit_test(made_up_texts),
        cmocka_unit_test(the_split),
        cmocka_unit_test(tightest_bound),
        cmocka_unit_test(attaches),
        cmocka_unit_test(what_is_no_utf8),
        cmocka_unit_test(too_little_text),
        cmocka_unit_test(missing_files),
        cmocka_unit_test(changing_file),
        cmocka_unit_test(where_it_is_looked_for),
        cmocka_unit_test(real_tiny_shakespeare),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
