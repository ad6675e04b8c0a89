/* record.h: `train --record FILE`: the gradients of every rank of a real run in one file, and their reading for
 * `bench --pattern real:FILE`; or, with --record-what selected, the entries that every rank put into the exchange, for
 * `--pattern selected:FILE` and `sparsetrain fit`.
 *
 * Writing. All three calls are collective; the answer is the same on every rank:
 *
 *        struct record record;
 *        if (!record_open(&record, comm, path, &about, &e)) ...        // before the run
 *        if (!record_step(&record, step, grad, &e)) ...                // grad: device, [n]; after backward, before the
 *        record_close(&record);                                        // exchange, which may overwrite it
 *
 * With about.selected, after the exchange, record_selected_step(&record, step, k, sum.delivered, &e) in place of
 * record_step.
 *
 * In a step whose gradient is recorded exchange_begin must be left out: with it the gradient is being summed in place
 * while backward still runs. (exchange_run then does the whole, to the same bits.) Selected entries need no such care.
 *
 * Rank 0 writes; the others send it their gradients as control traffic. A file that exists is not overwritten. A run
 * that is killed leaves a file whose last step may be incomplete: readers leave that step out.
 *
 * Reading. By one process, no communication:
 *
 *        struct record_reader in;
 *        if (!record_read_open(&in, path, &e)) ...                     // in.head, in.ranks, in.steps
 *        if (!record_read(&in, step, rank, grad, &e)) ...              // grad: [in.n]; its checksum is verified
 *        record_read_close(&in);
 *
 * and of selected entries:
 *
 *        if (!record_selected_open(&in, path, &e)) ...
 *        sparse_open(&s, in.most);
 *        if (!record_selected_read(&in, step, rank, &s, &e)) ...
 *
 * The file, all numbers in the byte order of the machine, which the head names:
 *
 *        struct record_head                   fixed size, below
 *        struct record_slice [slices]         names and sizes of the layers, in the order of the vector
 *        uint32_t                             CRC-32 of the two
 *        for each recorded step, for each rank:
 *            uint64_t step                    steps completed before it
 *            uint32_t rank, crc               CRC-32 of step, rank and the gradient
 *            float gradient[n]                mean over the rank's mini-batch
 *
 * A file of selected entries has struct record_selection behind the head (in the checksum too), and its rows are
 *
 *            struct record_row                fixed size, below
 *            uint32_t index[nnz]              strictly increasing, below n
 *            float value[nnz]                 as this rank sent them
 */
#ifndef ST_CLI_RECORD_H
#define ST_CLI_RECORD_H

#include <stdint.h>
#include <stdio.h>

#include "base/device/device.h"
#include "comm/comm.h"
#include "topk/sparse.h"

enum { RECORD_VERSION = 1, RECORD_TEXT_MAX = 128, RECORD_SLICE_MAX = 48 };

struct record_slice {
    char name[RECORD_SLICE_MAX];
    uint64_t size; /* floats; the sizes add up to n */
};

struct record_head {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t n, ranks, slices, batch;                   /* batch: images a step on each rank */
    char model[RECORD_TEXT_MAX], data[RECORD_TEXT_MAX]; /* as --model and --data had them */
};

/* What the run asked for in the steps after any warm-up of the density. */
struct record_selection {
    uint64_t k;
    double density;
};

/* What stands before the selected entries of a rank. */
struct record_row {
    uint64_t step, k, nnz;  /* k: asked for in this step */
    uint32_t rank, crc;     /* crc: of the entries */
    uint32_t row_crc, zero; /* row_crc: of this row with 0 in its place */
};

/* What the gradients are of. */
struct record_about {
    size_t n;
    const char *model, *data;
    size_t batch;
    const struct record_slice *slice; /* [slices]; may be NULL with slices = 0 */
    size_t slices;
    const struct device_ops *device; /* of the gradient given to record_step; NULL: host memory */
    bool selected;                   /* the entries that were selected, not whole gradients; then: */
    struct record_selection selection;
};

struct record {
    struct comm *comm;
    const struct device_ops *device;
    FILE *file; /* rank 0 */
    char path[1024];
    size_t n, steps;       /* steps recorded so far */
    float *stage;          /* [n] host; NULL for selected entries */
    struct sparse entries; /* rank 0: those of another rank; grows */
    bool open;
};

/* False: something of this name is there. For a look before any work; record_open looks again. */
bool record_check(const char *path, struct err *e);
/* False: FILE exists or cannot be written. */
bool record_open(struct record *r, struct comm *c, const char *path, const struct record_about *about, struct err *e);
/* False: the file could not be written on (a full disk). */
bool record_step(struct record *r, uint64_t step, const float *grad, struct err *e);
bool record_selected_step(struct record *r, uint64_t step, size_t k, const struct sparse *sent, struct err *e);
/* A file without one step is removed. Nothing happens when r is zero. */
void record_close(struct record *r);

struct record_reader {
    FILE *file;
    char path[1024];
    struct record_head head;
    struct record_slice *slice; /* [head.slices] */
    size_t n, ranks, steps;     /* steps: complete ones */
    bool incomplete;            /* another one was begun but not finished: it is left out */
    size_t first;               /* where the first step begins [bytes] */

    bool selected; /* of a file of selected entries: */
    struct record_selection selection;
    struct record_row *row; /* [steps * ranks] as they come in the file */
    size_t *at;             /* [steps * ranks]: where their entries begin [bytes] */
    size_t most;            /* entries of the longest */
};

/* False: missing, no record file, another version or byte order, damaged, or without one complete step. */
bool record_read_open(struct record_reader *in, const char *path, struct err *e);
/* step < in->steps (the step-th in the file), rank < in->ranks. False: damaged. */
bool record_read(struct record_reader *in, size_t step, size_t rank, float *grad, struct err *e);
void record_read_close(struct record_reader *in);

/* The same for a file of selected entries; out->cap >= in->most. */
bool record_selected_open(struct record_reader *in, const char *path, struct err *e);
bool record_selected_read(struct record_reader *in, size_t step, size_t rank, struct sparse *out, struct err *e);

/* -- shared by record.c and record_selected.c ---------------------------------------------------------------------- */
/* Reads everything before the first step; *bytes: what is behind it. False: closed. */
bool record_read_head(struct record_reader *in, const char *path, bool selected, size_t *bytes, struct err *e);
bool record_no_step(const struct record_reader *in, struct err *e);
bool record_cannot_write(const struct record *r, struct err *e); /* errno says why */

#endif
