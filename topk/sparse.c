/* sparse.c: sparse vectors in coordinate form, see sparse.h. The loops over two sorted lists avoid branches on
 * the data: which list is ahead is random, and a wrong prediction costs more than the step itself. */
#include "topk/sparse.h"

#include "base/mem.h"
#include "base/simd.h"
#include "topk/cpu/kernels.h"

enum {
    PADDING = 16,    /* entries that vector code may write past cap */
    BLOCK_BITS = 13, /* sparse_sum works on 8192 entries at a time: 32 KiB of sums stay in the first-level cache */
    BLOCK = 1 << BLOCK_BITS,
    WORDS = BLOCK / 64 /* of the bitmap of a block */
};

void sparse_open(struct sparse *s, size_t cap) {
    s->idx = mem_pinned_alloc(cap + PADDING, sizeof *s->idx, "indices of a sparse vector");
    s->val = mem_pinned_alloc(cap + PADDING, sizeof *s->val, "values of a sparse vector");
    s->nnz = 0;
    s->cap = cap;
}

void sparse_close(struct sparse *s) {
    mem_pinned_free(s->idx);
    mem_pinned_free(s->val);
    *s = (struct sparse){0};
}

/* Every message that comes is looked at: no branch on the data, so that it takes vectors. */
SIMD_CLONES static bool increasing(const uint32_t *idx, size_t n) {
    uint32_t wrong = 0;
    for (size_t i = 1; i < n; i++) wrong |= idx[i - 1] >= idx[i];
    return wrong == 0;
}

bool sparse_valid(const struct sparse *s, size_t n) {
    if (s->nnz > s->cap) return false;
    return s->nnz == 0 || (increasing(s->idx, s->nnz) && s->idx[s->nnz - 1] < n);
}

size_t index_lower_bound(const uint32_t *idx, size_t count, uint32_t index) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (idx[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* -0 is the neutral element of addition: -0 + x has the bits of x for every x, while 0 + -0 loses the sign. */
void sparse_merge(const struct sparse *a, const struct sparse *b, struct sparse *out) {
    size_t i = 0, j = 0, count = 0;
    while (i < a->nnz && j < b->nnz) {
        uint32_t of_a = a->idx[i], of_b = b->idx[j];
        bool use_a = of_a <= of_b, use_b = of_b <= of_a;
        const float x[2] = {-0.0f, a->val[i]}, y[2] = {-0.0f, b->val[j]};
        out->idx[count] = use_a ? of_a : of_b;
        out->val[count++] = x[use_a] + y[use_b];
        i += use_a;
        j += use_b;
    }
    out->nnz = count;
    struct sparse rest_a = sparse_slice(a, i, a->nnz), rest_b = sparse_slice(b, j, b->nnz);
    sparse_append(out, &rest_a);
    sparse_append(out, &rest_b);
}

/* sums: one block, -0 everywhere between blocks; present: a bit per entry that got a contribution. */
struct sum_scratch {
    float sums[BLOCK];
    uint64_t present[WORDS];
    size_t next[]; /* [count]: first entry of each part that is not yet added */
};

size_t sparse_sum_scratch(size_t count) {
    return sizeof(struct sum_scratch) + count * sizeof(size_t);
}

/* The smallest index not yet added, or SIZE_MAX when all are. */
static size_t first_left(const struct sparse *part, size_t count, const size_t *next) {
    size_t first = SIZE_MAX;
    for (size_t p = 0; p < count; p++)
        if (next[p] < part[p].nnz && part[p].idx[next[p]] < first) first = part[p].idx[next[p]];
    return first;
}

/* Writes the sums of the block that begins at `begin` to the end of out and clears the block. */
static void emit_block(struct sum_scratch *w, size_t begin, struct sparse *out) {
    size_t count = out->nnz;
    for (size_t word = 0; word < WORDS; word++) {
        for (uint64_t bits = w->present[word]; bits; bits &= bits - 1) {
            size_t j = word * 64 + (size_t)__builtin_ctzll(bits);
            out->idx[count] = (uint32_t)(begin + j);
            out->val[count++] = w->sums[j];
            w->sums[j] = -0.0f;
        }
        w->present[word] = 0;
    }
    out->nnz = count;
}

void sparse_sum(const struct sparse *part, size_t count, size_t n, struct sparse *out, void *scratch) {
    struct sum_scratch *w = scratch;
    for (size_t j = 0; j < BLOCK; j++) w->sums[j] = -0.0f;
    memset(w->present, 0, sizeof w->present);
    memset(w->next, 0, count * sizeof w->next[0]);
    out->nnz = 0;
    size_t first;
    while ((first = first_left(part, count, w->next)) < n) {
        size_t begin = first >> BLOCK_BITS << BLOCK_BITS, end = begin + BLOCK;
        for (size_t p = 0; p < count; p++) {
            size_t i = w->next[p];
            for (; i < part[p].nnz && part[p].idx[i] < end; i++) {
                size_t j = part[p].idx[i] - begin;
                w->sums[j] += part[p].val[i];
                w->present[j / 64] |= (uint64_t)1 << j % 64;
            }
            w->next[p] = i;
        }
        emit_block(w, begin, out);
    }
}

SIMD_CLONES static void keys_of(const float *val, size_t n, uint32_t *keys) {
    for (size_t i = 0; i < n; i++) keys[i] = magnitude_key(val[i]);
}

uint32_t sparse_kth_key(const struct sparse *s, size_t k, uint32_t *keys) {
    if (k == 0) return UINT32_MAX;
    keys_of(s->val, s->nnz, keys);
    return key_kth_largest(keys, s->nnz, k);
}

/* Keeps what is above `key` and the first of those equal to it, k together; drops nnz - k > 0 entries. */
static void cut_at(struct sparse *s, size_t k, uint32_t key, struct sparse *dropped) {
    /* Every entry is written to both lists and one of the two counts moves on: no branch on the data. */
    size_t ties = k, drop = s->nnz - k, kept = 0, gone = 0, i = 0;
    for (size_t j = 0; j < s->nnz; j++) ties -= magnitude_key(s->val[j]) > key;
    for (; gone < drop; i++) {
        uint32_t index = s->idx[i], its_key = magnitude_key(s->val[i]);
        float value = s->val[i];
        bool tie = (its_key == key) & (ties > 0), stays = (its_key > key) | tie;
        ties -= tie;
        if (dropped) {
            dropped->idx[gone] = index;
            dropped->val[gone] = value;
        }
        s->idx[kept] = index;
        s->val[kept] = value;
        kept += stays;
        gone += !stays;
    }
    memmove(s->idx + kept, s->idx + i, (s->nnz - i) * sizeof *s->idx);
    memmove(s->val + kept, s->val + i, (s->nnz - i) * sizeof *s->val);
    s->nnz = k;
    if (dropped) dropped->nnz = drop;
}

void sparse_keep_top(struct sparse *s, size_t k, struct sparse *dropped, uint32_t *keys) {
    if (dropped) dropped->nnz = 0;
    if (s->nnz <= k) return;
    uint32_t key = sparse_kth_key(s, k, keys);
    if (!dropped) s->nnz = topk_kernels()->filter(s->idx, s->val, s->nnz, key);
    if (s->nnz > k) cut_at(s, k, key, dropped); /* of the filtered: more ties than there is room for */
}

/* Every entry of a is written to both lists, one of whose counts moves on. */
void sparse_split(const struct sparse *a, const struct sparse *mask, struct sparse *in, struct sparse *out) {
    uint32_t no_idx;
    float no_val;
    struct sparse nowhere = {&no_idx, &no_val, 0, 0}, *to = in ? in : &nowhere, *other = out ? out : &nowhere;
    const size_t to_moves = in != NULL, other_moves = out != NULL;
    size_t i = 0, j = 0, inside = 0, outside = 0;
    while (i < a->nnz && j < mask->nnz) {
        const uint32_t index = a->idx[i], next = mask->idx[j];
        const bool passes = index <= next, hit = index == next;
        const float value = a->val[i];
        to->idx[inside] = index;
        to->val[inside] = value;
        other->idx[outside] = index;
        other->val[outside] = value;
        inside += hit & to_moves;
        outside += (passes & !hit) & other_moves;
        i += passes;
        j += next <= index;
    }
    to->nnz = inside;
    other->nnz = outside;
    const struct sparse rest = sparse_slice(a, i, a->nnz);
    if (out) sparse_append(out, &rest);
}
