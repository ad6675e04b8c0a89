/* device_sparse.h: the device "sparse" from inside, for the gradient store on it: lists of what is not zero in place of
 * arrays. A word is 4 bytes; one counts as zero when all of its bits are, so that -0.0 stands in the lists and what is
 * read is bit by bit what was written.
 *
 *        device_sparse_lock();
 *        struct device_list l = device_list_of(grad, n);
 *        for (size_t i = 0; i < l.nnz; i++) ... entry l.idx[i] - l.first of grad is l.val[i]
 *        device_list_resize(&l, nnz, NULL), ... fill l.idx and l.val
 *        device_sparse_unlock();
 */
#ifndef ST_BASE_DEVICE_SPARSE_H
#define ST_BASE_DEVICE_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Must be held during every call below and while a list is read: threads that work on different parts of one block do
 * not conflict on arrays, but they do on its list. Not recursive; device operations take it themselves. */
void device_sparse_lock(void);
void device_sparse_unlock(void);

struct sparse_block;

/* The words of a range of device memory that are not zero. Holds until something else of its block changes. */
struct device_list {
    struct sparse_block *block;
    uint32_t first; /* place in the block where the range begins */
    size_t count;   /* words of the range, zeros and all */
    uint32_t *idx;  /* [nnz] places in the block, strictly increasing: first..first+count-1 */
    float *val;     /* [nnz] */
    size_t nnz;
};

/* Of `count` floats at this address of the device; dies when they are not within one block. */
struct device_list device_list_of(const float *address, size_t count);

/* Room for nnz entries, 0..count: the first of the old ones stay, what comes new is to be filled in before anything
 * else is asked. other (or NULL): a list that may lie in the same block, outside of this range; it moves along. */
void device_list_resize(struct device_list *l, size_t nnz, struct device_list *other);

/* Takes the zeros out that a computation has left among the values. */
void device_list_drop_zeros(struct device_list *l);

static inline bool word_is_zero(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits == 0;
}

#endif
