/* host_stage.c: see host_stage.h. */
#include "comm/transport/host_stage.h"

#include "base/mem.h"
#include "topk/finite.h"

/* Chosen by reasoning, not yet measured on a GPU: long enough that the start-up times of a copy and an allreduce do
 * not matter, short enough that the two copies which nothing hides, the first down and the last up, are a small part
 * of a long gradient. */
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

size_t host_stage_nonfinite_own(const struct host_stage *s, struct exchange *x, const float *v, size_t n) {
    PHASE_SCOPE(x->setup.phases, PHASE_SELECT);
    return host_stage_nonfinite(s, v, n);
}

/* -- copies ---------------------------------------------------------------------------------------------------- */
uint32_t host_stage_down(const struct host_stage *s, struct exchange *x, const float *grad, size_t from, size_t count) {
    if (!s->device) return 0;
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    return s->device->to_host_begin(s->memory + from, grad + from, count * sizeof *grad);
}

uint32_t host_stage_up(const struct host_stage *s, struct exchange *x, float *grad, size_t from, size_t count) {
    if (!s->device) return 0;
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    return s->device->to_device_begin(grad + from, s->memory + from, count * sizeof *grad);
}

void host_stage_wait(const struct host_stage *s, struct exchange *x, uint32_t copy) {
    if (!s->device) return;
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    s->device->wait(copy);
}

void host_stage_put(const struct host_stage *s, struct exchange *x, float *there, const float *host, size_t count) {
    if (!s->device) return;
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    s->device->to_device(there, host, count * sizeof *host);
}

void host_stage_settle(const struct host_stage *s, struct exchange *x) {
    if (!s->store || s->memory) return;
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    s->store->device->sync();
}

/* -- chunks: entries [i CHUNK, (i + 1) CHUNK), the last one shorter; all in one where nothing is copied ------------ */
struct chunks {
    const struct host_stage *stage;
    struct exchange *x;
    float *grad, *host; /* [n] the gradient, where it is summed */
    size_t n, each, count;
};

static struct chunks chunks_of(const struct host_stage *s, struct exchange *x, float *grad) {
    struct chunks c = {.stage = s, .x = x, .grad = grad, .n = x->setup.n};
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
    return host_stage_down(c->stage, c->x, c->grad, chunk_from(c, i), chunk_size(c, i));
}

/* Waits for chunk i, whose copy has begun, and begins the next one's. */
static void take_chunk(const struct chunks *c, size_t i, uint32_t *down) {
    host_stage_wait(c->stage, c->x, *down);
    if (i + 1 < c->count) *down = begin_down(c, i + 1);
}

/* Begins chunk i's way back, after that of the chunk before it has ended. */
static void give_chunk(const struct chunks *c, size_t i, uint32_t *up) {
    if (i > 0) host_stage_wait(c->stage, c->x, *up);
    *up = host_stage_up(c->stage, c->x, c->grad, chunk_from(c, i), chunk_size(c, i));
}

/* Waits for the copies still under way: down, chunk `taken`; up, chunk `given`. */
static void end_copies(const struct chunks *c, size_t taken, uint32_t down, size_t given, uint32_t up) {
    if (taken < c->count) host_stage_wait(c->stage, c->x, down);
    if (given > 0) host_stage_wait(c->stage, c->x, up);
}

/* The first entry of chunk i that is not finite, in *bad; false where there is one. own: nothing was added yet. */
static bool chunk_finite(const struct chunks *c, size_t i, bool own, size_t *bad) {
    size_t from = chunk_from(c, i), count = chunk_size(c, i);
    const float *v = c->host + from;
    size_t at = own ? host_stage_nonfinite_own(c->stage, c->x, v, count) : host_stage_nonfinite(c->stage, v, count);
    *bad = at < count ? from + at : c->n;
    return at == count;
}

size_t host_stage_fetch(const struct host_stage *s, struct exchange *x, const float *grad) {
    struct chunks c = chunks_of(s, x, (float *)grad); /* it is read only */
    size_t bad = c.n, i = 0;
    uint32_t down = begin_down(&c, 0);
    for (bool good = true; good && i < c.count; i++) {
        take_chunk(&c, i, &down);
        good = chunk_finite(&c, i, true, &bad);
    }
    end_copies(&c, i, down, 0, 0);
    return bad;
}

size_t host_stage_put_back(const struct host_stage *s, struct exchange *x, float *grad) {
    struct chunks c = chunks_of(s, x, grad);
    size_t bad = c.n, given = 0;
    uint32_t up = 0;
    for (; given < c.count && chunk_finite(&c, given, false, &bad); given++) give_chunk(&c, given, &up);
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
    add(x, host_stage_at(s, grad), x->setup.n);
    return dense_sum(x, grad, host_stage_put_back(s, x, grad), sum);
}

bool host_stage_sum_parts(const struct host_stage *s, struct exchange *x, float *grad,
                          void (*add)(struct exchange *x, float *host, size_t count), struct exchange_sum *sum) {
    struct chunks c = chunks_of(s, x, grad);
    size_t bad = c.n, taken = 0, given = 0;
    uint32_t up = 0;
    host_stage_settle(s, x);
    uint32_t down = begin_down(&c, 0);
    while (given < c.count) {
        take_chunk(&c, taken, &down);
        if (!chunk_finite(&c, taken++, true, &bad)) break;
        add(x, c.host + chunk_from(&c, given), chunk_size(&c, given));
        if (!chunk_finite(&c, given, false, &bad)) break;
        give_chunk(&c, given++, &up);
    }
    end_copies(&c, taken, down, given, up);
    return dense_sum(x, grad, bad, sum);
}
