/* base_file.c: what is read is a regular file, and what is written takes the place of one, or of nothing. Nothing waits
 * for a FIFO, nothing is written behind somebody's back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/out_file.h"
#include "base/mem.h"

static char top[64], path[160];

static const char *at(const char *name) {
    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

static void fill(const char *name, const char *text) {
    FILE *f = fopen(at(name), "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void holds(const char *name, const char *wanted) {
    char text[64] = "";
    FILE *f = fopen(at(name), "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    assert_string_equal(text, wanted);
}

static void make_socket(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", at(name));
    assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof address), 0);
    close(s);
}

static int make_top(void **state) {
    (void)state;
    snprintf(top, sizeof top, "/tmp/file-XXXXXX");
    if (!mkdtemp(top)) return -1;
    fill("file", "precious");
    assert_int_equal(mkdir(at("folder"), 0777), 0);
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    make_socket("socket");
    char target[160];
    memcpy(target, at("file"), sizeof target);
    assert_int_equal(symlink(target, at("link")), 0);
    assert_int_equal(symlink("link", at("link2")), 0);
    assert_int_equal(symlink("nowhere", at("dangling")), 0);
    assert_int_equal(symlink("loop", at("loop")), 0);
    assert_int_equal(symlink("fifo", at("link-to-fifo")), 0);
    assert_int_equal(symlink("folder", at("link-to-folder")), 0);
    assert_int_equal(symlink("/dev/full", at("link-to-device")), 0);
    assert_int_equal(symlink("/dev/null", at("link-to-null")), 0);
    alarm(60); /* whoever waits for a FIFO ends */
    return 0;
}

static int remove_top(void **state) {
    (void)state;
    char command[96];
    alarm(0);
    snprintf(command, sizeof command, "rm -r '%s'", top);
    return system(command);
}

static int entries(void) {
    int count = 0;
    DIR *d = opendir(top);
    assert_non_null(d);
    while (readdir(d)) count++;
    closedir(d);
    return count;
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static void files_are_read(void **state) {
    (void)state;
    static const char *const names[] = {"file", "link", "link2"};
    for (size_t i = 0; i < 3; i++) {
        const char *why;
        char text[16];
        FILE *f = file_read(at(names[i]), &why);
        assert_non_null(f);
        assert_int_equal(fread(text, 1, sizeof text, f), 8);
        assert_int_equal(fcntl(fileno(f), F_GETFL) & O_NONBLOCK, 0);
        assert_int_equal(fcntl(fileno(f), F_GETFD), FD_CLOEXEC);
        fclose(f);
        f = file_read_stream(path, &why);
        assert_non_null(f);
        fclose(f);
    }
}

static void nothing_else_is_read(void **state) {
    (void)state;
    static const struct {
        const char *name, *why;
        int reason;
    } cases[] = {{"folder", "it is a directory", EISDIR},
                 {"fifo", "it is a FIFO", EINVAL},
                 {"socket", "it is a socket", EINVAL},
                 {"link-to-fifo", "it is a FIFO", EINVAL},
                 {"link-to-folder", "it is a directory", EISDIR},
                 {"link-to-device", "it is a device", EINVAL},
                 {"dangling", "No such file", ENOENT},
                 {"none", "No such file", ENOENT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why = NULL;
        assert_null(file_read(at(cases[i].name), &why));
        assert_int_equal(errno, cases[i].reason);
        if (!why || !strstr(why, cases[i].why)) fail_msg("%s: \"%s\"", cases[i].name, why ? why : "");
        assert_null(file_read_stream(path, &why));
        assert_int_equal(file_read_descriptor(path, &why), -1);
    }
}

/* A pipe that this process holds has a writer, or has ended. */
static void pipes_that_are_open(void **state) {
    (void)state;
    int ends[2];
    const char *why;
    char name[32], text[8];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "hello", 5), 5);
    close(ends[1]);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    assert_null(file_read(name, &why));
    FILE *f = file_read_stream(name, &why);
    assert_non_null(f);
    assert_int_equal(fread(text, 1, sizeof text, f), 5);
    fclose(f);
    close(ends[0]);
}

/* Names of the program's own: a link is neither followed nor in the way of a new file. */
static void own_files(void **state) {
    (void)state;
    static const char *const others[] = {"fifo",         "link",           "link2",  "dangling",
                                         "link-to-fifo", "link-to-device", "socket", "folder"};
    const char *why;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        why = NULL;
        assert_null(file_append(at(others[i]), &why));
        assert_true(why && strstr(why, "it is a "));
    }
    FILE *f = file_append(at("file"), &why);
    assert_non_null(f);
    fputs(" stone", f);
    assert_int_equal(fclose(f), 0);
    holds("file", "precious stone");
    assert_non_null(f = file_append(at("log"), &why));
    assert_int_equal(fclose(f), 0);
    assert_null(file_append(at("none/log"), &why));
    assert_null(file_create(at("none/log"), &why));
    assert_null(file_create(at("folder"), &why));
    for (size_t i = 0; i + 1 < sizeof others / sizeof *others; i++) {
        assert_non_null(f = file_create(at(others[i]), &why));
        fputs("mine", f);
        assert_int_equal(fclose(f), 0);
        holds(others[i], "mine");
    }
    holds("file", "precious stone");
}

/* -- writing ------------------------------------------------------------------------------------------------------- */

static bool write_to(const char *name, const char *text, struct err *e) {
    struct out_file o;
    *e = (struct err){0};
    if (!out_file_check(at(name), "--out", e) || !out_file_open(&o, path, "--out", e)) return false;
    fputs(text, o.file);
    return out_file_close(&o, e);
}

static mode_t mode_of(const char *name) {
    struct stat info;
    assert_int_equal(lstat(at(name), &info), 0);
    return info.st_mode;
}

static void files_are_replaced(void **state) {
    (void)state;
    struct err e;
    int before = entries();
    assert_int_equal(chmod(at("file"), 0640), 0);
    assert_true(write_to("file", "new", &e));
    holds("file", "new");
    assert_int_equal(mode_of("file") & 0777, 0640);
    assert_true(write_to("link", "newer", &e)); /* written through: the link stays */
    assert_true(write_to("link2", "newest", &e));
    assert_true(S_ISLNK(mode_of("link")));
    assert_true(S_ISLNK(mode_of("link2")));
    holds("file", "newest");
    mode_t mask = umask(027);
    assert_true(write_to("fresh", "text", &e));
    umask(mask);
    holds("fresh", "text");
    assert_int_equal(mode_of("fresh") & 0777, 0640);
    assert_int_equal(entries(), before + 1);
}

/* A name of the program's own: a link there is replaced, wherever it leads, and what it leads to stays. */
static void own_names_follow_no_link(void **state) {
    (void)state;
    static const char *const names[] = {"link", "link2", "dangling", "loop", "link-to-folder", "link-to-fifo", "fresh"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct err e = {0};
        struct out_file o;
        assert_true(out_file_replace(&o, at(names[i]), &e));
        fputs("own", o.file);
        assert_true(out_file_close(&o, &e));
        assert_true(S_ISREG(mode_of(names[i])));
        holds(names[i], "own");
    }
    holds("file", "precious");
    assert_true(S_ISDIR(mode_of("folder")) && S_ISFIFO(mode_of("fifo")));
    struct err e = {0};
    struct out_file o;
    assert_false(out_file_replace(&o, at("folder"), &e));
    assert_non_null(strstr(e.text, "it is a directory"));
    e = (struct err){0};
    assert_true(out_file_replace(&o, at("file"), &e)); /* a link that comes in the meantime is replaced, too */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("fresh", path), 0);
    fputs("newer", o.file);
    assert_true(out_file_close(&o, &e));
    assert_true(S_ISREG(mode_of("file")));
    holds("file", "newer");
    holds("fresh", "own");
}

/* What a kill has left is gone when the file is written again: a file, or a link, which is not followed. */
static void nothing_is_left_of_own_names(void **state) {
    (void)state;
    struct err e = {0};
    struct out_file o, killed;
    const int before = entries();
    assert_true(out_file_replace(&killed, at("fresh"), &e));
    fclose(killed.file);
    mem_free(killed.target);
    mem_free(killed.temporary);
    assert_int_equal(entries(), before + 1);
    assert_true(out_file_replace(&o, at("fresh"), &e));
    fputs("whole", o.file);
    assert_true(out_file_close(&o, &e));
    holds("fresh", "whole");
    assert_int_equal(entries(), before + 1);
    assert_int_equal(symlink("file", at("fresh.tmp")), 0);
    assert_true(out_file_replace(&o, at("fresh"), &e));
    fputs("again", o.file);
    assert_true(out_file_close(&o, &e));
    holds("fresh", "again");
    holds("file", "precious");
    assert_int_equal(entries(), before + 1);
}

/* Own names that two write at once: each time one of them is there as a whole. */
static void own_names_may_be_shared(void **state) {
    (void)state;
    struct err e = {0};
    struct out_file one, two;
    const int before = entries();
    char *name = mem_printf("%s", at("link"));
    assert_true(out_file_replace_shared(&one, name, "--out", &e));
    assert_true(out_file_replace_shared(&two, name, "--out", &e));
    fputs("one", one.file);
    assert_true(out_file_close(&one, &e));
    assert_true(S_ISREG(mode_of("link")));
    holds("link", "one");
    fputs("two", two.file);
    assert_true(out_file_close(&two, &e));
    holds("link", "two");
    holds("file", "precious");
    assert_int_equal(entries(), before);
    assert_false(out_file_replace_shared(&one, at("folder"), "--out", &e));
    assert_non_null(strstr(e.text, "it is a directory, not a regular file; give another --out"));
    mem_free(name);
}

static void nothing_else_is_replaced(void **state) {
    (void)state;
    static const struct {
        const char *name, *why;
    } cases[] = {{"folder", "it is a directory"},
                 {"folder/", "names a directory"},
                 {"folder/..", "names a directory"},
                 {"", "names a directory"},
                 {"fifo", "it is a FIFO"},
                 {"socket", "it is a socket"},
                 {"link-to-fifo", "it is a FIFO"},
                 {"link-to-folder", "it is a directory"},
                 {"link-to-device", "it is a device"},
                 {"dangling", "leads nowhere"},
                 {"loop", "Too many levels of symbolic links"},
                 {"none/file", "No such file"},
                 {"file/file", "Not a directory"}};
    int before = entries();
    struct err e;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stat was, is;
        bool there = lstat(at(cases[i].name), &was) == 0;
        struct out_file o;
        assert_false(write_to(cases[i].name, "new", &e));
        if (!strstr(e.text, cases[i].why)) fail_msg("%s: \"%s\"", cases[i].name, e.text);
        assert_non_null(strstr(e.text, "; give another --out"));
        assert_int_equal(err_status(&e), EXIT_USER);
        e = (struct err){0};
        assert_false(out_file_open(&o, path, NULL, &e));
        assert_int_equal(lstat(path, &is) == 0, there);
        if (there) assert_true(was.st_ino == is.st_ino && was.st_mode == is.st_mode);
    }
    assert_false(out_file_check("", "--out", &e));
    holds("file", "precious");
    assert_int_equal(entries(), before);
}

static void a_file_that_may_not_be_written(void **state) {
    (void)state;
    struct err e;
    if (geteuid() == 0) {
        printf("# SKIP a_file_that_may_not_be_written: root may write everything\n");
        skip();
    }
    assert_int_equal(chmod(at("file"), 0444), 0);
    assert_false(write_to("file", "new", &e));
    assert_non_null(strstr(e.text, "Permission denied"));
    holds("file", "precious");
}

static void what_fails_changes_nothing(void **state) {
    (void)state;
    int before = entries();
    struct err e = {0};
    struct out_file o;
    struct rlimit usual, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_true(out_file_open(&o, at("file"), "--out", &e));
    out_file_abandon(&o);
    assert_true(out_file_open(&o, at("fresh"), "--out", &e));
    out_file_abandon(&o);
    out_file_abandon(&o); /* once is enough */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    small = usual;
    small.rlim_cur = 20;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    /* What is more than a buffer fails while it is written, and nothing is left to do in the end. */
    char *more = mem_zalloc(3 * BUFSIZ + 1, 1, "a text"), said[2][sizeof e.text];
    memset(more, 'x', 3 * BUFSIZ);
    bool written = write_to("file", "much more than twenty bytes", &e);
    memcpy(said[0], e.text, sizeof e.text);
    const int status = err_status(&e);
    written |= write_to("file", more, &e);
    memcpy(said[1], e.text, sizeof e.text);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    mem_free(more);
    assert_false(written);
    for (int i = 0; i < 2; i++) assert_non_null(strstr(said[i], "File too large"));
    assert_true(status == EXIT_SYSTEM && err_status(&e) == EXIT_SYSTEM);
    holds("file", "precious");
    assert_int_equal(entries(), before);
}

/* Names that others have made beforehand, and what comes to lie there in the meantime. */
static void a_planted_name_is_not_used(void **state) {
    (void)state;
    char name[64], target[160];
    struct err e = {0};
    struct out_file o;
    memcpy(target, at("file"), sizeof target);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "fresh.tmp.%ld.%d", (long)getpid(), i);
        assert_int_equal(symlink(target, at(name)), 0);
    }
    assert_true(write_to("fresh", "text", &e));
    holds("fresh", "text");
    holds("file", "precious");
    assert_true(out_file_open(&o, at("later"), NULL, &e));
    char later[160];
    memcpy(later, path, sizeof later);
    assert_int_equal(mkfifo(later, 0600), 0);
    o.path = later;
    assert_false(out_file_close(&o, &e));
    assert_non_null(strstr(e.text, "it is a FIFO"));
    assert_true(S_ISFIFO(mode_of("later")));
}

static void nothing_is_kept_in_null(void **state) {
    (void)state;
    struct err e;
    struct stat info;
    struct out_file o;
    assert_true(write_to("link-to-null", "text", &e));
    e = (struct err){0};
    assert_true(out_file_open(&o, "/dev/null", "--out", &e));
    fputs("text", o.file);
    assert_true(out_file_close(&o, &e));
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_true(S_ISLNK(mode_of("link-to-null")));
}

/* What is open is written to from where it stands, and stays open. */
static void descriptors(void **state) {
    (void)state;
    char name[32];
    struct err e = {0};
    struct out_file o;
    int file = open(at("log"), O_WRONLY | O_CREAT, 0666);
    assert_int_equal(write(file, "before ", 7), 7);
    snprintf(name, sizeof name, "/dev/fd/%d", file);
    assert_true(out_file_is_stream(name));
    assert_true(out_file_check(name, "--out", &e) && out_file_open(&o, name, "--out", &e));
    fputs("text", o.file);
    assert_true(out_file_close(&o, &e));
    assert_int_equal(write(file, " after", 6), 6);
    close(file);
    holds("log", "before text after");
    assert_false(out_file_open(&o, name, "--out", &e)); /* which is closed */
    assert_non_null(strstr(e.text, ": it is not open; give another --out"));
    file = open(path, O_RDONLY);
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    e = (struct err){0};
    assert_false(out_file_open(&o, name, "--out", &e));
    assert_non_null(strstr(e.text, "for reading only"));
    close(file);
    assert_true(out_file_is_stream("/dev/stdout") && out_file_is_stream("/dev/stderr"));
    static const char *const none[] = {"/dev/fd/",     "/dev/fd/x",        "/dev/fd/1/",
                                       "/dev/stdout2", "/dev/fd/12345678", "stdout"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) assert_false(out_file_is_stream(none[i]));
}

/* The kernel takes what fits and refuses the rest at the next call. */
static void all_of_it_or_an_error(void **state) {
    (void)state;
    struct rlimit old, small;
    struct stat info;
    int file = open(at("log"), O_WRONLY | O_CREAT, 0666);
    assert_true(file_write_all(file, "", 0) && file_write_all(file, "0123456789", 10));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){.rlim_cur = 16, .rlim_max = old.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    errno = 0;
    bool good = file_write_all(file, "0123456789", 10);
    int reason = errno;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_false(good);
    assert_int_equal(reason, EFBIG);
    assert_int_equal(fstat(file, &info), 0);
    assert_int_equal(info.st_size, 16);
    close(file);
    holds("log", "0123456789012345");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_read, make_top, remove_top),
        cmocka_unit_test_setup_teardown(nothing_else_is_read, make_top, remove_top),
        cmocka_unit_test_setup_teardown(pipes_that_are_open, make_top, remove_top),
        cmocka_unit_test_setup_teardown(own_files, make_top, remove_top),
        cmocka_unit_test_setup_teardown(files_are_replaced, make_top, remove_top),
        cmocka_unit_test_setup_teardown(own_names_follow_no_link, make_top, remove_top),
        cmocka_unit_test_setup_teardown(nothing_is_left_of_own_names, make_top, remove_top),
        cmocka_unit_test_setup_teardown(own_names_may_be_shared, make_top, remove_top),
        cmocka_unit_test_setup_teardown(nothing_else_is_replaced, make_top, remove_top),
        cmocka_unit_test_setup_teardown(a_file_that_may_not_be_written, make_top, remove_top),
        cmocka_unit_test_setup_teardown(what_fails_changes_nothing, make_top, remove_top),
        cmocka_unit_test_setup_teardown(a_planted_name_is_not_used, make_top, remove_top),
        cmocka_unit_test_setup_teardown(nothing_is_kept_in_null, make_top, remove_top),
        cmocka_unit_test_setup_teardown(descriptors, make_top, remove_top),
        cmocka_unit_test_setup_teardown(all_of_it_or_an_error, make_top, remove_top),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
