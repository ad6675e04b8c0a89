/* comm_best.c: the decision of --algo auto and predict --best, without MPI: rankings on given networks against costs
 * worked out here once more, whom to try, and whom the measured times let win. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "comm/cost/best.h"

static const struct cost_case vgg16 = {.n = 14728266, .k = 14728, .P = 32, .ranks_per_node = 1};

static const struct network *network_named(const char *name) {
    for (const struct network *net = networks; *net->name; net++)
        if (strcmp(net->name, name) == 0) return net;
    fail_msg("no network %s", name);
    return NULL;
}

static const struct candidate *find(const struct candidate *list, size_t count, const char *algo, const char *wire) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].ops->name, algo) == 0 && strcmp(list[i].wire ? list[i].wire->name : "-", wire) == 0)
            return &list[i];
    return NULL;
}

/* Everything once, in order, with no format where none travels. */
static void all_are_ranked(void **state) {
    (void)state;
    struct candidate list[BEST_MAX];
    size_t count = best_rank(&vgg16, 1, network_named("1gbe"), NULL, NULL, NULL, false, list), expected = 0;
    for (size_t i = 0; exchanges[i]; i++) {
        const char *name = exchanges[i]->name;
        for (size_t w = 0; wires[w]; w++) {
            bool there = best_takes_format(exchanges[i]) || (exchanges[i]->halves && wires[w]->pack);
            assert_true((find(list, count, name, wires[w]->name) != NULL) == there);
            expected += there;
        }
        expected += !best_takes_format(exchanges[i]);
        assert_true((find(list, count, name, "-") != NULL) != best_takes_format(exchanges[i]));
    }
    assert_int_equal(count, expected);
    for (size_t i = 0; i < count; i++) {
        assert_true(isnan(list[i].measured));
        if (i > 0) assert_true(list[i].seconds >= list[i - 1].seconds);
    }
}

/* 1 Gbit/s, VGG-16, density 0.001, P = 32, as the cost lines have it. */
static void on_1gbe(void **state) {
    (void)state;
    const double alpha = 436e-6, beta = 3.6e-8, n = 14728266, k = 14728, P = 32;
    struct candidate list[BEST_MAX];
    size_t count = best_rank(&vgg16, 1, network_named("1gbe"), wires[0], NULL, NULL, false, list);
    const struct {
        const char *algo, *wire;
        double seconds;
    } rows[] = {{"spardl", "coo32", 10 * alpha + 4 * k * (P - 1) / P * beta},
                {"gtopk-rd", "coo32", 5 * alpha + 10 * k * beta},
                {"micro", "coo32", 15 * alpha + 3 * k * (P - 1) / P * beta},
                {"gtopk", "coo32", 10 * alpha + 20 * k * beta},
                {"topka", "coo32", 5 * alpha + 2 * k * (P - 1) * beta},
                {"oktopk", "coo32", (2 * P + 10) * alpha + 6 * k * (P - 1) / P * beta},
                {"dense", "-", 10 * alpha + 2 * n * (P - 1) / P * beta}};
    const struct candidate *last = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct candidate *x = find(list, count, rows[i].algo, rows[i].wire);
        if (!x || fabs(x->seconds / rows[i].seconds - 1) > 1e-12) fail_msg("%s: not as its line says", rows[i].algo);
        if (last && x < last) fail_msg("%s before the one above it", rows[i].algo);
        last = x;
    }
    assert_null(find(list, count, "topka", "packed"));
    count = best_rank(&vgg16, 1, network_named("1gbe"), NULL, NULL, NULL, false, list);
    assert_string_equal(list[0].ops->name, "fedavg"); /* which the caller leaves out */
    const struct candidate *doubling = find(list, count, "gtopk-rd", "packed");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_true(doubling->seconds < rows[i].seconds);
    for (size_t w = 0; wires[w]; w++) assert_true(doubling <= find(list, count, "gtopk-rd", wires[w]->name));
}

/* Where messages are short, gathering the sizes of packed ones costs more than it saves. */
static void coo32_where_alpha_rules(void **state) {
    (void)state;
    struct candidate list[BEST_MAX];
    const struct network slow_start = {.alpha = 1e-3, .beta = 1e-9, .node_alpha = 1e-3, .node_beta = 1e-9};
    struct cost_case small = {.n = 269722, .k = 269, .P = 4, .ranks_per_node = 1};
    size_t count = best_rank(&small, 1, &slow_start, NULL, NULL, NULL, false, list);
    assert_true(find(list, count, "topka", "coo32") < find(list, count, "topka", "packed"));
    assert_true(find(list, count, "gtopk", "packed") < find(list, count, "gtopk", "coo32")); /* gathers none */
}

/* Groups of layers: their costs add up. Rows that are not allowed are not there. */
static void groups_and_exclusions(void **state) {
    (void)state;
    struct candidate one[BEST_MAX], two[BEST_MAX];
    bool allowed[64] = {false};
    size_t gtopk = 0;
    for (size_t i = 0; exchanges[i]; i++) {
        if (strcmp(exchanges[i]->name, "gtopk") == 0) gtopk = i;
        allowed[i] = strcmp(exchanges[i]->name, "gtopk") == 0 || strcmp(exchanges[i]->name, "dense") == 0;
    }
    const struct network *net = network_named("10gbe");
    const struct cost_case half = {.n = 7000000, .k = 7000, .P = 8, .ranks_per_node = 1}, halves[2] = {half, half};
    size_t count = best_rank(&half, 1, net, NULL, allowed, NULL, false, one);
    assert_int_equal(best_rank(halves, 2, net, NULL, allowed, NULL, false, two), count);
    assert_true(count >= 8 && !find(one, count, "topka", "coo32") && find(one, count, "dense", "bf16"));
    for (size_t i = 0; i < count; i++) {
        assert_true(one[i].ops == two[i].ops && one[i].wire == two[i].wire);
        assert_true(fabs(two[i].seconds / (2 * one[i].seconds) - 1) < 1e-12);
    }
    allowed[gtopk] = false;
    assert_int_equal(best_rank(&half, 1, net, wires[1], allowed, NULL, false, one), 1);
    assert_string_equal(one[0].ops->name, "dense");
    allowed[0] = false;
    assert_int_equal(best_rank(&half, 1, net, NULL, allowed, NULL, false, one), 0);
}

/* Local work is in a prediction, and turns what it turns: without it packed is ahead; with it where packing an entry
 * takes more than what it spares the network. Who is not known is left out. */
static void local_work_is_charged(void **state) {
    (void)state;
    const struct network *net = network_named("10gbe");
    static struct local_costs local;
    struct candidate alone[BEST_MAX], charged[BEST_MAX];
    size_t count = best_rank(&vgg16, 1, net, NULL, NULL, NULL, false, alone);
    assert_true(find(alone, count, "gtopk-rd", "packed") < find(alone, count, "gtopk-rd", "coo32"));
    for (size_t i = 0; exchanges[i]; i++) {
        if (!exchanges[i]->sparse) continue;
        for (size_t w = 0; wires[w]; w++)
            local.of[i][w] = (struct local_cost){.pack = w ? 20e-9 : 1e-9, .select = 1e-10};
        if (strcmp(exchanges[i]->name, "topka") == 0) local.of[i][0].select = NAN;
    }
    assert_int_equal(best_rank(&vgg16, 1, net, NULL, NULL, &local, false, charged), count - 1);
    assert_null(find(charged, count - 1, "topka", "coo32"));
    assert_non_null(find(charged, count - 1, "topka", "packed"));
    const struct candidate *coo32 = find(charged, count - 1, "gtopk-rd", "coo32");
    assert_true(coo32 < find(charged, count - 1, "gtopk-rd", "packed"));
    /* five messages of k entries that are packed, and the selection */
    assert_true(fabs(coo32->local / (5 * 14728 * 1e-9 + 14728266 * 1e-10) - 1) < 1e-12);
    assert_true(fabs(coo32->seconds / (find(alone, count, "gtopk-rd", "coo32")->seconds + coo32->local) - 1) < 1e-12);
    assert_true(find(charged, count - 1, "dense", "-")->local == 0);
}

/* Adding the values of a dense sum is charged where it takes longer than they do to come in, and in f32 alone. */
static void dense_additions_are_charged_beyond_their_transfers(void **state) {
    (void)state;
    static const char *const rows[] = {"dense", "dense-ovlp", "torus2d"};
    static struct local_costs local;
    struct candidate list[BEST_MAX];
    const double adding = 1e-9, values = 14728266.0 * 31 / 32;
    for (size_t i = 0; exchanges[i]; i++)
        for (size_t w = 0; wires[w]; w++) local.of[i][w] = (struct local_cost){.sum = adding};
    for (size_t net = 0; *networks[net].name; net++) {
        size_t count = best_rank(&vgg16, 1, &networks[net], NULL, NULL, &local, false, list);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            double wanted = values * fmax(0, adding - networks[net].beta);
            if (fabs(find(list, count, rows[i], "-")->local - wanted) > 1e-9 * values * adding)
                fail_msg("%s on %s: not %g s", rows[i], networks[net].name, wanted);
        }
        assert_true(find(list, count, "dense", "bf16")->local == 0 && find(list, count, "gtopk", "coo32")->local == 0);
    }
    const struct network *fast = network_named("100gbe");
    struct cost_case two_of_16 = vgg16;
    two_of_16.ranks_per_node = 16; /* inside a node a value takes 2e-10 s */
    size_t count = best_rank(&two_of_16, 1, fast, NULL, NULL, &local, false, list);
    double shard = ceil(14728266 / 16.0), wanted = shard / 2 * (adding - fast->beta) + 15 * shard * (adding - 2e-10);
    assert_true(fabs(find(list, count, "torus2d", "-")->local - wanted) < 1e-9 * wanted);
    assert_true(best_local_seconds(exchanges[0], NULL, &vgg16, &local.of[0][0], NULL) == 0);
}

/* One rank exchanges nothing: all are equal, and the order is that of the tables. */
static void one_rank(void **state) {
    (void)state;
    struct candidate list[BEST_MAX];
    struct cost_case alone = {.n = 1000, .k = 10, .P = 1, .ranks_per_node = 1};
    best_rank(&alone, 1, network_named("1gbe"), NULL, NULL, NULL, false, list);
    assert_string_equal(list[0].ops->name, "dense");
    assert_true(list[0].seconds == 0);
}

static const struct exchange_ops *row_of(char letter) {
    return exchanges[letter - 'a'];
}

/* A ranking of these algorithms, a letter each, in formats of their own. */
static size_t ranking(const char *letters, struct candidate *list) {
    size_t count = strlen(letters);
    for (size_t i = 0; i < count; i++)
        list[i] = (struct candidate){.ops = row_of(letters[i]), .seconds = (double)i, .measured = NAN};
    return count;
}

static void whom_to_try(void **state) {
    (void)state;
    static const struct {
        const char *letters;
        size_t tries, expected, place[3];
    } cases[] = {
        {"abcd", 3, 3, {0, 1, 2}}, {"aabb", 3, 3, {0, 1, 2}},   {"aaabc", 3, 3, {0, 1, 3}}, {"aaaaac", 3, 3, {0, 1, 5}},
        {"aaa", 3, 3, {0, 1, 2}},  {"aab", 2, 2, {0, 2, 9}},    {"ab", 3, 2, {0, 1, 9}},    {"a", 3, 1, {0, 9, 9}},
        {"aab", 1, 1, {0, 9, 9}},  {"abbbbb", 3, 3, {0, 1, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct candidate list[BEST_MAX];
        size_t chosen[3] = {9, 9, 9}, count = ranking(cases[i].letters, list);
        assert_int_equal(best_to_try(list, count, cases[i].tries, chosen), cases[i].expected);
        for (size_t t = 0; t < cases[i].expected; t++)
            if (chosen[t] != cases[i].place[t])
                fail_msg("%s: place %zu instead of %zu", cases[i].letters, chosen[t], cases[i].place[t]);
    }
}

static void the_measured_one_wins(void **state) {
    (void)state;
    struct candidate list[BEST_MAX];
    const size_t chosen[3] = {0, 1, 3};
    ranking("aabcd", list);
    const double times[][3] = {{3, 2, 1}, {1, 2, 3}, {2, 1, 3}, {2, 2, 2}, {3, 2, 2}};
    const size_t winner[] = {3, 0, 1, 0, 1};
    for (size_t i = 0; i < 5; i++) {
        for (size_t t = 0; t < 3; t++) list[chosen[t]].measured = times[i][t];
        assert_true(best_measured(list, chosen, 3) == &list[winner[i]]);
    }
    assert_true(best_measured(list, chosen, 1) == &list[0]);
}

/* A combination costs only the rows that move something for it: hitopk one more all-gather of the gradient in its node.
 */
static void combinations_cost_what_they_move(void **state) {
    (void)state;
    const struct cost_case nodes = {.n = 14728266, .k = 14728, .P = 32, .ranks_per_node = 4};
    const struct network net = {"two speeds", 1e-4, 1e-8, 1e-5, 1e-9, ""};
    struct candidate plain[BEST_MAX], combined[BEST_MAX];
    size_t count = best_rank(&nodes, 1, &net, wires[0], NULL, NULL, false, plain);
    assert_int_equal(best_rank(&nodes, 1, &net, wires[0], NULL, NULL, true, combined), count);
    for (size_t i = 0; i < count; i++) {
        const char *name = plain[i].ops->name;
        const struct candidate *other = find(combined, count, name, plain[i].wire ? plain[i].wire->name : "-");
        double shard = 3682067, more = strcmp(name, "hitopk") == 0 ? 2 * 1e-5 + 3 * shard * 1e-9 : 0;
        assert_non_null(other);
        assert_true(fabs(other->seconds - plain[i].seconds - more) <= 1e-12);
        if (i > 0) assert_true(combined[i].seconds >= combined[i - 1].seconds);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_ranked),
        cmocka_unit_test(on_1gbe),
        cmocka_unit_test(coo32_where_alpha_rules),
        cmocka_unit_test(groups_and_exclusions),
        cmocka_unit_test(one_rank),
        cmocka_unit_test(whom_to_try),
        cmocka_unit_test(the_measured_one_wins),
        cmocka_unit_test(combinations_cost_what_they_move),
        cmocka_unit_test(local_work_is_charged),
        cmocka_unit_test(dense_additions_are_charged_beyond_their_transfers),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
