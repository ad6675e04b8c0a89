/* backend_cudnn_algorithms.h: which of cuDNN's algorithms computes a convolution fastest: measured once for each shape,
 * precision and pass, and remembered (backend_cudnn_cache.h). Only algorithms that give the same bits every time are
 * taken, with products of the precision that was asked for.
 *
 * An algorithm of the functions of old serves every pass. Beside it there may be a plan of the graph API
 * (backend_cudnn_plans.h): one that was clearly faster in the same measurement, gave the algorithm's numbers, and the
 * same bits twice. It serves the passes that do not add to what is there. SPARSETRAIN_CUDNN_PLANS=0 in the environment
 * leaves plans out. */
#ifndef ST_NETS_BACKEND_CUDNN_ALGORITHMS_H
#define ST_NETS_BACKEND_CUDNN_ALGORITHMS_H

#include "nets/cudnn/backend_cudnn.h"

enum { CUDNN_WORKSPACE_LIMIT = 256 << 20 }; /* bytes that an algorithm or a plan may want */

enum conv_pass { CONV_FORWARD, CONV_DATA, CONV_FILTER, CONV_PASSES };

/* A convolution as cuDNN sees it. A pass may have products of another kind than the next, so each has its window. */
struct conv {
    struct tensor x, y;               /* in the layout of the backend */
    int kernel[2], stride[2], pad[2]; /* of rows, of columns */
    cudnnTensorDescriptor_t x_desc, y_desc;
    cudnnFilterDescriptor_t w_desc;
    cudnnConvolutionDescriptor_t window[CONV_PASSES];
};

struct cudnn_plan;

struct conv_choice {
    int algorithm; /* of the enumeration of its pass */
    size_t workspace;
    struct cudnn_plan *plan; /* NULL: none is faster */
    size_t plan_workspace;
};

/* Device memory of one pass: two of x, w, y go in, `out` is the third. */
struct conv_arrays {
    const void *x, *w, *y;
    void *out, *workspace;
};

/* out = the pass's sums + beta * out. The workspace has as many bytes as both ways want. */
cudnnStatus_t cudnn_convolve(const struct cudnn_backend *b, const struct conv *c, enum conv_pass pass,
                             const struct conv_choice *choice, float beta, const struct conv_arrays *a);

/* The choice for a pass of this convolution, set in its window too. Allocates and waits where it has to measure. Where
 * the library fails to measure, the standard algorithms are tried by themselves; where none of them works, the backend
 * is told so (b->refused), and the convolution cannot be run. */
struct conv_choice cudnn_choose(struct cudnn_backend *b, const struct conv *c, enum conv_pass pass);
void cudnn_choice_drop(struct conv_choice *choice);

#endif
