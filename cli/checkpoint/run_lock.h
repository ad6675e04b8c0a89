/* run_lock.h: the lock on the directory of a run: one process at a time may write there. It is a lock of the file
 * system's (F_OFD_SETLK, which network file systems pass on; else flock, else F_SETLK) on DIR/lock, so that it goes
 * with the process that holds it, however that ends; the file says who that is. One left behind by a kill is taken like
 * any other.
 *
 *        struct run_lock lock = {0};
 *        struct err note = {0};
 *        if (!run_lock_take(&lock, dir, RUN_LOCK_WRITE, &note, &e)) ...   // somebody else has it: *e says who
 *        if (note.text[0]) ...                                            // a file system without locks: not held
 *        run_lock_release(&lock);                                         // and the file goes
 */
#ifndef ST_CLI_RUN_LOCK_H
#define ST_CLI_RUN_LOCK_H

#include <stdbool.h>

#include "base/error.h"

enum run_lock_use {
    RUN_LOCK_READ, /* nobody may write meanwhile; makes no file (without one nobody writes) */
    RUN_LOCK_WRITE /* nobody else may be there */
};

struct run_lock {
    enum run_lock_use use;
    bool open;     /* the two below are: the lock is held, or the file system has none */
    int dir, file; /* descriptors */
};

/* Takes the lock of a directory that is there, without waiting. False: somebody has it, or DIR/lock is no regular file
 * of ours, or cannot be written. */
bool run_lock_take(struct run_lock *l, const char *dir, enum run_lock_use use, struct err *note, struct err *e);

/* Nothing happens when *l is zero, or released before. */
void run_lock_release(struct run_lock *l);

#endif
