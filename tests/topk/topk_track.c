/* topk_track.c: led thresholds: where a threshold goes after a count, against the formula in double; the rungs; and a
 * cliff that moves, which it must follow. */
#include "tests/lib/topk_reference.h"

#include <math.h>

#include "topk/sparse.h"
#include "topk/track.h"

static uint32_t key_of(double magnitude) {
    return magnitude_key((float)magnitude);
}

static void the_first_is_taken_as_it_is(void **state) {
    (void)state;
    struct track t = {0};
    track_found(&t, key_of(0.125), true);
    assert_int_equal(t.key, key_of(0.125));
    assert_int_equal(t.trend, 0);
    assert_true(track_probe(&t) > t.key && track_probe(&t) - t.key == 1u << t.shift);
}

/* trend += within(surprise, 4 2^shift)/8; key = found + trend */
static void what_was_not_expected_moves_the_trend(void **state) {
    (void)state;
    const double found[] = {0.126, 0.2, 0.05, 0.125, 1e30, 1e-30};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        struct track t = {0};
        track_found(&t, key_of(0.125), true);
        double surprise = (double)key_of(found[i]) - (double)t.key, most = 4.0 * (1u << t.shift);
        double trend = trunc(fmax(-most, fmin(most, surprise)) / 8);
        track_found(&t, key_of(found[i]), false);
        assert_true((double)t.trend == trend);
        assert_true((double)t.key == (double)key_of(found[i]) + trend);
        track_found(&t, key_of(3), true);
        assert_int_equal(t.trend, 0);
        assert_int_equal(t.key, key_of(3));
    }
}

/* way = (count - k) 2^shift / (count - above + 1), within 4 2^shift; key += way/4 + trend, trend += way/8 */
static void counts_lead_it(void **state) {
    (void)state;
    const size_t counts[][3] = {{100, 100, 50}, {100, 140, 90}, {100, 60, 30},      {100, 0, 0}, {100, 149, 148},
                                {1, 1, 0},      {1, 0, 0},      {1000, 1500, 1500}, {7, 10, 9}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const size_t k = counts[i][0], count = counts[i][1], above = counts[i][2];
        struct track t = {0};
        track_found(&t, key_of(0.125), true);
        double apart = 1u << t.shift, before = (double)t.key;
        double way = trunc(((double)count - (double)k) * apart / (double)(count - above + 1));
        way = fmax(-4 * apart, fmin(4 * apart, way));
        uint32_t shift = t.shift;
        track_counted(&t, k, count, above);
        assert_true((double)t.trend == trunc(way / 8));
        assert_true((double)t.key == before + trunc(way / 4) + trunc(way / 8));
        bool far = 2 * (count - above) > count, near = !far && 8 * (count - above) < count;
        assert_int_equal(t.shift, far ? shift - 1 : near ? shift + 1 : shift);
    }
}

static void it_stays_a_threshold(void **state) {
    (void)state;
    struct track t = {0};
    track_found(&t, 3, true); /* next to the smallest there is */
    for (int i = 0; i < 1000; i++) {
        track_counted(&t, 1000, 0, 0);
        assert_true(t.key >= 1);
    }
    track_found(&t, KEY_INFINITE - 2, true);
    for (int i = 0; i < 1000; i++) {
        track_counted(&t, 1, 1000, 1000);
        assert_true(t.key < KEY_INFINITE && track_probe(&t) < KEY_INFINITE);
        assert_true(track_rung(&t, TRACK_RUNGS - 1) < KEY_INFINITE);
    }
    track_found(&t, 0, false); /* fewer than k are there: everything passes, until a threshold is found again */
    uint64_t count[TRACK_RUNGS] = {5, 5, 5, 5, 5, 5, 5, 5, 5};
    track_took(&t, TRACK_CENTRE, count);
    assert_int_equal(t.key, 0);
    for (int i = 0; i < TRACK_RUNGS; i++) assert_int_equal(track_rung(&t, i), 0);
}

static void rungs_are_apart_and_the_nearest_is_taken(void **state) {
    (void)state;
    struct track t = {0};
    track_found(&t, key_of(1), true);
    assert_int_equal(track_rung(&t, TRACK_CENTRE), t.key);
    for (int i = 1; i < TRACK_RUNGS; i++) assert_int_equal(track_rung(&t, i) - track_rung(&t, i - 1), 1u << t.shift);
    const uint64_t falling[TRACK_RUNGS] = {90, 80, 70, 60, 50, 40, 30, 20, 10},
                   flat[TRACK_RUNGS] = {7, 7, 7, 7, 7, 7, 7, 7, 7};
    for (int i = 0; i < TRACK_RUNGS; i++) {
        assert_int_equal(track_nearest(falling, falling[i]), i);
        assert_int_equal(track_nearest(falling, falling[i] + 4), i);
    }
    assert_int_equal(track_nearest(falling, 1000), 0);
    assert_int_equal(track_nearest(falling, 55), TRACK_CENTRE);
    for (size_t k = 1; k < 20; k++) assert_int_equal(track_nearest(flat, k), TRACK_CENTRE);
}

/* The rungs come closer while many entries lie between them, and part while few do, within bounds. */
static void rungs_follow_the_slope(void **state) {
    (void)state;
    const uint64_t steep[TRACK_RUNGS] = {177147, 59049, 19683, 6561, 2187, 729, 243, 81, 27},
                   flat[TRACK_RUNGS] = {7, 7, 7, 7, 7, 7, 7, 7, 7},
                   right[TRACK_RUNGS] = {4096, 3238, 2560, 2024, 1600, 1265, 1000, 790, 625};
    const uint64_t *const counts[] = {steep, flat, right}; /* two rungs apart: a factor of 9, 1, 1.6 */
    for (int which = 0; which < 3; which++)
        for (int rung = 0; rung < TRACK_RUNGS; rung++) {
            struct track t = {0};
            track_found(&t, key_of(1), true);
            uint32_t shift = t.shift;
            for (int step = 0; step < 30; step++) {
                const bool end = rung == 0 || rung == TRACK_RUNGS - 1; /* one neighbour alone */
                track_took(&t, rung, counts[which]);
                if (which == 0 && shift > 0) shift--;
                if ((which == 1 || (which == 2 && end)) && shift < 22) shift++;
                assert_int_equal(t.shift, shift);
            }
            assert_true(track_possible(&t));
        }
}

static void what_a_file_may_say(void **state) {
    (void)state;
    const int64_t fast = 1 << 22;
    const struct track good[] = {{0, 0, 0}, {1, 0, 0}, {KEY_INFINITE - 1, 22, fast}, {5, 22, -fast}};
    const struct track bad[] = {{KEY_INFINITE, 0, 0}, {UINT32_MAX, 0, 0}, {1, 23, 0},       {1, 64, 0},
                                {1, 0, fast + 1},     {1, 0, -fast - 1},  {1, 0, INT64_MIN}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(track_possible(&good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(track_possible(&bad[i]));
}

/* Entries at or above a key, where k of them are above `edge` and there are e times as many for every `steep` keys
 * further down. */
static double crowd(double k, double edge, double steep, uint32_t key) {
    return k * exp((edge - (double)key) / steep);
}

/* The edge sinks or rises from step to step, by up to as much as makes a factor of e in counts, then turns. */
static void it_follows_a_cliff(void **state) {
    (void)state;
    const double k = 10000, steeps[] = {200, 5000, 80000};
    for (size_t s = 0; s < 3; s++)
        for (int slow = 1; slow <= 16; slow *= 4) {
            struct track led = {0}, rung = {0};
            double edge = key_of(0.2), steep = steeps[s], move = -steep / slow;
            track_found(&led, (uint32_t)edge, true);
            track_found(&rung, (uint32_t)edge, true);
            for (int step = 0; step < 200; step++) {
                if (step % 64 == 63) move = -move;
                edge += move;
                double count = crowd(k, edge, steep, led.key), above = crowd(k, edge, steep, track_probe(&led));
                bool settled = step > 40 && step % 64 > 20 && step % 64 < 63;
                if (settled) assert_true(count > k / 2 && count < 1.5 * k);
                if (count < k / 2 || count > 1.5 * k) {
                    track_found(&led, (uint32_t)edge, false);
                    track_spacing(&led, (size_t)k, (size_t)crowd(k, edge, steep, track_above(&led, (uint32_t)edge)));
                } else {
                    track_counted(&led, (size_t)k, (size_t)count, (size_t)above);
                }
                uint64_t counts[TRACK_RUNGS];
                for (int i = 0; i < TRACK_RUNGS; i++)
                    counts[i] = (uint64_t)fmin(crowd(k, edge, steep, track_rung(&rung, i)), 1e15);
                int taken = track_nearest(counts, (size_t)k);
                if (settled) assert_true((double)counts[taken] > k / 2 && (double)counts[taken] < 1.5 * k);
                track_took(&rung, taken, counts);
            }
        }
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_is_taken_as_it_is),
                                       cmocka_unit_test(what_was_not_expected_moves_the_trend),
                                       cmocka_unit_test(counts_lead_it),
                                       cmocka_unit_test(it_stays_a_threshold),
                                       cmocka_unit_test(rungs_are_apart_and_the_nearest_is_taken),
                                       cmocka_unit_test(rungs_follow_the_slope),
                                       cmocka_unit_test(what_a_file_may_say),
                                       cmocka_unit_test(it_follows_a_cliff)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
