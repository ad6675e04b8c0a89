/* exchange_open.c: opening what a gradient goes through: residual, selector, momentum, exchange, as the options say. */
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "cli/exempt_option.h"
#include "cli/run.h"
#include "topk/by_slice.h"

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
static struct selector *open_slices(struct run *r, size_t k_max, const struct selector_settings *settings) {
    const struct arena *a = &r->net->arena;
    struct selector_slice *slice = mem_alloc(a->slices, sizeof *slice, "the slices that select");
    size_t slices = 0;
    for (size_t i = 0; i < a->slices; i++)
        if (!exempt_has(&a->slice[i], r->exempt, r->exempts))
            slice[slices++] = (struct selector_slice){a->slice[i].offset, a->slice[i].size};
    struct selector *s = selector_open_slices(options_selector(&r->options), &r->store, k_max, settings, slice, slices);
    mem_free(slice);
    return s;
}

static void open_store(struct run *r, const struct device_ops *device, struct exchange_setup *setup) {
    const struct options *o = &r->options;
    const struct selector_settings settings = {.period = (int)o->tau_prime,
                                               .rule = setup->oktopk.thresholds,
                                               .unadjusted = strcmp(o->gaussian_adjust, "off") == 0,
                                               .seed = (uint64_t)o->seed};
    store_open(&r->store, r->n, device);
    setup->store = &r->store;
    setup->k_max = density_to_k(density_largest(&r->density), r->n - r->exempts);
    setup->exempt = r->exempt;
    setup->exempts = r->exempts;
    if (o->momentum_correction) correction_open(&r->correction, r->n, device, (float)o->momentum, o->momentum_masking);
    if (!options_selector(o)) return;
    if (strcmp(o->select_scope, "layer") == 0)
        r->selector = open_slices(r, setup->k_max, &settings);
    else
        r->selector = selector_open(options_selector(o), &r->store, setup->k_max, &settings);
    setup->selector = r->selector;
}

bool run_cut_gradient(struct run *r, struct err *e) {
    if (!exempt_parse(r->options.dense_slices, &r->net->arena, &r->exempt, &r->exempts, e)) return false;
    if (strcmp(r->options.overlap, "layers") == 0) make_groups(r);
    return true;
}

bool run_open_exchange(struct run *r, const struct device_ops *device, struct err *e) {
    const struct options *o = &r->options;
    const struct exchange_ops *ops = options_exchange(o), *dense;
    r->sparse = ops->sparse;
    r->density = (struct density_schedule){0};
    r->drifts = options_drift(o);
    r->density.target = o->density;
    r->density.dense_steps = (size_t)o->dense_steps;
    if (r->sparse && !density_parse_warmup(o->density_warmup, &r->density, e)) return false;
    if (!exchange_serves(ops, r->comm, e)) return false;
    struct exchange_setup setup = {.comm = r->comm, .n = r->n, .k_max = r->n, .phases = &r->phases};
    setup.hidden_phases = &r->hidden_phases;
    options_setup(o, &setup);
    if (!run_cut_gradient(r, e)) return false;
    if (r->sparse) {
        open_store(r, device, &setup);
    } else { /* norms and counts go through it, too */
        store_open_bare(&r->store, r->n, device);
        setup.store = device_is_host(device) ? NULL : &r->store;
    }
    if (r->groups > 0) {
        setup.group = r->group;
        setup.groups = r->groups;
        exchange_open_layers(&r->exchange, ops, &setup);
    } else {
        exchange_open(&r->exchange, ops, &setup);
    }
    if (r->sparse && r->density.dense_steps > 0) {
        TABLE_FIND(exchanges, "dense", dense);
        setup.exempts = 0;
        exchange_open(&r->dense_start, dense, &setup);
    }
    return true;
}

void run_close_exchange(struct run *r) {
    exchange_close(&r->exchange);
    exchange_close(&r->dense_start);
    selector_close(r->selector);
    correction_close(&r->correction);
    store_close(&r->store);
    mem_free(r->exempt);
    mem_free(r->group);
    r->selector = NULL;
    r->exempt = NULL;
    r->group = NULL;
    r->exempts = r->groups = 0;
}
