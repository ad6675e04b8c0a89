/* oktopk.h: what the files of Ok-Topk share: oktopk.c (the step), oktopk_split.c (regions, split and reduce),
 * oktopk_cut.c (the global threshold), oktopk_gather.c (evening out and gathering). Internal to them. */
#ifndef ST_COMM_OKTOPK_H
#define ST_COMM_OKTOPK_H

#include "comm/exchange.h"
#include "comm/parts/own_part.h"
#include "comm/parts/peers.h"
#include "comm/parts/regions.h"
#include "topk/track.h"

enum { OKTOPK_TAG_SPLIT = 600, OKTOPK_TAG_EVEN = 601 };

/* What a checkpoint keeps; the same on all ranks. */
struct oktopk_saved {
    uint64_t step;      /* steps done */
    uint64_t k;         /* what the threshold was found for; 0: there is none yet */
    uint64_t uses;      /* steps that it served */
    struct track track; /* the next step's global threshold (REUSE_PAPER: its key alone) */
    uint64_t stale;     /* 1: the regions' loads differed too much; the next step makes new ones */
    uint64_t bound[];   /* [P + 1]: region r is [bound[r], bound[r+1]) */
};

struct oktopk {
    struct oktopk_setup use; /* the caller's, the paper's values filled in */
    struct oktopk_saved *saved;
    struct sparse local;       /* [cap = selector.room]: what this rank sends */
    struct sparse error;       /* [cap]: what rounding cut off it (here and below: formats that round) */
    struct sparse delivered;   /* [cap]: the part of local that is in u */
    struct sparse kept_error;  /* [cap]: the part of error that is in u */
    struct sparse reduced[2];  /* [most = min(n, P cap)]: sums of this rank's region, written in turns */
    struct sparse owner_error; /* [most]: what rounding cut off the sums that were kept */
    struct sparse slice;       /* [most/P + 1]: this rank's share after evening out */
    struct sparse u;           /* [most] */
    struct own_part mine;      /* [most]: this rank's of u, where it is wanted */
    size_t *at;                /* [P + 1]: entries at[r]..at[r+1]-1 of local lie in region r */

    int slots;                    /* messages that can be under way to this rank */
    size_t slot_bytes;            /* of one */
    unsigned char *inbox;         /* [slots * slot_bytes] */
    struct sparse *buffer;        /* [slots], each [cap], of formats that are not in_place; else NULL */
    struct sparse *part;          /* [1 + bucket]: what is added up next */
    void *scratch;                /* sparse_sum's */
    struct outbox outbox;         /* entries to send, of one phase */
    struct comm_request *receive; /* [P] by slot, then by rank */
    struct comm_request *send;    /* [P] */
    int sends;                    /* of them, under way */

    uint32_t *count;         /* [P]: how many entries each rank keeps */
    uint32_t *load;          /* [P]: blocks of OKTOPK_LOAD: see there */
    uint64_t *first;         /* [P + 1]: rank r holds entries first[r]..first[r+1]-1 of u */
    bool something;          /* some rank has entries */
    bool beyond;             /* some rank would go beyond the bound if all gathered what they have */
    uint32_t key;            /* the threshold of this step */
    unsigned evaluated;      /* why it was evaluated in this step: flags EVALUATED_* (topk/track.h) */
    float exact;             /* the exact one, in steps that are audited */
    uint64_t *histogram;     /* [1024]: two bins in each word */
    size_t *each;            /* [P]: bytes */
    unsigned char *gathered; /* [gathered_size]: the messages of all ranks, end to end */
    size_t gathered_size;

    double sent, received; /* words of this step by the algorithm's own count, evaluations left out */
    double extra;          /* words of the evaluations */
};

/* What the ranks tell each other before the all-gather: how many of a rank's sums reach each rung of thresholds about
 * the expected one (track.h), and how many entries it sent and received in split and reduce. In place of the first
 * count OKTOPK_BELOW: it has sums, and none reaches even that. */
enum { OKTOPK_SENT = TRACK_RUNGS, OKTOPK_RECEIVED, OKTOPK_LOAD };
#define OKTOPK_BELOW UINT32_MAX

/* Below this many entries per rank (k < 16 P) loads are random and start-up times dominate the cost, so that nothing
 * is done to keep the words within their bound. */
enum { OKTOPK_WORTH = 16 };

/* Algorithm 1 to the letter: thresholds stay for tau' steps, and nothing is done for the bound on words. */
static inline bool oktopk_literal(const struct exchange *x) {
    return x->setup.oktopk.thresholds == REUSE_PAPER;
}

/* Words of the gathering of counts; of an allreduce of `words` words. */
static inline double oktopk_count_words(const struct exchange *x) {
    return (double)OKTOPK_LOAD * (x->setup.comm->size - 1);
}
static inline double oktopk_allreduce_words(const struct exchange *x, double words) {
    double P = x->setup.comm->size;
    return 2 * (P - 1) / P * words;
}

/* t->at for the regions of this step, which are new ones when their time has come. */
void oktopk_regions(struct exchange *x);
/* Every rank's entries in this rank's region, added up: this rank's own first, then those of the ranks before it,
 * nearest first. The result is in t->reduced, valid until the next call. */
struct sparse *oktopk_split_and_reduce(struct exchange *x);
/* Leaves in `reduced` what reaches the global threshold, and sets t->count and t->first. */
void oktopk_cut(struct exchange *x, struct sparse *reduced, size_t k);
/* t->u from what the ranks have kept. */
void oktopk_gather(struct exchange *x, const struct sparse *kept);

#endif
