/* cudnn_sdpa.c: the graphs of attention that nets/cudnn/backend_cudnn_sdpa.c describes are asked of the real cuDNN, for
 * a GPU that is not there but described: the library knows them, and for the attention of every model of ours it makes
 * plans that say nothing of bits that change. It compiles the kernels too, as it finds something in place of a driver
 * (tests/preload/driverless.c). Nothing is run. Skipped where the library takes no such description, or finds no
 * compiler (NVRTC). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "nets/cudnn/backend_cudnn_sdpa.h"
#include "tests/gpu/cudnn_described.h"

static struct cudnn_plan_gpu gpu;

static const struct {
    const char *name;
    struct cudnn_sdpa_shape shape;
} trials[] = {
    {"gpt2", {8, 12, 1024, 64, true}},
    {"bert-base", {8, 12, 128, 64, false}},
    {"char", {64, 6, 256, 64, true}},
    {"char-cpu", {12, 4, 64, 32, true}},
    {"odd lengths", {2, 3, 33, 8, true}},
    {"wide heads", {2, 3, 200, 128, true}},
    {"wide heads, no mask", {2, 3, 384, 128, false}},
    {"odd lengths, no mask", {3, 1, 77, 40, false}},
};
enum { TRIALS = sizeof trials / sizeof *trials };

/* See backend_cudnn_sdpa.h for why. */
static bool is_served(const struct cudnn_sdpa_shape *s, bool backward) {
    return !backward || s->T % 128 == 0 || (s->causal && cudnnGetVersion() > 91500);
}

static void every_model_has_plans(void **state) {
    (void)state;
    for (int i = 0; i < TRIALS; i++)
        for (int backward = 0; backward < 2; backward++) {
            const struct cudnn_sdpa_shape *s = &trials[i].shape;
            const size_t scores = (size_t)(s->batch * s->heads * s->T * s->T) * sizeof(uint16_t);
            size_t workspace = SIZE_MAX;
            struct cudnn_sdpa *plan = cudnn_sdpa_open(&gpu, s, backward, &workspace);
            if (is_served(s, backward) != (plan != NULL))
                fail_msg("%s, backward %d: %s", trials[i].name, backward, plan ? "a plan" : "no plan");
            if (plan) {
                const struct cudnn_sdpa_engine e = cudnn_sdpa_engine(plan);
                assert_false(e.numerical & 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
                /* Without room for the scores' gradients it would add to dq in any order, whatever it says. */
                if (backward ? workspace < scores : workspace > 1 << 20)
                    fail_msg("%s, backward %d: a workspace of %zu bytes", trials[i].name, backward, workspace);
            }
            cudnn_sdpa_close(plan);
        }
}

static void nonsense_makes_no_plan(void **state) {
    (void)state;
    const struct cudnn_sdpa_shape shapes[] = {
        {2, 2, 64, 12, true}, {2, 2, 64, 136, true}, {2, 2, 1, 64, true}, {0, 2, 64, 64, true}, {2, -1, 64, 64, true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int backward = 0; backward < 2; backward++) {
            size_t workspace = SIZE_MAX;
            assert_null(cudnn_sdpa_open(&gpu, &shapes[i], backward, &workspace));
            assert_int_equal(workspace, 0);
        }
}

static void nothing_is_kept(void **state) {
    (void)state;
    assert_int_equal(mem_live(), 0);
}

/* What a process finds on an H200, for people: cudnn_sdpa --list */
static void print(void) {
    for (int i = 0; i < TRIALS; i++)
        for (int backward = 0; backward < 2; backward++) {
            size_t workspace = 0;
            struct cudnn_sdpa *plan = cudnn_sdpa_open(&gpu, &trials[i].shape, backward, &workspace);
            printf("%s %s: ", trials[i].name, backward ? "backward" : "forward");
            if (plan) {
                const struct cudnn_sdpa_engine e = cudnn_sdpa_engine(plan);
                printf("engine %lld, numerical notes %#x, behaviour notes %#x, workspace %zu\n", (long long)e.number,
                       e.numerical, e.behaviour, workspace);
            } else {
                printf("none\n");
            }
            cudnn_sdpa_close(plan);
        }
}

/* It lies beside this program; the library finds it by its soname, as it is loaded already. */
static bool load_driver(void) {
    char path[4096] = "";
    static const char name[] = "driverless/libcuda.so.1";
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof name);
    if (length <= 0) return false;
    path[length] = 0;
    memcpy(strrchr(path, '/') + 1, name, sizeof name);
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL) != NULL;
}

/* Does the library say that something is missing on this machine? */
static bool compiler_is_missing(void) {
    enum { TEXT = 1 << 16 };
    size_t workspace = 0;
    char *text = calloc(1, TEXT);
    struct cudnn_sdpa *plan = cudnn_sdpa_open(&gpu, &trials[0].shape, false, &workspace);
    if (!plan) cudnnGetLastErrorString(text, TEXT - 1);
    const bool missing = strstr(text, "RUNTIME_PREREQUISITE_MISSING") != NULL;
    cudnn_sdpa_close(plan);
    free(text);
    return missing;
}

static int skipped(const char *why) {
    printf("# SKIP cudnn_sdpa: %s\n1..0\n", why);
    return 0;
}

int main(int argc, char **argv) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    if (!load_driver()) return skipped("what stands for the driver was not built");
    if (!describe(&gpu)) return skipped("this cuDNN takes no description of a GPU");
    if (cudnnGetVersion() < 91400) return skipped("cuDNN before 9.14 is not asked for attention");
    if (compiler_is_missing()) return skipped("cuDNN finds no compiler (NVRTC)");
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        print();
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_plans),
        cmocka_unit_test(nonsense_makes_no_plan),
        cmocka_unit_test(nothing_is_kept),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)cudnnBackendDestroyDescriptor(gpu.described);
    return failed;
}
