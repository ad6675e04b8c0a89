/* config.h: `sparsetrain config`: what train would be set to by these options, without starting it. */
#ifndef ST_CLI_CONFIG_H
#define ST_CLI_CONFIG_H

/* Prints every option that has a value as "name=value", a line each, with the defaults that model and algorithm bring:
 * first what the run computes with, then, behind an empty line, what says only how it is watched and where it goes, and
 * behind another one the names of options that were given and have no effect.
 * A mistake of the user's is told as train would tell it. argv[0] is the verb. */
int config(int argc, char **argv);

#endif
