/* topk_naive.c: every selector against its own definition, written down plainly: sorting, all counts, sums in long
 * double. Sums in another order may put a threshold on the other side of an entry that it all but hits; such steps
 * are not compared, and counted, so that they stay few where data have no ties.
 *
 * devices: cuda sparse
 */
#include "tests/lib/topk_reference.h"

#include <float.h>

#include "base/mem.h"
#include "tests/lib/authors_moves.h"
#include "topk/normal.h"
#include "topk/selector.h"

/* What reuse and gaussian are told. */
struct use {
    int period, adjust; /* adjust: 0 on, 1 off */
    enum reuse_rule rule;
};
static const struct option_row options[] = {
    REUSE_OPTIONS(struct use, period, rule),
    {"gaussian-adjust", "HOW", OPTION_CHOICE, "on", "", OPTION_AT(struct use, adjust)},
};

/* One selector in steps with error feedback. */
struct rig {
    struct store store;
    struct selector *selector;
    struct use use;
    uint64_t seed;
    struct sparse out;
    float *grad, *x;     /* [n]; x: acc as the selector sees it */
    float *device_grad;  /* device, [n]: grad itself on the CPU */
    struct ranked *pick; /* [n]: x by rank */
    size_t n, cap;
    size_t compared, skipped;
    char what[64];
};

static bool unadjusted; /* gaussian, of rigs that are opened now */

extern const struct selector_ops selector_reuse, selector_gaussian, selector_mstopk, selector_dgc, selector_sidco;

static enum reuse_rule rule; /* of reuse */

static void rig_open(struct rig *r, const struct selector_ops *ops, size_t n, size_t k) {
    *r = (struct rig){.n = n, .cap = selector_capacity(ops, n, k)};
    r->use = (struct use){.period = 5, .rule = rule, .adjust = unadjusted};
    r->seed = 77;
    store_open(&r->store, n, test_device());
    const struct selector_settings settings = {.options = {options, sizeof options / sizeof *options, &r->use},
                                               .seed = r->seed};
    r->selector = selector_open(ops, &r->store, k, &settings);
    sparse_open(&r->out, r->cap);
    r->grad = mem_alloc(n, sizeof(float), "grad");
    r->x = mem_alloc(n, sizeof(float), "x");
    r->pick = mem_alloc(n, sizeof *r->pick, "reference");
    r->device_grad = device_twin(r->grad, n);
}

static void rig_close(struct rig *r) {
    selector_close(r->selector);
    store_close(&r->store);
    sparse_close(&r->out);
    device_twin_free(r->device_grad, r->grad);
    mem_free(r->grad), mem_free(r->x), mem_free(r->pick);
}

static void step(struct rig *r, size_t k) {
    size_t bad = 0;
    r->store.ops->read(&r->store, 0, r->n, r->x);
    for (size_t i = 0; i < r->n; i++) {
        r->x[i] += r->grad[i];
        r->pick[i] = (struct ranked){magnitude_key(r->x[i]), (uint32_t)i};
    }
    sort_by_rank(r->pick, r->n);
    device_fill(r->device_grad, r->grad, r->n);
    CHECK(selector_run(r->selector, r->device_grad, k, &r->out, &bad), "%s: bad %zu", r->what, bad);
}

static void deliver(struct rig *r) {
    r->store.ops->zero_at(&r->store, r->out.idx, r->out.nnz);
}

static double magnitude(const struct rig *r, size_t rank) {
    return fabs((double)r->x[r->pick[rank].idx]);
}

/* How many magnitudes are >= t, or > t. */
static size_t count_from(const struct rig *r, double t) {
    size_t count = 0;
    for (size_t i = 0; i < r->n; i++) count += fabs((double)r->x[i]) >= t;
    return count;
}
static size_t count_above(const struct rig *r, double t) {
    size_t count = 0;
    for (size_t i = 0; i < r->n; i++) count += fabs((double)r->x[i]) > t;
    return count;
}

/* Is there a magnitude so near to t that rounding decides? A t of 0 is exact. */
static bool near(const struct rig *r, double t, double distance) {
    for (size_t i = 0; t != 0 && i < r->n; i++)
        if (fabs(fabs((double)r->x[i]) - t) <= distance * fabs(t)) return true;
    return false;
}

/* What goes out is the first `wanted` by rank. */
static void check_first(struct rig *r, size_t wanted) {
    CHECK(r->out.nnz == wanted, "%s: %zu entries, %zu wanted", r->what, r->out.nnz, wanted);
    for (size_t i = 0; i < wanted; i++) {
        struct ranked entry = {magnitude_key(r->out.val[i]), r->out.idx[i]};
        CHECK(by_rank(&entry, &r->pick[wanted - 1]) <= 0, "%s: entry %u", r->what, entry.idx);
    }
}

static void check_threshold(const struct rig *r, double wanted, double distance) {
    double found = (double)r->selector->stats.threshold;
    CHECK(fabs(found - wanted) <= distance * fabs(wanted) + (double)FLT_TRUE_MIN, "%s: threshold %.9g, %.9g wanted",
          r->what, found, wanted);
}

/* -- gaussian ------------------------------------------------------------------------------------------------- */

/* z with a share q above it, by bisection. */
static double naive_quantile(double q) {
    double low = -40, high = 40;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        if (erfc(middle / sqrt(2)) / 2 > q)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* How many magnitudes are above t and not zero. skip: one is so near to t that rounding decides. */
static size_t passing(const struct rig *r, double t, bool *skip) {
    size_t count = 0;
    while (count < r->n && magnitude(r, count) > t && magnitude(r, count) > 0) count++;
    for (size_t i = count > 0 ? count - 1 : 0; t > 0 && i <= count && i < r->n; i++)
        *skip |= fabs(magnitude(r, i) - t) <= 1e-7 * t;
    return count;
}

/* The threshold as it is found; or divided by 1.02 again and again, until more than 3k/4 pass or all that can. */
static void check_gaussian(struct rig *r, size_t k) {
    long double sum = 0, square = 0;
    for (size_t i = 0; i < r->n; i++) sum += (long double)r->x[i];
    long double mean = sum / (long double)r->n;
    for (size_t i = 0; i < r->n; i++) square += ((long double)r->x[i] - mean) * ((long double)r->x[i] - mean);
    double sigma = sqrt((double)(square / (long double)r->n));
    double t = (double)mean + naive_quantile((double)k / (double)r->n / 2) * sigma;
    bool skip = false;
    size_t most = 0, count = passing(r, t, &skip);
    while (most < r->n && magnitude(r, most) > 0) most++;
    while (!unadjusted && 4 * count <= 3 * k && count < most) {
        t /= 1.02;
        count = passing(r, t, &skip);
    }
    CHECK(unadjusted || most == 0 || r->out.nnz > 0, "%s: nothing, of %zu entries", r->what, most);
    for (size_t i = 0; i < r->out.nnz; i++) CHECK(r->out.val[i] != 0, "%s: a zero", r->what);
    if (skip || (sigma < 1e-6 * fabs((double)mean))) {
        r->skipped++;
        return;
    }
    r->compared++;
    check_first(r, count < r->cap ? count : r->cap);
    bool all = !unadjusted && count == most && 4 * count <= 3 * k; /* found where no threshold serves */
    if (count <= r->cap && t > 0 && !all) check_threshold(r, t, 1e-6);
}

/* -- mstopk --------------------------------------------------------------------------------------------------- */

/* Algorithm 1 of the paper, with infinity where it has thres1 = 0; step: how often the selector has run before. */
static void check_mstopk(struct rig *r, size_t k, uint64_t steps) {
    long double sum = 0;
    for (size_t i = 0; i < r->n; i++) sum += fabsl((long double)r->x[i]);
    double a = (double)(sum / (long double)r->n), u = magnitude(r, 0), l = 0, h = 1, thres1 = (double)INFINITY,
           thres2 = 0;
    size_t k1 = 0, k2 = r->n, between = 0, kept = 0;
    bool skip = false;
    for (int i = 0; i < 30; i++) {
        double ratio = l + (h - l) / 2, thres = a + ratio * (u - a);
        size_t nnz = count_from(r, thres);
        skip |= near(r, thres, 1e-12);
        if (nnz <= k) {
            h = ratio;
            if (nnz > k1) k1 = nnz, thres1 = thres;
        } else {
            l = ratio;
            if (nnz < k2) k2 = nnz, thres2 = thres;
        }
    }
    if (skip) {
        r->skipped++;
        return;
    }
    r->compared++;
    for (size_t i = 0; i < r->n; i++) between += fabs((double)r->x[i]) < thres1 && fabs((double)r->x[i]) >= thres2;
    struct rng rng = rng_open(r->seed, RNG_SELECT, steps);
    size_t start = between > k - k1 ? rng_below(&rng, (uint32_t)(between - (k - k1) + 1)) : 0, at = 0;
    for (size_t i = 0; i < r->n; i++) {
        double size = fabs((double)r->x[i]);
        bool lower = size < thres1 && size >= thres2, taken = size >= thres1;
        if (lower) taken = at >= start && at < start + k - k1, at++;
        if (!taken) continue;
        CHECK(kept < r->out.nnz && r->out.idx[kept] == i && same_bits(r->out.val[kept], r->x[i]), "%s: entry %zu",
              r->what, i);
        kept++;
    }
    CHECK(kept == k && r->out.nnz == k, "%s: %zu entries", r->what, r->out.nnz);
}

/* -- dgc ------------------------------------------------------------------------------------------------------ */

static int descending(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

static float sampled_threshold(struct rig *r, size_t k, uint64_t steps) {
    size_t n = r->n, wanted = (size_t)ceil((double)n / 100), enough = (size_t)ceil(2.0 * (double)n / (double)k), m = 0;
    if (enough > 65536) enough = 65536;
    if (enough > wanted) wanted = enough;
    size_t stride = n > wanted ? n / wanted : 1;
    if (stride % 2 == 0) stride--;
    struct rng rng = rng_open(r->seed, RNG_SELECT, steps);
    float *sample = mem_alloc(n, sizeof *sample, "sample");
    for (size_t i = rng_below(&rng, (uint32_t)stride); i < n; i += stride) sample[m++] = fabsf(r->x[i]);
    qsort(sample, m, sizeof *sample, descending);
    float t = sample[(size_t)ceil((double)(m * k) / (double)n) - 1];
    mem_free(sample);
    return t > 0 ? t : FLT_TRUE_MIN;
}

static void check_dgc(struct rig *r, size_t k, uint64_t steps) {
    float t = sampled_threshold(r, k, steps);
    size_t count = count_from(r, (double)t);
    for (int i = 0; i < 10 && (double)count < 0.8 * (double)k && t > FLT_TRUE_MIN; i++) {
        double smaller = 0.8 * (double)t;
        t = (float)smaller;
        if ((double)t < smaller) t = nextafterf(t, INFINITY);
        count = count_from(r, (double)t);
    }
    r->compared++;
    if ((double)count > 1.3 * (double)k) {
        check_first(r, k);
        check_threshold(r, magnitude(r, k - 1), 0);
    } else {
        check_first(r, count);
        check_threshold(r, (double)t, 0);
    }
}

/* -- sidco ---------------------------------------------------------------------------------------------------- */

struct stages {
    int now, steps;
    double ratios;
};

static void check_sidco(struct rig *r, size_t k, struct stages *s) {
    double rho = (double)k / (double)r->n, eta, delta;
    long double sum = 0;
    for (size_t i = 0; i < r->n; i++) sum += fabsl((long double)r->x[i]);
    delta = s->now == 1 || rho >= 0.25 ? rho : 0.25;
    eta = (double)(sum / (long double)r->n) * log(1 / delta);
    bool skip = near(r, eta, 1e-7);
    for (int stage = 2; stage <= s->now && rho < 0.25; stage++) {
        size_t above = count_above(r, eta);
        if (above == 0) break;
        sum = 0;
        for (size_t i = 0; i < r->n; i++)
            if (fabs((double)r->x[i]) > eta) sum += fabsl((long double)r->x[i]);
        delta = pow(rho / 0.25, 1.0 / (s->now - 1));
        eta += ((double)(sum / (long double)above) - eta) * log(1 / delta);
        skip |= near(r, eta, 1e-7);
    }
    size_t count = count_above(r, eta), largest = count_from(r, magnitude(r, 0));
    if (skip) {
        r->skipped++;
        count = r->out.nnz; /* which may differ by the entry that the threshold all but hits */
    } else {
        r->compared++;
        check_first(r, count                 ? (count < r->cap ? count : r->cap)
                       : magnitude(r, 0) > 0 ? (largest < r->cap ? largest : r->cap)
                                             : 0);
        if (count && count <= r->cap) check_threshold(r, eta, 1e-6);
    }
    if (magnitude(r, 0) == 0) return;
    s->ratios += (double)count / (double)k;
    if (++s->steps < 5) return;
    double average = s->ratios / 5;
    if (average > 1.2) s->now--;
    if (average < 0.8) s->now++;
    if (s->now > (int)ceil(log2(1 / rho))) s->now = (int)ceil(log2(1 / rho));
    if (s->now < 1) s->now = 1;
    s->steps = 0, s->ratios = 0;
}

/* -- reuse ---------------------------------------------------------------------------------------------------- */

struct old_threshold {
    struct track track;
    size_t k, uses;
};

/* Which reason there is for an exact threshold; 0: none. */
static unsigned reason_for(const struct rig *r, size_t k, const struct old_threshold *old) {
    if (old->k == 0 || old->uses >= 5) return EVALUATED_DUE;
    if ((double)k < 0.75 * (double)old->k || (double)k > 1.25 * (double)old->k) return EVALUATED_K;
    if (r->use.rule != REUSE_GUARDED) return 0;
    size_t passing = count_from(r, (double)key_value(old->track.key));
    if (2 * passing < k && old->track.key > 1) return EVALUATED_FEW;
    return 2 * passing > 3 * k ? EVALUATED_MANY : 0;
}

static size_t count_from_key(const struct rig *r, uint32_t key) {
    return count_from(r, (double)key_value(key));
}

/* Before a step, which uses what this leaves. */
static void move_before(const struct rig *r, size_t k, struct track *track) {
    float t = key_value(track->key);
    for (int i = 0; moves_before(r->use.rule, k, count_from(r, (double)t), i); i++) t = moves_by(t, MOVES_BEFORE);
    track->key = magnitude_key(t);
}

static void check_reuse(struct rig *r, size_t k, struct old_threshold *old) {
    struct track *track = &old->track;
    unsigned reason = reason_for(r, k, old);
    CHECK(reason == r->selector->stats.evaluated, "%s: evaluated %u", r->what, reason);
    r->compared++;
    old->uses++;
    if (reason) {
        double kth = magnitude(r, k - 1) > 0 ? magnitude(r, k - 1) : (double)FLT_TRUE_MIN;
        size_t passing = count_from(r, kth);
        uint32_t key = magnitude_key((float)kth);
        check_threshold(r, kth, 0);
        check_first(r, passing > r->cap ? k : passing);
        track_found(track, key, old->k == 0 || reason == EVALUATED_K);
        track_spacing(track, passing > r->cap ? k : passing, count_from_key(r, track_above(track, key)));
        if (r->use.rule != REUSE_GUARDED) track->key = key;
        old->k = k, old->uses = 1;
        return;
    }
    move_before(r, k, track);
    size_t passing = count_from_key(r, track->key);
    if (passing > r->cap) { /* not REUSE_GUARDED: the largest that there is room for */
        check_first(r, r->cap);
    } else {
        check_threshold(r, (double)key_value(track->key), 0);
        check_first(r, passing);
    }
    track->key = magnitude_key(moves_next(r->use.rule, MOVES_LOCAL, key_value(track->key), k, passing));
    if (r->use.rule == REUSE_GUARDED) track_counted(track, k, passing, count_from_key(r, track_probe(track)));
}

/* -- all of them over all inputs ------------------------------------------------------------------------------ */

static void fill(struct rig *r, int input, uint64_t seed) {
    if (input < SHAPES)
        shape_fill((enum shape)input, r->grad, r->n, seed);
    else
        pattern_fill((enum pattern)(input - SHAPES), r->grad, r->n, seed);
}

static void one_input(const struct selector_ops *ops, int input, size_t n, size_t k, int steps, struct rig *total) {
    struct rig r;
    struct stages stages = {.now = 1};
    struct old_threshold old = {0};
    rig_open(&r, ops, n, k);
    for (int s = 0; s < steps; s++) {
        snprintf(r.what, sizeof r.what, "%s, input %d, n %zu, k %zu, step %d", ops->name, input, n, k, s);
        fill(&r, s > 0 && input == SHAPES + WIDE ? GAUSSIAN : input, (uint64_t)s);
        step(&r, k);
        if (ops == &selector_gaussian) check_gaussian(&r, k);
        if (ops == &selector_mstopk) check_mstopk(&r, k, (uint64_t)s);
        if (ops == &selector_dgc) check_dgc(&r, k, (uint64_t)s);
        if (ops == &selector_sidco) check_sidco(&r, k, &stages);
        if (ops == &selector_reuse) check_reuse(&r, k, &old);
        deliver(&r);
    }
    if (input < SHAPES && n > 2) total->compared += r.compared, total->skipped += r.skipped;
    rig_close(&r);
}

static void every_input(const struct selector_ops *ops) {
    /* the first five on the stand-in, too */
    const size_t cases[][2] = {{2, 1}, {300, 3}, {1000, 1000}, {6007, 60}, {6007, 1200}, {1, 1}, {17, 3}, {300, 150}};
    struct rig total = {0};
    for (int input = 0; input < SHAPES + PATTERNS; input++) {
        for (size_t c = 0; c < (test_device_is_emulated() ? 5 : sizeof cases / sizeof cases[0]); c++)
            one_input(ops, input, cases[c][0], cases[c][1], input < SHAPES ? 22 : 7, &total);
        if (input < SHAPES) one_input(ops, input, 40009, 40, 8, &total);
    }
    CHECK(total.skipped * 50 <= total.compared, "%s: %zu of %zu steps could not be compared", ops->name, total.skipped,
          total.skipped + total.compared);
}

/* acc of the next step: `passing` entries above the threshold, the others in a ramp below it. */
static void place(struct rig *r, double threshold, size_t passing) {
    for (size_t i = 0; i < r->n; i++) {
        double below = threshold * (1 - 0.5 * (double)(i + 1) / (double)(r->n + 1));
        r->x[i] = (float)(i * 7919 % r->n < passing ? threshold * 1.5 + (double)i * 1e-6 : below);
    }
    r->store.ops->write(&r->store, 0, r->n, r->x);
}

/* Counts at and around the bounds where a threshold is led, or found anew, or lets more pass than there is room for. */
static void reuse_at_its_bounds(void) {
    enum { K = 100 };
    const size_t bounds[] = {0, 1, K / 2, K, 3 * K / 2, selector_capacity(&selector_reuse, 9001, K)};
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++)
        for (size_t around = 0; around < 3; around++) {
            struct rig r;
            struct old_threshold old = {0};
            size_t passing = bounds[b] + around > 0 ? bounds[b] + around - 1 : 0;
            rig_open(&r, &selector_reuse, 9001, K);
            snprintf(r.what, sizeof r.what, "reuse, %zu pass", passing);
            memset(r.grad, 0, r.n * sizeof *r.grad);
            place(&r, 1, K), step(&r, K), check_reuse(&r, K, &old);
            place(&r, (double)key_value(old.track.key), passing), step(&r, K), check_reuse(&r, K, &old);
            place(&r, (double)key_value(old.track.key), K), step(&r, K), check_reuse(&r, K, &old);
            rig_close(&r);
        }
}

/* -- gaussian where it is hard ---------------------------------------------------------------------------------- */

/* Counts that are known: adjusted, and as the threshold is found. */
static void gaussian_case(enum pattern p, float scale, size_t n, size_t k, size_t adjusted, size_t plain) {
    for (int off = 0; off < 2; off++) {
        struct rig r;
        unadjusted = off;
        rig_open(&r, &selector_gaussian, n, k);
        snprintf(r.what, sizeof r.what, "gaussian, pattern %d, n %zu, k %zu, %s", (int)p, n, k, off ? "off" : "on");
        pattern_fill(p, r.grad, n, 1);
        for (size_t i = 0; i < n; i++) r.grad[i] *= scale;
        step(&r, k);
        size_t wanted = off ? plain : adjusted;
        CHECK(r.out.nnz == (wanted < r.cap ? wanted : r.cap), "%s: %zu entries", r.what, r.out.nnz);
        rig_close(&r);
    }
    unadjusted = false;
}

/* The threshold lets more than 3k/4 pass, and 1.02 times it does not. */
static void gaussian_steps(enum pattern p, size_t n, size_t k) {
    struct rig r;
    rig_open(&r, &selector_gaussian, n, k);
    snprintf(r.what, sizeof r.what, "gaussian, pattern %d, n %zu, k %zu", (int)p, n, k);
    pattern_fill(p, r.grad, n, 1);
    step(&r, k);
    double t = (double)r.selector->stats.threshold;
    CHECK(4 * r.out.nnz > 3 * k, "%s: %zu entries", r.what, r.out.nnz);
    CHECK(4 * count_above(&r, 1.020001 * t) <= 3 * k, "%s: more than one step too low", r.what);
    rig_close(&r);
}

static void gaussian_body(const void *unused) {
    (void)unused;
    every_input(&selector_gaussian);
    unadjusted = true;
    every_input(&selector_gaussian);
    unadjusted = false;
    for (size_t k = 2; k < 1000; k *= 7) {
        gaussian_steps(UNIFORM, 20011, k), gaussian_steps(TRUNCATED, 20011, k);
        gaussian_case(EQUAL_SIGNS, 4, 20011, k, 20011, 0); /* -1 and 1 */
        gaussian_case(ALL_EQUAL, 4, 20011, k, 20011, 0);
        gaussian_case(ALL_EQUAL, -4, 20011, k, 20011, 20011); /* a threshold below zero */
        gaussian_case(ONE_ENTRY, 1, 20011, k, 1, 1);
        gaussian_case(ONE_ENTRY, 0x1p-139f, 20011, k, 1, 1); /* the least denormal */
        gaussian_case(ALL_ZERO, 1, 20011, k, 0, 0);
    }
    gaussian_case(ONE_ENTRY, 1, 20011, 20011, 1, 1);
    gaussian_case(ONE_ENTRY, 1, 1, 1, 1, 1);
}

static void reuse_body(const void *unused) {
    (void)unused;
    for (rule = REUSE_GUARDED; rule < REUSE_RULES; rule++) {
        every_input(&selector_reuse);
        reuse_at_its_bounds();
    }
    rule = REUSE_GUARDED;
}
static void every_input_body(const void *ops) {
    every_input(ops);
}

/* An outlier so large that the 30 counts do not close the interval, over several chunks of acc: the run matters. */
static void mstopk_with_an_outlier(float outlier) {
    struct rig r;
    const size_t n = 150001, k = 1500;
    rig_open(&r, &selector_mstopk, n, k);
    for (uint64_t s = 0; s < 4; s++) {
        snprintf(r.what, sizeof r.what, "mstopk, outlier %g, step %d", (double)outlier, (int)s);
        shape_fill(GAUSSIAN, r.grad, n, s);
        r.grad[n / 3] = outlier;
        step(&r, k);
        check_mstopk(&r, k, s);
        deliver(&r);
    }
    CHECK(r.compared == 4, "%s: not compared", r.what);
    rig_close(&r);
}

/* One entry of 1, many zeros, and 200 with magnitudes so close together that each of the 30 counts matters. */
static void mstopk_with_close_magnitudes(void) {
    struct rig r;
    rig_open(&r, &selector_mstopk, 3000, 130);
    for (uint64_t s = 0; s < 12; s++) {
        snprintf(r.what, sizeof r.what, "mstopk, close magnitudes, step %d", (int)s);
        memset(r.x, 0, r.n * sizeof *r.x);
        r.store.ops->write(&r.store, 0, r.n, r.x);
        memset(r.grad, 0, r.n * sizeof *r.grad);
        r.grad[1234] = -1;
        for (size_t i = 0; i < 200; i++) r.grad[i * 7] = (float)(0.01 + (double)(i * 37 % 200 + s * 1000) * 0x1p-30);
        step(&r, 130);
        check_mstopk(&r, 130, s);
    }
    CHECK(r.compared > 8, "%s: not compared", r.what);
    rig_close(&r);
}

static void mstopk_body(const void *unused) {
    (void)unused;
    every_input(&selector_mstopk);
    mstopk_with_close_magnitudes();
    mstopk_with_an_outlier(1e8f);
    mstopk_with_an_outlier(3e8f);
    mstopk_with_an_outlier(-1e38f);
}
IN_EVERY_SET(reuse, reuse_body, NULL)
IN_EVERY_SET(gaussian, gaussian_body, NULL)
IN_EVERY_SET(mstopk, mstopk_body, NULL)
IN_EVERY_SET(dgc, every_input_body, &selector_dgc)
IN_EVERY_SET(sidco, every_input_body, &selector_sidco)

/* -- the guess may be wrong: the result stays ------------------------------------------------------------------ */

static uint32_t take_all(struct store *s, const float *grad, size_t k) {
    (void)s, (void)grad, (void)k;
    return 0;
}
static uint32_t take_nothing(struct store *s, const float *grad, size_t k) {
    (void)s, (void)grad, (void)k;
    return UINT32_MAX;
}
static uint32_t take_large(struct store *s, const float *grad, size_t k) {
    (void)s, (void)grad, (void)k;
    return magnitude_key(1);
}

/* The same steps with the store's own guess and with wrong ones. sidco's sums depend on it in the last bit. */
static void wrong_guesses_body(const void *unused) {
    (void)unused;
    uint32_t (*guesses[])(struct store *, const float *, size_t) = {take_all, take_nothing, take_large};
    for (size_t row = 0; selectors[row]; row++)
        for (size_t g = 0; g < 3; g++) {
            struct rig a, b;
            rig_open(&a, selectors[row], 9001, 90), rig_open(&b, selectors[row], 9001, 90);
            struct store_ops wrong = *b.store.ops;
            wrong.guess_key = guesses[g];
            b.store.ops = &wrong;
            for (uint64_t s = 0; s < 12; s++) {
                shape_fill((enum shape)(s / 3 % SHAPES), a.grad, a.n, s);
                memcpy(b.grad, a.grad, a.n * sizeof *a.grad);
                step(&a, 90), step(&b, 90);
                CHECK(a.out.nnz == b.out.nnz && memcmp(a.out.idx, b.out.idx, a.out.nnz * sizeof *a.out.idx) == 0 &&
                          memcmp(a.out.val, b.out.val, a.out.nnz * sizeof *a.out.val) == 0,
                      "%s, guess %zu, step %d", selectors[row]->name, g, (int)s);
                deliver(&a), deliver(&b);
            }
            rig_close(&a), rig_close(&b);
        }
}

IN_EVERY_SET(wrong_guesses, wrong_guesses_body, NULL)

/* -- quantiles ------------------------------------------------------------------------------------------------- */

static void quantiles(void **state) {
    (void)state;
    const double q[] = {0.5, 0.158655253931457051, 0.025, 0.0005, 1e-9, 0.975};
    const double z[] = {0, 1, 1.9599639845400545, 3.2905267314918948, 5.9978070150076869, -1.9599639845400545};
    for (size_t i = 0; i < 6; i++) {
        double found = normal_upper_quantile(q[i]);
        if (fabs(found - z[i]) > 4e-15 * fmax(1, fabs(z[i]))) fail_msg("q %g: %.17g, not %.17g", q[i], found, z[i]);
    }
    assert_true(isnan(normal_upper_quantile((double)NAN))); /* which never comes near: it ends all the same */
    for (double share = 0.99; share > 1e-12; share *= 0.93) {
        double found = normal_upper_quantile(share), back = erfc(found / sqrt(2)) / 2;
        if (!(fabs(back / share - 1) < 1e-13 * (1 + found * found)))
            fail_msg("q %g: %.17g, back %g", share, found, back);
    }
}

int main(void) {
    test_device_in_children();
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles), cmocka_unit_test(reuse), cmocka_unit_test(gaussian),      cmocka_unit_test(mstopk),
        cmocka_unit_test(dgc),       cmocka_unit_test(sidco), cmocka_unit_test(wrong_guesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
