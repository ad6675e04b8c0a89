/* topk_store.c: the operations of the gradient store, one by one.
 *
 * devices: cuda sparse
 */
#include "tests/lib/topk_reference.h"

#include <math.h>

#include "base/mem.h"
#include "topk/store.h"

static void store_operations_body(const void *unused) {
    (void)unused;
    enum { N = 5003 };
    static float x[N], grad[N], wanted[N], back[N];
    struct store s;
    struct sparse out, delta;
    store_open(&s, N, test_device());
    sparse_open(&out, N), sparse_open(&delta, 3);
    s.ops->read(&s, 0, N, back);
    for (size_t i = 0; i < N; i++) CHECK(back[i] == 0, "a new store is zero");
    pattern_fill(NORMAL, x, N, 1), pattern_fill(NORMAL, grad, N, 2);
    float *device_grad = device_twin(grad, N), *dense = device_twin(back, N);
    s.ops->write(&s, 0, N, x);
    s.ops->accumulate(&s, device_grad);
    for (size_t i = 0; i < N; i++) wanted[i] = x[i] + grad[i];
    s.ops->read(&s, 0, N, back);
    CHECK(memcmp(back, wanted, sizeof wanted) == 0, "accumulate, write, read");
    s.ops->read(&s, 100, 7, back);
    CHECK(memcmp(back, wanted + 100, 7 * sizeof(float)) == 0, "read a part");

    uint32_t kth = s.ops->kth_key(&s, 50);
    CHECK(s.ops->select(&s, kth, &out) == 50 && out.nnz == 50 && sparse_valid(&out, N), "kth_key and select");
    out.cap = 20;
    CHECK(s.ops->select(&s, kth, &out) == 50 && out.nnz == 20 && sparse_valid(&out, N), "a list that is too short");
    for (size_t i = 0; i < 20; i++) CHECK(same_bits(out.val[i], wanted[out.idx[i]]), "the first of them");
    out.cap = N;
    CHECK(s.ops->select(&s, UINT32_MAX, &out) == 0 && out.nnz == 0, "nothing reaches that");
    CHECK(s.ops->select(&s, 0, &out) == N && memcmp(out.val, wanted, sizeof wanted) == 0, "all");

    const uint32_t places[] = {0, 17, N - 1};
    s.ops->zero_at(&s, places, 3);
    memcpy(delta.idx, places, sizeof places);
    for (size_t i = 0; i < 3; i++) delta.val[i] = wanted[places[i]];
    delta.nnz = 3;
    s.ops->read(&s, 0, N, back);
    for (size_t i = 0; i < N; i++)
        CHECK(back[i] == (i == 0 || i == 17 || i == N - 1 ? 0 : wanted[i]), "zero_at: %zu", i);
    s.ops->add_at(&s, &delta);
    s.ops->read(&s, 0, N, back);
    CHECK(memcmp(back, wanted, sizeof wanted) == 0, "add_at gives back what zero_at took");

    s.ops->scatter(&s, &delta, 0.25f, dense);
    device_download(back, dense, N);
    for (size_t i = 0; i < N; i++)
        CHECK(back[i] == (i == 0 || i == 17 || i == N - 1 ? 0.25f * wanted[i] : 0), "scatter at %zu", i);
    s.ops->scale(&s, device_grad, 1.0f / 3);
    device_download(grad, device_grad, N);
    pattern_fill(NORMAL, back, N, 2);
    for (size_t i = 0; i < N; i++) CHECK(grad[i] == back[i] * (1.0f / 3), "scale at %zu", i);
    for (size_t i = 0; i < N; i++) {
        float product = 0.9f * wanted[i];
        wanted[i] = product + grad[i];
    }
    s.ops->momentum(&s, device_grad, 0.9f);
    s.ops->read(&s, 0, N, back);
    CHECK(memcmp(back, wanted, sizeof wanted) == 0, "momentum");
    device_download(grad, device_grad, N);
    CHECK(memcmp(grad, wanted, sizeof wanted) == 0, "the velocity in place of the gradient");
    device_twin_free(device_grad, grad), device_twin_free(dense, back);
    sparse_close(&out), sparse_close(&delta);
    store_close(&s);
    store_close(&s); /* harmless */
}

IN_EVERY_SET(store_operations, store_operations_body, NULL)

/* Sums in another order and in long double; max and counts exactly. */
static void check_moments(const float *x, size_t n, uint32_t key, const struct moments *m) {
    long double sum = 0, sum_abs = 0, sum_square = 0;
    size_t count = 0;
    uint32_t most = 0;
    for (size_t i = n; i-- > 0;) {
        if (magnitude_key(x[i]) < key) continue;
        sum += (long double)x[i], sum_abs += fabsl((long double)x[i]);
        sum_square += (long double)x[i] * (long double)x[i];
        most = magnitude_key(x[i]) > most ? magnitude_key(x[i]) : most;
        count++;
    }
    double off = fabs(m->sum - (double)sum), off_abs = fabs(m->sum_abs - (double)sum_abs);
    CHECK(m->count == count && m->max_key == most, "n %zu key %08x: count or largest", n, key);
    CHECK(off <= 1e-13 * (double)sum_abs && off_abs <= 1e-13 * (double)sum_abs, "n %zu key %08x: sums", n, key);
    CHECK(fabs(m->sum_square - (double)sum_square) <= 1e-13 * (double)sum_square, "n %zu key %08x: squares", n, key);
}

/* Each of a few ranks against a full sort. acc = x; grad (device) adds zeros. */
static void check_samples(struct store *s, const float *x, const float *grad, size_t stride, uint32_t *scratch) {
    for (size_t first = 0; first < stride && first < 2; first++) {
        size_t count = (s->n - 1 - first) / stride + 1;
        struct ranked *sorted = mem_alloc(count, sizeof *sorted, "a sorted sample");
        for (size_t i = 0; i < count; i++)
            sorted[i] = (struct ranked){magnitude_key(x[first + i * stride]), (uint32_t)i};
        qsort(sorted, count, sizeof *sorted, by_rank);
        const size_t ranks[] = {1, count / 3 + 1, count};
        for (size_t r = 0; r < 3; r++)
            for (int with = 0; with < 2; with++)
                CHECK(s->ops->sample_kth_key(s, with ? grad : NULL, first, stride, count, ranks[r], scratch) ==
                          sorted[ranks[r] - 1].key,
                      "sample of %zu, first %zu, stride %zu, rank %zu", count, first, stride, ranks[r]);
        mem_free(sorted);
    }
}

/* What selectors use, on a view from `offset` of a longer store. */
static void selection_operations(size_t n, size_t offset) {
    struct store whole, s;
    struct sparse out, again;
    struct moments m;
    float *x = mem_alloc(n, sizeof *x, "x"), *grad = mem_alloc(n, sizeof *x, "grad");
    uint32_t *key = mem_alloc(n, sizeof *key, "keys"), *idx = mem_alloc(n, sizeof *idx, "places");
    float *device_grad = device_twin(grad, n), *all = mem_alloc(n + offset + 5, sizeof *all, "the whole store");
    store_open(&whole, n + offset + 5, test_device()), store_view_open(&s, &whole, offset, n);
    sparse_open(&out, n), sparse_open(&again, n);
    for (enum pattern p = 0; p < PATTERNS; p++) {
        for (size_t i = 0; i < whole.n; i++) all[i] = NAN;
        whole.ops->write(&whole, 0, whole.n, all);
        pattern_fill(p, x, n, n), pattern_fill(SIGNED_ZEROS, grad, n, n);
        device_fill(device_grad, grad, n);
        s.ops->write(&s, 0, n, x);
        uint32_t middle = magnitude_key(x[n / 2]);
        size_t stride = n > 20 ? 7 : 1;
        check_samples(&s, x, device_grad, stride, key);
        CHECK(s.ops->guess_key(&s, device_grad, 1) <= KEY_INFINITE, "a guess that nothing reaches");
        size_t count = s.ops->accumulate_select_moments(&s, device_grad, middle, &out, &m);
        for (size_t i = 0; i < n; i++) x[i] += grad[i];
        check_moments(x, n, 0, &m);
        s.ops->read(&s, 0, n, all);
        CHECK(memcmp(all, x, n * sizeof *x) == 0, "accumulate_select_moments: acc");
        CHECK(count == s.ops->select(&s, middle, &again) && out.nnz == again.nnz && s.ops->count(&s, middle) == count &&
                  memcmp(out.idx, again.idx, count * sizeof *out.idx) == 0 &&
                  memcmp(out.val, again.val, count * sizeof *out.val) == 0,
              "accumulate_select_moments selects as select does");
        s.ops->moments(&s, middle, &m);
        check_moments(x, n, middle, &m);
        s.ops->moments(&s, UINT32_MAX, &m);
        CHECK(m.count == 0 && m.sum == 0 && m.sum_abs == 0 && m.sum_square == 0 && m.max_key == 0, "of nothing");
        for (size_t i = 0; i < n; i++) idx[i] = (uint32_t)(n - 1 - i);
        s.ops->gather_at(&s, idx, n, grad);
        for (size_t i = 0; i < n; i++) CHECK(same_bits(grad[i], x[n - 1 - i]), "gather_at %zu", i);
        whole.ops->read(&whole, 0, whole.n, all);
        for (size_t i = 0; i < whole.n; i++)
            CHECK((i >= offset && i < offset + n) || isnan(all[i]), "outside of the view");
    }
    store_view_close(&s), store_close(&whole);
    sparse_close(&out), sparse_close(&again);
    device_twin_free(device_grad, grad);
    mem_free(x), mem_free(grad), mem_free(key), mem_free(idx), mem_free(all);
}

static void selections_body(const void *unused) {
    (void)unused;
    const size_t sizes[] = {1, 2, 15, 16, 17, 100, 4999, 8200};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t offset = 0; offset < 20; offset += 1 + (test_device_is_emulated() ? 2 * offset : offset / 2))
            selection_operations(sizes[i], offset);
}

IN_EVERY_SET(what_selectors_use, selections_body, NULL)

/* Entry i to lane i % 32, lanes in halves: worked out here once more. */
static double wanted_squares(const float *x, size_t count) {
    double lane[32] = {0};
    for (size_t i = 0; i < count; i++) {
        double wide = (double)x[i], square = wide * wide;
        lane[i % 32] = lane[i % 32] + square;
    }
    for (size_t lanes = 32; lanes > 1; lanes /= 2)
        for (size_t j = 0; j < lanes / 2; j++) lane[j] = lane[j] + lane[j + lanes / 2];
    return lane[0];
}

/* On a view from `offset` of a longer store: acc += grad, nothing around it changes, and the sums to the bit. */
static void squares_of(size_t n, size_t offset, size_t block, enum pattern p) {
    struct store whole, s;
    size_t all = n + offset + 5, blocks = (n + block - 1) / block;
    float *x = mem_alloc(all, sizeof *x, "x"), *grad = mem_alloc(n, sizeof *grad, "grad");
    float *back = mem_alloc(all, sizeof *back, "the whole store"), *device_grad = device_twin(grad, n);
    double *square = mem_alloc(blocks + 1, sizeof *square, "sums of squares");
    store_open(&whole, all, test_device()), store_view_open(&s, &whole, offset, n);
    pattern_fill(p, x, all, n), pattern_fill(NORMAL, grad, n, block);
    device_fill(device_grad, grad, n);
    whole.ops->write(&whole, 0, all, x);
    square[blocks] = -1;
    s.ops->accumulate_squares(&s, device_grad, block, square);
    for (size_t i = 0; i < n; i++) x[offset + i] += grad[i];
    whole.ops->read(&whole, 0, all, back);
    CHECK(memcmp(back, x, all * sizeof *x) == 0, "n %zu offset %zu block %zu: acc", n, offset, block);
    for (size_t b = 0; b < blocks; b++) {
        double wanted = wanted_squares(x + offset + b * block, n - b * block < block ? n - b * block : block);
        CHECK(square[b] == wanted, "n %zu offset %zu: block %zu of %zu", n, offset, b, block);
    }
    CHECK(square[blocks] == -1, "n %zu block %zu: one too many", n, block);
    x[offset + n / 2] = NAN;
    whole.ops->write(&whole, 0, all, x);
    s.ops->accumulate_squares(&s, device_grad, block, square);
    for (size_t b = 0; b < blocks; b++) CHECK(isfinite(square[b]) == (b != n / 2 / block), "a NaN in its block alone");
    store_view_close(&s), store_close(&whole);
    device_twin_free(device_grad, grad);
    mem_free(x), mem_free(grad), mem_free(back), mem_free(square);
}

static void squares_body(const void *unused) {
    (void)unused;
    const size_t sizes[] = {1, 31, 32, 33, 1000, 8200}, blocks[] = {1, 7, 31, 32, 33, 256, 1000, 10000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t j = 0; j < sizeof blocks / sizeof *blocks; j++)
            for (size_t offset = 0; offset < 6; offset += 5) squares_of(sizes[i], offset, blocks[j], NORMAL);
    for (enum pattern p = 0; p < PATTERNS; p++) squares_of(1000, 3, 64, p);
}

IN_EVERY_SET(squares_of_blocks, squares_body, NULL)

static void scatter_add_body(const void *unused) {
    (void)unused;
    enum { N = 40 };
    float dense[N], wanted[N];
    struct store s;
    struct sparse u;
    store_open(&s, N, test_device()), sparse_open(&u, 3);
    pattern_fill(NORMAL, dense, N, 1);
    memcpy(wanted, dense, sizeof wanted);
    float *device_dense = device_twin(dense, N);
    for (size_t i = 0; i < 3; i++) {
        u.idx[i] = (uint32_t)(17 * i), u.val[i] = (float)i + 0.5f;
        wanted[17 * i] += 0.25f * u.val[i];
    }
    u.nnz = 3;
    s.ops->scatter_add(&s, &u, 0.25f, device_dense);
    device_download(dense, device_dense, N);
    CHECK(memcmp(dense, wanted, sizeof wanted) == 0, "scatter_add");
    device_twin_free(device_dense, dense);
    sparse_close(&u), store_close(&s);
}

IN_EVERY_SET(scatter_add, scatter_add_body, NULL)

/* A view outside of its store ends the program. */
static void bad_view(const void *argument) {
    const size_t *range = argument;
    struct store whole, view;
    store_open(&whole, 100, test_device());
    store_view_open(&view, &whole, range[0], range[1]);
    store_close(&whole);
}

static void views_stay_inside(void **state) {
    (void)state;
    const size_t ranges[][2] = {{0, 100}, {100, 0}, {99, 1}, {0, 101}, {100, 1}, {1, SIZE_MAX}, {SIZE_MAX, 2}};
    for (size_t i = 0; i < 7; i++) assert_int_equal(status_of(bad_view, ranges[i], false), i < 3 ? 0 : EXIT_SYSTEM);
}

static void open_store(const void *n) {
    struct store s;
    store_open(&s, *(const size_t *)n, test_device());
    store_close(&s);
}

/* A device that brings its store with it, and one for which there is none. */
static const struct store_ops *brought(void) {
    return stores[0];
}

static void open_on_another_device(const void *brings) {
    struct device_ops device = *device_find("cpu");
    struct store s;
    device.name = "abacus";
    device.store = *(const bool *)brings ? brought : NULL;
    store_open(&s, 10, &device);
    CHECK(s.ops == stores[0], "the store that came with the device");
    store_close(&s);
}

static void a_device_may_bring_its_store(void **state) {
    (void)state;
    const bool brings[] = {true, false};
    assert_string_equal(stores[0]->device, "cpu");
    assert_int_equal(status_of(open_on_another_device, &brings[0], true), 0);
    assert_int_equal(status_of(open_on_another_device, &brings[1], false), EXIT_SYSTEM);
}

static void bare_body(const void *unused) {
    (void)unused;
    struct store bare, view;
    store_open_bare(&bare, 100, test_device());
    store_view_open(&view, &bare, 40, 20);
    CHECK(!bare.acc && !view.acc && view.n == 20, "no residual, nor a view of one");
    store_view_close(&view), store_close(&bare);
}

static void a_view_of_a_bare_store_is_bare(void **state) {
    (void)state;
    assert_int_equal(status_of(bare_body, NULL, true), 0);
}

static void lengths_beyond_32_bits_are_refused(void **state) {
    (void)state;
    const size_t lengths[] = {1, 100, 0, (size_t)1 << 32, ((size_t)1 << 32) + 5, SIZE_MAX};
    for (size_t i = 0; i < 6; i++) assert_int_equal(status_of(open_store, &lengths[i], false), i < 2 ? 0 : EXIT_SYSTEM);
}

int main(void) {
    test_device_in_children();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_operations),
        cmocka_unit_test(what_selectors_use),
        cmocka_unit_test(squares_of_blocks),
        cmocka_unit_test(scatter_add),
        cmocka_unit_test(views_stay_inside),
        cmocka_unit_test(a_device_may_bring_its_store),
        cmocka_unit_test(a_view_of_a_bare_store_is_bare),
        cmocka_unit_test(lengths_beyond_32_bits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
