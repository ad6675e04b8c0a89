/* backend_cudnn_plans.h: convolutions by cuDNN's graph API, whose engines know kernels of later GPUs than the functions
 * of old (cuDNN's manual, "Graph API"). A convolution is described as a graph of one operation; the library's
 * heuristics name configurations of engines for it; one of them becomes an execution plan. Which is the fastest is
 * measured elsewhere (backend_cudnn_algorithms.c).
 *
 * Only engines are taken that say of themselves that they give the same bits every time, that have products of the
 * precision that is asked for, and that need no compiler while the program runs. Nothing here ends the job. */
#ifndef ST_NETS_BACKEND_CUDNN_PLANS_H
#define ST_NETS_BACKEND_CUDNN_PLANS_H

#include "nets/cudnn/backend_cudnn_algorithms.h"
#include "nets/cudnn/backend_cudnn_parts.h"

enum { CUDNN_KNOBS_MAX = 24 };

/* What another process makes the same plan of. Numbers have a meaning for one version of the library on one kind of
 * GPU. */
struct cudnn_recipe {
    int64_t engine; /* -1: none */
    int knobs;
    struct {
        int64_t type, value;
    } knob[CUDNN_KNOBS_MAX];
};

struct cudnn_plan;

/* Recipes for a pass that may be taken, the most promising ones first, at most `most`; how many there are. */
int cudnn_plans_list(const struct cudnn_plan_gpu *gpu, enum precision precision, const struct conv *c,
                     enum conv_pass pass, struct cudnn_recipe *list, int most);

/* NULL: the library does not make it, or it may not be taken. *workspace: bytes that it wants at each run. */
struct cudnn_plan *cudnn_plan_open(const struct cudnn_plan_gpu *gpu, enum precision precision, const struct conv *c,
                                   enum conv_pass pass, const struct cudnn_recipe *recipe, size_t *workspace);
void cudnn_plan_close(struct cudnn_plan *plan); /* NULL: nothing to do */

/* a->out = the pass's sums. Arrays are aligned to 16 bytes. */
cudnnStatus_t cudnn_plan_run(cudnnHandle_t handle, const struct cudnn_plan *plan, const struct conv_arrays *a);

#endif
