/* comm.h: the transport: a thin layer over MPI that counts every message and byte. No MPI type appears
 * here; transport_mpi*.[ch] alone include mpi.h. Any MPI failure ends the job (die).
 *
 *        struct comm *c = comm_open(&argc, &argv);
 *        comm_send(c, right, 1, buffer, bytes);
 *        size_t got = comm_recv(c, left, 1, buffer, capacity);
 *        comm_close(c);
 */
#ifndef ST_COMM_COMM_H
#define ST_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

/* What traffic is for; the counters are kept apart, so that logging does not count as exchange, nor do the checksums of
 * comm_set_wire_check, whatever they are of. */
enum traffic { TRAFFIC_EXCHANGE, TRAFFIC_CONTROL, TRAFFIC_CHECK, TRAFFIC_COUNT };

/* Cumulative since comm_open. Point-to-point calls, the all-gather of blocks of different sizes and the reduce-scatter
 * count what really passes. The other collectives are MPI's and opaque, so they count what the standard algorithm of
 * their cost line moves on this rank: allreduce 2(P-1)/P of the vector and 2 ceil(log2 P) messages, all-gather of equal
 * blocks P-1 of them each way in ceil(log2 P) messages, broadcast and gather as a binomial tree. */
struct comm_counters {
    uint64_t messages_sent, messages_received, bytes_sent, bytes_received;
};

struct comm {
    int rank, size;             /* in the whole job */
    int local_rank, local_size; /* among the ranks of this node (comm_set_ranks_per_node may make smaller ones) */
    int node, nodes;            /* this node's number (by its lowest rank), how many there are */
    enum traffic traffic;       /* which counters the next calls go to; of a group: its parent's is used */
    struct comm_counters counters[TRAFFIC_COUNT]; /* of a group: its parent's are used */
    /* Where the time of the calls below is charged, as PHASE_COMMUNICATE; NULL: nowhere. exchange.c sets it for a step;
     * of a group: its parent's is used */
    struct phases *phases;
    struct comm *parent; /* NULL for the whole job */
    bool any_thread;     /* MPI allows calls from any thread, one at a time (MPI_THREAD_SERIALIZED) */
    /* MPI takes pointers of CUDA memory, on all ranks: as it says itself, or as SPARSETRAIN_CUDA_AWARE=0 or 1 says.
     * Only the sums in place (comm_allreduce_f32, comm_iallreduce_f32) are ever given such pointers. */
    bool device_pointers;
    bool wire_check; /* see comm_set_wire_check; of a group: the whole job's is used */
    size_t step;     /* for messages: the step under way, from 1 on; 0: none. Set by whoever counts; as above */
    void *impl;
};

static inline struct phases *comm_phases(const struct comm *c) {
    while (c->parent) c = c->parent;
    return c->phases;
}
/* At the head of each call that sends, receives or waits, and of functions whose several calls count as one stretch
 * of communication. */
#define COMM_SCOPE(c) PHASE_SCOPE(comm_phases(c), PHASE_COMMUNICATE)

/* Starts MPI (MPI_THREAD_SERIALIZED where it grants that) and hooks error.h's rank and abort to it. Call once. */
struct comm *comm_open(int *argc, char ***argv);

/* What all ranks must have in common, each a word or two for the user ("verb list"), shorter than 200 bytes. */
enum { COMM_HELLO_ROWS = 9 };
struct comm_hello {
    const char *row[COMM_HELLO_ROWS];
    double limit; /* comm_watch_limit's */
    int rank;     /* as the launcher says, for the case that MPI does not start */
};
/* comm_open, and before any other call of all ranks they compare these. Where they differ, *e is the same line on all
 * ranks, which names the first row and the lowest rank that is not as rank 0; what is returned can only be closed. */
struct comm *comm_open_alike(int *argc, char ***argv, const struct comm_hello *mine, struct err *e);
/* The watchdog (comm/transport/watch.h), which comm_open_alike starts: of ranks that keep the others waiting for
 * `limit` seconds without a sign of life one is named, and all end. 0: never. Nothing of this in a simulation or on one
 * rank. */
void comm_watch_limit(struct comm *c, double limit);
/* What the line ends with then: "" or "; ...", which stays where it is. */
void comm_watch_advise(const char *advice);
/* The same over ranks that the caller has: mpi_comm is the address of an MPI_Comm (NULL: MPI_COMM_WORLD) of a program
 * that starts and ends MPI itself. It is duplicated, so that messages keep apart from the caller's; nothing of error.h
 * is hooked, and there is no watchdog. Collective over these ranks. NULL: one line in *e, of this rank alone where MPI
 * is not running there. */
struct comm *comm_adopt(const void *mpi_comm, struct err *e);
/* Has that program ended MPI? Then all that can be done is to close. Always false where MPI is ours. */
bool comm_mpi_ended(const struct comm *c);
/* MPI_Init_thread and MPI_Finalize for a program that has no MPI of its own. Nothing happens where it runs already;
 * stop ends what start has begun. rank, size: of MPI_COMM_WORLD. False: MPI does not start. */
bool comm_start_mpi(int *rank, int *size, struct err *e);
void comm_stop_mpi(void);
void comm_close(struct comm *c); /* MPI_Finalize, unless adopted; collective */
/* comm_close for a program that has written all it had to and exits next, with this status: so it does, too, where MPI
 * dies while it ends. (A thread of Open MPI 4.1's handles an event of its start; in a short program that gets no core
 * for it, its plugin is gone by then.) */
void comm_leave(struct comm *c, int status);

/* Ends every rank with this exit status, at once. */
_Noreturn void comm_abort(int status);

/* "Open MPI 4.1.4" / "MPICH 4.0.2": the library in use, for --version and logs. */
const char *comm_library(void);

/* Node name of this rank, for logs. */
const char *comm_host(void);

/* From here on every message carries a checksum, and what MPI's own collectives bring is checked; what is wrong ends
 * the job (EXIT_SYSTEM) naming step, ranks and bytes. Results have the same bits as without, and all bytes of it count
 * as TRAFFIC_CHECK. Sums take memory of twice the vector while they go on, and those that were begun must end in the
 * same order on all ranks. device_pointers is false meanwhile. Where there is no wire,
 * with one rank and in a simulation, wire_check stays false. Collective, of the whole job, before the ranks are
 * grouped. What is found and what is not: transport_mpi_check.c. */
void comm_set_wire_check(struct comm *c, bool on);

/* -- simulation (SimGrid): the ranks are coroutines of one process, and the time they see is the network's alone --- */
/* This rank, before comm_open too; -1: this is no simulation. */
int comm_simulated_rank(void);
static inline bool comm_simulated(void) {
    return comm_simulated_rank() >= 0;
}
/* Stands for so many seconds of computing on this rank: in a simulation simulated time passes, else it sleeps at
 * least so long. */
void comm_compute(struct comm *c, double seconds);
/* Simulation: memory for one vector whose contents do not matter, zero at first. All of its addresses, on all ranks,
 * map to the same MiB of memory, so that it takes almost no room. NULL in real runs. */
void *comm_unread_alloc(struct comm *c, size_t bytes);
void comm_unread_free(struct comm *c, void *memory);

/* -- groups ---------------------------------------------------------------------------------------- */
/* The ranks that give the same colour, in the order of key (then of rank). Collective over c, which must outlive
 * the group. All calls below work on a group as on the job; what passes is counted in the job's counters. */
struct comm *comm_split(struct comm *c, int colour, int key);
void comm_split_close(struct comm *group); /* collective over the group */

/* From here on every `ranks` consecutive ranks count as a node (local_rank, local_size, node, nodes), to emulate
 * nodes on one machine. False: `ranks` does not divide the number of ranks, or the job has groups already.
 * Memory shared by the ranks of a node goes by the real nodes as before. */
bool comm_set_ranks_per_node(struct comm *c, int ranks, struct err *e);

/* -- point to point; messages of any length (above 1 GiB as one message of a derived type) ----------- */
void comm_send(struct comm *c, int dest, int tag, const void *data, size_t bytes);
size_t comm_recv(struct comm *c, int source, int tag, void *data, size_t capacity); /* returns the bytes that came */

/* Non-blocking forms. The handle is small and copyable; wait on each exactly once. */
struct comm_request {
    void *impl; /* transport's own */
    int peer;
    size_t capacity;
    bool receives;
};
void comm_isend(struct comm *c, int dest, int tag, const void *data, size_t bytes, struct comm_request *request);
void comm_irecv(struct comm *c, int source, int tag, void *data, size_t capacity, struct comm_request *request);
size_t comm_wait(struct comm *c, struct comm_request *request); /* bytes received; 0 for a send or a collective */
/* Is it done? Drives MPI's progress. True: the request has ended as by comm_wait (do not wait for it again). */
bool comm_test(struct comm *c, struct comm_request *request);
/* To dest and from source at once, the same tag both ways; either rank may be -1 (nothing that way) or this rank.
 * Returns the bytes that came. */
size_t comm_sendrecv(struct comm *c, int dest, const void *data, size_t bytes, int source, void *into, size_t capacity,
                     int tag);

/* -- collectives over all ranks -------------------------------------------------------------------- */
void comm_barrier(struct comm *c); /* in a simulation and on one machine all ranks leave it at the same instant */
void comm_bcast(struct comm *c, int root, void *data, size_t bytes);
void comm_gather(struct comm *c, int root, const void *mine, size_t bytes,
                 void *all); /* all: [size * bytes] at root, else NULL */
void comm_allgather(struct comm *c, const void *mine, size_t bytes, void *all); /* all: [size * bytes] */
void comm_allgatherv(struct comm *c, const void *mine, size_t bytes, void *all,
                     const size_t *each); /* each: [size] bytes, end to end */
/* each[r] = what rank r gives as mine, the bytes of a message to come; [size]. Dies naming the rank where that is more
 * than `most` or no multiple of 4, as all messages are that hold entries. Counts 8 bytes a rank. */
void comm_allgather_sizes(struct comm *c, size_t mine, size_t most, size_t *each);

enum comm_op { COMM_SUM, COMM_MIN, COMM_MAX };
void comm_allreduce_f32(struct comm *c, float *data, size_t count, enum comm_op op); /* in place */
void comm_allreduce_f64(struct comm *c, double *data, size_t count, enum comm_op op);
void comm_allreduce_u64(struct comm *c, uint64_t *data, size_t count, enum comm_op op);

/* Sum in place, begun: data is not touched until comm_wait or comm_test ends it. Begun in the same order on all
 * ranks. */
void comm_iallreduce_f32(struct comm *c, float *data, size_t count, struct comm_request *request);
/* mine[0..each[rank]-1] = the sum over ranks of this rank's block of data; data: [sum of each], blocks end to end;
 * each: [size] floats. mine lies outside data or is this rank's block of it; the rest of data stays as it is.
 * scratch: [comm_reduce_scatter_scratch(c, each)], less than 1.5 times data where the blocks are equal. */
void comm_reduce_scatter_f32(struct comm *c, const float *data, const size_t *each, float *mine, float *scratch);
size_t comm_reduce_scatter_scratch(const struct comm *c, const size_t *each);
/* ... enough for every each[r] = even_part(n, size, r) with n up to most. */
size_t comm_reduce_scatter_scratch_even(const struct comm *c, size_t most);

/* Did any rank meet an error? Collective. True on every rank if some rank's e->text is not empty; then
 * *e is, on every rank, that of the lowest such rank, text and status. Control traffic. */
bool comm_agree(struct comm *c, struct err *e);

/* -- memory shared by the ranks of a node ---------------------------------------------------------- */
struct comm_shared {
    void *memory; /* [bytes], the same pages on every rank of the node where `shared` */
    size_t bytes;
    bool shared; /* false: MPI could not share (no room in /dev/shm, one rank a node): each rank has its own */
    bool filler; /* this rank is the one to fill it (every rank where it is not shared) */
    void *impl;
};
/* Collective. The filler writes, then all call comm_shared_ready, then all may read. */
void comm_shared_open(struct comm *c, size_t bytes, struct comm_shared *s);
void comm_shared_ready(struct comm *c, struct comm_shared *s);
void comm_shared_close(struct comm *c, struct comm_shared *s);

#endif
