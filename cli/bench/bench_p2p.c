/* bench_p2p.c: the verb p2p: what a message costs (cli/network/ping_pong.h), as tables, as JSON and as a network file
 * for the cost model (comm/cost/cost.h). */
#include "cli/bench/bench_p2p.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/out_file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/network/ping_pong.h"
#include "cli/observe/watching.h"

enum { REPEAT_MAX = 10000 };
#define BYTES_MAX 1073741824.0 /* 1 GiB */

struct request {
    struct ping_pong play;
    int pairs; /* of pair_names */
    double timeout;
    bool json;
    const char *out;
};

static const char *const pair_names[] = {"first", "all", NULL};

/* -- options --------------------------------------------------------------------------------------- */
/* A number with K, M or G behind it; the rest of the text. NULL: no number. */
static const char *parse_bytes(const char *text, double *bytes) {
    char *end;
    *bytes = strtod(text, &end);
    if (end == text) return NULL;
    const char *units = "KMG", *unit = *end ? strchr(units, *end) : NULL;
    if (!unit) return end;
    *bytes *= pow(1024, (double)(unit - units + 1));
    return end + 1;
}

static bool set_sizes(void *play, const char *text, struct err *e) {
    struct ping_pong *p = play;
    double least = 0, most = 0, factor = 0;
    char *end = NULL;
    const char *at = parse_bytes(text, &least);
    if (at && *at == ':') at = parse_bytes(at + 1, &most);
    if (at && *at == ':') factor = strtod(at + 1, &end);
    if (!end || *end || !(least >= 4 && least <= most && most <= BYTES_MAX && factor > 1 && factor <= BYTES_MAX))
        return err_set(e, "--sizes %.60s: MIN:MAX:FACTOR is needed, 4 <= MIN <= MAX <= 1G bytes, FACTOR above 1", text);
    if (!ping_pong_sizes(p, least, most, factor))
        return err_set(e, "--sizes %.60s: more than %d sizes", text, PING_SIZES_MAX);
    if (p->sizes < 3)
        return err_set(e, "--sizes %.60s: %zu size%s; a line with its error takes at least 3", text, p->sizes,
                       p->sizes == 1 ? "" : "s");
    return true;
}

static const struct option_row options[] = {
    {"sizes", "MIN:MAX:FACTOR", OPTION_OTHER, "4:16M:2",
     "message sizes [bytes; K, M, G: 1024, ...], each FACTOR times the last", OPTION_AT(struct request, play),
     .set = set_sizes},
    {"repeat", "N", OPTION_SIZE, "20", "rounds; each measures every size once; medians are shown",
     OPTION_AT(struct request, play.repeat), .min = 1, .max = REPEAT_MAX},
    {"pairs", "WHICH", OPTION_CHOICE, "first",
     "first: rank 0 with the first rank of another node and with the first other rank of its own; all: every pair, the "
     "slowest of each kind counts",
     OPTION_AT(struct request, pairs), .names = pair_names},
    {"out", "FILE", OPTION_WORD, NULL, "write alpha and beta as a network file for sparsetrain predict --net FILE",
     OPTION_AT(struct request, out)},
    {"timeout", "S", OPTION_REAL, "300", WATCHING_HELP, OPTION_AT(struct request, timeout), .max = 1e9},
    {"json", NULL, OPTION_FLAG, NULL, "one JSON object per size, and one per pair with the fit, instead of the tables",
     OPTION_AT(struct request, json)},
};

const struct option_table p2p_options = {
    .verb = "p2p",
    .row = options,
    .rows = sizeof options / sizeof *options,
    .call = "mpirun -np P sparsetrain p2p",
    .about =
        "Ping-pong between two ranks, the others asleep; fits the time of a message of m 4-byte words by alpha + beta "
        "m.",
};

static bool parse(struct request *r, int argc, char **argv, struct err *e) {
    option_defaults(&p2p_options, r);
    if (!option_parse(&p2p_options, r, NULL, argc, argv, 1, e)) return false;
    r->play.all = r->pairs == 1;
    return true;
}

/* -- what is shown --------------------------------------------------------------------------------- */
static void print_pair(const struct request *r, const struct ping_pair *p) {
    printf("ranks %d and %d, %s\n", p->low, p->high, p->inside ? "inside a node" : "between nodes");
    printf("%12s %12s %12s %12s %9s %10s\n", "bytes", "median us", "least us", "fitted us", "misfit", "MB/s");
    for (size_t s = 0; s < p->sizes; s++) {
        double t = p->median[s];
        printf("%12zu %12.3f %12.3f %12.3f %+8.1f%% %10.1f\n", r->play.bytes[s], t * 1e6, p->least[s] * 1e6,
               ping_pong_fitted(p, r->play.bytes[s]) * 1e6, 100 * (ping_pong_fitted(p, r->play.bytes[s]) / t - 1),
               (double)r->play.bytes[s] / t / 1e6);
    }
}

/* "NAME VALUE UNIT (95%: LOW to HIGH)" */
static void print_interval(const char *name, double value, double error, const char *unit) {
    printf("%s %.4g %s (95%%: %.4g to %.4g)", name, value, unit, fmax(0, value - error), value + error);
}

static void print_fit(const struct ping_pair *p) {
    print_interval("alpha", p->line.alpha * 1e6, p->line.alpha_error * 1e6, "us");
    print_interval(", beta", p->line.beta * 1e9, p->line.beta_error * 1e9, "ns/word");
    printf(", R2 %.4f, worst misfit %.0f%%\n", p->line.r2, 100 * p->line.worst);
}

static void json_pair(const struct request *r, const struct ping_pair *p) {
    struct json j;
    json_open(&j);
    for (size_t s = 0; s <= p->sizes; s++) {
        json_reset(&j);
        json_object(&j, NULL);
        json_string(&j, "bench", s < p->sizes ? "p2p" : "p2p-fit");
        json_integer(&j, "low", p->low);
        json_integer(&j, "high", p->high);
        json_boolean(&j, "inside", p->inside);
        if (s < p->sizes) {
            json_integer(&j, "bytes", (int64_t)r->play.bytes[s]);
            json_number(&j, "median_s", p->median[s]);
            json_number(&j, "min_s", p->least[s]);
            json_number(&j, "fitted_s", ping_pong_fitted(p, r->play.bytes[s]));
        } else {
            json_integer(&j, "repeat", (int64_t)r->play.repeat);
            json_number(&j, "alpha_s", p->line.alpha);
            json_number(&j, "alpha_error_s", p->line.alpha_error);
            json_number(&j, "beta_s", p->line.beta);
            json_number(&j, "beta_error_s", p->line.beta_error);
            json_number(&j, "r2", p->line.r2);
            json_boolean(&j, "poor", line_fit_poor(&p->line));
            json_number(&j, "worst_misfit", p->line.worst);
        }
        json_end(&j);
        puts(json_text(&j));
    }
    json_close(&j);
}

/* -- the verb ------------------------------------------------------------------------------------------ */
static bool write_network(const struct comm *c, const struct request *r, const struct ping_pair *pair, size_t count,
                          struct err *e) {
    const struct ping_pair *between = ping_pong_slowest(&r->play, pair, count, false),
                           *inside = ping_pong_slowest(&r->play, pair, count, true);
    const struct ping_pair *outer = between ? between : inside, *inner = inside ? inside : between;
    const char *base = strrchr(r->out, '/');
    struct network net;
    ping_pong_network(&r->play, pair, count, &net);
    char comment[512];
    snprintf(net.name, sizeof net.name, "%s", base ? base + 1 : r->out);
    snprintf(net.source, sizeof net.source, "measured: sparsetrain p2p, %s, %d rank%s on %d node%s", comm_library(),
             c->size, c->size == 1 ? "" : "s", c->nodes, c->nodes == 1 ? "" : "s");
    snprintf(comment, sizeof comment,
             "ping-pong of %zu to %zu bytes, %zu rounds; alpha [s], beta [s/word of 4 bytes]\n"
             "alpha +- %.2g, beta +- %.2g (95%%), R2 %.2f%s: ranks %d and %d%s\n"
             "node_alpha +- %.2g, node_beta +- %.2g (95%%), R2 %.2f%s: ranks %d and %d%s",
             r->play.bytes[0], r->play.bytes[r->play.sizes - 1], r->play.repeat, outer->line.alpha_error,
             outer->line.beta_error, outer->line.r2, line_fit_poor(&outer->line) ? ", a poor fit" : "", outer->low,
             outer->high, outer->inside ? ", which share a node: there is only one" : "", inner->line.alpha_error,
             inner->line.beta_error, inner->line.r2, line_fit_poor(&inner->line) ? ", a poor fit" : "", inner->low,
             inner->high, inner->inside ? "" : ", of two nodes: no node has two ranks");
    return network_write(r->out, &net, comment, e);
}

static void show(const struct request *r, const struct ping_pair *pair, size_t count) {
    const char *const kinds[] = {"between nodes", "inside a node"};
    for (size_t i = 0; i < count; i++) {
        if (r->json) {
            json_pair(r, &pair[i]);
            continue;
        }
        if (!r->play.all || count == 1)
            print_pair(r, &pair[i]);
        else
            printf("ranks %3d and %3d, %s: ", pair[i].low, pair[i].high, kinds[pair[i].inside]);
        print_fit(&pair[i]);
    }
    for (int inside = 0; inside < 2 && r->play.all && count > 1 && !r->json; inside++) {
        const struct ping_pair *worst = ping_pong_slowest(&r->play, pair, count, inside);
        if (!worst) continue;
        printf("\nthe slowest: ");
        print_pair(r, worst);
        print_fit(worst);
    }
}

/* Of several pairs the worst. On stderr: the rows may go to a file. */
static void warn_of_poor_fit(const struct ping_pair *pair, size_t count) {
    size_t worst = 0;
    for (size_t i = 1; i < count; i++)
        if (pair[i].line.r2 < pair[worst].line.r2) worst = i;
    if (!line_fit_poor(&pair[worst].line)) return;
    fflush(stdout);
    fprintf(stderr,
            "# the line fits the times of ranks %d and %d poorly (R2 %.2f), so alpha and beta say little: "
            "measure again where nothing else runs, with a larger --repeat, or over a smaller range of --sizes\n",
            pair[worst].low, pair[worst].high, pair[worst].line.r2);
}

int bench_p2p(struct comm *c, int argc, char **argv, struct err *e) {
    struct request r = {0};
    struct ping_pair *pair;
    if (parse(&r, argc, argv, e) && c->size < 2) err_set(e, "p2p: two ranks are needed: mpirun -np 2 sparsetrain p2p");
    if (!e->text[0] && r.out && c->rank == 0) out_file_check(r.out, "--out", e);
    if (comm_agree(c, e)) return EXIT_USER;
    comm_set_wire_check(c, false);
    if (c->rank == 0 && !r.json)
        printf("%s, %d ranks on %d node%s; half round trips, medians of %zu rounds\n", comm_library(), c->size,
               c->nodes, c->nodes == 1 ? "" : "s", r.play.repeat);
    fflush(stdout);
    size_t count = ping_pong_measure(c, &r.play, &pair);
    if (c->rank == 0) {
        show(&r, pair, count);
        warn_of_poor_fit(pair, count);
        if (r.out) write_network(c, &r, pair, count, e);
    }
    mem_free(pair);
    return comm_agree(c, e) ? EXIT_USER : EXIT_DONE;
}
