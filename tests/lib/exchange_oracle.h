/* exchange_oracle.h: what each exchange must give, computed on one rank with full vectors, naive loops,
 * for tests. Works on the accumulated gradients of all ranks at once and shares no code with comm or topk. */
#ifndef ST_TESTS_EXCHANGE_ORACLE_H
#define ST_TESTS_EXCHANGE_ORACLE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ORACLE_P = 32, ORACLE_N = 1100 };

/* A vector of n of which only some entries are there. */
struct oracle_vector {
    bool there[ORACLE_N];
    float value[ORACLE_N];
};

static inline int oracle_count(const int32_t *size, int n, int32_t least) {
    int count = 0;
    for (int i = 0; i < n; i++) count += size[i] >= least;
    return count;
}

/* keep[from..to-1]: is value[i] of the k largest of those, of equal ones the ones of lower index? Of those that are
 * there[i], unless that is NULL. Magnitudes order as their bits do. */
static inline void oracle_largest(const float *value, const bool *there, int from, int to, int k, bool *keep) {
    int32_t size[ORACLE_N], last = 0; /* the size of the last one that is: bit by bit, the largest that k reach */
    const int n = to - from;
    for (int i = 0; i < n; i++) {
        float magnitude = fabsf(value[from + i]);
        memcpy(&size[i], &magnitude, sizeof size[i]);
        if (there && !there[from + i]) size[i] = -1;
    }
    for (int bit = 30; k > 0 && bit >= 0; bit--)
        if (oracle_count(size, n, last | 1 << bit) >= k) last |= 1 << bit;
    int equal = k - oracle_count(size, n, last + 1);
    for (int i = 0; i < n; i++) keep[from + i] = k > 0 && (size[i] > last || (size[i] == last && equal-- > 0));
}

/* Keeps the k largest entries of v; the others go to `dropped` where it is not NULL. */
static inline void oracle_cut(struct oracle_vector *v, int n, int k, struct oracle_vector *dropped) {
    bool keep[ORACLE_N];
    oracle_largest(v->value, v->there, 0, n, k, keep);
    if (dropped) memset(dropped, 0, sizeof *dropped);
    for (int i = 0; i < n; i++) {
        if (keep[i] || !v->there[i]) continue;
        if (dropped) dropped->there[i] = true;
        if (dropped) dropped->value[i] = v->value[i];
        v->there[i] = false;
        v->value[i] = 0;
    }
}

static inline void oracle_add(struct oracle_vector *to, const struct oracle_vector *v, int n) {
    for (int i = 0; i < n; i++) {
        if (!v->there[i]) continue;
        to->value[i] = to->there[i] ? to->value[i] + v->value[i] : v->value[i];
        to->there[i] = true;
    }
}

struct oracle {
    int n, P;
    float acc[ORACLE_P][ORACLE_N]; /* residual, plus the gradient within a step */
    struct oracle_vector sent[ORACLE_P], u;
    double lost[ORACLE_P]; /* mass lost by each rank in this step */
};

static inline void oracle_select(struct oracle *o, int k) {
    for (int r = 0; r < o->P; r++) {
        for (int i = 0; i < o->n; i++) o->sent[r].there[i] = true;
        memcpy(o->sent[r].value, o->acc[r], sizeof o->acc[r]);
        oracle_cut(&o->sent[r], o->n, k, NULL);
        o->lost[r] = 0;
    }
    memset(&o->u, 0, sizeof o->u);
}

/* Zeroes in every residual what its rank sent and u has. */
static inline void oracle_deliver(struct oracle *o) {
    for (int r = 0; r < o->P; r++)
        for (int i = 0; i < o->n; i++)
            if (o->sent[r].there[i] && o->u.there[i]) o->acc[r][i] = 0;
}

static inline void oracle_topka(struct oracle *o, int k) {
    oracle_select(o, k);
    for (int r = 0; r < o->P; r++) oracle_add(&o->u, &o->sent[r], o->n);
    oracle_deliver(o);
}

static inline void oracle_gtopk_naive(struct oracle *o, int k) {
    oracle_select(o, k);
    for (int r = 0; r < o->P; r++) oracle_add(&o->u, &o->sent[r], o->n);
    oracle_cut(&o->u, o->n, k, NULL);
    oracle_deliver(o);
}

static struct oracle_vector oracle_node[ORACLE_P], oracle_dropped[ORACLE_P][ORACLE_P];
static int oracle_merges[ORACLE_P];

static inline void oracle_merge(struct oracle *o, int to, int from, int k) {
    oracle_add(&oracle_node[to], &oracle_node[from], o->n);
    oracle_cut(&oracle_node[to], o->n, k, &oracle_dropped[to][oracle_merges[to]++]);
}

/* Selects and merges up the tree: u, and in oracle_dropped[r], in their order, what the merges at r cut off. Returns
 * how many ranks, a power of two, the tree has; each of the others was merged into one of them first. */
static inline int oracle_tree(struct oracle *o, int k) {
    int Q = 1;
    while (2 * Q <= o->P) Q *= 2;
    oracle_select(o, k);
    memset(oracle_merges, 0, sizeof oracle_merges);
    memcpy(oracle_node, o->sent, sizeof oracle_node);
    for (int r = Q; r < o->P; r++) oracle_merge(o, r - Q, r, k);
    for (int stride = 1; stride < Q; stride *= 2)
        for (int r = 0; r < Q; r += 2 * stride) oracle_merge(o, r, r + stride, k);
    o->u = oracle_node[0];
    return Q;
}

static inline void oracle_gtopk(struct oracle *o, int k, bool conserve) {
    oracle_tree(o, k);
    if (!conserve) oracle_deliver(o);
    for (int r = 0; r < o->P; r++) {
        for (int i = 0; conserve && i < o->n; i++)
            if (o->sent[r].there[i]) o->acc[r][i] = 0;
        for (int m = 0; m < oracle_merges[r]; m++) {
            const struct oracle_vector *d = &oracle_dropped[r][m];
            for (int i = 0; i < o->n; i++) {
                if (!d->there[i]) continue;
                if (conserve) o->acc[r][i] += d->value[i];
                if (!conserve && o->u.there[i]) o->lost[r] += fabs((double)d->value[i]);
            }
        }
    }
}

/* What a merge cut off goes, where its index is in u, to one of the ranks base, base + 1, ... base + holders - 1. */
static inline void oracle_keep_share(struct oracle *o, const struct oracle_vector *cut, int base, int holders) {
    for (int i = 0; i < o->n; i++)
        if (cut->there[i] && o->u.there[i]) o->acc[base + i % holders][i] += cut->value[i];
}

/* Each of the ranks that double makes the merges of the tree; another residual. */
static inline void oracle_gtopk_rd(struct oracle *o, int k) {
    int Q = oracle_tree(o, k);
    oracle_deliver(o);
    memset(oracle_merges, 0, sizeof oracle_merges);
    for (int r = Q; r < o->P; r++) oracle_keep_share(o, &oracle_dropped[r - Q][oracle_merges[r - Q]++], r - Q, 1);
    for (int stride = 1; stride < Q; stride *= 2)
        for (int r = 0; r < Q; r += 2 * stride)
            oracle_keep_share(o, &oracle_dropped[r][oracle_merges[r]++], r, 2 * stride);
}

#endif
