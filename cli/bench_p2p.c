/* bench_p2p.c: what a message costs: ping-pong over message sizes, and the line t = alpha + beta m through the times
 * (gTop-k, ICDCS 2019, Fig. 8), for the cost model (comm/cost.h).
 *
 * Two ranks play, all others sleep: a rank that waits inside MPI spins, and on a machine with few cores it would take
 * them from the players. So rank 0 tells each rank when its turn has come, and waiting is a look at the request every
 * two milliseconds.
 *
 * One measurement is the mean half round trip of a few exchanges, as many as fill about half a millisecond. Sizes
 * are interleaved: every round measures each of them once, so that a machine whose speed wanders bends no line.
 * What counts is the median over the rounds.
 *
 * The fit (cli/line_fit.h) weighs with 1/t^2, so that relative errors count. */
#include "cli/bench_p2p.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/line_fit.h"
#include "cli/median.h"
#include "comm/cost.h"

enum { SIZES_MAX = 256, REPEAT_MAX = 10000, ROUND_TRIPS_MAX = 100 };
enum { TAG_TURN = 1, TAG_COUNT, TAG_BALL, TAG_RESULT };
#define BYTES_MAX 1073741824.0 /* 1 GiB */

struct request {
    size_t bytes[SIZES_MAX], sizes, repeat; /* bytes: multiples of 4, ascending */
    bool all, json;
    const char *out;
};

static const char usage[] =
    "usage: mpirun -np P sparsetrain p2p [--sizes MIN:MAX:FACTOR] [--repeat N] [--pairs first|all] [--out FILE] "
    "[--json]\n"
    "Ping-pong between two ranks, the others asleep; fits the time of a message of m 4-byte words by alpha + beta m.\n"
    "  --sizes MIN:MAX:FACTOR  message sizes [bytes; K, M, G: 1024, ...], each FACTOR times the last\n"
    "                          (default 4:16M:2)\n"
    "  --repeat N              rounds; each measures every size once; medians are shown (default 20)\n"
    "  --pairs first|all       first (default): rank 0 with the first rank of another node and with the first other\n"
    "                          rank of its own; all: every pair, the slowest of each kind counts\n"
    "  --out FILE              write alpha and beta as a network file for sparsetrain predict --net FILE\n"
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
    r->sizes = 0;
    for (double bytes = least; bytes <= most * (1 + 1e-9); bytes *= factor) {
        size_t whole = (size_t)(bytes / 4) * 4;
        if (r->sizes > 0 && r->bytes[r->sizes - 1] == whole) continue;
        if (r->sizes == SIZES_MAX) return err_set(e, "p2p: --sizes %.60s: more than %d sizes", text, SIZES_MAX);
        r->bytes[r->sizes++] = whole;
    }
    if (r->sizes < 3)
        return err_set(e, "p2p: --sizes %.60s: %zu size%s; a line with its error takes at least 3", text, r->sizes,
                       r->sizes == 1 ? "" : "s");
    return true;
}

static bool parse_value(const char *option, const char *value, struct request *r, struct err *e) {
    if (strcmp(option, "--sizes") == 0) return parse_sizes(value, r, e);
    if (strcmp(option, "--out") == 0) {
        r->out = value;
        return true;
    }
    if (strcmp(option, "--pairs") == 0) {
        r->all = strcmp(value, "all") == 0;
        if (!r->all && strcmp(value, "first") != 0)
            return err_set(e, "p2p: --pairs %.60s: first or all is needed", value);
        return true;
    }
    char *end;
    long rounds = strtol(value, &end, 10);
    if (end == value || *end || rounds < 1 || rounds > REPEAT_MAX)
        return err_set(e, "p2p: --repeat %.60s: a whole number from 1 to %d is needed", value, REPEAT_MAX);
    r->repeat = (size_t)rounds;
    return true;
}

static bool parse(int argc, char **argv, struct request *r, struct err *e) {
    static const char *const valued[] = {"--sizes", "--repeat", "--pairs", "--out"};
    *r = (struct request){.repeat = 20};
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

/* -- two play, the others sleep -------------------------------------------------------------------- */
static void wait_asleep(struct comm *c, struct comm_request *request) {
    while (!comm_test(c, request)) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void receive_asleep(struct comm *c, int source, int tag, void *data, size_t bytes) {
    struct comm_request request;
    comm_irecv(c, source, tag, data, bytes, &request);
    wait_asleep(c, &request);
}

struct balls {
    char *out, *in; /* [largest size] bytes */
};

static void round_trips(struct comm *c, int peer, bool serves, const struct balls *b, size_t bytes, int count) {
    for (int i = 0; i < count; i++) {
        if (serves) comm_send(c, peer, TAG_BALL, b->out, bytes);
        comm_recv(c, peer, TAG_BALL, b->in, bytes);
        if (!serves) comm_send(c, peer, TAG_BALL, b->out, bytes);
    }
}

/* How many round trips of each size make up a measurement; the server decides. Also the warm-up. */
static void choose_counts(struct comm *c, int peer, bool serves, const struct balls *b, const struct request *r,
                          int32_t *count) {
    for (size_t s = 0; s < r->sizes; s++) {
        round_trips(c, peer, serves, b, r->bytes[s], 1);
        double begin = clock_now();
        round_trips(c, peer, serves, b, r->bytes[s], 2);
        double trips = 0.5e-3 / ((clock_now() - begin) / 2 + 1e-9);
        count[s] = trips < 1 ? 1 : trips > ROUND_TRIPS_MAX ? ROUND_TRIPS_MAX : (int32_t)trips;
    }
    if (serves)
        comm_send(c, peer, TAG_COUNT, count, r->sizes * sizeof *count);
    else
        comm_recv(c, peer, TAG_COUNT, count, r->sizes * sizeof *count);
}

/* seconds: [sizes][repeat] half round trips, filled in by the one who serves. */
static void play(struct comm *c, int peer, bool serves, const struct balls *b, const struct request *r,
                 double *seconds) {
    int32_t count[SIZES_MAX];
    choose_counts(c, peer, serves, b, r, count);
    for (size_t round = 0; round < r->repeat; round++) {
        for (size_t s = 0; s < r->sizes; s++) {
            round_trips(c, peer, serves, b, r->bytes[s], 1); /* the caches are as the size leaves them */
            double begin = clock_now();
            round_trips(c, peer, serves, b, r->bytes[s], count[s]);
            seconds[s * r->repeat + round] = (clock_now() - begin) / (2.0 * count[s]);
        }
    }
}

/* What rank 0 tells a rank: play with `peer`, or (-1) that all is over. */
struct turn {
    int32_t peer, serves;
};

static void take_turns(struct comm *c, const struct balls *b, const struct request *r, double *seconds) {
    for (;;) {
        struct turn turn;
        receive_asleep(c, 0, TAG_TURN, &turn, sizeof turn);
        if (turn.peer < 0) return;
        play(c, turn.peer, turn.serves, b, r, seconds);
        if (turn.serves) comm_send(c, 0, TAG_RESULT, seconds, r->sizes * r->repeat * sizeof *seconds);
    }
}

/* On rank 0: low < high play, low serves. */
static void play_pair(struct comm *c, int low, int high, const struct balls *b, const struct request *r,
                      double *seconds) {
    comm_send(c, high, TAG_TURN, &(struct turn){low, 0}, sizeof(struct turn));
    if (low == 0) {
        play(c, high, true, b, r, seconds);
        return;
    }
    comm_send(c, low, TAG_TURN, &(struct turn){high, 1}, sizeof(struct turn));
    receive_asleep(c, low, TAG_RESULT, seconds, r->sizes * r->repeat * sizeof *seconds);
}

/* -- the line through the times -------------------------------------------------------------------- */
struct pair {
    int low, high;
    bool inside;                                /* of one node */
    double median[SIZES_MAX], least[SIZES_MAX]; /* [s] */
    struct line_fit line;                       /* over words */
};

static void evaluate(const struct request *r, double *seconds, struct pair *p) {
    double words[SIZES_MAX];
    for (size_t s = 0; s < r->sizes; s++) {
        double *of_size = seconds + s * r->repeat;
        words[s] = (double)r->bytes[s] / 4;
        p->median[s] = median(of_size, r->repeat);
        p->least[s] = of_size[0];
    }
    line_fit(words, p->median, r->sizes, &p->line);
}

/* -- what is shown --------------------------------------------------------------------------------- */
static double fitted(const struct pair *p, size_t bytes) {
    return p->line.alpha + p->line.beta * (double)bytes / 4;
}

static void print_pair(const struct request *r, const struct pair *p) {
    printf("ranks %d and %d, %s\n", p->low, p->high, p->inside ? "inside a node" : "between nodes");
    printf("%12s %12s %12s %12s %9s %10s\n", "bytes", "median us", "least us", "fitted us", "misfit", "MB/s");
    for (size_t s = 0; s < r->sizes; s++) {
        double t = p->median[s];
        printf("%12zu %12.3f %12.3f %12.3f %+8.1f%% %10.1f\n", r->bytes[s], t * 1e6, p->least[s] * 1e6,
               fitted(p, r->bytes[s]) * 1e6, 100 * (fitted(p, r->bytes[s]) / t - 1), (double)r->bytes[s] / t / 1e6);
    }
}

/* "NAME VALUE UNIT (95%: LOW to HIGH)" */
static void print_interval(const char *name, double value, double error, const char *unit) {
    printf("%s %.4g %s (95%%: %.4g to %.4g)", name, value, unit, fmax(0, value - error), value + error);
}

static void print_fit(const struct pair *p) {
    print_interval("alpha", p->line.alpha * 1e6, p->line.alpha_error * 1e6, "us");
    print_interval(", beta", p->line.beta * 1e9, p->line.beta_error * 1e9, "ns/word");
    printf(", R2 %.4f, worst misfit %.0f%%\n", p->line.r2, 100 * p->line.worst);
}

static void json_pair(const struct request *r, const struct pair *p) {
    struct json j;
    json_open(&j);
    for (size_t s = 0; s <= r->sizes; s++) {
        json_reset(&j);
        json_object(&j, NULL);
        json_string(&j, "bench", s < r->sizes ? "p2p" : "p2p-fit");
        json_integer(&j, "low", p->low);
        json_integer(&j, "high", p->high);
        json_boolean(&j, "inside", p->inside);
        if (s < r->sizes) {
            json_integer(&j, "bytes", (int64_t)r->bytes[s]);
            json_number(&j, "median_s", p->median[s]);
            json_number(&j, "min_s", p->least[s]);
            json_number(&j, "fitted_s", fitted(p, r->bytes[s]));
        } else {
            json_integer(&j, "repeat", (int64_t)r->repeat);
            json_number(&j, "alpha_s", p->line.alpha);
            json_number(&j, "alpha_error_s", p->line.alpha_error);
            json_number(&j, "beta_s", p->line.beta);
            json_number(&j, "beta_error_s", p->line.beta_error);
            json_number(&j, "r2", p->line.r2);
            json_number(&j, "worst_misfit", p->line.worst);
        }
        json_end(&j);
        puts(json_text(&j));
    }
    json_close(&j);
}

/* -- which pairs ----------------------------------------------------------------------------------- */
/* first: rank 0 with the lowest rank of another node and of its own. node: [P]. Returns how many. */
static size_t list_pairs(const struct comm *c, const int32_t *node, bool all, struct pair *pair) {
    size_t count = 0;
    bool have[2] = {false, false}; /* between nodes, inside */
    for (int low = 0; low < (all ? c->size : 1); low++) {
        for (int high = low + 1; high < c->size; high++) {
            bool inside = node[low] == node[high];
            if (!all && have[inside]) continue;
            have[inside] = true;
            if (pair) pair[count] = (struct pair){.low = low, .high = high, .inside = inside};
            count++;
        }
    }
    return count;
}

/* By the longest message; NULL: there is none of this kind. */
static const struct pair *slowest(const struct request *r, const struct pair *pair, size_t count, bool inside) {
    const struct pair *worst = NULL;
    size_t longest = r->bytes[r->sizes - 1];
    for (size_t i = 0; i < count; i++)
        if (pair[i].inside == inside && (!worst || fitted(&pair[i], longest) > fitted(worst, longest)))
            worst = &pair[i];
    return worst;
}

/* To four digits: no measurement has more. */
static double digits(double x) {
    char text[32];
    snprintf(text, sizeof text, "%.3e", x);
    return strtod(text, NULL);
}

static bool write_network(const struct comm *c, const struct request *r, const struct pair *between,
                          const struct pair *inside, struct err *e) {
    const struct pair *outer = between ? between : inside, *inner = inside ? inside : between;
    const char *base = strrchr(r->out, '/');
    struct network net = {.alpha = digits(outer->line.alpha),
                          .beta = digits(outer->line.beta),
                          .node_alpha = digits(inner->line.alpha),
                          .node_beta = digits(inner->line.beta)};
    char comment[512];
    snprintf(net.name, sizeof net.name, "%s", base ? base + 1 : r->out);
    snprintf(net.source, sizeof net.source, "measured: sparsetrain p2p, %s, %d rank%s on %d node%s", comm_library(),
             c->size, c->size == 1 ? "" : "s", c->nodes, c->nodes == 1 ? "" : "s");
    snprintf(comment, sizeof comment,
             "ping-pong of %zu to %zu bytes, %zu rounds; alpha [s], beta [s/word of 4 bytes]\n"
             "alpha +- %.2g, beta +- %.2g (95%%): ranks %d and %d%s\n"
             "node_alpha +- %.2g, node_beta +- %.2g (95%%): ranks %d and %d%s",
             r->bytes[0], r->bytes[r->sizes - 1], r->repeat, outer->line.alpha_error, outer->line.beta_error,
             outer->low, outer->high, outer->inside ? ", which share a node: there is only one" : "",
             inner->line.alpha_error, inner->line.beta_error, inner->low, inner->high,
             inner->inside ? "" : ", of two nodes: no node has two ranks");
    return network_write(r->out, &net, comment, e);
}

static void show(const struct request *r, const struct pair *pair, size_t count) {
    const char *const kinds[] = {"between nodes", "inside a node"};
    for (size_t i = 0; i < count; i++) {
        if (r->json) {
            json_pair(r, &pair[i]);
            continue;
        }
        if (!r->all || count == 1)
            print_pair(r, &pair[i]);
        else
            printf("ranks %3d and %3d, %s: ", pair[i].low, pair[i].high, kinds[pair[i].inside]);
        print_fit(&pair[i]);
    }
    for (int inside = 0; inside < 2 && r->all && count > 1 && !r->json; inside++) {
        const struct pair *worst = slowest(r, pair, count, inside);
        if (!worst) continue;
        printf("\nthe slowest: ");
        print_pair(r, worst);
        print_fit(worst);
    }
}

static bool lead(struct comm *c, const int32_t *node, const struct balls *b, const struct request *r, double *seconds,
                 struct err *e) {
    size_t count = list_pairs(c, node, r->all, NULL);
    struct pair *pair = mem_zalloc(count, sizeof *pair, "pairs of ranks");
    list_pairs(c, node, r->all, pair);
    if (!r->json)
        printf("%s, %d ranks on %d node%s; half round trips, medians of %zu rounds\n", comm_library(), c->size,
               c->nodes, c->nodes == 1 ? "" : "s", r->repeat);
    fflush(stdout);
    for (size_t i = 0; i < count; i++) {
        play_pair(c, pair[i].low, pair[i].high, b, r, seconds);
        evaluate(r, seconds, &pair[i]);
    }
    for (int rank = 1; rank < c->size; rank++) comm_send(c, rank, TAG_TURN, &(struct turn){-1, 0}, sizeof(struct turn));
    show(r, pair, count);
    bool ok = !r->out || write_network(c, r, slowest(r, pair, count, false), slowest(r, pair, count, true), e);
    mem_free(pair);
    return ok;
}

int bench_p2p(struct comm *c, int argc, char **argv, struct err *e) {
    struct request r;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        if (c->rank == 0) fputs(usage, stdout);
        return EXIT_DONE;
    }
    if (parse(argc, argv, &r, e) && c->size < 2) err_set(e, "p2p: two ranks are needed: mpirun -np 2 sparsetrain p2p");
    if (comm_agree(c, e)) return EXIT_USER;
    size_t longest = r.bytes[r.sizes - 1];
    struct balls b = {mem_zalloc(longest, 1, "messages out"), mem_zalloc(longest, 1, "messages in")};
    double *seconds = mem_alloc(r.sizes * r.repeat, sizeof *seconds, "measured times");
    int32_t *node = c->rank == 0 ? mem_alloc((size_t)c->size, sizeof *node, "the nodes of the ranks") : NULL;
    int32_t mine = c->node;
    comm_gather(c, 0, &mine, sizeof mine, node);
    if (c->rank == 0)
        lead(c, node, &b, &r, seconds, e);
    else
        take_turns(c, &b, &r, seconds);
    mem_free(node);
    mem_free(seconds);
    mem_free(b.out);
    mem_free(b.in);
    return comm_agree(c, e) ? EXIT_USER : EXIT_DONE;
}
