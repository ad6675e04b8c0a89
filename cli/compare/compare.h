/* compare.h: the verb `compare`: what configurations took to their target, over the seeds of each. */
#ifndef ST_CLI_COMPARE_H
#define ST_CLI_COMPARE_H

#include "base/option.h"

extern const struct option_table compare_options;

int compare_verb(int argc, char **argv);

#endif
