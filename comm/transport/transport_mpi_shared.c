/* transport_mpi_shared.c: comm.h over MPI: memory that the ranks of a node share. A node is here what MPI says it is,
 * emulated nodes or not. */
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/mem.h"
#include "comm/transport/transport_mpi.h"

enum { CACHE_LINE = 64 };

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
    MPI_Aint mine = t->node_rank == 0 ? (MPI_Aint)(bytes + CACHE_LINE) : 0;
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
    const struct transport *t = transport_of(c);
    bool wanted = t->node_size > 1 && !(never && strcmp(never, "1") == 0) && bytes < PTRDIFF_MAX - CACHE_LINE;
    struct window *w = mem_alloc(1, sizeof *w, "a shared window");
    *s = (struct comm_shared){.bytes = bytes};
    if (all_local(t, wanted && (t->node_rank > 0 || room_for(bytes)))) s->memory = window_open(c, w, bytes);
    s->shared = s->memory != NULL;
    s->filler = !s->shared || t->node_rank == 0;
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
    TRY(transport_barrier(transport_of(c), transport_of(c)->local), "MPI_Barrier on the node");
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
