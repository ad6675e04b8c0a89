/* topk_counts.c: how many entries the selectors return, against how many they were asked for, on distributions like
 * those of gradients: logged for each, and held to what their papers state. Steps with error feedback.
 *
 * devices: cuda
 */
#include "tests/lib/topk_reference.h"

#include "base/mem.h"
#include "topk/selector.h"

enum { STEPS = 60, LAST = 20, N = 200000, SHIFT = 1009 };

/* Of one selector on one distribution: counts in parts of k. */
struct counts {
    double first, least, most, mean; /* all but the first step */
    double late;                     /* mean of the last LAST steps */
    double off;                      /* of the thresholds from the exact one, mean of |t/exact - 1| */
    double missed;                   /* share of the k largest that was not returned, mean */
    size_t renewed;
};

/* How many of the first k by magnitude are not in out. */
static size_t missed(struct store *s, size_t k, float exact, const struct sparse *out) {
    static float acc[N];
    size_t larger = 0, returned = 0;
    s->ops->read(s, 0, s->n, acc);
    for (size_t i = 0; i < s->n; i++) larger += magnitude_key(acc[i]) > magnitude_key(exact);
    for (size_t i = 0; i < out->nnz; i++) returned += magnitude_key(out->val[i]) > magnitude_key(exact);
    return larger > k ? SIZE_MAX : larger - returned;
}

/* grad: device, [N + STEPS * SHIFT]; each step takes another part of it. */
static struct counts observe(const struct selector_ops *ops, enum shape shape, const float *grad, size_t k) {
    struct store store;
    struct sparse out;
    struct counts c = {.least = 1e9};
    store_open(&store, N, test_device());
    sparse_open(&out, selector_capacity(ops, N, k));
    struct selector *s = selector_open(ops, &store, k, NULL);
    for (size_t step = 0; step < STEPS; step++) {
        size_t bad;
        s->audit = true;
        CHECK(selector_run(s, grad + step * SHIFT, k, &out, &bad), "%s: bad", ops->name);
        double part = (double)out.nnz / (double)k;
        c.renewed += s->stats.evaluated != 0;
        c.off += fabs((double)s->stats.threshold / (double)s->stats.exact - 1) / STEPS;
        c.missed += (double)missed(&store, k, s->stats.exact, &out) / (double)k / STEPS;
        store.ops->zero_at(&store, out.idx, out.nnz);
        if (step >= STEPS - LAST) c.late += part / LAST;
        if (step == 0)
            c.first = part;
        else
            c.least = fmin(c.least, part), c.most = fmax(c.most, part), c.mean += part / (STEPS - 1);
    }
    printf("# %-9s %-10s k %5zu: first %6.3f  then %6.3f..%6.3f mean %6.3f late %6.3f  threshold off %5.1f%%  missed "
           "%5.2f%%  renewed %zu\n",
           ops->name, shape_names[shape], k, c.first, c.least, c.most, c.mean, c.late, 100 * c.off, 100 * c.missed,
           c.renewed);
    selector_close(s);
    store_close(&store);
    sparse_close(&out);
    return c;
}

#define HOLDS(condition) CHECK(condition, "%s, %s, k %zu", ops->name, shape_names[shape], k)

/* What the papers say, and the heads of the files. */
static void judge(const struct selector_ops *ops, enum shape shape, size_t k, const struct counts *c) {
    if (ops->exact_count) HOLDS(c->first == 1 && c->least == 1 && c->most == 1);
    if (strcmp(ops->name, "exact") == 0) HOLDS(c->off == 0 && c->missed == 0);
    if (strcmp(ops->name, "mstopk") == 0) HOLDS(c->missed < 0.01); /* "more than 99% same results" */
    if (strcmp(ops->name, "dgc") == 0) HOLDS(c->least >= 0.8 && c->most <= 1.3 && c->missed < 0.06);
    if (strcmp(ops->name, "reuse") == 0) {
        HOLDS(c->first == 1 && c->least >= 0.5 && c->most <= 1.5 && c->off < 0.02 && c->missed < 0.1);
        HOLDS(c->late > 0.9 && c->late < 1.1 && c->renewed < STEPS / 3);
    }
    if (strcmp(ops->name, "gaussian") ==
        0) { /* right for its own distribution alone, too many where tails are longer */
        HOLDS(shape == GAUSSIAN ? fabs(c->first - 1) < 0.2 : c->first > 1.2);
        HOLDS(c->least > 0.75);
    }
    if (strcmp(ops->name, "sidco") == 0) { /* a tolerance of 20%, once the number of stages has settled */
        if (shape == LAPLACE) HOLDS(fabs(c->first - 1) < 0.2);
        if (shape == GAUSSIAN) HOLDS(c->first < 0.5); /* one stage: the tail is shorter than an exponential one */
        if (shape != REAL_LIKE) HOLDS(c->late > 0.7 && c->late < 1.3);
        if (shape == REAL_LIKE) HOLDS(c->late > 0.4 && c->late < 3); /* two modes are no exponential tail */
    }
}

static void body(const void *unused) {
    (void)unused;
    const size_t ks[] = {N / 1000, N / 50};
    float *grad = mem_alloc(N + STEPS * SHIFT, sizeof *grad, "grad");
    float *device_grad = device_twin(grad, N + STEPS * SHIFT);
    for (enum shape shape = 0; shape < SHAPES; shape++) {
        if (!test_device_is_host() && shape != GAUSSIAN && shape != REAL_LIKE) continue; /* slow on the stand-in */
        shape_fill(shape, grad, N + STEPS * SHIFT, 1);
        device_fill(device_grad, grad, N + STEPS * SHIFT);
        for (size_t row = 0; selectors[row]; row++)
            for (size_t i = 0; i < 2; i++) {
                if (test_device_is_emulated() && i != (shape == GAUSSIAN)) continue; /* one density each */
                struct counts c = observe(selectors[row], shape, device_grad, ks[i]);
                judge(selectors[row], shape, ks[i], &c);
            }
    }
    device_twin_free(device_grad, grad);
    mem_free(grad);
}

static void counts_on_distributions(void **state) {
    (void)state;
    assert_int_equal(status_of(body, NULL, true), 0);
}

int main(void) {
    test_device_in_children();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_on_distributions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
