/* error.c: see error.h. The identity of the speaking rank is the one piece of process-wide state in the
 * program: messages need it where no handle can be passed (out of memory, a failed library call). */
#include "base/error.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int this_rank;
static int rank_count = 1;
static void (*abort_every_rank)(int status);
static _Thread_local struct error_catch *catching;

/* A message may quote a damaged or crafted file: it is kept to one line, without control characters for the terminal.
 */
static void keep_to_one_line(char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f) *text = '?';
}

static void fill(struct err *e, int status, const char *format, va_list args) {
    if (e->text[0]) return;
    vsnprintf(e->text, sizeof e->text, format, args);
    e->status = status;
    keep_to_one_line(e->text);
}

bool err_set(struct err *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fill(e, EXIT_USER, format, args);
    va_end(args);
    return false;
}

bool err_system(struct err *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fill(e, EXIT_SYSTEM, format, args);
    va_end(args);
    return false;
}

bool err_with(struct err *e, int status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fill(e, status, format, args);
    va_end(args);
    return false;
}

int err_of_errno(int reason) {
    switch (reason) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
    case ENOTEMPTY:
    case ELOOP:
    case ENAMETOOLONG:
    case ENXIO:
    case ENODEV:
    case ETXTBSY:
    case EBUSY:
    case EXDEV:
    case EINVAL:
        return EXIT_USER;
    default:
        return EXIT_SYSTEM;
    }
}

int err_status(const struct err *e) {
    return e->status ? e->status : EXIT_USER;
}

void error_set_rank(int rank, int size) {
    this_rank = rank;
    rank_count = size;
}

void error_set_abort(void (*abort_all)(int status)) {
    abort_every_rank = abort_all;
}

/* An error with a common cause (no memory, diverged parameters) reaches all ranks at about the same time. Only the
 * lowest of them should print it: the others wait, and its abort ends them meanwhile by SIGTERM, whose default action
 * is therefore restored here, and no more blocked (cli/signals.h). On a busy machine that abort took more than 0.3 s to
 * arrive, so a rank above 0 waits 1.5 s, and 0.3 s more for each rank below it (10 at most). */
static void wait_for_lower_ranks(void) {
    sigset_t ending;
    signal(SIGTERM, SIG_DFL);
    if (this_rank == 0) return;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &ending, NULL);
    int turns = this_rank < 10 ? this_rank : 10;
    int tenths = 15 + 3 * turns;
    struct timespec pause = {tenths / 10, tenths % 10 * 100000000L};
    nanosleep(&pause, NULL);
}

static _Noreturn void end(int status) {
    fflush(NULL);
    if (abort_every_rank) abort_every_rank(status);
    exit(status);
}

void error_catch_begin(struct error_catch *c) {
    c->e = (struct err){0};
    c->outer = catching;
    catching = c;
}

void error_catch_end(struct error_catch *c) {
    catching = c->outer;
}

bool error_is_caught(void) {
    return catching != NULL;
}

/* To the catch, if there is one. */
static void back_to_catch(int status, const char *text) {
    struct error_catch *c = catching;
    if (!c) return;
    catching = c->outer;
    err_with(&c->e, status, "%s", text);
    longjmp(c->back, 1);
}

void die_at(const char *file, int line, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    keep_to_one_line(text);
    if (catching) {
        char line_of[sizeof text + 128];
        snprintf(line_of, sizeof line_of, "%s:%d: %s", file, line, text);
        back_to_catch(EXIT_SYSTEM, line_of);
    }
    wait_for_lower_ranks();
    if (rank_count > 1)
        fprintf(stderr, "sparsetrain: rank %d: %s:%d: %s\n", this_rank, file, line, text);
    else
        fprintf(stderr, "sparsetrain: %s:%d: %s\n", file, line, text);
    end(EXIT_SYSTEM);
}

void die_status(int status, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    keep_to_one_line(text);
    back_to_catch(status, text);
    wait_for_lower_ranks();
    fprintf(stderr, "sparsetrain: %s\n", text);
    end(status);
}
