/* comm_topkdsa.c: TopKDSA against a serial reference and against topka, bit for bit; its dense messages; its words.
 * ranks: 1 2 3 4 5 7 8 9 16 32
 * faults: 3 7
 * devices: cuda ranks 1 3 4 */
#include "tests/lib/exchange_rig.h"

#include "tests/lib/exchange_oracle.h"

enum { STEPS = 4 };
static const struct shape {
    size_t n, k;
    bool all_kinds;
} shapes[] = {{1, 1, false},     {3, 1, false},       {3, 3, false},     {7, 2, false},
              {9, 9, false},     {1009, 1, false},    {1009, 5, true},   {1009, 100, true},
              {1009, 600, true}, {1009, 1009, false}, {1000, 999, false}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static bool wanted(struct comm *c, const struct shape *shape, enum kind kind) {
    if (c->size > 9 || getenv("SPARSETRAIN_DELAY"))
        return shape->n != 1009 ? kind == WHOLE : shape->k == 100 && (kind == REAL || kind == ONE_REGION);
    return shape->all_kinds || kind == WHOLE || kind == ZEROS || kind == REAL;
}

static void open_with(struct comm *c, const char *name, const struct selector_ops *select, struct shape shape,
                      const struct wire_ops *w) {
    rig_open_with(c, exchange_named(name), select, shape.n, shape.k, &(struct exchange_setup){.wire = w});
}

/* -- the serial reference ------------------------------------------------------------------------------ */
static int owner_of(int i, int n, int P) {
    int r = 0;
    while ((long)n * (r + 1) / P <= i) r++;
    return r;
}

/* Formats that round do so at the sender and at the owner, who keep what they cut off. */
static void reference(struct oracle *o, int k, const struct wire_ops *w) {
    if (!w->rounds) {
        oracle_topka(o, k);
        return;
    }
    oracle_select(o, k);
    for (int r = 0; r < o->P; r++) {
        for (int i = 0; i < o->n; i++) {
            if (!o->sent[r].there[i]) continue;
            o->sent[r].value[i] = w->round(o->sent[r].value[i]);
            o->acc[r][i] -= o->sent[r].value[i];
        }
        oracle_add(&o->u, &o->sent[r], o->n);
    }
    for (int i = 0; i < o->n; i++) {
        float rounded = w->round(o->u.value[i]);
        if (o->u.there[i]) o->acc[owner_of(i, o->n, o->P)][i] += o->u.value[i] - rounded;
        o->u.value[i] = o->u.there[i] ? rounded : 0;
    }
}

static void agrees(const struct oracle *o) {
    size_t count = 0;
    for (int i = 0; i < o->n; i++) {
        count += o->u.there[i];
        assert_true(rig.u[i] == o->u.value[i]);
        assert_true(rig.residual[i] == o->acc[rig.comm->rank][i]);
    }
    assert_int_equal(rig.sum.global_nnz, count);
    for (size_t i = 0; i < rig.sum.sparse->nnz; i++) assert_true(o->u.there[rig.sum.sparse->idx[i]]);
    const struct oracle_vector *sent = &o->sent[rig.comm->rank];
    count = 0;
    for (int i = 0; i < o->n; i++) count += sent->there[i];
    assert_int_equal(rig.sum.delivered->nnz, count);
    for (size_t i = 0; i < count; i++) assert_true(sent->value[rig.sum.delivered->idx[i]] == rig.sum.delivered->val[i]);
}

static void several_steps(struct comm *c, struct shape shape, enum kind kind, const struct wire_ops *w) {
    static double summed[ORACLE_N];
    static struct oracle o;
    float given[ORACLE_N] = {0}, grad[ORACLE_N];
    memset(&o, 0, sizeof o);
    memset(summed, 0, sizeof summed);
    o.n = (int)shape.n;
    o.P = c->size;
    open_with(c, "topkdsa", exact(), shape, w);
    for (int step = 0; step < STEPS; step++) {
        size_t k = step % 2 == 0 ? shape.k : (shape.k + 1) / 2;
        for (int r = 0; r < c->size; r++) {
            make_gradient(kind, r, c->size, step, shape.n, grad);
            for (int i = 0; i < o.n; i++) o.acc[r][i] += grad[i];
        }
        make_gradient(kind, c->rank, c->size, step, shape.n, rig.grad);
        for (int i = 0; i < o.n; i++) given[i] += rig.grad[i];
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(k);
        if (w == wires[0]) within_bound(before, rig.reducer.exchange.ops, k);
        reference(&o, (int)k, w);
        agrees(&o);
        for (int i = 0; i < o.n; i++) summed[i] += (double)rig.u[i];
    }
    all_ranks_hold_the_same(hash_of_sum());
    if (exact_sums(kind)) conserves(given, summed);
    rig_close();
}

static void the_serial_reference(struct comm *c) {
    for (size_t w = 0; wires[w]; w++)
        for (int s = 0; s < SHAPES; s++)
            for (enum kind kind = 0; kind < KINDS; kind++)
                if (wanted(c, &shapes[s], kind)) several_steps(c, shapes[s], kind, wires[w]);
}

/* -- topka --------------------------------------------------------------------------------------------- */
static uint64_t a_run(struct comm *c, const char *name, const struct selector_ops *select, struct shape shape,
                      enum kind kind, const struct wire_ops *w) {
    uint64_t hash = 0;
    open_with(c, name, select, shape, w);
    for (int step = 0; step < STEPS; step++) {
        make_gradient(kind, c->rank, c->size, step, shape.n, rig.grad);
        rig_step(step % 2 == 0 ? shape.k : (shape.k + 1) / 2);
        uint64_t sum = hash_of_sum();
        hash = hash64(hash64(hash, &sum, sizeof sum), rig.residual, shape.n * sizeof(float));
    }
    rig_close();
    return hash;
}

static void topka_bit_for_bit(struct comm *c) {
    for (size_t w = 0; wires[w]; w++) {
        if (wires[w]->rounds) continue; /* topka rounds once, topkdsa twice */
        for (size_t s = 0; selectors[s]; s++)
            for (enum kind kind = 0; kind < KINDS; kind++) {
                const struct shape shape = {1009, 100, true}, much = {1009, 700, true};
                if (!wanted(c, &shape, kind)) continue;
                assert_true(a_run(c, "topka", selectors[s], shape, kind, wires[w]) ==
                            a_run(c, "topkdsa", selectors[s], shape, kind, wires[w]));
                if (c->size < 9)
                    assert_true(a_run(c, "topka", selectors[s], much, kind, wires[w]) ==
                                a_run(c, "topkdsa", selectors[s], much, kind, wires[w]));
            }
        for (enum kind kind = 0; kind < KINDS; kind++)
            assert_true(a_run(c, "topka", &threshold_selector, (struct shape){400, 30, true}, kind, wires[w]) ==
                        a_run(c, "topkdsa", &threshold_selector, (struct shape){400, 30, true}, kind, wires[w]));
    }
}

/* -- words --------------------------------------------------------------------------------------------- */
/* Everything is selected: dense messages, half as long as sparse ones. */
static void dense_messages_are_shorter(struct comm *c) {
    enum { N = 960 }; /* with the sizes 2 words a message, and a word a message where P does not divide N */
    double P = c->size, least = 2.0 * N * (P - 1) / P;
    for (enum kind kind = WHOLE; kind <= ZEROS; kind++) {
        open_with(c, "topkdsa", exact(), (struct shape){N, N, true}, wires[0]);
        make_gradient(kind, c->rank, c->size, 1, N, rig.grad);
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(N);
        double sent = (double)(c->counters[TRAFFIC_EXCHANGE].bytes_sent - before.bytes_sent) / 4;
        double received = (double)(c->counters[TRAFFIC_EXCHANGE].bytes_received - before.bytes_received) / 4;
        assert_true(fabs(sent - least) <= 4 * P && fabs(received - least) <= 4 * P);
        assert_int_equal(rig.sum.global_nnz, N);
        rig_close();
    }
}

/* All ranks select the same few indices, spread evenly: the lower end, 4k (P-1)/P. */
static void the_lower_end(struct comm *c) {
    enum { N = 1080, K = 72 };
    double P = c->size, least = 4.0 * K * (P - 1) / P;
    if (K % c->size != 0) return;
    open_with(c, "topkdsa", exact(), (struct shape){N, K, true}, wires[0]);
    for (int i = 0; i < N; i++) rig.grad[i] = i % (N / K) == 0 ? 5 : 1;
    struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
    rig_step(K);
    double sent = (double)(c->counters[TRAFFIC_EXCHANGE].bytes_sent - before.bytes_sent) / 4;
    assert_true(fabs(sent - least) <= 2 * P);
    struct cost cost;
    rig.reducer.exchange.ops->cost(&(struct cost_case){.n = N, .k = K, .P = c->size, .ranks_per_node = c->local_size},
                                   &cost);
    assert_true(cost.words == (2.0 * K + N) * (P - 1) / P);
    rig_close();
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"the_serial_reference", the_serial_reference},
        {"topka_bit_for_bit", topka_bit_for_bit},
        {"dense_messages_are_shorter", dense_messages_are_shorter},
        {"the_lower_end", the_lower_end},
    };
    return rig_test_main(argc, argv, "comm_topkdsa", cases, sizeof cases / sizeof cases[0]);
}
