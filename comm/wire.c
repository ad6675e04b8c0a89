/* wire.c: what all formats share, and their table, see wire.h. */
#include "comm/wire.h"

#define WIRE(name) extern const struct wire_ops wire_##name;
#include "comm/wires.def"
#undef WIRE
#define WIRE(name) &wire_##name,
const struct wire_ops *const wires[] = {
#include "comm/wires.def"
    NULL};

void wire_round(const struct wire_ops *w, struct sparse *s, struct sparse *error) {
    if (error) error->nnz = 0;
    if (!w->rounds) return;
    for (size_t i = 0; i < s->nnz; i++) {
        float value = s->val[i], rounded = w->round(value);
        s->val[i] = rounded;
        if (!error || rounded == value) continue;
        error->idx[error->nnz] = s->idx[i];
        error->val[error->nnz++] = value - rounded;
    }
}

void wire_read(const struct wire_ops *w, void *message, size_t bytes, size_t from, size_t to, int sender,
               struct sparse *buffer, struct sparse *view) {
    struct err e = {0};
    if (!w->decode(message, bytes, from, to, buffer, view, &e))
        die("rank %d sent a message that is not %s: %s", sender, w->name, e.text);
}
