/* evaluate.c: an evaluation, sharded over all ranks (cli/task has what that is). Published code tests rank 0's replica
 * with rank 0's batch-norm statistics; here the statistics are averaged over the ranks first. A running mean is linear
 * in what it has seen, so averaging the running means is the running mean of the averages: putting the average back
 * changes nothing but rounding. Where the replicas drift apart, what is tested is the average of their parameters;
 * training goes on with each rank's own. */
#include "base/hash.h"
#include "base/mem.h"
#include "cli/observe/watching.h"
#include "cli/signals.h"
#include "cli/train/run.h"

/* Do all ranks hold the same bits? */
static bool same_everywhere(struct comm *c, const float *value, size_t n) {
    uint64_t low = hash64(0, value, n * sizeof *value), high = low;
    comm_allreduce_u64(c, &low, 1, COMM_MIN);
    comm_allreduce_u64(c, &high, 1, COMM_MAX);
    return low == high;
}

static float *statistics(const struct run *r) {
    const struct arena *a = &r->model.net->arena;
    return device_copy_to_host(a->device, a->state, a->n_state, "the batch-norm statistics");
}

static void put_statistics(struct run *r, const float *state) {
    const struct arena *a = &r->model.net->arena;
    a->device->to_device(a->state, state, a->n_state * sizeof *state);
}

/* What is an average already stays as it is, to the bit: so a checkpoint that was written after an evaluation gives
 * that evaluation again. */
static void average_state(struct run *r) {
    const size_t n = r->model.net->arena.n_state;
    if (r->comm->size == 1 || n == 0) return;
    float *state = statistics(r);
    if (!same_everywhere(r->comm, state, n)) {
        comm_allreduce_f32(r->comm, state, n, COMM_SUM);
        for (size_t i = 0; i < n; i++) state[i] /= (float)r->comm->size;
        put_statistics(r, state);
    }
    mem_free(state);
}

bool run_evaluate(struct run *r, bool keep, struct scores *scores) {
    watching_enter(r, ACTIVITY_EVALUATION, r->step);
    float *own = run_average_begin(r), *state = keep || r->eval_stops ? statistics(r) : NULL;
    uint64_t caught = 0;
    average_state(r);
    r->data.task->score(r, scores);
    run_average_end(r, own);
    if (r->eval_stops) {
        caught = signals_caught() != 0;
        comm_allreduce_u64(r->comm, &caught, 1, COMM_MAX);
    }
    if (keep || caught) put_statistics(r, state);
    mem_free(state);
    return !caught;
}
