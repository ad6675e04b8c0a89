/* costs.c: the verb `costs`, see costs.h. */
#include "cli/network/costs.h"

#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/option.h"
#include "cli/network/cost_table.h"
#include "topk/selector.h"

struct request {
    const char *table, *model, *device, *compute_device, *tree;
    struct option_names algos;
    int select, wire, ranks_per_node;
    double density;
    unsigned times; /* COST_ */
    bool json;
};

static const char *const time_names[] = {"compute", "select", "word", "sum", NULL}; /* in the order of COST_ */

static const struct option_row options[] = {
    {"model", "NAME", OPTION_WORD, NULL, "of this model of the table", OPTION_AT(struct request, model),
     .wanted = "--model is needed: the name of a model in the table"},
    {"device", "NAME", OPTION_WORD, "cpu", "on this device of the table", OPTION_AT(struct request, device)},
    {"compute-device", "NAME", OPTION_WORD, NULL,
     "computing on another one, as p102-100, the GPU of the gTop-k paper (default: --device)",
     OPTION_AT(struct request, compute_device)},
    {"algo", "LIST|all", OPTION_NAMES, "all", "algorithms; all: those that the table has for this model and device",
     OPTION_AT(struct request, algos), .choice = exchange_name},
    {"select", "NAME", OPTION_CHOICE, NULL, "the selector (default: the one that the table has for the algorithm)",
     OPTION_AT(struct request, select), .choice = selector_name},
    {"wire", "FORMAT", OPTION_CHOICE, "coo32", "the format of sparse vectors", OPTION_AT(struct request, wire),
     .choice = wire_name},
    {"density", "RHO", OPTION_REAL, "0.001", "the share of the gradient that is selected",
     OPTION_AT(struct request, density), .max = 1, .above_min = true},
    {"ranks-per-node", "M", OPTION_INT, "1", "hitopk selects in an M-th of the gradient",
     OPTION_AT(struct request, ranks_per_node), .min = 1, .max = 1e6},
    {"times", "LIST", OPTION_SET, "compute,select,word,sum",
     "which of the four; what is left out need not be in the table", OPTION_AT(struct request, times),
     .names = time_names},
    {"tree", "DIR", OPTION_WORD, ".",
     "the folder with results/published, where rows of the table name a published time by its file and model",
     OPTION_AT(struct request, tree)},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object for each algorithm: compute_s, select_s, word_s, sum_s, or null",
     OPTION_AT(struct request, json)},
};

const struct option_table costs_options = {
    .verb = "costs",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .operand = "table",
    .operand_at = offsetof(struct request, table),
    .wanted = "a table is needed: sh scripts/measure-costs.sh makes one",
    .call = "sparsetrain costs TABLE",
    .about =
        "What a step takes on a machine that was measured, for each algorithm: computing, accumulating and selecting, "
        "packing and merging for each 4-byte word received, and of a dense sum, of which nothing else is charged, "
        "adding a value. TABLE: of scripts/measure-costs.sh (docs/simulation.md has its columns). What the table lacks "
        "is one line, which says what it has instead; only computing may be unknown, and adding where the table is an "
        "older one.",
};

/* -- one algorithm --------------------------------------------------------------------------------- */
static struct cost_question question(const struct request *r, const struct exchange_ops *ops) {
    return (struct cost_question){.model = r->model,
                                  .device = r->device,
                                  .compute_device = r->compute_device,
                                  .tree = r->tree,
                                  .ops = ops,
                                  .selector = r->select < 0 ? NULL : selectors[r->select]->name,
                                  .wire = wires[r->wire],
                                  .density = r->density,
                                  .ranks_per_node = r->ranks_per_node,
                                  .times = r->times};
}

static void print_time(double seconds, double unit) {
    if (isnan(seconds))
        printf(" %12s", "-");
    else
        printf(" %12.4g", seconds * unit);
}

static void print_row(const struct request *r, const struct exchange_ops *ops, const struct cost_answer *a) {
    (void)r;
    printf("%-12s %-10s", ops->name, *a->selector ? a->selector : "-");
    print_time(a->compute, 1e3);
    print_time(a->select, 1e3);
    print_time(a->word, 1e9);
    print_time(a->sum, 1e9);
    putchar('\n');
}

static void json_row(const struct request *r, const struct exchange_ops *ops, const struct cost_answer *a) {
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "costs", r->table);
    json_string(&j, "model", r->model);
    json_integer(&j, "n", (int64_t)a->n);
    json_string(&j, "device", r->device);
    json_string(&j, "compute_device", r->compute_device);
    json_string(&j, "algo", ops->name);
    json_string(&j, "select", a->selector);
    json_string(&j, "wire", wires[r->wire]->name);
    json_number(&j, "density", r->density);
    json_integer(&j, "ranks_per_node", r->ranks_per_node);
    json_number(&j, "compute_s", a->compute);
    json_number(&j, "select_s", a->select);
    json_number(&j, "word_s", a->word);
    json_number(&j, "sum_s", a->sum);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

/* -- all of them ----------------------------------------------------------------------------------- */
static void print_head(const struct request *r, const struct cost_answer *a) {
    printf("%s on %s: %zu entries, density %g, %s; computing on %s\n", r->model, r->device, a->n, r->density,
           wires[r->wire]->name, r->compute_device);
    printf("%-12s %-10s %12s %12s %12s %12s\n", "algorithm", "selector", "compute ms", "select ms", "word ns",
           "sum ns");
}

/* What is missing of all algorithms, any of them says. */
static bool nothing(const struct request *r, const struct cost_table *t, struct err *e) {
    struct cost_question q = question(r, exchanges[0]);
    struct cost_answer a;
    q.times = COST_WORD;
    return cost_table_ask(t, &q, &a, e);
}

/* Every answer is there before the first is printed: a mistake comes alone. */
static bool answer(const struct request *r, const struct cost_table *t, struct err *e) {
    static struct cost_answer a[OPTION_LIST_MAX];
    const struct exchange_ops *ops[OPTION_LIST_MAX];
    size_t count = 0;
    for (size_t i = 0; i < r->algos.count; i++) {
        struct cost_question q = question(r, exchanges[r->algos.at[i]]);
        bool there = !r->algos.all || cost_table_has(t, &q);
        if (there && !cost_table_ask(t, &q, &a[count], e)) return false;
        if (there) ops[count++] = q.ops;
    }
    if (count == 0) return nothing(r, t, e);
    if (!r->json) print_head(r, &a[0]);
    for (size_t i = 0; i < count; i++) (r->json ? json_row : print_row)(r, ops[i], &a[i]);
    return true;
}

static bool run(int argc, char **argv, struct err *e) {
    struct request r = {0};
    struct cost_table t;
    option_defaults(&costs_options, &r);
    if (!option_parse(&costs_options, &r, NULL, argc, argv, 1, e) || !cost_table_open(&t, r.table, e)) return false;
    if (!r.compute_device) r.compute_device = r.device;
    bool good = answer(&r, &t, e);
    cost_table_close(&t);
    return good;
}

int costs(int argc, char **argv) {
    struct err e = {0};
    if (run(argc, argv, &e)) return EXIT_DONE;
    fprintf(stderr, "sparsetrain: %s\n", e.text);
    return err_status(&e);
}
