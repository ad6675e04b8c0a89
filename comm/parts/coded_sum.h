/* coded_sum.h: the sum over ranks of dense vectors that travel in fewer bits than f32 has: scatter-reduce, then
 * all-gather.
 *
 * The vector is cut into P parts, of which rank p owns the p-th. Each rank codes the parts of the others and sends each
 * to its owner; the owner adds up what came, in rank order, its own part as it is; it codes the sum, and an all-gather
 * brings that to all ranks, which decode it. So a value is coded twice, whatever P is, and all ranks get the same bits.
 * Whoever codes keeps what that cuts off: a sender of its own vector, an owner of the sum.
 *
 *        coded_sum_open(&s, x, comm, n, &coder);
 *        coded_sum_run(&s, acc, u, true);           // acc: what stays here, u: the sum, which all ranks have
 *        coded_sum_close(&s);
 *
 * Cost per rank, P ranks, n values in w words: P - 1 + ceil(log2 P) alpha + 2w(P-1)/P beta.
 *
 * Source: the compressed all-reduce of 1-bit Adam (Tang et al., ICML 2021), whose worker's and server's errors
 * both are in acc here: the server's is added to its own part, which is not coded on its way to itself. */
#ifndef ST_COMM_CODED_SUM_H
#define ST_COMM_CODED_SUM_H

#include "comm/parts/feedback.h"

/* How values become bits. Entries [from, from + count) of the vector are coded together, from a multiple of `align`, at
 * its end as many as there are. */
struct coder {
    void *state; /* passed to all three */
    size_t align;
    /* Of their message; the same on all ranks, a multiple of 4; 0 for none. */
    size_t (*bytes)(const void *state, size_t from, size_t count);
    /* error[i] = val[i] - what the message says; error: [count], may be val, or NULL where nobody wants it. */
    void (*encode)(void *state, size_t from, size_t count, const float *val, float *error, void *message);
    /* val[i] = what it says; with add: += . Whatever the message is, only val is written. */
    void (*decode)(const void *state, size_t from, size_t count, const void *message, bool add, float *val);
};

/* Values as setup.wire has them, 2 bytes each; a wire with `pack`. */
struct coder coder_of_wire(const struct wire_ops *wire);

/* Seconds of coding a value and keeping what that cuts off, or of decoding and adding one: the mean of the two over
 * normal numbers, the least of a few runs. A coder whose state is of CODER_TIMED entries, or of any. */
enum { CODER_TIMED = 1 << 16 };
double coder_seconds(const struct coder *coder);

struct coded_sum {
    struct exchange *x; /* whose phases are charged */
    struct comm *comm;
    struct coder coder;
    size_t n;
    size_t *from;                 /* [P + 1] entries [from[p], from[p + 1]) are part p */
    size_t *bytes, *at;           /* [P], [P + 1] length of its message, where it lies in `all` */
    unsigned char *all;           /* [at[P]] messages of all parts: those that are sent, then those that are gathered */
    unsigned char *came;          /* [P * bytes[rank]] this rank's part, as the others sent it */
    unsigned char *mine;          /* [bytes[rank]] its sum */
    float *sum;                   /* [from[rank + 1] - from[rank]] */
    struct comm_request *request; /* [2P] */
};

/* comm: the ranks that add, x's or a group of them. each: [comm->size] entries of the parts, end to end; NULL: even
 * ones of whole units of the coder. Collective. x must stay where it is. */
void coded_sum_open(struct coded_sum *s, struct exchange *x, struct comm *comm, size_t n, const size_t *each,
                    const struct coder *coder);
void coded_sum_close(struct coded_sum *s);

/* acc, u: host, [n]. keeps: acc becomes what stays (sum of all acc before == u + sum of all acc after, but for rounding
 * of f32), and is not u; else u may be acc. Collective; allocates nothing. */
void coded_sum_run(struct coded_sum *s, float *acc, float *u, bool keeps);

/* Its halves. reduce: sum = the sum of this rank's part, [entries of it], which stays in acc as it is. gather: u from
 * the sums of all parts; error: [entries of this rank's part] what coding its sum has cut off, or NULL. */
void coded_sum_reduce(struct coded_sum *s, float *acc, bool keeps, float *sum);
void coded_sum_gather(struct coded_sum *s, const float *sum, float *error, float *u);

/* A whole step of a row that is nothing else: acc is the residual with the gradient. */
struct coded_exchange {
    struct feedback feedback;
    struct coded_sum sum;
};
void coded_exchange_open(struct coded_exchange *c, struct exchange *x, const struct coder *coder, bool keeps);
void coded_exchange_close(struct coded_exchange *c);
bool coded_exchange_run(struct coded_exchange *c, struct exchange *x, float *grad, struct exchange_sum *sum);

/* Most units of a vector of so many that a rank sends, or receives, where parts are even ones of whole units. */
double coded_sum_units(double units, int P);

/* Values that a rank codes and decodes: cost->coded of a row that is nothing else. */
double coded_sum_values(size_t n, int P);

/* cost->dense of a row whose dense values, so many words of f32 in so many start-ups, are summed so. */
struct cost_dense coded_sum_cost(size_t n, int P, double words, double alphas);

#endif
