/* comm_peers.c: the arithmetic of who talks to whom, for every P from 1 to 70, without MPI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/parts/peers.h"

enum { P_MAX = 70 };

static void logarithms(void **state) {
    (void)state;
    const int want[][3] = {
        {1, 0, 1},   {2, 1, 2},   {3, 2, 2},       {4, 2, 4},   {5, 3, 4}, {8, 3, 8}, {9, 4, 8},
        {64, 6, 64}, {65, 7, 64}, {1000, 10, 512}, {63, 6, 32}, {7, 3, 4}, {6, 3, 4}, {1 << 30, 30, 1 << 30}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_int_equal(ceil_log2(want[i][0]), want[i][1]);
        assert_int_equal(floor_power_of_two(want[i][0]), want[i][2]);
    }
    assert_int_equal(floor_power_of_two(INT32_MAX), 1 << 30);
    assert_int_equal(ceil_log2(INT32_MAX), 31);
}

/* A sender's peer receives from it in the same round, and the other way round. */
static void roles_match(void **state) {
    (void)state;
    for (int P = 1; P <= P_MAX; P++) {
        assert_int_equal(tree_rounds(P), ceil_log2(P));
        for (int round = 0; round < tree_rounds(P); round++) {
            for (int r = 0; r < P; r++) {
                struct tree_step mine = tree_reduce_step(P, r, round), back = tree_bcast_step(P, r, round);
                assert_int_equal(back.peer, mine.peer);
                if (mine.role == TREE_IDLE) {
                    assert_int_equal(mine.peer, -1);
                    assert_int_equal(back.role, TREE_IDLE);
                    continue;
                }
                assert_in_range(mine.peer, 0, P - 1);
                struct tree_step theirs = tree_reduce_step(P, mine.peer, round);
                assert_int_equal(theirs.peer, r);
                assert_int_equal(theirs.role, mine.role == TREE_SEND ? TREE_RECEIVE : TREE_SEND);
                assert_int_equal(back.role, theirs.role);
            }
        }
    }
}

/* times[r][s]: how often what rank s put in is contained in what rank r holds. */
static void every_rank_is_summed_once(void **state) {
    (void)state;
    static int times[P_MAX][P_MAX];
    for (int P = 1; P <= P_MAX; P++) {
        int sends[P_MAX] = {0};
        for (int r = 0; r < P; r++)
            for (int s = 0; s < P; s++) times[r][s] = r == s;
        for (int round = 0; round < tree_rounds(P); round++) {
            for (int r = 0; r < P; r++) {
                struct tree_step step = tree_reduce_step(P, r, round);
                if (step.role == TREE_SEND) {
                    sends[r]++;
                    continue;
                }
                if (step.role == TREE_IDLE) continue;
                assert_int_equal(sends[r], 0); /* who has sent is done */
                for (int s = 0; s < P; s++) times[r][s] += times[step.peer][s];
            }
        }
        assert_int_equal(sends[0], 0);
        for (int s = 0; s < P; s++) assert_int_equal(times[0][s], 1);
        for (int r = 1; r < P; r++) assert_int_equal(sends[r], 1);
    }
}

static void broadcast_reaches_every_rank_once(void **state) {
    (void)state;
    for (int P = 1; P <= P_MAX; P++) {
        int has[P_MAX] = {1};
        for (int round = tree_rounds(P) - 1; round >= 0; round--) {
            for (int r = 0; r < P; r++) {
                struct tree_step step = tree_bcast_step(P, r, round);
                if (step.role != TREE_SEND) continue;
                assert_int_equal(has[r], 1);
                has[step.peer]++;
            }
        }
        for (int r = 0; r < P; r++) assert_int_equal(has[r], 1);
    }
}

static void outside_the_tree_is_idle(void **state) {
    (void)state;
    for (int P = 1; P <= P_MAX; P++) {
        assert_int_equal(tree_reduce_step(P, P - 1, -1).role, TREE_IDLE);
        assert_int_equal(tree_reduce_step(P, 0, tree_rounds(P)).role, TREE_IDLE);
        assert_int_equal(tree_bcast_step(P, 0, tree_rounds(P)).role, TREE_IDLE);
    }
}

/* Any x parts in a row hold floor(x n / P) or ceil(x n / P) of n: the bounds of SparDL rest on it. */
static void parts_in_a_row_hold_their_share(void **state) {
    (void)state;
    const size_t lengths[] = {0, 1, 3, 63, 64, 65, 1009, UINT32_MAX};
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        size_t n = lengths[l];
        for (int P = 1; P <= P_MAX; P++) {
            for (int first = 0; first < P; first++) {
                for (int end = first; end <= P; end++) {
                    uint64_t x = (uint64_t)(end - first), held = even_cut(n, P, end) - even_cut(n, P, first);
                    uint64_t least = x * n / (uint64_t)P;
                    assert_true(held == least || (held == least + 1 && x * n % (uint64_t)P != 0));
                }
            }
        }
    }
}

/* What a rank sends is what its peer receives, in the same round. */
static void bags_match(struct bag_round (*step)(int P, int rank, int round), int P) {
    for (int round = 0; round < ceil_log2(P); round++) {
        for (int r = 0; r < P; r++) {
            struct bag_round mine = step(P, r, round);
            assert_in_range(mine.to, 0, P - 1);
            assert_in_range(mine.count, 1, P - 1);
            assert_int_not_equal(mine.to, r);
            struct bag_round theirs = step(P, mine.to, round);
            assert_int_equal(theirs.from, r);
            assert_int_equal(theirs.receive, mine.send);
            assert_int_equal(theirs.count, mine.count);
        }
    }
}

/* times[r][b][s]: how often what rank s had of block b is contained in what rank r has of it. */
static void scatter_sums_every_block_once(void **state) {
    (void)state;
    static signed char times[P_MAX][P_MAX][P_MAX], before[P_MAX][P_MAX][P_MAX];
    for (int P = 1; P <= P_MAX; P++) {
        int sent[P_MAX] = {0};
        bags_match(bag_scatter_round, P);
        memset(times, 0, sizeof times);
        for (int r = 0; r < P; r++)
            for (int b = 0; b < P; b++) times[r][b][r] = 1;
        for (int round = 0; round < ceil_log2(P); round++) {
            memcpy(before, times, sizeof times);
            for (int r = 0; r < P; r++) {
                struct bag_round bag = bag_scatter_round(P, r, round);
                sent[r] += bag.count;
                for (int i = 0; i < bag.count; i++) {
                    int b = (bag.receive + i) % P, gone = (bag.send + i) % P;
                    assert_false(bag_has(P, bag.send, bag.count, b)); /* what comes in is not what goes out */
                    for (int s = 0; s < P; s++) times[r][b][s] += before[bag.from][b][s];
                    memset(times[r][gone], -1, sizeof times[r][gone]); /* must not be used again */
                }
            }
        }
        for (int r = 0; r < P; r++) {
            assert_int_equal(sent[r], P - 1);
            for (int s = 0; s < P; s++) assert_int_equal(times[r][r][s], 1);
        }
    }
}

static void gather_brings_every_block_once(void **state) {
    (void)state;
    static int has[P_MAX][P_MAX], before[P_MAX][P_MAX];
    for (int P = 1; P <= P_MAX; P++) {
        bags_match(bag_gather_round, P);
        memset(has, 0, sizeof has);
        for (int r = 0; r < P; r++) has[r][r] = 1;
        for (int round = 0; round < ceil_log2(P); round++) {
            memcpy(before, has, sizeof has);
            for (int r = 0; r < P; r++) {
                struct bag_round bag = bag_gather_round(P, r, round);
                for (int i = 0; i < bag.count; i++) {
                    int b = (bag.receive + i) % P;
                    assert_int_equal(before[bag.from][b], 1);
                    has[r][b]++;
                }
            }
        }
        for (int r = 0; r < P; r++)
            for (int b = 0; b < P; b++) assert_int_equal(has[r][b], 1);
    }
}

/* Blocks of different sizes, counted one by one. */
static void gather_sends_what_the_bags_hold(void **state) {
    (void)state;
    uint64_t first[P_MAX + 1] = {0};
    for (int P = 1; P <= P_MAX; P++) {
        for (int b = 0; b < P; b++) first[b + 1] = first[b] + (uint64_t)(b * b + P) % 11;
        for (int r = 0; r < P; r++) {
            uint64_t sent = 0;
            for (int round = 0; round < ceil_log2(P); round++) {
                struct bag_round bag = bag_gather_round(P, r, round);
                for (int i = 0; i < bag.count; i++) {
                    int b = (bag.send + i) % P;
                    sent += first[b + 1] - first[b];
                }
            }
            assert_int_equal(bag_gather_sent(first, P, r), sent);
        }
    }
}

static void a_bag_has_its_blocks(void **state) {
    (void)state;
    for (int P = 1; P <= 20; P++) {
        for (int first = 0; first < P; first++) {
            for (int count = 0; count <= P; count++) {
                bool in[20] = {false};
                for (int i = 0; i < count; i++) in[(first + i) % P] = true;
                for (int b = 0; b < P; b++) assert_int_equal(bag_has(P, first, count, b), in[b]);
            }
        }
    }
}

/* The longer parts first, total things in all, and a smaller total has no longer part. */
static void front_parts(void **state) {
    (void)state;
    for (int P = 1; P <= 9; P++) {
        for (uint64_t total = 0; total <= 40; total++) {
            uint64_t sum = 0;
            for (int r = 0; r < P; r++) {
                uint64_t part = front_part(total, P, r);
                assert_true(r == 0 || part == front_part(total, P, r - 1) || part + 1 == front_part(total, P, r - 1));
                assert_true(part <= front_part(total + 1, P, r));
                sum += part;
            }
            assert_true(sum == total && front_part(total, P, 0) - front_part(total, P, P - 1) <= 1);
        }
    }
}

static void even_cuts(void **state) {
    (void)state;
    const uint64_t totals[] = {0, 1, 2, 3, 69, 70, 71, 1009, UINT32_MAX, UINT64_MAX};
    for (int P = 1; P <= P_MAX; P++)
        for (size_t t = 0; t < sizeof totals / sizeof totals[0]; t++) {
            uint64_t least = totals[t] / (uint64_t)P;
            assert_true(even_cut(totals[t], P, 0) == 0);
            assert_true(even_cut(totals[t], P, P) == totals[t]);
            for (int r = 0; r < P; r++) {
                uint64_t part = even_cut(totals[t], P, r + 1) - even_cut(totals[t], P, r);
                assert_true(part == least || part == least + 1);
            }
        }
    /* with 256 ranks, the sum of their cuts of a vector of 2^32 - 1 needs more than 32 bits */
    assert_true(even_cut((uint64_t)UINT32_MAX * 256, 256, 255) == (uint64_t)UINT32_MAX * 255);
}

/* In a step every rank receives from one rank, which sends to it; over all steps, once from every other. */
static void rotation(void **state) {
    (void)state;
    for (int P = 1; P <= P_MAX; P++)
        for (int r = 0; r < P; r++) {
            int met[P_MAX] = {0};
            for (int step = 1; step < P; step++) {
                assert_int_equal(rotate_from(P, rotate_to(P, r, step), step), r);
                met[rotate_to(P, r, step)]++;
            }
            for (int peer = 0; peer < P; peer++) assert_int_equal(met[peer], peer != r);
        }
}

/* Every entry of the list goes to exactly one rank; the shares are even and in order. */
static void evening_out(void **state) {
    (void)state;
    for (int P = 1; P <= 20; P++)
        for (int heavy = 0; heavy < P; heavy++) {
            uint64_t first[P_MAX + 1] = {0}, place = 0;
            for (int r = 0; r < P; r++) first[r + 1] = first[r] + (r == heavy ? 1000 : (uint64_t)(r + heavy) % 3);
            for (int target = 0; target < P; target++) {
                uint64_t share = 0;
                for (int holder = 0; holder < P; holder++) {
                    struct move move = even_move(first, P, holder, target);
                    if (move.count == 0) continue;
                    assert_true(move.from == place);
                    assert_true(move.from >= first[holder] && move.from + move.count <= first[holder + 1]);
                    place += move.count;
                    share += move.count;
                }
                assert_true(share == first[P] / (uint64_t)P || share == first[P] / (uint64_t)P + 1);
            }
            assert_true(place == first[P]);
        }
}

static void what_is_uneven(void **state) {
    (void)state;
    const uint64_t nothing[] = {0, 0, 0, 0, 0, 0}, one[] = {0, 0, 1, 1, 1, 1}, four[] = {0, 4, 4, 4, 4, 4},
                   just[] = {0, 16, 17, 18, 19, 20}, more[] = {0, 17, 18, 19, 20, 20};
    assert_false(uneven(nothing, 5, 4));
    assert_false(uneven(one, 5, 4)); /* moving it helps nobody */
    assert_true(uneven(four, 5, 4));
    assert_false(uneven(just, 5, 4)); /* 4 times the mean, not more */
    assert_true(uneven(more, 5, 4));
    assert_false(uneven(four, 4, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms),
        cmocka_unit_test(roles_match),
        cmocka_unit_test(every_rank_is_summed_once),
        cmocka_unit_test(broadcast_reaches_every_rank_once),
        cmocka_unit_test(outside_the_tree_is_idle),
        cmocka_unit_test(even_cuts),
        cmocka_unit_test(front_parts),
        cmocka_unit_test(rotation),
        cmocka_unit_test(evening_out),
        cmocka_unit_test(what_is_uneven),
        cmocka_unit_test(parts_in_a_row_hold_their_share),
        cmocka_unit_test(scatter_sums_every_block_once),
        cmocka_unit_test(gather_brings_every_block_once),
        cmocka_unit_test(gather_sends_what_the_bags_hold),
        cmocka_unit_test(a_bag_has_its_blocks),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
