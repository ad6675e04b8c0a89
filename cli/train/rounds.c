/* rounds.c: see rounds.h. */
#include "cli/train/rounds.h"

#include "base/mem.h"
#include "cli/train/finite.h"

void rounds_open(struct run *r) {
    const size_t n = r->model.n;
    if (!r->path.local.ops) return;
    r->rounds.param = mem_alloc(n, sizeof(float), "the parameters of the last round");
    if (r->options.outer.momentum > 0) r->rounds.velocity = mem_zalloc(n, sizeof(float), "the outer velocity");
}

void rounds_begin(struct run *r) {
    const struct arena *a = &r->model.net->arena;
    if (r->rounds.param) a->device->to_host(r->rounds.param, a->param, r->model.n * sizeof(float));
}

void rounds_close(struct run *r) {
    mem_free(r->rounds.velocity);
    mem_free(r->rounds.param);
    r->rounds = (struct rounds){0};
}

float *rounds_saved(struct run *r, size_t i, const char **name) {
    static const char *const names[] = {"round parameters", "outer velocity", NULL};
    float *const arrays[] = {r->rounds.param, r->rounds.velocity, NULL};
    *name = names[i];
    return arrays[i];
}

/* The exchange takes the gradient's memory on the device, which the optimiser is done with. */
static void average(struct run *r, float *delta) {
    const struct arena *a = &r->model.net->arena;
    struct exchange *x = &r->path.reducer.exchange;
    a->device->to_device(a->grad, delta, r->model.n * sizeof *delta);
    if (!exchange_run(x, a->grad, r->model.n, &r->now.sum))
        not_finite_after(r, "the sum of the outer gradients", r->now.sum.bad);
    exchange_mean(x, &r->now.sum, a->grad);
    a->device->to_host(delta, a->grad, r->model.n * sizeof *delta);
}

void run_round(struct run *r) {
    const struct arena *a = &r->model.net->arena;
    const size_t n = r->model.n;
    enum phase phase = phase_enter(&r->phases, PHASE_UPDATE);
    float *delta = device_copy_to_host(a->device, a->param, n, "the outer gradient");
    outer_gradient(r->rounds.param, delta, n, delta);
    average(r, delta);
    size_t bad = outer_step(&r->options.outer, delta, n, r->rounds.velocity, r->rounds.param);
    if (bad < n) not_finite_after(r, "the new value of a parameter", bad);
    a->device->to_device(a->param, r->rounds.param, n * sizeof *delta);
    mem_free(delta);
    r->replicas.averaged_at = r->step;
    phase_enter(&r->phases, phase);
}
