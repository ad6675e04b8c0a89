/* backend_cudnn_race.c: see backend_cudnn_race.h. */
#include "nets/cudnn/backend_cudnn_race.h"

#include <float.h>
#include <string.h>

#include "base/mem.h"

enum {
    CANDIDATES = 8,
    ROUNDS = 3,   /* of which the shortest counts */
    RUNS_MAX = 20 /* in a recording */
};
static const float wanted_ms = 0.2f;    /* of a recording, beside which the events' own time is small */
static const float clearly = 1 / 1.02f; /* faster by less is not worth a second way */

struct race {
    const struct cudnn_backend *b;
    const struct conv *c;
    enum conv_pass pass;
    struct conv_arrays a;
    cudaEvent_t begin, end;
    int runs;
    size_t numbers, out_bytes;      /* of the output */
    char *expected, *found, *again; /* host, [out_bytes] */
};

static void give(const struct race *r, const struct conv_choice *choice, int runs) {
    for (int i = 0; i < runs; i++) CUDNN_CALL(cudnn_convolve(r->b, r->c, r->pass, choice, 0, &r->a));
}

/* -- time --------------------------------------------------------------------------------------------------------- */

/* NULL: it cannot be recorded. */
static cudaGraphExec_t record(const struct race *r, const struct conv_choice *choice) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    CUDA_CALL(cudaStreamBeginCapture(cuda_stream(), cudaStreamCaptureModeThreadLocal));
    give(r, choice, r->runs);
    CUDA_CALL(cudaStreamEndCapture(cuda_stream(), &graph));
    if (graph) CUDA_CALL(cudaGraphInstantiate(&made, graph, 0));
    if (graph) CUDA_CALL(cudaGraphDestroy(graph));
    return made;
}

static float round_ms(const struct race *r, const struct conv_choice *choice, cudaGraphExec_t recording) {
    float ms = FLT_MAX;
    CUDA_CALL(cudaEventRecord(r->begin, cuda_stream()));
    if (recording)
        CUDA_CALL(cudaGraphLaunch(recording, cuda_stream()));
    else
        give(r, choice, r->runs);
    CUDA_CALL(cudaEventRecord(r->end, cuda_stream()));
    CUDA_CALL(cudaEventSynchronize(r->end));
    CUDA_CALL(cudaEventElapsedTime(&ms, r->begin, r->end));
    return ms;
}

/* ms of a run; FLT_MAX: it fails, or fails to be recorded where passes are. */
static float time_of(const struct race *r, const struct conv_choice *choice) {
    const bool recorded = r->b->graphs == NET_GRAPHS_USED;
    struct err why;
    float least = FLT_MAX;
    cuda_try_begin();
    give(r, choice, 1); /* libraries load kernels when they are first used */
    CUDA_CALL(cudaStreamSynchronize(cuda_stream()));
    cudaGraphExec_t recording = recorded ? record(r, choice) : NULL;
    for (int i = 0; i < ROUNDS && (recording || !recorded); i++) {
        const float ms = round_ms(r, choice, recording);
        if (ms < least) least = ms;
    }
    if (recording) CUDA_CALL(cudaGraphExecDestroy(recording));
    return cuda_try_end(&why) && least < FLT_MAX ? least / (float)r->runs : FLT_MAX;
}

/* -- numbers ------------------------------------------------------------------------------------------------------ */

static size_t numbers_of(const struct conv *c, enum conv_pass pass) {
    const struct tensor *t = pass == CONV_DATA ? &c->x : &c->y;
    if (pass == CONV_FILTER) return (size_t)c->y.c * (size_t)c->x.c * (size_t)c->kernel[0] * (size_t)c->kernel[1];
    return (size_t)t->n * (size_t)t->c * (size_t)t->h * (size_t)t->w;
}

/* What a run leaves of an output that was NaN all over. */
static bool fetch(const struct race *r, const struct conv_choice *choice, char *to) {
    struct err why;
    cuda_try_begin();
    CUDA_CALL(cudaMemsetAsync(r->a.out, 0xff, r->out_bytes, cuda_stream()));
    give(r, choice, 1);
    CUDA_CALL(cudaStreamSynchronize(cuda_stream()));
    CUDA_CALL(cudaMemcpy(to, r->a.out, r->out_bytes, cudaMemcpyDeviceToHost));
    return cuda_try_end(&why);
}

static double number(const char *from, size_t i, bool is_bf16) {
    struct bf16 half;
    float value;
    if (is_bf16)
        memcpy(&half, from + i * sizeof half, sizeof half);
    else
        memcpy(&value, from + i * sizeof value, sizeof value);
    return is_bf16 ? (double)bf16_value(half) : (double)value;
}

/* |found - expected| against |expected|, as vectors: far from what another order of the same sums makes, and from what
 * wrong arrays make. */
static bool close_to(const struct race *r) {
    static const double allowed[] = {
        [PRECISION_F32] = 1e-4, [PRECISION_F32_WINOGRAD] = 1e-3, [PRECISION_TF32] = 2e-3, [PRECISION_BF16] = 1e-2};
    const double most = allowed[r->b->precision];
    const bool is_bf16 = cudnn_is_bf16(&r->c->x);
    double off = 0, all = 0;
    for (size_t i = 0; i < r->numbers; i++) {
        const double expected = number(r->expected, i, is_bf16), by = number(r->found, i, is_bf16) - expected;
        off += by * by;
        all += expected * expected;
    }
    return off <= most * most * all; /* not where a NaN is */
}

static bool agrees(const struct race *r, const struct conv_choice *choice) {
    return fetch(r, choice, r->found) && close_to(r) && fetch(r, choice, r->again) &&
           memcmp(r->found, r->again, r->out_bytes) == 0;
}

/* -- the race ----------------------------------------------------------------------------------------------------- */

/* A plan that is faster than *least and agrees; *least is its time then. */
static bool beats(struct race *r, const struct cudnn_recipe *recipe, float *least) {
    const struct cudnn_plan_gpu gpu = {.handle = r->b->cudnn};
    const struct conv_arrays given = r->a;
    struct conv_choice choice = {0};
    bool better = false;
    choice.plan = cudnn_plan_open(&gpu, r->b->precision, r->c, r->pass, recipe, &choice.plan_workspace);
    if (choice.plan && choice.plan_workspace <= CUDNN_WORKSPACE_LIMIT) {
        r->a.workspace = cuda_alloc(choice.plan_workspace, "the measurement of a convolution");
        const float ms = time_of(r, &choice);
        better = ms < *least && agrees(r, &choice);
        if (better) *least = ms;
        cuda_wait();
        cuda_free(r->a.workspace);
        r->a = given;
    }
    cudnn_plan_close(choice.plan);
    return better;
}

static struct cudnn_recipe winner(struct race *r, const struct conv_choice *algorithm, const struct cudnn_recipe *list,
                                  int count) {
    struct cudnn_recipe best = {.engine = -1};
    float ms = time_of(r, algorithm);
    if (ms < wanted_ms) {
        r->runs = ms * RUNS_MAX > wanted_ms ? (int)(wanted_ms / ms) + 1 : RUNS_MAX;
        ms = time_of(r, algorithm);
    }
    if (!(ms < FLT_MAX) || !fetch(r, algorithm, r->expected)) return best;
    float least = ms * clearly;
    for (int i = 0; i < count; i++)
        if (beats(r, &list[i], &least)) best = list[i];
    /* Once more: meanwhile the GPU may have come to another clock. */
    if (best.engine >= 0 && least > time_of(r, algorithm) * clearly) best.engine = -1;
    return best;
}

struct cudnn_recipe cudnn_race(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass,
                               const struct conv_choice *algorithm, const struct conv_arrays *a) {
    const struct cudnn_plan_gpu gpu = {.handle = b->cudnn};
    struct race r = {.b = b, .c = c, .pass = pass, .a = *a, .runs = 1};
    struct cudnn_recipe list[CANDIDATES], best = {.engine = -1};
    const int count = cudnn_plans_list(&gpu, b->precision, c, pass, list, CANDIDATES);
    if (count == 0) return best;
    r.numbers = numbers_of(c, pass);
    r.out_bytes = r.numbers * (cudnn_is_bf16(&c->x) ? sizeof(struct bf16) : sizeof(float));
    r.expected = mem_alloc(3, r.out_bytes, "the numbers of a convolution");
    r.found = r.expected + r.out_bytes;
    r.again = r.found + r.out_bytes;
    CUDA_CALL(cudaEventCreate(&r.begin));
    CUDA_CALL(cudaEventCreate(&r.end));
    best = winner(&r, algorithm, list, count);
    cuda_wait();
    CUDA_CALL(cudaEventDestroy(r.begin));
    CUDA_CALL(cudaEventDestroy(r.end));
    mem_free(r.expected);
    return best;
}
