/* predict.c: the cost lines of all exchanges as numbers: gTop-k's Table I and Ok-Topk's Table 1 for a given network,
 * and the numbers of ranks from which one algorithm overtakes another; with --best, whom to take. */
#include "cli/network/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/option.h"
#include "cli/network/predict_best.h"
#include "cli/network/predict_rows.h"
#include "comm/cost/best.h"
#include "topk/selector.h"

enum { SEARCH_TO = 4096, SHOWN = 6 };

struct request {
    struct network net;
    struct option_numbers p, n, density;
    int ranks_per_node;
    double compute; /* [s] a step; 0: not given */
    int against_number, wire_number;
    const struct exchange_ops *against;
    const struct wire_ops *wire; /* NULL with wire_given: all */
    const char *rows, *costs, *on;
    bool wire_given, against_given, best, json;
};

/* And, behind them, all of them. */
static const char *format_name(size_t i) {
    const char *name = wire_name(i);
    return name || (i > 0 && !wire_name(i - 1)) ? name : "all";
}

static bool set_network(void *net, const char *text, struct err *e) {
    return network_find(text, net, e);
}

static const struct option_row options[] = {
    {"net", "FILE|NAME", OPTION_OTHER, NULL,
     "the network: 1gbe, 10gbe, 25gbe, 100gbe, aries, or a file of sparsetrain p2p --out",
     OPTION_AT(struct request, net), .set = set_network,
     .wanted = "--net is needed: 1gbe, 10gbe, 25gbe, 100gbe, aries, or a file of sparsetrain p2p --out"},
    {"p", "LIST", OPTION_NUMBERS, NULL, "ranks (default: 2,4,8,16,32,64,128,256)", OPTION_AT(struct request, p),
     .min = 1, .max = 1e6, .whole = true},
    {"n", "LIST", OPTION_NUMBERS, "25000000", "gradient lengths (the default: ResNet-50, as in gTop-k's Fig. 9)",
     OPTION_AT(struct request, n), .min = 1, .max = UINT32_MAX, .whole = true},
    {"density", "LIST", OPTION_NUMBERS, "0.001", "shares of the gradient that are exchanged",
     OPTION_AT(struct request, density), .max = 1, .above_min = true},
    {"ranks-per-node", "M", OPTION_INT, "1", "for hitopk and torus2d, which use the network inside a node too",
     OPTION_AT(struct request, ranks_per_node), .min = 1, .max = 1e6},
    {"against", "ALGO", OPTION_CHOICE, "dense", "whom the others are to overtake",
     OPTION_AT(struct request, against_number), .choice = exchange_name},
    {"wire", "NAME|all", OPTION_CHOICE, "coo32",
     "the format of sparse vectors; all: for each algorithm that in which it is fastest",
     OPTION_AT(struct request, wire_number), .choice = format_name},
    {"best", NULL, OPTION_FLAG, NULL,
     "every algorithm in every format (or in that of --wire), the fastest first: what train --algo auto would "
     "try. With several P: the first of each. Selecting, packing, unpacking and merging are charged, as "
     "measured in this process, some milliseconds before, or as --costs says",
     OPTION_AT(struct request, best)},
    {"costs", "FILE|none", OPTION_WORD, NULL,
     "as in a table of scripts/measure-costs.sh, which has this --n and --density; none: not at all",
     OPTION_AT(struct request, costs)},
    {"device", "NAME", OPTION_WORD, NULL, "on this device of the table, or of this machine (default: cpu)",
     OPTION_AT(struct request, on)},
    {"compute", "SECONDS", OPTION_REAL, "0",
     "forward and backward of a step: adds the time of the whole step and its efficiency",
     OPTION_AT(struct request, compute), .max = 1e9},
    {"rows", "FILE", OPTION_WORD, NULL, "rows of sparsetrain bench --json: measured and predicted side by side",
     OPTION_AT(struct request, rows)},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object per line instead of the tables, the network [s, s/word] first",
     OPTION_AT(struct request, json)},
};

const struct option_table predict_options = {
    .verb = "predict",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .call = "sparsetrain predict",
    .about =
        "What a step of every exchange costs by the alpha-beta model, and from how many ranks on one is faster than "
        "another. Selecting, packing and merging are not in it but with --best, nor what overlaps with computing. "
        "LIST: numbers with commas between them.",
};

static bool check(const struct request *r, bool shape, struct err *e) {
    if (r->rows && shape)
        return err_set(e, "predict: the rows say what n, k and P are; leave out the options for them");
    if (r->rows && (r->wire_given || r->best))
        return err_set(e, "predict: --rows holds what was measured, in the format of each row; leave out %s",
                       r->best ? "--best" : "--wire");
    if (!r->best && (r->costs || r->on))
        return err_set(e, "predict: %s charges local work in a ranking; it needs --best",
                       r->costs ? "--costs" : "--device");
    if (r->best && r->against_given) return err_set(e, "predict: --best ranks all of them; leave out --against");
    for (size_t i = 0; !r->rows && i < r->p.count; i++)
        if (fmod(r->p.x[i], r->ranks_per_node) != 0)
            return err_set(e, "predict: --ranks-per-node %d does not divide %.0f ranks (--p)", r->ranks_per_node,
                           r->p.x[i]);
    return true;
}

/* The default numbers of ranks, of which those that ranks_per_node does not divide are left out. */
static void default_p(struct request *r) {
    for (int P = 2; P <= 256; P *= 2)
        if (P % r->ranks_per_node == 0) r->p.x[r->p.count++] = P;
    if (r->p.count == 0) r->p.x[r->p.count++] = r->ranks_per_node;
}

static bool parse(int argc, char **argv, struct request *r, struct err *e) {
    static const char *const of_rows[] = {"p", "n", "density", "ranks-per-node", "against", "compute"};
    bool given[sizeof options / sizeof *options] = {false}, shape = false;
    option_defaults(&predict_options, r);
    if (!option_parse(&predict_options, r, given, argc, argv, 1, e)) return false;
    r->against = exchanges[r->against_number];
    r->against_given = option_given(&predict_options, given, "against");
    r->wire_given = option_given(&predict_options, given, "wire");
    r->wire = wires[r->wire_number]; /* NULL behind the last: all */
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows; i++)
        shape |= option_given(&predict_options, given, of_rows[i]);
    if (r->p.count == 0) default_p(r);
    if (r->best && !r->wire_given) r->wire = NULL;
    return check(r, shape, e);
}

/* -- the model ------------------------------------------------------------------------------------- */
static struct cost_case make_case(const struct request *r, double n, double density, int P) {
    return (struct cost_case){
        .n = (size_t)n, .k = density_to_k(density, (size_t)n), .P = P, .ranks_per_node = r->ranks_per_node};
}

/* The cost of a step in the format that was asked for, or in the fastest one; returns which (NULL: it takes none). */
static const struct wire_ops *cost_of(const struct request *r, const struct exchange_ops *ops,
                                      const struct cost_case *c, struct cost *cost) {
    const struct wire_ops *best = NULL;
    struct cost coo32, now;
    ops->cost(c, &coo32);
    *cost = coo32;
    for (size_t w = best_takes_format(ops) ? 0 : 1; wires[w]; w++) {
        if (!exchange_takes(ops, wires[w]) || (r->wire && wires[w] != r->wire)) continue;
        cost_in_format(&coo32, wires[w], &now);
        if (best && cost_seconds(&now, &r->net) >= cost_seconds(cost, &r->net)) continue;
        best = wires[w];
        *cost = now;
    }
    return best;
}

static double seconds_of(const struct request *r, const struct exchange_ops *ops, const struct cost_case *c) {
    struct cost cost;
    cost_of(r, ops, c, &cost);
    return cost_seconds(&cost, &r->net);
}

/* The fastest of those that can be compared; of equals the first in the table. */
static const struct exchange_ops *fastest(const struct request *r, const struct cost_case *c) {
    const struct exchange_ops *best = NULL;
    for (size_t i = 0; exchanges[i]; i++)
        if (!exchange_apart(exchanges[i]) && (!best || seconds_of(r, exchanges[i], c) < seconds_of(r, best, c)))
            best = exchanges[i];
    return best;
}

/* -- the table ------------------------------------------------------------------------------------- */
static void print_cost(const struct request *r, const struct exchange_ops *ops, const struct cost_case *c, bool best) {
    struct cost cost;
    const struct wire_ops *wire = cost_of(r, ops, c, &cost);
    double seconds = cost_seconds(&cost, &r->net);
    printf("%6d  %-12s", c->P, ops->name);
    if (r->wire_given) printf(" %-10s", wire ? wire->name : "-");
    printf(" %9.0f %13.0f", cost.alphas, cost.words);
    if (r->ranks_per_node > 1) printf(" %9.0f %13.0f", cost.node_alphas, cost.node_words);
    printf(" %12.6f", seconds);
    if (r->compute > 0) printf(" %12.6f %9.1f%%", r->compute + seconds, 100 * r->compute / (r->compute + seconds));
    const char *apart = exchange_apart(ops);
    printf("%s%s\n", best || apart ? "  " : "", best ? "fastest" : apart ? apart : "");
}

static void json_cost(const struct request *r, const struct exchange_ops *ops, const struct cost_case *c, bool best) {
    struct cost cost;
    struct json j;
    const struct wire_ops *wire = cost_of(r, ops, c, &cost);
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "predict", "cost");
    json_string(&j, "net", r->net.name);
    json_string(&j, "algo", ops->name);
    json_integer(&j, "n", (int64_t)c->n);
    json_integer(&j, "k", (int64_t)c->k);
    json_integer(&j, "ranks", c->P);
    json_integer(&j, "ranks_per_node", c->ranks_per_node);
    json_number(&j, "alphas", cost.alphas);
    json_number(&j, "words", cost.words);
    json_number(&j, "node_alphas", cost.node_alphas);
    json_number(&j, "node_words", cost.node_words);
    json_number(&j, "seconds", cost_seconds(&cost, &r->net));
    if (r->compute > 0) json_number(&j, "compute_s", r->compute);
    json_boolean(&j, "fastest", best);
    json_boolean(&j, "ranked", !exchange_apart(ops));
    if (wire)
        json_string(&j, "wire", wire->name);
    else
        json_null(&j, "wire");
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

static void print_costs(const struct request *r, double n, double density) {
    if (!r->json) {
        printf("\nn %.0f, density %g, k %zu\n%6s  %-12s", n, density, make_case(r, n, density, 1).k, "P", "algorithm");
        if (r->wire_given) printf(" %-10s", "format");
        printf(" %9s %13s", "alphas", "words");
        if (r->ranks_per_node > 1) printf(" %9s %13s", "in node", "words in node");
        printf(" %12s", "seconds");
        if (r->compute > 0) printf(" %12s %10s", "step", "efficiency");
        putchar('\n');
    }
    for (size_t p = 0; p < r->p.count; p++) {
        struct cost_case c = make_case(r, n, density, (int)r->p.x[p]);
        const struct exchange_ops *best = c.P > 1 ? fastest(r, &c) : NULL;
        for (size_t i = 0; exchanges[i]; i++)
            (r->json ? json_cost : print_cost)(r, exchanges[i], &c, exchanges[i] == best);
    }
}

/* -- where one overtakes another ------------------------------------------------------------------- */
/* P in 2..SEARCH_TO that ranks_per_node divides. */
static int first_p(const struct request *r) {
    return r->ranks_per_node > 1 ? r->ranks_per_node : 2;
}

struct span {
    const struct exchange_ops *ops;
    int from, to;
};

/* The stretches of P in which the same one is fastest (ops NULL), or ops is faster than r->against. span:
 * [SEARCH_TO]. Returns how many. */
static size_t find_spans(const struct request *r, double n, double density, const struct exchange_ops *ops,
                         struct span *span) {
    const struct exchange_ops *last = NULL;
    size_t count = 0;
    for (int P = first_p(r); P <= SEARCH_TO; P += r->ranks_per_node) {
        struct cost_case c = make_case(r, n, density, P);
        const struct exchange_ops *now = NULL;
        if (!ops)
            now = fastest(r, &c);
        else if (seconds_of(r, ops, &c) < seconds_of(r, r->against, &c))
            now = ops;
        if (now && now != last) span[count++] = (struct span){now, P, P};
        if (now) span[count - 1].to = P;
        last = now;
    }
    return count;
}

static void print_spans(const struct span *span, size_t count, bool names) {
    for (size_t i = 0; i < count && i < SHOWN; i++) {
        printf("%s%s%s%d", i ? ", " : "", names ? span[i].ops->name : "", names ? " " : "", span[i].from);
        if (span[i].to > span[i].from) printf(" to %d", span[i].to);
    }
    if (count > SHOWN) printf(", and %zu more stretches", count - SHOWN);
    puts(count ? "" : "nowhere");
}

static void json_spans(const struct request *r, double n, double density, const struct exchange_ops *ops,
                       const struct span *span, size_t count) {
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "predict", ops ? "faster" : "fastest");
    json_string(&j, "net", r->net.name);
    json_integer(&j, "n", (int64_t)n);
    json_number(&j, "density", density);
    json_integer(&j, "ranks_per_node", r->ranks_per_node);
    if (ops) json_string(&j, "algo", ops->name);
    if (ops) json_string(&j, "against", r->against->name);
    json_array(&j, "ranks");
    for (size_t i = 0; i < count; i++) {
        json_object(&j, NULL);
        if (!ops) json_string(&j, "algo", span[i].ops->name);
        json_integer(&j, "from", span[i].from);
        json_integer(&j, "to", span[i].to);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

static void print_crossovers(const struct request *r, double n, double density) {
    static struct span span[SEARCH_TO];
    if (first_p(r) > SEARCH_TO) return;
    size_t count = find_spans(r, n, density, NULL, span);
    if (r->json) {
        json_spans(r, n, density, NULL, span, count);
    } else {
        printf("fastest of %d to %d ranks: ", first_p(r), SEARCH_TO / r->ranks_per_node * r->ranks_per_node);
        print_spans(span, count, true);
        printf("faster than %s at\n", r->against->name);
    }
    for (size_t i = 0; exchanges[i]; i++) {
        if (exchanges[i] == r->against || exchange_apart(exchanges[i])) continue;
        count = find_spans(r, n, density, exchanges[i], span);
        if (r->json) {
            json_spans(r, n, density, exchanges[i], span, count);
        } else {
            printf("  %-12s ", exchanges[i]->name);
            print_spans(span, count, false);
        }
    }
}

static void json_network(const struct network *net) {
    struct json j;
    json_open(&j);
    json_object(&j, NULL);
    json_string(&j, "predict", "network");
    json_string(&j, "net", net->name);
    json_number(&j, "alpha", net->alpha);
    json_number(&j, "beta", net->beta);
    json_number(&j, "node_alpha", net->node_alpha);
    json_number(&j, "node_beta", net->node_beta);
    json_string(&j, "source", net->source);
    json_end(&j);
    puts(json_text(&j));
    json_close(&j);
}

static void print_network(const struct request *r) {
    if (r->json) {
        json_network(&r->net);
        return;
    }
    printf("network %s: alpha %.4g us, beta %.4g ns/word", r->net.name, r->net.alpha * 1e6, r->net.beta * 1e9);
    if (r->ranks_per_node > 1)
        printf("; inside a node of %d ranks alpha %.4g us, beta %.4g ns/word", r->ranks_per_node,
               r->net.node_alpha * 1e6, r->net.node_beta * 1e9);
    printf("\n%s%s", r->net.source, *r->net.source ? "\n" : "");
}

static bool rank_all(const struct request *r, const struct predict_best *b, double n, double density, struct err *e) {
    struct cost_case c[OPTION_LIST_MAX];
    for (size_t i = 0; i < r->p.count; i++) c[i] = make_case(r, n, density, (int)r->p.x[i]);
    if (!r->json) printf("\nn %.0f, density %g, k %zu\n", n, density, c[0].k);
    return predict_best(b, density, c, r->p.count, e);
}

/* Everything that the options ask for. */
static bool show(const struct request *r, struct err *e) {
    struct predict_best b = {.net = &r->net, .only = r->wire, .compute = r->compute, .json = r->json};
    b.costs = r->costs;
    b.on = r->on;
    if (r->rows) return predict_rows(r->rows, &r->net, r->json, e);
    if (r->best && !predict_best_open(&b, e)) return false;
    for (size_t i = 0; i < r->n.count; i++)
        for (size_t d = 0; d < r->density.count; d++) {
            if (r->best) {
                if (!rank_all(r, &b, r->n.x[i], r->density.x[d], e)) return false;
                continue;
            }
            print_costs(r, r->n.x[i], r->density.x[d]);
            print_crossovers(r, r->n.x[i], r->density.x[d]);
        }
    return true;
}

int predict(int argc, char **argv) {
    static struct request r; /* large */
    struct err e = {0};
    bool ok = parse(argc, argv, &r, &e);
    if (ok) print_network(&r);
    if (ok && show(&r, &e)) return EXIT_DONE;
    fflush(stdout);
    fprintf(stderr, "sparsetrain: %s\n", e.text);
    return err_status(&e);
}
