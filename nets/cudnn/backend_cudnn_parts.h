/* backend_cudnn_parts.h: descriptors of cuDNN's graph API (cuDNN's manual, "Graph API"), as those files make them that
 * describe operations, ask for engines and make plans. Nothing here ends the job. */
#ifndef ST_NETS_BACKEND_CUDNN_PARTS_H
#define ST_NETS_BACKEND_CUDNN_PARTS_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

enum { CUDNN_PARTS_MAX = 128, CUDNN_NOTES_MAX = 32, CUDNN_CONFIGS_MAX = 48 /* of one mode of the heuristics */ };

/* Descriptors that are made together and live equally long. After the first call that fails all others do nothing, so
 * that only the end has to look. {0}: none yet. */
struct cudnn_parts {
    cudnnBackendDescriptor_t at[CUDNN_PARTS_MAX];
    int count;
    bool failed;
};

/* For whom plans are made: the GPU of a handle; or, where there is none, one that is only described: then they can be
 * listed and made, but not run. */
struct cudnn_plan_gpu {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t described;
};

cudnnBackendDescriptor_t cudnn_part_new(struct cudnn_parts *p, cudnnBackendDescriptorType_t type);
void cudnn_part_set(struct cudnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count, const void *value);
/* An attribute that is a descriptor. */
void cudnn_part_link(struct cudnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendDescriptor_t value);
void cudnn_part_finish(struct cudnn_parts *p, cudnnBackendDescriptor_t d);
/* How many elements there are, at most `count`; values: [count] */
int cudnn_part_get(struct cudnn_parts *p, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                   cudnnBackendAttributeType_t type, int count, void *values);
/* A bit for each note of an engine, of one of the two kinds; notes that cannot be told are a failure. */
unsigned cudnn_part_notes(struct cudnn_parts *p, cudnnBackendDescriptor_t engine, cudnnBackendAttributeName_t name,
                          cudnnBackendAttributeType_t type);
/* The graph of these operations. */
cudnnBackendDescriptor_t cudnn_part_graph(struct cudnn_parts *p, const struct cudnn_plan_gpu *gpu,
                                          const cudnnBackendDescriptor_t *operation, int operations);
/* How many configurations of engines one mode of the heuristics names for a graph, the most promising ones first. */
int cudnn_part_configs(struct cudnn_parts *p, const struct cudnn_plan_gpu *gpu, cudnnBackendDescriptor_t graph,
                       cudnnBackendHeurMode_t mode, cudnnBackendDescriptor_t config[CUDNN_CONFIGS_MAX]);
/* The plan of an engine's configuration. *workspace: the bytes that it wants at each run, -1 where there is none. */
cudnnBackendDescriptor_t cudnn_part_plan(struct cudnn_parts *p, const struct cudnn_plan_gpu *gpu,
                                         cudnnBackendDescriptor_t config, int64_t *workspace);
void cudnn_parts_drop(struct cudnn_parts *p);

#endif
