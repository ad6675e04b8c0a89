/* kernels.h: the inner loops of the CPU store, in generic C, AVX2 and AVX-512; the best one that the
 * processor has is chosen at run time, or the one that SPARSETRAIN_SIMD=generic|avx2|avx512 names (an
 * unknown name, or one that the processor lacks, falls back to generic with a note). All give the same bits. */
#ifndef ST_TOPK_KERNELS_H
#define ST_TOPK_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOMENT_LANES = 16, KERNEL_SETS = 3 };

/* Moments being summed: entry i goes to lane i % MOMENT_LANES, each lane in index order and in double, where x^2 is
 * exact. The caller folds the lanes. Where an entry is not finite only count and max_key mean something. */
struct moment_lanes {
    double sum[MOMENT_LANES], sum_abs[MOMENT_LANES], sum_square[MOMENT_LANES];
    size_t count;
    uint32_t max_key;
};

struct topk_kernels {
    const char *name;
    /* acc[i] += grad[i] for i in [0,n). */
    void (*accumulate)(float *acc, const float *grad, size_t n);
    /* acc += grad and compaction in one pass: entries with magnitude_key(acc[i]) >= key go to val/idx (idx
     * counts from `base`) in order. Stops storing, but goes on accumulating and counting, once fewer than
     * 16 places are left of cap. Returns the count of all such entries. */
    size_t (*accumulate_compact)(float *acc, const float *grad, size_t n, uint32_t base, uint32_t key, uint32_t *idx,
                                 float *val, size_t cap);
    /* The same without accumulating. */
    size_t (*compact)(const float *acc, size_t n, uint32_t base, uint32_t key, uint32_t *idx, float *val, size_t cap);
    /* accumulate_compact and the moments of all n sums, in one pass. */
    size_t (*accumulate_compact_moments)(float *acc, const float *grad, size_t n, uint32_t base, uint32_t key,
                                         uint32_t *idx, float *val, size_t cap, struct moment_lanes *m);
    /* Moments of the entries with magnitude_key >= key. */
    void (*moments)(const float *acc, size_t n, uint32_t key, struct moment_lanes *m);
    /* How many entries have magnitude_key >= key. */
    size_t (*count)(const float *acc, size_t n, uint32_t key);
    /* Keeps those of n pairs that have magnitude_key(val) >= key, in place and in order. Returns how many. */
    size_t (*filter)(uint32_t *idx, float *val, size_t n, uint32_t key);
    /* Keeps those of n keys that lie in [low, low + width), an end <= 2^32, in place and in order. Returns how many. */
    size_t (*filter_keys)(uint32_t *keys, size_t n, uint32_t low, uint32_t width);
};

/* The set in use; decided once. */
const struct topk_kernels *topk_kernels(void);

/* Every set this processor can run, NULL-terminated, generic first: for tests and benches. */
const struct topk_kernels *const *topk_kernels_all(void);

/* Those of a processor that has these instructions, likewise. */
void topk_kernels_with(bool popcnt, bool avx2, bool avx512, const struct topk_kernels *sets[KERNEL_SETS + 1]);

#endif
