/* topk_store_sparse.c: the gradient store over lists against the one over arrays, bit by bit: both go through the same
 * random operations, over vectors of which much or little is not zero. What it needs of memory is that of its entries.
 */
#include "tests/lib/topk_reference.h"

#include "base/mem.h"
#include "base/sim/device_sparse.h"
#include "topk/selector.h"

enum { STEPS = 40, AROUND = 5, LISTS = 2 };

/* The same store twice, each with a gradient: on the CPU and on the device of lists. */
struct side {
    const struct device_ops *device;
    struct store whole, view;
    float *grad; /* device, [n + AROUND], from the place `shift` on */
    struct sparse out;
};
struct pair {
    struct side side[LISTS];
    size_t n, shift;
    float *host[LISTS]; /* [n + AROUND] */
    uint32_t *idx;      /* [n] */
    struct rng rng;
};

static void pair_open(struct pair *p, size_t n, uint64_t seed) {
    *p = (struct pair){.n = n, .rng = rng_open(seed, RNG_TEST, n)};
    p->shift = rng_below(&p->rng, AROUND);
    p->idx = mem_alloc(n, sizeof *p->idx, "places");
    for (int s = 0; s < LISTS; s++) {
        struct side *x = &p->side[s];
        x->device = device_find(s ? "sparse" : "cpu");
        p->host[s] = mem_zalloc(n + AROUND, sizeof(float), "host");
        x->grad = x->device->alloc((n + AROUND) * sizeof(float), "gradient");
        x->device->zero(x->grad, (n + AROUND) * sizeof(float));
        store_open(&x->whole, n + AROUND, x->device);
        store_view_open(&x->view, &x->whole, p->shift, n);
        sparse_open(&x->out, n);
    }
}

static void pair_close(struct pair *p) {
    for (int s = 0; s < LISTS; s++) {
        struct side *x = &p->side[s];
        store_view_close(&x->view), store_close(&x->whole);
        x->device->release(x->grad);
        sparse_close(&x->out);
        mem_free(p->host[s]);
    }
    mem_free(p->idx);
}

/* x: [count], of which about one in `rare` is not zero. */
static void fill_rare(struct pair *p, float *x, size_t count, uint32_t rare) {
    enum pattern pattern = (enum pattern)rng_below(&p->rng, PATTERNS);
    pattern_fill(pattern, x, count, rng_u32(&p->rng));
    for (size_t i = 0; i < count; i++) x[i] = rng_below(&p->rng, rare) ? 0 : x[i];
    /* sums of which every order rounds otherwise */
    for (size_t i = 0; pattern == NORMAL && i < count; i++) x[i] = ldexpf(x[i], (int)rng_below(&p->rng, 50) - 25);
}

/* New numbers in both stores or both gradients. */
static void refill(struct pair *p, bool grad) {
    static const uint32_t rares[] = {1, 2, 20, 500, UINT32_MAX};
    size_t all = p->n + AROUND;
    fill_rare(p, p->host[0], all, rares[rng_below(&p->rng, 5)]);
    if (rng_below(&p->rng, 8) == 0) p->host[0][rng_below(&p->rng, (uint32_t)all)] = -INFINITY;
    for (int s = 0; s < LISTS; s++) {
        struct side *x = &p->side[s];
        if (grad)
            x->device->to_device(x->grad, p->host[0], all * sizeof(float));
        else
            x->whole.ops->write(&x->whole, 0, all, p->host[0]);
    }
}

/* What has become zero has left the lists. host: what the vector holds. */
static void check_entries(struct pair *p, const float *vector, const float *host) {
    size_t not_zero = 0;
    for (size_t i = 0; i < p->n + AROUND; i++) not_zero += !word_is_zero(host[i]);
    device_sparse_lock();
    size_t entries = device_list_of(vector, p->n + AROUND).nnz;
    device_sparse_unlock();
    CHECK(entries == not_zero, "n %zu: %zu entries, and %zu are not zero", p->n, entries, not_zero);
}

/* An infinity less an infinity is NaN, of which only that it is one is looked at. */
static void check_host(struct pair *p, const char *what) {
    for (size_t i = 0; i < p->n + AROUND; i++) {
        float a = p->host[0][i], b = p->host[1][i];
        CHECK(same_bits(a, b) || (isnan(a) && isnan(b)), "n %zu: %s: entry %zu is %g, not %g", p->n, what, i, (double)b,
              (double)a);
    }
}

static void check_vectors(struct pair *p) {
    for (int s = 0; s < LISTS; s++) p->side[s].whole.ops->read(&p->side[s].whole, 0, p->n + AROUND, p->host[s]);
    check_host(p, "store");
    check_entries(p, p->side[1].whole.acc, p->host[1]);
    for (int s = 0; s < LISTS; s++)
        p->side[s].device->to_host(p->host[s], p->side[s].grad, (p->n + AROUND) * sizeof(float));
    check_host(p, "gradient");
    check_entries(p, p->side[1].grad, p->host[1]);
}

static void check_lists(struct pair *p, const size_t count[LISTS], const char *what) {
    const struct sparse *a = &p->side[0].out, *b = &p->side[1].out;
    CHECK(count[0] == count[1] && a->nnz == b->nnz, "n %zu: %s: %zu of %zu, not %zu of %zu", p->n, what, b->nnz,
          count[1], a->nnz, count[0]);
    for (size_t i = 0; i < a->nnz; i++)
        CHECK(a->idx[i] == b->idx[i] && (same_bits(a->val[i], b->val[i]) || isnan(a->val[i])), "n %zu: %s: pair %zu",
              p->n, what, i);
}

static void check_moments(struct pair *p, const struct moments m[LISTS], const char *what) {
    CHECK(m[0].count == m[1].count, "n %zu: %s: count", p->n, what);
    if (m[0].max_key >= KEY_INFINITE) {
        CHECK(m[1].max_key >= KEY_INFINITE, "n %zu: %s: what is not finite is not seen", p->n, what);
        return;
    }
    CHECK(m[0].max_key == m[1].max_key && memcmp(&m[0].sum, &m[1].sum, sizeof m[0].sum) == 0 &&
              memcmp(&m[0].sum_abs, &m[1].sum_abs, sizeof m[0].sum) == 0 &&
              memcmp(&m[0].sum_square, &m[1].sum_square, sizeof m[0].sum) == 0,
          "n %zu: %s: sums are not the same bits", p->n, what);
}

/* A key of an entry, or a special one; the largest of entries that are not finite may differ. */
static uint32_t some_key(struct pair *p) {
    static const uint32_t special[] = {0, 1, KEY_INFINITE, UINT32_MAX};
    uint32_t at = rng_below(&p->rng, (uint32_t)p->n);
    float value;
    p->side[0].view.ops->gather_at(&p->side[0].view, &at, 1, &value);
    uint32_t key = magnitude_key(value) + rng_below(&p->rng, 2);
    if (rng_below(&p->rng, 3) == 0) return special[rng_below(&p->rng, 4)];
    return key < KEY_INFINITE ? key : KEY_INFINITE;
}

static bool same_key(uint32_t a, uint32_t b) {
    return a == b || (a > KEY_INFINITE && b > KEY_INFINITE);
}

/* -- one step each, on both sides ---------------------------------------------------------------------------------- */

static void selections(struct pair *p) {
    struct moments m[LISTS] = {0};
    size_t count[LISTS] = {0}, cap = rng_below(&p->rng, (uint32_t)p->n + 1);
    uint32_t key = some_key(p), which = rng_below(&p->rng, 5);
    for (int s = 0; s < LISTS; s++) {
        struct store *view = &p->side[s].view;
        struct sparse *out = &p->side[s].out;
        const float *grad = p->side[s].grad + p->shift;
        out->cap = cap, out->nnz = 0;
        if (which == 0) view->ops->accumulate(view, grad);
        if (which == 1) count[s] = view->ops->accumulate_select(view, grad, key, out);
        if (which == 2) count[s] = view->ops->accumulate_select_moments(view, grad, key, out, &m[s]);
        if (which == 3) count[s] = view->ops->select(view, key, out);
        if (which == 4) view->ops->moments(view, key, &m[s]), count[s] = view->ops->count(view, key);
    }
    check_lists(p, count, "selection");
    check_moments(p, m, "selection");
}

static void searches(struct pair *p) {
    size_t k = 1 + rng_below(&p->rng, (uint32_t)(rng_below(&p->rng, 2) ? p->n : (p->n + 63) / 64));
    size_t stride = 1 + rng_below(&p->rng, 9) % p->n, first = rng_below(&p->rng, (uint32_t)stride);
    size_t count = (p->n - 1 - first) / stride + 1, rank = 1 + rng_below(&p->rng, (uint32_t)count);
    bool with = rng_below(&p->rng, 2);
    uint32_t sampled[LISTS], guess[LISTS], kth[LISTS];
    for (int s = 0; s < LISTS; s++) {
        struct store *view = &p->side[s].view;
        const float *grad = p->side[s].grad + p->shift;
        sampled[s] = view->ops->sample_kth_key(view, with ? grad : NULL, first, stride, count, rank, p->idx);
        guess[s] = view->ops->guess_key(view, with ? grad : NULL, k);
        kth[s] = view->ops->kth_key(view, k);
    }
    CHECK(same_key(sampled[0], sampled[1]), "n %zu: sample of %zu by %zu, rank %zu", p->n, count, stride, rank);
    CHECK(same_key(guess[0], guess[1]) && same_key(kth[0], kth[1]), "n %zu: guess or key of rank %zu", p->n, k);
}

static void entries(struct pair *p) {
    static const float scales[] = {0.25f, 1, 1.0f / 3, 0, -1, 1e-30f, INFINITY, NAN};
    const float scale = scales[rng_below(&p->rng, rng_below(&p->rng, 4) ? 4 : 8)];
    uint32_t part = 1 + rng_below(&p->rng, 40), which = rng_below(&p->rng, 7);
    struct sparse *u = &p->side[0].out;
    u->nnz = 0, u->cap = p->n;
    for (uint32_t i = 0; i < p->n; i++) {
        if (rng_below(&p->rng, part)) continue;
        u->idx[u->nnz] = i;
        u->val[u->nnz++] = rng_below(&p->rng, 9) ? (float)rng_normal(&p->rng) : 0.0f * (rng_below(&p->rng, 2) ? 1 : -1);
    }
    if (which < 2) /* in any order, and more than once */
        for (size_t i = 0; i < u->nnz; i++) u->idx[i] = rng_below(&p->rng, (uint32_t)p->n);
    for (int s = 0; s < LISTS; s++) {
        struct store *view = &p->side[s].view;
        float *grad = p->side[s].grad + p->shift;
        if (which == 0) view->ops->zero_at(view, u->idx, u->nnz);
        if (which == 1) view->ops->gather_at(view, u->idx, u->nnz, p->host[s]);
        if (which == 2) view->ops->add_at(view, u);
        if (which == 3) view->ops->scatter(view, u, scale, grad);
        if (which == 4) view->ops->scatter_add(view, u, scale, grad);
        if (which == 5) view->ops->momentum(view, grad, scale);
        if (which == 6) view->ops->scale(view, grad, scale);
    }
    for (size_t i = 0; which == 1 && i < u->nnz; i++)
        CHECK(same_bits(p->host[0][i], p->host[1][i]) || isnan(p->host[0][i]), "n %zu: gather_at %zu", p->n, i);
    size_t bad[LISTS];
    for (int s = 0; s < LISTS; s++)
        bad[s] = p->side[s].view.ops->first_nonfinite(&p->side[s].view, p->side[s].grad + p->shift, p->n);
    CHECK(bad[0] == bad[1], "n %zu: first_nonfinite is %zu, not %zu", p->n, bad[1], bad[0]);
}

static void same_bits_body(const void *unused) {
    (void)unused;
    const size_t sizes[] = {1, 2, 3, 15, 16, 17, 40, 100, 1030, 5000, 30001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint64_t seed = 0; seed < (sizes[i] > 5000 ? 1 : sizes[i] > 200 ? 6 : 30); seed++) {
            struct pair p;
            pair_open(&p, sizes[i], seed);
            for (int step = 0; step < STEPS; step++) {
                if (step == 0 || rng_below(&p.rng, 4) == 0) refill(&p, false);
                if (step == 0 || rng_below(&p.rng, 4) == 0) refill(&p, true);
                mem_fail_at(1); /* nothing allocates */
                static void (*const kinds[])(struct pair *) = {selections, searches, entries};
                kinds[rng_below(&p.rng, 3)](&p);
                mem_fail_at(0);
                check_vectors(&p);
            }
            pair_close(&p);
        }
}

IN_EVERY_SET(the_bits_of_the_store_over_arrays, same_bits_body, NULL)

/* -- the exact selection, which is an operation of this store ------------------------------------------------------ */

/* acc = x, then the k largest of it and a gradient of nothing. x: [n] */
static void check_top(const float *x, size_t n) {
    const struct device_ops *sparse = device_find("sparse");
    struct ranked *pick = mem_alloc(n, sizeof *pick, "reference");
    struct store s;
    struct sparse out;
    float *grad = sparse->alloc(n * sizeof *grad, "gradient");
    store_open(&s, n, sparse), sparse_open(&out, n);
    for (size_t k = 1; k <= n; k++) {
        s.ops->write(&s, 0, n, x);
        naive_top(x, n, k, pick);
        s.ops->accumulate_top(&s, grad, k, &out);
        CHECK(out.nnz == k && sparse_valid(&out, n), "n %zu k %zu: %zu entries", n, k, out.nnz);
        for (size_t i = 0; i < k; i++)
            CHECK(out.idx[i] == pick[i].idx && out.val[i] == x[pick[i].idx], "n %zu k %zu: entry %zu", n, k, i);
    }
    store_close(&s), sparse_close(&out);
    sparse->release(grad);
    mem_free(pick);
}

static void top_body(const void *unused) {
    (void)unused;
    float x[60];
    struct rng r = rng_open(3, RNG_TEST, 3);
    for (enum pattern p = 0; p < PATTERNS; p++)
        for (size_t n = 1; n <= 60; n += 1 + n / 8)
            for (uint32_t rare = 1; rare < 100; rare = 3 * rare + 1) {
                pattern_fill(p, x, n, n);
                for (size_t i = 0; i < n; i++) x[i] = rng_below(&r, rare) ? 0 : x[i];
                check_top(x, n);
            }
}

IN_EVERY_SET(the_largest_with_zeros_among_them, top_body, NULL)

/* -- a long vector that is nearly all zero ------------------------------------------------------------------------- */

/* Gradient, residual and selection of 1000 entries among 14.7 million: all of it takes less than a quarter of one
 * array. */
static void memory_body(const void *unused) {
    (void)unused;
    enum { N = 14728266, ENTRIES = 4000, K = 1000 };
    const struct device_ops *sparse = device_find("sparse");
    size_t before = mem_resident(), bad;
    for (size_t row = 0; selectors[row]; row++) {
        struct store s;
        struct sparse u, out;
        store_open(&s, N, sparse), sparse_open(&u, ENTRIES);
        sparse_open(&out, selector_capacity(selectors[row], N, K));
        float *grad = sparse->alloc(N * sizeof *grad, "gradient");
        struct selector *selector = selector_open(selectors[row], &s, K, NULL);
        for (uint32_t step = 0; step < 3; step++) {
            struct rng r = rng_open(step, RNG_TEST, 4);
            for (uint32_t i = 0; i < ENTRIES; i++) {
                u.idx[i] = N / ENTRIES * i + 17 * step;
                u.val[i] = (float)rng_normal(&r);
            }
            u.nnz = ENTRIES;
            s.ops->scatter(&s, &u, 1, grad);
            CHECK(selector_run(selector, grad, K, &out, &bad), "%s", selectors[row]->name);
            CHECK(out.nnz > 0 && sparse_valid(&out, N), "%s: %zu found", selectors[row]->name, out.nnz);
            s.ops->zero_at(&s, out.idx, out.nnz);
        }
        size_t used = mem_resident() - before;
        CHECK(before == 0 || used < (size_t)N, "%s: %zu bytes", selectors[row]->name, used);
        selector_close(selector);
        sparse->release(grad);
        store_close(&s), sparse_close(&u), sparse_close(&out);
    }
}

static void memory_is_that_of_the_entries(void **state) {
    (void)state;
    assert_int_equal(status_of(memory_body, NULL, true), 0);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_of_the_store_over_arrays),
        cmocka_unit_test(the_largest_with_zeros_among_them),
        cmocka_unit_test(memory_is_that_of_the_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
