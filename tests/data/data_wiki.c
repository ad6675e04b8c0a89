/* The dataset wiki: where its files are looked for, what is refused and in which words, and the file in which a packed
 * text is kept: used, damaged in every place, of something else, not to be written. */
#include "tests/lib/data_pairs_support.h"

#include <sys/stat.h>

enum { HEAD = 24 }; /* bytes before the key in the file of a packed text */

static char *cache; /* a folder of its own for each case */

static int open_cache(void **state) {
    (void)state;
    cache = make_directory();
    return setenv("SPARSETRAIN_CACHE", cache, 1);
}

static int close_cache(void **state) {
    (void)state;
    remove_tree(cache);
    return unsetenv("SPARSETRAIN_CACHE");
}

/* Finding or loading fails with a line that says this. */
static void refused(const char *dir, const char *part) {
    struct err e = {0};
    struct dataset d;
    assert_null(load_wiki(dir, 0, &d, &e));
    assert_says(&e, part);
    assert_int_equal(err_status(&e), EXIT_USER);
}

/* -- where files are looked for ------------------------------------------------------------------------------------ */

static void must_load(const char *dir, uint32_t checksum) {
    struct err e = {0};
    struct dataset d;
    void *memory = load_wiki(dir, 0, &d, &e);
    assert_string_equal(e.text, "");
    assert_int_equal(dataset_checksum(&d), checksum);
    mem_free(memory);
}

static void move(const char *dir, const char *commands) {
    char *line = mem_printf("cd '%s' && { %s; }", dir, commands);
    assert_int_equal(system(line), 0);
    mem_free(line);
}

static void every_place(void **state) {
    (void)state;
    need_unicode("every_place");
    struct err e = {0};
    struct dataset d;
    char *dir = make_wiki(), *below = mem_printf("%s/wikitext-2", dir);
    void *memory = load_wiki(dir, 0, &d, &e);
    assert_non_null(memory);
    const uint32_t checksum = dataset_checksum(&d);
    mem_free(memory);
    move(dir, "mkdir bert-base-uncased && mv vocab.txt bert-base-uncased");
    must_load(dir, checksum);
    move(dir, "mkdir wikitext-2 && mv wiki.* wikitext-2");
    must_load(dir, checksum);
    must_load(below, checksum); /* the vocabulary beside it */
    move(dir, "mv bert-base-uncased/vocab.txt wikitext-2");
    must_load(below, checksum);
    move(dir, "gzip wikitext-2/wiki.*");
    must_load(below, checksum);
    move(dir, "cd wikitext-2 && for i in train valid test; do mv wiki.$i.tokens.gz $i.txt.gz; done");
    must_load(below, checksum);
    mem_free(below);
    remove_tree(dir);
}

/* -- what is refused ----------------------------------------------------------------------------------------------- */

static void missing_files(void **state) {
    (void)state;
    need_unicode("missing_files");
    char *dir = make_directory();
    refused(dir, "holds no text");
    write_articles(dir, wiki_name[0], 1, 3, 3, 9);
    refused(dir, "has wiki.train.tokens, but no wiki.test.tokens");
    write_articles(dir, wiki_name[1], 2, 3, 3, 9);
    write_articles(dir, wiki_name[2], 3, 3, 3, 9);
    refused(dir, "has a text, but no vocab.txt");
    refused(dir, "fetch-data.sh bertvocab");
    write_line(dir, "vocab.txt", "[PAD]\na\n\nb\n");
    refused(dir, "vocab.txt: line 3 is empty");
    write_line(dir, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
    refused(dir, "none of its 5 lines is [MASK]");
    write_vocabulary(dir);
    char *path = mem_printf("%s/%s", dir, wiki_name[0]);
    refused(path, "is a file; give the directory");
    mem_free(path);
    remove_tree(dir);
}

static void longer_vocabulary(void **state) {
    (void)state;
    need_unicode("longer_vocabulary");
    char *dir = make_wiki(), *list = mem_alloc(1 << 20, 1, "a vocabulary");
    int at = sprintf(list, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    for (int i = 5; i <= WORDPIECE_MOST; i++) at += sprintf(list + at, "p%d\n", i);
    write_bytes(dir, "vocab.txt", list, (size_t)at);
    refused(dir, "line 65537 is one too many");
    mem_free(list);
    remove_tree(dir);
}

static void bad_texts(void **state) {
    (void)state;
    need_unicode("bad_texts");
    static const struct {
        const char *text, *part;
    } bad[] = {
        {"", "wiki.valid.tokens is empty"},
        {" \n\n", "has no words"},
        {"a b c .\nd e .\n", "has one article alone"},
        {"= a =\n\nb\n= c =\n\nd", "has one article alone"},
        {"= a =\n\nb\n\n= c =\n\nd \xc3\n", "line 7 is not UTF-8"},
    };
    char *dir = make_wiki();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_line(dir, wiki_name[1], bad[i].text);
        refused(dir, "wiki.valid.tokens");
        refused(dir, bad[i].part);
    }
    write_line(dir, wiki_name[1], "= a =\n\n\n= b =\n\n"); /* the least that there can be */
    struct err e = {0};
    struct dataset d;
    void *memory = load_wiki(dir, 0, &d, &e);
    assert_non_null(memory);
    assert_int_equal(d.valid_pairs.count, 2);
    assert_true(d.valid_pairs.pair[0].alone && d.valid_pairs.pair[0].random);
    mem_free(memory);
    remove_tree(dir);
}

static void wrong_lengths(void **state) {
    (void)state;
    need_unicode("wrong_lengths");
    static const int length[] = {-1, 15, 4097};
    char *dir = make_wiki();
    for (size_t i = 0; i < sizeof length / sizeof *length; i++) {
        struct err e = {0};
        struct dataset d;
        assert_null(load_wiki(dir, length[i], &d, &e));
        assert_says(&e, "there can be 16 to 4096");
    }
    remove_tree(dir);
}

/* Articles of seven bytes: one sequence each, more than there is room for. */
static void too_many_sequences(void **state) {
    (void)state;
    need_unicode("too_many_sequences");
    enum { ARTICLES = 1200000 };
    char *dir = make_wiki(), *text = mem_alloc(7 * ARTICLES, 1, "a text");
    for (size_t i = 0; i < ARTICLES; i++) memcpy(text + 7 * i, "= a =\n\n", 7);
    write_bytes(dir, wiki_name[0], text, 7 * ARTICLES);
    refused(dir, "more sequences of 128 pieces than there is room for, 1200000 of the training text");
    mem_free(text);
    remove_tree(dir);
}

static void grown_files(void **state) {
    (void)state;
    need_unicode("grown_files");
    struct err e = {0};
    struct dataset d;
    char *dir = make_wiki();
    assert_true(dataset_find(&dataset_wiki, dir, 1, &d, &e));
    void *memory = mem_alloc(d.bytes, 1, "a dataset");
    write_articles(dir, wiki_name[2], 3, 60, 12, 14);
    assert_false(dataset_load(&d, memory, &e));
    assert_says(&e, "grew while they were read");
    mem_free(memory);
    remove_tree(dir);
}

/* -- the file of a packed text ------------------------------------------------------------------------------------- */

/* The one file in the cache, in fresh memory. */
static char *cached(void) {
    char *path = NULL;
    DIR *folder = opendir(cache);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        assert_null(path);
        path = mem_printf("%s/%s", cache, entry->d_name);
    }
    closedir(folder);
    return path;
}

static void put_file(const char *path, const void *bytes, size_t size) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

/* What is loaded, as it is in memory. */
struct loaded {
    struct dataset d;
    void *memory;
};

static struct loaded load_it(const char *dir) {
    struct loaded l;
    struct err e = {0};
    l.memory = load_wiki(dir, 0, &l.d, &e);
    assert_string_equal(e.text, "");
    return l;
}

/* Another text under the key of the first is taken for it: so the file is what is read. */
static void is_kept(void **state) {
    (void)state;
    need_unicode("is_kept");
    enum { SKIP = HEAD + sizeof(struct pairs_key) };
    size_t size, more;
    char *dir = make_wiki();
    struct loaded first = load_it(dir);
    char *path = cached();
    uint8_t *file = read_whole(path, &size);
    struct pairs_key key;
    memcpy(&key, file + HEAD, sizeof key);
    char *named = pairs_cache_path(&key);
    assert_string_equal(named, path);
    assert_non_null(strstr(path, "/wiki-128-"));
    assert_int_equal(unlink(path), 0);
    write_articles(dir, wiki_name[1], 2, 9, 12, 14); /* another text: another file */
    struct loaded second = load_it(dir);
    char *other = cached();
    assert_string_not_equal(other, path);
    assert_int_not_equal(dataset_checksum(&second.d), dataset_checksum(&first.d));
    uint8_t *longer = read_whole(other, &more);
    pairs_cache_write(&key, longer + SKIP, more - SKIP);
    assert_int_equal(entries_in(cache), 2);
    write_articles(dir, wiki_name[1], 2, 10, 12, 14); /* the first again */
    struct loaded third = load_it(dir);
    assert_int_equal(dataset_checksum(&third.d), dataset_checksum(&second.d));
    assert_false(pairs_cache_read(&key, third.memory, more - SKIP - 1)); /* no room */
    put_file(path, longer, more);                                        /* its key is another */
    must_load(dir, dataset_checksum(&first.d));
    key.seed++;
    assert_false(pairs_cache_read(&key, third.memory, third.d.bytes));
    mem_free(longer), mem_free(other), mem_free(named), mem_free(file), mem_free(path);
    mem_free(first.memory), mem_free(second.memory), mem_free(third.memory);
    remove_tree(dir);
}

/* Every byte of the head and some of the rest changed, cut off anywhere, longer: packed anew, and the file is whole
 * again. */
static void is_damaged(void **state) {
    (void)state;
    need_unicode("is_damaged");
    size_t size, again;
    char *dir = make_wiki();
    struct loaded good = load_it(dir);
    char *path = cached();
    uint8_t *file = read_whole(path, &size), *bad = mem_alloc(size + 1, 1, "a file");
    const size_t head = HEAD + sizeof(struct pairs_key) + PAIRS_LAYOUT_HEADER;
    for (size_t at = 0, next; at <= size; at = next) {
        next = at < head ? at + 1 : at + size / 23 + 1;
        if (at < size && next > size) next = size; /* the last one: a byte too many */
        memcpy(bad, file, size);
        bad[at] ^= at < size ? 0x10 : 0;
        put_file(path, bad, at < size ? size : size + 1);
        for (int cut = 0; cut < 2; cut++) {
            struct loaded l = load_it(dir);
            assert_int_equal(dataset_checksum(&l.d), dataset_checksum(&good.d));
            assert_memory_equal(l.memory, good.memory, size - HEAD - sizeof(struct pairs_key));
            uint8_t *now = read_whole(path, &again);
            assert_int_equal(again, size);
            assert_memory_equal(now, file, size);
            mem_free(now);
            mem_free(l.memory);
            put_file(path, file, at < size ? at : 0);
        }
    }
    assert_int_equal(entries_in(cache), 1);
    mem_free(bad), mem_free(file), mem_free(path), mem_free(good.memory);
    remove_tree(dir);
}

/* A cache that is no folder, one that nothing names, a folder where the file should be. */
static void cannot_be_kept(void **state) {
    (void)state;
    need_unicode("cannot_be_kept");
    char *dir = make_wiki(), *file = mem_printf("%s/vocab.txt", dir);
    struct loaded good = load_it(dir);
    char *path = cached();
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0);
    must_load(dir, dataset_checksum(&good.d));
    setenv("SPARSETRAIN_CACHE", file, 1);
    must_load(dir, dataset_checksum(&good.d));
    unsetenv("SPARSETRAIN_CACHE");
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CACHE_HOME");
    char *homes = home ? mem_printf("%s", home) : NULL, *xdgs = xdg ? mem_printf("%s", xdg) : NULL;
    unsetenv("HOME"), unsetenv("XDG_CACHE_HOME");
    must_load(dir, dataset_checksum(&good.d));
    if (homes) setenv("HOME", homes, 1);
    if (xdgs) setenv("XDG_CACHE_HOME", xdgs, 1);
    assert_int_equal(entries_in(cache), 1);
    mem_free(homes), mem_free(xdgs), mem_free(path), mem_free(file), mem_free(good.memory);
    remove_tree(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_place, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(missing_files, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(longer_vocabulary, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(bad_texts, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(wrong_lengths, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(too_many_sequences, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(grown_files, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(is_kept, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(is_damaged, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(cannot_be_kept, open_cache, close_cache),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
