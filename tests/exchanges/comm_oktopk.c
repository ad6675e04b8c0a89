/* comm_oktopk.c: Ok-Topk against a serial reference that keeps thresholds and regions like it does, for every switch
 * and wire format; against gtopk-naive; its words, counted by the reference too; a checkpoint. */
/* ranks: 1 2 3 4 5 7 8 9 16 32 */
/* faults: 3 7 */
/* devices: cuda ranks 1 3 4 */
#include "tests/lib/exchange_rig.h"

#include "comm/algorithms/oktopk.h"
#include "tests/lib/authors_moves.h"
#include "tests/lib/exchange_oracle.h"
#include "topk/track.h"

static const struct shape {
    size_t n, k;
    bool all_kinds;
} shapes[] = {{1, 1, false},    {3, 1, false},   {3, 3, false},     {7, 2, false},
              {1009, 1, false}, {1009, 5, true}, {1009, 100, true}, {1009, 1009, false}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], STEPS = 7 };

static const struct oktopk_use setups[] = {
    {.period = 3, .balance_period = 2},
    {.period = 2, .balance_period = 3, .bucket = 1},
    {.period = 1, .balance_period = 1, .bucket = 2},
    {.period = 4, .balance_period = 4, .bucket = 2, .off = OKTOPK_NO_REGIONS},
    {.period = 3, .balance_period = 2, .bucket = 3, .off = OKTOPK_NO_ROTATION},
    {.period = 3, .balance_period = 2, .off = OKTOPK_NO_OVERLAP},
    {.period = 3, .balance_period = 2, .off = OKTOPK_NO_REGIONS | OKTOPK_NO_BALANCE},
    {.period = 3, .off = OKTOPK_NO_REGIONS | OKTOPK_NO_ROTATION | OKTOPK_NO_OVERLAP | OKTOPK_NO_BALANCE},
    {.period = 3, .balance_period = 2, .thresholds = REUSE_PAPER},
    {.period = 3, .balance_period = 2, .thresholds = REUSE_CODE_VGG},
    {.period = 4, .balance_period = 2, .thresholds = REUSE_CODE_LSTM},
    {.period = 5, .balance_period = 2, .thresholds = REUSE_CODE_BERT},
    {0},
};
enum { SETUPS = sizeof setups / sizeof setups[0] };

/* -- the serial reference ------------------------------------------------------------------------------ */
struct reference {
    struct oracle o;
    struct oktopk_use use;
    const struct wire_ops *w;
    int step, k_of_threshold, uses;
    bool stale, beyond; /* regions; the bound on words */
    struct track track;
    int bound[ORACLE_P + 1];
    float used;                                      /* the threshold of the last step */
    unsigned evaluated;                              /* why it was found anew, if it was */
    double sent[ORACLE_P], received[ORACLE_P], more; /* words of the last step; those of evaluations */
    long moved;                                      /* entries moved to even out, in all steps */
};

/* In place of zeros. */
static struct oktopk_use with_paper_values(struct oktopk_use use) {
    if (use.period == 0) use.period = 32;
    if (use.balance_period == 0) use.balance_period = 64;
    if (use.bucket == 0) use.bucket = 4;
    return use;
}

static void reference_open(struct reference *f, struct comm *c, struct shape shape, const struct oktopk_use *use,
                           const struct wire_ops *w) {
    memset(f, 0, sizeof *f);
    f->o.n = (int)shape.n;
    f->o.P = c->size;
    f->use = with_paper_values(*use);
    f->w = w;
    for (int r = 0; r <= c->size; r++) f->bound[r] = (int)((long)shape.n * r / c->size);
}

static int owner_of(const struct reference *f, int i) {
    int r = 0;
    while (i < f->bound[r] || i >= f->bound[r + 1]) r++;
    return r;
}

static void count_words(struct reference *f, int from, int to, double words) {
    if (from == to) return;
    f->sent[from] += words;
    f->received[to] += words;
}

/* Of what the ranks have, rank r's sends in an all-gather in which the blocks of each double: it passes on others'. */
static long all_gather_sends(const long *has, int P, int r) {
    long sent = 0;
    for (int far = 1; far < P; far *= 2)
        for (int i = 0; i < far && i < P - far; i++) sent += has[(r + i) % P];
    return sent;
}

static void all_gather_words(struct reference *f, const long *has, double words) {
    long total = 0;
    for (int r = 0; r < f->o.P; r++) total += has[r];
    for (int r = 0; r < f->o.P; r++) {
        f->sent[r] += words * (double)all_gather_sends(has, f->o.P, r);
        f->received[r] += words * (double)(total - has[r]);
    }
}

/* The mean over ranks of the places where each rank would cut its own list into P parts. */
static void cut_regions(struct reference *f) {
    int P = f->o.P, n = f->o.n;
    for (int j = 1; j < P; j++) {
        long sum = 0;
        for (int r = 0; r < P; r++) {
            int list[ORACLE_N], count = 0;
            for (int i = 0; i < n; i++)
                if (f->o.sent[r].there[i]) list[count++] = i;
            sum += count < P ? (long)n * j / P : list[(long)count * j / P];
        }
        f->bound[j] = (int)(sum / P);
    }
    f->more += 2.0 * (P - 1) / P * 2 * (P - 1);
}

/* u = all sums: the owner's own entry first, then those of the ranks before it. */
static void add_up(struct reference *f) {
    struct oracle *o = &f->o;
    for (int i = 0; i < o->n; i++) {
        int owner = owner_of(f, i);
        for (int step = 0; step < o->P; step++) {
            int r = (owner - step + o->P) % o->P;
            if (!o->sent[r].there[i]) continue;
            o->u.value[i] = o->u.there[i] ? o->u.value[i] + o->sent[r].value[i] : o->sent[r].value[i];
            o->u.there[i] = true;
            count_words(f, r, owner, 2);
        }
    }
}

static int by_size(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void find_threshold(struct reference *f, int k, unsigned reason) {
    float size[ORACLE_N];
    int count = 0, P = f->o.P;
    for (int i = 0; i < f->o.n; i++)
        if (f->o.u.there[i]) size[count++] = fabsf(f->o.u.value[i]);
    qsort(size, (size_t)count, sizeof *size, by_size);
    f->used = count < k ? 0 : size[k - 1];
    track_found(&f->track, magnitude_key(f->used), f->k_of_threshold == 0 || reason == EVALUATED_K);
    f->k_of_threshold = k;
    f->uses = 0;
    f->more += 2.0 * (P - 1) / P * (count < k ? 2048 : 4096);
    f->evaluated = reason;
}

/* All sums that reach the threshold: how many, and [P] in each region. */
static int passing(const struct reference *f, float threshold, long *has) {
    int count = 0;
    memset(has, 0, ORACLE_P * sizeof *has);
    for (int i = 0; i < f->o.n; i++) {
        if (!f->o.u.there[i] || fabsf(f->o.u.value[i]) < threshold) continue;
        has[owner_of(f, i)]++;
        count++;
    }
    return count;
}

/* The words in which the ranks tell each other their counts: nine thresholds', and what was sent and received. */
static void gather_counts(struct reference *f) {
    long one[ORACLE_P] = {0};
    for (int r = 0; r < f->o.P; r++) one[r] = 1;
    all_gather_words(f, one, 11);
}

/* From k = 16 P on: would a rank go beyond the bound? split[0], split[1]: entries sent and received so far, [P]. */
static bool beyond_bound(const struct reference *f, int k, float threshold, double split[2][ORACLE_P]) {
    int P = f->o.P;
    long has[ORACLE_P];
    bool beyond = false;
    int count = passing(f, threshold, has);
    for (int r = 0; r < P; r++) {
        double bound = 6.0 * k * (P - 1) / P - 11.0 * (P - 1);
        beyond |= 2 * split[0][r] + 2.0 * (double)all_gather_sends(has, P, r) > bound;
        beyond |= 2 * split[1][r] + 2.0 * (double)(count - has[r]) > bound;
    }
    return beyond && k >= 16 * P;
}

/* Of nine thresholds about the expected one that whose count is nearest to k, or a higher one within the bound on
 * words; f->used. Returns why none will do, or 0. */
static unsigned choose_threshold(struct reference *f, int k, double split[2][ORACLE_P]) {
    uint64_t total[TRACK_RUNGS];
    long has[ORACLE_P];
    int there = passing(f, 0, has);
    for (int i = 0; i < TRACK_RUNGS; i++) total[i] = (uint64_t)passing(f, key_value(track_rung(&f->track, i)), has);
    int i = track_nearest(total, (size_t)k);
    if (total[0] == 0) {
        f->used = key_value(track_rung(&f->track, i));
        return there > 0 ? EVALUATED_FEW : 0;
    }
    if (f->track.key == 0) {
        f->used = 0;
        return 4 * there > 5 * k ? EVALUATED_MANY : 0;
    }
    if (2 * total[i] > 3 * (uint64_t)k) return EVALUATED_MANY;
    for (; (int)total[i] > k && beyond_bound(f, k, key_value(track_rung(&f->track, i)), split); i++)
        if (i == TRACK_RUNGS - 1) return EVALUATED_WORDS;
    if (2 * total[i] < (uint64_t)k) return EVALUATED_FEW;
    f->used = key_value(track_rung(&f->track, i));
    track_took(&f->track, i, total);
    return 0;
}

/* The global threshold of the next step after one that used it. */
static float moved(const struct reference *f, int k) {
    long has[ORACLE_P];
    return moves_next(f->use.thresholds, MOVES_GLOBAL, f->used, (size_t)k, (size_t)passing(f, f->used, has));
}

static void cut_sums(struct reference *f, int k) {
    struct oracle *o = &f->o;
    bool literal = f->use.thresholds != REUSE_GUARDED;
    double split[2][ORACLE_P], most = 0, all = 0;
    for (int r = 0; r < o->P; r++) {
        split[0][r] = f->sent[r] / 2;
        split[1][r] = f->received[r] / 2;
        most = fmax(most, split[1][r]);
        all += split[1][r];
    }
    f->stale = !literal && k >= 16 * o->P && 2 * most * o->P > 3 * all;
    f->evaluated = 0;
    if (f->k_of_threshold == 0 || f->uses >= f->use.period)
        find_threshold(f, k, EVALUATED_DUE);
    else if (4 * k < 3 * f->k_of_threshold || 4 * k > 5 * f->k_of_threshold)
        find_threshold(f, k, EVALUATED_K);
    gather_counts(f);
    unsigned reason = f->evaluated || literal ? 0 : choose_threshold(f, k, split);
    if (reason) {
        find_threshold(f, k, reason);
        gather_counts(f);
    }
    if (literal && !f->evaluated) f->used = key_value(f->track.key);
    if (literal) f->track.key = magnitude_key(f->evaluated ? f->used : moved(f, k));
    f->beyond = !literal && beyond_bound(f, k, f->used, split);
    f->uses++;
    for (int i = 0; i < o->n; i++)
        if (o->u.there[i] && fabsf(o->u.value[i]) < f->used) o->u.there[i] = false, o->u.value[i] = 0;
}

/* Only the words: where the entries of u lie does not change what they are. */
static void gather_words(struct reference *f) {
    struct oracle *o = &f->o;
    long has[ORACLE_P] = {0}, total = 0, most = 0, place = 0;
    for (int i = 0; i < o->n; i++)
        if (o->u.there[i]) has[owner_of(f, i)]++, total++;
    for (int r = 0; r < o->P; r++) most = has[r] > most ? has[r] : most;
    bool wanted_even = most * o->P > 4 * total || f->beyond;
    if (!(f->use.off & OKTOPK_NO_BALANCE) && wanted_even && most > (total + o->P - 1) / o->P) {
        memset(has, 0, sizeof has);
        for (int i = 0; i < o->n; i++) {
            if (!o->u.there[i]) continue;
            int owner = owner_of(f, i), target = 0;
            while (total * (target + 1) / o->P <= place) target++;
            count_words(f, owner, target, 2);
            f->moved += owner != target;
            has[target]++;
            place++;
        }
    }
    all_gather_words(f, has, 2);
}

/* One step. acc and, in o.sent, what each rank selects are there. */
static void reference_step(struct reference *f, int k) {
    static float error[ORACLE_P][ORACLE_N];
    struct oracle *o = &f->o;
    memset(f->sent, 0, sizeof f->sent);
    memset(f->received, 0, sizeof f->received);
    f->more = 0;
    for (int r = 0; r < o->P; r++)
        for (int i = 0; i < o->n; i++) {
            float value = o->sent[r].value[i];
            if (o->sent[r].there[i] && f->w->rounds) o->sent[r].value[i] = f->w->round(value);
            error[r][i] = value - o->sent[r].value[i];
        }
    if (!(f->use.off & OKTOPK_NO_REGIONS) && (f->step % f->use.balance_period == 0 || f->stale)) cut_regions(f);
    add_up(f);
    cut_sums(f, k);
    oracle_deliver(o);
    for (int i = 0; i < o->n; i++) {
        if (!o->u.there[i]) continue;
        for (int r = 0; r < o->P; r++)
            if (o->sent[r].there[i]) o->acc[r][i] += error[r][i];
        if (!f->w->rounds) continue;
        float rounded = f->w->round(o->u.value[i]);
        o->acc[owner_of(f, i)][i] += o->u.value[i] - rounded;
        o->u.value[i] = rounded;
    }
    gather_words(f);
    f->step++;
}

static void add_gradients(struct reference *f, enum kind kind, int step) {
    float grad[ORACLE_N];
    for (int r = 0; r < f->o.P; r++) {
        make_gradient(kind, r, f->o.P, step, (size_t)f->o.n, grad);
        for (int i = 0; i < f->o.n; i++) f->o.acc[r][i] += grad[i];
    }
}

static void agrees(const struct reference *f) {
    const struct oracle *o = &f->o;
    const struct oracle_vector *sent = &o->sent[rig.comm->rank];
    size_t count = 0, delivered = 0;
    for (int i = 0; i < o->n; i++) {
        count += o->u.there[i];
        delivered += o->u.there[i] && sent->there[i];
        assert_true(rig.u[i] == o->u.value[i]);
        assert_true(rig.residual[i] == o->acc[rig.comm->rank][i]);
    }
    assert_int_equal(rig.sum.global_nnz, count);
    for (size_t i = 0; i < count; i++) assert_true(o->u.there[rig.sum.sparse->idx[i]]);
    assert_int_equal(rig.sum.delivered->nnz, delivered);
    for (size_t i = 0; i < delivered; i++)
        assert_true(rig.sum.delivered->val[i] == sent->value[rig.sum.delivered->idx[i]] &&
                    o->u.there[rig.sum.delivered->idx[i]]);
    assert_true(rig.sum.threshold == f->used);
    assert_int_equal(rig.sum.evaluated, f->evaluated);
}

/* The transport's count is the reference's, but for rounding down in each of the evaluations' allreduces. */
static void same_words(const struct reference *f, struct comm_counters before, size_t k) {
    const struct comm_counters *now = &rig.comm->counters[TRAFFIC_EXCHANGE];
    double sent = (double)(now->bytes_sent - before.bytes_sent) / 4, P = f->o.P;
    double received = (double)(now->bytes_received - before.bytes_received) / 4;
    double more_sent = sent - f->sent[rig.comm->rank], more_received = received - f->received[rig.comm->rank];
    assert_true(more_sent <= f->more && more_sent > f->more - 2);
    assert_true(more_received <= f->more && more_received > f->more - 2);
    /* no evaluation, and within the bound: nothing to declare */
    double most = fmax(f->sent[rig.comm->rank], f->received[rig.comm->rank]);
    if (f->more == 0 && most <= 6 * (double)k * (P - 1) / P) assert_true(rig.sum.extra_words == 0);
    within_bound(before, rig.reducer.exchange.ops, k);
}

static void open_with(struct comm *c, const struct selector_ops *select, struct shape shape,
                      const struct oktopk_use *use, const struct wire_ops *w) {
    const struct exchange_ops *ops = exchange_named("oktopk");
    const struct oktopk_use all = with_paper_values(*use);
    rig_open_with(c, ops, select, shape.n, shape.k,
                  &(struct exchange_setup){.wire = w, .options = {ops->options.row, ops->options.rows, &all}});
}

/* k as in a density schedule: it stays, moves a little, then much. */
static size_t k_of(struct shape shape, int step) {
    return step < 4 ? shape.k : step == 4 ? shape.k - shape.k / 10 : (shape.k + 1) / 2;
}

static long several_steps(struct comm *c, struct shape shape, enum kind kind, const struct oktopk_use *use,
                          const struct wire_ops *w) {
    static double summed[ORACLE_N];
    static struct reference f;
    float given[ORACLE_N] = {0};
    uint64_t hash = 0;
    memset(summed, 0, sizeof summed);
    reference_open(&f, c, shape, use, w);
    open_with(c, exact(), shape, use, w);
    for (int step = 0; step < (c->size > 9 ? 5 : STEPS); step++) {
        size_t k = k_of(shape, step);
        add_gradients(&f, kind, step);
        make_gradient(kind, c->rank, c->size, step, shape.n, rig.grad);
        for (int i = 0; i < f.o.n; i++) given[i] += rig.grad[i];
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(k);
        hash = hash64(hash, (uint64_t[]){hash_of_sum()}, sizeof hash);
        oracle_select(&f.o, (int)k);
        reference_step(&f, (int)k);
        agrees(&f);
        assert_int_equal(rig.sum.local_nnz, k);
        if (w == wires[0]) same_words(&f, before, k);
        for (int i = 0; i < f.o.n; i++) summed[i] += (double)rig.u[i];
    }
    all_ranks_hold_the_same(hash);
    if (exact_sums(kind)) conserves(given, summed);
    rig_close();
    return f.moved;
}

/* All kinds with k = 100 and the first setup, else a few; the reference works for all ranks on each of them. */
static bool wanted(struct comm *c, int shape, enum kind kind, int setup) {
    bool slow = getenv("SPARSETRAIN_DELAY");
    if (c->size > 9 || slow)
        return shape == 6 && (kind == REAL || kind == ONE_REGION) && (c->size <= 9 || setup % 3 == 0);
    if (shapes[shape].all_kinds && setup == 0) return true;
    if (shapes[shape].all_kinds) return kind == REAL || kind == TIES || kind == ONE_REGION;
    return setup < 2 && (kind == WHOLE || kind == ZEROS || kind == REAL);
}

static void the_serial_reference(struct comm *c) {
    for (int u = 0; u < SETUPS; u++)
        for (int s = 0; s < SHAPES; s++)
            for (enum kind kind = 0; kind < KINDS; kind++)
                if (wanted(c, s, kind, u)) several_steps(c, shapes[s], kind, &setups[u], wires[0]);
}

static void every_wire_format(struct comm *c) {
    for (size_t w = 1; wires[w]; w++)
        for (int u = 0; u < SETUPS; u += u == 0 && c->size <= 9 ? 1 : 3)
            for (int s = 0; s < SHAPES; s++)
                for (enum kind kind = 0; kind < KINDS; kind++)
                    if (takes_format(wires[w]) && wanted(c, s, kind, u) && (s != 5 || kind == REAL))
                        several_steps(c, shapes[s], kind, &setups[u], wires[w]);
}

/* -- other selectors ----------------------------------------------------------------------------------- */
/* More than k are cut to k. */
static void cut_selection(struct oracle_vector *sent, int n, int k) {
    oracle_cut(sent, n, k, NULL);
}

static void a_selector_of_varying_count(struct comm *c) {
    static struct reference f;
    for (int u = 0; u < SETUPS; u++)
        for (enum kind kind = 0; kind < KINDS; kind++) {
            const struct shape shape = {400, kind == REAL ? 3 : 30, true};
            if (!wanted(c, 6, kind, u)) continue;
            reference_open(&f, c, shape, &setups[u], wires[0]);
            open_with(c, &threshold_selector, shape, &setups[u], wires[0]);
            for (int step = 0; step < STEPS; step++) {
                add_gradients(&f, kind, step);
                make_gradient(kind, c->rank, c->size, step, shape.n, rig.grad);
                struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
                rig_step(shape.k);
                memset(&f.o.u, 0, sizeof f.o.u);
                for (int r = 0; r < c->size; r++)
                    for (int i = 0; i < f.o.n; i++) {
                        f.o.sent[r].there[i] = fabsf(f.o.acc[r][i]) >= 6;
                        f.o.sent[r].value[i] = f.o.sent[r].there[i] ? f.o.acc[r][i] : 0;
                    }
                for (int r = 0; setups[u].thresholds == REUSE_GUARDED && r < c->size; r++)
                    cut_selection(&f.o.sent[r], f.o.n, (int)shape.k);
                reference_step(&f, (int)shape.k);
                agrees(&f);
                same_words(&f, before, shape.k);
            }
            rig_close();
        }
}

/* Whatever it selects: conservation, the same bits everywhere, the declared bound. */
static void every_selector(struct comm *c) {
    for (size_t s = 0; selectors[s]; s++)
        for (enum kind kind = 0; kind < KINDS; kind++) {
            double summed[ORACLE_N] = {0};
            float given[ORACLE_N] = {0};
            const struct shape shape = {1009, 60, true};
            if (!wanted(c, 6, kind, (int)s)) continue;
            open_with(c, selectors[s], shape, &setups[0], wires[0]);
            for (int step = 0; step < STEPS; step++) {
                make_gradient(kind, c->rank, c->size, step, shape.n, rig.grad);
                for (size_t i = 0; i < shape.n; i++) given[i] += rig.grad[i];
                struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
                rig_step(shape.k);
                within_bound(before, rig.reducer.exchange.ops, shape.k);
                for (size_t i = 0; i < shape.n; i++) summed[i] += (double)rig.u[i];
            }
            all_ranks_hold_the_same(hash_of_sum());
            if (exact_sums(kind)) conserves(given, summed);
            rig_close();
        }
}

/* -- gtopk-naive --------------------------------------------------------------------------------------- */
/* Thresholds exact in every step: what gtopk-naive keeps of the same acc, and all that ties with the last of it. */
static void equals_gtopk_naive_up_to_ties(struct comm *c) {
    static struct oracle naive;
    const struct oktopk_use use = {.period = 1, .balance_period = 2};
    if (c->size > 9) return;
    for (int s = 0; s < SHAPES; s++)
        for (enum kind kind = 0; kind < KINDS; kind++) {
            memset(&naive, 0, sizeof naive);
            naive.n = (int)shapes[s].n;
            naive.P = c->size;
            open_with(c, exact(), shapes[s], &use, wires[0]);
            for (int step = 0; step < 4; step++) {
                float grad[ORACLE_N], all[ORACLE_P * ORACLE_N];
                comm_allgather(c, rig.residual, (size_t)naive.n * sizeof(float), all);
                for (int r = 0; r < c->size; r++) {
                    make_gradient(kind, r, c->size, step, shapes[s].n, grad);
                    for (int i = 0; i < naive.n; i++) naive.acc[r][i] = grad[i] + (step > 0 ? all[r * naive.n + i] : 0);
                }
                make_gradient(kind, c->rank, c->size, step, shapes[s].n, rig.grad);
                rig_step(shapes[s].k);
                oracle_gtopk_naive(&naive, (int)shapes[s].k);
                float last = INFINITY;
                for (int i = 0; i < naive.n; i++)
                    if (naive.u.there[i]) last = fminf(last, fabsf(naive.u.value[i]));
                for (int i = 0; i < naive.n; i++) {
                    if (naive.u.there[i])
                        assert_true(fabsf(rig.u[i] - naive.u.value[i]) <= (kind == REAL ? 1e-5f : 0));
                    else
                        assert_true(rig.u[i] == 0 || fabsf(rig.u[i]) == last);
                }
                assert_true(rig.sum.global_nnz >= shapes[s].k || rig.sum.threshold == 0);
                if (kind == REAL) assert_int_equal(rig.sum.global_nnz, shapes[s].k);
            }
            rig_close();
        }
}

/* -- words --------------------------------------------------------------------------------------------- */
/* Gradients of one distribution, without what earlier steps left behind: thresholds and regions serve, and every step
 * but those that find them anew keeps the bound of the paper. */
static void ordinary_steps_keep_the_bound(struct comm *c) {
    enum { N = 1100, K = 300 }; /* with fewer, what a region holds is too much a matter of chance */
    const struct oktopk_use use = {.period = 8, .balance_period = 6};
    const float zero[N] = {0};
    double bound = 6.0 * K * (c->size - 1) / c->size;
    int ordinary = 0;
    if (c->size > 9) return;
    open_with(c, exact(), (struct shape){N, K, true}, &use, wires[0]);
    for (int step = 0; step < 24; step++) {
        rig.reducer.store.ops->write(&rig.reducer.store, 0, N, zero);
        make_gradient(REAL, c->rank, c->size, step, N, rig.grad);
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(K);
        const struct comm_counters *now = &c->counters[TRAFFIC_EXCHANGE];
        double words = (double)(now->bytes_received - before.bytes_received) / 4;
        if (words < (double)(now->bytes_sent - before.bytes_sent) / 4)
            words = (double)(now->bytes_sent - before.bytes_sent) / 4;
        ordinary += rig.sum.extra_words == 0;
        assert_true(words <= bound + rig.sum.extra_words);
        /* what is beyond the bound is an evaluation, or new regions and the counts */
        assert_true(rig.sum.extra_words == 0 || rig.sum.extra_words >= 2048 || rig.sum.extra_words <= 8 * c->size);
        assert_in_range(rig.sum.global_nnz, K / 2, 3 * K / 2);
    }
    assert_true(ordinary >= 8); /* of 24; 6 of them have to find thresholds or regions anew */
    rig_close();
}

/* The most words that any rank receives in a step without evaluations, everything being selected in the first eighth.
 */
static double most_received(struct comm *c, bool even_regions) {
    enum { N = 1040, K = 60 };
    const float zero[N] = {0};
    const struct oktopk_use use = {.off = OKTOPK_NO_BALANCE | (even_regions ? OKTOPK_NO_REGIONS : 0)};
    open_with(c, exact(), (struct shape){N, K, true}, &use, wires[0]);
    double received = 0;
    for (int step = 0; step < 2; step++) {
        rig.reducer.store.ops->write(&rig.reducer.store, 0, N, zero);
        make_gradient(ONE_REGION, c->rank, c->size, 0, N, rig.grad);
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(K);
        received = (double)(c->counters[TRAFFIC_EXCHANGE].bytes_received - before.bytes_received) / 4;
    }
    comm_allreduce_f64(c, &received, 1, COMM_MAX);
    rig_close();
    return received;
}

static void regions_are_balanced(struct comm *c) {
    enum { N = 1040, K = 60 };
    static struct reference f;
    double P = c->size, most[2];
    for (int even = 0; even < 2; even++) {
        const struct oktopk_use use = {.period = 1, .off = even ? OKTOPK_NO_REGIONS : 0};
        reference_open(&f, c, (struct shape){N, K, true}, &use, wires[0]);
        open_with(c, exact(), (struct shape){N, K, true}, &use, wires[0]);
        add_gradients(&f, ONE_REGION, 0);
        make_gradient(ONE_REGION, c->rank, c->size, 0, N, rig.grad);
        rig_step(K);
        oracle_select(&f.o, K);
        reference_step(&f, K);
        agrees(&f);
        int in_region[ORACLE_P] = {0}, largest = 0;
        for (int r = 0; r < f.o.P; r++)
            for (int i = 0; i < N; i++) in_region[owner_of(&f, i)] += f.o.sent[r].there[i];
        for (int r = 0; r < f.o.P; r++) largest = in_region[r] > largest ? in_region[r] : largest;
        most[even] = largest;
        rig_close();
    }
    if (c->size <= 8) assert_true(most[1] >= (K - 1) * P); /* one owner gets all */
    assert_true(most[0] <= 2.0 * K);                       /* instead of K on average */
    if (c->size >= 4 && c->size <= 9) assert_true(most_received(c, false) < 0.7 * most_received(c, true));
}

/* With equal regions one rank has all there is: more than 4 times the mean from P = 5 on. */
static void uneven_sums_are_evened_out(struct comm *c) {
    struct oktopk_use use = {.period = 1, .off = OKTOPK_NO_REGIONS};
    const struct shape shape = {1009, 100, true};
    long moved = several_steps(c, shape, ONE_REGION, &use, wires[0]);
    assert_true(c->size >= 5 ? moved > 0 : c->size > 1 || moved == 0); /* with fewer ranks the bound on words asks */
    use.off |= OKTOPK_NO_BALANCE;
    assert_true(several_steps(c, shape, ONE_REGION, &use, wires[0]) == 0);
    use = (struct oktopk_use){.period = 1, .balance_period = 1};
    if (c->size >= 7) assert_true(several_steps(c, shape, WHOLE, &use, wires[0]) == 0); /* k < 16 P: nobody asks */
}

/* -- thresholds that do not serve ------------------------------------------------------------------------ */
/* One step with acc[i] = size (i + 1), on all ranks or on one rank each, nothing being left of earlier steps. */
static void a_step_of_size(struct comm *c, float size, bool on_one, size_t k) {
    const float zero[RIG_N] = {0};
    rig.reducer.store.ops->write(&rig.reducer.store, 0, rig.n, zero);
    for (size_t i = 0; i < rig.n; i++) rig.grad[i] = !on_one || (int)i % c->size == c->rank ? size * (float)(i + 1) : 0;
    rig_step(k);
}

/* Much smaller: nothing passes. Much larger, and the ranks' selections do not overlap: too much passes. In the end the
 * largest stay, between k/2 and 3k/2 of them and, where a threshold was found anew, k; the words say when it was. */
static void thresholds_are_found_anew(struct comm *c) {
    enum { N = 300, K = 20 };
    const struct {
        float size;
        unsigned anew;
    } steps[] = {{1024, EVALUATED_DUE},  {1024, 0}, {1, EVALUATED_FEW},     {1, 0},
                 {4096, EVALUATED_MANY}, {4100, 0}, {0.125f, EVALUATED_FEW}};
    for (int on_one = 0; on_one < 2; on_one++) {
        open_with(c, exact(), (struct shape){N, K, true}, &(struct oktopk_use){.balance_period = 100}, wires[0]);
        for (size_t step = 0; step < sizeof steps / sizeof steps[0]; step++) {
            float size = steps[step].size * (on_one ? 1 : (float)c->size);
            a_step_of_size(c, steps[step].size, on_one, K);
            /* the same indices everywhere: no more than k can pass */
            unsigned anew = on_one || steps[step].anew != EVALUATED_MANY ? steps[step].anew : 0;
            size_t kept = rig.sum.global_nnz;
            if (c->size > 1 || anew != EVALUATED_MANY) assert_int_equal(rig.sum.evaluated, anew);
            assert_in_range(kept, anew ? K : K / 2, anew ? K : 3 * K / 2);
            for (size_t i = 0; i < N; i++) assert_true(rig.u[i] == (i < N - kept ? 0 : size * (float)(i + 1)));
            if (c->size > 1) assert_true((rig.sum.extra_words >= 2048) == (anew != 0));
        }
        rig_close();
    }
}

/* Nobody selects anything: an empty sum, and the threshold is not touched. */
static void an_empty_sum(struct comm *c) {
    enum { N = 300, K = 20 };
    open_with(c, &threshold_selector, (struct shape){N, K, true}, &(struct oktopk_use){0}, wires[0]);
    a_step_of_size(c, 7, false, K);
    assert_int_equal(rig.sum.global_nnz, K);
    float before = rig.sum.threshold;
    for (int step = 0; step < 3; step++) {
        a_step_of_size(c, 0, false, K);
        assert_int_equal(rig.sum.global_nnz, 0);
        assert_true(rig.sum.threshold == before && rig.sum.evaluated == 0 && rig.sum.extra_words < 2048);
    }
    a_step_of_size(c, 7, false, K);
    assert_int_equal(rig.sum.global_nnz, K);
    rig_close();
}

/* -- a checkpoint -------------------------------------------------------------------------------------- */
static void steps(struct comm *c, int from, int to, uint64_t *hash) {
    for (int step = from; step < to; step++) {
        make_gradient(REAL, c->rank, c->size, step, 700, rig.grad);
        rig_step(40);
        uint64_t sum = hash_of_sum();
        *hash = hash64(hash64(*hash, &sum, sizeof sum), rig.residual, 700 * sizeof(float));
    }
}

static void a_checkpoint(struct comm *c) {
    const struct oktopk_use use = {.period = 5, .balance_period = 4};
    const struct shape shape = {700, 40, true};
    static float residual[RIG_N];
    unsigned char kept[1024];
    size_t bytes;
    uint64_t hash = 0, again = 0;
    open_with(c, exact(), shape, &use, wires[0]);
    steps(c, 0, 3, &hash);
    void *state;
    exchange_saved(&rig.reducer.exchange, 0, &state, &bytes);
    assert_true(bytes <= sizeof kept);
    memcpy(kept, state, bytes);
    memcpy(residual, rig.residual, sizeof residual);
    hash = 0;
    steps(c, 3, 10, &hash);
    rig_close();
    open_with(c, exact(), shape, &use, wires[0]);
    exchange_saved(&rig.reducer.exchange, 0, &state, &bytes);
    memcpy(state, kept, bytes);
    rig.reducer.store.ops->write(&rig.reducer.store, 0, 700, residual);
    steps(c, 3, 10, &again);
    assert_true(hash == again);
    rig_close();
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"the_serial_reference", the_serial_reference},
        {"every_wire_format", every_wire_format},
        {"a_selector_of_varying_count", a_selector_of_varying_count},
        {"every_selector", every_selector},
        {"equals_gtopk_naive_up_to_ties", equals_gtopk_naive_up_to_ties},
        {"ordinary_steps_keep_the_bound", ordinary_steps_keep_the_bound},
        {"regions_are_balanced", regions_are_balanced},
        {"uneven_sums_are_evened_out", uneven_sums_are_evened_out},
        {"thresholds_are_found_anew", thresholds_are_found_anew},
        {"an_empty_sum", an_empty_sum},
        {"a_checkpoint", a_checkpoint},
    };
    return rig_test_main(argc, argv, "comm_oktopk", cases, sizeof cases / sizeof cases[0]);
}
