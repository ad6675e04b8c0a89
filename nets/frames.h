/* frames.h: passes that differ in length: how large a tensor with frames (struct tensor) is in one, and its input. */
#ifndef ST_NETS_FRAMES_H
#define ST_NETS_FRAMES_H

#include <string.h>

#include "nets/backend.h"

/* Images have a multiple of so many frames, whatever a pass has, so that few shapes come up: what is made for a shape
 * is made once. */
enum { FRAMES_ROUND = 16 };

/* Steps of a tensor that so many frames of the input fill; the last may be filled in part. */
static inline int steps_of(int frames, int each) {
    return (frames + each - 1) / each;
}
static inline int frames_rounded(int frames) {
    return (frames + FRAMES_ROUND - 1) / FRAMES_ROUND * FRAMES_ROUND;
}

/* t as it is in this pass. Its elements follow each other without gaps, so that what is behind them is not used. */
static inline struct tensor tensor_in_pass(const struct tensor *t, const struct layer_call *call) {
    struct tensor now = *t;
    if (!t->frames) return now;
    if (t->h == 1 && t->w == 1)
        now.n = steps_of(call->frames, t->frames) * call->batch;
    else
        now.w = steps_of(frames_rounded(call->frames), t->frames);
    return now;
}

/* The input of a pass as the layers want it, to [batch][channels][height][columns of the pass]: the frames of each
 * utterance, and 0 behind them. */
static inline void frames_of_input(const struct net_input *input, const struct tensor *shape, float *x) {
    const size_t from = (size_t)input->frames, to = (size_t)frames_rounded(input->frames);
    const size_t rows = (size_t)shape->c * (size_t)shape->h;
    for (size_t row = 0; row < (size_t)shape->n * rows; row++) {
        const size_t own = (size_t)input->numbers[NUMBERS_LENGTHS][row / rows];
        memcpy(x + row * to, input->x + row * from, own * sizeof *x);
        memset(x + row * to + own, 0, (to - own) * sizeof *x);
    }
}

#endif
