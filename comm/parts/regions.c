/* regions.c: see regions.h. */
#include "comm/parts/regions.h"

#include "base/mem.h"

/* A format may add up to a header and a block that is not full to every message: no format has blocks of more than
 * SHORT entries. outbox_next sees to it that nothing is written where this is wrong. */
size_t regions_room(const struct wire_ops *w, size_t entries, int messages) {
    enum { SHORT = 512 };
    return wire_capacity(w, entries) + (size_t)messages * wire_capacity(w, SHORT);
}

void outbox_open(struct outbox *box, size_t size) {
    *box = (struct outbox){.bytes = mem_alloc(1, size, "entries to send"), .size = size};
}

void outbox_close(struct outbox *box) {
    mem_free(box->bytes);
    *box = (struct outbox){0};
}

void *outbox_next(struct outbox *box, size_t bytes) {
    if (bytes > box->size - box->used)
        die("%zu bytes to send do not fit: %zu of %zu are used", bytes, box->used, box->size);
    return box->bytes + box->used;
}

void outbox_add(struct outbox *box, size_t bytes) {
    box->used += (bytes + 3) / 4 * 4;
}

#define ABSENT 0x7fedcba9u /* as the bits of a float */

void dense_write(struct exchange *x, const struct sparse *s, size_t from, size_t to, void *message) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    uint32_t *value = message;
    for (size_t i = 0; i < to - from; i++) value[i] = ABSENT;
    for (size_t i = 0; i < s->nnz; i++) memcpy(&value[s->idx[i] - from], &s->val[i], sizeof *value);
}

void dense_read(struct exchange *x, const void *message, size_t from, size_t to, int sender, struct sparse *s) {
    PHASE_SCOPE(x->setup.phases, PHASE_PACK);
    const uint32_t *value = message;
    size_t count = 0, at = s->nnz;
    for (size_t i = 0; i < to - from; i++) count += value[i] != ABSENT;
    if (count > s->cap - at) die("rank %d sent %zu entries where %zu fit", sender, count, s->cap - at);
    for (size_t i = 0; i < to - from; i++) {
        s->idx[at] = (uint32_t)(from + i); /* s has room for 16 more than cap */
        memcpy(&s->val[at], &value[i], sizeof *value);
        at += value[i] != ABSENT;
    }
    s->nnz = at;
}

size_t regions_append(struct exchange *x, void *message, size_t bytes, size_t from, size_t to, int sender,
                      struct sparse *u) {
    struct sparse tail = sparse_tail(u), part = {0};
    exchange_read(x, message, bytes, from, to, sender, &tail, &part);
    if (part.nnz == 0) return 0;
    if (part.nnz > tail.cap) die("rank %d sent %zu entries where %zu fit", sender, part.nnz, tail.cap);
    if (u->nnz > 0 && part.idx[0] <= u->idx[u->nnz - 1])
        die("rank %d sent index %u after index %u", sender, part.idx[0], u->idx[u->nnz - 1]);
    if (part.idx != tail.idx) memcpy(tail.idx, part.idx, part.nnz * sizeof *part.idx);
    if (part.val != tail.val) memcpy(tail.val, part.val, part.nnz * sizeof *part.val);
    u->nnz += part.nnz;
    return part.nnz;
}
