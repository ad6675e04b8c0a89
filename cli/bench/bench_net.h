/* bench_net.h: how many images a second this machine trains on. */
#ifndef ST_CLI_BENCH_NET_H
#define ST_CLI_BENCH_NET_H

#include "base/option.h"

/* `sparsetrain bench net`: forward, backward and SGD step on random images, one process. argv[0] is the word "net",
 * options follow. Returns an exit status. */
int bench_net(int argc, char **argv);

extern const struct option_table net_options;

#endif
