/* feedback.c: see feedback.h. */
#include "comm/parts/feedback.h"

#include "base/mem.h"
#include "topk/finite.h"

struct use {
    int off;
};

const char *const feedback_rules[] = {"on", "off", NULL};
const struct option_row feedback_option[1] = {FEEDBACK_ROW(struct use, off)};

bool feedback_always(const struct option_values *options, const struct wire_ops *wire) {
    (void)options, (void)wire;
    return true;
}

bool feedback_keeps(const struct option_values *options, const struct wire_ops *wire) {
    struct use use = {0};
    (void)wire;
    option_take(&(struct option_part)OPTION_PART(feedback_option), &use, options);
    return !use.off;
}

bool feedback_keeps_halves(const struct option_values *options, const struct wire_ops *wire) {
    return wire->pack && feedback_keeps(options, wire);
}

const char *feedback_loses(const struct option_values *options) {
    return feedback_keeps(options, NULL) ? NULL : "--feedback off";
}

double feedback_decay(struct exchange *x, double beta) {
    struct store *store = x->setup.store;
    struct moments m;
    if (beta == 1) return 0;
    PHASE_SCOPE(x->setup.phases, PHASE_SELECT);
    store->ops->moments(store, 0, &m);
    store->ops->scale(store, store->acc, (float)beta);
    return (1 - beta) * m.sum_abs;
}

void feedback_open(struct feedback *f, const struct exchange *x, bool keeps) {
    *f = (struct feedback){.keeps = keeps};
    host_stage_open(&f->stage, &x->setup, false);
    if (keeps && f->stage.memory) f->memory = mem_pinned_alloc(x->setup.n, sizeof *f->memory, "a residual on its way");
}

void feedback_close(struct feedback *f) {
    mem_pinned_free(f->memory);
    host_stage_close(&f->stage);
    *f = (struct feedback){0};
}

/* acc += grad on the device, then to the host. */
static void accumulate(struct feedback *f, struct exchange *x, const float *grad) {
    struct store *store = x->setup.store;
    PHASE_SCOPE(x->setup.phases, PHASE_SELECT);
    store->ops->accumulate(store, grad);
    if (!f->memory) {
        f->acc = store->acc;
        return;
    }
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    store->ops->read(store, 0, x->setup.n, f->memory);
    f->acc = f->memory;
}

bool feedback_take(struct feedback *f, struct exchange *x, float *grad, size_t *bad) {
    size_t n = x->setup.n;
    f->acc = f->u = host_stage_at(&f->stage, grad);
    if (!f->keeps) {
        *bad = host_stage_fetch(&f->stage, x, grad);
        return *bad == n;
    }
    accumulate(f, x, grad);
    *bad = host_stage_nonfinite_own(&f->stage, x, f->acc, n);
    return *bad == n;
}

bool feedback_give(struct feedback *f, struct exchange *x, float *grad, struct exchange_sum *sum) {
    size_t n = x->setup.n;
    sum->bad = host_stage_put_back(&f->stage, x, grad);
    if (f->memory) {
        PHASE_SCOPE(x->setup.phases, PHASE_PACK);
        x->setup.store->ops->write(x->setup.store, 0, n, f->memory);
    }
    sum->dense = grad;
    sum->local_nnz = sum->global_nnz = n;
    return sum->bad == n;
}
