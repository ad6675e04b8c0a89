/* transport_mpi_collective.c: comm.h over MPI: the calls of all ranks. What they count is said in comm.h. */
#include <string.h>

#include "base/mem.h"
#include "comm/parts/peers.h"
#include "comm/transport/transport_mpi.h"

enum { GATHER_TAG = 32767 }; /* the largest tag that every MPI has; no caller uses it */

/* Numbered from the root, v's subtree is [v, v + lowest set bit of v) cut at P. */
void transport_binomial_place(const struct comm *c, int root, int *children, int *subtree) {
    int v = (c->rank - root + c->size) % c->size, reach = 1;
    *children = 0;
    while (reach < c->size && !(v & reach)) {
        if (v + reach < c->size) ++*children;
        reach *= 2;
    }
    *subtree = reach < c->size - v ? reach : c->size - v;
}

void comm_barrier(struct comm *c) {
    COMM_SCOPE(c);
    size_t messages = (size_t)ceil_log2(c->size);
    transport_delay(c);
    TRY(transport_barrier(transport_of(c), transport_of(c)->world), "MPI_Barrier");
    transport_meet(transport_of(c));
    transport_count_sent(c, messages, 0);
    transport_count_received(c, messages, 0);
}

static void bcast_parts(const struct transport *t, int root, void *data, size_t bytes) {
    for (size_t at = 0; at < bytes; at += t->part) {
        size_t now = bytes - at < t->part ? bytes - at : t->part;
        beat_expect(BEAT_EVERYBODY, now);
        TRY(transport_bcast(t, (char *)data + at, (int)now, root), "MPI_Bcast from rank %d", root);
    }
}

void comm_bcast(struct comm *c, int root, void *data, size_t bytes) {
    COMM_SCOPE(c);
    int children, subtree;
    transport_delay(c);
    long long bit = c->rank == root ? transport_flip_leaving(c, bytes) : NO_BIT;
    transport_flip(data, bit);
    bcast_parts(transport_of(c), root, data, bytes);
    transport_flip(data, bit); /* it was on its way that it changed */
    if (c->rank != root) transport_flip_arrived(c, data, bytes);
    transport_check_bcast(c, root, data, bytes);
    transport_binomial_place(c, root, &children, &subtree);
    transport_count_sent(c, (size_t)children, (size_t)children * bytes);
    if (c->rank != root) transport_count_received(c, 1, bytes);
}

/* The blocks are too long together for one MPI call: each rank sends its own in parts. */
static void gather_parts(const struct comm *c, int root, const char *mine, size_t bytes, char *all) {
    const struct transport *t = transport_of(c);
    size_t part = t->part;
    for (size_t at = 0; at < bytes; at += part) {
        int now = (int)(bytes - at < part ? bytes - at : part);
        if (c->rank != root)
            TRY(transport_send(t, false, mine + at, now, MPI_BYTE, root, GATHER_TAG), "MPI_Send to rank %d", root);
        for (int r = 0; c->rank == root && r < c->size; r++) {
            char *to = all + (size_t)r * bytes + at;
            if (r == root)
                memcpy(to, mine + at, (size_t)now);
            else
                TRY(transport_recv(t, to, now, MPI_BYTE, r, GATHER_TAG, MPI_STATUS_IGNORE), "MPI_Recv from rank %d", r);
        }
    }
}

void comm_gather(struct comm *c, int root, const void *mine, size_t bytes, void *all) {
    COMM_SCOPE(c);
    struct transport *t = transport_of(c);
    int children, subtree;
    void *flipped = c->rank != root ? transport_flip_copy(c, mine, bytes) : NULL;
    const void *own = mine;
    if (flipped) mine = flipped;
    transport_delay(c);
    if (bytes <= t->part / (size_t)c->size)
        TRY(transport_gather(t, mine, (int)bytes, all, root), "MPI_Gather to rank %d", root);
    else
        gather_parts(c, root, mine, bytes, all);
    mem_free(flipped);
    if (c->rank == root) transport_flip_arrived(c, all, bytes * (size_t)c->size);
    transport_check_gather(c, root, own, bytes, all);
    transport_binomial_place(c, root, &children, &subtree);
    transport_count_received(c, (size_t)children, (size_t)(subtree - 1) * bytes);
    if (c->rank != root) transport_count_sent(c, 1, (size_t)subtree * bytes);
}

/* The blocks are too long together for MPI's int offsets. */
static void allgather_parts(const struct comm *c, const void *mine, char *all, size_t bytes) {
    for (int r = 0; r < c->size; r++, all += bytes) {
        if (r == c->rank && mine != all) memcpy(all, mine, bytes);
        bcast_parts(transport_of(c), r, all, bytes);
    }
}

void comm_allgather(struct comm *c, const void *mine, size_t bytes, void *all) {
    COMM_SCOPE(c);
    struct transport *t = transport_of(c);
    size_t total = bytes * (size_t)c->size, messages = (size_t)ceil_log2(c->size);
    char *place = (char *)all + bytes * (size_t)c->rank;
    const void *from = mine == place ? MPI_IN_PLACE : mine;
    struct seal seal = transport_seal(c, mine, bytes);
    long long bit = transport_flip_leaving(c, bytes);
    if (bit != NO_BIT && mine != place) {
        memcpy(place, mine, bytes);
        from = MPI_IN_PLACE;
    }
    transport_flip(place, bit);
    transport_delay(c);
    if (total <= t->part)
        TRY(transport_allgather(t, from, (int)bytes, all), "MPI_Allgather");
    else
        allgather_parts(c, from == MPI_IN_PLACE ? place : mine, all, bytes);
    transport_flip(place, bit); /* it was on its way that it changed */
    transport_flip_arrived(c, all, total);
    transport_check_allgather(c, &seal, bytes, all);
    transport_count_sent(c, messages, total - bytes);
    transport_count_received(c, messages, total - bytes);
}

static void count_allreduce(const struct comm *c, size_t vector) {
    size_t messages = 2 * (size_t)ceil_log2(c->size), bytes = 2 * (size_t)(c->size - 1) * vector / (size_t)c->size;
    transport_count_sent(c, messages, bytes);
    transport_count_received(c, messages, bytes);
}

static void allreduce(struct comm *c, void *data, size_t count, enum sum_type of, enum comm_op op) {
    COMM_SCOPE(c);
    static const char *const names[] = {"sum", "minimum", "maximum"};
    static const size_t widths[] = {
        [SUM_F32] = sizeof(float), [SUM_F64] = sizeof(double), [SUM_U64] = sizeof(uint64_t)};
    const MPI_Datatype type = of == SUM_F32 ? MPI_FLOAT : of == SUM_F64 ? MPI_DOUBLE : MPI_UINT64_T;
    struct transport *t = transport_of(c);
    MPI_Op mpi_op = op == COMM_SUM ? MPI_SUM : op == COMM_MIN ? MPI_MIN : MPI_MAX;
    size_t width = widths[of], limit = t->part / width;
    struct sum_check *check = transport_check_sum_begin(c, data, count, of, op, false);
    transport_flip(data, transport_flip_leaving(c, count * width));
    transport_delay(c);
    for (size_t at = 0; at < count; at += limit) {
        int now = (int)(count - at < limit ? count - at : limit);
        void *to = (char *)data + at * width;
        transport_expect(c, BEAT_EVERYBODY, (size_t)now * width);
        TRY(transport_allreduce(t, transport_sum_from(c, to), to, now, type, mpi_op), "MPI_Allreduce (%s)", names[op]);
    }
    transport_flip_arrived(c, data, count * width);
    transport_check_sum_end(c, check, data, false);
    count_allreduce(c, count * width);
}

void comm_allreduce_f32(struct comm *c, float *data, size_t count, enum comm_op op) {
    allreduce(c, data, count, SUM_F32, op);
}
void comm_allreduce_f64(struct comm *c, double *data, size_t count, enum comm_op op) {
    allreduce(c, data, count, SUM_F64, op);
}
void comm_allreduce_u64(struct comm *c, uint64_t *data, size_t count, enum comm_op op) {
    allreduce(c, data, count, SUM_U64, op);
}

void comm_iallreduce_f32(struct comm *c, float *data, size_t count, struct comm_request *request) {
    COMM_SCOPE(c);
    struct transport *t = transport_of(c);
    size_t limit = t->part / sizeof *data, at = 0;
    struct slot *first = NULL, **link = &first;
    struct sum_check *check = transport_check_sum_begin(c, data, count, SUM_F32, COMM_SUM, true);
    transport_flip(data, transport_flip_leaving(c, count * sizeof *data));
    transport_delay(c);
    do { /* also an empty vector makes one call */
        size_t now = count - at < limit ? count - at : limit;
        struct slot *slot = *link = transport_take_slot(c);
        transport_sum_begin(c, data + at, now, slot);
        link = &slot->next;
        at += now;
    } while (at < count);
    first->data = data;
    first->check = check;
    *request = (struct comm_request){first, -1, count * sizeof *data, false};
    count_allreduce(c, count * sizeof *data);
}

bool comm_agree(struct comm *c, struct err *e) {
    enum traffic *traffic = &transport_of(c)->job->traffic, caller = *traffic;
    *traffic = TRAFFIC_CONTROL;
    uint64_t first = e->text[0] ? (uint64_t)c->rank : (uint64_t)c->size;
    comm_allreduce_u64(c, &first, 1, COMM_MIN);
    bool any = first < (uint64_t)c->size;
    if (any) comm_bcast(c, (int)first, e, sizeof *e);
    *traffic = caller;
    return any;
}
