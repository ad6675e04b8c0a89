/* wire.c: see wire.h. What comes from another process is checked before it is used as indices: a rank of another
 * version, or a message of another step, must not turn into a write outside the gradient. */
#include "comm/wire.h"

#include "base/error.h"

enum { ENTRY = sizeof(uint32_t) + sizeof(float) };

size_t wire_bytes(size_t nnz) {
    return ENTRY * nnz;
}

void wire_pack(const struct sparse *s, void *message) {
    if (s->nnz == 0) return;
    memcpy(message, s->idx, s->nnz * sizeof *s->idx);
    memcpy((uint32_t *)message + s->nnz, s->val, s->nnz * sizeof *s->val);
}

void wire_view(void *message, size_t bytes, size_t n, int sender, struct sparse *view) {
    size_t nnz = bytes / ENTRY;
    if (bytes % ENTRY != 0)
        die("rank %d sent %zu bytes, which is no whole number of %d-byte entries", sender, bytes, (int)ENTRY);
    uint32_t *idx = message;
    *view = (struct sparse){.idx = idx, .val = (float *)(void *)(idx + nnz), .nnz = nnz, .cap = nnz};
    if (!sparse_valid(view, n))
        die("rank %d sent a sparse vector whose indices do not increase or reach n = %zu", sender, n);
}
