/* log_rows.h: what the rows of a run.jsonl say, as far as is asked by who goes on with a run. A log may have been
 * damaged or come from somebody else, so that a line may be anything. Knows no ranks. */
#ifndef ST_CLI_LOG_ROWS_H
#define ST_CLI_LOG_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The next line, with its end, to *line, which grows and is the caller's (mem_free), NULL at first, with *size 0;
 * "\r\n", which other systems' editors leave, becomes "\n". Of a line that is longer than any row only the beginning
 * comes, as of one with a NUL in it: neither is whole. False: there is none, or the file cannot be read (ferror). */
bool log_row_next(FILE *f, char **line, size_t *size);

/* A line with its end: an object. A killed process may have left half of one. */
bool log_row_whole(const char *line);
bool log_row_is(const char *row, const char *type);
/* Of a row that has none: 0. */
long long log_row_step(const char *row);

/* The run whose header a log begins with. False: it has none, or is no regular file. */
bool log_rows_run(const char *path, uint64_t *run_id);
/* Does it end with a summary of so many steps, which has this flag ("completed":true)? */
bool log_rows_end(const char *path, size_t steps, const char *flag);

#endif
