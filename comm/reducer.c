/* reducer.c: see reducer.h. */
#include "comm/reducer.h"

#include "base/table.h"

static struct selector *open_selector(struct reducer *r, const struct reducer_setup *s) {
    const struct selector_ops *row = s->select;
    const struct selector_settings settings = {
        .options = s->exchange.options, .seed = s->seed, .any_k = s->exchange.any_k};
    if (!row) TABLE_FIND(selectors, s->ops->default_select, row);
    if (s->slice) return selector_open_slices(row, &r->store, s->exchange.k_max, &settings, s->slice, s->slices);
    return selector_open(row, &r->store, s->exchange.k_max, &settings);
}

void reducer_open(struct reducer *r, const struct reducer_setup *s) {
    struct exchange_setup setup = s->exchange;
    *r = (struct reducer){.keeps = exchange_keeps(s->ops, &setup.options, setup.wire)};
    if (r->keeps)
        store_open(&r->store, setup.n, s->device);
    else
        store_open_bare(&r->store, setup.n, s->device);
    setup.store = r->keeps || !device_is_host(s->device) ? &r->store : NULL;
    setup.seed = s->seed;
    setup.selector = r->selector = s->ops->selects ? open_selector(r, s) : NULL;
    if (setup.groups > 0)
        exchange_open_layers(&r->exchange, s->ops, &setup);
    else
        exchange_open(&r->exchange, s->ops, &setup);
}

void reducer_close(struct reducer *r) {
    exchange_close(&r->exchange);
    selector_close(r->selector);
    store_close(&r->store);
    *r = (struct reducer){0};
}
