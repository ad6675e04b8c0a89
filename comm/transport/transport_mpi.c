/* transport_mpi.c: comm.h over MPI, start and end, groups, messages between two ranks. Works with Open MPI,
 * MPICH and, simulated, SimGrid. transport_mpi_collective.c, transport_mpi_sums.c, transport_mpi_shared.c,
 * transport_mpi_wait.c, transport_mpi_hello.c, transport_mpi_sim.c and, of checksums, transport_mpi_check.c and
 * transport_mpi_flip.c have the rest; no other file includes mpi.h.
 *
 * Idea: every call is one MPI call, a check of its result and an addition to the counters. MPI counts are
 * ints, so more than PART_LIMIT bytes go in another way: a point-to-point message as ONE message of a derived
 * type (its parts cannot be mixed up with those of the next message), an allreduce or a broadcast as several
 * calls one after the other, an all-gather as a broadcast from each rank.
 *
 * Environment: SPARSETRAIN_NO_SHARED=1 gives every rank memory of its own; SPARSETRAIN_CUDA_AWARE=0|1 says whether MPI
 * takes pointers of CUDA memory, where what it says of itself is wrong. For tests: SPARSETRAIN_PART_BYTES=N
 * lowers the limit, so that short messages go the way of long ones; SPARSETRAIN_SHM_FREE=N stands for the bytes
 * free in /dev/shm; SPARSETRAIN_DELAY=MICROSECONDS has every rank sleep from 0 to so many (at random, but the same in
 * every run) before each send, receive, wait and collective; SPARSETRAIN_SYNC_SENDS=1 lets no send end before its
 * receive has begun, as no program may rely on MPI's buffers; SPARSETRAIN_WIRE_CHECK=1 does what comm_set_wire_check
 * does, from the start; SPARSETRAIN_FLIP=RANK:MESSAGE:BIT flips one bit of one message (transport_mpi_flip.c). */
#include "comm/transport/transport_mpi.h"

#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/transport/watch.h"

#ifdef OPEN_MPI
#include <mpi-ext.h> /* MPIX_Query_cuda_support */
#endif

enum { PART_LIMIT = 1 << 30, POOL_FIRST = 512 };

#ifdef ST_SANITIZE
/* Open MPI unloads its plugins in MPI_Finalize; the leak checker, which looks afterwards, could then not tell their
 * leaks from ours (tests/lib/lsan.supp goes by the name of the library). So nothing is unloaded in such a build. */
int dlclose(void *library);
int dlclose(void *library) {
    (void)library;
    return 0;
}
#endif

void transport_tried(int rc, const char *file, int line, const char *doing, ...) {
    char text[MPI_MAX_ERROR_STRING] = "", what[256];
    int length = 0;
    va_list args;
    if (rc == MPI_SUCCESS) return;
    va_start(args, doing);
    vsnprintf(what, sizeof what, doing, args);
    va_end(args);
    MPI_Error_string(rc, text, &length);
    for (char *at = text; *at; at++)
        if (*at == '\n') *at = ' ';
    die_at(file, line, "%s failed: %s", what, text);
}

/* -- faults, as asked for -------------------------------------------------------------------------- */
static void faults_open(struct faults *f, int rank) {
    const char *delay = getenv("SPARSETRAIN_DELAY"), *sync = getenv("SPARSETRAIN_SYNC_SENDS");
    unsigned long longest = delay ? strtoul(delay, NULL, 10) : 0;
    f->delay = longest < 1000000 ? (uint32_t)longest : 999999; /* usleep's limit */
    f->sync_sends = sync && strcmp(sync, "1") == 0;
    f->rng = rng_open(1, RNG_TEST, (uint64_t)rank);
    transport_flip_open(f, rank);
}

static struct faults *faults_of(const struct comm *c) {
    return &transport_of(transport_of(c)->job)->faults;
}

void transport_delay(const struct comm *c) {
    struct faults *f = faults_of(c);
    if (f->delay) usleep(rng_below(&f->rng, f->delay + 1));
}

/* -- counters -------------------------------------------------------------------------------------- */
static struct comm_counters *counters_of(const struct comm *c) {
    struct comm *job = transport_of(c)->job;
    return &job->counters[transport_of(c)->twin ? TRAFFIC_CHECK : job->traffic];
}

void transport_count_sent(const struct comm *c, size_t messages, size_t bytes) {
    struct comm_counters *counters = counters_of(c);
    counters->messages_sent += messages;
    counters->bytes_sent += bytes;
}

void transport_count_received(const struct comm *c, size_t messages, size_t bytes) {
    struct comm_counters *counters = counters_of(c);
    counters->messages_received += messages;
    counters->bytes_received += bytes;
}

/* -- start and end --------------------------------------------------------------------------------- */
/* The ranks that this rank can share memory with. */
static void find_neighbours(struct transport *t) {
    TRY(MPI_Comm_split_type(t->world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &t->local), "MPI_Comm_split_type");
    TRY(MPI_Comm_set_errhandler(t->local, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    TRY(MPI_Comm_rank(t->local, &t->node_rank), "MPI_Comm_rank");
    TRY(MPI_Comm_size(t->local, &t->node_size), "MPI_Comm_size");
}

/* Fills in c's nodes, ordered by their lowest ranks. label: the same on the ranks of a node, different on those of
 * other nodes. */
static void find_nodes(struct comm *c, int label) {
    int *node = mem_alloc((size_t)c->size, sizeof *node, "the nodes of the ranks");
    TRY(transport_allgather(transport_of(c), &label, sizeof label, node), "MPI_Allgather");
    c->local_rank = c->local_size = c->node = c->nodes = 0;
    for (int r = 0; r < c->size; r++) {
        int lowest = 0;
        while (node[lowest] != node[r]) lowest++;
        if (node[r] == label) {
            if (lowest == r) c->node = c->nodes;
            if (r < c->rank) c->local_rank++;
            c->local_size++;
        }
        if (lowest == r) c->nodes++;
    }
    mem_free(node);
}

static void grow_pool(struct transport *t) {
    struct slot_block *block = mem_alloc(1, sizeof *block, "MPI requests");
    block->next = t->blocks;
    t->blocks = block;
    for (int i = 0; i < POOL_BLOCK; i++) {
        block->slot[i].next = t->free_slots;
        t->free_slots = &block->slot[i];
    }
}

/* What Open MPI does better when told; what the user has set stays.
 * - Its ranks spin while they wait. With more ranks than cores that starves those they wait for: an allreduce of one
 *   float at P = 8 on two cores takes 20 ms instead of 0.02. Its own guess fails where the slots were declared.
 * - A process without mpirun starts a helper, for MPI_Comm_spawn alone: a tenth of a second, and it outlives a kill. */
static void set_defaults(void) {
    const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (ranks && atol(ranks) > sysconf(_SC_NPROCESSORS_ONLN)) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
}

/* What this MPI says of itself; false where it has no such call. */
static bool says_cuda_aware(void) {
#if defined(OPEN_MPI) && defined(MPIX_CUDA_AWARE_SUPPORT)
    return MPIX_Query_cuda_support() == 1;
#elif defined(MPIX_GPU_SUPPORT_CUDA)
    int supported = 0;
    return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS && supported;
#else
    return false;
#endif
}

/* The same on all ranks, since it decides which collectives they call. */
static bool takes_device_pointers(MPI_Comm world) {
    const char *given = getenv("SPARSETRAIN_CUDA_AWARE");
    int all = given && *given ? strcmp(given, "1") == 0 : says_cuda_aware();
    TRY(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, world), "MPI_Allreduce (minimum)");
    return all;
}

/* SPARSETRAIN_WIRE_CHECK on any rank switches it on for all: a rank that expects no checksum would misread messages
 * that have one. */
static bool wire_check_wanted(MPI_Comm world) {
    const char *given = getenv("SPARSETRAIN_WIRE_CHECK");
    int any = given && strcmp(given, "1") == 0;
    TRY(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, world), "MPI_Allreduce (maximum)");
    return any;
}

/* The ranks of `world`, which may be the whole job (parent NULL) or a group of parent's. */
static struct comm *open_ranks(MPI_Comm world, struct comm *parent) {
    const char *use = parent ? "a group of ranks" : "the transport";
    struct comm *c = mem_zalloc(1, sizeof *c, use);
    struct transport *t = mem_zalloc(1, sizeof *t, use);
    c->impl = t;
    c->parent = parent;
    c->traffic = TRAFFIC_CONTROL;
    t->job = parent ? transport_of(parent)->job : c;
    t->sleeps = parent && transport_of(parent)->sleeps;
    t->world = world;
    TRY(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    TRY(MPI_Comm_rank(world, &c->rank), "MPI_Comm_rank");
    TRY(MPI_Comm_size(world, &c->size), "MPI_Comm_size");
    find_neighbours(t);
    return c;
}

static void close_ranks(struct comm *c) {
    struct transport *t = transport_of(c);
    mem_free(t->job_rank);
    mem_free(t);
    mem_free(c);
}

struct comm *comm_open(int *argc, char ***argv) {
    return comm_open_alike(argc, argv, NULL, NULL);
}

/* Of ranks that were started differently, which may be of versions that go on differently from here. */
static struct comm *open_stranger(int rank, int size) {
    struct comm *c = mem_zalloc(1, sizeof *c, "the transport");
    struct transport *t = mem_zalloc(1, sizeof *t, "the transport");
    c->impl = t;
    c->rank = rank;
    c->size = size;
    t->job = c;
    t->local = MPI_COMM_NULL;
    return c;
}

/* The whole of the ranks of `world`. granted: by MPI, to threads. */
static struct comm *open_job(MPI_Comm world, int granted) {
    struct comm *c = open_ranks(world, NULL);
    struct transport *t = transport_of(c);
    transport_wait_open(t);
    c->any_thread = granted >= MPI_THREAD_SERIALIZED;
    c->device_pointers = t->takes_device_pointers = takes_device_pointers(world);
    const char *part = getenv("SPARSETRAIN_PART_BYTES");
    t->part = part ? strtoull(part, NULL, 10) : PART_LIMIT;
    if (t->part < 8 || t->part > PART_LIMIT) t->part = PART_LIMIT;
    faults_open(&t->faults, c->rank);
    for (int room = 0; room < 4 * c->size + POOL_FIRST; room += POOL_BLOCK) grow_pool(t); /* so that no step has to */
    int leader = c->rank;
    TRY(MPI_Bcast(&leader, 1, MPI_INT, 0, t->local), "MPI_Bcast on the node");
    find_nodes(c, leader);
    comm_set_wire_check(c, wire_check_wanted(world));
    return c;
}

/* A copy of the caller's ranks. Whatever their communicator does with errors, here they are returned. */
static int copy_theirs(MPI_Comm theirs, MPI_Comm *own, int *inter) {
    MPI_Errhandler before;
    TRY(MPI_Comm_get_errhandler(theirs, &before), "MPI_Comm_get_errhandler");
    MPI_Comm_set_errhandler(theirs, MPI_ERRORS_RETURN);
    int rc = MPI_Comm_test_inter(theirs, inter);
    if (rc == MPI_SUCCESS && !*inter) rc = MPI_Comm_dup(theirs, own);
    MPI_Comm_set_errhandler(theirs, before);
    MPI_Errhandler_free(&before);
    return rc;
}

struct comm *comm_adopt(const void *mpi_comm, struct err *e) {
    int started = 0, ended = 0, granted = MPI_THREAD_SINGLE, inter = 0;
    MPI_Comm theirs, own;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (!started || ended)
        return err_set(e, "MPI is not running: call MPI_Init_thread before, and close before MPI_Finalize"), NULL;
    theirs = MPI_COMM_WORLD;
    if (mpi_comm) memcpy(&theirs, mpi_comm, sizeof theirs);
    if (theirs == MPI_COMM_NULL) return err_set(e, "the communicator is MPI_COMM_NULL"), NULL;
    TRY(copy_theirs(theirs, &own, &inter), "MPI_Comm_dup");
    if (inter) return err_set(e, "the communicator joins two groups of ranks; one of a single group is needed"), NULL;
    TRY(MPI_Query_thread(&granted), "MPI_Query_thread");
    struct comm *c = open_job(own, granted);
    transport_of(c)->adopted = true;
    return c;
}

static bool started_here;

bool comm_start_mpi(int *rank, int *size, struct err *e) {
    int started = 0, ended = 0, provided;
    MPI_Finalized(&ended);
    if (ended) return err_set(e, "MPI has been finalised, and cannot be started again in the same process");
    MPI_Initialized(&started);
    if (!started) {
        set_defaults();
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
            return err_system(e, "MPI_Init_thread failed");
        started_here = true;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    return true;
}

void comm_end_mpi(void) {
    int ended = 0;
    MPI_Finalized(&ended);
    if (started_here && !ended) MPI_Finalize();
    started_here = false;
}

struct comm *comm_open_alike(int *argc, char ***argv, const struct comm_hello *mine, struct err *e) {
    set_defaults();
    if (mine && !SIMULATED) watch_begin(mine->limit, mine->rank);
    int provided, rank = 0, size = 1; /* a library that grants less (SimGrid) is fine too */
    if (MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) die("MPI_Init_thread failed");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    error_set_rank(rank, size);
    error_set_abort(comm_abort);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* Simulated ranks are one process. */
    if (mine && !SIMULATED && !transport_hello(mine, size, e)) return open_stranger(rank, size);
    struct comm *c = open_job(MPI_COMM_WORLD, provided);
    if (mine && !SIMULATED) transport_watch_open(c);
    return c;
}

void comm_watch_limit(struct comm *c, double limit) {
    (void)c;
    watch_set_limit(limit);
}

void comm_watch_advise(const char *advice) {
    watch_advise(advice);
}

static volatile sig_atomic_t last_status = -1; /* of comm_end */

static void mpi_has_died(int number) {
    static const char text[] = "sparsetrain: MPI died while it ended; the run was complete, and its files are whole\n";
    (void)number;
    if (last_status == 0 && write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(1);
    _exit(last_status);
}

static void end_mpi(struct transport *t) {
    static const int deaths[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
    beat_activity(ACTIVITY_END, (size_t)BEAT_GET(step));
    beat_wait_begin();
    if (t->sleeps) transport_barrier(t, t->world);
    for (size_t i = 0; last_status >= 0 && i < sizeof deaths / sizeof *deaths; i++) signal(deaths[i], mpi_has_died);
    MPI_Finalize();
    beat_wait_end();
    transport_watch_close(t);
}

void comm_end(struct comm *c, int status) {
    if (!SIMULATED) last_status = status;
    comm_close(c);
}

bool comm_ended(const struct comm *c) {
    int ended = 0;
    if (transport_of(transport_of(c)->job)->adopted) MPI_Finalized(&ended);
    return ended;
}

void comm_close(struct comm *c) {
    if (!c) return;
    struct transport *t = transport_of(c);
    if (!t->adopted) error_set_abort(NULL);
    transport_sums_close(t);
    transport_check_close(t);
    const bool ended = comm_ended(c); /* and with MPI its communicators */
    if (t->local != MPI_COMM_NULL && !ended) MPI_Comm_free(&t->local);
    if (!t->adopted)
        end_mpi(t);
    else if (!ended)
        MPI_Comm_free(&t->world);
    for (struct slot_block *block = t->blocks, *next; block; block = next) {
        next = block->next;
        mem_free(block);
    }
    close_ranks(c);
}

static volatile int abort_status;

static void leave_now(int number) {
    (void)number;
    _exit(abort_status);
}

/* MPI_Abort asks the launcher to end the job, which may wait for stopped ranks: after so many seconds this process
 * ends itself. */
static void leave_in(unsigned seconds, int status) {
    abort_status = status;
    signal(SIGALRM, leave_now);
    alarm(seconds);
}

_Noreturn void comm_abort(int status) {
    int started = 0, ended = 0;
    if (!SIMULATED) leave_in(20, status);
    fflush(NULL);
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    /* All ranks of a simulation are this process; MPI_Abort would end it with status 0. */
    if (started && !ended && !SIMULATED) MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
}

/* Open MPI says "Open MPI v4.1.4, package: ...", MPICH "MPICH Version:\t4.0.2\nMPICH Release date: ...", SimGrid
 * "SMPI Version 3.32. Copyright ...". */
const char *comm_library(void) {
    static char name[64];
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", version[32] = "";
    int length, major, minor;
    if (name[0]) return name;
    MPI_Get_library_version(text, &length);
    if (sscanf(text, "Open MPI v%31[^, ]", version) == 1)
        snprintf(name, sizeof name, "Open MPI %s", version);
    else if (sscanf(text, "MPICH Version: %31s", version) == 1)
        snprintf(name, sizeof name, "MPICH %s", version);
    else if (sscanf(text, "SMPI Version %d.%d", &major, &minor) == 2)
        snprintf(name, sizeof name, "SimGrid %d.%d", major, minor);
    else
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ",\n"), text);
    return name;
}

const char *comm_host(void) {
    static char name[MPI_MAX_PROCESSOR_NAME + 1];
    int length;
    if (!name[0]) TRY(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name");
    return name;
}

/* -- groups ---------------------------------------------------------------------------------------- */
static void find_job_ranks(struct comm *group) {
    struct transport *t = transport_of(group);
    MPI_Group here, whole;
    int *mine = mem_alloc((size_t)group->size, sizeof *mine, "the ranks of a group");
    t->job_rank = mem_alloc((size_t)group->size, sizeof *mine, "the ranks of a group");
    for (int i = 0; i < group->size; i++) mine[i] = i;
    TRY(MPI_Comm_group(t->world, &here), "MPI_Comm_group");
    TRY(MPI_Comm_group(transport_of(t->job)->world, &whole), "MPI_Comm_group");
    TRY(MPI_Group_translate_ranks(here, group->size, mine, whole, t->job_rank), "MPI_Group_translate_ranks");
    MPI_Group_free(&here);
    MPI_Group_free(&whole);
    mem_free(mine);
}

struct comm *comm_split(struct comm *c, int colour, int key) {
    MPI_Comm world;
    if (colour < 0) die("a group's colour is %d; it must not be negative", colour);
    TRY(MPI_Comm_split(transport_of(c)->world, colour, key, &world), "MPI_Comm_split");
    struct comm *group = open_ranks(world, c);
    struct transport *t = transport_of(group), *job = transport_of(t->job);
    group->any_thread = c->any_thread;
    group->device_pointers = c->device_pointers;
    group->wire_check = c->wire_check;
    t->part = job->part;
    find_nodes(group, c->node);
    if (!SIMULATED) find_job_ranks(group);
    job->groups++;
    if (t->job->wire_check) transport_check_open(group);
    return group;
}

struct comm *transport_open_twin(struct comm *c) {
    MPI_Comm world;
    TRY(MPI_Comm_dup(transport_of(c)->world, &world), "MPI_Comm_dup");
    struct comm *twin = open_ranks(world, c);
    struct transport *t = transport_of(twin);
    t->part = transport_of(t->job)->part;
    t->twin = true;
    return twin;
}

void transport_close_twin(struct comm *twin) {
    struct transport *t = transport_of(twin);
    const bool ended = comm_ended(twin);
    if (!ended) TRY(MPI_Comm_free(&t->local), "MPI_Comm_free");
    if (!ended) TRY(MPI_Comm_free(&t->world), "MPI_Comm_free");
    close_ranks(twin);
}

void comm_split_close(struct comm *group) {
    if (!group) return;
    struct transport *t = transport_of(group);
    transport_of(t->job)->groups--;
    transport_check_close(t);
    transport_close_twin(group);
}

bool comm_set_ranks_per_node(struct comm *c, int ranks, struct err *e) {
    if (c->parent || transport_of(c)->groups > 0) return err_set(e, "nodes must be set before the ranks are grouped");
    if (ranks < 1 || c->size % ranks != 0)
        return err_set(e, "%d ranks a node do not divide the %d rank%s of this job; take a number that does", ranks,
                       c->size, c->size == 1 ? "" : "s");
    c->node = c->rank / ranks;
    c->nodes = c->size / ranks;
    c->local_rank = c->rank % ranks;
    c->local_size = ranks;
    return true;
}

/* -- point to point -------------------------------------------------------------------------------- */
/* What to hand to MPI for `bytes` bytes: (count, MPI_BYTE), or 1 of a type made of whole parts and a rest. */
struct extent {
    int count;
    MPI_Datatype type;
};

static struct extent extent_open(const struct transport *t, size_t bytes) {
    if (bytes <= t->part) return (struct extent){(int)bytes, MPI_BYTE};
    size_t parts = bytes / t->part, rest = bytes % t->part;
    if (parts > INT_MAX) die("a message of %zu bytes is too long", bytes);
    MPI_Datatype part, whole, two[2];
    TRY(MPI_Type_contiguous((int)t->part, MPI_BYTE, &part), "MPI_Type_contiguous");
    TRY(MPI_Type_contiguous((int)parts, part, &two[0]), "MPI_Type_contiguous");
    two[1] = MPI_BYTE;
    TRY(MPI_Type_create_struct(2, (int[]){1, (int)rest}, (MPI_Aint[]){0, (MPI_Aint)(bytes - rest)}, two, &whole),
        "MPI_Type_create_struct");
    TRY(MPI_Type_commit(&whole), "MPI_Type_commit");
    MPI_Type_free(&two[0]);
    MPI_Type_free(&part);
    return (struct extent){1, whole};
}

static void extent_close(MPI_Datatype type) {
    if (type != MPI_BYTE) MPI_Type_free(&type);
}

/* What MPI is given of a message: its bytes, and before them their seal where messages have one. */
struct parcel {
    const void *at;
    int count;
    MPI_Datatype type;
};

static struct parcel parcel_open(const struct comm *c, const void *data, size_t bytes, const struct seal *seal) {
    struct extent e = extent_open(transport_of(c), bytes);
    MPI_Aint at[2];
    MPI_Datatype both;
    if (!transport_sealed(c)) return (struct parcel){data, e.count, e.type};
    TRY(MPI_Get_address(seal, &at[0]), "MPI_Get_address");
    TRY(MPI_Get_address(data, &at[1]), "MPI_Get_address");
    TRY(MPI_Type_create_struct(2, (int[]){sizeof *seal, e.count}, (MPI_Aint[]){0, MPI_Aint_diff(at[1], at[0])},
                               (MPI_Datatype[]){MPI_BYTE, e.type}, &both),
        "MPI_Type_create_struct");
    TRY(MPI_Type_commit(&both), "MPI_Type_commit");
    extent_close(e.type);
    return (struct parcel){seal, 1, both};
}

static size_t received_bytes(struct comm *c, int rc, MPI_Status *status, const struct arrival *a) {
    int class = MPI_SUCCESS, source = a->source;
    MPI_Count bytes = 0;
    if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
    if (class == MPI_ERR_TRUNCATE)
        die("rank %d sent a message of more than the expected %zu bytes", source, a->capacity);
    TRY(rc, "receiving from rank %d", source);
    if (SIMULATED) { /* SimGrid has no MPI_Get_elements_x, and counts in ints everywhere */
        int count = 0;
        TRY(MPI_Get_count(status, MPI_BYTE, &count), "MPI_Get_count");
        bytes = count;
    } else {
        TRY(MPI_Get_elements_x(status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
    }
    size_t got = transport_unseal(c, a, (size_t)bytes);
    transport_count_received(c, 1, got);
    return got;
}

void comm_send(struct comm *c, int dest, int tag, const void *data, size_t bytes) {
    COMM_SCOPE(c);
    struct transport *t = transport_of(c);
    struct seal seal = transport_seal(c, data, bytes);
    void *flipped = transport_flip_copy(c, data, bytes);
    struct parcel p = parcel_open(c, flipped ? flipped : data, bytes, &seal);
    transport_delay(c);
    transport_expect(c, dest, bytes);
    beat_wait_begin();
    int rc = transport_send(t, faults_of(c)->sync_sends, p.at, p.count, p.type, dest, tag);
    beat_wait_end();
    TRY(rc, "MPI_Send of %zu bytes to rank %d", bytes, dest);
    extent_close(p.type);
    mem_free(flipped);
    transport_seal_sent(c);
    transport_count_sent(c, 1, bytes);
}

size_t comm_recv(struct comm *c, int source, int tag, void *data, size_t capacity) {
    COMM_SCOPE(c);
    struct transport *t = transport_of(c);
    struct seal seal = {0};
    struct parcel p = parcel_open(c, data, capacity, &seal);
    MPI_Status status;
    transport_delay(c);
    transport_expect(c, source, capacity);
    beat_wait_begin();
    int rc = transport_recv(t, (void *)p.at, p.count, p.type, source, tag, &status);
    beat_wait_end();
    extent_close(p.type);
    return received_bytes(c, rc, &status, &(struct arrival){source, &seal, data, capacity});
}

struct slot *transport_take_slot(const struct comm *c) {
    struct transport *t = transport_of(transport_of(c)->job);
    if (!t->free_slots) grow_pool(t);
    struct slot *slot = t->free_slots;
    t->free_slots = slot->next;
    slot->type = MPI_BYTE;
    slot->data = slot->flipped = NULL;
    slot->sum = NULL;
    slot->check = NULL;
    slot->summed = false;
    slot->next = NULL;
    return slot;
}

/* With all that belong to the same request. */
static void return_slots(const struct comm *c, struct slot *slot) {
    struct transport *t = transport_of(transport_of(c)->job);
    for (struct slot *next; slot; slot = next) {
        next = slot->next;
        extent_close(slot->type);
        mem_free(slot->flipped);
        slot->next = t->free_slots;
        t->free_slots = slot;
    }
}

void comm_isend(struct comm *c, int dest, int tag, const void *data, size_t bytes, struct comm_request *request) {
    COMM_SCOPE(c);
    struct transport *t = transport_of(c);
    struct slot *slot = transport_take_slot(c);
    slot->seal = transport_seal(c, data, bytes);
    slot->flipped = transport_flip_copy(c, data, bytes);
    struct parcel p = parcel_open(c, slot->flipped ? slot->flipped : data, bytes, &slot->seal);
    slot->type = p.type;
    transport_delay(c);
    int rc = faults_of(c)->sync_sends ? MPI_Issend(p.at, p.count, p.type, dest, tag, t->world, &slot->request)
                                      : MPI_Isend(p.at, p.count, p.type, dest, tag, t->world, &slot->request);
    TRY(rc, "MPI_Isend of %zu bytes to rank %d", bytes, dest);
    *request = (struct comm_request){slot, dest, bytes, false};
    transport_seal_sent(c);
    transport_count_sent(c, 1, bytes);
}

void comm_irecv(struct comm *c, int source, int tag, void *data, size_t capacity, struct comm_request *request) {
    COMM_SCOPE(c);
    struct transport *t = transport_of(c);
    struct slot *slot = transport_take_slot(c);
    struct parcel p = parcel_open(c, data, capacity, &slot->seal);
    slot->type = p.type;
    slot->data = data;
    transport_delay(c);
    TRY(MPI_Irecv((void *)p.at, p.count, p.type, source, tag, t->world, &slot->request), "MPI_Irecv from rank %d",
        source);
    *request = (struct comm_request){slot, source, capacity, true};
}

/* The request is over: rc and status are those of its (last) MPI call. */
static size_t finish_request(struct comm *c, struct comm_request *request, int rc, MPI_Status *status) {
    struct slot *slot = request->impl;
    size_t bytes = 0;
    if (request->receives) {
        const struct arrival a = {request->peer, &slot->seal, slot->data, request->capacity};
        bytes = received_bytes(c, rc, status, &a);
    } else if (request->peer >= 0) {
        TRY(rc, "MPI_Isend of %zu bytes to rank %d", request->capacity, request->peer);
    } else {
        TRY(rc, "MPI_Iallreduce of %zu bytes", request->capacity);
    }
    return_slots(c, slot);
    request->impl = NULL;
    return bytes;
}

/* MPI's part of a request is over. False: it is a sum whose check is not, and which is only looked at. */
static bool sum_checked(struct comm *c, const struct comm_request *request, bool look) {
    struct slot *slot = request->impl;
    if (request->receives || request->peer >= 0) return true;
    if (!slot->summed) transport_flip_arrived(c, slot->data, request->capacity);
    slot->summed = true;
    if (!transport_check_sum_end(c, slot->check, slot->data, look)) return false;
    slot->check = NULL;
    return true;
}

static struct slot *slots_of(const struct comm_request *request) {
    if (!request->impl) die("a request was waited for twice");
    return request->impl;
}

size_t comm_wait(struct comm *c, struct comm_request *request) {
    COMM_SCOPE(c);
    MPI_Status status;
    int rc = MPI_SUCCESS;
    transport_delay(c);
    transport_expect(c, request->peer, request->capacity);
    beat_wait_begin();
    for (struct slot *slot = slots_of(request); slot && rc == MPI_SUCCESS; slot = slot->next)
        rc = transport_wait(transport_of(c), slot, &status);
    beat_wait_end();
    if (rc == MPI_SUCCESS) sum_checked(c, request, false);
    return finish_request(c, request, rc, &status);
}

bool comm_test(struct comm *c, struct comm_request *request) {
    COMM_SCOPE(c);
    MPI_Status status;
    int rc = MPI_SUCCESS, done = 1;
    /* One that has ended is MPI_REQUEST_NULL from then on, which counts as done. */
    for (struct slot *slot = slots_of(request); slot && done && rc == MPI_SUCCESS; slot = slot->next)
        rc = transport_test(slot, &done, &status);
    if (rc == MPI_SUCCESS && (!done || !sum_checked(c, request, true))) return false;
    finish_request(c, request, rc, &status);
    return true;
}

size_t comm_sendrecv(struct comm *c, int dest, const void *data, size_t bytes, int source, void *into, size_t capacity,
                     int tag) {
    COMM_SCOPE(c);
    struct comm_request send, receive;
    size_t got = 0;
    if ((dest == c->rank) != (source == c->rank)) die("a rank that sends to itself must receive from itself");
    if (dest == c->rank) {
        if (bytes > capacity)
            die("a message of %zu bytes to itself, of which at most %zu were expected", bytes, capacity);
        if (bytes > 0) memmove(into, data, bytes);
        return bytes;
    }
    if (source >= 0) comm_irecv(c, source, tag, into, capacity, &receive);
    if (dest >= 0) comm_isend(c, dest, tag, data, bytes, &send);
    if (source >= 0) got = comm_wait(c, &receive);
    if (dest >= 0) comm_wait(c, &send);
    return got;
}
