/* cuda_kernels.h: the launchers of the gradient store's kernels, for cuda_store.c, and what they share with it. All
 * work goes to cuda_stream(), in order; nothing here waits. Pointers are to device memory but for `answer`; pairs that
 * are written may also lie in page-locked memory of the host. */
#ifndef ST_TOPK_CUDA_KERNELS_H
#define ST_TOPK_CUDA_KERNELS_H

#include <stdint.h>

#include "topk/cuda/cuda_index.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A search for the k-th largest key. Between searches `done` and histogram are 0. */
struct store_search {
    uint32_t key;  /* the digits that are known, then zeros */
    uint32_t rank; /* of the one that is looked for, among those that share these digits, 1 the first */
    uint32_t done; /* blocks that have finished */
    uint32_t histogram[DIGIT_BINS];
};

/* What one launch leaves to the next. Between launches ticket, done, most and reaching are 0, bad is UINT64_MAX, least
 * UINT32_MAX. */
struct store_words {
    uint32_t ticket, done;
    uint32_t least, most, reaching; /* as store_answer */
    uint32_t count;                 /* entries that the last compaction found */
    uint32_t total;                 /* of a count that goes on; else 0 */
    unsigned long long bad;
    struct store_search guess, exact;
};

/* What a launch tells the host, in page-locked memory. */
struct store_answer {
    double sum, sum_abs, sum_square;
    uint64_t bad; /* lowest entry that is not finite; UINT64_MAX: none */
    uint32_t count, max_key, key;
    uint32_t least, most; /* of the keys of the entries that a compaction found; UINT32_MAX and 0: there are none */
    uint32_t reaching;    /* how many of them reach compaction.probe */
};

/* Sums over each tile, [tiles] each. */
struct tile_sums {
    double *sum, *sum_abs, *sum_square;
    uint32_t *count, *max_key;
};

/* One read of acc[n] (with grad: acc += grad, one read and one write), the entries with a key >= `key`, or >= *key_at
 * unless that is NULL, to idx and val in index order, the first cap of them; answer->count and words->count
 * are how many there are. sums.sum not NULL: the moments of all entries to *answer. */
struct compaction {
    float *acc;
    const float *grad; /* [n], or NULL */
    uint64_t n;
    const uint32_t *key_at; /* or NULL */
    uint32_t key, probe;
    uint32_t cap;
    uint32_t *idx;   /* [cap] */
    float *val;      /* [cap] */
    uint64_t *tiles; /* [span_tiles]: tile words */
    uint32_t launch; /* number of this launch, see tile_word */
    struct tile_sums sums;
    struct store_words *words;
    struct store_answer *answer;
};
void store_launch_compaction(const struct compaction *c);

/* Values among which the k largest magnitudes are looked for: val[n]; or the first *count of val[n] where count is not
 * NULL, and then nothing is done unless k <= *count <= n. */
struct top {
    const float *val;
    uint64_t n;
    const uint32_t *count;
    uint32_t k;
};

/* A search among at most so many is done by one block, in one launch. */
enum { ONE_BLOCK_MOST = 1 << 16 };

/* The first `digits` digits of the k-th largest key to *search; with answer also to answer->key. */
void store_launch_search(const struct top *t, int digits, struct store_search *search, struct store_answer *answer);

/* A search of all DIGITS, and then: exactly the k largest, of equal ones those that come first, in order. */
struct cut_out {
    const uint32_t *of;            /* [n]: the index of each value; NULL: its position */
    uint32_t *idx;                 /* [k] */
    float *val;                    /* [k] */
    uint64_t *tiles, *tiles_equal; /* [span_tiles] each: tile words */
    uint32_t launch;
    struct store_words *words;
    struct store_answer *answer; /* its key: that of the k-th */
};
void store_launch_cut(const struct top *t, struct store_search *search, const struct cut_out *out);

/* The two for few values; cut: NULL where the key alone is wanted. */
void store_launch_one_block(const struct top *t, int digits, struct store_search *search, const struct cut_out *cut,
                            struct store_answer *answer);

/* val[..] = acc (+ grad, unless NULL) at the places of a sample: `lines` lines of sample.h; or first + i stride,
 * i < count. */
void store_launch_sample(const float *acc, const float *grad, uint64_t n, uint32_t lines, float *val);
void store_launch_strided(const float *acc, const float *grad, uint64_t first, uint64_t stride, uint64_t count,
                          float *val);

/* Of the entries with a key >= `key`: the moments and the count; the count alone. */
void store_launch_moments(const float *x, uint64_t n, uint32_t key, const struct tile_sums *sums,
                          struct store_words *words, struct store_answer *answer);
void store_launch_count(const float *x, uint64_t n, uint32_t key, struct store_words *words,
                        struct store_answer *answer);
void store_launch_nonfinite(const float *x, uint64_t n, struct store_words *words, struct store_answer *answer);

/* x += y, and square[b] = sum of x^2 over entries [b block, (b + 1) block), in the order of squares.h. */
void store_launch_add_squares(float *x, const float *y, uint64_t n, uint64_t block, double *square);

/* x += y; x *= by; x = mu x + y, and y = x. */
void store_launch_add(float *x, const float *y, uint64_t n);
void store_launch_scale(float *x, uint64_t n, float by);
void store_launch_momentum(float *x, float *y, uint64_t n, float mu);

/* For j < count: val[j] = x[idx[j]]; x[idx[j]] = 0; x[idx[j]] += by val[j]; x[idx[j]] = by val[j]. No index comes
 * twice. */
void store_launch_gather(const float *x, const uint32_t *idx, uint64_t count, float *val);
void store_launch_zero(float *x, const uint32_t *idx, uint64_t count);
void store_launch_scatter_add(float *x, const uint32_t *idx, const float *val, uint64_t count, float by);
void store_launch_scatter(float *x, const uint32_t *idx, const float *val, uint64_t count, float by);

#ifdef __cplusplus
}
#endif

#endif
