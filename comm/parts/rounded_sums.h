/* rounded_sums.h: sums of values that travel in a format that rounds, at indices that all ranks know (micro): what
 * comm_reduce_scatter_f32 and an all-gather do, with value_bytes for each value.
 *
 *        struct rounded_sums r;
 *        rounded_sums_open(&r, x, most);              // values of a step
 *        rounded_sums_run(&r, val, each, cut);        // val = the sums over ranks, the same bits on all of them
 *        residual += cut                              // what this rank has rounded off on the way
 *        rounded_sums_close(&r);
 *
 * Partial sums are rounded by the rank that sends them, each value by a rank once: on its way to the rank of its block,
 * or by that one. So over the ranks  sum val before == val after + sum cut, exactly but for the additions. */
#ifndef ST_COMM_ROUNDED_SUMS_H
#define ST_COMM_ROUNDED_SUMS_H

#include "comm/exchange.h"

struct rounded_sums {
    struct exchange *x;
    unsigned char *out, *in; /* [most value_bytes]: messages of a round */
    size_t *bytes;           /* [P]: of the blocks' values */
};

/* x must stay where it is until close. */
void rounded_sums_open(struct rounded_sums *r, struct exchange *x, size_t most);
void rounded_sums_close(struct rounded_sums *r);

/* Collective. val: [sum of each], blocks end to end; each: [P], the values of rank r's block; cut: as val. */
void rounded_sums_run(struct rounded_sums *r, float *val, const size_t *each, float *cut);

#endif
