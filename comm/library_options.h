/* library_options.h: the options of sparsetrain_open as text. */
#ifndef ST_COMM_LIBRARY_OPTIONS_H
#define ST_COMM_LIBRARY_OPTIONS_H

#include "comm/exchange_options.h"
#include "comm/reducer.h"

struct library_options {
    const struct exchange_ops *ops;
    const struct selector_ops *select; /* NULL: the algorithm's own */
    const struct wire_ops *wire;
    const struct device_ops *device;               /* where gradient and residual lie */
    int select_number, wire_number, device_number; /* as they were chosen */
    double density, density_max;
    size_t bucket_bytes, ranks_per_node; /* 0: the algorithm's own; the nodes there are */
    uint64_t seed;
    struct exchange_own own;
};

/* The i-th algorithm that the library has, which is every row whose replicas do not drift; NULL past the end. */
const struct exchange_ops *library_exchange(size_t i);

/* For exchange_setup.options, as long as *o is there. */
struct option_values library_values(const struct library_options *o);

/* "name=value,..." as sparsetrain.h has it, or NULL. Options that the algorithm has no use for have no effect, so that
 * a loop over algorithms may give them to all. False: one line in *e. */
bool library_options_parse(struct library_options *o, const char *algorithm, const char *text, struct err *e);

#endif
