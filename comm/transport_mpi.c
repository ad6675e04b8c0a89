/* transport_mpi.c: comm.h over MPI, the only file that includes mpi.h. Works with Open MPI and MPICH.
 *
 * Idea: every call is one MPI call, a check of its result and an addition to the counters. MPI counts are
 * ints, so more than PART_LIMIT bytes go in another way: a point-to-point message as ONE message of a derived
 * type (its parts cannot be mixed up with those of the next message), an allreduce or a broadcast as several
 * calls one after the other, an all-gather as a broadcast from each rank.
 *
 * Environment: SPARSETRAIN_NO_SHARED=1 gives every rank memory of its own. For tests: SPARSETRAIN_PART_BYTES=N
 * lowers the limit, so that short messages go the way of long ones; SPARSETRAIN_SHM_FREE=N stands for the bytes
 * free in /dev/shm. */
#include "comm/comm.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "comm/peers.h"

enum { PART_LIMIT = 1 << 30, POOL_BLOCK = 64, CACHE_LINE = 64 };
enum { GATHER_TAG = 32767 }; /* the largest tag that every MPI has; no caller uses it */

#ifdef ST_SANITIZE
/* Open MPI unloads its plugins in MPI_Finalize; the leak checker, which looks afterwards, could then not tell their
 * leaks from ours (tests/lsan.supp goes by the name of the library). So nothing is unloaded in such a build. */
int dlclose(void *library);
int dlclose(void *library) {
    (void)library;
    return 0;
}
#endif

/* One outstanding non-blocking call. */
struct slot {
    MPI_Request request;
    MPI_Datatype type; /* to be freed after the wait; MPI_BYTE: nothing to free */
    struct slot *next; /* in the list of free ones */
};
struct slot_block {
    struct slot slot[POOL_BLOCK];
    struct slot_block *next;
};

struct transport {
    MPI_Comm world, local; /* all ranks; those of this node */
    size_t part;           /* most bytes that one plain MPI call is given */
    int *counts, *offsets; /* [size] for MPI_Allgatherv */
    struct slot *free_slots;
    struct slot_block *blocks;
};

static struct transport *transport_of(const struct comm *c) {
    return c->impl;
}

/* Ends the job when an MPI call did not succeed; the rest is printf's and says what was being done. */
#define TRY(call, ...)                                                                                                 \
    do {                                                                                                               \
        int rc_ = (call);                                                                                              \
        if (rc_ != MPI_SUCCESS) {                                                                                      \
            char doing_[256];                                                                                          \
            snprintf(doing_, sizeof doing_, __VA_ARGS__);                                                              \
            die("%s failed: %s", doing_, error_text(rc_, (char[MPI_MAX_ERROR_STRING]){0}));                            \
        }                                                                                                              \
    } while (0)

static const char *error_text(int rc, char text[MPI_MAX_ERROR_STRING]) {
    int length = 0;
    if (MPI_Error_string(rc, text, &length) != MPI_SUCCESS) snprintf(text, MPI_MAX_ERROR_STRING, "MPI error %d", rc);
    for (char *at = text; *at; at++)
        if (*at == '\n') *at = ' ';
    return text;
}

/* -- counters -------------------------------------------------------------------------------------- */
static void count_sent(struct comm *c, size_t messages, size_t bytes) {
    c->counters[c->traffic].messages_sent += messages;
    c->counters[c->traffic].bytes_sent += bytes;
}

static void count_received(struct comm *c, size_t messages, size_t bytes) {
    c->counters[c->traffic].messages_received += messages;
    c->counters[c->traffic].bytes_received += bytes;
}

/* A rank's place in the binomial tree under `root`: how many children it has and how many ranks its subtree
 * holds, itself included. Numbered from the root, v's subtree is [v, v + lowest set bit of v) cut at P. */
static void binomial_place(const struct comm *c, int root, int *children, int *subtree) {
    int v = (c->rank - root + c->size) % c->size, reach = 1;
    *children = 0;
    while (reach < c->size && !(v & reach)) {
        if (v + reach < c->size) ++*children;
        reach *= 2;
    }
    *subtree = reach < c->size - v ? reach : c->size - v;
}

/* -- start and end --------------------------------------------------------------------------------- */
/* This node's number among the nodes, ordered by their lowest ranks. */
static void find_nodes(struct comm *c, struct transport *t) {
    int leader = c->rank;
    TRY(MPI_Comm_split_type(t->world, MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL, &t->local), "MPI_Comm_split_type");
    TRY(MPI_Comm_set_errhandler(t->local, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    TRY(MPI_Comm_rank(t->local, &c->local_rank), "MPI_Comm_rank");
    TRY(MPI_Comm_size(t->local, &c->local_size), "MPI_Comm_size");
    TRY(MPI_Bcast(&leader, 1, MPI_INT, 0, t->local), "MPI_Bcast");
    TRY(MPI_Allgather(&leader, 1, MPI_INT, t->counts, 1, MPI_INT, t->world), "MPI_Allgather");
    for (int r = 0; r < c->size; r++) {
        if (t->counts[r] != r) continue; /* only a node's lowest rank names itself */
        c->nodes++;
        if (r < leader) c->node++;
    }
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

/* Open MPI's ranks spin while they wait. With more ranks than cores that starves those they wait for: an allreduce of
 * one float at P = 8 on two cores takes 20 ms instead of 0.02. Its own guess fails where the slots were declared. */
static void yield_when_crowded(void) {
    const char *ranks = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    if (ranks && atol(ranks) > sysconf(_SC_NPROCESSORS_ONLN)) setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

struct comm *comm_open(int *argc, char ***argv) {
    yield_when_crowded();
    int provided; /* a library that grants less (SimGrid) is fine too: only one thread of ours calls MPI */
    if (MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) die("MPI_Init_thread failed");
    struct comm *c = mem_zalloc(1, sizeof *c, "the transport");
    struct transport *t = mem_zalloc(1, sizeof *t, "the transport");
    c->impl = t;
    c->traffic = TRAFFIC_CONTROL;
    t->world = MPI_COMM_WORLD;
    TRY(MPI_Comm_set_errhandler(t->world, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    TRY(MPI_Comm_rank(t->world, &c->rank), "MPI_Comm_rank");
    TRY(MPI_Comm_size(t->world, &c->size), "MPI_Comm_size");
    error_set_rank(c->rank, c->size);
    error_set_abort(comm_abort);
    t->counts = mem_alloc((size_t)c->size, sizeof *t->counts, "all-gather counts");
    t->offsets = mem_alloc((size_t)c->size, sizeof *t->offsets, "all-gather offsets");
    const char *part = getenv("SPARSETRAIN_PART_BYTES");
    t->part = part ? strtoull(part, NULL, 10) : PART_LIMIT;
    if (t->part < 8 || t->part > PART_LIMIT) t->part = PART_LIMIT;
    grow_pool(t);
    find_nodes(c, t);
    return c;
}

void comm_close(struct comm *c) {
    if (!c) return;
    struct transport *t = transport_of(c);
    error_set_abort(NULL);
    MPI_Comm_free(&t->local);
    MPI_Finalize();
    for (struct slot_block *block = t->blocks, *next; block; block = next) {
        next = block->next;
        mem_free(block);
    }
    mem_free(t->counts);
    mem_free(t->offsets);
    mem_free(t);
    mem_free(c);
}

_Noreturn void comm_abort(int status) {
    int started = 0, ended = 0;
    fflush(NULL);
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (started && !ended) MPI_Abort(MPI_COMM_WORLD, status);
    _exit(status);
}

/* Open MPI says "Open MPI v4.1.4, package: ...", MPICH "MPICH Version:\t4.0.2\nMPICH Release date: ...". */
const char *comm_library(void) {
    static char name[64];
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", version[32] = "";
    int length;
    if (name[0]) return name;
    MPI_Get_library_version(text, &length);
    if (sscanf(text, "Open MPI v%31[^, ]", version) == 1)
        snprintf(name, sizeof name, "Open MPI %s", version);
    else if (sscanf(text, "MPICH Version: %31s", version) == 1)
        snprintf(name, sizeof name, "MPICH %s", version);
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

static size_t received_bytes(struct comm *c, int rc, MPI_Status *status, int source, size_t capacity) {
    int class = MPI_SUCCESS;
    MPI_Count bytes = 0;
    if (rc != MPI_SUCCESS) MPI_Error_class(rc, &class);
    if (class == MPI_ERR_TRUNCATE) die("rank %d sent a message of more than the expected %zu bytes", source, capacity);
    TRY(rc, "receiving from rank %d", source);
    TRY(MPI_Get_elements_x(status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
    count_received(c, 1, (size_t)bytes);
    return (size_t)bytes;
}

void comm_send(struct comm *c, int dest, int tag, const void *data, size_t bytes) {
    struct transport *t = transport_of(c);
    struct extent e = extent_open(t, bytes);
    TRY(MPI_Send(data, e.count, e.type, dest, tag, t->world), "MPI_Send of %zu bytes to rank %d", bytes, dest);
    extent_close(e.type);
    count_sent(c, 1, bytes);
}

size_t comm_recv(struct comm *c, int source, int tag, void *data, size_t capacity) {
    struct transport *t = transport_of(c);
    struct extent e = extent_open(t, capacity);
    MPI_Status status;
    int rc = MPI_Recv(data, e.count, e.type, source, tag, t->world, &status);
    extent_close(e.type);
    return received_bytes(c, rc, &status, source, capacity);
}

static struct slot *take_slot(struct transport *t, MPI_Datatype type) {
    if (!t->free_slots) grow_pool(t);
    struct slot *slot = t->free_slots;
    t->free_slots = slot->next;
    slot->type = type;
    return slot;
}

void comm_isend(struct comm *c, int dest, int tag, const void *data, size_t bytes, struct comm_request *request) {
    struct transport *t = transport_of(c);
    struct extent e = extent_open(t, bytes);
    struct slot *slot = take_slot(t, e.type);
    TRY(MPI_Isend(data, e.count, e.type, dest, tag, t->world, &slot->request), "MPI_Isend of %zu bytes to rank %d",
        bytes, dest);
    *request = (struct comm_request){slot, dest, bytes, false};
    count_sent(c, 1, bytes);
}

void comm_irecv(struct comm *c, int source, int tag, void *data, size_t capacity, struct comm_request *request) {
    struct transport *t = transport_of(c);
    struct extent e = extent_open(t, capacity);
    struct slot *slot = take_slot(t, e.type);
    TRY(MPI_Irecv(data, e.count, e.type, source, tag, t->world, &slot->request), "MPI_Irecv from rank %d", source);
    *request = (struct comm_request){slot, source, capacity, true};
}

size_t comm_wait(struct comm *c, struct comm_request *request) {
    struct transport *t = transport_of(c);
    struct slot *slot = request->impl;
    if (!slot) die("comm_wait was called twice on one request");
    MPI_Status status;
    int rc = MPI_Wait(&slot->request, &status);
    extent_close(slot->type);
    slot->next = t->free_slots;
    t->free_slots = slot;
    request->impl = NULL;
    if (request->receives) return received_bytes(c, rc, &status, request->peer, request->capacity);
    TRY(rc, "MPI_Isend of %zu bytes to rank %d", request->capacity, request->peer);
    return 0;
}

/* -- collectives ----------------------------------------------------------------------------------- */
void comm_barrier(struct comm *c) {
    size_t messages = (size_t)ceil_log2(c->size);
    TRY(MPI_Barrier(transport_of(c)->world), "MPI_Barrier");
    count_sent(c, messages, 0);
    count_received(c, messages, 0);
}

static void bcast_parts(const struct transport *t, int root, void *data, size_t bytes) {
    for (size_t at = 0; at < bytes; at += t->part) {
        size_t now = bytes - at < t->part ? bytes - at : t->part;
        TRY(MPI_Bcast((char *)data + at, (int)now, MPI_BYTE, root, t->world), "MPI_Bcast from rank %d", root);
    }
}

void comm_bcast(struct comm *c, int root, void *data, size_t bytes) {
    int children, subtree;
    bcast_parts(transport_of(c), root, data, bytes);
    binomial_place(c, root, &children, &subtree);
    count_sent(c, (size_t)children, (size_t)children * bytes);
    if (c->rank != root) count_received(c, 1, bytes);
}

/* The blocks are too long together for one MPI call: each rank sends its own in parts. */
static void gather_parts(const struct comm *c, int root, const char *mine, size_t bytes, char *all) {
    MPI_Comm world = transport_of(c)->world;
    size_t part = transport_of(c)->part;
    for (size_t at = 0; at < bytes; at += part) {
        int now = (int)(bytes - at < part ? bytes - at : part);
        if (c->rank != root)
            TRY(MPI_Send(mine + at, now, MPI_BYTE, root, GATHER_TAG, world), "MPI_Send to rank %d", root);
        for (int r = 0; c->rank == root && r < c->size; r++) {
            char *to = all + (size_t)r * bytes + at;
            if (r == root)
                memcpy(to, mine + at, (size_t)now);
            else
                TRY(MPI_Recv(to, now, MPI_BYTE, r, GATHER_TAG, world, MPI_STATUS_IGNORE), "MPI_Recv from rank %d", r);
        }
    }
}

void comm_gather(struct comm *c, int root, const void *mine, size_t bytes, void *all) {
    struct transport *t = transport_of(c);
    int children, subtree;
    if (bytes <= t->part / (size_t)c->size)
        TRY(MPI_Gather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, root, t->world), "MPI_Gather to rank %d",
            root);
    else
        gather_parts(c, root, mine, bytes, all);
    binomial_place(c, root, &children, &subtree);
    count_received(c, (size_t)children, (size_t)(subtree - 1) * bytes);
    if (c->rank != root) count_sent(c, 1, (size_t)subtree * bytes);
}

static void count_allgather(struct comm *c, size_t mine, size_t total) {
    size_t messages = (size_t)ceil_log2(c->size);
    count_sent(c, messages, (size_t)(c->size - 1) * mine);
    count_received(c, messages, total - mine);
}

/* The blocks lie end to end in `all` and are too long together for MPI's int offsets. */
static void allgather_parts(const struct comm *c, const void *mine, char *all, const size_t *each, size_t same) {
    for (int r = 0; r < c->size; r++) {
        size_t bytes = each ? each[r] : same;
        if (r == c->rank && mine != all) memcpy(all, mine, bytes);
        bcast_parts(transport_of(c), r, all, bytes);
        all += bytes;
    }
}

void comm_allgather(struct comm *c, const void *mine, size_t bytes, void *all) {
    struct transport *t = transport_of(c);
    size_t total = bytes * (size_t)c->size;
    const void *from = mine == (char *)all + bytes * (size_t)c->rank ? MPI_IN_PLACE : mine;
    if (total <= t->part)
        TRY(MPI_Allgather(from, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, t->world), "MPI_Allgather");
    else
        allgather_parts(c, mine, all, NULL, bytes);
    count_allgather(c, bytes, total);
}

void comm_allgatherv(struct comm *c, const void *mine, size_t bytes, void *all, const size_t *each) {
    struct transport *t = transport_of(c);
    size_t total = 0, before = 0;
    if (bytes != each[c->rank]) die("an all-gather of %zu bytes where %zu were announced", bytes, each[c->rank]);
    for (int r = 0; r < c->size; r++) {
        if (r == c->rank) before = total;
        t->counts[r] = (int)each[r]; /* not used where the total is too long for them */
        t->offsets[r] = (int)total;
        total += each[r];
    }
    const void *from = mine == (char *)all + before ? MPI_IN_PLACE : mine;
    if (total <= t->part)
        TRY(MPI_Allgatherv(from, (int)bytes, MPI_BYTE, all, t->counts, t->offsets, MPI_BYTE, t->world),
            "MPI_Allgatherv");
    else
        allgather_parts(c, mine, all, each, 0);
    count_allgather(c, bytes, total);
}

static void allreduce(struct comm *c, void *data, size_t count, size_t width, MPI_Datatype type, enum comm_op op) {
    static const char *const names[] = {"sum", "minimum", "maximum"};
    struct transport *t = transport_of(c);
    MPI_Op mpi_op = op == COMM_SUM ? MPI_SUM : op == COMM_MIN ? MPI_MIN : MPI_MAX;
    size_t limit = t->part / width, messages = 2 * (size_t)ceil_log2(c->size);
    for (size_t at = 0; at < count; at += limit) {
        int now = (int)(count - at < limit ? count - at : limit);
        TRY(MPI_Allreduce(MPI_IN_PLACE, (char *)data + at * width, now, type, mpi_op, t->world), "MPI_Allreduce (%s)",
            names[op]);
    }
    size_t bytes = 2 * (size_t)(c->size - 1) * (count * width) / (size_t)c->size;
    count_sent(c, messages, bytes);
    count_received(c, messages, bytes);
}

void comm_allreduce_f32(struct comm *c, float *data, size_t count, enum comm_op op) {
    allreduce(c, data, count, sizeof *data, MPI_FLOAT, op);
}
void comm_allreduce_f64(struct comm *c, double *data, size_t count, enum comm_op op) {
    allreduce(c, data, count, sizeof *data, MPI_DOUBLE, op);
}
void comm_allreduce_u64(struct comm *c, uint64_t *data, size_t count, enum comm_op op) {
    allreduce(c, data, count, sizeof *data, MPI_UINT64_T, op);
}

bool comm_agree(struct comm *c, struct err *e) {
    enum traffic caller = c->traffic;
    c->traffic = TRAFFIC_CONTROL;
    uint64_t first = e->text[0] ? (uint64_t)c->rank : (uint64_t)c->size;
    comm_allreduce_u64(c, &first, 1, COMM_MIN);
    bool any = first < (uint64_t)c->size;
    if (any) comm_bcast(c, (int)first, e->text, sizeof e->text);
    c->traffic = caller;
    return any;
}

/* -- memory shared by the ranks of a node ---------------------------------------------------------- */
struct window {
    MPI_Win win;
};

static bool all_local(const struct transport *t, bool mine) {
    int all = mine;
    TRY(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, t->local), "MPI_Allreduce on the node");
    return all != 0;
}

/* MPI puts shared memory into /dev/shm; writing to more than fits there would kill the process (SIGBUS). */
static bool room_for(size_t bytes) {
    struct statvfs fs;
    const char *pretended = getenv("SPARSETRAIN_SHM_FREE");
    if (!pretended && statvfs("/dev/shm", &fs) != 0) return true; /* not Linux's layout: MPI itself has to know */
    unsigned long long room = pretended ? strtoull(pretended, NULL, 10) : (unsigned long long)fs.f_bavail * fs.f_frsize;
    return room > bytes && room - bytes > bytes / 16 + (1u << 20);
}

/* Collective on the node: a window whose bytes all belong to its first rank. NULL: MPI could not. */
static void *window_open(const struct comm *c, struct window *w, size_t bytes) {
    struct transport *t = transport_of(c);
    void *base = NULL;
    MPI_Aint size = 0;
    int unit;
    /* One cache line more: MPI does not promise the alignment that vector code wants. */
    MPI_Aint mine = c->local_rank == 0 ? (MPI_Aint)(bytes + CACHE_LINE) : 0;
    bool made = MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, t->local, &base, &w->win) == MPI_SUCCESS;
    if (!all_local(t, made)) return NULL; /* a window that only some ranks have cannot be freed: left to MPI */
    bool found = MPI_Win_shared_query(w->win, 0, &size, &unit, &base) == MPI_SUCCESS && base &&
                 size >= (MPI_Aint)(bytes + CACHE_LINE);
    if (!all_local(t, found)) {
        MPI_Win_free(&w->win);
        return NULL;
    }
    TRY(MPI_Win_lock_all(MPI_MODE_NOCHECK, w->win), "MPI_Win_lock_all");
    size_t past = (uintptr_t)base % CACHE_LINE;
    return (char *)base + (past ? CACHE_LINE - past : 0);
}

void comm_shared_open(struct comm *c, size_t bytes, struct comm_shared *s) {
    const char *never = getenv("SPARSETRAIN_NO_SHARED");
    bool wanted = c->local_size > 1 && !(never && strcmp(never, "1") == 0) && bytes < PTRDIFF_MAX - CACHE_LINE;
    struct window *w = mem_alloc(1, sizeof *w, "a shared window");
    *s = (struct comm_shared){.bytes = bytes};
    if (all_local(transport_of(c), wanted && (c->local_rank > 0 || room_for(bytes))))
        s->memory = window_open(c, w, bytes);
    s->shared = s->memory != NULL;
    s->filler = !s->shared || c->local_rank == 0;
    if (s->shared) {
        s->impl = w;
    } else {
        mem_free(w);
        s->memory = mem_alloc(bytes, 1, "memory that the ranks of a node could not share");
    }
}

void comm_shared_ready(struct comm *c, struct comm_shared *s) {
    struct window *w = s->impl;
    if (w) TRY(MPI_Win_sync(w->win), "MPI_Win_sync");
    TRY(MPI_Barrier(transport_of(c)->local), "MPI_Barrier on the node");
    if (w) TRY(MPI_Win_sync(w->win), "MPI_Win_sync");
}

void comm_shared_close(struct comm *c, struct comm_shared *s) {
    struct window *w = s->impl;
    (void)c;
    if (w) {
        TRY(MPI_Win_unlock_all(w->win), "MPI_Win_unlock_all");
        TRY(MPI_Win_free(&w->win), "MPI_Win_free");
        mem_free(w);
    } else {
        mem_free(s->memory);
    }
    *s = (struct comm_shared){0};
}
