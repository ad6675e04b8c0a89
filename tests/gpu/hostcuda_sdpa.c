/* hostcuda_sdpa.c: fused attention (nets/cudnn/backend_cudnn_sdpa.c) over the stand-in for cuDNN, against plain loops
 * in double; what the stand-in refuses of it, and its complaints. */
#include "tests/hostcuda/libraries_rig.h"

#include "base/mem.h"
#include "nets/cudnn/backend_cudnn_sdpa.h"

/* Probabilities, gradients of scores and results are rounded to bf16, by up to 2^-9 each; sums of those by less, as
 * they go either way. */
#define TOLERANCE (2.0 / 256)
#define TOLERANCE_F32 1e-5

static cudaStream_t stream;
static struct cudnn_plan_gpu gpu;

static const struct cudnn_sdpa_shape shapes[] = {
    {1, 1, 5, 8, true},  {2, 3, 16, 16, true},   {3, 2, 33, 64, true},   {2, 1, 2, 128, true},
    {1, 3, 5, 8, false}, {3, 1, 16, 64, false},  {1, 2, 33, 16, false},  {1, 2, 128, 8, false},
    {2, 2, 64, 8, true}, {1, 1, 128, 16, false}, {1, 2, 130, 40, false},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* -- in double --------------------------------------------------------------------------------------------------- */

struct rig {
    struct cudnn_sdpa_shape s;
    struct numbers x, y, dy, dx, stats;
    struct cudnn_sdpa *forward, *backward; /* or NULL */
    size_t bytes[2];
    void *workspace[2];
};

static size_t at_x(const struct cudnn_sdpa_shape *s, int64_t b, int64_t t, int which, int64_t h) {
    return (size_t)((((b * s->T + t) * 3 + which) * s->heads + h) * s->d);
}

static size_t at_y(const struct cudnn_sdpa_shape *s, int64_t b, int64_t t, int64_t h) {
    return (size_t)(((b * s->T + t) * s->heads + h) * s->d);
}

static double dot(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += a[i] * b[i];
    return sum;
}

static void add(double *to, const double *from, double by, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] += by * from[i];
}

static int64_t seen(const struct cudnn_sdpa_shape *s, int64_t i) {
    return s->causal ? i + 1 : s->T;
}

/* p: [T], the probabilities of row i; gives the logarithm of the sum of exponentials. */
static double probabilities(const struct rig *g, int64_t b, int64_t h, int64_t i, double *p) {
    const struct cudnn_sdpa_shape *s = &g->s;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < seen(s, i); j++) {
        p[j] = dot(&g->x.host[at_x(s, b, i, 0, h)], &g->x.host[at_x(s, b, j, 1, h)], s->d) / sqrt((double)s->d);
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < seen(s, i); j++) sum += p[j] = exp(p[j] - most);
    for (int64_t j = 0; j < seen(s, i); j++) p[j] /= sum;
    return most + log(sum);
}

static void define_row(struct rig *g, int64_t b, int64_t h, int64_t i, bool backward) {
    const struct cudnn_sdpa_shape *s = &g->s;
    double p[130], *x = g->x.host, *y = &g->y.host[at_y(s, b, i, h)], *dx = g->dx.host;
    const double *dy = &g->dy.host[at_y(s, b, i, h)];
    const double logarithm = probabilities(g, b, h, i, p);
    if (!backward) {
        g->stats.host[(b * s->heads + h) * s->T + i] = logarithm;
        memset(y, 0, (size_t)s->d * sizeof *y);
        for (int64_t j = 0; j < seen(s, i); j++) add(y, &x[at_x(s, b, j, 2, h)], p[j], s->d);
        return;
    }
    const double sum = dot(dy, y, s->d);
    for (int64_t j = 0; j < seen(s, i); j++) {
        const double ds = p[j] * (dot(dy, &x[at_x(s, b, j, 2, h)], s->d) - sum) / sqrt((double)s->d);
        add(&dx[at_x(s, b, i, 0, h)], &x[at_x(s, b, j, 1, h)], ds, s->d);
        add(&dx[at_x(s, b, j, 1, h)], &x[at_x(s, b, i, 0, h)], ds, s->d);
        add(&dx[at_x(s, b, j, 2, h)], dy, p[j], s->d);
    }
}

static void define(struct rig *g, bool backward) {
    if (backward) memset(g->dx.host, 0, g->dx.count * sizeof *g->dx.host);
    for (int64_t b = 0; b < g->s.batch; b++)
        for (int64_t h = 0; h < g->s.heads; h++)
            for (int64_t i = 0; i < g->s.T; i++) define_row(g, b, h, i, backward);
}

/* -- a rig --------------------------------------------------------------------------------------------------------- */

static void open_rig(struct rig *g, const struct cudnn_sdpa_shape *s) {
    const size_t rows = (size_t)(s->batch * s->heads * s->T);
    *g = (struct rig){.s = *s};
    g->x = rig_numbers(3 * rows * (size_t)s->d, true, 2);
    g->dx = rig_numbers(g->x.count, true, 1);
    g->y = rig_numbers(rows * (size_t)s->d, true, 1);
    g->dy = rig_numbers(g->y.count, true, 1);
    g->stats = rig_numbers(rows, false, 1);
    g->forward = cudnn_sdpa_open(&gpu, s, false, &g->bytes[0]);
    g->backward = cudnn_sdpa_open(&gpu, s, true, &g->bytes[1]);
    for (int i = 0; i < 2; i++) assert_int_equal(cudaMalloc(&g->workspace[i], g->bytes[i] + 1), 0);
}

static void close_rig(struct rig *g) {
    struct numbers *const all[] = {&g->x, &g->y, &g->dy, &g->dx, &g->stats};
    for (int i = 0; i < 5; i++) rig_free(all[i]);
    for (int i = 0; i < 2; i++) assert_int_equal(cudaFree(g->workspace[i]), 0);
    cudnn_sdpa_close(g->forward);
    cudnn_sdpa_close(g->backward);
}

static cudnnStatus_t run(const struct rig *g, bool backward) {
    const struct cudnn_sdpa_arrays a = {.x = g->x.device,
                                        .y = backward ? g->y.device : NULL,
                                        .dy = backward ? g->dy.device : NULL,
                                        .out = backward ? g->dx.device : g->y.device,
                                        .stats = g->stats.device,
                                        .workspace = g->workspace[backward]};
    return cudnn_sdpa_run(dnn, backward ? g->backward : g->forward, &a);
}

static void *bits(const struct numbers *x) {
    const size_t bytes = x->count * rig_width(x->is_bf16);
    void *copy = malloc(bytes);
    assert_int_equal(cudaMemcpy(copy, x->device, bytes, cudaMemcpyDeviceToHost), 0);
    return copy;
}

/* -- cases --------------------------------------------------------------------------------------------------------- */

static bool has_backward(const struct cudnn_sdpa_shape *s) {
    return s->causal || s->T % 128 == 0;
}

static void attention_of_every_shape(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++) {
        struct rig g;
        char what[64];
        snprintf(what, sizeof what, "shape %d", i);
        open_rig(&g, &shapes[i]);
        assert_non_null(g.forward);
        assert_int_equal(g.backward != NULL, has_backward(&shapes[i]));
        assert_int_equal(run(&g, false), CUDNN_STATUS_SUCCESS);
        define(&g, false);
        rig_close(&g.y, TOLERANCE, what);
        rig_close(&g.stats, TOLERANCE_F32, what);
        if (g.backward) {
            rig_send(&g.y);
            assert_int_equal(run(&g, true), CUDNN_STATUS_SUCCESS);
            define(&g, true);
            rig_close(&g.dx, TOLERANCE, what);
        }
        close_rig(&g);
    }
}

static void the_same_bits_twice(void **state) {
    (void)state;
    struct rig g;
    open_rig(&g, &shapes[2]);
    void *y[2], *dx[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(&g, false) || run(&g, true), 0);
        y[i] = bits(&g.y);
        dx[i] = bits(&g.dx);
    }
    assert_memory_equal(y[0], y[1], g.y.count * sizeof(uint16_t));
    assert_memory_equal(dx[0], dx[1], g.dx.count * sizeof(uint16_t));
    for (int i = 0; i < 2; i++) {
        free(y[i]);
        free(dx[i]);
    }
    close_rig(&g);
}

/* Both passes in one graph, which runs with the numbers that are there when it is launched. */
static void recorded_into_a_graph(void **state) {
    (void)state;
    struct rig g;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    open_rig(&g, &shapes[1]);
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), 0);
    assert_int_equal(run(&g, false) || run(&g, true), 0);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), 0);
    assert_int_equal(cudaGraphInstantiate(&ready, graph, 0), 0);
    assert_true(rig_error(&g.y) == 0); /* nothing ran so far */
    for (size_t i = 0; i < g.x.count; i++) g.x.host[i] = rig_chance();
    rig_send(&g.x);
    assert_int_equal(cudaGraphLaunch(ready, stream), 0);
    assert_int_equal(cudaStreamSynchronize(stream), 0);
    define(&g, false);
    rig_close(&g.y, TOLERANCE, "from a graph");
    define(&g, true);
    rig_close(&g.dx, TOLERANCE, "backward from a graph");
    assert_int_equal(cudaGraphExecDestroy(ready) || cudaGraphDestroy(graph), 0);
    close_rig(&g);
}

/* Rows whose scores are far from zero, either way: nothing overflows. */
static void large_scores(void **state) {
    (void)state;
    struct rig g;
    open_rig(&g, &shapes[2]);
    for (size_t i = 0; i < g.x.count; i++) g.x.host[i] = 40 * rig_chance();
    rig_send(&g.x);
    assert_int_equal(run(&g, false) || run(&g, true), 0);
    define(&g, false);
    rig_close(&g.y, TOLERANCE, "large scores");
    define(&g, true);
    rig_close(&g.dx, 2 * TOLERANCE, "large scores, backward");
    close_rig(&g);
}

/* An engine whose bits change is passed by, one that has no plan as well. */
static void the_engine_is_chosen(void **state) {
    (void)state;
    size_t bytes = 0;
    for (int all = 0; all < 2; all++) {
        if (all) setenv("SPARSETRAIN_HOSTCUDA_ENGINES", "all", 1);
        struct cudnn_sdpa *plan = cudnn_sdpa_open(&gpu, &shapes[0], false, &bytes);
        assert_non_null(plan);
        const struct cudnn_sdpa_engine engine = cudnn_sdpa_engine(plan);
        assert_false(engine.numerical & 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
        assert_true(engine.behaviour & 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
        cudnn_sdpa_close(plan);
    }
    unsetenv("SPARSETRAIN_HOSTCUDA_ENGINES");
}

static bool opens(struct cudnn_sdpa_shape s, bool backward, const char *version) {
    size_t bytes = SIZE_MAX;
    if (version) setenv("SPARSETRAIN_HOSTCUDA_CUDNN", version, 1);
    struct cudnn_sdpa *plan = cudnn_sdpa_open(&gpu, &s, backward, &bytes);
    unsetenv("SPARSETRAIN_HOSTCUDA_CUDNN");
    cudnn_sdpa_close(plan);
    assert_true(plan || bytes == 0);
    return plan != NULL;
}

/* What is not asked for because it goes wrong: see the header. */
static void what_is_not_served(void **state) {
    (void)state;
    assert_false(opens((struct cudnn_sdpa_shape){1, 1, 5, 12, true}, false, NULL));
    assert_false(opens((struct cudnn_sdpa_shape){1, 1, 5, 136, true}, false, NULL));
    assert_false(opens((struct cudnn_sdpa_shape){1, 1, 1, 8, true}, false, NULL));
    assert_false(opens((struct cudnn_sdpa_shape){0, 1, 5, 8, true}, false, NULL));
    assert_false(opens((struct cudnn_sdpa_shape){1, 1, 64, 8, false}, true, NULL));
    assert_false(opens((struct cudnn_sdpa_shape){1, 1, 128, 8, true}, false, "91300"));
    assert_true(opens((struct cudnn_sdpa_shape){1, 1, 128, 8, true}, true, "91400"));
    assert_false(opens((struct cudnn_sdpa_shape){1, 1, 64, 8, true}, true, "91500"));
    assert_true(opens((struct cudnn_sdpa_shape){1, 1, 64, 8, true}, true, "91501"));
    assert_false(opens((struct cudnn_sdpa_shape){1, 1, 1152, 8, false}, false, "91400"));
    assert_true(opens((struct cudnn_sdpa_shape){1, 1, 1152, 8, false}, false, "91500"));
}

/* Wherever the library says no: no plan, or a run that says so, and nothing kept. */
static void a_library_that_fails(void **state) {
    (void)state;
    const char *const calls[] = {"cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute", "cudnnBackendFinalize",
                                 "cudnnBackendGetAttribute"};
    size_t bytes = 0;
    const long live = mem_live();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int nth = 0; nth < 500; nth += nth < 5 ? 1 : 7) { /* 0: each of them */
            char what[64];
            snprintf(what, sizeof what, nth ? "%s:%d" : "%s", calls[i], nth);
            setenv("SPARSETRAIN_HOSTCUDA_FAIL", what, 1);
            struct cudnn_sdpa *plan = cudnn_sdpa_open(&gpu, &shapes[0], true, &bytes);
            unsetenv("SPARSETRAIN_HOSTCUDA_FAIL");
            if (nth == 0) assert_null(plan);
            cudnn_sdpa_close(plan);
        }
    assert_int_equal(mem_live(), live);
    struct rig g;
    open_rig(&g, &shapes[0]);
    setenv("SPARSETRAIN_HOSTCUDA_FAIL", "cudnnBackendExecute", 1);
    assert_int_not_equal(run(&g, false), CUDNN_STATUS_SUCCESS);
    unsetenv("SPARSETRAIN_HOSTCUDA_FAIL");
    close_rig(&g);
    assert_int_equal(mem_live(), live);
}

static void in_host_memory(void *rig) {
    struct rig g = *(struct rig *)rig;
    g.x.device = g.x.host;
    (void)run(&g, false);
}

static void onto_its_input(void *rig) {
    struct rig g = *(struct rig *)rig;
    g.dx.device = g.x.device;
    (void)run(&g, true);
}

static void misaligned(void *rig) {
    struct rig g = *(struct rig *)rig;
    g.dy.device = (char *)g.dy.device + 2;
    (void)run(&g, true);
}

static void short_of_workspace(void *rig) {
    struct rig g = *(struct rig *)rig;
    g.workspace[1] = (char *)g.workspace[1] + 256;
    (void)run(&g, true);
}

static void complaints(void **state) {
    (void)state;
    struct rig g;
    open_rig(&g, &shapes[0]);
    rig_complains(in_host_memory, &g, "x in host memory");
    rig_complains(onto_its_input, &g, "dx on x");
    rig_complains(misaligned, &g, "dy misaligned");
    rig_complains(short_of_workspace, &g, "a workspace too small");
    close_rig(&g);
}

static int open_libraries(void **state) {
    const int failed = cudaStreamCreate(&stream) || rig_open_cudnn(state) || cudnnSetStream(dnn, stream);
    gpu.handle = dnn;
    return failed;
}

static int close_libraries(void **state) {
    return rig_close_cudnn(state) || cudaStreamDestroy(stream);
}

int main(void) {
    const struct CMUnitTest cases[] = {
        cmocka_unit_test(attention_of_every_shape), cmocka_unit_test(the_same_bits_twice),
        cmocka_unit_test(recorded_into_a_graph),    cmocka_unit_test(large_scores),
        cmocka_unit_test(the_engine_is_chosen),     cmocka_unit_test(what_is_not_served),
        cmocka_unit_test(a_library_that_fails),     cmocka_unit_test(complaints),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(cases, open_libraries, close_libraries);
}
