/* backend_cudnn_plans.c: see backend_cudnn_plans.h. */
#include "nets/cudnn/backend_cudnn_plans.h"

#include <string.h>

#include "base/mem.h"

enum {
    PARTS_MAX = 64,
    CONFIGS_MAX = 48, /* of one mode of the heuristics */
    NOTES_MAX = 32,
    ALIGNMENT = 16
};

/* Descriptors that are made together and live equally long. After the first call that fails all others do nothing, so
 * that only the end has to look. */
struct parts {
    cudnnBackendDescriptor_t at[PARTS_MAX];
    int count;
    bool failed;
};

struct cudnn_plan {
    struct parts parts;
    enum conv_pass pass;
    cudnnBackendDescriptor_t plan;
};

static cudnnBackendDescriptor_t part(struct parts *p, cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = NULL;
    if (p->count == PARTS_MAX) p->failed = true;
    if (p->failed) return NULL;
    p->failed = cudnnBackendCreateDescriptor(type, &made) != CUDNN_STATUS_SUCCESS;
    if (!p->failed) p->at[p->count++] = made;
    return made;
}

static void set(struct parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t count, const void *value) {
    p->failed = p->failed || cudnnBackendSetAttribute(d, name, type, count, value) != CUDNN_STATUS_SUCCESS;
}

static void set_part(struct parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendDescriptor_t value) {
    set(p, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finish(struct parts *p, cudnnBackendDescriptor_t d) {
    p->failed = p->failed || cudnnBackendFinalize(d) != CUDNN_STATUS_SUCCESS;
}

/* How many elements there are; values: [count] */
static int get(struct parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
               cudnnBackendAttributeType_t type, int count, void *values) {
    int64_t found = 0;
    p->failed = p->failed || cudnnBackendGetAttribute(d, name, type, count, &found, values) != CUDNN_STATUS_SUCCESS;
    return p->failed ? 0 : found < count ? (int)found : count;
}

static void drop(struct parts *p) {
    while (p->count > 0) (void)cudnnBackendDestroyDescriptor(p->at[--p->count]);
}

/* -- the graph ---------------------------------------------------------------------------------------------------- */

/* How a pass names its three tensors, its window and its factors. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
} operations[CONV_PASSES] = {
    [CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [CONV_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [CONV_FILTER] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

/* The tensors' names in a graph and at its run. */
static const int64_t names[] = {'x', 'w', 'y'};

/* Sizes are given as N, C, H, W in every layout; the strides say how they lie. */
static cudnnBackendDescriptor_t tensor(struct parts *p, int64_t name, int layout, const int64_t size[4]) {
    const int64_t c = size[1], h = size[2], w = size[3], alignment = ALIGNMENT;
    const int64_t planar[4] = {c * h * w, h * w, w, 1}, channels_last[4] = {c * h * w, 1, w * c, c};
    const cudnnDataType_t type = layout == CUDA_NHWC_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t d = part(p, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(p, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name);
    set(p, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(p, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size);
    set(p, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, layout == CUDA_NCHW ? planar : channels_last);
    set(p, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    finish(p, d);
    return d;
}

static cudnnBackendDescriptor_t window(struct parts *p, const struct conv *c) {
    const int64_t axes = 2, stride[2] = {c->stride[0], c->stride[1]}, pad[2] = {c->pad[0], c->pad[1]};
    const int64_t dilation[2] = {1, 1};
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t d = part(p, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(p, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
    set(p, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    set(p, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(p, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    set(p, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set(p, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set(p, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    finish(p, d);
    return d;
}

static cudnnBackendDescriptor_t graph(struct parts *p, const struct cudnn_plan_gpu *gpu, const struct conv *c,
                                      enum conv_pass pass) {
    const float one = 1, zero = 0;
    const int layout = c->x.layout;
    const int64_t x[4] = {c->x.n, c->x.c, c->x.h, c->x.w}, y[4] = {c->y.n, c->y.c, c->y.h, c->y.w};
    const int64_t w[4] = {c->y.c, c->x.c, c->kernel[0], c->kernel[1]};
    cudnnBackendDescriptor_t operation = part(p, operations[pass].type);
    set_part(p, operation, operations[pass].x, tensor(p, names[0], layout, x));
    set_part(p, operation, operations[pass].w, tensor(p, names[1], layout, w));
    set_part(p, operation, operations[pass].y, tensor(p, names[2], layout, y));
    set_part(p, operation, operations[pass].window, window(p, c));
    set(p, operation, operations[pass].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(p, operation, operations[pass].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    finish(p, operation);
    cudnnBackendDescriptor_t d = part(p, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (gpu->handle) set(p, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &gpu->handle);
    set_part(p, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    finish(p, d);
    return d;
}

/* -- engines ------------------------------------------------------------------------------------------------------ */

#define NOTE(name) (1u << CUDNN_NUMERICAL_NOTE_##name)

/* A bit for each note. */
static unsigned notes_of(struct parts *p, cudnnBackendDescriptor_t engine, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type) {
    int note[NOTES_MAX]; /* both kinds are enumerations */
    unsigned bits = 0;
    const int count = get(p, engine, name, type, NOTES_MAX, note);
    for (int i = 0; i < count; i++) {
        if (note[i] < 0 || note[i] >= NOTES_MAX) p->failed = true; /* what it says cannot be known */
        if (!p->failed) bits |= 1u << note[i];
    }
    return bits;
}

static bool may_be_taken(struct parts *p, enum precision precision, cudnnBackendDescriptor_t engine) {
    const unsigned notes = notes_of(p, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
    const unsigned behaviour = notes_of(p, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
    unsigned forbidden = NOTE(NONDETERMINISTIC) | NOTE(REDUCED_PRECISION_REDUCTION);
    if (precision != PRECISION_TF32) forbidden |= NOTE(DOWN_CONVERT_INPUTS);
    if (net_precision_is_f32(precision)) forbidden |= NOTE(TENSOR_CORE);
    /* Winograd's algorithm over tiles of which 4 x 4 and more are results is not what plain f32 is asked for. */
    if (precision == PRECISION_F32) forbidden |= NOTE(WINOGRAD_TILE_6x6) | NOTE(WINOGRAD_TILE_13x13);
    return !p->failed && !(notes & forbidden) && !(behaviour & 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
}

/* What a configuration is made of; false: it may not be taken, or is more than a recipe holds. */
static bool recipe_of(enum precision precision, cudnnBackendDescriptor_t config, struct cudnn_recipe *recipe) {
    struct parts p = {0};
    cudnnBackendDescriptor_t engine = part(&p, CUDNN_BACKEND_ENGINE_DESCRIPTOR), choice[CUDNN_KNOBS_MAX + 1];
    (void)get(&p, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    (void)get(&p, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &recipe->engine);
    bool good = may_be_taken(&p, precision, engine);
    for (int i = 0; i <= CUDNN_KNOBS_MAX; i++) choice[i] = part(&p, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    recipe->knobs =
        get(&p, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_KNOBS_MAX + 1, choice);
    good = good && recipe->knobs <= CUDNN_KNOBS_MAX;
    for (int i = 0; good && i < recipe->knobs; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        (void)get(&p, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        (void)get(&p, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &recipe->knob[i].value);
        recipe->knob[i].type = (int64_t)type;
    }
    good = good && !p.failed;
    drop(&p);
    return good;
}

static bool same(const struct cudnn_recipe *a, const struct cudnn_recipe *b) {
    return a->engine == b->engine && a->knobs == b->knobs &&
           memcmp(a->knob, b->knob, (size_t)a->knobs * sizeof *a->knob) == 0;
}

/* Adds to the list what one mode of the heuristics names and is not there yet; how many there are then. */
static int ask(struct parts *p, const struct cudnn_plan_gpu *gpu, enum precision precision,
               cudnnBackendDescriptor_t asked, cudnnBackendHeurMode_t mode, struct cudnn_recipe *list, int count,
               int most) {
    struct parts answer = {0};
    cudnnBackendDescriptor_t config[CONFIGS_MAX], d = part(p, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_part(p, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, asked);
    set(p, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!gpu->handle) set_part(p, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, gpu->described);
    finish(p, d);
    for (int i = 0; i < CONFIGS_MAX; i++) config[i] = part(&answer, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    const int found =
        answer.failed ? 0
                      : get(p, d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS_MAX, config);
    for (int i = 0; i < found && count < most; i++) {
        struct cudnn_recipe *recipe = &list[count];
        bool good = recipe_of(precision, config[i], recipe);
        for (int known = 0; good && known < count; known++) good = !same(&list[known], recipe);
        count += good;
    }
    drop(&answer);
    return count;
}

int cudnn_plans_list(const struct cudnn_plan_gpu *gpu, enum precision precision, const struct conv *c,
                     enum conv_pass pass, struct cudnn_recipe *list, int most) {
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    int count = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes && count < most; i++) {
        struct parts p = {0};
        count = ask(&p, gpu, precision, graph(&p, gpu, c, pass), modes[i], list, count, most);
        drop(&p);
    }
    return count;
}

/* -- plans -------------------------------------------------------------------------------------------------------- */

static cudnnBackendDescriptor_t engine_of(struct parts *p, const struct cudnn_plan_gpu *gpu,
                                          cudnnBackendDescriptor_t of, int64_t number) {
    cudnnBackendDescriptor_t d = part(p, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    set_part(p, d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, of);
    set(p, d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
    if (!gpu->handle) set_part(p, d, CUDNN_ATTR_ENGINE_DEVICEPROP, gpu->described);
    finish(p, d);
    return d;
}

static cudnnBackendDescriptor_t config_of(struct parts *p, cudnnBackendDescriptor_t engine,
                                          const struct cudnn_recipe *recipe) {
    cudnnBackendDescriptor_t choice[CUDNN_KNOBS_MAX];
    for (int i = 0; i < recipe->knobs; i++) {
        const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)recipe->knob[i].type;
        choice[i] = part(p, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        set(p, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        set(p, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &recipe->knob[i].value);
        finish(p, choice[i]);
    }
    cudnnBackendDescriptor_t d = part(p, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    set_part(p, d, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (recipe->knobs > 0)
        set(p, d, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, recipe->knobs, choice);
    finish(p, d);
    return d;
}

struct cudnn_plan *cudnn_plan_open(const struct cudnn_plan_gpu *gpu, enum precision precision, const struct conv *c,
                                   enum conv_pass pass, const struct cudnn_recipe *recipe, size_t *workspace) {
    struct cudnn_plan *made = mem_zalloc(1, sizeof *made, "a plan of cuDNN");
    struct parts *p = &made->parts;
    int64_t bytes = -1;
    made->pass = pass;
    cudnnBackendDescriptor_t engine = engine_of(p, gpu, graph(p, gpu, c, pass), recipe->engine);
    p->failed = !may_be_taken(p, precision, engine);
    cudnnBackendDescriptor_t config = config_of(p, engine, recipe);
    made->plan = part(p, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (gpu->handle)
        set(p, made->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &gpu->handle);
    else
        set_part(p, made->plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, gpu->described);
    set_part(p, made->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    finish(p, made->plan);
    (void)get(p, made->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
    *workspace = bytes > 0 ? (size_t)bytes : 0;
    if (!p->failed && bytes >= 0) return made;
    cudnn_plan_close(made);
    return NULL;
}

void cudnn_plan_close(struct cudnn_plan *plan) {
    if (!plan) return;
    drop(&plan->parts);
    mem_free(plan);
}

/* The output stands in the place of the tensor that the pass writes. */
cudnnStatus_t cudnn_plan_run(cudnnHandle_t handle, const struct cudnn_plan *plan, const struct conv_arrays *a) {
    const void *data[] = {plan->pass == CONV_DATA ? a->out : a->x, plan->pass == CONV_FILTER ? a->out : a->w,
                          plan->pass == CONV_FORWARD ? a->out : a->y};
    struct parts p = {0};
    cudnnBackendDescriptor_t pack = part(&p, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(&p, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, names);
    set(&p, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, data);
    set(&p, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &a->workspace);
    finish(&p, pack);
    const cudnnStatus_t status = p.failed ? CUDNN_STATUS_INTERNAL_ERROR : cudnnBackendExecute(handle, plan->plan, pack);
    drop(&p);
    return status;
}
