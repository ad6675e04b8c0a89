/* data_show.h: `sparsetrain data show`. */
#ifndef ST_CLI_DATA_SHOW_H
#define ST_CLI_DATA_SHOW_H

#include "base/option.h"

/* argv[1...]: the options; returns an exit status. */
int data_show(int argc, char **argv);

extern const struct option_table data_show_options;

#endif
