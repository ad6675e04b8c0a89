/* evaluate.c: the test set, sharded over all ranks. Published code tests rank 0's replica with rank 0's batch-norm
 * statistics; here the statistics are averaged over the ranks first. A running mean is linear in what it has seen, so
 * averaging the running means is the running mean of the averages: putting the average back changes nothing but
 * rounding. Where the replicas drift apart, what is tested is the average of their parameters; training goes on with
 * each rank's own. */
#include "base/mem.h"
#include "cli/run.h"

static void average_state(struct run *r) {
    const struct arena *a = &r->net->arena;
    if (r->comm->size == 1 || a->n_state == 0) return;
    float *state = device_copy_to_host(a->device, a->state, a->n_state, "the batch-norm statistics");
    comm_allreduce_f32(r->comm, state, a->n_state, COMM_SUM);
    for (size_t i = 0; i < a->n_state; i++) state[i] /= (float)r->comm->size;
    a->device->to_device(a->state, state, a->n_state * sizeof *state);
    mem_free(state);
}

void run_evaluate(struct run *r, double *loss, double *accuracy) {
    const struct net_setup *s = &r->net->setup;
    size_t batch = (size_t)s->batch, image = (size_t)s->channels * (size_t)s->height * (size_t)s->width, from, to;
    float *x = mem_pinned_alloc(batch * image, sizeof *x, "a test batch");
    int32_t *y = mem_pinned_alloc(batch, sizeof *y, "the labels of a test batch");
    double sum[3] = {0, 0, 0}; /* loss, correct, images */
    float *own = run_average_begin(r);
    average_state(r);
    loader_share(r->data.test.count, r->comm->rank, r->comm->size, &from, &to);
    for (; from < to; from += batch) {
        int valid = (int)(to - from < batch ? to - from : batch);
        struct net_result result;
        loader_fill_test(&r->data, from, valid, s->batch, x, y);
        net_evaluate(r->net, x, y, valid, &result);
        sum[0] += result.loss;
        sum[1] += result.correct;
        sum[2] += result.count;
    }
    comm_allreduce_f64(r->comm, sum, 3, COMM_SUM);
    *loss = sum[0] / sum[2];
    *accuracy = sum[1] / sum[2];
    run_average_end(r, own);
    mem_pinned_free(x);
    mem_pinned_free(y);
}
