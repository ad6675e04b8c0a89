/* log_target.h: what a run took to a score, out of the rows of its log: for runs that were not started with --target.
 *
 *        struct log_target t = {.wish = wish};
 *        for (each line of the log) log_target_row(&t, line);
 *        log_target_end(&t);
 *
 * The first evaluation that reaches it counts, as with --target. Seconds and bytes are the sums of the rows of the
 * steps up to there. Where a log lacks some of these, bytes are what the evaluation says of the run (older ones say
 * nothing), and seconds what it says of its process, if one process made the whole log; else unknown. Of a run that was
 * resumed in another directory the log begins in its middle: whether the score was reached before is not in it. */
#ifndef ST_CLI_LOG_TARGET_H
#define ST_CLI_LOG_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/options/target_text.h"

struct log_target {
    struct target_wish wish;
    enum target_split split;           /* of the evaluations that have it; TARGET_EITHER: none has */
    bool reached;                      /* then: */
    double steps, seconds, bytes_sent; /* NaN: unknown */
    double begins;                     /* step from which the log's first process went on; NaN: from none */
    size_t headers, rows;              /* so far; rows: of steps up to the evaluation */
    double row_seconds, row_bytes;     /* sums of those */
};

void log_target_row(struct log_target *t, const char *line);
void log_target_end(struct log_target *t);

#endif
