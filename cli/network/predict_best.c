/* predict_best.c: see predict_best.h. The decision is comm/cost/best.c's, the same as that of train --algo auto, which
 * then tries the first ones. */
#include "cli/network/predict_best.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/network/local_costs.h"
#include "cli/options/device_option.h"

static const char *format_of(const struct candidate *x) {
    return x->wire ? x->wire->name : "-";
}

static void cost_of(const struct candidate *x, const struct cost_case *c, struct cost *cost) {
    x->ops->cost(c, cost);
    if (x->wire) cost_in_format(cost, x->wire, cost);
}

/* Part of a step that is computing. */
static double efficiency(const struct predict_best *b, const struct candidate *x) {
    return b->compute / (b->compute + x->seconds);
}

/* -- what local work takes ------------------------------------------------------------------------- */
enum from { NOWHERE, TABLE, HERE };
static const char *const from_names[] = {"none", "table", "measured"};

/* What is charged, and where it comes from. */
struct charge {
    enum from from;
    struct local_costs costs;
    struct local_times times;     /* HERE */
    char model[LOCAL_NAME];       /* TABLE */
    struct local_missing missing; /* TABLE */
};

bool predict_best_open(struct predict_best *b, struct err *e) {
    if (!b->on) b->on = "cpu";
    if (!b->costs && comm_simulated()) b->costs = "none"; /* there is no clock to measure with */
    return b->costs || device_option_alone("predict: ", b->on, DEVICE_EXCHANGES, &b->device, e);
}

static bool find_charge(const struct predict_best *b, double density, const struct cost_case *c, struct charge *charge,
                        struct err *e) {
    *charge = (struct charge){.from = b->device ? HERE : strcmp(b->costs, "none") ? TABLE : NOWHERE};
    if (charge->from == TABLE)
        return local_from_table(b->costs, b->on, c->n, density, &charge->costs, charge->model, &charge->missing, e);
    if (charge->from == NOWHERE) return true;
    local_selectors selector;
    local_default_selectors(selector);
    const struct local_request request = {.device = b->device, .n = c->n, .k = c->k, .selector = selector};
    local_measure(&request, &charge->times);
    local_from_times(&charge->times, selector, &charge->costs);
    return true;
}

static void json_charge(const struct predict_best *b, const struct charge *charge) {
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "predict", "costs");
    json_string(&j, "from", from_names[charge->from]);
    if (charge->from != NOWHERE) json_string(&j, "device", charge->from == HERE ? b->device->label() : b->on);
    if (charge->from == HERE) local_times_json(&charge->times, &j);
    if (charge->from == TABLE) {
        json_string(&j, "table", b->costs);
        json_string(&j, "model", charge->model);
        json_string(&j, "missing", charge->missing.names);
    }
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

static void print_charge(const struct predict_best *b, const struct charge *charge) {
    const struct local_times *t = &charge->times;
    size_t exact = 0;
    switch (charge->from) {
    case NOWHERE:
        puts("local work: none is charged: communication alone");
        return;
    case TABLE:
        printf("local work: of %s, %s on %s\n", b->costs, charge->model, b->on);
        if (charge->missing.count > 0) printf("not in it, and left out: %s\n", charge->missing.names);
        return;
    case HERE:
        while (!selectors[exact]->exact) exact++;
        printf(
            "local work: measured here, on %s: %.3g ns to select from an entry; to pack, and to unpack and merge one:",
            b->device->label(), 1e9 * t->select[exact]);
        for (size_t w = 0; wires[w]; w++)
            printf("%s %s %.3g and %.3g ns", w ? "," : "", wires[w]->name, 1e9 * t->pack[w], 1e9 * t->unpack[w]);
        putchar('\n');
    }
}

/* The ranking of those that can be compared, and behind it (from *apart on) the others. */
static size_t rank(const struct predict_best *b, const struct charge *charge, const struct cost_case *c,
                   struct candidate *list, size_t *apart) {
    struct candidate all[BEST_MAX];
    size_t count = best_rank(c, 1, b->net, b->only, NULL, charge->from ? &charge->costs : NULL, false, all), kept = 0;
    for (int others = 0; others < 2; others++) {
        if (others) *apart = kept;
        for (size_t i = 0; i < count; i++)
            if ((exchange_apart(all[i].ops) != NULL) == (others == 1)) list[kept++] = all[i];
    }
    return count;
}

/* The first of another algorithm; NULL: there is none. */
static const struct candidate *next_other(const struct candidate *list, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (list[i].ops != list[0].ops) return &list[i];
    return NULL;
}

/* -- JSON ------------------------------------------------------------------------------------------ */
static void json_format(struct json *j, const char *key, const struct candidate *x) {
    if (x && x->wire)
        json_string(j, key, x->wire->name);
    else
        json_null(j, key);
}

static void json_next(struct json *j, const struct candidate *next) {
    if (!next) return;
    json_string(j, "next_algo", next->ops->name);
    json_format(j, "next_wire", next);
    json_number(j, "next_seconds", next->seconds);
}

/* place: 1 is the best; 0: none, since it cannot be compared. */
static void json_row(const struct predict_best *b, const struct cost_case *c, const struct candidate *x, size_t place,
                     const struct candidate *next) {
    struct cost cost;
    struct json j;
    cost_of(x, c, &cost);
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "predict", "best");
    json_string(&j, "net", b->net->name);
    json_string(&j, "algo", x->ops->name);
    json_format(&j, "wire", x);
    json_integer(&j, "n", (int64_t)c->n);
    json_integer(&j, "k", (int64_t)c->k);
    json_integer(&j, "ranks", c->P);
    json_integer(&j, "ranks_per_node", c->ranks_per_node);
    if (place > 0)
        json_integer(&j, "place", (int64_t)place);
    else
        json_null(&j, "place");
    json_number(&j, "alphas", cost.alphas);
    json_number(&j, "words", cost.words);
    json_number(&j, "node_alphas", cost.node_alphas);
    json_number(&j, "node_words", cost.node_words);
    json_number(&j, "seconds", x->seconds);
    json_number(&j, "local_s", x->local);
    if (b->compute > 0) json_number(&j, "compute_s", b->compute);
    if (b->compute > 0) json_number(&j, "efficiency", efficiency(b, x));
    json_boolean(&j, "best", place == 1);
    json_next(&j, next);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

/* -- tables ---------------------------------------------------------------------------------------- */
static void print_step(const struct predict_best *b, const struct charge *charge, const struct candidate *x) {
    printf(" %12.6f", x->seconds);
    if (charge->from) printf(" %12.6f", x->local);
    if (b->compute > 0) printf(" %12.6f %9.1f%%", b->compute + x->seconds, 100 * efficiency(b, x));
}

static void print_head(const struct predict_best *b, const struct charge *charge, const char *first,
                       const char *middle) {
    printf("%6s  %-12s %-10s%s %12s", first, "algorithm", "format", middle, "seconds");
    if (charge->from) printf(" %12s", "local work");
    if (b->compute > 0) printf(" %12s %10s", "step", "efficiency");
}

static void show_ranking(const struct predict_best *b, const struct charge *charge, const struct cost_case *c) {
    struct candidate list[BEST_MAX];
    size_t apart, count = rank(b, charge, c, list, &apart);
    if (!b->json) {
        printf("%d rank%s\n", c->P, c->P > 1 ? "s" : "");
        print_head(b, charge, "place", "    alphas         words");
        putchar('\n');
    }
    for (size_t i = 0; i < count; i++) {
        size_t place = i < apart ? i + 1 : 0;
        struct cost cost;
        if (b->json) {
            json_row(b, c, &list[i], place, NULL);
            continue;
        }
        cost_of(&list[i], c, &cost);
        if (place > 0)
            printf("%6zu", place);
        else
            printf("%6s", "-");
        printf("  %-12s %-10s %9.0f %13.0f", list[i].ops->name, format_of(&list[i]), cost.alphas + cost.node_alphas,
               cost.words + cost.node_words);
        print_step(b, charge, &list[i]);
        printf("%s%s\n", place < 2 ? "  " : "", place == 1 ? "best" : place == 0 ? exchange_apart(list[i].ops) : "");
    }
}

static void show_winners(const struct predict_best *b, const struct charge *charge, const struct cost_case *cases,
                         size_t count) {
    struct candidate list[BEST_MAX];
    if (!b->json) {
        print_head(b, charge, "P", "");
        puts("  before");
    }
    for (size_t i = 0; i < count; i++) {
        size_t apart;
        rank(b, charge, &cases[i], list, &apart);
        const struct candidate *next = next_other(list, apart);
        if (b->json) {
            json_row(b, &cases[i], &list[0], 1, next);
            continue;
        }
        printf("%6d  %-12s %-10s", cases[i].P, list[0].ops->name, format_of(&list[0]));
        print_step(b, charge, &list[0]);
        if (next) printf("  %s %s, %.6f", next->ops->name, format_of(next), next->seconds);
        putchar('\n');
    }
}

/* A table may lack all that could be compared. */
static bool any_first(const struct predict_best *b, const struct charge *charge, const struct cost_case *c,
                      struct err *e) {
    struct candidate list[BEST_MAX];
    size_t apart;
    rank(b, charge, c, list, &apart);
    if (apart > 0) return true;
    return err_set(e, "predict: the table %s has no algorithm in %s that can be compared",
                   b->costs ? b->costs : "of this machine", b->only ? b->only->name : "any format");
}

bool predict_best(const struct predict_best *b, double density, const struct cost_case *cases, size_t count,
                  struct err *e) {
    struct charge charge;
    if (!find_charge(b, density, cases, &charge, e)) return false;
    for (size_t i = 0; i < count; i++)
        if (!any_first(b, &charge, &cases[i], e)) return false;
    (b->json ? json_charge : print_charge)(b, &charge);
    if (count == 1)
        show_ranking(b, &charge, cases);
    else
        show_winners(b, &charge, cases, count);
    return true;
}
