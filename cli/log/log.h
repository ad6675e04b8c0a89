/* log.h: what a run leaves behind: run.jsonl (docs/run-jsonl.md) and the lines on the terminal. Every rank records its
 * own rows; every quarter of a second or so they are gathered at rank 0, which writes one row per step for the whole
 * job. The same meeting tells all ranks whether a signal asked for the end, so steps in between cost no message. */
#ifndef ST_CLI_LOG_H
#define ST_CLI_LOG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/progress.h"
#include "cli/task/scores.h"

enum { LOG_SCHEMA = 1, LOG_ROWS = 256 };

struct run;

/* One step on one rank. Doubles only, so that rows travel as one vector. The table of columns (log_columns.h) has a
 * line for each member and says how it is written. */
struct row {
    double step, epoch;
    double loss, samples, correct; /* sums over the rank's images or words, of pairs the masked ones; how many */
    double next_loss, next_correct, pairs; /* the same of next sentences, and of pairs; 0 without */
    double lr, density, k;
    double local_nnz, global_nnz, mass_lost;
    double exempt_nnz;                               /* entries of dense slices that travelled beside those */
    double gradient_norm;                            /* of what --clip-norm clips, before; 0 without */
    double selected, threshold, exact_threshold;     /* NaN where there is none */
    double normal_passes;                            /* where there is an exact_threshold */
    double evaluated, global_evaluated;              /* flags EVALUATED_* (topk/track.h) */
    double global_threshold, global_exact_threshold; /* 0 where there is none */
    double xi, xi_denominator;                       /* of --log-xi, on rank 0; NaN where there is none */
    double hidden_seconds;                           /* of communication, behind backward */
    double bytes_sent, bytes_received, messages_sent, messages_received;
    double seconds, phase[PHASE_COUNT];
};

/* What a run has taken since its start, through all processes that took a part of it; NaN where that is not known. */
struct spent {
    double seconds, elapsed; /* in steps; in all, from each process's first row on [s] */
    double bytes_sent;       /* by a rank: the mean over the ranks */
};

/* Sums over steps, of each column's number over the ranks. */
struct totals {
    double steps, first_seconds; /* how many; seconds of the first, which takes longer (start-up work) */
    struct row all;              /* of this process */
    struct row since_evaluation, since_line;
};

struct run_log {
    FILE *file;     /* rank 0, with --out; else NULL */
    bool made;      /* it was not there before; the same on all ranks */
    bool evaluated; /* it has the evaluation of the checkpoint that the run resumes from; likewise */
    char *pending;  /* rank 0: whole rows that are not in the file yet */
    size_t pending_bytes, pending_room;
    int64_t bytes;   /* of the file's whole rows */
    bool kept;       /* what stays of an older log lies in path with .tmp behind it, to take its place */
    bool unsynced;   /* a sync has failed: the system may have dropped what it then takes for written */
    bool torn;       /* the file has a part of a row behind them */
    bool begun;      /* log_recall: a process that has taken no step yet, */
    int ranks_begun; /* on so many ranks */
    char path[1024];
    struct json json;
    struct row *rows, *all; /* [LOG_ROWS] of this rank; [size][LOG_ROWS] on rank 0 */
    size_t count, interval; /* rows not yet gathered; rows until the next meeting */
    double meeting_time;    /* when the last meeting was [s] */
    struct totals totals;
    int ranks;               /* whose steps the totals are of */
    struct scores start;     /* of the evaluation before the first step; NaN without one */
    struct spent before;     /* rank 0: by the processes before this one, up to the checkpoint */
    struct spent steps;      /* rank 0: by the steps of this one; elapsed is 0 */
    double private_memory;   /* resident bytes of the largest rank without shared memory; set by log_summary */
    double begin, last_line; /* [s] */
    double eval_seconds;     /* that the last evaluation took; 0 before one */
    enum { SHOW_NOTHING, SHOW_LINES, SHOW_BAR } show;
    struct progress bar;
    int terminal;    /* the launcher's, for its width; -1: there is none */
    double patience; /* things that take longer than this [s] are announced; for tests $SPARSETRAIN_PATIENCE, else 3 */
    bool said_left;  /* the expected length of the run has been printed */
    bool said_plain; /* the note that CUDA graphs are not used has been printed */
    struct {
        double begin; /* [s] */
        size_t units, done;
        bool said;
    } evaluation; /* the one under way: so many batches or windows on this rank */
};

/* OUT/run.jsonl, of rank 0, in a directory that is there and locked (run_dir.h), in two steps; a log that is there
 * keeps the rows up to the checkpoint. First all that can go wrong, its header among it, which changes nothing of such
 * a log: */
bool log_prepare(struct run *r, struct err *e);
/* then what was made takes its place. */
bool log_open(struct run *r, struct err *e);
/* The same two of the file, on rank 0 (log_file.c). */
bool log_prepare_file(struct run *r, struct err *e);
bool log_open_file(struct run *r, struct err *e);
/* What was kept of an older log goes. */
void log_drop_kept(struct run_log *l);
/* As far as that can be said without writing: can the log be written, if OUT has one? */
bool log_check(struct run *r, struct err *e);
/* Adds a row that is kept in the log to the totals. If a process ended after its last checkpoint but before its
 * summary, the run that resumes writes the summary and so needs the totals of its rows. */
void log_recall(struct run_log *l, const char *row);
/* Of a run that has steps to take, only what the next evaluation and the terminal say of all since the last one. */
void log_recall_since(struct row *since, const char *row);
/* If the row is the evaluation before the first step, what it says of scores that are not known: a checkpoint keeps
 * that evaluation's losses and accuracy alone. */
void log_recall_start(struct scores *start, const char *row);
void log_close(struct run *r);

/* When a run ends before its first step: what log_prepare has made goes, so that the run can be started again. */
void log_abandon(struct run *r);

/* Takes r->now.row in. At a meeting (or when `meet` is set): writes the rows; *stop: a rank has received a signal, or
 * there is r->trouble, as there is where the rows cannot be written. */
void log_step(struct run *r, bool meet, bool *stop);

/* The loss of an evaluation, on the test set or, where there is none, on the validation text. */
double log_loss_of(const struct run *r, const struct scores *scores);
void log_eval(struct run *r, const struct scores *scores, double seconds);
void log_checkpoint(struct run *r, const char *path, double seconds);
void log_summary(struct run *r, uint64_t parameters_hash);

/* The row of --log-slices (slices.c): for each slice, sums over the ranks of [nonzero, sent], and entries of the sum;
 * NaN where there is none. */
void log_slices(struct run *r, const double *nonzero, const double *sent, const double *global);

/* Rank 0: what the run has taken up to now. */
struct spent log_spent(const struct run *r);

/* Bytes that a dense exchange would send per rank and step: 2 n (P-1)/P words, P those of the totals. */
double log_dense_bytes(const struct run *r);

/* Flushes and fsyncs. Collective; false: it cannot be written. */
bool log_flush(struct run *r, struct err *e);
/* Are there rows that could not be written? The same on all ranks. */
bool log_is_behind(struct run *r);

/* -- the terminal (log_terminal.c), of rank 0 ---------------------------------------------------------------------- */
/* Bar, lines or nothing, as --progress says and the terminal is. */
void log_terminal_open(struct run *r);
void log_terminal_close(struct run *r);

/* One line, not with --quiet. */
void log_say(struct run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One line on standard error, in any case. */
void log_warn(struct run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What there is to see of the step that was just taken in; [s] now. */
void log_progress(struct run *r, double now);
/* An evaluation begins, of so many batches or windows on this rank; one more of them is done. */
void log_evaluation_begin(struct run *r, size_t units);
void log_evaluation_unit(struct run *r);
void log_say_scores(struct run *r, const struct scores *scores, double train_loss);

#endif
