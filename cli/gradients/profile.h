/* profile.h: what one recording of selected entries says of all of them, as a text file: where in the model they lie,
 * how large they are, how the ranks' overlap (overlap.h). `sparsetrain fit` writes it, `bench --pattern fitted:FILE`
 * draws gradients from it (draw.h), for any number of ranks.
 *
 *        struct profile p;
 *        if (!profile_fit(&p, &recording, &note, &e) || !profile_write(&p, path, &e)) ...
 *        if (!profile_read(&p, path, &e)) ...
 *        profile_close(&p);
 *
 * The file: lines "key value", in the order of the fields below; docs/bench.md explains them. */
#ifndef ST_CLI_PROFILE_H
#define ST_CLI_PROFILE_H

#include "cli/bench/overlap.h"
#include "cli/gradients/record.h"

enum { PROFILE_VERSION = 1, PROFILE_TAIL = 33, PROFILE_RANKS_MAX = 65536, PROFILE_SLICES_MAX = 1000000 };

struct profile_slice {
    uint64_t size;
    double share; /* of the selected entries */
    char name[RECORD_SLICE_MAX];
};

struct profile {
    char model[RECORD_TEXT_MAX], data[RECORD_TEXT_MAX];
    uint64_t n, ranks, steps; /* steps: recorded ones that were looked at */
    double distance;          /* steps of the run from one of them to the next, on average; 0 where there is one */
    double k, density;        /* selected entries a rank and step, on average; --density of the run */
    struct overlap overlap;
    bool h_fixed;              /* h could not be fitted (2 ranks) */
    double sign_agreement;     /* of two ranks' values at an index that both selected: part that has the same sign */
    double persistence;        /* part of the hot set that is the same a `distance` later; 0 where that is unknown */
    double tail[PROFILE_TAIL]; /* [i]: ln(|v| / smallest of its rank and step) that 2^(-i/2) of the entries exceed */
    double *measured, *fitted; /* [ranks]: U(1), U(2), ..., U(ranks), mean over all choices of that many ranks */
    struct profile_slice *slice;
    uint64_t slices;
};

/* Finds them in a recording (opened) of 2 ranks or more. *left_out: steps whose k is not that of the head, as while the
 * density is warming up. */
bool profile_fit(struct profile *p, struct record_reader *in, size_t *left_out, struct err *e);

/* What of a slice all ranks together select by the model, for k entries a rank. */
static inline struct overlap_slice profile_overlap_slice(const struct profile_slice *s, double k) {
    return (struct overlap_slice){(double)s->size, s->share * k};
}
double profile_union(const struct profile *p, double P);

bool profile_write(const struct profile *p, const char *path, struct err *e);
bool profile_read(struct profile *p, const char *path, struct err *e);
/* The two halves of profile_read: the file as a text (mem_free it; NULL: an error); what the text says. path: for
 * messages. text is changed. */
char *profile_load(const char *path, struct err *e);
bool profile_parse(struct profile *p, char *text, const char *path, struct err *e);
void profile_close(struct profile *p);

#endif
