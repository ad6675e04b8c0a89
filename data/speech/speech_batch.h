/* speech_batch.h: utterances to batches, for the loader and for evaluations; pure.
 *
 * To train, the utterances of a set, sorted by length, are cut into bins of those that one step takes over all ranks,
 * at most G = accumulate * batch * P: into ceil(count / G) of them, as evenly as can be, so that one of two sizes is
 * that of all, and which utterances are together goes by G alone. The utterances of a bin are dealt to the ranks in
 * turn, rank r of P has those at its places r, r + P, ..., so that every rank has long ones and short ones; the parts
 * of a step share a rank's as evenly as can be. So each utterance comes once in an epoch, and a batch, which has room
 * for `batch`, may hold fewer, one at the least where a bin has them: batch.count says how many of its places count
 * (the first ones), batch.of how many utterances the step has over all ranks. */
#ifndef ST_DATA_SPEECH_BATCH_H
#define ST_DATA_SPEECH_BATCH_H

#include "data/loader.h"

/* What batch.index has at a place that does not count. */
#define SPEECH_NONE UINT32_MAX

/* Room for a batch of utterances of any split, in page-locked memory where a device is in use; x: zero. */
void speech_batch_open(struct batch *b, const struct dataset *d, const struct speech_set *set, int batch);
void speech_batch_close(struct batch *b);

/* Steps of an epoch. global: utterances of a step over all ranks at the most, G. */
size_t speech_bins(size_t count, size_t global);

/* What of a bin rank `rank` of `size` has in part `part` of `parts`, to *b, which has room for its share. */
struct speech_place {
    size_t bin;
    int rank, size, part, parts, batch;
};
void speech_batch_fill(const struct dataset *d, const struct speech_set *set, const struct speech_place *p,
                       struct batch *b);

/* To evaluate: utterances [from, to) by length, at most `batch` of them, what a rank has left of its loader_share say.
 * Returns how many there are: 0 when there are none left. */
int speech_batch_eval(const struct dataset *d, const struct speech_set *set, size_t from, size_t to, int batch,
                      struct batch *b);

#endif
