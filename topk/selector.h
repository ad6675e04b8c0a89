/* selector.h: which entries of acc = residual + gradient leave the rank. One file and one row in
 * selectors.def per strategy.
 *
 *        struct selector *sel = selector_open(&selector_exact, &store, k_max);
 *        if (!selector_run(sel, grad, k, &out, &bad)) ...    // acc[bad] is NaN or infinite
 *        selector_close(sel);
 */
#ifndef ST_TOPK_SELECTOR_H
#define ST_TOPK_SELECTOR_H

#include "base/option.h"
#include "topk/store.h"
#include "topk/track.h"

struct selector_ops;

/* What happens to a threshold between two exact ones: see reuse.c, and comm/algorithms/oktopk_cut.c for Ok-Topk's
 * global one. */
enum reuse_rule {
    REUSE_GUARDED,   /* it is led by the counts, and found anew where they leave [k/2, 3k/2] */
    REUSE_PAPER,     /* it stays, whatever passes (Ok-Topk, Algorithm 1) */
    REUSE_CODE_VGG,  /* these three: whatever passes, but it is moved by fixed factors where that is too far from k */
    REUSE_CODE_LSTM, /* (nudge.h: the code of Ok-Topk's authors for that model) */
    REUSE_CODE_BERT,
    REUSE_RULES
};

/* Options of what reuses thresholds, in reuse.c and Ok-Topk alike; 32 is Ok-Topk's for VGG-16 and LSTM. */
#define REUSE_OPTIONS(type, period, rule)                                                                              \
    {"tau-prime",                                                                                                      \
     "N",                                                                                                              \
     OPTION_INT,                                                                                                       \
     "32",                                                                                                             \
     "selector reuse and oktopk: steps between exact thresholds (128 for BERT in Ok-Topk)",                            \
     OPTION_AT(type, period),                                                                                          \
     .min = 1,                                                                                                         \
     .max = 1e9},                                                                                                      \
    {                                                                                                                  \
        "oktopk-thresholds", "RULE", OPTION_CHOICE, "guarded",                                                         \
            "selector reuse and oktopk, between two exact thresholds: guarded leads them by the counts, to "           \
            "k/2..3k/2; "                                                                                              \
            "paper uses them as they are, whatever passes (Algorithm 1); code-vgg, code-lstm and code-bert move them " \
            "by fixed factors, as its authors' code for that model",                                                   \
            OPTION_AT(type, rule), .names = reuse_rule_names                                                           \
    }
extern const char *const reuse_rule_names[]; /* by enum reuse_rule, NULL-terminated */

struct selector_settings {
    struct option_values options; /* the row takes its own from them in `open`; all zero: the defaults */
    uint64_t seed; /* of rows that draw random numbers; the same on all ranks or not, as the caller likes */
    bool any_k;    /* a state that is read back may be of a selector with a larger k_max */
};

/* Of the last run. */
struct selector_stats {
    size_t asked, found;
    float threshold;      /* smallest magnitude that could pass; 0: everything */
    unsigned evaluated;   /* reuse: this step found the exact threshold; why: flags EVALUATED_* (track.h) */
    bool audited;         /* the next three hold, for this step */
    float exact;          /* magnitude of the k-th largest of acc */
    size_t exact_passes;  /* entries of acc at or above it: k, and ties */
    size_t normal_passes; /* above the threshold of a normal distribution with acc's moments (normal.h) */
};

/* Entries [from, from + count) of the vector. */
struct selector_slice {
    size_t from, count;
};

struct selector {
    const struct selector_ops *ops;
    struct store *store;
    size_t k_max;
    size_t n_max; /* the store's n at opening; a view may become shorter, not longer */
    size_t room;  /* how large the caller must make `out`: a selector at work needs more than what it returns */
    size_t most;  /* entries that a run may return */
    const struct selector_slice *slice; /* [slices]: it selects in each by itself (by_slice.h); NULL: in all of it */
    size_t slices;
    size_t covered; /* entries among which it selects: those in slices, or n_max */
    struct selector_settings settings;
    bool audit; /* the caller wants stats.exact and the counts beside it of the next run: five more reads of acc,
                   whose time is not counted as selection */
    struct selector_stats stats;
    void *state;
};

struct selector_ops {
    const char *name;    /* what --select takes */
    const char *summary; /* one line for --help and `sparsetrain list` */
    const char *paper;
    struct option_part options; /* what it alone reads */
    bool exact_count;           /* returns exactly k entries, whatever the input */
    bool exact;                 /* and these are the k largest, of equal ones those of the lower indices */
    bool evaluates;             /* a threshold serves several steps; stats.evaluated says where it was found anew */
    /* Most entries it may return when asked for k_max; NULL: selector_capacity's rule for all (about 2 k_max). */
    size_t (*capacity)(size_t n, size_t k_max);
    void (*open)(struct selector *s);
    /* acc += grad, then the selected entries of acc to out (host, in index order, out->cap as
     * selector_capacity says). acc itself keeps them: the exchange decides what was delivered.
     * Returns false when acc holds a NaN or an infinity, the lowest such index in *bad. */
    bool (*run)(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad);
    void (*close)(struct selector *s);
    /* selector_saved for this row; NULL: one empty piece. The bytes depend on ops, n and k_max alone. */
    bool (*saved)(struct selector *s, size_t piece, void **memory, size_t *bytes);
    /* Checks a state that was read back: can a run of this selector have written it? (The file may come from
     * anybody.) If not: false, and a few words in *e that say what is wrong. NULL: nothing is saved. */
    bool (*check)(const struct selector *s, struct err *e);
};

extern const struct selector_ops selector_exact;     /* the definition, with `exact` */
extern const struct selector_ops *const selectors[]; /* every row, NULL-terminated */
const char *selector_name(size_t i);                 /* the i-th row's, NULL past the end */

/* 1 <= k_max <= n: the largest k that will be asked for. settings: NULL for the defaults. */
struct selector *selector_open(const struct selector_ops *ops, struct store *store, size_t k_max,
                               const struct selector_settings *settings);
void selector_close(struct selector *s);

/* Charged to PHASE_SELECT of the store's phases. 1 <= k <= k_max and k <= n, else dies (k = 0 is a caller's error;
 * options refuse it before). */
bool selector_run(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad);
/* The same, of more than k entries the k largest. keys: scratch, [s->room]. */
bool selector_run_top(struct selector *s, const float *grad, size_t k, struct sparse *out, uint32_t *keys, size_t *bad);

/* What a checkpoint must hold, as pieces of plain memory numbered 0, 1, ...: written out, and read back into the same
 * places of a fresh selector. A plain row has one. False: there is no piece of this number. A piece may be empty (0
 * bytes). */
bool selector_saved(struct selector *s, size_t piece, void **memory, size_t *bytes);
/* A `saved` for rows whose state is one block of memory. */
bool selector_saved_block(void *block, size_t size, size_t piece, void **memory, size_t *bytes);

/* After its pieces were read back: could they be its own? False: what is wrong, as a few words, in *e. */
bool selector_check(const struct selector *s, struct err *e);

/* No run takes so many steps: a larger count of them in a checkpoint is none. */
#define STEPS_MAX ((uint64_t)1 << 53)

/* all = the statistics of several selectors over parts of one vector as those of one: counts added, the smallest
 * threshold, audited when all are. Begin with all zero. */
void selector_stats_add(struct selector_stats *all, const struct selector_stats *part);

/* How large the caller must make `out` for a selector of this row over n entries, given k_max: before it is opened. Of
 * one that is open, selector.room says it. */
size_t selector_capacity(const struct selector_ops *ops, size_t n, size_t k_max);

/* The common rule: twice k, as a threshold that is guessed or reused lets more than k entries pass, and what a sample
 * of 32768 cannot resolve. (Here, as the stores of plugins want it, too.) */
static inline size_t selector_capacity_common(size_t n, size_t k_max) {
    size_t spare = n / 512 + 4096;
    return k_max > n / 2 || 2 * k_max + spare > n ? n : 2 * k_max + spare;
}

/* k of a density, spec: max(1, floor(density * n)), and at most n. Exact where density * n is an
 * integer in decimal (0.001 * 1000 gives 1, not 0). */
size_t density_to_k(double density, size_t n);

#endif
