/* bench_select.h: `sparsetrain bench select`: accumulation plus selection, next to a plain accumulation and a read of
 * the same array; the rows say how many results were wrong. */
#ifndef ST_CLI_BENCH_SELECT_H
#define ST_CLI_BENCH_SELECT_H

#include "base/option.h"

/* argv[0] is the word "select", options follow. Returns an exit status. */
int bench_select(int argc, char **argv);

extern struct option_table select_options;

#endif
