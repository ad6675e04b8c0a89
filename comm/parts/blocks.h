/* blocks.h: a vector as blocks of consecutive entries, of which some travel: their numbers and all their values, with
 * no index for an entry.
 *
 *        struct blocks b = blocks_of(n, 256);
 *        blocks_largest(square, b.count, chosen, keys, number);        // square: [b.count]
 *        size_t bytes = blocks_write(&b, &list, message);
 *
 *        blocks_read(&b, message, bytes, from, to, sender, &view);     // view: into message
 *        blocks_append(&b, &view, &u);
 *
 * A message has the numbers of its blocks (u32, strictly increasing) and then their values, block by block (f32), in
 * the machine's byte order; no header. Like those of wire.h it is not trusted.
 */
#ifndef ST_COMM_BLOCKS_H
#define ST_COMM_BLOCKS_H

#include "base/error.h"
#include "topk/sparse.h"

/* Block i of `count` has entries [i size, (i + 1) size), the last one up to n. */
struct blocks {
    size_t n, size, count;
};

/* 1 <= n, size. */
static inline struct blocks blocks_of(size_t n, size_t size) {
    return (struct blocks){n, size, (n - 1) / size + 1};
}
static inline size_t blocks_length(const struct blocks *b, size_t i) {
    return i + 1 < b->count ? b->size : b->n - i * b->size;
}
/* The blocks that k entries are rounded up to. */
static inline size_t blocks_for(const struct blocks *b, size_t k) {
    return k == 0 ? 0 : (k - 1) / b->size + 1;
}
/* Most entries in so many of them, and most bytes of their message, 4-byte aligned. */
static inline size_t blocks_entries(const struct blocks *b, size_t count) {
    return count < b->count ? count * b->size : b->n;
}
static inline size_t blocks_capacity(const struct blocks *b, size_t count) {
    return (count + blocks_entries(b, count)) * sizeof(float);
}

/* Some of the blocks, in order. */
struct block_list {
    const uint32_t *number; /* [count] */
    const float *val;       /* [entries], block by block */
    size_t count, entries;
};

/* Those of the list with a number in [from, to), where they lie. */
struct block_list blocks_between(const struct blocks *b, const struct block_list *list, size_t from, size_t to);

/* number: [chosen] the largest of square[0..count-1], all finite and >= 0, in order; of equal ones those with the lower
 * number. 1 <= chosen <= count. keys: scratch, [count]. O(count). */
void blocks_largest(const double *square, size_t count, size_t chosen, uint32_t *keys, uint32_t *number);

/* to->idx = the entries of these blocks; to->nnz how many, which must fit. The values stay as they are. */
void blocks_indices(const struct blocks *b, const uint32_t *number, size_t count, struct sparse *to);

/* Returns the bytes. message: [blocks_capacity(list->count)], 4-byte aligned. */
size_t blocks_write(const struct block_list *list, void *message);

/* view = what this message has, whose blocks lie in [from, to). False: it is none; *e says what is wrong. Nothing
 * beyond the message is read, whatever is in it. */
bool blocks_decode(const struct blocks *b, const void *message, size_t bytes, size_t from, size_t to,
                   struct block_list *view, struct err *e);
/* The same, or the end of the job with the sender's rank. */
void blocks_read(const struct blocks *b, const void *message, size_t bytes, size_t from, size_t to, int sender,
                 struct block_list *view);

/* The sum of these lists, whose blocks lie in [from, to), as a message: over the union of their blocks, each value
 * added up in the order of the lists. Returns its bytes. place: scratch, [to - from]. message: room for
 * blocks_capacity(min(to - from, sum of their counts)). */
size_t blocks_sum(const struct blocks *b, const struct block_list *list, size_t lists, size_t from, size_t to,
                  uint32_t *place, void *message);

/* The entries of the list, which follow on those that u has, to its end. Dies where they do not fit. */
void blocks_append(const struct blocks *b, const struct block_list *list, struct sparse *u);

#endif
