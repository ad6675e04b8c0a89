/* exchange_open.c: opening what a gradient goes through: residual, selector, momentum, exchange, as the options say. */
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "cli/exempt_option.h"
#include "cli/run.h"

/* --overlap layers: groups of whole slices of at least so many bytes, counted from the end, where backward begins. */
static void make_groups(struct run *r) {
    const struct arena *a = &r->net->arena;
    size_t least = (size_t)r->options.overlap_bytes / sizeof(float), end = a->n;
    r->group = mem_alloc(a->slices, sizeof *r->group, "the groups of layers");
    for (size_t s = a->slices; s-- > 0;) {
        size_t from = a->slice[s].offset;
        if (end - from < least && from > 0) continue;
        r->group[r->groups++] = end = from;
    }
    for (size_t i = 0; i < r->groups / 2; i++) {
        size_t other = r->group[i];
        r->group[i] = r->group[r->groups - 1 - i];
        r->group[r->groups - 1 - i] = other;
    }
}

/* --select-scope layer: every slice that is not exchanged whole selects by itself. */
static struct selector_slice *slices_that_select(struct run *r, size_t *slices) {
    const struct arena *a = &r->net->arena;
    struct selector_slice *slice = mem_alloc(a->slices, sizeof *slice, "the slices that select");
    *slices = 0;
    for (size_t i = 0; i < a->slices; i++)
        if (!exempt_has(&a->slice[i], r->exempt, r->exempts))
            slice[(*slices)++] = (struct selector_slice){a->slice[i].offset, a->slice[i].size};
    return slice;
}

/* Of a row that selects some entries and keeps the others. */
static void set_up_sparse(struct run *r, struct reducer_setup *setup) {
    const struct options *o = &r->options;
    setup->select = options_selector(o);
    setup->select_settings = (struct selector_settings){.period = (int)o->tau_prime,
                                                        .rule = setup->exchange.oktopk.thresholds,
                                                        .unadjusted = strcmp(o->gaussian_adjust, "off") == 0,
                                                        .seed = (uint64_t)o->seed};
    setup->exchange.k_max = density_to_k(density_largest(&r->density), r->n - r->exempts);
    setup->exchange.exempt = r->exempt;
    setup->exchange.exempts = r->exempts;
    if (o->momentum_correction)
        correction_open(&r->correction, r->n, setup->device, (float)o->momentum, o->momentum_masking);
}

static void open_reducer(struct run *r, struct reducer_setup *setup) {
    struct selector_slice *slice = NULL;
    if (r->sparse && strcmp(r->options.select_scope, "layer") == 0)
        setup->slice = slice = slices_that_select(r, &setup->slices);
    reducer_open(&r->reducer, setup);
    mem_free(slice);
}

/* --dense-steps: the whole gradient, on the store that is open. */
static void open_dense_start(struct run *r, const struct device_ops *device) {
    const struct exchange_ops *dense;
    struct exchange_setup setup = r->reducer.exchange.setup;
    TABLE_FIND(exchanges, "dense", dense);
    setup.store = device_is_host(device) ? NULL : &r->reducer.store;
    setup.exempts = 0;
    exchange_open(&r->dense_start, dense, &setup);
}

bool run_cut_gradient(struct run *r, struct err *e) {
    if (!exempt_parse(r->options.dense_slices, &r->net->arena, &r->exempt, &r->exempts, e)) return false;
    if (strcmp(r->options.overlap, "layers") == 0) make_groups(r);
    return true;
}

bool run_open_exchange(struct run *r, const struct device_ops *device, struct err *e) {
    const struct options *o = &r->options;
    const struct exchange_ops *ops = options_exchange(o);
    r->sparse = ops->sparse;
    r->density = (struct density_schedule){0};
    r->drifts = options_drift(o);
    r->density.target = o->density;
    r->density.dense_steps = (size_t)o->dense_steps;
    if (r->sparse && !density_parse_warmup(o->density_warmup, &r->density, e)) return false;
    if (!exchange_serves(ops, r->comm, e)) return false;
    struct reducer_setup setup = {.ops = ops, .device = device};
    setup.exchange = (struct exchange_setup){.comm = r->comm, .n = r->n, .k_max = r->n, .phases = &r->phases};
    setup.exchange.hidden_phases = &r->hidden_phases;
    options_setup(o, &setup.exchange);
    if (!run_cut_gradient(r, e)) return false;
    setup.exchange.group = r->group;
    setup.exchange.groups = r->groups;
    if (r->sparse) set_up_sparse(r, &setup);
    open_reducer(r, &setup);
    if (r->sparse && r->density.dense_steps > 0) open_dense_start(r, device);
    return true;
}

void run_close_exchange(struct run *r) {
    exchange_close(&r->dense_start);
    reducer_close(&r->reducer);
    correction_close(&r->correction);
    mem_free(r->exempt);
    mem_free(r->group);
    r->exempt = NULL;
    r->group = NULL;
    r->exempts = r->groups = 0;
}
