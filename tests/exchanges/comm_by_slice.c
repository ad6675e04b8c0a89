/* comm_by_slice.c: exchanges whose selector selects slice by slice (topk/by_slice.h): conservation, the bound on words
 * though the slices are asked for more than k, overlap by layers, checkpoints.
 * ranks: 1 2 3 4 5 7 8
 * devices: cuda ranks 1 3 */
#include "tests/lib/exchange_rig.h"

#include "tests/lib/in_child.h"
#include "topk/by_slice.h"

enum { SLICES_MAX = 40, STEPS = 4 };

static const struct slicing {
    size_t n, k, count;
    struct selector_slice slice[SLICES_MAX];
    size_t groups, group[8];
} slicings[] = {
    {1, 1, 1, {{0, 1}}, 1, {0}},
    /* one each: more are asked for than k */
    {60, 3, 8, {{0, 20}, {20, 1}, {21, 1}, {22, 1}, {23, 1}, {24, 10}, {34, 6}, {40, 20}}, 3, {0, 20, 24}},
    /* slices that are groups */
    {1009, 100, 5, {{0, 10}, {10, 7}, {17, 483}, {500, 508}, {1008, 1}}, 5, {0, 10, 17, 500, 1008}},
    /* gaps; groups of several slices, of a part of one, of none */
    {1009, 90, 6, {{3, 200}, {203, 5}, {300, 400}, {750, 1}, {751, 150}, {1000, 2}}, 6, {0, 203, 290, 650, 800, 1003}},
    {1009, 1009, 2, {{0, 500}, {600, 409}}, 2, {0, 500}},
};
enum { SLICINGS = sizeof slicings / sizeof slicings[0], AS_GROUPS = 2 };

static size_t covered(const struct slicing *s) {
    size_t all = 0;
    for (size_t i = 0; i < s->count; i++) all += s->slice[i].count;
    return all;
}

/* Exchanges that send k entries, however many were selected: the others have a bound for all that are asked for. */
static bool cuts_to_k(const struct exchange_ops *ops) {
    return !ops->sends_all;
}

/* Sum over the slices of max(1, floor(k n_i / N)), n_i at most; by division, as the formula says. */
static size_t naive_asks(const struct slicing *s, size_t k) {
    size_t asks = 0, all = covered(s);
    for (size_t i = 0; i < s->count; i++) {
        size_t count = s->slice[i].count, share = k * count / all;
        asks += share < 1 ? 1 : share < count ? share : count;
    }
    return asks;
}

static bool in_a_slice(const struct slicing *s, size_t at) {
    for (size_t i = 0; i < s->count; i++)
        if (at >= s->slice[i].from && at - s->slice[i].from < s->slice[i].count) return true;
    return false;
}

/* Rows that take a selector by slices. */
static bool serves(const struct exchange_ops *ops) {
    return ops->selects && !ops->own_parts;
}

static void open_by_slice(struct comm *c, const struct exchange_ops *ops, const struct selector_ops *select,
                          const struct wire_ops *wire, const struct slicing *s, bool layers) {
    struct reducer_setup setup = {.ops = ops, .select = select, .slice = s->slice, .slices = s->count};
    setup.seed = 5;
    setup.exchange = (struct exchange_setup){
        .n = s->n, .k_max = s->k, .wire = wire, .options = rig_options("tau-prime=2,tau=2", GTOPK_CONSERVE)};
    if (layers) setup.exchange.group = s->group, setup.exchange.groups = s->groups;
    rig_open_setup(c, setup);
}

/* A gradient in slices only: what lies outside is brought to the others in another way. */
static void make_sliced(enum kind kind, int step, const struct slicing *s, float *grad) {
    make_gradient(kind, rig.comm->rank, rig.comm->size, step, s->n, grad);
    for (size_t i = 0; i < s->n; i++)
        if (!in_a_slice(s, i)) grad[i] = 0;
}

static void keeps_to_words(struct comm_counters before, size_t k) {
    const struct comm_counters *now = &rig.comm->counters[TRAFFIC_EXCHANGE];
    double most = exchange_max_words(&rig.reducer.exchange, k) + rig.sum.extra_words;
    assert_true((double)(now->bytes_sent - before.bytes_sent) / 4 <= most);
    assert_true((double)(now->bytes_received - before.bytes_received) / 4 <= most);
}

static void keeps_to_slices(const struct slicing *s) {
    for (size_t i = 0; i < s->n; i++)
        if (!in_a_slice(s, i)) assert_true(rig.u[i] == 0 && rig.residual[i] == 0);
}

/* -- every row ------------------------------------------------------------------------------------------------ */
static void several_steps(struct comm *c, const struct exchange_ops *ops, const struct selector_ops *select,
                          const struct wire_ops *wire, const struct slicing *s, bool layers, enum kind kind) {
    static double summed[RIG_N];
    static float given[RIG_N];
    memset(summed, 0, sizeof summed);
    memset(given, 0, sizeof given);
    open_by_slice(c, ops, select, wire, s, layers);
    for (int step = 0; step < STEPS; step++) {
        size_t k = step % 2 == 0 ? s->k : (s->k + 1) / 2;
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        make_sliced(kind, step, s, rig.grad);
        for (size_t i = 0; i < s->n; i++) given[i] += rig.grad[i];
        rig.reducer.selector->audit = step == 1;
        rig_step(k);
        if (select->exact_count && !wire) keeps_to_words(before, k);
        keeps_to_slices(s);
        for (size_t i = 0; i < s->n; i++) summed[i] += (double)rig.u[i];
        size_t asked = rig.reducer.selector->stats.asked;
        if (!layers) assert_int_equal(asked, naive_asks(s, k));
        assert_int_equal(rig.reducer.selector->stats.audited, step == 1);
        bool cuts = cuts_to_k(ops);
        if (select->exact_count && !layers && !ops->blind)
            assert_int_equal(rig.sum.local_nnz, cuts && k < asked ? k : asked);
        if (strncmp(ops->name, "gtopk", 5) == 0 && !layers) assert_true(rig.sum.global_nnz <= k);
        all_ranks_hold_the_same(hash_of_sum());
        sent_is_u(kind);
    }
    if (exact_sums(kind)) conserves(given, summed);
    rig_close();
}

static bool wanted(const struct comm *c, int slicing, enum kind kind) {
    if (!test_device_is_host()) return kind == WHOLE && (slicing == 1 || slicing == 3);
    return c->size < 5 ? kind != POSITIVE : kind == WHOLE || (kind == TIES && slicing == 3);
}

static void every_row(struct comm *c, bool layers) {
    for (size_t row = 0; exchanges[row]; row++)
        for (int s = 0; s < SLICINGS && serves(exchanges[row]); s++)
            for (enum kind kind = 0; kind < KINDS; kind++)
                if (wanted(c, s, kind)) several_steps(c, exchanges[row], exact(), NULL, &slicings[s], layers, kind);
}

static void every_row_keeps_the_contract(struct comm *c) {
    every_row(c, false);
}

static void so_it_does_by_layers(struct comm *c) {
    every_row(c, true);
}

static void with_every_selector(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (size_t select = 0; selectors[select] && serves(exchanges[row]); select++)
            for (int layers = 0; layers < 2; layers++)
                several_steps(c, exchanges[row], selectors[select], NULL, &slicings[3], layers, WHOLE);
}

/* A message may be as long as the slices together make it. */
static void with_every_format(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (size_t w = test_device_is_host() ? 0 : 1; wires[w] && serves(exchanges[row]); w++)
            for (int s = 1; s < SLICINGS && takes_format(wires[w]); s += 2)
                several_steps(c, exchanges[row], exact(), wires[w], &slicings[s], s == 3, WHOLE);
}

/* -- what it is equal to ---------------------------------------------------------------------------------------- */
static uint64_t hash_of_steps(size_t k, const struct slicing *s, int from, int to) {
    uint64_t hash = 0;
    for (int step = from; step < to; step++) {
        make_sliced(REAL, step, s, rig.grad);
        rig_step(k);
        hash = hash64(hash64(hash, rig.u, s->n * sizeof(float)), rig.residual, s->n * sizeof(float));
    }
    return hash;
}

static void one_slice_is_the_plain_selector(struct comm *c) {
    static const struct slicing whole = {1009, 60, 1, {{0, 1009}}, 1, {0}};
    for (size_t row = 0; exchanges[row]; row++) {
        if (!serves(exchanges[row])) continue;
        open_by_slice(c, exchanges[row], exact(), NULL, &whole, false);
        uint64_t hash = hash_of_steps(whole.k, &whole, 0, STEPS);
        rig_close();
        const struct exchange_setup extra = {.options = rig_options("tau-prime=2,tau=2", GTOPK_CONSERVE)};
        rig_open_with(c, exchanges[row], exact(), whole.n, whole.k, &extra);
        assert_true(hash_of_steps(whole.k, &whole, 0, STEPS) == hash);
        rig_close();
    }
}

/* What topka delivers is, on each rank, what the selector takes of each slice: by sorting. */
static size_t rank_in_slice(const float *acc, const struct selector_slice *slice, size_t at) {
    size_t before = 0;
    for (size_t i = slice->from; i < slice->from + slice->count; i++)
        before += fabsf(acc[i]) > fabsf(acc[at]) || (i < at && fabsf(acc[i]) == fabsf(acc[at]));
    return before;
}

static void topka_delivers_the_top_of_each_slice(struct comm *c) {
    static float acc[RIG_N];
    const struct slicing *s = &slicings[3];
    open_by_slice(c, exchange_named("topka"), exact(), NULL, s, false);
    make_sliced(REAL, 1, s, rig.grad);
    memcpy(acc, rig.grad, sizeof acc);
    rig_step(s->k);
    for (size_t i = 0; i < s->count; i++) {
        const struct selector_slice *slice = &s->slice[i];
        size_t share = s->k * slice->count / covered(s), budget = share < 1 ? 1 : share;
        for (size_t at = slice->from; at < slice->from + slice->count; at++)
            assert_true(rig.residual[at] == (rank_in_slice(acc, slice, at) < budget ? 0 : acc[at]));
    }
    rig_close();
}

/* Where each slice is a group it has the same budget, and an exchange that keeps no global k has the same result. */
static void slices_that_are_groups(struct comm *c) {
    static const char *const names[] = {"topka", "topkdsa", "gaussiank"};
    const struct slicing *s = &slicings[AS_GROUPS];
    for (size_t i = 0; i < (test_device_is_host() ? sizeof names / sizeof *names : 1); i++) /* slow on the stand-in */
        for (size_t select = 0; selectors[select]; select++) {
            open_by_slice(c, exchange_named(names[i]), selectors[select], NULL, s, false);
            uint64_t hash = hash_of_steps(s->k, s, 0, STEPS);
            size_t asked = rig.reducer.selector->stats.asked, found = rig.reducer.selector->stats.found;
            rig_close();
            open_by_slice(c, exchange_named(names[i]), selectors[select], NULL, s, true);
            assert_true(hash_of_steps(s->k, s, 0, STEPS) == hash);
            assert_int_equal(rig.reducer.selector->stats.asked, asked);
            assert_int_equal(rig.reducer.selector->stats.found, found);
            rig_close();
        }
}

/* In groups of several slices a budget is the same, or less by one. */
static void budgets_in_groups(struct comm *c) {
    for (int i = 1; i < SLICINGS; i++) {
        const struct slicing *s = &slicings[i];
        size_t cut = i == 3 ? 2 : 0; /* slices that two groups share: each part has at least one */
        open_by_slice(c, exchange_named("topka"), exact(), NULL, s, true);
        make_sliced(REAL, 1, s, rig.grad);
        rig_step(s->k);
        size_t asked = rig.reducer.selector->stats.asked, asks = naive_asks(s, s->k);
        assert_true(asked <= asks + cut && asked + s->count >= asks);
        rig_close();
    }
}

/* -- the bound ----------------------------------------------------------------------------------------------------- */
static void the_bound_knows_what_is_asked_for(struct comm *c) {
    const struct slicing *s = &slicings[1]; /* k = 3, and 8 slices */
    double others = c->size - 1;
    assert_int_equal(naive_asks(s, 3), 8);
    open_by_slice(c, exchange_named("topka"), exact(), NULL, s, false);
    assert_true(exchange_max_words(&rig.reducer.exchange, 3) == 2 * 8 * others);
    make_sliced(REAL, 1, s, rig.grad);
    struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
    rig_step(3);
    assert_true((double)(c->counters[TRAFFIC_EXCHANGE].bytes_received - before.bytes_received) == 4 * 2 * 8 * others);
    rig_close();
    for (size_t row = 0; exchanges[row]; row++) {
        const struct exchange_ops *ops = exchanges[row];
        if (!serves(ops)) continue;
        bool cuts = cuts_to_k(ops);
        struct cost_case sends = {.n = s->n, .k = cuts ? 3 : 8, .P = c->size, .ranks_per_node = c->local_size};
        open_by_slice(c, ops, exact(), NULL, s, false);
        assert_true(exchange_max_words(&rig.reducer.exchange, 3) == ops->max_words(&sends));
        rig_close();
    }
}

/* -- a NaN --------------------------------------------------------------------------------------------------------- */
static void a_nan_has_its_index_in_the_whole(struct comm *c) {
    const struct slicing *s = &slicings[3];
    for (size_t row = 0; exchanges[row] && c->size == 1; row++)
        for (int layers = 0; layers < 2 && serves(exchanges[row]); layers++) {
            open_by_slice(c, exchanges[row], exact(), NULL, s, layers);
            make_sliced(REAL, 1, s, rig.grad);
            rig.grad[1] = NAN; /* exempt */
            rig.grad[801] = NAN;
            assert_false(rig_run(s->k));
            assert_int_equal(rig.sum.bad, 801);
            rig_close();
        }
}

/* -- checkpoints --------------------------------------------------------------------------------------------------- */
enum { PIECES_MAX = 64, PIECE_BYTES = 256 };
static unsigned char kept[PIECES_MAX][PIECE_BYTES];

static size_t copy_pieces(bool load) {
    void *memory;
    size_t bytes, piece = 0;
    for (; exchange_saved(&rig.reducer.exchange, piece, &memory, &bytes); piece++) {
        assert_true(piece < PIECES_MAX && bytes <= PIECE_BYTES);
        if (bytes > 0) memcpy(load ? memory : kept[piece], load ? kept[piece] : memory, bytes);
    }
    return piece;
}

static void one_resumed_run(struct comm *c, const char *name, const struct selector_ops *select, bool layers) {
    static float residual[RIG_N];
    const struct slicing *s = &slicings[3];
    open_by_slice(c, exchange_named(name), select, NULL, s, layers);
    hash_of_steps(s->k, s, 0, STEPS);
    size_t pieces = copy_pieces(false);
    assert_int_equal(pieces, layers ? 6 + 8 : 1 + 6); /* two slices are cut by a group's edge */
    memcpy(residual, rig.residual, sizeof residual);
    uint64_t hash = hash_of_steps(s->k, s, STEPS, 3 * STEPS);
    rig_close();
    open_by_slice(c, exchange_named(name), select, NULL, s, layers);
    rig.reducer.store.ops->write(&rig.reducer.store, 0, s->n, residual);
    assert_int_equal(copy_pieces(true), pieces);
    assert_true(hash_of_steps(s->k, s, STEPS, 3 * STEPS) == hash);
    rig_close();
}

static void resumed_runs(struct comm *c) {
    for (size_t select = 0; selectors[select]; select++)
        for (int layers = 0; layers < 2; layers++) {
            one_resumed_run(c, "topka", selectors[select], layers);
            if (test_device_is_host()) one_resumed_run(c, "oktopk", selectors[select], layers);
        }
}

/* -- rows that it does not serve ----------------------------------------------------------------------------------- */
static const struct exchange_ops *refused;
static struct comm *job;

static void leave(int status) {
    _exit(status);
}

static void open_refused(void) {
    error_set_abort(leave);
    open_by_slice(job, refused, exact(), NULL, &slicings[1], false);
}

static void rows_that_select_in_parts_of_their_own(struct comm *c) {
    assert_true(exchange_named("hitopk")->own_parts && exchange_named("spardl")->own_parts);
    job = c;
    for (size_t row = 0; exchanges[row]; row++) {
        char said[1024];
        refused = exchanges[row];
        if (!refused->own_parts || !refused->selects || c->size > 1 || !test_device_is_host()) continue;
        assert_int_equal(in_child(open_refused, said, sizeof said), EXIT_SYSTEM);
        assert_non_null(strstr(said, "selects in parts of its own, not by slices"));
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"every_row_keeps_the_contract", every_row_keeps_the_contract},
        {"so_it_does_by_layers", so_it_does_by_layers},
        {"with_every_selector", with_every_selector},
        {"with_every_format", with_every_format},
        {"one_slice_is_the_plain_selector", one_slice_is_the_plain_selector},
        {"topka_delivers_the_top_of_each_slice", topka_delivers_the_top_of_each_slice},
        {"slices_that_are_groups", slices_that_are_groups},
        {"budgets_in_groups", budgets_in_groups},
        {"the_bound_knows_what_is_asked_for", the_bound_knows_what_is_asked_for},
        {"a_nan_has_its_index_in_the_whole", a_nan_has_its_index_in_the_whole},
        {"resumed_runs", resumed_runs},
        {"rows_that_select_in_parts_of_their_own", rows_that_select_in_parts_of_their_own},
    };
    return rig_test_main(argc, argv, "comm_by_slice", cases, sizeof cases / sizeof cases[0]);
}
