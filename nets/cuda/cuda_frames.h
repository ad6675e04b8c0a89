/* cuda_frames.h: the layers of utterances of different lengths on the GPU: the launchers of cuda_frames.cu. All work
 * goes to cuda_stream(); arrays are on the device. Formulas: nets/sequences/frame_norm.h, time_rows.h, lookahead.h. */
#ifndef ST_NETS_CUDA_FRAMES_H
#define ST_NETS_CUDA_FRAMES_H

#include "nets/cuda/cuda_index.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of images: which index moves fastest; of rows of time: steps are outermost. */
enum cuda_steps_order { STEPS_LAST, STEPS_CHANNELS_LAST, STEPS_FIRST };

/* A tensor of time in a pass: element (utterance u, channel c, row i, step t) is at
 * u utterance + c channel + i row + t step. lengths [utterances]: frames of each, `each` of them a step. */
struct cuda_steps {
    uint32_t utterances, channels, rows, steps;
    uint32_t utterance, channel, row, step; /* elements from one to the next */
    const int32_t *lengths;
    uint32_t each;
    enum cuda_steps_order order;
};

/* Images in a layout of the backend (shape.width: the steps of the pass), or rows [steps][utterances][channels]. */
ST_HD struct cuda_steps cuda_steps_of_images(const struct cuda_shape *s, const int32_t *lengths, uint32_t each) {
    struct cuda_steps made = {s->images,    s->channels, s->height, s->width, s->channels * s->positions,
                              s->positions, s->width,    1,         lengths,  each,
                              STEPS_LAST};
    if (s->last) {
        made.channel = 1;
        made.row = s->width * s->channels;
        made.step = s->channels;
        made.order = STEPS_CHANNELS_LAST;
    }
    return made;
}
ST_HD struct cuda_steps cuda_steps_of_rows(uint32_t steps, uint32_t utterances, uint32_t channels,
                                           const int32_t *lengths, uint32_t each) {
    const struct cuda_steps made = {utterances, channels, 1,          steps, channels, 1, 0, utterances * channels,
                                    lengths,    each,     STEPS_FIRST};
    return made;
}

/* Which element lies at place `at`: there are no gaps. */
struct cuda_step_element {
    uint32_t utterance, channel, row, step;
};
ST_HD struct cuda_step_element cuda_step_element_at(const struct cuda_steps *s, uint32_t at) {
    struct cuda_step_element e;
    if (s->order == STEPS_FIRST) {
        e.channel = at % s->channels;
        e.utterance = at / s->channels % s->utterances;
        e.row = 0;
        e.step = at / s->step;
        return e;
    }
    e.utterance = at / s->utterance;
    at -= e.utterance * s->utterance;
    if (s->order == STEPS_CHANNELS_LAST) {
        e.channel = at % s->channels;
        e.step = at / s->channels % s->steps;
        e.row = at / s->row;
    } else {
        e.channel = at / s->channel;
        at -= e.channel * s->channel;
        e.row = at / s->row;
        e.step = at - e.row * s->row;
    }
    return e;
}
/* Where an element lies. */
ST_HD uint32_t cuda_step_place(const struct cuda_steps *s, struct cuda_step_element e) {
    return e.utterance * s->utterance + e.channel * s->channel + e.row * s->row + e.step * s->step;
}
ST_HD uint32_t cuda_valid_steps(const struct cuda_steps *s, uint32_t utterance) {
    return ((uint32_t)s->lengths[utterance] + s->each - 1) / s->each;
}

/* Batch normalisation over what is valid. factors [5][channels]: a, b, mean, p, q as in cuda_norm.cu; r [channels]: 1 /
 * deviation: from the forward pass of training to the backward pass. ceiling: 0: none. is_bf16: elements of x, y, dy.
 * dx may be dy. */
struct cuda_frame_norm {
    bool is_bf16;
    float ceiling;
    float *factors;
    double *r;
};
void cuda_frame_norm_forward(const struct cuda_frame_norm *norm, const struct cuda_steps *s, const void *x, void *y,
                             const float *param, float *state, bool training);
void cuda_frame_norm_backward(const struct cuda_frame_norm *norm, const struct cuda_steps *s, const void *x,
                              const void *dy, void *dx, const float *param, float *dparam, bool adds);

/* y [steps][utterances][channels rows] of the first `steps` columns of x; dx: 0 in the other columns. */
void cuda_time_rows_forward(const struct cuda_steps *x, uint32_t steps, const void *from, float *y, bool is_bf16);
void cuda_time_rows_backward(const struct cuda_steps *x, uint32_t steps, const float *dy, void *dx, bool is_bf16);

/* Rows of time: a copy in which what is behind the ends is 0. to may be from. */
void cuda_mask_rows(const struct cuda_steps *s, const float *from, float *to);

/* weights: of each channel, context + 1. dx: NULL where it is not asked for. g: what dy is where 0 < y < ceiling, left
 * in dy, 0 behind the ends. */
void cuda_lookahead_forward(const struct cuda_steps *s, uint32_t weights, float ceiling, const float *x, const float *w,
                            float *y);
void cuda_lookahead_backward(const struct cuda_steps *s, uint32_t weights, float ceiling, const float *x,
                             const float *w, const float *y, float *dy, float *dx, float *dw, bool adds);

#ifdef __cplusplus
}
#endif

#endif
