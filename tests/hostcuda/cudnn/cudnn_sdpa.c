/* cudnn_sdpa.c: see cudnn_sdpa.h. A graph is known when it is, operation by operation, one of the two below, with the
 * wiring, types and layouts of theirs. Source: the cuDNN 9 documentation of the graph API ("Fused Flash Attention
 * fprop", "bprop") and what the real library takes (tests/gpu/cudnn_sdpa.c). */
#include "tests/hostcuda/cudnn/cudnn_sdpa.h"

#include <math.h>
#include <string.h>

/* -- the graphs that are known ------------------------------------------------------------------------------- */

/* Tensors by what they are for. After those in memory come those that are only between operations. */
enum role {
    S = SDPA_ARRAYS,
    SCALED,
    LESS, /* backward: with the row's logarithm taken off */
    ROW,
    COLUMN,
    SEEN,
    SELECTED,
    MOST,
    SHIFTED,
    EXPONENTIAL,
    SUM,
    LOGARITHM,
    PROBABILITY,
    PRODUCT,
    PRODUCT_SUM,
    TURNED,
    DP,
    DP_LESS,
    DP_TIMES,
    DS,
    DS_TURNED,
    K_BACK,
    ROLES,
    NO = ROLES
};

/* How a tensor lies. TURNED_: its last two dimensions have changed places. */
enum layout { LAYOUT_X, TURNED_X, LAYOUT_Y, ROWS, WIDE_ROWS, SQUARE, TURNED_SQUARE, SCALAR };

struct step {
    enum sdpa_kind kind;
    int what, compute, axis, in[3], out;
    bool of_mask; /* only there with one */
};
#define MATMUL(a, b, c)                                                                                                \
    { SDPA_MATMUL, 0, CUDNN_DATA_FLOAT, -1, {a, b, NO}, c, false }
#define POINTWISE(mode, x, b, y)                                                                                       \
    { SDPA_POINTWISE, CUDNN_POINTWISE_##mode, CUDNN_DATA_FLOAT, -1, {x, b, NO}, y, false }
#define REDUCTION(mode, x, y)                                                                                          \
    { SDPA_REDUCTION, CUDNN_REDUCE_TENSOR_##mode, CUDNN_DATA_FLOAT, -1, {x, NO, NO}, y, false }
#define RESHAPE(x, y)                                                                                                  \
    { SDPA_RESHAPE, 0, 0, -1, {x, NO, NO}, y, false }
#define MASK(x)                                                                                                        \
    {SDPA_POINTWISE, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 2, {x, NO, NO}, ROW, true},                          \
        {SDPA_POINTWISE, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, 3, {x, NO, NO}, COLUMN, true},                   \
        {SDPA_POINTWISE, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, -1, {ROW, COLUMN, NO}, SEEN, true}, {             \
        SDPA_POINTWISE, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1, {x, SDPA_MASKED, SEEN}, SELECTED, true    \
    }

static const struct step forward[] = {
    MATMUL(SDPA_Q, SDPA_K, S),
    POINTWISE(MUL, S, SDPA_SCALE, SCALED),
    MASK(SCALED),
    REDUCTION(MAX, SELECTED, MOST),
    POINTWISE(SUB, SELECTED, MOST, SHIFTED),
    POINTWISE(EXP, SHIFTED, NO, EXPONENTIAL),
    REDUCTION(ADD, EXPONENTIAL, SUM),
    POINTWISE(LOG, SUM, NO, LOGARITHM),
    POINTWISE(ADD, MOST, LOGARITHM, SDPA_STATS),
    POINTWISE(DIV, EXPONENTIAL, SUM, PROBABILITY),
    MATMUL(PROBABILITY, SDPA_V, SDPA_Y),
};

static const struct step backward[] = {
    POINTWISE(MUL, SDPA_DY, SDPA_Y, PRODUCT),
    REDUCTION(ADD, PRODUCT, PRODUCT_SUM),
    POINTWISE(MUL, PRODUCT_SUM, SDPA_ONE, SDPA_SUMS),
    MATMUL(SDPA_Q, SDPA_K, S),
    POINTWISE(MUL, S, SDPA_SCALE, SCALED),
    POINTWISE(SUB, SCALED, SDPA_STATS, LESS),
    MASK(LESS),
    POINTWISE(EXP, SELECTED, NO, EXPONENTIAL),
    RESHAPE(EXPONENTIAL, TURNED),
    MATMUL(TURNED, SDPA_DY, SDPA_DV),
    MATMUL(SDPA_DY, SDPA_V, DP),
    POINTWISE(SUB, DP, SDPA_SUMS, DP_LESS),
    POINTWISE(MUL, DP_LESS, EXPONENTIAL, DP_TIMES),
    POINTWISE(MUL, DP_TIMES, SDPA_SCALE, DS),
    RESHAPE(DS, DS_TURNED),
    MATMUL(DS_TURNED, SDPA_Q, SDPA_DK),
    RESHAPE(SDPA_K, K_BACK),
    MATMUL(DS, K_BACK, SDPA_DQ), /* not by way of an array of floats, to which real blocks add in any order */
};
enum { FORWARD = sizeof forward / sizeof *forward, BACKWARD = sizeof backward / sizeof *backward, MASK_STEPS = 4 };

/* -- recognition --------------------------------------------------------------------------------------------- */

static enum layout layout_of(int role, bool is_backward) {
    switch (role) {
    case SDPA_Q:
    case SDPA_DQ:
    case SDPA_DK:
    case SDPA_DV:
    case K_BACK:
        return LAYOUT_X;
    case SDPA_K:
        return TURNED_X;
    case SDPA_V:
        return is_backward ? TURNED_X : LAYOUT_X;
    case SDPA_Y:
    case SDPA_DY:
        return LAYOUT_Y;
    case SDPA_SCALE:
    case SDPA_ONE:
    case SDPA_MASKED:
        return SCALAR;
    case SDPA_STATS:
    case SDPA_SUMS:
    case MOST:
    case SUM:
    case LOGARITHM:
    case PRODUCT_SUM:
        return ROWS;
    case PRODUCT:
        return WIDE_ROWS;
    case TURNED:
    case DS_TURNED:
        return TURNED_SQUARE;
    default:
        return SQUARE;
    }
}

static cudnnDataType_t type_of(int role, enum layout layout) {
    if (role == ROW || role == COLUMN) return CUDNN_DATA_INT32;
    if (role == SEEN) return CUDNN_DATA_BOOLEAN;
    if (layout == LAYOUT_X || layout == TURNED_X || layout == LAYOUT_Y) return CUDNN_DATA_BFLOAT16;
    return layout == TURNED_SQUARE || role == PROBABILITY ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

static void exchange(int64_t *a, int64_t *b) {
    const int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* What a tensor of this role must be. */
static struct sdpa_tensor expected(const struct sdpa *s, int role) {
    const enum layout l = layout_of(role, s->backward);
    const int64_t width = l == LAYOUT_X || l == TURNED_X || l == LAYOUT_Y || l == WIDE_ROWS ? s->d
                          : l == ROWS                                                       ? 1
                                                                                            : s->T;
    const int64_t thirds = l == LAYOUT_Y ? 1 : 3, row = s->heads * s->d;
    struct sdpa_tensor t = {.type = type_of(role, l),
                            .is_virtual = role >= SDPA_ARRAYS,
                            .by_value = l == SCALAR,
                            .size = {s->batch, s->heads, s->T, width},
                            .stride = {s->heads * s->T * width, s->T * width, width, 1}};
    if (l == LAYOUT_X || l == TURNED_X || l == LAYOUT_Y) {
        const int64_t stride[4] = {s->T * thirds * row, s->d, thirds * row, 1};
        memcpy(t.stride, stride, sizeof stride);
    }
    if (l == TURNED_X || l == TURNED_SQUARE) {
        exchange(&t.size[2], &t.size[3]);
        exchange(&t.stride[2], &t.stride[3]);
    }
    for (int i = 0; i < 4 && l == SCALAR; i++) t.size[i] = t.stride[i] = 1;
    return t;
}

static bool as_expected(const struct sdpa *s, int role, const struct sdpa_tensor *t) {
    const struct sdpa_tensor e = expected(s, role);
    return t->type == e.type && t->is_virtual == e.is_virtual && t->by_value == e.by_value &&
           memcmp(t->size, e.size, sizeof e.size) == 0 && memcmp(t->stride, e.stride, sizeof e.stride) == 0;
}

/* The tensors of a graph so far; id 0: not met yet. */
struct bound {
    int64_t id[ROLES];
};

/* The same tensor wherever the role comes up, and no other role's. */
static bool bind(struct sdpa *s, struct bound *b, int role, const struct sdpa_tensor *t) {
    if (b->id[role] != 0) return b->id[role] == t->id;
    for (int other = 0; other < ROLES; other++)
        if (b->id[other] == t->id) return false;
    if (t->id <= 0 || !as_expected(s, role, t)) return false;
    b->id[role] = t->id;
    if (role < SDPA_ARRAYS) {
        s->id[role] = t->id;
        s->there[role] = true;
    }
    return true;
}

static bool is_step(struct sdpa *s, struct bound *b, const struct step *step, const struct sdpa_node *n) {
    int inputs = 0;
    bool good =
        n->kind == step->kind && n->what == step->what && (int)n->compute == step->compute && n->axis == step->axis;
    while (inputs < 3 && step->in[inputs] != NO) inputs++;
    good = good && n->inputs == inputs;
    for (int i = 0; good && i < inputs; i++) good = bind(s, b, step->in[i], &n->in[i]);
    return good && bind(s, b, step->out, &n->out);
}

/* Where the mask is left out, what it would have masked takes the place of its result. */
static void pass_by(struct bound *b, const struct step *step) {
    if (step->what == CUDNN_POINTWISE_BINARY_SELECT) b->id[step->out] = b->id[step->in[0]];
}

cudnnStatus_t hostcudnn_sdpa_check(struct sdpa *s, const struct sdpa_node *const *node, int count) {
    struct bound b = {{0}};
    int next = 0;
    const int64_t *size = node[0]->in[0].size; /* of q, or of dy */
    *s = (struct sdpa){.batch = size[0], .heads = size[1], .T = size[2], .d = size[3]};
    s->backward = node[0]->kind == SDPA_POINTWISE;
    const struct step *steps = s->backward ? backward : forward;
    const int most = s->backward ? BACKWARD : FORWARD;
    s->causal = count == most;
    SUPPORTED_IF(s->causal || count == most - MASK_STEPS);
    SUPPORTED_IF(s->d % 8 == 0 && s->d <= 128 && s->T > 1);
    for (int i = 0; i < most; i++) {
        if (steps[i].of_mask && !s->causal) {
            pass_by(&b, &steps[i]);
        } else {
            if (!is_step(s, &b, &steps[i], node[next]))
                return hostcudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "%s: operation %d is not of a pattern that is known",
                                      __func__, next);
            next++;
        }
    }
    s->known = true;
    return CUDNN_STATUS_SUCCESS;
}

/* -- engines ------------------------------------------------------------------------------------------------- */

#define NOTE(name) (1u << CUDNN_NUMERICAL_NOTE_##name)
enum { COMPILED = 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION };

int hostcudnn_sdpa_engines(const struct engine *list[HOSTCUDNN_ENGINES]) {
    static const struct engine engines[] = {
        {71, NOTE(TENSOR_CORE), COMPILED, ENGINE_HAS_NO_PLAN, 0.8f, 0, {{0}}}, /* only if asked for */
        {73, NOTE(TENSOR_CORE) | NOTE(NONDETERMINISTIC), COMPILED, ENGINE_DOES_NOT_RUN, 0.9f, 0, {{0}}},
        {79, NOTE(TENSOR_CORE), COMPILED, ENGINE_WORKS, 1, 0, {{0}}},
    };
    const char *wanted = getenv("SPARSETRAIN_HOSTCUDA_ENGINES");
    int count = 0;
    for (int i = wanted && strcmp(wanted, "all") == 0 ? 0 : 1; i < 3; i++) list[count++] = &engines[i];
    return count;
}

/* As the real one: backward keeps the gradient of the scores there. */
size_t hostcudnn_sdpa_workspace(const struct sdpa *s) {
    return 256 + (s->backward ? (size_t)(s->batch * s->heads * s->T * s->T) * sizeof(uint16_t) : 0);
}

/* -- computation --------------------------------------------------------------------------------------------- */

/* Floats of one head. */
struct head {
    float *q, *k, *v, *y, *dy, *dq, *dk, *dv; /* [T][d] */
    float *p, *dp;                            /* [T][T] */
    float *stats, *sums;                      /* in place */
};

/* Row t of a head in memory, of a tensor that lies like x or like y. */
static char *row_of(const struct sdpa *s, int role, int64_t b, int64_t h, int64_t t) {
    const int64_t row = s->heads * s->d * (role == SDPA_Y || role == SDPA_DY ? 1 : 3);
    return (char *)s->at[role] + (size_t)((b * s->T + t) * row + h * s->d) * sizeof(uint16_t);
}

static void load(const struct sdpa *s, int role, int64_t b, int64_t h, float *to) {
    for (int64_t t = 0; t < s->T; t++)
        hostcuda_widen(to + t * s->d, row_of(s, role, b, h, t), true, (size_t)s->d, ROUND_NOT);
}

static void store(const struct sdpa *s, int role, int64_t b, int64_t h, const float *from) {
    for (int64_t t = 0; t < s->T; t++)
        hostcuda_blend(row_of(s, role, b, h, t), true, from + t * s->d, (size_t)s->d, 1, 0);
}

static struct matrix matrix(float *at, int64_t width) {
    return (struct matrix){at, (ptrdiff_t)width, 1};
}

/* c = a b */
static void multiply(int64_t m, int64_t n, int64_t k, struct matrix a, struct matrix b, float *c) {
    memset(c, 0, (size_t)(m * n) * sizeof *c);
    hostcuda_gemm((size_t)m, (size_t)n, (size_t)k, a, b, matrix(c, n));
}

static float rounded(float value) {
    return hostcuda_from_bf16(hostcuda_to_bf16(value));
}

static void score(const struct sdpa *s, const struct head *g) {
    multiply(s->T, s->T, s->d, matrix(g->q, s->d), hostcuda_turned(matrix(g->k, s->d)), g->p);
    for (int64_t i = 0; i < s->T; i++)
        for (int64_t j = 0; j < s->T; j++)
            g->p[i * s->T + j] = s->causal && j > i ? -INFINITY : g->p[i * s->T + j] * s->scale;
}

static void run_forward(const struct sdpa *s, const struct head *g) {
    score(s, g);
    for (int64_t i = 0; i < s->T; i++) {
        float *p = g->p + i * s->T, most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < s->T; j++) most = fmaxf(most, p[j]);
        for (int64_t j = 0; j < s->T; j++) sum += p[j] = expf(p[j] - most);
        for (int64_t j = 0; j < s->T; j++) p[j] = rounded(p[j] / sum);
        g->stats[i] = most + logf(sum);
    }
    multiply(s->T, s->d, s->T, matrix(g->p, s->T), matrix(g->v, s->d), g->y);
}

static void run_backward(const struct sdpa *s, const struct head *g) {
    score(s, g);
    multiply(s->T, s->T, s->d, matrix(g->dy, s->d), hostcuda_turned(matrix(g->v, s->d)), g->dp);
    for (int64_t i = 0; i < s->T; i++) {
        float sum = 0;
        for (int64_t c = 0; c < s->d; c++) sum += g->dy[i * s->d + c] * g->y[i * s->d + c];
        g->sums[i] = sum;
        for (int64_t j = 0; j < s->T; j++) {
            float *p = g->p + i * s->T + j, *dp = g->dp + i * s->T + j;
            *p = expf(*p - g->stats[i]);
            *dp = rounded((*dp - sum) * *p * s->scale);
            *p = rounded(*p);
        }
    }
    multiply(s->T, s->d, s->T, hostcuda_turned(matrix(g->p, s->T)), matrix(g->dy, s->d), g->dv);
    multiply(s->T, s->d, s->T, hostcuda_turned(matrix(g->dp, s->T)), matrix(g->q, s->d), g->dk);
    multiply(s->T, s->d, s->T, matrix(g->dp, s->T), matrix(g->k, s->d), g->dq);
}

static void run_head(const struct sdpa *s, struct head *g, int64_t b, int64_t h) {
    g->stats = (float *)s->at[SDPA_STATS] + (b * s->heads + h) * s->T;
    load(s, SDPA_Q, b, h, g->q);
    load(s, SDPA_K, b, h, g->k);
    load(s, SDPA_V, b, h, g->v);
    if (!s->backward) {
        run_forward(s, g);
        store(s, SDPA_Y, b, h, g->y);
        return;
    }
    g->sums = (float *)s->at[SDPA_SUMS] + (b * s->heads + h) * s->T;
    load(s, SDPA_Y, b, h, g->y);
    load(s, SDPA_DY, b, h, g->dy);
    run_backward(s, g);
    store(s, SDPA_DQ, b, h, g->dq);
    store(s, SDPA_DK, b, h, g->dk);
    store(s, SDPA_DV, b, h, g->dv);
}

static void run(const void *argument) {
    const struct sdpa *s = argument;
    const size_t rows = (size_t)(s->T * s->d), square = (size_t)(s->T * s->T);
    float *scratch = hostcuda_scratch((8 * rows + 2 * square) * sizeof *scratch);
    struct head g = {.q = scratch, .p = scratch + 8 * rows, .dp = scratch + 8 * rows + square};
    float **const parts[] = {&g.k, &g.v, &g.y, &g.dy, &g.dq, &g.dk, &g.dv};
    for (size_t i = 0; i < 7; i++) *parts[i] = scratch + (i + 1) * rows;
    hostcuda_overwrite_workspace(s->workspace, s->workspace_bytes);
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t h = 0; h < s->heads; h++) run_head(s, &g, b, h);
    hostcuda_took(1e-9 * (double)(s->batch * s->heads) * (double)square * (double)s->d);
    free(scratch);
}

/* -- a call -------------------------------------------------------------------------------------------------- */

/* From its first to its last number. */
static size_t bytes_of(const struct sdpa *s, int role) {
    const struct sdpa_tensor t = expected(s, role);
    int64_t last = 0;
    for (int i = 0; i < 4; i++) last += (t.size[i] - 1) * t.stride[i];
    return (size_t)(last + 1) * hostcudnn_width(t.type);
}

static bool is_output(const struct sdpa *s, int role) {
    if (!s->backward) return role == SDPA_Y || role == SDPA_STATS;
    return role == SDPA_DQ || role == SDPA_DK || role == SDPA_DV || role == SDPA_SUMS;
}

static void need(const char *function, const struct sdpa *s) {
    static const char *const names[] = {"q", "k", "v", "y", "stats", "dy", "dq", "dk", "dv", "the rows' sums"};
    hostcudnn_need(function, "workspace", s->workspace, s->workspace_bytes);
    for (int i = 0; i <= SDPA_SUMS; i++) {
        if (!s->there[i]) continue;
        hostcudnn_need(function, names[i], s->at[i], bytes_of(s, i));
        hostcuda_apart(function, s->workspace, s->workspace_bytes, names[i], s->at[i], bytes_of(s, i));
        for (int in = 0; is_output(s, i) && in <= SDPA_SUMS; in++)
            if (s->there[in] && !is_output(s, in))
                hostcuda_apart(function, s->at[i], bytes_of(s, i), names[in], s->at[in], bytes_of(s, in));
    }
}

/* A number that the caller hands over: host memory, read now. */
static float value_of(const struct sdpa *s, int role) {
    float value = 0;
    if (s->there[role]) memcpy(&value, s->at[role], sizeof value);
    return value;
}

cudnnStatus_t hostcudnn_sdpa_launch(const char *function, cudnnHandle_t handle, const struct sdpa *graph, int count,
                                    const int64_t *id, void *const *at, void *workspace) {
    struct sdpa s = *graph;
    int met = 0, wanted = 0;
    for (int role = 0; role < SDPA_ARRAYS; role++) {
        wanted += s.there[role];
        for (int i = 0; i < count; i++)
            if (s.there[role] && s.id[role] == id[i] && at[i]) {
                s.at[role] = at[i];
                met++;
            }
    }
    BAD_UNLESS(met == wanted && met == count);
    s.scale = value_of(&s, SDPA_SCALE);
    SUPPORTED_IF(!s.there[SDPA_ONE] || (value_of(&s, SDPA_ONE) >= 1 && value_of(&s, SDPA_ONE) <= 1));
    SUPPORTED_IF(!s.there[SDPA_MASKED] || (isinf(value_of(&s, SDPA_MASKED)) && value_of(&s, SDPA_MASKED) < 0));
    s.workspace = workspace;
    s.workspace_bytes = hostcudnn_sdpa_workspace(&s);
    BAD_UNLESS(workspace != NULL);
    need(function, &s);
    hostcuda_enqueue(handle->stream, run, &s, sizeof s);
    return CUDNN_STATUS_SUCCESS;
}
