/* cudnn_plans.c: the graphs that nets/cudnn/backend_cudnn_plans.c describes are asked of the real cuDNN, for a GPU that
 * is not there but described: the library takes them, its heuristics name engines for every convolution of our models,
 * in every pass and precision, and each recipe makes its plan again. Nothing is run. Skipped where the library takes no
 * such description (cuDNN before 9.8, or another form of it). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "nets/cudnn/backend_cudnn_plans.h"
#include "tests/gpu/cudnn_described.h"

enum { LISTED = 8, BATCH = 32 };

static struct cudnn_plan_gpu gpu;

/* Channels in, channels out, height and width of x, stride: those of ResNet-20, then those of VGG-16. */
static const int shapes[][4] = {{3, 16, 32, 1},   {16, 16, 32, 1},   {16, 32, 32, 2},  {32, 32, 16, 1},
                                {32, 64, 16, 2},  {64, 64, 8, 1},    {3, 64, 32, 1},   {64, 64, 32, 1},
                                {64, 128, 16, 1}, {128, 128, 16, 1}, {128, 256, 8, 1}, {256, 256, 8, 1},
                                {256, 512, 4, 1}, {512, 512, 4, 1},  {512, 512, 2, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const int layouts[] = {[PRECISION_F32] = CUDA_NCHW,
                              [PRECISION_F32_WINOGRAD] = CUDA_NCHW,
                              [PRECISION_TF32] = CUDA_NHWC,
                              [PRECISION_BF16] = CUDA_NHWC_BF16};
enum { PRECISIONS = sizeof layouts / sizeof *layouts };

static struct conv convolution(int shape, int layout) {
    const int *s = shapes[shape];
    return (struct conv){.x = {.n = BATCH, .c = s[0], .h = s[2], .w = s[2], .layout = layout},
                         .y = {.n = BATCH, .c = s[1], .h = s[2] / s[3], .w = s[2] / s[3], .layout = layout},
                         .kernel = {3, 3},
                         .stride = {s[3], s[3]},
                         .pad = {1, 1}};
}

static int list_of(int precision, const struct conv *c, int pass, struct cudnn_recipe list[LISTED]) {
    return cudnn_plans_list(&gpu, (enum precision)precision, c, (enum conv_pass)pass, list, LISTED);
}

/* Calls `each` for every convolution of our models. */
static void for_all(void (*each)(int precision, int shape, int pass, const struct conv *c, int count,
                                 const struct cudnn_recipe *list)) {
    for (int precision = 0; precision < PRECISIONS; precision++)
        for (int shape = 0; shape < SHAPES; shape++)
            for (int pass = 0; pass < CONV_PASSES; pass++) {
                const struct conv c = convolution(shape, layouts[precision]);
                struct cudnn_recipe list[LISTED];
                each(precision, shape, pass, &c, list_of(precision, &c, pass, list), list);
            }
}

static bool make(enum precision precision, const struct conv *c, int pass, const struct cudnn_recipe *recipe) {
    size_t workspace = SIZE_MAX;
    struct cudnn_plan *plan = cudnn_plan_open(&gpu, precision, c, (enum conv_pass)pass, recipe, &workspace);
    cudnn_plan_close(plan);
    return plan && workspace != SIZE_MAX;
}

static void check(int precision, int shape, int pass, const struct conv *c, int count,
                  const struct cudnn_recipe *list) {
    if (count < 1) fail_msg("no plan: precision %d, shape %d, pass %d", precision, shape, pass);
    for (int i = 0; i < count; i++) {
        if (!make((enum precision)precision, c, pass, &list[i]))
            fail_msg("not made again: precision %d, shape %d, pass %d, engine %lld", precision, shape, pass,
                     (long long)list[i].engine);
        for (int other = 0; other < i; other++)
            if (list[i].engine == list[other].engine && list[i].knobs == list[other].knobs)
                assert_memory_not_equal(list[i].knob, list[other].knob, (size_t)list[i].knobs * sizeof *list[i].knob);
    }
}

static void every_convolution_has_plans(void **state) {
    (void)state;
    for_all(check);
}

/* Engines that the library names for the same graph, of which f32 takes none with tensor cores. */
static void the_precision_decides(void **state) {
    (void)state;
    int refused = 0, taken = 0;
    for (int shape = 0; shape < SHAPES; shape++)
        for (int pass = 0; pass < CONV_PASSES; pass++) {
            const struct conv c = convolution(shape, CUDA_NHWC);
            struct cudnn_recipe list[LISTED];
            const int count = list_of(PRECISION_TF32, &c, pass, list);
            for (int i = 0; i < count; i++) {
                const bool as_f32 = make(PRECISION_F32, &c, pass, &list[i]);
                refused += !as_f32;
                taken += as_f32;
            }
        }
    assert_true(refused > 0);
    assert_true(taken > 0);
}

/* From a file that somebody wrote by hand. */
static void nonsense_makes_no_plan(void **state) {
    (void)state;
    const struct conv c = convolution(1, CUDA_NHWC);
    struct cudnn_recipe list[LISTED], wrong;
    const int count = list_of(PRECISION_TF32, &c, CONV_FORWARD, list);
    assert_true(count > 0);
    const int64_t engines[] = {-1, 9999, INT64_MAX};
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        wrong = list[0];
        wrong.engine = engines[i];
        assert_false(make(PRECISION_TF32, &c, CONV_FORWARD, &wrong));
    }
    const struct {
        int64_t type, value;
    } knobs[] = {{9999, 1}, {-1, 1}, {CUDNN_KNOB_TYPE_TILE_SIZE, 99999}, {CUDNN_KNOB_TYPE_STAGES, -7}};
    for (size_t i = 0; i < sizeof knobs / sizeof *knobs; i++) {
        wrong = list[0];
        wrong.knobs = 1;
        wrong.knob[0].type = knobs[i].type;
        wrong.knob[0].value = knobs[i].value;
        if (make(PRECISION_TF32, &c, CONV_FORWARD, &wrong))
            fail_msg("a plan with knob %lld at %lld", (long long)knobs[i].type, (long long)knobs[i].value);
    }
    struct conv impossible = c;
    impossible.y.h++;
    assert_int_equal(list_of(PRECISION_TF32, &impossible, CONV_FORWARD, list), 0);
}

static void nothing_is_kept(void **state) {
    (void)state;
    assert_int_equal(mem_live(), 0);
}

/* What a process finds on an H200, for people: cudnn_plans --list */
static void print(int precision, int shape, int pass, const struct conv *c, int count,
                  const struct cudnn_recipe *list) {
    static const char *const passes[] = {"forward", "data", "filter"};
    static const char *const precisions[] = {"f32", "f32-winograd", "tf32", "bf16"};
    (void)shape;
    printf("%s %s %d -> %d, %d x %d, stride %d: engines", precisions[precision], passes[pass], c->x.c, c->y.c, c->x.h,
           c->x.w, c->stride[0]);
    for (int i = 0; i < count; i++) printf(" %lld", (long long)list[i].engine);
    printf("\n");
}

int main(int argc, char **argv) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!describe(&gpu)) {
        printf("# SKIP cudnn_plans: cuDNN %zu takes no description of a GPU\n1..0\n", cudnnGetVersion());
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        for_all(print);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_convolution_has_plans),
        cmocka_unit_test(the_precision_decides),
        cmocka_unit_test(nonsense_makes_no_plan),
        cmocka_unit_test(nothing_is_kept),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)cudnnBackendDestroyDescriptor(gpu.described);
    return failed;
}
