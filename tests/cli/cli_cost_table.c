/* cli_cost_table.c: questions to a table of costs: which rows answer them, what is said of what is not in it, and that
 * the ranking of predict --best is charged by the same answers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/table.h"
#include "cli/network/cost_table.h"
#include "cli/network/local_costs.h"

static const char text[] = "# here cores: 2\n"
                           "# here machine: a test\n"
                           "model,n,device,what,algorithm,selector,wire,density,batch,ranks,seconds,per_second,source\n"
                           "mine,1000,here,compute,,,,,128,,0.5,256,a test\n"
                           "mine,1000,here,select,,exact,,0.01,,,0.02,,a test\n"
                           "mine,1000,here,select,,exact,,0.1,,,0.03,,a test\n"
                           "mine,1000,here,select,,mstopk,,0.01,,,0.08,,a test\n"
                           "mine,1000,here,select,micro,,,0.01,,2,0.05,,a test\n"
                           "mine,1000,here,word,topka,exact,coo32,0.01,,8,7e-5,,more ranks than cores\n"
                           "mine,1000,here,word,topka,exact,coo32,0.01,,1,2e-5,,fewer than cores\n"
                           "mine,1000,here,word,topka,exact,coo32,1e-2,,2,1e-5,,a core each\n"
                           "mine,1000,here,word,topka,exact,packed,0.01,,4,4e-5,,more ranks than cores\n"
                           "mine,1000,here,word,topka,exact,packed,0.01,,8,9e-5,,many more\n"
                           "mine,1000,here,word,micro,,coo32,0.01,,2,1e-6,,a test\n"
                           "mine,1000,here,word,hitopk,mstopk,coo32,0.01,,4,1e-9,,a test\n"
                           "mine,1000,here,word,dense,,,,,,0,,not charged\n"
                           "mine,1000,here,sum,,,,,,,3e-10,,a test\n"
                           "mine,1000,there,compute,,,,,,,,,results/published/gtopk-single-gpu.csv model=VGG-16\n"
                           "mine,1000,nowhere,compute,,,,,,,,,results/published/gtopk-single-gpu.csv model=LeNet\n"
                           "other,2000,here,compute,,,,,,,,,not in the zoo\n"
                           "other,2000,here,word,dense,,,,,,0,,not charged\n"
                           "other,2000,here,word,gtopk,exact,coo32,0.01,,2,nan,,a test\n"
                           "other,2000,here,word,topka,exact,coo32,0.01,,2,-1,,a test\n"
                           "other,2000,here,word,oktopk,exact,coo32,0.01,,2,inf,,a test\n";

static char path[] = "/tmp/sparsetrain-costs.XXXXXX";
static struct cost_table table;

static int make_table(void **state) {
    (void)state;
    struct err e = {0};
    int file = mkstemp(path);
    if (file < 0 || write(file, text, sizeof text - 1) != sizeof text - 1 || close(file) != 0) return -1;
    return cost_table_open(&table, path, &e) ? 0 : -1;
}

static int remove_table(void **state) {
    (void)state;
    cost_table_close(&table);
    return unlink(path);
}

static const struct exchange_ops *named(const char *name) {
    const struct exchange_ops *ops;
    TABLE_FIND(exchanges, name, ops);
    assert_non_null(ops);
    return ops;
}

static const struct wire_ops *format(const char *name) {
    const struct wire_ops *wire;
    TABLE_FIND(wires, name, wire);
    assert_non_null(wire);
    return wire;
}

static struct cost_question about(const char *algo) {
    return (struct cost_question){.model = "mine",
                                  .device = "here",
                                  .ops = named(algo),
                                  .density = 0.01,
                                  .ranks_per_node = 1,
                                  .times = COST_SELECT | COST_WORD};
}

/* NAN: unknown, or not charged. */
static void answered(const struct cost_question *q, double compute, double select, double word) {
    struct cost_answer a;
    struct err e = {0};
    const double wanted[] = {compute, select, word};
    if (!cost_table_ask(&table, q, &a, &e)) fail_msg("%s", e.text);
    const double given[] = {a.compute, a.select, a.word};
    for (int i = 0; i < 3; i++)
        if (isnan(wanted[i]) ? !isnan(given[i]) : given[i] != wanted[i])
            fail_msg("%s, time %d: %g, not %g", q->ops->name, i, given[i], wanted[i]);
}

static void lacking(const struct cost_question *q, const char *why) {
    struct cost_answer a;
    struct err e = {0};
    assert_false(cost_table_ask(&table, q, &a, &e));
    if (!strstr(e.text, why)) fail_msg("said \"%s\", not \"%s\"", e.text, why);
    assert_int_equal(err_status(&e), EXIT_USER);
}

/* Of several numbers of ranks the most that had a core each; else the fewest. */
static void which_rows(void **state) {
    (void)state;
    struct cost_question q = about("topka");
    answered(&q, NAN, 0.02, 1e-5);
    q.wire = format("packed");
    answered(&q, NAN, 0.02, 4e-5);
    q.selector = "mstopk";
    answered(&q, NAN, 0.08, 4e-5);
    q = about("micro"); /* selects in a way of its own */
    q.wire = format("coo32");
    answered(&q, NAN, 0.05, 1e-6);
    q = about("hitopk");
    q.ranks_per_node = 4;
    answered(&q, NAN, 0.08 / 4, 1e-9);
    q = about("dense");
    answered(&q, NAN, NAN, NAN);
}

/* Of dense sums alone; a table without them has none. */
static void adding(void **state) {
    (void)state;
    struct cost_answer a;
    struct err e = {0};
    struct cost_question q = about("dense");
    q.times = COST_SUM;
    assert_true(cost_table_ask(&table, &q, &a, &e) && a.sum == 3e-10 && !a.charged);
    q.times = COST_WORD;
    assert_true(cost_table_ask(&table, &q, &a, &e) && isnan(a.sum));
    q.times = COST_ALL;
    q.model = "other";
    assert_true(cost_table_ask(&table, &q, &a, &e) && isnan(a.sum));
    q = about("topka");
    q.times = COST_ALL;
    assert_true(cost_table_ask(&table, &q, &a, &e) && isnan(a.sum) && a.charged);
}

static void computing(void **state) {
    (void)state;
    struct cost_question q = about("topka");
    struct cost_answer a;
    struct err e = {0};
    q.times = COST_ALL;
    answered(&q, 0.5, 0.02, 1e-5);
    q.compute_device = "there"; /* by reference: Table VI of the gTop-k paper's v1 */
    answered(&q, 0.097, 0.02, 1e-5);
    q.tree = path; /* no folder */
    lacking(&q, "/results/published/gtopk-single-gpu.csv");
    q.tree = NULL;
    q.compute_device = "nowhere";
    lacking(&q, "has no iteration_s of LeNet");
    q = about("dense");
    q.model = "other"; /* never run */
    q.times = COST_COMPUTE;
    answered(&q, NAN, NAN, NAN);
    assert_true(cost_table_ask(&table, &q, &a, &e));
    assert_int_equal(a.n, 2000);
}

/* What is not wanted need not be there. */
static void not_wanted(void **state) {
    (void)state;
    struct cost_question q = about("topka");
    q.wire = format("packed-f32");
    lacking(&q, "no wire format packed-f32 of topka for mine on here; it has: coo32, packed");
    q.times = COST_SELECT;
    answered(&q, NAN, 0.02, NAN);
    q.ops = named("oktopk");
    lacking(&q, "no algorithm oktopk for mine on here; it has: topka, micro, hitopk, dense");
    q.times = 0;
    answered(&q, NAN, NAN, NAN);
}

static void what_is_lacking(void **state) {
    (void)state;
    struct cost_question q = about("topka");
    q.model = "min";
    lacking(&q, "has no model min; it has: mine, other");
    q = about("topka");
    q.device = "cuda";
    lacking(&q, "has no device cuda for mine; it has: here, there, nowhere");
    q.device = "there";
    lacking(&q, "has no row word for mine on there; it has: compute");
    q = about("topka");
    q.density = 0.1;
    lacking(&q, "has no density 0.1 of topka for mine on here; it has: 0.01");
    q.times = COST_SELECT; /* there is one of the selection */
    answered(&q, NAN, 0.03, NAN);
    q = about("topka");
    q.selector = "dgc";
    lacking(&q, "has no selector dgc for mine on here; it has: exact, mstopk");
    q = about("gtopk");
    q.model = "other";
    lacking(&q, "a time of gtopk for other on here is \"nan\", which is none");
    q.ops = named("topka");
    lacking(&q, "a time of topka for other on here is \"-1\", which is none");
    q.ops = named("oktopk");
    lacking(&q, "a time of oktopk for other on here is \"inf\", which is none");
}

static void what_it_has(void **state) {
    (void)state;
    struct cost_question q = about("topka");
    struct err e = {0};
    assert_true(cost_table_has(&table, &q));
    q.ops = named("gtopk");
    assert_false(cost_table_has(&table, &q));
    q.model = "other";
    assert_true(cost_table_has(&table, &q));
    assert_true(cost_table_selects(&table, "here", &e));
    assert_false(cost_table_selects(&table, "there", &e));
    assert_non_null(strstr(e.text, "has no selection on it; it has: here"));
    assert_true(cost_cell_is("1e-2", 0.01) && !cost_cell_is("", 0) && !cost_cell_is("0.01x", 0.01));
}

/* The ranking's costs are the answers: of each algorithm and format, by the length of the gradient. */
static void the_ranking(void **state) {
    (void)state;
    static struct local_costs costs;
    struct local_missing missing;
    struct err e = {0};
    char model[LOCAL_NAME];
    size_t answers = 0;
    assert_true(local_from_table(path, "here", 1000, 0.01, &costs, model, &missing, &e));
    assert_string_equal(model, "mine");
    for (size_t i = 0; exchanges[i]; i++)
        for (size_t w = 0; wires[w] && (w == 0 || best_takes_format(exchanges[i])); w++) {
            struct cost_question q = about(exchanges[i]->name);
            struct cost_answer a;
            struct err none = {0};
            const struct local_cost *cost = &costs.of[i][w];
            q.wire = wires[w];
            bool there = cost_table_ask(&table, &q, &a, &none);
            assert_true(there == !isnan(cost->select));
            if (!there) continue;
            answers++;
            assert_true(cost->word == (a.charged ? a.word : 0));
            assert_true(cost->select == (a.charged ? a.select / 1000 : 0));
        }
    assert_int_equal(answers, 5); /* topka in two formats, micro, hitopk, dense */
    assert_non_null(strstr(missing.names, "topka packed-f32"));
    assert_false(local_from_table(path, "here", 999, 0.01, &costs, model, &missing, &e));
    assert_non_null(strstr(e.text, "it has: mine (1000), other (2000) (--n)"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_rows),  cmocka_unit_test(adding),          cmocka_unit_test(computing),
        cmocka_unit_test(not_wanted),  cmocka_unit_test(what_is_lacking), cmocka_unit_test(what_it_has),
        cmocka_unit_test(the_ranking),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_table, remove_table);
}
