/* bench_p2p.c: the verb p2p: what a message costs (cli/ping_pong.h), as tables, as JSON and as a network file for the
 * cost model (comm/cost.h). */
#include "cli/bench_p2p.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/out_file.h"
#include "cli/ping_pong.h"
#include "cli/watching.h"

enum { REPEAT_MAX = 10000 };
#define BYTES_MAX 1073741824.0 /* 1 GiB */

struct request {
    struct ping_pong play;
    bool json;
    const char *out;
};

const char p2p_usage[] =
    "usage: mpirun -np P sparsetrain p2p [--sizes MIN:MAX:FACTOR] [--repeat N] [--pairs first|all] [--out FILE] "
    "[--timeout S] [--json]\n"
    "Ping-pong between two ranks, the others asleep; fits the time of a message of m 4-byte words by alpha + beta m.\n"
    "  --sizes MIN:MAX:FACTOR  message sizes [bytes; K, M, G: 1024, ...], each FACTOR times the last\n"
    "                          (default 4:16M:2)\n"
    "  --repeat N              rounds; each measures every size once; medians are shown (default 20)\n"
    "  --pairs first|all       first (default): rank 0 with the first rank of another node and with the first other\n"
    "                          rank of its own; all: every pair, the slowest of each kind counts\n"
    "  --out FILE              write alpha and beta as a network file for sparsetrain predict --net FILE\n"
    "  --timeout S             end the job, naming the rank, when one has given no sign of life for S seconds (default "
    "300;\n"
    "                          0: never)\n"
    "  --json                  one JSON object per size, and one per pair with the fit, instead of the tables\n";

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

static bool parse_sizes(const char *text, struct request *r, struct err *e) {
    double least = 0, most = 0, factor = 0;
    char *end = NULL;
    const char *at = parse_bytes(text, &least);
    if (at && *at == ':') at = parse_bytes(at + 1, &most);
    if (at && *at == ':') factor = strtod(at + 1, &end);
    if (!end || *end || !(least >= 4 && least <= most && most <= BYTES_MAX && factor > 1 && factor <= BYTES_MAX))
        return err_set(e, "p2p: --sizes %.60s: MIN:MAX:FACTOR is needed, 4 <= MIN <= MAX <= 1G bytes, FACTOR above 1",
                       text);
    if (!ping_pong_sizes(&r->play, least, most, factor))
        return err_set(e, "p2p: --sizes %.60s: more than %d sizes", text, PING_SIZES_MAX);
    if (r->play.sizes < 3)
        return err_set(e, "p2p: --sizes %.60s: %zu size%s; a line with its error takes at least 3", text, r->play.sizes,
                       r->play.sizes == 1 ? "" : "s");
    return true;
}

static bool parse_value(const char *option, const char *value, struct request *r, struct err *e) {
    if (strcmp(option, "--sizes") == 0) return parse_sizes(value, r, e);
    if (strcmp(option, "--out") == 0) {
        r->out = value;
        return true;
    }
    if (strcmp(option, "--pairs") == 0) {
        r->play.all = strcmp(value, "all") == 0;
        if (!r->play.all && strcmp(value, "first") != 0)
            return err_set(e, "p2p: --pairs %.60s: first or all is needed", value);
        return true;
    }
    if (strcmp(option, "--timeout") == 0) return watching_parse("p2p", value, e);
    char *end;
    long rounds = strtol(value, &end, 10);
    if (end == value || *end || rounds < 1 || rounds > REPEAT_MAX)
        return err_set(e, "p2p: --repeat %.60s: a whole number from 1 to %d is needed", value, REPEAT_MAX);
    r->play.repeat = (size_t)rounds;
    return true;
}

static bool parse(int argc, char **argv, struct request *r, struct err *e) {
    static const char *const valued[] = {"--sizes", "--repeat", "--pairs", "--out", "--timeout"};
    *r = (struct request){.play.repeat = 20};
    parse_sizes("4:16M:2", r, e);
    for (int i = 1; i < argc; i++) {
        bool takes_value = false;
        if (strcmp(argv[i], "--json") == 0) {
            r->json = true;
            continue;
        }
        for (size_t v = 0; v < sizeof valued / sizeof *valued; v++) takes_value |= strcmp(argv[i], valued[v]) == 0;
        if (!takes_value)
            return err_set(e, "p2p: unknown option %.60s; sparsetrain p2p --help shows them all", argv[i]);
        if (i + 1 == argc) return err_set(e, "p2p: %s needs a value", argv[i]);
        if (!parse_value(argv[i], argv[i + 1], r, e)) return false;
        i++;
    }
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
    struct request r;
    struct ping_pair *pair;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        if (c->rank == 0) fputs(p2p_usage, stdout);
        return EXIT_DONE;
    }
    if (parse(argc, argv, &r, e) && c->size < 2) err_set(e, "p2p: two ranks are needed: mpirun -np 2 sparsetrain p2p");
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
