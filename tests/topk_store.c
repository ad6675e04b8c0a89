/* topk_store.c: the operations of the gradient store, one by one. */
#include "tests/topk_reference.h"

#include "base/device.h"
#include "topk/store.h"

static void store_operations_body(const void *unused) {
    (void)unused;
    enum { N = 5003 };
    static float x[N], grad[N], wanted[N], back[N];
    struct store s;
    struct sparse out, delta;
    store_open(&s, N, device_find("cpu"));
    sparse_open(&out, N), sparse_open(&delta, 3);
    for (size_t i = 0; i < N; i++) CHECK(s.acc[i] == 0, "a new store is zero");
    pattern_fill(NORMAL, x, N, 1), pattern_fill(NORMAL, grad, N, 2);
    s.ops->write(&s, 0, N, x);
    s.ops->accumulate(&s, grad);
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
    CHECK(s.acc[0] == 0 && s.acc[17] == 0 && s.acc[N - 1] == 0 && s.acc[18] != 0, "zero_at");
    s.ops->add_at(&s, &delta);
    CHECK(memcmp(s.acc, wanted, sizeof wanted) == 0, "add_at gives back what zero_at took");

    s.ops->scatter(&s, &delta, 0.25f, back);
    for (size_t i = 0; i < N; i++)
        CHECK(back[i] == (i == 0 || i == 17 || i == N - 1 ? 0.25f * wanted[i] : 0), "scatter at %zu", i);
    s.ops->scale(&s, grad, 1.0f / 3);
    pattern_fill(NORMAL, back, N, 2);
    for (size_t i = 0; i < N; i++) CHECK(grad[i] == back[i] * (1.0f / 3), "scale at %zu", i);
    sparse_close(&out), sparse_close(&delta);
    store_close(&s);
    store_close(&s); /* harmless */
}

static void store_operations(void **state) {
    (void)state;
    in_every_set(store_operations_body);
}

static void open_store(const void *n) {
    struct store s;
    store_open(&s, *(const size_t *)n, device_find("cpu"));
    store_close(&s);
}

static void lengths_beyond_32_bits_are_refused(void **state) {
    (void)state;
    const size_t lengths[] = {1, 100, 0, (size_t)1 << 32, ((size_t)1 << 32) + 5, SIZE_MAX};
    for (size_t i = 0; i < 6; i++) assert_int_equal(status_of(open_store, &lengths[i], false), i < 2 ? 0 : EXIT_SYSTEM);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_operations),
        cmocka_unit_test(lengths_beyond_32_bits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
