/* costs.h: the verb `costs`: what a step takes on a machine that was measured, out of a table of
 * scripts/measure-costs.sh. */
#ifndef ST_CLI_COSTS_H
#define ST_CLI_COSTS_H

#include "base/option.h"

extern const struct option_table costs_options;

int costs(int argc, char **argv);

#endif
