/* exchange.c: what all algorithms share, and their table, see exchange.h. */
#include "comm/exchange.h"

#include "base/hash.h"
#include "base/table.h"
#include "comm/exempt.h"
#include "topk/by_slice.h"
#include "topk/finite.h"

#define EXCHANGE(name) extern const struct exchange_ops exchange_##name;
#include "comm/algorithms/exchanges.def"
#undef EXCHANGE
#define EXCHANGE(name) &exchange_##name,
const struct exchange_ops *const exchanges[] = {
#include "comm/algorithms/exchanges.def"
    NULL};

const char *exchange_name(size_t i) {
    const struct exchange_ops *row;
    TABLE_AT(exchanges, i, row);
    return row ? row->name : NULL;
}

bool exchange_conserves(const struct exchange_ops *ops, const struct option_values *options) {
    return ops->conserves && !(ops->loses && ops->loses(options));
}

bool exchange_takes(const struct exchange_ops *ops, const struct wire_ops *wire) {
    return wire == wires[0] || (ops->sparse && !ops->blind) || (ops->halves && wire->pack);
}

bool exchange_keeps(const struct exchange_ops *ops, const struct option_values *options, const struct wire_ops *wire) {
    return ops->sparse || (ops->keeps && ops->keeps(options, wire ? wire : wires[0]));
}

bool exchange_of_gradients(const struct exchange_ops *ops) {
    return !ops->drifts && !ops->outer;
}

const char *exchange_apart(const struct exchange_ops *ops) {
    return !exchange_of_gradients(ops) ? "replicas drift"
           : ops->blind                ? "not the largest entries"
           : ops->low_rank             ? "of low rank"
                                       : NULL;
}

void exchange_open(struct exchange *x, const struct exchange_ops *ops, const struct exchange_setup *setup) {
    *x = (struct exchange){.ops = ops, .setup = *setup, .room_for_sent = setup->wants_sent};
    if (setup->n < 1 || (uint64_t)setup->n > UINT32_MAX) die("%s: n = %zu is not in 1..2^32-1", ops->name, setup->n);
    if (!setup->wire) x->setup.wire = wires[0];
    struct err e = {0};
    if (ops->serves && !ops->serves(setup->comm, &e)) die("%s", e.text);
    if (exchange_keeps(ops, &setup->options, setup->wire)) {
        if (!setup->store) die("%s needs a store", ops->name);
        if (setup->store->n != setup->n) die("%s: n = %zu over a store of %zu", ops->name, setup->n, setup->store->n);
    }
    if (ops->sparse && (setup->k_max < 1 || setup->k_max > setup->n))
        die("%s: k = %zu is not in 1..%zu", ops->name, setup->k_max, setup->n);
    if (ops->selects) {
        if (!setup->selector) die("%s needs a selector", ops->name);
        if (ops->own_parts && setup->selector->slice) die("%s selects in parts of its own, not by slices", ops->name);
        if (setup->k_max > setup->selector->k_max)
            die("%s: k = %zu is not in 1..%zu", ops->name, setup->k_max, setup->selector->k_max);
    }
    exempt_open(x);
    ops->open(x);
}

uint64_t exchange_group_seed(uint64_t seed, size_t from) {
    return hash64(seed, &(uint64_t){from}, sizeof(uint64_t));
}

void exchange_close(struct exchange *x) {
    if (!x->ops) return;
    x->ops->close(x);
    exempt_close(x);
    *x = (struct exchange){0};
}

/* The sum of finite numbers may still overflow. */
static bool sum_finite(struct exchange_sum *sum) {
    if (!sum->sparse) return true;
    sum->global_nnz = sum->sparse->nnz;
    size_t at = first_nonfinite(sum->sparse->val, sum->global_nnz);
    if (at == sum->global_nnz) return true;
    sum->bad = sum->sparse->idx[at];
    return false;
}

static void check_k(const struct exchange *x, size_t k) {
    if (x->ops->sparse && (k < 1 || k > x->setup.k_max))
        die("%s: k = %zu is not in 1..%zu", x->ops->name, k, x->setup.k_max);
}

/* From here on, to give_back, what passes over the transport counts as the exchange's, and takes its time. */
static void take_comm(struct exchange *x) {
    struct comm *c = x->setup.comm;
    x->traffic = c->traffic;
    x->charged = c->phases;
    c->traffic = TRAFFIC_EXCHANGE;
    c->phases = x->setup.phases;
}

static void give_comm_back(struct exchange *x) {
    struct comm *c = x->setup.comm;
    c->traffic = x->traffic;
    c->phases = x->charged;
}

/* Exempt entries are taken out of the whole gradient, so a row waits for that. (Where a row is run by layers, its
 * groups do the taking out, as each is complete: x has none.) */
void exchange_begin(struct exchange *x, float *grad, size_t k) {
    if (!x->ops->begin || x->exempt.nnz > 0) return;
    check_k(x, k);
    x->begun = true;
    take_comm(x);
    x->ops->begin(x, grad, k);
}

void exchange_ready(struct exchange *x, size_t from) {
    if (!x->begun) return;
    PHASE_SCOPE(x->setup.phases, PHASE_MERGE);
    x->ops->ready(x, from);
}

/* After begin, traffic and phases were switched already, and another thread may be using them (overlap by layers). */
bool exchange_run(struct exchange *x, float *grad, size_t k, struct exchange_sum *sum) {
    struct store *store = x->setup.store;
    check_k(x, k);
    if (x->setup.wants_sent && !x->room_for_sent) die("%s was not opened for what ranks have sent", x->ops->name);
    PHASE_SCOPE(x->setup.phases, PHASE_MERGE);
    if (!x->begun) take_comm(x);
    if (store) store->phases = x->setup.phases;
    *sum = (struct exchange_sum){0};
    exempt_take(x, grad);
    bool good = x->ops->run(x, grad, k, sum) && sum_finite(sum);
    good = exempt_sum(x, good, sum);
    if (!x->setup.wants_sent) sum->sent = sum->delivered = NULL; /* some rows have them at no cost */
    if (store) store->phases = NULL;
    give_comm_back(x);
    x->begun = false;
    return good;
}

void exchange_round(struct exchange *x, struct sparse *s, struct sparse *error) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    wire_round(x->setup.wire, s, error);
}

size_t exchange_encode(struct exchange *x, const struct sparse *s, size_t from, size_t to, void *message) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    return x->setup.wire->encode(s, from, to, message);
}

void exchange_read(struct exchange *x, void *message, size_t bytes, size_t from, size_t to, int sender,
                   struct sparse *buffer, struct sparse *view) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    wire_read(x->setup.wire, message, bytes, from, to, sender, buffer, view);
}

bool exchange_serves(const struct exchange_ops *ops, struct comm *c, struct err *e) {
    if (ops->serves) ops->serves(c, e);
    return !comm_agree(c, e);
}

bool exchange_saved_block(struct exchange *x, void *block, size_t size, size_t piece, void **memory, size_t *bytes) {
    struct selector *s = x->ops->selects ? x->setup.selector : NULL;
    if (piece > 0 && s) return selector_saved(s, piece - 1, memory, bytes);
    *memory = piece == 0 ? block : NULL;
    *bytes = piece == 0 ? size : 0;
    return piece < 2;
}

bool exchange_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes) {
    if (x->ops->saved) return x->ops->saved(x, piece, memory, bytes);
    return exchange_saved_block(x, NULL, 0, piece, memory, bytes);
}

void exchange_skip(struct exchange *x, uint64_t steps) {
    if (x->ops->skip) x->ops->skip(x, steps);
}

bool exchange_check_own(const struct exchange *x, uint64_t *alike, struct err *e) {
    const struct selector *s = x->ops->selects ? x->setup.selector : NULL;
    return (!x->ops->check || x->ops->check(x, alike, e)) && (!s || selector_check(s, e));
}

bool exchange_check(struct exchange *x, struct err *e) {
    struct comm *c = x->setup.comm;
    uint64_t alike = 0, first;
    exchange_check_own(x, &alike, e);
    if (comm_agree(c, e)) return false;
    first = alike;
    comm_bcast(c, 0, &first, sizeof first);
    if (alike != first)
        err_set(e, "rank %d has another state of %s than rank 0, where all ranks have the same", c->rank, x->ops->name);
    return !comm_agree(c, e);
}

double exchange_max_words(const struct exchange *x, size_t k) {
    const struct comm *c = x->setup.comm;
    if (x->by_layers) return exchange_layers_words(x, k);
    if (x->ops->own_max_words) return x->ops->own_max_words(x, k) + exempt_words(x);
    const struct cost_case step = {.n = x->setup.n,
                                   .k = x->ops->sends_all ? selector_asks(x->setup.selector, k) : k,
                                   .P = c->size,
                                   .ranks_per_node = c->local_size};
    return x->ops->max_words(&step) + exempt_words(x);
}

/* update = scale * u where both are on the device. */
static void scale_dense(const struct exchange *x, const float *u, float scale, float *update) {
    struct store *store = x->setup.store;
    size_t n = x->setup.n;
    if (!store || device_is_host(store->device)) {
        for (size_t i = 0; i < n; i++) update[i] = scale * u[i];
        return;
    }
    if (update != u) store->device->copy(update, u, n * sizeof *u);
    store->ops->scale(store, update, scale);
}

void exchange_mean(struct exchange *x, const struct exchange_sum *sum, float *update) {
    struct store *store = x->setup.store;
    float scale = x->ops->drifts ? 1 : 1.0f / (float)x->setup.comm->size;
    PHASE_SCOPE(x->setup.phases, PHASE_UPDATE);
    if (sum->dense && x->ops->drifts && sum->dense == update)
        ; /* nothing to do */
    else if (sum->dense)
        scale_dense(x, sum->dense, scale, update);
    else
        store->ops->scatter(store, sum->sparse, scale, update);
    if (sum->exempt) store->ops->scatter_add(store, sum->exempt, scale, update);
}

void exchange_combine(struct exchange *x, const struct exchange_sum *sum, float *grad) {
    struct store *store = x->setup.store;
    float scale = 1.0f / (float)x->setup.comm->size;
    if (!sum->sparse || !(sum->sent || x->ops->combine)) die("%s cannot tell what each rank sent", x->ops->name);
    PHASE_SCOPE(x->setup.phases, PHASE_UPDATE);
    if (x->ops->combine) {
        take_comm(x);
        x->ops->combine(x, sum, grad);
        give_comm_back(x);
    } else {
        store->ops->scale(store, grad, scale);
        store->ops->scatter_add(store, sum->sparse, scale, grad);
        store->ops->scatter_add(store, sum->sent, -scale, grad);
    }
    if (sum->exempt) store->ops->scatter_add(store, sum->exempt, scale, grad);
}
