/* transport_mpi_sums.c: comm.h over MPI: sums that were begun (comm_iallreduce_f32), where MPI is SimGrid's. Its
 * MPI_Iallreduce sends every rank's whole vector to every other.
 *
 * Idea: beside each rank an actor of SimGrid's, on the same host, which sums one vector after the other while the rank
 * computes, as the communication thread of a framework does, or a library with progress of its own. Halving and then
 * doubling the part that a rank works on (Rabenseifner: Thakur, Rabenseifner and Gropp, IJHPCA 2005), ranks beyond a
 * power of two folded in first: the algorithm and the cost of MPI_Allreduce for long vectors.
 *
 *        2 log2(P) alpha + 2n(P-1)/P beta        (P a power of two; else 2 alpha + 2n beta more)
 *
 * Messages are pointers, since all ranks are one process: who gets one reads the sender's vector, in which that part
 * stays as it is until the receiver's own result comes back to it. */
#include "comm/transport/transport_mpi.h"

#ifdef SMPI_H

#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <simgrid/semaphore.h>
#include <string.h>

#include "base/mem.h"
#include "comm/parts/peers.h"

enum { LEVELS = 31 };

struct sum_begun {
    float *data; /* [count] */
    size_t count;
    bool done;
    sg_sem_t ended;
    struct sum_begun *next;
};

/* Beside each rank. Its actor is there only while there is a sum: SimGrid takes all actors of a host for ranks when it
 * makes communicators. */
struct sum_engine {
    int rank, size;
    struct sum_begun *first, **last;
    bool running; /* there is an actor */
};

static sg_mailbox_t mailbox(int from, int to) {
    char name[64];
    snprintf(name, sizeof name, "sums of ranks, %d to %d", from, to);
    return sg_mailbox_by_name(name);
}

/* *data must stay what it is until the message has been received: in a program over MPI, SimGrid copies what the
 * pointer that it is given points to, a pointer's length of it. */
static sg_comm_t begin_sending(const struct sum_engine *g, int to, float **data, size_t count) {
    return sg_mailbox_put_async(mailbox(g->rank, to), data, (long)(count * sizeof **data));
}

static const float *receive(const struct sum_engine *g, int from) {
    return sg_mailbox_get(mailbox(from, g->rank));
}

static void add(float *to, const float *from, size_t count) {
    for (size_t i = 0; i < count; i++) to[i] += from[i];
}

/* data[from[level]..end[level]-1] is what this rank, of Q, works on at a level. */
static void halve_and_double(const struct sum_engine *g, int Q, float *data, size_t count) {
    size_t from[LEVELS] = {0}, end[LEVELS] = {count};
    int level = 0;
    for (int mask = Q / 2; mask > 0; mask /= 2, level++) {
        size_t middle = from[level] + (end[level] - from[level]) / 2;
        bool upper = g->rank & mask;
        from[level + 1] = upper ? middle : from[level];
        end[level + 1] = upper ? end[level] : middle;
        float *theirs = data + (upper ? from[level] : middle);
        size_t others = end[level] - from[level] - (end[level + 1] - from[level + 1]);
        sg_comm_t out = begin_sending(g, g->rank ^ mask, &theirs, others);
        add(data + from[level + 1], receive(g, g->rank ^ mask), end[level + 1] - from[level + 1]);
        sg_comm_wait(out);
    }
    for (int mask = 1; mask < Q; mask *= 2, level--) {
        bool upper = g->rank & mask;
        size_t mine = end[level] - from[level], others = end[level - 1] - from[level - 1] - mine;
        float *own = data + from[level];
        sg_comm_t out = begin_sending(g, g->rank ^ mask, &own, mine);
        const float *part = receive(g, g->rank ^ mask);
        memcpy(data + (upper ? from[level - 1] : end[level]), part, others * sizeof *data);
        sg_comm_wait(out);
    }
}

static void sum_over_ranks(const struct sum_engine *g, float *data, size_t count) {
    int Q = floor_power_of_two(g->size), folded = g->size - Q;
    if (g->rank >= Q) {
        sg_comm_wait(begin_sending(g, g->rank - Q, &data, count));
        memcpy(data, receive(g, g->rank - Q), count * sizeof *data);
        return;
    }
    if (g->rank < folded) add(data, receive(g, g->rank + Q), count);
    halve_and_double(g, Q, data, count);
    if (g->rank < folded) sg_comm_wait(begin_sending(g, g->rank + Q, &data, count));
}

static void run_engine(int argc, char **argv) {
    struct sum_engine *g = sg_actor_self_get_data();
    (void)argc, (void)argv;
    while (g->first) {
        struct sum_begun *s = g->first;
        sum_over_ranks(g, s->data, s->count);
        g->first = s->next;
        if (!g->first) g->last = &g->first;
        s->done = true;
        sg_sem_release(s->ended); /* the rank may go on, and begin another */
    }
    g->running = false;
}

static void start_engine(struct sum_engine *g) {
    g->running = true;
    sg_actor_t actor = sg_actor_init("sums", sg_host_self());
    sg_actor_set_data(actor, g);
    sg_actor_start_(actor, run_engine, 0, NULL);
}

static struct sum_engine *open_engine(const struct comm *c) {
    struct sum_engine *g = mem_zalloc(1, sizeof *g, "sums of a simulation");
    g->rank = c->rank;
    g->size = c->size;
    g->last = &g->first;
    return g;
}

void transport_sum_begin(struct comm *c, float *data, size_t count, struct slot *slot) {
    struct transport *t = transport_of(c);
    if (c->parent) die("SimGrid: the sums of a group cannot be begun");
    if (!t->engine) t->engine = open_engine(c);
    struct sum_begun *s = slot->sum = mem_zalloc(1, sizeof *s, "a sum");
    s->data = data;
    s->count = count;
    s->ended = sg_sem_init(0);
    *t->engine->last = s;
    t->engine->last = &s->next;
    if (!t->engine->running) start_engine(t->engine);
}

void transport_sums_close(struct transport *t) {
    mem_free(t->engine);
    t->engine = NULL;
}

static void end_sum(struct slot *slot) {
    sg_sem_destroy(slot->sum->ended);
    mem_free(slot->sum);
    slot->sum = NULL;
    slot->request = MPI_REQUEST_NULL; /* a later look finds it ended */
}

int transport_wait(const struct transport *t, struct slot *slot, MPI_Status *status) {
    (void)t;
    if (!slot->sum) return MPI_Wait(&slot->request, status);
    sg_sem_acquire(slot->sum->ended);
    end_sum(slot);
    return MPI_SUCCESS;
}

int transport_test(struct slot *slot, int *done, MPI_Status *status) {
    if (!slot->sum) return MPI_Test(&slot->request, done, status);
    *done = slot->sum->done;
    if (*done) end_sum(slot);
    return MPI_SUCCESS;
}

#else

void transport_sum_begin(struct comm *c, float *data, size_t count, struct slot *slot) {
    TRY(MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM, transport_of(c)->world, &slot->request),
        "MPI_Iallreduce of %zu floats", count);
}

void transport_sums_close(struct transport *t) {
    (void)t;
}

int transport_wait(const struct transport *t, struct slot *slot, MPI_Status *status) {
    return transport_wait_request(t, &slot->request, status);
}

int transport_test(struct slot *slot, int *done, MPI_Status *status) {
    return MPI_Test(&slot->request, done, status);
}

#endif
