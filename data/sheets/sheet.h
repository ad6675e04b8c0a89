/* sheet.h: `sparsetrain data show`: a labelled contact sheet (PNG) of what the network really sees. */
#ifndef ST_DATA_SHEET_H
#define ST_DATA_SHEET_H

#include "data/dataset.h"

struct sheet_setup {
    const struct dataset *data;
    bool test;    /* the test split instead of the training split (never augmented) */
    bool augment; /* training split: as augmented in `epoch` */
    uint64_t seed;
    size_t epoch;
    int columns, rows;
    int zoom; /* screen pixels per image pixel, >= 1 */
};

/* Writes columns * rows samples in the order of the epoch, un-normalised back to colours, each with its class name
 * and sample number below it. False: the file cannot be written; nothing half-written stays. */
bool sheet_write(const struct sheet_setup *setup, const char *path, struct err *e);

#endif
