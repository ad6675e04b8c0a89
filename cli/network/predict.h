/* predict.h: the verb predict: what every exchange costs on a network by the alpha-beta model, without MPI. */
#ifndef ST_CLI_PREDICT_H
#define ST_CLI_PREDICT_H

#include "base/option.h"

int predict(int argc, char **argv); /* a verb without MPI (main.c) */

extern const struct option_table predict_options;

#endif
