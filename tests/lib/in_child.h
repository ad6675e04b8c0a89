/* in_child.h: what a test says that must end its process: it runs in a forked one. Before anything starts threads or a
 * GPU, for neither follows a fork. */
#ifndef ST_TESTS_IN_CHILD_H
#define ST_TESTS_IN_CHILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IN_CHILD_RETURNED = 99 };

/* Runs f in a child; its exit status (IN_CHILD_RETURNED where f came back, -1 after a signal), and what it wrote to
 * stderr. */
static inline int in_child(void (*f)(void), char *output, size_t size) {
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        f();
        _exit(IN_CHILD_RETURNED);
    }
    close(pipes[1]);
    size_t used = 0;
    for (ssize_t n; used + 1 < size && (n = read(pipes[0], output + used, size - 1 - used)) > 0;) used += (size_t)n;
    output[used] = '\0';
    close(pipes[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
