/* shards.h: what torus2d and hitopk share: the ranks as a grid of nodes and ranks of a node, and the vector cut into as
 * many shards as a node has ranks. Rank j of every node owns shard j.
 *
 *        struct shards s;
 *        shards_open(&s, comm, n);
 *        comm_reduce_scatter_f32(s.inside, grad, s.each, grad + s.from, s.scratch); // the node's sum of its shard
 *        comm_allreduce_f32(s.across, grad + s.from, s.count, COMM_SUM);              // all nodes' sum of it
 *        shards_close(&s);
 *
 * and how sparse vectors, one of each rank of such a group, come to all ranks of the group:
 *
 *        sparse_gather_open(&g, x, s.across, cap);
 *        sparse_gather_run(&g, &mine, range, known);                  // g.part[r]: the vector of rank r
 *        sparse_gather_close(&g);
 */
#ifndef ST_COMM_SHARDS_H
#define ST_COMM_SHARDS_H

#include "comm/exchange.h"

struct shards {
    struct comm *inside; /* the ranks of this node, by local rank; shard j is rank j's */
    struct comm *across; /* the ranks with this local rank, by node */
    size_t *each;        /* [inside->size] entries of the shards */
    size_t *bytes;       /* [inside->size] the same in bytes of floats */
    size_t from, count;  /* this rank's shard: entries [from, from + count) */
    float *scratch;      /* of a reduce-scatter inside the node */
};

/* Have all nodes as many ranks? A grid needs that. Asked on every rank, false on one at least where it is not so. */
bool shards_serve(const struct comm *c, struct err *e);

void shards_open(struct shards *s, struct comm *c, size_t n); /* collective */
void shards_close(struct shards *s);                          /* collective */

struct sparse_gather {
    struct exchange *x;
    struct comm *comm;
    size_t cap;             /* most entries of one rank */
    unsigned char *message; /* [size * room]: the messages of all ranks, end to end */
    size_t room;            /* bytes, a multiple of 4 */
    uint64_t *heads;        /* [size] bytes of a message; the top bit: it is dense */
    size_t *each;           /* [size] bytes */
    int *rank;              /* [size] ranks in the whole job, for messages about them */
    struct sparse *part;    /* [size] the vectors, valid until the next run */
    struct sparse *buffer;  /* [size] where the format needs them, else NULL */
};

/* cap: most entries that any rank of c gives. x must stay where it is until close. Collective. */
void sparse_gather_open(struct sparse_gather *g, struct exchange *x, struct comm *c, size_t cap);
void sparse_gather_close(struct sparse_gather *g);

/* Collective: g->part[r] = rank r's vector, its indices in [0, range[r]). mine: already rounded (wire_round). known:
 * all ranks give as many entries as this one, so that with a format of fixed length one all-gather is enough; else the
 * lengths go first, 8 bytes a rank, and a vector that fills more than half of its range (range <= 2 cap then) travels
 * as its `range` values, with a NaN for what is not there: no message is longer than that. */
void sparse_gather_run(struct sparse_gather *g, const struct sparse *mine, const size_t *range, bool known);

#endif
