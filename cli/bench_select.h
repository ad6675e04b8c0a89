/* bench_select.h: what `sparsetrain bench select` was asked for. */
#ifndef ST_CLI_BENCH_SELECT_H
#define ST_CLI_BENCH_SELECT_H

#include "base/error.h"
#include "topk/selector.h"

enum { SELECT_LIST_MAX = 64, SELECT_REPEAT_MAX = 10000 };

struct select_request {
    double n[SELECT_LIST_MAX], density[SELECT_LIST_MAX];
    size_t n_count, density_count;
    const struct selector_ops *row[SELECT_LIST_MAX];
    size_t row_count;
    size_t repeat; /* timed steps */
    int period;    /* of reuse; 0: its default */
    bool json;
};

extern const char select_usage[];

/* argv[0] is the verb's last word. False: a user's mistake, in e. */
bool select_parse(int argc, char **argv, struct select_request *r, struct err *e);

#endif
