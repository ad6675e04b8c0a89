/* selector.h: which entries of acc = residual + gradient leave the rank. One file and one row in
 * selectors.def per strategy.
 *
 *        struct selector *sel = selector_open(&selector_exact, &store, k_max);
 *        if (!selector_run(sel, grad, k, &out, &bad)) ...    // acc[bad] is NaN or infinite
 *        selector_close(sel);
 */
#ifndef ST_TOPK_SELECTOR_H
#define ST_TOPK_SELECTOR_H

#include "topk/store.h"

struct selector_ops;

struct selector {
    const struct selector_ops *ops;
    struct store *store;
    size_t k_max;
    void *state;
};

struct selector_ops {
    const char *name;    /* what --select takes */
    const char *summary; /* one line for --help and `sparsetrain list` */
    const char *paper;
    bool exact_count; /* returns exactly k entries, whatever the input */
    void (*open)(struct selector *s);
    /* acc += grad, then the selected entries of acc to out (host, in index order, out->cap as
     * selector_capacity says). acc itself keeps them: the exchange decides what was delivered.
     * Returns false when acc holds a NaN or an infinity, the lowest such index in *bad. */
    bool (*run)(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad);
    void (*close)(struct selector *s);
};

extern const struct selector_ops *const selectors[]; /* every row, NULL-terminated */

/* 1 <= k_max <= n: the largest k that will be asked for. */
struct selector *selector_open(const struct selector_ops *ops, struct store *store, size_t k_max);
void selector_close(struct selector *s);

/* 1 <= k <= k_max, else dies (k = 0 is a caller's error; options refuse it before). */
bool selector_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad);

/* How large the caller must make `out`, given k_max. */
size_t selector_capacity(const struct selector_ops *ops, size_t n, size_t k_max);

/* k of a density, spec: max(1, floor(density * n)), and at most n. Exact where density * n is an
 * integer in decimal (0.001 * 1000 gives 1, not 0). */
size_t density_to_k(double density, size_t n);

#endif
