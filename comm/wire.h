/* wire.h: the wire format coo32: a sparse vector of nnz entries as ONE message of 8 nnz bytes, all indices
 * (u32) first, then all values (f32), both in the machine's byte order. The length of the message gives nnz, so
 * there is no header, and a message that came can be used where it lies.
 *
 *        wire_pack(&s, message);
 *        comm_send(c, peer, tag, message, wire_bytes(s.nnz));
 *
 *        size_t bytes = comm_recv(c, peer, tag, message, wire_bytes(k));
 *        wire_view(message, bytes, n, peer, &view);     // view points into message
 */
#ifndef ST_COMM_WIRE_H
#define ST_COMM_WIRE_H

#include "topk/sparse.h"

/* 8 nnz: what one message of nnz entries takes. */
size_t wire_bytes(size_t nnz);

/* message: 4-byte aligned, wire_bytes(s->nnz) bytes. */
void wire_pack(const struct sparse *s, void *message);

/* view = the vector in this message, not copied. Dies, naming the sender, when the length is no whole number of
 * entries, the indices do not increase, or one is not below n. */
void wire_view(void *message, size_t bytes, size_t n, int sender, struct sparse *view);

#endif
