/* comm_overlap.c: exchanges that run while backward goes on: dense-ovlp against dense, and overlap by layers against
 * the same row run by hand on each group.
 * ranks: 1 2 3 4 6 8
 * devices: cuda sparse ranks 1 3 */
/* long: more than ten seconds at one P */
#include "tests/lib/exchange_rig.h"

/* -- dense-ovlp ------------------------------------------------------------------------------------------------- */
static const size_t bucket_bytes[] = {1, 4, 12, 52, 400, 4096, 0};
enum { BUCKETS = sizeof bucket_bytes / sizeof bucket_bytes[0] };

static void open_buckets(struct comm *c, size_t n, size_t bytes) {
    rig_open_with(c, exchange_named("dense-ovlp"), exact(), n, 1, &(struct exchange_setup){.bucket_bytes = bytes});
}

static void one_dense_case(struct comm *c, size_t n, size_t bytes, enum kind kind, enum how how) {
    static float want[RIG_N];
    static double much[RIG_N];
    rig_open(c, exchange_named("dense"), exact(), n, 1, GTOPK_CONSERVE);
    make_gradient(kind, c->rank, c->size, 3, n, rig.grad);
    for (size_t i = 0; i < n; i++) much[i] = fabs((double)rig.grad[i]);
    comm_allreduce_f64(c, much, n, COMM_SUM);
    rig_step(1);
    memcpy(want, rig.u, sizeof want);
    rig_close();
    open_buckets(c, n, bytes);
    for (int twice = 0; twice < 2; twice++) { /* nothing may be left of the step before */
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE], control = c->counters[TRAFFIC_CONTROL];
        assert_true(rig_step_with_overlap(kind, 3, 1, how));
        assert_memory_equal(&control, &c->counters[TRAFFIC_CONTROL], sizeof control);
        assert_int_equal(c->traffic, TRAFFIC_CONTROL);
        within_bound(before, rig.reducer.exchange.ops, 1);
        rig_unfold();
        for (size_t i = 0; i < n; i++)
            assert_true(fabs((double)rig.u[i] - (double)want[i]) <= (exact_sums(kind) ? 0 : 1e-6 * much[i]));
        all_ranks_hold_the_same(hash_of_sum());
        assert_true(how == RANDOMLY_READY ? rig.sum.hidden_seconds >= 0 : rig.sum.hidden_seconds == 0);
        assert_int_equal(rig.sum.global_nnz, n);
    }
    rig_close();
}

static void buckets_give_the_dense_sum(struct comm *c) {
    static const size_t lengths[] = {1, 3, 7, 1009};
    int every = test_device_is_host() ? 1 : 3;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (int b = 0; b < BUCKETS; b += every)
            for (enum how how = 0; how < HOWS; how++)
                for (enum kind kind = 0; kind < KINDS; kind++)
                    if (kind == WHOLE || kind == REAL) one_dense_case(c, lengths[l], bucket_bytes[b], kind, how);
}

/* Something was under way before run, and the call says so. (With one rank a sum may be over at once.) */
static void hidden_time_is_seen(struct comm *c) {
    open_buckets(c, 1000, 4 * 100);
    make_gradient(WHOLE, c->rank, c->size, 1, 1000, rig.grad);
    device_fill(rig.device_grad, rig.grad, 1000);
    phase_enter(&rig.phases, PHASE_COMPUTE);
    exchange_begin(&rig.reducer.exchange, rig.device_grad, 1);
    exchange_ready(&rig.reducer.exchange, 500);
    exchange_ready(&rig.reducer.exchange,
                   450); /* from a device the first call begins copies, the next one their sums */
    assert_int_equal(rig.phases.current, PHASE_COMPUTE);
    usleep(2000);
    assert_true(exchange_run(&rig.reducer.exchange, rig.device_grad, 1, &rig.sum));
    assert_int_equal(rig.phases.current, PHASE_COMPUTE);
    if (c->size > 1) assert_true(rig.sum.hidden_seconds >= 0.002);
    assert_true(rig.sum.hidden_seconds < rig.phases.seconds[PHASE_COMPUTE] + rig.phases.seconds[PHASE_COMMUNICATE] +
                                             rig.phases.seconds[PHASE_SELECT] + rig.phases.seconds[PHASE_MERGE] +
                                             rig.phases.seconds[PHASE_PACK]);
    rig_close();
}

/* One step over rig.grad of which, where it comes bit by bit, only what begins at `from` is said to be ready. */
static bool run_ready_at(size_t k, enum how how, size_t from) {
    device_fill(rig.device_grad, rig.grad, rig.n);
    if (how != WITHOUT_BEGIN) exchange_begin(&rig.reducer.exchange, rig.device_grad, k);
    if (how == RANDOMLY_READY) exchange_ready(&rig.reducer.exchange, from);
    return exchange_run(&rig.reducer.exchange, rig.device_grad, k, &rig.sum);
}

static void the_lowest_bad_entry_is_named(struct comm *c) {
    for (enum how how = 0; how < HOWS; how++) {
        open_buckets(c, 100, 4 * 10);
        for (size_t i = 0; i < 100; i++) rig.grad[i] = 1;
        rig.grad[95] = rig.grad[94] = rig.grad[33] = NAN; /* the first bucket: nothing is under way */
        assert_false(run_ready_at(1, how, 80));
        assert_int_equal(rig.sum.bad, 33);
        for (size_t i = 0; i < 100; i++) rig.grad[i] = 1;
        rig.grad[91] = rig.grad[47] = rig.grad[46] = 3e38f;
        assert_true(run_ready_at(1, how, 40) == (c->size == 1));
        if (c->size > 1) assert_int_equal(rig.sum.bad, 46);
        rig_close();
    }
}

/* What was begun before it has been summed when run returns, and is not written to any more. */
static void a_bad_bucket_leaves_no_sum_under_way(struct comm *c) {
    for (enum how how = 0; how < HOWS; how++) {
        open_buckets(c, 100, 4 * 10);
        for (size_t i = 0; i < 100; i++) rig.grad[i] = 1;
        rig.grad[15] = NAN;
        assert_false(run_ready_at(1, how, 20));
        assert_int_equal(rig.sum.bad, 15);
        device_download(rig.grad, rig.device_grad, rig.n);
        for (size_t i = 20; i < 100; i++) assert_true(rig.grad[i] == (float)c->size);
        rig_close();
    }
}

/* -- overlap by layers -------------------------------------------------------------------------------------------- */
enum { GROUPS_MAX = 8 };
static const struct split {
    size_t n, k, groups, group[GROUPS_MAX];
} splits[] = {{1, 1, 1, {0}},
              {7, 2, 3, {0, 1, 4}},
              {60, 60, 4, {0, 1, 30, 59}},
              {1009, 50, 1, {0}},
              {1009, 100, 5, {0, 10, 17, 500, 1008}},
              {1009, 3, 8, {0, 100, 200, 300, 301, 302, 700, 1000}}};
enum { SPLITS = sizeof splits / sizeof splits[0], STEPS = 4 };

static size_t group_size(const struct split *s, size_t g) {
    return (g + 1 < s->groups ? s->group[g + 1] : s->n) - s->group[g];
}

static size_t group_k(const struct split *s, size_t g, size_t k) {
    size_t share = k * group_size(s, g) / s->n;
    return share > 0 ? share : 1;
}

static const struct selector_ops *selecting; /* NULL: exact */
static const struct wire_ops *travelling;    /* NULL: coo32 */

static const struct selector_ops *selecting_by(void) {
    return selecting ? selecting : exact();
}

static void open_layers(struct comm *c, const struct exchange_ops *ops, const struct split *s) {
    const struct exchange_setup extra = {.group = s->group,
                                         .groups = s->groups,
                                         .wire = travelling,
                                         .options = rig_options("tau-prime=1,tau=2", GTOPK_CONSERVE)};
    rig_open_with(c, ops, selecting_by(), s->n, s->k, &extra);
}

/* The same row, once for each group: stores, selectors and exchanges of their own. */
static struct {
    const struct split *split;
    struct store store[GROUPS_MAX]; /* where a row has no residual, it stays as it is opened: all zero */
    struct store bare[GROUPS_MAX];
    struct selector *selector[GROUPS_MAX];
    struct exchange exchange[GROUPS_MAX];
    struct exchange_sum sum[GROUPS_MAX];
    float grad[RIG_N], u[RIG_N], residual[RIG_N], sent[RIG_N], delivered[RIG_N];
    float *device_grad; /* device, [n]: grad itself on the CPU */
    size_t local_nnz, global_nnz, asked;
    double mass_lost;
} hand;

static void hand_open(struct comm *c, const struct exchange_ops *ops, const struct split *s) {
    hand.split = s;
    hand.device_grad = device_twin(hand.grad, s->n);
    for (size_t g = 0; g < s->groups; g++) {
        struct exchange_setup setup = {.comm = c,
                                       .n = group_size(s, g),
                                       .k_max = group_k(s, g, s->k),
                                       .seed = exchange_group_seed(0, s->group[g]),
                                       .wire = travelling,
                                       .wants_sent = true,
                                       .options = rig_options("tau-prime=1,tau=2", GTOPK_CONSERVE)};
        store_open(&hand.store[g], setup.n, test_device());
        hand.selector[g] = selector_open(selecting_by(), &hand.store[g], setup.k_max, NULL);
        if (exchange_keeps(ops, &setup.options, travelling)) {
            setup.store = &hand.store[g];
        } else if (!device_is_host(test_device())) {
            store_open_bare(&hand.bare[g], setup.n, test_device());
            setup.store = &hand.bare[g];
        }
        if (ops->selects) setup.selector = hand.selector[g];
        exchange_open(&hand.exchange[g], ops, &setup);
    }
}

static void hand_close(void) {
    for (size_t g = 0; g < hand.split->groups; g++) {
        exchange_close(&hand.exchange[g]);
        selector_close(hand.selector[g]);
        store_close(&hand.store[g]);
        store_close(&hand.bare[g]);
    }
    device_twin_free(hand.device_grad, hand.grad);
}

static void unfold(const struct sparse *s, float *dense) {
    for (size_t i = 0; s && i < s->nnz; i++) dense[s->idx[i]] = s->val[i];
}

static void hand_step(struct comm *c, enum kind kind, int step, size_t k) {
    make_gradient(kind, c->rank, c->size, step, hand.split->n, hand.grad);
    device_fill(hand.device_grad, hand.grad, hand.split->n);
    memset(hand.u, 0, sizeof hand.u);
    memset(hand.sent, 0, sizeof hand.sent);
    memset(hand.delivered, 0, sizeof hand.delivered);
    hand.local_nnz = hand.global_nnz = hand.asked = 0;
    hand.mass_lost = 0;
    for (size_t g = hand.split->groups; g-- > 0;) {
        size_t from = hand.split->group[g], n = group_size(hand.split, g);
        struct exchange_sum *s = &hand.sum[g];
        assert_true(exchange_run(&hand.exchange[g], hand.device_grad + from, group_k(hand.split, g, k), s));
        if (s->dense) device_download(hand.u + from, s->dense, n);
        for (size_t i = 0; s->sparse && i < s->sparse->nnz; i++) hand.u[from + s->sparse->idx[i]] = s->sparse->val[i];
        unfold(s->sent, hand.sent + from);
        unfold(s->delivered, hand.delivered + from);
        hand.store[g].ops->read(&hand.store[g], 0, n, hand.residual + from);
        hand.local_nnz += s->local_nnz;
        hand.global_nnz += s->global_nnz;
        hand.mass_lost += s->mass_lost;
        hand.asked += hand.selector[g]->stats.asked;
    }
}

static void is_hands(const struct sparse *s, const float *by_hand) {
    float dense[RIG_N] = {0};
    assert_true(sparse_valid(s, rig.n));
    unfold(s, dense);
    assert_memory_equal(dense, by_hand, rig.n * sizeof(float));
}

static void agrees_with_hand(const struct exchange_ops *ops) {
    rig_unfold();
    assert_memory_equal(rig.u, hand.u, rig.n * sizeof(float));
    assert_memory_equal(rig.residual, hand.residual, rig.n * sizeof(float));
    assert_int_equal(rig.sum.local_nnz, hand.local_nnz);
    assert_int_equal(rig.sum.global_nnz, hand.global_nnz);
    assert_true(rig.sum.mass_lost == hand.mass_lost);
    assert_true((rig.sum.sent != NULL) == (hand.sum[0].sent != NULL));
    if (ops->selects) assert_int_equal(rig.reducer.selector->stats.asked, hand.asked);
    if (!rig.sum.sent) return;
    is_hands(rig.sum.sent, hand.sent);
    is_hands(rig.sum.delivered, hand.delivered);
}

static void one_layers_case(struct comm *c, const struct exchange_ops *ops, const struct split *s, enum kind kind,
                            enum how how) {
    static double summed[RIG_N];
    static float given[RIG_N], grad[RIG_N];
    memset(summed, 0, sizeof summed);
    memset(given, 0, sizeof given);
    open_layers(c, ops, s);
    hand_open(c, ops, s);
    for (int step = 0; step < STEPS; step++) {
        size_t k = step % 2 == 0 ? s->k : (s->k + 1) / 2;
        hand_step(c, kind, step, k);
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE], control = c->counters[TRAFFIC_CONTROL];
        assert_true(rig_step_with_overlap(kind, step, k, how));
        assert_memory_equal(&control, &c->counters[TRAFFIC_CONTROL], sizeof control);
        assert_int_equal(c->traffic, TRAFFIC_CONTROL);
        assert_int_equal(rig.phases.current, PHASE_OTHER);
        agrees_with_hand(ops);
        if (!selecting && !travelling)
            within_words(before, exchange_max_words(&rig.reducer.exchange, k) + rig.sum.extra_words);
        if (!ops->drifts) all_ranks_hold_the_same(hash_of_sum());
        make_gradient(kind, c->rank, c->size, step, s->n, grad);
        for (size_t i = 0; i < s->n; i++) {
            given[i] += grad[i];
            summed[i] += (double)rig.u[i];
        }
    }
    if (ops->conserves && ops->rounds) nearly_conserves(given, summed, 1e-4);
    if (ops->conserves && !ops->rounds && exact_sums(kind)) conserves(given, summed);
    hand_close();
    rig_close();
}

/* All kinds with one of the splits, which has been begun or not; with the others whole numbers, zeros and real ones. */
static bool wanted(int s, enum how how, enum kind kind) {
    if (!test_device_is_host()) return (kind == REAL && s == 4) || (kind == WHOLE && s == 1);
    if (how != RANDOMLY_READY) return kind == REAL && s == 4;
    return s == 4 || kind == WHOLE || kind == ZEROS || kind == REAL;
}

static void groups_give_what_the_row_gives(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (int s = 0; s < SPLITS; s++)
            for (enum how how = 0; how < HOWS; how++)
                for (enum kind kind = 0; kind < KINDS; kind++)
                    if (wanted(s, how, kind)) one_layers_case(c, exchanges[row], &splits[s], kind, how);
}

static void with_other_selectors_and_formats(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++) {
        /* On the stand-in one row that asks its selector once a step and one that asks it for each block. */
        bool all = !test_device_is_emulated() || exchanges[row] == exchange_named("topka") ||
                   exchanges[row] == exchange_named("spardl");
        for (size_t s = 0; all && exchanges[row]->selects && selectors[s]; s++) {
            selecting = selectors[s];
            one_layers_case(c, exchanges[row], &splits[4], WHOLE, RANDOMLY_READY);
        }
        selecting = NULL;
        for (size_t w = 1; wires[w]; w++) {
            if (!exchange_takes(exchanges[row], wires[w]) || !takes_format(wires[w])) continue;
            travelling = wires[w];
            one_layers_case(c, exchanges[row], &splits[4], REAL, RANDOMLY_READY);
            if (!test_device_is_emulated()) one_layers_case(c, exchanges[row], &splits[5], WHOLE, RANDOMLY_READY);
        }
        travelling = NULL;
    }
}

/* MPI that serves one thread only: no begin, the same results. */
static void without_a_second_thread(struct comm *c) {
    bool any_thread = c->any_thread;
    c->any_thread = false;
    for (size_t row = 0; exchanges[row]; row++) {
        one_layers_case(c, exchanges[row], &splits[4], WHOLE, RANDOMLY_READY);
        open_layers(c, exchanges[row], &splits[4]);
        assert_null(rig.reducer.exchange.ops->begin);
        rig_close();
    }
    c->any_thread = any_thread;
    if (!any_thread) return;
    open_layers(c, exchange_named("topka"), &splits[4]);
    assert_non_null(rig.reducer.exchange.ops->begin);
    assert_string_equal(rig.reducer.exchange.ops->name, "topka by layers");
    rig_close();
}

static uint64_t hash_of_a_run(struct comm *c, const struct exchange_ops *ops, enum how how) {
    uint64_t hash = 0;
    open_layers(c, ops, &splits[4]);
    for (int step = 0; step < 6; step++) {
        assert_true(rig_step_with_overlap(REAL, step, step % 2 ? 50 : 20, how));
        rig_unfold();
        uint64_t sum = hash_of_sum();
        hash = hash64(hash64(hash, &sum, sizeof sum), rig.residual, rig.n * sizeof(float));
    }
    rig_close();
    return hash;
}

static void two_runs_give_the_same_bits(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++) {
        uint64_t hash = hash_of_a_run(c, exchanges[row], RANDOMLY_READY);
        assert_true(hash_of_a_run(c, exchanges[row], RANDOMLY_READY) == hash);
        assert_true(hash_of_a_run(c, exchanges[row], WITHOUT_BEGIN) == hash);
    }
}

/* Over several steps the thread gets to work before run is called; what it does is in phases of its own, and those of
 * the step are still no more than the time that passed. */
static void hidden_exchange_is_seen(struct comm *c) {
    struct phases hidden;
    double seen = 0;
    if (!c->any_thread) return;
    phases_reset(&hidden);
    open_layers(c, exchange_named("topka"), &splits[4]);
    rig.reducer.exchange.setup.hidden_phases = &hidden;
    for (int step = 0; step < 20; step++) {
        make_gradient(REAL, c->rank, c->size, step, rig.n, rig.grad);
        device_fill(rig.device_grad, rig.grad, rig.n);
        double begin = clock_now();
        phases_restart(&rig.phases);
        phase_enter(&rig.phases, PHASE_COMPUTE);
        exchange_begin(&rig.reducer.exchange, rig.device_grad, 100);
        exchange_ready(&rig.reducer.exchange, 500);
        usleep(10000);
        double in_run = clock_now();
        assert_true(exchange_run(&rig.reducer.exchange, rig.device_grad, 100, &rig.sum));
        assert_int_equal(rig.phases.current, PHASE_COMPUTE);
        phase_enter(&rig.phases, PHASE_OTHER);
        double end = clock_now(), charged = 0;
        for (int p = 0; p < PHASE_COUNT; p++) charged += rig.phases.seconds[p];
        assert_true(charged <= end - begin + 1e-9);
        assert_true(rig.sum.hidden_seconds >= 0 && rig.sum.hidden_seconds <= in_run - begin + (end - in_run));
        seen += rig.sum.hidden_seconds;
    }
    assert_true(seen > 0);
    assert_true(hidden.seconds[PHASE_SELECT] > 0 && hidden.seconds[PHASE_COMMUNICATE] > 0);
    rig_close();
}

/* Every rank has it, so that none waits for another. */
static void a_bad_entry_is_named(struct comm *c) {
    for (enum how how = 0; how < HOWS; how++) {
        open_layers(c, exchange_named("topka"), &splits[4]);
        make_gradient(WHOLE, c->rank, c->size, 1, rig.n, rig.grad);
        rig.grad[600] = rig.grad[555] = INFINITY;
        device_fill(rig.device_grad, rig.grad, rig.n);
        if (how != WITHOUT_BEGIN) exchange_begin(&rig.reducer.exchange, rig.device_grad, 100);
        if (how == RANDOMLY_READY) exchange_ready(&rig.reducer.exchange, 400);
        if (how == RANDOMLY_READY) exchange_ready(&rig.reducer.exchange, 0);
        assert_false(exchange_run(&rig.reducer.exchange, rig.device_grad, 100, &rig.sum));
        assert_int_equal(rig.sum.bad, 555);
        rig_close();
    }
}

/* Audits reach the selectors of the groups and come back. */
static void audits_pass_through(struct comm *c) {
    open_layers(c, exchange_named("topka"), &splits[4]);
    rig.reducer.selector->audit = true;
    assert_true(rig_step_with_overlap(WHOLE, 1, 100, RANDOMLY_READY));
    assert_true(rig.reducer.selector->stats.audited);
    assert_true(rig.reducer.selector->stats.exact_passes >= rig.sum.local_nnz);
    assert_int_equal(rig.reducer.selector->stats.found, rig.sum.local_nnz);
    assert_true(rig.reducer.selector->stats.exact == rig.reducer.selector->stats.threshold ||
                rig.reducer.selector->stats.threshold == 0);
    rig_close();
}

/* -- what a checkpoint holds --------------------------------------------------------------------------------------- */
static void keeper_open(struct exchange *x) {
    x->state = mem_zalloc(x->setup.n, 1, "the state of a row");
}
static void keeper_close(struct exchange *x) {
    mem_free(x->state);
}
static bool keeper_saved(struct exchange *x, size_t piece, void **memory, size_t *bytes) {
    return exchange_saved_block(x, x->state, x->setup.n, piece, memory, bytes);
}
static void remembers_open(struct selector *s) {
    s->state = mem_zalloc(3, 1, "the state of a selector");
}
static void remembers_close(struct selector *s) {
    mem_free(s->state);
}
static bool remembers_saved(struct selector *s, size_t piece, void **memory, size_t *bytes) {
    return selector_saved_block(s->state, 3, piece, memory, bytes);
}
static double no_words(const struct cost_case *c) {
    (void)c;
    return 0;
}

static void everything_is_saved(struct comm *c) {
    static const struct selector_ops remembers = {
        .name = "remembers", .open = remembers_open, .close = remembers_close, .saved = remembers_saved};
    static const struct exchange_ops keeper = {.name = "keeper",
                                               .sparse = true,
                                               .selects = true,
                                               .open = keeper_open,
                                               .close = keeper_close,
                                               .saved = keeper_saved,
                                               .max_words = no_words};
    const struct split *s = &splits[4];
    struct store store;
    struct exchange x;
    void *memory;
    size_t bytes;
    store_open(&store, s->n, test_device());
    struct selector *selector = selector_open(&remembers, &store, s->k, NULL);
    struct exchange_setup setup = {.comm = c, .n = s->n, .k_max = s->k, .store = &store, .selector = selector};
    exchange_open(&x, &keeper, &setup);
    assert_true(exchange_saved(&x, 0, &memory, &bytes) && memory == x.state && bytes == s->n);
    assert_true(exchange_saved(&x, 1, &memory, &bytes) && memory == selector->state && bytes == 3);
    assert_false(exchange_saved(&x, 2, &memory, &bytes));
    exchange_close(&x);
    setup.group = s->group;
    setup.groups = s->groups;
    exchange_open_layers(&x, &keeper, &setup);
    size_t pieces = 0, own = 0, of_selectors = 0;
    for (; exchange_saved(&x, pieces, &memory, &bytes); pieces++) {
        for (size_t i = 0; i < bytes; i++) assert_int_equal(((char *)memory)[i], 0);
        memset(memory, 1, bytes); /* so that a piece given twice would be seen */
        *(pieces % 2 == 0 ? &own : &of_selectors) += bytes;
    }
    assert_int_equal(pieces, 2 * s->groups);
    assert_int_equal(own, s->n);
    assert_int_equal(of_selectors, 3 * s->groups);
    exchange_close(&x);
    selector_close(selector);
    store_close(&store);
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"buckets_give_the_dense_sum", buckets_give_the_dense_sum},
        {"hidden_time_is_seen", hidden_time_is_seen},
        {"the_lowest_bad_entry_is_named", the_lowest_bad_entry_is_named},
        {"a_bad_bucket_leaves_no_sum_under_way", a_bad_bucket_leaves_no_sum_under_way},
        {"groups_give_what_the_row_gives", groups_give_what_the_row_gives},
        {"with_other_selectors_and_formats", with_other_selectors_and_formats},
        {"without_a_second_thread", without_a_second_thread},
        {"two_runs_give_the_same_bits", two_runs_give_the_same_bits},
        {"hidden_exchange_is_seen", hidden_exchange_is_seen},
        {"a_bad_entry_is_named", a_bad_entry_is_named},
        {"audits_pass_through", audits_pass_through},
        {"everything_is_saved", everything_is_saved},
    };
    return rig_test_main(argc, argv, "comm_overlap", cases, sizeof cases / sizeof cases[0]);
}
