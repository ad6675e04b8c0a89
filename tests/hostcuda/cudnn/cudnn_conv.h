/* cudnn_conv.h: a convolution between its checks (cudnn_conv.c), the list of its algorithms (cudnn_conv_find.c) and its
 * loops (cudnn_conv_run.c). */
#ifndef ST_TESTS_HOSTCUDA_CUDNN_CONV_H
#define ST_TESTS_HOSTCUDA_CUDNN_CONV_H

#include "tests/hostcuda/cudnn/cudnn_internal.h"

enum conv_pass { CONV_FORWARD, CONV_DATA, CONV_FILTER };

/* x: [n][c][h][w], w: [k][c / groups][r][s], y: [n][k][p][q], or channels last, all in one format. */
struct convolution {
    enum conv_pass pass;
    bool is_bf16, channels_last, flipped;
    enum rounding rounding;
    cudnnMathType_t math;
    int n, c, h, w, k, r, s, p, q, groups;
    int pad[2], stride[2], dilation[2]; /* vertical, horizontal */
    /* forward: x and w give y; data: w and dy give dx; filter: x and dy give dw */
    const void *x, *filter, *y;
    void *out; /* that one of the three which the pass writes */
    float alpha, beta;
    bool disturbed; /* by a non-deterministic algorithm */
    double ms;      /* that it claims to take */
    void *workspace;
    size_t workspace_bytes;
};

/* What the library says of one algorithm. */
struct conv_choice {
    int algorithm;
    cudnnStatus_t status;
    float time; /* ms, -1 when it failed */
    size_t memory;
    bool deterministic;
    cudnnMathType_t math;
};

/* Fills in all but the pointers; the refusals of the library as its status. */
cudnnStatus_t hostcudnn_conv_check(struct convolution *conv, enum conv_pass pass, const struct cudnnTensorStruct *x,
                                   const struct cudnnFilterStruct *w, const struct cudnnConvolutionStruct *how,
                                   const struct cudnnTensorStruct *y);

/* Fills in the pointers but checks none of them; x, filter and y: or their gradients. */
void hostcudnn_conv_memory(struct convolution *conv, const void *x, const void *filter, const void *y, void *workspace,
                           size_t workspace_bytes);

/* Ends the program unless the three tensors and the workspace, if any, are device memory and the workspace overlaps
 * none of them. */
void hostcudnn_conv_need(const char *function, const struct convolution *conv);

/* Is the algorithm there for this convolution, what workspace does it need, does it give the same bits every time? */
struct conv_choice hostcudnn_conv_choice(const struct convolution *conv, int algorithm);

size_t hostcudnn_conv_bytes(const struct convolution *conv, char which); /* of 'x', 'w' or 'y' */
char hostcudnn_conv_out(const struct convolution *conv);                 /* which of them the pass writes */

/* What something of this relative speed claims to take for it. */
float hostcudnn_conv_ms(const struct convolution *conv, float time);

/* Checks the memory and enqueues the run. */
void hostcudnn_conv_launch(const char *function, cudnnHandle_t handle, const struct convolution *conv);

void hostcudnn_conv_run(const void *convolution);

#endif
