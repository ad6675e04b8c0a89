/* compare_print.h: what the verb `compare` prints: each configuration, and what is to be said of the runs on stderr. */
#ifndef ST_CLI_COMPARE_PRINT_H
#define ST_CLI_COMPARE_PRINT_H

#include "cli/compare/groups.h"

enum compare_form { COMPARE_TEXT, COMPARE_JSON, COMPARE_CSV };

void compare_print(const struct groups *all, const char *against, enum compare_form form);

#endif
