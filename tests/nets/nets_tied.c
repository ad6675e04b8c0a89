/* nets_tied.c: a linear layer whose weights are the table of an embedding: the gradient of the one slice is the sum of
 * those of two slices with the same numbers, in steps of one batch and of several, where passes are recorded and
 * repeated, too.
 * devices: cuda */
#include <math.h>
#include <stdlib.h>

#include "nets/backend.h"
#include "nets/layers/linear.h"
#include "nets/net_build.h"
#include "nets/sequences/embedding.h"
#include "tests/lib/nets_rig.h"

enum { BATCH = 5, SEQUENCE = 7, VOCABULARY = 23, FEATURES = 12, TABLE = VOCABULARY * FEATURES, PARTS = 2 };

/* embedding -> linear without bias -> output, which is tied or has a slice of its own, the last one. */
static bool build(struct net *net, bool tied) {
    const int table = build_embedding_normal(net, "embedding", build_tokens(net), VOCABULARY, FEATURES, 0.4);
    const int x = build_linear_normal(net, "linear", table, FEATURES, false, 0.4);
    build_loss(net, tied ? build_linear_tied(net, "output", x, table)
                         : build_linear_normal(net, "output", x, VOCABULARY, false, 0.4));
    return true;
}
static bool build_tied(struct net *net, struct err *e) {
    (void)e;
    return build(net, true);
}
static bool build_apart(struct net *net, struct err *e) {
    (void)e;
    return build(net, false);
}
static const struct model_ops tied_model = {.name = "tied", .input = MODEL_TOKENS, .build = build_tied},
                              apart_model = {.name = "apart", .input = MODEL_TOKENS, .build = build_apart};

static struct net_setup setup_of(enum precision precision) {
    return (struct net_setup){.batch = BATCH,
                              .sequence = SEQUENCE,
                              .classes = VOCABULARY,
                              .threads = 1,
                              .seed = 3,
                              .accumulate = PARTS,
                              .precision = precision,
                              .device = test_device()};
}

struct witness {
    size_t from, calls;
};
static void witness_ready(void *context, size_t from) {
    struct witness *w = context;
    assert_true(from < w->from);
    w->from = from;
    w->calls++;
}

/* The batches of a step, forth and back. watched: the last pass back says what is final: the linear layer's slice, then
 * the table, of which the output's gradient is but a part. */
static void take_step(struct net *net, uint64_t step, bool watched) {
    for (uint64_t i = 0; i < PARTS; i++) {
        struct batch b = batch_open(net, 10 * step + i);
        struct witness w = {.from = net->arena.n};
        const bool last = watched && i + 1 == PARTS;
        net_forward_tokens(net, b.token, b.y, NULL);
        net_backward_with(net, i > 0, last ? witness_ready : NULL, last ? &w : NULL);
        if (last) assert_int_equal(w.from, 0);
        if (last) assert_int_equal(w.calls, 2);
        batch_close(&b);
    }
}

static void check_step(struct net *tied, struct net *apart, uint64_t step, double tolerance) {
    const size_t n = tied->arena.n;
    take_step(tied, step, step == 3);
    take_step(apart, step, false);
    float *found = device_fetch(tied->arena.grad, n), *wanted = device_fetch(apart->arena.grad, n + TABLE);
    double far = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        const double sum = (double)wanted[i] + (i < TABLE ? (double)wanted[n + i] : 0);
        far += pow(found[i] - sum, 2), size += pow(sum, 2);
    }
    if (!(sqrt(far / size) < tolerance)) fail_msg("step %d: off by %g", (int)step, sqrt(far / size));
    mem_free(found);
    mem_free(wanted);
}

static void a_tied_gradient_is_the_sum_of_two(void **state) {
    (void)state;
    for (int p = PRECISION_F32; net_precision_names[p]; p++) {
        const struct net_setup setup = setup_of((enum precision)p);
        if (!backend_for(setup.device)->serves(setup.precision, &(struct err){0})) continue;
        struct net *tied = open_model(&tied_model, setup), *apart = open_model(&apart_model, setup);
        const size_t n = tied->arena.n;
        assert_int_equal(n, TABLE + FEATURES * FEATURES);
        assert_int_equal(apart->arena.n, n + TABLE);
        float *param = mem_alloc(n + TABLE, sizeof *param, "parameters");
        test_device()->to_host(param, tied->arena.param, n * sizeof *param);
        memcpy(param + n, param, TABLE * sizeof *param);
        for (uint64_t step = 0; step < 5; step++) { /* plain, recorded, repeated; other parameters each time */
            device_fill(tied->arena.param, param, n);
            device_fill(apart->arena.param, param, n + TABLE);
            check_step(tied, apart, step, net_precision_is_f32(setup.precision) ? 1e-6 : 1e-3);
            for (size_t i = 0; i < n + TABLE; i++) param[i] *= 0.9f;
        }
        mem_free(param);
        net_close(tied);
        net_close(apart);
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tied_gradient_is_the_sum_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
