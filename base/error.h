/* error.h: the two ways in which the program says that something is wrong.
 *
 * 1. A user's mistake (a bad option, a truncated file), or what the system refuses and all ranks can still
 *    leave in order (a full disk), is returned, never printed, by the layer that finds it: the function fills
 *    a struct err with ONE line (what is wrong, what to do) and returns false. Only cli prints it, once for the
 *    whole job, and every rank exits with err_status: EXIT_USER or EXIT_SYSTEM.
 * 2. A programmer's or system error that leaves nothing to go on with (an MPI call that fails, no memory) ends
 *    the whole job at once: die() prints rank, file and line, and takes every rank down with it.
 *
 *        struct err e = {0};
 *        if (!dataset_load(d, &e)) ...            // the caller's caller decides who prints e.text
 *
 *        if (rc != MPI_SUCCESS) die("MPI_Send to rank %d failed: %s", dest, text);
 */
#ifndef ST_BASE_ERROR_H
#define ST_BASE_ERROR_H

#include <setjmp.h>
#include <stdbool.h>

/* Exit statuses of the program; part of its public interface. */
enum {
    EXIT_DONE = 0,    /* the run completed */
    EXIT_SYSTEM = 1,  /* a system or programmer error: a full disk, no memory, a lost rank */
    EXIT_USER = 2,    /* a user's mistake: options, files, checkpoints */
    EXIT_NUMERIC = 3, /* NaN or Inf in a loss or a gradient */
    EXIT_STOPPED = 4  /* ended by SIGINT/SIGTERM/SIGUSR1/SIGHUP after writing a checkpoint */
};

/* One line for the user, without the program's name and without a newline; empty: no error. */
struct err {
    char text[1024];
    int status;  /* EXIT_USER or EXIT_SYSTEM; 0 as long as there is no error */
    bool intact; /* of a file that cannot be read: that says nothing against what is in it */
};

/* Fills *e (the first error wins: a later call keeps the text) and returns false, so that a function
 * can `return err_set(e, ...)`. err_set: a user's mistake. err_system: what the system refused. err_with: this status.
 */
bool err_set(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool err_system(struct err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool err_with(struct err *e, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Whose error it is that a path could not be opened, made or renamed, by errno: EXIT_USER where the name or the rights
 * are to blame (there is no such file, it may not be written), so that another name would do; else EXIT_SYSTEM (the
 * disk is full or ill, there are too many open files). A file that was opened and then cannot be read or written is
 * always the system's: err_system. */
int err_of_errno(int reason);

/* The exit status that an error stands for. */
int err_status(const struct err *e);

/* Who speaks in messages; comm sets it once after start-up. Before that: rank 0 of 1. */
void error_set_rank(int rank, int size);

/* What die_* calls to end every rank with this exit status; comm sets it. It must not return.
 * NULL (the default): exit(status). */
void error_set_abort(void (*abort_all)(int status));

/* "sparsetrain: rank R: FILE:LINE: message" on stderr, then every rank ends with EXIT_SYSTEM. */
#define die(...) die_at(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void die_at(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "sparsetrain: message" on stderr (one line), then every rank ends with `status`. For errors that one
 * rank meets in the middle of a step, where the others cannot be asked. Ranks above 0 wait some seconds
 * first, so that of several ranks with the same trouble only the lowest is heard. */
_Noreturn void die_status(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* In a library die() and die_status() must not end the caller's process. Between error_catch_begin and error_catch_end
 * they come back, on this thread, to where the catch was set, with their line and status in its e. What was under way
 * then is left as it is: memory that nothing names stays taken, and of what was being changed nothing is used again.
 *
 *        struct error_catch catch;
 *        error_catch_begin(&catch);
 *        if (setjmp(catch.back) == 0) {
 *            ... work that may die ...
 *            error_catch_end(&catch);
 *        } else {
 *            ... catch.e; the catch has ended ...
 *        }
 */
struct error_catch {
    jmp_buf back;
    struct err e;
    struct error_catch *outer;
};
void error_catch_begin(struct error_catch *c);
void error_catch_end(struct error_catch *c);
/* Is there one on this thread? A thread that is started on behalf of such a caller sets one of its own. */
bool error_is_caught(void);

#endif
