/* cudnn_sdpa.h: fused attention of the graph API of the stand-in for cuDNN: operations as the descriptors give them,
 * the two graphs of them that are known, and their computation. */
#ifndef ST_TESTS_HOSTCUDA_CUDNN_SDPA_H
#define ST_TESTS_HOSTCUDA_CUDNN_SDPA_H

#include "tests/hostcuda/cudnn/cudnn_engines.h"

struct sdpa_tensor {
    int64_t id;
    cudnnDataType_t type;
    bool is_virtual, by_value;
    int64_t size[4], stride[4];
};

enum sdpa_kind { SDPA_NOTHING, SDPA_MATMUL, SDPA_POINTWISE, SDPA_REDUCTION, SDPA_RESHAPE };

struct sdpa_node {
    enum sdpa_kind kind;
    int what;                /* cudnnPointwiseMode_t, cudnnReduceTensorOp_t */
    cudnnDataType_t compute; /* reshape: none */
    int64_t axis;            /* of CUDNN_POINTWISE_GEN_INDEX, else -1 */
    int inputs;
    struct sdpa_tensor in[3], out;
};

/* Tensors in memory, or that are handed over by value. */
enum { SDPA_Q, SDPA_K, SDPA_V, SDPA_Y, SDPA_STATS, SDPA_DY, SDPA_DQ, SDPA_DK, SDPA_DV, SDPA_SUMS };
enum { SDPA_SCALE = SDPA_SUMS + 1, SDPA_ONE, SDPA_MASKED, SDPA_ARRAYS };

struct sdpa {
    bool known, backward, causal;
    int64_t batch, heads, T, d;
    int64_t id[SDPA_ARRAYS]; /* as the graph names them */
    bool there[SDPA_ARRAYS];
    /* Of a run. */
    void *at[SDPA_ARRAYS];
    float scale;
    void *workspace;
    size_t workspace_bytes;
};

/* Is this graph one of those that are known? The refusals of the library as its status. */
cudnnStatus_t hostcudnn_sdpa_check(struct sdpa *s, const struct sdpa_node *const *node, int count);

/* All engines that are there, in the order in which the heuristics name them; how many. */
int hostcudnn_sdpa_engines(const struct engine *list[HOSTCUDNN_ENGINES]);
size_t hostcudnn_sdpa_workspace(const struct sdpa *s);

/* Checks the memory and enqueues the run; id, at: [count], what the caller says where they are. */
cudnnStatus_t hostcudnn_sdpa_launch(const char *function, cudnnHandle_t handle, const struct sdpa *graph, int count,
                                    const int64_t *id, void *const *at, void *workspace);

#endif
