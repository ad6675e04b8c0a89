/* comm_library.c: the library's own functions (comm/sparsetrain.h), each row through them against the same row put
 * together by the rig. comm_library_state.c has what is saved and restored, comm_library_mistakes.c what is refused;
 * tests/verbs/cli_library.sh what another program sees of it. */
/* ranks: 1 2 3 4 5 7 8 */
/* faults: 3 */
/* devices: cuda ranks 1 3 */
#include <time.h>

#include "base/clock.h"
#include "tests/lib/library_rig.h"

static uint64_t hash_by_hand(struct comm *c, const struct exchange_ops *ops, size_t groups, size_t slices) {
    static const struct exchange_slice cut[SLICES] = {{0, 20, 25}, {500, 1, 9}, {509, 50, 10}};
    struct reducer_setup setup = {.ops = ops, .seed = 1};
    setup.exchange = (struct exchange_setup){
        .n = N,
        .k_max = density_to_k(0.1, N),
        .group = group,
        .groups = groups,
        .slice = cut,
        .slices = slices,
        .options = rig_options("tau-prime=1,tau=2,demo-decay=0.999,demo-sign=on", GTOPK_CONSERVE)};
    uint64_t hash = 0;
    rig_open_setup(c, setup);
    for (int step = 0; step < STEPS; step++) {
        make_gradient(REAL, c->rank, c->size, step, N, rig.grad);
        assert_true(rig_run(density_to_k(0.1, N)));
        exchange_mean(&rig.reducer.exchange, &rig.sum, rig.device_grad);
        device_download(rig.grad, rig.device_grad, N);
        hash = hash64(hash, rig.grad, sizeof grad);
    }
    rig_close();
    return hash;
}

static void every_row_gives_the_bits_of_one_put_together_by_hand(struct comm *c) {
    for (size_t i = 0; exchanges[i]; i++) {
        const struct exchange_ops *ops = exchanges[i];
        if (!exchange_of_gradients(ops)) continue;
        for (size_t groups = 0; groups <= GROUPS; groups += GROUPS) {
            uint64_t wanted = hash_by_hand(c, ops, groups, 0);
            for (int overlaps = 0; overlaps < (at == grad ? 2 : 3); overlaps++) {
                if (overlaps == 2) at = grad; /* and those of the host */
                sparsetrain *x = opened(ops->name, groups);
                if (hash_of_steps(x, c, 0, STEPS, overlaps) != wanted)
                    fail_msg("%s, %zu groups, overlap %d: other bits", ops->name, groups, overlaps);
                sparsetrain_close(x);
                at = twin;
            }
        }
    }
}

/* Of those that go by slices it matters what these are. */
static void slices_of_the_gradient_are_told(struct comm *c) {
    const char *const rows[] = {"powersgd", "onebit", "topka"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t groups = 0; groups <= GROUPS; groups += GROUPS) {
            sparsetrain *x;
            good(sparsetrain_open_slices(&x, NULL, rows[i], N, of_device(options), group, groups, slice, SLICES, why));
            uint64_t hash = hash_of_steps(x, c, 0, STEPS, false);
            sparsetrain_close(x);
            assert_true(hash == hash_by_hand(c, exchange_named(rows[i]), groups, SLICES));
            assert_true((hash == hash_by_hand(c, exchange_named(rows[i]), groups, 0)) == (i == 2));
        }
}

static void slices_that_are_none_are_told_so(struct comm *c) {
    static const struct {
        const char *text;
        struct sparsetrain_slice slice[2];
    } cases[] = {{"slice 1 of 2 is 1 by 10, where 9 entries are left", {{10, 100}, {1, 10}}},
                 {"slice 0 of 2 is 0 by 9", {{0, 9}, {1, 1009}}},
                 {"slice 0 of 2 is 4611686018427387904 by 4,", {{(size_t)1 << 62, 4}, {1, 1009}}},
                 {"hold all but 1 entries of the gradient's 1009", {{8, 100}, {4, 52}}}};
    const bool last = c->size > 1 && c->rank == c->size - 1;
    sparsetrain *x;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = sparsetrain_open_slices(&x, NULL, "powersgd", N, NULL, NULL, 0, cases[i].slice, 2, why);
        if (status != SPARSETRAIN_MISTAKE || x || !strstr(why, cases[i].text)) fail_msg("case %zu: %s", i, why);
    }
    if (c->size == 1) return;
    assert_int_equal(sparsetrain_open_slices(&x, NULL, "topka", N, NULL, NULL, 0, slice, last ? 0 : SLICES, why),
                     SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "other arguments than rank 0"));
}

/* -- density, statistics ------------------------------------------------------------------------------------------ */
static void the_density_changes_between_steps(struct comm *c) {
    sparsetrain *x;
    struct sparsetrain_stats s;
    good(sparsetrain_open(&x, NULL, "topka", N, of_device("density=0.01,density-max=0.5"), why));
    const double density[] = {0.5, 0.1, 0.01};
    for (int i = 0; i < 3; i++) {
        good(sparsetrain_set_density(x, density[i], why));
        fill(c, i);
        step_of(x, false);
        sparsetrain_get_stats(x, &s);
        assert_true(s.steps == (uint64_t)i + 1 && s.k == density_to_k(density[i], N) && s.local_entries == s.k);
        assert_true(s.global_entries >= s.k && s.global_entries <= s.k * (uint64_t)c->size);
    }
    assert_int_equal(sparsetrain_set_density(x, 0.6, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "0.6"));
    assert_int_equal(sparsetrain_set_density(x, 0, why), SPARSETRAIN_MISTAKE);
    assert_int_equal(sparsetrain_set_density(x, NAN, why), SPARSETRAIN_MISTAKE);
    good(sparsetrain_begin(x, at, why));
    assert_int_equal(sparsetrain_set_density(x, 0.1, why), SPARSETRAIN_MISTAKE);
    good(sparsetrain_run(x, at, why));
    sparsetrain_close(x);
}

/* On one rank another, or one that is out of range: all are told so, and go on with the one that they have. */
static void ranks_that_set_other_densities_are_told_so(struct comm *c) {
    const bool last = c->size > 1 && c->rank == c->size - 1;
    static const double other[] = {0.05, 0.6, 0, NAN};
    if (c->size == 1) return;
    for (size_t i = 0; exchanges[i]; i++) {
        if (!exchange_of_gradients(exchanges[i])) continue;
        uint64_t hash[2];
        for (int differs = 0; differs < 2; differs++) {
            sparsetrain *x;
            good(sparsetrain_open(&x, NULL, exchanges[i]->name, N, of_device("density=0.1,density-max=0.5"), why));
            for (size_t j = 0; differs && j < sizeof other / sizeof *other; j++) {
                assert_int_equal(sparsetrain_set_density(x, last ? other[j] : 0.2, why), SPARSETRAIN_MISTAKE);
                if (!strstr(why, "and rank 0 one of 0.2: all ranks set the same")) fail_msg("%s", why);
            }
            hash[differs] = hash_of_steps(x, c, 0, 2, false);
            good(sparsetrain_set_density(x, 0.2, why));
            hash[differs] ^= hash_of_steps(x, c, 2, 4, true);
            sparsetrain_close(x);
        }
        assert_true(hash[0] == hash[1]);
    }
}

static void what_passed_is_counted(struct comm *c) {
    sparsetrain *x = opened("gtopk", 0);
    struct sparsetrain_stats before, after;
    hash_of_steps(x, c, 0, 2, false);
    sparsetrain_get_stats(x, &before);
    fill(c, 2);
    step_of(x, false);
    sparsetrain_get_stats(x, &after);
    assert_true((double)(after.bytes_sent - before.bytes_sent) / 4 <= after.words_bound);
    assert_true((after.messages_sent > before.messages_sent) == (c->size > 1));
    assert_true(after.seconds[SPARSETRAIN_SELECT] > before.seconds[SPARSETRAIN_SELECT]);
    assert_true(after.local_threshold > 0);
    sparsetrain_close(x);
}

/* Whatever else the caller does between them. */
static void time_between_calls_is_not_counted(struct comm *c) {
    const struct timespec nap = {0, 20000000};
    struct sparsetrain_stats stats;
    double inside = 0, counted = 0;
    sparsetrain *x = opened("topka", GROUPS);
    for (int step = 0; step < 3; step++) {
        fill(c, step);
        double begin = clock_now();
        good(sparsetrain_begin(x, at, why));
        inside += clock_now() - begin;
        nanosleep(&nap, NULL);
        begin = clock_now();
        good(sparsetrain_ready(x, group[GROUPS - 1], why));
        inside += clock_now() - begin;
        nanosleep(&nap, NULL);
        begin = clock_now();
        good(sparsetrain_run(x, at, why));
        inside += clock_now() - begin;
        nanosleep(&nap, NULL);
    }
    sparsetrain_get_stats(x, &stats);
    for (int i = 0; i < SPARSETRAIN_PHASES; i++) counted += stats.seconds[i];
    if (!(counted <= inside + 1e-6)) fail_msg("%g s are counted, the calls took %g", counted, inside);
    sparsetrain_close(x);
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"every_row_gives_the_bits_of_one_put_together_by_hand", every_row_gives_the_bits_of_one_put_together_by_hand},
        {"slices_of_the_gradient_are_told", slices_of_the_gradient_are_told},
        {"slices_that_are_none_are_told_so", slices_that_are_none_are_told_so},
        {"the_density_changes_between_steps", the_density_changes_between_steps},
        {"ranks_that_set_other_densities_are_told_so", ranks_that_set_other_densities_are_told_so},
        {"what_passed_is_counted", what_passed_is_counted},
        {"time_between_calls_is_not_counted", time_between_calls_is_not_counted},
    };
    return library_test_main(argc, argv, "comm_library", cases, sizeof cases / sizeof *cases);
}
