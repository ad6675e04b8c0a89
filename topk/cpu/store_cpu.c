/* store_cpu.c: the gradient store in host memory. */
#include "base/mem.h"
#include "base/simd.h"
#include "base/subnormal.h"
#include "topk/cpu/kernels.h"
#include "topk/finite.h"
#include "topk/moments.h"
#include "topk/sample.h"
#include "topk/selector.h"
#include "topk/squares.h"

enum {
    BINS = 65536, /* of the upper 16 bits of a 31-bit key, and then of the lower 15 */
    LOW_BITS = 15,
    AHEAD = 16, /* entries that are fetched before they are needed */
    ROOM = 16   /* what sparse_open leaves past cap for the kernels */
};

/* scratch: [SAMPLE_MAX or BINS] */
struct scratch {
    uint32_t word[(int)SAMPLE_MAX > (int)BINS ? SAMPLE_MAX : BINS];
};

static void cpu_open(struct store *s) {
    s->state = mem_alloc(1, sizeof(struct scratch), "sample and histogram of a selection");
}

static void cpu_close(struct store *s) {
    mem_free(s->state);
}

static void accumulate(struct store *s, const float *grad) {
    topk_kernels()->accumulate(s->acc, grad, s->n);
}

static void take_sample(const struct store *s, const float *grad, size_t lines, uint32_t *key) {
    for (size_t b = 0; b < lines; b++) {
        size_t from = sample_line_at(s->n, lines, (uint32_t)b);
        for (size_t j = 0; j < SAMPLE_LINE; j++) {
            float sum = s->acc[from + j] + (grad ? grad[from + j] : -0.0f);
            key[b * SAMPLE_LINE + j] = magnitude_key(sum);
        }
    }
}

static uint32_t guess_key(struct store *s, const float *grad, size_t k) {
    if (selector_capacity_common(s->n, k) == s->n) return 0;
    size_t lines = sample_lines(s->n), m = lines * SAMPLE_LINE, rank = sample_rank(s->n, m, k);
    uint32_t *key = ((struct scratch *)s->state)->word;
    take_sample(s, grad, lines, key);
    return rank < m ? key_kth_largest(key, m, rank) : 0;
}

static size_t finish(struct sparse *out, size_t count) {
    out->nnz = count < out->cap ? count : out->cap;
    return count;
}

static size_t accumulate_select(struct store *s, const float *grad, uint32_t key, struct sparse *out) {
    const struct topk_kernels *kernels = topk_kernels();
    return finish(out, kernels->accumulate_compact(s->acc, grad, s->n, 0, key, out->idx, out->val, out->cap + ROOM));
}

static size_t select_at(struct store *s, uint32_t key, struct sparse *out) {
    return finish(out, topk_kernels()->compact(s->acc, s->n, 0, key, out->idx, out->val, out->cap + ROOM));
}

/* The bin that holds the k-th largest, counted from the top; *k becomes its rank inside that bin. */
static uint32_t bin_of(const uint32_t *count, uint32_t bins, size_t *k) {
    uint32_t bin = bins - 1;
    for (; count[bin] < *k; bin--) *k -= count[bin];
    return bin;
}

/* Two reads of acc, whatever is in it: a histogram of the upper 16 bits of the keys, then one of the lower 15
 * bits of those in the bin that holds the k-th. */
static uint32_t kth_key(struct store *s, size_t k) {
    uint32_t *count = ((struct scratch *)s->state)->word;
    memset(count, 0, BINS * sizeof *count);
    for (size_t i = 0; i < s->n; i++) count[magnitude_key(s->acc[i]) >> LOW_BITS]++;
    uint32_t high = bin_of(count, BINS, &k), mask = (1u << LOW_BITS) - 1;
    memset(count, 0, (mask + 1) * sizeof *count);
    for (size_t i = 0; i < s->n; i++) {
        uint32_t key = magnitude_key(s->acc[i]);
        if (key >> LOW_BITS == high) count[key & mask]++;
    }
    return high << LOW_BITS | bin_of(count, mask + 1, &k);
}

static void moments_above(struct store *s, uint32_t key, struct moments *m) {
    struct moment_lanes lanes;
    topk_kernels()->moments(s->acc, s->n, key, &lanes);
    *m = moments_folded(&lanes);
}

static size_t accumulate_select_moments(struct store *s, const float *grad, uint32_t key, struct sparse *out,
                                        struct moments *m) {
    struct moment_lanes lanes;
    size_t count = topk_kernels()->accumulate_compact_moments(s->acc, grad, s->n, 0, key, out->idx, out->val,
                                                              out->cap + ROOM, &lanes);
    *m = moments_folded(&lanes);
    return finish(out, count);
}

/* acc += grad over one block. */
SIMD_CLONES static double block_squares(float *restrict acc, const float *restrict grad, size_t count) {
    double lane[SQUARE_LANES] = {0};
    size_t i = 0;
    for (; i + SQUARE_LANES <= count; i += SQUARE_LANES)
        for (size_t j = 0; j < SQUARE_LANES; j++) {
            acc[i + j] += grad[i + j];
            lane[j] += (double)acc[i + j] * (double)acc[i + j];
        }
    for (size_t j = 0; i + j < count; j++) {
        acc[i + j] += grad[i + j];
        lane[j] += (double)acc[i + j] * (double)acc[i + j];
    }
    return squares_fold(lane);
}

static void accumulate_squares(struct store *s, const float *grad, size_t block, double *square) {
    for (size_t from = 0; from < s->n; from += block)
        *square++ = block_squares(s->acc + from, grad + from, s->n - from < block ? s->n - from : block);
}

static size_t count_above(struct store *s, uint32_t key) {
    return topk_kernels()->count(s->acc, s->n, key);
}

/* Far apart, so that each is a cache miss: several are kept on their way. */
static uint32_t sample_kth_key(struct store *s, const float *grad, size_t first, size_t stride, size_t count,
                               size_t rank, uint32_t *key) {
    const float *acc = s->acc;
    for (size_t i = 0; i < count; i++) {
        size_t at = first + i * stride, later = i + AHEAD < count ? at + AHEAD * stride : at;
        __builtin_prefetch(acc + later, 1);
        if (grad) __builtin_prefetch(grad + later);
        key[i] = magnitude_key(acc[at] + (grad ? grad[at] : -0.0f));
    }
    return key_kth_largest(key, count, rank);
}

static void gather_at(struct store *s, const uint32_t *idx, size_t count, float *val) {
    for (size_t i = 0; i < count; i++) {
        __builtin_prefetch(s->acc + idx[i + AHEAD < count ? i + AHEAD : i], 1);
        val[i] = s->acc[idx[i]];
    }
}

static void zero_at(struct store *s, const uint32_t *idx, size_t count) {
    for (size_t i = 0; i < count; i++) s->acc[idx[i]] = 0;
}

static void add_at(struct store *s, const struct sparse *delta) {
    for (size_t i = 0; i < delta->nnz; i++) s->acc[delta->idx[i]] += delta->val[i];
}

static void read_part(struct store *s, size_t from, size_t count, float *host) {
    memcpy(host, s->acc + from, count * sizeof *host);
}

static void write_part(struct store *s, size_t from, size_t count, const float *host) {
    memcpy(s->acc + from, host, count * sizeof *host);
}

/* Block by block, so that an entry is written while its zeros are still in the cache. */
static void scatter(struct store *s, const struct sparse *u, float scale, float *dense) {
    enum { BLOCK = 4096 };
    size_t at = 0;
    for (size_t from = 0; from < s->n; from += BLOCK) {
        size_t end = s->n - from < BLOCK ? s->n : from + BLOCK;
        memset(dense + from, 0, (end - from) * sizeof *dense);
        for (; at < u->nnz && u->idx[at] < end; at++) dense[u->idx[at]] = scale * u->val[at];
    }
}

static void scatter_add(struct store *s, const struct sparse *u, float scale, float *dense) {
    (void)s;
    for (size_t i = 0; i < u->nnz; i++) dense[u->idx[i]] += scale * u->val[i];
}

SIMD_CLONES static void scale_all(struct store *s, float *dense, float scale) {
    for (size_t i = 0; i < s->n; i++) dense[i] *= scale;
}

SIMD_CLONES static void momentum(struct store *s, float *grad, float mu) {
    float *restrict velocity = s->acc, *restrict to = grad;
    for (size_t i = 0; i < s->n; i++) {
        velocity[i] = flush_subnormal(mu * velocity[i] + to[i]);
        to[i] = velocity[i];
    }
}

static size_t nonfinite(struct store *s, const float *dense, size_t n) {
    (void)s;
    return first_nonfinite(dense, n);
}

extern const struct store_ops store_cpu;
const struct store_ops store_cpu = {
    .device = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .accumulate = accumulate,
    .guess_key = guess_key,
    .accumulate_select = accumulate_select,
    .select = select_at,
    .kth_key = kth_key,
    .accumulate_select_moments = accumulate_select_moments,
    .moments = moments_above,
    .count = count_above,
    .accumulate_squares = accumulate_squares,
    .sample_kth_key = sample_kth_key,
    .gather_at = gather_at,
    .zero_at = zero_at,
    .add_at = add_at,
    .read = read_part,
    .write = write_part,
    .scatter = scatter,
    .scatter_add = scatter_add,
    .scale = scale_all,
    .momentum = momentum,
    .first_nonfinite = nonfinite,
};
