/* backend_cudnn_plans.c: see backend_cudnn_plans.h. */
#include "nets/cudnn/backend_cudnn_plans.h"

#include <string.h>

#include "base/mem.h"

enum { ALIGNMENT = 16 };

struct cudnn_plan {
    struct cudnn_parts parts;
    enum conv_pass pass;
    cudnnBackendDescriptor_t plan;
};

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
static cudnnBackendDescriptor_t tensor(struct cudnn_parts *p, int64_t name, int layout, const int64_t size[4]) {
    const int64_t c = size[1], h = size[2], w = size[3], alignment = ALIGNMENT;
    const int64_t planar[4] = {c * h * w, h * w, w, 1}, channels_last[4] = {c * h * w, 1, w * c, c};
    const cudnnDataType_t type = layout == CUDA_NHWC_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    cudnnBackendDescriptor_t d = cudnn_part_new(p, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    cudnn_part_set(p, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name);
    cudnn_part_set(p, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    cudnn_part_set(p, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, size);
    cudnn_part_set(p, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, layout == CUDA_NCHW ? planar : channels_last);
    cudnn_part_set(p, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    cudnn_part_finish(p, d);
    return d;
}

static cudnnBackendDescriptor_t window(struct cudnn_parts *p, const struct conv *c) {
    const int64_t axes = 2, stride[2] = {c->stride[0], c->stride[1]}, pad[2] = {c->pad[0], c->pad[1]};
    const int64_t dilation[2] = {1, 1};
    const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    cudnnBackendDescriptor_t d = cudnn_part_new(p, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    cudnn_part_set(p, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
    cudnn_part_set(p, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
    cudnn_part_set(p, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    cudnn_part_set(p, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    cudnn_part_set(p, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    cudnn_part_set(p, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    cudnn_part_set(p, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    cudnn_part_finish(p, d);
    return d;
}

static cudnnBackendDescriptor_t graph(struct cudnn_parts *p, const struct cudnn_plan_gpu *gpu, const struct conv *c,
                                      enum conv_pass pass) {
    const float one = 1, zero = 0;
    const int layout = c->x.layout;
    const int64_t x[4] = {c->x.n, c->x.c, c->x.h, c->x.w}, y[4] = {c->y.n, c->y.c, c->y.h, c->y.w};
    const int64_t w[4] = {c->y.c, c->x.c, c->kernel[0], c->kernel[1]};
    cudnnBackendDescriptor_t operation = cudnn_part_new(p, operations[pass].type);
    cudnn_part_link(p, operation, operations[pass].x, tensor(p, names[0], layout, x));
    cudnn_part_link(p, operation, operations[pass].w, tensor(p, names[1], layout, w));
    cudnn_part_link(p, operation, operations[pass].y, tensor(p, names[2], layout, y));
    cudnn_part_link(p, operation, operations[pass].window, window(p, c));
    cudnn_part_set(p, operation, operations[pass].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    cudnn_part_set(p, operation, operations[pass].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    cudnn_part_finish(p, operation);
    return cudnn_part_graph(p, gpu, &operation, 1);
}

/* -- engines ------------------------------------------------------------------------------------------------------ */

#define NOTE(name) (1u << CUDNN_NUMERICAL_NOTE_##name)

static bool may_be_taken(struct cudnn_parts *p, enum precision precision, cudnnBackendDescriptor_t engine) {
    const unsigned notes = cudnn_part_notes(p, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE);
    const unsigned behaviour = cudnn_part_notes(p, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE);
    unsigned forbidden = NOTE(NONDETERMINISTIC) | NOTE(REDUCED_PRECISION_REDUCTION);
    if (precision != PRECISION_TF32) forbidden |= NOTE(DOWN_CONVERT_INPUTS);
    if (net_precision_is_f32(precision)) forbidden |= NOTE(TENSOR_CORE);
    /* Winograd's algorithm over tiles of which 4 x 4 and more are results is not what plain f32 is asked for. */
    if (precision == PRECISION_F32) forbidden |= NOTE(WINOGRAD_TILE_6x6) | NOTE(WINOGRAD_TILE_13x13);
    return !p->failed && !(notes & forbidden) && !(behaviour & 1u << CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
}

/* What a configuration is made of; false: it may not be taken, or is more than a recipe holds. */
static bool recipe_of(enum precision precision, cudnnBackendDescriptor_t config, struct cudnn_recipe *recipe) {
    struct cudnn_parts p = {0};
    cudnnBackendDescriptor_t engine = cudnn_part_new(&p, CUDNN_BACKEND_ENGINE_DESCRIPTOR), choice[CUDNN_KNOBS_MAX + 1];
    (void)cudnn_part_get(&p, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    (void)cudnn_part_get(&p, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &recipe->engine);
    bool good = may_be_taken(&p, precision, engine);
    for (int i = 0; i <= CUDNN_KNOBS_MAX; i++) choice[i] = cudnn_part_new(&p, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    recipe->knobs = cudnn_part_get(&p, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                   CUDNN_KNOBS_MAX + 1, choice);
    good = good && recipe->knobs <= CUDNN_KNOBS_MAX;
    for (int i = 0; good && i < recipe->knobs; i++) {
        cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
        (void)cudnn_part_get(&p, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        (void)cudnn_part_get(&p, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
                             &recipe->knob[i].value);
        recipe->knob[i].type = (int64_t)type;
    }
    good = good && !p.failed;
    cudnn_parts_drop(&p);
    return good;
}

static bool same(const struct cudnn_recipe *a, const struct cudnn_recipe *b) {
    return a->engine == b->engine && a->knobs == b->knobs &&
           memcmp(a->knob, b->knob, (size_t)a->knobs * sizeof *a->knob) == 0;
}

/* Adds to the list what one mode of the heuristics names and is not there yet; how many there are then. */
static int ask(struct cudnn_parts *p, const struct cudnn_plan_gpu *gpu, enum precision precision,
               cudnnBackendDescriptor_t asked, cudnnBackendHeurMode_t mode, struct cudnn_recipe *list, int count,
               int most) {
    cudnnBackendDescriptor_t config[CUDNN_CONFIGS_MAX];
    const int found = cudnn_part_configs(p, gpu, asked, mode, config);
    for (int i = 0; i < found && count < most; i++) {
        struct cudnn_recipe *recipe = &list[count];
        bool good = recipe_of(precision, config[i], recipe);
        for (int known = 0; good && known < count; known++) good = !same(&list[known], recipe);
        count += good;
    }
    return count;
}

int cudnn_plans_list(const struct cudnn_plan_gpu *gpu, enum precision precision, const struct conv *c,
                     enum conv_pass pass, struct cudnn_recipe *list, int most) {
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    int count = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes && count < most; i++) {
        struct cudnn_parts p = {0};
        count = ask(&p, gpu, precision, graph(&p, gpu, c, pass), modes[i], list, count, most);
        cudnn_parts_drop(&p);
    }
    return count;
}

/* -- plans -------------------------------------------------------------------------------------------------------- */

static cudnnBackendDescriptor_t engine_of(struct cudnn_parts *p, const struct cudnn_plan_gpu *gpu,
                                          cudnnBackendDescriptor_t of, int64_t number) {
    cudnnBackendDescriptor_t d = cudnn_part_new(p, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnn_part_link(p, d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, of);
    cudnn_part_set(p, d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
    if (!gpu->handle) cudnn_part_link(p, d, CUDNN_ATTR_ENGINE_DEVICEPROP, gpu->described);
    cudnn_part_finish(p, d);
    return d;
}

static cudnnBackendDescriptor_t config_of(struct cudnn_parts *p, cudnnBackendDescriptor_t engine,
                                          const struct cudnn_recipe *recipe) {
    cudnnBackendDescriptor_t choice[CUDNN_KNOBS_MAX];
    for (int i = 0; i < recipe->knobs; i++) {
        const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)recipe->knob[i].type;
        choice[i] = cudnn_part_new(p, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        cudnn_part_set(p, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
        cudnn_part_set(p, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &recipe->knob[i].value);
        cudnn_part_finish(p, choice[i]);
    }
    cudnnBackendDescriptor_t d = cudnn_part_new(p, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cudnn_part_link(p, d, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    if (recipe->knobs > 0)
        cudnn_part_set(p, d, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, recipe->knobs, choice);
    cudnn_part_finish(p, d);
    return d;
}

struct cudnn_plan *cudnn_plan_open(const struct cudnn_plan_gpu *gpu, enum precision precision, const struct conv *c,
                                   enum conv_pass pass, const struct cudnn_recipe *recipe, size_t *workspace) {
    struct cudnn_plan *made = mem_zalloc(1, sizeof *made, "a plan of cuDNN");
    struct cudnn_parts *p = &made->parts;
    int64_t bytes;
    made->pass = pass;
    cudnnBackendDescriptor_t engine = engine_of(p, gpu, graph(p, gpu, c, pass), recipe->engine);
    p->failed = !may_be_taken(p, precision, engine);
    cudnnBackendDescriptor_t config = config_of(p, engine, recipe);
    made->plan = cudnn_part_plan(p, gpu, config, &bytes);
    *workspace = bytes > 0 ? (size_t)bytes : 0;
    if (bytes >= 0) return made;
    cudnn_plan_close(made);
    return NULL;
}

void cudnn_plan_close(struct cudnn_plan *plan) {
    if (!plan) return;
    cudnn_parts_drop(&plan->parts);
    mem_free(plan);
}

/* The output stands in the place of the tensor that the pass writes. */
cudnnStatus_t cudnn_plan_run(cudnnHandle_t handle, const struct cudnn_plan *plan, const struct conv_arrays *a) {
    const void *data[] = {plan->pass == CONV_DATA ? a->out : a->x, plan->pass == CONV_FILTER ? a->out : a->w,
                          plan->pass == CONV_FORWARD ? a->out : a->y};
    struct cudnn_parts p = {0};
    cudnnBackendDescriptor_t pack = cudnn_part_new(&p, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    cudnn_part_set(&p, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, names);
    cudnn_part_set(&p, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, data);
    cudnn_part_set(&p, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &a->workspace);
    cudnn_part_finish(&p, pack);
    const cudnnStatus_t status = p.failed ? CUDNN_STATUS_INTERNAL_ERROR : cudnnBackendExecute(handle, plan->plan, pack);
    cudnn_parts_drop(&p);
    return status;
}
