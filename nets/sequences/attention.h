/* attention.h: multi-head scaled dot-product attention (Vaswani et al., "Attention is all you need", NIPS 2017, eq. 1
 * and section 3.2.2) between the rows of each sequence of T = attention.sequence rows, one sequence after the other. x
 * holds queries, keys and values of all heads, c_x = 3 C, each C = heads * d numbers of a row:
 *
 *      x [row] = {q [heads][d], k [heads][d], v [heads][d]},   y [row][heads][d], c_y = C
 *
 *      s_ij = q_i . k_j / sqrt(d),   p_ij = exp(s_ij) / sum over j' of exp(s_ij'),   y_i = sum over j of m_ij p_ij v_j
 *
 * j goes over the rows of the sequence up to i where it is causal, else over all of them; with lengths (`add`, one
 * whole number >= 1 for each sequence, in LAYOUT_TOKENS) over the first so many of these. m: dropout of probabilities
 * (nets/dropout.h), element ((sequence * heads + head) T + i) T + j of the layer, 1 in inference. There are no
 * parameters: the products before and after it are linear layers.
 *
 * No [T][T] array is kept: the backward pass computes p again from what the forward pass keeps of each row, the
 * logarithm of its sum (Dao et al., "FlashAttention", NeurIPS 2022, algorithm 4, there block by block also of the sum).
 */
#ifndef ST_NETS_LAYERS_ATTENTION_H
#define ST_NETS_LAYERS_ATTENTION_H

#include "nets/net_build.h"

struct attention_form {
    int heads; /* divides C */
    bool causal;
    double drop; /* of the probabilities, 0 <= p < 1 */
};

/* Probabilities that are dropped have numbers of 34 bits (nets/dropout.h). False: so many windows, of so many rows
 * each, have more of them. */
bool attention_can_drop(int windows, int sequence, int heads);

/* Over the rows of setup.sequence. Dies where probabilities are dropped that attention_can_drop does not allow.
 * lengths: a tensor of whole numbers, or BUILD_NONE. */
int build_attention(struct net *net, const char *name, int x, int lengths, const struct attention_form *form);

#endif
