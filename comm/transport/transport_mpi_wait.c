/* transport_mpi_wait.c: comm.h over MPI: every call in which a rank waits for others.
 *
 * MPI polls while it waits, which is fastest, even with more ranks than cores. If other programs share the cores,
 * polling takes processor time from them. With SPARSETRAIN_WAIT=sleep a call is begun in its non-blocking form (MPI_I*)
 * and tested now and then, and the rank sleeps in between, each time an eighth longer, which is about an eighth of the
 * time it has waited so far. Before the first sleep it looks a hundred times, some tenths of a millisecond in all: what
 * it waits for is often there as soon as the others have had the core, which MPI offers them whenever a look finds
 * nothing. A sleep costs what some dozens of looks do: with five of them small exchanges of 8 ranks on two cores took
 * twice the time, and the processor's, too.
 *
 * The order in which MPI_Allreduce adds floats is not MPI_Iallreduce's, and results must not depend on how ranks wait.
 * So sums of floats, as all calls that MPI has in no other form, come after a barrier, and then nobody waits in them
 * for long.
 *
 * Environment: SPARSETRAIN_WAIT=spin|sleep; sleep on any rank is for all. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/transport/transport_mpi.h"

enum { SHORTEST = 20000, LONGEST = 400000 }; /* sleeps [ns] */
enum { LOOKS = 100 };                        /* before the first of them */

/* The same on all ranks, since it decides which collectives they call. */
void transport_wait_open(struct transport *t) {
    const char *how = getenv("SPARSETRAIN_WAIT");
    if (SIMULATED) return; /* whose ranks wait in no time of ours */
    int any = how && strcmp(how, "sleep") == 0;
    TRY(MPI_Allreduce(MPI_IN_PLACE, &any, 1, MPI_INT, MPI_MAX, t->world), "MPI_Allreduce (maximum)");
    t->sleeps = any;
}

/* MPI_Wait for what a call, with result rc, has begun. */
static int end(int rc, MPI_Request *request, MPI_Status *status) {
    struct timespec nap = {0, SHORTEST};
    int done = 0, looks = 0;
    while (rc == MPI_SUCCESS && (rc = MPI_Test(request, &done, status)) == MPI_SUCCESS && !done) {
        if (++looks < LOOKS) continue;
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < LONGEST) nap.tv_nsec += nap.tv_nsec / 8;
    }
    return rc;
}

int transport_wait_request(const struct transport *t, MPI_Request *request, MPI_Status *status) {
    return t->sleeps ? end(MPI_SUCCESS, request, status) : MPI_Wait(request, status);
}

int transport_send(const struct transport *t, bool sync, const void *at, int count, MPI_Datatype type, int dest,
                   int tag) {
    MPI_Request r = MPI_REQUEST_NULL;
    if (!t->sleeps) return (sync ? MPI_Ssend : MPI_Send)(at, count, type, dest, tag, t->world);
    return end((sync ? MPI_Issend : MPI_Isend)(at, count, type, dest, tag, t->world, &r), &r, MPI_STATUS_IGNORE);
}

int transport_recv(const struct transport *t, void *at, int count, MPI_Datatype type, int source, int tag,
                   MPI_Status *status) {
    MPI_Request r = MPI_REQUEST_NULL;
    if (!t->sleeps) return MPI_Recv(at, count, type, source, tag, t->world, status);
    return end(MPI_Irecv(at, count, type, source, tag, t->world, &r), &r, status);
}

int transport_barrier(const struct transport *t, MPI_Comm ranks) {
    MPI_Request r = MPI_REQUEST_NULL;
    return t->sleeps ? end(MPI_Ibarrier(ranks, &r), &r, MPI_STATUS_IGNORE) : MPI_Barrier(ranks);
}

int transport_bcast(const struct transport *t, void *data, int bytes, int root) {
    MPI_Request r = MPI_REQUEST_NULL;
    if (!t->sleeps) return MPI_Bcast(data, bytes, MPI_BYTE, root, t->world);
    return end(MPI_Ibcast(data, bytes, MPI_BYTE, root, t->world, &r), &r, MPI_STATUS_IGNORE);
}

int transport_gather(const struct transport *t, const void *mine, int bytes, void *all, int root) {
    MPI_Request r = MPI_REQUEST_NULL;
    if (!t->sleeps) return MPI_Gather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, root, t->world);
    return end(MPI_Igather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, root, t->world, &r), &r, MPI_STATUS_IGNORE);
}

int transport_allgather(const struct transport *t, const void *mine, int bytes, void *all) {
    MPI_Request r = MPI_REQUEST_NULL;
    if (!t->sleeps) return MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, t->world);
    return end(MPI_Iallgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, t->world, &r), &r, MPI_STATUS_IGNORE);
}

int transport_allreduce(const struct transport *t, const void *from, void *to, int count, MPI_Datatype type,
                        MPI_Op op) {
    MPI_Request r = MPI_REQUEST_NULL;
    bool ordered = op == MPI_SUM && type != MPI_UINT64_T;
    if (t->sleeps && !ordered)
        return end(MPI_Iallreduce(from, to, count, type, op, t->world, &r), &r, MPI_STATUS_IGNORE);
    int rc = t->sleeps ? transport_barrier(t, t->world) : MPI_SUCCESS;
    return rc == MPI_SUCCESS ? MPI_Allreduce(from, to, count, type, op, t->world) : rc;
}
