/* transport_mpi.c: comm.h over MPI, messages between two ranks. Works with Open MPI, MPICH and, simulated, SimGrid.
 * transport_mpi_job.c has the start and the end of a job, groups, and what the environment says; the collectives,
 * sums, shared memory, waiting, the greeting, the watchdog and checksums are in files of their own, and what a
 * simulation has in comm/sim/. No other file includes mpi.h.
 *
 * Idea: every call is one MPI call, a check of its result and an addition to the counters. MPI counts are
 * ints, so more than PART_LIMIT bytes go in another way: a point-to-point message as ONE message of a derived
 * type (its parts cannot be mixed up with those of the next message), an allreduce or a broadcast as several
 * calls one after the other, an all-gather as a broadcast from each rank. */
#include "comm/transport/transport_mpi.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

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

/* -- delays, as asked for -------------------------------------------------------------------------- */
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

void transport_grow_pool(struct transport *t) {
    struct slot_block *block = mem_alloc(1, sizeof *block, "MPI requests");
    block->next = t->blocks;
    t->blocks = block;
    for (int i = 0; i < POOL_BLOCK; i++) {
        block->slot[i].next = t->free_slots;
        t->free_slots = &block->slot[i];
    }
}

struct slot *transport_take_slot(const struct comm *c) {
    struct transport *t = transport_of(transport_of(c)->job);
    if (!t->free_slots) transport_grow_pool(t);
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
