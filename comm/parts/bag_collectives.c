/* bag_collectives.c: comm.h's collectives with blocks of different sizes, over its calls between two ranks.
 *
 * Idea: the bags of peers.h: in ceil(log2 P) rounds the blocks that a rank has (all-gather) double, or those that it
 * still has to add up (reduce-scatter) halve, for any P, and no more than P-1 blocks pass. A bag lies in the vector
 * as one piece, or as two where it goes past the last rank; each piece is a message, and what is empty is not sent.
 *
 * Why not MPI's own: a library makes one message of the two pieces by a derived datatype, and what is not one piece
 * takes a slow way through shared memory; its reduce-scatter first copies the vector into memory new from the system.
 * What passes is counted as it passes, too, and not by a model.
 *
 * Source: Bruck et al., IEEE TPDS 8(11), 1997; the reduce-scatter is the same backwards.
 * Cost per rank: ceil(log2 P) alpha, up to twice that where bags go past the last rank; (P-1)/P of the vector where the
 * blocks are equal. */
#include <string.h>

#include "base/error.h"
#include "comm/comm.h"
#include "comm/parts/peers.h"

enum { GATHER_TAG = 32766, SCATTER_TAG = 32765 }; /* no caller uses these */

/* A bag as it lies in the vector: [at, at + count), and past the last block [0, past). */
struct span {
    size_t at, count, past;
};

static size_t sum_of(const size_t *each, int first, int count) {
    size_t sum = 0;
    for (int b = first; b < first + count; b++) sum += each[b];
    return sum;
}

static struct span span_of(const size_t *each, int P, int first, int count) {
    int before_end = count < P - first ? count : P - first;
    return (struct span){sum_of(each, 0, first), sum_of(each, first, before_end), sum_of(each, 0, count - before_end)};
}

static size_t size_of(const size_t *each, int P, int first, int count) {
    struct span span = span_of(each, P, first, count);
    return span.count + span.past;
}

/* The messages of a round. */
struct round {
    int count;
    struct comm_request request[4];
};

static void begin_receive(struct comm *c, struct round *r, int from, int tag, void *data, size_t bytes) {
    if (bytes > 0) comm_irecv(c, from, tag, data, bytes, &r->request[r->count++]);
}

static void begin_send(struct comm *c, struct round *r, int to, int tag, const void *data, size_t bytes) {
    if (bytes > 0) comm_isend(c, to, tag, data, bytes, &r->request[r->count++]);
}

/* Both ends know all lengths. */
static void end_round(struct comm *c, struct round *r) {
    for (int i = 0; i < r->count; i++) {
        struct comm_request known = r->request[i];
        size_t got = comm_wait(c, &r->request[i]);
        if (known.receives && got != known.capacity)
            die("rank %d sent %zu bytes of a block of %zu", known.peer, got, known.capacity);
    }
}

/* -- all-gather ------------------------------------------------------------------------------------------ */
void comm_allgatherv(struct comm *c, const void *mine, size_t bytes, void *all, const size_t *each) {
    COMM_SCOPE(c);
    char *start = all, *place = start + sum_of(each, 0, c->rank);
    if (bytes != each[c->rank]) die("an all-gather of %zu bytes where %zu were announced", bytes, each[c->rank]);
    if (mine != place && bytes > 0) memcpy(place, mine, bytes);
    for (int i = 0; i < ceil_log2(c->size); i++) {
        struct bag_round bag = bag_gather_round(c->size, c->rank, i);
        struct span in = span_of(each, c->size, bag.receive, bag.count),
                    out = span_of(each, c->size, bag.send, bag.count);
        struct round r = {0};
        begin_receive(c, &r, bag.from, GATHER_TAG, start + in.at, in.count);
        begin_receive(c, &r, bag.from, GATHER_TAG, start, in.past);
        begin_send(c, &r, bag.to, GATHER_TAG, start + out.at, out.count);
        begin_send(c, &r, bag.to, GATHER_TAG, start, out.past);
        end_round(c, &r);
    }
}

void comm_allgather_sizes(struct comm *c, size_t mine, size_t most, size_t *each) {
    each[c->rank] = mine;
    comm_allgather(c, &each[c->rank], sizeof *each, each);
    for (int r = 0; r < c->size; r++)
        if (each[r] > most || each[r] % 4 != 0)
            die("rank %d announced a message of %zu bytes, the longest has %zu", r, each[r], most);
}

/* -- reduce-scatter -------------------------------------------------------------------------------------- */
/* How many blocks, its own first, a rank has to add up after round i. */
static int blocks_left(int P, int i) {
    return 1 << (ceil_log2(P) - 1 - i);
}

/* After round 0 the sums of the blocks left; beside them what comes in round 1, half as many. */
size_t comm_reduce_scatter_scratch(const struct comm *c, const size_t *each) {
    size_t sum = 0;
    for (int i = 0; i < ceil_log2(c->size) && i < 2; i++)
        sum += size_of(each, c->size, c->rank, blocks_left(c->size, i));
    return sum;
}

/* Of fewer entries a rank's part may be longer than of all of them, but no part is longer than the longest. */
size_t comm_reduce_scatter_scratch_even(const struct comm *c, size_t most) {
    const size_t P = (size_t)c->size, longest = most / P + (most % P > 0);
    size_t sum = 0;
    for (int i = 0; i < ceil_log2(c->size) && i < 2; i++) sum += (size_t)blocks_left(c->size, i) * longest;
    return sum;
}

static void add(float *restrict to, const float *restrict from, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] += from[i];
}

/* Of data, which is not written to: half of the blocks go, and sum gets the other half with what comes added to it. */
static void first_round(struct comm *c, const float *data, const size_t *each, float *sum) {
    const struct bag_round bag = bag_scatter_round(c->size, c->rank, 0);
    int alone = blocks_left(c->size, 0) - bag.count; /* blocks to keep, to which nothing comes: P is no power of two */
    struct span out = span_of(each, c->size, bag.send, bag.count), in = span_of(each, c->size, c->rank, bag.count);
    struct span rest = span_of(each, c->size, (c->rank + bag.count) % c->size, alone);
    float *past = sum + in.count, *end = past + in.past;
    struct round r = {0};
    begin_receive(c, &r, bag.from, SCATTER_TAG, sum, in.count * sizeof *sum);
    begin_receive(c, &r, bag.from, SCATTER_TAG, past, in.past * sizeof *sum);
    begin_send(c, &r, bag.to, SCATTER_TAG, data + out.at, out.count * sizeof *sum);
    begin_send(c, &r, bag.to, SCATTER_TAG, data, out.past * sizeof *sum);
    end_round(c, &r);
    add(sum, data + in.at, in.count);
    add(past, data, in.past);
    if (rest.count > 0) memcpy(end, data + rest.at, rest.count * sizeof *end);
    if (rest.past > 0) memcpy(end + rest.count, data, rest.past * sizeof *end);
}

void comm_reduce_scatter_f32(struct comm *c, const float *data, const size_t *each, float *mine, float *scratch) {
    COMM_SCOPE(c);
    const float *own = data + sum_of(each, 0, c->rank);
    if (c->size > 1) {
        first_round(c, data, each, scratch);
        own = scratch;
    }
    for (int i = 1; i < ceil_log2(c->size); i++) {
        struct bag_round bag = bag_scatter_round(c->size, c->rank, i);
        size_t keep = size_of(each, c->size, c->rank, bag.count), go = size_of(each, c->size, bag.send, bag.count);
        float *came = scratch + size_of(each, c->size, c->rank, blocks_left(c->size, 0));
        struct round r = {0};
        begin_receive(c, &r, bag.from, SCATTER_TAG, came, keep * sizeof *came);
        begin_send(c, &r, bag.to, SCATTER_TAG, scratch + keep, go * sizeof *came);
        end_round(c, &r);
        add(scratch, came, keep);
    }
    if (mine != own && each[c->rank] > 0) memcpy(mine, own, each[c->rank] * sizeof *mine);
}
