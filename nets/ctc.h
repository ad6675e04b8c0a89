/* ctc.h: connectionist temporal classification (Graves, Fernandez, Gomez and Schmidhuber, ICML 2006): the loss of a
 * sequence of labels that are somewhere in a longer sequence of steps, nobody says where. With p_t(k) = softmax of the
 * logits of step t, and l' the labels with a blank (class 0) between them, before and behind, S = 2 L + 1 of them,
 *
 *      alpha_0(0) = p_0(l'_0),  alpha_0(1) = p_0(l'_1),
 *      alpha_t(s) = p_t(l'_s) (alpha_t-1(s) + alpha_t-1(s-1) [+ alpha_t-1(s-2), if l'_s is no blank and not l'_s-2])
 *      loss = -log (alpha_T-1(S-1) + alpha_T-1(S-2))                                    (eq. 5 to 8, 12)
 *
 * and beta the same from the end, without p of its own step: alpha_t(s) beta_t(s) exp(loss) is the probability that
 * step t belongs to s, q_t(k) their sum over the s with l'_s = k, and
 *
 *      dloss / dlogit_t(k) = p_t(k) - q_t(k)                                            (eq. 16)
 *
 * All of it in logarithms and double precision. An utterance counts if it has frames, and as many steps as its labels
 * need: one each, and a blank between two equal ones. One that does not count has no loss and a gradient of 0. */
#ifndef ST_NETS_CTC_H
#define ST_NETS_CTC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cuda/cuda_hd.h"

/* Labels of an utterance: those before the first that is below 0, at most `stride`. */
ST_HD int ctc_labels(const int32_t *label, int stride) {
    int n = 0;
    while (n < stride && label[n] >= 0) n++;
    return n;
}

/* Does an utterance of so many steps count? n: its labels. */
ST_HD bool ctc_counts(const int32_t *label, int n, int steps) {
    int needed = n;
    for (int i = 1; i < n; i++) needed += label[i] == label[i - 1];
    return steps > 0 && steps >= needed;
}

/* l'_s */
ST_HD int ctc_class(const int32_t *label, int s) {
    return s % 2 ? (int)label[s / 2] : 0;
}

/* May a path go from s - 2 to s? s >= 2. */
ST_HD bool ctc_skips(const int32_t *label, int s) {
    return s % 2 && label[s / 2] != label[s / 2 - 1];
}

/* One pass. Labels, how many of the first utterances count at most, and what gradients are divided by are as fed. */
struct ctc_call {
    const float *logits;    /* [steps][batch][classes] */
    float *dlogits;         /* likewise, 0 behind an utterance's end; or NULL */
    const int32_t *lengths; /* [batch] frames of each */
    int steps, batch, classes;
    int frames; /* of a step */
};

#endif
