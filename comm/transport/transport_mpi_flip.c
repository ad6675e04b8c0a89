/* transport_mpi_flip.c: SPARSETRAIN_FLIP: one bit of one message changes on its way, to test what detects it
 * (comm_set_wire_check, the hashes in checkpoints) and what happens if nothing does.
 *
 *        SPARSETRAIN_FLIP=RANK:MESSAGE:BIT[:in|:out[:LEAST]]
 *
 * RANK, in the whole job, is whose messages are counted, from 0 on: those that it sends (out, the default) or those
 * that come to it (in). Point-to-point messages count as they are; of MPI's own collectives each call is one message:
 *
 *        out   what the root of a broadcast sends (all others get it changed), a rank's block of a gather or an
 *              all-gather (all others), what a rank puts into a sum (all ranks alike have the wrong sum)
 *        in    what a broadcast brings, all blocks that a gather brings to its root or an all-gather, the result of a
 *              sum: on this rank alone
 *
 * BIT is taken modulo the bits of the message. Messages of an exchange count, or with LEAST all that have at least so
 * many bytes; never those of 0 bytes, those of a group of one rank, nor what checks make. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/transport/transport_mpi.h"

void transport_flip_open(struct faults *f, int rank) {
    const char *given = getenv("SPARSETRAIN_FLIP");
    char way[4] = "out";
    int whose = -1;
    unsigned long long least = 0;
    if (!given || !*given) return;
    int fields = sscanf(given, "%d:%lld:%lld:%3[inout]:%llu", &whose, &f->flip_message, &f->flip_bit, way, &least);
    bool in = strcmp(way, "in") == 0;
    if (fields < 3 || f->flip_message < 0 || f->flip_bit < 0 || (!in && strcmp(way, "out") != 0))
        die("SPARSETRAIN_FLIP=%s is not RANK:MESSAGE:BIT[:in|:out[:LEAST]]", given);
    f->flips = whose == rank;
    f->flips_arriving = in;
    f->flip_least = (size_t)least;
}

/* Counts a message; the bit to flip, or NO_BIT. */
static long long take_message(const struct comm *c, bool arriving, size_t bytes) {
    struct comm *job = transport_of(c)->job;
    struct faults *f = &transport_of(job)->faults;
    if (!f->flips || f->flips_arriving != arriving || transport_of(c)->twin || bytes == 0 || c->size == 1)
        return NO_BIT;
    if (f->flip_least > 0 ? bytes < f->flip_least : job->traffic != TRAFFIC_EXCHANGE) return NO_BIT;
    if (f->messages++ != f->flip_message) return NO_BIT;
    return f->flip_bit % (long long)(8 * bytes);
}

void transport_flip(void *data, long long bit) {
    if (bit != NO_BIT) ((unsigned char *)data)[bit / 8] ^= (unsigned char)(1 << bit % 8);
}

long long transport_flip_leaving(const struct comm *c, size_t bytes) {
    return take_message(c, false, bytes);
}

void transport_flip_arrived(const struct comm *c, void *data, size_t bytes) {
    transport_flip(data, take_message(c, true, bytes));
}

void *transport_flip_copy(const struct comm *c, const void *data, size_t bytes) {
    long long bit = transport_flip_leaving(c, bytes);
    if (bit == NO_BIT) return NULL;
    void *copy = mem_alloc(bytes, 1, "a message to be changed");
    memcpy(copy, data, bytes);
    transport_flip(copy, bit);
    return copy;
}
