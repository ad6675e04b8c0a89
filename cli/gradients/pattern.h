/* pattern.h: gradients for the bench (--pattern).
 *
 *        struct pattern p;
 *        if (!pattern_open(&p, comm, "layers:resnet20", seed, &e)) ...
 *        size_t n = p.n;                                     // 0: any n will do
 *        if (!pattern_gradient(&p, step, n, grad, &e)) ...   // this rank's gradient of this step
 *        pattern_close(&p);
 *
 *   uniform          independent standard normal numbers
 *   clustered        normal numbers whose scale wanders as from layer to layer; one 64-entry run in 32 is 16 times
 *                    larger, and of those runs seven in eight are the same on all ranks (and move every 16 steps)
 *   layers:MODEL     the slices of a model's gradient: scale 1/sqrt(fan-in) each, heavy-tailed within; n is the model's
 *   real:FILE        what `train --record FILE` wrote; n is the file's
 *   selected:FILE    what `train --record FILE --record-what selected` wrote, zero elsewhere; n is the file's
 *   fitted:PROFILE   drawn as `sparsetrain fit` found them to be (draw.h), zero elsewhere; any n and k, see
 * pattern_case
 *
 * The last two are sparse: with a list of their entries (pattern_entries) nobody needs n floats.
 *
 * All but real:FILE and selected:FILE are a pure function of (seed, rank, step, index), the same on every machine
 * except for the last bits of libm's functions. Of recordings, rank r of P takes rank r mod R of the R recorded ones, r
 * / R steps later in the file than the others, and after the last recorded step comes the first again. Rank 0 alone
 * reads the file, and hands the others theirs: they need not see it. */
#ifndef ST_CLI_PATTERN_H
#define ST_CLI_PATTERN_H

#include "cli/draw.h"
#include "cli/gradients/record.h"
#include "comm/comm.h"

enum pattern_kind {
    PATTERN_UNIFORM,
    PATTERN_CLUSTERED,
    PATTERN_LAYERS,
    PATTERN_REAL,
    PATTERN_SELECTED,
    PATTERN_FITTED
};

/* A stretch of the vector with one scale. */
struct pattern_slice {
    uint64_t size; /* entries */
    float scale, zero;
};

struct pattern {
    enum pattern_kind kind;
    struct comm *comm;
    uint64_t seed;
    size_t n;                      /* 0: any */
    bool scales;                   /* fitted: n is the profile's, and any other will do */
    double density;                /* fitted, selected: as recorded; else 0 */
    struct pattern_slice *slice;   /* layers: [slices] */
    uint64_t slices, ranks, steps; /* ranks, steps: real, selected: as recorded */
    bool incomplete;               /* real, selected: a last step was left out */
    struct record_reader file;     /* real, selected: rank 0 */
    float *quantile;               /* [QUANTILES + 1]: of the normal distribution, see pattern.c */
    float *stage;                  /* real, rank 0: [n], a gradient on its way to another rank */
    struct profile profile;        /* fitted */
    struct draw draw;              /* fitted, of a case */
    struct sparse entries, other;  /* selected, fitted: of a gradient that is wanted dense; selected, rank 0: of another
                                    * rank, on their way to it */
    size_t room;                   /* selected, fitted: most entries of a gradient */
};

/* Collective; rank 0 reads and tells the others. False: no such pattern (the line lists them), model or file. */
bool pattern_open(struct pattern *p, struct comm *c, const char *text, uint64_t seed, struct err *e);
void pattern_close(struct pattern *p);

/* Before the gradients of a case: how long they are and how many entries of them are selected. n: p->n where that is
 * not 0 and p does not scale. */
void pattern_case(struct pattern *p, size_t n, size_t k);

/* grad: host, [n]. Collective for real:FILE and selected:FILE, where it may fail (a
 * damaged file). */
bool pattern_gradient(struct pattern *p, size_t step, size_t n, float *grad, struct err *e);

/* selected:FILE and fitted:PROFILE: the same as a list. out->cap >= p->room, which pattern_case has set. Collective for
 * selected:FILE, where it may fail; each rank by itself for fitted:PROFILE. */
bool pattern_has_entries(const struct pattern *p);
bool pattern_entries(struct pattern *p, size_t step, size_t n, struct sparse *out, struct err *e);

/* -- between pattern.c and pattern_entries.c ----------------------------------------------------------------------- */
void pattern_open_selected(struct pattern *p, const char *path, struct err *e); /* rank 0 */
/* Collective. text: rank 0's, of the profile in path. */
bool pattern_share_profile(struct pattern *p, char *text, const char *path, struct err *e);
/* Which recorded gradient is this rank's in this step? */
size_t pattern_recorded_step(const struct pattern *p, size_t step, int rank);
size_t pattern_recorded_rank(const struct pattern *p, int rank);

#endif
