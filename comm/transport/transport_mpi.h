/* transport_mpi.h: what the files of the transport share; for them alone, since it includes mpi.h. */
#ifndef ST_COMM_TRANSPORT_MPI_H
#define ST_COMM_TRANSPORT_MPI_H

#include <mpi.h>
#include <stdio.h>

#include "base/beat.h"
#include "base/rng.h"
#include "comm/comm.h"

/* Is this SimGrid's MPI (smpicc), whose ranks are coroutines of one process in simulated time? */
#ifdef SMPI_H
#define SIMULATED true
#else
#define SIMULATED false
#endif

enum { POOL_BLOCK = 64 };

/* comm_set_wire_check: what travels before the bytes of a message. */
struct seal {
    uint32_t crc, bytes; /* of them; their number modulo 2^32 */
};

/* One outstanding non-blocking call of MPI. */
struct slot {
    MPI_Request request;
    MPI_Datatype type;       /* to be freed after the wait; MPI_BYTE: nothing to free */
    struct sum_begun *sum;   /* in a simulation, in place of request; NULL: request */
    struct seal seal;        /* of this message, where there are seals */
    void *data;              /* where what is received, or summed, comes */
    void *flipped;           /* what is sent in place of the data, see transport_flip_copy; else NULL */
    struct sum_check *check; /* of a sum, where it is checked; NULL, too, when it is over */
    bool summed;             /* data is the sum */
    struct slot *next;       /* of the same comm_request (a long sum is several calls); in the list of free ones */
};
struct slot_block {
    struct slot slot[POOL_BLOCK];
    struct slot_block *next;
};

enum { NO_BIT = -1 };

/* Hindrances that are legal in MPI and rare on one machine, and one that no network should have. */
struct faults {
    uint32_t delay;  /* longest sleep [us]; 0: none */
    bool sync_sends; /* MPI_Ssend for MPI_Send */
    struct rng rng;
    /* One bit of a message of this rank, see transport_mpi_flip.c. */
    bool flips, flips_arriving;
    long long flip_message, flip_bit, messages; /* which, which bit of it; how many there were */
    size_t flip_least;                          /* only messages of at least so many bytes; 0: of exchanges alone */
};

struct transport {
    struct comm *job;         /* the whole job's; for a group too */
    bool adopted;             /* by comm_adopt: MPI is not ours to end */
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
    bool sleeps;                /* this job's ranks, while they wait: transport_mpi_wait.c */
    bool takes_device_pointers; /* MPI does, whatever comm->device_pointers says now */
    bool twin;                  /* carries checks: is not checked or flipped, and counts as TRAFFIC_CHECK */
    struct wire_check *check;   /* NULL: no checks */
    struct watch_page *watch;   /* the watchdog's, and its bytes; NULL: none */
    size_t watch_bytes;
    int *job_rank; /* [size] what a group's ranks are in the job; NULL: the same */
};

static inline struct transport *transport_of(const struct comm *c) {
    return c->impl;
}

/* To the watchdog the call is one that may wait. Ends the job when it did not succeed; the rest is printf's and says
 * what was being done. */
#define TRY(call, ...)                                                                                                 \
    do {                                                                                                               \
        beat_wait_begin();                                                                                             \
        int rc_ = (call);                                                                                              \
        beat_wait_end();                                                                                               \
        transport_tried(rc_, __FILE__, __LINE__, __VA_ARGS__);                                                         \
    } while (0)
void transport_tried(int rc, const char *file, int line, const char *doing, ...) __attribute__((format(printf, 4, 5)));

/* The first call of all ranks after MPI_Init: see comm_open_alike. */
bool transport_hello(const struct comm_hello *mine, int size, struct err *e);

/* transport_mpi_wait.c: MPI's calls that wait, on t->world where no communicator is given, as transport_wait_open found
 * best for the job (collective). Until then, and in a simulation, they are MPI's own. */
void transport_wait_open(struct transport *t);
int transport_wait_request(const struct transport *t, MPI_Request *request, MPI_Status *status);
int transport_send(const struct transport *t, bool sync, const void *at, int count, MPI_Datatype type, int dest,
                   int tag);
int transport_recv(const struct transport *t, void *at, int count, MPI_Datatype type, int source, int tag,
                   MPI_Status *status);
int transport_barrier(const struct transport *t, MPI_Comm ranks);
int transport_bcast(const struct transport *t, void *data, int bytes, int root);
int transport_gather(const struct transport *t, const void *mine, int bytes, void *all, int root);
int transport_allgather(const struct transport *t, const void *mine, int bytes, void *all);
int transport_allreduce(const struct transport *t, const void *from, void *to, int count, MPI_Datatype type, MPI_Op op);

/* transport_mpi_watch.c: the watchdog's page, shared by the ranks of a node. Collective. */
void transport_watch_open(struct comm *c);
void transport_watch_close(struct transport *t);
/* The next wait is for this rank of c, and a message of so many bytes. */
static inline void transport_expect(const struct comm *c, int peer, size_t bytes) {
    const int *job_rank = transport_of(c)->job_rank;
    beat_expect(job_rank && peer >= 0 ? job_rank[peer] : peer, bytes);
}

/* SPARSETRAIN_DELAY: a random sleep, where it was asked for. */
void transport_delay(const struct comm *c);

/* transport_mpi_flip.c. A message goes, or has come, on its way: the number of its bit that is to be flipped; NO_BIT:
 * none. What comes is flipped there; what goes by transport_flip, or by a copy, to be freed (NULL: none is needed). */
long long transport_flip_leaving(const struct comm *c, size_t bytes);
void transport_flip_arrived(const struct comm *c, void *data, size_t bytes);
void transport_flip(void *data, long long bit);
void *transport_flip_copy(const struct comm *c, const void *data, size_t bytes);
void transport_flip_open(struct faults *f, int rank);

/* -- comm_set_wire_check: transport_mpi_check.c. Without it all do nothing -- */
struct arrival {
    int source;
    const struct seal *seal;
    void *data;
    size_t capacity;
};
bool transport_sealed(const struct comm *c); /* do messages have seals? */
struct seal transport_seal(const struct comm *c, const void *data, size_t bytes);
void transport_seal_sent(const struct comm *c); /* counts it */
/* What came, of so many bytes with its seal: without. */
size_t transport_unseal(const struct comm *c, const struct arrival *a, size_t bytes);
/* After MPI's own collectives. gathered: all ranks' blocks, [size * bytes] (of a gather: at root alone); mine: before
 * anything changed it on its way. */
void transport_check_bcast(const struct comm *c, int root, const void *data, size_t bytes);
void transport_check_gather(const struct comm *c, int root, const void *mine, size_t bytes, const void *gathered);
void transport_check_allgather(const struct comm *c, const struct seal *mine, size_t bytes, const void *gathered);
/* Around an allreduce: begin before data is changed; NULL, which end takes too: it is not checked. begun: MPI has only
 * begun it. data is the sum at the end; true: it fits, and the check is freed. look: false in place of waiting. */
enum sum_type { SUM_F32, SUM_F64, SUM_U64 };
struct sum_check *transport_check_sum_begin(const struct comm *c, const void *data, size_t count, enum sum_type type,
                                            enum comm_op op, bool begun);
bool transport_check_sum_end(const struct comm *c, struct sum_check *check, const void *data, bool look);
void transport_check_open(struct comm *c);
void transport_check_close(struct transport *t);
/* A group of the same ranks for what checks send. */
struct comm *transport_open_twin(struct comm *c);
void transport_close_twin(struct comm *twin);

/* This rank's place in the binomial tree under `root`: how many children it has, and how many ranks its subtree holds,
 * itself included. */
void transport_binomial_place(const struct comm *c, int root, int *children, int *subtree);

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
int transport_wait(const struct transport *t, struct slot *slot, MPI_Status *status);
int transport_test(struct slot *slot, int *done, MPI_Status *status);

/* A slot from the job's pool, for groups too; it returns there when its request ends. Where none is left the pool
 * grows. */
struct slot *transport_take_slot(const struct comm *c);
void transport_grow_pool(struct transport *t);

#endif
