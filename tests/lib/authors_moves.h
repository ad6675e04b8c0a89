/* authors_moves.h: how the code of Ok-Topk's authors moves reused thresholds, read from its text a second time: what
 * topk/nudge.c is tested against. Parts of k in double, where nudge.c has fractions. */
#ifndef ST_TESTS_AUTHORS_MOVES_H
#define ST_TESTS_AUTHORS_MOVES_H

#include <float.h>
#include <math.h>

#include "topk/selector.h"

enum { MOVES_LOCAL, MOVES_GLOBAL };

/* Where more than `before` k reach the local threshold, it is multiplied by 1.03 before it is used, five times at most.
 * For the next step, local and global: divided by `down` where fewer than few k, multiplied by `up` where more than
 * many k do. Of Algorithm 1 nothing moves. */
static const struct {
    double before, few[2], down[2], many[2], up[2];
} authors_moves[REUSE_RULES] = {
    [REUSE_GUARDED] = {INFINITY, {0, 0}, {1, 1}, {INFINITY, INFINITY}, {1, 1}},
    [REUSE_PAPER] = {INFINITY, {0, 0}, {1, 1}, {INFINITY, INFINITY}, {1, 1}},
    [REUSE_CODE_VGG] = {4. / 3, {2. / 3, 2. / 3}, {1.012, 1.008}, {1.25, 4. / 3}, {1.012, 1.008}},
    [REUSE_CODE_LSTM] = {1.5, {0.75, 0.75}, {1.012, 1.01}, {1.25, 1.25}, {1.012, 1.008}},
    [REUSE_CODE_BERT] = {INFINITY, {0.8, 0.8}, {1.025, 1.036}, {1.25, 1.25}, {1.025, 1.025}},
};

/* A part of k that is a whole number is not beyond itself, however the product is rounded. */
static inline bool moves_many(double part, size_t k, size_t count) {
    return (double)count > part * (double)k + 1e-9;
}

/* A threshold above zero stays there, and finite. */
static inline float moves_by(float threshold, double factor) {
    double t = (double)threshold * factor;
    if (t > (double)FLT_MAX) return FLT_MAX;
    return threshold > 0 && (float)t == 0 ? FLT_TRUE_MIN : (float)t;
}

/* The threshold of the next step, of one that `count` entries reached. which: MOVES_... */
static inline float moves_next(enum reuse_rule rule, int which, float threshold, size_t k, size_t count) {
    if ((double)count < authors_moves[rule].few[which] * (double)k - 1e-9)
        return moves_by(threshold, 1 / authors_moves[rule].down[which]);
    return moves_many(authors_moves[rule].many[which], k, count) ? moves_by(threshold, authors_moves[rule].up[which])
                                                                 : threshold;
}

/* May the local threshold, which `count` entries reach and which has moved `moves` times, move before it is used? */
static inline bool moves_before(enum reuse_rule rule, size_t k, size_t count, int moves) {
    return moves < 5 && moves_many(authors_moves[rule].before, k, count);
}
#define MOVES_BEFORE 1.03

#endif
