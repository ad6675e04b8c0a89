/* host_stage.c: see host_stage.h. */
#include "comm/host_stage.h"

#include "base/mem.h"
#include "topk/finite.h"

void host_stage_open(struct host_stage *s, const struct exchange_setup *setup) {
    *s = (struct host_stage){0};
    if (!setup->store || device_is_host(setup->store->device)) return;
    s->device = setup->store->device;
    s->memory = mem_alloc(setup->n, sizeof *s->memory, "the gradient on its way from the device");
}

void host_stage_close(struct host_stage *s) {
    mem_free(s->memory);
    *s = (struct host_stage){0};
}

float *host_stage_at(const struct host_stage *s, float *grad) {
    return s->device ? s->memory : grad;
}

void host_stage_in(const struct host_stage *s, const float *grad, size_t from, size_t count) {
    if (s->device) s->device->to_host(s->memory + from, grad + from, count * sizeof *grad);
}

void host_stage_out(const struct host_stage *s, float *grad, size_t from, size_t count) {
    if (s->device) s->device->to_device(grad + from, s->memory + from, count * sizeof *grad);
}

static bool all_finite(const float *v, size_t n, size_t *bad) {
    *bad = first_nonfinite(v, n);
    return *bad == n;
}

bool host_stage_sum(const struct host_stage *s, struct exchange *x, float *grad,
                    void (*add)(struct exchange *x, float *host), struct exchange_sum *sum) {
    size_t n = x->setup.n;
    float *host = host_stage_at(s, grad);
    phase_enter(x->setup.phases, PHASE_PACK);
    host_stage_in(s, grad, 0, n);
    phase_enter(x->setup.phases, PHASE_SELECT);
    if (!all_finite(host, n, &sum->bad)) return false;
    phase_enter(x->setup.phases, PHASE_COMMUNICATE);
    add(x, host);
    phase_enter(x->setup.phases, PHASE_MERGE);
    if (!all_finite(host, n, &sum->bad)) return false;
    phase_enter(x->setup.phases, PHASE_PACK);
    host_stage_out(s, grad, 0, n);
    sum->dense = grad;
    sum->local_nnz = sum->global_nnz = n;
    return true;
}
