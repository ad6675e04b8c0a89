/* store.h: the gradient store: the residual of error feedback, on the backend's device, and the
 * operations on it that selectors and exchanges need. One file per device (store_cpu.c; the CUDA plugin
 * brings its own), so that a selector or an algorithm is written once.
 *
 * Between the accumulation and the end of a step the array holds acc = residual + gradient; taking the
 * delivered entries out of it leaves the next residual. No second array of size n exists.
 */
#ifndef ST_TOPK_STORE_H
#define ST_TOPK_STORE_H

#include "base/device.h"
#include "topk/sparse.h"

struct store_ops;

struct store {
    size_t n;
    float *acc; /* device, [n] */
    const struct device_ops *device;
    const struct store_ops *ops;
    void *state; /* the row's own scratch */
};

struct store_ops {
    const char *device; /* name of the device row it serves */
    void (*open)(struct store *s);
    void (*close)(struct store *s);
    void (*accumulate)(struct store *s, const float *grad); /* acc += grad; grad: device, [n] */
    /* A key that a few more than k entries of acc + grad probably reach, from a sample: the aim is between k and
     * selector_capacity; 0 (take all) when that is n. A wrong guess costs the caller time, nothing else. */
    uint32_t (*guess_key)(struct store *s, const float *grad, size_t k);
    /* acc += grad and, in the same pass, every entry with magnitude_key >= key goes to out (from sparse_open) in
     * index order. Returns how many there are; when that is more than out->cap, out holds the first cap of them. */
    size_t (*accumulate_select)(struct store *s, const float *grad, uint32_t key, struct sparse *out);
    size_t (*select)(struct store *s, uint32_t key, struct sparse *out);   /* the same without accumulating */
    uint32_t (*kth_key)(struct store *s, size_t k);                        /* exact k-th largest magnitude key */
    void (*zero_at)(struct store *s, const uint32_t *idx, size_t count);   /* acc[idx[i]] = 0; idx: host */
    void (*add_at)(struct store *s, const struct sparse *delta);           /* acc += delta */
    void (*read)(struct store *s, size_t from, size_t count, float *host); /* stage a part to the host */
    void (*write)(struct store *s, size_t from, size_t count, const float *host);
    /* dense[0..n-1] = scale * u (zero elsewhere); dense: device. */
    void (*scatter)(struct store *s, const struct sparse *u, float scale, float *dense);
    void (*scale)(struct store *s, float *dense, float scale); /* dense *= scale; device, [n] */
};

extern const struct store_ops *const stores[]; /* every row of this build, NULL-terminated */

/* A zeroed store of n entries, 1 <= n < 2^32 (else dies), on this device. */
void store_open(struct store *s, size_t n, const struct device_ops *device);
void store_close(struct store *s);

#endif
