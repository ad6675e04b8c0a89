/* cudnn_backend.c: the graph API of the stand-in for cuDNN: descriptors (cudnn_descriptor.h) that are checked when they
 * are finalized; graphs of one convolution, or of fused attention (cudnn_sdpa.c). Stricter than the library: what
 * nobody here needs is refused. Source: the cuDNN 9 backend documentation and cudnn_graph_v9.h. */
#include "tests/hostcuda/cudnn/cudnn_descriptor.h"

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

/* Its three tensors are named in what it needs in the order x, w, y; then come the window, alpha and beta. */
static cudnnStatus_t finish_convolution(struct descriptor *d, enum conv_pass pass) {
    const struct descriptor *t[3];
    const float expected[2] = {1, 0};
    for (int i = 0; i < 3; i++) {
        t[i] = other(d, hostcudnn_need_of(d->type, i)->name, 0, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        BAD_UNLESS(t[i] != NULL);
        BAD_UNLESS(number(t[i], CUDNN_ATTR_TENSOR_UNIQUE_ID, 0) == "xwy"[i]);
        SUPPORTED_IF(!flag(t[i], CUDNN_ATTR_TENSOR_IS_VIRTUAL) && !flag(t[i], CUDNN_ATTR_TENSOR_IS_BY_VALUE));
    }
    const struct descriptor *window =
        other(d, hostcudnn_need_of(d->type, 3)->name, 0, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    BAD_UNLESS(window != NULL);
    for (int i = 0; i < 2; i++)
        SUPPORTED_IF(memcmp(find(d, hostcudnn_need_of(d->type, 4 + i)->name)->value, &expected[i], 4) == 0);
    struct cudnnFilterStruct w = {.type = t[1]->tensor.type, .dims = 4};
    w.format = hostcudnn_packed(&t[1]->tensor, CUDNN_TENSOR_NCHW) && hostcudnn_packed(&t[0]->tensor, CUDNN_TENSOR_NCHW)
                   ? CUDNN_TENSOR_NCHW
                   : CUDNN_TENSOR_NHWC;
    SUPPORTED_IF(hostcudnn_packed(&t[1]->tensor, w.format));
    memcpy(w.size, t[1]->tensor.size, sizeof w.size);
    return hostcudnn_conv_check(&d->convolution, pass, &t[0]->tensor, &w, &window->window, &t[2]->tensor);
}

/* -- operations of attention --------------------------------------------------------------------------------- */

static cudnnStatus_t take_tensor(struct sdpa_tensor *t, const struct descriptor *from) {
    BAD_UNLESS(from && from->final && from->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    *t = (struct sdpa_tensor){.id = number(from, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0),
                              .type = from->tensor.type,
                              .is_virtual = flag(from, CUDNN_ATTR_TENSOR_IS_VIRTUAL),
                              .by_value = flag(from, CUDNN_ATTR_TENSOR_IS_BY_VALUE)};
    for (int i = 0; i < 4; i++) {
        t->size[i] = from->tensor.size[i];
        t->stride[i] = from->tensor.stride[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

/* How an operation names what it does, what goes in (0: nothing more) and what comes out. */
static const struct {
    cudnnBackendDescriptorType_t type, how_type;
    enum sdpa_kind kind;
    cudnnBackendAttributeName_t how, in[3], out;
} operations[] = {
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
     CUDNN_BACKEND_MATMUL_DESCRIPTOR,
     SDPA_MATMUL,
     CUDNN_ATTR_OPERATION_MATMUL_DESC,
     {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, 0},
     CUDNN_ATTR_OPERATION_MATMUL_CDESC},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
     SDPA_POINTWISE,
     CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
     CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
     CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
     SDPA_REDUCTION,
     CUDNN_ATTR_OPERATION_REDUCTION_DESC,
     {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 0, 0},
     CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
     CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
     SDPA_RESHAPE,
     0,
     {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 0, 0},
     CUDNN_ATTR_OPERATION_RESHAPE_YDESC},
};

static void take_what(struct sdpa_node *n, const struct descriptor *what) {
    if (n->kind == SDPA_MATMUL) {
        n->compute = (cudnnDataType_t)code(what, CUDNN_ATTR_MATMUL_COMP_TYPE);
    } else if (n->kind == SDPA_REDUCTION) {
        n->compute = (cudnnDataType_t)code(what, CUDNN_ATTR_REDUCTION_COMP_TYPE);
        n->what = code(what, CUDNN_ATTR_REDUCTION_OPERATOR);
    } else {
        n->compute = (cudnnDataType_t)code(what, CUDNN_ATTR_POINTWISE_MATH_PREC);
        n->what = code(what, CUDNN_ATTR_POINTWISE_MODE);
        if (find(what, CUDNN_ATTR_POINTWISE_AXIS)) n->axis = number(what, CUDNN_ATTR_POINTWISE_AXIS, 0);
    }
}

static cudnnStatus_t finish_operation(struct descriptor *d) {
    struct sdpa_node *n = &d->node;
    int kind = 0;
    while (operations[kind].type != d->type) kind++;
    *n = (struct sdpa_node){.kind = operations[kind].kind, .axis = -1};
    if (n->kind != SDPA_RESHAPE) {
        const struct descriptor *what = other(d, operations[kind].how, 0, operations[kind].how_type);
        BAD_UNLESS(what != NULL);
        take_what(n, what);
    }
    for (int i = 0; i < 3; i++) {
        const cudnnBackendAttributeName_t in = operations[kind].in[i];
        if (in && find(d, in)) PASS_ON(take_tensor(&n->in[n->inputs++], pointer(d, in, 0)));
    }
    return take_tensor(&n->out, pointer(d, operations[kind].out, 0));
}

/* -- graphs, engines, plans ---------------------------------------------------------------------------------- */

static cudnnStatus_t take_graph(struct descriptor *d, const struct descriptor *from) {
    BAD_UNLESS(from != NULL);
    d->convolution = from->convolution;
    d->sdpa = from->sdpa;
    d->engine = from->engine;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_graph(struct descriptor *d) {
    const int64_t count = find(d, CUDNN_ATTR_OPERATIONGRAPH_OPS)->count;
    const struct sdpa_node *node[BYTES_MAX / sizeof(void *)];
    BAD_UNLESS(pointer(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 0) != NULL);
    for (int i = 0; i < count; i++) {
        const struct descriptor *operation = pointer(d, CUDNN_ATTR_OPERATIONGRAPH_OPS, i);
        BAD_UNLESS(operation && operation->final);
        node[i] = &operation->node;
        if (count == 1 && operation->node.kind == SDPA_NOTHING) return take_graph(d, operation);
        SUPPORTED_IF(operation->node.kind != SDPA_NOTHING);
    }
    return hostcudnn_sdpa_check(&d->sdpa, node, (int)count);
}

/* As hostcudnn_engines, for either kind of graph. */
static int engines_of(const struct descriptor *d, const struct engine *list[HOSTCUDNN_ENGINES]) {
    return d->sdpa.known ? hostcudnn_sdpa_engines(list) : hostcudnn_engines(&d->convolution, list);
}

static size_t workspace_of(const struct descriptor *d) {
    return d->sdpa.known ? hostcudnn_sdpa_workspace(&d->sdpa) : d->engine->workspace;
}

static cudnnStatus_t finish_engine(struct descriptor *d) {
    PASS_ON(take_graph(d, other(d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 0, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)));
    const struct engine *list[HOSTCUDNN_ENGINES];
    const int count = engines_of(d, list);
    for (int i = 0; i < count; i++)
        if (list[i]->index == number(d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 0)) d->engine = list[i];
    SUPPORTED_IF(d->engine != NULL);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t finish_config(struct descriptor *d) {
    const struct attribute *choices = find(d, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
    PASS_ON(take_graph(d, other(d, CUDNN_ATTR_ENGINECFG_ENGINE, 0, CUDNN_BACKEND_ENGINE_DESCRIPTOR)));
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
    PASS_ON(take_graph(d, config));
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
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return finish_operation(d);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        return finish_graph(d);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        return take_graph(d,
                          other(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 0, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
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
    for (int i = 0; hostcudnn_need_of(d->type, i); i++) {
        const struct need *need = hostcudnn_need_of(d->type, i);
        BAD_UNLESS(need->optional || find(d, need->name));
    }
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
    const int found = engines_of(d, list);
    const bool fallback = code(d, CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
    struct descriptor *const *into = values;
    *count = 0;
    for (int i = fallback ? found - 1 : 0; i < found && *count < most; i++) {
        struct descriptor *config = into[(*count)++];
        BAD_UNLESS(config && config->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR && !config->final);
        PASS_ON(take_graph(config, d));
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
    PASS_ON(take_graph(into, config));
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
    const int64_t workspace = d->engine ? (int64_t)workspace_of(d) : 0;
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
        memcpy(arrayOfElements, a->value, (size_t)given * hostcudnn_attribute_width(a->type));
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

static cudnnStatus_t run_convolution(cudnnHandle_t handle, const struct descriptor *plan,
                                     const struct descriptor *pack) {
    const void *data[3];
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
    hostcudnn_conv_launch("cudnnBackendExecute", handle, &v);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t run_attention(cudnnHandle_t handle, const struct descriptor *plan, const struct descriptor *pack,
                                   int count) {
    int64_t id[BYTES_MAX / sizeof(int64_t)];
    void *at[BYTES_MAX / sizeof(void *)];
    for (int i = 0; i < count; i++) {
        id[i] = number(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i);
        at[i] = pointer(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
    }
    return hostcudnn_sdpa_launch("cudnnBackendExecute", handle, &plan->sdpa, count, id, at,
                                 pointer(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 0));
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                  cudnnBackendDescriptor_t variantPack) {
    const struct descriptor *plan = executionPlan, *pack = variantPack;
    BAD_UNLESS(handle && plan && plan->final && plan->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    BAD_UNLESS(pack && pack->final && pack->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    MAY_FAIL(__func__, handle);
    if (plan->engine->fault == ENGINE_IS_NOT_RECORDED && hostcuda_capturing(handle->stream))
        (void)cudaStreamSynchronize(handle->stream);
    if (plan->engine->fault == ENGINE_DOES_NOT_RUN)
        return hostcudnn_fail(CUDNN_STATUS_EXECUTION_FAILED, "%s: this engine never runs", __func__);
    const int64_t count = find(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)->count;
    BAD_UNLESS(find(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->count == count);
    if (plan->sdpa.known) return run_attention(handle, plan, pack, (int)count);
    BAD_UNLESS(count == 3);
    return run_convolution(handle, plan, pack);
}
