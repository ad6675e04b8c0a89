/* Texts: words, lines, blanks and odd bytes, the vocabulary, where the files are looked for, and the real Penn Treebank
 * and WikiText-2 where they are. */
#include "tests/lib/data_text_support.h"

#include <math.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "data/text/text_layout.h"
#include "data/text/text_reader.h"

static void expect_vocabulary(const struct dataset *d, const char *lines, int words) {
    assert_int_equal(d->vocabulary.bytes, strlen(lines));
    assert_memory_equal(d->vocabulary.lines, lines, strlen(lines));
    assert_int_equal(d->classes, words);
}

/* -- words and lines ----------------------------------------------------------------------------------------------- */

static void words_and_lines(void **state) {
    (void)state;
    struct dataset d, other;
    struct err e = {0};
    char *dir = make_directory();
    write_three(dir, " the cat sat \n the dog\n", "the bird sat\n", "a\n\ncat");
    void *memory = load_text(dir, &d);
    assert_int_equal(dataset_ptb.kind, DATA_TEXT);
    assert_string_equal(d.source, dir);
    expect_words(&d, &d.train_text, "the|cat|sat|<eos>|the|dog|<eos>|");
    expect_words(&d, &d.valid_text, "the|<unk>|sat|<eos>|");
    expect_words(&d, &d.test_text, "<unk>|<eos>|<eos>|cat|<eos>|");
    expect_vocabulary(&d, "the\ncat\nsat\n<eos>\ndog\n<unk>\n", 6);
    /* one more than the 2, 1, 2 and 0 times that the, sat, <eos> and <unk> stand in the 7 words of 6 kinds */
    const double loss = -(log(3. / 13) + log(2. / 13) + log(3. / 13) + log(1. / 13)) / 4;
    assert_true(fabs(dataset_unigram_loss(&d) - loss) < 1e-12);
    uint32_t crc = crc32_of(0, d.train_text.token, d.train_text.count * sizeof(int32_t));
    crc = crc32_of(crc, d.valid_text.token, d.valid_text.count * sizeof(int32_t));
    crc = crc32_of(crc, d.test_text.token, d.test_text.count * sizeof(int32_t));
    assert_int_equal(dataset_checksum(&d), crc32_of(crc, d.vocabulary.lines, d.vocabulary.bytes));
    assert_true(dataset_find(&dataset_ptb, dir, 1, &other, &e)); /* a rank that did not load */
    assert_int_equal(other.bytes, d.bytes);
    dataset_attach(&other, memory);
    expect_words(&other, &other.test_text, "<unk>|<eos>|<eos>|cat|<eos>|");
    expect_vocabulary(&other, "the\ncat\nsat\n<eos>\ndog\n<unk>\n", 6);
    assert_int_equal(dataset_checksum(&other), dataset_checksum(&d));
    mem_free(memory);
    remove_tree(dir);
}

/* The same words under every kind of blank and line end. */
static void blanks(void **state) {
    (void)state;
    static const char *const same[] = {"a b\nc\n",         "a b\r\nc\r\n", "a b \nc \n",
                                       "\ta\t \tb\t\nc\n", "a\vb\f\nc",    "  a   b\r\r\n\rc"};
    char *dir = make_directory();
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct dataset d;
        write_three(dir, same[i], "\n", " ");
        void *memory = load_text(dir, &d);
        expect_words(&d, &d.train_text, "a|b|<eos>|c|<eos>|");
        expect_words(&d, &d.valid_text, "<eos>|"); /* an empty line, and one of blanks without its end */
        expect_words(&d, &d.test_text, "<eos>|");
        expect_vocabulary(&d, "a\nb\n<eos>\nc\n<unk>\n", 5);
        mem_free(memory);
    }
    remove_tree(dir);
}

/* <unk> and <eos> in the text are the words that they name; bytes that are not UTF-8 are words like others, those above
 * 127 no blanks. */
static void special_words_and_bytes(void **state) {
    (void)state;
    struct dataset d;
    char *dir = make_directory();
    write_three(dir, "<unk> <eos> x\n", "new\n", "<unk>\n");
    void *memory = load_text(dir, &d);
    expect_words(&d, &d.train_text, "<unk>|<eos>|x|<eos>|");
    expect_words(&d, &d.valid_text, "<unk>|<eos>|");
    expect_vocabulary(&d, "<unk>\n<eos>\nx\n", 3);
    mem_free(memory);
    write_three(dir, "\xff\xfe \x80\xa0\x85 z\xc3\xa4h \x1c\x7f\n", "\xff\n", "z\xc3\n");
    memory = load_text(dir, &d);
    expect_words(&d, &d.train_text, "\xff\xfe|\x80\xa0\x85|z\xc3\xa4h|\x1c\x7f|<eos>|");
    expect_words(&d, &d.valid_text, "<unk>|<eos>|");
    expect_words(&d, &d.test_text, "<unk>|<eos>|");
    mem_free(memory);
    remove_tree(dir);
}

/* The sizes of memory are bounds that such texts reach: each byte a token, each byte a part of the vocabulary. */
static void tightest_bounds(void **state) {
    (void)state;
    static const char *const train[] = {"\n\n\n\n\n", "\n\n\n\na", "a b c d e f g", "abcdefghijklm", "a b"};
    static const size_t tokens[] = {5, 6, 8, 2, 3}, words[] = {2, 3, 9, 3, 4}, bytes[] = {12, 14, 26, 26, 16};
    char *dir = make_directory();
    for (size_t i = 0; i < sizeof train / sizeof *train; i++) {
        struct dataset d;
        write_three(dir, train[i], "a", "b");
        void *memory = load_text(dir, &d);
        assert_int_equal(d.train_text.count, tokens[i]);
        assert_int_equal(d.valid_text.count, 2);
        assert_int_equal(d.classes, words[i]);
        assert_int_equal(d.vocabulary.bytes, bytes[i]);
        assert_true(text_layout_bytes(tokens[i] + 4, bytes[i]) <= d.bytes);
        mem_free(memory);
    }
    remove_tree(dir);
}

/* Words and lines that lie across the ends of the reader's buffer, at every offset; the longest word there can be. */
static void long_texts(void **state) {
    (void)state;
    enum { SIZE = 70000, WORD = 4096 };
    char *dir = make_directory(), *text = mem_alloc(SIZE, 1, "a text");
    for (size_t shift = 0; shift < 9; shift++) {
        struct dataset d;
        memset(text, 'x', shift); /* shifted by a first word */
        for (size_t i = shift; i < SIZE; i++) text[i] = "wort eins\n"[(i - shift) % 10];
        write_bytes(dir, ptb_name[0], text, SIZE);
        write_text(dir, ptb_name[1], "wort\n");
        write_text(dir, ptb_name[2], "eins\n");
        void *memory = load_text(dir, &d);
        size_t rest = (SIZE - shift) % 10, lines = (SIZE - shift) / 10;
        assert_int_equal(d.train_text.count, 3 * lines + (rest ? (rest > 5 ? 3 : 2) : 0));
        for (size_t i = 3; i + 3 < d.train_text.count; i++)
            assert_int_equal(d.train_text.token[i], d.train_text.token[3 + i % 3]);
        /* another first word, where there is one, and a last one that the end of the file cut off */
        assert_int_equal(d.classes, 4 + (shift > 0) + (rest && rest != 4 && rest != 5 && rest != 9));
        mem_free(memory);
    }
    for (size_t length = WORD - 1; length <= WORD; length++) {
        struct dataset d;
        memset(text, 'y', length);
        write_bytes(dir, ptb_name[0], text, length);
        void *memory = load_text(dir, &d);
        assert_int_equal(d.train_text.count, 2);
        assert_int_equal(d.vocabulary.bytes, length + 1 + 12);
        mem_free(memory);
    }
    mem_free(text);
    remove_tree(dir);
}

/* -- the vocabulary ------------------------------------------------------------------------------------------------ */

static void vocabulary_numbers(void **state) {
    (void)state;
    enum { WORDS = 20000 };
    struct vocabulary_index *v = vocabulary_open(INT32_MAX);
    char word[32];
    size_t bytes = 0;
    for (int round = 0; round < 2; round++) /* new, then known */
        for (int i = 0; i < WORDS; i++) {
            int length = snprintf(word, sizeof word, "w%d", i * 7919 % WORDS);
            if (!round) assert_int_equal(vocabulary_find(v, word, (size_t)length), -1);
            assert_int_equal(vocabulary_add(v, word, (size_t)length), i);
            assert_int_equal(vocabulary_find(v, word, (size_t)length), i);
            if (!round) bytes += (size_t)length + 1;
        }
    assert_int_equal(vocabulary_words(v), WORDS);
    assert_int_equal(vocabulary_lines(v).bytes, bytes);
    const char *line = vocabulary_lines(v).lines;
    for (int i = 0; i < WORDS; i++, line = strchr(line, '\n') + 1) {
        int length = snprintf(word, sizeof word, "w%d\n", i * 7919 % WORDS);
        assert_memory_equal(line, word, (size_t)length);
    }
    assert_int_equal(vocabulary_find(v, "w", 1), -1); /* the beginning of a word is another word */
    assert_int_equal(vocabulary_find(v, "w10", 2), vocabulary_find(v, "w1", 2));
    vocabulary_close(v);
    vocabulary_close(NULL);
}

static void vocabulary_limit(void **state) {
    (void)state;
    char *dir = make_directory(), *path = mem_printf("%s/ptb.train.txt", dir);
    int32_t token[64];
    size_t count;
    write_text(dir, "ptb.train.txt", "a b a\nb c d\ne\n");
    for (size_t most = 1; most <= 7; most++) {
        struct vocabulary_index *v = vocabulary_open(most);
        struct err why = {0};
        bool good = text_read(path, 14, v, true, token, &count, &why);
        assert_int_equal(good, most >= 6); /* a b <eos> c d e */
        assert_int_equal(vocabulary_words(v), most < 6 ? most : 6);
        if (most == 3) assert_says(&why, "ptb.train.txt: line 2 begins the word after the 3 different ones");
        if (most == 5) assert_says(&why, "line 3 begins");
        vocabulary_close(v);
    }
    struct vocabulary_index *v = vocabulary_open(2);
    assert_int_equal(vocabulary_add(v, "a", 1), 0);
    assert_int_equal(vocabulary_add(v, "b", 1), 1);
    assert_int_equal(vocabulary_add(v, "c", 1), -1);
    assert_int_equal(vocabulary_add(v, "a", 1), 0);
    assert_int_equal(vocabulary_find(v, "c", 1), -1);
    vocabulary_close(v);
    mem_free(path);
    remove_tree(dir);
}

/* -- where the files are ------------------------------------------------------------------------------------------- */

static void every_name(void **state) {
    (void)state;
    static const char *const name[] = {"ptb.%s.txt", "wiki.%s.tokens", "%s.txt", "%s.tokens"};
    static const char *const folder[] = {"", "/ptb", "/simple-examples/data", "/wikitext-2"};
    static const char *const split[] = {"train", "valid", "test"};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 4; j++)
            for (int packed = 0; packed < 8; packed++) { /* any of the three as .gz */
                char *dir = make_directory(), *sub = mem_printf("%s%s", dir, folder[j]);
                struct dataset d;
                char *parent = mem_printf("%s/simple-examples", dir);
                if (j == 2) assert_int_equal(mkdir(parent, 0777), 0);
                mem_free(parent);
                if (j) assert_int_equal(mkdir(sub, 0777), 0);
                for (int k = 0; k < 3; k++) {
                    char file[64];
                    int length = snprintf(file, sizeof file, name[i], split[k]);
                    if (packed >> k & 1) {
                        snprintf(file + length, sizeof file - (size_t)length, ".gz");
                        mem_free(gzip_to(sub, file, "one two\n", 8));
                    } else {
                        write_text(sub, file, "one two\n");
                    }
                }
                void *memory = load_text(dir, &d);
                assert_string_equal(d.source, sub);
                expect_words(&d, &d.test_text, "one|two|<eos>|");
                mem_free(memory);
                mem_free(sub);
                remove_tree(dir);
            }
}

/* Which one is taken: the folder itself before its sub-folders, the first complete naming, plain before packed. */
static void which_first(void **state) {
    (void)state;
    struct dataset d;
    char *dir = make_directory(), *sub = mem_printf("%s/ptb", dir);
    assert_int_equal(mkdir(sub, 0777), 0);
    write_three(sub, "below below\n", "x\n", "x\n");
    write_text(dir, "train.txt", "lonely\n"); /* not complete, so it does not hide the sub-folder */
    void *memory = load_text(dir, &d);
    expect_words(&d, &d.train_text, "below|below|<eos>|");
    mem_free(memory);
    write_text(dir, "valid.txt", "x\n");
    write_text(dir, "test.txt", "x\n");
    memory = load_text(dir, &d);
    expect_words(&d, &d.train_text, "lonely|<eos>|");
    mem_free(memory);
    write_three(dir, "above\n", "x\n", "x\n");
    mem_free(gzip_to(dir, "ptb.train.txt.gz", "packed\n", 7));
    memory = load_text(dir, &d);
    expect_words(&d, &d.train_text, "above|<eos>|");
    mem_free(memory);
    mem_free(sub);
    remove_tree(dir);
}

/* -- the real ones ------------------------------------------------------------------------------------------------- */

/* Loads DATA/folder or skips the test by its name. */
static void *load_real(const char *test, const char *folder, const char *first_file, struct dataset *d) {
    const char *data = getenv("SPARSETRAIN_DATA");
    char *where = mem_printf("%s/%s", data ? data : "build/data", folder);
    char *file = mem_printf("%s/%s", where, first_file);
    bool there = access(file, F_OK) == 0;
    if (!there) printf("# SKIP %s: no %s\n", test, file);
    mem_free(file);
    void *memory = there ? load_text(where, d) : NULL;
    mem_free(where);
    if (!there) skip();
    return memory;
}

static size_t count_of(const struct text_set *set, int32_t token) {
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) count += set->token[i] == token;
    return count;
}

static void real_ptb(void **state) {
    (void)state;
    struct dataset d;
    void *memory = load_real("real_ptb", "ptb", "ptb.train.txt", &d);
    static const char begins[] = "aer\nbanknote\nberlitz\ncalloway\n";
    const struct text_set first = {d.train_text.token, 30}, valid = {d.valid_text.token, 8};
    assert_int_equal(d.train_text.count, 929589);
    assert_int_equal(d.valid_text.count, 73760);
    assert_int_equal(d.test_text.count, 82430);
    assert_int_equal(d.classes, 10000);
    assert_memory_equal(d.vocabulary.lines, begins, sizeof begins - 1);
    expect_words(&d, &first,
                 "aer|banknote|berlitz|calloway|centrust|cluett|fromstein|gitano|guterman|hydro-quebec|ipo|kia|"
                 "memotec|mlx|nahb|punts|rake|regatta|rubens|sim|snack-food|ssangyong|swapo|wachter|<eos>|pierre|"
                 "<unk>|N|years|old|");
    expect_words(&d, &valid, "consumers|may|want|to|move|their|telephones|a|");
    assert_int_equal(d.train_text.token[24], 24); /* <eos> is word 24, after the first line of 24 new words */
    assert_int_equal(count_of(&d.train_text, 24), 42068);
    assert_int_equal(count_of(&d.valid_text, 24), 3370);
    assert_int_equal(count_of(&d.test_text, 24), 3761);
    assert_int_equal(dataset_checksum(&d), 0x1691afe8); /* as a few lines of Python count and number the words */
    mem_free(memory);
}

static void real_wikitext2(void **state) {
    (void)state;
    struct dataset d;
    void *memory = load_real("real_wikitext2", "wikitext-2", "wiki.train.tokens", &d);
    const struct text_set first = {d.train_text.token, 9}, valid = {d.valid_text.token, 12};
    assert_int_equal(d.train_text.count, 2088628);
    assert_int_equal(d.valid_text.count, 217646);
    assert_int_equal(d.test_text.count, 245569);
    assert_int_equal(d.classes, 33278);
    expect_words(&d, &first, "<eos>|=|Valkyria|Chronicles|III|=|<eos>|<eos>|Senjō|");
    expect_words(&d, &valid, "<eos>|=|Homarus|gammarus|=|<eos>|<eos>|Homarus|gammarus|,|known|as|");
    assert_int_equal(dataset_checksum(&d), 0xa4a05362);
    mem_free(memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_lines),  cmocka_unit_test(blanks),         cmocka_unit_test(special_words_and_bytes),
        cmocka_unit_test(tightest_bounds),  cmocka_unit_test(long_texts),     cmocka_unit_test(vocabulary_numbers),
        cmocka_unit_test(vocabulary_limit), cmocka_unit_test(every_name),     cmocka_unit_test(which_first),
        cmocka_unit_test(real_ptb),         cmocka_unit_test(real_wikitext2),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
