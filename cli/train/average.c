/* average.c: the average of the parameters over the ranks, for runs whose replicas drift apart: local-gradient
 * combination (Aji, Heafield and Bogoychev, EMNLP 2019) and fedavg. The sum is MPI's, the same on every rank. Where
 * nodes drift, all of which have as many ranks, the average over the ranks is that over the nodes. */
#include <string.h>

#include "base/mem.h"
#include "cli/train/run.h"

/* Every rank's parameters, on the host, to their average. */
static void average(struct run *r, float *param) {
    float scale = 1.0f / (float)r->comm->size;
    comm_allreduce_f32(r->comm, param, r->model.n, COMM_SUM);
    for (size_t i = 0; i < r->model.n; i++) param[i] *= scale;
}

static float *parameters(const struct run *r) {
    const struct arena *a = &r->model.net->arena;
    return device_copy_to_host(a->device, a->param, r->model.n, "a copy of the parameters");
}

static void put(struct run *r, const float *param) {
    const struct arena *a = &r->model.net->arena;
    a->device->to_device(a->param, param, r->model.n * sizeof *param);
}

void run_average(struct run *r) {
    enum traffic traffic = r->comm->traffic;
    enum phase phase = phase_enter(&r->phases, PHASE_COMMUNICATE);
    float *param = parameters(r);
    r->comm->traffic = TRAFFIC_EXCHANGE;
    average(r, param);
    r->comm->traffic = traffic;
    put(r, param);
    mem_free(param);
    r->replicas.averaged_at = r->step;
    if (r->now.exchange->ops->drifts) r->now.sum.local_nnz = r->now.sum.global_nnz = r->model.n; /* all that it sends */
    phase_enter(&r->phases, phase);
}

float *run_average_begin(struct run *r) {
    if (!r->replicas.drifts || r->replicas.averaged_at == r->step) return NULL;
    float *own = parameters(r), *mean = parameters(r);
    average(r, mean);
    put(r, mean);
    mem_free(mean);
    return own;
}

void run_average_end(struct run *r, float *own) {
    if (own) put(r, own);
    mem_free(own);
}
