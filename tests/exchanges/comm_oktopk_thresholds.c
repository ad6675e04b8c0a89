/* comm_oktopk_thresholds.c: what Ok-Topk's reused thresholds let pass in the course of a training: gradients of the
 * ranks that have little in common and become smaller, so that what was selected and not kept piles up between the
 * local thresholds and the global one. guarded keeps counts in [k/2, 3k/2] and seldom evaluates; paper, and the rules
 * of its authors' code, evaluate every tau' steps and no oftener. */
/* ranks: 1 2 4 8 */
/* devices: cuda ranks 4 */
#include "tests/lib/exchange_rig.h"

#include "tests/lib/authors_moves.h"
#include "topk/track.h"

extern const struct selector_ops selector_reuse;

enum { N = RIG_N, K = 55, STEPS = 96, PERIOD = 32 };

static void shrinking_gradient(struct comm *c, int step, int from_rest) {
    double size = pow(0.98, step < from_rest ? 0 : step - from_rest);
    make_gradient(REAL, c->rank, c->size, step, N, rig.grad);
    for (int i = 0; i < N; i++) rig.grad[i] *= (float)size;
}

/* Of all steps: how often thresholds were found anew, for whatever reason, the range of the counts, and how far they
 * are from k, all together. */
struct course {
    int local, global, due;
    size_t local_least, local_most, global_least, global_most;
    double local_off, global_off;
};

/* Of both thresholds, local and global. */
static struct option_values with_rule(enum reuse_rule rule) {
    char text[64];
    snprintf(text, sizeof text, "tau-prime=%d,oktopk-thresholds=%s", PERIOD, reuse_rule_names[rule]);
    return rig_options(text, GTOPK_CONSERVE);
}

static struct course train(struct comm *c, enum reuse_rule rule, int from_rest) {
    struct course all = {.local_least = N, .global_least = N};
    rig_open_with(c, exchange_named("oktopk"), &selector_reuse, N, K,
                  &(struct exchange_setup){.options = with_rule(rule)});
    for (int step = 0; step < STEPS; step++) {
        shrinking_gradient(c, step, from_rest);
        rig_step(K);
        const struct selector_stats *s = &rig.reducer.selector->stats;
        all.local += s->evaluated != 0;
        all.global += rig.sum.evaluated != 0;
        all.due += rig.sum.evaluated == EVALUATED_DUE;
        assert_int_equal(rig.sum.local_nnz, rule != REUSE_GUARDED || s->found < K ? s->found : K);
        all.local_off += fabs((double)s->found - K);
        all.global_off += fabs((double)rig.sum.global_nnz - K);
        all.local_least = s->found < all.local_least ? s->found : all.local_least;
        all.local_most = s->found > all.local_most ? s->found : all.local_most;
        all.global_least = rig.sum.global_nnz < all.global_least ? rig.sum.global_nnz : all.global_least;
        all.global_most = rig.sum.global_nnz > all.global_most ? rig.sum.global_nnz : all.global_most;
    }
    rig_close();
    return all;
}

static void guarded_keeps_the_counts(struct comm *c) {
    for (int from_rest = 0; from_rest <= 40; from_rest += 20) {
        struct course all = train(c, REUSE_GUARDED, from_rest);
        assert_true(2 * all.local_least >= K && 2 * all.local_most <= 3 * K);
        assert_true(2 * all.global_least >= K && 2 * all.global_most <= 3 * K);
        assert_true(10 * all.global <= STEPS);
        assert_true(10 * all.local <= STEPS);
    }
}

/* The steps 1, 33, 65; between them, whatever passes: which is less than any guard would allow. */
static void paper_is_algorithm_1(struct comm *c) {
    struct course all = train(c, REUSE_PAPER, 0);
    assert_int_equal(all.local, STEPS / PERIOD);
    assert_int_equal(all.global, STEPS / PERIOD);
    assert_int_equal(all.due, STEPS / PERIOD);
    assert_true(2 * all.local_least < K || 2 * all.local_most > 3 * K);
    assert_true(2 * all.global_least < K || 2 * all.global_most > 3 * K);
}

/* The same steps; the counts are nearer to k than without moves. */
static void the_authors_code_moves_them(struct comm *c) {
    const struct course still = train(c, REUSE_PAPER, 0);
    for (enum reuse_rule rule = REUSE_CODE_VGG; rule < REUSE_RULES; rule++) {
        struct course all = train(c, rule, 0);
        assert_int_equal(all.local, STEPS / PERIOD);
        assert_int_equal(all.global, STEPS / PERIOD);
        assert_int_equal(all.due, STEPS / PERIOD);
        assert_true(all.local_off < still.local_off && all.global_off < still.global_off);
    }
}

static size_t reaching(const float *v, float threshold) {
    size_t count = 0;
    for (int i = 0; i < N; i++) count += fabsf(v[i]) >= threshold;
    return count;
}

/* One reading of Algorithm 1 and of that code with loops: the same thresholds, on the same accumulated gradients of all
 * ranks. */
static float kth_magnitude(const float *v, int n, int k) {
    float size[N];
    for (int i = 0; i < n; i++) size[i] = fabsf(v[i]);
    for (int place = 0; place < k; place++) /* the k largest to the front */
        for (int i = place + 1; i < n; i++)
            if (size[i] > size[place]) {
                float other = size[i];
                size[i] = size[place];
                size[place] = other;
            }
    return size[k - 1];
}

static void against_loops(struct comm *c, enum reuse_rule rule) {
    static float mine[N], all[8 * N], sum[N];
    float local = 0, global = 0;
    rig_open_with(c, exchange_named("oktopk"), &selector_reuse, N, K,
                  &(struct exchange_setup){.options = with_rule(rule)});
    memset(mine, 0, sizeof mine);
    for (int t = 1; t <= 40; t++) {
        shrinking_gradient(c, t, 0);
        for (int i = 0; i < N; i++) mine[i] += rig.grad[i];
        rig_step(K);
        const bool exact = (t - 1) % PERIOD == 0;
        if (exact) local = kth_magnitude(mine, N, K);
        for (int i = 0; !exact && moves_before(rule, K, reaching(mine, local), i); i++)
            local = moves_by(local, MOVES_BEFORE);
        float chosen[N];
        for (int i = 0; i < N; i++) chosen[i] = fabsf(mine[i]) >= local ? mine[i] : 0;
        comm_allgather(c, chosen, sizeof chosen, all);
        memset(sum, 0, sizeof sum);
        for (int r = 0; r < c->size; r++)
            for (int i = 0; i < N; i++) sum[i] += all[r * N + i];
        if (exact) global = kth_magnitude(sum, N, K);
        assert_float_equal(rig.reducer.selector->stats.threshold, local, 0);
        assert_true(fabsf(rig.sum.threshold - global) <= 1e-5f * global); /* another order of the sum */
        size_t kept = 0;
        for (int i = 0; i < N; i++) {
            bool stays = rig.u[i] != 0;
            kept += stays;
            if (stays) assert_true(fabsf(rig.u[i] - sum[i]) <= 1e-5f * fabsf(sum[i]));
            if (!stays) assert_true(fabsf(sum[i]) <= global * (1 + 1e-5f));
            if (stays && chosen[i] != 0) mine[i] = 0;
            assert_true(rig.residual[i] == mine[i]);
        }
        assert_int_equal(kept, rig.sum.global_nnz);
        if (exact) continue;
        local = moves_next(rule, MOVES_LOCAL, local, K, reaching(chosen, local));
        global = moves_next(rule, MOVES_GLOBAL, rig.sum.threshold, K, kept);
    }
    rig_close();
}

static void rules_against_loops(struct comm *c) {
    for (enum reuse_rule rule = REUSE_PAPER; rule < REUSE_RULES; rule++) against_loops(c, rule);
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {{"guarded_keeps_the_counts", guarded_keeps_the_counts},
                                     {"paper_is_algorithm_1", paper_is_algorithm_1},
                                     {"the_authors_code_moves_them", the_authors_code_moves_them},
                                     {"rules_against_loops", rules_against_loops}};
    return rig_test_main(argc, argv, "comm_oktopk_thresholds", cases, sizeof cases / sizeof cases[0]);
}
