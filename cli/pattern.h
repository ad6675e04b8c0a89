/* pattern.h: gradients for the bench (--pattern).
 *
 *        struct pattern p;
 *        if (!pattern_open(&p, comm, "layers:resnet20", seed, &e)) ...
 *        size_t n = p.n;                                     // 0: any n will do
 *        if (!pattern_gradient(&p, step, n, grad, &e)) ...   // this rank's gradient of this step
 *        pattern_close(&p);
 *
 *   uniform        independent standard normal numbers
 *   clustered      normal numbers whose scale wanders as from layer to layer; one 64-entry run in 32 is 16 times
 * larger, and of those runs seven in eight are the same on all ranks (and move every 16 steps) layers:MODEL   the
 * slices of a model's gradient: scale 1/sqrt(fan-in) each, heavy-tailed within; n is the model's real:FILE      what
 * `train --record FILE` wrote; n is the file's
 *
 * All but real:FILE are a pure function of (seed, rank, step, index), the same on every machine up to libm's last
 * bits. real:FILE: rank r of P takes rank r mod R of the R recorded ones, r / R steps later in the file than the
 * others, and after the last recorded step comes the first again.
 */
#ifndef ST_CLI_PATTERN_H
#define ST_CLI_PATTERN_H

#include "cli/record.h"
#include "comm/comm.h"

enum pattern_kind { PATTERN_UNIFORM, PATTERN_CLUSTERED, PATTERN_LAYERS, PATTERN_REAL };

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
    struct pattern_slice *slice;   /* layers: [slices] */
    uint64_t slices, ranks, steps; /* ranks, steps: real: as recorded */
    bool incomplete;               /* real: a last step was left out */
    struct record_reader file;     /* real, rank 0 */
    float *quantile;               /* [QUANTILES + 1]: of the normal distribution, see pattern.c */
    float *stage;                  /* real, rank 0: [n], a gradient on its way to another rank */
};

/* Collective; rank 0 reads and tells the others. False: no such pattern (the line lists them), model or file. */
bool pattern_open(struct pattern *p, struct comm *c, const char *text, uint64_t seed, struct err *e);
void pattern_close(struct pattern *p);

/* grad: host, [n]. Collective for real:FILE, where it may fail (a damaged file). */
bool pattern_gradient(struct pattern *p, size_t step, size_t n, float *grad, struct err *e);

#endif
