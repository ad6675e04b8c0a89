/* ping_pong.h: what a message costs: ping-pong over message sizes between pairs of ranks, and the line
 * t = alpha + beta m through the times (gTop-k, ICDCS 2019, Fig. 8).
 *
 *        struct ping_pair *pair;
 *        size_t count = ping_pong_measure(c, &setup, &pair);        // collective; pairs are of rank 0
 *        ping_pong_network(&setup, pair, count, &net);              // rank 0
 *        mem_free(pair);
 */
#ifndef ST_CLI_PING_PONG_H
#define ST_CLI_PING_PONG_H

#include "cli/network/line_fit.h"
#include "comm/comm.h"
#include "comm/cost/cost.h"

enum { PING_SIZES_MAX = 256 };

struct ping_pong {
    size_t bytes[PING_SIZES_MAX], sizes; /* bytes: multiples of 4, ascending; 3 sizes at least */
    size_t repeat;                       /* rounds; each measures every size once */
    bool all;   /* every pair; else rank 0 with the first rank of another node and with the first other of its own */
    bool least; /* the line goes through the least times, not the medians: few rounds on a machine with other work */
    double seconds; /* of a pair, about, for a slow network: leaves out long messages, then rounds; 0: no limit */
};

struct ping_pair {
    int low, high;
    bool inside;                                          /* of one node */
    size_t sizes;                                         /* that were measured, from the shortest on */
    double median[PING_SIZES_MAX], least[PING_SIZES_MAX]; /* [s] half a round trip */
    struct line_fit line;                                 /* over words */
};

/* Sizes least, least factor, ... up to most [bytes]. False: more than PING_SIZES_MAX. */
bool ping_pong_sizes(struct ping_pong *p, double least, double most, double factor);

/* Collective; c has two ranks at least. On rank 0 *pair gets fresh memory with as many pairs as are returned; on the
 * others NULL, 0. Pairs come in the order of their ranks. */
size_t ping_pong_measure(struct comm *c, const struct ping_pong *p, struct ping_pair **pair);

/* The line's time for a message. */
double ping_pong_fitted(const struct ping_pair *p, size_t bytes);

/* By the longest message; NULL: there is none of this kind. */
const struct ping_pair *ping_pong_slowest(const struct ping_pong *p, const struct ping_pair *pair, size_t count,
                                          bool inside);

/* alpha and beta of the slowest pair of each kind, to four digits: no measurement has more. Where there is one kind
 * only, it stands for both. Name and source stay empty. */
void ping_pong_network(const struct ping_pong *p, const struct ping_pair *pair, size_t count, struct network *net);

#endif
