/* best.c: see best.h. */
#include "comm/cost/best.h"

#include <math.h>

bool best_takes_format(const struct exchange_ops *ops) {
    return ops->sparse && !ops->blind;
}

double best_seconds(const struct exchange_ops *ops, const struct wire_ops *wire, const struct cost_case *c,
                    const struct network *net) {
    struct cost cost;
    ops->cost(c, &cost);
    if (wire) cost_in_format(&cost, wire, &cost);
    return cost_seconds(&cost, net);
}

static double seconds_of_combine(const struct exchange_ops *ops, const struct cost_case *c, const struct network *net) {
    struct cost cost = {0};
    if (ops->combine_cost) ops->combine_cost(c, &cost);
    return cost_seconds(&cost, net);
}

double best_local_seconds(const struct exchange_ops *ops, const struct wire_ops *wire, const struct cost_case *c,
                          const struct local_cost *local, const struct network *net) {
    struct cost cost;
    double n = (double)c->n / (ops->by_node ? c->ranks_per_node : 1);
    ops->cost(c, &cost);
    return cost_local(&cost, wire, n, local) + cost_sums(&cost, wire, local, net);
}

/* Into its place, behind those that are as fast. */
static void insert(struct candidate *list, size_t count, struct candidate new) {
    size_t at = count;
    for (; at > 0 && list[at - 1].seconds > new.seconds; at--) list[at] = list[at - 1];
    list[at] = new;
}

/* local NULL: communication alone. */
static struct candidate predict(const struct exchange_ops *ops, const struct wire_ops *wire,
                                const struct cost_case *cases, size_t count, const struct network *net,
                                const struct local_cost *local) {
    struct candidate new = {.ops = ops, .wire = wire, .measured = NAN};
    for (size_t c = 0; c < count; c++) {
        if (local) new.local += best_local_seconds(ops, wire, &cases[c], local, net);
        new.seconds += best_seconds(ops, wire, &cases[c], net);
    }
    new.seconds += new.local;
    return new;
}

/* In `only`, where there is one; a row that does not take it is as it is without a format. */
static bool meant(const struct exchange_ops *ops, const struct wire_ops *wire, const struct wire_ops *only) {
    if (!only) return exchange_takes(ops, wire);
    return wire == (exchange_takes(ops, only) ? only : wires[0]);
}

size_t best_rank(const struct cost_case *cases, size_t count, const struct network *net, const struct wire_ops *only,
                 const bool *allowed, const struct local_costs *local, bool combines, struct candidate *list) {
    size_t listed = 0;
    for (size_t i = 0; exchanges[i]; i++) {
        const struct exchange_ops *ops = exchanges[i];
        if (allowed && !allowed[i]) continue;
        for (size_t w = 0; wires[w]; w++) {
            if (!meant(ops, wires[w], only)) continue;
            if (i == BEST_ALGORITHMS || w == BEST_FORMATS) die("more than %d algorithms and formats", BEST_MAX);
            const struct local_cost *charged = local ? &local->of[i][w] : NULL;
            if (charged && isnan(charged->select)) continue;
            const struct wire_ops *wire = w > 0 || best_takes_format(ops) ? wires[w] : NULL;
            struct candidate new = predict(ops, wire, cases, count, net, charged);
            for (size_t c = 0; combines && c < count; c++) new.seconds += seconds_of_combine(ops, &cases[c], net);
            insert(list, listed++, new);
        }
    }
    return listed;
}

size_t best_to_try(const struct candidate *list, size_t count, size_t tries, size_t *chosen) {
    bool one_algorithm = true;
    if (tries > count) tries = count;
    for (size_t i = 0; i < tries; i++) {
        chosen[i] = i;
        one_algorithm &= list[i].ops == list[0].ops;
    }
    if (tries < 2 || !one_algorithm) return tries;
    for (size_t i = tries; i < count && one_algorithm; i++) {
        one_algorithm = list[i].ops == list[0].ops;
        if (!one_algorithm) chosen[tries - 1] = i;
    }
    return tries;
}

const struct candidate *best_measured(const struct candidate *list, const size_t *chosen, size_t tries) {
    const struct candidate *best = NULL;
    for (size_t i = 0; i < tries; i++)
        if (!best || list[chosen[i]].measured < best->measured) best = &list[chosen[i]];
    return best;
}
