/* nets_speech.c: what the speech recogniser of the table promises besides what every model does (nets_models.c): passes
 * that differ in length give what a net does that was opened for just these, whatever stands behind the end of an
 * utterance and however much of it; utterances that do not count leave no trace; and what is refused. */
/* devices: cuda */
#include <math.h>
#include <stdio.h>

#include "nets/backend.h"
#include "tests/lib/in_child.h"
#include "tests/lib/nets_rig.h"

/* The net and its batches: of `frames`, and of as many utterances as the net takes. */
static struct net *open_speech(int frames) {
    struct net_setup setup = speech_setup(4, 1);
    setup.width = frames;
    return open_model(model_named("speech"), setup);
}

/* Utterances of the first `frames` columns of those of 60, NaN behind their ends where `nan`. */
static struct batch batch_of(const struct net *net, int frames, const int32_t lengths[4], bool nan) {
    const size_t height = (size_t)net->setup.height;
    struct batch b = {.frames = frames, .label_stride = 3, .values = 4 * height * (size_t)frames};
    static const int32_t labels[4][3] = {{1, 2, 2}, {3, -1, -1}, {4, 4, -1}, {-1, 7, 7}};
    struct rng r = rng_open(17, RNG_TEST, 5);
    b.x = mem_alloc(b.values, sizeof *b.x, "test utterances");
    b.length = mem_alloc(4, sizeof *b.length, "test lengths");
    b.y = mem_alloc(12, sizeof *b.y, "test labels");
    memcpy(b.length, lengths, 4 * sizeof *lengths);
    memcpy(b.y, labels, sizeof labels);
    for (size_t i = 0; i < 4 * height; i++)
        for (int t = 0; t < 60; t++) {
            const float value = (float)rng_normal(&r);
            if (t < frames) b.x[i * (size_t)frames + (size_t)t] = nan && t >= lengths[i / height] ? NAN : value;
        }
    return b;
}

/* What a step leaves, host memory. */
struct outcome {
    struct net_result result;
    float *grad, *state;
    int32_t *path;
    int steps;
};

static struct outcome step_over(struct net *net, int frames, const int32_t lengths[4], bool nan, double mean_over) {
    struct outcome o;
    struct batch b = batch_of(net, frames, lengths, nan);
    struct net_input input = batch_input(&b);
    input.mean_over = mean_over;
    net->setup.device->zero(net->arena.state, net->arena.n_state * sizeof *net->arena.state);
    net_forward_input(net, &input, &o.result);
    const int32_t *path = net_best_path(net, &o.steps);
    o.path = mem_alloc(4 * (size_t)o.steps, sizeof *path, "a path");
    memcpy(o.path, path, 4 * (size_t)o.steps * sizeof *path);
    net_backward(net);
    o.grad = device_fetch(net->arena.grad, net->arena.n);
    o.state = device_fetch(net->arena.state, net->arena.n_state);
    batch_close(&b);
    return o;
}

static struct outcome step_of(struct net *net, int frames, const int32_t lengths[4], bool nan) {
    return step_over(net, frames, lengths, nan, 0);
}

static void outcome_close(struct outcome *o) {
    mem_free(o->grad);
    mem_free(o->state);
    mem_free(o->path);
}

static void same_bits(const struct net *net, const struct outcome *a, const struct outcome *b) {
    assert_memory_equal(&a->result.loss, &b->result.loss, sizeof a->result.loss);
    assert_int_equal(a->result.count, b->result.count);
    assert_int_equal(a->steps, b->steps);
    assert_memory_equal(a->grad, b->grad, net->arena.n * sizeof *a->grad);
    assert_memory_equal(a->state, b->state, net->arena.n_state * sizeof *a->state);
    assert_memory_equal(a->path, b->path, 4 * (size_t)a->steps * sizeof *a->path);
}

static const int32_t first[4] = {33, 8, 20, 0}, second[4] = {60, 60, 60, 60}, third[4] = {2, 17, 9, 1};

static void passes_of_any_length_are_those_of_a_net_for_just_these(void **state) {
    (void)state;
    static const struct {
        int frames;
        const int32_t *lengths;
    } passes[] = {{33, first}, {60, second}, {17, third}, {33, first}, {60, first}, {18, third}};
    struct net *all = open_speech(60);
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        struct net *just = open_speech(passes[i].frames);
        struct outcome a = step_of(all, passes[i].frames, passes[i].lengths, false),
                       b = step_of(just, passes[i].frames, passes[i].lengths, false);
        same_bits(all, &a, &b);
        assert_int_equal(a.steps, (passes[i].frames + 1) / 2);
        outcome_close(&a);
        outcome_close(&b);
        net_close(just);
    }
    net_close(all);
}

static void what_is_behind_the_ends_does_not_matter(void **state) {
    (void)state;
    struct net *net = open_speech(60);
    struct outcome plain = step_of(net, 33, first, false), nan = step_of(net, 33, first, true);
    same_bits(net, &plain, &nan);
    outcome_close(&nan);
    for (int frames = 34; frames <= 60; frames += 13) { /* sums of another number of zeros: rounding may differ */
        struct outcome more = step_of(net, frames, first, true);
        double off = 0, all = 0;
        for (size_t i = 0; i < net->arena.n; i++) {
            off += pow((double)more.grad[i] - plain.grad[i], 2);
            all += pow(plain.grad[i], 2);
        }
        assert_true(fabs(more.result.loss / plain.result.loss - 1) < 1e-6 && sqrt(off / all) < 1e-5);
        for (int u = 0; u < 4; u++)
            for (int t = 0; t < more.steps; t++)
                assert_int_equal(more.path[u * more.steps + t], t < plain.steps ? plain.path[u * plain.steps + t] : -1);
        outcome_close(&more);
    }
    outcome_close(&plain);
    net_close(net);
}

/* A last batch that is not full: the mean over those that are there, as of a smaller batch. */
static void utterances_without_frames_leave_no_trace(void **state) {
    (void)state;
    static const int32_t none[4] = {0, 0, 0, 0};
    struct net *net = open_speech(40);
    struct outcome o = step_of(net, 40, none, true);
    assert_int_equal(o.result.count, 0);
    assert_true(o.result.loss == 0);
    for (size_t i = 0; i < net->arena.n; i++) assert_true(o.grad[i] == 0);
    for (size_t i = 0; i < net->arena.n_state; i++) assert_true(o.state[i] == 0);
    outcome_close(&o);
    o = step_of(net, 40, first, true);
    assert_int_equal(o.result.count, 3);
    outcome_close(&o);
    net_close(net);
}

/* -- mistakes ------------------------------------------------------------------------------------------------------ */

static struct net_input wrong;

/* Ranks with unlike numbers of utterances: the mean is of all of them. Half of it is exact. */
static void a_mean_may_be_over_more_than_this_pass_has(void **state) {
    struct net *net = open_speech(60);
    struct outcome own = step_of(net, 40, first, false);
    struct outcome same = step_over(net, 40, first, false, own.result.count);
    struct outcome half = step_over(net, 40, first, false, 2 * own.result.count);
    (void)state;
    assert_true(own.result.count > 0);
    same_bits(net, &own, &same);
    for (size_t i = 0; i < net->arena.n; i++) assert_true(2 * half.grad[i] == own.grad[i]);
    assert_memory_equal(&half.result.loss, &own.result.loss, sizeof own.result.loss);
    outcome_close(&own);
    outcome_close(&same);
    outcome_close(&half);
    net_close(net);
}

static void pass_wrong_input(void) {
    struct net *net = open_speech(40);
    struct net_result r;
    net_forward_input(net, &wrong, &r);
    net_close(net);
}

static void check_dies(const char *why) {
    char words[512];
    assert_int_equal(in_child(pass_wrong_input, words, sizeof words), EXIT_SYSTEM);
    if (!strstr(words, why)) fail_msg("\"%s\"", words);
}

static void mistakes_of_the_caller_end_the_job(void **state) {
    (void)state;
    static float x[4 * 23 * 41];
    static int32_t lengths[4] = {40, 3, 1, 0}, labels[4] = {1, 2, -1, 10};
    if (!test_device_is_host()) {
        printf("# SKIP mistakes_of_the_caller_end_the_job: no GPU outlives a fork; the host looks at it\n");
        skip();
    }
    wrong = (struct net_input){.x = x, .numbers = {NULL, lengths}, .label = {labels}, .label_stride = 1, .frames = 40};
    char words[512];
    assert_int_equal(in_child(pass_wrong_input, words, sizeof words), IN_CHILD_RETURNED);
    wrong.frames = 41;
    check_dies("a pass of 41 frames");
    wrong.frames = 39;
    check_dies("an utterance of 40 frames in a pass of 39");
    wrong.frames = 40;
    labels[3] = 11;
    check_dies("label 11 of an utterance: there are classes 1 to 10");
    labels[3] = 0;
    check_dies("label 0 of an utterance");
    labels[3] = 1, lengths[2] = -1;
    check_dies("length -1");
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!test_device_is_host()) test_device();
    if (!test_device_is_host() && !backend_for(test_device())->ctc) {
        printf("# SKIP nets_speech: the backend of device %s has no such layers\n1..0\n", test_device()->name);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_of_the_caller_end_the_job), /* first: it forks, and threads would not follow */
        cmocka_unit_test(passes_of_any_length_are_those_of_a_net_for_just_these),
        cmocka_unit_test(what_is_behind_the_ends_does_not_matter),
        cmocka_unit_test(utterances_without_frames_leave_no_trace),
        cmocka_unit_test(a_mean_may_be_over_more_than_this_pass_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
