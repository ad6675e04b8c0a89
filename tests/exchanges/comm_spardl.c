/* comm_spardl.c: SparDL against a serial reference over full vectors, with every wire format; bounds on words and
 * messages; that a selector's memory of each block is saved.
 * ranks: 1 2 3 4 5 7 8 9 16 32
 * devices: cuda ranks 1 3 4 */
#include "tests/lib/exchange_rig.h"

#include "tests/lib/exchange_oracle.h"

enum { P_MAX = 32, STEPS = 4 };

static const struct shape {
    size_t n, k;
    bool all_kinds;
} shapes[] = {{1, 1, false},   {3, 1, false},    {3, 3, false},      {7, 2, false},     {31, 9, false},
              {100, 8, false}, {1009, 1, false}, {1009, 5, true},    {1009, 37, false}, {1009, 100, true},
              {64, 64, false}, {RIG_N, 9, true}, {1009, 1009, false}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

extern const struct selector_ops selector_reuse;

/* -- the reference -------------------------------------------------------------------------------------------- */
static struct reference {
    int n, P;
    float acc[P_MAX][RIG_N];                      /* residual, plus the gradient within a step */
    float value[P_MAX][RIG_N];                    /* what rank r holds of entry i ... */
    bool there[P_MAX][RIG_N];                     /* ... if it holds it */
    bool chosen[P_MAX][RIG_N], cut[P_MAX][RIG_N]; /* selected by rank r; cut off by rank r */
    float u[RIG_N];
    bool in_u[RIG_N];
} ref;

/* Of entries [from, to) that rank r holds only the `most` largest stay; the others go to its residual. */
static void keep_largest(int r, int from, int to, int most) {
    bool keep[RIG_N];
    oracle_largest(ref.value[r], ref.there[r], from, to, most, keep);
    for (int i = from; i < to; i++) {
        if (keep[i] || !ref.there[r][i]) continue;
        ref.acc[r][i] += ref.value[r][i];
        ref.there[r][i] = false;
        ref.cut[r][i] = true;
    }
}

static void round_values(int r, int from, int to, const struct wire_ops *wire) {
    for (int i = from; wire->rounds && i < to; i++) {
        if (!ref.there[r][i]) continue;
        float rounded = wire->round(ref.value[r][i]);
        ref.acc[r][i] += ref.value[r][i] - rounded;
        ref.value[r][i] = rounded;
    }
}

/* Rank r's contribution to the block goes to rank `to`. */
static void hand_over(int r, int to, int begin, int end, int most, const struct wire_ops *wire) {
    keep_largest(r, begin, end, most);
    round_values(r, begin, end, wire);
    for (int i = begin; i < end; i++) {
        if (!ref.there[r][i]) continue;
        ref.value[to][i] = ref.there[to][i] ? ref.value[to][i] + ref.value[r][i] : ref.value[r][i];
        ref.there[to][i] = true;
        ref.there[r][i] = false;
    }
}

/* Block by block. A rank that is d before the owner hands its sum over to the rank that is d - h before it, h the
 * largest power of two in d; the far ones first. */
static void reference_step(int k, const struct wire_ops *wire) {
    int P = ref.P;
    memset(ref.in_u, 0, sizeof ref.in_u);
    memset(ref.u, 0, sizeof ref.u);
    for (int owner = 0; owner < P; owner++) {
        int begin = (int)((long)owner * ref.n / P), end = (int)((long)(owner + 1) * ref.n / P);
        int most = (int)((long)(owner + 1) * k / P - (long)owner * k / P), h = 1;
        if (most == 0) most = 1;
        while (h < P) h *= 2;
        for (h /= 2; h >= 1; h /= 2)
            for (int d = h; d < 2 * h && d < P; d++)
                hand_over((owner - d + P) % P, (owner - d + h + P) % P, begin, end, most, wire);
        keep_largest(owner, begin, end, most);
        round_values(owner, begin, end, wire);
        for (int i = begin; i < end; i++) {
            ref.in_u[i] = ref.there[owner][i];
            if (ref.in_u[i]) ref.u[i] = ref.value[owner][i];
        }
    }
}

/* Rank r selects among entries [from, to) the `most` largest, or all of magnitude `least` and more where that is not 0.
 */
static void select_in(int r, int from, int to, int most, float least) {
    oracle_largest(ref.acc[r], NULL, from, to, most, ref.chosen[r]);
    for (int i = from; i < to; i++) {
        if (least > 0) ref.chosen[r][i] = fabsf(ref.acc[r][i]) >= least;
        ref.there[r][i] = ref.chosen[r][i];
        ref.value[r][i] = ref.chosen[r][i] ? ref.acc[r][i] : 0;
        if (ref.chosen[r][i]) ref.acc[r][i] = 0;
    }
}

/* Of each block its share of k. Returns what all shares together can give. */
static int reference_select(int k, float least) {
    int all = 0;
    memset(ref.cut, 0, sizeof ref.cut);
    for (int b = 0; b < ref.P; b++) {
        int begin = (int)((long)b * ref.n / ref.P), end = (int)((long)(b + 1) * ref.n / ref.P);
        int most = (int)((long)(b + 1) * k / ref.P - (long)b * k / ref.P);
        if (most == 0) most = 1;
        for (int r = 0; r < ref.P; r++) select_in(r, begin, end, most, least);
        all += most < end - begin ? most : end - begin;
    }
    return all;
}

/* -- against it ------------------------------------------------------------------------------------------------- */
static void agrees(const float *acc) {
    int me = rig.comm->rank;
    size_t chosen = 0, count = 0, sent = 0;
    float least = INFINITY;
    for (int i = 0; i < ref.n; i++) {
        if (ref.chosen[me][i]) least = fminf(least, fabsf(acc[i]));
        chosen += ref.chosen[me][i];
        count += ref.in_u[i];
        assert_true(rig.u[i] == ref.u[i]);
        assert_true(rig.residual[i] == ref.acc[me][i]);
        if (!ref.chosen[me][i] || ref.cut[me][i] || !ref.in_u[i]) continue;
        assert_true(sent < rig.sum.delivered->nnz && rig.sum.delivered->idx[sent] == (uint32_t)i);
        sent++;
    }
    assert_int_equal(rig.sum.delivered->nnz, sent);
    assert_int_equal(rig.sum.local_nnz, chosen);
    assert_int_equal(rig.reducer.selector->stats.found, chosen);
    if (rig.reducer.selector->ops == exact()) assert_true(rig.reducer.selector->stats.threshold == least);
    assert_int_equal(rig.sum.global_nnz, count);
    assert_true(rig.sum.mass_lost == 0);
}

static void in_few_messages(struct comm_counters before, size_t k, bool bounded) {
    const struct comm_counters *now = &rig.comm->counters[TRAFFIC_EXCHANGE];
    uint64_t rounds = 0;
    while ((1 << rounds) < rig.comm->size) rounds++;
    assert_true(now->messages_sent - before.messages_sent <= 2 * rounds + 2);
    assert_true(now->messages_received - before.messages_received <= 2 * rounds + 2);
    if (bounded) within_bound(before, rig.reducer.exchange.ops, k);
    if (!bounded || (int)k < rig.comm->size) return;
    assert_true((double)(now->bytes_sent - before.bytes_sent) / 4 <= 4.5 * (double)k);
    assert_true((double)(now->bytes_received - before.bytes_received) / 4 <= 4.5 * (double)k);
}

static void several_steps(struct comm *c, struct shape shape, enum kind kind, const struct wire_ops *wire,
                          const struct selector_ops *select, float least) {
    static double summed[RIG_N];
    static float given[RIG_N], grad[RIG_N], acc[RIG_N];
    memset(&ref, 0, sizeof ref);
    memset(summed, 0, sizeof summed);
    memset(given, 0, sizeof given);
    ref.n = (int)shape.n;
    ref.P = c->size;
    rig_open_with(c, exchange_named("spardl"), select, shape.n, shape.k, &(struct exchange_setup){.wire = wire});
    for (int step = 0; step < STEPS; step++) {
        size_t k = step % 2 == 0 ? shape.k : (shape.k + 1) / 2; /* the density changes during a run */
        for (int r = 0; r < c->size; r++) {
            make_gradient(kind, r, c->size, step, shape.n, grad);
            for (int i = 0; i < ref.n; i++) ref.acc[r][i] += grad[i];
        }
        make_gradient(kind, c->rank, c->size, step, shape.n, rig.grad);
        for (int i = 0; i < ref.n; i++) given[i] += rig.grad[i];
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(k);
        in_few_messages(before, k, wire == wires[0]);
        memcpy(acc, ref.acc[c->rank], sizeof acc);
        int all = reference_select((int)k, least);
        reference_step((int)k, wire);
        agrees(acc);
        if (least == 0) assert_int_equal(rig.sum.global_nnz, all); /* no share lies idle */
        all_ranks_hold_the_same(hash_of_sum());
        for (int i = 0; i < ref.n; i++) summed[i] += (double)rig.u[i];
        for (int i = 0; k == shape.n && !wire->rounds && i < ref.n; i++) assert_true(rig.residual[i] == 0);
    }
    if (exact_sums(kind)) conserves(given, summed);
    rig_close();
}

static bool wanted(struct comm *c, struct shape shape, enum kind kind) {
    if (c->size > 9) return shape.k != shape.n && (shape.all_kinds ? kind == WHOLE || kind == REAL : kind == TIES);
    return shape.all_kinds || kind == WHOLE || kind == ZEROS || kind == REAL;
}

static void the_reference(struct comm *c) {
    for (int w = 0; wires[w]; w++)
        for (int s = 0; s < SHAPES; s++)
            for (enum kind kind = 0; kind < KINDS; kind++)
                if (takes_format(wires[w]) && wanted(c, shapes[s], kind))
                    several_steps(c, shapes[s], kind, wires[w], exact(), 0);
}

/* A selector that does not know k: budgets do the cutting. */
static bool three_and_more(struct selector *s, const float *grad, size_t k, struct sparse *out, size_t *bad) {
    (void)k;
    (void)bad;
    s->store->ops->accumulate_select(s->store, grad, magnitude_key(3.0f), out);
    return true;
}
static const struct selector_ops threshold = {
    .name = "threshold", .open = no_state, .run = three_and_more, .close = no_state};

static void a_selector_of_varying_count(struct comm *c) {
    for (int w = 0; wires[w]; w++)
        for (enum kind kind = 0; kind < KINDS; kind++)
            if (takes_format(wires[w]) && (c->size <= 9 || kind == WHOLE))
                several_steps(c, (struct shape){400, 30, true}, kind, wires[w], &threshold, 3);
}

/* k = n: the sum of everything, to float rounding. */
static void k_equal_to_n(struct comm *c) {
    enum { N = 501 };
    static double want[N];
    float grad[N];
    memset(want, 0, sizeof want);
    for (int r = 0; r < c->size; r++) {
        make_gradient(REAL, r, c->size, 3, N, grad);
        for (int i = 0; i < N; i++) want[i] += (double)grad[i];
    }
    rig_open(c, exchange_named("spardl"), exact(), N, N, GTOPK_CONSERVE);
    make_gradient(REAL, c->rank, c->size, 3, N, rig.grad);
    rig_step(N);
    assert_int_equal(rig.sum.global_nnz, N);
    for (int i = 0; i < N; i++) assert_true(fabs((double)rig.u[i] - want[i]) <= 1e-5);
    rig_close();
}

/* Found before anything is sent: all ranks fail here, none waits, and the next exchange finds nothing left over. */
static void not_a_number(struct comm *c) {
    for (int at = 0; at < 100; at += 33) {
        rig_open(c, exchange_named("spardl"), exact(), 100, 20, GTOPK_CONSERVE);
        make_gradient(REAL, c->rank, c->size, 1, 100, rig.grad);
        rig.grad[at] = rig.grad[99] = NAN; /* the lowest is named */
        assert_false(rig_run(20));
        assert_int_equal(rig.sum.bad, at);
        rig_close();
        several_steps(c, (struct shape){100, 20, true}, WHOLE, wires[0], exact(), 0);
    }
}

/* Steps [from, to) of a run whose thresholds are remembered from step to step. */
static void steps_with_memory(struct comm *c, size_t n, size_t k, int from, int to) {
    for (int step = from; step < to; step++) {
        make_gradient(REAL, c->rank, c->size, step, n, rig.grad);
        rig_step(k);
    }
}

/* A run that goes on with the residual and the pieces of another ends with the same bits. */
static void memory_of_the_selectors(struct comm *c) {
    enum { N = 1009, K = 100, HALF = 3 };
    static float residual[RIG_N];
    static unsigned char kept[P_MAX][64];
    const struct exchange_setup none = {0};
    void *memory;
    size_t bytes, part, all = 0;
    for (size_t n = 5; n <= N; n += N - 5) {
        size_t k = n < K ? n : K;
        rig_open_with(c, exchange_named("spardl"), &selector_reuse, n, k, &none);
        steps_with_memory(c, n, k, 0, HALF);
        for (part = 0; exchange_saved(&rig.reducer.exchange, part, &memory, &bytes); part++) {
            assert_true(bytes <= sizeof kept[0]);
            if (bytes > 0) memcpy(kept[part], memory, bytes);
            all += bytes > 0;
        }
        assert_int_equal(part, c->size); /* as many with n < P */
        memcpy(residual, rig.residual, sizeof residual);
        steps_with_memory(c, n, k, HALF, 2 * HALF);
        uint64_t want = hash_of_sum();
        rig_close();
        rig_open_with(c, exchange_named("spardl"), &selector_reuse, n, k, &none);
        rig.reducer.store.ops->write(&rig.reducer.store, 0, n, residual);
        for (part = 0; exchange_saved(&rig.reducer.exchange, part, &memory, &bytes); part++)
            if (bytes > 0) memcpy(memory, kept[part], bytes);
        steps_with_memory(c, n, k, HALF, 2 * HALF);
        assert_true(hash_of_sum() == want);
        rig_close();
    }
    assert_int_equal(all, c->size + (c->size < 5 ? c->size : 5)); /* one for each block that is not empty */
}

/* The formula for P and k that no test can run. */
static void the_bound_is_below_four_and_a_half_k(struct comm *c) {
    const struct exchange_ops *ops = exchange_named("spardl");
    (void)c;
    for (int P = 1; P <= 1024; P = P < 70 ? P + 1 : 2 * P - 3) {
        for (size_t k = (size_t)P; k < 20 * (size_t)P; k += 1 + (size_t)P / 70) {
            double words = ops->max_words(&(struct cost_case){.n = 1 << 20, .k = k, .P = P, .ranks_per_node = 1});
            assert_true(words <= 4.5 * (double)k);
            assert_true(words >= 4.0 * (double)k * (P - 1) / P);
        }
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"the_reference", the_reference},
        {"a_selector_of_varying_count", a_selector_of_varying_count},
        {"k_equal_to_n", k_equal_to_n},
        {"not_a_number", not_a_number},
        {"memory_of_the_selectors", memory_of_the_selectors},
        {"the_bound_is_below_four_and_a_half_k", the_bound_is_below_four_and_a_half_k},
    };
    return rig_test_main(argc, argv, "comm_spardl", cases, sizeof cases / sizeof cases[0]);
}
