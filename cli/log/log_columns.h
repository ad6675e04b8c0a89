/* log_columns.h: the columns of a step in run.jsonl: one table says what a number is called and means, how those of the
 * ranks become one, when it is there, and what the summary has of it. From the table come the row of a step, the totals
 * of a run, the summary's means, what is read back of a log (log_recall.c) and the list in docs/run-jsonl.md.
 *
 * A new one: a member of struct row (log.h), who fills it (step_row.c or an observer), a line in log_columns.c, and
 *
 *        build/tests/cli_log_columns --print        // the list for docs/run-jsonl.md
 */
#ifndef ST_CLI_LOG_COLUMNS_H
#define ST_CLI_LOG_COLUMNS_H

#include <stdio.h>

#include "cli/log/log.h"

/* A step of the whole job. */
struct job_step {
    const struct row *rank; /* of each rank: rank[0], rank[stride], ... */
    size_t stride;
    int ranks;
    struct row value, max; /* over the ranks as the columns say; the largest */
};

enum over {
    OVER_ALIKE,   /* the same on all ranks */
    OVER_FIRST,   /* rank 0's, who alone knows */
    OVER_SUM,     /* of all ranks */
    OVER_MEAN,    /* over the ranks */
    OVER_SPREAD,  /* the mean, NAME_mean, and beside it the largest, NAME_max */
    OVER_MAX,     /* the largest */
    OVER_SAMPLES, /* the sum, written over that of the samples */
    OVER_PAIRS,   /* the same over that of the pairs */
    OVERS
};

struct log_column {
    const char *name;
    size_t at; /* in struct row */
    enum over over;
    bool whole;              /* an integer */
    const char *const *part; /* an object: [parts] numbers from `at` on, by these names; NULL: one number */
    size_t parts;
    bool (*when)(const struct run *r, const struct row *first); /* first: rank 0's row; NULL: in every step */
    /* Of what is written otherwise: the member `name`; it is no part of the totals. */
    void (*write)(const struct run *r, const struct job_step *s, const char *name, struct json *j);
    const char *summary; /* what the summary calls its mean over the steps, or (total) their sum; NULL: not there */
    bool total;
    const char *unit, *about, *only; /* for readers; NULL: none */
};

extern const struct log_column log_columns[]; /* with a name of NULL at the end */

/* The numbers of a column in a row: so many; one of them. */
size_t log_column_parts(const struct log_column *c);
double log_column_get(const struct row *row, const struct log_column *c, size_t part);
void log_column_put(struct row *row, const struct log_column *c, size_t part, double value);

/* Fills value and max from the ranks' rows. */
void log_columns_reduce(struct job_step *s);
/* All members of the step's row but its type. */
void log_columns_write(const struct run *r, const struct job_step *s, struct json *j);
/* The summary's members of the columns from `first` to `last`. */
void log_columns_summary(const struct run *r, const char *first, const char *last, struct json *j);
/* Another step, value over the ranks. */
void log_columns_add(struct totals *t, const struct row *value);

/* The table for docs/run-jsonl.md. */
void log_columns_markdown(FILE *out);

#endif
