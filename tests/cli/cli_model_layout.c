/* cli_model_layout.c: what a checkpoint says of its model: of every row of the table of models the text brings back
 * names, shapes and places of all slices, and a model that differs is told by its first slice that does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/table.h"
#include "cli/export/model_layout.h"
#include "nets/net.h"

static struct net *open_net(const struct model_ops *model, int classes) {
    struct err e = {0};
    const struct net_setup setup = {.batch = 1,
                                    .channels = 3,
                                    .height = 32,
                                    .width = 32,
                                    .classes = classes,
                                    .threads = 1,
                                    .device = device_find("cpu"),
                                    .sequence = model->input == MODEL_IMAGES ? 0 : 2,
                                    .chosen = 2,
                                    .hidden = model->input == MODEL_IMAGES ? 0 : 4};
    struct net *net = net_open(model, &setup, &e);
    if (!net) fail_msg("%s", e.text);
    return net;
}

static struct dataset data_of(const struct model_ops *model, int classes) {
    struct dataset d = {.classes = classes, .channels = 3, .height = 32, .width = 30, .mean = {.5f, .25f, .1f}};
    for (int c = 0; c < 3; c++) d.std[c] = 2;
    static const char *const names[] = {[MODEL_IMAGES] = "synthetic",
                                        [MODEL_TOKENS] = "synthetic-text",
                                        [MODEL_PAIRS] = "wiki",
                                        [MODEL_SPEECH] = "synthetic"};
    const char *name = names[model->input];
    TABLE_FIND(datasets, name, d.ops);
    return d;
}

static void same_slices(const struct slice *a, const struct slice *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(a[i].name, b[i].name);
        assert_int_equal(a[i].offset, b[i].offset);
        assert_int_equal(a[i].size, b[i].size);
        assert_int_equal(a[i].dims, b[i].dims);
        for (int d = 0; d < a[i].dims; d++) assert_int_equal(a[i].dim[d], b[i].dim[d]);
    }
}

static void every_model_comes_back(void **state) {
    (void)state;
    for (size_t i = 0; models[i]; i++) {
        struct net *net = open_net(models[i], 11);
        const struct arena *a = &net->arena;
        struct dataset d = data_of(models[i], 11);
        char *text = model_layout_text(a, &d);
        struct model_layout l;
        struct err e = {0};
        assert_true(model_layout_open(&l, text, "the file", &e));
        assert_int_equal(l.n, a->n);
        assert_int_equal(l.n_state, a->n_state);
        assert_int_equal(l.slices, a->slices);
        assert_int_equal(l.state_slices, a->state_slices);
        same_slices(l.slice, a->slice, a->slices);
        same_slices(l.state_slice, a->state_slice, a->state_slices);
        assert_true(model_layout_fits(&l, a, "no", &e));
        assert_string_equal(e.text, "");
        model_layout_close(&l);
        mem_free(text);
        net_close(net);
    }
}

static void the_rest_is_told(void **state) {
    (void)state;
    static const char *const images[][2] = {
        {"input", "3 32 30"}, {"mean", "0.5 0.25 0.100000001"}, {"std", "2 2 2"}, {"classes", "10"}};
    struct net *net = open_net(models[0], 10);
    struct dataset d = data_of(models[0], 10);
    char *text = model_layout_text(&net->arena, &d), key[SLICE_NAME_MAX], value[128];
    assert_int_equal(models[0]->input, MODEL_IMAGES);
    for (size_t i = 0; i < 4; i++) {
        assert_true(model_layout_about(text, i, key, value));
        assert_string_equal(key, images[i][0]);
        assert_string_equal(value, images[i][1]);
    }
    assert_false(model_layout_about(text, 4, key, value));
    mem_free(text);
    net_close(net);
}

static void difference(const char *text, const struct arena *a, const char *wanted) {
    struct model_layout l;
    struct err e = {0};
    assert_true(model_layout_open(&l, text, "the file", &e));
    assert_false(model_layout_fits(&l, a, "no", &e));
    if (strcmp(e.text, wanted) != 0) fail_msg("\"%s\", not \"%s\"", e.text, wanted);
    model_layout_close(&l);
}

static void the_first_difference_is_told(void **state) {
    (void)state;
    size_t dim[2] = {2, 3};
    struct slice slice[2] = {{.name = "a.weight", .size = 6, .dims = 2, .dim = {dim[0], dim[1]}},
                             {.name = "a.bias", .offset = 6, .size = 2, .dims = 1, .dim = {2}}};
    struct slice statistic = {.name = "b.running_mean", .size = 4, .dims = 1, .dim = {4}};
    const struct arena a = {
        .slice = slice, .slices = 2, .n = 8, .state_slice = &statistic, .state_slices = 1, .n_state = 4};
    const char same[] = "parameter a.weight 2 3\nparameter a.bias 2\nstate b.running_mean 4\n";
    struct model_layout l;
    struct err e = {0};
    assert_true(model_layout_open(&l, same, "the file", &e) && model_layout_fits(&l, &a, "no", &e));
    model_layout_close(&l);
    difference("parameter a.weight 3 2\nparameter a.bias 2\nstate b.running_mean 4\n", &a,
               "no: it has a.weight 3x2 where this model has a.weight 2x3");
    difference("parameter a.weight 2 3\nstate b.running_mean 4\n", &a,
               "no: it has nothing where this model has a.bias 2");
    difference("parameter a.weight 2 3\nparameter a.bias 2\nparameter c 5\nstate b.running_mean 4\n", &a,
               "no: it has c 5 where this model has nothing");
    difference("parameter a.weight 2 3\nparameter a.bias 2\nstate b.running_var 4\n", &a,
               "no: it has b.running_var 4 where this model has b.running_mean 4");
}

static void nonsense_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"parameter a.weight\n",
                                        "parameter a.weight 2 x\n",
                                        "parameter a.weight 0\n",
                                        "parameter a.weight 2",
                                        "parameter a.weight 1 2 3 4 5\n",
                                        "parameter  2\n",
                                        "parameter a.weight 70000 70000\n",
                                        "parameter a.weight 4294967295\nparameter b 4294967295\n",
                                        "state a -1\n",
                                        "parameter a +1\n",
                                        "parameter a  1\n",
                                        "parameter ../a 1\n",
                                        "parameter a/b 1\n",
                                        "parameter a 1\n\033[2J\n",
                                        "parameter a 1\nmean \033[2J\n",
                                        "parameter a 1\nnonsense 1\n",
                                        "classes 10\nclasses 10\nparameter a 1\n",
                                        "parameter a 1\n\n",
                                        "parameter aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee 1\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct model_layout l;
        struct err e = {0};
        if (model_layout_open(&l, texts[i], "the file", &e)) fail_msg("\"%s\" is taken", texts[i]);
        assert_non_null(strstr(e.text, "the file is damaged"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_model_comes_back), cmocka_unit_test(the_rest_is_told),
                                       cmocka_unit_test(the_first_difference_is_told),
                                       cmocka_unit_test(nonsense_is_refused)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
