/* scripts/fetch-data.sh, run as a user runs it: from a mirror made here, and with a curl that fails or brings the wrong
 * bytes. Needs no network. */
#include "tests/lib/data_support.h"

#include <sys/stat.h>
#include <sys/wait.h>

static char *dir; /* of the case: mirror/, dest/, bin/ and what the script said in `said` */
static char said[4096];

static int in_directory(const char *command) {
    char *line = mem_printf("cd '%s' && { %s; }", dir, command);
    int status = system(line);
    mem_free(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs the script; returns its exit status, its stderr is in `said`. */
static int fetch(const char *before, const char *arguments) {
    char *line = mem_printf("D='%s'; %s sh scripts/fetch-data.sh %s >\"$D/out\" 2>\"$D/said\"", dir, before, arguments);
    int status = system(line);
    char *path = mem_printf("%s/said", dir);
    size_t size;
    uint8_t *text = read_whole(path, &size);
    size = size < sizeof said ? size : sizeof said - 1;
    memcpy(said, text, size);
    said[size] = '\0';
    mem_free(text);
    mem_free(path);
    mem_free(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* One line that says this, exit 2. */
static void refused(int status, const char *part) {
    if (status != 2 || !strstr(said, part)) fail_msg("status %d: %s", status, said);
    assert_int_equal(strncmp(said, "fetch-data: ", 12), 0);
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

static int open_case(void **state) {
    (void)state;
    dir = make_directory();
    return 0;
}

static int close_case(void **state) {
    (void)state;
    remove_tree(dir);
    return 0;
}

/* A mirror with small files in place of the real ones. */
static bool make_mirror(void) {
    if (in_directory("command -v xz >/dev/null && command -v md5sum >/dev/null") != 0) return false;
    assert_int_equal(in_directory("mkdir -p mirror src/cifar-10-batches-bin src/ptb src/wikitext-2 src/tinyshakespeare "
                                  "src/bert-base-uncased src/an4/etc src/an4/wav/an4_clstk/fash"),
                     0);
    char *sub = mem_printf("%s/src/cifar-10-batches-bin", dir);
    write_all_records(sub);
    mem_free(sub);
    assert_int_equal(
        in_directory(
            "for i in train valid test; do echo a $i >src/ptb/ptb.$i.txt;"
            "echo b $i >src/wikitext-2/wiki.$i.tokens; done; echo a play >src/tinyshakespeare/input.txt; cd src;"
            "echo c >bert-base-uncased/vocab.txt; echo d >an4/README; echo e >an4/etc/an4_train.fileids;"
            "echo f >an4/wav/an4_clstk/fash/an251-fash-b.raw;"
            "find . -type f -exec md5sum {} + >../mirror/MD5SUMS; for i in *; do tar -cJf ../mirror/$i.tar.xz $i; done;"
            "mv ../mirror/bert-base-uncased.tar.xz ../mirror/bert-vocab.tar.xz"),
        0);
    return true;
}

static void no_xz(const char *name) {
    printf("# SKIP %s: xz or md5sum is not installed\n", name);
    skip();
}

static void from_mirror(void **state) {
    (void)state;
    if (!make_mirror()) no_xz("from_mirror");
    struct err e = {0};
    struct dataset d;
    assert_int_equal(fetch("", "ptb --mirror \"$D/mirror\" --dest \"$D/dest\""), 0);
    assert_int_equal(in_directory("diff -r src/ptb dest/ptb && test ! -e dest/cifar-10-batches-bin"), 0);
    assert_int_equal(fetch("", "tinyshakespeare --mirror \"$D/mirror\" --dest \"$D/play\""), 0);
    assert_int_equal(in_directory("diff -r src/tinyshakespeare play/tinyshakespeare && test ! -e play/ptb"), 0);
    assert_int_equal(fetch("", "all --dest \"$D/dest\" --mirror \"$D/mirror\""), 0);
    assert_int_equal(in_directory("test ! -e dest/wikitext-2 && test ! -e dest/bert-base-uncased"), 0); /* by name */
    assert_int_equal(fetch("", "bertvocab --dest \"$D/dest\" --mirror \"$D/mirror\""), 0);
    assert_int_equal(fetch("", "wikitext2 --dest \"$D/dest\" --mirror \"$D/mirror\""), 0);
    assert_int_equal(in_directory("diff -r src dest"), 0); /* and nothing else is left */
    char *where = mem_printf("%s/dest", dir);
    void *memory = load_set(&dataset_cifar10, where, 1, &d, &e);
    assert_non_null(memory);
    mem_free(memory);
    char *text = mem_printf("%s/wikitext-2", where);
    for (int i = 0; i < 2; i++) { /* the folder itself, and the one above, where ptb comes first */
        memory = load_set(&dataset_ptb, i ? text : where, 1, &d, &e);
        assert_non_null(memory);
        assert_int_equal(d.vocabulary.lines[0], i ? 'b' : 'a');
        mem_free(memory);
    }
    mem_free(text);
    mem_free(where);
    /* Again: nothing to do, so nothing is unpacked; the archives may even be gone. */
    assert_int_equal(in_directory("rm mirror/*.xz"), 0);
    assert_int_equal(fetch("", "all --mirror \"$D/mirror\" --dest \"$D/dest\""), 0);
    assert_int_equal(fetch("", "wikitext2 --mirror \"$D/mirror\" --dest \"$D/dest\""), 0);
    assert_int_equal(fetch("", "bertvocab --mirror \"$D/mirror\" --dest \"$D/dest\""), 0);
}

static void repairs(void **state) {
    (void)state;
    if (!make_mirror()) no_xz("repairs");
    assert_int_equal(fetch("", "all --mirror \"$D/mirror\" --dest \"$D/dest\""), 0);
    assert_int_equal(in_directory("rm dest/ptb/ptb.test.txt dest/an4/wav/an4_clstk/fash/*; echo x "
                                  ">>dest/cifar-10-batches-bin/data_batch_2.bin"),
                     0);
    assert_int_equal(fetch("", "all --mirror \"$D/mirror\" --dest \"$D/dest\""), 0);
    assert_int_equal(in_directory("diff -r src/ptb dest/ptb && diff -r src/an4 dest/an4"), 0);
    assert_int_equal(in_directory("diff -r src/cifar-10-batches-bin dest/cifar-10-batches-bin"), 0);
}

static void bad_mirror(void **state) {
    (void)state;
    if (!make_mirror()) no_xz("bad_mirror");
    assert_int_equal(in_directory("sed -i '/valid/s/^..../0000/' mirror/MD5SUMS"), 0);
    refused(fetch("", "ptb --mirror \"$D/mirror\" --dest \"$D/dest\""), "ptb/ptb.valid.txt");
    assert_int_equal(in_directory("test -z \"$(ls -A dest)\""), 0);
    assert_int_equal(in_directory("head -c 200 mirror/ptb.tar.xz >x; mv x mirror/ptb.tar.xz"), 0);
    refused(fetch("", "ptb --mirror \"$D/mirror\" --dest \"$D/dest\""), "cannot unpack");
    assert_int_equal(in_directory("test -z \"$(ls -A dest)\"; rm mirror/ptb.tar.xz"), 0);
    refused(fetch("", "ptb --mirror \"$D/mirror\" --dest \"$D/dest\""), "has no");
    assert_int_equal(in_directory("echo >mirror/MD5SUMS"), 0);
    refused(fetch("", "ptb --mirror \"$D/mirror\" --dest \"$D/dest\""), "names no files of ptb");
    assert_int_equal(in_directory("rm mirror/MD5SUMS"), 0);
    refused(fetch("", "ptb --mirror \"$D/mirror\" --dest \"$D/dest\""), "has no MD5SUMS");
}

static void bad_arguments(void **state) {
    (void)state;
    refused(fetch("", ""), "usage");
    refused(fetch("", "mnist"), "mnist");
    refused(fetch("", "cifar10 --mirror"), "--mirror needs a directory");
    refused(fetch("", "cifar10 --mirror \"$D/nowhere\""), "MD5SUMS");
    refused(fetch("", "cifar10 ptb"), "one dataset at a time");
    refused(fetch("", "ptb --dest /proc/no/such"), "--dest");
    assert_int_equal(fetch("", "--help"), 0);
}

/* The download without a network: a curl of our own in a copy of the script's tree, which has no mirror beside it. */
static void wrong_download(void **state) {
    (void)state;
    static const char *const run = "unset SPARSETRAIN_DATA; cd \"$D/tree/main\" && PATH=\"$D/bin:$PATH\"";
    assert_int_equal(in_directory("mkdir -p bin tree/main/scripts"), 0);
    char *copy = mem_printf("cp scripts/fetch-data.sh '%s/tree/main/scripts/'", dir);
    assert_int_equal(system(copy), 0);
    mem_free(copy);
    assert_int_equal(in_directory("printf '#!/bin/sh\\nexit 6\\n' >bin/curl && chmod +x bin/curl"), 0);
    refused(fetch(run, "cifar10"), "(exit 6); check the network");
    assert_int_equal(in_directory("test -z \"$(ls -A tree/main/build/data)\""), 0);
    assert_int_equal(
        in_directory("printf '#!/bin/sh\\nwhile [ \"$1\" != -o ]; do shift; done; echo x >\"$2\"\\n' >bin/curl"), 0);
    refused(fetch(run, "cifar10"), "wrong md5 (expected c32a1d4ab5d03f1284b67883e8d87530)");
    refused(fetch(run, "ptb"), "wrong md5");
    refused(fetch(run, "tinyshakespeare"), "wrong md5 (expected 6fb458f1232090904fb40fe944165e91)");
    refused(fetch(run, "an4"), "is not AN4 as it is known here, and was deleted");
    refused(fetch(run, "wikitext2"), "build/data/wikitext-2 by hand, or give --mirror DIR");
    refused(fetch(run, "bertvocab"), "build/data/bert-base-uncased by hand, or give --mirror DIR");
    assert_int_equal(in_directory("test -z \"$(find tree/main/build/data -type f)\""), 0);
    /* Unpacked files that the program can take are left as they are. */
    assert_int_equal(in_directory("mkdir tree/main/build/data/cifar-10-batches-bin"), 0);
    char *sub = mem_printf("%s/tree/main/build/data/cifar-10-batches-bin", dir);
    write_all_records(sub);
    assert_int_equal(fetch(run, "cifar10"), 0);
    mem_free(sub);
    assert_int_equal(in_directory("mkdir tree/main/build/data/wikitext-2 && cd tree/main/build/data/wikitext-2 &&"
                                  "for i in train valid; do echo b >wiki.$i.tokens; done"),
                     0);
    refused(fetch(run, "wikitext2"), "by hand"); /* one of the three is missing */
    assert_int_equal(in_directory("echo b >tree/main/build/data/wikitext-2/wiki.test.tokens"), 0);
    assert_int_equal(fetch(run, "wikitext2"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(from_mirror, open_case, close_case),
        cmocka_unit_test_setup_teardown(repairs, open_case, close_case),
        cmocka_unit_test_setup_teardown(bad_mirror, open_case, close_case),
        cmocka_unit_test_setup_teardown(bad_arguments, open_case, close_case),
        cmocka_unit_test_setup_teardown(wrong_download, open_case, close_case),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
