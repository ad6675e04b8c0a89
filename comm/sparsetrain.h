/* sparsetrain.h: the gradient exchanges of sparsetrain for any program that trains with data parallelism over MPI.
 *
 *        #include <mpi.h>
 *        #include <sparsetrain.h>
 *
 *        char why[SPARSETRAIN_LINE];
 *        sparsetrain *x;
 *        MPI_Comm ranks = MPI_COMM_WORLD;
 *        // each call: SPARSETRAIN_GOOD, or why says in a line what is wrong
 *        if (sparsetrain_open(&x, &ranks, "oktopk", n, "density=0.01,tau=64", why)) ...
 *        for (each step) {
 *            ... backward: grad[0..n-1], this rank's gradient ...
 *            if (sparsetrain_run(x, grad, why)) ...
 *            // grad: the mean over the ranks, for the optimiser
 *        }
 *        sparsetrain_close(x);
 *
 * What does not leave a rank in a step stays in its residual and is added to the next gradient (error feedback).
 *
 * Errors. Functions that return int return SPARSETRAIN_GOOD or one of the others, with one line of text in why, which
 * may be NULL. Nothing ends the calling process and nothing is printed. After SPARSETRAIN_NUMERIC or SPARSETRAIN_SYSTEM
 * of a call on an exchange it is broken: each later call returns the same error, and close releases it. Other ranks may
 * be waiting for this one then: end the job. After a SPARSETRAIN_MISTAKE (a begin too many, another gradient, NULL) it
 * is as it was before the call, unless a restore has taken what no run can have left, which breaks it on all ranks.
 *
 * Threads. A handle is used by one thread at a time. MPI must be initialised with MPI_THREAD_SERIALIZED for overlap
 * with backward (else it is exchanged in sparsetrain_run), and from begin to the end of run the caller makes no MPI
 * calls, nor calls of this library with another handle but get_stats, unless MPI_THREAD_MULTIPLE was granted: a thread
 * of the handle may be inside MPI. So the steps of two handles follow each other, begin to run, and do not overlap.
 * Messages travel on a duplicate of the caller's communicator.
 *
 * GPUs. With device=cuda among the options, grad is device memory: of the GPU that is the current one of the thread
 * that opens, whose primary context is used, and there is one GPU for all exchanges of a process. The library's work
 * goes to a stream of its own. sparsetrain_set_stream names the caller's (NULL, as from open on: the legacy default
 * stream), and
 *
 *  - ready and run begin with what is on that stream when they are called, on the GPU: the host does not wait for it;
 *  - what is put on it after run has returned finds the mean in grad. run itself waits for the exchange, since what
 *    leaves goes by the host, but not for the mean: to read grad in another way, synchronise the stream.
 *
 * Work that has been put on other streams is not waited for. The thread's current GPU stays as it was. Sums, residuals
 * and saved bytes are those of host memory, to the bit. The plugin libsparsetrain_cuda.so serves: $SPARSETRAIN_PLUGIN,
 * else beside this library's file, in sparsetrain/ there, or in lib/sparsetrain of the PREFIX it was made with.
 *
 * Collective calls (open, set_density, run, restore, close) are made by all ranks, for several handles in the same
 * order.
 *
 * The library follows semantic versioning; names that begin with sparsetrain_ and SPARSETRAIN_ are its own. */
#ifndef SPARSETRAIN_H
#define SPARSETRAIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPARSETRAIN_VERSION_MAJOR 0
#define SPARSETRAIN_VERSION_MINOR 1
#define SPARSETRAIN_VERSION_PATCH 0

enum {
    SPARSETRAIN_GOOD = 0,
    SPARSETRAIN_SYSTEM = 1,  /* no memory, MPI or a device failed */
    SPARSETRAIN_MISTAKE = 2, /* of the caller: an option, a size, a state that is not this exchange's */
    SPARSETRAIN_NUMERIC = 3  /* a NaN or an infinity in the gradient or the sum */
};
enum { SPARSETRAIN_LINE = 1024 }; /* bytes of why, the final 0 included */

typedef struct sparsetrain sparsetrain;

/* "0.1.0 (commit ...)" */
const char *sparsetrain_version(void);

/* The i-th algorithm, selector and wire format by name, for loops and messages; NULL past the end. */
const char *sparsetrain_algorithm(size_t i);
const char *sparsetrain_selector(size_t i);
const char *sparsetrain_wire(size_t i);

/* For programs that have no MPI of their own, as those in Python: MPI_Init_thread and MPI_Finalize. Nothing happens
 * where MPI is running already, and finalize ends only what init has begun. rank, size: of MPI_COMM_WORLD; either may
 * be NULL. */
int sparsetrain_mpi_init(int *rank, int *size, char *why);
void sparsetrain_mpi_finalize(void);

/* Opens an exchange of n entries, 1 <= n < 2^32, over the ranks of *mpi_comm, an MPI_Comm (NULL: MPI_COMM_WORLD), which
 * stays the caller's. All ranks give the same arguments. options: "name=value,name=value", or NULL; `_` counts as `-`,
 * and a list within a value has + for the commas that it has on the command line:
 *
 *        density=0.01              part of the entries that a rank sends: k = max(1, floor(density n))
 *        density-max=0.25          the largest that sparsetrain_set_density will be given (density)
 *        select=NAME               in place of the algorithm's own selector
 *        wire=coo32                or packed, packed-f32, packed-fast, packed-fast-f32, bf16, fp16
 *        device=cpu                or cuda: where grad lies, and the residual
 *        tau=64, tau-prime=32, oktopk-thresholds=guarded, oktopk-bucket=4, oktopk-off=none       of Ok-Topk
 *        powersgd-rank=2, omnireduce-block=256, feedback=on, demo-k=32, demo-decay=0.999, demo-sign=on
 *        gtopk-residual=conserve, gaussian-adjust=on, bucket-bytes=4194304 (dense-ovlp), ranks-per-node=M, seed=1
 *
 * `sparsetrain --help` and docs/exchanges.md say what they mean. group: [groups], where each group of layers begins in
 * the gradient, ascending, the first at 0: each is exchanged as soon as sparsetrain_ready says that it is complete.
 * groups = 0: all of it is one. *x is NULL after an error. */
int sparsetrain_open(sparsetrain **x, const void *mpi_comm, const char *algorithm, size_t n, const char *options,
                     char *why);
int sparsetrain_open_groups(sparsetrain **x, const void *mpi_comm, const char *algorithm, size_t n, const char *options,
                            const size_t *group, size_t groups, char *why);
/* The same with what the gradient consists of: slices end to end, slice i of rows x cols entries by rows, as a layer's
 * weights are a matrix of their first dimension by the rest; of a bias rows is 1. For algorithms that go by them
 * (powersgd, onebit, demo), which else take all of it, or of a group, for one. A slice lies in one group, or counts as
 * vectors. slice: [slices], slices = 0: not said; it may be freed after the call. */
struct sparsetrain_slice {
    size_t rows, cols;
};
int sparsetrain_open_slices(sparsetrain **x, const void *mpi_comm, const char *algorithm, size_t n, const char *options,
                            const size_t *group, size_t groups, const struct sparsetrain_slice *slice, size_t slices,
                            char *why);
/* Collective, but for an exchange that an error of the system has broken. A step that was begun is ended first, so
 * until then its gradient must still be there. After MPI_Finalize memory alone is given back. NULL is allowed. */
void sparsetrain_close(sparsetrain *x);

/* Of the next steps. Collective, between steps: a density that is not that of all ranks is refused on all of them, as
 * is one that is out of range, and the exchange goes on with the one that it has. */
int sparsetrain_set_density(sparsetrain *x, double density, char *why);

/* Of an exchange with device=cuda: a cudaStream_t of its GPU, by which later calls go; it may change from call to call,
 * and is not one that is being captured into a graph. */
int sparsetrain_set_stream(sparsetrain *x, void *cuda_stream, char *why);

/* One step. grad: [n], of the exchange's device; in: this rank's gradient; out: the mean over the ranks of what was
 * exchanged, the same bits on all ranks. Memory of the wrong device is refused, where that can be known: a pointer of a
 * GPU given to an exchange on host memory, once an exchange of this process has been on a GPU. */
int sparsetrain_run(sparsetrain *x, float *grad, char *why);

/* The same while backward goes on: begin, then ready as gradients become final from the end on (grad[from..n-1] is
 * final now, from falls from call to call), then run with the same grad. On a GPU what is given to it after ready waits
 * for the stream as it was then; so call ready when that work is done, or nearly, and communication overlaps it. */
int sparsetrain_begin(sparsetrain *x, float *grad, char *why);
int sparsetrain_ready(sparsetrain *x, size_t from, char *why);

/* Entries [from, from + count) of the residual to host memory, and back: for callers whose layout of the gradient
 * changes. Zeros, and an error where one is not zero, with algorithms that have no residual. Not between begin and run.
 */
int sparsetrain_residual(sparsetrain *x, size_t from, size_t count, float *host, char *why);
int sparsetrain_set_residual(sparsetrain *x, size_t from, size_t count, const float *host, char *why);

/* What must survive a restart on this rank: residual, thresholds, region boundaries. save returns how many bytes that
 * is, and writes them where `capacity` suffices; 0: it cannot be saved (NULL, between begin and run, after an error in
 * a step), and nothing else is 0. restore takes them into an exchange that was opened with the same
 * arguments on as many ranks, where device, density and density-max may be others; the next steps are those of an
 * uninterrupted run, to the bit, but where another density-max gives room for more or fewer (docs/library.md). Refused
 * on all ranks alike: damaged bytes, those of another exchange (the line names what differs; options that the
 * algorithm has no use for do not count), ranks that restore different steps. */
size_t sparsetrain_save(sparsetrain *x, void *bytes, size_t capacity);
int sparsetrain_restore(sparsetrain *x, const void *bytes, size_t count, char *why);

enum {
    SPARSETRAIN_OTHER,
    SPARSETRAIN_SELECT,      /* accumulate, select, zero what was delivered */
    SPARSETRAIN_PACK,        /* entries to wire format and back */
    SPARSETRAIN_COMMUNICATE, /* waiting included */
    SPARSETRAIN_MERGE,       /* adding and cutting sparse vectors */
    SPARSETRAIN_UPDATE,      /* the mean, written into the gradient */
    SPARSETRAIN_PHASES
};
struct sparsetrain_stats {
    uint64_t steps;                            /* of the exchange, those before a restore included */
    uint64_t messages_sent, messages_received; /* since open; as are all up to seconds */
    uint64_t bytes_sent, bytes_received;       /* what passed, headers of messages not counted */
    double seconds[SPARSETRAIN_PHASES];        /* of calls of this library */
    double hidden_seconds;                     /* of communication, or with groups exchange, during backward */
    uint64_t k, local_entries, global_entries; /* last step: asked for; put in by this rank; in the sum */
    double words_bound; /* last step: at most so many 4-byte words of coo32 each way, where no more than k pass the
                         * selector: exact and mstopk see to that; by others, gaussiank's among them, more may pass */
    float local_threshold, global_threshold; /* last step; 0: none, or everything passes */
    double mass_lost; /* last step: sum of |v| in neither sum nor residual; not what feedback=off cuts off */
};
void sparsetrain_get_stats(const sparsetrain *x, struct sparsetrain_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
