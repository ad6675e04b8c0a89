/* exempt.c: see exempt.h. */
#include "comm/exempt.h"

#include "topk/finite.h"

void exempt_check(const struct exchange_ops *ops, const struct exchange_setup *setup) {
    size_t m = setup->exempts;
    const uint32_t *idx = setup->exempt;
    if (m == 0) return;
    if (!ops->sparse) die("%s exchanges everything densely: no entry can be exempt from selection", ops->name);
    for (size_t i = 1; i < m; i++)
        if (idx[i] <= idx[i - 1])
            die("%s: exempt entries must increase, but %u follows on %u", ops->name, idx[i], idx[i - 1]);
    if (idx[m - 1] >= setup->n) die("%s: exempt entry %u of a gradient of %zu", ops->name, idx[m - 1], setup->n);
}

void exempt_open(struct exchange *x) {
    size_t m = x->setup.exempts;
    exempt_check(x->ops, &x->setup);
    if (m == 0) return;
    sparse_open(&x->exempt, m);
    memcpy(x->exempt.idx, x->setup.exempt, m * sizeof *x->exempt.idx);
    x->exempt.nnz = m;
}

void exempt_close(struct exchange *x) {
    sparse_close(&x->exempt);
}

/* The store's operations, on the gradient in place of acc. */
static struct store over_gradient(const struct exchange *x, float *grad) {
    struct store view = *x->setup.store;
    view.acc = grad;
    return view;
}

void exempt_take(struct exchange *x, float *grad) {
    struct sparse *e = &x->exempt;
    if (e->nnz == 0) return;
    struct store view = over_gradient(x, grad);
    store_gather_at(&view, e);
    store_zero_at(&view, e);
}

/* False where an entry is not finite: sum->bad is the first of them, or lower already. */
static bool all_finite(const struct sparse *e, bool good, struct exchange_sum *sum) {
    size_t at = first_nonfinite(e->val, e->nnz);
    if (at == e->nnz) return good;
    if (good || e->idx[at] < sum->bad) sum->bad = e->idx[at];
    return false;
}

bool exempt_sum(struct exchange *x, bool good, struct exchange_sum *sum) {
    struct sparse *e = &x->exempt;
    if (e->nnz == 0) return good;
    if (!all_finite(e, good, sum)) return false;
    comm_allreduce_f32(x->setup.comm, e->val, e->nnz, COMM_SUM);
    sum->exempt = e;
    return all_finite(e, true, sum);
}

double exempt_words(const struct exchange *x) {
    int P = x->setup.comm->size;
    return 2.0 * (double)x->exempt.nnz * (P - 1) / P;
}
