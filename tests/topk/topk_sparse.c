/* topk_sparse.c: sparse vectors against naive dense and sorting references, and conservation of what is cut. */
#include "tests/lib/topk_reference.h"

#include "base/mem.h"
#include "topk/selector.h"

enum { N_MAX = 70000, PARTS_MAX = 9 };

/* A sparse vector of about `density` * n entries, from small integers, zeros and negative zeros among them. */
static void random_sparse(struct sparse *s, size_t n, double density, struct rng *r) {
    s->nnz = 0;
    for (size_t i = 0; i < n && s->nnz < s->cap; i++) {
        if (rng_uniform(r) >= density) continue;
        s->idx[s->nnz] = (uint32_t)i;
        s->val[s->nnz++] = rng_below(r, 8) ? (float)rng_below(r, 21) - 10 : -0.0f;
    }
}

static void put(struct sparse *s, uint32_t idx, float val) {
    s->idx[s->nnz] = idx;
    s->val[s->nnz++] = val;
}

static void assert_same(const struct sparse *a, const struct sparse *b) {
    assert_int_equal(a->nnz, b->nnz);
    assert_memory_equal(a->idx, b->idx, a->nnz * sizeof *a->idx);
    assert_memory_equal(a->val, b->val, a->nnz * sizeof *a->val);
}

/* The definition: entry by entry, parts in order, the first contribution stored as it is. */
static void naive_sum(const struct sparse *part, size_t count, size_t n, struct sparse *out) {
    static float dense[N_MAX];
    static bool present[N_MAX];
    memset(present, 0, sizeof present);
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; i < part[p].nnz; i++) {
            uint32_t j = part[p].idx[i];
            dense[j] = present[j] ? dense[j] + part[p].val[i] : part[p].val[i];
            present[j] = true;
        }
    out->nnz = 0;
    for (size_t j = 0; j < n; j++)
        if (present[j]) put(out, (uint32_t)j, dense[j]);
}

static void opening(void **state) {
    (void)state;
    struct sparse s;
    sparse_open(&s, 0);
    assert_true(sparse_valid(&s, 1));
    assert_int_equal(sparse_lower_bound(&s, 0), 0);
    memset(s.idx, 0, 16 * sizeof *s.idx); /* the padding is there */
    memset(s.val, 0, 16 * sizeof *s.val);
    sparse_close(&s);
    assert_null(s.idx);
}

static void validity(void **state) {
    (void)state;
    struct sparse s;
    sparse_open(&s, 4);
    put(&s, 0, 1);
    put(&s, 7, 1);
    put(&s, UINT32_MAX - 1, 1);
    assert_true(sparse_valid(&s, UINT32_MAX));
    assert_false(sparse_valid(&s, UINT32_MAX - 1));
    s.idx[1] = 0;
    assert_false(sparse_valid(&s, UINT32_MAX));
    s.nnz = 5;
    s.idx[1] = 7;
    assert_false(sparse_valid(&s, UINT32_MAX));
    sparse_close(&s);
}

static void keys_order_magnitudes(void **state) {
    (void)state;
    assert_int_equal(magnitude_key(0), magnitude_key(-0.0f));
    assert_true(magnitude_key(-2) > magnitude_key(1.5f));
    assert_true(magnitude_key(1e-40f) > 0 && magnitude_key(1e-40f) < magnitude_key(1e-30f));
    assert_true(magnitude_key(-3.4e38f) < KEY_INFINITE);
    assert_int_equal(magnitude_key(-1.0f / 0.0f), KEY_INFINITE);
    assert_true(magnitude_key(0.0f / 0.0f) > KEY_INFINITE);
}

static void lower_bound(void **state) {
    (void)state;
    struct rng r = rng_open(5, RNG_TEST, 0);
    struct sparse s;
    sparse_open(&s, 100);
    for (int round = 0; round < 50; round++) {
        random_sparse(&s, 100, round / 50.0, &r);
        for (uint32_t j = 0; j <= 101; j++) {
            size_t wanted = 0;
            while (wanted < s.nnz && s.idx[wanted] < j) wanted++;
            assert_int_equal(sparse_lower_bound(&s, j), wanted);
        }
        assert_int_equal(sparse_lower_bound(&s, UINT32_MAX), s.nnz);
    }
    sparse_close(&s);
}

static void merge(void **state) {
    (void)state;
    struct rng r = rng_open(6, RNG_TEST, 0);
    struct sparse part[2], out, wanted;
    sparse_open(&part[0], N_MAX), sparse_open(&part[1], N_MAX);
    sparse_open(&out, 2 * N_MAX), sparse_open(&wanted, 2 * N_MAX);
    for (int round = 0; round < 400; round++) {
        size_t n = 1 + rng_below(&r, 300);
        random_sparse(&part[0], n, rng_uniform(&r) * (round % 5 != 0), &r);
        random_sparse(&part[1], n, rng_uniform(&r) * (round % 7 != 0), &r);
        naive_sum(part, 2, n, &wanted);
        sparse_merge(&part[0], &part[1], &out);
        assert_same(&out, &wanted);
    }
    sparse_close(&part[0]), sparse_close(&part[1]), sparse_close(&out), sparse_close(&wanted);
}

static void sum(void **state) {
    (void)state;
    struct rng r = rng_open(7, RNG_TEST, 0);
    struct sparse part[PARTS_MAX], out, wanted;
    for (int p = 0; p < PARTS_MAX; p++) sparse_open(&part[p], N_MAX);
    sparse_open(&out, N_MAX), sparse_open(&wanted, N_MAX);
    void *scratch = mem_alloc(sparse_sum_scratch(PARTS_MAX), 1, "scratch");
    const size_t sizes[] = {1, 2, 63, 64, 65, 8191, 8192, 8193, 20000, 65536, N_MAX};
    const double densities[] = {0, 0.0003, 0.02, 0.5, 1};
    for (size_t size = 0; size < sizeof sizes / sizeof sizes[0]; size++)
        for (size_t count = 0; count <= PARTS_MAX; count++) {
            double density = densities[(size + count) % 5];
            for (size_t p = 0; p < count; p++) random_sparse(&part[p], sizes[size], rng_below(&r, 4) ? density : 0, &r);
            naive_sum(part, count, sizes[size], &wanted);
            sparse_sum(part, count, sizes[size], &out, scratch);
            assert_same(&out, &wanted);
        }
    mem_free(scratch);
    for (int p = 0; p < PARTS_MAX; p++) sparse_close(&part[p]);
    sparse_close(&out), sparse_close(&wanted);
}

/* The order of the parts is the order of the additions: it can be seen in the rounding. */
static void sum_keeps_the_order_of_parts(void **state) {
    (void)state;
    struct sparse part[3], out;
    const float value[3] = {1e8f, -1e8f, 1};
    for (int p = 0; p < 3; p++) sparse_open(&part[p], 1), put(&part[p], 9, value[p]);
    sparse_open(&out, 3);
    void *scratch = mem_alloc(sparse_sum_scratch(3), 1, "scratch");
    sparse_sum(part, 3, 10, &out, scratch);
    assert_true(out.nnz == 1 && out.val[0] == 1);
    part[1].val[0] = 1, part[2].val[0] = -1e8f;
    sparse_sum(part, 3, 10, &out, scratch);
    assert_true(out.nnz == 1 && out.val[0] == 0);
    mem_free(scratch);
    for (int p = 0; p < 3; p++) sparse_close(&part[p]);
    sparse_close(&out);
}

static void indices_near_the_end_of_32_bits(void **state) {
    (void)state;
    struct sparse part[2], out;
    sparse_open(&part[0], 3), sparse_open(&part[1], 3), sparse_open(&out, 6);
    put(&part[0], 5, 1), put(&part[0], UINT32_MAX - 2, 2), put(&part[0], UINT32_MAX - 1, 3);
    put(&part[1], 0x7fffffff, 4), put(&part[1], 0x80000000, 5), put(&part[1], UINT32_MAX - 1, 6);
    void *scratch = mem_alloc(sparse_sum_scratch(2), 1, "scratch");
    const uint32_t idx[] = {5, 0x7fffffff, 0x80000000, UINT32_MAX - 2, UINT32_MAX - 1};
    const float val[] = {1, 4, 5, 2, 9};
    for (int way = 0; way < 2; way++) {
        out.nnz = 0;
        if (way == 0) sparse_sum(part, 2, UINT32_MAX, &out, scratch);
        if (way == 1) sparse_merge(&part[0], &part[1], &out);
        assert_int_equal(out.nnz, 5);
        assert_memory_equal(out.idx, idx, sizeof idx);
        assert_memory_equal(out.val, val, sizeof val);
    }
    assert_true(sparse_valid(&out, UINT32_MAX));
    mem_free(scratch);
    sparse_close(&part[0]), sparse_close(&part[1]), sparse_close(&out);
}

static int descending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static void check_kth(const uint32_t *key, size_t n, size_t k) {
    static uint32_t sorted[20000], work[20000];
    memcpy(sorted, key, n * sizeof *key);
    memcpy(work, key, n * sizeof *key);
    qsort(sorted, n, sizeof *sorted, descending);
    uint32_t found = key_kth_largest(work, n, k);
    if (found != sorted[k - 1]) fail_msg("n %zu k %zu: %08x, %08x wanted", n, k, found, sorted[k - 1]);
}

static void kth_largest(void **state) {
    (void)state;
    static uint32_t key[20000];
    static float value[20000];
    struct rng r = rng_open(8, RNG_TEST, 0);
    const size_t sizes[] = {1, 2, 3, 23, 24, 25, 26, 100, 2047, 2048, 2049, 20000};
    for (size_t size = 0; size < sizeof sizes / sizeof sizes[0]; size++)
        for (int kind = 0; kind < PATTERNS + 4; kind++) {
            size_t n = sizes[size];
            if (kind < (int)PATTERNS) pattern_fill((enum pattern)kind, value, n, size);
            for (size_t i = 0; i < n; i++) {
                if (kind < (int)PATTERNS) key[i] = magnitude_key(value[i]);
                if (kind == (int)PATTERNS) key[i] = rng_u32(&r); /* all 32 bits */
                if (kind == (int)PATTERNS + 1) key[i] = i % 2 ? UINT32_MAX : 0;
                if (kind == (int)PATTERNS + 2) key[i] = 1u << rng_below(&r, 32);         /* a new bin each round */
                if (kind == (int)PATTERNS + 3) key[i] = UINT32_MAX - rng_below(&r, 200); /* one key per bin */
            }
            check_kth(key, n, 1), check_kth(key, n, n), check_kth(key, n, n / 2 + 1);
            for (int some = 0; some < 20; some++) check_kth(key, n, 1 + rng_below(&r, (uint32_t)n));
        }
}

/* All that keep_top promises, for one vector: which stay, which go, both in order, nothing lost. */
static void check_keep_top(const struct sparse *from, size_t k, bool want_dropped) {
    struct sparse s, dropped, back;
    size_t n = from->nnz;
    sparse_open(&s, n), sparse_open(&dropped, n > k ? n - k : 0), sparse_open(&back, n);
    struct ranked *pick = mem_alloc(n, sizeof *pick, "reference");
    uint32_t *keys = mem_alloc(n, sizeof *keys, "keys");
    memcpy(s.idx, from->idx, n * sizeof *s.idx), memcpy(s.val, from->val, n * sizeof *s.val);
    s.nnz = n, dropped.nnz = 99;
    naive_top(from->val, n, k < n ? k : n, pick);
    sparse_keep_top(&s, k, want_dropped ? &dropped : NULL, keys);
    assert_int_equal(s.nnz, k < n ? k : n);
    for (size_t i = 0; i < s.nnz; i++) {
        assert_int_equal(s.idx[i], from->idx[pick[i].idx]);
        assert_true(same_bits(s.val[i], from->val[pick[i].idx]));
    }
    if (want_dropped) {
        assert_int_equal(dropped.nnz, n > k ? n - k : 0);
        assert_true(sparse_valid(&dropped, UINT32_MAX));
        sparse_merge(&s, &dropped, &back); /* conservation: both together are what was there */
        assert_same(&back, from);
    }
    mem_free(pick), mem_free(keys);
    sparse_close(&s), sparse_close(&dropped), sparse_close(&back);
}

static void keep_top_body(const void *unused) {
    (void)unused;
    struct rng r = rng_open(9, RNG_TEST, 0);
    struct sparse from;
    sparse_open(&from, 4000);
    for (int round = 0; round < 300; round++) {
        from.nnz = round < 40 ? (size_t)round : 1 + rng_below(&r, round % 10 ? 300 : 4000);
        pattern_fill((enum pattern)(round % PATTERNS), from.val, from.nnz, (uint64_t)round);
        for (size_t i = 0, at = 0; i < from.nnz; i++) from.idx[i] = (uint32_t)(at += 1 + rng_below(&r, 9));
        size_t ks[] = {0, 1, from.nnz / 2, from.nnz - (from.nnz > 0), from.nnz, from.nnz + 5, rng_below(&r, 300)};
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++)
            for (int dropped = 0; dropped < 2; dropped++) check_keep_top(&from, ks[i], dropped);
    }
    sparse_close(&from);
}

static void keep_top(void **state) {
    (void)state;
    in_every_set(keep_top_body, NULL);
    assert_int_equal(status_of(keep_top_body, NULL, true), 0);
}

/* NaN among the values must not upset the bookkeeping, whatever is kept. */
static void keep_top_with_nan(void **state) {
    (void)state;
    struct sparse s, dropped;
    uint32_t keys[5];
    sparse_open(&s, 5), sparse_open(&dropped, 5);
    for (size_t k = 0; k <= 5; k++) {
        s.nnz = 0;
        for (uint32_t i = 0; i < 5; i++) put(&s, i, i % 2 ? 0.0f / 0.0f : (float)i);
        sparse_keep_top(&s, k, &dropped, keys);
        assert_int_equal(s.nnz, k);
        assert_int_equal(dropped.nnz, 5 - k);
        assert_true(sparse_valid(&s, 5) && sparse_valid(&dropped, 5));
    }
    sparse_close(&s), sparse_close(&dropped);
}

static void split(void **state) {
    (void)state;
    struct rng r = rng_open(10, RNG_TEST, 0);
    struct sparse a, mask, in, out, wanted_in, wanted_out;
    sparse_open(&a, 300), sparse_open(&mask, 300), sparse_open(&in, 300), sparse_open(&out, 300);
    sparse_open(&wanted_in, 300), sparse_open(&wanted_out, 300);
    for (int round = 0; round < 300; round++) {
        size_t n = 1 + rng_below(&r, 300);
        random_sparse(&a, n, rng_uniform(&r) * (round % 5 != 0), &r);
        random_sparse(&mask, n, rng_uniform(&r) * (round % 7 != 0), &r);
        wanted_in.nnz = wanted_out.nnz = 0;
        for (size_t i = 0; i < a.nnz; i++) {
            size_t at = sparse_lower_bound(&mask, a.idx[i]);
            bool hit = at < mask.nnz && mask.idx[at] == a.idx[i];
            put(hit ? &wanted_in : &wanted_out, a.idx[i], a.val[i]);
        }
        sparse_split(&a, &mask, &in, &out);
        assert_same(&in, &wanted_in), assert_same(&out, &wanted_out);
        in.nnz = out.nnz = 0;
        sparse_split(&a, &mask, &in, NULL), sparse_split(&a, &mask, NULL, &out);
        assert_same(&in, &wanted_in), assert_same(&out, &wanted_out);
        sparse_split(&a, &mask, NULL, NULL);
    }
    sparse_close(&a), sparse_close(&mask), sparse_close(&in), sparse_close(&out);
    sparse_close(&wanted_in), sparse_close(&wanted_out);
}

static void densities(void **state) {
    (void)state;
    assert_int_equal(density_to_k(0.001, 1000), 1);
    assert_int_equal(density_to_k(0.001, 999), 1);
    assert_int_equal(density_to_k(0.29, 100), 29); /* 28.999999999999996 in doubles */
    assert_int_equal(density_to_k(0.001, 269722), 269);
    assert_int_equal(density_to_k(0.001, 14728266), 14728);
    assert_int_equal(density_to_k(0.02, 14728266), 294565);
    assert_int_equal(density_to_k(1, 7), 7);
    assert_int_equal(density_to_k(0.9999, 7), 6);
    assert_int_equal(density_to_k(1e-12, 7), 1);
    assert_int_equal(density_to_k(1, UINT32_MAX), UINT32_MAX);
    for (size_t thousandths = 1; thousandths <= 1000; thousandths++)
        for (size_t n = 1000; n < 5000000000u; n *= 10) {
            if (n > UINT32_MAX) break;
            assert_int_equal(density_to_k((double)thousandths / 1000, n), n / 1000 * thousandths);
        }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_top), /* first: it needs a process that has not yet chosen its kernels */
        cmocka_unit_test(opening),
        cmocka_unit_test(validity),
        cmocka_unit_test(keys_order_magnitudes),
        cmocka_unit_test(lower_bound),
        cmocka_unit_test(merge),
        cmocka_unit_test(sum),
        cmocka_unit_test(sum_keeps_the_order_of_parts),
        cmocka_unit_test(indices_near_the_end_of_32_bits),
        cmocka_unit_test(kth_largest),
        cmocka_unit_test(keep_top_with_nan),
        cmocka_unit_test(split),
        cmocka_unit_test(densities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
