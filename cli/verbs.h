/* verbs.h: the verbs as a user reads of them: in --help, in the manual page, in the completion of shells. What runs
 * them stands in main.c. */
#ifndef ST_CLI_VERBS_H
#define ST_CLI_VERBS_H

#include <stddef.h>

struct verb_row {
    const char *words, *summary;
    /* What its own --help says: every option begins a line of it, as "  --name ARGUMENT  what it does". NULL: there is
     * none; of train and config, whose options are option_table, and of verbs that take no options. */
    const char *usage;
};

extern const struct verb_row verb_table[];
extern const size_t verb_rows;

#endif
