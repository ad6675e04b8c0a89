/* cli_run_lock.c: the lock on the directory of a run: of many processes one has it; it goes with its holder, however
 * that ends; it says who holds it; it is taken on nothing but a file of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/checkpoint/run_lock.h"

static char dir[64], file[80], other[80];

static int make_dir(void **state) {
    (void)state;
    strcpy(dir, "/tmp/run-lock-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(file, sizeof file, "%s/lock", dir);
    snprintf(other, sizeof other, "%s/other", dir);
    return 0;
}

static int remove_dir(void **state) {
    (void)state;
    unlink(file);
    unlink(other);
    return rmdir(dir);
}

static bool take(struct run_lock *l, enum run_lock_use use, struct err *e) {
    struct err note = {0};
    e->text[0] = '\0';
    bool good = run_lock_take(l, dir, use, &note, e);
    assert_string_equal(note.text, "");
    assert_true(good == !e->text[0]);
    return good;
}

/* In another process, which tells when it has it, and keeps it until it is killed. */
static pid_t holder(enum run_lock_use use) {
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct run_lock l;
        struct err e;
        if (!take(&l, use, &e) || write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void end(pid_t child) {
    int status;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

static void says_who_and_goes_with_its_holder(void **state) {
    (void)state;
    struct run_lock l;
    struct err e;
    char who[64];
    pid_t child = holder(RUN_LOCK_WRITE);
    snprintf(who, sizeof who, "is in use: process %ld on host ", (long)child);
    assert_false(take(&l, RUN_LOCK_WRITE, &e));
    assert_non_null(strstr(e.text, who));
    assert_non_null(strstr(e.text, dir));
    assert_non_null(strstr(e.text, "Z; wait for it"));
    assert_false(take(&l, RUN_LOCK_READ, &e));
    assert_non_null(strstr(e.text, who));
    end(child);
    assert_int_equal(access(file, F_OK), 0); /* nobody has cleaned up */
    assert_true(take(&l, RUN_LOCK_WRITE, &e));
    run_lock_release(&l);
    assert_int_not_equal(access(file, F_OK), 0);
    run_lock_release(&l);
}

static void readers_do_not_exclude_each_other(void **state) {
    (void)state;
    struct run_lock l;
    struct err e;
    assert_true(take(&l, RUN_LOCK_READ, &e)); /* nothing to hold, and nothing made */
    assert_int_not_equal(access(file, F_OK), 0);
    run_lock_release(&l);
    end(holder(RUN_LOCK_WRITE)); /* leaves the file */
    pid_t child = holder(RUN_LOCK_READ);
    assert_true(take(&l, RUN_LOCK_READ, &e));
    run_lock_release(&l);
    assert_false(take(&l, RUN_LOCK_WRITE, &e));
    assert_non_null(strstr(e.text, "is being read by another sparsetrain"));
    end(child);
    assert_true(take(&l, RUN_LOCK_WRITE, &e));
    run_lock_release(&l);
}

enum { PROCESSES = 6, TURNS = 60 };

/* Each takes it, looks whether it is alone, and gives it back, which removes the file under the feet of the others. */
static void contend(atomic_int *inside, atomic_int *turns) {
    struct run_lock l;
    for (int done = 0; done < TURNS;) {
        struct err e = {0}, note = {0};
        if (!run_lock_take(&l, dir, RUN_LOCK_WRITE, &note, &e)) {
            if (!strstr(e.text, "is in use")) _exit(3);
            continue;
        }
        if (atomic_fetch_add(inside, 1) != 0) _exit(2);
        usleep(500); /* so that another one would meet it */
        if (atomic_load(inside) != 1) _exit(2);
        atomic_fetch_sub(inside, 1);
        atomic_fetch_add(turns, 1);
        run_lock_release(&l);
        done++;
    }
    _exit(0);
}

static void one_has_it(void **state) {
    (void)state;
    atomic_int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child[PROCESSES];
    assert_true(shared != MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        assert_true(child[i] >= 0);
        if (child[i] == 0) contend(shared, shared + 1);
    }
    int status[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) assert_int_equal(waitpid(child[i], &status[i], 0), child[i]);
    for (int i = 0; i < PROCESSES; i++) assert_true(WIFEXITED(status[i]) && WEXITSTATUS(status[i]) == 0);
    assert_int_equal(atomic_load(shared + 1), PROCESSES * TURNS);
    munmap(shared, 4096);
}

static void put(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void has(const char *path, const char *text) {
    char there[64] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(there, sizeof there, f));
    fclose(f);
    assert_string_equal(there, text);
}

static void refuses(const char *why) {
    struct run_lock l;
    struct err e;
    assert_false(take(&l, RUN_LOCK_WRITE, &e));
    assert_non_null(strstr(e.text, why));
    assert_true(take(&l, RUN_LOCK_READ, &e) || strstr(e.text, "symbolic"));
    run_lock_release(&l);
}

/* Whatever lies there under its name stays as it is. */
static void nothing_else_is_written_on(void **state) {
    (void)state;
    put(other, "mine\n");
    assert_int_equal(symlink("other", file), 0);
    refuses("is a symbolic link");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(link(other, file), 0);
    refuses("not a regular file of its own");
    has(other, "mine\n");
    assert_int_equal(unlink(file), 0);
    put(file, "of another program\n");
    refuses("is not a lock of sparsetrain");
    has(file, "of another program\n");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkfifo(file, 0600), 0);
    refuses("not a regular file of its own");
    assert_int_equal(unlink(file), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(says_who_and_goes_with_its_holder, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(readers_do_not_exclude_each_other, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(one_has_it, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(nothing_else_is_written_on, make_dir, remove_dir),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
