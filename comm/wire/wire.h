/* wire.h: how a sparse vector travels: one file and one row in wires.def per format (--wire). A message holds the
 * entries of a vector whose indices lie in [from, to), a range that both sides know; its length is carried by the
 * transport.
 *
 *        wire_round(w, &s, &error);                         // s.val is now what the format can carry;
 *        store->ops->add_at(store, &error);                 // whoever rounds keeps the difference
 *        size_t bytes = w->encode(&s, from, to, message);   // message: [wire_capacity(w, cap)]
 *        comm_send(c, peer, tag, message, bytes);
 *
 *        size_t bytes = comm_recv(c, peer, tag, message, wire_capacity(w, k));
 *        wire_read(w, message, bytes, from, to, peer, &buffer, &view);     // view: into message or buffer
 *
 * A message is not trusted: a rank of another version, or a message of another step, must not turn into a write
 * outside the gradient. wire_read checks lengths, order and range and ends the job naming the sender.
 */
#ifndef ST_COMM_WIRE_H
#define ST_COMM_WIRE_H

#include "base/error.h"
#include "topk/sparse.h"

struct wire_ops {
    const char *name;    /* what --wire takes */
    const char *summary; /* one line for --help and `sparsetrain list` */
    const char *paper;
    bool rounds;   /* carries rounded values: wire_round before encode */
    bool in_place; /* decode needs no buffer: the view lies in the message */
    /* The same format for indices alone, where values travel apart: val is neither read nor set. NULL in such a row. */
    const struct wire_ops *indices;
    size_t value_bytes; /* of a value: 4, or 2, which is bf16 unless `pack` says else; 0 where indices travel alone */
    bool fixed;         /* the length follows from the number of entries: wire_capacity(w, nnz), to the byte */
    /* Most bytes of a message of nnz entries, whatever they are. Grows with nnz; a multiple of 4. */
    size_t (*capacity)(size_t nnz);
    /* For the cost model: bytes to expect of a message of so many entries at random places, of which an index is one
     * with probability `density`, in (0, 1]. entries: a mean, so any number >= 0; 0: no bytes. */
    double (*expected_bytes)(double entries, double density);
    /* s: indices in [from, to), as wire_round left it. message: 4-byte aligned. Returns the bytes. */
    size_t (*encode)(const struct sparse *s, size_t from, size_t to, void *message);
    /* view = the vector in this message; buffer (not in_place: sparse_open'd; else unused) may hold its arrays.
     * False: no message of this format for this range, or more entries than buffer->cap; *e says what is wrong.
     * Whatever the bytes are, nothing but buffer is written and nothing beyond the message read. message: 4-byte
     * aligned; it must stay as long as the view is used. */
    bool (*decode)(void *message, size_t bytes, size_t from, size_t to, struct sparse *buffer, struct sparse *view,
                   struct err *e);
    /* Rounds one value to what the format carries, never to an infinity; NULL where `rounds` is false. */
    float (*round)(float value);
    /* The same for many: error[i] = the old val[i] - the new one, exactly. val, error: [count]. */
    void (*round_all)(float *val, size_t count, float *error);
    /* Values without indices, 2 bytes each, as dense sums send them (comm/parts/coded_sum.h): to[i] stands for val[i],
     * which round_all has left, and back. [count]. NULL: such values travel as f32. */
    void (*pack)(const float *val, size_t count, uint16_t *to);
    void (*unpack)(const uint16_t *from, size_t count, float *val);
};

extern const struct wire_ops *const wires[]; /* every row, NULL-terminated; the first is coo32 */
const char *wire_name(size_t i);             /* the i-th row's, NULL past the end */

static inline size_t wire_capacity(const struct wire_ops *w, size_t nnz) {
    return w->capacity(nnz);
}

/* Bytes of an entry of a long message, see expected_bytes. */
double wire_entry_bytes(const struct wire_ops *w, double density);

/* Of coo32 and of the formats with 16-bit values: indices alone, 4 bytes each. */
extern const struct wire_ops wire_indices;

/* Values alone, as wire_round left them: value_bytes each, end to end. val: [count]; message: [count value_bytes]. */
void wire_values_write(const struct wire_ops *w, const float *val, size_t count, void *message);
void wire_values_read(const struct wire_ops *w, const void *message, size_t count, float *val);
void wire_values_add(const struct wire_ops *w, const void *message, size_t count, float *val); /* val += them */

/* s->val rounded in place; *error: what was cut off (s - rounded), entries that changed only, in index order.
 * error->cap >= s->nnz, or error NULL where nobody wants it. Exact: rounded + error == the old value. */
void wire_round(const struct wire_ops *w, struct sparse *s, struct sparse *error);

/* decode, or the end of the job with the sender's rank. */
void wire_read(const struct wire_ops *w, void *message, size_t bytes, size_t from, size_t to, int sender,
               struct sparse *buffer, struct sparse *view);

#endif
