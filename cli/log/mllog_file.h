/* mllog_file.h: a log in the form of MLPerf's `mllog` (github.com/mlcommons/logging), line by line:
 *
 *        :::MLLOG {"namespace":"","time_ms":T,"event_type":E,"key":K,"value":V,"metadata":{"file":F,"lineno":L,...}}
 *
 * T: milliseconds since 1970. E: POINT_IN_TIME, INTERVAL_START or INTERVAL_END. F, L: where in this source the line
 * comes from. What belongs to one run is known by a line of the key "sparsetrain_run", its identity as the value. Of
 * one process; lines are in the file when a call returns.
 *
 *        struct mllog_file m = {0};
 *        if (!mllog_file_open(&m, "train.mllog", run, &e)) ...
 *        mllog_integer(MLLOG_AT(&m), "seed", 1);
 *        struct json *more = mllog_begin(MLLOG_AT(&m), MLLOG_START, "epoch_start");     // the metadata is open
 *        json_integer(more, "epoch_num", 1);
 *        mllog_end(&m);
 *        if (m.failed.text[0]) ...                                                      // asked when it suits
 *        mllog_file_close(&m);
 *
 * m->file is NULL where there is no log: then nothing but points in time may be asked for, and nothing happens. */
#ifndef ST_CLI_MLLOG_FILE_H
#define ST_CLI_MLLOG_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json.h"

enum mllog_event { MLLOG_POINT, MLLOG_START, MLLOG_STOP };

struct mllog_file {
    FILE *file;
    char path[1024];
    bool made;  /* it was not there before */
    bool begun; /* it has a run_start of this run, and no run_stop behind it */
    long epoch; /* the number of an epoch that has begun there and not ended; 0: none */
    bool eval;  /* so has an evaluation */
    struct json json;
    struct {
        const char *file;
        int line;
    } at;              /* where the next line comes from */
    struct err failed; /* the first thing that could not be written; then nothing is any more */
};

#define MLLOG_AT(m) ((m)->at.file = __FILE__, (m)->at.line = __LINE__, (m))

/* Milliseconds since 1970. */
int64_t mllog_now(void);

/* Can lines be written behind what is there? A regular file, or a stream of the process (/dev/stdout), or nothing. run:
 * of the run that is resumed; 0: a new one, which wants an empty file. False: not; one line. */
bool mllog_file_check(const char *path, uint64_t run, struct err *e);

/* The same; run: this one. resumed: what is there must be this run's, without its end, which only a run that goes on is
 * asked (one that is complete says so, whatever its file has); else nothing is. */
bool mllog_file_open(struct mllog_file *m, const char *path, uint64_t run, bool resumed, struct err *e);
void mllog_file_close(struct mllog_file *m);
/* A file that open has made goes. */
void mllog_file_abandon(struct mllog_file *m);

/* Lines of points in time, with a value and nothing else. */
void mllog_text(struct mllog_file *m, const char *key, const char *value);
void mllog_integer(struct mllog_file *m, const char *key, int64_t value);
void mllog_number(struct mllog_file *m, const char *key, double value);
void mllog_numbers(struct mllog_file *m, const char *key, const double *value, size_t count);
void mllog_flag(struct mllog_file *m, const char *key, bool value);

/* A line without a value, or of this moment in the past, up to where more metadata may stand; its end. */
struct json *mllog_begin(struct mllog_file *m, enum mllog_event event, const char *key);
struct json *mllog_begin_then(struct mllog_file *m, enum mllog_event event, const char *key, int64_t time_ms);
/* One with a number as its value. */
struct json *mllog_begin_number(struct mllog_file *m, enum mllog_event event, const char *key, double value);
void mllog_end(struct mllog_file *m);

#endif
