/* checkpoint_reshare.c: see checkpoint_reshare.h. Sums over ranks are in double and in the order of the ranks; what all
 * ranks get alike rank 0 reads and sends. */
#include "cli/checkpoint/checkpoint_reshare.h"

#include <string.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint_check.h"
#include "topk/reshare.h"

/* The files of the ranks that were. */
struct old {
    const struct checkpoint *at;
    const struct position *model;
};

static bool get_floats(const struct old *old, const struct container *c, const char *section, float *value, size_t n,
                       struct err *e) {
    return checkpoint_get(old->at, c, section, value, n * sizeof *value, e) &&
           checkpoint_check_finite(value, n, section, c->path, e);
}

/* -- residuals and velocities ---------------------------------------------------------------------------------- */

/* sum += w v, of one rank that was. value: [n], scratch */
static bool add_share(const struct old *old, int rank, const char *section, int64_t weight, float *value, size_t n,
                      double *sum, struct err *e) {
    struct container c;
    if (!checkpoint_open_rank(old->at, old->model, rank, &c, e)) return false;
    const bool good = get_floats(old, &c, section, value, n, e);
    if (good) reshare_add(sum, value, n, weight);
    container_close(&c);
    return good;
}

/* What this rank gets of such a section, into the store. */
static bool take_share(const struct run *r, const struct old *old, const char *section, struct store *store,
                       struct err *e) {
    const enum reshare how = r->options.resume_residuals == RESIDUALS_SUM ? RESHARE_SUM : RESHARE_MEAN;
    const int P = (int)old->model->ranks, Q = r->comm->size;
    const size_t n = r->model.n;
    double *sum = mem_zalloc(n, sizeof *sum, "a sum of residuals");
    float *value = mem_alloc(n, sizeof *value, "a residual");
    bool good = true;
    for (int rank = 0; rank < P && good; rank++) {
        const int64_t weight = reshare_weight(how, P, Q, r->comm->rank, rank);
        good = weight == 0 || add_share(old, rank, section, weight, value, n, sum, e);
    }
    if (good) reshare_take(value, sum, n, reshare_divisor(how, P));
    good = good && checkpoint_check_finite(value, n, section, old->at->path, e);
    if (good) store->ops->write(store, 0, n, value);
    mem_free(sum);
    mem_free(value);
    return good;
}

static bool take_shares(struct run *r, const struct old *old, struct err *e) {
    if (!r->path.reducer.keeps || r->options.resume_residuals == RESIDUALS_RESET) return true;
    return take_share(r, old, "residual", &r->path.reducer.store, e) &&
           (!r->options.momentum_correction || take_share(r, old, "velocity", &r->path.correction.velocity, e));
}

/* -- streams --------------------------------------------------------------------------------------------------- */

/* Of a rank that read `was` streams those that this one reads now. Slices are [streams][features]; carry: [n_carry],
 * theirs: as many floats of each stream. */
static void move_streams(const struct run *r, int rank, size_t was, const float *theirs, float *carry) {
    const struct arena *a = &r->model.net->arena;
    const size_t now = (size_t)r->options.batch, first = (size_t)r->comm->rank * now, other = (size_t)rank * was;
    for (size_t i = 0; i < a->carry_slices; i++) {
        const struct slice *s = &a->carry_slice[i];
        const size_t features = s->size / now, from = s->offset / now * was;
        for (size_t g = first; g < first + now; g++)
            if (g >= other && g < other + was)
                memcpy(carry + s->offset + (g - first) * features, theirs + from + (g - other) * features,
                       features * sizeof *carry);
    }
}

static bool take_streams(struct run *r, const struct old *old, struct err *e) {
    const struct arena *a = &r->model.net->arena;
    const size_t was = (size_t)r->resize.batch, now = (size_t)r->options.batch, first = (size_t)r->comm->rank * now;
    if (a->n_carry == 0 || r->resize.other_batch) return true;
    const size_t n = a->n_carry / now * was;
    float *carry = mem_zalloc(a->n_carry, sizeof *carry, "the states of the streams");
    float *theirs = mem_alloc(n, sizeof *theirs, "the states of other streams");
    bool good = true;
    for (size_t rank = first / was; rank * was < first + now && good; rank++) {
        struct container c;
        good = checkpoint_open_rank(old->at, old->model, (int)rank, &c, e);
        if (!good) break;
        good = get_floats(old, &c, "streams", theirs, n, e);
        if (good) move_streams(r, (int)rank, was, theirs, carry);
        container_close(&c);
    }
    if (good) a->device->to_device(a->carry, carry, a->n_carry * sizeof *carry);
    mem_free(carry);
    mem_free(theirs);
    return good;
}

/* -- what all ranks get alike ---------------------------------------------------------------------------------- */

/* A mean over the ranks that were: a section of theirs, and where it goes. */
struct mean {
    const char *section;
    const struct device_ops *device;
    float *array; /* device, [n] */
    size_t n;
    float *value; /* [n]: of one rank, and in the end the mean */
    double *sum;  /* [n]; rank 0 */
};

enum { STATE, PARAM, MOMENTS, MEANS };

static size_t means_open(struct run *r, struct mean m[MEANS]) {
    const struct arena *a = &r->model.net->arena;
    const struct optimiser *o = &r->model.optimiser;
    const size_t count = r->replicas.drifts ? MEANS : STATE + 1;
    m[STATE] = (struct mean){"net state", a->device, a->state, a->n_state, NULL, NULL};
    m[PARAM] = (struct mean){"own parameters", a->device, a->param, r->model.n, NULL, NULL};
    m[MOMENTS] = (struct mean){"own optimiser", o->device, o->state, o->n_state, NULL, NULL};
    for (size_t i = 0; i < count; i++) {
        m[i].value = mem_alloc(m[i].n, sizeof *m[i].value, "a mean over the ranks");
        if (r->comm->rank == 0) m[i].sum = mem_zalloc(m[i].n, sizeof *m[i].sum, "a sum over the ranks");
    }
    return count;
}

static void means_close(struct mean *m, size_t count) {
    for (size_t i = 0; i < count; i++) {
        mem_free(m[i].value);
        mem_free(m[i].sum);
    }
}

/* What one rank had, as far as the numbers are such as a run leaves. */
static bool read_means(const struct run *r, const struct old *old, const struct container *c, struct mean *m,
                       size_t count, struct err *e) {
    const struct arena *a = &r->model.net->arena;
    struct written w = {0};
    bool good = true;
    for (size_t i = 0; i < count && good; i++) good = get_floats(old, c, m[i].section, m[i].value, m[i].n, e);
    good = good && checkpoint_check_statistics(m[STATE].value, a->n_state, a->state_slice, a->state_slices, c->path, e);
    if (!good || count == STATE + 1) return good;
    return checkpoint_check_moments(m[MOMENTS].value, r->model.n, r->model.optimiser.ops, m[MOMENTS].section, c->path,
                                    e) &&
           written_find(c, "own hashes", &w, e) && written_holds(r, &w, m[PARAM].value, m[MOMENTS].value, c->path, e);
}

/* Rank 0. The mean of equal numbers is that number. */
static bool average(const struct run *r, const struct old *old, struct mean *m, size_t count, struct err *e) {
    const int P = (int)old->model->ranks;
    bool good = true;
    for (int rank = 0; rank < P && good; rank++) {
        struct container c;
        if (!checkpoint_open_rank(old->at, old->model, rank, &c, e)) return false;
        good = read_means(r, old, &c, m, count, e);
        for (size_t i = 0; i < count && good; i++) reshare_add(m[i].sum, m[i].value, m[i].n, 1);
        container_close(&c);
    }
    for (size_t i = 0; i < count && good; i++) reshare_take(m[i].value, m[i].sum, m[i].n, P);
    return good;
}

static bool take_means(struct run *r, const struct old *old, struct err *e) {
    struct mean m[MEANS];
    const size_t count = means_open(r, m);
    if (r->comm->rank == 0) average(r, old, m, count, e);
    const bool failed = comm_agree(r->comm, e);
    for (size_t i = 0; i < count && !failed; i++) {
        comm_bcast(r->comm, 0, m[i].value, m[i].n * sizeof *m[i].value);
        m[i].device->to_device(m[i].array, m[i].value, m[i].n * sizeof *m[i].value);
    }
    means_close(m, count);
    return !failed;
}

bool checkpoint_reshare(struct run *r, const struct checkpoint *from, const struct position *model,
                        const struct written *written, struct err *e) {
    const struct old old = {from, model};
    bool good = !written->known || r->replicas.drifts || replica_is(r, &written->hash, from->path, e);
    if (good && take_shares(r, &old, e)) take_streams(r, &old, e);
    return !comm_agree(r->comm, e) && take_means(r, &old, e);
}
