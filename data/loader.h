/* loader.h: from a dataset to the batches of one rank: sharding, shuffling, augmentation, normalisation, and
 * a thread that keeps all of this off the training step.
 *
 * The order of the samples is the concatenation of one permutation per epoch, each a function of (seed, epoch) alone.
 * Global step s takes the next batch * P positions of it; rank r the r-th batch of them. So over the ranks every sample
 * comes exactly once an epoch, at any P, and an epoch may begin inside a step. Augmentation is a function of
 * (seed, epoch, sample), so it does not depend on P either.
 *
 *        struct loader *l = loader_open(&setup);
 *        const struct batch *b = loader_next(l);      // valid until the next call
 *        loader_close(l);
 */
#ifndef ST_DATA_LOADER_H
#define ST_DATA_LOADER_H

#include "base/image.h"
#include "data/dataset.h"

/* Images either as floats or, with loader_setup.bytes, as they are in the dataset, with what is to be done to them. */
struct batch {
    float *x;                 /* [batch][channels][height][width], normalised; NULL with bytes */
    struct image_bytes bytes; /* zero without */
    int32_t *y;               /* [batch] */
    uint32_t *index;          /* [batch] sample numbers, for tests and the contact sheet */
    size_t step;
};

struct loader_setup {
    const struct dataset *data;
    int batch, rank, size;
    uint64_t seed;
    size_t first_step; /* where a resumed run goes on */
    bool augment;      /* pad 4, random crop, random horizontal flip */
    bool bytes;        /* the network cuts and normalises by itself (net_takes_bytes) */
};

struct loader *loader_open(const struct loader_setup *setup);
const struct batch *loader_next(struct loader *l);
void loader_close(struct loader *l); /* stops the thread, wherever it is */

/* The pure parts, for tests and for whoever wants to know. */

/* permutation[0..n-1] of an epoch (Fisher-Yates on the (seed, RNG_SHUFFLE, epoch) sequence). */
void loader_permutation(uint64_t seed, size_t epoch, uint32_t n, uint32_t *permutation);

/* One sample to normalised floats [channels][height][width]; augmented as in `epoch` when augment is set. */
void loader_sample(const struct dataset *d, const struct image_set *set, uint32_t sample, bool augment, uint64_t seed,
                   size_t epoch, float *x);

/* Rank r's share of an evaluation over `count` samples: [*from, *to), contiguous, sizes differ by at most one. */
void loader_share(size_t count, int rank, int size, size_t *from, size_t *to);

/* A batch of test samples [from, from + valid) (not augmented); the places after `valid` repeat the last sample. */
void loader_fill_test(const struct dataset *d, size_t from, int valid, int batch, float *x, int32_t *y);

#endif
