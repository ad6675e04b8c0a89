/* transport_mpi_watch.c: comm.h over MPI: the page of the watchdog (comm/transport/watch.h), which the ranks of a node
 * share. It is no window of MPI's, since it must outlive MPI_Finalize, in which ranks wait for each other too. Without
 * room in /dev/shm, and with SPARSETRAIN_NO_SHARED=1, each rank has its own and knows nothing of the others. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "comm/transport/transport_mpi.h"
#include "comm/transport/watch.h"

enum { NAME_MAX_ = 64 };

static bool all_here(const struct transport *t, bool mine) {
    int all = mine;
    TRY(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, t->local), "MPI_Allreduce on the node");
    return all != 0;
}

/* On the node's first rank a new file of that many bytes, with its name; else the one of that name. */
static void *map_page(char name[NAME_MAX_], size_t bytes, bool first) {
    int file = -1;
    for (uint64_t i = 0; first && file < 0 && i < 8; i++) {
        double now = clock_now();
        uint64_t draw = hash_word(hash64((uint64_t)getpid(), &now, sizeof now), i);
        snprintf(name, NAME_MAX_, "/sparsetrain-watch-%016llx", (unsigned long long)draw);
        file = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    }
    if (!first && name[0]) file = shm_open(name, O_RDWR, 0);
    void *page = MAP_FAILED;
    if (file >= 0 && (!first || posix_fallocate(file, 0, (off_t)bytes) == 0))
        page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    return page == MAP_FAILED ? NULL : page;
}

static struct watch_page *share_page(const struct transport *t, size_t bytes) {
    char name[NAME_MAX_] = "";
    const char *never = getenv("SPARSETRAIN_NO_SHARED");
    bool first = t->node_rank == 0, wanted = t->node_size > 1 && !(never && strcmp(never, "1") == 0);
    void *page = NULL;
    if (!all_here(t, wanted)) return NULL;
    if (first) page = map_page(name, bytes, true);
    TRY(MPI_Bcast(name, NAME_MAX_, MPI_CHAR, 0, t->local), "MPI_Bcast on the node");
    if (!first) page = map_page(name, bytes, false);
    bool shared = all_here(t, page != NULL);
    if (first && name[0]) shm_unlink(name);
    if (!shared && page) munmap(page, bytes);
    return shared ? page : NULL;
}

void transport_watch_open(struct comm *c) {
    struct transport *t = transport_of(c);
    size_t bytes = watch_page_bytes(t->node_size);
    if (c->size == 1) {
        watch_end();
        return;
    }
    struct watch_page *page = share_page(t, bytes);
    int mine = page ? t->node_rank : 0, slots = page ? t->node_size : 1;
    if (!page) page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) die("no memory for the watchdog's page");
    watch_fill(&page->slot[mine], c->rank);
    if (mine == 0) page->slots = slots;
    if (mine == 0) page->ranks = c->size;
    all_here(t, true);
    watch_join(page, mine);
    t->watch = page;
    t->watch_bytes = bytes;
}

void transport_watch_close(struct transport *t) {
    watch_end();
    if (t->watch) munmap(t->watch, t->watch_bytes);
    t->watch = NULL;
}
