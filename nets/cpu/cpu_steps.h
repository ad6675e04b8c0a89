/* cpu_steps.h: tensors whose columns, or rows, are steps in time (tensor.frames), on the CPU, seen as one: utterances
 * of blocks of rows of steps of lanes,
 *
 *      element (utterance u, channel c, row i, step t) is at  u utterance + c / lanes * block + i row + t step + c %
 * lanes
 *
 * for images in any layout (rows: their height), and for rows of numbers [steps][batch][c] (rows: 1). Utterance u has
 * valid[u] steps; what is behind them is written as 0, and not read. */
#ifndef ST_NETS_CPU_STEPS_H
#define ST_NETS_CPU_STEPS_H

#include "nets/cpu/cpu_view.h"
#include "nets/frames.h"

struct cpu_steps {
    size_t utterances, channels, blocks, lanes, rows, steps;
    size_t utterance, block, row, step; /* floats from one to the next */
};

/* t: as it is in the pass. */
struct cpu_steps cpu_steps_of(const struct tensor *t, int batch);

/* valid [batch], of what t has in this pass; lengths: call->add. */
void cpu_valid_steps(const struct tensor *t, const struct layer_call *call, size_t *valid);

struct cpu_frame_norm;

/* Batch normalisation over what is valid, see frame_norm.h. */
struct cpu_frame_norm *cpu_frame_norm_open(const struct tensor *x, int batch, double ceiling);
void cpu_frame_norm_close(struct cpu_frame_norm *norm);
void cpu_frame_norm_forward(struct cpu_frame_norm *norm, const struct layer_call *call, bool training);
void cpu_frame_norm_backward(struct cpu_frame_norm *norm, const struct layer_call *call);

#endif
