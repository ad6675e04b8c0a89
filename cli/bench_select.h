/* bench_select.h: `sparsetrain bench select`, and what it was asked for (bench_select_options.c). */
#ifndef ST_CLI_BENCH_SELECT_H
#define ST_CLI_BENCH_SELECT_H

#include "base/error.h"
#include "topk/selector.h"

/* Accumulation plus selection, next to a plain accumulation and a read of the same array; the rows say how many
 * results were wrong. argv[0] is the word "select", options follow. Returns an exit status. */
int bench_select(int argc, char **argv);

enum { SELECT_LIST_MAX = 64, SELECT_REPEAT_MAX = 10000 };

struct select_request {
    double n[SELECT_LIST_MAX], density[SELECT_LIST_MAX];
    size_t n_count, density_count;
    const struct selector_ops *row[SELECT_LIST_MAX];
    size_t row_count;
    size_t repeat;   /* timed steps */
    int period;      /* of reuse; 0: its default */
    bool unadjusted; /* --gaussian-adjust off */
    bool json;
    const char *device_name;
    const struct device_ops *device; /* what that is here; bench_select sets it */
};

extern const char select_usage[];

/* argv[0] is the verb's last word. False: a user's mistake, in e. */
bool select_parse(int argc, char **argv, struct select_request *r, struct err *e);

#endif
