/* reducer.h: an exchange together with the store of the residual and the selector that it needs. Training, the benches,
 * the library and the tests all open their exchanges with it.
 *
 *        struct reducer_setup setup = {.ops = &exchange_gtopk, .device = &device_cpu};
 *        setup.exchange = (struct exchange_setup){.comm = c, .n = n, .k_max = k};
 *        reducer_open(&r, &setup);
 *        if (!exchange_run(&r.exchange, grad, k, &sum)) ...           // and all else that exchange.h has
 *        reducer_close(&r); */
#ifndef ST_COMM_REDUCER_H
#define ST_COMM_REDUCER_H

#include "comm/exchange.h"
#include "topk/by_slice.h"

struct reducer_setup {
    const struct exchange_ops *ops;
    const struct selector_ops *select;  /* of rows with `selects`; NULL: the row's own */
    uint64_t seed;                      /* of its and the row's random numbers; its options are those of `exchange` */
    const struct selector_slice *slice; /* [slices]: it selects in each by itself (by_slice.h); NULL: in all of n */
    size_t slices;
    const struct device_ops *device; /* where the gradient lies */
    struct exchange_setup exchange;  /* all but store, selector and seed; with groups it runs by layers */
};

/* Must not be moved in memory until close. */
struct reducer {
    struct store store;        /* bare, with device operations alone, where the row has no residual */
    bool keeps;                /* the store has a residual */
    struct selector *selector; /* NULL: the row takes none */
    struct exchange exchange;
};

/* Collective. What exchange_serves refuses dies here, as do sizes out of range. */
void reducer_open(struct reducer *r, const struct reducer_setup *setup);
/* Collective. A reducer that is all zero, or closed already, may be closed. */
void reducer_close(struct reducer *r);

#endif
