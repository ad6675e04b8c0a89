/* nets_golden_bert.c: encoders in training against golden values that PyTorch computed in double precision from the
 * same inputs, initial parameters and dropout masks (tests/golden/bert.py): ten steps of AdamW on the sum of both
 * losses, windows padded, some of the chosen rows without a label. And the parameters of the sizes that are published;
 * and passes that a GPU repeats from a recording.
 * devices: cuda */
#include <math.h>
#include <stdlib.h>

#include "nets/backend.h"
#include "nets/optimisers/optimiser.h"
#include "tests/golden/bert.h"
#include "tests/lib/nets_rig.h"

extern const struct model_ops model_bert;

enum { ROWS_MAX = 64 };

/* The same as window_of() in bert.py. */
struct window {
    int32_t token[ROWS_MAX], type[ROWS_MAX], length[ROWS_MAX], row[ROWS_MAX], label[ROWS_MAX], next[ROWS_MAX];
    int labels; /* that count */
};

static struct window window_of(const struct golden_run *run, int index) {
    const int rows = run->batch * run->context, places = run->batch * run->chosen;
    struct rng r = rng_open(GOLDEN_SEED, RNG_TEST, (uint64_t)index);
    struct window w = {.labels = 0};
    assert_true(rows <= ROWS_MAX && places <= ROWS_MAX);
    for (int i = 0; i < rows; i++) w.token[i] = (int32_t)(rng_u32(&r) % (uint32_t)run->vocabulary);
    for (int i = 0; i < rows; i++) w.type[i] = (int32_t)(rng_u32(&r) % 2);
    for (int i = 0; i < run->batch; i++) w.length[i] = 1 + (int32_t)(rng_u32(&r) % (uint32_t)run->context);
    for (int i = 0; i < places; i++) w.row[i] = (int32_t)(rng_u32(&r) % (uint32_t)w.length[i / run->chosen]);
    for (int i = 0; i < places; i++) w.label[i] = (int32_t)(rng_u32(&r) % (uint32_t)(run->vocabulary + 1)) - 1;
    for (int i = 0; i < run->batch; i++) w.next[i] = (int32_t)(rng_u32(&r) % 2);
    for (int i = 0; i < places; i++) w.labels += w.label[i] >= 0;
    return w;
}

static struct net_input input_of(const struct window *w) {
    return (struct net_input){
        .token = w->token,
        .numbers = {[NUMBERS_TYPES] = w->type, [NUMBERS_LENGTHS] = w->length, [NUMBERS_CHOSEN] = w->row},
        .label = {w->label, w->next}};
}

/* which: the first step or the last */
static void check_gradients(const struct arena *a, const struct golden_run *run, int which) {
    float *grad = device_fetch(a->grad, a->n);
    assert_int_equal(a->slices, run->slices);
    for (size_t i = 0; i < a->slices; i++) {
        const struct slice *s = &a->slice[i];
        assert_string_equal(s->name, run->gradients[i].name);
        golden_check(grad + s->offset, s->size, &run->gradients[i].step[which], run->range_slices[which], s->name,
                     which);
    }
    mem_free(grad);
}

static void check_losses(struct net *net, const struct golden_run *run, const struct window *w, const double wanted[2],
                         int step) {
    const double tolerance = GOLDEN_SLACK * run->range_losses + GOLDEN_FLOOR;
    struct net_result words, next;
    net_result_of(net, 0, &words);
    net_result_of(net, 1, &next);
    assert_int_equal(words.count, w->labels);
    assert_int_equal(next.count, run->batch);
    golden_near(words.loss / words.count, wanted[0], tolerance, "loss of masked words", step);
    golden_near(next.loss / next.count, wanted[1], tolerance, "loss of next sentences", step);
}

static struct net_setup setup_of(const struct golden_run *run) {
    return (struct net_setup){.batch = run->batch,
                              .sequence = run->context,
                              .classes = run->vocabulary,
                              .layers = run->blocks,
                              .heads = run->heads,
                              .hidden = run->features,
                              .chosen = run->chosen,
                              .dropout = run->dropped,
                              .threads = 1,
                              .seed = GOLDEN_SEED,
                              .dropout_seed = GOLDEN_SEED,
                              .device = test_device()};
}

static void check_run(const struct golden_run *run) {
    struct net *net = open_model(&model_bert, setup_of(run));
    struct arena *a = &net->arena;
    struct optimiser adamw;
    const struct optimiser_ops *ops;
    TABLE_FIND(optimisers, "adamw", ops);
    optimiser_open(&adamw, ops, a,
                   &(struct optimiser_setup){
                       .beta1 = GOLDEN_BETA1, .beta2 = GOLDEN_BETA2, .epsilon = 1e-8, .weight_decay = GOLDEN_DECAY});
    for (int step = 0; step <= GOLDEN_STEPS; step++) {
        const struct window w = window_of(run, step);
        const struct net_input input = input_of(&w);
        (step < GOLDEN_STEPS ? net_forward_input : net_evaluate_input)(net, &input, NULL);
        check_losses(net, run, &w, step < GOLDEN_STEPS ? run->losses[step] : run->evaluation, step);
        if (step == GOLDEN_STEPS) break;
        net_backward(net);
        if (step == 0 || step == GOLDEN_STEPS - 1) check_gradients(a, run, step > 0);
        optimiser_step(&adamw, a->param, a->grad, golden_rates[step]);
        assert_int_equal(optimiser_settle(&adamw), a->n);
    }
    optimiser_close(&adamw);
    net_close(net);
}

static void it_trains_as_in_pytorch(void **state) {
    (void)state;
    check_run(&golden_plain);
}

static void it_trains_with_dropout_as_in_pytorch(void **state) {
    (void)state;
    check_run(&golden_dropping);
}

static void sizes_have_their_parameters(void **state) {
    (void)state;
    for (const struct model_preset *p = model_bert.presets; p->name; p++) {
        const struct net_setup setup = {
            .batch = 1, .sequence = 128, .classes = p->classes, .reference = &p->reference, .device = test_device()};
        struct net_size size;
        struct err e = {0};
        assert_true(net_measure(&model_bert, &setup, &size, &e));
        assert_int_equal(size.n, p->parameters);
    }
}

static void refused(struct net_setup setup, const char *why) {
    struct err e = {0};
    setup.device = test_device();
    setup.classes = 30;
    assert_null(net_open(&model_bert, &setup, &e));
    if (!strstr(e.text, why)) fail_msg("refused with \"%s\"", e.text);
}

static void sizes_that_it_cannot_take_are_refused(void **state) {
    (void)state;
    refused((struct net_setup){.batch = 1, .sequence = 513}, "512 positions");
    refused((struct net_setup){.batch = 1, .sequence = 19}, "20 masked places");
    refused((struct net_setup){.batch = 1, .sequence = 30, .hidden = 10, .heads = 3}, "does not come out even");
}

/* -- passes that are recorded ------------------------------------------------------------------------------------- */

enum { PASSES = 10 };

/* A training pass, whose gradient is added to that of the one before each second time; what came in is then the
 * caller's to overwrite. Another number of rows counts each time, none in pass 6. */
static void train(struct net *net, int pass, double loss[2]) {
    struct window w = window_of(&golden_dropping, pass);
    const struct net_input input = input_of(&w);
    struct net_result r;
    for (int i = 0; i < (pass == 6 ? ROWS_MAX : pass); i++) w.label[i] = -1;
    net_forward_input(net, &input, NULL);
    memset(&w, 0xff, sizeof w);
    net_backward_with(net, pass % 2 > 0, NULL, NULL);
    for (int k = 0; k < 2; k++) {
        net_result_of(net, k, &r);
        loss[k] = r.loss;
        if (k == 0) assert_true(pass != 6 || (r.count == 0 && r.loss == 0));
    }
}

static void evaluate(struct net *net, int number, double loss[2]) {
    const struct window w = window_of(&golden_dropping, number);
    const struct net_input input = input_of(&w);
    struct net_result r;
    net_evaluate_input(net, &input, NULL);
    for (int k = 0; k < 2; k++) {
        net_result_of(net, k, &r);
        loss[k] = r.loss;
    }
}

/* Both nets get other parameters. */
static void move_on(struct net *from, struct net *to) {
    float *param = device_fetch(from->arena.param, from->arena.n),
          *grad = device_fetch(from->arena.grad, from->arena.n);
    for (size_t i = 0; i < from->arena.n; i++) param[i] -= 0.3f * grad[i];
    device_fill(from->arena.param, param, from->arena.n);
    device_fill(to->arena.param, param, from->arena.n);
    mem_free(param);
    mem_free(grad);
}

static void repeated_passes_give_the_bits_of_plain_ones(void **state) {
    (void)state;
    for (int p = PRECISION_F32; net_precision_names[p]; p++) {
        struct net_setup setup = setup_of(&golden_dropping);
        const char *why;
        setup.precision = (enum precision)p, setup.accumulate = 2;
        if (!backend_for(setup.device)->serves(setup.precision, &(struct err){0})) continue;
        setenv("SPARSETRAIN_CUDA_GRAPH", "0", 1);
        struct net *plain = open_model(&model_bert, setup);
        unsetenv("SPARSETRAIN_CUDA_GRAPH");
        struct net *other = open_model(&model_bert, setup);
        for (int pass = 0; pass < PASSES; pass++) {
            double one[2], two[2];
            train(plain, pass, one);
            train(other, pass, two);
            assert_memory_equal(one, two, sizeof one);
            assert_true(device_same_bits(plain->arena.grad, other->arena.grad, plain->arena.n));
            move_on(plain, other);
            evaluate(plain, PASSES + pass, one);
            evaluate(other, PASSES + pass, two);
            assert_memory_equal(one, two, sizeof one);
        }
        assert_true(net_graphs(other, &why) == NET_GRAPHS_USED || test_device_is_host());
        net_close(plain);
        net_close(other);
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_trains_as_in_pytorch), cmocka_unit_test(it_trains_with_dropout_as_in_pytorch),
        cmocka_unit_test(sizes_have_their_parameters), cmocka_unit_test(sizes_that_it_cannot_take_are_refused),
        cmocka_unit_test(repeated_passes_give_the_bits_of_plain_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
