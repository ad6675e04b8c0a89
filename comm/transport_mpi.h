/* transport_mpi.h: what the files of the transport share; for them alone, since it includes mpi.h. */
#ifndef ST_COMM_TRANSPORT_MPI_H
#define ST_COMM_TRANSPORT_MPI_H

#include <mpi.h>
#include <stdio.h>

#include "base/rng.h"
#include "comm/comm.h"

/* Is this SimGrid's MPI (smpicc), whose ranks are coroutines of one process in simulated time? */
#ifdef SMPI_H
#define SIMULATED true
#else
#define SIMULATED false
#endif

enum { POOL_BLOCK = 64 };

/* One outstanding non-blocking call of MPI. */
struct slot {
    MPI_Request request;
    MPI_Datatype type;     /* to be freed after the wait; MPI_BYTE: nothing to free */
    struct sum_begun *sum; /* in a simulation, in place of request; NULL: request */
    struct slot *next;     /* of the same comm_request (a long sum is several calls); in the list of free ones */
};
struct slot_block {
    struct slot slot[POOL_BLOCK];
    struct slot_block *next;
};

/* Hindrances that are legal in MPI and rare on one machine. */
struct faults {
    uint32_t delay;  /* longest sleep [us]; 0: none */
    bool sync_sends; /* MPI_Ssend for MPI_Send */
    struct rng rng;
};

struct transport {
    struct comm *job;         /* the whole job's; for a group too */
    MPI_Comm world, local;    /* all ranks; those of them that are on this node, emulated nodes or not */
    int node_rank, node_size; /* in `local` */
    size_t part;              /* most bytes that one plain MPI call is given */
    int groups;               /* open groups; from here on of the whole job only */
    struct slot *free_slots;
    struct slot_block *blocks;
    struct faults faults;
    void *meeting;             /* transport_meet's own in a simulation */
    double lap;                /* and in real runs: seconds that agreeing on a start takes */
    struct sum_engine *engine; /* transport_sum_begin's */
    char *unread;              /* comm_unread_alloc's vector, and its bytes; NULL: none */
    size_t unread_bytes;
};

static inline struct transport *transport_of(const struct comm *c) {
    return c->impl;
}

/* Ends the job when an MPI call did not succeed; the rest is printf's and says what was being done. */
#define TRY(call, ...)                                                                                                 \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != MPI_SUCCESS) {                                                                                      \
            char doing_[256];                                                                                          \
            snprintf(doing_, sizeof doing_, __VA_ARGS__);                                                              \
            die("%s failed: %s", doing_, transport_error(rc_, (char[MPI_MAX_ERROR_STRING]){0}));                       \
        }                                                                                                              \
    } while (0)
const char *transport_error(int rc, char text[MPI_MAX_ERROR_STRING]);

/* SPARSETRAIN_DELAY: a random sleep, where it was asked for. */
void transport_delay(const struct comm *c);

/* Both count for the job, also when c is a group. */
void transport_count_sent(const struct comm *c, size_t messages, size_t bytes);
void transport_count_received(const struct comm *c, size_t messages, size_t bytes);

/* After MPI_Barrier: all ranks go on at the same instant, in a simulation and where they share a clock. */
void transport_meet(struct transport *t);

/* What to sum data with: MPI_IN_PLACE. SimGrid copies all of such a vector first, so that one whose contents do not
 * matter is summed from other such memory. */
const void *transport_sum_from(const struct comm *c, const void *data);

/* comm_iallreduce_f32 of what MPI takes at once, and the two ways in which whatever a slot stands for ends. */
void transport_sum_begin(struct comm *c, float *data, size_t count, struct slot *slot);
void transport_sums_close(struct transport *t);
int transport_wait(struct slot *slot, MPI_Status *status);
int transport_test(struct slot *slot, int *done, MPI_Status *status);

/* A slot from the job's pool, for groups too; it returns there when its request ends. */
struct slot *transport_take_slot(const struct comm *c, MPI_Datatype type);

#endif
