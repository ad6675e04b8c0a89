/* predict.c: the cost lines of all exchanges as numbers: gTop-k's Table I and Ok-Topk's Table 1 for a given network,
 * and the numbers of ranks from which one algorithm overtakes another; with --best, whom to take. */
#include "cli/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/table.h"
#include "cli/numbers.h"
#include "cli/predict_best.h"
#include "cli/predict_rows.h"
#include "comm/best.h"
#include "topk/selector.h"

enum { LIST_MAX = 32, SEARCH_TO = 4096, SHOWN = 6 };

struct list {
    double x[LIST_MAX];
    size_t count;
};

struct request {
    struct network net;
    struct list p, n, density;
    int ranks_per_node;
    double compute; /* [s] a step; 0: not given */
    const struct exchange_ops *against;
    const struct wire_ops *wire; /* NULL with wire_given: all */
    const char *rows, *costs, *on;
    bool wire_given, against_given, best, json;
};

const char predict_usage[] =
    "usage: sparsetrain predict --net FILE|NAME [--p LIST] [--n LIST] [--density LIST] [--ranks-per-node M]\n"
    "                           [--against ALGO] [--wire NAME|all] [--compute SECONDS] [--rows FILE] [--json]\n"
    "       sparsetrain predict --best --net FILE|NAME [--costs FILE|none] [--device NAME] ...\n"
    "What a step of every exchange costs by the alpha-beta model, and from how many ranks on one is faster than\n"
    "another. Selecting, packing and merging are not in it but with --best, nor what overlaps with computing. LIST:\n"
    "numbers with commas between them.\n"
    "  --net FILE|NAME     the network: 1gbe, 10gbe, 25gbe, 100gbe, aries, or a file of sparsetrain p2p --out\n"
    "  --p LIST            ranks (default 2,4,8,16,32,64,128,256)\n"
    "  --n LIST            gradient lengths (default 25000000: ResNet-50, as in gTop-k's Fig. 9)\n"
    "  --density LIST      shares of the gradient that are exchanged (default 0.001)\n"
    "  --ranks-per-node M  for hitopk and torus2d, which use the network inside a node too (default 1)\n"
    "  --against ALGO      whom the others are to overtake (default dense)\n"
    "  --wire NAME|all     the format of sparse vectors (default coo32); all: for each algorithm that in which it is\n"
    "                      fastest\n"
    "  --best              every algorithm in every format (or in that of --wire), the fastest first: what train\n"
    "                      --algo auto would try. With several P: the first of each. Selecting, packing, unpacking\n"
    "                      and merging are charged: as measured in this process, some milliseconds before, or\n"
    "  --costs FILE|none   as in a table of scripts/measure-costs.sh, which has this --n and --density; not at all\n"
    "  --device NAME       on this device of the table, or of this machine (default cpu)\n"
    "  --compute SECONDS   forward and backward of a step: adds the time of the whole step and its efficiency\n"
    "  --rows FILE         rows of sparsetrain bench --json: measured and predicted side by side\n"
    "  --json              one JSON object per line instead of the tables, the network [s, s/word] first\n";

/* -- options --------------------------------------------------------------------------------------- */
static bool take_list(const struct number_rule *rule, const char *text, struct list *list, struct err *e) {
    return numbers_list(rule, text, list->x, LIST_MAX, &list->count, e);
}

/* One option with its value. */
static bool take(const char *option, const char *value, struct request *r, struct err *e) {
    const struct number_rule ranks = {"predict", option, 1, 1e6, true},
                             lengths = {"predict", option, 1, 4294967295.0, true},
                             shares = {"predict", option, NUMBER_ABOVE_0, 1, false},
                             seconds = {"predict", option, 0, 1e9, false};
    double per_node;
    if (strcmp(option, "--net") == 0) return network_find(value, &r->net, e);
    if (strcmp(option, "--p") == 0) return take_list(&ranks, value, &r->p, e);
    if (strcmp(option, "--n") == 0) return take_list(&lengths, value, &r->n, e);
    if (strcmp(option, "--density") == 0) return take_list(&shares, value, &r->density, e);
    if (strcmp(option, "--against") == 0) {
        r->against_given = true;
        TABLE_FIND(exchanges, value, r->against);
        return r->against ? true : err_set(e, "predict: there is no algorithm %.60s; sparsetrain list has all", value);
    }
    if (strcmp(option, "--wire") == 0) {
        r->wire_given = true;
        TABLE_FIND(wires, value, r->wire);
        return r->wire || strcmp(value, "all") == 0 ||
               err_set(e, "predict: there is no wire format %.60s; sparsetrain list has all", value);
    }
    if (strcmp(option, "--rows") == 0) {
        r->rows = value;
        return true;
    }
    if (strcmp(option, "--costs") == 0 || strcmp(option, "--device") == 0) {
        *(option[2] == 'c' ? &r->costs : &r->on) = value;
        return true;
    }
    if (strcmp(option, "--compute") == 0) return numbers_one(&seconds, value, &r->compute, e);
    if (!numbers_one(&ranks, value, &per_node, e)) return false;
    r->ranks_per_node = (int)per_node;
    return true;
}

static bool check(const struct request *r, bool shape, struct err *e) {
    if (!*r->net.name)
        return err_set(e, "predict: --net is needed: 1gbe, 10gbe, 25gbe, 100gbe, aries, or a file of sparsetrain p2p "
                          "--out");
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
    static const char *const valued[] = {"--net",     "--p",    "--n",    "--density", "--ranks-per-node", "--against",
                                         "--compute", "--wire", "--rows", "--costs",   "--device"};
    bool shape = false; /* an option that does not go with --rows */
    *r = (struct request){.ranks_per_node = 1};
    TABLE_FIND(exchanges, "dense", r->against);
    r->n = (struct list){{25000000}, 1};
    r->density = (struct list){{0.001}, 1};
    r->wire = wires[0];
    for (int i = 1; i < argc; i++) {
        size_t v = 0;
        if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--best") == 0) {
            *(argv[i][2] == 'j' ? &r->json : &r->best) = true;
            continue;
        }
        while (v < sizeof valued / sizeof *valued && strcmp(argv[i], valued[v]) != 0) v++;
        if (v == sizeof valued / sizeof *valued)
            return err_set(e, "predict: unknown option %.60s; sparsetrain predict --help shows them all", argv[i]);
        if (i + 1 == argc) return err_set(e, "predict: %s needs a value", argv[i]);
        if (!take(argv[i], argv[i + 1], r, e)) return false;
        shape |= v >= 1 && v <= 6;
        i++;
    }
    if (r->p.count == 0) default_p(r);
    if (r->best && !r->wire_given) r->wire = NULL;
    return check(r, shape, e);
}

/* -- the model ------------------------------------------------------------------------------------- */
static struct cost_case make_case(const struct request *r, double n, double density, int P) {
    return (struct cost_case){(size_t)n, density_to_k(density, (size_t)n), P, r->ranks_per_node};
}

/* The cost of a step in the format that was asked for, or in the fastest one; returns which (NULL: it takes none). */
static const struct wire_ops *cost_of(const struct request *r, const struct exchange_ops *ops,
                                      const struct cost_case *c, struct cost *cost) {
    const struct wire_ops *best = NULL;
    struct cost coo32, now;
    ops->cost(c, &coo32);
    *cost = coo32;
    for (size_t w = 0; best_takes_format(ops) && wires[w]; w++) {
        if (r->wire && wires[w] != r->wire) continue;
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
    struct cost_case c[LIST_MAX];
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
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(predict_usage, stdout);
        return EXIT_DONE;
    }
    bool ok = parse(argc, argv, &r, &e);
    if (ok) print_network(&r);
    if (ok && show(&r, &e)) return EXIT_DONE;
    fflush(stdout);
    fprintf(stderr, "sparsetrain: %s\n", e.text);
    return err_status(&e);
}
