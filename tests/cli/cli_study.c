/* cli_study.c: the decisions of the scaling study over tables made here: who wins a cell by the model and in
 * simulation, how far ours is ahead, twins, local work, and what is still to be simulated. Two networks of which the
 * second is ten times as fast as the first, one model, P = 4, 8, 16, of which 4 and 8 are simulated. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/study/plan.h"
#include "cli/study/tables.h"
#include "comm/cost/simulation.h"

enum { SLOW, FAST };
enum { COO32, PACKED_F32, PACKED_FAST_F32, PACKED, PACKED_FAST, FORMATS }; /* as study_format has them */
enum { IN_COO32, LOSSLESS, ROUNDED };                                      /* classes */
enum { P4, P8, P16 };

static struct study *s;

static size_t named(const char *algo) {
    size_t i = study_find_algo(algo);
    assert_non_null(exchanges[i]);
    return i;
}

static size_t cell_of(size_t net, size_t size) {
    return study_cell(s, net, 0, 0, size);
}

/* Seconds by the model on the slow network at each P: in coo32 and packed; packed-f32 is between the two, and what is
 * packed fast takes a tenth longer. */
static const struct {
    const char *algo;
    double seconds[3][2];
} predicted[] = {{"dense", {{90, 90}, {90, 90}, {90, 90}}},  {"topka", {{2, 1.5}, {6, 5}, {20, 15}}},
                 {"topkdsa", {{9, 9}, {30, 30}, {90, 90}}},  {"gtopk", {{4, 3}, {6, 4.5}, {8, 6}}},
                 {"gtopk-rd", {{2.1, 1.6}, {3, 2}, {4, 3}}}, {"oktopk", {{9, 9}, {20, 20}, {50, 50}}},
                 {"micro", {{6, 6}, {7, 7}, {8, 8}}},        {"spardl", {{4, 3.5}, {4, 3.5}, {4.5, 2.5}}}};

static void predict(size_t net, double factor) {
    for (size_t i = 0; i < sizeof predicted / sizeof *predicted; i++)
        for (size_t p = 0; p < 3; p++) {
            size_t algo = named(predicted[i].algo), cell = cell_of(net, p);
            const double *seconds = predicted[i].seconds[p];
            s->predicted[study_at(cell, algo, COO32)] = seconds[0] * factor;
            if (!best_takes_format(exchanges[algo])) continue;
            s->predicted[study_at(cell, algo, PACKED_F32)] = (seconds[0] + seconds[1]) / 2 * factor;
            s->predicted[study_at(cell, algo, PACKED)] = seconds[1] * factor;
            for (size_t w = PACKED_FAST_F32; w < FORMATS; w += 2)
                s->predicted[study_at(cell, algo, w)] = s->predicted[study_at(cell, algo, w - 1)] * 1.1;
        }
}

static int make_study(void **state) {
    (void)state;
    s = study_new();
    s->nets = 2;
    s->models = s->densities = 1;
    s->sizes = 3;
    s->runs = 2;
    s->net[SLOW].of = (struct network){.name = "slow", .alpha = 1, .beta = 0.1};
    s->net[FAST].of = (struct network){.name = "fast", .alpha = 0.1, .beta = 0.01};
    s->model[0] = (struct study_model){"net", "net", "net", 1000000};
    s->density[0] = 0.01;
    for (int p = 0; p < 3; p++) s->P[p] = 4 << p;
    memcpy(s->run, s->P, sizeof s->run);
    study_find_twins(s);
    study_open(s);
    predict(SLOW, 1);
    predict(FAST, 0.1);
    return 0;
}

static int drop_study(void **state) {
    (void)state;
    study_free(s);
    return 0;
}

/* In simulation gtopk-rd is faster than topka at P = 4. */
static void simulate(void) {
    static const struct {
        const char *algo;
        double seconds[FORMATS];
    } rows[] = {{"topka", {2.5, 2.1, 2.2, 1.8, 1.9}}, {"topkdsa", {30, 30, 30, 30, 30}},
                {"gtopk", {4, 3.5, 3.6, 3, 3.1}},     {"gtopk-rd", {2, 1.5, 1.6, 1, 1.1}},
                {"oktopk", {3, 2.8, 2.9, 2.5, 2.6}},  {"micro", {5, 4.5, 4.6, 4.1, 4.2}},
                {"spardl", {4.2, 3.9, 4, 3.6, 3.7}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t w = 0; w < FORMATS; w++)
            s->simulated[study_at(cell_of(SLOW, P4), named(rows[i].algo), w)] = rows[i].seconds[w];
}

/* "kind winner seconds published ours format ahead" of a cell in a class of messages. */
static void is_line(bool charged, size_t net, size_t size, size_t class, const char *wanted) {
    char text[256];
    study_compare(s);
    const struct study_line *l = study_line_at(s, charged, class, cell_of(net, size));
    snprintf(text, sizeof text, "%s %s %.6g %s %s %s %.4g", l->simulated ? "simulated" : "model",
             exchanges[l->winner.algo]->name, l->winner.seconds, exchanges[l->published.algo]->name,
             exchanges[l->ours.algo]->name, study_format(l->ours.format)->name, l->ahead);
    if (strcmp(text, wanted) != 0) fail_msg("%s, not %s", text, wanted);
}

static void is_cell(size_t net, size_t size, size_t class, const char *wanted) {
    is_line(false, net, size, class, wanted);
}

/* -- who wins -------------------------------------------------------------------------------------- */
static void classes_of_messages(void **state) {
    (void)state;
    assert_int_equal(study_formats(), FORMATS);
    assert_string_equal(study_format(COO32)->name, "coo32");
    assert_string_equal(study_format(PACKED_F32)->name, "packed-f32");
    assert_string_equal(study_format(PACKED_FAST_F32)->name, "packed-fast-f32");
    assert_string_equal(study_format(PACKED)->name, "packed");
    assert_string_equal(study_format(PACKED_FAST)->name, "packed-fast");
    assert_null(study_format(FORMATS));
    assert_string_equal(study_class(IN_COO32), "coo32");
    assert_string_equal(study_class(LOSSLESS), "lossless");
    assert_string_equal(study_class(ROUNDED), "rounded");
    assert_int_equal(study_class_formats(IN_COO32), COO32 + 1);
    assert_int_equal(study_class_formats(LOSSLESS), PACKED_FAST_F32 + 1);
    assert_int_equal(study_class_formats(ROUNDED), PACKED_FAST + 1);
    assert_ptr_equal(study_class_format(IN_COO32), study_format(COO32));
    assert_ptr_equal(study_class_format(LOSSLESS), study_format(PACKED_F32));
    assert_ptr_equal(study_class_format(ROUNDED), study_format(PACKED));
    assert_true(study_published(exchanges[named("topka")], COO32));
    assert_false(study_published(exchanges[named("topka")], PACKED));
    assert_false(study_published(exchanges[named("gtopk-rd")], COO32));
    assert_true(study_published(exchanges[named("micro")], COO32));
    assert_false(study_published(exchanges[named("micro")], PACKED));
    assert_true(study_published(exchanges[named("dense")], PACKED));
}

static void twins(void **state) {
    (void)state;
    assert_int_equal(s->net[SLOW].twin, -1);
    assert_int_equal(s->net[FAST].twin, SLOW);
    assert_true(fabs(s->net[FAST].factor - 0.1) < 1e-12);
    s->net[FAST].of.alpha = 0.11;
    study_find_twins(s);
    assert_int_equal(s->net[FAST].twin, -1);
}

static void by_the_model(void **state) {
    (void)state;
    study_compare(s);
    for (size_t class = 0; class < STUDY_CLASSES; class ++)
        for (size_t cell = 0; cell < study_cells(s); cell++)
            assert_false(study_line_at(s, false, class, cell)->simulated);
    is_cell(SLOW, P4, IN_COO32, "model topka 2 topka gtopk-rd coo32 0.9524"); /* ours is behind */
    is_cell(SLOW, P4, ROUNDED, "model topka 1.5 topka topka packed 1.333");   /* in packed topka is ours */
    is_cell(SLOW, P8, IN_COO32, "model gtopk-rd 3 spardl gtopk-rd coo32 1.333");
    is_cell(SLOW, P16, ROUNDED, "model spardl 2.5 spardl spardl packed 1.8"); /* what is published stays in coo32 */
}

static void in_simulation(void **state) {
    (void)state;
    simulate();
    is_cell(SLOW, P4, IN_COO32, "simulated gtopk-rd 2 topka gtopk-rd coo32 1.25");
    is_cell(SLOW, P4, LOSSLESS, "simulated gtopk-rd 1.5 topka gtopk-rd packed-f32 1.667");
    is_cell(SLOW, P4, ROUNDED, "simulated gtopk-rd 1 topka gtopk-rd packed 2.5");
    is_cell(FAST, P4, ROUNDED, "simulated gtopk-rd 0.1 topka gtopk-rd packed 2.5"); /* a twin: a tenth */
    is_cell(SLOW, P8, IN_COO32, "model gtopk-rd 3 spardl gtopk-rd coo32 1.333");
    assert_true(study_line_at(s, false, IN_COO32, cell_of(SLOW, P4))->predicted.algo == named("topka"));
}

/* gtopk-rd packs at a price, topka in coo32 does not; who has none in the table is left out. */
static void with_local_work(void **state) {
    (void)state;
    static const char *const algos[] = {"topka", "gtopk-rd", "micro"};
    static const double seconds[FORMATS] = {0.1, 1.5, 1.5, 1.4, 1.4};
    simulate();
    for (size_t net = 0; net < 2; net++)
        for (size_t i = 0; i < 3; i++)
            for (size_t w = 0; w < FORMATS; w++) s->local[study_at(cell_of(net, P4), named(algos[i]), w)] = seconds[w];
    is_line(true, SLOW, P4, IN_COO32, "simulated gtopk-rd 2.1 topka gtopk-rd coo32 1.238");
    is_line(true, SLOW, P4, LOSSLESS, "simulated gtopk-rd 2.1 topka gtopk-rd coo32 1.238"); /* packing takes longer */
    is_line(true, FAST, P4, ROUNDED, "simulated gtopk-rd 0.3 topka gtopk-rd coo32 1.167");  /* a twin no more */
    is_cell(SLOW, P4, ROUNDED, "simulated gtopk-rd 1 topka gtopk-rd packed 2.5");
    s->local[study_at(cell_of(SLOW, P4), named("gtopk-rd"), PACKED_FAST)] = 0.2;
    is_line(true, SLOW, P4, ROUNDED, "simulated gtopk-rd 1.3 topka gtopk-rd packed-fast 2");
    assert_false(study_line_at(s, true, IN_COO32, cell_of(SLOW, P8))->there);
    struct study_view view = {.simulated = true, .charged = true};
    assert_true(study_lead(s, view, cell_of(SLOW, P4), ROUNDED) == 2);
    view.free_packing = true; /* 0.1 in every format, on 2.5 and 2, 1.5 and 1 */
    assert_true(study_lead(s, view, cell_of(SLOW, P4), IN_COO32) == 1.238);
    assert_true(study_lead(s, view, cell_of(SLOW, P4), LOSSLESS) == 1.625);
    assert_true(study_lead(s, view, cell_of(SLOW, P4), ROUNDED) == 2.364);
    assert_false(study_counts(s, study_line_at(s, false, IN_COO32, cell_of(FAST, P4))));
    assert_true(study_counts(s, study_line_at(s, true, IN_COO32, cell_of(FAST, P4))));
}

static void one_that_is_missing(void **state) {
    (void)state;
    simulate();
    s->simulated[study_at(cell_of(SLOW, P4), named("micro"), COO32)] = NAN;
    is_cell(SLOW, P4, IN_COO32, "model topka 2 topka gtopk-rd coo32 0.9524");
    is_cell(SLOW, P4, ROUNDED, "model topka 1.5 topka topka packed 1.333");
}

/* Equal ones: that of the shorter name. */
static void ties(void **state) {
    (void)state;
    const struct study_view model = {0};
    size_t cell = cell_of(SLOW, P4);
    s->predicted[study_at(cell, named("gtopk"), COO32)] = 2;
    assert_true(study_best(s, model, STUDY_ALL, cell, COO32).algo == named("topka"));
    s->predicted[study_at(cell, named("topkdsa"), COO32)] = 1; /* stands before gtopk */
    s->predicted[study_at(cell, named("gtopk-rd"), COO32)] = 1;
    s->predicted[study_at(cell, named("gtopk"), COO32)] = 1;
    assert_true(study_best(s, model, STUDY_ALL, cell, COO32).algo == named("gtopk"));
    assert_true(study_best(s, model, STUDY_OURS, cell, COO32).algo == named("gtopk-rd"));
}

/* dense is not simulated; among simulated ones it has its line. */
static void dense_by_its_line(void **state) {
    (void)state;
    simulate();
    s->predicted[study_at(cell_of(SLOW, P4), named("dense"), COO32)] = 0.5;
    is_cell(SLOW, P4, IN_COO32, "simulated dense 0.5 dense gtopk-rd coo32 0.25");
    s->predicted[study_at(cell_of(SLOW, P4), named("onebit"), COO32)] = 0.4; /* as all that send every entry */
    is_cell(SLOW, P4, IN_COO32, "simulated onebit 0.4 onebit gtopk-rd coo32 0.2");
}

/* A lead within the error of a simulated step is none, on either side. */
static void leads(void **state) {
    (void)state;
    s->error = 0.05;
    assert_int_equal(study_status(s, 1.06), STUDY_AHEAD);
    s->error = 0.083;
    assert_int_equal(study_status(s, 1.06), STUDY_WITHIN);
    assert_int_equal(study_status(s, 0.93), STUDY_WITHIN);
    assert_int_equal(study_status(s, 0.91), STUDY_BEHIND);
}

/* -- what is to be simulated ----------------------------------------------------------------------- */
/* The algorithms of all jobs of a cell in a format, in the order of their table; micro's last. Returns how many jobs.
 */
static size_t plan(size_t net, size_t size, size_t format, char text[256]) {
    struct plan_job job[PLAN_JOBS];
    size_t count = s->net[net].twin < 0 ? plan_jobs(s, cell_of(net, size), format, job) : 0;
    *text = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), 256 - strlen(text), "%s%s", i > 0 ? "; " : "", job[i].algos);
    return count;
}

static void is_plan(size_t size, size_t format, const char *wanted) {
    char text[256];
    plan(SLOW, size, format, text);
    if (strcmp(text, wanted) != 0) fail_msg("planned: %s; not %s", text, wanted);
}

static void at_the_first_p(void **state) {
    (void)state;
    char text[256];
    is_plan(P4, COO32, "topka topkdsa gtopk gtopk-rd oktopk spardl; micro"); /* micro in a job of its own */
    for (size_t w = PACKED_F32; w < FORMATS; w++) is_plan(P4, w, "topka topkdsa gtopk gtopk-rd oktopk spardl; micro");
    is_plan(P16, COO32, ""); /* which is not asked for */
    assert_int_equal(plan(FAST, P4, COO32, text), 0);
    struct plan_job job[PLAN_JOBS];
    plan_jobs(s, cell_of(SLOW, P4), COO32, job);
    assert_true(job[0].scale == 2.44141 && job[1].scale == 2.44141); /* cut from 10000 to 4096 entries */
    assert_true(job[1].apart && !job[0].apart);
    assert_true(job[0].seconds > job[1].seconds && job[1].seconds > 0.3);
}

static void at_the_next_p(void **state) {
    (void)state;
    simulate();
    is_plan(P4, COO32, "");
    is_plan(P8, COO32, "topka gtopk-rd oktopk spardl"); /* who was near, or is by the model */
    for (size_t w = PACKED_F32; w < FORMATS; w++) is_plan(P8, w, "topka gtopk-rd oktopk spardl"); /* as in coo32 */
    s->predicted[study_at(cell_of(SLOW, P8), named("gtopk"), PACKED)] = 2.1;
    is_plan(P8, PACKED, "topka gtopk gtopk-rd oktopk spardl"); /* near in this format alone */
    s->simulated[study_at(cell_of(SLOW, P4), named("micro"), COO32)] = NAN;
    is_plan(P4, COO32, "micro");
    is_plan(P4, PACKED, "");
}

/* A published one stays in where it is near the best published one, by the model or at the P before; ours in any case.
 */
static void near_the_published(void **state) {
    (void)state;
    simulate();
    double *doubling = &s->simulated[study_at(cell_of(SLOW, P4), named("gtopk-rd"), COO32)];
    double *gtopk = &s->predicted[study_at(cell_of(SLOW, P8), named("gtopk"), COO32)];
    *doubling = 1.2; /* oktopk, 3, is 2.5 times that, but 1.2 times topka */
    is_plan(P8, COO32, "topka gtopk-rd oktopk spardl");
    *gtopk = 5.1; /* 1.275 times spardl */
    is_plan(P8, COO32, "topka gtopk gtopk-rd oktopk spardl");
    *gtopk = 5.3;
    *doubling = s->predicted[study_at(cell_of(SLOW, P8), named("gtopk-rd"), COO32)] = 50;
    is_plan(P8, COO32, "topka gtopk gtopk-rd oktopk spardl"); /* all are near topka now, gtopk with 4 of 2.5 */
}

/* What is divided among the ranks keeps 16 entries for each of them; --quick cuts all alike. */
static void shortened(void **state) {
    (void)state;
    const struct exchange_ops *gtopk = exchanges[named("gtopk")], *topka = exchanges[named("topka")];
    assert_int_equal(study_least_k(s, gtopk, 1024, 100000), 4096);
    assert_int_equal(study_least_k(s, topka, 1024, 100000), 16384);
    assert_int_equal(study_least_k(s, topka, 64, 100000), 4096);
    assert_int_equal(study_least_k(s, topka, 64, 3000), 3000);
    s->least = 1024;
    assert_int_equal(study_least_k(s, topka, 1024, 100000), 1024);
}

/* -- what a simulation takes ----------------------------------------------------------------------- */
static double memory(const char *algo, enum simulation_held held, bool checked) {
    const struct exchange_ops *list[] = {exchanges[named("dense")], exchanges[named(algo)]};
    return simulation_memory(256, 1e6, 0.001, held, list, 2, checked);
}

/* 2 MB a rank; 8 bytes an entry, or 200 for each of its k; and so many for each of the k entries of all ranks. */
static void memory_of_ranks(void **state) {
    (void)state;
    const double P = 256, n = 1e6, k = 1000;
    assert_true(memory("dense", SIMULATION_ARRAYS, false) == P * 2e6);
    assert_true(memory("dense", SIMULATION_ARRAYS, true) == P * (2e6 + 20 * n));
    assert_true(memory("topka", SIMULATION_ARRAYS, false) == P * (2e6 + 8 * n + 16 * k * P));
    assert_true(memory("oktopk", SIMULATION_ARRAYS, false) == P * (2e6 + 8 * n + 32 * k * P));
    assert_true(memory("gtopk", SIMULATION_LISTS, false) == P * (2e6 + 200 * k));
    assert_true(memory("topka", SIMULATION_LISTS, false) == P * (2e6 + k * (200 + 22 * P)));
    assert_true(memory("gaussiank", SIMULATION_LISTS, false) == memory("topka", SIMULATION_LISTS, false));
    assert_true(memory("topkdsa", SIMULATION_LISTS, true) == P * (2e6 + 20 * n + k * (200 + 55 * P)));
    assert_true(simulation_seconds(exchanges[named("gtopk")], 64, 1000) == 64 * (2.5e-3 + 1000 * 0.4e-6));
}

static void medians(void **state) {
    (void)state;
    double x[] = {3, 1, 2, 5};
    table_sort(x, 4);
    assert_true(x[0] == 1 && x[1] == 2 && x[2] == 3 && x[3] == 5);
    assert_true(table_median(x, 4) == 2 && table_median(x, 3) == 2 && table_median(x, 1) == 1);
}

#define WITH_STUDY(test) cmocka_unit_test_setup_teardown(test, make_study, drop_study)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_STUDY(classes_of_messages),
        WITH_STUDY(twins),
        WITH_STUDY(by_the_model),
        WITH_STUDY(in_simulation),
        WITH_STUDY(with_local_work),
        WITH_STUDY(one_that_is_missing),
        WITH_STUDY(ties),
        WITH_STUDY(leads),
        WITH_STUDY(at_the_first_p),
        WITH_STUDY(at_the_next_p),
        WITH_STUDY(dense_by_its_line),
        WITH_STUDY(near_the_published),
        WITH_STUDY(shortened),
        cmocka_unit_test(memory_of_ranks),
        cmocka_unit_test(medians),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
