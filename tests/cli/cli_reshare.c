/* What a checkpoint of P ranks has of each rank, on another number of them: the mean or the sum of residuals and
 * velocities over the ranks to the bit, averages of what all get alike, every stream's states where it is read now;
 * what is damaged is refused on all ranks. P goes over 1, 2, 3, 5, 8, and the ranks of the test, too. */
/* ranks: 1 2 3 5 8 */
/* devices: cuda ranks 1 3 */
#include "tests/lib/mpi_harness.h"
#include "tests/lib/test_device.h"

#include <math.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/table.h"
#include "cli/checkpoint/checkpoint_reshare.h"

static const int sizes[] = {1, 2, 3, 5, 8};
enum { SIZES = 5, N = 257, STATES = 6, FEATURES = 3, STREAMS = 120, MOMENTS = 2 * N, UNIT = 840 * 8 };

/* Whole numbers whose quotients by any of the sizes, twice, are whole as well; another one for each purpose, rank and
 * place. */
static float number(int purpose, int rank, size_t i) {
    return (float)(((int)(i * 31 + (size_t)rank * 17 + (size_t)purpose * 7) % 201 - 100) * UNIT);
}

enum { RESIDUAL, VELOCITY, PARAM, OPTIMISER, STATE };

/* Means of squares are none below 0. */
static float moment(int rank, size_t i) {
    const float value = number(OPTIMISER, rank, i);
    return i < N ? value : fabsf(value);
}

/* Of a state of stream g. */
static float stream(size_t slice, size_t g, size_t feature) {
    return (float)(slice * 100000 + g * 100 + feature);
}

/* -- the files ----------------------------------------------------------------------------------------------------- */

static struct position position_of(int ranks, int rank) {
    return (struct position){.run_id = 7,
                             .step = 12,
                             .ranks = (uint32_t)ranks,
                             .rank = (uint32_t)rank,
                             .parameters = N,
                             .optimiser_states = MOMENTS,
                             .net_states = STATES,
                             .carried = 2u * FEATURES * STREAMS / (uint32_t)ranks};
}

static void write_rank(const char *dir, int ranks, int rank) {
    static float residual[N], velocity[N], param[N], moments[MOMENTS], state[STATES], carry[2 * FEATURES * STREAMS];
    const size_t batch = STREAMS / (size_t)ranks;
    const struct position position = position_of(ranks, rank);
    for (size_t i = 0; i < N; i++) {
        residual[i] = number(RESIDUAL, rank, i);
        velocity[i] = number(VELOCITY, rank, i);
        param[i] = number(PARAM, rank, i);
    }
    for (size_t i = 0; i < MOMENTS; i++) moments[i] = moment(rank, i);
    for (size_t i = 0; i < STATES; i++) state[i] = fabsf(number(STATE, rank, i));
    for (size_t s = 0; s < 2; s++)
        for (size_t b = 0; b < batch; b++)
            for (size_t f = 0; f < FEATURES; f++)
                carry[(s * batch + b) * FEATURES + f] = stream(s, (size_t)rank * batch + b, f);
    const struct replica_hash hash = replica_hash_of(param, N, moments, MOMENTS);
    const struct section sections[] = {{"position", &position, sizeof position},
                                       {"net state", state, sizeof state},
                                       {"streams", carry, 2 * FEATURES * batch * sizeof *carry},
                                       {"residual", residual, sizeof residual},
                                       {"velocity", velocity, sizeof velocity},
                                       {"own parameters", param, sizeof param},
                                       {"own optimiser", moments, sizeof moments},
                                       {"own hashes", &hash, sizeof hash}};
    char path[128];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/rank%04d.ckpt", dir, rank);
    if (!container_write(path, sections, sizeof sections / sizeof *sections, &e)) fail_msg("%s", e.text);
}

/* Collective: a checkpoint of so many ranks, whose files rank 0 writes; gone again by remove_files. */
static void write_files(struct comm *c, int ranks, char dir[64]) {
    mpi_test_path(c, "reshare", dir);
    if (c->rank == 0) assert_int_equal(mkdir(dir, 0700), 0);
    for (int rank = 0; c->rank == 0 && rank < ranks; rank++) write_rank(dir, ranks, rank);
    comm_barrier(c);
}

static void remove_files(struct comm *c, int ranks, const char *dir) {
    char path[128];
    comm_barrier(c);
    for (int rank = 0; c->rank == 0 && rank < ranks; rank++) {
        snprintf(path, sizeof path, "%s/rank%04d.ckpt", dir, rank);
        unlink(path);
    }
    if (c->rank == 0) assert_int_equal(rmdir(dir), 0);
}

/* -- the run ------------------------------------------------------------------------------------------------------- */

static struct run run;
static struct net net;
static struct slice carry_slice[2], state_slice = {.name = "bn.running_var", .size = STATES};

static float *on_device(size_t n) {
    float *array = net.arena.device->alloc(n * sizeof *array, "an array of the test");
    net.arena.device->zero(array, n * sizeof *array);
    return array;
}

static void open_run(struct comm *c, int was, enum resume_residuals how, bool drifts) {
    struct arena *a = &net.arena;
    const size_t batch = STREAMS / (size_t)c->size;
    memset(&run, 0, sizeof run);
    a->device = test_device();
    run.comm = c;
    run.model.net = &net;
    run.model.n = a->n = N;
    a->param = on_device(N);
    a->n_state = STATES, a->state = on_device(STATES);
    a->state_slice = &state_slice, a->state_slices = 1;
    a->n_carry = 2 * FEATURES * batch, a->carry = on_device(a->n_carry);
    a->carry_slice = carry_slice, a->carry_slices = 2;
    for (size_t s = 0; s < 2; s++)
        carry_slice[s] = (struct slice){
            .offset = s * FEATURES * batch, .size = FEATURES * batch, .dims = 2, .dim = {batch, FEATURES}};
    TABLE_FIND(optimisers, "adam", run.model.optimiser.ops);
    run.model.optimiser.device = a->device;
    run.model.optimiser.n_state = MOMENTS, run.model.optimiser.state = on_device(MOMENTS);
    run.options.batch = (int64_t)batch;
    run.options.resume_residuals = (int)how;
    run.options.momentum_correction = true;
    run.path.reducer.keeps = true;
    run.replicas.drifts = drifts;
    run.resize = (struct resize){.ranks = was, .batch = STREAMS / was, .other_ranks = true};
    store_open(&run.path.reducer.store, N, a->device);
    correction_open(&run.path.correction, N, a->device, 0.9f, false);
}

static void close_run(void) {
    struct arena *a = &net.arena;
    a->device->release(a->param);
    a->device->release(a->state);
    a->device->release(a->carry);
    a->device->release(run.model.optimiser.state);
    store_close(&run.path.reducer.store);
    correction_close(&run.path.correction);
}

static bool take(int was, const char *dir, struct err *e) {
    struct checkpoint from = {.use = &checkpoint_resume};
    const struct position model = position_of(was, 0);
    const struct written none = {0};
    snprintf(from.path, sizeof from.path, "%s", dir);
    snprintf(from.run_dir, sizeof from.run_dir, "%s", dir);
    return checkpoint_reshare(&run, &from, &model, &none, e);
}

/* -- what comes out ------------------------------------------------------------------------------------------------ */

/* Over the ranks now: P sum' = Q sum of what they were, or sum' = sum, or nothing. */
static void check_share(struct comm *c, int P, enum resume_residuals how, int purpose, struct store *s) {
    static float v[N];
    double sum[N];
    s->ops->read(s, 0, N, v);
    for (size_t i = 0; i < N; i++) sum[i] = (double)v[i];
    comm_allreduce_f64(c, sum, N, COMM_SUM);
    for (size_t i = 0; i < N; i++) {
        double before = 0;
        for (int p = 0; p < P; p++) before += (double)number(purpose, p, i);
        if (how == RESIDUALS_MEAN) assert_true(P * sum[i] == c->size * before);
        if (how == RESIDUALS_SUM) assert_true(sum[i] == before);
        if (how == RESIDUALS_RESET) assert_true(v[i] == 0);
    }
}

static void check_streams(struct comm *c) {
    const size_t batch = STREAMS / (size_t)c->size;
    float *carry = device_copy_to_host(net.arena.device, net.arena.carry, net.arena.n_carry, "a copy");
    for (size_t s = 0; s < 2; s++)
        for (size_t b = 0; b < batch; b++)
            for (size_t f = 0; f < FEATURES; f++)
                assert_true(carry[(s * batch + b) * FEATURES + f] == stream(s, (size_t)c->rank * batch + b, f));
    mem_free(carry);
}

/* drifts: the averages of all ranks; else parameters and optimiser are left alone. */
static void check_averages(int P, bool drifts) {
    const struct device_ops *d = net.arena.device;
    float *state = device_copy_to_host(d, net.arena.state, STATES, "a copy"),
          *param = device_copy_to_host(d, net.arena.param, N, "a copy"),
          *moments = device_copy_to_host(d, run.model.optimiser.state, MOMENTS, "a copy");
    for (size_t i = 0; i < MOMENTS; i++) {
        double sums[3] = {0};
        for (int p = 0; p < P; p++) {
            sums[0] += (double)fabsf(number(STATE, p, i));
            sums[1] += (double)number(PARAM, p, i);
            sums[2] += (double)moment(p, i);
        }
        if (i < STATES) assert_true((double)state[i] * P == sums[0]);
        if (i < N) assert_true((double)param[i] * P == (drifts ? sums[1] : 0));
        assert_true((double)moments[i] * P == (drifts ? sums[2] : 0));
    }
    mem_free(state);
    mem_free(param);
    mem_free(moments);
}

static void from_any_to_here(struct comm *c) {
    for (int i = 0; i < SIZES; i++) {
        char dir[64];
        write_files(c, sizes[i], dir);
        for (int how = RESIDUALS_MEAN; how <= RESIDUALS_RESET; how++) {
            struct err e = {0};
            const bool drifts = how == RESIDUALS_SUM;
            open_run(c, sizes[i], (enum resume_residuals)how, drifts);
            if (!take(sizes[i], dir, &e)) fail_msg("%s", e.text);
            check_share(c, sizes[i], (enum resume_residuals)how, RESIDUAL, &run.path.reducer.store);
            check_share(c, sizes[i], (enum resume_residuals)how, VELOCITY, &run.path.correction.velocity);
            check_streams(c);
            check_averages(sizes[i], drifts);
            close_run();
        }
        remove_files(c, sizes[i], dir);
    }
}

/* A text that is cut otherwise begins with states of 0. */
static void other_streams(struct comm *c) {
    char dir[64];
    struct err e = {0};
    write_files(c, 2, dir);
    open_run(c, 2, RESIDUALS_MEAN, false);
    run.resize.other_batch = true;
    assert_true(take(2, dir, &e));
    float *carry = device_copy_to_host(net.arena.device, net.arena.carry, net.arena.n_carry, "a copy");
    for (size_t i = 0; i < net.arena.n_carry; i++) assert_true(carry[i] == 0);
    mem_free(carry);
    close_run();
    remove_files(c, 2, dir);
}

static void refused(struct comm *c, const char *dir, const char *what) {
    struct err e = {0};
    open_run(c, 3, RESIDUALS_MEAN, true);
    assert_false(take(3, dir, &e));
    if (!strstr(e.text, what)) fail_msg("\"%s\" does not say \"%s\"", e.text, what);
    close_run();
}

/* Whatever is wrong with any of the files, all ranks say so. */
static void damage(struct comm *c) {
    char dir[64], path[128];
    for (int rank = 0; rank < 3; rank++) {
        char name[32];
        write_files(c, 3, dir);
        snprintf(name, sizeof name, "rank%04d.ckpt", rank);
        snprintf(path, sizeof path, "%s/%s", dir, name);
        if (c->rank == 0) assert_int_equal(truncate(path, 5000), 0);
        comm_barrier(c);
        refused(c, dir, name);
        if (c->rank == 0) unlink(path);
        comm_barrier(c);
        refused(c, dir, name);
        if (c->rank == 0) write_rank(dir, 4, rank); /* of a run on four */
        comm_barrier(c);
        refused(c, dir, "belongs to another run or step");
        remove_files(c, 3, dir);
    }
}

int main(int argc, char **argv) {
    static const struct mpi_case cases[] = {
        {"from_any_to_here", from_any_to_here},
        {"other_streams", other_streams},
        {"damage", damage},
    };
    test_device();
    return mpi_test_main(argc, argv, "cli_reshare", cases, sizeof cases / sizeof *cases);
}
