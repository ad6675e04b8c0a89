/* nudge.h: thresholds that move by fixed factors between two exact ones, as in the code of Ok-Topk's authors.
 *
 * Algorithm 1 of the paper uses a threshold as it is for tau' steps. The code that its authors published
 * (github.com/Shigangli/Ok-Topk at 9763dccb: allreducer.py and compression.py in VGG, LSTM and BERT/bert) moves both
 * thresholds by the counts of every step, by other factors in each of its three programs:
 *
 *                                       VGG              LSTM             BERT
 *        local, before it is used       4/3: x 1.03      3/2: x 1.03      never
 *        local, for the next step       2/3: / 1.012     3/4: / 1.012     4/5: / 1.025
 *                                       5/4: x 1.012     5/4: x 1.012     5/4: x 1.025
 *        global, for the next step      2/3: / 1.008     3/4: / 1.01      4/5: / 1.036
 *                                       4/3: x 1.008     5/4: x 1.008     5/4: x 1.025
 *
 * "2/3: / 1.008" is: where fewer than 2/3 k entries reach it, it is divided by 1.008. Before it is used the local one
 * moves up to five times, as long as too many reach it. Exact ones are not moved in their own step.
 * Deviation: entries equal to a threshold reach it; in that code they do not. */
#ifndef ST_TOPK_NUDGE_H
#define ST_TOPK_NUDGE_H

#include "topk/selector.h"

/* Beyond part/whole of k the threshold is multiplied by `factor`; part 0: never. */
struct nudge {
    unsigned part, whole;
    double factor;
};
struct nudges {
    struct nudge before;                                         /* NUDGES_BEFORE times at most */
    struct nudge local_few, local_many, global_few, global_many; /* for the next step */
};
enum { NUDGES_BEFORE = 5 };

/* Of REUSE_GUARDED and REUSE_PAPER: never any. */
extern const struct nudges reuse_nudges[]; /* by enum reuse_rule */

/* A threshold's key (sparse.h) after it was moved: 1..KEY_INFINITE-1, and 0 stays. */
uint32_t nudge_key(uint32_t key, double factor);
/* Are `count` entries more than that part of k? */
bool nudge_beyond(const struct nudge *many, size_t k, size_t count);
/* Of the threshold that `count` entries reached in this step that of the next one. */
uint32_t nudge_next(const struct nudge *few, const struct nudge *many, uint32_t key, size_t k, size_t count);

#endif
