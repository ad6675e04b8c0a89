/* library.h: what an exchange of sparsetrain.h is, for the files behind that header. */
#ifndef ST_COMM_LIBRARY_H
#define ST_COMM_LIBRARY_H

#include "comm/library_options.h"
#include "comm/sparsetrain.h"

struct sparsetrain {
    struct comm *comm;
    struct reducer reducer;
    struct phases phases, hidden;
    struct library_options options;
    const struct device_caller_ops *caller; /* of a device with which the caller works, too; NULL: host memory */
    void *stream;                           /* of that device: what the gradient is written and read on */
    size_t n, k, k_max, *group, groups, slices;
    struct exchange_slice *slice;
    uint64_t steps;
    double density, hidden_seconds, words_bound;
    float *begun; /* the gradient between begin and run, else NULL */
    struct exchange_sum sum;
    struct err broken; /* what broke it; empty: nothing has */
};

#endif
