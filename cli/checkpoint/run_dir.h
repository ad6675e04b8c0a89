/* run_dir.h: the directory of a run, which belongs to one process at a time (run_lock.h), and to one run: whatever is
 * to be written, tidied or cut there waits for run_dir_enter. In the order of a run's life; all calls are collective:
 *
 *        run_dir_reserve     before --resume reads: the lock of the directory that it goes on in
 *        run_dir_fits        can the run write there? nothing is written
 *        run_dir_is_done     is there nothing left to do?
 *        run_dir_enter       the directory is there, for all ranks, locked and this run's
 *        run_dir_turn_back   what the run did after the checkpoint that it goes on from does not count any more
 *        run_dir_leave       the lock is given back
 */
#ifndef ST_CLI_RUN_DIR_H
#define ST_CLI_RUN_DIR_H

#include "cli/checkpoint/checkpoint_files.h"
#include "cli/checkpoint/run_lock.h"

struct run;

/* On rank 0 but for the last; zero on the others. */
struct run_dir {
    struct run_lock lock, source; /* of --out; of the directory that --resume reads, where that is another one */
    int made;                     /* so many directories were made: --out and those above it */
    bool vocabulary;              /* this process has made vocabulary.txt there */
    bool elsewhere;               /* on all ranks: --resume reads another directory than --out */
};

/* --resume: the directory of the run that it reads must be nobody else's: where the run goes on in it, from here to
 * run_dir_leave. With --dry-run, and where nothing can be, nothing is written there. */
bool run_dir_reserve(struct run *r, const struct checkpoint *from, struct err *e);

/* Checks that no process holds the lock of this directory, if it exists. Not collective. */
bool run_dir_is_free(const char *out, struct err *e);

/* --out is not there, empty or, with --resume, of the same run, by its log and its checkpoints; a new run is content
 * with one that holds no run. from: the checkpoint that was found; NULL without --resume. */
bool run_dir_fits(struct run *r, const struct checkpoint *from, struct err *e);

/* The log in --out, or in the directory that --resume reads, which is --out then, ends with the summary of the run at
 * this checkpoint, where it is to stop, or where it reached its target: then rank 0 has r->target.reached. */
bool run_dir_is_done(struct run *r, const struct checkpoint *from);

/* Makes --out, locks it unless that is done, and looks again; every rank sees whether it can write there. Nothing
 * happens without --out. */
bool run_dir_enter(struct run *r, const struct checkpoint *from, struct err *e);

/* Checkpoints in --out of later steps than this one go, as their rows are going to: a run that was killed would be
 * resumed from them, and has other rows by then. Those that have been passed by as damaged are set aside: where one can
 * be read again, the run has gone another way by then. */
bool run_dir_turn_back(struct run *r, const struct checkpoint *from, struct err *e);

/* Gives back the lock of the directory that --resume read, if that is not --out: it has been read. */
void run_dir_close_source(struct run *r);

/* abandon: the run has not begun, so what was made here goes. Rank 0 acts. Nothing happens when it was left before. */
void run_dir_leave(struct run *r, bool abandon);

#endif
