/* comm_peers.c: the arithmetic of who talks to whom, for every P from 1 to 70, without MPI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "comm/peers.h"

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms),
        cmocka_unit_test(roles_match),
        cmocka_unit_test(every_rank_is_summed_once),
        cmocka_unit_test(broadcast_reaches_every_rank_once),
        cmocka_unit_test(outside_the_tree_is_idle),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
