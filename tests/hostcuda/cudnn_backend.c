/* cudnn_backend.c: the graph API of the stand-in for cuDNN: descriptors as bags of attributes that are checked when
 * they are finalized; graphs of one convolution. Stricter than the library: what nobody here needs is refused. Source:
 * the cuDNN 9 backend documentation and cudnn_graph_v9.h. */
#include <string.h>

#include "tests/hostcuda/cudnn_engines.h"

/* -- attributes ---------------------------------------------------------------------------------------------- */

enum { ATTRIBUTES = 12, BYTES_MAX = 256, CHOICES_MAX = 32 };

struct attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    unsigned char value[BYTES_MAX];
};

/* A graph keeps its convolution, and all that is made from it a copy; so nothing looks at descriptors that are gone. */
struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool final;
    int attributes;
    struct attribute attribute[ATTRIBUTES];
    struct convolution convolution;
    struct cudnnTensorStruct tensor;
    struct cudnnConvolutionStruct window;
    const struct engine *engine;
    int knobs; /* of a configuration */
    int64_t knob[CHOICES_MAX][2];
};

static size_t width_of(cudnnBackendAttributeType_t type) {
    switch (type) {
    case CUDNN_TYPE_INT64:
        return sizeof(int64_t);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return sizeof(void *);
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_KNOB_TYPE:
    case CUDNN_TYPE_NUMERICAL_NOTE:
    case CUDNN_TYPE_BEHAVIOR_NOTE:
        return sizeof(int);
    case CUDNN_TYPE_FLOAT:
        return sizeof(float);
    default:
        return 0;
    }
}

/* What a descriptor must have when it is finalized; count 0: as many as there are. */
struct need {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t count;
    bool optional;
};
#define CONVOLUTION(kind, pass, x, w, y)                                                                               \
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##x,           \
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, false},                                                                         \
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##w,       \
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, false},                                                                     \
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_##y,       \
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, false},                                                                     \
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_CONV_DESC, \
         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, false},                                                                     \
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_ALPHA,     \
         CUDNN_TYPE_FLOAT, 1, false},                                                                                  \
    {                                                                                                                  \
        CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_##pass##_BETA,       \
            CUDNN_TYPE_FLOAT, 1, false                                                                                 \
    }

static const struct need needs[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, false},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, false},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, false},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, false},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, false},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, false},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, false},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, false},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, false},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, false},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, false},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, false},
    CONVOLUTION(FORWARD, FORWARD, X, W, Y),
    CONVOLUTION(BACKWARD_DATA, BWD_DATA, DX, W, DY),
    CONVOLUTION(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, false},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, false},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
     false},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, false},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, false},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, false},
    {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, false},
    {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, false},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, false},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, true},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, false},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
     false},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, false},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, false},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, false},
};
enum { NEEDS = sizeof needs / sizeof *needs };

static const struct attribute *find(const struct descriptor *d, cudnnBackendAttributeName_t name) {
    for (int i = 0; i < d->attributes; i++)
        if (d->attribute[i].name == name) return &d->attribute[i];
    return NULL;
}

/* Attributes that are there, for it has been finalized. */
static int64_t number(const struct descriptor *d, cudnnBackendAttributeName_t name, int i) {
    int64_t value;
    memcpy(&value, find(d, name)->value + (size_t)i * sizeof value, sizeof value);
    return value;
}

static int code(const struct descriptor *d, cudnnBackendAttributeName_t name) {
    int value;
    memcpy(&value, find(d, name)->value, sizeof value);
    return value;
}

static void *pointer(const struct descriptor *d, cudnnBackendAttributeName_t name, int i) {
    void *value;
    memcpy(&value, find(d, name)->value + (size_t)i * sizeof value, sizeof value);
    return value;
}

/* NULL: it is no finalized descriptor of that type. */
static const struct descriptor *other(const struct descriptor *d, cudnnBackendAttributeName_t name, int i,
                                      cudnnBackendDescriptorType_t type) {
    const struct descriptor *value = pointer(d, name, i);
    return value && value->final && value->type == type ? value : NULL;
}

/* Where a test has ordered it. */
#define FAILS_IF_TOLD()                                                                                                \
    do {                                                                                                               \
        if (hostcuda_fails(__func__))                                                                                  \
            return hostcudnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "%s: as it was told to", __func__);                      \
    } while (0)

/* -- descriptors --------------------------------------------------------------------------------------------- */

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                                           cudnnBackendDescriptor_t *descriptor) {
    bool known = false;
    FAILS_IF_TOLD();
    BAD_UNLESS(descriptor);
    for (int i = 0; i < NEEDS; i++) known = known || needs[i].of == descriptorType;
    SUPPORTED_IF(known);
    struct descriptor *d = calloc(1, sizeof *d);
    if (!d) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    d->type = descriptorType;
    *descriptor = d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
    free(descriptor);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType, int64_t elementCount,
                                       const void *arrayOfElements) {
    struct descriptor *d = descriptor;
    const struct need *need = NULL;
    FAILS_IF_TOLD();
    BAD_UNLESS(d && arrayOfElements && elementCount > 0 && !d->final);
    for (int i = 0; i < NEEDS; i++)
        if (needs[i].of == d->type && needs[i].name == attributeName) need = &needs[i];
    SUPPORTED_IF(need != NULL);
    BAD_UNLESS(attributeType == need->type);
    BAD_UNLESS(need->count == 0 || elementCount == need->count);
    const size_t bytes = (size_t)elementCount * width_of(attributeType);
    BAD_UNLESS(bytes > 0 && bytes <= BYTES_MAX);
    BAD_UNLESS(!find(d, attributeName)); /* nobody here sets one twice */
    struct attribute *a = &d->attribute[d->attributes++];
    *a = (struct attribute){.name = attributeName, .type = attributeType, .count = elementCount};
    memcpy(a->value, arrayOfElements, bytes);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_tensor(struct descriptor *d) {
    d->tensor.type = (cudnnDataType_t)code(d, CUDNN_ATTR_TENSOR_DATA_TYPE);
    d->tensor.dims = 4;
    BAD_UNLESS(number(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0) == HOSTCUDNN_ALIGNMENT);
    for (int i = 0; i < 4; i++) {
        d->tensor.size[i] = (int)number(d, CUDNN_ATTR_TENSOR_DIMENSIONS, i);
        d->tensor.stride[i] = (int)number(d, CUDNN_ATTR_TENSOR_STRIDES, i);
        BAD_UNLESS(d->tensor.size[i] > 0 && d->tensor.stride[i] > 0);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_window(struct descriptor *d) {
    struct cudnnConvolutionStruct *w = &d->window;
    SUPPORTED_IF(number(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0) == 2);
    w->set = true;
    w->groups = 1;
    w->mode = (cudnnConvolutionMode_t)code(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
    w->compute = (cudnnDataType_t)code(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
    for (int i = 0; i < 2; i++) {
        w->pad[i] = (int)number(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
        w->stride[i] = (int)number(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
        w->dilation[i] = (int)number(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
        SUPPORTED_IF(number(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i) == w->pad[i]);
        BAD_UNLESS(w->pad[i] >= 0 && w->stride[i] > 0 && w->dilation[i] > 0);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Its three tensors are named in `needs` in the order x, w, y; then come the window, alpha and beta. */
static cudnnStatus_t finish_convolution(struct descriptor *d, enum conv_pass pass) {
    const struct need *need = needs;
    const struct descriptor *t[3];
    const float expected[2] = {1, 0};
    while (need->of != d->type) need++;
    for (int i = 0; i < 3; i++) {
        t[i] = other(d, need[i].name, 0, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        BAD_UNLESS(t[i] != NULL);
        BAD_UNLESS(number(t[i], CUDNN_ATTR_TENSOR_UNIQUE_ID, 0) == "xwy"[i]);
    }
    const struct descriptor *window = other(d, need[3].name, 0, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    BAD_UNLESS(window != NULL);
    for (int i = 0; i < 2; i++) SUPPORTED_IF(memcmp(find(d, need[4 + i].name)->value, &expected[i], 4) == 0);
    struct cudnnFilterStruct w = {.type = t[1]->tensor.type, .dims = 4};
    w.format = hostcudnn_packed(&t[1]->tensor, CUDNN_TENSOR_NCHW) && hostcudnn_packed(&t[0]->tensor, CUDNN_TENSOR_NCHW)
                   ? CUDNN_TENSOR_NCHW
                   : CUDNN_TENSOR_NHWC;
    SUPPORTED_IF(hostcudnn_packed(&t[1]->tensor, w.format));
    memcpy(w.size, t[1]->tensor.size, sizeof w.size);
    return hostcudnn_conv_check(&d->convolution, pass, &t[0]->tensor, &w, &window->window, &t[2]->tensor);
}

static cudnnStatus_t take_convolution(struct descriptor *d, const struct descriptor *from) {
    BAD_UNLESS(from != NULL);
    d->convolution = from->convolution;
    d->engine = from->engine;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_graph(struct descriptor *d) {
    const struct descriptor *operation = pointer(d, CUDNN_ATTR_OPERATIONGRAPH_OPS, 0);
    BAD_UNLESS(pointer(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 0) != NULL);
    BAD_UNLESS(operation && operation->final);
    return take_convolution(d, operation);
}

static cudnnStatus_t finish_engine(struct descriptor *d) {
    PASS_ON(
        take_convolution(d, other(d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)));
    d->engine = hostcudnn_engine(&d->convolution, number(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0));
    SUPPORTED_IF(d->engine != NULL);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_config(struct descriptor *d) {
    const struct attribute *choices = find(d, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    PASS_ON(take_convolution(d, other(d, CUDNN_ATTR_ENGINECFG_ENGINE, 0, CUDNN_BACKEND_ENGINE_DESCRIPTOR)));
    BAD_UNLESS(d->engine != NULL);
    d->knobs = choices ? (int)choices->count : 0;
    for (int i = 0; i < d->knobs; i++) {
        const struct descriptor *choice =
            other(d, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, i, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
        BAD_UNLESS(choice != NULL);
        d->knob[i][0] = code(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
        d->knob[i][1] = number(choice, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 0);
        bool known = false;
        for (int k = 0; k < HOSTCUDNN_KNOBS; k++)
            known = known || (d->engine->knob[k][2] && d->engine->knob[k][0] == d->knob[i][0] && d->knob[i][1] >= -1 &&
                              d->knob[i][1] <= d->engine->knob[k][2]);
        SUPPORTED_IF(known);
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_plan(struct descriptor *d) {
    BAD_UNLESS(pointer(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 0) != NULL);
    const struct descriptor *config =
        other(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 0, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    PASS_ON(take_convolution(d, config));
    SUPPORTED_IF(d->engine->fault != ENGINE_HAS_NO_PLAN);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish(struct descriptor *d) {
    switch ((int)d->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return finish_tensor(d);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        return finish_window(d);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return finish_convolution(d, CONV_FORWARD);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return finish_convolution(d, CONV_DATA);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return finish_convolution(d, CONV_FILTER);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        return finish_graph(d);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        return take_convolution(
            d, other(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
        return finish_engine(d);
    case CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:
        return finish_config(d);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        return finish_plan(d);
    default:
        return CUDNN_STATUS_SUCCESS;
    }
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
    struct descriptor *d = descriptor;
    FAILS_IF_TOLD();
    BAD_UNLESS(d && !d->final);
    for (int i = 0; i < NEEDS; i++) BAD_UNLESS(needs[i].of != d->type || needs[i].optional || find(d, needs[i].name));
    PASS_ON(finish(d));
    d->final = true;
    return CUDNN_STATUS_SUCCESS;
}

/* -- what descriptors say ------------------------------------------------------------------------------------ */

/* An array of codes for the bits that are set. */
static int64_t bits_to(unsigned bits, int64_t most, int *codes) {
    int64_t count = 0;
    for (int bit = 0; bit < 32; bit++)
        if (bits >> bit & 1u && count++ < most) codes[count - 1] = bit;
    return count;
}

/* The heuristics fill descriptors that the caller has made: configurations, finalized. */
static cudnnStatus_t give_results(const struct descriptor *d, int64_t most, int64_t *count, void *values) {
    const struct engine *list[HOSTCUDNN_ENGINES];
    const int found = hostcudnn_engines(&d->convolution, list);
    const bool fallback = code(d, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    struct descriptor *const *into = values;
    *count = 0;
    for (int i = fallback ? found - 1 : 0; i < found && *count < most; i++) {
        struct descriptor *config = into[(*count)++];
        BAD_UNLESS(config && config->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && !config->final);
        config->convolution = d->convolution;
        config->engine = list[i];
        for (int k = 0; k < HOSTCUDNN_KNOBS; k++)
            if (list[i]->knob[k][2]) memcpy(config->knob[config->knobs++], list[i]->knob[k], sizeof *config->knob);
        config->final = true;
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_choices(const struct descriptor *config, int64_t most, int64_t *count, void *values) {
    struct descriptor *const *into = values;
    *count = config->knobs;
    for (int i = 0; i < config->knobs && i < most; i++) {
        BAD_UNLESS(into[i] && into[i]->type == CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR && !into[i]->final);
        const cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)config->knob[i][0];
        PASS_ON(cudnnBackendSetAttribute(into[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type));
        PASS_ON(cudnnBackendSetAttribute(into[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1,
                                         &config->knob[i][1]));
        PASS_ON(cudnnBackendFinalize(into[i]));
    }
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t give_engine(const struct descriptor *config, void *values) {
    struct descriptor *into = *(struct descriptor **)values;
    BAD_UNLESS(into && into->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && !into->final);
    into->convolution = config->convolution;
    into->engine = config->engine;
    into->final = true;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t attributeName,
                                       cudnnBackendAttributeType_t attributeType, int64_t requestedElementCount,
                                       int64_t *elementCount, void *arrayOfElements) {
    const struct descriptor *d = descriptor;
    int64_t given = 1;
    FAILS_IF_TOLD();
    BAD_UNLESS(d && d->final && requestedElementCount > 0 && elementCount && arrayOfElements);
    const int64_t workspace = d->engine ? (int64_t)d->engine->workspace : 0;
    const bool is_number = attributeType == CUDNN_TYPE_INT64;
    const bool is_part = attributeType == CUDNN_TYPE_BACKEND_DESCRIPTOR;
    if (attributeName == CUDNN_ATTR_ENGINEHEUR_RESULTS && is_part) {
        PASS_ON(give_results(d, requestedElementCount, &given, arrayOfElements));
    } else if (attributeName == CUDNN_ATTR_ENGINECFG_ENGINE && is_part) {
        PASS_ON(give_engine(d, arrayOfElements));
    } else if (attributeName == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES && is_part) {
        PASS_ON(give_choices(d, requestedElementCount, &given, arrayOfElements));
    } else if (attributeName == CUDNN_ATTR_ENGINE_GLOBAL_INDEX && is_number) {
        memcpy(arrayOfElements, &d->engine->index, sizeof d->engine->index);
    } else if (attributeName == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && attributeType == CUDNN_TYPE_NUMERICAL_NOTE) {
        given = bits_to(d->engine->numerical, requestedElementCount, arrayOfElements);
    } else if (attributeName == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE && attributeType == CUDNN_TYPE_BEHAVIOR_NOTE) {
        given = bits_to(d->engine->behaviour, requestedElementCount, arrayOfElements);
    } else if (attributeName == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && is_number) {
        memcpy(arrayOfElements, &workspace, sizeof workspace);
    } else {
        const struct attribute *a = find(d, attributeName);
        SUPPORTED_IF(a && a->type == attributeType && a->count <= requestedElementCount);
        given = a->count;
        memcpy(arrayOfElements, a->value, (size_t)given * width_of(a->type));
    }
    *elementCount = given;
    return CUDNN_STATUS_SUCCESS;
}

/* -- running ------------------------------------------------------------------------------------------------- */

/* Tensor cores round f32's factors; engines without them do not. */
static void set_up(struct convolution *v, const struct engine *e) {
    const bool tensor_cores = e->numerical & 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    v->rounding = !v->is_bf16 && tensor_cores ? ROUND_TF32 : ROUND_NOT;
    v->alpha = e->fault == ENGINE_IS_WRONG ? 1.05f : 1;
    v->beta = 0;
    v->disturbed = e->fault == ENGINE_IS_UNSTEADY;
    v->ms = hostcudnn_conv_ms(v, e->time);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack) {
    const struct descriptor *plan = executionPlan, *pack = variantPack;
    const void *data[3];
    BAD_UNLESS(handle && plan && plan->final && plan->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    BAD_UNLESS(pack && pack->final && pack->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    MAY_FAIL(__func__, handle);
    if (plan->engine->fault == ENGINE_IS_NOT_RECORDED && hostcuda_capturing(handle->stream))
        (void)cudaStreamSynchronize(handle->stream);
    if (plan->engine->fault == ENGINE_DOES_NOT_RUN)
        return hostcudnn_fail(CUDNN_STATUS_EXECUTION_FAILED, "%s: this engine never runs", __func__);
    for (int i = 0; i < 3; i++) {
        BAD_UNLESS(number(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) == "xwy"[i]);
        data[i] = pointer(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
        BAD_UNLESS(data[i] != NULL);
    }
    struct convolution v = plan->convolution;
    set_up(&v, plan->engine);
    const size_t bytes = plan->engine->workspace;
    void *workspace = bytes ? pointer(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0) : NULL;
    BAD_UNLESS(workspace || bytes == 0);
    hostcudnn_conv_memory(&v, data[0], data[1], data[2], workspace, bytes);
    hostcudnn_conv_launch(__func__, handle, &v);
    return CUDNN_STATUS_SUCCESS;
}
