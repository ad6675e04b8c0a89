/* backend_cudnn_algorithms.c: see backend_cudnn_algorithms.h. */
#include "nets/cudnn/backend_cudnn_algorithms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nets/cudnn/backend_cudnn_cache.h"
#include "nets/cudnn/backend_cudnn_race.h"

enum {
    RESULTS_MAX = 32, /* algorithms of a pass, each with several kinds of products */
    NO_ALGORITHM = -1
};

static const char *const pass_names[CONV_PASSES] = {"forward", "data", "filter"};

/* -- measurement -------------------------------------------------------------------------------------------------- */

/* What the three passes report, under one name. */
struct finding {
    int algorithm, math;
    bool good; /* it worked and gives the same bits every time */
    size_t memory;
};

/* Products of the precision that was asked for? CUDNN_DEFAULT_MATH may round the factors of f32 to TF32, and
 * CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION to half precision. */
static bool math_fits(enum precision precision, int math) {
    if (net_precision_is_f32(precision)) return math == CUDNN_FMA_MATH;
    return math == CUDNN_FMA_MATH || math == CUDNN_DEFAULT_MATH || math == CUDNN_TENSOR_OP_MATH;
}

/* All that may be taken, with tensor cores first. */
static const int maths[] = {CUDNN_TENSOR_OP_MATH, CUDNN_DEFAULT_MATH, CUDNN_FMA_MATH};
enum { MATHS = sizeof maths / sizeof *maths };

/* Measured under CUDNN_FMA_MATH, an algorithm without tensor cores may still be reported as one of the default kind: it
 * is asked for by the stricter name. */
static int math_asked_for(enum precision precision, int math) {
    return net_precision_is_f32(precision) && math == CUDNN_DEFAULT_MATH ? CUDNN_FMA_MATH : math;
}

/* Winograd's algorithm over tiles of 4 x 4 is not what plain f32 is asked for. */
static bool rounds_well(enum precision precision, enum conv_pass pass, int algorithm) {
    static const int coarse[CONV_PASSES] = {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
                                            CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
                                            CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED};
    return precision != PRECISION_F32 || algorithm != coarse[pass];
}

static cudnnStatus_t workspace_of(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass,
                                  int algorithm, size_t *bytes) {
    cudnnConvolutionDescriptor_t window = c->window[pass];
    switch (pass) {
    case CONV_FORWARD:
        return cudnnGetConvolutionForwardWorkspaceSize(b->cudnn, c->x_desc, c->w_desc, window, c->y_desc,
                                                       (cudnnConvolutionFwdAlgo_t)algorithm, bytes);
    case CONV_DATA:
        return cudnnGetConvolutionBackwardDataWorkspaceSize(b->cudnn, c->w_desc, c->y_desc, window, c->x_desc,
                                                            (cudnnConvolutionBwdDataAlgo_t)algorithm, bytes);
    default:
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(b->cudnn, c->x_desc, c->y_desc, window, c->w_desc,
                                                              (cudnnConvolutionBwdFilterAlgo_t)algorithm, bytes);
    }
}

cudnnStatus_t cudnn_convolve(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass,
                             const struct conv_choice *choice, float beta, const struct conv_arrays *a) {
    const float one = 1;
    cudnnConvolutionDescriptor_t window = c->window[pass];
    if (choice->plan && beta == 0) return cudnn_plan_run(b->cudnn, choice->plan, a);
    switch (pass) {
    case CONV_FORWARD:
        return cudnnConvolutionForward(b->cudnn, &one, c->x_desc, a->x, c->w_desc, a->w, window,
                                       (cudnnConvolutionFwdAlgo_t)choice->algorithm, a->workspace, choice->workspace,
                                       &beta, c->y_desc, a->out);
    case CONV_DATA:
        return cudnnConvolutionBackwardData(b->cudnn, &one, c->w_desc, a->w, c->y_desc, a->y, window,
                                            (cudnnConvolutionBwdDataAlgo_t)choice->algorithm, a->workspace,
                                            choice->workspace, &beta, c->x_desc, a->out);
    default:
        return cudnnConvolutionBackwardFilter(b->cudnn, &one, c->x_desc, a->x, c->y_desc, a->y, window,
                                              (cudnnConvolutionBwdFilterAlgo_t)choice->algorithm, a->workspace,
                                              choice->workspace, &beta, c->w_desc, a->out);
    }
}

/* cuDNN's three types of results have the same fields. */
#define FINDINGS_OF(type, find_them, ...)                                                                              \
    do {                                                                                                               \
        type results[RESULTS_MAX];                                                                                     \
        CUDNN_CALL(find_them(b->cudnn, __VA_ARGS__, RESULTS_MAX, &count, results, a->workspace, workspace));           \
        for (int i = 0; i < count; i++)                                                                                \
            findings[i] = (struct finding){.algorithm = (int)results[i].algo,                                          \
                                           .math = (int)results[i].mathType,                                           \
                                           .good = results[i].status == CUDNN_STATUS_SUCCESS &&                        \
                                                   results[i].determinism == CUDNN_DETERMINISTIC,                      \
                                           .memory = results[i].memory};                                               \
    } while (0)

/* All algorithms of a pass, the fastest first; how many: 0 where the library finds that it cannot measure this one. */
static int try_all(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass,
                   const struct conv_arrays *a, size_t workspace, struct finding findings[RESULTS_MAX],
                   struct err *why) {
    int count = 0;
    cudnnConvolutionDescriptor_t window = c->window[pass];
    cuda_try_begin();
    if (pass == CONV_FORWARD)
        FINDINGS_OF(cudnnConvolutionFwdAlgoPerf_t, cudnnFindConvolutionForwardAlgorithmEx, c->x_desc, a->x, c->w_desc,
                    a->w, window, c->y_desc, a->out);
    else if (pass == CONV_DATA)
        FINDINGS_OF(cudnnConvolutionBwdDataAlgoPerf_t, cudnnFindConvolutionBackwardDataAlgorithmEx, c->w_desc, a->w,
                    c->y_desc, a->y, window, c->x_desc, a->out);
    else
        FINDINGS_OF(cudnnConvolutionBwdFilterAlgoPerf_t, cudnnFindConvolutionBackwardFilterAlgorithmEx, c->x_desc, a->x,
                    c->y_desc, a->y, window, c->w_desc, a->out);
    return cuda_try_end(why) ? count : 0;
}

/* The fastest of those that may be taken. */
static struct cudnn_entry best_of(const struct cudnn_backend *b, enum conv_pass pass, const struct finding *findings,
                                  int count) {
    for (int i = 0; i < count; i++) {
        const int math = math_asked_for(b->precision, findings[i].math);
        if (findings[i].good && findings[i].memory <= CUDNN_WORKSPACE_LIMIT && math_fits(b->precision, math) &&
            rounds_well(b->precision, pass, findings[i].algorithm))
            return (struct cudnn_entry){.algorithm = findings[i].algorithm, .math = math};
    }
    return (struct cudnn_entry){.algorithm = NO_ALGORITHM};
}

static void set_math(const struct conv *c, enum conv_pass pass, int math) {
    CUDNN_CALL(cudnnSetConvolutionMathType(c->window[pass], (cudnnMathType_t)math));
}

/* Does it work? Once is enough to know. */
static bool works(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass, const struct cudnn_entry *e,
                  const struct conv_arrays *a, struct err *why) {
    struct conv_choice choice = {.algorithm = e->algorithm};
    set_math(c, pass, e->math);
    if (workspace_of(b, c, pass, e->algorithm, &choice.workspace) != CUDNN_STATUS_SUCCESS ||
        choice.workspace > CUDNN_WORKSPACE_LIMIT)
        return false;
    cuda_try_begin();
    CUDNN_CALL(cudnn_convolve(b, c, pass, &choice, 0, a));
    CUDA_CALL(cudaStreamSynchronize(cuda_stream()));
    return cuda_try_end(why);
}

/* Where the measurement gave nothing: the algorithms of a pass that cuDNN's manual calls deterministic and that it has
 * for every shape, on tensor cores first, as far as the precision has them. */
static struct cudnn_entry first_that_works(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass,
                                           const struct conv_arrays *a, struct err *why) {
    static const int standard[CONV_PASSES][2] = {
        [CONV_FORWARD] = {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
        [CONV_DATA] = {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1},
        [CONV_FILTER] = {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1}};
    for (int m = 0; m < MATHS; m++)
        for (int i = 0; i < 2; i++) {
            const struct cudnn_entry e = {.algorithm = standard[pass][i], .math = maths[m]};
            if (math_fits(b->precision, e.math) && works(b, c, pass, &e, a, why)) return e;
        }
    return (struct cudnn_entry){.algorithm = NO_ALGORITHM};
}

/* Numbers of both signs between 1/2 and 1, whether they are read as floats or as bf16: on zeros a GPU draws less power
 * and may be faster than it is in training. */
static void *numbers(size_t bytes) {
    enum { WORDS = 1 << 14 };
    uint32_t word[WORDS], state = 2463534242u;
    char *block = cuda_alloc(bytes, "the measurement of a convolution");
    for (size_t i = 0; i < WORDS; i++) {
        state ^= state << 13; /* Marsaglia's xorshift */
        state ^= state >> 17;
        state ^= state << 5;
        word[i] = (state & 0x807f807fu) | 0x3f003f00u;
    }
    for (size_t at = 0; at < bytes; at += sizeof word)
        cuda_upload(block + at, word, bytes - at < sizeof word ? bytes - at : sizeof word);
    return block;
}

/* As much workspace as any algorithm wants within the limit, with any kind of products that may be taken. */
static size_t most_workspace(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass) {
    static const int algorithms[CONV_PASSES] = {CUDNN_CONVOLUTION_FWD_ALGO_COUNT, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
                                                CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT};
    size_t most = 0, bytes;
    for (int m = 0; m < MATHS; m++) {
        if (!math_fits(b->precision, maths[m])) continue;
        set_math(c, pass, maths[m]);
        for (int i = 0; i < algorithms[pass]; i++)
            if (workspace_of(b, c, pass, i, &bytes) == CUDNN_STATUS_SUCCESS && bytes <= CUDNN_WORKSPACE_LIMIT &&
                bytes > most)
                most = bytes;
    }
    return most;
}

static bool plans_wanted(void) {
    const char *plans = getenv("SPARSETRAIN_CUDNN_PLANS");
    return !plans || strcmp(plans, "0") != 0;
}

/* The plans against the algorithm that was found best. */
static void race(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass, const struct conv_arrays *a,
                 struct cudnn_entry *best) {
    struct conv_choice choice = {.algorithm = best->algorithm};
    best->raced = true;
    best->plan.engine = -1;
    set_math(c, pass, best->math);
    if (workspace_of(b, c, pass, best->algorithm, &choice.workspace) == CUDNN_STATUS_SUCCESS)
        best->plan = cudnn_race(b, c, pass, &choice, a);
}

/* NO_ALGORITHM: none will do; *why has what the library said of the last that was tried. */
static struct cudnn_entry measure(struct cudnn_backend *b, const struct conv *c, enum conv_pass pass, const char *key,
                                  struct err *why) {
    struct finding findings[RESULTS_MAX];
    struct err not_measured = {0};
    size_t w_bytes;
    CUDNN_CALL(cudnnGetFilterSizeInBytes(c->w_desc, &w_bytes));
    size_t workspace = most_workspace(b, c, pass);
    set_math(c, pass, net_precision_is_f32(b->precision) ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH);
    void *memory[] = {numbers(c->x.floats * sizeof(float)), numbers(w_bytes), numbers(c->y.floats * sizeof(float)),
                      cuda_alloc(workspace, "the measurement of a convolution")};
    const int out[CONV_PASSES] = {[CONV_FORWARD] = 2, [CONV_DATA] = 0, [CONV_FILTER] = 1};
    const struct conv_arrays a = {memory[0], memory[1], memory[2], memory[out[pass]], memory[3]};
    int count = try_all(b, c, pass, &a, workspace, findings, &not_measured);
    cuda_wait();
    struct cudnn_entry best = best_of(b, pass, findings, count);
    if (best.algorithm == NO_ALGORITHM) best = first_that_works(b, c, pass, &a, why);
    if (best.algorithm != NO_ALGORITHM && plans_wanted()) race(b, c, pass, &a, &best);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) cuda_free(memory[i]);
    if (best.algorithm == NO_ALGORITHM && not_measured.text[0]) *why = not_measured;
    snprintf(best.key, sizeof best.key, "%s", key);
    return best;
}

/* -- the choice --------------------------------------------------------------------------------------------------- */

/* Sets the choice in the window and makes its plan; false: this version of the library does not know it, or plans are
 * wanted and were not measured. */
static bool use(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass, const struct cudnn_entry *e,
                struct conv_choice *choice) {
    const struct cudnn_plan_gpu gpu = {.handle = b->cudnn};
    const bool wanted = plans_wanted();
    if (!math_fits(b->precision, e->math) || !rounds_well(b->precision, pass, e->algorithm)) return false;
    if (wanted && !e->raced) return false;
    *choice = (struct conv_choice){.algorithm = e->algorithm};
    set_math(c, pass, e->math);
    if (workspace_of(b, c, pass, e->algorithm, &choice->workspace) != CUDNN_STATUS_SUCCESS ||
        choice->workspace > CUDNN_WORKSPACE_LIMIT)
        return false;
    if (!wanted || e->plan.engine < 0) return true;
    choice->plan = cudnn_plan_open(&gpu, b->precision, c, pass, &e->plan, &choice->plan_workspace);
    if (choice->plan && choice->plan_workspace <= CUDNN_WORKSPACE_LIMIT) return true;
    cudnn_choice_drop(choice);
    return false;
}

void cudnn_choice_drop(struct conv_choice *choice) {
    cudnn_plan_close(choice->plan);
    choice->plan = NULL;
}

/* net_precision_names is the program's, and not all that load the plugin have networks. */
static const char *const precision_names[] = {[PRECISION_F32] = "f32",
                                              [PRECISION_F32_WINOGRAD] = "f32-winograd",
                                              [PRECISION_TF32] = "tf32",
                                              [PRECISION_BF16] = "bf16"};

static void key_of(char key[CUDNN_KEY_MAX], enum precision precision, const struct conv *c, enum conv_pass pass) {
    const int used = snprintf(key, CUDNN_KEY_MAX, "%s %s x %dx%dx%dx%d w %dx%dx%dx%d stride %d pad %d",
                              pass_names[pass], precision_names[precision], c->x.n, c->x.c, c->x.h, c->x.w, c->y.c,
                              c->x.c, c->kernel[0], c->kernel[1], c->stride[0], c->pad[0]);
    if (c->stride[1] != c->stride[0] || c->pad[1] != c->pad[0])
        snprintf(key + used, (size_t)(CUDNN_KEY_MAX - used), " and %d %d", c->stride[1], c->pad[1]);
}

/* The first refusal is what the net is refused for; of what the library said, the status and its explanation. */
static void refuse(struct cudnn_backend *b, const char *key, const struct err *why) {
    const char *said = strstr(why->text, " failed: ");
    said = said ? said + strlen(" failed: ") : why->text;
    const int length = (int)strcspn(said, "(");
    err_set(&b->refused,
            "--precision %s: cuDNN %zu.%zu.%zu has no reproducible algorithm for the convolution %s%s%.*s; take "
            "--precision %s",
            precision_names[b->precision], cudnnGetVersion() / 10000, cudnnGetVersion() / 100 % 100,
            cudnnGetVersion() % 100, key, length > 0 ? ": " : "", length > 0 && said[length] ? length - 1 : length,
            said, net_precision_is_f32(b->precision) ? "tf32" : "f32");
}

struct conv_choice cudnn_choose(struct cudnn_backend *b, const struct conv *c, enum conv_pass pass) {
    struct conv_choice choice;
    struct err why = {0};
    char key[CUDNN_KEY_MAX];
    key_of(key, b->precision, c, pass);
    const struct cudnn_entry *known = cudnn_cache_find(b->measured, key);
    if (known && use(b, c, pass, known, &choice)) return choice;
    const int file = cudnn_cache_lock(b->measured);
    known = cudnn_cache_find(b->measured, key);
    if (!known || !use(b, c, pass, known, &choice)) {
        struct cudnn_entry measured = measure(b, c, pass, key, &why);
        bool good = measured.algorithm != NO_ALGORITHM;
        if (good) cudnn_cache_add(b->measured, file, &measured);
        if (good && !use(b, c, pass, &measured, &choice)) {
            measured.plan.engine = -1;
            good = use(b, c, pass, &measured, &choice);
        }
        if (!good) {
            refuse(b, key, &why);
            choice = (struct conv_choice){.algorithm = NO_ALGORITHM};
        }
    }
    cudnn_cache_unlock(file);
    return choice;
}
