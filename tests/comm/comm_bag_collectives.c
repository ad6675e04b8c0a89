/* comm_bag_collectives.c: the all-gather of blocks of different sizes and the reduce-scatter, and what they count.
 * ranks: 1 2 3 4 5 6 7 8 9 */
/* faults: 3 7 8 */
#include "tests/lib/mpi_harness.h"

#include "base/rng.h"
#include "comm/parts/peers.h"
#include "tests/lib/comm_counting.h"

enum { MOST_RANKS = 9, LONGEST = 3000, SHAPES = 12 };

/* Sizes of the ranks' blocks: equal, a few without anything, all in one rank's, none at all, at random. */
static void shape_blocks(int shape, int P, size_t *each) {
    struct rng rng = rng_open(7, RNG_TEST, (uint64_t)(shape * MOST_RANKS + P));
    for (int r = 0; r < P; r++)
        each[r] = shape == 0   ? 1
                  : shape == 1 ? LONGEST
                  : shape == 2 ? (r == P / 2 ? LONGEST : 0)
                  : shape == 3 ? (r == P - 1 ? 5 : 0)
                  : shape == 4 ? (size_t)(r % 2)
                  : shape == 5 ? 0
                  : shape == 6 ? 17 - (size_t)(r < 2)
                               : rng_below(&rng, 3) * rng_below(&rng, LONGEST / 2);
}

/* The all-gather's rounds, one way: in the round that goes `far` ranks back, rank r sends blocks r .. r+far-1 as far as
 * the other lacks them, and receives (ahead) those from r+far on; in one message or, if they go past the last block,
 * in two. The reduce-scatter is the same backwards, and only what leaves the vector itself (joined: not the rest) can
 * be two messages. */
static void count_bags(int P, int r, const size_t *each, bool ahead, bool joined, uint64_t *messages, uint64_t *bytes) {
    *messages = *bytes = 0;
    for (int far = 1; far < P; far *= 2) {
        size_t piece[2] = {0, 0};
        int first = ahead ? (r + far) % P : r;
        for (int b = first; b < first + far && b < first + P - far; b++) piece[b >= P] += each[b % P];
        bool one = joined && 2 * far < P;
        *messages += one ? piece[0] + piece[1] > 0 : (uint64_t)(piece[0] > 0) + (piece[1] > 0);
        *bytes += piece[0] + piece[1];
    }
}

/* In `all`, with a byte more on both sides that nobody may touch. */
static void gather_shape(struct comm *job, struct comm *c, int shape, bool in_place) {
    static unsigned char mine[LONGEST], memory[MOST_RANKS * LONGEST + 2];
    unsigned char *all = memory + 1;
    size_t each[MOST_RANKS], total = 0, begins = 0;
    shape_blocks(shape, c->size, each);
    for (int r = 0; r < c->size; total += each[r++])
        if (r == c->rank) begins = total;
    memset(memory, 0xee, total + 2);
    unsigned char *from = in_place ? all + begins : mine;
    fill(from, each[c->rank], c->rank, shape);
    struct comm_counters before = begin(job), want;
    comm_allgatherv(c, from, each[c->rank], all, each);
    count_bags(c->size, c->rank, each, false, false, &want.messages_sent, &want.bytes_sent);
    count_bags(c->size, c->rank, each, true, false, &want.messages_received, &want.bytes_received);
    counted(job, before, want);
    assert_int_equal(want.bytes_received, total - each[c->rank]);
    unsigned char *at = all;
    for (int r = 0; r < c->size; at += each[r++]) check(at, each[r], r, shape);
    assert_true(memory[0] == 0xee && *at == 0xee);
}

static void all_gather(struct comm *c) {
    for (int shape = 0; shape < SHAPES; shape++)
        for (int in_place = 0; in_place < 2; in_place++) gather_shape(c, c, shape, in_place);
}

/* Rank r's value at i; any sum of them over up to nine ranks is exact. */
static float value_of(int r, size_t i) {
    return (float)((int)(i % 1021) * (r + 1) - 300);
}

static void sum_shape(struct comm *job, struct comm *c, int shape, bool in_place) {
    static float data[MOST_RANKS * LONGEST], mine[LONGEST + 1], scratch[2 * MOST_RANKS * LONGEST + 1];
    size_t each[MOST_RANKS], total = 0, begins = 0;
    shape_blocks(shape, c->size, each);
    for (int r = 0; r < c->size; total += each[r++])
        if (r == c->rank) begins = total;
    size_t own = each[c->rank], room = comm_reduce_scatter_scratch(c, each);
    assert_in_range(room, 0, 2 * MOST_RANKS * LONGEST);
    for (size_t i = 0; i < total; i++) data[i] = value_of(c->rank, i);
    for (size_t i = 0; i <= own; i++) mine[i] = -1;
    scratch[room] = 12345;
    float *into = in_place ? data + begins : mine;
    struct comm_counters before = begin(job), want;
    comm_reduce_scatter_f32(c, data, each, into, scratch);
    count_bags(c->size, c->rank, each, true, true, &want.messages_sent, &want.bytes_sent);
    count_bags(c->size, c->rank, each, false, true, &want.messages_received, &want.bytes_received);
    want.bytes_sent *= sizeof(float);
    want.bytes_received *= sizeof(float);
    counted(job, before, want);
    assert_int_equal(want.bytes_sent, (total - own) * sizeof(float));
    for (size_t i = 0; i < own; i++) {
        float sum = 0;
        for (int r = 0; r < c->size; r++) sum += value_of(r, begins + i);
        assert_true(into[i] == sum);
    }
    for (size_t i = 0; i < total; i++)
        if (!in_place || i < begins || i >= begins + own) assert_true(data[i] == value_of(c->rank, i));
    assert_true(scratch[room] == 12345);
    if (!in_place) assert_true(mine[own] == -1);
}

static void reduce_scatter(struct comm *c) {
    for (int shape = 0; shape < SHAPES; shape++)
        for (int in_place = 0; in_place < 2; in_place++) sum_shape(c, c, shape, in_place);
}

/* Fewer entries may take more on a rank: of 269 rank 3 of 8 has one more than of 270. */
static void scratch_for_even_parts(struct comm *c) {
    for (size_t most = 0; most <= 300; most++) {
        const size_t room = comm_reduce_scatter_scratch_even(c, most);
        size_t wanted = 0, each[MOST_RANKS];
        for (size_t n = 0; n <= most; n++) {
            for (int r = 0; r < c->size; r++) each[r] = even_part(n, c->size, r);
            const size_t own = comm_reduce_scatter_scratch(c, each);
            wanted = own > wanted ? own : wanted;
        }
        assert_in_range(wanted, 0, room);
        assert_true(most % (size_t)c->size > 0 || wanted == room);
    }
}

/* In groups, two of them at once, and in an order of ranks of their own; the job counts. */
static void in_groups(struct comm *c) {
    struct comm *g = comm_split(c, c->rank % 2, -c->rank);
    for (int shape = 0; shape < SHAPES; shape++) {
        gather_shape(c, g, shape, true);
        sum_shape(c, g, shape, false);
    }
    comm_split_close(g);
}

/* One after the other without a barrier: a rank that is ahead does not get into its neighbours' way. */
static void many_in_a_row(struct comm *c) {
    size_t each[MOST_RANKS];
    uint64_t all[MOST_RANKS];
    for (int r = 0; r < c->size; r++) each[r] = sizeof *all;
    for (uint64_t round = 0; round < 200; round++) {
        uint64_t mine = round * 100 + (uint64_t)c->rank;
        comm_allgatherv(c, &mine, sizeof mine, all, each);
        for (int r = 0; r < c->size; r++) assert_int_equal(all[r], round * 100 + (uint64_t)r);
    }
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"all_gather", all_gather},
        {"reduce_scatter", reduce_scatter},
        {"scratch_for_even_parts", scratch_for_even_parts},
        {"in_groups", in_groups},
        {"many_in_a_row", many_in_a_row},
    };
    return mpi_test_main(argc, argv, "comm_bag_collectives", cases, sizeof cases / sizeof cases[0]);
}
