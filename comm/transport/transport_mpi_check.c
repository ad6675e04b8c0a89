/* transport_mpi_check.c: comm.h over MPI: comm_set_wire_check.
 *
 * Idea: a message travels behind a seal, the CRC-32 and the number of its bytes, and what came is held against it: any
 * one wrong bit is found, and any burst of up to 32; of anything else one in 2^32 is not. What MPI moves in a call of
 * its own (broadcast, gather, all-gather) is held against seals that a second, small call brings.
 *
 * A sum has no seal, since no rank knows it before it is there. So the ranks add it up a second time, each its slice of
 * the vector: it gets this slice from every other rank, sealed, and adds in double precision; the result of MPI may
 * differ by what rounding explains in any order of adding, P u sum|x|, u half the distance of 1 to the next number, and
 * must be the same bits on all ranks, which compare checksums of it. Sums of integers, minima and maxima are exact. For
 * a sum that was begun all of this is begun, too, and asked for when it ends, so that no other call waits for it.
 *
 * Not found: a change of a sum that all ranks see alike and that is no larger than rounding in another order would make
 * it; it moves the training by as little as another MPI library does, and the replicas stay the same. Nor is what
 * changes in a rank's memory before it is sent: the hashes of the replicas find that, where ranks then differ.
 *
 * Cost per rank: 8 bytes a message; 8 (P-1) bytes for a collective of blocks, 8 for a broadcast; for a sum P-1 messages
 * of together (P-1)/P of the vector, half as much as the sum itself, their seals, and 4 (P-1) bytes of checksums, each
 * a sealed message of its own for a sum that was begun. Memory: a sum's vector twice, while it goes on. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/simd.h"
#include "comm/parts/peers.h"
#include "comm/transport/transport_mpi.h"

struct wire_check {
    struct comm *twin;  /* the same ranks, for what checks send */
    struct seal *seals; /* [size] room for what a collective brings */
    uint64_t sums;      /* begun; the same on all ranks */
};

void transport_check_open(struct comm *c) {
    const char *use = "checks of messages";
    struct wire_check *w = transport_of(c)->check = mem_zalloc(1, sizeof *w, use);
    w->seals = mem_alloc((size_t)c->size, sizeof *w->seals, use);
    w->twin = transport_open_twin(c);
}

void transport_check_close(struct transport *t) {
    if (!t->check) return;
    transport_close_twin(t->check->twin);
    mem_free(t->check->seals);
    mem_free(t->check);
    t->check = NULL;
}

void comm_set_wire_check(struct comm *c, bool on) {
    struct transport *t = transport_of(c);
    if (c->parent || t->groups > 0) die("checks of messages are set before the ranks are grouped");
    c->wire_check = on && c->size > 1 && !SIMULATED;
    c->device_pointers = t->takes_device_pointers && !c->wire_check;
    transport_check_close(t);
    if (c->wire_check) transport_check_open(c);
}

/* NULL: there are no checks, or nobody to get a message from. */
static struct wire_check *check_of(const struct comm *c) {
    return c->size > 1 ? transport_of(c)->check : NULL;
}

static void count(const struct comm *c, size_t messages_out, size_t out, size_t messages_in, size_t in) {
    struct comm_counters *counters = &transport_of(c)->job->counters[TRAFFIC_CHECK];
    counters->messages_sent += messages_out;
    counters->bytes_sent += out;
    counters->messages_received += messages_in;
    counters->bytes_received += in;
}

/* -- what is wrong --------------------------------------------------------------------------------------------- */
#define BLAME "(--wire-check): the network, or the memory of a node, changes data"

/* The number that a rank of c has in the whole job. */
static int job_rank(const struct comm *c, int rank) {
    MPI_Group group, all;
    int number = rank;
    if (MPI_Comm_group(transport_of(c)->world, &group) != MPI_SUCCESS) return rank;
    if (MPI_Comm_group(transport_of(transport_of(c)->job)->world, &all) == MPI_SUCCESS) {
        MPI_Group_translate_ranks(group, 1, &rank, all, &number);
        MPI_Group_free(&all);
    }
    MPI_Group_free(&group);
    return number;
}

/* "step 3, rank 1: " */
static const char *place_of(const struct comm *c, char text[64]) {
    const struct comm *job = transport_of(c)->job;
    if (job->step > 0)
        snprintf(text, 64, "step %zu, rank %d", job->step, job->rank);
    else
        snprintf(text, 64, "rank %d", job->rank);
    return text;
}

static _Noreturn void changed(const struct comm *c, const char *what, int from, size_t bytes, struct seal got,
                              struct seal sent) {
    char place[64], length[48] = "";
    if (got.bytes != sent.bytes) snprintf(length, sizeof length, ", for %u bytes", sent.bytes);
    die_status(EXIT_SYSTEM, "%s: %s of %zu bytes from rank %d came changed: checksum %08x, sent with %08x%s " BLAME,
               place_of(c, place), what, bytes, job_rank(c, from), got.crc, sent.crc, length);
}

/* -- seals ------------------------------------------------------------------------------------------------------- */
static struct seal seal_of(const void *data, size_t bytes) {
    return (struct seal){crc32_of(0, data, bytes), (uint32_t)bytes};
}

static void hold_against(const struct comm *c, const char *what, int from, const void *data, size_t bytes,
                         struct seal sent) {
    struct seal got = seal_of(data, bytes);
    if (got.crc != sent.crc || got.bytes != sent.bytes) changed(c, what, from, bytes, got, sent);
}

bool transport_sealed(const struct comm *c) {
    return transport_of(c)->job->wire_check;
}

struct seal transport_seal(const struct comm *c, const void *data, size_t bytes) {
    return transport_sealed(c) ? seal_of(data, bytes) : (struct seal){0};
}

void transport_seal_sent(const struct comm *c) {
    if (transport_sealed(c)) count(c, 0, sizeof(struct seal), 0, 0);
}

size_t transport_unseal(const struct comm *c, const struct arrival *a, size_t bytes) {
    const size_t seal = transport_sealed(c) ? sizeof(struct seal) : 0;
    char place[64];
    if (bytes < seal)
        die_status(EXIT_SYSTEM, "%s: a message of %zu bytes from rank %d has no checksum " BLAME, place_of(c, place),
                   bytes, job_rank(c, a->source));
    transport_flip_arrived(c, a->data, bytes - seal);
    if (!seal) return bytes;
    hold_against(c, "a message", a->source, a->data, bytes - seal, *a->seal);
    count(c, 0, 0, 0, seal);
    return bytes - seal;
}

/* -- MPI's own collectives ----------------------------------------------------------------------------------------- */
void transport_check_bcast(const struct comm *c, int root, const void *data, size_t bytes) {
    int children, subtree;
    if (!check_of(c)) return;
    struct seal seal = seal_of(data, bytes);
    TRY(transport_bcast(transport_of(c), &seal, sizeof seal, root), "MPI_Bcast of a checksum");
    transport_binomial_place(c, root, &children, &subtree);
    count(c, (size_t)children, (size_t)children * sizeof seal, c->rank != root, c->rank != root ? sizeof seal : 0);
    if (c->rank != root) hold_against(c, "a broadcast", root, data, bytes, seal);
}

static void hold_blocks(const struct comm *c, const char *what, const char *gathered, size_t bytes) {
    const struct wire_check *w = check_of(c);
    for (int r = 0; r < c->size; r++, gathered += bytes) hold_against(c, what, r, gathered, bytes, w->seals[r]);
}

void transport_check_gather(const struct comm *c, int root, const void *mine, size_t bytes, const void *gathered) {
    const struct wire_check *w = check_of(c);
    int children, subtree;
    if (!w) return;
    struct seal seal = seal_of(mine, bytes);
    TRY(transport_gather(transport_of(c), &seal, sizeof seal, w->seals, root), "MPI_Gather of checksums");
    transport_binomial_place(c, root, &children, &subtree);
    count(c, c->rank != root, c->rank != root ? (size_t)subtree * sizeof seal : 0, (size_t)children,
          (size_t)(subtree - 1) * sizeof seal);
    if (c->rank == root) hold_blocks(c, "a block of a gather", gathered, bytes);
}

void transport_check_allgather(const struct comm *c, const struct seal *mine, size_t bytes, const void *gathered) {
    const struct wire_check *w = check_of(c);
    const size_t messages = (size_t)ceil_log2(c->size), others = (size_t)(c->size - 1) * sizeof *mine;
    if (!w) return;
    TRY(transport_allgather(transport_of(c), mine, sizeof *mine, w->seals), "MPI_Allgather of checksums");
    count(c, messages, others, messages, others);
    hold_blocks(c, "a block of an all-gather", gathered, bytes);
}

/* -- sums ---------------------------------------------------------------------------------------------------------- */
enum { SLICE_TAG = 1, HASH_TAG = 2, HASH_TAGS = 1 << 14 };

/* A number of a vector, and what it is summed to. */
struct entry {
    union {
        double real; /* f32 and f64 */
        uint64_t whole;
    } value;
    double mass; /* of reals: sum of the magnitudes */
};

struct sum_check {
    enum sum_type type;
    enum comm_op op;
    bool begun;                           /* the sum is one of comm_iallreduce_f32 */
    bool held;                            /* the result has been held against the slices, and its hash is on its way */
    int tag;                              /* of the hashes */
    size_t count, from, mine;             /* of the vector; this rank's slice is entries [from, from + mine) */
    unsigned char *copy;                  /* [count] the vector as this rank had it */
    unsigned char *came;                  /* [size - 1][mine] this rank's slice of what the others had */
    uint32_t *hash;                       /* [size] of the results */
    struct comm_request *slices, *hashes; /* [2 (size - 1)] each; those that are not there, or over, without impl */
};

static size_t width_of(enum sum_type type) {
    return type == SUM_F32 ? sizeof(float) : sizeof(double);
}

/* Where rank r's slice begins. */
static size_t slice_from(const struct comm *c, size_t length, int r) {
    const size_t P = (size_t)c->size, part = length / P, more = length % P, i = (size_t)r;
    return part * i + (i < more ? i : more);
}

static struct entry entry_at(enum sum_type type, const unsigned char *data, size_t i) {
    struct entry e = {.mass = 0};
    float single;
    if (type == SUM_U64) {
        memcpy(&e.value.whole, data + i * sizeof e.value.whole, sizeof e.value.whole);
    } else if (type == SUM_F64) {
        memcpy(&e.value.real, data + i * sizeof e.value.real, sizeof e.value.real);
    } else {
        memcpy(&single, data + i * sizeof single, sizeof single);
        e.value.real = (double)single;
    }
    if (type != SUM_U64) e.mass = fabs(e.value.real);
    return e;
}

static void fold(const struct sum_check *s, struct entry *into, struct entry e) {
    if (s->type == SUM_U64) {
        const uint64_t a = into->value.whole, b = e.value.whole;
        into->value.whole = s->op == COMM_SUM ? a + b : (s->op == COMM_MIN) == (a < b) ? a : b;
        return;
    }
    const double a = into->value.real, b = e.value.real;
    into->value.real = s->op == COMM_SUM ? a + b : s->op == COMM_MIN ? fmin(a, b) : fmax(a, b);
    into->mass += e.mass; /* a NaN stays one */
}

/* What the ranks put into entry i of this rank's slice, in one fixed order. */
static struct entry wanted(const struct comm *c, const struct sum_check *s, size_t i) {
    struct entry e = entry_at(s->type, s->copy, s->from + i);
    for (size_t r = 0; r + 1 < (size_t)c->size; r++) fold(s, &e, entry_at(s->type, s->came, r * s->mine + i));
    return e;
}

/* Of empty slices there are no messages. */
static void begin_slices(const struct comm *c, struct sum_check *s) {
    struct comm *twin = check_of(c)->twin;
    const size_t width = width_of(s->type);
    struct comm_request *request = s->slices;
    for (int i = 0; i < c->size - 1 && s->mine > 0; i++)
        comm_irecv(twin, (c->rank + 1 + i) % c->size, SLICE_TAG, s->came + (size_t)i * s->mine * width, s->mine * width,
                   request++);
    for (int i = 0; i < c->size - 1; i++) {
        int to = (c->rank + 1 + i) % c->size;
        size_t first = slice_from(c, s->count, to), theirs = slice_from(c, s->count, to + 1) - first;
        if (theirs > 0) comm_isend(twin, to, SLICE_TAG, s->copy + first * width, theirs * width, request++);
    }
}

static struct sum_check *sum_check_open(const struct comm *c, size_t length, enum sum_type type, enum comm_op op) {
    const char *use = "the check of a sum";
    const size_t others = (size_t)(c->size - 1), width = width_of(type);
    struct sum_check *s = mem_zalloc(1, sizeof *s, use);
    *s = (struct sum_check){.type = type, .op = op, .count = length, .from = slice_from(c, length, c->rank)};
    s->mine = slice_from(c, length, c->rank + 1) - s->from;
    s->copy = mem_alloc(length, width, use);
    s->came = mem_alloc(others * s->mine, width, use);
    s->hash = mem_zalloc((size_t)c->size, sizeof *s->hash, use);
    s->slices = mem_zalloc(2 * others, sizeof *s->slices, use);
    s->hashes = mem_zalloc(2 * others, sizeof *s->hashes, use);
    return s;
}

static void sum_check_close(struct sum_check *s) {
    mem_free(s->hashes);
    mem_free(s->slices);
    mem_free(s->hash);
    mem_free(s->came);
    mem_free(s->copy);
    mem_free(s);
}

struct sum_check *transport_check_sum_begin(const struct comm *c, const void *data, size_t length, enum sum_type type,
                                            enum comm_op op, bool begun) {
    struct wire_check *w = check_of(c);
    if (!w) return NULL;
    struct sum_check *s = sum_check_open(c, length, type, op);
    if (length > 0) memcpy(s->copy, data, length * width_of(type));
    begin_slices(c, s);
    s->begun = begun;
    s->tag = HASH_TAG + (int)(w->sums++ % HASH_TAGS);
    for (int i = 0; begun && i < c->size - 1; i++) {
        int from = (c->rank + 1 + i) % c->size;
        comm_irecv(w->twin, from, s->tag, &s->hash[from], sizeof *s->hash, &s->hashes[i]);
    }
    return s;
}

/* What rounding may make of a sum of so many numbers, whose magnitudes add up to mass. In double precision this check
 * rounds, too; numbers below the normal ones may count as 0. */
static inline double rounding(int ranks, bool single, double mass) {
    const double unit = single ? (double)FLT_EPSILON / 2 : DBL_EPSILON, least = single ? (double)FLT_MIN : DBL_MIN;
    return ranks * (unit * mass + least);
}

/* What a sum may be off. Infinite: there was a NaN or an infinity, or an overflow on the way. */
static double bound_of(const struct comm *c, const struct sum_check *s, const struct entry *e) {
    const bool single = s->type == SUM_F32;
    if (isnan(e->mass) || (s->op == COMM_SUM && !(e->mass <= (single ? (double)FLT_MAX : DBL_MAX)))) return INFINITY;
    if (s->op != COMM_SUM || s->type == SUM_U64) return 0;
    return rounding(c->size, single, e->mass);
}

static bool fits(const struct comm *c, const struct sum_check *s, const struct entry *got, const struct entry *want) {
    if (s->type == SUM_U64) return got->value.whole == want->value.whole;
    double bound = bound_of(c, s, want);
    return isinf(bound) || got->value.real == want->value.real || fabs(got->value.real - want->value.real) <= bound;
}

enum { BLOCK = 1024 }; /* entries: what is added up stays in the cache */

/* Does each of these floats fit, as by `fits`, what the ranks put in: mine, and what came, one rank's [count] after the
 * other's? False: one does not, or has a NaN in it. */
SIMD_CLONES static bool floats_fit(const float *got, const float *mine, const float *came, size_t count,
                                   size_t others) {
    double sum[BLOCK], mass[BLOCK];
    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t n = count - at < BLOCK ? count - at : BLOCK;
        int off = 0;
        for (size_t i = 0; i < n; i++) {
            sum[i] = (double)mine[at + i];
            mass[i] = fabs(sum[i]);
        }
        for (size_t r = 0; r < others; r++)
            for (size_t i = 0; i < n; i++) {
                const double e = (double)came[r * count + at + i];
                sum[i] += e;
                mass[i] += fabs(e);
            }
        for (size_t i = 0; i < n; i++)
            off |= !(fabs((double)got[at + i] - sum[i]) <= rounding((int)others + 1, true, mass[i]));
        if (off) return false;
    }
    return true;
}

static const float *floats(const unsigned char *data) {
    return (const float *)(const void *)data;
}

static const char *name_of(enum comm_op op) {
    return op == COMM_SUM ? "sum" : op == COMM_MIN ? "minimum" : "maximum";
}

static _Noreturn void wrong_sum(const struct comm *c, const struct sum_check *s, size_t i, struct entry got,
                                struct entry want) {
    char place[64], is[64], should[96];
    if (s->type == SUM_U64) {
        snprintf(is, sizeof is, "%llu", (unsigned long long)got.value.whole);
        snprintf(should, sizeof should, "%llu", (unsigned long long)want.value.whole);
    } else {
        snprintf(is, sizeof is, "%.9g", got.value.real);
        snprintf(should, sizeof should, "%.9g, give or take %.2g", want.value.real, bound_of(c, s, &want));
    }
    die_status(EXIT_SYSTEM,
               "%s: entry %zu of a %s of %zu bytes over %d ranks is %s, and what they put in makes %s " BLAME,
               place_of(c, place), s->from + i, name_of(s->op), s->count * width_of(s->type), c->size, is, should);
}

SIMD_CLONES static bool any_nan(const float *x, size_t count) {
    int any = 0;
    for (size_t i = 0; i < count; i++) any |= isnan(x[i]);
    return any;
}

/* Of the whole result; 0 where it holds a NaN, whose bits may differ. */
static uint32_t hash_result(const struct sum_check *s, const unsigned char *data) {
    if (s->type == SUM_F32 && any_nan(floats(data), s->count)) return 0;
    if (s->type == SUM_F64)
        for (size_t i = 0; i < s->count; i++)
            if (isnan(entry_at(s->type, data, i).value.real)) return 0;
    return crc32_of(0, data, s->count * width_of(s->type));
}

/* All slices have come. */
static void hold_result(const struct comm *c, struct sum_check *s, const unsigned char *data) {
    const struct wire_check *w = check_of(c);
    const bool all_fit =
        s->type == SUM_F32 && s->op == COMM_SUM &&
        floats_fit(floats(data) + s->from, floats(s->copy) + s->from, floats(s->came), s->mine, (size_t)c->size - 1);
    for (size_t i = 0; i < s->mine && !all_fit; i++) {
        const struct entry got = entry_at(s->type, data, s->from + i), want = wanted(c, s, i);
        if (!fits(c, s, &got, &want)) wrong_sum(c, s, i, got, want);
    }
    s->held = true;
    uint32_t *mine = &s->hash[c->rank];
    *mine = hash_result(s, data);
    for (int i = 0; s->begun && i < c->size - 1; i++)
        comm_isend(w->twin, (c->rank + 1 + i) % c->size, s->tag, mine, sizeof *mine, &s->hashes[c->size - 1 + i]);
    if (s->begun) return;
    const size_t messages = (size_t)ceil_log2(c->size), others = (size_t)(c->size - 1) * sizeof *mine;
    TRY(transport_allgather(transport_of(c), MPI_IN_PLACE, sizeof *mine, s->hash), "MPI_Allgather of checksums");
    count(c, messages, others, messages, others);
}

/* The lowest rank of the group says which one differs; the others wait for the end. */
static void compare_hashes(const struct comm *c, const struct sum_check *s) {
    char place[64];
    int other = 1;
    while (other < c->size && s->hash[other] == s->hash[0]) other++;
    if (other == c->size) return;
    if (c->rank == 0)
        die_status(EXIT_SYSTEM, "%s: a %s of %zu bytes over %d ranks is another one on rank %d " BLAME,
                   place_of(c, place), name_of(s->op), s->count * width_of(s->type), c->size, job_rank(c, other));
    TRY(transport_barrier(transport_of(c), transport_of(check_of(c)->twin)->world), "MPI_Barrier");
}

/* Waits for each, or (look) asks whether all are over. */
static bool ended(const struct comm *c, struct comm_request *request, bool look) {
    struct comm *twin = check_of(c)->twin;
    for (int i = 0; i < 2 * (c->size - 1); i++) {
        if (!request[i].impl) continue;
        if (!look) comm_wait(twin, &request[i]);
        if (look && !comm_test(twin, &request[i])) return false;
    }
    return true;
}

bool transport_check_sum_end(const struct comm *c, struct sum_check *s, const void *data, bool look) {
    if (!s) return true;
    if (!s->held && !ended(c, s->slices, look)) return false;
    if (!s->held) hold_result(c, s, data);
    if (!ended(c, s->hashes, look)) return false;
    compare_hashes(c, s);
    sum_check_close(s);
    return true;
}
