/* slices.c: --log-slices: where in the model the entries are that leave a rank. The gradient of an embedding, say, is
 * zero in the rows of all words that did not occur, so that few of its entries compete. */
#include <math.h>

#include "base/mem.h"
#include "cli/observe/observers.h"
#include "cli/train/run.h"

/* [slices] each: of the gradient not zero and sent, by this rank and then over all; in the sum. NaN: an algorithm that
 * cannot say. */
struct slice_counts {
    double *nonzero, *sent, *global;
};

void slices_open(struct run *r) {
    const size_t slices = r->model.net->arena.slices;
    struct slice_counts *c = r->watch.slices = mem_zalloc(1, sizeof *c, "the counts of slices");
    c->nonzero = mem_zalloc(2 * slices, sizeof(double), "the counts of slices");
    c->sent = c->nonzero + slices;
    c->global = mem_zalloc(slices, sizeof(double), "the counts of slices");
}

void slices_close(struct run *r) {
    struct slice_counts *c = r->watch.slices;
    if (!c) return;
    mem_free(c->nonzero);
    mem_free(c->global);
    mem_free(c);
    r->watch.slices = NULL;
}

/* The entries of the gradient with a magnitude above zero, by the store's count over a view of it. */
static void count_gradient(struct run *r) {
    const struct arena *a = &r->model.net->arena;
    enum phase phase = phase_enter(&r->phases, PHASE_OTHER);
    for (size_t i = 0; i < a->slices; i++) {
        struct store view = r->path.reducer.store;
        view.acc = a->grad + a->slice[i].offset;
        view.n = a->slice[i].size;
        r->watch.slices->nonzero[i] = (double)view.ops->count(&view, 1);
    }
    phase_enter(&r->phases, phase);
}

/* count[i] += entries of s in slice i, but for those of `but` (NULL: none); indices ascend, and so do slices. */
static void count_entries(const struct arena *a, const struct sparse *s, const struct sparse *but, double *count) {
    size_t slice = 0, at = 0;
    for (size_t i = 0; i < s->nnz; i++) {
        if (but && sparse_has_next(but, &at, s->idx[i])) continue;
        while (s->idx[i] >= a->slice[slice].offset + a->slice[slice].size) slice++;
        count[slice]++;
    }
}

static void count_sum(struct run *r) {
    const struct exchange_sum *sum = &r->now.sum;
    const struct arena *a = &r->model.net->arena;
    struct slice_counts *c = r->watch.slices;
    for (size_t i = 0; i < a->slices; i++) {
        c->sent[i] = sum->sparse && sum->delivered ? 0 : NAN;
        c->global[i] = sum->sparse ? 0 : NAN;
    }
    if (!sum->sparse) return;
    count_entries(a, sum->sparse, sum->exempt, c->global); /* exempt ones may be among them, as zeros */
    if (sum->delivered) count_entries(a, sum->delivered, sum->exempt, c->sent);
    if (!sum->exempt) return;
    count_entries(a, sum->exempt, NULL, c->global);
    if (sum->delivered) count_entries(a, sum->exempt, NULL, c->sent);
}

static void write_counts(struct run *r) {
    struct slice_counts *c = r->watch.slices;
    comm_allreduce_f64(r->comm, c->nonzero, 2 * r->model.net->arena.slices, COMM_SUM);
    log_slices(r, c->nonzero, c->sent, c->global);
}

static bool slices_due(const struct run *r) {
    return run_due(r, r->options.log_slices);
}

const struct observer slices_observer = {
    slices_due, true, {[MOMENT_GRADIENT] = count_gradient, [MOMENT_AFTER] = count_sum, [MOMENT_END] = write_counts}};
