/* regions.h: what the exchanges share that cut [0,n) into one region per rank: room for many small messages, the dense
 * form of a message, and putting a vector together from the messages of its parts.
 */
#ifndef ST_COMM_REGIONS_H
#define ST_COMM_REGIONS_H

#include "comm/exchange.h"

/* Bytes that are enough for any `messages` messages which hold `entries` entries together. */
size_t regions_room(const struct wire_ops *w, size_t entries, int messages);

/* A piece of memory in which messages are laid one behind the other. */
struct outbox {
    unsigned char *bytes; /* [size] */
    size_t size, used;
};
void outbox_open(struct outbox *box, size_t size);
void outbox_close(struct outbox *box);
/* Where the next message of up to `bytes` bytes goes; dies when that is more than is left. */
void *outbox_next(struct outbox *box, size_t bytes);
void outbox_add(struct outbox *box, size_t bytes); /* that message has so many; the next stays 4-byte aligned */

/* The dense form of a message, for a vector with indices in [from, to): 4 bytes for each of them. An index that the
 * vector does not have travels as a NaN which no sum of finite numbers is, so that an entry of value 0 stays one. Both
 * are 4-byte aligned. dense_read adds to the end of s, which sparse_open made; dies where there is no room for all. */
void dense_write(struct exchange *x, const struct sparse *s, size_t from, size_t to, void *message);
void dense_read(struct exchange *x, const void *message, size_t from, size_t to, int sender, struct sparse *s);

/* The vector in this message of `sender`, whose indices lie in [from, to), to the end of u; it must follow on what u
 * has. Returns how many entries came. */
size_t regions_append(struct exchange *x, void *message, size_t bytes, size_t from, size_t to, int sender,
                      struct sparse *u);

#endif
