/* nets_lstm.c: what the language model of the table promises besides what every model does (nets_models.c): the sizes
 * of its paper, the perplexity of one that knows nothing, an evaluation between two windows of training. */
/* devices: cuda */
#include <math.h>

#include "tests/lib/nets_rig.h"

/* V H of the embedding, V H + V of the linear layer, 8 H^2 + 8 H of each LSTM. */
static void language_models_have_the_sizes_of_their_paper(void **state) {
    (void)state;
    static const struct {
        int hidden;
        double dropout;
        size_t parameters; /* for 10,000 words; 0: nets_models.c counts them */
    } presets[] = {{200, 0, 4653200}, {650, 0.5, 19780400}, {1500, 0.65, 0}};
    const struct model_ops *lstm = model_named("lstm");
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        struct net_setup setup = text_setup(1, 1);
        const size_t H = (size_t)(setup.hidden = presets[i].hidden), V = 10000;
        assert_true(lstm->dropout(&lstm->reference, setup.hidden) == presets[i].dropout);
        if (!presets[i].parameters) continue;
        setup.classes = (int)V;
        struct net *net = open_model(lstm, setup);
        assert_int_equal(net->arena.n, presets[i].parameters);
        assert_int_equal(net->arena.n, 2 * V * H + V + 2 * (8 * H * H + 8 * H));
        net_close(net);
    }
}

/* With nothing in the last layer every word is as likely as any other: exp(mean loss) = words. */
static void a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary(void **state) {
    (void)state;
    static const int vocabularies[] = {2, 7, 50, 1000, 10000};
    for (size_t m = 0; models[m]; m++)
        for (size_t i = 0; models[m]->input == MODEL_TOKENS && i < sizeof vocabularies / sizeof *vocabularies; i++) {
            struct net_setup setup = small_setup(models[m], 4, 1);
            setup.classes = vocabularies[i];
            struct net *net = open_model(models[m], setup);
            struct batch b = batch_open(net, 8);
            const struct arena *a = &net->arena;
            const struct slice *last =
                arena_slice(a, "linear.weight"); /* a tied one has the embedding's, which is first */
            const size_t from = last ? last->offset : 0;
            a->device->zero(a->param + from, (a->n - from) * sizeof *a->param);
            struct net_result r;
            for (int pass = 0; pass < 2; pass++) {
                (pass == 0 ? batch_forward : batch_evaluate)(net, &b, &r);
                assert_int_equal(r.count, net_rows(&setup));
                const double perplexity = exp(r.loss / r.count);
                if (!(fabs(perplexity / setup.classes - 1) < 1e-5))
                    fail_msg("a perplexity of %.9g of %d words", perplexity, setup.classes);
            }
            batch_close(&b);
            net_close(net);
        }
}

/* An evaluation between two windows of training, its own streams from their beginning, leaves no trace where the carry
 * is put back after it: the next window and its gradient have the same bits. Where it is not, they do not. */
static void an_evaluation_between_windows_leaves_no_trace(void **state) {
    (void)state;
    const struct model_ops *model = model_named("lstm");
    struct net *plain = open_model(model, text_setup(4, 1)), *other = open_model(model, text_setup(4, 1));
    const struct arena *a = &other->arena;
    const size_t bytes = a->n_carry * sizeof *a->carry;
    struct batch first = batch_open(plain, 40), next = batch_open(plain, 41), test = batch_open(plain, 42);
    float *kept = a->device->alloc(bytes, "the carry of training");
    struct net_result one, two, evaluated[2];
    for (int put_back = 1; put_back >= 0; put_back--) {
        batch_forward(plain, &first, &one);
        batch_forward(other, &first, &two);
        a->device->copy(kept, a->carry, bytes);
        net_carry_reset(other);
        batch_evaluate(other, &test, &evaluated[put_back]);
        if (put_back) a->device->copy(a->carry, kept, bytes);
        batch_forward_on(plain, &next, &one);
        net_backward(plain);
        batch_forward_on(other, &next, &two);
        net_backward(other);
        assert_int_equal(memcmp(&one.loss, &two.loss, sizeof one.loss) == 0, put_back);
        assert_int_equal(device_same_bits(plain->arena.grad, a->grad, a->n), put_back);
    }
    assert_memory_equal(&evaluated[0].loss, &evaluated[1].loss, sizeof evaluated[0].loss);
    a->device->release(kept);
    batch_close(&first);
    batch_close(&next);
    batch_close(&test);
    net_close(plain);
    net_close(other);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device(); /* says so and ends where there is none */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(language_models_have_the_sizes_of_their_paper),
        cmocka_unit_test(a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary),
        cmocka_unit_test(an_evaluation_between_windows_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
