/* verbs.h: the verbs as a user reads of them: in --help, in the manual page, in the completion of shells. What runs
 * them stands in main.c. */
#ifndef ST_CLI_VERBS_H
#define ST_CLI_VERBS_H

#include "base/option.h"

struct verb_row {
    const char *words, *summary;
    const struct option_table *options; /* NULL: it takes none */
};

extern const struct verb_row verb_table[];
extern const size_t verb_rows;

#endif
