/* store.h: the gradient store: the residual of error feedback, on the backend's device, and the
 * operations on it that selectors and exchanges need. One file per device (store_cpu.c; cuda_store.c in
 * the CUDA plugin), so that a selector or an algorithm is written once.
 *
 * Between the accumulation and the end of a step the array holds acc = residual + gradient; taking the
 * delivered entries out of it leaves the next residual. No second array of size n exists.
 */
#ifndef ST_TOPK_STORE_H
#define ST_TOPK_STORE_H

#include "base/clock.h"
#include "base/device/device.h"
#include "topk/sparse.h"

struct store_ops;

/* Facts about the entries that the last selection (accumulate_select, select, accumulate_top) put into `out`, from
 * stores that gather them during the selection, as the GPU's does. */
struct store_seen {
    bool known;
    uint32_t least, most; /* keys; UINT32_MAX and 0 where there are none */
    size_t reaching;      /* of accumulate_select and select: how many reach store.probe */
};

struct store {
    size_t n;
    float *acc; /* device, [n] */
    const struct device_ops *device;
    const struct store_ops *ops;
    void *state;    /* the row's own scratch */
    uint32_t probe; /* set by the caller before a selection: a second key, at or above the first */
    struct store_seen seen;
    /* Where the time of selectors and of the calls at the end of this file is charged, as PHASE_SELECT; NULL: nowhere.
     * exchange.c sets it for a step. */
    struct phases *phases;
};

/* Moments of entries x_i of acc. Summed in a fixed order (blocks of lanes, then double), the same bits on any
 * processor. */
struct moments {
    size_t count;
    double sum, sum_abs, sum_square; /* sum x, sum |x|, sum x^2 */
    uint32_t max_key;                /* largest magnitude key; 0 when count is 0 */
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
    size_t (*select)(struct store *s, uint32_t key, struct sparse *out); /* the same without accumulating */
    uint32_t (*kth_key)(struct store *s, size_t k);                      /* exact k-th largest magnitude key */
    /* acc += grad and exactly the k entries of largest magnitude, of equal ones those of lower index, to out in index
     * order (out->cap >= selector_capacity). NaN and infinities are the largest. NULL: a row on which a guessed key, a
     * pass and a cut among the candidates is as fast (exact.c). */
    void (*accumulate_top)(struct store *s, const float *grad, size_t k, struct sparse *out);
    /* As accumulate_select, and the moments of all of acc in the same pass. Where an entry is not finite, m->max_key
     * says so and the sums mean nothing. */
    size_t (*accumulate_select_moments)(struct store *s, const float *grad, uint32_t key, struct sparse *out,
                                        struct moments *m);
    void (*moments)(struct store *s, uint32_t key, struct moments *m); /* of the entries >= key; 0: of all */
    size_t (*count)(struct store *s, uint32_t key);                    /* entries >= key */
    /* acc += grad and, in the same pass, square[b] = sum x^2 over the entries of acc from b block on, `block` of them
     * or, at the end, as many as there are. square: host, [ceil(n / block)]; block >= 1. The same bits on every device
     * (squares.h). Not finite where an entry is not; the sum of finite ones does not overflow a double. */
    void (*accumulate_squares)(struct store *s, const float *grad, size_t block, double *square);
    /* The rank-th largest magnitude key of acc[first + i stride] (+ grad there, unless NULL), i < count. scratch: host,
     * [count]; a row may use it or not. */
    uint32_t (*sample_kth_key)(struct store *s, const float *grad, size_t first, size_t stride, size_t count,
                               size_t rank, uint32_t *scratch);
    void (*gather_at)(struct store *s, const uint32_t *idx, size_t count, float *val); /* val[i] = acc[idx[i]]; host */
    void (*zero_at)(struct store *s, const uint32_t *idx, size_t count);               /* acc[idx[i]] = 0; idx: host */
    void (*add_at)(struct store *s, const struct sparse *delta);                       /* acc += delta */
    void (*read)(struct store *s, size_t from, size_t count, float *host);             /* stage a part to the host */
    void (*write)(struct store *s, size_t from, size_t count, const float *host);
    /* dense[0..n-1] = scale * u (zero elsewhere); dense: device. */
    void (*scatter)(struct store *s, const struct sparse *u, float scale, float *dense);
    /* dense[idx[i]] += scale * val[i]; dense: device. */
    void (*scatter_add)(struct store *s, const struct sparse *u, float scale, float *dense);
    void (*scale)(struct store *s, float *dense, float scale); /* dense *= scale; device, [n] */
    /* acc = mu acc + grad and grad = acc, in one pass: acc is a velocity. The product is rounded before the sum, and
     * what is subnormal then is 0 (base/subnormal.h). grad: device, [n], not acc itself. */
    void (*momentum)(struct store *s, float *grad, float mu);
    /* The lowest i with dense[i] NaN or infinite; n when there is none. dense: device, [n] */
    size_t (*first_nonfinite)(struct store *s, const float *dense, size_t n);
};

extern const struct store_ops *const stores[]; /* every row of this build but those of plugins, NULL-terminated */

/* A zeroed store of n entries, 1 <= n < 2^32 (else dies), on this device. */
void store_open(struct store *s, size_t n, const struct device_ops *device);
/* The same without a residual (acc is NULL), for exchanges that have none: of the operations only scale and
 * first_nonfinite. */
void store_open_bare(struct store *s, size_t n, const struct device_ops *device);
void store_close(struct store *s);

/* A store over entries [from, from + count) of another one, in the same memory: indices count from `from`. Closed
 * before the whole one. store_view_move shifts it (same count or fewer; no allocation). Either charges it as the whole
 * one is charged at that time. */
void store_view_open(struct store *view, struct store *whole, size_t from, size_t count);
void store_view_move(struct store *view, struct store *whole, size_t from, size_t count);
void store_view_close(struct store *view);

/* What an exchange does with the residual: acc = 0 where s has entries; acc += s; s = acc there. */
static inline void store_zero_at(struct store *store, const struct sparse *s) {
    PHASE_SCOPE(store->phases, PHASE_SELECT);
    store->ops->zero_at(store, s->idx, s->nnz);
}
static inline void store_add_at(struct store *store, const struct sparse *s) {
    PHASE_SCOPE(store->phases, PHASE_SELECT);
    store->ops->add_at(store, s);
}
static inline void store_gather_at(struct store *store, struct sparse *s) {
    PHASE_SCOPE(store->phases, PHASE_SELECT);
    store->ops->gather_at(store, s->idx, s->nnz, s->val);
}

#endif
