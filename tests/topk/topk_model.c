/* topk_model.c: random sequences of all operations of the gradient store against plain loops over a copy of it: lengths
 * and places of every alignment, lists too short for what is selected, what lies around a vector, values that are hard
 * for selections, and the state that a store keeps from one call to the next.
 *
 * devices: cuda sparse
 */
#include "tests/lib/stored.h"
#include "tests/lib/topk_reference.h"

#include "base/mem.h"
#include "topk/sample.h"
#include "topk/selector.h"
#include "topk/store.h"

enum { AROUND = 9, STEPS = 24, PADDING = 16 };

/* What lies around vectors and fills what is still to be written. */
static const uint32_t poison = 0xffc0dead;

/* A store, a view of it from `from`, and a second vector on the device beginning `to` behind a boundary. */
struct model {
    struct store whole, view;
    size_t n, from, to, all;
    float *acc;                  /* host, [all]: what the whole store should hold */
    float *other, *device_other; /* host and device, [all]: what the second vector should hold: at `to`, n entries */
    float *back;                 /* host, [all] */
    struct ranked *rank;         /* [n] */
    uint32_t *keys;              /* [n] */
    double *square;              /* [n] */
    struct sparse list[2], out; /* in page-locked memory and not, where a device makes a difference; one of them: [n] */
    struct rng rng;
};

/* Not a number is one thing here: what its bits are after an addition is up to the processor. */
static bool same(float a, float b) {
    return same_bits(a, b) || (isnan(a) && isnan(b));
}
static bool same_key(uint32_t a, uint32_t b) {
    return a == b || (a > KEY_INFINITE && b > KEY_INFINITE);
}

static void fill_poison(float *x, size_t count) {
    for (size_t i = 0; i < count; i++) memcpy(x + i, &poison, sizeof poison);
}

static void model_open(struct model *m, size_t n, uint64_t seed) {
    m->rng = rng_open(seed, RNG_TEST, n);
    m->n = n, m->from = rng_below(&m->rng, AROUND), m->to = rng_below(&m->rng, AROUND), m->all = n + AROUND;
    m->acc = mem_alloc(m->all, sizeof *m->acc, "acc"), m->other = mem_alloc(m->all, sizeof *m->other, "other");
    m->back = mem_alloc(m->all, sizeof *m->back, "back"), m->rank = mem_alloc(n, sizeof *m->rank, "ranks");
    m->keys = mem_alloc(n, sizeof *m->keys, "keys"), m->square = mem_alloc(n, sizeof *m->square, "sums of squares");
    store_open(&m->whole, m->all, test_device()), store_view_open(&m->view, &m->whole, m->from, n);
    sparse_open(&m->list[0], n), m->out = m->list[0];
    m->list[1].idx = mem_alloc(n + PADDING, sizeof *m->list[1].idx, "indices");
    m->list[1].val = mem_alloc(n + PADDING, sizeof *m->list[1].val, "values");
    m->device_other = test_device()->alloc(m->all * sizeof *m->other, "a second vector");
    fill_poison(m->acc, m->all), fill_poison(m->other, m->all);
    m->whole.ops->write(&m->whole, 0, m->all, m->acc);
}

static void model_close(struct model *m) {
    test_device()->release(m->device_other);
    sparse_close(&m->list[0]), mem_free(m->list[1].idx), mem_free(m->list[1].val);
    store_view_close(&m->view), store_close(&m->whole);
    mem_free(m->acc), mem_free(m->other), mem_free(m->back), mem_free(m->rank), mem_free(m->keys), mem_free(m->square);
}

/* Both vectors are what they should be, bit by bit, and so is what lies around them. */
static void check_vectors(struct model *m, const char *after) {
    m->whole.ops->read(&m->whole, 0, m->all, m->back);
    for (size_t i = 0; i < m->all; i++)
        CHECK(same(m->back[i], m->acc[i]), "n %zu from %zu: entry %zu after %s", m->n, m->from, i, after);
    test_device()->to_host(m->back, m->device_other, m->all * sizeof *m->back);
    for (size_t i = 0; i < m->all; i++)
        CHECK(same(m->back[i], m->other[i]), "n %zu to %zu: second vector, %zu after %s", m->n, m->to, i, after);
}

/* New values in both; with `bad`, some that are not finite in the first. */
static void refill(struct model *m, bool bad) {
    enum pattern p = (enum pattern)rng_below(&m->rng, PATTERNS), q = rng_below(&m->rng, 2) ? NORMAL : SIGNED_ZEROS;
    pattern_fill(p, m->acc + m->from, m->n, rng_u32(&m->rng));
    pattern_fill(q, m->other + m->to, m->n, rng_u32(&m->rng));
    if (q == NORMAL)
        for (size_t i = 0; i < m->n; i++) m->other[m->to + i] *= 0.01f;
    for (int i = 0; bad && i < 3; i++) m->acc[m->from + rng_below(&m->rng, (uint32_t)m->n)] = i ? NAN : -INFINITY;
    m->view.ops->write(&m->view, 0, m->n, m->acc + m->from);
    test_device()->to_device(m->device_other, m->other, m->all * sizeof *m->other);
}

static float *grad_of(struct model *m) {
    return m->device_other + m->to;
}

static void add_grad(struct model *m) {
    for (size_t i = 0; i < m->n; i++) m->acc[m->from + i] += m->other[m->to + i];
}

/* A key that some entries have, or none, or all reach. */
static uint32_t some_key(struct model *m) {
    switch (rng_below(&m->rng, 8)) {
    case 0:
        return 0;
    case 1:
        return UINT32_MAX;
    case 2:
        return KEY_INFINITE;
    }
    uint32_t key = magnitude_key(m->acc[m->from + rng_below(&m->rng, (uint32_t)m->n)]) + rng_below(&m->rng, 2);
    return key < KEY_INFINITE ? key : KEY_INFINITE;
}

/* An empty list with room for some or all, full of poison. */
static struct sparse *some_list(struct model *m) {
    m->out = m->list[rng_below(&m->rng, 2)];
    m->out.cap = rng_below(&m->rng, 3) ? m->n : rng_below(&m->rng, (uint32_t)m->n + 1);
    for (size_t i = 0; i < m->n; i++) m->out.idx[i] = poison;
    fill_poison(m->out.val, m->n);
    m->out.nnz = 12345;
    return &m->out;
}

/* The list holds the first cap of all entries that reach `key`, and nothing is written behind its cap (but for the
 * padding that vectors of processors use). */
static void check_list(struct model *m, uint32_t key, size_t count) {
    const float *x = m->acc + m->from;
    size_t seen = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (magnitude_key(x[i]) < key) continue;
        if (seen < m->out.cap)
            CHECK(m->out.idx[seen] == i && same(m->out.val[seen], x[i]), "n %zu key %08x: pair %zu", m->n, key, seen);
        seen++;
    }
    CHECK(count == seen && m->out.nnz == (seen < m->out.cap ? seen : m->out.cap), "n %zu key %08x: %zu, not %zu", m->n,
          key, count, seen);
    for (size_t i = m->out.cap + PADDING; i < m->n; i++)
        CHECK(m->out.idx[i] == poison, "n %zu cap %zu: written at %zu", m->n, m->out.cap, i);
}

/* What the store says of the entries in the list is true; a GPU says it of every list that has room for all. */
static void check_seen(struct model *m, size_t count, bool probed) {
    const struct store_seen *seen = &m->view.seen;
    uint32_t least = UINT32_MAX, most = 0;
    size_t reaching = 0;
    if (strcmp(m->view.ops->device, "cuda") == 0 && probed)
        CHECK(seen->known == (count <= m->out.cap), "n %zu: %zu of %zu: known %d", m->n, count, m->out.cap,
              seen->known);
    if (!seen->known) return;
    for (size_t i = 0; i < m->out.nnz; i++) {
        const uint32_t key = magnitude_key(m->out.val[i]);
        least = key < least ? key : least, most = key > most ? key : most;
        reaching += key >= m->view.probe;
    }
    CHECK(same_key(seen->least, least) && same_key(seen->most, most) && (!probed || seen->reaching == reaching),
          "n %zu: keys %08x to %08x, not %08x to %08x; %zu reach %08x, not %zu", m->n, seen->least, seen->most, least,
          most, seen->reaching, m->view.probe, reaching);
}

static void check_sums(struct model *m, uint32_t key, const struct moments *found) {
    long double sum = 0, sum_abs = 0, sum_square = 0;
    struct moments wanted = {0};
    for (size_t i = m->n; i-- > 0;) {
        float x = m->acc[m->from + i];
        if (magnitude_key(x) < key) continue;
        sum += (long double)x, sum_abs += fabsl((long double)x), sum_square += (long double)x * (long double)x;
        wanted.max_key = magnitude_key(x) > wanted.max_key ? magnitude_key(x) : wanted.max_key;
        wanted.count++;
    }
    CHECK(found->count == wanted.count && same_key(found->max_key, wanted.max_key), "n %zu: count or largest", m->n);
    if (wanted.max_key >= KEY_INFINITE) return;
    double close = 1e-13 * (double)sum_abs;
    CHECK(fabs(found->sum - (double)sum) <= close && fabs(found->sum_abs - (double)sum_abs) <= close &&
              fabs(found->sum_square - (double)sum_square) <= 1e-13 * (double)sum_square,
          "n %zu: sums", m->n);
}

/* The order of the sums is held to the bit in topk_store.c. */
static void check_squares(struct model *m, size_t block, const double *square) {
    for (size_t from = 0; from < m->n; from += block, square++) {
        long double sum = 0;
        bool finite = true;
        for (size_t i = from; i < m->n && i < from + block; i++) {
            float x = m->acc[m->from + i];
            finite = finite && magnitude_key(x) < KEY_INFINITE;
            sum += (long double)x * (long double)x;
        }
        CHECK(isfinite(*square) == finite && (!finite || fabs(*square - (double)sum) <= 1e-13 * (double)sum),
              "n %zu: squares of a block of %zu", m->n, block);
    }
}

static uint32_t kth_of(struct model *m, const float *x, const float *y, size_t first, size_t stride, size_t count,
                       size_t rank) {
    for (size_t i = 0; i < count; i++) {
        size_t at = first + i * stride;
        m->rank[i] = (struct ranked){magnitude_key(y ? x[at] + y[at] : x[at]), (uint32_t)i};
    }
    sort_by_rank(m->rank, count);
    return m->rank[rank - 1].key;
}

/* What the sample of sample.h says, found by sorting it. */
static uint32_t guess_of(struct model *m, size_t k) {
    const float *x = m->acc + m->from, *y = m->other + m->to;
    size_t lines = sample_lines(m->n), count = lines * SAMPLE_LINE, rank = sample_rank(m->n, count, k);
    if (selector_capacity(NULL, m->n, k) == m->n || rank >= count) return 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = sample_line_at(m->n, lines, (uint32_t)(i / SAMPLE_LINE)) + i % SAMPLE_LINE;
        m->rank[i] = (struct ranked){magnitude_key(x[at] + y[at]), (uint32_t)i};
    }
    sort_by_rank(m->rank, count);
    return m->rank[rank - 1].key;
}

/* Exactly the k largest. */
static void check_top(struct model *m, size_t k) {
    naive_top(m->acc + m->from, m->n, k, m->rank);
    CHECK(m->out.nnz == k, "n %zu k %zu: %zu found", m->n, k, m->out.nnz);
    for (size_t i = 0; i < k; i++)
        CHECK(m->out.idx[i] == m->rank[i].idx && same(m->out.val[i], m->acc[m->from + m->rank[i].idx]),
              "n %zu k %zu: pair %zu", m->n, k, i);
}

/* -- one step each ------------------------------------------------------------------------------------------------- */

static void selections(struct model *m) {
    const struct store_ops *ops = m->view.ops;
    struct moments sums;
    uint32_t key = some_key(m);
    size_t count, block = 1 + rng_below(&m->rng, (uint32_t)(m->n + m->n / 4));
    m->view.probe = key < KEY_INFINITE ? key + rng_below(&m->rng, 1u << rng_below(&m->rng, 24)) : key;
    switch (rng_below(&m->rng, 6)) {
    case 0:
        ops->accumulate(&m->view, grad_of(m)), add_grad(m);
        break;
    case 1:
        count = ops->accumulate_select(&m->view, grad_of(m), key, some_list(m)), add_grad(m);
        check_list(m, key, count), check_seen(m, count, true);
        break;
    case 2:
        count = ops->accumulate_select_moments(&m->view, grad_of(m), key, some_list(m), &sums), add_grad(m);
        check_list(m, key, count), check_sums(m, 0, &sums), check_seen(m, count, true);
        break;
    case 3:
        count = ops->select(&m->view, key, some_list(m));
        check_list(m, key, count), check_seen(m, count, true);
        CHECK(ops->count(&m->view, key) == ops->select(&m->view, key, &m->out), "n %zu: count", m->n);
        break;
    case 4:
        ops->accumulate_squares(&m->view, grad_of(m), block, m->square), add_grad(m);
        check_squares(m, block, m->square);
        break;
    default:
        ops->moments(&m->view, key, &sums), check_sums(m, key, &sums);
    }
}

/* k: of any size, or few. */
static void searches(struct model *m) {
    const struct store_ops *ops = m->view.ops;
    const float *x = m->acc + m->from, *y = m->other + m->to;
    bool few = rng_below(&m->rng, 2);
    size_t k = 1 + rng_below(&m->rng, (uint32_t)(few ? (m->n + 63) / 64 : m->n));
    size_t stride = 1 + rng_below(&m->rng, 9) % m->n, first = rng_below(&m->rng, (uint32_t)stride);
    size_t count = (m->n - 1 - first) / stride + 1, rank = 1 + rng_below(&m->rng, (uint32_t)count);
    bool with = rng_below(&m->rng, 2);
    CHECK(same_key(ops->sample_kth_key(&m->view, with ? grad_of(m) : NULL, first, stride, count, rank, m->keys),
                   kth_of(m, x, with ? y : NULL, first, stride, count, rank)),
          "n %zu: sample of %zu, first %zu, stride %zu, rank %zu", m->n, count, first, stride, rank);
    CHECK(same_key(ops->guess_key(&m->view, grad_of(m), k), guess_of(m, k)), "n %zu: guess for %zu", m->n, k);
    if (ops->accumulate_top) {
        some_list(m)->cap = m->n;
        ops->accumulate_top(&m->view, grad_of(m), k, &m->out), add_grad(m);
        check_top(m, k), check_seen(m, k, false);
    }
    CHECK(same_key(ops->kth_key(&m->view, k), kth_of(m, x, NULL, 0, 1, m->n, k)), "n %zu: key of rank %zu", m->n, k);
}

/* Some indices, rising, with values; then turned round where any order is allowed. */
static void some_pairs(struct model *m) {
    uint32_t part = 1 + rng_below(&m->rng, 40);
    m->out.nnz = 0, m->out.cap = m->n;
    for (size_t i = 0; i < m->n; i++) {
        if (rng_below(&m->rng, part)) continue;
        m->out.idx[m->out.nnz] = (uint32_t)i;
        m->out.val[m->out.nnz++] = rng_below(&m->rng, 9) ? (float)rng_normal(&m->rng) : -0.0f;
    }
}
static void turn_round(struct sparse *s) {
    for (size_t i = 0, j = s->nnz; i + 1 < j; i++) {
        uint32_t index = s->idx[i];
        s->idx[i] = s->idx[--j], s->idx[j] = index;
    }
}

static void entries(struct model *m) {
    const struct store_ops *ops = m->view.ops;
    float *x = m->acc + m->from, *y = m->other + m->to;
    const float scale = 1.0f / (float)(1 + rng_below(&m->rng, 7));
    const struct sparse *u = &m->out;
    some_pairs(m);
    switch (rng_below(&m->rng, 7)) {
    case 0:
        turn_round(&m->out), ops->zero_at(&m->view, u->idx, u->nnz);
        for (size_t i = 0; i < u->nnz; i++) x[u->idx[i]] = 0;
        break;
    case 1:
        turn_round(&m->out), ops->gather_at(&m->view, u->idx, u->nnz, m->back);
        for (size_t i = 0; i < u->nnz; i++) CHECK(same(m->back[i], x[u->idx[i]]), "n %zu: gather %zu", m->n, i);
        break;
    case 2:
        ops->add_at(&m->view, u);
        for (size_t i = 0; i < u->nnz; i++) x[u->idx[i]] += u->val[i];
        break;
    case 3:
        ops->scatter(&m->view, u, scale, grad_of(m));
        memset(y, 0, m->n * sizeof *y);
        for (size_t i = 0; i < u->nnz; i++) y[u->idx[i]] = scale * u->val[i];
        break;
    case 4:
        ops->scatter_add(&m->view, u, scale, grad_of(m));
        for (size_t i = 0; i < u->nnz; i++) {
            float product = scale * u->val[i];
            y[u->idx[i]] += product;
        }
        break;
    case 5:
        ops->momentum(&m->view, grad_of(m), scale);
        for (size_t i = 0; i < m->n; i++) {
            float product = scale * x[i];
            x[i] = y[i] = stored(product + y[i]);
        }
        break;
    default:
        ops->scale(&m->view, grad_of(m), scale);
        for (size_t i = 0; i < m->n; i++) y[i] *= scale;
    }
}

/* None, and then one or two that are not finite, anywhere. */
static void not_finite(struct model *m) {
    float *y = m->other + m->to;
    size_t first = m->n;
    CHECK(m->view.ops->first_nonfinite(&m->view, grad_of(m), m->n) == m->n, "n %zu: all are finite", m->n);
    for (int i = 0; i < 2; i++) {
        size_t at = rng_below(&m->rng, (uint32_t)m->n);
        y[at] = i ? -INFINITY : NAN;
        first = at < first ? at : first;
        test_device()->to_device(grad_of(m), y, m->n * sizeof *y);
        CHECK(m->view.ops->first_nonfinite(&m->view, grad_of(m), m->n) == first, "n %zu: the first is %zu", m->n,
              first);
        CHECK(m->view.ops->first_nonfinite(&m->view, grad_of(m), first) == first, "n %zu: none before %zu", m->n,
              first);
    }
    refill(m, false);
    CHECK(m->view.ops->first_nonfinite(&m->view, grad_of(m), m->n) == m->n, "n %zu: all are finite again", m->n);
}

/* Of nothing there is nothing. */
static void empty_view(struct model *m) {
    struct store nothing;
    struct moments sums;
    store_view_open(&nothing, &m->whole, m->from, 0);
    CHECK(nothing.ops->select(&nothing, 0, some_list(m)) == 0 && m->out.nnz == 0, "select");
    CHECK(nothing.ops->accumulate_select(&nothing, grad_of(m), 0, some_list(m)) == 0 && m->out.nnz == 0, "and add");
    CHECK(nothing.ops->accumulate_select_moments(&nothing, grad_of(m), 0, some_list(m), &sums) == 0, "and sum");
    CHECK(sums.count == 0 && sums.sum == 0 && sums.max_key == 0 && nothing.ops->count(&nothing, 0) == 0, "sums");
    nothing.ops->moments(&nothing, 0, &sums);
    CHECK(sums.count == 0 && sums.sum_abs == 0 && sums.sum_square == 0 && sums.max_key == 0, "moments");
    m->out.nnz = 0;
    nothing.ops->momentum(&nothing, grad_of(m), 0.5f);
    nothing.ops->accumulate_squares(&nothing, grad_of(m), 1, m->square);
    nothing.ops->accumulate(&nothing, grad_of(m)), nothing.ops->add_at(&nothing, &m->out);
    nothing.ops->scatter(&nothing, &m->out, 1, grad_of(m)), nothing.ops->scale(&nothing, grad_of(m), 2);
    nothing.ops->zero_at(&nothing, m->out.idx, 0), nothing.ops->gather_at(&nothing, m->out.idx, 0, m->back);
    CHECK(nothing.ops->first_nonfinite(&nothing, grad_of(m), 0) == 0, "first_nonfinite");
    store_view_close(&nothing);
}

static void play(size_t n, uint64_t seed) {
    static void (*const steps[])(struct model *) = {selections, searches, entries};
    static const char *const names[] = {"a selection", "a search", "work on entries"};
    struct model m = {0};
    model_open(&m, n, seed);
    refill(&m, false), check_vectors(&m, "the beginning");
    for (int i = 0; i < STEPS; i++) {
        uint32_t kind = rng_below(&m.rng, 3);
        steps[kind](&m);
        check_vectors(&m, names[kind]);
        if (rng_below(&m.rng, 3) == 0) refill(&m, rng_below(&m.rng, 4) == 0);
    }
    refill(&m, false);
    not_finite(&m), check_vectors(&m, "the search for bad entries");
    empty_view(&m), check_vectors(&m, "work on nothing");
    model_close(&m);
}

/* A tile of the GPU's kernels has 4096 entries; from 8192 or so on there is room for a guess. */
static void sequences_body(const void *unused) {
    (void)unused;
    const size_t sizes[] = {1,    2,    3,    4,    5,    7,    15,   31,   64,   100,  129,   1000,  2047,
                            4088, 4090, 4092, 4095, 4096, 4097, 4100, 8191, 8192, 8193, 12289, 16384, 20011};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (uint64_t seed = 1; seed <= 3; seed++) play(sizes[i], seed);
    /* More tiles than are looked back at once, more values than one block searches. */
    for (uint64_t seed = 1; seed <= 2; seed++) play(150000, seed);
}

IN_EVERY_SET(sequences, sequences_body, NULL)

int main(void) {
    test_device_in_children();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
