/* store_sparse.c: the gradient store over lists of what is not zero (base/sim/device_sparse.h), for simulations.
 *
 * Every operation gives bit by bit what store_cpu.c gives for the array that the lists stand for: sums and products are
 * the same ones, moments are summed in the same lanes, ties go to the same entries, guesses come from the same sample.
 *
 * Cost: O(entries that are not zero), and what else the result has: pairs that are returned, places that are sampled or
 * asked for. Where the zeros do not stay zero (a negative factor makes them -0.0, an infinite one NaN) every entry
 * comes into the lists, as into the array. accumulate_top is a row of its own here: a sample of a vector that is nearly
 * all zero says little, and the k-th largest magnitude is found among the entries of a list as fast as guessed. */
#include <math.h>

#include "base/mem.h"
#include "base/sim/device_sparse.h"
#include "base/subnormal.h"
#include "topk/cpu/kernels_scalar.h"
#include "topk/finite.h"
#include "topk/moments.h"
#include "topk/sample.h"
#include "topk/selector.h"
#include "topk/squares.h"

enum { ROOM = 16 /* what sparse_open leaves past cap for the kernels */ };

struct scratch {
    uint32_t key[SAMPLE_MAX];
};

static void sparse_store_open(struct store *s) {
    s->state = mem_alloc(1, sizeof(struct scratch), "sample of a selection");
}

static void sparse_store_close(struct store *s) {
    mem_free(s->state);
}

static struct device_list acc_of(const struct store *s) {
    return device_list_of(s->acc, s->n);
}

/* -- look-ups: fast for places that rise from call to call ------------------------------- */

/* The first entry of l at or after the i-th word of its range. *at: the result of the call before, where the search
 * begins; 0 at first. */
static size_t find(const struct device_list *l, size_t *at, size_t i) {
    const uint64_t place = (uint64_t)l->first + i;
    size_t low = *at, step = 1;
    if (low > 0 && l->idx[low - 1] >= place) low = 0;
    while (low + step <= l->nnz && l->idx[low + step - 1] < place) low += step, step *= 2;
    size_t high = l->nnz - low < step ? l->nnz : low + step - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (l->idx[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return *at = low;
}

static bool is_at(const struct device_list *l, size_t position, size_t i) {
    return position < l->nnz && l->idx[position] - l->first == i;
}

static float value_at(const struct device_list *l, size_t *at, size_t i) {
    size_t position = find(l, at, i);
    return is_at(l, position, i) ? l->val[position] : 0;
}

/* acc and a gradient or nothing, read at places that rise. */
struct reader {
    struct device_list acc, grad;
    size_t in_acc, in_grad;
};

static struct reader reader_of(const struct store *s, const float *grad) {
    return (struct reader){.acc = acc_of(s), .grad = device_list_of(grad, grad ? s->n : 0)};
}

static uint32_t key_of_sum(struct reader *r, size_t i) {
    return magnitude_key(value_at(&r->acc, &r->in_acc, i) + value_at(&r->grad, &r->in_grad, i));
}

/* -- sums ---------------------------------------------------------------------------------------------------------- */

/* What is added: pairs with places that rise from `first`. */
struct pairs {
    const uint32_t *idx;
    const float *val;
    size_t nnz;
    uint32_t first;
};

static struct pairs pairs_of_list(const struct device_list *l) {
    return (struct pairs){l->idx, l->val, l->nnz, l->first};
}
static struct pairs pairs_of_vector(const struct sparse *s) {
    return (struct pairs){s->idx, s->val, s->nnz, 0};
}

/* |places of l or of x| */
static size_t union_size(const struct device_list *l, const struct pairs *x) {
    size_t i = 0, j = 0, both = 0;
    while (i < l->nnz && j < x->nnz) {
        uint32_t own = l->idx[i] - l->first, others = x->idx[j] - x->first;
        i += own <= others;
        j += others <= own;
        both += own == others;
    }
    return l->nnz + x->nnz - both;
}

struct factors {
    float own, others;
    bool everywhere; /* also where x has no entry: there -0.0 becomes 0.0, and the own factor counts */
};

/* l = own l + others x. l has `old` entries and behind them room for the others; written from the end on, so that
 * nothing is overwritten that is still to be read. */
static void merge(struct device_list *l, size_t old, const struct pairs *x, struct factors f) {
    size_t i = old, j = x->nnz, zeros = 0;
    for (size_t at = l->nnz; at-- > 0;) {
        if (j == 0 && !f.everywhere) break; /* the rest stands where it is to stand */
        uint64_t own = i ? (uint64_t)(l->idx[i - 1] - l->first) + 1 : 0;
        uint64_t others = j ? (uint64_t)(x->idx[j - 1] - x->first) + 1 : 0;
        bool in_l = own >= others, in_x = others >= own;
        float value = in_l ? l->val[i - 1] : 0.0f;
        if (in_x || f.everywhere) value = f.own * value + f.others * (in_x ? x->val[j - 1] : 0.0f);
        i -= in_l;
        j -= in_x;
        l->idx[at] = l->first + (uint32_t)((in_l ? own : others) - 1);
        l->val[at] = value;
        zeros += word_is_zero(value);
    }
    if (zeros) device_list_drop_zeros(l);
}

/* Zeros stand in the list as well, until device_list_drop_zeros. */
static void make_explicit(struct device_list *l) {
    size_t i = l->nnz;
    device_list_resize(l, l->count, NULL);
    for (size_t at = l->count; at-- > 0;) {
        bool there = i > 0 && l->idx[i - 1] - l->first == at;
        l->val[at] = there ? l->val[i - 1] : 0.0f;
        l->idx[at] = l->first + (uint32_t)at;
        i -= there;
    }
}

static void add_vector(float *to, size_t n, const struct sparse *u, float scale) {
    struct device_list l = device_list_of(to, n);
    struct pairs x = pairs_of_vector(u);
    size_t old = l.nnz;
    device_list_resize(&l, union_size(&l, &x), NULL);
    merge(&l, old, &x, (struct factors){1, scale, false});
}

/* to = factor to + x, both on the device. Returns to. */
static struct device_list add_array(float *to, size_t n, const float *from, float factor) {
    struct device_list l = device_list_of(to, n), source = device_list_of(from, n);
    if (!word_is_zero(factor * 0.0f + 0.0f)) { /* what is not there becomes NaN */
        make_explicit(&l);
        source = device_list_of(from, n);
    }
    struct pairs x = pairs_of_list(&source);
    size_t old = l.nnz;
    device_list_resize(&l, union_size(&l, &x), &source);
    x = pairs_of_list(&source);
    merge(&l, old, &x, (struct factors){factor, 1, true});
    return l;
}

/* -- selections ---------------------------------------------------------------------------------------------------- */

/* Every entry, zeros and all, as far as there is room. */
static void select_all(const struct device_list *l, struct sparse *out) {
    size_t at = 0;
    out->nnz = l->count < out->cap ? l->count : out->cap;
    for (size_t i = 0; i < out->nnz; i++) {
        out->idx[i] = (uint32_t)i;
        out->val[i] = value_at(l, &at, i);
    }
}

static size_t select_list(const struct device_list *l, uint32_t key, struct sparse *out) {
    if (key == 0) {
        select_all(l, out);
        return l->count;
    }
    size_t count = topk_kernels()->compact(l->val, l->nnz, 0, key, out->idx, out->val, out->cap + ROOM);
    out->nnz = count < out->cap ? count : out->cap;
    for (size_t i = 0; i < out->nnz; i++) out->idx[i] = l->idx[out->idx[i]] - l->first; /* was a position in the list */
    return count;
}

static size_t count_list(const struct device_list *l, uint32_t key) {
    return key ? topk_kernels()->count(l->val, l->nnz, key) : l->count;
}

static struct moments moments_of(const struct device_list *l, uint32_t key) {
    struct moment_lanes lanes = {0};
    for (size_t i = 0; i < l->nnz; i++) {
        uint32_t own = magnitude_key(l->val[i]);
        if (own >= key) moment_add(&lanes, l->idx[i] - l->first, l->val[i], own);
    }
    if (key == 0) lanes.count = l->count; /* zeros add zero to every sum */
    return moments_folded(&lanes);
}

/* The k-th largest key, digit by digit from the top (11 + 11 + 9 bits): counts the keys that share the digits found
 * so far by their next digit. Zeros are not in the lists; their number is known. */
static uint32_t kth_of_list(const struct device_list *l, size_t k) {
    enum { DIGITS = 3, BINS = 1 << 11 };
    static const uint32_t shift[DIGITS] = {20, 9, 0}, bins[DIGITS] = {BINS, BINS, 1 << 9};
    uint32_t found = 0, known = 0; /* bits: their values; which they are */
    for (int d = 0; d < DIGITS; d++) {
        uint32_t count[BINS] = {0}, bin = bins[d] - 1;
        for (size_t i = 0; i < l->nnz; i++) {
            uint32_t key = magnitude_key(l->val[i]);
            if ((key & known) == found) count[key >> shift[d] & (bins[d] - 1)]++;
        }
        if (found == 0) count[0] += (uint32_t)(l->count - l->nnz);
        for (; count[bin] < k; bin--) k -= count[bin];
        found |= bin << shift[d];
        known |= (bins[d] - 1) << shift[d];
    }
    return found;
}

/* Entries above `key`, and of those equal to it the first `ties`. */
static void take_top(const struct device_list *l, uint32_t key, size_t ties, struct sparse *out) {
    out->nnz = 0;
    for (size_t i = 0; i < l->nnz; i++) {
        uint32_t own = magnitude_key(l->val[i]);
        if (own < key || (own == key && ties == 0)) continue;
        ties -= own == key;
        out->idx[out->nnz] = l->idx[i] - l->first;
        out->val[out->nnz++] = l->val[i];
    }
}

/* The same for key 0, where the ties are zeros, most of which stand in no list. */
static void take_top_and_zeros(const struct device_list *l, size_t ties, struct sparse *out) {
    size_t at = 0;
    out->nnz = 0;
    for (size_t i = 0; i < l->count && (ties > 0 || at < l->nnz); i++) {
        if (ties == 0) i = l->idx[at] - l->first; /* continue at the next entry */
        bool there = is_at(l, at, i);
        float value = there ? l->val[at] : 0.0f;
        at += there;
        if (magnitude_key(value) == 0 && ties == 0) continue;
        ties -= magnitude_key(value) == 0;
        out->idx[out->nnz] = (uint32_t)i;
        out->val[out->nnz++] = value;
    }
}

/* -- the operations ------------------------------------------------------------------------------------------------ */

static void accumulate(struct store *s, const float *grad) {
    device_sparse_lock();
    add_array(s->acc, s->n, grad, 1);
    device_sparse_unlock();
}

static uint32_t guess_key(struct store *s, const float *grad, size_t k) {
    if (selector_capacity_common(s->n, k) == s->n) return 0;
    size_t lines = sample_lines(s->n), m = lines * SAMPLE_LINE, rank = sample_rank(s->n, m, k);
    uint32_t *key = ((struct scratch *)s->state)->key;
    if (rank >= m) return 0;
    device_sparse_lock();
    struct reader r = reader_of(s, grad);
    for (size_t i = 0; i < m; i++)
        key[i] = key_of_sum(&r, sample_line_at(s->n, lines, (uint32_t)(i / SAMPLE_LINE)) + i % SAMPLE_LINE);
    device_sparse_unlock();
    return key_kth_largest(key, m, rank);
}

static size_t accumulate_select(struct store *s, const float *grad, uint32_t key, struct sparse *out) {
    device_sparse_lock();
    struct device_list l = add_array(s->acc, s->n, grad, 1);
    size_t count = select_list(&l, key, out);
    device_sparse_unlock();
    return count;
}

static size_t select_at(struct store *s, uint32_t key, struct sparse *out) {
    device_sparse_lock();
    struct device_list l = acc_of(s);
    size_t count = select_list(&l, key, out);
    device_sparse_unlock();
    return count;
}

static uint32_t kth_key(struct store *s, size_t k) {
    device_sparse_lock();
    struct device_list l = acc_of(s);
    uint32_t key = kth_of_list(&l, k);
    device_sparse_unlock();
    return key;
}

static void accumulate_top(struct store *s, const float *grad, size_t k, struct sparse *out) {
    device_sparse_lock();
    struct device_list l = add_array(s->acc, s->n, grad, 1);
    uint32_t key = kth_of_list(&l, k);
    size_t ties = k - count_list(&l, key + 1);
    if (key == 0)
        take_top_and_zeros(&l, ties, out);
    else
        take_top(&l, key, ties, out);
    device_sparse_unlock();
}

static size_t accumulate_select_moments(struct store *s, const float *grad, uint32_t key, struct sparse *out,
                                        struct moments *m) {
    device_sparse_lock();
    struct device_list l = add_array(s->acc, s->n, grad, 1);
    *m = moments_of(&l, 0);
    size_t count = select_list(&l, key, out);
    device_sparse_unlock();
    return count;
}

static void moments_above(struct store *s, uint32_t key, struct moments *m) {
    device_sparse_lock();
    struct device_list l = acc_of(s);
    *m = moments_of(&l, key);
    device_sparse_unlock();
}

/* Lanes of one block after the other. */
static void accumulate_squares(struct store *s, const float *grad, size_t block, double *square) {
    memset(square, 0, (s->n + block - 1) / block * sizeof *square);
    device_sparse_lock();
    struct device_list l = add_array(s->acc, s->n, grad, 1);
    for (size_t i = 0; i < l.nnz;) {
        double lane[SQUARE_LANES] = {0};
        size_t at = (l.idx[i] - l.first) / block, from = at * block;
        for (; i < l.nnz && l.idx[i] - l.first - from < block; i++)
            lane[(l.idx[i] - l.first - from) % SQUARE_LANES] += (double)l.val[i] * (double)l.val[i];
        square[at] = squares_fold(lane);
    }
    device_sparse_unlock();
}

static size_t count_above(struct store *s, uint32_t key) {
    device_sparse_lock();
    struct device_list l = acc_of(s);
    size_t count = count_list(&l, key);
    device_sparse_unlock();
    return count;
}

static uint32_t sample_kth_key(struct store *s, const float *grad, size_t first, size_t stride, size_t count,
                               size_t rank, uint32_t *key) {
    device_sparse_lock();
    struct reader r = reader_of(s, grad);
    for (size_t i = 0; i < count; i++) key[i] = key_of_sum(&r, first + i * stride);
    device_sparse_unlock();
    return key_kth_largest(key, count, rank);
}

static void gather_at(struct store *s, const uint32_t *idx, size_t count, float *val) {
    size_t at = 0;
    device_sparse_lock();
    struct device_list l = acc_of(s);
    for (size_t i = 0; i < count; i++) val[i] = value_at(&l, &at, idx[i]);
    device_sparse_unlock();
}

static void zero_at(struct store *s, const uint32_t *idx, size_t count) {
    size_t at = 0;
    device_sparse_lock();
    struct device_list l = acc_of(s);
    for (size_t i = 0; i < count; i++) {
        size_t position = find(&l, &at, idx[i]);
        if (is_at(&l, position, idx[i])) l.val[position] = 0;
    }
    device_list_drop_zeros(&l);
    device_sparse_unlock();
}

static void add_at(struct store *s, const struct sparse *delta) {
    device_sparse_lock();
    add_vector(s->acc, s->n, delta, 1);
    device_sparse_unlock();
}

static void read_part(struct store *s, size_t from, size_t count, float *host) {
    s->device->to_host(host, s->acc + from, count * sizeof *host);
}

static void write_part(struct store *s, size_t from, size_t count, const float *host) {
    s->device->to_device(s->acc + from, host, count * sizeof *host);
}

static void scatter(struct store *s, const struct sparse *u, float scale, float *dense) {
    device_sparse_lock();
    struct device_list l = device_list_of(dense, s->n);
    device_list_resize(&l, u->nnz, NULL);
    for (size_t i = 0; i < u->nnz; i++) {
        l.idx[i] = l.first + u->idx[i];
        l.val[i] = scale * u->val[i];
    }
    device_list_drop_zeros(&l);
    device_sparse_unlock();
}

static void scatter_add(struct store *s, const struct sparse *u, float scale, float *dense) {
    device_sparse_lock();
    add_vector(dense, s->n, u, scale);
    device_sparse_unlock();
}

static void scale_all(struct store *s, float *dense, float scale) {
    device_sparse_lock();
    struct device_list l = device_list_of(dense, s->n);
    if (!word_is_zero(0.0f * scale)) make_explicit(&l);
    for (size_t i = 0; i < l.nnz; i++) l.val[i] *= scale;
    device_list_drop_zeros(&l);
    device_sparse_unlock();
}

static void momentum(struct store *s, float *grad, float mu) {
    device_sparse_lock();
    struct device_list velocity = add_array(s->acc, s->n, grad, mu), to = device_list_of(grad, s->n);
    for (size_t i = 0; i < velocity.nnz; i++) velocity.val[i] = flush_subnormal(velocity.val[i]);
    device_list_drop_zeros(&velocity);
    device_list_resize(&to, velocity.nnz, &velocity);
    for (size_t i = 0; i < to.nnz; i++) to.idx[i] = velocity.idx[i] - velocity.first + to.first;
    if (to.nnz) memcpy(to.val, velocity.val, to.nnz * sizeof *to.val);
    device_sparse_unlock();
}

static size_t nonfinite(struct store *s, const float *dense, size_t n) {
    (void)s;
    device_sparse_lock();
    struct device_list l = device_list_of(dense, n);
    size_t at = first_nonfinite(l.val, l.nnz), bad = at < l.nnz ? l.idx[at] - l.first : n;
    device_sparse_unlock();
    return bad;
}

extern const struct store_ops store_sparse;
const struct store_ops store_sparse = {
    .device = "sparse",
    .open = sparse_store_open,
    .close = sparse_store_close,
    .accumulate = accumulate,
    .guess_key = guess_key,
    .accumulate_select = accumulate_select,
    .select = select_at,
    .kth_key = kth_key,
    .accumulate_top = accumulate_top,
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
