/* checkpoint_load.c: a run takes over what a checkpoint holds: see checkpoint.h. On another number of ranks than wrote
 * it what each of them had of its own is checkpoint_reshare.c's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/checkpoint_check.h"
#include "cli/checkpoint/checkpoint_own.h"
#include "cli/checkpoint/checkpoint_reshare.h"
#include "cli/checkpoint/tally.h"
#include "cli/train/rounds.h"

bool checkpoint_is_of(const struct checkpoint *from, int64_t was, int64_t now, const struct net_size *size,
                      struct err *e) {
    if (from->parameters != size->n || from->net_states != size->n_state)
        return err_set(e, "cannot resume: the checkpoint %s/model.ckpt has %llu parameters, this model %zu", from->path,
                       (unsigned long long)from->parameters, size->n);
    return from->carried * (uint64_t)now == size->n_carry * (uint64_t)was ||
           err_set(e, "cannot resume: the checkpoint %s/model.ckpt holds states of other streams than this run reads",
                   from->path);
}

static bool fits(const struct run *r, const struct checkpoint *from, const struct position *p, struct err *e) {
    const struct arena *a = &r->model.net->arena;
    const struct net_size size = {a->n, a->n_state, a->n_carry, 0};
    if (!checkpoint_is_of(from, r->resize.batch, r->options.batch, &size, e)) return false;
    if (p->optimiser_states != r->model.optimiser.n_state)
        return err_set(e, "cannot resume: the checkpoint %s/model.ckpt has %llu states of an optimiser, this one %zu",
                       from->path, (unsigned long long)p->optimiser_states, r->model.optimiser.n_state);
    if (p->data_checksum != r->data.checksum)
        return err_set(e, "cannot resume: the dataset differs from the one of the checkpoint (checksum %08x, now %08x)",
                       p->data_checksum, r->data.checksum);
    return true;
}

/* Older files have none. */
static bool load_round_hash(struct run *r, const struct container *c, struct written *w, struct err *e) {
    static const char section[] = "round hash";
    const char *name;
    size_t bytes;
    w->knows_round = rounds_saved(r, 0, &name) && container_has(c, section, &bytes);
    if (!w->knows_round) return true;
    return container_get(c, section, &w->round, sizeof w->round, e) &&
           (w->round == replica_round_hash(r) ||
            err_set(e, "the checkpoint %s is damaged: what it has of the last round is not what its hash is of",
                    c->path));
}

/* Rank 0: what the ranks hold alike since the last round. */
static bool load_rounds(struct run *r, const struct container *c, struct written *w, struct err *e) {
    const char *name;
    bool good = true;
    for (size_t i = 0; good && rounds_saved(r, i, &name); i++) {
        float *array = rounds_saved(r, i, &name);
        good = container_get(c, name, array, r->model.n * sizeof *array, e) &&
               checkpoint_check_finite(array, r->model.n, name, c->path, e);
    }
    return good && load_round_hash(r, c, w, e);
}

static void share_rounds(struct run *r) {
    const char *name;
    for (size_t i = 0; rounds_saved(r, i, &name); i++)
        comm_bcast(r->comm, 0, rounds_saved(r, i, &name), r->model.n * sizeof(float));
}

/* Rank 0: parameters, optimiser, position, tally; they reach the others by broadcast, so all start from the same bits.
 */
static bool load_model(struct run *r, const struct checkpoint *from, float *param, float *moments, struct position *p,
                       struct tally *t, struct written *w, uint64_t *unfit, struct err *e) {
    struct container c;
    if (!checkpoint_read(from, "model.ckpt", &c, e)) return false;
    bool good = container_get(&c, "position", p, sizeof *p, e) && checkpoint_check_position(p, c.path, from->path, e);
    *unfit = good && !fits(r, from, p, e);
    good = good && !*unfit && container_get(&c, "parameters", param, r->model.n * sizeof *param, e) &&
           container_get(&c, "optimiser", moments, r->model.optimiser.n_state * sizeof *moments, e) &&
           checkpoint_check_finite(param, r->model.n, "parameters", c.path, e) &&
           checkpoint_check_moments(moments, r->model.n, r->model.optimiser.ops, "optimiser", c.path, e) &&
           tally_read(&c, t, e) && load_rounds(r, &c, w, e) && written_find(&c, "hashes", w, e) &&
           written_holds(r, w, param, moments, c.path, e);
    container_close(&c);
    return good;
}

static bool check_exchange(const struct run *r, const char *path, struct err *e) {
    struct err why = {0};
    uint64_t alike = 0;
    return exchange_check_own(&r->path.reducer.exchange, &alike, &why) ||
           err_set(e, "the checkpoint %s is damaged: its section exchange: %.200s", path, why.text);
}

/* Each rank has checked its own state; this checks that the ranks' states fit together. Collective. */
static bool check_alike(struct run *r, const struct checkpoint *from, struct err *e) {
    struct err why = {0};
    return exchange_check(&r->path.reducer.exchange, &why) ||
           err_set(e, "the checkpoint %s is damaged: %.200s", from->path, why.text);
}

/* What a run of as many ranks does not take over. */
static unsigned less_of(const struct run *r) {
    return (r->resize.other_batch ? OWN_NO_STREAMS : 0u) |
           (r->options.resume_residuals == RESIDUALS_RESET ? OWN_NO_RESIDUALS : 0u);
}

/* w: of all ranks, where replicas are the same, else of this one. */
static bool load_rank(struct run *r, const struct checkpoint *from, const struct position *model, struct written *w,
                      struct err *e) {
    char name[32];
    struct container c;
    struct own own;
    snprintf(name, sizeof name, "rank%04d.ckpt", r->comm->rank);
    if (!checkpoint_read(from, name, &c, e)) return false;
    own_open(r, less_of(r), &own);
    bool good = true;
    for (size_t i = 0; i < own.count && good; i++)
        good = container_get(&c, own.section[i].name, own.memory[i], own.section[i].bytes, e);
    const struct position *p = own_find(&own, "position");
    good = good && checkpoint_check_beside(p, model, r->comm->rank, c.path, "resume from", e) &&
           own_check(r, &own, c.path, e);
    if (good && r->replicas.drifts)
        good = written_find(&c, "own hashes", w, e) &&
               written_holds(r, w, own_find(&own, "own parameters"), own_find(&own, "own optimiser"), c.path, e);
    if (good) own_move(r, &own, NULL, true);
    good = good && (!w->known || replica_is(r, &w->hash, from->path, e));
    good = good && check_exchange(r, c.path, e);
    own_close(&own);
    container_close(&c);
    return good;
}

bool checkpoint_load(struct run *r, const struct checkpoint *from, bool *damaged, struct err *e) {
    struct position p = {0};
    struct tally tally = {.evaluated = 0};
    uint64_t unfit = 0;
    struct written written = {0};
    const struct arena *a = &r->model.net->arena;
    float *param = mem_alloc(r->model.n, sizeof *param, "the parameters");
    float *moments = mem_alloc(r->model.optimiser.n_state, sizeof *moments, "the optimiser's state");
    if (r->comm->rank == 0) load_model(r, from, param, moments, &p, &tally, &written, &unfit, e);
    bool failed = comm_agree(r->comm, e);
    comm_bcast(r->comm, 0, &unfit, sizeof unfit);
    *damaged = !unfit;
    if (!failed) {
        comm_bcast(r->comm, 0, &p, sizeof p);
        comm_bcast(r->comm, 0, &tally, sizeof tally);
        comm_bcast(r->comm, 0, &written, sizeof written);
        comm_bcast(r->comm, 0, param, r->model.n * sizeof *param);
        comm_bcast(r->comm, 0, moments, r->model.optimiser.n_state * sizeof *moments);
        share_rounds(r);
        if (written.knows_round) replica_round_is(r, written.round, from->path, e);
        a->device->to_device(a->param, param, r->model.n * sizeof *param);
        r->model.optimiser.device->to_device(r->model.optimiser.state, moments,
                                             r->model.optimiser.n_state * sizeof *moments);
        if (r->resize.other_ranks)
            failed = !checkpoint_reshare(r, from, &p, &written, e);
        else
            load_rank(r, from, &p, &written, e);
        if (r->resize.other_ranks || (less_of(r) & OWN_NO_RESIDUALS)) exchange_skip(&r->path.reducer.exchange, p.step);
        failed = comm_agree(r->comm, e) || failed || !check_alike(r, from, e);
        if (!failed && !replicas_fit_nodes(r, from->path, e)) {
            failed = true;
            *damaged = false;
        }
    }
    mem_free(param);
    mem_free(moments);
    r->job.id = p.run_id;
    r->step = r->first_step = (size_t)p.step;
    r->saved.last = r->job.dir.elsewhere ? SIZE_MAX : r->step; /* in --out */
    r->replicas.averaged_at = p.averaged || (r->replicas.drifts && r->resize.other_ranks) ? r->step : SIZE_MAX;
    r->log.start = scores_none;
    r->log.start.test_loss = p.start.test_loss;
    r->log.start.test_accuracy = p.start.test_accuracy;
    r->log.start.valid_loss = p.start.valid_loss;
    tally_put(r, &tally);
    optimiser_set_steps(&r->model.optimiser, p.step);
    return !failed;
}
