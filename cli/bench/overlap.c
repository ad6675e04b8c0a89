/* overlap.c: see overlap.h. */
#include "cli/bench/overlap.h"

#include <math.h>

enum { GRID = 64, NARROWINGS = 48 };
#define LEAST_P 1e-4 /* of a hot entry: so rarely shared, it is nobody's */
#define LEAST_Q 1e-6 /* below it there is no hot set */

struct overlap_part overlap_part(const struct overlap *o, const struct overlap_slice *s) {
    double p = o->q / o->h, hot = o->h * s->k;
    if (!(o->q > 0) || s->k >= p * s->n) return (struct overlap_part){0, 0, s->k / s->n};
    return (struct overlap_part){hot, p, (1 - o->q) * s->k / (s->n - hot)};
}

/* 1 - (1 - p)^P, to all digits for small p */
static double any_of(double p, double P) {
    return p < 1 ? -expm1(P * log1p(-p)) : 1;
}

/* E[U(P)] = sum_j hot_j (1 - (1 - p)^P) + (n_j - hot_j) (1 - (1 - c_j)^P): an entry is in the union unless all P ranks
 * leave it out. The second term holds the ranks' own parts with their accidental collisions. */
double overlap_union(const struct overlap *o, const struct overlap_slice *s, size_t slices, double P) {
    double sum = 0;
    for (size_t j = 0; j < slices; j++) {
        if (!(s[j].k > 0)) continue;
        struct overlap_part part = overlap_part(o, &s[j]);
        sum += part.hot * any_of(part.p, P) + (s[j].n - part.hot) * any_of(part.c, P);
    }
    return sum;
}

/* sum_j hot_j p^2 + (n_j - hot_j) c_j^2 */
double overlap_pair(const struct overlap *o, const struct overlap_slice *s, size_t slices, double *hot) {
    double others = 0;
    *hot = 0;
    for (size_t j = 0; j < slices; j++) {
        if (!(s[j].k > 0)) continue;
        struct overlap_part part = overlap_part(o, &s[j]);
        *hot += part.hot * part.p * part.p;
        others += (s[j].n - part.hot) * part.c * part.c;
    }
    return *hot + others;
}

/* -- the fit ------------------------------------------------------------------------------------------------------- */

struct task {
    const struct overlap_slice *slice;
    size_t slices, ranks;
    const double *measured;
    double log_p; /* of the line along which q varies; NaN: along h = 1 */
};

static struct overlap at(const struct task *t, double q) {
    if (!(q > LEAST_Q)) return (struct overlap){0, 1};
    return (struct overlap){q, isnan(t->log_p) ? 1 : q / exp(t->log_p)};
}

/* sum over P of (E[U(P)] - U(P))^2 */
static double error_at(const struct task *t, double q) {
    const struct overlap o = at(t, q);
    double sum = 0;
    for (size_t P = 2; P <= t->ranks; P++) {
        double off = overlap_union(&o, t->slice, t->slices, (double)P) - t->measured[P - 1];
        sum += off * off;
    }
    return sum;
}

/* Golden section: the place of the least f in [low, high], where f falls and then rises. */
static double least_between(double (*f)(struct task *t, double x), struct task *t, double low, double high) {
    const double golden = 0.6180339887498949;
    double a = high - golden * (high - low), b = low + golden * (high - low), fa = f(t, a), fb = f(t, b);
    for (int i = 0; i < NARROWINGS; i++) {
        if (fa <= fb) {
            high = b, b = a, fb = fa;
            fa = f(t, a = high - golden * (high - low));
        } else {
            low = a, a = b, fa = fb;
            fb = f(t, b = low + golden * (high - low));
        }
    }
    return fa <= fb ? a : b;
}

static double error_of_q(struct task *t, double q) {
    return error_at(t, q);
}

/* The best q for this p (with p given, unions shrink as q grows); the ends count too. */
static double best_q(struct task *t) {
    double q = least_between(error_of_q, t, 0, 1);
    if (error_at(t, 0) <= error_at(t, q)) q = 0;
    return error_at(t, 1) < error_at(t, q) ? 1 : q;
}

static double error_of_p(struct task *t, double log_p) {
    t->log_p = log_p;
    return error_at(t, best_q(t));
}

/* In p = q/h and q: p by a grid in its logarithm, narrowed around the best; for each p the best q. */
struct overlap overlap_fit(const struct overlap_slice *s, size_t slices, const double *measured, size_t ranks) {
    struct task t = {s, slices, ranks, measured, NAN};
    if (ranks == 2) return at(&t, best_q(&t));
    double step = -log(LEAST_P) / GRID, best = 0, least = error_of_p(&t, 0);
    for (int i = 1; i <= GRID; i++) {
        double error = error_of_p(&t, -step * i);
        if (error < least) least = error, best = -step * i;
    }
    double low = fmax(best - step, log(LEAST_P)), high = fmin(best + step, 0);
    double narrowed = least_between(error_of_p, &t, low, high);
    t.log_p = error_of_p(&t, narrowed) <= least ? narrowed : best;
    return at(&t, best_q(&t));
}
