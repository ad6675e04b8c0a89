/* nets_algorithms.c: the file in which the CUDA backend remembers measured algorithms and plans: it is written once,
 * read by the next process, shared by processes that start together, and a broken, missing or forbidden one costs
 * nothing but a measurement; which plans are taken, and that one that fails, lies or is forbidden is not. Skipped on
 * devices that keep no such file.
 *
 * devices: cuda only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/table.h"
#include "nets/net.h"
#include "tests/lib/folders.h"
#include "tests/lib/test_device.h"

enum { SHAPES = 6, STRIDED = 2, TEXT_MAX = 1 << 16 };

static char folder[64];
static enum precision precision_of_children = PRECISION_F32;

static struct net *open_net(enum precision precision, struct err *e) {
    const struct model_ops *model;
    TABLE_FIND(models, "resnet20", model);
    struct net_setup setup = {.batch = 2,
                              .channels = 3,
                              .height = 8,
                              .width = 8,
                              .classes = 10,
                              .threads = 1,
                              .seed = 3,
                              .precision = precision,
                              .device = test_device()};
    return net_open(model, &setup, e);
}

/* One child opens a net and runs it; the loss in bits, or 1 where something went wrong. A process that has used a GPU
 * may not fork, so everything is done in children. quiet: what it says is not wanted. */
static pid_t start_child(int answer, bool quiet) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    if (quiet && !freopen("/dev/null", "w", stderr)) _exit(1);
    struct err e = {0};
    static float x[2 * 3 * 8 * 8];
    const int32_t y[2] = {1, 7};
    for (int i = 0; i < 2 * 3 * 8 * 8; i++) x[i] = (float)(i % 17) / 8 - 1;
    struct net *net = open_net(precision_of_children, &e);
    struct net_result r;
    if (!net) _exit(1);
    net_forward(net, x, y, &r);
    net_backward(net);
    net_evaluate(net, x, y, 2, &r); /* waits for backward too */
    bool written = write(answer, &r.loss, sizeof r.loss) == sizeof r.loss;
    net_close(net);
    _exit(written ? 0 : 1);
}

/* Children at the same time; all must come to one loss, which is returned. */
static double run_children(int count) {
    int ends[2];
    double loss = 0, other;
    pid_t child[4];
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < count; i++) child[i] = start_child(ends[1], false);
    close(ends[1]);
    for (int i = 0; i < count; i++) {
        int status;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(read(ends[0], &other, sizeof other), sizeof other);
        if (i > 0) assert_memory_equal(&loss, &other, sizeof loss);
        loss = other;
    }
    close(ends[0]);
    return loss;
}

/* Where something was measured once more: the stand-in finds the same to be the fastest each time; on a GPU small
 * convolutions take equally long, and another choice rounds in another way. */
static void check_measured_again(double loss, double other) {
    if (test_device_is_emulated())
        assert_memory_equal(&loss, &other, sizeof loss);
    else
        assert_true(fabs(other - loss) <= 1e-3 * fabs(loss));
}

/* The one file in the folder; false: there is none. */
static bool find_file(char path[512]) {
    DIR *d = opendir(folder);
    bool found = false;
    for (struct dirent *entry; d && (entry = readdir(d));)
        if (entry->d_name[0] != '.') {
            assert_false(found);
            found = true;
            snprintf(path, 512, "%s/%.255s", folder, entry->d_name);
        }
    if (d) closedir(d);
    return found;
}

static void read_file(char text[TEXT_MAX]) {
    char path[512];
    assert_true(find_file(path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t got = fread(text, 1, TEXT_MAX - 1, file);
    text[got] = 0;
    fclose(file);
}

static void write_file(const char *text) {
    char path[512];
    assert_true(find_file(path));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

static int lines_of(const char *text) {
    int lines = 0;
    for (; (text = strchr(text, '\n')); text++) lines++;
    return lines;
}

static int fresh_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/sparsetrain-algorithms-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    return setenv("SPARSETRAIN_CACHE", folder, 1);
}

/* With whatever is in it: where the folder is the home, the driver of a real GPU has put its own cache there. */
static int folder_gone(void **state) {
    (void)state;
    return remove_folder(folder);
}

/* ResNet-20 has 6 shapes of convolutions, of three passes each but for the first layer, whose dx nobody wants. */
static void shapes_are_measured_once(void **state) {
    static char text[TEXT_MAX], again[TEXT_MAX];
    (void)state;
    double loss = run_children(1);
    read_file(text);
    assert_int_equal(lines_of(text), 3 * SHAPES - 1);
    double second = run_children(1);
    assert_memory_equal(&loss, &second, sizeof loss);
    read_file(again);
    assert_string_equal(text, again);
}

static void processes_share_the_work(void **state) {
    static char text[TEXT_MAX];
    (void)state;
    run_children(3);
    read_file(text);
    assert_int_equal(lines_of(text), 3 * SHAPES - 1);
}

/* What is no line, or names no algorithm, is measured again; what is whole is kept. */
static void damage_costs_a_measurement_and_no_more(void **state) {
    static char text[TEXT_MAX], damaged[TEXT_MAX], after[TEXT_MAX];
    (void)state;
    double loss = run_children(1), other;
    read_file(text);
    char *half = strchr(text + strlen(text) / 2, '\n') + 1, first[256];
    snprintf(first, sizeof first, "%.*s", (int)(strstr(text, " = ") - text), text);
    const char *const junk[] = {"", "\n\n = \n = 1 1\nforward f32 = 99999999999 1\n\x01\xff\n", "no end of line"};
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        snprintf(damaged, sizeof damaged, "%s%s", half, junk[i]);
        write_file(damaged);
        other = run_children(1);
        check_measured_again(loss, other);
        read_file(after);
        assert_non_null(strstr(after, first));
        assert_memory_equal(after, half, strlen(half));
    }
    const char *const wrong[] = {"-1 3", "77 3", "0 77", "0 0"}; /* the last: products that f32 does not take */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(damaged, sizeof damaged, "%s = %s\n%s", first, wrong[i], strchr(text, '\n') + 1);
        write_file(damaged);
        other = run_children(1);
        check_measured_again(loss, other);
        read_file(after);
        assert_int_equal(lines_of(after), 3 * SHAPES); /* a better line after the wrong one */
        other = run_children(1);
        read_file(damaged);
        assert_string_equal(after, damaged); /* which is what counts from then on */
    }
}

/* Lines of the file that name Winograd's algorithm over large tiles: ALGORITHM 7 of the forward pass, 5 of the others.
 */
static int coarse_lines(const char *text) {
    int lines = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        lines += strncmp(strstr(line, " = "), strncmp(line, "forward", 7) == 0 ? " = 7 3 " : " = 5 3 ", 7) == 0;
    return lines;
}

/* Plain f32 never takes it, also where a file names it; the stand-in says that it is the fastest where the stride is 1,
 * and of the gradients of weights as well. */
static void coarse_products_are_asked_for(void **state) {
    static char text[TEXT_MAX], after[TEXT_MAX];
    (void)state;
    double loss = run_children(1);
    read_file(text);
    assert_int_equal(coarse_lines(text), 0);
    precision_of_children = PRECISION_F32_WINOGRAD;
    double other = run_children(1);
    precision_of_children = PRECISION_F32;
    assert_true(fabs(other - loss) <= 1e-3 * fabs(loss));
    read_file(after);
    assert_int_equal(lines_of(after), 2 * (3 * SHAPES - 1));
    assert_memory_equal(after, text, strlen(text));
    if (test_device_is_emulated()) assert_int_equal(coarse_lines(after), 3 * (SHAPES - STRIDED) - 1);
    char *first = strstr(text, " = ");
    snprintf(after, sizeof after, "%.*s = 7 3 -%s", (int)(first - text), text, strchr(first, '\n'));
    assert_int_equal(coarse_lines(after), 1);
    write_file(after);
    other = run_children(1);
    check_measured_again(loss, other);
    read_file(after);
    assert_int_equal(lines_of(after), 3 * SHAPES);
    assert_int_equal(coarse_lines(after), 1);
}

static void no_place_is_no_error(void **state) {
    (void)state;
    setenv("SPARSETRAIN_CUDNN_PLANS", "0", 1); /* a GPU takes seconds to measure them */
    double loss = run_children(1), other;
    const char *const places[] = {"/proc/no/such/place", "/dev/null/beyond"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        setenv("SPARSETRAIN_CACHE", places[i], 1);
        other = run_children(1);
        check_measured_again(loss, other);
    }
    unsetenv("SPARSETRAIN_CUDNN_PLANS");
}

/* What is no regular file is no cache. */
static void a_fifo_is_not_waited_for(void **state) {
    char path[512];
    (void)state;
    double loss = run_children(1);
    assert_true(find_file(path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    double other = run_children(1);
    check_measured_again(loss, other);
}

/* $SPARSETRAIN_CACHE, else $XDG_CACHE_HOME/sparsetrain, else $HOME/.cache/sparsetrain */
static void the_place_is_as_documented(void **state) {
    (void)state;
    char above[64], path[512];
    snprintf(above, sizeof above, "%s", folder);
    const char *const below[2][3] = {{"XDG_CACHE_HOME", "HOME", "/sparsetrain"},
                                     {"HOME", "XDG_CACHE_HOME", "/.cache/sparsetrain"}};
    char *kept[2];
    for (int i = 0; i < 2; i++) kept[i] = getenv(below[i][0]) ? mem_printf("%s", getenv(below[i][0])) : NULL;
    unsetenv("SPARSETRAIN_CACHE");
    setenv("SPARSETRAIN_CUDNN_PLANS", "0", 1);
    for (int i = 0; i < 2; i++) {
        setenv(below[i][0], above, 1);
        unsetenv(below[i][1]);
        run_children(1);
        snprintf(folder, sizeof folder, "%.40s%s", above, below[i][2]);
        assert_true(find_file(path));
        unlink(path);
        rmdir(folder);
    }
    unsetenv("SPARSETRAIN_CUDNN_PLANS");
    snprintf(folder, sizeof folder, "%.40s/.cache", above);
    rmdir(folder);
    for (int i = 0; i < 2; i++) {
        if (kept[i])
            setenv(below[i][0], kept[i], 1);
        else
            unsetenv(below[i][0]);
        mem_free(kept[i]);
    }
    snprintf(folder, sizeof folder, "%s", above);
}

/* -- a library that fails ----------------------------------------------------------------------------------------- */

#define FINDS                                                                                                          \
    "cudnnFindConvolutionForwardAlgorithmEx,cudnnFindConvolutionBackwardDataAlgorithmEx,"                              \
    "cudnnFindConvolutionBackwardFilterAlgorithmEx"

static bool told_to_fail(const char *test, const char *calls) {
    if (!test_device_is_emulated()) {
        printf("# SKIP %s: calls fail when they are told to on the stand-in alone\n", test);
        return false;
    }
    setenv("SPARSETRAIN_HOSTCUDA_FAIL", calls, 1);
    return true;
}

/* Then the algorithms that are there for every shape and reproducible are taken, and remembered. */
static void a_measurement_that_fails_is_done_without(void **state) {
    static char text[TEXT_MAX];
    (void)state;
    double loss = run_children(1);
    char path[512];
    assert_true(find_file(path));
    assert_int_equal(unlink(path), 0);
    if (!told_to_fail(__func__, FINDS)) skip();
    double other = run_children(1);
    unsetenv("SPARSETRAIN_HOSTCUDA_FAIL");
    assert_memory_equal(&loss, &other, sizeof loss);
    read_file(text);
    assert_int_equal(lines_of(text), 3 * SHAPES - 1);
    int forward = 0, back = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) { /* 1 of each pass, FMA */
        const char *choice = strstr(line, " = ") + 3;
        if (strncmp(choice, "1 3 ", 4) != 0) fail_msg("%.120s", line);
        forward += strncmp(line, "forward", 7) == 0;
        back += strncmp(line, "forward", 7) != 0;
    }
    assert_int_equal(forward, SHAPES);
    assert_int_equal(back, 2 * SHAPES - 1);
}

/* How many lines of the cache are of this pass and have a choice that begins so. */
static int lines_that_choose(const char *text, const char *pass, const char *choice) {
    int count = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        count += strncmp(line, pass, strlen(pass)) == 0 && strncmp(strstr(line, " = "), choice, strlen(choice)) == 0;
    return count;
}

/* One shape alone: all others are measured. */
static void one_that_fails_costs_no_other(void **state) {
    static char text[TEXT_MAX];
    (void)state;
    if (!told_to_fail(__func__, "cudnnFindConvolutionForwardAlgorithmEx:2")) skip();
    run_children(1);
    unsetenv("SPARSETRAIN_HOSTCUDA_FAIL");
    read_file(text);
    assert_int_equal(lines_of(text), 3 * SHAPES - 1);
    assert_int_equal(lines_that_choose(text, "forward", " = 1 "), STRIDED + 1); /* of which Winograd knows nothing */
}

/* Where that is not measured, products without tensor cores are tried next. They may want more workspace than those
 * that were asked for, which the measurement must have. */
static void other_products_have_their_workspace(void **state) {
    static char text[TEXT_MAX];
    (void)state;
    /* each of the two names counts a call: the first two fail */
    if (!told_to_fail(__func__, FINDS ",cudnnConvolutionBackwardData:1,cudnnConvolutionBackwardData:3")) skip();
    precision_of_children = PRECISION_TF32;
    run_children(1);
    precision_of_children = PRECISION_F32;
    unsetenv("SPARSETRAIN_HOSTCUDA_FAIL");
    read_file(text);
    assert_int_equal(lines_of(text), 3 * SHAPES - 1);
    assert_int_equal(lines_that_choose(text, "data", " = 1 0 "), 1);
}

/* No algorithm at all: the precision is refused, in words, and nothing dies; what else the process does goes on. */
static void a_precision_without_algorithms_is_refused(void **state) {
    (void)state;
    static const char *const calls[] = {FINDS ",cudnnConvolutionForward", FINDS ",cudnnConvolutionBackwardFilter"};
    static const char *const passes[] = {"for the convolution forward bf16 x 2x3x8x8",
                                         "for the convolution filter bf16 x 2x3x8x8"};
    for (size_t i = 0; i < 2; i++) {
        if (!told_to_fail(__func__, calls[i])) skip();
        struct err e = {0};
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct net *none = open_net(PRECISION_BF16, &e);
            bool told = write(ends[1], &e, sizeof e) == sizeof e;
            unsetenv("SPARSETRAIN_HOSTCUDA_FAIL");
            struct net *net = open_net(PRECISION_F32, &e);
            net_close(net);
            _exit(!none && net && told ? 0 : 1);
        }
        int status;
        assert_int_equal(read(ends[0], &e, sizeof e), sizeof e);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        close(ends[0]), close(ends[1]);
        unsetenv("SPARSETRAIN_HOSTCUDA_FAIL");
        assert_int_equal(e.status, EXIT_USER);
        static const char *const parts[] = {"--precision bf16: cuDNN ", "as it was told to", "; take --precision f32"};
        for (size_t part = 0; part < 3; part++)
            if (!strstr(e.text, parts[part])) fail_msg("no \"%s\" in: %s", parts[part], e.text);
        if (!strstr(e.text, passes[i])) fail_msg("no \"%s\" in: %s", passes[i], e.text);
        char path[512];
        assert_true(find_file(path)); /* the other passes are remembered */
        assert_int_equal(unlink(path), 0);
    }
}

/* -- plans -------------------------------------------------------------------------------------------------------- */

static bool is_stand_in(const char *test) {
    if (test_device_is_emulated()) return true;
    printf("# SKIP %s: which plans a GPU takes is its own affair; those of the stand-in are known\n", test);
    return false;
}

/* Lines that end with this plan; strided: of the shapes with stride 2 alone. */
static int lines_with(const char *text, const char *plan, bool strided) {
    int lines = 0;
    for (const char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        const char *stride = strstr(line, " stride 2 ");
        const bool fits = (size_t)(end - line) > strlen(plan) && strncmp(end - strlen(plan), plan, strlen(plan)) == 0;
        lines += fits && (!strided || (stride && stride < end));
    }
    return lines;
}

/* Does a child come to an end without a loss? */
static bool child_fails(void) {
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = start_child(ends[1], true);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ends[0]), close(ends[1]);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* The stand-in has a fast engine with tensor cores for all, one without them for stride 2, and Winograd's for stride 1.
 */
static const struct {
    enum precision precision;
    const char *plan;
    int lines;
    bool strided;
    int algorithms; /* lines without a plan */
} expected[] = {{PRECISION_F32, " 29 2:4 14:3", 3 * STRIDED, true, 3 * (SHAPES - STRIDED) - 1},
                {PRECISION_F32_WINOGRAD, " 59 17:-1", 3 * (SHAPES - STRIDED) - 1, false, 0},
                {PRECISION_TF32, " 11 2:4 14:3", 3 * SHAPES - 1, false, 0},
                {PRECISION_BF16, " 11 2:4 14:3", 3 * SHAPES - 1, false, 0}};
enum { EXPECTED = sizeof expected / sizeof *expected };

static void forget(void) {
    char path[512];
    precision_of_children = PRECISION_F32;
    if (find_file(path)) assert_int_equal(unlink(path), 0);
}

/* They are taken, remembered and used: where they fail the net does, unless they are not wanted. In the stand-in they
 * have the numbers of the algorithms. */
static void a_faster_plan_is_taken(void **state) {
    static char text[TEXT_MAX], again[TEXT_MAX];
    (void)state;
    if (!is_stand_in(__func__)) skip();
    for (int i = 0; i < EXPECTED; i++) {
        precision_of_children = expected[i].precision;
        setenv("SPARSETRAIN_CUDNN_PLANS", "0", 1);
        const double without = run_children(1);
        read_file(text);
        unsetenv("SPARSETRAIN_CUDNN_PLANS");
        const double loss = run_children(1);
        assert_memory_equal(&loss, &without, sizeof loss);
        read_file(again); /* lines without plans do not count where plans are wanted */
        assert_memory_equal(again, text, strlen(text));
        const char *plans = again + strlen(text);
        assert_int_equal(lines_of(plans), 3 * SHAPES - 1);
        assert_int_equal(lines_with(plans, expected[i].plan, expected[i].strided), expected[i].lines);
        assert_int_equal(lines_with(plans, " -", false), expected[i].algorithms);
        const double second = run_children(1);
        assert_memory_equal(&loss, &second, sizeof loss);
        read_file(text);
        assert_string_equal(text, again);
        setenv("SPARSETRAIN_HOSTCUDA_FAIL", "cudnnBackendExecute", 1);
        assert_true(child_fails());
        setenv("SPARSETRAIN_CUDNN_PLANS", "0", 1);
        assert_false(child_fails());
        unsetenv("SPARSETRAIN_CUDNN_PLANS");
        unsetenv("SPARSETRAIN_HOSTCUDA_FAIL");
        forget();
    }
}

/* All of them are faster than the good ones: without a plan, not to be run, not to be recorded, with wrong numbers,
 * with other bits each time, with too large a workspace. */
static void engines_with_faults_are_not_taken(void **state) {
    static char text[TEXT_MAX], again[TEXT_MAX];
    (void)state;
    if (!is_stand_in(__func__)) skip();
    const enum precision precisions[] = {PRECISION_F32, PRECISION_TF32};
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        precision_of_children = precisions[i];
        const double loss = run_children(1);
        read_file(text);
        forget();
        precision_of_children = precisions[i];
        setenv("SPARSETRAIN_HOSTCUDA_ENGINES", "all", 1);
        const double other = run_children(1);
        unsetenv("SPARSETRAIN_HOSTCUDA_ENGINES");
        read_file(again);
        assert_string_equal(again, text);
        assert_memory_equal(&loss, &other, sizeof loss);
        forget();
    }
}

/* A file that names what may not be taken, or what nobody can make. */
static void a_forbidden_plan_is_measured_again(void **state) {
    static char text[TEXT_MAX], changed[TEXT_MAX], after[TEXT_MAX];
    (void)state;
    if (!is_stand_in(__func__)) skip();
    const double loss = run_children(1);
    read_file(text);
    const char *const plans[] = {"7",       "19",    "23",        "11 2:4 14:3", "59",   "9999", "-5",  "29 2:999",
                                 "29 99:1", "0 2:4", "29 2:4 14", "29 2:4  x",   "29 2", "x",    "- -", "29 "};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const char *equals = strstr(text, " = ");
        snprintf(changed, sizeof changed, "%.*s%.*s %s%s", (int)(equals - text), text, 6, equals, plans[i],
                 strchr(text, '\n'));
        write_file(changed);
        const double other = run_children(1);
        assert_memory_equal(&loss, &other, sizeof loss);
        read_file(after);
        assert_memory_equal(after, changed, strlen(changed));
        if (lines_of(after) != 3 * SHAPES) fail_msg("plan \"%s\": %d lines", plans[i], lines_of(after));
    }
}

/* A library that knows of no plans, or fails at any of the calls that make one. */
static void without_plans_algorithms_are_used(void **state) {
    static char text[TEXT_MAX];
    (void)state;
    static const char *const calls[] = {"cudnnBackendCreateDescriptor", "cudnnBackendFinalize",
                                        "cudnnBackendSetAttribute", "cudnnBackendGetAttribute", "cudnnBackendExecute"};
    if (!is_stand_in(__func__)) skip();
    const double loss = run_children(1);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        forget();
        setenv("SPARSETRAIN_HOSTCUDA_FAIL", calls[i], 1);
        const double other = run_children(1);
        unsetenv("SPARSETRAIN_HOSTCUDA_FAIL");
        assert_memory_equal(&loss, &other, sizeof loss);
        read_file(text);
        assert_int_equal(lines_with(text, " -", false), 3 * SHAPES - 1);
    }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    test_device_in_children();
    if (strcmp(test_device_name(), "cuda") != 0) {
        printf("# SKIP nets_algorithms: device %s remembers no algorithms\n1..0\n", test_device_name());
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shapes_are_measured_once, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(processes_share_the_work, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(damage_costs_a_measurement_and_no_more, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(coarse_products_are_asked_for, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(no_place_is_no_error, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(a_fifo_is_not_waited_for, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(the_place_is_as_documented, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(a_measurement_that_fails_is_done_without, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(one_that_fails_costs_no_other, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(other_products_have_their_workspace, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(a_precision_without_algorithms_is_refused, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(a_faster_plan_is_taken, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(engines_with_faults_are_not_taken, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(a_forbidden_plan_is_measured_again, fresh_folder, folder_gone),
        cmocka_unit_test_setup_teardown(without_plans_algorithms_are_used, fresh_folder, folder_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
