/* comm_library_state.c: what the library saves and restores of an exchange, and what it refuses to restore. */
/* ranks: 1 2 3 4 5 7 8 */
/* faults: 3 */
/* devices: cuda ranks 1 3 */
#include "tests/lib/library_rig.h"

/* What it saves, fresh memory. */
static char *saved_by(sparsetrain *x, size_t *bytes) {
    *bytes = sparsetrain_save(x, NULL, 0);
    char *saved = mem_alloc(*bytes, 1, "a saved exchange");
    assert_true(*bytes > 0 && sparsetrain_save(x, saved, *bytes) == *bytes);
    return saved;
}

static void a_restored_exchange_goes_on_to_the_same_bits(struct comm *c) {
    for (size_t i = 0; exchanges[i]; i++) {
        if (!exchange_of_gradients(exchanges[i])) continue;
        for (size_t groups = 0; groups <= GROUPS; groups += GROUPS) {
            sparsetrain *x = opened(exchanges[i]->name, groups);
            hash_of_steps(x, c, 0, 3, false);
            size_t bytes;
            char *saved = saved_by(x, &bytes);
            uint64_t wanted = hash_of_steps(x, c, 3, STEPS, false);
            sparsetrain_close(x);
            x = opened(exchanges[i]->name, groups);
            good(sparsetrain_restore(x, saved, bytes, why));
            assert_true(hash_of_steps(x, c, 3, STEPS, false) == wanted);
            struct sparsetrain_stats stats;
            sparsetrain_get_stats(x, &stats);
            assert_int_equal(stats.steps, STEPS);
            sparsetrain_close(x);
            mem_free(saved);
        }
    }
}

static void a_state_of_the_host_goes_on_on_a_device_and_back(struct comm *c) {
    if (twin == grad) return;
    for (size_t i = 0; exchanges[i]; i++) {
        if (!exchange_of_gradients(exchanges[i])) continue;
        for (int from_host = 0; from_host < 2; from_host++) {
            at = from_host ? grad : twin;
            sparsetrain *x = opened(exchanges[i]->name, GROUPS);
            hash_of_steps(x, c, 0, 3, false);
            size_t bytes;
            char *saved = saved_by(x, &bytes);
            uint64_t wanted = hash_of_steps(x, c, 3, STEPS, false);
            sparsetrain_close(x);
            at = from_host ? twin : grad;
            x = opened(exchanges[i]->name, GROUPS);
            good(sparsetrain_restore(x, saved, bytes, why));
            if (hash_of_steps(x, c, 3, STEPS, true) != wanted) fail_msg("%s: other bits", exchanges[i]->name);
            sparsetrain_close(x);
            mem_free(saved);
        }
    }
    at = twin;
}

/* Refused on all ranks for what is wrong on one; the exchange is as it was. */
static void refused(sparsetrain *x, const char *saved, size_t bytes, const char *text) {
    if (sparsetrain_restore(x, saved, bytes, why) != SPARSETRAIN_MISTAKE || !strstr(why, text))
        fail_msg("no \"%s\" in: %s", text, why);
}

static void what_cannot_be_restored_is_refused(struct comm *c) {
    sparsetrain *x = opened("oktopk", 0), *other = opened("gtopk", 0);
    const bool last = c->rank == c->size - 1;
    hash_of_steps(x, c, 0, 3, false);
    size_t bytes = sparsetrain_save(x, NULL, 0);
    char *saved = mem_alloc(bytes, 1, "a saved exchange");
    assert_true(sparsetrain_save(x, saved, bytes - 1) == bytes);
    assert_true(sparsetrain_save(x, saved, bytes) == bytes);
    refused(other, saved, bytes, "what was saved has algorithm=oktopk, this exchange algorithm=gtopk");
    if (last) saved[bytes - 1] ^= 1;
    refused(x, saved, bytes, "the saved exchange is damaged");
    if (last) saved[bytes - 1] ^= 1, saved[0] ^= 1;
    refused(x, saved, bytes, "no saved exchange");
    if (last) saved[0] ^= 1;
    refused(x, saved, last ? 7 : bytes, "7 bytes are no saved exchange");
    for (size_t i = 8; i < 240; i += 8) { /* the head */
        if (last) saved[i] ^= 1;
        refused(x, saved, bytes, "the saved exchange is damaged");
        if (last) saved[i] ^= 1;
    }
    good(sparsetrain_restore(x, saved, bytes, why));
    mem_free(saved);
    sparsetrain_close(x);
    sparsetrain_close(other);
}

/* Opened with one density, at another when it is saved, restored into one that was opened with these options; of every
 * row, since k_max may decide how long its state is. */
static void restored_into(struct comm *c, double before, double then, const char *into) {
    for (size_t i = 0; exchanges[i]; i++) {
        if (!exchange_of_gradients(exchanges[i])) continue;
        const char *name = exchanges[i]->name;
        sparsetrain *x;
        char text[300];
        size_t bytes;
        snprintf(text, sizeof text, "%s,density=%g", options, before);
        good(sparsetrain_open_groups(&x, NULL, name, N, of_device(text), group, GROUPS, why));
        hash_of_steps(x, c, 0, 2, false);
        good(sparsetrain_set_density(x, then, why));
        char *saved = saved_by(x, &bytes);
        uint64_t wanted = hash_of_steps(x, c, 2, 4, false);
        sparsetrain_close(x);
        snprintf(text, sizeof text, "%s,%s", options, into);
        good(sparsetrain_open_groups(&x, NULL, name, N, of_device(text), group, GROUPS, why));
        good(sparsetrain_restore(x, saved, bytes, why));
        if (hash_of_steps(x, c, 2, 4, false) != wanted) fail_msg("%s: other bits", name);
        sparsetrain_close(x);
        mem_free(saved);
    }
}

static void a_restored_exchange_may_have_another_largest_density(struct comm *c) {
    restored_into(c, 0.1, 0.1, "density=0.02,density-max=0.5");
}

/* As after a warm-up: what was selected before may have been more than is ever selected from here on. */
static void or_a_smaller_one(struct comm *c) {
    restored_into(c, 0.2, 0.02, "density=0.02"); /* far from the density before, */
    restored_into(c, 0.2, 0.18, "density=0.18"); /* and near it */
}

/* All that the next steps depend on; options that the algorithm has no use for, the device and the density may be
 * others. */
static void what_was_saved_with_other_arguments_is_told_apart(struct comm *c) {
    static const size_t elsewhere[GROUPS] = {0, 10, 18, 500};
    static const struct {
        const char *algorithm, *options, *other, *text; /* text: NULL: it is taken */
        const size_t *group;
        size_t slices;
    } cases[] = {
        {"oktopk", "tau=64", "tau=32", "has tau=64, this exchange tau=32", group, 0},
        {"oktopk", "", "oktopk-off=regions", "has oktopk-off=none, this exchange oktopk-off=regions", group, 0},
        {"oktopk", "", "wire=packed-f32", "has wire=coo32, this exchange wire=packed-f32", group, 0},
        {"topka", "select=sidco", "", "has select=sidco, this exchange select=exact", group, 0},
        {"topka", "", "seed=2", "has seed=1, this exchange seed=2", group, 0},
        {"topka", "", "ranks-per-node=1", "has ranks-per-node=0, this exchange ranks-per-node=1", group, 0},
        {"dense-ovlp", "", "bucket-bytes=400", "has bucket-bytes=0, this exchange bucket-bytes=400", group, 0},
        {"gtopk", "", "gtopk-residual=paper", "has gtopk-residual=conserve", group, 0},
        {"gtopk", "", "", "has groups=4 of checksum ", elsewhere, 0},
        {"powersgd", "", "", "has slices=0 of checksum ", group, SLICES},
        {"topka", "tau=64,density=0.1", "tau=32,density=0.05,density-max=0.5,powersgd-rank=1", NULL, group, 0}};
    sparsetrain *x;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        good(sparsetrain_open_groups(&x, NULL, cases[i].algorithm, N, of_device(cases[i].options), group, GROUPS, why));
        hash_of_steps(x, c, 0, 2, false);
        size_t bytes;
        char *saved = saved_by(x, &bytes);
        sparsetrain_close(x);
        good(sparsetrain_open_slices(&x, NULL, cases[i].algorithm, N, of_device(cases[i].other), cases[i].group, GROUPS,
                                     slice, cases[i].slices, why));
        if (cases[i].text)
            refused(x, saved, bytes, cases[i].text);
        else
            good(sparsetrain_restore(x, saved, bytes, why));
        hash_of_steps(x, c, 2, 3, false);
        sparsetrain_close(x);
        mem_free(saved);
    }
}

static void ranks_restore_one_moment(struct comm *c) {
    sparsetrain *x;
    char *saved[3];
    const bool last = c->rank == c->size - 1;
    size_t bytes = 0;
    if (c->size == 1) return;
    good(sparsetrain_open(&x, NULL, "topka", N, of_device("density=0.1,density-max=0.2"), why));
    for (int i = 0; i < 3; i++) {
        if (i == 1) good(sparsetrain_set_density(x, 0.2, why));
        if (i == 2) hash_of_steps(x, c, 0, 1, false);
        saved[i] = saved_by(x, &bytes);
    }
    refused(x, saved[last ? 1 : 0], bytes, "restores step 0, density 0.2, and rank 0 step 0, density 0.1");
    refused(x, saved[last ? 2 : 1], bytes, "restores step 1, density 0.2, and rank 0 step 0, density 0.2");
    good(sparsetrain_restore(x, saved[2], bytes, why));
    for (int i = 0; i < 3; i++) mem_free(saved[i]);
    sparsetrain_close(x);
}

/* Of another exchange: nothing was written, so it is as it was. Of another run of as many steps on one rank: no rank
 * can go on with that, and close gives all back. */
static void after_a_refused_restore_it_closes_like_any_other(struct comm *c) {
    const bool last = c->rank == c->size - 1;
    char *saved[2];
    size_t bytes = 0;
    sparsetrain *x;
    good(sparsetrain_open_groups(&x, NULL, "powersgd", N, of_device("powersgd-rank=3"), group, GROUPS, why));
    saved[0] = saved_by(x, &bytes);
    sparsetrain_close(x);
    int before = threads(0);
    x = opened("powersgd", GROUPS);
    refused(x, saved[0], bytes, "has powersgd-rank=3, this exchange powersgd-rank=2");
    hash_of_steps(x, c, 0, 2, true);
    sparsetrain_close(x);
    mem_free(saved[0]);
    assert_int_equal(threads(before), before);
    if (c->size == 1) return;
    for (int i = 0; i < 2; i++) {
        x = opened("oktopk", GROUPS);
        hash_of_steps(x, c, 3 * i, 3 * i + 3, true);
        saved[i] = saved_by(x, &bytes);
        sparsetrain_close(x);
    }
    x = opened("oktopk", GROUPS);
    refused(x, saved[last], bytes, "has another state of oktopk");
    assert_int_equal(sparsetrain_run(x, at, why), SPARSETRAIN_MISTAKE);
    sparsetrain_close(x);
    assert_int_equal(threads(before), before);
    for (int i = 0; i < 2; i++) mem_free(saved[i]);
}

static void a_residual_is_read_and_written_in_parts(struct comm *c) {
    float all[N], part[N];
    sparsetrain *x = opened("topka", 0), *dense = opened("dense", 0);
    hash_of_steps(x, c, 0, 2, false);
    good(sparsetrain_residual(x, 0, N, all, why));
    good(sparsetrain_residual(x, 100, 50, part, why));
    assert_memory_equal(part, all + 100, 50 * sizeof *part);
    for (size_t i = 0; i < N; i++) all[i] = (float)i;
    good(sparsetrain_set_residual(x, 100, 50, all + 100, why));
    good(sparsetrain_residual(x, 149, 2, part, why));
    assert_true(part[0] == 149 && part[1] != 150);
    assert_int_equal(sparsetrain_residual(x, 1000, 10, part, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "entries 1000 to 1010 of 1009"));
    assert_int_equal(sparsetrain_residual(x, 10, SIZE_MAX, part, why), SPARSETRAIN_MISTAKE);
    good(sparsetrain_residual(dense, 0, N, part, why));
    for (size_t i = 0; i < N; i++) assert_true(part[i] == 0);
    good(sparsetrain_set_residual(dense, 0, N, part, why));
    assert_int_equal(sparsetrain_set_residual(dense, 0, 2, all, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "dense has no residual, and entry 1"));
    sparsetrain_close(x);
    sparsetrain_close(dense);
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"a_restored_exchange_goes_on_to_the_same_bits", a_restored_exchange_goes_on_to_the_same_bits},
        {"a_state_of_the_host_goes_on_on_a_device_and_back", a_state_of_the_host_goes_on_on_a_device_and_back},
        {"what_cannot_be_restored_is_refused", what_cannot_be_restored_is_refused},
        {"a_restored_exchange_may_have_another_largest_density", a_restored_exchange_may_have_another_largest_density},
        {"or_a_smaller_one", or_a_smaller_one},
        {"what_was_saved_with_other_arguments_is_told_apart", what_was_saved_with_other_arguments_is_told_apart},
        {"ranks_restore_one_moment", ranks_restore_one_moment},
        {"after_a_refused_restore_it_closes_like_any_other", after_a_refused_restore_it_closes_like_any_other},
        {"a_residual_is_read_and_written_in_parts", a_residual_is_read_and_written_in_parts},
    };
    return library_test_main(argc, argv, "comm_library_state", cases, sizeof cases / sizeof *cases);
}
