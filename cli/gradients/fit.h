/* fit.h: `sparsetrain fit RECORDING [--out PROFILE]`: from the selected entries of a recorded run to a model of how the
 * ranks' selections overlap (profile.h). No MPI. */
#ifndef ST_CLI_FIT_H
#define ST_CLI_FIT_H

#include "base/option.h"

int fit(int argc, char **argv);

extern const struct option_table fit_options;

#endif
