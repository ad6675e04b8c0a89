/* comm_state.c: what exchanges and selectors read back from a checkpoint that somebody has changed: every word of every
 * piece (exchange_saved) of every row, set to values that no run leaves, on one rank and on all. Either exchange_check
 * refuses it, on all ranks alike, or the run goes on and ends: it does not hang, and no rank dies.
 * ranks: 1 2 3 4 */
#include "tests/lib/exchange_rig.h"

#include "topk/by_slice.h"

enum { N = 300, K = 30, STEPS = 5, PIECES_MAX = 32, PIECE_BYTES = 256 };

static const size_t groups[] = {0, 100, 220};
static const struct selector_slice slices[] = {{0, 60}, {60, 5}, {100, 150}, {250, 50}};

enum way { PLAIN, BY_LAYERS, BY_SLICE };

/* What a good checkpoint holds. */
static struct {
    size_t pieces, bytes[PIECES_MAX];
    unsigned char piece[PIECES_MAX][PIECE_BYTES];
    float residual[N];
} kept;

static const struct selector_ops *selector_named(const char *name) {
    for (size_t i = 0; selectors[i]; i++)
        if (strcmp(selectors[i]->name, name) == 0) return selectors[i];
    fail_msg("no selector \"%s\"", name);
    return NULL;
}

static void open_row(struct comm *c, const struct exchange_ops *ops, const struct selector_ops *select, enum way way,
                     enum reuse_rule rule) {
    struct reducer_setup setup = {.ops = ops, .select = select};
    char text[64];
    snprintf(text, sizeof text, "tau-prime=2,tau=2,oktopk-thresholds=%s", reuse_rule_names[rule]);
    setup.seed = 5;
    setup.exchange = (struct exchange_setup){.n = N, .k_max = K, .options = rig_options(text, GTOPK_CONSERVE)};
    if (way == BY_SLICE) setup.slice = slices, setup.slices = 4;
    if (way == BY_LAYERS) setup.exchange.group = groups, setup.exchange.groups = 3;
    rig_open_setup(c, setup);
}

static bool good_state(struct err *e) {
    *e = (struct err){0};
    return exchange_check(&rig.reducer.exchange, e);
}

static void good_steps(int from, int to) {
    for (int step = from; step < to; step++) {
        make_gradient(REAL, rig.comm->rank, rig.comm->size, step, N, rig.grad);
        rig_step(step % 3 == 1 ? K / 2 : K);
    }
}

static void keep(void) {
    void *memory;
    kept.pieces = 0;
    for (size_t i = 0; exchange_saved(&rig.reducer.exchange, i, &memory, &kept.bytes[i]); i++) {
        assert_true(i + 1 < PIECES_MAX && kept.bytes[i] <= PIECE_BYTES);
        if (kept.bytes[i] > 0) memcpy(kept.piece[i], memory, kept.bytes[i]);
        kept.pieces++;
    }
    memcpy(kept.residual, rig.residual, sizeof kept.residual);
}

/* With one piece in place of its own. */
static void put_back(size_t piece, const unsigned char *changed) {
    void *memory;
    size_t bytes;
    for (size_t i = 0; exchange_saved(&rig.reducer.exchange, i, &memory, &bytes); i++)
        if (bytes > 0) memcpy(memory, i == piece ? changed : kept.piece[i], bytes);
    if (rig.reducer.keeps) rig.reducer.store.ops->write(&rig.reducer.store, 0, N, kept.residual);
}

/* The i-th change of the word at `at`; false: there are no more. */
static bool change(unsigned char *piece, size_t bytes, size_t at, int i) {
    static const uint32_t values[] = {0,           1,           0x7f,        0x7fc00000u, 0x7f800000u,
                                      0xbf800000u, 0x7f7fffffu, 0xffffffffu, 0x80000000u, N + 1};
    enum { VALUES = sizeof values / sizeof *values };
    uint32_t word, next = 0;
    memcpy(&word, piece + at, sizeof word);
    if (at + 8 <= bytes) memcpy(&next, piece + at + 4, sizeof next);
    const uint32_t near[] = {word + 1, word - 1, ~word, next};
    if (i >= VALUES + 4) return false;
    word = i < VALUES ? values[i] : near[i - VALUES];
    memcpy(piece + at, &word, sizeof word);
    if (i == VALUES + 3 && at + 8 <= bytes) memcpy(piece + at + 4, kept.piece[0], 4); /* two at once */
    return true;
}

/* Of a row that has state beside its selector's, that is gone through once: they do not know of each other. */
static bool skipped(const struct exchange_ops *ops, size_t piece, const struct selector_ops *select) {
    return ops->selects && ops->saved && !ops->own_parts && piece == 0 && strcmp(select->name, "reuse") != 0;
}

/* What ranks share and is changed on one of them alone is refused; thresholds of selectors are each rank's own. */
static bool shared(size_t piece) {
    const struct exchange *x = &rig.reducer.exchange;
    bool of_selectors = x->by_layers || (x->ops->selects && x->ops->own_parts);
    return rig.comm->size > 1 && piece == 0 && x->ops->saved && x->ops->check && !of_selectors;
}

static void one_change(size_t piece, const unsigned char *changed, bool everywhere) {
    struct err e;
    struct comm *c = rig.comm;
    bool mine = everywhere || c->rank == c->size - 1;
    put_back(piece, mine ? changed : kept.piece[piece]);
    bool good = good_state(&e);
    if (!good && (!e.text[0] || strchr(e.text, '\n'))) fail_msg("%s says: %s", rig.reducer.exchange.ops->name, e.text);
    uint64_t same = !mine || memcmp(changed, kept.piece[piece], kept.bytes[piece]) == 0;
    comm_allreduce_u64(c, &same, 1, COMM_MIN);
    if (same && !good) fail_msg("%s: a good state is refused: %s", rig.reducer.exchange.ops->name, e.text);
    if (!same && good && !everywhere && shared(piece)) fail_msg("%s: ranks differ", rig.reducer.exchange.ops->name);
    if (good) good_steps(STEPS, STEPS + 2);
}

static void changes_of_a_piece(size_t piece) {
    unsigned char changed[PIECE_BYTES];
    for (size_t at = 0; at + 4 <= kept.bytes[piece]; at += 4)
        for (int i = 0;; i++) {
            memcpy(changed, kept.piece[piece], kept.bytes[piece]);
            if (!change(changed, kept.bytes[piece], at, i)) break;
            one_change(piece, changed, true);
            if (rig.comm->size > 1) one_change(piece, changed, false);
        }
}

static void row_with(struct comm *c, const struct exchange_ops *ops, const struct selector_ops *select, enum way way,
                     enum reuse_rule rule) {
    struct err e;
    open_row(c, ops, select, way, rule);
    if (!good_state(&e)) fail_msg("%s: a new one is refused: %s", ops->name, e.text);
    for (int step = 0; step < STEPS; step++) {
        good_steps(step, step + 1);
        if (!good_state(&e)) fail_msg("%s, %s: step %d is refused: %s", ops->name, select->name, step, e.text);
    }
    keep();
    for (size_t piece = 0; piece < kept.pieces; piece++)
        if (!skipped(ops, piece, select)) changes_of_a_piece(piece);
    rig_close();
}

static void every_row(struct comm *c) {
    for (size_t row = 0; exchanges[row]; row++)
        for (size_t i = 0; selectors[i] && (i == 0 || exchanges[row]->selects); i++)
            row_with(c, exchanges[row], selectors[i], PLAIN, REUSE_GUARDED);
}

static void set_ranks_per_node(struct comm *c, int ranks) {
    struct err e = {0};
    if (!comm_set_ranks_per_node(c, ranks, &e)) fail_msg("%s", e.text);
}

static void with_the_papers_thresholds(struct comm *c) {
    for (enum reuse_rule rule = REUSE_PAPER; rule <= REUSE_CODE_VGG; rule++) {
        row_with(c, exchange_named("topka"), selector_named("reuse"), PLAIN, rule);
        row_with(c, exchange_named("oktopk"), selector_named("reuse"), PLAIN, rule);
    }
}

/* Parts of a row and of a selector are checked one by one: some rows are enough. */
static void by_layers(struct comm *c) {
    static const char *const rows[] = {"topka", "oktopk", "spardl", "hitopk", "micro", "randomk"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        row_with(c, exchange_named(rows[i]), selector_named("reuse"), BY_LAYERS, REUSE_GUARDED);
}

static void by_slice(struct comm *c) {
    row_with(c, exchange_named("topka"), selector_named("reuse"), BY_SLICE, REUSE_GUARDED);
    row_with(c, exchange_named("oktopk"), selector_named("sidco"), BY_SLICE, REUSE_GUARDED);
}

static void between_nodes(struct comm *c) {
    set_ranks_per_node(c, c->size % 2 ? 1 : c->size / 2);
    for (size_t i = 0; selectors[i]; i++) row_with(c, exchange_named("hitopk"), selectors[i], PLAIN, REUSE_GUARDED);
    set_ranks_per_node(c, c->size);
}

/* -- single values ------------------------------------------------------------------------------------------------- */
/* Where they lie: see struct memory of topk/selectors/reuse.c and topk/selectors/sidco.c, struct oktopk_saved, struct
 * turns of micro.c, struct drawn of randomk.c; of powersgd.c steps, then directions. */
struct bad_value {
    const char *row, *select;
    size_t piece, at; /* a byte of it */
    uint64_t value;
    size_t bytes; /* of the value */
};

static const struct bad_value bad_values[] = {
    {"topka", "reuse", 1, 0, K + 1, 8},
    {"topka", "reuse", 1, 8, 0, 4}, /* a threshold for k, and none */
    {"topka", "reuse", 1, 8, 0x7f800000u, 4},
    {"topka", "reuse", 1, 12, 23, 4},
    {"topka", "reuse", 1, 16, 1u << 23, 8},
    {"topka", "reuse", 1, 24, 4, 8},
    {"topka", "sidco", 1, 0, ~(uint64_t)0, 8},
    {"topka", "sidco", 1, 0, 0x7ff0000000000000u, 8},
    {"topka", "sidco", 1, 8, 5, 4},
    {"topka", "sidco", 1, 12, 0, 4},
    {"topka", "sidco", 1, 12, 33, 4},
    {"topka", "mstopk", 1, 0, ~(uint64_t)0, 8},
    {"topka", "dgc", 1, 0, (uint64_t)1 << 60, 8},
    {"spardl", "sidco", 0, 12, 0, 4},
    {"hitopk", "sidco", 0, 12, 0, 4},
    {"micro", "exact", 0, 0, ~(uint64_t)0, 8},
    {"micro", "exact", 0, 8, 0x7fc00000u, 4},
    {"micro", "exact", 0, 8, 0xbf800000u, 4},
    {"randomk", "exact", 0, 0, ~(uint64_t)0, 8},
    {"randomk", "exact", 0, 0, (1ull << 53) + 1, 8},
    {"powersgd", "exact", 0, 0, (1ull << 53) + 1, 8},
    {"powersgd", "exact", 1, 0, 0x7fc00000u, 4},
    {"powersgd", "exact", 1, 4, 0xff800000u, 4},
    {"oktopk", "exact", 0, 0, ~(uint64_t)0, 8},
    {"oktopk", "exact", 0, 8, K + 1, 8},
    {"oktopk", "exact", 0, 8, 0, 8},
    {"oktopk", "exact", 0, 16, 3, 8},
    {"oktopk", "exact", 0, 24, 0x7f800000u, 4},
    {"oktopk", "exact", 0, 28, 255, 4},
    {"oktopk", "exact", 0, 32, 1u << 30, 8},
    {"oktopk", "exact", 0, 40, 2, 8},
    {"oktopk", "exact", 0, 48, 1, 8},
    {"oktopk", "exact", 0, 56, N + 1, 8},
};

static void values_that_no_run_leaves(struct comm *c) {
    for (size_t i = 0; i < sizeof bad_values / sizeof *bad_values; i++) {
        const struct bad_value *b = &bad_values[i];
        unsigned char changed[PIECE_BYTES];
        struct err e;
        open_row(c, exchange_named(b->row), selector_named(b->select), PLAIN, REUSE_GUARDED);
        good_steps(0, STEPS);
        keep();
        assert_true(b->at + b->bytes <= kept.bytes[b->piece]);
        memcpy(changed, kept.piece[b->piece], kept.bytes[b->piece]);
        memcpy(changed + b->at, &b->value, b->bytes);
        put_back(b->piece, changed);
        if (good_state(&e)) fail_msg("%s, %s: value %zu of the list is taken", b->row, b->select, i);
        rig_close();
    }
}

/* What decides about messages may be possible, and yet not the same on two ranks. */
static void ranks_that_disagree(struct comm *c) {
    struct err e;
    unsigned char changed[PIECE_BYTES];
    static const char *const rows[] = {"oktopk", "micro", "randomk", "powersgd"};
    for (size_t row = 0; row < sizeof rows / sizeof *rows && c->size > 1; row++) {
        open_row(c, exchange_named(rows[row]), exact(), PLAIN, REUSE_GUARDED);
        good_steps(0, STEPS);
        keep();
        memcpy(changed, kept.piece[0], kept.bytes[0]);
        changed[0] ^= 1; /* the number of steps */
        put_back(0, c->rank == 1 ? changed : kept.piece[0]);
        assert_false(good_state(&e));
        assert_non_null(strstr(e.text, "rank 1 has another state"));
        put_back(0, changed);
        assert_true(good_state(&e));
        rig_close();
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"every_row", every_row},
        {"with_the_papers_thresholds", with_the_papers_thresholds},
        {"by_layers", by_layers},
        {"by_slice", by_slice},
        {"between_nodes", between_nodes},
        {"values_that_no_run_leaves", values_that_no_run_leaves},
        {"ranks_that_disagree", ranks_that_disagree},
    };
    return rig_test_main(argc, argv, "comm_state", cases, sizeof cases / sizeof cases[0]);
}
