/* replicas.c: see replicas.h. */
#include "cli/observe/replicas.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cli/train/rounds.h"

bool run_replicas_same(const struct run *r) {
    return !r->replicas.drifts || r->replicas.averaged_at == r->step;
}

bool run_drifts_by_node(const struct run *r) {
    return r->options.local_update && r->path.reducer.exchange.ops->by_node;
}

static const char round_name[] = "parameters or outer velocity of the last round";

/* -- one replica --------------------------------------------------------------------------------------------------- */
static const float *in_host_memory(const struct device_ops *device, const float *array, size_t n, float **copy) {
    *copy = NULL;
    if (n == 0 || device_is_host(device)) return array;
    return *copy = device_copy_to_host(device, array, n, "a copy of what replicas hold alike");
}

struct replica_hash replica_hash_of(const float *param, size_t n, const float *moments, size_t n_state) {
    return (struct replica_hash){hash64(0, param, n * sizeof *param),
                                 n_state > 0 ? hash64(0, moments, n_state * sizeof *moments) : 0};
}

uint64_t replica_round_hash(struct run *r) {
    uint64_t hash = 0;
    const char *name;
    for (size_t i = 0; rounds_saved(r, i, &name); i++)
        hash = hash64(hash, rounds_saved(r, i, &name), r->model.n * sizeof(float));
    return hash;
}

void replica_open(struct replica *m, struct run *r) {
    const struct arena *a = &r->model.net->arena;
    const struct optimiser *o = &r->model.optimiser;
    m->param = in_host_memory(a->device, a->param, r->model.n, &m->copies[0]);
    m->moments = in_host_memory(o->device, o->state, o->n_state, &m->copies[1]);
    m->hash = replica_hash_of(m->param, r->model.n, m->moments, o->n_state);
    m->round = replica_round_hash(r);
}

void replica_close(struct replica *m) {
    mem_free(m->copies[0]);
    mem_free(m->copies[1]);
}

static bool was_written(const struct run *r, const char *what, uint64_t hash, uint64_t written, const char *from,
                        struct err *e) {
    if (hash == written || e->text[0]) return hash == written;
    err_system(e,
               "cannot resume: rank %d has read %s from %s that were not written there (hash %016llx, written with "
               "%016llx): memory or network of its node changes data",
               r->comm->rank, what, from, (unsigned long long)hash, (unsigned long long)written);
    e->intact = true; /* rank 0 has looked at the file */
    return false;
}

bool replica_is(struct run *r, const struct replica_hash *written, const char *from, struct err *e) {
    struct replica m;
    replica_open(&m, r);
    replica_close(&m);
    return was_written(r, "parameters", m.hash.parameters, written->parameters, from, e) &&
           was_written(r, "states of the optimiser", m.hash.optimiser, written->optimiser, from, e);
}

bool replica_round_is(struct run *r, uint64_t written, const char *from, struct err *e) {
    return was_written(r, round_name, replica_round_hash(r), written, from, e);
}

/* -- all of them --------------------------------------------------------------------------------------------------- */
enum kind { PARAMETERS, OPTIMISER, ROUND, KINDS };

/* What a rank has of each kind, and among whom it is compared: the number of a group, or nobody. */
enum { NOBODY = -1, EVERYBODY = 0 };
struct share {
    uint64_t hash[KINDS];
    int64_t group[KINDS];
};

static struct share share_of(const struct run *r, const struct replica *m) {
    const int64_t node = run_drifts_by_node(r) ? r->comm->node : NOBODY;
    return (struct share){{m->hash.parameters, m->hash.optimiser, m->round},
                          {run_replicas_same(r) ? EVERYBODY : node, r->replicas.drifts ? node : EVERYBODY, EVERYBODY}};
}

static int first_of_group(const struct share *all, int rank, enum kind kind) {
    int first = 0;
    while (all[first].group[kind] != all[rank].group[kind]) first++;
    return first;
}

/* The first rank that differs from the first of its group, or -1. */
static int find_difference(const struct share *all, int P, enum kind kind) {
    for (int i = 0; i < P; i++)
        if (all[i].group[kind] != NOBODY && all[i].hash[kind] != all[first_of_group(all, i, kind)].hash[kind]) return i;
    return -1;
}

/* The rank of a group whose hash most of it have; of several the lowest. */
static int rank_of_most(const struct share *all, int P, int64_t group, enum kind kind) {
    int best = 0, most = 0;
    for (int i = 0; i < P; i++) {
        int count = 0;
        for (int j = 0; j < P; j++) count += all[j].group[kind] == group && all[j].hash[kind] == all[i].hash[kind];
        if (all[i].group[kind] == group && count > most) most = count, best = i;
    }
    return best;
}

/* "rank 2", "ranks 1, 2, 5 and 8 more": those of the group that do not have what `like` has. */
static void name_ranks(const struct share *all, int P, int like, enum kind kind, char *text, size_t size) {
    enum { NAMED = 8 };
    int odd[NAMED], count = 0;
    for (int i = 0; i < P; i++) {
        if (all[i].group[kind] != all[like].group[kind] || all[i].hash[kind] == all[like].hash[kind]) continue;
        if (count < NAMED) odd[count] = i;
        count++;
    }
    size_t used = (size_t)snprintf(text, size, "rank%s", count > 1 ? "s" : "");
    for (int i = 0; i < count && i < NAMED; i++)
        used += (size_t)snprintf(text + used, size - used, "%s %d", i ? "," : "", odd[i]);
    if (count > NAMED) snprintf(text + used, size - used, " and %d more", count - NAMED);
}

static _Noreturn void differ(const struct run *r, const struct share *all, int rank, enum kind kind, const char *then) {
    static const char *const names[] = {"parameters", "states of the optimiser", round_name};
    char ranks[160];
    const int P = r->comm->size, like = rank_of_most(all, P, all[rank].group[kind], kind);
    name_ranks(all, P, like, kind, ranks, sizeof ranks);
    die_status(EXIT_SYSTEM, "after step %zu the %s of %s differ from those of rank %d%s", r->step, names[kind], ranks,
               like, then);
}

/* Rank 0 speaks, since all know the same; the others wait for the end. */
void replicas_compare(struct run *r, const struct replica *m, const char *then) {
    const int P = r->comm->size;
    const struct share mine = share_of(r, m);
    if (r->replicas.compared_at == r->step + 1) return;
    struct share *all = mem_alloc((size_t)P, sizeof *all, "the hashes of all ranks' parameters");
    comm_allgather(r->comm, &mine, sizeof mine, all);
    for (enum kind kind = PARAMETERS; kind < KINDS; kind++) {
        int rank = find_difference(all, P, kind);
        if (rank >= 0 && r->comm->rank == 0) differ(r, all, rank, kind, then);
        if (rank >= 0) comm_barrier(r->comm);
    }
    mem_free(all);
    r->replicas.compared_at = r->step + 1;
    r->replicas.hash = m->hash;
}

bool replicas_fit_nodes(struct run *r, const char *from, struct err *e) {
    const int P = r->comm->size;
    struct replica m;
    if (!run_drifts_by_node(r)) return true;
    replica_open(&m, r);
    const struct share mine = {{m.hash.parameters, m.hash.optimiser, 0}, {r->comm->node, r->comm->node, NOBODY}};
    struct share *all = mem_alloc((size_t)P, sizeof *all, "the hashes of all ranks' parameters");
    comm_allgather(r->comm, &mine, sizeof mine, all);
    int rank = find_difference(all, P, PARAMETERS);
    if (rank < 0) rank = find_difference(all, P, OPTIMISER);
    const int first = rank < 0 ? 0 : first_of_group(all, rank, PARAMETERS);
    mem_free(all);
    replica_close(&m);
    if (rank < 0) return true;
    return err_set(
        e,
        "cannot resume: rank %d and rank %d share a node now, and did not when %s was written, so that their "
        "parameters differ, which those of a node must not; give the job the nodes that it had (or "
        "--ranks-per-node), or another number of ranks, which begins with the mean of all",
        first, rank, from);
}

uint64_t run_check_replicas(struct run *r) {
    struct replica m;
    if (r->replicas.compared_at == r->step + 1) return r->replicas.hash.parameters;
    replica_open(&m, r);
    replicas_compare(r, &m, "");
    replica_close(&m);
    return m.hash.parameters;
}
