/* cudnn_rnn.h: an LSTM between its checks (cudnn_rnn.c) and its loops (cudnn_rnn_run.c). */
#ifndef ST_TESTS_HOSTCUDA_CUDNN_RNN_H
#define ST_TESTS_HOSTCUDA_CUDNN_RNN_H

#include "tests/hostcuda/cudnn/cudnn_internal.h"

/* Everything of one call. Memory: x, dx [steps][batch][inputs]; y, dy [steps][batch][hidden]; the states
 * [layers][batch][hidden]; batch major data has the first two dimensions changed. */
struct lstm {
    int layers, inputs, hidden, steps, batch;
    bool has_input_bias, has_recurrent_bias, batch_major;
    enum rounding rounding;
    const float *x, *y, *dy, *hx, *cx, *dhy, *dcy; /* the states: NULL for zeros */
    const float *weights;
    float *out_y, *out_h, *out_c; /* y, hy, cy going forward; dx, dhx, dcx going back; the states NULL if not wanted */
    float *dweights;
    float *reserve; /* NULL: inference */
    void *workspace;
    size_t workspace_bytes;
};

/* Where matrix or bias `id` of a layer stands in the weight space: 0..3 multiply the input, 4..7 the last output, for
 * the gates i, f, new, o. Offsets in floats; rows x columns of the matrix; -1 for a bias that is not there. */
struct lstm_place {
    ptrdiff_t matrix, bias;
    int rows, columns;
};
struct lstm_place hostcudnn_lstm_place(const struct lstm *net, int layer, int id);
size_t hostcudnn_lstm_weights(const struct lstm *net); /* floats */
size_t hostcudnn_lstm_reserve(const struct lstm *net); /* floats */

void hostcudnn_lstm_forward(const void *lstm);
void hostcudnn_lstm_backward_data(const void *lstm);
void hostcudnn_lstm_backward_weights(const void *lstm);

#endif
