/* correction.c: momentum correction and momentum factor masking, see correction.h. */
#include "topk/correction.h"

#include "base/mem.h"

void correction_open(struct correction *c, size_t n, const struct device_ops *device, float mu, bool masking) {
    *c = (struct correction){.mu = mu, .masking = masking, .left = n};
    store_open(&c->velocity, n, device);
}

void correction_close(struct correction *c) {
    store_close(&c->velocity);
    mem_free(c->place);
    *c = (struct correction){0};
}

void correction_apply(struct correction *c, float *grad, size_t from, size_t to) {
    struct store part;
    if (to != c->left || from > to)
        die("momentum correction of entries %zu to %zu where those before %zu are next", from, to, c->left);
    store_view_open(&part, &c->velocity, from, to - from);
    part.ops->momentum(&part, grad + from, c->mu);
    store_view_close(&part);
    c->left = from > 0 ? from : c->velocity.n;
}

/* The indices of a that b has not, to c->place; returns how many. */
static size_t without(struct correction *c, const struct sparse *a, const struct sparse *b) {
    size_t kept = 0, at = 0;
    if (a->nnz > c->places) c->place = mem_grow(c->place, c->places, a->nnz, sizeof *c->place, "what was delivered");
    if (a->nnz > c->places) c->places = a->nnz;
    for (size_t i = 0; i < a->nnz; i++)
        if (!sparse_has_next(b, &at, a->idx[i])) c->place[kept++] = a->idx[i];
    return kept;
}

void correction_mask(struct correction *c, const struct sparse *delivered, const struct sparse *exempt) {
    if (!c->masking) return;
    if (!delivered) die("a velocity cannot be masked: the exchange does not say what this rank delivered");
    if (c->left != c->velocity.n) die("a velocity is masked while entries before %zu are not yet corrected", c->left);
    const size_t kept = exempt ? without(c, delivered, exempt) : delivered->nnz;
    c->velocity.ops->zero_at(&c->velocity, exempt ? c->place : delivered->idx, kept);
}
