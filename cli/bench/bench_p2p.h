/* bench_p2p.h: the verb p2p: what a message costs on this network: alpha and beta of the cost model. */
#ifndef ST_CLI_BENCH_P2P_H
#define ST_CLI_BENCH_P2P_H

#include "base/option.h"

#include "base/error.h"
#include "comm/comm.h"

/* A verb that needs MPI (main.c): the status of the program; with one line in *e it is that of the error. */
int bench_p2p(struct comm *c, int argc, char **argv, struct err *e);

extern const struct option_table p2p_options;

#endif
