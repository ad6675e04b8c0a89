/* ping_pong.c: see ping_pong.h.
 *
 * Two ranks exchange messages while all others sleep: a rank that waits inside MPI polls, which on a machine with few
 * cores would slow down the two. So rank 0 tells each rank when its turn has come, and waiting ranks test their request
 * every two milliseconds.
 *
 * One measurement is the mean half round trip of a few exchanges, as many as fill about half a millisecond. Sizes
 * are interleaved: every round measures each of them once, so that a machine whose speed wanders bends no line.
 * What counts is the median over the rounds, or the least where so asked.
 *
 * The fit (cli/network/line_fit.h) weighs with 1/t^2, so that relative errors count. */
#include "cli/network/ping_pong.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/beat.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/bench/median.h"

enum { ROUND_TRIPS_MAX = 100, ROUNDS_LEAST = 3, SIZES_LEAST = 3 };
enum { TAG_TURN = 1, TAG_COUNT, TAG_BALL, TAG_RESULT };

bool ping_pong_sizes(struct ping_pong *p, double least, double most, double factor) {
    p->sizes = 0;
    for (double bytes = least; bytes <= most * (1 + 1e-9); bytes *= factor) {
        size_t whole = (size_t)(bytes / 4) * 4;
        if (p->sizes > 0 && p->bytes[p->sizes - 1] == whole) continue;
        if (p->sizes == PING_SIZES_MAX) return false;
        p->bytes[p->sizes++] = whole;
    }
    return true;
}

/* -- two play, the others sleep -------------------------------------------------------------------- */
static void wait_asleep(struct comm *c, struct comm_request *request) {
    beat_activity(ACTIVITY_TURN, 0);
    beat_wait_begin();
    while (!comm_test(c, request)) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    beat_wait_end();
    beat_activity(ACTIVITY_MEASURE, 0);
}

static void receive_asleep(struct comm *c, int source, int tag, void *data, size_t bytes) {
    struct comm_request request;
    comm_irecv(c, source, tag, data, bytes, &request);
    wait_asleep(c, &request);
}

struct game {
    struct comm *c;
    const struct ping_pong *setup;
    char *out, *in;  /* [largest size] bytes */
    double *seconds; /* [sizes][repeat] half round trips, filled in by the one who serves */
};

/* What the one who serves decides, and what a result begins with. */
struct plan {
    int32_t sizes, rounds;
    int32_t count[PING_SIZES_MAX]; /* round trips of a measurement */
};

static void round_trips(const struct game *g, int peer, bool serves, size_t bytes, int count) {
    for (int i = 0; i < count; i++) {
        if (serves) comm_send(g->c, peer, TAG_BALL, g->out, bytes);
        comm_recv(g->c, peer, TAG_BALL, g->in, bytes);
        if (!serves) comm_send(g->c, peer, TAG_BALL, g->out, bytes);
    }
}

/* The number as the one who serves has it. */
static int32_t agree(const struct game *g, int peer, bool serves, int32_t number) {
    if (serves)
        comm_send(g->c, peer, TAG_COUNT, &number, sizeof number);
    else
        comm_recv(g->c, peer, TAG_COUNT, &number, sizeof number);
    return number;
}

/* How many round trips of each size make up a measurement. Also the warm-up. With a limit of time it ends before the
 * sizes of which three rounds would take longer, and takes as many rounds as there is time for. */
static void make_plan(const struct game *g, int peer, bool serves, struct plan *plan) {
    const struct ping_pong *p = g->setup;
    double round = 0;
    plan->sizes = 0;
    for (size_t s = 0; s < p->sizes; s++) {
        round_trips(g, peer, serves, p->bytes[s], 1);
        double begin = clock_now();
        round_trips(g, peer, serves, p->bytes[s], 2);
        double trip = (clock_now() - begin) / 2 + 1e-9, trips = 0.5e-3 / trip;
        int32_t count = trips < 1 ? 1 : trips > ROUND_TRIPS_MAX ? ROUND_TRIPS_MAX : (int32_t)trips;
        bool long_enough = s >= SIZES_LEAST && p->seconds > 0 && ROUNDS_LEAST * (round + 2 * trip) > p->seconds;
        count = agree(g, peer, serves, long_enough ? 0 : count);
        if (count == 0) break;
        round += (count + 1) * trip;
        plan->count[plan->sizes++] = count;
    }
    double rounds = p->seconds > 0 ? fmin((double)p->repeat, p->seconds / round) : (double)p->repeat;
    double least = fmin((double)p->repeat, ROUNDS_LEAST);
    plan->rounds = agree(g, peer, serves, (int32_t)fmax(least, rounds));
}

static void play(const struct game *g, int peer, bool serves, struct plan *plan) {
    const struct ping_pong *p = g->setup;
    make_plan(g, peer, serves, plan);
    for (int32_t round = 0; round < plan->rounds; round++) {
        for (int32_t s = 0; s < plan->sizes; s++) {
            round_trips(g, peer, serves, p->bytes[s], 1); /* the caches are as the size leaves them */
            double begin = clock_now();
            round_trips(g, peer, serves, p->bytes[s], plan->count[s]);
            g->seconds[(size_t)s * p->repeat + (size_t)round] = (clock_now() - begin) / (2.0 * plan->count[s]);
        }
    }
}

/* What rank 0 tells a rank: play with `peer`, or (-1) that all is over. */
struct turn {
    int32_t peer, serves;
};

static size_t result_bytes(const struct game *g) {
    return g->setup->sizes * g->setup->repeat * sizeof *g->seconds;
}

static void take_turns(const struct game *g) {
    for (;;) {
        struct turn turn;
        struct plan plan;
        receive_asleep(g->c, 0, TAG_TURN, &turn, sizeof turn);
        if (turn.peer < 0) return;
        play(g, turn.peer, turn.serves, &plan);
        if (!turn.serves) continue;
        comm_send(g->c, 0, TAG_RESULT, &plan, sizeof plan);
        comm_send(g->c, 0, TAG_RESULT, g->seconds, result_bytes(g));
    }
}

/* On rank 0: low < high play, low serves. */
static void play_pair(const struct game *g, int low, int high, struct plan *plan) {
    comm_send(g->c, high, TAG_TURN, &(struct turn){low, 0}, sizeof(struct turn));
    if (low == 0) {
        play(g, high, true, plan);
        return;
    }
    comm_send(g->c, low, TAG_TURN, &(struct turn){high, 1}, sizeof(struct turn));
    receive_asleep(g->c, low, TAG_RESULT, plan, sizeof *plan);
    comm_recv(g->c, low, TAG_RESULT, g->seconds, result_bytes(g));
}

/* -- the line through the times -------------------------------------------------------------------- */
static void evaluate(const struct game *g, const struct plan *plan, struct ping_pair *pair) {
    double words[PING_SIZES_MAX];
    pair->sizes = (size_t)plan->sizes;
    for (size_t s = 0; s < pair->sizes; s++) {
        double *of_size = g->seconds + s * g->setup->repeat;
        words[s] = (double)g->setup->bytes[s] / 4;
        pair->median[s] = median(of_size, (size_t)plan->rounds);
        pair->least[s] = of_size[0];
    }
    line_fit(words, g->setup->least ? pair->least : pair->median, pair->sizes, &pair->line);
}

double ping_pong_fitted(const struct ping_pair *p, size_t bytes) {
    return p->line.alpha + p->line.beta * (double)bytes / 4;
}

/* -- which pairs ----------------------------------------------------------------------------------- */
/* first: rank 0 with the lowest rank of another node and of its own. node: [P]. Returns how many. */
static size_t list_pairs(const struct comm *c, const int32_t *node, bool all, struct ping_pair *pair) {
    size_t count = 0;
    bool have[2] = {false, false}; /* between nodes, inside */
    for (int low = 0; low < (all ? c->size : 1); low++) {
        for (int high = low + 1; high < c->size; high++) {
            bool inside = node[low] == node[high];
            if (!all && have[inside]) continue;
            have[inside] = true;
            if (pair) pair[count] = (struct ping_pair){.low = low, .high = high, .inside = inside};
            count++;
        }
    }
    return count;
}

static size_t lead(const struct game *g, const int32_t *node, struct ping_pair **pairs) {
    struct comm *c = g->c;
    struct plan plan;
    size_t count = list_pairs(c, node, g->setup->all, NULL);
    struct ping_pair *pair = *pairs = mem_zalloc(count, sizeof *pair, "pairs of ranks");
    list_pairs(c, node, g->setup->all, pair);
    for (size_t i = 0; i < count; i++) {
        play_pair(g, pair[i].low, pair[i].high, &plan);
        evaluate(g, &plan, &pair[i]);
    }
    for (int rank = 1; rank < c->size; rank++) comm_send(c, rank, TAG_TURN, &(struct turn){-1, 0}, sizeof(struct turn));
    return count;
}

size_t ping_pong_measure(struct comm *c, const struct ping_pong *p, struct ping_pair **pair) {
    size_t longest = p->bytes[p->sizes - 1], count = 0;
    struct game g = {.c = c, .setup = p};
    g.out = mem_zalloc(longest, 1, "messages out");
    g.in = mem_zalloc(longest, 1, "messages in");
    g.seconds = mem_zalloc(p->sizes * p->repeat, sizeof *g.seconds, "measured times");
    beat_activity(ACTIVITY_MEASURE, 0);
    int32_t *node = c->rank == 0 ? mem_alloc((size_t)c->size, sizeof *node, "the nodes of the ranks") : NULL;
    int32_t mine = c->node;
    *pair = NULL;
    comm_gather(c, 0, &mine, sizeof mine, node);
    if (c->rank == 0)
        count = lead(&g, node, pair);
    else
        take_turns(&g);
    mem_free(node);
    mem_free(g.seconds);
    mem_free(g.out);
    mem_free(g.in);
    return count;
}

/* -- a network ------------------------------------------------------------------------------------- */
const struct ping_pair *ping_pong_slowest(const struct ping_pong *p, const struct ping_pair *pair, size_t count,
                                          bool inside) {
    const struct ping_pair *worst = NULL;
    size_t longest = p->bytes[p->sizes - 1];
    for (size_t i = 0; i < count; i++)
        if (pair[i].inside == inside &&
            (!worst || ping_pong_fitted(&pair[i], longest) > ping_pong_fitted(worst, longest)))
            worst = &pair[i];
    return worst;
}

static double four_digits(double x) {
    char text[32];
    snprintf(text, sizeof text, "%.3e", x);
    return strtod(text, NULL);
}

void ping_pong_network(const struct ping_pong *p, const struct ping_pair *pair, size_t count, struct network *net) {
    const struct ping_pair *between = ping_pong_slowest(p, pair, count, false),
                           *inside = ping_pong_slowest(p, pair, count, true);
    const struct ping_pair *outer = between ? between : inside, *inner = inside ? inside : between;
    *net = (struct network){.alpha = four_digits(outer->line.alpha),
                            .beta = four_digits(outer->line.beta),
                            .node_alpha = four_digits(inner->line.alpha),
                            .node_beta = four_digits(inner->line.beta)};
}
