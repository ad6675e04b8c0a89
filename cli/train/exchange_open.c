/* exchange_open.c: opening what a gradient goes through: residual, selector, momentum, exchange, as the options say. */
#include "base/mem.h"
#include "cli/options/exempt_option.h"
#include "cli/train/run.h"

/* --overlap layers: groups of whole slices of at least so many bytes, counted from the end, where backward begins. */
static void make_groups(struct run *r) {
    const struct arena *a = &r->model.net->arena;
    size_t least = (size_t)r->options.overlap_bytes / sizeof(float), end = a->n;
    r->path.group = mem_alloc(a->slices, sizeof *r->path.group, "the groups of layers");
    for (size_t s = a->slices; s-- > 0;) {
        size_t from = a->slice[s].offset;
        if (end - from < least && from > 0) continue;
        r->path.group[r->path.groups++] = end = from;
    }
    for (size_t i = 0; i < r->path.groups / 2; i++) {
        size_t other = r->path.group[i];
        r->path.group[i] = r->path.group[r->path.groups - 1 - i];
        r->path.group[r->path.groups - 1 - i] = other;
    }
}

/* --select-scope layer: every slice that is not exchanged whole selects by itself. */
static struct selector_slice *slices_that_select(struct run *r, size_t *slices) {
    const struct arena *a = &r->model.net->arena;
    struct selector_slice *slice = mem_alloc(a->slices, sizeof *slice, "the slices that select");
    *slices = 0;
    for (size_t i = 0; i < a->slices; i++)
        if (!exempt_has(&a->slice[i], r->path.exempt, r->path.exempts))
            slice[(*slices)++] = (struct selector_slice){a->slice[i].offset, a->slice[i].size};
    return slice;
}

/* Of a row that selects some entries and keeps the others. */
static void set_up_sparse(struct run *r, struct reducer_setup *setup) {
    const struct options *o = &r->options;
    setup->select = options_selector(o);
    setup->exchange.k_max = density_to_k(density_largest(&r->path.density), r->model.n - r->path.exempts);
    setup->exchange.exempt = r->path.exempt;
    setup->exchange.exempts = r->path.exempts;
    if (o->momentum_correction)
        correction_open(&r->path.correction, r->model.n, setup->device, (float)o->method.momentum, o->momentum_masking);
}

/* The model's slices, as matrices: of weights with more than two dimensions the first is the rows. */
static void make_matrices(struct run *r) {
    const struct arena *a = &r->model.net->arena;
    r->path.slice = mem_alloc(a->slices, sizeof *r->path.slice, "the slices of the gradient");
    for (size_t i = 0; i < a->slices; i++) {
        const struct slice *s = &a->slice[i];
        size_t rows = s->dims > 1 ? s->dim[0] : 1;
        r->path.slice[i] = (struct exchange_slice){s->offset, rows, s->size / rows};
    }
}

static void open_reducer(struct run *r, struct reducer_setup *setup) {
    struct selector_slice *slice = NULL;
    setup->exchange.slice = r->path.slice;
    setup->exchange.slices = r->model.net->arena.slices;
    if (r->path.sparse && r->options.select_scope == SCOPE_LAYER)
        setup->slice = slice = slices_that_select(r, &setup->slices);
    reducer_open(&r->path.reducer, setup);
    mem_free(slice);
}

/* --dense-steps: the whole gradient, in f32, on the store that is open. */
static void open_dense_start(struct run *r, const struct device_ops *device) {
    struct exchange_setup setup = r->path.reducer.exchange.setup;
    setup.store = device_is_host(device) ? NULL : &r->path.reducer.store;
    setup.exempts = 0;
    setup.wire = NULL;
    exchange_open(&r->path.dense_start, &exchange_dense, &setup);
}

/* Steps between rounds: every rank's own gradient, on the device of the store. */
static void open_local(struct run *r, const struct device_ops *device) {
    struct exchange_setup setup = r->path.reducer.exchange.setup;
    setup.store = device_is_host(device) ? NULL : &r->path.reducer.store;
    exchange_open(&r->path.local, &exchange_fedavg, &setup);
}

bool run_cut_gradient(struct run *r, struct err *e) {
    if (!exempt_parse(r->options.dense_slices, &r->model.net->arena, &r->path.exempt, &r->path.exempts, e))
        return false;
    if (r->options.overlap == OVERLAP_LAYERS) make_groups(r);
    make_matrices(r);
    return true;
}

bool run_open_exchange(struct run *r, const struct device_ops *device, struct err *e) {
    const struct options *o = &r->options;
    const struct exchange_ops *ops = options_exchange(o);
    r->path.sparse = ops->sparse;
    r->path.density = (struct density_schedule){0};
    r->replicas.drifts = options_drift(o);
    r->path.density.target = o->density;
    r->path.density.dense_steps = (size_t)o->dense_steps;
    if (r->path.sparse && !density_parse_warmup(o->density_warmup, &r->path.density, e)) return false;
    if (!exchange_serves(ops, r->comm, e)) return false;
    struct reducer_setup setup = {.ops = ops, .device = device, .seed = (uint64_t)o->seed};
    setup.exchange =
        (struct exchange_setup){.comm = r->comm, .n = r->model.n, .k_max = r->model.n, .phases = &r->phases};
    setup.exchange.hidden_phases = &r->hidden_phases;
    options_setup(o, &setup.exchange);
    if (!run_cut_gradient(r, e)) return false;
    setup.exchange.group = r->path.group;
    setup.exchange.groups = r->path.groups;
    if (r->path.sparse) set_up_sparse(r, &setup);
    open_reducer(r, &setup);
    if (r->path.density.dense_steps > 0) open_dense_start(r, device);
    if (ops->outer) open_local(r, device);
    return true;
}

void run_close_exchange(struct run *r) {
    exchange_close(&r->path.dense_start);
    exchange_close(&r->path.local);
    reducer_close(&r->path.reducer);
    correction_close(&r->path.correction);
    mem_free(r->path.exempt);
    mem_free(r->path.group);
    mem_free(r->path.slice);
    r->path.exempt = NULL;
    r->path.group = NULL;
    r->path.slice = NULL;
    r->path.exempts = r->path.groups = 0;
}
