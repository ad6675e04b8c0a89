/* transport_mpi_job.c: comm.h over MPI, how a job starts and ends, its nodes, groups of ranks.
 *
 * Environment: SPARSETRAIN_NO_SHARED=1 gives every rank memory of its own; SPARSETRAIN_CUDA_AWARE=0|1 says whether MPI
 * takes pointers of CUDA memory, where what it says of itself is wrong. For tests: SPARSETRAIN_PART_BYTES=N
 * lowers the limit, so that short messages go the way of long ones; SPARSETRAIN_SHM_FREE=N stands for the bytes
 * free in /dev/shm; SPARSETRAIN_DELAY=MICROSECONDS has every rank sleep from 0 to so many (at random, but the same in
 * every run) before each send, receive, wait and collective; SPARSETRAIN_SYNC_SENDS=1 lets no send end before its
 * receive has begun, as no program may rely on MPI's buffers; SPARSETRAIN_WIRE_CHECK=1 does what comm_set_wire_check
 * does, from the start; SPARSETRAIN_FLIP=RANK:MESSAGE:BIT flips one bit of one message (transport_mpi_flip.c). */
#include "comm/transport/transport_mpi.h"

#include <signal.h>
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

/* Did a launcher start this process that Open MPI takes ranks from? Without one it is a job of one rank, also where the
 * launcher of another MPI has started it. */
static bool has_own_launcher(void) {
    static const char *const variable[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_ID", "ALPS_APP_ID"};
    for (size_t i = 0; i < sizeof variable / sizeof *variable; i++)
        if (getenv(variable[i])) return true;
    return false;
}

/* What Open MPI does better when told; what the user has set stays.
 * - Its ranks spin while they wait. With more ranks than cores that starves those they wait for: an allreduce of one
 *   float at P = 8 on two cores takes 20 ms instead of 0.02. Its own guess fails where the slots were declared.
 * - A process without mpirun starts a helper, for MPI_Comm_spawn alone: a tenth of a second, and it outlives a kill.
 *   Without the helper all such processes of a machine would share one directory for their files, which each makes and
 *   removes: one that starts while another ends would die in MPI_Init. One process has no such files. */
static void set_defaults(void) {
    const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (ranks && atol(ranks) > sysconf(_SC_NPROCESSORS_ONLN)) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    if (!has_own_launcher()) {
        setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
        setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
    }
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

static void faults_open(struct faults *f, int rank) {
    const char *delay = getenv("SPARSETRAIN_DELAY"), *sync = getenv("SPARSETRAIN_SYNC_SENDS");
    unsigned long longest = delay ? strtoul(delay, NULL, 10) : 0;
    f->delay = longest < 1000000 ? (uint32_t)longest : 999999; /* usleep's limit */
    f->sync_sends = sync && strcmp(sync, "1") == 0;
    f->rng = rng_open(1, RNG_TEST, (uint64_t)rank);
    transport_flip_open(f, rank);
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
    for (int room = 0; room < 4 * c->size + POOL_FIRST; room += POOL_BLOCK)
        transport_grow_pool(t); /* so that no step has to */
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

void comm_stop_mpi(void) {
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

static volatile sig_atomic_t last_status = -1; /* of comm_leave */

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

void comm_leave(struct comm *c, int status) {
    if (!SIMULATED) last_status = status;
    comm_close(c);
}

bool comm_mpi_ended(const struct comm *c) {
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
    const bool ended = comm_mpi_ended(c); /* and with MPI its communicators */
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
    const bool ended = comm_mpi_ended(twin);
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
