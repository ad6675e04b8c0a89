/* step_cost.c: see step_cost.h. */
#include "cli/network/step_cost.h"

#include "base/mem.h"
#include "comm/cost/best.h"

int step_ranks_per_node(const struct comm *c) {
    return c->local_size * c->nodes == c->size ? c->local_size : 1;
}

/* Entries of [from, to) that compete for selection. */
static size_t competing(const struct run *r, size_t from, size_t to) {
    size_t exempt = 0;
    for (size_t i = 0; i < r->path.exempts; i++) exempt += r->path.exempt[i] >= from && r->path.exempt[i] < to;
    return to - from - exempt;
}

/* The slices that lie in [from, to), which are whole; returns how many. */
static size_t slices_in(const struct run *r, size_t from, size_t to, const struct exchange_slice **first) {
    const struct arena *a = &r->model.net->arena;
    size_t begin = 0, end;
    while (begin < a->slices && a->slice[begin].offset < from) begin++;
    for (end = begin; end < a->slices && a->slice[end].offset < to;) end++;
    *first = r->path.slice + begin;
    return end - begin;
}

size_t step_cost_cases(const struct run *r, size_t k, struct cost_case **cases) {
    size_t groups = r->path.groups > 0 ? r->path.groups : 1, count = 0, all = r->model.n - r->path.exempts;
    *cases = mem_alloc(groups, sizeof **cases, "cases of the cost model");
    for (size_t i = 0; i < groups; i++) {
        size_t from = r->path.groups > 0 ? r->path.group[i] : 0,
               to = i + 1 < groups ? r->path.group[i + 1] : r->model.n;
        size_t n = competing(r, from, to);
        if (n == 0) continue;
        size_t share = (size_t)((double)k * (double)n / (double)all);
        struct cost_case *c = &(*cases)[count++];
        *c = (struct cost_case){.n = n, .k = share > 0 ? share : 1, .P = r->comm->size};
        c->ranks_per_node = step_ranks_per_node(r->comm);
        c->slices = slices_in(r, from, to, &c->slice);
        c->options = options_own(&r->options);
    }
    return count;
}

struct cost step_cost(const struct run *r, const struct exchange_ops *ops, const struct wire_ops *wire, size_t k) {
    struct cost_case *cases;
    struct cost sum = {0};
    size_t count = step_cost_cases(r, k, &cases);
    for (size_t i = 0; i < count; i++) {
        struct cost one;
        ops->cost(&cases[i], &one);
        if (wire && exchange_takes(ops, wire)) cost_in_format(&one, wire, &one);
        sum.alphas += one.alphas;
        sum.words += one.words;
        sum.node_alphas += one.node_alphas;
        sum.node_words += one.node_words;
    }
    mem_free(cases);
    return sum;
}
