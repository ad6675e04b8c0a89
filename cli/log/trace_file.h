/* trace_file.h: --trace FILE: when each phase of each rank began and ended, as a Chrome trace (chrome://tracing,
 * https://ui.perfetto.dev): one process per rank, one row of phases per thread.
 *
 *        struct trace_file t;
 *        if (!trace_file_open(&t, comm, path, &e)) ...          // before the run: can FILE be written?
 *        phases.trace = trace_file_thread(&t, 0);               // from here on phase_enter records
 *        ...
 *        phases.trace = NULL;
 *        if (!trace_file_write(&t, &note, &e)) ...              // rank 0 gathers and writes
 *        trace_file_close(&t);
 *
 * All calls but trace_file_thread are collective; the answer is the same on every rank. Memory is bounded: what comes
 * after the last place of a thread is dropped and counted, in the file and in note.text. What FILE may be
 * and how it is replaced: base/files/out_file.h. Clocks of other nodes are set right by a few messages to
 * and fro, at the beginning and at the end: their drift in between is taken for steady.
 */
#ifndef ST_CLI_TRACE_FILE_H
#define ST_CLI_TRACE_FILE_H

#include "base/trace.h"
#include "comm/comm.h"

/* Thread 0 is the main one; thread 1 the one that exchanges during backward. */
enum { TRACE_THREADS = 2, TRACE_EVENTS = 1 << 17 /* of a thread: 3 MiB */ };

struct trace_file {
    struct comm *comm;
    char path[1024];
    struct trace thread[TRACE_THREADS];
    double began;          /* clock_now of this rank at open [s] */
    double offset_at[2];   /* this rank's clock minus rank 0's, when it was measured, and then at the end [s] */
    double measured_at[2]; /* clock_now of this rank at these two times [s] */
    bool open;
};

/* False: FILE cannot be written. */
bool trace_file_open(struct trace_file *t, struct comm *c, const char *path, struct err *e);
/* Like trace_file_open with room for so many events of each thread. */
bool trace_file_open_sized(struct trace_file *t, struct comm *c, const char *path, size_t events, struct err *e);

/* Where the phases of thread 0 or 1 of this rank are recorded. NULL when t is not open. */
struct trace *trace_file_thread(struct trace_file *t, int thread);

/* note: one line for the user where events were dropped, else empty; the same on every rank. */
bool trace_file_write(struct trace_file *t, struct err *note, struct err *e);

/* Nothing happens when t is zero. */
void trace_file_close(struct trace_file *t);

#endif
