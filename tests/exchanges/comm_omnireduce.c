/* comm_omnireduce.c: blocks of the largest norm against a serial reference over full vectors, for several lengths of
 * blocks; choosing among numbers that are close; messages that are none.
 * ranks: 1 2 3 4 5 7 8 9 16 32
 * devices: cuda sparse ranks 1 3 4 */
#include "tests/lib/exchange_rig.h"

#include "comm/parts/blocks.h"

enum { P_MAX = 32, STEPS = 5 };

static const struct shape {
    size_t n, k;
    bool all_kinds;
} shapes[] = {{1, 1, false},   {3, 3, false},    {255, 9, false},    {256, 1, false},   {257, 257, false},
              {512, 2, false}, {RIG_N, 5, true}, {RIG_N, 300, true}, {RIG_N, 1, false}, {RIG_N, RIG_N, false}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };
static const int lengths[] = {256, 1, 7, 64, 5000};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void open_blocks(struct comm *c, size_t n, size_t k, int block) {
    char text[64];
    snprintf(text, sizeof text, "omnireduce-block=%d", block);
    const struct exchange_setup extra = {.options = rig_options(text, GTOPK_CONSERVE)};
    rig_open_with(c, exchange_named("omnireduce"), NULL, n, k, &extra);
}

/* -- the reference -------------------------------------------------------------------------------------------- */
static struct reference {
    int n, P, block;
    float acc[P_MAX][RIG_N]; /* residual, plus the gradient within a step */
    bool sent[P_MAX][RIG_N]; /* entries of the blocks that a rank chooses */
} ref;

static int blocks_in_all(void) {
    return (ref.n + ref.block - 1) / ref.block;
}

static double norm_of(int r, int b) {
    double sum = 0;
    for (int i = b * ref.block; i < ref.n && i < (b + 1) * ref.block; i++)
        sum += (double)ref.acc[r][i] * (double)ref.acc[r][i];
    return sum;
}

/* One block after the other, the largest of those that are left, the lower one of equals. Returns the entries. */
static int reference_choose(int r, int k) {
    static bool taken[RIG_N];
    int wanted = (k + ref.block - 1) / ref.block, entries = 0;
    memset(taken, 0, sizeof taken);
    memset(ref.sent[r], 0, sizeof ref.sent[r]);
    for (; wanted > 0; wanted--) {
        int best = -1;
        double largest = -1;
        for (int b = 0; b < blocks_in_all(); b++) {
            double norm = taken[b] ? -1 : norm_of(r, b);
            if (norm > largest) best = b, largest = norm;
        }
        if (best < 0) break; /* all are taken */
        taken[best] = true;
        for (int i = best * ref.block; i < ref.n && i < (best + 1) * ref.block; i++, entries++) ref.sent[r][i] = true;
    }
    return entries;
}

/* -- against it ------------------------------------------------------------------------------------------------- */
static void agrees(int entries) {
    size_t count = 0, own = 0;
    for (int i = 0; i < ref.n; i++) {
        float sum = -0.0f;
        bool there = false, mine = ref.sent[rig.comm->rank][i];
        for (int r = 0; r < ref.P; r++) {
            if (!ref.sent[r][i]) continue;
            sum += ref.acc[r][i]; /* in rank order: the same bits */
            there = true;
        }
        assert_true(rig.u[i] == (there ? sum : 0));
        if (there) assert_true(count < rig.sum.sparse->nnz && rig.sum.sparse->idx[count++] == (uint32_t)i);
        if (mine) assert_true(rig.sum.sent->idx[own] == (uint32_t)i);
        if (mine) assert_true(rig.sum.delivered->val[own++] == ref.acc[rig.comm->rank][i]);
        for (int r = 0; r < ref.P; r++)
            if (ref.sent[r][i]) ref.acc[r][i] = 0;
        assert_true(rig.residual[i] == ref.acc[rig.comm->rank][i]);
    }
    assert_int_equal(rig.sum.global_nnz, count);
    assert_int_equal(rig.sum.local_nnz, entries);
    assert_int_equal(rig.sum.sent->nnz, entries);
}

static void several_steps(struct comm *c, struct shape shape, enum kind kind, int block) {
    static double summed[RIG_N];
    static float given[RIG_N], grad[RIG_N];
    memset(&ref, 0, sizeof ref);
    memset(summed, 0, sizeof summed);
    memset(given, 0, sizeof given);
    ref = (struct reference){.n = (int)shape.n, .P = c->size, .block = block};
    open_blocks(c, shape.n, shape.k, block);
    for (int step = 0; step < STEPS; step++) {
        size_t k = step % 4 < 2 ? shape.k : (shape.k + 1) / 2; /* the density changes during a run */
        int entries = 0;
        for (int r = 0; r < c->size; r++) {
            make_gradient(kind, r, c->size, step, shape.n, grad);
            for (int i = 0; i < ref.n; i++) ref.acc[r][i] += grad[i];
            int chosen = reference_choose(r, (int)k);
            if (r == c->rank) entries = chosen;
        }
        make_gradient(kind, c->rank, c->size, step, shape.n, rig.grad);
        for (int i = 0; i < ref.n; i++) given[i] += rig.grad[i];
        struct comm_counters before = c->counters[TRAFFIC_EXCHANGE];
        rig_step(k);
        within_bound(before, rig.reducer.exchange.ops, k);
        assert_true(rig.sum.extra_words == 0);
        agrees(entries);
        sent_is_u(kind);
        all_ranks_hold_the_same(hash_of_sum());
        for (int i = 0; i < ref.n; i++) summed[i] += (double)rig.u[i];
    }
    if (exact_sums(kind)) conserves(given, summed);
    rig_close();
}

/* Slow: fewer cases. */
static bool wanted(struct comm *c, struct shape shape, enum kind kind, int block) {
    bool few = c->size > 9 || (!test_device_is_host() && c->size > 1) || block == 1;
    if (few) return kind == (shape.all_kinds ? WHOLE : REAL) && (block == 256 || shape.k == 300);
    return (shape.all_kinds && block >= 64) || kind == WHOLE || kind == ZEROS || kind == REAL;
}

static void the_reference(struct comm *c) {
    for (int l = 0; l < LENGTHS; l++)
        for (int s = 0; s < SHAPES; s++)
            for (enum kind kind = 0; kind < KINDS; kind++)
                if (wanted(c, shapes[s], kind, lengths[l])) several_steps(c, shapes[s], kind, lengths[l]);
}

/* Where it is, in a block that is chosen or not, and of two the lower one. All ranks fail here, none waits. */
static void not_a_number(struct comm *c) {
    enum { N = 97 };
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    for (int at = 0; at < N; at++) {
        int lowest = (at + 31 * c->rank) % N;
        open_blocks(c, N, 10, 8);
        make_gradient(REAL, c->rank, c->size, 1, N, rig.grad);
        rig.grad[lowest] = wrong[at % 3];
        rig.grad[lowest + (N - lowest) / 2] = wrong[(at + 1) % 3];
        assert_false(rig_run(10));
        assert_int_equal(rig.sum.bad, lowest);
        rig_close();
    }
}

/* -- parts, without other ranks ----------------------------------------------------------------------------------- */
/* Numbers that differ in the last bits alone, in the first alone, not at all: against taking the largest one by one. */
static void the_largest_of_close_numbers(struct comm *c) {
    enum { N = 60 };
    static const double values[] = {0, 5e-324, 1, 1 + 0x1p-52, 1 + 0x1p-31, 1 + 0x1p-20, 2, 1e300};
    double square[N];
    uint32_t keys[N], number[N];
    (void)c;
    for (uint64_t trial = 0; trial < 200; trial++) {
        struct rng r = rng_open(5, RNG_TEST, trial);
        uint32_t different = 1 + rng_below(&r, sizeof values / sizeof *values);
        for (int i = 0; i < N; i++) square[i] = values[rng_below(&r, different)];
        for (size_t chosen = 1; chosen <= N; chosen++) {
            bool taken[N] = {false};
            size_t at = 0;
            for (size_t j = 0; j < chosen; j++) {
                int best = -1;
                for (int i = 0; i < N; i++)
                    if (!taken[i] && (best < 0 || square[i] > square[best])) best = i;
                taken[best] = true;
            }
            blocks_largest(square, N, chosen, keys, number);
            for (uint32_t i = 0; i < N; i++)
                if (taken[i]) assert_true(number[at++] == i);
            assert_int_equal(at, chosen);
        }
    }
}

/* 10 entries in blocks of 4: blocks 0 and 1 are whole, block 2 has 2 entries. */
static bool is_message(const uint32_t *words, size_t bytes, size_t from, size_t to) {
    const struct blocks b = blocks_of(10, 4);
    struct block_list view;
    struct err e = {0};
    bool good = blocks_decode(&b, words, bytes, from, to, &view, &e);
    if (!good) assert_true(e.text[0] && !strchr(e.text, '\n'));
    return good;
}

static void messages_that_are_none(struct comm *c) {
    const uint32_t whole[] = {0, 1, 9, 9, 9, 9, 9, 9, 9, 9}, last[] = {1, 2, 9, 9, 9, 9, 9, 9};
    const uint32_t twice[] = {1, 1, 9, 9, 9, 9, 9, 9, 9, 9}, falls[] = {1, 0, 9, 9, 9, 9, 9, 9, 9, 9};
    const uint32_t beyond[] = {3, 9, 9, 9, 9}, far[] = {UINT32_MAX, 9, 9, 9, 9}, one[] = {1, 9, 9, 9, 9},
                   end[] = {2, 9, 9};
    (void)c;
    assert_true(is_message(whole, 0, 0, 3) && is_message(whole, 40, 0, 3) && is_message(last, 32, 0, 3));
    assert_true(is_message(one, 20, 1, 2) && is_message(end, 12, 2, 3));
    assert_false(is_message(whole, 39, 0, 3) || is_message(whole, 36, 0, 3) || is_message(whole, 4, 0, 3));
    assert_false(is_message(last, 28, 0, 3) || is_message(end, 8, 0, 3) || is_message(end, 4, 2, 3));
    assert_false(is_message(twice, 40, 0, 3) || is_message(falls, 40, 0, 3));
    assert_false(is_message(beyond, 20, 0, 3) || is_message(far, 20, 0, 3));
    assert_false(is_message(one, 20, 2, 3) || is_message(one, 20, 0, 1) || is_message(whole, 40, 0, 1));
    assert_false(is_message((const uint32_t[]){2, 9, 9, 9, 9}, 20, 0, 3)); /* more values than block 2 has */
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"the_reference", the_reference},
        {"not_a_number", not_a_number},
        {"the_largest_of_close_numbers", the_largest_of_close_numbers},
        {"messages_that_are_none", messages_that_are_none},
    };
    return rig_test_main(argc, argv, "comm_omnireduce", cases, sizeof cases / sizeof cases[0]);
}
