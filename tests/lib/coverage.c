/* coverage.c: linked into every program of scripts/coverage.sh: one that ends by _exit, _Exit, abort or MPI_Abort,
 * which ends by one of them, writes what it has counted before it goes, and so does one that SIGTERM ends, as a
 * launcher ends the other ranks of a job; at exit() gcc's own code does. */
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

void __gcov_dump(void);
_Noreturn void _exit(int status);
_Noreturn void _Exit(int status);
_Noreturn void abort(void);

void _exit(int status) {
    __gcov_dump();
    for (;;) syscall(SYS_exit_group, status);
}

void _Exit(int status) {
    _exit(status);
}

void abort(void) {
    __gcov_dump();
    signal(SIGABRT, SIG_DFL);
    raise(SIGABRT);
    for (;;) syscall(SYS_exit_group, 134);
}

static void end_by(int number) {
    __gcov_dump();
    signal(number, SIG_DFL);
    raise(number);
}

/* Before the program says what it does at this signal, if anything. */
__attribute__((constructor)) static void await_end(void) {
    struct sigaction before, ours = {.sa_handler = end_by, .sa_flags = (int)(SA_NODEFER | SA_RESETHAND)};
    if (sigaction(SIGTERM, NULL, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(SIGTERM, &ours, NULL);
}
