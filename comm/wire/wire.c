/* wire.c: what all formats share, and their table, see wire.h. */
#include "comm/wire/wire.h"

#include "base/table.h"
#include "comm/wire/bf16.h"

#define WIRE(name) extern const struct wire_ops wire_##name;
#include "comm/wire/wires.def"
#undef WIRE
#define WIRE(name) &wire_##name,
const struct wire_ops *const wires[] = {
#include "comm/wire/wires.def"
    NULL};

const char *wire_name(size_t i) {
    const struct wire_ops *row;
    TABLE_AT(wires, i, row);
    return row ? row->name : NULL;
}

double wire_entry_bytes(const struct wire_ops *w, double density) {
    const double entries = 1 << 20;
    return w->expected_bytes(entries, density) / entries;
}

/* Behind the end of error lie what was cut off entries of these indices, [count]: those that are not 0 become part of
 * it. */
static void keep_changed(struct sparse *error, const uint32_t *idx, size_t count) {
    uint32_t *at = error->idx + error->nnz, changed = 0;
    float *cut = error->val + error->nnz;
    for (size_t i = 0; i < count; i++) changed += cut[i] != 0;
    error->nnz += changed;
    if (changed == count) { /* nearly always so with real gradients */
        memcpy(at, idx, count * sizeof *idx);
        return;
    }
    for (size_t i = 0, to = 0; to < changed; i++) {
        if (cut[i] == 0) continue;
        at[to] = idx[i];
        cut[to++] = cut[i];
    }
}

void wire_round(const struct wire_ops *w, struct sparse *s, struct sparse *error) {
    enum { PART = 256 };
    float unwanted[PART];
    if (error) error->nnz = 0;
    if (!w->rounds) return;
    for (size_t at = 0; at < s->nnz; at += PART) {
        size_t count = s->nnz - at < PART ? s->nnz - at : PART;
        if (!error) {
            w->round_all(s->val + at, count, unwanted);
            continue;
        }
        w->round_all(s->val + at, count, error->val + error->nnz);
        keep_changed(error, s->idx + at, count);
    }
}

void wire_values_write(const struct wire_ops *w, const float *val, size_t count, void *message) {
    if (w->value_bytes == sizeof(float))
        memcpy(message, val, count * sizeof *val);
    else if (w->pack)
        w->pack(val, count, message);
    else
        bf16_write(val, count, message);
}

void wire_values_read(const struct wire_ops *w, const void *message, size_t count, float *val) {
    if (w->value_bytes == sizeof(float))
        memcpy(val, message, count * sizeof *val);
    else if (w->unpack)
        w->unpack(message, count, val);
    else
        bf16_read(message, count, val);
}

void wire_values_add(const struct wire_ops *w, const void *message, size_t count, float *val) {
    enum { PART = 256 };
    float came[PART];
    for (size_t at = 0; at < count; at += PART) {
        size_t some = count - at < PART ? count - at : PART;
        wire_values_read(w, (const unsigned char *)message + at * w->value_bytes, some, came);
        for (size_t i = 0; i < some; i++) val[at + i] += came[i];
    }
}

void wire_read(const struct wire_ops *w, void *message, size_t bytes, size_t from, size_t to, int sender,
               struct sparse *buffer, struct sparse *view) {
    struct err e = {0};
    if (!w->decode(message, bytes, from, to, buffer, view, &e))
        die("rank %d sent a message that is not %s: %s", sender, w->name, e.text);
}
