/* predict_rows.h: rows of `sparsetrain bench --json`, each with what the cost model says. */
#ifndef ST_CLI_PREDICT_ROWS_H
#define ST_CLI_PREDICT_ROWS_H

#include <stdio.h>

#include "base/error.h"
#include "comm/cost/cost.h"

/* Prints a line per row of the file at `path`, as a table or as JSON. A user's mistake: false, one line in *e. */
bool predict_rows(const char *path, const struct network *net, bool json, struct err *e);

#endif
