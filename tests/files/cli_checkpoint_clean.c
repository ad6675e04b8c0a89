/* cli_checkpoint_clean.c: cleaning up removes what this program wrote, and nothing else, wherever links lead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/checkpoint/checkpoint_clean.h"
#include "cli/checkpoint/checkpoint_files.h"
#include "tests/lib/failing_here.h"

static char top[64], run[80], elsewhere[80], path[256];

/* top/NAME in `path`, which is also returned. */
static char *at(const char *name) {
    snprintf(path, sizeof path, "%s/%s", top, name);
    return path;
}

static void touch(const char *name) {
    int file = open(at(name), O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_true(file >= 0);
    close(file);
}

static bool there(const char *name) {
    struct stat info;
    return lstat(at(name), &info) == 0;
}

static void folder(const char *name) {
    assert_int_equal(mkdir(at(name), 0777), 0);
}

static void checkpoint(const char *name) {
    char file[128];
    folder(name);
    const char *const files[] = {"model.ckpt", "rank0000.ckpt", "rank0001.ckpt", "rank123456.ckpt"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(file, sizeof file, "%s/%s", name, files[i]);
        touch(file);
    }
}

static int make_top(void **state) {
    (void)state;
    snprintf(top, sizeof top, "/tmp/clean-XXXXXX");
    if (!mkdtemp(top)) return -1;
    snprintf(run, sizeof run, "%s/run", top);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", top);
    folder("run");
    folder("elsewhere");
    touch("elsewhere/model.ckpt");
    touch("elsewhere/rank0000.ckpt");
    touch("elsewhere/thesis.tex");
    return 0;
}

static int remove_top(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", top);
    return system(command);
}

static void elsewhere_is_whole(void) {
    assert_true(there("elsewhere/model.ckpt"));
    assert_true(there("elsewhere/rank0000.ckpt"));
    assert_true(there("elsewhere/thesis.tex"));
}

static void leftovers_go(void **state) {
    (void)state;
    struct err left = {0};
    checkpoint("run/checkpoint-00000012.tmp");
    checkpoint("run/checkpoint-00000008.old");
    checkpoint("run/checkpoint-123456789012.tmp");
    checkpoint("run/checkpoint-00000012");
    checkpoint_tidy(run, &left);
    assert_string_equal(left.text, "");
    assert_false(there("run/checkpoint-00000012.tmp"));
    assert_false(there("run/checkpoint-00000008.old"));
    assert_false(there("run/checkpoint-123456789012.tmp"));
    assert_true(there("run/checkpoint-00000012/rank0001.ckpt"));
}

static void other_names_stay(void **state) {
    (void)state;
    static const char *const names[] = {"run/checkpoint-best.tmp",
                                        "run/checkpoint-12.tmp",
                                        "run/checkpoint-.tmp",
                                        "run/checkpoint--0000012.old",
                                        "run/checkpoint-00000012.bak",
                                        "run/checkpoint- 0000012.tmp",
                                        "run/checkpoint-00000012.tmp.tmp",
                                        "run/checkpoint-99999999999999999999999999999999999999999999.tmp"};
    struct err left = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) checkpoint(names[i]);
    checkpoint_tidy(run, &left);
    checkpoint_prune(run, INT64_MAX, 0, 0, &left);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char file[128];
        snprintf(file, sizeof file, "%s/model.ckpt", names[i]);
        assert_true(there(file));
    }
}

static void a_link_leads_nowhere(void **state) {
    (void)state;
    struct err left = {0};
    assert_int_equal(symlink(elsewhere, at("run/checkpoint-00000012.tmp")), 0);
    checkpoint_tidy(run, &left);
    elsewhere_is_whole();
    assert_true(there("run/checkpoint-00000012.tmp"));
    assert_non_null(strstr(left.text, "checkpoint-00000012.tmp is left as it is: it is not a directory"));
    checkpoint_remove(at("run/checkpoint-00000012.tmp"), &left);
    elsewhere_is_whole();
}

/* A link in the place of a file goes, not what it leads to. */
static void links_inside_lead_nowhere(void **state) {
    (void)state;
    struct err left = {0};
    char target[128];
    folder("run/checkpoint-00000012.old");
    snprintf(target, sizeof target, "%s/model.ckpt", elsewhere);
    assert_int_equal(symlink(target, at("run/checkpoint-00000012.old/model.ckpt")), 0);
    assert_int_equal(mkfifo(at("run/checkpoint-00000012.old/rank0000.ckpt"), 0600), 0);
    checkpoint_tidy(run, &left);
    assert_string_equal(left.text, "");
    assert_false(there("run/checkpoint-00000012.old"));
    elsewhere_is_whole();
}

static void strangers_are_left(void **state) {
    (void)state;
    static const char *const strangers[] = {"notes.txt", "rank.ckpt", "rank0000.ckpt.bak", "rank00x0.ckpt", ".hidden"};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        struct err left = {0};
        char dir[64], file[128];
        snprintf(dir, sizeof dir, "run/checkpoint-%08zu.tmp", i);
        checkpoint(dir);
        snprintf(file, sizeof file, "%s/%s", dir, strangers[i]);
        touch(file);
        checkpoint_remove(at(dir), &left);
        assert_true(there(file));
        snprintf(file, sizeof file, "%s/model.ckpt", dir);
        assert_true(there(file)); /* all of it */
        if (!strstr(left.text, strangers[i])) fail_msg("\"%s\" does not name %s", left.text, strangers[i]);
    }
}

static void a_folder_by_the_name_of_a_file_is_left(void **state) {
    (void)state;
    struct err left = {0};
    folder("run/checkpoint-00000012.tmp");
    folder("run/checkpoint-00000012.tmp/model.ckpt");
    touch("run/checkpoint-00000012.tmp/model.ckpt/thesis.tex");
    checkpoint_tidy(run, &left);
    assert_true(there("run/checkpoint-00000012.tmp/model.ckpt/thesis.tex"));
    assert_non_null(strstr(left.text, "is left as it is"));
}

static void pruning_keeps_what_is_not_ours(void **state) {
    (void)state;
    struct err left = {0};
    assert_int_equal(symlink(elsewhere, at("run/checkpoint-00000009")), 0);
    checkpoint("run/checkpoint-00000002");
    checkpoint("run/checkpoint-00000004");
    touch("run/checkpoint-00000004/notes.txt");
    checkpoint("run/checkpoint-00000006");
    checkpoint("run/checkpoint-00000008");
    checkpoint_prune(run, INT64_MAX, 1, 0, &left);
    assert_true(there("run/checkpoint-00000009")); /* and it does not count as the one that is kept */
    assert_true(there("run/checkpoint-00000008/model.ckpt"));
    assert_false(there("run/checkpoint-00000006"));
    assert_true(there("run/checkpoint-00000004/model.ckpt"));
    assert_true(there("run/checkpoint-00000004/notes.txt"));
    assert_false(there("run/checkpoint-00000004.old"));
    assert_false(there("run/checkpoint-00000002"));
    assert_non_null(strstr(left.text, "notes.txt"));
    elsewhere_is_whole();
}

/* The directory of the run itself may be reached through a link. */
static void a_run_behind_a_link(void **state) {
    (void)state;
    struct err left = {0};
    checkpoint("run/checkpoint-00000002");
    checkpoint("run/checkpoint-00000004");
    checkpoint("run/checkpoint-00000005.tmp");
    assert_int_equal(symlink(run, at("link")), 0);
    char dir[sizeof path];
    memcpy(dir, path, sizeof path);
    checkpoint_tidy(dir, &left);
    checkpoint_prune(dir, INT64_MAX, 1, 0, &left);
    assert_string_equal(left.text, "");
    assert_false(there("run/checkpoint-00000002"));
    assert_false(there("run/checkpoint-00000005.tmp"));
    assert_true(there("run/checkpoint-00000004/model.ckpt"));
}

/* What a network file system keeps of a file that somebody has open goes by itself; its directory stays until then. */
static void files_that_somebody_has_open(void **state) {
    (void)state;
    struct err left = {0};
    checkpoint("run/checkpoint-00000012.tmp");
    touch("run/checkpoint-00000012.tmp/.nfs000000000000abcd00000001");
    checkpoint_tidy(run, &left);
    assert_string_equal(left.text, "");
    assert_false(there("run/checkpoint-00000012.tmp/model.ckpt"));
    assert_true(there("run/checkpoint-00000012.tmp/.nfs000000000000abcd00000001"));
}

/* Calls that fail leave everything for the next time, and nothing but what is complete under a checkpoint's name. */
static void what_fails_is_left(void **state) {
    (void)state;
    struct err left = {0};
    checkpoint("run/checkpoint-00000012.tmp");
    checkpoint("run/checkpoint-00000004");
    checkpoint("run/checkpoint-00000008");
    fails_here("fdopendir", 1, ENOMEM);
    checkpoint_tidy(run, &left);
    assert_false(fails_left());
    assert_true(there("run/checkpoint-00000012.tmp/rank0001.ckpt"));
    assert_non_null(strstr(left.text, "12.tmp is left as it is: it cannot be read: "));
    left = (struct err){0};
    fails_here("rename", 1, EIO);
    checkpoint_prune(run, INT64_MAX, 1, 0, &left);
    assert_false(fails_left());
    assert_true(there("run/checkpoint-00000004/model.ckpt"));
    assert_non_null(strstr(left.text, "04 is left as it is: it cannot be renamed: "));
    left = (struct err){0};
    checkpoint_prune(run, INT64_MAX, 1, 0, &left);
    checkpoint_tidy(run, &left);
    assert_false(there("run/checkpoint-00000004"));
    assert_false(there("run/checkpoint-00000012.tmp"));
    assert_true(there("run/checkpoint-00000008/model.ckpt"));
    checkpoint_tidy("/nonexistent", &left);
    checkpoint_prune("/nonexistent", INT64_MAX, 1, 0, &left);
    assert_string_equal(left.text, "");
}

static void those_of_later_steps_are_discarded(void **state) {
    (void)state;
    struct err left = {0};
    for (int step = 2; step <= 8; step += 2) {
        char name[64];
        snprintf(name, sizeof name, "run/checkpoint-%08d", step);
        checkpoint(name);
    }
    touch("run/checkpoint-00000006/notes");
    assert_false(checkpoint_discard(run, 2, &left)); /* it holds more than ours: none goes */
    assert_non_null(strstr(left.text, "checkpoint-00000006 is left as it is"));
    assert_true(there("run/checkpoint-00000004/model.ckpt") && there("run/checkpoint-00000008/model.ckpt"));
    left = (struct err){0};
    assert_int_equal(unlink(at("run/checkpoint-00000006/notes")), 0);
    checkpoint("run/checkpoint-00000006.old"); /* of a kill */
    assert_int_equal(symlink("../elsewhere", at("run/checkpoint-00000010")), 0);
    assert_false(checkpoint_discard(run, 2, &left));
    assert_non_null(strstr(left.text, "checkpoint-00000010 is left as it is: it is not a directory"));
    assert_int_equal(unlink(at("run/checkpoint-00000010")), 0);
    left = (struct err){0};
    fails_here("rename", 2, EIO);
    assert_false(checkpoint_discard(run, 2, &left));
    assert_false(fails_left());
    assert_non_null(strstr(left.text, "checkpoint-00000006 is left as it is: it cannot be renamed"));
    left = (struct err){0};
    assert_true(checkpoint_discard(run, 2, &left));
    assert_int_equal(checkpoint_newest(run, INT64_MAX), 2);
    assert_false(there("run/checkpoint-00000006.old"));
}

/* Whatever they are, under a name that is no checkpoint's; each goes when a run has come to its step again. */
static void damaged_ones_are_set_aside(void **state) {
    (void)state;
    struct err left = {0}, e = {0};
    checkpoint("run/checkpoint-00000004");
    checkpoint("run/checkpoint-00000008");
    checkpoint("run/checkpoint-00000008.damaged"); /* of another time */
    touch("run/checkpoint-00000012");
    checkpoint("run/checkpoint-00000016");
    touch("run/checkpoint-00000016/notes");
    assert_true(checkpoint_set_aside(run, 4, &e));
    assert_int_equal(checkpoint_newest(run, INT64_MAX), 4);
    assert_true(there("run/checkpoint-00000008.damaged/model.ckpt"));
    assert_true(there("run/checkpoint-00000012.damaged"));
    assert_true(there("run/checkpoint-00000016.damaged/notes"));
    checkpoint_tidy(run, &left);
    checkpoint_tidy_damaged(run, 7, &left);
    assert_true(there("run/checkpoint-00000008.damaged/model.ckpt"));
    assert_string_equal(left.text, "");
    checkpoint_tidy_damaged(run, 8, &left);
    assert_false(there("run/checkpoint-00000008.damaged"));
    checkpoint_tidy_damaged(run, 12, &left);
    assert_true(there("run/checkpoint-00000012.damaged"));
    assert_non_null(strstr(left.text, "checkpoint-00000012.damaged is left as it is: it is not a directory"));
    touch("run/checkpoint-00000016");
    assert_false(checkpoint_set_aside(run, 4, &e)); /* its name is taken by what is not ours */
    assert_non_null(strstr(e.text, "checkpoint-00000016, which is damaged, to "));
    assert_true(there("run/checkpoint-00000016"));
}

static void only_ours_is_replaced(void **state) {
    (void)state;
    struct err left = {0};
    char name[160];
    checkpoint("run/checkpoint-00000004");
    snprintf(name, sizeof name, "%s/checkpoint-00000004", run);
    assert_true(checkpoint_is_ours(name, &left));
    fails_here("readdir", 2, EIO);
    assert_false(checkpoint_is_ours(name, &left));
    assert_false(fails_left());
    assert_non_null(strstr(left.text, "it cannot be read: Input/output error"));
    left = (struct err){0};
    touch("run/checkpoint-00000004/notes");
    assert_false(checkpoint_is_ours(name, &left));
    left = (struct err){0};
    snprintf(name, sizeof name, "%s/checkpoint-00000008", run);
    assert_true(checkpoint_is_ours(name, &left)); /* there is none */
    touch("run/checkpoint-00000008");
    assert_false(checkpoint_is_ours(name, &left));
}

/* -- a new one in the place of another ----------------------------------------------------------------------------- */

static bool replaces(const char *what, struct err *e) {
    char from[160], to[160], aside[160];
    snprintf(from, sizeof from, "%s/checkpoint-00000012.tmp", run);
    snprintf(to, sizeof to, "%s/%s", run, what);
    snprintf(aside, sizeof aside, "%s/checkpoint-00000012.old", run);
    e->text[0] = '\0';
    return checkpoint_replace(from, to, aside, e);
}

static void a_name_is_taken(void **state) {
    (void)state;
    struct err e = {0};
    checkpoint("run/checkpoint-00000012.tmp");
    assert_true(replaces("checkpoint-00000012", &e));
    assert_true(there("run/checkpoint-00000012/model.ckpt"));
    assert_false(there("run/checkpoint-00000012.tmp"));
    folder("run/checkpoint-00000012.tmp");
    touch("run/checkpoint-00000012.tmp/model.ckpt");
    assert_true(replaces("checkpoint-00000012", &e)); /* exchanged */
    assert_false(there("run/checkpoint-00000012/rank0000.ckpt"));
    assert_true(there("run/checkpoint-00000012.tmp/rank0000.ckpt"));
}

/* A file system that cannot exchange two names: in two steps, and where one fails all is as before. */
static void a_name_is_taken_in_two_steps(void **state) {
    (void)state;
    struct err e = {0};
    checkpoint("run/checkpoint-00000012.tmp");
    folder("run/checkpoint-00000012");
    touch("run/checkpoint-00000012/of-the-old-one");
    for (int failing = 2; failing <= 3; failing++) {
        fails_here("renameat2", 1, EINVAL);
        fails_here("rename", failing, EIO);
        assert_false(replaces("checkpoint-00000012", &e));
        assert_false(fails_left());
        assert_non_null(strstr(e.text, "Input/output error"));
        assert_true(there("run/checkpoint-00000012/of-the-old-one"));
        assert_true(there("run/checkpoint-00000012.tmp/model.ckpt"));
        assert_false(there("run/checkpoint-00000012.old"));
    }
    fails_here("renameat2", 1, EINVAL);
    assert_true(replaces("checkpoint-00000012", &e));
    assert_true(there("run/checkpoint-00000012/model.ckpt"));
    assert_true(there("run/checkpoint-00000012.old/of-the-old-one"));
    fails_here("rename", 1, EIO);
    assert_false(replaces("checkpoint-00000016", &e));
    assert_false(fails_left());
    assert_non_null(strstr(e.text, "cannot rename"));
}

/* -- found ------------------------------------------------------------------------------------------------------- */

static void not_located(const char *dir, const char *why) {
    struct checkpoint found = {0};
    struct err e = {0};
    assert_false(checkpoint_locate(&checkpoint_resume, dir, &found, &e));
    if (!strstr(e.text, why)) fail_msg("%s: \"%s\" does not say \"%s\"", dir, e.text, why);
}

static void located(void **state) {
    (void)state;
    struct checkpoint found = {0};
    struct err e = {0};
    char whole[256], longer[1024];
    checkpoint("run/checkpoint-00000012");
    checkpoint("run/checkpoint-00000004");
    assert_true(checkpoint_locate(&checkpoint_resume, run, &found, &e));
    assert_string_equal(found.path, at("run/checkpoint-00000012"));
    assert_string_equal(found.run_dir, run);
    assert_false(found.named);
    snprintf(whole, sizeof whole, "%s", at("run/checkpoint-00000004"));
    assert_true(checkpoint_locate(&checkpoint_resume, whole, &found, &e));
    assert_true(found.named);
    assert_string_equal(found.path, whole);
    assert_string_equal(found.run_dir, run);
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    not_located(longer, "the name of the directory is too long");
    not_located("/nonexistent/run", "No such file or directory");
    folder("empty");
    snprintf(whole, sizeof whole, "%s", at("empty"));
    not_located(whole, "there is no checkpoint in it; start the run again without --resume");
    assert_int_equal(checkpoint_newest("/nonexistent", INT64_MAX), -1);
}

/* A damaged one names the one before it, wherever there is one. */
static void the_one_before_is_suggested(void **state) {
    (void)state;
    struct container c;
    struct err e = {0};
    checkpoint("run/checkpoint-00000012"); /* of empty files */
    struct checkpoint found = {.use = &checkpoint_export};
    assert_true(checkpoint_locate(&checkpoint_export, run, &found, &e));
    assert_false(checkpoint_open(&found, "model.ckpt", &c, &e));
    assert_non_null(strstr(e.text, "truncated"));
    assert_null(strstr(e.text, "the one before it"));
    checkpoint("run/checkpoint-00000004");
    e.text[0] = '\0';
    assert_false(checkpoint_read(&found, "rank0000.ckpt", &c, &e));
    assert_non_null(strstr(e.text, "; the one before it: export "));
    assert_non_null(strstr(e.text, at("run/checkpoint-00000004")));
    const struct section one = {"numbers", "12345678", 8};
    char other[8];
    assert_int_equal(unlink(at("run/checkpoint-00000012/model.ckpt")), 0);
    assert_true(container_write(path, &one, 1, &e));
    e.text[0] = '\0';
    assert_true(checkpoint_open(&found, "model.ckpt", &c, &e));
    assert_true(checkpoint_get(&found, &c, "numbers", other, 8, &e));
    assert_string_equal(e.text, "");
    assert_false(checkpoint_get(&found, &c, "others", other, 8, &e));
    assert_non_null(strstr(e.text, "has no section others; the one before it: export "));
    container_close(&c);
    static const char *const first[] = {"without-a-folder", "run/checkpoint-00000000"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(found.path, sizeof found.path, "%s", first[i]);
        e.text[0] = '\0';
        checkpoint_suggest(&found, &e);
        assert_string_equal(e.text, "");
    }
}

static void steps_of_names(void **state) {
    (void)state;
    assert_int_equal(checkpoint_step_of("checkpoint-00000012"), 12);
    assert_int_equal(checkpoint_step_of("checkpoint-123456789"), 123456789);
    static const char *const none[] = {
        "checkpoint-12",        "checkpoint-",         "checkpoint-+0000012",
        "checkpoint-000000012", "checkpoint--0000012", "checkpoint-00000012x",
        "checkpoint",           "model.ckpt",          "checkpoint-99999999999999999999"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (checkpoint_step_of(none[i]) != -1) fail_msg("%s is taken for a checkpoint", none[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(leftovers_go, make_top, remove_top),
        cmocka_unit_test_setup_teardown(other_names_stay, make_top, remove_top),
        cmocka_unit_test_setup_teardown(a_link_leads_nowhere, make_top, remove_top),
        cmocka_unit_test_setup_teardown(links_inside_lead_nowhere, make_top, remove_top),
        cmocka_unit_test_setup_teardown(strangers_are_left, make_top, remove_top),
        cmocka_unit_test_setup_teardown(a_folder_by_the_name_of_a_file_is_left, make_top, remove_top),
        cmocka_unit_test_setup_teardown(pruning_keeps_what_is_not_ours, make_top, remove_top),
        cmocka_unit_test_setup_teardown(a_run_behind_a_link, make_top, remove_top),
        cmocka_unit_test_setup_teardown(files_that_somebody_has_open, make_top, remove_top),
        cmocka_unit_test_setup_teardown(what_fails_is_left, make_top, remove_top),
        cmocka_unit_test_setup_teardown(those_of_later_steps_are_discarded, make_top, remove_top),
        cmocka_unit_test_setup_teardown(damaged_ones_are_set_aside, make_top, remove_top),
        cmocka_unit_test_setup_teardown(only_ours_is_replaced, make_top, remove_top),
        cmocka_unit_test_setup_teardown(a_name_is_taken, make_top, remove_top),
        cmocka_unit_test_setup_teardown(a_name_is_taken_in_two_steps, make_top, remove_top),
        cmocka_unit_test_setup_teardown(located, make_top, remove_top),
        cmocka_unit_test_setup_teardown(the_one_before_is_suggested, make_top, remove_top),
        cmocka_unit_test(steps_of_names),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
