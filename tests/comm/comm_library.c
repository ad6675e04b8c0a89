/* comm_library.c: the library's own functions (comm/sparsetrain.h), each row through them against the same row put
 * together by the rig. tests/verbs/cli_library.sh has what another program sees of it. */
/* ranks: 1 2 3 4 5 7 8 */
/* faults: 3 */
/* devices: cuda ranks 1 3 */
#include <dirent.h>
#include <unistd.h>

#include "comm/parts/peers.h"
#include "comm/sparsetrain.h"
#include "tests/lib/exchange_rig.h"

enum { N = 1009, STEPS = 6, GROUPS = 4 };
static const size_t group[GROUPS] = {0, 10, 17, 500};
enum { SLICES = 3 };
static const struct sparsetrain_slice slice[SLICES] = {{20, 25}, {1, 9}, {50, 10}};
static const char options[] = "density=0.1,tau=2,tau_prime=1,seed=1";
static float grad[N];
static float *twin, *at; /* [N] grad on the device of this test (itself on the CPU); where exchanges are just now */
static char why[SPARSETRAIN_LINE];

static const char *of_device(const char *text) {
    static char all[512];
    snprintf(all, sizeof all, "%.400s%sdevice=%s", text, *text ? "," : "", at == grad ? "cpu" : test_device_name());
    return all;
}

static bool is_served(const struct exchange_ops *ops) {
    return exchange_of_gradients(ops);
}

static void fill(struct comm *c, int step) {
    make_gradient(REAL, c->rank, c->size, step, N, grad);
}

static sparsetrain *opened(const char *algorithm, size_t groups) {
    sparsetrain *x;
    if (sparsetrain_open_groups(&x, NULL, algorithm, N, of_device(options), group, groups, why) != SPARSETRAIN_GOOD)
        fail_msg("%s: %s", algorithm, why);
    return x;
}

static void good(int status) {
    if (status != SPARSETRAIN_GOOD) fail_msg("status %d: %s", status, why);
}

/* How a step is made: at once, or while backward goes on. */
static void step_of(sparsetrain *x, bool overlaps) {
    device_fill(at, grad, N);
    if (overlaps) {
        good(sparsetrain_begin(x, at, why));
        for (size_t from = N; from > 0; from -= from < 100 ? from : 100) good(sparsetrain_ready(x, from, why));
        good(sparsetrain_ready(x, 0, why));
    }
    good(sparsetrain_run(x, at, why));
    device_download(grad, at, N);
}

static uint64_t hash_of_steps(sparsetrain *x, struct comm *c, int from, int to, bool overlaps) {
    uint64_t hash = 0;
    for (int step = from; step < to; step++) {
        fill(c, step);
        step_of(x, overlaps);
        hash = hash64(hash, grad, sizeof grad);
    }
    return hash;
}

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
        if (!is_served(ops)) continue;
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

/* -- what is kept ------------------------------------------------------------------------------------------------- */
static void a_restored_exchange_goes_on_to_the_same_bits(struct comm *c) {
    for (size_t i = 0; exchanges[i]; i++) {
        if (!is_served(exchanges[i])) continue;
        for (size_t groups = 0; groups <= GROUPS; groups += GROUPS) {
            sparsetrain *x = opened(exchanges[i]->name, groups);
            hash_of_steps(x, c, 0, 3, false);
            size_t bytes = sparsetrain_save(x, NULL, 0);
            char *saved = mem_alloc(bytes, 1, "a saved exchange");
            assert_true(bytes > 0 && sparsetrain_save(x, saved, bytes) == bytes);
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
        if (!is_served(exchanges[i])) continue;
        for (int from_host = 0; from_host < 2; from_host++) {
            at = from_host ? grad : twin;
            sparsetrain *x = opened(exchanges[i]->name, GROUPS);
            hash_of_steps(x, c, 0, 3, false);
            size_t bytes = sparsetrain_save(x, NULL, 0);
            char *saved = mem_alloc(bytes, 1, "a saved exchange");
            assert_true(sparsetrain_save(x, saved, bytes) == bytes);
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

/* Of every row, since k_max may decide how long its state is. */
static void a_restored_exchange_may_have_another_largest_density(struct comm *c) {
    for (size_t i = 0; exchanges[i]; i++) {
        if (!is_served(exchanges[i])) continue;
        sparsetrain *x = opened(exchanges[i]->name, GROUPS);
        hash_of_steps(x, c, 0, 2, false);
        size_t bytes = sparsetrain_save(x, NULL, 0);
        char *saved = mem_alloc(bytes, 1, "a saved exchange");
        assert_true(sparsetrain_save(x, saved, bytes) == bytes);
        uint64_t wanted = hash_of_steps(x, c, 2, 4, false);
        sparsetrain_close(x);
        char text[300];
        snprintf(text, sizeof text, "%s,density=0.02,density-max=0.5", options);
        good(sparsetrain_open_groups(&x, NULL, exchanges[i]->name, N, of_device(text), group, GROUPS, why));
        good(sparsetrain_restore(x, saved, bytes, why));
        if (hash_of_steps(x, c, 2, 4, false) != wanted) fail_msg("%s: other bits", exchanges[i]->name);
        sparsetrain_close(x);
        mem_free(saved);
    }
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
        size_t bytes = sparsetrain_save(x, NULL, 0);
        char *saved = mem_alloc(bytes, 1, "a saved exchange");
        assert_true(sparsetrain_save(x, saved, bytes) == bytes);
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
        bytes = sparsetrain_save(x, NULL, 0);
        saved[i] = mem_alloc(bytes, 1, "a saved exchange");
        sparsetrain_save(x, saved[i], bytes);
    }
    refused(x, saved[last ? 1 : 0], bytes, "restores step 0, density 0.2, and rank 0 step 0, density 0.1");
    refused(x, saved[last ? 2 : 1], bytes, "restores step 1, density 0.2, and rank 0 step 0, density 0.2");
    good(sparsetrain_restore(x, saved[2], bytes, why));
    for (int i = 0; i < 3; i++) mem_free(saved[i]);
    sparsetrain_close(x);
}

/* How many threads this process has; where `least` are expected, after those that are ending have gone. */
static __attribute__((noinline)) int threads(int least) {
    int found = 0;
    for (int looks = 0; looks < 1000 && (looks == 0 || found > least); looks++) {
        DIR *tasks = opendir("/proc/self/task");
        if (looks > 0) usleep(1000);
        for (found = -2; tasks && readdir(tasks);) found++;
        if (tasks) closedir(tasks);
    }
    return found;
}

/* Of another exchange: nothing was written, so it is as it was. Of another run of as many steps on one rank: no rank
 * can go on with that, and close gives all back. */
static void after_a_refused_restore_it_closes_like_any_other(struct comm *c) {
    const bool last = c->rank == c->size - 1;
    char *saved[2];
    size_t bytes = 0;
    sparsetrain *x;
    good(sparsetrain_open_groups(&x, NULL, "powersgd", N, of_device("powersgd-rank=3"), group, GROUPS, why));
    bytes = sparsetrain_save(x, NULL, 0);
    saved[0] = mem_alloc(bytes, 1, "a saved exchange");
    sparsetrain_save(x, saved[0], bytes);
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
        bytes = sparsetrain_save(x, NULL, 0);
        saved[i] = mem_alloc(bytes, 1, "a saved exchange");
        sparsetrain_save(x, saved[i], bytes);
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
        if (!is_served(exchanges[i])) continue;
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

/* -- mistakes ----------------------------------------------------------------------------------------------------- */
static void mistakes_are_told_in_a_line(struct comm *c) {
    static const size_t late[] = {1, 5}, falling[] = {0, 7, 7}, far[] = {0, N};
    static const struct {
        const char *algorithm, *options, *text;
        size_t n;
        const size_t *group;
        size_t groups;
    } cases[] = {
        {"gtop", "", "the algorithm has no \"gtop\"; there are: dense, ", N, NULL, 0},
        {NULL, "", "the algorithm has no \"\"", N, NULL, 0},
        {"fedavg", "", "the algorithm has no \"fedavg\"", N, NULL, 0},
        {"diloco", "", "the algorithm has no \"diloco\"", N, NULL, 0},
        {"sparseloco", "", "the algorithm has no \"sparseloco\"", N, NULL, 0},
        {"topka", "", "a gradient of 0 entries", 0, NULL, 0},
        {"topka", "", "a gradient of 4294967296 entries", (size_t)1 << 32, NULL, 0},
        {"topka", "density", "\"density\" is no option", N, NULL, 0},
        {"topka", "=1", "\"=1\" is no option", N, NULL, 0},
        {"topka", "density=0.1,,seed=1", "\"\" is no option", N, NULL, 0},
        {"topka", "densities=1", "there is no option \"densities\"; there are: density, ", N, NULL, 0},
        {"topka", "density=0", "density 0 is out of range: it must be above 0 and at most 1", N, NULL, 0},
        {"topka", "density=1.5", "density 1.5 is out of range", N, NULL, 0},
        {"topka", "density=nan", "not \"nan\"", N, NULL, 0},
        {"topka", "density=0.1x", "not \"0.1x\"", N, NULL, 0},
        {"oktopk", "tau=0", "tau 0 is out of range: it must be at least 1", N, NULL, 0},
        {"oktopk", "tau_prime=-1", "tau-prime -1 is out of range", N, NULL, 0},
        {"oktopk", "oktopk-off=regions+wings", "oktopk-off has no \"wings\"", N, NULL, 0},
        {"oktopk", "oktopk-thresholds=old", "oktopk-thresholds has no \"old\"; there are: guarded, paper", N, NULL, 0},
        {"topka", "select=best", "select has no \"best\"; there are: exact, ", N, NULL, 0},
        {"topka", "device=gpu", "device has no \"gpu\"; there are: cpu, cuda", N, NULL, 0},
        {"topka", "device=sparse", "device has no \"sparse\"", N, NULL, 0},
        {"topka", "wire=morse", "wire has no \"morse\"; there are: coo32, ", N, NULL, 0},
        {"gaussiank", "gaussian-adjust=maybe", "gaussian-adjust has no \"maybe\"; there are: on, off", N, NULL, 0},
        {"gtopk", "gtopk-residual=none", "gtopk-residual has no \"none\"; there are: conserve, paper", N, NULL, 0},
        {"topka", "", "group 0 of 2 begins at entry 1", N, late, 2},
        {"topka", "", "group 2 of 3 begins at entry 7", N, falling, 3},
        {"topka", "", "group 1 of 2 begins at entry 1009", N, far, 2}};
    (void)c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sparsetrain *x = (sparsetrain *)(void *)&cases;
        int status = sparsetrain_open_groups(&x, NULL, cases[i].algorithm, cases[i].n, cases[i].options, cases[i].group,
                                             cases[i].groups, why);
        if (status != SPARSETRAIN_MISTAKE || x || !strstr(why, cases[i].text))
            fail_msg("case %zu: status %d, no \"%s\" in: %s", i, status, cases[i].text, why);
    }
}

static void mistake(int status, const char *text) {
    if (status != SPARSETRAIN_MISTAKE || !strstr(why, text)) fail_msg("status %d, no \"%s\" in: %s", status, text, why);
}

static void null_is_told_so(struct comm *c) {
    sparsetrain *x;
    struct sparsetrain_stats s = {.steps = 7};
    mistake(sparsetrain_run(NULL, at, why), "the exchange is NULL");
    mistake(sparsetrain_begin(NULL, at, why), "the exchange is NULL");
    mistake(sparsetrain_ready(NULL, 0, why), "the exchange is NULL");
    mistake(sparsetrain_set_density(NULL, 0.1, why), "the exchange is NULL");
    mistake(sparsetrain_set_stream(NULL, NULL, why), "the exchange is NULL");
    mistake(sparsetrain_residual(NULL, 0, 1, grad, why), "the exchange is NULL");
    mistake(sparsetrain_set_residual(NULL, 0, 1, grad, why), "the exchange is NULL");
    mistake(sparsetrain_restore(NULL, grad, 1, why), "the exchange is NULL");
    assert_int_equal(sparsetrain_save(NULL, NULL, 0), 0);
    sparsetrain_get_stats(NULL, &s);
    assert_int_equal(s.steps, 0);
    mistake(sparsetrain_open(NULL, NULL, "dense", N, NULL, why), "x is NULL");
    mistake(sparsetrain_open_groups(&x, NULL, "dense", N, NULL, NULL, 2, why), "2 groups are to be at NULL");
    mistake(sparsetrain_open_slices(&x, NULL, "dense", N, NULL, NULL, 0, NULL, 2, why), "2 slices are to be at NULL");
    x = opened("topka", 0);
    mistake(sparsetrain_run(x, NULL, why), "the gradient is NULL");
    mistake(sparsetrain_begin(x, NULL, why), "the gradient is NULL");
    mistake(sparsetrain_residual(x, 0, 10, NULL, why), "10 entries are to be at NULL");
    mistake(sparsetrain_set_residual(x, 0, 10, NULL, why), "10 entries are to be at NULL");
    mistake(sparsetrain_restore(x, NULL, 1000, why), "1000 saved bytes are to be at NULL");
    mistake(sparsetrain_restore(x, NULL, 0, why), "0 bytes are no saved exchange");
    sparsetrain_get_stats(x, NULL);
    hash_of_steps(x, c, 0, 1, false);
    sparsetrain_close(x);
}

/* Options of other algorithms may stay. */
static void a_loop_over_algorithms_gives_all_the_same_options(struct comm *c) {
    static const char all[] =
        "density=0.1,density-max=0.2,select=exact,wire=packed,tau=3,tau-prime=4,oktopk_bucket=2,oktopk-off="
        "regions+rotation,oktopk-thresholds=paper,gtopk-residual=paper,gaussian-adjust=off,bucket-bytes="
        "400,seed=9,ranks-per-node=1";
    for (size_t i = 0; sparsetrain_algorithm(i); i++) {
        sparsetrain *x;
        good(sparsetrain_open(&x, NULL, sparsetrain_algorithm(i), N, of_device(all), why));
        hash_of_steps(x, c, 0, 2, true);
        sparsetrain_close(x);
    }
    assert_null(sparsetrain_algorithm(100));
    assert_null(sparsetrain_selector(100));
    assert_null(sparsetrain_wire(100));
    assert_string_equal(sparsetrain_selector(0), "exact");
    assert_string_equal(sparsetrain_wire(0), "coo32");
}

static void ranks_that_differ_are_told_so(struct comm *c) {
    const bool last = c->size > 1 && c->rank == c->size - 1;
    sparsetrain *x;
    if (c->size == 1) return;
    assert_int_equal(sparsetrain_open(&x, NULL, last ? "gtopk" : "topka", N, NULL, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "opens an exchange with other arguments than rank 0: gtopk of 1009 entries"));
    assert_int_equal(sparsetrain_open(&x, NULL, "topka", N, last ? "density=0.1" : NULL, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "\"density=0.1\""));
    assert_int_equal(sparsetrain_open(&x, NULL, "topka", last ? N : N - 1, NULL, why), SPARSETRAIN_MISTAKE);
    assert_int_equal(sparsetrain_open(&x, NULL, "topka", last ? 0 : N, NULL, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "a gradient of 0 entries"));
}

static void calls_out_of_order_are_told_so(struct comm *c) {
    sparsetrain *x = opened("dense-ovlp", 0);
    float other[N], *mine = at;
    fill(c, 0);
    assert_int_equal(sparsetrain_ready(x, 0, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "without begin"));
    good(sparsetrain_begin(x, mine, why));
    assert_int_equal(sparsetrain_begin(x, mine, why), SPARSETRAIN_MISTAKE);
    assert_int_equal(sparsetrain_ready(x, N + 1, why), SPARSETRAIN_MISTAKE);
    assert_int_equal(sparsetrain_run(x, other, why), SPARSETRAIN_MISTAKE);
    assert_non_null(strstr(why, "another gradient"));
    assert_int_equal(sparsetrain_save(x, NULL, 0), 0);
    assert_int_equal(sparsetrain_residual(x, 0, 1, other, why), SPARSETRAIN_MISTAKE);
    if (at == grad) {
        assert_int_equal(sparsetrain_set_stream(x, NULL, why), SPARSETRAIN_MISTAKE);
        assert_non_null(strstr(why, "an exchange on host memory has no stream"));
    }
    good(sparsetrain_run(x, mine, NULL));
    sparsetrain_close(x);
    sparsetrain_close(NULL);
}

/* The sums of a step that was begun end before its gradient goes. */
static void close_ends_a_step_that_was_begun(struct comm *c) {
    const char *const rows[] = {"dense-ovlp", "topka", "powersgd"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t groups = 0; groups <= GROUPS; groups += GROUPS)
            for (size_t from = 0; from <= N; from += N) {
                sparsetrain *x;
                char text[600];
                snprintf(text, sizeof text, "%s,bucket-bytes=400", of_device("density=0.1"));
                good(sparsetrain_open_groups(&x, NULL, rows[i], N, text, group, groups, why));
                fill(c, 0);
                device_fill(at, grad, N);
                good(sparsetrain_begin(x, at, why));
                good(sparsetrain_ready(x, from, why));
                sparsetrain_close(x);
                fill(c, 1);
                device_fill(at, grad, N);
                all_ranks_hold_the_same(groups);
                static float now[N];
                device_download(now, at, N);
                fill(c, 1);
                assert_memory_equal(now, grad, sizeof now);
            }
}

/* -- errors ------------------------------------------------------------------------------------------------------- */
/* On all ranks, so that none waits for another. */
static void a_nan_breaks_it_and_nothing_else(struct comm *c) {
    for (size_t i = 0; exchanges[i]; i++) {
        if (!is_served(exchanges[i])) continue;
        sparsetrain *x = opened(exchanges[i]->name, 0);
        fill(c, 0);
        for (size_t j = 0; j < N; j++) grad[j] = NAN;
        device_fill(at, grad, N);
        assert_int_equal(sparsetrain_run(x, at, why), SPARSETRAIN_NUMERIC);
        if (!strstr(why, "is NaN or infinite")) fail_msg("%s: %s", exchanges[i]->name, why);
        fill(c, 1);
        assert_int_equal(sparsetrain_run(x, at, why), SPARSETRAIN_NUMERIC);
        assert_int_equal(sparsetrain_begin(x, at, NULL), SPARSETRAIN_NUMERIC);
        sparsetrain_close(x);
    }
}

/* One rank's alone: its gtopk has posted no receive, which would take the first of two messages that come with the tag
 * of one into memory that is freed by then. */
static void a_nan_leaves_no_receive_posted(struct comm *c) {
    enum { TAG_UP = 300 };
    struct tree_step step = {0};
    int round = 0, word;
    if (c->size == 1) return;
    while ((step = tree_reduce_step(c->size, 0, round)).role != TREE_RECEIVE) round++;
    rig_open(c, exchange_named("gtopk"), exact(), 100, 10, GTOPK_CONSERVE);
    make_gradient(WHOLE, c->rank, c->size, 0, 100, rig.grad);
    rig.grad[42] = NAN;
    if (c->rank == 0) assert_false(rig_run(10));
    rig_close();
    for (int sent = 1; sent <= 2; sent++) {
        if (c->rank == step.peer) comm_send(c, 0, TAG_UP + round, &sent, sizeof sent);
        if (c->rank == 0) comm_recv(c, step.peer, TAG_UP + round, &word, sizeof word);
        if (c->rank == 0) assert_int_equal(word, sent);
    }
}

/* Whatever allocation fails: an error, not the end of the process. One rank, as others would wait for it. */
static void no_memory_is_an_error(struct comm *c) {
#ifdef ST_SANITIZE
    skip(); /* what is taken where it fails stays taken, which the leak checker takes for a mistake */
#endif
    if (c->size > 1 || c->wire_check || at != grad) return; /* ... nor does a device */
    const char *const rows[] = {"dense-ovlp", "gtopk", "oktopk", "hitopk", "spardl"};
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (size_t groups = 0; groups <= GROUPS; groups += GROUPS) {
            int status = SPARSETRAIN_SYSTEM;
            for (long nth = 1; status != SPARSETRAIN_GOOD; nth++) {
                sparsetrain *x;
                mem_fail_at(nth);
                status = sparsetrain_open_groups(&x, NULL, rows[row], N, options, group, groups, why);
                mem_fail_at(0);
                if (status == SPARSETRAIN_GOOD)
                    sparsetrain_close(x);
                else if (x || status != SPARSETRAIN_SYSTEM || !strstr(why, "no memory for") || nth > 1000)
                    fail_msg("%s, allocation %ld: status %d: %s", rows[row], nth, status, why);
            }
        }
}

/* With overlap by layers it is the exchange's own thread that dies, and run that tells. */
static bool dies(struct exchange *x, float *g, size_t k, struct exchange_sum *sum) {
    (void)x, (void)g, (void)k, (void)sum;
    die("this row dies");
}
static void what_dies_in_the_thread_is_told_by_run(struct comm *c) {
    struct error_catch catch;
    struct exchange_ops deadly = *exchange_named("dense");
    struct exchange x;
    struct exchange_sum sum;
    const struct exchange_setup setup = {.comm = c, .n = N, .k_max = 1, .group = group, .groups = GROUPS};
    deadly.run = dies;
    volatile int overlaps = 0;
    const int before = threads(0);
    for (; overlaps < 2; overlaps++) {
        error_catch_begin(&catch);
        if (setjmp(catch.back) == 0) {
            exchange_open_layers(&x, &deadly, &setup);
            if (overlaps) exchange_begin(&x, grad, 1), exchange_ready(&x, 0);
            exchange_run(&x, grad, 1, &sum);
            fail_msg("it did not die");
        }
        assert_non_null(strstr(catch.e.text, "this row dies"));
        assert_true(exchange_layers_abandon(&x)); /* as where nobody else would close it */
        assert_int_equal(threads(before), before);
        exchange_close(&x);
    }
    assert_false(error_is_caught());
}

int main(int argc, char **argv) {
    const struct mpi_case cases[] = {
        {"every_row_gives_the_bits_of_one_put_together_by_hand", every_row_gives_the_bits_of_one_put_together_by_hand},
        {"slices_of_the_gradient_are_told", slices_of_the_gradient_are_told},
        {"slices_that_are_none_are_told_so", slices_that_are_none_are_told_so},
        {"a_restored_exchange_goes_on_to_the_same_bits", a_restored_exchange_goes_on_to_the_same_bits},
        {"a_state_of_the_host_goes_on_on_a_device_and_back", a_state_of_the_host_goes_on_on_a_device_and_back},
        {"what_cannot_be_restored_is_refused", what_cannot_be_restored_is_refused},
        {"a_restored_exchange_may_have_another_largest_density", a_restored_exchange_may_have_another_largest_density},
        {"what_was_saved_with_other_arguments_is_told_apart", what_was_saved_with_other_arguments_is_told_apart},
        {"ranks_restore_one_moment", ranks_restore_one_moment},
        {"after_a_refused_restore_it_closes_like_any_other", after_a_refused_restore_it_closes_like_any_other},
        {"a_residual_is_read_and_written_in_parts", a_residual_is_read_and_written_in_parts},
        {"the_density_changes_between_steps", the_density_changes_between_steps},
        {"ranks_that_set_other_densities_are_told_so", ranks_that_set_other_densities_are_told_so},
        {"what_passed_is_counted", what_passed_is_counted},
        {"mistakes_are_told_in_a_line", mistakes_are_told_in_a_line},
        {"null_is_told_so", null_is_told_so},
        {"a_loop_over_algorithms_gives_all_the_same_options", a_loop_over_algorithms_gives_all_the_same_options},
        {"ranks_that_differ_are_told_so", ranks_that_differ_are_told_so},
        {"calls_out_of_order_are_told_so", calls_out_of_order_are_told_so},
        {"close_ends_a_step_that_was_begun", close_ends_a_step_that_was_begun},
        {"a_nan_breaks_it_and_nothing_else", a_nan_breaks_it_and_nothing_else},
        {"a_nan_leaves_no_receive_posted", a_nan_leaves_no_receive_posted},
        {"no_memory_is_an_error", no_memory_is_an_error},
        {"what_dies_in_the_thread_is_told_by_run", what_dies_in_the_thread_is_told_by_run},
    };
    at = twin = device_twin(grad, N);
    int status = rig_test_main(argc, argv, "comm_library", cases, sizeof cases / sizeof *cases);
    device_twin_free(twin, grad);
    return status;
}
