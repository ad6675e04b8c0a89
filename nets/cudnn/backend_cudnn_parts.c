/* backend_cudnn_parts.c: see backend_cudnn_parts.h. */
#include "nets/cudnn/backend_cudnn_parts.h"

#include <stddef.h>

cudnnBackendDescriptor_t cudnn_part_new(struct cudnn_parts *p, cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = NULL;
    if (p->count == CUDNN_PARTS_MAX) p->failed = true;
    if (p->failed) return NULL;
    p->failed = cudnnBackendCreateDescriptor(type, &made) != CUDNN_STATUS_SUCCESS;
    if (!p->failed) p->at[p->count++] = made;
    return made;
}

void cudnn_part_set(struct cudnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *value) {
    p->failed = p->failed || cudnnBackendSetAttribute(d, name, type, count, value) != CUDNN_STATUS_SUCCESS;
}

void cudnn_part_link(struct cudnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendDescriptor_t value) {
    cudnn_part_set(p, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void cudnn_part_finish(struct cudnn_parts *p, cudnnBackendDescriptor_t d) {
    p->failed = p->failed || cudnnBackendFinalize(d) != CUDNN_STATUS_SUCCESS;
}

int cudnn_part_get(struct cudnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int count, void *values) {
    int64_t found = 0;
    p->failed = p->failed || cudnnBackendGetAttribute(d, name, type, count, &found, values) != CUDNN_STATUS_SUCCESS;
    return p->failed ? 0 : found < count ? (int)found : count;
}

unsigned cudnn_part_notes(struct cudnn_parts *p, cudnnBackendDescriptor_t engine, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type) {
    int note[CUDNN_NOTES_MAX]; /* both kinds are enumerations */
    unsigned bits = 0;
    const int count = cudnn_part_get(p, engine, name, type, CUDNN_NOTES_MAX, note);
    for (int i = 0; i < count; i++) {
        if (note[i] < 0 || note[i] >= CUDNN_NOTES_MAX) p->failed = true; /* what it says cannot be known */
        if (!p->failed) bits |= 1u << note[i];
    }
    return bits;
}

cudnnBackendDescriptor_t cudnn_part_graph(struct cudnn_parts *p, const struct cudnn_plan_gpu *gpu,
                                          const cudnnBackendDescriptor_t *operation, int operations) {
    cudnnBackendDescriptor_t d = cudnn_part_new(p, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (gpu->handle) cudnn_part_set(p, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &gpu->handle);
    cudnn_part_set(p, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations, operation);
    cudnn_part_finish(p, d);
    return d;
}

int cudnn_part_configs(struct cudnn_parts *p, const struct cudnn_plan_gpu *gpu, cudnnBackendDescriptor_t graph,
                       cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t config[CUDNN_CONFIGS_MAX]) {
    cudnnBackendDescriptor_t d = cudnn_part_new(p, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    cudnn_part_link(p, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    cudnn_part_set(p, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!gpu->handle) cudnn_part_link(p, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, gpu->described);
    cudnn_part_finish(p, d);
    for (int i = 0; i < CUDNN_CONFIGS_MAX; i++) config[i] = cudnn_part_new(p, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    return cudnn_part_get(p, d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, CUDNN_CONFIGS_MAX,
                          config);
}

cudnnBackendDescriptor_t cudnn_part_plan(struct cudnn_parts *p, const struct cudnn_plan_gpu *gpu,
                                         cudnnBackendDescriptor_t config, int64_t *workspace) {
    cudnnBackendDescriptor_t plan = cudnn_part_new(p, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    *workspace = -1;
    if (gpu->handle)
        cudnn_part_set(p, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &gpu->handle);
    else
        cudnn_part_link(p, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, gpu->described);
    cudnn_part_link(p, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    cudnn_part_finish(p, plan);
    (void)cudnn_part_get(p, plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, workspace);
    if (p->failed) *workspace = -1;
    return plan;
}

void cudnn_parts_drop(struct cudnn_parts *p) {
    while (p->count > 0) (void)cudnnBackendDestroyDescriptor(p->at[--p->count]);
}
