/* csv.h: files of comma-separated values (RFC 4180, without line breaks inside a field) whose first line names the
 * columns: results/published, and rows that a study keeps.
 *
 *        struct csv t;
 *        if (!csv_open(&t, path, "model,seconds", e)) return false;     // a column that it lacks is a mistake, too
 *        while (csv_next(&t)) use(csv_cell(&t, "model"), csv_number(&t, "seconds"));
 *        return csv_close(&t);                                          // false: it could not be read to its end
 */
#ifndef ST_CLI_CSV_H
#define ST_CLI_CSV_H

#include <stdio.h>

#include "base/error.h"

enum { CSV_LINE = 4096, CSV_COLUMNS = 64 };

struct csv {
    const char *path; /* the caller's */
    FILE *file;
    size_t line; /* lines read, the head among them */
    char head[CSV_LINE], text[CSV_LINE];
    const char *name[CSV_COLUMNS], *cell[CSV_COLUMNS];
    size_t names, cells; /* of these */
    struct err *e;       /* the caller's */
};

/* wanted: columns that must be there, commas between. False: one line in *e, and nothing is left to close. */
bool csv_open(struct csv *t, const char *path, const char *wanted, struct err *e);

/* The next row. False: there is none, or it cannot be read, which csv_close says. */
bool csv_next(struct csv *t);
bool csv_close(struct csv *t);

/* The row's field in this column, until the next row; "" where it has none. As a number; NAN where it is none. */
const char *csv_cell(const struct csv *t, const char *column);
double csv_number(const struct csv *t, const char *column);

/* The number in `column` of the first row that has the text `value` under `name`. False: there is none, one line. */
bool csv_find(const char *path, const char *column, const char *name, const char *value, double *number, struct err *e);

#endif
