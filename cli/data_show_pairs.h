/* data_show_pairs.h: pairs of texts as the network gets them, for `sparsetrain data show`. */
#ifndef ST_CLI_DATA_SHOW_PAIRS_H
#define ST_CLI_DATA_SHOW_PAIRS_H

#include "data/dataset.h"

struct show_pairs {
    const struct dataset *data; /* attached; of the kind DATA_PAIRS */
    bool test;                  /* the test split, as an evaluation goes through it and masks it */
    bool json;                  /* an object for each pair, with the numbers that the network gets; else text */
    uint64_t seed;              /* training split: of order and masks ... */
    size_t epoch;               /* ... of which the first pairs are shown; where it has fewer, those of the next */
    size_t samples;             /* how many */
};

/* Prints them to standard output. Training pairs come out of a loader of one rank with batches of one, so that the
 * order is that of all ranks in all steps (loader.h). False: the test split has fewer; one line in *e. */
bool show_pairs(const struct show_pairs *s, struct err *e);

#endif
