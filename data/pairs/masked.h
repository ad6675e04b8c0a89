/* masked.h: a packed sequence as a masked language model with next-sentence prediction takes it (Devlin et al. 2019,
 * Section 3.1).
 *
 * Of the n pieces of A and B, m = max(1, min(M, round(0.15 n))) are chosen, every set of m places being as likely as
 * any other. Of the chosen ones 80% become [MASK], 10% any piece of the vocabulary, 10% stay; the label is what was
 * there. All of it is a function of (seed, epoch, sequence), so it depends neither on P nor on what was done before. */
#ifndef ST_DATA_MASKED_H
#define ST_DATA_MASKED_H

#include "base/rng.h"
#include "data/dataset.h"

/* Sequences, or one of them: then batch is 1. */
struct masked {
    int32_t *token;   /* [batch][length] [CLS] A [SEP] B [SEP], then [PAD] */
    int32_t *type;    /* [batch][length] 0 up to the first [SEP], 1 from there to the second, 0 again */
    int32_t *chosen;  /* [batch][most] places in the sequence, ascending; 0 where there are fewer */
    int32_t *y;       /* [batch][most] the piece that was there; -1 where there are fewer */
    int32_t *lengths; /* [batch] pieces before the padding */
    int32_t *next;    /* [batch] 0: B follows A in the text; 1: it is of another article */
};

/* What is masked how: RNG_MASK to train on, RNG_MASK_EVAL to evaluate on. */
struct masking {
    enum rng_stream stream;
    uint64_t seed;
    size_t epoch;
    int most; /* M, at least 1 */
};

/* Sequence number `sequence` of a split to row `row` of `to`; length is the dataset's. */
void masked_fill(const struct dataset *d, const struct pair_set *set, const struct masking *how, uint32_t sequence,
                 size_t row, const struct masked *to);

/* Places enough for sequences of this length: ceil(0.15 length), 20 of 128. */
int masked_most(int length);

/* A batch to evaluate on: sequences [from, from + valid), masked the same way in any run; the rows after `valid` repeat
 * the last one and ask for nothing: y and next are -1. */
void masked_fill_eval(const struct dataset *d, const struct pair_set *set, size_t from, int valid, int batch, int most,
                      const struct masked *to);

#endif
