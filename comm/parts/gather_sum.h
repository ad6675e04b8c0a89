/* gather_sum.h: what topka and gtopk-naive share: every rank's sparse vector to every rank, and their sum in rank
 * order, so that all ranks get the same bits.
 *
 * Other rows gather sparse vectors in their own way, since their ranks learn the lengths in another way, and so other
 * messages pass: Ok-Topk knows the entries from its counts (oktopk_gather.c), topkdsa and hitopk's last step send dense
 * forms, which a length (topkdsa.c) or a flag beside it (shards.h) tells apart, and SparDL's lengths come with each
 * round's message (spardl.c).
 *
 *        struct gather_sum g;
 *        gather_sum_open(&g, x);
 *        gather_sum_run(&g, &local);        // g.sum = sum over ranks of local
 *        gather_sum_close(&g);
 */
#ifndef ST_COMM_GATHER_SUM_H
#define ST_COMM_GATHER_SUM_H

#include "comm/exchange.h"

struct gather_sum {
    struct exchange *x;
    const struct wire_ops *format;
    size_t cap;          /* most entries of one rank */
    bool same_size;      /* all messages are as long as this rank's: an exact selector, a format of fixed length */
    unsigned char *wire; /* [P * wire_capacity(cap)]: the messages of all ranks, end to end */
    unsigned char *mine; /* [wire_capacity(cap)]: this rank's, where its place in wire is known too late; else NULL */
    size_t *each;        /* [P] bytes of each rank's message */
    struct sparse *part; /* [P] views into wire or unpacked */
    struct sparse unpacked; /* [P * cap]: what does not lie in the messages */
    struct sparse sum;      /* the result; overwritten by the next run */
    double extra_words;     /* of the last run, for the sizes, on top of gather_sum_words */
    void *scratch;
};

/* x must stay where it is until close. */
void gather_sum_open(struct gather_sum *g, struct exchange *x);

/* Collective. local: as wire_round left it. */
void gather_sum_run(struct gather_sum *g, const struct sparse *local);

void gather_sum_close(struct gather_sum *g);

/* Words that any one rank sends, and receives: 2k(P-1). */
double gather_sum_words(size_t k, int P);
/* The cost line above, and what the sizes of the messages add to it where they are not known. */
void gather_sum_cost(const struct cost_case *c, struct cost *cost);

#endif
