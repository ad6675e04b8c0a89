/* study_verb.h: the verbs `study`: the scaling study's decisions and tables; and `study memory`: what a simulation
 * needs. */
#ifndef ST_CLI_STUDY_VERB_H
#define ST_CLI_STUDY_VERB_H

#include "base/option.h"

extern const struct option_table study_options, study_memory_options;

int study(int argc, char **argv);
int study_memory(int argc, char **argv);

#endif
