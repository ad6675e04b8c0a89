/* comm_watch.c: whom the watchdog names, and whom it does not, over pages made up by hand; no process, clock or thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "comm/transport/watch.h"

enum { SLOTS = 4 };
static const double limit = 10;

struct scene {
    struct watch_page *page;
    struct watch_record record[SLOTS];
    bool culprit[SLOTS];
    struct watch_judge judge;
    const char *how; /* is the first of those that do not come */
};

/* Ranks 0 to 3 of a job of so many, in step 17 of which rank 0 waits; seen by rank 0. */
static void scene_open(struct scene *s, int ranks) {
    memset(s, 0, sizeof *s);
    s->page = aligned_alloc(128, watch_page_bytes(SLOTS));
    assert_non_null(s->page);
    memset(s->page, 0, watch_page_bytes(SLOTS));
    s->page->slots = SLOTS;
    s->page->ranks = ranks;
    for (int i = 0; i < SLOTS; i++) {
        struct watch_slot *slot = &s->page->slot[i];
        slot->rank = i;
        slot->state = WATCH_THERE;
        slot->beat.peer = BEAT_EVERYBODY;
        slot->beat.activity = ACTIVITY_STEP;
        slot->beat.phase = PHASE_COMMUNICATE;
        slot->beat.step = 17;
        slot->beat.waits = 1;
    }
    s->judge = (struct watch_judge){.limit = limit, .record = s->record, .culprit = s->culprit};
    s->how = "";
}

static void scene_close(struct scene *s) {
    free(s->page);
}

/* So many seconds pass, one by one, with a pulse of all but `silent` (-1: of all); what is found in the last. */
static enum watch_finding pass(struct scene *s, int seconds, int silent) {
    enum watch_finding found = WATCH_FINE;
    for (int t = 0; t < seconds; t++) {
        for (int i = 0; i < SLOTS; i++) s->page->slot[i].pulse += i != silent;
        found = watch_look(&s->judge, s->page, 1);
    }
    return found;
}

static void expect_text(const struct scene *s, enum watch_finding finding, const char *wanted) {
    char text[1000];
    watch_say(&s->judge, s->page, finding, s->how, text, sizeof text);
    assert_string_equal(text, wanted);
}

static void stopped_rank(void **state) {
    (void)state;
    for (int waits = 0; waits < 2; waits++) { /* inside a call of MPI or outside, it is the one */
        struct scene s;
        scene_open(&s, SLOTS);
        s.page->slot[2].beat.waits = (uint64_t)waits;
        s.page->slot[2].beat.activity = ACTIVITY_EVALUATION;
        s.page->slot[2].beat.step = 16;
        assert_int_equal(pass(&s, 10, 2), WATCH_FINE);
        assert_int_equal(pass(&s, 1, 2), WATCH_CULPRITS);
        assert_true(s.culprit[2]);
        assert_false(s.culprit[1]);
        assert_false(s.culprit[3]);
        expect_text(&s, WATCH_CULPRITS,
                    "rank 2 has not come to the exchange of step 17, where 3 ranks wait for it: nothing heard of it "
                    "for 11 s; it was last in the evaluation after step 16");
        scene_close(&s);
    }
}

static void stuck_rank(void **state) {
    struct scene s;
    (void)state;
    scene_open(&s, SLOTS);
    s.page->slot[3].beat.waits = 2;
    s.page->slot[3].beat.phase = PHASE_SELECT;
    assert_int_equal(pass(&s, 11, -1), WATCH_CULPRITS);
    assert_true(s.culprit[3]);
    expect_text(
        &s, WATCH_CULPRITS,
        "rank 3 has not come to the exchange of step 17, where 3 ranks wait for it: it runs, but has got nothing "
        "done for 10 s; it was last in step 17, select");
    scene_close(&s);
}

static void busy_rank(void **state) {
    struct scene s;
    (void)state;
    scene_open(&s, SLOTS);
    s.page->slot[3].beat.waits = 2;
    for (int i = 0; i < 100; i++) {
        s.page->slot[3].beat.count++;
        assert_int_equal(pass(&s, 9, -1), WATCH_FINE);
    }
    scene_close(&s);
}

static void long_activities(void **state) {
    const enum activity patient[] = {ACTIVITY_START, ACTIVITY_CHECKPOINT, ACTIVITY_END};
    (void)state;
    for (size_t i = 0; i < sizeof patient / sizeof *patient; i++) {
        struct scene s;
        scene_open(&s, SLOTS);
        s.page->slot[1].beat.waits = 2;
        s.page->slot[1].beat.activity = (int)patient[i];
        assert_int_equal(pass(&s, 10 * WATCH_PATIENCE, -1), WATCH_FINE);
        assert_int_equal(pass(&s, 1, -1), WATCH_CULPRITS);
        scene_close(&s);
    }
}

static void who_does_not_wait_says_nothing(void **state) {
    struct scene s;
    (void)state;
    scene_open(&s, SLOTS);
    s.page->slot[0].beat.waits = 2;
    assert_int_equal(pass(&s, 1000, 2), WATCH_FINE);
    s.page->slot[0].beat.waits = 3; /* only now it comes, and has not waited yet */
    assert_int_equal(pass(&s, 10, 2), WATCH_FINE);
    assert_int_equal(pass(&s, 1, 2), WATCH_CULPRITS);
    scene_close(&s);
}

static void every_wait_begins_anew(void **state) {
    struct scene s;
    (void)state;
    scene_open(&s, SLOTS);
    for (int i = 0; i < 50; i++) {
        s.page->slot[0].beat.waits += 2;
        assert_int_equal(pass(&s, 8, 2), WATCH_FINE);
    }
    scene_close(&s);
}

static void two_ranks(void **state) {
    struct scene s;
    (void)state;
    scene_open(&s, SLOTS);
    s.page->slot[3].beat.waits = 2;
    assert_int_equal(pass(&s, 11, 1), WATCH_CULPRITS);
    assert_true(s.culprit[1] && s.culprit[3] && !s.culprit[2]);
    expect_text(&s, WATCH_CULPRITS,
                "rank 1 (and 1 more) has not come to the exchange of step 17, where 2 ranks wait for it: nothing heard "
                "of it for 11 s; it was last in step 17, communicate");
    scene_close(&s);
}

static bool excuse_rank_2(const struct watch_slot *slot, void *asker) {
    (void)asker;
    return slot->rank == 2;
}

static void debugger(void **state) {
    struct scene s;
    (void)state;
    scene_open(&s, SLOTS);
    s.judge.excused = excuse_rank_2;
    s.page->slot[2].beat.waits = 2;
    assert_int_equal(pass(&s, 1000, 2), WATCH_FINE);
    s.page->slot[2].beat.waits = 3; /* ... in a call of MPI */
    assert_int_equal(pass(&s, 1000, 2), WATCH_FINE);
    assert_int_equal(pass(&s, 1, -1), WATCH_DEADLOCK); /* it goes on, and so do they */
    scene_close(&s);
}

static void ranks_without_watchdog(void **state) {
    const int states[] = {WATCH_ABSENT, WATCH_LEFT};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene s;
        scene_open(&s, SLOTS + 4);
        s.page->slot[2].state = states[i];
        s.page->slot[2].beat.waits = 2;
        assert_int_equal(pass(&s, 1000, 2), states[i] == WATCH_LEFT ? WATCH_ELSEWHERE : WATCH_FINE);
        scene_close(&s);
    }
}

/* Who waits for its turn ends nothing, however long it takes; one that plays and is kept waiting does, beside such. */
static void turns_of_others(void **state) {
    (void)state;
    for (int ranks = SLOTS; ranks <= SLOTS + 4; ranks += 4) {
        struct scene s;
        scene_open(&s, ranks);
        for (int i = 0; i < SLOTS; i++) s.page->slot[i].beat.activity = ACTIVITY_TURN;
        assert_int_equal(pass(&s, 1000, -1), WATCH_FINE);
        s.page->slot[0].beat.activity = ACTIVITY_MEASURE;
        s.page->slot[0].beat.count++;
        assert_int_equal(pass(&s, 9, -1), WATCH_FINE);
        assert_int_equal(pass(&s, 3, -1), ranks == SLOTS ? WATCH_DEADLOCK : WATCH_ELSEWHERE);
        scene_close(&s);
    }
}

/* The node of the lowest ranks speaks first. */
static void nodes_in_turn(void **state) {
    (void)state;
    for (int later = 0; later <= 4; later += 2) { /* [s] */
        struct scene s;
        scene_open(&s, SLOTS + 200);
        for (int i = 0; i < SLOTS; i++) s.page->slot[i].rank += later;
        assert_int_equal(pass(&s, 10 + later, -1), WATCH_FINE);
        assert_int_equal(pass(&s, 1, -1), WATCH_ELSEWHERE);
        scene_close(&s);
    }
}

static void another_node(void **state) {
    struct scene s;
    (void)state;
    scene_open(&s, SLOTS + 4);
    s.page->slot[0].beat.peer = 6;
    assert_int_equal(pass(&s, 10, -1), WATCH_FINE);
    assert_int_equal(pass(&s, 1, -1), WATCH_ELSEWHERE);
    expect_text(
        &s, WATCH_ELSEWHERE,
        "rank 6, or one that it waits for, has not come to the exchange of step 17: rank 0 has waited for 10 s, "
        "and nobody on its node is behind");
    s.page->slot[0].beat.peer = BEAT_EVERYBODY;
    s.page->slot[0].beat.activity = ACTIVITY_CHECKPOINT; /* whose disk may be slow */
    assert_int_equal(pass(&s, 10, -1), WATCH_FINE);
    s.page->slot[0].beat.activity = ACTIVITY_STEP;
    s.page->slot[0].beat.bytes = 40000000; /* may take 10 s longer */
    assert_int_equal(pass(&s, 1, -1), WATCH_ELSEWHERE);
    s.page->slot[0].beat.waits += 2;
    assert_int_equal(pass(&s, 20, -1), WATCH_FINE);
    assert_int_equal(pass(&s, 1, -1), WATCH_ELSEWHERE);
    s.page->slot[3].beat.waits = 2; /* somebody here is at work */
    s.page->slot[3].beat.count++;
    assert_int_equal(pass(&s, 1, -1), WATCH_FINE);
    scene_close(&s);
}

static void everybody_waits(void **state) {
    struct scene s;
    (void)state;
    scene_open(&s, SLOTS);
    s.page->slot[0].beat.peer = 3;
    assert_int_equal(pass(&s, 11, -1), WATCH_DEADLOCK);
    expect_text(&s, WATCH_DEADLOCK,
                "all ranks wait for each other: rank 0 in step 17, communicate for rank 3, for 10 s");
    scene_close(&s);
}

/* It had a pulse once more after its last work: it is not taken for one of those that wait for each other. */
static void stopped_while_it_waits(void **state) {
    (void)state;
    for (int late = 1; late < 5; late++) { /* seconds after its last work */
        struct scene s;
        scene_open(&s, SLOTS);
        assert_int_equal(pass(&s, late, -1), WATCH_FINE);
        for (int i = 0; i < 9; i++) assert_int_equal(pass(&s, 1, 2), WATCH_FINE);
        assert_int_equal(pass(&s, 1, 2), WATCH_CULPRITS);
        assert_true(s.culprit[2] && !s.culprit[1] && !s.culprit[3]);
        scene_close(&s);
    }
}

/* Where a rank may be last, and what the others wait for. */
static void places(void **state) {
    (void)state;
    const struct {
        int activity, phase;
        const char *last;
    } cases[] = {{ACTIVITY_STEP, PHASE_OTHER, "step 17, between two phases"},
                 {ACTIVITY_STEP, PHASE_COUNT, "step 17, between two phases"},
                 {ACTIVITY_CHECKPOINT, PHASE_OTHER, "the checkpoint of step 17"},
                 {ACTIVITY_MEASURE, PHASE_OTHER, "the measurement"},
                 {ACTIVITY_END, PHASE_OTHER, "the end"},
                 {ACTIVITY_START, PHASE_OTHER, "the start"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene s;
        char line[400];
        scene_open(&s, SLOTS);
        s.page->slot[2].beat.activity = cases[i].activity;
        s.page->slot[2].beat.phase = cases[i].phase;
        s.page->slot[0].beat.activity = ACTIVITY_EVALUATION;
        assert_int_equal(pass(&s, 11, 2), WATCH_CULPRITS);
        snprintf(line, sizeof line,
                 "rank 2 has not come to the evaluation after step 17, where 3 ranks wait for it: nothing heard of it "
                 "for 11 s; it was last in %s",
                 cases[i].last);
        expect_text(&s, WATCH_CULPRITS, line);
        scene_close(&s);
    }
}

/* Nobody in particular is waited for. */
static void unnamed_ranks(void **state) {
    struct scene s;
    (void)state;
    scene_open(&s, SLOTS + 4);
    assert_int_equal(pass(&s, 11, -1), WATCH_ELSEWHERE);
    expect_text(
        &s, WATCH_ELSEWHERE,
        "a rank of another node has not come to the exchange of step 17: rank 0 has waited for 10 s, and nobody "
        "on its node is behind");
    scene_close(&s);
    scene_open(&s, SLOTS);
    assert_int_equal(pass(&s, 11, -1), WATCH_DEADLOCK);
    expect_text(&s, WATCH_DEADLOCK, "all ranks wait for each other: rank 0 in step 17, communicate, for 10 s");
    scene_close(&s);
}

static void one_waits(void **state) {
    struct scene s;
    (void)state;
    scene_open(&s, SLOTS);
    s.judge.excused = excuse_rank_2; /* which rank 1 is not */
    for (int i = 1; i < SLOTS; i++) s.page->slot[i].beat.waits = 2;
    assert_int_equal(pass(&s, 11, -1), WATCH_CULPRITS);
    assert_true(s.culprit[1] && !s.culprit[2] && s.culprit[3]);
    expect_text(&s, WATCH_CULPRITS,
                "rank 1 (and 1 more) has not come to the exchange of step 17, where 1 rank waits for it: it runs, but "
                "has got nothing done for 10 s; it was last in step 17, communicate");
    s.how = " (it is stopped: SIGSTOP)";
    expect_text(&s, WATCH_CULPRITS,
                "rank 1 (and 1 more) has not come to the exchange of step 17, where 1 rank waits for it: it has got "
                "nothing done for 10 s (it is stopped: SIGSTOP); it was last in step 17, communicate");
    scene_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_rank),
        cmocka_unit_test(stuck_rank),
        cmocka_unit_test(busy_rank),
        cmocka_unit_test(long_activities),
        cmocka_unit_test(who_does_not_wait_says_nothing),
        cmocka_unit_test(every_wait_begins_anew),
        cmocka_unit_test(two_ranks),
        cmocka_unit_test(debugger),
        cmocka_unit_test(ranks_without_watchdog),
        cmocka_unit_test(another_node),
        cmocka_unit_test(turns_of_others),
        cmocka_unit_test(nodes_in_turn),
        cmocka_unit_test(everybody_waits),
        cmocka_unit_test(stopped_while_it_waits),
        cmocka_unit_test(places),
        cmocka_unit_test(unnamed_ranks),
        cmocka_unit_test(one_waits),
    };
    setenv("CMOCKA_TEST_ABORT", "0", 1);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
