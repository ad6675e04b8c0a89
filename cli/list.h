/* list.h: `sparsetrain list`: every row of every table, where it comes from, and whether it can be used here. */
#ifndef ST_CLI_LIST_H
#define ST_CLI_LIST_H

#include "base/option.h"

void list_print(void);
void list_print_json(void); /* one line */

extern const struct option_table list_options;

#endif
