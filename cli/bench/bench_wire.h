/* bench_wire.h: the bench of the wire formats. */
#ifndef ST_CLI_BENCH_WIRE_H
#define ST_CLI_BENCH_WIRE_H

#include "base/option.h"

/* `sparsetrain bench wire`: size and speed of every wire format, one thread. argv[0] is the word "wire", options
 * follow. Returns an exit status. */
int bench_wire(int argc, char **argv);

extern const struct option_table wire_options;

#endif
