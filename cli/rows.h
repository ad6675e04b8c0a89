/* rows.h: the verb `rows`: values out of logs and other files of JSON lines, as a table for scripts and spreadsheets.
 */
#ifndef ST_CLI_ROWS_H
#define ST_CLI_ROWS_H

#include "base/option.h"

extern const struct option_table rows_options;

int rows(int argc, char **argv);

#endif
