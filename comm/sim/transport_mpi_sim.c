/* transport_mpi_sim.c: comm.h over MPI: what a simulation (SimGrid SMPI, `make sim`) has, and what stands for it in
 * real runs. docs/simulation.md says how it is used.
 *
 * A simulated rank is a coroutine of one process, with a copy of the program and its variables of its own. Time passes
 * in MPI calls, as the network's model says, and in comm_compute; whatever else a rank does takes none. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "comm/transport/transport_mpi.h"

#ifdef SMPI_H

#include <simgrid/actor.h>
#include <simgrid/barrier.h>

/* SimGrid numbers its actors from 1 in the order of the ranks. */
int comm_simulated_rank(void) {
    return (int)sg_actor_self_get_pid() - 1;
}

void comm_compute(struct comm *c, double seconds) {
    (void)c;
    if (seconds > 0) smpi_execute(seconds);
}

/* The second half is what the first is summed from. */
void *comm_unread_alloc(struct comm *c, size_t bytes) {
    struct transport *job = transport_of(transport_of(c)->job);
    job->unread_bytes = bytes;
    return job->unread = SMPI_SHARED_MALLOC(2 * bytes);
}

void comm_unread_free(struct comm *c, void *memory) {
    transport_of(transport_of(c)->job)->unread = NULL;
    SMPI_SHARED_FREE(memory);
}

const void *transport_sum_from(const struct comm *c, const void *data) {
    const struct transport *job = transport_of(transport_of(c)->job);
    const char *at = data;
    bool unread = job->unread && at >= job->unread && at < job->unread + job->unread_bytes;
    return unread ? at + job->unread_bytes : MPI_IN_PLACE;
}

/* Ranks leave MPI_Barrier several alphas apart, as real ones do; in a simulation it would be the same ranks that are
 * late every time. So a barrier of SimGrid's own is used, which takes no simulated time. Rank 0 creates it; its
 * address is valid on all ranks, and it exists until the simulation ends. */
void transport_meet(struct transport *t) {
    int rank, size;
    if (!t->meeting) {
        MPI_Comm_rank(t->world, &rank);
        MPI_Comm_size(t->world, &size);
        if (rank == 0) t->meeting = sg_barrier_init((unsigned)size);
        TRY(MPI_Bcast(&t->meeting, sizeof t->meeting, MPI_BYTE, 0, t->world), "MPI_Bcast of a barrier");
    }
    sg_barrier_wait(t->meeting);
}

#else

int comm_simulated_rank(void) {
    return -1;
}

/* Until a time on the clock, so that a signal does not cut it short. */
static void sleep_for(double seconds) {
    if (!(seconds > 0)) return;
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double whole = floor(seconds);
    end.tv_sec += (time_t)whole;
    end.tv_nsec += (long)ceil((seconds - whole) * 1e9);
    for (; end.tv_nsec >= 1000000000; end.tv_nsec -= 1000000000) end.tv_sec++;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {
    }
}

void comm_compute(struct comm *c, double seconds) {
    (void)c;
    sleep_for(seconds);
}

void *comm_unread_alloc(struct comm *c, size_t bytes) {
    (void)c, (void)bytes;
    return NULL;
}

void comm_unread_free(struct comm *c, void *memory) {
    (void)c, (void)memory;
}

const void *transport_sum_from(const struct comm *c, const void *data) {
    (void)c, (void)data;
    return MPI_IN_PLACE;
}

/* Ranks leave MPI_Barrier up to log2(P) alphas apart; on a slow network that would be added to every step measured
 * after it. Ranks on one machine share a clock: they agree on a start time late enough for the slowest to know of it
 * (judged by the longest agreement so far) and wait for it. If the clocks differ by more than a barrier can explain,
 * the ranks are on several machines, and MPI_Barrier alone is used. */
void transport_meet(struct transport *t) {
    enum { LATEST, EARLIEST, LAP, COUNT };
    const double slack = 1e-3, last_bit = 1e-4; /* [s]; a sleep may end late by the second, about */
    double now = clock_now(), all[COUNT];
    const double mine[COUNT] = {[LATEST] = now, [EARLIEST] = -now, [LAP] = t->lap};
    TRY(transport_allreduce(t, mine, all, COUNT, MPI_DOUBLE, MPI_MAX), "MPI_Allreduce of clocks");
    double after = clock_now(), wait = 2 * all[LAP], start = all[LATEST] + wait;
    t->lap = fmax(after - now, t->lap / 2);
    if (all[LATEST] + all[EARLIEST] > wait + slack) return;
    sleep_for(start - after - last_bit);
    while (clock_now() < start) sched_yield();
}

#endif
