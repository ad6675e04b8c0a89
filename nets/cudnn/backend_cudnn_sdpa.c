/* backend_cudnn_sdpa.c: see backend_cudnn_sdpa.h. What the graphs must be made of is what NVIDIA's cudnn-frontend makes
 * them of (include/cudnn_frontend/node/scaled_dot_product_flash_attention.h), which is where the library's patterns can
 * be read. */
#include "nets/cudnn/backend_cudnn_sdpa.h"

#include <math.h>

#include "base/mem.h"

enum { OPERATIONS_MAX = 24, ALIGNMENT = 16, WORKSPACE_ALIGNMENT = 256 };

/* The tensors' names in a graph and at its run. From TEMPORARY on: those that are never in memory. */
enum { Q = 1, K, V, Y, STATS, DY, DQ, DK, DV, ROW_SUMS, SCALE, ONE, MASKED, TEMPORARY, NAMES = TEMPORARY };

struct cudnn_sdpa {
    struct cudnn_sdpa_shape shape;
    bool backward;
    float scale, one, masked; /* handed to the library by value at each run */
    size_t row_sums; /* bytes of backward's sums over a row of dy y, which lie before the library's workspace */
    struct cudnn_parts graph, asked, chosen;
    cudnnBackendDescriptor_t plan;
    struct cudnn_sdpa_engine engine;
    int64_t name[NAMES]; /* of the tensors that a run has to name */
    int names;
};

/* -- tensors ------------------------------------------------------------------------------------------------------ */

struct graph {
    struct cudnn_sdpa *plan;
    struct cudnn_parts *p;
    int64_t names; /* given so far to what is never in memory */
    cudnnBackendDescriptor_t operation[OPERATIONS_MAX];
    int operations;
};

struct layout {
    int64_t size[4], stride[4];
};

/* One of q, k, v. */
static struct layout layout_of_x(const struct cudnn_sdpa_shape *s) {
    const int64_t row = s->heads * s->d;
    return (struct layout){{s->batch, s->heads, s->T, s->d}, {3 * s->T * row, s->d, 3 * row, 1}};
}

static struct layout layout_of_y(const struct cudnn_sdpa_shape *s) {
    const int64_t row = s->heads * s->d;
    return (struct layout){{s->batch, s->heads, s->T, s->d}, {s->T * row, s->d, row, 1}};
}

/* [batch][heads][T][width] */
static struct layout layout_of_rows(const struct cudnn_sdpa_shape *s, int64_t width) {
    return (struct layout){{s->batch, s->heads, s->T, width}, {s->heads * s->T * width, s->T * width, width, 1}};
}

static struct layout turned(struct layout l) {
    const int64_t size = l.size[2], stride = l.stride[2];
    l.size[2] = l.size[3];
    l.stride[2] = l.stride[3];
    l.size[3] = size;
    l.stride[3] = stride;
    return l;
}

static cudnnBackendDescriptor_t tensor(struct graph *g, int64_t name, cudnnDataType_t type, const struct layout *l) {
    const int64_t alignment = ALIGNMENT;
    const bool is_virtual = name >= TEMPORARY, by_value = name == SCALE || name == ONE || name == MASKED;
    cudnnBackendDescriptor_t d = cudnn_part_new(g->p, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cudnn_part_set(g->p, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name);
    cudnn_part_set(g->p, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    cudnn_part_set(g->p, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, l->size);
    cudnn_part_set(g->p, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, l->stride);
    cudnn_part_set(g->p, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    cudnn_part_set(g->p, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    cudnn_part_set(g->p, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
    cudnn_part_finish(g->p, d);
    if (!is_virtual) g->plan->name[g->plan->names++] = name;
    return d;
}

static cudnnBackendDescriptor_t scalar(struct graph *g, int64_t name) {
    return tensor(g, name, CUDNN_DATA_FLOAT, &(struct layout){{1, 1, 1, 1}, {1, 1, 1, 1}});
}

static cudnnBackendDescriptor_t temporary(struct graph *g, cudnnDataType_t type, struct layout l) {
    return tensor(g, TEMPORARY + g->names++, type, &l);
}

/* A number for each score. */
static cudnnBackendDescriptor_t scores(struct graph *g, cudnnDataType_t type) {
    return temporary(g, type, layout_of_rows(&g->plan->shape, g->plan->shape.T));
}

/* A number for each row of them. */
static cudnnBackendDescriptor_t row(struct graph *g) {
    return temporary(g, CUDNN_DATA_FLOAT, layout_of_rows(&g->plan->shape, 1));
}

/* One of q, k, v and of their gradients. */
static cudnnBackendDescriptor_t of_x(struct graph *g, int64_t name, bool turn) {
    const struct layout l = layout_of_x(&g->plan->shape), across = turned(l);
    return tensor(g, name, CUDNN_DATA_BFLOAT16, turn ? &across : &l);
}

static cudnnBackendDescriptor_t of_y(struct graph *g, int64_t name) {
    const struct layout l = layout_of_y(&g->plan->shape);
    return tensor(g, name, CUDNN_DATA_BFLOAT16, &l);
}

static cudnnBackendDescriptor_t of_rows(struct graph *g, int64_t name) {
    const struct layout l = layout_of_rows(&g->plan->shape, 1);
    return tensor(g, name, CUDNN_DATA_FLOAT, &l);
}

/* -- operations --------------------------------------------------------------------------------------------------- */

static void add(struct graph *g, cudnnBackendDescriptor_t operation) {
    cudnn_part_finish(g->p, operation);
    if (g->operations == OPERATIONS_MAX) g->p->failed = true;
    if (!g->p->failed) g->operation[g->operations++] = operation;
}

/* c = a b */
static void multiply(struct graph *g, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b,
                     cudnnBackendDescriptor_t c) {
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t how = cudnn_part_new(g->p, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    cudnn_part_set(g->p, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    cudnn_part_finish(g->p, how);
    cudnnBackendDescriptor_t d = cudnn_part_new(g->p, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    add(g, d);
}

/* What a pointwise operation does, in numbers of which type; axis: of CUDNN_POINTWISE_GEN_INDEX alone. */
struct pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t type;
    int64_t axis;
};

/* y = x . b, where b, and a third operand for a choice, may be NULL. */
static void apply_to(struct graph *g, struct pointwise what, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                     cudnnBackendDescriptor_t choice, cudnnBackendDescriptor_t y) {
    cudnnBackendDescriptor_t how = cudnn_part_new(g->p, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnn_part_set(g->p, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &what.mode);
    cudnn_part_set(g->p, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &what.type);
    if (what.mode == CUDNN_POINTWISE_GEN_INDEX)
        cudnn_part_set(g->p, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &what.axis);
    cudnn_part_finish(g->p, how);
    cudnnBackendDescriptor_t d = cudnn_part_new(g->p, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (choice) cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, choice);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add(g, d);
}

static struct pointwise in_floats(cudnnPointwiseMode_t mode) {
    return (struct pointwise){mode, CUDNN_DATA_FLOAT, 0};
}

/* A float for each score. */
static cudnnBackendDescriptor_t apply(struct graph *g, cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                                      cudnnBackendDescriptor_t b) {
    cudnnBackendDescriptor_t y = scores(g, CUDNN_DATA_FLOAT);
    apply_to(g, in_floats(mode), x, b, NULL, y);
    return y;
}

/* A number for each row. */
static cudnnBackendDescriptor_t reduce(struct graph *g, cudnnReduceTensorOp_t operator, cudnnBackendDescriptor_t x) {
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t y = row(g), how = cudnn_part_new(g->p, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    cudnn_part_set(g->p, how, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    cudnn_part_set(g->p, how, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &operator);
    cudnn_part_finish(g->p, how);
    cudnnBackendDescriptor_t d = cudnn_part_new(g->p, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    add(g, d);
    return y;
}

/* x, of which rows and columns have changed places, as bf16: what a product takes. */
static cudnnBackendDescriptor_t turn(struct graph *g, cudnnBackendDescriptor_t x, struct layout l) {
    cudnnBackendDescriptor_t y = temporary(g, CUDNN_DATA_BFLOAT16, l);
    cudnnBackendDescriptor_t d = cudnn_part_new(g->p, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    cudnn_part_link(g->p, d, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    add(g, d);
    return y;
}

/* -- graphs ------------------------------------------------------------------------------------------------------- */

/* -infinity where a column is of a later position than the row. */
static cudnnBackendDescriptor_t mask(struct graph *g, cudnnBackendDescriptor_t x) {
    const struct pointwise rows = {CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2};
    const struct pointwise columns = {CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 3};
    const struct pointwise compare = {CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, 0};
    cudnnBackendDescriptor_t at_row = scores(g, CUDNN_DATA_INT32), at_column = scores(g, CUDNN_DATA_INT32);
    cudnnBackendDescriptor_t seen = scores(g, CUDNN_DATA_BOOLEAN), y = scores(g, CUDNN_DATA_FLOAT);
    apply_to(g, rows, x, NULL, NULL, at_row);
    apply_to(g, columns, x, NULL, NULL, at_column);
    apply_to(g, compare, at_row, at_column, NULL, seen);
    apply_to(g, in_floats(CUDNN_POINTWISE_BINARY_SELECT), x, scalar(g, MASKED), seen, y);
    return y;
}

static void describe_forward(struct graph *g) {
    const bool causal = g->plan->shape.causal;
    cudnnBackendDescriptor_t s = scores(g, CUDNN_DATA_FLOAT), probability = scores(g, CUDNN_DATA_BFLOAT16);
    multiply(g, of_x(g, Q, false), of_x(g, K, true), s);
    s = apply(g, CUDNN_POINTWISE_MUL, s, scalar(g, SCALE));
    if (causal) s = mask(g, s);
    cudnnBackendDescriptor_t most = reduce(g, CUDNN_REDUCE_TENSOR_MAX, s);
    s = apply(g, CUDNN_POINTWISE_EXP, apply(g, CUDNN_POINTWISE_SUB, s, most), NULL);
    cudnnBackendDescriptor_t sum = reduce(g, CUDNN_REDUCE_TENSOR_ADD, s), logarithm = row(g);
    apply_to(g, in_floats(CUDNN_POINTWISE_LOG), sum, NULL, NULL, logarithm);
    apply_to(g, in_floats(CUDNN_POINTWISE_ADD), most, logarithm, NULL, of_rows(g, STATS));
    apply_to(g, in_floats(CUDNN_POINTWISE_DIV), s, sum, NULL, probability);
    multiply(g, probability, of_x(g, V, false), of_y(g, Y));
}

/* The sums over a row of dy y. The library wants them in memory, and a product that would take dropout back: with 1. */
static cudnnBackendDescriptor_t sum_rows(struct graph *g, cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t dy) {
    const struct cudnn_sdpa_shape *s = &g->plan->shape;
    cudnnBackendDescriptor_t product = temporary(g, CUDNN_DATA_FLOAT, layout_of_rows(s, s->d));
    apply_to(g, in_floats(CUDNN_POINTWISE_MUL), dy, y, NULL, product);
    cudnnBackendDescriptor_t sum = reduce(g, CUDNN_REDUCE_TENSOR_ADD, product), out = of_rows(g, ROW_SUMS);
    apply_to(g, in_floats(CUDNN_POINTWISE_MUL), sum, scalar(g, ONE), NULL, out);
    return out;
}

static void describe_backward(struct graph *g) {
    const struct cudnn_sdpa_shape *s = &g->plan->shape;
    const struct layout square = turned(layout_of_rows(s, s->T));
    cudnnBackendDescriptor_t q = of_x(g, Q, false), k = of_x(g, K, true), v = of_x(g, V, true);
    cudnnBackendDescriptor_t dy = of_y(g, DY), scale = scalar(g, SCALE);
    cudnnBackendDescriptor_t row_sums = sum_rows(g, of_y(g, Y), dy);
    /* the probabilities, and dv */
    cudnnBackendDescriptor_t p = scores(g, CUDNN_DATA_FLOAT), ds = scores(g, CUDNN_DATA_FLOAT);
    multiply(g, q, k, p);
    p = apply(g, CUDNN_POINTWISE_MUL, p, scale);
    p = apply(g, CUDNN_POINTWISE_SUB, p, of_rows(g, STATS));
    if (s->causal) p = mask(g, p);
    p = apply(g, CUDNN_POINTWISE_EXP, p, NULL);
    multiply(g, turn(g, p, square), dy, of_x(g, DV, false));
    /* the gradient of the scores, and dk, dq */
    multiply(g, dy, v, ds);
    ds = apply(g, CUDNN_POINTWISE_MUL, apply(g, CUDNN_POINTWISE_SUB, ds, row_sums), p);
    ds = apply(g, CUDNN_POINTWISE_MUL, ds, scale);
    multiply(g, turn(g, ds, square), q, of_x(g, DK, false));
    multiply(g, ds, turn(g, k, layout_of_x(s)), of_x(g, DQ, false));
}

static cudnnBackendDescriptor_t describe(struct cudnn_sdpa *made, const struct cudnn_plan_gpu *gpu) {
    struct graph g = {.plan = made, .p = &made->graph};
    if (made->backward)
        describe_backward(&g);
    else
        describe_forward(&g);
    return cudnn_part_graph(g.p, gpu, g.operation, g.operations);
}

/* -- plans -------------------------------------------------------------------------------------------------------- */

static bool may_be_taken(struct cudnn_parts *p, cudnnBackendDescriptor_t config, struct cudnn_sdpa_engine *engine) {
    cudnnBackendDescriptor_t d = cudnn_part_new(p, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    (void)cudnn_part_get(p, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d);
    (void)cudnn_part_get(p, d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &engine->number);
    engine->numerical = cudnn_part_notes(p, d, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
    engine->behaviour = cudnn_part_notes(p, d, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
    return !p->failed && !(engine->numerical & 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
}

/* Makes the plan of a configuration; the bytes that the library wants at each run, or -1: it may not be taken. */
static int64_t make(struct cudnn_sdpa *made, const struct cudnn_plan_gpu *gpu, cudnnBackendDescriptor_t config) {
    struct cudnn_parts *p = &made->chosen;
    int64_t bytes = -1;
    *p = (struct cudnn_parts){0};
    if (may_be_taken(p, config, &made->engine)) made->plan = cudnn_part_plan(p, gpu, config, &bytes);
    if (bytes < 0) cudnn_parts_drop(p);
    return bytes;
}

/* The plan of the first configuration that may be taken of those that one mode of the heuristics names; as `make`. */
static int64_t make_first(struct cudnn_sdpa *made, const struct cudnn_plan_gpu *gpu, cudnnBackendDescriptor_t graph,
                          cudnnBackendHeurMode_t mode) {
    struct cudnn_parts *p = &made->asked;
    cudnnBackendDescriptor_t config[CUDNN_CONFIGS_MAX];
    int64_t bytes = -1;
    *p = (struct cudnn_parts){0};
    const int found = cudnn_part_configs(p, gpu, graph, mode, config);
    for (int i = 0; i < found && bytes < 0; i++) bytes = make(made, gpu, config[i]);
    if (bytes < 0) cudnn_parts_drop(p);
    return bytes;
}

/* See the header for why. */
static bool served(const struct cudnn_sdpa_shape *s, bool backward) {
    const size_t version = cudnnGetVersion();
    const bool whole = s->T % 128 == 0;
    if (s->batch < 1 || s->heads < 1 || s->T < 2 || s->d < 8 || s->d > 128 || s->d % 8 != 0) return false;
    if (version < 91400) return false;
    if (version < 91500 && !s->causal && s->T > 1024) return false;
    return !backward || whole || (s->causal && version > 91500);
}

struct cudnn_sdpa *cudnn_sdpa_open(const struct cudnn_plan_gpu *gpu, const struct cudnn_sdpa_shape *s, bool backward,
                                   size_t *workspace) {
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    int64_t bytes = -1;
    *workspace = 0;
    if (!served(s, backward)) return NULL;
    struct cudnn_sdpa *made = mem_zalloc(1, sizeof *made, "a plan of cuDNN");
    made->shape = *s;
    made->backward = backward;
    made->scale = (float)(1 / sqrt((double)s->d));
    made->one = 1;
    made->masked = -INFINITY;
    if (backward) {
        made->row_sums = (size_t)(s->batch * s->heads * s->T) * sizeof(float);
        made->row_sums += (WORKSPACE_ALIGNMENT - made->row_sums % WORKSPACE_ALIGNMENT) % WORKSPACE_ALIGNMENT;
    }
    cudnnBackendDescriptor_t graph = describe(made, gpu);
    for (size_t i = 0; i < sizeof modes / sizeof *modes && bytes < 0 && !made->graph.failed; i++)
        bytes = make_first(made, gpu, graph, modes[i]);
    *workspace = bytes < 0 ? 0 : made->row_sums + (size_t)bytes;
    if (bytes >= 0) return made;
    cudnn_sdpa_close(made);
    return NULL;
}

void cudnn_sdpa_close(struct cudnn_sdpa *plan) {
    if (!plan) return;
    cudnn_parts_drop(&plan->chosen);
    cudnn_parts_drop(&plan->asked);
    cudnn_parts_drop(&plan->graph);
    mem_free(plan);
}

struct cudnn_sdpa_engine cudnn_sdpa_engine(const struct cudnn_sdpa *plan) {
    return plan->engine;
}

/* -- a run -------------------------------------------------------------------------------------------------------- */

/* q, k, v or their gradients. */
static const void *third(const struct cudnn_sdpa_shape *s, const void *x, int64_t which) {
    return (const char *)x + (size_t)(which * s->heads * s->d) * sizeof(uint16_t);
}

static const void *data_of(const struct cudnn_sdpa *plan, const struct cudnn_sdpa_arrays *a, int64_t name) {
    switch (name) {
    case Q:
    case K:
    case V:
        return third(&plan->shape, a->x, name - Q);
    case DQ:
    case DK:
    case DV:
        return third(&plan->shape, a->out, name - DQ);
    case Y:
        return plan->backward ? a->y : a->out;
    case STATS:
        return a->stats;
    case DY:
        return a->dy;
    case ROW_SUMS:
        return a->workspace;
    case SCALE:
        return &plan->scale;
    case ONE:
        return &plan->one;
    default:
        return &plan->masked;
    }
}

cudnnStatus_t cudnn_sdpa_run(cudnnHandle_t handle, const struct cudnn_sdpa *plan, const struct cudnn_sdpa_arrays *a) {
    const void *data[NAMES], *rest = a->workspace ? (const char *)a->workspace + plan->row_sums : NULL;
    struct cudnn_parts p = {0};
    for (int i = 0; i < plan->names; i++) data[i] = data_of(plan, a, plan->name[i]);
    cudnnBackendDescriptor_t pack = cudnn_part_new(&p, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    cudnn_part_set(&p, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, plan->names, plan->name);
    cudnn_part_set(&p, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, plan->names, data);
    cudnn_part_set(&p, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &rest);
    cudnn_part_finish(&p, pack);
    const cudnnStatus_t status = p.failed ? CUDNN_STATUS_INTERNAL_ERROR : cudnnBackendExecute(handle, plan->plan, pack);
    cudnn_parts_drop(&p);
    return status;
}
