/* host_stage.c: see host_stage.h. */
#include "comm/host_stage.h"

#include "base/mem.h"
#include "topk/finite.h"

/* By reasoning, not yet by measurement on a GPU: long enough that neither a copy's nor an allreduce's start-up counts,
 * short enough that what nothing hides, the first chunk down and the last one up, is little of a long gradient. */
enum { CHUNK = 1 << 20 }; /* floats */

void host_stage_open(struct host_stage *s, const struct exchange_setup *setup, bool by_mpi) {
    *s = (struct host_stage){0};
    if (!setup->store || device_is_host(setup->store->device)) return;
    s->store = setup->store;
    const struct device_ops *device = setup->store->device;
    if (by_mpi && (setup->comm->size == 1 || (setup->comm->device_pointers && !device->no_arrays))) return;
    s->device = device;
    s->memory = mem_pinned_alloc(setup->n, sizeof *s->memory, "the gradient on its way from the device");
}

void host_stage_close(struct host_stage *s) {
    mem_pinned_free(s->memory);
    *s = (struct host_stage){0};
}

float *host_stage_at(const struct host_stage *s, float *grad) {
    return s->memory ? s->memory : grad;
}

size_t host_stage_nonfinite(const struct host_stage *s, const float *v, size_t n) {
    if (s->store && !s->memory) return s->store->ops->first_nonfinite(s->store, v, n);
    return first_nonfinite(v, n);
}

/* -- chunks: entries [i CHUNK, (i + 1) CHUNK), the last one shorter; all in one where nothing is copied --------------
 */
struct chunks {
    const struct host_stage *stage;
    struct phases *phases;
    float *grad, *host; /* [n] the gradient, where it is summed */
    size_t n, each, count;
};

static struct chunks chunks_of(const struct host_stage *s, const struct exchange *x, float *grad) {
    struct chunks c = {.stage = s, .phases = x->setup.phases, .grad = grad, .n = x->setup.n};
    c.host = host_stage_at(s, grad);
    c.each = s->memory ? CHUNK : c.n;
    c.count = (c.n + c.each - 1) / c.each;
    return c;
}

static size_t chunk_from(const struct chunks *c, size_t i) {
    return i * c->each;
}
static size_t chunk_size(const struct chunks *c, size_t i) {
    return i + 1 < c->count ? c->each : c->n - i * c->each;
}

static uint32_t begin_down(const struct chunks *c, size_t i) {
    size_t from = chunk_from(c, i);
    return c->stage->device->to_host_begin(c->host + from, c->grad + from, chunk_size(c, i) * sizeof *c->host);
}
static uint32_t begin_up(const struct chunks *c, size_t i) {
    size_t from = chunk_from(c, i);
    return c->stage->device->to_device_begin(c->grad + from, c->host + from, chunk_size(c, i) * sizeof *c->host);
}

/* Waits for chunk i, whose copy has begun, and begins the next one's. */
static void take_chunk(const struct chunks *c, size_t i, uint32_t *down) {
    phase_enter(c->phases, PHASE_PACK);
    if (!c->stage->device) return;
    c->stage->device->wait(*down);
    if (i + 1 < c->count) *down = begin_down(c, i + 1);
}

/* Begins chunk i's way back, after that of the chunk before it has ended. */
static void give_chunk(const struct chunks *c, size_t i, uint32_t *up) {
    phase_enter(c->phases, PHASE_PACK);
    if (!c->stage->device) return;
    if (i > 0) c->stage->device->wait(*up);
    *up = begin_up(c, i);
}

/* Of the copies that began with chunks up to `taken` coming and up to `given` going, the last ones are waited for. */
static void end_copies(const struct chunks *c, size_t taken, uint32_t down, size_t given, uint32_t up) {
    phase_enter(c->phases, PHASE_PACK);
    if (!c->stage->device) return;
    if (taken < c->count) c->stage->device->wait(down);
    if (given > 0) c->stage->device->wait(up);
}

/* The first entry of chunk i that is not finite, in *bad; false where there is one. */
static bool chunk_finite(const struct chunks *c, size_t i, enum phase phase, size_t *bad) {
    size_t from = chunk_from(c, i), count = chunk_size(c, i);
    phase_enter(c->phases, phase);
    size_t at = host_stage_nonfinite(c->stage, c->host + from, count);
    *bad = at < count ? from + at : c->n;
    return at == count;
}

size_t host_stage_fetch(const struct host_stage *s, struct exchange *x, const float *grad) {
    struct chunks c = chunks_of(s, x, (float *)grad); /* it is read only */
    size_t bad = c.n, i = 0;
    phase_enter(c.phases, PHASE_PACK);
    uint32_t down = s->device ? begin_down(&c, 0) : 0;
    for (bool good = true; good && i < c.count; i++) {
        take_chunk(&c, i, &down);
        good = chunk_finite(&c, i, PHASE_SELECT, &bad);
    }
    end_copies(&c, i, down, 0, 0);
    return bad;
}

size_t host_stage_put_back(const struct host_stage *s, struct exchange *x, float *grad) {
    struct chunks c = chunks_of(s, x, grad);
    size_t bad = c.n, given = 0;
    uint32_t up = 0;
    for (; given < c.count && chunk_finite(&c, given, PHASE_MERGE, &bad); given++) give_chunk(&c, given, &up);
    end_copies(&c, c.count, 0, given, up);
    return bad;
}

static bool dense_sum(const struct exchange *x, float *grad, size_t bad, struct exchange_sum *sum) {
    sum->bad = bad;
    if (bad < x->setup.n) return false;
    sum->dense = grad;
    sum->local_nnz = sum->global_nnz = x->setup.n;
    return true;
}

bool host_stage_sum(const struct host_stage *s, struct exchange *x, float *grad,
                    void (*add)(struct exchange *x, float *host, size_t count), struct exchange_sum *sum) {
    size_t bad = host_stage_fetch(s, x, grad);
    if (bad < x->setup.n) return dense_sum(x, grad, bad, sum);
    phase_enter(x->setup.phases, PHASE_COMMUNICATE);
    add(x, host_stage_at(s, grad), x->setup.n);
    return dense_sum(x, grad, host_stage_put_back(s, x, grad), sum);
}

bool host_stage_sum_parts(const struct host_stage *s, struct exchange *x, float *grad,
                          void (*add)(struct exchange *x, float *host, size_t count), struct exchange_sum *sum) {
    struct chunks c = chunks_of(s, x, grad);
    size_t bad = c.n, taken = 0, given = 0;
    uint32_t up = 0;
    phase_enter(c.phases, PHASE_PACK);
    if (s->store && !s->memory) s->store->device->sync(); /* MPI does not wait for the device */
    uint32_t down = s->device ? begin_down(&c, 0) : 0;
    while (given < c.count) {
        take_chunk(&c, taken, &down);
        if (!chunk_finite(&c, taken++, PHASE_SELECT, &bad)) break;
        phase_enter(c.phases, PHASE_COMMUNICATE);
        add(x, c.host + chunk_from(&c, given), chunk_size(&c, given));
        if (!chunk_finite(&c, given, PHASE_MERGE, &bad)) break;
        give_chunk(&c, given++, &up);
    }
    end_copies(&c, taken, down, given, up);
    return dense_sum(x, grad, bad, sum);
}
