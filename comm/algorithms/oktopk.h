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
    struct track track; /* the next step's global threshold (all but REUSE_GUARDED: its key alone) */
    uint64_t stale;     /* 1: the regions' loads differed too much; the next step makes new ones */
    uint64_t bound[];   /* [P + 1]: region r is [bound[r], bound[r+1]) */
};

/* Its parameters, which are its options (oktopk.c). */
struct oktopk_use {
    int period;                 /* tau': steps between exact thresholds, local and global */
    int balance_period;         /* tau: steps between new region boundaries */
    int bucket;                 /* receives in flight at once in split-and-reduce */
    enum reuse_rule thresholds; /* the global one between exact ones; the local one's rule is the selector's */
    unsigned off;               /* OKTOPK_NO_... */
};

/* Its techniques, each of which can be left out (the ablations of its Figure 7). */
enum {
    OKTOPK_NO_REGIONS = 1,  /* boundaries at the selected indices; regions are n/P each */
    OKTOPK_NO_ROTATION = 2, /* every rank sends to 0, 1, 2, ... */
    OKTOPK_NO_OVERLAP = 4,  /* bucketing; one message after the other, summed before the next */
    OKTOPK_NO_BALANCE = 8   /* evening out before the all-gather */
};

/* One step. `sent` and `received` are words by the algorithm's own count, without those of evaluations. */
struct oktopk_step {
    size_t k;
    double sent, received;
    double extra; /* words of evaluations: new regions, exact thresholds */

    int sends;              /* of t->send, not waited for yet */
    struct sparse *reduced; /* this rank's region: the sum so far, then what the threshold leaves of it */

    uint32_t key;       /* the global threshold */
    unsigned evaluated; /* why an exact one was found: flags EVALUATED_* (topk/track.h) */
    float exact;        /* the exact one, in steps that are audited */
    bool beyond;        /* some rank would go beyond the bound on words if all gathered what they have */
};

/* What is kept from step to step: settings, `saved`, results until the next step, and memory for a step to work in. */
struct oktopk {
    struct oktopk_use use;
    struct oktopk_saved *saved;

    struct sparse local;       /* [cap = selector.room]: what this rank sends */
    struct sparse error;       /* [cap]: what rounding cut off it (here and below: formats that round) */
    struct sparse delivered;   /* [cap]: the part of local that is in u */
    struct sparse kept_error;  /* [cap]: the part of error that is in u */
    struct sparse owner_error; /* [most = min(n, P cap)]: what rounding cut off the sums that were kept */
    struct sparse u;           /* [most] */
    struct own_part mine;      /* [most]: this rank's of u, where it is wanted */

    struct outbox outbox;         /* messages of one phase */
    struct comm_request *receive; /* [P] by slot, then by rank */
    struct comm_request *send;    /* [P] */

    struct {
        size_t *at;               /* [P + 1]: entries at[r]..at[r+1]-1 of local lie in region r */
        int slots;                /* messages that can be under way to this rank */
        size_t slot_bytes;        /* of one */
        unsigned char *inbox;     /* [slots * slot_bytes] */
        struct sparse *buffer;    /* [slots], each [cap], of formats that are not in_place; else NULL */
        struct sparse *part;      /* [1 + slots]: what is added up next */
        struct sparse reduced[2]; /* [most] sums, written in turns */
        void *scratch;            /* sparse_sum's */
    } split;                      /* oktopk_split.c */

    uint64_t *histogram; /* [1024]: two bins in each word (oktopk_cut.c) */
    uint32_t *load;      /* [P][OKTOPK_LOAD]: see there */
    uint64_t *first;     /* [P + 1]: rank r keeps entries first[r]..first[r+1]-1 of u */

    struct {
        struct sparse slice; /* [most/P + 1]: this rank's share after evening out */
        size_t *each;        /* [P]: bytes of the ranks' messages */
        unsigned char *all;  /* [room]: these messages, end to end */
        size_t room;
    } gather; /* oktopk_gather.c */
};

/* What the ranks tell each other before the all-gather: how many of a rank's sums reach each rung of thresholds about
 * the expected one (track.h), and how many entries it sent and received in split and reduce. In place of the first
 * count OKTOPK_BELOW: it has sums, and none reaches even that. */
enum { OKTOPK_SENT = TRACK_RUNGS, OKTOPK_RECEIVED, OKTOPK_LOAD };
#define OKTOPK_BELOW UINT32_MAX

/* Below this many entries per rank (k < 16 P) loads are random and start-up times dominate the cost, so that nothing
 * is done to keep the words within their bound. */
enum { OKTOPK_WORTH = 16 };

/* Algorithm 1 to the letter, or as its authors' code moves the thresholds: what passes is sent, and nothing is done for
 * the bound on words. */
static inline bool oktopk_literal(const struct exchange *x) {
    return ((const struct oktopk *)x->state)->use.thresholds != REUSE_GUARDED;
}

/* Words of the gathering of counts; of an allreduce of `words` words. */
static inline double oktopk_count_words(const struct exchange *x) {
    return (double)OKTOPK_LOAD * (x->setup.comm->size - 1);
}
static inline double oktopk_allreduce_words(const struct exchange *x, double words) {
    double P = x->setup.comm->size;
    return 2 * (P - 1) / P * words;
}

/* The parts of Algorithm 1; x->state is the struct oktopk. */

/* Lines 5-7: new regions when they are due; where this rank's entries lie in them (split.at). */
void oktopk_regions(struct exchange *x, struct oktopk_step *s);
/* Line 8: s->reduced = all ranks' entries in this rank's region, added up: this rank's own first, then those of the
 * ranks before it, nearest first. */
void oktopk_split_and_reduce(struct exchange *x, struct oktopk_step *s);
/* Lines 9-12, and what of line 13 is local: the global threshold; s->reduced loses what is below it; t->first. */
void oktopk_cut(struct exchange *x, struct oktopk_step *s);
/* Line 13: t->u from what the ranks have kept. */
void oktopk_gather(struct exchange *x, struct oktopk_step *s);

#endif
