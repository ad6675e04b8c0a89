/* cli_checkpoint_check.c: what a checkpoint may not say, though its checksums are right: each number of a position by
 * itself and beside that of the model, numbers that no training leaves, texts that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/checkpoint/checkpoint_check.h"
#include "cli/options/options.h"
#include "tests/lib/failing_here.h"

static const struct position good = {
    .run_id = 1, .step = 12, .ranks = 2, .rank = 1, .parameters = 10, .optimiser_states = 20, .net_states = 4};

static void says(bool answer, const char *text, const char *why) {
    assert_true(answer == !why);
    if (!strstr(text, why ? why : "")) fail_msg("\"%s\" does not say \"%s\"", text, why);
}

static void stands(struct position p, const char *dir, const char *why) {
    struct err e = {0};
    says(checkpoint_check_position(&p, "FILE", dir, &e), e.text, why);
}

static void a_position_is_possible(void **state) {
    (void)state;
    const char *dir = "runs/x/checkpoint-00000012", *sizes = "sizes that no model has", *scores = "scores that are";
    struct position p = good;
    stands(p, dir, NULL);
#define CHANGED(change, why) p = good, p.change, stands(p, dir, why)
    CHANGED(step = STEPS_MAX + 1ULL, "more steps than any run");
    CHANGED(step = 13, "is of step 13, not of the step in its directory's name");
    CHANGED(ranks = 0, "a rank that is none");
    CHANGED(ranks = UINT32_MAX, "a rank that is none");
    CHANGED(rank = 2, "a rank that is none");
    CHANGED(averaged = 2, "a flag that is neither 0 nor 1");
    CHANGED(parameters = 0, sizes);
    CHANGED(parameters = 1ULL << 32, sizes);
    CHANGED(net_states = 1ULL << 32, sizes);
    CHANGED(carried = 1ULL << 32, sizes);
    CHANGED(optimiser_states = 41, sizes);
    CHANGED(start.test_loss = (double)INFINITY, scores);
    CHANGED(start.test_accuracy = (double)-INFINITY, scores);
    CHANGED(start.valid_loss = (double)INFINITY, scores);
    CHANGED(start.valid_loss = (double)NAN, NULL); /* no evaluation */
#undef CHANGED
}

static void a_leg_is_possible(void **state) {
    (void)state;
    const struct leg right = {.step = 12, .position = 40, .before = 0.5, .first_ranks = 2, .resized = 1};
    struct leg l = right;
    struct err e = {0};
    says(checkpoint_check_leg(&l, &good, "FILE", &e), e.text, NULL);
#define CHANGED(change)                                                                                                \
    e.text[0] = '\0', l = right, l.change,                                                                             \
    says(checkpoint_check_leg(&l, &good, "FILE", &e), e.text, "numbers of no run")
    CHANGED(step = 13);
    CHANGED(position = UINT64_MAX);
    CHANGED(before = (double)NAN);
    CHANGED(before = -1);
    CHANGED(first_ranks = 0);
    CHANGED(first_ranks = UINT32_MAX);
#undef CHANGED
}

/* The step counts only where the directory has a checkpoint's name. */
static void names_of_directories(void **state) {
    (void)state;
    static const char *const right[] = {
        "checkpoint-12",     "/checkpoint-00000012//",         "a/checkpoint-00000012/", "/", "", "kept", "checkpoint-",
        "checkpoint-13.old", "checkpoint-0000000000000000013", "kept/as/best12"};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) stands(good, right[i], NULL);
    static const char *const wrong[] = {"checkpoint-13", "checkpoint-00000013/", "/x/checkpoint-000000000000000013"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) stands(good, wrong[i], "not of the step");
}

static void positions_beside_each_other(void **state) {
    (void)state;
    struct position model = good, p = good;
    struct err e = {0};
    model.rank = 0;
    assert_true(checkpoint_check_beside(&p, &model, 1, "FILE", "resume from", &e));
#define REFUSED(change)                                                                                                \
    p = good, p.change, e.text[0] = '\0';                                                                              \
    assert_false(checkpoint_check_beside(&p, &model, 1, "FILE", "resume from", &e));                                   \
    assert_non_null(strstr(e.text, "cannot resume from it: FILE belongs to another run or step"))
    REFUSED(run_id = 2);
    REFUSED(step = 11);
    REFUSED(ranks = 3);
    REFUSED(rank = 0);
    REFUSED(parameters = 11);
    REFUSED(optimiser_states = 10);
    REFUSED(net_states = 5);
    REFUSED(carried = 1);
    REFUSED(data_checksum = 1);
    REFUSED(averaged = 1);
#undef REFUSED
}

static void statistics_and_moments(void **state) {
    (void)state;
    const struct slice slices[] = {{.name = "bn.running_mean", .offset = 0, .size = 2},
                                   {.name = "bn.running_var", .offset = 2, .size = 2},
                                   {.name = "x", .offset = 4, .size = 1}};
    struct err e = {0};
    float value[] = {-1, -2, 0, 3, -4};
    says(checkpoint_check_statistics(value, 5, slices, 3, "FILE", &e), e.text, NULL);
    value[3] = -1e-30f;
    says(checkpoint_check_statistics(value, 5, slices, 3, "FILE", &e), e.text, "number 3 of its section net state");
    value[0] = NAN, e.text[0] = '\0';
    says(checkpoint_check_statistics(value, 5, slices, 3, "FILE", &e), e.text,
         "number 0 of its section net state is NaN");
    const struct optimiser_ops two = {.moment = {{.name = "mean"}, {.name = "square", .is_nonnegative = true}}},
                               plain = {.moment = {{.name = "one"}, {.name = "other"}}};
    float moments[] = {-1, 2, 3, -4};
    e.text[0] = '\0';
    says(checkpoint_check_moments(moments, 2, &plain, "optimiser", "FILE", &e), e.text, NULL);
    says(checkpoint_check_moments(moments, 2, &two, "optimiser", "FILE", &e), e.text,
         "number 3 of its section optimiser, a mean");
    moments[1] = INFINITY, e.text[0] = '\0';
    says(checkpoint_check_moments(moments, 2, &two, "optimiser", "FILE", &e), e.text,
         "number 1 of its section optimiser is NaN");
}

/* -- texts --------------------------------------------------------------------------------------------------------- */

static char path[64];

static int make_path(void **state) {
    (void)state;
    strcpy(path, "/tmp/checkpoint-XXXXXX");
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

/* A file with these bytes as its section, opened. */
static void open_with(const char *section, const char *text, size_t bytes, struct container *c) {
    struct err e = {0};
    const struct section s = {section, text, bytes};
    unlink(path);
    assert_true(container_write(path, &s, 1, &e) && container_open(path, c, &e));
}

static void no_text(const char *text, size_t bytes) {
    struct container c;
    struct err e = {0};
    open_with("layout", text, bytes, &c);
    assert_null(checkpoint_text(&c, "layout", &e));
    assert_non_null(strstr(e.text, "its section layout is no text"));
    container_close(&c);
}

static void texts(void **state) {
    (void)state;
    struct container c;
    struct err e = {0};
    open_with("layout", "a text", 7, &c);
    char *text = checkpoint_text(&c, "layout", &e);
    assert_string_equal(text, "a text");
    mem_free(text);
    assert_null(checkpoint_text(&c, "options", &e));
    assert_non_null(strstr(e.text, "has no section options"));
    fails_here("read", 1, EIO);
    assert_null(checkpoint_text(&c, "layout", &e));
    assert_false(fails_left());
    container_close(&c);
    no_text("", 0);
    no_text("no end", 6);
    no_text("an end\0before", 13);
    no_text("two ends\0", 10);
    const size_t most = 1 << 22;
    char *much = mem_zalloc(most + 1, 1, "a text that is too long");
    memset(much, 'x', most);
    no_text(much, most + 1);
    mem_free(much);
}

static void options(void **state) {
    (void)state;
    struct container c;
    struct err e = {0};
    open_with("options", "--no-such-option 1\n", 20, &c);
    assert_null(checkpoint_options(&c, &e));
    assert_non_null(strstr(e.text, "cannot use the options of the checkpoint"));
    container_close(&c);
    open_with("options", "", 0, &c);
    e.text[0] = '\0';
    assert_null(checkpoint_options(&c, &e));
    assert_non_null(strstr(e.text, "its section options is no text"));
    container_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leg_is_possible),
        cmocka_unit_test(a_position_is_possible),
        cmocka_unit_test(names_of_directories),
        cmocka_unit_test(positions_beside_each_other),
        cmocka_unit_test(statistics_and_moments),
        cmocka_unit_test_setup_teardown(texts, make_path, remove_path),
        cmocka_unit_test_setup_teardown(options, make_path, remove_path),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
